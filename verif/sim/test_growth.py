"""A text twice as long takes at most about twice as long to read, whatever is in it, right or wrong.

Every construct is doubled until it takes a time that can be measured, and once more. What is valid must be read; what
is not must be refused in one line.
"""

from __future__ import annotations

import gc
import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lockstep.sim.compile.cuda.source import device_part
from lockstep.sim.compile.ptx import names
from lockstep.sim.compile.ptx.build import build
from lockstep.sim.compile.ptx.lines import Places
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.study import saved
from lockstep.sim.study.sweep import file as sweep
from lockstep.verif.conftest import partly

pytestmark = pytest.mark.long  # all together

Make = Callable[[int], str]
Read = Callable[[str], object]

MOST_GROWTH = 2.5
ENOUGH = 0.03  # seconds of CPU that can be measured
LIMIT = 5  # seconds; what is linear and longer than ENOUGH at one size does not take this at the next, nor ...
TIMES = 16  # as long as at the smallest size at which growth is measured
LONGEST = 1 << 20  # characters; what takes no time with that many takes none
SIZES = 3  # from which a doubling is tried: at some, memory becomes dearer, or a table is made anew
ATTEMPTS = 6 * SIZES  # a machine that is busy with other things may spoil some


class TooLong(Exception):
    pass


@contextmanager
def limited(limit: float) -> Iterator[None]:
    """An end to what would never end; the regular expressions of Python let a signal through."""

    def end(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def seconds(read: Read, text: str, repeats: int = 1, limit: float = LIMIT) -> float:
    """The least CPU time of several readings. What a user may do wrong is no failure; anything else is."""
    least = float("inf")
    for _ in range(repeats):
        gc.disable()
        try:
            start = time.process_time()
            with limited(limit):
                read(text)
        except UsageError as error:
            assert "\n" not in str(error)
        finally:
            least = min(least, time.process_time() - start)
            gc.enable()
    return least


def check_growth(make: Make, read: Read, size: int = 16) -> None:
    """From four times the ``size`` on, where what grows faster is to be seen beside what does not."""
    took = 0.0
    while took < ENOUGH and len(make(2 * size)) < LONGEST:
        size *= 2 if took > ENOUGH / 8 else 4
        took = seconds(read, make(size))
        if took >= ENOUGH:
            took = seconds(read, make(size))  # the first may have read headers, or made tables
    if took < ENOUGH:
        return
    least: dict[int, float] = {}
    limit = max(LIMIT, TIMES * took)
    for attempt in range(ATTEMPTS):
        each = size << attempt % SIZES
        for n in (each, 2 * each):
            least[n] = min(least.get(n, limit), seconds(read, make(n), 2, limit))
        growth = least[2 * each] / max(least[each], ENOUGH / 2)
        if growth < MOST_GROWTH:
            return
    raise AssertionError(f"{len(make(each))} characters {least[each]:.3f} s, twice as many {growth:.1f} times as long")


def refused(read: Read, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(text)
    return str(caught.value)


# -------------------------------------------------------------------------------------------------------------- PTX

PROLOGUE = ".version 9.0\n.target sm_75\n.address_size 64\n.global .u32 x;\n"


def read_ptx(text: str) -> object:
    return parse(text, "test.ptx")


def listed(item: str, between: str = ", ") -> Make:
    return lambda n: between.join([item] * n)


def module(inner: Make) -> Make:
    return lambda n: PROLOGUE + inner(n)


def values(inner: Make, type: str = "u64") -> Make:
    return module(lambda n: f".global .{type} t[] = {{{inner(n)}}};")


def body(inner: Make) -> Make:
    registers = ".reg .b32 %r<9>; .reg .pred %p; .reg .b64 %rd<4>;"
    return module(lambda n: f".entry k() {{ {registers}\n{inner(n)}\n}}")


def operand(inner: Make) -> Make:
    return body(lambda n: f"mov.u32 %r1, {inner(n)};")


VALID_PTX: dict[str, Make] = {
    "numbers": values(listed("17")),
    "numbers, then a symbol": values(lambda n: f"{listed('17')(n)}, x"),
    "a symbol, then numbers": values(lambda n: f"x, {listed('17')(n)}"),
    "numbers, then an expression": values(lambda n: f"{listed('17')(n)}, 1 + 2"),
    "numbers, then numbers in braces": module(lambda n: f".global .u64 t[][2] = {{{listed('17')(2 * n)}, {{1}}}};"),
    "wide numbers, then a symbol": values(lambda n: f"{listed(' - 0x1F ', ' ,  ')(n)}, x"),
    "floats, then a sum": values(lambda n: f"{listed('-1.5e3')(n)}, 1.0 + 2", "f64"),
    "bits of floats, then a sum": values(lambda n: f"{listed('0f3F800000')(n)}, 1.0 + 2", "f32"),
    "numbers and symbols in turn": values(listed("1, x")),
    "rows of numbers and a symbol": module(
        lambda n: f".global .u64 t[][9] = {{{listed('{1, 2, 3, 4, 5, 6, 7, x}')(n)}}};"
    ),
    "symbols": values(listed("x+4")),
    "generic symbols": values(listed("generic(x)")),
    "addresses by bytes": values(listed(", ".join(f"{0xFF << 8 * byte:#x}(x)" for byte in range(8))), "u8"),
    "numbers with comments": values(listed("/* 1 */ 2", ", // 3\n")),
    "rows in one dimension more": module(lambda n: f".global .u8 t[]{'[1]' * n} = {{{listed('{1}')(n)}}};"),
    "a number, then blanks": values(lambda n: f"1{' ' * n}, x"),
    "blanks, then a number": values(lambda n: f"{' ' * n}1, {' ' * n}x"),
    "lines without anything": module(lambda n: "\n" * n),
    "a long symbol": module(lambda n: f".global .u64 {'y' * n};"),
    "declarators": module(lambda n: f".global .u32 {', '.join(f'v{k}' for k in range(n))};"),
    "declarations": module(lambda n: "\n".join(f".global .u32 v{k};" for k in range(n))),
    "declarations once more": module(lambda n: ".extern .global .u32 y;\n" * n),
    "targets": module(lambda n: f".target sm_75{', debug' * n}"),
    "functions": module(lambda n: "\n".join(f".func f{k}() {{ ret; }}" for k in range(n))),
    "functions and variables": module(
        lambda n: "\n".join(f".func f{k}() {{ .reg .b32 r; ret; }} .global .u32 v{k};" for k in range(n))
    ),
    "functions with a variable of one name": module(
        lambda n: "\n".join(f".func f{k}() {{ .global .u32 y; ret; }}" for k in range(n))
    ),
    "aliases": module(lambda n: ".func f() { ret; }\n" + "\n".join(f".alias a{k}, f;" for k in range(n))),
    "parameters": module(lambda n: f".func f({', '.join(f'.param .u32 p{k}' for k in range(n))}) {{ ret; }}"),
    "directives of performance": module(lambda n: f".entry k() {'.maxntid 1, 2, 3 ' * n} {{ ret; }}"),
    "comments to the end of a line": module(lambda n: "// one /* two\n" * n),
    "comments": module(lambda n: "/* one **/" * n),
    "a comment of stars": module(lambda n: f"/*{'*' * n}*/"),
    "a comment of openings": module(lambda n: f"/{'* /' * n}**/"),
    "pragmas": module(lambda n: '.pragma "nounroll";\n' * n),
    "texts of a pragma": module(lambda n: f".pragma {listed(chr(34) * 2, ' , ')(n)};"),
    "attributes": module(lambda n: ".global .attribute(.managed) .u32 y;".replace(".managed", "(a)" * n)),
    "sections": module(lambda n: ".section .debug_info { .b8 1\n}\n" * n),
    "a section": module(lambda n: f".section .debug_info {{ {'.b8 1, 2' * n} }}"),
    "places": body(lambda n: '.file 1 "a.cu"\n.loc 1 2 3\n' * n),
    "instructions": body(lambda n: "@!%p add.s32 %r1, %r2, 3; // and\n" * n),
    "an instruction with a comment": body(lambda n: f"add.s32 %r1, /* {'*' * n} */ %r2, 3;"),
    "an instruction of many lines": body(lambda n: "add.s32 %r1," + "\n" * n + "%r2, 3;"),
    "an opcode with modifiers": body(lambda n: f"add{'.s32::x' * n} %r1, %r2;"),
    "statements without anything": body(lambda n: ";" * n),
    "labels": body(lambda n: "\n".join(f"L{k}:" for k in range(n))),
    "labels and their blanks": body(lambda n: "\n".join(f"L{k} \t :" for k in range(n))),
    "a label, blanks, a colon": body(lambda n: f"L{' ' * n}:"),
    "branches": body(lambda n: "bra L;\n" * n + "L:"),
    "branch targets": body(lambda n: f"L: t: .branchtargets {listed('L')(n)};"),
    "scopes side by side": body(lambda n: "{ .reg .b32 y; mov.u32 y, 1; L: bra L; }\n" * n),
    "registers": body(lambda n: f".reg .b32 {', '.join(f'y{k}' for k in range(n))};"),
    "ranges of registers": body(lambda n: "\n".join(f".reg .b32 %y{k}_<9>;" for k in range(n))),
    "a vector": body(lambda n: f"mov.u32 %r1, {{{listed('%r2')(n)}}};"),
    "a call's arguments": module(
        lambda n: f".func f() {{ ret; }} .entry k() {{ .reg .b32 %r; call f, ({listed('%r')(n)}); }}"
    ),
    "offsets": body(lambda n: f"ld.u32 %r1, [%rd1{' + 4 - 4' * n}];"),
    "parentheses": operand(lambda n: "(" * n + "1" + ")" * n),
    "a binary number": values(lambda n: "0b" + "1" * n),
    "digits before a point": values(lambda n: "1" * n + ".5"),
    "digits behind a point": values(lambda n: "0." + "1" * n),
    "digits of an exponent": values(lambda n: "1e" + "1" * n),
    "blanks behind an opcode": body(lambda n: f"add{' ' * n}%r1;"),
    "the end of NVRTC's buffer": module(lambda n: "\0" * n),
}

WRONG_PTX: dict[str, Make] = {
    "numbers, then what is none": values(lambda n: f"{listed('17')(n)} ?"),
    "numbers without an end": module(lambda n: f".global .u64 t[] = {{{listed('17')(n)}"),
    "wide numbers without an end": module(lambda n: f".global .u64 t[] = {{{listed(' - 17 ', ' , ')(n)} ; "),
    "numbers without commas": values(listed("17", " ")),
    "commas": values(listed("", ",")),
    "signs": values(lambda n: "-" * n),
    "numbers with signs behind": values(listed("1 -")),
    "openings": module(lambda n: ".global .u64 t[] = " + "{" * n),
    "braces": module(lambda n: f".global .u64 t{'[1]' * n} = {'{' * n}1{'}' * n};"),
    "rows without an end": module(lambda n: f".global .u64 t[][2] = {{{listed('{1, 2')(n)}"),
    "a number of digits": values(lambda n: "1" * n),
    "a hexadecimal number": values(lambda n: "0x" + "f" * n),
    "an octal number": values(lambda n: "0" + "7" * n),
    "an octal number that is none": values(lambda n: "0" * n + "9"),
    "digits and a letter": values(lambda n: "1" * n + "x"),
    "points": values(lambda n: "." * n),
    "digits of a version": lambda n: f".version {'1' * n}.{'2' * n}",
    "digits of a range": body(lambda n: f".reg .b32 %y<{'1' * n}>;"),
    "blanks of a range": body(lambda n: f".reg .b32 %y<{' ' * n}x>;"),
    "blanks behind names": body(lambda n: "a     " * n),
    "dollars": body(lambda n: "$" * n),
    "dots": body(lambda n: "add" + "." * n),
    "colons": body(lambda n: "add" + "::a" * n + ":"),
    "stars of a comment without an end": module(lambda n: "/*" + "*" * n),
    "a comment without an end": module(lambda n: "/*" + " a*" * n),
    "openings of comments": module(lambda n: "/*" * n),
    "openings of comments in an expression": operand(lambda n: "1" + " / *" * n),
    "blanks, then a comment without an end": module(lambda n: " " * n + "/*"),
    "comments, then one without an end": module(lambda n: "/**/ " * n + "/*"),
    "a pragma without an end": module(lambda n: f".pragma {listed(chr(34) * 2, ' , ')(n)}"),
    "a text without an end": module(lambda n: f'.pragma "{"a" * n}'),
    "blanks of a pragma": module(lambda n: f'.pragma "a"{" " * n}'),
    "an attribute without an end": module(lambda n: ".global .attribute(" + "(a)" * n),
    "openings of an attribute": module(lambda n: ".global .attribute(" + "(" * n),
    "blanks of an attribute": module(lambda n: ".global .attribute" + " " * n + ","),
    "a section without an end": module(lambda n: ".section .debug_info {" + ".b8 1\n" * n),
    "names of sections": module(lambda n: ".section " + ".a" * n),
    "blanks of a section": module(lambda n: ".section a" + " " * n),
    "texts": module(lambda n: '"a' * n),
    "scopes without an end": body(lambda n: "{" * n),
    "scopes in scopes": body(lambda n: "{ .reg .b32 y; mov.u32 y, 1;" * n + "}" * n),
    "parentheses without an end": operand(lambda n: "(" * n),
    "a sum": operand(listed("1", " + ")),
    "shifts": operand(listed("1", " << ")),
    "products": operand(listed("1", " * ")),
    "complements": operand(lambda n: "~" * n + "1"),
    "conditions": operand(lambda n: "0 ? 2 : " * n + "3"),
    "conditions in conditions": operand(lambda n: "1 ? " * n + "3" + " : 2" * n),
    "casts": operand(lambda n: "(.s64)" * n + "1"),
    "casts in parentheses": operand(lambda n: "(.s64)(" * n + "1" + ")" * n),
    "openings of addresses": body(lambda n: "ld.u32 %r1, " + "[" * n),
    "openings of vectors": body(lambda n: "mov.u32 %r1, " + "{" * n),
    "vectors in vectors": body(lambda n: "mov.u32 %r1, " + "{" * n + "%r1" + "}" * n + ";"),
    "opcodes": body(lambda n: "add " * n),
    "guards": body(lambda n: "@%p " * n),
    "blanks behind generic": values(lambda n: "generic" + " " * n),
    "registers without an end": body(lambda n: f".reg .b32 {listed('y')(n)}"),
    "many registers": body(lambda n: "\n".join(f".reg .b32 %y{k}_<1048576>;" for k in range(n))),
    "declared nowhere": values(lambda n: ", ".join(f"y{k}" for k in range(n))),
    "characters that PTX has not": module(lambda n: "?" * n),
}


@pytest.mark.parametrize("name", partly(VALID_PTX, 8))
def test_ptx(name: str) -> None:
    assert read_ptx(VALID_PTX[name](3))
    check_growth(VALID_PTX[name], read_ptx)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("instructions", 512),
        pytest.param("scopes side by side", 256, marks=pytest.mark.exhaustive),
        pytest.param("numbers", 65536, marks=pytest.mark.exhaustive),
    ],
)
def test_long_ptx(name: str, size: int) -> None:
    """Thousands of statements and hundreds of thousands of numbers, as in kernels and their tables."""
    check_growth(VALID_PTX[name], read_ptx, size)


def test_compiling() -> None:
    """Instructions that need results of each other, and more registers than there are."""
    sums = body(lambda n: "\n".join(f"add.s32 %r{k % 9}, %r{(k + 2) % 9}, %r{(k + 4) % 9};" for k in range(n)) + "ret;")
    check_growth(sums, lambda text: build(parse(text, "test.ptx"), 16), size=512)


@pytest.mark.parametrize("name", partly(WRONG_PTX, 8))
def test_wrong_ptx(name: str) -> None:
    assert refused(read_ptx, WRONG_PTX[name](4000 if name in DEEP else 40)).startswith("test.ptx")
    check_growth(WRONG_PTX[name], read_ptx)


# Valid, up to a depth that no compiler comes near.
DEEP = {
    "braces", "scopes in scopes", "a sum", "shifts", "products", "complements", "conditions",
    "conditions in conditions", "casts", "casts in parentheses", "vectors in vectors",
}  # fmt: skip


def read_places(text: str) -> object:
    places = Places(text, lambda file: False)
    return [places.source(line) for line in range(1, 100)]


PLACES: dict[str, Make] = {
    "places": lambda n: ".loc 1 2 3\n" * n,
    "places of what was inlined": lambda n: ".loc 1 2 3, function_name $L, inlined_at 1 2 3\n" * n,
    "a place that was inlined often": lambda n: ".loc 1 2 3 " + "inlined_at 1 2 " * n,
    "blanks of a place": lambda n: ".loc 1 2 3 inlined_at" + " " * n,
    "linkages": lambda n: ".visible " * n + "x",
    "files": lambda n: '.file 1 "a.cu"\n' * n,
}


@pytest.mark.parametrize("name", PLACES)
def test_places(name: str) -> None:
    check_growth(PLACES[name], read_places)


# ------------------------------------------------------------------------------------------------------------- CUDA


def read_cuda(text: str) -> object:
    return device_part(text, "test.cu")


def program(inner: Make) -> Make:
    return lambda n: f"{inner(n)}\n__global__ void k(int *o) {{ o[0] = 1; }}\n"


def kernel(inner: Make) -> Make:
    return lambda n: f"__global__ void k(int *o) {{ {inner(n)} }}\n"


CUDA: dict[str, Make] = {
    "comments": program(lambda n: "/* one */ " * n),
    "comments, then code": program(lambda n: f"int a[] = {{\n{'/* 1 */ ' * n} 5 }};"),
    "lines that begin with a comment": program(lambda n: "int a[] = {\n" + "/* 1 */ 5, // and\n" * n + "};"),
    "comments before directives": program(lambda n: "/* 1 */ /* 2 */ # /* 3 */ define A /* 4 */\n" * n),
    "comments over lines": program(lambda n: "/* 1 \n */" * n),
    "comments without an end": program(lambda n: "/* " * n),
    "comments without an end in a directive": program(lambda n: "#define A " + "/* " * n),
    "comments without an end in directives": program(lambda n: "#define A /*\n" * n),
    "a comment of slashes": program(lambda n: "/" * n),
    "a comment over lines": program(lambda n: "// 1 \\\n" * n),
    "blanks": program(lambda n: " " * n + "\n" * n),
    "blanks at the end of lines": program(lambda n: (" " * 9 + "\n") * n),
    "backslashes": program(lambda n: "\\" * n),
    "texts": program(lambda n: 'const char *a = "' + 'a\\" \\\\' * n + '";'),
    "texts without an end": program(lambda n: '"a \\"' * n),
    "escapes without an end": program(lambda n: '"' + '\\"' * n),
    "characters without an end": program(lambda n: "'" + "\\'" * n),
    "apostrophes in lines": program(lambda n: "don't\n" * n),
    "raw texts": program(lambda n: 'const char *a = R"x( " )x";\n' * n),
    "raw texts without an end": program(lambda n: 'R"x( ' * n),
    "raw texts with other ends": program(lambda n: 'R"x(' + ' )y" )x' * n),
    "a raw text's mark": program(lambda n: 'R"' + "a" * n + '("'),
    "a number": program(lambda n: "int a = " + "1'" * n + ";"),
    "a name": program(lambda n: "int " + "a" * n + ";"),
    "numbers": program(lambda n: f"__constant__ int a[] = {{{listed('17')(n)}}};"),
    "rows of numbers": program(lambda n: "__constant__ int a[][2] = {" + "{1, 2},\n" * n + "};"),
    "constants of constants": program(
        lambda n: (
            "const float a0 = 1;\n"
            + "\n".join(f"const float a{k + 1} = a{k};" for k in range(n))
            + f"\n__device__ float f() {{ return a{n}; }}"
        )
    ),
    "macros": program(lambda n: "\n".join(f"#define A{k} B{k}" for k in range(n))),
    "macros of macros": program(
        lambda n: "#define A0 __device__\n" + "\n".join(f"#define A{k + 1} A{k}\nA{k} int b{k};" for k in range(n))
    ),
    "macros that go round": program(
        lambda n: "\n".join(f"#define A{k} A{(k + 1) % n} A{k}\nA{k} int b{k};" for k in range(n))
    ),
    "a macro of many lines": program(lambda n: "#define A(x) \\\n" + "  x + \\\n" * n + " 1"),
    "a macro's arguments": program(lambda n: "#define A(x) x;\nA(" + "(" * n + ")" * n + ")"),
    "a macro that opens": program(lambda n: "#define A(x) {\n" + "A((" * n),
    "conditions": program(lambda n: "#if A\nint a;\n#else\nint b;\n#endif\n" * n),
    "conditions in conditions": program(lambda n: "#if A\n" * n + "int a;\n" + "#endif\n" * n),
    "conditions without an end": program(lambda n: "#if A\n{\n#else\n" * n),
    "conditions in brackets": program(lambda n: "int a = " + "(\n#if A\n" * n + "1" + "\n#endif\n)" * n + ";"),
    "what is switched off": program(lambda n: "#if 0\n" + "isn't # { /* */ \"\n" * n + "#endif"),
    "what is switched off without an end": program(lambda n: "#if 0\n" + "#if 1\n" * n),
    "a condition of blanks": program(lambda n: "#if 0" + " " * n + "/\n#endif"),
    "includes": program(lambda n: "\n".join(f"#include <a{k}.h>" for k in range(n))),
    "includes in functions": program(lambda n: '#include "a.h"\nvoid f() { 1; }\n' * n),
    "an include of a long name": program(lambda n: f'#include "{"a" * n}.h"'),
    "an include without an end": program(lambda n: "#include <" + "a" * n),
    "functions of the host": program(lambda n: "\n".join(f"int f{k}(int a) {{ return a; }}" for k in range(n))),
    "functions of the device": program(
        lambda n: "\n".join(f"__device__ int f{k}(int a) {{ return f{k + 1}(a); }}" for k in range(n))
    ),
    "functions of one name": program(lambda n: "__device__ int f(int a) { return a; }\n" * n),
    "variables of one name": program(lambda n: "const int a = 1;\n" * n),
    "declarators": program(lambda n: f"__device__ int {', '.join(f'a{k} = 1' for k in range(n))};"),
    "values": program(lambda n: f"enum {{ {', '.join(f'a{k}' for k in range(n))} }};"),
    "classes": program(lambda n: "\n".join(f"struct A{k} {{ int f() {{ return 1; }} int x; }};" for k in range(n))),
    "members": program(lambda n: f"struct A {{ {'int f() { return 1; } static int x; ' * n} }}; __device__ A a;"),
    "classes in classes": program(
        lambda n: "".join(f"struct A{k} {{ int f() {{ }} " for k in range(n)) + "};" * n + " __device__ A0 a;"
    ),
    "classes without an end": program(lambda n: "struct A { " * n),
    "templates": program(lambda n: "template <class T> __device__ T f(T x) { return x; }\n" * n),
    "arguments of templates": program(lambda n: f"__device__ {'A<' * n}int{'>' * n} a;"),
    "templates without an end": program(lambda n: "template <" * n),
    "templates with parentheses": program(lambda n: "template <" + "(" * n),
    "namespaces": program(lambda n: "namespace a { int x; }\n" * n),
    "namespaces in namespaces": program(lambda n: "namespace a {\n" * n + "}\n" * n),
    "the word namespace": program(lambda n: "namespace " * n),
    "linkages": program(lambda n: 'extern "C" {\n' * n),
    "operators": program(lambda n: "operator " * n),
    "attributes": program(lambda n: "__align__(8) " * n + "int a;"),
    "lambdas": program(lambda n: "__device__ auto a = [] __host__ __device__ () { return 1; };\n" * n),
    "annotations": program(lambda n: "__device__ auto a = [] " + "__host__ " * n),
    "brackets": kernel(lambda n: "o[" * n + "0" + "]" * n + " = 1;"),
    "brackets without an end": kernel(lambda n: "{[(" * n),
    "brackets that close": program(lambda n: ")]}" * n),
    "angles": kernel(lambda n: "a < " * n + "b;"),
    "launches": program(lambda n: "int main() { " + "f<3><<<1, 2>>>(0); " * n + "}"),
    "launches in one statement": program(lambda n: "int main() { " + "f<a::b<3>><<<1, 2>>>(0), " * n + "0; }"),
    "launches that close too much": program(lambda n: "int main() { " + "a > <<< > > > " * n + "}"),
    "launches in launches": program(lambda n: "int main() { " + "f<" * n + "1" + "> <<<1, 1>>>" * n + "(0); }"),
    "a kernel's long name": program(lambda n: "int main() { " + "a::" * n + "f<3><<<1, 2>>>(0); }"),
    "kernels": lambda n: "\n".join(f"__global__ void k{j}(int *o) {{ o[0] = {j}; }}" for j in range(n)),
    "using": program(lambda n: "using namespace a;\nusing std::min;\n" * n),
    "references to textures": program(lambda n: "texture<float> a;\n" * n),
}


@pytest.mark.parametrize("name", partly(CUDA, 8))
def test_cuda(name: str) -> None:
    check_growth(CUDA[name], read_cuda)


# ----------------------------------------------------------------------------------------------------- TOML and JSON

TOML: dict[str, Make] = {
    "comments": lambda n: "# one\n" * n,
    "a comment": lambda n: "#" * n,
    "keys": lambda n: "\n".join(f"a{k} = 1" for k in range(n)),
    "a key": lambda n: "a" * n + " = 1",
    "a key of many parts": lambda n: ".".join("a" * n) + " = 1",
    "a key of many blank parts": lambda n: " . ".join("a" * n) + " = 1",
    "a key of many quoted parts": lambda n: ".".join(['"a"'] * n) + " = 1",
    "a table of many parts": lambda n: "[" + ".".join("a" * n) + "]",
    "tables": lambda n: "\n".join(f"[a{k}]" for k in range(n)),
    "tables of tables": lambda n: "\n".join(f"[a.b{k}.c]" for k in range(n)),
    "tables in a list": lambda n: "[[a]]\n" * n,
    "openings of tables": lambda n: "[" * n,
    "a list": lambda n: f"a = [{listed('1')(n)}]",
    "a list of lines": lambda n: "a = [\n" + "1, # one\n" * n + "]",
    "lists": lambda n: "a = " + "[" * n + "]" * n,
    "lists without an end": lambda n: "a = " + "[" * n,
    "inline tables": lambda n: "a = " + "{a = " * n + "1" + "}" * n,
    "an inline table": lambda n: f"a = {{{', '.join(f'a{k} = 1' for k in range(n))}}}",
    "an inline table of many parts": lambda n: f"a = {{{'.'.join('a' * n)} = 1}}",
    "a text": lambda n: f'a = "{"a" * n}"',
    "escapes": lambda n: f'a = "{chr(92) * 2 * n}"',
    "a text of lines": lambda n: 'a = """' + "a \\\n" * n + '"""',
    "quotes": lambda n: "a = " + '"' * n,
    "apostrophes": lambda n: "a = " + "'" * n,
    "a text without an end": lambda n: 'a = "' + "\\t" * n,
    "digits": lambda n: "a = " + "1" * n,
    "digits in groups": lambda n: "a = " + "1_1" * n + "_",
    "a float": lambda n: "a = 1." + "1" * n + "e",
    "dates": lambda n: "a = [" + "1979-05-27T00:32:00.999999, " * n + "]",
    "blanks": lambda n: " " * n + "=",
    "lines": lambda n: "\n" * n,
    "lines of two characters": lambda n: "\r\n" * n,
    "keys that are given twice": lambda n: "a.b = 1\n" * n,
}


@pytest.mark.parametrize("name", partly(TOML, 6))
def test_descriptions_and_sweeps(name: str, tmp_path: Path) -> None:
    file = tmp_path / "test.toml"

    def described(text: str) -> object:
        file.write_text('base = "gtx480"\n' + text, encoding="utf-8")
        return description.load(file)

    def swept(text: str) -> object:
        file.write_text('kernel = "saxpy"\n' + text, encoding="utf-8")
        return sweep.load(file)

    check_growth(TOML[name], described)
    check_growth(TOML[name], swept)


JSON: dict[str, Make] = {
    "a list": lambda n: f"[{listed('1')(n)}]",
    "lists": lambda n: "[" * n + "]" * n,
    "lists without an end": lambda n: "[" * n,
    "objects": lambda n: '{"a": ' * n + "1" + "}" * n,
    "keys": lambda n: json.dumps({f"a{k}": k for k in range(n)}),
    "runs": lambda n: json.dumps([{"kernel": "saxpy"}] * n),
    "a text": lambda n: f'"{"a" * n}"',
    "escapes": lambda n: f'"{chr(92) * 2 * n}"',
    "a text without an end": lambda n: '"' + "\\n" * n,
    "digits": lambda n: "1" * n,
    "a float": lambda n: "1." + "1" * n,
    "an exponent": lambda n: "1e" + "1" * n,
    "blanks": lambda n: " " * n,
}


@pytest.mark.parametrize("name", partly(JSON, 2))
def test_saved_runs(name: str, tmp_path: Path) -> None:
    file = tmp_path / "test.json"

    def read(text: str) -> object:
        file.write_text(text, encoding="utf-8")
        return saved.read(str(file))

    check_growth(JSON[name], read)


# ------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("text", ["<", "<>", "( ", ": ", "a::", "_Z", "_ZN1a", "f<", " "])
def test_names(text: str) -> None:
    check_growth(lambda n: text * n, lambda name: names.find(name, ["f", "_Z1fi", "g<3>"]))
