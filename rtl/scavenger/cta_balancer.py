"""Divides an SM's CTAs between two kernels by the warps that did not issue: one beside the CTA dispatcher's SM.

Kloosterman's thesis, section 5.5.2 and figure 5.9, table 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl import ranges
from lockstep.rtl.bits import popcount
from lockstep.rtl.signatures import event
from lockstep.spec.parameters import MAX_CTAS, MAX_WARPS
from lockstep.spec.scavenger import control

PART = 8  # warp slots that are counted in one cycle, beside other such parts


def total(counts: Sequence[Value]) -> Value:
    """Their sum, by a tree of adders."""
    half = len(counts) // 2
    return total(counts[:half]) + total(counts[half:]) if half else counts[0]


def pair_layout(ctas: int) -> data.StructLayout:
    """How many CTAs each of two kernels has: at least one, of all that an SM can hold."""
    return data.StructLayout({"primary": bits_for(ctas - 1), "secondary": bits_for(ctas - 1)})


class CtaBalancer(wiring.Component):
    """Chooses how many CTAs each kernel has, after each window in which both shared the SM.

    **Pairs.** A table has the pairs that may be chosen, in the order of their primary's CTAs: each later one has more
    of the primary and fewer of the secondary, at least one of both, and no room for one more. It is loaded at launch.
    What is chosen is always one of them.

    **Runs and windows.** A run begins with the first cycle with ``run`` and ends with the next one without it; window k
    has its cycles from k x ``window`` on. With the run's first cycle the pair is chosen whose secondary has half the
    CTAs that it had before, or else the next fewer; or, as the first time, the one with the fewest.

    **Slack** of a kernel, in a window: its resident warps that did not issue and did not start in it. After each window

    1. if the primary's is less than ``primary_slack``, the primary gets the next pair with more CTAs;
    2. else if the secondary's is less than ``secondary_slack`` and the primary's more than ``primary_slack``, what is
       more than that is given to the secondary;
    3. else if the secondary's is more than ``secondary_slack``, what is more than that goes back to the primary.

    What is given is a number of warps, at most a quarter of the difference between both slacks. Of the pairs whose
    receiver gains no more warps than these, the one with the most is chosen. With ``carry`` what is left over counts in
    the next window if the same rule applies there; it never exceeds ``warps``.

    Latency: ``pairs`` + 6 cycles, from the last cycle of a window or the first one of a run to the outputs. After reset
    and ``clear`` the table is empty and the outputs are 0.

    Parameters
    ----------
    warps : int
        Warp contexts of the SM, 2 to 64.
    ctas : int
        CTAs that it can hold, 2 to 32.
    pairs : int
        Places of the table, 1 to 31: so many pairs can 32 CTAs make.
    window : int
        Cycles, at least ``pairs`` + 7, at most 65535.
    primary_slack, secondary_slack : int
        Thresholds in warps, 0 to 64.
    carry : int
        0: what is less than the next pair needs is lost with its window.

    Members
    -------
    clear : In
        Other kernels: the table is empty. Not during a run.
    load : In, event
        The next ``pair`` of the table. Not during a run, nor with ``clear``, nor when it is full.
    primary_warps, secondary_warps : In
        Warps of a CTA, the same during a run.
    run : In
        Both kernels share the SM.
    issued, started : In, one bit per warp slot
        The warp there issues in this cycle, or starts.
    primary_resident, secondary_resident : In, one bit per warp slot
        There is a warp of this kernel. Read in the last cycle of a window.
    primary, secondary : Out
        CTAs that each kernel is to have.
    shares : Out
        There is a pair; without one the kernels cannot share the SM.

    Raises
    ------
    ValueError
        for an argument out of range.
    """

    LARGEST: ClassVar = {
        "warps": MAX_WARPS, "ctas": MAX_CTAS, "pairs": control.MAX_PAIRS, "window": control.MAX_WINDOW,
        "primary_slack": MAX_WARPS, "secondary_slack": MAX_WARPS, "carry": 1,
    }  # fmt: skip
    LEAST: ClassVar = {"warps": 2, "ctas": 2, "pairs": 1}

    def __init__(
        self, *, warps: int = MAX_WARPS, ctas: int = MAX_CTAS, pairs: int = control.MAX_PAIRS,
        window: int = control.WINDOW, primary_slack: int = control.PRIMARY_SLACK,
        secondary_slack: int = control.SECONDARY_SLACK, carry: int = 1,
    ) -> None:  # fmt: skip
        given = dict(
            warps=warps, ctas=ctas, pairs=pairs, window=window, primary_slack=primary_slack,
            secondary_slack=secondary_slack, carry=carry,
        )  # fmt: skip
        for what, value in given.items():
            least = pairs + 7 if what == "window" else self.LEAST.get(what, 0)
            ranges.check(what, value, least, self.LARGEST[what])
        self._warps, self._pairs, self._window, self._carry = warps, pairs, window, carry
        self._primary_slack, self._secondary_slack = primary_slack, secondary_slack
        pair = pair_layout(ctas)
        super().__init__(
            {
                "clear": In(1),
                "load": In(event(pair)),
                "primary_warps": In(range(warps)),
                "secondary_warps": In(range(warps)),
                "run": In(1),
                "issued": In(warps),
                "started": In(warps),
                "primary_resident": In(warps),
                "secondary_resident": In(warps),
                "primary": Out(pair.members["primary"]),
                "secondary": Out(pair.members["secondary"]),
                "shares": Out(1),
            }
        )
        # The state; proofs speak of it. Quarters of warps, where it has to do with what is given.
        self.table = Memory(shape=pair, depth=pairs, init=[])
        self.read = self.table.read_port()  # shows the pair that the step before has asked for
        self.count = Signal(range(pairs + 1))  # of the pairs
        self.ran = Signal()  # a cycle ago
        self.cycle = Signal(range(window))
        self.busy = Signal(warps)  # warps that issued or started in this window
        self.counting = Signal()  # the warps of the window that has ended
        self.primary_parts = [Signal(range(PART + 1), name=f"primary_part_{k}") for k in range(-(-warps // PART))]
        self.secondary_parts = [Signal(range(PART + 1), name=f"secondary_part_{k}") for k in range(-(-warps // PART))]
        self.working = Signal()
        self.step = Signal(range(pairs + 4))
        self.primary_idle = Signal(range(warps + 1))  # slack
        self.secondary_idle = Signal(range(warps + 1))
        # The rule that applies: that of a run's first cycle, then those that are numbered above.
        self.begins = Signal()
        self.starves = Signal()
        self.gives = Signal()
        self.returns = Signal()
        self.excess = Signal(range(warps + 1))  # over the threshold, in warps
        self.difference = Signal(range(warps + 1))  # of both kernels' slack
        self.again = Signal()  # the rule is that of the window before
        self.carried = Signal(range(4 * warps + 1))
        self.budget = Signal(range(5 * warps + 1))
        # A pair of the table, and the CTAs that its receiver gains; a step later that pair, and the warps.
        self.entry = Signal(pair, reset_less=True)
        self.present = Signal()
        self.gained = Signal(pair.members["primary"], reset_less=True)
        self.gains_some = Signal(reset_less=True)
        self.candidate = Signal(pair, reset_less=True)
        self.is_pair = Signal()
        self.gain = Signal(bits_for((ctas - 1) * (warps - 1)), reset_less=True)
        self.more = Signal(reset_less=True)
        self.found = Signal()
        self.chosen = Signal(pair, reset_less=True)
        self.cost = Signal(range(5 * warps // 4 + 1), reset_less=True)  # in warps

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.table = self.table
        write = self.table.write_port()
        m.d.comb += [
            write.en.eq(self.load.valid),
            write.addr.eq(self.count),
            write.data.eq(self.load.payload),
            self.shares.eq(self.count != 0),
        ]
        with m.If(self.clear):
            m.d.sync += [self.count.eq(0), self.primary.eq(0), self.secondary.eq(0)]
        with m.Elif(self.load.valid):
            m.d.sync += self.count.eq(self.count + 1)
        last = Signal()
        was_busy = Signal(self._warps)  # up to and with this cycle
        m.d.comb += [last.eq(self.cycle == self._window - 1), was_busy.eq(self.busy | self.issued | self.started)]
        decided, read = self._decide(m), self._read(m)
        fits = Signal()  # the candidate
        few = (self.candidate.secondary << 1) <= self.secondary
        affords = (self.gives | self.returns) & (self.gain << 2 <= self.budget)
        m.d.comb += fits.eq(Mux(self.begins, few, self.more & (self.starves | affords)))
        m.d.sync += self.ran.eq(self.run)
        with m.If(~self.run):
            m.d.sync += [
                self.cycle.eq(0), self.busy.eq(0), self.counting.eq(0), self.working.eq(0), self.gives.eq(0),
                self.returns.eq(0),
            ]  # fmt: skip
        with m.Else():
            m.d.sync += [self.cycle.eq(Mux(last, 0, self.cycle + 1)), self.busy.eq(Mux(last, 0, was_busy))]
            m.d.sync += self.counting.eq(last | ~self.ran)
            with m.If(last | ~self.ran):
                m.d.sync += self.begins.eq(~last)
                for parts, resident in (
                    (self.primary_parts, self.primary_resident), (self.secondary_parts, self.secondary_resident),
                ):  # fmt: skip
                    idle = resident & ~was_busy
                    m.d.sync += [part.eq(popcount(idle[PART * k :][:PART])) for k, part in enumerate(parts)]
            with m.If(self.counting):
                m.d.sync += [
                    self.working.eq(1), self.step.eq(0), self.primary_idle.eq(total(self.primary_parts)),
                    self.secondary_idle.eq(total(self.secondary_parts)),
                ]  # fmt: skip
            with m.Elif(self.working):
                m.d.sync += self.step.eq(self.step + 1)
                with m.If(self.step == 0):
                    m.d.sync += decided
                with m.Else():
                    m.d.sync += read
                    with m.If(self.step == 1):
                        quarters, before = self.excess << 2, Mux(self.again, self.carried, 0)
                        m.d.sync += self.budget.eq(Mux(quarters < self.difference, quarters, self.difference) + before)
                    with m.If(self.is_pair & fits):
                        m.d.sync += self.found.eq(1)
                    with m.If(self.is_pair & Mux(self.begins, ~self.found, fits & (self.returns | ~self.found))):
                        m.d.sync += [self.chosen.eq(self.candidate), self.cost.eq(self.gain)]
                with m.If(self.step == self._pairs + 3):
                    m.d.sync += [
                        self.working.eq(0), self.primary.eq(self.chosen.primary),
                        self.secondary.eq(self.chosen.secondary),
                    ]  # fmt: skip
                    if self._carry:
                        left, most = self.budget - (self.cost << 2), 4 * self._warps
                        m.d.sync += self.carried.eq(Mux(left > most, most, left))
        return m

    def _decide(self, m: Module) -> list[Any]:
        """What the first step finds out: which rule applies, and what limits it."""
        primary, secondary = self.primary_idle, self.secondary_idle
        will_starve = Signal()
        will_give = Signal()
        will_return = Signal()
        m.d.comb += [
            will_starve.eq(~self.begins & (primary < self._primary_slack)),
            will_give.eq(~self.begins & (primary > self._primary_slack) & (secondary < self._secondary_slack)),
            will_return.eq(~self.begins & ~will_starve & (secondary > self._secondary_slack)),
        ]
        return [
            self.starves.eq(will_starve),
            self.gives.eq(will_give),
            self.returns.eq(will_return),
            self.excess.eq(Mux(will_give, primary - self._primary_slack, secondary - self._secondary_slack)),
            self.difference.eq(Mux(primary > secondary, primary - secondary, secondary - primary)),
            self.again.eq((will_give & self.gives | will_return & self.returns) & self._carry),
            self.cost.eq(0),
            self.found.eq(0),
            self.present.eq(0),
            self.is_pair.eq(0),
            self.chosen.primary.eq(self.primary),
            self.chosen.secondary.eq(self.secondary),
        ]

    def _read(self, m: Module) -> list[Any]:
        """What each later step finds out: the pair that the step before has asked for, and what its receiver gains."""
        read = self.read
        now = Signal(len(self.primary))
        then = Signal(len(self.primary))
        size = Signal(len(self.primary_warps))
        m.d.comb += [
            read.en.eq(1),
            read.addr.eq(self.step),
            now.eq(Mux(self.gives, self.secondary, self.primary)),
            then.eq(Mux(self.gives, read.data.secondary, read.data.primary)),
            size.eq(Mux(self.gives, self.secondary_warps, self.primary_warps)),
        ]
        return [
            self.entry.eq(read.data),
            self.present.eq(self.step <= self.count),
            self.gains_some.eq(then > now),
            self.gained.eq(then - now),
            self.candidate.eq(self.entry),
            self.is_pair.eq(self.present),
            self.more.eq(self.gains_some),
            self.gain.eq(self.gained * size),
        ]
