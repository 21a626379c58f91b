"""The values that are kept in eight bytes: lanes that rise alike (Kloosterman's thesis, section 4.5.3)."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from lockstep.spec.regless.parameters import State

WORD = 32
STRIDES = {State.CONSTANT: 0, State.STRIDE_1: 1, State.STRIDE_4: 4, State.HALF_1: 1, State.HALF_4: 4}
"""From a lane to the next."""
HALVES = (State.HALF_1, State.HALF_4)
"""The patterns with a first value for each half of the warp."""


def half(lanes: int) -> int:
    """The first lane of the second half."""
    return (lanes + 1) // 2


def compress(m: Module, words: Sequence[Value]) -> tuple[Signal, Signal]:
    """The pattern of a register, ``RAW`` if it has none, and its value: the first words of both halves.

    Each lane is compared with the first of its half.
    """
    lanes, second = len(words), half(len(words))
    pattern, value = Signal(State, name="pattern"), Signal(2 * WORD, name="value")
    first, other = words[0], words[second] if second < lanes else words[0]
    fits = {stride: Signal(lanes, name=f"stride_{stride}", init=-1) for stride in (0, 1, 4)}
    for lane, word in enumerate(words):
        base = first if lane < second else other
        for stride, lane_fits in fits.items():
            if lane not in (0, second):
                m.d.comb += lane_fits[lane].eq(word == (base + (lane % second) * stride)[:WORD])
    m.d.comb += [pattern.eq(State.RAW), value.eq(Cat(first, other))]
    for state in reversed(STRIDES):  # the first that fits
        stride, whole = STRIDES[state], state not in HALVES
        joined = other == (first + second * stride)[:WORD] if whole and second < lanes else 1
        with m.If(fits[stride].all() & joined):
            m.d.comb += pattern.eq(state)
    return pattern, value


def expand(pattern: Value, value: Value, lanes: int) -> list[Value]:
    """The words of a register with a pattern; use it on signals."""
    second = half(lanes)
    one = (pattern == State.STRIDE_1) | (pattern == State.HALF_1)
    four = (pattern == State.STRIDE_4) | (pattern == State.HALF_4)
    words: list[Value] = []
    for lane in range(lanes):
        base, place = value[:WORD] if lane < second else value[WORD:], lane % second
        words.append((base + (Mux(one, place, 0) | Mux(four, 4 * place, 0)))[:WORD])
    return words
