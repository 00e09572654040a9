"""Both reductions work on registers, so x is read once and next to nothing is written."""


def test_comes_near_the_bandwidth_of_memory(speed, case):
    speed.check(case)
