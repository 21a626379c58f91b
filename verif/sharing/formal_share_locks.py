"""Proofs about the locks: of any pair of two, and of one pair whose warps also wait at barriers.

Everything is free but for the protocol: which CTA a warp is of, which instructions are granted, what else refuses them,
who is older, when warps and CTAs end. So a proof does not depend on which warps exist, nor on the older CTA being
always the same.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.sharing.share_locks import SIDES, ShareLocks
from lockstep.spec.sharing.parameters import locks_of, pairs_of
from lockstep.verif.formal import Proof
from lockstep.verif.sharing.bench_share_locks import protocol

PORTS = range(2)
TWO_PAIRS = {"warps": 8, "ctas": 4, "schedulers": len(PORTS)}
ONE_PAIR = {"warps": 4, "ctas": 2, "schedulers": len(PORTS)}


def flat(dut: ShareLocks) -> dict[str, Value]:
    """The ports that the protocol speaks of, by their flat names."""
    ports = {name: getattr(dut, name) for name in ("registers", "scratchpad", "granted", "finish", "held", "waiting")}
    for slot, seat in enumerate(dut.seat):
        ports |= {f"seat_{slot}_{name}": seat[name] for name in ("pair", "side", "lock")}
    return ports | {"leave": Cat(dut.leave)}


class Locks(Elaboratable):
    """The block within its protocol, seen from some pair, one of its register locks, and some slot."""

    def __init__(self, rule: int = 1, size: dict[str, int] = TWO_PAIRS) -> None:
        self.parameters = {**size, "rule": rule}
        self.rule = rule
        warps = size["warps"]
        self.dut = ShareLocks(**self.parameters)
        self.pair, self.lock = Signal(range(pairs_of(size["ctas"]))), Signal(range(locks_of(warps)))
        self.slot = Signal(range(warps))
        self.of = [Signal(warps, name=f"of_{side}") for side in SIDES]  # the slots of the pair, by side
        self.held = Signal(2)  # by side: the register lock
        self.scratchpads, self.holds, self.leave = Signal(2), Signal(2), Signal(2)  # the pair
        # By port: an instruction of the pair, that asks for a lock, and whose side is 1.
        self.mine, self.asks, self.side = Signal(2), Signal(2), Signal(2)
        self.issued = Signal(warps)  # by slot

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        chosen = Cat(self.pair, self.lock, self.slot)  # the same in every cycle
        before, began = Signal.like(chosen), Signal()
        m.d.sync += [before.eq(chosen), began.eq(1)]
        m.d.comb += [
            Assume(protocol(m, self.parameters, flat(dut))),
            Assume(~began | (before == chosen)),
            Assume((self.pair < len(dut.older)) & (self.slot < len(dut.seat))),
            self.issued.eq(dut.granted & ~Cat((dut.refuse | dut.refused)[slot % 2] for slot in range(len(dut.seat)))),
        ]
        needs = dut.registers | dut.scratchpad
        for port in PORTS:
            m.d.comb += [
                self.mine[port].eq(self.grants(port, self.of[0] | self.of[1])),
                self.asks[port].eq(self.grants(port, (self.of[0] | self.of[1]) & needs)),
                self.side[port].eq(self.grants(port, self.of[1])),
            ]
        for side in SIDES:
            own = self.of[side]
            m.d.comb += [
                own.eq(Cat((seat.pair == self.pair) & (seat.side == side) for seat in dut.seat)),
                self.held[side].eq((dut.held & own & Cat(seat.lock == self.lock for seat in dut.seat)).any()),
                self.scratchpads[side].eq(dut.scratchpads[side].bit_select(self.pair, 1)),
                self.holds[side].eq(dut.holds[side].bit_select(self.pair, 1)),
                self.leave[side].eq(dut.leave[side].bit_select(self.pair, 1)),
                Assert(self.holds[side] == (self.scratchpads[side] | (dut.held & own).any())),
            ]
        if self.rule:
            m.d.comb += Assert(~self.holds.all())
        else:
            m.d.comb += [Assert(~self.held.all()), Assert(~self.scratchpads.all())]
        return m

    def grants(self, port: int, slots: Value) -> Value:
        """A scheduler grants one of some slots."""
        return (slots & self.dut.granted)[port :: len(PORTS)].any()


class Issued(Locks):
    """A lock is with the side whose instruction was the last to issue with it, until its warp or CTA ends."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        held, scratchpads = Signal(), Signal(2)
        taken = (self.issued & dut.registers).bit_select(self.slot, 1)
        m.d.sync += held.eq(held & ~dut.finish.bit_select(self.slot, 1) | taken)
        for side in SIDES:
            claimed = (self.issued & dut.scratchpad & self.of[side]).any()
            m.d.sync += scratchpads[side].eq(scratchpads[side] & ~self.leave[side] | claimed)
        m.d.comb += [Assert(dut.held.bit_select(self.slot, 1) == held), Assert(self.scratchpads == scratchpads)]
        return m


class Refused(Locks):
    """Whoever holds is never refused, and whoever is refused knows why."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        older = dut.older.bit_select(self.pair, 1)
        for port, other in ((0, 1), (1, 0)):
            side = self.side[port]
            refused = dut.refuse[port] & self.mine[port]
            theirs, own = self.holds.bit_select(~side, 1), self.holds.bit_select(side, 1)
            competes = self.asks[port] & self.asks[other] & (self.side[other] != side)
            m.d.comb += [
                Assert(~refused | self.asks[port]),
                Assert(~refused | theirs | competes & (side != older)),
                Assert(~dut.refuse[port] | self.grants(port, dut.granted)),
            ]
            if self.rule:
                m.d.comb += [
                    Assert(~refused | ~own),
                    Assert(~(self.asks[port] & theirs) | refused),
                    Assert(~(competes & ~self.holds.any()) | (refused == (side != older))),
                ]
        return m


class Waits(Locks):
    """Whoever waits will be woken: the other side holds a lock, and the pair's next release ends all waiting."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, released, ended, waits = self.dut, Signal(), Signal(), Signal(2)
        given_back = dut.held & dut.finish & (self.of[0] | self.of[1])
        m.d.sync += [
            released.eq(given_back.any() | (self.scratchpads & self.leave).any()),
            ended.eq(dut.finish.bit_select(self.slot, 1)),
        ]
        m.d.comb += [
            waits.eq(Cat((dut.waiting & own).any() for own in self.of)),
            Assert(~(dut.waiting.bit_select(self.slot, 1) & ended)),
        ]
        for side in SIDES:
            m.d.comb += [Assert(~waits[side] | self.holds[1 - side]), Assert(~waits[side] | ~released)]
        if self.rule:
            m.d.comb += Assert(~waits.all())
        return m


class HandsOver(Locks):
    """A warp waits, is woken, and has the lock that the other side had."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, waited, woken = self.dut, Signal(), Signal()
        held, waiting, finish = (each.bit_select(self.slot, 1) for each in (dut.held, dut.waiting, dut.finish))
        m.d.sync += [
            waited.eq((waited | waiting & self.holds[0]) & ~finish),
            woken.eq((woken | waited & ~waiting & ~self.holds[0]) & ~finish),
        ]
        m.d.comb += [
            Assume(self.of[1].bit_select(self.slot, 1)),
            Cover(woken & held),
            Cover(woken & self.scratchpads[1] & ~held),
        ]
        return m


class Barriers(Elaboratable):
    """One pair of CTAs with two warps each, which wait at barriers and for locks, end, and are followed by others.

    A warp asks and arrives at its CTA's barrier whenever it likes, but for the time that it waits. The barrier opens
    when all of the CTA's warps are there that have not ended. ``deadlock``: each warp that has not ended waits for a
    lock, or at a barrier that does not open. ``mixed``: one CTA holds a register lock and the other the scratchpad.
    """

    def __init__(self, rule: int = 1) -> None:
        self.parameters = {**ONE_PAIR, "rule": rule}
        self.rule = rule
        self.dut = ShareLocks(**self.parameters)
        self.deadlock, self.mixed = Signal(), Signal()
        self.opens = Signal(2)  # by side: the barrier

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        warps = len(dut.seat) // 2
        for slot, seat in enumerate(dut.seat):  # each scheduler has a warp of each CTA
            m.d.comb += [seat.side.eq(slot // warps), seat.pair.eq(0), seat.lock.eq(slot % warps)]
        m.d.comb += Assume(protocol(m, self.parameters, flat(dut)))
        stuck = Signal(2)
        runs = [Signal(warps, name=f"runs_{side}") for side in SIDES]  # it has not ended
        for side in SIDES:
            here = Signal(warps, name=f"at_barrier_{side}")
            arrives, starts, opens = Signal(warps), Signal(), self.opens[side]
            asks, finish, held, waiting = (
                self.own(mask, side) for mask in (dut.granted, dut.finish, dut.held, dut.waiting)
            )
            free = runs[side] & ~here & ~waiting  # the warps that may do something
            left = runs[side] & ~finish
            m.d.comb += [
                opens.eq(here.any() & (here == runs[side])),
                Assume((asks & ~free) == 0),
                Assume((finish & ~free) == 0),
                Assume((arrives & ~(free & ~asks & ~finish)) == 0),
                Assume(dut.leave[side] == (runs[side].any() & ~left.any())),
                stuck[side].eq((free == 0) & ~opens),
            ]
            m.d.sync += [
                runs[side].eq(Mux(starts & ~runs[side].any(), Const(-1, warps), left)),
                here.eq(Mux(opens, 0, here) | arrives),
            ]
            # What keeps the induction in what can be reached.
            m.d.comb += [
                Assert((here & ~runs[side]) == 0),
                Assert((waiting & (here | ~runs[side])) == 0),
                Assert((held & ~runs[side]) == 0),
                Assert(~dut.scratchpads[side].any() | runs[side].any()),
                Assert(dut.holds[side] == (dut.scratchpads[side].any() | held.any())),
                Assert(~waiting.any() | dut.holds[1 - side].any()),
            ]
        mixed = (self.own(dut.held, side).any() & dut.scratchpads[1 - side].any() for side in SIDES)
        m.d.comb += [
            self.deadlock.eq(stuck.all() & (runs[0] | runs[1]).any()),
            self.mixed.eq(reduce(or_, mixed)),
        ]
        return m

    def own(self, mask: Value, side: int) -> Value:
        """The bits of a side's slots."""
        warps = len(self.dut.seat) // 2
        return mask[side * warps : (side + 1) * warps]


class NoDeadlock(Barriers):
    """Some warp of the pair goes on, always."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        holds = Cat(holds.any() for holds in self.dut.holds)
        m.d.comb += Assert(~self.deadlock)
        if self.rule:
            m.d.comb += [Assert(~self.mixed), Assert(~holds.all())]
        return m


class Ends(Barriers):
    """A warp has waited for a lock while the barrier of the other CTA opened, and its own CTA comes to its end."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        waited = Signal()
        with m.If(self.own(self.dut.waiting, 1).any() & self.opens[0]):
            m.d.sync += waited.eq(1)
        m.d.comb += Cover(waited & self.dut.leave[1].any() & self.dut.holds[1].any())
        return m


class Deadlock(Barriers):
    """No warp of the pair goes on, with both CTAs there; and a CTA has the registers, the other the scratchpad."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        waits = Cat(self.own(self.dut.waiting, side).any() for side in SIDES)
        m.d.comb += [Cover(self.deadlock & waits.all()), Cover(self.deadlock & self.mixed)]
        return m


_SIZE = "2 pairs, 8 warps of any of their CTAs, 2 schedulers"
_WARPS = "1 pair, 2 warps per CTA, 2 schedulers"
PROOFS = {
    "one side holds": Proof(
        Locks, "prove", 1, f"the CTAs of a pair never both hold locks, of whichever kind; {_SIZE}"
    ),
    "without the rule, one side holds a lock": Proof(
        lambda: Locks(rule=0), "prove", 1, f"no register lock and no scratchpad lock has two holders; {_SIZE}"
    ),
    "locks are held from the issue to the end": Proof(
        Issued, "prove", 1, f"by the side whose instruction issued, until its warp ends, or its CTA; {_SIZE}"
    ),
    "refused for a reason": Proof(
        Refused, "prove", 1,
        f"exactly if the other side holds, or is older and asks while nobody holds; never a side that holds; {_SIZE}",
        long=True,
    ),
    "without the rule, refused for a reason": Proof(
        lambda: Refused(rule=0), "prove", 1, f"only if the other side holds, or is older and asks; {_SIZE}", long=True
    ),
    "nobody waits in vain": Proof(
        Waits, "prove", 1,
        f"while a warp waits, the other side holds a lock; the first release of the pair wakes it; the warps of one "
        f"side alone wait; {_SIZE}",
    ),
    "without the rule, nobody waits for nothing": Proof(
        lambda: Waits(rule=0), "prove", 1, f"while a warp waits, the other side holds a lock; {_SIZE}", long=True
    ),
    "a lock changes hands": Proof(
        HandsOver, "cover", 8, f"a warp waits, is woken, and takes the lock, of either kind; {_SIZE}"
    ),
    "no deadlock": Proof(
        NoDeadlock, "prove", 1,
        f"some warp that has not ended waits neither for a lock nor at a barrier that stays closed; one CTA has no "
        f"register lock while the other has the scratchpad lock; {_WARPS}",
    ),
    "CTAs end": Proof(
        Ends, "cover", 9, f"a CTA whose warp waited for the other CTA, behind a barrier, ends as well; {_WARPS}"
    ),
    "without the rule, deadlock": Proof(
        lambda: Deadlock(rule=0), "cover", 8, f"all wait, for locks and at barriers that stay closed; {_WARPS}"
    ),
}  # fmt: skip
