"""Whether the gates that synthesis makes of a block do what its RTL does.

Registers and nets that have the same name in both are compared, bit by bit, without bound, from any state in which all
of them are equal; memories are flip-flops here. Where a name means something else in the gates, or arithmetic is wide,
points may remain undecided.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from amaranth.lib import wiring

from lockstep.rtl import export, yosys

_TOP = "block"


@dataclass(frozen=True)
class Equivalence:
    """``points`` were compared; ``undecided`` names those that are not proved equal."""

    points: int
    undecided: list[str]


def compare(rtl: wiring.Component, synthesised: wiring.Component) -> Equivalence:
    """The RTL of a component, and the gates of another one like it; neither may have been elaborated."""
    coarse = [f"hierarchy -top {_TOP}", "proc -norom", "flatten", "memory_map", "opt_clean"]
    gates = [f"synth -top {_TOP} -nordff", "opt_clean -purge"]
    script = [
        "read_rtlil rtl.il", *coarse, f"rename {_TOP} gold", "design -stash gold",
        "read_rtlil gates.il", *coarse, *gates, f"rename {_TOP} gate", "design -stash gate",
        "design -copy-from gold gold", "design -copy-from gate gate", "equiv_make gold gate equiv",
        "hierarchy -top equiv", "opt_clean", "equiv_simple", "equiv_induct", "tee -q -o status equiv_status",
    ]  # fmt: skip
    files = {"rtl.il": export.rtlil(rtl, _TOP), "gates.il": export.rtlil(synthesised, _TOP)}
    status = yosys.run(script, files, ["status"])["status"]
    points = re.search(r"Found (\d+) \$equiv cells", status)
    if not points:
        raise yosys.YosysError(f"no status of the equivalence: {status}")
    return Equivalence(int(points[1]), re.findall(r"Unproven \$equiv \S+: (.+)", status))
