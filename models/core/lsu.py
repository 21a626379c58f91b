"""The load/store unit: from executed memory instructions to requests at the L1, and back.

Memory instructions wait in their operand collectors, a queue: they start in the order in which they issued, one after
the other. Those of the scratchpad and of constants start when the unit's register is free, and keep it for as long as
their lanes conflict (:func:`start_near`). What takes the others from the queue to the L1, and the answers back, is the
SM's *path*, the tenant of a frame slot; this module is what all paths share: tokens, the queue, the gates at issue, and
the check of the memory order.

A path has three functions, which take its own state and the unit: ``reset`` at a launch, after everything here but the
L1 has its initial value; ``step`` in a cycle in which it may have something to do; ``end`` (or none) after the last
cycle, which is ``now``. In a step it takes instructions off the queue (:func:`offered`, :func:`take_head`), says in
``occupied`` whether one of them holds the register, so that nothing else starts, offers lines (:func:`offer`,
:func:`accepted`), takes the L1's answers (:func:`complete`, :func:`answered`), forgets who has ``entered``, and says in
``path_wake`` when it wants to be stepped next. Results leave it only in cycles in which the register file is
``writable``. If its reset says that it ``delivers``, loads get their values from what it leaves in ``write``, at most
:data:`BACK_END` cycles after they have completed; and it moves those of stores to their lines.

What may issue is said in masks of warps, which a path sets if it has reasons: memory instructions in ``admit``, loads
in ``load_ready``, and stores, atomics, barriers and fences in ``drained``. ``cohort_warps`` warps in a row are a
cohort, which shares ``room`` for so many instructions in the path: what issues takes its part of the room, and a cohort
without any leaves ``admit``. The path sets the room again in every step, less the instructions that are ``staged``: on
their way from issue to it.

A token stands for an instruction from issue until all its lanes have been answered (loads, atomics) or accepted by
the L1 (stores). Its number is its warp and, of the warp's instructions in flight, its ticket.

The memory order, checked at every line that the L1 accepts, whatever the path: a warp's memory instructions form
groups, loads that follow each other one group, every store and every atomic one of its own. All lines of a group are
accepted before any line of a later one, and every lane exactly once, with the line that its address lies in.
"""

from __future__ import annotations

from lockstep.models.core.frame import ANSWERED, CLIENT, EVENTS, MAX_TENANTS, SENT, emit_of_warp
from lockstep.models.core.frame import TOKENS as CLIENT_TOKENS
from lockstep.models.execution.isa import LANES, Fault, Flag, Group, Memory, Space, Texture
from lockstep.models.jit import (
    addressof,
    call,
    clear,
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
from lockstep.models.memory.masks import count_of, ones, span
from lockstep.models.memory.timing import BACK_END
from lockstep.models.time import NEVER
from lockstep.spec.mapping import REGISTERS
from lockstep.spec.parameters import MAX_COLLECTORS, MAX_WARPS, TICKETS

QUEUE = MAX_COLLECTORS
NEAR = -1  # in the place of a token: an instruction that is done without the path
TOKENS = MAX_WARPS * TICKETS
ALL_TICKETS = (1 << TICKETS) - 1
WORD = 0xFFFF_FFFF
GROUPS = 32  # more than a warp has instructions in flight

COMPLETIONS = 16  # at most so many instructions complete in one cycle

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
        ("texture", "i4"),  # a texture fetch
        ("same", "i4"),  # atomics: most lanes on one address
        ("group", "i4"),  # in the order of its warp
        ("delivered", "i4"),  # a load or store whose values the path moves; those of a load ...
        ("sign", "i4"),  # ... extended to a register
    ]
)

VALUES = record([("registers", "u4", (REGISTERS, LANES))])  # the bytes of each lane, from the lowest on

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

WAITING = record(
    [
        ("token", "i8"),  # or NEAR
        ("at", "i8"),  # cycle in which its sources are there
        ("cycles", "i8"),  # for which it has the register
        ("latency", "i8"),  # cycles from its start to the result of lanes that the path does not answer; 0: none
        ("lines", "i8"),  # of constants that it needs ...
        ("found", "i8"),  # ... and that have been looked up
        ("incomplete", "i8"),  # its place among the accesses that wait for lines, or NONE
        ("warp", "i8"),
        ("pc", "i8"),
    ]
)

ORDER = record(
    [
        ("issued", "i4"),  # group of the last instruction issued ...
        ("loads", "i4"),  # ... which is one of loads
        ("accepting", "i4"),  # group whose lines the L1 accepts
        ("instructions", "i4"),  # with lanes to be accepted, ...
        ("unsent", "i4", (GROUPS,)),  # ... by group
    ]
)

PATH = record([(name, "i8") for name in ("reset", "step", "end", "handle")])
"""The binding of the path: addresses of its functions, and of its state."""

LSU = record(
    [
        ("now", "i8"),  # the core cycle, for the path
        ("config", "i8"),  # host address of the configuration
        ("port", "i8"),  # host address of the SM's port to the crossbar
        ("path", PATH),
        ("answers", "i8"),  # of the L1 per cycle that the path takes
        ("writable", "i8"),  # the register file takes results in this cycle
        ("reorders", "i8"),  # the path may exchange requests of different warps
        ("delivers", "i8"),  # the path moves the values of loads and stores (``delivery``)
        ("clients", "i8"),  # beside the path
        ("turn", "i8"),  # who may access the L1 first in this cycle: 0 the path, then the clients
        ("accessed", "i8"),  # who has accessed it in this cycle: NOBODY, or as ``turn``
        ("client_lines", "i8"),  # lines of clients that the L1 has accepted
        ("events", "i8"),  # host address of the frame's, if anybody listens
        ("path_wake", "i8"),  # the next cycle in which the path has something to do by itself
        ("fault", "i8"),
        ("fault_token", "i8"),
        ("fault_pc", "i8"),
        ("fault_lane", "i8"),  # -1: the whole token
        ("fault_address", "i8"),  # that the lane asked for ...
        ("fault_named", "i8"),  # ... and that was named for it
        ("head", "i8"),
        ("count", "i8"),
        ("collecting", "i8"),  # instructions that hold a collector, and wait for sources that come afterwards
        ("free", "i8"),  # cycle from which the register takes another instruction ...
        ("occupied", "i8"),  # ... if the path does not hold it up, ...
        ("stuck", "i8"),  # ... nor the constant cache
        ("constant_line", "i8", (QUEUE, LANES)),  # that the instructions in the queue need
        ("refused", "i8"),  # the L1's refusal code of this cycle, 0 when there was none
        ("busy", "i8"),  # a line waits for the L1
        ("completed", "i8"),  # tokens that completed in this cycle ...
        ("done", "i4", (COMPLETIONS,)),  # ... and which
        ("in_flight", "i8"),  # tokens in use
        ("tickets", "i4", (MAX_WARPS,)),  # in use
        ("unticketed", "i8"),  # warps without a free ticket
        ("admit", "i8"),  # gates at issue, masks of warps
        ("load_ready", "i8"),
        ("drained", "i8"),
        ("unsent", "i8"),  # warps with lanes that the L1 has not accepted yet
        ("entered", "i8"),  # warps that issued a memory instruction since the path's last step ...
        ("entered_loads", "i8"),  # ... a load
        ("cohort_warps", "i8"),
        ("room", "i8", (MAX_WARPS,)),  # by cohort: for instructions that issue now ...
        ("staged", "i4", (MAX_WARPS,)),  # ... and instructions on their way from issue to the path
        ("queue", WAITING, (QUEUE,)),
        ("uncoalesced", "i8"),  # instructions of more than one line
        ("lines", "i8"),
        ("merged", "i8"),  # lines that went to the L1 with another one's access
        ("line_instructions", "i8"),
        ("texture_hits", "i8"),  # lines of texture fetches that hit in the L1 ...
        ("texture_misses", "i8"),  # ... and the others
        ("order", ORDER, (MAX_WARPS,)),
        ("token", TOKEN, (TOKENS,)),
        ("values", VALUES, (TOKENS,)),  # that loads have read and stores have written, by their tokens
        ("write", WRITE),
        ("client", CLIENT, (MAX_TENANTS,)),
        ("l1", L1.L1),
    ]
)

NOBODY = -1
PORT_TAKEN = -100
"""Refusal of a line because a client has this cycle's access to the L1."""

at_events = pointer_to(EVENTS)


@jit
def lsu_reset(lsu, config):
    """An empty unit with an invalidated L1."""
    lsu.config = addressof(config)
    lsu.answers = 1
    lsu.reorders = 0
    lsu.delivers = 0
    lsu.path_wake = 0
    lsu.fault = Fault.NONE
    lsu.head = 0
    lsu.count = 0
    lsu.collecting = 0
    lsu.free = 0
    lsu.occupied = 0
    lsu.stuck = 0
    lsu.refused = 0
    lsu.busy = 0
    lsu.completed = 0
    lsu.in_flight = 0
    lsu.unticketed = 0
    lsu.admit = -1
    lsu.load_ready = -1
    lsu.drained = -1
    lsu.unsent = 0
    lsu.entered = 0
    lsu.entered_loads = 0
    lsu.turn = 0
    lsu.accessed = NOBODY
    lsu.client_lines = 0
    lsu.cohort_warps = MAX_WARPS
    for w in range(MAX_WARPS):
        lsu.room[w] = NEVER
        lsu.staged[w] = 0
        lsu.tickets[w] = 0
        clear(lsu.order[w])
    lsu.uncoalesced = 0
    lsu.lines = 0
    lsu.merged = 0
    lsu.line_instructions = 0
    lsu.texture_hits = 0
    lsu.texture_misses = 0
    call(lsu.path.reset, lsu.path.handle, addressof(lsu))
    L1.l1_reset(lsu.l1, config, lsu.answers)


@inline
def lsu_full(lsu, config, granted):
    """Whether there is no collector for a further instruction, beside those granted in this cycle."""
    return lsu.count + lsu.collecting + granted >= config.core.collectors_lsu


@jit
def closed(lsu, loads, stores, syncs):
    """Of warps by the kind of their next instruction (atomics among the stores), those that must not issue it now."""
    held = (loads | stores) & ~i64(lsu.admit) | (loads | stores) & i64(lsu.unticketed)
    return held | loads & ~i64(lsu.load_ready) | (stores | syncs) & ~i64(lsu.drained)


@jit
def _take_room(lsu, warp):
    """Count an instruction on its way from issue to the path."""
    cohort = warp // lsu.cohort_warps
    lsu.staged[cohort] += 1
    lsu.room[cohort] -= 1
    if lsu.room[cohort] <= 0:
        lsu.admit &= ~cohort_mask(lsu, cohort)


@jit
def keep_room(lsu, warp):
    """Take the path's room for an instruction that is granted, or that has issued and waits for its sources."""
    _take_room(lsu, warp)


@jit
def return_room(lsu, warp):
    """Undo :func:`keep_room`: the instruction takes what room it needs when it executes."""
    cohort = warp // lsu.cohort_warps
    lsu.staged[cohort] -= 1
    lsu.room[cohort] += 1
    if lsu.room[cohort] > 0:
        lsu.admit |= cohort_mask(lsu, cohort)


@jit
def is_store(kind):
    """Whether an access is a store: done when the L1 has accepted it."""
    return kind == L1.STORE or kind == L1.LOCAL_STORE


@jit
def is_load(kind):
    return kind == L1.LOAD or kind == L1.LOAD_BYPASS or kind == L1.LOCAL_LOAD


@jit
def request_kind(config, instruction):
    if instruction.group == Group.ATOMIC:
        return i64(L1.ATOMIC_ACCESS)
    if instruction.group == Group.TEXTURE:
        return i64(L1.STORE) if instruction.op == Texture.SURFACE_STORE else i64(L1.LOAD)
    if instruction.op == Memory.STORE:
        return i64(L1.LOCAL_STORE) if instruction.space == Space.LOCAL else i64(L1.STORE)
    if instruction.space == Space.LOCAL:
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


@jit
def cohort_mask(lsu, cohort):
    """The warps of a cohort."""
    warps = i64(lsu.cohort_warps)
    return i64((i64(2) << warps - 1) - 1 << cohort * warps)


@jit
def issue_memory(lsu, config, context, instruction, mask, warp, pc):
    """Give a token to an executed instruction whose lanes ``mask`` need the L1; returns its number."""
    used = i64(lsu.tickets[warp])
    ticket = ctz(~used)
    used |= i64(1) << ticket
    lsu.tickets[warp] = used
    if used == ALL_TICKETS:
        lsu.unticketed |= i64(1) << warp
    lsu.in_flight += 1
    number = warp * TICKETS + ticket
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
    token.delivered = 0
    token.texture = 1 if instruction.group == Group.TEXTURE and kind == L1.LOAD else 0
    token.same = _most_on_one_address(context, mask) if kind == L1.ATOMIC_ACCESS else i64(1)
    token.ready = 0
    token.extra = max(i64(config.pipelines[instruction.category].latency) - i64(config.l1.latency), i64(0))
    for lane in range(context.lanes):
        token.address[lane] = context.address[lane]
    loads = is_load(kind)
    order = lsu.order[warp]
    if not (loads and order.loads):
        order.issued += 1
    order.loads = loads
    order.unsent[order.issued % GROUPS] += 1
    order.instructions += 1
    token.group = order.issued
    bit = i64(1) << warp
    lsu.unsent |= bit
    lsu.entered |= bit
    if loads:
        lsu.entered_loads |= bit
    _take_room(lsu, warp)
    return number


@inline
def queue_memory(lsu, token, ready, cycles, latency, warp, pc):
    """Queue an instruction: its token, or NEAR, and the rest of :data:`WAITING`."""
    waiting = lsu.queue[(lsu.head + lsu.count) % QUEUE]
    waiting.token = token
    waiting.at = ready
    waiting.cycles = cycles
    waiting.latency = latency
    waiting.warp = warp
    waiting.pc = pc
    waiting.lines = 0
    lsu.count += 1


@inline
def queue_constants(lsu, context, shift):
    """Note which lines of constants the instruction that was queued last needs."""
    place = (lsu.head + lsu.count - 1) % QUEUE
    waiting = lsu.queue[place]
    waiting.found = 0
    waiting.incomplete = L1.NONE
    left = i64(context.touched)
    while left != 0:
        line = i64(context.address[ctz(left)]) >> shift
        lsu.constant_line[place, waiting.lines] = line
        waiting.lines += 1
        for lane in range(context.lanes):
            if i64(context.address[lane]) >> shift == line:
                left &= ~(i64(1) << lane)


@inline
def head_start(lsu):
    """The cycle in which the head of the queue may start, if the register is not occupied then."""
    return max(i64(lsu.queue[lsu.head].at), i64(lsu.free))


@inline
def offered(lsu, now):
    """Whether the path may take the head of the queue."""
    return lsu.count > 0 and lsu.queue[lsu.head].token != NEAR and head_start(lsu) <= now


@inline
def near_start(lsu):
    """The cycle in which the head of the queue starts without the path, or NEVER if that is not known."""
    if lsu.count == 0 or lsu.queue[lsu.head].token != NEAR or lsu.occupied | lsu.stuck != 0:
        return i64(NEVER)
    return head_start(lsu)


@inline
def _remove_head(lsu, now):
    lsu.free = now + lsu.queue[lsu.head].cycles
    lsu.head = (lsu.head + 1) % QUEUE
    lsu.count -= 1


@inline
def take_head(lsu, now):
    """The path takes the head of the queue, which starts; returns its token."""
    waiting = lsu.queue[lsu.head]
    number = i64(waiting.token)
    if waiting.latency != 0:
        lsu.token[number].ready = now - 1 + waiting.latency
    lsu.staged[waiting.warp // lsu.cohort_warps] -= 1
    _remove_head(lsu, now)
    return number


@jit
def start_near(lsu, now):
    """The head of the queue starts without the path; returns the cycle in which its result is there."""
    done = now - 1 + lsu.queue[lsu.head].latency
    _remove_head(lsu, now)
    return done


@jit
def fail(lsu, fault, number):
    """An internal fault at a token: the launch stops after this cycle."""
    lsu.fault = fault
    lsu.fault_token = number
    lsu.fault_pc = lsu.token[number].pc
    lsu.fault_lane = -1


@jit
def fail_at(lsu, fault, number, access, lane, named):
    """An internal fault at one lane, for which this address was named.

    ``access`` has pc and addresses: the token, or a copy, if the token may stand for another instruction by now.
    """
    fail(lsu, fault, number)
    lsu.fault_pc = access.pc
    lsu.fault_lane = lane
    lsu.fault_address = access.address[lane]
    lsu.fault_named = named


@jit
def lanes_of_line(lsu, number, line):
    """The active lanes of a token whose addresses lie in a line."""
    token = lsu.token[number]
    return lanes_equal(addressof(token), lsu.l1.line_shift, 0, line) & token.mask


@inline
def accepted(lsu, number, lanes, line, code):
    """The L1 has accepted the line of some of a token's lanes, with this outcome. Returns whether it was the last."""
    token = lsu.token[number]
    order = lsu.order[number // TICKETS]
    if token.group != order.accepting:
        if token.group != order.accepting + 1 or order.unsent[order.accepting % GROUPS] != 0:
            fail(lsu, Fault.MEMORY_ORDER, number)
        order.accepting = token.group
    if lanes == 0 or lanes & ~token.unsent != 0:
        fail(lsu, Fault.LANES, number)
    astray = lanes & ~lanes_of_line(lsu, number, line)
    if astray != 0:
        fail_at(lsu, Fault.LINE, number, token, ctz(astray), line << lsu.l1.line_shift)
    lsu.lines += 1
    token.sent += 1
    if lsu.events != 0:
        emit_of_warp(at_events(lsu.events), SENT, i64(lsu.now), number // TICKETS, i64(token.pc), lanes, code)
    if token.texture != 0:
        if code == L1.HIT:
            lsu.texture_hits += 1
        else:
            lsu.texture_misses += 1
    token.unsent &= ~lanes
    if token.unsent != 0:
        return False
    order.unsent[token.group % GROUPS] -= 1
    order.instructions -= 1
    if order.instructions == 0:
        lsu.unsent &= ~(i64(1) << number // TICKETS)
    lsu.line_instructions += 1
    if token.sent > 1:
        lsu.uncoalesced += 1
    return True


@inline
def complete(lsu, number, now):
    """The token is done ``BACK_END`` cycles from now, or later if something else takes longer."""
    token = lsu.token[number]
    token.ready = max(token.ready, now + BACK_END + token.extra)
    lsu.done[lsu.completed] = number
    lsu.completed += 1
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
    if lsu.completed == 0:
        return i64(-1)
    lsu.completed -= 1
    number = i64(lsu.done[lsu.completed])
    warp = number // TICKETS
    lsu.tickets[warp] = i64(lsu.tickets[warp]) & ~(i64(1) << number % TICKETS)
    lsu.unticketed &= ~(i64(1) << warp)
    lsu.in_flight -= 1
    return number


@inline
def bytes_of(lsu, number, lanes):
    """Which bytes of their line some lanes of a token access (``memory.masks``), if that matters to the L1."""
    token = lsu.token[number]
    low = high = i64(0)
    if token.kind == L1.LOAD or token.kind == L1.LOCAL_LOAD or lanes == 0:
        return low, high
    within = i64(lsu.l1.line_bytes) - 1
    thread = ctz(lanes)
    run = lanes >> thread
    if run & run + 1 == 0:
        word = i64(token.address[thread]) >> token.size
        if lanes & ~lanes_equal(addressof(token), i64(token.size), 1, word - thread) == 0:  # one word behind the other
            return span(i64(token.address[thread]) & within, popcount(lanes) * i64(token.bytes))
    each = ones(i64(token.bytes))
    while lanes != 0:
        first = i64(token.address[ctz(lanes)]) & within
        lanes = without_lowest(lanes)
        if first < 64:  # a lane's bytes are aligned, and lie on one side
            low |= i64(each << first)
        else:
            high |= i64(each << first - 64)
    return low, high


@inline
def offer(lsu, port, config, number, line, lanes, low, high, now, identity):
    """Offer a line of a token's ``lanes`` to the L1, which answers with ``identity``. Returns the L1's code.

    ``low`` and ``high`` are the bytes that they access, as :func:`bytes_of` says.
    """
    if lsu.accessed > 0:
        lsu.refused = PORT_TAKEN
        return i64(PORT_TAKEN)
    lsu.accessed = 0
    token = lsu.token[number]
    count = popcount(lanes)
    size = count_of(low, high)
    if token.kind == L1.ATOMIC_ACCESS:  # an operand for each lane, also on one address
        size = min(count * i64(token.bytes), i64(config.l1.line_bytes))
    same = min(i64(token.same), count)
    address = line << lsu.l1.line_shift
    code = L1.l1_access(lsu.l1, port, config, now, i64(token.kind), address, low, high, size, same, identity)
    if code < 0:
        lsu.refused = code
    return code


@inline
def next_answer(lsu, port, config, now, ready):
    """Let the L1 take a reply and give an answer: the path's identity, or -1. The path must be ``ready`` for its own.

    A client's answer goes to the client, and takes this cycle's.
    """
    L1.l1_fill(lsu.l1, port, now)
    return further_answer(lsu, now, ready)


@inline
def further_answer(lsu, now, ready):
    """Another answer of the same cycle."""
    if lsu.clients == 0:
        return i64(L1.l1_answer(lsu.l1, now)) if ready else i64(-1)
    identity = i64(L1.l1_peek(lsu.l1, now))
    if identity < 0 or (identity < CLIENT_TOKENS and not ready):
        return i64(-1)
    L1.l1_answer(lsu.l1, now)
    if identity < CLIENT_TOKENS:
        return identity
    client = lsu.client[identity // CLIENT_TOKENS - 1]
    client.answer = identity % CLIENT_TOKENS
    call(client.answered, client.handle, addressof(lsu))
    return i64(-1)


@jit
def _serve_clients(lsu, port, config, first, last, now):
    """Let the first client with a request, of ``first`` to ``last`` - 1, access the L1, unless somebody has."""
    for k in range(first, last):
        client = lsu.client[k]
        if client.valid != 0 and lsu.accessed == NOBODY:
            lsu.accessed = 1 + k
            token = (1 + k) * CLIENT_TOKENS + i64(client.token)
            kind, address = i64(client.kind), i64(client.address)
            size, lanes = i64(client.size), i64(client.lanes)
            low, high = span(address & i64(lsu.l1.line_bytes) - 1, size)
            client.code = L1.l1_access(lsu.l1, port, config, now, kind, address, low, high, size, lanes, token)
            if client.code >= 0:
                client.valid = 0
                lsu.client_lines += 1
                call(client.accepted, client.handle, addressof(lsu))


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
    lsu.busy = lsu.unsent != 0
    lsu.port = addressof(port)
    lsu.accessed = NOBODY
    clients = i64(lsu.clients)
    for k in range(clients):
        client = lsu.client[k]
        client.wake = call(client.ask, client.handle, addressof(lsu))
    turn = i64(lsu.turn)
    if turn != 0:
        _serve_clients(lsu, port, config, turn - 1, clients, now)
    call(lsu.path.step, lsu.path.handle, addressof(lsu))
    if clients != 0:
        _serve_clients(lsu, port, config, i64(0), clients, now)
        if lsu.accessed != NOBODY:
            lsu.turn = (lsu.accessed + 1) % (clients + 1)


@jit
def lsu_end(lsu, now):
    """The launch has ended: cycle ``now`` is the first that it does not have."""
    lsu.now = now
    if lsu.path.end != 0:
        call(lsu.path.end, lsu.path.handle, addressof(lsu))


@inline
def lsu_wake(lsu, port, config, now):
    """The next cycle in which a step would change something."""
    if lsu.entered != 0 or lsu.refused == PORT_TAKEN:
        return now + 1
    wake = min(i64(L1.l1_wake(lsu.l1, port, config, now)), i64(lsu.path_wake))
    if lsu.count > 0 and lsu.queue[lsu.head].token != NEAR:
        start = head_start(lsu)
        if start > now:
            wake = min(wake, start)
    for k in range(lsu.clients):
        wake = now if lsu.client[k].valid != 0 else min(wake, i64(lsu.client[k].wake))
    return max(wake, now + 1)
