"""A shard, joined: what RegLess has for one warp scheduler (Kloosterman's thesis, figure 4.8)."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.hdl import Module, Mux
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl import registry
from lockstep.rtl.regless._layouts import METADATA, access_layout, access_of, answer_layout, named, values, write_of
from lockstep.rtl.signatures import event
from lockstep.spec.parameters import LANES, MAX_WARPS
from lockstep.spec.register_regions import BANKS, INSTRUCTION_SLOTS, SLOT_BITS
from lockstep.spec.regless.parameters import (
    COMPRESSED_BY,
    LEAVES,
    MAX_BANK_LINES,
    MAX_LINES,
    MAX_PATIENCE,
    MAX_REGISTERS,
    MAX_WORDS,
    groups,
    parts,
)


class ReglessShard(wiring.Component):
    """Joins the blocks of a shard; nothing but wires.

    Between them, as ``docs/regless-hardware.md`` shows: the metadata announces regions to the capacity manager, which
    starts them; the metadata sends their entries to the staging unit, which answers to the capacity manager, and has
    the compressor below it. What is written is told to the capacity manager, as is the last instruction of a region.

    Latency: of an unloaded region in one word, from ``word`` to ``active`` 9 cycles without entries, 14 with one that
    has no copy. For the others see the parts.

    Parameters are those of the parts (:func:`lockstep.spec.regless.parameters.parts`).

    Members
    -------
    room, word, flush, flags : Out, In, In, Out
        Of ``region_metadata``.
    begin, barred, active, reserved, delivered, ended : In, In, Out, In, In, Out
        Of ``capacity_manager``.
    issue : In, event
        An instruction of ``warp`` issues, which has ``slots``; with ``end``, it is the last of all of the warp.
    last : Out, event
        It is the last one of its region.
    access, operand, write, finish : In, Out, In, In
        Of ``operand_staging_unit``.
    request, answer : Out, In, stream
        ``access`` and ``answer`` of ``register_compressor``: to the L1, and back.
    """

    LARGEST: ClassVar = {
        "lanes": LANES, "warps": MAX_WARPS, "registers": MAX_REGISTERS, "banks": BANKS, "lines": MAX_BANK_LINES,
        "words": MAX_WORDS, "patience": MAX_PATIENCE, "leaves": len(LEAVES) - 1, "compressor_lines": MAX_LINES,
        "per_line": 1, "compressed_by": len(COMPRESSED_BY) - 1,
    }  # fmt: skip
    combinational: ClassVar = {"last": ("issue",)}

    def __init__(self, **parameters: int) -> None:
        """Takes exactly the arguments in ``LARGEST``; the parts check them."""
        if parameters.keys() != self.LARGEST.keys():
            raise ValueError(f"regless_shard takes {', '.join(self.LARGEST)}, all of them")
        p = parameters
        self.parts: dict[str, Any] = {
            block.partition(".")[2]: registry.component(block)(**arguments) for block, arguments in parts(**p).items()
        }
        lanes, banks, size = p["lanes"], p["banks"], dict(warps=p["warps"], registers=p["registers"])
        number = {"warp": bits_for(p["warps"] - 1)}
        warp, warps = event(data.StructLayout(number)), p["warps"]
        slots = data.ArrayLayout(SLOT_BITS, INSTRUCTION_SLOTS)
        words, group = max(lanes, 2 * p["per_line"]), bits_for(groups(**size, per_line=p["per_line"]) - 1)
        issue = data.StructLayout({**number, "slots": range(INSTRUCTION_SLOTS + 1), "end": 1})
        operand = data.StructLayout({**named(**size), "result": 1, "words": values(lanes)})
        super().__init__(
            {
                "room": Out(warps, init=(1 << warps) - 1),
                "word": In(event(data.StructLayout({**number, "word": METADATA}))),
                "flush": In(warp),
                "begin": In(warp),
                "barred": In(warps),
                "active": Out(warps),
                "issue": In(event(issue)),
                "last": Out(warp),
                "flags": Out(event(data.StructLayout({**number, "slots": slots}))),
                "access": In(stream.Signature(access_of(**size))).array(banks),
                "operand": Out(event(operand)).array(banks),
                "reserved": In(warp).array(banks),
                "delivered": In(warp),
                "write": In(event(write_of(lanes, **size))).array(banks),
                "ended": Out(warps),
                "finish": In(stream.Signature(data.StructLayout(number))),
                "request": Out(stream.Signature(access_layout(words=words, group=group, **size))),
                "answer": In(stream.Signature(answer_layout(words=words, **size))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, each in self.parts.items():
            m.submodules[name] = each
        metadata, manager, staging, compressor = self.parts.values()
        connect, flipped = wiring.connect, wiring.flipped

        for port in ("room", "word", "flush", "last", "flags"):
            self._through(m, port, metadata)
        for port in ("begin", "barred", "active", "delivered", "ended"):
            self._through(m, port, manager)
        self._through(m, "finish", staging)
        connect(m, compressor.access, flipped(self.request))
        connect(m, flipped(self.answer), compressor.answer)
        for bank in range(len(self.access)):
            connect(m, flipped(self.access[bank]), staging.access[bank])
            connect(m, staging.operand[bank], flipped(self.operand[bank]))
            connect(m, flipped(self.write[bank]), staging.write[bank])
            connect(m, flipped(self.reserved[bank]), manager.reserved[bank])
            connect(m, metadata.preload[bank], staging.preload[bank])
            connect(m, staging.answered[bank], manager.answered[bank])
            written, write = manager.written[bank], self.write[bank]
            m.d.comb += [written.valid.eq(write.valid), written.payload.warp.eq(write.payload.warp)]
        connect(m, metadata.region, manager.region)
        connect(m, metadata.sent, manager.sent)
        connect(m, manager.start, metadata.start)
        connect(m, staging.request, compressor.request)
        connect(m, compressor.fill, staging.fill)

        issue, last = self.issue, manager.last
        m.d.comb += [
            metadata.wanted.eq(manager.wanted),
            metadata.issue.valid.eq(issue.valid),
            metadata.issue.payload.warp.eq(issue.payload.warp),
            metadata.issue.payload.slots.eq(issue.payload.slots),
            last.valid.eq(metadata.last.valid),
            last.payload.warp.eq(metadata.last.payload.warp),
            last.payload.end.eq(Mux(metadata.last.valid, issue.payload.end, 0)),
        ]
        return m

    def _through(self, m: Module, name: str, part: Any) -> None:
        """A port of a part is the shard's."""
        mine, theirs, member = getattr(self, name), getattr(part, name), self.signature.members[name]
        if not member.is_port:
            wiring.connect(m, wiring.flipped(mine), theirs)
        elif member.flow is Out:
            m.d.comb += mine.eq(theirs)
        else:
            m.d.comb += theirs.eq(mine)
