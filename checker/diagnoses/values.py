"""K6: what comes out of the entry point, and what the learner predicted about it."""

from checker.diagnoses.model import diagnosis

ENTRIES = (
    diagnosis(
        "K601",
        "values",
        "wrong values",
        """
        The result has the right shape and dtype, but other values than the reference, by more than rounding can
        explain. Every access was inside its tensor and everything was written, so the mistake is in what is
        computed or in which element goes where. The first indices and their values tell the pattern: all wrong
        means the formula, one row or the last block means an offset or a mask, mirrored pairs mean swapped
        strides.
        """,
        """
        tl.store(y_ptr + offs, offs, mask=mask)
        """,
        """
        tl.store(y_ptr + offs, x, mask=mask)
        """,
    ),
    diagnosis(
        "K602",
        "values",
        "wrong shape or strides",
        """
        The returned tensor has another shape than the formula asks for. Look at the allocation in the wrapper:
        `empty_like` copies the shape (and the strides) of its argument, which for a transpose or a product is
        not the shape of the result.
        """,
        """
        y = torch.empty_like(x)                 # x is (M, N); the result is (N, M)
        """,
        """
        M, N = x.shape
        y = torch.empty((N, M), dtype=x.dtype, device=x.device)
        """,
    ),
    diagnosis(
        "K603",
        "values",
        "wrong dtype",
        """
        The returned tensor has another dtype than the kata asks for, which is that of the inputs unless its
        README says otherwise. `torch.empty(shape)` without `dtype=` is float32, whatever the inputs are.
        """,
        """
        y = torch.empty(x.shape, device=x.device)
        """,
        """
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        """,
    ),
    diagnosis(
        "K604",
        "values",
        "the function did not return a tensor",
        """
        The entry point returned None, or something else that is no tensor. A launch returns no result: the
        kernel fills a tensor that the wrapper allocated, and that tensor is what has to be returned.
        """,
        """
        y = torch.empty_like(x)
        return copy_kernel[grid](x, y, n, BLOCK_SIZE=1024)
        """,
        """
        y = torch.empty_like(x)
        copy_kernel[grid](x, y, n, BLOCK_SIZE=1024)
        return y
        """,
    ),
    diagnosis(
        "K605",
        "values",
        "the same call gives another result",
        """
        The function was called twice with equal inputs, and the results differ. Something is left over from the
        first call: an accumulator that is not cleared, an output kept in a global, an autotuned kernel that
        works in place without `restore_value`.
        """,
        """
        TOTAL = None

        def total(x):
            global TOTAL
            TOTAL = torch.zeros(1, device=x.device) if TOTAL is None else TOTAL
            sum_kernel[grid](x, TOTAL, x.numel(), BLOCK_SIZE=1024)
            return TOTAL
        """,
        """
        def total(x):
            result = torch.zeros(1, device=x.device)
            sum_kernel[grid](x, result, x.numel(), BLOCK_SIZE=1024)
            return result
        """,
    ),
    diagnosis(
        "K606",
        "values",
        "a bad input was accepted",
        """
        The wrapper took an input that it cannot handle and launched all the same. A kernel sees addresses only;
        it cannot notice that shapes differ or that a tensor lives elsewhere. The wrapper is the last place
        where that can be said, and `assert` is no way to say it: it is gone under `python -O`.
        """,
        """
        def vector_add(x, y):
            z = torch.empty_like(x)
        """,
        """
        def vector_add(x, y):
            if x.shape != y.shape:
                raise ValueError(f"shapes differ: {tuple(x.shape)} and {tuple(y.shape)}")
            z = torch.empty_like(x)
        """,
    ),
    diagnosis(
        "K607",
        "values",
        "a good input was refused",
        """
        The wrapper raised on an input that the kata asks it to take, such as an empty tensor, a non-contiguous
        one, or another dtype. Refuse only what the kernel cannot do.
        """,
        """
        if not x.is_contiguous():
            raise ValueError("x must be contiguous")
        """,
        """
        # The kernel takes strides, so every layout is fine.
        transpose_kernel[grid](x, y, M, N, x.stride(0), x.stride(1), y.stride(0), y.stride(1))
        """,
    ),
    diagnosis(
        "K608",
        "values",
        "the result shares memory with an input",
        """
        What was returned is the input, or a view of it. A caller who changes one changes the other. The result
        needs memory of its own, filled by the kernel.
        """,
        """
        def transpose(x):
            return x.t()
        """,
        """
        def transpose(x):
            y = torch.empty((x.shape[1], x.shape[0]), dtype=x.dtype, device=x.device)
            transpose_kernel[grid](x, y, *x.shape, *x.stride(), *y.stride())
            return y
        """,
    ),
    diagnosis(
        "K651",
        "predictions",
        "a prediction is wrong",
        """
        A prediction is a function of yours that says beforehand what will happen: how many programs, how many
        bytes, which limit. It was called with inputs drawn just now and compared with what running, tracing or
        compiling shows. The third wrong try shows the truth. Predictions never keep a kernel from being judged.
        """,
        """
        def programs(n, block):
            return n // block
        """,
        """
        def programs(n, block):
            return (n + block - 1) // block
        """,
    ),
    diagnosis(
        "K652",
        "predictions",
        "a prediction is missing or of the wrong kind",
        """
        The function or table that holds the prediction does not exist, still returns None, or returns something
        of another kind than its docstring asks for, such as a string for a number.
        """,
        """
        def bytes_moved(n, itemsize):
            return None
        """,
        """
        def bytes_moved(n, itemsize):
            return 2 * n * itemsize
        """,
    ),
    diagnosis(
        "K653",
        "predictions",
        "a prediction raised an exception",
        """
        The function that holds the prediction raised instead of answering. It is called with plain Python
        values, as its docstring says; the exception and the line are given.
        """,
    ),
)
