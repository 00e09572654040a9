"""A tile asks for its piece of bias once, so the bytes are those of x and y, and little more."""


def test_moves_hardly_more_than_x_and_y(speed, case):
    speed.check(case)
