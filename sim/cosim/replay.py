"""A block's ports over time in a file, to be played on its RTL alone: ``python -m lockstep.sim.cosim.replay FILE``.

The file is a compressed ``.npz``:

======== ==== ==========================================================================================
about    text JSON: ``format`` 1, ``block``, ``parameters`` (of the constructor), ``signature`` (hash of the block's
              port layout), ``last``, and where the block was: ``sm``, ``index`` and ``core_cycle`` of the last record
repeats  u4   for each record: for how many cycles in a row the ports are like this
counts   u2   for each record: how many 8-byte words of the port record differ from the record before (at first: zeros)
words    u2   which words, for all records one after the other
values   u8   and what they are
resets   u4   indices of the records that begin with a reset; a record starts a new one even if nothing changed
======== ==== ==========================================================================================

A record holds the ports ``{i, o, c}`` of one cycle as the golden model had them: the inputs, the registered outputs
seen together with them, and the combinational ones that follow from both. To play it: reset where it says so; drive
``i``; compare ``o`` and ``c``; clock. Recording begins when the block is made, so memories have no other contents than
those that they get in here.

``last`` says how far the last record goes. ``"o"``: only its registered outputs mean something, and there the RTL
differs. ``"c"``: the combinational ones too, and these differ. ``""``: it is a cycle like the others.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lockstep.models import blocks
from lockstep.rtl.registry import select
from lockstep.sim.cosim import build, library
from lockstep.sim.cosim.gates import Gates
from lockstep.sim.errors import UsageError
from lockstep.spec import files

FORMAT = 1
ARRAYS = {"repeats": "u4", "counts": "u2", "words": "u2", "values": "u8", "resets": "u4"}
SIDES = {library.REGISTERED: "o", library.COMBINATIONAL: "c"}
NO_STEP = {"o": 1, "c": 2, "": 3}  # what Instance.play does in the last record


@dataclass(frozen=True)
class Differing:
    """A port of which the model and the RTL say different things."""

    port: str  # its path in the record, as in ``o.line.payload.words[3]``
    model: int
    rtl: int


@dataclass(frozen=True)
class Record:
    """Ports that stay for some cycles."""

    io: np.ndarray  # a record of the block's port type
    cycles: int
    reset: bool  # a reset comes first


@dataclass(frozen=True)
class Replay:
    """A block's ports since it was made."""

    block: str
    parameters: dict[str, int]
    arrays: Mapping[str, np.ndarray] = field(repr=False)
    last: str = ""
    sm: int = -1
    index: int = 0
    core_cycle: int = -1

    @property
    def cycles(self) -> int:
        """Records with their repetitions."""
        return int(self.arrays["repeats"].sum())

    def records(self) -> Iterator[Record]:
        """All records; each has its own memory."""
        kind = blocks.ports(self.block)
        memory = np.zeros(-(-kind.itemsize // 8), np.uint64)
        resets = set(self.arrays["resets"].tolist())
        start = 0
        for position, (repeats, count) in enumerate(
            zip(self.arrays["repeats"].tolist(), self.arrays["counts"].tolist(), strict=True)
        ):
            changed = slice(start, start + count)
            memory[self.arrays["words"][changed]] = self.arrays["values"][changed]
            start += count
            io = np.frombuffer(memory.tobytes()[: kind.itemsize], kind).reshape(())
            yield Record(io, repeats, position in resets)

    def save(self, path: Path) -> None:
        about = {name: value for name, value in vars(self).items() if name != "arrays"}
        about |= {"format": FORMAT, "signature": signature(self.block)}
        with files.replacing(path) as file:
            np.savez_compressed(file, about=np.array(json.dumps(about)), **self.arrays)  # type: ignore[arg-type]


def signature(block: str) -> str:
    """The hash of a block's port layout."""
    return hashlib.sha256(json.dumps(blocks.layouts()[block], sort_keys=True).encode()).hexdigest()


def load(path: Path) -> Replay:
    """Read a replay file. Raises :class:`UsageError` when it is none, or was made for other ports."""
    try:
        with np.load(path) as file:
            about = json.loads(str(file["about"]))
            arrays = {name: file[name] for name in ARRAYS}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UsageError(f"{path}: not a replay file: {error}") from None
    name = about.pop("block")
    block = next(iter(select(name, blocks.layouts())), "")
    if about.pop("format") != FORMAT or not block or about.pop("signature") != signature(block):
        raise UsageError(f"{path}: was recorded with other ports of {name} than the block has now")
    return Replay(block, about.pop("parameters"), arrays, **about)


def recorded(instance: library.Instance) -> dict[str, np.ndarray]:
    """The recording of an instance."""
    return {name: instance.recorded(name, kind) for name, kind in ARRAYS.items()}


@dataclass(frozen=True)
class Outcome:
    """How far the RTL went with the replay, and where it differed: nowhere if ``differing`` is empty."""

    cycle: int  # from 0, the first record's
    differing: tuple[Differing, ...] = ()


def play(replay: Replay, make: build.Make | None = None) -> Outcome:
    """Play a replay on the RTL, or on a component that ``make`` gives, up to the first difference."""
    rtl = library.load(replay.block, replay.parameters, make).instance()
    try:
        return _play(replay, rtl)
    finally:
        rtl.close()


def _play(replay: Replay, rtl: library.Instance) -> Outcome:
    cycle = 0
    records = len(replay.arrays["repeats"])
    for position, record in enumerate(replay.records()):
        if record.reset:
            rtl.shadow_reset(record.io)
        done = rtl.play(record.io, record.cycles, NO_STEP[replay.last if position == records - 1 else ""])
        cycle += done
        if done < record.cycles:
            return Outcome(cycle, differing(record.io, rtl.outputs, SIDES[rtl.difference]))
    return Outcome(cycle)


def differing(model: np.ndarray, rtl: np.ndarray, side: str) -> tuple[Differing, ...]:
    """The integers of a side in which two records differ, in the order of the record."""
    kind = model.dtype[side]
    ours, theirs = (np.asarray(record[side]).tobytes() for record in (model, rtl))
    found = []
    for path, (offset, code) in library.elements(kind):
        value, other = (int(np.frombuffer(text, code, 1, offset)[0]) for text in (ours, theirs))
        if value != other:
            found.append(Differing(f"{side}.{path}", value, other))
    return tuple(found)


def main(arguments: list[str] | None = None) -> int:
    """Play a file; 1 if the RTL differs."""
    parser = argparse.ArgumentParser(prog="python -m lockstep.sim.cosim.replay", description="Play a replay file.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--gates", action="store_true", help="play it to the gates that the RTL is mapped to")
    parser.add_argument("--liberty", metavar="FILE", default="", help="map to cells of this library")
    options = parser.parse_args(arguments)
    try:
        replay = load(options.file)
        gates = Gates(replay.block, options.liberty) if options.gates or options.liberty else None
        outcome = play(replay, gates)
    except UsageError as error:
        print(f"replay: {error}", file=sys.stderr)
        return 2
    settings = ", ".join(f"{name}={value}" for name, value in replay.parameters.items())
    print(f"{replay.block}({settings}): {outcome.cycle} of {replay.cycles} cycles agree")
    for port in outcome.differing:
        print(f"{port.port}: model {port.model:#x}, RTL {port.rtl:#x}")
    return 1 if outcome.differing else 0


if __name__ == "__main__":
    sys.exit(main())
