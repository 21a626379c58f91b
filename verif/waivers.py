"""Proves that the waived points of code coverage cannot be reached: all of a block's at once, without bound.

The block, in the configuration that is measured, gets any inputs that its bench's ``protocol`` allows, and a reset at
any time, as between the runs that are measured. The properties are added to the Verilog whose points are counted:

========================== =========================================================================================
toggle of a register       the bit keeps its initial value, since a reset brings back whatever leaves it
toggle of anything else    the bit does not change in this way from one cycle to the next
branch of ``if``, ``a ? b`` its condition is never true, or never false
========================== =========================================================================================

They are about clock edges. Coverage also counts what a combinational signal does between two of them; if it reaches a
point only there, the point must not be waived.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from amaranth.hdl import Assume, ClockSignal, Elaboratable, Instance, Module, ResetInserter, Signal

from lockstep.rtl import yosys
from lockstep.verif.blocks import Declaration
from lockstep.verif.coverage import Point
from lockstep.verif.formal import Outcome, check, free_rtlil

DEPTH = 2  # of the induction: a change takes two cycles


def prove(declared: Declaration, points: Sequence[Point], folder: Path) -> Outcome:
    """One proof for all points; if it fails, the counterexample names some that may be reached.

    Raises
    ------
    ValueError
        for a point of another kind than those above.
    """
    lines = declared.counted(declared.first).split("\n")
    for number, point in sorted(enumerate(points), key=lambda item: -item[1].line):  # lines above stay where they are
        end = lines.index("endmodule", point.line)
        lines[end:end] = claim(point, "\n".join(lines[:end]), number)
    files = {"block.v": "\n".join(lines), "top.il": free_rtlil(Surrounded(declared))}
    text = yosys.run(["read_verilog -formal block.v", "read_rtlil top.il", "write_rtlil all.il"], files, ["all.il"])
    outcome = check("waivers", text["all.il"], "prove", DEPTH, folder)
    if outcome.passed:
        return outcome
    failed = dict.fromkeys(int(number) for number in re.findall(r"waived_(\d+)", outcome.counterexample))
    told = [f"not proved: {points[number].name}" for number in failed] or [f"not proved: {outcome.counterexample}"]
    return replace(outcome, counterexample="\n".join(told))


def claim(point: Point, before: str, number: int) -> list[str]:
    """Verilog that asserts that a point is not reached; ``before`` is the text of its module up to the end."""
    module = before.rpartition("\nmodule ")[2]
    name = f"waived_{number}"
    what, _, text = point.name.partition(": ")
    what = what.rpartition(".")[2]
    if toggle := re.fullmatch(r"((\w+)(?:\[(\d+)\])?) ([01])->([01])", what):
        bit, signal, index, old, new = toggle.groups()
        if register := re.search(rf"^  reg (?:\[\d+:0\] )?{signal} = \d+'h(\w+);", module, re.MULTILINE):
            initial = int(register[1], 16) >> int(index or 0) & 1
            return [f"  always @* {name}: assert ({bit} == {initial});"]
        return [
            f"  reg {name}_was = {new};",
            f"  always @(posedge clk) {name}_was <= {bit};",
            f"  always @* {name}: assert ({name}_was != {old} || {bit} != {new});",
        ]
    found = re.search(r" = (\S+) \? " if what.startswith("cond_") else r"^if \((\S+)\)", text)
    if found and text.count(" ? ") < 2:
        condition = f"!({found[1]})" if what in ("cond_then", "if") else found[1]
        return [f"  always @* {name}: assert ({condition});"]
    raise ValueError(f"{point.name}: a point of this kind cannot be proved")


class Surrounded(Elaboratable):
    """The block with free inputs and a free reset, within its protocol."""

    def __init__(self, declared: Declaration) -> None:
        self.declared = declared

    def elaborate(self, platform: object) -> Module:
        declared, parameters = self.declared, self.declared.configurations[self.declared.first]
        m, inner, reset = Module(), Module(), Signal()
        ports = {port.name: Signal(port.bits, name=port.name) for port in declared.ports(declared.first)}
        inputs = {port.name for port in declared.ports(declared.first) if port.is_input}
        m.submodules.block = Instance(
            declared.name, i_clk=ClockSignal(), i_rst=reset,
            **{f"{'i' if name in inputs else 'o'}_{name}": signal for name, signal in ports.items()},
        )  # fmt: skip
        inner.d.comb += Assume(declared.protocol(inner, parameters, ports))
        m.submodules.protocol = ResetInserter(reset)(inner)
        return m
