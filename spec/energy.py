"""Events of a run that take energy: accesses to arrays and operations; ``sim/study/energy`` accounts for them.

The frame's are here; a mechanism's (``Mechanism.energy``) of a component take the place of the frame's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep.spec.parameters import LANES

Configuration = Mapping[str, Any]
"""Values of parameters, by full name."""

REGISTER_BYTES = 4  # of a lane
WARP_REGISTER_BITS = 8 * REGISTER_BYTES * LANES


@dataclass(frozen=True)
class Use:
    """Events of a component.

    Parameters
    ----------
    component : str
        Of the account.
    statistics : names
        How many there were, added up.
    operation : str
        What each takes, as a process has it: an access to an array, or an operation of a lane.
    size : function
        Of an array, from the configuration: the bits of an access, and the bytes of the array that it opens.
    """

    component: str
    statistics: tuple[str, ...]
    operation: str
    size: Callable[[Configuration], tuple[int, int]] = lambda configuration: (0, 0)


ARRAY = "array"


def _cache(name: str, bits: Callable[[Configuration], int]) -> Callable[[Configuration], tuple[int, int]]:
    def size(c: Configuration) -> tuple[int, int]:
        return bits(c), c[f"{name}.sets"] * c[f"{name}.ways"] * c[f"{name}.line_bytes"]

    return size


def register_file(c: Configuration) -> tuple[int, int]:
    return WARP_REGISTER_BITS, c["core.registers"] * REGISTER_BYTES // c["core.register_banks"]


def _scratchpad(c: Configuration) -> tuple[int, int]:
    """All banks deliver a word for an access."""
    return 8 * c["scratchpad.bank_bytes"] * LANES, c["scratchpad.bytes"] // c["scratchpad.banks"]


def _l2(c: Configuration) -> tuple[int, int]:
    return 8, c["l2.sets"] * c["l2.ways"] * c["l1.line_bytes"]


FETCH, REGISTERS, ALU, SCRATCHPAD, L1, CONSTANTS, L2 = (
    "instruction fetch", "registers", "arithmetic", "scratchpad", "L1", "constant cache", "L2"
)  # fmt: skip

USES = (
    Use(FETCH, ("instruction_cache.hits", "instruction_cache.misses"), ARRAY,
        _cache("instruction_cache", lambda c: 8 * c["instruction_cache.instruction_bytes"] * c["core.fetch_width"])),
    Use(REGISTERS, ("registers.reads", "registers.writes"), ARRAY, register_file),
    *(Use(ALU, (f"lanes.{category}",), category) for category in (
        "integer", "float", "double", "special", "special_double", "logical", "compare", "conversion", "video",
        "multiply", "shift", "divide_integer", "divide", "divide_double")),
    Use(SCRATCHPAD, ("scratchpad.accesses",), ARRAY, _scratchpad),
    Use(L1, ("l1.accesses",), ARRAY, _cache("l1", lambda c: 8 * c["l1.line_bytes"])),
    Use(L1, ("l1.in_bytes",), ARRAY, _cache("l1", lambda c: 8)),
    Use(CONSTANTS, ("constant_cache.hits", "constant_cache.misses"), ARRAY,
        _cache("constant_cache", lambda c: 8 * REGISTER_BYTES)),
    Use("crossbar", ("crossbar.requests_bytes", "crossbar.replies_bytes"), "crossbar byte"),
    Use(L2, ("l2.in_bytes", "l2.out_bytes"), ARRAY, _l2),
    Use("DRAM", ("dram.read_bytes", "dram.written_bytes"), "dram byte"),
    Use("DRAM", ("dram.activates",), "dram activation"),
    Use("idle", ("sm.active_core_cycles",), "idle cycle of an SM"),
)  # fmt: skip
"""Of the frame. What a process has no energy for is listed as not counted."""
