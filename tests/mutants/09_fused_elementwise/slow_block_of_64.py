# expect: K804
# blocks of 64: dispatching the programs takes longer than moving their bytes
"""SiLU times up, fused: what takes PyTorch two trips through memory takes one kernel one."""

import torch
import triton
import triton.language as tl

# Elements a program computes: enough that few programs move many bytes.
BLOCK_SIZE = 64


@triton.jit
def silu_mul_kernel(gate_ptr, up_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Compute one block of y = silu(gate) * up.

    gate_ptr    *T[n]  goes through SiLU, contiguous; T is float32, float16 or bfloat16
    up_ptr      *T[n]  second factor, contiguous
    y_ptr       *T[n]  product, contiguous
    n           int    number of elements
    BLOCK_SIZE  int    elements a program computes, a power of two
    """
    pid = tl.program_id(0).to(tl.int64)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n

    # tl.exp takes no float16, and every step in between is to keep the bits of float32.
    gate = tl.load(gate_ptr + offs, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offs, mask=mask).to(tl.float32)

    # exp(-gate) overflows for gates far below 0, to inf, and gate / inf is the right limit, 0.
    y = gate / (1.0 + tl.exp(-gate)) * up

    # Rounded once, after the whole chain.
    tl.store(y_ptr + offs, y.to(y_ptr.dtype.element_ty), mask=mask)


def silu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Return silu(gate) * up as a new contiguous tensor, where silu(v) = v / (1 + exp(-v)).

    Accepted: gate and up of one shape, one dtype (float32, float16 or bfloat16) and one device, with any strides; they
    may be empty. A tensor that is not contiguous is made so first, with `.contiguous()`.
    Refused: shapes that differ, even if they could be broadcast, or tensors on two devices (ValueError); dtypes that
    differ or are none of the three (TypeError).
    """
    if gate.shape != up.shape:
        raise ValueError(f"gate and up must have the same shape, not {tuple(gate.shape)} and {tuple(up.shape)}")
    if gate.device != up.device:
        raise ValueError(f"gate and up must be on the same device, not on {gate.device} and {up.device}")
    if gate.dtype != up.dtype or gate.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"gate and up must both be float32, float16 or bfloat16, not {gate.dtype} and {up.dtype}")
    gate, up = gate.contiguous(), up.contiguous()
    y = torch.empty_like(gate)
    n = y.numel()
    if n == 0:
        return y  # nothing to compute, nothing to launch
    grid = (triton.cdiv(n, BLOCK_SIZE),)
    silu_mul_kernel[grid](gate, up, y, n, BLOCK_SIZE=BLOCK_SIZE)
    return y


def eager_over_fused(chain: tuple[str, ...]) -> float | None:
    """Predict how many times the bytes of one fused kernel a chain of eager PyTorch operations moves.

    chain: operations on large tensors of one size and dtype, each applied to the result of the one before. "silu",
    "relu", "exp", "neg" take that alone; "mul", "add", "sub" combine it with a tensor of their own. The first operation
    finds its operand in memory.
    """
    with_a_tensor_of_their_own = sum(operation in ("mul", "add", "sub") for operation in chain)
    # Eager: each operation reads the result so far, its own tensor if it has one, and writes.
    eager = 2 * len(chain) + with_a_tensor_of_their_own
    # Fused: every input once, the last result once.
    fused = 1 + with_a_tensor_of_their_own + 1
    return eager / fused


def worth_a_kernel(snippet: str) -> bool | None:
    """Say whether a fused kernel in place of an eager snippet could save at least a fifth of its bytes.

    snippet is one of these names. a, b: large tensors of one shape; w: a large matrix; v: a vector as long as a row.
    "gated"     silu(a) * b
    "scaled"    a * 2 + 1
    "biased"    relu(a + v)
    "leaky"     where(a > 0, a, 0.1 * a)
    "copied"    a.clone()
    "activated" tanh(a)
    "turned"    a.t()
    "product"   a @ w
    """
    labels: dict[str, bool] = {
        # Results that travel through memory only to be read by the next operation.
        "gated": True,
        "scaled": True,
        "biased": True,
        "leaky": True,
        # One operation, one kernel: it reads its operands once and writes its result once, as any kernel must.
        "copied": False,
        "activated": False,
        "product": False,
        # A view moves nothing.
        "turned": False,
    }
    return labels.get(snippet)


def first_level(what: str) -> str | None:
    """Name the first level of compilation, from your source towards the chip, whose text says something.

    what is "program id" (which program am I), "block layout" (how a block is dealt out to threads), "thread id" (which
    thread am I) or "registers" (the chip's registers, declared by kind). Returns "ttir", "ttgir", "llir" or "ptx".
    """
    labels: dict[str, str] = {
        "program id": "ttir",
        "block layout": "ttgir",
        "thread id": "llir",
        "registers": "ptx",
    }
    return labels.get(what)
