"""A block's ports as a flat list with readable names: what Verilog, C++ and cocotb see of it.

Every leaf of the port layout (:mod:`lockstep.rtl.ports`) is one port; its name is the leaf's path without ``payload``:
``request.payload.mask`` is ``request_mask``, ``line[1].valid`` is ``line_1_valid``. An array of integers is one port,
element 0 in the lowest bits. Names never contain a double underscore, which Verilator would mangle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Signal, Value
from amaranth.lib import wiring

from lockstep.rtl.ports import Field, layout


@dataclass(frozen=True)
class FlatPort:
    """One port.

    ``path`` leads to the leaf in the record (``("i", "line", 1, "payload", "mask")``); the leaf is an
    array of ``shape``, perhaps ``()``, in one that may be larger, with elements of ``width`` bits and the record type
    ``type``.
    """

    name: str
    path: tuple[str | int, ...]
    width: int
    shape: tuple[int, ...]
    type: str

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def bits(self) -> int:
        return self.width * self.count

    @property
    def is_input(self) -> bool:
        return self.path[0] == "i"

    @property
    def member(self) -> str:
        """The path as ``combinational`` writes it: without side and indices."""
        return ".".join(part for part in self.path[1:] if isinstance(part, str))

    def is_below(self, member: str) -> bool:
        """Whether it is this member, or in it."""
        return self.member == member or self.member.startswith(f"{member}.")

    @property
    def range(self) -> str:
        """What stands before the name where it is declared in Verilog; nothing for one bit."""
        return f"[{self.bits - 1}:0] " if self.bits > 1 else ""


def flat_ports(component: wiring.Component) -> list[FlatPort]:
    """All ports of a component, but for its clock and reset: inputs, outputs, combinational outputs."""
    ports = [port for side, fields in layout(component).items() for port in _leaves(fields, (side,))]
    names = [port.name for port in ports]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{type(component).__name__}: two ports would be called {min(twice)}")
    return ports


def _leaves(fields: list[Field], prefix: tuple[str | int, ...]) -> Iterator[FlatPort]:
    for field in fields:
        path = (*prefix, field["name"])
        if "fields" in field:
            for index in np.ndindex(*field["shape"]):
                yield from _leaves(field["fields"], (*path, *index))
        else:
            name = "_".join(str(part) for part in path[1:] if part != "payload")
            yield FlatPort(name, path, field["width"], tuple(field["shape"]), field["type"])


def _value(component: wiring.Component, path: tuple[str | int, ...]) -> Value:
    """The bits of a leaf inside a component."""
    found = component
    for part in path[1:]:
        found = found[part] if isinstance(part, int) else getattr(found, part)
    return _bits(found)


def _bits(found: object) -> Value:
    return Cat(_bits(item) for item in found) if isinstance(found, list | tuple) else Value.cast(found)


class Flat(Elaboratable):
    """A component with flat ports in place of its own. It may be elaborated once.

    ``signals`` has them by name, and then ``clk`` and ``rst``, also those of a component without registers.
    """

    def __init__(self, component: wiring.Component) -> None:
        self.component = component
        self.ports = flat_ports(component)
        self.domain = ClockDomain("sync")
        self.signals = {port.name: Signal(port.bits, name=port.name) for port in self.ports}
        self.signals |= {"clk": self.domain.clk, "rst": self.domain.rst}

    def elaborate(self, platform: object) -> Module:
        m: Module = self.component.elaborate(platform)
        with suppress(NameError):  # the component brings its own
            m.domains += self.domain
        for port in self.ports:
            outer, inner = self.signals[port.name], _value(self.component, port.path)
            m.d.comb += inner.eq(outer) if port.is_input else outer.eq(inner)
        return m
