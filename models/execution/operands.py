"""Fetch and write: between a warp's registers and the lanes that an instruction computes on.

A source becomes the host address of its lanes: u32[lanes] for the 32-bit modes of :class:`isa.Fetch`, u64[lanes] for
the others. A register that is taken as it is needs no copy: the address is that of the register. The result is
computed for all lanes into the scratch array ``r`` of the context and written under the mask.

Order matters: immediates pass through ``r``, so all sources are fetched before the result is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.models.execution.isa import CONTEXT, LANES, PT, RZ, Fetch, Kind, Write
from lockstep.models.execution.numerics import LOW_HALF, SIGN_F32, flush, half_to_single, narrow
from lockstep.models.jit import addressof, bits_f32, f64, i64, inline, u32, u64, words_u32, words_u64

REGISTER_BYTES = 4 * LANES
ALL = (1 << LANES) - 1  # the mask of a full warp
_FIELDS: Mapping[str, Any] = CONTEXT.fields or {}
_SCRATCH = _FIELDS["a"][1]
_SCRATCH_BYTES = _FIELDS["b"][1] - _SCRATCH
_RESULT = _FIELDS["r"][1]

_REGISTER, _IMMEDIATE = int(Kind.REGISTER), int(Kind.IMMEDIATE)
_WORD, _S16, _U16, _S8, _U8 = int(Fetch.WORD), int(Fetch.S16), int(Fetch.U16), int(Fetch.S8), int(Fetch.U8)
_FTZ, _F16, _BF16, _PAIR, _S32 = int(Fetch.FTZ), int(Fetch.F16), int(Fetch.BF16), int(Fetch.PAIR), int(Fetch.S32)
_S16_LONG, _U16_LONG = int(Fetch.S16_LONG), int(Fetch.U16_LONG)
_S8_LONG, _U8_LONG = int(Fetch.S8_LONG), int(Fetch.U8_LONG)
_WRITE_NONE, _WRITE_PAIR, _HALF = int(Write.NONE), int(Write.PAIR), int(Write.HALF)
_WRITE_F16, _WRITE_BF16 = int(Write.F16), int(Write.BF16)
_LEAST_NORMAL_F16 = 0x3880_0000  # 2**-14 as f32


@inline
def register_address(x, register):
    """Host address of a register's 32 words."""
    return (x.regs if register < x.own_registers else x.pair_regs) + register * REGISTER_BYTES


@inline
def scratch_address(x, which):
    """Host address of the scratch array of source ``which``."""
    return addressof(x) + _SCRATCH + which * _SCRATCH_BYTES


@inline
def result_address(x):
    """Host address of the result: u32[lanes] or u64[lanes]."""
    return addressof(x) + _RESULT


@inline
def fill_words(where, word, lanes):
    """The same word in every lane."""
    words = words_u32(where, LANES)
    for lane in range(lanes):
        words[lane] = u32(word)


@inline
def fill_longs(where, long, lanes):
    """The same 64 bits in every lane."""
    longs = words_u64(where, LANES)
    for lane in range(lanes):
        longs[lane] = u64(long)


@inline
def extend(x, mode, source, upper, target):
    """Turn the words of a register at ``source`` into lane values at ``target`` as :class:`isa.Fetch` says.

    The upper half of a pair is at ``upper``.
    """
    words = words_u32(source, LANES)
    # Integer modes keep the bits of ``mask`` and copy ``sign`` upwards.
    mask = 0xFFFF_FFFF
    if mode == _S16 or mode == _U16 or mode == _S16_LONG or mode == _U16_LONG:
        mask = LOW_HALF
    elif mode == _S8 or mode == _U8 or mode == _S8_LONG or mode == _U8_LONG:
        mask = 0xFF
    sign = 0
    if mode == _S16 or mode == _S8 or mode == _S32 or mode == _S16_LONG or mode == _S8_LONG:
        sign = (mask + 1) >> 1
    if mode == _PAIR:
        longs = words_u64(target, LANES)
        high = words_u32(upper, LANES)
        for lane in range(x.lanes):
            longs[lane] = u64(i64(words[lane]) | (i64(high[lane]) << 32))
    elif mode > _PAIR:
        longs = words_u64(target, LANES)
        for lane in range(x.lanes):
            longs[lane] = u64(((i64(words[lane]) & mask) ^ sign) - sign)
    else:
        lanes = words_u32(target, LANES)
        if mode == _FTZ:
            for lane in range(x.lanes):
                lanes[lane] = u32(flush(words[lane]))
        elif mode == _F16:
            for lane in range(x.lanes):
                lanes[lane] = u32(half_to_single(words[lane]))
        elif mode == _BF16:
            for lane in range(x.lanes):
                lanes[lane] = u32(i64(words[lane]) << 16)
        else:
            for lane in range(x.lanes):
                lanes[lane] = u32(((i64(words[lane]) & mask) ^ sign) - sign)
    return target


@inline
def _fetch(x, instruction, which):
    target = scratch_address(x, which)
    mode = i64(instruction.fetch[which])
    kind = i64(instruction.kind[which])
    register = i64(instruction.src[which])
    if kind == _REGISTER and register != RZ:
        source = register_address(x, register)
        return source if mode == _WORD else extend(x, mode, source, register_address(x, register + 1), target)
    value = i64(instruction.imm[which]) if kind == _IMMEDIATE else 0
    if mode == _WORD:
        fill_words(target, value, x.lanes)
        return target
    if kind != _IMMEDIATE or mode == _PAIR:
        fill_longs(target, value, x.lanes)
        return target
    source = result_address(x)
    fill_words(source, value, x.lanes)
    return extend(x, mode, source, source, target)


@inline
def fetch(x, instruction, which):
    """Host address of the lanes of source ``which`` (0 to 3). An absent one and RZ are zero."""
    return _fetch(x, instruction, i64(which))  # not a literal: one compiled function for all four


@inline
def flush_halves(x):
    """Make subnormal f16 among the sources zero; they were fetched as f32, into the scratch arrays."""
    for which in range(3):
        lanes = words_u32(scratch_address(x, which), LANES)
        for lane in range(x.lanes):
            bits = i64(lanes[lane])
            lanes[lane] = u32(bits & (SIGN_F32 if (bits & 0x7FFF_FFFF) < _LEAST_NORMAL_F16 else 0xFFFF_FFFF))


@inline
def sources(x, instruction):
    """Host addresses of the lanes of the sources a, b and c."""
    return fetch(x, instruction, 0), fetch(x, instruction, 1), fetch(x, instruction, 2)


@inline
def store_words(x, register, source):
    """Write the words at ``source`` to a register in the lanes of the mask."""
    if register == RZ:
        return
    old = words_u32(register_address(x, register), LANES)
    new = words_u32(source, LANES)
    if x.mask == ALL:
        for lane in range(x.lanes):
            old[lane] = new[lane]
    else:
        mask = x.mask
        for lane in range(x.lanes):
            old[lane] = new[lane] if (mask >> lane) & 1 else old[lane]


@inline
def store_longs(x, register, source):
    """Write the u64 values at ``source`` to a register pair in the lanes of the mask."""
    if register == RZ:
        return
    low = words_u32(register_address(x, register), LANES)
    high = words_u32(register_address(x, register + 1), LANES)
    new = words_u64(source, LANES)
    if x.mask == ALL:
        for lane in range(x.lanes):
            low[lane] = u32(new[lane])
            high[lane] = u32(new[lane] >> u64(32))
    else:
        mask = x.mask
        for lane in range(x.lanes):
            low[lane] = u32(new[lane]) if (mask >> lane) & 1 else low[lane]
            high[lane] = u32(new[lane] >> u64(32)) if (mask >> lane) & 1 else high[lane]


@inline
def write_result(x, mode, rnd, register):
    """Write the result to a register as :class:`isa.Write` says."""
    source = result_address(x)
    if mode == _WRITE_NONE or register == RZ:
        return
    if mode == _WRITE_PAIR:
        store_longs(x, register, source)
        return
    words = words_u32(source, LANES)
    if mode == _HALF:
        for lane in range(x.lanes):
            words[lane] = u32(i64(words[lane]) & LOW_HALF)
    elif mode == _WRITE_F16 or mode == _WRITE_BF16:
        precision = 11 if mode == _WRITE_F16 else 8
        for lane in range(x.lanes):
            words[lane] = u32(narrow(f64(bits_f32(words[lane])), rnd, i64(16), precision))
    store_words(x, register, source)


@inline
def write(x, instruction):
    """Write the result to the instruction's destination."""
    write_result(x, i64(instruction.write), i64(instruction.rnd), i64(instruction.dst))


@inline
def read_predicate(x, index, negated):
    """A predicate as a mask of 32 lanes."""
    word = ALL if index == PT else i64(words_u32(x.preds + 4 * index, 1)[0])
    return word ^ ALL if negated else word


@inline
def write_predicate(x, index, value):
    """Write a mask of 32 lanes to a predicate in the lanes of the mask."""
    if index != PT:
        word = words_u32(x.preds + 4 * index, 1)
        word[0] = u32((i64(word[0]) & ~x.mask) | (value & x.mask))
