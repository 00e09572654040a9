"""Right means: y holds every element of x, bit for bit, whatever it is."""

import pytest


def test_copies_every_element(kata, case):
    kata.check(case)


def test_refuses_what_it_cannot_copy(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_copies_numbers_that_arithmetic_would_change(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_whose_fault_a_failure_is_and_the_levels_of_compilation(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
