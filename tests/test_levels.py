"""Levels of the stack: which lines are kept, what machine code says of widths and tensor cores, what fits on a chip."""

from __future__ import annotations

import pytest

from checker import levels
from checker.assembly import accesses, tensor_instructions
from checker.levels import clean, excerpt, first_appearances
from checker.occupancy import occupancy
from checker.vgpu import clock, specs
from checker.vgpu.profile import Profile

TTGIR = """\
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#loc = loc("kernel.py":14:1)
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @k(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x_ptr"(#loc))) {
    %pid = tt.get_program_id x : i32 loc(#loc25)
    %offs = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked> loc(#loc26)
    %x = tt.load %p, %mask, %cst : tensor<128x!tt.ptr<f32>, #blocked> loc(callsite(#loc1 at #loc33))
    %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    }) : (tensor<128xf32, #blocked>) -> f32 loc(#loc38)
    tt.return loc(#loc)
"""
PTX = """\
\t.loc\t1 14 0                          // 16_softmax.py:14:0
\tld.param.b64 \t%rd17, [softmax_kernel_param_0];
\t.loc\t1 44 9                          // 16_softmax.py:44:9
\t// begin inline asm
\t.loc\t1 44 9                          // 16_softmax.py:44:9
\tmov.u32 %r1, %r5;
\t.loc\t1 47 9                          // 16_softmax.py:47:9
\t@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];
\t// end inline asm
\t@%p2 ld.global.v4.b32 { %r6, %r7, %r8, %r9 }, [ %rd2 + 0 ];
\t.loc\t2 43 13, function_name $L__info_string0, inlined_at 1 53 15 // standard.py:43:13
\tst.global.b16 [ %rd9 + 0 ], { %rs1 };
\tcp.async.cg.shared.global [ %r13 + 0 ], [ %rd27 + 0 ], 0x10, %r14;
\tatom.global.gpu.acq_rel.add.f32 %r1, [ %rd1 + 0 ], %r2;
\twgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {%r351,%r352,%r353,%r354,%r355,%r356}, %rd116, %rd117, 1;
\t.file\t1 "/somewhere/else/16_softmax.py"
\t.file\t2 "/usr/lib/triton/language/standard.py"
"""
AMD = """\
\t.file\t1 "/katas" "k.py"
\t.loc\t1 19 0 prologue_end             ; k.py:19:0
\t.file\t2 "/triton/language" "standard.py"
\t.loc\t1 74 13                         ; k.py:74:13
\tbuffer_load_dwordx4 v[2:5], v10, s[24:27], 0 offen
\tglobal_load_ushort v1, v[2:3], off
\t.loc\t2 43 13 is_stmt 1               ; standard.py:43:13 @[ k.py:80:15 ]
\tbuffer_store_dwordx2 v[0:1], v16, s[20:23], 0 offen
\tv_mfma_f32_32x32x8_f16 v[16:31], v[106:107], v[102:103], v[16:31]
"""


def test_locations_and_attributes_go_and_line_numbers_stay() -> None:
    rows = clean("ttgir", TTGIR)
    assert rows[0].startswith("#blocked = #ttg.blocked<{sizePerThread")
    assert rows[1] == ""
    assert rows[4] == "%pid = tt.get_program_id x : i32"
    assert rows[5] == "%offs = tt.make_range : tensor<128xi32, #blocked>"
    assert not [row for row in rows if "loc(" in row]
    assert len(rows) == len(TTGIR.splitlines())


def test_the_telling_lines_are_kept_in_their_order() -> None:
    lines = excerpt("ttgir", TTGIR)
    assert [line.number for line in lines] == [1, 5, 6, 7, 8]
    assert [line.number for line in excerpt("ttgir", TTGIR, limit=2)] == [1, 7]


def test_lines_that_differ_in_registers_only_are_one() -> None:
    lines = excerpt("ptx", PTX)
    loads = [line for line in lines if "ld.global" in line.text]
    assert [(line.number, line.times) for line in loads] == [(8, 2)]
    # A wgmma names hundreds of registers.
    assert any(line.text.startswith("wgmma") and "..., %r356}" in line.text for line in lines)


def test_special_registers_are_not_alike() -> None:
    text = "\tmov.u32 \t%r66, %ctaid.x;\n\tmov.u32 \t%r68, %tid.x;\n"
    assert len(excerpt("ptx", text)) == 2


def test_sass_predicates_and_offsets_do_not_make_a_difference() -> None:
    text = (
        "        /*0350*/              @!P6 LDG.E.128 R12, desc[UR10][R42.64] ;\n"
        "        /*0360*/              @!P5 LDG.E.128 R20, desc[UR10][R42.64+0x800] ;\n"
        "        /*0370*/                   STG.E.128 desc[UR10][R40.64], R32 ;  /* 0x00 */\n"
    )
    assert [(line.text, line.times) for line in excerpt("sass", text)] == [
        ("@!P6 LDG.E.128 R12, desc[UR10][R42.64]", 2),
        ("STG.E.128 desc[UR10][R40.64], R32", 1),
    ]


def test_of_the_source_what_is_said_stays() -> None:
    source = (
        '@triton.jit\ndef k(\n    x_ptr,\n    B: tl.constexpr,\n):\n    """Copy = load.\n\n    x_ptr = what\n    """\n'
        "    # a comment = gone\n    offs = tl.arange(0, B)\n    tl.store(x_ptr + offs, 1)\n"
    )
    assert [(line.number, line.text.strip()) for line in excerpt("python", source)] == [
        (11, "offs = tl.arange(0, B)"),
        (12, "tl.store(x_ptr + offs, 1)"),
    ]


def test_where_layouts_and_thread_ids_first_appear() -> None:
    llir = "%11 = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"
    texts = {"ttir": "tt.load", "ttgir": TTGIR, "llir": llir, "ptx": "mov.u32 %r1, %tid.x;"}
    assert first_appearances(texts) == {"layouts": "ttgir", "thread ids": "llir"}
    assert first_appearances({"ttir": "tt.return"}) == {}


def test_every_level_says_what_it_adds() -> None:
    assert list(levels.LEVELS) == ["eager", "python", "ttir", "ttgir", "llir", "ptx", "sass", "amdgcn"]
    assert all(level.adds.endswith(".") for level in levels.LEVELS.values())


def test_ptx_accesses_have_line_and_width() -> None:
    found = [(one.kind, one.line, one.bits, one.count) for one in accesses(PTX)]
    # The line inside inline assembly is LLVM's own count; a cached binary may name another file.
    assert found == [("load", 44, 128, 2), ("atomic", 53, 32, 1), ("copy", 53, 128, 1), ("store", 53, 16, 1)]


def test_amd_accesses_have_line_and_width() -> None:
    found = [(one.kind, one.line, one.bits) for one in accesses(AMD)]
    assert found == [("load", 74, 128), ("load", 74, 16), ("store", 80, 64)]


def test_tensor_instructions_by_name() -> None:
    assert tensor_instructions(PTX) == {"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16": 1}
    assert tensor_instructions(AMD) == {"v_mfma_f32_32x32x8_f16": 1}
    sass = "HGMMA.64x256x16.F32 R24, gdesc[UR8], R24 ;\n HMMA.16816.F32 R4, R8, R10, R4 ;\n IMMA.16832.S8.S8 R1 ;"
    assert list(tensor_instructions(sass)) == ["HGMMA.64x256x16.F32", "HMMA.16816.F32", "IMMA.16832.S8.S8"]
    assert tensor_instructions("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %r1 }") != {}
    assert tensor_instructions("ffma.rn fma.rn.f32 %r1") == {}


@pytest.mark.parametrize("key", list(specs.CHIPS))
@pytest.mark.parametrize(("warps", "registers", "shared"), [(4, 32, 0), (8, 184, 48 * 1024), (1, 16, 0), (4, 255, 16)])
def test_occupancy_is_the_clocks(key: str, warps: int, registers: int, shared: int) -> None:
    spec = specs.CHIPS[key]
    found = occupancy(spec, num_warps=warps, registers=registers, shared_bytes=shared)
    assert found.programs == clock.occupancy(Profile(1, warps, 3, registers, shared, 0), spec)
    assert found.programs == found.limits[found.limiter]
    assert found.warps == found.programs * warps
    assert 0 < found.share <= 1


@pytest.mark.parametrize("key", list(specs.CHIPS))
def test_what_a_block_may_have_fits_once(key: str) -> None:
    spec = specs.CHIPS[key]
    found = occupancy(spec, num_warps=4, registers=64, shared_bytes=spec.shared_bytes_per_block)
    assert (found.programs, found.limiter) == (1, "shared memory")


def test_occupancy_names_what_ends_it() -> None:
    h200 = specs.CHIPS["h200"]
    named = {
        "warps": occupancy(h200, num_warps=16, registers=16, shared_bytes=0),
        "registers": occupancy(h200, num_warps=4, registers=255, shared_bytes=0),
        "shared memory": occupancy(h200, num_warps=4, registers=32, shared_bytes=100 * 1024),
        "blocks": occupancy(h200, num_warps=1, registers=32, shared_bytes=0),
    }
    assert {name: one.limiter for name, one in named.items()} == {name: name for name in named}
