"""Right means: the same probabilities as with the whole row at hand, however the row is cut into chunks."""

import pytest


def test_turns_each_row_into_probabilities(kata, case):
    kata.check(case)


def test_refuses_what_it_cannot_take(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_survives_any_chunk(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_rescalings_and_bytes(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
