"""Tokens, each of which stands for a memory instruction from its issue until its last answer.

A token stands for an instruction from issue until all its lanes have been answered (loads, atomics) or accepted by
the L1 (stores). Its number is its warp and, of the warp's instructions in flight, its ticket.
"""

from __future__ import annotations

from lockstep.models.core.frame import ANSWERED, EVENTS, emit_of_warp
from lockstep.models.execution.isa import LANES, LOCAL_PHYSICAL, Flag, Group, Memory, Space, Texture
from lockstep.models.jit import (
    addressof,
    ctz,
    i64,
    inline,
    jit,
    lanes_equal,
    pointer_to,
    popcount,
    record,
    without_lowest,
)
from lockstep.models.memory import l1 as L1
from lockstep.models.memory.masks import ones, span
from lockstep.models.memory.timing import BACK_END
from lockstep.spec.mapping import REGISTERS
from lockstep.spec.parameters import MAX_WARPS, OWN, TICKETS

TOKENS = MAX_WARPS * TICKETS
ALL_TICKETS = (1 << TICKETS) - 1
FIRST_HALF = (1 << LANES // 2) - 1  # of a warp's lanes
COMPLETIONS = 16  # the most instructions that complete in one cycle

TOKEN = record(
    [
        ("address", "u4", (LANES,)),  # first: the token's address is theirs
        ("ready", "i8"),  # not done before this cycle, whatever the memory answers
        ("extra", "i8"),  # cycles from the last answer to done
        ("mask", "i8"),  # active lanes ...
        ("unsent", "i8"),  # ... those whose line the L1 has not accepted yet ...
        ("pending", "i8"),  # ... and those that are not answered; paths that answer by line count ``lines`` instead
        ("pc", "i4"),
        ("kind", "i4"),
        ("bytes", "i4"),  # per lane
        ("size", "i4"),  # log2 of them; at most 4, which is all that the mapping needs
        ("lines", "i4"),  # lines that are still to be answered, plus one while lines are to be sent
        ("sent", "i4"),  # lines sent
        ("needed", "i4"),  # lines that a global load or store needs at least; 0: it is something else
        ("texture", "i4"),  # a texture fetch
        ("same", "i4"),  # atomics: most lanes on one address
        ("group", "i4"),  # in the order of its warp (``lsu.order``)
        ("delivered", "i4"),  # a load or store whose values the path moves; those of a load ...
        ("sign", "i4"),  # ... extended to a register
        ("late", "i8"),  # lanes whose values lines and requests have (``lsu.carried``); the next two are theirs alone
        ("instruction", "i8"),  # its host address
        ("epoch", "i8"),  # in which it has issued (``lsu.performed``)
    ]
)

VALUES = record([("registers", "u4", (REGISTERS, LANES))])
"""The bytes that each lane of a load has read or of a store has written, from the lowest on."""

TICKETS_TAKEN = record(
    [
        ("in_flight", "i8"),  # tokens in use
        ("used", "i4", (MAX_WARPS,)),  # by warp
        ("none_left", "i8"),  # warps without a free ticket
    ]
)

COMPLETED = record(
    [
        ("count", "i8"),  # tokens that completed in this cycle ...
        ("number", "i4", (COMPLETIONS,)),  # ... and which
    ]
)

at_events = pointer_to(EVENTS)


@jit
def is_store(kind):
    """Whether an access is a store: done when the L1 has accepted it."""
    return kind == L1.STORE or kind == L1.LOCAL_STORE


@jit
def is_load(kind):
    return kind == L1.LOAD or kind == L1.LOAD_BYPASS or kind == L1.LOCAL_LOAD or kind == L1.TEXTURE_LOAD


@jit
def request_kind(config, instruction):
    if instruction.group == Group.ATOMIC:
        return i64(L1.ATOMIC_ACCESS)
    if instruction.group == Group.TEXTURE:
        if instruction.op == Texture.SURFACE_STORE:
            return i64(L1.STORE)
        own = config.texture_cache.mode == OWN and instruction.op != Texture.SURFACE_LOAD
        return i64(L1.TEXTURE_LOAD) if own else i64(L1.LOAD)
    local = instruction.space == Space.LOCAL and config.l2.data != 0
    if instruction.op == Memory.STORE:
        return i64(L1.LOCAL_STORE) if local else i64(L1.STORE)
    if local:
        return i64(L1.LOCAL_LOAD)
    bypass = (i64(instruction.flags) & (Flag.VOLATILE | Flag.CACHE_GLOBAL)) != 0 or config.l1.data == 0
    return i64(L1.LOAD_BYPASS) if bypass else i64(L1.LOAD)


@jit
def _most_on_one_address(context, mask):
    most = i64(0)
    while mask != 0:
        address = i64(context.address[ctz(mask)])
        same = i64(0)
        rest = mask
        while rest != 0:
            lane = ctz(rest)
            rest = without_lowest(rest)
            if i64(context.address[lane]) == address:
                same += 1
                mask &= ~(i64(1) << lane)
        most = max(most, same)
    return most


@inline
def _take_ticket(tickets, warp):
    """Take a free ticket of a warp, which has one; returns the number of its token."""
    used = i64(tickets.used[warp])
    ticket = ctz(~used)
    used |= i64(1) << ticket
    tickets.used[warp] = used
    if used == ALL_TICKETS:
        tickets.none_left |= i64(1) << warp
    tickets.in_flight += 1
    return warp * TICKETS + ticket


@inline
def _return_ticket(tickets, number):
    warp = number // TICKETS
    tickets.used[warp] = i64(tickets.used[warp]) & ~(i64(1) << number % TICKETS)
    tickets.none_left &= ~(i64(1) << warp)
    tickets.in_flight -= 1


@inline
def new_token(lsu, config, context, instruction, mask, warp, pc):
    """Give a token to an executed instruction whose lanes ``mask`` need the L1; returns its number."""
    number = _take_ticket(lsu.tickets, warp)
    kind = request_kind(config, instruction)
    token = lsu.token[number]
    token.mask = mask
    token.unsent = mask
    token.pending = mask
    token.pc = pc
    token.kind = kind
    size = i64(instruction.bytes) * i64(instruction.vec)
    token.bytes = size
    token.size = ctz(size) if size < 16 else 4
    token.lines = 1
    token.sent = 0
    token.needed = 0
    if instruction.group == Group.MEMORY and (instruction.space == Space.GLOBAL or instruction.space == Space.GENERIC):
        if i64(context.address[ctz(mask)]) < LOCAL_PHYSICAL:
            token.needed = (popcount(mask) * size + i64(lsu.l1.line_bytes) - 1) >> lsu.l1.line_shift
    token.delivered = 0
    token.late = 0
    token.texture = 1 if instruction.group == Group.TEXTURE and is_load(kind) else 0
    token.same = _most_on_one_address(context, mask) if kind == L1.ATOMIC_ACCESS else i64(1)
    token.ready = 0
    token.extra = max(i64(config.pipelines[instruction.category].latency) - i64(config.l1.latency), i64(0))
    for lane in range(context.lanes):
        token.address[lane] = context.address[lane]
    return number


@inline
def complete(lsu, number, now):
    """The token is done ``BACK_END`` cycles from now, or later if something else takes longer."""
    token, completed = lsu.token[number], lsu.completed
    token.ready = max(token.ready, now + BACK_END + token.extra)
    completed.number[completed.count] = number
    completed.count += 1
    if lsu.events != 0:
        emit_of_warp(at_events(lsu.events), ANSWERED, now, number // TICKETS, i64(token.pc), i64(token.mask), i64(0))


@inline
def answered(lsu, number, now):
    """One line less to wait for; after the last one the token is done."""
    token = lsu.token[number]
    token.lines -= 1
    if token.lines == 0:
        complete(lsu, number, now)


@inline
def take_completed(lsu):
    """A token that completed in this cycle, or -1. It is free again: read it before the next ``issue_memory``."""
    completed = lsu.completed
    if completed.count == 0:
        return i64(-1)
    completed.count -= 1
    number = i64(completed.number[completed.count])
    _return_ticket(lsu.tickets, number)
    return number


@jit
def lanes_of_line(lsu, number, line):
    """The active lanes of a token whose addresses lie in a line."""
    token = lsu.token[number]
    return lanes_equal(addressof(token), lsu.l1.line_shift, 0, line) & token.mask


@inline
def is_run(token, lanes):
    """Whether some lanes, at least one, stand together and access one element behind the other."""
    first = ctz(lanes)
    run = lanes >> first
    if run & run + 1 != 0:
        return False
    element = i64(token.address[first]) >> token.size
    return lanes & ~lanes_equal(addressof(token), i64(token.size), 1, element - first) == 0


@inline
def bytes_of(lsu, number, lanes):
    """Which bytes of their line some lanes of a token access (``memory.masks``), if that matters to the L1."""
    token = lsu.token[number]
    low = high = i64(0)
    if token.kind == L1.LOAD or token.kind == L1.TEXTURE_LOAD or token.kind == L1.LOCAL_LOAD or lanes == 0:
        return low, high
    within = i64(lsu.l1.line_bytes) - 1
    if is_run(token, lanes):
        return span(i64(token.address[ctz(lanes)]) & within, popcount(lanes) * i64(token.bytes))
    each = ones(i64(token.bytes))
    while lanes != 0:
        first = i64(token.address[ctz(lanes)]) & within
        lanes = without_lowest(lanes)
        if first < 64:  # a lane's bytes are aligned, and lie on one side
            low |= i64(each << first)
        else:
            high |= i64(each << first - 64)
    return low, high
