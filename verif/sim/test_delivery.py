"""Loads of every type and width whose values come through the line crossbar, against NumPy."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest

from lockstep.sim import Gpu
from lockstep.sim.cosim.session import Session, chosen
from lockstep.sim.errors import KernelFault
from lockstep.verif.bench import seeded
from lockstep.verif.planted import Fault, component

CROSSBAR = "lsu.line_crossbar"
THREADS = 80  # the last warp is not full
ELEMENTS = 512
UNLOADED = 7  # what the registers of a thread that does not load hold

# Type of the load, elements, and bits of the registers.
LOADS = [
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


def kernel(kind: str, count: int, bits: int) -> str:
    """Every thread but some loads the element that ``index`` names, and stores its registers."""
    size = int(kind[1:]) // 8 * count
    registers = "%v0" if count == 1 else "{" + ", ".join(f"%v{k}" for k in range(count)) + "}"
    stores = "\n".join(f"    st.global.u{bits} [%to+{k * bits // 8}], %v{k};" for k in range(count))
    vector = f".v{count}" if count > 1 else ""
    return f"""
.visible .entry load_{kind}_{count}_{bits}(.param .u64 data, .param .u64 index, .param .u64 result)
{{
    .reg .pred %loads;
    .reg .b32 %thread, %at, %quarter;
    .reg .b64 %from, %to, %wide;
    .reg .b{bits} %v<{count}>;
    mov.u32 %thread, %tid.x;
    ld.param.u64 %from, [index];
    mul.wide.u32 %wide, %thread, 4;
    add.s64 %from, %from, %wide;
    ld.global.u32 %at, [%from];
    and.b32 %quarter, %thread, 3;
    setp.ne.u32 %loads, %quarter, 2;
    ld.param.u64 %from, [data];
    mul.wide.u32 %wide, %at, {size};
    add.s64 %from, %from, %wide;
{"".join(f"    mov.u{bits} %v{k}, {UNLOADED};" for k in range(count))}
    @%loads ld.global{vector}.{kind} {registers}, [%from];
    ld.param.u64 %to, [result];
    mul.wide.u32 %wide, %thread, {bits // 8 * count};
    add.s64 %to, %to, %wide;
{stores}
    ret;
}}
"""


def expected(kind: str, count: int, bits: int, data: np.ndarray, index: np.ndarray) -> np.ndarray:
    elements = data.view(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}").reshape(-1, count)
    loaded = elements[index].astype(f"i{bits // 8}").view(f"u{bits // 8}")
    loaded[np.arange(THREADS) % 4 == 2] = UNLOADED
    return loaded


def run(mode: str, makes: dict[str, Any] | None = None) -> None:
    """Run all kernels and compare; with the hardware in the place of the model, or not."""
    gpu = Gpu("gtx480", ["warppool"], {"core.sms": 1})
    ptx = ".version 8.0\n.target sm_70\n.address_size 64\n" + "".join(kernel(*load) for load in LOADS)
    module = gpu.load(ptx)
    rng = np.random.default_rng(seeded().getrandbits(32))
    instances = chosen(CROSSBAR, gpu.machine.instances) if mode == "replace" else []
    with closing(Session(gpu.machine, instances, "replace", makes)):
        for kind, count, bits in LOADS:
            for shuffled in (False, True):
                data = rng.integers(0, 256, ELEMENTS * 16, np.uint8)
                index = np.arange(THREADS, dtype=np.uint32) + rng.integers(0, 40, dtype=np.uint32)
                if shuffled:
                    index = rng.permutation(np.repeat(rng.integers(0, ELEMENTS, THREADS // 2), 2)).astype(np.uint32)
                result = gpu.empty((THREADS, count), f"u{bits // 8}")
                arguments = [gpu.to_device(data), gpu.to_device(index), result]
                module.launch(f"load_{kind}_{count}_{bits}", 1, THREADS, arguments)
                right = expected(kind, count, bits, data, index)
                np.testing.assert_array_equal(gpu.from_device(result), right, f"{kind} x {count} to {bits} bits")


@pytest.mark.parametrize("mode", ["model", "replace"])
def test_every_type_and_width(mode: str) -> None:
    run(mode)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_results_are_what_the_hardware_moved(fault: Fault) -> None:
    with pytest.raises((AssertionError, KernelFault), match=r"\d bits|address 0xeeadc0ef"):  # 0xdeadbeef + 0x10000000
        run("replace", {CROSSBAR: component(fault)})
