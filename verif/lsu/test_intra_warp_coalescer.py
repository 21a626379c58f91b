"""The golden model of the coalescer, case by case; ``bench_intra_warp_coalescer.py`` has the random runs."""

from __future__ import annotations

import random

import pytest

from lockstep.models.jit import view
from lockstep.models.lsu import intra_warp_coalescer
from lockstep.models.time import NEVER
from lockstep.spec.mapping import Mapping
from lockstep.verif.bench import Bench
from lockstep.verif.lsu.bench_intra_warp_coalescer import Instruction, Line, drive

LANES = 32


class Coalescer(Bench):
    """The model with its streams."""

    def __init__(self, line_shift: int = 7) -> None:
        super().__init__(intra_warp_coalescer, lanes=LANES)
        self.i["line_shift"], self.i["map_free"] = line_shift, 8

    def offer(self, instruction: Instruction | None) -> None:
        """Drive the request stream; without an instruction its payload stays."""
        self.i["request"]["valid"] = instruction is not None
        if instruction is not None:
            drive(view(self.io).i.request.payload, instruction)

    @property
    def accepted(self) -> bool:
        """In this cycle an instruction goes in."""
        return bool(self.i["request"]["valid"] and self.o["request"]["ready"])

    @property
    def line(self) -> Line:
        return Line.of(view(self.io).o.line.payload, LANES)

    @property
    def left(self) -> bool:
        """In this cycle a line goes out."""
        return bool(self.o["line"]["valid"] and self.i["line"]["ready"])


def stream(bench: Coalescer, instructions: list[Instruction], cycles: int) -> list[int]:
    """Offer instructions as fast as they are taken; the cycles in which lines leave."""
    bench.i["line"]["ready"] = 1
    left = []
    for cycle in range(cycles):
        bench.offer(instructions[0] if instructions else None)
        if bench.accepted:
            instructions.pop(0)
        if bench.left:
            left.append(cycle)
        bench.step()
    return left


def full(address: list[int], **others: int) -> Instruction:
    return Instruction(tuple(address), (1 << LANES) - 1, 2, **others)


@pytest.mark.parametrize("stride, requests", [(0, 1), (4, 1), (8, 2), (32, 8), (128, 32)])
def test_one_line_per_cycle_without_gaps(stride: int, requests: int) -> None:
    count = 10
    instructions = [full([stride * lane for lane in range(LANES)]) for _ in range(count)]
    total = count * requests
    assert stream(Coalescer(), instructions, total + 10) == list(range(3, 3 + total))


@pytest.mark.parametrize(
    "address, active, expected",
    [
        ([4 * lane for lane in range(LANES)], 0xFFFF_FFFF, [(Mapping.CONSECUTIVE, 0, 0)]),
        ([4 * lane for lane in range(LANES)], 0x0000_FFF1, [(Mapping.CONSECUTIVE, 0, 0)]),
        ([4 * lane + 16 for lane in range(LANES)], 0xFFFF_FFFF, [(Mapping.RANGE, 0, 4), (Mapping.RANGE, 28, 0)]),
        ([4 * lane - 16 for lane in range(4, 36)], 0x7FFF_FF00, [(Mapping.CONSECUTIVE, 8, 8)]),
        ([4 * lane + 8 for lane in range(LANES)], 0x0000_0FF0, [(Mapping.RANGE, 4, 6)]),
        ([64] * LANES, 0xFFFF_FFFF, [(Mapping.BROADCAST, 0, 16)]),
        ([64] * LANES, 0x0000_0030, [(Mapping.BROADCAST, 4, 16)]),
        ([64] * LANES, 0x0000_0020, [(Mapping.SINGLE, 5, 16)]),
        ([4 * (lane ^ 1) for lane in range(LANES)], 0xFFFF_FFFF, [(Mapping.RANDOM, 0, 1)]),
        ([8 * lane for lane in range(LANES)], 0xFFFF_FFFF, [(Mapping.RANDOM, 0, 0), (Mapping.RANDOM, 16, 0)]),
        ([4 * lane + 128 * (lane & 1) for lane in range(LANES)], 3, [(Mapping.SINGLE, 0, 0), (Mapping.SINGLE, 1, 1)]),
    ],
)
def test_mapping_patterns(address: list[int], active: int, expected: list[tuple[Mapping, int, int]]) -> None:
    """Figure 3.8 of the thesis, and partial warps."""
    bench = Coalescer()
    bench.i["line"]["ready"] = 1
    bench.offer(Instruction(tuple(address), active, 2))
    got = []
    for _ in range(6):
        if bench.left:
            got.append((Mapping(bench.line.mapping), bench.line.thread, bench.line.word))
        bench.step()
        bench.offer(None)
    assert got == expected


def test_random_mappings_flow_at_full_rate_while_the_table_has_room() -> None:
    rng = random.Random(1)
    words = rng.sample(range(LANES), LANES)
    instructions = [full([4 * word for word in words]) for _ in range(20)]
    assert stream(Coalescer(), instructions, 40) == list(range(3, 23))


def test_only_random_loads_wait_for_the_table() -> None:
    words = [4 * (lane ^ 5) for lane in range(LANES)]
    for offered, lines_left in ((full(words), 0), (full(words, store=1), 1), (full(words, atomic=1), 1)):
        bench = Coalescer()
        bench.i["map_free"] = 0
        assert len(stream(bench, [offered], 10)) == lines_left


def test_an_instruction_without_lanes_leaves_nothing() -> None:
    none, one = Instruction((0,) * LANES, 0, 2), full([0] * LANES)
    assert stream(Coalescer(), [none, one, none, none, one], 10) == [4, 7]


def test_ready_falls_only_with_two_instructions_in_the_entries() -> None:
    bench = Coalescer()
    bench.offer(full([0] * LANES))
    taken = 0
    for _ in range(6):
        taken += bench.accepted
        bench.step()
    assert taken == 4  # one in the output register, one found behind it, two in the entries


def test_an_empty_block_is_idle_for_ever() -> None:
    bench = Coalescer()
    assert bench.idle() == NEVER
    bench.offer(full([0] * LANES))
    assert bench.idle() == 0
