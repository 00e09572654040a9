"""K2, first half: Python that the kernel language does not have, or in which it means something else."""

from checker.diagnoses.model import diagnosis

ENTRIES = (
    diagnosis(
        "K204",
        "compile",
        "a global that is not tl.constexpr",
        """
        A kernel may not read an ordinary global: the compiled binary is cached, and a later change of the
        global would not be seen. Pass the value as an argument, or make the global a `tl.constexpr`, which
        promises that it never changes.
        """,
        """
        BLOCK_SIZE = 1024

        @triton.jit
        def copy_kernel(x_ptr, y_ptr, n):
            offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        """,
        """
        @triton.jit
        def copy_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
            offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        """,
    ),
    diagnosis(
        "K205",
        "compile",
        "if or while on a block",
        """
        `if` asks for one truth value, but a block holds many: some lanes may say yes and others no. All lanes
        of a program take the same path; a choice made lane by lane is `tl.where`. An `if` on a scalar (a
        program id, a constexpr, an argument) is fine. Triton's interpreter takes the branch without a word,
        which is why code that "worked" there may fail here.
        """,
        """
        if x > 0:
            y = x
        else:
            y = 0.0
        """,
        """
        y = tl.where(x > 0, x, 0.0)
        """,
    ),
    diagnosis(
        "K206",
        "compile",
        "and, or, not on blocks",
        """
        In Python `and` and `or` ask for one truth value; a block has a value per lane. Triton's compiler takes them
        lane by lane where both sides are comparisons, and refuses blocks of numbers. `&`, `|` and `~` on
        comparisons mean the same everywhere; they bind tighter than comparisons, so each needs parentheses.
        """,
        """
        x = tl.load(x_ptr + offs, mask=mask, other=0.0)
        keep = x and mask
        """,
        """
        x = tl.load(x_ptr + offs, mask=mask, other=0.0)
        keep = (x != 0.0) & mask
        """,
    ),
    diagnosis(
        "K207",
        "compile",
        "a chained comparison on blocks",
        """
        Python reads `0 <= o < n` as `0 <= o and o < n`, and `and` needs one truth value. Triton 3.9 accepts the
        chain on blocks; earlier versions do not. Write the two comparisons out and join them by `&`: that is
        right everywhere.
        """,
        """
        mask = 0 <= offs < n
        """,
        """
        mask = (0 <= offs) & (offs < n)
        """,
    ),
    diagnosis(
        "K208",
        "compile",
        "break, continue or return inside a loop",
        """
        A loop in a kernel is compiled to one that runs its whole range: there is no leaving it early. Bound the
        range instead, or let the work of superfluous rounds be masked off. A `while` with a scalar condition
        ends when you need it to.
        """,
        """
        for k in range(0, 64):
            if k * BLOCK_K >= K:
                break
            acc += tl.load(x_ptr + k * BLOCK_K + offs_k)
        """,
        """
        for k in range(0, tl.cdiv(K, BLOCK_K)):
            acc += tl.load(x_ptr + k * BLOCK_K + offs_k, mask=k * BLOCK_K + offs_k < K, other=0.0)
        """,
    ),
    diagnosis(
        "K209",
        "compile",
        "a loop changes the type of a variable",
        """
        A variable that lives across rounds of a loop must keep its dtype and shape, because the loop is
        compiled once. An accumulator that starts as the integer 0 becomes float32 in the first round; one that
        starts as a scalar becomes a block. Start it as what it will be.
        """,
        """
        acc = 0
        for start in range(0, n, BLOCK_SIZE):
            acc += tl.load(x_ptr + start + offs)
        """,
        """
        acc = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
        for start in range(0, n, BLOCK_SIZE):
            acc += tl.load(x_ptr + start + offs)
        """,
    ),
    diagnosis(
        "K210",
        "compile",
        "NumPy-style indexing or assignment",
        """
        A block is a value spread over registers of many threads, not an array in memory: single elements cannot
        be picked out or assigned. The only index is `None` (with `:`), which adds a dimension. To reach other
        elements, compute other pointers and load; to change some lanes, use `tl.where`.
        """,
        """
        x = tl.load(x_ptr + offs)
        x[0] = 0.0
        first = x[1:]
        """,
        """
        x = tl.load(x_ptr + offs)
        x = tl.where(offs == 0, 0.0, x)
        shifted = tl.load(x_ptr + offs + 1, mask=offs + 1 < n, other=0.0)
        """,
    ),
    diagnosis(
        "K211",
        "compile",
        "a function that Triton cannot compile",
        """
        Inside a kernel only Triton's own operations and functions decorated with `@triton.jit` exist. `math`,
        `torch`, `numpy` and undecorated helpers run on the host. Take the operation from `tl` (or `tl.math`),
        or decorate the helper.
        """,
        """
        def scale(x):
            return math.exp(x)

        @triton.jit
        def kernel(x_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
            offs = tl.arange(0, BLOCK_SIZE)
            tl.store(y_ptr + offs, scale(tl.load(x_ptr + offs)))
        """,
        """
        @triton.jit
        def scale(x):
            return tl.exp(x)

        @triton.jit
        def kernel(x_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
            offs = tl.arange(0, BLOCK_SIZE)
            tl.store(y_ptr + offs, scale(tl.load(x_ptr + offs)))
        """,
    ),
    diagnosis(
        "K212",
        "compile",
        "an undefined name",
        """
        The kernel uses a name that it does not define and that its module does not hold. Often it is a misspelt
        parameter, a variable of the wrapper that was not passed, or a variable set in one branch of an `if`
        only.
        """,
        """
        offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + offset)
        """,
        """
        offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + offs)
        """,
    ),
    diagnosis(
        "K224",
        "compile",
        "Python that is outside the kernel language",
        """
        A kernel is a subset of Python: assignments, arithmetic, `if`, `for` over a range, `while`, calls.
        Dicts, lists, comprehensions over a range, lambda, try, classes and nested functions have no counterpart
        on the chip. Prepare such things in the wrapper, and pass what comes of them.
        """,
        """
        parts = [tl.load(x_ptr + i * n + offs) for i in range(4)]
        """,
        """
        acc = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
        for i in tl.static_range(4):
            acc += tl.load(x_ptr + i * n + offs)
        """,
    ),
)
