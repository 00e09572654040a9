"""Few repeats cost nothing beside the bytes, many make the bytes cost nothing: the kernel follows the roof."""


def test_stays_close_under_the_roof(speed, case):
    speed.check(case)
