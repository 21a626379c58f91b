"""Who plays what in a machine: the tenants of the SM's frame slots, and the instances of blocks.

A module that fills frame slots (``Mechanism.tenants``) has ``TENANTS``: for each slot the compiled functions that its
binding names, all of which take the address of the tenant's state first; and ``STATE``: a record, of which every SM has
one. Some of its fields are known by name:

* a field called as one of the mechanism's sections has the section's values (``spec.parameters.layout``);
* ``counts``, which is zero when a launch begins, has raw counts: ``<area>.<field>`` for the statistics;
* an instance of a block (``models.blocks.instance``), at any depth, is bound to its golden model, or to hardware.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lockstep.models import blocks
from lockstep.models import jit as J
from lockstep.spec.mechanism import Mechanism
from lockstep.spec.parameters import Gpu, fill

PLACES = {"path": ("lsu", "path")}
"""Where the binding of a frame slot stands in an SM's record."""


@dataclass(frozen=True)
class Instance:
    """One block of the machine. ``sm`` is -1 for a block of the whole GPU; ``record`` views its binding, state, ports.

    ``inside`` is the joined unit that it is part of.
    """

    block: str
    parameters: dict[str, int]
    sm: int
    index: int
    inside: str
    record: np.ndarray

    @property
    def io(self) -> np.ndarray:
        return self.record["io"]

    def bind_model(self) -> None:
        """Let the golden model play the block."""
        slots = importlib.import_module(f"lockstep.models.{self.block}").SLOTS
        state, binding = self.record["state"], self.record["binding"]
        _bind(binding, slots, state.ctypes.data)
        for name in set(self.parameters) & set(state.dtype.names or ()):
            state[name] = self.parameters[name]


def _bind(binding: np.ndarray, functions: dict[str, Any], handle: int) -> None:
    for name, function in functions.items():
        binding[name] = J.address(function)
    binding["handle"] = handle


class Tenant:
    """One module of a mechanism, with its state in every SM."""

    def __init__(self, mechanism: Mechanism, module: str, gpu: Gpu) -> None:
        self.mechanism = mechanism
        self._module = importlib.import_module(module)
        self.states = np.zeros(gpu.core.sms, self._module.STATE)
        for section in self.fields & mechanism.sections.keys():
            fill(self.states[section], gpu.sections[section])

    @property
    def fields(self) -> set[str]:
        return set(self.states.dtype.names or ())

    def bind(self, sms: np.ndarray) -> None:
        """Take the frame slots in the records of the SMs."""
        for slot, functions in self._module.TENANTS.items():
            bindings = sms
            for name in PLACES[slot]:
                bindings = bindings[name]
            for sm in range(len(sms)):
                _bind(bindings[sm : sm + 1], functions, self.states[sm : sm + 1].ctypes.data)

    def begin(self) -> None:
        """A launch begins."""
        if "counts" in self.fields:
            self.states["counts"] = np.zeros((), self.states.dtype["counts"])

    @property
    def counts(self) -> dict[str, np.ndarray]:
        """Its raw counts."""
        return counts(self.mechanism.area, self.states["counts"]) if "counts" in self.fields else {}


def tenants(mechanism: Mechanism, gpu: Gpu) -> list[Tenant]:
    """The tenants of a mechanism; a module that fills several frame slots is one."""
    return [Tenant(mechanism, module, gpu) for module in dict.fromkeys(mechanism.tenants.values())]


def instances(mechanism: Mechanism, gpu: Gpu, whole: list[np.ndarray], per_sm: list[np.ndarray]) -> Iterator[Instance]:
    """The blocks that a mechanism brings, from its records: those of the whole GPU, and arrays with one for each SM.

    Raises RuntimeError for a block that it brings and no record has, and the other way round.
    """
    arguments, copies = mechanism.arguments(gpu), mechanism.copies(gpu)
    places = [(place, records, sm) for sm, group in ((-1, whole), (0, per_sm)) for records in group
              for place in blocks.instances(records.dtype)]  # fmt: skip
    there = {place.block for place, _, _ in places}
    if unbound := set(mechanism.all_blocks) - there:
        raise RuntimeError(f"{min(unbound)}: {mechanism.name} brings this block, and has no instance of it to bind")
    if undeclared := there - set(mechanism.all_blocks):
        raise RuntimeError(f"{min(undeclared)}: {mechanism.name} has an instance of this block, and does not bring it")
    for place, records, first in places:
        found = records.reshape(-1)
        for name in place.path:
            found = found[name]
        for sm, index in np.ndindex(len(found), copies.get(place.block, 1)):
            one = found[sm : sm + 1] if found.ndim == 1 else found[sm : sm + 1, index]
            yield Instance(place.block, arguments[place.block], first + sm, index, place.inside, one.reshape(()))


def counts(prefix: str, records: np.ndarray, *fields: str) -> dict[str, np.ndarray]:
    """Copies of the integer fields of an array of records, as raw counts called ``prefix.field``."""
    array = np.atleast_1d(records)
    names = fields or array.dtype.names or ()
    return {f"{prefix}.{name}": array[name].astype(np.int64) for name in names if array.dtype[name].base.kind == "i"}
