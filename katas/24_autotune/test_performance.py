"""The best of the space is near the best there is, on several shapes and on three chips, by the clock of each."""

import pytest


@pytest.mark.stage("speed")
def test_comes_near_an_exhaustive_search(kata, probe):
    kata.check_probe(probe)
