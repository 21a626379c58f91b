"""Warps, their reconvergence stacks, and CTAs with their barriers.

A warp executes the entry on top of its stack: ``pc`` and ``mask``, until ``pc`` reaches ``rpc``, where the entry below
takes over (reconvergence at the immediate post-dominator). The top is kept in the warp's own fields; the arrays hold
what lies below it.
"""

from __future__ import annotations

from lockstep.models.execution.isa import LANES, Fault
from lockstep.models.jit import ctz, i64, inline, jit, popcount, record
from lockstep.spec.parameters import Core

STACK = 64  # entries; the largest value of core.reconvergence_stack
BARRIERS = 16
PUT_OFF = 4  # instructions of a warp that have issued and wait for their sources

assert Core.__dataclass_fields__["reconvergence_stack"].metadata["high"] == STACK

PUT_OFF_INSTRUCTION = record(
    [
        ("mask", "i8"),  # lanes that execute ...
        ("active", "i8"),  # ... of those that were on top of the stack
        ("pc", "i4"),
        ("collector", "i4"),  # that it holds
    ]
)

WARP = record(
    [
        ("pc", "i4"),
        ("rpc", "i4"),
        ("mask", "i8"),  # lanes on top of the stack
        ("depth", "i4"),  # entries below the top
        ("cta", "i4"),  # CTA slot
        ("index", "i4"),  # warp in its CTA
        ("issued", "i8"),  # cycle of its last issue, or of its start, for who asks what it waits for ...
        ("issued_pc", "i4"),  # ... and the instruction; -1: none yet
        ("pipe", "i4"),  # of the next instruction, when it is ready ...
        ("kind", "i4"),  # ... and its kind, for gates
        ("buffered", "i4"),  # instructions in the buffer ...
        ("words", "i4"),  # ... and metadata words, of which the first one ...
        ("first_word", "i4"),  # ... is this one of the kernel's
        ("fetched_words", "i4"),  # metadata words, of those before the next instruction to be fetched
        ("code_address", "i8"),  # device address of the instructions
        ("epoch", "i4"),  # counts jumps: what was fetched before one is dropped
        ("outstanding", "i4"),  # memory instructions not yet performed
        ("length", "i4"),  # of its code, instructions
        ("code", "i8"),  # host address
        ("words_to", "i8"),  # ... of i4: metadata words up to each instruction, from the kernel's begin; 0: it has none
        ("alive", "i8"),  # lanes that have not exited
        ("present", "i8"),  # lanes that exist
        ("pending", "u8", (4,)),  # registers to be written
        ("from_memory", "u8", (4,)),  # those of them that a load or an atomic will write
        ("pending_predicates", "u8"),
        ("put_off_first", "i4"),
        ("put_off_count", "i4"),
        ("own_registers", "i8"),  # how many registers are the warp's own, the lowest; the others are its pair's
        ("regs", "i8"),  # host addresses: own registers, the pair's (as if it had all), predicates, local memory
        ("pair_regs", "i8"),
        ("preds", "i8"),
        ("local", "i8"),
        ("local_physical", "i8"),  # device address of local memory
        ("stack_pc", "i4", (STACK,)),
        ("stack_rpc", "i4", (STACK,)),
        ("stack_mask", "i8", (STACK,)),
        ("put_off", PUT_OFF_INSTRUCTION, (PUT_OFF,)),
    ]
)

CTA = record(
    [
        ("grid", "i4"),  # index in the launch
        ("live", "i4"),  # warps that have not ended
        ("slots", "i8"),  # its warp slots, which follow each other ...
        ("warps", "i8"),  # ... those whose warps have not ended ...
        ("waiting", "i8"),  # ... and those that wait at any barrier
        ("index", "i8"),  # linear CTA number in the grid
        ("assigned", "i8"),  # counts the CTAs that have come to the SM
        ("home", "i8"),  # number among its grid's CTAs that the SM holds or has sent out, where contexts are moved
        ("row", "i8"),  # its first row of local memory
        ("ctaid", "i4", (3,)),
        ("registers", "i8"),  # host address of its first warp's registers, the others' follow
        ("shared", "i8"),  # ... of its scratchpad, ...
        ("own_shared", "i8"),  # ... how many of its first bytes (a multiple of 32) are its own; the rest are its pair's
        ("pair_shared", "i8"),  # host address of the pair's, as if it had all; who sets it poisons it, and sets ...
        ("pair_marks", "i8"),  # ... the distance of its marks (``execution.written``); 0: none are kept
        ("arrived", "i4", (BARRIERS,)),  # threads
        ("expected", "i4", (BARRIERS,)),  # threads; 0: all of the CTA
        ("at", "i8", (BARRIERS,)),  # slots that wait here
        ("votes", "i4", (BARRIERS,)),  # bar.red: threads with a true predicate ...
        ("voters", "i4", (BARRIERS,)),  # ... and threads that took part
    ]
)


@inline
def register_address(warp, register):
    """Host address of a register's lanes."""
    base = i64(warp.regs) if register < warp.own_registers else i64(warp.pair_regs)
    return base + register * (4 * LANES)


@jit
def start(warp, lanes_present, end, now):
    """A fresh warp at the kernel's first instruction; it reconverges at ``end``, which is never executed."""
    warp.pc = 0
    warp.issued = now
    warp.issued_pc = -1
    warp.rpc = end
    warp.mask = lanes_present
    warp.present = lanes_present
    warp.alive = lanes_present
    warp.depth = 0
    warp.buffered = 0
    warp.outstanding = 0
    warp.pending_predicates = 0
    warp.put_off_first = 0
    warp.put_off_count = 0
    for k in range(4):
        warp.pending[k] = 0
        warp.from_memory[k] = 0


@jit
def pop_reconverged(warp):
    """Leave entries that have reached their reconvergence point, and those whose lanes have all exited."""
    while warp.depth > 0 and (warp.pc == warp.rpc or warp.mask == 0):
        warp.depth -= 1
        d = i64(warp.depth)
        warp.pc = warp.stack_pc[d]
        warp.rpc = warp.stack_rpc[d]
        warp.mask = warp.stack_mask[d]


@jit
def _push(warp, pc, rpc, mask, limit):
    """Put the present top below a new one. Returns a fault when the stack is full."""
    if warp.depth >= limit:
        return i64(Fault.STACK_OVERFLOW)
    d = i64(warp.depth)
    warp.stack_pc[d] = warp.pc
    warp.stack_rpc[d] = warp.rpc
    warp.stack_mask[d] = warp.mask
    warp.depth += 1
    warp.pc = pc
    warp.rpc = rpc
    warp.mask = mask
    return i64(Fault.NONE)


@jit
def branch(warp, target, reconverge, taken, limit):
    """Go to ``target`` in the lanes ``taken``, fall through in the others.

    A diverging warp runs the fall-through side first. The entry that waits at the reconvergence point is made only
    where it is not the entry below already, so a loop that lanes leave one by one does not grow the stack.
    """
    active = i64(warp.mask)
    rest = active & ~taken
    following = i64(warp.pc) + 1
    fault = i64(Fault.NONE)
    if rest == 0:
        warp.pc = target
    elif taken == 0:
        warp.pc = following
    elif reconverge == warp.rpc and warp.depth > 0:
        if target == reconverge:
            warp.pc = following
            warp.mask = rest
        elif following == reconverge:
            warp.pc = target
            warp.mask = taken
        else:
            warp.pc = target
            warp.mask = taken
            fault = _push(warp, following, reconverge, rest, limit)
    else:
        warp.pc = reconverge
        if target != reconverge:
            fault = _push(warp, target, reconverge, taken, limit)
        if following != reconverge and fault == Fault.NONE:
            fault = _push(warp, following, reconverge, rest, limit)
    pop_reconverged(warp)
    return fault


@jit
def branch_indexed(warp, targets, reconverge, mask, limit):
    """Go to ``targets[lane]`` in each lane of ``mask``; lanes outside it fall through."""
    rest = i64(warp.mask) & ~mask
    following = i64(warp.pc) + 1
    warp.pc = reconverge
    fault = i64(Fault.NONE)
    if rest != 0:
        fault = _push(warp, following, reconverge, rest, limit)
    while mask != 0 and fault == Fault.NONE:
        pc = i64(targets[ctz(mask)])
        same = i64(0)
        for lane in range(LANES):
            if (mask >> lane) & 1 != 0 and targets[lane] == pc:
                same |= i64(1) << lane
        mask &= ~same
        if pc != reconverge:
            fault = _push(warp, pc, reconverge, same, limit)
    pop_reconverged(warp)
    return fault


@jit
def exit_lanes(warp, mask):
    """Lanes leave the kernel. Returns 1 when the warp has ended."""
    warp.alive = i64(warp.alive) & ~mask
    warp.mask = i64(warp.mask) & ~mask
    for d in range(warp.depth):
        warp.stack_mask[d] = i64(warp.stack_mask[d]) & ~mask
    if warp.alive == 0:
        return i64(1)
    if warp.mask != 0:
        warp.pc += 1
    pop_reconverged(warp)
    return i64(0)


@jit
def arrive(cta, barrier, slot, warp, threads, waits):
    """A warp reaches a barrier; ``threads`` = 0 means all threads of the CTA.

    A whole warp counts as 32 threads whatever its number of lanes, as the hardware counts.
    """
    whole = i64(warp.mask) == i64(warp.alive)
    cta.arrived[barrier] += LANES if whole else popcount(i64(warp.mask))
    cta.expected[barrier] = threads
    if waits:
        cta.at[barrier] = i64(i64(cta.at[barrier]) | i64(1) << slot)
        cta.waiting = i64(cta.waiting) | (i64(1) << slot)


@jit
def complete(cta, barrier):
    """Whether everybody expected has arrived."""
    expected = i64(cta.expected[barrier])
    if expected == 0:
        expected = i64(cta.live) * LANES
    return cta.arrived[barrier] > 0 and cta.arrived[barrier] >= expected


@jit
def release(cta, barrier):
    """Open a barrier; returns the slots that waited."""
    slots = i64(cta.at[barrier])
    cta.at[barrier] = 0
    cta.arrived[barrier] = 0
    cta.votes[barrier] = 0
    cta.voters[barrier] = 0
    cta.waiting = i64(cta.waiting) & ~slots
    return slots
