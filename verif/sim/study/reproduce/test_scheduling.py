"""The scheduling chapter: which runs it needs, what its tables are made of, and what it says of the thesis."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from lockstep.models import cache
from lockstep.sim import kernels
from lockstep.sim.device.gpu import Gpu
from lockstep.sim.study.job import Job
from lockstep.sim.study.page import Plot, Table, markdown
from lockstep.sim.study.reproduce import run
from lockstep.sim.study.reproduce.chapters import scheduling
from lockstep.sim.study.reproduce.chapters.scheduling import (
    CTAS,
    FINE,
    GREEDY,
    LATENCY,
    MSHRS,
    OLDEST,
    OVERHEAD,
    REGION,
    SIMPLE,
)
from lockstep.sim.watch import Watch

DOCUMENT = cache.ROOT / "docs" / "reproduce" / "scheduling.md"

NAMES = list(scheduling.FUNCTIONS)
SCRATCHPAD = {"dwtHaar1D": 4 * (1024 + 1024 // 16)}  # bytes that a launch asks for

Results = dict[str, dict[str, Any]]


def result(job: Job) -> dict[str, Any]:
    """A run of 1,000 cycles with 400 stalls, and of another function that takes longer."""
    (name,) = (each.name for each in scheduling.FUNCTIONS.values() if each.kernel == job.kernel)
    stats = {
        scheduling.STALL: 400.0,
        "sm.active_core_cycles": 500.0,
        "sm.ctas": 64.0,
        "sm.util": 0.75,
        "l1.lat_rt_core_cycles": 800.0,
        "l2.stall_mshrs_core_cycles": 2000.0,
    }
    functions = [
        {"name": name, "cycles": 1000, "stats": stats},
        {"name": "another", "cycles": 5000, "stats": {}},
    ]
    return {"cycles": 6000, "functions": functions, "configuration": {"core.schedulers": 2, "l2.slices": 8}}


@pytest.fixture
def results() -> Results:
    return {name: result(job) for name, job in scheduling.jobs(False).items()}


def change(
    results: Results, name: str, policy: str, cycles: int = 1000, stalls: float = 400, key: str = "", value: int = 0
) -> None:
    function = results[scheduling._run(name, policy, key, value)]["functions"][0]
    function["cycles"] = cycles
    function["stats"][scheduling.STALL] = stalls


def table(results: Results, key: str) -> Table:
    (found,) = (each for each in scheduling.page(results).blocks if isinstance(each, Table) and each.key == key)
    return found


def rows(results: Results, key: str, head: int = 1) -> dict[Any, tuple[Any, ...]]:
    """A table's rows by their first cells, or by the first ``head`` of them."""
    found = table(results, key).rows
    return {row[0] if head == 1 else tuple(row[:head]): tuple(row[head:]) for row in found}


def test_an_sm_holds_the_ctas_that_the_chapter_says() -> None:
    gpu = Gpu(scheduling.GPU)
    for name, function in scheduling.FUNCTIONS.items():
        kernel = kernels.find(function.kernel)
        module = gpu.load(kernel.ptx, kernel.registers)
        assert module.occupancy(function.name, (function.threads,), SCRATCHPAD.get(name, 0)).ctas == function.resident


def test_usual_values_are_those_of_the_description() -> None:
    gpu = Gpu(scheduling.GPU).description
    usual = {LATENCY: gpu.dram.latency, OVERHEAD: gpu.core.scheduler_overhead, MSHRS: gpu.l2.mshrs}
    assert usual == scheduling.USUAL


def test_code_for_region_p_is_for_the_warps_that_an_sm_holds() -> None:
    jobs = scheduling.jobs(False)
    assert jobs["cfd, region-p"].settings == {"core.scheduler": REGION, "core.region_warps": 12}
    more = jobs[scheduling._run("matrixMul", REGION, CTAS, 6)].settings
    assert (more["core.region_warps"], more[CTAS]) == (48, 6)
    assert "core.region_warps" not in jobs["cfd, lrr"].settings


def test_no_more_warps_than_a_mask_holds() -> None:
    assert scheduling._values("matrixMul", CTAS) == [3, 4, 6]
    assert scheduling._values("lud", CTAS) == [5, 6, 8]
    assert scheduling._values("BlackScholes", CTAS) == [7, 8, 10, 13]


def test_the_usual_values_need_no_run_of_their_own() -> None:
    for key, value in ((CTAS, 8), (LATENCY, 600), (OVERHEAD, 1)):
        assert scheduling._run("BlackScholes", OLDEST, key, value) == "BlackScholes, oldest"
        assert scheduling._run("BlackScholes", OLDEST, key, value + 1) == f"BlackScholes, oldest, {key} = {value + 1}"


def test_means_are_geometric_and_to_fine_round_robin(results: Results) -> None:
    for name in NAMES[:6]:
        change(results, name, OLDEST, cycles=250, stalls=1600)
    assert rows(results, "means")["oldest first"] == pytest.approx((0.5, 0.922, 2.0, 0.655))
    assert rows(results, "means")["region-p"] == pytest.approx((1.0, 0.884, 1.0, 0.439))


def test_means_of_a_few_kernels_stand_beside_nothing() -> None:
    few = {name: result(job) for name, job in scheduling.jobs(True).items()}
    assert rows(few, "means")["simple-p"] == (1.0, None, 1.0, None)
    assert list(rows(few, "times")) == list(scheduling.QUICK)
    keys = {block.key for block in scheduling.page(few).blocks if isinstance(block, Table)}
    assert keys == {"means", "kernels", "times", "stalls"}


def test_figures_are_of_the_kernel_function_alone(results: Results) -> None:
    change(results, "lud", GREEDY, cycles=900, stalls=100)
    assert rows(results, "times")["lud"] == (1000, 0.25, 0.9, 1.0, 1.0, 1.0)
    assert rows(results, "stalls")["lud"] == (0.4, 0.1, 0.25, 1.0, 1.0, 1.0)


def test_table_4_3_stands_beside_ours(results: Results) -> None:
    name, size, *figures = rows(results, "kernels")["BlackScholes"]
    assert (name, size) == ("BlackScholes: `BlackScholesGPU`", "small")
    assert figures == [64, 480, 4, 4, 8, 5, 89, 129, 3, 3, 1, 1]


def test_studies_are_to_fine_round_robin_without_a_change(results: Results) -> None:
    change(results, "matrixMul", REGION, stalls=200, key=CTAS, value=6)
    change(results, "cfd", REGION, stalls=6400, key=LATENCY, value=800)
    change(results, "stream", REGION, cycles=32_000, key=OVERHEAD, value=3)
    assert rows(results, "ctas", 2)["matrixMul", "region-p"] == (1.0, 1.0, 0.5, None)
    assert rows(results, "ctas", 2)["mean", "region-p"] == pytest.approx((1.0, 1.0, 0.5 ** (1 / 6), None))
    assert rows(results, "latency", 2)["cfd", "region-p"] == (1.0, 1.0, 16.0)
    mean = 32 ** (1 / len(scheduling.STUDIED[OVERHEAD]))
    assert rows(results, "overhead")["mean"] == pytest.approx((1.0, 1.0, 1.0, 1.0, 1.0, mean))


def test_more_mshrs_are_to_fine_round_robin_with_as_many(results: Results) -> None:
    change(results, "stream", FINE, cycles=500, stalls=100, key=MSHRS, value=64)
    change(results, "stream", REGION, cycles=400, stalls=50, key=MSHRS, value=64)
    found = rows(results, "mshrs")
    assert found["stream"] == (0.5, 0.5, 2.0, 2.0, 2.0, 0.8, 4.0, 4.0, 4.0, 0.5)
    kernels = len(scheduling.STUDIED[MSHRS])
    mean = [value ** (1 / kernels) for value in (0.5, 2.0, 2.0, 2.0, 0.8, 4.0, 4.0, 4.0, 0.5)]
    assert found["mean"] == (pytest.approx(mean[0]), None, *map(pytest.approx, mean[1:]))
    assert found["mean with 16"] == (None, None, *[1.0] * 8)


def test_reasons_are_of_the_runs(results: Results) -> None:
    """Simple-p stalls more and is faster: 1,000 cycles for 1,250; one L2 waits all the time, eight slices for 8,000."""
    change(results, "MonteCarlo", REGION, cycles=1250, stalls=300)
    results[scheduling._run("MonteCarlo", REGION)]["functions"][0]["stats"]["sm.util"] = 0.625
    stats = results[scheduling._run("cfd", FINE)]["functions"][0]["stats"]
    stats.update({"l2.stall_mshrs_core_cycles": 8000, "l1.lat_rt_core_cycles": 2000})
    for name in set(NAMES) - {"lud"}:
        change(results, name, OLDEST, stalls=100)
    text = scheduling._reasons(scheduling._runs(results))
    assert "time (cfd), a line takes 2,000 cycles" in text and "oldest first 0.250" in text
    assert "in MonteCarlo, region-p stalls less than simple-p, but its SMs have no CTA in 37.5% of" in text
    assert "those of simple-p in 25.0%, which is 25.0% faster. Of" in text
    assert rows(results, "tails")["MonteCarlo"] == (0.25, 0.25, 0.25, 0.25, 0.375, 800.0)


def all_kernels(results: Results, values: dict[str, tuple[int, float]]) -> None:
    for policy, (cycles, stalls) in values.items():
        for name in NAMES:
            change(results, name, policy, cycles, stalls)


ORDER = {GREEDY: (900, 350.0), OLDEST: (800, 300.0), SIMPLE: (700, 200.0), REGION: (600, 100.0)}


def holds(results: Results, statement: str) -> bool:
    statements = scheduling._statements(scheduling._runs(results)).rows
    (found,) = (row for row in statements if row[0].startswith(statement))
    return bool(found[1])


def test_averages_are_in_the_thesis_s_order(results: Results) -> None:
    for statement in ("on average, every policy", "stalls fall"):
        assert not holds(results, statement)
    all_kernels(results, ORDER)
    for statement in ("on average, every policy", "stalls fall"):
        assert holds(results, statement)


def test_shares_of_stalls_are_the_thesis_s(results: Results) -> None:
    assert not holds(results, "fine RR stalls for 5 to 80 %")
    assert not holds(results, "on average, fine RR stalls")
    for place, name in enumerate(NAMES):
        change(results, name, FINE, stalls=100 if place < 3 else 400)
        change(results, name, GREEDY, stalls=310)
    assert holds(results, "fine RR stalls for 5 to 80 %")
    assert holds(results, "on average, fine RR stalls")


@pytest.mark.parametrize(
    ("statement", "before", "changes"),
    [
        (
            "region-p is the fastest",
            False,
            [(name, REGION, 999, 400) for name in ("BlackScholes", "convolutionSep", "matrixMul")],
        ),
        ("where every load is a region", True, [("dxtc", REGION, 1011, 400)]),
        ("so they are in cfd", True, [("cfd", SIMPLE, 1011, 400)]),
        ("in stream", True, [("stream", OLDEST, 940, 400)]),
        ("oldest first stalls more", False, [(name, OLDEST, 1000, 401) for name in ("histogram", "scalarProd")]),
        (
            "simple-p and region-p stall less",
            False,
            [(name, policy, 1000, 399) for name in ("histogram", "scalarProd") for policy in (SIMPLE, REGION)],
        ),
    ],
)
def test_statements_are_what_the_figures_say(
    results: Results, statement: str, before: bool, changes: list[tuple[str, str, int, float]]
) -> None:
    assert holds(results, statement) is before
    for each in changes:
        change(results, *each)
    assert holds(results, statement) is not before


def test_statements_on_ctas_are_what_the_figures_say(results: Results) -> None:
    more, order = "more CTAs on an SM", "whatever the CTAs"
    assert not holds(results, more)
    assert not holds(results, order)
    for name in scheduling.STUDIED[CTAS]:
        last = scheduling._values(name, CTAS)[-1]
        for stalls, policy in zip((390, 380, 370), scheduling.COMPARED, strict=True):
            change(results, name, policy, stalls=stalls, key=CTAS, value=last)
    assert holds(results, more)
    assert holds(results, order)


def test_statements_on_latency_are_what_the_figures_say(results: Results) -> None:
    longer, fine, dxtc = "a longer latency", "with fine RR, they rise", "in dxtc"
    assert not holds(results, longer)
    for name in scheduling.STUDIED[LATENCY]:
        for stalls, policy in zip((800, 700, 600), scheduling.COMPARED, strict=True):
            change(results, name, policy, stalls=stalls, key=LATENCY, value=800)
            change(results, name, policy, stalls=300, key=LATENCY, value=300)
    assert holds(results, longer)
    assert holds(results, fine)
    change(results, "dxtc", REGION, stalls=900, key=LATENCY, value=800)
    assert not holds(results, dxtc)
    for policy in scheduling.COMPARED:
        change(results, "dxtc", policy, stalls=310, key=LATENCY, value=800)
    assert holds(results, dxtc)
    change(results, "cfd", REGION, stalls=8000, key=LATENCY, value=800)
    assert not holds(results, fine)


def test_statements_on_overhead_are_what_the_figures_say(results: Results) -> None:
    two, three, region = "an overhead of 2 cycles", "one of 3 cycles", "2 cycles cost region-p less"
    assert holds(results, two)
    assert not holds(results, three)
    assert not holds(results, region)
    for name in scheduling.STUDIED[OVERHEAD]:
        for slow, slower, policy in zip((1040, 1030, 1020), (1260, 1270, 1280), scheduling.COMPARED, strict=True):
            change(results, name, policy, cycles=slow, key=OVERHEAD, value=2)
            change(results, name, policy, cycles=slower, key=OVERHEAD, value=3)
    assert all(holds(results, statement) for statement in (two, three, region))
    change(results, "stream", OLDEST, cycles=3000, key=OVERHEAD, value=2)
    assert not holds(results, two)


def test_plots_are_whole(results: Results) -> None:
    plots = [block for block in scheduling.page(results).blocks if isinstance(block, Plot)]
    assert [plot.key for plot in plots] == ["times", "stalls", "ctas", "latency"]
    for plot in plots:
        ElementTree.fromstring(plot.svg)


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_documentation_shows_what_the_model_does() -> None:
    """On the quick runs; all of them take some minutes."""
    text = markdown(scheduling.page(run.run(scheduling.jobs(True), Watch(), 1)), "scheduling")
    heads = tuple(f"| {name} |" for name in scheduling.QUICK)
    found = [line for line in text.split("\n") if line.startswith(heads)]
    assert len(found) == 3 * len(scheduling.QUICK)
    again = "lockstep reproduce scheduling; its scheduling.md and plots belong to docs/reproduce/"
    assert set(found) <= set(DOCUMENT.read_text(encoding="utf-8").split("\n")), again
