"""Checks happen on the host and cost no launch; contiguous inputs are not copied, and nobody waits for the device."""


def test_is_one_launch_without_hidden_copies(speed, case):
    speed.check(case)
