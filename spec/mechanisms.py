"""What a user can select with ``--with``: the mechanisms, the slot that each takes, and the blocks that it brings.

Two mechanisms in one slot exclude each other. Selecting one changes addresses and sizes in records, never what is
compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from lockstep.spec import warppool
from lockstep.spec.parameters import BANKS, Gpu

PATH = "the path from the load/store unit to the L1"


@dataclass(frozen=True)
class Mechanism:
    """``module`` plays the slot; ``blocks`` are the RTL blocks that come with it, ``unit`` the one that joins them.

    ``published`` has what its paper found, by the measures of ``sim/comparison.py``.
    A path takes at most ``answers`` of the L1 per cycle; ``reorders``: it may exchange requests of different warps.
    """

    name: str
    slot: str
    doc: str
    module: str
    blocks: tuple[str, ...] = ()
    unit: str = ""
    answers: int = 1
    reorders: bool = False
    check: Callable[[Gpu], list[str]] = lambda gpu: []
    published: Mapping[str, float] = field(default_factory=dict)


WARPPOOL = (
    "warppool.instruction_queues", "lsu.intra_warp_coalescer", "warppool.thread_map_table",
    "warppool.inter_warp_queues", "warppool.request_selector", "warppool.mshr_metadata", "warppool.writeback",
    "warppool.load_store_order",
)  # fmt: skip

BASELINE_PATH = Mechanism(
    "baseline", PATH, "one intra-warp coalescer", "lockstep.models.paths.baseline", ("lsu.intra_warp_coalescer",)
)

MECHANISMS = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism(
            "warppool",
            PATH,
            "requests of several warps merge before the L1, and are sent in a chosen order (Kloosterman, chapter 3)",
            "lockstep.models.paths.warppool",
            WARPPOOL,
            warppool.UNIT,
            reorders=True,
            check=warppool.check,
            # geometric means of section 3.4.2, figures 3.11 to 3.13
            published={"speed-up": 1.38, "lines per request": 1.08, "misses": 0.77},
        ),
        Mechanism(
            "mrpb",
            PATH,
            "a queue per group of warps before the L1, drained one group at a time (Jia et al.; Kloosterman, 3.4.1)",
            "lockstep.models.paths.mrpb",
            ("lsu.intra_warp_coalescer",),
            reorders=True,
        ),
        Mechanism(
            "banked-l1",
            PATH,
            "an L1 of eight banks: a look-up in each and one miss per cycle, for one instruction (Kloosterman, 3.4.1)",
            "lockstep.models.paths.banked_l1",
            answers=BANKS,
            published={"lines per request": 1.18},  # section 3.4.2.2: lines per cycle
        ),
    )
}

COMMON = ("cta.cta_dispatcher", "scheduling.warp_scheduler")
"""The blocks of every configuration."""


def resolve(names: Iterable[str]) -> tuple[str, ...]:
    """The mechanisms called ``names``; raises ValueError, in one line, for unknown ones and for two in one slot."""
    taken: dict[str, str] = {}
    for name in names:
        if name not in MECHANISMS:
            raise ValueError(f"mechanism {name!r}: not known; known are {', '.join(sorted(MECHANISMS))}")
        slot = MECHANISMS[name].slot
        if taken.setdefault(slot, name) != name:
            raise ValueError(f"mechanisms {taken[slot]} and {name} exclude each other: both are {slot}")
    return tuple(taken.values())


def path(gpu: Gpu) -> Mechanism:
    """What lies between the load/store unit and the L1."""
    return next((MECHANISMS[name] for name in gpu.mechanisms if MECHANISMS[name].slot == PATH), BASELINE_PATH)


def arguments(gpu: Gpu) -> dict[str, dict[str, int]]:
    """The constructor arguments of every block there is, as this GPU would have it."""
    common = {
        "cta.cta_dispatcher": dict(sms=gpu.core.sms),
        "scheduling.warp_scheduler": dict(warps=gpu.core.warps, patience=gpu.core.patience),
    }
    return common | warppool.parameters(gpu)


def parameters(gpu: Gpu) -> dict[str, dict[str, int]]:
    """Those of the blocks of a configuration, and of the unit that joins them."""
    chosen = path(gpu)
    every = arguments(gpu)
    return {name: every[name] for name in (*COMMON, *chosen.blocks, chosen.unit) if name}


def copies(gpu: Gpu, block: str) -> int:
    """How many instances of a block an SM has."""
    counts = {"scheduling.warp_scheduler": gpu.core.schedulers}
    if path(gpu).name == "warppool":
        counts["lsu.intra_warp_coalescer"] = gpu.warppool.coalescers
    return counts.get(block, 1)


def check(gpu: Gpu) -> list[str]:
    """What the selected mechanisms find wrong with a description: one line per error."""
    return [error for name in gpu.mechanisms for error in MECHANISMS[name].check(gpu)]
