"""Proofs about who has the SM, whatever the parts of the unit say: their outputs are free."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Signal, Value
from amaranth.lib import wiring

from lockstep.rtl.scavenger.scavenger_unit import ScavengerUnit
from lockstep.spec.scavenger.control import End, State
from lockstep.verif.formal import Proof
from lockstep.verif.scavenger.bench_scavenger_unit import CONFIGURATIONS


class Anything(wiring.Component):
    """The ports of a part, with outputs that may have any value."""

    def __init__(self, part: wiring.Component) -> None:
        super().__init__(part.signature)

    def elaborate(self, platform: object) -> Module:
        return Module()


class Unit(Elaboratable):
    """The unit, and what was in the cycle before."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.dut = dut = ScavengerUnit(**CONFIGURATIONS["odd"])
        for part in dut.parts.values():
            part._MustUse__used = True
        dut.parts = {name: Anything(part) for name, part in dut.parts.items()}
        m.submodules.dut = dut
        self.parts: dict[str, Any] = dut.parts
        self.began = Signal()
        m.d.sync += self.began.eq(1)
        return m

    def before(self, m: Module, value: Value) -> Signal:
        """A value of the cycle before; 0 in the first one."""
        was = Signal(len(value))
        m.d.sync += was.eq(value)
        return was


class Alone(Unit):
    """A profile counts nothing but the primary, and it has all, up to the cycle before both share."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, parts = self.dut, self.parts
        predictor = parts["performance_predictor"]
        settled = (dut.primary_ctas != 0) & (dut.secondary_ctas == 0) & ~dut.writing & ~(dut.fits & dut.left)
        begins = predictor.profile & ~self.before(m, predictor.profile)
        profiles = dut.state.matches(State.PROFILING, State.TARGETING)
        m.d.comb += [
            Assert(predictor.profile == profiles),
            Assert(~begins | self.before(m, settled & dut.shares)),
            Assert(~profiles | (dut.secondary_limit == 0) & (dut.secondary_warps == 0) & (dut.secondary_requests == 0)),
            Assert(~profiles | (dut.primary_warps == CONFIGURATIONS["odd"]["warps"])),
            Assert((dut.state == State.FREE) | (dut.state == State.RUNNING) | (dut.secondary_limit == 0)),
        ]  # fmt: skip
        for name in ("pc_histogram", "phase_detector"):
            part = parts[name]
            m.d.comb += [Assert(~(part.profile & part.run)), Assert(part.profile == profiles)]
        return m


class Absent(Unit):
    """Without a primary the SM is the secondary's in the next cycle, and with another kernel a profile begins anew."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        gone = (dut.primary_ctas == 0) & ~dut.left
        was_gone = self.before(m, gone)
        restarted = self.before(m, ~gone & (dut.begins | dut.clear))
        m.d.comb += [
            Assert(~was_gone | (dut.state == State.FREE)),
            Assert(~restarted | (dut.state == State.CLEARING)),
            Assert((dut.state != State.FREE) | was_gone | ~self.began),
            Assert(self.began | (dut.stage == State.FREE)),
        ]
        return m


class Runs(Unit):
    """A run follows a target, is the same for all parts, and its end is told once, with why."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, parts = self.dut, self.parts
        predictor, detector, fallback = (
            parts[name] for name in ("performance_predictor", "phase_detector", "fallback_monitor")
        )
        running, ran = dut.state == State.RUNNING, self.before(m, dut.state == State.RUNNING)
        found = self.before(m, (dut.state == State.TARGETING) & predictor.done)
        fell, ended = self.before(m, fallback.alone), self.before(m, detector.ends.valid)
        m.d.comb += [
            Assert(~running | ran | found),
            Assert(dut.ends.valid == (ran & ~running)),
            Assert(~(dut.state == State.ALONE) | ~ran | fell),
            Assert(~(dut.ends.valid & ended) | (dut.state == State.CLEARING) | (dut.ends.payload == End.GONE)),
            Assert((dut.ends.payload != End.FALLBACK) | ~dut.ends.valid | (fell & (dut.state == State.ALONE))),
            Assert((dut.ends.payload != End.GONE) | ~dut.ends.valid | (dut.state == State.FREE)),
            Assert(parts["cta_balancer"].run <= ~dut.clear),
            Assert(fallback.clear == ~dut.state.matches(State.RUNNING, State.ALONE)),
        ]
        for name, part in parts.items():
            if name.startswith("sliding_window"):
                m.d.comb += Assert(part.clear == ~(running & ~detector.ends.valid))
            elif name not in ("performance_predictor", "cta_balancer"):
                m.d.comb += Assert(part.run == (running & ~detector.ends.valid))
        return m


class First(Unit):
    """The primary has at least one warp and one request when a run begins, and never more than all."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        p = CONFIGURATIONS["odd"]
        for k, of in enumerate(("warps", "requests")):
            controller = self.parts[f"pid_controller_{k}"]
            m.d.comb += [
                Assume(controller.secondary < p[of]), Assert(controller.first >= 1), Assert(controller.first <= p[of]),
            ]  # fmt: skip
        m.d.comb += Assert(self.dut.stalled_with > 0)
        return m


class Reached(Unit):
    """Each state of a kernel that stays, in their order, and a time alone that is followed by a profile."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        profiled = Signal()
        with m.If(self.dut.state == State.ALONE):
            m.d.sync += profiled.eq(1)
        m.d.comb += [
            Assume((self.dut.primary_ctas != 0) & ~self.dut.begins & ~self.dut.clear),
            Cover(profiled & (self.dut.state == State.PROFILING)),
        ]
        return m


PROOFS = {
    "alone": Proof(
        Alone, "prove", 2, "a profile begins when the primary is alone and all of its CTAs are here, and leaves it all"
    ),
    "absent": Proof(Absent, "prove", 2, "an SM without a primary is the secondary's; another kernel ends everything"),
    "runs": Proof(Runs, "prove", 2, "a run follows a target, is one for all parts, and its end is told once, with why"),
    "first": Proof(First, "prove", 2, "a run begins with at least one warp and one request of the primary's"),
    "reached": Proof(Reached, "cover", 10, "a profile after a time alone"),
}
