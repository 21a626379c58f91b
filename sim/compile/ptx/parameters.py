"""``.param`` variables of call sequences.

They are not memory: where all accesses of one agree on offsets and sizes, each piece becomes a virtual register, and
stores and loads become moves. Otherwise, or when its address is taken, the variable lies in the thread's local memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lockstep.models.execution.isa import Category, Fetch, Flag, Group, Memory, Space
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro, Source, Storage, move


@dataclass(slots=True, eq=False)
class ParameterStorage(Storage):
    """A ``.param`` variable of a call sequence, with all that happens to it."""

    align: int = 4
    address_taken: bool = False
    accesses: list[ParameterAccess] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class ParameterAccess(Micro):
    """``ld.param`` or ``st.param`` of such a variable: a memory operation until :func:`place_parameters` decides."""

    values: tuple[Source, ...] = ()  # what is stored, one per element
    widths: tuple[int, ...] = ()  # bits of the registers on the other side


def load_parameter(storage: ParameterStorage, offset: int, size: int, targets: Sequence[tuple[int, int]], flags: int):
    """An ``ld.param`` into ``targets``, pairs of a register and its bits."""
    access = ParameterAccess(
        Group.MEMORY, Memory.LOAD, Category.LOCAL, space=Space.LOCAL, bytes=size, vec=len(targets), flags=flags,
        data=max(bits for _, bits in targets) // 8, results={i: r for i, (r, _) in enumerate(targets)},
        offset=offset, storage=storage, widths=tuple(bits for _, bits in targets),
    )  # fmt: skip
    storage.accesses.append(access)
    return access


def store_parameter(storage: ParameterStorage, offset: int, size: int, values: Sequence[tuple[Source, int]]):
    """An ``st.param`` of ``values``, pairs of a source and its bits."""
    access = ParameterAccess(
        Group.MEMORY, Memory.STORE, Category.LOCAL, space=Space.LOCAL, bytes=size, vec=len(values),
        data=max(bits for _, bits in values) // 8, offset=offset, storage=storage,
        values=tuple(value for value, _ in values), widths=tuple(bits for _, bits in values),
    )  # fmt: skip
    storage.accesses.append(access)
    return access


def place_parameters(code: Code, storages: Sequence[ParameterStorage], local_bytes: int) -> int:
    """Turn parameter accesses into moves, or into accesses to local memory above ``local_bytes``. Returns its size."""
    pieces: dict[ParameterStorage, dict[int, int] | None] = {}
    for storage in storages:
        pieces[storage] = None if storage.address_taken else _pieces(storage, code)
        if pieces[storage] is None:
            local_bytes = -(-local_bytes // storage.align) * storage.align
            storage.offset = local_bytes
            local_bytes += storage.bytes
    expansions = []
    for micro in code.list:
        if isinstance(micro, ParameterAccess):
            assert isinstance(micro.storage, ParameterStorage)
            registers = pieces[micro.storage]
            expansion = _access_memory(micro, code) if registers is None else _access_registers(micro, registers)
            for part in expansion:
                part.line, part.guard, part.guard_not = micro.line, micro.guard, micro.guard_not
            expansions.append(expansion)
        else:
            expansions.append([micro])
    code.replace(expansions)
    return local_bytes


def _pieces(storage: ParameterStorage, code: Code) -> dict[int, int] | None:
    """A register for every offset, or None when accesses overlap in part or stores differ in size from the whole."""
    sizes: dict[int, int] = {}
    for access in storage.accesses:
        for element in range(access.vec):
            offset = access.offset + element * access.bytes
            sizes[offset] = max(sizes.get(offset, 0), access.bytes)
    end = 0
    for offset, size in sorted(sizes.items()):
        if offset < end:
            return None
        end = offset + size
    for access in storage.accesses:
        for element in range(access.vec):
            if access.op == Memory.STORE and access.bytes != sizes[access.offset + element * access.bytes]:
                return None
    return {offset: code.register(64 if size == 8 else 32) for offset, size in sizes.items()}


UNSIGNED = {1: Fetch.U8, 2: Fetch.U16, 4: Fetch.WORD, 8: Fetch.PAIR}
_SIGNED = UNSIGNED | {1: Fetch.S8, 2: Fetch.S16}
_UNSIGNED_LONG = {1: Fetch.U8_LONG, 2: Fetch.U16_LONG, 4: Fetch.U32, 8: Fetch.PAIR}
_SIGNED_LONG = {1: Fetch.S8_LONG, 2: Fetch.S16_LONG, 4: Fetch.S32, 8: Fetch.PAIR}


def _access_registers(access: ParameterAccess, registers: dict[int, int]) -> list[Micro]:
    moves = []
    for element in range(access.vec):
        register = registers[access.offset + element * access.bytes]
        if access.op == Memory.STORE:
            source = access.values[element]
            if source.register != NONE:
                source = source._replace(fetch=UNSIGNED[access.bytes])
            moves.append(move(64 if access.bytes == 8 else 32, register, source))
        elif access.results[element] != NONE:
            bits = access.widths[element]
            signed = bool(access.flags & Flag.SIGNED)
            fetches = (_SIGNED_LONG if signed else _UNSIGNED_LONG) if bits == 64 else (_SIGNED if signed else UNSIGNED)
            moves.append(move(bits, access.results[element], Source(fetches[access.bytes], register)))
    return moves


def _access_memory(access: ParameterAccess, code: Code) -> list[Micro]:
    operands, moves = {}, []
    for element, (value, bits) in enumerate(zip(access.values, access.widths, strict=False)):
        if value.register == NONE:
            operands[element] = code.register(bits)
            moves.append(move(bits, operands[element], value))
        else:
            operands[element] = value.register
    return [
        *moves,
        Micro(
            access.group, access.op, access.category, space=access.space, bytes=access.bytes, vec=access.vec,
            data=access.data, flags=access.flags, offset=access.offset, storage=access.storage, results=access.results,
            operands=operands,
        ),
    ]  # fmt: skip
