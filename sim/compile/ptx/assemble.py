"""From micro-operations with their registers placed to records: pcs, masks, reconvergence points, relocations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from lockstep.models.execution import isa
from lockstep.models.execution.isa import PARAM_WINDOW, PT, RZ, Control, Fetch, Flag, Group, Kind, Space
from lockstep.sim.compile.ptx.cfg import reconvergence
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.kernel import Constant, Kernel, Relocation
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro, Storage

_PLAIN = ("group", "op", "category", "guard_not", "sub", "flags", "line", "write", "rnd", "psrc_not", "psrc2_not")
_MEMORY = ("space", "bytes", "vec", "data")
_PREDICATES = ("guard", "pdst", "pdst2", "psrc", "psrc2")


def assemble(draft: Draft) -> Kernel:
    """The kernel of a draft that has been through all stages, with its records, relocations and branch table."""
    code = draft.code
    records = np.zeros(len(code.list), isa.INSTRUCTION)
    places = [*draft.physical, NONE]  # so that places[NONE] is NONE
    for name in (*_PLAIN, *_MEMORY):
        records[name] = [int(getattr(micro, name)) for micro in code.list]
    for name in _PREDICATES:
        records[name] = [_or(places[getattr(micro, name)], PT) for micro in code.list]
    records["dst"] = [_or(places[micro.dst], RZ) for micro in code.list]
    records["reconverge"] = reconvergence(code.successors())
    relocations: list[Relocation] = []
    constants: list[Constant] = []
    table: list[int] = []
    columns: dict[str, list[object]] = {
        name: [] for name in ("need", "pneed", "writes", "pwrites", "kind", "fetch", "src", "v", "read", "reads",
                              "registers", "offset", "imm", "target")
    }  # fmt: skip
    for pc, micro in enumerate(code.list):
        read, written = _read(micro, code, places), _written(micro, code, places)
        whole = _spread((source.register for source in micro.sources), code, places) if draft.whole else []
        columns["need"].append(_mask(read + written + whole))
        columns["writes"].append(_mask(written))
        predicates_read = _bits(places[register] for register in (micro.guard, micro.psrc, micro.psrc2))
        predicates_written = _bits(places[register] for register in (micro.pdst, micro.pdst2))
        columns["pneed"].append(predicates_read | predicates_written)
        columns["pwrites"].append(predicates_written)
        read = list(dict.fromkeys(read))
        columns["reads"].append(len(read))
        columns["registers"].append(len(read) + len(set(written)))
        columns["read"].append(read + [0] * (12 - len(read)))
        _sources(micro, pc, places, columns, relocations)
        v = [RZ] * 8
        for index, register in (*micro.results.items(), *micro.operands.items()):
            v[index] = _or(places[register], RZ)
        columns["v"].append(v)
        operand = _constant(micro, pc)
        if operand:
            constants.append(operand)
            records["flags"][pc] |= Flag.CONSTANT
        columns["offset"].append(_offset(micro, pc, operand, relocations))
        columns["target"].append(_target(micro, code, table))
    for name, values in columns.items():
        records[name] = np.array(values, records.dtype[name].base) if values else 0
    return replace(
        draft.kernel, code=records, relocations=relocations, constants=constants, branch_table=table
    )  # fmt: skip


def _or(place: int, absent: int) -> int:
    return absent if place == NONE else place


def _read(micro: Micro, code: Code, places: list[int]) -> list[int]:
    """The physical registers read. A narrow fetch takes the low half of a pair."""
    result: list[int] = []
    for source in micro.sources:
        if source.register != NONE:
            place = places[source.register]
            result += (place, place + 1) if source.fetch == Fetch.PAIR else (place,)
    return result + _spread(micro.operands.values(), code, places)


def _written(micro: Micro, code: Code, places: list[int]) -> list[int]:
    return _spread((micro.dst, *micro.results.values()), code, places)


def _spread(registers: Iterable[int], code: Code, places: list[int]) -> list[int]:
    result: list[int] = []
    for register in registers:
        if register != NONE:
            place = places[register]
            result += (place, place + 1) if code.bits[register] == 64 else (place,)
    return result


def _mask(registers: list[int]) -> list[int]:
    mask = 0
    for register in registers:
        mask |= 1 << register
    return [mask >> 64 * word & 0xFFFF_FFFF_FFFF_FFFF for word in range(4)]


def _bits(places: Iterable[int]) -> int:
    mask = 0
    for place in places:
        if place != NONE:
            mask |= 1 << place
    return mask


def _sources(micro: Micro, pc: int, places: list[int], columns: dict[str, list], relocations: list[Relocation]) -> None:
    kind, fetch, src, imm = [Kind.NONE] * 4, [Fetch.NONE] * 4, [RZ] * 4, [0] * 4
    imm[3] = micro.imm3
    for index, source in enumerate(micro.sources):
        fetch[index] = source.fetch
        if source.register != NONE:
            kind[index], src[index] = Kind.REGISTER, places[source.register]
        else:
            kind[index] = Kind.IMMEDIATE
            imm[index] = 0 if source.constant else _resolve(source.bits, source.storage, pc, f"imm{index}", relocations)
    columns["kind"].append(kind)
    columns["fetch"].append(fetch)
    columns["src"].append(src)
    columns["imm"].append(imm)


def _constant(micro: Micro, pc: int) -> Constant | None:
    """The operand from the constant bank."""
    for index, source in enumerate(micro.sources):
        if source.constant and source.storage is not None:
            size = 8 if source.fetch == Fetch.PAIR else 4
            symbol = source.storage.name if source.storage.module else None
            return Constant(pc, index, size, symbol, source.storage.offset + source.bits)
    return None


def _offset(micro: Micro, pc: int, operand: Constant | None, relocations: list[Relocation]) -> int:
    if operand is None:
        window = micro.storage.window if micro.storage is not None and micro.space == Space.GENERIC else 0
        return _resolve(micro.offset + window, micro.storage, pc, "offset", relocations)
    if operand.symbol is None:
        return PARAM_WINDOW + operand.offset
    relocations.append(Relocation(pc, "offset", operand.symbol, operand.offset))
    return 0


def _resolve(value: int, storage: Storage | None, pc: int, field: str, relocations: list[Relocation]) -> int:
    if storage is None:
        return value
    if not storage.module:
        return value + storage.offset
    relocations.append(Relocation(pc, field, storage.name, value))
    return 0


def _target(micro: Micro, code: Code, table: list[int]) -> int:
    if not micro.targets:
        return 0
    targets = [code.labels[target] for target in micro.targets]
    if micro.group == Group.CONTROL and micro.op == Control.INDEXED:
        table += targets
        return len(table) - len(targets)
    return targets[0]
