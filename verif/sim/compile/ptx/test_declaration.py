"""Registers numbered as the PTX declares them: on code of a few instructions and on all kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.sim.compile.ptx.build import drafts
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.micro import NONE
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.compile.ptx.passes.declaration import renumber
from lockstep.sim.compile.ptx.passes.places import named
from lockstep.spec.passes import DECLARATION
from lockstep.verif.bench import seeded
from lockstep.verif.conftest import partly
from lockstep.verif.sim.compile.ptx import test_first_use
from lockstep.verif.sim.compile.ptx.test_first_use import (
    FILES,
    RUN,
    SEEDS,
    add,
    add_long,
    disorder,
    in_disorder,
    made,
    wide,
)
from lockstep.verif.sim.test_random_programs import simulate

RANDOM_PROGRAMS = 4


def declared(draft: Draft, *registers: int) -> Draft:
    """The draft of a kernel that declares these registers in this order."""
    draft.code.declared = {register: (1, place) for place, register in enumerate(registers)}
    return draft


def renumbered(draft: Draft) -> list[int]:
    return test_first_use.renumbered(draft, renumber)


def test_what_is_declared_first_comes_first_whatever_the_code_names_first() -> None:
    words = [(32, place) for place in range(4)]
    assert renumbered(declared(made(4, words, add(3, 2), add(1, 0)), 1, 0, 3, 2)) == [1, 0, 3, 2]


def test_a_place_stands_where_the_first_of_its_values_is_declared() -> None:
    words = [(32, 0), (32, 1), (32, 0)]
    assert renumbered(declared(made(2, words, add(0), add(1), add(2)), 2, 1, 0)) == [0, 1, 0]
    assert renumbered(declared(made(2, words, add(0), add(1)), 2, 1, 0)) == [1, 0, 1]  # nothing names the first one


def test_registers_without_a_declaration_follow_by_their_first_use() -> None:
    words = [(32, place) for place in range(4)]
    assert renumbered(declared(made(4, words, add(3), add(2), add(1), add(0)), 0)) == [0, 3, 2, 1]


def test_the_registers_of_an_earlier_function_come_first() -> None:
    draft = made(2, [(32, 0), (32, 1)], add(0), add(1))
    draft.code.declared = {0: (20, 0), 1: (10, 7)}
    assert renumbered(draft) == [1, 0]


def test_the_two_places_of_a_long_value_stay_together_and_even() -> None:
    mixed = [(64, 0), (32, 2), (32, 3), (64, 4)]
    code = add(2), add_long(3), add_long(0, 3), add(1)
    assert renumbered(declared(made(6, mixed, *code), 0, 1, 3, 2)) == [0, 2, 3, 4]
    assert renumbered(declared(made(6, mixed, *code), 1, 3, 0, 2)) == [4, 0, 1, 2]


def test_predicates_and_registers_without_a_place_stay() -> None:
    mixed = [(1, 1), (32, 1), (1, 0), (32, 0), (32, NONE)]
    assert renumbered(declared(made(2, mixed, add(3, guard=0), add(1, psrc=2)), 0, 1, 2, 3, 4)) == [1, 0, 0, 1, NONE]


def check(draft: Draft) -> None:
    """Renumber, and check the order: of twos, and of the places that no long value has."""
    predicates = [place for place, bits in zip(draft.physical, draft.code.bits, strict=True) if bits == 1]
    after = renumbered(draft)
    assert predicates == [place for place, bits in zip(after, draft.code.bits, strict=True) if bits == 1]
    end = (1 << 30, 0)
    first = [end] * draft.kernel.registers
    for register, places in named(draft).items():
        assert len(places) == 1 or places[0] % 2 == 0
        for place in places:
            first[place] = min(first[place], draft.code.declared.get(register, end))
    twos = [min(first[place : place + 2]) for place in range(0, len(first) - 1, 2)]
    singles = [where for place, where in enumerate(first) if place not in wide(draft)]
    assert twos == sorted(twos) and singles == sorted(singles)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_kernel_is_in_the_order_of_its_declarations_whatever_the_allocation(path: Path) -> None:
    for draft in drafts(parse(path.read_text(encoding="utf-8"), str(path)), 255)[0].values():
        check(draft)
        places = list(draft.physical)
        for seed in range(SEEDS):
            disorder(draft, seed)
            check(draft)
            assert all(draft.physical[register] == places[register] for register in named(draft))


PTX = """.version 8.7
.target sm_90
.address_size 64
.entry k(.param .u64 out)
{
.reg .f32 %f<2>; .reg .b32 %r<3>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [out];
mov.u32 %r2, %tid.x;
mov.u32 %r1, %ctaid.x;
add.s32 %r1, %r1, %r2;
cvt.rn.f32.u32 %f1, %r1;
st.global.f32 [%rd1], %f1;
st.global.u32 [%rd1+4], %r1;
ret;
}
"""


def test_declarations_are_those_of_the_ptx() -> None:
    """%f1 comes first, with %r2 in the same place, then %r1, and the long value at the end."""
    draft = drafts(parse(PTX, "k.ptx"), 255, (DECLARATION,))[0]["k"]
    places = sorted((where, draft.physical[register]) for register, where in draft.code.declared.items())
    assert [place for _, place in places] == [0, 1, 0, 2]


@pytest.mark.parametrize("name", partly(RUN, 4))
def test_results_are_those_without_the_pass(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    expected = test_first_use.outputs(name)
    for passes in ((DECLARATION,), (in_disorder(1), DECLARATION)):
        with monkeypatch.context() as patch:
            test_first_use.with_passes(patch, *passes)
            assert test_first_use.outputs(name) == expected


def test_random_programs_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = seeded()
    for _ in range(RANDOM_PROGRAMS):
        seed = rng.getrandbits(32)
        expected = simulate(seed)["memory"]
        with monkeypatch.context() as patch:
            test_first_use.with_passes(patch, in_disorder(seed), DECLARATION)
            assert simulate(seed)["memory"] == expected
