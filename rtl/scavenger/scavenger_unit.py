"""Scavenger in one SM, joined: it profiles the primary kernel alone, and then lets the secondary share the SM.

Kloosterman's thesis, chapter 5, figures 5.5 and 5.6.
"""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from lockstep.rtl import registry
from lockstep.rtl.scavenger._slack import Slack
from lockstep.rtl.signatures import event
from lockstep.spec.parameters import MAX_CTAS, MAX_WARPS
from lockstep.spec.scavenger import control, prediction
from lockstep.spec.scavenger.control import OUTSTANDING_BITS, SLACK_LATENCY, End, State
from lockstep.spec.scavenger.fixed import ERROR, IPC
from lockstep.spec.scavenger.parameters import ERRORS, WINDOWS, parts

WINDOW_CYCLES = prediction.ENTRIES * prediction.ENTRY
OUTSTANDING = 2 * ((1 << OUTSTANDING_BITS) - 1)  # of both kernels, at most


class ScavengerUnit(wiring.Component):
    """Joins the blocks of Scavenger, and decides who has the SM.

    ============= ================================= ==================================== ==============================
    ``state``     who may have warps and CTAs       what happens                         what follows
    ============= ================================= ==================================== ==============================
    ``FREE``      both, without a limit             there is no primary                  ``CLEARING``, if there is one
    ``CLEARING``  the primary                       the secondary's CTAs leave           ``PROFILING``, once it is alone
    ``PROFILING`` the primary                       it is profiled                       ``TARGETING``, once stable
    ``TARGETING`` the primary                       its target and a pair are found      ``RUNNING``, 51 cycles later
    ``RUNNING``   both, as controllers and balancer its target is followed               ``CLEARING`` or ``ALONE``
    ``ALONE``     the primary                       its share was not enough             ``CLEARING``, after ``time``
    ============= ================================= ==================================== ==============================

    **Who is there.** The primary is, if it has a CTA here or ``left`` says that one may come. Without it the state is
    ``FREE`` in the next cycle; else, with ``begins`` or ``clear``, it is ``CLEARING``: whatever it was before. So a
    profile that its grid's end cuts short sets no target.

    **When counting starts.** A profile begins after the cycle of ``CLEARING`` in which the primary has a CTA, the
    secondary has none, no context is ``writing``, and no further CTA of the primary ``fits`` and is ``left``. Without a
    pair in the table nothing is shared: the state stays ``CLEARING``.

    **Run.** Controllers, detector, fallback, the histogram of the run and all sliding windows work in ``RUNNING``; the
    windows of the balancer begin with ``TARGETING``, so that the first pair is known when the run begins. A run begins
    with all warps and requests for the primary but for half of those that the secondary had at the end of the run
    before; ``clear`` forgets these. It ends with what the detector says, before a fallback in the same cycle; the cycle
    in which that is said is not one of the run any more.

    **Slack** of warps is ``ready`` / ``active``, each summed over a beat. Of requests it is (R - outstanding) / R, each
    summed, and not below 0, where R is what both had outstanding in the last cycle of a run that was ``stalled`` with
    anything outstanding; ``requests`` after reset and ``clear``. The division takes 11 cycles: the sums of a beat have
    the last 11 cycles of the one before in place of its own. The long-term error is the mean of ``target`` -
    ``instructions`` over the last window, rounded to nearest, ties away from zero.

    Latency: one cycle from inputs to ``state`` and ``ends``. A run ends one cycle after ``ends`` of the detector or
    ``alone`` of the fallback. All limits are as of ``state``. For the others see the parts.

    Parameters are those of the parts (:func:`lockstep.spec.scavenger.parameters.parts`), but for

    requests : int
        Outstanding requests to be divided.
    entries, entry : int
        Of sliding windows; their product is a power of two, at most 8192.
    window : int
        Of the histogram and of the balancer.
    interval : int
        Of controllers and of the detector.

    Members
    -------
    clear, load : In
        Of ``cta_balancer``; ``load`` is not given in ``TARGETING`` and ``RUNNING``.
    primary_cta_warps, secondary_cta_warps : In
        Warps of a CTA.
    percent : In
        Of ``performance_predictor``.
    begins : In
        The first CTA of another primary kernel comes: a profile begins at once.
    left : In
        A CTA of the primary's grid is on no SM yet, or was preempted here.
    fits : In
        There is room here for one more CTA of the primary.
    writing : In
        The context of a preempted CTA has not been accepted yet.
    primary_ctas, secondary_ctas : In
        CTAs that each kernel has here, those that are being preempted among them.
    instructions, lanes, memory_instructions, requests : In
        Of ``phase_detector``, for the primary; the first also what is ``issued`` for the other parts.
    sample : In, event
        Of ``pc_histogram``.
    active, ready : In
        Warps of the primary that may issue in this cycle, and those of them with an instruction that is ready.
    stalled : In
        The load/store unit is.
    primary_outstanding, secondary_outstanding : In
        Requests that each kernel has outstanding.
    issued, started, primary_resident, secondary_resident : In, one bit per warp slot
        Of ``cta_balancer``.
    state : Out
        As above.
    shares : Out
        Of ``cta_balancer``.
    primary_limit, secondary_limit : Out
        CTAs that each kernel may have here.
    primary_warps, secondary_warps, primary_requests, secondary_requests : Out
        Active warps, and outstanding requests, that each kernel may have.
    predicted, target : Out, U3.16
        Of ``performance_predictor``.
    ends : Out, event
        The cycle before was the last one of a run, and why it ended. The payload stays until the next one.

    Raises
    ------
    ValueError
        for an argument out of range.
    """

    LARGEST: ClassVar = {
        "warps": MAX_WARPS, "ctas": MAX_CTAS, "pairs": control.MAX_PAIRS, "requests": control.MAX_REQUESTS,
        "minimum": prediction.MAX_PROFILE // 16 * 8, "maximum": prediction.MAX_PROFILE,
        "tolerance": prediction.MAX_TOLERANCE, "comparisons": prediction.MAX_COMPARISONS,
        "buckets": prediction.BUCKETS, "large_bits": prediction.MAX_LARGE_BITS,
        "small_bits": prediction.MAX_SMALL_BITS, "entries": prediction.ENTRIES, "entry": prediction.ENTRY,
        "window": prediction.MAX_WINDOW, "primary_slack": MAX_WARPS, "secondary_slack": MAX_WARPS, "carry": 1,
        "interval": control.MAX_INTERVAL, "proportional": control.PROPORTIONAL, "integral": control.INTEGRAL,
        "scale": control.MAX_SCALE, "relative": 0, "reciprocal": 1, "above": 16, "longest": control.LONGEST_RUN,
        "lanes_apart": 32, "requests_apart": 32, "pcs_apart": (1 << prediction.RANGE_BITS) - 1,
        "limit": control.MAX_LIMIT, "duration": control.LONGEST_RUN, "time": control.MAX_CYCLES,
    }  # fmt: skip

    def __init__(self, **parameters: int) -> None:
        """Takes exactly the arguments in ``LARGEST``; the parts check them."""
        if parameters.keys() != self.LARGEST.keys():
            raise ValueError(f"scavenger_unit takes {', '.join(self.LARGEST)}, all of them")
        p = self._parameters = parameters
        cycles = p["entries"] * p["entry"]
        if cycles & (cycles - 1) or cycles > WINDOW_CYCLES:
            raise ValueError(f"entries x entry must be a power of two, at most {WINDOW_CYCLES}, not {cycles}")
        self.parts: dict[str, Any] = {}
        for block, arguments in parts(**p).items():
            name, _, number = block.partition(".")[2].rstrip("]").partition("[")
            made = registry.component(block.partition("[")[0])(**arguments)
            self.parts[f"{name}_{number}" if number else name] = made
        balancer, detector, histogram, predictor = (
            self.parts[name].signature.members
            for name in ("cta_balancer", "phase_detector", "pc_histogram", "performance_predictor")
        )
        warps, ctas, requests = (range(p[name] + 1) for name in ("warps", "ctas", "requests"))
        super().__init__(
            {
                "clear": In(1),
                "load": balancer["load"],
                "primary_cta_warps": balancer["primary_warps"],
                "secondary_cta_warps": balancer["secondary_warps"],
                "percent": predictor["percent"],
                "begins": In(1),
                "left": In(1),
                "fits": In(1),
                "writing": In(1),
                "primary_ctas": In(ctas),
                "secondary_ctas": In(ctas),
                **{name: detector[name] for name in ("instructions", "lanes", "memory_instructions", "requests")},
                "sample": histogram["sample"],
                "active": In(warps),
                "ready": In(warps),
                "stalled": In(1),
                "primary_outstanding": In(OUTSTANDING_BITS),
                "secondary_outstanding": In(OUTSTANDING_BITS),
                **{name: balancer[name] for name in ("issued", "started", "primary_resident", "secondary_resident")},
                "state": Out(State),
                "shares": Out(1),
                "primary_limit": Out(ctas),
                "secondary_limit": Out(ctas),
                "primary_warps": Out(warps),
                "secondary_warps": Out(warps),
                "primary_requests": Out(requests),
                "secondary_requests": Out(requests),
                "predicted": Out(IPC.bits),
                "target": Out(IPC.bits),
                "ends": Out(event(End)),
            }
        )
        # The state; proofs speak of it.
        self.stage = Signal(State)
        self.after = Signal(State)  # the stage of the next cycle
        self.runs = Signal()  # this cycle is one of a run
        self.beat = Signal(range(p["interval"]))  # the cycle of it
        self.first = [Signal(range(p[of] + 1), init=p[of], name=f"first_{of}") for of in ("warps", "requests")]
        self.stalled_with = Signal(range(OUTSTANDING + 1), init=p["requests"])  # outstanding
        self.long_term = Signal(ERROR.bits)
        self.slacks = [
            Slack(most=most, cycles=p["interval"], beyond=most == OUTSTANDING) for most in (p["warps"], OUTSTANDING)
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, each in self.parts.items():
            m.submodules[name] = each
        for name, each in zip(("warp_slack", "request_slack"), self.slacks, strict=True):
            m.submodules[name] = each
        self._decide(m)
        self._profile(m)
        self._measure(m)
        self._run(m)
        self._limit(m)
        return m

    def _in(self, *stages: State) -> Value:
        return Cat(self.stage == stage for stage in stages).any()

    def _decide(self, m: Module) -> None:
        """Who has the SM in the next cycle, and why both share it no longer."""
        predictor, detector, fallback = (
            self.parts[name] for name in ("performance_predictor", "phase_detector", "fallback_monitor")
        )
        stage, after = self.stage, self.after
        gone, restart, settled, ended = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            gone.eq((self.primary_ctas == 0) & ~self.left),
            restart.eq(self.begins | self.clear),
            settled.eq(
                (self.primary_ctas != 0) & (self.secondary_ctas == 0) & ~self.writing & ~(self.fits & self.left)
                & self.shares
            ),
            after.eq(stage),
            self.runs.eq((stage == State.RUNNING) & ~detector.ends.valid),
            ended.eq((stage == State.RUNNING) & (after != State.RUNNING)),
            self.state.eq(stage),
        ]  # fmt: skip
        with m.If(gone):
            m.d.comb += after.eq(State.FREE)
        with m.Elif(restart):
            m.d.comb += after.eq(State.CLEARING)
        with m.Else():
            for before, ends, then in (
                (State.FREE, 1, State.CLEARING),
                (State.CLEARING, settled, State.PROFILING),
                (State.PROFILING, predictor.stable, State.TARGETING),
                (State.TARGETING, predictor.done, State.RUNNING),
                (State.RUNNING, fallback.alone, State.ALONE),
                (State.RUNNING, detector.ends.valid, State.CLEARING),
                (State.ALONE, fallback.profile, State.CLEARING),
            ):
                with m.If((stage == before) & ends):
                    m.d.comb += after.eq(then)
        m.d.sync += [stage.eq(after), self.ends.valid.eq(ended)]
        with m.If(ended):
            reason = Mux(detector.ends.valid, detector.ends.payload, End.FALLBACK)
            m.d.sync += self.ends.payload.eq(Mux(gone, End.GONE, Mux(restart, End.KERNEL, reason)))

    def _profile(self, m: Module) -> None:
        """What is counted of a profile and of a run."""
        predictor, histogram, detector = (
            self.parts[name] for name in ("performance_predictor", "pc_histogram", "phase_detector")
        )
        for part in (predictor, histogram, detector):
            m.d.comb += part.profile.eq(self._in(State.PROFILING, State.TARGETING))
        for part in (histogram, detector):
            m.d.comb += [
                *(getattr(part, name).eq(getattr(predictor, name)) for name in ("part", "restart", "stable")),
                part.joining.valid.eq(predictor.joining.valid),
                part.joining.payload.eq(predictor.joining.payload),
                part.run.eq(self.runs),
            ]
        m.d.comb += [
            predictor.issued.eq(self.instructions),
            predictor.percent.eq(self.percent),
            self.predicted.eq(predictor.predicted),
            self.target.eq(predictor.target),
            histogram.sample.valid.eq(self.sample.valid),
            histogram.sample.payload.eq(self.sample.payload),
            detector.cycles.eq(predictor.cycles),
            detector.distance.valid.eq(histogram.distance.valid),
            *(
                getattr(detector.distance.payload, name).eq(getattr(histogram.distance.payload, name))
                for name in ("run", "difference", "total")
            ),
        ]
        for k, name in enumerate(WINDOWS):
            window = self.parts[f"sliding_window_{k}"]
            m.d.comb += window.clear.eq(~self.runs)
            if k == ERRORS:
                m.d.comb += window.value.eq(self.target - Cat(Const(0, IPC.fraction), self.instructions))
            else:
                value = getattr(self, name)
                m.d.comb += [
                    getattr(detector, name).eq(value), window.value.eq(value),
                    getattr(detector, f"window_{name}").eq(window.total),
                ]  # fmt: skip

    def _measure(self, m: Module) -> None:
        """What the controllers see of a beat: slack, and the error of a window."""
        p, runs = self._parameters, self.runs
        outstanding, ends = Signal.like(self.stalled_with), Signal()
        m.d.comb += [
            outstanding.eq(self.primary_outstanding + self.secondary_outstanding),
            ends.eq(self.beat == p["interval"] - 1),
        ]
        m.d.sync += self.beat.eq(Mux(~runs | ends, 0, self.beat + 1))
        with m.If(self.clear):
            m.d.sync += self.stalled_with.eq(p["requests"])
        with m.Elif(self._in(State.RUNNING) & self.stalled & (outstanding != 0)):
            m.d.sync += self.stalled_with.eq(outstanding)
        warps, requests = self.slacks
        m.d.comb += [
            warps.used.eq(self.active - self.ready),
            warps.whole.eq(self.active),
            requests.used.eq(outstanding),
            requests.whole.eq(self.stalled_with),
        ]
        for slack in self.slacks:
            m.d.comb += [slack.run.eq(runs), slack.last.eq(runs & (self.beat == p["interval"] - 1 - SLACK_LATENCY))]
        total = self.parts[f"sliding_window_{ERRORS}"].total.as_signed()
        bits = exact_log2(p["entries"] * p["entry"])
        m.d.sync += self.long_term.eq((total + (1 << bits - 1) - (total < 0)) >> bits)

    def _run(self, m: Module) -> None:
        """Controllers, balancer and fallback."""
        p, runs = self._parameters, self.runs
        balancer, fallback = self.parts["cta_balancer"], self.parts["fallback_monitor"]
        for k, (of, slack, first) in enumerate(zip(("warps", "requests"), self.slacks, self.first, strict=True)):
            controller = self.parts[f"pid_controller_{k}"]
            m.d.comb += [
                controller.run.eq(runs), controller.first.eq(first), controller.issued.eq(self.instructions),
                controller.target.eq(self.target), controller.long_term.eq(self.long_term),
                controller.slack.eq(slack.share),
            ]  # fmt: skip
            with m.If(self.clear):
                m.d.sync += first.eq(p[of])
            with m.Elif(self._in(State.RUNNING)):
                m.d.sync += first.eq(p[of] - (controller.secondary >> 1))
        m.d.comb += [
            balancer.clear.eq(self.clear), balancer.run.eq((self._in(State.TARGETING) | runs) & ~self.clear),
            balancer.load.valid.eq(self.load.valid), balancer.load.payload.eq(self.load.payload),
            balancer.primary_warps.eq(self.primary_cta_warps), balancer.secondary_warps.eq(self.secondary_cta_warps),
            *(
                getattr(balancer, name).eq(getattr(self, name))
                for name in ("issued", "started", "primary_resident", "secondary_resident")
            ),
            self.shares.eq(balancer.shares),
            fallback.run.eq(runs), fallback.clear.eq(~self._in(State.RUNNING, State.ALONE)),
            fallback.issued.eq(self.instructions), fallback.target.eq(self.target),
        ]  # fmt: skip

    def _limit(self, m: Module) -> None:
        """What each kernel may have: all, nothing, or its share in a run."""
        p, balancer = self._parameters, self.parts["cta_balancer"]
        both, free = self._in(State.RUNNING), self._in(State.FREE)
        shares = {
            ("limit", "ctas"): balancer,
            **{(of, of): self.parts[f"pid_controller_{k}"] for k, of in enumerate(("warps", "requests"))},
        }
        for (name, of), part in shares.items():
            m.d.comb += [
                getattr(self, f"primary_{name}").eq(Mux(both, part.primary, p[of])),
                getattr(self, f"secondary_{name}").eq(Mux(both, part.secondary, Mux(free, p[of], 0))),
            ]
