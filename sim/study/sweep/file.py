"""Sweeps as TOML: the axes of `lockstep compare`, under the names of its options.

::

    kernel = ["spmv", "mine/kernel.py"]     # a value, or a list of values
    gpu = ["gtx480", "mine.toml"]           # files: relative to this one
    with = ["baseline", "warppool", "dyncta,mrpb"]
    size = "small"
    seed = [1, 2, 3]
    strict = false

    [set]
    l1.mshrs = [16, 32, 64]

    [slurm]                                 # what submitit takes, for --scheduler slurm
    timeout_min = 120
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lockstep.sim.device.description import setting
from lockstep.sim.errors import UsageError
from lockstep.sim.sizes import SIZES
from lockstep.sim.study import comparison
from lockstep.sim.study.sweep.axes import Axes
from lockstep.spec import toml
from lockstep.spec.words import closest

__all__ = ["load"]

KINDS: dict[str, type] = {"kernel": str, "gpu": str, "with": str, "size": str, "seed": int, "strict": bool}
TABLES = ("set", "slurm")
DEFAULTS = {"gpu": "gtx480", "with": comparison.BASELINE, "size": "small", "seed": 1, "strict": False}


def load(path: Path) -> tuple[Axes, dict[str, Any]]:
    """The axes of a sweep, checked, and what it says about Slurm. Raises :class:`UsageError`; loads no kernel."""
    try:
        table = toml.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot read the sweep: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # also integers beyond Python's limit, and nested too deep
        raise UsageError(f"{path}: not a TOML file: {error}") from None
    known = (*KINDS, *TABLES)
    for key, value in table.items():
        if key not in known:
            raise UsageError(f"{path}: unknown key {key}{closest(key, known)}; known are {', '.join(known)}")
        if (key in TABLES) != isinstance(value, dict):
            raise UsageError(f"{path}: {key}: must {'' if key in TABLES else 'not '}be a table, [{key}]")
    if "kernel" not in table:
        raise UsageError(f"{path}: kernel is missing; it names the kernels to run")
    values = {key: _values(path, key, table.get(key, DEFAULTS.get(key))) for key in KINDS}
    if len(values["strict"]) != 1:
        raise UsageError(f"{path}: strict: must be true or false")
    for size in values["size"]:
        if size not in SIZES:
            raise UsageError(f"{path}: size = {size!r}: not known{closest(size, SIZES)}; known are {', '.join(SIZES)}")
    axes = Axes(
        [_beside(path, each, ".py") for each in values["kernel"]],
        [_beside(path, each, ".toml") for each in values["gpu"]],
        [comparison.mechanisms(each) for each in values["with"]],
        dict(_settings(path, table.get("set", {}))),
        values["size"],
        values["seed"],
        values["strict"][0],
    )
    axes.check(str(path))
    return axes, table.get("slurm", {})


def _values(path: Path, key: str, value: Any) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    kind = KINDS[key]
    for each in values:
        if type(each) is not kind:
            names = {str: "a text", int: "an integer", bool: "true or false"}
            raise UsageError(f"{path}: {key} = {each!r}: must be {names[kind]}, or a list of such values")
    return values


def _settings(path: Path, table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, list[Any]]]:
    """Parameters by full name: ``l1.mshrs = 16`` is a table inside a table."""
    found: list[tuple[str, list[Any]]] = []
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            found += _settings(path, value, f"{name}.")
        else:
            values = value if isinstance(value, list) else [value]
            found.append((name, [setting(f"{path}: [set]", name, each) for each in values]))
    return found


def _beside(path: Path, name: str, ending: str) -> str:
    """A file is named relative to the sweep's."""
    return str(path.parent / name) if name.endswith(ending) else name
