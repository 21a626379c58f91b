"""Golden model of ``rtl/sharing/share_locks.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, i64, jit, record, slots
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
def _needs(ask):
    return i64(ask.valid & (ask.payload.registers | ask.payload.scratchpad))


@jit
def _barred(state, io, port):
    """Whether the other CTA holds what an instruction needs; with the rule, whether it holds any lock of the pair."""
    ask = io.i.ask[port]
    need, other = ask.payload, 1 - i64(ask.payload.side)
    if _needs(ask) == 0:
        return False
    if state.rule != 0:
        return _bit(io.o.holds[other], need.pair) != 0
    if need.registers != 0 and _bit(io.o.held[other], need.lock) != 0:
        return True
    return need.scratchpad != 0 and _bit(io.o.scratchpads[other], need.pair) != 0


@jit
def _compete(state, io, one, other):
    """Whether two instructions are of the two CTAs of a pair, and ask for what only one of them may have."""
    a, b = io.i.ask[one].payload, io.i.ask[other].payload
    if _needs(io.i.ask[one]) & _needs(io.i.ask[other]) == 0 or a.pair != b.pair or a.side == b.side:
        return False
    if state.rule != 0:
        return True
    return (a.registers & b.registers != 0 and a.lock == b.lock) or a.scratchpad & b.scratchpad != 0


@jit
def _gives_way(state, io, port, other):
    """Whether a port's instruction is refused for that of another one."""
    ask = io.i.ask[other].payload
    older = _bit(io.i.older, ask.pair) == ask.side
    return older and _compete(state, io, port, other) and not _barred(state, io, other)


@jit
def comb(state, io):
    """The instructions that must not issue in this cycle."""
    refuse = i64(0)
    for port in range(state.schedulers):
        refused = _barred(state, io, port)
        for other in range(state.schedulers):
            refused = refused or _gives_way(state, io, port, other)
        refuse |= i64(refused) << port
    io.c.refuse = refuse
    return i64(0)


@jit
def _waits(state, io, port):
    """Whether a refused instruction's warp may wait: someone holds a lock of its pair, or takes one in this cycle."""
    if _barred(state, io, port):
        return True
    for other in range(state.schedulers):
        if _gives_way(state, io, port, other) and _bit(io.i.refused, other) == 0:
            return True
    return False


@jit
def _wait(state, io):
    """Let the warps of refused instructions wait."""
    for port in range(state.schedulers):
        if _waits(state, io, port):
            need = io.i.ask[port].payload
            io.o.waiting[need.side] = i64(io.o.waiting[need.side]) | i64(1) << i64(need.lock)


@jit
def _locks(state, io, pair):
    """The register locks of a pair; none if there are not enough for it."""
    per_cta = i64(io.i.per_cta)
    if (pair + 1) * per_cta > max(i64(1), state.warps // 2):
        return i64(0)
    return (i64(1) << per_cta) - 1 << pair * per_cta


@jit
def _release(state, io):
    """Give back what warps and CTAs that end hold, and wake the warps of the pairs that get something back."""
    given_back = i64(io.o.held[0] & io.i.finish[0] | io.o.held[1] & io.i.finish[1])
    left = i64(io.o.scratchpads[0] & io.i.leave[0] | io.o.scratchpads[1] & io.i.leave[1])
    woken = i64(0)
    for pair in range(max(i64(1), state.ctas // 2)):
        locks = _locks(state, io, pair)
        if given_back & locks | _bit(left, pair) != 0:
            woken |= locks
    for side in range(2):
        finish = i64(io.i.finish[side])
        io.o.held[side] = i64(io.o.held[side]) & ~finish
        io.o.scratchpads[side] = i64(io.o.scratchpads[side]) & ~i64(io.i.leave[side])
        io.o.waiting[side] = i64(io.o.waiting[side]) & ~(finish | woken)


@jit
def _take(state, io):
    """Take the locks of the instructions that issue."""
    refused = i64(io.i.refused | io.c.refuse)
    for port in range(state.schedulers):
        ask = io.i.ask[port]
        if ask.valid != 0 and _bit(refused, port) == 0:
            need = ask.payload
            side = i64(need.side)
            io.o.held[side] = i64(io.o.held[side]) | i64(need.registers) << i64(need.lock)
            io.o.scratchpads[side] = i64(io.o.scratchpads[side]) | i64(need.scratchpad) << i64(need.pair)


@jit
def _tell(state, io):
    """Which CTAs hold a lock."""
    for side in range(2):
        holds = i64(io.o.scratchpads[side])
        for pair in range(max(i64(1), state.ctas // 2)):
            holds |= i64(i64(io.o.held[side]) & _locks(state, io, pair) != 0) << pair
        io.o.holds[side] = holds


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
    work = i64(io.i.finish[0] | io.i.finish[1]) | i64(io.i.leave[0] | io.i.leave[1])
    for port in range(state.schedulers):
        work |= _needs(io.i.ask[port])
    return i64(0) if work != 0 else i64(NEVER)


SLOTS = slots(STATE, PORTS, comb=comb, step=step, idle=idle)
