"""With K = 64 there is so much to compute for each byte that only tensor cores keep up with memory."""


def test_leaves_the_products_to_the_tensor_cores(speed, case):
    speed.check(case)
