"""Right means: y is x, however many programs share the work and however large their blocks are."""

import pytest


def test_copies_every_element_with_any_number_of_programs(kata, case):
    kata.check(case)


def test_lets_each_program_copy_what_no_other_does(kata, probe):
    kata.check_probe(probe)


def test_refuses_settings_that_no_chip_takes(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_copies_bits_and_not_values(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_what_is_on_its_way_and_what_is_scarce(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
