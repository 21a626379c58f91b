"""Proofs about the locks: of any pair of two, and of one pair whose warps also wait at barriers.

Everything is free but for the protocol: how many warps a CTA has, which instructions are granted, what else refuses
them, who is older, when warps and CTAs end. So a proof does not depend on which warps exist, nor on the older CTA being
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
TWO_PAIRS = {"warps": 8, "ctas": 4, "schedulers": len(PORTS)}  # four register locks
ONE_PAIR = {"warps": 4, "ctas": 2, "schedulers": len(PORTS)}  # two of them


def flat(dut: ShareLocks) -> dict[str, Value]:
    """The ports that the protocol speaks of, by their flat names."""
    ports = {"per_cta": dut.per_cta} | {name: Cat(getattr(dut, name)) for name in ("finish", "leave", "waiting")}
    for port, ask in enumerate(dut.ask):
        ports[f"ask_{port}_valid"] = ask.valid
        ports |= {f"ask_{port}_{name}": ask.payload[name] for name in ("pair", "side", "lock")}
    return ports


class Locks(Elaboratable):
    """The block within its protocol, seen from some pair that exists and one of its register locks."""

    def __init__(self, rule: int = 1, size: dict[str, int] = TWO_PAIRS) -> None:
        self.parameters = {**size, "rule": rule}
        self.rule = rule
        pairs, locks = pairs_of(size["ctas"]), locks_of(size["warps"])
        self.dut = ShareLocks(**self.parameters)
        self.pair, self.lock = Signal(range(pairs)), Signal(range(locks))
        self.held, self.waiting, self.finish = Signal(2), Signal(2), Signal(2)  # by side: the lock
        self.scratchpads, self.holds, self.leave = Signal(2), Signal(2), Signal(2)  # the pair
        self.mine = Signal(locks)  # the pair's register locks
        # By port: it asks for a lock of the pair, for the register lock, for the pair's scratchpad lock.
        self.asks, self.registers, self.scratchpad = Signal(2), Signal(2), Signal(2)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        pair, lock = self.pair, self.lock
        # The same pair and lock in every cycle.
        before, began = Signal(len(pair) + len(lock)), Signal()
        m.d.sync += [before.eq(Cat(pair, lock)), began.eq(1)]
        per_cta = dut.per_cta
        first = Signal(range((len(dut.older) + 1) * (len(dut.held[0]) + 1)))
        m.d.comb += [
            Assume(protocol(m, self.parameters, flat(dut))),
            Assume(~began | (before == Cat(pair, lock))),
            first.eq(pair * per_cta),
            Assume((pair < len(dut.older)) & (first + per_cta <= len(dut.held[0]))),
            Assume((first <= lock) & (lock < first + per_cta)),
            self.mine.eq(Cat((first <= k) & (k < first + per_cta) for k in range(len(self.mine)))),
        ]
        m.d.comb += [
            vector[side].eq(array[side].bit_select(index, 1))
            for vector, array, index in (
                (self.held, dut.held, lock), (self.waiting, dut.waiting, lock), (self.finish, dut.finish, lock),
                (self.scratchpads, dut.scratchpads, pair), (self.holds, dut.holds, pair), (self.leave, dut.leave, pair),
            )
            for side in SIDES
        ]  # fmt: skip
        for port in PORTS:
            need = dut.ask[port].payload
            here = dut.ask[port].valid & (need.pair == pair)
            m.d.comb += [
                self.asks[port].eq(here & (need.registers | need.scratchpad)),
                self.registers[port].eq(here & need.registers & (need.lock == lock)),
                self.scratchpad[port].eq(here & need.scratchpad),
            ]
        for side in SIDES:
            m.d.comb += Assert(self.holds[side] == (self.scratchpads[side] | (dut.held[side] & self.mine).any()))
        if self.rule:
            m.d.comb += Assert(~self.holds.all())
        else:
            m.d.comb += [Assert(~self.held.all()), Assert(~self.scratchpads.all())]
        return m

    def refused(self, port: int) -> Value:
        """By the block."""
        return self.dut.refuse[port]

    def side(self, port: int) -> Value:
        return self.dut.ask[port].payload.side


class Issued(Locks):
    """A lock is with the side whose instruction was the last to issue with it, until its warp or CTA ends."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        held, scratchpads = Signal(2), Signal(2)
        for side in SIDES:
            issued = ~(dut.refuse | dut.refused)
            own = Cat(dut.ask[port].valid & issued[port] & (self.side(port) == side) for port in PORTS)
            m.d.sync += [
                held[side].eq(held[side] & ~self.finish[side] | (own & self.registers).any()),
                scratchpads[side].eq(scratchpads[side] & ~self.leave[side] | (own & self.scratchpad).any()),
            ]
        m.d.comb += [Assert(self.held == held), Assert(self.scratchpads == scratchpads)]
        return m


class Refused(Locks):
    """Whoever holds is never refused, and whoever is refused knows why."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        older = dut.older.bit_select(self.pair, 1)
        for port, other in ((0, 1), (1, 0)):
            side = self.side(port)
            refused = self.refused(port) & dut.ask[port].valid & (dut.ask[port].payload.pair == self.pair)
            theirs, own = self.holds.bit_select(~side, 1), self.holds.bit_select(side, 1)
            competes = self.asks[port] & self.asks[other] & (self.side(other) != side)
            m.d.comb += [
                Assert(~refused | self.asks[port]),
                Assert(~refused | theirs | competes & (side != older)),
                Assert(~self.refused(port) | dut.ask[port].valid),
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
        dut, released, ended = self.dut, Signal(), Signal(2)
        m.d.sync += [
            released.eq(
                reduce(or_, ((dut.held[side] & dut.finish[side] & self.mine).any() for side in SIDES))
                | (self.scratchpads & self.leave).any()
            ),
            ended.eq(self.finish),
        ]
        for side in SIDES:
            m.d.comb += [
                Assert(~self.waiting[side] | self.holds[1 - side]),
                Assert(~self.waiting[side] | ~(released | ended[side])),
            ]
        if self.rule:
            m.d.comb += Assert(~self.waiting.all())
        return m


class HandsOver(Locks):
    """A warp waits, is woken, and has the lock that the other side had."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        waited, woken = Signal(), Signal()
        m.d.sync += [
            waited.eq((waited | self.waiting[1] & self.held[0]) & ~self.finish[1]),
            woken.eq((woken | waited & ~self.waiting[1] & ~self.held[0]) & ~self.finish[1]),
        ]
        m.d.comb += [Cover(woken & self.held[1]), Cover(woken & self.scratchpads[1] & ~self.held[1])]
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
        warps = len(dut.held[0])
        m.d.comb += [Assume(protocol(m, self.parameters, flat(dut))), Assume(dut.per_cta == warps)]
        stuck = Signal(2)
        runs = [Signal(warps, name=f"runs_{side}") for side in SIDES]  # it has not ended
        for side in SIDES:
            here = Signal(warps, name=f"at_barrier_{side}")
            arrives, starts, opens = Signal(warps), Signal(), self.opens[side]
            asks = self._asks(side)
            free = runs[side] & ~here & ~dut.waiting[side]  # the warps that may do something
            left = runs[side] & ~dut.finish[side]
            m.d.comb += [
                opens.eq(here.any() & (here == runs[side])),
                Assume((asks & ~free) == 0),
                Assume((dut.finish[side] & ~free) == 0),
                Assume((arrives & ~(free & ~asks & ~dut.finish[side])) == 0),
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
                Assert((dut.waiting[side] & (here | ~runs[side])) == 0),
                Assert((dut.held[side] & ~runs[side]) == 0),
                Assert(~dut.scratchpads[side].any() | runs[side].any()),
                Assert(dut.holds[side] == (dut.scratchpads[side].any() | dut.held[side].any())),
                Assert(~dut.waiting[side].any() | dut.holds[1 - side].any()),
            ]
        m.d.comb += [
            self.deadlock.eq(stuck.all() & (runs[0] | runs[1]).any()),
            self.mixed.eq(reduce(or_, (dut.held[side].any() & dut.scratchpads[1 - side].any() for side in SIDES))),
        ]
        return m

    def _asks(self, side: int) -> Value:
        """The warps of a side with an instruction."""
        return reduce(
            or_,
            (
                Mux(ask.valid & (ask.payload.side == side), Const(1) << ask.payload.lock, 0)[: len(self.dut.held[0])]
                for ask in self.dut.ask
            ),
        )


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
        with m.If(self.dut.waiting[1].any() & self.opens[0]):
            m.d.sync += waited.eq(1)
        m.d.comb += Cover(waited & self.dut.leave[1].any() & self.dut.holds[1].any())
        return m


class Deadlock(Barriers):
    """No warp of the pair goes on, with both CTAs there; and a CTA has the registers, the other the scratchpad."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        waits = Cat(waiting.any() for waiting in self.dut.waiting)
        m.d.comb += [Cover(self.deadlock & waits.all()), Cover(self.deadlock & self.mixed)]
        return m


_SIZE = "2 pairs, 4 register locks, CTAs of any size, 2 schedulers"
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
        lambda: Refused(rule=0), "prove", 1, f"only if the other side holds, or is older and asks; {_SIZE}"
    ),
    "nobody waits in vain": Proof(
        Waits, "prove", 1,
        f"while a warp waits, the other side holds a lock; the first release of the pair wakes it; the warps of one "
        f"side alone wait; {_SIZE}",
    ),
    "without the rule, nobody waits for nothing": Proof(
        lambda: Waits(rule=0), "prove", 1, f"while a warp waits, the other side holds a lock; {_SIZE}"
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
