"""Right means: y[n, m] = x[m, n], wherever in memory x may lie."""

import pytest


def test_moves_every_element_to_its_place(kata, case):
    kata.check(case)


def test_refuses_what_is_not_a_matrix(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_moves_special_values_unchanged(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_what_memory_moves_for_a_tile(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
