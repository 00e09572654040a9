"""Right means: every row over its own root mean square, times the weight, with one rounding at the end."""

import pytest


def test_scales_every_row(kata, case):
    kata.check(case)


def test_refuses_what_does_not_match(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_squares_in_float32_and_rounds_once(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_what_fusion_saves(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
