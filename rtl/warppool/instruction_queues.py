"""Holds memory instructions until an intra-warp coalescer takes them: in the LSU, before address generation.

Kloosterman's thesis, section 3.3.2, table 3.1: low warps first, whichever warp the scheduler prefers at the moment.
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import lowest, select
from lockstep.rtl.signatures import event
from lockstep.spec.parameters import MAX_WARPS, TICKETS
from lockstep.spec.warppool.parameters import MAX_COALESCERS

MAX_DEPTH = 16
SIZES = range(5)  # accesses of 1 to 16 bytes


class InstructionQueues(wiring.Component):
    """Queues by warp, the lowest first: warp w enters queue w // ``warps_per_queue``.

    One instruction leaves the queues per cycle: the head of the lowest queue that has one, to the lowest coalescer that
    is ready and has nothing presented to it. So a coalescer is given an instruction in every other cycle at most, and
    none that it could not take at once.

    Latency: an instruction that enters in cycle t is presented in cycle t + 2 at the earliest. A presented instruction
    holds until it is taken; a payload holds until the next instruction is presented. After reset payloads are 0.

    Parameters
    ----------
    lanes : int
        Threads of a warp, 1 to 32.
    warps : int
        Warps of the SM, 1 to 64.
    tickets : int
        Memory instructions of a warp that can be in flight, 1 to 16.
    queues : int
        Queues, 1 to 64; with ``warps_per_queue`` they must hold every warp.
    warps_per_queue : int
        Warps that share a queue, 1 to 64.
    depth : int
        Instructions that a queue holds, 1 to 16.
    coalescers : int
        Intra-warp coalescers that take instructions, 1 to 4.

    Members
    -------
    enter : In, event
        An instruction: ``mask`` of the lanes; ``size``, log2 of the bytes per lane, 0 to 4; ``store``, ``atomic``,
        ``bypass`` (the L1), ``warp`` and ``ticket``. Never into a full queue.
    free : Out, array
        The places that are free in each queue.
    instruction : Out, array of streams
        To each coalescer, what entered.

    Raises
    ------
    ValueError
        for an argument out of range, or fewer queues than the warps need.
    """

    LARGEST: ClassVar = {
        "lanes": 32, "warps": MAX_WARPS, "tickets": TICKETS, "queues": MAX_WARPS, "warps_per_queue": MAX_WARPS,
        "depth": MAX_DEPTH, "coalescers": MAX_COALESCERS,
    }  # fmt: skip

    def __init__(
        self,
        *,
        lanes: int = 32,
        warps: int = 48,
        tickets: int = TICKETS,
        queues: int = 16,
        warps_per_queue: int = 3,
        depth: int = 8,
        coalescers: int = 2,
    ) -> None:
        arguments = {
            "lanes": lanes, "warps": warps, "tickets": tickets, "queues": queues, "warps_per_queue": warps_per_queue,
            "depth": depth, "coalescers": coalescers,
        }  # fmt: skip
        for what, value in arguments.items():
            if not 1 <= value <= self.LARGEST[what]:
                raise ValueError(f"{what} must be 1 to {self.LARGEST[what]}, not {value}")
        if queues * warps_per_queue < warps:
            raise ValueError(f"{queues} queues of {warps_per_queue} warps cannot hold {warps} warps")
        self._queues, self._warps_per_queue, self._depth = queues, warps_per_queue, depth
        self._heads = [Signal(range(depth), name=f"head_{queue}") for queue in range(queues)]  # a queue is a ring
        self._waiting = Signal(queues, name="waiting")  # queues that have instructions, as free says too late
        instruction = data.StructLayout(
            {
                "mask": lanes,
                "size": bits_for(SIZES[-1]),
                "store": 1,
                "atomic": 1,
                "bypass": 1,
                "warp": bits_for(warps - 1),
                "ticket": bits_for(tickets - 1),
            }
        )
        super().__init__(
            {
                "enter": In(event(instruction)),
                "free": Out(range(depth + 1), init=depth).array(queues),
                "instruction": Out(stream.Signature(instruction)).array(coalescers),
            }
        )

    @property
    def queues(self) -> int:
        return self._queues

    @property
    def warps_per_queue(self) -> int:
        return self._warps_per_queue

    @property
    def depth(self) -> int:
        return self._depth

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queues = self.queues
        waiting = self._waiting
        source = Signal(queues)
        vacant = Signal(len(self.instruction))
        target = Signal(len(self.instruction))
        pop = Signal()
        leaving = Signal(self.enter.payload.shape())
        entering = Signal(range(queues))
        sink = Signal(queues)
        first = [self._queue(m, queue, sink[queue], (source & pop.replicate(queues))[queue]) for queue in range(queues)]
        m.d.comb += [
            source.eq(lowest(waiting)),
            vacant.eq(Cat(port.ready & ~port.valid for port in self.instruction)),
            target.eq(lowest(vacant)),
            pop.eq(waiting.any() & vacant.any()),
            leaving.eq(select(source, first)),
            entering.eq(self.enter.payload.warp // self.warps_per_queue),
            sink.eq(self.enter.valid << entering),
        ]
        for chosen, port in zip(target, self.instruction, strict=True):
            with m.If(port.ready):
                m.d.sync += port.valid.eq(pop & chosen)
            with m.If(pop & chosen):
                m.d.sync += port.payload.eq(leaving)
        return m

    def _queue(self, m: Module, queue: int, enters: Value, leaves: Value) -> Value:
        """A ring with a memory of its own, so that its head is found while it is decided which queue goes first."""
        depth, head, free = self.depth, self._heads[queue], self.free[queue]
        m.submodules[f"entries_{queue}"] = entries = Memory(shape=self.enter.payload.shape(), depth=depth, init=[])
        read, write = entries.read_port(domain="comb"), entries.write_port()
        behind = Signal(range(2 * depth), name=f"behind_{queue}")
        m.d.comb += [
            read.addr.eq(head),
            behind.eq(head + depth - free),
            write.addr.eq(Mux(behind < depth, behind, behind - depth)),
            write.data.eq(self.enter.payload),
            write.en.eq(enters),
        ]
        m.d.sync += self._waiting[queue].eq(Mux(leaves, free != depth - 1, self._waiting[queue]) | enters)
        with m.If(leaves & ~enters):
            m.d.sync += free.eq(free + 1)
        with m.Elif(enters & ~leaves):
            m.d.sync += free.eq(free - 1)
        with m.If(leaves):
            m.d.sync += head.eq(Mux(head == depth - 1, 0, head + 1))
        return Value.cast(read.data)
