"""K4: what one program does to memory."""

from checker.diagnoses.model import diagnosis

ENTRIES = (
    diagnosis(
        "K401",
        "memory",
        "load outside the tensor",
        """
        A lane loaded from an address that does not belong to the tensor it was computed from. On a real GPU
        this often returns a neighbour's bytes and passes, until one day it faults, in a later line that has
        nothing to do with it. The usual causes: no mask in the last block; the length of another tensor used as
        the bound; a row pointer computed with the number of columns instead of the stride.

        For a view (a slice, a transpose) only the elements of the view count as inside, not the storage around
        it.
        """,
        """
        x = tl.load(x_ptr + offs)
        """,
        """
        x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
        """,
    ),
    diagnosis(
        "K402",
        "memory",
        "store outside the tensor",
        """
        A lane stored to an address outside the tensor it was computed from. On a real GPU this changes whatever
        lies there, without a word: another tensor of the program, or of PyTorch's cache. The last block nearly
        always reaches past the end of the data, because the data is rarely a multiple of the block: that is
        what the mask is for.
        """,
        """
        tl.store(y_ptr + offs, x)
        """,
        """
        tl.store(y_ptr + offs, x, mask=offs < n)
        """,
    ),
    diagnosis(
        "K403",
        "memory",
        "an int32 offset overflowed",
        """
        Program ids, `tl.arange` and most integer arguments are int32. Their product with a stride wraps round
        at 2^31, and the address comes out negative or far away: no small test shows it. Cast the program id to
        int64 before it meets a stride; casting the product is too late.
        """,
        """
        row = tl.program_id(0)
        row_ptr = x_ptr + row * stride_xm
        """,
        """
        row = tl.program_id(0).to(tl.int64)
        row_ptr = x_ptr + row * stride_xm
        """,
    ),
    diagnosis(
        "K404",
        "memory",
        "elements that were never written",
        """
        The result holds elements that no program stored. `torch.empty` gives memory as it is found, and what is
        found there is often the right answer of an earlier call: so this passes many tests. Either the grid is
        too short (`n // BLOCK_SIZE` leaves out the last, partial block), or a mask is too strict, or a store is
        missing.
        """,
        """
        grid = (n // BLOCK_SIZE,)
        """,
        """
        grid = (triton.cdiv(n, BLOCK_SIZE),)
        """,
    ),
    diagnosis(
        "K405",
        "memory",
        "load of memory that nothing has written",
        """
        The kernel loads elements that were allocated but never filled, such as an accumulator made by
        `torch.empty`. Their value is whatever was there before. Allocate with `torch.zeros`, or begin with a
        store.
        """,
        """
        total = torch.empty(1, device=x.device, dtype=torch.float32)
        sum_kernel[grid](x, total, n, BLOCK_SIZE=1024)      # tl.atomic_add(total_ptr, ...)
        """,
        """
        total = torch.zeros(1, device=x.device, dtype=torch.float32)
        sum_kernel[grid](x, total, n, BLOCK_SIZE=1024)      # tl.atomic_add(total_ptr, ...)
        """,
    ),
    diagnosis(
        "K406",
        "memory",
        "store into an input",
        """
        The kernel wrote to a tensor that it was only given to read. The caller still needs it: autograd may
        have saved it, and a second call would see other data. Store to the output, and check the order of the
        arguments in the launch.
        """,
        """
        x = tl.load(x_ptr + offs, mask=mask)
        tl.store(x_ptr + offs, x * 2, mask=mask)
        """,
        """
        x = tl.load(x_ptr + offs, mask=mask)
        tl.store(y_ptr + offs, x * 2, mask=mask)
        """,
    ),
    diagnosis(
        "K407",
        "memory",
        "masked-off lanes reach the result",
        """
        A lane that the mask switches off has no defined value unless `other` gives it one. That is harmless as
        long as the lane is masked off again when storing, but a reduction, a dot or an exponential mixes it
        into the result. The check puts several different values there; the result changed with them.

        Give `other` the identity of what follows: 0 for a sum or a dot, -inf for a maximum, +inf for a minimum,
        1 for a product.
        """,
        """
        x = tl.load(x_ptr + offs, mask=mask)
        m = tl.max(x, axis=0)
        """,
        """
        # -inf is the identity of the maximum.
        x = tl.load(x_ptr + offs, mask=mask, other=-float("inf"))
        m = tl.max(x, axis=0)
        """,
    ),
    diagnosis(
        "K409",
        "memory",
        "a false alignment hint",
        """
        `tl.multiple_of` and `tl.max_contiguous` are promises that the compiler believes: with them it loads
        several elements by one instruction. The values that this launch really had break the promise, so on a
        chip the wider access would reach other elements or fault. Drop the hint: for arguments, Triton finds
        divisibility by 16 itself.
        """,
        """
        offs = tl.multiple_of(start + tl.arange(0, BLOCK_SIZE), 16)     # start may be 3
        """,
        """
        offs = start + tl.arange(0, BLOCK_SIZE)
        """,
    ),
    diagnosis(
        "K410",
        "memory",
        "the gap of a view reaches the result",
        """
        The input is a view with gaps: a slice of columns, every second row. The kernel loaded elements of the
        storage between those of the view, and they changed the result. It treats the tensor as contiguous where
        it is not. Pass the strides, and compute addresses from them.
        """,
        """
        x = tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols)
        """,
        """
        x = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=offs < n_cols)
        """,
    ),
)
