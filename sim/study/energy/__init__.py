"""The energy of saved runs, by component.

A process is a TOML file in this folder, or the user's own: ``node_nm``, ``voltage``, and energies in femtojoules, each
with its ``source``. ``[array]`` has the energy of 64 bits by the bytes of the array that is accessed; in between, and
beyond, the energy goes with a power of the size. ``[operations.NAME]`` has that of a lane's operation, or of what else
``spec/energy.py`` names. All sums are integers, and so exact. Nothing is scaled from one process to another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from lockstep.sim.errors import UsageError
from lockstep.sim.study.saved import Saved
from lockstep.spec import registry, toml
from lockstep.spec.energy import ARRAY, USES, Use
from lockstep.spec.words import closest

__all__ = ["Account", "Process", "account", "load", "processes"]

FOLDER = Path(__file__).parent
WORD_BITS = 64  # of an array's energies
MOST = 10**18  # bytes of an array, femtojoules of an access
STEEPEST = 4
_OWN = (use for mechanism in registry.MECHANISMS.values() for use in mechanism.energy)
OPERATIONS = sorted({use.operation for use in (*USES, *_OWN)} - {ARRAY})
KEYS = ("node_nm", "voltage", ARRAY, "operations")


@dataclass(frozen=True)
class Process:
    """``array``: femtojoules of 64 bits, by bytes, ascending; ``operations``: femtojoules of each."""

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


def processes() -> list[str]:
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def load(name: str) -> Process:
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
    _names(path, "", found, KEYS)
    if missing := [key for key in KEYS if key not in found]:
        raise UsageError(f"{path}: {missing[0]} is missing")
    array, operations = _table(path, ARRAY, found[ARRAY]), _table(path, "operations", found["operations"])
    points = sorted((_size(path, key), _energy(path, f"{ARRAY}.{key}", array[key])) for key in array if key != "source")
    if len(points) < 2:
        raise UsageError(f"{path}: {ARRAY}: needs the energies of at least two sizes")
    for low, high in pairwise(points):
        if high[0] < 2 * low[0] or abs(_exponent(low, high)) > STEEPEST:
            raise UsageError(
                f"{path}: {ARRAY}.{high[0]}: must be at least twice the size before it, and its energy must go with a "
                f"power of the size of at most {STEEPEST}"
            )
    _names(path, "operations.", operations, OPERATIONS)
    sources = {ARRAY: _source(path, ARRAY, array)}
    energies = {}
    for key, entry in operations.items():
        entry = _table(path, f"operations.{key}", entry)
        _names(path, f"operations.{key}.", entry, ("energy", "source"))
        energies[key] = _energy(path, f"operations.{key}.energy", entry.get("energy"))
        sources[key] = _source(path, f"operations.{key}", entry)
    node, voltage = (_number(path, key, found[key]) for key in ("node_nm", "voltage"))
    return Process(path.stem, node, voltage, tuple(points), energies, sources)


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


def uses(mechanisms: Sequence[str]) -> list[Use]:
    """The events that take energy in a run with these mechanisms."""
    own = [use for name in mechanisms if name in registry.MECHANISMS for use in registry.MECHANISMS[name].energy]
    replaced = {use.component for use in own}
    return [use for use in USES if use.component not in replaced] + own


def account(run: Saved, process: Process) -> Account:
    """The energy of a saved run."""
    stats, configuration = run["stats"], run["configuration"]
    energies: dict[str, int] = {}
    missing: dict[str, dict[str, int]] = {}
    for use in uses(run["mechanisms"]):
        for statistic in use.statistics:
            count = round(stats[statistic])
            if use.operation == ARRAY:
                each = process.access(*use.size(configuration))
            elif use.operation in process.operations:
                each = process.operations[use.operation]
            else:
                if count:
                    missing.setdefault(use.component, {})[statistic] = count
                continue
            energies[use.component] = energies.get(use.component, 0) + count * each
    return Account(energies, missing)
