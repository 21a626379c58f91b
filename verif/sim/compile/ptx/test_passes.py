"""The stages of a kernel, by passes that exist only here."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.models import cache
from lockstep.models.execution.isa import PT, RZ, Category, Control, Flag, Group, Memory, Space, Write
from lockstep.sim import Gpu, kernels
from lockstep.sim.compile.ptx import program
from lockstep.sim.compile.ptx.build import build
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.kernel import Kernel
from lockstep.sim.compile.ptx.micro import Micro, Source, move
from lockstep.sim.compile.ptx.operations import FETCH
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.compile.ptx.passes import ordered, source
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.study.job import Job, execute
from lockstep.spec import registry
from lockstep.spec.passes import STAGES, Pass
from lockstep.verif.bench import elsewhere, seeded
from lockstep.verif.sim.test_random_programs import simulate

HERE = "lockstep.verif.sim.compile.ptx.test_passes"
PASSES = "lockstep.sim.compile.ptx.passes"
COMPILED = Path(__file__).parent / "compiled"
SHIPPED = ("bfs", "histogram", "reduction", "saxpy", "spmv", "transpose-tiled")
FILES = [*sorted(COMPILED.glob("*.ptx")), *(kernels.find(name).ptx for name in SHIPPED)]
MACHINE, BEFORE, ALLOCATION, RENUMBERING, HINTS, REGIONS = STAGES
RANDOM_PROGRAMS = 12


# ------------------------------------------------------------------------------------------------------- trial tenants


def inserted(draft: Draft, every: int, make: Any) -> None:
    """Put a micro-operation of ``make`` behind every so many."""
    draft.code.replace(
        [[micro] if number % every else [micro, make()] for number, micro in enumerate(draft.code.list, 1)]
    )


def nop() -> Micro:
    return Micro(Group.CONTROL, Control.NOP, Category.CONTROL)


def idle(draft: Draft, every: int) -> None:
    inserted(draft, every, nop)


def shuffle(draft: Draft, every: int) -> None:
    """Moves of fresh registers to themselves."""

    def make() -> Micro:
        register = draft.code.register(32)
        return move(32, register, Source(FETCH["u32"], register))

    inserted(draft, every, make)


def turned(draft: Draft) -> None:
    """The registers the other way round."""
    kernel, bits = draft.kernel, draft.code.bits
    kernel.registers += kernel.registers % 2
    words = [2 if width == 64 else 1 for width in bits]
    draft.physical = [
        kernel.registers - words[register] - place if place >= 0 and bits[register] > 1 else place
        for register, place in enumerate(draft.physical)
    ]


def hinted(draft: Draft) -> None:
    """A hint on every load of global memory."""
    for micro in draft.code.list:
        if (micro.group, micro.op, micro.space) == (Group.MEMORY, Memory.LOAD, Space.GLOBAL):
            micro.flags |= Flag.HINT


def stores(draft: Draft) -> None:
    """The pcs of the stores."""
    found = [pc for pc, m in enumerate(draft.code.list) if (m.group, m.op) == (Group.MEMORY, Memory.STORE)]
    draft.kernel.tables["stores"] = np.array(found)


def told(draft: Draft, name: str) -> None:
    """Its name, and what it finds."""
    tables = draft.kernel.tables
    tables["told"] = np.append(tables.get("told", np.array([], str)), f"{name} {len(draft.physical) > 0}")


def without_place(draft: Draft) -> None:
    draft.code.list[0].dst = draft.code.register(32)


def odd_pair(draft: Draft) -> None:
    register = draft.code.bits.index(64)
    draft.physical[register] = 1


def late(draft: Draft) -> None:
    """A micro-operation that comes after the allocation, on a register of its own."""
    register = draft.code.register(32)
    draft.physical.append(draft.kernel.registers)
    draft.kernel.registers += 1
    first, *others = draft.code.list
    draft.code.replace([[move(32, register, Source(FETCH["u32"])), first], *([micro] for micro in others)])


def one(stage: str, function: str, **parameters: Any) -> Pass:
    return Pass(stage, f"{HERE}:{function}", tuple(parameters.items()))


def made(text: str, *passes: Pass, limit: int = 63, path: str = "test.ptx") -> dict[str, Kernel]:
    return build(parse(text, path), limit, passes).kernels


HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"
STRAIGHT = (
    HEAD
    + """
.entry k(.param .u64 out)
{
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    mul.lo.s32 %r2, %r1, %r1;
    add.s32 %r3, %r2, 7;
    st.global.u32 [%rd3], %r3;
    ret;
}
"""
)


# ------------------------------------------------------------------------------------------------------------- inserted


def added(code: np.ndarray) -> np.ndarray:
    return (code["flags"] & Flag.ADDED) != 0


@pytest.mark.parametrize("every", [1, 3, 7])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_all_else_moves_by_what_is_inserted_before_it(path: Path, every: int) -> None:
    text = path.read_text(encoding="utf-8")
    before, after = made(text, limit=255), made(text, one(BEFORE, "idle", every=every), limit=255)
    for name, kernel in before.items():
        shifted(kernel, after[name], every)


def test_a_table_of_branches_moves_too() -> None:
    text = (
        HEAD
        + """
        .entry k() { .reg .b32 %r<3>; L: .branchtargets A, B, A; brx.idx %r1, L;
        A: mov.u32 %r2, 1; ret; B: mov.u32 %r2, 2; ret; }"""
    )
    (before,), (after,) = made(text).values(), made(text, one(BEFORE, "idle", every=2)).values()
    assert before.branch_table == [1, 3, 1] and after.branch_table == [1, 4, 1]
    shifted(before, after, 2)


def shifted(before: Kernel, after: Kernel, every: int) -> None:
    """Compare a kernel with one that has a micro-operation more behind every so many."""
    old, new = before.code, after.code
    assert np.flatnonzero(added(new)).tolist() == [n * (every + 1) - 1 for n in range(1, len(old) // every + 1)]
    kept = new[~added(new)]
    for field in old.dtype.names or ():
        if field not in ("target", "reconverge"):
            np.testing.assert_array_equal(kept[field], old[field], field)
    branches = (old["group"] == Group.CONTROL) & (old["op"] == Control.BRANCH)
    assert np.array_equal(kept["target"], np.where(branches, place(old["target"], every), old["target"]))
    diverging = branches & (old["guard"] != PT) | (old["group"] == Group.CONTROL) & (old["op"] == Control.INDEXED)
    meet = kept["reconverge"][diverging]
    early = place(old["reconverge"][diverging], every) - meet  # 1: at what is inserted before the old place
    assert set(early) <= {0, 1} and added(new)[meet[early == 1]].all()
    assert new["line"][added(new)].tolist() == new["line"][np.flatnonzero(added(new)) - 1].tolist()
    assert after.branch_table == [place(pc, every) for pc in before.branch_table]
    assert [(place(r.pc, every), r.field, r.symbol, r.addend) for r in before.relocations] == [
        (r.pc, r.field, r.symbol, r.addend) for r in after.relocations
    ]
    names = ("registers", "predicates", "local_bytes", "shared_bytes", "source_instructions", "parameters")
    assert [getattr(before, name) for name in names] == [getattr(after, name) for name in names]


def place(pc: Any, every: int) -> Any:
    """Where an instruction has moved to."""
    return pc + pc // every


@pytest.mark.parametrize("every", [1, 3, 8])
@pytest.mark.parametrize("name", ["idle", "shuffle"])
def test_a_straight_line_executes_what_is_inserted(monkeypatch: pytest.MonkeyPatch, name: str, every: int) -> None:
    ran = []
    for passes in ((), (one(BEFORE, name, every=every),)):
        monkeypatch.setattr(registry, "passes", lambda gpu, passes=passes: passes)
        gpu = Gpu("gtx480")
        out = gpu.empty(256, np.uint32)
        run = gpu.load(STRAIGHT).launch("k", grid=2, block=256, args=[out])
        ran.append((run.warp_instructions, run.stats["issue.added_instructions"]))
        np.testing.assert_array_equal(gpu.from_device(out), np.arange(256) ** 2 + 7)
    warps, behind_the_end = 2 * 8, 8 % every == 0
    assert ran == [(8 * warps, 0), (8 * warps, (8 // every - behind_the_end) * warps)]


@pytest.mark.parametrize("kernel", SHIPPED)
def test_results_stay_right(monkeypatch: pytest.MonkeyPatch, kernel: str) -> None:
    chosen = one(BEFORE, "shuffle", every=2), one(BEFORE, "idle", every=3), one(RENUMBERING, "turned")
    monkeypatch.setattr(registry, "passes", lambda gpu: chosen)
    result = execute(Job(kernel, size="tiny"))
    assert result["checked"], result["message"]


def test_random_programs_stay_right(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = seeded()
    for _ in range(RANDOM_PROGRAMS):
        chosen = (
            one(BEFORE, "shuffle", every=rng.randint(1, 9)),
            one(BEFORE, "idle", every=rng.randint(1, 9)),
            one(RENUMBERING, "turned"),
            one(HINTS, "hinted"),
            one(REGIONS, "late"),
        )
        monkeypatch.setattr(registry, "passes", lambda gpu, chosen=chosen: chosen)
        simulate(rng.getrandbits(32))


def test_spill_code_is_not_marked() -> None:
    text = (COMPILED / "arithmetic_75.ptx").read_text(encoding="utf-8")
    (whole,), (spilled,) = made(text, limit=255).values(), made(text, one(BEFORE, "idle", every=4), limit=16).values()
    assert spilled.spilled and len(spilled.code) > len(whole.code) * 5 // 4
    assert added(spilled.code).sum() == len(whole.code) // 4


# --------------------------------------------------------------------------------------------------------- other stages


def test_stages_come_in_their_order_and_passes_by_name() -> None:
    passes = [one(stage, "told", name=name) for stage in STAGES if stage != ALLOCATION for name in ("b", "a")]
    expected = [*["a False", "b False"] * 2, *["a True", "b True"] * 3]
    rng = random.Random(1)
    for _ in range(20):
        rng.shuffle(passes)
        (kernel,) = made(STRAIGHT, *passes).values()
        assert kernel.tables["told"].tolist() == expected


def test_the_order_of_naming_does_not_matter() -> None:
    text = (COMPILED / "functions_75.ptx").read_text(encoding="utf-8")
    before = one(BEFORE, "shuffle", every=3), one(BEFORE, "idle", every=2)
    passes = *before, one(RENUMBERING, "turned"), one(REGIONS, "stores"), one(REGIONS, "late")
    orders = [passes[n:] + passes[:n] for n in range(len(passes))]
    first, *others = [made(text, *order)["functions"] for order in (*orders, passes[::-1])]
    for other in others:
        assert np.array_equal(first.code, other.code)
        assert np.array_equal(first.tables["stores"], other.tables["stores"])
    twice = made(text, *passes, *passes)["functions"]
    assert np.array_equal(first.code, twice.code)


def test_a_hint_reaches_the_record_and_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    path = kernels.find("spmv").ptx
    (plain,), (marked,) = (
        made(path.read_text(encoding="utf-8")).values(),
        made(path.read_text(encoding="utf-8"), one(HINTS, "hinted")).values(),
    )
    hints = (marked.code["flags"] & Flag.HINT) != 0
    loads = (plain.code["group"] == Group.MEMORY) & (plain.code["op"] == Memory.LOAD)
    assert hints.any() and np.array_equal(hints, loads & (plain.code["space"] == Space.GLOBAL))
    without = execute(Job("spmv", size="tiny"))
    monkeypatch.setattr(registry, "passes", lambda gpu: (one(HINTS, "hinted"),))
    assert execute(Job("spmv", size="tiny"))["stats"] == without["stats"]


def test_places_and_pcs_are_known_in_the_last_stages() -> None:
    chosen = one(RENUMBERING, "turned"), one(REGIONS, "stores")
    (plain,), (other,) = made(STRAIGHT).values(), made(STRAIGHT, *chosen).values()
    assert other.tables["stores"].tolist() == [6]
    words = np.where(plain.code["write"] == Write.PAIR, 2, 1)
    turned_round = other.registers - words - plain.code["dst"]
    assert np.array_equal(other.code["dst"], np.where(plain.code["dst"] == RZ, RZ, turned_round))


def test_what_comes_after_the_allocation_is_marked_and_has_a_place() -> None:
    (plain,), (other,) = made(STRAIGHT).values(), made(STRAIGHT, one(REGIONS, "late")).values()
    assert added(other.code).tolist() == [True] + [False] * 8
    assert other.code["dst"][0] == plain.registers == other.registers - 1
    assert other.code["line"][0] == plain.code["line"][0]


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (one("later", "idle"), f"pass {HERE}:idle: unknown stage 'later'; the stages are machine, before allocat"),
        (one(BEFORE, "idel"), f"pass {HERE}:idel: {HERE} has no function 'idel'"),
        (Pass(BEFORE, HERE), f"pass {HERE}: {HERE} has no function ''"),
        (Pass(BEFORE, "lockstep.nowhere:idle"), "pass lockstep.nowhere:idle: Lockstep has no module lockstep.nowhere"),
        (Pass(BEFORE, "lockstep.no.where:idle"), "pass lockstep.no.where:idle: Lockstep has no module"),
        (Pass(BEFORE, "json:dumps"), "pass json:dumps: Lockstep has no module json"),
        (Pass(BEFORE, ""), "pass : Lockstep has no module"),
        (one(REGIONS, "without_place"), f"32 bits at place -1 of 6 after the pass {HERE}:without_place"),
        (one(RENUMBERING, "odd_pair"), f"64 bits at place 1 of 6 after the pass {HERE}:odd_pair"),
    ],
)
def test_a_wrong_pass_is_one_line(chosen: Pass, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        program.load(STRAIGHT, 63, [chosen])
    assert words in str(caught.value) and "\n" not in str(caught.value)


def default() -> str:
    """The file of the default allocation."""
    return str(source(*ordered([])))


def test_the_file_of_a_pass_is_found_through_links() -> None:
    assert elsewhere(default, PYTHONPATH=str(cache.ROOT / "package")) == default()


def test_the_stage_allocation_has_one_tenant() -> None:
    tenants = one(ALLOCATION, "turned"), one(ALLOCATION, "late")
    with pytest.raises(UsageError, match=f"{HERE}:late and {HERE}:turned exclude each other"):
        made(STRAIGHT, *tenants)
    assert [p.function for p in ordered(tenants[:1])] == [f"{HERE}:turned"]
    assert [p.function for p in ordered([])] == ["lockstep.sim.compile.ptx.allocate:allocation"]


# ------------------------------------------------------------------------------------------------------------ the cache


def test_passes_are_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    several: list[tuple[Pass, ...]] = [
        (), (one(BEFORE, "idle", every=2),), (one(BEFORE, "idle", every=3),), (one(BEFORE, "shuffle", every=3),),
        (one(REGIONS, "stores"),),
    ]  # fmt: skip
    for count, passes in enumerate(several, 1):
        first, again = (program.load(STRAIGHT, 63, passes).kernels["k"] for _ in range(2))
        assert np.array_equal(first.code, again.code) and first.tables.keys() == again.tables.keys()
        assert len(list((tmp_path / "ptx").iterdir())) == count


def test_the_source_of_a_pass_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = ordered([one(BEFORE, "idle", every=2)])
    assert source(chosen[0]) == Path(__file__)
    key = program._sources(chosen)
    assert key != program._sources(ordered([]))
    closure = cache.closure
    monkeypatch.setattr(cache, "closure", lambda *paths: [p for p in closure(*paths) if p != Path(__file__)])
    assert key != program._sources(chosen)


def test_mechanisms_have_the_passes_that_they_name() -> None:
    chosen = {name: registry.passes(description.load("gtx480", selected=[name])) for name in registry.MECHANISMS}
    named = {name: [each.function for each in passes] for name, passes in chosen.items() if passes}
    assert named == {
        "register-sharing": [f"{PASSES}.first_use:renumber"],
        "regless": [f"{PASSES}.register_regions.numbering:renumber", f"{PASSES}.register_regions.annotations:annotate"],
        "rfv": [f"{PASSES}.renaming:annotate"],
        "rfh": [f"{PASSES}.register_hierarchy:annotate"],
    }
    for passes in chosen.values():
        assert made(STRAIGHT, *passes)["k"].registers == made(STRAIGHT)["k"].registers
