"""CtaBalancer in an SM of its own: what may be given is counted by window, and no pair leaves room for a CTA."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value

BLOCK = "scavenger.cta_balancer"
_THESIS = {"window": 8192, "primary_slack": 4, "secondary_slack": 8}
CONFIGURATIONS = {
    "small": {
        "warps": 16, "ctas": 8, "pairs": 6, "window": 27, "primary_slack": 1, "secondary_slack": 2, "carry": 1,
    },
    "gtx480": {"warps": 48, "ctas": 8, "pairs": 7, **_THESIS, "carry": 1},
    "shipped": {"warps": 64, "ctas": 32, "pairs": 31, **_THESIS, "carry": 1},
    "one": {"warps": 2, "ctas": 2, "pairs": 1, "window": 17, "primary_slack": 0, "secondary_slack": 1, "carry": 1},
    "odd": {
        "warps": 23, "ctas": 11, "pairs": 10, "window": 39, "primary_slack": 3, "secondary_slack": 5, "carry": 1,
    },
    "rounded down": {"warps": 48, "ctas": 16, "pairs": 15, **_THESIS, "carry": 0},
    "largest": {
        "warps": 64, "ctas": 32, "pairs": 31, "window": 65535, "primary_slack": 10, "secondary_slack": 20, "carry": 1,
    },
}  # fmt: skip
MEASURED = {"shipped": 2}
IDLE_CHANGES = (
    r"cycle", r"counting", r".*_part_\d+", r"working", r"step", r"primary_idle", r"secondary_idle", r"begins",
    r"starves", r"gives", r"returns", r"excess", r"difference", r"again", r"carried", r"budget", r"entry.*", r"gain",
    r"more", r"present", r"is_pair", r"gain.*", r"candidate.*", r"found", r"chosen.*", r"cost", r".*read.*", r"table.*",
)  # fmt: skip

LONG = 200  # a window of more cycles is cut short in a simulator
STARVES, GIVES, RETURNS, NEITHER = "starves", "gives", "returns", "neither"


@dataclass(frozen=True)
class Shape:
    """``small``: of the CTAs, those of few warps. ``moods``: the slack of both kernels, around their thresholds or "".

    ``ends``: of a run, per cycle; ``grids``: of the pauses between runs, those that bring other kernels.
    """

    small: float = 0.5
    moods: tuple[tuple[str, str], ...] = (
        ("any", "any"), ("near", "near"), ("any", "near"), ("near", "any"), ("much", "near"),
    )  # fmt: skip
    ends: float = 0.001
    grids: float = 0.5
    starts: float = 0.01  # CTAs that end and are followed, per window and warp
    gaps: float = 0.3  # of the grids, those of which only some pairs are loaded
    swings: bool = False  # CTAs go to the secondary, up to the last, and then back


_SHAPES = {
    "mixed": Shape(),
    "gives": Shape(moods=(("much", "none"), ("much", "near"), ("much", "none"), ("near", "any")), ends=0.0005, small=1),
    "swings": Shape(ends=0.0005, grids=0.3, small=1, swings=True),
    "swings and stops": Shape(ends=0.002, grids=0.2, small=1, swings=True),
    "starves": Shape(moods=(("none", "any"), ("much", "none")), ends=0.0005, small=0.9),
    "stuck": Shape(moods=(("much", "none"),), small=0.0, ends=0.001, grids=0.7),
    "slow": Shape(moods=(("more", "none"), ("much", "none"), ("much", "none")), small=0.2, ends=0.001),
    "runs": Shape(
        ends=0.003, moods=(("much", "none"), ("much", "none"), ("any", "any")), grids=0.1, small=0.7, gaps=0.8
    ),
    "new warps": Shape(starts=0.3),
}
SHAPES = tuple(_SHAPES)


def staircase(
    rng: random.Random, p: Mapping[str, int], small: bool, gaps: bool
) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """Pairs that leave no room in an SM for one more CTA, all but for gaps, and the warps of a CTA of each kernel.

    CTAs take warps, and some of another resource.
    """
    while True:
        most = max(p["warps"] // 8, 1) if small else p["warps"] - 1
        first = rng.randint(-(-most // 2) if small else 1, most)
        sizes = first, rng.randint(1, min(p["warps"] - first, most))
        sizes = (1, 1) if small and rng.random() < 0.15 else rng.choice([sizes, sizes[::-1]])
        taken = rng.randint(1, 9), rng.randint(1, 9)
        room = rng.randint(5 * p["ctas"] if small else max(taken), 9 * p["ctas"])

        def fits(a: int, b: int, sizes: Any = sizes, taken: Any = taken, room: int = room) -> bool:
            warps, other = a * sizes[0] + b * sizes[1], a * taken[0] + b * taken[1]
            return a + b <= p["ctas"] and warps <= p["warps"] and other <= room

        counts = range(1, p["ctas"] + 1)
        pairs = [
            (a, b) for a in counts for b in counts if fits(a, b) and not fits(a + 1, b) and not fits(a, b + 1)
        ]  # fmt: skip
        if 1 <= len(pairs) <= p["pairs"] and (not small or len(pairs) > 2 or p["pairs"] < 3):
            if gaps:
                pairs = sorted(rng.sample(pairs, rng.randint(1, len(pairs))))
            return pairs, sizes


class Environment:
    """An SM with two kernels, of whose warps some do not issue."""

    CYCLES = 10000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.p, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.table: list[tuple[int, int]] = []
        self.loading: list[tuple[int, int]] = []
        self.sizes = (1, 1)
        self.pair = (0, 0)
        self.then: tuple[int, int] | None = None  # if the outputs do not show it yet
        self.running, self.cycle, self.windows = 0, 0, 0
        self.busy = 0
        self.rule, self.carried = NEITHER, 0  # in quarters of warps
        self.back = False
        self.resident = [0, 0]
        self.quiet = 0
        self.pause = rng.randint(0, 5)
        self.mood, self.lasts = rng.choice(self.shape.moods), 0  # and for how many more windows

    # ------------------------------------------------------------------------------------------------------- stimulus

    def preset(self) -> dict[str, int]:
        """Leave out most of a window that is too long for a run, once its pair has been chosen."""
        p, rng = self.p, self.rng
        if p["window"] <= LONG or self.cycle != p["pairs"] + 8 or rng.random() < 0.02:
            return {}
        self.cycle = p["window"] - rng.randint(5, 12)
        return {"cycle": self.cycle}

    def drive(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.shape
        i.clear = i.load.valid = 0
        if self.running:
            last, chooses = self.cycle == self.p["window"] - 1, self.then not in (None, self.pair)
            self.running = rng.random() >= shape.ends * (1 + 9 * chooses + 20 * last)
            self.pause = rng.randint(1, 8)
        else:
            self._between(i)
        i.run = self.running
        i.primary_warps, i.secondary_warps = self.sizes
        if self.cycle == 0:
            self._residents()
        issued = started = 0
        for slot in range(self.p["warps"]):
            bit = 1 << slot
            if self.quiet & bit:
                continue
            late = self.cycle >= self.p["window"] - 3
            if rng.random() < (0.8 if late else 0.05) or (self.cycle == self.p["window"] - 1 and not self.busy & bit):
                if rng.random() < shape.starts:
                    started |= bit
                else:
                    issued |= bit
        i.issued, i.started = issued, started
        i.primary_resident, i.secondary_resident = self.resident

    def _between(self, i: Any) -> None:
        """Between two runs: perhaps other kernels."""
        rng = self.rng
        if self.loading:
            i.load.valid = rng.random() < 0.8
            if i.load.valid:
                i.load.payload.primary, i.load.payload.secondary = self.loading.pop(0)
            return
        self.pause -= 1
        if self.pause > 0:
            return
        if not self.table or rng.random() < self.shape.grids:
            i.clear = 1
            self.loading, self.sizes = staircase(
                rng, self.p, rng.random() < self.shape.small, rng.random() < self.shape.gaps
            )
            self.pause = rng.randint(2, 5)
            return
        self.running = 1

    def _residents(self) -> None:
        """The warps of this window, and those of them that will not issue."""
        rng, p = self.rng, self.p
        if self.lasts <= 0:
            self.mood, self.lasts = rng.choice(self.shape.moods), rng.randint(1, 12)
        self.lasts -= self.running
        if self.shape.swings and self.pair in self.table:
            at = self.table.index(self.pair)
            self.back = at == 0 or (self.back and at != len(self.table) - 1)
            if rng.random() < 0.08:
                self.back = not self.back
            self.mood = ("more", "much") if self.back else ("much", "none")
        counts = [max(a * size - rng.choice([0, 0, 0, 1]), 0) for a, size in zip(self.pair, self.sizes, strict=True)]
        whole = rng.random() < 0.02  # one kernel has every slot, and issues nothing
        if whole:
            counts = rng.choice([[p["warps"], 0], [0, p["warps"]]])
        slots = rng.sample(range(p["warps"]), min(sum(counts), p["warps"]))
        mine = slots[: counts[0]], slots[counts[0] :]
        self.resident = [sum(1 << slot for slot in each) for each in mine]
        self.quiet = 0
        for each, mood, threshold in zip(mine, self.mood, (p["primary_slack"], p["secondary_slack"]), strict=True):
            count = {
                "any": rng.randint(0, len(each)),
                "near": threshold + rng.choice([-1, 0, 0, 1]),
                "more": threshold + rng.randint(1, 4),
                "much": len(each) - rng.choice([0, 0, 1, 2]),
                "none": rng.choice([0, 0, threshold - 1]),
            }[mood]
            self.quiet |= sum(1 << slot for slot in rng.sample(each, min(max(count, 0), len(each))))
        if whole:
            self.quiet = sum(self.resident)

    # --------------------------------------------------------------------------------------------------------- checks

    def observe(self, i: Any, o: Any, c: Any) -> None:
        pair = (o.primary, o.secondary)
        if pair != self.pair:
            assert pair == self.then, "as the last window says"
            self.pair, self.then = pair, None
        assert o.shares == bool(self.table)
        assert pair == (0, 0) or pair in self.table, "no room for one more CTA of either"
        assert (pair == (0, 0)) == (0 in pair)
        o.rule = o.why = o.before = ""  # for the bins
        o.cycle, o.windows, o.pairs = self.cycle, self.windows, len(self.table)
        o.choosing = self.then not in (None, self.pair)
        o.first = i.run and self.windows == self.cycle == 0
        if i.clear:
            self.table, self.pair = [], (0, 0)
        if i.load.valid:
            self.table.append((i.load.payload.primary, i.load.payload.secondary))
        if not i.run:
            self.cycle = self.windows = self.busy = self.carried = 0
            self.rule, self.then = NEITHER, None
            return
        if o.first:
            self._begin(o)
        self.busy |= i.issued | i.started
        self.cycle += 1
        if self.cycle == self.p["window"]:
            self._decide(i, o)
            self.cycle = self.busy = 0
            self.windows += 1

    def _begin(self, o: Any) -> None:
        few = [pair for pair in self.table if 2 * pair[1] <= self.pair[1]]
        self.then = few[0] if few else self.table[-1]
        o.rule, o.why = "begins", "half" if few else "fewest"
        if few and self.then[1] < self.pair[1] // 2:
            o.why = "rounded down"
        if self.pair == (0, 0):
            o.why = "first"

    def _decide(self, i: Any, o: Any) -> None:
        """Which pair is next, by the rules' words."""
        p = self.p
        assert self.then in (None, self.pair), "a window's pair is there before the next window ends"
        idle = [bin(mask & ~self.busy).count("1") for mask in (i.primary_resident, i.secondary_resident)]
        over = idle[0] - p["primary_slack"], idle[1] - p["secondary_slack"]
        o.before, self.then = self.rule, self.pair
        o.over, carried = over, self.carried
        self.carried = 0
        at = self.table.index(self.pair)
        if over[0] < 0:
            self.rule = STARVES
            if at + 1 < len(self.table):
                self.then = self.table[at + 1]
            o.why = "" if self.then == self.pair else "moves"
        elif over[1] < 0 < over[0] or over[1] > 0:
            self.rule = GIVES if over[1] < 0 else RETURNS
            quarters = min(4 * max(over[self.rule == RETURNS], 0), abs(idle[0] - idle[1]))
            budget = quarters + (carried if o.before == self.rule else 0)
            which = int(self.rule == GIVES)  # who gains
            gains = {pair: 4 * (pair[which] - self.pair[which]) * self.sizes[which] for pair in self.table}
            possible = [pair for pair in self.table if 0 < gains[pair] <= budget]
            if possible:
                self.then = max(possible, key=lambda pair: gains[pair])
                budget -= gains[self.then]
            self.carried = min(budget, 4 * p["warps"]) if p["carry"] else 0
            there = not any(gain > 0 for gain in gains.values())
            o.why = "end" if there else "too few" if not possible else "moves"
            if possible and gains[self.then] > quarters:
                o.why = "carried"
            o.limit = "excess" if quarters < abs(idle[0] - idle[1]) else "difference"
            o.several = len(possible) > 1
            o.full = self.carried == 4 * p["warps"]
        else:
            self.rule = NEITHER
        o.rule = self.rule

    def finish(self) -> None:
        """Nothing is left to be said: each choice has been checked."""


def protocol(m: Module, parameters: dict[str, int], ports: Mapping[str, Signal]) -> Value:
    """Between runs, a staircase is loaded that the table has room for; a run has one, and keeps its sizes."""
    count, last = Signal(range(parameters["pairs"] + 1)), Signal.like(ports["load_primary"])
    lower, ran = Signal.like(ports["load_secondary"]), Signal()
    sizes = [Signal.like(ports[name]) for name in ("primary_warps", "secondary_warps")]
    load, clear, run = ports["load_valid"], ports["clear"], ports["run"]
    m.d.sync += [
        ran.eq(run),
        count.eq(Mux(clear, 0, count + load)),
        last.eq(Mux(load, ports["load_primary"], last)),
        lower.eq(Mux(load, ports["load_secondary"], lower)),
        *(was.eq(ports[name]) for was, name in zip(sizes, ("primary_warps", "secondary_warps"), strict=True)),
    ]
    pair = (ports["load_primary"] >= 1) & (ports["load_secondary"] >= 1)
    pair &= ports["load_primary"] + ports["load_secondary"] <= parameters["ctas"]
    follows = (ports["load_primary"] > last) & (ports["load_secondary"] < lower)
    stays = (sizes[0] == ports["primary_warps"]) & (sizes[1] == ports["secondary_warps"])
    return (
        ~(run & (clear | load) | clear & load)
        & (~load | pair & (count < parameters["pairs"]) & ((count == 0) | follows))
        & (~run | (count != 0))
        & (~(run & ran) | stays)
        & (ports["primary_warps"] + ports["secondary_warps"] <= parameters["warps"])
        & (ports["primary_resident"] & ports["secondary_resident"] == Const(0))
    )


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _is(rule: str, why: str) -> Bin:
    return lambda p, i, o, c: o.rule == rule and o.why == why


BINS: dict[str, Bin] = {
    "the first run begins with the fewest": _is("begins", "first"),
    "a later run begins with half": _is("begins", "half"),
    "half is no pair": _is("begins", "rounded down"),
    "half is too few": _is("begins", "fewest"),
    "the primary starves": _is(STARVES, "moves"),
    "it has all it can have": _is(STARVES, ""),
    "the secondary is given CTAs": _is(GIVES, "moves"),
    "it is given too little for one": _is(GIVES, "too few"),
    "it is given one with what was carried": _is(GIVES, "carried"),
    "it has all it can have already": _is(GIVES, "end"),
    "the primary gets CTAs back": _is(RETURNS, "moves"),
    "it gets too little back for one": _is(RETURNS, "too few"),
    "it gets one back with what was carried": _is(RETURNS, "carried"),
    "it has everything that can go back": _is(RETURNS, "end"),
    "no rule applies": lambda p, i, o, c: o.rule == NEITHER and o.cycle == p["window"] - 1,
    "the excess is less than a quarter of the difference": lambda p, i, o, c: (
        o.rule in (GIVES, RETURNS) and o.limit == "excess"
    ),
    "a quarter of the difference is less": lambda p, i, o, c: o.rule in (GIVES, RETURNS) and o.limit == "difference",
    "several pairs are possible": lambda p, i, o, c: o.rule in (GIVES, RETURNS) and o.several,
    "what was carried is lost, since another rule applies": lambda p, i, o, c: (
        o.rule in (GIVES, RETURNS) and o.before not in (o.rule, NEITHER)
    ),
    "as much is carried as can be": lambda p, i, o, c: o.rule in (GIVES, RETURNS) and o.full,
    "the primary's slack is the threshold": lambda p, i, o, c: o.rule and o.why != "first" and _at(o, 0) == 0,
    "the primary's slack is one less": lambda p, i, o, c: o.rule == STARVES and _at(o, 0) == -1,
    "the secondary's slack is the threshold": lambda p, i, o, c: o.rule == NEITHER and _at(o, 1) == 0,
    "the secondary's slack is one less": lambda p, i, o, c: o.rule == GIVES and _at(o, 1) == -1,
    "the secondary's slack is one more": lambda p, i, o, c: o.rule == RETURNS and _at(o, 1) == 1,
    "a warp issues in the last cycle of a window": lambda p, i, o, c: i.run and o.cycle == p["window"] - 1 and i.issued,
    "a warp starts in the last cycle of a window": lambda p, i, o, c: (
        i.run and o.cycle == p["window"] - 1 and i.started
    ),
    "a warp issues in the first cycle of a window": lambda p, i, o, c: i.run and o.cycle == 0 and i.issued,
    "the table has one pair": lambda p, i, o, c: o.first and o.pairs == 1,
    "the table is empty": lambda p, i, o, c: o.pairs == 0,
    "a run ends in the last cycle of a window": lambda p, i, o, c: not i.run and o.cycle == p["window"] - 1,
    "a run ends while a pair is chosen": lambda p, i, o, c: not i.run and o.choosing,
    "other kernels come": lambda p, i, o, c: i.clear and o.pairs,
}


def _at(o: Any, which: int) -> int:
    """How far a kernel's slack is above its threshold, in a window's last cycle."""
    return o.over[which] if o.rule in (STARVES, GIVES, RETURNS, NEITHER) else -99


def _one_pair(p: Mapping[str, int]) -> bool:
    return p["pairs"] == 1


UNREACHABLE: Mapping[str, Callable[[dict[str, int]], bool]] = {
    # The only pair is chosen again and again.
    **dict.fromkeys(
        (
            "a later run begins with half", "half is no pair", "the primary starves", "the secondary is given CTAs",
            "it is given too little for one", "the primary gets CTAs back", "it gets too little back for one",
            "several pairs are possible",
        ),
        _one_pair,
    ),
    "as much is carried as can be": lambda p: not p["carry"],
    "it is given one with what was carried": lambda p: not p["carry"] or _one_pair(p),
    "it gets one back with what was carried": lambda p: not p["carry"] or _one_pair(p),
    "it has all it can have": lambda p: p["primary_slack"] == 0,
    "the primary's slack is one less": lambda p: p["primary_slack"] == 0,
    "the excess is less than a quarter of the difference": lambda p: p["warps"] <= 4,
}  # fmt: skip
