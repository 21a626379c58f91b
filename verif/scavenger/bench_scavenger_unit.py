"""ScavengerUnit in an SM with two kernels: who may have what, when a run ends, and each step of both controllers.

What the SM does is kept cycle by cycle, and what the unit says is compared with sums over that. What ends a phase is
left to the bench of the detector.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from amaranth.hdl import Module, Signal, Value

from lockstep.spec.scavenger.control import OUTSTANDING_BITS, End, State
from lockstep.spec.scavenger.fixed import GAIN, IPC, SHARE, WARPS, nearest
from lockstep.spec.scavenger.parameters import SHIPPED, WINDOWS
from lockstep.verif.scavenger import (
    bench_cta_balancer,
    bench_fallback_monitor,
    bench_pc_histogram,
    bench_performance_predictor,
    bench_phase_detector,
    bench_pid_controller,
    bench_sliding_window,
)
from lockstep.verif.scavenger.bench_cta_balancer import staircase

BLOCK = "scavenger.scavenger_unit"
CONFIGURATIONS = {
    "odd": {
        "warps": 23, "ctas": 11, "pairs": 10, "requests": 61, "minimum": 88, "maximum": 331, "tolerance": 377,
        "comparisons": 3, "buckets": 8, "large_bits": 9, "small_bits": 5, "entries": 2, "entry": 32, "window": 107,
        "primary_slack": 3, "secondary_slack": 5, "carry": 1, "interval": 71, "proportional": 77, "integral": 45,
        "scale": 3, "relative": 0, "reciprocal": 0, "above": 3, "longest": 601, "lanes_apart": 7, "requests_apart": 3,
        "pcs_apart": 12_289, "limit": 5, "duration": 61, "time": 97,
    },
    "gtx480": SHIPPED | {"warps": 48, "ctas": 8, "pairs": 7},
    "shipped": SHIPPED,
}  # fmt: skip
MEASURED = {"odd": 2}
OWN_CODE = True
_PARTS = {
    "performance_predictor": bench_performance_predictor,
    "pc_histogram": bench_pc_histogram,
    "phase_detector": bench_phase_detector,
    "cta_balancer": bench_cta_balancer,
    "fallback_monitor": bench_fallback_monitor,
    r"sliding_window_\d": bench_sliding_window,
    r"pid_controller_\d": bench_pid_controller,
}
IDLE_CHANGES = (
    r"beat",
    r"\w+_slack\.\w+",
    *(rf"{part}\.({pattern})" for part, bench in _PARTS.items() for pattern in bench.IDLE_CHANGES),
)
TRANSITIONS = {
    "stage": {
        "FREE": ("CLEARING",),
        "CLEARING": ("PROFILING", "FREE"),
        "PROFILING": ("TARGETING", "CLEARING", "FREE"),
        "TARGETING": ("RUNNING", "CLEARING", "FREE"),
        "RUNNING": ("ALONE", "CLEARING", "FREE"),
        "ALONE": ("CLEARING", "FREE"),
    }
}

LONG = 1000  # a profile of more cycles is cut short in a simulator
TARGETED = 51  # cycles of TARGETING
DIVIDED = 11  # cycles from the last one of a slack to that of its beat
OUTSTANDING = (1 << OUTSTANDING_BITS) - 1  # of a kernel, at most
GIVES_UP = 900  # cycles of a run
MOST = 32  # lanes of an instruction, and requests
PHASES = frozenset((End.LANES, End.REQUESTS, End.PCS))
GOALS = ("lanes", "requests", "pcs", "length", "fallback", "begins", "clear", "gone")
CUTS = ("begins", "clear", "gone")  # what may end anything


@dataclass(frozen=True)
class Shape:
    """``goals``: how runs are led to end; "none": not at all. ``cut``: of other states, those that something ends.

    ``quiet``: how often the SM does nothing for a while, per cycle. ``slack``: of warps, and how much is outstanding.
    ``behind``: of runs, those in which the primary is slower than its target now and then. ``restless``: of profiles,
    those that do not become stable. ``empty``: of tables, those without a pair.
    """

    goals: tuple[str, ...] = GOALS
    cut: float = 0.1
    quiet: float = 0.01
    slack: tuple[str, ...] = ("any", "much", "none", "asleep", "far", "beyond", "full")
    behind: float = 0.3
    restless: float = 0.1
    empty: float = 0.1


_SHAPES = {
    "mixed": Shape(),
    "phases": Shape(goals=("lanes", "requests", "pcs"), cut=0.0, behind=0.0),
    "ends": Shape(goals=("length", "fallback", "gone", "clear"), slack=("much", "any"), empty=0.0),
    "fallback": Shape(goals=("fallback",), cut=0.4, slack=("none", "any")),
    "balanced": Shape(
        goals=("length", "none", "begins"), cut=0.0, slack=("much", "much", "none"), behind=0.3, empty=0.0, quiet=0.002
    ),
    "cut": Shape(cut=0.4, goals=(*CUTS, "length"), empty=0.4),
    "pushed": Shape(
        goals=("length", "pcs"), cut=0.0, slack=("any", "none", "asleep", "much", "full"), behind=0.9, empty=0.0
    ),
}
SHAPES = tuple(_SHAPES)


@dataclass
class Controller:
    """One resource: its allocation, and what is to become of it."""

    most: int
    first: int  # of the primary, when the next run begins
    allocation: Fraction = Fraction(0)
    then: Fraction | None = None
    part: list[int] = field(default_factory=list)  # by cycle of the run: unused, and in all
    whole: list[int] = field(default_factory=list)


class Environment:
    """An SM with CTAs of two kernels, a load/store unit and counters."""

    CYCLES = 5000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.p, self.shape, self.rng = parameters, _SHAPES[shape], rng
        p = parameters
        self.now = 0
        # The SM.
        self.table: list[tuple[int, int]] = []
        self.loading: list[tuple[int, int]] = []
        self.sizes = (1, 1)
        self.ctas = [0, 0]
        self.left = 0  # CTAs of the primary's grid
        self.writing = 0  # cycles
        self.mirrored = False
        self.pause = rng.randint(5, 20)  # until there is a primary
        self.quiet = 0
        self.turns = rng.randrange(len(self.shape.goals))
        self.goal = self.cut = ""
        self.cut_at = 0
        self.cuts, self.clears = {state: rng.randrange(len(CUTS)) for state in State}, rng.random()
        self.kernel()
        # What is expected.
        self.state = State.FREE
        self.possible: dict[State, frozenset[End]] = {State.FREE: frozenset()}  # next, and why a run may end so
        self.since = 0  # cycles in the state
        self.controllers = {of: Controller(p[of], p[of]) for of in ("warps", "requests")}
        self.stalled_with = p["requests"]
        self.pair = (0, 0)  # of the run, or of the one before
        self.issued: list[int] = []  # by cycle of the profile or of the run
        self.target, self.percent, self.share = 0, 90, 90
        self.sum = self.low = 0  # of the fallback
        self.fell = -9  # when it decided
        self.alone = 0  # cycles until that is over
        self.skipped = 0  # cycles of a run
        self.shift = 0  # ... and of its sliding windows
        self.length = 0  # of the last profile that was stable, in eights
        self.jumped = -1
        profile = {name: p[name] for name in ("minimum", "maximum", "tolerance", "comparisons")}
        predictor = bench_performance_predictor.Environment(profile, "mixed", random.Random(0))
        self.verdict = predictor.verdict

    def kernel(self) -> None:
        """What the primary does from now on."""
        rng = self.rng
        self.ipc = rng.choice((0.5, 1.0, 1.7, 3.0, 5.5, 7.0))
        self.lanes, self.lines = rng.choice((32, 21, 6)), rng.choice((1, 5, 25))
        self.memory = rng.choice((0.1, 0.5, 1.0))
        self.pcs = rng.randrange(self.p["buckets"])
        self.spread = rng.choice((1, 2, 4))
        self.credit = 0.0
        self.count = 0

    # ------------------------------------------------------------------------------------------------------- stimulus

    def preset(self) -> dict[str, int]:
        """Leave out most of a profile, a run, and a time alone."""
        p, rng = self.p, self.rng
        if p["minimum"] < LONG or self.state not in self.possible:
            return {}
        if self.state == State.PROFILING and self.issued:
            return self._profile_preset()
        if self.state == State.RUNNING and self.since == 3:
            return self._run_preset()
        if self.state == State.RUNNING and self.since % 100 == 20 and self.since > 100:
            return {"cta_balancer.cycle": p["window"] - rng.randint(5, 30)}
        if self.state == State.ALONE and self.alone > 300:
            self.alone = rng.randint(30, 90)
            return {"fallback_monitor.left": self.alone - 2}
        return {}

    def _profile_preset(self) -> dict[str, int]:
        """Leave out most of one of the first five intervals."""
        eighth, cycle = self.p["minimum"] // 8, len(self.issued)
        ends = [4 * eighth, *(n * eighth for n in range(5, 9))]
        number = next((k for k, end in enumerate(ends) if cycle < end), len(ends))
        least = ends[number - 1] + 3 if number else 200  # histograms are cleared at first
        if number == len(ends) or number == self.jumped or cycle < least:
            return {}
        self.jumped = number
        passed = ends[number] - cycle - self.rng.randint(2, 4)
        before = sum(self.issued)
        self.issued += [0] * passed
        self.issued[-1] = round(passed * self.ipc)
        name = "performance_predictor."
        state = {f"{name}cycle": len(self.issued), f"{name}left": ends[number] - len(self.issued)}
        total = before + self.issued[-1]
        if not number:
            return state | {f"{name}train": total}
        trained, begun = (sum(self.issued[:end]) for end in (ends[0], ends[number - 1]))
        return state | {f"{name}validate": total - trained, f"{name}small_{number - 1}": total - begun}

    def _run_preset(self) -> dict[str, int]:
        """To where the run may end, and to the ends of windows."""
        p, rng, state = self.p, self.rng, {}
        cycle = p["longest"] - rng.randint(250, 400) if self.goal == "length" else 8 * self.length - rng.randint(1, 90)
        state["phase_detector.cycle"] = cycle
        self.skipped = cycle - self.since - 1
        for k in range(len(WINDOWS)):
            state[f"sliding_window_{k}.cycle"] = p["entry"] - 50
        self.shift = p["entry"] - 50 - self.since - 1
        state["pc_histogram.cycle"] = p["window"] - 160  # the profile's comparison takes 100 of these
        state["cta_balancer.cycle"] = p["window"] - rng.randint(20, 60)
        if self.goal == "fallback":
            self.sum = -((p["limit"] + 50) << IPC.fraction)
            self.low = p["duration"] - rng.randint(20, 60)
            state |= {"fallback_monitor.sum": self.sum, "fallback_monitor.low": self.low}
        return state

    def drive(self, i: Any, o: Any) -> None:
        self.now += 1
        self.events = o.events = set()  # for the bins
        self._see(o)
        i.percent = self.percent
        i.clear = i.begins = i.load.valid = 0
        if self.quiet:
            self.quiet -= 1
            i.instructions = i.lanes = i.memory_instructions = i.requests = i.sample.valid = i.issued = i.started = 0
            return
        if self.rng.random() < self.shape.quiet:
            self.quiet = self.rng.randint(1, 40)
        self._kernels(i)
        self._place(i, (o.primary_limit, o.secondary_limit))
        i.primary_ctas, i.secondary_ctas = self.ctas
        i.left, i.writing, i.fits = int(self.left > 0), int(self.writing > 0), int(self._fits())
        sizes = self.sizes
        if self.state == State.FREE:  # in which nothing is known of them
            sizes = self.rng.randrange(self.p["warps"]), self.rng.randrange(self.p["warps"])
        i.primary_cta_warps, i.secondary_cta_warps = sizes
        self._issue(i)
        self._warps(i, o.primary_warps)

    def _see(self, o: Any) -> None:
        """A state may have begun."""
        state, before = State(o.state), self.state
        assert state in self.possible, f"{before.name} is followed by {state.name}"
        ended = before == State.RUNNING != state
        assert o.ends.valid == ended
        if ended:
            end = End(o.ends.payload)
            assert end in self.possible[state], f"a run ends by {end.name}"
            self.events.add(f"a run ends by {end.name}")
        self.since = self.since + 1 if state == before else 0
        if state != before:
            self.events.add(f"{before.name} is followed by {state.name}")
            self.state = state
            self._enter(o, before)

    def _enter(self, o: Any, before: State) -> None:
        """A state begins."""
        rng, state = self.rng, self.state
        self.cut = ""
        if rng.random() < self.shape.cut * (1 + (state == State.ALONE)):
            self.cuts[state] += 1
            self.cut = CUTS[self.cuts[state] % len(CUTS)]
        late = rng.randint(2, 50) * (state != State.CLEARING)
        self.cut_at = rng.choice((0, 1, late, late))
        if state in (State.PROFILING, State.RUNNING):
            self.issued, self.jumped, self.skipped, self.shift = [], -1, 0, 0
        if state == State.PROFILING:
            self.percent = rng.choice((20, 20, 50, 90, rng.randint(20, 100)))
            self.kernel()
            self.restless = self.p["maximum"] < LONG and rng.random() < self.shape.restless
        elif state == State.TARGETING:
            self._stable()
        elif state == State.RUNNING:
            self._begin()
        elif state == State.ALONE:
            self.alone = self.p["time"]
        elif state == State.FREE:
            self.pause = rng.randint(3, 30)

    def _begin(self) -> None:
        """A run."""
        rng = self.rng
        self.turns += 1
        self.goal = self.shape.goals[self.turns % len(self.shape.goals)]
        self.ends = rng.choice((rng.randint(1, 10), rng.randint(1, 300)))  # the cycle in which others end it
        self.behind = rng.random() < self.shape.behind
        self.sum = self.low = 0
        self.fell = -9
        self.moods = rng.choice(self.shape.slack), rng.choice(self.shape.slack)
        for controller in self.controllers.values():
            controller.allocation, controller.then = Fraction(controller.first), None
            controller.part, controller.whole = [], []
            if 0 < controller.most - controller.first:
                self.events.add("half of what the secondary had")
        if self.goal == "lanes":
            self.lanes = 4 if self.lanes > 12 else 30
        elif self.goal == "requests":
            self.lines = 32 if self.lines < 9 else 1
        elif self.goal == "pcs":
            self.pcs += self.p["buckets"] // 2

    def _kernels(self, i: Any) -> None:
        """Other kernels come, and go."""
        rng = self.rng
        if self.loading:
            if self.state not in (State.TARGETING, State.RUNNING) and rng.random() < 0.9:
                i.load.valid = 1
                i.load.payload.primary, i.load.payload.secondary = self.loading.pop(0)
            return
        what = ""
        if self.state == State.FREE and not self.left and not self.ctas[0]:
            self.pause -= 1
            if self.pause <= 0:
                what = "clear" if not self.table or rng.random() < 0.4 else "comes"
        elif self.state == State.RUNNING:
            what = self.goal if self.goal in CUTS and self.since >= self.ends else ""
            if self.since >= GIVES_UP:
                what = "begins"
        elif self.since >= self.cut_at:
            what, self.cut = self.cut, ""
        if not what and not self.table and rng.random() < 0.03:
            what = "clear"
        i.begins = int(what == "begins")
        if what in ("begins", "comes", "clear"):
            self.left = rng.choice((3, 50, 1000))
        if what == "clear":
            i.clear = 1
            pairs, self.sizes = staircase(rng, self.p, rng.random() < 0.8, False)
            self.clears += self.shape.empty
            self.loading = [] if self.clears >= 1 else pairs
            self.clears %= 1
            self.ctas = [0, 0]
            self.mirrored = not self.mirrored  # the primary's warps are in the last slots
        elif what == "gone":
            self.left = self.ctas[0] = 0

    def _fits(self) -> bool:
        (primary, secondary), sizes = self.ctas, self.sizes
        used = primary * sizes[0] + secondary * sizes[1]
        return primary + secondary < self.p["ctas"] and used + sizes[0] <= self.p["warps"]

    def _place(self, i: Any, limits: tuple[int, int]) -> None:
        """CTAs come and go, as the limits allow; contexts take some cycles."""
        rng = self.rng
        self.writing = max(self.writing - 1, 0)
        for k, most in enumerate(limits):
            if self.ctas[k] > most and rng.random() < 0.2:
                self.ctas[k] -= 1
                self.left += k == 0
                self.writing = rng.randint(1, 8)
        if self.left and self.ctas[0] < limits[0] and self._fits() and rng.random() < 0.3:
            self.ctas[0] += 1
            self.left -= 1
        used = self.ctas[0] * self.sizes[0] + self.ctas[1] * self.sizes[1]
        room = sum(self.ctas) < self.p["ctas"] and used + self.sizes[1] <= self.p["warps"]
        comes = 0.5 if self.state == State.FREE else 0.1
        if self.ctas[1] < limits[1] and room and rng.random() < comes and self.table:
            self.ctas[1] += 1
        if self.ctas[0] and rng.random() < 0.004:
            self.ctas[0] -= 1
        i.primary_resident = (1 << self.ctas[0] * self.sizes[0]) - 1
        used = self.ctas[0] * self.sizes[0] + self.ctas[1] * self.sizes[1]
        i.secondary_resident = (1 << used) - 1 & ~i.primary_resident
        if self.mirrored:
            i.primary_resident, i.secondary_resident = (
                int(f"{mask:0{self.p['warps']}b}"[::-1], 2) for mask in (i.primary_resident, i.secondary_resident)
            )

    def _issue(self, i: Any) -> None:
        """What the primary issues."""
        rng = self.rng
        rate = self.ipc if self.ctas[0] else 0.0
        if self.state == State.PROFILING and self.restless:
            rate = self.ipc = min(0.2 * 2 ** (len(self.issued) / (self.p["minimum"] / 2)), 7.0)
        if self.state == State.RUNNING:
            aim = self.target / IPC.one
            if self.goal == "fallback" and self.since > 5:
                rate = aim / 3
            elif self.behind and self.issued and sum(self.issued) > len(self.issued) * aim:
                rate = aim * rng.choice((0.5, 1))
        self.credit = min(self.credit + rate, 7.0)
        i.instructions = int(self.credit)
        self.credit -= i.instructions
        most = i.instructions if self.memory == 1 else 2
        i.memory_instructions = min(i.instructions, int(rng.random() < self.memory) * rng.randint(1, max(most, 1)))
        i.lanes = self.lanes * i.instructions
        i.requests = self.lines * i.memory_instructions
        i.sample.valid = int(i.instructions > 0)
        self.count += 1
        i.sample.payload = (self.pcs + self.count % self.spread) % self.p["buckets"]

    def _warps(self, i: Any, allowed: int) -> None:
        """Warps that are active, ready, issue or start, and what is outstanding."""
        rng, p = self.rng, self.p
        if self.since % 200 == 199:
            self.moods = rng.choice(self.shape.slack), rng.choice(self.shape.slack)
        warps, requests = self.moods if self.state == State.RUNNING else ("any", "any")
        resident = i.primary_resident.bit_count()
        i.active = min(allowed, resident) if rng.random() < 0.9 else rng.randint(0, resident)
        i.active *= warps != "asleep"
        i.ready = {
            "any": rng.randint(0, i.active), "much": i.active, "none": 0 if rng.random() < 0.9 else min(i.active, 1),
            "asleep": 0, "far": i.active, "beyond": 0, "full": i.active,
        }[warps]  # fmt: skip
        most = p["requests"]
        both = {
            "any": rng.randint(0, most + 20),
            "much": rng.randint(0, 9),
            "none": most + rng.randint(-3, 60),
            "asleep": 0,
            "far": rng.randint(0, 9),
            "beyond": rng.randint(0, 2 * OUTSTANDING),
            "full": 2 * OUTSTANDING,
        }[requests]
        i.stalled = int(rng.random() < 0.02)
        if requests == "far" and (i.stalled or self.stalled_with < OUTSTANDING):
            i.stalled, both = 1, 2 * OUTSTANDING - rng.randint(0, 1)
        i.primary_outstanding = rng.randint(max(both - OUTSTANDING, 0), min(both, OUTSTANDING))
        i.secondary_outstanding = both - i.primary_outstanding
        everyone = i.primary_resident | i.secondary_resident
        i.issued = everyone & rng.getrandbits(p["warps"]) & rng.getrandbits(p["warps"]) & (
            -1 if warps != "much" else rng.getrandbits(p["warps"]) & i.secondary_resident
        )  # fmt: skip
        i.started = everyone & 1 << rng.randrange(p["warps"]) if rng.random() < 0.02 else 0

    # --------------------------------------------------------------------------------------------------------- checks

    def observe(self, i: Any, o: Any, c: Any) -> None:
        assert o.shares == bool(self.table)
        self._limits(o)
        if self.state == State.TARGETING and self.since == TARGETED - 1:
            self._targets(o)
        if self.state == State.PROFILING:
            self.share = i.percent
        if self.state in (State.PROFILING, State.RUNNING):
            self.issued.append(i.instructions)
        if self.state == State.RUNNING:
            self._runs(i, o)
        self.alone -= 1
        if i.clear:
            self.table, self.pair = [], (0, 0)
            self.stalled_with = self.p["requests"]
            for controller in self.controllers.values():
                controller.first = controller.most
        if i.load.valid:
            self.table.append((i.load.payload.primary, i.load.payload.secondary))
        self._next(i, o)

    def _limits(self, o: Any) -> None:
        """What each kernel may have now."""
        p, state = self.p, self.state
        if state != State.RUNNING:
            for of, name in (("ctas", "limit"), ("warps", "warps"), ("requests", "requests")):
                shown = getattr(o, f"primary_{name}"), getattr(o, f"secondary_{name}")
                assert shown == (p[of], p[of] if state == State.FREE else 0), f"{name} in {state.name}"
            return
        pair = o.primary_limit, o.secondary_limit
        assert pair in self.table, "a pair of the table"
        if self.since == 0:
            few = [second for _, second in self.table if 2 * second <= self.pair[1]]
            assert pair[1] == (max(few) if few else min(second for _, second in self.table)), "half of the CTAs"
            self.events.add("half of the secondary's CTAs" if few else "the fewest of the secondary's CTAs")
        elif pair != self.pair:
            self.events.add("the secondary gets CTAs" if pair[1] > self.pair[1] else "the primary gets CTAs")
        self.pair = pair

    def _stable(self) -> None:
        """A profile was stable with the last cycle: its last comparison is one, and had so many cycles."""
        p = self.p
        cycles = (len(self.issued) - 1) % p["maximum"] + 1
        if cycles < len(self.issued):
            self.events.add("a profile was discarded")
        self.issued = self.issued[-cycles:]
        compared = cycles - self.verdict
        assert compared >= p["minimum"] + 16 * (p["comparisons"] - 1) and (compared - p["minimum"]) % 16 == 0
        self.length = compared // 8

    def _targets(self, o: Any) -> None:
        """The prediction is that of all cycles up to the last comparison, and the target is a percentage of it."""
        cycles = 8 * self.length
        predicted = nearest(sum(self.issued[:cycles]) << IPC.fraction, cycles)
        assert o.predicted == predicted, "instructions by cycles"
        assert o.target == nearest(self.share * predicted, 100), "a percentage of the prediction"
        self.target = o.target

    def _runs(self, i: Any, o: Any) -> None:
        """A cycle of a run."""
        p, at = self.p, len(self.issued) - 1
        outstanding = i.primary_outstanding + i.secondary_outstanding
        sums = {"warps": (i.ready, i.active), "requests": (self.stalled_with - outstanding, self.stalled_with)}
        if i.stalled and outstanding:
            self.stalled_with = outstanding
            self.events.add("a stall")
        for name, controller in self.controllers.items():
            primary = getattr(o, f"primary_{name}")
            assert primary + getattr(o, f"secondary_{name}") == controller.most, "nothing is lost"
            last = at % p["interval"] == p["interval"] - 1
            if controller.then is not None and (last or primary != int(controller.allocation)):
                controller.allocation, controller.then = controller.then, None
            assert primary == int(controller.allocation), f"{name}, as the last beat says"
            controller.part.append(sums[name][0])
            controller.whole.append(sums[name][1])
            if last:
                self._change(name, controller, at)
            controller.first = controller.most - (controller.most - primary) // 2
        if self.sum < -(p["limit"] << IPC.fraction):
            self.low += 1
        else:
            self.low = 0
        self.sum += (i.instructions << IPC.fraction) - self.target
        if self.low == p["duration"]:
            self.fell, self.low = self.now, 0

    def _change(self, name: str, controller: Controller, at: int) -> None:
        """What a beat changes, in whole fractions."""
        p = self.p
        beat = slice(max(at + 1 - p["interval"] - DIVIDED, 0), at + 1 - DIVIDED)
        part, whole = sum(controller.part[beat]), sum(controller.whole[beat])
        slack = Fraction(nearest(max(part, 0) * SHARE.one, whole), SHARE.one) if whole else Fraction(1)
        if not whole:
            self.events.add("a beat without an active warp")
        if part < 0:
            self.events.add("more is outstanding than at a stall")
        ended = (at - 1 + self.shift) // p["entry"]  # entries, each of which lacks its last cycle
        first, last = (n * p["entry"] - 1 - self.shift for n in (ended - p["entries"], ended))
        window = self._errors(max(first, 0), max(last, 0))
        long_term = Fraction(nearest(window, p["entries"] * p["entry"]), IPC.one)
        short = Fraction(self._errors(at + 1 - p["interval"], at + 1), p["interval"] * IPC.one)
        change = GAIN.number(p["proportional"]) * short + GAIN.number(p["integral"]) * long_term
        units = (slack if change < 0 else 1 - slack) * p["scale"] * change * WARPS.one
        moved = controller.allocation + Fraction(nearest(units.numerator, units.denominator), WARPS.one)
        controller.then = min(max(moved, Fraction(1)), Fraction(controller.most))
        if controller.then != controller.allocation:
            self.events.add(f"{name} {'rise' if controller.then > controller.allocation else 'fall'}")

    def _errors(self, first: int, last: int) -> int:
        """The sum of target - instructions over some cycles of the run, in units of the last place."""
        return (last - first) * self.target - (sum(self.issued[first:last]) << IPC.fraction)

    def _next(self, i: Any, o: Any) -> None:
        """The states that may follow, and why."""
        p, state = self.p, self.state
        alone = i.primary_ctas and not (i.secondary_ctas or i.writing or (i.fits and i.left))
        if not i.primary_ctas and not i.left:
            self._follows(State.FREE, End.GONE)
        elif i.begins or i.clear:
            self._follows(State.CLEARING, End.KERNEL)
        elif state == State.FREE:
            self._follows(State.CLEARING)
        elif state == State.CLEARING:
            self._follows(State.PROFILING if alone and o.shares else state)
            if alone and not o.shares:
                self.events.add("there is no pair")
        elif state == State.PROFILING:
            self._follows(state)
            self.possible[State.TARGETING] = frozenset()
        elif state == State.TARGETING:
            self._follows(State.RUNNING if self.since == TARGETED - 1 else state)
        elif state == State.ALONE:
            self._follows(State.CLEARING if self.alone == 0 else state)
        elif self.since + self.skipped == p["longest"]:
            self._follows(State.CLEARING, End.LENGTH)
        else:
            fell = self.fell == self.now - 1
            self._follows(State.ALONE if fell else state, End.FALLBACK)
            if self.since + self.skipped >= 8 * self.length:
                self.possible[State.CLEARING] = PHASES

    def _follows(self, state: State, *ends: End) -> None:
        self.possible = {state: frozenset(ends)}

    def finish(self) -> None:
        """Nothing is left to be said: each cycle has been checked."""


def protocol(m: Module, parameters: dict[str, int], ports: Mapping[str, Signal]) -> Value:
    """Pairs are loaded while no run has begun; no more warps are ready than active; counts fit together."""
    pairs, full = Signal(range(parameters["pairs"] + 1)), Signal()
    load, clear = ports["load_valid"], ports["clear"]
    m.d.comb += full.eq(pairs == parameters["pairs"])
    with m.If(clear):
        m.d.sync += pairs.eq(0)
    with m.Elif(load & ~full):
        m.d.sync += pairs.eq(pairs + 1)
    begun = (ports["state"] == State.TARGETING) | (ports["state"] == State.RUNNING)
    return (
        ~(load & (clear | begun | full))
        & (ports["ready"] <= ports["active"])
        & (ports["percent"] >= 1)
        & (ports["percent"] <= 100)
        & (ports["lanes"] <= MOST * ports["instructions"])
        & (ports["requests"] <= MOST * ports["memory_instructions"])
    )


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _event(name: str) -> Bin:
    return lambda p, i, o, c: name in o.events


_EVENTS = (
    *(
        f"{before} is followed by {after}"
        for before, all_after in TRANSITIONS["stage"].items()
        for after in all_after
    ),
    *(f"a run ends by {end.name}" for end in End),
    "there is no pair",
    "half of what the secondary had",
    "half of the secondary's CTAs",
    "the fewest of the secondary's CTAs",
    "the secondary gets CTAs",
    "the primary gets CTAs",
    "a stall",
    "more is outstanding than at a stall",
    "a beat without an active warp",
    "a profile was discarded",
    *(f"{of} {move}" for of in ("warps", "requests") for move in ("rise", "fall")),
)
BINS: dict[str, Bin] = {
    **{name: _event(name) for name in _EVENTS},
    "another kernel while the primary is alone": lambda p, i, o, c: o.state == State.ALONE and (i.begins or i.clear),
    "another kernel in a run": lambda p, i, o, c: o.state == State.RUNNING and i.begins,
    "other pairs in a run": lambda p, i, o, c: o.state == State.RUNNING and i.clear,
    "a context is the last that is waited for": lambda p, i, o, c: (
        o.state == State.CLEARING and i.writing and i.primary_ctas and not (i.secondary_ctas or (i.fits and i.left))
    ),
    "a CTA of the primary is the last that is waited for": lambda p, i, o, c: (
        o.state == State.CLEARING and i.fits and i.left and i.primary_ctas and not (i.secondary_ctas or i.writing)
    ),
    "a CTA of the secondary is the last that is waited for": lambda p, i, o, c: (
        o.state == State.CLEARING and i.secondary_ctas and i.primary_ctas and not ((i.fits and i.left) or i.writing)
    ),
}

UNREACHABLE: Mapping[str, Callable[[dict[str, int]], bool]] = {
    "a profile was discarded": lambda p: p["maximum"] > LONG,  # it takes too long
}
