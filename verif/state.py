"""The state in exported Verilog, by the names that a simulator knows it by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ASSIGNED = re.compile(r"^\s+(?:if \(\S+\) )?(\w+)(?:\[[\d:]+\])? <= ", re.MULTILINE)
_MEMORY = re.compile(r"^  reg (?:\[\d+:0\] )?(\w+) \[(\d+):0\];$", re.MULTILINE)
_WIRE = re.compile(r"^  wire (?:\[\d+:0\] )?(\w+);$")
_PART = re.compile(r"^  (\w+) (\w+) \($", re.MULTILINE)


@dataclass(frozen=True)
class State:
    """A register, or a memory of so many ``words``, inside ``module``; ``path``: its parts' names below the top."""

    path: str
    module: str
    words: int = 0

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


def modules(verilog: str) -> dict[str, str]:
    """The text of each module, by its name."""
    return {text.split("(", 1)[0]: text for text in re.split(r"^module ", verilog, flags=re.MULTILINE)[1:]}


def registers(module: str) -> set[str]:
    """The signals of a module that clocked processes assign."""
    return set(_ASSIGNED.findall(module)) - set(memories(module))


def memories(module: str) -> dict[str, int]:
    """The words of each memory of a module."""
    return {name: int(last) + 1 for name, last in _MEMORY.findall(module)}


def wires(verilog: str) -> Iterator[tuple[int, str, str]]:
    """The declarations of wires, ports among them: line, module and name."""
    module = ""
    for line, text in enumerate(verilog.split("\n"), 1):
        if found := re.match(r"module (\w+)", text):
            module = found[1]
        elif found := _WIRE.match(text):
            yield line, module, found[1]


def state(verilog: str, top: str) -> list[State]:
    """All registers and memories of a module and what is inside it, outputs that are registers among them."""
    texts = modules(verilog)

    def inside(module: str, prefix: str) -> Iterator[State]:
        for name in sorted(registers(texts[module])):
            yield State(prefix + name, module)
        for name, words in memories(texts[module]).items():
            yield State(prefix + name, module, words)
        for part, name in _PART.findall(texts[module]):
            yield from inside(part, f"{prefix}{name}.")

    return list(inside(top, ""))
