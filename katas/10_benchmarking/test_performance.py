"""The budget is judged with the measurement itself: nothing is tied to the speed of a kernel here."""


def test_nothing_is_tied_to_speed(speed, case):
    speed.check(case)
