"""Right means: sum and maximum of every row, as if there were no lanes past its end and no float16 on the way."""

import pytest


def test_reduces_each_row_to_two_numbers(kata, case):
    kata.check(case)


def test_refuses_what_it_cannot_reduce(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_sums_are_kept_in_float32(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_how_threads_exchange_values(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
