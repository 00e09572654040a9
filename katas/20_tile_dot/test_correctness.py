"""Right means: c = a @ b for any M, N and K up to 64, with any strides, each sum kept in float32 and rounded once."""

import pytest


def test_multiplies_tiles(kata, case):
    kata.check(case)


def test_refuses_operands_that_do_not_fit(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_keeps_its_sums_in_float32(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_which_tiles_compile(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
