"""The golden model of a GPU as the host sees it: it holds the records, begins launches and collects their results.

What a launch computes in each cycle is in ``models/run.py``.
"""

from __future__ import annotations

import hashlib
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lockstep.models import cache, laws, tenants
from lockstep.models import jit as J
from lockstep.models.core.sm import ZEROED
from lockstep.models.core.state import LAUNCH, SM
from lockstep.models.execution.isa import CODE_BASE, CODE_END, CONTEXT, GRANULE, LANES, Fault, Flag
from lockstep.models.launch import Arena, Kernel, Launch, Program, describe
from lockstep.models.memory import system
from lockstep.models.observe import Observer
from lockstep.models.observe.intervals import Intervals, Recorder
from lockstep.models.occupancy import Occupancy, plan, round_up
from lockstep.models.progress import Watch, between_looks
from lockstep.models.run import RUN, begin, run, settle
from lockstep.models.stop import ModelFault, Records, Stop
from lockstep.models.storage import Storage
from lockstep.models.tenants import Instance
from lockstep.spec import registry
from lockstep.spec.frame import FRAME
from lockstep.spec.mechanism import Mechanism
from lockstep.spec.parameters import Gpu, config
from lockstep.spec.statistics import Raw


class Busy(RuntimeError):
    """A launch in the middle of another one: from another thread, or out of a callback."""


@dataclass
class Result:
    """Raw counts of a launch by name (``sim/device/statistics.py``), an element per SM, slice or channel; its fault."""

    raw: dict[str, np.ndarray]
    fault: Stop | None
    occupancy: Occupancy
    steps: int  # of SMs, which the run loop made
    intervals: Intervals
    printed: str  # by ``printf``


def _one(kind: np.dtype) -> np.ndarray:
    return np.zeros(1, kind)[0:1].reshape(())


@contextmanager
def _second_compiler() -> Iterator[None]:
    """While this process compiles the run loop, let another one compile the executing functions into the cache."""
    functions = Path(__file__).parent / "execution" / "execute.py"
    done = cache.folder() / "compiled" / cache.stamp(functions)
    if not J.COMPILED or done.exists():
        yield
        return
    ends = "from lockstep.spec.processes import end_with; end_with(int(sys.argv[1]))"
    command = [sys.executable, "-c", f"import sys; {ends}; import lockstep.models.execution.execute", str(os.getpid())]
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
        child.wait()  # should it fail, this process compiles them itself
    finally:
        child.kill()
    with cache.costs_only_time():
        done.parent.mkdir(exist_ok=True)
        done.touch()


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


class Machine:
    """The records of one GPU. Memory contents and the L2 outlive a launch; everything else starts anew.

    The launch after one that did not come to its end starts with cold caches, too. ``skip`` = False steps every
    SM in every cycle: the same results, slowly (for tests).
    """

    def __init__(self, gpu: Gpu, skip: bool = True) -> None:
        self.gpu = gpu
        self.skip = skip
        self.grids = 0
        self._whole = True  # the last launch has come to its end
        self._free = threading.Lock()
        self.memory = system.memory_create(gpu)
        self.sms = np.zeros(gpu.core.sms, SM)
        self._settings = config(gpu)[0:1].reshape(())
        self._context = _one(CONTEXT)
        self._launch = _one(LAUNCH)
        self._state = _one(RUN)
        self.storage = Storage(gpu)
        self._stuck: Watch | None = None  # has found that the launch makes no progress
        self._code_places: dict[bytes, int] = {}
        self._code_end = CODE_BASE
        self.on_launch: Callable[[], None] | None = None  # called when all has been reset
        chosen = registry.configuration(gpu)
        with _second_compiler():
            self.tenants = [tenant for mechanism in chosen for tenant in tenants.tenants(mechanism, gpu)]
            for tenant in self.tenants:
                tenant.bind(self.sms, self._state)
            self._raw = laws.raw_counts(self._state, self.sms, self.memory, self.tenants)
            self._rows = Recorder(self._raw, self._gauges())
            self._compile()
        from lockstep.models.execution.execute import SLOTS
        from lockstep.models.execution.printf import Printer

        self._slots = SLOTS
        self._printer = Printer(self._context)
        brought = [(mechanism, instance) for mechanism in chosen for instance in self._instances(mechanism)]
        self.instances = [instance for _, instance in brought]
        # Those of the frame and of paths are reset by ``begin``.
        self._reset_here = [
            one for mechanism, one in brought if mechanism is not FRAME and "path" not in mechanism.tenants
        ]
        for each in self.instances:
            each.bind_model()
        places = self.sms["frame"], self.sms["lsu"]["clients"], self.sms["tenants"]
        self._bound = [(part, part.copy()) for part in map(J.as_bytes, places)]
        self._monitors = int(self._state["monitors"])
        self._observers: dict[str, tenants.Tenant] = {}

    def _instances(self, mechanism: Mechanism) -> Iterator[Instance]:
        """The blocks that a mechanism, or the frame, brings."""
        own = [tenant for tenant in self.tenants if tenant.mechanism is mechanism]
        whole, per_sm = [tenant.whole for tenant in own], [tenant.states for tenant in own]
        if mechanism is FRAME:
            whole, per_sm = [self._state], [self.sms]
        return tenants.instances(mechanism, self.gpu, whole, per_sm)

    def _compile(self) -> None:
        """Compile the run loop, or load it from the cache, so that no launch is charged for it."""
        system.memory_launch(self.memory)
        begin(self._arguments[0], self._arguments[1], self._arguments[3], self._arguments[4])
        run(*self._arguments, 0)

    @property
    def _arguments(self) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
        """The arguments of :func:`run`, but for the last."""
        state, sms = J.argument(self._state), J.argument(self.sms)
        launch, settings = J.argument(self._launch), J.argument(self._settings)
        context, rows = J.argument(self._context), J.argument(self._rows.record)
        return state, sms, self.memory.argument, launch, settings, context, rows

    def launch(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        params: bytes,
        dynamic_bytes: int,
        arena: Arena,
        progress: Callable[[int, int, int], None] | None = None,
        observers: Sequence[Observer] = (),
        interval: int | None = None,
    ) -> Result:
        """Run one grid of a kernel whose relocations have been applied; ``dynamic_bytes`` is its dynamic scratchpad.

        ``progress`` is called now and then with the CTAs that have ended, the CTAs in all, and the core cycle;
        ``observers`` look at this launch alone. ``interval`` is the length of the intervals of the result
        (``observe.intervals``). Raises RuntimeError when a conservation law is broken, which is a fault of the model,
        and :class:`Busy` when it is called during a launch.
        """
        with self._under_way():
            self._printer.begin(grid)
            fit = plan(self.gpu, math.prod(block), kernel.registers, kernel.shared_bytes + dynamic_bytes)
            launch = Launch(kernel, grid, block, params, dynamic_bytes, arena.marks != 0, fit)
            program = Program(launch)
            self._describe(launch, program, arena)
            self._reset(kernel, observers)
            self.grids += 1
            self._rows.begin(interval)
            self._run(progress)
            if self._state["fault"] and observers:
                settle(self._arguments[0], self._arguments[1])
            del program
            result = self._collect(fit)
            self._whole = result.fault is None
            return result

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """One launch at a time; behind one that did not come to its end, caches are cold."""
        if not self._free.acquire(blocking=False):
            raise Busy("another launch is under way on this GPU")
        try:
            if not self._whole:
                self._cool()
            self._whole = False
            yield
        finally:
            self._free.release()

    def _describe(self, launch: Launch, program: Program, arena: Arena) -> None:
        """Fill the records of a launch: what it executes, and where everything lies in host memory."""
        self.storage.begin(self._launch, launch, preempts=bool(self.sms["frame"]["limits"].any()))
        code_address = self._place_code(program.code, program.words)
        describe(self._launch["grids"][0], launch, program, code_address, self.grids)
        for group, function in self._slots.items():
            self._launch["execute"][group] = J.address(function)
        gpu, context = self.gpu, self._context
        for name, value in dict(
            lanes=LANES, warps=gpu.core.warps, sms=gpu.core.sms, memory=arena.address, memory_bytes=arena.bytes,
            valid=arena.valid_address, memory_marks=arena.marks, shared_marks=self._launch["shared_marks"],
            local_marks=self._launch["local_marks"], textures=arena.textures.ctypes.data,
            texture_count=len(arena.textures), host=self._printer.address, fault_lane=-1, fault_address=0, fault=0,
        ).items():  # fmt: skip
            context[name] = value

    def _reset(self, kernel: Kernel, observers: Sequence[Observer]) -> None:
        """Reset everything that a launch begins with. Each step relies on those before it."""
        system.memory_launch(self.memory)
        self._reset_records()
        # Tenants read the tables of the kernel; observers stand behind the mechanisms' tenants in their stacks.
        for tenant in self.tenants:
            tenant.begin(kernel.tables)
        for observer in observers:
            self._observe(observer, kernel)
        # All resets from here on call what plays a block. Hardware is reset by ``on_launch``; until then, models play.
        if self.on_launch:
            for each in self.instances:
                each.bind_model()
        for each in self._reset_here:
            each.reset()
        # SMs are reset with their paths and schedulers, and remember whether anybody listens to their events.
        begin(self._arguments[0], self._arguments[1], self._arguments[3], self._arguments[4])
        # Every SM is stepped once in the first cycle; hardware in it is then stepped in every one.
        self.memory.record["sm_wake"][0, : len(self.sms)] = self.gpu.launch.overhead
        if self.on_launch:
            self.on_launch()

    def _reset_records(self) -> None:
        """The SMs' records and that of the run, with the tenants of the configuration alone."""
        J.as_bytes(self.sms)[:, :ZEROED] = 0
        for part, bound in self._bound:
            part[...] = bound
        state = self._state
        for name in RUN.names or ():
            if name not in ("cta_dispatcher", "monitor", "placement"):
                state[name] = 0
        state["monitors"] = self._monitors
        state["monitor"]["wake"] = 0
        state["sm"] = self.sms.ctypes.data
        state["ctas"] = self._launch["grids"][0]["total"]
        state["sms"], state["skip"] = self.gpu.core.sms, self.skip
        state["dispatcher_next"] = state["dispatcher_wake"] = state["now"] = self.gpu.launch.overhead

    def _observe(self, observer: Observer, kernel: Kernel) -> None:
        """Let an observer fill its frame slots for the launch that begins."""
        name = observer.declaration.name
        if name not in self._observers:
            [self._observers[name]] = tenants.tenants(observer.declaration, self.gpu)
        tenant = self._observers[name]
        tenant.bind(self.sms, self._state)
        tenant.begin(kernel.tables)
        observer.begin(tenant.states, kernel)

    def _place_code(self, code: np.ndarray, words: np.ndarray) -> int:
        """The device address of a kernel's instructions and metadata words, one kernel behind the other.

        What a launch puts into operands from the constant bank is no part of the code.
        """
        code = code.copy()
        code["imm"][(code["flags"] & Flag.CONSTANT) != 0] = 0
        digest = hashlib.sha256(code.tobytes() + words.tobytes()).digest()
        if digest not in self._code_places:
            size = round_up((len(code) + int(words[-1:].sum())) * self.gpu.instruction_cache.instruction_bytes, GRANULE)
            if self._code_end + size > CODE_END:
                self._code_places.clear()
                self._code_end = CODE_BASE
                self._cool()
            place = self._code_end
            self._code_end += size  # first: an interrupt leaves a gap at most
            self._code_places[digest] = place
        return self._code_places[digest]

    def _cool(self) -> None:
        """Let no cache hold anything, and nothing be on its way."""
        system.memory_reset(self.memory)
        self.sms["code"]["lines"] = 0

    @property
    def printed(self) -> str:
        """What the last launch has printed, or the one under way has so far."""
        return self._printer.text()

    def _run(self, progress: Callable[[int, int, int], None] | None) -> None:
        state, grid = self._state, self._launch["grids"][0]
        limit = self.gpu.launch.no_progress
        files = self.storage.registers, self.storage.pair_registers, self.storage.predicates
        watch = self._stuck = None
        look = int(state["now"]) + between_looks(limit)
        while state["cycles"] == 0 and state["fault"] == 0:
            with _interrupts_later():
                run(*self._arguments, look)
            now = int(state["now"])
            if progress:
                progress(int(state["ended"]), int(grid["total"]), now)
            self._rows.fetch(state["cycles"] != 0)
            if now >= look and state["cycles"] == 0 and state["fault"] == 0:
                look = now + between_looks(limit)
                watch = watch or Watch(self.sms, *files, int(grid["registers"]), limit)
                if watch.stuck(now):
                    state["fault"] = Fault.NO_PROGRESS
                    self._stuck = watch
        if self._printer.error is not None:
            raise self._printer.error

    def _gauges(self) -> dict[str, np.ndarray]:
        return {name: value for tenant in self.tenants for name, value in tenant.gauges.items()}

    def _collect(self, fit: Occupancy) -> Result:
        state = self._state
        stop = Records(state, self._launch, self._context, self.sms, self.tenants).stop(self._stuck)
        if stop and stop.code >= Fault.MEMORY_ORDER:
            raise ModelFault(stop)
        raw = {name: count.copy() for name, count in self._raw.items()}
        broken = [] if stop else self._broken_laws(raw)
        if broken:
            raise RuntimeError(f"conservation is broken at cycle {int(state['now'])}: {'; '.join(broken)}")
        return Result(raw, stop, fit, int(state["steps"]), self._rows.intervals(), self.printed)

    def _broken_laws(self, raw: Raw) -> list[str]:
        return laws.broken(self.gpu, raw, self._launch["grids"][0], self.sms, self.memory)
