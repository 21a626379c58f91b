"""The load/store unit: from executed memory instructions to line requests at the L1, and back.

Instructions that touch memory beyond the scratchpad wait in a queue, in order. Their head enters the intra-warp
coalescer, which gives one line per cycle; the L1 accepts or refuses it in the same cycle, and a refused line is offered
again. A token stands for an instruction from issue until its last line has been answered (loads, atomics) or accepted
(stores).
"""

from __future__ import annotations

from lockstep.models.core.isa import LANES, Flag, Group, Memory, Space, Texture
from lockstep.models.jit import ctz, i64, jit, popcount, record
from lockstep.models.memory import l1 as L1
from lockstep.models.memory.timing import BACK_END
from lockstep.models.parameters import L1 as L1_PARAMETERS
from lockstep.models.parameters import MAX_MAPS, TICKETS
from lockstep.models.warppool import intra_warp_coalescer as coalescer

QUEUE = 32  # slots; two instructions more than the queue holds may be in the coalescer
assert QUEUE >= L1_PARAMETERS.__dataclass_fields__["instructions"].metadata["high"] + 2
ALWAYS_FREE = MAX_MAPS  # entries of WarpPool's thread-map table, which the baseline does not have
TOKENS = 1024  # memory instructions in flight per SM

COMPLETIONS = 4  # at most two happen in one cycle: an answer and an accepted store

ENTRY = record(
    [
        ("token", "i4"),
        ("kind", "i4"),
        ("size", "i4"),  # log2 of the bytes per lane; at most 4, which is all that the mapping needs
        ("warp", "i4"),
        ("mask", "i8"),
        ("at", "i8"),  # cycle from which it may enter the coalescer
        ("address", "u4", (LANES,)),
    ]
)

TOKEN = record(
    [
        ("ready", "i8"),  # not done before this cycle, whatever the memory answers
        ("extra", "i8"),  # cycles from the last answer to done
        ("next", "i4"),
        ("warp", "i4"),
        ("pc", "i4"),
        ("kind", "i4"),
        ("bytes", "i4"),
        ("lines", "i4"),  # lines that are still to be answered, plus one while lines are to be sent
        ("sent", "i4"),  # lines sent
        ("texture", "i4"),  # a texture fetch
        ("same", "i4"),  # atomics: most lanes on one address
    ]
)

LSU = record(
    [
        ("head", "i8"),
        ("count", "i8"),
        ("refused", "i8"),  # the L1's refusal code of this cycle, 0 when there was none
        ("busy", "i8"),  # something waits here
        ("slot_token", "i4", (QUEUE,)),  # the token of a queue slot, as the coalescer's lines name it
        ("presented", "i8"),  # the head is on the coalescer's input
        ("again", "i8"),  # the next cycle needs a step
        ("completed", "i8"),  # tokens that completed in this cycle ...
        ("done", "i4", (COMPLETIONS,)),  # ... and which
        ("free", "i8"),  # first of the list of free tokens
        ("tokens", "i8"),  # how many are free
        ("queue", ENTRY, (QUEUE,)),
        ("uncoalesced", "i8"),  # instructions of more than one line
        ("lines", "i8"),
        ("line_instructions", "i8"),
        ("texture_hits", "i8"),  # lines of texture fetches that hit in the L1 ...
        ("texture_misses", "i8"),  # ... and the others
        ("token", TOKEN, (TOKENS,)),
        ("l1", L1.L1),
        ("coalescer", coalescer.STATE),
        ("io", coalescer.PORTS),
    ]
)


@jit
def lsu_reset(lsu, config):
    """An empty unit with an invalidated L1."""
    lsu.head = 0
    lsu.count = 0
    lsu.refused = 0
    lsu.busy = 0
    lsu.presented = 0
    lsu.again = 0
    lsu.completed = 0
    lsu.free = 0
    lsu.tokens = TOKENS
    for t in range(TOKENS):
        lsu.token[t].next = t + 1
    lsu.uncoalesced = 0
    lsu.lines = 0
    lsu.line_instructions = 0
    lsu.texture_hits = 0
    lsu.texture_misses = 0
    L1.l1_reset(lsu.l1, config)
    lsu.coalescer.lanes = LANES
    coalescer.reset(lsu.coalescer, lsu.io)
    lsu.io.i.line_shift = ctz(i64(config.l1.line_bytes))
    lsu.io.i.map_free = ALWAYS_FREE
    lsu.io.i.request.valid = 0


@jit
def lsu_full(lsu, config):
    """Whether the queue takes no further instruction."""
    return lsu.count >= config.l1.instructions or lsu.tokens == 0


@jit
def _request_kind(config, c):
    if c.group == Group.ATOMIC:
        return i64(L1.ATOMIC_ACCESS)
    if c.group == Group.TEXTURE:
        return i64(L1.STORE) if c.op == Texture.SURFACE_STORE else i64(L1.LOAD)
    if c.op == Memory.STORE:
        return i64(L1.LOCAL_STORE) if c.space == Space.LOCAL else i64(L1.STORE)
    if c.space == Space.LOCAL:
        return i64(L1.LOCAL_LOAD)
    bypass = (i64(c.flags) & (Flag.VOLATILE | Flag.CACHE_GLOBAL)) != 0 or config.l1.data == 0
    return i64(L1.LOAD_BYPASS) if bypass else i64(L1.LOAD)


@jit
def _most_on_one_address(x, mask):
    most = i64(0)
    while mask != 0:
        address = i64(x.address[ctz(mask)])
        same = i64(0)
        rest = mask
        while rest != 0:
            lane = ctz(rest)
            rest &= rest - 1
            if i64(x.address[lane]) == address:
                same += 1
                mask &= ~(i64(1) << lane)
        most = max(most, same)
    return most


@jit
def issue_memory(lsu, config, x, c, mask, start, ready, warp, pc):
    """Queue an executed instruction whose lanes ``mask`` need the L1; it may enter the coalescer at cycle ``start``."""
    token = i64(lsu.free)
    lsu.free = lsu.token[token].next
    lsu.tokens -= 1
    kind = _request_kind(config, c)
    lsu.token[token].warp = warp
    lsu.token[token].pc = pc
    lsu.token[token].kind = kind
    lsu.token[token].bytes = i64(c.bytes) * i64(c.vec)
    lsu.token[token].lines = 1
    lsu.token[token].sent = 0
    lsu.token[token].texture = 1 if c.group == Group.TEXTURE and kind == L1.LOAD else 0
    lsu.token[token].same = _most_on_one_address(x, mask) if kind == L1.ATOMIC_ACCESS else i64(1)
    lsu.token[token].ready = ready
    lsu.token[token].extra = max(i64(config.pipelines[c.category].latency) - i64(config.l1.latency), i64(0))
    entry = lsu.queue[(i64(lsu.head) + i64(lsu.count)) % QUEUE]
    lsu.count += 1
    entry.token = token
    entry.kind = kind
    size = i64(lsu.token[token].bytes)
    entry.size = ctz(size) if size < 16 else 4
    entry.warp = warp
    entry.mask = mask
    entry.at = start
    for lane in range(x.lanes):
        entry.address[lane] = x.address[lane]


@jit
def _answered(lsu, token, now):
    """One line less to wait for; after the last one the token is done."""
    lsu.token[token].lines -= 1
    if lsu.token[token].lines == 0:
        lsu.token[token].ready = max(i64(lsu.token[token].ready), now + BACK_END + i64(lsu.token[token].extra))
        lsu.done[lsu.completed] = token
        lsu.completed += 1


@jit
def take_completed(lsu):
    """A token that completed in this cycle, or -1. It is free again: read it before the next ``issue_memory``."""
    if lsu.completed == 0:
        return i64(-1)
    lsu.completed -= 1
    token = i64(lsu.done[lsu.completed])
    lsu.token[token].next = lsu.free
    lsu.free = token
    lsu.tokens += 1
    return token


@jit
def _offer_line(lsu, port, config, now):
    """Offer the coalescer's line to the L1; returns 1 when it was accepted."""
    line = lsu.io.o.line.payload
    token = i64(lsu.slot_token[i64(line.warp) * TICKETS + line.ticket])
    kind = i64(lsu.token[token].kind)
    lanes = popcount(i64(line.mask))
    size = min(lanes * i64(lsu.token[token].bytes), i64(config.l1.line_bytes))
    same = min(i64(lsu.token[token].same), lanes)
    address = i64(line.number) << i64(lsu.io.i.line_shift)
    code = L1.l1_access(lsu.l1, port, config, now, kind, address, size, same, token)
    if code < 0:
        lsu.refused = code
        return i64(0)
    lsu.lines += 1
    lsu.token[token].sent += 1
    if lsu.token[token].texture != 0:
        if code == L1.HIT:
            lsu.texture_hits += 1
        else:
            lsu.texture_misses += 1
    last = line.last != 0
    stores = kind == L1.STORE or kind == L1.LOCAL_STORE
    if not stores:
        lsu.token[token].lines += 1
    if last:
        lsu.line_instructions += 1
        if lsu.token[token].sent > 1:
            lsu.uncoalesced += 1
        _answered(lsu, token, now)
    return i64(1)


@jit
def _present(lsu, entry, request):
    """Put the head of the queue on the coalescer's input, where it holds until it is accepted."""
    lsu.presented = 1
    lsu.slot_token[lsu.head] = entry.token
    request.warp = lsu.head // TICKETS
    request.ticket = lsu.head % TICKETS
    request.size = entry.size
    request.mask = entry.mask
    request.store = 1 if entry.kind == L1.STORE or entry.kind == L1.LOCAL_STORE else 0
    request.atomic = 1 if entry.kind == L1.ATOMIC_ACCESS else 0
    for lane in range(LANES):
        request.address[lane] = entry.address[lane]


@jit
def lsu_step(lsu, port, config, now):
    """One core cycle of L1 answers, line requests and the coalescer."""
    lsu.refused = 0
    token = i64(L1.l1_step(lsu.l1, port, config, now))
    if token >= 0:
        _answered(lsu, token, now)
    io = lsu.io
    lsu.busy = 1 if lsu.count != 0 or io.o.line.valid != 0 else 0
    io.i.line.ready = _offer_line(lsu, port, config, now) if io.o.line.valid != 0 else i64(1)
    entry = lsu.queue[lsu.head]
    offered = lsu.count > 0 and entry.at <= now
    if offered and lsu.presented == 0:
        _present(lsu, entry, io.i.request.payload)
    io.i.request.valid = 1 if offered else 0
    lsu.again = 1 if coalescer.idle(lsu.coalescer, io) == 0 else 0
    if lsu.again == 0:
        return
    if offered and io.o.request.ready != 0:
        lsu.presented = 0
        lsu.head = (i64(lsu.head) + 1) % QUEUE
        lsu.count -= 1
    coalescer.step(lsu.coalescer, io)


@jit
def lsu_wake(lsu, port, config, now):
    """The next cycle in which a step would change something."""
    wake = i64(L1.l1_wake(lsu.l1, port, config, now))
    if lsu.again != 0:
        return now + 1
    if lsu.count > 0:
        at = i64(lsu.queue[lsu.head].at)
        if at > now:
            wake = min(wake, at)
    return wake
