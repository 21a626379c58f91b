"""The 22 characteristics of Chen's table 3-1: a kernel of 40 threads for each, and the numbers by hand.

The second warp has 8 lanes, and ``%p`` holds in 5 lanes of the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lockstep.sim import Gpu
from lockstep.sim.study.job import Job, execute

THREADS = 40
HEADER = ".version 7.8\n.target sm_75\n.address_size 64\n"
REGISTERS = """.reg .u64 %o, %x, %y; .reg .u32 %t, %a, %r, %i; .reg .f32 %f, %g, %h, %k; .reg .f64 %d, %e;
.reg .pred %p, %q;
.shared .align 128 .b8 s[8192]; .local .align 8 .b8 l[32];
"""
TID = "mov.u32 %t, %tid.x;"
P = "setp.lt.u32 %p, %t, 5;"
OUT = f"{TID} ld.param.u64 %o, [out]; {P}"
SHARED = f"{TID} mov.u32 %a, s; {P}"


def stride(bytes_: int, of: str = "%o") -> str:
    return f"mad.wide.u32 %x, %t, {bytes_}, {of};" if of == "%o" else f"mad.lo.u32 %a, %t, {bytes_}, %a;"


CASES: dict[str, tuple[str, dict[str, float]]] = {
    "scratchpad": (
        f"{SHARED} {stride(4, '%a')} st.shared.u32 [%a], %t; @%p ld.shared.u32 %r, [%a];",
        # mov, mov, mad, setp and ret; the store reads two registers, and 5 lanes of the load read one and write one
        {"ShMInst": 45, "INT": 3 * 40, "ALU": 5 * 40, "Register": (1 + 1 + 3 + 1 + 2) * 40 + 2 * 5},
    ),
    "parameters": ("ld.param.u64 %o, [out];", {"PMInst": 40, "Register": 80, "ALU": 40}),
    "local memory": (f"{TID} {P} st.local.u32 [l], %t; @%p ld.local.u32 %r, [l+4];", {"LMInst": 45}),
    "global memory": (f"{OUT} {stride(4)} st.global.u32 [%x], %t; @%p ld.global.u32 %r, [%x];", {"GMInst": 45}),
    "generic addresses": (
        f"{OUT} {stride(4)} mov.u64 %y, s; cvta.shared.u64 %y, %y; st.u32 [%y], %t; st.u32 [%x], %t;"
        "mov.u64 %o, l; cvta.local.u64 %o, %o; ld.u32 %r, [%o]; selp.u64 %x, %x, %y, %p; st.u32 [%x], %t;",
        {"ShMInst": 40 + 35, "GMInst": 40 + 5, "LMInst": 40},
    ),
    "lines of local memory": (
        f"{TID} mov.u64 %o, l; cvta.local.u64 %o, %o; and.b32 %t, %t, 7; {stride(4)} ld.u32 %r, [%x];",
        {"LMInst": 40},
    ),
    "all lanes in lines of their own": (
        f"{OUT} {stride(128)} st.global.u32 [%x], %t; @%p ld.global.u8 %r, [%x]; @!%p ld.u8 %r, [%x];",
        {"GMInst": 80, "UncoalesMem": 80},
    ),
    "one lane": (f"{OUT} setp.eq.u32 %p, %t, 7; @%p st.global.u32 [%o], %t;", {"GMInst": 1}),
    "two lanes": (
        f"{OUT} {stride(128)} setp.lt.u32 %p, %t, 2; @%p st.global.u64 [%x], %o;",
        {"GMInst": 2, "UncoalesMem": 2},
    ),
    "64 bits that follow each other": (f"{OUT} {stride(8)} st.global.u64 [%x], %o;", {"GMInst": 40}),
    "one line more than needed": (f"{OUT} {stride(4)} st.global.u32 [%x+4], %t;", {"GMInst": 40, "UncoalesMem": 32}),
    "single precision": (
        "mov.f32 %f, 0f3F800000; add.f32 %g, %f, %f; fma.rn.f32 %h, %f, %g, %g; div.rn.f32 %k, %h, %g;",
        {"S.FP": 3 * 40, "INT": 40, "Register": (1 + 2 + 3 + 3) * 40},
    ),
    "double precision": (
        "mov.f64 %d, 0d3FF0000000000000; add.f64 %e, %d, %d; div.rn.f64 %e, %d, %e;",
        {"D.FP": 2 * 40, "INT": 40, "ALU": 4 * 40, "Register": (2 + 4 + 6) * 40},
    ),
    "special functions": (
        "mov.f32 %f, 0f3F800000; sin.approx.f32 %g, %f; div.approx.f32 %h, %f, %g; mov.f64 %d, 0d3FF0000000000000;"
        "rcp.approx.ftz.f64 %e, %d;",
        {"SFU": 3 * 40, "ALU": 3 * 40},
    ),
    "integers": (
        f"{TID} mul.lo.u32 %a, %t, %t; shl.b32 %r, %a, 2; and.b32 %i, %r, %a; div.u32 %r, %i, 3; "
        "cvt.rn.f32.u32 %f, %r;",
        {"INT": 5 * 40, "ALU": 7 * 40},
    ),
    "atomics": (
        f"{OUT} mov.u32 %a, s; {stride(4, '%a')} atom.shared.add.u32 %r, [%a], 1; {stride(128)}"
        "red.global.add.u32 [%x], 1; @%p atom.add.u32 %r, [%x], 1; mov.u64 %y, s; cvta.shared.u64 %y, %y;"
        "@%p atom.add.u32 %r, [%y], 1;",
        {"Atomic": 90, "BankConf": 4},
    ),
    "barriers": (f"{TID} {P} bar.sync 0; bar.red.popc.u32 %r, 0, %p; bar.warp.sync 0xffffffff;", {"Barrier": 120}),
    "fences": ("membar.gl; membar.cta; fence.acq_rel.gpu;", {"M.Barrier": 120}),
    "a loop": (
        # taken twice by 40 lanes, and by none at its end
        "mov.u32 %i, 3; again: sub.u32 %i, %i, 1; setp.ne.u32 %q, %i, 0; @%q bra again; bra.uni end; end:",
        {"Branch": 40 + 40 + 40},
    ),
    "branches that diverge": (
        f"{TID} {P} @%p bra next; mov.u32 %r, 1; next: selp.u32 %i, 1, 0, %p;"
        "choices: .branchtargets one, two; brx.idx %i, choices; one: mov.u32 %r, 2; two:"
        "mov.u32 %i, 1; @%p brx.idx %i, choices_again; choices_again: .branchtargets three, four; three:"
        "mov.u32 %r, 3; four:",
        {"Branch": 5 + 40 + 5, "D.Branch": 3},
    ),
    "calls": ("call.uni f, (); @%p call f, (); call f, ();", {}),
    "two lanes in a bank": (f"{SHARED} {stride(8, '%a')} ld.shared.u32 %r, [%a];", {"ShMInst": 40, "BankConf": 1}),
    "all lanes in a bank": (f"{SHARED} {stride(128, '%a')} ld.shared.u32 %r, [%a];", {"ShMInst": 40, "BankConf": 38}),
}
"""What is executed, and its characteristics; those of :data:`RARE` that are not named are 0."""
RARE = (
    "ShMInst", "LMInst", "GMInst", "TMInst.hit", "TMInst.miss", "S.FP", "D.FP", "SFU", "Atomic", "Barrier", "M.Barrier",
    "Branch", "UncoalesMem", "D.Branch", "BankConf",
)  # fmt: skip


def characteristics(text: str, threads: int = THREADS, *args: Any, **parameters: Any) -> dict[str, float]:
    gpu = Gpu("gtx480", core_sms=1, **parameters)
    buffers = args or (gpu.to_device(np.zeros(8192, np.uint8)),)
    run = gpu.load(text).launch("k", 1, threads, [each(gpu) if callable(each) else each for each in buffers])
    return {name.removeprefix("chen."): value for name, value in run.stats.items() if name.startswith("chen.")}


def kernel(body: str, before: str = "") -> str:
    return f"{HEADER}{before}\n.visible .entry k(.param .u64 out) {{ {REGISTERS} {body} ret; }}"


@pytest.mark.parametrize("case", CASES)
def test_by_hand(case: str) -> None:
    body, expected = CASES[case]
    found = characteristics(kernel(body, ".func f() { ret; }" if case == "calls" else ""))
    assert {name: found[name] for name in {*RARE, *expected}} == dict.fromkeys(RARE, 0) | expected


def test_textures() -> None:
    """Two lines, of which each misses, and hits when it is there."""
    fetch = "tex.1d.v4.f32.s32 {%f, %g, %h, %k}, [%o, {%t}];"
    body = f"{OUT} {fetch} mov.b32 %r, %f; and.b32 %r, %r, 0; add.u32 %t, %t, %r; {fetch}"
    found = characteristics(kernel(body), THREADS, lambda gpu: gpu.texture(np.zeros(64, np.float32)))
    assert (found["TMInst.hit"], found["TMInst.miss"], found["GMInst"]) == (2, 2, 0)


def test_constants() -> None:
    """A line that the first access of each warp misses, or joins a miss for; and finds afterwards."""
    body = "mov.u32 %a, 0; ld.const.u32 %r, [c]; and.b32 %r, %r, 0; cvt.u64.u32 %x, %r; mov.u64 %y, c;" \
           "add.u64 %y, %y, %x; ld.const.u32 %i, [%y];"  # fmt: skip
    found = characteristics(kernel(body, ".const .align 128 .b32 c[32];"))
    assert (found["CMInst.hit"], found["CMInst.miss"], found["GMInst"]) == (2, 2, 0)


def test_occupancy() -> None:
    """One warp of 48, which starts a cycle after its CTA."""
    assert characteristics(kernel("membar.gl;"), 32)["Occupancy"] == pytest.approx(1 / 48, rel=0.01)


TIMING = ("TMInst.hit", "TMInst.miss", "CMInst.hit", "CMInst.miss", "Occupancy", "BankConf")


@pytest.mark.parametrize("mechanism", ["regless", "rfh", "rfv"])
def test_what_delivers_operands_makes_no_difference(mechanism: str) -> None:
    def counts(*mechanisms: str) -> dict[str, float]:
        stats = execute(Job("reduction", "gtx980", "tiny", 1, mechanisms, {"core.sms": 2}))["stats"]
        return {name: n for name, n in stats.items() if name.startswith(("chen.", "lanes."))}

    found, without = counts(mechanism), counts()
    for name in without:
        assert found[name] == without[name] or name.removeprefix("chen.") in TIMING, name
