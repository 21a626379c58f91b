"""GPU descriptions: from a TOML file and overrides to :class:`lockstep.spec.parameters.Gpu`, with all checks.

A file is the whole description: it has every parameter, so that reading it tells everything about the GPU. An override
is ``"section.key"`` (``"pipelines.float.latency"`` for a pipeline) and a value. Every error is a :class:`UsageError` of
one line that names the file, the parameter and what is allowed.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields, replace
from pathlib import Path
from typing import Any

from lockstep.models.memory import timing
from lockstep.sim.errors import UsageError, closest
from lockstep.spec import parameters, registry
from lockstep.spec.parameters import CATEGORIES, Gpu, Pipeline, check

__all__ = ["PARAMETERS", "load", "names", "parse_setting", "values"]

FOLDER = Path(__file__).parent / "gpus"
IDENTITY = ("name", "source", "compute_capability")


SECTIONS = parameters.SECTIONS | registry.SECTIONS


def _parameters() -> dict[str, Field[Any]]:
    every = {f"{section}.{f.name}": f for section, cls in SECTIONS.items() for f in fields(cls)}
    return every | {f"pipelines.{category}.{f.name}": f for category in CATEGORIES for f in fields(Pipeline)}


PARAMETERS: dict[str, Field[Any]] = _parameters()
"""Every parameter by its full name, with unit, range and meaning in its metadata."""

def _defaults(sections: Iterable[str]) -> dict[str, Any]:
    return {key: f.default for key, f in PARAMETERS.items() if key.split(".")[0] in sections}


DEFAULTS: dict[str, Any] = _defaults(registry.SECTIONS)
"""What a description may leave out: parameters of mechanisms. It may leave out whole sections of others, too."""


def names() -> list[str]:
    """The descriptions that can be loaded by name."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def load(
    gpu: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None, selected: Iterable[str] = ()
) -> Gpu:
    """The description called ``gpu``, or in the file ``gpu`` (a path that ends in ``.toml``), with overrides applied.

    ``selected`` are the mechanisms.

    Raises :class:`UsageError` for an unknown GPU or file, an unknown, missing or mistyped parameter, a value out of
    range, and for parameters that contradict each other.
    """
    path = _find(os.fspath(gpu))
    try:
        table = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: cannot read the GPU description: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not a TOML file: {error}") from None
    place = str(gpu)
    identity = {key: _identity(place, table, key) for key in IDENTITY}
    settings = _flatten(place, {key: value for key, value in table.items() if key not in IDENTITY})
    settings = DEFAULTS | _defaults(set(parameters.OPTIONAL) - table.keys()) | settings
    for key in settings:
        _known(place, key)
    if missing := [key for key in PARAMETERS if key not in settings]:
        raise UsageError(f"{place}: {missing[0]} is missing ({len(missing)} in all); a description has every parameter")
    for key, value in settings.items():
        _check(place, key, value)
    try:
        mechanisms = registry.resolve(selected)
    except ValueError as error:
        raise UsageError(str(error)) from None
    settings |= registry.defaults(mechanisms)
    for key, value in (overrides or {}).items():
        _known("override", key)
        settings[key] = _check("override", key, value)
    description = replace(
        _build(identity, settings), mechanisms=mechanisms, frame_slots=registry.frame_slots(mechanisms)
    )
    if errors := check(description) or timing.check(description) or registry.check(description):
        raise UsageError(f"{place}{' with overrides' if overrides else ''}: {errors[0]}")
    return description


def values(gpu: Gpu) -> dict[str, Any]:
    """The whole resolved description, flat, as ``load`` takes overrides."""
    result = {key: getattr(gpu, key) for key in IDENTITY}
    for key in PARAMETERS:
        first, *rest = key.split(".")
        item = gpu.sections[first] if first in registry.SECTIONS else getattr(gpu, first)
        for name in rest:
            item = item[name] if isinstance(item, dict) else getattr(item, name)
        result[key] = item
    return result


def parse_setting(text: str) -> tuple[str, Any]:
    """``section.key=value`` from the command line; the value becomes a number where the parameter is one."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {text}: expected section.key=value")
    key, value = key.strip(), value.strip()
    if "allowed" in PARAMETERS[_known("--set", key)].metadata:
        return key, value
    try:
        return key, int(value, 0)
    except ValueError:
        raise UsageError(f"--set {text}: {value!r} is not an integer") from None


def _find(gpu: str) -> Path:
    if gpu.endswith(".toml"):
        if not Path(gpu).is_file():
            raise UsageError(f"{gpu}: no such file")
        return Path(gpu)
    if gpu not in names():
        known = ", ".join(names())
        raise UsageError(f"GPU {gpu!r}: not known{closest(gpu, names())}; known are {known}, or give a FILE.toml")
    return FOLDER / f"{gpu}.toml"


def _identity(place: str, table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise UsageError(f"{place}: {key} must be a text, not {value!r}")
    if key == "compute_capability" and not all(part.isdigit() for part in value.split(".", 1)):
        raise UsageError(f'{place}: compute_capability must be like "2.0", not {value!r}')
    return value


def _flatten(place: str, table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            sections = [*SECTIONS, "pipelines", *(f"pipelines.{category}" for category in CATEGORIES)]
            if name not in sections:
                raise UsageError(f"{place}: unknown section [{name}]{closest(name, sections)}")
            result |= _flatten(place, value, f"{name}.")
        else:
            result[name] = value
    return result


def _known(place: str, key: str) -> str:
    if key not in PARAMETERS:
        raise UsageError(f"{place}: unknown parameter {key}{closest(key, PARAMETERS)}")
    return key


def _check(place: str, key: str, value: Any) -> Any:
    metadata = PARAMETERS[key].metadata
    if allowed := metadata.get("allowed"):
        if value not in allowed:
            raise UsageError(f"{place}: {key} = {value!r}: must be one of {', '.join(allowed)}")
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{place}: {key} = {value!r}: must be an integer")
    low, high, unit = metadata["low"], metadata["high"], metadata["unit"]
    if not low <= value <= high:
        raise UsageError(f"{place}: {key} = {value}: must be {low} to {high}{f' {unit}' if unit else ''}")
    return value


def _build(identity: Mapping[str, str], settings: Mapping[str, Any]) -> Gpu:
    def section(cls: type, prefix: str) -> Any:
        return cls(**{f.name: settings[f"{prefix}.{f.name}"] for f in fields(cls)})

    return Gpu(
        **identity,
        **{name: section(cls, name) for name, cls in parameters.SECTIONS.items()},
        pipelines={category: section(Pipeline, f"pipelines.{category}") for category in CATEGORIES},
        sections={name: section(cls, name) for name, cls in registry.SECTIONS.items()},
    )
