"""K1: what can be seen in the source before anything runs."""

from checker.diagnoses.model import diagnosis

ENTRIES = (
    diagnosis(
        "K101",
        "source",
        "the file does not parse",
        """
        Python cannot read the file, so nothing in it exists yet. The place that is shown is where Python gave
        up, which may be a line after the cause: look upwards for an open bracket or a missing colon.
        """,
        """
        offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE
        mask = offs < n
        """,
        """
        offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        mask = offs < n
        """,
    ),
    diagnosis(
        "K103",
        "source",
        "the entry point is missing",
        """
        Each kata names one function that the tests call: the host function that checks, allocates and launches.
        The file defines no function of that name. Kernels and helpers may be called what you like.
        """,
        """
        def add(x, y):
            ...
        """,
        """
        def vector_add(x, y):
            ...
        """,
    ),
    diagnosis(
        "K104",
        "source",
        "the entry point has another signature",
        """
        The tests call the entry point with the arguments that the kata's README gives, by position. A parameter
        too many, one too few, or another order makes every call fail. Further parameters are fine if they have
        defaults.
        """,
        """
        def vector_add(x, y, block_size):
            ...
        """,
        """
        def vector_add(x, y, block_size=1024):
            ...
        """,
    ),
    diagnosis(
        "K105",
        "source",
        "importing the file raised an exception",
        """
        The file is imported before anything is called, and its top level raised. At import there should be
        imports, definitions and constants only: no tensors, no launches, nothing that needs a GPU.
        """,
        """
        x = torch.rand(1024, device="cuda")
        print(vector_copy(x))
        """,
        """
        if __name__ == "__main__":
            device = triton.runtime.driver.active.get_active_torch_device()
            print(vector_copy(torch.rand(1024, device=device)))
        """,
    ),
    diagnosis(
        "K106",
        "source",
        "a device is written into the code",
        """
        "cuda" in the source ties the function to one machine, and to one GPU of that machine: with two GPUs it
        allocates on the wrong one. The tensors that come in know where they live: use `x.device`. Where there
        is no tensor to ask, Triton knows the active device. On the virtual GPU tensors live on the CPU, so
        `is_cuda` and `torch.cuda` say nothing about where the kernel runs.
        """,
        """
        assert x.is_cuda
        y = torch.empty(x.shape, dtype=x.dtype, device="cuda")
        """,
        """
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        # With no tensor at hand:
        device = triton.runtime.driver.active.get_active_torch_device()
        """,
    ),
    diagnosis(
        "K107",
        "source",
        "a method is named but not called",
        """
        Without parentheses `x.is_contiguous` is the method itself, and a method is always true: the check it
        was meant to be never refuses anything.
        """,
        """
        assert x.is_contiguous
        """,
        """
        if not x.is_contiguous():
            raise ValueError("x must be contiguous")
        """,
    ),
    diagnosis(
        "K108",
        "source",
        "a pointer argument is overwritten",
        """
        Python names are rebound, not written through: after `y_ptr = x_ptr` both names mean the input, and
        nothing was copied. Memory changes only by `tl.store`. Advancing a pointer argument in place (`x_ptr +=
        offs`) is legal, but what is needed of the old value later is then gone; give the new pointers a new
        name.
        """,
        """
        y_ptr = x_ptr
        """,
        """
        x = tl.load(x_ptr + offs, mask=mask)
        tl.store(y_ptr + offs, x, mask=mask)
        """,
    ),
    diagnosis(
        "K110",
        "source",
        "a forbidden import",
        """
        The file imports the solutions, a kata's spec or tests, or the checker. They hold the answers or judge
        them, so a kernel that needs them proves nothing. A kata's file stands alone: torch, triton and the
        standard library.
        """,
        """
        from solutions import vector_add
        """,
        """
        import torch
        import triton
        import triton.language as tl
        """,
    ),
    diagnosis(
        "K111",
        "source",
        "comparisons joined by & without parentheses",
        """
        `&` binds tighter than `<`: `o >= 0 & o < n` means `o >= (0 & o) < n`, a chained comparison. Older
        Triton versions refuse it, newer ones compile it and silently drop a bound. Put each comparison in
        parentheses.
        """,
        """
        mask = offs >= 0 & offs < n
        """,
        """
        mask = (offs >= 0) & (offs < n)
        """,
    ),
)
