"""Right means: y[m, n] = x[m, n] in contiguous memory, wherever in memory x may lie."""

import pytest


def test_copies_every_element_of_any_layout(kata, case):
    kata.check(case)


def test_refuses_what_is_not_a_matrix(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_copies_special_values_unchanged(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_which_views_need_no_strides(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
