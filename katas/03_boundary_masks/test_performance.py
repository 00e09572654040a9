"""A shift moves the bytes of a copy; masks cost nothing beside them."""


def test_moves_hardly_more_bytes_than_a_copy(speed, case):
    speed.check(case)
