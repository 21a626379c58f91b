"""Constants in addresses: what is known of a sum when compiling goes into the offset of the memory instruction.

A register whose every use leads to an address, through sums, products with constants and left shifts alone, need not
have the constant part of its value: what uses it adds that part to its own, and the last one is the memory instruction.
Accesses that differ by a constant then have their base in common. The arithmetic is that of the registers, modulo 2^32
or 2^64, and so is that of an address; it is exact.
"""

from __future__ import annotations

from typing import NamedTuple

from lockstep.models.execution.isa import Category, Fetch, Group, Int, Long, Space, Write
from lockstep.sim.compile.ptx.machine.values import WHOLE, Values
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro, Source, Storage

_OFFSET_BITS = {
    Space.GENERIC: 32, Space.GLOBAL: 32, Space.SHARED: 24, Space.LOCAL: 24, Space.CONST: 16, Space.PARAM: 16,
}  # fmt: skip
"""Signed offsets of loads and stores on Fermi and Maxwell: envytools, envydis/gf100.c and gm107.c, memory fields."""
_ATOMIC_BITS = 20  # as above

_OPERATIONS = "mov", "add", "sub", "mul", "shl", "mad"
_LINEAR: dict[Group, dict[int, str]] = {
    Group.INT: {Int[name.upper()]: name for name in _OPERATIONS},
    Group.LONG: {Long[name.upper()]: name for name in _OPERATIONS},
}


class Part(NamedTuple):
    """The constant part of a value: a number, and the address of a variable or none; ``alone`` if that is all of it.

    The address came into the register ``entry``.
    """

    number: int = 0
    storage: Storage | None = None
    alone: bool = False
    entry: int = NONE


Parts = dict[int, Part]


def absorb(code: Code) -> None:
    """Move the constant parts of addresses into the offsets of memory instructions."""
    values = Values(code)
    found = {
        micro.dst
        for micro in code.list
        if micro.dst != NONE and _operation(micro, code) and values.is_single(micro.dst)
    }
    while True:
        found = _passed_on(code, values, found)
        parts = _parts(code, found)
        refused = {_refused(micro, one, parts) for micro in code.list for one in micro.sources} - {NONE}
        if not refused:
            break
        found -= refused
    for micro in code.list:
        _strip(micro, parts)


def _operation(micro: Micro, code: Code) -> str | None:
    """The operation, if the constant part of its result is that of its sources, or comes from them."""
    name = _LINEAR.get(micro.group, {}).get(micro.op)
    write = {32: Write.WORD, 64: Write.PAIR}.get(code.bits[micro.dst]) if micro.dst != NONE else None
    plain = not micro.sub and micro.guard == micro.pdst == micro.psrc == NONE
    return name if plain and micro.write == write else None


def _passed_on(code: Code, values: Values, registers: set[int]) -> set[int]:
    """Of the registers, those whose uses are addresses, or pass the constant part on to others of them."""
    while True:
        seen = {
            register
            for register in registers
            if not all(_passes_on(code.list[use], register, registers, code) for use in values.uses[register])
        }
        if not seen:
            return registers
        registers = registers - seen


def _passes_on(micro: Micro, register: int, registers: set[int], code: Code) -> bool:
    bits = code.bits[register]
    which = [index for index, one in enumerate(micro.sources) if one.register == register]
    if register in (*micro.operands.values(), micro.guard, micro.psrc, micro.psrc2):
        return False
    if _is_access(micro):
        return micro.sources[0].fetch == {32: Fetch.U32, 64: Fetch.PAIR}[bits]
    if micro.dst not in registers or any(micro.sources[index].fetch != WHOLE[bits] for index in which):
        return False
    name = _operation(micro, code)
    if name in ("mul", "mad"):
        return all(_is_number(micro.sources[1 - index]) for index in which if index < 2)
    return name != "shl" or (which == [0] and _is_number(micro.sources[1]))


def _is_access(micro: Micro) -> bool:
    return micro.group in (Group.MEMORY, Group.ATOMIC)


def _is_number(source: Source) -> bool:
    return source.register == NONE and source.storage is None


def _parts(code: Code, registers: set[int]) -> Parts:
    """The constant part of every register in the set."""
    parts: Parts = {}
    left = [micro for micro in code.list if micro.dst in registers]
    while left:
        waiting = []
        for micro in left:
            if any(one.register in registers and one.register not in parts for one in micro.sources):
                waiting.append(micro)
            else:
                part = _part(micro, parts)
                parts[micro.dst] = part if part.entry != NONE else part._replace(entry=micro.dst)
        left = waiting
    return parts


def _part(micro: Micro, parts: Parts) -> Part:
    """The constant part of a result."""
    name = _LINEAR[micro.group][micro.op]
    known = [_known(one, parts) for one in micro.sources]
    alone = all(one.alone for one in known)
    a = known[0]
    if name == "mov":
        return a
    if name == "shl":
        return Part(a.number << min(known[1].number, 64), alone=alone) if known[1].alone else Part()
    named = next((one for one in known if one.storage is not None), Part())
    if name in ("mul", "mad"):
        number = a.number * known[1].number if a.alone or known[1].alone else 0
        number += known[2].number if name == "mad" else 0
    else:
        number = a.number + (known[1].number if name == "add" else -known[1].number)
    return Part(number, named.storage, alone, named.entry)


def _known(source: Source, parts: Parts) -> Part:
    if source.register == NONE:
        return Part(source.bits, source.storage, alone=True)
    return parts.get(source.register, Part())


def _refused(micro: Micro, source: Source, parts: Parts) -> int:
    """The register that has to keep its constant part, where a micro-operation has no room for that of a source."""
    part = parts.get(source.register)
    if part is None:
        return NONE
    if _is_access(micro):
        space = Space(micro.space)
        bits = _ATOMIC_BITS if micro.group == Group.ATOMIC else _OFFSET_BITS[space]
        if abs(_offset(micro, part)) >= 1 << bits - 1:
            return source.register
        named = space in (Space.SHARED, Space.LOCAL, Space.CONST) and micro.storage is None
        return NONE if part.storage is None or (named and part.storage.space == space) else part.entry
    name = _LINEAR[micro.group][micro.op]
    several = sum(_known(one, parts).storage is not None for one in micro.sources) > 1
    index = micro.sources.index(source)
    added = name in ("mov", "add") or (name, index) in (("sub", 0), ("mad", 2))
    return NONE if part.storage is None or (added and not several) else part.entry


def _offset(access: Micro, part: Part) -> int:
    """The offset with the constant part of the address, as a signed number of the address's width."""
    half = 1 << (63 if access.sources[0].fetch == Fetch.PAIR else 31)
    return (access.offset + part.number + half) % (2 * half) - half


def _strip(micro: Micro, parts: Parts) -> None:
    """Take the constant part from a result, and give that of its address to an access."""
    if _is_access(micro):
        part = parts.get(micro.sources[0].register) if micro.sources else None
        if part is not None:
            micro.offset, micro.storage = _offset(micro, part), micro.storage or part.storage
            micro.sources = () if part.alone else micro.sources
    elif micro.dst in parts:
        _subtract(micro, [_known(one, parts).alone for one in micro.sources])


def _subtract(micro: Micro, alone: list[bool]) -> None:
    """Take the constant part from a result, which the sources no longer have, or are."""
    operations, bits = (Int, 32) if micro.group == Group.INT else (Long, 64)
    name, nothing = _LINEAR[micro.group][micro.op], Source(WHOLE[bits])
    moved = None
    if all(alone):
        moved = nothing
    elif name == "add" and any(alone):
        moved = micro.sources[alone.index(False)]
    elif name == "sub" and alone[1]:
        moved = micro.sources[0]
    elif name == "sub" and alone[0]:
        micro.sources = (nothing, micro.sources[1])
    elif name == "mad" and alone[2]:
        micro.op, micro.sources = operations.MUL, micro.sources[:2]
    elif name == "mad" and alone[0] and alone[1]:
        moved = micro.sources[2]
    if moved is not None:
        micro.op, micro.category, micro.sources = operations.MOV, Category.INTEGER, (moved,)
