"""Right means: y = silu(gate) * up, computed in float32, for gates of any size."""

import pytest


def test_gates_every_element(kata, case):
    kata.check(case)


def test_refuses_operands_that_do_not_match(kata, refusal):
    kata.check_refusal(refusal)


@pytest.mark.stage("numerics")
def test_survives_any_gate(kata, case):
    kata.check(case)


@pytest.mark.stage("predictions")
def test_predicts_what_fusion_saves_and_where_threads_appear(kata):
    kata.check_predictions()


@pytest.mark.stage("fairness")
def test_is_the_work_of_its_own_kernels(kata):
    kata.check_fairness()
