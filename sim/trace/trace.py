"""A trace of one SM: what happened in a window of core cycles of one or more launches (``gpu.trace``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lockstep.models.observe import trace as kinds
from lockstep.sim.errors import UsageError
from lockstep.sim.trace import konata, perfetto
from lockstep.sim.trace.recording import Instruction, Launch
from lockstep.sim.trace.target import ENDINGS
from lockstep.spec import files

if TYPE_CHECKING:
    from lockstep.sim.profile import Place
    from lockstep.sim.run import Run

__all__ = ["EVENTS", "Trace"]

EVENTS = 1_000_000  # kept, unless told otherwise: 32 MB


class Trace:
    """A record of one SM. Made by ``gpu.trace``; launches inside of its ``with`` are recorded.

    ``cycles`` is the window, from the first to before the last, in core cycles of the run: its launches follow each
    other. At most ``events`` are kept, those that come first; then ``full`` is the cycle in which the record ends.
    """

    def __init__(self, sm: int = 0, cycles: tuple[int, int | None] = (0, None), events: int = EVENTS) -> None:
        first, last = cycles
        if first < 0 or (last is not None and last <= first):
            raise UsageError(f"cycles {first}:{'' if last is None else last}: must be a begin and a later end")
        if events < 1:
            raise UsageError(f"events = {events}: must be 1 or more")
        self.sm, self.first, self.last = sm, first, last
        self.launches: list[Launch] = []
        self.full: int | None = None
        self._room = events
        self._now = 0  # cycle of the run

    def observer(self) -> Any:
        """What observes the launch that begins; none if that lies outside of the window."""
        until = 1 << 62 if self.last is None else self.last - self._now
        if until <= 0 or self.full is not None:
            return None
        return kinds.Tracer(self.sm, max(self.first - self._now, 0), until, max(self._room, 1))

    def add(
        self, observer: Any, kernel: str, run: Run, code: np.ndarray, places: Callable[[], Sequence[Place]]
    ) -> None:
        """A launch has come to its end."""
        if observer is not None:
            events, until = observer.taken
            if observer.is_full:
                self.full = self._now + until
            ended, end = run.cycles <= until, self._now + min(until, run.cycles)
            self._room -= len(events)
            if end > self.first:
                first = max(self.first, self._now)
                self.launches.append(Launch(kernel, run.gpu, code, places, self._now, first, end, ended, events))
        self._now += run.cycles

    @property
    def instructions(self) -> list[Instruction]:
        """All that issued in the window."""
        return [each for launch in self.launches for each in launch.instructions]

    def write(self, target: str | Path) -> None:
        """Write a file for a viewer, by its ending: ``.kanata`` or ``.log``, ``.perfetto-trace`` or ``.pftrace``."""
        path = Path(target)
        if ENDINGS[path.suffix] == "konata":
            files.write(path, konata.text(self.launches))
        else:
            files.write(path, perfetto.content(self.sm, self.launches))
