"""One modelled GPU beneath what users see of it: its description, its memory, the model, and what has run on it."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from lockstep.sim.compile.ptx.kernel import Kernel
from lockstep.sim.compile.ptx.lines import Places
from lockstep.sim.device import statistics
from lockstep.sim.device.memory import Arena
from lockstep.sim.device.preemptions import SCHEDULE, preemptions
from lockstep.sim.device.run import Run
from lockstep.sim.device.streams import HostProgram, Streams, programs
from lockstep.sim.errors import UsageError, of_type
from lockstep.spec.parameters import Gpu as Description

if TYPE_CHECKING:
    from lockstep.sim.device.trace.trace import Trace

__all__ = ["KEPT", "Device"]

KEPT = 1000  # launches that a device remembers one by one


def _to_standard_output(text: str) -> None:
    sys.stdout.write(text)


class Recording(Protocol):
    """Who records launches as a trace."""

    def launch_of(
        self, device: Device, kernel: Kernel, ptx: str, places: Places, grid: tuple[int, int, int],
        block: tuple[int, int, int], dynamic_bytes: int, param_bytes: int,
    ) -> AbstractContextManager[None]:  # fmt: skip
        """Records the launch inside of the ``with``."""

    def close(self) -> None:
        """The trace is complete."""


class Device:
    """``progress`` is called now and then during a launch with the CTAs that have ended, the CTAs in all, and the core
    cycle; ``on_print`` when a launch has ended or failed, with what it has printed; ``after_launch``, all of them, when
    one has ended. With ``profile``, launches have profiles unless they say otherwise.

    ``every`` is the length of the intervals of ``run.timeline``, in core cycles. None: 1000; when a launch has 200 of
    them, pairs become one, and so do all that follow. With a number, that happens at 50,000.

    ``threads`` are those of the host that a launch may have (``docs/parallel.md``).
    """

    recorder: Callable[..., Recording] | None = None
    """Begins a trace; :mod:`lockstep.sim.gpu` sets it, since traces stand above devices."""

    def __init__(
        self,
        description: Description,
        progress: Callable[[int, int, int], None] | None = None,
        strict: bool = False,
        profile: bool = False,
        threads: int = 1,
    ) -> None:
        self.threads = threads
        self.description = description
        self.memory = Arena(strict=strict)
        self.progress = progress
        self.profile = profile
        self.on_print: Callable[[str], None] | None = _to_standard_output
        self.after_launch: list[Callable[[Run], None]] = []
        self.every: int | None = None
        self.tracing: Trace | None = None
        self.recording_to: Recording | None = None  # what launches are recorded by
        self.runs: deque[Run] = deque(maxlen=KEPT)
        self._raw: dict[str, np.ndarray] = {}

    @cached_property
    def streams(self) -> Streams:
        return Streams(self)

    def synchronize(self) -> None:
        """Run the launches that wait in streams. In a host program that shares the device, none of its own do."""
        if HostProgram.here() is None and self.streams.waiting:
            self.streams.synchronize()

    def run_programs(self, functions: Sequence[Callable[[], Any]]) -> list[HostProgram]:
        """Run up to two functions that launch kernels on this device, each in its own order, both at the same time."""
        return programs(self, self.streams, functions)

    @cached_property
    def machine(self) -> Any:
        """The compiled model; made at the first launch, because it takes a moment."""
        from lockstep.models.gpu import Machine

        machine = Machine(self.description)
        machine.team.threads = self.threads
        return machine

    def show(self, text: str) -> None:
        """Put out what a launch has printed."""
        if text and self.on_print:
            self.on_print(text)

    def record(self, run: Run) -> None:
        """Add a finished launch to :attr:`stats`."""
        self.runs.append(run)
        self._raw = statistics.accumulate(self._raw, run.raw)
        for told in self.after_launch:
            told(run)

    @property
    def stats(self) -> dict[str, float]:
        """The statistics of all launches together; empty before the first."""
        return statistics.compute(self._raw, self.description) if self._raw else {}

    @property
    def per_sm(self) -> list[dict[str, float]]:
        """The same for every SM."""
        if not self._raw:
            return []
        return [statistics.compute(self._raw, self.description, sm) for sm in range(self.description.core.sms)]

    @contextmanager
    def preempting(self, at: Sequence[tuple[int, int, int, int]]) -> Iterator[None]:
        """Let SMs give up CTAs, in the launches inside of the ``with``: rows of (cycle, SM, CTAs, back).

        From core cycle ``cycle`` of a launch, or of what runs in streams, the CTAs that the SM was assigned last leave
        it. From cycle ``back`` on they come back as soon as there is room. A mechanism must know how CTAs leave.
        """
        schedule = preemptions(at, self.description)
        self.synchronize()
        given = self.machine.given
        self.machine.given = {**given, SCHEDULE: schedule}
        try:
            yield
            self.synchronize()
        finally:
            self.machine.given = given

    @contextmanager
    def trace(
        self,
        sm: int = 0,
        cycles: tuple[int, int | None] = (0, None),
        events: int | None = None,
        around_stop: int | None = None,
    ) -> Iterator[Trace]:
        """Record what happens on one SM, in the launches inside of the ``with``.

        ``cycles`` is a window, from the first core cycle to before the last: launches follow each other. At most
        ``events`` are kept (default: :data:`~lockstep.sim.device.trace.trace.EVENTS`). Cycles and statistics are those
        without a trace.

        ``around_stop`` is for a launch that stops early (a fault, a deadlock, no progress): instead of ``sm`` and
        ``cycles``, the trace has the SM that it stops on, and at least that many core cycles before. A launch that
        comes to its end leaves nothing.
        """
        from lockstep.sim.device.trace.trace import EVENTS, Trace  # late, since it compiles the model

        of_type((int, np.integer), "trace: sm", sm, "an integer")
        if not 0 <= sm < self.description.core.sms:
            raise UsageError(f"SM {sm}: {self.description.name} has SMs 0 to {self.description.core.sms - 1}")
        if self.tracing is not None:
            raise UsageError("this Gpu is already recording another trace")
        trace = Trace(sm, cycles, EVENTS if events is None else events, around_stop)
        self.tracing = trace
        try:
            yield trace
        finally:
            self.tracing = None

    @contextmanager
    def recording(self, folder: str | os.PathLike[str], provenance: Mapping[str, Any] | None = None) -> Iterator[None]:
        """Record what warps execute, in the launches inside of the ``with``, as a trace in a new folder.

        It can be replayed under any configuration (``docs/traces.md``); ``provenance`` says what was recorded. Cycles
        and statistics are those without. When the block is left by an error, the trace stays unfinished.
        """
        if self.recording_to is not None:
            raise UsageError("this Gpu is already recording another trace")
        self.synchronize()
        assert self.recorder is not None, "lockstep.sim.gpu has set it"
        recording = self.recorder(folder, provenance or {})
        self.recording_to = recording
        try:
            yield
            recording.close()
        finally:
            self.recording_to = None
