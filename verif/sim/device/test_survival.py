"""A GPU outlives what ends a launch early: faults, no progress, Ctrl-C, exceptions of callbacks, faults of the model.

The next launch gives right results in the cycles of a cold GPU, and the host's view of device memory stays.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from lockstep.models import machine as resets
from lockstep.models import session as model
from lockstep.models.jit import as_bytes
from lockstep.models.stop import ModelFault
from lockstep.sim import Gpu, KernelFault
from lockstep.sim.cosim.session import Session, chosen
from lockstep.verif.conftest import partly
from lockstep.verif.sim.cosim.bench import faulty
from lockstep.verif.trial.mechanisms import registered

HEADER = ".version 7.0\n.target sm_75\n.address_size 64\n"

# Each thread reads lines of its own, again and again, and adds to its element; one of them then stores to address 4,
# all wait for ever, or all end. Halfway, a warp's first lane prints.
TROUBLE = HEADER + """
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[6] = {104, 97, 108, 102, 10, 0};
.global .align 4 .u32 symbol = 7;
.global .texref picture;
.visible .entry work(.param .u64 data, .param .u32 rounds, .param .u32 end)
{
  .shared .align 4 .b8 own[4096];
  .local .align 8 .b8 depot[8];
  .reg .u64 %d, %a, %o, %t, %l; .reg .u32 %n, %k, %i, %v, %e, %s; .reg .pred %p, %q; .reg .f32 %f<5>;
  ld.param.u64 %d, [data];
  ld.param.u32 %n, [rounds];
  ld.param.u32 %e, [end];
  mov.u32 %k, %tid.x;
  mul.lo.u32 %s, %k, 4;
  mov.u32 %i, %ctaid.x;
  mov.u32 %v, %ntid.x;
  mad.lo.u32 %i, %i, %v, %k;
  mul.wide.u32 %a, %i, 4;
  add.u64 %o, %d, %a;
  mul.wide.u32 %a, %i, 128;
  add.u64 %a, %d, %a;
  mov.u32 %i, 0;
$again:
  ld.global.u32 %v, [%a+65536];
  add.u32 %v, %v, 1;
  st.shared.u32 [own], %v;
  red.global.add.u32 [%o], 1;
  tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [picture, {%k, %i}];
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, %n;
  @%p bra $again;
  setp.ne.u32 %p, %k, 0;
  @%p bra $quiet;
  mov.u64 %l, text;
  mov.u64 %t, 0;
  {
  .param .b64 p0; st.param.b64 [p0+0], %l;
  .param .b64 p1; st.param.b64 [p1+0], %t;
  .param .b32 r0;
  call.uni (r0), vprintf, (p0, p1);
  ld.param.b32 %v, [r0+0];
  }
$quiet:
  setp.eq.u32 %q, %e, 1;
  setp.eq.and.u32 %q, %k, 37, %q;
  @%q st.global.u32 [4], %v;
  setp.ne.u32 %p, %e, 2;
  @%p ret;
$spin:
  bra $spin;
}
"""
FAULT, SPIN = 1, 2  # what ``end`` asks for
THREADS, CTAS = 64, 6
SETTINGS = {"core.sms": 2, "launch.no_progress": 20_000, "instruction_cache.mode": "perfect"}


@pytest.fixture(autouse=True)
def trials() -> Iterator[None]:
    with registered():
        yield


class Bench:
    """A GPU with the kernel above and all that can lie in device memory."""

    def __init__(self, mechanisms: tuple[str, ...] = (), strict: bool = False, **settings: Any) -> None:
        self.gpu = Gpu("gtx480", mechanisms, {**SETTINGS, **settings}, strict=strict)
        self.printed: list[str] = []
        self.gpu.on_print = self.printed.append
        self.gpu.machine.skip = True
        words = np.zeros(1 << 18, np.uint32)
        words[: THREADS * CTAS] = 5
        self.data = self.gpu.to_device(words)
        self.kept = self.gpu.to_device(np.arange(999))
        self.module = self.gpu.load(TROUBLE)
        image = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
        self.texture = self.gpu.texture(image)
        self.module.set_symbol("picture", self.texture)
        self.module.set_symbol("symbol", np.uint32(9))

    def work(self, end: int = 0, rounds: int = 40) -> Any:
        return self.module.launch("work", CTAS, THREADS, [self.data, np.uint32(rounds), np.uint32(end)])

    def view(self) -> tuple[Any, ...]:
        """The host's view of what no kernel writes."""
        return (
            self.gpu.memory.allocations, self.gpu.from_device(self.kept).tolist(), self.module.get_symbol("symbol")[0],
            self.gpu.from_device(self.texture.texels).tobytes(), self.gpu.memory.textures.tobytes(),
        )  # fmt: skip

    def next_launches(self) -> list[Any]:
        """What two launches leave behind, from fresh data: counts, results, prints."""
        found: list[Any] = []
        self.printed.clear()
        words = np.zeros(1 << 18, np.uint32)
        self.gpu.memory.write(self.data.base, words.view(np.uint8))
        for _ in range(2):
            raw = self.work().raw
            found += [{name: values.tolist() for name, values in raw.items()}]
            found += [self.gpu.from_device(self.data)[: THREADS * CTAS].tolist(), list(self.printed)]
        return found


def fault(bench: Bench) -> None:
    with pytest.raises(KernelFault, match="out of bounds"):
        bench.work(FAULT)


def spin(bench: Bench) -> None:
    with pytest.raises(KernelFault, match="no progress"):
        bench.work(SPIN)


def control_c(bench: Bench) -> None:
    """Ctrl-C while requests are on their way."""

    def stop(_ended: int, _ctas: int, cycle: int) -> None:
        if cycle > 3000:
            signal.raise_signal(signal.SIGINT)

    bench.gpu.progress = stop
    with pytest.raises(KeyboardInterrupt):
        bench.work(SPIN, rounds=1 << 20)
    bench.gpu.progress = None


def callback(bench: Bench) -> None:
    def stop(*_: int) -> None:
        raise ValueError("of a user")

    bench.gpu.progress = stop
    with pytest.raises(ValueError, match="of a user"):
        bench.work()
    bench.gpu.progress = None


def model_fault(bench: Bench) -> None:
    """A fault of the model in the middle of a launch."""
    real = model.run

    def run(*arguments: Any) -> None:
        real(*arguments)
        bench.gpu.machine.state["fault"] = model.Fault.MEMORY_ORDER

    with pytest.MonkeyPatch.context() as patch, pytest.raises(ModelFault):
        patch.setattr(model, "run", run)
        bench.work()


def broken_law(bench: Bench) -> None:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError, match="conservation"):
        patch.setattr(model.laws, "broken", lambda *_: ["a law"])
        bench.work()


def while_preparing(bench: Bench) -> None:
    """Ctrl-C before the first cycle."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(resets, "begin", stop)
        bench.work()


def scribble(bench: Bench) -> None:
    """The SMs' records hold anything: a launch resets it, or writes it before it reads it.

    But for bindings; and for the places where a slot's last warp was registered, which it is taken out of once more.
    """
    fault(bench)
    sms = bench.gpu.machine.sms
    lsu, warps = sms["lsu"], sms["warps"]
    bound = sms["tenants"], sms["frame"], lsu["path"], lsu["clients"], sms["warp_scheduler"]["binding"]
    parts = *bound, warps["pipe"], warps["kind"]
    kept = [part.copy() for part in parts]
    as_bytes(sms)[...] = np.random.default_rng(1).integers(256, size=sms.dtype.itemsize, dtype=np.uint8)
    for part, before in zip(parts, kept, strict=True):
        part[...] = before


WAYS = (fault, spin, control_c, callback, model_fault, broken_law, while_preparing, scribble)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("before", [0, 1])
def test_the_next_launch_is_that_of_a_cold_gpu(way: Callable[[Bench], None], before: int) -> None:
    """The first one, or after one that warmed the caches."""
    bench = Bench()
    for _ in range(before):
        bench.work()
    seen = bench.view()
    way(bench)
    assert bench.view() == seen
    assert bench.next_launches() == Bench().next_launches()


@pytest.mark.parametrize(
    "names",
    partly(
        ["warppool", "mrpb", "banked-l1", "trial-preempt", "trial-one-cta", "trial-client", "trial-elsewhere",
         "trial-segments", "trial-claim", "trial-gate,trial-classes", "trial-monitor,trial-watcher",
         "warppool,trial-preempt"],
    ),
)  # fmt: skip
@pytest.mark.parametrize("way", [fault, spin, control_c])
def test_mechanisms_start_anew(names: str, way: Callable[[Bench], None]) -> None:
    mechanisms = tuple(names.split(","))
    bench = Bench(mechanisms)
    way(bench)
    assert bench.next_launches() == Bench(mechanisms).next_launches()


@pytest.mark.parametrize("way", [fault, spin, control_c])
def test_strict_marks_stay(way: Callable[[Bench], None]) -> None:
    bench = Bench(strict=True)
    way(bench)
    assert bench.next_launches() == Bench(strict=True).next_launches()
    unwritten = bench.gpu.empty(1 << 18, np.uint32)
    with pytest.raises(KernelFault, match="nobody has written"):
        bench.module.launch("work", 1, 32, [unwritten, 1, 0])


@pytest.mark.long
@pytest.mark.parametrize("mode", ["shadow", "replace"])
@pytest.mark.parametrize("way", [fault, spin, control_c])
def test_hardware_in_the_run_starts_anew(mode: str, way: Callable[[Bench], None]) -> None:
    bench = Bench(("warppool",))
    blocks = "warppool.mshr_metadata,warppool.writeback"  # all ten take long to compile
    session = Session(bench.gpu.machine, chosen(blocks, bench.gpu.machine.instances), mode)
    way(bench)
    assert bench.next_launches() == Bench(("warppool",)).next_launches()
    assert session.difference is None
    session.close()


@pytest.mark.exhaustive
def test_a_difference_ends_one_launch_only() -> None:
    """The second launch differs again; with the models back in their places, the third is right."""
    bench, block = Bench(), "lsu.intra_warp_coalescer"
    instances = chosen(block, bench.gpu.machine.instances, [1])
    session = Session(bench.gpu.machine, instances, makes={block: faulty(block, "line_number", 3, 21)})
    for _ in range(2):
        with pytest.raises(ModelFault):
            bench.work()
        assert session.difference is not None
    session.close()
    assert bench.next_launches() == Bench().next_launches()


def test_what_a_failed_launch_did_is_in_memory_and_counts_nowhere() -> None:
    bench = Bench()
    bench.work()
    before, runs = dict(bench.gpu.stats), len(bench.gpu.runs)
    bench.gpu.memory.write(bench.data.base, np.zeros(4 << 18, np.uint8))
    fault(bench)
    assert bench.gpu.stats == before and len(bench.gpu.runs) == runs
    done = bench.gpu.from_device(bench.data)[: THREADS * CTAS]
    assert 40 in done, "the warp that failed had come to the end of its loop"


def test_an_interrupted_launch_shows_what_it_has_printed() -> None:
    bench = Bench()

    def stop(_ended: int, _ctas: int, cycle: int) -> None:
        if cycle > 15_000:
            raise KeyboardInterrupt

    bench.gpu.progress = stop
    with pytest.raises(KeyboardInterrupt):
        bench.work(SPIN, rounds=1)
    assert bench.printed == ["half\n" * CTAS]


PRINTER = HEADER + """
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[2] = {10, 0};
.visible .entry chatter()
{
  .reg .u64 %l, %t; .reg .u32 %v; .reg .pred %p;
  mov.u64 %l, text;
  mov.u64 %t, 0;
  mov.u32 %v, %tid.x;
  setp.ne.u32 %p, %v, 0;
  @%p ret;
$again:
  {
  .param .b64 p0; st.param.b64 [p0+0], %l;
  .param .b64 p1; st.param.b64 [p1+0], %t;
  .param .b32 r0;
  call.uni (r0), vprintf, (p0, p1);
  ld.param.b32 %v, [r0+0];
  }
  WORK
  bra $again;
}
""".replace("WORK", "add.u32 %v, %v, 1;\n" * 30)


@pytest.mark.parametrize("delay", [0.4, 0.53, 0.71])
def test_control_c_while_a_kernel_prints(delay: float, capfd: pytest.CaptureFixture[str]) -> None:
    """It comes while compiled code runs, and is seen first by the Python that formats. Nothing else ends the launch."""
    gpu = Gpu("gtx480", core_sms=2, launch_no_progress=1_000_000_000)
    gpu.on_print = None
    module = gpu.load(PRINTER)
    _ = gpu.machine
    with pytest.raises(KeyboardInterrupt):
        killer = subprocess.Popen(["sh", "-c", f"sleep {delay}; kill -INT {os.getpid()}"])
        module.launch("chatter", 1, 32)
    killer.wait()
    assert "ignored" not in capfd.readouterr().err
    assert gpu.load(CALM).launch("count", 1, 32, [gpu.empty(32, np.uint32), 1]).cycles > 0


# ------------------------------------------------------------------------------------------------------------- progress

# Loops of all kinds: ``n`` rounds of counting; a lock that is never given back; a flag that the last warp sets late.
CALM = HEADER + """
.visible .entry count(.param .u64 out, .param .u32 n)
{
  .reg .u64 %o; .reg .u32 %i, %n, %k<4>; .reg .pred %p;
  ld.param.u64 %o, [out];
  ld.param.u32 %n, [n];
  add.u32 %k1, %n, 1; add.u32 %k2, %n, 2; add.u32 %k3, %n, 3;
  mov.u32 %i, 0;
$again:
  add.u32 %i, %i, 1;
  setp.ne.u32 %p, %i, %n;
  @%p bra $again;
  add.u32 %i, %i, %k1; add.u32 %i, %i, %k2; add.u32 %i, %i, %k3;
  st.global.u32 [%o], %i;
  ret;
}
.visible .entry lock(.param .u64 out, .param .u32 n)
{
  .reg .u64 %o; .reg .u32 %i, %j; .reg .pred %p;
  ld.param.u64 %o, [out];
$again:
  atom.global.cas.b32 %i, [%o], 0, 1;
  mul.lo.u32 %j, %i, 3;
  add.u32 %j, %j, %i;
  setp.ne.u32 %p, %j, 0;
  @%p bra $again;
  ret;
}
.visible .entry flag(.param .u64 out, .param .u32 n)
{
  .reg .u64 %o; .reg .u32 %i, %n, %t; .reg .pred %p;
  ld.param.u64 %o, [out];
  ld.param.u32 %n, [n];
  mov.u32 %t, %tid.x;
  setp.ge.u32 %p, %t, 96;
  @%p bra $work;
$wait:
  ld.volatile.global.u32 %i, [%o];
  setp.eq.u32 %p, %i, 0;
  @%p bra $wait;
  ret;
$work:
  mov.u32 %i, 0;
$again:
  add.u32 %i, %i, 1;
  setp.ne.u32 %p, %i, %n;
  @%p bra $again;
  st.volatile.global.u32 [%o], %i;
  ret;
}
"""


def calm(name: str, block: int, n: int, first: int = 0, mechanisms: tuple[str, ...] = (), limit: int = 2000) -> int:
    """The cycles of a launch."""
    settings = {"core.sms": 1, "launch.no_progress": limit}
    gpu = Gpu("gtx480", mechanisms, settings)
    out = gpu.to_device(np.array([first], np.uint32))
    return gpu.load(CALM).launch(name, 1, block, [out, np.uint32(n)]).cycles


def cycle_of(fault: KernelFault) -> int:
    found = re.search(r", cycle (\d+)", str(fault))
    assert found
    return int(found[1])


@pytest.mark.parametrize("mechanisms", [(), ("trial-elsewhere",), ("trial-segments",)])
@pytest.mark.parametrize(("name", "block"), [("count", 32), ("count", 1024), ("flag", 128)])
def test_a_long_loop_is_progress(name: str, block: int, mechanisms: tuple[str, ...]) -> None:
    assert calm(name, block, 1000, mechanisms=mechanisms) > 10 * 2000


@pytest.mark.parametrize("mechanisms", [(), ("warppool",), ("trial-preempt",)])
@pytest.mark.parametrize("block", [32, 1024])
def test_a_lock_that_nobody_gives_back_is_none(block: int, mechanisms: tuple[str, ...]) -> None:
    with pytest.raises(KernelFault, match="no progress") as caught:
        calm("lock", block, 0, 1, mechanisms, 20_000)
    assert 20_000 < cycle_of(caught.value) < 100_000


@pytest.mark.parametrize(("name", "mechanisms"), [("count", ()), ("lock", ("trial-elsewhere",))])
def test_no_loop_goes_on_for_ever(name: str, mechanisms: tuple[str, ...]) -> None:
    """One that counts; one whose registers are out of sight."""
    with pytest.raises(KernelFault, match="no progress") as caught:
        calm(name, 32, 0, 1, mechanisms)
    assert 200_000 < cycle_of(caught.value) < 300_000
