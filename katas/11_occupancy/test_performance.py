"""The setting that the file has chosen, against the best of a sweep over all three dials."""


def test_comes_near_the_best_of_a_sweep(speed, case):
    speed.check(case)
