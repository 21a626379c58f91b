"""The bench of ``sharing.share_locks``: CTAs that come, ask for locks, hold them, wait for each other, and go."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from lockstep.rtl.sharing.share_locks import SIDES
from lockstep.spec.sharing.parameters import locks_of, pairs_of

BLOCK = "sharing.share_locks"
GATES = True
CONFIGURATIONS = {
    "shipped": {"warps": 48, "ctas": 8, "schedulers": 2, "rule": 1},
    "one": {"warps": 2, "ctas": 2, "schedulers": 1, "rule": 1},
    "odd": {"warps": 22, "ctas": 7, "schedulers": 3, "rule": 1},
    "without the rule": {"warps": 22, "ctas": 7, "schedulers": 3, "rule": 0},
    "largest": {"warps": 64, "ctas": 32, "schedulers": 4, "rule": 1},
}


@dataclass(frozen=True)
class Shape:
    """A kind of traffic: probabilities in a cycle, and how many warps a CTA has."""

    per_cta: Callable[[int, int, random.Random], int]  # of locks and pairs
    ask: float = 0.7  # each scheduler has an instruction
    end: float = 0.05  # a warp ends that does not wait
    others: float = 0.1  # another mechanism refuses an instruction
    focus: float = 0.3  # all schedulers have instructions of one pair
    bursts: bool = False  # warps end in a few cycles of many


SHAPES_OF = {
    "steady": Shape(lambda locks, pairs, rng: max(1, locks // pairs)),
    "contended": Shape(lambda locks, pairs, rng: 1, ask=1, end=0.3, focus=0.9),
    "bursty ends": Shape(lambda locks, pairs, rng: locks, end=0.3, bursts=True),
    "others refuse": Shape(lambda locks, pairs, rng: 2, end=0.2, others=0.5, focus=0.9),
    "too large to share": Shape(lambda locks, pairs, rng: 2 * locks),
    "sparse": Shape(lambda locks, pairs, rng: rng.randint(1, locks), ask=0.05, end=0.1),
    "two pairs": Shape(lambda locks, pairs, rng: locks // 2, end=0.2, focus=0.6),
    "one pair": Shape(lambda locks, pairs, rng: locks // 2 + 1, end=0.2, focus=1, others=0.3),
    "any": Shape(lambda locks, pairs, rng: rng.randint(1, locks), end=0.2),
}
SHAPES = tuple(SHAPES_OF)

_BURST, _PERIOD = 12, 240  # cycles of a burst, and from one to the next


@dataclass(eq=False)
class Warp:
    lock: int
    slot: int
    holds: bool = False  # its register lock
    waits: bool = False


@dataclass(eq=False)
class Cta:
    side: int
    pair: int
    birth: int
    warps: list[Warp] = field(default_factory=list)  # that have not ended
    scratchpad: bool = False  # it holds the lock

    @property
    def holds(self) -> bool:
        return self.scratchpad or any(warp.holds for warp in self.warps)


@dataclass(frozen=True, eq=False)
class Ask:
    """An instruction that a scheduler has granted."""

    cta: Cta
    warp: Warp
    registers: bool
    scratchpad: bool

    @property
    def needs(self) -> bool:
        return self.registers or self.scratchpad


class Environment:
    """CTAs, warps and what they hold, from what was issued and what has ended."""

    CYCLES = 1500

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.shape, self.rng = parameters, SHAPES_OF[shape], rng
        locks, pairs = locks_of(parameters["warps"]), pairs_of(parameters["ctas"])
        self.rule = parameters["rule"]
        self.per_cta = max(1, min(parameters["warps"], self.shape.per_cta(locks, pairs, rng)))
        self.pairs = min(pairs, locks // self.per_cta)  # that exist
        self.ctas: dict[tuple[int, int], Cta] = {}  # by side and pair
        self.free = set(range(parameters["warps"]))  # slots
        self.asks: dict[int, Ask] = {}  # by scheduler
        self.ending: list[tuple[Cta, Warp]] = []
        self.leaving: list[Cta] = []  # with the last of their warps
        self.cycle = self.births = self.taken = 0

    def drive(self, i: Any, o: Any) -> None:
        self._start()
        self._ask()
        self._end()
        i.older = self._older()
        self._drive_slots(i)
        i.finish = sum(1 << warp.slot for _, warp in self.ending)
        for side in SIDES:
            i.leave[side] = sum(1 << cta.pair for cta in self.leaving if cta.side == side)
        i.refused = sum(
            1 << port
            for port in range(self.parameters["schedulers"])
            if self.rng.random() < max(self.shape.others, 0.5 if self._reason(port) else 0)
        )
        o.live = sum(1 << warp.slot for cta in self.ctas.values() for warp in cta.warps)

    def _start(self) -> None:
        """Let CTAs start in the slots that are free."""
        places = [(side, pair) for side in SIDES for pair in range(self.pairs) if (side, pair) not in self.ctas]
        for side, pair in self.rng.sample(places, len(places)):
            if len(self.free) >= self.per_cta and self.rng.random() < 0.5:
                slots = self.rng.sample(sorted(self.free), self.per_cta)
                self.free -= set(slots)
                warps = [Warp(pair * self.per_cta + k, slot) for k, slot in enumerate(slots)]
                self.ctas[side, pair] = Cta(side, pair, self.births, warps)
                self.births += 1

    def _ask(self) -> None:
        """Let schedulers have instructions of different warps that do not wait."""
        rng = self.rng
        ctas = list(self.ctas.values())
        if ctas and rng.random() < self.shape.focus:
            pair = rng.choice(ctas).pair
            ctas = [cta for cta in ctas if cta.pair == pair]
        schedulers = self.parameters["schedulers"]
        self.asks = {}
        for port in range(schedulers):
            mine = [(cta, warp) for cta in ctas for warp in cta.warps if warp.slot % schedulers == port]
            able = [(cta, warp) for cta, warp in mine if not warp.waits]
            if able and rng.random() < self.shape.ask:
                self.asks[port] = Ask(*rng.choice(able), rng.random() < 0.5, rng.random() < 0.3)

    def _end(self) -> None:
        """Choose the warps that end: of those that ask none, of those that wait a few, as when a launch is given up."""
        asking = {ask.warp for ask in self.asks.values()}
        rate = self.shape.end
        if self.shape.bursts and self.cycle % _PERIOD < _PERIOD - _BURST:
            rate = 0
        self.ending = [
            (cta, warp)
            for cta in self.ctas.values()
            for warp in cta.warps
            if self.rng.random() < (rate / 10 if warp.waits else rate) and warp not in asking
        ]
        ending = Counter(cta for cta, _ in self.ending)
        self.leaving = [cta for cta, count in ending.items() if count == len(cta.warps)]

    def _older(self) -> int:
        """The mask of the sides of the older CTAs; where there are not two, it may be any."""
        older = self.rng.getrandbits(pairs_of(self.parameters["ctas"]))
        for pair in range(self.pairs):
            first, second = (self.ctas.get((side, pair)) for side in SIDES)
            if first and second:
                older = older & ~(1 << pair) | (second.birth < first.birth) << pair
        return older

    def _drive_slots(self, i: Any) -> None:
        """What is said of the slots: anything of those without a warp, and of what is not granted."""
        rng, warps = self.rng, self.parameters["warps"]
        i.granted, i.registers, i.scratchpad = 0, rng.getrandbits(warps), rng.getrandbits(warps)
        for ask in self.asks.values():
            bit = 1 << ask.warp.slot
            i.granted |= bit
            i.registers = i.registers & ~bit | ask.registers * bit
            i.scratchpad = i.scratchpad & ~bit | ask.scratchpad * bit
        for slot in self.free:
            seat = i.seat[slot]
            seat.pair, seat.lock = rng.randrange(pairs_of(self.parameters["ctas"])), rng.randrange(locks_of(warps))
            seat.side = rng.getrandbits(1)
        for cta in self.ctas.values():
            for warp in cta.warps:
                seat = i.seat[warp.slot]
                seat.pair, seat.side, seat.lock = cta.pair, cta.side, warp.lock

    def _other(self, cta: Cta) -> Cta | None:
        return self.ctas.get((1 - cta.side, cta.pair))

    def _barred(self, ask: Ask) -> bool:
        """Whether the other CTA holds what an instruction needs, or, with the rule, anything."""
        other = self._other(ask.cta)
        if other is None or not ask.needs:
            return False
        if self.rule:
            return other.holds
        registers = any(warp.holds for warp in other.warps if warp.lock == ask.warp.lock)
        return (ask.registers and registers) or (ask.scratchpad and other.scratchpad)

    def _competes(self, ask: Ask, other: Ask) -> bool:
        """Whether two instructions exclude each other."""
        if ask.cta.pair != other.cta.pair or ask.cta.side == other.cta.side:
            return False
        if self.rule:
            return ask.needs and other.needs
        registers = ask.registers and other.registers and ask.warp.lock == other.warp.lock
        return registers or (ask.scratchpad and other.scratchpad)

    def _rivals(self, ask: Ask) -> list[int]:
        """The schedulers whose instructions go before this one: of the older CTA, and free to go."""
        return [
            port
            for port, other in self.asks.items()
            if self._competes(ask, other) and not self._barred(other) and other.cta.birth < ask.cta.birth
        ]

    def _reason(self, port: int) -> str:
        """The reason for which the block must refuse an instruction, if there is one."""
        ask = self.asks.get(port)
        if ask is None:
            return ""
        if self._barred(ask):
            return "the other CTA holds a lock"
        return "the other CTA is older" if self._rivals(ask) else ""

    def observe(self, i: Any, o: Any, c: Any) -> None:
        self._check_exclusion(o)
        self._check_state(o)
        self._check_issue(i.refused | c.refuse)
        for port in range(self.parameters["schedulers"]):
            refused, reason = c.refuse >> port & 1, self._reason(port)
            if self.rule and port in self.asks and self.asks[port].cta.holds:
                assert not refused, "who holds a lock is not refused"
            assert not refused or reason, "refused without a reason"
            assert refused or not reason, f"not refused, although {reason}"
        self._issue(i.refused | c.refuse)
        self.cycle += 1

    def _check_exclusion(self, o: Any) -> None:
        """What must hold of the outputs whoever has asked."""
        locks = [warp.lock for cta in self.ctas.values() for warp in cta.warps if o.held >> warp.slot & 1]
        assert len({*locks}) == len(locks), "a register lock has one holder"
        assert o.scratchpads[0] & o.scratchpads[1] == 0, "a scratchpad lock has one holder"
        assert not self.rule or o.holds[0] & o.holds[1] == 0, "with the rule, the CTAs of a pair do not both hold"
        waits = {place for place, cta in self.ctas.items() for warp in cta.warps if o.waiting >> warp.slot & 1}
        for side, pair in waits:
            assert not self.rule or (1 - side, pair) not in waits, "with the rule, the CTAs of a pair do not both wait"
            assert o.holds[1 - side] >> pair & 1, "nobody waits in vain"

    def _check_state(self, o: Any) -> None:
        """The outputs from the state, by the warps and CTAs."""
        warps = [warp for cta in self.ctas.values() for warp in cta.warps]
        assert o.held == sum(1 << warp.slot for warp in warps if warp.holds), "register locks"
        assert o.waiting == sum(1 << warp.slot for warp in warps if warp.waits), "warps that wait"
        for side in SIDES:
            own = [cta for (of, _), cta in self.ctas.items() if of == side]
            assert o.scratchpads[side] == sum(1 << cta.pair for cta in own if cta.scratchpad), "scratchpad locks"
            assert o.holds[side] == sum(1 << cta.pair for cta in own if cta.holds), "CTAs that hold a lock"

    def _check_issue(self, refused: int) -> None:
        """What issues has its locks to itself."""
        issued = [ask for port, ask in self.asks.items() if not refused >> port & 1]
        assert not any(self._barred(ask) for ask in issued), "what issues takes nothing that the other CTA holds"
        assert not any(self._competes(a, b) for a, b in combinations(issued, 2)), "nor what it takes in this cycle"

    def _issue(self, refused: int) -> None:
        """The clock edge: who issues takes locks, who was refused waits, and who ends releases and wakes."""
        for ask in self.asks.values():
            ask.warp.waits = self._barred(ask) or any(not refused >> rival & 1 for rival in self._rivals(ask))
        released = {cta.pair for cta, warp in self.ending if warp.holds}
        released |= {cta.pair for cta in self.leaving if cta.scratchpad}
        for cta, warp in self.ending:
            cta.warps.remove(warp)
            self.free.add(warp.slot)
        for cta in self.leaving:
            del self.ctas[cta.side, cta.pair]
        for cta in self.ctas.values():
            if cta.pair in released:
                for warp in cta.warps:
                    warp.waits = False
        for port, ask in self.asks.items():
            if not refused >> port & 1:
                ask.warp.holds |= ask.registers
                ask.cta.scratchpad |= ask.scratchpad
                self.taken += ask.needs

    def finish(self) -> None:
        assert self.taken > 0 or self.pairs == 0 or self.cycle < 100, "somebody takes locks"


# ------------------------------------------------------------------------------------------------------------- protocol


def protocol(m: Module, parameters: dict[str, int], ports: Mapping[str, Value]) -> Value:
    """The environment's duties, but for when CTAs end: the block does not rely on this."""
    schedulers, slots, pairs = parameters["schedulers"], range(parameters["warps"]), pairs_of(parameters["ctas"])
    granted = ports["granted"]
    seats = [{name: ports[f"seat_{slot}_{name}"] for name in ("pair", "side", "lock")} for slot in slots]
    duties: list[Value] = [granted & (ports["finish"] | ports["waiting"]) == 0]
    for port in range(schedulers):
        mine = Signal(len(slots[port::schedulers]), name=f"granted_{port}")
        m.d.comb += mine.eq(granted[port::schedulers])
        duties.append(mine & (mine - 1) == 0)
    needs = (ports["registers"] | ports["scratchpad"]) & granted
    for slot in slots:
        seat, has = seats[slot], (ports["held"] | ports["waiting"])[slot]
        here = Cat(seat.values())
        before = Signal.like(here, name=f"seat_before_{slot}")
        m.d.sync += before.eq(here)
        leave = Mux(seat["side"], ports["leave"][pairs:], ports["leave"][:pairs]).bit_select(seat["pair"], 1)
        duties += [~has | (here == before), ~needs[slot] | (seat["pair"] < pairs) & ~leave]
    # Without the rule: those of a register lock are two, of the two sides of a pair.
    for a, b in combinations(slots, 2) if not parameters["rule"] else ():
        one, other = seats[a], seats[b]
        partners = (one["pair"] == other["pair"]) & (one["side"] != other["side"])
        duties.append((one["lock"] != other["lock"]) | partners | ~(_has(ports, a) & _has(ports, b)))
    return Cat(duties).all()


def _has(ports: Mapping[str, Value], slot: int) -> Value:
    """A slot has a warp that has, or asks for, a register lock."""
    return (ports["held"] | ports["granted"] & ports["registers"])[slot]


# ----------------------------------------------------------------------------------------------------------------- bins

Bin = Callable[[dict[str, int], Any, Any, Any], bool]


class Need(NamedTuple):
    """What an instruction that is granted needs, and whose it is."""

    port: int
    slot: int
    pair: int
    side: int
    registers: int
    scratchpad: int


def _bits(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


def _asking(p: dict[str, int], i: Any) -> list[Need]:
    """The instructions that need a lock."""
    return [
        Need(slot % p["schedulers"], slot, i.seat[slot].pair, i.seat[slot].side, i.registers >> slot & 1,
             i.scratchpad >> slot & 1)
        for slot in _bits(i.granted & (i.registers | i.scratchpad))
    ]  # fmt: skip


def _issued(p: dict[str, int], i: Any, c: Any) -> list[Need]:
    return [need for need in _asking(p, i) if not (i.refused | c.refuse) >> need.port & 1]


def _refused(p: dict[str, int], i: Any, o: Any, c: Any) -> list[tuple[Need, list[int]]]:
    """What the block refuses, and the schedulers for which it gives way.

    With the other CTA's locks in the way these are none.
    """
    asking = _asking(p, i)
    return [
        (need, [
            rival.port for rival in asking
            if rival.pair == need.pair and rival.side != need.side and not o.holds[rival.side] >> need.pair & 1
        ])
        for need in asking if c.refuse >> need.port & 1
    ]  # fmt: skip


def _gives_way(p: dict[str, int], i: Any, o: Any, c: Any) -> list[tuple[Need, list[int]]]:
    return [(need, against) for need, against in _refused(p, i, o, c) if against]


def _barred(p: dict[str, int], i: Any, o: Any, c: Any) -> list[tuple[int, int]]:
    """What those need that are refused for locks that are held: registers, scratchpad."""
    return [(need.registers, need.scratchpad) for need, against in _refused(p, i, o, c) if not against]


Place = tuple[int, int]


def _ctas(i: Any, mask: int) -> Counter[Place]:
    """The CTAs, by side and pair, of the warps in some slots, and how many these are."""
    return Counter((i.seat[slot].side, i.seat[slot].pair) for slot in _bits(mask))


def _released(i: Any, o: Any) -> set[int]:
    """The pairs of which a lock is given back."""
    scratchpads = [pair for side in SIDES for pair in _bits(o.scratchpads[side] & i.leave[side])]
    return {pair for _, pair in _ctas(i, o.held & i.finish)} | {*scratchpads}


def _woken(i: Any, o: Any) -> set[Place]:
    """The CTAs whose warps are woken."""
    released = _released(i, o) if o.waiting else set()
    return {(side, pair) for side, pair in _ctas(i, o.waiting) if pair in released}


BINS: dict[str, Bin] = {
    "a register lock is taken": lambda p, i, o, c: any(
        need.registers and not need.scratchpad and not o.held >> need.slot & 1 for need in _issued(p, i, c)
    ),
    "a scratchpad lock is taken": lambda p, i, o, c: any(
        need.scratchpad and not need.registers and not o.scratchpads[need.side] >> need.pair & 1
        for need in _issued(p, i, c)
    ),
    "both are taken by one instruction": lambda p, i, o, c: any(
        need.registers and need.scratchpad and not o.holds[need.side] >> need.pair & 1 for need in _issued(p, i, c)
    ),
    "a warp uses the register lock that it has": lambda p, i, o, c: any(
        need.registers and o.held >> need.slot & 1 for need in _issued(p, i, c)
    ),
    "an instruction needs no lock": lambda p, i, o, c: i.granted & ~(i.registers | i.scratchpad) != 0,
    "all schedulers ask": lambda p, i, o, c: len(_asking(p, i)) == p["schedulers"],
    "two warps of a CTA ask": lambda p, i, o, c: any(
        (a.pair, a.side) == (b.pair, b.side) for a, b in combinations(_asking(p, i), 2)
    ),
    "the CTAs of two pairs ask": lambda p, i, o, c: len({need.pair for need in _asking(p, i)}) > 1,
    "refused for a register lock": lambda p, i, o, c: (1, 0) in _barred(p, i, o, c),
    "refused for a scratchpad lock": lambda p, i, o, c: (0, 1) in _barred(p, i, o, c),
    "refused for both": lambda p, i, o, c: (1, 1) in _barred(p, i, o, c),
    "refused by others": lambda p, i, o, c: any(i.refused & ~c.refuse & 1 << need.port for need in _asking(p, i)),
    "side 0 goes first": lambda p, i, o, c: any(need.side == 1 for need, _ in _gives_way(p, i, o, c)),
    "side 1 goes first": lambda p, i, o, c: any(need.side == 0 for need, _ in _gives_way(p, i, o, c)),
    "the lower scheduler gives way": lambda p, i, o, c: any(
        need.port < min(against) for need, against in _gives_way(p, i, o, c)
    ),
    "the higher scheduler gives way": lambda p, i, o, c: any(
        need.port > max(against) for need, against in _gives_way(p, i, o, c)
    ),
    "two give way to one": lambda p, i, o, c: any(a[1] == b[1] for a, b in combinations(_gives_way(p, i, o, c), 2)),
    "one gives way to two, of which others refuse one": lambda p, i, o, c: any(
        {i.refused >> port & 1 for port in against} == {0, 1} for _, against in _gives_way(p, i, o, c)
    ),
    "others refuse the older, and the younger gives way to it": lambda p, i, o, c: any(
        all(i.refused >> port & 1 for port in against) for _, against in _gives_way(p, i, o, c)
    ),
    "the younger holds and goes first": lambda p, i, o, c: any(
        i.older >> need.pair & 1 == need.side and not against
        for need, against in _refused(p, i, o, c)
        if any(other.pair == need.pair and other.side != need.side for other in _issued(p, i, c))
    ),
    "a release wakes": lambda p, i, o, c: bool(_woken(i, o)),
    "a release wakes while other locks stay held": lambda p, i, o, c: bool(
        {(1 - side, pair) for side, pair in _woken(i, o)} & _ctas(i, o.held & ~i.finish).keys()
    ),
    "a refusal in the cycle of a release": lambda p, i, o, c: any(
        need.pair in _released(i, o) for need, against in _refused(p, i, o, c) if not against
    ),
    "a taking in the cycle of a release": lambda p, i, o, c: any(
        need.pair in _released(i, o) for need in _issued(p, i, c)
    ),
    "a release of one pair while another waits": lambda p, i, o, c: (
        o.waiting != 0 and any({pair for _, pair in _ctas(i, o.waiting)} - {pair} for pair in _released(i, o))
    ),
    "several warps of a CTA wait": lambda p, i, o, c: max(_ctas(i, o.waiting).values(), default=0) > 1,
    "all warps of a CTA wait": lambda p, i, o, c: (
        o.waiting != 0 and any(count == _ctas(i, o.live)[cta] for cta, count in _ctas(i, o.waiting).items())
    ),
    "a warp ends that holds nothing": lambda p, i, o, c: i.finish & ~o.held != 0,
    "a warp ends while others of its CTA hold": lambda p, i, o, c: bool(
        _ctas(i, i.finish).keys() & _ctas(i, o.held & ~i.finish).keys()
    ),
    "a warp ends that waits": lambda p, i, o, c: i.finish & o.waiting != 0,
    "a CTA gives back its scratchpad lock": lambda p, i, o, c: any(
        i.leave[side] & o.scratchpads[side] for side in SIDES
    ),
    "a CTA ends that holds nothing": lambda p, i, o, c: any(i.leave[side] & ~o.holds[side] for side in SIDES),
    "both CTAs of a pair end": lambda p, i, o, c: i.leave[0] & i.leave[1] != 0,
    "a CTA holds every lock of its pair": lambda p, i, o, c: any(
        o.scratchpads[side] >> pair & 1 and count > 1 and count == _ctas(i, o.live)[side, pair]
        for (side, pair), count in _ctas(i, o.held).items()
    ),
    "nobody holds and nobody asks": lambda p, i, o, c: not o.holds[0] | o.holds[1] and not _asking(p, i),
    "no warp is of a pair": lambda p, i, o, c: o.live == 0,
    "both CTAs of a pair hold": lambda p, i, o, c: o.holds[0] & o.holds[1] != 0,
    "one CTA holds a register lock, the other scratchpad": lambda p, i, o, c: any(
        o.scratchpads[1 - side] >> pair & 1 for side, pair in _ctas(i, o.held)
    ),
    "both CTAs of a pair wait": lambda p, i, o, c: any(
        (1 - side, pair) in _ctas(i, o.waiting) for side, pair in _ctas(i, o.waiting)
    ),
}  # fmt: skip


def _rules(p: dict[str, int]) -> bool:
    return p["rule"] == 1


def _alone(p: dict[str, int]) -> bool:
    """One scheduler, whose instruction competes with none."""
    return p["schedulers"] == 1


def _one_lock(p: dict[str, int]) -> bool:
    """One pair of CTAs, of one warp each."""
    return locks_of(p["warps"]) == 1


IN_KERNELS = (
    "refused for a register lock", "refused for a scratchpad lock", "all schedulers ask", "a release wakes",
    "a refusal in the cycle of a release", "several warps of a CTA wait", "nobody holds and nobody asks",
)  # fmt: skip

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    **dict.fromkeys(
        (
            "both CTAs of a pair hold", "one CTA holds a register lock, the other scratchpad",
            "both CTAs of a pair wait",
        ),
        _rules,
    ),
    **dict.fromkeys(
        (
            "two warps of a CTA ask", "the CTAs of two pairs ask", "side 0 goes first", "side 1 goes first",
            "the lower scheduler gives way", "the higher scheduler gives way",
            "others refuse the older, and the younger gives way to it", "the younger holds and goes first",
        ),
        _alone,
    ),
    **dict.fromkeys(
        (
            "a release wakes while other locks stay held", "a release of one pair while another waits",
            "a warp ends while others of its CTA hold", "a CTA holds every lock of its pair",
            "several warps of a CTA wait",
        ),
        _one_lock,
    ),
    # A third scheduler asks.
    **dict.fromkeys(
        ("two give way to one", "one gives way to two, of which others refuse one"), lambda p: p["schedulers"] < 3
    ),
    # Who releases the only lock asks for none, and who asks beside it is still refused.
    "a taking in the cycle of a release": lambda p: _one_lock(p) and p["rule"] == 1,
}  # fmt: skip
