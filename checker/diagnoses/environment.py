"""K0: the environment and the limits of a check. These can turn up in any stage."""

from checker.diagnoses.model import diagnosis

ENTRIES = (
    diagnosis(
        "K001",
        "source",
        "the kernel file is missing or cannot be read",
        """
        The check found no file at the place where the kata's kernel.py should be, or was not allowed to read
        it, or it is not text in the encoding it declares. Nothing about the kernel itself is known yet.

        `kata reset` makes the file again from the skeleton and keeps a backup of whatever is there.
        """,
    ),
    diagnosis(
        "K002",
        "values",
        "time limit reached",
        """
        One case took longer than the limit, compilation not counted. Small cases take milliseconds on the
        virtual GPU, so this is nearly always a loop that never ends: a `while` whose condition does not change,
        a step of zero, a Python loop in the wrapper over every element, or a lock that waits for a program
        which cannot run.

        If a masked-off lane was loaded without `other`, a loop bounded by that value is endless only on some
        runs: the value of such a lane is not defined.
        """,
        """
        start = 0
        while start < n:
            offs = start + tl.arange(0, BLOCK_SIZE)
            acc += tl.load(x_ptr + offs, mask=offs < n, other=0.0)
        """,
        """
        for start in range(0, n, BLOCK_SIZE):
            offs = start + tl.arange(0, BLOCK_SIZE)
            acc += tl.load(x_ptr + offs, mask=offs < n, other=0.0)
        """,
    ),
    diagnosis(
        "K003",
        "values",
        "the process crashed",
        """
        The process that ran the check was ended by a signal or stopped without finishing. Kernels cannot cause
        this on the virtual GPU: their addresses are invented and an illegal access never touches memory. Look
        at what the file does on the host: endless recursion, ctypes, `data_ptr()` handed to another library.
        """,
    ),
    diagnosis(
        "K004",
        "values",
        "memory limit reached",
        """
        The check ran out of the memory it is given. The cases are small, so look for an allocation whose size
        is computed wrongly (rows times columns of the wrong tensor, elements taken for bytes), or for one
        inside a loop.
        """,
        """
        out = torch.empty(x.numel() * x.numel(), device=x.device)
        """,
        """
        out = torch.empty_like(x)
        """,
    ),
    diagnosis(
        "K005",
        "values",
        "the file ended the process",
        """
        `sys.exit`, `os._exit`, `quit` or the like was called while the check was using the file. A module that
        is imported or called must return or raise: raise ValueError for a bad input, and keep scripts behind
        `if __name__ == "__main__":`.
        """,
        """
        if x.shape != y.shape:
            sys.exit("shapes differ")
        """,
        """
        if x.shape != y.shape:
            raise ValueError(f"shapes differ: {tuple(x.shape)} and {tuple(y.shape)}")
        """,
    ),
    diagnosis(
        "K006",
        "source",
        "the environment lacks something",
        """
        The machine cannot run the check: Triton or torch is missing or does not fit this Python, the compiler's
        cache cannot be written, or a GPU was asked for that is not there. This is environment logic, not kernel
        logic: your file was not judged, and editing it will not help. The message says what is missing.
        """,
    ),
    diagnosis(
        "K007",
        "values",
        "an error of the checker itself",
        """
        The checker failed, not your kernel. Please report it with the command, the seed and the file: an error
        here is a bug there. `-v` shows the traceback.
        """,
    ),
    diagnosis(
        "K008",
        "values",
        "not modelled by the virtual GPU",
        """
        The kernel compiles for the chip, but it uses an operation that the virtual GPU does not run. It says so
        rather than guess a result. The kernel may be right: write it with the operations that the katas teach
        to have it judged here, or check it on a real GPU.
        """,
    ),
)
