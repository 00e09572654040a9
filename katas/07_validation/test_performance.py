"""Calls and elements are counted with each kernel that is validated: nothing of the learner's is timed."""


def test_is_tied_to_no_speed(speed):
    speed.check()
