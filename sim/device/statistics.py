"""The statistics of a run: one name, unit, meaning and formula each; the frame's are here, mechanisms declare theirs.

Raw counts (:mod:`lockstep.spec.statistics`) of several launches add up (:func:`accumulate`), and :func:`compute` makes
the statistics from them, for the whole GPU or for one SM, so a ratio is always the ratio of sums. All names are there
in every run. ``python -m lockstep.sim.device.statistics`` prints ``docs/statistics.md``.

Keys carry their units: ``_core_cycles``, ``_dram_cycles``, ``_bytes``. Others are counts, or ratios where the text says
so. A *line* is one request of the coalescer, for one cache line. Counts of instructions are warp
instructions, those of thread instructions the lanes that execute them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lockstep.models.execution.isa import Control, Space
from lockstep.models.memory.dram import ROW_CLOSED, ROW_CONFLICT, ROW_HIT
from lockstep.models.memory.l1 import REFUSALS
from lockstep.models.memory.l2 import STALLS
from lockstep.models.memory.timing import burst
from lockstep.spec import registry
from lockstep.spec.parameters import CATEGORIES, PIPES, Gpu
from lockstep.spec.statistics import CYCLES, L1_ACCESSES, RATIO, Counts, Raw, Statistic, counted, of_gpu, of_sm, ratio
from lockstep.spec.words import closest

__all__ = ["STATISTICS", "Values", "accumulate", "compute", "is_there", "markdown"]


def accumulate(total: Raw, more: Raw) -> dict[str, np.ndarray]:
    """Raw counts of launches one after the other. An empty ``total`` is none so far."""
    return {name: more[name] + total[name] if total else more[name].copy() for name in more}


_SM = (
    of_gpu("gpu.core_cycles", CYCLES, "from launch until the last CTA and its memory traffic have ended",
           lambda c: c("gpu.cycles")),
    counted("sm.active_core_cycles", CYCLES, "sm.cycles", "cycles with a resident CTA, summed over SMs"),
    of_sm("sm.util", RATIO, "share of the launch in which an SM has a CTA; mean over SMs (Kayiran's util)",
          lambda c: ratio(c("sm.cycles"), c("gpu.cycles") * c.sms)),
    counted("sm.ctas", "CTAs", "sm.ctas", "CTAs executed"),
    counted("sm.warps", "warps", "sm.warps", "warps executed"),
    of_sm("occupancy.warps", "warps", "mean resident warps of an SM while it has a CTA",
          lambda c: ratio(c("sm.resident_warp_cycles"), c("sm.cycles"))),
    of_sm("occupancy.ctas", "CTAs", "mean resident CTAs of an SM while it has a CTA",
          lambda c: ratio(c("sm.resident_cta_cycles"), c("sm.cycles"))),
    of_sm("occupancy.ratio", RATIO, "mean resident warps / warps that an SM can hold",
          lambda c: ratio(c("sm.resident_warp_cycles"), c("sm.cycles") * c.gpu.core.warps)),
    counted("sm.asleep_core_cycles", CYCLES, "sm.asleep_cycles", "cycles in which a mechanism allows no CTA"),
    counted("sm.preempted_ctas", "CTAs", "sm.preempted", "preemptions: CTAs that left their SM, to be resumed later"),
)  # fmt: skip

_ISSUE = (
    counted("issue.warp_instructions", "instructions", "sm.warp_instructions", "warp instructions issued"),
    counted("issue.thread_instructions", "instructions", "sm.lanes",
            "executing lanes, summed over these instructions"),
    counted("issue.added_instructions", "instructions", "sm.added_instructions",
            "warp instructions added by the compiler passes of mechanisms; not in any other count of instructions"),
    of_sm("issue.ipc", RATIO, "warp instructions per core cycle of the launch",
          lambda c: ratio(c("sm.warp_instructions"), c("gpu.cycles"))),
    of_sm("issue.lanes", "lanes", "mean executing lanes of a warp instruction",
          lambda c: ratio(c("sm.lanes"), c("sm.warp_instructions"))),
    of_sm("issue.slots_used", RATIO, "warp instructions / issue slots while the SM has a CTA (Kloosterman's issue %)",
          lambda c: ratio(c("sm.warp_instructions") * max(c.gpu.core.issue_interval, c.gpu.core.scheduler_overhead),
                          c("sm.cycles") * c.gpu.core.schedulers)),
    counted("issue.issued_core_cycles", CYCLES, "sm.issued_cycles", "cycles in which at least one instruction issued"),
    counted("issue.stall_core_cycles", CYCLES, "sm.stall_cycles",
            "cycles in which warps were ready and none issued: the pipelines of all were blocked (Jatala's stall)"),
    counted("issue.idle_core_cycles", CYCLES, "sm.idle_cycles",
            "cycles in which warps were resident, and none was ready (Jatala's idle)"),
    *(counted(f"issue.stall_{pipe}_core_cycles", CYCLES, "sm.stall_pipe_cycles",
              f"cycles in which the {pipe.upper()} pipelines held back a ready warp, even if another issued", index)
      for index, pipe in enumerate(PIPES)),
    counted("issue.scheduler_stall_core_cycles", CYCLES, "sm.scheduler_stall_cycles",
            "cycles in which a scheduler had warps and could have issued, but did not; summed over schedulers "
            "(Chen's stall cycles)"),
    counted("issue.c_mem_core_cycles", CYCLES, "sm.memory_wait_cycles",
            "cycles without an issue under way, in which all unfinished warps wait for memory or at a barrier, and at "
            "least one for memory (Kayiran's C_mem)"),
    counted("issue.c_mem_blocked_core_cycles", CYCLES, "sm.memory_blocked_cycles",
            "cycles without an issue under way, in which a warp waits for memory and the L1 refuses a request"),
    counted("issue.c_idle_core_cycles", CYCLES, "sm.other_idle_cycles",
            "idle cycles without an issue under way that are not in C_mem (Kayiran's C_idle)"),
    counted("issue.gated_core_cycles", CYCLES, "sm.gated_cycles",
            "cycles in which a mechanism held back a ready warp, even if another issued"),
    counted("issue.refused_grants", "issue slots", "sm.refused_grants",
            "granted instructions that a mechanism refused; their cycles count as idle, not as a stall"),
    of_sm("issue.ract", RATIO,
          "share of the launch in which SMs issue; an issue counts for its whole interval (Kayiran's RACT)",
          lambda c: ratio(c("sm.active_cycles"), c("gpu.cycles") * c.sms)),
    *(counted(f"instructions.{category}", "instructions", "sm.categories",
              f"warp instructions of the category {category}", index) for index, category in enumerate(CATEGORIES)),
    *(counted(f"lanes.{category}", "thread instructions", "sm.lanes",
              f"executing lanes, summed over the instructions of the category {category}", index)
      for index, category in enumerate(CATEGORIES)),
    counted("control.branches", "instructions", "sm.branches", "branches executed"),
    counted("control.divergent_branches", "instructions", "sm.divergent_branches", "branches that split their warp"),
    counted("control.divergent_half_warps", "half-warps", "sm.divergent_halves", "half-warps that branches split"),
    counted("control.barriers", "instructions", "sm.barriers", "barrier instructions, per warp"),
    counted("control.fences", "instructions", "sm.fences", "memory fences, per warp"),
    counted("registers.reads", "registers", "sm.register_reads", "warp registers read"),
    counted("registers.writes", "registers", "sm.register_writes", "warp registers written"),
    counted("registers.bank_conflict_core_cycles", CYCLES, "sm.bank_conflict_cycles",
            "cycles of operand collection beyond the first, summed over instructions"),
    counted("scratchpad.accesses", "instructions", "sm.scratchpad_accesses", "instructions that touch the scratchpad"),
    counted("scratchpad.conflict_core_cycles", CYCLES, "sm.scratchpad_conflict_cycles",
            "cycles that bank conflicts add: those of each access beyond its first"),
)  # fmt: skip

_LSU = (
    counted("lsu.instructions", "instructions", "lsu.line_instructions", "instructions that use the L1"),
    counted("lsu.requests", "lines", "lsu.lines", "lines that these instructions request"),
    counted("lsu.client_lines", "lines", "lsu.client_lines", "lines requested by mechanisms other than the path"),
    of_sm("lsu.requests_per_instruction", RATIO, "lines requested per instruction that uses the L1",
          lambda c: ratio(c("lsu.lines"), c("lsu.line_instructions"))),
    counted("lsu.uncoalesced", "instructions", "lsu.uncoalesced", "instructions that need more than one line"),
    counted("lsu.busy_core_cycles", CYCLES, "sm.lsu_busy_cycles", "cycles in which a line waits for the L1"),
    of_sm("lsu.waiting", RATIO,
          "share of the cycles with a resident CTA in which a line waits for the L1 (Kloosterman's throughput limit)",
          lambda c: ratio(c("sm.lsu_busy_cycles"), c("sm.cycles"))),
    counted("lsu.stalled_core_cycles", CYCLES, "sm.lsu_stalled_cycles", "cycles in which the L1 refused a line"),
    of_sm("lsu.stalled", RATIO,
          "share of the cycles with a resident CTA in which the L1 refused a line (Kloosterman's LSU-stalled %)",
          lambda c: ratio(c("sm.lsu_stalled_cycles"), c("sm.cycles"))),
)  # fmt: skip

_L1_LOOKUPS = ("l1.hits", "l1.misses", "l1.merges")

_L1 = (
    of_sm("l1.accesses", "lines", "all lines that the L1 accepted", lambda c: c.sum(*L1_ACCESSES)),
    counted("l1.loads", "lines", "l1.loads", "global and texture loads"),
    counted("l1.stores", "lines", "l1.stores", "global stores"),
    counted("l1.atomics", "lines", "l1.atomics", "atomics, which the L2 executes"),
    counted("l1.bypass_loads", "lines", "l1.bypass_loads", "loads that bypass the L1"),
    counted("l1.local_loads", "lines", "l1.local_loads", "loads from local memory"),
    counted("l1.local_stores", "lines", "l1.local_stores", "stores to local memory"),
    counted("l1.local_drops", "lines", "l1.local_drops", "lines of registers that are no longer needed"),
    counted("l1.hits", "lines", "l1.hits", "loads and local stores that hit"),
    counted("l1.stale_hits", "lines", "lsu.stale",
            "hits of global loads that gave other bytes than memory had then (only where `l1.values` is `lines`)"),
    counted("l1.misses", "lines", "l1.misses", "loads and local stores that missed and took an MSHR"),
    counted("l1.merges", "lines", "l1.merges", "loads and local stores that missed and joined an MSHR"),
    of_sm("l1.miss_rate", RATIO, "(misses + merges) / (loads + local stores)",
          lambda c: ratio(c.sum("l1.misses", "l1.merges"), c.sum(*_L1_LOOKUPS))),
    of_sm("l1.mpki", RATIO, "misses per thousand warp instructions",
          lambda c: ratio(1000 * c("l1.misses"), c("sm.warp_instructions"))),
    counted("l1.evictions", "lines", "l1.evictions", "valid lines replaced by others"),
    counted("l1.write_backs", "lines", "l1.write_backs", "dirty lines of local memory among the evicted ones"),
    counted("l1.store_evictions", "lines", "l1.store_evictions", "valid lines evicted by a global store or atomic"),
    *(counted(f"l1.stall_{cause}_core_cycles", CYCLES, "l1.stalls", f"cycles with a line refused: {text}", index)
      for index, (cause, text) in enumerate(zip(REFUSALS, (
          "no free MSHR", "its MSHR serves no more requests", "the queue to the crossbar was full",
          "every way of its set was reserved", "no room for another response"), strict=True))),
    counted("l1.fetches", "lines", "l1.fetches", "lines, or parts of lines, requested from the L2"),
    counted("l1.out_bytes", "bytes", "l1.bytes_out", "data sent to the L2, without headers"),
    counted("l1.in_bytes", "bytes", "l1.bytes_in", "data received from the L2, without headers"),
    of_sm("l1.lat_rt_core_cycles", CYCLES, "mean round trip of a fetch, from the L1 and back (Kayiran's lat_rt)",
          lambda c: ratio(c("l1.round_trip"), c("l1.fetches"))),
)  # fmt: skip


def _read_cache(name: str, what: str) -> tuple[Statistic, ...]:
    return (
        counted(f"{name}.hits", "accesses", f"{name}.hits", f"{what} that hit"),
        counted(f"{name}.misses", "accesses", f"{name}.misses", f"{what} that missed, or joined a miss"),
        counted(f"{name}.fetches", "lines", f"{name}.requests", "lines requested from the L2"),
    )


_READ_CACHES = (
    *_read_cache("instruction_cache", "fetches"),
    *_read_cache("constant_cache", "lines of accesses to constants and kernel parameters"),
)


def _crossbar(direction: str, text: str) -> tuple[Statistic, ...]:
    return (
        counted(f"crossbar.{direction}_packets", "packets", f"{direction}.packets", f"packets {text}"),
        counted(f"crossbar.{direction}_flits", "flits", f"{direction}.flits", f"flits {text}"),
        counted(f"crossbar.{direction}_bytes", "bytes", f"{direction}.bytes", f"headers and data {text}"),
        counted(f"crossbar.{direction}_blocked_core_cycles", CYCLES, f"{direction}.blocked",
                f"cycles in which a sender waited for a buffer; summed over senders {text}"),
    )  # fmt: skip


_L2_REQUESTS = ("l2.reads", "l2.writes", "l2.atomics")

_L2 = (
    *_crossbar("requests", "from the SMs to the L2"),
    *_crossbar("replies", "from the L2 to the SMs"),
    of_gpu("l2.accesses", "requests", "requests looked up", lambda c: c.sum(*_L2_REQUESTS)),
    counted("l2.reads", "requests", "l2.reads", "reads, of a line or a part"),
    counted("l2.writes", "requests", "l2.writes", "writes, of a line or a part"),
    counted("l2.atomics", "requests", "l2.atomics", "atomics"),
    counted("l2.hits", "requests", "l2.hits", "requests that hit"),
    counted("l2.misses", "requests", "l2.misses", "requests that missed and took an MSHR"),
    counted("l2.merges", "requests", "l2.merges", "requests that missed and joined an MSHR"),
    of_gpu("l2.miss_rate", RATIO, "(misses + merges) / requests",
           lambda c: ratio(c.sum("l2.misses", "l2.merges"), c.sum(*_L2_REQUESTS))),
    of_gpu("l2.mpki", RATIO, "misses per thousand warp instructions",
           lambda c: ratio(1000 * c("l2.misses"), c("sm.warp_instructions"))),
    counted("l2.evictions", "lines", "l2.evictions", "valid lines replaced by others"),
    counted("l2.write_backs", "lines", "l2.write_backs", "dirty lines among the evicted ones"),
    *(counted(f"l2.stall_{cause}_core_cycles", CYCLES, "l2.stalls", f"cycles with a stalled look-up: {text}", index)
      for index, (cause, text) in enumerate(zip(STALLS, (
          "no free MSHR", "the MSHR serves no more requests", "the DRAM queue was full",
          "every way of the set was reserved", "replies waited for the crossbar"), strict=True))),
    counted("l2.in_bytes", "bytes", "l2.bytes_in", "data in writes and atomics"),
    counted("l2.out_bytes", "bytes", "l2.bytes_out", "data in replies"),
)  # fmt: skip

_DRAM_REQUESTS = ("dram.reads", "dram.writes")


def _bus_cycles(c: Counts) -> int:
    return burst(c.gpu) * c.sum(*_DRAM_REQUESTS)


_DRAM = (
    counted("dram.reads", "sectors", "dram.reads", "sectors read, a burst each; a sector is a line, or a part of one"),
    counted("dram.writes", "sectors", "dram.writes", "sectors written"),
    counted("dram.read_bytes", "bytes", "dram.bytes_read", "data read, without what bursts bring beyond sectors"),
    counted("dram.written_bytes", "bytes", "dram.bytes_written", "data written, in whole sectors"),
    counted("dram.row_hits", "sectors", "dram.rows", "sectors that found their row open", ROW_HIT),
    counted("dram.row_closed", "sectors", "dram.rows", "sectors that found no row open", ROW_CLOSED),
    counted("dram.row_conflicts", "sectors", "dram.rows", "sectors that found another row open", ROW_CONFLICT),
    of_gpu("dram.row_hit_rate", RATIO, "row hits / sectors",
           lambda c: ratio(c("dram.rows", ROW_HIT), c.sum(*_DRAM_REQUESTS))),
    counted("dram.activates", "commands", "dram.activates", "rows opened"),
    counted("dram.precharges", "commands", "dram.precharges", "rows closed"),
    of_gpu("dram.busy_dram_cycles", "DRAM cycles", "cycles in which bursts occupy a data bus, summed over channels",
           _bus_cycles),
    of_gpu("dram.bandwidth_used", RATIO, "share of the launch in which bursts occupy a data bus; mean over channels",
           lambda c: ratio(_bus_cycles(c) * c.gpu.clocks.core,
                           c("gpu.cycles") * c.gpu.clocks.dram * c.gpu.dram.channels)),
)  # fmt: skip

_LANES = "thread instructions"
_ALU = tuple(name for name in CATEGORIES[: CATEGORIES.index("shared")] if not name.startswith("special"))


def _chen(name: str, unit: str, doc: str, formula: Callable[[Counts], float]) -> Statistic:
    return Statistic(f"chen.{name}", unit, f"{doc} (Chen table 3-1)", formula, True)


def _control(c: Counts, *operations: Control) -> int:
    return sum(c("sm.control_lanes", operation) for operation in operations)


def _generic(c: Counts, *spaces: Space) -> int:
    return sum(c("sm.generic_lanes", space) for space in spaces)


# Names as in the paper. Textures may share a cache with data; there is one for constants and kernel parameters.
_CHEN = (
    _chen("ShMInst", _LANES, "shared memory instructions", lambda c: c.lanes("shared") + _generic(c, Space.SHARED)),
    _chen("PMInst", _LANES, "parameter memory instructions", lambda c: c.lanes("param") + _generic(c, Space.PARAM)),
    _chen("LMInst", _LANES, "local memory instructions", lambda c: c.lanes("local") + _generic(c, Space.LOCAL)),
    _chen("GMInst", _LANES, "global memory instructions; a generic access counts where it reaches",
          lambda c: c.lanes("global") - _generic(c, Space.SHARED, Space.PARAM, Space.LOCAL)),
    _chen("TMInst.hit", "lines", "texture accesses that hit in the L1, or in their own cache",
          lambda c: c("lsu.texture_hits")),
    _chen("TMInst.miss", "lines", "texture accesses that missed there", lambda c: c("lsu.texture_misses")),
    _chen("CMInst.hit", "lines", "accesses that hit in the constant cache", lambda c: c("constant_cache.hits")),
    _chen("CMInst.miss", "lines", "accesses that missed in it, or joined a miss", lambda c: c("constant_cache.misses")),
    _chen("Register", "registers of threads", "32-bit registers that instructions read and write",
          lambda c: c("sm.register_lanes")),
    _chen("S.FP", _LANES, "single precision, with the software sequences of divisions",
          lambda c: c.lanes("float", "divide")),
    _chen("D.FP", _LANES, "double precision, likewise", lambda c: c.lanes("double", "divide_double")),
    _chen("INT", _LANES, "integer and logical, likewise",
          lambda c: c.lanes("integer", "logical", "multiply", "shift", "divide_integer")),
    _chen("ALU", _LANES, "everything that is neither memory nor special function", lambda c: c.lanes(*_ALU)),
    _chen("SFU", _LANES, "special functions", lambda c: c.lanes("special", "special_double")),
    _chen("Atomic", _LANES, "atomics", lambda c: c.lanes("atomic")),
    _chen("Barrier", _LANES, "`bar` and `barrier`, also of one warp",
          lambda c: _control(c, Control.BARRIER, Control.ARRIVE, Control.REDUCE, Control.WARP_SYNC)),
    _chen("M.Barrier", _LANES, "memory fences", lambda c: _control(c, Control.FENCE)),
    _chen("Branch", _LANES, "`bra` and `brx`, also uniform ones",
          lambda c: _control(c, Control.BRANCH, Control.INDEXED)),
    _chen("UncoalesMem", _LANES,
          "global loads and stores of more lines than their bytes need; by half-warps where these are coalesced",
          lambda c: c("lsu.uncoalesced_lanes")),
    _chen("D.Branch", "instructions", "branches that split their warp, or the half-warps that they split",
          lambda c: c("sm.divergent_halves" if c.gpu.core.coalescing == "half-warp" else "sm.divergent_branches")),
    _chen("BankConf", "core cycles", "scratchpad bank conflicts; the caches have one bank",
          lambda c: c("sm.scratchpad_conflict_cycles")),
    _chen("Occupancy", RATIO, "mean resident warps / warps that an SM can hold",
          lambda c: ratio(c("sm.resident_warp_cycles"), c("sm.cycles") * c.gpu.core.warps)),
)  # fmt: skip

GROUPS: dict[str, tuple[Statistic, ...]] = {
    "Time and occupancy": _SM,
    "Issue and execution": _ISSUE,
    "Load/store unit": _LSU,
    **{f"Mechanism `{m.name}`": m.statistics for m in registry.MECHANISMS.values() if m.statistics},
    "L1 data cache": _L1,
    "Instruction and constant caches": _READ_CACHES,
    "Crossbar and L2": _L2,
    "DRAM": _DRAM,
    "Characteristics for power models": _CHEN,
}

STATISTICS: dict[str, Statistic] = {statistic.name: statistic for group in GROUPS.values() for statistic in group}


class Values(dict[str, float]):
    """Statistics by name. The KeyError for an unknown one suggests the nearest."""

    def __missing__(self, name: str) -> float:
        raise KeyError(f"no statistic {name!r}{closest(name, self)}; see docs/statistics.md")


def compute(raw: Raw, gpu: Gpu, sm: int | None = None, some: bool = False) -> Values:
    """All statistics of the whole GPU, or those that one SM has; of a mechanism that is not selected, 0.

    ``some``: only those whose counts are there, without mechanisms'.
    """
    absent = {mechanism.area for name, mechanism in registry.MECHANISMS.items() if name not in gpu.mechanisms}
    counts = Counts(raw, gpu, sm, absent)
    chosen = {name: s for name, s in STATISTICS.items() if sm is None or s.per_sm}
    if some:
        counts = Counts(raw, gpu, sm)
        chosen = {name: s for name, s in chosen.items() if is_there(s, counts)}
    return Values((name, s.formula(counts)) for name, s in chosen.items())


def is_there(statistic: Statistic, counts: Counts) -> bool:
    """Whether all counts of a statistic are there."""
    try:
        statistic.formula(counts)
    except KeyError:
        return False
    return True


def markdown() -> str:
    """``docs/statistics.md``."""
    lines = [
        "# Statistics",
        "",
        "Every statistic of a run (`stats` in the JSON, `run.stats` in Python). Generated by",
        "`python -m lockstep.sim.device.statistics > docs/statistics.md`.",
        "",
        "Counts are sums over SMs, slices or channels, and over launches; ratios are ratios of such sums. Statistics",
        "marked *SM* are also given for each SM (`run.per_sm`), and [some](timelines.md#statistics-over-time) over",
        "time. Instructions are warp instructions; thread instructions are the lanes that execute them. A line is one",
        "request of the coalescer. A statistic that a paper defines names its first author: Jatala (register sharing),",
        "Kloosterman (WarpPool, RegLess, Scavenger), Kayiran (DYNCTA), Chen (warp scheduling and power).",
    ]
    for title, group in GROUPS.items():
        lines += ["", f"## {title}", "", "| name | unit | per | meaning |", "|---|---|---|---|"]
        lines += [f"| `{s.name}` | {s.unit} | {'SM' if s.per_sm else 'GPU'} | {s.doc} |" for s in group]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
