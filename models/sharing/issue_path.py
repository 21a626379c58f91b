"""Golden model of ``rtl/sharing/issue_path.py``, which documents the unit: the models of its blocks, connected."""

from __future__ import annotations

from lockstep.models.blocks import instance, ports
from lockstep.models.jit import addressof, assign, call, i64, jit, record, slots
from lockstep.models.scheduling import warp_scheduler
from lockstep.models.sharing import share_locks
from lockstep.spec.frame import SCHEDULER
from lockstep.spec.parameters import MAX_SCHEDULERS
from lockstep.spec.sharing.parameters import LOCKS, PATH

PORTS = ports(PATH)
STATE = record(
    [
        ("warp_scheduler", instance(SCHEDULER, warp_scheduler.STATE), (MAX_SCHEDULERS,)),
        ("share_locks", instance(LOCKS, share_locks.STATE)),
        ("warps", "i8"),  # parameter
        ("schedulers", "i8"),  # parameter
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    for k in range(MAX_SCHEDULERS):
        warp_scheduler.reset(state.warp_scheduler[k].state, state.warp_scheduler[k].io)
    share_locks.reset(state.share_locks.state, state.share_locks.io)
    assign(io.o, state.share_locks.io.o)


@jit
def _own(state, k):
    """The slots of a scheduler."""
    own = i64(0)
    for slot in range(k, state.warps, state.schedulers):
        own |= i64(1) << slot
    return own


@jit
def _request(state, io, k):
    """What a scheduler sees, but for whether its grant is refused: no request of a warp that waits for a lock."""
    inputs, own, waiting = state.warp_scheduler[k].io.i, _own(state, k), i64(state.share_locks.io.o.waiting)
    inputs.policy = io.i.policy
    inputs.active_warps = io.i.active_warps
    inputs.patience = io.i.patience
    inputs.start = i64(io.i.start) & own
    inputs.finish = i64(io.i.finish) & own
    inputs.long_latency = (i64(io.i.long_latency) | waiting) & own
    inputs.global_wait = (i64(io.i.global_wait) | waiting) & own
    inputs.paused = i64(io.i.paused) & own
    inputs.secondary = i64(io.i.secondary) & own
    inputs.owner = i64(io.i.owner) & own
    inputs.non_owner = i64(io.i.non_owner) & own
    inputs.request = i64(io.i.request) & ~waiting & own
    inputs.hint = i64(io.i.hint) >> k & 1


@jit
def comb(state, io):
    """The grants, and which of them are refused."""
    granted = different = i64(0)
    for k in range(state.schedulers):
        scheduler = state.warp_scheduler[k]
        _request(state, io, k)
        different |= call(scheduler.binding.comb, scheduler.binding.handle, addressof(scheduler.io))
        assign(io.c.grant[k], scheduler.io.c.grant)
        granted |= i64(scheduler.io.c.granted)
    locks = state.share_locks
    assign(locks.io.i, io.i)
    locks.io.i.granted = granted
    different |= call(locks.binding.comb, locks.binding.handle, addressof(locks.io))
    io.c.refuse = locks.io.c.refuse
    return different


@jit
def step(state, io):
    """One clock edge, after :func:`comb`."""
    refused, locks, different = i64(io.i.refused) | i64(io.c.refuse), state.share_locks, i64(0)
    for k in range(state.schedulers):
        scheduler = state.warp_scheduler[k]
        scheduler.io.i.refused = refused >> k & 1
        different |= call(scheduler.binding.step, scheduler.binding.handle, addressof(scheduler.io))
    different |= call(locks.binding.step, locks.binding.handle, addressof(locks.io))
    assign(io.o, locks.io.o)
    return different


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    locks = state.share_locks
    steps = call(locks.binding.idle, locks.binding.handle, addressof(locks.io))
    for k in range(state.schedulers):
        scheduler = state.warp_scheduler[k]
        steps = min(steps, call(scheduler.binding.idle, scheduler.binding.handle, addressof(scheduler.io)))
    return steps


SLOTS = slots(STATE, PORTS, comb=comb, step=step, idle=idle)
