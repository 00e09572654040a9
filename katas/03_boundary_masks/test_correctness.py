"""Right means: each element k places on, and fill wherever nothing was shifted to."""

import pytest


def test_shifts_every_element_and_fills_the_rest(kata, case):
    kata.check(case)


def test_refuses_what_it_cannot_shift(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_keeps_special_values_and_any_fill(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_the_lanes_that_each_mask_holds_back(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
