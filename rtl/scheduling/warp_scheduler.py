"""Chooses the warp that issues: one of the schedulers of an SM. Chen's thesis, chapter 4, for the policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl import ranges
from lockstep.rtl.bits import index_of, popcount
from lockstep.spec.parameters import MAX_PATIENCE, MAX_SCHEDULERS, MAX_WARPS, SCHEDULERS

GREEDY = ("greedy-rr", "gto")  # go on with the warp that issued last
BY_SLOT = ("lrr", "greedy-rr", "two-level")  # order warps by slot, from the one that issued last
BY_PRIORITY = ("simple-p", "region-p")  # order them by age, from the holder of the priority
ALL_POLICIES = (1 << len(SCHEDULERS)) - 1


class WarpScheduler(wiring.Component):
    """Grants one of the requesting warps in every cycle.

    The grant answers the requests of the same cycle. A warp can be granted from the cycle after its ``start`` until the
    cycle of its ``finish``; requests of other slots are ignored. Warps are as old as their start; those that start
    together age in the order of their slots.

    **Classes.** Of the candidates, those of the highest class come into question: warps that are not paused before
    paused ones; among these, primary before secondary ones; among these, owners before unshared warps before
    non-owners. What the ports say of classes holds from the next cycle on. The policy decides among them, over one
    state for all classes: an issue of any class moves it on.

    ========== =============================================================================================
    lrr        the first slot after the one that issued last, circularly; slot 0 first. The thesis's fine round robin:
               a warp does not issue again before all others that could in the meantime
    greedy-rr  the warp that issued last, while it comes into question; else as lrr
    gto        the warp that issued last, while it comes into question; else the oldest
    oldest     the oldest
    two-level  as lrr; candidates are at most ``active_warps`` active warps, and those that patience lets go
    simple-p   the first by age, circularly, from the holder of the priority on. The priority passes on, one
               warp per cycle, while its holder waits for a global load and not all warps do
    region-p   as simple-p, but the priority passes on when an instruction of its holder issues with ``hint``
    ========== =============================================================================================

    **Active warps** (two-level). Warps start as pending. An active warp that reports a long latency becomes pending. In
    each cycle one pending warp that reported none in the cycle before may become active: the next circularly by slot
    after the one that became active last, among those of the highest class. It does if there was room in the cycle
    before, and else if an active warp is of a lower class: of the active ones in the lowest class, the next by slot
    after the one that became active last yields, since under this order it has been active longest. So a paused warp is
    active while no other wants its place, and issues when no other can.

    **Priority** (simple-p, region-p). It passes to the next younger warp, from the youngest to the oldest; it does so
    too when its holder ends. The oldest warp gets it when nobody has it.

    **Patience.** A warp that requests is passed over in each cycle in which a warp of a higher class issues. One that
    was passed over ``patience`` times comes into question before all classes when it next requests; among several the
    policy decides. Its count, of which its grant, start or finish makes zero, does not go on beyond that. Grants within
    its own class, to lower ones and to warps whose own patience has ended do not count. Under two-level, a pending warp
    counts and goes like an active one, without becoming active: else warps of a higher class that never all wait would
    keep it from its turn for ever. Between the moment when patience ends and the grant to a warp that keeps requesting,
    every other warp issues at most once.

    **Refused grants.** A warp whose grant is refused does not issue, and the state after the cycle is that of a cycle
    without requests. Until it may succeed, the warp must not request, and counts as waiting for long latency: it must
    be reported in ``long_latency`` and ``global_wait``. Then each policy passes on as it does for such a wait. lrr: to
    the next slot after the one that issued last, which was not this one. gto: to the oldest, and a warp that was greedy
    remains so until another issues. oldest: to the oldest. two-level: the warp becomes pending. simple-p: the priority
    passes on if the warp holds it. region-p: the holder keeps the priority, since its hint did not issue, and the
    others follow it by age.

    Parameters
    ----------
    warps : int
        Warp slots of the SM.
    schedulers : int
        Schedulers of the SM. Scheduler k serves the slots k, k + ``schedulers`` and so on, and sees zeros in the other
        bits of all ports; which k it is it need not know.
    patience : int
        The largest ``patience``. Each slot has a counter of as many bits as 1 less has, and three bits more: for 1,024
        and 48 warps of two schedulers 312 bits. 0: no counters, and nobody looks at the port.
    classes : int
        1: there are classes. 0: neither what compares them nor patience is built, and the ports of the classes must be
        zero.
    policies : int
        The policies that are built: bit k for that of index k in ``parameters.SCHEDULERS``. The port chooses among
        them; with one policy nobody looks at it.

    Members
    -------
    policy : In
        Index into ``parameters.SCHEDULERS`` of a policy that is built; constant.
    active_warps : In
        Two-level: the most active warps; constant, at least 1.
    patience : In
        Grants to higher classes that a warp lets pass; constant, and 0 if its patience never ends.
    start : In, one bit per slot
        The slot holds a new warp from the next cycle on, also in the cycle of its last warp's finish.
    finish : In, one bit per slot
        The warp has ended.
    long_latency : In, one bit per slot
        Two-level: the warp waits for memory, at a barrier, at a gate or after a refusal. Whatever can only end through
        another warp's progress must be reported, or the pending warps may wait for ever.
    global_wait : In, one bit per slot
        simple-p: the warp waits for a load from global memory, or after a refusal.
    paused, secondary, owner, non_owner : In, one bit per slot
        The warp's class in the next cycle; an owner's ``non_owner`` is ignored. All zero: one class.
    request : In, one bit per slot
        The warp could issue now.
    hint : In
        region-p: the granted instruction shifts the priority.
    refused : In
        The granted instruction does not issue.
    grant : Out
        ``valid`` and ``warp``, the slot granted; 0 while not valid. Combinational.
    granted : Out, one bit per slot
        The same as a mask, for what is too late with a number. Combinational.

    Raises
    ------
    ValueError
        for a size out of range.
    """

    LARGEST: ClassVar = {
        "warps": MAX_WARPS, "schedulers": MAX_SCHEDULERS, "patience": MAX_PATIENCE, "classes": 1,
        "policies": ALL_POLICIES,
    }  # fmt: skip
    combinational: Mapping[str, tuple[str, ...]] = dict.fromkeys(("grant", "granted"), ("policy", "request"))
    constant: ClassVar = ("policy", "active_warps", "patience")

    def __init__(
        self, *, warps: int = 48, schedulers: int = 2, patience: int = 1024, classes: int = 1,
        policies: int = ALL_POLICIES,
    ) -> None:  # fmt: skip
        given = (
            ("warps", warps, 1), ("schedulers", schedulers, 1), ("patience", patience, 0), ("classes", classes, 0),
            ("policies", policies, 1),
        )  # fmt: skip
        for what, value, least in given:
            ranges.check(what, value, least, self.LARGEST[what])
        self._built = [name for index, name in enumerate(SCHEDULERS) if policies >> index & 1]
        if len({(name in GREEDY, name in BY_SLOT, name == "two-level") for name in self._built}) == 1:
            self.combinational = dict.fromkeys(self.combinational, ("request",))
        self._schedulers = schedulers
        self._warps = warps
        self._classes = classes
        self._patience = patience if classes else 0
        own = self.own_warps
        super().__init__(
            {
                "policy": In(range(len(SCHEDULERS))),
                "active_warps": In(range(warps + 1)),
                "patience": In(range(max(patience, 1) + 1)),
                "start": In(warps),
                "finish": In(warps),
                "long_latency": In(warps),
                "global_wait": In(warps),
                "paused": In(warps),
                "secondary": In(warps),
                "owner": In(warps),
                "non_owner": In(warps),
                "request": In(warps),
                "hint": In(1),
                "refused": In(1),
                "grant": Out(wiring.Signature({"valid": Out(1), "warp": Out(bits_for(warps - 1))})),
                "granted": Out(warps),
            }
        )
        # The state; proofs speak of it.
        self.live = Signal(own)
        self.after_last = Signal(max(own - 1, 1))  # the slots from 1 on that are after the one that issued last
        self.greedy = Signal(own)  # that one, while it holds the warp that issued
        self.active = Signal(own)  # as the next four: two-level
        self.waiting = Signal(own)  # reported a long latency a cycle ago
        self.after_promoted = Signal.like(self.after_last)  # the slots after the one that became active last
        self.filled = Signal(range(own + 1))  # warps that were active a cycle ago
        self.entered = Signal()  # one more became active then, and none yielded to it
        self.holder = Signal(own)  # of the priority: one-hot, or nobody
        self.before_holder = Signal(own)  # the older ones; what is said of slots that are not live means nothing
        self.urgent = Signal(own)  # their patience has ended
        bits = (patience - 1).bit_length() if self._patience else 0
        self.passes = [Signal(own, name=f"passes_{bit}") for bit in range(bits)]  # bits of the slots' counts
        self.anew = Signal(own)  # the slots whose count is zero, whatever ``passes`` says, ...
        self.added = Signal(own)  # ... and those whose count is one more: a refusal comes late in its cycle
        # What is between two slots is in the row of the higher one, from slot 1 on: the slots below it that are older,
        # and those that were in a higher and in a lower class a cycle ago. Of slots that are not both live, ``older``
        # says nothing; only starts write it, so that it needs neither counters nor the order of finishes.
        self.older, self.higher, self.lower = (
            [Signal(slot, name=f"{what}_{slot}") for slot in range(1, own)] for what in ("older", "higher", "lower")
        )

    @property
    def own_warps(self) -> int:
        """Warps that the scheduler serves."""
        return -(-self._warps // self._schedulers)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        warps, live = self.own_warps, self.live
        start, finish, request = (self._own(m, name) for name in ("start", "finish", "request"))
        if self._classes:
            self._compare_classes(m)

        requesting = Signal(warps)
        candidates = Signal(warps)
        m.d.comb += [requesting.eq(request & live), candidates.eq(requesting)]
        if self._has("two-level"):
            every = ~self._is("two-level").replicate(warps)
            m.d.comb += candidates.eq(requesting & (self.active | self.urgent | every))
        # Every policy orders the slots by age or by number. One that begins in the middle of its order lets those up
        # to there come last; by number, these are the slots up to the one that issued last, and by age, those before
        # the holder of the priority.
        order: list[Value] = list(self.older)  # rows like these: by the policy alone
        by_slot, by_priority = self._is(*BY_SLOT), self._is(*BY_PRIORITY)
        if self._has(*BY_SLOT):
            order = [row | by_slot.replicate(len(row)) for row in order]
        if self._has(*BY_SLOT, *BY_PRIORITY):
            order = list(_turned(m, order, self._turn(m, by_slot), "in_turn"))
        if self._has(*GREEDY):
            first = Signal(warps)
            m.d.comb += first.eq(Mux(self._is(*GREEDY), self.greedy, 0))
            order = [(first[: len(row)] | row) & ~first[len(row)].replicate(len(row)) for row in order]
        ranked = []  # by patience and class, and then by the policy
        for row, higher, lower in zip(order, self.higher, self.lower, strict=True):
            slot = len(row)
            by_class = Signal(slot, name=f"by_class_{slot}")
            urgent, mine = self.urgent[:slot], self.urgent[slot].replicate(slot)
            sooner, later = ~mine & (urgent | higher), ~urgent & (mine | lower)
            m.d.comb += by_class.eq(sooner | ~later & row)
            ranked.append(by_class)
        granted = _first(m, candidates, ranked, "candidates")
        of_all = Cat(slot.replicate(self._schedulers) for slot in granted)  # each slot, and those of other schedulers
        issued = Signal()
        m.d.comb += [
            self.grant.valid.eq(candidates.any()),
            self.granted.eq(of_all[: self._warps] & self.request),
            self.grant.warp.eq(index_of(self.granted)),
            issued.eq(self.grant.valid & ~self.refused),
        ]

        staying = Signal(warps)
        issuing = Signal(warps)
        m.d.comb += [
            staying.eq(live & ~start & ~finish),
            issuing.eq(Mux(self.refused, 0, granted)),
        ]
        m.d.sync += live.eq(live & ~finish | start)
        if self._has(*BY_SLOT):
            with m.If(issued):
                m.d.sync += self.after_last.eq(_after(granted))
        if self._has(*GREEDY):
            m.d.sync += self.greedy.eq(Mux(issued, granted, self.greedy) & ~start)
        if self._has("gto", "oldest", *BY_PRIORITY):
            with m.If(start.any()):
                for slot, row in enumerate(self.older, 1):
                    m.d.sync += row.eq(row & ~start[:slot] | start[slot].replicate(slot))

        overdue = (candidates & self.urgent).any()
        beaten: Value = Const(0)
        if self._patience or self._has("region-p"):
            beaten = _behind(m, candidates, self.higher, self.lower, "candidates_class")
        if self._patience:
            counts = issued & ~overdue & (self.patience != 0)
            self._pass_over(m, Mux(counts, requesting & ~self.urgent & beaten, 0), ~staying | issuing)
        if self._has("two-level"):
            with m.If(self._is("two-level")):
                self._activate(m, staying)
        if self._has(*BY_PRIORITY):
            global_wait = self._own(m, "global_wait")
            waits = (self.holder & global_wait).any() & (staying & ~global_wait).any()
            # The first by the policy, the holder issues if it comes into question.
            in_question = candidates & Mux(overdue, self.urgent, ~beaten)
            shifts = self.hint & ~self.refused & (self.holder & in_question).any()
            with m.If(by_priority):
                self._pass_on(m, start, staying, order, Mux(self._is("simple-p"), waits, shifts))
        return m

    def _has(self, *policies: str) -> bool:
        """Whether any of some policies is built."""
        return not set(policies).isdisjoint(self._built)

    def _is(self, *policies: str) -> Value:
        """Whether the policy is one of some."""
        built = [name for name in policies if name in self._built]
        if len(built) in (0, len(self._built)):
            return Const(len(built) > 0, 1)
        return Cat(self.policy == SCHEDULERS.index(name) for name in built).any()

    def _turn(self, m: Module, by_slot: Value) -> Value:
        """The slots that come first, and then the others, each in their order."""
        after_last = _from_zero(self.after_last, self.own_warps)
        if not self._has(*BY_PRIORITY):
            return after_last
        if not self._has(*BY_SLOT):
            return self.before_holder
        turn = Signal(self.own_warps, name="turn")
        m.d.comb += turn.eq(Mux(by_slot, after_last, self.before_holder))
        return turn

    def _own(self, m: Module, port: str) -> Signal:
        """The bits of a port that are this scheduler's, closely packed: those of the others are zero."""
        own = Signal(self.own_warps, name=f"own_{port}")
        bits = getattr(self, port)
        m.d.comb += own.eq(Cat(bits[k : k + self._schedulers].any() for k in range(0, self._warps, self._schedulers)))
        return own

    def _compare_classes(self, m: Module) -> None:
        """Compare the classes of all pairs of slots, for the next cycle."""
        paused, secondary, owner, non_owner = (
            self._own(m, name) for name in ("paused", "secondary", "owner", "non_owner")
        )
        second = Signal(self.own_warps)
        m.d.comb += second.eq(non_owner & ~owner)
        for slot, (is_higher, is_lower) in enumerate(zip(self.higher, self.lower, strict=True), 1):
            higher: Value = Mux(owner[slot], 0, Mux(second[slot], ~second[:slot], owner[:slot]))
            lower: Value = Mux(second[slot], 0, Mux(owner[slot], ~owner[:slot], second[:slot]))
            for worse in secondary, paused:
                others, mine = worse[:slot], worse[slot]
                higher = Mux(mine, ~others | higher, ~others & higher)
                lower = Mux(mine, others & lower, others | lower)
            m.d.sync += [is_higher.eq(higher), is_lower.eq(lower)]

    def _pass_over(self, m: Module, passing: Value, cleared: Value) -> None:
        """Count once more for the slots that are passed over, and forget the counts of those cleared."""
        warps = self.own_warps
        passed, others = Signal(warps), Signal.like(self.patience, name="others")
        m.d.comb += [passed.eq(passing), others.eq(self.patience - 1)]  # what has been counted before the last one
        carry, reached = self.added, ~Const(0, warps)
        for bit, passes in enumerate(self.passes):
            kept, count = Signal(warps, name=f"kept_{bit}"), Signal(warps, name=f"count_{bit}")
            m.d.comb += [kept.eq(passes & ~self.anew), count.eq(kept ^ carry)]
            m.d.sync += passes.eq(count)
            reached = reached & ~(count ^ others[bit].replicate(warps))
            carry = kept & carry
        reached = reached & ~others[len(self.passes) :].any().replicate(warps)
        m.d.sync += [
            self.anew.eq(cleared),
            self.added.eq(passed & ~cleared),
            self.urgent.eq((self.urgent | passed & reached) & ~cleared),
        ]

    def _activate(self, m: Module, staying: Value) -> None:
        """Two-level: choose the active warps of the next cycle."""
        warps = self.own_warps
        active = self.active
        pending, entering, yielding = (Signal(warps, name=name) for name in ("pending", "entering", "yielding"))
        room = Signal()
        turn = _from_zero(self.after_promoted, warps)
        by_slot = _turned(m, [~Const(0, slot) for slot in range(1, warps)], turn, "activation")
        rows = list(zip(self.higher, self.lower, by_slot, strict=True))
        lowest = _first(m, active, [lower | ~higher & row for higher, lower, row in rows], "active")
        waiting = self._own(m, "long_latency")
        m.d.comb += [
            pending.eq(self.live & ~self.waiting & ~active),
            entering.eq(_first(m, pending, [higher | ~lower & row for higher, lower, row in rows], "pending")),
            room.eq(self.filled + self.entered < self.active_warps),
            yielding.eq(Mux(room, 0, lowest & _behind(m, pending, self.higher, self.lower, "pending_class"))),
        ]
        m.d.sync += [
            active.eq(active & staying & ~waiting),
            self.waiting.eq(waiting & staying),
            self.filled.eq(popcount(active)),
            self.entered.eq(room & pending.any()),
        ]
        with m.If(pending.any() & (room | yielding.any())):
            m.d.sync += [
                active.eq((active & ~yielding | entering) & staying & ~waiting),
                self.after_promoted.eq(_after(entering)),
            ]

    def _pass_on(self, m: Module, start: Value, staying: Value, order: list[Value], leaves: Value) -> None:
        """Let the priority pass to the next warp by age, if it leaves its holder or there is none."""
        others = Signal(self.own_warps)
        m.d.comb += others.eq(staying & ~self.holder)
        successor = _first(m, others, order, "others")
        younger = others & ~self.before_holder
        m.d.sync += self.before_holder.eq(self.before_holder & ~start)
        with m.If(~(self.holder & staying).any() | leaves):
            m.d.sync += [
                self.holder.eq(Mux(others.any(), successor, self.holder & staying)),
                self.before_holder.eq(Mux(younger.any(), (self.before_holder | self.holder) & ~start, 0)),
            ]


def _after(onehot: Value) -> Value:
    """The slots from 1 on that are after the one in a mask."""
    return Cat(onehot[:slot].any() for slot in range(1, len(onehot)))


def _from_zero(mask: Value, warps: int) -> Value:
    """A mask of slots from 1 on, with slot 0."""
    return Cat(Const(0, 1), mask)[:warps]


def _turned(m: Module, rows: Sequence[Value], turn: Value, name: str) -> list[Signal]:
    """An order that begins in its middle: the slots of a mask go before the others."""
    turned = [Signal(len(row), name=f"{name}_{len(row)}") for row in rows]
    for slot, (mine, row) in enumerate(zip(turned, rows, strict=True), 1):
        m.d.comb += mine.eq(row ^ turn[:slot] ^ turn[slot].replicate(slot))
    return turned


def _first(m: Module, mask: Signal, before: Sequence[Value], name: str) -> Signal:
    """One-hot: the first slot of a mask in an order, or zero."""
    first = Signal(len(mask), name=f"{name}_first")
    m.d.comb += first.eq(mask & ~_behind(m, mask, before, [~row for row in before], name))
    return first


def _behind(m: Module, mask: Signal, before: Sequence[Value], after: Sequence[Value], name: str) -> Signal:
    """The slots behind some slot of a mask. In rows from slot 1 on: the slots below that go before it and after it."""
    behind = Signal(len(mask), name=f"{name}_behind")
    some_higher = reduce(or_, (Mux(slot, row, 0) for slot, row in zip(mask[1:], after, strict=True)), Const(0, 1))
    some_lower = Cat(Const(0, 1), *((mask[: len(row)] & row).any() for row in before))
    m.d.comb += behind.eq(some_higher | some_lower)
    return behind
