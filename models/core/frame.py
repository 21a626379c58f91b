"""The SM's frame: where mechanisms take part in a cycle, and the records of those that do.

A *frame slot* is a place in the SM where a mechanism may have a say; what fills it is its *tenant*: addresses of
compiled functions, and a handle, the address of the tenant's own state on this SM. A stack has up to
:data:`MAX_TENANTS` tenants, a single slot one. A function is called as ``f(handle, address of the SM's record)`` and
finds there what it may know (``models/core/state.py``); it writes its own state and its own entry below, nothing else.

==========  =======================================================================================================
gates       ``update`` is called in every cycle in which the SM is stepped, before warps are chosen. It writes
            ``closed``: by kind of instruction, the warp slots whose next instruction must not issue. ``explain``, which
            may be missing, says for the warp slot in ``asked`` which cause of ``spec/causes.py`` that has, as an index,
            or :data:`UNEXPLAINED`; it changes nothing.
order       ``update`` likewise; it writes the class masks, which the schedulers rank: paused last, then primary before
            secondary, then owner before unshared before non-owner. They hold from the next cycle on.
claims      ``ask`` sees the granted instructions of all schedulers in ``grants`` and returns the schedulers whose
            grant it refuses, as a mask; it changes nothing. Then ``commit`` sees there what has become of each
            (``refused``). It takes what the others need, and writes ``waiting``: the warp slots that need not ask again
            before its state has changed. It takes them out of ``waiting`` when that happens. ``reserve``, which may be
            missing, lets the warp slot in ``asked`` have what it may need to access the scratchpad, until its CTA ends,
            and returns whether it can: for a mechanism that must know before it lets a warp begin. Where operands
            come later, the addresses in ``grants`` are those of poison.
operands    ``read`` says in which cycle the sources of the instruction in ``operand`` are there, or :data:`LATER`. In
            the second case ``step``, called in every cycle in which the SM is stepped, sets ``delivered``: the warp
            slots whose oldest outstanding instruction has its sources now, in the warp's registers; it executes then.
            ``take`` may move the results out of the warp's registers, right after the execution; ``write`` says how
            many cycles they take to be written when they are there, or LATER: it then schedules the write-back itself.
            Where lines have values, results of loads and atomics are in the registers from ``write`` on.
            Without a tenant, the register file answers at issue.
l1_clients  ``ask``, called with the LSU's record, may present a request in the client's entry (``valid``, the kind of
            access, its bytes and what ``l1_access`` needs besides, a ``token`` of its own below :data:`TOKENS`), and
            returns the next cycle in which it has one. ``accepted`` and ``answered`` are called when that happens, the
            second with the token in ``answer``. Who carries data moves them then: into the client's backing store when
            the L1 accepts, out of it when the L1 answers. The path and the clients with a request take turns at the
            L1's port; while there is one alone, it waits for nobody. A client that fills another frame slot may say in
            ``wake`` that it has a request for the next cycle.
limits      ``update`` is called as those of gates are; it writes ``ctas``, how many CTAs the SM may hold now,
            ``closed``, the grids of which no further one may start or come back, and ``leave``, the places of CTAs that
            are to leave it (``placement``): they are resumed before others start.
context     moves the contexts of CTAs that leave, out of the SM and back (``context``). ``step`` is called in every
            cycle in which the SM is stepped, after the limits have been asked. It finds in ``drained`` the places of
            CTAs that are to leave and of which nothing is on its way; ``moving`` are those that it has begun to move
            out, which then must leave. ``context.take_off``, ``claim`` and ``put_on`` are its to call, and ``out`` and
            ``closed`` its to write: the grids that have CTAs out of this SM, and those of which no new CTA may start
            here. In ``away`` it finds those that are to leave altogether. Without a tenant, a CTA leaves at once and
            comes back for nothing, on any SM.
placement   ``number`` is called with the record of the whole run when the dispatcher places a CTA (its output
            ``dispatch``: number of the dispatch, SM), and returns which CTA of the grid it is.
events      ``hear`` is called at each event, which stands in ``events``.
monitors    ``see`` is called for every run of equal cycles with the number of them in ``seen.cycles``, and at
            ``wake`` at the latest; the cycles of all calls together are all cycles of the SM, none twice.
            ``watch`` is called with the record of the whole run, when all SMs have counted up to the same cycle.
==========  =======================================================================================================

``update``, ``step``, ``see`` and ``watch`` return the next cycle in which they must be called if nothing else happens:
the SM sleeps no longer than that. Selecting a mechanism changes addresses in records; nothing is compiled for it.
"""

from __future__ import annotations

from lockstep.models.execution.isa import LANES
from lockstep.models.jit import call, i64, jit, record
from lockstep.models.marks import Part, mark
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_CTAS, MAX_SCHEDULERS, MAX_WARPS

MAX_TENANTS = 8  # of a stack

OTHER, LOAD, STORE, ATOMIC, SYNC = range(5)
"""Kinds of instructions, for gates: a barrier or a fence is SYNC, accesses beyond the SM are LOAD, STORE or ATOMIC."""
KINDS = 5

HAS_GATES, HAS_ORDER, HAS_CLAIMS, HAS_OPERANDS, HAS_LIMITS, HAS_MONITORS, HAS_LISTENERS, HAS_CONTEXT = (
    1 << bit for bit in range(8)
)
STEPPED = HAS_GATES | HAS_ORDER | HAS_CLAIMS | HAS_OPERANDS | HAS_LIMITS | HAS_CONTEXT
"""The frame slots that have tenants, as bits of the SM's ``tenants``, and those that are looked at in every cycle."""

LATER = UNEXPLAINED = -1

TOKENS = 1 << 20
"""Tokens of a client. On its way through the L1, a client's is ``(1 + client) * TOKENS`` more; the path's are less."""

GATE = record([("update", "i8"), ("explain", "i8"), ("handle", "i8"), ("wake", "i8"), ("closed", "i8", (KINDS,))])
CLASSES = record([("paused", "i8"), ("secondary", "i8"), ("owner", "i8"), ("non_owner", "i8")])
ORDER = record([("update", "i8"), ("handle", "i8"), ("wake", "i8"), ("classes", CLASSES)])
CLAIM = record([("ask", "i8"), ("commit", "i8"), ("reserve", "i8"), ("handle", "i8"), ("waiting", "i8")])
OPERANDS = record([("read", "i8"), ("step", "i8"), ("take", "i8"), ("write", "i8"), ("handle", "i8"), ("wake", "i8")])
LIMIT = record(
    [("update", "i8"), ("handle", "i8"), ("wake", "i8"), ("ctas", "i8"), ("closed", "i8"), ("leave", "i8")]
)
CONTEXT = record(
    [
        ("step", "i8"),
        ("handle", "i8"),
        ("wake", "i8"),
        ("drained", "i8"),  # places of CTAs
        ("moving", "i8"),
        ("busy", "i8"),  # 1: one leaves or comes back
        ("out", "i8"),  # grids
        ("closed", "i8"),
        ("away", "i8"),  # grids that are to leave the SM altogether, since it is another one's turn
    ]
)
CLIENT = record(
    [
        ("ask", "i8"),
        ("accepted", "i8"),
        ("answered", "i8"),
        ("handle", "i8"),
        ("wake", "i8"),
        ("valid", "i8"),  # the request ...
        ("kind", "i8"),  # ... as ``memory.l1`` has it
        ("address", "i8"),
        ("size", "i8"),  # bytes, from the address on
        ("lanes", "i8"),  # of an atomic, on one address
        ("token", "i8"),
        ("grid", "i8"),  # on whose behalf
        ("code", "i8"),  # what the L1 said
        ("answer", "i8"),  # the token of a request that is answered
    ]
)
LISTENER = record([("hear", "i8"), ("handle", "i8")])
MONITOR = record([("see", "i8"), ("handle", "i8"), ("wake", "i8")])

# What a scheduler has granted in this cycle.
GRANT = record(
    [
        ("valid", "i8"),
        ("refused", "i8"),  # by a claim
        ("slot", "i8"),  # of the warp
        ("pc", "i8"),
        ("instruction", "i8"),  # its address
        ("lanes", "i8"),  # that execute
        ("room", "i8"),  # it has taken room of the path
        ("touched", "i8"),  # of them, those with an access to memory ...
        ("touched_shared", "i8"),  # ... to the scratchpad
        ("address", "i8", (LANES,)),  # where they touch: scratchpad offsets, device addresses
    ]
)

# The instruction that the operands' tenant is asked about.
OPERAND = record(
    [
        ("slot", "i8"),
        ("pc", "i8"),
        ("instruction", "i8"),  # its address
        ("lanes", "i8"),
        ("now", "i8"),
        ("ready", "i8"),  # ``write``: the cycle in which the results are there
    ]
)

# What monitors see: equal cycles, and in what state the warps were when they were chosen from.
SEEN = record(
    [
        ("first", "i8"),  # cycle
        ("cycles", "i8"),
        ("issuing", "i8"),  # of them, the first ones: an issue is under way, which may take several cycles
        ("outcome", "i8"),  # as ``state.ISSUED`` and the others
        ("resident", "i8"),  # warp slots ...
        ("ready", "i8"),  # ... whose next instruction waits for nothing but its turn, a pipeline or a gate
        ("waiting", "i8"),  # ... whose next instruction waits for memory
        ("at_barrier", "i8"),
        ("held", "i8"),  # ... that are ready, but for a gate or a claim
        ("issued", "i8"),  # ... that issued
    ]
)

ISSUE, WRITTEN, SENT, ANSWERED, ARRIVED, LEFT = range(6)
CTA_START, CTA_END, CTA_SAVED, CTA_RESUMED, WARP_START, WARP_END = range(6, 12)
CONFLICT = 12
"""Events. ``lanes`` are those that execute (ISSUE), are sent to the L1 or answered (SENT, ANSWERED), exist
(WARP_START), or access the scratchpad (CONFLICT). ``flags`` are the instruction's (``isa.Flag``) at ISSUE, what the L1
said (``memory.l1``) at SENT, and at CONFLICT the cycles that the access takes beyond its first, maybe none. ARRIVED and
LEFT are at a barrier. A preempted CTA is SAVED, then RESUMED."""

EVENTS = record(
    [
        ("count", "i8"),  # listeners
        ("sm", "i8"),  # address of the SM's record
        ("now", "i8"),
        ("kind", "i8"),
        ("grid", "i8"),
        ("cta", "i8"),  # slot in the SM
        ("slot", "i8"),  # of the warp; -1: none
        ("pc", "i8"),  # -1: none
        ("lanes", "i8"),
        ("flags", "i8"),
        ("cta_of", "i4", (MAX_WARPS,)),
        ("grid_of", "i4", (MAX_CTAS,)),
        ("listener", LISTENER, (MAX_TENANTS,)),
    ]
)

FRAME = record(
    [
        ("now", "i8"),
        ("gates", "i8"),  # tenants of each stack
        ("orders", "i8"),
        ("claims", "i8"),
        ("monitors", "i8"),
        ("limits", "i8"),
        ("closed", "i8", (KINDS,)),  # by any gate
        ("leaving", "i8"),  # CTAs, as any limit says
        ("context", CONTEXT),
        ("asked", "i8"),  # the warp slot that ``explain`` and ``reserve`` are asked about
        ("waiting", "i8"),  # for any claim
        ("classes", CLASSES),
        ("delivered", "i8"),
        ("operands", OPERANDS),
        ("operand", OPERAND),
        ("seen", SEEN),
        ("events", EVENTS),
        ("grants", GRANT, (MAX_SCHEDULERS,)),
        ("gate", GATE, (MAX_TENANTS,)),
        ("order", ORDER, (MAX_TENANTS,)),
        ("claim", CLAIM, (MAX_TENANTS,)),
        ("monitor", MONITOR, (MAX_TENANTS,)),
        ("limit", LIMIT, (MAX_TENANTS,)),
    ]
)


@jit
def emit(events, kind, now, slot, cta, pc, lanes, flags):
    """Tell the listeners."""
    events.kind = kind
    events.now = now
    events.slot = slot
    events.cta = cta
    events.grid = events.grid_of[cta]
    events.pc = pc
    events.lanes = lanes
    events.flags = flags
    for k in range(events.count):
        listener = events.listener[k]
        before = mark(Part.MECHANISMS)
        call(listener.hear, listener.handle, events.sm)
        mark(before)


@jit
def emit_of_warp(events, kind, now, slot, pc, lanes, flags):
    """Tell the listeners what a warp does."""
    emit(events, kind, now, slot, i64(events.cta_of[slot]), pc, lanes, flags)


@jit
def update(frame, sm):
    """Ask the gates and the order for this cycle's masks. Returns whether they differ from those of before."""
    changed = i64(0)
    for k in range(frame.gates):
        gate = frame.gate[k]
        gate.wake = call(gate.update, gate.handle, sm)
    for kind in range(KINDS if frame.gates != 0 else 0):
        closed = i64(0)
        for k in range(frame.gates):
            closed |= frame.gate[k].closed[kind]
        changed |= closed ^ frame.closed[kind]
        frame.closed[kind] = closed
    if frame.orders != 0:
        changed |= _orders(frame, sm)
    leaving = i64(0)
    for k in range(frame.limits):
        limit = frame.limit[k]
        limit.wake = call(limit.update, limit.handle, sm)
        leaving |= limit.leave
    frame.leaving = leaving
    if frame.claims != 0:
        waiting = i64(0)
        for k in range(frame.claims):
            waiting |= frame.claim[k].waiting
        changed |= waiting ^ frame.waiting
        frame.waiting = waiting
    return changed != 0


@jit
def _orders(frame, sm):
    paused = secondary = owner = non_owner = i64(0)
    for k in range(frame.orders):
        order = frame.order[k]
        order.wake = call(order.update, order.handle, sm)
        paused |= order.classes.paused
        secondary |= order.classes.secondary
        owner |= order.classes.owner
        non_owner |= order.classes.non_owner
    classes = frame.classes
    changed = classes.paused ^ paused | classes.secondary ^ secondary
    changed |= classes.owner ^ owner | classes.non_owner ^ non_owner
    classes.paused = paused
    classes.secondary = secondary
    classes.owner = owner
    classes.non_owner = non_owner
    return changed


@jit
def explain(frame, sm, slot):
    """The cause that a gate gives for a warp slot that it has closed, or :data:`UNEXPLAINED` if none does."""
    frame.asked = slot
    why = i64(UNEXPLAINED)
    for k in range(frame.gates):
        gate = frame.gate[k]
        if why == UNEXPLAINED and gate.explain != 0:
            why = call(gate.explain, gate.handle, sm)
    return why


@jit
def reserve_scratchpad(frame, sm, slot):
    """Let a warp slot have what all claims may ask of its accesses to the scratchpad; returns whether it can."""
    frame.asked = slot
    for k in range(frame.claims):
        claim = frame.claim[k]
        if claim.reserve != 0 and call(claim.reserve, claim.handle, sm) == 0:
            return False
    return True


@jit
def most_ctas(frame):
    """How many CTAs the SM may hold, as its limits say."""
    most = i64(NEVER)
    for k in range(frame.limits):
        most = min(most, i64(frame.limit[k].ctas))
    return most


@jit
def closed_grids(frame):
    """The grids of which no further CTA may start or come back, as its limits say."""
    closed = i64(0)
    for k in range(frame.limits):
        closed |= frame.limit[k].closed
    return closed
