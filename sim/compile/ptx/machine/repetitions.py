"""Values that are computed again where they are there already: of equal computations, the first one is used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import fields

from lockstep.models.execution.isa import Group
from lockstep.sim.compile.ptx.machine.copies import is_pure, sweep
from lockstep.sim.compile.ptx.machine.pressure import registers
from lockstep.sim.compile.ptx.machine.values import Values
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro

_SAME = [field.name for field in fields(Micro) if field.name not in ("dst", "line", "sources")]


def merge(code: Code) -> None:
    """Name the first of equal values in the place of the others, and remove those.

    A value of another block is kept for it if the kernel does not need more registers then.
    """
    _merge(code, across=False)
    trial = code.copy()
    _merge(trial, across=True)
    if registers(trial) <= registers(code):
        code.take(trial)


def _merge(code: Code, across: bool) -> None:
    values = Values(code)
    names: dict[int, int] = {}
    made: dict[Hashable, list[int]] = defaultdict(list)
    for index, micro in enumerate(code.list):
        micro.name_read(names)
        if not _is_function(micro) or not all(map(values.is_single, (*micro.registers_read(), micro.dst))):
            continue
        block, key = values.graph.block_of[index], _key(micro, code)
        near = (each for each in made[key] if across or values.graph.block_of[each] == block)
        first = next((each for each in near if values.dominates(each, index)), None)
        if first is None:
            made[key].append(index)
        else:
            names[micro.dst] = code.list[first].dst
    for micro in code.list:
        micro.name_read(names)
    sweep(code)


def _is_function(micro: Micro) -> bool:
    """Whether it does nothing but compute one register from others."""
    alone = micro.guard == NONE and micro.registers_written() == [micro.dst]
    return alone and is_pure(micro) and micro.group != Group.MEMORY


def _key(micro: Micro, code: Code) -> Hashable:
    same = (repr(getattr(micro, name)) for name in _SAME)
    sources = ((one.fetch, one.register, one.bits, id(one.storage), one.constant) for one in micro.sources)
    return (code.bits[micro.dst], *same, *sources)
