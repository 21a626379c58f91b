"""What is proved of ``warppool.instruction_queues``, with two queues of three instructions and two coalescers."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.bits import lowest, popcount, select
from lockstep.rtl.warppool.instruction_queues import InstructionQueues
from lockstep.verif.formal import Proof

QUEUES, WARPS_PER_QUEUE, DEPTH, COALESCERS = 2, 2, 3, 2


class Queues(Elaboratable):
    """The block in an environment that enters nothing into a full queue, and its last cycle's ports."""

    def __init__(self) -> None:
        self.dut = InstructionQueues(
            lanes=1, warps=QUEUES * WARPS_PER_QUEUE, tickets=2, queues=QUEUES, warps_per_queue=WARPS_PER_QUEUE,
            depth=DEPTH, coalescers=COALESCERS,
        )  # fmt: skip
        self.began = Signal()  # there was a last cycle
        self.entered, self.was_entered = Signal(QUEUES), Signal(QUEUES)
        self.waiting, self.was_waiting = Signal(QUEUES), Signal(QUEUES)
        self.vacant, self.was_vacant = Signal(COALESCERS), Signal(COALESCERS)
        self.popped = Signal(QUEUES)  # at the end of the last cycle
        self.given = Signal(COALESCERS)  # presented to since then

    def inside(self, queue: int) -> Value:
        """Instructions in a queue."""
        return DEPTH - self.dut.free[queue]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        m.submodules.dut = self.block = dut.elaborate(None)  # so that a property can read its memory
        for queue, free in enumerate(dut.free):
            before = Signal.like(free, init=DEPTH)
            m.d.sync += before.eq(free)
            m.d.comb += [
                self.entered[queue].eq(dut.enter.valid & (dut.enter.payload.warp // WARPS_PER_QUEUE == queue)),
                Assume(~self.entered[queue] | (free != 0)),
                self.waiting[queue].eq(free != DEPTH),
                self.popped[queue].eq(self.began & (free != before - self.was_entered[queue])),
                # One at a time; no under- or overflow.
                Assert(~self.began | (free == before - self.was_entered[queue] + self.popped[queue])),
                Assert(free <= DEPTH),
                Assert(dut._waiting[queue] == self.waiting[queue]),
                Assert(self.was_waiting[queue] == (before != DEPTH)),
            ]
        for index, port in enumerate(dut.instruction):
            was_valid, was_ready = Signal(), Signal()
            m.d.sync += [was_valid.eq(port.valid), was_ready.eq(port.ready)]
            m.d.comb += [
                self.vacant[index].eq(port.ready & ~port.valid),
                self.given[index].eq(self.began & port.valid & ~was_valid),
                Assert(self.was_vacant[index] == (was_ready & ~was_valid)),
            ]
        m.d.sync += [
            self.began.eq(1),
            self.was_entered.eq(self.entered),
            self.was_waiting.eq(self.waiting),
            self.was_vacant.eq(self.vacant),
        ]
        return m


class Priority(Queues):
    """In every cycle the lowest queue with an instruction gives one to the lowest coalescer that can take it."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        moves = self.was_waiting.any() & self.was_vacant.any()
        with m.If(self.began):
            m.d.comb += [
                Assert(self.popped == Mux(moves, lowest(self.was_waiting), 0)),
                Assert(self.given == Mux(moves, lowest(self.was_vacant), 0)),
            ]
        return m


class Holds(Queues):
    """What is presented holds until it is taken, and then leaves; a payload changes only with what is presented."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        for index, port in enumerate(self.dut.instruction):
            was_valid, was_ready = Signal(), Signal()
            was = Signal(port.payload.shape())
            m.d.sync += [was_valid.eq(port.valid), was_ready.eq(port.ready), was.eq(port.payload)]
            with m.If(self.began):
                m.d.comb += [
                    Assert(self.given[index] | (port.payload == was)),
                    Assert(~was_valid | (port.valid == ~was_ready)),
                ]
        return m


class Order(Queues):
    """Any one instruction that enters is presented, unchanged, when all that entered its queue before it have been."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        chosen, follows = Signal(), Signal()  # follows: the instruction chosen is in a queue
        instruction = Signal(dut.enter.payload.shape())
        queue = Signal(QUEUES)  # its queue, one-hot
        counted, ahead = Signal(range(DEPTH + 1)), Signal(range(DEPTH + 1))  # before and after the last cycle's pop
        leaves = Signal()
        moved = (self.popped & queue).any()
        m.d.comb += [
            ahead.eq(counted - moved),
            leaves.eq(follows & moved & (counted == 0)),
        ]
        presented = select(self.given, [Value.cast(port.payload) for port in dut.instruction])
        with m.If(leaves):
            m.d.comb += [Assert(popcount(self.given) == 1), Assert(presented == Value.cast(instruction))]
            m.d.sync += follows.eq(0)
        with m.Elif(~follows & chosen & dut.enter.valid):
            m.d.sync += [
                follows.eq(1),
                instruction.eq(dut.enter.payload),
                queue.eq(self.entered),
                counted.eq(Mux(self.entered[0], self.inside(0), self.inside(1))),
            ]
        with m.Else():
            m.d.sync += counted.eq(ahead)

        # What makes it inductive: where in its queue's memory it is.
        entry = Signal(instruction.shape())
        for index, head in enumerate(dut._heads):
            read = self.block.submodules[f"entries_{index}"].read_port(domain="comb")
            position = head + ahead
            m.d.comb += [
                Assert(head < DEPTH),
                read.addr.eq(Mux(position < DEPTH, position, position - DEPTH)),
            ]
            with m.If(queue[index]):
                m.d.comb += entry.eq(read.data)
            with m.If(follows & ~leaves & queue[index]):
                m.d.comb += Assert(ahead < self.inside(index))
        with m.If(follows & ~leaves):
            m.d.comb += [
                Assert(Value.cast(entry) == Value.cast(instruction)),
                Assert(queue == 1 << instruction.warp // WARPS_PER_QUEUE),
            ]
        return m


class Reached(Queues):
    """Both queues fill, and empty again."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        full = Signal()
        with m.If((self.dut.free[0] == 0) & (self.dut.free[1] == 0)):
            m.d.sync += full.eq(1)
        m.d.comb += Cover(full & ~self.waiting.any())
        return m


_SIZE = "2 queues of 3, 4 warps, 2 coalescers"
PROOFS = {
    "priority": Proof(Priority, "prove", 2, f"lowest queue to lowest coalescer, one in every cycle that can; {_SIZE}"),
    "holds": Proof(Holds, "prove", 2, f"what is presented holds until it is taken; {_SIZE}"),
    "order": Proof(Order, "prove", 2, f"nothing lost, changed, duplicated or reordered within a queue; {_SIZE}"),
    "full": Proof(Reached, "cover", 24, f"the queues can be full, and empty again; {_SIZE}"),
}
