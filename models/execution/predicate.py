"""Comparisons, selections and predicate logic: the group PREDICATE. PTX ISA 9.0, sections on comparison and selection.

A comparison has one outcome per lane: less, equal, greater or unordered, numbered 0 to 3. The instruction's
:class:`isa.Compare` is the set of outcomes that make it true.
"""

from __future__ import annotations

from lockstep.models.execution.integer import look_up
from lockstep.models.execution.isa import (
    CONTEXT,
    GLOBAL_BASE,
    INSTRUCTION,
    LANES,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_WINDOW,
    Bool,
    Compare,
    Flag,
    Predicate,
    Space,
)
from lockstep.models.execution.numerics import INF_F32
from lockstep.models.execution.operands import (
    ALL,
    fill_words,
    flush_halves,
    read_predicate,
    result_address,
    scratch_address,
    sources,
    write,
    write_predicate,
)
from lockstep.models.jit import (
    i64,
    inline,
    pointer_to,
    slot,
    u32,
    words_f32,
    words_f64,
    words_i32,
    words_i64,
    words_u32,
    words_u64,
)

_SAT, _FTZ, _GE = int(Flag.SAT), int(Flag.FTZ), int(Compare.GE)
_ONE_F32 = 0x3F80_0000
_MAGNITUDE, _MAGNITUDE_F64 = 0x7FFF_FFFF, (1 << 63) - 1
_INF_F64 = 0x7FF0_0000_0000_0000
_LEAST_F32, _LEAST_F64 = 0x0080_0000, 0x0010_0000_0000_0000
_NONE, _AND, _OR = int(Bool.NONE), int(Bool.AND), int(Bool.OR)
_GLOBAL, _SHARED, _LOCAL, _PARAM = int(Space.GLOBAL), int(Space.SHARED), int(Space.LOCAL), int(Space.PARAM)

_context, _instruction = pointer_to(CONTEXT), pointer_to(INSTRUCTION)


@inline
def outcome(first, second):
    """How two numbers compare: 0 less, 1 equal, 2 greater, 3 unordered."""
    return 0 if first < second else (1 if first == second else (2 if first > second else 3))


@inline
def compare(lanes, wanted, a, b):
    """The lanes in which the outcome of comparing two arrays is among ``wanted``, as a mask."""
    mask = 0
    for lane in range(lanes):
        mask |= ((wanted >> outcome(a[lane], b[lane])) & 1) << lane
    return mask


@inline
def combine(how, comparison, other):
    """Two lane masks joined as :class:`isa.Bool` says."""
    if how == _AND:
        return comparison & other
    if how == _OR:
        return comparison | other
    return comparison if how == _NONE else comparison ^ other


@inline
def _compare_typed(x, kind, wanted, at_a, at_b):
    """Compare lanes of a type: S32, U32, S64, U64, F32, F64."""
    if kind == 0:
        return compare(x.lanes, wanted, words_i32(at_a, LANES), words_i32(at_b, LANES))
    if kind == 1:
        return compare(x.lanes, wanted, words_u32(at_a, LANES), words_u32(at_b, LANES))
    if kind == 2:
        return compare(x.lanes, wanted, words_i64(at_a, LANES), words_i64(at_b, LANES))
    if kind == 3:
        return compare(x.lanes, wanted, words_u64(at_a, LANES), words_u64(at_b, LANES))
    if kind == 4:
        return compare(x.lanes, wanted, words_f32(at_a, LANES), words_f32(at_b, LANES))
    return compare(x.lanes, wanted, words_f64(at_a, LANES), words_f64(at_b, LANES))


@inline
def _select(x, wide, chosen, at_a, at_b):
    """Lanes of a where the mask is set, of b elsewhere."""
    if wide:
        a, b, r = words_u64(at_a, LANES), words_u64(at_b, LANES), words_u64(result_address(x), LANES)
        for lane in range(x.lanes):
            r[lane] = a[lane] if (chosen >> lane) & 1 else b[lane]
    else:
        a, b, r = words_u32(at_a, LANES), words_u32(at_b, LANES), words_u32(result_address(x), LANES)
        for lane in range(x.lanes):
            r[lane] = a[lane] if (chosen >> lane) & 1 else b[lane]


@inline
def _test(kind, size, infinity, least):
    """testp on the magnitude's bits: finite, infinite, number, notanumber, normal (zero too), subnormal."""
    if kind == 0:
        return size < infinity
    if kind == 1:
        return size == infinity
    if kind == 2:
        return size <= infinity
    if kind == 3:
        return size > infinity
    if kind == 4:
        return size == 0 or least <= size < infinity
    return 0 < size < least


@inline
def _in_space(space, address):
    """Whether a generic address lies in the window of a state space."""
    if space == _SHARED:
        return SHARED_WINDOW <= address < LOCAL_WINDOW
    if space == _LOCAL:
        return LOCAL_WINDOW <= address < GLOBAL_BASE
    if space == _PARAM:
        return PARAM_WINDOW <= address < SHARED_WINDOW
    return space == _GLOBAL and not PARAM_WINDOW <= address < GLOBAL_BASE


@inline
def _lane_masks(x, op, sub, at_a, at_b, at_c):
    """The lanes in which TESTP, ISSPACE or LOP3 is true."""
    mask = 0
    if op == Predicate.TESTP_F64:
        longs = words_i64(at_a, LANES)
        for lane in range(x.lanes):
            mask |= i64(_test(sub, i64(longs[lane]) & _MAGNITUDE_F64, _INF_F64, _LEAST_F64)) << lane
    elif op == Predicate.ISSPACE:
        longs = words_i64(at_a, LANES)
        for lane in range(x.lanes):
            mask |= i64(_in_space(sub, i64(longs[lane]))) << lane
    elif op == Predicate.TESTP_F32:
        words = words_u32(at_a, LANES)
        for lane in range(x.lanes):
            mask |= i64(_test(sub, i64(words[lane]) & _MAGNITUDE, INF_F32, _LEAST_F32)) << lane
    elif op == Predicate.LOP3:
        a, b, c = words_u32(at_a, LANES), words_u32(at_b, LANES), words_u32(at_c, LANES)
        r = words_u32(result_address(x), LANES)
        look_up(x, sub, r, a, b, c)
        for lane in range(x.lanes):
            mask |= i64(r[lane] != 0) << lane
    return mask


@slot
def execute_predicate(context, instruction):
    """Group.PREDICATE."""
    x = _context(context)
    instruction = _instruction(instruction)
    op = i64(instruction.op)
    sub = i64(instruction.sub)
    first = read_predicate(x, i64(instruction.psrc), i64(instruction.psrc_not))
    if Predicate.MOV <= op <= Predicate.NOT:
        second = read_predicate(x, i64(instruction.psrc2), i64(instruction.psrc2_not))
        result = first
        if op == Predicate.AND:
            result = first & second
        elif op == Predicate.OR:
            result = first | second
        elif op == Predicate.XOR:
            result = first ^ second
        elif op == Predicate.NOT:
            result = first ^ ALL
        write_predicate(x, i64(instruction.pdst), result)
        return 0
    at_a, at_b, at_c = sources(x, instruction)
    if i64(instruction.flags) & _FTZ:  # of f16; f32 is flushed by the fetch
        flush_halves(x)
    slct = Predicate.SLCT_S32 <= op <= Predicate.SLCT64_F32
    mask = first
    if op <= Predicate.SET_F64 or slct:
        # slct compares c with zero: types S32 and F32 in turn.
        kind = 4 * (op & 1) if slct else op % 6
        zeros = scratch_address(x, i64(3))
        if slct:
            fill_words(zeros, i64(0), x.lanes)
        wanted = _GE if slct else sub & 15
        mask = _compare_typed(x, kind, wanted, at_c if slct else at_a, zeros if slct else at_b)
    elif op != Predicate.SELP and op != Predicate.SELP64 and op != Predicate.FROM:
        mask = _lane_masks(x, op, sub, at_a, at_b, at_c)
    if op <= Predicate.SETP_F64:
        write_predicate(x, i64(instruction.pdst), combine(sub >> 4, mask, first))
        write_predicate(x, i64(instruction.pdst2), combine(sub >> 4, mask ^ ALL, first))
    elif op <= Predicate.SET_F64 or op == Predicate.FROM:
        chosen = combine(sub >> 4, mask, first)
        true = 1 if op == Predicate.FROM else (_ONE_F32 if i64(instruction.flags) & _SAT else ALL)
        r = words_u32(result_address(x), LANES)
        for lane in range(x.lanes):
            r[lane] = u32(-((chosen >> lane) & 1) & true)
    elif op <= Predicate.SLCT64_F32:
        wide = op == Predicate.SELP64 or op == Predicate.SLCT64_S32 or op == Predicate.SLCT64_F32
        _select(x, wide, mask, at_a, at_b)
    elif op == Predicate.LOP3:
        write_predicate(x, i64(instruction.pdst), combine(i64(instruction.imm[3]), mask, first))
    else:
        write_predicate(x, i64(instruction.pdst), mask)
    write(x, instruction)
    return 0
