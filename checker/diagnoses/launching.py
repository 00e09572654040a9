"""K3: the launch, seen from the host. In the report these belong to the compile stage."""

from checker.diagnoses.model import diagnosis

ENTRIES = (
    diagnosis(
        "K301",
        "compile",
        "the grid is of the wrong kind",
        """
        The grid is a tuple of one to three integers, or a function from the launch's meta-arguments to such a
        tuple. A plain integer, a list, or a float (from `/` in place of `//` or `triton.cdiv`) is not a grid.
        Note the comma that makes a tuple of one.
        """,
        """
        kernel[triton.cdiv(n, 1024)](x, y, n, BLOCK_SIZE=1024)
        """,
        """
        kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK_SIZE=1024)
        """,
    ),
    diagnosis(
        "K302",
        "compile",
        "a kernel called without a grid",
        """
        A kernel is not a function of the host: it is launched, and the launch must say how many programs run.
        The brackets between the kernel's name and its arguments hold the grid.
        """,
        """
        copy_kernel(x, y, n, BLOCK_SIZE=1024)
        """,
        """
        copy_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK_SIZE=1024)
        """,
    ),
    diagnosis(
        "K303",
        "compile",
        "the arguments of the launch do not match the kernel",
        """
        The launch leaves out a parameter of the kernel, gives one twice, or names one that does not exist.
        Parameters without defaults must all be given; constexpr ones are best given by keyword, spelt exactly
        as in the kernel.
        """,
        """
        copy_kernel[grid](x, y, n, BLOCK=1024)
        """,
        """
        copy_kernel[grid](x, y, n, BLOCK_SIZE=1024)
        """,
    ),
    diagnosis(
        "K304",
        "compile",
        "an argument of the launch is of the wrong kind",
        """
        A pointer parameter takes a tensor, not its `data_ptr()` (an integer, which the kernel would take for a
        number); a scalar parameter takes a Python int, float or bool, not a NumPy value or a tensor of no
        dimensions.
        """,
        """
        kernel[grid](x.data_ptr(), y, torch.tensor(0.5), n, BLOCK_SIZE=1024)
        """,
        """
        kernel[grid](x, y, 0.5, n, BLOCK_SIZE=1024)
        """,
    ),
    diagnosis(
        "K305",
        "compile",
        "a tensor is on another device",
        """
        A kernel can reach the memory of its own device only. One of the tensors lives elsewhere: often an
        output that was allocated without `device=`, or an input that the wrapper should have refused. Allocate
        like the input, and compare devices before launching.
        """,
        """
        out = torch.empty(x.shape, dtype=x.dtype)
        """,
        """
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        """,
    ),
    diagnosis(
        "K306",
        "compile",
        "the grid is empty or too large",
        """
        A dimension of the grid is zero or negative, or larger than the chip allows: 2^31 - 1 in the first
        dimension, 65,535 in the second and third. Empty input needs no launch: return before it. Put the long
        dimension first.
        """,
        """
        kernel[(1, triton.cdiv(rows, 16))](x, y, rows)
        """,
        """
        if rows == 0:
            return y
        kernel[(triton.cdiv(rows, 16), 1)](x, y, rows)
        """,
    ),
    diagnosis(
        "K307",
        "compile",
        "no kernel was launched",
        """
        The entry point returned without launching a kernel, though there was work to do. Perhaps the launch
        line is still a TODO, or `kernel[grid]` stands there without its call.
        """,
        """
        copy_kernel[grid]
        return y
        """,
        """
        copy_kernel[grid](x, y, n, BLOCK_SIZE=1024)
        return y
        """,
    ),
    diagnosis(
        "K308",
        "compile",
        "the wrapper raised an exception",
        """
        The host function raised while it handled an input that it should take. The exception and the line in
        your file are given; the kernel was perhaps never reached.
        """,
        """
        rows, columns = x.shape
        y = torch.empty(rows, columns, device=x.devices)
        """,
        """
        rows, columns = x.shape
        y = torch.empty(rows, columns, device=x.device)
        """,
    ),
)
