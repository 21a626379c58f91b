"""Makes Verilog tell which transitions registers make that have the values of an enumeration.

A transition is from a value before a clock edge to another one after it; what a reset does is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lockstep.verif.state import registers

_ENUMERATION = re.compile(r"((?:  attribute \\enum_value_[01]+ \"\w+\"\n)+)  wire width \d+ \\(\w+)\n")
_MEMBER = re.compile(r"enum_value_([01]+) \"(\w+)\"")
LINE = re.compile(r"  always @\(posedge clk\) if \(.+\) cover \(1\); // (\w+ \w+->\w+)")
"""A line that tells of a transition, and its name."""
BEFORE = re.compile(r"  (?:reg \[\d+:0\]|always @\(posedge clk\)) \w+_was .*")
"""A line about the value before."""


def told(verilog: str, rtlil: str) -> str:
    """``verilog`` with a line (:data:`LINE`) for each transition; ``rtlil``, the same modules, has the enumerations."""
    enumerations = dict(_enumerations(rtlil))
    return "\nendmodule".join(_told(module, enumerations) for module in verilog.split("\nendmodule"))


def _told(text: str, enumerations: Mapping[str, Mapping[str, Mapping[str, str]]]) -> str:
    *_, module = text.rpartition("\nmodule ") if "\nmodule " in text else ("", "", text.removeprefix("module "))
    found = enumerations.get(module.partition("(")[0].strip(), {})
    own = registers(module)
    goes_on = "!rst" if re.search(r"\brst\b", module) else "1'h1"
    lines = [
        line for register, members in found.items() if register in own for line in _lines(register, members, goes_on)
    ]
    return "\n".join([text, *lines])


def _lines(register: str, members: Mapping[str, str], goes_on: str) -> Iterator[str]:
    """``members``: names by their values in binary. ``goes_on``: the cycle does not end with a reset."""
    width = len(next(iter(members)))
    yield f"  reg [{width}:0] {register}_was = 0; // and whether there was one"
    yield f"  always @(posedge clk) {register}_was <= {{{goes_on}, {register}}};"
    for old, name in members.items():
        for new, then in members.items():
            if new != old:
                condition = f"{register}_was == {width + 1}'b1{old} && {register} == {width}'b{new}"
                yield f"  always @(posedge clk) if ({condition}) cover (1); // {register} {name}->{then}"


def _enumerations(rtlil: str) -> Iterator[tuple[str, dict[str, dict[str, str]]]]:
    """Of each module, the members of its signals' enumerations."""
    for module in rtlil.split("\nmodule \\")[1:]:
        found = {signal: dict(_MEMBER.findall(members)) for members, signal in _ENUMERATION.findall(module)}
        yield module.split("\n", 1)[0], found
