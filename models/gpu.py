"""The whole GPU: SMs, CTA dispatch and the memory system in one compiled loop, and the class that holds its records."""

from __future__ import annotations

import importlib
import math
import mmap
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from lockstep.models import blocks, cache
from lockstep.models import jit as J
from lockstep.models.blocks import instance
from lockstep.models.core import sm as SM
from lockstep.models.cta import cta_dispatcher
from lockstep.models.execution.isa import (
    CONTEXT,
    LANES,
    LOCAL_PHYSICAL,
    MAX_PREDICATES,
    Fault,
)
from lockstep.models.jit import addressof, call, entry, i64, jit, record, u64
from lockstep.models.memory import system
from lockstep.models.occupancy import Occupancy, occupancy, round_up
from lockstep.spec import mechanisms
from lockstep.spec.parameters import MAX_WARPS, Gpu, config

RUN = record(
    [
        ("now", "i8"),  # core cycle
        ("ended", "i8"),  # CTAs
        ("dispatcher_wake", "i8"),  # next cycle in which the dispatcher does more than wait
        ("dispatcher_next", "i8"),  # next cycle that it has not seen
        ("cycles", "i8"),  # cycles of the launch, set when it has ended
        ("sms", "i8"),
        ("skip", "i8"),  # 0: step every SM in every cycle
        ("fault", "i8"),
        ("fault_sm", "i8"),
        ("steps", "i8"),  # SM steps done, for the benchmark of the model itself
        ("progress", "i8"),  # a cycle since which a warp has ended or passed a barrier
        ("cta_dispatcher", instance("cta.cta_dispatcher", cta_dispatcher.STATE)),
    ]
)


@jit
def _dispatch(state, sms, launch, settings, now):
    """One cycle of the CTA dispatcher. The cycles since its last one are passed over: nothing changed in them."""
    binding, io = state.cta_dispatcher.binding, state.cta_dispatcher.io
    if now > state.dispatcher_next:
        call(binding.skip, binding.handle, now - i64(state.dispatcher_next))
    io.i.room[0] = 0
    io.i.room[1] = 0
    for s in range(state.sms):
        load = i64(sms[s].ctas_resident)
        io.i.load[s] = load
        if load < launch.per_sm:
            io.i.room[s >> 6] |= u64(i64(1) << (s & 63))
    if io.o.dispatch.valid != 0:
        s = i64(io.o.dispatch.sm)
        SM.start_cta(sms[s], launch, settings, i64(io.o.dispatch.cta), now)
    if call(binding.step, binding.handle, addressof(io)) != 0:
        state.fault = Fault.DIFFERENCE
    io.i.launch = 0
    state.dispatcher_next = now + 1
    state.dispatcher_wake = min(now + 1 + call(binding.idle, binding.handle, addressof(io)), i64(SM.NEVER))


@entry
def begin(state, sms, launch, settings):
    """Reset the SMs and show the grid to the dispatcher."""
    for s in range(state.sms):
        SM.reset(sms[s], s, settings)
        sms[s].last = state.now
    io = state.cta_dispatcher.io
    cta_dispatcher.reset(state.cta_dispatcher.state, io)
    io.i.policy = settings.launch.dispatcher
    io.i.interval = settings.launch.dispatch_interval
    io.i.launch = 1
    io.i.ctas = launch.total


@entry
def run(state, sms, memory, launch, settings, context, until):
    """Advance to core cycle ``until`` at most. Stops early when the launch has ended (``cycles`` set) or faulted.

    A cycle is: CTA dispatch, every SM that has something to do, the memory system. With ``skip`` the next cycle is the
    earliest in which any of them has something to do; without it every SM is stepped in every cycle. Results are equal.
    """
    count = i64(state.sms)
    wakes = memory.sm_wake
    while state.now < until:
        now = i64(state.now)
        if state.dispatcher_wake <= now or (state.skip == 0 and now >= state.dispatcher_next):
            dispatch = state.cta_dispatcher.io.o.dispatch
            started = i64(dispatch.sm) if dispatch.valid != 0 else i64(-1)
            _dispatch(state, sms, launch, settings, now)
            if started >= 0:
                wakes[started] = now
        following = i64(state.dispatcher_wake)
        for s in range(count):
            if wakes[s] <= now or state.skip == 0:
                sm = sms[s]
                wakes[s] = SM.NEVER
                SM.step(sm, memory.ports[s], launch, settings, context, now)
                state.steps += 1
                wakes[s] = min(i64(wakes[s]), i64(sm.wake))
                if sm.ended != 0:
                    state.ended += i64(sm.ended)
                    state.progress = now
                    state.dispatcher_wake = now + 1
                    following = now + 1
                if sm.fault != Fault.NONE:
                    state.fault = sm.fault
                    state.fault_sm = s
                    return
        system.memory_step(memory, settings, now)
        following = min(following, i64(system.memory_wake(memory, now)))
        for s in range(count):
            following = min(following, i64(wakes[s]))
        if state.ended == launch.total and _quiet(sms, memory, count, now):
            state.cycles = now + 1
            return
        if following >= SM.NEVER:
            state.fault = Fault.NO_PROGRESS
            return
        state.now = max(following, now + 1) if state.skip != 0 else now + 1
        if now - state.progress > settings.launch.no_progress:
            if _latest_progress(sms, count) < now - i64(settings.launch.no_progress):
                state.fault = Fault.NO_PROGRESS
                return
            state.progress = _latest_progress(sms, count)


@jit
def _quiet(sms, memory, count, now):
    """Whether nothing is left to do, in the SMs, in the memory system, or between them."""
    if system.memory_wake(memory, now) < SM.NEVER:
        return False
    for s in range(count):
        if memory.ports[s].reply_ready < SM.NEVER or not SM.quiet(sms[s]):
            return False
    return True


@jit
def _latest_progress(sms, count):
    latest = i64(0)
    for s in range(count):
        latest = max(latest, i64(sms[s].progress))
    return latest


class Arena(Protocol):
    """Device memory, as a launch needs it: host addresses of the bytes and of their validity (``execution.isa``)."""

    address: int
    bytes: int
    valid_address: int
    textures: np.ndarray


class Kernel(Protocol):
    """A kernel, as a launch needs it; ``sim/ptx/kernel.py`` says what is in one."""

    code: np.ndarray
    branch_table: list[int]
    registers: int
    shared_bytes: int
    local_bytes: int


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


class ModelFault(RuntimeError):
    """A fault of the model, or of hardware in its place; the message says where."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        what = {
            Fault.MEMORY_ORDER: "the L1 accepted this warp's accesses out of order",
            Fault.LANES: "a lane's access was sent or answered twice",
            Fault.DIFFERENCE: "hardware and model differ",
        }[stop.code]
        where = f"CTA {stop.cta}, warp {stop.warp}, instruction {stop.pc}" if stop.pc >= 0 else "this SM"
        super().__init__(f"cycle {stop.cycle}, SM {stop.sm}, {where}: {what}")


@dataclass(frozen=True)
class Instance:
    """One block of the machine. ``sm`` is -1 for a block of the whole GPU; ``record`` views its binding, state, ports.

    ``inside`` is the joined unit that it is part of.
    """

    block: str
    parameters: dict[str, int]
    sm: int
    index: int
    inside: str
    record: np.ndarray

    @property
    def io(self) -> np.ndarray:
        return self.record["io"]

    def bind_model(self) -> None:
        """Let the golden model play the block."""
        slots = importlib.import_module(f"lockstep.models.{self.block}").SLOTS
        state, binding = self.record["state"], self.record["binding"]
        for name, function in slots.items():
            binding[name] = J.address(function)
        binding["handle"] = state.ctypes.data
        for name in set(self.parameters) & set(state.dtype.names or ()):
            state[name] = self.parameters[name]


@dataclass
class Result:
    """What a launch leaves behind: raw counts by name, an element per SM, slice or channel (``sim/statistics.py``)."""

    raw: dict[str, np.ndarray]
    fault: Stop | None
    occupancy: Occupancy
    steps: int  # of SMs, which the run loop made
    timeline: np.ndarray  # rows over time, from 0: core cycle; resident warps x cycles and warp instructions until then


def _counts(prefix: str, records: np.ndarray, *fields: str) -> dict[str, np.ndarray]:
    """Copies of the integer fields of an array of records, as raw counts called ``prefix.field``."""
    array = np.atleast_1d(records)
    names = fields or array.dtype.names or ()
    return {f"{prefix}.{name}": array[name].astype(np.int64) for name in names if array.dtype[name].base.kind == "i"}


CHUNK = 1000  # core cycles between two samples of the timeline, and looks at the keyboard, at first ...
SAMPLES = 200  # ... until there are so many: then every other one goes, and the interval doubles


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
    done.parent.mkdir(exist_ok=True)
    done.touch()


class Machine:
    """The records of one GPU. Memory contents and the L2 outlive a launch; everything else starts anew.

    ``skip`` = False steps every SM in every cycle: the same results, slowly (for tests).
    """

    def __init__(self, gpu: Gpu, skip: bool = True) -> None:
        self.gpu = gpu
        self.skip = skip
        self.grids = 0
        self.memory = system.memory_create(gpu)
        self.sms = np.zeros(gpu.core.sms, SM.SM)
        self._settings = config(gpu)[0:1].reshape(())
        self._context = _one(CONTEXT)
        self._launch = _one(SM.LAUNCH)
        self._state = _one(RUN)
        positions = gpu.core.sms * MAX_WARPS
        self._predicates = _anonymous(positions * (MAX_PREDICATES + 1) * 4)
        self._registers = np.zeros(0, np.uint8)
        self._scratchpad = np.zeros(0, np.uint8)
        self._local = np.zeros(0, np.uint8)
        self._samples: list[tuple[int, int, int]] = []
        self.on_launch: Callable[[], None] | None = None  # called when all has been reset
        self.instances = list(self._instances())
        with _second_compiler():
            self._compile()
        from lockstep.models.execution.execute import SLOTS

        self._slots = SLOTS
        for each in self.instances:
            each.bind_model()
        chosen = mechanisms.path(gpu)
        lsu = self.sms["lsu"]
        lsu["path"] = J.address(importlib.import_module(chosen.module).step_slot)
        lsu["answers"], lsu["reorders"] = chosen.answers, chosen.reorders

    def _instances(self) -> Iterator[Instance]:
        """The blocks of this configuration."""
        gpu, chosen = self.gpu, mechanisms.path(self.gpu)
        arguments = mechanisms.parameters(gpu)
        for block, path in blocks.instances(self._state.dtype):
            yield Instance(block, arguments[block], -1, 0, "", self._state[path[0]])
        units = {mechanism.unit.split(".")[-1] for mechanism in mechanisms.MECHANISMS.values() if mechanism.unit}
        own = chosen.unit.split(".")[-1]
        for block, path in blocks.instances(self.sms.dtype):
            inside = next((part for part in path[:-1] if part in units), "")
            if path[-1] in units:
                used = path[-1] == own
            else:
                used = path[0] != "lsu" or inside == own
            if used and block in arguments:
                records = self.sms
                for part in path:
                    records = records[part]
                for sm, index in np.ndindex(gpu.core.sms, mechanisms.copies(gpu, block)):
                    record = records[sm : sm + 1] if records.ndim == 1 else records[sm, index : index + 1]
                    yield Instance(block, arguments[block], sm, index, inside and chosen.unit, record.reshape(()))

    def _compile(self) -> None:
        """Compile the run loop, or load it from the cache, so that no launch is charged for it."""
        system.memory_launch(self.memory)
        begin(self._arguments[0], self._arguments[1], self._arguments[3], self._arguments[4])
        run(*self._arguments, 0)

    @property
    def _arguments(self) -> list:
        """The arguments of :func:`run`, but for the last."""
        records = [self._launch, self._settings, self._context]
        return [J.argument(self._state), J.argument(self.sms), self.memory.argument, *map(J.argument, records)]

    def launch(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        params: bytes,
        dynamic_bytes: int,
        arena: Arena,
        progress: Callable[[int, int, int], None] | None = None,
    ) -> Result:
        """Run one grid of a kernel whose relocations have been applied; ``dynamic_bytes`` is its dynamic scratchpad.

        ``progress`` is called now and then with the CTAs that have ended, the CTAs in all, and the core cycle. Raises
        RuntimeError when a conservation law is broken, which is a fault of the model.
        """
        gpu = self.gpu
        threads = math.prod(block)
        shared_bytes = kernel.shared_bytes + dynamic_bytes
        fit = occupancy(gpu, threads, kernel.registers, shared_bytes)
        held = self._prepare(fit, kernel, shared_bytes, grid, block)
        parameters = np.frombuffer(params + bytes(8), np.uint8).copy()
        context = self._context
        for name, value in dict(
            lanes=LANES, ntid=block, nctaid=grid, warps=gpu.core.warps, sms=gpu.core.sms, grid=self.grids,
            memory=arena.address, memory_bytes=arena.bytes, valid=arena.valid_address, shared_bytes=shared_bytes,
            dynamic_bytes=dynamic_bytes, local_bytes=kernel.local_bytes, param=parameters.ctypes.data,
            param_bytes=len(params), textures=arena.textures.ctypes.data, texture_count=len(arena.textures),
            fault_lane=-1, fault_address=0, fault=0,
        ).items():  # fmt: skip
            context[name] = value
        self.grids += 1
        self._run(progress)
        del held, parameters
        return self._collect(fit)

    def _prepare(
        self, fit: Occupancy, kernel: Kernel, shared_bytes: int, grid: tuple[int, ...], block: tuple[int, ...]
    ) -> list[np.ndarray]:
        """Fill the launch record and reset everything that a launch starts with. Returns what must stay alive."""
        registers, local_bytes = kernel.registers, kernel.local_bytes
        gpu = self.gpu
        sms = gpu.core.sms
        self._registers = self._at_least(self._registers, sms * MAX_WARPS * registers * LANES * 4)
        stride = round_up(shared_bytes, 16)  # between CTAs, so that every access is aligned on the host too
        self._scratchpad = self._at_least(self._scratchpad, sms * max(fit.ctas, 1) * stride)
        self._local = self._at_least(self._local, sms * MAX_WARPS * local_bytes * LANES)
        code = np.ascontiguousarray(kernel.code)
        table = np.array(kernel.branch_table, np.int32)
        launch = self._launch
        for name, value in dict(
            code=code.ctypes.data, length=len(code), branch_table=table.ctypes.data, block=block, grid=grid,
            total=math.prod(grid), threads=math.prod(block), warps=fit.warps_per_cta, per_sm=fit.ctas,
            registers=registers, shared_bytes=stride, local_bytes=local_bytes,
            register_file=self._registers.ctypes.data, predicate_file=self._predicates.ctypes.data,
            scratchpad=self._scratchpad.ctypes.data, local=self._local.ctypes.data, local_physical=LOCAL_PHYSICAL,
        ).items():  # fmt: skip
            launch[name] = value
        for group, function in self._slots.items():
            launch["slots"][group] = J.address(function)
        system.memory_launch(self.memory)
        self.sms["counters"] = np.zeros((), SM.COUNTERS)
        state = self._state
        for name in RUN.names or ():
            if name != "cta_dispatcher":
                state[name] = 0
        state["sms"], state["skip"] = sms, self.skip
        state["dispatcher_next"] = state["dispatcher_wake"] = state["now"] = gpu.launch.overhead
        if self.on_launch:
            for each in self.instances:
                each.bind_model()  # what plays a block now has not been reset yet
        begin(self._arguments[0], self._arguments[1], self._arguments[3], self._arguments[4])
        # Every SM is stepped once in the first cycle; hardware in it is then stepped in every one.
        self.memory.record["sm_wake"][0, : len(self.sms)] = gpu.launch.overhead
        self.sms["lsu"]["path_next"] = gpu.launch.overhead
        if self.on_launch:
            self.on_launch()
        return [code, table]

    @staticmethod
    def _at_least(array: np.ndarray, nbytes: int) -> np.ndarray:
        return array if array.nbytes >= nbytes else _anonymous(nbytes)

    def _run(self, progress: Callable[[int, int, int], None] | None) -> None:
        state = self._state
        chunk = CHUNK
        self._samples = [(0, 0, 0)]
        while state["cycles"] == 0 and state["fault"] == 0:
            run(*self._arguments, int(state["now"]) + chunk)
            self._samples.append(self._sample())
            if len(self._samples) > SAMPLES:
                self._samples = self._samples[::2]
                chunk *= 2
            if progress:
                progress(int(state["ended"]), int(self._launch["total"]), int(state["now"]))

    def _sample(self) -> tuple[int, int, int]:
        """A row of the timeline, for the cycles before ``now``; SMs that sleep have not counted all of theirs yet."""
        now = int(self._state["cycles"] or self._state["now"])
        counters = self.sms["counters"]
        ahead = np.bitwise_count(self.sms["resident"]) * np.maximum(now - self.sms["last"], 0)
        resident = int(counters["resident_warp_cycles"].sum() + ahead.sum())
        return now, resident, int(counters["warp_instructions"].sum())

    def _collect(self, fit: Occupancy) -> Result:
        state, lsu, memory = self._state, self.sms["lsu"], self.memory
        stop = self._stop() if state["fault"] else None
        if stop and stop.code >= Fault.MEMORY_ORDER:
            raise ModelFault(stop)
        broken = [] if stop else self._broken_laws()
        if broken:
            raise RuntimeError(f"conservation is broken at cycle {int(state['now'])}: {'; '.join(broken)}")
        asleep = np.maximum(state["cycles"] - lsu["path_next"], 0)  # cycles since the path's last step
        lsu["pool"]["by_warp"] += lsu["warp_pool"]["io"]["o"]["policy"] * asleep
        raw = {
            "gpu.cycles": np.array([state["cycles"]], np.int64),
            **_counts("sm", self.sms["counters"]),
            **_counts("lsu", lsu, "lines", "line_instructions", "uncoalesced", "texture_hits", "texture_misses"),
            **_counts("l1", lsu["l1"]["stats"]),
            **_counts("pool", lsu["pool"]),
            **_counts("banked", lsu["banked"]),
            **_counts("l2", memory.slices["stats"]),
            **_counts("dram", memory.channels["stats"]),
        }
        for direction in ("requests", "replies"):
            raw |= _counts(direction, memory.record[direction], "packets", "flits", "bytes", "blocked")
        return Result(raw, stop, fit, int(state["steps"]), np.array(self._samples, np.int64))

    def _stop(self) -> Stop:
        state = self._state
        fault = Fault(int(state["fault"]))
        if fault == Fault.NO_PROGRESS:
            return self._slowest(fault)
        if fault == Fault.DIFFERENCE:
            return Stop(fault, int(state["now"]), int(state["fault_sm"]))
        sm = self.sms[int(state["fault_sm"])]
        stop = self._place(fault, int(state["fault_sm"]), int(sm["fault_warp"]), int(sm["fault_pc"]))
        stop.lane, stop.address = int(self._context["fault_lane"]), int(self._context["fault_address"])
        return stop

    def _slowest(self, fault: Fault) -> Stop:
        """No progress: point at a warp that is still there."""
        for index, sm in enumerate(self.sms):
            resident = int(sm["resident"]) & (1 << 64) - 1
            if resident:
                slot = (resident & -resident).bit_length() - 1
                return self._place(fault, index, slot, int(sm["warps"][slot]["pc"]))
        return Stop(fault, int(self._state["now"]))

    def _place(self, fault: Fault, index: int, slot: int, pc: int) -> Stop:
        sm = self.sms[index]
        warp = sm["warps"][slot]
        cta = tuple(int(v) for v in sm["ctas"][int(warp["cta"])]["ctaid"])
        return Stop(fault, int(self._state["now"]), index, pc, cta, int(warp["index"]))

    def _broken_laws(self) -> list[str]:
        """The conservation laws that a finished launch has broken, beside those of the memory system."""
        counters, lsu = self.sms["counters"], self.sms["lsu"]
        pool, launch = lsu["pool"], self._launch
        merged = int((pool["merged"] - pool["requests"]).sum())
        pairs = [
            ("CTAs", counters["ctas"].sum(), launch["total"]),
            ("warps", counters["warps"].sum(), launch["total"] * launch["warps"]),
            ("instructions by category", counters["categories"].sum(), counters["warp_instructions"].sum()),
            (
                "cycles by outcome",
                (counters["issued_cycles"] + counters["stall_cycles"] + counters["idle_cycles"]).sum(),
                counters["cycles"].sum(),
            ),
            ("memory instructions in the LSUs", lsu["in_flight"].sum(), 0),
            ("events", self.sms["wheel"]["count"].sum(), 0),
            ("lines of the LSUs", lsu["lines"].sum(), self._accesses() + merged),
        ]
        wrong = [f"{name}: {int(left)} against {int(right)}" for name, left, right in pairs if left != right]
        return wrong + system.conservation(self.memory, lsu["l1"])

    def _accesses(self) -> int:
        stats = self.sms["lsu"]["l1"]["stats"]
        kinds = ("loads", "stores", "atomics", "bypass_loads", "local_loads", "local_stores")
        return int(sum(stats[kind].sum() for kind in kinds))
