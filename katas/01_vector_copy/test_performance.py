"""A copy has nothing to do but move bytes, so it must come near the bandwidth of memory."""


def test_comes_near_the_bandwidth_of_memory(speed, case):
    speed.check(case)
