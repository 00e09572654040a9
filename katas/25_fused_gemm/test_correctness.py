"""Right means: the contract of the docstring, for all sizes, strides and dtypes, and on more than one chip."""

import pytest


def test_computes_a_fused_linear_layer(kata, case):
    kata.check(case)


def test_refuses_what_its_contract_refuses(kata, refusal):
    kata.check_refusal(refusal)


def test_keeps_no_configuration_that_a_chip_cannot_launch(kata, probe):
    kata.check_probe(probe)


@pytest.mark.stage("numerics")
def test_rounds_once_and_keeps_special_values(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_claims_are_neither_too_high_nor_too_low(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
