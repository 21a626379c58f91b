"""The whole GPU: SMs, CTA dispatch and the memory system in one compiled loop, and the class that holds its records."""

from __future__ import annotations

import hashlib
import math
import mmap
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lockstep.models import cache, diagnosis, tenants
from lockstep.models import jit as J
from lockstep.models.blocks import instance
from lockstep.models.core import sm as SM
from lockstep.models.core.frame import HAS_LIMITS, MAX_TENANTS, MONITOR, most_ctas
from lockstep.models.core.lsu import lsu_end
from lockstep.models.core.placement import resume_cta, start_cta, store_bytes
from lockstep.models.cta import cta_dispatcher
from lockstep.models.diagnosis import Waiting
from lockstep.models.execution.isa import (
    CODE_BASE,
    CODE_END,
    CONTEXT,
    GRANULE,
    LANES,
    LOCAL_PHYSICAL,
    MAX_PREDICATES,
    Fault,
)
from lockstep.models.jit import addressof, call, ctz, entry, i64, inline, jit, record, u64, without_lowest
from lockstep.models.memory import system
from lockstep.models.observe import Observer
from lockstep.models.observe.intervals import ROOM, Intervals, Recorder, take
from lockstep.models.occupancy import Occupancy, local_rows, plan, round_up
from lockstep.models.progress import Watch
from lockstep.models.tenants import Instance, counts
from lockstep.models.time import NEVER
from lockstep.spec import registry
from lockstep.spec.frame import FRAME
from lockstep.spec.mechanism import Mechanism
from lockstep.spec.parameters import MAX_WARPS, Gpu, config
from lockstep.spec.statistics import L1_ACCESSES, Counts, Raw

RUN = record(
    [
        ("now", "i8"),  # core cycle
        ("ctas", "i8"),  # of the grid ...
        ("ended", "i8"),  # ... that have ended
        ("dispatcher_wake", "i8"),  # next cycle in which the dispatcher does more than wait
        ("dispatcher_next", "i8"),  # next cycle that it has not seen
        ("stored_since", "i8"),  # cycle since which preempted CTAs are to be resumed; 0: there are none
        ("cycles", "i8"),  # cycles of the launch, set when it has ended
        ("sms", "i8"),
        ("skip", "i8"),  # 0: step every SM in every cycle
        ("fault", "i8"),
        ("fault_sm", "i8"),
        ("steps", "i8"),  # SM steps done, for the benchmark of the model itself
        ("sm", "i8"),  # address of the SMs' records
        ("monitors", "i8"),  # of the whole GPU
        ("monitor", MONITOR, (MAX_TENANTS,)),
        ("placement", record([("number", "i8"), ("handle", "i8")])),
        ("cta_dispatcher", instance("cta.cta_dispatcher", cta_dispatcher.STATE)),
    ]
)

DISPATCHING = 3  # cycles after which a CTA has been placed for which the dispatcher saw room


@jit
def _dispatch(state, sms, launch, settings, now):
    """One cycle of the CTA dispatcher. The cycles since its last one are passed over: nothing changed in them.

    Preempted CTAs are resumed before others start, but for those that the dispatcher has already found room for.
    Returns the SM in which a CTA was placed, or -1.
    """
    placed = i64(-1)
    waiting = launch.stored != 0
    if waiting and state.stored_since == 0:
        state.stored_since = now
    binding, io = state.cta_dispatcher.binding, state.cta_dispatcher.io
    if now > state.dispatcher_next:
        call(binding.skip, binding.handle, now - i64(state.dispatcher_next))
    io.i.room[0] = 0
    io.i.room[1] = 0
    for s in range(state.sms):
        load = i64(sms[s].ctas_resident)
        io.i.load[s] = load
        if not waiting and _has_room(sms[s], launch):
            io.i.room[s >> 6] |= u64(i64(1) << (s & 63))
    if io.o.dispatch.valid != 0:
        placed = i64(io.o.dispatch.sm)
        number = i64(io.o.dispatch.cta)
        if state.placement.number != 0:
            number = call(state.placement.number, state.placement.handle, addressof(state))
        start_cta(sms[placed], launch, settings, i64(0), number, now)
    elif waiting and now >= state.stored_since + DISPATCHING:
        placed = _emptiest(state, sms, launch)
        if placed >= 0:
            resume_cta(sms[placed], launch, settings, now)
    if launch.stored == 0:
        state.stored_since = 0
    if call(binding.step, binding.handle, addressof(io)) != 0:
        state.fault = Fault.DIFFERENCE
    io.i.launch = 0
    state.dispatcher_next = now + 1
    state.dispatcher_wake = min(now + 1 + call(binding.idle, binding.handle, addressof(io)), i64(NEVER))
    # Others may have room now, and were not let see it; or the dispatcher is waited for.
    if waiting and (placed >= 0 or now < state.stored_since + DISPATCHING):
        state.dispatcher_wake = now + 1
    return placed


@jit
def _has_room(sm, launch):
    """Whether an SM may hold another CTA."""
    return sm.ctas_resident < min(i64(launch.grids[0].per_sm), i64(sm.limit))


@jit
def _emptiest(state, sms, launch):
    """Of the SMs with room the first with the fewest CTAs, or -1."""
    found = i64(-1)
    for s in range(state.sms):
        if _has_room(sms[s], launch) and (found < 0 or sms[s].ctas_resident < sms[found].ctas_resident):
            found = i64(s)
    return found


@entry
def begin(state, sms, launch, settings):
    """Reset the SMs and show the grid to the dispatcher."""
    for s in range(state.sms):
        SM.reset(sms[s], s, launch, settings)
        sms[s].last = state.now
    io = state.cta_dispatcher.io
    cta_dispatcher.reset(state.cta_dispatcher.state, io)
    io.i.policy = settings.launch.dispatcher
    io.i.interval = settings.launch.dispatch_interval
    io.i.launch = 1
    io.i.ctas = launch.grids[0].total


@entry
def settle(state, sms):
    """A launch has stopped: count the cycles up to now that are not counted yet, so that monitors see them."""
    for s in range(state.sms):
        SM.count(sms[s], state.now + 1)


@entry
def run(state, sms, memory, launch, settings, context, rows, until):
    """Advance to core cycle ``until`` at most, and take a row at the end of each interval (``observe.intervals``).

    Stops early when the launch has ended (``cycles`` set) or faulted, or when there is no room for another row.
    """
    while state.now < until and rows.taken < ROOM:
        _advance(state, sms, memory, launch, settings, context, min(until, i64(rows.due)))
        if state.cycles != 0:
            take(sms, state.sms, rows, i64(state.cycles))
        if state.cycles | state.fault != 0:
            return
        while state.now >= rows.due and rows.taken < ROOM:
            take(sms, state.sms, rows, i64(rows.due))
            rows.due += rows.interval


@inline
def _advance(state, sms, memory, launch, settings, context, until):
    """Advance to core cycle ``until`` at most.

    A cycle is: CTA dispatch, every SM that has something to do, the memory system. With ``skip`` the next cycle is the
    earliest in which any of them has something to do; without it every SM is stepped in every cycle. Results are equal.
    """
    count = i64(state.sms)
    wakes = memory.sm_wake
    while state.now < until:
        now = i64(state.now)
        following = _watch(state, sms, count, now) if state.monitors != 0 else i64(NEVER)
        if state.dispatcher_wake <= now or (state.skip == 0 and now >= state.dispatcher_next):
            placed = _dispatch(state, sms, launch, settings, now)
            if placed >= 0:
                wakes[placed] = now
        following = min(following, i64(state.dispatcher_wake))
        for first in range(0, count, 64):
            due = _due(wakes, first, min(first + 64, count), now if state.skip != 0 else i64(NEVER))
            while due != 0:
                s = first + ctz(due)
                due = without_lowest(due)
                following = min(following, _step(state, sms[s], memory, s, launch, settings, context, now))
                if state.fault != 0:
                    return
        system.memory_step(memory, settings, now)
        following = min(following, i64(system.memory_wake(memory, now)))
        for s in range(count):
            following = min(following, i64(wakes[s]))
        if state.ended == launch.grids[0].total and _quiet(sms, memory, count, now):
            for s in range(count):
                SM.count(sms[s], now + 1)
            state.cycles = now + 1
            for s in range(count):
                lsu_end(sms[s].lsu, now + 1)
            return
        if following >= NEVER:
            state.fault = Fault.NO_PROGRESS
            return
        state.now = max(following, now + 1) if state.skip != 0 else now + 1


@inline
def _due(wakes, first, end, until):
    """Of up to 64 SMs, those that have something to do by cycle ``until``: a mask whose lowest bit is SM ``first``."""
    due = i64(0)
    for s in range(first, end):
        due |= i64(wakes[s] <= until) << s - first
    return due


@inline
def _step(state, sm, memory, index, launch, settings, context, now):
    """A cycle of one SM. Returns the cycle for which it wants the CTA dispatcher, or NEVER."""
    wakes = memory.sm_wake
    wakes[index] = NEVER
    SM.step(sm, memory.ports[index], launch, settings, context, now)
    state.steps += 1
    wakes[index] = min(i64(wakes[index]), i64(sm.wake))
    if sm.fault != Fault.NONE:
        state.fault = sm.fault
        state.fault_sm = index
    state.ended += i64(sm.ended)
    asks = sm.ended != 0
    if sm.tenants & HAS_LIMITS != 0:
        asks |= _limited(sm) | (sm.saved != 0)
    if not asks:
        return i64(NEVER)
    state.dispatcher_wake = now + 1
    return now + 1


@jit
def _watch(state, sms, count, now):
    """Show the whole GPU's monitors the cycles before this one, if they are due; returns when they are due next."""
    wake = i64(NEVER)
    for k in range(state.monitors):
        wake = min(wake, i64(state.monitor[k].wake))
    if wake > now:
        return wake
    for s in range(count):
        SM.count(sms[s], now)
    wake = i64(NEVER)
    for k in range(state.monitors):
        monitor = state.monitor[k]
        monitor.wake = call(monitor.see, monitor.handle, addressof(state))
        wake = min(wake, i64(monitor.wake))
    for s in range(count):
        if _limited(sms[s]):
            state.dispatcher_wake = now
    return wake


@jit
def _limited(sm):
    """Take over what the limits of an SM say now; returns whether that has changed."""
    limit = i64(most_ctas(sm.frame))
    if limit == sm.limit:
        return False
    sm.limit = limit
    return True


@jit
def _quiet(sms, memory, count, now):
    """Whether nothing is left to do, in the SMs, in the memory system, or between them."""
    if system.memory_wake(memory, now) < NEVER:
        return False
    for s in range(count):
        if memory.ports[s].reply_ready < NEVER or not SM.quiet(sms[s]):
            return False
    return True


class Arena(Protocol):
    """Device memory, as a launch needs it: host addresses of the bytes and of their validity (``execution.isa``).

    ``marks`` is the distance of the bytes' marks, or 0 (``execution.written``). A launch keeps marks where these are.
    """

    address: int
    bytes: int
    valid_address: int
    marks: int
    textures: np.ndarray


class Kernel(Protocol):
    """A kernel, as a launch needs it; ``sim/compile/ptx/kernel.py`` says what is in one."""

    code: np.ndarray
    branch_table: list[int]
    registers: int
    shared_bytes: int
    local_bytes: int
    tables: dict[str, np.ndarray]


@dataclass
class Stop:
    """Why a launch stopped early, and where; -1 for what is not known."""

    code: Fault
    cycle: int
    sm: int = -1
    pc: int = -1
    cta: tuple[int, ...] = (-1, -1, -1)
    warp: int = -1  # in its CTA
    lane: int = -1
    address: int = 0
    named: int = 0  # by a line or a result, instead of the address
    waits: str = ""  # what a mechanism says the warp waits for
    waiting: tuple[Waiting, ...] = ()  # if warps wait for what never comes: all warps of the CTAs concerned
    ctas: tuple[int, ...] = ()  # of the grid: in all, ended, not begun


class ModelFault(RuntimeError):
    """A fault of the model, or of hardware in its place; the message says where."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        what = {
            Fault.MEMORY_ORDER: "the L1 accepted this warp's accesses out of order",
            Fault.LANES: "a lane's access was sent or answered twice, or a line or a result has none",
            Fault.LINE: f"lane {stop.lane} accesses {stop.address:#x}, and its line was sent as {stop.named:#x}",
            Fault.KIND: "a load, store or atomic was sent as another kind",
            Fault.WORD: f"lane {stop.lane} loads {stop.address:#x}, and its result names the word at {stop.named:#x}",
            Fault.BYTES: f"lane {stop.lane} stores to {stop.address:#x}, and the byte sent to {stop.named:#x} is wrong",
            Fault.DIFFERENCE: "hardware and model differ",
            Fault.NO_ROOM: "a CTA was placed here, and there are not enough warp slots in a row",
        }[stop.code]
        where = f"CTA {stop.cta}, warp {stop.warp}, instruction {stop.pc}" if stop.pc >= 0 else "this SM"
        super().__init__(f"cycle {stop.cycle}, SM {stop.sm}, {where}: {what}")


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


def _anonymous(nbytes: int) -> np.ndarray:
    """Zeroed bytes that take memory only once they are touched."""
    return np.frombuffer(mmap.mmap(-1, max(nbytes, 1)), np.uint8)


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
    command = [sys.executable, "-c", "import lockstep.models.execution.execute"]
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

    After a launch that did not come to its end, the next one starts with cold caches, too. ``skip`` = False steps every
    SM in every cycle: the same results, slowly (for tests).
    """

    def __init__(self, gpu: Gpu, skip: bool = True) -> None:
        self.gpu = gpu
        self.skip = skip
        self.grids = 0
        self._whole = True  # the last launch has come to its end
        self._free = threading.Lock()
        self.memory = system.memory_create(gpu)
        self.sms = np.zeros(gpu.core.sms, SM.SM)
        self._settings = config(gpu)[0:1].reshape(())
        self._context = _one(CONTEXT)
        self._launch = _one(SM.LAUNCH)
        self._state = _one(RUN)
        positions = gpu.core.sms * MAX_WARPS
        self._predicates = _anonymous(positions * (MAX_PREDICATES + 1) * 4)
        self._registers = np.zeros(0, np.uint8)
        self._pair_registers = np.zeros(0, np.uint8)
        self._scratchpad = np.zeros(0, np.uint8)
        self._pair_scratchpad = np.zeros(0, np.uint8)
        self._local = np.zeros(0, np.uint8)
        self._store = np.zeros(0, np.uint8)
        self._stuck: Watch | None = None  # who has found that the launch does not get on
        self._code_places: dict[bytes, int] = {}
        self._code_end = CODE_BASE
        self.on_launch: Callable[[], None] | None = None  # called when all has been reset
        chosen = registry.configuration(gpu)
        with _second_compiler():
            self.tenants = [tenant for mechanism in chosen for tenant in tenants.tenants(mechanism, gpu)]
            for tenant in self.tenants:
                tenant.bind(self.sms, self._state)
            self._rows = Recorder(self._counts(), self._gauges())
            self._compile()
        from lockstep.models.execution.execute import SLOTS
        from lockstep.models.execution.printf import Printer

        self._slots = SLOTS
        self._printer = Printer(self._context)
        brought = [(mechanism, instance) for mechanism in chosen for instance in self._instances(mechanism)]
        self.instances = [instance for _, instance in brought]
        # The frame and paths reset their own.
        self._reset = [one for mechanism, one in brought if mechanism is not FRAME and "path" not in mechanism.tenants]
        for each in self.instances:
            each.bind_model()
        places = self.sms["frame"], self.sms["lsu"]["client"], self.sms["tenants"]
        self._bound = [(place, place.copy()) for place in places]
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
        ``observers`` look at this launch alone.
        ``interval`` is the length of the intervals of the result (``observe.intervals``). Raises
        RuntimeError when a conservation law is broken, which is a fault of the model, and :class:`Busy` when it is
        called during a launch.
        """
        gpu, context = self.gpu, self._context
        with self._under_way():
            self._printer.begin(grid)
            fit = plan(gpu, math.prod(block), kernel.registers, kernel.shared_bytes + dynamic_bytes)
            held = self._prepare(fit, kernel, dynamic_bytes, grid, block, params, arena.marks != 0, observers)
            for name, value in dict(
                lanes=LANES, warps=gpu.core.warps, sms=gpu.core.sms, memory=arena.address, memory_bytes=arena.bytes,
                valid=arena.valid_address, memory_marks=arena.marks, textures=arena.textures.ctypes.data,
                texture_count=len(arena.textures), host=self._printer.address, fault_lane=-1, fault_address=0, fault=0,
            ).items():  # fmt: skip
                context[name] = value
            self.grids += 1
            self._rows.begin(interval)
            self._run(progress)
            if self._state["fault"] and observers:
                settle(self._arguments[0], self._arguments[1])
            del held
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

    def _prepare(
        self,
        fit: Occupancy,
        kernel: Kernel,
        dynamic_bytes: int,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        params: bytes,
        strict: bool,
        observers: Sequence[Observer],
    ) -> list[np.ndarray]:
        """Fill the launch record and reset everything that a launch starts with. Returns what must stay alive."""
        registers, local_bytes = kernel.registers, kernel.local_bytes
        shared_bytes = kernel.shared_bytes + dynamic_bytes
        gpu = self.gpu
        sms = gpu.core.sms
        self._registers = self._at_least(self._registers, sms * MAX_WARPS * registers * LANES * 4)
        stride = round_up(shared_bytes, 16)  # between CTAs, so that every access is aligned on the host too
        rows = local_rows(gpu, fit, local_bytes, math.prod(grid))
        shared, local = sms * max(fit.ctas, 1) * stride, sms * rows * local_bytes * LANES
        marks = 1 if strict else 0  # they follow the bytes
        self._scratchpad = self._at_least(self._scratchpad, (1 + marks) * shared)
        pairs, pair_shared = sms * MAX_WARPS // 2 if fit.pairs else 0, sms * fit.pairs * stride
        self._pair_registers = self._at_least(self._pair_registers, pairs * registers * LANES * 4)
        self._pair_scratchpad = self._at_least(self._pair_scratchpad, (1 + marks) * pair_shared)
        self._local = self._at_least(self._local, (1 + marks) * local)
        code = np.ascontiguousarray(kernel.code)
        table = np.array(kernel.branch_table, np.int32)
        words = np.ascontiguousarray(kernel.tables.get("stream.words", ()), np.int32)
        parameters = np.frombuffer(params + bytes(8), np.uint8).copy()
        launch = self._launch
        for name, value in dict(
            code=code.ctypes.data, code_address=self._place_code(code, words), length=len(code),
            words_to=words.ctypes.data if len(words) else 0, branch_table=table.ctypes.data, number=self.grids,
            block=block, size=grid, total=math.prod(grid),
            threads=math.prod(block), warps=fit.warps_per_cta, per_sm=fit.ctas, registers=registers,
            pairs=fit.pairs, own_registers=fit.own_registers, own_shared=fit.own_scratchpad_bytes,
            shared_bytes=shared_bytes, shared_stride=stride, dynamic_bytes=dynamic_bytes, local_bytes=local_bytes,
            param=parameters.ctypes.data, param_bytes=len(params),
        ).items():  # fmt: skip
            launch["grids"][0][name] = value
        for name, value in dict(
            register_file=self._registers.ctypes.data, predicate_file=self._predicates.ctypes.data,
            scratchpad=self._scratchpad.ctypes.data, local=self._local.ctypes.data, local_physical=LOCAL_PHYSICAL,
            local_rows=rows,
            shared_marks=marks * shared, local_marks=marks * local,
            pair_registers=self._pair_registers.ctypes.data, pair_scratchpad=self._pair_scratchpad.ctypes.data,
            pair_marks=marks * pair_shared,
        ).items():  # fmt: skip
            launch[name] = value
        for name in ("shared_marks", "local_marks"):
            self._context[name] = launch[name]
        launch["stored"] = launch["store_first"] = 0
        if self.sms["frame"]["limits"].any():
            launch["store_entries"] = sms * (fit.ctas + 1)
            launch["store_bytes"] = store_bytes(fit.warps_per_cta, registers, local_bytes, stride, strict)
            self._store = self._at_least(self._store, int(launch["store_entries"] * launch["store_bytes"]))
            launch["store"] = self._store.ctypes.data
        for group, function in self._slots.items():
            launch["execute"][group] = J.address(function)
        system.memory_launch(self.memory)
        for name in SM.ZEROED:
            self.sms[name] = np.zeros((), self.sms.dtype[name])
        for part, bound in self._bound:
            part[...] = bound
        for tenant in self.tenants:
            tenant.begin(kernel.tables)
        state = self._state
        state["monitors"] = self._monitors
        for observer in observers:
            self._observe(observer, kernel)
        for name in RUN.names or ():
            if name not in ("cta_dispatcher", "monitors", "monitor", "placement"):
                state[name] = 0
        state["monitor"]["wake"] = 0
        state["sm"] = self.sms.ctypes.data
        state["ctas"] = math.prod(grid)
        state["sms"], state["skip"] = sms, self.skip
        state["dispatcher_next"] = state["dispatcher_wake"] = state["now"] = gpu.launch.overhead
        if self.on_launch:
            for each in self.instances:
                each.bind_model()  # what plays a block now has not been reset yet
        for each in self._reset:
            each.reset()
        begin(self._arguments[0], self._arguments[1], self._arguments[3], self._arguments[4])
        # Every SM is stepped once in the first cycle; hardware in it is then stepped in every one.
        self.memory.record["sm_wake"][0, : len(self.sms)] = gpu.launch.overhead
        if self.on_launch:
            self.on_launch()
        return [code, table, words, parameters]

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
        """The device address of a kernel's instructions and metadata words, one kernel behind the other."""
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

    @staticmethod
    def _at_least(array: np.ndarray, nbytes: int) -> np.ndarray:
        return array if array.nbytes >= nbytes else _anonymous(nbytes)

    def _run(self, progress: Callable[[int, int, int], None] | None) -> None:
        state, grid = self._state, self._launch["grids"][0]
        limit = self.gpu.launch.no_progress
        files = self._registers, self._pair_registers, self._predicates
        watch = Watch(self.sms, *files, int(grid["registers"]), limit)
        self._stuck = None
        look = int(state["now"]) + watch.interval
        while state["cycles"] == 0 and state["fault"] == 0:
            with _interrupts_later():
                run(*self._arguments, look)
            now = int(state["now"])
            if progress:
                progress(int(state["ended"]), int(grid["total"]), now)
            self._rows.fetch()
            if now >= look:
                look = now + watch.interval
                if state["cycles"] == 0 and state["fault"] == 0 and watch.stuck(now):
                    state["fault"] = Fault.NO_PROGRESS
                    self._stuck = watch
        if self._printer.error is not None:
            raise self._printer.error

    def _gauges(self) -> dict[str, np.ndarray]:
        return {name: value for tenant in self.tenants for name, value in tenant.gauges.items()}

    def _collect(self, fit: Occupancy) -> Result:
        state = self._state
        stop = self._stop() if state["fault"] else None
        if stop and stop.code >= Fault.MEMORY_ORDER:
            raise ModelFault(stop)
        raw = {name: count.astype(np.int64) for name, count in self._counts().items()}
        broken = [] if stop else self._broken_laws(raw)
        if broken:
            raise RuntimeError(f"conservation is broken at cycle {int(state['now'])}: {'; '.join(broken)}")
        return Result(raw, stop, fit, int(state["steps"]), self._rows.intervals(), self.printed)

    def _counts(self) -> dict[str, np.ndarray]:
        """The raw counts of the frame and of its tenants, in their records."""
        lsu, memory = self.sms["lsu"], self.memory
        raw = {
            "gpu.cycles": self._state["cycles"].reshape(1),
            **counts("sm", self.sms["counters"]),
            **counts("lsu", lsu, "lines", "client_lines", "merged", "line_instructions", "uncoalesced", "texture_hits",
                     "texture_misses"),
            **counts("l1", lsu["l1"]["stats"]),
            **counts("instruction_cache", self.sms["code"]["stats"]),
            **counts("constant_cache", self.sms["constants"]["stats"]),
            **counts("l2", memory.slices["stats"]),
            **counts("dram", memory.channels["stats"]),
        }  # fmt: skip
        for direction in ("requests", "replies"):
            raw |= counts(direction, memory.record[direction], "packets", "flits", "bytes", "blocked")
        for tenant in self.tenants:
            raw |= tenant.counts
        return raw

    def _stop(self) -> Stop:
        state = self._state
        fault = Fault(int(state["fault"]))
        if fault == Fault.NO_PROGRESS:
            stop = self._slowest(fault)
            stop.waiting = tuple(diagnosis.of_all(self.sms, self._stuck, self._waits))
            stop.ctas = self._ctas()
            return stop
        if fault in (Fault.DIFFERENCE, Fault.NO_ROOM):
            return Stop(fault, int(state["now"]), int(state["fault_sm"]))
        sm = self.sms[int(state["fault_sm"])]
        stop = self._place(fault, int(state["fault_sm"]), int(sm["fault_warp"]), int(sm["fault_pc"]))
        if fault in (Fault.LINE, Fault.WORD, Fault.BYTES):
            lsu = sm["lsu"]
            stop.lane, stop.address, stop.named = (int(lsu[f"fault_{name}"]) for name in ("lane", "address", "named"))
        else:
            stop.lane, stop.address = int(self._context["fault_lane"]), int(self._context["fault_address"])
        if fault == Fault.BARRIER_DEADLOCK:
            place = int(sm["warps"][int(sm["fault_warp"])]["cta"])
            stop.waiting = tuple(diagnosis.of_cta(self.sms, int(state["fault_sm"]), place))
            stop.ctas = self._ctas()
        return stop

    def _ctas(self) -> tuple[int, int, int]:
        """How many CTAs the grid has, how many have ended, and how many have not begun."""
        total, begun = int(self._state["ctas"]), int(self.sms["counters"]["ctas"].sum())
        there = int(self.sms["ctas_resident"].sum() + self._launch["stored"])
        return total, begun - there, total - begun

    def _slowest(self, fault: Fault) -> Stop:
        """No progress: point at a warp that is still there, at one that a mechanism lets wait if there is one."""
        found = Stop(fault, int(self._state["now"]))
        for index, sm in enumerate(self.sms):
            for slot in range(MAX_WARPS):
                if not int(sm["resident"]) >> slot & 1:
                    continue
                waits = self._waits(sm, index, slot)
                if waits or found.sm < 0:
                    found = self._place(fault, index, slot, int(sm["warps"][slot]["pc"]))
                    found.waits = waits
                if waits:
                    return found
        return found

    def _waits(self, sm: np.void, index: int, slot: int) -> str:
        """What mechanisms let a warp wait for; empty: nothing."""
        return "; ".join(filter(None, (tenant.waits(sm, index, slot) for tenant in self.tenants)))

    def _place(self, fault: Fault, index: int, slot: int, pc: int) -> Stop:
        sm = self.sms[index]
        warp = sm["warps"][slot]
        cta = tuple(int(v) for v in sm["ctas"][int(warp["cta"])]["ctaid"])
        return Stop(fault, int(self._state["now"]), index, pc, cta, int(warp["index"]))

    def _broken_laws(self, raw: Raw) -> list[str]:
        """The conservation laws that a finished launch has broken: the frame's, and those of mechanisms."""
        c, grid = Counts(raw, self.gpu), self._launch["grids"][0]
        ctas = int(grid["total"])
        laws = [
            ("CTAs", c("sm.ctas"), ctas),
            ("warps", c("sm.warps"), ctas * int(grid["warps"])),
            ("instructions by category", c("sm.categories"), c("sm.warp_instructions")),
            ("cycles by outcome", c.sum("sm.issued_cycles", "sm.stall_cycles", "sm.idle_cycles"), c("sm.cycles")),
            ("memory instructions in the LSUs", int(self.sms["lsu"]["in_flight"].sum()), 0),
            ("events", int(self.sms["wheel"]["count"].sum()), 0),
            ("lines of the LSUs", c.sum("lsu.lines", "lsu.client_lines"), c.sum(*L1_ACCESSES) + c("lsu.merged")),
        ]
        for mechanism in registry.selected(self.gpu):
            laws += mechanism.laws(c)
        wrong = [f"{name}: {left} against {right}" for name, left, right in laws if left != right]
        caches = [self.sms[name]["stats"] for name in ("code", "constants")]
        return wrong + system.conservation(self.memory, self.sms["lsu"]["l1"], *caches)
