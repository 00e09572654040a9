"""K8: how long it took, and why."""

from checker.diagnoses.model import diagnosis

ENTRIES = (
    diagnosis(
        "K801",
        "speed",
        "more bytes moved than needed",
        """
        The call moves more bytes than the problem asks for: an input is read more than once, an intermediate result
        goes to memory and comes back, or the wrapper copies a tensor that the kernel could have read as it lies. A
        kernel that is bound by memory takes as long as its bytes do.

        Count them by hand: each input read once, each output written once. Whatever comes on top must earn its time.
        """,
        """
        x_max = tl.max(tl.load(x_ptrs, mask=mask, other=-float("inf")), axis=0)
        total = tl.sum(tl.exp(tl.load(x_ptrs, mask=mask, other=-float("inf")) - x_max), axis=0)
        """,
        """
        x = tl.load(x_ptrs, mask=mask, other=-float("inf"))
        x_max = tl.max(x, axis=0)
        total = tl.sum(tl.exp(x - x_max), axis=0)
        """,
    ),
    diagnosis(
        "K802",
        "speed",
        "uncoalesced access",
        """
        Neighbouring lanes of a load or store lie far apart in memory. Memory moves whole sectors of 32 bytes, and of
        each sector only a part is used: the rest is fetched, or filled up and written back, for nothing. A store that
        fills a sector in part costs about twice a whole one.

        Let the last axis of the block run along the dimension whose stride is 1. Where the input and the output
        disagree about which that is, take a tile that is wide in both.
        """,
        """
        # Lane i of program p: one element in a sector, then a jump.
        offs = pid + tl.arange(0, BLOCK_SIZE) * tl.num_programs(0)
        x = tl.load(x_ptr + offs, mask=offs < n)
        """,
        """
        offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + offs, mask=offs < n)
        """,
    ),
    diagnosis(
        "K803",
        "speed",
        "too few programs",
        """
        A program runs on one multiprocessor, and the chip has many: an H200 has 132. A grid with fewer programs
        leaves the rest idle, and one program on each has nobody to work while it waits for memory. Cut the problem
        into several programs for each multiprocessor.
        """,
        """
        copy_kernel[(1,)](x, y, n, BLOCK_SIZE=1024)
        """,
        """
        copy_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK_SIZE=1024)
        """,
    ),
    diagnosis(
        "K804",
        "speed",
        "blocks too small",
        """
        Starting a program costs time, whatever it does: an H200 starts about 1.65 of them in a nanosecond. A block of
        32 elements is done before the next program arrives, so starting programs is all that the chip does.

        In a matrix product a small tile costs in another way: each value that is loaded is used once for each row or
        column of the tile, so half the side means twice the bytes between L2 and the multiprocessors.
        """,
        """
        copy_kernel[(triton.cdiv(n, 32),)](x, y, n, BLOCK_SIZE=32)
        """,
        """
        copy_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK_SIZE=1024)
        """,
    ),
    diagnosis(
        "K805",
        "speed",
        "registers spill",
        """
        A thread has at most 255 registers. What does not fit goes to memory and comes back: the binary asks for a
        stack. A program's block is dealt out to 32 threads for each warp, so a long row on few warps is many
        elements a thread. Give it more warps, or a smaller block.
        """,
        """
        softmax_kernel[(M,)](x, y, N, BLOCK_SIZE=16384, num_warps=1)
        """,
        """
        softmax_kernel[(M,)](x, y, N, BLOCK_SIZE=16384, num_warps=16)
        """,
    ),
    diagnosis(
        "K806",
        "speed",
        "too little in flight to hide latency",
        """
        While a program waits for memory or at a barrier, others must work. How many reside on a multiprocessor at a
        time is decided by what each takes: registers, shared memory, warps. Where few fit, waiting is not hidden, and
        neither memory nor arithmetic is busy.

        More warps for one program are not the same: they wait together. Take what lets more programs in, or give each
        more independent loads.
        """,
        """
        softmax_kernel[(M,)](x, y, N, BLOCK_SIZE=1024, num_warps=32)
        """,
        """
        softmax_kernel[(M,)](x, y, N, BLOCK_SIZE=1024, num_warps=4)
        """,
    ),
    diagnosis(
        "K807",
        "speed",
        "tensor cores unused, or fed with a slow dtype",
        """
        Nearly all of the chip's arithmetic is in its tensor cores, and only `tl.dot` reaches them. A sum of products
        runs on the ordinary units, an order of magnitude slower. So does a dot of float32 operands that asks for
        exact products; with tf32 it runs at half the rate of float16 or less, and loads twice the bytes.

        Give `tl.dot` the operands as they were loaded, in float16 or bfloat16. It adds up in float32 by itself.
        """,
        """
        acc += tl.dot(a.to(tl.float32), b.to(tl.float32))
        """,
        """
        acc = tl.dot(a, b, acc)
        """,
    ),
    diagnosis(
        "K808",
        "speed",
        "reuse lost in L2",
        """
        Programs read the same data, but so far apart in time that L2 has lost it meanwhile and DRAM must deliver it
        again. Programs start in the order of their numbers: let those that share data have numbers close together,
        for instance by walking over the tiles in groups of rows.
        """,
        """
        pid_m = pid // tiles_n
        pid_n = pid % tiles_n
        """,
        """
        group = pid // (GROUP * tiles_n)
        pid_m = group * GROUP + pid % GROUP
        pid_n = pid % (GROUP * tiles_n) // GROUP
        """,
    ),
    diagnosis(
        "K809",
        "speed",
        "launches take most of the time",
        """
        A launch costs two to three microseconds on the device, even of a kernel that does nothing. Many small launches
        in a row take longer than their work. Put the work of several into one kernel: that is what fusing means.
        """,
        """
        for row in range(M):
            softmax_kernel[(1,)](x[row], y[row], N, BLOCK_SIZE=1024)
        """,
        """
        softmax_kernel[(M,)](x, y, N, BLOCK_SIZE=1024)
        """,
    ),
    diagnosis(
        "K810",
        "speed",
        "slower than the threshold",
        """
        The call takes longer than this kata allows, and no single cause stands out. The report's speed section says
        what limits the kernel and how many bytes it moves; `kata compare` puts it beside the reference. Change one
        thing at a time: block size, number of warps, order of loads.
        """,
        """
        copy_kernel[grid](x, y, n, BLOCK_SIZE=128, num_warps=16)
        """,
        """
        copy_kernel[grid](x, y, n, BLOCK_SIZE=1024, num_warps=4)
        """,
    ),
    diagnosis(
        "K811",
        "speed",
        "a time below the physical bound",
        """
        The measured time is shorter than the chip needs to move the least bytes at the data sheet's bandwidth, or to
        compute at its peak. So not all of the work was done in it: the result was kept from an earlier call, part of
        it was left out, or it is still being computed when the clock stops.

        Nobody is faster than the bound. A measurement that says so has a fault, and the fault is worth finding.
        """,
        """
        cache = {}
        def vector_copy(x):
            if x.data_ptr() not in cache:
                cache[x.data_ptr()] = copied(x)
            return cache[x.data_ptr()]
        """,
        """
        def vector_copy(x):
            return copied(x)
        """,
    ),
)
