"""Right means: the geometric series x + x^2 + ... of each element, computed between one load and one store."""

import pytest


def test_repeats_the_multiply_add_as_often_as_asked(kata, case):
    kata.check(case)


def test_refuses_what_it_cannot_repeat(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_rounds_the_chain_once(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_what_the_time_is_spent_on(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
