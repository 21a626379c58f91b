"""What a machine consists of: the tenants of the SM's frame slots, and the instances of blocks.

A module that fills frame slots (``Mechanism.tenants``) has ``TENANTS``: for each slot the compiled functions that its
binding names, all of which take the address of the tenant's state first; and ``STATE``: a record, of which every SM has
one. Some of its fields are known by name:

* a field with the name of one of the mechanism's sections has the section's values (``spec.parameters.layout``);
* ``counts`` has raw counts: ``<area>.<field>`` for the statistics;
* ``gate``, ``claim``, ``order``, ``limit``, ``monitor`` or ``client`` is the index of its entry in that stack;
* ``gauges`` has values that are shown over time, added up over SMs, as ``<area>.<field>``;
* ``tables`` has host addresses of a kernel's tables (``Draft.kernel.tables``, which passes fill): its field
  ``regions_words`` is that of ``regions.words``, in the launch that begins;
* ``given`` has the host addresses of tables that the user has given (``Model.given``), or 0;
* ``kept`` is left as it is when a launch begins: who reads it has written it before;
* an instance of a block (``models.blocks.instance``), at any depth, is bound to its golden model, or to hardware, and
  reset when a launch begins: its state and its outputs; its inputs are the tenant's to set.

The others are zero when a launch begins.

A monitor of the whole GPU (:data:`WATCH`) may have a record that is the GPU's instead of an SM's: ``WHOLE``, of the
same form. Its field ``states`` is the address of the first SM's ``STATE``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from lockstep.models import blocks
from lockstep.models import jit as J
from lockstep.models.core import frame
from lockstep.spec.mechanism import Mechanism, arguments_of
from lockstep.spec.parameters import Gpu, fill

BINDINGS = {"path": ("lsu", "path"), "operands": ("frame", "operands"), "context": ("frame", "context")}
"""Where the binding of a frame slot for one tenant stands in an SM's record."""

STACKS = {
    "gates": ("frame", "gate", "gates"),
    "claims": ("frame", "claim", "claims"),
    "order": ("frame", "order", "orders"),
    "limits": ("frame", "limit", "limits"),
    "monitors": ("frame", "monitor", "monitors"),
    "events": ("frame", "events", "listener", "count"),
    "l1_clients": ("lsu", "clients", "client", "count"),
}
"""Where a stack stands: its entries, and beside them how many there are."""

FLAGS = {
    "gates": frame.HAS_GATES,
    "order": frame.HAS_ORDER,
    "claims": frame.HAS_CLAIMS,
    "operands": frame.HAS_OPERANDS,
    "limits": frame.HAS_LIMITS,
    "monitors": frame.HAS_MONITORS,
    "events": frame.HAS_LISTENERS,
    "context": frame.HAS_CONTEXT,
}
"""What an SM's ``tenants`` says of a frame slot that has one."""

HOST = ("capacity",)
"""Frame slots that are no part of a running machine: their tenants are asked before a launch."""

WATCH = "watch"
"""The function of a monitor of the whole GPU, whose handle is its ``WHOLE``, or the state of the first SM."""

TABLES, GIVEN = "tables", "given"

WAITS = "waits"
"""A function of a module, in Python: ``waits(state, record of the SM, warp slot)`` says what the warp waits for."""


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

    @property
    def _model(self) -> ModuleType:
        return importlib.import_module(f"lockstep.models.{self.block}")

    def bind_model(self) -> None:
        """Let the golden model play the block."""
        state, binding = self.record["state"], self.record["binding"]
        _bind(binding, self._model.SLOTS, state.ctypes.data)
        for name in set(self.parameters) & set(state.dtype.names or ()):
            state[name] = self.parameters[name]

    def reset(self) -> None:
        """Reset the golden model's state, and the outputs; the bindings are the model's."""
        self._model.reset(J.argument(self.record["state"]), J.argument(self.record["io"]))


def _in(records: np.ndarray, path: Iterable[str]) -> np.ndarray:
    for name in path:
        records = records[name]
    return records


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
        self.whole = np.zeros(1, getattr(self._module, "WHOLE", [("states", "i8")]))
        self.whole["states"] = self.states.ctypes.data
        for records in (self.states, self.whole):
            for section in _fields(records) & mechanism.sections.keys():
                fill(records[section], gpu.sections[section])
        entries = {entry for *_, entry, _ in STACKS.values()}
        if twice := _blocks(self.states) & entries:
            raise RuntimeError(
                f"{module}: {min(twice)!r} is the tenant's entry in its stack; "
                "put the block of this name into a record of its own"
            )
        kept = mechanism.sections.keys() | entries | {"states", "kept"}
        self._tables: list[np.ndarray] = []  # of the launch: they must stay where they are
        self._zeroed = [
            (records, name)
            for records in (self.states, self.whole)
            for name in sorted(_fields(records) - _blocks(records) - kept)
        ]

    @property
    def fields(self) -> set[str]:
        return _fields(self.states)

    def bind(self, sms: np.ndarray, run: np.ndarray) -> None:
        """Take the frame slots in the records of the SMs, and in that of the run."""
        for slot, functions in self._module.TENANTS.items():
            handle = self.whole if hasattr(self._module, "WHOLE") else self.states
            if slot == "placement":
                _bind(run["placement"], functions, handle.ctypes.data)
                continue
            if WATCH in functions:
                _bind(run["monitor"][run["monitors"]], {"see": functions[WATCH]}, handle.ctypes.data)
                run["monitors"] += 1
                functions = {name: function for name, function in functions.items() if name != WATCH}
                if not functions:
                    continue
            if slot in STACKS:
                *path, entries, count = STACKS[slot]
                self._bind_all(_in(_in(sms, path), [entries])[:, int(_in(sms, path)[count][0])], functions)
                if entries in self.fields:
                    self.states[entries] = int(_in(sms, path)[count][0])
                _in(sms, path)[count] += 1
            else:
                self._bind_all(_in(sms, BINDINGS[slot]), functions)
            sms["tenants"] |= FLAGS.get(slot, 0)

    def _bind_all(self, bindings: np.ndarray, functions: dict[str, Any]) -> None:
        for sm in range(len(bindings)):
            _bind(bindings[sm : sm + 1], functions, self.states[sm : sm + 1].ctypes.data)

    def waits(self, sm: np.void, index: int, slot: int) -> str:
        """What it lets a warp of an SM wait for; empty if it does not."""
        explain = getattr(self._module, WAITS, None)
        return explain(self.states[index], sm, slot) if explain else ""

    def begin(self, tables: Mapping[str, np.ndarray], given: Mapping[str, np.ndarray]) -> None:
        """A launch begins: all but parameters, instances of blocks, tables and the place in a stack is zero."""
        for records, name in self._zeroed:
            J.zero(records, name)
        self._tables = []
        if GIVEN in self.fields:
            self._show(self.states[GIVEN], given)
        if TABLES in self.fields:
            addresses = self.states[TABLES]
            self._show(addresses, tables)
            if lacking := sorted(field for field in _fields(addresses) if not addresses[field].all()):
                raise RuntimeError(f"{self.mechanism.name}: no pass has made the table {lacking[0]!r} of this kernel")

    def _show(self, addresses: np.ndarray, tables: Mapping[str, np.ndarray]) -> None:
        """Tell it where the tables lie that it has a field for."""
        for name, array in tables.items():
            if (field := name.replace(".", "_")) in _fields(addresses):
                self._tables.append(np.ascontiguousarray(array))
                addresses[field] = self._tables[-1].ctypes.data

    @property
    def counts(self) -> dict[str, np.ndarray]:
        """Its raw counts."""
        return counts(self.mechanism.area, self.states["counts"]) if "counts" in self.fields else {}

    @property
    def gauges(self) -> dict[str, np.ndarray]:
        """Its gauges, in the states of all SMs."""
        return counts(self.mechanism.area, self.states["gauges"]) if "gauges" in self.fields else {}


def _fields(records: np.ndarray) -> set[str]:
    return set(records.dtype.names or ())


def _blocks(records: np.ndarray) -> set[str]:
    """The fields with instances of blocks."""
    return {place.path[0] for place in blocks.instances(records.dtype)}


def tenants(mechanism: Mechanism, gpu: Gpu) -> list[Tenant]:
    """The tenants of a mechanism; a module that fills several frame slots is one."""
    modules = (module for slot, module in mechanism.tenants.items() if slot not in HOST)
    return [Tenant(mechanism, module, gpu) for module in dict.fromkeys(modules)]


def instances(mechanism: Mechanism, gpu: Gpu, whole: list[np.ndarray], per_sm: list[np.ndarray]) -> Iterator[Instance]:
    """The blocks that a mechanism brings, from its records: those of the whole GPU, and arrays with one for each SM.

    Raises RuntimeError for a block that it brings and no record has, and the other way round.
    """
    arguments = mechanism.arguments(gpu)
    places = [(place, records, sm) for sm, group in ((-1, whole), (0, per_sm)) for records in group
              for place in blocks.instances(records.dtype)]  # fmt: skip
    there = {place.block for place, _, _ in places}
    if unbound := set(mechanism.all_blocks) - there:
        raise RuntimeError(f"{min(unbound)}: {mechanism.name} brings this block, and has no instance of it to bind")
    if undeclared := there - set(mechanism.all_blocks):
        raise RuntimeError(f"{min(undeclared)}: {mechanism.name} has an instance of this block, and does not bring it")
    for place, records, first in places:
        if (first < 0) != (place.block in mechanism.whole):
            raise RuntimeError(f"{place.block}: {mechanism.name} must say in `whole` which blocks the GPU has one of")
        found = records.reshape(-1)
        for name in place.path:
            found = found[name]
        for sm, index in np.ndindex(len(found), mechanism.instances(place.block, gpu)):
            one = found[sm : sm + 1] if found.ndim == 1 else found[sm : sm + 1, index]
            given = arguments_of(arguments, place.block, index)
            yield Instance(place.block, given, first + sm, index, place.inside, one.reshape(()))


def counts(prefix: str, records: np.ndarray, *fields: str) -> dict[str, np.ndarray]:
    """The integer fields of an array of records, in it, as raw counts called ``prefix.field``."""
    array = np.atleast_1d(records)
    names = fields or array.dtype.names or ()
    return {f"{prefix}.{name}": array[name] for name in names if array.dtype[name].base.kind == "i"}
