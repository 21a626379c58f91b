"""Recording watts, without a GPU: what a pass repeats, and energy between the ticks of a counter."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lockstep.sim import UsageError
from lockstep.sim.study.power.characteristics import read_recorded
from lockstep.sim.study.power.sample import read
from lockstep.verif.silicon import gpu as silicon
from lockstep.verif.silicon import power
from lockstep.verif.silicon.tape import Tape

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("size", ["small", "full"])
def test_recordings_that_ship(size: str) -> None:
    found = read_recorded(str(FOLDER / f"h100-watts-{size}.csv"))
    assert found.origin.startswith("measured on NVIDIA H100") and len(found.runs) >= 60
    assert {each for _, each in found.runs} == {size}


@pytest.mark.parametrize("name", ["totals", "rates"])
def test_samples_that_ship_have_the_recorded_watts(name: str) -> None:
    recorded = read_recorded(str(FOLDER / "h100-watts-small.csv"))
    sample = read(str(FOLDER.parents[1] / "sim" / "study" / "power" / f"h100-{name}.csv"))
    watts = {f"{kernel} {size}": each for (kernel, size), (each, _) in recorded.runs.items()}
    assert sample.watts is not None and sample.origin == recorded.origin
    assert dict(zip(sample.kernels, sample.watts.tolist(), strict=True)) == watts


class FakeDriver:
    """A driver whose memory is NumPy's, and whose only kernel adds 1 to all bytes of its argument's buffer."""

    def __init__(self) -> None:
        self.buffers: dict[int, np.ndarray] = {}
        self.calls: list[str] = []

    def number(self, function: str, *arguments: Any) -> int:
        self.calls.append(function)
        if function == "cuMemAlloc_v2":
            address = 4096 * (len(self.buffers) + 1)
            self.buffers[address] = np.zeros(arguments[0].value, np.uint8)
            return address
        return 7

    def call(self, function: str, *arguments: Any) -> None:
        self.calls.append(function)
        if function == "cuMemcpyHtoD_v2":
            to, of, size = (each.value for each in arguments)
            self.buffers[to][:size] = np.frombuffer(ctypes.string_at(of, size), np.uint8)
        elif function == "cuMemcpyDtoH_v2":
            to, of, size = (each.value for each in arguments)
            ctypes.memmove(to, self.buffers[of].tobytes(), size)
        elif function == "cuMemcpyDtoDAsync_v2":
            to, of, size = (each.value for each in arguments[:3])
            self.buffers[to][:size] = self.buffers[of][:size]
        elif function == "cuMemsetD8_v2":
            self.buffers[arguments[0].value][:] = arguments[1].value
        elif function == "cuLaunchKernel":
            pointer = ctypes.cast(arguments[-2][0], ctypes.POINTER(ctypes.c_uint64))
            self.buffers[pointer[0]] += 1


def bytes_of(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint8)


@pytest.fixture
def tape(monkeypatch: pytest.MonkeyPatch) -> Tape:
    monkeypatch.setattr(silicon, "Driver", FakeDriver)
    monkeypatch.setattr(silicon, "_driver_version", lambda: "1")
    return Tape()


def test_a_pass_begins_as_the_run_did(tape: Tape, tmp_path: Path) -> None:
    """What the host wrote and the kernel changed is written again; what it didn't change, and what it found empty, not.
    What the host writes between launches is written in its place."""
    (tmp_path / "k.ptx").write_text(".visible .entry add()", encoding="utf-8")
    kept: dict[str, Any] = {}

    def run(gpu: Any, module: Any, data: Any) -> dict[str, np.ndarray]:
        changed, constant, empty = gpu.to_device(bytes_of([1, 2])), gpu.to_device(bytes_of([5])), gpu.empty(2, np.uint8)
        gpu.to_device(bytes_of([7]))
        kept.update(changed=changed, constant=constant)
        module.launch("add", grid=(2, 3), block=32, args=[changed])
        gpu.memory.write(constant.base, bytes_of([6]))
        gpu.free(constant)
        flag = gpu.to_device(bytes_of([9]))
        module.launch("add", grid=1, block=1, args=[flag])
        module.launch("add", grid=1, block=1, args=[empty])
        kept.update(flag=flag)
        return {"changed": gpu.from_device(changed)}

    tape.keep(SimpleNamespace(run=run, ptx=tmp_path / "k.ptx"), {})  # type: ignore[arg-type]
    assert [launch.threads for launch in tape.launches] == [192, 1, 1]
    assert (len(tape.steps), len(tape.copies)) == (7, 4)
    for _ in range(3):
        for step in tape.steps:
            step()
    buffers = tape.driver.buffers  # type: ignore[attr-defined]
    assert buffers[kept["changed"].base].tolist() == [2, 3] and buffers[kept["flag"].base].tolist() == [10]
    assert "cuMemFree_v2" not in tape.driver.calls  # type: ignore[attr-defined]


class Meter(power.Meter):
    """A counter that shows, every 30 ms of a clock, what has been drawn up to then: 200 W."""

    def __init__(self, ticks: float = 0.03) -> None:
        self.now, self.ticks = 100.0, ticks

    def joules(self) -> float:
        return 200 * self.ticks * (self.now // self.ticks) if self.ticks else 0.0

    def state(self) -> tuple[float, float, float]:
        return 1500.0, 2600.0, 80.0

    def pass_time(self, seconds: float) -> None:
        self.now += seconds


class FakeNvml:
    """NVML of a GPU that draws 300 W, without some functions."""

    def __init__(self, missing: str) -> None:
        self.missing = missing

    def __getattr__(self, name: str) -> Any:
        values = {"nvmlDeviceGetPowerUsage": 300_000, "nvmlDeviceGetTotalEnergyConsumption": 5_000,
                  "nvmlDeviceGetClockInfo": 1410}  # fmt: skip

        def function(*arguments: Any) -> int:
            if name in values and name not in self.missing:
                arguments[-1]._obj.value = values[name]
            return 3 if name in self.missing else 0

        return function


@pytest.mark.parametrize(
    ("missing", "joules"), [("", [5, 5]), ("nvmlDeviceGetTotalEnergyConsumption", [300, 900])], ids=["counter", "power"]
)
def test_energy_without_a_counter(missing: str, joules: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=10.0)
    monkeypatch.setattr(power.time, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(power.ctypes, "CDLL", lambda name: FakeNvml(f"{missing} nvmlDeviceGetUtilizationRates"))
    meter = power.Meter(FakeDriver())  # type: ignore[arg-type]
    found = []
    for seconds in (1, 2):
        clock.now += seconds
        found.append(meter.joules())
    assert found == joules
    assert meter.state()[:2] == (1410, 1410) and np.isnan(meter.state()[2])


@pytest.mark.parametrize("batch", [0.004, 0.02, 0.7])
def test_watts_between_ticks(batch: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a batch at both ends, though it begins late between two ticks."""
    meter = Meter(ticks=0.1)
    meter.now += 0.09
    monkeypatch.setattr(power.time, "perf_counter", lambda: meter.now)
    watts, seconds = power.watts(meter, lambda: meter.pass_time(batch), 0.5)
    assert watts == pytest.approx(200, rel=0.04 if batch < 0.1 else 0.2) and seconds == pytest.approx(batch)


def test_a_counter_that_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = Meter(ticks=0)
    monkeypatch.setattr(power.time, "perf_counter", lambda: meter.now)
    with pytest.raises(UsageError, match="stands still"):
        power.watts(meter, lambda: meter.pass_time(0.01), 2.0)


@pytest.mark.parametrize(("threads", "small"), [(2048, True), (2_000_000, True), (64, True)])
def test_a_row(threads: int, small: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Idle is taken off; what does not fill the GPU, or leaves it idle, is too small."""
    meter = Meter()
    monkeypatch.setattr(power.time, "perf_counter", lambda: meter.now)
    monkeypatch.setattr(power, "_attribute", lambda driver, which: {power.SMS: 2}.get(which, 2048))
    step = lambda: meter.pass_time(0.001)  # noqa: E731
    launch = SimpleNamespace(threads=threads)
    reached: list[int] = []
    marks = itertools.count()
    tape: Any = SimpleNamespace(
        steps=[step], copies=[], launches=[launch], driver=None, wait=lambda: None, mark=lambda: next(marks),
        reach=reached.append,
    )  # fmt: skip
    row = power.measured(meter, tape, ("saxpy", "full", "measured on it"), 60.0, 2.0)
    assert isinstance(row, power.Row)
    assert row.watts == pytest.approx(140, rel=0.03) and row.seconds == pytest.approx(0.001)
    assert (row.sm_mhz, row.memory_mhz, row.busy, row.copies) == (1500, 2600, 80, 0)
    assert reached == list(range(next(marks))), "a batch is queued before the one in front of it has ended"
    assert row.threads == min(1, threads / 4096) and row.too_small == small
    (tmp_path / "watts.csv").write_text(power.text([row]), encoding="utf-8")
    assert read_recorded(str(tmp_path / "watts.csv")).runs["saxpy", "full"] == (row.watts, row.seconds)
    assert isinstance(power.measured(meter, tape, ("saxpy", "full", "measured"), 300.0, 2.0), str)
