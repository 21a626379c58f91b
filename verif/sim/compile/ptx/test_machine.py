"""What the GPU's assembler makes of PTX, pass by pass, and that programs compute the same with it."""

from __future__ import annotations

from enum import IntEnum
from itertools import product
from typing import Any

import numpy as np
import pytest

from lockstep.models.execution.isa import (
    PARAM_WINDOW,
    PT,
    SHARED_WINDOW,
    Atomic,
    Category,
    Control,
    Flag,
    Group,
    Int,
    Kind,
    Long,
    Memory,
    Space,
    Warp,
)
from lockstep.models.occupancy import occupancy
from lockstep.sim import Gpu, KernelFault, UsageError, kernels
from lockstep.sim.compile.ptx.build import build
from lockstep.sim.compile.ptx.kernel import Kernel
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.device import description
from lockstep.sim.study.job import Job, execute
from lockstep.spec import registry
from lockstep.spec.frame import free_registers
from lockstep.spec.parameters import Compiler
from lockstep.spec.passes import machine
from lockstep.verif.bench import seeded
from lockstep.verif.sim.test_random_programs import simulate

PASSES = ("address_offsets", "multiply_adds", "predication", "rematerialization", "scheduling")
SETTINGS = [
    {"compiler.addresses": addresses, "compiler.constant_operands": operands}
    for addresses, operands in product((32, 64), (0, 1))
    if (addresses, operands) != (64, 0)
]
BOTH = SETTINGS[1]
ALL = {f"compiler.{name}": 1 for name in (*PASSES, "constant_operands")} | {"compiler.addresses": 32}
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


def compiled(
    body: str, addresses: int = 64, constant_operands: int = 1, free_registers: int = 0, limit: int = 63, **passes: int
) -> Kernel:
    module = parse(HEAD + body + "ret;\n}\n", "k.ptx")
    settings = Compiler(addresses=addresses, constant_operands=constant_operands, **passes)
    return build(module, limit, [machine(settings, free_registers)]).kernels["k"]


def result(body: str, settings: dict[str, Any], **arguments: int) -> np.ndarray:
    """What 32 threads with the address of a word each in ``%d4`` store, of 64 words of their own from 100 on."""
    gpu = Gpu("gtx480", settings=settings)
    out = gpu.to_device(np.arange(100, 164, dtype=np.uint32))
    gpu.load(HEAD + ADDRESS + body + "ret;\n}\n").launch("k", 1, 32, [out, arguments.get("n", 3), 0.5, 7, 1])
    return gpu.from_device(out)


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


# ------------------------------------------------------------------------------------------------- offsets of addresses


def accesses(kernel: Kernel) -> list[int]:
    """The offsets of the accesses to global and shared memory."""
    return [int(each["offset"]) for each in kernel.code if each["group"] == Group.MEMORY]


def operations(kernel: Kernel) -> list[str]:
    """The 32- and 64-bit operations."""
    names = {Group.INT: Int, Group.LONG: Long}
    return [names[each["group"]](each["op"]).name for each in kernel.code if each["group"] in names]


@pytest.mark.parametrize("addresses", [32, 64])
def test_constants_of_an_address_are_its_offset(addresses: int) -> None:
    body = "add.s64 %d5, %d4, 8; sub.s64 %d6, %d5, 12; ld.global.u32 %r2, [%d5+4]; st.global.u32 [%d6], %r2;"
    plain = compiled(ADDRESS + body, addresses)
    kernel = compiled(ADDRESS + body, addresses, address_offsets=1)
    assert accesses(plain) == [4, 0] and accesses(kernel) == [12, -4]
    assert len(kernel.code) == len(plain.code) - 2 and kernel.registers <= plain.registers


def test_a_constant_passes_through_products_and_shifts() -> None:
    body = """
    add.u32 %r2, %r1, 5; shl.b32 %r3, %r2, 3; mad.lo.u32 %r4, %r3, 2, %r1; sub.u32 %r5, %r4, 4;
    ld.shared.u32 %r6, [%r5]; st.global.u32 [%d4], %r6;
    """
    kernel = compiled(ADDRESS + body, address_offsets=1)
    assert accesses(kernel) == [5 * 8 * 2 - 4, 0]
    assert operations(kernel).count("SHL") == operations(kernel).count("MAD") == 1
    assert "SUB" not in operations(kernel)


def test_variables_are_offsets() -> None:
    shared = """
    .shared .align 4 .u32 before[4]; .shared .align 4 .u32 words[64];
    mov.u64 %d5, words; add.s64 %d6, %d5, %d3; st.shared.u32 [%d6+4], %r1; ld.shared.u32 %r2, [%d5+8];
    st.shared.u32 [before], %r1;
    """
    kernel = compiled(ADDRESS + shared + "st.global.u32 [%d4], %r2;", address_offsets=1)
    assert accesses(kernel) == [4, 8, 256, 0]
    constant = "mov.u64 %d5, table; add.s64 %d6, %d5, %d3; ld.const.u32 %r2, [%d6+4]; st.global.u32 [%d4], %r2;"
    kernel = compiled(ADDRESS + constant, address_offsets=1)
    assert [(each.field, each.symbol, each.addend) for each in kernel.relocations] == [("offset", "table", 4)]
    # The address of a constant in device memory, not in its bank
    generic = "mov.u64 %d5, table; add.s64 %d6, %d5, %d3; ld.u32 %r2, [%d6+4]; st.global.u32 [%d4], %r2;"
    assert [each.field for each in compiled(ADDRESS + generic, address_offsets=1).relocations] != ["offset"]


@pytest.mark.parametrize(
    "body",
    [
        "add.s64 %d5, %d4, 8; st.global.u64 [%d5], %d5;",  # a value to be stored
        "add.s64 %d5, %d4, 8; setp.lt.u64 %p1, %d5, %d2; @%p1 st.global.u32 [%d5], %r1;",
        "mov.u64 %d5, %d4; @%p1 add.s64 %d5, %d5, 8; st.global.u32 [%d5], %r1;",  # two values
        "add.u32 %r2, %r1, 8; mul.wide.u32 %d5, %r2, 4; add.s64 %d6, %d2, %d5; st.global.u32 [%d6], %r1;",  # carries
        "add.s64 %d5, %d4, 8; shr.u64 %d6, %d5, 1; st.global.u32 [%d6], %r1;",
        "add.s64 %d5, %d3, 8; mul.lo.s64 %d6, %d5, %d3; st.global.u32 [%d6], %r1;",  # not a constant times the other
        "add.s64 %d5, %d4, 0x80000000; st.global.u32 [%d5], %r1;",  # too far
        "add.s64 %d5, %d4, 0x80000; atom.global.add.u32 %r2, [%d5], %r1; st.global.u32 [%d4], %r2;",
        "add.s64 %d5, %d3, 0x800000; ld.shared.u32 %r2, [%d5]; st.global.u32 [%d4], %r2;",
    ],
)
def test_what_an_offset_cannot_be(body: str) -> None:
    start = "setp.eq.u32 %p1, 1, 1;" + ADDRESS
    plain, kernel = compiled(start + body), compiled(start + body, address_offsets=1)
    assert accesses(kernel) == accesses(plain) and operations(kernel) == operations(plain)


def test_addresses_that_differ_by_a_constant_have_one_base() -> None:
    """Of 32 bits: (tid + 1) * 4 is tid * 4 + 4."""
    body = """
    add.s32 %r2, %r1, 1; mul.wide.s32 %d5, %r2, 4; add.s64 %d6, %d2, %d5; ld.global.u32 %r4, [%d6];
    add.s32 %r3, %r1, 2; mul.wide.s32 %d7, %r3, 4; add.s64 %d8, %d2, %d7; ld.global.u32 %r5, [%d8];
    add.u32 %r6, %r4, %r5; st.global.u32 [%d4], %r6;
    """
    kernel = compiled(ADDRESS + body, 32, address_offsets=1)
    assert accesses(kernel) == [4, 8, 0]
    assert operations(kernel) == ["MUL", "ADD", "ADD"]


def test_a_variable_that_is_no_offset_stays_and_constants_go_on() -> None:
    """A generic address, negative without its constant part: it wraps."""
    body = """
    .shared .align 4 .u32 words[64];
    mov.u64 %d5, words; add.s64 %d6, %d5, %d3; st.shared.u32 [%d6], %r1;
    bar.sync 0;
    cvta.shared.u64 %d7, %d5; sub.u32 %r2, %r1, 5; mul.wide.s32 %d8, %r2, 4;
    add.s64 %d9, %d7, %d8; add.s64 %d10, %d9, 20;
    ld.u32 %r4, [%d10]; add.u32 %r4, %r4, 1000; st.global.u32 [%d4], %r4;
    """
    kernel = compiled(ADDRESS + body, 32, address_offsets=1)
    assert accesses(kernel) == [0, SHARED_WINDOW, 0] and "SUB" not in operations(kernel)
    assert result(body, ALL)[:32].tolist() == list(range(1000, 1032))
    mapped = "mov.u64 %d5, table; mad.lo.s64 %d6, %d3, 2, %d5; ld.const.u32 %r2, [%d6+4]; st.global.u32 [%d4], %r2;"
    assert [each.field for each in compiled(ADDRESS + mapped, address_offsets=1).relocations] == ["offset"]


def test_a_value_that_another_path_makes_is_made_again() -> None:
    body = """
    setp.lt.u32 %p1, %r1, 16; @%p1 bra $low;
    mul.lo.u32 %r2, %r1, 3; st.global.u32 [%d4], %r2; bra $end;
$low:
    mul.lo.u32 %r3, %r1, 3; st.global.u32 [%d4+4], %r3;
$end:
    """
    assert operations(compiled(ADDRESS + body, address_offsets=1)).count("MUL") == 3


# -------------------------------------------------------------------------------------------------------- multiply-adds


def test_a_product_and_its_sum_are_one_instruction() -> None:
    body = "mul.lo.u32 %r2, %r1, 12; add.u32 %r3, %r1, %r2; st.global.u32 [%d4], %r3;"
    kernel = compiled(ADDRESS + body, multiply_adds=1)
    assert operations(kernel) == ["MUL", "ADD", "MAD"]  # of the address, with two constants; of the value
    multiply = [each for each in kernel.code if each["category"] == Category.MULTIPLY]
    assert [each["group"] for each in multiply] == [Group.LONG, Group.INT]
    without = compiled(ADDRESS + body, constant_operands=0, multiply_adds=1)
    assert operations(without) == ["MAD", "MAD"]


def test_shifts_and_their_sums_are_one_instruction_of_their_category() -> None:
    body = "shl.b32 %r2, %r1, 4; sub.u32 %r3, %r1, %r2; mul.lo.u32 %r4, %r3, 8; st.global.u32 [%d4], %r4;"
    kernel = compiled(ADDRESS + body, 32, multiply_adds=1)
    assert operations(kernel) == ["MAD", "MAD", "SHL"]
    assert [each["category"] for each in kernel.code if each["group"] == Group.INT] == [Category.SHIFT] * 3
    assert operands(kernel) == [(Category.SHIFT, None, 0, 4)]  # the distance is no operand


@pytest.mark.parametrize(
    "body",
    [
        "mul.lo.u32 %r2, %r1, 12; add.u32 %r3, %r1, %r2; add.u32 %r3, %r3, %r2; st.global.u32 [%d4], %r3;",  # two uses
        "mul.lo.u32 %r2, %r1, 12; add.u32 %r3, %r2, %r2; st.global.u32 [%d4], %r3;",
        "mul.lo.u32 %r2, %r1, 12; add.cc.u32 %r3, %r1, %r2; addc.u32 %r4, %r3, 0; st.global.u32 [%d4], %r4;",
        "mul.lo.u32 %r2, %r1, 12; sub.u32 %r3, %r2, %r1; st.global.u32 [%d4], %r3;",
        "shl.b32 %r2, %r1, 4; sub.u32 %r3, %r2, %r1; st.global.u32 [%d4], %r3;",
        "mul.lo.u32 %r2, %r1, 12; ld.param.u32 %r3, [n]; add.u32 %r4, %r2, %r3; st.global.u32 [%d4], %r4;",
        "mov.u32 %r2, %r1; mul.lo.u32 %r3, %r2, 12; @%p1 add.u32 %r2, %r2, 1; add.u32 %r4, %r3, %r2;"
        "st.global.u32 [%d4], %r4;",
        "mul.lo.u32 %r2, %r1, 12; @%p1 mul.lo.u32 %r2, %r1, 20; add.u32 %r3, %r1, %r2; st.global.u32 [%d4], %r3;",
    ],
)
def test_what_stays_a_sum(body: str) -> None:
    kernel = compiled("setp.eq.u32 %p1, 1, 1;" + ADDRESS + body, 32, multiply_adds=1)
    assert operations(kernel).count("MAD") == 1  # the address


# ---------------------------------------------------------------------------------------------------------- predication


def branches(kernel: Kernel) -> int:
    return int(((kernel.code["group"] == Group.CONTROL) & (kernel.code["op"] == Control.BRANCH)).sum())


def guards(kernel: Kernel) -> list[tuple[str, bool]]:
    """The names of guarded micro-operations, and whether the guard is an inverse."""
    groups: dict[int, type[IntEnum]] = {Group.INT: Int, Group.MEMORY: Memory, Group.ATOMIC: Atomic}
    guarded = kernel.code[kernel.code["guard"] != PT]
    return [(groups.get(m["group"], Control)(m["op"]).name, bool(m["guard_not"])) for m in guarded]


LOW = "setp.lt.u32 %p1, %r1, 16; "


def test_a_short_branch_becomes_a_predicate() -> None:
    body = LOW + "@%p1 bra $end; add.u32 %r2, %r1, 5; st.global.u32 [%d4], %r2; $end: st.global.u32 [%d4+128], %r1;"
    kernel = compiled(ADDRESS + body, predication=1)
    assert branches(kernel) == 0
    assert guards(kernel) == [("STORE", True)]  # the sum is used there alone
    lanes = np.arange(32)
    found = result(body, ALL)
    assert found[:32].tolist() == np.where(lanes < 16, 100 + lanes, lanes + 5).tolist()
    assert found[32:].tolist() == lanes.tolist()


def test_both_ways_of_a_short_branch_become_predicates() -> None:
    body = """
    mov.u32 %r2, 7; @!%p1 bra $else; add.u32 %r2, %r1, 5; bra $end;
$else:
    sub.u32 %r3, %r1, 1; st.global.u32 [%d4], %r3; atom.global.add.u32 %r4, [%d4], %r2;
$end:
    st.global.u32 [%d4+128], %r2;
    """
    kernel = compiled(ADDRESS + LOW + body, predication=1)
    assert branches(kernel) == 0
    assert guards(kernel) == [("ADD", False), ("STORE", True), ("ADD", True)]
    lanes = np.arange(32)
    found = result(LOW + body, ALL)
    assert found[:32].tolist() == np.where(lanes < 16, 100 + lanes, lanes - 1 + 7).tolist()
    assert found[32:].tolist() == np.where(lanes < 16, lanes + 5, 7).tolist()


def test_what_is_used_behind_a_branch_keeps_its_value() -> None:
    """A sum to which some lanes add in each round, with all its uses in the branch."""
    body = """
    mov.u32 %r2, 100; mov.u32 %r3, 0;
$again:
    setp.gt.u32 %p1, %r1, %r3; @%p1 bra $skip; add.u32 %r2, %r2, 3; st.global.u32 [%d4], %r2;
$skip:
    add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 8; @%p2 bra $again;
    """
    assert branches(compiled(ADDRESS + body, predication=1)) == 1
    assert result(body, ALL)[:8].tolist() == [100 + 3 * (8 - lane) for lane in range(8)]
    assert result(body, ALL)[8:32].tolist() == [100 + lane for lane in range(8, 32)]


def test_what_another_branch_leads_to_stays() -> None:
    body = LOW + """
    setp.lt.u32 %p2, %r1, 8; mov.u32 %r2, 3; @%p2 bra $inside;
    @%p1 bra $end; add.u32 %r2, %r1, 5; $inside: st.global.u32 [%d4], %r2; $end: st.global.u32 [%d4+128], %r2;
    """
    assert branches(compiled(ADDRESS + body, predication=1)) == 2


@pytest.mark.parametrize(
    "skipped",
    [
        "add.u32 %r2, %r1, 1;" * 8 + "st.global.u32 [%d4], %r2;",  # too long
        "bar.sync 0; st.global.u32 [%d4], %r1;",
        "@%p2 st.global.u32 [%d4], %r1;",  # has a predicate
        "st.global.u32 [%d4], %r1; setp.gt.u32 %p1, %r1, 3; st.global.u32 [%d4+4], %r1;",  # writes it
        "shfl.sync.down.b32 %r2, %r1, 1, 31, -1; st.global.u32 [%d4], %r2;",
        "div.u32 %r2, %r1, 3; st.global.u32 [%d4], %r2;",  # a sequence of instructions
        "$inside: st.global.u32 [%d4], %r1; setp.gt.u32 %p2, %r1, 3; @%p2 bra $inside;",
    ],
)
def test_which_branches_stay(skipped: str) -> None:
    body = ADDRESS + "setp.lt.u32 %p1, %r1, 16; setp.lt.u32 %p2, %r1, 8; mov.u32 %r2, 1;"
    plain = compiled(body + f"@%p1 bra $end; {skipped} $end: st.global.u32 [%d4+128], %r2;")
    kernel = compiled(body + f"@%p1 bra $end; {skipped} $end: st.global.u32 [%d4+128], %r2;", predication=1)
    assert branches(kernel) == branches(plain) and guards(kernel) == guards(plain)


def test_a_branch_to_what_follows_goes() -> None:
    body = LOW + "@%p1 bra $next; $next: st.global.u32 [%d4], %r1;"
    assert branches(compiled(ADDRESS + body, predication=1)) == 0


# ---------------------------------------------------------------------------------------------------- rematerialization


CROWD = "".join(f"ld.global.u32 %r{k}, [%d4+{4 * k}];" for k in range(3, 11))
CROWD += "".join(f"xor.b32 %r{k}, %r{k}, %r{k + 1};" for k in range(3, 10))
CROWD += "".join(f"st.global.u32 [%d4+{4 * k}], %r{k};" for k in range(3, 11))


def specials(kernel: Kernel) -> int:
    return int(((kernel.code["group"] == Group.WARP) & (kernel.code["op"] == Warp.SPECIAL)).sum())


@pytest.mark.parametrize("value", ["mov.u32 %r2, %ntid.x;", "mov.u32 %r2, 12345;"])
def test_a_value_is_made_again_where_registers_are_short(value: str) -> None:
    body = f"{value} st.global.u32 [%d4], %r2; {CROWD} st.global.u32 [%d4+4], %r2;"
    plain, kernel = compiled(ADDRESS + body), compiled(ADDRESS + body, rematerialization=1)
    assert kernel.registers == plain.registers - 1 and len(kernel.code) == len(plain.code) + 1


@pytest.mark.parametrize(
    "body",
    [
        "mov.u32 %r2, %ntid.x; st.global.u32 [%d4], %r2; st.global.u32 [%d4+4], %r2;",  # is needed there
        f"add.u32 %r2, %r1, 1; st.global.u32 [%d4], %r2; {CROWD} st.global.u32 [%d4+4], %r2;",
        f"""mov.u32 %r12, %r1; add.u32 %r2, %r12, 1; st.global.u32 [%d4], %r2; add.u32 %r12, %r12, 5;
        {CROWD} st.global.u32 [%d4], %r2; st.global.u32 [%d4+4], %r12;""",
        f"mov.u32 %r2, %clock; st.global.u32 [%d4], %r2; {CROWD} st.global.u32 [%d4+4], %r2;",
        f"""mov.u32 %r2, %ntid.x; {CROWD} mov.u32 %r11, 0;
        $again: st.global.u32 [%d4+4], %r2; add.u32 %r11, %r11, 1; setp.lt.u32 %p1, %r11, 4; @%p1 bra $again;""",
        f"mov.u32 %r2, %ntid.x; @%p1 mov.u32 %r2, 3; {CROWD} st.global.u32 [%d4+4], %r2;",
    ],
)
def test_which_values_are_kept(body: str) -> None:
    body = "setp.eq.u32 %p1, 1, 1;" + ADDRESS + body
    plain, kernel = compiled(body), compiled(body, rematerialization=1)
    assert (specials(kernel), len(kernel.code)) == (specials(plain), len(plain.code))
    assert kernel.registers == plain.registers


# ----------------------------------------------------------------------------------------------------------- scheduling


def order(body: str, **settings: int) -> list[int]:
    """The lines of micro-operations, in their order: of a body with one instruction in each line."""
    kernel = compiled(ADDRESS.replace("\n", " ") + body, **settings)
    return [int(line) - HEAD.count("\n") - 1 for line in kernel.code["line"] if line > HEAD.count("\n") + 1]


def test_loads_come_early_and_uses_late() -> None:
    body = """
    ld.global.u32 %r2, [%d4];
    add.u32 %r2, %r2, 1;
    ld.global.u32 %r3, [%d4+4];
    add.u32 %r3, %r3, 1;
    st.global.u32 [%d4+8], %r2;
    st.global.u32 [%d4+12], %r3;
    """
    assert order(body, scheduling=1)[:6] == [1, 3, 2, 4, 5, 6]


@pytest.mark.parametrize(
    "between",
    [
        "st.global.u32 [%d4], %r5;",  # the same place
        "st.global.u32 [%d2], %r5;",  # perhaps
        "st.u32 [%d4+64], %r5;",  # of any space
        "bar.sync 0;", "membar.gl;", "red.shared.add.u32 [%r5], %r1;", "ld.volatile.global.u32 %r6, [%d4+8];",
        "shfl.sync.down.b32 %r6, %r5, 1, 31, -1;",
    ],
)  # fmt: skip
def test_what_no_load_moves_over(between: str) -> None:
    body = f"""
    mad.lo.u32 %r5, %r1, %r1, %r1; mul.lo.u32 %r5, %r5, %r5; mul.lo.u32 %r5, %r5, %r5;
    {between}
    ld.global.u32 %r3, [%d4];
    st.global.u32 [%d4+128], %r3;
    st.global.u32 [%d4+132], %r5; {CROWD}
    """
    found = order(body, scheduling=1)
    assert found.index(2) < found.index(3) < found.index(4)


def test_a_load_moves_over_a_store_elsewhere() -> None:
    for store in ("st.global.u32 [%d4+4], %r5;", "st.shared.u32 [%r1], %r5;"):
        body = f"""
    mad.lo.u32 %r5, %r1, %r1, %r1; mul.lo.u32 %r5, %r5, %r5; mul.lo.u32 %r5, %r5, %r5;
    {store}
    ld.global.u32 %r3, [%d4];
    st.global.u32 [%d4+128], %r3;
    st.global.u32 [%d4+132], %r5; {CROWD}
    """
        found = order(body, scheduling=1)
        assert found.index(3) < found.index(2)


def test_nothing_moves_over_a_clock() -> None:
    body = """
    mul.lo.u32 %r5, %r1, %r1;
    mov.u32 %r6, %clock;
    ld.global.u32 %r3, [%d4];
    add.u32 %r4, %r1, 7;
    mov.u32 %r7, %clock;
    ld.global.u32 %r8, [%d4+4];
    st.global.v4.u32 [%d4], {%r3, %r4, %r5, %r6};
    st.global.v2.u32 [%d4+16], {%r7, %r8};
    """
    found = order(body, scheduling=1)
    assert found.index(1) < found.index(2) < found.index(3) < found.index(5) < found.index(6)
    assert found.index(2) < found.index(4) < found.index(5)


ADDED = "".join(f"ld.global.u32 %x{k}, [%d4+{4 * k}]; add.u32 %r2, %r2, %x{k};" for k in range(16))
LOADS = f"{ADDRESS} .reg .b32 %x<16>; mov.u32 %r2, 0; {ADDED} st.global.u32 [%d4], %r2;"
"""Sixteen loads whose values are added at once: all of them early need as many registers."""


def test_a_schedule_needs_no_more_registers() -> None:
    crowded = f"{LOADS} setp.eq.u32 %p1, %r1, 5; @%p1 bra END; {CROWD} END:"  # in another block
    waiting = []
    for text in (LOADS, crowded):
        plain, kernel = compiled(text), compiled(text, scheduling=1)
        assert kernel.registers == plain.registers
        is_load = (kernel.code["category"] == Category.GLOBAL).tolist()
        first = is_load.index(True)
        waiting.append(is_load.index(False, first) - first)
    assert waiting == [1, 7], "registers that another block needs are there for loads"


def test_a_schedule_fills_the_registers_that_cost_no_warp() -> None:
    plain = compiled(LOADS)
    assert compiled(LOADS, free_registers=63).registers == plain.registers  # without the pass
    for free in (plain.registers + 3, plain.registers + 8, 63):
        kernel = compiled(LOADS, free_registers=free, scheduling=1)
        assert plain.registers < kernel.registers <= free
        assert not compiled(LOADS, free_registers=free, limit=16, scheduling=1).spilled
    assert kernel.registers == plain.registers + 15  # all loads early


def test_a_schedule_takes_no_register_that_saves_no_time() -> None:
    """In gemm, orders with more registers take no less time."""
    module = parse(kernels.find("gemm").ptx.read_text(encoding="utf-8"), "gemm.ptx")
    settings = description.load("gtx980").compiler
    few, many = (build(module, 63, [machine(settings, free)]).kernels["gemm"] for free in (0, 32))
    assert few.registers == many.registers and np.array_equal(few.code, many.code)


@pytest.mark.parametrize(
    ("settings", "free"),
    [
        ({}, 32),
        ({"core.threads": 1024, "core.warps": 32}, 64),
        ({"core.threads": 1536, "core.warps": 48}, 40),  # 42 of a thread are 1,344 of a warp, and 1,280 in whole units
        ({"core.threads": 1024, "core.registers_per_thread": 63}, 63),
    ],
)
def test_registers_that_cost_no_warp(settings: dict[str, Any], free: int) -> None:
    gpu = description.load("gtx980", settings)
    assert free_registers(gpu.core) == free
    assert dict(registry.passes(gpu)[0].parameters)["free_registers"] == free
    full = gpu.core.threads // 32
    assert occupancy(gpu, 32, free, 0).limits["registers"] >= full
    assert free == gpu.core.registers_per_thread or occupancy(gpu, 32, free + 1, 0).limits["registers"] < full


# -------------------------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("settings", [*SETTINGS, ALL], ids=str)
def test_kernels_compute_the_same(settings: dict[str, Any]) -> None:
    for name in KERNELS:
        assert execute(Job(name, size="tiny", settings=settings))["checked"], name


@pytest.mark.parametrize("settings", [*SETTINGS, ALL], ids=str)
def test_random_programs(settings: dict[str, Any]) -> None:
    rng = seeded()
    for _ in range(RANDOM_PROGRAMS):
        simulate(rng.getrandbits(32), fixed=settings)


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("name", PASSES)
def test_random_programs_with_one_pass(name: str) -> None:
    test_random_programs({f"compiler.{name}": 1})


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("name", ["predication", "rematerialization", "scheduling"])
def test_a_pass_needs_no_more_registers(name: str) -> None:
    """But for those that cost no warp, if it is scheduling."""
    settings = {"compiler.addresses": 32, "compiler.constant_operands": 1}
    settings |= {f"compiler.{each}": 1 for each in PASSES[: PASSES.index(name)]}
    gpu = description.load("gtx480", settings)
    before = registry.passes(gpu)
    after = registry.passes(description.load("gtx480", settings | {f"compiler.{name}": 1}))
    free = free_registers(gpu.core) if name == "scheduling" else 0
    for ptx in {kernels.find(name).ptx for name in kernels.names()[::4]}:
        module = parse(ptx.read_text(encoding="utf-8"), str(ptx))
        plain, made = build(module, 63, before).kernels, build(module, 63, after).kernels
        for kernel, each in made.items():
            most = max(plain[kernel].registers, free)
            fewer, longer = most - each.registers, len(each.code) - len(plain[kernel].code)
            assert fewer > 0 or (fewer == 0 and longer <= 0), kernel


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("settings", [BOTH, ALL], ids=str)
def test_kernels_need_no_more_registers(settings: dict[str, Any]) -> None:
    """But for those that cost no warp, with scheduling."""
    gpu = description.load("gtx480", settings)
    passes, free = registry.passes(gpu), free_registers(gpu.core) * gpu.compiler.scheduling
    for ptx in {kernels.find(name).ptx for name in kernels.names()[::4]}:
        module = parse(ptx.read_text(encoding="utf-8"), str(ptx))
        plain, made = build(module, 63).kernels, build(module, 63, passes).kernels
        for name, each in made.items():
            assert each.registers <= max(plain[name].registers, free), name
            assert len(each.code) <= len(plain[name].code), name


def test_the_description_is_checked() -> None:
    with pytest.raises(UsageError, match=r"compiler\.addresses = 40: must be 32 or 64"):
        Gpu("gtx480", settings={"compiler.addresses": 40})
