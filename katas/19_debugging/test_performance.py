"""A row stays in registers from the mean to the store, so x is read once and y written once."""


def test_reads_once_and_writes_once(speed, case):
    speed.check(case)
