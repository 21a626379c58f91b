"""Addresses of 32 bits: of a value that is only used as an address, the upper half is dropped.

Device addresses have 32 bits. PTX for 64-bit addresses computes with pairs of registers all the same. The upper half of
a value is *seen* if anything depends on it but addresses, and sums, products, left shifts and bitwise operations whose
own upper half is not seen: their lower halves come from lower halves alone. Where it is seen, the value stays a pair.
"""

from __future__ import annotations

from lockstep.models.execution.isa import Fetch, Group, Int, Long, Memory, Predicate, Space, Write
from lockstep.sim.compile.ptx.machine.values import Values
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro, Source

_LOWER = {
    Long.MOV, Long.ADD, Long.SUB, Long.MUL, Long.MAD, Long.NEG, Long.AND, Long.OR, Long.XOR, Long.NOT, Long.SHL
}  # fmt: skip
"""Operations whose lower half comes from the lower halves of their sources."""

_NARROW = {
    Fetch.PAIR: Fetch.WORD, Fetch.S32: Fetch.WORD, Fetch.U32: Fetch.WORD, Fetch.S16_LONG: Fetch.S16,
    Fetch.U16_LONG: Fetch.U16, Fetch.S8_LONG: Fetch.S8, Fetch.U8_LONG: Fetch.U8,
}  # fmt: skip
"""How the lower half of a source that is fetched as 64 bits is fetched."""


def narrow(code: Code) -> None:
    """Make 32-bit registers of those whose upper halves nobody sees."""
    seen = _seen(code)
    values = Values(code)
    narrowed = {
        register
        for register, bits in enumerate(code.bits)
        if bits == 64 and register not in seen and values.definitions[register]
        if all(_halves(code.list[index], register) for index in values.definitions[register])
    }
    for micro in code.list:
        if micro.dst in narrowed:
            _halve(micro)
        elif not narrowed.isdisjoint(micro.results.values()):  # a parameter
            micro.bytes, micro.data = min(micro.bytes, 4), 4
        micro.sources = tuple(
            one._replace(fetch=Fetch.U32) if one.register in narrowed and one.fetch == Fetch.PAIR else one
            for one in micro.sources
        )
    for register in narrowed:
        code.bits[register] = 32


def _seen(code: Code) -> set[int]:
    """The 64-bit registers whose upper halves something depends on."""
    seen: set[int] = set()
    through: list[tuple[int, list[int]]] = []  # a result, and what its upper half depends on
    for micro in code.list:
        pairs = [one.register for one in micro.sources if one.fetch == Fetch.PAIR and one.register != NONE]
        if _is_lower(micro) and micro.dst != NONE:
            through.append((micro.dst, pairs))
        elif not _is_address(micro):
            seen.update(pairs)
        seen.update(micro.operands.values())
    while True:
        found = {pair for result, pairs in through if result in seen for pair in pairs} - seen
        if not found:
            return seen
        seen |= found


def _is_address(micro: Micro) -> bool:
    """Whether its sources are an address, and nothing else."""
    if micro.group == Group.PREDICATE:
        return micro.op == Predicate.ISSPACE
    return micro.group in (Group.MEMORY, Group.ATOMIC)


def _is_lower(micro: Micro) -> bool:
    """Whether the lower half of its result comes from the lower halves of its sources."""
    if micro.group == Group.PREDICATE:
        return micro.op == Predicate.SELP64
    if micro.group != Group.LONG or micro.write != Write.PAIR:
        return False
    return micro.op == Long.PACK or (micro.op in _LOWER and micro.pdst == micro.psrc == NONE)


def _halves(micro: Micro, register: int) -> bool:
    """Whether a definition of a register can make its lower half alone."""
    if micro.dst == register:
        return _is_lower(micro)
    parameter = micro.group == Group.MEMORY and micro.op == Memory.LOAD and micro.space == Space.PARAM
    return parameter and not micro.sources and micro.vec == 1


def _halve(micro: Micro) -> None:
    """Compute the lower half of the result."""
    sources = tuple(_lower(one) for one in micro.sources)
    if micro.group == Group.PREDICATE:
        micro.op = Predicate.SELP
    else:
        micro.op = Int.MOV if micro.op == Long.PACK else Int[Long(micro.op).name]
        micro.group = Group.INT
        sources = sources[:1] if micro.op == Int.MOV else sources
    micro.sources, micro.write = sources, Write.WORD


def _lower(source: Source) -> Source:
    """The lower half of a source."""
    if source.register != NONE:
        return source._replace(fetch=_NARROW[source.fetch])
    bits = source.bits if source.storage is not None else source.bits & 0xFFFF_FFFF
    return source._replace(fetch=Fetch.WORD, bits=bits)
