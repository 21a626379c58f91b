"""Copies and dead code: PTX has a register of its own for each step, such as the conversion of an address."""

from __future__ import annotations

from lockstep.models.execution.isa import Group, Memory, Space, Special, Warp
from lockstep.sim.compile.ptx.machine.values import WHOLE, Values, is_copy
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro

_PURE = {Group.INT, Group.LONG, Group.FLOAT, Group.DOUBLE, Group.PACKED, Group.CONVERT, Group.PREDICATE}
CLOCKS = {Special.CLOCK, Special.CLOCK_HI, Special.CLOCK64, Special.GLOBALTIMER, Special.GLOBALTIMER_HI}


def propagate(code: Code) -> None:
    """Name a copy's source where the copy is used; :func:`sweep` removes the copy.

    Both must have one definition that dominates their uses: else the source may change while the copy is alive.
    """
    values = Values(code)
    names: dict[int, int] = {}
    for micro in code.list:
        target = micro.dst
        if target == NONE or not is_copy(micro, code.bits[target]):
            continue
        source = micro.sources[0].register
        whole = source != NONE and code.bits[source] == code.bits[target]
        if whole and micro.sources[0].fetch == WHOLE[code.bits[target]]:
            if values.is_single(target) and values.is_single(source):
                names[target] = names.get(source, source)
    for target in names:  # a chain may be named from its end
        while names[target] in names:
            names[target] = names[names[target]]
    for micro in code.list:
        micro.name_read(names)


def sweep(code: Code) -> None:
    """Remove what computes values that nobody reads."""
    while True:
        read = {register for micro in code.list for register in micro.registers_read()}
        dead = [is_pure(micro) and read.isdisjoint(micro.registers_written()) for micro in code.list]
        if not any(dead):
            return
        code.replace([[] if gone else [micro] for micro, gone in zip(code.list, dead, strict=True)])


def is_pure(micro: Micro) -> bool:
    """Whether it does nothing but write registers."""
    if micro.group == Group.WARP:
        return micro.op == Warp.SPECIAL and micro.sub not in CLOCKS
    if micro.group == Group.MEMORY:
        return micro.op == Memory.LOAD and micro.space == Space.PARAM and not micro.sources
    return micro.group in _PURE
