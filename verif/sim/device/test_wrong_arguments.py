"""Wrong types and values in every call of the Python API: one line that says what is wrong, before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lockstep.sim import Gpu, UsageError
from lockstep.sim.device.buffers import Buffer
from lockstep.sim.device.module import Module

PTX = """.version 7.0
.target sm_75
.address_size 64
.global .align 4 .u32 number;
.global .texref picture;
.visible .entry fill(.param .u64 out)
{
  .reg .u64 %o;
  ld.param.u64 %o, [out];
  st.global.u32 [%o], 1;
  ret;
}
"""


ODD: list[Any] = [
    None, 5, 2.5, True, b"a", "", "a\0b", "\ud800", [], {}, ..., len, 1 << 70, -1, float("nan"), np.zeros(3),
]  # fmt: skip
UNHASHABLE = ("[]", "{}", "array([0., 0., 0.])")


def calls(gpu: Gpu, module: Module, buffer: Buffer) -> dict[str, tuple[Callable[[Any], object], tuple[str, ...]]]:
    """By name: a call with one value, and what of :data:`ODD` is right there, as it is shown."""
    return {
        "Gpu": (lambda x: Gpu(x), ()),
        "Gpu, mechanisms": (lambda x: Gpu(mechanisms=x), ("[]", "{}")),
        "Gpu, a mechanism": (lambda x: Gpu(mechanisms=[x]), ()),
        "Gpu, settings": (lambda x: Gpu(settings=x), ("None", "{}")),
        "Gpu, a setting's name": (lambda x: Gpu(settings={x: 1}), UNHASHABLE),
        "Gpu, a setting": (lambda x: Gpu(l1_mshrs=x), ("5",)),
        "Gpu, progress": (lambda x: Gpu(progress=x), ("None", repr(len))),
        "to_device": (gpu.to_device, ("5", "2.5", "True", "b'a'", "[]", "-1", "nan", UNHASHABLE[2])),
        "empty, shape": (lambda x: gpu.empty(x, np.uint8), ("5", "True", "[]")),
        "empty, dtype": (lambda x: gpu.empty(1, x), ("None",)),
        "from_device": (gpu.from_device, ()),
        "free": (gpu.free, ()),
        "texture": (gpu.texture, ()),
        "texture, filter": (lambda x: gpu.texture([1], filter=x), ()),
        "texture, address": (lambda x: gpu.texture([1], address=x), ()),
        "texture, channels": (lambda x: gpu.texture([1], channels=x), ("True",)),
        "load": (gpu.load, ()),
        "load, registers": (lambda x: gpu.load(PTX, x), ("None", "{}")),
        "load, registers of a kernel": (lambda x: gpu.load(PTX, {"fill": x}), ("5", "True", str(1 << 70))),
        "load, registers, a name": (lambda x: gpu.load(PTX, {x: 5}), UNHASHABLE),
        "load, include": (lambda x: gpu.load("saxpy.cu", include=x), ()),
        "load, a folder": (lambda x: gpu.load("saxpy.cu", include=[x]), ()),
        "load, define": (lambda x: gpu.load("saxpy.cu", define=x), ()),
        "load, a macro": (lambda x: gpu.load("saxpy.cu", define=[x]), ()),
        "load, std": (lambda x: gpu.load("saxpy.cu", std=x), ()),
        "load, arch": (lambda x: gpu.load("saxpy.cu", arch=x), ()),
        "kernel": (module.kernel, ()),
        "launch, name": (lambda x: module.launch(x, 1, 1, [buffer]), ()),
        "launch, grid": (lambda x: module.launch("fill", x, 2048, [buffer]), ()),
        "launch, block": (lambda x: module.launch("fill", 1, x, []), ()),
        "launch, arguments": (lambda x: module.launch("fill", 1, 1, x), ()),
        "launch, an argument": (lambda x: module.launch("fill", 1, 1, [x], 1 << 40), ()),
        "launch, shared_bytes": (lambda x: module.launch("fill", 1, 2048, [buffer], x), ()),
        "occupancy, name": (lambda x: module.occupancy(x, 32), ()),
        "occupancy, block": (lambda x: module.occupancy("fill", x), ("5", "True")),
        "occupancy, shared_bytes": (lambda x: module.occupancy("fill", 32, x), ("5", "True")),
        "set_symbol, name": (lambda x: module.set_symbol(x, [1]), ()),
        "set_symbol": (lambda x: module.set_symbol("number", x), ("True", "b'a'", "[]")),
        "set_symbol, offset": (lambda x: module.set_symbol("number", b"", x), ("True",)),
        "set_symbol of a texture": (lambda x: module.set_symbol("picture", x), ()),
        "get_symbol, name": (module.get_symbol, ()),
        "get_symbol, dtype": (lambda x: module.get_symbol("number", x), ()),
        "buffer +": (lambda x: buffer + x, ("5", "True", "-1")),
        "buffer -": (lambda x: buffer - x, ("5", "True", "-1")),
        "trace, sm": (lambda x: gpu.trace(x).__enter__(), ("5", "True")),
        "trace, cycles": (lambda x: gpu.trace(cycles=x).__enter__(), ()),
        "trace, events": (lambda x: gpu.trace(events=x).__enter__(), ("None", "5", "True")),
        "trace, around_stop": (lambda x: gpu.trace(around_stop=x).__enter__(), ("None", "5", "True")),
    }


@pytest.fixture(scope="module")
def known() -> dict[str, tuple[Callable[[Any], object], tuple[str, ...]]]:
    gpu = Gpu()
    return calls(gpu, gpu.load(PTX), gpu.empty(4, np.uint32))


@pytest.mark.filterwarnings("ignore:Data type alias")
@pytest.mark.parametrize("value", ODD, ids=repr)
def test_a_wrong_value(known: dict[str, tuple[Callable[[Any], object], tuple[str, ...]]], value: Any) -> None:
    for name, (call, right) in known.items():
        if repr(value) not in right:
            try:
                call(value)
            except UsageError as error:
                assert "\n" not in str(error), name
            except Exception as error:
                pytest.fail(f"{name}: {error!r}")
            else:
                pytest.fail(f"{name}: is taken")
