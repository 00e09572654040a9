"""Right means: every right kernel is accepted and every wrong one refused, in a few calls."""

import pytest


def test_tells_right_kernels_from_wrong_ones(kata, probe):
    kata.check_probe(probe)


@pytest.mark.stage("predictions")
def test_predicts_what_passes_a_naive_protocol(kata):
    kata.check_predictions()
