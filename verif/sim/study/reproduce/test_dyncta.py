"""The chapter on DYNCTA: which runs it needs, what its tables are made of, and what it says of the paper."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from functools import partial
from typing import Any

import pytest

from lockstep.models import cache
from lockstep.models.occupancy import plan
from lockstep.sim.device.run import Run
from lockstep.sim.study.job import Job, execute
from lockstep.sim.study.page import Plot, Table, markdown
from lockstep.sim.study.reproduce.chapters import dyncta
from lockstep.sim.study.reproduce.chapters.dyncta.runs import (
    APPLICATIONS,
    BASE,
    DYNCORE,
    DYNCTA,
    GPU,
    NARROW,
    SIZE,
    SLOWER,
    TWO_LEVEL,
    C,
    M,
)
from lockstep.verif.sim.study.reproduce.tables import Results, change, rows, says

DOCUMENT = cache.ROOT / "docs" / "reproduce" / "dyncta.md"
STATS = {
    "issue.ract": 0.5,
    "sm.active_core_cycles": 27_000.0,
    "l1.lat_rt_core_cycles": 600.0,
    "l1.miss_rate": 0.4,
    "issue.c_mem_core_cycles": 2700.0,
    "issue.c_mem_blocked_core_cycles": 5400.0,
    "issue.c_idle_core_cycles": 1350.0,
    "sm.asleep_core_cycles": 0.0,
    "dyncta.mean_limit": 2.0,
    "sm.ctas": 480.0,
    "issue.stall_alu_core_cycles": 10.0,
    "issue.stall_sfu_core_cycles": 0.0,
    "issue.stall_dp_core_cycles": 0.0,
    "issue.stall_lsu_core_cycles": 20.0,
    "dram.bandwidth_used": 0.25,
    "dram.row_hit_rate": 0.5,
    "dram.read_bytes": 96 * 1024.0,
    "dram.written_bytes": 32 * 1024.0,
}

LIMITED = [name for name in APPLICATIONS if f"{name}, 1" in dyncta.jobs(False)]


@pytest.fixture
def results() -> Results:
    """Runs of 1,000 cycles on 30 cores, which issue in half of them."""
    timeline = [{"core_cycle": [500, 1000], "dyncta.limit": [2.0, 3.0]}] * 2
    configuration = {"core.sms": 30, "dyncta.window": 100}
    one: dict[str, Any] = {"cycles": 1000, "warp_instructions": 6400, "launches": 2}
    one |= {"configuration": configuration, "timeline": timeline}
    return {name: {**one, "stats": dict(STATS)} for name in dyncta.jobs(False)}


table = partial(rows, dyncta.CHAPTER)
holds = partial(says, dyncta.CHAPTER)


def test_as_many_ctas_fit_as_the_chapter_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """N: the most of an application's launches."""
    most = 0

    def noted(*args: Any) -> Any:
        nonlocal most
        fit = plan(*args)
        most = max(most, fit.ctas)
        return fit

    monkeypatch.setattr("lockstep.models.session.plan", noted)
    for name in ("BFS", "SAD", "KM", "NQU", "JPEG", "RAY", "SD1", "HOT", "MM", "CP"):
        most = 0
        execute(Job(APPLICATIONS[name].kernel, GPU, "tiny"))
        assert most == APPLICATIONS[name].most, name


@pytest.mark.parametrize("name", ["MM", "NW"])
def test_no_launch_brings_more_ctas_to_a_core_than_the_chapter_says(name: str) -> None:
    """So a limit of as many changes nothing."""
    launches: list[Run] = []
    application, fewest = APPLICATIONS[name], APPLICATIONS[name].brought
    assert fewest is not None
    ran = [
        execute(Job(application.kernel, GPU, SIZE, settings=settings), attach=attach)["cycles"]
        for settings, attach in (
            ({}, lambda gpu: gpu.after_launch.append(launches.append)),
            ({"core.ctas": fewest}, None),
        )
    ]
    assert max(math.ceil(math.prod(launch.grid) / 30) for launch in launches) == fewest
    assert ran[0] == ran[1]


def test_limits_below_the_most_are_run() -> None:
    jobs = dyncta.jobs(False)
    assert [name for name in jobs if name.startswith("SPMV, ")][1:5] == [f"SPMV, {n}" for n in (1, 2, 3, 4)]
    assert jobs["JPEG, 7"].settings == {"core.ctas": 7} and "PVC, 7" not in jobs and "NQU, 2" not in jobs
    assert jobs["CP, 7, full"].settings == {"core.ctas": 7} and jobs["CP, 7, full"].size == "full"
    assert "WP, 2" in jobs and "WP, 4" not in jobs and "LIB, 1" not in jobs  # no more are brought to a core


def test_the_best_limit(results: Results) -> None:
    change(results, "BFS, 2", 500)
    change(results, "BFS, 1", 800)
    static = table(results, "static")
    assert static["BFS"] == ("bfs", 4, None, 1.25, 2.0, 1.0, None, None, 2.0, 2, None)
    assert static["PVC"][-3:] == (1.0, 8, 3.5)
    assert static["MUM"] == ("MUM", 4, 1, *5 * [None], 1.0, 4, None)


def test_classes(results: Results) -> None:
    change(results, f"CP, {BASE}", issue__ract=0.67)
    change(results, f"NW, {BASE}", sm__active_core_cycles=23_000)
    classes = table(results, "classes")
    assert classes["PVC"] == pytest.approx((0.5, 0.1, 0.3, 0.2, 0.05, 0.4, "Type-M", "Type-M"))
    assert (classes["CP"][-2], classes["NW"][-2], classes["HOT"][-2]) == ("Type-C", "Type-X", "Type-M")


def test_why_classes_differ(results: Results) -> None:
    """By what is most of the cycles without an issue; a core holds eight CTAs of PFN, four of AES, and two of STO."""
    for name in ("BP", "STO", "LKC", "NN"):
        change(results, f"{name}, {BASE}", issue__c_mem_core_cycles=0, issue__c_mem_blocked_core_cycles=0)
    change(results, f"BP, {BASE}", issue__ract=0.7)
    change(results, f"PFN, {BASE}", sm__active_core_cycles=21_000, issue__ract=0.35, sm__ctas=240)
    change(results, f"STO, {BASE}", sm__active_core_cycles=18_000, issue__ract=0.5)
    change(results, f"NQU, {BASE}", issue__ract=0.1)
    for name in ("CP", "MM", "RAY"):
        change(results, f"{name}, {BASE}", issue__ract=0.7)
    change(results, f"LKC, {BASE}", issue__ract=0.55)
    change(results, f"NN, {BASE}", issue__ract=0.5, issue__c_idle_core_cycles=10_500)
    different = table(results, "different")
    assert "CP" not in different and "PVC" not in different
    assert different["BP"][-1] == "busy: DRAM is used for 25%, with 50 warp instructions per KiB"
    half = "empty: a launch has 0.50 of a wave; without empty cores Type-M"
    assert different["PFN"][-1] == f"{half}: memory, 27%, 67% of it with the load/store unit blocked"
    assert different["STO"][-1] == "empty: a launch has 4.0 waves, which end unevenly; without empty cores Type-C"
    assert different["NQU"][-1] == "cores are empty for 10% only: a launch has 4.0 waves"
    assert different["HOT"][-1] == "memory, 27%, 67% of it with the load/store unit blocked"
    assert different["LKC"][-1] == "pipelines, 30%, most of it the load/store unit"
    assert different["NN"][-1] == "latency, 35%"
    for _, _, *shares, _, _, _, _ in different.values():
        assert sum(shares) == pytest.approx(1)


def test_speed_ups(results: Results) -> None:
    for what, cycles in ((DYNCTA, 500), (TWO_LEVEL, 2000), (NARROW, 800)):
        change(results, f"PVC, {what}", cycles)
    speeds = table(results, "dyncta")
    assert speeds["PVC"] == (0.5, 1.25, 2.0, 3.6, 1.0, 3.5)
    assert speeds["mean"] == pytest.approx(((30 + 0.5) / 31, (30 + 1.25) / 31, (30 + 2) / 31, 1.28, 1.0, 1.39))
    assert speeds["geometric mean"][2:4] == pytest.approx((2 ** (1 / 31), 1.18))


def test_what_holds_it_back(results: Results) -> None:
    """Ten windows of 30 cores in two launches; the limit rises after a tenth of them, and falls after a fifth."""
    change(results, "KM, 2", 500, l1__lat_rt_core_cycles=300)
    change(results, f"KM, {DYNCTA}", dyncta__raised=30, dyncta__lowered=60, dyncta__paused_core_cycles=13_500)
    assert table(results, "apart") == {"KM": (2.0, 2, 1.0, 2.0, 5.0, 0.1, 0.2, 0.5, 300, 600)}


def test_power_is_of_cores_that_are_on_and_that_issue(results: Results) -> None:
    """A core that is on draws half; with a third of them off and the same work, (2/3 + 1/2) / (1 + 1/2)."""
    change(results, f"PVC, {DYNCORE}", sm__asleep_core_cycles=10_000)
    power = table(results, "power")["PVC"]
    assert power == pytest.approx((1, 1, 0, 1 / 3, 1, 7 / 9, 1, 1, 9 / 7, 1))
    change(results, f"PVC, {DYNCORE}", 500, sm__asleep_core_cycles=5000, issue__ract=1.0)
    power = table(results, "power")["PVC"]
    assert power[3:] == pytest.approx((1 / 3, 1, (2 / 3 + 1) / 1.5, 2 / 1.5, 1, 2 * 1.5 / (2 / 3 + 1), 2 * 1.5 / 2))


def test_cores_that_are_told_to_take_no_ctas_are_not_yet_asleep(results: Results) -> None:
    """An eighth of the cores for half of one launch, of two; with all asleep at once, power falls by as much."""
    for name in APPLICATIONS:
        launch = results[f"{name}, {DYNCORE}"]["timeline"][0]
        results[f"{name}, {DYNCORE}"]["timeline"] = [launch | {"dyncore.drained": [0.0, 0.125]}, launch]
        change(results, f"{name}, {DYNCORE}", 2000, sm__asleep_core_cycles=600)
    assert table(results, "power")["PVC"][2:4] == pytest.approx((0.125 / 4, 0.01))
    text = markdown(dyncta.page(results), "dyncta")
    assert "in 3.1% of the cycles, but asleep in 1.0%" in text and "power would be 0.979. 31 applications" in text


def test_cores_off_are_beside_all_cores(results: Results) -> None:
    change(results, f"CP, {BASE}, 16 cores off", 2000)
    change(results, f"CP, {DYNCTA}", 800)
    change(results, f"CP, {DYNCTA}, 4 cores off", 1000)
    off = table(results, "off")["CP"]
    assert off[:4] == (1.0, 1.0, 1.0, 0.5) and off[4] == pytest.approx(0.8)


def test_variations_are_beside_the_same_memory(results: Results) -> None:
    change(results, f"CP, {DYNCTA}, windows of 4096 cycles", 2000)
    change(results, f"CP, {DYNCTA}, 16 MSHRs", 2000)
    change(results, f"CP, {BASE}, 16 MSHRs", 2000)
    varied = table(results, "varied")
    assert varied["windows of 4096 cycles"][0] == pytest.approx(0.5 ** (1 / 6))
    assert varied["16 MSHRs"][:2] == (1.0, "+0.0 %")
    change(results, f"BFS, {DYNCTA}, windows of 4096 cycles", 800)
    assert table(results, "varied")["windows of 4096 cycles"][3:] == ("CP", "-50.0 %", "+4.6 %")


def test_meshes_have_their_own_baselines(results: Results) -> None:
    change(results, f"CP, {BASE}, dyncta56", 2000)
    change(results, f"CP, {DYNCORE}, dyncta110", sm__asleep_core_cycles=15_000)
    change(results, "CP, baseline, dyncta110", sm__ctas=120)
    change(results, f"BFS, {DYNCORE}, dyncta110", 500)
    assert table(results, "meshes")["CP"] == pytest.approx((1.0, 1.0, 2.0, 1.0, 0.5, 1.0, 1.0, 2 / 3, 0.5, 0.25))
    text = markdown(dyncta.page(results), "dyncta")
    assert "without PVC, ours are 1.000 on 30 cores, and 1.167 and 1.167" in text and "1 of 7 bring fewer" in text


def test_what_takes_the_gain_of_the_best_limit_away(results: Results) -> None:
    change(results, "FFT, 1", 500, dram__row_hit_rate=0.75, l1__lat_rt_core_cycles=300)
    change(results, f"FFT, {BASE}, 16 banks of DRAM", 800, l1__miss_rate=0.3)
    change(results, "FFT, 2, 16 banks of DRAM", 640)
    pairs = (600, 300, 0.4, 0.4, 0.5, 0.75, 0.25, 0.25)
    for n in (1, 2):
        change(results, f"BLK, {n}, 16 banks of DRAM", 2000)
    eased = table(results, "eased")
    assert eased["FFT"] == (2.0, 1, *pairs, "16 banks of DRAM", 1.25, 0.3, 0.5, 1.25)
    assert eased["BLK"][-1] == 1  # no limit is the best


def test_limits_of_figure_4(results: Results) -> None:
    change(results, "MM, 1, steady", 2000, l1__lat_rt_core_cycles=300)
    change(results, f"JPEG, 2, {SLOWER}", 500)
    sweeps = table(results, "sweeps")
    assert sweeps["MM, IPC"] == ("steady", 1.6, 0.5, 1, 1, 1, 1, None, None, None)
    assert sweeps["MM, lat_rt"][2:4] == (0.5, 1) and sweeps["CP, C_mem"][2:] == pytest.approx([0.3] * 8)
    assert sweeps[f"JPEG, IPC, {SLOWER}"] == (SIZE, None, 1, 2, 1, 1, None, 1, None, 1)


def test_where_dyncta_loses_it_may_start_at_the_most(results: Results) -> None:
    change(results, f"RAY, {DYNCTA}", 1250, l1__lat_rt_core_cycles=500)
    change(results, f"RAY, {DYNCTA}, from the most", 800, sm__active_core_cycles=12_000)
    change(results, f"AES, {DYNCTA}", 1250)
    change(results, f"AES, {DYNCTA}, from the most", 1200)
    assert table(results, "starts")["RAY"] == pytest.approx((6.25, 0.8, 1.25, 0.1, 0.28, 0.5, 600, 500, 600))
    text = markdown(dyncta.page(results), "dyncta")
    assert "RAY lose less than half of that" in text and "SPMV, AES, FFT and SD1 lose otherwise" in text


def test_reasons_have_figures(results: Results) -> None:
    change(results, f"SAD, {BASE}", l1__miss_rate=0.012)
    change(results, "KM, 1", l1__lat_rt_core_cycles=2345)
    change(results, f"STO, {BASE}", sm__active_core_cycles=18_000)
    text = markdown(dyncta.page(results), "dyncta")
    assert "loads 1.2% miss" in text and "600 cycles, and 2,345 with one CTA" in text
    assert "Of 1 applications" in text and "alone, 1 have" in text
    change(results, f"BFS, {DYNCTA}", 500)
    change(results, f"PVC, {DYNCTA}", 100)
    text = markdown(dyncta.page(results), "dyncta")
    assert f"hang on PVC and IIX: without them, DYNCTA gains {2 ** (1 / 29) - 1:.1%}" in text


def test_a_quick_look_has_no_statements(results: Results) -> None:
    page = dyncta.page({name: results[name] for name in dyncta.jobs(True)})
    keys = {block.key for block in page.blocks if isinstance(block, Table)}
    assert not keys & {"statements", "off", "varied", "meshes", "eased", "sweeps", "starts"} and "power" in keys


def of_all(what: str, cycles: int) -> dict[str, int]:
    return {f"{name}, {what}": cycles for name in APPLICATIONS}


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("about half", {f"{name}, 1": 900 for name in LIMITED[:13]}),
        ("pays most in IIX", {"IIX, 1": 300, "PVC, 2": 400, "BFS, 1": 500}),
        ("limit gains 39 %", {f"{name}, 1": 500 for name in LIMITED[:10]}),
        ("most in PVC", {f"{name}, {DYNCTA}": 500 for name in ("PVC", "IIX", "SAD", "KM")}),
        ("on average, and most", {f"PVC, {DYNCTA}": 500}),
        ("it gains 28 %", of_all(DYNCTA, 820)),
        ("faster than two-level", of_all(DYNCTA, 900)),
        ("four applications", {f"{name}, {DYNCTA}": 1030 for name in ("NW", "BLK", "PFF", "SCP")}),
        ("AES is the fastest", {"AES, 1": 900}),
        ("JPEG gains", {"JPEG, 3": 900}),
        ("MM gains", {"MM, 1, steady": 2000}),
        ("CP is the fastest", {"CP, 3, full": 900}),
        ("DYNCORE is faster", {f"PVC, {DYNCORE}": 900, f"PVC, {DYNCTA}": 500}),
        ("it gains 21 %", {f"{name}, {DYNCORE}": 500 for name in list(APPLICATIONS)[:6]}),
        ("Type-C applications lose", {f"{name}, baseline, 16 cores off": 1800 for name in ("BLK", "HOT", "CP")}),
    ],
)
def test_statements_come_to_be(results: Results, statement: str, changes: dict[str, int]) -> None:
    assert not holds(results, statement)
    for run, cycles in changes.items():
        change(results, run, cycles)
    assert holds(results, statement)


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("Type-X applications gain nothing", {f"NW, {DYNCTA}": 900}),
        ("the more cores", {f"CP, {DYNCORE}, 12 off": 900}),
    ],
)
def test_statements_cease_to_be(results: Results, statement: str, changes: dict[str, int]) -> None:
    if statement == "the more cores":
        for off, cycles in ((4, 1010), (12, 1030), (16, 1040)):
            change(results, f"CP, {DYNCORE}, {off} off", cycles, sm__asleep_core_cycles=off * cycles)
        change(results, f"CP, {DYNCORE}", 1020, sm__asleep_core_cycles=8 * 1020)
    assert holds(results, statement)
    for run, cycles in changes.items():
        change(results, run, cycles)
    assert not holds(results, statement)


def test_effects_are_alike_within_a_quarter(results: Results) -> None:
    """A gain of 28 and 18 %: 21 % of both are enough, 20 % are not; 22.6 % are too much for the second."""
    for cycles, so in ((833, False), (823, True), (817, True), (813, False)):
        for name in APPLICATIONS:
            change(results, f"{name}, {DYNCTA}", cycles)
        assert holds(results, "it gains 28 %") == so


def test_near_the_best_limit_is_three_quarters_of_the_papers_share(results: Results) -> None:
    """Of a gain of 25 % in all applications that have limits, DYNCTA has 0.72 in the paper: 0.54 are enough."""
    for gain, so in ((1.12, False), (1.14, True), (1.25, True)):
        for name in APPLICATIONS:
            change(results, f"{name}, {DYNCTA}", round(1000 / gain) if name in LIMITED else 1000)
            if name in LIMITED:
                change(results, f"{name}, 1", 800)
        assert holds(results, "comes near the best static limit") == so


def test_the_mean_limit_is_near_the_best(results: Results) -> None:
    """Here the best is N, 5.52 on average, if none pays."""
    assert not holds(results, "so does the mean limit")
    for name, application in APPLICATIONS.items():
        change(results, f"{name}, {DYNCTA}", dyncta__mean_limit=application.most - 1)
    assert holds(results, "so does the mean limit")


def test_at_least_as_good_counts_where_a_limit_can_be_chosen(results: Results) -> None:
    assert not holds(results, "at least as good")  # in all, which is more than the paper's ten
    for name in LIMITED[10:]:
        change(results, f"{name}, 1", 900)
    assert holds(results, "at least as good")
    change(results, f"{LIMITED[0]}, 1", 900)
    change(results, f"{LIMITED[1]}, 1", 900)
    change(results, f"{LIMITED[2]}, 1", 900)
    assert not holds(results, "at least as good")


def test_round_trips_and_misses_fall_as_in_the_paper(results: Results) -> None:
    """Round trips by 18 %, misses by 7 points, both on average."""
    for latency, misses, so in ((540, 0.36, False), (500, 0.34, True), (400, 0.2, False)):
        for name in APPLICATIONS:
            change(results, f"{name}, {DYNCTA}", l1__lat_rt_core_cycles=latency, l1__miss_rate=misses)
        assert holds(results, "lat_rt falls") == so
        assert holds(results, "L1 misses fall") == (0.05 < 0.4 - misses < 0.09)


def test_larger_meshes_gain_more(results: Results) -> None:
    for mesh, cycles, asleep in (("dyncta56", 950, 1000), ("dyncta110", 900, 2000)):
        assert not holds(results, "on 110 cores than on 56")
        for name in ("BFS", "SCP", "AES", "BLK", "HOT", "CP", "PVC"):
            change(results, f"{name}, {DYNCORE}, {mesh}", cycles, sm__asleep_core_cycles=asleep)
    assert holds(results, "on 110 cores than on 56")


def test_the_classes_of_the_paper(results: Results) -> None:
    assert not holds(results, "classes of table 2")
    for name, application in APPLICATIONS.items():
        act = 0.7 if application.kind == C else 0.5
        change(results, f"{name}, {BASE}", issue__ract=act, sm__active_core_cycles=23_000)
        if application.kind == M:
            change(results, f"{name}, {BASE}", sm__active_core_cycles=27_000)
    assert holds(results, "classes of table 2")


def test_power_and_efficiency_of_the_paper(results: Results) -> None:
    """DYNCTA issues in 53 % of the cycles instead of 50; with a sixth of the cores asleep, DYNCORE in 38 %."""
    statements = "2 % more power", "17 % less", "instructions per watt: "
    assert not any(holds(results, statement) for statement in statements)
    for name in APPLICATIONS:
        change(results, f"{name}, {DYNCTA}", 780, issue__ract=0.53)
        change(results, f"{name}, {DYNCORE}", 800, issue__ract=0.38, sm__asleep_core_cycles=4000)
    assert all(holds(results, statement) for statement in statements)


def test_dyncore_by_the_cores_that_it_may_turn_off(results: Results) -> None:
    change(results, f"CP, {DYNCORE}, 16 off", 2000, sm__asleep_core_cycles=20_000)
    cp = table(results, "dyncore-off")["CP"]
    assert cp == pytest.approx(
        (1, 1, 1, 1, 0.5, 1, 1, 1, 1, (2 / 3 + 0.5) / 1.5, 1, 1, 1, 1, 0.5 * 1.5 / (2 / 3 + 0.5))
    )
    assert table(results, "dyncore-off")["mean"][4] == pytest.approx(0.5 ** (1 / 7))


def test_the_page_can_be_written(results: Results) -> None:
    page = dyncta.page(results)
    assert page.title in markdown(page, "dyncta")
    plots = [block for block in page.blocks if isinstance(block, Plot)]
    assert len(plots) == 7
    for plot in plots:
        ElementTree.fromstring(plot.svg)


def test_the_document_has_the_page_s_tables(results: Results) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for block in dyncta.page(results).blocks:
        if isinstance(block, Table):
            assert block.title in text
            assert all(f"| {row[0]} |" in text for row in block.rows)
