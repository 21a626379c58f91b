"""What two cores could gain in one run: the work of each window of cycles, and the bounds that follow. In Markdown.

::

    $ python -m lockstep.verif.windows [KERNEL...] [--size small] [--gpu GPU] [--with M,...] [--set KEY=VALUE]
    $ python -m lockstep.verif.windows --measure-barrier

A *window* is some cycles through which two threads step their SMs without looking at each other. The run loop is the
model's own (``models/run.py``), compiled once more with a clock around its parts. Two ways are looked at:

after
    Both threads step their SMs through a window; one of them then steps the memory system through it. Two barriers.
beside
    One thread steps the memory system through the window before, while SMs are in this one. One barrier.

SMs are divided once for a run, so that the two threads have as much to do in all; the loop is divided in two; CTAs
are dispatched by one thread. An SM does not know what has left its queue to the interconnect since a window began. If
it may have no room there for a request, or one of its CTAs has ended and another may come, it stays *behind*: one
thread steps it with the memory system and the dispatchers, cycle by cycle, when the others are through. *Adaptive*: a
window is stepped by one thread, without a barrier, where that takes less; it is known in advance where. Other costs
of threads are left out, such as lines of the host's caches that move from core to core.
"""

# mypy: disable-error-code="call-arg, var-annotated"
# The compiler passes the first argument of an intrinsic.

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from lockstep.models import run as model
from lockstep.models import session
from lockstep.models.jit import addressof, i64, inline, inline_once, pointer_to, record, words_i32
from lockstep.models.memory.fabric import memory_at
from lockstep.models.memory.system import memory_step
from lockstep.sim import Gpu, kernels
from lockstep.spec.parameters import MAX_SMS
from lockstep.verif import arguments

WINDOW = 4  # cycles of a row; longer windows are several rows
WINDOWS = (4, 8, 16, 32)
ROWS = 6_000_000
BITS = 31
INTERRUPTED = 300.0  # microseconds of one part in a row
NUMBER, BEHIND, LONG_BEHIND, DISPATCH, LOOP, MEMORY, FIRST_SM = range(7)
"""Columns of a row: of which window it is; SMs that stay behind in that and in the one of twice the length; ticks."""

COLUMNS = FIRST_SM + MAX_SMS


@intrinsic
def ticks(_context: Any) -> Any:
    """The processor's clock."""

    def codegen(_ctx: Any, builder: Any, _sig: Any, _args: Any) -> Any:
        function = builder.module.declare_intrinsic("llvm.readcyclecounter", (), ir.FunctionType(ir.IntType(64), []))
        return builder.call(function, [])

    return types.int64(), codegen


# ------------------------------------------------------------------------------------------------------ the timed loop

LOG = record(
    [
        ("rows", "i8"),  # host address of all rows
        ("row", "i8"),  # the one that is written
        ("memory", "i8"),  # host address of the memory system
        ("at", "i8"),  # when the clock was read last
        ("cost", "i8"),  # ticks of reading it
        ("held", "i8", (2, MAX_SMS)),  # requests in SMs' queues if none left since the window began, or the longer one
    ]
)
uncached = njit(error_model="numpy")  # the cache knows code by its text: neither where the log is, nor other parts
_log = np.zeros(1, LOG)
_LOG = int(_log.ctypes.data)
_log_at = pointer_to(LOG)


@inline
def _row():
    """The row that is written."""
    log = _log_at(_LOG)
    return words_i32(log.rows + i64(log.row) * COLUMNS * 4, COLUMNS)


@inline
def _passed(column):
    """What has passed since the clock was read last goes to a column."""
    log, row = _log_at(_LOG), _row()
    now = ticks()
    row[column] += now - log.at - log.cost
    log.at = now


@uncached
def _enter(now):
    """What has passed is the loop's. A cycle may be the first of a window."""
    _passed(LOOP)
    log, number = _log_at(_LOG), now // WINDOW + 1
    row = _row()
    if row[NUMBER] == number or log.row + 1 >= ROWS:
        return
    longer = (i64(row[NUMBER]) - 1) >> 1 != (number - 1) >> 1
    log.row += 1
    _row()[NUMBER] = number
    memory = memory_at(log.memory)
    for s in range(memory.sms):
        log.held[0, s] = memory.ports[s].requests.count
        if longer:
            log.held[1, s] = log.held[0, s]


@inline_once
def _dispatch(state, sms, launch, settings, wakes, now):
    _enter(now)
    model.dispatch(state, sms, launch, settings, wakes, now)
    _passed(DISPATCH)


@inline_once
def _step(state, sm, memory, index, launch, settings, context, now):
    _enter(now)
    log, row, port, room = _log_at(_LOG), _row(), memory.ports[index], i64(settings.l1.queue)
    before = i64(port.requests.count)
    wanted = model._step(state, sm, memory, index, launch, settings, context, now)
    sent = i64(port.requests.count) - before
    takes = sm.ended[0] != 0 and state.cta_dispatcher[0].io.o.remaining != 0
    for k in range(2):
        log.held[k, index] += sent
        full = log.held[k, index] > room or (log.held[k, index] == room and port.full != 0)
        row[BEHIND + k] |= i64(full or takes) << index % BITS
    _passed(FIRST_SM + index)
    return wanted


@inline_once
def _memory_step(memory, settings, now):
    _enter(now)
    memory_step(memory, settings, now)
    _passed(MEMORY)


def with_parts(function: Any, **parts: Any) -> Any:
    """The same code, which calls other functions by these names."""
    return inline_once(FunctionType(function.__code__, {**function.__globals__, **parts}, function.__name__))


_advance = with_parts(model._advance, dispatch=_dispatch, _step=_step, memory_step=_memory_step)
_run = with_parts(model._run, _advance=_advance)


@uncached
def timed(team, _member, state, sms, memory, launch, settings, context, rows, until):
    """``models.run.run`` with a clock around its parts."""
    log = _log_at(_LOG)
    log.memory = addressof(memory)
    log.at = ticks()
    _run(team, state, sms, memory, launch, settings, context, rows, until)


@contextmanager
def run_by(function: Any) -> Iterator[None]:
    """Let launches run by another function than ``models.run.run``."""
    before = session.run
    setattr(session, "run", function)  # noqa: B010
    try:
        yield
    finally:
        setattr(session, "run", before)  # noqa: B010


class Log:
    """The rows of a kernel's launches."""

    def __init__(self) -> None:
        self._rows = np.zeros((ROWS, COLUMNS), np.int32)
        _log["rows"], _log["row"], _log["cost"] = self._rows.ctypes.data, 0, calibrated(1000)[0]

    @property
    def rows(self) -> np.ndarray:
        """Those that have been written; the last one may be that of all later windows."""
        return self._rows[1 : int(_log["row"][0]) + 1]


@njit
def calibrated(rounds):
    """The ticks of reading the clock, and of the whole: the least of some rounds."""
    least, begin = i64(1) << 40, ticks()
    for _ in range(rounds):
        at = ticks()
        for _ in range(100):
            new = ticks()
        least = min(least, (new - at) // 100)
    return least, ticks() - begin


def tick() -> float:
    """Microseconds of a tick."""
    calibrated(1)
    start = time.perf_counter()
    _, passed = calibrated(200_000)
    return 1e6 * (time.perf_counter() - start) / int(passed)


# ----------------------------------------------------------------------------------------------------------- the bounds


def joined(rows: np.ndarray, window: int) -> np.ndarray:
    """Rows of longer windows."""
    keys = (rows[:, NUMBER] - 1) // (window // WINDOW)
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    found = np.add.reduceat(rows, begins, axis=0)
    behind = rows[:, BEHIND if window == WINDOW else LONG_BEHIND].astype(np.int64)
    found[:, BEHIND] = np.bitwise_or.reduceat(behind, begins)
    return found


def divided(loads: Sequence[float], beside: float = 0.0) -> np.ndarray:
    """Which SMs the second thread has, which has ``beside`` to do besides: the largest first, to whom has less."""
    second = np.zeros(len(loads), bool)
    sums = [0.0, beside]
    for s in np.argsort(loads)[::-1]:
        second[s] = sums[1] < sums[0]
        sums[int(second[s])] += loads[s]
    return second


def bounds(rows: np.ndarray, barrier: float) -> dict[str, float]:
    """How many times as fast two threads are, at most; the barrier in microseconds."""
    sms, half = rows[:, FIRST_SM:], rows[:, LOOP] / 2
    memory, dispatch = rows[:, MEMORY], rows[:, DISPATCH]
    alone = sms.sum(1) + rows[:, LOOP] + memory + dispatch
    bits = rows[:, BEHIND].astype(np.int64)
    late = (bits[:, None] >> np.arange(sms.shape[1]) % BITS & 1).astype(bool)
    behind, sms = (sms * late).sum(1), sms * ~late
    second = divided(sms.sum(0))
    after = np.maximum(sms[:, second].sum(1), sms[:, ~second].sum(1)) + half + behind + memory + dispatch + 2 * barrier
    at_once = late.any(1)  # the memory system is stepped in the window itself, with SMs that have stayed behind
    before = np.concatenate([[0.0], np.where(at_once, 0.0, memory)[:-1]])
    second = divided(sms.sum(0), before.sum())
    beside = np.maximum(sms[:, second].sum(1) + before, sms[:, ~second].sum(1) + dispatch) + half + barrier
    beside += np.where(at_once, behind + memory + barrier, 0.0)
    one = alone - memory + np.where(at_once, memory, 0.0) + before
    ways = {"after": after, "beside": beside, "after, adaptive": np.minimum(after, alone),
            "beside, adaptive": np.minimum(beside, one)}  # fmt: skip
    return {name: float(alone.sum() / each.sum()) for name, each in ways.items()}


def run_kernel(function: Any, name: str, options: argparse.Namespace) -> Gpu:
    """Run a kernel in lockstep, by another function than ``models.run.run``, as ``arguments.runs`` say."""
    kernel, device = kernels.find(name), Gpu(options.gpu, options.mechanisms, options.settings)
    device.on_print = None
    device.machine.team.length = 0
    with run_by(function):
        kernel.run(device, device.load(kernel.ptx, kernel.registers), kernel.setup(options.size, 1))
    return device


def logged(name: str, options: argparse.Namespace) -> np.ndarray:
    """The rows of a kernel, in microseconds."""
    log = Log()
    device = run_kernel(timed, name, options)
    rows = log.rows[:, : FIRST_SM + device.description.core.sms].astype(np.float64)
    times = rows[:, DISPATCH:]
    times *= tick()
    for column in times.T:  # in what is longer, the thread has waited for another process
        usual = column[column < INTERRUPTED]
        column[column >= INTERRUPTED] = usual[usual > 0].mean() if (usual > 0).any() else 0.0
    return rows


# --------------------------------------------------------------------------------------------------------- the barrier


@intrinsic
def _store(_context: Any, _words: Any, _index: Any, _value: Any) -> Any:
    def codegen(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
        place = builder.gep(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), [args[1]])
        builder.store_atomic(args[2], place, "release", 8)
        return args[2]

    return types.int64(types.int64, types.int64, types.int64), codegen


@intrinsic
def _load(_context: Any, _words: Any, _index: Any) -> Any:
    def codegen(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
        place = builder.gep(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), [args[1]])
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(types.int64, types.int64), codegen


@njit(nogil=True)
def _meet(words, own, other, first, batches, batch, times):
    """Meet the other thread again and again; ticks of each batch."""
    number = first
    for k in range(batches):
        begin = ticks()
        for _ in range(batch):
            number += 1
            _store(words, own, number)
            while _load(words, other) < number:
                pass
        times[k] = ticks() - begin


def barrier(batches: int = 3000, batch: int = 200) -> tuple[float, float]:
    """Microseconds of a barrier of two threads that spin: the least of some batches, and their median."""
    words = np.zeros(64, np.int64)  # the threads' numbers, in cache lines of their own
    times = np.zeros((2, batches), np.int64)
    for first, count, each in ((0, 1, 1), (1, batches, batch)):
        own = (words.ctypes.data, 16, 32), (words.ctypes.data, 32, 16)
        threads = [threading.Thread(target=_meet, args=(*own[k], first, count, each, times[k])) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    microseconds = times[0] * tick() / batch
    return float(microseconds.min()), float(np.median(microseconds))


# ------------------------------------------------------------------------------------------------------------ the page


def line(name: str, rows: np.ndarray, cost: float) -> str:
    """A kernel's line of the table."""
    total = rows[:, DISPATCH:].sum()
    cells = [f"{total / 1e6:.2f}", f"{rows[:, MEMORY].sum() / total:.2f}"]
    by_window = [joined(rows, window) for window in WINDOWS]
    cells += [f"{total / len(each):.1f}" for each in by_window]
    for rows, way in ((by_window[1], "after"), (by_window[0], "beside")):
        found = bounds(rows, cost)
        cells += [f"{np.mean(rows[:, BEHIND] > 0):.2f}", f"{found[way]:.2f}", f"{found[f'{way}, adaptive']:.2f}"]
        cells += [f"{bounds(rows, 0.0)[way]:.2f}"]
    return f"| {name} | {' | '.join(cells)} |"


HEAD = ("kernel", "seconds", "memory", *(f"us in {window}" for window in WINDOWS), "behind, 8", "after, 8", "adaptive",
        "no barrier", "behind, 4", "beside, 4", "adaptive", "no barrier")  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m lockstep.verif.windows", description="Bounds on two cores.")
    arguments.runs(parser)
    parser.add_argument("--barrier", type=float, default=250.0, metavar="NS", help="what a barrier costs (250)")
    parser.add_argument("--measure-barrier", action="store_true", help="measure that instead")
    options = arguments.parsed(parser, words)
    if options.measure_barrier:
        least, median = barrier()
        print(f"a barrier of two threads: {1000 * least:.0f} ns at least, {1000 * median:.0f} ns in the median")
        return
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for name in options.kernels:
        rows = logged(name, options)
        print(line(name, rows, options.barrier / 1000), flush=True)


if __name__ == "__main__":
    main()
