"""K2, second half: shapes, types and the resources of the chip."""

from checker.diagnoses.model import diagnosis

ENTRIES = (
    diagnosis(
        "K200",
        "compile",
        "the kernel does not compile",
        """
        Triton's compiler refused the kernel; its own words are given. The line is the one it stopped at. This
        is a compile error of the chip that was chosen: the same code may run in Triton's interpreter, which
        checks far less.
        """,
    ),
    diagnosis(
        "K201",
        "compile",
        "the length of a block is not a power of two",
        """
        Blocks are spread evenly over threads, and so every dimension of a block must be a power of two. A
        length that comes from the data must be rounded up in the wrapper, and the lanes beyond the data masked
        off.
        """,
        """
        row_kernel[(rows,)](x, y, columns, BLOCK_SIZE=columns)
        """,
        """
        row_kernel[(rows,)](x, y, columns, BLOCK_SIZE=triton.next_power_of_2(columns))
        """,
    ),
    diagnosis(
        "K202",
        "compile",
        "a shape needs a compile-time constant",
        """
        `tl.arange`, `tl.zeros`, `tl.full` and `reshape` define shapes, and shapes are part of the type of a
        block: the compiler must know them to choose registers and layouts. A run-time argument has no value yet
        when the kernel is compiled. Annotate the parameter with `tl.constexpr`; then each value of it gives a
        binary of its own.
        """,
        """
        @triton.jit
        def copy_kernel(x_ptr, y_ptr, n, BLOCK_SIZE):
            offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        """,
        """
        @triton.jit
        def copy_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
            offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        """,
    ),
    diagnosis(
        "K203",
        "compile",
        "a block has more than 2^20 elements",
        """
        Triton limits a block to 1,048,576 elements, and long before that a block does not fit into registers.
        One program should hold a tile, not the tensor: take more programs, or loop over the data in chunks.
        """,
        """
        copy_kernel[(1,)](x, y, n, BLOCK_SIZE=triton.next_power_of_2(n))
        """,
        """
        copy_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK_SIZE=1024)
        """,
    ),
    diagnosis(
        "K213",
        "compile",
        "other without mask",
        """
        `other` is what masked-off lanes get. Without a mask no lane is masked off, so there is nothing for it
        to mean; most likely the mask was forgotten.
        """,
        """
        x = tl.load(x_ptr + offs, other=0.0)
        """,
        """
        x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
        """,
    ),
    diagnosis(
        "K214",
        "compile",
        "a block mask or value with a scalar pointer",
        """
        `x_ptr` alone is one address. With a block of offsets it becomes a block of addresses, one per lane. A
        mask or a stored value that is a block needs as many addresses as it has lanes.
        """,
        """
        x = tl.load(x_ptr, mask=offs < n)
        """,
        """
        x = tl.load(x_ptr + offs, mask=offs < n)
        """,
    ),
    diagnosis(
        "K215",
        "compile",
        "shapes do not broadcast",
        """
        Two blocks meet whose shapes differ in a dimension where neither has length 1. In two dimensions nearly
        always a `[:, None]` or `[None, :]` is missing or on the wrong operand: the first makes a column (one
        value per row), the second a row (one value per column).
        """,
        """
        offs_m = tl.arange(0, 32)
        offs_n = tl.arange(0, 64)
        x = tl.load(x_ptr + offs_m * stride_m + offs_n * stride_n)
        """,
        """
        offs_m = tl.arange(0, 32)
        offs_n = tl.arange(0, 64)
        x = tl.load(x_ptr + offs_m[:, None] * stride_m + offs_n[None, :] * stride_n)
        """,
    ),
    diagnosis(
        "K216",
        "compile",
        "the operation needs another dtype",
        """
        `exp`, `log`, `sqrt`, `sin` and their kind exist for float32 and float64 only; bitwise operators exist
        for integers. Compute in float32 and round once, when storing: that is also more exact. `tl.store` casts
        to the pointer's dtype by itself.
        """,
        """
        x = tl.load(x_ptr + offs, mask=mask)
        tl.store(y_ptr + offs, tl.exp(x), mask=mask)
        """,
        """
        x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
        tl.store(y_ptr + offs, tl.exp(x), mask=mask)
        """,
    ),
    diagnosis(
        "K217",
        "compile",
        "the operands of a dot differ in dtype",
        """
        Tensor cores multiply two tiles of one dtype. If one operand was computed in float32 and the other
        loaded as float16, cast one of them: the product is accumulated in float32 anyway.
        """,
        """
        p = tl.exp(scores)
        acc = tl.dot(p, v, acc)
        """,
        """
        p = tl.exp(scores)
        acc = tl.dot(p.to(v.dtype), v, acc)
        """,
    ),
    diagnosis(
        "K218",
        "compile",
        "the tiles of a dot are too small or do not match",
        """
        `tl.dot(a, b)` takes (M, K) and (K, N), with the same K, and tensor cores have a smallest tile:
        dimensions below the minimum for the dtype (16 is always enough for K) do not compile. Pad the tile with
        masked zeros rather than shrink it.
        """,
        """
        offs_k = tl.arange(0, 8)
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :])
        b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :])
        acc = tl.dot(a, b)
        """,
        """
        offs_k = tl.arange(0, 16)
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :], mask=offs_k[None, :] < K, other=0.0)
        b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :], mask=offs_k[:, None] < K, other=0.0)
        acc = tl.dot(a, b)
        """,
    ),
    diagnosis(
        "K220",
        "compile",
        "num_warps or num_stages is not allowed",
        """
        A program runs on `num_warps` warps of 32 threads; the number must be a power of two, and a block of
        threads has at most 1024 of them. Four is the default, eight suits large tiles. It is not the number of
        programs: that is the grid.
        """,
        """
        kernel[grid](x, y, n, BLOCK_SIZE=1024, num_warps=3)
        """,
        """
        kernel[grid](x, y, n, BLOCK_SIZE=1024, num_warps=4)
        """,
    ),
    diagnosis(
        "K221",
        "compile",
        "out of shared memory",
        """
        The tiles of a dot are kept in shared memory, once per pipeline stage: (BLOCK_M + BLOCK_N) * BLOCK_K *
        bytes * stages must fit into what one block of threads may use on the chip (227 KB on an H100 or H200,
        163 KB on an A100, 99 KB on an L4 or RTX 4090, 64 KB on a T4). Lower num_stages first, then BLOCK_K. A
        configuration tuned on a larger chip fails on a smaller one in just this way.
        """,
        """
        matmul_kernel[grid](a, b, c, BLOCK_M=128, BLOCK_N=256, BLOCK_K=128, num_stages=4)
        """,
        """
        matmul_kernel[grid](a, b, c, BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, num_stages=3)
        """,
    ),
    diagnosis(
        "K222",
        "compile",
        "too many threads or registers",
        """
        A block of threads has at most 1024 threads, and all its threads share 65,536 registers. A program with
        very many warps, or with blocks too large for its warps, cannot be launched. Take fewer warps, or
        smaller blocks.
        """,
        """
        kernel[grid](x, y, n, BLOCK_SIZE=1024, num_warps=64)
        """,
        """
        kernel[grid](x, y, n, BLOCK_SIZE=1024, num_warps=8)
        """,
    ),
)
