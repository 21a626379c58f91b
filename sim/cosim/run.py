"""Whole kernels with RTL in them: ``cosim(job, "warppool")``, and what is reported about it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lockstep.sim.cosim import build, report
from lockstep.sim.cosim.session import Difference, Session, chosen, named
from lockstep.sim.errors import KernelFault, UsageError
from lockstep.sim.study.job import Job
from lockstep.sim.watch import Watch
from lockstep.spec import registry

if TYPE_CHECKING:
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.device.run import Run

Attach = Callable[["Gpu"], None]
"""Called with the GPU of a job before its first launch."""
Execute = Callable[[Attach], dict[str, Any]]
"""Runs a job once and returns its result; every call does exactly the same."""

FOLDER = "cosim"  # where reports go, unless told otherwise


def cosim(
    job: Job,
    rtl: str = "all",
    mode: str = "shadow",
    sms: Sequence[int] | None = None,
    folder: Path | str = FOLDER,
    watch: Watch | None = None,
    makes: Mapping[str, build.Make] | None = None,
    record: Path | str | None = None,
) -> dict[str, Any]:
    """Run a job with the RTL of blocks in it.

    Parameters
    ----------
    job : Job
        The kernel, or both, and the GPU.
    rtl : str
        Blocks and areas, separated by commas, or "all".
    mode : str
        "shadow": the model drives the run, and every output of the RTL is compared in every cycle. "replace": the RTL
        drives it, and statistics and memory of every launch are compared with a run of the model alone.
    sms : sequence of int, optional
        Only there.
    folder : path
        Takes the report of a difference.
    makes : mapping, optional
        Components that take the place of the blocks' own.
    record : path, optional
        Folder for a replay file of each instance, from *shadow*: the kernel's traffic at its ports.

    Returns
    -------
    dict
        The keys of a run, and ``blocks``, ``mode``, ``compared_cycles`` (cycles times blocks in which all outputs
        agreed; 0 in *replace*), ``mismatches``, ``cycles_per_second`` (SMs with RTL times core cycles, per second of
        simulation). After a difference ``difference`` holds the report, or in *replace* one line per thing that
        differs, and a run that was stopped has no statistics.

    Raises
    ------
    UsageError
        for blocks and SMs that there are not, and all that a run raises.
    """
    from lockstep.sim.study.execution import execute

    watch = watch or Watch()

    def once(attach: Attach) -> dict[str, Any]:
        def attached(gpu: Gpu) -> None:
            named(rtl, registry.blocks(gpu.description))  # before the machine is made, which may take minutes
            attach(gpu)

        return execute(job, watch, attached)

    head = {"kernel": job.kernel, "gpu": job.gpu, "mechanisms": list(job.mechanisms), "size": job.size}
    if mode == "replace":
        if record is not None:
            raise UsageError("--record: works in mode shadow only")
        return replace(once, rtl, sms, makes, head)
    return shadow(once, rtl, sms, Path(folder), makes, head, None if record is None else Path(record))


def shadow(
    execute: Execute,
    rtl: str,
    sms: Sequence[int] | None,
    folder: Path,
    makes: Mapping[str, build.Make] | None,
    head: Mapping[str, Any],
    record: Path | None = None,
) -> dict[str, Any]:
    """Run with every output compared; at a difference run again with the ports of that block recorded."""
    if record is not None:
        try:
            record.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--record {record}: {error.strerror}") from None
    first = _Attached(rtl, sms, "shadow", makes, record=record is not None)
    try:
        result = first.run(execute)
        summary = first.summary(ended=result is not None)
        if result is not None:
            if record is not None:
                for kept in first.session.replays():
                    kept.save(record / f"{kept.block}.sm{kept.sm}.{kept.index}.npz")
            return {**result, **summary}
        differs = first.differs
    finally:
        first.close()
    again = _Attached(rtl, sms, "shadow", makes, only=differs, record=True)
    try:
        if again.run(execute) is not None or again.difference is None:
            raise RuntimeError("a difference did not come again when the run was repeated")
        found = report.write(folder, again.difference, again.session.replay(), (makes or {}).get(differs[0]))
    finally:
        again.close()
    return {**head, **summary, "checked": False, "message": report.essentials(found), "difference": found}


class _Attached:
    """A session on the machine of one run of a job."""

    def __init__(
        self,
        rtl: str,
        sms: Sequence[int] | None,
        mode: str,
        makes: Mapping[str, build.Make] | None,
        only: tuple[str, int, int] | None = None,
        record: bool = False,
    ) -> None:
        self.rtl, self.sms, self.mode, self.makes, self.only, self.record = rtl, sms, mode, makes, only, record
        self._launches: list[tuple[int, float]] = []  # core cycles and seconds of those that have ended
        self._session: Session | None = None

    def attach(self, gpu: Gpu) -> None:
        gpu.after_launch.append(lambda run: self._launches.append((run.cycles, run.wall_seconds)))
        if self.only is not None:
            gpu.on_print = None  # the run is repeated
        found = chosen(self.rtl, gpu.machine.instances, self.sms)
        if self.only is not None:
            found = [i for i in found if (i.block, i.sm, i.index) == self.only]
        self._session = Session(gpu.machine, found, self.mode, self.makes, self.record)

    @property
    def session(self) -> Session:
        if self._session is None:
            raise RuntimeError("the run has made no machine")
        return self._session

    @property
    def begun(self) -> bool:
        """Whether there is a session, so that what stops the run may be the hardware's doing."""
        return self._session is not None

    def run(self, execute: Execute) -> dict[str, Any] | None:
        """The result, or nothing if a difference stopped the run."""
        try:
            return execute(self.attach)
        except (UsageError, RuntimeError):
            if not self.begun:
                raise
            if self.session.failure:
                raise KernelFault(self.session.failure) from None
            if self.difference is None:
                raise
            return None

    @property
    def difference(self) -> Difference | None:
        return self.session.difference

    @property
    def differs(self) -> tuple[str, int, int]:
        found = self.session.difference
        if found is None:
            raise RuntimeError("there is no difference")
        return found.block, found.sm, found.index

    def summary(self, ended: bool) -> dict[str, Any]:
        """The keys that a co-simulation adds to a run, which has ``ended`` or was stopped."""
        session = self.session
        cycles, seconds = (sum(each) for each in zip((0, 0.0), *self._launches, strict=True))
        return {
            "blocks": session.blocks,
            "mode": self.mode,
            "compared_cycles": session.steps if self.mode == "shadow" else 0,
            "mismatches": int(not ended),
            "cycles_per_second": session.sms * cycles / seconds if seconds else 0.0,
        }

    def close(self) -> None:
        if self._session is not None:
            self._session.close()


def replace(
    execute: Execute,
    rtl: str,
    sms: Sequence[int] | None,
    makes: Mapping[str, build.Make] | None,
    head: Mapping[str, Any],
) -> dict[str, Any]:
    """Run the model alone, then with RTL in its place, and compare what every launch leaves behind."""
    expected, found = _Launches(), _Launches()

    def alone(gpu: Gpu) -> None:
        chosen(rtl, gpu.machine.instances, sms)
        expected.attach(gpu)

    execute(alone)
    attached = _Attached(rtl, sms, "replace", makes)

    def attach(gpu: Gpu) -> None:
        attached.attach(gpu)
        found.attach(gpu)
        gpu.on_print = None  # the model has printed it

    try:
        try:
            result = execute(attach)
            result |= attached.summary(ended=True)
            wrong = expected.differences(found)
        except (UsageError, RuntimeError) as error:  # the model alone had none
            if not attached.begun:
                raise
            wrong = [f"the run with RTL stopped: {attached.session.failure or error}"]
            result = {**head, **attached.summary(ended=False)}
    finally:
        attached.close()
    result["mismatches"] = len(wrong)
    if wrong:
        result |= {"difference": wrong, "checked": False, "message": wrong[0]}
    return result


class _Launches:
    """The outcome of every launch of a run: raw counts, what it printed, hashes of allocations in device memory."""

    def __init__(self) -> None:
        self.counts: list[dict[str, np.ndarray]] = []
        self.printed: list[str] = []
        self.memory: list[dict[int, str]] = []

    def attach(self, gpu: Gpu) -> None:
        def ended(run: Run) -> None:
            self.counts.append(run.raw)
            self.printed.append(run.printed)
            self.memory.append(
                {
                    base: hashlib.sha256(gpu.memory.view(base, size).data).hexdigest()
                    for base, size in gpu.memory.allocations
                }
            )

        gpu.after_launch.append(ended)

    def differences(self, other: _Launches) -> list[str]:
        """One line per count, text and allocation that differs."""
        lines = []
        if len(self.counts) != len(other.counts):
            lines.append(f"{len(self.counts)} launches of the model, {len(other.counts)} with RTL")
        for k, (mine, its) in enumerate(zip(self.counts, other.counts, strict=False)):
            lines += [
                f"launch {k}: {name}: model {_short(mine[name])}, RTL {_short(its[name])}"
                for name in mine
                if not np.array_equal(mine[name], its[name])
            ]
        for k, (text, other_text) in enumerate(zip(self.printed, other.printed, strict=False)):
            lines += [f"launch {k}: what it printed differs"] * (text != other_text)
        for k, (before, after) in enumerate(zip(self.memory, other.memory, strict=False)):
            lines += [f"launch {k}: memory at {base:#x} differs" for base in before if before[base] != after.get(base)]
        return lines


def _short(counts: np.ndarray) -> str:
    return str(int(counts.sum())) if counts.size else "nothing"
