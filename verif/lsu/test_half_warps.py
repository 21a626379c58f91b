"""Half-warp coalescing, by the programming guide's rules for compute capability 1.3, and memory without a cache.

The reference follows the guide's protocol step by step, on addresses; nothing of it is the model's.
"""

from __future__ import annotations

import functools
import random
from dataclasses import fields

import pytest

from lockstep.sim.device import description
from lockstep.sim.device.run import Run
from lockstep.sim.errors import UsageError
from lockstep.spec.parameters import Compiler
from lockstep.verif.bench import seeded
from lockstep.verif.models.micro import Bench, chain, independent, slope

WARP, HALF = 32, 16
OFF = 0xFFFF_FFFF  # the offset of a lane that accesses nothing
TYPES = {1: "u8 %r5", 2: "u16 %rs5", 4: "u32 %r5", 8: "u64 %rd7", 16: "v2.u64 {%rd7, %rd8}"}
REGION = 1 << 16  # bytes that are accessed, behind the offsets


def segments(addresses: dict[int, int], size: int) -> list[int]:
    """The bytes of each transaction for the addresses of a half-warp's active lanes."""
    found = []
    active = dict(sorted(addresses.items()))
    while active:
        length = {1: 32, 2: 64}.get(size, 128)
        number = next(iter(active.values())) // length
        served = {lane for lane, address in active.items() if address // length == number}
        first, last = number * length, (number + 1) * length
        used = {active[lane] + byte for lane in served for byte in range(size)}
        while last - first > 32:
            middle = (first + last) // 2
            if max(used) < middle:
                last = middle
            elif min(used) >= middle:
                first = middle
            else:
                break
        found.append(last - first)
        active = {lane: address for lane, address in active.items() if lane not in served}
    return found


def transactions(offsets: list[int], size: int) -> list[int]:
    """Those of a warp, half by half."""
    active = {lane: offset for lane, offset in enumerate(offsets) if offset != OFF}
    halves = ({lane: active[lane] for lane in active if lane // HALF == half} for half in (0, 1))
    return [each for half in halves for each in segments(half, size)]


@functools.cache
def bench(kind: str, size: int, mechanisms: tuple[str, ...] = ()) -> Bench:
    """A kernel whose lanes load or store at the offsets that the buffer begins with."""
    target = TYPES[size]
    access = f"ld.global.{target}, [%rd6]" if kind == "load" else f"st.global.{target.replace(' ', ' [%rd6], ', 1)}"
    body = f"""
    .reg .b16 %rs<8>;
    mul.wide.u32 %rd5, %r1, 4;
    add.s64 %rd5, %rd1, %rd5;
    ld.global.u32 %r4, [%rd5];
    setp.eq.u32 %p2, %r4, -1;
    cvt.u64.u32 %rd6, %r4;
    add.s64 %rd6, %rd6, %rd1;
    mov.u16 %rs5, 0;
    mov.u32 %r5, 0;
    mov.u64 %rd7, 0;
    mov.u64 %rd8, 0;
    @!%p2 {access};"""
    return Bench(body, gpu="gtx280", nbytes=128 + REGION, mechanisms=mechanisms)


def access(kind: str, size: int, offsets: list[int], mechanisms: tuple[str, ...] = ()) -> Run:
    own = bench(kind, size, mechanisms)
    own.words()[:WARP] = [offset if offset == OFF else 128 + offset for offset in offsets]
    return own()


LOADED = [64, 64]
"""The transactions that bring the offsets: a word for each lane, aligned."""


def check(kind: str, size: int, offsets: list[int], expected: list[int], mechanisms: tuple[str, ...] = ()) -> None:
    stats = access(kind, size, offsets, mechanisms).stats
    loads = LOADED + (expected if kind == "load" else [])
    stores = expected if kind == "store" else []
    assert (stats["l1.bypass_loads"], stats["l1.in_bytes"]) == (len(loads), sum(loads))
    assert (stats["l1.stores"], stats["l1.out_bytes"]) == (len(stores), sum(stores))
    assert (stats["dram.reads"], stats["l2.hits"]) == (sum(loads) // 32, 0)


EVERY = list(range(WARP))
KNOWN: dict[str, tuple[int, list[int], list[int]]] = {
    "aligned words": (4, [4 * k for k in EVERY], [64, 64]),
    "permuted": (4, [4 * (k ^ 5) for k in EVERY], [64, 64]),
    "one word": (4, [40] * WARP, [32, 32]),
    "offset by a word": (4, [4 + 4 * k for k in EVERY], [128, 64, 32]),
    "offset by a half-warp": (4, [64 + 4 * k for k in EVERY], [64, 64]),
    "across segments": (4, [96 + 4 * k for k in EVERY], [32, 32, 128]),
    "stride of two": (4, [8 * k for k in EVERY], [128, 128]),
    "stride of 32 bytes": (4, [32 * k for k in EVERY], [128] * 8),
    "stride of a segment": (4, [128 * k for k in EVERY], [32] * 32),
    "bytes": (1, EVERY, [32, 32]),
    "bytes 20 apart": (1, [20 * k for k in EVERY], [32] * 20),
    "half words": (2, [2 * k for k in EVERY], [32, 32]),
    "half words, offset": (2, [48 + 2 * k for k in EVERY], [32, 32, 64]),
    "doubles": (8, [8 * k for k in EVERY], [128, 128]),
    "quadruples": (16, [16 * k for k in EVERY], [128] * 4),
    "even lanes": (4, [4 * k if k % 2 == 0 else OFF for k in EVERY], [64, 64]),
    "the second half alone": (4, [OFF] * HALF + [4 * k for k in range(HALF)], [64]),
    "sectors 1 and 2": (4, [32 + 4 * k for k in range(HALF)] + [OFF] * HALF, [128]),
}
"""Bytes of an access, the lanes' offsets, and the transactions that the guide's rules give, worked out by hand."""


@pytest.mark.parametrize("kind", ["load", "store"])
@pytest.mark.parametrize("name", KNOWN)
def test_known_accesses(name: str, kind: str) -> None:
    size, offsets, expected = KNOWN[name]
    assert sorted(transactions(offsets, size)) == sorted(expected)
    check(kind, size, offsets, expected)


def draw(rng: random.Random, size: int) -> list[int]:
    """Lanes that walk, jump, or share places, some of them off."""
    places = REGION // size
    stride, first = rng.choice([0, 1, 1, 1, 2, 3, 7, 8, 32, 33]), rng.randrange(64)
    offsets = [size * ((first + stride * lane) % places) for lane in EVERY]
    if rng.random() < 0.4:
        span = rng.choice([4, 40, 400, places])
        offsets = [size * rng.randrange(span) for _ in EVERY]
    off = rng.choice([0.0, 0.0, 0.3, 0.9])
    return [OFF if rng.random() < off else offset for offset in offsets]


@pytest.mark.parametrize("mechanism", [(), ("mrpb",)])
@pytest.mark.parametrize("kind", ["load", "store"])
@pytest.mark.parametrize("size", TYPES)
def test_random_accesses(size: int, kind: str, mechanism: tuple[str, ...]) -> None:
    rng = seeded()
    for _ in range(25):
        offsets = draw(rng, size)
        check(kind, size, offsets, transactions(offsets, size), mechanism)


def test_uncoalesced_lanes_are_those_of_halves() -> None:
    """The first half needs two segments where one would do, the second half one."""
    offsets = [100 + 4 * k for k in range(HALF)] + [256 + 4 * k for k in range(HALF)]
    assert transactions(offsets, 4) == [32, 64, 64]
    assert access("load", 4, offsets).stats["chen.UncoalesMem"] == HALF
    assert access("load", 4, [4 * k for k in EVERY]).stats["chen.UncoalesMem"] == 0


def test_branches_split_halves() -> None:
    """One that only divides the halves from each other is not divergent; one that splits both counts twice."""
    for condition, expected in (("setp.lt.u32 %p2, %r1, 16;", 0), ("setp.lt.u32 %p2, %r1, 3;", 1),
                                ("and.b32 %r4, %r1, 1;\nsetp.eq.u32 %p2, %r4, 0;", 2)):  # fmt: skip
        body = f"{condition}\n@%p2 bra THERE;\nst.global.u32 [%rd1], %r1;\nst.global.u32 [%rd1+4], %r1;\nTHERE:"
        stats = Bench(body, {"compiler.predication": 0}, gpu="gtx280")().stats
        assert (stats["chen.D.Branch"], stats["control.divergent_branches"]) == (expected, 1)
        jump = "TO: .branchtargets HERE, THERE;\nselp.u32 %r5, 1, 0, %p2;\nbrx.idx %r5, TO;\nHERE:"
        stats = Bench(body.replace("@%p2 bra THERE;", jump), gpu="gtx280")().stats
        assert (stats["control.divergent_half_warps"], stats["control.divergent_branches"]) == (expected, 1)


@pytest.mark.parametrize(("stride", "conflicts"), [(1, 0), (2, 2), (3, 0), (8, 14), (16, 30), (32, 30)])
def test_bank_conflicts_are_those_of_halves(stride: int, conflicts: int) -> None:
    """In words: each half takes as many cycles as the stride has factors of two, up to 16; the first is no conflict."""
    body = f"mul.lo.u32 %r3, %r1, {4 * stride};\nst.shared.u32 [%r3], %r1;"
    stats = Bench(body, gpu="gtx280")(shared=4 * 32 * stride).stats
    assert stats["chen.BankConf"] == conflicts


# ------------------------------------------------------------------------------------------------------ without a cache


def test_every_load_goes_to_memory() -> None:
    """Eight warps that load one word: with a cache it would come once."""
    stats = Bench("ld.global.u32 %r5, [%rd1];\nadd.s32 %r6, %r5, %r5;", gpu="gtx280")(block=256).stats
    assert (stats["l1.bypass_loads"], stats["dram.read_bytes"], stats["l1.merges"]) == (16, 16 * 32, 0)


def test_local_memory_is_not_cached() -> None:
    """A word that each lane stores and loads twice: two half-warps of 64 bytes each time."""
    body = "cvt.u32.u64 %r3, %rd4;\nst.local.u32 [%rd4], %r3;\nld.local.u32 %r4, [%rd4];\nld.local.u32 %r5, [%rd4];"
    stats = Bench(f"{body}\nadd.s32 %r6, %r4, %r5;", gpu="gtx280")().stats
    assert (stats["l1.local_loads"], stats["l1.local_stores"], stats["l1.bypass_loads"]) == (0, 0, 4)
    assert (stats["dram.read_bytes"], stats["dram.written_bytes"]) == (4 * 64, 2 * 64)


def test_atomics_read_and_write_memory() -> None:
    """Each half-warp's atomics on one word read its sector and write it."""
    stats = Bench("atom.global.add.u32 %r5, [%rd1], %r1;", gpu="gtx280")(block=64).stats
    assert (stats["l1.atomics"], stats["dram.read_bytes"], stats["dram.written_bytes"]) == (4, 4 * 32, 4 * 32)


def test_textures_are_cached() -> None:
    fetch = "mov.u32 %r3, 0;\n" + "tex.1d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [%rd2, {%r3}];\n" * 4
    stats = Bench(fetch, gpu="gtx280")().stats
    assert (stats["chen.TMInst.miss"], stats["chen.TMInst.hit"]) == (2, 6)
    assert stats["dram.read_bytes"] == 128


# -------------------------------------------------------------------------------------------------------------- timing


SHADER = 2  # shader cycles to a core cycle
AS_IT_IS = {f"compiler.{each.name}": each.default for each in fields(Compiler)}  # so that nothing is left out


@pytest.mark.parametrize(
    ("what", "cycles"),
    [("add.s32 %r3, %r3, %r3;", 24), ("mul.lo.u32 %r3, %r3, %r3;", 96), ("add.f64 %d3, %d3, %d3;", 48)],
)
def test_latency_of_arithmetic(what: str, cycles: int) -> None:
    before = "mov.u32 %r3, 0;\nmov.f64 %d3, 0d3FF0000000000000;"
    assert SHADER * slope(chain(what, before), 20, 40, gpu="gtx280") == cycles


@pytest.mark.parametrize(
    ("what", "cycles"),
    [("add.s32 %r{k}, %r1, %r1;", 4), ("ex2.approx.f32 %f{k}, %f3;", 16), ("add.f64 %d{k}, %d3, %d3;", 32)],
)
def test_cycles_of_a_warp(what: str, cycles: int) -> None:
    before = "mov.f32 %f3, 0f3F800000;\nmov.f64 %d3, 0d3FF0000000000000;"
    warps = 12
    measured = slope(independent(what, before=before), 32, 64, AS_IT_IS, gpu="gtx280", block=32 * warps) / warps
    assert SHADER * measured == pytest.approx(cycles, rel=0.01)


def test_latency_of_the_scratchpad() -> None:
    before = "mov.u32 %r3, 0;\nst.shared.u32 [%r3], %r3;"
    assert SHADER * slope(chain("ld.shared.u32 %r3, [%r3];", before), 20, 40, gpu="gtx280", shared=4) == 38


def test_latency_of_global_memory() -> None:
    """A lane that follows addresses, each in a row that is not open: 436 to 443 shader cycles were measured."""
    chase = chain("ld.global.u64 %rd1, [%rd1];")
    found = slope(chase, 4, 14, gpu="gtx280", nbytes=1 << 18, stride=8 * 2048 + 256, block=1)
    assert 436 <= SHADER * found <= 443


def test_latencies_of_textures() -> None:
    """From the cache, from the second level and from DRAM: 261, 371 and 499 shader cycles, to within two."""
    def fetches(n: int) -> str:
        return "mov.u32 %r3, 0;\n" + "tex.1d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [%rd2, {%r3}];\n" * n

    assert SHADER * slope(fetches, 10, 30, gpu="gtx280", block=1) == pytest.approx(261, abs=2)
    one, two = (Bench(fetches(n), gpu="gtx280") for n in (1, 2))
    cold, warm = one(block=1).cycles, one(block=1).cycles
    assert SHADER * (cold - warm) == pytest.approx(499 - 371, abs=4)
    assert SHADER * (two(block=1).cycles - cold) == pytest.approx(261, abs=4)


# ------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize("mechanism", ["warppool", "banked-l1"])
def test_what_merges_whole_warps_is_refused(mechanism: str) -> None:
    with pytest.raises(UsageError) as caught:
        description.load("gtx280", selected=[mechanism])
    message = f'gtx280: core.coalescing = "half-warp": {mechanism} merges the lanes of whole warps'
    assert str(caught.value) == message


def test_memory_without_a_cache_has_no_l1() -> None:
    with pytest.raises(UsageError, match=r"l2.data = 0: nothing caches global memory then, so l1.data must be 0, too"):
        description.load("gtx280", {"l1.data": 1})
