"""Bias and activation cost next to nothing where the product already is, and a trip through memory elsewhere."""


def test_costs_no_more_than_the_product(speed, case):
    speed.check(case)
