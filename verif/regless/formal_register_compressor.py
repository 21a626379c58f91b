"""Proofs about the register compressor: its patterns at full width, what it sends and keeps at a reduced size."""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.regless._patterns import compress, expand
from lockstep.rtl.regless.register_compressor import MOST_ACCESSES, QUEUE, RegisterCompressor, Step
from lockstep.spec.parameters import LANES
from lockstep.spec.regless.parameters import Access, Request, State
from lockstep.verif.formal import Proof

WORD = 32
FEW = 8  # lanes, of the instance that takes seconds


class Patterns(Elaboratable):
    """Any register: which are accepted (``listed``), or what comes back of those."""

    def __init__(self, listed: bool, lanes: int) -> None:
        self.listed, self.lanes = listed, lanes

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = [Signal(WORD, name=f"word_{lane}") for lane in range(self.lanes)]
        found, value = compress(m, words)
        pattern, kept = Signal(State), Signal(2 * WORD)
        m.d.comb += [pattern.eq(found), kept.eq(value)]
        accepted = pattern >= State.CONSTANT
        if not self.listed:
            m.d.comb += Assert(~accepted | (pattern <= State.HALF_4))
            for state in State:  # one by one, which makes it easy
                for word, again in zip(words, expand(Const(state, 3), kept, self.lanes), strict=True):
                    m.d.comb += Assert(~accepted | (pattern != state) | (word == again))
            return m
        half = self.lanes // 2

        def rises(first: int, lanes: int, stride: int) -> Value:
            return Cat(words[first + k] == (words[first] + k * stride)[:WORD] for k in range(lanes)).all()

        both = {stride: rises(0, half, stride) & rises(half, half, stride) for stride in (0, 1, 4)}
        goes_on = {stride: words[half] == (words[0] + half * stride)[:WORD] for stride in both}
        listed = [*(both[stride] & goes_on[stride] for stride in both), both[1], both[4]]
        m.d.comb += [Assert(accepted == Cat(listed).any()), Assert(accepted | (pattern == State.RAW))]
        return m


class Queue(Elaboratable):
    """Any requests, answers and back-pressure: what is true of the queue, of places and of steps in every cycle."""

    LINES, WARPS, REGISTERS = 2, 2, 2

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = RegisterCompressor(
            lanes=2, warps=self.WARPS, registers=self.REGISTERS, lines=self.LINES, per_line=1
        )
        m.d.comb += [
            Assume(dut.request.p.kind <= Request.FINISH),
            Assume((dut.answer.p.pattern >= State.CONSTANT) & (dut.answer.p.pattern <= State.HALF_4)),
        ]
        # An answer that takes a place answers the fetch for it.
        answer = dut.answer.p
        places = [
            valid & pending & (group == self.WARPS * answer.number + answer.warp)
            for valid, pending, group in zip(dut.valid, dut.pending, dut.group, strict=True)
        ]
        m.d.comb += Assume(~dut.answer.valid | ~answer.line | Mux(answer.install, Cat(places).any(), dut.loose != 0))
        held = dut.held
        hits = Cat(valid & (group == held.group) for valid, group in zip(dut.valid, dut.group, strict=True))
        m.d.comb += Assert((dut.step != Step.INSTALL) | ~held.install | (hits & dut.pending).any())
        m.d.comb += [
            Assert(dut.step <= Step.EXPAND),
            Assert(dut.count <= QUEUE),
            Assert((dut.pending & ~dut.valid) == 0),
            Assert((dut.dirty & ~dut.valid) == 0),
            Assert(dut.turn < self.LINES),
        ]
        # Room for what is still to be sent: a line that has to leave, if there is one, and a fetch or a store.
        next_place = Mux(dut.turn == 0, Mux(dut.pending[0], 2, 1), Mux(dut.pending[1], 1, 2)) & ~dut.pending
        leaves = ~hits.any() & (dut.dirty & next_place).any()
        serves = (dut.step == Step.READ) | (dut.step == Step.WRITE)
        m.d.comb += [
            Assert((dut.step != Step.LOOK) | (dut.count <= QUEUE - 3)),
            Assert(~serves | (dut.count <= QUEUE - 1 - leaves)),
        ]
        # What is kept of the state is still so.
        asked = (dut.step == Step.LOOK) | serves
        m.d.comb += [
            Assert(~asked | (held.known == dut.known.bit_select(held.warp, 1)) & (held.victim == next_place)),
            Assert(~serves | (held.place == hits)),
            Assert(~serves | (held.stored == dut.stored.bit_select(held.group, 1))),
        ]
        # At most one place for a line, and every value of a line that does not wait for it.
        for a in range(self.LINES):
            m.d.comb += Assert(~dut.valid[a] | dut.pending[a] | dut.present[a].all())
            for b in range(a):
                m.d.comb += Assert(~(dut.valid[a] & dut.valid[b] & (dut.group[a] == dut.group[b])))
        self.below(m, dut, hits)
        # What leaves holds until it is taken.
        for port in dut.access, dut.fill:
            waits, kept = Signal(), Signal(Value.cast(port.p).shape())
            m.d.sync += [waits.eq(port.valid & ~port.ready), kept.eq(Value.cast(port.p))]
            m.d.comb += Assert(~waits | port.valid)
            if port is dut.fill:
                m.d.comb += Assert(~waits | (Value.cast(port.p) == kept))
        return m


    def below(self, m: Module, dut: RegisterCompressor, hits: Value) -> None:
        """What is not here is in the L1; no line is fetched, nor is a fetch of it due, that never went there."""

        def stored(group: Value) -> Value:
            return dut.stored.bit_select(group, 1)

        for a in range(self.LINES):
            m.d.comb += Assert(~dut.valid[a] | dut.dirty[a] & ~dut.pending[a] | stored(dut.group[a]))
        held = dut.held
        m.d.comb += [
            Assert((dut.step == Step.IDLE) | (held.group == held.number * self.WARPS + held.warp)),
            Assert((dut.step != Step.READ) | hits.any() | stored(held.group)),
        ]
        for warp in range(self.WARPS):
            row = dut._states.read_port(domain="comb")
            m.d.comb += row.addr.eq(warp)
            for number in range(self.REGISTERS):
                group = number * self.WARPS + warp
                here = Cat(valid & (g == group) for valid, g in zip(dut.valid, dut.group, strict=True)).any()
                compressed = dut.known[warp] & (row.data[number] >= State.CONSTANT)
                m.d.comb += Assert(~compressed | here | dut.stored[group])
        for k in range(QUEUE):
            entry = dut._queue.read_port(domain="comb")
            m.d.comb += entry.addr.eq(dut.head + k)
            fetched = (k < dut.count) & (entry.data.kind == Access.FETCH_LINE)
            m.d.comb += Assert(~fetched | stored(entry.data.group))
        fetched, due = dut.access.p.group, Signal(len(dut.stored))
        with m.If(dut.access.valid & dut.access.ready & (dut.access.p.kind == Access.FETCH_LINE)):
            m.d.sync += due.eq(due | (1 << fetched))
        m.d.comb += Assert((due & ~dut.stored) == 0)


class Waits(Elaboratable):
    """One place for the registers of two warps, constants all, and an L1 that accepts nothing."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = RegisterCompressor(lanes=1, warps=2, registers=1, lines=1, per_line=1)
        m.d.comb += [
            Assume(~dut.answer.valid),
            Assume(~dut.access.ready),
            Assume(dut.request.p.words[0] == 0),
            Assume((dut.request.p.kind == Request.STORE) | (dut.request.p.kind == Request.FETCH)),
            Cover(dut.pending.all() & (dut.count == MOST_ACCESSES)),
        ]
        return m


PROOFS = {
    "a pattern gives back what it was found in": Proof(
        partial(Patterns, False, LANES), "bmc", 1,
        "expand(compress(x)) = x for every register that is accepted: 32 lanes of 32 bits",
        words=True,
        small=partial(Patterns, False, FEW),
        long=True,
    ),
    "the listed patterns are accepted, and no others": Proof(
        partial(Patterns, True, LANES), "bmc", 1,
        "constant, stride 1, stride 4, stride 1 and stride 4 in each half: 32 lanes of 32 bits",
        words=True,
        small=partial(Patterns, True, FEW),
        long=True,
    ),
    "places and queue": Proof(
        Queue, "prove", 3,
        "no line has two places; a place that does not wait for its line has all of it; a compressed register is in a "
        "line that is here or has left for the L1, and no other line is fetched; the queue has room for what is sent; "
        "what is shown holds: 2 lanes, 2 warps, 2 registers, 2 places",
        long=True,
    ),
    "a place waits behind what left": Proof(
        Waits, "cover", 16,
        "two lines leave one place, and it waits for the first to come back, while the L1 refuses: 2 warps, 1 place",
    ),
}  # fmt: skip
