"""The budget is judged with each measurement: no kernel of the learner's is timed."""


def test_is_tied_to_no_speed(speed):
    speed.check()
