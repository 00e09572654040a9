"""K66: lessons on the host. What the learner's protocol, timer or search space lets through, or gets wrong."""

from checker.diagnoses.model import diagnosis

ENTRIES = (
    diagnosis(
        "K661",
        "values",
        "a wrong kernel passes",
        """
        Your protocol was given a kernel that is wrong in one way, named in the message, and found nothing. No input it
        tried comes near the mistake: a ragged size, a single element, a strided view, a NaN, a large number, another
        dtype. Add the smallest input that shows it.
        """,
        """
        for n in (256, 512, 1024):
            check(n)
        """,
        """
        for n in (1, 255, 256, 257, 1000):
            check(n)
        """,
    ),
    diagnosis(
        "K662",
        "values",
        "a right kernel is refused",
        """
        Your protocol was given a right kernel and raised. A protocol that cries wolf is soon switched off. Mostly its
        tolerance is tighter than the arithmetic: a fused multiply-add rounds once where two operations round twice, and
        a sum in another order rounds elsewhere. Compare with a result in float64, and allow what the dtype can hold.
        """,
        """
        assert torch.equal(out, a * x + y)
        """,
        """
        torch.testing.assert_close(out.double(), a * x.double() + y.double(), rtol=2**-10, atol=2**-10)
        """,
    ),
    diagnosis(
        "K663",
        "values",
        "it costs more than it may",
        """
        The answer may be right, but it takes more calls, elements, rounds, binaries or configurations than the task
        allows. What is run before every change must be cheap enough to be run.
        """,
        """
        for n in range(10_000):
            check(n)
        """,
        """
        for n in (1, 2, 255, 256, 257, 10_000):
            check(n)
        """,
    ),
    diagnosis(
        "K664",
        "values",
        "a wrong measurement",
        """
        Your timer was given work whose time is known, and said something else. The message names what it was exposed
        to: a first call that compiles, work that runs on while the host goes on, data that lies warm in the cache, a
        round that something disturbed, or too few rounds.
        """,
        """
        start = time.perf_counter()
        fn()
        return time.perf_counter() - start
        """,
        """
        start.record()
        fn()
        end.record()
        synchronize()
        """,
    ),
    diagnosis(
        "K665",
        "values",
        "a configuration that cannot work",
        """
        The search space holds a configuration that does not compile or does not fit one of the chips named, or the same
        one twice. Shared memory is mostly the limit: a pipeline of `num_stages` keeps that many tiles of A and B there.
        What does not fit one chip has to be pruned for it.
        """,
        """
        triton.Config({"BLOCK_SIZE_M": 256, "BLOCK_SIZE_N": 256, "BLOCK_SIZE_K": 128}, num_stages=4, num_warps=8)
        """,
        """
        triton.Config({"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64}, num_stages=3, num_warps=4)
        """,
    ),
    diagnosis(
        "K666",
        "values",
        "a search space that misses",
        """
        On some shape or chip the best configuration of the space is far from the best that an exhaustive search finds.
        Spread the space: small tiles for small problems, flat and tall ones, long and short steps along K.
        """,
        """
        matmul_kernel = triton.autotune(configs=[LARGE, LARGER], key=["M", "N", "K"])(kernel)
        """,
        """
        matmul_kernel = triton.autotune(configs=[SMALL, FLAT, TALL, LARGE], key=["M", "N", "K"])(kernel)
        """,
    ),
    diagnosis(
        "K667",
        "values",
        "a choice reused where it does not hold",
        """
        The tuner remembers its choice by the values of the arguments in `key` (and the dtypes of the tensors). Two
        calls that differ in nothing of that share one choice, whichever of them came first. Put every argument into the
        key on which the best configuration depends; one that does not matter costs a new search for each of its values.
        """,
        """
        matmul_kernel = triton.autotune(configs=CONFIGS, key=["M"])(kernel)
        """,
        """
        matmul_kernel = triton.autotune(configs=CONFIGS, key=["M", "N", "K"])(kernel)
        """,
    ),
)
