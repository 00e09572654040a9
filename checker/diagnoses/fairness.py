"""K9: whose work the result is."""

from checker.diagnoses.model import diagnosis

ENTRIES = (
    diagnosis(
        "K901",
        "fairness",
        "PyTorch did the work",
        """
        An operation of PyTorch computed what the kernel should. Allocation, views and metadata are fine in a
        wrapper; arithmetic is not, for it would be PyTorch's speed and exactness that were measured. A wrapper
        often falls back to PyTorch for a hard case: that case is the lesson.
        """,
        """
        if not x.is_contiguous():
            return x + y
        """,
        """
        add_kernel[grid](x, y, z, n, x.stride(0), y.stride(0), BLOCK_SIZE=1024)
        return z
        """,
    ),
    diagnosis(
        "K902",
        "fairness",
        "the result was not stored by a kernel of this file",
        """
        Bytes of the returned tensor were last written by something else than a kernel that this file launched
        in this call. A kernel that runs and whose result is then thrown away does not count.
        """,
        """
        add_kernel[grid](x, y, z, n, BLOCK_SIZE=1024)
        return torch.add(x, y)
        """,
        """
        add_kernel[grid](x, y, z, n, BLOCK_SIZE=1024)
        return z
        """,
    ),
    diagnosis(
        "K903",
        "fairness",
        "the result of an earlier call was returned",
        """
        The function returned what an earlier call had computed, though the inputs have changed since. A cache
        keyed by shape or by address cannot see that: the same memory may hold new data. Compute on every call.
        """,
        """
        @functools.cache
        def vector_copy(x):
            ...
        """,
        """
        def vector_copy(x):
            ...
        """,
    ),
)
