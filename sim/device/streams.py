"""Several kernels at a time: streams of launches, and host programs that share a GPU.

::

    first, second = gpu.stream(), gpu.stream()
    a = module.launch("saxpy", grid=64, block=256, args=[...], stream=first)
    b = other.launch("gemm", grid=16, block=256, args=[...], stream=second)
    gpu.synchronize()
    a.run.cycles, b.run.ipc, a.run.together.stats["dram.bandwidth_used"]

Launches of a stream run one after the other, those of two streams at once. Nothing runs before ``synchronize``, which
everything calls that reads or changes what kernels may use: ``from_device``, ``free``, symbols, a launch without a
stream. So results do not depend on when a program looks at them.

A *run* of the machine lasts as long as any launch is under way. One that begins while another runs finds caches as they
are, ``launch.overhead`` cycles after the one before it in its stream has ended; and it has ended itself when its last
CTA has, but for the last one of a run, which waits for the memory traffic of all. ``launch.placement`` says in which
SMs their CTAs are.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from lockstep.models.time import NEVER
from lockstep.sim.device.profile import Profile
from lockstep.sim.device.run import Run, Share
from lockstep.sim.errors import KernelFault, UsageError
from lockstep.spec import registry
from lockstep.spec.parameters import MAX_GRIDS
from lockstep.spec.parameters import Gpu as Description

if TYPE_CHECKING:
    from lockstep.models.observe.profile import Profiler
    from lockstep.models.session import Ended
    from lockstep.models.stop import Stop
    from lockstep.sim.compile.ptx.kernel import Kernel
    from lockstep.sim.device.memory import Arena
    from lockstep.sim.device.profile import Place
    from lockstep.sim.device.trace.recording import Code
    from lockstep.sim.device.trace.trace import Trace

__all__ = ["HostProgram", "Pending", "Stream", "Streams", "Work", "profiler", "programs"]


class Device(Protocol):
    """What streams need of a device (``sim.device.device``)."""

    description: Description
    memory: Arena
    progress: Callable[[int, int, int], None] | None
    every: int | None
    profile: bool
    tracing: Trace | None

    @property
    def machine(self) -> Any: ...

    def show(self, text: str) -> None: ...

    def record(self, run: Run) -> None: ...

    def synchronize(self) -> None: ...


@dataclass(frozen=True, eq=False)
class Work:
    """A launch that can be made: what the machine needs, how a fault is told, and where instructions come from.

    ``profiled``: it is to have a profile.
    """

    name: str
    shown: str
    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    params: bytes
    shared_bytes: int
    fault: Callable[[Stop], KernelFault]
    places: Callable[[], Sequence[Place]]
    profiled: bool

    def code(self, stream: int = 0, begin: int = 0, end: int = NEVER) -> Code:
        """Its kernel in a trace."""
        from lockstep.sim.device.trace.recording import Code  # late, since it compiles the model

        return Code(self.shown, self.kernel.code, self.places, stream, begin, end)


def profiler() -> Profiler:
    """An observer."""
    from lockstep.models.observe.profile import Profiler  # late, since it is compiled

    return Profiler()


class Pending:
    """A launch in a stream, which may not have run yet."""

    def __init__(self, streams: Streams, work: Work) -> None:
        self._streams, self._work = streams, work
        self._share: Share | None = None
        self._dropped = False

    def __repr__(self) -> str:
        state = "has run" if self._share else "was dropped" if self._dropped else "waits"
        return f"<Launch of {self._work.shown}: {state}>"

    @property
    def work(self) -> Work:
        return self._work

    @property
    def run(self) -> Share:
        """What it has done; waits for it. Raises :class:`UsageError` if it was dropped."""
        if self._share is None and not self._dropped:
            self._streams.synchronize()
        if self._share is None:
            raise UsageError(f"{self._work.shown}: has not come to its end, since the run that it was in stopped")
        return self._share

    def end(self, share: Share) -> None:
        self._share = share

    def drop(self) -> None:
        self._dropped = self._share is None


class Source(Protocol):
    """Where launches come from that follow each other."""

    def take(self) -> Pending | None:
        """The next one; None: there is none any more."""

    def ended(self, pending: Pending) -> None:
        """One has ended, with or without its end."""


class Stream:
    """Launches that run one after the other, beside those of another stream. Made by ``gpu.stream()``."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self._queue: deque[Pending] = deque()

    def __len__(self) -> int:
        """How many launches wait."""
        return len(self._queue)

    def append(self, pending: Pending) -> None:
        self._queue.append(pending)

    def synchronize(self) -> None:
        """Run what waits, in all streams."""
        self.streams.synchronize()

    def take(self) -> Pending | None:
        return self._queue.popleft() if self._queue else None

    def ended(self, pending: Pending) -> None:
        """Nothing waits for it."""

    def drop(self) -> None:
        """Forget what waits."""
        while self._queue:
            self._queue.popleft().drop()


class Streams:
    """The streams of a device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._used: list[Stream] = []  # in which launches wait, in the order of their first ones

    def stream(self) -> Stream:
        self.require_mechanisms()
        return Stream(self)

    def require_mechanisms(self) -> None:
        """Refuse a device whose mechanisms know one grid."""
        description = self._device.description
        one = [each.name for each in registry.selected(description) if each.grids == 1]
        if one:
            raise UsageError(f"{', '.join(one)}: runs one grid at a time, so that this GPU has no streams")

    def add(self, stream: Stream, work: Work) -> Pending:
        """Let a launch wait in a stream. Raises :class:`UsageError` where launches wait in two others."""
        if stream.streams is not self:
            raise UsageError(f"{work.shown}: the stream is another GPU's")
        if stream not in self._used:
            if len(self._used) == MAX_GRIDS:
                rule = f"a GPU runs {MAX_GRIDS} grids at once; synchronize first"
                raise UsageError(f"{work.shown}: {MAX_GRIDS} other streams have launches that wait; {rule}")
            self._used.append(stream)
        pending = Pending(self, work)
        stream.append(pending)
        return pending

    @property
    def waiting(self) -> bool:
        """Whether a launch waits in a stream."""
        return bool(self._used)

    def synchronize(self) -> None:
        """Run all that waits."""
        used, self._used = self._used, []
        try:
            execute(self._device, used)
        finally:
            for stream in used:
                stream.drop()


# ------------------------------------------------------------------------------------------------------------ execution


def execute(device: Device, sources: Sequence[Source]) -> None:
    """Run what sources have, those of two at once, until they have no more.

    Raises :class:`KernelFault` for what a kernel does wrong: the run ends, and what is under way or waits is dropped.
    """
    heads = [source.take() for source in sources]
    try:
        while any(heads):
            _run(device, sources, heads)
    finally:
        for head in heads:
            if head:
                head.drop()


def _run(device: Device, sources: Sequence[Source], heads: list[Pending | None]) -> None:
    """One run of the machine, until nothing is under way. ``heads`` are the launches that are, or come next."""
    from lockstep.models.gpu import Busy  # late, since it compiles the model
    from lockstep.models.stop import ModelFault

    machine, overhead = device.machine, device.description.launch.overhead
    observing = _Observing(device)
    ended: list[tuple[Pending, Ended]] = []
    begins = [0 if head else None for head in heads]  # in which core cycle they begin; None: they have, or are none
    start = time.perf_counter()
    try:
        with machine.session(MAX_GRIDS, device.progress, observing.observers, device.every) as session:
            while True:
                for index, head in enumerate(heads):
                    if head and begins[index] is not None and session.now >= begins[index]:
                        work = head.work
                        session.enter(
                            index, work.kernel, work.grid, work.block, work.params, work.shared_bytes, device.memory
                        )
                        begins[index] = None
                        observing.begun(head, index, session.now)
                later = [begin for begin in begins if begin is not None]
                for each in session.advance(min(later, default=None)):
                    head = heads[each.index]
                    assert head is not None
                    ended.append((head, each))
                    observing.ended(head, each)
                    device.show(each.printed)
                    sources[each.index].ended(head)
                    heads[each.index] = following = sources[each.index].take()
                    begins[each.index] = each.ended + overhead if following else None
                if session.over:
                    break
            result = session.collect()
    except Busy as error:
        raise UsageError(str(error)) from None
    except ModelFault as error:
        observing.end(error.stop.cycle + 1, error.stop.sm)
        raise
    if result.fault is not None:
        head = heads[result.fault.grid]
        assert head is not None
        device.show(result.printed)
        observing.end(result.fault.cycle + 1, result.fault.sm)
        raise head.work.fault(result.fault)
    wall = time.perf_counter() - start
    description, none = device.description, (0, 0, 0)
    text = "".join(each.printed for _, each in ended)
    found = result.raw, result.intervals, wall, text
    together = Run(" + ".join(observing.names), none, none, description, *found, one_thread=result.one_thread)
    observing.end(together.cycles)
    for pending, each in ended:
        work = pending.work
        own = each.raw, each.began, each.ended, each.printed, each.index, each.beside, observing.profile(pending)
        together.launches.append(Share(work.name, work.grid, work.block, description, *own, together))
        pending.end(together.launches[-1])
    device.record(together)


@dataclass
class _Begun:
    """A launch of a run, in core cycles of it, and the rows of its profile."""

    work: Work
    stream: int
    begin: int
    rows: np.ndarray | None
    end: int = NEVER


class _Observing:
    """The observers of a run, and what they make of its launches."""

    def __init__(self, device: Device) -> None:
        self._gpu, self._trace = device.description, device.tracing
        self._profiler = profiler() if device.profile else None
        self._tracer = self._trace.observer(self._gpu) if self._trace else None
        self._begun: dict[Pending, _Begun] = {}

    @property
    def observers(self) -> list[Any]:
        return [each for each in (self._profiler, self._tracer) if each]

    @property
    def names(self) -> list[str]:
        """Of the kernels that have run."""
        return list(dict.fromkeys(each.work.name for each in self._begun.values()))

    def begun(self, pending: Pending, stream: int, now: int) -> None:
        """A launch has begun."""
        rows = self._profiler.rows if self._profiler else None
        self._begun[pending] = _Begun(pending.work, stream, now, rows)

    def ended(self, pending: Pending, ended: Ended) -> None:
        """A launch has ended."""
        self._begun[pending].begin, self._begun[pending].end = ended.began, ended.ended

    def profile(self, pending: Pending) -> Profile | None:
        """That of a launch, if it was to have one."""
        work, rows = self._begun[pending].work, self._begun[pending].rows
        return Profile(work.shown, rows, work.places) if work.profiled and rows is not None else None

    def end(self, cycles: int, stop: int | None = None) -> None:
        """The run has ended, or has stopped on an SM: so has its part of the trace."""
        if self._trace:
            codes = [each.work.code(each.stream, each.begin, each.end) for each in self._begun.values()]
            self._trace.add(self._tracer, codes, self._gpu, cycles, stop)


# -------------------------------------------------------------------------------------------------------- host programs


class _Cancelled(BaseException):
    """Unwinds a host program that waits for a launch that does not come to its end."""


_here = threading.local()


class HostProgram:
    """A host program, whose launches run beside those of another one. Made by :func:`programs`.

    It has a thread of its own, which runs while no other does and no kernel: until it launches one, and again when that
    has ended.
    """

    def __init__(self, streams: Streams, function: Callable[[], Any]) -> None:
        self._streams, self._function = streams, function
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._pending: Pending | None = None
        self._error: BaseException | None = None
        self._cancelled = False
        self._allocated: list[tuple[int, int]] = []
        self.result: Any = None
        self.launches: list[Pending] = []
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()

    @staticmethod
    def here() -> HostProgram | None:
        """The program whose thread this is."""
        return getattr(_here, "program", None)

    def _main(self) -> None:
        _here.program = self
        self._go.acquire()
        try:
            if not self._cancelled:
                self.result = self._function()
        except BaseException as error:  # for the thread that waits
            self._error = error
        self._pending = None
        self._back.release()

    def launch(self, work: Work) -> Pending:
        """Called in its thread: wait until a launch has ended."""
        self._pending = Pending(self._streams, work)
        self.launches.append(self._pending)
        self._back.release()
        self._go.acquire()
        if self._cancelled:
            raise _Cancelled
        return self.launches[-1]

    def allocated(self, address: int, serial: int) -> None:
        """Called in its thread: it has device memory, with what the arena calls it."""
        self._allocated.append((address, serial))

    def free(self, memory: Arena) -> None:
        """Give back what it has allocated so far, and has not freed itself."""
        for address, serial in self._allocated:
            if memory.serial(address) == serial:
                memory.free(address)
        self._allocated = []

    def take(self) -> Pending | None:
        self._go.release()
        self._back.acquire()
        if self._error:
            raise self._error
        return self._pending

    def ended(self, pending: Pending) -> None:
        """It goes on when it is asked for the next one."""

    def close(self) -> None:
        """End its thread."""
        self._cancelled = True
        self._go.release()
        self._thread.join()


def programs(device: Device, streams: Streams, functions: Sequence[Callable[[], Any]]) -> list[HostProgram]:
    """Run up to two functions that launch kernels on a device, each in its own order, both at the same time.

    Their launches wait for nothing but themselves. Results do not depend on how threads are scheduled.
    """
    streams.require_mechanisms()
    device.synchronize()
    made = [HostProgram(streams, function) for function in functions]
    try:
        execute(device, made)
    finally:
        for program in made:
            program.close()
    return made
