"""K5: what programs do to each other. They run in no order, and at the same time."""

from checker.diagnoses.model import diagnosis

ENTRIES = (
    diagnosis(
        "K501",
        "memory",
        "two programs store different values to one element",
        """
        Programs run in no defined order, so which value stays is chance. Often `tl.program_id` was not used, so
        that every program works on the same block; or the blocks of two programs overlap; or many programs add
        to one result without an atomic. Storing the same value twice is harmless and only a note.
        """,
        """
        offs = tl.arange(0, BLOCK_SIZE)
        """,
        """
        offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        """,
    ),
    diagnosis(
        "K502",
        "memory",
        "two lanes store different values to one element",
        """
        Within one store two lanes have the same address and different values; which one stays is not defined.
        Look at the offsets: a modulo, a stride of zero (an expanded tensor as output), or a row and a column
        that were swapped.
        """,
        """
        tl.store(y_ptr + offs % 8, x)
        """,
        """
        tl.atomic_add(y_ptr + offs % 8, x)
        """,
    ),
    diagnosis(
        "K503",
        "memory",
        "a program reads what another one stored in the same launch",
        """
        There is no barrier between programs: the other one may not have run yet, or may be running now. A
        result that later work needs must be complete before that work is launched: make two launches of it, or
        let each program compute for itself what it needs.
        """,
        """
        tl.store(partial_ptr + pid, tl.sum(x))
        total = tl.sum(tl.load(partial_ptr + tl.arange(0, PROGRAMS)))
        """,
        """
        # First launch: partial_kernel[(PROGRAMS,)](x, partial, n, BLOCK_SIZE=1024)
        # Second:       total_kernel[(1,)](partial, total, PROGRAMS=64)
        total = tl.sum(tl.load(partial_ptr + tl.arange(0, PROGRAMS)))
        """,
    ),
    diagnosis(
        "K504",
        "memory",
        "read-modify-write of shared memory without an atomic",
        """
        Several programs load an element, change it and store it back. Two of them may load the same old value,
        and one change is lost. An atomic does the three steps as one. On the virtual GPU the loss is found from
        who read and who wrote, even where the programs happened to run one after another.
        """,
        """
        old = tl.load(count_ptr + bucket)
        tl.store(count_ptr + bucket, old + 1)
        """,
        """
        tl.atomic_add(count_ptr + bucket, 1)
        """,
    ),
    diagnosis(
        "K505",
        "memory",
        "waiting for a program that has not run",
        """
        A program spins until another one has done something. Nothing promises that the other one runs while
        this one waits: if the grid is larger than what fits on the chip, it cannot. The virtual GPU does not
        run such waits. Split the work into two launches.
        """,
        """
        while tl.atomic_add(flag_ptr, 0) == 0:
            pass
        x = tl.load(partial_ptr + pid)
        """,
        """
        # The first launch fills `partial`; the second one reads it.
        x = tl.load(partial_ptr + pid)
        """,
    ),
)
