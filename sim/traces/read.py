"""Reading a trace: its launches, and the pieces of its warps, of which only those that warps are in stay in memory.

Nothing of a trace is believed: files must lie in its folder and have their digests, numbers must be in their ranges and
fit each other.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lockstep.models.execution.isa import PT
from lockstep.sim.errors import UsageError
from lockstep.sim.traces import blocks, schema
from lockstep.sim.traces.blocks import HEAD, Block, Head, damaged, read_head, read_table

__all__ = ["Code", "Trace", "Warps", "notes"]

MOST_PIECES = 1 << 24  # of a launch; all their rows stay in memory


class Code:
    """A kernel of a trace, with its instructions."""

    def __init__(self, folder: Path, name: str) -> None:
        path = folder / name
        self.kernel: schema.Kernel = schema.read(schema.Kernel, path)
        self.place = str(path)
        self.instructions = schema.code_of(self.kernel, self.place)
        guarded = self.instructions["guard"] != PT
        self.guards_before = np.concatenate([[0], np.cumsum(guarded)])


@dataclass(frozen=True)
class Found:
    """A block as it lies in the file."""

    at: int
    head: Head
    table: dict[str, np.ndarray]


class Warps:
    """The file of a launch's warps. ``whole``: it must be complete."""

    def __init__(self, path: Path, launch: schema.Launch, code: Code, whole: bool = True) -> None:
        self.place, self.launch, self.code = str(path), launch, code
        try:
            if path.is_symlink() or not path.is_file():
                raise UsageError(f"{path}: must be a file")
            self._file = path.open("rb")
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from None
        if whole:
            self._check_digest()
        self.blocks = list(self._scan(whole))
        self.pieces = self._index()
        if whole and self.instructions != launch.instructions:
            counted = f"has {self.instructions} warp instructions, and {launch.instructions} by trace.json"
            raise damaged(self.place, counted)

    def close(self) -> None:
        self._file.close()

    @property
    def instructions(self) -> int:
        return sum(int(each.table["instructions"].sum()) for each in self.blocks)

    def _check_digest(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        if size != self.launch.bytes:
            raise damaged(self.place, f"has {size} bytes, and {self.launch.bytes} by trace.json")
        digest = hashlib.file_digest(self._file, "sha256").hexdigest()
        if digest != self.launch.digest:
            raise damaged(self.place, "does not have the digest that trace.json says")
        self._file.seek(0)

    def _scan(self, whole: bool) -> Iterator[Found]:
        """The blocks of the file, of which heads and tables are read; an unfinished one may end within a block."""
        size, at = os.fstat(self._file.fileno()).st_size, 0
        warps, pieces = self.launch.ctas * self.launch.warps_per_cta, 0
        while at < size:
            self._file.seek(at)
            data = self._file.read(HEAD.size)
            if not whole and len(data) < HEAD.size:
                return
            head = read_head(data, self.place)
            if at + head.bytes > size:
                if not whole:
                    return
                raise damaged(self.place, "ends within a block")
            pieces += head.pieces
            if pieces > MOST_PIECES:
                raise damaged(self.place, f"has more than {MOST_PIECES} pieces")
            table = read_table(self._file.read(head.table_bytes), head, self.place)
            if table["warp"][-1] >= warps:
                raise damaged(self.place, f"has warp {int(table['warp'][-1])}, and the grid {warps} warps")
            yield Found(at, head, table)
            at += head.bytes

    def _index(self) -> np.ndarray:
        """All pieces, by warp, in the order of a warp's pieces: warp, block, index in it."""
        if not self.blocks:
            return np.zeros((0, 3), np.int64)
        rows = np.concatenate([
            np.stack([each.table["warp"], np.full(each.head.pieces, k), np.arange(each.head.pieces)], axis=1)
            for k, each in enumerate(self.blocks)
        ])  # fmt: skip
        return rows[np.argsort(rows[:, 0], kind="stable")]

    def block(self, number: int) -> Block:
        """A block, unpacked; its instructions are checked."""
        found = self.blocks[number]
        self._file.seek(found.at + HEAD.size + found.head.table_bytes)
        block = blocks.decode(self._file.read(found.head.column_bytes), found.head, found.table, self.place)
        self._check(block)
        return block

    def _check(self, block: Block) -> None:
        """Refuse numbers that nothing that has run could have given."""
        table, columns, code = block.table, block.columns, self.code
        first, count = columns["run_pc"].astype(np.int64), columns["run_count"].astype(np.int64)
        length = len(code.instructions)
        if (first >= length).any() or (count > length - first).any() or (count == 0).any():
            raise damaged(self.place, "a run beyond the kernel")
        ends = np.cumsum(table["runs"])
        begins = ends - table["runs"]
        self._same(table["instructions"], count, begins, ends, "instructions")
        guards = code.guards_before[first + count] - code.guards_before[first]
        self._same(table["guards"], guards, begins, ends, "guards")

    def _same(self, told: np.ndarray, each: np.ndarray, begins: np.ndarray, ends: np.ndarray, what: str) -> None:
        sums = np.concatenate([[0], np.cumsum(each)])
        if (sums[ends] - sums[begins] != told).any():
            raise damaged(self.place, f"a piece has other {what} than its table says")


class Trace:
    """A trace in a folder. ``whole``: its recording must have come to an end."""

    def __init__(self, folder: str | os.PathLike[str], whole: bool = True) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise UsageError(f"{self.folder}: no folder of a trace")
        self.manifest = schema.read_manifest(self.folder)
        if whole and not self.manifest.finished:
            raise UsageError(f"{self.folder}: its recording has not come to an end")
        self._codes: dict[str, Code] = {}

    def code(self, launch: schema.Launch) -> Code:
        """The kernel of a launch."""
        if launch.kernel not in self._codes:
            self._codes[launch.kernel] = Code(self.folder, launch.kernel)
        return self._codes[launch.kernel]

    def warps(self, launch: schema.Launch, whole: bool = True) -> Warps:
        """The warps of a launch."""
        return Warps(self.folder / launch.warps, launch, self.code(launch), whole)


def notes(trace: Trace) -> list[str]:
    """What is to be said with every result of a trace of machine code: what it is, and what has no cost of its own."""
    if trace.manifest.origin == "lockstep":
        return []
    costs: dict[str, str] = {}
    for launch in trace.manifest.launches:
        costs |= trace.code(launch).kernel.costs
    unknown = trace.manifest.provenance.get("unknown")
    told = unknown if isinstance(unknown, dict) else {}
    counted = [(name, count) for name, count in told.items() if name.isprintable() and isinstance(count, int)]
    return [
        "SASS, timing only: no values, no predicates, no uniform registers; sub-cores are not modelled",
        *(f"{name}: {cost}" for name, cost in sorted(costs.items())),
        *(f"{name}: not known ({count} executed): charged as `integer`" for name, count in counted),
    ]
