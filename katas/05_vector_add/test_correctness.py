"""Right means: z = x + y for every element, and no answer at all for operands that do not match."""

import pytest


def test_adds_every_element(kata, case):
    kata.check(case)


def test_refuses_operands_that_do_not_match(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_is_as_exact_as_pytorch_at_every_magnitude(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_the_bytes_and_what_a_launch_is_worth(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
