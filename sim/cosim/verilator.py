"""From Verilog to a program: a shared library or an executable around a Verilated module, built once per content.

Verilator's C++ is joined to one file and compiled with what is around it. Verilator's runtime and its headers are the
same for all programs, so they are compiled once and kept in the cache too.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lockstep.sim.cosim.toolchain import call, compiler, digest, once, root
from lockstep.spec.processes import side_by_side

OPTIMISED = "-O1"  # for whole runs; -O2 takes half as long again to compile, and runs no faster
UNOPTIMISED = "-O0"  # for what runs briefly: benches, coverage, waves, planted faults
VERILATE = ("--cc", "-O3", "-Wno-lint", "-Wno-style", "-Wno-fatal", "--quiet", "--prefix", "Block")
# The handlers of fatal errors are the program's, since the runtime's would end the process.
HANDLERS = ("-DVL_USER_FATAL", "-DVL_USER_STOP", "-DVL_USER_FINISH")
# GCC 12 makes -1 of a comparison that holds where it vectorises a tree of additions of them.
COMPILE = ("-std=c++17", "-fPIC", "-pthread", "-fno-gnu-unique", "-fno-tree-slp-vectorize", "-w", *HANDLERS)
RUNTIME = ("verilated", "verilated_threads", "verilated_vcd_c", "verilated_vpi", "verilated_cov")
HEADERS = '#include "verilated.h"\n#include "verilated_vcd_c.h"\n#include "verilated_vpi.h"\n'


@dataclass(frozen=True)
class Program:
    """All that the file ``output`` is made from, beside the tools.

    Verilator's C++ for the module ``top`` is the class ``Block``. ``main`` is compiled with it, and includes all of it
    as ``unity.h``; ``files`` are written beside it. ``verilate``, ``compile`` and ``link`` are further flags.
    """

    verilog: str
    top: str
    main: str
    output: str
    files: Mapping[str, str] = field(default_factory=dict)
    optimise: str = UNOPTIMISED
    verilate: Sequence[str] = ()
    compile: Sequence[str] = ()
    link: Sequence[str] = ()

    @property
    def key(self) -> str:
        return digest(json.dumps(asdict(self)), Path(__file__).read_text(encoding="utf-8"))


def build(name: str, program: Program) -> Path:
    """The folder that holds the program's output. Raises :class:`UsageError`."""
    return once(f"{name}-{program.key}", lambda where: _make(program, where))


def _make(program: Program, where: Path) -> None:
    work = where / "work"
    work.mkdir()
    for file, text in {**program.files, "block.v": program.verilog, "main.cpp": program.main}.items():
        (work / file).write_text(text, encoding="utf-8")
    flags = [*VERILATE, *program.verilate, "--top-module", program.top, "--Mdir", "."]
    call([str(root() / "bin" / "verilator_bin"), *flags, "block.v"], work)
    parts = sorted(path.name for path in work.glob("Block*.cpp"))
    includes = [f'#include "{part}"' for part in ["Block.h", "Block__Syms.h", *parts]]
    text = "".join((work / part).read_text(encoding="utf-8") for part in parts)
    (work / "unity.h").write_text("\n".join([*includes, *_form(text), ""]), encoding="utf-8")
    headers, libraries = _headers(program.optimise), [_runtime(), *program.link]
    flags = [program.optimise, "-include", headers, "-I.", *program.compile]
    _compile(work, *flags, "main.cpp", *libraries, "-o", f"../{program.output}")
    shutil.rmtree(work)


def _compile(where: Path, *arguments: str) -> None:
    include = root() / "include"
    call([compiler(), *COMPILE, f"-I{include}", f"-I{include / 'vltstd'}", *arguments], where)


def _headers(optimise: str) -> str:
    """A file with the headers of Verilator's runtime, and beside it what they are precompiled."""

    def make(where: Path) -> None:
        (where / "headers.h").write_text(HEADERS, encoding="utf-8")
        _compile(where, optimise, "-x", "c++-header", "headers.h", "-o", "headers.h.gch")

    return str(once("headers-" + digest(optimise, *COMPILE, HEADERS), make) / "headers.h")


def _runtime() -> str:
    """Verilator's runtime: an archive, of which a program takes what it uses."""

    def make(where: Path) -> None:
        def compile(name: str) -> None:
            _compile(where, OPTIMISED, "-c", str(root() / "include" / f"{name}.cpp"), "-o", f"{name}.o")

        list(side_by_side(compile, RUNTIME))
        call(["ar", "rcs", "runtime.a", *(f"{name}.o" for name in RUNTIME)], where)

    return str(once("runtime-" + digest(OPTIMISED, *COMPILE, *RUNTIME), make) / "runtime.a")


CLOCK = "__Vtrigprevexpr___TOP__clk__0"  # the last value of clk, where its edges matter
# The two trigger computations of a module whose only trigger is a rising edge of clk.
EDGE = """
    __VactTriggered[0U] = (QData)((IData)((
        (IData)(vlSelfRef.clk) & (~ (IData)(vlSelfRef.__Vtrigprevexpr___TOP__clk__0)))));
"""
START = """
    __VicoTriggered[0U] = ((0xfffffffffffffffeULL & vlSelfRef.__VicoTriggered[0U])
        | (IData)((IData)(vlSelfRef.__VicoFirstIteration)));
"""


def _form(text: str) -> list[str]:
    """Properties of Verilator's code that a program may rely on, as macros.

    ``CLOCKED``: something happens at edges of ``clk``. ``DIRECT``: its rising edge is the only trigger, and with
    ``HAS_ICO``, inputs have combinational logic behind them.
    """
    clocked = ["#define CLOCKED"] if CLOCK in text else []
    edge, start = (_squeezed(_body(text, f"eval_triggers_vec__{region}")) for region in ("act", "ico"))
    if _squeezed(EDGE) not in edge or _body(text, "eval_act"):
        return clocked
    if not start:
        return [*clocked, "#define DIRECT"]
    return [*clocked, "#define DIRECT", "#define HAS_ICO"] if _squeezed(START) in start else clocked


def _body(text: str, function: str) -> str:
    """A function of the generated code, without its first line; empty if there is none."""
    found = re.search(rf"^\w+ Block___024root___{function}\([^\n]*\) {{\n(.*?)^}}", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def _squeezed(text: str) -> str:
    return "".join(text.split())
