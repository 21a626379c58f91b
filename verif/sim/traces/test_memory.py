"""A longer trace needs no more memory: its blocks are found and loaded when warps get there, and go.

Files of warps are written here without a run: in each round, some warps execute an instruction and touch memory, and
what they did becomes a block.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import tracemalloc
import weakref
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.models.execution.isa import GLOBAL_BASE, LANES, PT
from lockstep.models.traces import record
from lockstep.models.traces import replay as player
from lockstep.models.traces.record import LINE, STEP
from lockstep.models.traces.replay import PIECE, RUN
from lockstep.sim.errors import UsageError
from lockstep.sim.traces import blocks, load, read, schema, write
from lockstep.sim.traces.blocks import HEAD, MAGIC, TABLE, Steps, encode
from lockstep.sim.traces.load import Loader
from lockstep.sim.traces.read import Code, Trace, Warps
from lockstep.verif.bench import seeded
from lockstep.verif.sim.traces.programs import recorded, replayed

WARPS = 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of ``WAYS``."""
    folder = tmp_path_factory.mktemp("traces") / "ways"
    recorded(folder)
    return folder


@pytest.fixture(scope="module")
def code(folder: Path) -> Code:
    trace = Trace(folder)
    return trace.code(trace.manifest.launches[0])


def opened(file: Path, code: Code, data: bytes, instructions: int, warps: int = WARPS) -> Warps:
    """A file of warps with these bytes."""
    file.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    grid, block = (warps, 1, 1), (LANES, 1, 1)
    launch = schema.Launch("kernel-0.json", file.name, grid, block, 0, instructions, 0, len(data), digest)
    return Warps(file, launch, code)


def block_of(pcs: dict[int, int], code: Code) -> bytes:
    """The block in which each of some warps executes an instruction and touches memory."""
    steps, accesses = np.zeros(len(pcs), STEP), np.zeros(len(pcs), LINE)
    for entries in (steps, accesses):
        entries["warp"], entries["pc"], entries["lanes"] = [*pcs], [*pcs.values()], 2**32 - 1
    steps["active"] = 2**32 - 1
    accesses["address"] = GLOBAL_BASE + 4 * np.arange(LANES)
    return encode(Steps(steps, accesses, np.zeros(0, LINE)), code.instructions["guard"] != PT)


def written(file: Path, code: Code, rounds: Sequence[dict[int, int]]) -> Warps:
    return opened(file, code, b"".join(block_of(each, code) for each in rounds), sum(map(len, rounds)))


def there(kind: np.dtype[Any], address: int) -> Any:
    """The record at an address."""
    return np.frombuffer(ctypes.string_at(address, kind.itemsize), kind)[0]


def pc_of(piece: int) -> int:
    """The instruction of a piece that has one."""
    return int(there(RUN, int(there(PIECE, piece)["runs"]))["pc"])


def is_there(loader: Loader, piece: int) -> bool:
    """Whether a piece is in a block that is loaded: another address must not be looked at."""
    return any((each.addresses == piece).any() for each in loader._loaded.values())


def pieces(loader: Loader, warp: int) -> Iterator[int]:
    """The pieces of a warp, as compiled code finds them; it is in one as long as the next one is not asked for."""
    piece = int(loader.first[warp]) or loader.load(warp, 0)
    while piece > 0:
        assert is_there(loader, piece), "a link leads to a block that is gone"
        held = ctypes.c_int64.from_address(int(there(PIECE, piece)["held"]))
        held.value += 1
        yield piece
        assert is_there(loader, piece), "a block that a warp is in is gone"
        following = int(there(PIECE, piece)["next"]) or loader.load(warp, piece)
        held.value -= 1
        piece = following


def walked(warps: Warps) -> Loader:
    """A loader that has loaded all pieces, round by round."""
    loader = Loader(warps)
    loader.first = np.zeros(WARPS, np.int64)
    for _ in zip(*(pieces(loader, warp) for warp in range(WARPS)), strict=True):
        pass
    return loader


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less is kept than is in these files."""
    monkeypatch.setattr(load, "MOST_BYTES", 1 << 15)
    monkeypatch.setattr(read, "MOST_ROWS", 1 << 10)


@pytest.mark.usefixtures("little")
def test_a_long_trace_needs_no_more_memory_than_a_short_one(code: Code, tmp_path: Path) -> None:
    peaks = []
    for rounds in (16, 16, 256):  # the first one meets what is made once
        data = block_of(dict.fromkeys(range(WARPS), 0), code) * rounds
        (tmp_path / "warps").write_bytes(data)
        tracemalloc.start()
        walked(opened(tmp_path / "warps", code, data, rounds * WARPS)).first.fill(0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + 100_000, peaks


@pytest.mark.usefixtures("little")
def test_each_warp_gets_its_pieces_in_their_order(
    code: Code, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Warps are in some blocks only, and go on at random: some are far behind the others."""
    chance = seeded()
    length = len(code.instructions)
    rounds = [
        {warp: chance.randrange(length) for warp in sorted(chance.sample(range(WARPS), chance.choice((1, 4, WARPS))))}
        for _ in range(150)
    ]
    warps = written(tmp_path / "warps", code, rounds)
    loader = Loader(warps)
    loader.first = np.zeros(WARPS, np.int64)
    drop_some, free = loader._drop_some, []

    def dropping(kept: int) -> None:
        drop_some(kept)
        unused = [each.bytes for number, each in loader._loaded.items() if number != kept and not each.held["count"]]
        free.append(sum(unused))

    monkeypatch.setattr(loader, "_drop_some", dropping)
    wanted = {warp: [each[warp] for each in rounds if warp in each] for warp in range(WARPS)}
    found: dict[int, list[int]] = {warp: [] for warp in range(WARPS)}
    walks = {warp: pieces(loader, warp) for warp in range(WARPS)}
    while walks:
        warp = chance.choice([*walks][: chance.choice((2, WARPS))])
        piece = next(walks[warp], 0)
        if piece:
            found[warp].append(pc_of(piece))
        else:
            del walks[warp]
    assert found == wanted
    assert sum(map(len, warps._rows.values())) <= read.MOST_ROWS
    assert max(free) <= load.MOST_BYTES


def test_pieces_without_end(code: Code, tmp_path: Path) -> None:
    """Rows of pieces compress well: a small file must not fill the memory with them."""
    count = 1 << 15
    warps = np.concatenate([np.zeros(1, np.uint32), np.ones(count - 1, np.uint32)])
    rows = np.concatenate([warps, np.zeros((len(TABLE) - 1) * count, np.uint32)]).reshape(len(TABLE), count)
    table = zlib.compress(b"".join(blocks._packed(column, False) for column in rows))
    body = zlib.compress(b"")
    head = HEAD.pack(MAGIC, count, len(table), len(body), 0, zlib.crc32(table), zlib.crc32(body))
    peaks = []
    for times in (2, 32):
        tracemalloc.start()
        assert opened(tmp_path / "warps", code, (head + table + body) * times, 0, count).pieces == times * count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 100_000, peaks


@pytest.mark.parametrize("part", ["head", "table", "columns"])
def test_a_file_that_changes_while_it_is_read(part: str, code: Code, tmp_path: Path) -> None:
    """All that is read again is checked again."""
    warps = written(tmp_path / "warps", code, [dict.fromkeys(range(WARPS), pc) for pc in range(3)])
    loader = Loader(warps)
    loader.first = np.zeros(WARPS, np.int64)
    piece = loader.load(0, 0)
    data = bytearray((tmp_path / "warps").read_bytes())
    head = blocks.read_head(bytes(data[: HEAD.size]), "")
    data[head.bytes + dict(head=4, table=HEAD.size + 4, columns=HEAD.size + head.table_bytes + 4)[part]] ^= 1
    (tmp_path / "warps").write_bytes(data)
    with pytest.raises(UsageError, match=r"warps: damaged"):
        loader.load(0, piece)


def test_another_file_in_its_place(code: Code, tmp_path: Path) -> None:
    """A block that is right, but has not the warp that it had."""
    warps = written(tmp_path / "warps", code, [{1: 0}])
    (tmp_path / "warps").write_bytes(block_of({2: 0}, code))
    loader = Loader(warps)
    loader.first = np.zeros(WARPS, np.int64)
    with pytest.raises(UsageError, match="has been changed since it was opened"):
        loader.load(1, 0)


def test_a_launch_keeps_nothing_when_it_has_ended(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks, buffers and cells of words go at once: they are not left to the collector of cycles."""
    kept: list[weakref.ref[Any]] = []

    def noted(kind: Any) -> Any:
        def make(*arguments: Any, **named: Any) -> Any:
            made = kind(*arguments, **named)
            kept.append(weakref.ref(made))
            return made

        return make

    monkeypatch.setattr(write, "Recorder", noted(record.Recorder))
    monkeypatch.setattr(load, "Loader", noted(load.Loader))
    monkeypatch.setattr(player, "Replay", noted(player.Replay))
    gc.disable()
    try:
        recorded(tmp_path / "trace")
        replayed(folder)
        assert len(kept) == 3 and not [each() for each in kept if each() is not None]
    finally:
        gc.enable()
