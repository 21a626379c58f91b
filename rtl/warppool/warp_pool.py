"""WarpPool, joined: request merging between the load/store unit and the L1 (Kloosterman's thesis, figure 3.6)."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.hdl import Module, Mux, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl import registry
from lockstep.rtl.lsu.intra_warp_coalescer import ADDRESS_BITS, LINE_SHIFTS, SIZES
from lockstep.rtl.signatures import event
from lockstep.rtl.warppool._layouts import NUMBER_BITS, slot_layout, slots_layout
from lockstep.spec.mapping import LINE_WORDS, Mapping
from lockstep.spec.parameters import FERMI, MAX_MAPS, MAX_WARPS, TICKETS
from lockstep.spec.warppool.parameters import MAP_PER, MAX_COALESCERS, MAX_METADATA, parts


class WarpPool(wiring.Component):
    """Joins the blocks of WarpPool; nothing but wires, and the choice of the way of a line: load or store.

    ============================= ==================================================================== =============
    from, to                      path                                                                 core cycles
    ============================= ==================================================================== =============
    ``enter``, ``generate``       instruction queue, empty                                             2
    ``generate``, line            coalescer, empty                                                     2
    line, ``access``              load: buffer, insertion, selection, read, output queue               4
    line, ``access``              store or atomic: buffer, output queue                                2
    ``answer``, ``result``        metadata, writeback, empty                                           2
    ============================= ==================================================================== =============

    Latency: 8 cycles from ``enter`` to ``access`` for an unloaded load, 2 from ``answer`` to ``result``.

    Parameters are those of the parts (:func:`lockstep.spec.warppool.parameters.parts`).

    Members
    -------
    line_shift : In
        Log2 of the line size in bytes, 5 to 7; constant.
    issue, issue_load : In
        Warps that issue a memory instruction in this cycle, and those of them whose instruction is a load. They enter
        later, in this order within a warp.
    drained, load_ready : Out
        Warps that may issue a store, an atomic, a barrier or a fence; warps that may issue a load.
    enter : In, event
        An instruction, before address generation; its queue has room.
    free : Out, one per instruction queue
        Places free.
    generate, address : Out, event; In, one per coalescer
        The instruction whose addresses are wanted, and, in the same cycle, the addresses of its lanes.
    access : Out, stream
        A request to the L1: ``slots`` has the ``count`` warps, tickets and mappings that a load serves; stores and
        atomics have one, the lanes in ``mask`` and, with ``last``, no further line. ``id`` comes back with the answer
        of a load or an atomic, and is 0 of a store.
    miss : In
        The load transferred on ``access`` in this cycle missed, or joined one that did.
    answer : In, stream
        The L1's answer; ``mask`` has an atomic's lanes.
    result : Out, stream
        The registers of one warp: lanes and words by ``mapping``; with *random*, and for an atomic, lanes in ``mask``,
        and words (*random* loads alone) in ``words``.
    policy, overdue : Out
        Of the request selector.
    """

    LARGEST: ClassVar = {
        "lanes": 32, "warps": MAX_WARPS, "tickets": TICKETS, "warps_per_queue": 1, "depth": 16,
        "coalescers": MAX_COALESCERS, "queues": 16, "tags": 4, "merges": 8, "maps": MAX_MAPS, "index": FERMI,
        "set_bits": 11, "metadata": MAX_METADATA, "quantum": 1 << 20, "store_wait": 4095, "map_per": len(MAP_PER) - 1,
    }  # fmt: skip
    constant: ClassVar = ("line_shift",)

    def __init__(self, **parameters: int) -> None:
        """Takes exactly the arguments in ``LARGEST``; the parts check them."""
        if parameters.keys() != self.LARGEST.keys():
            raise ValueError(f"warp_pool takes {', '.join(self.LARGEST)}, all of them")
        p = parameters
        self.coalescers = p["coalescers"]
        arguments = parts(**p)

        def part(block: str) -> Any:
            return registry.component(block)(**arguments[block])

        names = ("instruction_queues", "thread_map_table", "inter_warp_queues", "request_selector", "mshr_metadata",
                 "writeback", "load_store_order")  # fmt: skip
        self.parts = {name: part(f"warppool.{name}") for name in names}
        self.parts |= {f"intra_warp_coalescer_{k}": part("lsu.intra_warp_coalescer") for k in range(self.coalescers)}
        warp, ticket = bits_for(p["warps"] - 1), bits_for(p["tickets"] - 1)
        identity = bits_for(p["metadata"] - 1)
        words = data.ArrayLayout(range(LINE_WORDS), p["lanes"])
        source = {"warp": warp, "ticket": ticket}
        slot = slot_layout(lanes=p["lanes"], warps=p["warps"], tickets=p["tickets"])
        kind = {"store": 1, "atomic": 1, "bypass": 1}
        instruction = {"mask": p["lanes"], "size": bits_for(SIZES[-1]), **kind, **source}
        access = {
            "number": NUMBER_BITS,
            **kind,
            "last": 1,
            "mask": p["lanes"],
            **slots_layout(p["merges"], slot),
            "id": identity,
        }
        result = {**slot.members, "atomic": 1, "mask": p["lanes"], "words": words}
        signature: dict[str, Any] = {
            "line_shift": In(bits_for(LINE_SHIFTS[-1])),
            "issue": In(p["warps"]),
            "issue_load": In(p["warps"]),
            "drained": Out(p["warps"]),
            "load_ready": Out(p["warps"]),
            "enter": In(event(data.StructLayout(instruction))),
            "free": Out(range(p["depth"] + 1)).array(-(-p["warps"] // p["warps_per_queue"])),
            "generate": Out(event(data.StructLayout(source))).array(p["coalescers"]),
            "address": In(data.ArrayLayout(ADDRESS_BITS, p["lanes"])).array(p["coalescers"]),
            "access": Out(stream.Signature(data.StructLayout(access))),
            "miss": In(1),
            "answer": In(stream.Signature(data.StructLayout({"id": identity, "atomic": 1, "mask": p["lanes"]}))),
            "result": Out(stream.Signature(data.StructLayout(result))),
            "policy": Out(1),
            "overdue": Out(1),
        }
        super().__init__(signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, each in self.parts.items():
            m.submodules[name] = each

        def copy(target: Any, source: Any) -> None:
            """Fields of the target's payload from those of the same name."""
            for name in target.shape().members:
                m.d.comb += getattr(target, name).eq(getattr(source, name))

        def observe(target: Any, valid: Value, ready: Value, payload: Any) -> None:
            m.d.comb += [target.valid.eq(valid), target.ready.eq(ready)]
            copy(target.payload, payload)

        (queues, table, merging, selector, metadata, writeback, order, *coalescers) = self.parts.values()
        m.d.comb += [
            queues.enter.valid.eq(self.enter.valid),
            queues.enter.payload.eq(self.enter.payload),
            *(mine.eq(theirs) for mine, theirs in zip(self.free, queues.free, strict=True)),
            order.enter.eq(self.issue),
            order.enter_load.eq(self.issue_load),
            self.drained.eq(order.drained),
            self.load_ready.eq(order.load_ready),
        ]
        for k, coalescer in enumerate(coalescers):
            instruction, line = queues.instruction[k], coalescer.line
            aside = line.p.store | line.p.atomic
            m.d.comb += [
                self.generate[k].valid.eq(instruction.valid),
                coalescer.request.valid.eq(instruction.valid),
                instruction.ready.eq(coalescer.request.ready),
                coalescer.request.p.address.eq(self.address[k]),
                coalescer.line_shift.eq(self.line_shift),
                line.ready.eq(Mux(aside, selector.store[k].ready, merging.line[k].ready & table.admits[k])),
                merging.line[k].valid.eq(line.valid & ~aside & table.admits[k]),
                merging.map_entry[k].eq(table.entry[k]),
                selector.store[k].valid.eq(line.valid & aside),
                selector.insert[k].valid.eq(merging.insert[k].valid),
                selector.insert[k].payload.eq(merging.insert[k].payload),
            ]
            copy(self.generate[k].payload, instruction.p)
            for name in instruction.p.shape().members:
                m.d.comb += getattr(coalescer.request.p, name).eq(getattr(instruction.p, name))
            copy(merging.line[k].p, line.p)
            copy(selector.store[k].p, line.p)
            for observer in table, order:
                observe(observer.line[k], line.valid & ~aside, line.ready, line.p)

        access, answer, result = self.access, self.answer, self.result
        random = (writeback.result.p.mapping == Mapping.RANDOM) & ~writeback.result.p.atomic
        m.d.comb += [
            merging.room.eq(selector.room),
            merging.pop.valid.eq(selector.pop.valid),
            merging.pop.payload.eq(selector.pop.payload),
            selector.request.valid.eq(merging.request.valid),
            selector.request.payload.eq(merging.request.payload),
            selector.metadata_free.eq(metadata.free),
            selector.miss.eq(self.miss),
            self.policy.eq(selector.policy),
            self.overdue.eq(selector.overdue),
            access.valid.eq(selector.access.valid),
            selector.access.ready.eq(access.ready),
            access.p.id.eq(Mux(selector.access.p.store, 0, metadata.id)),  # one that waits keeps what it presents
            answer.ready.eq(writeback.answer.ready),
            writeback.answer.valid.eq(answer.valid),
            writeback.slots.eq(metadata.slots),
            result.valid.eq(writeback.result.valid),
            writeback.result.ready.eq(result.ready),
            table.lookup.entry.eq(writeback.result.p.word),
            table.lookup.thread.eq(writeback.result.p.thread),
            result.p.mask.eq(Mux(random, table.map.mask, writeback.result.p.mask)),
        ]
        for name in selector.access.p.shape().members:
            m.d.comb += getattr(access.p, name).eq(getattr(selector.access.p, name))
        for name in ("warp", "ticket", "mapping", "thread", "word", "atomic"):
            m.d.comb += getattr(result.p, name).eq(getattr(writeback.result.p, name))
        for mine, theirs in zip(result.p.words, table.map.words, strict=True):
            m.d.comb += mine.eq(Mux(random, theirs, 0))
        copy(writeback.answer.p, answer.p)
        observe(metadata.access, access.valid, access.ready, selector.access.p)
        observe(metadata.answer, answer.valid, answer.ready, answer.p)
        observe(table.result, result.valid, result.ready, writeback.result.p)
        m.d.comb += [
            order.access.valid.eq(access.valid),
            order.access.ready.eq(access.ready),
            *(getattr(order.access.payload, n).eq(getattr(access.p, n)) for n in ("store", "atomic", "last", "count")),
            *(w.eq(s.warp) for w, s in zip(order.access.payload.warps, access.p.slots, strict=True)),
        ]
        return m
