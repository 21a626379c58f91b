"""The scheduling chapter: which runs it needs, what its tables are made of, and what it says of the thesis."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any

import pytest

from lockstep.models import cache
from lockstep.sim import kernels
from lockstep.sim.device.gpu import Gpu
from lockstep.sim.study.job import Job
from lockstep.sim.study.page import Plot, Table, Text, markdown
from lockstep.sim.study.reproduce import run
from lockstep.sim.study.reproduce.chapters import scheduling
from lockstep.sim.study.reproduce.chapters.scheduling import statements
from lockstep.sim.study.reproduce.chapters.scheduling.runs import (
    COMPARED,
    CTAS,
    ENOUGH,
    FINE,
    FUNCTIONS,
    GPU,
    GREEDY,
    LATENCY,
    MACHINE,
    MSHRS,
    NO_L1,
    OLDEST,
    OVERHEAD,
    PARTS,
    POLICIES,
    QUICK,
    REGION,
    SIMPLE,
    SLICES,
    STALL,
    STUDIED,
    USUAL,
    jobs,
    run_name,
    runs_of,
    values,
)
from lockstep.sim.watch import Watch

DOCUMENT = cache.ROOT / "docs" / "reproduce" / "scheduling.md"

NAMES = list(FUNCTIONS)
SCRATCHPAD = {"dwtHaar1D": 4 * (1024 + 1024 // 16)}  # bytes that a launch asks for

Results = dict[str, dict[str, Any]]


def result(job: Job) -> dict[str, Any]:
    """A run of 1,000 cycles with 400 stalls, and of another function that takes longer."""
    (name,) = (each.name for each in FUNCTIONS.values() if each.kernel == job.kernel)
    stats = {
        STALL: 400.0,
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
    return {name: result(job) for name, job in jobs(False).items()}


def change(
    results: Results,
    name: str,
    policy: str,
    cycles: int = 1000,
    stalls: float = 400,
    changes: Mapping[str, int] | None = None,
) -> None:
    function = results[run_name(name, policy, changes)]["functions"][0]
    function["cycles"] = cycles
    function["stats"][STALL] = stalls


def table(results: Results, key: str) -> Table:
    (found,) = (each for each in scheduling.page(results).blocks if isinstance(each, Table) and each.key == key)
    return found


def rows(results: Results, key: str, head: int = 1) -> dict[Any, tuple[Any, ...]]:
    """A table's rows by their first cells, or by the first ``head`` of them."""
    found = table(results, key).rows
    return {row[0] if head == 1 else tuple(row[:head]): tuple(row[head:]) for row in found}


def occupancy(name: str, settings: Mapping[str, Any]) -> int:
    """How many CTAs of a function an SM holds."""
    gpu, function = Gpu(GPU, settings=settings), FUNCTIONS[name]
    kernel = kernels.find(function.kernel)
    module = gpu.load(kernel.ptx, kernel.registers)
    return module.occupancy(function.name, (function.threads,), SCRATCHPAD.get(name, 0)).ctas


def test_an_sm_holds_the_ctas_that_the_chapter_says() -> None:
    found = jobs(False)
    for name, function in FUNCTIONS.items():
        assert occupancy(name, {}) == function.resident
        assert occupancy(name, found[run_name(name, FINE)].settings) == function.published.resident
        for ctas in values(name, CTAS) if name in STUDIED[CTAS] else ():
            assert occupancy(name, found[run_name(name, FINE, {CTAS: ctas})].settings) == ctas


def test_usual_values_are_those_of_the_description() -> None:
    gpu = Gpu(GPU).description
    usual = {LATENCY: gpu.dram.latency, OVERHEAD: gpu.core.scheduler_overhead, MSHRS: gpu.l2.mshrs}
    assert usual == USUAL and gpu.l2.slices == SLICES
    assert gpu.core.sms * gpu.l1.mshrs == SLICES * ENOUGH[MSHRS] == 1024


def test_code_for_region_p_is_for_the_warps_that_an_sm_holds() -> None:
    found = jobs(False)
    assert found["cfd, region-p"].settings == {**MACHINE, "core.scheduler": REGION, "core.region_warps": 12}
    more = found[run_name("matrixMul", REGION, {CTAS: 6})].settings
    assert (more["core.region_warps"], more[CTAS]) == (48, 6)
    other = found["stream, region-p"].settings
    assert (other["core.region_warps"], other[CTAS]) == (48, 3)
    limits = found[run_name("BlackScholes", REGION, {CTAS: 8})].settings
    assert limits == {**MACHINE, "core.scheduler": REGION, "core.region_warps": 32}
    assert "core.region_warps" not in found["cfd, lrr"].settings


def test_all_runs_have_the_machine_of_table_4_2_but_those_without_a_part_of_it() -> None:
    without = [run_name(name, FINE, part) for name in FUNCTIONS for part in PARTS.values()]
    assert len(set(without)) == 48
    for name, job in jobs(False).items():
        differs = {key for key, value in MACHINE.items() if job.settings[key] != value}
        assert bool(differs) is (name in without and "l1.mshrs" not in job.settings)


def test_no_more_warps_than_a_mask_holds() -> None:
    assert values("matrixMul", CTAS) == [3, 4, 5, 6, 7, 8]
    assert values("lud", CTAS) == [5, 6, 7, 8]
    assert values("BlackScholes", CTAS) == [4, 5, 6, 7, 8, 9, 10]
    assert scheduling._cut() == "lud ends at c+2 and matrixMul ends at c+4"


def test_the_usual_values_need_no_run_of_their_own() -> None:
    for key, value in ((CTAS, 5), (LATENCY, 600), (OVERHEAD, 1)):
        assert run_name("BlackScholes", OLDEST, {key: value}) == "BlackScholes, oldest"
        assert run_name("BlackScholes", OLDEST, {key: value + 1}) == f"BlackScholes, oldest, {key} = {value + 1}"


def test_means_are_geometric_and_to_fine_round_robin(results: Results) -> None:
    for name in NAMES[:6]:
        change(results, name, OLDEST, cycles=250, stalls=1600)
    assert rows(results, "means")["oldest first"] == pytest.approx((0.5, 0.922, 2.0, 0.655))
    assert rows(results, "means")["region-p"] == pytest.approx((1.0, 0.884, 1.0, 0.439))


def test_means_of_a_few_kernels_stand_beside_nothing() -> None:
    few = {name: result(job) for name, job in jobs(True).items()}
    assert rows(few, "means")["simple-p"] == (1.0, None, 1.0, None)
    assert list(rows(few, "times")) == list(QUICK)
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
    change(results, "matrixMul", REGION, stalls=200, changes={CTAS: 6})
    change(results, "cfd", REGION, stalls=6400, changes={LATENCY: 800})
    change(results, "stream", REGION, cycles=32_000, changes={OVERHEAD: 3})
    assert rows(results, "ctas", 2)["matrixMul", "region-p"] == (1.0, 1.0, 1.0, 0.5, 1.0, 1.0, None)
    assert rows(results, "ctas", 2)["mean", "region-p"][:4] == pytest.approx((1.0, 1.0, 1.0, 0.5 ** (1 / 6)))
    assert rows(results, "ctas", 2)["mean", "region-p"][4:] == (None, None, None)
    assert rows(results, "latency", 2)["cfd", "region-p"] == (1.0, 1.0, 1.0, 1.0, 1.0, 16.0)
    mean = 32 ** (1 / len(STUDIED[OVERHEAD]))
    assert rows(results, "overhead")["mean"] == pytest.approx((1.0, 1.0, 1.0, 1.0, 1.0, mean))


def test_more_mshrs_are_to_fine_round_robin_with_as_many(results: Results) -> None:
    change(results, "stream", FINE, cycles=500, stalls=100, changes=ENOUGH)
    change(results, "stream", REGION, cycles=400, stalls=50, changes=ENOUGH)
    found = rows(results, "mshrs")
    assert found["stream"] == (0.5, 0.5, 2.0, 2.0, 2.0, 0.8, 4.0, 4.0, 4.0, 0.5)
    mean = [value ** (1 / len(FUNCTIONS)) for value in (0.5, 2.0, 2.0, 2.0, 0.8, 4.0, 4.0, 4.0, 0.5)]
    assert found["mean"] == (pytest.approx(mean[0]), None, *map(pytest.approx, mean[1:]))
    assert found["mean with 16"] == (None, None, *[1.0] * 8)


def test_parts_of_the_machine_are_to_it(results: Results) -> None:
    """The run of cfd with the whole machine takes 1,000 cycles."""
    for part, cycles in (("banks of 4 bytes", 1011), ("2 collectors of the load/store unit", 991)):
        change(results, "cfd", FINE, cycles=cycles, changes=PARTS[part])
    assert rows(results, "parts")["cfd"] == (1.011, 0.991, 1.0, 1.0)
    (text,) = (each.text for each in scheduling.page(results).blocks if isinstance(each, Text) and "56 is" in each.text)
    assert text.endswith(
        "by more than 1 %: 2 collectors of the load/store unit, textures in the L1, 56 MSHRs in the L1."
    )


def test_who_ends_late_is_told(results: Results) -> None:
    """Simple-p stalls more and is faster: 1,000 cycles for 1,250."""
    change(results, "MonteCarlo", REGION, cycles=1250, stalls=300)
    results[run_name("MonteCarlo", REGION)]["functions"][0]["stats"]["sm.util"] = 0.625
    text = scheduling._late(runs_of(results))
    assert "in MonteCarlo, region-p stalls less than simple-p, but its SMs have no CTA in 37.5% of" in text
    assert "those of simple-p in 25.0%, which is 25.0% faster. " in text
    assert rows(results, "tails")["MonteCarlo"] == (0.25, 0.25, 0.25, 0.25, 0.375, 800.0)


def all_kernels(
    results: Results, numbers: Mapping[str, tuple[int, float]], changes: Mapping[str, int] | None = None
) -> None:
    for policy, (cycles, stalls) in numbers.items():
        for name in NAMES:
            change(results, name, policy, cycles, stalls, changes)


ORDER = {GREEDY: (900, 350.0), OLDEST: (800, 300.0), SIMPLE: (700, 200.0), REGION: (600, 100.0)}
PUBLISHED = {GREEDY: (980, 346.8), OLDEST: (922, 262.0), SIMPLE: (901, 216.0), REGION: (884, 175.6)}


def row(results: Results, statement: str) -> tuple[Any, ...]:
    (found,) = (row for row in statements.statements_table(runs_of(results)).rows if row[0].startswith(statement))
    return tuple(found)


def holds(results: Results, statement: str) -> bool:
    return bool(row(results, statement)[1])


def test_averages_are_in_the_thesis_s_order(results: Results) -> None:
    order, sizes = ("on average, every policy", "on average, each has fewer"), ("by 11.6", "by 56.1")
    for statement in (*order, *sizes):
        assert not holds(results, statement)
    all_kernels(results, ORDER)
    assert [holds(results, statement) for statement in (*order, *sizes)] == [True, True, False, False]
    all_kernels(results, PUBLISHED)
    assert all(holds(results, statement) for statement in (*order, *sizes))


def test_effects_are_met_within_a_quarter() -> None:
    assert statements._like([0.924, 0.876, 1.49], [0.9, 0.9, 1.4])
    assert not statements._like([0.926], [0.9])
    assert not statements._like([1.1], [0.9])


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
        ("oldest first stalls", False, [("histogram", OLDEST, 1000, 600), ("scalarProd", OLDEST, 1000, 470)]),
        (
            "simple-p and region-p stall by",
            False,
            [(name, policy, 1000, stalls) for name, stalls in (("histogram", 80), ("scalarProd", 350))
             for policy in (SIMPLE, REGION)],
        ),
    ],
)  # fmt: skip
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
    for name in STUDIED[CTAS]:
        for stalls, policy in zip((390, 380, 370), COMPARED, strict=True):
            change(results, name, policy, stalls=stalls, changes={CTAS: values(name, CTAS)[-1]})
    assert holds(results, more)
    assert holds(results, order)
    change(results, "lud", OLDEST, stalls=400, changes={CTAS: 8})
    assert row(results, more)[2].endswith("; not in lud with oldest first")


def test_who_needs_more_ctas_is_what_the_figures_say(results: Results) -> None:
    none, some = "with region-p, no more CTAs", "but in cfd"
    assert holds(results, none)
    assert not holds(results, some)
    for name in ("cfd", "dxtc", "matrixMul"):
        change(results, name, REGION, stalls=379, changes={CTAS: values(name, CTAS)[2]})
    assert holds(results, some)
    change(results, "lud", REGION, stalls=379, changes={CTAS: 7})
    assert not holds(results, none)
    change(results, "lud", REGION, stalls=381, changes={CTAS: 7})
    change(results, "lud", REGION, stalls=100, changes={CTAS: 5})
    assert holds(results, none)


def test_statements_on_latency_are_what_the_figures_say(results: Results) -> None:
    longer, fine, dxtc = "a longer latency", "with oldest first and region-p, they rise less", "in dxtc"
    assert not holds(results, longer)
    for name in STUDIED[LATENCY]:
        for step, latency in enumerate((300, 400, 500, 700, 800)):
            for most, policy in zip((500, 400, 300), COMPARED, strict=True):
                change(results, name, policy, stalls=300 + most * step // 4 + 1, changes={LATENCY: latency})
        for stalls, policy in zip((600, 530, 470), COMPARED, strict=True):
            change(results, name, policy, stalls=stalls)
    assert holds(results, longer)
    assert holds(results, fine)
    assert not holds(results, dxtc)
    change(results, "cfd", OLDEST, stalls=9000, changes={LATENCY: 700})
    assert not holds(results, longer)
    assert row(results, longer)[2].endswith("; not in cfd with oldest first from 700 to 800 cycles")
    for policy in COMPARED:
        change(results, "dxtc", policy, stalls=310, changes={LATENCY: 800})
    assert holds(results, dxtc)
    change(results, "cfd", REGION, stalls=8000, changes={LATENCY: 800})
    assert not holds(results, fine)


def test_statements_on_overhead_are_what_the_figures_say(results: Results) -> None:
    two, three, region = "an overhead of 2 cycles", "one of 3 cycles", "2 cycles cost region-p less"
    assert holds(results, two)
    assert not holds(results, three)
    assert not holds(results, region)
    for name in STUDIED[OVERHEAD]:
        for slow, slower, policy in zip((1040, 1030, 1020), (1260, 1270, 1280), COMPARED, strict=True):
            change(results, name, policy, cycles=slow, changes={OVERHEAD: 2})
            change(results, name, policy, cycles=slower, changes={OVERHEAD: 3})
    assert all(holds(results, statement) for statement in (two, three, region))
    change(results, "stream", OLDEST, cycles=3000, changes={OVERHEAD: 2})
    assert not holds(results, two)


FASTER = "on average, every policy"


def test_what_does_not_hold_and_no_other_runs_change_is_open(results: Results) -> None:
    assert row(results, FASTER)[5] == "open"
    all_kernels(results, ORDER)
    assert row(results, FASTER)[5] == ""


def test_a_cause_is_what_makes_a_statement_hold(results: Results) -> None:
    """Of one kernel, oldest first is slower than fine round robin, with both readings of the MSHRs."""
    for changes in ({}, ENOUGH):
        all_kernels(results, ORDER, changes)
        change(results, "cfd", OLDEST, cycles=10**6, changes=changes)
    assert row(results, FASTER)[5].startswith("128 in all, without cfd: greedy RR ")


def test_what_holds_with_one_reading_needs_no_cause(results: Results) -> None:
    all_kernels(results, ORDER, ENOUGH)
    _, *verdicts, cause = row(results, FASTER)
    assert verdicts[::2] == [False, True] and cause == ""
    assert verdicts[1].startswith("greedy RR 1.000, ") and verdicts[3].startswith("greedy RR 0.900, ")


def test_a_cause_is_that_loads_hit(results: Results) -> None:
    all_kernels(results, ORDER, NO_L1)
    assert row(results, FASTER)[5].startswith("128 in all, with L1s off: greedy RR ")


def test_a_cause_is_that_the_l2_waits(results: Results) -> None:
    all_kernels(results, ORDER)
    for policy in POLICIES:
        change(results, "cfd", policy, cycles=10**6 if policy == REGION else 1000)
    results[run_name("cfd", FINE)]["functions"][0]["stats"]["l2.stall_mshrs_core_cycles"] = 4000.0
    cause = "128 in all, for kernels whose L2 waits for less than half of the time: greedy RR "
    assert row(results, FASTER)[5].startswith(cause)


def test_a_cause_is_how_launches_end(results: Results) -> None:
    for policy, (cycles, _) in ORDER.items():
        for name in NAMES:
            results[run_name(name, policy)]["functions"][0]["stats"]["sm.util"] = 0.75 * cycles / 1000
    assert row(results, FASTER)[5].startswith("128 in all, for the cycles in which SMs have CTAs: greedy RR ")


def test_causes_add_up(results: Results) -> None:
    """With 128 MSHRs in each slice, only the cycles in which SMs have CTAs are in the thesis's order."""
    for policy, (cycles, _) in ORDER.items():
        for name in NAMES:
            run = results[run_name(name, policy, ENOUGH)]["functions"][0]
            run["stats"] = {**run["stats"], "sm.util": 0.75 * cycles / 1000}
    cause = "128 in each slice, for the cycles in which SMs have CTAs: greedy RR "
    assert row(results, FASTER)[5].startswith(cause)


def test_kernels_that_a_statement_names_are_not_left_out(results: Results) -> None:
    """Histogram alone is not as the thesis says, and its L2 waits."""
    change(results, "scalarProd", OLDEST, stalls=470)
    results[run_name("histogram", FINE)]["functions"][0]["stats"]["l2.stall_mshrs_core_cycles"] = 8000.0
    assert row(results, "oldest first stalls")[5] == "open"
    change(results, "histogram", OLDEST, stalls=640)
    assert row(results, "oldest first stalls")[1]


def test_studies_were_not_run_without_l1s(results: Results) -> None:
    (off,) = NO_L1
    assert not any(off in name and key in name for name in results for key in STUDIED)
    for name in STUDIED[OVERHEAD]:
        for policy in COMPARED:
            change(results, name, policy, cycles=1270, changes={**ENOUGH, OVERHEAD: 3})
    assert row(results, "one of 3 cycles")[3:5] == (True, "fine RR 1.270, oldest first 1.270, region-p 1.270")
    assert row(results, "a longer latency")[5] == "open"


def test_plots_are_whole(results: Results) -> None:
    plots = [block for block in scheduling.page(results).blocks if isinstance(block, Plot)]
    assert [plot.key for plot in plots] == ["times", "stalls", "ctas", "latency"]
    for plot in plots:
        ElementTree.fromstring(plot.svg)


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_documentation_shows_what_the_model_does() -> None:
    """On the quick runs; all of them take some minutes."""
    text = markdown(scheduling.page(run.run(jobs(True), Watch(), 1)), "scheduling")
    heads = tuple(f"| {name} |" for name in QUICK)
    found = [line for line in text.split("\n") if line.startswith(heads)]
    assert len(found) == 3 * len(QUICK)
    again = "lockstep reproduce scheduling; its scheduling.md and plots belong to docs/reproduce/"
    assert set(found) <= set(DOCUMENT.read_text(encoding="utf-8").split("\n")), again
