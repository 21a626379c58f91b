"""Recording: launches of a device become a trace in a folder, block by block while they run.

What is not written yet is bounded: of warps whose CTA has ended, a block's worth; of the others, :data:`MOST_PENDING`
instructions, then all of it is written, and a warp's trace is in several pieces.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from lockstep.models.execution.isa import LANES, PT, Control, Group
from lockstep.models.occupancy import round_up
from lockstep.models.traces import taking_part
from lockstep.models.traces.record import LINE, STEP, Recorder, Warps
from lockstep.sim.errors import UsageError
from lockstep.sim.traces import schema
from lockstep.sim.traces.blocks import Steps, encode
from lockstep.sim.traces.steering import judge
from lockstep.spec import files

__all__ = ["Recording", "WarpsFile"]

Extent = tuple[int, int, int]
BLOCK = 1 << 16  # warp instructions
MOST_PENDING = 1 << 18


class WarpsFile:
    """The file of a launch's warps."""

    def __init__(self, path: Path, code: np.ndarray, threads: int, warps_per_cta: int, ctas: int) -> None:
        self._file: IO[bytes] = path.open("wb")
        self._digest = hashlib.sha256()
        self.bytes = self.instructions = self.accesses = 0
        self.marks: list[schema.Mark] = []
        self._guarded = code["guard"] != PT
        self._exits = (code["group"] == Group.CONTROL) & (code["op"] == Control.EXIT)
        self.per_cta = warps_per_cta
        last = threads - LANES * (warps_per_cta - 1)
        present = np.full(warps_per_cta, 0xFFFF_FFFF, np.uint32)
        present[-1] = (1 << last) - 1
        self._left = np.tile(present, ctas)  # lanes that have not exited
        self._live = np.full(ctas, warps_per_cta, np.int32)
        self._pending = Steps(np.zeros(0, STEP), np.zeros(0, LINE), np.zeros(0, LINE))

    def take(self, *found: np.ndarray) -> None:
        """What has been recorded since the last time; it is copied."""
        self._count_exits(found[0])
        kept = (self._pending.steps, self._pending.accesses, self._pending.values)
        self._pending = Steps(*(np.concatenate(pair) for pair in zip(kept, found, strict=True)))
        over = self._ended(self._pending.steps)
        if np.count_nonzero(over) >= BLOCK:
            self._write_some(over)
        if len(self._pending.steps) + len(self._pending.accesses) > MOST_PENDING:
            self._write(self._pending)
            self._pending = Steps(*(each[:0] for each in (self._pending.steps, *kept[1:])))

    def _count_exits(self, steps: np.ndarray) -> None:
        exits = steps[self._exits[steps["pc"]] & (steps["lanes"] != 0)]
        for warp, lanes in zip(exits["warp"].tolist(), exits["lanes"].tolist(), strict=True):
            self._left[warp] &= ~np.uint32(lanes)
            if self._left[warp] == 0:
                self._live[warp // self.per_cta] -= 1

    def _ended(self, entries: np.ndarray) -> np.ndarray:
        """Which entries are of CTAs that have ended."""
        return np.asarray(self._live[entries["warp"] // self.per_cta] == 0)

    def _write_some(self, over: np.ndarray) -> None:
        """Write what is of CTAs that have ended."""
        pending = self._pending
        of = over, self._ended(pending.accesses), self._ended(pending.values)
        parts = pending.steps, pending.accesses, pending.values
        self._write(Steps(*(part[chosen] for part, chosen in zip(parts, of, strict=True))))
        self._pending = Steps(*(part[~chosen] for part, chosen in zip(parts, of, strict=True)))

    def _write(self, found: Steps) -> None:
        if len(found.steps) + len(found.accesses) == 0:
            return
        block = encode(found, self._guarded)
        self._file.write(block)
        self._file.flush()
        self._digest.update(block)
        self.bytes += len(block)
        self.instructions += len(found.steps)
        self.accesses += len(found.accesses)

    @property
    def complete(self) -> bool:
        """Whether all warps have come to their end."""
        return not self._live.any()

    def finish(self) -> str:
        """Write what is left, and close the file; returns its digest."""
        self._write(self._pending)
        self._file.close()
        return self._digest.hexdigest()


class _Inherited:
    """The words of global memory in which launches have left what depends on their timing."""

    def __init__(self) -> None:
        self._places, self._values = np.zeros(0, np.int64), np.zeros(0, np.uint32)

    def words(self, memory: np.ndarray) -> np.ndarray:
        """Which words these are, but for those that the host has changed since."""
        found = np.zeros(len(memory), np.uint8)
        there = self._places < len(memory)
        places, values = self._places[there], self._values[there]
        found[places[memory[places] == values]] = 1
        return found

    def add(self, depending: np.ndarray, written: np.ndarray, memory: np.ndarray) -> None:
        """A launch has written words, some of them such ones."""
        found = self.words(memory).astype(bool)
        count = min(len(written), len(found))
        found[:count][written[:count]] = False
        found[:count] |= depending[:count]
        self._places = np.flatnonzero(found)
        self._values = memory[self._places].copy()


class Recording:
    """A trace that is being recorded; ``provenance`` says of what. ``close`` completes it."""

    def __init__(
        self, folder: Path, provenance: Mapping[str, Any], origin: Literal["lockstep", "accel-sim"] = "lockstep"
    ) -> None:
        self.folder = folder
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder}: exists; a trace is recorded into a new or empty folder")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{folder}: {error.strerror}") from None
        self._kernels: dict[str, str] = {}  # files, by digest
        self._inherited = _Inherited()
        self.manifest = schema.Manifest(
            schema.FORMAT, schema.VERSION, origin, False, dict(provenance), []  # type: ignore[arg-type]
        )  # fmt: skip
        self._save()

    def _save(self) -> None:
        files.write(self.folder / "trace.json", schema.text(self.manifest))

    def close(self) -> None:
        """The trace is complete."""
        self.manifest.finished = True
        self._save()

    def add_text(self, name: str, text: str) -> str:
        """Keep a text in a file of the trace; returns its digest."""
        data = text.encode(errors="surrogateescape")
        path = self.folder / name
        if not path.exists():
            files.write(path, data)
        return schema.digest(data)

    def add_kernel(self, kernel: schema.Kernel) -> str:
        """The file of a kernel, which may be there already."""
        content = schema.text(kernel)
        key = schema.digest(content.encode(errors="surrogateescape"))
        if key not in self._kernels:
            self._kernels[key] = f"kernel-{len(self._kernels)}.json"
            files.write(self.folder / self._kernels[key], content)
        return self._kernels[key]

    @contextmanager
    def warps_of(
        self, kernel: schema.Kernel, code: np.ndarray, grid: Extent, block: Extent, dynamic_bytes: int
    ) -> Iterator[WarpsFile]:
        """The file of the warps of a launch, to be written inside of the ``with``; one that is not complete is dropped.

        Its ``marks`` are the launch's.
        """
        file = f"warps-{len(self.manifest.launches)}.bin"
        try:
            launch = schema.Launch(self.add_kernel(kernel), file, grid, block, dynamic_bytes, 0, 0, 0, "0" * 64)
        except ValueError as error:
            raise UsageError(f"{kernel.name}: {error}") from None
        threads = math.prod(block)
        warps = WarpsFile(self.folder / launch.warps, code, threads, launch.warps_per_cta, launch.ctas)
        try:
            yield warps
        finally:
            launch.digest = warps.finish()
            if not warps.complete:
                (self.folder / launch.warps).unlink()
        if not warps.complete:
            return
        launch.instructions, launch.accesses, launch.bytes = warps.instructions, warps.accesses, warps.bytes
        launch.marks = warps.marks
        self.manifest.launches.append(launch)
        self._save()

    @contextmanager
    def launch(
        self,
        machine: Any,
        kernel: schema.Kernel,
        code: np.ndarray,
        grid: Extent,
        block: Extent,
        dynamic_bytes: int,
        memory: np.ndarray,
    ) -> Iterator[None]:
        """Record the launch inside of the ``with``. One that does not come to its end is left out.

        ``memory`` is what is in the device's.
        """
        scratchpads = machine.gpu.core.sms * machine.gpu.core.ctas
        stride = round_up(kernel.shared_bytes + dynamic_bytes, 16)
        with self.warps_of(kernel, code, grid, block, dynamic_bytes) as warps:
            words, inherited = memory.view(np.uint32), self._inherited.words(memory.view(np.uint32))
            sizes = len(words), scratchpads * stride // 4 + 4
            recorder = Recorder(warps.take, Warps(len(code), math.prod(grid), warps.per_cta, *sizes, inherited))
            with taking_part(machine, recorder):
                yield
            recorder.flush()
            warps.marks, stores = judge(code, kernel.branch_table, recorder)
            if stores or inherited.any():
                depending, written = recorder.written(sorted(stores))
                self._inherited.add(depending, written, words)
