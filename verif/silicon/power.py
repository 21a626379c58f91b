"""Watts of kernels on a real GPU: the same launches again and again, until its energy counter has gone on for seconds.

The counter has a tick every 20 to 100 ms, so energy and time are those from tick to tick. A GPU whose counter can't be
read gives its power, which is added up. Watts are those above what the GPU draws with a context and nothing to do.

A batch of passes is queued before the one in front of it has ended, and meters are read while it runs, so that the GPU
does not wait for the host.
"""

from __future__ import annotations

import ctypes
import datetime
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np

from lockstep.sim import kernels
from lockstep.sim.columns import csv_text
from lockstep.sim.errors import UsageError
from lockstep.sim.study.power.sample import MEASURED
from lockstep.verif.silicon.gpu import Driver, Silicon
from lockstep.verif.silicon.tape import Step, Tape

__all__ = ["Meter", "Row", "measured", "record", "text"]

WARM = 0.5  # seconds of passes before it is measured
BATCH = 0.02  # seconds of passes that are queued at once; to read the meters takes a few milliseconds
TIMED = 0.1  # seconds of passes that say how long one takes
SM_CLOCK, MEMORY_CLOCK = 1, 2  # nvmlClockType_t
SMS, THREADS_OF_AN_SM = 16, 39  # CU_DEVICE_ATTRIBUTE_...
FULL, BUSY = 0.5, 90  # below it, a kernel is too small for the GPU


@dataclass(frozen=True)
class Row:
    """Of the file: a kernel's watts above idle, and the seconds of a pass.

    ``busy``: percent of the time in which a kernel runs. ``threads``: of a launch, beside the most that the GPU can
    hold, at most 1; the mean over launches. ``copies``: share of the time that writing inputs again takes.
    """

    kernel: str
    size: str
    watts: float
    origin: str
    seconds: float
    idle_watts: float
    sm_mhz: float
    memory_mhz: float
    busy: float
    threads: float
    copies: float

    @property
    def too_small(self) -> bool:
        return self.threads < FULL or self.busy < BUSY


class _Use(ctypes.Structure):
    """nvmlUtilization_t."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Meter:
    """The energy and the clocks of the GPU that is a driver's first device."""

    def __init__(self, driver: Driver) -> None:
        try:
            self._library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            raise UsageError("there is no NVML here (libnvidia-ml.so.1)") from None
        self._call("nvmlInit_v2")
        bus = ctypes.create_string_buffer(32)
        driver.call("cuDeviceGetPCIBusId", bus, len(bus), ctypes.c_int(driver.number("cuDeviceGet", 0)))
        self._device = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByPciBusId_v2", bus, ctypes.byref(self._device))
        self._added, self._seen = 0.0, time.perf_counter()

    def _call(self, function: str, *arguments: object) -> None:
        if code := getattr(self._library, function)(*arguments):
            raise UsageError(f"{function}: error {code} of NVML")

    def joules(self) -> float:
        """What the GPU has taken, from some time on."""
        total, milliwatts = ctypes.c_ulonglong(), ctypes.c_uint()
        try:
            self._call("nvmlDeviceGetTotalEnergyConsumption", self._device, ctypes.byref(total))
            return total.value / 1000
        except UsageError:
            self._call("nvmlDeviceGetPowerUsage", self._device, ctypes.byref(milliwatts))
        now = time.perf_counter()
        self._added += milliwatts.value / 1000 * (now - self._seen)
        self._seen = now
        return self._added

    def state(self) -> tuple[float, float, float]:
        """MHz of the SMs and of the memory, and percent of the last time in which a kernel ran, NaN if unknown."""
        clocks = []
        for which in (SM_CLOCK, MEMORY_CLOCK):
            value = ctypes.c_uint()
            self._call("nvmlDeviceGetClockInfo", self._device, which, ctypes.byref(value))
            clocks.append(float(value.value))
        use = _Use()
        try:
            self._call("nvmlDeviceGetUtilizationRates", self._device, ctypes.byref(use))
        except UsageError:
            return clocks[0], clocks[1], math.nan
        return clocks[0], clocks[1], float(use.gpu)


def record(meter: Meter, names: Sequence[str], size: str, seconds: float) -> Iterator[Row | str]:
    """A row for each kernel that has the size, or a line that says why there is none."""
    gpu = Silicon()
    origin = f"{MEASURED} on {gpu.name}, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    idle = watts(meter, lambda: time.sleep(BATCH), seconds)[0]
    for name in names:
        kernel = kernels.find(name)
        if size not in kernel.sizes:
            yield f"{kernel.name}: has no size {size}"
            continue
        tape = Tape()
        try:
            tape.keep(kernel, kernel.setup(size, 1))
            yield measured(meter, tape, (kernel.name, size, origin), idle, seconds)
        except UsageError as problem:
            yield f"{kernel.name}: {problem}"
        tape.close()


def measured(meter: Meter, tape: Tape, names: tuple[str, str, str], idle: float, seconds: float) -> Row | str:
    """The row of the kernel on a tape."""
    kernel, size, origin = names
    each = _seconds(tape, tape.steps)
    copies = _seconds(tape, tape.copies) if tape.copies else 0.0
    count = max(1, round(BATCH / each))
    states: list[tuple[float, float, float]] = []

    ahead = deque[ctypes.c_void_p]()

    def batch() -> None:
        for _ in range(count):
            for step in tape.steps:
                step()
        ahead.append(tape.mark())
        if len(ahead) > 1:
            tape.reach(ahead.popleft())
        states.append(meter.state())

    until = time.perf_counter() + WARM
    while time.perf_counter() < until:
        batch()
    states.clear()
    total, batches = watts(meter, batch, seconds)
    tape.reach(ahead.pop())
    if total <= idle:
        return f"{kernel}: draws no more than the {idle:.1f} W of an idle GPU"
    sm_mhz, memory_mhz, busy = (float(each) for each in np.mean(states, axis=0))
    capacity = _attribute(tape.driver, SMS) * _attribute(tape.driver, THREADS_OF_AN_SM)
    threads = float(np.mean([min(1, launch.threads / capacity) for launch in tape.launches]))
    found = total - idle, origin, batches / count, idle, sm_mhz, memory_mhz, busy, threads, copies / each
    return Row(kernel, size, *found)


def watts(meter: Meter, batch: Callable[[], None], seconds: float) -> tuple[float, float]:
    """The watts while batches run, for ``seconds`` between ticks of the counter; and the seconds of a batch."""
    first = last = (time.perf_counter(), meter.joules())
    ticks, batches, begin = 0, 0, first[0]
    while ticks < 2 or last[0] - first[0] < seconds:
        batch()
        batches += 1
        now = time.perf_counter(), meter.joules()
        if now[1] != last[1]:
            last, ticks = now, ticks + 1
            if ticks == 1:
                first = now
        if now[0] - begin > 10 * seconds + WARM and ticks < 2:
            raise UsageError("the energy counter stands still")
    return (last[1] - first[1]) / (last[0] - first[0]), (time.perf_counter() - begin) / batches


def _seconds(tape: Tape, steps: Sequence[Step]) -> float:
    """How long steps take, once as much as they do is queued."""
    count = 1
    while True:
        tape.wait()
        begin = time.perf_counter()
        for _ in range(count):
            for step in steps:
                step()
        tape.wait()
        taken = time.perf_counter() - begin
        if taken >= TIMED:
            return taken / count
        count = max(2 * count, min(count * 10, int(count * TIMED / max(taken, 1e-6)) + 1))


def _attribute(driver: Driver, which: int) -> int:
    return driver.number("cuDeviceGetAttribute", which, ctypes.c_int(driver.number("cuDeviceGet", 0)))


def text(rows: Sequence[Row]) -> str:
    """The CSV file of rows."""
    names = [each.name for each in fields(Row)]
    columns = list(zip(*map(astuple, rows), strict=True)) or [()] * len(names)
    return csv_text(dict(zip(names, columns, strict=True)))
