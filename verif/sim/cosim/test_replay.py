"""Replay files from strangers: whatever is wrong in one is a line that names file, field and what is allowed."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.models import blocks
from lockstep.rtl import registry
from lockstep.sim.cosim import build, replay
from lockstep.sim.errors import UsageError
from lockstep.verif import levels, trace

BLOCK = "warppool.writeback"
pytestmark = [pytest.mark.hardware, pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")]


def parts() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A recording of two records, of which the second is like the first, and three cycles."""
    about = {"block": BLOCK, "format": replay.FORMAT, "parameters": {"warps": 8}, "signature": replay.signature(BLOCK),
             "last": "", "sm": 0, "index": 0, "core_cycle": 1, "digest": ""}  # fmt: skip
    contents = {"repeats": [2, 1], "counts": [1, 0], "words": [0], "values": [0], "resets": [0]}
    return about, {name: np.array(contents[name], kind) for name, kind in replay.ARRAYS.items()}


def write(path: Path, about: Any, arrays: dict[str, Any], seal: bool = True) -> None:
    if seal:
        try:
            about = {**about, "digest": replay.digest(about, arrays)}
        except (TypeError, AttributeError, KeyError):  # it is too damaged for that
            pass
    np.savez(path, about=np.array(json.dumps(about)), **{name: arrays[name] for name in arrays})


def test_a_recording_is_read(tmp_path: Path) -> None:
    about, arrays = parts()
    write(tmp_path / "kept.npz", about, arrays)
    kept = replay.load(tmp_path / "kept.npz")
    assert (kept.block, kept.parameters, kept.cycles) == (BLOCK, {"warps": 8}, 3)
    kept.save(tmp_path / "again.npz")
    again = replay.load(tmp_path / "again.npz")
    assert {**vars(again), "arrays": 0} == {**vars(kept), "arrays": 0}
    assert all((again.arrays[name] == kept.arrays[name]).all() for name in replay.ARRAYS)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("block", None, "about: block = None: must be a valid string"),
        ("block", "no.such", "was recorded with other ports of no.such than the block has now"),
        ("format", "2", "about: format = '2': must be a valid integer"),
        ("format", 1, "about.format = 1: must be 2; record it again"),
        ("parameters", [], "about: parameters = []: must be an object"),
        ("parameters", {"warps": -1}, "about: parameters.warps = -1: must be greater than or equal to 0"),
        ("parameters", {"warps": 1 << 62}, "about.parameters: warps must be 1 to 64"),
        ("parameters", {"warps": True}, "about: parameters.warps = True: must be a valid integer"),
        ("parameters", {"x": 1}, "about.parameters.x: not known; warppool.writeback has lanes, warps, tickets, merges"),
        ("signature", "0", "was recorded with other ports of warppool.writeback than the block has now"),
        ("last", "z", "about: last = 'z': must be '', 'o' or 'c'"),
        ("sm", -2, "about: sm = -2: must be greater than or equal to -1"),
        ("core_cycle", 1.5, "about: core_cycle = 1.5: must be a valid integer"),
        ("repeats", [2], "counts has 2 elements: must have 1, as repeats"),
        ("repeats", [2, 0], "repeats has a 0"),
        ("counts", [1], "counts has 1 elements: must have 2, as repeats"),
        ("counts", [1, 1], "words has 1 elements: must have 2, the sum of counts"),
        ("words", [65535], "words has 65535: must be below"),
        ("values", [0, 0], "values has 2 elements: must have 1, the sum of counts"),
        ("resets", [2], "resets must rise, and be below 2, the number of records"),
        ("resets", [1, 0], "resets must rise, and be below 2, the number of records"),
    ],
)
def test_damage_is_one_line(
    tmp_path: Path, key: str, value: Any, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the digest of what is there: somebody made the file so."""
    about, arrays = parts()
    if key in arrays:
        arrays[key] = np.array(value, replay.ARRAYS[key])
    else:
        about[key] = value
    file = tmp_path / "replay.npz"
    write(file, about, arrays)
    assert replay.main([str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"replay: {file}: {says}") and printed.err.count("\n") == 1 and not printed.out
    for more in ([], ["--level", "mutation"]):
        assert cli.main(["verify", BLOCK, "--replay", str(file), *more]) == 2
        assert f"lockstep: {file}: {says}" in capsys.readouterr().err


def test_a_list_or_a_missing_key_for_the_table(tmp_path: Path) -> None:
    about, arrays = parts()
    for wrong, says in (([1], r"about: \[1\]: must be an object"), ({}, "about: has no 'block'"), (1, "1: must be an")):
        write(tmp_path / "replay.npz", wrong, arrays)
        with pytest.raises(UsageError, match=says):
            replay.load(tmp_path / "replay.npz")
    last = {**about, "last": "o"}
    write(tmp_path / "replay.npz", last, {**arrays, "repeats": np.array([1, 2], "u4")})
    with pytest.raises(UsageError, match=r"about\.last = 'o': must be '', since the last record is not a single cycle"):
        replay.load(tmp_path / "replay.npz")


def test_arrays_have_their_types(tmp_path: Path) -> None:
    about, arrays = parts()
    for wrong in (arrays["values"].astype("f8"), arrays["values"].reshape(1, 1), np.array("x")):
        write(tmp_path / "replay.npz", about, {**arrays, "values": wrong})
        with pytest.raises(UsageError, match=r"values is .*: must be a list of uint64"):
            replay.load(tmp_path / "replay.npz")
    write(tmp_path / "replay.npz", about, {name: arrays[name] for name in ("repeats", "counts")})
    with pytest.raises(UsageError, match="not a replay file"):
        replay.load(tmp_path / "replay.npz")


def test_values_fit_into_their_ports(tmp_path: Path) -> None:
    """Models look up tables by them, without checks."""
    about, arrays = parts()
    bits = replay._bits(BLOCK, replay.About(**about))
    word = int(np.flatnonzero(~bits)[0])
    for value, fits in ((bits[word], True), (~bits[word], False)):
        more = {"words": np.array([word], "u2"), "values": np.array([value], "u8")}
        write(tmp_path / "replay.npz", about, {**arrays, **more})
        if fits:
            replay.load(tmp_path / "replay.npz")
        else:
            with pytest.raises(UsageError, match=r"values\[0\] = 0x.*: its ports must have 0 beyond their widths"):
                replay.load(tmp_path / "replay.npz")


def test_what_only_the_digest_tells(tmp_path: Path) -> None:
    """Values that could be, but are not those that were recorded, are no fault of the RTL."""
    about, arrays = parts()
    about["digest"] = replay.digest(about, arrays)
    for name, value in (("values", [1]), ("repeats", [1, 1]), ("resets", [1])):
        write(tmp_path / "replay.npz", about, {**arrays, name: np.array(value, replay.ARRAYS[name])}, seal=False)
        with pytest.raises(UsageError, match=r"about\.digest is not the hash of the rest; the recording is damaged"):
            replay.load(tmp_path / "replay.npz")
    write(tmp_path / "replay.npz", {**about, "last": "c"}, arrays, seal=False)
    with pytest.raises(UsageError, match=r"about\.digest is not"):
        replay.load(tmp_path / "replay.npz")


def test_damage_of_the_archive(tmp_path: Path) -> None:
    about, arrays = parts()
    file, damaged = tmp_path / "whole.npz", tmp_path / "replay.npz"
    write(file, about, arrays)
    whole = file.read_bytes()
    for place in range(0, len(whole), 97):
        damaged.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            kept = replay.load(damaged)
        except UsageError:
            continue
        assert kept.cycles == 3, "only what zip files have beside their contents"
    np.save(tmp_path / "one.npy", np.zeros(3))
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("about.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': [[[]]]}")
    for name in ("one.npy", "other.npz", "missing.npz"):
        with pytest.raises(UsageError, match="not a replay file"):
            replay.load(tmp_path / name)


def test_a_recording_that_no_memory_holds(tmp_path: Path) -> None:
    about, arrays = parts()
    write(tmp_path / "replay.npz", about, {**arrays, "repeats": np.array([2**32 - 1, 1], "u4")})
    with pytest.raises(UsageError, match=r"a bench would need [0-9,]+ bytes for the 4,294,967,296 cycles"):
        list(trace.kept(replay.load(tmp_path / "replay.npz")))


def test_a_recording_without_cycles(tmp_path: Path) -> None:
    """As of a block that no launch used."""
    about, arrays = parts()
    write(tmp_path / "replay.npz", about, {name: array[:0] for name, array in arrays.items()})
    assert levels.replay(tmp_path / "replay.npz") == levels.Check(BLOCK, "replay replay.npz", [], "no cycles")


@pytest.mark.parametrize("block", registry.blocks())
def test_parameters_of_a_recording_are_those_of_the_block(block: str) -> None:
    """Constructors refuse what would take for ever to build; a recording's arguments are among the largest's."""
    declared = levels.declaration(block)
    known = registry.component(block).LARGEST
    for parameters in declared.configurations.values():
        about = replay.About(block, replay.FORMAT, dict(parameters), "", "", 0, 0, 0)
        assert len(replay._bits(block, about)) == -(-blocks.ports(block).itemsize // 8)
    for name in known:
        with pytest.raises((ValueError, ArithmeticError)):
            build.instance(block, {**declared.configurations[declared.first], name: 1 << 40})
