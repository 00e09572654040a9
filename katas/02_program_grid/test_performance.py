"""One launch is enough, with no more programs than there are blocks."""


def test_launches_no_more_programs_than_blocks(speed, case):
    speed.check(case)
