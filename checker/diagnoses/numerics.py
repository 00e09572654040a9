"""K7: right in mathematics, wrong in floating point."""

from checker.diagnoses.model import diagnosis

ENTRIES = (
    diagnosis(
        "K701",
        "numerics",
        "less exact than it must be",
        """
        The values are right, but their error against a float64 reference is more than twice that of PyTorch in
        the same dtype, and more than one unit in the last place. Usually a sum runs in float16 or bfloat16:
        beyond 2048 (or 256) adding 1 changes nothing any more. Load, cast to float32, compute there, and round
        once when storing.
        """,
        """
        x = tl.load(x_ptr + offs, mask=mask, other=0.0)
        total = tl.sum(x, axis=0)
        """,
        """
        x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        total = tl.sum(x, axis=0)
        """,
    ),
    diagnosis(
        "K702",
        "numerics",
        "overflow with large values",
        """
        With large inputs an intermediate result leaves the range of its type and becomes inf, and then often
        NaN. `exp` overflows above about 88 in float32 and 11 in float16. Subtract the maximum first: the
        quotient of a softmax does not change, and every exponent is at most 0.
        """,
        """
        e = tl.exp(x)
        y = e / tl.sum(e, axis=0)
        """,
        """
        e = tl.exp(x - tl.max(x, axis=0))
        y = e / tl.sum(e, axis=0)
        """,
    ),
    diagnosis(
        "K703",
        "numerics",
        "wrong with -inf or NaN",
        """
        -inf is an ordinary input (masked attention is full of it) and NaN must not be swallowed. Common causes:
        `-inf - (-inf)` is NaN where a whole chunk is -inf; a padding of 0 stands in for -inf under a maximum;
        `tl.max` and `tl.maximum` drop NaN unless asked to propagate it, while PyTorch keeps it.
        """,
        """
        y = tl.maximum(x, 0.0)
        """,
        """
        y = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
        """,
    ),
    diagnosis(
        "K704",
        "numerics",
        "wrong with tiny values",
        """
        With very small inputs an intermediate result becomes 0 or loses its digits, and a quotient of such
        results is inf, NaN or noise. Squares are the usual place: the square of 1e-23 is 0 in float32. Scale
        before squaring, add epsilon where the formula has it, and keep small factors together.
        """,
        """
        norm = tl.sqrt(tl.sum(x * x, axis=0))
        y = x / norm
        """,
        """
        largest = tl.max(tl.abs(x), axis=0)
        scaled = x / largest
        y = scaled / tl.sqrt(tl.sum(scaled * scaled, axis=0))
        """,
    ),
)
