"""Traces of what warps execute: recorded beside the execution, or played in its place.

Both take part in a launch as :class:`Part`: a *guide*, which sees each instruction when it issues
(``core.state.LAUNCH``), and functions that stand in the place of executing ones. Nothing here is compiled into the run
loop, and a launch without a part calls nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol
from weakref import WeakMethod

from lockstep.models.execution.isa import Group
from lockstep.models.machine import Model


class Part(Protocol):
    """Who records or replays a launch."""

    guide: Any  # a slot: called with the context and the warp's record when an instruction issues; returns a fault
    functions: dict[Group, Any]  # slots in the place of executing functions

    @property
    def address(self) -> int:
        """That of its record, which both find in the context."""


def calling_back(method: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """A part's own method, for ``jit.hosted``, without a cycle: what a part keeps goes when its launch has ended."""
    found = WeakMethod(method)

    def called(one: int, other: int) -> int:
        alive = found()
        return alive(one, other) if alive is not None else 0

    return called


@contextmanager
def taking_part(machine: Model, part: Part) -> Iterator[None]:
    """Let somebody record or replay the launch inside of the ``with``."""
    before = machine.slots, machine.guide, machine.trace
    machine.slots = {**machine.slots, **part.functions}
    machine.guide, machine.trace = part.guide, part.address
    try:
        yield
    finally:
        machine.slots, machine.guide, machine.trace = before
