"""The buffer of an input port whose ready depends on state alone: with one entry the throughput would halve."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class Buffer(wiring.Component):
    """A queue of two entries, of which the first is seen.

    Latency: 1 cycle. Both sides can transfer in every cycle. Entries are memory: unseen until they are written, so a
    reset leaves them as they are.

    Parameters
    ----------
    shape : ShapeLike
        Of an entry.

    Members
    -------
    i : In, stream
        What enters.
    o : Out, stream
        The oldest entry.

    Attributes
    ----------
    head, second : Signal
        The oldest entry, and the one behind it.
    count : Signal
        Entries in use.
    following, moves : Signal
        What becomes the oldest entry at the end of this cycle, and whether something does.
    """

    def __init__(self, shape: object) -> None:
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})
        self.head, self.second = (Signal(shape, reset_less=True, name=name) for name in ("head", "second"))
        self.count = Signal(range(3))
        self.following, self.moves = Signal(shape, name="following"), Signal(name="moves")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        enters, leaves = self.i.valid & self.i.ready, self.o.valid & self.o.ready
        m.d.comb += [
            self.i.ready.eq(self.count < 2),
            self.o.valid.eq(self.count != 0),
            self.o.p.eq(self.head),
            self.following.eq(Mux(self.i.ready, self.i.p, self.second)),
            self.moves.eq(Mux(self.i.ready, enters & (self.count == leaves), leaves)),
        ]
        m.d.sync += self.count.eq(self.count + enters - leaves)
        with m.If(self.moves):
            m.d.sync += self.head.eq(self.following)
        with m.Elif(enters):
            m.d.sync += self.second.eq(self.i.p)
        return m
