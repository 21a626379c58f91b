"""The load/store unit: from executed memory instructions to requests at the L1, and back.

Memory instructions wait in a queue (``queue``). What takes those that need the L1 from the queue to it, and the answers
back, is the SM's *path*, the tenant of a frame slot; this folder is what all paths share: the queue, tokens
(``tokens``), the gates at issue (``gates``), the turns of the L1's clients (``clients``), and the check of the memory
order (``order``). Beside it are the blocks of the default path (``path``).

A path has three functions, which take its own state and the unit: ``reset`` at a launch, after everything here but the
L1 has its initial value; ``step`` in a cycle in which it may have something to do; ``end`` (or none) after the last
cycle, which is ``now``. In a step it takes instructions off the queue (``queue.offered``, ``queue.take_head``), says in
``queue.occupied`` whether one of them holds the register, so that nothing else starts, offers lines (``clients.offer``,
:func:`accepted`), takes the L1's answers (``tokens.complete``, ``tokens.answered``), forgets who has ``gates.entered``,
and says in ``path.wake`` when it wants to be stepped next. Results leave it only in cycles in which the register file
is ``writable``. If its reset says that it ``delivers``, loads get their values from what it leaves in ``write``, at
most ``memory.timing.BACK_END`` cycles after they have completed; and it moves those of stores to their lines. Where
lines have values, what it delivers of global memory is what the answering lines hold (``carried.answer_bytes``).
"""

from __future__ import annotations

from lockstep.models.core.frame import SENT, emit_of_warp
from lockstep.models.execution.isa import LANES
from lockstep.models.jit import addressof, call, clear, ctz, i64, inline, jit, lanes_equal, pointer_to, popcount, record
from lockstep.models.lsu.clients import CLIENTS, NOBODY, PORT_TAKEN, ask_clients, clients_wake, pass_turn, serve_clients
from lockstep.models.lsu.faults import FAULT
from lockstep.models.lsu.gates import GATES, all_sent, enter, gates_reset
from lockstep.models.lsu.order import ORDER, check_order, order_issued
from lockstep.models.lsu.performed import PERFORMED
from lockstep.models.lsu.queue import QUEUE, for_path, head_start
from lockstep.models.lsu.tokens import (
    COMPLETED,
    FIRST_HALF,
    TICKETS_TAKEN,
    TOKEN,
    TOKENS,
    VALUES,
    at_events,
    is_load,
    new_token,
)
from lockstep.models.marks import Part, mark
from lockstep.models.memory import l1 as L1
from lockstep.models.share import exclude, include, share_of, words_of
from lockstep.spec.mapping import REGISTERS
from lockstep.spec.parameters import CONFIG, HALF_WARP, MAX_WARPS, TICKETS

WORD = 0xFFFF_FFFF
MAX_NOTED = 64  # more hits than an SM has in a window

at_config = pointer_to(CONFIG)

PATH = record(
    [
        ("reset", "i8"),  # addresses of its functions ...
        ("step", "i8"),
        ("end", "i8"),
        ("handle", "i8"),  # ... and of its state
        ("wake", "i8"),  # the next cycle in which it has something to do by itself
        ("answers", "i8"),  # of the L1 per cycle that it takes
        ("reorders", "i8"),  # it may exchange requests of different warps
        ("delivers", "i8"),  # it moves the values of loads and stores (``core.delivery``)
    ]
)
"""The binding of the path, and what it says of itself."""

WRITE = record(
    [
        ("valid", "i8"),
        ("warp", "i8"),
        ("pc", "i8"),
        ("lanes", "i8"),
        ("registers", "u4", (REGISTERS, LANES)),  # what arrives: the bytes of each lane, from the lowest on
    ]
)
"""Registers that a path writes with a load's values in this cycle."""

COUNTS = record(
    [
        ("lines", "i8"),  # of the path that the L1 has accepted
        ("client_lines", "i8"),  # of clients
        ("line_instructions", "i8"),  # all of whose lines have been accepted ...
        ("uncoalesced", "i8"),  # ... of those with more than one
        ("uncoalesced_lanes", "i8"),  # of global loads and stores that need more lines than their bytes would
        ("texture_hits", "i8"),  # lines of texture fetches that hit in the L1 ...
        ("texture_misses", "i8"),  # ... and the others
        ("merged", "i8"),  # lines that went to the L1 with another one's access, which may be the other grid's
        ("stale", "i8"),  # lines of global loads that hit, and gave other bytes than memory had
    ]
)
HIT = record(
    [
        ("cycle", "i8"),
        ("number", "i8"),  # of its token
        ("line", "i8"),
        ("lanes", "i8"),  # of the token, those in the line that are late
        ("where", "i8"),  # host address of what the line held
        ("stale", "i8"),  # what memory had when the window began was something else
    ]
)
NOTED = record([("count", "i8"), ("hit", HIT, (MAX_NOTED,))])
"""Hits of which it is not known yet what memory has in their cycle."""


SHARE = share_of(COUNTS, "texture_misses")
SHARE_WORDS = words_of(SHARE)

LSU = record(
    [
        ("now", "i8"),  # the core cycle, for the path
        ("config", "i8"),  # host address of the configuration
        ("port", "i8"),  # host address of the SM's port to the crossbar
        ("events", "i8"),  # host address of the frame's, if anybody listens
        ("writable", "i8"),  # the register file takes results in this cycle
        ("refused", "i8"),  # the L1's refusal code of this cycle, 0 when there was none
        ("busy", "i8"),  # a line waits for the L1
        ("second", "i8"),  # warp slots of grid 1
        ("carried", "i8"),  # host addresses (``lsu.carried``): of rows, by token; 0: lines have no values ...
        ("answers", "i8"),  # ... and of lines that answer a path that ``delivers``, by its identity of the access
        ("performed", PERFORMED),
        ("path", PATH),
        ("clients", CLIENTS),
        ("queue", QUEUE),
        ("gates", GATES),
        ("tickets", TICKETS_TAKEN),
        ("completed", COMPLETED),
        ("counts", COUNTS),
        ("share", SHARE),
        ("fault", FAULT),
        ("order", ORDER, (MAX_WARPS,)),
        ("token", TOKEN, (TOKENS,)),
        ("values", VALUES, (TOKENS,)),  # that loads have read and stores have written, by their tokens
        ("write", WRITE),
        ("noted", NOTED),
        ("l1", L1.L1),
    ]
)


@jit
def lsu_reset(lsu, config):
    """An empty unit with an invalidated L1."""
    lsu.config = addressof(config)
    lsu.refused = 0
    lsu.busy = 0
    lsu.second = 0
    lsu.path.wake = 0
    lsu.path.answers = 1
    lsu.path.reorders = 0
    lsu.path.delivers = 0
    lsu.clients.turn = 0
    lsu.clients.accessed = NOBODY
    clear(lsu.queue)
    gates_reset(lsu.gates)
    clear(lsu.tickets)
    clear(lsu.completed)
    clear(lsu.counts)
    clear(lsu.share)
    clear(lsu.fault)
    clear(lsu.performed)
    for w in range(MAX_WARPS):
        clear(lsu.order[w])
    call(lsu.path.reset, lsu.path.handle, addressof(lsu))
    L1.l1_reset(lsu.l1, config, lsu.path.answers)


@jit
def issue_memory(lsu, config, context, instruction, mask, warp, pc):
    """An instruction has executed whose lanes ``mask`` need the L1; returns the number of its token."""
    number = new_token(lsu, config, context, instruction, mask, warp, pc)
    loads = is_load(lsu.token[number].kind)
    order_issued(lsu, number, loads)
    enter(lsu.gates, warp, loads)
    return number


@inline
def accepted(lsu, number, lanes, line, code):
    """The L1 has accepted the line of some of a token's lanes, with this outcome. Returns whether it was the last."""
    grid = (i64(lsu.second) >> number // TICKETS) & 1
    if grid != 0:
        exclude(addressof(lsu.share), addressof(lsu.counts), SHARE_WORDS)
    last = _accepted(lsu, number, lanes, line, code)
    if grid != 0:
        include(addressof(lsu.share), addressof(lsu.counts), SHARE_WORDS)
    return last


@inline
def _accepted(lsu, number, lanes, line, code):
    """The same, of whichever grid."""
    check_order(lsu, number, lanes, line)
    token, counts = lsu.token[number], lsu.counts
    counts.lines += 1
    token.sent += 1
    if lsu.events != 0:
        emit_of_warp(at_events(lsu.events), SENT, i64(lsu.now), number // TICKETS, i64(token.pc), lanes, code)
    if token.texture != 0:
        if code == L1.HIT:
            counts.texture_hits += 1
        else:
            counts.texture_misses += 1
    token.unsent &= ~lanes
    if token.unsent != 0:
        return False
    all_sent(lsu.gates, number // TICKETS)
    counts.line_instructions += 1
    if token.sent > 1:
        counts.uncoalesced += 1
        if token.needed != 0 and token.sent > token.needed:
            counts.uncoalesced_lanes += _uncoalesced(lsu, token)
    return True


@inline
def _lines(lsu, token, lanes):
    """The lines that some lanes of a token access."""
    shift = i64(lsu.l1.line_shift)
    lines = i64(0)
    while lanes != 0:
        lanes &= ~lanes_equal(addressof(token), shift, 0, i64(token.address[ctz(lanes)]) >> shift)
        lines += 1
    return lines


@jit
def _uncoalesced(lsu, token):
    """The lanes of a token that needs more requests than its bytes would: all of them, or those of a half that does."""
    mask = i64(token.mask)
    if at_config(lsu.config).core.coalescing != HALF_WARP:
        return popcount(mask)
    found = i64(0)
    for half in (mask & FIRST_HALF, mask & ~FIRST_HALF):
        if _lines(lsu, token, half) > (popcount(half) * token.bytes + lsu.l1.line_bytes - 1) >> lsu.l1.line_shift:
            found += popcount(half)
    return found


@inline
def _takes_results(config, now):
    """Whether the register file's write port is free for results of memory instructions: at random, in all SMs alike.

    Murmur3's finaliser makes the bits of neighbouring cycles independent, so that runs of refusals occur.
    """
    if config.core.write_refusals == 0:
        return True
    mixed = now & WORD
    mixed = (mixed ^ mixed >> 16) * 0x85EB_CA6B & WORD
    mixed = (mixed ^ mixed >> 13) * 0xC2B2_AE35 & WORD
    return (mixed ^ mixed >> 16) & 15 >= config.core.write_refusals


@inline
def lsu_step(lsu, port, config, now):
    """One core cycle: L1 answers, line requests, and what lies between the queue and the L1."""
    lsu.now = now
    lsu.write.valid = 0
    lsu.writable = _takes_results(config, now)
    lsu.refused = 0
    lsu.busy = lsu.gates.unsent != 0
    lsu.port = addressof(port)
    ask_clients(lsu)
    clients, turn = i64(lsu.clients.count), i64(lsu.clients.turn)
    if turn != 0:
        serve_clients(lsu, port, config, turn - 1, clients, now)
    mark(Part.PATH)
    call(lsu.path.step, lsu.path.handle, addressof(lsu))
    mark(Part.LSU)
    if clients != 0:
        serve_clients(lsu, port, config, i64(0), clients, now)
        pass_turn(lsu.clients)


@jit
def lsu_end(lsu, now):
    """The launch has ended: cycle ``now`` is the first that it does not have."""
    lsu.now = now
    if lsu.path.end != 0:
        call(lsu.path.end, lsu.path.handle, addressof(lsu))


@inline
def lsu_wake(lsu, port, config, now):
    """The next cycle in which a step would change something."""
    if lsu.gates.entered != 0 or lsu.refused == PORT_TAKEN:
        return now + 1
    wake = min(i64(L1.l1_wake(lsu.l1, port, config, now)), i64(lsu.path.wake))
    if for_path(lsu):
        start = head_start(lsu)
        if start > now:
            wake = min(wake, start)
    return max(clients_wake(lsu, wake, now), now + 1)
