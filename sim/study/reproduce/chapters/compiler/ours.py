"""What our compiler makes of a kernel's PTX, for a GPU with its mechanisms, in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Any

from lockstep.models.execution.isa import Category, Float, Group, Int, Long, Memory
from lockstep.sim import kernels
from lockstep.sim.compile.ptx import program
from lockstep.sim.compile.ptx.allocate import Liveness, liveness, words
from lockstep.sim.compile.ptx.build import drafts
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.device import description
from lockstep.sim.study.job import Result
from lockstep.spec import registry

MOVES = ((Group.INT, Int.MOV), (Group.LONG, Long.MOV))
SPECIAL = (Category.SPECIAL, Category.SPECIAL_DOUBLE)
ROOTS = (Float.RCP, Float.SQRT)
MEMORY = (Group.MEMORY, Group.ATOMIC, Group.TEXTURE)


@dataclass(frozen=True)
class Compilation:
    """The PTX of a kernel, compiled for a GPU: its registers per thread are the limit, its mechanisms bring passes."""

    kernel: str
    gpu: str
    mechanisms: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def run(self) -> Result:
        """What was asked for, and ``functions``: the figures of each, by name."""
        gpu = description.load(self.gpu, self.settings, self.mechanisms)
        path = kernels.find(self.kernel).ptx
        module = _parsed(program.read(path), str(path))
        made, _ = drafts(module, gpu.core.registers_per_thread, registry.passes(gpu))
        return asdict(self) | {"functions": {name: figures(draft) for name, draft in made.items()}}


_parsed = lru_cache(maxsize=1)(parse)  # one kernel after the other, each for every compiler


def figures(draft: Draft) -> dict[str, int]:
    """Counts of micro-operations, and registers of 32 bits per thread.

    ``live``: the most that have values at a time; ``live_without_parameters``: if parameters took none;
    ``live_in_words``: if, moreover, values of 64 bits took one; ``in_flight``: the most that wait for loads, with the
    micro-operations in their order in the code.
    """
    code, live = draft.code, liveness(draft.code)
    parameters = _parameters(code)
    kinds = Counter(map(_kind, code.list))
    sizes = [words(bits) for bits in code.bits]
    return {
        "registers": draft.kernel.registers,
        "spill_bytes": 4 * draft.kernel.spilled,
        "live": _most(live, sizes),
        "live_without_parameters": _most(live, sizes, parameters),
        "live_in_words": _most(live, [min(size, 1) for size in sizes], parameters),
        "in_flight": _in_flight(code),
        "instructions": len(code.list),
        "constant_operands": sum(any(source.constant for source in micro.sources) for micro in code.list),
        "parameter_loads": sum(micro.category == Category.PARAM for micro in code.list),
        **{kind: kinds[kind] for kind in ("moves", "constants", "memory", "special", "control", "arithmetic")},
    }


def _kind(micro: Micro) -> str:
    if (micro.group, micro.op) in MOVES:
        return "moves"
    if micro.category in (Category.PARAM, Category.CONST):
        return "constants"
    if micro.group in MEMORY:
        return "memory"
    if micro.category in SPECIAL or (micro.group == Group.FLOAT and micro.op in ROOTS):
        return "special"
    return "control" if micro.group == Group.CONTROL else "arithmetic"


def _parameters(code: Code) -> set[int]:
    """The registers that have nothing but a parameter, as it was loaded or moved."""
    writers: dict[int, list[Micro]] = {}
    for micro in code.list:
        for register in micro.registers_written():
            writers.setdefault(register, []).append(micro)
    found: set[int] = set()
    while fresh := {
        register
        for register, micros in writers.items()
        if register not in found and all(_takes_parameter(micro, found) for micro in micros)
    }:
        found |= fresh
    return found


def _takes_parameter(micro: Micro, parameters: Collection[int]) -> bool:
    moved = (micro.group, micro.op) in MOVES and all(source.register in parameters for source in micro.sources)
    return moved or micro.category == Category.PARAM


def _most(live: Liveness, sizes: Sequence[int], without: Collection[int] = ()) -> int:
    change: Counter[int] = Counter()
    for register, ranges in enumerate(live.ranges):
        if register not in without:
            for first, last in ranges:
                change[first] += sizes[register]
                change[last + 1] -= sizes[register]
    return max(accumulate(change[point] for point in sorted(change)), default=0)


def _in_flight(code: Code) -> int:
    waiting: set[int] = set()
    most = 0
    for micro in code.list:
        waiting.difference_update(micro.registers_read(), micro.registers_written())
        if micro.group == Group.MEMORY and micro.op == Memory.LOAD and micro.category != Category.PARAM:
            waiting.update(register for register in micro.results.values() if register != NONE)
        most = max(most, sum(words(code.bits[register]) for register in waiting))
    return most
