"""Windows in which SMs are ahead of the memory system, by one thread or several: the bits of runs in lockstep."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lockstep.cli.main import main
from lockstep.models import jit as J
from lockstep.models import machine
from lockstep.models.memory import interconnect
from lockstep.models.memory import l1 as L1
from lockstep.models.team import Team, window
from lockstep.sim import Gpu, KernelFault, kernels
from lockstep.sim.cosim.run import cosim
from lockstep.sim.device import description
from lockstep.sim.study.job import Job
from lockstep.spec import registry
from lockstep.spec.parameters import Gpu as Description
from lockstep.verif import threads, ways
from lockstep.verif.bench import elsewhere, seeded
from lockstep.verif.races import race
from lockstep.verif.ways import LINES, LOCKSTEP, WAYS, Way, set_way

FEW = ["saxpy", "histogram-atomics", "LIB", "transpose-naive"]
SOME = ["bfs", "histogram-atomics", "LIB", "hotspot"]


@pytest.mark.parametrize("kernel", FEW)
def test_kernels_have_the_same_bits(kernel: str) -> None:
    assert threads.differences(kernel, "gtx480", []) == []


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("gpu", description.names())
@pytest.mark.parametrize("kernel", SOME)
def test_on_every_gpu(kernel: str, gpu: str) -> None:
    assert threads.differences(kernel, gpu, []) == []


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("mechanism", registry.MECHANISMS)
def test_with_every_mechanism(mechanism: str) -> None:
    for kernel in SOME:
        assert threads.differences(kernel, "gtx480", [mechanism]) == []


LAST = """
extern "C" __global__ void last(const unsigned *in, unsigned *sums, unsigned *counter, unsigned *out)
{
  __shared__ bool is_last;
  unsigned cta = blockIdx.x, sum = 0;
  atomicAdd(sums + cta, in[cta * blockDim.x + threadIdx.x]);
  __threadfence();
  if (threadIdx.x == 0) is_last = atomicAdd(counter, 1) == gridDim.x - 1;
  __syncthreads();
  if (!is_last || threadIdx.x) return;
  __threadfence();
  for (unsigned k = 0; k < gridDim.x; k++) sum += sums[k];
  out[0] = sum;
}
"""


def sum_of_all(way: Way) -> tuple[int, str]:
    """The CTA that ends last adds up what all have left behind a fence."""
    gpu, ctas = Gpu("gtx480", [], LINES), 60
    set_way(gpu, way)
    values = np.arange(ctas * 64, dtype=np.uint32)
    arrays = [gpu.to_device(each) for each in (values, np.zeros(ctas, np.uint32), np.zeros(1, np.uint32))]
    out = gpu.to_device(np.zeros(1, np.uint32))
    run = gpu.load(LAST).launch("last", grid=ctas, block=64, args=[*arrays, out])
    assert gpu.from_device(out)[0] == values.sum()
    return run.cycles, repr({name: count.tolist() for name, count in run.raw.items()})


@pytest.mark.parametrize("way", WAYS)
def test_fences(way: Way) -> None:
    assert sum_of_all(way) == sum_of_all(LOCKSTEP)


def test_without_skipping() -> None:
    assert threads.differences("saxpy", "gtx480", [], skip=False) == []


@pytest.mark.parametrize("settings", [
    {"crossbar.latency": 3}, {"crossbar.latency": 100, "l1.latency": 120, "l2.latency": 400, "dram.latency": 600},
    {"crossbar.concentration": 3}, {"l1.queue": 2, "l1.mshrs": 2},
    {"instruction_cache.mshrs": 1, "constant_cache.mshrs": 1},
])  # fmt: skip
def test_other_sizes(settings: dict[str, Any]) -> None:
    """Short windows and the longest ones, SMs that share a port, queues that are full."""
    assert threads.differences("histogram-atomics", "gtx480", [], settings=settings) == []


def test_longer_windows_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies come within them: so the comparison above finds what an SM learns too late."""
    gpu = description.load("gtx480", LINES)
    one = threads.observe("spmv", "gtx480", [])
    assert window(gpu) == gpu.crossbar.latency
    with monkeypatch.context() as patch:
        patch.setattr(ways, "window", lambda _: 3 * gpu.crossbar.latency)
        assert threads.observe("spmv", "gtx480", [], WAYS[0]) != one


@pytest.mark.long
def test_races_come_out_the_same() -> None:
    rng = seeded()
    assert threads.races([rng.getrandbits(32) for _ in range(4)]) == []


def test_times_stand_in_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with several threads last; as many processes as were asked for are busy meanwhile, and none afterwards."""
    begun: list[subprocess.Popen[bytes]] = []
    alive: set[int] = set()

    class Begun(subprocess.Popen[bytes]):
        def __init__(self, words: list[str]) -> None:
            super().__init__(words)
            begun.append(self)

    def seconds(*given: Any) -> tuple[float, str]:
        alive.add(sum(process.poll() is None for process in begun))
        return {0: 0.6, 1: 0.5, 2: 0.25}[given[-1]], ""

    monkeypatch.setattr(threads.subprocess, "Popen", Begun)
    monkeypatch.setattr(threads, "seconds", seconds)
    threads.main(["saxpy", "gemm", "--rounds", "3", "--busy", "2"])
    rows = capsys.readouterr().out.splitlines()[2:]
    assert rows == [f"| {name} | 0.60 | 0.50 | 0.25 | 2.00 |" for name in ("saxpy", "gemm")]
    assert alive == {2} and len(begun) == 2 and all(process.poll() is not None for process in begun)


def test_the_raciest_runs_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 7 has most stale lines, and its 30th run with two threads comes out otherwise."""
    runs: list[tuple[int, Way]] = []

    def raced(seed: int, way: Way = LOCKSTEP) -> str:
        runs.append((seed, way))
        wrong = runs.count((7, WAYS[1])) == 30 and runs[-1] == (7, WAYS[1])
        return json.dumps([0, [], {"lsu.stale": [seed % 8, int(wrong)]}])

    monkeypatch.setattr(threads, "race", raced)
    assert threads.races(range(6, 14), 20) == []
    runs.clear()
    assert threads.races(range(6, 14), threads.REPEATS) == [f"seed 7, {WAYS[1]}"]
    assert runs.count((7, WAYS[2])) == 51 and runs.count((8, WAYS[2])) == 1 and runs.count((7, WAYS[0])) == 1


@pytest.mark.long
@pytest.mark.exhaustive
def test_interpreted() -> None:
    seed = seeded().getrandbits(32)
    assert elsewhere(race, seed, (1, 8), NUMBA_DISABLE_JIT="1") == race(seed)


# ------------------------------------------------------------------------------------------------ what an SM may touch


class Looks:
    """Of all that SMs share: whether an SM's part of a window changes it."""

    def __init__(self, gpu: Gpu) -> None:
        model = gpu.machine
        record, run = model.memory.record, model.state
        common = {*record.dtype.names} - {"ports", "sm_wake"}
        self._shared = {f"memory.{name}": record[name] for name in common}
        self._shared |= {f"run.{name}": run[name] for name in run.dtype.names if name != "hidden"}
        self._shared |= {"slices": model.memory.slices, "channels": model.memory.channels}
        self._shared |= {"grids": model.launch_record, "memory": gpu.memory.data[: 1 << 18]}
        self._own = {"SM": model.sms, "port": record["ports"][0][: len(model.sms)]}
        for tenant in model.tenants:
            self._shared[f"the GPU's {tenant.mechanism.name}"] = tenant.whole
            self._own[f"SM's {tenant.mechanism.name}"] = tenant.states
        self.parts = 0
        self.found: set[str] = set()
        self._before: dict[str, bytes] = {}
        self._slot = J.hosted(self._look)
        model.team.forced, model.team.look = True, self._slot

    def _bytes(self, sm: int) -> dict[str, bytes]:
        found = {name: array.tobytes() for name, array in self._shared.items()}
        others = {f"another {name}": np.delete(array, sm).tobytes() for name, array in self._own.items()}
        return found | others

    def _look(self, sm: int, behind: int) -> int:
        if behind:
            self.parts += 1
            now = self._bytes(sm)
            self.found |= {name for name in now if now[name] != self._before[name]}
        self._before = self._bytes(sm)
        return 0


def look(early: bool, *mechanisms: str) -> tuple[int, list[str]]:
    """How many parts of windows a run of a racing kernel has, and what shared things SMs have written in them.

    ``early`` plants an SM that frees the buffers of its replies at once.
    """
    if early:

        def accept_reply(memory: Any, port: Any, now: int) -> int:
            port.ahead, before = 0, port.ahead
            found: int = interconnect.accept_reply(memory, port, now)
            port.ahead = before
            return found

        setattr(L1, "accept_reply", accept_reply)  # noqa: B010
    kernel = kernels.find("histogram-atomics")
    gpu = Gpu("gtx480", mechanisms, {**LINES, "core.sms": 2})
    module, data = gpu.load(kernel.ptx), kernel.setup("tiny", 1)
    looks = Looks(gpu)
    kernel.run(gpu, module, data)
    return looks.parts, sorted(looks.found)


@pytest.mark.long
def test_an_sm_that_is_ahead_touches_nothing_of_others() -> None:
    parts, found = look(early=False)
    assert parts > 100 and found == []


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("mechanism", registry.MECHANISMS)
def test_an_sm_of_a_mechanism_touches_nothing_of_others(mechanism: str) -> None:
    _, found = look(False, mechanism)
    assert found == []


@pytest.mark.long
def test_a_planted_access_out_of_order_is_found() -> None:
    parts, found = elsewhere(look, True, NUMBA_DISABLE_JIT="1")
    assert parts > 100 and "memory.replies" in found


# ------------------------------------------------------------------------------------------------ runs that stop early

STOPS = {
    "out of bounds": "if (blockIdx.x == 37 && threadIdx.x == 40) out[1 << 28] = 1;",
    "deadlock": "if (threadIdx.x < 32) asm volatile(\"bar.sync 1, 64;\");",
    "no progress": "if (blockIdx.x == 11) while (*(volatile int *)out != 7) ;",
}  # fmt: skip


def stopped(body: str, way: Way) -> str:
    """How a kernel stops."""
    source = f"""extern "C" __global__ void stops(int *out) {{
      for (int k = 0; k < 20; k++) out[blockIdx.x * blockDim.x + threadIdx.x + 1] += k;
      {body} }}"""
    gpu = Gpu("gtx480", [], {**LINES, "launch.no_progress": 20_000})
    set_way(gpu, way)
    out = gpu.to_device(np.zeros(64 * 64 + 1, np.int32))
    with pytest.raises(KernelFault) as caught:
        gpu.load(source).launch("stops", grid=64, block=64, args=[out])
    return f"{caught.value} {gpu.memory.contents.tobytes()!r}"


@pytest.mark.parametrize("what", STOPS)
def test_runs_stop_in_the_same_cycle(what: str) -> None:
    one = stopped(STOPS[what], LOCKSTEP)
    assert all(stopped(STOPS[what], way) == one for way in WAYS) and re.search(r"cycle [\d,]+", one)


def test_an_exception_ends_the_threads() -> None:
    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    kernel, before = kernels.find("spmv"), threading.active_count()
    gpu = Gpu("gtx480", [], {**LINES, "launch.no_progress": 1000}, threads=3, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
    assert threading.active_count() == before
    gpu.progress = None
    assert kernels.check(kernel, kernel.run(gpu, gpu.load(kernel.ptx), data := kernel.setup("tiny", 1)), data).passed


# ----------------------------------------------------------------------------------------------------- hardware in them


class InLockstep(Team):
    def __init__(self, gpu: Description) -> None:
        super().__init__(gpu)
        self.length = 0


@pytest.mark.long
@pytest.mark.exhaustive
def test_hardware_runs_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every output is compared in every cycle, on two threads as in lockstep."""
    job = Job("spmv", size="tiny", mechanisms=["warppool"], settings={**LINES, "core.sms": 4}, threads=2)
    several = cosim(job)
    with monkeypatch.context() as patch:
        patch.setattr(machine, "Team", InLockstep)
        one = cosim(replace(job, threads=1))
    assert one["compared_cycles"] > 100_000 and not one["mismatches"] and not several["one_thread"]
    same = ("cycles", "compared_cycles", "mismatches", "stats", "per_sm", "timeline")
    assert all(one[name] == several[name] for name in same)


# ------------------------------------------------------------------------------------------------------------ obstacles


def reason(kernel_name: str, mechanisms: tuple[str, ...] = (), **settings: Any) -> str:
    """Why a kernel's launches have one thread."""
    kernel = kernels.find(kernel_name)
    gpu = Gpu("gtx480", mechanisms, settings, threads=2)
    gpu.on_print = None
    kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
    return gpu.runs[0].one_thread


@pytest.mark.parametrize(
    ("said", "kernel", "settings"),
    [
        ("", "saxpy", LINES),
        ("`l1.values = memory`", "saxpy", {}),
        ("replies come at once", "saxpy", {**LINES, "crossbar.latency": 1}),
    ],
)
def test_why_a_run_has_one_thread(said: str, kernel: str, settings: dict[str, Any]) -> None:
    found = reason(kernel, **settings)
    assert said in found and bool(said) == bool(found)


def test_on_a_mesh_runs_have_one_thread() -> None:
    kernel = kernels.find("saxpy")
    gpu = Gpu("dyncta110", settings=LINES, threads=2)
    kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
    assert "mesh" in gpu.runs[0].one_thread


def test_observed_runs_have_one_thread() -> None:
    kernel = kernels.find("saxpy")
    gpu = Gpu("gtx480", settings=LINES, threads=2, profile=True)
    kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
    assert gpu.runs[0].one_thread == "it is observed"


def test_the_command_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "saxpy", "--size", "tiny", "--threads", "2"]
    assert main([*command, "--set", "l1.values=lines"]) == 0
    assert "one thread" not in capsys.readouterr().err
    assert main(command) == 0
    said = "lockstep: one thread: memory has values as instructions execute (`l1.values = memory`)\n"
    assert said in capsys.readouterr().err
    assert main([*command[:-1], "0"]) == 2
    assert capsys.readouterr().err == "lockstep: threads = 0: must be 1 to 64\n"
