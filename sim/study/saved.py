"""Saved runs: the JSON that `run` and `compare` write with ``--json``, read again. Reading one runs no code."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lockstep.sim.device.description import PARAMETERS, setting
from lockstep.sim.errors import UsageError
from lockstep.sim.schema import Count, Name, Number, parse
from lockstep.spec import registry

__all__ = ["Saved", "check", "outcomes", "read"]

Saved = Mapping[str, Any]
"""A result with the keys of the JSON (``docs/api.md``)."""

RULE = "it must be what `lockstep run --json` writes"
OVER_TIME = ("core_cycle", "ipc", "occupancy.warps", "dram.bandwidth_used")  # what readers need of a timeline ...
SHARED_OVER_TIME = ("core_cycle", "ipc", "occupancy", "dram.bandwidth_used")  # ... and of one of two kernels


@dataclass
class Line:
    """What a line of the source costs (``sim.device.profile.Cost``)."""

    file: Name
    line: Count
    text: str
    issues: Count
    lanes: Number
    warp_cycles: Count
    stalls: dict[Name, Count]
    requests: Count

    def __post_init__(self) -> None:
        _equal("warp_cycles", self.warp_cycles, self.issues + sum(self.stalls.values()), "issues and stalls")


@dataclass
class Function:
    """The profile of a kernel function."""

    kernel: Name
    warp_cycles: Count
    issues: Count
    stalls: dict[Name, Count]
    lines: list[Line]

    def __post_init__(self) -> None:
        _equal("warp_cycles", self.warp_cycles, self.issues + sum(self.stalls.values()), "issues and stalls")
        _equal("warp_cycles", self.warp_cycles, sum(line.warp_cycles for line in self.lines), "lines")
        if not all(line.warp_cycles for line in self.lines):
            raise ValueError("lines: has one without warp_cycles: must be left out")


@dataclass
class Profile:
    functions: list[Function]


@dataclass
class Launch:
    """What takes energy in a launch: how much each statistic grew in the intervals that end at ``core_cycle``."""

    kernel: Name
    core_cycle: list[Count]
    counts: dict[Name, list[Count]]

    def __post_init__(self) -> None:
        if not self.core_cycle:
            raise ValueError("core_cycle: is empty: must have an end for each interval")
        _rising("core_cycle", self.core_cycle)
        for name, grown in self.counts.items():
            _as_long(f"counts.{name}", grown, self.core_cycle)


@dataclass
class Kernel:
    """The launches of a kernel function."""

    name: Name
    launches: Count
    cycles: Count
    stats: dict[Name, Number]


ADDED_UP = (
    "issue.warp_instructions", "issue.thread_instructions", "sm.ctas", "sm.warps", "l1.accesses", "l2.accesses",
    "crossbar.requests_bytes", "crossbar.replies_bytes", "dram.read_bytes", "dram.written_bytes",
)  # fmt: skip
"""Statistics that two kernels divide among them."""


@dataclass(kw_only=True)
class Measured:
    """What is told of a run, and of each of two kernels that ran at once."""

    kernel: Name
    size: Name
    seed: int
    cycles: Count
    warp_instructions: Count
    thread_instructions: Count
    ipc: Number
    checked: bool
    message: Name
    stats: dict[Name, Number]
    timeline: list[dict[Name, list[Number]]]

    def __post_init__(self) -> None:
        _check_ipc(self.ipc, self.warp_instructions, self.cycles)


@dataclass(kw_only=True)
class Beside(Measured):
    """One of two kernels that ran at once; of its launches, ``spans`` are core cycles, ``issued`` warp instructions."""

    launches: Count
    spans: list[tuple[Count, Count]]
    issued: list[Count]
    repetitions: list[Count]

    def __post_init__(self) -> None:
        super().__post_init__()
        _equal("spans", len(self.spans), self.launches, "launches")
        _equal("repetitions", sum(self.repetitions), self.launches, "launches")
        _equal("issued", len(self.issued), self.launches, "launches")
        _equal("warp_instructions", self.warp_instructions, sum(self.issued), "launches")
        _rising("spans", [cycle for span in self.spans for cycle in span])
        _equal("cycles", self.cycles, sum(end - begin for begin, end in self.spans), "spans")
        for number, launch in enumerate(self.timeline):
            _over_time(f"timeline[{number}]", launch, SHARED_OVER_TIME)
        if missing := [name for name in ADDED_UP if self.launches and name not in self.stats]:
            raise ValueError(f"stats: has no {missing[0]!r}")


@dataclass
class Both:
    """Up to the end of the kernel that ended first."""

    cycles: Count
    warp_instructions: tuple[Count, Count]
    ipc: tuple[Number, Number]

    def __post_init__(self) -> None:
        for issued, ipc in zip(self.warp_instructions, self.ipc, strict=True):
            _check_ipc(ipc, issued, self.cycles)


@dataclass(kw_only=True)
class Run(Measured):
    """The schema of a run that came to an end; more keys are allowed."""

    gpu: Name
    mechanisms: list[Name]
    settings: dict[Name, Any]
    configuration: dict[Name, Any]
    command: Name
    code_version: Name
    functions: list[Kernel] = field(default_factory=list)
    per_sm: list[dict[Name, Number]] = field(default_factory=list)
    profile: Profile = field(default_factory=lambda: Profile([]))
    events: list[Launch] | None = None
    kernels: list[Beside] = field(default_factory=list)
    both: Both | None = None

    def __post_init__(self) -> None:
        _parameters("settings", self.settings)
        _parameters("configuration", self.configuration)
        for number, launch in enumerate(self.timeline):
            _over_time(f"timeline[{number}]", launch)
        super().__post_init__()
        try:
            _equal("stats.gpu.core_cycles", self.stats["gpu.core_cycles"], self.cycles, "cycles")
            parts = outcomes(vars(self))
        except KeyError as error:
            raise ValueError(f"has no {error.args[0]!r} in stats or configuration") from None
        if wrong := [name for name, cycles in parts.items() if cycles < 0]:
            raise ValueError(f"stats: cycles of SMs must add up: {wrong[0]!r} would have {parts[wrong[0]]:,.0f}")
        self._check_events()
        self._check_kernels()

    def _check_kernels(self) -> None:
        """Two kernels at once, or none: what they have of the run adds up to it."""
        if not self.kernels:
            return
        _equal("kernels", len(self.kernels), 2, "grids that a GPU runs at once")
        for number, each in enumerate(self.kernels):
            cycles = [launch["core_cycle"] for launch in each.timeline]
            if cycles != [launch["core_cycle"] for launch in self.timeline]:
                raise ValueError(f"kernels[{number}].timeline: must have the intervals of the run's")
        end = max((span[1] for each in self.kernels for span in each.spans), default=self.cycles)
        _equal("kernels: the end of the last span", end, self.cycles, "cycles")
        if self.both:
            ends = [each.spans[-1][1] if each.spans else 0 for each in self.kernels]
            _equal("both.cycles", self.both.cycles, min(ends), "end of the kernel that ended first")
            for each, issued in zip(self.kernels, self.both.warp_instructions, strict=True):
                if issued > each.warp_instructions:
                    raise ValueError(f"both.warp_instructions: {issued}: must be {each.warp_instructions} at most")
        for name in ADDED_UP:
            total = sum(each.stats.get(name, 0) for each in self.kernels)
            _equal(f"kernels: {name}", total, self.stats.get(name, total), "stats")

    def _check_events(self) -> None:
        """What takes energy adds up, over SMs, and over launches and intervals."""
        names = [name for use in registry.energy(self.mechanisms) for name in use.statistics if name in self.stats]
        if self.per_sm:
            _equal("per_sm", len(self.per_sm), self.configuration["core.sms"], "SMs of the configuration")
            for name in names:
                if name in self.per_sm[0]:
                    _equal(f"per_sm: {name}", sum(own.get(name, 0) for own in self.per_sm), self.stats[name], "stats")
        if self.events is not None:
            for name in names:
                total = sum(sum(launch.counts.get(name, [])) for launch in self.events)
                _equal(f"events: {name}", total, self.stats[name], "stats")


@dataclass
class Failed:
    """The schema of a run that came to no end."""

    kernel: Name
    checked: Literal[False]
    message: str


def _equal(name: str, value: float, expected: float, what: str) -> None:
    if value != expected:
        raise ValueError(f"{name} = {value}: must be {expected}, as the {what}")


def _check_ipc(ipc: float, instructions: int, cycles: int) -> None:
    right = instructions / cycles if cycles else 0.0
    if not math.isclose(ipc, right):
        raise ValueError(f"ipc = {ipc}: must be warp_instructions / cycles, {right}")


def _parameters(name: str, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if key in PARAMETERS:
            try:
                setting("", key, value)
            except UsageError as error:
                raise ValueError(f"{name}: {error}") from None
        elif not isinstance(value, str | int | float):  # of another version
            raise ValueError(f"{name}.{key}: must be a text or a number")


def _over_time(name: str, launch: Mapping[str, list[float]], keys: Sequence[str] = OVER_TIME) -> None:
    if missing := [key for key in keys if key not in launch]:
        raise ValueError(f"{name}: has no {missing[0]!r}")
    for key, values in launch.items():
        _as_long(f"{name}.{key}", values, launch["core_cycle"])
    _rising(f"{name}.core_cycle", launch["core_cycle"])


def _as_long(name: str, values: Sequence[float], cycles: Sequence[float]) -> None:
    if len(values) != len(cycles):
        raise ValueError(f"{name}: has {len(values)} values: must have {len(cycles)}, as core_cycle")


def _rising(name: str, cycles: Sequence[float]) -> None:
    if sorted(cycles) != list(cycles):
        raise ValueError(f"{name}: must not fall")


def check(text: str, place: str) -> None:
    """Raise :class:`UsageError` unless a JSON text is a run, or one that failed."""
    value = json.loads(text)
    parse(Run if isinstance(value, dict) and "cycles" in value else Failed, text, place, RULE)


class _Part(dict[str, Any]):
    """Statistics or parameters of a run: what another version did not have is missed where it is needed."""

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        super().__init__(values)
        self._place = place

    def __missing__(self, key: str) -> Any:
        raise UsageError(f"{self._place}: has no {key!r}, which `lockstep run --json` of this version writes")


def read(file: str) -> list[Saved]:
    """The runs of a file, of which there is at least one. Raises :class:`UsageError`."""
    try:
        value = json.loads(Path(file).read_text(encoding="utf-8"))
        found = value if isinstance(value, list) else [value]
        texts = [json.dumps(result) for result in found]
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{file}: not JSON; {RULE}") from None
    if not found:
        raise UsageError(f"{file}: has no runs")
    runs: list[Saved] = []
    for number, (result, text) in enumerate(zip(found, texts, strict=True), 1):
        place = file if len(found) == 1 else f"{file}: run {number}"
        if isinstance(result, dict) and "cycles" not in result and "message" in result:
            raise UsageError(f"{place}: {result.get('kernel')}: the run failed: {result['message']}")
        parse(Run, text, place, RULE)
        parts = {name: _Part(result[name], f"{place}: {name}") for name in ("stats", "configuration")}
        sms = [_Part(own, f"{place}: per_sm[{sm}]") for sm, own in enumerate(result.get("per_sm", []))]
        kernels = [
            {**each, "stats": _Part(each["stats"], f"{place}: kernels[{number}].stats")}
            for number, each in enumerate(result.get("kernels", []))
        ]
        runs.append({**result, **parts, "per_sm": sms, **({"kernels": kernels} if kernels else {})})
    return runs


def outcomes(result: Saved) -> dict[str, float]:
    """Core cycles of all SMs by what each did in them; they add up to the cycles of the run, times its SMs."""
    stats = result["stats"]
    active = float(stats["sm.active_core_cycles"])
    found = {
        "issued": float(stats["issue.issued_core_cycles"]),
        "memory": float(stats["issue.c_mem_core_cycles"]),
        "memory, blocked": float(stats["issue.c_mem_blocked_core_cycles"]),
        "other": float(stats["issue.c_idle_core_cycles"]),
    }
    found["pipelines"] = active - sum(found.values())
    found["no CTA"] = float(stats["gpu.core_cycles"]) * result["configuration"]["core.sms"] - active
    return found
