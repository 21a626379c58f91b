"""The turns at the L1's one port, which the path and its clients (the frame slot *l1_clients*) share."""

from __future__ import annotations

from lockstep.models.core.frame import CLIENT, MAX_TENANTS
from lockstep.models.core.frame import TOKENS as CLIENT_TOKENS
from lockstep.models.jit import addressof, call, i64, inline, jit, popcount, record
from lockstep.models.lsu.carried import accepted_line, line_has_come
from lockstep.models.lsu.tokens import is_store
from lockstep.models.marks import Part, mark
from lockstep.models.memory import l1 as L1
from lockstep.models.memory.masks import block_of, count_of, span
from lockstep.spec.parameters import HALF_WARP, TICKETS

NOBODY = -1
PORT_TAKEN = -100
"""Refusal of a line because a client has this cycle's access to the L1."""

CLIENTS = record(
    [
        ("count", "i8"),  # beside the path
        ("turn", "i8"),  # who may access the L1 first in this cycle: 0 the path, then the clients
        ("accessed", "i8"),  # who has accessed it in this cycle: NOBODY, or as ``turn``
        ("client", CLIENT, (MAX_TENANTS,)),
    ]
)


@inline
def offer(lsu, port, config, number, line, lanes, low, high, now, identity):
    """Offer a line of a token's ``lanes`` to the L1, which answers with ``identity``. Returns the L1's code.

    ``low`` and ``high`` are the bytes that they access, as ``lsu.tokens.bytes_of`` says. By half-warps, a load asks for
    the whole block of 32, 64 or 128 bytes in which these lie, and a store's packet has as much.
    """
    if lsu.clients.accessed > 0:
        lsu.refused = PORT_TAKEN
        return i64(PORT_TAKEN)
    lsu.clients.accessed = 0
    token = lsu.token[number]
    count = popcount(lanes)
    size = count_of(low, high)
    if token.kind == L1.ATOMIC_ACCESS:  # an operand for each lane, also on one address
        size = min(count * i64(token.bytes), i64(config.l1.line_bytes))
    elif config.core.coalescing == HALF_WARP:
        block_low, block_high = block_of(low, high)
        size = count_of(block_low, block_high)
        if not is_store(token.kind):
            low, high = block_low, block_high
    same = min(i64(token.same), count)
    address, grid = line << lsu.l1.line_shift, (i64(lsu.second) >> number // TICKETS) & 1
    mark(Part.L1)
    code = L1.l1_access(lsu.l1, port, config, now, i64(token.kind), address, low, high, size, same, identity, grid)
    if code < 0:
        lsu.refused = code
    elif lsu.carried != 0:
        accepted_line(lsu, port, number, line, lanes, code, identity)
    mark(Part.PATH)
    return code


@inline
def next_answer(lsu, port, config, now, ready):
    """Let the L1 take a reply and give an answer: the path's identity, or -1. The path must be ``ready`` for its own.

    A client's answer goes to the client, and takes this cycle's.
    """
    mark(Part.L1)
    L1.l1_fill(lsu.l1, port, now)
    if lsu.carried != 0 and lsu.l1.come != L1.NONE:
        line_has_come(lsu)
    answer = further_answer(lsu, now, ready)
    mark(Part.PATH)
    return answer


@inline
def further_answer(lsu, now, ready):
    """Another answer of the same cycle."""
    if lsu.clients.count == 0:
        return i64(L1.l1_answer(lsu.l1, now)) if ready else i64(-1)
    identity = i64(L1.l1_peek(lsu.l1, now))
    if identity < 0 or (identity < CLIENT_TOKENS and not ready):
        return i64(-1)
    L1.l1_answer(lsu.l1, now)
    if identity < CLIENT_TOKENS:
        return identity
    client = lsu.clients.client[identity // CLIENT_TOKENS - 1]
    client.answer = identity % CLIENT_TOKENS
    mark(Part.MECHANISMS)
    call(client.answered, client.handle, addressof(lsu))
    return i64(-1)


@inline
def ask_clients(lsu):
    """A cycle begins: nobody has accessed the L1, and clients show their requests."""
    lsu.clients.accessed = NOBODY
    for k in range(lsu.clients.count):
        client = lsu.clients.client[k]
        mark(Part.MECHANISMS)
        client.wake = call(client.ask, client.handle, addressof(lsu))
        mark(Part.LSU)


@jit
def serve_clients(lsu, port, config, first, last, now):
    """Let the first client with a request, of ``first`` to ``last`` - 1, access the L1, unless somebody has."""
    for k in range(first, last):
        client = lsu.clients.client[k]
        if client.valid != 0 and lsu.clients.accessed == NOBODY:
            lsu.clients.accessed = 1 + k
            token = (1 + k) * CLIENT_TOKENS + i64(client.token)
            kind, address = i64(client.kind), i64(client.address)
            size, lanes, grid = i64(client.size), i64(client.lanes), i64(client.grid)
            low, high = span(address & i64(lsu.l1.line_bytes) - 1, size)
            mark(Part.L1)
            client.code = L1.l1_access(lsu.l1, port, config, now, kind, address, low, high, size, lanes, token, grid)
            if client.code >= 0:
                client.valid = 0
                lsu.counts.client_lines += 1
                lsu.share.client_lines += grid
                mark(Part.MECHANISMS)
                call(client.accepted, client.handle, addressof(lsu))
            mark(Part.LSU)


@inline
def pass_turn(clients):
    """A cycle ends: who comes after the one that has accessed the L1 goes first in the next."""
    if clients.accessed != NOBODY:
        clients.turn = (clients.accessed + 1) % (clients.count + 1)


@inline
def clients_wake(lsu, wake, now):
    """The next cycle for which a client has a request, or ``wake`` if that is earlier."""
    for k in range(lsu.clients.count):
        client = lsu.clients.client[k]
        wake = now if client.valid != 0 else min(wake, i64(client.wake))
    return wake
