"""Traces that are damaged, old or made to do harm: one line each. ``verif.trace_mutants`` has mutants of all kinds."""

from __future__ import annotations

import json
import shutil
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli.main import main
from lockstep.models.execution.isa import Category
from lockstep.sim.errors import UsageError
from lockstep.sim.traces import blocks, read
from lockstep.sim.traces.blocks import HEAD, MAGIC, Steps, decode, encode, read_head, read_table
from lockstep.verif import trace_mutants
from lockstep.verif.sim.traces.programs import recorded, replayed


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces") / "good"
    recorded(folder)
    return folder


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    """A copy to be changed."""
    return Path(shutil.copytree(good, tmp_path / "trace"))


def edit(file: Path, change: Callable[[Any], None]) -> None:
    value = json.loads(file.read_text(encoding="utf-8"))
    change(value)
    file.write_text(json.dumps(value), encoding="utf-8")


def test_an_older_version(folder: Path) -> None:
    edit(folder / "trace.json", lambda value: value.update(version=0))
    with pytest.raises(UsageError, match=r"version 0: this Lockstep reads version 1; record the trace again"):
        replayed(folder)


@pytest.mark.parametrize("change", ["cut", "flip", "empty"])
def test_damaged_warps(change: str, folder: Path) -> None:
    file = folder / "warps-0.bin"
    data = file.read_bytes()
    half = len(data) // 2
    file.write_bytes(
        dict(cut=data[:half], flip=data[:half] + bytes([data[half] ^ 4]) + data[half + 1 :], empty=b"")[change]
    )
    with pytest.raises(UsageError, match=r"warps-0\.bin: damaged"):
        replayed(folder)


@pytest.mark.parametrize("name", ["../warps-0.bin", "/etc/passwd", ".hidden", "a/b", ""])
@pytest.mark.parametrize("key", ["warps", "kernel"])
def test_paths_that_lead_out(key: str, name: str, folder: Path) -> None:
    edit(folder / "trace.json", lambda value: value["launches"][0].update({key: name}))
    with pytest.raises(UsageError, match=rf"trace.json: launches\[0\].{key}"):
        replayed(folder)


def test_links_that_lead_out(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.move(folder / "warps-0.bin", outside)
    (folder / "warps-0.bin").symlink_to(outside)
    with pytest.raises(UsageError, match="must be a file"):
        replayed(folder)


@pytest.mark.long
def test_a_bomb(folder: Path) -> None:
    """Of 1 GB of zeros, no more is unpacked than the block says it has."""
    machine = zlib.compressobj(9)
    body = b"".join(machine.compress(bytes(1 << 20)) for _ in range(1024)) + machine.flush()
    file = folder / "warps-0.bin"
    data = file.read_bytes()
    head = read_head(data[: HEAD.size], "")
    table = data[HEAD.size : HEAD.size + head.table_bytes]
    crc = zlib.crc32(table), zlib.crc32(body)
    file.write_bytes(HEAD.pack(MAGIC, head.pieces, len(table), len(body), head.plain_bytes, *crc) + table + body)
    trace_mutants._make_right(folder)
    with pytest.raises(UsageError, match="a block does not have its size"):
        replayed(folder)


@pytest.mark.parametrize(
    "column, value, why",
    [
        ("category", len(Category), "no such category"), ("group", 200, "no such operation"),
        ("target", 10**6, "a target beyond the kernel"), ("dst", 254, "a register that the kernel has not"),
        ("op", 77, "no such operation"), ("line", "x", "must be"), ("guard", 64, "no such predicate"),
    ],
)  # fmt: skip
def test_code_that_lies(column: str, value: Any, why: str, folder: Path) -> None:
    edit(folder / "kernel-0.json", lambda kernel: kernel["code"][column].__setitem__(3, value))
    with pytest.raises(UsageError, match=why):
        replayed(folder)


def test_a_warp_that_leaves_its_trace(folder: Path) -> None:
    """The code has another branch than the trace: the first warp to come there stops."""
    edit(folder / "kernel-0.json", lambda kernel: kernel["code"]["target"].__setitem__(
        next(k for k, target in enumerate(kernel["code"]["target"]) if target), 1))  # fmt: skip
    with pytest.raises(UsageError, match="the warp is not where its trace says at instruction"):
        replayed(folder)


def test_lanes_that_lie(folder: Path) -> None:
    """A run in other lanes than those on the stack: the warp stops there."""
    file = folder / "warps-0.bin"
    data = file.read_bytes()
    head = read_head(data[: HEAD.size], "")
    table, begin = data[HEAD.size : HEAD.size + head.table_bytes], HEAD.size + head.table_bytes
    columns = bytearray(zlib.decompress(data[begin : begin + head.column_bytes]))
    runs = int(read_table(table, head, "")["runs"].sum())
    columns[8 * runs + 1] ^= 1  # of the second run's lanes, the lowest
    body = zlib.compress(bytes(columns))
    numbers = head.pieces, len(table), len(body), head.plain_bytes, zlib.crc32(table), zlib.crc32(body)
    file.write_bytes(HEAD.pack(MAGIC, *numbers) + table + body + data[head.bytes :])
    trace_mutants._make_right(folder)
    with pytest.raises(UsageError, match="the warp is not where its trace says"):
        replayed(folder)


def test_another_digest(folder: Path) -> None:
    edit(folder / "trace.json", lambda value: value["launches"][0].update(digest="0" * 64))
    with pytest.raises(UsageError, match="does not have the digest"):
        replayed(folder)


def test_no_more_is_unpacked_than_must_be_there() -> None:
    packed = zlib.compress(bytes(1 << 28))
    tracemalloc.start()
    with pytest.raises(UsageError, match="does not have its size"):
        blocks._inflated(packed, 1000, zlib.crc32(packed), "")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "warps-0.bin").unlink()
    assert main(["run", "--trace", str(folder)]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[-1] == f"lockstep: {folder}/warps-0.bin: must be a file"


def test_what_is_said_of_a_trace_has_no_control_characters(folder: Path) -> None:
    trace = read.Trace(folder)
    trace.manifest.origin = "accel-sim"
    trace.manifest.provenance["unknown"] = {"\x1b[31mHMMA": 3, "FRND": 2, "MUFU": "\x1b"}
    assert [note.partition(":")[0] for note in read.notes(trace)[1:]] == ["FRND"]


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_mutants(seed: int) -> None:
    wrong: list[str] = []
    found = trace_mutants.run(100, seed, wrong.append)
    assert not wrong, wrong
    assert found["refused"] > 30 and found["replayed"] > 3


@pytest.mark.parametrize("seed", range(5))
def test_blocks_hold_what_they_are_given(seed: int) -> None:
    chance = np.random.default_rng(seed)
    from lockstep.models.traces.record import LINE, STEP

    steps, accesses = np.zeros(500, STEP), np.zeros(200, LINE)
    for name in ("active", "lanes"):
        steps[name] = chance.choice(np.array([2**32 - 1, 1, 0, 77], np.uint32), 500)
    steps["warp"], steps["pc"] = chance.integers(0, 20, 500), chance.integers(0, 9, 500)
    accesses["warp"], accesses["lanes"] = chance.integers(0, 25, 200), chance.integers(0, 2**32, 200, np.uint32)
    strides = chance.choice([0, 4, -8, 128, 3], 200)
    accesses["address"] = (2**31 + strides[:, None] * np.arange(32)).astype(np.uint32)
    some = chance.random(200) < 0.5
    accesses["address"][some] = chance.integers(0, 2**32, (int(some.sum()), 32), np.uint32)
    guarded = chance.random(9) < 0.5
    data = encode(Steps(steps, accesses, np.zeros(0, LINE)), guarded)
    head = read_head(data[: HEAD.size], "")
    table = read_table(data[HEAD.size : HEAD.size + head.table_bytes], head, "")
    block = decode(data[HEAD.size + head.table_bytes :], head, table, "")
    ordered = steps[np.argsort(steps["warp"], kind="stable")]
    counts = block.columns["run_count"]
    pcs = np.concatenate([np.arange(pc, pc + count) for pc, count in zip(block.columns["run_pc"], counts, strict=True)])
    assert (pcs == ordered["pc"]).all(), f"seed {seed}"
    assert (np.repeat(block.columns["run_active"], counts) == ordered["active"]).all()
    assert (block.columns["guard"] == ordered["lanes"][guarded[ordered["pc"]]]).all()
    found, columns, listed = accesses[np.argsort(accesses["warp"], kind="stable")], block.columns, 0
    for k, access in enumerate(found):
        lanes = [lane for lane in range(32) if int(access["lanes"]) >> lane & 1]
        if columns["listed"][k]:
            told = columns["address"][listed : listed + len(lanes)].tolist()
            listed += len(lanes)
        else:
            stride = int(columns["stride"].view(np.int32)[k])
            told = [(int(columns["base"][k]) + stride * lane) % 2**32 for lane in lanes]
        assert told == access["address"][lanes].tolist(), f"seed {seed}, access {k}"
    assert table["warp"].tolist() == sorted({*steps["warp"].tolist(), *accesses["warp"].tolist()})
