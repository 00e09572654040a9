"""Right means: slope * x in one mode, a leaky ReLU in the other, and one binary for each."""

import pytest


def test_scales_or_keeps_every_element(kata, case):
    kata.check(case)


def test_compiles_once_for_each_mode_and_alignment(kata, probe):
    kata.check_probe(probe)


def test_refuses_what_it_cannot_scale(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_keeps_special_values_and_any_slope(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_what_compiles_and_how_often(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
