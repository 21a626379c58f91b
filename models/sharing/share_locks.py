"""Golden model of ``rtl/sharing/share_locks.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, ctz, i64, jit, record, slots, without_lowest
from lockstep.models.time import NEVER

PORTS = ports("sharing.share_locks")
STATE = record(
    [
        ("warps", "i8"),  # parameter
        ("ctas", "i8"),  # parameter
        ("schedulers", "i8"),  # parameter
        ("rule", "i8"),  # parameter
    ]
)


@jit
def reset(state, io):
    """The outputs after reset: nobody holds a lock, and nobody waits. There is no other state."""
    clear(io.o)


@jit
def _bit(mask, index):
    return i64(mask) >> i64(index) & 1


@jit
def _needs(io):
    """The slots whose instruction needs a lock."""
    return i64(io.i.registers) | i64(io.i.scratchpad)


@jit
def _slot(state, io, port):
    """The slot that a scheduler has granted, if its instruction needs a lock; else -1."""
    granted = i64(io.i.granted) & i64(_needs(io))
    for slot in range(port, state.warps, state.schedulers):
        if _bit(granted, slot) != 0:
            return slot
    return -1


@jit
def _barred(state, io, slot):
    """Whether the other CTA holds what an instruction needs; with the rule, whether it holds any lock of the pair."""
    seat = io.i.seat[slot]
    other = 1 - i64(seat.side)
    if state.rule != 0:
        return _bit(io.o.holds[other], seat.pair) != 0
    for partner in range(state.warps):
        theirs = io.i.seat[partner]
        holds = _bit(io.i.registers, slot) & _bit(io.o.held, partner)
        if holds != 0 and theirs.side == other and theirs.lock == seat.lock:
            return True
    return _bit(io.i.scratchpad, slot) & _bit(io.o.scratchpads[other], seat.pair) != 0


@jit
def _compete(state, io, one, other):
    """Whether two instructions are of the two CTAs of a pair, and ask for what only one of them may have."""
    a, b = io.i.seat[one], io.i.seat[other]
    if a.pair != b.pair or a.side == b.side:
        return False
    if state.rule != 0:
        return True
    registers, scratchpad = i64(io.i.registers), i64(io.i.scratchpad)
    same_lock = a.lock == b.lock and _bit(registers, one) & _bit(registers, other) != 0
    return same_lock or _bit(scratchpad, one) & _bit(scratchpad, other) != 0


@jit
def _gives_way(state, io, slot, port):
    """Whether a granted instruction is refused for that of another scheduler."""
    other = _slot(state, io, port)
    if other < 0 or not _compete(state, io, slot, other) or _barred(state, io, other):
        return False
    seat = io.i.seat[other]
    return _bit(io.i.older, seat.pair) == seat.side


@jit
def comb(state, io):
    """The instructions that must not issue in this cycle."""
    refuse = i64(0)
    if i64(io.i.granted) & i64(_needs(io)) != 0:
        for port in range(state.schedulers):
            refuse |= i64(_is_refused(state, io, port)) << port
    io.c.refuse = refuse
    return i64(0)


@jit
def _is_refused(state, io, port):
    slot = _slot(state, io, port)
    if slot < 0:
        return False
    refused = _barred(state, io, slot)
    for other in range(state.schedulers):
        refused = refused or _gives_way(state, io, slot, other)
    return refused


@jit
def _waits(state, io, slot):
    """Whether a refused instruction's warp may wait: someone holds a lock of its pair, or takes one in this cycle."""
    if _barred(state, io, slot):
        return True
    for other in range(state.schedulers):
        if _gives_way(state, io, slot, other) and _bit(io.i.refused, other) == 0:
            return True
    return False


@jit
def _wait(state, io):
    """Let the warps of refused instructions wait."""
    for port in range(state.schedulers):
        slot = _slot(state, io, port)
        if slot >= 0 and _waits(state, io, slot):
            io.o.waiting = i64(io.o.waiting) | i64(1) << slot


@jit
def _release(state, io):
    """Give back what warps and CTAs that end hold, and wake the warps of the pairs that get something back."""
    finish = i64(io.i.finish)
    given_back = i64(io.o.held) & finish
    released = i64(io.o.scratchpads[0] & io.i.leave[0] | io.o.scratchpads[1] & io.i.leave[1])
    while given_back != 0:
        released |= i64(1) << i64(io.i.seat[ctz(given_back)].pair)
        given_back = without_lowest(given_back)
    io.o.held = i64(io.o.held) & ~finish
    waiting = i64(io.o.waiting) & ~finish
    for slot in range(state.warps):
        if _bit(released, io.i.seat[slot].pair) != 0:
            waiting &= ~(i64(1) << slot)
    io.o.waiting = waiting
    for side in range(2):
        io.o.scratchpads[side] = i64(io.o.scratchpads[side]) & ~i64(io.i.leave[side])


@jit
def _take(state, io):
    """Take the locks of the instructions that issue."""
    refused = i64(io.i.refused | io.c.refuse)
    for port in range(state.schedulers):
        slot = _slot(state, io, port)
        if slot >= 0 and _bit(refused, port) == 0:
            seat = io.i.seat[slot]
            io.o.held = i64(io.o.held) | i64(io.i.registers) & i64(1) << slot
            scratchpad = _bit(io.i.scratchpad, slot) << i64(seat.pair)
            io.o.scratchpads[seat.side] = i64(io.o.scratchpads[seat.side]) | scratchpad


@jit
def _tell(state, io):
    """Which CTAs hold a lock."""
    for side in range(2):
        io.o.holds[side] = io.o.scratchpads[side]
    held = i64(io.o.held)
    while held != 0:
        seat = io.i.seat[ctz(held)]
        io.o.holds[seat.side] = i64(io.o.holds[seat.side]) | i64(1) << i64(seat.pair)
        held = without_lowest(held)


@jit
def step(state, io):
    """One clock edge, after :func:`comb`. Who is refused waits for what is held now, and a release wakes it at once."""
    _wait(state, io)
    _release(state, io)
    _take(state, io)
    _tell(state, io)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held: nobody needs a lock, and nobody ends."""
    work = i64(io.i.granted) & i64(_needs(io)) | i64(io.i.finish) | i64(io.i.leave[0] | io.i.leave[1])
    return i64(0) if work != 0 else i64(NEVER)


SLOTS = slots(STATE, PORTS, comb=comb, step=step, idle=idle)
