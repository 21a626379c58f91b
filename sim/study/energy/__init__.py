"""The energy of saved runs, by component, of a whole run or of each SM, launch or interval.

A process is a TOML file in this folder, or the user's own: ``node_nm``, ``voltage``, and energies in femtojoules, each
with its ``source``. ``[array]`` has the energy of 64 bits by the bytes of the array that is accessed; in between, and
beyond, the energy goes with a power of the size. ``[operations.NAME]`` has that of a lane's operation, or of what else
``spec/energy.py`` names. What has no energy is not counted; a process may have no ``[array]``. All sums are integers,
and so exact. Nothing is scaled from one process to another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from lockstep.sim.compile.ptx.names import readable
from lockstep.sim.device.statistics import STATISTICS
from lockstep.sim.errors import UsageError
from lockstep.sim.study.saved import Saved
from lockstep.spec import registry, toml
from lockstep.spec.energy import ARRAY, USES
from lockstep.spec.words import closest

__all__ = ["BY", "DEFAULT", "Account", "Part", "Process", "account", "countable", "load", "parts", "processes"]

FOLDER = Path(__file__).parent
WORD_BITS = 64  # of an array's energies
MOST = 10**18  # bytes of an array, femtojoules of an access
STEEPEST = 4
OPERATIONS = sorted({use.operation for use in (*USES, *registry.energy(registry.MECHANISMS))} - {ARRAY})
DEFAULT = "45nm"
BY = ("sm", "launch", "interval")
NEEDED = ("node_nm", "voltage", "operations")


@dataclass(frozen=True)
class Process:
    """``array``: femtojoules of 64 bits, by bytes, ascending, or none; ``operations``: femtojoules of each."""

    name: str
    node_nm: float
    voltage: float
    array: tuple[tuple[int, int], ...]
    operations: Mapping[str, int]
    sources: Mapping[str, str]  # by the name of an operation, or "array"

    def access(self, bits: int, size: int) -> int:
        """Femtojoules of an access to an array of ``size`` bytes."""
        segments = list(pairwise(self.array))
        (low, energy), high = next((s for s in segments if size <= s[1][0]), segments[-1])
        return round(energy * (size / low) ** _exponent((low, energy), high) * bits / WORD_BITS)


def _exponent(low: tuple[int, int], high: tuple[int, int]) -> float:
    """The power of an array's size with which its energy goes between two points."""
    return (math.log(high[1]) - math.log(low[1])) / (math.log(high[0]) - math.log(low[0]))


@dataclass(frozen=True)
class Account:
    """Femtojoules by component, and what the process has no energy for, by component, with the number of events."""

    energies: Mapping[str, int]
    not_counted: Mapping[str, Mapping[str, int]]

    @property
    def total(self) -> int:
        return sum(self.energies.values())


@dataclass(frozen=True)
class Part:
    """A part of a run, and the core cycles that it took."""

    name: str
    cycles: int
    account: Account

    def milliwatts(self, megahertz: float) -> float:
        """The mean power of what is counted, at a core clock."""
        return self.account.total * megahertz / self.cycles / 1e6 if self.cycles else 0.0


def processes() -> list[str]:
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def load(name: str = DEFAULT) -> Process:
    """The process called ``name``, or in the file ``name`` (a path that ends in ``.toml``). Raises
    :class:`UsageError`."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not name.endswith(".toml") and name not in processes():
        raise UsageError(f"process {name!r}: not known{closest(name, processes())}; known are {', '.join(processes())}")
    try:
        found = toml.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot read the process: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not a TOML file: {error}") from None
    _names(path, "", found, (*NEEDED, ARRAY))
    if missing := [key for key in NEEDED if key not in found]:
        raise UsageError(f"{path}: {missing[0]} is missing")
    array, sources = _array(path, found[ARRAY]) if ARRAY in found else ((), {})
    operations = _table(path, "operations", found["operations"])
    _names(path, "operations.", operations, OPERATIONS)
    energies = {}
    for key, entry in operations.items():
        entry = _table(path, f"operations.{key}", entry)
        _names(path, f"operations.{key}.", entry, ("energy", "source"))
        energies[key] = _energy(path, f"operations.{key}.energy", entry.get("energy"))
        sources[key] = _source(path, f"operations.{key}", entry)
    node, voltage = (_number(path, key, found[key]) for key in ("node_nm", "voltage"))
    return Process(path.stem, node, voltage, array, energies, sources)


def _array(path: Path, value: Any) -> tuple[tuple[tuple[int, int], ...], dict[str, str]]:
    """The energies of ``[array]``, and their source."""
    array = _table(path, ARRAY, value)
    points = sorted((_size(path, key), _energy(path, f"{ARRAY}.{key}", array[key])) for key in array if key != "source")
    if len(points) < 2:
        raise UsageError(f"{path}: {ARRAY}: needs the energies of at least two sizes")
    for low, high in pairwise(points):
        if high[0] < 2 * low[0] or abs(_exponent(low, high)) > STEEPEST:
            raise UsageError(
                f"{path}: {ARRAY}.{high[0]}: must be at least twice the size before it, and its energy must go with a "
                f"power of the size of at most {STEEPEST}"
            )
    return tuple(points), {ARRAY: _source(path, ARRAY, array)}


def _table(path: Path, key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {key}: must be a table, [{key}]")
    return value


def _names(path: Path, prefix: str, found: Iterable[str], known: Sequence[str]) -> None:
    for key in found:
        if key not in known:
            raise UsageError(f"{path}: unknown key {prefix}{key}{closest(key, known)}; known are {', '.join(known)}")


def _source(path: Path, key: str, entry: Mapping[str, Any]) -> str:
    source = entry.get("source")
    if not isinstance(source, str) or not source:
        raise UsageError(f"{path}: {key}.source: every energy must have a source, a string")
    return source


def _size(path: Path, key: str) -> int:
    if not (key.isascii() and key.isdecimal() and len(key) <= len(str(MOST)) and 0 < int(key) <= MOST):
        raise UsageError(f"{path}: {ARRAY}.{key}: must be a number of bytes, such as 8192")
    return int(key)


def _energy(path: Path, key: str, value: Any) -> int:
    if type(value) is not int or not 0 < value <= MOST:
        raise UsageError(f"{path}: {key} = {value!r}: must be an integer above 0, in femtojoules, at most 10^18")
    return value


def _number(path: Path, key: str, value: Any) -> float:
    if type(value) not in (int, float) or not 0 < value <= MOST:
        raise UsageError(f"{path}: {key} = {value!r}: must be a number above 0, at most 10^18")
    return float(value)


def account(run: Saved, process: Process) -> Account:
    """The energy of a saved run."""
    return _account(run, {name: run["stats"][name] for name in _events(run)}, process)


def countable(run: Saved) -> bool:
    """Whether a saved run counts all that takes energy; one of another version may not."""
    return run["stats"].keys() >= set(_events(run))


def parts(run: Saved, process: Process, by: str) -> list[Part]:
    """The energy of a saved run in parts, which add up to it: by what :data:`BY` names.

    ``sm``: each SM, and what lies beyond them; ``launch``; ``interval`` of a launch.

    Raises
    ------
    UsageError
        if the run was saved without what this takes.
    """
    if by == "sm":
        if not run["per_sm"]:
            raise UsageError(f"{run['command']}: was saved without per_sm, the statistics of each SM")
        return list(_of_sms(run, process))
    if run.get("events") is None:
        raise UsageError(f"{run['command']}: was run without --energy, which keeps what takes energy by launch")
    return list((_of_launches if by == "launch" else _of_intervals)(run, process))


def _of_sms(run: Saved, process: Process) -> Iterator[Part]:
    names, cycles = _events(run), run["cycles"]
    for number, own in enumerate(run["per_sm"]):
        counts = {name: own[name] for name in names if STATISTICS[name].per_sm}
        yield Part(f"SM {number}", cycles, _account(run, counts, process))
    counts = {name: run["stats"][name] for name in names if not STATISTICS[name].per_sm}
    yield Part("beyond the SMs", cycles, _account(run, counts, process))


def _of_launches(run: Saved, process: Process) -> Iterator[Part]:
    for number, launch in enumerate(run["events"], 1):
        counts = {name: sum(grown) for name, grown in launch["counts"].items()}
        yield Part(f"{number}: {readable(launch['kernel'])}", launch["core_cycle"][-1], _account(run, counts, process))


def _of_intervals(run: Saved, process: Process) -> Iterator[Part]:
    for number, launch in enumerate(run["events"], 1):
        for k, (begin, end) in enumerate(pairwise([0, *launch["core_cycle"]])):
            counts = {name: grown[k] for name, grown in launch["counts"].items()}
            yield Part(f"{number}: {begin:,} to {end:,}", end - begin, _account(run, counts, process))


def _events(run: Saved) -> list[str]:
    """The statistics that count what takes energy."""
    return [name for use in registry.energy(run["mechanisms"]) for name in use.statistics]


def _account(run: Saved, counts: Mapping[str, float], process: Process) -> Account:
    """The energy of some events of a run; there were none of those that ``counts`` lacks."""
    energies: dict[str, int] = {}
    missing: dict[str, dict[str, int]] = {}
    for use in registry.energy(run["mechanisms"]):
        for statistic in use.statistics:
            count = round(counts.get(statistic, 0))
            if use.operation == ARRAY and process.array:
                each = process.access(*use.size(run["configuration"]))
            elif use.operation in process.operations:
                each = process.operations[use.operation]
            else:
                if count:
                    missing.setdefault(use.component, {})[statistic] = count
                continue
            energies[use.component] = energies.get(use.component, 0) + count * each
    return Account(energies, missing)
