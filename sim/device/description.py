"""GPU descriptions: from a TOML file and overrides to :class:`lockstep.spec.parameters.Gpu`, with all checks.

A file is the whole description: it has every parameter, so that reading it tells everything about the GPU; or it has a
``base``, another description's name or file, and what differs from it. An override is ``"section.key"``
(``"pipelines.float.latency"`` for a pipeline) and a value. Every error is a :class:`UsageError` of one line that names
the file, the parameter and what is allowed. The comment behind a value in a file is its source, which :func:`explain`
shows.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, fields, replace
from pathlib import Path
from typing import Any

from lockstep.models.memory import timing
from lockstep.sim.errors import UsageError, of_type, path_text
from lockstep.spec import parameters, registry, toml
from lockstep.spec.parameters import CATEGORIES, Gpu, Pipeline, check
from lockstep.spec.words import closest

__all__ = ["PARAMETERS", "Explained", "explain", "load", "names", "parse_setting", "setting", "values"]

FOLDER = Path(__file__).parent.parent / "gpus"
DEFAULT = "gtx480"
IDENTITY = ("name", "source", "compute_capability")
BASE = "base"
RULE = f"a description has all of {', '.join(IDENTITY)} and every parameter, or a {BASE}"

SECTIONS = parameters.SECTIONS | registry.SECTIONS


def _parameters() -> dict[str, Field[Any]]:
    every = {f"{section}.{f.name}": f for section, cls in SECTIONS.items() for f in fields(cls)}
    return every | {f"pipelines.{category}.{f.name}": f for category in CATEGORIES for f in fields(Pipeline)}


PARAMETERS: dict[str, Field[Any]] = _parameters()
"""Every parameter by its full name, with unit, range and meaning in its metadata."""


def _defaults(sections: Iterable[str]) -> dict[str, Any]:
    return {key: f.default for key, f in PARAMETERS.items() if key.split(".")[0] in sections}


DEFAULTS: dict[str, Any] = _defaults(registry.SECTIONS) | {
    key: PARAMETERS[key].default for key in parameters.OPTIONAL_KEYS
}
"""Parameters that a description may leave out: those of mechanisms and a few others. Whole sections may be missing."""


def names() -> list[str]:
    """The descriptions that can be loaded by name."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def load(gpu: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None, selected: Iterable[str] = ()) -> Gpu:
    """The description called ``gpu``, or in the file ``gpu`` (a path that ends in ``.toml``), with overrides applied.

    ``selected`` are the mechanisms; a text is the name of one.

    Raises :class:`UsageError` for an unknown GPU or file, an unknown, missing or mistyped parameter, a value out of
    range, and for parameters that contradict each other.
    """
    place = path_text("gpu", gpu)
    identity: dict[str, str] = {}
    settings: dict[str, Any] = {}
    for file, table in _files(place):
        own, changes = _written(file, table)
        identity |= own
        settings |= changes
    sections = {key.split(".")[0] for key in settings}
    settings = DEFAULTS | _defaults(set(parameters.OPTIONAL) - sections) | settings
    if missing := [key for key in PARAMETERS if key not in settings]:
        raise UsageError(f"{place}: {missing[0]} is missing ({len(missing)} in all); {RULE}")
    try:
        mechanisms = registry.resolve(_names(selected))
    except ValueError as error:
        raise UsageError(str(error)) from None
    settings |= registry.defaults(mechanisms)
    for key, value in of_type(Mapping, "settings", overrides or {}, "a dict").items():
        settings[key] = _check("", _known("", key), value)
    description = replace(
        _build(identity, settings), mechanisms=mechanisms, frame_slots=registry.frame_slots(mechanisms)
    )
    if errors := check(description) or timing.check(description) or registry.check(description):
        raise UsageError(f"{place}{' with overrides' if overrides else ''}: {errors[0]}")
    return description


def _names(selected: object) -> list[str]:
    rule = "a mechanism's name, or a list of them"
    found = [selected] if isinstance(selected, str) else list(of_type(Iterable, "mechanisms", selected, rule))
    return [of_type(str, "mechanisms", name, rule) for name in found]


@dataclass(frozen=True)
class Explained:
    """A parameter of a GPU. ``source``: where its value comes from; empty if its file does not say."""

    key: str
    value: int | str
    unit: str
    allowed: str
    meaning: str
    source: str


def explain(
    gpu: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None, selected: Iterable[str] = ()
) -> list[Explained]:
    """Every parameter of a description, with what it means and where its value comes from; as :func:`load` takes it."""
    described = load(gpu, overrides, selected)
    files = [file for file, _ in _files(os.fspath(gpu))]
    sources = dict.fromkeys(DEFAULTS | _defaults(parameters.OPTIONAL), "default")
    for file in files:
        sources |= {key: comment if file is files[-1] else _from(file, comment) for key, comment in _comments(file)}
    sources |= dict.fromkeys(registry.defaults(described.mechanisms), "default of a mechanism")
    sources |= dict.fromkeys(overrides or {}, "override")
    found = values(described)
    return [
        Explained(key, found[key], f.metadata["unit"], _allowed(f), f.metadata["doc"], sources.get(key, ""))
        for key, f in PARAMETERS.items()
    ]


def _allowed(parameter: Field[Any]) -> str:
    metadata = parameter.metadata
    return ", ".join(metadata["allowed"]) if "allowed" in metadata else f"{metadata['low']} to {metadata['high']}"


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


def setting(place: str, key: str, value: Any) -> Any:
    """``value``, if the parameter called ``key`` may have it. Raises :class:`UsageError` with the place."""
    return _check(place, _known(place, key), value)


def parse_setting(text: str) -> tuple[str, Any]:
    """``section.key=value`` from the command line; the value becomes a number where the parameter is one."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set {text}: expected section.key=value")
    key, value = key.strip(), value.strip()
    if "allowed" in PARAMETERS[_known("--set", key)].metadata:
        return key, value
    try:
        return key, int(value, 0)
    except ValueError:
        raise UsageError(f"--set {text}: {value!r} is not an integer") from None


def _files(gpu: str) -> list[tuple[Path, dict[str, Any]]]:
    """The files of a description with what is in them, of which each changes what those before it say."""
    path = _find(gpu, Path())
    files = [(path, _table(path))]
    while (base := files[0][1].get(BASE)) is not None:
        path = files[0][0]
        if not isinstance(base, str):
            raise UsageError(f"{path}: {BASE} must be the name or the file of a GPU description, not {base!r}")
        file = _find(base, path.parent)
        if any(file.samefile(other) for other, _ in files):
            raise UsageError(f"{path}: {BASE} = {base!r}: {file} is itself based on this description")
        files.insert(0, (file, _table(file)))
    return files


def _table(path: Path) -> dict[str, Any]:
    try:
        return _parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot read the GPU description: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # also integers beyond Python's limit, and nested too deep
        raise UsageError(f"{path}: not a TOML file: {error}") from None


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> dict[str, Any]:
    """Not to be changed: sweeps load the same few files for each of their runs."""
    return toml.loads(text)


def _written(path: Path, table: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """The contents of one file: the GPU's identity, and its parameters. With a base it need not say everything."""
    place, base = _shown(path), table.get(BASE)
    settings = _flatten(place, {key: value for key, value in table.items() if key not in (*IDENTITY, BASE)})
    for key, value in settings.items():
        _check(place, _known(place, key), value)
    identity = {key: _identity(place, table, key) for key in IDENTITY if key in table or base is None}
    if base is not None:
        identity = {"name": path.stem, "source": f"{base}, with changes"} | identity
    return identity, settings


def _comments(path: Path) -> Iterator[tuple[str, str]]:
    """The comments behind the values of a file, by parameter; "" where there is none."""
    import tomlkit
    from tomlkit.items import InlineTable, Table

    for section, table in tomlkit.parse(path.read_text(encoding="utf-8")).items():
        for key in table if isinstance(table, Table) else ():
            item = table.value.item(key)
            comment = item.trivia.comment.lstrip("# ")
            if isinstance(item, InlineTable):
                yield from ((f"{section}.{key}.{name}", comment) for name in item)
            else:
                yield f"{section}.{key}", comment


def _from(file: Path, comment: str) -> str:
    return f"{_shown(file)}: {comment}" if comment else _shown(file)


def _shown(file: Path) -> str:
    """A file as messages name it: one of ours by its name."""
    return file.stem if file.parent == FOLDER else str(file)


def _find(gpu: str, folder: Path) -> Path:
    """A description by name, or by its file, which is relative to a folder."""
    if gpu.endswith(".toml"):
        if not (folder / gpu).is_file():
            raise UsageError(f"{folder / gpu}: no such file")
        return folder / gpu
    if gpu not in names():
        known = ", ".join(names())
        raise UsageError(f"GPU {gpu!r}: not known{closest(gpu, names())}; known are {known}, or give a FILE.toml")
    return FOLDER / f"{gpu}.toml"


def _identity(place: str, table: Mapping[str, Any], key: str) -> str:
    if key not in table:
        raise UsageError(f"{place}: {key} is missing; {RULE}")
    value = table[key]
    if not isinstance(value, str) or not value:
        raise UsageError(f"{place}: {key} must be a string, not {value!r}")
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
    if of_type(str, "settings: a name", key, "a text, such as l1.mshrs") not in PARAMETERS:
        raise UsageError(f"{_behind(place)}unknown parameter {key}{closest(key, [*PARAMETERS, *IDENTITY, BASE])}")
    return key


def _behind(place: str) -> str:
    """The start of a message about a file, or about no file."""
    return place and f"{place}: "


def _check(place: str, key: str, value: Any) -> Any:
    place = _behind(place)
    metadata = PARAMETERS[key].metadata
    allowed = _allowed(PARAMETERS[key])
    if "allowed" in metadata:
        if not isinstance(value, str) or value not in metadata["allowed"]:
            raise UsageError(f"{place}{key} = {value!r}: must be one of {allowed}")
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{place}{key} = {value!r}: must be an integer")
    unit = metadata["unit"]
    if not metadata["low"] <= value <= metadata["high"]:
        raise UsageError(f"{place}{key} = {value}: must be {allowed}{f' {unit}' if unit else ''}")
    return value


def _build(identity: Mapping[str, str], settings: Mapping[str, Any]) -> Gpu:
    def section(cls: type, prefix: str) -> Any:
        return cls(**{f.name: settings[f"{prefix}.{f.name}"] for f in fields(cls)})

    return Gpu(
        name=identity["name"],
        source=identity["source"],
        compute_capability=identity["compute_capability"],
        **{name: section(cls, name) for name, cls in parameters.SECTIONS.items()},
        pipelines={category: section(Pipeline, f"pipelines.{category}") for category in CATEGORIES},
        sections={name: section(cls, name) for name, cls in registry.SECTIONS.items()},
    )
