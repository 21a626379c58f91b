"""Values that depend on timing, found while a launch is recorded; a trace whose path they steer is not replayed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lockstep.sim import Gpu
from lockstep.sim.errors import UsageError
from lockstep.sim.traces.read import Trace
from lockstep.sim.traces.schema import Mark
from lockstep.verif import replays
from lockstep.verif.sim.traces.programs import HEAD, replayed

REGISTERS = ".reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .shared .align 4 .b8 pad[512];"
BEGIN = f"""{HEAD}.visible .entry f(.param .u64 a, .param .u64 b) {{ {REGISTERS}
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; shl.b32 %r3, %r1, 2; mov.u32 %r4, pad; add.u32 %r5, %r4, %r3;
  mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3; xor.b32 %r6, %r3, 128; add.u32 %r7, %r4, %r6;
"""
BRANCH = "setp.ne.u32 %p1, %r8, 0; @%p1 bra OUT; add.u32 %r8, %r8, 1; OUT: st.global.u32 [%rd2], %r8; ret; }"
STORE = "st.global.u32 [%rd2], %r8; ret; }"

RACE, ORDER = "in a race with another warp", "depends on the order of other warps' accesses"
STEERED = {
    "spinning": ("setp.ne.u32 %p2, %r2, 0; @%p2 bra WAIT; mov.u32 %r8, 1; st.volatile.global.u32 [%rd1], %r8; bra OUT;"
                 "WAIT: ld.volatile.global.u32 %r8, [%rd1]; setp.eq.u32 %p1, %r8, 0; @%p1 bra WAIT; OUT: ret; }", RACE),
    "an atomic's value, in a branch": ("atom.global.add.u32 %r8, [%rd1], 1;" + BRANCH, RACE),
    "an atomic's value, in an address": (
        "atom.global.add.u32 %r8, [%rd1], 1; mul.wide.u32 %rd5, %r8, 4; add.u64 %rd6, %rd2, %rd5;"
        "st.global.u32 [%rd6], %r8; ret; }", RACE),
    "a scratchpad without a barrier": ("st.shared.u32 [%r5], %r1; ld.shared.u32 %r8, [%r7];" + BRANCH, RACE),
    "a load before another CTA's store": (
        "ld.global.u32 %r8, [%rd1]; setp.ne.u32 %p2, %r2, 0; @%p2 st.global.u32 [%rd1], %r2;" + BRANCH, RACE),
    "through memory": (
        "atom.global.add.u32 %r8, [%rd1], 1; st.shared.u32 [%r5], %r8; bar.sync 0; ld.shared.u32 %r8, [%r7];" + BRANCH,
        ORDER),
    "stores that clash": ("st.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r8, [%r4];" + BRANCH, ORDER),
    "a clock": ("mov.u32 %r8, %clock; and.b32 %r8, %r8, 1;" + BRANCH, "the clock"),
    "the number of the SM": ("mov.u32 %r8, %smid;" + BRANCH, "the number of its SM"),
}  # fmt: skip
FREE = {
    "a barrier between": "st.shared.u32 [%r5], %r1; bar.sync 0; ld.shared.u32 %r8, [%r7];" + BRANCH,
    "values that steer nothing": "atom.global.add.u32 %r8, [%rd1], 1;" + STORE,
    "a store of what is there": "mov.u32 %r8, 0; st.global.u32 [%rd1], %r8; ld.global.u32 %r8, [%rd1];" + BRANCH,
    "no value": "red.global.add.u32 [%rd1], 1; mov.u32 %r8, 0;" + BRANCH,
    "an own place": "st.global.u32 [%rd4+256], %r1; ld.global.u32 %r8, [%rd4+256];" + STORE,
    "a value that is replaced": "atom.global.add.u32 %r8, [%rd1], 1; mov.u32 %r8, 3;" + BRANCH,
    "another CTA's scratchpad before": "ld.shared.u32 %r9, [%r5]; st.shared.u32 [%r5], %r1; ld.shared.u32 %r8, [%r5];"
    + BRANCH,
}


def marks(body: str, folder: Path) -> list[Mark]:
    device = Gpu("gtx480", settings={"core.sms": 2})
    module = device.load(BEGIN + body)
    a, b = (device.to_device(np.zeros(4096, np.uint32)) for _ in range(2))
    with device.recording(folder):
        module.launch("f", 24, 64, [a, b])
    return Trace(folder).manifest.launches[0].marks


@pytest.mark.parametrize("what", STEERED)
def test_what_depends_on_timing_is_found(what: str, tmp_path: Path) -> None:
    body, why = STEERED[what]
    found = marks(body, tmp_path / "trace")
    assert found and all(why in mark.why for mark in found)
    with pytest.raises(UsageError, match="only an execution can say"):
        replayed(tmp_path / "trace")


def test_what_an_earlier_launch_has_left(tmp_path: Path) -> None:
    """An atomic hands out places; the next launch goes where they say. What the host writes in between is its own."""
    device = Gpu("gtx480")
    hands_out = "atom.global.add.u32 %r8, [%rd1], 1; mul.wide.u32 %rd5, %r2, 4; add.u64 %rd6, %rd2, %rd5;"
    first = device.load(BEGIN + hands_out + "st.global.u32 [%rd6], %r8; ret; }")
    second = device.load(BEGIN + "ld.global.u32 %r8, [%rd1]; and.b32 %r8, %r8, 1;" + BRANCH)
    a, b, c = (device.to_device(np.zeros(64, np.uint32)) for _ in range(3))
    with device.recording(tmp_path / "trace"):
        first.launch("f", 8, 1, [a, b])
        second.launch("f", 1, 32, [b, c])
        device.memory.write(b.base, np.full(256, 7, np.uint8))
        second.launch("f", 1, 32, [b, c])
    found = [launch.marks for launch in Trace(tmp_path / "trace").manifest.launches]
    assert [bool(marks) for marks in found] == [False, True, False]
    assert "an earlier launch has left" in found[1][0].why


def test_half_of_a_pair_that_is_none(tmp_path: Path) -> None:
    """Addresses of 32 bits are in one register, whatever is in the next one."""
    row = replays.rows("simpleAtomicIntrinsics", "tesla-c2050", ["baseline"], "tiny")
    assert not row[0].refused and not row[0].differs


@pytest.mark.parametrize("what", FREE)
def test_what_does_not_is_not(what: str, tmp_path: Path) -> None:
    assert marks(FREE[what], tmp_path / "trace") == []
    assert len(replayed(tmp_path / "trace").runs) == 1
