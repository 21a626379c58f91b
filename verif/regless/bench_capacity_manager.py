"""Stimulus, checks and coverage of ``regless.capacity_manager``: no line is promised twice, nobody starves."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lockstep.spec.register_regions import ENTRIES

BLOCK = "regless.capacity_manager"
CONFIGURATIONS = {
    "small": dict(warps=3, registers=5, banks=2, lines=7, patience=15),
    "paper": dict(warps=16, registers=255, banks=8, lines=16, patience=15),
    "top of the stack": dict(warps=16, registers=255, banks=8, lines=16, patience=0),
    "gtx480": dict(warps=24, registers=63, banks=8, lines=32, patience=15),
    "128 registers": dict(warps=16, registers=255, banks=8, lines=4, patience=255),
    "one": dict(warps=1, registers=1, banks=1, lines=1, patience=1),
    "most warps": dict(warps=64, registers=256, banks=2, lines=256, patience=15),
    "odd": dict(warps=5, registers=7, banks=2, lines=11, patience=1),
}
MEASURED = {"gtx480": 3}
TRANSITIONS = {
    r"state_\d+": {
        "ABSENT": ("UNKNOWN",),
        "UNKNOWN": ("KNOWN",),
        "KNOWN": ("STACKED",),
        "STACKED": ("PRELOADING",),
        "PRELOADING": ("ACTIVE",),
        "ACTIVE": ("DRAINING",),
        "DRAINING": ("ABSENT", "UNKNOWN", "KNOWN"),
    }
}


@dataclass(frozen=True)
class Shape:
    """Probabilities per cycle, for each warp or bank that could."""

    begin: float = 0.2
    region: float = 0.6
    send: float = 0.6  # some entries
    answer: float = 0.5
    issue: float = 0.2  # the last instruction
    reserve: float = 0.3
    deliver: float = 0.4
    write: float = 0.3
    bar: float = 0.02
    end: float = 0.1
    need: float = 1.0  # of what a region may need, at most
    entries: tuple[int, ...] = (0, 2, 8, 256)  # of a region, at most


_SHAPES = {
    "mixed": Shape(),
    "tight": Shape(issue=0.05, end=0.02),
    "light": Shape(need=0.2, answer=0.9, issue=0.8, deliver=0.9, write=0.9),
    "barred": Shape(bar=0.3, end=0.01),
    "long writes": Shape(write=0.02, reserve=0.8),
    "many": Shape(end=0.0, region=1.0, begin=1.0, issue=0.7, answer=1.0, deliver=1.0, write=1.0),
    "in turn": Shape(begin=1.0, region=1.0, send=1.0, answer=1.0, issue=1.0, deliver=1.0, write=1.0, bar=0.0, end=0.0),
    "small regions": Shape(
        begin=1.0, region=1.0, need=0.2, send=1.0, answer=1.0, issue=1.0, deliver=1.0, write=1.0, bar=0.0, end=0.0
    ),
    "sparse": Shape(begin=0.01, region=0.02, end=0.5),
    # All warps wait for regions, most of which need little or nothing.
    "late regions": Shape(
        begin=1.0, region=0.02, need=0.08, send=1.0, answer=1.0, issue=1.0, deliver=1.0, write=1.0, end=0.0
    ),
    "late answers": Shape(
        begin=1.0, region=1.0, need=0.1, send=1.0, answer=0.15, issue=1.0, reserve=0.1, deliver=1.0, write=1.0,
        end=0.02, entries=(256,),
    ),
    "all lines reserved": Shape(
        begin=1.0, region=1.0, send=1.0, answer=1.0, issue=0.3, reserve=1.0, deliver=1.0, write=0.5, entries=(2,)
    ),
}
SHAPES = tuple(_SHAPES)


@dataclass
class Warp:
    """What the ports have told of a warp."""

    phase: str = "absent"
    need: list[int] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)  # also of the region before
    due: int = 0  # entries that were sent and not answered
    unsent: int = -1  # entries; -1: all have been sent
    end: bool = False
    delivered: bool = False
    passed: int = 0  # regions that started while it could

    @property
    def ready(self) -> bool:
        """Whether it may come to the stack, or is there."""
        return self.phase == "ready" and not any(self.pending)


class Environment:
    """Warps that begin, run regions and end; what they hold is counted by the ports alone."""

    CYCLES = 2000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.banks = range(parameters["banks"])
        self.warps = [Warp() for _ in range(parameters["warps"])]
        self.held = [0 for _ in self.banks]  # lines of regions
        self.starts = 0
        self.quiet = 0  # cycles in which nothing ran and somebody could start
        self.delivered = False  # in the last cycle, somebody was

    def pick(self, phase: str, chance: float) -> int:
        """One of the warps in a phase, or -1."""
        found = [w for w, warp in enumerate(self.warps) if warp.phase == phase]
        return self.rng.choice(found) if found and self.rng.random() < chance else -1

    @staticmethod
    def say(port: Any, warp: int) -> bool:
        port.valid = warp >= 0
        port.payload.warp = max(warp, 0)
        return warp >= 0

    def drive(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.shape
        self.say(i.begin, self.pick("absent", shape.begin))
        wanted = [w for w in range(len(self.warps)) if o.wanted >> w & 1]
        if self.say(i.region, rng.choice(wanted) if wanted and rng.random() < shape.region else -1):
            most = min(7, self.parameters["lines"])
            for b in self.banks:
                i.region.payload.usage[b] = round(rng.random() * most * shape.need)
        i.barred = sum((rng.random() < shape.bar) << w for w in range(len(self.warps)))
        self.say(i.last, self.pick("active", shape.issue))
        i.last.payload.end = rng.random() < shape.end
        self.send(i.sent)
        due = [w for w, warp in enumerate(self.warps) if warp.phase == "preloading"]
        left = {w: self.warps[w].due for w in due}
        for b in self.banks:
            chosen = rng.choice(due) if due and rng.random() < shape.answer else -1
            chosen = chosen if chosen >= 0 and left[chosen] > 0 else -1
            if self.say(i.answered[b], chosen):
                left[chosen] -= 1
            runs = [
                w for w, warp in enumerate(self.warps)
                if warp.phase in ("active", "draining") and not warp.delivered and warp.pending[b] < warp.need[b]
                and not (warp.phase == "active" and i.last.valid and i.last.payload.warp == w)
            ]  # fmt: skip
            self.say(i.reserved[b], rng.choice(runs) if runs and rng.random() < shape.reserve else -1)
            owes = [w for w, warp in enumerate(self.warps) if warp.pending and warp.pending[b] > 0]
            self.say(i.written[b], rng.choice(owes) if owes and rng.random() < shape.write else -1)
        undelivered = [w for w, warp in enumerate(self.warps) if warp.phase == "draining" and not warp.delivered]
        self.say(i.delivered, rng.choice(undelivered) if undelivered and rng.random() < shape.deliver else -1)

    def send(self, port: Any) -> None:
        """Some entries of a region that has started, the last of them now or later."""
        rng = self.rng
        waits = [w for w, warp in enumerate(self.warps) if warp.phase == "preloading" and warp.unsent >= 0]
        chosen = rng.choice(waits) if waits and rng.random() < self.shape.send else -1
        port.payload.entries = port.payload.last = 0
        if self.say(port, chosen):
            warp = self.warps[chosen]
            port.payload.entries = rng.randint(0, min(ENTRIES, warp.unsent))
            warp.unsent -= port.payload.entries
            port.payload.last = warp.unsent == 0 and rng.random() < 0.5
            if port.payload.last:
                warp.unsent = -1

    def observe(self, i: Any, o: Any, c: Any) -> None:
        o.delivered_before, self.delivered = self.delivered, bool(i.delivered.valid)
        if o.start.valid:
            self.started(int(o.start.payload.warp))
        for w, warp in enumerate(self.warps):
            if o.active >> w & 1 and warp.phase == "preloading":
                assert warp.unsent < 0 and warp.due == 0, "all entries have been sent and answered"
                warp.phase = "active"
            assert (warp.phase == "active") == bool(o.active >> w & 1), (
                "active from then on, until the last instruction"
            )
            delivered = warp.phase == "draining" and warp.delivered
            follows = warp.phase == "wanted" or (delivered and not warp.end)
            assert follows == bool(o.wanted >> w & 1), "its next region may be announced"
            assert (delivered and warp.end and not any(warp.pending)) == bool(o.ended >> w & 1), "nothing of it is due"
            if o.ended >> w & 1:
                self.warps[w] = Warp("absent")
        for b in self.banks:
            if i.answered[b].valid:
                self.warps[i.answered[b].payload.warp].due -= 1
            if i.reserved[b].valid:
                self.warps[i.reserved[b].payload.warp].pending[b] += 1
            if i.written[b].valid:
                warp = self.warps[i.written[b].payload.warp]
                warp.pending[b] -= 1
                if warp.delivered:
                    self.held[b] -= 1
        if i.sent.valid:
            self.warps[i.sent.payload.warp].due += i.sent.payload.entries
        if i.delivered.valid:
            warp = self.warps[i.delivered.payload.warp]
            warp.delivered = True
            for b in self.banks:
                self.held[b] -= warp.need[b] - warp.pending[b]
        if i.last.valid:
            warp = self.warps[i.last.payload.warp]
            warp.phase, warp.end = "draining", bool(i.last.payload.end)
        if i.begin.valid:
            self.warps[i.begin.payload.warp].phase = "wanted"
        if i.region.valid:
            payload, banks = i.region.payload, len(self.banks)
            w = int(payload.warp)
            need = [int(payload.usage[(b - w) % banks]) for b in self.banks]
            most = min(self.parameters["registers"], self.rng.choice(self.shape.entries))
            pending = self.warps[w].pending or [0] * banks
            self.warps[w] = Warp("ready", need, pending, unsent=self.rng.randint(0, most), delivered=True)
        self.alive(i)

    def started(self, w: int) -> None:
        warp = self.warps[w]
        assert warp.ready, "its region is known, has not started, and follows one that has written its results"
        warp.phase, warp.delivered = "preloading", False
        self.starts += 1
        for b in self.banks:
            self.held[b] += warp.need[b]
            assert self.held[b] <= self.parameters["lines"], "no line is promised twice"
        for other in self.warps:
            if other.ready:
                other.passed += 1
                most = (self.parameters["patience"] + 4) * len(self.warps)
                assert other.passed <= most or not self.parameters["patience"] or self.shape.bar > 0.1, "nobody starves"

    def alive(self, i: Any) -> None:
        """If somebody could start and nothing runs, a region starts soon."""
        runs = any(
            warp.phase in ("preloading", "active") or (warp.phase == "draining" and not warp.delivered)
            or any(warp.pending) for warp in self.warps
        )  # fmt: skip
        waits = any(warp.ready and not i.barred >> w & 1 for w, warp in enumerate(self.warps))
        self.quiet = 0 if runs or not waits else self.quiet + 1
        assert self.quiet <= 3 + (50 if self.shape.bar > 0.1 else 5), "somebody starts"

    def finish(self) -> None:
        assert self.starts > 0


Bin = Callable[[dict[str, int], Any, Any, Any], bool]

BINS: dict[str, Bin] = {
    "a region starts": lambda p, i, o, c: o.start.valid,
    "a warp ends": lambda p, i, o, c: o.ended != 0,
    "the last entries": lambda p, i, o, c: i.sent.valid and i.sent.payload.last and i.sent.payload.entries != 0,
    "all entries have been sent before": lambda p, i, o, c: (
        i.sent.valid and i.sent.payload.last and i.sent.payload.entries == 0
    ),
    "a region that needs nothing": lambda p, i, o, c: (
        i.region.valid and not any(i.region.payload.usage[b] for b in range(p["banks"]))
    ),
    "all warps wait for their regions": lambda p, i, o, c: o.wanted == (1 << p["warps"]) - 1,
    "several are active": lambda p, i, o, c: o.active & (o.active - 1) != 0,
    "two answers for one warp": lambda p, i, o, c: (
        p["banks"] > 1 and i.answered[0].valid and i.answered[1].valid
        and i.answered[0].payload.warp == i.answered[1].payload.warp
    ),
    "written as it is delivered": lambda p, i, o, c: i.delivered.valid and any(
        i.written[b].valid and i.written[b].payload.warp == i.delivered.payload.warp for b in range(p["banks"])
    ),
    "reserved as it is delivered": lambda p, i, o, c: i.delivered.valid and any(
        i.reserved[b].valid and i.reserved[b].payload.warp == i.delivered.payload.warp for b in range(p["banks"])
    ),
    "announced as a result is written": lambda p, i, o, c: i.region.valid and any(
        i.written[b].valid and i.written[b].payload.warp == i.region.payload.warp for b in range(p["banks"])
    ),
    "lines are taken and given back together": lambda p, i, o, c: o.start.valid and o.delivered_before,
    "reserved and written together": lambda p, i, o, c: any(
        i.written[b].valid and i.reserved[b].valid and i.written[b].payload.warp == i.reserved[b].payload.warp
        for b in range(p["banks"])
    ),
    "a warp is barred": lambda p, i, o, c: i.barred != 0,
}  # fmt: skip

IN_KERNELS = (
    "a region that needs nothing", "all entries have been sent before", "several are active",
    "two answers for one warp", "written as it is delivered", "announced as a result is written",
    "reserved and written together", "a warp is barred",
)  # fmt: skip

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    "several are active": lambda p: p["warps"] == 1,
    "lines are taken and given back together": lambda p: p["warps"] == 1,
    "two answers for one warp": lambda p: p["banks"] == 1,
    "reserved and written together": lambda p: p["lines"] == 1,  # no other line is there until the next cycle
}
