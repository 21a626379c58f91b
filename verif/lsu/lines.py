"""What the benches and proofs of blocks that know the size of a cache line have in common."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value

from lockstep.rtl.lsu.intra_warp_coalescer import LINE_SHIFTS
from lockstep.verif.blocks import Waiver

WAIVER = Waiver(r"line_shift\[2\] 1->0", "lines have 2 ** 5 to 2 ** 7 bytes: the bit is 1")

# Of the crossbars: probability that a line comes; log2 of the line size.
RATES = {"steady": (1.0, 7), "sparse": (0.2, 6), "mixed": (0.6, 5), "long": (0.7, 7)}


def one_size(m: Module, line_shift: Value) -> Value:
    """That the line size is constant, and 32, 64 or 128 bytes."""
    before, started = Signal(3, name="line_shift_before"), Signal(name="line_shift_known")
    m.d.sync += [started.eq(1), before.eq(line_shift)]
    return line_shift.matches(*LINE_SHIFTS) & (~started | (line_shift == before))
