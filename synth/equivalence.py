"""Whether the gates that synthesis makes of a block do what its RTL does.

Registers and nets that have the same name in both are compared, bit by bit, without bound, from any state in which all
of them are equal; memories are flip-flops here. Where a name means something else in the gates, or arithmetic is wide,
points may remain undecided.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amaranth.lib import wiring

from lockstep.rtl import export, yosys

_TOP = "block"
FLAT = ("proc -norom", "flatten", "memory_map", "opt_clean")
"""A design as one module of registers and logic."""


@dataclass(frozen=True)
class Equivalence:
    """``points`` were compared; ``undecided`` names those that are not proved equal."""

    points: int
    undecided: list[str]


def compare(rtl: wiring.Component, synthesised: wiring.Component) -> Equivalence:
    """The RTL of a component, and the gates of another one like it; neither may have been elaborated."""
    gates = [f"synth -top {_TOP} -nordff", "opt_clean -purge"]
    files = {"rtl.il": export.rtlil(rtl, _TOP), "gates.il": export.rtlil(synthesised, _TOP)}
    read = [f"hierarchy -top {_TOP}", *FLAT]
    return equal(_TOP, ["read_rtlil rtl.il", *read], ["read_rtlil gates.il", *read, *gates], files)


def texts(top: str, gold: str, gate: str) -> Equivalence:
    """Compare two texts in Verilog whose registers have the same names."""
    first, second = ([f"read_verilog {name}.v", *FLAT] for name in ("gold", "gate"))
    return equal(top, first, second, {"gold.v": gold, "gate.v": gate})


def equal(top: str, gold: Sequence[str], gate: Sequence[str], files: Mapping[str, str]) -> Equivalence:
    """Compare the two designs that these commands of Yosys make of files; each is one module, ``top``."""
    script = [
        *gold, f"rename {top} gold", "design -stash gold", *gate, f"rename {top} gate", "design -stash gate",
        "design -copy-from gold gold", "design -copy-from gate gate", "equiv_make gold gate equiv",
        "hierarchy -top equiv", "opt_clean", "equiv_simple", "equiv_induct", "tee -q -o status equiv_status",
    ]  # fmt: skip
    status = yosys.run(script, files, ["status"])["status"]
    points = re.search(r"Found (\d+) \$equiv cells", status)
    if not points:
        raise yosys.YosysError(f"no status of the equivalence: {status}")
    return Equivalence(int(points[1]), re.findall(r"Unproven \$equiv \S+: (.+)", status))
