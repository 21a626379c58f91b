"""Register regions: their bounds, where they are cut, the numbers of their registers, and what is refused."""

from __future__ import annotations

import pytest

from lockstep.models.execution.isa import Control, Group
from lockstep.sim import kernels
from lockstep.sim.compile.ptx.build import drafts
from lockstep.sim.compile.ptx.cfg import ControlFlowGraph
from lockstep.sim.compile.ptx.draft import Draft, Refused
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.compile.ptx.passes.register_regions.annotations import divide
from lockstep.sim.compile.ptx.passes.register_regions.numbering import bank_conflicts, renumber
from lockstep.sim.compile.ptx.passes.register_regions.operations import add_deliveries, operations, usage
from lockstep.sim.compile.ptx.passes.register_regions.regions import LEAST, Bounds
from lockstep.sim.errors import UsageError
from lockstep.spec.passes import REGISTER_NUMBERING
from lockstep.spec.register_regions import MAX_SLOTS
from lockstep.verif.bench import seeded
from lockstep.verif.regless.checker import check
from lockstep.verif.regless.code import staged
from lockstep.verif.regless.compiled import LINES, compiled, faults, kernels_of

HEAD = """.version 8.7
.target sm_90
.address_size 64
.entry k(.param .u64 p)
{
.reg .b32 %r<32>; .reg .b64 %d<8>; .reg .pred %p<4>;
"""
BOUNDS = Bounds(32, LINES)


def draft(body: str) -> Draft:
    (made,) = drafts(parse(HEAD + body + "\n}\n", "test.ptx"), 63)[0].values()
    add_deliveries(made)
    return made


def of_kernel(name: str) -> dict[str, Draft]:
    path = kernels.find(name).ptx
    return drafts(parse(path.read_text(encoding="utf-8"), str(path)), 63, [REGISTER_NUMBERING])[0]


# -------------------------------------------------------------------------------------------------- what regions obey


@pytest.mark.parametrize("name", ["bfs", "dwt2d", "fft", "histogram", "leukocyte", "sgemm"])
@pytest.mark.parametrize("bounds", [BOUNDS, Bounds(12, 3)], ids=["usual", "small"])
def test_bounds_hold(name: str, bounds: Bounds) -> None:
    for made in of_kernel(name).values():
        add_deliveries(made)
        graph = ControlFlowGraph(made.code.successors())
        regions = divide(made, bounds)
        pcs = [operation.pc for one in regions for operation in one.operations]
        assert pcs == list(range(len(made.code.list)))
        for one in regions:
            first, last = one.operations[0].pc, one.operations[-1].pc
            assert graph.block_of[first] == graph.block_of[last]
            assert one.region.most <= bounds.registers and max(one.region.usage) <= bounds.usage
            assert len(one.metadata.slots) <= MAX_SLOTS
            assert not any(operation.waits for operation in one.operations[:-1])
            pending = 0
            for operation in one.operations:
                assert not operation.touched & pending
                pending |= operation.writes if operation.long else 0


def test_a_load_and_its_use_are_apart() -> None:
    body = "ld.param.u64 %d0, [p]; ld.global.u32 %r0, [%d0];" + "add.u32 %r1, %r1, 3;" * 8 + "add.u32 %r2, %r0, %r1;"
    regions = divide(draft(body + "st.global.u32 [%d0], %r2; ret;"), BOUNDS)
    load, use = 1, 10
    assert not any({load, use} <= {operation.pc for operation in one.operations} for one in regions)
    assert len(regions) == 2 and len(regions[0].operations) >= LEAST


def test_a_region_is_cut_where_the_fewest_registers_cross() -> None:
    """Thirteen values at a time, then one, then thirteen: with room for fourteen, the cut is at the one."""
    half = [f"mov.u32 %r{n}, {n};" for n in range(1, 13)] + [f"add.u32 %r0, %r0, %r{n};" for n in range(1, 13)]
    tail = ["ld.param.u64 %d0, [p];", "st.global.u32 [%d0], %r0;", "ret;"]
    regions = divide(draft("\n".join(["mov.u32 %r0, 1;", *half, *half, *half, *tail])), BOUNDS)
    assert [len(one.operations) for one in regions[:2]] == [1 + 24 * 2, 24 + 3]
    assert [one.region.preloads.bit_count() for one in regions] == [0, 1]


@pytest.mark.parametrize("name", ["fft", "hotspot", "leukocyte"])
def test_bounds_that_cut_nothing_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for made in of_kernel(name).values():
        add_deliveries(made)
        usual, small = divide(made, BOUNDS), divide(made, Bounds(12, 3))
        assert any(one.region.cut for one in small) == (len(small) > len(usual))
        with monkeypatch.context() as without:
            without.setattr("lockstep.sim.compile.ptx.passes.register_regions.regions.MAX_USAGE", 99)
            free = divide(made, Bounds(999, 99))
        assert any(one.region.cut for one in usual) == (len(free) < len(usual))


def test_a_barrier_ends_its_region_and_its_result_starts_the_next() -> None:
    made = draft("setp.eq.u32 %p0, %r1, 1; bar.red.popc.u32 %r0, 0, %p0; L: add.u32 %r0, %r0, 1; "
                 "setp.lt.u32 %p1, %r0, 9; @%p1 bra L; bar.sync 0; ret;")  # fmt: skip
    regions = divide(made, BOUNDS)
    starts = [one.operations[0] for one in regions]
    delivery = starts[1]
    nop = made.code.list[delivery.pc]
    assert (nop.group, nop.op) == (Group.CONTROL, Control.NOP) and delivery.operands and delivery.writes
    assert [regions[n].operations[-1].waits for n in range(len(regions))] == [True, False, False, True, False]


# ------------------------------------------------------------------------------------------------------------ numbering


def test_numbering_avoids_bank_conflicts() -> None:
    before = after = 0
    for name in ("gemm", "hotspot", "kmeans", "nw", "spmv"):
        path = kernels.find(name).ptx
        for made in drafts(parse(path.read_text(encoding="utf-8"), str(path)), 63)[0].values():
            before += bank_conflicts(operations(made))
            renumber(made)
            after += bank_conflicts(operations(made))
    assert after < before / 3


# ------------------------------------------------------------------------------------------------------------- refusals


def test_an_instruction_too_large_for_the_banks_is_refused_with_its_line() -> None:
    wide = HEAD + "ld.param.u64 %d0, [p];\nld.global.v4.u64 {%d1, %d2, %d3, %d4}, [%d0];\n" + "".join(
        f"st.global.u64 [%d0], %d{n};\n" for n in range(1, 5)) + "ret;\n}\n"  # fmt: skip
    kernel = compiled(wide, lines=2)["k"]
    assert check(staged(kernel)) == []
    with pytest.raises(
        UsageError, match=r"needs 2 registers of one bank for the instruction in line 8: a region has 1 \("
    ):
        compiled(wide, lines=1)
    with pytest.raises(UsageError, match=r"needs 10 registers for the instruction in line 8: a region has 9$"):
        compiled(wide, registers=9)


@pytest.mark.parametrize("name", ["bfs", "reduction", "spmv"])
def test_the_smallest_legal_capacity_works(name: str) -> None:
    rng = seeded()
    path = kernels.find(name).ptx
    for kernel, made in of_kernel(name).items():
        least = max(max(usage(operation.touched)) for operation in operations(made))
        assert faults(kernels_of(path, lines=least)[kernel], rng) == []
        with pytest.raises(Refused, match=f"needs {least} registers of one bank"):
            divide(made, Bounds(32, least - 1))
