"""Loads and stores of every type and width, whose values the crossbars move, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
import pytest

from lockstep.models.stop import ModelFault
from lockstep.sim import Gpu
from lockstep.sim.cosim.session import Session, chosen
from lockstep.sim.device.module import Module
from lockstep.sim.errors import KernelFault
from lockstep.verif.bench import seeded
from lockstep.verif.planted import Fault, component

CROSSBAR, STORE_CROSSBAR = "lsu.line_crossbar", "lsu.store_crossbar"
THREADS = 80  # the last warp is not full
ELEMENTS = 512

# Type of the access, elements, and bits of the registers.
ACCESSES = [
    *((kind, 1, bits) for kind in ("u8", "s8") for bits in (16, 32, 64)),
    *((kind, 1, bits) for kind in ("u16", "s16") for bits in (16, 32, 64)),
    *((kind, 1, bits) for kind in ("u32", "s32") for bits in (32, 64)),
    ("u64", 1, 64),
    *(("u8", count, 16) for count in (2, 4)),
    *(("s8", count, 32) for count in (2, 4)),
    *(("s16", count, 32) for count in (2, 4)),
    *(("u32", count, 32) for count in (2, 4)),
    ("s32", 2, 64),
    ("u64", 2, 64),
]

FAULTS = [
    Fault(CROSSBAR, "rtl", mistake, old, new)
    for mistake, old, new in (
        ("nothing is written", "self.write.valid.eq(self._moves)", "self.write.valid.eq(0)"),
        ("the second registers of eight bytes are exchanged", "Mux(index[1], read[3], read[1])",
         "Mux(index[1], read[1], read[3])"),
        ("bytes are not extended", "fill.eq(found.sign & ", "fill.eq(0 & "),
        ("bytes are those of even addresses", "byte.eq(Mux(shift[0], half[8:], half[:8]))", "byte.eq(half[:8])"),
        ("halves are the lower ones", "half.eq(Mux(shift[1], word[16:], word[:16]))", "half.eq(word[:16])"),
    )
]  # fmt: skip

STORE_FAULTS = [
    Fault(STORE_CROSSBAR, "rtl", mistake, old, new)
    for mistake, old, new in (
        ("of lanes that store the same byte not the last one wins", "[*number, upper]", "[*number, upper & ~lower]"),
        ("the second words of eight bytes are the first", "pair.eq(Mux(width.double, register[1], word))",
         "pair.eq(word)"),
        ("bytes are where they are in the register", "register[0][:8].replicate(4)", "register[0]"),
        ("two bytes are stored as four", "store.size >= byte.bit_length()",
         "store.size + store.size[0] >= byte.bit_length()"),
        ("all rows are the first", "place[ROW_BITS:] & rows", "place[ROW_BITS:] & 0"),
        ("lanes that take no part store", "store.mask[lane] << ", "1 << "),
    )
]  # fmt: skip


def kernel(access: str, kind: str, count: int, bits: int) -> str:
    """Every thread but some loads (``ld``) or stores (``st``) the element of ``data`` that ``index`` names.

    Its registers begin with, and are in the end, those of the thread in ``registers``.
    """
    size, own = int(kind[1:]) // 8 * count, bits // 8 * count
    vector = f".v{count}" if count > 1 else ""
    names = "%v0" if count == 1 else "{" + ", ".join(f"%v{k}" for k in range(count)) + "}"
    operands = f"{names}, [%element]" if access == "ld" else f"[%element], {names}"
    before = "\n".join(f"    ld.global.u{bits} %v{k}, [%own+{k * bits // 8}];" for k in range(count))
    after = "\n".join(f"    st.global.u{bits} [%own+{k * bits // 8}], %v{k};" for k in range(count))
    return f"""
.visible .entry {access}_{kind}_{count}_{bits}(.param .u64 data, .param .u64 index, .param .u64 registers)
{{
    .reg .pred %takes_part;
    .reg .b32 %thread, %at, %quarter;
    .reg .b64 %element, %own, %wide;
    .reg .b{bits} %v<{count}>;
    mov.u32 %thread, %tid.x;
    ld.param.u64 %own, [index];
    mul.wide.u32 %wide, %thread, 4;
    add.s64 %own, %own, %wide;
    ld.global.u32 %at, [%own];
    and.b32 %quarter, %thread, 3;
    setp.ne.u32 %takes_part, %quarter, 2;
    ld.param.u64 %element, [data];
    mul.wide.u32 %wide, %at, {size};
    add.s64 %element, %element, %wide;
    ld.param.u64 %own, [registers];
    mul.wide.u32 %wide, %thread, {own};
    add.s64 %own, %own, %wide;
{before}
    @%takes_part {access}.global{vector}.{kind} {operands};
{after}
    ret;
}}
"""


LOCAL = """
.visible .entry local(.param .u64 result)
{
    .local .align 4 .b8 mine[16];
    .reg .b32 %thread, %value, %at;
    .reg .b64 %to, %wide, %base;
    mov.u32 %thread, %tid.x;
    mul.lo.u32 %value, %thread, 0x01030507;
    mov.u64 %base, mine;
    st.local.u32 [%base], %value;
    and.b32 %at, %thread, 3;
    cvt.u64.u32 %wide, %at;
    add.s64 %base, %base, %wide;
    st.local.u8 [%base], %thread;
    sub.s64 %base, %base, %wide;
    ld.local.u32 %value, [%base];
    ld.param.u64 %to, [result];
    mul.wide.u32 %wide, %thread, 4;
    add.s64 %to, %to, %wide;
    st.global.u32 [%to], %value;
    ret;
}
"""


TAKES_PART = np.arange(THREADS) % 4 != 2


def loaded(kind: str, data: np.ndarray, index: np.ndarray, registers: np.ndarray) -> np.ndarray:
    """What the registers of all threads hold in the end."""
    elements = data.view(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}").reshape(-1, registers.shape[1])
    extended = elements[index].astype(f"i{registers.itemsize}").view(registers.dtype)
    return np.where(TAKES_PART[:, None], extended, registers)


def stored(kind: str, data: np.ndarray, index: np.ndarray, registers: np.ndarray) -> np.ndarray:
    """What memory holds; of the threads of a warp that store to one place the last one counts."""
    after = data.copy()
    elements = after.view(f"u{int(kind[1:]) // 8}").reshape(-1, registers.shape[1])
    for thread in np.flatnonzero(TAKES_PART):
        elements[index[thread]] = registers[thread].astype(elements.dtype)
    return after


@contextmanager
def machine(block: str, mode: str, makes: dict[str, Any] | None = None) -> Iterator[tuple[Gpu, Module]]:
    """All kernels on a GPU with the hardware of a block in the place of its model, or not."""
    gpu = Gpu("gtx480", ["warppool"], {"core.sms": 1})
    kernels = [kernel(access, *each) for each in ACCESSES for access in ("ld", "st")]
    module = gpu.load("".join([".version 8.0\n.target sm_70\n.address_size 64\n", *kernels, LOCAL]))
    instances = chosen(block, gpu.machine.instances) if mode == "replace" else []
    with closing(Session(gpu.machine, instances, "replace", makes)):
        yield gpu, module


def launches(gpu: Gpu, module: Module, access: str) -> Iterator[tuple[str, list[np.ndarray], list[np.ndarray]]]:
    """Launch each kernel with elements in a row and scattered. Yields its type, and what it was given and has left.

    What is given and left: the elements, which of them the threads access, and the threads' registers.
    """
    rng = np.random.default_rng(seeded().getrandbits(32))
    for kind, count, bits in ACCESSES:
        for scattered in (False, True):
            data = rng.integers(0, 256, ELEMENTS * 16, np.uint8)
            index = np.arange(THREADS, dtype=np.uint32) + rng.integers(0, 40, dtype=np.uint32)
            if scattered:  # threads of a warp may meet, those of two do not
                index = (rng.integers(0, 40, THREADS) + 150 * (np.arange(THREADS) // 32)).astype(np.uint32)
            registers = rng.integers(0, 256, (THREADS, count * bits // 8), np.uint8).view(f"u{bits // 8}")
            before = [data, index, registers]
            arguments = [gpu.to_device(array) for array in before]
            module.launch(f"{access}_{kind}_{count}_{bits}", 1, THREADS, arguments)
            yield kind, before, [gpu.from_device(array) for array in arguments]


def run_loads(mode: str, makes: dict[str, Any] | None = None) -> None:
    with machine(CROSSBAR, mode, makes) as (gpu, module):
        for kind, before, after in launches(gpu, module, "ld"):
            np.testing.assert_array_equal(after[2], loaded(kind, *before), f"{kind} to {before[2].dtype}")


def run_stores(mode: str, makes: dict[str, Any] | None = None) -> None:
    with machine(STORE_CROSSBAR, mode, makes) as (gpu, module):
        for kind, before, after in launches(gpu, module, "st"):
            np.testing.assert_array_equal(after[0], stored(kind, *before), f"{kind} of {before[2].dtype}")
        result = gpu.empty(THREADS, np.uint32)
        module.launch("local", 1, THREADS, [result])
        right = (np.arange(THREADS, dtype=np.uint32) * np.uint32(0x01030507)).view(np.uint8).reshape(THREADS, 4)
        right[np.arange(THREADS), np.arange(THREADS) % 4] = np.arange(THREADS)
        np.testing.assert_array_equal(gpu.from_device(result), right.view(np.uint32)[:, 0])


@pytest.mark.long
@pytest.mark.parametrize(
    ("run", "mode"),
    [
        (run_loads, "model"),
        (run_stores, "replace"),
        pytest.param(run_loads, "replace", marks=pytest.mark.exhaustive),
        pytest.param(run_stores, "model", marks=pytest.mark.exhaustive),
    ],
)
def test_every_type_and_width(run: Callable[[str], None], mode: str) -> None:
    run(mode)


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS[::3], ids=str)
def test_results_are_what_the_hardware_moved(fault: Fault) -> None:
    message = r"\d to uint|address 0xeeadbeef"  # the poison as an index: 0xdeadbeef + 0x10000000
    with pytest.raises((AssertionError, KernelFault), match=message):
        run_loads("replace", {CROSSBAR: component(fault)})


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("fault", STORE_FAULTS[::3], ids=str)
def test_lines_of_stores_are_what_the_hardware_moved(fault: Fault) -> None:
    message = r"lane \d+ stores to 0x\w+, and the byte sent to 0x\w+ is wrong"
    with pytest.raises(ModelFault, match=message):
        run_stores("replace", {STORE_CROSSBAR: component(fault)})


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_line_that_does_not_arrive_is_missed() -> None:
    fault = Fault(STORE_CROSSBAR, "rtl", "nothing", "self.write.valid.eq(self._moves)", "self.write.valid.eq(0)")
    with pytest.raises(RuntimeError, match=r"conservation is broken .*: lines of stores in WarpPool's crossbar"):
        run_stores("replace", {STORE_CROSSBAR: component(fault)})
