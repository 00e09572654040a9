"""Right means: each row of y is the softmax of the same row of x, also where exp would overflow or vanish."""

import pytest


def test_turns_each_row_into_probabilities(kata, case):
    kata.check(case)


def test_refuses_what_it_cannot_hold(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_survives_any_logits(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_where_a_softmax_without_the_maximum_breaks(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
