"""A large product is limited by the tensor cores, which must be kept fed."""


def test_comes_near_the_vendor_library(speed, case):
    speed.check(case)
