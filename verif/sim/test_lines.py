"""Lines that have values (``l1.values = "lines"``): what loads get, byte by byte, and that nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from lockstep.sim import Gpu, kernels
from lockstep.sim.device import description
from lockstep.sim.device.description import names
from lockstep.sim.errors import UsageError
from lockstep.verif.bench import elsewhere, seeded
from lockstep.verif.models.micro import WARM
from lockstep.verif.races import race
from lockstep.verif.sim import test_delivery
from lockstep.verif.sim.test_random_programs import simulate
from lockstep.verif.ways import LINES, LOCKSTEP

PATHS = ["", "warppool", "mrpb", "banked-l1", "regless", "warppool+regless"]

# A reader in one SM loads x, and loads it again when a writer in another SM has changed it. They meet at atomics, which
# leave other lines as they are.
EXCHANGE = """
extern "C" __global__ void exchange(unsigned *x, unsigned *other, unsigned *flag, unsigned *out, int how)
{
  if (threadIdx.x) return;
  if (blockIdx.x == 1) {
    while (atomicAdd(flag, 0) != 1) ;
    asm volatile("st.global.u32 [%0], 5;" :: "l"(x) : "memory");
    __threadfence();
    atomicExch(flag, 2);
    return;
  }
  unsigned first, second = 0;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(first) : "l"(x) : "memory");
  out[0] = first;
  if (how == 8) asm volatile("st.global.u8 [%0], 7;" :: "l"(x + 3) : "memory");
  atomicExch(flag, first + 1);
  while (atomicAdd(flag, 0) != 2) ;
  if (how == 0) asm volatile("ld.global.u32 %0, [%1];" : "=r"(second) : "l"(x) : "memory");
  if (how == 1) asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(second) : "l"(x) : "memory");
  if (how == 2) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(second) : "l"(x) : "memory");
  if (how == 3) asm volatile("ld.global.cv.u32 %0, [%1];" : "=r"(second) : "l"(x) : "memory");
  if (how == 4) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(second) : "l"(x) : "memory");
  if (how == 5) second = atomicAdd(x, 0);
  if (how == 6) {
    asm volatile("membar.gl;" ::: "memory");
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(second) : "l"(x) : "memory");
  }
  if (how == 7) {
    asm volatile("membar.cta;" ::: "memory");
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(second) : "l"(x) : "memory");
  }
  if (how == 8 || how == 9) asm volatile("ld.global.u32 %0, [%1];" : "=r"(second) : "l"(x) : "memory");
  if (how == 10) {
    unsigned sum = 0, one;
    for (int k = 0; k < 4096; k++) {
      asm volatile("ld.global.u32 %0, [%1];" : "=r"(one) : "l"(other + 32 * k) : "memory");
      sum += one;
    }
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(second) : "l"(x + sum) : "memory");
  }
  if (how == 11) {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(first) : "l"(flag) : "memory");
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(second) : "l"(x) : "memory");
  }
  if (how == 12) {
    asm volatile("st.global.u8 [%0], 7;" :: "l"(x + 3) : "memory");
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(second) : "l"(x) : "memory");
  }
  out[1] = second;
}
"""
STALE = {0: "plain", 7: "a fence of the CTA", 9: "plain again"}
FRESH = {
    1: "volatile", 2: ".cg", 3: ".cv", 4: "relaxed", 5: "an atomic", 6: "a fence", 8: "an own store before",
    10: "evicted", 11: "acquired", 12: "an own store",
}  # fmt: skip
HOW = {**STALE, **FRESH}


def exchange(how: int, mechanisms: str, gpu_name: str = "gtx480", **settings: Any) -> tuple[int, int]:
    """What the second load gets, and how many stale hits there were."""
    gpu = Gpu(gpu_name, [m for m in mechanisms.split("+") if m], {"core.sms": 2, **LINES, **settings})
    module = gpu.load(EXCHANGE)
    x, other = gpu.to_device(np.zeros(64, np.uint32)), gpu.to_device(np.zeros(32 * 4096, np.uint32))
    flag, out = gpu.to_device(np.zeros(1, np.uint32)), gpu.to_device(np.full(2, 99, np.uint32))
    run = module.launch("exchange", grid=2, block=32, args=[x, other, flag, out, np.int32(how)])
    first, second = gpu.from_device(out).tolist()
    assert first == 0
    return second, int(run.stats["l1.stale_hits"])


@pytest.mark.long
@pytest.mark.parametrize("how", HOW, ids=HOW.get)
def test_only_hits_are_stale(how: int) -> None:
    assert exchange(how, "") == ((0, 1) if how in STALE else (5, 0))


@pytest.mark.long
@pytest.mark.parametrize("mechanisms", PATHS[1:])
@pytest.mark.parametrize("how", [0, 1, pytest.param(6, marks=pytest.mark.exhaustive), 12], ids=HOW.get)
def test_on_every_path(how: int, mechanisms: str) -> None:
    assert exchange(how, mechanisms) == ((0, 1) if how in STALE else (5, 0))


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("gpu", names())
@pytest.mark.parametrize("how", [0, 1, 6, 12], ids=HOW.get)
def test_on_every_gpu(how: int, gpu: str) -> None:
    cached = description.load(gpu).l1.data
    assert exchange(how, "", gpu)[0] == (0 if how in STALE and cached else 5)


@pytest.mark.long
@pytest.mark.parametrize("settings", [{"l1.values": "memory"}, {"l1.data": 0}], ids=str)
def test_nothing_is_stale_without_lines(settings: Mapping[str, Any]) -> None:
    assert exchange(0, "", **settings) == (5, 0)


# While a load of one warp is on its way, a writer in another SM changes the word, and another warp loads it.
JOIN = """
extern "C" __global__ void into_l2(unsigned *word) { atomicAdd(word, 0); }

extern "C" __global__ void join(unsigned *x, unsigned *flag, unsigned *out, int past_the_l1, int turns)
{
  unsigned value = 0;
  if (threadIdx.x % 32) return;
  if (blockIdx.x == 1 && threadIdx.x) return;
  if (blockIdx.x == 1) {
    for (int k = 0; k < turns; k++) asm volatile("");
    asm volatile("st.global.u32 [%0], 5;" :: "l"(x) : "memory");
    __threadfence();
    atomicExch(flag, 1);
    return;
  }
  if (threadIdx.x == 0) {
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(x) : "memory");
  } else {
    while (atomicAdd(flag, 0) != 1) ;
    if (past_the_l1) asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(x) : "memory");
    else asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(x) : "memory");
  }
  out[threadIdx.x / 32] = value;
}
"""


def join(past_the_l1: int, renewed: bool = True) -> list[int]:
    """What both loads get, and how many have joined another one's fetch."""
    if not renewed:
        from lockstep.models.memory import l1

        l1._renew = lambda *_: None  # where the model is interpreted
    gpu = Gpu("gtx480", (), {"core.sms": 2, "dram.latency": 8000, **WARM, **LINES})
    arrays = [gpu.to_device(np.zeros(count, np.uint32)) for count in (1, 1, 2)]
    module = gpu.load(JOIN)
    module.launch("into_l2", grid=1, block=1, args=[arrays[1]])
    run = module.launch("join", grid=2, block=64, args=[*arrays, np.int32(past_the_l1), np.int32(400)])
    return [*gpu.from_device(arrays[2]).tolist(), int(run.stats["l1.merges"])]


@pytest.mark.long
def test_loads_that_join_a_fetch() -> None:
    """A plain one gets what the fetch brings, one past the L1 nothing that is older than itself."""
    assert join(0) == [0, 0, 1]
    assert join(1)[1:] == [5, 1]


@pytest.mark.long
@pytest.mark.exhaustive
def test_a_fetch_that_is_not_renewed_is_found() -> None:
    assert elsewhere(join, 1, False, NUMBA_DISABLE_JIT="1")[1] == 0


# ------------------------------------------------------------------------------------------------------- byte by byte

BYTES = """
extern "C" __global__ void bytes(unsigned char *b, unsigned short *h, unsigned *w, ulonglong2 *v)
{
  unsigned i = blockIdx.x + gridDim.x * threadIdx.x;  // neighbours are stored by different SMs
  b[i] = i * 7;
  h[i] = i * 1009;
  w[i] = i * 0x01010101u;
  v[i] = make_ulonglong2(i * 0x100000001ull, ~0ull - i);
}
"""


@pytest.mark.long
@pytest.mark.parametrize("mechanisms", ["", *(pytest.param(m, marks=pytest.mark.exhaustive) for m in PATHS[1:4])])
def test_stores_of_several_sms_share_words(mechanisms: str) -> None:
    gpu = Gpu("gtx480", [m for m in [mechanisms] if m], {"core.sms": 4, **LINES})
    n = 4 * 64
    kinds = (np.uint8, np.uint16, np.uint32, np.dtype([("x", "u8"), ("y", "u8")]))
    buffers = [gpu.to_device(np.zeros(n * np.dtype(kind).itemsize, np.uint8)) for kind in kinds]
    gpu.load(BYTES).launch("bytes", grid=4, block=64, args=buffers)
    found = [gpu.from_device(each).view(kind) for each, kind in zip(buffers, kinds, strict=True)]
    i = np.arange(n, dtype=np.uint64)
    assert (found[0] == (i * 7).astype(np.uint8)).all()
    assert (found[1] == (i * 1009).astype(np.uint16)).all()
    assert (found[2] == (i * 0x01010101).astype(np.uint32)).all()
    assert (found[3]["x"] == i * 0x1_0000_0001).all() and (found[3]["y"] == ~i).all()


@pytest.mark.long
@pytest.mark.parametrize("mechanisms", ["", *(pytest.param(m, marks=pytest.mark.exhaustive) for m in PATHS[1:])])
def test_loads_and_stores_of_every_width(mechanisms: str) -> None:
    """The accesses of ``test_delivery``, which are all up to 16 bytes, with vectors and extensions."""
    gpu = Gpu("gtx480", [m for m in mechanisms.split("+") if m], {"core.sms": 2, **LINES})
    head = ".version 7.8\n.target sm_75\n.address_size 64\n"
    for access, right, which in (("ld", test_delivery.loaded, 2), ("st", test_delivery.stored, 0)):
        module = gpu.load(head + "".join(test_delivery.kernel(access, *each) for each in test_delivery.ACCESSES))
        for kind, before, after in test_delivery.launches(gpu, module, access):
            np.testing.assert_array_equal(after[which], right(kind, *before), f"{access} {kind} {before[2].dtype}")


WIDEST = """
.version 8.8
.target sm_100
.address_size 64
.visible .entry widest(.param .u64 from, .param .u64 to)
{
    .reg .b32 %t, %r<8>;
    .reg .b64 %a, %b, %w;
    mov.u32 %t, %tid.x;
    mul.wide.u32 %w, %t, 32;
    ld.param.u64 %a, [from];
    ld.param.u64 %b, [to];
    add.s64 %a, %a, %w;
    add.s64 %b, %b, %w;
    ld.global.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%a];
    st.global.v8.b32 [%b], {%r7, %r6, %r5, %r4, %r3, %r2, %r1, %r0};
    ret;
}
"""


@pytest.mark.long
@pytest.mark.parametrize("mechanisms", ["", "warppool"])
def test_the_widest_access(mechanisms: str) -> None:
    gpu = Gpu("gtx480", [m for m in [mechanisms] if m], {"core.sms": 1, **LINES})
    words = np.arange(64 * 8, dtype=np.uint32).reshape(64, 8) * 0x01234567
    source, target = gpu.to_device(words), gpu.to_device(np.zeros_like(words))
    gpu.load(WIDEST).launch("widest", grid=1, block=64, args=[source, target])
    np.testing.assert_array_equal(gpu.from_device(target), words[:, ::-1])


MIXED = """
extern "C" __global__ void mixed(unsigned *global, unsigned *out)
{
  __shared__ unsigned shared[64];
  unsigned local[4] = {1, 2, 3, 4};
  unsigned t = threadIdx.x;
  shared[t] = 100 + t;
  __syncthreads();
  unsigned *mine = t % 3 == 0 ? shared + t : t % 3 == 1 ? global + t : local + t % 4;
  out[t] = *(volatile unsigned *)mine + *mine;
  if (t % 3 != 2) out[64 + t] = atomicAdd(mine, t);
  __syncthreads();
  out[128 + t] = *mine;
  *(unsigned char *)mine = 9;
  out[192 + t] = *mine;
}
"""


@pytest.mark.long
@pytest.mark.parametrize("mechanisms", ["", *(pytest.param(m, marks=pytest.mark.exhaustive) for m in PATHS[1:])])
def test_lanes_of_different_spaces(mechanisms: str) -> None:
    def results(values: str) -> list[int]:
        gpu = Gpu("gtx480", [m for m in mechanisms.split("+") if m], {"core.sms": 1, "l1.values": values})
        words, out = gpu.to_device(np.arange(64, dtype=np.uint32) * 1000), gpu.to_device(np.zeros(256, np.uint32))
        gpu.load(MIXED).launch("mixed", grid=1, block=64, args=[words, out])
        return gpu.from_device(out).tolist() + gpu.from_device(words).tolist()

    assert results("lines") == results("memory")


# ---------------------------------------------------------------------------------------- what does not race is as ever

FEW = ["saxpy", "bfs", "histogram-atomics", "convolutionTexture", "lud"]
RACING = ["poisson", "shape-from-shading"]  # when a store takes effect decides what the neighbours read
TWO = ["gtx480", "dyncta56"]


def run(kernel_name: str, gpu_name: str, mechanisms: Sequence[str], values: str) -> tuple[Any, ...]:
    """Raw counts but for stale hits, and outputs."""
    kernel = kernels.find(kernel_name)
    gpu = Gpu(gpu_name, mechanisms, {"l1.values": values})
    outputs = kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
    counts = [{name: each.tolist() for name, each in one.raw.items() if name != "lsu.stale"} for one in gpu.runs]
    return counts, {name: array.tobytes() for name, array in outputs.items()}


def _same(kernel: str, gpu: str, mechanisms: Sequence[str]) -> None:
    lines, memory = run(kernel, gpu, mechanisms, "lines"), run(kernel, gpu, mechanisms, "memory")
    assert lines[1] == memory[1]
    for one, other in zip(lines[0], memory[0], strict=True):
        assert {name: (one[name], other[name]) for name in one if one[name] != other[name]} == {}


@pytest.mark.long
@pytest.mark.parametrize("gpu", TWO)
@pytest.mark.parametrize("kernel", FEW)
def test_kernels_take_the_same_cycles(kernel: str, gpu: str) -> None:
    _same(kernel, gpu, ())


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("gpu", TWO)
@pytest.mark.parametrize("kernel", [name for name in kernels.names() if name not in FEW + RACING])
def test_all_kernels_take_the_same_cycles(kernel: str, gpu: str) -> None:
    _same(kernel, gpu, ())


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("gpu_name", TWO)
@pytest.mark.parametrize("name", RACING)
def test_solvers_that_race_solve_their_equations(name: str, gpu_name: str) -> None:
    kernel = kernels.find(name)
    gpu, data = Gpu(gpu_name, settings=LINES), kernel.setup("tiny", 1)
    checked = kernels.check(kernel, kernel.run(gpu, gpu.load(kernel.ptx), data), data)
    assert checked.passed, checked.message


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("mechanisms", PATHS[1:])
@pytest.mark.parametrize("kernel", FEW)
def test_kernels_take_the_same_cycles_with_mechanisms(kernel: str, mechanisms: str) -> None:
    _same(kernel, "gtx480", mechanisms.split("+"))


@pytest.mark.long
def test_random_programs_without_races() -> None:
    rng = seeded()
    for _ in range(8):
        seed = rng.getrandbits(32)
        lines, memory = (simulate(seed, fixed={"l1.values": values}) for values in ("lines", "memory"))
        del lines["counts"]["lsu.stale"], memory["counts"]["lsu.stale"]
        assert lines == memory, f"seed {seed}"


# ------------------------------------------------------------------------------------------------------ what does race


@pytest.mark.long
def test_random_races() -> None:
    rng = seeded()
    for _ in range(12):
        race(rng.getrandbits(32))


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["without skipping", "interpreted"])
def test_races_are_the_same_in_every_mode(mode: str) -> None:
    seed = seeded().getrandbits(32)
    environment = {"NUMBA_DISABLE_JIT": "1"} if mode == "interpreted" else {}
    assert elsewhere(race, seed, tuple(LOCKSTEP), mode != "without skipping", **environment) == race(seed)


# ------------------------------------------------------------------------------------------------ grids, and who leaves

CHAIN = """
extern "C" __global__ void next(const unsigned *from, unsigned *to, int n)
{
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned sum = 0;
    for (int k = 0; k < 4; k++) sum += from[(i + 37 * k) % n];
    to[i] = sum + 1;
  }
}
"""


def chain(from_: Any, launches: int) -> Any:
    for _ in range(launches):
        from_ = np.stack([np.roll(from_, -37 * k) for k in range(4)]).sum(axis=0, dtype=np.uint32) + 1
    return from_


@pytest.mark.long
@pytest.mark.parametrize("placement", ["shared", "spatial", "temporal"])
def test_launches_of_a_stream_see_each_other(placement: str) -> None:
    """Two streams; each reads in a launch what other SMs have stored in the one before, to the same two buffers."""
    n, launches = 3000, 5
    mechanisms = ["preemption"] if placement == "temporal" else []
    settings = {"core.sms": 4, "launch.placement": placement, "launch.slice": 3000, **LINES}
    gpu = Gpu("gtx480", mechanisms, settings)
    module, rng = gpu.load(CHAIN), np.random.default_rng(3)
    start = [rng.integers(0, 1 << 32, n, np.uint32) for _ in range(2)]

    def program(mine: np.ndarray) -> np.ndarray:
        buffers = [gpu.to_device(mine), gpu.to_device(np.zeros(n, np.uint32))]
        for k in range(launches):
            module.launch("next", grid=7, block=96, args=[buffers[k % 2], buffers[1 - k % 2], np.int32(n)])
        return gpu.from_device(buffers[launches % 2])

    results = gpu.run_programs([lambda: program(start[0]), lambda: program(start[1])])
    for result, mine in zip(results, start, strict=True):
        assert (result.result == chain(mine, launches)).all()


@pytest.mark.long
def test_ctas_that_leave_and_come_back() -> None:
    gpu = Gpu("gtx480", ["preemption"], {"core.sms": 2, "preemption.every": 1500, "preemption.ctas": 2, **LINES})
    module, n = gpu.load(CHAIN), 4000
    start = np.random.default_rng(4).integers(0, 1 << 32, n, np.uint32)
    buffers = [gpu.to_device(start), gpu.to_device(np.zeros(n, np.uint32))]
    run = module.launch("next", grid=12, block=128, args=[*buffers, np.int32(n)])
    assert run.stats["sm.preempted_ctas"] > 0
    assert (gpu.from_device(buffers[1]) == chain(start, 1)).all()


def test_a_wrong_value_is_refused() -> None:
    with pytest.raises(UsageError, match=r"l1\.values = 'line': must be one of memory, lines"):
        Gpu("gtx480", l1_values="line")
