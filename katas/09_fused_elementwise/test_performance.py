"""The result of SiLU never sees memory, so three tensors move where PyTorch moves five."""


def test_moves_three_tensors_not_five(speed, case):
    speed.check(case)
