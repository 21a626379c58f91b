"""The facts that synthesis needs of a standard-cell library, besides those that Yosys reads itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CELL = re.compile(r'^\s*cell\s*\(\s*"?([\w$.]+)"?\s*\)', re.MULTILINE)
_AREA = re.compile(r"\barea\s*:\s*([\d.eE+-]+)")
_SEQUENTIAL = re.compile(r"\b(?:ff|latch|ff_bank|latch_bank|statetable)\s*\(")
_PIN = re.compile(r'\bpin\s*\(\s*"?(\w+)"?\s*\)')
_FUNCTION = re.compile(r'\bfunction\s*:\s*"\s*\(*\s*(\w+)\s*\)*\s*"')
_DIRECTION = re.compile(r'\bdirection\s*:\s*"?(\w+)"?')


@dataclass(frozen=True)
class Buffer:
    """A cell that repeats its input."""

    cell: str
    input: str
    output: str
    area: float


@dataclass(frozen=True)
class Library:
    """``text`` as the file has it, ``areas`` by cell, ``sequential`` its flip-flops and latches, ``buffers`` from weak
    to strong.
    """

    text: str
    areas: dict[str, float]
    sequential: frozenset[str]
    buffers: tuple[Buffer, ...]

    @classmethod
    def parse(cls, text: str) -> Library:
        starts = [*_CELL.finditer(text)]
        ends = [*(start.start() for start in starts[1:]), len(text)]
        bodies = {start[1]: text[start.end() : end] for start, end in zip(starts, ends, strict=False)}
        areas = {name: float(area[1]) if (area := _AREA.search(body)) else 0.0 for name, body in bodies.items()}
        sequential = frozenset(name for name, body in bodies.items() if _SEQUENTIAL.search(body))
        buffers = [found for name, body in bodies.items() if name not in sequential and (found := _buffer(name, body))]
        buffers.sort(key=lambda buffer: buffer.area)
        family = [buffer for buffer in buffers if _family(buffer) == _family(buffers[0])]  # no delay cells
        return cls(text, areas, sequential, tuple(family))


def _family(buffer: Buffer) -> str:
    """A cell's name without its strength."""
    return re.sub(r"[\dxX]+$", "", buffer.cell)


def _buffer(name: str, body: str) -> Buffer | None:
    pins = [*_PIN.finditer(body)]
    if len(pins) != 2 or "three_state" in body or re.search(r"dont_use\s*:\s*true", body):
        return None
    ends = [pins[1].start(), len(body)]
    texts = {pin[1]: body[pin.end() : end] for pin, end in zip(pins, ends, strict=True)}
    directions = {pin: found[1] for pin, text in texts.items() if (found := _DIRECTION.search(text))}
    area = _AREA.search(body)
    for pin, text in texts.items():
        function = _FUNCTION.search(text)
        if function and area and directions.get(function[1]) == "input" and directions.get(pin) == "output":
            return Buffer(name, function[1], pin, float(area[1]))
    return None
