"""Right means: each element holds the number of the program that owns it."""

import pytest


def test_tags_every_element_with_its_program(kata, case):
    kata.check(case)


def test_refuses_blocks_that_no_kernel_can_have(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_counts_more_programs_than_16_bits_hold(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_programs_owners_and_where_an_expression_lives(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
