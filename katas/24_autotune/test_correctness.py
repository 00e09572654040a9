"""Right means: c holds the sum, whatever the tuner tried before; and the space is worth searching."""

import pytest


def test_adds_the_product_once(kata, case):
    kata.check(case)


def test_refuses_what_does_not_match(kata, refusal):
    kata.check_refusal(refusal)


def test_has_a_search_space_that_can_work(kata, probe):
    kata.check_probe(probe)


@pytest.mark.stage("numerics")
def test_sums_in_float32(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_what_fits(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
