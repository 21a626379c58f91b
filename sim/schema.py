"""Data from files, checked before anything is used: a schema is a dataclass whose annotations say what is allowed.

What belongs together is checked by its ``__post_init__``, which raises ValueError. Checking runs no code of the data.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge, Le, MaxLen, Predicate

from lockstep.sim.errors import UsageError

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = ["Count", "Name", "Number", "parse"]

MOST = 2**63 - 1
LEAST = 1e-12


def _measurable(value: float) -> bool:
    """Whether a number is none that only rounding, or malice, brings about: to divide by it gives nothing of use."""
    return value == 0 or value >= LEAST


Count = Annotated[int, Ge(0), Le(MOST)]
Number = Annotated[float, Ge(0), Le(MOST), Predicate(_measurable)]  # neither NaN nor infinite
Name = Annotated[str, MaxLen(4096), Predicate(str.isprintable)]  # no control characters: terminals obey them


def parse(schema: Any, text: str | bytes, place: str, rule: str) -> Any:
    """What a JSON text describes. Raises :class:`UsageError` with the place, the field, and what it may be."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(schema).validate_json(text, strict=True)
    except ValidationError as error:
        raise UsageError(f"{place}: {_complaint(error)}; {rule}") from None


def _complaint(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    *outer, own = first["loc"] or ("",)
    kind, value = first["type"], reprlib.repr(first["input"])
    if kind == "json_invalid":
        return "not JSON"
    if kind == "missing":
        return f"{_behind(outer)}has no {own!r}"
    if kind == "value_error":
        return f"{_behind(first['loc'])}{first['ctx']['error']}"
    rule = first["msg"].replace("Input should", "must")
    if kind == "predicate_failed":
        rule = "must be printable" if isinstance(first["input"], str) else f"must be 0, or at least {LEAST}"
    return f"{_behind(first['loc'], ' = ')}{value}: {rule}"


def _behind(path: Sequence[int | str], end: str = ": ") -> str:
    """The path of a field, in front of what is said of it: ``timeline[0].ipc[3]: ``."""
    shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    return f"{shown}{end}" if shown else ""
