"""What the GPU's assembler makes of PTX: copies, addresses of 32 bits, operands from the constant bank."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from lockstep.models.execution.isa import PARAM_WINDOW, Category, Flag, Group, Kind, Memory, Space
from lockstep.sim import Gpu, KernelFault, UsageError, kernels
from lockstep.sim.compile.ptx.build import build
from lockstep.sim.compile.ptx.kernel import Kernel
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.device import description
from lockstep.sim.study.job import Job, execute
from lockstep.spec import registry
from lockstep.spec.passes import machine
from lockstep.verif.bench import seeded
from lockstep.verif.sim.test_random_programs import simulate

SETTINGS = [
    {"compiler.addresses": addresses, "compiler.constant_operands": operands}
    for addresses, operands in product((32, 64), (0, 1))
    if (addresses, operands) != (64, 0)
]
BOTH = SETTINGS[1]
RANDOM_PROGRAMS = 8
KERNELS = ("saxpy", "reduction", "spmv", "hotspot", "sgemm", "bfs", "transpose-tiled", "histogram", "mri-q")

HEAD = """.version 7.8
.target sm_75
.address_size 64
.const .align 8 .u32 table[4] = {3, 5, 7, 9};
.visible .entry k(.param .u64 out, .param .u32 n, .param .f32 x, .param .u64 wide, .param .u8 narrow)
{
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %d<16>;
"""
ADDRESS = """
    ld.param.u64 %d1, [out];
    cvta.to.global.u64 %d2, %d1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d4, %d2, %d3;
"""


def compiled(body: str, addresses: int = 64, constant_operands: int = 1) -> Kernel:
    module = parse(HEAD + body + "ret;\n}\n", "k.ptx")
    return build(module, 63, [machine(addresses, constant_operands)]).kernels["k"]


def loads(kernel: Kernel, *spaces: Space) -> int:
    code = kernel.code
    load = (code["group"] == Group.MEMORY) & (code["op"] == Memory.LOAD)
    return int((load & np.isin(code["space"], spaces)).sum())


def operands(kernel: Kernel) -> list[tuple[int, str | None, int, int]]:
    """Category of the instruction, symbol, offset and bytes of each operand from the constant bank."""
    return [(int(kernel.code["category"][c.pc]), c.symbol, c.offset, c.bytes) for c in kernel.constants]


# ------------------------------------------------------------------------------------------------------------- operands


def test_parameters_are_operands() -> None:
    kernel = compiled(ADDRESS + "ld.param.u32 %r2, [n]; add.u32 %r3, %r1, %r2; st.global.u32 [%d4], %r3;")
    assert loads(kernel, Space.PARAM) == 0
    assert operands(kernel) == [(Category.INTEGER, None, 0, 8), (Category.INTEGER, None, 8, 4)]
    pc = kernel.constants[1].pc
    assert kernel.code["flags"][pc] & Flag.CONSTANT and kernel.code["offset"][pc] == PARAM_WINDOW + 8
    assert kernel.code["kind"][pc, 1] == Kind.IMMEDIATE
    assert not (kernel.code["flags"] & Flag.ADDED).any()
    assert kernel.registers == 4


def test_constants_at_known_addresses_are_operands() -> None:
    kernel = compiled(ADDRESS + "ld.const.u32 %r2, [table+8]; mad.lo.u32 %r3, %r1, %r1, %r2; st.global.u32 [%d4], %r3;")
    assert loads(kernel, Space.CONST) == 0
    assert (Category.MULTIPLY, "table", 8, 4) in operands(kernel)


@pytest.mark.parametrize(
    ("body", "category"),
    [
        ("ld.param.u64 %d5, [out]; st.global.u32 [%d5], %r1;", Category.INTEGER),  # an address
        ("ld.param.u32 %r2, [n]; st.global.u32 [%d4], %r2;", Category.INTEGER),  # a value to be stored
        ("ld.param.u32 %r2, [n]; shl.b32 %r3, %r2, %r1; st.global.u32 [%d4], %r3;", Category.INTEGER),
        ("ld.param.f32 %f1, [x]; sin.approx.f32 %f2, %f1; st.global.f32 [%d4], %f2;", Category.INTEGER),
    ],
)
def test_what_takes_no_constant_gets_a_move(body: str, category: Category) -> None:
    found = operands(compiled(ADDRESS + body))
    assert found[-1][0] == category and len(found) == 1 + ("%d4" in body)


def test_an_instruction_has_one_constant_or_literal() -> None:
    two = "ld.param.u32 %r2, [n]; ld.const.u32 %r3, [table]; mad.lo.u32 %r4, %r2, %r3, %r1; st.global.u32 [%d4], %r4;"
    assert [each[0] for each in operands(compiled(ADDRESS + two))].count(Category.MULTIPLY) == 1
    literal = "ld.param.u32 %r2, [n]; mad.lo.u32 %r4, %r2, 12, %r1; st.global.u32 [%d4], %r4;"
    assert Category.MULTIPLY not in [each[0] for each in operands(compiled(ADDRESS + literal))]
    twice = "ld.param.u32 %r2, [n]; mul.lo.u32 %r4, %r2, %r2; st.global.u32 [%d4], %r4;"
    assert [each[0] for each in operands(compiled(ADDRESS + twice))].count(Category.MULTIPLY) == 1


def test_a_register_that_is_written_again_is_no_constant() -> None:
    body = "ld.param.u32 %r2, [n]; @%p1 add.u32 %r2, %r2, 1; add.u32 %r3, %r1, %r2; st.global.u32 [%d4], %r3;"
    assert Category.INTEGER in [each[0] for each in operands(compiled("setp.eq.u32 %p1, 1, 1;" + ADDRESS + body))]
    found = compiled("setp.eq.u32 %p1, 1, 1;" + ADDRESS + body)
    moved = [each for each in found.constants if each.offset == 8]
    assert len(moved) == 1 and found.code["kind"][moved[0].pc, 1] == Kind.NONE  # a move


def test_a_launch_takes_what_stands_in_the_bank() -> None:
    body = (
        ADDRESS
        + """
    ld.param.u32 %r2, [n]; ld.const.u32 %r3, [table+4]; ld.param.u64 %d5, [wide]; cvt.u32.u64 %r5, %d5;
    ld.param.u8 %h1, [narrow]; cvt.u32.u16 %r6, %h1;
    add.u32 %r7, %r1, %r2; mad.lo.u32 %r7, %r7, %r1, %r3; xor.b32 %r7, %r7, %r5; sub.u32 %r7, %r6, %r7;
    st.global.u32 [%d4], %r7;
    """
    )
    for settings in SETTINGS:
        gpu = Gpu("gtx480", settings=settings)
        module = gpu.load(HEAD + body + "ret;\n}\n")
        out, thread = gpu.empty(32, np.uint32), np.arange(32, dtype=np.uint32)
        for n, word, wide, narrow in ((3, 5, 1 << 40 | 77, 200), (2**32 - 1, 11, 2**64 - 1, 0)):
            module.set_symbol("table", np.array([1, word, 2, 3], np.uint32))
            module.launch("k", 1, 32, [out, n, 0.5, wide, narrow])
            with np.errstate(over="ignore"):
                sums = (thread + np.uint32(n)) * thread + np.uint32(word)
                expected = np.uint32(narrow) - (sums ^ np.uint32(wide & 0xFFFF_FFFF))
            assert np.array_equal(gpu.from_device(out), expected), settings
        first, second = (run.stats["instruction_cache.fetches"] for run in gpu.runs)
        assert first > 0 and second == 0, settings  # the code is the same, whatever values it has as operands


@pytest.mark.parametrize(
    ("load", "fault"),
    [
        ("ld.const.u32 %r2, [table+4096];", "out of bounds"), ("ld.const.u32 %r2, [table+2];", "misaligned"),
        ("ld.param.u32 %r2, [narrow+4096];", "out of bounds"), ("ld.param.u32 %r2, [wide+2];", "misaligned"),
    ],
)  # fmt: skip
def test_a_load_at_a_wrong_address_stays_a_fault(load: str, fault: str) -> None:
    gpu = Gpu("gtx480", settings=BOTH)
    module = gpu.load(HEAD + ADDRESS + f"{load} st.global.u32 [%d4], %r2; ret;\n}}\n")
    with pytest.raises(KernelFault, match=fault):
        module.launch("k", 1, 32, [gpu.empty(32, np.uint32), 0, 0.0, 0, 0])


# ------------------------------------------------------------------------------------------------------------ addresses


def test_an_address_is_one_register() -> None:
    body = ADDRESS + "ld.global.u32 %r2, [%d4+4]; st.global.u32 [%d4], %r2;"
    assert compiled(body, 64).registers == 3
    kernel = compiled(body, 32)
    assert kernel.registers == 2
    assert not (kernel.code["group"] == Group.LONG).any()
    assert operands(kernel) == [(Category.INTEGER, None, 0, 4)]


@pytest.mark.parametrize(
    "use",
    [
        "st.global.u64 [%d4], %d4;", "shr.u64 %d5, %d4, 3; st.global.u32 [%d5], %r1;",
        "setp.lt.u64 %p1, %d4, %d2; @%p1 st.global.u32 [%d4], %r1;",
        "mul.hi.u64 %d5, %d4, %d3; st.global.u32 [%d5], %r1;", "cvt.rn.f32.u64 %f1, %d4; st.global.f32 [%d4], %f1;",
        "shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; mov.b64 {%r3, %r4}, %d4; st.global.u32 [%d4], %r4;",
    ],
)  # fmt: skip
def test_what_is_seen_stays_a_pair(use: str) -> None:
    kernel = compiled(ADDRESS + use, 32)
    add = (kernel.code["group"] == Group.LONG) & (kernel.code["op"] == 1)
    assert add.any()


def test_a_loop_over_addresses_is_narrowed() -> None:
    body = (
        ADDRESS
        + """
    mov.u64 %d5, %d4; mov.u32 %r2, 0;
$again:
    st.global.u32 [%d5], %r2;
    add.s64 %d5, %d5, 128; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 8; @%p1 bra $again;
    """
    )
    assert not (compiled(body, 32).code["group"] == Group.LONG).any()


# --------------------------------------------------------------------------------------------------------------- copies


def test_a_copy_of_what_changes_stays() -> None:
    """The value of the round before: not the register that it was copied from."""
    body = (
        ADDRESS
        + """
    mov.u32 %r2, 0; mov.u32 %r4, 0;
$again:
    mov.u32 %r3, %r2; add.u32 %r2, %r2, 3; add.u32 %r4, %r4, %r3;
    setp.lt.u32 %p1, %r2, 30; @%p1 bra $again;
    st.global.u32 [%d4], %r4;
    """
    )
    gpu = Gpu("gtx480", settings=BOTH)
    out = gpu.empty(32, np.uint32)
    gpu.load(HEAD + body + "ret;\n}\n").launch("k", 1, 32, [out, 0, 0.0, 0, 0])
    assert (gpu.from_device(out) == sum(range(0, 30, 3))).all()


# -------------------------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_kernels_compute_the_same(settings: dict[str, Any]) -> None:
    for name in KERNELS:
        assert execute(Job(name, size="tiny", settings=settings))["checked"], name


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_random_programs(settings: dict[str, Any]) -> None:
    rng = seeded()
    for _ in range(RANDOM_PROGRAMS):
        simulate(rng.getrandbits(32), fixed=settings)


@pytest.mark.long
def test_all_kernels_need_no_more_registers() -> None:
    passes = registry.passes(description.load("gtx480", BOTH))
    for ptx in {kernels.find(name).ptx for name in kernels.names()}:
        module = parse(ptx.read_text(encoding="utf-8"), str(ptx))
        plain, made = build(module, 63).kernels, build(module, 63, passes).kernels
        for name, each in made.items():
            assert each.registers <= plain[name].registers, name
            assert len(each.code) <= len(plain[name].code), name


def test_the_description_is_checked() -> None:
    with pytest.raises(UsageError, match=r"compiler\.addresses = 40: must be 32 or 64"):
        Gpu("gtx480", settings={"compiler.addresses": 40})
