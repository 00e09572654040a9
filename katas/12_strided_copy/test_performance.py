"""Strides cost no time of their own: a contiguous matrix is copied about as fast as by a flat kernel."""


def test_copies_a_contiguous_matrix_as_fast_as_a_flat_kernel(speed, case):
    speed.check(case)
