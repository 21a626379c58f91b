"""The stages of a kernel, and the passes in them.

Lowering makes a :class:`Draft`: micro-operations over virtual registers and labels, with all variables placed. Passes
then change it in place, stage by stage, and within a stage by name. A pass is a function ``name(draft, **parameters)``
that depends on nothing else; the folder here is the place for those of mechanisms. What each may rely on, and change:

*machine*
    What the GPU's assembler does: its tenant is ``sim/compile/ptx/machine``. As *before allocation*, but what it adds
    belongs to the program.
*before allocation*
    ``draft.code.list`` and ``code.bits`` (width of every virtual register; ``code.register`` makes one). Add, remove
    and reorder with ``code.replace``, which keeps labels right. No path may leave the end of the list.
*allocation*
    One tenant: gives every register its place in ``draft.physical``, 64-bit values an even one, and says in
    ``draft.kernel`` how many ``registers``, ``predicates``, bytes of local memory and ``spilled`` registers there are.
    The default is ``sim/compile/ptx/allocate.py``.
*renumbering*
    ``draft.physical`` and ``draft.kernel.registers``: other places for the same values. ``first_use.py`` is what CTAs
    that share registers need, and ``declaration.py`` what they have without it.
*hints*
    ``Flag.HINT`` in the ``flags`` of micro-operations. ``memory_regions.py`` is what region-p scheduling needs.
*regions*
    ``draft.kernel.tables``: arrays for the model, by name. The index of a micro-operation in the list is its pc. The
    frame knows one of them, ``stream.words``: for every micro-operation, how many metadata words stand in the code up
    to it. They are fetched, and a mechanism must take them (``models/core/fetch.py``).

After the allocation micro-operations may still be added, over registers that have a place; append to ``draft.physical``
for new ones. All that a pass adds behind the stage *machine* has ``Flag.ADDED``, spill code apart, and the PTX line of
the one before it, unless the pass gave it a line. Guards, branch targets, reconvergence points and masks are worked out
after the last stage.
A pass raises :class:`Refused` for a kernel that it cannot have.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

from lockstep.models import cache
from lockstep.models.execution.isa import Flag
from lockstep.sim.compile.ptx.draft import Draft, Refused
from lockstep.sim.compile.ptx.micro import NONE, Micro
from lockstep.sim.errors import UsageError
from lockstep.spec.passes import BEFORE_ALLOCATION, MACHINE, STAGES, Pass

__all__ = ["ordered", "run", "source"]

ALLOCATION = Pass("allocation", "lockstep.sim.compile.ptx.allocate:allocation")


def ordered(passes: Iterable[Pass]) -> list[Pass]:
    """Every pass once, in the order in which they run; with the default allocation unless one takes its place.

    Raises :class:`UsageError` for an unknown stage and for two allocations.
    """
    chosen = set(passes)
    for one in chosen:
        if one.stage not in STAGES:
            raise UsageError(f"pass {one.function}: unknown stage {one.stage!r}; the stages are {', '.join(STAGES)}")
    result = sorted(chosen, key=lambda one: (STAGES.index(one.stage), one.function, repr(one.parameters)))
    tenants = [one.function for one in result if one.stage == ALLOCATION.stage]
    if len(tenants) > 1:
        raise UsageError(f"passes {' and '.join(tenants)} exclude each other: the stage allocation has one tenant")
    return result if tenants else ordered([*result, ALLOCATION])


def source(one: Pass) -> Path:
    """The file of a pass. Raises :class:`UsageError` when it is none of the project's."""
    module = one.function.partition(":")[0]
    found = cache.module_file(module.split("."))
    if found is None:
        raise UsageError(f"pass {one.function}: Lockstep has no module {module}")
    return found


def run(draft: Draft, passes: Iterable[Pass]) -> None:
    """Bring a draft through all stages. Raises :class:`UsageError` and :class:`Refused`."""
    for one in ordered(passes):
        before = set(draft.code.list)
        _function(one)(draft, **dict(one.parameters))
        if one.stage not in (MACHINE, ALLOCATION.stage):
            _mark(draft.code.list, before)
        if one.stage not in (MACHINE, BEFORE_ALLOCATION):
            _check(draft, one)


def _function(one: Pass) -> Callable[..., None]:
    module, _, name = one.function.partition(":")
    source(one)
    function = getattr(importlib.import_module(module), name, None)
    if not callable(function):
        raise UsageError(f"pass {one.function}: {module} has no function {name!r}")
    return function


def _mark(micros: list[Micro], before: set[Micro]) -> None:
    line = next((micro.line for micro in micros if micro.line), 0)
    for micro in micros:
        if micro not in before:
            micro.flags |= Flag.ADDED
            micro.line = micro.line or line
        line = micro.line


def _check(draft: Draft, one: Pass) -> None:
    """Every register that is named must have a place that the kernel counts."""
    kernel, code = draft.kernel, draft.code
    for register in {*chain.from_iterable((*m.registers_read(), *m.registers_written()) for m in code.list)}:
        place = draft.physical[register] if register < len(draft.physical) else NONE
        bits = code.bits[register]
        words, count = (1, kernel.predicates) if bits == 1 else (max(bits // 32, 1), kernel.registers)
        if place == NONE or place + words > count or place % words:
            raise Refused(f"has a register of {bits} bits at place {place} of {count} after the pass {one.function}")
