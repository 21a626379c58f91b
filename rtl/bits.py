"""Combinational helpers on masks, shared by the blocks. They use their arguments repeatedly: pass signals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value


def lowest(mask: Value) -> Value:
    """One-hot: the lowest bit of a mask; zero if the mask is."""
    return (mask & -mask)[: len(mask)]


def beyond(mask: Value) -> Value:
    """Ones above the lowest bit of a mask; zero if the mask is.

    Found in as many steps as an index of the mask has bits; the carry of :func:`lowest` may become a ripple.
    """
    width, filled = len(mask), mask
    for distance in (1 << step for step in range((width - 1).bit_length())):
        filled |= (filled << distance)[:width]
    return (filled << 1)[:width]


def above(index: Value, width: int, *, itself: Value | bool = False) -> Value:
    """Ones above ``index``, or from it on."""
    return (Cat(Value.cast(itself), Const(-1, width)) << index)[:width]


def next_after(mask: Value, index: Value) -> Value:
    """One-hot: the first bit of a mask above ``index``, circularly; zero if the mask is."""
    later = mask & above(index, len(mask))
    return Mux(later.any(), lowest(later), lowest(mask))


def index_of(onehot: Value) -> Value:
    """The index of the only bit set; zero if there is none."""
    width = len(onehot)
    return Cat(
        (onehot & sum(1 << i for i in range(width) if i >> bit & 1)).any() for bit in range((width - 1).bit_length())
    )


def first_after(m: Module, mask: Value, index: Value, name: str, *, itself: Value | bool = False) -> Signal:
    """The index of the first bit of a mask after ``index``, or from it on, circularly; any index if the mask is zero.

    Found in rows of eight: in that of ``index``, and in all others at the same time.
    """
    row_bits = 3
    rows = [mask[i : i + (1 << row_bits)] for i in range(0, len(mask), 1 << row_bits)]
    own, filled = Signal(1 << row_bits, name=f"{name}_own_row"), Signal(len(rows), name=f"{name}_rows")
    later, chosen = Signal(len(rows), name=f"{name}_later_rows"), Signal(len(rows), name=f"{name}_row")
    row, column = index[row_bits:], index[:row_bits]

    def first(bits: Value, of: str) -> Value:
        onehot = Signal(len(bits), name=f"{name}_{of}")
        m.d.comb += onehot.eq(lowest(bits))
        return index_of(onehot)

    result = Signal(len(index), name=name)
    m.d.comb += [
        own.eq(Cat(rows).word_select(row, 1 << row_bits) & above(column, 1 << row_bits, itself=itself)),
        filled.eq(Cat(bits.any() for bits in rows)),
        later.eq(filled & above(row, len(rows))),
        chosen.eq(lowest(Mux(later.any(), later, filled))),
        result.eq(
            Mux(
                own.any(),
                Cat(first(own, "in_own_row"), row),
                Cat(select(chosen, [first(bits, f"in_row_{i}") for i, bits in enumerate(rows)]), index_of(chosen)),
            )
        ),
    ]
    return result


def select(onehot: Value, values: Sequence[Value]) -> Value:
    """The value at the only bit set, or those of all bits set, together; zero if there is none."""
    return reduce(or_, (Mux(chosen, value, 0) for chosen, value in zip(onehot, values, strict=True)))


def multiplex(index: Value, values: Sequence[Value]) -> Value:
    """The value with this number; there are as many as the index has."""
    if len(values) == 1:
        return values[0]
    return multiplex(index[1:], [Mux(index[0], odd, even) for even, odd in zip(values[::2], values[1::2], strict=True)])


def popcount(mask: Value) -> Value:
    """The number of bits set, by a tree of adders."""
    half = len(mask) // 2
    return popcount(mask[:half]) + popcount(mask[half:]) if half else mask
