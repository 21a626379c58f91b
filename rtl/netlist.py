"""What a block's netlist holds: its combinational paths from inputs to outputs, bit by bit, and its state.

:func:`check` compares the paths with the component's attribute ``combinational``. A path is whatever lets an input
change an output within the cycle: through logic, asynchronous resets and loads, latches, and from the address of a
memory that is read asynchronously to its data. Clock and reset do not count.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.lib import wiring

from lockstep.rtl import export, yosys
from lockstep.rtl.flat import flat_ports

Bit = int | str  # a net's number, or a constant: "0", "1", "x"
Cell = dict[str, Any]

_BITWISE = frozenset({"$and", "$or", "$xor", "$xnor", "$not", "$mux", "$pmux", "$pos", "$bmux", "$bwmux", "$buf"})
_CARRIED = frozenset({"$add", "$sub", "$neg", "$mul", "$alu"})  # a bit depends on those below it and on its own
# Flip-flops and latches: the ports through which an input reaches the output at once.
_TRANSPARENT = {
    "$ff": (), "$dff": (), "$dffe": (), "$sdff": (), "$sdffe": (), "$sdffce": (),
    "$adff": ("ARST",), "$adffe": ("ARST",), "$aldff": ("ALOAD", "AD"), "$aldffe": ("ALOAD", "AD"),
    "$dffsr": ("SET", "CLR"), "$dffsre": ("SET", "CLR"), "$dlatch": ("D", "EN"), "$adlatch": ("D", "EN", "ARST"),
    "$dlatchsr": ("D", "EN", "SET", "CLR"), "$sr": ("SET", "CLR"),
}  # fmt: skip


@dataclass(frozen=True)
class Register:
    """Flip-flops that share a name. ``is_output``: they drive output ports directly."""

    name: str
    bits: int
    is_output: bool


@dataclass(frozen=True)
class Memory:
    """An array of words; ``asynchronous`` of its read ports give their data in the same cycle."""

    name: str
    width: int
    depth: int
    writes: int
    reads: int
    asynchronous: int

    @property
    def bits(self) -> int:
        return self.width * self.depth


class Netlist:
    """The flattened netlist of a component, which must not have been elaborated. Operators and memories are whole.

    Raises ``ValueError`` for an instance of something that is not there.
    """

    def __init__(self, component: wiring.Component) -> None:
        self.block = type(component).__name__
        self.ports = flat_ports(component)
        script = [
            "read_rtlil block.il", "hierarchy -top block", "proc -norom", "flatten", "opt_expr", "opt_clean",
            "write_json block.json",
        ]  # fmt: skip
        files = yosys.run(script, {"block.il": export.rtlil(component, "block")}, ["block.json"])
        self.module = json.loads(files["block.json"])["modules"]["block"]
        for cell in self.module["cells"].values():
            if "port_directions" not in cell:
                raise ValueError(f"{self.block}: holds a {cell['type']!r}, whose paths nobody knows")
        self._driver: dict[Bit, tuple[Cell, str, int]] = {
            bit: (cell, port, index)
            for cell in self.module["cells"].values()
            for port, bits in cell["connections"].items()
            if cell["port_directions"][port] == "output"
            for index, bit in enumerate(bits)
        }

    def paths(self) -> dict[str, set[str]]:
        """By output, the inputs that reach it combinationally; both by the names of flat ports."""
        inputs = {
            bit: port.name for port in self.ports if port.is_input for bit in self.module["ports"][port.name]["bits"]
        }
        found: dict[str, set[str]] = {}
        for port in self.ports:
            if not port.is_input:
                seen = self._cone(self.module["ports"][port.name]["bits"])
                found[port.name] = {inputs[bit] for bit in seen if bit in inputs}
        return found

    def _cone(self, bits: Iterable[Bit]) -> set[Bit]:
        """All bits from which these depend within the cycle."""
        seen: set[Bit] = set()
        waiting = list(bits)
        while waiting:
            bit = waiting.pop()
            if isinstance(bit, int) and bit not in seen:
                seen.add(bit)
                if bit in self._driver:
                    waiting += _sources(*self._driver[bit])
        return seen

    def registers(self) -> list[Register]:
        """All flip-flops by name, largest first."""
        names = self._names()
        outputs = {bit for port in self.ports if not port.is_input for bit in self.module["ports"][port.name]["bits"]}
        found: dict[str, list[bool]] = defaultdict(list)
        for cell in self.module["cells"].values():
            if cell["type"] in _TRANSPARENT:
                for bit in cell["connections"]["Q"]:
                    found[names[bit]].append(bit in outputs)
        registers = [Register(name.lstrip("\\$"), len(bits), all(bits)) for name, bits in found.items()]
        return sorted(registers, key=lambda register: (-register.bits, register.name))

    def _names(self) -> dict[Bit, str]:
        """Each net's name: of the widest that has it, since a register's fields have names too; best a given one."""
        public = [(name, net["bits"]) for name, net in self.module["netnames"].items() if not net["hide_name"]]
        own = {port.name for port in self.ports}
        names: dict[Bit, str] = {}
        for name, bits in sorted(public, key=lambda net: (len(net[1]), net[0] in own, _is_given(net[0]), net[0])):
            names.update(dict.fromkeys(bits, name))
        for name, net in self.module["netnames"].items():
            for bit in net["bits"]:
                names.setdefault(bit, name)
        return names

    def resettable(self) -> dict[str, int]:
        """Of each register that the port ``rst`` gives a value, the bits, by its name."""
        names, rst = self._names(), self.module["ports"]["rst"]["bits"]
        found: dict[str, int] = defaultdict(int)
        for cell in self.module["cells"].values():
            if cell["type"] in _TRANSPARENT:
                for bit, data in zip(cell["connections"]["Q"], cell["connections"]["D"], strict=True):
                    driver = self._driver.get(data)
                    if driver and driver[0]["type"] == "$mux" and driver[0]["connections"]["S"] == rst:
                        found[names[bit].lstrip("\\$")] += 1
        return dict(found)

    def unusual(self) -> list[str]:
        """Flip-flops that are not plain ones on the rising edge of the port ``clk``, and latches: their kinds."""
        clk = self.module["ports"]["clk"]["bits"]
        return sorted(
            cell["type"]
            for cell in self.module["cells"].values()
            if cell["type"] in _TRANSPARENT
            and (cell["type"] != "$dff" or cell["connections"]["CLK"] != clk or not _parameter(cell, "CLK_POLARITY"))
        )

    def memories(self) -> list[Memory]:
        """All memories, largest first."""
        reads: dict[str, list[Cell]] = defaultdict(list)
        writes: dict[str, int] = defaultdict(int)
        for cell in self.module["cells"].values():
            if cell["type"] == "$memrd_v2":
                reads[_memory(cell)].append(cell)
            elif cell["type"] == "$memwr_v2":
                writes[_memory(cell)] += 1
        found = [
            Memory(
                name.replace("\\", ""), array["width"], array["size"], writes[name], len(reads[name]),
                sum(not _parameter(cell, "CLK_ENABLE") for cell in reads[name]),
            )
            for name, array in self.module.get("memories", {}).items()
        ]  # fmt: skip
        return sorted(found, key=lambda memory: (-memory.bits, memory.name))


def _is_given(name: str) -> bool:
    """Whether a signal has this name in the source, and not one made from a path or a number."""
    return "__" not in name and "$" not in name


def _memory(cell: Cell) -> str:
    return cell["parameters"]["MEMID"].removeprefix("\\")


def _parameter(cell: Cell, name: str) -> int:
    return int(cell["parameters"][name], 2)


def _sources(cell: Cell, port: str, index: int) -> Iterator[Bit]:
    """The bits on which one output bit of a cell depends within the cycle."""
    kind, connections = cell["type"], cell["connections"]
    inputs = [name for name, direction in cell["port_directions"].items() if direction == "input"]
    if kind in _TRANSPARENT:
        for name in _TRANSPARENT[kind]:
            bits = connections[name]
            yield from bits if name in ("EN", "ARST", "ALOAD") else [bits[index]]
    elif kind == "$memrd_v2":
        synchronous = _parameter(cell, "CLK_ENABLE")
        yield from connections["ARST"] if synchronous else [*connections["ADDR"], *connections["EN"]]
    elif kind in _BITWISE:
        width = len(connections[port])
        for name in inputs:
            bits = connections[name]
            yield from bits if name == "S" and kind != "$bwmux" else _own(cell, name, bits, index, width)
    elif kind in _CARRIED:
        for name in inputs:
            yield from connections[name][: index + 1]
    else:
        for name in inputs:
            yield from connections[name]


def _own(cell: Cell, name: str, bits: list[Bit], index: int, width: int) -> list[Bit]:
    """The bits of an operand at one position: of each alternative where there are several, and of the sign's."""
    if len(bits) > width:
        return bits[index::width] if cell["type"] in ("$pmux", "$bmux") else [bits[index]]
    if index < len(bits):
        return [bits[index]]
    return bits[-1:] if int(cell["parameters"].get(f"{name}_SIGNED", "0"), 2) else []


@dataclass(frozen=True)
class Mismatch:
    """A combinational path that is not declared, or a ``declared`` one that is not there."""

    block: str
    output: str
    source: str
    declared: bool

    def __str__(self) -> str:
        if self.declared:
            path = f"'combinational' says that output {self.output} depends on input {self.source}, which it does not"
        else:
            path = (
                f"output {self.output} depends combinationally on input {self.source}, which its attribute "
                "'combinational' does not say"
            )
        return f"{self.block}: {path}"


def check(component: wiring.Component) -> list[Mismatch]:
    """Where a component's combinational paths differ from its declaration.

    A declared pair stands for everything below the two members; it is used if any of their bits are connected.
    """
    declared: Mapping[str, tuple[str, ...]] = getattr(component, "combinational", {})
    netlist = Netlist(component)
    ports = {port.name: port for port in netlist.ports}
    unused = {(output, source) for output, sources in declared.items() for source in sources}
    problems = []
    for output, sources in netlist.paths().items():
        for source in sorted(sources):
            pairs = {
                pair for pair in _pairs(declared) if ports[output].is_below(pair[0]) and ports[source].is_below(pair[1])
            }
            unused -= pairs
            if not pairs:
                problems.append(Mismatch(netlist.block, output, source, declared=False))
    return problems + [Mismatch(netlist.block, output, source, declared=True) for output, source in sorted(unused)]


def _pairs(declared: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    return ((output, source) for output, sources in declared.items() for source in sources)
