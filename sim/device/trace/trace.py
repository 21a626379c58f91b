"""A trace of one SM: what happened in a window of core cycles of one or more launches (``gpu.trace``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from lockstep.models.observe import trace as kinds
from lockstep.sim.device.trace import konata, perfetto
from lockstep.sim.device.trace.recording import Code, Instruction, Launch
from lockstep.sim.device.trace.target import ENDINGS, LAST
from lockstep.sim.errors import UsageError, of_type
from lockstep.spec import files

if TYPE_CHECKING:
    from lockstep.spec.parameters import Gpu

__all__ = ["EVENTS", "Trace"]

EVENTS = 1_000_000  # kept, unless told otherwise: 32 MB
MOST_EVENTS = 1_000_000_000


class Trace:
    """A record of one SM. Made by ``gpu.trace``; launches inside of its ``with`` are recorded.

    ``cycles`` is the window, from the first to before the last, in core cycles of the run: its launches follow each
    other. At most ``events`` are kept, those that come first; then ``full`` is the cycle in which the record ends.

    With ``around_stop``, the trace is of the first launch that stops early, of the SM that it stops on, and of the
    ``around_stop`` cycles before it, or more, or as many as ``events`` of all SMs allow.
    """

    def __init__(
        self,
        sm: int = 0,
        cycles: tuple[int, int | None] = (0, None),
        events: int = EVENTS,
        around_stop: int | None = None,
    ) -> None:
        rule = "a pair of integers, of which the second may be None"
        if len(of_type((tuple, list), "cycles", cycles, rule)) != 2:
            raise UsageError(f"cycles = {cycles!r}: must be {rule}")
        first, last = cycles
        of_type((int, np.integer), "cycles", first, rule)
        of_type((int, np.integer, NoneType), "cycles", last, rule)
        of_type((int, np.integer, NoneType), "around_stop", around_stop, "an integer, 1 core cycle or more")
        of_type((int, np.integer), "events", events, "an integer")
        if not 0 <= first < (LAST if last is None else min(last, LAST)):
            raise UsageError(f"cycles {first}:{'' if last is None else last}: the end must be later than the begin")
        if not 1 <= events <= MOST_EVENTS:
            raise UsageError(f"events = {events}: must be 1 to {MOST_EVENTS}")
        if around_stop is not None and (not 1 <= around_stop <= LAST or sm != 0 or cycles != (0, None)):
            rule = "must be 1 core cycle or more, without sm and cycles, which come from the launch that stops"
            raise UsageError(f"around_stop = {around_stop}: {rule}")
        self.sm, self.first, self.last = sm, first, last
        self.launches: list[Launch] = []
        self.full: int | None = None
        self._around_stop = around_stop
        self._room = events
        self._now = 0  # cycle of the run

    def observer(self, gpu: Gpu) -> Any:
        """The observer of the launch that begins; none if that lies outside of the window."""
        if self._around_stop is not None:
            if self.launches:
                return None
            sms = range(gpu.core.sms)
            room = max(self._room // len(sms), 4 * kinds.IN_A_CYCLE)
            return kinds.Tracer(sms, 0, LAST, room, self._around_stop)
        until = LAST if self.last is None else min(self.last, LAST) - self._now
        if until <= 0 or self.full is not None:
            return None
        return kinds.Tracer(range(self.sm, self.sm + 1), max(self.first - self._now, 0), until, max(self._room, 1))

    def add(
        self,
        observer: Any,
        codes: Sequence[Code],
        gpu: Gpu,
        cycles: int,
        stop: int | None = None,
    ) -> None:
        """A launch has come to its end after ``cycles`` core cycles, or has stopped early on the SM ``stop``.

        Or what has run in two streams: ``codes`` are the kernels.
        """
        if observer is not None and (stop is not None or self._around_stop is None):
            if self._around_stop is not None:
                self.sm = max(stop or 0, 0)  # the launch as a whole stopped: SM 0
            events, first, until = observer.taken(self.sm)
            if observer.is_full(self.sm):
                self.full = self._now + until
            ended, end = stop is None and cycles <= until, min(until, cycles)
            self._room -= len(events)
            if end > first:
                span = self._now + first, self._now + end
                self.launches.append(Launch(codes, gpu, self._now, *span, ended, events))
        self._now += cycles

    @property
    def instructions(self) -> list[Instruction]:
        """All that issued in the window."""
        return [each for launch in self.launches for each in launch.instructions]

    @property
    def span(self) -> str:
        """The contents of the trace, in words."""
        first, until = self.launches[0].first, self.launches[-1].until
        return f"timeline of SM {self.sm}, cycles {first:,} to {until - 1:,}"

    def write(self, target: str | Path) -> None:
        """Write a file for a viewer, by its ending: ``.kanata`` or ``.log``, ``.perfetto-trace`` or ``.pftrace``."""
        path = Path(target)
        if ENDINGS[path.suffix] == "konata":
            files.write(path, konata.text(self.launches))
        else:
            files.write(path, perfetto.content(self.sm, self.launches))
