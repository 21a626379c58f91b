"""Lowering: every opcode of the census, the fields of the micro-operations, storage, calls, errors and the cache."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.models.execution.isa import (
    LOCAL_WINDOW,
    PARAM_WINDOW,
    PT,
    RZ,
    SHARED_WINDOW,
    Atomic,
    Bool,
    Category,
    Compare,
    Control,
    Convert,
    Double,
    Fetch,
    Flag,
    Float,
    Group,
    Int,
    Integer,
    Kind,
    Long,
    Memory,
    Packed,
    Predicate,
    Round,
    Space,
    Special,
    System,
    Texture,
    Warp,
    Write,
)
from lockstep.sim.compile.ptx import program
from lockstep.sim.compile.ptx.build import build
from lockstep.sim.compile.ptx.kernel import Kernel, Program
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.compile.ptx.program import load
from lockstep.sim.errors import UsageError

CENSUS = Path(__file__).parent / "census.ptx"
HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"
REGISTERS = """
.reg .pred %p<10>; .reg .b16 %rs<10>; .reg .b32 %r<12>; .reg .b64 %rd<12>; .reg .f32 %f<10>; .reg .f64 %fd<10>;
"""


def lowered(text: str, registers: int = 255) -> Program:
    return build(parse(HEAD + text, "test.ptx"), registers)


def kernel(body: str, before: str = "", parameters: str = "", registers: int = 255) -> Kernel:
    return lowered(f"{before}\n.entry k({parameters})\n{{{REGISTERS}{body}\n}}", registers).kernels["k"]


def one(line: str) -> Any:
    """The micro-operation of one instruction."""
    code = kernel(f"{line} ret;").code
    assert len(code) == 2
    return code[0]


# --------------------------------------------------------------------------------------------------------- the census


@pytest.mark.parametrize(("name", "least"), [("required", 327), ("extended", 103), ("beyond", 80)])
def test_every_opcode_becomes_one_micro_operation(name: str, least: int) -> None:
    text = CENSUS.read_text(encoding="utf-8")
    made = build(parse(text, "census.ptx"), 255).kernels[name]
    lines = Counter(made.code["line"].tolist())
    assert set(lines.values()) == {1}
    body = text[text.index(f".entry {name}") :].split("\n}", 1)[0]
    first = text[: text.index(f".entry {name}")].count("\n") + 1
    written = [n for n, line in enumerate(body.split("\n"), first) if ";" in line and not line.strip().startswith(".")]
    assert set(written) <= set(lines)
    opcodes = {line.split()[0].rstrip(";") for line in body.split("\n") if ";" in line and "    ." not in line}
    assert len(opcodes) >= least
    assert made.source_instructions == len(made.code)
    assert made.spilled == 0


# ------------------------------------------------------------------------------------------------- fields, one by one

EXPECTED: list[tuple[str, dict[str, Any]]] = [
    # Integers: widths, signs, wide products, carries.
    ("add.u32 %r1, %r2, 7;", dict(group=Group.INT, op=Int.ADD, category=Category.INTEGER, write=Write.WORD)),
    ("add.s64 %rd1, %rd2, -1;", dict(group=Group.LONG, op=Long.ADD, write=Write.PAIR, imm1=-1)),
    ("sub.s16 %rs1, %rs2, -1;", dict(group=Group.INT, op=Int.SUB, write=Write.HALF, imm1=0xFFFFFFFF, fetch0=Fetch.S16)),
    ("mul.wide.u16 %r1, %rs1, %rs2;", dict(group=Group.INT, op=Int.MUL, fetch0=Fetch.U16, write=Write.WORD)),
    ("mul.wide.s32 %rd1, %r1, -4;", dict(group=Group.LONG, op=Long.MUL, fetch0=Fetch.S32, imm1=-4)),
    ("mad.wide.u32 %rd1, %r1, %r2, %rd2;", dict(op=Long.MAD, fetch0=Fetch.U32, fetch1=Fetch.U32, fetch2=Fetch.PAIR)),
    ("mul.wide.u32 %rd1, %r1, -1;", dict(op=Long.MUL, fetch1=Fetch.PAIR, imm1=0xFFFFFFFF)),
    ("mul.hi.u64 %rd1, %rd2, %rd3;", dict(group=Group.LONG, op=Long.MULHI_U)),
    ("mul.hi.s16 %rs1, %rs2, %rs3;", dict(group=Group.INT, op=Int.MULHI16, fetch0=Fetch.S16, write=Write.HALF)),
    ("add.cc.u32 %r1, %r2, %r3;", dict(op=Int.ADD, pdst=0, psrc=PT)),
    ("addc.u32 %r1, %r2, %r3;", dict(op=Int.ADD, pdst=PT, psrc=0)),
    ("madc.hi.cc.u32 %r1, %r2, %r3, %r4;", dict(op=Int.MADHI_U, pdst=0, psrc=0)),
    ("add.sat.s32 %r1, %r2, %r3;", dict(op=Int.ADD_SAT)),
    ("mad24.hi.s32 %r1, %r2, %r3, %r4;", dict(op=Int.MADHI24, sub=1)),
    ("bfind.shiftamt.s64 %r1, %rd2;", dict(group=Group.LONG, op=Long.BFIND_S, sub=1, write=Write.WORD)),
    ("bfi.b64 %rd1, %rd2, %rd3, %r1, 8;", dict(op=Long.BFI, fetch2=Fetch.U32, fetch3=Fetch.PAIR, imm3=8)),
    ("shr.s16 %rs1, %rs2, %r1;", dict(op=Int.SHR_S, fetch0=Fetch.S16, write=Write.HALF, category=Category.SHIFT)),
    ("shr.b64 %rd1, %rd2, 3;", dict(op=Long.SHR_U, fetch1=Fetch.PAIR, imm1=3)),
    ("shf.l.wrap.b32 %r1, %r2, %r3, %r4;", dict(op=Int.SHF_L_WRAP, category=Category.SHIFT)),
    ("prmt.b32.ecl %r1, %r2, %r3, %r4;", dict(op=Int.PRMT, sub=4)),
    ("lop3.b32 %r1, %r2, %r3, %r4, 0xF8;", dict(group=Group.INT, op=Int.LOP3, sub=0xF8)),
    ("dp4a.u32.s32 %r1, %r2, %r3, %r4;", dict(group=Group.PACKED, op=Packed.DP4A, sub=2)),
    (
        "vabsdiff4.u32.s32.s32.add %r1, %r2, %r3, %r4;",
        dict(op=Packed.VABSDIFF4, sub=3, category=Category.VIDEO),
    ),
    # Floating point: rounding, flushing, saturation, approximations.
    ("add.f32 %f1, %f2, 1.5;", dict(group=Group.FLOAT, op=Float.ADD, rnd=Round.RN, imm1=0x3FC00000)),
    ("fma.rm.ftz.sat.f32 %f1, %f2, %f3, 0f3F800000;", dict(op=Float.FMA, rnd=Round.RM, fetch0=Fetch.FTZ,
                                                           flags=Flag.FTZ | Flag.SAT)),
    ("div.full.f32 %f1, %f2, %f3;", dict(op=Float.DIV_FULL, category=Category.SPECIAL)),
    ("div.rz.f64 %fd1, %fd2, %fd3;", dict(group=Group.DOUBLE, op=Double.DIV, rnd=Round.RZ,
                                            category=Category.DIVIDE_DOUBLE)),
    ("sqrt.approx.ftz.f32 %f1, %f2;", dict(op=Float.SQRT_APPROX, flags=Flag.FTZ, category=Category.SPECIAL)),
    ("rcp.rn.f64 %fd1, %fd2;", dict(op=Double.RCP, category=Category.DIVIDE_DOUBLE)),
    ("rsqrt.approx.ftz.f64 %fd1, %fd2;", dict(op=Double.RSQRT_APPROX, sub=1, fetch0=Fetch.PAIR)),
    ("max.NaN.f32 %f1, %f2, %f3, %f4;", dict(op=Float.MAX, flags=Flag.NAN, kind2=Kind.REGISTER)),
    ("min.f32 %f1, %f2, %f3;", dict(op=Float.MIN, flags=0, kind2=Kind.NONE)),
    ("add.f64 %fd1, %fd2, 0d3FF0000000000000;", dict(op=Double.ADD, imm1=0x3FF0000000000000)),
    ("neg.f64 %fd1, 0dBFF0000000000000;", dict(op=Double.NEG, imm0=0xBFF0000000000000 - (1 << 64))),
    ("mul.f16 %rs1, %rs2, %rs3;", dict(group=Group.FLOAT, op=Float.MUL, fetch0=Fetch.F16, write=Write.F16)),
    ("fma.rn.bf16 %rs1, %rs2, %rs3, %rs4;", dict(group=Group.PACKED, op=Packed.FMA_BF16, write=Write.BF16)),
    ("add.sat.f16x2 %r1, %r2, %r3;", dict(group=Group.PACKED, op=Packed.ADD_F16X2, flags=Flag.SAT, write=Write.WORD)),
    # Comparison and selection.
    ("setp.lt.s32 %p1, %r1, %r2;", dict(op=Predicate.SETP_S32, sub=Compare.LT, psrc=PT, pdst2=PT)),
    ("setp.hs.u32 %p1, %r1, %r2;", dict(op=Predicate.SETP_U32, sub=Compare.GE)),
    ("setp.ne.b16 %p1, %rs1, 0;", dict(op=Predicate.SETP_U32, sub=Compare.NE, fetch0=Fetch.U16)),
    ("setp.leu.ftz.f32 %p1, %f1, %f2;", dict(op=Predicate.SETP_F32, sub=Compare.LEU, fetch0=Fetch.FTZ)),
    ("setp.eq.and.f64 %p1|%p2, %fd1, %fd2, !%p3;", dict(op=Predicate.SETP_F64, sub=Compare.EQ | Bool.AND << 4,
                                                      psrc_not=1, category=Category.COMPARE)),
    ("set.gt.xor.f32.u32 %f1, %r1, %r2, %p1;", dict(op=Predicate.SET_U32, sub=Compare.GT | Bool.XOR << 4,
                                                   flags=Flag.SAT, write=Write.WORD)),
    ("set.ne.u32.f64 %r1, %fd1, %fd2;", dict(op=Predicate.SET_F64, sub=Compare.NE, flags=0)),
    ("set.eq.f16.f16 %rs1, %rs2, %rs3;", dict(op=Predicate.SET_F32, write=Write.F16, flags=Flag.SAT)),
    ("selp.u16 %rs1, 1, 0, %p1;", dict(op=Predicate.SELP, write=Write.HALF)),
    ("selp.f64 %fd1, %fd2, %fd3, %p1;", dict(op=Predicate.SELP64, write=Write.PAIR)),
    ("slct.ftz.u64.f32 %rd1, %rd2, %rd3, %f1;", dict(op=Predicate.SLCT64_F32, fetch2=Fetch.FTZ)),
    ("mov.pred %p1, 0;", dict(group=Group.PREDICATE, op=Predicate.MOV, psrc=PT, psrc_not=1)),
    ("mov.pred %p1, -1;", dict(psrc=PT, psrc_not=0)),
    ("xor.pred %p1, %p2, !%p3;", dict(op=Predicate.XOR, psrc_not=0, psrc2_not=1, category=Category.LOGICAL)),
    ("lop3.and.b32 _|%p1, %r1, %r2, %r3, 6, %p2;", dict(op=Predicate.LOP3, sub=6, dst=RZ, imm3=Bool.AND)),
    ("testp.normal.f32 %p1, %f1;", dict(op=Predicate.TESTP_F32, sub=4, category=Category.FLOAT)),
    # Conversions.
    ("cvt.u32.s8 %r1, %rs1;", dict(group=Group.INT, op=Int.MOV, fetch0=Fetch.S8, write=Write.WORD)),
    ("cvt.u16.s8 %r1, %rs1;", dict(op=Int.MOV, fetch0=Fetch.S8, write=Write.HALF)),
    ("cvt.s8.s32 %rs1, %r1;", dict(op=Int.MOV, fetch0=Fetch.S8, write=Write.HALF)),
    ("cvt.s8.s32 %r1, %r2;", dict(op=Int.MOV, fetch0=Fetch.S8, write=Write.WORD)),
    ("cvt.u32.u64 %r1, %rd1;", dict(group=Group.INT, op=Int.MOV, fetch0=Fetch.WORD, reads=1)),
    ("cvt.s64.s16 %rd1, %rs1;", dict(group=Group.LONG, op=Long.MOV, fetch0=Fetch.S16_LONG)),
    ("cvt.s64.u32 %rd1, %r1;", dict(group=Group.LONG, op=Long.MOV, fetch0=Fetch.U32)),
    ("cvt.sat.u8.s32 %r1, %r2;", dict(group=Group.CONVERT, op=Convert.CLAMP, sub=Integer.U8, flags=Flag.SIGNED,
                                     fetch0=Fetch.S32)),
    ("cvt.rn.f32.s16 %f1, %rs1;", dict(op=Convert.INT_TO_F32, sub=Integer.S16, fetch0=Fetch.S16_LONG)),
    ("cvt.rz.f64.u64 %fd1, %rd1;", dict(op=Convert.INT_TO_F64, sub=Integer.U64, fetch0=Fetch.PAIR, rnd=Round.RZ)),
    ("cvt.rzi.ftz.u16.f32 %rs1, %f1;", dict(op=Convert.F32_TO_INT, sub=Integer.U16, rnd=Round.RZ, fetch0=Fetch.FTZ,
                                           write=Write.HALF)),
    ("cvt.rni.s64.f64 %rd1, %fd1;", dict(op=Convert.F64_TO_INT, sub=Integer.S64, write=Write.PAIR)),
    ("cvt.rmi.f32.f32 %f1, %f2;", dict(op=Convert.ROUND_F32, rnd=Round.RM)),
    ("cvt.sat.f32.f32 %f1, %f2;", dict(group=Group.FLOAT, op=Float.MOV, flags=Flag.SAT)),
    ("cvt.rp.ftz.f32.f64 %f1, %fd1;", dict(op=Convert.F64_TO_F32, rnd=Round.RP, flags=Flag.FTZ)),
    ("cvt.f64.f32 %fd1, %f1;", dict(op=Convert.F32_TO_F64, write=Write.PAIR)),
    ("cvt.f32.f16 %f1, %rs1;", dict(group=Group.FLOAT, op=Float.MOV, fetch0=Fetch.F16)),
    ("cvt.rn.f16.f64 %rs1, %fd1;", dict(op=Convert.F64_TO_F32, write=Write.F16)),
    ("cvt.rn.bf16.s64 %rs1, %rd1;", dict(op=Convert.INT_TO_F32, write=Write.BF16, sub=Integer.S64)),
    ("cvt.rz.bf16.f32 %rs1, %f1;", dict(op=Float.MOV, write=Write.BF16, rnd=Round.RZ)),
    ("cvt.rn.relu.f16x2.f32 %r1, %f1, %f2;", dict(op=Packed.CVT_F16X2, flags=Flag.RELU)),
    ("cvta.to.global.u64 %rd1, %rd2;", dict(group=Group.LONG, op=Long.MOV, category=Category.CONVERSION)),
    ("cvta.shared.u64 %rd1, %rd2;", dict(op=Long.ADD, imm1=SHARED_WINDOW, category=Category.CONVERSION)),
    ("cvta.to.local.u64 %rd1, %rd2;", dict(op=Long.SUB, imm1=LOCAL_WINDOW)),
    ("isspacep.local %p1, %rd1;", dict(op=Predicate.ISSPACE, sub=Space.LOCAL)),
    # Packing.
    ("mov.b64 %rd1, {%r1, %f2};", dict(op=Long.PACK, fetch0=Fetch.U32, fetch1=Fetch.U32, write=Write.PAIR)),
    ("mov.b64 {%r1, _}, %rd1;", dict(op=Long.UNPACK, v0=RZ, write=Write.WORD)),
    ("mov.b32 %r1, {%rs1, -3};", dict(op=Long.PACK16X2, fetch1=Fetch.PAIR, imm1=0xFFFD)),
    ("mov.u32 %r1, %ctaid.y;", dict(group=Group.WARP, op=Warp.SPECIAL, sub=Special.CTAID_Y, write=Write.WORD)),
    ("mov.u64 %rd1, %globaltimer;", dict(op=Warp.SPECIAL, sub=Special.GLOBALTIMER, write=Write.PAIR)),
    ("mov.b32 %r1, %envreg3;", dict(op=Warp.SPECIAL, sub=Special.ZERO)),
    # Memory.
    ("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+-8];", dict(group=Group.MEMORY, op=Memory.LOAD, space=Space.GLOBAL,
                                                              bytes=4, vec=4, data=4, offset=-8, fetch0=Fetch.PAIR)),
    ("ld.global.b32 {%r1}, [%rd1];", dict(vec=1, data=4)),
    ("ld.s8 %rs1, [%rd1];", dict(space=Space.GENERIC, bytes=1, data=2, flags=Flag.SIGNED, category=Category.GLOBAL)),
    ("ld.shared.u16 %rd1, [%r1];", dict(space=Space.SHARED, bytes=2, data=8, fetch0=Fetch.U32)),
    ("ld.volatile.global.u32 %r1, [%rd1];", dict(flags=Flag.VOLATILE)),
    ("ld.acquire.gpu.u32 %r1, [%rd1];", dict(flags=Flag.VOLATILE | Flag.ACQUIRE)),
    ("ld.relaxed.cta.u32 %r1, [%rd1];", dict(flags=0)),
    ("ld.global.cg.u32 %r1, [%rd1];", dict(flags=Flag.CACHE_GLOBAL)),
    ("ld.global.nc.L1::no_allocate.L2::64B.u32 %r1, [%rd1];", dict(flags=0, space=Space.GLOBAL)),
    ("ld.const.u32 %r1, [64];", dict(kind0=Kind.NONE, offset=64, category=Category.CONST)),
    ("st.release.sys.global.b32 [%rd1], %r1;", dict(op=Memory.STORE, flags=Flag.VOLATILE | Flag.RELEASE)),
    ("st.local.v2.u8 [%rd1], {%rs1, %rs2};", dict(bytes=1, vec=2, data=2, category=Category.LOCAL)),
    ("prefetch.global.L1 [%rd1];", dict(op=Memory.PREFETCH)),
    ("atom.global.cas.b32 %r1, [%rd1], %r2, %r3;", dict(group=Group.ATOMIC, op=Atomic.CAS, space=Space.GLOBAL,
                                                       v1=RZ)),
    ("atom.shared.max.s64 %rd1, [%rd2], %rd3;", dict(op=Atomic.MAX_S, bytes=8, data=8, category=Category.ATOMIC)),
    ("red.release.gpu.global.add.f32 [%rd1], %f1;", dict(op=Atomic.ADD_F32, v0=RZ)),
    ("tex.2d.v4.s32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%f1, %f2}];",
     dict(group=Group.TEXTURE, op=Texture.TEX_2D, sub=1, flags=Flag.SIGNED, fetch0=Fetch.PAIR)),
    ("tex.3d.v4.f32.s32 {%f1, _, _, _}, [%rd1, {%r1, %r2, %r3, %r3}];", dict(op=Texture.TEX_3D, sub=0, v1=RZ, v3=RZ)),
    ("tex.level.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}], 0f00000000;", dict(op=Texture.TEX_2D, sub=1)),
    ("txq.height.b32 %r1, [%rd1];", dict(op=Texture.QUERY, sub=1)),
    ("sust.b.2d.b32.trap [%rd1, {%r1, %r2}], {%r3};", dict(op=Texture.SURFACE_STORE, sub=1, bytes=4, vec=1)),
    # Control and synchronization.
    ("bar.sync 0;", dict(group=Group.CONTROL, op=Control.BARRIER, kind0=Kind.IMMEDIATE, kind1=Kind.NONE)),
    ("barrier.sync %r1, 64;", dict(op=Control.BARRIER, kind0=Kind.REGISTER, imm1=64)),
    ("bar.arrive 1, 64;", dict(op=Control.ARRIVE)),
    ("bar.red.or.pred %p1, 0, %p2;", dict(op=Control.REDUCE, sub=2, kind1=Kind.NONE)),
    ("bar.red.popc.u32 %r1, 0, 64, !%p2;", dict(op=Control.REDUCE, sub=0, psrc_not=1, imm1=64)),
    ("bar.warp.sync 15;", dict(op=Control.WARP_SYNC, imm0=15)),
    ("membar.gl;", dict(op=Control.FENCE, category=Category.SYNCHRONIZATION)),
    ("fence.sc.gpu;", dict(op=Control.FENCE)),
    ("trap;", dict(op=Control.TRAP, sub=0, category=Category.MISCELLANEOUS)),
    ("nanosleep.u32 %r1;", dict(op=Control.SLEEP)),
    # Warps.
    ("shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1;", dict(op=Warp.SHFL_DOWN, imm2=31, imm3=0xFFFFFFFF)),
    ("shfl.idx.b32 %r1, %r2, %r3, %r4;", dict(op=Warp.SHFL_IDX, kind3=Kind.NONE, pdst=PT)),
    ("vote.sync.ballot.b32 %r1, !%p1, -1;", dict(op=Warp.BALLOT, psrc_not=1, kind0=Kind.IMMEDIATE)),
    ("vote.all.pred %p1, %p2;", dict(op=Warp.VOTE_ALL, kind0=Kind.NONE, category=Category.SYNCHRONIZATION)),
    ("match.any.sync.b64 %r1, %rd1, %r2;", dict(op=Warp.MATCH_ANY64, fetch0=Fetch.PAIR, fetch1=Fetch.WORD)),
    ("redux.sync.max.u32 %r1, %r2, -1;", dict(op=Warp.REDUX_MAX_U)),
    ("activemask.b32 %r1;", dict(op=Warp.ACTIVEMASK)),
]  # fmt: skip


def field_of(record: Any, name: str) -> int:
    """``imm2`` is element 2 of ``imm``."""
    match = re.fullmatch(r"(imm|kind|fetch|src|v)(\d)", name)
    return int(record[match[1]][int(match[2])] if match else record[name])


@pytest.mark.parametrize(("line", "fields"), EXPECTED, ids=[line for line, _ in EXPECTED])
def test_fields(line: str, fields: dict[str, Any]) -> None:
    record = one(line)
    assert {name: field_of(record, name) for name in fields} == {name: int(value) for name, value in fields.items()}


def test_masks_and_banks() -> None:
    code = kernel(
        "mov.u64 %rd3, 0; setp.eq.u32 %p1, 1, 2; mov.u32 %r1, 4; mov.u64 %rd4, 0;"
        "ld.global.v2.u64 {%rd1, %rd2}, [%rd3]; @!%p1 mad.wide.u32 %rd4, %r1, %r1, %rd1;"
        "setp.eq.and.s64 %p2, %rd4, %rd2, %p1; @%p2 st.global.u64 [%rd3], %rd4; ret;"
    ).code
    load_, mad, setp, store = code[4:8]
    pair = {f"rd{n}": int(r) for n, r in ((1, load_["v"][0]), (2, load_["v"][1]), (3, load_["src"][0]))}
    assert all(place % 2 == 0 for place in pair.values())
    both = [3 << place for place in pair.values()]
    assert load_["writes"][0] == both[0] | both[1]
    assert load_["need"][0] == sum(both)
    assert load_["read"][: load_["reads"]].tolist() == [pair["rd3"], pair["rd3"] + 1]
    assert (mad["guard_not"], mad["pneed"], mad["pwrites"]) == (1, 1 << mad["guard"], 0)
    assert mad["reads"] == 3  # the register that it reads twice counts once
    assert setp["pwrites"] == 1 << setp["pdst"]
    assert setp["pneed"] == 1 << setp["pdst"] | 1 << setp["psrc"]
    assert store["guard"] == setp["pdst"]
    assert store["writes"].sum() == 0
    assert store["reads"] == 4


# ------------------------------------------------------------------------------------------------ constants and storage


def test_constants_are_moved_where_only_registers_fit() -> None:
    code = kernel("st.global.v2.u32 [%rd1], {%r1, 7}; st.shared.f64 [%rd1], 0d4000000000000000; ret;").code
    assert code["op"].tolist() == [Int.MOV, Memory.STORE, Long.MOV, Memory.STORE, Control.EXIT]
    assert code[0]["imm"][0] == 7
    assert code[0]["dst"] == code[1]["v"][1]
    assert code[2]["imm"][0] == 0x4000000000000000
    assert code[3]["v"][0] == code[2]["dst"]


def test_special_registers_as_operands() -> None:
    code = kernel("mad.lo.s32 %r1, %ctaid.x, %ntid.x, %r2; ret;").code
    assert code["op"].tolist() == [Warp.SPECIAL, Warp.SPECIAL, Int.MAD, Control.EXIT]
    assert code[2]["src"][:2].tolist() == code[:2]["dst"].tolist()


def test_module_symbols_are_relocated() -> None:
    made = kernel(
        "mov.u64 %rd1, table+8; ld.global.f32 %f1, [table+4]; ld.const.f32 %f2, [coefficients];"
        "cvta.global.u64 %rd2, table; tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1}]; ret;",
        ".global .f32 table[4]; .const .f32 coefficients[2]; .global .texref image;",
    )
    found = [(r.pc, r.field, r.symbol, r.addend) for r in made.relocations]
    assert found == [
        (0, "imm0", "table", 8), (1, "offset", "table", 4), (2, "offset", "coefficients", 0), (3, "imm0", "table", 0),
        (4, "imm0", "image", 0),
    ]  # fmt: skip
    assert made.code["imm"][[0, 3, 4], 0].tolist() == [0, 0, 0]
    assert made.code["offset"].tolist() == [0] * 6


def test_shared_memory_layout() -> None:
    before = ".shared .align 4 .b8 first[6]; .extern .shared .align 16 .b8 more[]; .shared .align 8 .b8 unused[4096];"
    made = kernel(
        ".shared .align 8 .b8 second[4]; mov.u64 %rd1, first; mov.u32 %r1, second; mov.u64 %rd2, more;"
        "cvta.shared.u64 %rd3, second; ld.shared.u32 %r2, [more+4]; ld.u32 %r3, [second]; ret;",
        before,
    )
    assert made.code["imm"][:4, 0].tolist() == [0, 8, 16, 8]
    assert made.code[3]["imm"][1] == SHARED_WINDOW
    assert made.code["offset"][4:6].tolist() == [20, SHARED_WINDOW + 8]
    assert (made.shared_bytes, made.dynamic_shared) == (16, True)
    assert not kernel("ret;", before).dynamic_shared
    assert kernel("ret;", before).shared_bytes == 0


def test_parameters() -> None:
    made = kernel(
        "ld.param.u8 %rs1, [a]; ld.param.v2.f32 {%f1, %f2}, [b+8]; mov.b64 %rd1, b; cvta.param.u64 %rd2, %rd1;"
        "ld.param.u32 %r1, [%rd1+4]; ret;",
        parameters=".param .u8 a, .param .align 8 .b8 b[20], .param .u64 .ptr .global .align 4 c",
    )
    assert [(p.name, p.offset, p.bytes, p.is_array) for p in made.parameters] == [
        ("a", 0, 1, False), ("b", 8, 20, True), ("c", 32, 8, False),
    ]  # fmt: skip
    assert made.param_bytes == 40
    assert made.parameters[2].pointer_space == "global"
    assert made.code["offset"][:2].tolist() == [0, 16]
    assert made.code[2]["imm"][0] == 8
    assert made.code[3]["imm"][1] == PARAM_WINDOW
    assert set(made.code["space"][[0, 1, 4]].tolist()) == {Space.PARAM}


def test_block_directives_and_register_limit() -> None:
    text = ".entry k() .maxntid 128, 2 .reqntid 64 .maxnreg 24 {" + REGISTERS + "ret; }"
    made = lowered(text).kernels["k"]
    assert made.max_block == (128, 2, 1)
    assert made.required_block == (64, 1, 1)
    many = "".join(f"ld.global.u32 %q{n}, [%rd1+{4 * n}];" for n in range(30))
    many += "".join(f"st.global.u32 [%rd1+{4 * n}], %q{n};" for n in range(30))
    made = lowered(text.replace("ret;", f".reg .b32 %q<30>; {many} ret;")).kernels["k"]
    assert made.registers <= 24
    assert made.spilled > 0
    assert made.local_bytes == 4 * made.spilled


# ---------------------------------------------------------------------------------------------------- control and calls


def test_branches_reconverge_at_the_join() -> None:
    code = kernel("@%p1 bra ELSE; add.s32 %r1, %r1, 1; bra.uni JOIN; ELSE: add.s32 %r1, %r1, 2; JOIN: ret;").code
    assert code["target"][[0, 2]].tolist() == [3, 4]
    assert code["reconverge"][0] == 4
    assert (code[0]["guard"], code[2]["guard"], code[2]["flags"]) == (0, PT, Flag.UNIFORM)


def test_indexed_branch() -> None:
    made = kernel("L: .branchtargets A, B, A; brx.idx %r1, L; A: ret; B: add.s32 %r1, %r1, 1; ret;")
    assert made.branch_table == [1, 2, 1]
    assert (made.code[0]["target"], made.code[0]["imm"][3], made.code[0]["reconverge"]) == (0, 3, 4)


def test_a_body_without_an_end_gets_one() -> None:
    code = kernel("@%p1 bra END; add.s32 %r1, %r1, 1; END:").code
    assert code["op"].tolist() == [Control.BRANCH, Int.ADD, Control.EXIT]
    assert kernel("@%p1 ret; L: bra L;").code["op"].tolist() == [Control.EXIT, Control.BRANCH]


FUNCTION = """.func (.param .b32 out) twice(.param .b32 in)
{ .reg .b32 %r<3>; .reg .pred %p1; ld.param.b32 %r1, [in]; setp.eq.s32 %p1, %r1, 0; @%p1 ret;
  add.s32 %r2, %r1, %r1; st.param.b32 [out], %r2; ret; }
"""
CALL = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), twice, (a); ld.param.b32 %r2, [b]; }"


def test_a_call_is_inlined_and_its_parameters_are_registers() -> None:
    made = kernel(CALL + "st.global.u32 [%rd1], %r2; ret;", FUNCTION)
    ops = list(zip(made.code["group"].tolist(), made.code["op"].tolist(), strict=True))
    assert ops == [
        (Group.INT, Int.MOV),  # st.param
        (Group.CONTROL, Control.BRANCH),  # call
        (Group.INT, Int.MOV),  # ld.param
        (Group.PREDICATE, Predicate.SETP_S32),
        (Group.CONTROL, Control.BRANCH),  # @%p1 ret
        (Group.INT, Int.ADD),
        (Group.INT, Int.MOV),  # st.param
        (Group.CONTROL, Control.BRANCH),  # ret
        (Group.INT, Int.MOV),  # ld.param
        (Group.MEMORY, Memory.STORE),
        (Group.CONTROL, Control.EXIT),
    ]
    assert made.code["target"][[1, 4, 7]].tolist() == [2, 8, 8]
    assert made.code["reconverge"][4] == 8
    assert made.local_bytes == 0
    assert made.source_instructions == len(made.code)


def test_two_calls_do_not_share_names() -> None:
    made = kernel(CALL + CALL + "st.global.u32 [%rd1], %r2; ret;", FUNCTION)
    assert len(made.code) == 20
    assert made.code["target"][[10, 13]].tolist() == [11, 17]


def test_guarded_calls_branch_around_the_body() -> None:
    code = kernel(CALL.replace("call.uni", "@%p3 call") + "st.global.u32 [%rd1], %r2; ret;", FUNCTION).code
    assert (code[1]["op"], code[1]["guard_not"], code[1]["target"]) == (Control.BRANCH, 1, 8)


def test_narrow_accesses_of_a_parameter_extend() -> None:
    function = ".func f(.param .b32 in) { .reg .b16 %rs1; .reg .b64 %rd1; ld.param.s8 %rs1, [in]; ret; }"
    code = kernel("{ .param .b32 a; st.param.b32 [a], %r1; call f, (a); } ret;", function).code
    assert (code[2]["op"], code[2]["fetch"][0], code[2]["write"]) == (Int.MOV, Fetch.S8, Write.HALF)


def test_parameters_accessed_in_parts_lie_in_local_memory() -> None:
    function = """.func f(.param .align 8 .b8 in[16]) { .reg .b32 %r<3>; .reg .b64 %rd<3>; ld.param.u32 %r1, [in+4];
        mov.b64 %rd1, in; ld.param.u32 %r2, [%rd1+8]; st.global.u32 [%rd2], %r1; st.global.u32 [%rd2], %r2; ret; }"""
    made = kernel(
        ".local .align 4 .b8 depot[12]; st.local.u32 [depot+4], %r1;"
        "{ .param .align 8 .b8 a[16]; st.param.b64 [a], %rd1; st.param.b64 [a+8], 5; call f, (a); } ret;",
        function,
    )
    memory = made.code[(made.code["group"] == Group.MEMORY) & (made.code["space"] == Space.LOCAL)]
    assert memory["op"].tolist() == [Memory.STORE] * 3 + [Memory.LOAD] * 2
    assert memory["offset"].tolist() == [4, 16, 24, 20, 8]
    assert memory["category"].tolist() == [Category.LOCAL] * 5
    assert made.local_bytes == 32
    assert 16 in made.code["imm"][:, 0].tolist()  # the parameter's address


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ("ld.param.u32 %r1, [in+4];", 8),  # a part of what is stored
        ("ld.param.u64 %rd1, [in+8]; st.param.u32 [in+8], %r1;", 4),  # stored in parts
        ("mov.b64 %rd1, in;", 8),  # the address is taken
    ],
)
def test_reasons_for_local_memory(body: str, size: int) -> None:
    function = f".func f(.param .align 8 .b8 in[16]) {{ .reg .b32 %r1; .reg .b64 %rd1; {body} ret; }}"
    call = "{ .param .align 8 .b8 a[16]; st.param.b64 [a], %rd1; call f, (a); } ret;"
    made = kernel(call, function)
    stores = made.code[(made.code["group"] == Group.MEMORY) & (made.code["op"] == Memory.STORE)]
    assert stores["bytes"].tolist()[-1] == size
    assert made.local_bytes == 16


def test_depots_of_calls_that_do_not_nest_overlap() -> None:
    function = """.func f() { .local .align 8 .b8 depot[24]; .reg .b64 %rd<2>; mov.u64 %rd1, depot;
        cvta.local.u64 %rd1, %rd1; st.u64 [%rd1], %rd1; ret; }"""
    made = kernel(".local .align 8 .b8 depot[20]; mov.u64 %rd1, depot; call f; call f; st.local.u64 [%rd1], %rd1; ret;",
                  function)  # fmt: skip
    assert made.local_bytes == 32 + 24
    moves = made.code[(made.code["op"] == Long.MOV) & (made.code["group"] == Group.LONG)]
    assert moves["imm"][:, 0].tolist() == [0, 32, 32]


def test_register_parameters_and_constants_as_arguments() -> None:
    function = """.func (.reg .f32 out) f(.reg .f32 in, .param .b32 scale)
        { .reg .b32 %r<2>; ld.param.b32 %r1, [scale]; add.f32 out, in, in; ret; }"""
    code = kernel("call (%f2), f, (%f1, 3); st.global.f32 [%rd1], %f2; ret;", function).code
    assert code["op"].tolist() == [
        Control.BRANCH, Int.MOV, Int.MOV, Int.MOV, Float.ADD, Control.BRANCH, Int.MOV, Memory.STORE, Control.EXIT,
    ]  # fmt: skip


def test_indirect_calls_compare_addresses() -> None:
    functions = "".join(
        f".func (.param .b32 r) {name}(.param .b32 a) {{ .reg .b32 %r1; mov.b32 %r1, {n}; st.param.b32 [r], %r1; }}"
        for n, name in enumerate(("f", "g", "unused"), 40)
    )
    functions += ".func other() { ret; } .global .u64 vtable[2] = {g, other};"
    made = lowered(
        functions + ".entry k() {" + REGISTERS + "mov.u64 %rd1, f; { .param .b32 a; .param .b32 b;"
        "P: .callprototype (.param .b32 _) _ (.param .b32 _); st.param.b32 [a], 1; call (b), %rd1, (a), P;"
        "ld.param.b32 %r1, [b]; } st.global.u32 [%rd2], %r1; ret; }"
    )
    assert made.functions == {"f": 1, "g": 2, "other": 4}
    assert set(made.variables) == {"vtable"}
    code = made.kernels["k"].code
    compares = code[code["group"] == Group.PREDICATE]
    assert compares["imm"][:, 1].tolist() == [1, 2]
    assert code[0]["imm"][0] == 1
    traps = code[(code["op"] == Control.TRAP) & (code["group"] == Group.CONTROL)]
    assert len(traps) == 1


def test_system_calls() -> None:
    declared = """.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
        .extern .func __assertfail (.param .b64 a); .extern .func (.param .b64 r) malloc (.param .b64 a);"""
    call = """{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %rd2; st.param.b64 [b], 0;
        call.uni (r), vprintf, (a, b); ld.param.b32 %r1, [r]; }"""
    code = kernel(call + "st.global.u32 [%rd1], %r1; ret;", declared).code
    printing = code[code["group"] == Group.SYSTEM]
    assert printing["op"].tolist() == [System.PRINTF] and printing["category"].tolist() == [Category.MISCELLANEOUS]
    assert printing["kind"][0].tolist() == [Kind.REGISTER, Kind.REGISTER, 0, 0]
    assert printing["fetch"][0].tolist() == [Fetch.PAIR, Fetch.PAIR, 0, 0] and printing["write"][0] == Write.WORD
    assert code[-2]["op"] == Memory.STORE and code[-1]["op"] == Control.EXIT
    with pytest.raises(UsageError, match=r"test\.ptx:.*`vprintf` takes 2 arguments, the call gives 1"):
        kernel("{ .param .b64 a; .param .b32 r; call.uni (r), vprintf, (a); } ret;", declared)
    code = kernel("{ .param .b64 a; call.uni __assertfail, (a); } ret;", declared).code
    assert (code[1]["op"], code[1]["sub"]) == (Control.TRAP, 1)
    with pytest.raises(UsageError, match=r"test\.ptx:.*malloc"):
        kernel("{ .param .b64 a; .param .b64 r; call.uni (r), malloc, (a); } ret;", declared)


# --------------------------------------------------------------------------------------------------------------- errors

UNKNOWN = [
    "frobnicate.u32 %r1, %r2;",
    "add %r1, %r2, %r3;",
    "add.u32.u32 %r1, %r2, %r3;",
    "add.rn.u32 %r1, %r2, %r3;",
    "add.ftz.f64 %fd1, %fd2, %fd3;",
    "add.rn.rz.f32 %f1, %f2, %f3;",
    "add.sat.u32 %r1, %r2, %r3;",
    "fma.f32 %f1, %f2, %f3, %f4;",
    "div.f32 %f1, %f2, %f3;",
    "rcp.approx.f64 %fd1, %fd2;",
    "min.abs.f32 %f1, %f2, %f3;",
    "and.u32 %r1, %r2, %r3;",
    "shl.s32 %r1, %r2, %r3;",
    "mul.s32 %r1, %r2, %r3;",
    "mov.b8 %r1, %r2;",
    "setp.s32 %p1, %r1, %r2;",
    "setp.lo.s32 %p1, %r1, %r2;",
    "setp.lt.b32 %p1, %r1, %r2;",
    "setp.ltu.u32 %p1, %r1, %r2;",
    "setp.lt.nand.s32 %p1, %r1, %r2, %p2;",
    "cvt.s32.f32 %r1, %f1;",
    "cvt.f32.s32 %f1, %r1;",
    "cvt.f32.f64 %f1, %fd1;",
    "cvt.rn.f64.f32 %fd1, %f1;",
    "cvt.rn.s32.s64 %r1, %rd1;",
    "cvta.texture.u64 %rd1, %rd2;",
    "ld.b128 %rd1, [%rd2];",
    "ld.global.v3.u32 {%r1, %r2, %r3}, [%rd1];",
    "ld.shared.nc.u32 %r1, [%rd1];",
    "st.const.u32 [%rd1], %r1;",
    "st.global.nc.u32 [%rd1], %r1;",
    "atom.global.add.b32 %r1, [%rd1], %r2;",
    "atom.local.add.u32 %r1, [%rd1], %r2;",
    "red.global.exch.b32 [%rd1], %r2;",
    "bar.sync.all 0;",
    "bar.red.xor.pred %p1, 0, %p2;",
    "membar.warp;",
    "shfl.sync.left.b32 %r1, %r2, 1, 31, -1;",
    "vote.sync.ballot.pred %p1, %p2, -1;",
    "redux.sync.add.b32 %r1, %r2, -1;",
    "ret.fast;",
    "prmt.b32.b5e %r1, %r2, %r3, %r4;",
    "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1}, [%rd1], %r1;",
]


@pytest.mark.parametrize("line", UNKNOWN)
def test_unknown_instructions(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        kernel(f"\n{line} ret;")
    assert str(caught.value) == f"test.ptx:9: unknown instruction `{line}`"


WRONG = [
    ("add.u32 %r1, %r2;", "takes 3 operands, not 2"),
    ("add.u32 %r1, %r2, %r3, %r4;", "takes 3 operands, not 4"),
    ("min.f32 %f1, %f2;", "takes 4 operands, not 2"),
    ("add.u32 %r1, %rd2, %r3;", "%rd2 has 64 bits, .u32 takes 32"),
    ("add.u32 %rd1, %r2, %r3;", "%rd1 has 64 bits, .u32 takes 32"),
    ("add.u32 %p1, %r2, %r3;", "%p1 has 1 bits"),
    ("add.u32 3, %r2, %r3;", "destination must be a register"),
    ("add.u32 %r1, %r2, [%rd1];", "takes a register or a constant"),
    ("add.f32 %f1, %f2, 3;", "0f or 0d"),
    ("add.s32 %r1, %r2, 0f3F800000;", "floating-point constant is not .s32"),
    ("add.u32 %r1, %r2, %whatever;", "%whatever"),
    ("mov.u64 %rd1, nowhere;", "nowhere is not declared"),
    ("mov.b64 {%r1, %r2, %r3}, %rd1;", "3 elements"),
    ("setp.lt.and.s32 %p1, %r1, %r2;", "takes 4 operands, not 3"),
    ("setp.lt.s32 %r1, %r1, %r2;", "%r1 is not a predicate"),
    ("selp.b32 %r1, %r2, %r3, %r4;", "%r4 is not a predicate"),
    ("cvta.shared.u32 %r1, %r2;", "32 bits are not supported"),
    ("cvt.u32.u16 %r1, %f1, %f2;", "takes 2 operands"),
    ("ld.global.u32 %r1, %rd1;", "address in brackets"),
    ("ld.global.u32 %r1, [%rs1];", "16 bits, an address 32 or 64"),
    ("ld.global.u64 %r1, [%rd1];", "%r1 has 32 bits, .u64 gives 64"),
    ("ld.global.v2.u32 %r1, [%rd1];", "2 elements in braces"),
    ("st.global.u32 [%rd1], {%r1, %r2};", "1 element of data, not 2"),
    ("ld.global.v2.u32 {%r1, %rd1}, [%rd1];", "of one width"),
    ("st.global.u32 [%rd1], %rs1;", "%rs1 has 16 bits, .u32 takes 32"),
    ("st.param.u32 [k0], %r1;", "cannot be written"),
    ("atom.global.add.u32 %r1, [%rd1];", "takes 3 operands"),
    ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5}];", "takes 2 coordinates"),
    ("bra nowhere;", "nowhere is not declared"),
    ("bra k0;", "no label `k0`"),
    ("bra %r1;", "takes a label"),
    ("brx.idx %r1, k0;", ".branchtargets"),
    ("bar.sync;", "takes 1 to 2 operands, not 0"),
    ("shfl.sync.idx.b32 %r1, %r2, 0, 31;", "takes 5 operands, not 4"),
    ("lop3.b32 %r1, %r2, %r3, %r4, 256;", "0 to 255"),
    ("call nothing;", "nothing is not declared"),
    ("call f, (%r1);", "takes 0 arguments, the call gives 1"),
    ("call g;", "`g` calls itself"),
]


@pytest.mark.parametrize(("line", "message"), WRONG, ids=[line for line, _ in WRONG])
def test_wrong_operands(line: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        kernel(f"\n{line} ret;", ".func f() { ret; } .func g() { call g; ret; }", ".param .u32 k0")
    assert message in str(caught.value)
    assert re.match(r"test\.ptx:\d+: ", str(caught.value))


def test_calls_in_calls() -> None:
    def chain(depth: int) -> str:
        return ".func f0() { ret; }\n" + "".join(f".func f{k + 1}() {{ call f{k}; ret; }}\n" for k in range(depth))

    assert len(kernel("call f90; ret;", chain(90)).code)
    with pytest.raises(UsageError, match="calls are nested more than 100 deep"):
        kernel("call f300; ret;", chain(300))


# -------------------------------------------------------------------------------------------------------------- loading


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    return tmp_path / "ptx"


def same(a: Program, b: Program) -> bool:
    return a.kernels.keys() == b.kernels.keys() and all(
        np.array_equal(a.kernels[name].code, b.kernels[name].code) for name in a.kernels
    )


def test_a_loaded_program_is_cached(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load(CENSUS, 255)
    assert len(list(fresh_cache.iterdir())) == 1
    monkeypatch.setattr("lockstep.sim.compile.ptx.build.build", None)  # whoever builds now fails
    second = load(str(CENSUS), 255)
    assert same(first, second)
    assert first.kernels["required"].relocations == second.kernels["required"].relocations


def test_the_cache_knows_text_limit_and_front_end(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + ".entry k() { ret; }\n"
    load(text, 63)
    load(text, 62)
    load(text + "\n", 63)
    monkeypatch.setattr(program, "_sources", lambda passes: "another front end")
    load(text, 63)
    assert len(list(fresh_cache.iterdir())) == 4


def test_a_broken_cache_entry_is_made_again(fresh_cache: Path) -> None:
    text = HEAD + ".entry k() { ret; }\n"
    first = load(text)
    (entry,) = fresh_cache.iterdir()
    for junk in (b"", b"junk", entry.read_bytes()[:50]):
        entry.write_bytes(junk)
        assert same(load(text), first)


def test_loading_errors(fresh_cache: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.ptx: cannot read"):
        load(tmp_path / "nowhere.ptx")
    (tmp_path / "binary.ptx").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        load(tmp_path / "binary.ptx")
    with pytest.raises(UsageError, match=r"outside 16\.\.255"):
        load(CENSUS, 300)
