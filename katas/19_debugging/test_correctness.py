"""Right means: each row with mean 0 and variance 1, times weight, plus bias, also where the mean is far from 0."""

import pytest


def test_normalises_every_row(kata, case):
    kata.check(case)


def test_refuses_what_does_not_match(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_keeps_its_digits(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_what_a_fault_shows_and_what_it_hides(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
