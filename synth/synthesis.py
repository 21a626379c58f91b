"""One block through Yosys: cells, area, depth or critical path of its logic, and the bits of its state.

Memories stay memories: they are cut out before the logic is mapped, since real ones are SRAM macros or register files,
and are counted by their bits, once each, however many ports they have; the ports are listed. The register of a
synchronous read is the memory's; no other is moved into one. With ``build``, those that are read asynchronously, which
no compiler of SRAMs offers, are made of flip-flops and multiplexers, and the paths through them are whole.

Without a library, cells are generic gates; the area is in gate equivalents, a quarter of Yosys' estimate of CMOS
transistors, so that a NAND of two inputs is 1. With one, abc maps for delay, puts buffers where a cell drives many, and
chooses cells of the size that the clock needs; where it cannot do this with a library, trees of buffers are ours, and
sizes are as mapped. Then, if a period is given, cells on the longest path get stronger until OpenSTA finds that the
clock is met. No figure includes wires or a clock tree, but what :class:`Margins` allow for them.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from amaranth.lib import wiring

from lockstep.rtl import export, yosys
from lockstep.rtl.flat import FlatPort, flat_ports
from lockstep.rtl.netlist import Memory, Netlist, Register
from lockstep.spec import processes
from lockstep.synth import gates
from lockstep.synth.liberty import Library

# What abc does with a library: balances and maps for delay, buffers, and chooses sizes for a path of a number
# of picoseconds. Without dc2, which would make ripples of the adders. And what it does with libraries that this fails
# for.
_SIZED = (
    "+strash;&get,-n;&fraig,-x;&put;scorr;if,-g,-K,6;strash;dch,-f;map,-B,0.9;topo;buffer,-N,6;"
    "upsize,-D,{0};dnsize,-D,{0}"
)
_PLAIN = "+strash;&get,-n;&fraig,-x;&put;scorr;dc2;strash;&get,-n;&dch,-f;&nf;&put"
_PATH = 0.5  # of the period: abc knows neither flip-flops' delays nor their setup, and its own estimate is optimistic
# Cells of the longest path become the next stronger ones, flip-flops too, as long as that makes it shorter.
_STRENGTHEN = """
sta::make_equiv_cells [lindex [get_libs *] 0]
proc family {cell} {regsub {[0-9]+$} [get_name $cell] {}}
proc stronger {cell} {
    set alike [list]
    foreach each [sta::find_equiv_cells $cell] {
        if {[family $each] eq [family $cell]} {lappend alike $each}
    }
    lindex $alike [expr {[lsearch $alike $cell] + 1}]
}
set worst [worst_slack -max]
set shorter 1
while {$shorter && $worst < -$period} {
    set shorter 0
    set path [lindex [find_timing_paths -path_delay max] 0]
    set drivers [list]
    foreach point [get_property $path points] {
        set pin [get_property $point pin]
        if {[$pin is_driver] && ![$pin is_top_level_port]} {lappend drivers [$pin instance]}
    }
    foreach driver $drivers {
        set old [$driver liberty_cell]
        set new [stronger $old]
        if {$new eq ""} {continue}
        replace_cell $driver $new
        set slack [worst_slack -max]
        if {$slack > $worst} {
            set worst $slack
            set shorter 1
            puts "stronger: [get_name $old] [get_name $new]"
        } else {
            replace_cell $driver $old
        }
    }
}
"""
_PORTS = """
proc bits {ports pattern} {
    set found [list]
    foreach port $ports {if {[regexp $pattern [get_property $port full_name]]} {lappend found $port}}
    return $found
}
proc slowest {start end from to} {
    set path [lindex [find_timing_paths -path_delay max -from $from -to $to] 0]
    if {$path ne ""} {puts "ports: $start $end [expr {-[get_property $path slack]}]"}
}
"""
_TRANSISTORS_PER_GATE = 4
_TOP = "block"


@dataclass(frozen=True)
class Margins:
    """What the clock must leave besides the cells' delays and setup times as the library has them.

    ``wires``: the part of a cell's delay that its wire adds. ``uncertainty``: of the clock, in nanoseconds. ``slow``:
    the library at its slow corner, or by what factor cells are slower there; cells are chosen without it.
    """

    wires: float = 0.0
    uncertainty: float = 0.0
    slow: Library | float | None = None


NONE = Margins()


@dataclass(frozen=True)
class CriticalPath:
    """The slowest path between flip-flops, ports and memories' ports, with the end's setup time and the margins."""

    nanoseconds: float
    start: str
    end: str
    tool: str


@dataclass(frozen=True)
class PortPath:
    """The slowest path from a member to another one, or from or to flip-flops ("state"), with their setup time."""

    start: str
    end: str
    nanoseconds: float


@dataclass(frozen=True)
class Synthesis:
    """Of one block. ``area`` is in ``area_unit``; ``sequential_area`` is the flip-flops' share of it.

    ``registers`` and ``memories`` are those of the RTL; ``flip_flops`` are what optimisation left of the registers.
    ``slow_path`` is the critical path at the slow corner.
    """

    cells: int
    flip_flops: int
    cells_by_type: dict[str, int]
    area: float
    sequential_area: float
    area_unit: str
    levels: int
    critical_path: CriticalPath | None
    slow_path: CriticalPath | None
    registers: list[Register]
    memories: list[Memory]
    ports: list[PortPath] = field(default_factory=list)

    @property
    def register_bits(self) -> int:
        return sum(register.bits for register in self.registers)

    @property
    def memory_bits(self) -> int:
        return sum(memory.bits for memory in self.memories)

    def json(self) -> dict[str, Any]:
        memories = [asdict(memory) | {"bits": memory.bits} for memory in self.memories]
        return asdict(self) | {
            "register_bits": self.register_bits, "memory_bits": self.memory_bits, "memories": memories
        }  # fmt: skip


def synthesise(
    component: wiring.Component,
    copy: wiring.Component,
    library: Library | None = None,
    period: float = 0.0,
    build: bool = False,
    margins: Margins = NONE,
    ports: bool = False,
) -> Synthesis:
    """Synthesise a component; ``copy`` is another one like it, since a component can be elaborated once.

    ``period``, in nanoseconds: the clock for which a library's cells are chosen; 0 for the fastest. ``build``: make
    memories that are read asynchronously of flip-flops. ``ports``: with a library, time the paths through each port.
    """
    netlist = Netlist(copy)
    module, arcs = _coarse(component, build)
    if library is None:
        return _generic(module, arcs, netlist)
    timed = _port_paths(component) if ports else []
    return _mapped(module, arcs, netlist, library, period, getattr(component, "constant", ()), margins, timed)


@dataclass(frozen=True)
class _Member:
    """A member of the signature, with the flat names of its ports; "state" has none."""

    name: str
    ports: tuple[str, ...] = ()


STATE = _Member("state")


def _port_paths(component: wiring.Component) -> list[tuple[_Member, _Member]]:
    """From where to where paths through ports may lead."""
    flat: dict[str, list[FlatPort]] = {}
    for port in flat_ports(component):
        flat.setdefault(port.member, []).append(port)
    members = {name: _Member(name, tuple(port.name for port in ports)) for name, ports in flat.items()}
    paths = [
        (members[name], STATE) if ports[0].is_input else (STATE, members[name]) for name, ports in flat.items()
    ]  # fmt: skip
    for output, inputs in getattr(component, "combinational", {}).items():
        ends = [members[name] for name, ports in flat.items() if ports[0].is_below(output)]
        starts = [members[name] for name, ports in flat.items() if any(ports[0].is_below(each) for each in inputs)]
        paths += [(start, end) for start in starts for end in ends]
    return paths


def _coarse(component: wiring.Component, build: bool) -> tuple[gates.Module, list[gates.Arc]]:
    """The optimised netlist of operators and flip-flops; the memories are built or cut out."""
    coarse = f"synth -top {_TOP} -flatten -nordff -run begin:fine"
    script = ["read_rtlil block.il", "proc -norom", coarse, "write_json out.json"]
    files = yosys.run(script, {"block.il": export.rtlil(component, _TOP)}, ["out.json"])
    module = _module(files["out.json"])
    if build and (names := gates.asynchronous(module)):
        script = ["read_json in.json", f"select {' '.join(f'{_TOP}/{name}' for name in names)}", "memory_map"]
        script += ["select -clear", "opt -fast -full", "write_json out.json"]
        module = _module(yosys.run(script, {"in.json": _pack(module)}, ["out.json"])["out.json"])
    return module, gates.cut_memories(module)


def _pack(module: gates.Module) -> str:
    return json.dumps({"modules": {_TOP: module}})


def _generic(module: gates.Module, arcs: list[gates.Arc], netlist: Netlist) -> Synthesis:
    script = [
        "read_json in.json", "opt -fast -full", "techmap", "opt -fast",
        "dfflegalize -cell $_DFF_P_ 01 -cell $_DFF_PP0_ 01 -cell $_DFF_PP1_ 01",
        "opt -fast -nodffe -nosdff", "abc", "opt_clean -purge", "tee -q -o stat.json stat -json -tech cmos",
        "write_json out.json",
    ]  # fmt: skip
    files = yosys.run(script, {"in.json": _pack(module)}, ["stat.json", "out.json"])
    types, stat = _types(files["stat.json"])
    transistors = float(str(stat["estimated_num_transistors"]).rstrip("+"))
    flops = sum(count for kind, count in types.items() if kind.startswith("$_DFF"))
    return Synthesis(
        cells=sum(types.values()), flip_flops=flops, cells_by_type=types, area=transistors / _TRANSISTORS_PER_GATE,
        sequential_area=16 * flops / _TRANSISTORS_PER_GATE, area_unit="gate equivalents",
        levels=gates.depth(_module(files["out.json"]), lambda kind: kind.startswith(("$_DFF", "$_DLATCH")), arcs),
        critical_path=None, slow_path=None, registers=netlist.registers(), memories=netlist.memories(),
    )  # fmt: skip


def _mapped(
    module: gates.Module,
    arcs: list[gates.Arc],
    netlist: Netlist,
    library: Library,
    period: float,
    constant: Sequence[str],
    margins: Margins,
    ports: Sequence[tuple[_Member, _Member]],
) -> Synthesis:
    cells = {"cells.lib": library.text}
    driver = f"set_driving_cell {library.buffers[len(library.buffers) // 2].cell}\n" if library.buffers else ""
    inputs = {"in.json": _pack(module), "drivers": driver, **cells}
    left = (period - margins.uncertainty) / (1 + margins.wires)
    sized = _SIZED.format(max(1, round(1000 * _PATH * left)))
    try:
        mapped = _module(yosys.run(_mapping(sized), inputs, ["out.json"])["out.json"])
    except yosys.YosysError:  # there are libraries that abc maps to, but cannot buffer and size
        mapped = _module(yosys.run(_mapping(_PLAIN), inputs, ["out.json"])["out.json"])
        if library.buffers:
            gates.insert_buffers(mapped, library.buffers[len(library.buffers) // 2], export.CLOCK[:1])
    script = [
        "read_json in.json", "read_liberty -lib cells.lib", f"hierarchy -top {_TOP}", "splitnets -ports", "opt_clean",
        "rename -wire", f"tee -q -o stat.json stat -json -top {_TOP}", f"select {_TOP}",
        "write_verilog -selected -noattr -noexpr -nohex -nodec net.v",
    ]  # fmt: skip
    files = yosys.run(script, {"in.json": _pack(mapped), **cells}, ["stat.json", "net.v"])
    counts = Counter(_types(files["stat.json"])[0])
    timing = _timing(files["net.v"], library, constant, period, margins, ports)
    for old, new in timing.replaced:
        counts[old] -= 1
        counts[new] += 1
    types = dict(sorted((+counts).items()))
    areas = {kind: count * library.areas[kind] for kind, count in types.items()}
    sequential = library.sequential & types.keys()
    return Synthesis(
        cells=sum(types.values()), flip_flops=sum(types[kind] for kind in sequential), cells_by_type=types,
        area=sum(areas.values()), sequential_area=sum(areas[kind] for kind in sequential), area_unit="um^2",
        levels=gates.depth(mapped, library.sequential.__contains__, arcs), critical_path=timing.path,
        slow_path=timing.slow, registers=netlist.registers(), memories=netlist.memories(), ports=timing.ports,
    )  # fmt: skip


def _mapping(script: str) -> list[str]:
    return [
        "read_json in.json", "opt -fast -full", "techmap", "opt -fast", "dfflibmap -liberty cells.lib",
        f"abc -liberty cells.lib -constr drivers -script {script}", "setundef -zero", "opt_clean -purge",
        "read_liberty -lib cells.lib", "write_json out.json",
    ]  # fmt: skip


def _module(text: str) -> gates.Module:
    return json.loads(text)["modules"][_TOP]


def _types(text: str) -> tuple[dict[str, int], dict[str, Any]]:
    """Cells by type, and all else that Yosys' ``stat`` says of the top module."""
    stat = json.loads(text)["modules"][f"\\{_TOP}"]
    return dict(sorted(stat["num_cells_by_type"].items())), stat


def steady(constant: Sequence[str]) -> str:
    """A pattern of the ports, bit by bit, from which no path is timed: the reset, and inputs that never change."""
    return _bits("rst", *constant)


def _bits(*ports: str) -> str:
    return f"^({'|'.join(ports)})(\\[[0-9]+\\])?$"


class Timing(NamedTuple):
    """OpenSTA's critical paths, none if ``sta`` is not installed or there is no path; the cells replaced, by what."""

    path: CriticalPath | None
    replaced: list[tuple[str, str]]
    slow: CriticalPath | None
    ports: list[PortPath]


def _timing(
    verilog: str,
    library: Library,
    constant: Sequence[str],
    period: float,
    margins: Margins,
    ports: Sequence[tuple[_Member, _Member]] = (),
) -> Timing:
    if shutil.which("sta") is None:
        return Timing(None, [], None, [])
    verilog = re.sub(r"(?<=[\w\]])\\", "$", verilog)  # inside names: OpenSTA writes them unescaped
    change = [f"set period {period}\n{_STRENGTHEN}"] if period else []
    path, said, chosen = _sta(verilog, library, constant, margins, 1.0, "\n".join([*change, *_slowest(ports)]))
    if path is None:
        return Timing(None, [], None, [])
    slow = None
    if isinstance(margins.slow, Library):
        slow, *_ = _sta(chosen, margins.slow, constant, margins)
    elif margins.slow is not None:
        slow, *_ = _sta(chosen, library, constant, margins, margins.slow)
    found = re.findall(r"^ports: (\S+) (\S+) (\S+)$", said, re.MULTILINE)
    timed = [PortPath(start, end, round(float(nanoseconds), 4)) for start, end, nanoseconds in found]
    return Timing(path, re.findall(r"^stronger: (\S+) (\S+)$", said, re.MULTILINE), slow, timed)


def _slowest(paths: Sequence[tuple[_Member, _Member]]) -> Iterator[str]:
    """The commands that time paths through ports."""
    if paths:
        yield _PORTS
    for start, end in paths:
        begin = f"[bits [all_inputs] {{{_bits(*start.ports)}}}]" if start.ports else "[all_registers -clock_pins]"
        stop = f"[bits [all_outputs] {{{_bits(*end.ports)}}}]" if end.ports else "[all_registers -data_pins]"
        yield f"slowest {start.name} {end.name} {begin} {stop}"


def _sta(
    verilog: str, library: Library, constant: Sequence[str], margins: Margins, slower: float = 1.0, change: str = ""
) -> tuple[CriticalPath | None, str, str]:
    """The critical path of a netlist after a ``change``; what OpenSTA said, and the netlist then."""
    commands = [
        "read_liberty cells.lib", "read_verilog net.v", f"link_design {_TOP}", "set_cmd_units -time ns",
        "create_clock -name clk -period 0 [get_ports clk]",
        f"set_clock_uncertainty -setup {margins.uncertainty} [get_clocks clk]",
        f"set_timing_derate -late -cell_delay {(1 + margins.wires) * slower}",
        f"set_timing_derate -late -cell_check {slower}",
        "foreach port [all_inputs] {",
        "set name [get_property $port full_name]",
        'if {$name != "clk"} {set_input_delay 0 -clock clk $port}',
        f"if {{[regexp {{{steady(constant)}}} $name]}} {{set_false_path -from $port}}",
        "}",
        "set_output_delay 0 -clock clk [all_outputs]", change, "report_checks -path_delay max -digits 4",
        "write_verilog chosen.v",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cells.lib").write_text(library.text, encoding="utf-8")
        (folder / "net.v").write_text(verilog, encoding="utf-8")
        (folder / "run.tcl").write_text("\n".join(commands) + "\nexit\n", encoding="utf-8")
        said = processes.run(["sta", "-no_splash", "-exit", "run.tcl"], folder).stdout
        chosen = (folder / "chosen.v").read_text(encoding="utf-8") if (folder / "chosen.v").exists() else ""
    ends = {key: re.search(rf"^{key}: (\S+)", said, re.MULTILINE) for key in ("Startpoint", "Endpoint")}
    slack = re.search(r"(-?[\d.]+)\s+slack", said)
    if not slack or not ends["Startpoint"] or not ends["Endpoint"]:
        return None, said, chosen
    return CriticalPath(-float(slack[1]), ends["Startpoint"][1], ends["Endpoint"][1], "OpenSTA"), said, chosen
