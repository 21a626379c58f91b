"""Kernels with ``--with regless``: their results are what the staging units, the compressors and the L1 have held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from lockstep.sim import Gpu, kernels
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.passes.register_regions import annotations as pass_
from lockstep.sim.compile.ptx.passes.register_regions import as_printed
from lockstep.sim.compile.ptx.passes.register_regions.annotations import Annotated, divide
from lockstep.sim.compile.ptx.passes.register_regions.regions import Bounds
from lockstep.sim.errors import KernelFault, UsageError
from lockstep.spec import register_regions as spec
from lockstep.verif import combinations
from lockstep.verif.models.micro import Bench
from lockstep.verif.regless.planted import erased_early

REGLESS = ["regless"]
SMALLEST = {"regless.registers": 128}


def count(run: combinations.Observed, name: str) -> int:
    return sum(sum(raw[f"regless.{name}"]) for raw in run.raw)


# -------------------------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("registers", [128, 256, 512])
@pytest.mark.parametrize("kernel", ["reduction", "JPEG", "nw", "histogram-atomics", "bfs"])
def test_kernels_at_any_capacity(kernel: str, registers: int) -> None:
    """Barriers, divergence, atomics, many registers: results are right, with and without skipping alike."""
    settings = {"regless.registers": registers}
    run = combinations.run(kernel, REGLESS, settings=settings)
    assert run.wrong == ""
    if kernel != "JPEG":
        assert run.raw == combinations.run(kernel, REGLESS, skip=False, settings=settings).raw


def test_registers_go_all_the_way_down_and_come_back() -> None:
    """With the smallest staging units, a kernel with many registers has some in every place there is."""
    run = combinations.run("JPEG", REGLESS, settings=SMALLEST | {"l1.sets": 4})
    assert run.wrong == ""
    used = "fetches stores l1_hits l1_misses lines_fetched raw_stores line_stores drops".split()
    assert all(count(run, name) > 0 for name in used), {name: count(run, name) for name in used}
    staged = combinations.run("JPEG", REGLESS, settings={"regless.registers": 2048})
    assert count(staged, "stores") == 0
    assert count(staged, "preloads") == count(run, "preloads")  # the compiler says how many


def test_without_compressed_lines_all_that_leaves_goes_to_lines_of_its_own() -> None:
    settings = SMALLEST | {"regless.compressor_lines": 0}
    run = combinations.run("JPEG", REGLESS, settings=settings)
    assert run.wrong == ""
    assert count(run, "raw_stores") == count(run, "stores") > 0 == count(run, "lines_fetched")


@pytest.mark.parametrize("gpu", ["gtx980", "dyncta30"])
def test_other_gpus(gpu: str) -> None:
    kernel = kernels.find("reduction")
    data = kernel.setup("tiny", 1)
    device = Gpu(gpu, REGLESS, SMALLEST | {"core.sms": 2})
    assert kernels.check(kernel, kernel.run(device, device.load(kernel.ptx), data), data).passed


@pytest.mark.parametrize("other", ["warppool", "mrpb", "dyncta", "scratchpad-sharing"])
def test_beside_other_mechanisms(other: str) -> None:
    run = combinations.run("nw", [*REGLESS, other], settings=SMALLEST)
    assert run.wrong == ""
    assert count(run, "regions") > 0


def test_instructions_whose_operands_come_late_have_room_in_warppool_s_queues() -> None:
    """Each warp of lavaMD loads four doubles in a row, and others issue theirs before the first ones execute."""
    assert combinations.run("lavaMD", [*REGLESS, "warppool"]).wrong == ""


LOCK = """
again:
    atom.global.cas.b32 %r3, [%rd1], 0, 1;
    setp.ne.u32 %p2, %r3, 0;
    @%p2 bra again;
    ld.volatile.global.u32 %r4, [%rd1+128];
    add.u32 %r4, %r4, 1;
    st.volatile.global.u32 [%rd1+128], %r4;
    membar.gl;
    st.volatile.global.u32 [%rd1], 0;
"""


def test_warps_that_spin_do_not_keep_others_from_their_registers() -> None:
    bench = Bench(LOCK, SMALLEST, mechanisms=REGLESS)
    bench(grid=40, block=1)
    assert bench.words()[32] == 40


MANY = range(10, 38)
PHASE = "\n".join(
    [
        *(f"add.u32 %r{k}, %r2, {k};" for k in MANY),
        "st.shared.u32 [%r5], %r2;",
        *(f"add.u32 %r6, %r6, %r{k};" for k in MANY),
        "ld.shared.u32 %r7, [%r5];",
        "add.u32 %r6, %r6, %r7;",
    ]
)
"""An access to the scratchpad while most of the lines that a region may have are taken."""


def test_a_warp_that_waits_for_its_partner_keeps_no_lines() -> None:
    """Two warps that wait inside their regions would keep all lines, and those who hold the scratchpad get none."""
    body = "mov.u32 %r5, 8000;\nmov.u32 %r6, 0;\n" + 3 * (PHASE + "\nbar.sync 0;\n")
    body += "shl.b32 %r9, %r2, 2;\ncvt.u64.u32 %rd5, %r9;\nadd.u64 %rd5, %rd5, %rd1;\nst.global.u32 [%rd5], %r6;\n"
    settings = SMALLEST | {"sharing.percent": 90, "launch.no_progress": 20_000}
    bench = Bench(body, settings, mechanisms=[*REGLESS, "scratchpad-sharing"])
    assert bench.module.occupancy("k", 32, 10 << 10).pairs == 4
    bench(grid=16, block=32, shared=10 << 10)
    assert bench.words()[:16].tolist() == [3 * (len(MANY) * cta + sum(MANY) + cta) for cta in range(16)]


def test_what_a_warp_waits_for_is_told() -> None:
    spin = "again: ld.volatile.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra again;\n"
    bench = Bench(spin, SMALLEST | {"launch.no_progress": 20_000}, mechanisms=REGLESS)
    with pytest.raises(KernelFault) as caught:
        bench(block=512)
    states = {warp.state for warp in caught.value.warps}
    assert any("region" in state for state in states), states


def test_who_cannot_have_it() -> None:
    with pytest.raises(UsageError, match="register-sharing and regless exclude each other"):
        Gpu("gtx480", ["regless", "register-sharing"])
    with pytest.raises(UsageError, match=r"regless\.registers = 130: must be a multiple of 16"):
        Gpu("gtx480", REGLESS, {"regless.registers": 130})
    with pytest.raises(UsageError, match=r"l1\.line_bytes = 32: must be 64 or 128 with regless"):
        short = "l1.line_bytes", "instruction_cache.line_bytes", "constant_cache.line_bytes", "l2.sector_bytes"
        Gpu("gtx480", REGLESS, dict.fromkeys(short, 32))


@pytest.mark.parametrize(("kernel", "registers"), [("JPEG", 128), ("bfs", 512)])
def test_causes_of_its_own_in_profiles(kernel: str, registers: int) -> None:
    """With small staging units, warps wait for lines more than for registers."""
    one = kernels.find(kernel)
    gpu = Gpu("gtx480", REGLESS, {"core.sms": 2, "regless.registers": registers}, profile=True)
    one.run(gpu, gpu.load(one.ptx), one.setup("tiny", 1))
    stalls = Counter[str]()
    for run in gpu.runs:
        assert run.profile is not None
        stalls.update(run.profile.stalls)
    assert all(stalls[cause] > 0 for cause in ("capacity", "preloads", "metadata", "draining"))
    assert stalls["mechanism"] == 0
    assert (stalls["capacity"] > stalls["preloads"]) == (registers == 128)


# ---------------------------------------------------------------------------------------------------- values and cycles


def test_a_chain_of_additions() -> None:
    """An operand comes three cycles after its instruction has issued, two later than from a register file."""

    def cycles(count: int, names: list[str]) -> int:
        return Bench("add.s32 %r3, %r3, %r1;\n" * count, mechanisms=names)(block=32).cycles

    plain, staged = (cycles(20, names) - cycles(10, names) for names in ([], REGLESS))
    assert staged == plain + 2 * 10


def test_a_region_is_active_from_its_first_chance_to_issue_to_its_last_issue() -> None:
    """One warp, whose additions wait for each other: ten more take as many cycles of regions as of all."""

    def cycles(count: int) -> tuple[int, float, float]:
        run = Bench("add.s32 %r3, %r3, %r1;\n" * count, mechanisms=REGLESS)(block=32)
        regions = run.stats["regless.regions"]
        return run.cycles, regions, run.stats["regless.region_core_cycles"] * regions

    (few, regions, active), (many, as_many, longer) = cycles(10), cycles(20)
    assert regions == as_many and longer - active == pytest.approx(many - few)
    assert 0 < active < few


def test_a_chain_of_regions() -> None:
    """From region to region, a warp alone takes 9 cycles more than an addition and a branch do."""

    def cycles(count: int, names: list[str]) -> int:
        body = "".join(f"X{k}: add.s32 %r3, %r3, %r1;\n@%p1 bra X{k};\n" for k in range(count))
        return Bench(body, mechanisms=names)(block=32).cycles

    plain, staged = (cycles(40, names) - cycles(20, names) for names in ([], REGLESS))
    assert staged == plain + 9 * 20


@pytest.mark.parametrize("latency", [11, 15])
def test_a_region_is_held_until_its_last_write(latency: int) -> None:
    """The addition's result is written two cycles later than in a register file, when the branch has long issued."""

    def cycles(count: int) -> tuple[float, float]:
        body = "".join(f"X{k}: add.s32 %r3, %r3, %r1;\n@%p1 bra X{k};\n" for k in range(count))
        stats = Bench(body, {"pipelines.integer.latency": latency}, mechanisms=REGLESS)(block=32).stats
        regions = stats["regless.regions"]
        return stats["regless.region_core_cycles"] * regions, stats["regless.region_held_core_cycles"] * regions

    (active, held), (longer, as_well) = cycles(20), cycles(40)
    assert longer - active == pytest.approx(20 * 2)
    assert as_well - held == pytest.approx(20 * (1 + latency + 2))


# --------------------------------------------------------------------------------------------------------------- faults

Words = list[int]


def is_right(kernel_name: str, change: Callable[[Words], Words] = list) -> bool:
    """Whether a kernel's result is right when the metadata words of each region have been changed."""
    kernel = kernels.find(kernel_name)
    data = kernel.setup("tiny", 1)
    gpu = Gpu("gtx480", REGLESS, {"core.sms": 1})
    module = gpu.load(kernel.ptx)
    for each in module.program.kernels.values():
        words = each.tables["regions.words"]
        starts = [int(first) for first in each.tables["regions.first"] if first >= 0]
        for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
            changed = change([int(word) for word in words[start:end]])
            assert len(changed) == end - start
            words[start:end] = changed
    try:
        return bool(kernels.check(kernel, kernel.run(gpu, module, data), data).passed)
    except KernelFault:
        return False


def without_a_preload(words: Words) -> Words:
    """The region's first preload is missed."""
    for k, word in enumerate(words):
        kind = word >> spec.KIND_SHIFT & 3
        first, count = {
            spec.Kind.HEADER: (spec.HEADER_ENTRIES_SHIFT, spec.HEADER_ENTRIES),
            spec.Kind.ENTRIES: (0, spec.ENTRIES),
            spec.Kind.SINGLE: (spec.SINGLE_ENTRIES_SHIFT, spec.SINGLE_ENTRIES),
            spec.Kind.FLAGS: (0, 0),
        }[spec.Kind(kind)]
        for entry in range(first, first + count * spec.ENTRY_BITS, spec.ENTRY_BITS):
            if word >> entry + spec.REGISTER_BITS & 3 in (spec.Entry.PRELOAD, spec.Entry.PRELOAD_LAST):
                return [*words[:k], word & ~(1023 << entry), *words[k + 1 :]]
    return words


def with_early_erases(words: Words) -> Words:
    """What is evicted, since a later region needs it, is erased."""
    result = []
    for word in words:
        kind = word >> spec.KIND_SHIFT & 3
        bits = {spec.Kind.FLAGS: spec.PAYLOAD_BITS, spec.Kind.SINGLE: spec.SINGLE_USAGE_SHIFT}.get(spec.Kind(kind), 0)
        flags = word & (1 << bits) - 1
        result.append(word | (flags & 0x5555_5555_5555_5555) << 1)
    return result


@pytest.mark.parametrize("change", [without_a_preload, with_early_erases])
def test_wrong_metadata_make_a_wrong_result(change: Callable[[Words], Words]) -> None:
    assert is_right("reduction")
    assert not is_right("reduction", change)


def uncached() -> Any:
    """Kernels are compiled anew."""
    return patch("lockstep.sim.compile.ptx.program.cache.kept", lambda name, make: make())


def test_an_erasure_one_instruction_early_makes_a_wrong_result() -> None:
    """In one region of each kernel; ``test_annotations`` has the checker find the same fault."""

    def divide_wrongly(draft: Draft, bounds: Bounds) -> list[Annotated]:
        right = divide(draft, bounds)
        return next(erased_early(right), right)

    with uncached(), patch.object(pass_, "divide", divide_wrongly):
        assert not is_right("reduction")


def test_soft_definitions_taken_for_hard_make_a_wrong_result() -> None:
    """By algorithm 2 as printed, the second arm of a branch overwrites the lanes of the first."""
    with uncached(), patch.object(pass_, "liveness", as_printed.liveness):
        assert not is_right("lud")
