"""The bench of ``sharing.issue_path``: warps of CTAs with and without partners request, and lists say what must happen.

Who is granted is what the reference of the schedulers' bench says, of the warps that do not wait for a lock; who is
refused, holds and waits, what the bench of the locks says of these grants.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lockstep.rtl.sharing.share_locks import SIDES
from lockstep.spec.parameters import SCHEDULERS
from lockstep.spec.sharing.parameters import POLICY, locks_of, pairs_of
from lockstep.verif.scheduling.bench_warp_scheduler import ALL_POLICIES, Reference, policies, slots, word
from lockstep.verif.sharing import bench_share_locks
from lockstep.verif.sharing.bench_share_locks import Ask, Cta, Warp

BLOCK = "sharing.issue_path"
CONFIGURATIONS = {
    "small": {"warps": 12, "ctas": 4, "schedulers": 3, "patience": 2, "policies": ALL_POLICIES, "rule": 1},
    "shipped": {
        "warps": 48, "ctas": 8, "schedulers": 2, "patience": 1024, "policies": policies(POLICY), "rule": 1,
    },
    "one": {"warps": 2, "ctas": 2, "schedulers": 1, "patience": 1, "policies": policies(POLICY), "rule": 1},
    "odd": {"warps": 11, "ctas": 5, "schedulers": 3, "patience": 3, "policies": policies("gto", "oldest"), "rule": 1},
    "without the rule": {
        "warps": 10, "ctas": 6, "schedulers": 2, "patience": 5, "policies": policies("gto"), "rule": 0,
    },
    "largest": {"warps": 64, "ctas": 32, "schedulers": 4, "patience": 4095, "policies": ALL_POLICIES, "rule": 1},
}  # fmt: skip
CYCLES = 1500
# As in the bench of the schedulers.
IDLE_CHANGES = (r"warp_scheduler_\d\.(passes_\d+|anew|added|filled|entered)",)


@dataclass(frozen=True)
class Shape:
    """A policy, how many warps a CTA has, and probabilities in a cycle."""

    policy: str
    per_cta: Callable[[int, int, random.Random], int]  # of locks and pairs
    patience: Callable[[int], int] = lambda most: most
    active: Callable[[int, int], int] = lambda warps, own: 1 << warps.bit_length() - 1  # of all warps, and of its own
    request: float = 0.7  # each warp
    end: float = 0.05  # a warp that does not request
    others: float = 0.1  # another mechanism refuses a grant
    classes: float = 0.1  # those of warps change
    alone: float = 0.3  # a CTA that starts is of no pair


SHAPES_OF = {
    "oldest": Shape(POLICY, lambda locks, pairs, rng: max(1, locks // pairs)),
    "contended": Shape("gto", lambda locks, pairs, rng: 1, request=1, end=0.3, alone=0),
    "lrr": Shape("lrr", lambda locks, pairs, rng: max(1, locks // 2), patience=lambda most: most // 2, end=0.2),
    "two-level": Shape("two-level", lambda locks, pairs, rng: locks, active=lambda warps, own: own),
    "too large to share": Shape("oldest", lambda locks, pairs, rng: 2 * locks, end=0.2),
    "one active": Shape("two-level", lambda locks, pairs, rng: locks, active=lambda warps, own: 1, end=0.2, alone=0),
    "simple-p": Shape("simple-p", lambda locks, pairs, rng: 2 if locks > 1 else 1, patience=lambda most: 0, end=0.2),
    "region-p": Shape(
        "region-p", lambda locks, pairs, rng: locks, active=lambda warps, own: (1 << warps.bit_length() - 1) - 1,
        others=0.5, end=0.1,
    ),
    "greedy-rr": Shape("greedy-rr", lambda locks, pairs, rng: max(1, locks // 2), classes=0, others=0.4, end=0.1),
    "sparse": Shape(POLICY, lambda locks, pairs, rng: rng.randint(1, locks), request=0.05, patience=lambda most: 1),
}  # fmt: skip
SHAPES = tuple(SHAPES_OF)
_CLASSES = ("paused", "secondary", "owner", "non_owner")


class Environment(bench_share_locks.Environment):
    """CTAs, whose warps have slots, and the reference of each scheduler."""

    CYCLES = CYCLES

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        own = SHAPES_OF[shape]
        super().__init__(parameters, bench_share_locks.SHAPES[0], rng)
        self.traffic = own
        locks, pairs, self.warps = locks_of(parameters["warps"]), pairs_of(parameters["ctas"]), parameters["warps"]
        self.per_cta = max(1, min(self.warps, own.per_cta(locks, pairs, rng)))
        self.pairs = min(pairs, locks // self.per_cta)
        built = [name for k, name in enumerate(SCHEDULERS) if parameters["policies"] >> k & 1]
        policy = own.policy if own.policy in built else rng.choice(built)
        self.policy = SCHEDULERS.index(policy)
        ports = range(parameters["schedulers"])
        self.partition = [set(range(k, self.warps, len(ports))) for k in ports]
        self.active_warps = max(1, min(self.warps, own.active(self.warps, len(self.partition[0]))))
        self.patience = min(parameters["patience"], own.patience(parameters["patience"]))
        self.references = [Reference(policy, self.active_warps, self.patience, self.warps) for _ in ports]
        self.of: dict[int, tuple[Cta | None, Warp]] = {}  # by slot; the CTA, if it is of a pair
        self.fresh: set[int] = set()  # slots of warps that start in this cycle
        self.done: set[int] = set()  # ... end
        self.wanted: set[int] = set()  # request

    def drive(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.traffic
        i.policy, i.active_warps, i.patience = self.policy, self.active_warps, self.patience
        self.asks = {}
        live = set(self.of)
        self._start()
        self.fresh = self.of.keys() - live
        self._end()
        self.wanted = {slot for slot in live - self.done if rng.random() < shape.request}
        i.start, i.finish, i.request = word(self.fresh), word(self.done), word(self.wanted)
        if not self.wanted and rng.random() < 0.5:
            i.request = word(set(range(self.warps)) - live)  # of which there are none
        i.older = self._older()
        for side in SIDES:
            i.leave[side] = sum(1 << cta.pair for cta in self.leaving if cta.side == side)
        self._drive_slots(i)
        o.alone = word(slot for slot, (cta, _) in self.of.items() if cta is None)
        i.registers &= ~o.alone
        i.scratchpad &= ~o.alone
        i.long_latency, i.global_wait = self._some(0.2), self._some(0.2)
        if rng.random() < shape.classes:
            for name in _CLASSES:
                setattr(i, name, self._some(0.3) if rng.random() < 0.7 else 0)
        ports = range(len(self.partition))
        i.hint = sum(1 << k for k in ports if rng.random() < 0.5)
        i.refused = sum(1 << k for k in ports if rng.random() < shape.others)

    def _some(self, share: float) -> int:
        return word(slot for slot in range(self.warps) if self.rng.random() < share)

    def _start(self) -> None:
        """Let warps start where there is room, some of them of no pair."""
        if self.rng.random() < self.traffic.alone and len(self.free) > self.warps // 2:
            slot = self.rng.choice(sorted(self.free))
            self.free.remove(slot)
            self.of[slot] = None, Warp(0, slot)
        super()._start()
        for cta in self.ctas.values():
            self.of |= {warp.slot: (cta, warp) for warp in cta.warps}

    def _end(self) -> None:
        """Choose the warps that end, of all that did not start just now."""
        rate = self.traffic.end
        self.done = {
            slot
            for slot, (_, warp) in self.of.items()
            if slot not in self.fresh and self.rng.random() < (rate / 10 if warp.waits else rate)
        }
        self.ending = [(cta, warp) for cta, warp in (self.of[slot] for slot in sorted(self.done)) if cta is not None]
        ends = {warp for _, warp in self.ending}
        self.leaving = [cta for cta in self.ctas.values() if not {*cta.warps} - ends]

    def observe(self, i: Any, o: Any, c: Any) -> None:
        waits = {slot for slot, (_, warp) in self.of.items() if warp.waits}
        granted = [self._grant(k, i, c, waits) for k in range(len(self.partition))]
        super().observe(i, o, c)
        refused = i.refused | c.refuse
        for k, reference in enumerate(self.references):
            own = self.partition[k]
            reference.step(
                None if refused >> k & 1 else granted[k], self.wanted & own - waits, slots(i.start) & own,
                slots(i.finish) & own, (slots(i.long_latency) | waits) & own, (slots(i.global_wait) | waits) & own,
                bool(i.hint >> k & 1),
            )  # fmt: skip
            reference.classify(*(slots(getattr(i, name)) & own for name in _CLASSES))
        for slot in self.done:
            del self.of[slot]
        self.free |= self.done

    def _grant(self, k: int, i: Any, c: Any, waits: set[int]) -> int | None:
        """What a scheduler must have granted, and has; and what it asks for."""
        expected = self.references[k].grant(self.wanted & self.partition[k] - waits)
        got = c.grant[k].warp if c.grant[k].valid else None
        assert got == expected, f"scheduler {k} granted {got}, not {expected}"
        assert got is not None or c.grant[k].warp == 0
        if got is not None:
            cta, warp = self.of[got]
            if cta is not None:
                self.asks[k] = Ask(cta, warp, bool(i.registers >> got & 1), bool(i.scratchpad >> got & 1))
        return got

    def finish(self) -> None:
        """Every grant and every refusal was checked in its cycle."""


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _grants(p: dict[str, int], i: Any, o: Any, c: Any) -> Iterator[tuple[int, Any, int]]:
    """The schedulers that grant to a warp of a pair, its seat, and 1 if it needs a lock."""
    for k in range(p["schedulers"]):
        if c.grant[k].valid and not o.alone >> c.grant[k].warp & 1:
            yield k, i.seat[c.grant[k].warp], (i.registers | i.scratchpad) >> c.grant[k].warp & 1


def _own(p: dict[str, int], k: int) -> int:
    return word(range(k, p["warps"], p["schedulers"]))


def _takes(p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    """Somebody issues with a lock."""
    return any(needs and not (i.refused | c.refuse) >> k & 1 for k, _, needs in _grants(p, i, o, c))


def _refused(p: dict[str, int], i: Any, o: Any, c: Any) -> list[tuple[int, int]]:
    """The schedulers that are refused, each with whether the other CTA of the pair holds something."""
    return [
        (k, o.holds[1 - seat.side] >> seat.pair & 1) for k, seat, _ in _grants(p, i, o, c) if c.refuse >> k & 1
    ]  # fmt: skip


BINS: dict[str, Bin] = {
    "a grant takes a lock": _takes,
    "a grant of a pair needs no lock": lambda p, i, o, c: any(not needs for _, _, needs in _grants(p, i, o, c)),
    "a warp of no pair is granted": lambda p, i, o, c: any(
        c.grant[k].valid and o.alone >> c.grant[k].warp & 1 for k in range(p["schedulers"])
    ),
    "refused for what the other CTA holds": lambda p, i, o, c: any(held for _, held in _refused(p, i, o, c)),
    "refused for what another scheduler grants": lambda p, i, o, c: any(not held for _, held in _refused(p, i, o, c)),
    "one scheduler is refused, and another takes a lock": lambda p, i, o, c: bool(c.refuse and _takes(p, i, o, c)),
    "refused while another warp of the scheduler requests": lambda p, i, o, c: any(
        (i.request & ~o.waiting & _own(p, k)).bit_count() > 1 for k, _ in _refused(p, i, o, c)
    ),
    "another mechanism refuses a grant that needs a lock": lambda p, i, o, c: any(
        needs and i.refused & ~c.refuse & 1 << k for k, _, needs in _grants(p, i, o, c)
    ),
    "a warp that waits would request": lambda p, i, o, c: i.request & o.waiting != 0,
    "nothing is granted, because all wait": lambda p, i, o, c: any(
        not c.grant[k].valid and i.request & o.waiting & _own(p, k) for k in range(p["schedulers"])
    ),
    "a release in the cycle of a refusal": lambda p, i, o, c: bool(c.refuse and i.finish & o.held),
    "warps end that hold locks": lambda p, i, o, c: i.finish & o.held != 0,
    "nobody requests": lambda p, i, o, c: i.request == 0,
}


def _alone(p: dict[str, int]) -> bool:
    """One scheduler, whose grant competes with none."""
    return p["schedulers"] == 1


UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = dict.fromkeys(
    ("refused for what another scheduler grants", "one scheduler is refused, and another takes a lock"), _alone
)
