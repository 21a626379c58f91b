"""Masks of the bytes of a line, against arithmetic on whole integers; and what kernels write, path by path."""

from __future__ import annotations

import pytest

from lockstep.models.jit import i64, jit
from lockstep.models.memory import masks
from lockstep.verif.bench import mask, seeded
from lockstep.verif.models.memory.traffic import words
from lockstep.verif.models.micro import Bench


@jit
def span(first, count):
    return masks.span(i64(first), i64(count))


@jit
def sectors_of(low, high, shift):
    return masks.sectors_of(i64(low), i64(high), i64(shift))


@jit
def bytes_of(sectors, shift):
    return masks.bytes_of(i64(sectors), i64(shift))


@jit
def count_of(low, high):
    return masks.count_of(i64(low), i64(high))


@jit
def block_of(low, high):
    return masks.block_of(i64(low), i64(high))


def test_blocks() -> None:
    """The smallest of the aligned blocks that hold all bytes, of those there are."""
    blocks = [(first, size) for size in (32, 64, 128) for first in range(0, 128, size)]
    for first in range(128):
        for count in range(129 - first):
            holding = [((1 << size) - 1) << at for at, size in blocks if at <= first and first + count <= at + size]
            assert block_of(*words((1 << count) - 1 << first)) == words(holding[0] if count else 0)
    rng = seeded()
    for _ in range(300):
        bytes_of_line = mask(rng, 128)
        if bytes_of_line:
            lowest = (bytes_of_line & -bytes_of_line).bit_length() - 1
            whole = (1 << bytes_of_line.bit_length()) - (1 << lowest)
            assert block_of(*words(bytes_of_line)) == block_of(*words(whole))


def test_spans() -> None:
    for first in range(128):
        for count in range(129 - first):
            assert span(first, count) == words((1 << count) - 1 << first)


def sectors(bytes_of_line: int, shift: int) -> list[int]:
    size = 1 << shift
    return [k for k in range(128 // size) if bytes_of_line >> k * size & (1 << size) - 1]


@pytest.mark.parametrize("shift", [5, 6, 7])
def test_sectors(shift: int) -> None:
    rng = seeded()
    for _ in range(500):
        bytes_of_line = mask(rng, 128)
        low, high = words(bytes_of_line)
        found = sectors(bytes_of_line, shift)
        assert count_of(low, high) == bytes_of_line.bit_count()
        assert sectors_of(low, high, shift) == sum(1 << k for k in found)
        whole = sum((1 << (1 << shift)) - 1 << (k << shift) for k in found)
        assert bytes_of(sum(1 << k for k in found), shift) == words(whole)


STORES = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "v4.u32"}
VALUES = {1: "%r1", 2: "%r1", 4: "%r1", 8: "%rd2", 16: "{%r1, %r1, %r1, %r1}"}


def store(places: list[int], width: int) -> str:
    """A store of a warp, lane by lane to places of a line, in units of its width."""
    lines = ["mov.u32 %r4, 0;"]
    for lane, at in enumerate(places):
        lines += [f"setp.eq.u32 %p2, %r1, {lane};", f"selp.b32 %r4, {at * width}, %r4, %p2;"]
    lines += ["cvt.u64.u32 %rd5, %r4;", "add.s64 %rd6, %rd1, %rd5;"]
    return "\n".join([*lines, f"st.global.{STORES[width]} [%rd6], {VALUES[width]};"])


PATHS = [[], ["warppool"], ["mrpb"], ["banked-l1"]]


@pytest.mark.parametrize("mechanisms", PATHS)
@pytest.mark.parametrize("width", STORES)
def test_what_a_warp_writes_need_not_be_fetched(width: int, mechanisms: list[str]) -> None:
    """A line of which all bytes have been written is not fetched. Rewriting some of them does not make it whole."""
    rng = seeded()
    places = list(range(128 // width))
    rng.shuffle(places)
    half = len(places) // 2
    parts = [places[k : k + 32] for k in range(0, len(places), 32)] if half >= 32 else [places[:half], places[half:]]
    read = "ld.global.cg.u32 %r8, [%rd1];\nmov.u32 %r9, %r8;"
    for stores, fetched in ((parts, 0), ([*parts[:-1], parts[0]], 1), (parts[:-1] * 3, 1)):
        body = "\n".join([*(store(part, width) for part in stores), read])
        run = Bench(body, mechanisms=mechanisms)(block=max(1, *map(len, stores)))
        assert run.stats["dram.reads"] == fetched


@pytest.mark.parametrize("mechanisms", PATHS)
@pytest.mark.parametrize("warps", [1, 2, 3])
def test_loads_fetch_the_sectors_of_their_lanes(warps: int, mechanisms: list[str]) -> None:
    """Each warp reads a sector of one line, past the L1; what joins them into one request asks for all of theirs."""
    body = "and.b32 %r3, %r1, 0x60;\ncvt.u64.u32 %rd5, %r3;\nadd.s64 %rd6, %rd1, %rd5;\n"
    body += "ld.global.cg.u32 %r8, [%rd6+32];\nmov.u32 %r9, %r8;"
    run = Bench(body, {"l2.sector_bytes": 32}, mechanisms=mechanisms)(block=32 * warps)
    assert run.stats["dram.reads"] == warps


@pytest.mark.parametrize("line", [32, 64, 128])
def test_a_short_line_of_constants_fetches_its_sectors(line: int) -> None:
    settings = {"constant_cache.mode": "finite", "constant_cache.line_bytes": line, "l2.sector_bytes": 32}
    run = Bench("ld.const.u32 %r8, [%rd3];\nmov.u32 %r9, %r8;", settings)()
    assert run.stats["dram.reads"] == run.stats["constant_cache.fetches"] * line // 32 > 0
