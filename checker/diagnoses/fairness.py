"""K9: whose work the result is."""

from checker.diagnoses.model import diagnosis

ENTRIES = (
    diagnosis(
        "K901",
        "fairness",
        "PyTorch did the work",
        """
        An operation of PyTorch computed what the kernel should, or wrote what was returned. In a wrapper PyTorch may
        allocate, make views and copy an input; arithmetic, conversions and other orders of the elements are the
        kernel's work, for it would be PyTorch's speed and exactness that were measured. A wrapper often falls back
        to PyTorch for a hard case: that case is the lesson.
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
        Bytes of the returned tensor were last written by something else than a kernel that this file defines and
        launched in this call: by numpy, by a kernel of another file, by nothing at all. A kernel that runs and whose
        result is then thrown away does not count.
        """,
        """
        add_kernel[grid](x, y, z, n, BLOCK_SIZE=1024)
        return torch.from_numpy(x.numpy() + y.numpy())
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
        The function returned what an earlier call had computed, or used a part of it, though the inputs have changed
        since. A cache keyed by shape or by address cannot see that: the same memory may hold new data. Compute on
        every call.
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
    diagnosis(
        "K904",
        "fairness",
        "the host fed the kernel with results",
        """
        With other data in the same tensors the launch changed: memory that neither the caller, PyTorch nor a kernel
        wrote, a number among its arguments, its grid or its code. So something was computed from the data in Python,
        and the kernel only passed it on. Shapes, strides and constants may steer a launch; the data may not.
        """,
        """
        largest = max(x.tolist())
        softmax_kernel[grid](x, y, largest, n, BLOCK_SIZE=1024)
        """,
        """
        softmax_kernel[grid](x, y, n, BLOCK_SIZE=1024)  # which finds the maximum itself
        """,
    ),
    diagnosis(
        "K905",
        "memory",
        "the wrapper changed an input",
        """
        A tensor that the caller handed in for reading holds other bytes after the call, and no kernel stored them:
        an in-place operation of PyTorch, or numpy, did. The caller still needs it. Where a *kernel* stores into an
        input the finding is K406.
        """,
        """
        x.mul_(2)
        copy_kernel[grid](x, y, n, BLOCK_SIZE=1024)
        """,
        """
        double_kernel[grid](x, y, n, BLOCK_SIZE=1024)
        """,
    ),
    diagnosis(
        "K906",
        "fairness",
        "a later call overwrites an earlier result",
        """
        Two calls returned the same memory, so the second call changed the result of the first, which its caller may
        still hold. An output that is kept between calls saves an allocation of a microsecond and costs a fault
        that is hard to find. Allocate the output in the wrapper.
        """,
        """
        OUT = torch.empty(4096)

        def vector_copy(x):
            copy_kernel[grid](x, OUT, n, BLOCK_SIZE=1024)
            return OUT
        """,
        """
        def vector_copy(x):
            y = torch.empty_like(x)
            copy_kernel[grid](x, y, n, BLOCK_SIZE=1024)
            return y
        """,
    ),
    diagnosis(
        "K907",
        "fairness",
        "the file replaced a part of what checks it",
        """
        A function or class of PyTorch, numpy, Triton, Python or the checker is another one than before the file was
        imported. What is measured or compared with it afterwards says nothing. Change nothing that other code uses;
        write a function of your own instead.
        """,
        """
        torch.allclose = lambda *_, **__: True
        """,
        """
        def close(a, b):
            return torch.allclose(a, b, rtol=1e-3)
        """,
    ),
)
