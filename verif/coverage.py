"""How much of a block the runs reach: functional bins, and lines, branches, toggles and transitions of its Verilog.

Every configuration by itself must hit each bin that it can: what another one hits says nothing of a fault that shows in
one alone.

So is code coverage, in the first configuration and in those that the bench names. It is that of the Verilog with a wire
for each operator (:func:`lockstep.rtl.export.operators`): inside an expression, a simulator does not look at what is
not chosen. Counted are all statements and branches; the toggles, up and down, of every bit of every port (clock and
reset apart) and of every register; and the transitions of registers that hold an enumeration. What an environment
presets counts too. Not counted are wires, whose values the former determine and of which most have no name, and
memories, of which Verilator counts none. A block that joins others is measured with all that is inside it, unless its
bench says that this is its parts' (``OWN_CODE``).

The transitions to reach are those that the bench names; another one must not be. What else cannot be reached is waived
by the bench, with the reason. A waiver that matches nothing, or a point that is
reached, is an error, and so is one that is not proved (:mod:`lockstep.verif.waivers`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lockstep.rtl import registry
from lockstep.verif import transitions, verilated
from lockstep.verif.blocks import Declaration, Waiver
from lockstep.verif.state import modules, registers, state
from lockstep.verif.trace import Trace, joined

KINDS = ("line", "branch", "toggle", "transition")


@dataclass(frozen=True)
class Point:
    """One thing to cover.

    ``name``: for a toggle ``signal[bit] 0->1``, for a transition ``register OLD->NEW``, otherwise ``kind: text of the
    line``.

    Inside a part of a joined unit, the name of the part and a dot come before it. ``line`` is that of the Verilog.
    """

    kind: str
    name: str
    line: int
    count: int


@dataclass
class Coverage:
    """Of one configuration of a block; ``errors`` are what is missing or contradicts itself."""

    block: str
    points: list[Point]
    waived: dict[str, str]
    errors: list[str] = field(default_factory=list)

    def share(self, kind: str) -> tuple[int, int]:
        """Points of a kind that were reached, and that could have been."""
        able = [point for point in self.points if point.kind == kind and point.name not in self.waived]
        return sum(point.count > 0 for point in able), len(able)

    def missing(self) -> list[Point]:
        return [point for point in self.points if not point.count and point.name not in self.waived]

    def json(self) -> dict[str, Any]:
        code = {}
        for kind in KINDS:
            reached, able = self.share(kind)
            code[kind] = {"reached": reached, "of": able}
        return {
            "block": self.block,
            "code": code,
            "waived": self.waived,
            "missing": [point.name for point in self.missing()],
            "errors": self.errors,
        }

    def lcov(self, source: str) -> str:
        """Lines and branches in the format of ``genhtml`` and of editors; ``source`` is the path of the Verilog."""
        lines: dict[int, int] = {}
        out = [f"TN:{self.block}", f"SF:{source}"]
        for number, point in enumerate(point for point in self.points if point.kind != "toggle"):
            if point.kind == "branch":
                out.append(f"BRDA:{point.line},0,{number},{point.count}")
            lines[point.line] = max(point.count, lines.get(point.line, 0))
        out += [f"DA:{line},{count}" for line, count in sorted(lines.items())]
        return "\n".join([*out, "end_of_record", ""])


def measure(declared: Declaration, traces: Sequence[Trace]) -> Coverage:
    """What traces of a block's first configuration reach."""
    equal, points = _played(declared, joined(traces))
    coverage = Coverage(declared.block, [], {})
    for point in points:
        if _able(declared, point):
            coverage.points.append(point)
        elif point.count:
            coverage.errors.append(f"not in TRANSITIONS, but reached: {point.name}")
    if not equal:
        coverage.errors.append(f"{declared.first}: the hardware differs from its model")
    for waiver in declared.waivers:
        matched = _matched(waiver, points)
        coverage.waived |= {point.name: waiver.reason for point in matched}
        coverage.errors += [f"waived, but reached: {point.name}" for point in matched if point.count]
        if not matched:
            coverage.errors.append(f"waiver {waiver.points!r} matches nothing")
    coverage.errors += [f"not reached: {point.name}" for point in coverage.missing()]
    return coverage


def _able(declared: Declaration, point: Point) -> bool:
    """Whether a point is one to reach: of transitions, those that the bench names."""
    if point.kind != "transition":
        return True
    register, _, change = point.name.rpartition(".")[2].partition(" ")
    old, new = change.split("->")
    return any(re.fullmatch(name, register) and new in then.get(old, ()) for name, then in declared.transitions.items())


def waived(declared: Declaration) -> list[Point]:
    """All points that a block's waivers match."""
    nothing = Trace("", declared.configurations[declared.first], np.zeros(1, declared.model().PORTS), np.zeros(1, bool))
    points = _played(declared, nothing)[1]
    return [point for waiver in declared.waivers for point in _matched(waiver, points)]


def _matched(waiver: Waiver, points: Sequence[Point]) -> list[Point]:
    return [point for point in points if re.fullmatch(waiver.points, point.name)]


def _played(declared: Declaration, trace: Trace) -> tuple[bool, list[Point]]:
    """Whether the first configuration's hardware equals the trace, and its points."""
    verilog, ports = declared.counted(declared.first), declared.ports(declared.first)
    preset = {path.partition("[")[0] for values in trace.presets.values() for path in values}
    inner = [each for each in state(verilog, declared.name) if each.path in preset]
    player = verilated.player(verilog, declared.name, ports, coverage=True, inner=inner)
    found, data = verilated.play(player, [trace], ports)
    points = _points(data, declared.name, verilog, {port.name for port in ports})
    return found == [-1], [point for point in points if not (declared.own_code and _is_of_a_part(point))]


def _is_of_a_part(point: Point) -> bool:
    """Whether a point is inside another block."""
    found = re.match(r"(\w+)\.", point.name)
    part = found[1] if found else ""
    return any(part.startswith(block.partition(".")[2]) for block in registry.blocks())


def functional(declared: Declaration, bins: Mapping[str, Counter[str]]) -> list[str]:
    """What is wrong with the bins: in a configuration not hit, or hit although it was declared to be unable to."""
    errors = []
    for name in declared.bins:
        able = [configuration for configuration in bins if name in declared.able(configuration)]
        missed = [configuration for configuration in able if not bins[configuration][name]]
        if not able:
            errors.append(f"{declared.block}: bin declared unreachable in every configuration: {name}")
        errors += [f"{declared.block}, {configuration}: bin not hit: {name}" for configuration in missed]
        wrong = [configuration for configuration in bins if bins[configuration][name] and configuration not in able]
        said = f"bin hit although declared unreachable: {name}"
        errors += [f"{declared.block}, {configuration}: {said}" for configuration in wrong]
    return errors


def _points(data: str, top: str, verilog: str, ports: set[str]) -> Iterator[Point]:
    """What Verilator counted, in its own format: ``C '\\x01key\\x02value...' count``."""
    text = verilog.split("\n")
    counted = {name: registers(module) | (ports if name == top else set()) for name, module in modules(verilog).items()}
    for line in data.split("\n"):
        if not (found := re.fullmatch(r"C '(.*)' (\d+)", line)):
            continue
        keys = dict(pair.split("\x02") for pair in found[1].split("\x01")[1:])
        kind, number, what, count = keys["t"], int(keys["l"]), keys["o"], int(found[2])
        module = keys["page"].partition("/")[2]
        part = "" if module == top else f"{module.removeprefix(f'{top}_')}."
        if kind == "toggle":
            signal, _, change = what.replace("___05F", "__").partition(":")
            if signal.partition("[")[0] in counted[module]:
                yield Point(kind, f"{part}{signal} {change}", number, count)
        elif transition := transitions.LINE.fullmatch(text[number - 1]):
            if what == "if":
                yield Point("transition", f"{part}{transition[1]}", number, count)
        elif transitions.BEFORE.fullmatch(text[number - 1]):
            continue
        elif not text[number - 1].lstrip().startswith("reg "):  # an initial value
            yield Point(kind, f"{part}{what}: {text[number - 1].strip()}", number, count)
