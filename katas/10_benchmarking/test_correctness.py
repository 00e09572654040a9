"""Right means: within 5 % of a known time, whatever disturbs the measurement, and within the budget."""

import pytest


def test_measures_the_work_and_nothing_else(kata, probe):
    kata.check_probe(probe)


@pytest.mark.stage("predictions")
def test_predicts_what_other_timers_say(kata):
    kata.check_predictions()
