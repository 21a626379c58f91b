"""Combinational helpers on masks, shared by the blocks. They use their arguments repeatedly: pass signals."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value


def lowest(mask: Value) -> Value:
    """One-hot: the lowest bit of a mask; zero if the mask is."""
    return (mask & -mask)[: len(mask)]


def next_after(mask: Value, index: Value) -> Value:
    """One-hot: the first bit of a mask above ``index``, circularly; zero if the mask is."""
    width = len(mask)
    later = mask & (Const((1 << width) - 1 << 1, 2 * width) << index)[:width]
    return Mux(later.any(), lowest(later), lowest(mask))


def index_of(onehot: Value) -> Value:
    """The index of the only bit set; zero if there is none."""
    width = len(onehot)
    return Cat(
        (onehot & sum(1 << i for i in range(width) if i >> bit & 1)).any() for bit in range((width - 1).bit_length())
    )


def select(onehot: Value, values: list[Value]) -> Value:
    """The value at the only bit set; zero if there is none."""
    return reduce(or_, (Mux(chosen, value, 0) for chosen, value in zip(onehot, values, strict=True)))


def popcount(mask: Value) -> Value:
    """The number of bits set, by a tree of adders."""
    half = len(mask) // 2
    return popcount(mask[:half]) + popcount(mask[half:]) if half else mask


def least(m: Module, values: list[Value]) -> Signal:
    """The smallest of unsigned values, by a tree of comparisons."""
    result = Signal(len(values[0]), name=f"least_of_{len(values)}")
    if len(values) == 1:
        m.d.comb += result.eq(values[0])
    else:
        half = len(values) // 2
        low, high = least(m, values[:half]), least(m, values[half:])
        m.d.comb += result.eq(Mux(low <= high, low, high))
    return result
