"""Right means what it meant in kata 21, in whatever order the tiles are computed: each of them, and once."""

import pytest


def test_multiplies_matrices(kata, case):
    kata.check(case)


def test_refuses_operands_that_do_not_fit(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_keeps_its_sums_in_float32(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_what_a_wave_of_programs_loads(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
