"""Programs that run together share what they load, and the order costs nothing."""

import pytest


@pytest.mark.stage("speed")
def test_shares_what_a_wave_of_programs_loads(kata, probe):
    kata.check_probe(probe)


def test_is_no_slower_than_it_was(speed, case):
    speed.check(case)
