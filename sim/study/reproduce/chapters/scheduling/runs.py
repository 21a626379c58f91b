"""The kernels of table 4-3, the runs that the chapter needs, and what is taken from each."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lockstep.sim import kernels
from lockstep.sim.compile import listing
from lockstep.sim.device import description
from lockstep.sim.study.job import Job
from lockstep.sim.study.reproduce import Result
from lockstep.spec.parameters import LANES, MAX_COLLECTORS, MAX_WARPS

GPU = "gtx580"
FINE, GREEDY, OLDEST, SIMPLE, REGION = "lrr", "greedy-rr", "oldest", "simple-p", "region-p"

POLICIES = {FINE: "fine RR", GREEDY: "greedy RR", OLDEST: "oldest first", SIMPLE: "simple-p", REGION: "region-p"}
"""By our names: what the thesis calls them, the baseline first."""

PEERS = tuple(POLICIES)[1:]
COMPARED = (FINE, OLDEST, REGION)  # in the sensitivity studies

STALL = "issue.scheduler_stall_core_cycles"

Settings = Mapping[str, Any]

MACHINE: Settings = {
    "scratchpad.bank_bytes": 8,
    "core.collectors_lsu": MAX_COLLECTORS,
    "texture_cache.mode": "own",
    "texture_cache.sets": 32,
    "texture_cache.ways": 3,
}
"""What table 4-2's simulator has and the chip that ``gtx580`` describes has not: registers of infinite bandwidth (as
many collectors as there can be), banks of 8 bytes, 12 KB for textures."""

PARTS: Mapping[str, Settings] = {
    "banks of 4 bytes": {"scratchpad.bank_bytes": 4},
    "2 collectors of the load/store unit": {"core.collectors_lsu": 2},
    "textures in the L1": {"texture_cache.mode": "l1"},
    "56 MSHRs in the L1": {"l1.mshrs": 56},
}
"""Fine RR without each part of the machine. The thesis's L1 and constant cache share 64 MSHRs; ours have 64 and 8, so
that 56 and 8 are the fewest that the L1 could be left with."""


class Published(NamedTuple):
    """A row of table 4-3."""

    ctas: int
    warps: int  # of a CTA
    resident: int  # CTAs of an SM
    instructions: int
    loads: int
    regions: int


class Function(NamedTuple):
    """A kernel function of ours, the size that is run, and how many CTAs of ``threads`` an SM holds by its limits."""

    kernel: str
    name: str
    size: str
    threads: int
    resident: int
    published: Published

    @property
    def warps(self) -> int:
        return self.threads // LANES

    @property
    def ctas(self) -> int:
        """How many an SM has in the runs, and *c* in the study of them: as many as in table 4-3."""
        return self.published.resident


FUNCTIONS = {
    "backprop": Function("backprop-layerforward", "layerforward", "full", 256, 6, Published(8192, 8, 6, 103, 2, 2)),
    "BlackScholes": Function("BlackScholes", "BlackScholesGPU", "small", 128, 8, Published(480, 4, 5, 129, 3, 1)),
    "cfd": Function("cfd", "cuda_compute_flux", "full", 192, 2, Published(1212, 6, 2, 1041, 36, 5)),
    "convolutionSep": Function(
        "convolutionSeparable", "convolutionColumnsKernel", "steady", 128, 8, Published(9216, 4, 8, 530, 10, 1)
    ),
    "dwtHaar1D": Function("dwtHaar1D", "dwtHaar1D", "full", 512, 3, Published(256, 16, 3, 115, 2, 1)),
    "dxtc": Function("dxtc", "compress", "steady", 64, 8, Published(768, 2, 8, 952, 2, 2)),
    "histogram": Function("histogram", "histogram256", "full", 192, 8, Published(240, 6, 8, 148, 1, 1)),
    "lud": Function("lud", "lud_internal", "steady", 256, 6, Published(15876, 8, 6, 102, 3, 3)),
    "matrixMul": Function("matrixMul", "matrixMul", "small", 256, 4, Published(1500, 8, 4, 128, 2, 1)),
    "MonteCarlo": Function(
        "MonteCarlo", "MonteCarloOneBlockPerOption", "steady", 256, 5, Published(256, 8, 5, 191, 1, 1)
    ),
    "scalarProd": Function("scalarProd", "scalarProdGPU", "full", 256, 5, Published(96, 8, 6, 104, 1, 1)),
    "stream": Function("streamcluster", "compute_cost", "steady", 512, 2, Published(96, 16, 3, 113, 8, 2)),
}
"""By the names of the thesis."""

QUICK = ("dwtHaar1D", "scalarProd")

CTAS, LATENCY, OVERHEAD, MSHRS = "core.ctas", "dram.latency", "core.scheduler_overhead", "l2.mshrs"
MORE = range(-1, 6)  # CTAs beside those of table 4-3
LATENCIES = range(300, 900, 100)
OVERHEADS = range(1, 4)
USUAL = {LATENCY: 600, OVERHEAD: 1, MSHRS: 16}  # of the GPU's description
SLICES = 8
ENOUGH = {MSHRS: USUAL[MSHRS] * SLICES}  # of an L2 slice: as many in all as the L1s have
NO_L1 = {"l1.data": 0}  # so that no load hits there
UNLIMITED = {
    "core.warps": MAX_WARPS,
    "core.threads": MAX_WARPS * LANES,
    "core.registers": 1 << 18,
    "scratchpad.bytes": 1 << 20,
}
"""So that nothing but ``core.ctas`` limits the CTAs of an SM, where it is to hold others than its limits give."""

STUDIED = {
    LATENCY: tuple(FUNCTIONS),
    OVERHEAD: tuple(FUNCTIONS),
    CTAS: ("BlackScholes", "cfd", "convolutionSep", "dxtc", "lud", "matrixMul"),
}
"""The kernels of figures 4-8, 4-9 and 4-7."""


def jobs(quick: bool) -> dict[str, Job]:
    """Every kernel with every policy, fine round robin without each part of the machine, and the sensitivity studies.

    With ``ENOUGH`` MSHRs, all of it again but the parts; with ``NO_L1``, and with both, every policy.
    """
    if quick:
        return dict(_job(name, policy) for name in QUICK for policy in POLICIES)
    found: dict[str, Job] = {}
    for more in ({}, ENOUGH, NO_L1, {**ENOUGH, **NO_L1}):
        found |= (_job(name, policy, more) for name in FUNCTIONS for policy in POLICIES)
    found |= (_job(name, FINE, part) for name in FUNCTIONS for part in PARTS.values())
    for more, (key, names) in itertools.product(({}, ENOUGH), STUDIED.items()):
        changes = ((name, {**more, key: value}) for name in names for value in values(name, key))
        found |= (_job(name, policy, each) for name, each in changes for policy in COMPARED)
    return found


def values(name: str, key: str) -> list[int]:
    """The values of a parameter that a kernel runs with in a sensitivity study."""
    if key == CTAS:
        function = FUNCTIONS[name]
        counts = (function.ctas + more for more in MORE)
        return [ctas for ctas in counts if ctas * function.warps <= MAX_WARPS]
    return list({LATENCY: LATENCIES, OVERHEAD: OVERHEADS}[key])


def run_name(name: str, policy: str, changes: Settings | None = None) -> str:
    """The name of the run that figures are in."""
    return ", ".join([name, policy, *(f"{key} = {value}" for key, value in _changed(name, changes or {}).items())])


def _changed(name: str, changes: Settings) -> Settings:
    """Without those that leave everything as it is."""
    usual = {**USUAL, CTAS: FUNCTIONS[name].ctas}
    return {key: value for key, value in changes.items() if usual.get(key) != value}


def _job(name: str, policy: str, changes: Settings | None = None) -> tuple[str, Job]:
    """A run's name and what it runs: code for region-p is made for the warps that an SM holds."""
    function, changed = FUNCTIONS[name], _changed(name, changes or {})
    settings = {CTAS: function.ctas, **MACHINE, "core.scheduler": policy, **changed}
    if policy == REGION:
        settings["core.region_warps"] = settings[CTAS] * function.warps
    if settings[CTAS] == function.resident:
        del settings[CTAS]
    else:
        settings |= UNLIMITED
    return run_name(name, policy, changes), Job(function.kernel, GPU, function.size, settings=settings)


class Run(NamedTuple):
    """The launches of the kernel function in one run."""

    cycles: float
    stalls: float  # cycles in which a scheduler issued nothing, of both schedulers of all SMs
    slots: float  # cycles of both schedulers of all SMs that had work
    waiting: float  # share of the cycles in which an L2 slice stands still, since it has no free MSHR
    ctas: int
    empty: float  # share of the launch in which an SM has no CTA
    round_trip: float  # core cycles from the L1 to what is behind it, and back


Runs = Mapping[str, Run]
"""By the names of the jobs."""


def runs_of(results: Mapping[str, Result]) -> dict[str, Run]:
    return dict(_runs(results))


def _runs(results: Mapping[str, Result]) -> Iterator[tuple[str, Run]]:
    for run, result in results.items():
        function = FUNCTIONS[run.split(",")[0]]
        (each,) = (each for each in result["functions"] if each["name"] == function.name)
        stats, configuration = each["stats"], result["configuration"]
        slots = configuration["core.schedulers"] * stats["sm.active_core_cycles"]
        waiting = stats["l2.stall_mshrs_core_cycles"] / (configuration["l2.slices"] * each["cycles"])
        empty, trip = 1 - stats["sm.util"], stats["l1.lat_rt_core_cycles"]
        yield run, Run(each["cycles"], stats[STALL], slots, waiting, int(stats["sm.ctas"]), empty, trip)


@functools.cache
def compiled(name: str) -> listing.Listed:
    """The kernel function as the compiler sees it for region-p."""
    function = FUNCTIONS[name]
    kernel = kernels.find(function.kernel)
    gpu = description.load(GPU, {"core.region_warps": function.ctas * function.warps})
    (found,) = (
        each for each in listing.listing(kernel.ptx, gpu, kernel.registers).kernels if each.name == function.name
    )
    return found
