"""The Python interface: arrays, pointers, arguments, symbols, textures, launches, and the mistakes of callers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.models.execution.isa import CODE_END, GRANULE
from lockstep.sim import Gpu, KernelFault, UsageError
from lockstep.sim.device import device

HEADER = ".version 7.0\n.target sm_75\n.address_size 64\n"

# Copies its parameters, as they lie in the parameter block, to the buffer that is the first one.
ECHO = HEADER + """
.const .align 4 .f32 factors[3] = {0f3f800000, 0f40000000, 0f40400000};
.global .align 8 .u64 pointer = factors;
.global .align 4 .u32 counter;
.visible .entry echo(.param .u64 out, .param .u32 a, .param .f32 b, .param .f64 c, .param .u8 d,
                     .param .align 8 .b8 e[24])
{
  .reg .u64 %o, %x; .reg .u32 %a; .reg .f32 %b; .reg .f64 %c; .reg .u16 %d;
  ld.param.u64 %o, [out];
  ld.param.u32 %a, [a];        st.global.u32 [%o], %a;
  ld.param.f32 %b, [b];        st.global.f32 [%o+4], %b;
  ld.param.f64 %c, [c];        st.global.f64 [%o+8], %c;
  ld.param.u8 %d, [d];         st.global.u8 [%o+16], %d;
  ld.param.u64 %x, [e+16];     st.global.u64 [%o+24], %x;
  ret;
}
.visible .entry symbols(.param .u64 out)
{
  .reg .u64 %o, %p; .reg .f32 %f; .reg .u32 %n;
  ld.param.u64 %o, [out];
  ld.const.f32 %f, [factors+4];    st.global.f32 [%o], %f;
  ld.global.u64 %p, [pointer];     st.global.u64 [%o+8], %p;
  ld.global.u32 %n, [counter];     add.u32 %n, %n, 1;      st.global.u32 [counter], %n;
  ret;
}
.visible .entry _Z3addPfi(.param .u64 out, .param .u32 n)
{
  ret;
}
.visible .entry wide(.param .u64 out) .maxntid 64, 1, 1 { ret; }
.visible .entry exact(.param .u64 out) .reqntid 8, 4, 1 { ret; }
.visible .entry scratch(.param .u64 out)
{
  .shared .align 4 .b8 big[40000];
  .reg .u32 %r;
  ld.shared.u32 %r, [big];
  ret;
}
"""

FAULTY = HEADER + """
.visible .entry store(.param .u64 out, .param .u32 offset)
{
  .reg .u64 %o, %d; .reg .u32 %n, %t; .reg .pred %p;
  ld.param.u64 %o, [out];
  ld.param.u32 %n, [offset];
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 37;
  @%p ret;
  cvt.u64.u32 %d, %n;
  add.u64 %o, %o, %d;
  st.global.u32 [%o], %n;
  ret;
}
.visible .entry late(.param .u64 out)
{
  .reg .u64 %o, %d; .reg .u32 %n, %t;
  ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %d, %t, 128;
  add.u64 %d, %o, %d;
  ld.global.u32 %n, [%d];
  mul.lo.u32 %t, %t, %t; mul.lo.u32 %t, %t, %t; mul.lo.u32 %t, %t, %t; mul.lo.u32 %t, %t, %t;
  mul.lo.u32 %t, %t, %t; mul.lo.u32 %t, %t, %t; mul.lo.u32 %t, %t, %t; mul.lo.u32 %t, %t, %t;
  st.global.u32 [%o+1], %t;
  st.global.u32 [%o], %n;
  ret;
}
.visible .entry deadlock()
{
  .reg .u32 %t; .reg .pred %p;
  mov.u32 %t, %tid.x;
  setp.lt.u32 %p, %t, 32;
  @%p bra $first;
  bar.sync 1;
  ret;
$first:
  bar.sync 2;
  ret;
}
.visible .entry forever()
{
$again:
  bra $again;
}
"""

SAMPLER = HEADER + """
.global .texref picture;
.visible .entry fetch(.param .u64 out, .param .u64 image)
{
  .reg .u64 %o, %h; .reg .f32 %f<5>; .reg .u32 %k;
  ld.param.u64 %o, [out];
  ld.param.u64 %h, [image];
  mov.u32 %k, 1;
  tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%h, {%k, %k}];
  st.global.f32 [%o], %f1;
  tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [picture, {%k, %k}];
  st.global.f32 [%o+4], %f1;
  ret;
}
"""


@pytest.fixture(scope="module")
def gpu() -> Gpu:
    return Gpu("gtx480", core_sms=2, launch_no_progress=20_000)


@pytest.fixture
def memory_only() -> Gpu:
    return Gpu("gtx480")


def mistake(action: Callable[[], Any], *words: str, kind: type[Exception] = UsageError) -> None:
    """``action`` raises one line with all ``words`` in it."""
    with pytest.raises(kind) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


# ----------------------------------------------------------------------------------------------------- arrays, pointers


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c8", "?", [("a", "f4"), ("b", "i8")]])
@pytest.mark.parametrize("shape", [(), (1,), (300,), (7, 5, 3), (0,)])
def test_arrays_come_back_as_they_went(memory_only: Gpu, dtype: Any, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    array = random.integers(0, 2, size, np.uint8).view(dtype).reshape(shape)
    back = memory_only.from_device(memory_only.to_device(array))
    assert back.dtype == array.dtype and back.shape == array.shape
    assert back.tobytes() == array.tobytes()


def test_arrays_are_copies(memory_only: Gpu) -> None:
    array = np.arange(4)
    buffer = memory_only.to_device(array)
    array[:] = 9
    back = memory_only.from_device(buffer)
    back[:] = 7
    assert list(memory_only.from_device(buffer)) == [0, 1, 2, 3]


def test_strided_arrays(memory_only: Gpu) -> None:
    array = np.arange(24).reshape(4, 6)
    assert (memory_only.from_device(memory_only.to_device(array.T[::2])) == array.T[::2]).all()


def test_interior_pointers(memory_only: Gpu) -> None:
    buffer = memory_only.to_device(np.arange(10, dtype=np.float32))
    assert (buffer + 16).address == buffer.address + 16
    assert (buffer + 16 - 8).address == buffer.address + 8
    assert list(memory_only.from_device(buffer + 16)) == [4, 5, 6, 7, 8, 9]
    mistake(lambda: memory_only.from_device(buffer + 44), "outside its 40 bytes")


def test_empty_is_poisoned(memory_only: Gpu) -> None:
    values = memory_only.from_device(memory_only.empty((2, 3), np.uint16))
    assert values.shape == (2, 3) and (values == 0xCBCB).all()


def test_freed_and_foreign_buffers(memory_only: Gpu) -> None:
    buffer = memory_only.to_device(np.arange(4))
    mistake(lambda: Gpu("gtx480").from_device(buffer), "another Gpu")
    memory_only.free(buffer)
    mistake(lambda: memory_only.from_device(buffer), "freed")
    mistake(lambda: memory_only.free(buffer), "freed")


def test_what_cannot_be_in_device_memory(memory_only: Gpu) -> None:
    mistake(lambda: memory_only.to_device(np.array([object()])), "Python objects")
    mistake(lambda: memory_only.empty(1 << 32, np.uint8), "device memory")


@pytest.mark.parametrize(
    "shape",
    [-1, (3, -2), 1.5, "7", None, (2, None), [[2], 3], (1,) * 65, np.zeros(2), np.int64(-1), float("nan")],
    ids=str,
)
def test_shapes_that_cannot_be(memory_only: Gpu, shape: Any) -> None:
    before = memory_only.memory.allocations
    mistake(lambda: memory_only.empty(shape, np.float32), "shape", "all 0 or more")
    assert memory_only.memory.allocations == before


@pytest.mark.parametrize("shape", [1 << 40, (1 << 40, 1 << 40), (1 << 32, 1 << 32), (10**3000, 10**3000)])
def test_sizes_that_cannot_be(memory_only: Gpu, shape: Any) -> None:
    mistake(lambda: memory_only.empty(shape, np.float32), "device memory", "bytes asked for")


@pytest.mark.parametrize("dtype", ["float31", 3, "V0", "U", object, (np.float32, 2), [("a", "O")], "f4,,"], ids=str)
def test_dtypes_that_cannot_be(memory_only: Gpu, dtype: Any) -> None:
    mistake(lambda: memory_only.empty(4, dtype))


def test_arrays_that_cannot_be(memory_only: Gpu) -> None:
    mistake(lambda: memory_only.to_device([[1, 2], [3]]), "list", "array")
    mistake(lambda: memory_only.to_device("a file's name?"), "Python strings")
    mistake(lambda: memory_only.texture([[1, 2], [3]]), "list", "array")
    mistake(lambda: memory_only.texture(np.float32(1), channels=4), "channels")
    mistake(lambda: memory_only.texture(np.zeros((3, 0), np.float32)), "not empty")
    assert memory_only.memory.allocations == []
    empty = memory_only.empty([np.int64(2), 0], "f4")
    assert memory_only.from_device(empty).shape == (2, 0)


def test_only_whole_live_buffers_are_freed(memory_only: Gpu) -> None:
    buffer = memory_only.to_device(np.arange(4))
    mistake(lambda: memory_only.free(buffer + 8), "8 bytes from its start")
    for no_buffer in (buffer.address, None, "buffer"):
        mistake(lambda no_buffer=no_buffer: memory_only.free(no_buffer), "must be a buffer or a texture")  # type: ignore[misc]
    memory_only.free(buffer + 8 - 8)
    other = memory_only.to_device(np.arange(4))
    assert other.address == buffer.address
    for stale in (buffer, buffer + 8):
        mistake(lambda stale=stale: memory_only.free(stale), "freed")  # type: ignore[misc]
        mistake(lambda stale=stale: memory_only.from_device(stale), "freed")  # type: ignore[misc]
    assert memory_only.from_device(other).tolist() == [0, 1, 2, 3]


def test_freed_textures(gpu: Gpu) -> None:
    module, out = gpu.load(SAMPLER), gpu.empty(4, np.float32)
    first = gpu.texture(np.full((4, 4), 3, np.float32))
    module.set_symbol("picture", first)
    module.launch("fetch", 1, 1, [out, first])
    assert gpu.from_device(out)[:2].tolist() == [3, 3]
    handle = np.uint64(first.handle)
    gpu.free(first)
    mistake(lambda: gpu.free(first), "freed")
    mistake(lambda: module.launch("fetch", 1, 1, [out, handle]), "freed")  # what is bound
    second = gpu.texture(np.full((4, 4), 5, np.float32))
    assert second.handle == first.handle and len(gpu.memory.textures) == first.handle
    module.set_symbol("picture", second)
    mistake(lambda: module.launch("fetch", 1, 1, [out, first]), "argument 1", "freed")
    module.launch("fetch", 1, 1, [out, second])
    assert gpu.from_device(out)[:2].tolist() == [5, 5]
    third = gpu.texture(np.full((4, 4), 7, np.float32))
    gpu.free(third.texels)
    mistake(
        lambda: module.launch("fetch", 1, 1, [out, np.uint64(third.handle)]), "not a valid texture", kind=KernelFault
    )
    gpu.free(second)


def test_unloaded_modules(gpu: Gpu) -> None:
    before = gpu.memory.allocations
    module, out = gpu.load(ECHO), np.zeros(1)
    assert len(gpu.memory.allocations) == len(before) + 3
    module.unload()
    assert gpu.memory.allocations == before
    for use in (module.unload, lambda: module.launch("symbols", 1, 1, [out]), lambda: module.get_symbol("counter")):
        mistake(use, "unloaded")


def test_a_long_session_takes_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "KEPT", 3)
    gpu = Gpu("gtx480", core_sms=2)
    gpu.machine._code_end = CODE_END - 4 * GRANULE  # of many kernels
    cycles = []
    for _ in range(20):
        module, out = gpu.load(ECHO), gpu.to_device(np.zeros(2, np.uint64))
        cycles.append(module.launch("symbols", 1, 32, [out]).cycles)
        gpu.free(gpu.texture(np.zeros(8, np.float32)))
        gpu.free(out)
        gpu.empty(GRANULE, np.uint8)  # what comes next is elsewhere, so its code is other code
        module.unload()
        assert gpu.machine._code_end <= CODE_END
    assert [run.cycles for run in gpu.runs] == cycles[-3:]
    assert gpu.stats["gpu.core_cycles"] == sum(cycles)
    assert len(gpu.memory.textures) == 1 and len(gpu.memory.allocations) == 20
    assert len(gpu.machine._code_places) < 20


def test_construction() -> None:
    assert Gpu("gtx480", l1_mshrs=8).description.l1.mshrs == 8
    assert Gpu("gtx480", settings={"l1.mshrs": 8}).description.l1.mshrs == 8
    assert Gpu("gtx480", pipelines_special_double_latency=99).description.pipelines["special_double"].latency == 99
    mistake(lambda: Gpu("gtx480", l1_mshr=8), "l1_mshr", "did you mean l1.mshrs")
    mistake(lambda: Gpu("gtx480", mechanisms=["warpool"]), "warpool")
    assert Gpu("gtx480", "mrpb").description.mechanisms == Gpu("gtx480", ["mrpb"]).description.mechanisms


# ------------------------------------------------------------------------------------------------------------ arguments


def test_arguments_arrive(gpu: Gpu) -> None:
    out = gpu.empty(32, np.uint8)
    struct = np.arange(3, dtype=np.uint64).tobytes()
    args = [out, np.int32(-2), np.float32(1.5), 2.25, np.uint8(200), struct]
    gpu.load(ECHO).launch("echo", 1, 1, args)
    got = gpu.from_device(out)
    assert got[:4].view(np.int32)[0] == -2 and got[4:8].view(np.float32)[0] == 1.5
    assert got[8:16].view(np.float64)[0] == 2.25 and got[16] == 200 and got[24:].view(np.uint64)[0] == 2


def test_argument_mistakes(memory_only: Gpu) -> None:
    module = memory_only.load(ECHO)
    out = memory_only.empty(32, np.uint8)
    right = [out, np.int32(1), np.float32(1), np.float64(1), np.uint8(1), bytes(24)]

    def wrong(index: int, value: object, *words: str) -> None:
        args = [*right[:index], value, *right[index + 1 :]]
        mistake(lambda: module.launch("echo", 1, 1, args), "echo", f"argument {index}", *words)

    mistake(lambda: module.launch("echo", 1, 1, right[:-1]), "5 arguments given", "takes 6", ".u64, .u32, .f32")
    wrong(0, np.zeros(4), "gpu.to_device")
    wrong(0, np.float64(0), "np.float64 given, 8 bytes; it takes an integer of 8 bytes")
    wrong(0, Gpu("gtx480").to_device(np.zeros(4)), "another Gpu")
    wrong(0, Gpu("gtx480").texture(np.zeros(4, np.float32)), "a texture belongs to another Gpu")
    wrong(1, out, "8 bytes")
    wrong(1, np.int64(1), "int64")
    wrong(1, np.float32(1), "float32")
    wrong(1, 1 << 32, "32 bits")
    wrong(1, -(1 << 31) - 1, "32 bits")
    wrong(1, 1.0, "float given")
    wrong(2, 1, "int given", "np.float32(1)")
    wrong(2, np.float64(1), "float64")
    wrong(3, np.float32(1), "float32")
    wrong(4, 256, "8 bits")
    wrong(5, bytes(23), "23 bytes given", "24")
    wrong(5, 7, "struct")
    wrong(1, "one", "str")
    wrong(1, None, "NoneType")
    freed = memory_only.to_device(np.zeros(1))
    memory_only.free(freed)
    wrong(0, freed, "freed")


@pytest.mark.parametrize("value", [np.uint32(0xFFFFFFFF), np.int32(-1), -1, 0xFFFFFFFF])
def test_integers_of_either_sign(gpu: Gpu, value: object) -> None:
    out = gpu.empty(32, np.uint8)
    gpu.load(ECHO).launch("echo", 1, 1, [out, value, np.float32(0), 0.0, 0, bytes(24)])
    assert (gpu.from_device(out)[:4] == 255).all()


# -------------------------------------------------------------------------------------------------------------- modules


def test_symbols(gpu: Gpu) -> None:
    module = gpu.load(ECHO)
    out = gpu.empty(16, np.uint8)

    def run() -> tuple[float, int, int]:
        module.launch("symbols", 1, 1, [out])
        got = gpu.from_device(out)
        counter = int(module.get_symbol("counter", np.uint32)[0])
        return float(got[:4].view(np.float32)[0]), int(got[8:].view(np.uint64)[0]), counter

    factor, pointer, counter = run()
    assert (factor, counter) == (2.0, 1)
    assert list(gpu.memory.view(pointer, 12).view(np.float32)) == [1, 2, 3], "a variable initialised with an address"
    module.set_symbol("factors", np.array([5, 6, 7], np.float32))
    assert run()[::2] == (6.0, 2), "memory keeps its contents between launches"
    module.set_symbol("factors", np.float32(9), offset=4)
    assert run()[0] == 9.0
    mistake(lambda: module.set_symbol("factors", np.zeros(4, np.float32)), "factors", "16 bytes", "12")
    mistake(lambda: module.set_symbol("factor", 1), "no variable 'factor'", "did you mean factors")
    texture = gpu.texture(np.zeros(4, np.float32))
    module.set_symbol("pointer", texture)
    assert module.get_symbol("pointer", np.uint64)[0] == texture.handle
    mistake(lambda: module.set_symbol("counter", texture), "counter", "8 bytes", "4")
    mistake(lambda: module.get_symbol("counter", np.uint64), "counter", "4 bytes", "8 of uint64")
    mistake(lambda: module.get_symbol("counter", "float31"), "float31")
    mistake(lambda: module.set_symbol("counter", [[1], [2, 3]]), "list")


def test_kernel_names(memory_only: Gpu) -> None:
    module = memory_only.load(ECHO)
    assert module.kernel("add").name == "_Z3addPfi"
    mistake(lambda: module.launch("ecko", 1, 1), "no kernel 'ecko'", "did you mean echo", "symbols")


def test_files(memory_only: Gpu, tmp_path: Path) -> None:
    file = tmp_path / "echo.ptx"
    file.write_text(ECHO, encoding="utf-8")
    assert "echo" in memory_only.load(file).program.kernels
    assert "echo" in memory_only.load(str(file)).program.kernels
    mistake(lambda: memory_only.load(tmp_path / "none.ptx"), "none.ptx", "No such file")
    mistake(lambda: memory_only.load(tmp_path / "none.cu"), "none.cu", "No such file")
    file.write_text(ECHO.replace("ld.param.u64 %o, [out];", "frobnicate.u32 %a, %a;", 1), encoding="utf-8")
    line = ECHO[: ECHO.index("ld.param")].count("\n") + 1
    module = memory_only.load(file)
    mistake(lambda: module.launch("echo", 1, 1), "echo.ptx", "frobnicate", f":{line}")
    assert module.kernel("add").shown == "add", "the other kernels are as they were"


def test_textures(memory_only: Gpu) -> None:
    image = np.arange(12, dtype=np.float32).reshape(3, 4)
    texture = memory_only.texture(image, filter="linear", address="wrap", normalized=True)
    record = memory_only.memory.textures[texture.handle - 1]
    assert (record["width"], record["height"], record["dimensions"], record["pitch"]) == (4, 3, 2, 16)
    assert (record["linear"], record["wrap"], record["normalized"], record["format"]) == (1, 1, 1, 2)
    colours = memory_only.texture(np.zeros((3, 5, 4), np.uint8), channels=4, as_float=True)
    record = memory_only.memory.textures[colours.handle - 1]
    assert (record["width"], record["height"], record["channels"], record["pitch"]) == (5, 3, 4, 20)
    mistake(lambda: memory_only.texture(image, filter="cubic"), "cubic", "point, linear")
    mistake(lambda: memory_only.texture(image, address="stretch"), "stretch", "clamp")
    mistake(lambda: memory_only.texture(image, channels=3), "channels")
    mistake(lambda: memory_only.texture(np.zeros((2, 2), np.float64)), "float64")


# ------------------------------------------------------------------------------------------------------------- launches


@pytest.mark.parametrize(
    ("name", "grid", "block", "words"),
    [
        ("_Z3addPfi", 1, 1025, ("1025 threads", "1024")),
        ("_Z3addPfi", 1, (1, 1, 65), ("block", "limit")),
        ("_Z3addPfi", (1, 65536), 1, ("grid", "65535")),
        ("_Z3addPfi", (1 << 31,), 1, ("grid", "limit")),
        ("_Z3addPfi", 0, 1, ("grid", "positive")),
        ("_Z3addPfi", 1, (1, -1), ("block", "positive")),
        ("_Z3addPfi", 1, (1, 1, 1, 1), ("block", "one to three")),
        ("_Z3addPfi", 1, 1.5, ("block",)),
        (7, 1, 1, ("7", "name")),
        ("wide", 1, 65, ("64 threads", ".maxntid")),
        ("exact", 1, 32, ("(8, 4, 1)", ".reqntid")),
    ],
)
def test_extents(memory_only: Gpu, name: str, grid: Any, block: Any, words: tuple[str, ...]) -> None:
    module = memory_only.load(ECHO)
    args = [memory_only.empty(1, np.uint8)] + [1] * (name == "_Z3addPfi")
    mistake(lambda: module.launch(name, grid, block, args), str(name).removeprefix("_Z3").removesuffix("Pfi"), *words)


def test_too_much_scratchpad(memory_only: Gpu) -> None:
    module, args = memory_only.load(ECHO), [memory_only.empty(1, np.uint8)]
    mistake(lambda: module.launch("scratch", 1, 1, args, shared_bytes=9153), "49153 bytes", "40000 static", "49152")
    mistake(lambda: module.launch("scratch", 1, 1, args, shared_bytes=-1), "shared_bytes = -1", "0 or more")
    mistake(lambda: module.launch("scratch", 1, 1, args, shared_bytes=0.5), "shared_bytes = 0.5", "integer")  # type: ignore
    mistake(lambda: module.launch("scratch", 1, 1, args[0]), "scratch", "args")  # type: ignore[call-overload]


def test_threads_have_their_own_local_memory_where_there_is_no_room_for_all_slots() -> None:
    """Two CTAs of two warps on each of 110 SMs, 14 KB per thread: rows for all 64 slots of an SM would not fit."""
    gpu = Gpu("dyncta110", core_ctas=2)
    threads = 2 * 110 * 64
    out = gpu.empty(threads, np.uint32)
    module = gpu.load(HEADER + """
.visible .entry keep(.param .u64 out)
{
  .local .align 4 .b8 mine[14400];
  .reg .u64 %o, %d; .reg .u32 %c, %n, %t, %i, %v; .reg .pred %p;
  ld.param.u64 %o, [out];
  mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %t, %c, %n, %t;
  st.local.u32 [mine], %t; st.local.u32 [mine+14396], %t;
  mov.u32 %i, 0;
others:
  add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 200; @%p bra others;
  ld.local.u32 %v, [mine]; ld.local.u32 %n, [mine+14396]; xor.b32 %n, %n, %t; add.u32 %v, %v, %n;
  mul.wide.u32 %d, %t, 4; add.u64 %o, %o, %d; st.global.u32 [%o], %v;
  ret;
}
""")
    module.launch("keep", 220, 64, [out])
    assert gpu.from_device(out).tolist() == list(range(threads))


def test_too_many_registers() -> None:
    small = Gpu("gtx480", core_registers=2048)
    module = small.load(ECHO)
    args = [small.empty(32, np.uint8), 1, np.float32(1), 1.0, 1, bytes(24)]
    mistake(lambda: module.launch("echo", 1, 1024, args), "echo", "1024 threads", "too many registers")


def test_more_registers_than_needed() -> None:
    small = Gpu("gtx480", core_registers=2048, core_registers_per_thread=32)
    needed = small.load(ECHO).kernel("echo").registers
    assert small.load(ECHO, {"echo": 1}).kernel("echo").registers == needed
    assert small.load(ECHO, {"echo": 40}).kernel("echo").registers == 32  # the GPU's limit
    args = [small.empty(32, np.uint8), 1, np.float32(1), 1.0, 1, bytes(24)]
    mistake(lambda: small.load(ECHO, {"echo": 32}).launch("echo", 1, 96, args), "32 registers", "too many registers")
    mistake(lambda: small.load(ECHO, {"eco": 32}), "no kernel 'eco'")


def test_a_run_and_its_sums(gpu: Gpu) -> None:
    module, out = gpu.load(ECHO), gpu.empty(16, np.uint8)
    before = dict(gpu.stats)
    first = module.launch("symbols", (2, 2), 32, [out])
    assert first.grid == (2, 2, 1) and first.block == (32, 1, 1)
    assert first.cycles > 0 and first.stats["sm.ctas"] == 4
    assert first.warp_instructions == first.stats["issue.warp_instructions"] == 4 * (first.warp_instructions // 4)
    assert first.thread_instructions == 32 * first.warp_instructions
    assert first.ipc == first.warp_instructions / first.cycles == first.stats["issue.ipc"]
    assert len(first.per_sm) == 2
    assert sum(sm["issue.warp_instructions"] for sm in first.per_sm) == first.warp_instructions
    assert gpu.stats["gpu.core_cycles"] == before.get("gpu.core_cycles", 0) + first.cycles
    again = module.launch("symbols", (2, 2), 32, [out])
    assert again.warp_instructions == first.warp_instructions


def test_the_same_run_twice() -> None:
    def cycles() -> tuple[int, ...]:
        device = Gpu("gtx480", core_sms=2)
        module, out = device.load(ECHO), device.empty(16, np.uint8)
        return tuple(module.launch("symbols", 5, 64, [out]).cycles for _ in range(2))

    first = cycles()
    assert first == cycles()
    assert first[1] < first[0], "the L2 keeps its contents between launches"


# --------------------------------------------------------------------------------------------------------------- faults


def line_of(text: str) -> int:
    return FAULTY[: FAULTY.index(text)].count("\n") + 1


def test_out_of_bounds(gpu: Gpu, tmp_path: Path) -> None:
    file = tmp_path / "faulty.ptx"
    file.write_text(FAULTY, encoding="utf-8")
    module, out = gpu.load(file), gpu.to_device(np.zeros(25, np.uint32))
    module.launch("store", 1, 64, [out, 96])
    assert gpu.from_device(out)[24] == 96
    mistake(
        lambda: module.launch("store", (1, 3), 64, [out, 100]),
        "store: access out of bounds", f"faulty.ptx:{line_of('st.global.u32 [%o], %n')}", "st.global.u32 [%o], %n;",
        "CTA (0, ", "warp 1", "lane 5", f"{out.address + 100:#x}", "byte 100 of an allocation of 100",
        kind=KernelFault,
    )  # fmt: skip


def test_misaligned(gpu: Gpu) -> None:
    module, out = gpu.load(FAULTY), gpu.to_device(np.zeros(25, np.uint32))
    mistake(
        lambda: module.launch("store", 1, 64, [out, 6]),
        "store: misaligned access", "st.global.u32", "CTA (0, 0, 0)", "warp 1", "lane 5", f"{out.address + 6:#x}",
        kind=KernelFault,
    )  # fmt: skip


def test_barrier_deadlock(gpu: Gpu) -> None:
    module = gpu.load(FAULTY)
    mistake(lambda: module.launch("deadlock", 1, 64), "deadlock", "barrier", "CTA (0, 0, 0)", kind=KernelFault)


def test_endless_loop(gpu: Gpu) -> None:
    module = gpu.load(FAULTY)
    mistake(lambda: module.launch("forever", 1, 32), "forever: no progress", "bra $again", kind=KernelFault)


def test_a_fault_leaves_the_gpu_usable(gpu: Gpu) -> None:
    test_misaligned(gpu)
    test_arguments_arrive(gpu)


def test_a_fault_with_loads_in_flight_leaves_the_gpu_usable(gpu: Gpu) -> None:
    module, buffer = gpu.load(FAULTY), gpu.empty(32 * 32, np.uint32)
    mistake(lambda: module.launch("late", 1, 32, [buffer]), "late: misaligned access", kind=KernelFault)
    test_arguments_arrive(gpu)


def test_progress() -> None:
    calls: list[tuple[int, int, int]] = []
    device = Gpu("gtx480", core_sms=2, progress=lambda *call: calls.append(call))
    device.load(ECHO).launch("symbols", 5, 32, [device.empty(16, np.uint8)])
    assert calls and calls[-1][:2] == (5, 5)
