"""The runs of the chapter: applications, limits, mechanisms, and the studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lockstep.sim.study.job import Job

GPU, MESHES = "dyncta30", ("dyncta56", "dyncta110")
SIZE = "small"

LIMIT, GATE = ("dyncta",), ("dyncore",)
BOTH = (*LIMIT, *GATE)

C, M, X = "Type-C", "Type-M", "Type-X"
COMPUTE, EMPTY = 0.66, 0.2  # RACT above which an application is of Type-C, and idle time above which of Type-X

BASE, DYNCTA, DYNCORE, TWO_LEVEL, NARROW = "baseline", "DYNCTA", "DYNCORE", "two-level", "C_mem without blocked warps"


class Application(NamedTuple):
    """A kernel that stands for an application of table 2; ``most`` CTAs of its functions fit an SM.

    Where the largest launch brings fewer than that to a core, ``brought`` says how many.
    """

    kernel: str
    most: int
    kind: str
    dynamic: float | None = None  # the paper's speed-ups, where its text has them
    static: float | None = None
    brought: int | None = None


APPLICATIONS = {
    "PVC": Application("pvc", 8, M, 3.6, 3.5),
    "SSC": Application("ssc", 8, M),
    "IIX": Application("iix", 8, M, 2.9, 4.9),
    "BFS": Application("bfs", 4, M),
    "SAD": Application("sad", 8, M, 2.9),
    "PFF": Application("particlefilter", 8, M, 0.975, brought=1),
    "LUD": Application("lud", 8, X),
    "SPMV": Application("spmv", 5, M),
    "NW": Application("nw", 8, X, 0.98, brought=2),
    "MUM": Application("MUM", 4, M, brought=1),
    "KM": Application("kmeans", 4, M, 1.9),
    "WP": Application("WP", 8, M, brought=3),
    "SCP": Application("scalarProd", 4, M, 0.97),
    "PVR": Application("pvr", 8, M),
    "AES": Application("AES", 4, M),
    "LIB": Application("LIB", 4, M, brought=1),
    "NQU": Application("NQU", 2, X),
    "FFT": Application("fft", 8, M),
    "SD2": Application("srad_v2", 4, M),
    "BP": Application("backprop-layerforward", 4, M),
    "JPEG": Application("JPEG", 8, M),
    "BLK": Application("BlackScholes", 8, C, 0.98),
    "RAY": Application("RAY", 6, C),
    "SD1": Application("srad_v1", 2, C),
    "LKC": Application("leukocyte", 8, C),
    "PFN": Application("particlefilter-naive", 8, C, brought=2),
    "HOT": Application("hotspot", 3, C),
    "NN": Application("NN", 8, C, brought=7),
    "MM": Application("sgemm", 5, C, brought=2),
    "STO": Application("STO", 2, C),
    "CP": Application("CP", 8, C),
}
"""By the paper's abbreviations, in its order."""

QUICK = ("BFS", "SCP", "HOT")

COUNTS = (1, 2, 3, 4, 6)  # static limits that are run, beside the most
SWEPT = {"AES": SIZE, "MM": "steady", "JPEG": SIZE, "CP": "full"}  # figure 4, with every limit, by size
SHOWN = ("SAD", "JPEG", "RAY", "FFT")  # figure 8
STUDIED = ("BFS", "SCP", "AES", "BLK", "HOT", "CP")  # kernels whose runs are short
MESHED = (*STUDIED, "PVC")  # and the one that gains most
CORES_OFF = (4, 8, 12, 16)
NORMALLY_OFF = 8  # cores of 30 that DYNCORE turns off
OFF = NORMALLY_OFF / 30
START = "from the most"
VARIED: dict[str, dict[str, Any]] = {
    "thresholds halved": {"dyncta.idle_high": 8, "dyncta.memory_low": 64, "dyncta.memory_high": 192},
    "thresholds by half more": {"dyncta.idle_high": 24, "dyncta.memory_low": 192, "dyncta.memory_high": 576},
    "windows of 4096 cycles": {"dyncta.window": 4096},
    "from a limit of 1": {"dyncta.first": "one"},
    START: {"dyncta.first": "most"},
    "32 MSHRs": {"l1.mshrs": 32},
    "16 MSHRs": {"l1.mshrs": 16},
    "DRAM at 1107 MHz": {"clocks.dram": 1107},
    "DRAM at 1333 MHz": {"clocks.dram": 1333},
}
"""Section 5.3, and the start of section 4.1. What is not DYNCTA's own changes the baseline, too."""

EASED: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "L1 of 128 KB": (("PVC", "IIX", "KM"), {"l1.sets": 256}),
    "16 banks of DRAM": (("FFT", "BLK"), {"dram.banks": 16}),
}
"""Where the best limit pays most: applications, and what takes the gain away."""

FEW = (1, 2)  # limits that are the best of these
SLOW, SLOWER = {"clocks.dram": 266}, "DRAM at 266 MHz"  # a third of its speed
STARTS = ("SPMV", "AES", "FFT", "RAY", "SD1")  # where DYNCTA loses


def limits_of(name: str) -> list[int]:
    """The static limits that are run: those below what a core gets without a limit."""
    application = APPLICATIONS[name]
    most = application.brought or application.most
    return [n for n in (range(1, most) if SWEPT.get(name) == SIZE else COUNTS) if n < most]


def _job(name: str, mechanisms: Sequence[str] = (), gpu: str = GPU, size: str = SIZE, **settings: Any) -> Job:
    changed = {key.replace("__", "."): value for key, value in settings.items()}
    return Job(APPLICATIONS[name].kernel, gpu, size, mechanisms=mechanisms, settings=changed)


def jobs(quick: bool) -> dict[str, Job]:
    """Every application as it is, with each limit, with the mechanisms; and the studies."""
    found: dict[str, Job] = {}
    for name in QUICK if quick else APPLICATIONS:
        found |= {
            f"{name}, {BASE}": _job(name),
            **{f"{name}, {n}": _job(name, core__ctas=n) for n in limits_of(name)},
            f"{name}, {DYNCTA}": _job(name, LIMIT),
            f"{name}, {DYNCORE}": _job(name, BOTH),
        }
        if not quick:
            found |= {
                f"{name}, {TWO_LEVEL}": _job(name, core__scheduler="two-level"),
                f"{name}, {NARROW}": _job(name, LIMIT, dyncta__blocked=0),
            }
    return found if quick else found | _studies() | _causes()


def _studies() -> dict[str, Job]:
    found: dict[str, Job] = {}
    for name in STUDIED:
        for off in CORES_OFF:
            for what, mechanisms in ((BASE, ()), (DYNCTA, LIMIT)):
                found[f"{name}, {what}, {off} cores off"] = _job(name, mechanisms, core__sms=30 - off)
    for variation, settings in VARIED.items():
        changed = {key.replace(".", "__"): value for key, value in settings.items()}
        for name in STUDIED:
            found[f"{name}, {DYNCTA}, {variation}"] = _job(name, LIMIT, **changed)
            if not is_own(settings):
                found[f"{name}, {BASE}, {variation}"] = _job(name, **changed)
    for name in MESHED:
        for off in CORES_OFF:
            if off != NORMALLY_OFF:
                found[f"{name}, {DYNCORE}, {off} off"] = _job(name, BOTH, dyncore__off=off)
        for mesh in MESHES:
            found[f"{name}, {BASE}, {mesh}"] = _job(name, gpu=mesh)
            found[f"{name}, {DYNCORE}, {mesh}"] = _job(name, BOTH, mesh)
    return found


def _causes() -> dict[str, Job]:
    """Runs that tell why figures part from the paper's."""
    found: dict[str, Job] = {}
    for what, (names, settings) in {**EASED, SLOWER: (("JPEG",), SLOW)}.items():
        changed = {key.replace(".", "__"): value for key, value in settings.items()}
        for name in names:
            found[f"{name}, {BASE}, {what}"] = _job(name, **changed)
            for n in FEW if what in EASED else COUNTS:
                found[f"{name}, {n}, {what}"] = _job(name, core__ctas=n, **changed)
    for name, size in SWEPT.items():
        if size != SIZE:
            found[f"{name}, {BASE}, {size}"] = _job(name, size=size)
            for n in range(1, APPLICATIONS[name].most):
                found[f"{name}, {n}, {size}"] = _job(name, size=size, core__ctas=n)
    for name in STARTS:
        found[f"{name}, {DYNCTA}, {START}"] = _job(name, LIMIT, dyncta__first="most")
    return found


def is_own(settings: Mapping[str, Any]) -> bool:
    """Whether a variation changes the mechanism alone."""
    return all(key.startswith(LIMIT[0]) for key in settings)
