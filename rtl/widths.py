"""Makes the widths of RTLIL's operators agree, as lint tools want to see them in Verilog.

RTLIL's cells extend or cut their operands silently; Verilog does the same, and Verilator warns of it. Here every
operand is extended or cut in sight, and a comparison that its operands' ranges decide becomes a constant. The text is
RTLIL as Amaranth writes it: one item a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Bits = list[str]
"""Lowest first; a constant bit is ``0`` or ``1``, another one ``\\name [index]``."""

_TOKEN = re.compile(r"\d+'[01]+|\[\d+(?::\d+)?\]|[\\$]\S+|[{}]")
_WIRE = re.compile(r"  wire width (\d+) .*?(\S+)$")
_CELL = re.compile(r"  cell \$(\w+) \S+$")
_ITEM = re.compile(r"    (parameter|connect) \\(\w+) (.*)$")

ARITHMETIC = frozenset({"add", "sub", "mul", "and", "or", "xor", "not", "neg", "shl"})  # low bits from low bits
RIGHT_SHIFTS = frozenset({"shr", "sshr", "shift", "shiftx"})
DIVISIONS = frozenset({"divfloor", "modfloor", "div", "mod"})
COMPARISONS: dict[str, Callable[[range, range], bool | None]] = {
    "lt": lambda a, b: _decided(a[-1] < b[0], a[0] >= b[-1]),
    "le": lambda a, b: _decided(a[-1] <= b[0], a[0] > b[-1]),
    "gt": lambda a, b: _decided(a[0] > b[-1], a[-1] <= b[0]),
    "ge": lambda a, b: _decided(a[0] >= b[-1], a[-1] < b[0]),
    "eq": lambda a, b: _decided(False, a[-1] < b[0] or a[0] > b[-1]),
    "ne": lambda a, b: _decided(a[-1] < b[0] or a[0] > b[-1], False),
}


def _decided(true: bool, false: bool) -> bool | None:
    return True if true else False if false else None


def explicit(text: str) -> str:
    """RTLIL that does the same, whose operators have operands of one width."""
    wires: dict[str, int] = {}
    lines = iter(text.split("\n"))
    result: list[str] = []
    for line in lines:
        if line.startswith("module "):
            wires = {}
        elif wire := _WIRE.match(line):
            wires[wire[2]] = int(wire[1])
        elif cell := _CELL.match(line):
            body = [line, *_until_end(lines)]
            kind = cell[1]
            if kind in ARITHMETIC | RIGHT_SHIFTS | DIVISIONS or kind in COMPARISONS:
                body = list(_operator(kind, body, wires, len(result)))
            result += body
            continue
        result.append(line)
    return "\n".join(result)


def _until_end(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if line == "  end":
            return


def _operator(kind: str, body: list[str], wires: dict[str, int], unique: int) -> Iterator[str]:
    """The lines of a cell, and of what else it needs."""
    items = {found[2]: found[3] for line in body if (found := _ITEM.match(line))}
    output = items["Y"]
    width = len(_bits(output, wires))
    operands = {port: _bits(items[port], wires) for port in "AB" if port in items}
    signed = {port: items[f"{port}_SIGNED"] == "1" for port in operands}
    shift = kind in RIGHT_SHIFTS or kind == "shl"
    if (shift and signed["B"]) or (kind in DIVISIONS and any(signed.values())):
        yield from body
        return
    extended = ("A",) if shift else tuple(operands)
    if kind in ARITHMETIC:
        common = width
    elif kind in RIGHT_SHIFTS:
        common = max(width, len(operands["A"]))
    elif kind in DIVISIONS:
        common = max(width, *map(len, operands.values()))
    else:
        common = max(map(len, operands.values()))
        known = None if any(signed.values()) else COMPARISONS[kind](*map(_range, operands.values()))
        if known is not None:
            yield f"  connect {output} {width}'{int(known):0{width}b}"
            return
    for port in extended:
        operands[port] = _fit(operands[port], common, signed[port])
    if kind in RIGHT_SHIFTS | DIVISIONS and common > width:
        wide = f"$wide${unique}"
        wires[wide] = common
        yield f"  wire width {common} {wide}"
        yield f"  connect {output} {wide} [{width - 1}:0]"
        output, width = wide, common
    yield body[0]
    for port, bits in operands.items():
        yield f"    parameter \\{port}_SIGNED {int(signed[port] and (kind == 'sshr' or kind in COMPARISONS))}"
        yield f"    parameter \\{port}_WIDTH {len(bits)}"
        yield f"    connect \\{port} {_text(bits)}"
    yield f"    parameter \\Y_WIDTH {width}"
    yield f"    connect \\Y {output}"
    yield "  end"


def _bits(text: str, wires: dict[str, int]) -> Bits:
    """The bits of a signal specification."""
    parts: list[Bits] = []
    for token in _TOKEN.findall(text):
        if token[0] == "[":
            high, _, low = token[1:-1].partition(":")
            parts[-1] = parts[-1][int(low or high) : int(high) + 1]
        elif token[0].isdigit():
            width, _, digits = token.partition("'")
            parts.append(list(digits.zfill(int(width))[::-1]))
        elif token not in "{}":
            parts.append([f"{token} [{index}]" for index in range(wires[token])])
    return [bit for part in reversed(parts) for bit in part]


def _text(bits: Bits) -> str:
    """A signal specification of these bits: runs of a wire's bits, and of constants, in one piece."""
    pieces: list[tuple[str, int, int]] = []  # wire, lowest and highest bit; or digits, 0, 0
    for bit in bits:
        name, _, index = bit.partition(" ")
        if not index:
            if pieces and pieces[-1][0][0] in "01":
                pieces[-1] = (name + pieces[-1][0], 0, 0)
            else:
                pieces.append((name, 0, 0))
            continue
        number = int(index[1:-1])
        if pieces and pieces[-1][0] == name and pieces[-1][2] == number - 1:
            pieces[-1] = (name, pieces[-1][1], number)
        else:
            pieces.append((name, number, number))
    texts = [
        f"{len(name)}'{name}" if name[0] in "01" else f"{name} [{high}:{low}]" if high != low else f"{name} [{low}]"
        for name, low, high in reversed(pieces)
    ]
    return texts[0] if len(texts) == 1 else f"{{ {' '.join(texts)} }}"


def _fit(bits: Bits, width: int, signed: bool) -> Bits:
    return bits[:width] + [bits[-1] if signed else "0"] * (width - len(bits))


def _range(bits: Bits) -> range:
    """From the smallest to the largest value that unsigned bits can have."""
    low = sum(1 << i for i, bit in enumerate(bits) if bit == "1")
    high = sum(1 << i for i, bit in enumerate(bits) if bit != "0")
    return range(low, high + 1)
