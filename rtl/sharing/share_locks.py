"""Holds the locks under which pairs of CTAs share registers and scratchpad: in the issue path, behind the schedulers.

Jatala et al., section 4 and figure 5: the rule against deadlock, here for both kinds of lock together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from operator import or_
from typing import ClassVar, Literal

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl import ranges
from lockstep.rtl.bits import select
from lockstep.spec.parameters import MAX_CTAS, MAX_SCHEDULERS, MAX_WARPS
from lockstep.spec.sharing.parameters import locks_of, pairs_of

SIDES = (0, 1)


class ShareLocks(wiring.Component):
    """Refuses the granted instructions whose locks are not to be had, and takes the locks of those that issue.

    A pair of CTAs has two sides, one CTA each. Warp i of one side shares registers with warp i of the other, under a
    *register lock*, which a warp holds until it ends. The CTAs of a pair share scratchpad under the pair's *scratchpad
    lock*, which a CTA holds until it ends.

    **The rule against deadlock.** An instruction that needs a lock is refused if the other CTA of its pair holds any
    lock of the pair, of either kind. So whoever holds locks is never refused, and does not wait while it keeps others
    waiting. Without the rule, an instruction is refused if the other side holds the very lock that it needs.

    **In one cycle.** Instructions of both sides may ask for what only one may have: with the rule any locks of the
    pair, without it the same lock. Unless the older CTA's is refused for what is held, the younger CTA's is refused,
    even if another mechanism refuses the older one's.

    **Waiting.** A warp that was refused waits until a lock of its pair is released, whichever it is; it then asks
    again. It does not wait if one is released in the cycle of its refusal, or if it was refused for an older CTA's
    instruction that did not issue either: there may be nobody left to wake it.

    **Before the grant.** Which warp is kept from issuing by what is held, and which one goes before its partners, is
    known before one is granted. With the grant it remains to be seen whether two schedulers want the same.

    Latency: ``refuse`` answers in the cycle of ``granted``. What issues or ends in a cycle is seen in the other outputs
    in the next one; after reset they are zero.

    The environment grants neither a warp that waits nor one that ends, or whose CTA ends, in the same cycle. Only warps
    that exist end, and CTAs whose warps have all ended by then.

    Parameters
    ----------
    warps : int
        Warp slots of the SM.
    ctas : int
        CTA slots of the SM. There are half as many pairs, and at least 1.
    schedulers : int
        Schedulers of the SM, each of which may grant an instruction in a cycle: scheduler k to one of the slots k, k +
        ``schedulers`` and so on.
    rule : int
        1: the rule against deadlock. 0: without it, to show what it is for.

    Members
    -------
    older : In, one bit per pair
        The side of the older CTA.
    seat : In, one per slot
        The place of a warp of a pair, from its start to its end: ``pair`` and ``side`` of its CTA, and the number of
        its register ``lock``, which only its partner has as well; with the rule nobody looks at this one. Of other
        slots anything.
    registers, scratchpad : In, one bit per slot
        The instruction that the warp has next needs its register lock, or its pair's scratchpad lock. Looked at where
        one is granted, and then 0 for a warp of no pair.
    granted : In, one bit per slot
        What the schedulers have granted.
    refused : In, one bit per scheduler
        The instruction does not issue, whatever the reason. One that this block refuses does not in any case.
    finish : In, one bit per slot
        The warp ends: it gives back its register lock, and does not wait any more.
    leave : In, array by side of one bit per pair
        The CTA ends, with the last of its warps: it gives back the scratchpad lock.
    refuse : Out, one bit per scheduler, combinational
        The instruction must not issue: its lock is not to be had. 0 for one that needs none.
    held : Out, one bit per slot
        The warp holds its register lock.
    scratchpads : Out, array by side of one bit per pair
        The scratchpad locks that each side holds.
    holds : Out, array by side of one bit per pair
        The CTA holds a lock of the pair, of either kind.
    waiting : Out, one bit per slot
        The warp waits for a lock of its pair, and must not be granted.

    Raises
    ------
    ValueError
        for an argument out of range.
    """

    LARGEST: ClassVar = {"warps": MAX_WARPS, "ctas": MAX_CTAS, "schedulers": MAX_SCHEDULERS, "rule": 1}
    combinational: Mapping[str, tuple[str, ...]] = {"refuse": ("granted", "seat", "registers", "scratchpad", "older")}

    def __init__(self, *, warps: int = 48, ctas: int = 8, schedulers: int = 2, rule: int = 1) -> None:
        for what, value, least in (
            ("warps", warps, 1), ("ctas", ctas, 1), ("schedulers", schedulers, 1), ("rule", rule, 0),
        ):  # fmt: skip
            ranges.check(what, value, least, self.LARGEST[what])
        self._rule = rule
        if schedulers == 1:  # of which nobody is ahead
            self.combinational = {"refuse": ("granted", "seat", "registers", "scratchpad")}
        self._schedulers = schedulers
        pairs, locks = pairs_of(ctas), locks_of(warps)
        seat = {"pair": bits_for(pairs - 1), "side": 1, "lock": bits_for(locks - 1)}
        super().__init__(
            {
                "older": In(pairs),
                "seat": In(data.StructLayout(seat)).array(warps),
                "registers": In(warps),
                "scratchpad": In(warps),
                "granted": In(warps),
                "refused": In(schedulers),
                "finish": In(warps),
                "leave": In(pairs).array(2),
                "refuse": Out(schedulers),
                "held": Out(warps),
                "scratchpads": Out(pairs).array(2),
                "holds": Out(pairs).array(2),
                "waiting": Out(warps),
            }
        )
        self._locks = locks

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pairs = [self._seated(m, "pair", side, len(self.older)) for side in SIDES]
        needs, barred, first = (Signal.like(self.held, name=name) for name in ("needs", "barred", "first"))
        asks = [self._granted_of(m, "asks", masks, needs) for masks in pairs]
        claims = [self._granted_of(m, "claims", masks, self.scratchpad) for masks in pairs]
        if self._rule:
            stopped = needs & _partner_has(pairs, self.holds)
            wants = asks  # what only one of the sides may have
        else:
            locks = [self._seated(m, "lock", side, self._locks) for side in SIDES]
            held = [_have(masks, self.held) for masks in locks]
            stopped = self.registers & _partner_has(locks, held)
            stopped |= self.scratchpad & _partner_has(pairs, self.scratchpads)
            names = [self._granted_of(m, "names", masks, self.registers) for masks in locks]
            wants = [[Cat(both) for both in zip(claims[side], names[side], strict=True)] for side in SIDES]
        younger = self.older, ~self.older
        m.d.comb += [
            needs.eq(self.registers | self.scratchpad),
            barred.eq(stopped),
            first.eq(~barred & _partner_has(pairs, younger)),
        ]
        waits = self._refuse(m, wants, barred, first)
        self._keep(m, pairs, asks, claims, waits)
        return m

    def _seated(self, m: Module, what: Literal["pair", "lock"], side: int, count: int) -> list[Signal]:
        """The slots of a side, by pair or by register lock."""
        masks = [Signal.like(self.held, name=f"{what}_{number}_{side}") for number in range(count)]
        for number, mask in enumerate(masks):
            m.d.comb += mask.eq(Cat((seat[what] == number) & (seat.side == side) for seat in self.seat))
        return masks

    def _grants(self, port: int, slots: Value) -> Value:
        """Whether a scheduler grants one of some slots."""
        return (slots & self.granted)[port :: self._schedulers].any()

    def _granted_of(self, m: Module, name: str, masks: Sequence[Signal], slots: Value) -> list[Signal]:
        """By scheduler, the masks that have the slot that it grants, if this is one of some slots."""
        found = [Signal(len(masks), name=f"{name}_of_{masks[0].name}_{port}") for port in range(self._schedulers)]
        for port, places in enumerate(found):
            m.d.comb += places.eq(Cat(self._grants(port, mask & slots) for mask in masks))
        return found

    def _refuse(self, m: Module, wants: Sequence[Sequence[Value]], barred: Value, first: Value) -> Signal:
        """Refuse; returns the schedulers whose warps are to wait."""
        ports = range(self._schedulers)
        stopped, leads, waits = (Signal.like(self.refuse, name=name) for name in ("stopped", "leads", "waits"))
        compete = {}
        for one, other in combinations(ports, 2):
            compete[one, other] = compete[other, one] = Signal(name=f"compete_{one}_{other}")
            m.d.comb += compete[one, other].eq(Cat(wants[side][one] & wants[1 - side][other] for side in SIDES).any())
        for port in ports:
            ahead = Signal.like(self.refuse, name=f"ahead_of_{port}")  # the ports to which this one gives way
            m.d.comb += [ahead[other].eq(leads[other] & compete[port, other]) for other in ports if other != port]
            m.d.comb += [
                stopped[port].eq(self._grants(port, barred)),
                leads[port].eq(self._grants(port, first)),
                self.refuse[port].eq(stopped[port] | ahead.any()),
                waits[port].eq(stopped[port] | (ahead & ~self.refused).any()),
            ]
        return waits

    def _keep(
        self, m: Module, pairs: Sequence[Sequence[Value]], asks: Sequence[Sequence[Value]],
        claims: Sequence[Sequence[Value]], waits: Value,
    ) -> None:  # fmt: skip
        """The state, given the slots of pairs, the pairs for which locks are asked, and who is to wait."""
        issues, released = Signal.like(self.refuse), Signal.like(self.older)
        kept, given_back, woken = (Signal.like(self.held, name=name) for name in ("kept", "given_back", "woken"))
        back = (self.scratchpads[side] & self.leave[side] | _have(pairs[side], given_back) for side in SIDES)
        m.d.comb += [
            issues.eq(~(self.refuse | self.refused)),
            kept.eq(self.held & ~self.finish),
            given_back.eq(self.held & self.finish),
            released.eq(reduce(or_, back)),
            woken.eq(_partner_has(pairs, (released, released))),
        ]
        m.d.sync += [
            self.held.eq(kept | self.granted & self.registers & self._of_ports(issues)),
            self.waiting.eq((self.waiting | self.granted & self._of_ports(waits)) & ~(self.finish | woken)),
        ]
        for side in SIDES:
            stay = Signal.like(self.older, name=f"stay_{side}")
            m.d.comb += stay.eq(self.scratchpads[side] & ~self.leave[side])
            # What a CTA holds is kept beside its locks, which the issue path would have to look through.
            m.d.sync += [
                self.scratchpads[side].eq(stay | select(issues, claims[side])),
                self.holds[side].eq(stay | _have(pairs[side], kept) | select(issues, asks[side])),
            ]

    def _of_ports(self, ports: Value) -> Value:
        """The slots of some schedulers."""
        return Cat(ports[slot % self._schedulers] for slot in range(len(self.held)))


def _have(masks: Sequence[Value], slots: Value) -> Value:
    """The masks that have one of some slots."""
    return Cat((mask & slots).any() for mask in masks)


def _partner_has(masks: Sequence[Sequence[Value]], bits: Sequence[Value]) -> Value:
    """The slots of masks, by side, whose bit of the other side is set."""
    return reduce(or_, (select(bits[1 - side], masks[side]) for side in SIDES))
