"""Registers numbered by their first use: Jatala section 5.2, on code of a few instructions and on all kernels."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.models.execution.isa import Category, Fetch, Group, Int, Long, Memory, Space, Write
from lockstep.sim import Gpu, kernels
from lockstep.sim.compile import listing
from lockstep.sim.compile.listing import Use
from lockstep.sim.compile.ptx.allocate import allocation
from lockstep.sim.compile.ptx.assemble import assemble
from lockstep.sim.compile.ptx.build import drafts
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.kernel import Kernel
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro, Source
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.compile.ptx.passes.first_use import renumber
from lockstep.sim.device import description
from lockstep.spec import registry
from lockstep.spec.parameters import Gpu as Description
from lockstep.spec.passes import ALLOCATION, DECLARATION, FIRST_USE, Pass
from lockstep.verif.bench import seeded
from lockstep.verif.cli.test_cli import lockstep
from lockstep.verif.conftest import partly
from lockstep.verif.sim.test_random_programs import simulate

HERE = "lockstep.verif.sim.compile.ptx.test_first_use"
COMPILED = sorted((Path(__file__).parent / "compiled").glob("*.ptx"))
FILES = [*COMPILED, *sorted(kernels.FOLDER.glob("*/*.ptx"))]
SEEDS = 3  # of allocations in disorder
RANDOM_PROGRAMS = 6
RUN = ("b+tree", "dxtc", "gemm", "hotspot", "lavaMD", "lud", "spmv", "stencil")


# ------------------------------------------------------------------------------------------------------------- a draft


def made(registers: int, places: Sequence[tuple[int, int]], *micros: Micro) -> Draft:
    """A draft of so many registers, with values of these widths at these places."""
    kernel = Kernel("k", "k.ptx", [], 0, 0, False, 0, None, None, len(micros), 1, registers, predicates=2)
    draft = Draft(kernel, Code(), 63)
    for width, place in places:
        draft.code.register(width)
        draft.physical.append(place)
    draft.code.list = list(micros)
    return draft


def add(result: int, *sources: int, **others: Any) -> Micro:
    read = tuple(Source(Fetch.WORD, register) for register in sources)
    return Micro(Group.INT, Int.ADD, Category.INTEGER, read, result, Write.WORD, **others)


def add_long(result: int, *sources: int) -> Micro:
    read = tuple(Source(Fetch.PAIR, register) for register in sources)
    return Micro(Group.LONG, Long.ADD, Category.INTEGER, read, result, Write.PAIR)


def renumbered(draft: Draft, renumber: Callable[[Draft], None] = renumber) -> list[int]:
    """The places after the pass, which is idempotent and takes no register more."""
    registers = draft.kernel.registers
    renumber(draft)
    places = list(draft.physical)
    renumber(draft)
    assert draft.physical == places and draft.kernel.registers == registers
    return places


def test_what_is_named_first_comes_first() -> None:
    words = [(32, place) for place in range(5)]
    assert renumbered(made(5, words, add(4), add(2), add(4), add(0), add(1), add(3))) == [2, 3, 1, 4, 0]


def test_sources_come_before_results_and_in_the_order_in_which_they_are_written() -> None:
    words = [(32, place) for place in range(4)]
    assert renumbered(made(4, words, add(0, 3, 1, 2))) == [3, 1, 2, 0]
    store = Micro(Group.MEMORY, Memory.STORE, Category.GLOBAL, (Source(Fetch.WORD, 2),), space=Space.GLOBAL)
    store.operands = {0: 3, 1: 0}
    load = Micro(Group.MEMORY, Memory.LOAD, Category.GLOBAL, (Source(Fetch.WORD, 2),), space=Space.GLOBAL)
    load.results = {0: 1, 1: 0}
    assert renumbered(made(4, words, store, load)) == [2, 3, 0, 1]
    assert renumbered(made(4, words, load, store)) == [2, 1, 0, 3]


def test_predicates_and_registers_without_a_place_stay() -> None:
    mixed = [(1, 1), (32, 1), (1, 0), (32, 0), (32, NONE), (16, 2)]
    assert renumbered(made(3, mixed, add(5, guard=0), add(1, psrc=2), add(3))) == [1, 1, 0, 2, NONE, 0]


def test_a_value_that_nothing_names_moves_with_its_place() -> None:
    words = [(32, 0), (32, 1), (32, 1)]
    assert renumbered(made(2, words, add(2), add(0))) == [1, 0, 0]


def test_the_two_places_of_a_long_value_stay_together_and_even() -> None:
    longs = [(64, 0), (64, 2), (64, 4)]
    assert renumbered(made(6, longs, add_long(2), add_long(0, 2), add_long(1))) == [2, 4, 0]


def test_the_next_register_fills_the_hole_before_a_long_value() -> None:
    mixed = [(64, 0), (32, 2), (32, 3), (64, 4)]
    assert renumbered(made(6, mixed, add(2), add_long(3), add_long(0, 3), add(1))) == [4, 1, 0, 2]
    assert renumbered(made(6, mixed, add_long(3), add(2), add_long(0, 3), add(1))) == [4, 3, 2, 0]


def test_without_another_register_a_long_value_goes_before_the_last_one() -> None:
    """A hole in front of it would take a register more."""
    mixed = [(64, 0), (32, 2)]
    assert renumbered(made(3, mixed, add(1), add_long(0))) == [0, 2]
    longs = [(64, 0), (64, 2), (32, 4), (32, 5), (32, 6)]
    assert renumbered(made(7, longs, add(4), add(3), add(2), add_long(1), add_long(0))) == [4, 2, 6, 1, 0]


def test_places_of_long_values_stay_together_also_while_short_ones_are_there() -> None:
    mixed = [(64, 2), (32, 3), (32, 2), (32, 0), (32, 1)]
    assert renumbered(made(4, mixed, add(1), add(3), add(2), add(4), add_long(0))) == [0, 1, 0, 2, 3]


def test_an_unused_place_goes_to_the_end() -> None:
    words = [(32, 0), (32, 3), (64, 4)]  # places 1 and 2 are free
    assert renumbered(made(6, words, add(1), add(0), add_long(2))) == [1, 0, 2]
    assert renumbered(made(6, words, add_long(2), add(1), add(0))) == [3, 2, 0]
    assert renumbered(made(6, words[1:], add(0), add_long(1))) == [0, 2]


# ------------------------------------------------------------------------------------------------------------ all files


def compiled(path: Path, limit: int = 255) -> list[Draft]:
    return list(drafts(parse(path.read_text(encoding="utf-8"), str(path)), limit)[0].values())


def disorder(draft: Draft, seed: int) -> None:
    """Put places of the same kind for each other: those of long values in twos, and the others."""
    rng = random.Random(seed)
    new = list(range(draft.kernel.registers))
    for group in (sorted({place & ~1 for place in wide(draft)}), sorted({*new} - wide(draft))):
        to = rng.sample(group, len(group))
        for place, other in zip(group, to, strict=True):
            new[place] = other
            if place in wide(draft):
                new[place + 1] = other + 1
    draft.physical = [
        place if place == NONE or bits == 1 else new[place]
        for place, bits in zip(draft.physical, draft.code.bits, strict=True)
    ]


def disordered(draft: Draft, seed: int) -> None:
    """An allocation without any order."""
    allocation(draft)
    disorder(draft, seed)


def wide(draft: Draft) -> set[int]:
    """The places of long values."""
    values = zip(draft.physical, draft.code.bits, strict=True)
    starts = {place for place, bits in values if bits == 64 and place != NONE}
    return starts | {place + 1 for place in starts}


def first_uses(draft: Draft) -> list[int]:
    """The first micro-operation that needs a register, for every register; the end where none does."""
    need = assemble(draft).code["need"]
    bits = np.unpackbits(need.view(np.uint8), axis=1, bitorder="little")[:, : draft.kernel.registers]
    return np.where(bits.any(axis=0), bits.argmax(axis=0), len(bits)).tolist()


def check(draft: Draft) -> None:
    """Renumber, and check that the order is right, and that all else is as before."""
    before, registers, predicates = list(draft.physical), draft.kernel.registers, draft.kernel.predicates
    after = renumbered(draft)
    assert (draft.kernel.registers, draft.kernel.predicates) == (registers, predicates)
    moves: dict[int, int] = {}
    for old, new, bits in zip(before, after, draft.code.bits, strict=True):
        if bits == 1 or old == NONE:
            assert new == old
            continue
        for half in range(max(bits // 32, 1)):
            assert moves.setdefault(old + half, new + half) == new + half
            assert new + half < registers
        assert bits < 64 or new % 2 == 0
    assert len(set(moves.values())) == len(moves)
    uses, pairs = first_uses(draft), wide(draft)
    twos = [min(uses[place : place + 2]) for place in range(0, registers - 1, 2)]
    singles = [use for place, use in enumerate(uses) if place not in pairs]
    assert twos == sorted(twos) and singles == sorted(singles)


@pytest.mark.parametrize("path", partly(FILES), ids=lambda path: path.stem)
def test_every_kernel_is_in_the_order_of_its_uses_and_takes_no_register_more(path: Path) -> None:
    for draft in compiled(path):
        check(draft)
        for seed in range(SEEDS):
            disorder(draft, seed)
            check(draft)


@pytest.mark.parametrize("path", partly(FILES), ids=lambda path: path.stem)
def test_an_allocation_in_disorder_becomes_the_same(path: Path) -> None:
    for draft in compiled(path):
        renumber(draft)
        uses = first_uses(draft)
        for seed in range(SEEDS):
            disorder(draft, seed)
            renumber(draft)
            assert first_uses(draft) == uses


@pytest.mark.exhaustive
@pytest.mark.long
def test_two_kernels_need_a_lock_earlier() -> None:
    """With our allocation, which gives the lowest free place, and PTX as it is; some need it later, as long values were
    coloured first.

    The pass promises neither: a word that fills the hole before a long value takes an early place for a late use. That
    costs two functions three and seven instructions, at one percentage each.
    """
    earlier, later = set(), set()
    for name in kernels.names():
        kernel = kernels.find(name)
        for listed in listing.listing(kernel.ptx, description.load("gtx480"), kernel.registers).kernels:
            for part in listed.registers.parts:
                change = part.renumbered - part.allocated
                if change < 0:
                    earlier.add((name, listed.name, part.percent, change))
                elif change > 0:
                    later.add(name)
    shading = ("shape-from-shading", "shading<3, 32, 60, 4, 64, false, false>", 40, -7)
    assert earlier == {("pvc", "reduce", 40, -3), shading}
    assert {"b+tree", "lud", "stencil"} <= later


# ------------------------------------------------------------------------------------------------------------- results


def with_passes(monkeypatch: pytest.MonkeyPatch, *passes: Pass) -> None:
    """Compile with more passes than those of the mechanisms."""
    usual = registry.passes

    def more(gpu: Description) -> tuple[Pass, ...]:
        return (*usual(gpu), *passes)

    monkeypatch.setattr(registry, "passes", more)


def in_disorder(seed: int) -> Pass:
    return Pass(ALLOCATION, f"{HERE}:disordered", (("seed", seed),))


def outputs(name: str) -> dict[str, bytes]:
    """The results of a kernel, which are right, bit by bit."""
    kernel = kernels.find(name)
    gpu = Gpu("tesla-c2050")
    data = kernel.setup("tiny", 1)
    found = kernel.run(gpu, gpu.load(kernel.ptx, registers=kernel.registers), data)
    outcome = kernels.check(kernel, found, data)
    assert outcome.passed, outcome.message
    return {key: np.asarray(value).tobytes() for key, value in found.items()}


@pytest.mark.parametrize("name", partly(RUN, 4))
def test_results_are_those_without_the_pass(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    expected = outputs(name)
    for passes in ((FIRST_USE,), (in_disorder(1), FIRST_USE)):
        with monkeypatch.context() as patch:
            with_passes(patch, *passes)
            assert outputs(name) == expected


@pytest.mark.exhaustive
def test_random_programs_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = seeded()
    for _ in range(RANDOM_PROGRAMS):
        seed = rng.getrandbits(32)
        expected = simulate(seed)["memory"]
        with monkeypatch.context() as patch:
            with_passes(patch, in_disorder(seed), FIRST_USE)
            assert simulate(seed)["memory"] == expected


def test_passes_come_with_registers_that_are_shared() -> None:
    assert registry.passes(description.load("gtx480", selected=["register-sharing"])) == (FIRST_USE,)
    for numbering, passes in (("allocated", ()), ("declaration", (DECLARATION,))):
        gpu = description.load("gtx480", {"sharing.numbering": numbering}, ["register-sharing"])
        assert registry.passes(gpu) == passes
    assert registry.passes(description.load("gtx480", selected=["scratchpad-sharing"])) == ()


# ------------------------------------------------------------------------------------------------------------- listing


PTX = """.version 8.7
.target sm_90
.address_size 64
.entry k(.param .u64 out)
{
.reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<2>;
mov.u32 %r1, %tid.x;
ld.param.u64 %rd1, [out];
setp.eq.u32 %p1, %r1, 0;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
add.s32 %r2, %r1, 7;
add.s32 %r3, %r2, %r1;
@%p1 st.global.u32 [%rd3], %r3;
ret;
}
"""


def test_the_listing_says_which_line_uses_a_register_first(tmp_path: Path) -> None:
    """The pairs take places 0 and 2, or 2 and 4; the words what is left."""
    file = tmp_path / "k.ptx"
    file.write_text(PTX, encoding="utf-8")
    [kernel] = listing.listing(file, description.load("gtx480"), {"k": 20}).kernels
    found = kernel.registers
    assert (found.per_thread, found.micro_operations, len(found.allocated)) == (20, 9, 6)
    assert sorted(use.before for use in found.allocated if use) == [0, 1, 1, 3, 3, 5]
    assert found.declared == [Use(7, 0), Use(12, 5), Use(8, 1), Use(8, 1), Use(10, 3), Use(10, 3)]
    assert found.renumbered == [Use(7, 0), Use(12, 5), Use(8, 1), Use(8, 1), Use(10, 3), Use(10, 3)]
    unshared = [(part.percent, part.unshared, part.renumbered) for part in found.parts]
    assert unshared == [(10, 18, 9), (20, 16, 9), (30, 14, 9), (40, 12, 9), (50, 10, 9), (60, 8, 9), (70, 6, 9),
                        (80, 4, 3), (90, 2, 1)]  # fmt: skip
    [fewer] = listing.listing(file, description.load("gtx480"), {"k": 3}).kernels
    assert fewer.registers.per_thread == 6


def test_a_register_that_nothing_names_is_listed_without_a_line() -> None:
    draft = made(3, [(32, 0), (32, 2)], add(0), add(1))
    assert [use and use.before for use in listing._first_uses(draft)] == [0, None, 1]


def test_registers_above_63_are_listed_too() -> None:
    draft = made(200, [(32, 0), (32, 64), (32, 199)], add(2), add(1))
    assert [place for place, use in enumerate(listing._first_uses(draft)) if use] == [64, 199]
    assert renumbered(draft) == [2, 1, 0]


def test_the_command_shows_registers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    code, shown, _ = lockstep(capsys, "ptx", "lud", "--gpu", "gtx480", "--show", "registers")
    assert code == 0 and "lud_perimeter: registers per thread 36, needed 19, micro-operations 495" in shown
    assert shown.count("renumbered: the same") == 2 and shown.count("declared: the same") == 0
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in shown.splitlines() if "│" in line]
    kernel = kernels.find("lud")
    found = listing.listing(kernel.ptx, description.load("gtx480"), kernel.registers).kernels[2]
    (name, *unshared), (_, *allocated), (_, *declared), (_, *renumbered) = rows[8:12]
    assert [name, *unshared[:2], unshared[-1]] == ["lud_internal", "unshared registers", "10", "1"]
    assert allocated == ["allocated", *(str(part.allocated) for part in found.registers.parts)]
    assert declared == ["declared", *(str(part.declared) for part in found.registers.parts)]
    assert renumbered == ["renumbered", *(str(part.renumbered) for part in found.registers.parts)]
    cells = shown[shown.rindex("  renumbered   0:") : shown.index("Micro-operations")].split()
    uses = [f"{use.line}+{use.before}" for use in found.registers.renumbered if use]
    assert cells == ["renumbered", "0:", *uses[:10], "10:", *uses[10:]]
    code, shown, _ = lockstep(capsys, "ptx", "lud", "--gpu", "gtx480", "--json", "-")
    assert code == 0 and json.loads(shown)["kernels"][2]["registers"] == asdict(found.registers)
