"""The bench of ``sharing.share_locks``: CTAs that come, ask for locks, hold them, wait for each other, and go."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from lockstep.rtl.sharing.share_locks import SIDES
from lockstep.spec.sharing.parameters import locks_of, pairs_of

BLOCK = "sharing.share_locks"
GATES = True
CONFIGURATIONS = {
    "shipped": {"warps": 48, "ctas": 8, "schedulers": 2, "rule": 1},
    "one": {"warps": 1, "ctas": 1, "schedulers": 1, "rule": 1},
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
        self.asks: dict[int, Ask] = {}  # by scheduler
        self.ending: list[tuple[Cta, Warp]] = []
        self.leaving: list[Cta] = []  # with the last of their warps
        self.cycle = self.births = self.taken = 0

    def drive(self, i: Any, o: Any) -> None:
        i.per_cta = self.per_cta
        self._start()
        self._ask()
        self._end()
        i.older = self._older()
        for port in range(self.parameters["schedulers"]):
            self._drive_ask(i.ask[port], self.asks.get(port))
        for side in SIDES:
            ending = [(cta, warp) for cta, warp in self.ending if cta.side == side]
            i.finish[side] = sum(1 << warp.lock for _, warp in ending)
            i.leave[side] = sum(1 << cta.pair for cta in self.leaving if cta.side == side)
        i.refused = sum(
            1 << port
            for port in range(self.parameters["schedulers"])
            if self.rng.random() < max(self.shape.others, 0.5 if self._reason(port) else 0)
        )

    def _start(self) -> None:
        for side in self.rng.sample(SIDES, 2):
            for pair in range(self.pairs):
                if (side, pair) not in self.ctas and self.rng.random() < 0.5:
                    first = pair * self.per_cta
                    warps = [Warp(first + k) for k in range(self.per_cta)]
                    self.ctas[side, pair] = Cta(side, pair, self.births, warps)
                    self.births += 1

    def _ask(self) -> None:
        """Let schedulers have instructions of different warps that do not wait."""
        rng = self.rng
        ctas = list(self.ctas.values())
        if ctas and rng.random() < self.shape.focus:
            pair = rng.choice(ctas).pair
            ctas = [cta for cta in ctas if cta.pair == pair]
        able = [(cta, warp) for cta in ctas for warp in cta.warps if not warp.waits]
        rng.shuffle(able)
        self.asks = {}
        for port in range(self.parameters["schedulers"]):
            if able and rng.random() < self.shape.ask:
                self.asks[port] = Ask(*able.pop(), rng.random() < 0.5, rng.random() < 0.3)

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

    def _drive_ask(self, port: Any, ask: Ask | None) -> None:
        """An instruction, or whatever a scheduler shows without one."""
        need, rng = port.payload, self.rng
        port.valid = ask is not None
        if ask is not None:
            need.pair, need.side, need.lock = ask.cta.pair, ask.cta.side, ask.warp.lock
            need.registers, need.scratchpad = ask.registers, ask.scratchpad
            return
        need.pair = rng.randrange(pairs_of(self.parameters["ctas"]))
        need.lock = rng.randrange(locks_of(self.parameters["warps"]))
        need.side, need.registers, need.scratchpad = (rng.getrandbits(1) for _ in range(3))

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
        assert o.held[0] & o.held[1] == 0, "a register lock has one holder"
        assert o.scratchpads[0] & o.scratchpads[1] == 0, "a scratchpad lock has one holder"
        assert not self.rule or o.holds[0] & o.holds[1] == 0, "with the rule, the CTAs of a pair do not both hold"
        for pair in range(self.pairs):
            waits = [side for side in SIDES if o.waiting[side] >> pair * self.per_cta & (1 << self.per_cta) - 1]
            assert not self.rule or len(waits) < 2, "with the rule, the CTAs of a pair do not both wait"
            assert all(o.holds[1 - side] >> pair & 1 for side in waits), "nobody waits in vain"

    def _check_state(self, o: Any) -> None:
        """The outputs from the state, by the warps and CTAs."""
        for side in SIDES:
            own = [cta for (of, _), cta in self.ctas.items() if of == side]
            warps = [warp for cta in own for warp in cta.warps]
            assert o.held[side] == sum(1 << warp.lock for warp in warps if warp.holds), "register locks"
            assert o.scratchpads[side] == sum(1 << cta.pair for cta in own if cta.scratchpad), "scratchpad locks"
            assert o.holds[side] == sum(1 << cta.pair for cta in own if cta.holds), "CTAs that hold a lock"
            assert o.waiting[side] == sum(1 << warp.lock for warp in warps if warp.waits), "warps that wait"

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
    """The environment's duties, but for which warps exist and when CTAs end: the block does not rely on these."""
    locks, pairs = locks_of(parameters["warps"]), pairs_of(parameters["ctas"])
    per_cta = ports["per_cta"]
    before, began = Signal.like(per_cta), Signal()
    m.d.sync += [before.eq(per_cta), began.eq(1)]
    duties: list[Value] = [
        (per_cta >= 1) & (per_cta <= parameters["warps"]),
        ~began | (per_cta == before),
    ]
    asks = [
        {name: ports[f"ask_{port}_{name}"] for name in ("valid", "pair", "side", "lock")}
        for port in range(parameters["schedulers"])
    ]

    def of(name: str, ask: dict[str, Value], what: str, bits: int) -> Value:
        """The bit of an array by side that an instruction names."""
        masks = ports[name][:bits], ports[name][bits:]
        return Mux(ask["side"], masks[1], masks[0]).bit_select(ask[what], 1)

    for ask in asks:
        pair, lock = ask["pair"], ask["lock"]
        exists = (pair < pairs) & ((pair + 1) * per_cta <= locks)
        own = (pair * per_cta <= lock) & (lock < (pair + 1) * per_cta)
        ends = of("finish", ask, "lock", locks) | of("leave", ask, "pair", pairs)
        duties.append(~ask["valid"] | exists & own & ~ends & ~of("waiting", ask, "lock", locks))
    for a, b in combinations(asks, 2):
        duties.append(~(a["valid"] & b["valid"] & (a["lock"] == b["lock"]) & (a["side"] == b["side"])))
    return Cat(duties, Const(1)).all()


# ----------------------------------------------------------------------------------------------------------------- bins

Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _asking(p: dict[str, int], i: Any) -> list[tuple[int, Any]]:
    """The schedulers whose instructions need a lock, and what they need."""
    ports = [(port, i.ask[port].payload) for port in range(p["schedulers"]) if i.ask[port].valid]
    return [(port, need) for port, need in ports if need.registers or need.scratchpad]


def _issued(p: dict[str, int], i: Any, c: Any) -> list[Any]:
    return [need for port, need in _asking(p, i) if not (i.refused | c.refuse) >> port & 1]


def _refused(p: dict[str, int], i: Any, o: Any, c: Any) -> Iterator[tuple[int, Any, list[int]]]:
    """The schedulers that the block refuses, what they need, and the schedulers for which they give way.

    With the other CTA's locks in the way these are none.
    """
    for port, need in _asking(p, i):
        if c.refuse >> port & 1:
            against = [
                other
                for other, rival in _asking(p, i)
                if rival.pair == need.pair and rival.side != need.side and not o.holds[rival.side] >> need.pair & 1
            ]
            yield port, need, against


def _gives_way(p: dict[str, int], i: Any, o: Any, c: Any) -> list[tuple[int, Any, list[int]]]:
    return [(port, need, against) for port, need, against in _refused(p, i, o, c) if against]


def _barred(p: dict[str, int], i: Any, o: Any, c: Any) -> list[tuple[bool, bool]]:
    """What those need that are refused for locks that are held: registers, scratchpad."""
    return [(need.registers, need.scratchpad) for _, need, against in _refused(p, i, o, c) if not against]


def _locks(i: Any, pair: int) -> int:
    return (1 << i.per_cta) - 1 << pair * i.per_cta


def _pairs(p: dict[str, int], i: Any) -> range:
    """The pairs that exist."""
    return range(min(pairs_of(p["ctas"]), locks_of(p["warps"]) // i.per_cta))


def _released(i: Any, o: Any, pair: int) -> bool:
    return any(
        o.held[side] & i.finish[side] & _locks(i, pair) or o.scratchpads[side] & i.leave[side] & 1 << pair
        for side in SIDES
    )


def _waits(i: Any, o: Any, side: int, pair: int) -> int:
    return o.waiting[side] & _locks(i, pair)


def _some_pair(condition: Callable[[Any, Any, int], Any]) -> Bin:
    return lambda p, i, o, c: any(condition(i, o, pair) for pair in _pairs(p, i))


def _some_cta(condition: Callable[[Any, Any, int, int], Any]) -> Bin:
    return lambda p, i, o, c: any(condition(i, o, side, pair) for pair in _pairs(p, i) for side in SIDES)


def _stays_held(i: Any, o: Any, side: int, pair: int) -> int:
    """Register locks of a CTA that it does not give back now."""
    return o.held[side] & ~i.finish[side] & _locks(i, pair)


BINS: dict[str, Bin] = {
    "a register lock is taken": lambda p, i, o, c: any(
        need.registers and not need.scratchpad and not o.held[need.side] >> need.lock & 1 for need in _issued(p, i, c)
    ),
    "a scratchpad lock is taken": lambda p, i, o, c: any(
        need.scratchpad and not need.registers and not o.scratchpads[need.side] >> need.pair & 1
        for need in _issued(p, i, c)
    ),
    "both are taken by one instruction": lambda p, i, o, c: any(
        need.registers and need.scratchpad and not o.holds[need.side] >> need.pair & 1 for need in _issued(p, i, c)
    ),
    "a warp uses the register lock that it has": lambda p, i, o, c: any(
        need.registers and o.held[need.side] >> need.lock & 1 for need in _issued(p, i, c)
    ),
    "an instruction needs no lock": lambda p, i, o, c: (
        sum(i.ask[port].valid for port in range(p["schedulers"])) > len(_asking(p, i))
    ),
    "all schedulers ask": lambda p, i, o, c: len(_asking(p, i)) == p["schedulers"],
    "two warps of a CTA ask": lambda p, i, o, c: any(
        (a.pair, a.side) == (b.pair, b.side) for (_, a), (_, b) in combinations(_asking(p, i), 2)
    ),
    "the CTAs of two pairs ask": lambda p, i, o, c: len({need.pair for _, need in _asking(p, i)}) > 1,
    "refused for a register lock": lambda p, i, o, c: (1, 0) in _barred(p, i, o, c),
    "refused for a scratchpad lock": lambda p, i, o, c: (0, 1) in _barred(p, i, o, c),
    "refused for both": lambda p, i, o, c: (1, 1) in _barred(p, i, o, c),
    "refused by others": lambda p, i, o, c: any(
        i.refused & ~c.refuse & 1 << port for port, _ in _asking(p, i)
    ),
    "side 0 goes first": lambda p, i, o, c: any(need.side == 1 for _, need, _ in _gives_way(p, i, o, c)),
    "side 1 goes first": lambda p, i, o, c: any(need.side == 0 for _, need, _ in _gives_way(p, i, o, c)),
    "the lower scheduler gives way": lambda p, i, o, c: any(
        port < min(against) for port, _, against in _gives_way(p, i, o, c)
    ),
    "the higher scheduler gives way": lambda p, i, o, c: any(
        port > max(against) for port, _, against in _gives_way(p, i, o, c)
    ),
    "two give way to one": lambda p, i, o, c: any(
        a[2] == b[2] for a, b in combinations(_gives_way(p, i, o, c), 2)
    ),
    "one gives way to two, of which others refuse one": lambda p, i, o, c: any(
        {i.refused >> port & 1 for port in against} == {0, 1} for _, _, against in _gives_way(p, i, o, c)
    ),
    "others refuse the older, and the younger gives way to it": lambda p, i, o, c: any(
        all(i.refused >> port & 1 for port in against) for _, _, against in _gives_way(p, i, o, c)
    ),
    "the younger holds and goes first": lambda p, i, o, c: any(
        c.refuse >> port & 1 and i.older >> need.pair & 1 == need.side and not against
        for port, need, against in _refused(p, i, o, c)
        if any(other.pair == need.pair and other.side != need.side for other in _issued(p, i, c))
    ),
    "a release wakes": _some_cta(lambda i, o, side, pair: _waits(i, o, side, pair) and _released(i, o, pair)),
    "a release wakes while other locks stay held": _some_cta(
        lambda i, o, side, pair: (
            _waits(i, o, side, pair) and _released(i, o, pair) and _stays_held(i, o, 1 - side, pair)
        )
    ),
    "a refusal in the cycle of a release": lambda p, i, o, c: any(
        _released(i, o, need.pair) for _, need, against in _refused(p, i, o, c) if not against
    ),
    "a taking in the cycle of a release": lambda p, i, o, c: any(
        _released(i, o, need.pair) for need in _issued(p, i, c)
    ),
    "a release of one pair while another waits": lambda p, i, o, c: any(
        _released(i, o, a) and _waits(i, o, side, b) for a in _pairs(p, i) for b in _pairs(p, i) if a != b
        for side in SIDES
    ),
    "all warps of a CTA wait": _some_cta(lambda i, o, side, pair: _waits(i, o, side, pair) == _locks(i, pair)),
    "a warp ends that holds nothing": lambda p, i, o, c: any(i.finish[side] & ~o.held[side] for side in SIDES),
    "a warp ends while others of its CTA hold": _some_cta(
        lambda i, o, side, pair: i.finish[side] & _locks(i, pair) and _stays_held(i, o, side, pair)
    ),
    "a warp ends that waits": lambda p, i, o, c: any(i.finish[side] & o.waiting[side] for side in SIDES),
    "a CTA gives back its scratchpad lock": lambda p, i, o, c: any(
        i.leave[side] & o.scratchpads[side] for side in SIDES
    ),
    "a CTA ends that holds nothing": lambda p, i, o, c: any(i.leave[side] & ~o.holds[side] for side in SIDES),
    "both CTAs of a pair end": lambda p, i, o, c: i.leave[0] & i.leave[1] != 0,
    "a CTA holds every lock of its pair": _some_cta(
        lambda i, o, side, pair: (
            i.per_cta > 1 and o.scratchpads[side] >> pair & 1 and o.held[side] & _locks(i, pair) == _locks(i, pair)
        )
    ),
    "nobody holds and nobody asks": lambda p, i, o, c: not o.holds[0] | o.holds[1] and not _asking(p, i),
    "no pair exists": lambda p, i, o, c: not _pairs(p, i),
    "a lock belongs to no pair": lambda p, i, o, c: len(_pairs(p, i)) * i.per_cta < locks_of(p["warps"]),
    "a pair does not exist": lambda p, i, o, c: 0 < len(_pairs(p, i)) < pairs_of(p["ctas"]),
    "both CTAs of a pair hold": lambda p, i, o, c: o.holds[0] & o.holds[1] != 0,
    "one CTA holds a register lock, the other scratchpad": _some_cta(
        lambda i, o, side, pair: o.held[side] & _locks(i, pair) and o.scratchpads[1 - side] >> pair & 1
    ),
    "both CTAs of a pair wait": _some_pair(lambda i, o, pair: _waits(i, o, 0, pair) and _waits(i, o, 1, pair)),
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
    "a refusal in the cycle of a release", "all warps of a CTA wait", "nobody holds and nobody asks",
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
            "a warp ends while others of its CTA hold", "a CTA holds every lock of its pair", "no pair exists",
            "a lock belongs to no pair", "a pair does not exist",
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
