"""A run of a GPU, from the first grid that begins until none is left: one grid, or two at a time.

What is computed in each cycle is in ``models/run.py``. A run begins with the resets of its first grid. One that enters
while another runs finds the SMs as they are; it has ended with its last CTA, whose last stores may still be on their
way. The last grid has ended when nothing is on its way any more.
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from lockstep.models import jit as J
from lockstep.models import laws
from lockstep.models.execution.isa import LANES, Fault, Group
from lockstep.models.launch import Arena, Kernel, Launch, Program, describe
from lockstep.models.machine import Model
from lockstep.models.memory.values import finish_stores
from lockstep.models.observe import Observer
from lockstep.models.observe.intervals import Intervals
from lockstep.models.occupancy import plan
from lockstep.models.progress import Files, Watch, between_looks
from lockstep.models.run import enter, invalidate, run
from lockstep.models.stop import ModelFault, Records, Stop
from lockstep.models.team import window
from lockstep.spec.parameters import MAX_GRIDS


@dataclass
class Result:
    """Raw counts of a run by name (``sim/device/statistics.py``), an element per SM, slice or channel; its fault."""

    raw: dict[str, np.ndarray]
    fault: Stop | None
    steps: int  # of SMs, which the run loop made
    intervals: Intervals
    one_thread: str  # why it had one thread, whatever was asked for; empty: it need not have
    printed: str  # by ``printf``, in the grid that ended last


@dataclass(frozen=True)
class Ended:
    """A grid that has ended: its index, the core cycles in which it was there, what was counted of it.

    ``raw`` has its memory traffic when the next grid begins in its place, or the run is over: what is on its way when
    the last CTA has ended belongs to the grid, too. ``beside`` are the warp instructions that had issued in the other
    place by the end.
    """

    index: int
    began: int
    ended: int
    raw: dict[str, np.ndarray]
    printed: str
    beside: int


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Let an interrupt come when this ends: Python that compiled code calls (``printf``) would swallow it."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield  # none can come here
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _obstacle(machine: Model, kernel: Kernel, arena: Arena, grids: int, observers: Sequence[Observer]) -> str:
    """Why a run of a kernel is in lockstep, and has one thread, whatever was asked for; empty: it has windows."""
    gpu, groups = machine.gpu, set(kernel.code["group"].tolist())
    reasons = {
        "memory has values as instructions execute (`l1.values = memory`)": gpu.l1.values == "memory",
        "on a mesh, packets pass each other": gpu.mesh.columns != 0,
        "replies come at once (`crossbar.latency`, `l1.latency`)": window(gpu) < 2,
        "two kernels run at once": grids > 1,
        "CTAs can be preempted": bool(machine.sms["frame"]["context"]["step"].any()),
        "it is observed": bool(observers),
        "it is recorded or replayed": machine.guide is not None or machine.trace != 0,
        "memory keeps marks": arena.marks != 0,
        "it accesses textures or surfaces": Group.TEXTURE in groups,
        "it calls the host": Group.SYSTEM in groups,
        "the model is interpreted": not J.COMPILED and machine.team.threads > 1,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


class Session:
    """One run. ``grids`` is how many may run at once; ``progress``, ``observers`` and ``interval`` are those of
    :meth:`~lockstep.models.gpu.Machine.launch`.
    """

    def __init__(
        self,
        machine: Model,
        grids: int,
        progress: Callable[[int, int, int], None] | None,
        observers: Sequence[Observer],
        interval: int | None,
    ) -> None:
        self._machine, self._grids = machine, grids
        self._progress, self._observers, self._interval = progress, observers, interval
        self._programs: list[Program] = []  # also of grids that have ended: their last fetches may be on their way
        self._began = [0] * MAX_GRIDS
        self._before: list[dict[str, np.ndarray]] = [{}] * MAX_GRIDS  # what had been counted when a grid began
        self._last: list[Ended | None] = [None] * MAX_GRIDS  # the last grid that has ended in a place
        self._ctas = self._warps = 0  # of all grids
        self._watch: Watch | None = None
        self._stuck: Watch | None = None  # has found that the run makes no progress
        self._printed = ""
        self._look = 0
        self.one_thread = ""
        """Why the run has one thread, whatever the GPU may have; empty: it need not."""

    @property
    def running(self) -> list[int]:
        """The grids that run."""
        return [index for index in range(MAX_GRIDS) if int(self._machine.state["running"]) >> index & 1]

    @property
    def now(self) -> int:
        """The core cycle."""
        return int(self._machine.state["now"])

    @property
    def over(self) -> bool:
        """Whether the run has ended or stopped."""
        state = self._machine.state
        return bool(state["cycles"] or state["fault"])

    @property
    def whole(self) -> bool:
        """Whether it has come to its end."""
        return bool(self._machine.state["cycles"])

    def enter(
        self, index: int, kernel: Kernel, grid: tuple[int, int, int], block: tuple[int, int, int], params: bytes,
        dynamic_bytes: int, arena: Arena,
    ) -> None:  # fmt: skip
        """Let a grid begin in this cycle, in the place ``index``, where none runs."""
        machine, first = self._machine, not self._programs
        fit = plan(machine.gpu, math.prod(block), kernel.registers, kernel.shared_bytes + dynamic_bytes)
        launch = Launch(kernel, grid, block, params, dynamic_bytes, arena.marks != 0, fit, self._grids)
        program = Program(launch, index)
        record = machine.grid(index)
        frame = machine.sms["frame"]
        moves = bool(frame["context"]["step"].any())
        machine.storage[index].begin(record, launch, preempts=bool(frame["limits"].any()), moves=moves)
        describe(record, launch, program, machine.place_code(launch.kernel.code, program.words), machine.grids)
        machine.printer.begin(record)
        if first:
            self._arena, self._kernel = arena, kernel
            self.one_thread = _obstacle(machine, kernel, arena, self._grids, self._observers)
            machine.context["fault"], machine.context["fault_lane"], machine.context["fault_address"] = 0, -1, 0
            machine.reset(kernel, self._observers)
            machine.rows.begin(self._interval, shares=self._grids > 1)
        machine.grids += 1
        self._programs.append(program)
        self._ctas += launch.ctas
        self._warps += launch.ctas * fit.warps_per_cta
        self._began[index] = 0 if self.now == machine.gpu.launch.overhead else self.now
        if self._grids > 1:
            machine.settle(self.now)
            self._complete(index)
            self._before[index] = self._share(index)
        for observer in self._observers:
            observer.enter(index, kernel)
        state, sms, _, launch_record, settings, _, _ = machine.arguments
        if machine.memory.values and not first:
            invalidate(state, sms)
        enter(state, launch_record, settings, index)
        self._watch, self._look = None, self.now + between_looks(machine.gpu.launch.no_progress)

    def _show(self) -> None:
        """Tell the executing functions where everything lies in host memory; the host may have moved textures."""
        machine, arena = self._machine, self._arena
        machine.launch_record["predicate_file"] = machine.predicates.ctypes.data
        for group, function in machine.slots.items():
            machine.launch_record["execute"][group] = J.address(function)
        machine.launch_record["guide"] = J.address(machine.guide) if machine.guide else 0
        for name, value in dict(
            lanes=LANES, warps=machine.gpu.core.warps, sms=machine.gpu.core.sms, memory=arena.address,
            memory_bytes=arena.bytes, valid=arena.valid_address, memory_marks=arena.marks,
            textures=arena.textures.ctypes.data, texture_count=len(arena.textures), host=machine.printer.address,
            trace=machine.trace,
            late=machine.memory.values is not None,
        ).items():  # fmt: skip
            machine.context[name] = value
        machine.memory.record["arena"] = arena.address

    def advance(self, until: int | None = None) -> list[Ended]:
        """Run until a grid has ended, or up to a core cycle; returns the grids that have. A fault ends the run."""
        machine = self._machine
        self._show()
        code = None if self.one_thread else self._kernel.code
        with machine.team.of(code, machine.arguments, machine.context):
            self._advance(until)
        if machine.printer.error is not None:
            raise machine.printer.error
        return self._ended()

    def _advance(self, until: int | None) -> None:
        machine, state = self._machine, self._machine.state
        limit = machine.gpu.launch.no_progress
        while not (self.over or state["over"]) and (until is None or self.now < until):
            with _interrupts_later():
                to = self._look if until is None else min(self._look, until)
                run(machine.team.argument, 0, *machine.arguments, to)
            if self._progress:
                grids = state["grids"][self.running]
                self._progress(int(grids["ended"].sum()), int(grids["ctas"].sum()), self.now)
            machine.rows.fetch(state["cycles"] != 0)
            if self.now >= self._look and not (self.over or state["over"]):
                self._look = self.now + between_looks(limit)
                self._watch = self._watch or self._new_watch(limit)
                if self._watch.stuck(self.now):
                    state["fault"] = Fault.NO_PROGRESS
                    self._stuck = self._watch

    def _new_watch(self, limit: int) -> Watch:
        machine = self._machine
        storage = machine.storage
        files = {
            index: Files(storage[index].registers, storage[index].pair_registers, int(machine.grid(index)["registers"]))
            for index in self.running
        }
        return Watch(machine.sms, files, machine.predicates, limit)

    def _ended(self) -> list[Ended]:
        """Take out the grids that have ended."""
        machine, state = self._machine, self._machine.state
        if state["fault"] or not (state["cycles"] or state["over"]):
            return []
        whole = int(state["cycles"])
        which = self.running if whole else [index for index in self.running if int(state["over"]) >> index & 1]
        if self._grids > 1 and not whole:
            machine.settle(self.now)
        found = []
        for index in which:
            self._printed = machine.printer.text(machine.grid(index))
            ended = whole or self.now
            if machine.memory.values and not whole:
                finish_stores(machine.memory.argument, len(machine.memory.pool), index)
            raw = {"gpu.cycles": np.array([ended - self._began[index]])}
            found.append(Ended(index, self._began[index], ended, raw, self._printed, self._issued(1 - index)))
            self._last[index] = found[-1]
            state["running"] &= ~(1 << index)
        state["over"], state["dispatcher_wake"] = 0, state["now"]
        return found

    def _complete(self, index: int) -> None:
        """Give the last grid that has ended in a place what was counted for it."""
        last, self._last[index] = self._last[index], None
        if last:
            share = self._share(index)
            last.raw.update({name: count - self._before[index][name] for name, count in share.items()})

    def _issued(self, index: int) -> int:
        """Warp instructions of the grids in a place so far."""
        second = int(self._machine.shares["sm.warp_instructions"].sum())
        return second if index else int(self._machine.raw["sm.warp_instructions"].sum()) - second

    def _share(self, index: int) -> dict[str, np.ndarray]:
        """What has been counted so far for the grids in a place."""
        return laws.part(index, self._machine.raw, self._machine.shares)

    def collect(self) -> Result:
        """What there is to say of the run, which has ended or stopped.

        Raises RuntimeError when a conservation law is broken, which is a fault of the model.
        """
        machine, state = self._machine, self._machine.state
        if state["fault"] and self._observers:
            machine.settle(self.now + 1)
        records = Records(state, machine.launch_record, machine.context, machine.sms, machine.tenants)
        stop = records.stop(self._stuck)
        if stop and stop.code >= Fault.MEMORY_ORDER:
            raise ModelFault(stop)
        raw = {name: count.copy() for name, count in machine.raw.items()}
        if self._grids > 1 and not stop:
            for index in range(MAX_GRIDS):
                self._complete(index)
        if not stop:
            broken = laws.broken(machine.gpu, raw, self._ctas, self._warps, machine.sms, machine.memory)
            if broken:
                raise RuntimeError(f"conservation is broken at cycle {self.now}: {'; '.join(broken)}")
        if stop:
            self._printed = machine.printer.text(machine.grid(max(stop.grid, 0)))
        return Result(raw, stop, int(state["steps"]), machine.rows.intervals(), self.one_thread, self._printed)
