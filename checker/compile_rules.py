"""What Triton's compiler says, and which diagnosis that is.

The texts were collected by compiling a wrong kernel of each kind on Triton 3.6, 3.7, 3.8 and 3.9
(`tests/test_diagnose.py` keeps one or more per code). They stay the same over the versions but for their wrapping
(`ValueError('...')` in some), so the patterns search, and the first that fits decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["COMPILE_RULES", "LOWERING_RULES", "Rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A text of the compiler and the diagnosis it means.

    `message` and `advice` may use the pattern's groups as {1}, {2}. `node` restricts the rule to an ast class of the
    place, such as Subscript, and `called` to a function called there, by the last part of its name.
    """

    pattern: str
    code: str
    message: str
    advice: str
    node: str = ""
    called: str = ""

    def match(self, said: str, node: str, called: str) -> re.Match[str] | None:
        """The match in what the compiler said, if the rule fits the place too."""
        if (self.node and self.node != node) or (self.called and not re.fullmatch(self.called, called)):
            return None
        return re.search(self.pattern, said, re.DOTALL)


_SHAPES = r"zeros|full|zeros_like|broadcast_to|reshape|view|arange|expand_dims"
_NO_SEMANTIC = r"Did you forget to add @triton\.jit"

COMPILE_RULES: tuple[Rule, ...] = (
    Rule(
        r"arange's range must be a power of 2|Shape element \d+ must be a power of 2",
        "K201",
        "the length of this block is not a power of two",
        "round up with triton.next_power_of_2(n) in the wrapper, and mask off the rest",
    ),
    Rule(
        r"must be of type tl\.constexpr|must have type `constexpr\[int\]`|is not a constexpr",
        "K202",
        "the shape of a block must be known when the kernel is compiled",
        "declare the parameter `: tl.constexpr` and pass it by keyword",
    ),
    Rule(
        _NO_SEMANTIC,
        "K202",
        "the shape of a block must be known when the kernel is compiled",
        "write the shape as a tuple of constants, such as (BLOCK_SIZE,)",
        called=_SHAPES,
    ),
    Rule(
        r"numel \((\d+)\) exceeds triton maximum tensor numel",
        "K203",
        "this block has {1} elements; Triton allows 1048576",
        "let each program handle a smaller block and launch more programs, or loop over blocks",
    ),
    Rule(
        r"Cannot access global variable (\w+)",
        "K204",
        "the kernel reads the global `{1}`, which may change after compilation",
        "pass it as an argument, or define it as `{1} = tl.constexpr(...)`",
    ),
    Rule(
        r"Boolean value of Tensor with more than one value",
        "K205",
        "the condition is a block: it has one answer per element, and a branch needs one answer",
        "choose element by element with tl.where(condition, a, b), or put the condition into a mask",
    ),
    Rule(
        r"Ternary expression with dynamic condition has inconsistent types (.+?) and ([^\"')]+)",
        "K205",
        "`a if condition else b` got {1} and {2}: it chooses one of two values, not element by element",
        "choose element by element with tl.where(condition, a, b)",
    ),
    Rule(
        r"simultaneous multiple comparison",
        "K207",
        "this version of Triton cannot chain comparisons",
        "write `(a <= b) & (b < c)`",
    ),
    Rule(
        r"unsupported AST node type: (Break|Continue)",
        "K208",
        "a loop in a kernel cannot be left early",
        "compute the bounds before the loop, or use `while` with the condition; skip elements with a mask",
    ),
    Rule(
        r"Cannot have `return` statements inside",
        "K208",
        "a loop in a kernel cannot be left by return",
        "compute the bounds before the loop; skip elements with a mask",
    ),
    Rule(
        r"Loop-carried variable (\w+) has initial type (.+?) but is re-assigned to (.+?) in loop",
        "K209",
        "`{1}` is {2} before the loop and becomes {3} inside it",
        "give `{1}` its final dtype and shape before the loop, e.g. tl.zeros((BLOCK_SIZE,), tl.float32)",
    ),
    Rule(
        r"Mismatched type for (\w+) between then block \((.+?)\) and else block \((.+?)\)['\")]*$",
        "K209",
        "`{1}` is {2} in one branch and {3} in the other",
        "give `{1}` the same dtype and shape in both branches",
    ),
    Rule(
        r"initial value for `(\w+)` is of type (.+?), but the \w+ block redefines it as ([^\"']+)",
        "K209",
        "`{1}` is {2} before the branch and becomes {3} inside it",
        "give `{1}` its final dtype and shape before the branch",
    ),
    Rule(
        r"unsupported tensor index|__setitem__ is not supported",
        "K210",
        "a block or a pointer cannot be indexed as an array",
        "read with tl.load(ptr + offsets), write with tl.store(ptr + offsets, value); only [:, None] is allowed",
    ),
    Rule(
        _NO_SEMANTIC,
        "K210",
        "a block or a pointer cannot be indexed by a run-time value",
        "read with tl.load(ptr + offsets); choose elements with tl.where",
        node="Subscript",
    ),
    Rule(
        _NO_SEMANTIC,
        "K211",
        "this function works on the host, not on the values of a kernel",
        "use its namesake in triton.language (tl.cdiv), or compute it in the wrapper and pass it in",
        node="Call",
    ),
    Rule(
        r"module 'triton\.language[\w.]*' has no attribute '(\w+)'",
        "K211",
        "triton.language has no `{1}`",
        "look for its name in the triton.language reference, or build it from tl.where, tl.maximum, tl.exp ...",
    ),
    Rule(
        r"'(?:tensor|block_type|pointer_type)' object has no attribute '(__\w+__)'",
        "K224",
        "blocks do not support the operator behind `{1}`",
        "write it with +, -, *, / or a function of triton.language; a square is `v * v`",
    ),
    Rule(
        r"'tensor' object has no attribute '?(\w+)'?",
        "K211",
        "a block has no method or attribute `{1}`",
        "use a function of triton.language; a kernel sees pointers and blocks, not PyTorch tensors",
    ),
    Rule(
        r"must be real number, not tensor|object of type 'tensor' has no len"
        r"|argument must be a string(, a bytes-like object)? or a real number, not 'tensor'",
        "K211",
        "this Python function cannot compute with the values of a kernel",
        "use tl.exp, tl.sqrt ... for math.*, `.to(dtype)` for int() and float(), a constexpr for len()",
    ),
    Rule(
        r"Cannot bitcast data-type of size \d+ to data-type of size 1\b",
        "K206",
        "Python's `and` and `or` join conditions; this is a block of numbers",
        "compare it first: (x != 0.0) & mask",
        node="BoolOp",
    ),
    Rule(
        r"(?:min|max) requires at least 2 values",
        "K211",
        "Python's min and max do not reduce a block",
        "use tl.max(x, axis=0) or tl.min(x, axis=0)",
    ),
    Rule(
        r"argument '\w+' .*must be Tensor, not tensor",
        "K211",
        "PyTorch's functions compute with PyTorch's tensors, not with the values of a kernel",
        "use its namesake in triton.language, or an operator",
    ),
    Rule(
        r"'\w+' object is not callable",
        "K211",
        "this is not a function of Triton",
        "a kernel gets pointers, not tensors: pass sizes and strides as arguments of the launch",
    ),
    Rule(
        r"(?:load|store)?.*`other` cannot be provided without `mask`",
        "K213",
        "`other` fills masked-off lanes, and this load has no mask",
        "give `mask=` as well, or leave `other` out",
    ),
    Rule(
        r"(Mask|Value|Other) argument cannot be block type if pointer argument is not a block",
        "K214",
        "the pointer is a single address, and its {1} is a block",
        "add the block of offsets to the pointer: `ptr + offsets`",
    ),
    Rule(
        r"Unsupported ptr type (.+?) in `tl\.(\w+)`",
        "K216",
        "tl.{2} needs addresses and got {1}",
        "the first argument is a pointer plus offsets, such as `x_ptr + offsets`",
    ),
    Rule(
        r"incompatible dimensions at index (\d+): (\d+) and (\d+)",
        "K215",
        "the shapes do not broadcast: dimension {1} has {2} and {3} elements",
        "make the blocks of one length, or spread them over two dimensions with [:, None] and [None, :]",
    ),
    Rule(
        r"invalid axis (-?\d+)|too many indices for tensor of rank (\d+)|permute dims must have the same length"
        r"|tl\.trans invoked with a 0- or 1-dim|[Cc]annot (?:broadcast|expand|reshape|view)|incompatible (?:shape|rank)"
        r"|same rank|must have the same rank|Expected \w+ argument to have shape",
        "K215",
        "the block has another shape than is needed here",
        "write down each block's shape: [:, None] adds a dimension, a reduction takes one away, extents must agree",
    ),
    Rule(
        r"Expected dtype (.+?) but got (\w+)",
        "K216",
        "this function needs {1}, and the value is {2}",
        "convert first: `v.to(tl.float32)`, and back when storing",
    ),
    Rule(
        r"'(?:torch\.dtype|str)' object has no attribute 'scalar'|type object '\w+' has no attribute 'scalar'",
        "K216",
        "this is not a dtype of Triton",
        "name the dtype as tl.float32, tl.float16, tl.int32 ...",
    ),
    Rule(
        r"cannot add pointers together",
        "K216",
        "two pointers are added",
        "add offsets to one pointer; to combine the values behind two pointers, load both first",
    ),
    Rule(
        r"bounds and step must all be ints",
        "K216",
        "the bounds of a loop must be integers",
        "divide with `//` or tl.cdiv instead of `/`",
    ),
    Rule(
        r"Both operands must be same dtype\.? Got (\w+) and (\w+)",
        "K217",
        "tl.dot got {1} and {2}",
        "convert one operand: `b.to(a.dtype)`",
    ),
    Rule(
        r"Unsupported (?:lhs|rhs) dtype (\w+)",
        "K217",
        "tl.dot cannot multiply {1}",
        "convert both operands to float16, bfloat16, float32 or int8",
    ),
    Rule(
        r"Input shapes should have (M >= \d+, N >= \d+ and K >= \d+)",
        "K218",
        "the tiles of this tl.dot are too small: it needs {1}",
        "enlarge BLOCK_SIZE_K (and M, N), and mask off what is beyond the edge",
    ),
    Rule(
        r"equal reduction dimensions|equal ranks|accumulator shape",
        "K218",
        "the tiles of this tl.dot do not match: (M, K) times (K, N) gives (M, N)",
        "compare the shapes of both operands and of the accumulator",
    ),
    Rule(
        r"^\W*(AssertionError\(\))?\W*$",
        "K217",
        "the accumulator of this tl.dot has another dtype than the product",
        "make it tl.zeros((M, N), tl.float32)",
        called="dot",
    ),
    Rule(
        r"Cannot evaluate f-string|is not string",
        "K224",
        "Python formats this text when the kernel is compiled, and the values exist only when it runs",
        'print run-time values with tl.device_print("name", value), or print("name", value)',
    ),
    Rule(
        r"nested function definitions|StopIteration",
        "K224",
        "a function cannot be defined inside a kernel",
        "move it to the top of the file and decorate it with @triton.jit",
    ),
    Rule(
        r"MatMult",
        "K224",
        "`@` is not part of the kernel language",
        "multiply tiles with tl.dot(a, b)",
    ),
    Rule(
        r"unsupported operand type\(s\) for \*\*",
        "K224",
        "`**` is not part of the kernel language",
        "write `v * v`, or tl.exp2(y * tl.log2(v))",
    ),
    Rule(
        r"'(?:Name|Tuple|List|Call)' object has no attribute 'func'",
        "K224",
        "a loop in a kernel runs over range(...)",
        "write `for i in range(n):`, or tl.static_range(N) to unroll it",
    ),
    Rule(
        r"unsupported AST node type: (\w+)",
        "K224",
        "{1} is not part of the kernel language",
        "move it to the wrapper; a kernel has assignments, arithmetic, if, for, while and tl functions",
    ),
    Rule(
        r"only tuple comprehensions|object has no attribute append|'append' is not in list|comparison operator '|"
        r"'\w+' object has no attribute '__name__'|not \(currently\) implemented|unhashable type: 'tensor'",
        "K224",
        "this Python construct is not part of the kernel language",
        "use blocks in place of lists, and plain comparisons joined by &",
    ),
    Rule(
        r"(?:(\w+)\(\) )?((?:missing (?:\d+|a) required .*argument|got an unexpected keyword argument"
        r"|takes .* positional argument|got multiple values for argument|too many positional arguments)"
        r"[^\"]*?)(?:[\"']\))?$",
        "K200",
        "the arguments of this call do not fit: {1} {2}",
        "compare it with the function's signature",
    ),
)
"""For errors that come with a place in the source. NameError, None and operand types are judged in `diagnose`."""

LOWERING_RULES: tuple[Rule, ...] = (
    Rule(
        r"'scf\.condition' op operand #0 must be 1-bit signless integer, but got 'tensor",
        "K205",
        "the condition of this `while` is a block: it has one answer per element, and a loop needs one answer",
        "loop over a scalar, and choose elements with a mask",
    ),
    Rule(
        r"'tt\.(load|store)' op operand #\d must be 1-bit",
        "K216",
        "the mask of this {1} is not a block of booleans",
        "make the mask with a comparison, such as `offsets < n`",
    ),
    Rule(
        r"'tt\.atomic_\w+' op failed to verify that ptr type matches",
        "K214",
        "the pointer is a single address, and the value is a block",
        "add the block of offsets to the pointer: `ptr + offsets`",
    ),
    Rule(
        r"expects region #\d to have 0 or 1 blocks",
        "K208",
        "a loop in a kernel cannot be left by return",
        "compute the bounds before the loop; skip elements with a mask",
    ),
    Rule(
        r"operation 'tt\.return'|type of return operand",
        "K224",
        "a kernel cannot return a value",
        "store the result with tl.store; only helper functions return values",
    ),
)
"""For errors that Triton prints while it lowers a kernel, and raises without a place."""
