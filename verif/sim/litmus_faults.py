"""Faults in the memory hierarchy that litmus tests must find, planted in the interpreted model.

Run with ``NUMBA_DISABLE_JIT=1``: functions are Python's then, and another one may take the place of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lockstep.models.core import control, scoreboard
from lockstep.models.execution.isa import GLOBAL_BASE, Flag
from lockstep.models.jit import COMPILED
from lockstep.models.lsu import tokens
from lockstep.models.memory import l1, l2, values
from lockstep.models.memory.fabric import ATOMIC, packet_of
from lockstep.sim.device import description
from lockstep.sim.study.litmus import SHAPES, Laboratory, Run, words_of
from lockstep.sim.study.litmus.shapes import Variant

Plant = Callable[[], Any]


def _without_invalidation() -> None:
    """A fence leaves the L1 as it is."""
    control.l1_invalidate = lambda _: None


def _without_waiting() -> None:
    """A fence does not wait for stores on their way to the L2."""
    scoreboard.all_performed = lambda *_: True


def _nothing() -> None:
    """A fence does nothing."""
    _without_invalidation()
    _without_waiting()


def _volatile_hits() -> None:
    """Volatile loads look the L1 up."""
    kind = tokens.request_kind

    def wrong(config: Any, instruction: Any) -> int:
        found = kind(config, instruction)
        return int(l1.LOAD if found == l1.LOAD_BYPASS and instruction.flags & Flag.VOLATILE else found)

    tokens.request_kind = wrong


def _in_the_l1() -> None:
    """An atomic on the words of a test operates on its SM's own copy of them."""
    own: dict[int, np.ndarray] = {}
    right = values._perform
    nbytes = 4 * words_of(description.load("gtx480"))  # that is what comes first in memory

    def wrong(memory: Any, index: int, cargo: Any) -> None:
        packet, arena = packet_of(memory, index), memory.arena
        if packet.kind == ATOMIC and cargo.address < GLOBAL_BASE + nbytes:
            memory.arena = own.setdefault(packet.sm, np.zeros(nbytes, np.uint8)).ctypes.data
        right(memory, index, cargo)
        memory.arena = arena

    values._perform = wrong


def _stores_leave_lines() -> None:
    """A store leaves the line of its own SM as it is."""
    l1._forget = lambda *_: False


def _overtaking() -> None:
    """On a mesh, what overtakes takes effect first."""

    def wrong(memory: Any, index: int) -> None:
        cargo = values.cargo_of(memory, index)
        if cargo.waits:
            values._perform(memory, index, cargo)

    l2.take_effect = wrong


PLANTS: dict[str, Plant] = {
    "a fence does nothing": _nothing,
    "a fence does not invalidate": _without_invalidation,
    "a fence does not wait": _without_waiting,
    "a volatile load hits": _volatile_hits,
    "an atomic in the L1": _in_the_l1,
    "a store leaves its line": _stores_leave_lines,
    "packets overtake": _overtaking,
}


def found(plant: str, test: str, access: str, fence: str, gpu: str, sms: int, seed: int) -> list[int]:
    """How often each forbidden outcome of a test on several SMs occurs with a fault; none if the name is empty."""
    assert not COMPILED
    if plant:
        PLANTS[plant]()
    shape = SHAPES[test]
    laboratory = Laboratory(gpu, (), {"l1.values": "lines", "core.sms": sms})
    run: Run = laboratory.one(shape, Variant(access, fence, "sms"), "lines", [seed])
    return [run.count(outcome) for outcome in shape.outcomes if outcome.forbidden(run.variant)]
