"""Holds the registers of the warps that run, between the compressor and the register read units.

Kloosterman's thesis, section 4.5.2 and figure 4.10: eight banks of lines with tags, and lists of free, clean and dirty
lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import index_of, multiplex, select
from lockstep.rtl.buffer import Buffer
from lockstep.rtl.regless._bank import Bank
from lockstep.rtl.regless._layouts import (
    access_of,
    check,
    fill_layout,
    named,
    preload_of,
    request_layout,
    values,
    write_of,
)
from lockstep.rtl.signatures import event
from lockstep.spec.parameters import LANES, MAX_WARPS
from lockstep.spec.register_regions import BANKS
from lockstep.spec.regless.parameters import IN_TURN, LEAVES, MAX_BANK_LINES, MAX_REGISTERS, Request


class OperandStagingUnit(wiring.Component):
    """Keeps values in lines that are found by warp and register, and tells apart whose they are.

    **Lines.** A line is free; allocated to a region; or it waits, clean (its value is also below) or dirty (it is not).
    A region's preload, or its reservation for a result, takes the line that has the register, whatever its list, or
    else a free one, or else a clean one. If all that wait are dirty, the bank first stores one of those, which makes it
    free. Clean and dirty lines leave in turn, or in the order in which they were given back. The last use of a
    register, by the flags of its operand, gives its line back: free with ``ERASE``, clean or dirty without. A line is
    dirty from its first write on, and if its preload drops the copy below.

    **Values.** A line that was reserved and not preloaded has no value: its first write writes all lanes, those outside
    ``mask`` with poison.

    **In a cycle**, a bank does one of these, the first that is there: a write; a fill; an access, unless a preload has
    waited for seven cycles; a preload. What goes to the compressor needs its way, which the banks have in turn, one in
    a cycle; ``finish`` goes before them. A bank without the way, or without a line, waits, but not with writes and
    fills.

    Latency: an access is on ``operand`` two cycles after its transfer, a preload that finds its register answered after
    two, on ``request`` after three. A fill is answered, and a write can be read, in the next cycle. Two accesses and
    two preloads of each bank wait in buffers, and two requests.

    ``fill.ready`` depends on ``write`` and on the bank of ``fill``. Payloads are zero while they are not valid, and so
    are ``words`` of what is not read or stored.

    The environment has at most as many registers of a bank allocated to regions as it has lines; it accesses and writes
    only allocated ones, fills only those that it was asked for, and finishes warps of which nothing is due.

    Parameters
    ----------
    lanes : int
        Threads of a warp.
    warps : int
        Warps of the shard.
    registers : int
        Registers of a warp.
    banks : int
        1, 2, 4 or 8. A register is in bank (warp + number) mod banks.
    lines : int
        Lines of a bank.
    leaves : int
        Which line leaves a list before the others, as in ``LEAVES``.

    Members
    -------
    preload : In, stream, one per bank
        ``action`` (:class:`Entry`, not ``NONE``) on a register as its region begins.
    answered : Out, event, one per bank
        Such an action of this ``warp`` is done.
    access : In, stream, one per bank
        A register that is read, with its ``flags``; or, with ``result``, reserved for a write.
    operand : Out, event, one per bank
        An access is done, in order: with the ``words`` that were read.
    write : In, event, one per bank
        A result, with its ``flags``, in the lanes of ``mask``.
    request : Out, stream
        To the compressor: ``words`` of a store.
    fill : In, stream
        A register that was fetched.
    finish : In, stream
        The warp has ended: its lines are free, and ``FINISH`` follows what was requested before.

    Raises
    ------
    ValueError
        for a size out of range.
    """

    LARGEST: ClassVar = {
        "lanes": LANES, "warps": MAX_WARPS, "registers": MAX_REGISTERS, "banks": BANKS, "lines": MAX_BANK_LINES,
        "leaves": len(LEAVES) - 1,
    }  # fmt: skip

    def __init__(
        self, *, lanes: int = LANES, warps: int = 16, registers: int = 255, banks: int = BANKS, lines: int = 16,
        leaves: int = IN_TURN,
    ) -> None:  # fmt: skip
        check(dict(lanes=lanes, warps=warps, registers=registers, banks=banks, lines=lines), self.LARGEST)
        check(dict(leaves=leaves), self.LARGEST, least=0)
        if banks & (banks - 1):
            raise ValueError(f"banks must be a power of two, not {banks}")
        size = dict(warps=warps, registers=registers)
        self.combinational: Mapping[str, tuple[str, ...]] = {
            "fill.ready": ("write", "fill.payload") if banks > 1 else ("write",)
        }
        warp = data.StructLayout({"warp": bits_for(warps - 1)})
        operand = data.StructLayout({**named(**size), "result": 1, "words": values(lanes)})
        super().__init__(
            {
                "preload": In(stream.Signature(preload_of(**size))).array(banks),
                "answered": Out(event(warp)).array(banks),
                "access": In(stream.Signature(access_of(**size))).array(banks),
                "operand": Out(event(operand)).array(banks),
                "write": In(event(write_of(lanes, **size))).array(banks),
                "request": Out(stream.Signature(request_layout(lanes=lanes, **size))),
                "fill": In(stream.Signature(fill_layout(lanes=lanes, **size))),
                "finish": In(stream.Signature(warp)),
            }
        )
        self.banks = [Bank(lanes=lanes, lines=lines, leaves=leaves, **size) for _ in range(banks)]
        self.queue = Buffer(self.request.p.shape())
        # The way to the compressor: which bank had it last; and what enters the queue in this cycle, or a warp's end.
        self.last = Signal(bits_for(banks - 1))
        self.room = Signal(init=1)  # for one more
        self.entering = Signal()
        self.finishing = Signal()
        self.finished = Signal(bits_for(warps - 1), reset_less=True)
        self.entry = Signal(data.StructLayout({"kind": Request, **named(**size)}))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = len(self.banks)
        for number, bank in enumerate(self.banks):
            m.submodules[f"bank_{number}"] = bank
        m.submodules.queue = queue = self.queue

        # Who has the way to the compressor.
        room, finishes, enters = self.room, Signal(name="finishes"), Signal(name="enters")
        waiting = Signal(2, name="waiting")  # in the queue, in the next cycle
        granted, pushes = Signal(count, name="granted"), Signal(count, name="pushes")
        m.d.comb += [
            self.finish.ready.eq(room),
            finishes.eq(self.finish.valid & room),
            pushes.eq(Cat(bank.pushes for bank in self.banks)),
            granted.eq(Mux(room & ~self.finish.valid, self._in_turn(pushes), 0)),
            enters.eq(finishes | granted.any()),
            waiting.eq(queue.count + self.entering - (self.request.valid & self.request.ready)),
        ]
        m.d.sync += [
            self.entering.eq(enters),
            self.finishing.eq(finishes),
            room.eq((waiting == 0) | (waiting == 1) & ~enters),
        ]
        with m.If(granted.any()):
            m.d.sync += self.last.eq(index_of(granted))
        with m.If(finishes):
            m.d.sync += self.finished.eq(self.finish.p.warp)

        # What enters the queue.
        source, stores = Signal(count, name="source"), Signal(count, name="stores")
        m.d.comb += [
            source.eq(Mux(self.finishing, 0, 1 << self.last)),
            self.entry.kind.eq(select(source, [Value.cast(bank.kind) for bank in self.banks])),
            self.entry.warp.eq(select(source, [bank.pushed.warp for bank in self.banks])),
            self.entry.number.eq(select(source, [bank.pushed.number for bank in self.banks])),
            stores.eq(Mux(self.entry.kind == Request.STORE, source, 0)),
        ]
        with m.If(self.finishing):
            m.d.comb += [self.entry.kind.eq(Request.FINISH), self.entry.warp.eq(self.finished)]
        m.d.comb += [
            queue.i.valid.eq(self.entering),
            queue.i.p.kind.eq(self.entry.kind),
            queue.i.p.warp.eq(self.entry.warp),
            queue.i.p.number.eq(self.entry.number),
            Value.cast(queue.i.p.words).eq(select(stores, [Value.cast(bank.words) for bank in self.banks])),
            self.request.valid.eq(queue.o.valid),
            queue.o.ready.eq(self.request.ready),
        ]

        with m.If(queue.o.valid):
            m.d.comb += self.request.p.eq(queue.o.p)

        # The banks and their ports.
        fill, free = self.fill, Signal(count, name="free")
        of_fill = (fill.p.warp + fill.p.number)[: bits_for(count - 1)] if count > 1 else 0
        m.d.comb += [free.eq(Cat(~write.valid for write in self.write)), fill.ready.eq(free.bit_select(of_fill, 1))]
        for number, bank in enumerate(self.banks):
            access, operand, answered = self.access[number], self.operand[number], self.answered[number]
            m.d.comb += [
                bank.access.i.valid.eq(access.valid),
                bank.access.i.p.eq(access.p),
                access.ready.eq(bank.access.i.ready),
                bank.preload.i.valid.eq(self.preload[number].valid),
                bank.preload.i.p.eq(self.preload[number].p),
                self.preload[number].ready.eq(bank.preload.i.ready),
                bank.writes.eq(self.write[number].valid),
                bank.write.eq(self.write[number].payload),
                bank.fills.eq(fill.valid & (of_fill == number)),
                bank.fill.eq(fill.p),
                bank.finishes.eq(finishes),
                bank.finish.eq(self.finish.p.warp),
                bank.room.eq(room),
                bank.granted.eq(granted[number]),
                operand.valid.eq(bank.accesses),
                operand.payload.warp.eq(bank.done.warp),
                operand.payload.number.eq(bank.done.number),
                operand.payload.result.eq(bank.done.result),
                answered.valid.eq(bank.answers),
                answered.payload.warp.eq(bank.answered),
            ]
            with m.If(bank.accesses & ~bank.done.result):
                m.d.comb += operand.payload.words.eq(bank.words)
        return m

    def _in_turn(self, pushes: Signal) -> Value:
        """One-hot: the first bank after the last one that had the way. Each looks for one before it by itself."""
        count = len(pushes)

        def before(bank: int) -> Value:
            """The banks whose turn is before this one's."""
            turns = ((bank - last - 1) % count for last in range(1 << len(self.last)))
            return multiplex(
                self.last, [Const(sum(1 << (bank - k) % count for k in range(1, turn + 1)), count) for turn in turns]
            )

        return Cat(pushes[bank] & ~(pushes & before(bank)).any() for bank in range(count))
