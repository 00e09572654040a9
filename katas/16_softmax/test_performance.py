"""A row stays in registers between the passes, so x is read once and y written once."""


def test_reads_once_and_writes_once(speed, case):
    speed.check(case)
