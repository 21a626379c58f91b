"""The C++ between a Verilated block and the record of its ports: generated, one file per block and parameter set.

The struct ``Io`` is generated from the block's record type, so that an address of the record goes straight from the
model's slots into the library. A block smaller than the largest drives only its own leaves of it. Inputs are masked to
their width; an array of integers is one port, element 0 in the lowest bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from amaranth.lib import wiring

from lockstep.models.time import NEVER
from lockstep.rtl.flat import FlatPort, flat_ports
from lockstep.rtl.ports import layout

WORD = 32  # bits of an element of Verilator's VlWide
LARGEST_SCALAR = 64


class LayoutError(Exception):
    """The ports of a block and its record type do not fit together."""


@dataclass(frozen=True)
class Element:
    """One integer of a port: its place in the record, and its lowest bit in the port."""

    path: str
    bit: int


@dataclass(frozen=True)
class Port:
    """One flat port and the elements of the record that it carries."""

    flat: FlatPort
    itemsize: int  # of an element, in the record
    elements: tuple[Element, ...]
    contiguous: bool  # the elements follow each other in the record

    @property
    def copied(self) -> bool:
        """The bits of the record are the bits of the port."""
        return self.contiguous and self.flat.width == 8 * self.itemsize


def ports(component: wiring.Component, kind: np.dtype) -> list[Port]:
    """The ports of a component with their places in the record type of its block.

    Raises
    ------
    LayoutError
        for a port that the record lacks, or whose array or width is larger than the record's.
    """
    sides = layout(component)
    return [_port(flat, _shape(sides[str(flat.path[0])], flat.path[1:]), kind) for flat in flat_ports(component)]


def _shape(fields: list[dict[str, Any]], path: tuple[str | int, ...]) -> tuple[int, ...]:
    """The dimensions of a leaf; those of the groups around it are in its path."""
    names = [part for part in path if isinstance(part, str)]
    found = next(field for field in fields if field["name"] == names[0])
    for name in names[1:]:
        found = next(field for field in found["fields"] if field["name"] == name)
    return tuple(found["shape"])


def dotted(path: tuple[str | int, ...]) -> str:
    """A path as C++, NumPy's users and the reports write it: ``i.line[1].payload.mask``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)[1:]


def _port(flat: FlatPort, shape: tuple[int, ...], kind: np.dtype) -> Port:
    where = kind
    for part in flat.path:
        if isinstance(part, str):
            if part not in (where.names or ()):
                raise LayoutError(f"{dotted(flat.path)}: the block's record has no such port")
            where = where.fields[part][0]  # type: ignore[index]
        else:
            if not where.subdtype or part >= where.shape[0]:
                raise LayoutError(f"{dotted(flat.path)}: the block's record has only {where.shape} of these")
            where = np.dtype((where.base, where.shape[1:]))
    room, itemsize = where.shape, where.base.itemsize
    if where.base.names or len(room) != len(shape) or any(a > b for a, b in zip(shape, room, strict=True)):
        raise LayoutError(f"{dotted(flat.path)}: is {shape}, in the block's record {room}")
    if flat.width > 8 * itemsize:
        raise LayoutError(f"{dotted(flat.path)}: has {flat.width} bits, in the block's record {8 * itemsize}")
    elements = tuple(
        Element(dotted((*flat.path, *index)), position * flat.width)
        for position, index in enumerate(np.ndindex(*shape))
    )
    return Port(flat, itemsize, elements, shape[1:] == room[1:])


def text(block: str, component: wiring.Component, kind: np.dtype) -> str:
    """The C++ source of a block's shim. ``kind`` is the record type of its ports."""
    places = ports(component, kind)
    sides = {side: [p for p in places if p.flat.path[0] == side] for side in "ioc"}
    generated = {
        "struct": struct(kind),
        "size": str(kind.itemsize),
        "put": _body(line for port in sides["i"] for line in _put(port)),
        "take_o": _body(line for port in sides["o"] for line in _take(port)),
        "take_c": _body(line for port in sides["c"] for line in _take(port)),
        "same_o": "std::memcmp(&a.o, &b.o, sizeof a.o) == 0" if "o" in (kind.names or ()) else "true",
        "same_c": "std::memcmp(&a.c, &b.c, sizeof a.c) == 0" if "c" in (kind.names or ()) else "true",
        "table": _body(
            f'    LEAF({element.path}, "{port.flat.name}", {element.bit}, {port.flat.width})'
            for port in places
            for element in port.elements
        ),
        "put_expected": _body(line for port in sides["o"] + sides["c"] for line in _put(port, "expected_")),
        "block": block,
        "never": str(NEVER),
    }
    source = resources.files("lockstep.sim.cosim").joinpath("shim.cpp").read_text(encoding="utf-8")
    for name, value in generated.items():
        source = source.replace(f"@{name}@", value)
    return source


def struct(kind: np.dtype) -> str:
    """A record type as the C struct ``Io``."""
    return "\n".join(["struct Io {", *_struct(kind, "    "), "};"])


def _body(lines: Iterator[str]) -> str:
    return "\n".join(lines)


def _struct(kind: np.dtype, indent: str) -> Iterator[str]:
    """The members of a struct with the layout of a record type; all its padding has names."""
    for name in kind.names or ():
        field = kind.fields[name][0]  # type: ignore[index]
        dimensions = "".join(f"[{n}]" for n in field.shape)
        if field.base.names:
            yield f"{indent}struct {{"
            yield from _struct(field.base, indent + "    ")
            yield f"{indent}}} {name}{dimensions};"
        else:
            yield f"{indent}{_integer(field.base)} {name}{dimensions};"


def _integer(kind: np.dtype) -> str:
    return f"{'u' if kind.kind == 'u' else ''}int{8 * kind.itemsize}_t"


def _mask(width: int) -> str:
    return f"{(1 << width) - 1:#x}u" + ("ll" if width > 32 else "")


def _put(port: Port, prefix: str = "") -> Iterator[str]:
    """Statements that copy a leaf of ``io`` to a port of ``r``, the Verilated module."""
    name, width = f"r.{prefix}{port.flat.name}", port.flat.width
    if port.flat.bits > LARGEST_SCALAR and port.copied:
        yield f"    std::memcpy(&{name}[0], &io.{port.elements[0].path}, {port.flat.bits // 8});"
        return
    values = [f"uint64_t(io.{element.path} & {_mask(width)})" for element in port.elements]
    if port.flat.bits <= LARGEST_SCALAR:
        yield f"    {name} = {_join(values, [element.bit for element in port.elements])};"
        return
    for word, start in enumerate(range(0, port.flat.bits, WORD)):
        within = [k for k, e in enumerate(port.elements) if e.bit < start + WORD and e.bit + width > start]
        terms = _join([values[k] for k in within], [port.elements[k].bit - start for k in within])
        yield f"    {name}[{word}] = uint32_t({terms});"


def _join(values: list[str], shifts: list[int]) -> str:
    return " | ".join(
        value if shift == 0 else f"{value} << {shift}" if shift > 0 else f"{value} >> {-shift}"
        for value, shift in zip(values, shifts, strict=True)
    )


def _take(port: Port) -> Iterator[str]:
    """Statements that copy a port of ``r`` to its leaf of ``io``."""
    name, width = f"r.{port.flat.name}", port.flat.width
    if port.flat.bits > LARGEST_SCALAR and port.copied:
        yield f"    std::memcpy(&io.{port.elements[0].path}, &{name}[0], {port.flat.bits // 8});"
        return
    for element in port.elements:
        if len(port.elements) == 1:
            value = name
        elif port.flat.bits <= LARGEST_SCALAR:
            value = f"({name} >> {element.bit}) & {_mask(width)}"
        else:
            value = f"({_slice(name, element.bit, width)}) & {_mask(width)}"
        yield f"    io.{element.path} = {value};"


def _slice(name: str, bit: int, width: int) -> str:
    """The bits of a wide port from ``bit`` on."""
    first, last = bit // WORD, (bit + width - 1) // WORD
    return _join([f"uint64_t({name}[{word}])" for word in range(first, last + 1)],
                 [WORD * word - bit for word in range(first, last + 1)])  # fmt: skip
