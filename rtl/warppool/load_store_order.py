"""Tells the schedulers which warps may issue a memory instruction: beside the LSU.

Kloosterman's thesis, section 3.3.8: loads of a warp may overtake each other inside WarpPool, nothing else may. Its
counter of "loads in, requests out" would underflow on divergent loads and not order stores; here instructions and
requests are counted together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from operator import or_, xor
from typing import ClassVar

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.signatures import observed
from lockstep.spec.parameters import MAX_WARPS
from lockstep.spec.warppool.parameters import MAX_COALESCERS, MAX_SLOTS


class LoadStoreOrder(wiring.Component):
    """Counts per warp what has entered and has not been sent to the L1.

    A warp's counter rises by one for each of its instructions that enters and for each line of a load that leaves a
    coalescer; it falls by one for each of its requests in a load that the L1 accepts and for each load whose last line
    leaves a coalescer; stores and atomics lower it when the L1 accepts their last line. The environment sends nothing
    that has not entered and keeps every counter within ``limit``, also without what leaves in a cycle.

    Latency: what enters in cycle t is seen in the outputs of cycle t + 1, a line that leaves a coalescer or is sent to
    the L1 in those of cycle t + 2. After reset every warp is drained.

    The counters are bit-sliced: bit b of all of them is one vector, so that adding a mask is a few operations on
    vectors, whatever the number of warps.

    Parameters
    ----------
    warps : int
        Warps of the SM, 1 to 64.
    coalescers : int
        Intra-warp coalescers, 1 to 4.
    merges : int
        Requests that a line sent to the L1 merges, 1 to 8.
    limit : int
        The most that a counter must hold, 1 to 1023.

    Members
    -------
    enter : In
        Mask of the warps whose memory instruction enters in this cycle.
    enter_load : In
        Those of them whose instruction is a load.
    line : In, array of observed streams
        The loads' lines that leave each coalescer: ``warp``, ``last`` of its instruction.
    access : In, observed stream
        What the L1 takes: ``store``, ``atomic``, ``last`` line of its instruction; a load is of the first ``count`` of
        ``warps``, a store or atomic of the first.
    drained : Out
        Mask of the warps all of whose instructions have been sent to the L1: whatever they issue is in order.
    load_ready : Out
        Mask of the warps that may issue a load: drained, or the last instruction that entered was a load.

    Raises
    ------
    ValueError
        for an argument out of range.
    """

    LARGEST: ClassVar = {"warps": MAX_WARPS, "coalescers": MAX_COALESCERS, "merges": MAX_SLOTS, "limit": 1023}

    def __init__(self, *, warps: int = 48, coalescers: int = 2, merges: int = 4, limit: int = 288) -> None:
        arguments = {"warps": warps, "coalescers": coalescers, "merges": merges, "limit": limit}
        for what, value in arguments.items():
            if not 1 <= value <= self.LARGEST[what]:
                raise ValueError(f"{what} must be 1 to {self.LARGEST[what]}, not {value}")
        warp = bits_for(warps - 1)
        line = data.StructLayout({"warp": warp, "last": 1})
        access = data.StructLayout(
            {
                "store": 1,
                "atomic": 1,
                "last": 1,
                "count": range(merges + 1),
                "warps": data.ArrayLayout(warp, merges),
            }
        )
        self.count = [Signal(warps, name=f"count_{bit}") for bit in range(bits_for(limit))]
        """Bit b of every warp's counter."""
        bits = max(coalescers.bit_length(), merges.bit_length()) + 1
        self.change = [Signal(warps, name=f"change_{bit}") for bit in range(bits)]
        """Bit b, of two's complement, of what the lines of the cycle before change each counter by."""
        self.entered = Signal(warps)
        """What entered in the cycle before is counted with these: the grant of a scheduler comes late in its cycle."""
        super().__init__(
            {
                "enter": In(warps),
                "enter_load": In(warps),
                "line": In(observed(line)).array(coalescers),
                "access": In(observed(access)),
                "drained": Out(warps, init=(1 << warps) - 1),
                "load_ready": Out(warps, init=(1 << warps) - 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()

        def one(condition: Value, warp: Value) -> Signal:
            mask = Signal.like(self.enter, name="one")
            m.d.comb += mask.eq(Mux(condition, Const(1) << warp, 0))
            return mask

        more: list[Value] = []
        for line in self.line:
            payload = line.payload
            more.append(one(line.valid & line.ready & ~payload.last, payload.warp))  # the last one: +1 - 1

        payload = self.access.payload
        taken = Signal()
        ordered = Signal()
        m.d.comb += [
            taken.eq(self.access.valid & self.access.ready),
            ordered.eq(payload.store | payload.atomic),
        ]
        less: list[Value] = []
        for slot, warp in enumerate(payload.warps):
            whole = payload.last if slot == 0 else Const(0)  # of a store's or atomic's instruction
            less.append(one(taken & Mux(ordered, whole, slot < payload.count), warp))

        up, down = _sum(m, more), _sum(m, less)
        every, bits = Const(-1, len(self.enter)), len(self.change)
        inverted = [~vector for vector in down] + [every] * (bits - len(down))
        changes = _add(m, up, inverted, bits, [every])  # a - b = a + ~b + 1
        m.d.sync += [old.eq(new) for old, new in zip(self.change, changes, strict=True)]
        m.d.sync += [old.eq(new) for old, new in zip(self.count, self._counts(m), strict=True)]
        m.d.sync += self.entered.eq(self.enter)

        last_was_load = Signal.like(self.enter)
        m.d.sync += last_was_load.eq(last_was_load & ~self.enter | self.enter_load)
        m.d.comb += [
            self.drained.eq(~reduce(or_, self.count, self.entered)),
            self.load_ready.eq(self.drained | last_was_load),
        ]
        return m

    def _counts(self, m: Module) -> list[Value]:
        """The counts of the next cycle: a change is added to their lowest bits; the others rise or fall by 1."""
        count, change = self.count, self.change
        bits = len(change)
        if bits >= len(count):
            return _add(m, count, change, len(count), [self.entered])
        *low, carry = _add(m, count[:bits], change, bits + 1, [self.entered])
        rises, falls = carry & ~change[-1], ~carry & change[-1]
        ones = zeros = Const(-1, len(self.enter))  # of the bits below
        for old in count[bits:]:
            low.append(old ^ (rises & ones | falls & zeros))
            ones, zeros = ones & old, zeros & ~old
        return low


def _add(m: Module, a: Sequence[Value], b: Sequence[Value], bits: int, carry: Sequence[Value] = ()) -> list[Value]:
    """The lowest bits of a bit-sliced sum."""
    result: list[Value] = []
    for bit in range(bits):
        operands = [*a[bit : bit + 1], *b[bit : bit + 1], *carry]
        result.append(Signal(len(a[0]), name="total"))
        m.d.comb += result[-1].eq(reduce(xor, operands))
        carry = []
        if len(operands) > 1 and bit < bits - 1:
            carry = [Signal(len(a[0]), name="carry")]
            m.d.comb += carry[0].eq(reduce(or_, (x & y for x, y in combinations(operands, 2))))
    return result


def _sum(m: Module, masks: Sequence[Value]) -> Sequence[Value]:
    """In how many masks each warp is, bit-sliced, by a tree of adders."""
    if len(masks) == 1:
        return masks
    half = len(masks) // 2
    return _add(m, _sum(m, masks[half:]), _sum(m, masks[:half]), len(masks).bit_length())
