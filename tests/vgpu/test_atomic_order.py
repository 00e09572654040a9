"""An atomic makes an update whole; it orders nothing, unless a program looks at what it returned."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from checker.vgpu.driver import Session


@triton.jit
def add_then_read(sum_ptr, out_ptr):
    tl.atomic_add(sum_ptr, 1.0)
    tl.store(out_ptr + tl.program_id(0), tl.load(sum_ptr))


@triton.jit
def last_one_reads(sum_ptr, tickets_ptr, out_ptr, programs):
    tl.atomic_add(sum_ptr, 1.0)
    ticket = tl.atomic_add(tickets_ptr, 1)
    if ticket == programs - 1:
        tl.store(out_ptr, tl.load(sum_ptr))


def kinds(session: Session) -> set[str]:
    return {violation.kind for launch in session.launches for violation in launch.violations}


def test_reading_what_other_programs_still_add_to_is_a_race(session: Session) -> None:
    add_then_read[(8,)](torch.zeros(1), torch.zeros(8))
    assert kinds(session) == {"read_after_write"}


def test_a_program_alone_may_read_what_it_added(session: Session) -> None:
    add_then_read[(1,)](torch.zeros(1), torch.zeros(8))
    assert kinds(session) == set()


def test_a_ticket_orders(session: Session) -> None:
    out = torch.zeros(1)
    last_one_reads[(8,)](torch.zeros(1), torch.zeros(1, dtype=torch.int32), out, 8)
    assert kinds(session) == set()
    assert out.item() == 8
