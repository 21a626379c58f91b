"""Warp-wide operations against the pseudo-code and the sentences of the PTX specification."""

from __future__ import annotations

import functools
import operator
import random
from collections.abc import Callable
from typing import Any

import pytest

from lockstep.models.execution.isa import LANES, PT, Fetch, Kind, Special, Warp, Write
from lockstep.models.execution.warp_ops import execute_warp
from lockstep.verif.bench import interpreted, mask, seeded
from lockstep.verif.models.execution.machine import ALL, Machine, chain

A, B, C, RESULT = 2, 4, 6, 10  # register pairs
VOTE, ANSWER = 5, 7  # predicates
SHUFFLES = (Warp.SHFL_UP, Warp.SHFL_DOWN, Warp.SHFL_BFLY, Warp.SHFL_IDX)
VOTES = (Warp.VOTE_ALL, Warp.VOTE_ANY, Warp.VOTE_UNI, Warp.BALLOT)
MATCHES = (Warp.MATCH_ANY, Warp.MATCH_ALL, Warp.MATCH_ANY64, Warp.MATCH_ALL64)
REDUCTIONS = tuple(op for op in Warp if op.name.startswith("REDUX"))


def operands(*registers: int | None, long: bool = False, immediates: dict[int, int] | None = None) -> dict[str, Any]:
    """Source fields: registers, absent ones (None), or immediates in their places."""
    kind, src, fetch, imm = [0] * 4, [0] * 4, [0] * 4, [0] * 4
    for index, register in enumerate(registers):
        if register is not None:
            kind[index], src[index], fetch[index] = Kind.REGISTER, register, Fetch.WORD
    for index, value in (immediates or {}).items():
        kind[index], imm[index] = Kind.IMMEDIATE, value
        fetch[index] = Fetch.WORD
    if long:
        fetch[0] = Fetch.PAIR
    return dict(kind=kind, src=src, fetch=fetch, imm=imm)


def group_masks(rng: random.Random) -> list[int]:
    """A member mask for each lane: one for all, or tiles of a power of two lanes."""
    if rng.random() < 0.5:
        return [mask(rng, LANES)] * LANES
    tile = rng.choice([1, 2, 4, 8, 16])
    return [((1 << tile) - 1) << lane // tile * tile for lane in range(LANES)]


def prepare(rng: random.Random, machine: Machine, op: Warp) -> tuple[int, dict[str, Any]]:
    """Random operands for an operation; returns the mask and the fields."""
    lanes = mask(rng, LANES) or 1
    fields: dict[str, Any] = dict(op=op, dst=RESULT, write=Write.WORD, pdst=rng.choice([ANSWER, PT]))
    values = [rng.getrandbits(2) if rng.random() < 0.7 else rng.getrandbits(64) for _ in range(LANES)]
    if rng.random() < 0.3:
        values = [values[0]] * LANES
    machine.set_long(A, values)
    if op in SHUFFLES:
        uniform = rng.random() < 0.7
        amounts = [rng.choice([rng.randrange(5), rng.getrandbits(6), rng.getrandbits(32)]) for _ in range(LANES)]
        clamp = rng.choice([0, 0x1F, rng.getrandbits(13), (32 - rng.choice([1, 2, 4, 8, 16])) << 8 | 0x1F])
        machine.registers[B] = amounts[0] if uniform else amounts
        machine.registers[C] = clamp
        immediates = {1: amounts[0], 2: clamp} if uniform and rng.random() < 0.5 else None
        return lanes, fields | operands(A, B, C, immediates=immediates)
    machine.registers[B] = group_masks(rng)
    if op in VOTES:
        machine.predicates[VOTE] = mask(rng, LANES) | rng.choice([0, lanes])
        fields |= dict(psrc=VOTE, psrc_not=rng.randrange(2))
        return lanes, fields | operands(rng.choice([B, None]))
    if op == Warp.ELECT:
        return lanes, fields | operands(B)
    return lanes, fields | operands(A, B, long=op in (Warp.MATCH_ANY64, Warp.MATCH_ALL64))


def shuffled(op: Warp, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The pseudo-code of ``shfl``: source lane, predicate."""
    bval, cval, segmask = b & 0x1F, c & 0x1F, c >> 8 & 0x1F
    max_lane = (lane & segmask) | (cval & ~segmask)
    min_lane = lane & segmask
    if op == Warp.SHFL_UP:
        j = lane - bval
        pval = j >= max_lane
    elif op == Warp.SHFL_DOWN:
        j = lane + bval
        pval = j <= max_lane
    elif op == Warp.SHFL_BFLY:
        j = lane ^ bval
        pval = j <= max_lane
    else:
        j = min_lane | (bval & ~segmask)
        pval = j <= max_lane
    return (j if pval else lane), pval


def expected(machine: Machine, op: Warp, lane: int, lanes: int, fields: dict[str, Any]) -> tuple[int | None, bool]:
    """Result (None: there is none) and predicate of one lane."""
    words = machine.registers
    if op in SHUFFLES:
        b, c = (
            fields["imm"][k] if fields["kind"][k] == Kind.IMMEDIATE else int(words[fields["src"][k], lane])
            for k in (1, 2)
        )
        source, inside = shuffled(op, lane, b, c)
        return int(words[A, source]), inside
    if op == Warp.ACTIVEMASK:
        return lanes, False
    absent = op in VOTES and fields["kind"][0] == Kind.NONE
    group = lanes if absent else lanes & int(words[B, lane])
    members = [k for k in range(LANES) if group >> k & 1]
    if op in VOTES:
        vote = int(machine.predicates[VOTE]) ^ (ALL if fields["psrc_not"] else 0)
        votes = [bool(vote >> k & 1) for k in members]
        uniform = all(votes) or not any(votes)
        passed = {Warp.VOTE_ALL: all(votes), Warp.VOTE_ANY: any(votes), Warp.VOTE_UNI: uniform}.get(op, False)
        return vote & group if op == Warp.BALLOT else None, passed
    if op == Warp.ELECT:
        leader = members[0] if members else lane
        return leader, leader == lane
    if op in MATCHES:
        parts = 2 if op in (Warp.MATCH_ANY64, Warp.MATCH_ALL64) else 1
        value = [tuple(words[A : A + parts, k]) for k in range(LANES)]
        same = sum(1 << k for k in members if value[k] == value[lane])
        if op in (Warp.MATCH_ANY, Warp.MATCH_ANY64):
            return same, False
        return group if same == group else 0, same == group

    def signed(value: int) -> int:
        return value - (1 << 32) if value >> 31 else value

    values = [int(words[A, k]) for k in members]
    functions: dict[Warp, Callable[[list[int]], int]] = {
        Warp.REDUX_ADD: sum,
        Warp.REDUX_MIN_S: lambda v: min(v, key=signed),
        Warp.REDUX_MAX_S: lambda v: max(v, key=signed),
        Warp.REDUX_MIN_U: min,
        Warp.REDUX_MAX_U: max,
        Warp.REDUX_AND: lambda v: functools.reduce(operator.and_, v),
        Warp.REDUX_OR: lambda v: functools.reduce(operator.or_, v),
        Warp.REDUX_XOR: lambda v: functools.reduce(operator.xor, v),
    }
    return functions[op](values) & ALL if values else None, False


@pytest.mark.parametrize("op", [op for op in Warp if op != Warp.SPECIAL], ids=lambda op: op.name.lower())
def test_operation(op: Warp) -> None:
    rng = seeded()
    for _ in range(60):
        machine = Machine(execute_warp, rng)
        lanes, fields = prepare(rng, machine, op)
        if op in VOTES and op != Warp.BALLOT:
            fields["write"] = Write.NONE
        before = machine.copy()
        assert machine.run(lanes, **fields) == 0
        after = machine.copy()
        machine.restore(before)
        results = [expected(machine, op, lane, lanes, fields) for lane in range(LANES)]
        for lane, (result, passed) in enumerate(results):
            if not lanes >> lane & 1:
                continue
            if op in REDUCTIONS and result is None:  # a lane outside its own group: nothing is defined
                machine.registers[RESULT, lane] = after["registers"][RESULT, lane]
            elif result is not None:
                machine.registers[RESULT, lane] = result
            has_predicate = op in SHUFFLES + VOTES[:3] + (Warp.MATCH_ALL, Warp.MATCH_ALL64, Warp.ELECT)
            if has_predicate and fields["pdst"] == ANSWER:
                word = int(machine.predicates[ANSWER]) & ~(1 << lane)
                machine.predicates[ANSWER] = word | int(passed) << lane
        if op == Warp.BALLOT or op in (Warp.MATCH_ANY, Warp.MATCH_ANY64):
            machine.predicates[ANSWER] = after["predicates"][ANSWER]
        assert machine.differences(after) == [], (op, fields)


def test_result_may_overwrite_the_source() -> None:
    """A rotation of a register in place, as reductions in registers do."""
    machine = Machine(execute_warp, seeded())
    old = machine.registers[A].copy()
    machine.run(ALL, op=Warp.SHFL_BFLY, dst=A, write=Write.WORD, **operands(A, None, None, immediates={1: 1, 2: 0x1F}))
    assert machine.registers[A].tolist() == [old[lane ^ 1] for lane in range(LANES)]


def special(machine: Machine, which: Special, write: Write = Write.WORD) -> list[int]:
    machine.run(ALL, op=Warp.SPECIAL, sub=which, dst=RESULT, write=write)
    low, high = machine.registers[RESULT].tolist(), machine.registers[RESULT + 1].tolist()
    return [a | b << 32 for a, b in zip(low, high, strict=True)] if write == Write.PAIR else low


@pytest.mark.parametrize("block", [(1, 1, 1), (32, 1, 1), (7, 5, 3), (16, 16, 1), (1, 1, 64), (3, 100, 2)])
def test_thread_numbers(block: tuple[int, int, int]) -> None:
    machine = Machine(execute_warp, seeded())
    machine.grid["block"] = block
    width, height, depth = block
    for warp in range((width * height * depth + 31) // 32):
        machine.context["warp"] = warp
        threads = range(32 * warp, 32 * warp + 32)
        got = zip(*(special(machine, which) for which in (Special.TID_X, Special.TID_Y, Special.TID_Z)), strict=True)
        assert list(got) == [(t % width, t // width % height, t // width // height) for t in threads]


def test_special_registers() -> None:
    machine = Machine(execute_warp, seeded())
    values = dict(
        ctaid=(70_000, 8, 9), warp=3, warps=48, sm=4, sms=15, slot=20, now=(9 << 32) + 12, nanoseconds=(8 << 32) + 13
    )
    for name, value in values.items():
        machine.context[name] = value
    of_grid = dict(block=(5, 6, 7), size=(80_000, 10, 11), number=77, dynamic_bytes=128, shared_bytes=1024)
    for name, value in of_grid.items():
        machine.grid[name] = value
    uniform = {
        "NTID_X": 5, "NTID_Y": 6, "NTID_Z": 7, "CTAID_X": 70_000, "CTAID_Y": 8, "CTAID_Z": 9, "NCTAID_X": 80_000,
        "NCTAID_Y": 10, "NCTAID_Z": 11, "WARPID": 3, "NWARPID": 48, "SMID": 4, "NSMID": 15, "GRIDID": 77, "CLOCK": 12,
        "CLOCK_HI": 9, "GLOBALTIMER_HI": 8, "DYNAMIC_SMEM_SIZE": 128, "TOTAL_SMEM_SIZE": 1024, "ZERO": 0,
    }  # fmt: skip
    for name, value in uniform.items():
        assert special(machine, Special[name]) == [value] * LANES, name
    assert special(machine, Special.CLOCK64, Write.PAIR) == [(9 << 32) + 12] * LANES
    assert special(machine, Special.GLOBALTIMER, Write.PAIR) == [(8 << 32) + 13] * LANES
    assert special(machine, Special.GRIDID, Write.PAIR) == [77] * LANES
    by_lane = {
        "LANEID": lambda k: k, "LANEMASK_EQ": lambda k: 1 << k, "LANEMASK_LT": lambda k: (1 << k) - 1,
        "LANEMASK_LE": lambda k: (2 << k) - 1, "LANEMASK_GT": lambda k: ALL ^ (2 << k) - 1,
        "LANEMASK_GE": lambda k: ALL ^ (1 << k) - 1,
    }  # fmt: skip
    for name, function in by_lane.items():
        assert special(machine, Special[name]) == [function(lane) for lane in range(LANES)], name


def series(seed: int) -> str:
    rng = random.Random(seed)
    machine = Machine(execute_warp, rng)
    machine.grid["block"] = 5, 4, 9
    machine.context["warp"] = 2

    def step() -> None:
        op = rng.choice(list(Warp))
        lanes, fields = prepare(rng, machine, op)
        if op == Warp.SPECIAL:
            fields |= dict(sub=rng.choice(list(Special)), write=rng.choice([Write.WORD, Write.PAIR]))
        machine.run(lanes, **fields)

    return chain(machine, 80, step)


def test_interpreted_equals_compiled() -> None:
    seed = seeded().getrandbits(32)
    assert interpreted(series, seed) == series(seed)
