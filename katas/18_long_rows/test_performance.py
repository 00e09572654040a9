"""Two passes: x is read twice and y written once, with enough on its way where there are few rows."""


def test_reads_twice_and_writes_once(speed, case):
    speed.check(case)
