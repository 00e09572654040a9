"""A transpose moves the bytes of a copy, so it must take about the time of a copy."""


def test_takes_about_the_time_of_a_copy(speed, case):
    speed.check(case)
