"""WarpPool's chapter: which runs it needs, which functions its means are over, and what it says of the thesis."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from lockstep.models import cache
from lockstep.sim import kernels
from lockstep.sim.study.page import Text, markdown
from lockstep.sim.study.reproduce import run
from lockstep.sim.study.reproduce.chapters import warppool
from lockstep.sim.watch import Watch
from lockstep.verif.sim.study.reproduce.tables import Results, rows

DOCUMENT = cache.ROOT / "docs" / "reproduce" / "warppool.md"

NAMES = list(warppool.FUNCTIONS)
STATS = {
    "lsu.waiting": 0.5,
    "lsu.requests_per_instruction": 1.0,
    "l1.misses": 100.0,
    "l1.merges": 0.0,
    "l1.loads": 200.0,
    "l1.miss_rate": 0.5,
    "warppool.lines_per_request": 1.0,
    "warppool.by_warp": 0.0,
    "warppool.merged": 200.0,
    "warppool.random": 50.0,
    "warppool.single": 100.0,
    "sm.active_core_cycles": 1000.0,
    "l1.stall_queue_core_cycles": 250.0,
    "l1.stall_mshrs_core_cycles": 125.0,
    "l1.stall_ways_core_cycles": 0.0,
    "dram.row_hit_rate": 0.125,
    "banked_l1.lines_per_cycle": 1.0,
}


def result(job: warppool.Job) -> dict[str, Any]:
    """A run in which every function takes 1,000 cycles."""
    every = (*warppool.FUNCTIONS.values(), warppool.IN_REGISTERS)
    names = {each.name for each in every if each.kernel == job.kernel}
    functions = [{"name": name, "cycles": 1000, "stats": dict(STATS)} for name in sorted(names)]
    return {"cycles": 1000, "functions": functions, "stats": dict(STATS)}


@pytest.fixture
def results() -> Results:
    return {name: result(job) for name, job in warppool.jobs(False).items()}


def change(results: Results, name: str, path: str, size: str = warppool.STEADY, /, **stats: float) -> None:
    """Set statistics, or ``cycles``, of one function behind one path; ``l1__misses`` is ``l1.misses``."""
    function = warppool.FUNCTIONS[name]
    run = results[warppool._run(function.kernel, size, path)]
    (each,) = (f for f in run["functions"] if f["name"] == function.name)
    for key, value in stats.items():
        (each if key == "cycles" else each["stats"])[key.replace("__", ".")] = value


table = partial(rows, warppool.CHAPTER)


def test_everyare_those_of_their_kernels() -> None:
    for function in warppool.FUNCTIONS.values():
        assert f".entry {function.name}(" in kernels.find(function.kernel).ptx.read_text(encoding="utf-8")


def test_means_are_over_limited_everyalone(results: Results) -> None:
    limited = ("SYRK", "sc")
    for name, cycles in zip(limited, (500, 2000 / 9), strict=True):
        change(results, name, "", lsu__waiting=0.91)
        change(results, name, "WarpPool", cycles=cycles)
    change(results, "GEMM", "WarpPool", cycles=10)
    change(results, "GEMM", "", lsu__waiting=0.9)
    means = table(results, "means")
    assert means["WarpPool"][:2] == pytest.approx(((2.0 * 4.5) ** 0.5, 1.38))
    assert means["WarpPool"][2:] == pytest.approx((1.0, 1.08, 1.0, 0.77))
    assert means["MRPB"] == (1.0, None, None, None, 1.0, None)
    assert means["banked L1"] == (1.0, None, 1.0, 1.18, 1.0, None)


def test_means_of_misses_leave_out_everywithout_any(results: Results) -> None:
    for name in NAMES:
        change(results, name, "", lsu__waiting=0.95)
        change(results, name, "MRPB", l1__misses=150)
    change(results, "SYRK", "", l1__misses=0)
    assert [row[4] for row in table(results, "means").values()] == pytest.approx([1.0, 1.5, 1.0])
    assert table(results, "misses")["SYRK"][2:] == (None,) * 4


def test_loads_that_join_a_miss_are_shown_apart(results: Results) -> None:
    change(results, "SYRK", "", l1__misses=100, l1__merges=100)
    change(results, "SYRK", "WarpPool", l1__misses=100, l1__merges=0)
    assert table(results, "misses")["SYRK"][-2:] == (1.0, 0.5)


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("SYR2K has more instructions", [("SYR2K", "WarpPool", {"warppool__lines_per_request": 1.1})]),
        ("*warp ID*", [(name, "WarpPool", {"warppool__by_warp": 0.1}) for name in ("ATAX_1", "MVT_1", "BICG_2")]),
        ("CORR_3's misses", [("CORR_3", "WarpPool", {"l1__misses": 101})]),
        ("MRPB hurts", [(name, "MRPB", {"l1__misses": 101}) for name in ("SYRK", "SYR2K", "kmeans_2", "pf_1")]),
        ("MRPB has fewer", [(name, "MRPB", {"l1__misses": 99}) for name in ("spmv", "sc", "MVT_1", "BICG_2")]),
        ("17 %", [("spmv", "", {"l1__miss_rate": 0.17})]),
    ],
)
def test_statements_are_what_the_figures_say(
    results: Results, statement: str, changes: list[tuple[str, str, dict[str, float]]]
) -> None:
    def holds() -> bool:
        (found,) = (row for name, row in table(results, "statements").items() if name.startswith(statement))
        return bool(found[0])

    assert not holds()
    for name, path, stats in changes:
        change(results, name, path, **stats)
    assert holds()


def test_lines_that_need_a_thread_map_entry_are_shown_as_a_share(results: Results) -> None:
    assert table(results, "throughput")["srad_1"][1] == 0.25


def test_a_change_is_beside_a_baseline_that_has_it_unless_it_is_warp_pools_own(results: Results) -> None:
    change(results, "ATAX_1", "", cycles=4000)
    change(results, "ATAX_1", "WarpPool", cycles=2000)
    for what, baseline in ((warppool.ROBIN, 8000), (warppool.ONE, None)):
        change(results, "ATAX_1", f"WarpPool, {what}", cycles=1000)
        if baseline:
            change(results, "ATAX_1", f"baseline, {what}", cycles=baseline)
    changes = table(results, "changes")
    others = (1.0,) * (len(warppool.LOSING) - 1)
    assert changes["as it is"] == (None, 2.0, *others, 1.0, 1.0)
    assert changes[warppool.ROBIN] == ("both", 8.0, *others, 2.0, 0.5)
    assert changes[warppool.ONE] == ("WarpPool", 4.0, *others, 1.0, 0.5)
    assert list(changes) == ["as it is", *warppool.CHANGES]


def test_runs_have_their_changes() -> None:
    """A baseline has no settings of WarpPool."""
    jobs = warppool.jobs(False)
    for what, changed in warppool.CHANGES.items():
        job = jobs[warppool._run("atax", warppool.STEADY, f"WarpPool, {what}")]
        assert (job.mechanisms, job.settings) == (("warppool",), changed.settings)
        base = jobs.get(warppool._run("atax", warppool.STEADY, f"baseline, {what}"))
        assert (base is not None) == changed.shared == all(not key.startswith("warppool.") for key in changed.settings)
        assert base is None or (base.mechanisms, base.settings) == ((), changed.settings)


def test_what_the_l1_lacks_is_a_share_of_the_cycles_of_sms(results: Results) -> None:
    change(results, "spmv", "WarpPool", l1__stall_ways_core_cycles=500, l1__misses=50)
    assert table(results, "waits")["spmv"] == (0.25, 0.25, 0.125, 0.125, 0.0, 0.5, 10.0, 20.0, 0.125)


def test_spmv_is_shown_with_its_unknowns_in_two_orders(results: Results) -> None:
    change(results, "spmv", "WarpPool", warppool.SCATTERED, cycles=800, l1__misses=90, warppool__single=150)
    orders = table(results, "orders")
    assert orders["element by element"] == (1.0, 0.5, 0.5, 0.25, 0.5, 1.0, 1.0)
    assert orders["at random"] == (1.0, 0.5, 0.5, 0.25, 0.75, 0.9, 1.25)


def test_sums_in_registers_are_another_kernel(results: Results) -> None:
    """Its loops are those of ATAX_1, whose steps it has."""
    assert (kernels.find("atax").setup("steady", 1)["steps"]) == 512
    function = warppool.IN_REGISTERS
    assert function.name in kernels.find(function.kernel).ptx.read_text(encoding="utf-8")
    for path, cycles in (("", 1500), (f"WarpPool, {warppool.QUEUED}", 250)):
        (each,) = results[warppool._run(function.kernel, warppool.STEADY, path)]["functions"]
        each["cycles"] = cycles
    sums = table(results, "sums")
    assert sums["in registers"] == (1.0, 1500, 0.5, 1.0, 1.5)
    assert sums[f"in registers, {warppool.QUEUED}"] == (1.0, 1000, 0.5, 1.0, 4.0)
    assert sums["in memory"] == (1.0, 1000, 0.5, 1.0, 1.0)
    text = "\n".join(block.text for block in warppool.page(results).blocks if isinstance(block, Text))
    assert "a speed-up of 1.500, and of 4.000 with the two registers" in text


def test_the_baseline_is_shown_beside_another_program_with_that_ones_caches(results: Results) -> None:
    job = warppool.jobs(False)[warppool._run("mvt", "reference", warppool.QUEUED)]
    assert job.settings["l1.sets"] == 32 and job.settings["core.collectors_lsu"] == 4 and job.mechanisms == ()
    results[warppool._run("mvt", "reference", "")] |= {"cycles": 2 * 126_770}
    results[warppool._run("mvt", "reference", warppool.QUEUED)]["stats"]["l1.misses"] = 3 * 22_237
    text = "\n".join(block.text for block in warppool.page(results).blocks if isinstance(block, Text))
    assert "the misses of 0 of the 6 kernels" in text
    results[warppool._run("mvt", "reference", "")]["stats"]["l1.misses"] = 4 * 22_237
    text = "\n".join(block.text for block in warppool.page(results).blocks if isinstance(block, Text))
    assert "the misses of 1 of the 6 kernels" in text
    row = table(results, "witness")["mvt"]
    assert row == (22_237, 4.0, 3.0, 126_770, 2.0, pytest.approx(1000 / 126_770))


def test_row_walks_are_described_by_their_means(results: Results) -> None:
    """One of three has half the misses, and a baseline that takes seven times as long round-robin."""
    change(results, "MVT_1", "", l1__misses=50)
    change(results, "MVT_1", f"baseline, {warppool.ROBIN}", cycles=7000)
    text = "\n".join(block.text for block in warppool.page(results).blocks if isinstance(block, Text))
    assert "and 3.000 times with a scheduler" in text and "WarpPool's speed-up is 3.000" in text
    assert "one in 13 cycles on the baseline, and in 10 with WarpPool" in text


def test_transposes_are_to_the_one_through_global_memory(results: Results) -> None:
    for kernel, path, cycles in (("transpose-columns", "WarpPool", 500), ("transpose-tiled", "", 250)):
        results[warppool._run(kernel, warppool.STEADY, path)]["cycles"] = cycles
    assert table(results, "transposes")["2048 x 2048"] == (1000, 0.5, 0.25, 1.0, 1.0, 1.0)
    assert table(results, "transposes")["1024 x 1024"] == (1000, 1.0, 1.0, 1.0, 1.0, 1.0)


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_documentation_shows_what_the_model_does() -> None:
    """On the quick runs; all of them take half an hour."""
    text = markdown(warppool.page(run.run(warppool.jobs(True), Watch(), 1)), "warppool")
    rows = [line for line in text.split("\n") if line.startswith(tuple(f"| {name} |" for name in warppool.QUICK))]
    assert len(rows) == 3 * len(warppool.QUICK)
    again = "lockstep reproduce warppool; its warppool.md and plots belong to docs/reproduce/"
    assert set(rows) <= set(DOCUMENT.read_text(encoding="utf-8").split("\n")), again
