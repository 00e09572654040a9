"""Right means: y[m, n] = x[m, n] + bias[n], wherever in memory x and bias may lie."""

import pytest


def test_adds_the_bias_of_its_column_to_every_element(kata, case):
    kata.check(case)


def test_refuses_a_bias_that_does_not_match(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_is_as_exact_as_pytorch_at_every_magnitude(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_when_the_wrong_axis_shows(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
