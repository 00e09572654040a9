"""One addition costs nothing beside the twelve bytes it needs, so memory is the limit."""


def test_comes_near_the_bandwidth_of_memory(speed, case):
    speed.check(case)
