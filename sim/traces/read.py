"""Reading a trace: its launches, and the blocks of its warps' pieces, which are read when they are needed.

However long a file of warps is, of it stay in memory eight bytes for each warp and for each block, and the numbers of
the warps that are in some blocks (:data:`MOST_ROWS`).

Nothing of a trace is believed: files must lie in its folder and have their digests, numbers must be in their ranges and
fit each other.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from pathlib import Path

import numpy as np

from lockstep.models.execution.isa import PT
from lockstep.sim.errors import UsageError
from lockstep.sim.traces import blocks, schema
from lockstep.sim.traces.blocks import HEAD, Block, Head, damaged, read_head, read_table

__all__ = ["Code", "Trace", "Warps", "notes"]

MOST_ROWS = 1 << 20  # of blocks, whose warps are known without reading their tables again


class Code:
    """A kernel of a trace, with its instructions."""

    def __init__(self, folder: Path, name: str) -> None:
        path = folder / name
        self.kernel: schema.Kernel = schema.read(schema.Kernel, path)
        self.place = str(path)
        self.instructions = schema.code_of(self.kernel, self.place)
        guarded = self.instructions["guard"] != PT
        self.guards_before = np.concatenate([[0], np.cumsum(guarded)])


class Warps:
    """The file of a launch's warps. ``whole``: it must be complete.

    ``blocks``, ``pieces`` and ``instructions`` are how many it has; ``first`` and ``last`` are the blocks of the first
    and last piece of each warp, or -1.
    """

    def __init__(self, path: Path, launch: schema.Launch, code: Code, whole: bool = True) -> None:
        self.place, self.launch, self.code = str(path), launch, code
        try:
            if path.is_symlink() or not path.is_file():
                raise UsageError(f"{path}: must be a file")
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from None
        if whole:
            self._check_digest()
        self.pieces = self.instructions = 0
        self.first, self.last = (np.full(launch.ctas * launch.warps_per_cta, -1, np.int32) for _ in range(2))
        self._starts = array("q")
        self._rows: dict[int, np.ndarray] = {}  # the warps in a block; blocks in the order of their use
        self._row_count = 0
        self._scan(whole)
        if whole and self.instructions != launch.instructions:
            counted = f"has {self.instructions} warp instructions, and {launch.instructions} by trace.json"
            raise damaged(self.place, counted)

    def close(self) -> None:
        self._file.close()

    @property
    def blocks(self) -> int:
        return len(self._starts)

    def _check_digest(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        if size != self.launch.bytes:
            raise damaged(self.place, f"has {size} bytes, and {self.launch.bytes} by trace.json")
        digest = hashlib.file_digest(self._file, "sha256").hexdigest()
        if digest != self.launch.digest:
            raise damaged(self.place, "does not have the digest that trace.json says")

    def _scan(self, whole: bool) -> None:
        """Find the blocks of the file and check their tables; an unfinished one may end within a block."""
        size, at = os.fstat(self._file.fileno()).st_size, 0
        while at < size:
            if not whole and size - at < HEAD.size:
                return
            head = self._head(at)
            if at + head.bytes > size:
                if not whole:
                    return
                raise damaged(self.place, "ends within a block")
            table = self._table(head)
            warps = table["warp"]
            fresh = warps[self.first[warps] < 0]
            self.first[fresh], self.last[warps] = self.blocks, self.blocks
            self.pieces += head.pieces
            self.instructions += int(table["instructions"].sum())
            self._starts.append(at)
            at += head.bytes

    def _head(self, at: int) -> Head:
        self._file.seek(at)
        return read_head(self._file.read(HEAD.size), self.place)

    def _table(self, head: Head) -> dict[str, np.ndarray]:
        """The table that follows the head that has just been read."""
        table = read_table(self._file.read(head.table_bytes), head, self.place)
        if table["warp"][-1] >= len(self.first):
            raise damaged(self.place, f"has warp {int(table['warp'][-1])}, and the grid {len(self.first)} warps")
        return table

    def following(self, warp: int, block: int) -> int:
        """The block of a warp's next piece behind the one in a block, or of its first (-1); -1: there is none."""
        if block < 0:
            return int(self.first[warp])
        for number in range(block + 1, int(self.last[warp]) + 1):
            rows = self._warps_in(number)
            at = int(rows.searchsorted(warp))
            if at < len(rows) and rows[at] == warp:
                return number
        return -1

    def _warps_in(self, number: int) -> np.ndarray:
        """The warps that have a piece in a block."""
        rows = self._rows.pop(number, None)
        if rows is None:
            rows = self._table(self._head(self._starts[number]))["warp"].astype(np.int32)
            self._row_count += len(rows)
            while self._row_count > MOST_ROWS and self._rows:
                self._row_count -= len(self._rows.pop(next(iter(self._rows))))
        self._rows[number] = rows
        return rows

    def block(self, number: int) -> Block:
        """A block, unpacked; its instructions are checked."""
        head = self._head(self._starts[number])
        table = self._table(head)
        block = blocks.decode(self._file.read(head.column_bytes), head, table, self.place)
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
