"""The register file hierarchy: placements by hand, rules that all of them keep, and counts of kernels."""

from __future__ import annotations

from collections import Counter

import pytest

from lockstep.sim.compile.ptx.passes.register_hierarchy import ENTRY, LAST, Value, place, strands, values
from lockstep.sim.compile.ptx.passes.register_regions.operations import Operation
from lockstep.sim.study.job import Job, execute
from lockstep.verif.bench import seeded


def op(
    pc: int, writes: int = 0, reads: int = 0, *, guarded: bool = False, waits: bool = False, long: bool = False
) -> Operation:
    return Operation(pc, (), reads, writes, guarded, waits, long)


A, B, C = 1, 2, 4

Placed = dict[tuple[int, int], tuple[int, bool]]


def placed(strand: list[Operation], needed: int = 0, entries: int = 1, memory: tuple[int, ...] = ()) -> Placed:
    """By register and first instruction, the level, and whether the main file gets the value, too."""
    arithmetic = [number not in memory for number in range(len(strand))]
    found = place(values(strand, arithmetic, needed), entries)
    return {(value.register, value.start): (level, value.needed) for value, level in found}


def test_a_value_between_two_instructions_is_the_last_result() -> None:
    assert placed([op(0, A), op(1, B, A), op(2, 0, B)]) == {(0, 0): (LAST, False), (1, 1): (LAST, False)}


def test_what_memory_instructions_read_is_not() -> None:
    assert placed([op(0, A), op(1, 0, A)], memory=(1,)) == {(0, 0): (ENTRY, False)}


def test_a_value_that_is_needed_later_is_in_the_main_file_too() -> None:
    assert placed([op(0, A), op(1, B, A)], needed=A | B) == {(0, 0): (LAST, True)}
    assert placed([op(0, A)], needed=A) == {}


def test_what_is_read_twice_is_copied() -> None:
    assert placed([op(0, B, A), op(1, C, A)], needed=B | C) == {(0, 0): (ENTRY, False)}
    assert placed([op(0, B, A)], needed=B) == {}


def test_a_guarded_write_leaves_values_of_other_lanes() -> None:
    """So the first value goes to the main file, and what is read behind the guarded write comes from there."""
    strand = [op(0, A), op(1, B, A), op(2, A, 0, guarded=True), op(3, C, A)]
    assert placed(strand, needed=C) == {(0, 0): (LAST, True), (1, 1): (LAST, False)}


def test_what_comes_from_memory_is_in_the_main_file() -> None:
    assert placed([op(0, A, long=True)]) == {}


def test_the_denser_value_has_the_entry() -> None:
    """Both are read by memory instructions; one in three, the other in two instructions."""
    strand = [op(0, A), op(1, B), op(2, 0, B), op(3, 0, A)]
    assert placed(strand, memory=(2, 3)) == {(1, 1): (ENTRY, False)}
    assert placed(strand, memory=(2, 3), entries=2) == {(0, 0): (ENTRY, False), (1, 1): (ENTRY, False)}


def test_strands_end_where_a_warp_may_wait() -> None:
    code = [op(0, A, long=True), op(1, B), op(2, C, A), op(3, waits=True), op(4, B, C)]
    assert [(part.start, part.stop) for part in strands(code)] == [(0, 2), (2, 4), (4, 5)]


def test_no_place_has_two_values() -> None:
    """Of random strands: at each instruction, as many values as there are places, and each value read as written."""
    random = seeded()
    for _ in range(300):
        strand = [
            op(pc, 1 << random.randrange(6), random.getrandbits(6), guarded=random.random() < 0.2,
               long=random.random() < 0.1)
            for pc in range(random.randrange(1, 14))
        ]  # fmt: skip
        entries = random.randrange(1, 4)
        arithmetic = [random.random() < 0.7 for _ in strand]
        found = place(values(strand, arithmetic, random.getrandbits(6)), entries)
        for level, room in ((LAST, 1), (ENTRY, entries)):
            mine = [value for value, where in found if where == level]
            for point in range(len(strand)):  # between an instruction and the next one
                assert sum(value.start <= point < value.end for value in mine) <= room
            at = Counter(value.start for value in mine)
            for point, count in at.items():
                assert count + sum(value.start < point < value.end for value in mine) <= room
        for value, level in found:
            _check(strand, arithmetic, value, level)


def _check(strand: list[Operation], arithmetic: list[bool], value: Value, level: int) -> None:
    bit = 1 << value.register
    between = strand[value.start + 1 : value.end]
    assert not any(operation.writes & bit for operation in between)
    assert all(strand[number].reads & bit for number in value.reads)
    if value.written:
        assert strand[value.start].writes & bit
        assert not strand[value.start].guarded and not strand[value.start].long
    if level == LAST:
        assert all(arithmetic[number] for number in (value.start, *value.reads))


@pytest.mark.parametrize("kernel", ["hotspot", "bfs", "sgemm"])
def test_kernels(kernel: str) -> None:
    """Few accesses are left to the main file, none is lost; time is that of two-level scheduling."""
    result = execute(Job(kernel, size="tiny", mechanisms=["rfh"]))
    assert result["checked"], result["message"]
    stats = result["stats"]
    reads = sum(stats[f"rfh.{level}_reads"] for level in ("last", "small", "main"))
    assert 0.8 * stats["registers.reads"] <= reads <= stats["registers.reads"]
    assert 0 < stats["rfh.main_reads"] < 0.75 * reads
    assert stats["rfh.main_writes"] <= stats["registers.writes"]
    other = execute(Job(kernel, size="tiny", settings={"core.scheduler": "two-level"}))
    assert result["cycles"] == other["cycles"]
