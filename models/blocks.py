"""The record types of the blocks' ports, as the models use them: ``{i, o, c}``, from the RTL's signatures.

The layouts are derived by :mod:`lockstep.rtl.ports` in a process of its own and kept in the cache under the hash of the
sources that they depend on, so that a process that runs kernels never imports Amaranth.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lockstep.models import cache
from lockstep.models.jit import record

Layout = dict[str, list[dict[str, Any]]]

BINDING = record([(name, "i8") for name in ("step", "comb", "idle", "skip", "handle")])
"""Who plays the part of a block: addresses of its functions (slots), and what these take as their first argument.

``step(handle, io)``, ``comb(handle, io)`` and ``idle(handle, io)`` take the address of the ports, ``skip(handle, n)`` a
number of cycles; a model without combinational outputs has no ``comb``, and one that counts nothing while it is idle no
``skip``. For the golden model the handle is the address of its state.
"""


@functools.cache
def layouts() -> dict[str, Layout]:
    """The layout of every block (``<area>.<block>``); its form is described in :mod:`lockstep.rtl.ports`.

    Raises
    ------
    RuntimeError
        when a signature breaks a rule; the message is the rule's.
    """
    sources = cache.closure(*(cache.ROOT / "rtl").rglob("*.py"))
    key = hashlib.sha256(importlib.metadata.version("amaranth").encode())
    for source in sources:
        key.update(str(source.relative_to(cache.ROOT)).encode() + source.read_bytes())
    found: dict[str, Layout] = json.loads(cache.kept(f"layouts/{key.hexdigest()}", _derive))
    # Compiled code depends on the layouts of the blocks that it names, not on the RTL's sources.
    cache.derived(Path(__file__), {block: json.dumps(layout).encode() for block, layout in found.items()})
    return found


def _derive() -> bytes:
    """Derive all layouts."""
    done = subprocess.run(
        [sys.executable, "-m", "lockstep.rtl.ports"], check=False, capture_output=True, encoding="utf-8"
    )
    if done.returncode:
        raise RuntimeError(f"the ports of the blocks have no layout: {done.stderr.strip()}")
    return done.stdout.encode()


@functools.cache
def ports(block: str) -> np.dtype:
    """The record type of a block's ports, as in ``ports("scheduling.warp_scheduler")``."""
    return record([(side, _record(fields)) for side, fields in layouts()[block].items()])


def _record(fields: Sequence[dict[str, Any]]) -> np.dtype:
    kinds = (_record(field["fields"]) if "fields" in field else field["type"] for field in fields)
    return record([(field["name"], kind, tuple(field["shape"])) for field, kind in zip(fields, kinds, strict=True)])


def instance(block: str, state: np.dtype) -> np.dtype:
    """The record of a block inside a larger one: who plays it, its golden model's state, its ports."""
    return record([("binding", BINDING), ("state", state), ("io", ports(block))])


class Place(NamedTuple):
    """Where a record type has instances of a block: their path, and the joined unit that they are part of, if any."""

    block: str
    path: tuple[str, ...]
    inside: str


def instances(kind: np.dtype, inside: str = "") -> Iterator[Place]:
    """The places of all instances in a record type, those inside other instances too.

    The field of an instance has the name of its block; where it is an array, all its elements have one place.
    """
    known = {name.split(".")[1]: name for name in layouts()}
    for name in kind.names or ():
        base = kind[name].base
        if base.names and base.names[0] == "binding":
            yield Place(known[name], (name,), inside)
            for place in instances(base["state"], known[name]):
                yield place._replace(path=(name, "state", *place.path))
        elif base.names:
            for place in instances(base, inside):
                yield place._replace(path=(name, *place.path))
