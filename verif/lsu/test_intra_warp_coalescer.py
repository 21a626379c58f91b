"""The golden model of the coalescer, case by case; ``bench_intra_warp_coalescer.py`` has the random runs."""

from __future__ import annotations

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
        self.i["line_shift"] = line_shift

    def offer(self, instruction: Instruction | None) -> None:
        """Drive the request stream; without an instruction its payload stays."""
        self.i["request"]["valid"] = instruction is not None
        if instruction is not None:
            drive(view(self.io).i.request.payload, instruction)
        self.comb()

    @property
    def accepted(self) -> bool:
        """In this cycle an instruction goes in."""
        return bool(self.i["request"]["valid"] and self.c["request"]["ready"])

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


def test_an_instruction_without_lanes_leaves_nothing() -> None:
    none, one = Instruction((0,) * LANES, 0, 2), full([0] * LANES)
    assert stream(Coalescer(), [none, one, none, none, one], 10) == [4, 7]


def test_one_instruction_is_held_until_its_last_line_is_found() -> None:
    bench = Coalescer()
    taken = []
    for cycle in range(10):
        bench.i["line"]["ready"] = cycle == 6
        bench.offer(full([0] * LANES))
        taken += [cycle] * bench.accepted
        bench.step()
    assert taken == [0, 1, 2, 6]  # one in the output register, one line found behind it, one held; then with a line


def test_an_instruction_of_many_lines_keeps_the_next_one_waiting() -> None:
    bench = Coalescer()
    bench.i["line"]["ready"] = 1
    taken = []
    for cycle in range(12):
        bench.offer(full([128 * (lane % 4) for lane in range(LANES)]))
        taken += [cycle] * bench.accepted
        bench.step()
    assert taken == [0, 4, 8]


def test_an_empty_block_is_idle_for_ever() -> None:
    bench = Coalescer()
    assert bench.idle() == NEVER
    bench.offer(full([0] * LANES))
    assert bench.idle() == 0
