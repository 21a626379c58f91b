"""Saved runs: the JSON that `run` and `compare` write with ``--json``, read again. Reading one runs no code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lockstep.sim.errors import UsageError

__all__ = ["Saved", "outcomes", "read"]

Saved = Mapping[str, Any]
"""A result with the keys of the JSON (``docs/api.md``)."""

NEEDED = ("kernel", "gpu", "mechanisms", "settings", "size", "seed", "cycles", "warp_instructions", "ipc", "checked",
          "message", "stats", "timeline", "configuration", "command", "code_version")  # fmt: skip
RULE = "it must be what `lockstep run --json` writes"


def read(file: str) -> list[Saved]:
    """The runs of a file, of which there is at least one. Raises :class:`UsageError`."""
    try:
        value = json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{file}: not JSON; {RULE}") from None
    found = value if isinstance(value, list) else [value]
    if not found:
        raise UsageError(f"{file}: has no runs")
    for result in found:
        missing = [key for key in NEEDED if not isinstance(result, dict) or key not in result]
        if isinstance(result, dict) and "cycles" not in result and "message" in result:
            raise UsageError(f"{file}: {result.get('kernel')}: the run failed: {result['message']}")
        if missing:
            raise UsageError(f"{file}: has no {missing[0]!r}; {RULE}")
    return found


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
