"""Two kernels at a time: results as alone, nothing overwritten, shares that add up, and the same without skipping."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli.main import main
from lockstep.sim import Gpu, KernelFault, kernels
from lockstep.sim.cosim.session import Session, chosen
from lockstep.sim.device.streams import HostProgram
from lockstep.sim.errors import UsageError
from lockstep.spec.parameters import PLACEMENTS
from lockstep.spec.statistics import has_sms
from lockstep.verif.bench import seeded
from lockstep.verif.levels import base_seed
from lockstep.verif.trial.mechanisms import registered

SETTINGS: dict[str, Any] = {"core.sms": 2}
ADD = """
.version 7.8
.target sm_75
.address_size 64
.visible .entry add(.param .u64 data, .param .u32 rounds, .param .u32 value)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [rounds];
    ld.param.u32 %r2, [value];
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, %ctaid.x;
    mov.u32 %r5, %ntid.x;
    mad.lo.u32 %r3, %r4, %r5, %r3;
    mad.wide.u32 %rd1, %r3, 4, %rd1;
again:
    ld.global.u32 %r6, [%rd1];
    add.u32 %r6, %r6, %r2;
    st.global.u32 [%rd1], %r6;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
.visible .entry spin(.param .u64 data)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [data];
again:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
"""


class Bench:
    """A GPU with a module and a buffer, in which kernels add up."""

    def __init__(self, **settings: Any) -> None:
        self.gpu = Gpu("gtx480", (), SETTINGS | settings)
        self.module = self.gpu.load(ADD)
        self.data = [self.gpu.to_device(np.zeros(4096, np.uint32)) for _ in range(2)]

    def add(self, which: int, stream: Any, rounds: int = 20, value: int = 1, ctas: int = 16) -> Any:
        arguments = [self.data[which], np.uint32(rounds), np.uint32(value)]
        return self.module.launch("add", ctas, 128, arguments, stream=stream)


# ----------------------------------------------------------------------------------------------------- pairs of kernels


def program(gpu: Gpu, name: str) -> Callable[[], tuple[Any, Any, Any]]:
    kernel = kernels.find(name)
    module, data = gpu.load(kernel.ptx, kernel.registers), kernel.setup("tiny", 1)
    return lambda: (kernel, kernel.run(gpu, module, data), data)


def run_pair(gpu: Gpu, names: tuple[str, str]) -> list[HostProgram]:
    ran = gpu.run_programs([program(gpu, name) for name in names])
    for one in ran:
        kernel, outputs, data = one.result
        checked = kernels.check(kernel, outputs, data)
        assert checked.passed, f"{names}: {kernel.name}: {checked.message}"
    return ran


def observed(names: tuple[str, str], skip: bool, mechanisms: tuple[str, ...] = (), **settings: Any) -> Any:
    """Cycles and all counts of a pair, and of each launch."""
    gpu = Gpu("gtx480", mechanisms, SETTINGS | settings)
    gpu.machine.skip = skip
    ran = run_pair(gpu, names)
    shares = [(each.run.began, each.run.ended, _plain(each.run.raw)) for one in ran for each in one.launches]
    return [_plain(run.raw) for run in gpu.runs], shares


def _plain(raw: Any) -> dict[str, Any]:
    return {name: count.tolist() for name, count in raw.items()}


def some_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    return [(rng.choice(kernels.names()), rng.choice(kernels.names())) for _ in range(count)]


# In one of them, the grid that ends first leaves warp slots free that are not in a row.
PAIRS = (
    ("b+tree", "NQU"), ("streamcluster", "corr"), ("lavaMD", "streamcluster"), ("hybridsort", "scalarProd"),
    ("NQU", "convolutionSeparable"), ("pvc", "transpose-columns"), ("backprop-adjust-weights", "lavaMD"),
    ("srad_v1", "fft"), ("BlackScholes", "RAY"), ("sgemm", "mvt"), ("NQU", "pvr"), ("pathfinder", "dxtc"),
)  # fmt: skip


EACH_ITS_OWN = ("gpu.cycles", "sm.cycles", "sm.issued_cycles")
"""Counts of cycles, of which both grids have those in which both are there."""


def check_sums(gpu: Gpu, ran: list[HostProgram], names: tuple[str, str]) -> None:
    """What launches have of the counts of their run adds up to these, on every SM, slice and channel."""
    shares = [each.run for one in ran for each in one.launches]
    for run in gpu.runs:
        parts = [share for share in shares if share.together is run]
        assert len(parts[0].raw) > 80
        for name in parts[0].raw:
            sums, whole = np.sum([part.raw[name] for part in parts], axis=0), run.raw[name]
            if name not in EACH_ITS_OWN:
                assert np.array_equal(sums, whole), (names, name)
                continue
            most = np.max([part.raw[name] for part in parts], axis=0)
            assert (most <= whole).all(), (names, name)
            if "preemption" not in gpu.description.mechanisms:  # an SM that a CTA has left may count on until it sees
                assert (whole <= sums).all(), (names, name)
        assert max(part.ended for part in parts) == run.cycles


def test_pairs_are_right_and_their_shares_add_up() -> None:
    """Also with CTAs of different sizes, registers and scratchpads in an SM, and when one grid goes on alone."""
    for names in PAIRS:
        gpu = Gpu("gtx480", (), SETTINGS)
        check_sums(gpu, run_pair(gpu, names), names)


def test_a_slice_shorter_than_its_moves() -> None:
    """Contexts of these take longer to move than a slice lasts, which begins when they have."""
    gpu = Gpu("gtx480", ("preemption",), SETTINGS | {"launch.placement": "temporal", "launch.slice": 1000})
    names = ("hotspot", "spmv")
    check_sums(gpu, run_pair(gpu, names), names)
    assert gpu.stats["sm.preempted_ctas"] > 8


MEMORIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("warppool", {}),
    ("mrpb", {"l1.sets": 4}),
    ("banked-l1", {"l2.sets": 4}),  # small: lines are written back
    ("preemption", {"launch.placement": "temporal", "launch.slice": 20_000}),
    ("preemption", {"preemption.every": 8000, "preemption.context": "l2"}),
    ("", {"launch.overhead": 1, "l2.sets": 2, "l2.acknowledges": 1}),
    ("", {"mesh.columns": 12, "mesh.rows": 12, "l1.data": 0}),
)


@pytest.mark.parametrize(("mechanism", "settings"), MEMORIES)
def test_sums_of_random_pairs(mechanism: str, settings: dict[str, Any]) -> None:
    rng = seeded()
    for names in some_pairs(2, rng.getrandbits(32)):
        gpu = Gpu("gtx480", (mechanism,) if mechanism else (), SETTINGS | settings)
        check_sums(gpu, run_pair(gpu, names), names)


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_many_pairs_are_right(placement: str) -> None:
    seed = base_seed()
    print(f"LOCKSTEP_SEED={seed}")
    for names in some_pairs(60, seed):
        mechanisms = ("preemption",) if placement == "temporal" else ()
        gpu = Gpu("gtx480", mechanisms, SETTINGS | {"launch.placement": placement, "launch.slice": 20_000})
        check_sums(gpu, run_pair(gpu, names), names)


@pytest.mark.parametrize(
    ("mechanisms", "settings"),
    [
        ((), {}), ((), {"launch.placement": "spatial"}), (("warppool",), {}), (("mrpb",), {}), (("banked-l1",), {}),
        ((), {"launch.overhead": 300, "launch.dispatch_interval": 7, "launch.dispatcher": "load-balanced"}),
        (("trial-preempt",), {}), (("trial-gate", "trial-claim"), {}),
        (("preemption",), {"launch.placement": "temporal", "launch.slice": 5000}),
        (("preemption", "warppool"), {"preemption.every": 1500, "preemption.ctas": 3, "preemption.context": "l2"}),
    ],
    ids=lambda value: "-".join(map(str, value.items() if isinstance(value, dict) else value)),
)  # fmt: skip
def test_skipping_changes_nothing(mechanisms: tuple[str, ...], settings: dict[str, Any]) -> None:
    with registered():
        for names in (("hotspot", "spmv"), ("reduction", "histogram")):
            assert observed(names, True, mechanisms, **settings) == observed(names, False, mechanisms, **settings)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["shadow", "replace"])
def test_both_dispatchers_as_hardware(mode: str) -> None:
    gpu = Gpu("gtx480", (), SETTINGS)
    session = Session(gpu.machine, chosen("cta.cta_dispatcher", gpu.machine.instances), mode)
    run_pair(gpu, ("hotspot", "spmv"))
    assert session.difference is None
    session.close()
    other = Gpu("gtx480", (), SETTINGS)
    run_pair(other, ("hotspot", "spmv"))
    assert gpu.stats == other.stats


# -------------------------------------------------------------------------------------------------------------- streams


def test_two_streams_take_less_than_one_after_the_other() -> None:
    bench = Bench()
    alone = [bench.add(k, None).cycles for k in range(2)]
    assert isinstance(alone[0], int)
    streams = bench.gpu.stream(), bench.gpu.stream()
    first, second = (bench.add(k, stream) for k, stream in enumerate(streams))
    assert (len(streams[0]), repr(first)) == (1, "<Launch of add: waits>")
    bench.gpu.synchronize()
    assert (len(streams[0]), repr(first)) == (0, "<Launch of add: has run>")
    assert first.run.together is second.run.together is bench.gpu.runs[-1]
    assert max(alone) < first.run.together.cycles < sum(alone)
    assert all((bench.gpu.from_device(data)[: 16 * 128] == 40).all() for data in bench.data)
    assert first.run.stats["issue.warp_instructions"] == bench.gpu.runs[0].stats["issue.warp_instructions"]
    assert "l1.misses" in first.run.per_sm[1] and "dram.reads" in first.run.stats
    for cycles in ("issue.stall_core_cycles", "l1.stall_mshrs_core_cycles", "crossbar.requests_blocked_core_cycles"):
        assert cycles not in first.run.stats


def test_requests_are_their_grid_s() -> None:
    """By hand. A warp's round loads a line and stores it, which evicts it, so that each load misses in the L1.

    Lines come from DRAM once; the instructions' and parameters' are not modelled here.
    """
    ideal = {"instruction_cache.mode": "perfect", "constant_cache.mode": "perfect"}
    bench = Bench(**ideal)
    streams = bench.gpu.stream(), bench.gpu.stream()
    shapes = (8, 5), (2, 7)  # CTAs, of 4 warps, and rounds
    waits = [bench.add(k, streams[k], rounds, ctas=ctas) for k, (ctas, rounds) in enumerate(shapes)]
    core = bench.gpu.description
    for wait, (ctas, rounds) in zip(waits, shapes, strict=True):
        warps, line, stats = 4 * ctas, 128, wait.run.stats
        accesses = warps * rounds
        assert stats["instructions.global"] == 2 * accesses == stats["lsu.instructions"] == stats["lsu.requests"]
        assert stats["l1.loads"] == stats["l1.misses"] == stats["l1.fetches"] == stats["l1.stores"] == accesses
        assert stats["l1.in_bytes"] == stats["l1.out_bytes"] == line * accesses == stats["l2.in_bytes"]
        assert stats["crossbar.requests_packets"] == 2 * accesses == stats["l2.accesses"]
        assert stats["crossbar.requests_bytes"] == 2 * accesses * core.crossbar.header_bytes + line * accesses
        assert stats["crossbar.replies_packets"] == accesses == stats["l2.reads"] == stats["l2.writes"]
        assert stats["l2.misses"] == warps == stats["dram.reads"] and stats["l2.hits"] == 2 * accesses - warps
        assert stats["dram.read_bytes"] == line * warps and stats["dram.written_bytes"] == 0


def test_all_of_an_sm_is_its_grid_s() -> None:
    """Each grid has an SM of its own: what that SM counts is the grid's, instruction by instruction, cycle by cycle."""
    for settings in ({}, {"l1.data": 0, "constant_cache.sets": 1}):
        bench = Bench(**{"launch.placement": "spatial", "core.sms": 2}, **settings)
        streams = bench.gpu.stream(), bench.gpu.stream()
        waits = [bench.add(k, stream, rounds=50 + 20 * k, ctas=4 + k) for k, stream in enumerate(streams)]
        own = {name for name in waits[0].run.raw if has_sms(name)}
        assert {"sm.cycles", "sm.issued_cycles", "l1.round_trip", "constant_cache.misses", "lsu.lines"} <= own
        for sm, wait in enumerate(waits):
            for name in own:
                part, whole = wait.run.raw[name], wait.run.together.raw[name]
                assert np.array_equal(part[sm], whole[sm]) and not part[1 - sm].any(), name


def test_cycles_of_each_of_two_grids() -> None:
    """By hand: the first grid is there all the time, and the second, a CTA, until its last instruction has issued."""
    bench = Bench(**{"core.sms": 1})
    streams = bench.gpu.stream(), bench.gpu.stream()
    waits = [bench.add(k, stream, rounds=300 - 290 * k, ctas=1) for k, stream in enumerate(streams)]
    first, second = (wait.run for wait in waits)
    whole = first.together.raw
    assert first.raw["sm.cycles"] == whole["sm.cycles"]
    assert second.raw["sm.cycles"] == second.raw["sm.resident_cta_cycles"] + 1
    assert first.beside == second.warp_instructions and 0 < second.beside < first.warp_instructions
    assert 0 < second.raw["sm.cycles"] <= second.ended - second.began < first.raw["sm.cycles"]
    issued = first.raw["sm.issued_cycles"] + second.raw["sm.issued_cycles"]
    assert whole["sm.issued_cycles"] < issued <= whole["sm.warp_instructions"]
    assert first.stats["occupancy.ctas"] < 1 and second.stats["sm.active_core_cycles"] == second.raw["sm.cycles"]


def test_launches_of_a_stream_follow_each_other() -> None:
    bench = Bench(**{"launch.overhead": 100})
    one, two = bench.gpu.stream(), bench.gpu.stream()
    waits = [bench.add(0, one, value=10**k, rounds=1 + k) for k in range(3)]
    beside = bench.add(1, two, rounds=200)
    for before, after in pairwise(each.run for each in waits):
        assert before.ended + 100 == after.began
    assert beside.run.began == 0 and beside.run.together.kernel == "add"
    assert (bench.gpu.from_device(bench.data[0])[: 16 * 128] == 1 + 20 + 300).all()


def test_what_looks_at_memory_waits_for_streams() -> None:
    bench = Bench()
    stream = bench.gpu.stream()
    bench.add(0, stream)
    assert (bench.gpu.from_device(bench.data[0])[: 16 * 128] == 20).all()
    bench.add(0, stream)
    run = bench.add(0, None)  # waits for the one before
    assert not len(stream) and bench.gpu.runs[-1] is run
    bench.add(0, stream)
    bench.gpu.free(bench.data[0])
    assert not len(stream)


def test_each_grid_has_its_sms_with_spatial_placement() -> None:
    for first, expected in ((0, ([1, 1, 0], [0, 0, 1])), (1, ([1, 0, 0], [0, 1, 1]))):
        bench = Bench(**{"core.sms": 3, "launch.placement": "spatial", "launch.first_sms": first})
        streams = bench.gpu.stream(), bench.gpu.stream()
        waits = [bench.add(k, stream, ctas=8 + 16 * k, rounds=300 - 290 * k) for k, stream in enumerate(streams)]
        assert [[int(count > 0) for count in each.run.raw["sm.ctas"]] for each in waits] == list(expected)


@pytest.mark.parametrize(
    ("what", "blocks", "shared", "settings"),
    [
        ("allocated_registers", (128, 96), (0, 0), {"core.registers": 8192}),
        ("allocated_shared", (32, 64), (9_000, 7_000), {}),
        ("warps", (96, 160), (0, 0), {"core.threads": 512, "core.threads_per_cta": 512}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_both_need_is_added_up(
    what: str, blocks: tuple[int, int], shared: tuple[int, int], settings: dict[str, Any]
) -> None:
    """Every three cycles: threads, registers, scratchpad and CTAs fit; both grids are in an SM, which is full."""
    bench = Bench(**settings)
    gpu, fullest = bench.gpu, 0.0
    core = gpu.description.core
    most = {
        "allocated_registers": core.registers,
        "allocated_shared": gpu.description.scratchpad.bytes,
        "warps": core.threads // 32,
    }

    def look(*_: int) -> None:
        nonlocal fullest
        grids = gpu.machine.launch_record["grids"].reshape(-1)
        ctas = gpu.machine.sms["ctas_of"]
        for name, limit in most.items():
            assert (ctas @ grids[name] <= limit).all(), name
        assert (ctas.sum(axis=1) <= core.ctas).all()
        used = (ctas @ grids[what])[(ctas > 0).all(axis=1)]
        fullest = max([fullest, *(used / most[what])])

    gpu.progress = look
    streams = gpu.stream(), gpu.stream()
    for data, stream, block, nbytes in zip(bench.data, streams, blocks, shared, strict=True):
        arguments = [data, np.uint32(5), np.uint32(1)]
        bench.module.launch("add", 4096 // block, block, arguments, nbytes, stream=stream)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lockstep.models.session.between_looks", lambda _: 3)
        gpu.synchronize()
    assert fullest > 0.8


def test_printing_is_told_by_launch() -> None:
    source = '#include <cstdio>\n__global__ void f(int n) { printf("%d.%d ", n, blockIdx.x); }'
    gpu = Gpu("gtx480", (), SETTINGS)
    shown: list[str] = []
    gpu.on_print = shown.append
    module, streams = gpu.load(source), (gpu.stream(), gpu.stream())
    made = [module.launch("f", 3, 1, [np.int32(k)], stream=stream) for k, stream in enumerate(streams)]
    assert [each.run.printed for each in made] == ["0.0 0.1 0.2 ", "1.0 1.1 1.2 "]
    assert sorted(shown) == ["0.0 0.1 0.2 ", "1.0 1.1 1.2 "]


def test_the_other_grid_sees_textures_where_they_are_now() -> None:
    """A host program makes some, which moves all, and launches nothing for a while, or nothing any more."""
    bench, places = Bench(**{"launch.overhead": 500}), set()
    image = np.zeros((4, 4), np.float32)

    def makes_textures() -> None:
        for _ in range(3):
            bench.add(0, None, rounds=2)
            bench.gpu.texture(image)

    def look(*_: int) -> None:
        assert int(bench.gpu.machine.context["textures"]) == bench.gpu.memory.textures.ctypes.data
        places.add(bench.gpu.memory.textures.ctypes.data)

    bench.gpu.progress = look
    bench.gpu.texture(image)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lockstep.models.session.between_looks", lambda _: 50)
        bench.gpu.run_programs([makes_textures, lambda: bench.add(1, None, rounds=300)])
    assert len(places) > 1


# ---------------------------------------------------------------------------------------------------------- what is bad


def test_a_fault_names_its_kernel_and_the_gpu_lives_on() -> None:
    bench = Bench(**{"launch.no_progress": 20_000})
    cold = bench.add(0, None).cycles
    streams = bench.gpu.stream(), bench.gpu.stream()
    beside = bench.add(0, streams[0])
    bad = bench.module.launch("add", 64, 256, [bench.data[1], np.uint32(1), np.uint32(1)], stream=streams[1])
    with pytest.raises(KernelFault, match=r"add: .* outside every allocation|add: .*address"):
        bench.gpu.synchronize()
    for dropped in (beside, bad):
        with pytest.raises(UsageError, match="add: has not come to its end"):
            _ = dropped.run
    other = Bench(**{"launch.no_progress": 20_000})
    assert bench.add(0, None).cycles == other.add(0, None).cycles == cold


def test_a_grid_that_only_spins_is_found_when_the_other_has_ended() -> None:
    bench = Bench(**{"launch.no_progress": 20_000})
    zero = bench.gpu.to_device(np.zeros(1, np.uint32))
    streams = bench.gpu.stream(), bench.gpu.stream()
    beside = bench.add(0, streams[0], rounds=500)
    bench.module.launch("spin", 1, 32, [zero], stream=streams[1])
    with pytest.raises(KernelFault, match=r"^spin: no progress"):
        bench.gpu.synchronize()
    with pytest.raises(UsageError):
        _ = beside.run


def test_what_is_refused() -> None:
    bench, other = Bench(), Bench()
    streams = [bench.gpu.stream() for _ in range(3)]
    for k in range(2):
        bench.add(k, streams[k])
    with pytest.raises(UsageError, match="add: 2 other streams have launches that wait; a GPU runs 2 grids at once"):
        bench.add(0, streams[2])
    with pytest.raises(UsageError, match="the stream is another GPU"):
        other.add(0, streams[0])
    with pytest.raises(UsageError, match=r"stream = 1: must be what gpu.stream\(\) has returned"):
        bench.add(0, 1)
    with pytest.raises(UsageError, match="add: a profile in a stream is that of all launches"):
        bench.module.launch("add", 1, 32, [bench.data[0], np.uint32(1), np.uint32(1)], profile=True, stream=streams[0])  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="regless: runs one grid at a time"):
        Gpu("gtx480", ["regless"]).stream()


def test_a_host_program_that_fails_ends_the_other() -> None:
    bench = Bench()

    def fails() -> None:
        bench.add(0, None)
        raise ValueError("of a user")

    def never_ends() -> None:
        while True:
            bench.add(1, None)

    with pytest.raises(ValueError, match="of a user"):
        bench.gpu.run_programs([never_ends, fails])
    assert bench.add(0, None).cycles > 0


# ---------------------------------------------------------------------------------------------------------- the command


def test_two_kernels_from_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "pair.json"
    assert main(["run", "hotspot", "--secondary", "spmv", "--size", "tiny", "--json", str(file)]) == 0
    assert "checked: hotspot: 540 elements agree; spmv: 729 elements agree" in capsys.readouterr().out
    saved = json.loads(file.read_text(encoding="utf-8"))
    assert [each["kernel"] for each in saved["kernels"]] == ["hotspot", "spmv"]
    assert sum(each["warp_instructions"] for each in saved["kernels"]) == saved["warp_instructions"]
    assert max(each["spans"][-1][1] for each in saved["kernels"]) == saved["cycles"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--secondary", "spmv", "--energy"], "--energy: is kept in the file of --json"),
        (["--secondary", "spmv", "--sm", "1"], "--sm 1: needs --timeline"),
        (["--secondary", "spmv", "--intervals", "x.txt"], "x.txt: the name of an interval file must end in"),
        (["--secondary", "none"], "kernel 'none': not known"),
        (["--secondary-size", "tiny"], "--secondary-size: is for --secondary"),
        (["--repeat"], "--repeat: is for --secondary"),
        (["--secondary", "spmv", "--with", "regless"], "regless: runs one grid at a time"),
    ],
)
def test_what_the_command_refuses(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "saxpy", "--size", "tiny", *arguments]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1
