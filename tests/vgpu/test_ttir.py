"""The reader of TTIR, on texts as Triton prints them."""

from __future__ import annotations

import pytest

from checker.vgpu import parser, ttir
from checker.vgpu.errors import NotModelled, SourceLine

LOOP = """
#loc = loc("/k.py":3:1)
#loc1 = loc("x_ptr"(#loc))
module {
  tt.func public @k(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x_ptr"(#loc)), %n: i32 loc("n"(#loc))) {
    %c0 = arith.constant 0 : i32 loc(#loc2)
    %c1 = arith.constant 1 : i32 loc(#loc2)
    %acc = arith.constant dense<0.000000e+00> : tensor<8x16xf32> loc(#loc2)
    %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %acc, %b = %c1) -> (tensor<8x16xf32>, i32)  : i32 {
      %1 = arith.addf %a, %a : tensor<8x16xf32> loc(#loc3)
      %flag = arith.constant true loc(#loc3)
      %c = arith.constant 2.0 : f32 loc(#loc3)
      scf.if %flag {
        tt.store %x_ptr, %c : !tt.ptr<f32> loc(#loc4)
      } loc(#loc4)
      scf.yield %1, %b : tensor<8x16xf32>, i32 loc(#loc4)
    } {tt.num_stages = 3 : i32} loc(#loc3)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc(unknown)
#loc3 = loc("/k.py":5:9)
#loc4 = loc("acc"(#loc3))
"""


def body(text=LOOP):
    module = parser.parse(text)
    return module.functions[module.entry].body.blocks[0].ops


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("i32", ttir.Type("i32")),
        ("tensor<8xf16>", ttir.Type("f16", (8,))),
        ("tensor<32x1x!tt.ptr<f16>>", ttir.Type("ptr", (32, 1), "f16")),
        ("!tt.ptr<bf16>", ttir.Type("ptr", (), "bf16")),
        ("!tt.tensordesc<tensor<16x32xf32>>", ttir.Type("desc", (16, 32), "f32")),
        ("!tt.tensordesc<16x32xf32>", ttir.Type("desc", (16, 32), "f32")),
        ("<f32>", ttir.Type("ptr", (), "f32")),
        ("<16x32xsi32>", ttir.Type("desc", (16, 32), "i32")),
    ],
)
def test_types(text, kind):
    assert ttir.parse_type(text) == kind


def test_a_function_has_its_arguments_in_order():
    function = parser.parse(LOOP).functions["k"]
    assert function.arg_names == ["x_ptr", "n"]
    assert [kind for _, kind in function.args] == [ttir.Type("ptr", (), "f32"), ttir.Type("i32")]


def test_a_loop_has_bounds_carried_values_and_attributes():
    loop = next(op for op in body() if op.name == "scf.for")
    assert len(loop.operands) == 5
    assert len(loop.results) == 2
    assert loop.attrs["tt.num_stages"] == "3"
    assert len(loop.regions[0].blocks[0].args) == 3


def test_a_branch_that_yields_nothing_still_ends():
    loop = next(op for op in body() if op.name == "scf.for")
    branch = next(op for op in loop.regions[0].blocks[0].ops if op.name == "scf.if")
    assert branch.regions[0].blocks[0].ops[-1].name == "scf.yield"
    assert branch.regions[0].blocks[0].ops[-1].operands == ()


def test_places_are_those_of_the_source():
    loop = next(op for op in body() if op.name == "scf.for")
    assert loop.where == SourceLine("/k.py", 5, 9)
    assert loop.regions[0].blocks[0].ops[-1].where == SourceLine("/k.py", 5, 9)


def test_columns_counted_from_zero_are_shifted():
    module = parser.parse(LOOP, column_base=0)
    loop = next(op for op in module.functions["k"].body.blocks[0].ops if op.name == "scf.for")
    assert loop.where == SourceLine("/k.py", 5, 10)


CALLSITE = """
module {
  tt.func public @k() {
    %0 = tt.get_program_id x : i32 loc(#loc3)
    %1 = tt.get_program_id y : i32 loc(#loc4)
    tt.return loc(#loc3)
  } loc(#loc3)
}
#loc1 = loc("/lib/triton/language/standard.py":40:12)
#loc2 = loc("/k.py":7:3)
#loc3 = loc(callsite(#loc1 at #loc2))
#loc4 = loc(callsite(#loc5 at #loc2))
#loc5 = loc("/helper.py":2:5)
"""


def test_an_operation_of_tritons_library_stands_where_it_was_called():
    first, second, _ = body(CALLSITE)
    assert first.where == SourceLine("/k.py", 7, 3)
    assert second.where == SourceLine("/helper.py", 2, 5)


def test_names_of_values_may_repeat_in_sibling_branches():
    text = """
module {
  tt.func public @k(%c: i1) {
    %r = scf.if %c -> (i32) {
      %x = arith.constant 1 : i32
      scf.yield %x : i32
    } else {
      %x = arith.constant 2 : i32
      scf.yield %x : i32
    }
    tt.return
  }
}
"""
    branch = body(text)[0]
    yes, no = (region.blocks[0].ops for region in branch.regions)
    assert yes[0].results != no[0].results
    assert yes[1].operands == yes[0].results
    assert no[1].operands == no[0].results


def test_names_of_functions_may_be_quoted():
    text = """
module {
  tt.func public @k(%x: i32) {
    %0 = tt.call @"m.f__i32__(1,)cconstexpr_16_"(%x) : (i32) -> i32
    tt.return
  }
  tt.func private @"m.f__i32__(1,)cconstexpr_16_"(%x: i32) -> i32 attributes {noinline = true} {
    tt.return %x : i32
  }
}
"""
    call = body(text)[0]
    assert call.words == ("m.f__i32__(1,)cconstexpr_16_",)
    assert len(call.operands) == 1
    assert call.words[0] in parser.parse(text).functions


def test_control_flow_it_does_not_know_is_named():
    text = """
module {
  tt.func public @k(%c: i32) {
    scf.index_switch %c {
    }
    tt.return
  }
}
"""
    with pytest.raises(NotModelled, match=r"scf\.index_switch"):
        parser.parse(text)


def test_an_empty_text_is_no_module():
    with pytest.raises(ValueError, match="no function"):
        parser.parse("")
