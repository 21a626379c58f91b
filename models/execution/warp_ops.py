"""Warp-wide operations and special registers (:class:`isa.Warp`).

Lanes of a member mask that do not execute the instruction take no part: a warp runs divergent paths one after the
other, so nobody can wait for them. Each lane's own member mask counts, since several groups of lanes may execute one
instruction together.
"""

from __future__ import annotations

from lockstep.models.execution.isa import CONTEXT, INSTRUCTION, LANES, Fault, Kind, Special, Warp, Write, at_grid
from lockstep.models.execution.operands import (
    ALL,
    fill_words,
    read_predicate,
    result_address,
    sources,
    store_longs,
    store_words,
    write_predicate,
)
from lockstep.models.jit import ctz, i64, inline, jit, pointer_to, slot, u32, without_lowest, words_i64, words_u32

_ABSENT, _WORD, _PAIR = int(Kind.NONE), int(Write.WORD), int(Write.PAIR)
SPECIAL, BALLOT, ACTIVEMASK = int(Warp.SPECIAL), int(Warp.BALLOT), int(Warp.ACTIVEMASK)
UP, DOWN, BUTTERFLY, INDEX = int(Warp.SHFL_UP), int(Warp.SHFL_DOWN), int(Warp.SHFL_BFLY), int(Warp.SHFL_IDX)
VOTE_ALL, VOTE_ANY, VOTE_UNI = int(Warp.VOTE_ALL), int(Warp.VOTE_ANY), int(Warp.VOTE_UNI)
MATCH_ANY, MATCH_ANY64, MATCH_ALL64 = int(Warp.MATCH_ANY), int(Warp.MATCH_ANY64), int(Warp.MATCH_ALL64)
ADD, MIN_S, MIN_U = int(Warp.REDUX_ADD), int(Warp.REDUX_MIN_S), int(Warp.REDUX_MIN_U)
MAX_S, MAX_U = int(Warp.REDUX_MAX_S), int(Warp.REDUX_MAX_U)
AND, OR, XOR = int(Warp.REDUX_AND), int(Warp.REDUX_OR), int(Warp.REDUX_XOR)
TID_X, TID_Z, NTID_X, CTAID_X = int(Special.TID_X), int(Special.TID_Z), int(Special.NTID_X), int(Special.CTAID_X)
NCTAID_X, LANEID, WARPID = int(Special.NCTAID_X), int(Special.LANEID), int(Special.WARPID)
NWARPID, SMID, NSMID, GRIDID = int(Special.NWARPID), int(Special.SMID), int(Special.NSMID), int(Special.GRIDID)
LANEMASK_EQ, LANEMASK_GE = int(Special.LANEMASK_EQ), int(Special.LANEMASK_GE)
CLOCK, CLOCK_HI, CLOCK64 = int(Special.CLOCK), int(Special.CLOCK_HI), int(Special.CLOCK64)
GLOBALTIMER, GLOBALTIMER_HI = int(Special.GLOBALTIMER), int(Special.GLOBALTIMER_HI)
DYNAMIC_SMEM_SIZE, TOTAL_SMEM_SIZE = int(Special.DYNAMIC_SMEM_SIZE), int(Special.TOTAL_SMEM_SIZE)
at_context, at_instruction = pointer_to(CONTEXT), pointer_to(INSTRUCTION)


@inline
def _uniform(x, which):
    """A special register that is the same in all lanes."""
    if which < CTAID_X:
        return i64(at_grid(x.grid).block[which - NTID_X])
    if which < NCTAID_X:
        return i64(x.ctaid[which - CTAID_X])
    if which < LANEID:
        return i64(at_grid(x.grid).size[which - NCTAID_X])
    if which == WARPID:
        return i64(x.warp)
    if which == NWARPID:
        return i64(x.warps)
    if which == SMID:
        return i64(x.sm)
    if which == NSMID:
        return i64(x.sms)
    if which == GRIDID:
        return i64(at_grid(x.grid).number)
    if which == CLOCK or which == CLOCK64:
        return i64(x.now)
    if which == CLOCK_HI:
        return i64(x.now >> 32)
    if which == GLOBALTIMER:
        return i64(x.nanoseconds)
    if which == GLOBALTIMER_HI:
        return i64(x.nanoseconds >> 32)
    if which == DYNAMIC_SMEM_SIZE:
        return i64(at_grid(x.grid).dynamic_bytes)
    return i64(at_grid(x.grid).shared_bytes) if which == TOTAL_SMEM_SIZE else i64(0)


@jit
def _special(x, which, long):
    values = words_i64(result_address(x), LANES)
    if which <= TID_Z:
        # Thread numbers count up with the lane: x first, then y, then z.
        grid = at_grid(x.grid)
        width, height = i64(grid.block[0]), i64(grid.block[1])
        thread = i64(x.warp) * LANES
        tx, ty, tz = thread % width, thread // width % height, thread // (width * height)
        for lane in range(x.lanes):
            values[lane] = tx if which == TID_X else (tz if which == TID_Z else ty)
            tx += 1
            if tx == width:
                tx = i64(0)
                ty += 1
                if ty == height:
                    ty = i64(0)
                    tz += 1
    elif which == LANEID:
        for lane in range(x.lanes):
            values[lane] = lane
    elif which >= LANEMASK_EQ and which <= LANEMASK_GE:
        kind = which - LANEMASK_EQ
        for lane in range(x.lanes):
            bit = i64(1) << lane
            below = bit - 1 if kind & 1 else 2 * bit - 1  # LT and GT's complement LE: odd, even
            if kind == 0:
                below = bit
            elif kind == 3:
                below = (2 * bit - 1) ^ ALL
            elif kind == 4:
                below = (bit - 1) ^ ALL
            values[lane] = below
    else:
        value = _uniform(x, which)
        for lane in range(x.lanes):
            values[lane] = value
    if not long:
        words = words_u32(result_address(x), LANES)
        for lane in range(x.lanes):
            words[lane] = u32(values[lane])


@jit
def _shuffle(x, instruction, op, a, b, c):
    """``shfl``, as PTX defines it by pseudo-code. A source lane that does not execute gives its register's content."""
    value = words_u32(a, LANES)
    operand = words_u32(b, LANES)
    clamp = words_u32(c, LANES)
    result = words_u32(result_address(x), LANES)
    within = i64(0)
    for lane in range(x.lanes):
        distance = i64(operand[lane]) & 31
        limit = i64(clamp[lane]) & 31
        segment = (i64(clamp[lane]) >> 8) & 31
        last = (lane & segment) | (limit & ~segment)
        source = lane ^ distance
        if op == UP:
            source = lane - distance
        elif op == DOWN:
            source = lane + distance
        elif op == INDEX:
            source = (lane & segment) | (distance & ~segment)
        inside = source >= last if op == UP else source <= last
        within |= i64(inside) << lane
        result[lane] = value[(source if inside else lane) & 31]
    write_predicate(x, i64(instruction.pdst), within)


@jit
def _vote(x, instruction, op, a):
    votes = read_predicate(x, i64(instruction.psrc), i64(instruction.psrc_not)) & x.mask
    if instruction.kind[0] == _ABSENT:
        fill_words(a, i64(ALL), x.lanes)
    members = words_u32(a, LANES)
    result = words_u32(result_address(x), LANES)
    passed = i64(0)
    for lane in range(x.lanes):
        group = i64(members[lane]) & x.mask
        ballot = votes & group
        result[lane] = u32(ballot)
        every = ballot == group
        some = ballot != 0
        vote = every if op == VOTE_ALL else (some if op == VOTE_ANY else every or not some)
        passed |= i64(vote) << lane
    write_predicate(x, i64(instruction.pdst), passed)


@jit
def _match(x, instruction, op, a, b):
    parts = 2 if op == MATCH_ANY64 or op == MATCH_ALL64 else 1  # words per value
    value = words_u32(a, parts * LANES)
    members = words_u32(b, LANES)
    result = words_u32(result_address(x), LANES)
    unanimous = i64(0)
    for lane in range(x.lanes):
        group = i64(members[lane]) & x.mask
        low, high = value[lane * parts], value[lane * parts + parts - 1]
        same = i64(0)
        for other in range(x.lanes):
            equal = value[other * parts] == low and value[other * parts + parts - 1] == high
            same |= i64(equal) << other
        same &= group
        if op == MATCH_ANY or op == MATCH_ANY64:
            result[lane] = u32(same)
        else:
            result[lane] = u32(group if same == group else i64(0))
            unanimous |= i64(same == group) << lane
    write_predicate(x, i64(instruction.pdst), unanimous)


@jit
def _reduce(x, op, a, b):
    value = words_u32(a, LANES)
    members = words_u32(b, LANES)
    result = words_u32(result_address(x), LANES)
    sign = 1 << 31 if op == MIN_S or op == MAX_S else 0
    done = i64(0)  # the group of the last lane, and its result
    total = i64(0)
    for lane in range(x.lanes):
        group = i64(members[lane]) & x.mask
        if group != done and group != 0:
            rest = without_lowest(group)
            total = (i64(value[ctz(group)]) ^ sign) - sign
            while rest != 0:
                operand = (i64(value[ctz(rest)]) ^ sign) - sign
                rest = without_lowest(rest)
                if op == ADD:
                    total += operand
                elif op == MIN_S or op == MIN_U:
                    total = min(total, operand)
                elif op == MAX_S or op == MAX_U:
                    total = max(total, operand)
                elif op == AND:
                    total &= operand
                elif op == OR:
                    total |= operand
                else:
                    total ^= operand
            done = group
        result[lane] = u32(total)


@jit
def _elect(x, instruction, a):
    """The leader is the lowest lane of the group."""
    members = words_u32(a, LANES)
    result = words_u32(result_address(x), LANES)
    leaders = i64(0)
    for lane in range(x.lanes):
        group = i64(members[lane]) & x.mask
        leader = ctz(group) if group != 0 else i64(lane)
        result[lane] = u32(leader)
        leaders |= i64(leader == lane) << lane
    write_predicate(x, i64(instruction.pdst), leaders)


@slot
def execute_warp(context, address):
    """Execute a warp-wide operation or read a special register. No faults."""
    x = at_context(context)
    instruction = at_instruction(address)
    op = i64(instruction.op)
    a, b, c = sources(x, instruction)
    if op == SPECIAL:
        _special(x, i64(instruction.sub), instruction.write == _PAIR)
    elif op <= INDEX:
        _shuffle(x, instruction, op, a, b, c)
    elif op <= BALLOT:
        _vote(x, instruction, op, a)
    elif op <= MATCH_ALL64:
        _match(x, instruction, op, a, b)
    elif op == ACTIVEMASK:
        fill_words(result_address(x), i64(x.mask), x.lanes)
    elif op <= XOR:
        _reduce(x, op, a, b)
    else:
        _elect(x, instruction, a)
    if instruction.write == _PAIR:
        store_longs(x, i64(instruction.dst), result_address(x))
    elif instruction.write == _WORD:
        store_words(x, i64(instruction.dst), result_address(x))
    return i64(Fault.NONE)
