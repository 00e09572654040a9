"""Right means: a * x + y for all that the contract accepts, and the exception it names for all that it refuses."""

import pytest


def test_computes_what_it_accepts(kata, case):
    kata.check(case)


def test_refuses_the_rest(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_rounds_once(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_what_becomes_of_bad_input_without_a_contract(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
