"""No path may exchange what a warp's order forbids: kernels that would show it, and a unit without its counters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lockstep.models.execution.isa import Fault
from lockstep.models.jit import address, i64, pointer_to, slot
from lockstep.models.stop import ModelFault
from lockstep.models.warppool import load_store_order
from lockstep.sim import Gpu
from lockstep.spec.registry import MECHANISMS

PATHS = ("", *(name for name, mechanism in MECHANISMS.items() if "path" in mechanism.tenants))
WARPS = 12  # of a CTA
CTAS = 2
FRAME = """
.version 7.8
.target sm_75
.address_size 64
.visible .entry k(.param .u64 data)
{{
    .reg .b32 %r<32>;
    .reg .pred %p<4>;
    .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r3, %r2, {threads}, %r1;   // thread
    and.b32 %r4, %r3, 31;                  // lane
    shr.u32 %r5, %r3, 5;                   // warp
    mul.lo.u32 %r6, %r5, {span};
    mul.lo.u32 %r7, %r4, {stride};
    add.u32 %r8, %r6, %r7;
    mul.wide.u32 %rd2, %r8, 4;
    add.u64 %rd2, %rd1, %rd2;              // the lane's word
    mov.u32 %r9, 0;                        // sum of what was loaded
    mov.u32 %r10, 0;
again:
{body}
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p1, %r10, {rounds};
    @%p1 bra again;
    st.global.u32 [%rd2], %r9;
    ret;
}}
"""
ROUNDS = 6
SPAN = 40 * 33  # words between the regions of warps
BODIES = {
    "store-load": "st.global.u32 [%rd2], %r10; ld.global.u32 %r11, [%rd2]; add.u32 %r9, %r9, %r11;",
    "load-store": "ld.global.u32 %r11, [%rd2]; add.u32 %r9, %r9, %r11; st.global.u32 [%rd2], %r10;",
    "store-store": "st.global.u32 [%rd2], %r9; st.global.u32 [%rd2], %r10; ld.global.u32 %r11, [%rd2];"
                   "add.u32 %r9, %r9, %r11;",
    "atomic-load": "atom.global.add.u32 %r12, [%rd2], 1; ld.global.u32 %r11, [%rd2]; add.u32 %r9, %r9, %r11;",
    "barrier": "st.global.u32 [%rd2], %r10; bar.sync 0; ld.global.u32 %r11, [%rd2]; add.u32 %r9, %r9, %r11;"
               "bar.sync 0;",
    "many loads": "ld.global.u32 %r11, [%rd2]; ld.global.u32 %r12, [%rd2+4]; ld.global.u32 %r13, [%rd2+128];"
                  "ld.global.u32 %r14, [%rd2+132]; st.global.u32 [%rd2], %r10; add.u32 %r9, %r9, %r11;",
}  # fmt: skip


def expected(name: str) -> int:
    """What every lane's word holds in the end."""
    memory = total = 0
    for turn in range(ROUNDS):
        if name in ("load-store", "many loads"):
            total, memory = total + memory, turn
        elif name == "atomic-load":
            memory += 1
            total += memory
        else:
            memory = turn
            total += memory
    return total


def prepare(name: str, stride: int, mechanism: str, **settings: int) -> tuple[Gpu, Any, Any]:
    gpu = Gpu("gtx480", [mechanism] if mechanism else [], {"core.sms": 1, **settings})
    module = gpu.load(
        FRAME.format(threads=32 * WARPS, span=SPAN, stride=stride, body=BODIES[name], rounds=ROUNDS)
    )
    return gpu, module, gpu.to_device(np.zeros(CTAS * WARPS * SPAN + 64, np.uint32))


@pytest.mark.parametrize("mechanism", PATHS)
@pytest.mark.parametrize("stride", [1, 5, 33], ids=["one line", "some lines", "a line per lane"])
@pytest.mark.parametrize("name", BODIES)
def test_results_and_order(name: str, stride: int, mechanism: str) -> None:
    """The order is checked by the model at every line; the results are the program's."""
    gpu, module, data = prepare(name, stride, mechanism)
    module.launch("k", (CTAS,), (32 * WARPS,), [data])
    words = gpu.from_device(data)[: CTAS * WARPS * SPAN].reshape(-1, SPAN)[:, : 32 * stride : stride]
    assert (words == expected(name)).all()


@pytest.mark.parametrize("name", BODIES)
def test_either_policy_of_the_selector(name: str) -> None:
    """With a short quantum and loads that all miss, the policy changes: both are seen."""
    _, module, data = prepare(name, 33, "warppool", **{"warppool.quantum": 16, "l1.sets": 32, "l1.ways": 1})
    run = module.launch("k", (CTAS,), (32 * WARPS,), [data])
    assert 0 < run.stats["warppool.by_warp"] < 1


at_order = pointer_to(load_store_order.PORTS)


@slot
def _everything_goes(state, io):
    ports = at_order(io)
    ports.o.drained = i64(-1)
    ports.o.load_ready = i64(-1)
    return i64(0)


@pytest.mark.parametrize("name", ["load-store", "store-load", "many loads", "barrier"])
def test_without_the_counters_the_order_breaks(name: str) -> None:
    _, module, data = prepare(name, 33, "warppool")
    machine = module.gpu.machine
    for instance in machine.instances:
        if instance.block == "warppool.load_store_order":
            instance.record["binding"]["step"] = address(_everything_goes)
            instance.record["binding"]["idle"] = address(_everything_goes)
    with pytest.raises(ModelFault) as caught:
        module.launch("k", (CTAS,), (32 * WARPS,), [data])
    assert caught.value.stop.code == Fault.MEMORY_ORDER
