"""A block's ports over time in a file, to be played on its RTL alone: ``python -m lockstep.sim.cosim.replay FILE``.

The file is a compressed ``.npz``:

======== ==== ==========================================================================================
about    text JSON: ``format`` 2, ``block``, ``parameters`` (of the constructor), ``signature`` (hash of the block's
              port layout), ``last``, where the block was (``sm``, ``index`` and ``core_cycle`` of the last record), and
              ``digest`` (hash of everything else, so that a damaged file is not taken for a fault of the RTL)
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
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge

from lockstep.models import blocks
from lockstep.rtl import registry
from lockstep.rtl.registry import select
from lockstep.sim.cosim import build, library
from lockstep.sim.cosim.gates import Gates
from lockstep.sim.errors import UsageError
from lockstep.sim.schema import Count, Name, parse
from lockstep.spec import files

FORMAT = 2
ARRAYS = {"repeats": "u4", "counts": "u2", "words": "u2", "values": "u8", "resets": "u4"}
SIDES = {library.REGISTERED: "o", library.COMBINATIONAL: "c"}
NO_STEP = {"o": 1, "c": 2, "": 3}  # what Instance.play does in the last record
RULE = "it must be what `lockstep cosim` writes"


@dataclass(frozen=True)
class About:
    """The schema of ``about``."""

    block: Name
    format: int
    parameters: dict[Name, Count]
    signature: Name
    last: Literal["", "o", "c"]
    sm: Annotated[int, Ge(-1)]
    index: Count
    core_cycle: Annotated[int, Ge(-1)]
    digest: Name = ""


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
        own = {name: value for name, value in vars(self).items() if name != "arrays"}
        about = asdict(About(format=FORMAT, signature=signature(self.block), **own))
        about["digest"] = digest(about, self.arrays)
        with files.replacing(path) as file:
            np.savez_compressed(file, about=np.array(json.dumps(about)), **self.arrays)  # type: ignore[arg-type]


def signature(block: str) -> str:
    """The hash of a block's port layout."""
    return hashlib.sha256(json.dumps(blocks.layouts()[block], sort_keys=True).encode()).hexdigest()


def digest(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """The hash of what a replay file has beside it."""
    found = hashlib.sha256(json.dumps({**about, "digest": ""}, sort_keys=True).encode())
    for name in ARRAYS:
        found.update(arrays[name].tobytes())
    return found.hexdigest()


def load(path: Path) -> Replay:
    """Read a replay file, of which everything is checked. Raises :class:`UsageError`."""
    try:
        with np.load(path) as file:
            text = str(file["about"])
            arrays = {name: file[name] for name in ARRAYS}
    except Exception as error:  # NumPy and zipfile have many for what is damaged
        raise UsageError(f"{path}: not a replay file: {error}; {RULE}") from None
    about: About = parse(About, text, f"{path}: about", RULE)
    block = next(iter(select(about.block, blocks.layouts())), "")
    if not block or about.signature != signature(block):
        raise UsageError(f"{path}: was recorded with other ports of {about.block} than the block has now")
    try:
        _check_arrays(about, arrays, _bits(block, about))
    except _Damaged as error:
        raise UsageError(f"{path}: {error}; the recording is damaged: {RULE}") from None
    if about.format != FORMAT:
        raise UsageError(f"{path}: about.format = {about.format}: must be {FORMAT}; record it again")
    if about.digest != digest(asdict(about), arrays):
        raise UsageError(f"{path}: about.digest is not the hash of the rest; the recording is damaged: {RULE}")
    return Replay(block, about.parameters, arrays, about.last, about.sm, about.index, about.core_cycle)


class _Damaged(Exception):
    """Says which part of a recording cannot be right, and what it must be."""


def _bits(block: str, about: About) -> np.ndarray:
    """For each word of a record the bits that can be 1 with the parameters of the recording."""
    from lockstep.sim.cosim import shim

    known = registry.component(block).LARGEST
    if unknown := [name for name in about.parameters if name not in known]:
        raise _Damaged(f"about.parameters.{unknown[0]}: not known; {block} has {', '.join(known)}")
    kind = blocks.ports(block)
    try:
        ports = shim.ports(build.instance(block, about.parameters), kind)
    except (ValueError, TypeError, ArithmeticError, shim.LayoutError) as error:
        raise _Damaged(f"about.parameters: {error}") from None
    offsets = {path: offset for path, (offset, _) in library.elements(kind)}
    octets = np.full(-(-kind.itemsize // 8) * 8, 0xFF, np.uint8)
    for port in ports:
        for element in port.elements:
            start = offsets[element.path]
            most = (1 << port.flat.width) - 1
            octets[start : start + port.itemsize] = np.frombuffer(most.to_bytes(port.itemsize, "little"), np.uint8)
    return octets.view("<u8")


def _check_arrays(about: About, arrays: Mapping[str, np.ndarray], bits: np.ndarray) -> None:
    """Types, ranges, and that the arrays fit together."""
    for name, kind in ARRAYS.items():
        array = arrays[name]
        if array.dtype != np.dtype(kind) or array.ndim != 1:
            raise _Damaged(f"{name} is {array.dtype}{list(array.shape)}: must be a list of {np.dtype(kind)}")
    repeats, counts, words, values, resets = (arrays[name] for name in ARRAYS)
    records, changes = len(repeats), int(counts.sum(dtype=np.uint64))
    for name, expected, rule in (
        ("counts", records, "as repeats"),
        ("words", changes, "the sum of counts"),
        ("values", changes, "the sum of counts"),
    ):
        if len(arrays[name]) != expected:
            raise _Damaged(f"{name} has {len(arrays[name])} elements: must have {expected}, {rule}")
    if not repeats.all():
        raise _Damaged("repeats has a 0: must be at least 1")
    if (words >= len(bits)).any():
        raise _Damaged(f"words has {words.max()}: must be below {len(bits)}, the words of a record")
    if (wrong := np.flatnonzero(values & ~bits[words])).size:
        raise _Damaged(f"values[{wrong[0]}] = {values[wrong[0]]:#x}: its ports must have 0 beyond their widths")
    if (resets >= records).any() or (np.diff(resets.astype(np.int64)) <= 0).any():
        raise _Damaged(f"resets must rise, and be below {records}, the number of records")
    if about.last and (not records or repeats[-1] != 1):
        raise _Damaged(f"about.last = {about.last!r}: must be '', since the last record is not a single cycle")


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
