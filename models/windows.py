"""Windows of cycles through which SMs are stepped ahead of the memory system, by several threads, with the same bits.

Where lines have values (``memory.values``), nothing passes between SMs but packets. A reply arrives
``crossbar.latency`` cycles or more after a slice has sent it. So an SM can be stepped through as many cycles without
the memory system. What the two do to each other in such a window waits for it:

* what the SM sends stands in its queue, and is not ready before its cycle; the part that takes it is woken later;
* the cycles in which it has taken replies, whose buffers are then free, are noted in its port (``taken``);
* of hits it is noted what line they gave (``lsu.noted``): whether it was stale is seen when its cycle comes;
* the SM stops behind a load that joins a read past the L1, since the read may take its line anew.

An SM stays behind the others where it must know what has happened elsewhere since the window began: whether anything
has left its queue, whether a CTA comes, whether a store has been performed that a fence waits for. It stops behind a
cycle in which one of its CTAs has ended. The second half of a window takes all cycles one after the other, with what
was noted of the SMs that are ahead, steps of those that are behind, dispatchers and the memory system. In both halves
SMs do what they do in lockstep, so every statistic is the same; how SMs are divided among threads does not matter.

An SM without a CTA stays behind: so none is ahead when the last CTA has ended.
"""

from __future__ import annotations

from lockstep.models.core.frame import HAS_CONTEXT, HAS_LIMITS
from lockstep.models.dispatching import count_ended, has_room, limited
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import (
    addressof,
    call,
    compare_exchange,
    ctz,
    i64,
    inline,
    jit,
    load_acquire,
    record,
    store_release,
)
from lockstep.models.lsu.carried import count_stale_again
from lockstep.models.lsu.performed import nothing_left
from lockstep.models.lsu.unit import MAX_NOTED
from lockstep.models.memory.fabric import keep, packet_of, port_part, take, wake_up
from lockstep.models.memory.interconnect import free_reply
from lockstep.models.memory.l1 import l1_renew
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_SMS

FEW = 8  # steps of SMs ahead in a window: with fewer, threads cost more time than they save
LOCKSTEP = 64  # cycles in lockstep where windows have few
SPINS = 4000  # looks for the other threads before this one lets others of the host have its core, ...
IDLE = 100 * SPINS  # ... and before it sleeps, which only those do that SMs do not wait for; ...
NAP = 50  # ... microseconds
LOST = 30 * SPINS  # looks after which a thread seems to have lost its core
LEAST_ALONE, MOST_ALONE = 1 << 9, 1 << 15  # windows that then are the first thread's alone, twice as many each time
OPEN, TAKEN, THROUGH, STATES = range(4)  # an SM in a window: nobody has it yet, ...

AHEAD = record(
    [
        ("word", "i8"),  # STATES times the number of the window, plus who has this SM in it
        ("through", "i8"),  # the first cycle that it has not been stepped in, or seen to have nothing to do in
        ("stops", "i8"),  # the cycle before that one has something for the others; NEVER: it has not
        ("asks", "i8"),  # the dispatcher is to look at the SM
        ("steps", "i8"),
        ("fault_lane", "i8"),
        ("fault_address", "i8"),
        ("apart", "u1", (72,)),  # in cache lines of the host of its own
    ]
)

TEAM = record(
    [
        ("threads", "i8"),
        ("length", "i8"),  # cycles of a window; 0: the run is in lockstep
        ("forced", "i8"),  # also where windows have few steps
        ("fences", "i8"),  # the kernel has fences whose scope is beyond the CTA
        ("most_sent", "i8"),  # requests of an SM in a window
        ("give_way", "i8"),  # address of the function by which a thread lets others have its core
        ("lockstep_until", "i8"),  # core cycle
        ("effects", "i8"),  # stores and atomics that had been performed when the window began
        ("end", "i8"),  # of the window: the first cycle that it does not have ...
        ("begin", "i8"),  # ... and the first one
        ("quit", "i8"),
        ("sleep", "i8"),  # address of the function by which a thread sleeps for some microseconds
        ("windows", "i8"),  # that have begun
        ("alone", "i8"),  # of those to come, how many are the first thread's alone, ...
        ("penalty", "i8"),  # ... and were, when a thread was waited for too long ...
        ("since", "i8"),  # ... so many windows ago
        ("look", "i8"),  # address of what is called in front of an SM's part of a window (0) and behind (1); 0: none
        ("apart", "u1", (128,)),
        ("number", "i8"),  # of the last window that the others have been told of
        ("apart_too", "u1", (128,)),
        ("sm", AHEAD, (MAX_SMS,)),
    ]
)
NUMBER: int = TEAM.fields["number"][1]  # type: ignore[index]


# ---------------------------------------------------------------------------------------------------------- the threads


@jit
def next_window(team, number):
    """Wait for a window behind the one with a number, or the end; returns its number."""
    looks = i64(0)
    while load_acquire(addressof(team) + NUMBER) == number:
        looks += 1
        if looks % SPINS == 0:
            call(team.give_way if looks < IDLE else team.sleep, i64(NAP), i64(0))
    return i64(load_acquire(addressof(team) + NUMBER))


@inline
def take_sm(team, s, number):
    """Take an SM for this thread, in a window; false: another one has, or the window is over."""
    return compare_exchange(addressof(team.sm[s]), number * STATES + OPEN, number * STATES + TAKEN)


@inline
def is_through(team, s, number):
    """This thread is through with an SM that it has taken."""
    store_release(addressof(team.sm[s]), number * STATES + THROUGH)


@inline
def begin_together(team, sms):
    """Let SMs be taken in a window; returns its number. The other threads hear of it, but where they are left out."""
    team.windows += 1
    number = i64(team.windows)
    for s in range(sms):
        store_release(addressof(team.sm[s]), number * STATES + OPEN)
    if team.alone != 0:
        team.alone -= 1
    elif team.threads > 1:
        store_release(addressof(team) + NUMBER, number)
    return number


@jit
def wait_for_all(team, sms, number):
    """Wait until all SMs are ahead as far as they go.

    A thread that has lost its core to other work lets this one wait for milliseconds. Where that comes to pass, windows
    are this one's alone for a while: for longer, the more often it does.
    """
    looks = i64(0)
    for s in range(sms):
        while load_acquire(addressof(team.sm[s])) != number * STATES + THROUGH:
            looks += 1
            if looks % SPINS == 0:
                call(team.give_way, i64(0), i64(0))
    if looks > LOST:
        team.penalty = min(max(2 * i64(team.penalty), i64(LEAST_ALONE)), i64(MOST_ALONE))
        team.alone = team.penalty
        team.since = 0
    elif team.alone == 0:
        team.since += 1
        if team.since > team.penalty:
            team.penalty >>= 1
            team.since = 0


# --------------------------------------------------------------------------------------------------------------- an SM


@jit
def open_window(team, state, sms, memory, begin, end):
    """A window begins: no SM is ahead yet, and each has the packets that it may need."""
    team.begin = begin
    team.end = end
    team.effects = memory.effects
    for s in range(state.sms):
        port, ahead = memory.ports[s], team.sm[s]
        port.ahead = begin + 1
        port.taken = 0
        port.renewed = 0
        sms[s].lsu.noted.count = 0
        ahead.through = begin
        ahead.stops = NEVER
        ahead.asks = 0
        ahead.steps = 0
        while port.spare.count < team.most_sent:
            keep(memory, port, take(memory))


@inline
def may_begin(team, state, sm, launch, settings):
    """Whether an SM may be stepped ahead in a window that begins."""
    if sm.tenants & HAS_CONTEXT != 0:
        return False
    g = ctz(i64(state.running))
    if launch.grids[g].left != 0 and (sm.tenants & HAS_LIMITS != 0 or has_room(state, sm, launch, settings, g)):
        return False
    return team.fences == 0 or nothing_left(sm.lsu.performed)


@inline
def may_go_on(sm, port):
    """Whether it may be stepped ahead in one more cycle."""
    lsu = sm.lsu
    accesses = i64(lsu.path.answers)
    packets = 2 * accesses if lsu.l1.stats.local_stores != 0 else accesses  # a miss may write a dirty line back
    if port.full != 0 or port.requests.count + packets > lsu.l1.queue or lsu.noted.count + accesses > MAX_NOTED:
        return False
    return sm.ctas_resident != 0 and lsu.performed.waits == 0


@inline
def stops(team, state, sm, port, s, context, now):
    """An SM has been stepped ahead in a cycle. Returns whether others must hear of it before it goes on."""
    ended = i64(sm.ended[0] | sm.ended[1])
    if ended != 0:
        state.hidden[s] = ended
    asks = ended != 0 or (sm.tenants & HAS_LIMITS != 0 and limited(sm))
    if not asks and sm.fault == Fault.NONE and port.renewed == 0 and port.early == 0:
        return False
    ahead = team.sm[s]
    ahead.stops = now
    ahead.asks = i64(asks)
    ahead.fault_lane = context.fault_lane
    ahead.fault_address = context.fault_address
    return True


@inline
def come_to(team, state, sm, memory, s, context, now):
    """The memory system has come to a cycle that an SM is through: what was noted of it happens."""
    port, ahead = memory.ports[s], team.sm[s]
    if (i64(port.taken) >> now - i64(team.begin)) & 1 != 0:
        free_reply(memory, port, now)
    if memory.effects != team.effects:
        noted = sm.lsu.noted
        for k in range(noted.count):
            if noted.hit[k].cycle == now:
                count_stale_again(sm.lsu, port, noted.hit[k])
    if ahead.stops == now:
        _stopped(state, sm, port, ahead, s, context, now)


@jit
def _stopped(state, sm, port, ahead, s, context, now):
    """The memory system has come to the cycle behind which an SM has stopped."""
    for k in range(port.renewed):
        l1_renew(sm.lsu.l1, port, i64(port.renew[k]))
    if ahead.asks != 0:
        state.hidden[s] = 0
        count_ended(state, sm)
        state.dispatcher_wake = now + 1
    if sm.fault != Fault.NONE or port.early != 0:
        state.fault = sm.fault if sm.fault != Fault.NONE else i64(Fault.AHEAD)
        state.fault_sm = s
        context.fault_lane = ahead.fault_lane
        context.fault_address = ahead.fault_address


@jit
def wake_senders(state, memory, begin):
    """What SMs have sent to a queue that was empty is to be seen when it is ready."""
    for s in range(state.sms):
        port = memory.ports[s]
        if port.requests.head != 0:
            packet = packet_of(memory, port.requests.head)
            if packet.born >= begin:
                wake_up(memory, port_part(memory, port.group), packet.ready, begin)


@jit
def close_window(team, state, memory, now):
    """All have come to the window's end. If SMs had little to do ahead, the run goes on in lockstep for a while."""
    steps = i64(0)
    for s in range(state.sms):
        memory.ports[s].ahead = 0
        steps += i64(team.sm[s].steps)
    state.steps += steps
    if steps < FEW and team.forced == 0:
        team.lockstep_until = now + LOCKSTEP


@jit
def last_cycle(state, sms, memory):
    """The last cycle in which anything has happened."""
    last = max(i64(memory.now), i64(state.dispatcher_next) - 1)
    for s in range(state.sms):
        last = max(last, i64(sms[s].last))
    return last
