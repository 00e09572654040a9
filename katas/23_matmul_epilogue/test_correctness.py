"""Right means: y = activation(x @ w + bias), everything in between in float32, rounded once."""

import pytest


def test_computes_a_linear_layer(kata, case):
    kata.check(case)


def test_refuses_what_it_cannot_compute(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_rounds_once_after_the_activation(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_what_fusing_saves(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
