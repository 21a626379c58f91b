"""A block's Verilog for whole runs: the same in every output, with less work for Verilator's code.

Yosys finds logic that is there twice, or never matters, and registers that mostly keep their value. Nets are split by
what drives them, since Verilator would see loops in nets of which some bits follow from others. And a memory is written
in whole entries, since each lane of a write is a write with a state of its own to Verilator.
"""

from __future__ import annotations

import re

from lockstep.rtl import yosys

_SCRIPT = (
    "read_rtlil block.il", "proc -norom", "flatten", "opt", "splitnets -driver", "opt_clean", "memory_collect",
    "opt_clean", "write_verilog -norename -noattr block.v",
)  # fmt: skip
# Enable, memory, address, bounds, value.
_LANE = re.compile(r" +if \((.+)\)\n +(\S+) ?\[(.+?) ?\]\[(\d+):(\d+)\] <= (.+?) ?;\n")
_LANES = re.compile(f"(?:{_LANE.pattern})+")


def simplified(rtlil: str) -> str:
    """A netlist as Verilog, in one module."""
    return whole_writes(yosys.run(_SCRIPT, {"block.il": rtlil}, ["block.v"])["block.v"])


def whole_writes(verilog: str) -> str:
    """A module in which an entry of a memory is written as a whole, where one write in lanes is all that there is."""
    return _LANES.sub(lambda found: _whole_write(verilog, found[0]), verilog)


def _whole_write(verilog: str, text: str) -> str:
    lanes = _LANE.findall(text)
    _, memory, address, *_ = lanes[0]
    name = re.escape(memory)
    declared = re.search(rf"^ +reg \[(\d+):0\] {name} +\[", verilog, re.MULTILINE)
    writes = re.findall(rf"^ +{name} ?\[.+\] <= ", verilog, re.MULTILINE)
    ends = [int(high) + 1 for *_, high, _, _ in lanes]
    whole = declared and ends[-1] == int(declared[1]) + 1 and [int(low) for *_, low, _ in lanes] == [0, *ends[:-1]]
    if not whole or len(writes) != len(lanes) or {lane[1:3] for lane in lanes} != {(memory, address)}:
        return text
    entry = f"{memory} [{address} ]"
    written = ", ".join(enable for enable, *_ in lanes)
    values = (f"{enable} ? {value} : {entry}[{high}:{low}]" for enable, _, _, high, low, value in reversed(lanes))
    return f"    if (|{{{written}}})\n      {entry} <= {{{', '.join(values)}}};\n"
