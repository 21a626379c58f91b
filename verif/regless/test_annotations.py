"""Annotations are right on every path: of all kernels and of random code, by the checker and by warps that run. Both
find what is planted, and what algorithm 2 of the thesis loses; run as a program, it lists that for all kernels."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lockstep.sim import kernels
from lockstep.sim.compile.cuda import nvrtc
from lockstep.sim.compile.ptx.assemble import assemble
from lockstep.sim.compile.ptx.build import drafts
from lockstep.sim.compile.ptx.cfg import ControlFlowGraph
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.compile.ptx.passes.register_regions import as_printed
from lockstep.sim.compile.ptx.passes.register_regions.annotations import Annotated, annotated, divide, tables
from lockstep.sim.compile.ptx.passes.register_regions.operations import add_deliveries, blocks
from lockstep.sim.compile.ptx.passes.register_regions.regions import Bounds
from lockstep.spec.passes import REGISTER_NUMBERING
from lockstep.verif.bench import seeded
from lockstep.verif.conftest import partly
from lockstep.verif.regless.checker import check
from lockstep.verif.regless.code import Staged, staged
from lockstep.verif.regless.compiled import LINES, compiled, executed, faults, kernels_of
from lockstep.verif.regless.planted import erased_early, hard, not_preloaded
from lockstep.verif.regless.random_code import Maker
from lockstep.verif.sim.test_programs import FOLDER, INSTANCES, PROGRAMS

COMPILED = Path(__file__).parents[1] / "sim" / "compile" / "ptx" / "compiled"
BOUNDS = Bounds(32, LINES)
RANDOM = 5
DIVERGENT = "RAY"
"""A kernel with nested branches in a loop that rotates."""


@pytest.mark.parametrize("name", partly(kernels.names()))
def test_kernels(name: str) -> None:
    rng = seeded()
    for kernel in kernels_of(kernels.find(name).ptx).values():
        assert faults(kernel, rng) == [], kernel.shown


@pytest.mark.parametrize("name", partly(PROGRAMS))
def test_programs(name: str) -> None:
    rng = seeded()
    found = nvrtc.compile_file(FOLDER / name, names=INSTANCES.get(name, ()))
    for kernel in kernels_of(found.path).values():
        assert faults(kernel, rng, 4) == [], kernel.shown


@pytest.mark.parametrize("path", sorted(COMPILED.glob("*.ptx")), ids=lambda path: path.stem)
def test_spilled_registers_and_small_banks(path: Path) -> None:
    rng = seeded()
    for kernel in kernels_of(path, registers=16, lines=4, limit=24).values():
        assert faults(kernel, rng, 4) == [], kernel.shown


def test_random_code() -> None:
    rng = seeded()
    for _ in range(RANDOM):
        text = Maker(rng).ptx()
        options = {"registers": rng.choice([12, 20, 32]), "lines": rng.choice([4, 16]), "limit": rng.choice([16, 63])}
        (kernel,) = compiled(text, **options).values()
        assert faults(kernel, rng) == [], f"{options}\n{text}"


def test_lanes_that_wait_for_others_in_an_endless_loop() -> None:
    """Their registers are kept, though nobody will read them."""
    text = """.version 8.7
.target sm_90
.address_size 64
.entry k(.param .u64 p)
{
.reg .b32 %r<4>; .reg .b64 %d<2>; .reg .pred %p<2>;
ld.param.u64 %d0, [p];
mov.u32 %r0, %tid.x;
setp.lt.u32 %p0, %r0, 7;
@%p0 bra B;
A: add.u32 %r1, %r1, 1;
bra A;
B: st.global.u32 [%d0], %r0;
ret;
}
"""
    (kernel,) = compiled(text).values()
    assert faults(kernel, seeded()) == []


# ------------------------------------------------------------------------------------------------------- planted faults


def draft(name: str) -> Draft:
    """The first kernel of a folder."""
    path = kernels.find(name).ptx
    made, *_ = drafts(parse(path.read_text(encoding="utf-8"), str(path)), 63, [REGISTER_NUMBERING])[0].values()
    add_deliveries(made)
    return made


def remade(made: Draft, regions: list[Annotated]) -> list[Staged]:
    made.kernel.tables |= tables(regions, len(made.code.list))
    return staged(assemble(made))


@pytest.mark.long
@pytest.mark.parametrize("plant", [erased_early, hard, not_preloaded])
def test_planted_faults_are_found(plant: Callable[[list[Annotated]], Iterator[list[Annotated]]]) -> None:
    """By the checker all of them, and by warps that run most: a lane must come along."""
    rng = seeded()
    made = draft(DIVERGENT)
    right = divide(made, BOUNDS)
    assert check(remade(made, right)) == [] == executed(remade(made, right), rng)
    faulty = list(plant(right))
    assert faulty
    seen = 0
    for regions in rng.sample(faulty, min(len(faulty), 5)):
        code = remade(made, regions)
        assert check(code) != []
        seen += executed(code, rng, 30) != []
    assert seen


# ---------------------------------------------------------------------------------------------- algorithm 2, as printed


def by_algorithm_2(made: Draft) -> list[Staged]:
    """The regions of a kernel by the thesis's rule for soft definitions, to the letter."""
    graph = ControlFlowGraph(made.code.successors())
    code = as_printed.without_guards(blocks(made, graph))
    return remade(made, list(annotated(code, as_printed.liveness(made.code, graph, code), BOUNDS)))


def losses(name: str, rng: random.Random) -> dict[str, tuple[list[str], list[str]]]:
    """What algorithm 2 loses in the kernels of a folder: by the checker, and by warps that run."""
    path = kernels.find(name).ptx
    found = {}
    for made in drafts(parse(path.read_text(encoding="utf-8"), str(path)), 63, [REGISTER_NUMBERING])[0].values():
        add_deliveries(made)
        code = by_algorithm_2(made)
        checked = [error for error in check(code) if "lost" in error or "not present" in error]
        if checked:
            found[made.kernel.shown] = checked, executed(code, rng, 40)
    return found


@pytest.mark.parametrize(("name", "kernel"), [("kmeans", "kmeans_point"), ("pvr", "map_emit")])
def test_algorithm_2_loses_values(name: str, kernel: str) -> None:
    checked, ran = losses(name, seeded())[kernel]
    assert checked and ran


def test_algorithm_2_loses_nothing_without_divergence() -> None:
    assert losses("fft", seeded()) == {}


if __name__ == "__main__":  # on which kernels
    for folder in kernels.names():
        for shown, (checked, ran) in losses(folder, random.Random(1)).items():
            print(f"{folder} {shown}: {len(checked)} by the checker, as {checked[0]}; {len(ran)} of 40 warps")
