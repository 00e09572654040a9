"""The second pass finds its row in the cache, so x is read from memory once and y written once."""


def test_comes_near_one_read_and_one_write(speed, case):
    speed.check(case)
