"""Predicates in the place of branches over few instructions, which every warp then issues.

NVIDIA's compiler does so up to seven instructions where it takes warps to diverge, and four elsewhere (CUDA C
Programming Guide 4.2, section 5.4.2); here it is seven. A branch stays if the kernel would need more registers without:
a lane that does not write a register keeps its value.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from lockstep.models.execution.isa import Category, Control, Group
from lockstep.sim.compile.ptx.allocate import liveness
from lockstep.sim.compile.ptx.machine.copies import is_pure
from lockstep.sim.compile.ptx.machine.pressure import registers
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro

LONGEST = 7  # instructions

_PREDICABLE = {
    Group.INT, Group.LONG, Group.FLOAT, Group.DOUBLE, Group.PACKED, Group.CONVERT, Group.PREDICATE, Group.MEMORY,
    Group.ATOMIC,
}  # fmt: skip


class Choice(NamedTuple):
    """A branch, the instructions that it skips, and those that only its lanes execute, or none."""

    branch: int
    skipped: range
    taken: range

    @property
    def end(self) -> int:
        return self.taken.stop


def predicate(code: Code) -> None:
    """Replace branches over few instructions."""
    _drop_jumps(code)
    most, start = registers(code), 0
    while (found := _next(code, start)) is not None:
        trial = code.copy()
        _convert(trial, found)
        fits = registers(trial) <= most
        if fits:
            code.take(trial)
        start = found.branch + (not fits)


def _is_branch(micro: Micro) -> bool:
    return micro.group == Group.CONTROL and micro.op == Control.BRANCH


def _drop_jumps(code: Code) -> None:
    """Remove branches to what follows anyway."""
    while True:
        idle = [_is_branch(m) and code.labels[m.targets[0]] == index + 1 for index, m in enumerate(code.list)]
        if not any(idle):
            return
        code.replace([[] if gone else [micro] for micro, gone in zip(code.list, idle, strict=True)])


def _next(code: Code, start: int) -> Choice | None:
    """The first branch from ``start`` on that predicates can replace."""
    arrivals = Counter(code.labels[target] for micro in code.list for target in micro.targets)
    for index in range(start, len(code.list)):
        micro = code.list[index]
        if _is_branch(micro) and micro.guard != NONE:
            target = code.labels[micro.targets[0]]
            choice = Choice(index, range(index + 1, target), range(target, target))
            last = code.list[target - 1]
            if target > index + 2 and _is_branch(last) and last.guard == NONE and arrivals[target] == 1:
                end = code.labels[last.targets[0]]
                choice = Choice(index, range(index + 1, target - 1), range(target, max(target, end)))
                if end <= target:
                    continue
            if _is_short(code, choice, arrivals):
                return choice
    return None


def _is_short(code: Code, choice: Choice, arrivals: Counter[int]) -> bool:
    """Whether a choice is between few instructions that can have a predicate, and that nothing else leads to."""
    places = [*choice.skipped, *choice.taken]
    if not choice.skipped or len(places) > LONGEST:
        return False
    if any(arrivals[place] for place in places if place != choice.taken.start):
        return False
    micros = [code.list[place] for place in places]
    guard = code.list[choice.branch].guard
    return all(_is_predicable(micro) and guard not in micro.registers_written() for micro in micros)


def _is_predicable(micro: Micro) -> bool:
    sequence = micro.category in (Category.DIVIDE, Category.DIVIDE_DOUBLE, Category.DIVIDE_INTEGER)
    return micro.guard == NONE and not sequence and (micro.group in _PREDICABLE or is_pure(micro))


def _convert(code: Code, choice: Choice) -> None:
    """Give predicates to what a branch chooses between, and remove it.

    What only computes values that are not used behind it needs none.
    """
    branch, points = code.list[choice.branch], liveness(code).points
    elsewhere = {register for register, where in enumerate(points) if where >> (choice.end - 1) & 1}
    for places, others, inverse in ((choice.skipped, choice.taken, True), (choice.taken, choice.skipped, False)):
        read = {register for place in others for register in code.list[place].registers_read()}
        for place in places:
            micro = code.list[place]
            if not is_pure(micro) or not (elsewhere | read).isdisjoint(micro.registers_written()):
                micro.guard, micro.guard_not = branch.guard, branch.guard_not != inverse
    gone = {choice.branch, choice.skipped.stop if choice.taken else choice.branch}
    code.replace([[] if index in gone else [micro] for index, micro in enumerate(code.list)])
