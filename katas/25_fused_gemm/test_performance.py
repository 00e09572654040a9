"""One search space serves a large product, which the tensor cores limit, and one of few rows, which memory does."""


def test_comes_near_the_vendor_library_at_every_size(speed, case):
    speed.check(case)
