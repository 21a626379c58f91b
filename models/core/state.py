"""The state of one streaming multiprocessor, and what its launch shares with the others.

Masks have a bit per warp slot. Cycles are core cycles.
"""

from __future__ import annotations

from lockstep.models.blocks import instance
from lockstep.models.core import warp as W
from lockstep.models.core.events import EVENT_WHEEL
from lockstep.models.core.frame import FRAME, KINDS
from lockstep.models.execution.isa import GRID, INSTRUCTION, Control, Group, Space
from lockstep.models.jit import i64, inline, jit, pointer_to, record
from lockstep.models.lsu.unit import LSU
from lockstep.models.memory.read_cache import READ_CACHE
from lockstep.models.scheduling import warp_scheduler
from lockstep.models.share import share_of, words_of
from lockstep.spec.parameters import (
    CATEGORIES,
    MAX_COLLECTORS,
    MAX_CTAS,
    MAX_GRIDS,
    MAX_REGISTER_BANKS,
    MAX_SCHEDULERS,
    MAX_WARPS,
    PIPES,
)

PIPE_KINDS = len(PIPES)
PIPE_LSU = PIPES.index("lsu")
MAX_PIPES = 4
MAX_INCOMPLETE = 64  # accesses to constants that wait for lines; more do not start
FETCHES = 512  # entries of the ring, of which as many are used as fetches can be in flight

# Why an SM did not issue in a cycle.
ISSUED, STALLED, IDLE, EMPTY = range(4)
NOT_BOUND, SOME_WAIT, ALL_WAIT = range(3)  # ``memory_bound``: unfinished warps wait for memory; ALL: others at barriers

# Counters of one SM. ``sim/device/statistics.py`` gives them their names and units for users.
COUNTERS = record(
    [
        # of instructions, and so of grids
        ("warp_instructions", "i8"),
        ("register_lanes", "i8"),  # 32-bit registers of lanes that execute, read and written
        ("categories", "i8", (len(CATEGORIES),)),  # warp instructions
        ("lanes", "i8", (len(CATEGORIES),)),  # that execute them
        ("control_lanes", "i8", (len(Control),)),  # that execute control instructions, calls and returns left out
        ("generic_lanes", "i8", (len(Space),)),  # of generic loads and stores that reach a space other than global
        ("added_instructions", "i8"),  # warp instructions that a mechanism's pass has added: in no other count
        ("branches", "i8"),
        ("divergent_branches", "i8"),
        ("divergent_halves", "i8"),  # half-warps that a branch splits
        ("barriers", "i8"),
        ("fences", "i8"),
        ("register_reads", "i8"),  # warp registers
        ("register_writes", "i8"),
        ("bank_conflict_cycles", "i8"),  # operand reads that waited for a register bank
        ("scratchpad_accesses", "i8"),  # warp instructions
        ("scratchpad_conflict_cycles", "i8"),
        # of CTAs
        ("ctas", "i8"),
        ("warps", "i8"),
        ("preempted", "i8"),  # how often a CTA left before it ended
        ("resident_warp_cycles", "i8"),
        ("resident_cta_cycles", "i8"),
        ("cycles", "i8"),  # with at least one resident CTA
        ("issued_cycles", "i8"),  # at least one instruction issued
        # of the SM
        ("active_cycles", "i8"),  # Kayiran: N_act, an issue is under way; one takes ``issue_interval`` cycles
        ("stall_cycles", "i8"),  # a warp was ready, every ready one's pipeline was blocked
        ("idle_cycles", "i8"),  # warps resident, none ready
        ("stall_pipe_cycles", "i8", (PIPE_KINDS,)),  # cycles in which ready warps were held back by this pipeline
        ("scheduler_stall_cycles", "i8"),  # summed over schedulers: could have issued, had warps, issued nothing
        ("memory_wait_cycles", "i8"),  # Kayiran: C_mem
        ("memory_blocked_cycles", "i8"),  # some wait for memory, and the L1 refuses a request
        ("other_idle_cycles", "i8"),  # Kayiran: C_idle
        ("gated_cycles", "i8"),  # a gate of a mechanism held back a warp that was ready otherwise
        ("refused_grants", "i8"),  # issue slots lost to a claim
        ("asleep_cycles", "i8"),  # without a CTA, and allowed none
        ("lsu_busy_cycles", "i8"),  # memory instructions wait in the LSU
        ("lsu_stalled_cycles", "i8"),  # the L1 refused a request
    ]
)

SHARE = share_of(COUNTERS, "issued_cycles")
BY_INSTRUCTION = words_of(share_of(COUNTERS, "scratchpad_conflict_cycles"))
"""Counts that an issue changes; the others of a share are counted one by one."""

ALONE = record([("cycles", "i8"), ("issued_cycles", "i8")])
"""Cycles that grid 1 has in its share, and grid 0 has not: of those with both, each has its own."""

FETCH = record(
    [
        ("time", "i8"),  # of arrival
        ("warp", "i4"),
        ("epoch", "i4"),
        ("size", "i4"),  # instructions ...
        ("words", "i4"),  # ... and metadata words
    ]
)

CONSTANT = record(
    [
        ("left", "i8"),  # lines that it waits for, plus one until it has started
        ("ready", "i8"),  # not done before this cycle
        ("slot", "i8"),
        ("pc", "i8"),
    ]
)
"""An access to constants, some of whose lines are on their way."""

SM = record(
    [
        ("index", "i8"),
        ("tenants", "i8"),  # frame slots that have any, as ``frame.HAS_GATES`` and the others
        ("wake", "i8"),  # next cycle in which a step does something: the earliest of the parts' below, and of events
        ("select_wake", "i8"),  # ... in which the choice of warps may differ from the last one
        ("memory_wake", "i8"),  # ... in which the memory side has something to do by itself
        ("last", "i8"),  # first cycle that is not counted yet
        ("resident", "i8"),  # slots with a warp that has not ended
        ("taken", "i8"),  # slots of resident CTAs
        ("ready", "i8"),  # slots whose next instruction may issue
        ("blocked", "i8"),  # slots that wait for a barrier, a branch, an instruction that decides where they go on
        ("memory_wait", "i8"),  # slots whose next instruction waits for a load
        ("at_barrier", "i8"),
        ("by_pipe", "i8", (PIPE_KINDS,)),  # ready slots by the pipeline of their next instruction
        ("by_kind", "i8", (KINDS,)),  # ... and by its kind (``frame``)
        ("ordered", "i8"),  # slots with a memory instruction that has not reached the LSU yet
        ("granted", "i8", (PIPE_KINDS,)),  # instructions that schedulers have granted in this cycle
        ("pipe_free", "i8", (PIPE_KINDS, MAX_PIPES)),
        ("collector", "i8", (PIPE_KINDS, MAX_COLLECTORS)),  # start cycles of the last instructions
        ("collector_at", "i8", (PIPE_KINDS,)),
        ("bank_free", "i8", (MAX_REGISTER_BANKS,)),
        ("next_issue", "i8", (MAX_SCHEDULERS,)),
        ("first", "i8"),  # scheduler that grants before the others
        ("passed_over", "i8"),  # the first that found no collector in this cycle, or -1
        ("settled", "i8"),  # schedulers that had no request and change nothing until an input differs
        ("want_fetch", "i8"),  # slots with room in their buffer
        ("fetching", "i8"),  # slots with a fetch on its way
        ("refetch", "i8"),  # slots whose fetch has missed, and looks the line up again
        ("flushed", "i8"),  # slots that have jumped; who looks at them takes them out
        ("worded", "i8"),  # slots with metadata words in their buffer
        ("refused_fetch", "i8"),  # slots whose fetch has missed and found no MSHR
        ("lacking", "i8"),  # slots whose fetch waits for operands from the constant bank
        ("fetch_pointer", "i8"),
        ("fetch_head", "i8"),
        ("fetch_count", "i8"),
        ("fetch_entries", "i8"),  # of the ring
        ("partition", "i8", (MAX_SCHEDULERS,)),  # slots of each scheduler
        ("active_until", "i8"),  # cycle in which the last issue is over
        ("progress", "i8"),  # last cycle in which a warp ended or passed a barrier
        ("ended", "i8", (MAX_GRIDS,)),  # CTAs of each grid that ended in this step
        # the last step, repeated while the SM sleeps
        ("outcome", "i8"),
        ("stalled_pipes", "i8"),
        ("idle_schedulers", "i8"),
        ("memory_bound", "i8"),
        ("ctas_resident", "i8"),
        ("ctas_of", "i8", (MAX_GRIDS,)),  # of them, those of each grid
        ("issued_of", "i8"),  # grids that have issued in the last step that chose warps, as a mask
        ("second", "i8"),  # slots of CTAs of grid 1
        ("limit", "i8"),  # CTAs that it may hold now, ...
        ("closed", "i8"),  # ... and grids of which it may hold no further one
        ("assigned", "i8"),  # counts CTAs that have come
        ("homes", "i8", (MAX_GRIDS,)),  # of each grid that are taken (``warp.CTA``)
        ("leaving", "i8"),  # warp slots of CTAs that are to leave
        ("saved", "i8"),  # CTAs that have left in this step; or 1 if ``frame.context.closed`` has changed
        # where execution stopped
        ("fault", "i8"),
        ("fault_pc", "i8"),
        ("fault_warp", "i8"),
        ("launch", "i8"),  # host addresses of the records that tenants may need: LAUNCH, parameters.CONFIG
        ("config", "i8"),
        ("counters", COUNTERS),
        ("share", SHARE),
        ("alone", ALONE),
        ("fetch", FETCH, (FETCHES,)),
        ("code", READ_CACHE),
        ("constants", READ_CACHE),
        ("incomplete", "i8"),  # mask of ``constant``
        ("constant", CONSTANT, (MAX_INCOMPLETE,)),
        ("wheel", EVENT_WHEEL),
        ("warp_scheduler", instance("scheduling.warp_scheduler", warp_scheduler.STATE), (MAX_SCHEDULERS,)),
        ("lsu", LSU),
        ("ctas", W.CTA, (MAX_CTAS,)),
        ("warps", W.WARP, (MAX_WARPS,)),
        ("frame", FRAME),
    ]
)

# What all SMs share during a launch.
LAUNCH = record(
    [
        ("execute", "i8", (len(Group),)),  # addresses of the executing functions ...
        ("guide", "i8"),  # ... and of the one that sees each issue (``models/traces``); 0: there is none
        ("predicate_file", "i8"),  # host address: u32[sm][slot][predicate]
        ("grids", GRID, (MAX_GRIDS,)),  # that run at once
    ]
)

at_instruction = pointer_to(INSTRUCTION)
INSTRUCTION_BYTES = INSTRUCTION.itemsize


@inline
def address_of(warp, pc):
    """Where an instruction of a warp stands in host memory."""
    return i64(warp.code) + i64(pc) * INSTRUCTION_BYTES


@inline
def instruction_of(warp, pc):
    """An instruction of a warp."""
    return at_instruction(address_of(warp, pc))


@inline
def is_access(instruction):
    """Whether an instruction may touch memory."""
    group = instruction.group
    return group == Group.MEMORY or group == Group.ATOMIC or group == Group.TEXTURE


@inline
def may_touch_scratchpad(instruction):
    """Whether an instruction accesses the scratchpad, for some addresses at least."""
    group, space = i64(instruction.group), i64(instruction.space)
    access = group == Group.MEMORY or group == Group.ATOMIC
    return access and (space == Space.SHARED or space == Space.GENERIC)


@jit
def stop(sm, fault, slot, pc):
    """End the launch at an instruction."""
    sm.fault = fault
    sm.fault_pc = pc
    sm.fault_warp = slot
