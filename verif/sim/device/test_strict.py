"""Reads of what nobody has written: poison without ``strict``, a fault with it; and all kernels pass."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.models.execution.isa import POISON
from lockstep.sim import Gpu, KernelFault, kernels
from lockstep.verif.bench import elsewhere
from lockstep.verif.conftest import partly
from lockstep.verif.models.micro import Bench
from lockstep.verif.trial.mechanisms import registered

POISONED = POISON * 0x0101_0101
PTX = """
.version 7.0
.target sm_75
.address_size 64
.global .align 4 .b8 zeros[16];
.global .align 4 .u32 given = 77;
.const .align 4 .b8 constants[16];
.visible .entry k(.param .u64 out, .param .u64 data, .param .u64 image)
{{
  .reg .u64 %o, %d, %g, %wide; .reg .u32 %t, %v, %w, %c; .reg .u16 %h; .reg .pred %p, %q;
  .shared .align 16 .b8 tile[1040];
  .local .align 16 .b8 mine[32];
  ld.param.u64 %o, [out];
  ld.param.u64 %d, [data];
  mov.u32 %t, %tid.x;
  mov.u32 %c, %ctaid.x;
  setp.eq.u32 %p, %t, 7;
  setp.eq.u32 %q, %t, 6;
  mul.wide.u32 %wide, %t, 4;
  add.u64 %o, %o, %wide;
  mov.u32 %v, 0;
  cvt.u16.u32 %h, %t;
{body}
  st.global.u32 [%o], %v;
  ret;
}}
"""
SHARED, LOCAL = 0x0100_0000, 0x0200_0000  # generic addresses

# Body; what is read where; the offset of the address in its memory.
FAULTS: dict[str, tuple[str, str, int]] = {
    "scratchpad": ("@%p ld.shared.u32 %v, [tile+8];", "0x8", 7),
    "dynamic scratchpad": ("@%p ld.shared.u32 %v, [tile+1040];", hex(1040), 7),
    "half of a word": ("@%q st.shared.u16 [tile+8], %h; @%p ld.shared.u32 %v, [tile+8];", "0xa", 7),
    "one byte in a word": (
        "st.shared.u8 [tile+8], 1; st.shared.u8 [tile+10], 1; st.shared.u8 [tile+11], 1; ld.shared.u32 %v, [tile+8];",
        "0x9",
        0,
    ),
    "last of a vector": ("st.shared.v2.u32 [tile+16], {%t, %t}; ld.shared.v4.u32 {%v, _, _, _}, [tile+16];", "0x18", 0),
    "generic scratchpad": ("cvta.shared.u64 %g, tile; @%p ld.u32 %v, [%g+4];", hex(SHARED + 4), 7),
    "atomic in scratchpad": ("@%p atom.shared.add.u32 %v, [tile], 1;", "0x0", 7),
    "local memory": ("@%q st.local.u32 [mine+4], 1; @%p ld.local.u32 %v, [mine+4];", "0x4", 7),
    "generic local memory": ("cvta.local.u64 %g, mine; ld.u16 %h, [%g+30];", hex(LOCAL + 30), 0),
    "global memory": ("add.u64 %g, %d, %wide; @%p ld.global.u32 %v, [%g];", "byte 28 of an allocation of 256", 7),
    "volatile": ("ld.volatile.global.u32 %v, [%d];", "byte 0 of an allocation of 256", 0),
    "atomic in global memory": ("@%p red.global.add.u32 [%d+8], 1;", "byte 8 of an allocation of 256", 7),
    "scratchpad of an earlier CTA": (
        "setp.eq.u32 %q, %c, 39; @!%q st.shared.u32 [tile], %t; @%q ld.shared.u32 %v, [tile];", "CTA (39, 0, 0)", 0,
    ),
    "local memory of an earlier warp": (
        "setp.eq.u32 %q, %c, 39; @!%q st.local.u32 [mine], %t; @%q ld.local.u32 %v, [mine];", "CTA (39, 0, 0)", 0,
    ),
}  # fmt: skip

PASSES = {
    "what a lane of another warp has written": "st.shared.u32 [tile], 1; bar.sync 0; ld.shared.u32 %v, [tile];",
    "variables": "ld.global.u32 %v, [zeros]; ld.global.u32 %v, [given]; ld.const.u32 %w, [constants];",
    "a store makes it written": "add.u64 %g, %d, %wide; st.global.u32 [%g], %t; ld.global.u32 %v, [%g];",
    "an atomic on what was written": "st.shared.u32 [tile], 0; bar.sync 0; atom.shared.inc.u32 %v, [tile], 100;",
    "texels": "ld.param.u64 %g, [image]; tex.1d.v4.u32.s32 {%v, %w, %w, %w}, [%g, {%t}];",
    "a surface": "ld.param.u64 %g, [image]; sust.b.1d.b32.trap [%g, {8}], %t; suld.b.1d.b32.trap %v, [%g, {8}];",
    "a prefetch": "prefetch.global.L1 [%d];",
    "words of a vector": "st.local.v4.u32 [mine+16], {%t, %t, %t, %t}; ld.local.u64 %g, [mine+24];",
}


@pytest.fixture(autouse=True)
def trials() -> Iterator[None]:
    with registered():
        yield


def launch(body: str, strict: bool, grid: int = 1) -> np.ndarray:
    """The results of 64 threads in each of the CTAs."""
    gpu = Gpu("gtx480", strict=strict, core_sms=1)
    out, data = gpu.to_device(np.zeros(64, np.uint32)), gpu.empty(64, np.uint32)
    image = gpu.texture(np.arange(64, dtype=np.uint32))
    gpu.load(PTX.format(body=body)).launch("k", grid, 64, [out, data, image], shared_bytes=16)
    return gpu.from_device(out)


@pytest.mark.parametrize("name", FAULTS)
def test_a_read_of_what_nobody_wrote(name: str) -> None:
    body, where, lane = FAULTS[name]
    launch(body, strict=False, grid=40)
    with pytest.raises(KernelFault) as caught:
        launch(body, strict=True, grid=40)
    message = str(caught.value)
    assert message.startswith("k: read of memory that nobody has written at <text>:") and "\n" not in message
    assert body in message and "warp 0" in message and f"lane {lane}, address" in message and where in message, message


@pytest.mark.parametrize("name", PASSES)
def test_a_read_of_what_was_written(name: str) -> None:
    assert (launch(PASSES[name], strict=True) == launch(PASSES[name], strict=False)).all()


def faults(names: list[str]) -> list[str]:
    messages = []
    for name in names:
        try:
            launch(FAULTS[name][0], strict=True, grid=40)
        except KernelFault as fault:
            messages.append(str(fault))
    return messages


def test_interpreted_faults_are_the_same() -> None:
    some = ["half of a word", "local memory", "atomic in scratchpad", "scratchpad of an earlier CTA"]
    found = faults(some)
    assert len(found) == 4 and elsewhere(faults, some, NUMBA_DISABLE_JIT="1") == found


@pytest.mark.parametrize("memory", ["shared", "local"])
def test_a_new_cta_sees_poison(memory: str) -> None:
    """Each CTA reads before it writes: never what the one before it has left."""
    place = "tile+1052" if memory == "shared" else "mine+28"
    body = f"ld.{memory}.u32 %v, [{place}]; bar.sync 0; st.{memory}.u32 [{place}], %t;"
    assert (launch(body, strict=False, grid=40) == POISONED).all()


def test_memory_is_unwritten_again_when_it_is_allocated_again() -> None:
    gpu = Gpu("gtx480", strict=True, core_sms=1)
    module, image = gpu.load(PTX.format(body="ld.global.u32 %v, [%d];")), gpu.texture(np.zeros(4, np.uint32))
    out, data = gpu.empty(64, np.uint32), gpu.to_device(np.full(64, 9, np.uint32))
    module.launch("k", 1, 64, [out, data, image])
    module.launch("k", 1, 64, [data, out, image])  # which the first one has written
    gpu.free(data)
    again = gpu.empty(64, np.uint32)
    assert again.address == data.address
    with pytest.raises(KernelFault, match="nobody has written"):
        module.launch("k", 1, 64, [out, again, image])


def test_symbols_that_are_set_are_written() -> None:
    gpu = Gpu("gtx480", strict=True, core_sms=1)
    module, image = gpu.load(PTX.format(body="ld.global.u32 %v, [zeros+4];")), gpu.texture(np.zeros(4, np.uint32))
    out = gpu.empty(64, np.uint32)
    for value in (0, 5):
        module.launch("k", 1, 64, [out, out, image])
        assert (gpu.from_device(out) == value).all()
        module.set_symbol("zeros", np.array([5], np.uint32), offset=4)


# Each CTA writes elsewhere, and waits long enough to be preempted and to resume on another SM before it reads;
# ``{missing}`` reads what nobody has written.
ACROSS = (
    """
    and.b32 %r9, %r2, 7;
    mad.lo.u32 %r7, %r9, 32, %r1;
    shl.b32 %r7, %r7, 2;
    mul.wide.u32 %rd5, %r9, 8;
    add.u64 %rd4, %rd4, %rd5;
    st.local.u32 [%rd4+4], %r1;
    st.shared.u16 [%r7+2], %r1;
"""
    + "add.s32 %r3, %r1, 1;\nadd.s32 %r3, %r3, %r1;\n" * 300
    + """
    ld.local.u32 %r5, [%rd4+4];
    ld.shared.u16 %r6, [%r7+2];
    {missing}
"""
)


@pytest.mark.parametrize("missing", ["", "ld.shared.u8 %r8, [%r7+1];", "ld.local.u8 %r8, [%rd4+3];"])
def test_marks_come_back_with_a_preempted_cta(missing: str) -> None:
    bench = Bench(ACROSS.format(missing=missing), {"core.sms": 4}, mechanisms=["trial-preempt"], strict=True)
    if missing:
        with pytest.raises(KernelFault, match=r"nobody has written.*CTA .*lane 0"):
            bench(grid=100, shared=1024)
    else:
        assert bench(grid=100, shared=1024).raw["sm.preempted"].sum() > 0


@pytest.mark.parametrize("at", [0, 64, 508])
def test_a_pairs_segment_is_checked(at: int) -> None:
    """64 bytes are the CTA's own; a word of the rest, and of these, is read before and after it is written."""
    reads = f"ld.shared.u32 %r3, [{at}];"
    body = f"st.shared.u32 [{at}], %r1; bar.sync 0; {reads}"
    Bench(body, mechanisms=["trial-segments"], strict=True)(shared=512)
    with pytest.raises(KernelFault, match=f"nobody has written.*lane 0, address {at:#x}"):
        Bench(f"{reads} {body}", mechanisms=["trial-segments"], strict=True)(shared=512)


SPILLED = PTX.format(
    body="\n".join(
        [".reg .u32 %x<80>;", *(f"@%p mov.u32 %x{k}, {k};" for k in range(80))]
        + [f"@%p add.u32 %v, %v, %x{k};" for k in range(80)]
    )
)


def test_spilled_registers_are_registers() -> None:
    """A guarded write of a register that is in memory reads it first; registers are not checked."""
    gpu = Gpu("gtx480", strict=True, core_sms=1, core_registers_per_thread=24)
    module = gpu.load(SPILLED)
    assert module.kernel("k").spilled
    out, image = gpu.to_device(np.zeros(64, np.uint32)), gpu.texture(np.zeros(4, np.uint32))
    module.launch("k", 1, 64, [out, out, image])
    assert np.flatnonzero(gpu.from_device(out)).tolist() == [7] and gpu.from_device(out)[7] == sum(range(80))


@pytest.mark.parametrize("name", partly(kernels.names(), 4))
def test_every_kernel_reads_what_was_written_only(name: str) -> None:
    kernel = kernels.find(name)
    found = []
    for strict in (False, True):
        gpu = Gpu("gtx480", strict=strict, core_sms=2)
        outputs = kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
        found.append(({key: value.tobytes() for key, value in outputs.items()}, [run.cycles for run in gpu.runs]))
    assert found[0] == found[1]


# ----------------------------------------------------------------------------------------------------- the command line

KERNEL = """
import numpy as np
TITLE, SUITE, PTX = "reads before it writes", "none", "early.ptx"

def setup(size, seed):
    return {}

def run(gpu, module, data):
    out = gpu.to_device(np.zeros(64, np.uint32))
    module.launch("k", 1, 64, [out, gpu.empty(64, np.uint32), gpu.texture(np.zeros(4, np.uint32))])
    return {"out": gpu.from_device(out)}

def reference(data):
    return {"out": np.full(64, 0xCBCBCBCB, np.uint32)}
"""


@pytest.mark.parametrize("command", ["run", "compare", "bench"])
def test_strict_is_an_option(capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str) -> None:
    (tmp_path / "early.ptx").write_text(PTX.format(body="ld.shared.u32 %v, [tile];"), encoding="utf-8")
    (tmp_path / "early.py").write_text(KERNEL, encoding="utf-8")
    arguments = [command, str(tmp_path / "early.py"), "--set", "core.sms=2", "--json", "-"]
    assert cli.main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result if command == "run" else result[0])["strict"] is False
    goes_on = command == "compare"  # with the run as a row that failed
    assert cli.main([*arguments, "--strict"]) == (1 if goes_on else 2)
    captured = capsys.readouterr()
    assert (captured.out != "") == goes_on
    assert captured.err.startswith("lockstep: k: read of memory that nobody has written at ")
    assert captured.err.count("\n") == 1 and "early.ptx:23" in captured.err and "lane 0, address 0x0" in captured.err
