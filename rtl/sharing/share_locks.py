"""Holds the locks under which pairs of CTAs share registers and scratchpad: in the issue path, behind the schedulers.

Jatala et al., section 4 and figure 5: the rule against deadlock, here for both kinds of lock together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import ClassVar, Literal

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.signatures import event
from lockstep.spec.parameters import MAX_CTAS, MAX_SCHEDULERS, MAX_WARPS
from lockstep.spec.sharing.parameters import locks_of, pairs_of

SIDES = (0, 1)


class ShareLocks(wiring.Component):
    """Refuses the granted instructions whose locks are not to be had, and takes the locks of those that issue.

    A pair of CTAs has two sides, one CTA each. Warp i of one side shares registers with warp i of the other, under a
    *register lock*; of pair p it has the number p * ``per_cta`` + i. A warp holds it until it ends. The CTAs of a pair
    share scratchpad under the pair's *scratchpad lock*, which a CTA holds until it ends. Pair p exists if all its
    locks do.

    **The rule against deadlock.** An instruction that needs a lock is refused if the other CTA of its pair holds any
    lock of the pair, of either kind. So whoever holds locks is never refused, and does not wait while it keeps others
    waiting. Without the rule, an instruction is refused if the other side holds the very lock that it needs.

    **In one cycle.** Instructions of both sides may ask for what only one may have: with the rule any locks of the
    pair, without it the same lock. Unless the older CTA's is refused for what is held, the younger CTA's is refused,
    even if another mechanism refuses the older one's.

    **Waiting.** A warp that was refused waits until a lock of its pair is released, whichever it is; it then asks
    again. It does not wait if one is released in the cycle of its refusal, or if it was refused for an older CTA's
    instruction that did not issue either: there may be nobody left to wake it.

    Latency: ``refuse`` answers in the cycle of ``ask``. What issues or ends in a cycle is seen in the other outputs in
    the next one; after reset they are zero.

    The environment asks at most once per warp and cycle, for pairs that exist, and neither for a warp that waits nor
    for one that ends, or whose CTA ends, in the same cycle. Only warps that exist end, and CTAs whose warps have all
    ended by then.

    Parameters
    ----------
    warps : int
        Warp slots of the SM. There are half as many register locks, and at least 1.
    ctas : int
        CTA slots of the SM. There are half as many pairs, and at least 1.
    schedulers : int
        Schedulers of the SM, each of which may grant an instruction in a cycle.
    rule : int
        1: the rule against deadlock. 0: without it, to show what it is for.

    Members
    -------
    per_cta : In
        Warps of a CTA, 1 to ``warps``; constant.
    older : In, one bit per pair
        The side of the older CTA.
    ask : In, array of events
        What each scheduler has granted: an instruction of a warp with register lock ``lock``, of ``side`` of ``pair``,
        that needs ``registers``, the warp's register lock, or ``scratchpad``, the pair's scratchpad lock, or both, or
        neither.
    refused : In, one bit per scheduler
        The instruction does not issue, whatever the reason. One that this block refuses does not in any case.
    finish : In, array by side of one bit per register lock
        The lock's warp ends: it gives back the lock, and does not wait any more.
    leave : In, array by side of one bit per pair
        The CTA ends, with the last of its warps: it gives back the scratchpad lock.
    refuse : Out, one bit per scheduler, combinational
        The instruction must not issue: its lock is not to be had. 0 for one that needs none.
    held : Out, array by side of one bit per register lock
        The register locks that each side holds.
    scratchpads : Out, array by side of one bit per pair
        The scratchpad locks that each side holds.
    holds : Out, array by side of one bit per pair
        The CTA holds a lock of the pair, of either kind.
    waiting : Out, array by side of one bit per register lock
        The lock's warp waits for one of its pair, and must not ask.

    Raises
    ------
    ValueError
        for an argument out of range.
    """

    LARGEST: ClassVar = {"warps": MAX_WARPS, "ctas": MAX_CTAS, "schedulers": MAX_SCHEDULERS, "rule": 1}
    combinational: Mapping[str, tuple[str, ...]] = {"refuse": ("ask", "older")}
    constant: ClassVar = ("per_cta",)

    def __init__(self, *, warps: int = 48, ctas: int = 8, schedulers: int = 2, rule: int = 1) -> None:
        for what, value, least in (
            ("warps", warps, 1), ("ctas", ctas, 1), ("schedulers", schedulers, 1), ("rule", rule, 0),
        ):  # fmt: skip
            if not least <= value <= self.LARGEST[what]:
                raise ValueError(f"{what} must be {least} to {self.LARGEST[what]}, not {value}")
        self._rule = rule
        if schedulers == 1:  # of which nobody is ahead
            self.combinational = {"refuse": ("ask",)}
        pairs, locks = pairs_of(ctas), locks_of(warps)
        need = {"pair": bits_for(pairs - 1), "side": 1, "lock": bits_for(locks - 1), "registers": 1, "scratchpad": 1}
        super().__init__(
            {
                "per_cta": In(range(warps + 1)),
                "older": In(pairs),
                "ask": In(event(data.StructLayout(need))).array(schedulers),
                "refused": In(schedulers),
                "finish": In(locks).array(2),
                "leave": In(pairs).array(2),
                "refuse": Out(schedulers),
                "held": Out(locks).array(2),
                "scratchpads": Out(pairs).array(2),
                "holds": Out(pairs).array(2),
                "waiting": Out(locks).array(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        registers, scratchpad, barred, first, waits = (
            Signal.like(self.refuse, name=name) for name in ("registers", "scratchpad", "barred", "first", "waits")
        )
        for port, ask in enumerate(self.ask):
            older = self.older.bit_select(ask.payload.pair, 1) == ask.payload.side
            m.d.comb += [
                registers[port].eq(ask.valid & ask.payload.registers),
                scratchpad[port].eq(ask.valid & ask.payload.scratchpad),
                barred[port].eq(self._barred(port, registers[port], scratchpad[port])),
                first[port].eq(older & ~barred[port]),
            ]
        for port in range(len(self.ask)):
            ahead = Signal.like(self.refuse, name=f"ahead_of_{port}")  # the ports to which this one gives way
            for other in range(len(self.ask)):
                if other != port:
                    m.d.comb += ahead[other].eq(first[other] & self._compete(port, other, registers, scratchpad))
            m.d.comb += [
                self.refuse[port].eq(barred[port] | ahead.any()),
                waits[port].eq(barred[port] | (ahead & ~self.refused).any()),
            ]
        issue = ~(self.refuse | self.refused)
        self._keep(m, registers & issue, scratchpad & issue, waits)
        return m

    def _barred(self, port: int, registers: Value, scratchpad: Value) -> Value:
        """Whether what the other side holds keeps a port's instruction from issuing."""
        need = self.ask[port].payload

        def theirs(masks: Sequence[Value], index: Value) -> Value:
            return Mux(need.side, masks[0], masks[1]).bit_select(index, 1)

        if self._rule:
            return (registers | scratchpad) & theirs(self.holds, need.pair)
        return registers & theirs(self.held, need.lock) | scratchpad & theirs(self.scratchpads, need.pair)

    def _compete(self, one: int, other: int, registers: Value, scratchpad: Value) -> Value:
        """Whether the instructions of two ports are of two sides, and ask for what only one of them may have."""
        a, b = self.ask[one].payload, self.ask[other].payload
        same_pair = a.pair == b.pair
        if self._rule:
            needs = registers | scratchpad
            same = needs[one] & needs[other] & same_pair
        else:
            same_lock = registers[one] & registers[other] & (a.lock == b.lock)
            same = same_lock | scratchpad[one] & scratchpad[other] & same_pair
        return (a.side != b.side) & same

    def _keep(self, m: Module, registers: Value, scratchpad: Value, waits: Value) -> None:
        """The state, given the ports that take a lock of each kind, and those whose warps are to wait."""
        locks = [Signal.like(self.held[0], name=f"locks_of_{pair}") for pair in range(len(self.older))]
        for pair, own in enumerate(locks):
            m.d.comb += own.eq(self._locks_of(pair))

        given_back, released = Signal.like(self.held[0]), Signal.like(self.older)
        woken = Signal.like(self.held[0])
        m.d.comb += [
            given_back.eq(reduce(or_, (self.held[side] & self.finish[side] for side in SIDES))),
            released.eq(
                Cat((given_back & own).any() for own in locks)
                | reduce(or_, (self.scratchpads[side] & self.leave[side] for side in SIDES))
            ),
            woken.eq(reduce(or_, (Mux(bit, own, 0) for bit, own in zip(released, locks, strict=True)))),
        ]
        for side in SIDES:
            held = Signal.like(self.held[side], name=f"held_next_{side}")
            scratchpads = Signal.like(self.scratchpads[side], name=f"scratchpads_next_{side}")
            taken, claimed = self._named("lock", side, registers), self._named("pair", side, scratchpad)
            m.d.comb += [
                held.eq(self.held[side] & ~self.finish[side] | taken),
                scratchpads.eq(self.scratchpads[side] & ~self.leave[side] | claimed),
            ]
            waiting = self.waiting[side] | self._named("lock", side, waits)
            # What a CTA holds is kept beside its locks, which the issue path would have to look through.
            m.d.sync += [
                self.held[side].eq(held),
                self.scratchpads[side].eq(scratchpads),
                self.holds[side].eq(scratchpads | Cat((held & own).any() for own in locks)),
                self.waiting[side].eq(waiting & ~(self.finish[side] | woken)),
            ]

    def _locks_of(self, pair: int) -> Value:
        """The register locks of a pair: those l with pair * per_cta <= l < (pair + 1) * per_cta, if all exist."""
        count = len(self.held[0])
        bits: list[Value] = []
        for lock in range(count):
            least, most = lock // (pair + 1) + 1, min(lock // pair if pair else count, count // (pair + 1))
            bits.append((self.per_cta >= least) & (self.per_cta <= most) if least <= most else Const(0))
        return Cat(bits)

    def _named(self, what: Literal["lock", "pair"], side: int, ports: Value) -> Value:
        """The locks, or the pairs, that the instructions of a side at these ports name."""
        masks = (
            Mux(chosen & (ask.payload.side == side), Const(1) << ask.payload[what], 0)
            for chosen, ask in zip(ports, self.ask, strict=True)
        )
        return reduce(or_, masks)
