"""Nothing is in the way of memory: each call moves the bytes of a copy, and the branch costs nothing."""


def test_takes_hardly_longer_than_a_copy(speed, case):
    speed.check(case)
