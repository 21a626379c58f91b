"""Chooses the warp that issues: one of the schedulers of an SM. Chen's thesis, chapter 4, for the policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import index_of, next_after, popcount, select
from lockstep.spec.parameters import MAX_PATIENCE, MAX_WARPS, SCHEDULERS


class WarpScheduler(wiring.Component):
    """Grants one of the requesting warps in every cycle.

    The grant answers the requests of the same cycle. A warp can be granted from the cycle after its ``start`` until the
    cycle of its ``finish``; requests of other slots are ignored. Warps are as old as their start; those that start
    together age in the order of their slots.

    **Classes.** Of the candidates, those of the highest class come into question: warps that are not paused before
    paused ones; among these, primary before secondary ones; among these, owners before unshared warps before
    non-owners. The policy decides among them, over one state for all classes: an issue of any class moves it on.

    ========== =============================================================================================
    lrr        the first slot after the one that issued last, circularly; slot 0 first
    gto        the warp that issued last, while it comes into question; else the oldest
    oldest     the oldest
    two-level  as lrr; candidates are at most ``active_warps`` active warps, and those that patience lets go
    simple-p   the first by age, circularly, from the holder of the priority on. The priority passes on, one
               warp per cycle, while its holder waits for a global load and not all warps do
    region-p   as simple-p, but the priority passes on when an instruction of its holder issues with ``hint``
    ========== =============================================================================================

    **Active warps** (two-level). Warps start as pending. An active warp that reports a long latency becomes pending. In
    each cycle one pending warp that reports none may become active: the next circularly by slot after the one that
    became active last, among those of the highest class. It does if there is room, and else if an active warp is of a
    lower class: of the active ones in the lowest class, the next by slot after the one that became active last yields,
    since under this order it has been active longest. So a paused warp is active while no other wants its place, and
    issues when no other can.

    **Priority** (simple-p, region-p). It passes to the next younger warp, from the youngest to the oldest; it does so
    too when its holder ends. The oldest warp gets it when nobody has it.

    **Patience.** A warp that requests is passed over in each cycle in which a warp of a higher class issues. One that
    was passed over ``patience`` times comes into question before all classes when it next requests; among several the
    policy decides. Its count, of which its grant, start or finish makes zero, does not go on beyond that. Grants within
    its own class, and to lower ones, do not count. Under two-level, a pending warp counts and goes like an active one,
    without becoming active: else warps of a higher class that never all wait would keep it from its turn for ever. With
    ``patience`` of at least ``warps - 1``, others issue at most ``warps - 1`` times between the moment when patience
    ends and the grant to a warp that keeps requesting.

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
        Warp slots of the SM. A scheduler that serves some of them sees zeros in the other bits.
    patience : int
        The largest ``patience``. Each slot has a counter of as many bits as 1 less has, and one bit more: for 1,024 and
        48 warps 528 bits. 0: no counters, and nobody looks at the port.

    Members
    -------
    policy : In
        Index into ``parameters.SCHEDULERS``; constant.
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
        The warp's class; an owner's ``non_owner`` is ignored. All zero: one class.
    request : In, one bit per slot
        The warp could issue now.
    hint : In
        region-p: the granted instruction shifts the priority.
    refused : In
        The granted instruction does not issue.
    grant : Out
        ``valid`` and ``warp``, the slot granted; 0 while not valid. Combinational.

    Raises
    ------
    ValueError
        for a size out of range.
    """

    LARGEST: ClassVar = {"warps": MAX_WARPS, "patience": MAX_PATIENCE}
    combinational: Mapping[str, tuple[str, ...]] = {
        "grant": ("policy", "paused", "secondary", "owner", "non_owner", "request")
    }

    def __init__(self, *, warps: int = 48, patience: int = 1024) -> None:
        for what, value, least, most in (("warps", warps, 1, MAX_WARPS), ("patience", patience, 0, MAX_PATIENCE)):
            if not least <= value <= most:
                raise ValueError(f"{what} must be {least} to {most}, not {value}")
        if warps == 1:
            self.combinational = {"grant": ("policy", "request")}  # classes make no difference to one warp
        self._warps = warps
        self._largest_patience = patience
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
            }
        )
        # The state; proofs speak of it.
        self.live = Signal(warps)
        self.active = Signal(warps)
        self.last = Signal(bits_for(warps - 1), init=warps - 1)  # slot that issued last
        self.greedy = Signal()  # ``last`` still holds the warp that issued
        self.promoted = Signal.like(self.last)  # slot that became active last
        self.holder = Signal(warps)  # of the priority: one-hot, or nobody
        self.urgent = Signal(warps)  # their patience has ended
        bits = (patience - 1).bit_length() if patience else 0
        self.passes = [Signal(warps, name=f"passes_{bit}") for bit in range(bits)]  # bits of the slots' counts
        # Row i of the age matrix: the slots that are older than i. Rows and columns of slots that are not live mean
        # nothing. Only starts write it, so that the matrix needs neither counters nor the order of finishes.
        self.older = [Signal(warps, name=f"older_{slot}") for slot in range(warps)]

    @property
    def warps(self) -> int:
        return self._warps

    def elaborate(self, platform: object) -> Module:
        m = Module()
        warps, live, older = self.warps, self.live, self.older
        policy = {name: self.policy == index for index, name in enumerate(SCHEDULERS)}
        # Bits of a warp's class, the most significant first: a higher class has the first that differs.
        classes = [~self.paused, ~self.secondary, self.owner, self.owner | ~self.non_owner]

        requesting = Signal(warps)
        candidates = Signal(warps)
        overdue = Signal(warps)
        chosen = Signal(warps)
        before = Signal(warps)  # the slots older than the holder of the priority
        m.d.comb += [
            requesting.eq(self.request & live),
            candidates.eq(requesting & Mux(policy["two-level"], self.active | self.urgent, ~Const(0, warps))),
            overdue.eq(candidates & self.urgent),
            chosen.eq(Mux(overdue.any(), overdue, _preferred(m, candidates, classes, "candidates"))),
            before.eq(select(self.holder, list(older))),
        ]
        kept = chosen & (Const(1, warps) << self.last)[:warps]
        granted = Signal(warps)
        issuing = Signal(warps)
        issued = Signal()
        m.d.comb += [
            granted.eq(self._oldest(_preferred(m, chosen, [~before], "chosen"))),
            self.grant.valid.eq(candidates.any()),
            self.grant.warp.eq(index_of(granted)),
            issued.eq(self.grant.valid & ~self.refused),
            issuing.eq(Mux(self.refused, 0, granted)),
        ]
        with m.If(policy["lrr"] | policy["two-level"]):
            m.d.comb += granted.eq(next_after(chosen, self.last))
        with m.Elif(policy["gto"] & self.greedy & kept.any()):
            m.d.comb += granted.eq(kept)

        latest = Signal.like(self.last)
        staying = Signal(warps)
        m.d.comb += [
            latest.eq(Mux(issued, self.grant.warp, self.last)),
            staying.eq(live & ~self.start & ~self.finish),
        ]
        m.d.sync += [
            self.last.eq(latest),
            self.greedy.eq((self.greedy | issued) & ~self.start.bit_select(latest, 1)),
            live.eq(live & ~self.finish | self.start),
        ]
        with m.If(self.start.any()):
            for slot in range(warps):
                below = Const((1 << slot) - 1, warps)
                m.d.sync += older[slot].eq(Mux(self.start[slot], ~self.start | below, older[slot] & ~self.start))

        if self._largest_patience:
            self._pass_over(m, requesting, issuing, staying, classes)
        with m.If(policy["two-level"]):
            self._activate(m, staying, classes)
        waits = (self.holder & self.global_wait).any() & (staying & ~self.global_wait).any()
        shifts = self.hint & (self.holder & issuing).any()
        with m.If(policy["simple-p"] | policy["region-p"]):
            self._pass_on(m, staying, before, Mux(policy["simple-p"], waits, shifts))
        return m

    def _oldest(self, mask: Value) -> Value:
        """One-hot: the oldest of some live slots; zero if there are none."""
        return Cat(mask[slot] & ~(self.older[slot] & mask).any() for slot in range(self.warps))

    def _pass_over(
        self, m: Module, requesting: Value, issuing: Signal, staying: Value, classes: Sequence[Value]
    ) -> None:
        """Count how often each slot was passed over."""
        passed = Signal(self.warps)
        cleared = Signal(self.warps)
        m.d.comb += [
            passed.eq(Mux(self.patience != 0, requesting & ~self.urgent & _lower(m, issuing, classes, "issuing"), 0)),
            cleared.eq(~staying | issuing),
        ]
        carry, reached = passed, passed  # those whose count, one more, is that of patience in all bits so far
        for bit, passes in enumerate(self.passes):
            more = Signal(self.warps, name=f"more_{bit}")
            m.d.comb += more.eq(passes ^ carry)
            m.d.sync += passes.eq(more & ~cleared)
            reached = reached & ~(more ^ self.patience[bit].replicate(self.warps))
            carry = passes & carry
        if len(self.patience) > len(self.passes):  # a power of two
            reached = reached & ~(carry ^ self.patience[-1].replicate(self.warps))
        m.d.sync += self.urgent.eq((self.urgent | reached) & ~cleared)

    def _activate(self, m: Module, staying: Value, classes: Sequence[Value]) -> None:
        """Two-level: choose the active warps of the next cycle."""
        kept = Signal(self.warps)
        pending = Signal(self.warps)
        room = Signal()
        entering = Signal(self.warps)
        yielding = Signal(self.warps)
        lowest = _preferred(m, kept, [~better for better in classes], "kept")
        lower = _lower(m, entering, classes, "entering")
        m.d.comb += [
            kept.eq(staying & ~self.long_latency & self.active),
            pending.eq(staying & ~self.long_latency & ~self.active),
            entering.eq(next_after(_preferred(m, pending, classes, "pending"), self.promoted)),
            room.eq(popcount(kept) < self.active_warps),
            yielding.eq(Mux(room, 0, next_after(lowest, self.promoted) & lower)),
        ]
        m.d.sync += self.active.eq(kept)
        with m.If(pending.any() & (room | yielding.any())):
            m.d.sync += [self.active.eq(kept & ~yielding | entering), self.promoted.eq(index_of(entering))]

    def _pass_on(self, m: Module, staying: Value, before: Value, leaves: Value) -> None:
        """Let the priority pass to the next warp by age, if it leaves its holder or there is none."""
        others = Signal(self.warps)
        m.d.comb += others.eq(staying & ~self.holder)
        successor = self._oldest(_preferred(m, others, [~before], "others"))
        with m.If(~(self.holder & staying).any() | leaves):
            m.d.sync += self.holder.eq(Mux(others.any(), successor, self.holder & staying))


def _preferred(m: Module, mask: Signal, preferences: Sequence[Value], name: str) -> Signal:
    """Those bits of a mask that also the first preference has, unless it has none of them; and so on."""
    for k, preference in enumerate(preferences):
        both, left = (Signal(len(mask), name=f"{name}_{what}_{k}") for what in ("preferred", "left"))
        m.d.comb += [both.eq(mask & preference), left.eq(Mux(both.any(), both, mask))]
        mask = left
    return mask


def _lower(m: Module, onehot: Signal, classes: Sequence[Value], name: str) -> Signal:
    """The slots in lower classes than the one of a mask."""
    lower = Signal(len(onehot), name=f"lower_than_{name}")
    alike: Value = ~Const(0, len(onehot))
    found: Value = Const(0, len(onehot))
    for better in classes:
        has = (onehot & better).any()
        found = found | alike & ~better & has.replicate(len(onehot))
        alike = alike & Mux(has, better, ~better)
    m.d.comb += lower.eq(found)
    return lower
