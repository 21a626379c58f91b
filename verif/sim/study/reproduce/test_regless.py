"""The chapter on RegLess: which runs it needs, what its tables are made of, and what it says of the thesis."""

from __future__ import annotations

import functools
import xml.etree.ElementTree as ElementTree
from functools import partial

import pytest

from lockstep.models import cache
from lockstep.sim.device import description
from lockstep.sim.device.statistics import STATISTICS
from lockstep.sim.study.page import Plot, Table, Text, markdown
from lockstep.sim.study.reproduce import Result
from lockstep.sim.study.reproduce.chapters import regless
from lockstep.sim.study.reproduce.chapters.regless import BASE, BENCHMARKS, PLAIN, REGLESS, RFH, RFV, Regions
from lockstep.verif.sim.study.reproduce.tables import Results, change, rows, says

DOCUMENT = cache.ROOT / "docs" / "reproduce" / "regless.md"
STATS = {
    "sm.active_core_cycles": 10_000.0,
    "issue.lanes": 32.0,
    "occupancy.warps": 40.0,
    "registers.reads": 6000.0,
    "registers.writes": 4000.0,
    "working_set.registers": 256.0,
    "rfv.taken": 1.0,
    "rfh.last_reads": 7500.0,
    "rfh.main_reads": 2000.0,
    "rfh.main_writes": 500.0,
    "l1.accesses": 100.0,
    "regless.regions": 1000.0,
    "regless.region_core_cycles": 50.0,
    "regless.preloads": 4000.0,
    "regless.preloads_missed": 0.5,
    "regless.preloads_from_l1": 0.25,
    "regless.preloads_from_below": 0.125,
    "regless.operands": 6000.0,
    "regless.results": 4000.0,
    "regless.evictions": 2000.0,
    "regless.uncompressed": 0.5,
    "regless.line_stores": 500.0,
    "regless.line_drops": 300.0,
    "regless.l1_requests": 4000.0,
}


@functools.cache
def configured() -> dict[str, Result]:
    """The jobs' configurations, by name."""
    found = {}
    for name, job in regless.jobs(False).items():
        gpu = description.load(job.gpu, job.settings, job.mechanisms)
        found[name] = {"configuration": description.values(gpu), "mechanisms": gpu.mechanisms}
    return found


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Results:
    """Runs of 1,000 cycles; regions are alike in all kernels."""
    monkeypatch.setattr(regless, "regions", lambda kernel, functions: Regions(6.0, 3.0, 5.0, 2.0, 20, 4.0, 0.5, 9, 0))
    monkeypatch.setattr(regless, "state_bits", lambda registers: 1024 * (registers + 100))
    return {
        name: {
            "cycles": 1000, "warp_instructions": 8000, "stats": dict.fromkeys(STATISTICS, 0.0) | STATS,
            "functions": [{"name": "k"}], **each,
        }
        for name, each in configured().items()
    }  # fmt: skip


table = partial(rows, regless.CHAPTER)
holds = partial(says, regless.CHAPTER)


def test_regions_are_those_of_the_functions_that_ran() -> None:
    both = regless.regions("srad_v2", frozenset(["srad_cuda_1", "srad_cuda_2"]))
    one = regless.regions("srad_v2", frozenset(["srad_cuda_1"]))
    assert one.instructions != both.instructions and one.most <= both.most
    nn = regless.regions("nearest-neighbour", frozenset(["euclid"]))
    assert nn == pytest.approx((20 / 4, 4 / 4, 11 / 4, 1.7854, 5, 4 / 4, 0, 4, 0), abs=1e-4)
    assert regless.regions("lavaMD", frozenset(["kernel_gpu_cuda"])).halves == pytest.approx(0.6338, abs=1e-4)


def test_what_is_used_and_what_is_accessed(results: Results) -> None:
    change(results, f"bfs, {RFH}", working_set__registers=512)
    assert table(results, "needs")["bfs"] == pytest.approx((0.125, 0.25, 100, 25, 40, 0.4))


def test_regions_beside_table_4_2(results: Results) -> None:
    assert table(results, "regions")["lud"] == (6.0, 16.0, 3.0, 5.0, 2.0, 20)
    assert table(results, "executed")["lud"] == (8.0, 4.0, 50.0, 816)


def test_run_times_are_relative(results: Results) -> None:
    for what, cycles in ((REGLESS, 500), (RFV, 1100), (RFH, 1250)):
        change(results, f"bfs, {what}", cycles)
    time = table(results, "time")
    assert time["bfs"] == (0.5, 1.1, 1.25)
    assert time["geometric mean"][0] == pytest.approx(0.5 ** (1 / 21))


def test_what_run_time_goes_with(results: Results) -> None:
    """Forty warps need four registers each, and five of them are active."""
    assert table(results, "pressure")["dwt2d"] == (1.0, None, 40, 5, 160, 0.5, 0.4)


def test_sources_of_preloads_add_up(results: Results) -> None:
    """Of 4000 lines, 1000 and 500 are stored, and 300 dropped."""
    row = table(results, "preloads")["bfs"]
    assert row == pytest.approx((0.5, 0.125, 0.25, 0.125, 0.4, 0.22, 0.15))


def test_energies_are_relative(results: Results) -> None:
    """A bank of the file has 8192 bytes, one of a staging unit 2048; half of that for RFV's."""
    access = regless.energy.load(regless.PROCESS).access
    registers = table(results, "energy")["bfs"][:3]
    per_access = access(1024, 16384)
    assert registers[0] == pytest.approx(12_000 * access(1024, 2048) / (10_000 * per_access))
    assert registers[1] == pytest.approx(access(1024, 8192) / per_access)
    assert registers[2] < 1
    *_, nothing = table(results, "energy")["bfs"]
    run = regless._run(results[f"bfs, {BASE}"])
    assert nothing == pytest.approx(1 - run.registers / run.energy)


def test_what_is_not_counted_is_named(results: Results) -> None:
    text = " ".join(block.text for block in regless.page(results).blocks if isinstance(block, Text))
    assert "`regless.evictions`, `regless.preloads`, `sm.active_core_cycles`. *No file*" in text


def test_capacities_are_means(results: Results) -> None:
    for name in regless.STUDIED:
        change(results, f"{name}, 128", 1500)
        change(results, f"{name}, {PLAIN}", 1200)
        change(results, f"{name}, {regless.NEAR_L1}", 1200)
        change(results, f"{name}, {BASE}, {regless.NEAR_L1}", 800)
    change(results, "nw, 128", 3000)
    rows = table(results, "capacities")
    assert rows["128"][:2] == pytest.approx((1 / 16, 228 / 2048))
    assert rows["128"][4] == pytest.approx(1.5 * 2 ** (1 / len(regless.STUDIED)))
    assert rows["128"][3] == pytest.approx(rows["128"][2] / rows["128"][4])
    assert rows["128"][6:] == (3.0, "nw")
    assert rows["512, without compressor"][:2] == (None, None)
    assert rows["512, without compressor"][4] == pytest.approx(1.2)
    assert rows["512, L1 hits after 8 cycles"][4] == pytest.approx(1.5)
    assert rows["512"][4] == 1.0 and rows["512"][2] > rows["128"][2]


def test_choices_are_beside_what_they_change(results: Results) -> None:
    both = regless.BOTH
    for name in regless.STUDIED:
        change(results, f"{name}, 2048", 1200)
        change(results, f"{name}, {both}", 900)
        change(results, f"{name}, {BASE}, {both}", 800)
    change(results, f"bfs, {both}", 800)
    found = table(results, "choices")
    assert found["as it is, 2048"][:3] == pytest.approx((2048, 1.2, 1.0))
    time = 1.125 ** (1 - 1 / len(regless.STUDIED))
    assert found[both][:4] == pytest.approx((2048, time, time / 1.2, 1.0)) and found[both][4] == "bfs"
    assert found[regless.TOP][:3] == (512, 1.0, 1.0)


def test_choices_change_what_they_say() -> None:
    jobs = regless.jobs(False)
    own, base = jobs[f"nw, {regless.BOTH}"].settings, jobs[f"nw, {BASE}, {regless.BOTH}"].settings
    assert base == {"instruction_cache.mode": "perfect"}
    gpu = description.values(description.load(regless.GPU))
    assert {gpu[name] - value for name, value in own.items() if name.endswith(".latency")} == {2}
    assert "pipelines.control.latency" not in own and "pipelines.integer.latency" in own
    assert f"nw, {BASE}, {regless.SOONER}" not in jobs
    assert jobs[f"nw, {regless.TOP}"].settings == {"regless.registers": 512, "regless.patience": 0}


def test_bounds_of_regions_have_a_row_while_they_cut_nothing(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in regless.STUDIED:
        change(results, f"{name}, {REGLESS}", 1100)
    assert table(results, "choices")[regless.UNBOUND][:3] == pytest.approx((512, 1.1, 1.0))
    assert "Of the 189 regions of all benchmarks, none would be longer" in markdown(regless.page(results), "regless")
    cut = Regions(6.0, 3.0, 5.0, 2.0, 20, 4.0, 0.5, 9, 1)
    monkeypatch.setattr(regless, "regions", lambda kernel, functions: cut)
    assert regless.UNBOUND not in table(results, "choices")


@pytest.mark.exhaustive
@pytest.mark.long
def test_state_is_that_of_all_schedulers_blocks() -> None:
    """The lines of the staging units alone have 128 registers."""
    assert 128 * 1024 < regless.state_bits(128) < 2.5 * 128 * 1024


def test_a_quick_look_has_no_statements(results: Results) -> None:
    page = regless.page({name: results[name] for name in regless.jobs(True)})
    keys = {block.key for block in page.blocks if isinstance(block, Table)}
    assert not keys & {"statements", "capacities"} and "energy" in keys


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("more than 5 %", {f"{name}, {REGLESS}": 1100 for name in ("gaussian", "heartwall", "hybridsort")}),
        ("kmeans, leukocyte", {f"{name}, {REGLESS}": 900 for name in ("kmeans", "leukocyte", "nn")}),
        ("without its compressor", {f"{name}, {PLAIN}": 1100 for name in regless.STUDIED}),
        ("slower than RegLess", {f"{name}, {what}": 1100 for name in BENCHMARKS for what in (RFV, RFH)}),
        ("RFV slows", {f"{name}, {RFV}": 1100 for name in ("dwt2d", "hotspot")}),
        ("larger ones than 512", {f"{name}, 2048": 980 for name in regless.STUDIED}),
        ("smallest staging units", {f"{name}, 128": 1100 for name in regless.STUDIED}),
    ],
)
def test_statements_come_to_be_by_time(results: Results, statement: str, changes: dict[str, int]) -> None:
    assert not holds(results, statement)
    for run, cycles in changes.items():
        change(results, run, cycles)
    assert holds(results, statement)


@pytest.mark.parametrize(
    ("statement", "names", "what", "stats"),
    [
        ("most benchmarks use", list(BENCHMARKS)[:11], BASE, {"working_set__registers": 204}),
        ("a two-level scheduler", ["bfs"], RFH, {"working_set__registers": 200}),
        ("in hotspot", ["hotspot"], REGLESS, {"regless__l1_requests": 2000}),
        ("bfs and nw misses", ["bfs", "nw"], REGLESS, {
            "regless__preloads_missed": 0, "regless__preloads_from_l1": 0, "regless__preloads_from_below": 0}),
        ("0.9 %", BENCHMARKS, REGLESS, {"regless__preloads_from_l1": 0.01}),
        ("0.013 %", BENCHMARKS, REGLESS, {"regless__preloads_from_below": 0.0001}),
        ("fewer than 0.02", BENCHMARKS, REGLESS, {"regless__l1_requests": 100}),
        ("store more", ["hybridsort", "srad_v2"], REGLESS, {"regless__l1_requests": 2500}),
    ],
)  # fmt: skip
def test_statements_come_to_be(
    results: Results, statement: str, names: list[str], what: str, stats: dict[str, float]
) -> None:
    assert not holds(results, statement)
    for name in names:
        change(results, f"{name}, {what}", 1000, **stats)
    assert holds(results, statement)


@pytest.mark.parametrize(
    ("statement", "run", "cycles"),
    [
        ("as fast as the baseline", REGLESS, 1030),
        ("nothing changes for", REGLESS, 1030),
    ],
)
def test_statements_cease_to_be(results: Results, statement: str, run: str, cycles: int) -> None:
    assert holds(results, statement)
    for name in BENCHMARKS:
        change(results, f"{name}, {run}", cycles)
    assert not holds(results, statement)


def test_what_is_said_of_energy(results: Results) -> None:
    saves = "saves three quarters", "saves more of all"
    assert not holds(results, saves[0]) and not holds(results, saves[1])
    for name in BENCHMARKS:
        change(results, f"{name}, {REGLESS}", regless__operands=3000, regless__results=3000, regless__evictions=1000)
        change(results, f"{name}, {RFH}", rfh__main_reads=5000)
    assert holds(results, saves[0]) and holds(results, saves[1])


def test_what_is_said_of_regions(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    regions = "largest regions", "20 live registers", "more live registers than"
    assert [holds(results, statement) for statement in regions] == [False, True, True]
    few = Regions(4.0, 5.0, 5.0, 2.0, 19, 4.0, 0.5, 9, 0)
    many = Regions(9.0, 3.0, 5.0, 2.0, 20, 4.0, 0.5, 9, 0)
    monkeypatch.setattr(regless, "regions", lambda kernel, functions: many if kernel in ("dwt2d", "lud", "nw") else few)
    assert [holds(results, statement) for statement in regions] == [True, False, False]


def test_reasons_have_figures(results: Results) -> None:
    change(results, f"bfs, {REGLESS}", occupancy__warps=200, regless__preloads_missed=0.9)
    change(results, "nw, 2048", 2000)
    text = markdown(regless.page(results), "regless")
    assert "in 1 of the benchmarks, resident warps need more than 512" in text
    assert "There, 90% of the preloads miss in the staging units, and in the others 50.0%" in text
    assert "Of the registers that instructions name, 50% are halves" in text
    assert "takes 82 cycles to hit, has a part in it: with 8 cycles it is 1.000" in text
    assert f"take {2 ** (1 / len(regless.STUDIED)):.3f} of the baseline's time" in text


def test_the_page_can_be_written(results: Results) -> None:
    page = regless.page(results)
    assert page.title in markdown(page, "regless")
    plots = [block for block in page.blocks if isinstance(block, Plot)]
    assert len(plots) == 5
    for plot in plots:
        ElementTree.fromstring(plot.svg)


def test_the_document_has_the_page_s_tables(results: Results) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for block in regless.page(results).blocks:
        if isinstance(block, Table):
            assert block.title in text
            assert all(f"| {row[0]} |" in text for row in block.rows)
