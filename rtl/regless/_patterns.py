"""The values that are kept in eight bytes: lanes that rise alike (Kloosterman's thesis, section 4.5.3)."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

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

    Each lane is compared with the one before it.
    """
    lanes, second = len(words), half(len(words))
    pattern, value = Signal(State, name="pattern"), Signal(2 * WORD, name="value")
    fits = {stride: Signal(lanes, name=f"stride_{stride}", init=-1) for stride in set(STRIDES.values())}
    for lane in range(1, lanes):
        for stride, lane_fits in fits.items():
            m.d.comb += lane_fits[lane].eq(_rises(words[lane - 1], words[lane], stride))
    m.d.comb += [pattern.eq(State.RAW), value.eq(Cat(words[0], words[second] if second < lanes else words[0]))]
    for state in reversed(STRIDES):  # the first that fits
        with m.If((fits[STRIDES[state]] | (1 << second if state in HALVES else 0)).all()):
            m.d.comb += pattern.eq(state)
    return pattern, value


def _rises(word: Value, following: Value, stride: int) -> Value:
    """Whether ``following`` is ``word`` plus a stride, 0 or a power of two; without the delay of an adder.

    The stride's bit changes; a bit above it does if the one below it goes from 1 to 0; no others do.
    """
    carries = Cat(Const(stride, stride.bit_length()), (word & ~following)[stride.bit_length() - 1 :]) if stride else 0
    return (word ^ following) == Value.cast(carries)[:WORD]


def expand(pattern: Value, value: Value, lanes: int) -> list[Value]:
    """The words of a register with a pattern; use it on signals.

    Strides add to the low bits; the others are those of the first lane, or one more, which is found once.
    """
    second = half(lanes)
    one = (pattern == State.STRIDE_1) | (pattern == State.HALF_1)
    four = (pattern == State.STRIDE_4) | (pattern == State.HALF_4)
    few = (4 * (second - 1)).bit_length()
    words: list[Value] = []
    for lane in range(lanes):
        base, place = value[:WORD] if lane < second else value[WORD:], lane % second
        low = base[:few] + (Mux(one, place, 0) | Mux(four, 4 * place, 0))
        words.append(Cat(low[:few], Mux(low[few], base[few:] + 1, base[few:]))[:WORD] if place else base)
    return words
