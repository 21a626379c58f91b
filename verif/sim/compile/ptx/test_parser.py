"""The parser on what compilers write, on every form of operand, declaration and constant, and on what is not PTX."""

from __future__ import annotations

import os
import random
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.sim.compile.ptx import ast
from lockstep.sim.compile.ptx.ast import Address, Immediate, Register, Special, Symbol, Vector
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.errors import MOST, UsageError
from lockstep.verif.bench import seeded

DATA = Path(__file__).parent / "data"
KERNELS = Path(__file__).parents[4] / "sim" / "kernels"
PROLOGUE = ".version 9.0\n.target sm_75\n.address_size 64\n"


def compiled(name: str) -> ast.Module:
    return parse((DATA / name).read_text(encoding="utf-8"), name)


def declared(text: str) -> ast.Module:
    """A module from declarations, which begin at line 4."""
    return parse(PROLOGUE + text, "test.ptx")


def kernel(body: str, before: str = "") -> ast.Function:
    """The kernel ``k(p, q)`` with a body, which begins at line 6, and common registers."""
    registers = ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .reg .f64 %fd<4>; .reg .b32 t;"
    parameters = ".param .u64 p, .param .u32 q"
    text = f"{before}.visible .entry k({parameters})\n{{ {registers}\n{body}\n}}\n"
    return declared(text).functions["k"]


def operands(instruction: str, before: str = "") -> tuple[ast.Operand, ...]:
    statement = kernel(instruction, before).body[-1]
    assert isinstance(statement, ast.Instruction)
    return statement.operands


def integer(value: int) -> Immediate:
    return Immediate(value % 2**64, "int")


def leaves(operand: ast.Operand | None) -> Iterator[ast.Operand]:
    """An operand and everything inside it."""
    if operand is None:
        return
    yield operand
    match operand:
        case ast.Address(base=inner) | ast.Not(item=inner) | ast.Element(item=inner):
            yield from leaves(inner)
        case ast.Pair(first=first, second=second):
            yield from (*leaves(first), *leaves(second))
        case ast.Vector(items=items):
            for item in items:
                yield from leaves(item)
        case ast.Texel(texture=texture, sampler=sampler, coordinates=items):
            for part in (texture, sampler, *items):
                yield from leaves(part)


def check(module: ast.Module) -> int:
    """What must hold of any module: all names resolve, and lines and texts are in place. Returns instructions seen."""
    seen = 0
    for function in module.functions.values():
        labels = [part.name for part in function.body if isinstance(part, ast.Label | ast.BranchTargets)]
        symbols = {*labels, *function.variables, *module.variables, *module.functions, *function.prototypes}
        symbols |= {part.name for part in function.parameters + function.results}
        assert len(labels) == len(set(labels))
        lines = [part.line for part in function.body]
        assert lines == sorted(lines)
        for part in function.body:
            if isinstance(part, ast.BranchTargets):
                assert set(part.labels) <= set(labels)
            if not isinstance(part, ast.Instruction | ast.Call):
                continue
            seen += 1
            assert part.text.endswith(";") and "\n" not in part.text
            assert part.guard is None or function.registers[part.guard.name] == "pred"
            if isinstance(part, ast.Call):
                used = (*part.results, *part.arguments)
                assert part.prototype is None or part.prototype in function.prototypes
                known = function.registers if isinstance(part.target, Register) else module.functions
                assert getattr(part.target, "name", part.target) in known
            else:
                used = part.operands
            for leaf in (leaf for operand in used for leaf in leaves(operand)):
                if isinstance(leaf, Register):
                    assert leaf.name in function.registers
                if isinstance(leaf, Symbol):
                    assert leaf.name in symbols
    return seen


# ---- Whole files


def statements(text: str) -> int:
    """How many instructions a text has, counted without a grammar: statements that begin with an opcode or a guard."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/|\.section[^{]*{[^}]*}|\.(loc|file)\s[^\n]*", " ", text, flags=re.DOTALL)
    pieces = (re.sub(r"^(\s|[{}]|[\w$]+\s*:(?!:))+", "", piece) for piece in text.split(";"))
    bodies = (piece.rsplit("{")[-1].strip() if piece.startswith(".") else piece for piece in pieces)
    return sum(bool(re.match("[a-z@]", piece)) for piece in bodies)


FILES = [*sorted(DATA.glob("*.ptx")), *sorted(KERNELS.glob("*/*.ptx"))]


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_compiled_files(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert check(parse(text, str(path))) == statements(text) > 0


@pytest.mark.parametrize("suffix", ["75", "100"])
def test_declarations_of_nvcc(suffix: str) -> None:
    module = compiled(f"declarations_{suffix}.ptx")
    assert module.version == (9, 0) and module.target == f"sm_{suffix}" and module.address_size == 64
    function = module.functions["declarations"]
    assert function.entry and function.defined and module.functions["bounded"].maxntid == (256, 1, 1)
    assert module.functions["bounded"].minnctapersm == 4
    point, vector, small, source, _ = function.parameters
    assert (point.bytes, point.align, point.is_array) == (40, 8, True)
    assert (vector.bytes, vector.align, vector.is_array) == (16, 16, True)
    assert (small.bytes, small.type, small.is_array) == (1, "u8", False)
    assert source.pointer_space == (None if suffix == "75" else "generic")
    coefficients = module.variables["coefficients"]
    assert coefficients.space == "const" and coefficients.initial is not None and len(coefficients.initial) == 32
    assert struct.unpack("<8f", coefficients.initial) == (1, 2, 3.5, -4e10, 0, 0, 0, 0)
    assert module.variables["counter"].initial == struct.pack("<i", -7)
    assert struct.unpack("<24h", module.variables["matrix"].initial or b"") == (1, 2, 0, 0, 3, *[0] * 7, -1, *[0] * 11)
    assert module.variables["half"].initial == struct.pack("<d", 0.5)
    assert module.variables["empty"].initial is None and module.variables["empty"].bytes == 400
    assert module.variables["inner"].relocations == ((0, Symbol("matrix", 36), True),)
    points = module.variables["points"]
    assert points.bytes == 80 and points.initial is not None and points.initial[:1] == b"a"
    assert struct.unpack_from("<f", points.initial, 4) == (1.5,)
    assert points.relocations == (
        (8, Symbol("counter"), True),
        (24, Symbol("$str$1"), True),
        (64, Symbol("$str$2"), True),
    )
    dynamic = module.variables["dynamic"]
    assert (dynamic.space, dynamic.bytes, dynamic.extern, dynamic.align) == ("shared", 0, True, 16)
    tile = function.variables["_ZZ12declarationsE4tile"]
    assert (tile.space, tile.bytes, tile.align) == ("shared", 512, 16)


@pytest.mark.parametrize("name", ["calls_75.ptx", "calls_100.ptx", "calls_debug_75.ptx"])
def test_calls_of_nvcc(name: str) -> None:
    module = compiled(name)
    recursive = module.functions["_Z9fibonaccii"]
    assert not recursive.entry and [part.name for part in recursive.results] == ["func_retval0"]
    assert not module.functions["vprintf"].defined
    calls = [part for part in module.functions["calls"].body if isinstance(part, ast.Call)]
    assert {"_Z9fibonaccii", "vprintf"} <= {part.target for part in calls if isinstance(part.target, str)}
    indirect = [part for part in calls if isinstance(part.target, Register)]
    assert len(indirect) == 2
    prototype = module.functions["calls"].prototypes[indirect[0].prototype or ""]
    assert [part.type for part in prototype.results] == ["b32"]
    assert [part.bytes for part in prototype.parameters] == [4, 4]
    parameters = [part for part in module.functions["calls"].variables if part.startswith("param0")]
    assert len(parameters) == len(calls)  # each call sequence has its own
    table = ((0, Symbol("_Z4plusfi"), False), (8, Symbol("_Z5timesfi"), False))
    assert module.variables["operations"].relocations == table


@pytest.mark.parametrize("name", ["scopes_75.ptx", "scopes_100.ptx"])
def test_scopes_of_inline_assembly(name: str) -> None:
    function = compiled(name).functions["scopes"]
    assert [part.name for part in function.body if isinstance(part, ast.Label)] == ["Skip", "Skip@1"]
    branches = [part for part in function.body if isinstance(part, ast.Instruction) and part.opcode == "bra"]
    assert [part.operands for part in branches] == [(Symbol("Skip"),), (Symbol("Skip@1"),)]
    assert all(part.guard_not for part in branches)
    assert {name for name in function.registers if name.startswith("t1")} == {"t1", "t1@1", "t1@2", "t1@3"}
    load = next(part for part in function.body if isinstance(part, ast.Instruction) and "v4" in part.modifiers)
    lanes = tuple(Register(f"v.{axis}") for axis in "xyzw")
    assert load.operands == (Vector(lanes), Address(Register("a"), -16))


# ---- Operands


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mov.u32 %r1, %r2;", Register("%r2")),
        ("mov.u32 %r1, t;", Register("t")),
        ("mov.u32 %r1, %tid.x;", Special("%tid.x")),
        ("mov.u32 %r1, %clock_hi;", Special("%clock_hi")),
        ("mov.u32 %r1, %envreg31;", Special("%envreg31")),
        ("mov.v4.u32 %r1, %ctaid;", Vector((*(Special(f"%ctaid.{a}") for a in "xyz"), integer(0)))),
        ("mov.u32 %r1, %ntid.w;", integer(0)),
        ("mov.u32 %r1, WARP_SZ;", integer(32)),
        ("mov.u32 %r1, 0x1F;", integer(31)),
        ("mov.u32 %r1, 0x1FU;", integer(31)),
        ("mov.u32 %r1, 017;", integer(15)),
        ("mov.u32 %r1, 0b101;", integer(5)),
        ("mov.u32 %r1, -1;", integer(-1)),
        ("mov.u64 %rd1, 18446744073709551615;", integer(-1)),
        ("mov.f32 %f1, 0f3F800000;", Immediate(0x3F800000, "f32")),
        ("mov.f32 %f1, 0F7fc00001;", Immediate(0x7FC00001, "f32")),
        ("mov.f64 %fd1, 0d7FF4000000000001;", Immediate(0x7FF4000000000001, "f64")),
        ("mov.f64 %fd1, 1.5;", Immediate(0x3FF8000000000000, "f64")),
        ("mov.f64 %fd1, -0.0;", Immediate(1 << 63, "f64")),
        ("mov.f64 %fd1, 15e-1;", Immediate(0x3FF8000000000000, "f64")),
        ("mov.u64 %rd1, p;", Symbol("p")),
        ("mov.u64 %rd1, p+4;", Symbol("p", 4)),
        ("mov.u64 %rd1, k;", Symbol("k")),
        ("ld.u32 %r1, [%rd1];", Address(Register("%rd1"))),
        ("ld.u32 %r1, [ %rd1 + 16 ];", Address(Register("%rd1"), 16)),
        ("ld.u32 %r1, [%rd1+-16];", Address(Register("%rd1"), -16)),
        ("ld.u32 %r1, [%rd1-0x10];", Address(Register("%rd1"), -16)),
        ("ld.u32 %r1, [%rd1-4+2*8];", Address(Register("%rd1"), 12)),
        ("ld.param.u32 %r1, [q+0];", Address(Symbol("q"))),
        ("ld.u32 %r1, [0x100];", Address(integer(0x100))),
        ("ld.u32 %r1, [(1<<4)+8];", Address(integer(24))),
        ("mov.b64 %rd1, {%r1, %r2};", Vector((Register("%r1"), Register("%r2")))),
        ("mov.b64 %rd1, {_, 3};", Vector((ast.Sink(), integer(3)))),
        ("and.pred %p1, !%p2;", ast.Not(Register("%p2"))),
        ("shfl.sync.up.b32 %r1, %r2|%p1;", ast.Pair(Register("%r2"), Register("%p1"))),
        ("setp.lt.s32 %p1, %p2|_;", ast.Pair(Register("%p2"), ast.Sink())),
        ("tex.1d.v2.f32.s32 {%f1, %f2}|%p1;", ast.Pair(Vector((Register("%f1"), Register("%f2"))), Register("%p1"))),
        ("vadd.u32.u32.u32 %r1, %r2.b3;", ast.Element(Register("%r2"), "b3")),
        ("vadd2.u32.u32.u32 %r1, %r2.h10;", ast.Element(Register("%r2"), "h10")),
        (
            "tex.2d.v4.f32.f32 %r1, [%rd1, {%f1, %f2}];",
            ast.Texel(Register("%rd1"), None, (Register("%f1"), Register("%f2"))),
        ),
        ("tex.1d.v4.f32.s32 %r1, [%rd1, %r2];", ast.Texel(Register("%rd1"), None, (Register("%r2"),))),
        (
            "tex.1d.v4.f32.s32 %r1, [%rd1, %rd2, {%r2}];",
            ast.Texel(Register("%rd1"), Register("%rd2"), (Register("%r2"),)),
        ),
    ],
)
def test_operand_forms(text: str, expected: ast.Operand) -> None:
    assert operands(text)[-1] == expected


def test_texture_references_are_symbols() -> None:
    before = ".global .texref modern;\n.tex .u32 old;\n.global .samplerref s;\n.global .surfref surface[4];\n"
    assert operands("tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [modern, s, {%r1}];", before)[-1] == ast.Texel(
        Symbol("modern"), Symbol("s"), (Register("%r1"),)
    )
    variables = declared(before).variables
    assert [part.space for part in variables.values()] == ["texref", "texref", "samplerref", "surfref"]
    assert variables["surface"].count == 4


def test_vector_registers_become_their_elements() -> None:
    function = kernel(".reg .v2 .f32 v; mov.f32 v.x, v.g; st.v2.f32 [%rd1], v;")
    move, store = function.body
    assert isinstance(move, ast.Instruction) and isinstance(store, ast.Instruction)
    assert move.operands == (Register("v.x"), Register("v.y"))
    assert store.operands[1] == Vector((Register("v.x"), Register("v.y")))
    assert function.registers["v.x"] == function.registers["v.y"] == "f32" and "v" not in function.registers


# ---- Statements


def test_opcode_modifiers_guard_line_and_text() -> None:
    opcode = "@!%p1 ld.volatile.shared::cta.L2::128B.v2.u32"
    function = kernel(f"{opcode} // a comment\n  {{%r1,\n %r2}}, /* and\n more */ [%rd1+8];\nret;")
    load, end = function.body
    assert isinstance(load, ast.Instruction)
    assert (load.opcode, load.modifiers) == ("ld", ("volatile", "shared::cta", "L2::128B", "v2", "u32"))
    assert (load.guard, load.guard_not, load.line) == (Register("%p1"), True, 6)
    assert load.text == f"{opcode} {{%r1, %r2}}, [%rd1+8];"
    assert isinstance(end, ast.Instruction) and (end.opcode, end.operands, end.line, end.guard) == ("ret", (), 10, None)


def test_comments_pragmas_and_debug_information_are_ignored() -> None:
    text = """
    .file 1 "dir//a.cu", 123, 45
    .func helper() .pragma "nounroll"; { ret; } // { not a block
    @@DWARF .section .debug_x
    /* .entry no() { } */
    .entry k() .pragma "a", "b";
    { .loc 1 2 3, function_name $L__info_string0, inlined_at 1 5 112
      $L__tmp0: .pragma "nounroll"; ;;
      ret; /* // */ }
    .section .debug_str { $L__info_string0: .b8 95,0
    .b32 $L__tmp0 }
    .section .debug_loc { }
    """
    module = declared(text)
    assert [type(part) for part in module.functions["k"].body] == [ast.Label, ast.Instruction]
    assert len(module.functions["helper"].body) == 1


def test_labels_are_visible_before_and_in_nested_blocks() -> None:
    function = kernel("bra End;\n{ bra End; { End: bra End; } bra End; }\nEnd: ret;\n{ End: bra End; }")
    targets = [part.operands[0] for part in function.body if isinstance(part, ast.Instruction) and part.opcode == "bra"]
    inner = {part.name for part in function.body if isinstance(part, ast.Label)} - {"End"}
    assert [targets[0], targets[1], targets[3]] == [Symbol("End")] * 3
    assert {targets[2], targets[4]} == {Symbol(name) for name in inner} and len(inner) == 2


def test_inner_declarations_hide_outer_ones() -> None:
    body = "{ .reg .f32 t; .shared .f32 v[3]; mov.f32 t, v; { .reg .b64 t; } }\nmov.u32 t, v;"
    function = kernel(body, ".global .u32 v;\n")
    inside, outside = function.body
    assert isinstance(inside, ast.Instruction) and isinstance(outside, ast.Instruction)
    assert inside.operands == (Register("t@1"), Symbol("v@1")) and outside.operands == (Register("t"), Symbol("v"))
    assert [function.registers[name] for name in ("t", "t@1", "t@2")] == ["b32", "f32", "b64"]
    assert function.variables["v@1"].bytes == 12


def test_branch_tables() -> None:
    function = kernel("table: .branchtargets A, B, A;\n@%p1 brx.idx.uni %r1, table;\nA: ret;\nB: trap;")
    targets, branch = function.body[:2]
    assert targets == ast.BranchTargets("table", ("A", "B", "A"), 6)
    assert isinstance(branch, ast.Instruction) and branch.operands == (Register("%r1"), Symbol("table"))


def test_calls() -> None:
    before = """
    .extern .func (.param .b32 out) f (.param .b64 a, .param .align 8 .b8 b[12]) .noreturn;
    .func g; .func (.reg .u32 r) h (.reg .u32 a) { add.u32 r, a, 1; ret; }
    """
    function = kernel(
        """{ .param .b32 x; .param .b64 y;
        like : .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 4 .b8 _[12]);
        some: .calltargets f;
        call.uni (x), f, (y, 3);
        call g;
        @%p1 call (x), %rd1, (y), like;
        call %rd1, (), some;
        call (%r1), h, (%r2); }""",
        before,
    )
    direct, bare, indirect, listed, registers = function.body
    assert isinstance(direct, ast.Call) and isinstance(indirect, ast.Call) and isinstance(listed, ast.Call)
    assert (direct.results, direct.target, direct.arguments) == ((Symbol("x"),), "f", (Symbol("y"), integer(3)))
    assert isinstance(bare, ast.Call) and (bare.results, bare.target, bare.arguments) == ((), "g", ())
    assert (indirect.target, indirect.prototype, indirect.guard) == (Register("%rd1"), "like", Register("%p1"))
    assert [part.bytes for part in function.prototypes["like"].parameters] == [8, 12]
    assert listed.prototype == "some" and [part.bytes for part in function.prototypes["some"].parameters] == [8, 12]
    assert isinstance(registers, ast.Call) and registers.arguments == (Register("%r2"),)
    module = declared(before)
    assert not module.functions["f"].defined
    assert module.functions["h"].registers == {"r": "u32", "a": "u32"}


# ---- Declarations


def test_entries_and_their_directives() -> None:
    text = """.weak .entry a(.param .u64 .ptr .global .align 16 x, .param .b8 y[], .param .align 4 .b8 z[2][3],
        .param .v4 .f32 w, .param .u64 .ptr t) .maxntid 64, 2 .minnctapersm 3 .maxnreg 40 .explicitcluster
        .reqnctapercluster 2, 1, 1 { }
        .entry b .reqntid 32 { ret; }
        .alias c, d; """
    module = declared(".func d() { ret; }\n" + text)
    a, b = module.functions["a"], module.functions["b"]
    assert (a.maxntid, a.minnctapersm, a.maxnreg, a.reqntid, a.line) == ((64, 2, 1), 3, 40, None, 5)
    assert b.reqntid == (32, 1, 1) and b.parameters == ()
    x, y, z, w, t = a.parameters
    assert (x.pointer_space, x.align, x.bytes) == ("global", 8, 8) and t.pointer_space == "generic"
    assert (y.bytes, y.is_array) == (0, True) and (z.bytes, z.align) == (6, 4) and (w.bytes, w.align) == (16, 16)
    assert module.functions["c"] is module.functions["d"]


@pytest.mark.parametrize(
    ("text", "size", "initial"),
    [
        (".global .u32 x;", 4, None),
        (".global .u32 x = -2;", 4, struct.pack("<i", -2)),
        (".const .align 8 .u16 x[] = {1, 2, 3};", 6, struct.pack("<3H", 1, 2, 3)),
        (".const .u8 x[4] = {0xFF, 0x1, };", 4, b"\xff\x01\0\0"),
        (".global .s8 x[2][3] = {{1, 2}, {-1}};", 6, bytes([1, 2, 0, 255, 0, 0])),
        (".global .s8 x[][2] = {{1}, {2}, {3}};", 6, bytes([1, 0, 2, 0, 3, 0])),
        (".global .s8 x[][2] = {1, 2, 3};", 4, bytes([1, 2, 3, 0])),
        (".global .f32 x[3] = {1.5, 0f40000000, -3};", 12, struct.pack("<3f", 1.5, 2, -3)),
        (".global .f32 x = 1e300;", 4, struct.pack("<f", float("inf"))),
        (".global .f64 x[2] = {1.0 / 4, 0d4000000000000000};", 16, struct.pack("<2d", 0.25, 2)),
        (".global .f32 x = 0f7F800001;", 4, struct.pack("<I", 0x7F800001)),
        (".global .f64 x = 0f40000000;", 8, struct.pack("<d", 2)),
        (".global .b32 x = 0f40000000;", 4, struct.pack("<f", 2)),
        (".global .f16 x = 1.5;", 2, struct.pack("<e", 1.5)),
        (".global .v4 .f32 x[2] = {{1, 2, 3, 4}, {5}};", 32, struct.pack("<8f", 1, 2, 3, 4, 5, 0, 0, 0)),
        (".global .v2 .u32 x = {7, 8};", 8, struct.pack("<2I", 7, 8)),
        (".visible .global .align 4 .b32 x[2*3] = {1 + 2 * 3};", 24, struct.pack("<6I", 7, *[0] * 5)),
        (".global .attribute(.managed) .align 4 .u32 x = 5;", 4, struct.pack("<I", 5)),
        (".extern .shared .align 16 .b8 x[];", 0, None),
    ],
)
def test_initial_values(text: str, size: int, initial: bytes | None) -> None:
    variable = declared(text).variables["x"]
    assert (variable.bytes, variable.initial) == (size, initial)


def test_addresses_in_initial_values() -> None:
    masks = ", ".join(f"{0xFF << 8 * byte:#X}(generic(y))".replace("X", "x") for byte in range(8))
    module = declared(
        f""".global .u32 y[4], z; .func f() {{ ret; }}
        .global .u64 a[5] = {{y, y+8, generic(y)+4, f, generic(y+12)}};
        .global .align 1 .b8 b[11] = {{7, {masks}, 9}};"""
    )
    a, b = module.variables["a"], module.variables["b"]
    assert a.initial == bytes(40)
    assert a.relocations == (
        (0, Symbol("y"), False),
        (8, Symbol("y", 8), False),
        (16, Symbol("y", 4), True),
        (24, Symbol("f"), False),
        (32, Symbol("y", 12), True),
    )
    assert b.initial == bytes([7, *[0] * 8, 9, 0]) and b.relocations == ((1, Symbol("y"), True),)


def test_variables_of_functions_at_module_scope() -> None:
    """Each function has its own, with a name of its own."""
    text = ".func f() { .global .u32 x = 1; .reg .u64 a; mov.u64 a, x; ret; }\n"
    module = declared(text + text.replace("f()", "g()").replace("= 1", "= 2"))
    assert [part.initial for part in module.variables.values()] == [struct.pack("<I", 1), struct.pack("<I", 2)]
    moves = [module.functions[name].body[0] for name in "fg"]
    assert [part.operands[1] for part in moves if isinstance(part, ast.Instruction)] == [Symbol("x"), Symbol("x@g")]


def test_a_trailing_zero_byte_and_an_early_alias() -> None:
    module = parse(PROLOGUE + ".func b();\n.alias a, b;\n.func b() { ret; }\n\0", "test.ptx")
    assert module.functions["a"].defined


def test_definitions_complete_declarations() -> None:
    variables = ".extern .global .u32 x;\n.global .u32 x = 3;\n.extern .global .u32 x;\n"
    module = declared(variables + ".func f();\n.func f() { ret; }\n.func f();")
    assert module.variables["x"].initial == struct.pack("<I", 3)
    assert module.functions["f"].defined and len(module.functions["f"].body) == 1


# ---- Constant expressions


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7U / 2", 3),
        ("-1 / 2U", 2**63 - 1),
        ("-1 > 0U", 1),
        ("-1 > 0", 0),
        ("-8 >> 1", -4),
        ("(.u64)-8 >> 1", 2**63 - 4),
        ("1 << 64", 0),
        ("~0", -1),
        ("~0 >> 63", 1),
        ("!5 + !0", 1),
        ("6 & 3 | 8 ^ 1", 11),
        ("1 || 0 && 0", 1),
        ("2 == 2 != 0", 1),
        ("1 ? 2 : 0 ? 3 : 4", 2),
        ("0 ? 2 : 0 ? 3 : 4", 4),
        ("(.s64)0xFFFFFFFFFFFFFFFF < 0", 1),
        ("(.s64)2.75", 2),
        ("1.5 < 2", 1),
        ("WARP_SZ - 1", 31),
        ("9223372036854775807 + 1", -(2**63)),
    ],
)
def test_constant_expressions(text: str, value: int) -> None:
    assert operands(f"mov.u64 %rd1, {text};")[1] == integer(value)


def test_random_constant_expressions() -> None:
    """Against a reference that works on (bits, unsigned), with every operand in parentheses or not by precedence."""
    seed = int(os.environ.get("LOCKSTEP_SEED", random.randrange(2**32)))
    print(f"LOCKSTEP_SEED={seed}")
    generator = random.Random(seed)
    levels = [["|"], ["^"], ["&"], ["==", "!="], ["<", "<=", ">", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]
    top = len(levels)

    def wrap(value: int, unsigned: bool) -> int:
        value %= 2**64
        return value if unsigned or value < 2**63 else value - 2**64

    def make(depth: int, level: int) -> tuple[str, int, bool]:
        """Text at a precedence level, its value, and if that is unsigned."""
        if depth == 0 or generator.random() < 0.2:
            value = generator.choice([generator.randrange(64), generator.getrandbits(63)])
            unsigned = generator.random() < 0.3
            return f"{value}{'U' if unsigned else ''}", value, unsigned
        place = generator.randrange(top)
        sign = generator.choice(levels[place])
        left, a, left_unsigned = make(depth - 1, place)
        right, b, right_unsigned = make(depth - 1, place + 1)
        unsigned = left_unsigned or right_unsigned
        x, y = wrap(a, unsigned), wrap(b, unsigned)
        if sign in ("/", "%") and y == 0:
            return f"({left})", a, left_unsigned
        match sign:
            case "+" | "-" | "*":
                value = {"+": x + y, "-": x - y, "*": x * y}[sign]
            case "/" | "%":
                quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
                value = quotient if sign == "/" else x - quotient * y
            case "<<" | ">>":
                distance, unsigned = min(b % 2**64, 64), left_unsigned
                value = a << distance if sign == "<<" else a >> distance
            case "&" | "|" | "^":
                value, unsigned = {"&": a & b, "|": a | b, "^": a ^ b}[sign], True
            case _:
                truth = {"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}
                value, unsigned = int(truth[sign]), False
        text = f"{left} {sign} {right}"
        return (f"({text})" if place < level else text), wrap(value, unsigned), unsigned

    for text, value, _ in [make(4, 0) for _ in range(200)]:
        assert operands(f"mov.u64 %rd1, {text};")[1] == integer(value), text


# ---- Errors

_BODY = PROLOGUE + ".entry k() {{ .reg .b32 %r<3>; .reg .pred %p; .reg .v2 .b32 v;\n{}\n}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "test.ptx: not a PTX module: the file is empty"),
        (" \n ", "test.ptx: not a PTX module: the file is empty"),
        ("// nothing\n", "test.ptx: not a PTX module: it must begin with .version and .target"),
        ("#include <cuda.h>\n", "test.ptx:1: cannot be parsed as PTX, near '#include <cuda.h>'"),
        (".version 9.0\n.target sm_75\n.address_size 32\n", "test.ptx:3: only .address_size 64 is supported, near"),
        (_BODY.format("add.s32 %r1 %r2;"), "test.ptx:5: cannot be parsed as PTX, near '%r2;'"),
        (_BODY.format("add.s32 %r1, %r2\nret;"), "test.ptx:6: cannot be parsed as PTX, near 'ret;'"),
        (_BODY.format("mov.u32 %r1, [%r2;"), "test.ptx:5: cannot be parsed as PTX, near ';'"),
        (_BODY.format("mov.u32 %r1, ?;"), "test.ptx:5: cannot be parsed as PTX, near '?;'"),
        (_BODY.format("ret; /* no end"), "test.ptx:5: cannot be parsed as PTX, near '/* no end'"),
        (_BODY.format("{ ret;"), "test.ptx: the PTX ends in the middle"),
        (_BODY.format("mov.u32 %r1, %r3;"), "test.ptx:5: %r3 is not declared, near 'mov.u32 %r1, %r3;'"),
        (_BODY.format("@%q bra A;\nA:"), "test.ptx:5: %q is not declared"),
        (_BODY.format("ret;\nbra Nowhere;"), "test.ptx:6: Nowhere is not declared, near 'bra Nowhere;'"),
        (_BODY.format("{ L: ret; }\nbra L;"), "test.ptx:6: L is not declared"),
        (_BODY.format("{ .reg .b32 x; }\nmov.u32 x, 1;"), "test.ptx:6: x is not declared"),
        (_BODY.format("t: .branchtargets A, B;\nA:"), "test.ptx:5: B is not declared"),
        (_BODY.format("call missing, (%r1);"), "test.ptx:5: missing is not declared"),
        (_BODY.format("L: call L;"), "test.ptx:5: L is not a function"),
        (_BODY.format("L: @L ret;"), "test.ptx:5: L is not a register"),
        (_BODY.format("L:\nL: ret;"), "test.ptx:6: L is declared twice"),
        (_BODY.format(".reg .b32 %r1;"), "test.ptx:5: %r1 is declared twice"),
        (_BODY.format(".reg .b32 %x<4294967295>;"), "test.ptx:5: 4294967300 registers are more than"),
        (_BODY.format("{" * 3000 + "}" * 3000), "test.ptx: blocks or expressions are nested too deeply"),
        (_BODY.format("mov.u32 %r1, %tid.q;"), "test.ptx:5: cannot be parsed as PTX"),
        (_BODY.format("mov.u32 %r1, %tidy;"), "test.ptx:5: %tidy is not declared"),
        (_BODY.format("mov.u32 %r1, %r2.x;"), "test.ptx:5: %r2 has no element .x"),
        (_BODY.format("mov.u32 %r1, v.z;"), "test.ptx:5: v has no element .z"),
        (_BODY.format("mov.u32 %r1, %r2+4;"), "test.ptx:5: %r2 is not a label or an address"),
        (_BODY.format("ld.u32 %r1, [%tid.x];"), "test.ptx:5: an address is [register], [symbol] or [number]"),
        (_BODY.format("mov.u32 %r1, 1/0;"), "test.ptx:5: division by zero in a constant expression"),
        (_BODY.format("mov.u32 %r1, 089;"), "test.ptx:5: 089 is not an octal number"),
        (_BODY.format("mov.u32 %r1, 0x10000000000000000;"), "test.ptx:5: 0x10000000000000000 does not fit in 64 bits"),
        (_BODY.format("mov.u32 %r1, 0f3F800000 + 1;"), "test.ptx:5: a number written as 0fXXXXXXXX"),
        (_BODY.format("mov.u32 %r1, ~1.5;"), "test.ptx:5: ~ does not apply"),
        (_BODY.format("mov.u32 %r1, (.b32)1;"), "test.ptx:5: a constant can be cast to .s64 and .u64"),
        (_BODY.format("ld.u32 %r1, [%r2+1.5];"), "test.ptx:5: an integer is expected here"),
        (_BODY.format(".shared .b32 x = 3;"), "test.ptx:5: x: .shared variables have no initial value"),
        (PROLOGUE + ".local .b32 x;", "test.ptx:4: a .local variable must be declared in a function"),
        (PROLOGUE + ".global .b32 x;\n.global .b32 x;", "test.ptx:5: x is declared twice"),
        (PROLOGUE + ".func f() {}\n.func f() {}", "test.ptx:5: f is defined twice"),
        (PROLOGUE + ".alias a, b;", "test.ptx:4: b is not a function"),
        (PROLOGUE + ".global .b32 x[2] = {1, 2, 3};", "test.ptx:4: x: more initial values than elements"),
        (PROLOGUE + ".global .b32 x[][0] = {1};", "test.ptx:4: x: more initial values than elements"),
        (PROLOGUE + ".global .b32 x[2][0] = {{}};", "test.ptx:4: x: more initial values than elements"),
        (_BODY.format(".reg .b32 %x<9>;\n.reg .b32 %y<1048570>;"), "test.ptx:6: 1048584 registers are more than a"),
        (PROLOGUE + ".global .b8 x[1<<33];", "test.ptx:4: x: 8589934592 bytes are more than a variable can have"),
        (PROLOGUE + ".global .b8 x[][1<<33] = {1};", "test.ptx:4: x: 8589934592 bytes are more than"),
        (PROLOGUE + ".entry k() .maxntid { }", "test.ptx:4: .maxntid takes a number"),
        (PROLOGUE + ".global .b32 x[2][] = {1};", "test.ptx:4: x: only the first dimension"),
        (PROLOGUE + ".global .b32 x[-1];", "test.ptx:4: x: an array cannot have a negative size"),
        (PROLOGUE + ".global .align 3 .b32 x;", "test.ptx:4: an alignment must be a power of two"),
        (PROLOGUE + ".global .b32 x = {{1}};", "test.ptx:4: x: too many nested braces"),
        (PROLOGUE + ".global .b32 x[2][2] = {1, {2}};", "test.ptx:4: x: a nested brace in the middle of a row"),
        (PROLOGUE + ".global .b32 x = 1.5;", "test.ptx:4: x: a floating-point value does not fit in .b32"),
        (PROLOGUE + ".global .b32 x = y;", "test.ptx:4: x: an address needs elements of 64 bits"),
        (PROLOGUE + ".global .b64 x = y;", "test.ptx:4: y, in the initial value of x, is not declared"),
        (PROLOGUE + ".global .b8 x[2] = {0xFF(x), 0xFF00(x)};", "test.ptx:4: x: an address takes 8 bytes"),
        (PROLOGUE + ".global .b8 x[2] = {0xFF00(x)};", "test.ptx:4: x: the bytes of an address must stand together"),
        (PROLOGUE + ".global .b8 x[2] = {0x0(x)};", "test.ptx:4: x: 0x0(x) must choose one byte"),
        (PROLOGUE + ".global .samplerref s = { filter_mode = linear };", "test.ptx:4: s: the state of a samplerref"),
    ],
)
def test_errors_are_one_line_with_the_place(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "test.ptx")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def _plain(rng: random.Random, kind: str) -> tuple[str, int | float]:
    """A number of a kind in a form that PTX has, and its value."""
    if kind.startswith("f"):
        value = struct.unpack("<f", struct.pack("<f", rng.uniform(-1e9, 1e9)))[0]
        bits = struct.pack(">f", value) if kind == "f32" else struct.pack(">d", value)
        return rng.choice([f"0{'f' if kind == 'f32' else 'D'}{bits.hex().upper()}", repr(value)]), value
    value = rng.choice([rng.randrange(256), rng.randrange(1 << 64), 0, 8])
    sign, size = rng.choice(["", "-", "- "]), int(kind[1:])
    form = rng.choice(["{}", "{}U", "{:#x}", "0X{:X}U", "0{:o}", "{:#b}", "0B{:b}"])
    return sign + form.format(value), (-value if sign else value) % (1 << size)


def test_lists_of_plain_numbers_are_read_like_others() -> None:
    """In one piece, unless an expression stands among them."""
    rng = seeded()
    for _ in range(200):
        kind = rng.choice(["b8", "s16", "u32", "b64", "f32", "f64"])
        numbers = [_plain(rng, kind) for _ in range(rng.randrange(1, 12))]
        code = {"b8": "B", "s16": "H", "u32": "I", "b64": "Q", "f32": "f", "f64": "d"}[kind]
        content = struct.pack(f"<{len(numbers)}{code}", *(value for _, value in numbers))
        text = rng.choice([",", " , ", ",\n "]).join(text for text, _ in numbers) + rng.choice(["", ",", " ,\n"])
        for items in (text, text.replace(numbers[0][0], f"({numbers[0][0]})", 1)):
            for extent in ("", len(numbers), len(numbers) + 2):
                [variable] = declared(f".global .{kind} x[{extent}] = {{{items}}};").variables.values()
                assert variable.initial is not None and variable.initial.rstrip(b"\0") == content.rstrip(b"\0"), items
        bare = text.rstrip(", \n")
        with pytest.raises(UsageError, match="more initial values than elements"):
            declared(f".global .{kind} x[{len(numbers)}] = {{{bare}, 1}};")


def test_numbers_among_addresses() -> None:
    """As compilers write structs of constants and pointers."""
    numbers = ", ".join(map(str, range(40)))
    text = f".global .u32 x;\n.global .u64 t[] = {{{numbers}, x, -1, 1 + 2, x+4, 7}};"
    variable = declared(text).variables["t"]
    assert variable.initial == struct.pack("<45q", *range(40), 0, -1, 3, 0, 7)
    assert variable.relocations == ((320, Symbol("x"), False), (344, Symbol("x", 4), False))


@pytest.mark.parametrize(
    ("text", "initial"),
    [("x[2] = {}", bytes(8)), ("x[2] = {1,}", b"\1" + bytes(7)), ("x[2][2] = {{}, 1}", bytes(8) + b"\1" + bytes(7))],
)
def test_lists_that_are_not_full(text: str, initial: bytes) -> None:
    [variable] = declared(f".global .u32 {text};").variables.values()
    assert variable.initial == initial


def test_nested_lists_of_plain_numbers() -> None:
    [variable] = declared(".global .u8 x[][3] = {{1, 2}, {3, 4, 5}, {6}};").variables.values()
    assert variable.initial == bytes([1, 2, 0, 3, 4, 5, 6, 0, 0])
    [variable] = declared(".global .u8 x[][3] = {1, 2, 3, 4};").variables.values()
    assert variable.initial == bytes([1, 2, 3, 4, 0, 0])


def test_a_short_text_about_gigabytes_takes_none() -> None:
    [variable] = declared(".global .u8 x[2][2147483647] = {{1}, {2}};").variables.values()
    assert variable.bytes == 4294967294 and variable.pieces == ((0, b"\1"), (2147483647, b"\2"))
    [variable] = declared(".global .u8 x[4] = {1, 2};").variables.values()
    assert variable.pieces == ((0, b"\1\2"),)


LONG = "9" * 5000


@pytest.mark.parametrize(
    "text",
    [
        f".global .u32 x = {LONG};", f".global .u32 x = -0x{LONG};", f".global .u32 x = 0{LONG};",
        f".global .u32 x[2] = {{1, {LONG}}};", f".global .u32 x[{LONG}];", f".global .align {LONG} .u32 x;",
        f".global .u8 x[8] = {{{LONG}(y)}};", f".global .u64 x = y{LONG};", f".entry k() .maxntid {LONG} {{ ret; }}",
        f".entry k() {{ .reg .u32 %r<{LONG}>; }}", f".entry k() {{ .reg .u32 %r; mov.u32 %r, {LONG}; }}",
        f".entry k() {{ .reg .u32 %r; mov.u32 %r{LONG}, 1; }}", f".version {LONG}.{LONG}",
        ".global .u64 x = (.s64) 1e999;", ".global .u64 x = (.u64) (0.0 / 0.0);",
    ],
    ids=lambda text: text.replace(LONG, "LONG"),
)  # fmt: skip
def test_numbers_of_any_length_are_refused_briefly(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        declared(text)
    assert len(str(caught.value)) < MOST + 10 and str(caught.value).startswith("test.ptx:4: ")


def test_long_numbers_do_not_fit() -> None:
    for digits in (LONG, "1" + "0" * 20, "18446744073709551616"):
        with pytest.raises(UsageError, match="does not fit in 64 bits"):
            declared(f".global .u64 x = {digits};")


def test_leading_zeros_do_not_count() -> None:
    zeros = "0" * 5000
    [variable] = declared(f".global .u32 x[3] = {{{zeros}, {zeros}17, 0x{zeros}f}};").variables.values()
    assert variable.initial == struct.pack("<3I", 0, 0o17, 15)
