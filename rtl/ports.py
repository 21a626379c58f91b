"""From a component's signature to the layout of the record that carries its ports: the only place that knows the rules.

``python -m lockstep.rtl.ports`` prints the layouts of all blocks as JSON. The model reads them through
:mod:`lockstep.models.blocks`, so that a process that runs kernels need not import Amaranth.

A layout has up to three lists of fields: ``i`` (inputs), ``o`` (outputs) and ``c`` (combinational outputs), each in
the signature's order. A field is either a leaf, ``{name, type, width, shape}``, or a group, ``{name, fields, shape}``:
an interface (a stream is ``payload``, ``valid`` and ``ready``, each on the side that drives it), or a struct.
``shape`` holds the dimensions of arrays. Types are the smallest unsigned ones, except that 33 to 63 bits are ``i8``:
compiled code would turn ``uint64 + int64`` into a float.

A component says which outputs depend combinationally on which inputs in its attribute ``combinational``, as in
``{"grant": ("request",)}``; members of interfaces are named by their path, ``"request.ready"``.
"""

from __future__ import annotations

import json
import keyword
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data, stream, wiring

from lockstep.rtl import registry

Field = dict[str, Any]

_CPLUSPLUS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    xor_eq
"""
# Beside the keywords: the clock domain's own signals, members of the classes that Verilator generates, and words that
# it renames.
_REFUSED = frozenset((*_CPLUSPLUS.split(), "clk", "rst", *"eval final name rootp huge near pascal reference".split()))


class PortError(ValueError):
    """A port that cannot be a field of a record; the message names block, port and rule."""


def layout(component: wiring.Component) -> dict[str, list[Field]]:
    """The record layout of a component's ports.

    Raises
    ------
    PortError
        for a port wider than 64 bits, without bits, signed, or a union; a stream without valid or ready; a name that
        C++, Python, Verilator or the padding of records needs for itself; and for a path in ``combinational`` that is
        not a port of the direction expected.
    """
    paths = getattr(component, "combinational", {})
    try:
        _check_combinational(component.signature, paths)
        sides = {side: list(_side(component.signature, side, paths, "")) for side in "ioc"}
    except PortError as error:
        raise PortError(f"{type(component).__name__}.{error}") from None
    return {side: fields for side, fields in sides.items() if fields}


def _side(signature: Any, side: str, paths: Mapping[str, tuple[str, ...]], prefix: str) -> Iterator[Field]:
    """The fields of one side. ``signature`` is seen from the component: that of an ``In`` member comes flipped."""
    for name, member in signature.members.items():
        path = prefix + name
        check_name(path)
        if member.is_port:
            driven = "i" if member.flow is wiring.In else "c" if _is_combinational(path, paths) else "o"
            if driven == side:
                yield _field(path, member.shape, member.dimensions)
        else:
            inner = member.signature
            plain = inner.flip() if isinstance(inner, wiring.FlippedSignature) else inner
            if isinstance(plain, stream.Signature) and (plain.always_valid or plain.always_ready):
                raise PortError(f"{path}: a stream needs both valid and ready")
            fields = list(_side(inner, side, paths, path + "."))
            if fields:
                yield {"name": name, "fields": fields, "shape": list(member.dimensions)}


def _field(path: str, shape: Any, dimensions: tuple[int, ...]) -> Field:
    name = path.rpartition(".")[2]
    structure = _structure(shape)
    if isinstance(structure, data.ArrayLayout):
        return _field(path, structure.elem_shape, (*dimensions, structure.length))
    if isinstance(structure, data.StructLayout):
        for member in structure.members:
            check_name(f"{path}.{member}")
        fields = [_field(f"{path}.{member}", inner, ()) for member, inner in structure.members.items()]
        return {"name": name, "fields": fields, "shape": list(dimensions)}
    if structure is not None:
        raise PortError(f"{path}: a {type(structure).__name__} has no record; use a struct or an array")
    bits = Shape.cast(shape)
    if bits.signed:
        raise PortError(f"{path}: is signed; ports are unsigned")
    if not 1 <= bits.width <= 64:
        raise PortError(f"{path}: has {bits.width} bits; 1 to 64 are allowed")
    return {"name": name, "type": _type(bits.width), "width": bits.width, "shape": list(dimensions)}


def _structure(shape: Any) -> data.Layout | None:
    """The layout behind a shape, if it has one."""
    try:
        return data.Layout.cast(shape)
    except TypeError:
        return None


def _type(width: int) -> str:
    for bits, kind in ((8, "u1"), (16, "u2"), (32, "u4"), (63, "i8")):
        if width <= bits:
            return kind
    return "u8"


def check_name(path: str) -> None:
    """Refuse a name, the last of a path, that another language or tool needs."""
    name = path.rpartition(".")[2]
    if name in _REFUSED or keyword.iskeyword(name) or "__" in name or name.startswith(("_", "pad")):
        raise PortError(f"{path}: the name {name!r} is reserved")


def _is_combinational(path: str, paths: Mapping[str, tuple[str, ...]]) -> bool:
    return any(path == output or path.startswith(output + ".") for output in paths)


def _check_combinational(signature: Any, paths: Mapping[str, tuple[str, ...]]) -> None:
    for output, inputs in paths.items():
        for path, flow in [(output, wiring.Out), *((i, wiring.In) for i in inputs)]:
            if set(_flows(signature, path)) != {flow}:
                raise PortError(f"{path}: 'combinational' names it as {flow.name.lower()}put, which it is not")


def _flows(signature: Any, path: str) -> Iterator[wiring.Flow]:
    """The directions of all ports at or below a path."""
    first, _, rest = path.partition(".")
    for name, member in signature.members.items():
        if first in ("", name):
            if member.is_port:
                yield from [] if rest else [member.flow]
            else:
                yield from _flows(member.signature, rest)


def layouts() -> dict[str, dict[str, list[Field]]]:
    """The layouts of all blocks."""
    return {block: layout(registry.largest(block)) for block in registry.blocks()}


if __name__ == "__main__":
    try:
        json.dump(layouts(), sys.stdout)
    except PortError as problem:
        sys.exit(str(problem))
