"""The raw counts of a launch, and the conservation laws that they must obey."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lockstep.models.memory import system
from lockstep.models.tenants import Tenant, counts
from lockstep.spec import registry
from lockstep.spec.parameters import Gpu
from lockstep.spec.statistics import L1_ACCESSES, Counts, Raw


def raw_counts(
    run: np.ndarray, sms: np.ndarray, memory: system.Memory, tenants: Sequence[Tenant]
) -> dict[str, np.ndarray]:
    """The raw counts of the frame and of its tenants, in their records: an element per SM, slice or channel."""
    lsu = sms["lsu"]
    raw = {
        "gpu.cycles": run["cycles"].reshape(1),
        **counts("sm", sms["counters"]),
        **counts("lsu", lsu["counts"]),
        **counts("l1", lsu["l1"]["stats"]),
        **counts("instruction_cache", sms["code"]["stats"]),
        **counts("constant_cache", sms["constants"]["stats"]),
        **counts("l2", memory.slices["stats"]),
        **counts("dram", memory.channels["stats"]),
    }  # fmt: skip
    for direction in ("requests", "replies"):
        raw |= counts(direction, memory.record[direction], "packets", "flits", "bytes", "blocked")
    for tenant in tenants:
        raw |= tenant.counts
    return raw


def shares(sms: np.ndarray, memory: system.Memory) -> dict[str, np.ndarray]:
    """What grid 1 has of the raw counts, in the records; the counts that are not here belong to no grid alone.

    ``alone.``: what it has of the cycles of SMs, without those that grid 0 has too.
    """
    lsu = sms["lsu"]
    own = {
        **counts("alone", sms["alone"]),
        **counts("sm", sms["share"]),
        **counts("lsu", lsu["share"]),
        **counts("l1", lsu["l1"]["share"]),
        **counts("instruction_cache", sms["code"]["share"]),
        **counts("constant_cache", sms["constants"]["share"]),
        **counts("l2", memory.slices["share"]),
        **counts("dram", memory.channels["share"]),
    }
    for direction in ("requests", "replies"):
        own |= counts(direction, memory.record[direction]["share"])
    return own


def part(grid: int, raw: Raw, shares: Raw) -> dict[str, np.ndarray]:
    """What a grid has of raw counts, of which grid 1 has ``shares`` (:func:`shares`)."""
    if grid:
        return {name: count.copy() for name, count in shares.items() if name in raw}
    taken = {name: shares.get(name.replace("sm.", "alone."), count) for name, count in shares.items()}
    return {name: raw[name] - count for name, count in taken.items() if name in raw}


def broken(gpu: Gpu, raw: Raw, ctas: int, warps: int, sms: np.ndarray, memory: system.Memory) -> list[str]:
    """The laws that a finished run has broken: those of the frame, of the mechanisms, and of memory.

    None, unless the model is wrong. ``ctas`` and ``warps`` are those of its grids.
    """
    c = Counts(raw, gpu)
    laws = [
        ("CTAs", c("sm.ctas"), ctas),
        ("warps", c("sm.warps"), warps),
        ("instructions by category", c("sm.categories"), c("sm.warp_instructions")),
        ("cycles by outcome", c.sum("sm.issued_cycles", "sm.stall_cycles", "sm.idle_cycles"), c("sm.cycles")),
        ("memory instructions in the LSUs", int(sms["lsu"]["tickets"]["in_flight"].sum()), 0),
        ("events", int(sms["wheel"]["count"].sum()), 0),
        ("lines of the LSUs", c.sum("lsu.lines", "lsu.client_lines"), c.sum(*L1_ACCESSES) + c("lsu.merged")),
    ]
    for mechanism in registry.selected(gpu):
        laws += mechanism.laws(c)
    wrong = [f"{name}: {left} against {right}" for name, left, right in laws if left != right]
    return wrong + system.conservation(memory, sms["lsu"]["l1"], sms["code"], sms["constants"])
