"""Floating-point arithmetic: the groups FLOAT (f32 lanes) and DOUBLE (f64 lanes).

Semantics: PTX ISA 9.0, sections 9.7.3 (floating point) and 9.7.4 (half precision, whose scalars are computed here in
f32 and rounded once more by the write). Round-to-nearest runs on the host's IEEE arithmetic in loops that vectorise;
directed rounding goes through :func:`numerics.directed`. f32 results that are NaN become 0x7fffffff; an f64 NaN is
the operand that is one, quieted (a before c before b), or 0xfff8000000000000 for an invalid operation.

``.ftz`` flushes results that are subnormal when they are rounded to 24 bits with unlimited exponents.

Error bounds of the approximations in PTX, and the largest errors of these, found by
``pytest verif/models/execution/test_floating.py -k approximation`` on random and directed operands:

===================  ============================================  ==================
operation            PTX ISA 9.0                                   here
===================  ============================================  ==================
div.approx, .full    2 ulp (approx: for 2**-126 <= |b| <= 2**126)  0.5 ulp
rcp.approx           1 ulp                                         0.5 ulp
sqrt.approx          relative 2**-23                               0.5 ulp
rsqrt.approx         relative 2**-22.9                             relative 2**-23
sin.approx, cos      absolute 2**-20.5 in [-2 pi, 2 pi]            absolute 2**-24.9
lg2.approx           absolute 2**-22 in (0.5, 2), else relative    0.51 ulp
ex2.approx           2 ulp                                         0.51 ulp
tanh.approx          relative 2**-11                               relative 2**-23
rcp.approx.ftz.f64   about 20 bits (upper word only)               relative 2**-19
rsqrt.approx.f64     about 22 bits                                 relative 2**-51.9
===================  ============================================  ==================
"""

from __future__ import annotations

import numpy as np

from lockstep.models.execution.isa import CONTEXT, INSTRUCTION, LANES, Double, Flag, Float, Kind, Round, Write
from lockstep.models.execution.numerics import (
    INF_F32,
    NAN_F32,
    PRODUCT,
    QUOTIENT,
    ROOT,
    SIGN_F32,
    WIDE_F32,
    directed,
    ex2,
    hyperbolic_tangent,
    lg2,
    rounds_below_normal,
    sine,
)
from lockstep.models.execution.operands import (
    fill_longs,
    fill_words,
    flush_halves,
    result_address,
    scratch_address,
    sources,
    write,
)
from lockstep.models.jit import (
    bits_f32,
    bits_f64,
    f32,
    f64,
    f64_bits,
    fma32,
    fma64,
    i64,
    inline,
    jit,
    pointer_to,
    slot,
    u32,
    u64,
    words_f32,
    words_f64,
    words_i64,
    words_u32,
)

_FTZ, _SAT, _NAN, _XORSIGN = int(Flag.FTZ), int(Flag.SAT), int(Flag.NAN), int(Flag.XORSIGN)
_RELU = int(Flag.RELU)
_RN, _NO_KIND, _F16 = int(Round.RN), int(Kind.NONE), int(Write.F16)
_MAGNITUDE = 0x7FFF_FFFF
_ONE_F32 = 0x3F80_0000
_LEAST_NORMAL = 0x0080_0000
_LEAST_ROUNDED_F16 = 0x387F_F000  # 2**-14 - 2**-26 as f32: rounded to 11 bits, it is f16's least normal number
_LARGE_DIVISOR = 2.0**126

_SIGN_F64 = -(1 << 63)
_MAGNITUDE_F64 = (1 << 63) - 1
_INF_F64 = 0x7FF0_0000_0000_0000
_QUIET_F64 = 0x0008_0000_0000_0000
_INVALID_F64 = -0x0008_0000_0000_0000  # 0xfff8 and zeros
_ONE_F64 = 0x3FF0_0000_0000_0000
_UPPER_WORD = -(1 << 32)

_context, _instruction = pointer_to(CONTEXT), pointer_to(INSTRUCTION)


@inline
def finish(x, flags, half):
    """Make the f32 results what PTX says: canonical NaN, ``.ftz`` (for a ``half``: of what it rounds to), ``.sat``,
    ``.relu``."""
    r = words_u32(result_address(x), LANES)
    least = (_LEAST_ROUNDED_F16 if half else _LEAST_NORMAL) if flags & _FTZ else 0
    for lane in range(x.lanes):
        bits = i64(r[lane])
        size = bits & _MAGNITUDE
        kept = bits & (SIGN_F32 if size < least else 0xFFFF_FFFF)
        r[lane] = u32(NAN_F32 if size > INF_F32 else kept)
    if flags & _SAT:
        for lane in range(x.lanes):
            bits = i64(r[lane])
            limited = bits if bits < _ONE_F32 else _ONE_F32
            r[lane] = u32(limited if bits <= INF_F32 else 0)
    if flags & _RELU:
        for lane in range(x.lanes):
            r[lane] = u32(i64(r[lane]) if i64(r[lane]) < SIGN_F32 else 0)


@inline
def _key(word):
    """Orders f32 bits as values, with -0 below +0."""
    word = (i64(word) ^ SIGN_F32) - SIGN_F32
    return word ^ (_MAGNITUDE if word < 0 else 0)


@inline
def _extremum(x, flags, largest, r, a, b):
    """min and max: a NaN loses against a number unless ``.NaN``; ``.xorsign.abs`` compares magnitudes."""
    kept = _MAGNITUDE if flags & _XORSIGN else 0xFFFF_FFFF
    for lane in range(x.lanes):
        first, second = i64(a[lane]) & kept, i64(b[lane]) & kept
        sign = (i64(a[lane]) ^ i64(b[lane])) & (kept ^ 0xFFFF_FFFF)
        first_nan, second_nan = (first & _MAGNITUDE) > INF_F32, (second & _MAGNITUDE) > INF_F32
        chosen = first if (_key(first) < _key(second)) != largest else second
        chosen = second if first_nan else (first if second_nan else chosen)
        wrong = (first_nan and second_nan) or ((first_nan or second_nan) and (flags & _NAN) != 0)
        r[lane] = u32(NAN_F32 if wrong else chosen ^ sign)


@jit
def _rounded(op, a, b, c, rnd, width):
    """The bits of a result, rounded to f32's precision in a format of some width."""
    kind = ROOT if op == Float.SQRT else (QUOTIENT if Float.DIV <= op <= Float.DIV_FULL else PRODUCT)
    if op == Float.ADD:
        c = b
        b = f64(1)
    elif op == Float.MUL:  # plus a zero of the product's sign
        c = bits_f64((f64_bits(a) ^ f64_bits(b)) & u64(_SIGN_F64))
    return i64(directed(kind, a, b, c, rnd, width, i64(24)))


@inline
def _directed(x, op, rnd, r, a, b, c):
    """Rounding towards zero or an infinity."""
    for lane in range(x.lanes):
        r[lane] = u32(_rounded(op, f64(a[lane]), f64(b[lane]), f64(c[lane]), rnd, i64(32)))


@inline
def _flush_rounded_up(x, op, rnd, r, a, b, c):
    """Make results zero that are the least normal number only because there are no smaller exponents."""
    found = 0
    for lane in range(x.lanes):
        found |= i64((i64(r[lane]) & _MAGNITUDE) == _LEAST_NORMAL)
    if found == 0:
        return
    for lane in range(x.lanes):
        if (i64(r[lane]) & _MAGNITUDE) == _LEAST_NORMAL:
            wide = _rounded(op, f64(a[lane]), f64(b[lane]), f64(c[lane]), rnd, i64(WIDE_F32))
            if rounds_below_normal(wide):
                r[lane] = u32(i64(r[lane]) & SIGN_F32)


@slot
def execute_float(context, instruction):
    """Group.FLOAT."""
    x = _context(context)
    instruction = _instruction(instruction)
    op = i64(instruction.op)
    flags = i64(instruction.flags)
    rnd = i64(instruction.rnd)
    at_a, at_b, at_c = sources(x, instruction)
    half = instruction.write == _F16
    if flags & _FTZ and half:
        flush_halves(x)
    if op == Float.SUB:  # a + -b
        negated = words_u32(scratch_address(x, i64(1)), LANES)
        b = words_u32(at_b, LANES)
        for lane in range(x.lanes):
            negated[lane] = u32(i64(b[lane]) ^ SIGN_F32)
        at_b = scratch_address(x, i64(1))
        op = i64(Float.ADD)
    elif op == Float.RCP or op == Float.RCP_APPROX:  # 1 / a
        at_b = at_a
        at_a = scratch_address(x, i64(2))
        fill_words(at_a, i64(_ONE_F32), x.lanes)
        rnd = rnd if op == Float.RCP else i64(_RN)
        op = i64(Float.DIV)
    a, b, c = words_f32(at_a, LANES), words_f32(at_b, LANES), words_f32(at_c, LANES)
    r = words_f32(result_address(x), LANES)
    bits_a, bits_b, bits_r = words_u32(at_a, LANES), words_u32(at_b, LANES), words_u32(result_address(x), LANES)
    if rnd != _RN and (op <= Float.DIV or op == Float.SQRT):
        _directed(x, op, rnd, bits_r, a, b, c)
    elif op == Float.FMA:
        for lane in range(x.lanes):
            r[lane] = fma32(a[lane], b[lane], c[lane])
    elif op == Float.ADD:
        for lane in range(x.lanes):
            r[lane] = a[lane] + b[lane]
    elif op == Float.MUL:
        for lane in range(x.lanes):
            r[lane] = a[lane] * b[lane]
    elif op == Float.DIV or op == Float.DIV_FULL:
        for lane in range(x.lanes):
            r[lane] = a[lane] / b[lane]
    elif op == Float.DIV_APPROX:  # a * (1 / b), where 1 / b is flushed to zero for a large b
        for lane in range(x.lanes):
            large = abs(b[lane]) > f32(_LARGE_DIVISOR)
            r[lane] = a[lane] * bits_f32(u32(i64(bits_b[lane]) & SIGN_F32)) if large else a[lane] / b[lane]
    elif op == Float.SQRT or op == Float.SQRT_APPROX:
        for lane in range(x.lanes):
            r[lane] = np.sqrt(a[lane])
    elif op == Float.RSQRT_APPROX:
        for lane in range(x.lanes):
            r[lane] = f32(1) / np.sqrt(a[lane])
    elif op == Float.SIN or op == Float.COS:
        quarter = i64(op == Float.COS)
        for lane in range(x.lanes):
            r[lane] = sine(a[lane], quarter)
    elif op == Float.LG2:
        for lane in range(x.lanes):
            r[lane] = lg2(a[lane])
    elif op == Float.EX2:
        for lane in range(x.lanes):
            r[lane] = ex2(a[lane])
    elif op == Float.TANH:
        for lane in range(x.lanes):
            r[lane] = hyperbolic_tangent(a[lane])
    elif op == Float.MIN or op == Float.MAX:
        _extremum(x, flags, op == Float.MAX, bits_r, bits_a, bits_b)
        if instruction.kind[2] != _NO_KIND:
            _extremum(x, flags, op == Float.MAX, bits_r, bits_r, words_u32(at_c, LANES))
    else:  # ABS, NEG, COPYSIGN, MOV: bits of a, bits of b, bits to be inverted
        kept = _MAGNITUDE if op == Float.ABS else (SIGN_F32 if op == Float.COPYSIGN else 0xFFFF_FFFF)
        taken = _MAGNITUDE if op == Float.COPYSIGN else 0
        inverted = SIGN_F32 if op == Float.NEG else 0
        for lane in range(x.lanes):
            bits_r[lane] = u32((i64(bits_a[lane]) & kept) ^ (i64(bits_b[lane]) & taken) ^ inverted)
    if flags & _FTZ and not half and Float.MUL <= op <= Float.DIV_FULL:
        _flush_rounded_up(x, op, rnd, bits_r, a, b, c)
    if op != Float.COPYSIGN:
        finish(x, flags, half)
    write(x, instruction)
    return 0


# --------------------------------------------------------------------------------------------------------------- f64


@inline
def _choose_nan(x, r, a, b, c):
    """Choose the NaN of an f64 result: that of a, of c or of b."""
    for lane in range(x.lanes):
        first, second, third = i64(a[lane]), i64(b[lane]), i64(c[lane])
        nan = second | _QUIET_F64 if (second & _MAGNITUDE_F64) > _INF_F64 else _INVALID_F64
        nan = third | _QUIET_F64 if (third & _MAGNITUDE_F64) > _INF_F64 else nan
        nan = first | _QUIET_F64 if (first & _MAGNITUDE_F64) > _INF_F64 else nan
        r[lane] = nan if (i64(r[lane]) & _MAGNITUDE_F64) > _INF_F64 else r[lane]


@inline
def finish_long(x, flags):
    """Apply ``.sat`` to the f64 results."""
    if flags & _SAT:
        r = words_i64(result_address(x), LANES)
        for lane in range(x.lanes):
            bits = i64(r[lane])
            r[lane] = min(bits, _ONE_F64) if 0 <= bits <= _INF_F64 else 0


@inline
def _extremum_long(x, largest, r, a, b):
    """min and max of f64: a NaN loses against a number, -0 is below +0."""
    for lane in range(x.lanes):
        first, second = i64(a[lane]), i64(b[lane])
        first_key = first ^ (_MAGNITUDE_F64 if first < 0 else 0)
        second_key = second ^ (_MAGNITUDE_F64 if second < 0 else 0)
        chosen = first if (first_key < second_key) != largest else second
        chosen = first if (second & _MAGNITUDE_F64) > _INF_F64 else chosen
        r[lane] = second if (first & _MAGNITUDE_F64) > _INF_F64 else chosen


@inline
def _directed_long(x, op, rnd, r, a, b, c):
    """Rounding towards zero or an infinity."""
    kind = QUOTIENT if op == Double.DIV else (ROOT if op == Double.SQRT else PRODUCT)
    for lane in range(x.lanes):
        first, second, third = f64(a[lane]), f64(b[lane]), f64(c[lane])
        if op == Double.ADD:
            third = second
            second = f64(1)
        elif op == Double.MUL:
            third = bits_f64((f64_bits(first) ^ f64_bits(second)) & u64(_SIGN_F64))
        r[lane] = i64(directed(kind, first, second, third, rnd, i64(64), i64(53)))


@inline
def _upper_word(x, root, r, a):
    """rcp.approx.ftz and rsqrt.approx.ftz: upper words only, subnormals are zero, NaN is canonical in that word."""
    for lane in range(x.lanes):
        bits = i64(a[lane]) & _UPPER_WORD
        value = bits_f64(u64(bits & (_SIGN_F64 if (bits & _INF_F64) == 0 else -1)))
        result = i64(f64_bits(f64(1) / (np.sqrt(value) if root else value)))
        kept = result & (_SIGN_F64 if (result & _INF_F64) == 0 else _UPPER_WORD)
        r[lane] = NAN_F32 << 32 if (result & _MAGNITUDE_F64) > _INF_F64 else kept


@slot
def execute_double(context, instruction):
    """Group.DOUBLE."""
    x = _context(context)
    instruction = _instruction(instruction)
    op = i64(instruction.op)
    rnd = i64(instruction.rnd)
    flags = i64(instruction.flags)
    flushes = flags & _FTZ != 0
    at_a, at_b, at_c = sources(x, instruction)
    nan_b = words_i64(at_b, LANES)
    if op == Double.SUB:  # a + -b
        at_b = scratch_address(x, i64(3))
        negated = words_i64(at_b, LANES)
        for lane in range(x.lanes):
            negated[lane] = i64(nan_b[lane]) ^ _SIGN_F64
        op = i64(Double.ADD)
    elif op == Double.RCP:  # 1 / a
        at_b = at_a
        nan_b = words_i64(at_b, LANES)
        at_a = scratch_address(x, i64(2))
        fill_longs(at_a, i64(_ONE_F64), x.lanes)
        op = i64(Double.DIV)
    a, b, c = words_f64(at_a, LANES), words_f64(at_b, LANES), words_f64(at_c, LANES)
    r = words_f64(result_address(x), LANES)
    bits_a, bits_b, bits_c = words_i64(at_a, LANES), words_i64(at_b, LANES), words_i64(at_c, LANES)
    bits_r = words_i64(result_address(x), LANES)
    if rnd != _RN and (op <= Double.DIV or op == Double.SQRT):
        _directed_long(x, op, rnd, bits_r, a, b, c)
    elif op == Double.FMA:
        for lane in range(x.lanes):
            r[lane] = fma64(a[lane], b[lane], c[lane])
    elif op == Double.ADD:
        for lane in range(x.lanes):
            r[lane] = a[lane] + b[lane]
    elif op == Double.MUL:
        for lane in range(x.lanes):
            r[lane] = a[lane] * b[lane]
    elif op == Double.DIV:
        for lane in range(x.lanes):
            r[lane] = a[lane] / b[lane]
    elif op == Double.SQRT:
        for lane in range(x.lanes):
            r[lane] = np.sqrt(a[lane])
    elif op == Double.RCP_APPROX:
        _upper_word(x, False, bits_r, bits_a)
    elif op == Double.RSQRT_APPROX:
        if flushes:
            _upper_word(x, True, bits_r, bits_a)
        else:
            for lane in range(x.lanes):
                r[lane] = f64(1) / np.sqrt(a[lane])
    elif op == Double.MIN or op == Double.MAX:
        _extremum_long(x, op == Double.MAX, bits_r, bits_a, bits_b)
    else:  # ABS, NEG, COPYSIGN, MOV: bits of a, bits of b, bits to be inverted
        kept = _MAGNITUDE_F64 if op == Double.ABS else (_SIGN_F64 if op == Double.COPYSIGN else -1)
        taken = _MAGNITUDE_F64 if op == Double.COPYSIGN else 0
        inverted = _SIGN_F64 if op == Double.NEG else 0
        for lane in range(x.lanes):
            bits_r[lane] = (i64(bits_a[lane]) & kept) ^ (i64(bits_b[lane]) & taken) ^ inverted
    if op <= Double.NEG and op != Double.RCP_APPROX and not (op == Double.RSQRT_APPROX and flushes):
        _choose_nan(x, bits_r, bits_a, nan_b, bits_c)
    finish_long(x, flags)
    write(x, instruction)
    return 0
