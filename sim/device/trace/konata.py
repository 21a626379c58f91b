"""A trace as a log for Konata (the format Kanata 0004, which its documentation describes): a row per warp instruction.

Stages, in lane 0: ``F`` it is fetched, or has to be; ``D`` it waits in its warp's buffer behind others; ``W`` it is its
warp's next one; ``I`` it has issued and waits for its operands and its pipeline; ``X`` it is executed, ``M`` it
accesses memory; ``Wb`` its results are written. Lane 1 says why it waits, by the names of ``spec/causes.py``. Arrows
come from the instructions whose results it waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

from lockstep.models.execution.isa import Group

if TYPE_CHECKING:
    from lockstep.sim.device.trace.recording import Code, Instruction, Launch

__all__ = ["stages", "text"]

MEMORY = (Group.MEMORY, Group.ATOMIC, Group.TEXTURE)
END, RETIRE, BEGIN, START, NEEDS = range(5)  # the order of the commands of a cycle

Command = tuple[int, int, int, str]
"""Cycle, order in it, number of the instruction in the file, text."""


def text(launches: Sequence[Launch]) -> str:
    """The log."""
    commands: list[Command] = []
    number = 0
    for launch in launches:
        rows = sorted((stages(launch, one)[0][0], k, one) for k, one in enumerate(launch.instructions))
        numbers = {id(one): number + k for k, (_, _, one) in enumerate(rows)}
        labels = {code: _labels(code) for code in launch.codes}
        for *_, one in rows:
            commands += _of(launch, one, numbers, labels[one.warp.code][one.pc])
        number += len(rows)
    commands.sort(key=itemgetter(0, 1, 2))
    now = commands[0][0] if commands else 0
    lines, retired = ["Kanata\t0004", f"C=\t{now}"], 0
    for cycle, group in groupby(commands, key=itemgetter(0)):
        if cycle > now:
            lines.append(f"C\t{cycle - now}")
        now = cycle
        for _, order, number, command in group:
            if order == RETIRE:
                command = f"R\t{number}\t{retired}\t0"
                retired += 1
            lines.append(command)
    return "\n".join(lines) + "\n"


def stages(launch: Launch, one: Instruction) -> list[tuple[int, int, str]]:
    """The stages of an instruction: begin, end, name. None is empty, and each begins where the one before it ends."""
    start, group = one.start if one.start >= 0 else one.done, one.warp.code.instructions["group"][one.pc]
    marks = [(one.next, "W"), (one.issue, "I"), (start, "M" if group in MEMORY else "X")]
    if one.fetched >= 0:
        fetch = min(one.next, max(one.fetched - launch.gpu.core.fetch_latency, launch.first))
        marks[0] = max(one.next, one.fetched), "W"
        marks = [(fetch, "F"), (one.fetched, "D"), *marks]
    marks += [(one.done, "Wb"), (one.done + 1, "")] if one.written else [(one.done, "")]
    return [(begin, end, name) for (begin, name), (end, _) in pairwise(marks) if begin < end]


def _labels(code: Code) -> list[tuple[str, str]]:
    """By instruction: its PTX, and the line of the source."""

    def clean(words: str) -> str:
        return " ".join(words.split())

    return [(clean(place.ptx), f"{place.file}:{place.line}: {clean(place.text)}") for place in code.places]


def _of(launch: Launch, one: Instruction, numbers: dict[int, int], label: tuple[str, str]) -> Iterator[Command]:
    number, warp = numbers[id(one)], one.warp
    ptx, source = label
    found = stages(launch, one)
    first = found[0][0]
    yield first, BEGIN, number, f"I\t{number}\t{number}\t{warp.slot}"
    whose = f"{warp.code.kernel}, " if launch.several else ""
    yield first, BEGIN, number, f"L\t{number}\t0\t{whose}CTA {warp.cta} warp {warp.index}: {one.pc}: {ptx}"
    where = f"warp slot {warp.slot}, {one.lanes.bit_count()} lanes ({one.lanes:08x})"
    yield first, BEGIN, number, f"L\t{number}\t1\t{warp.code.kernel}, {where}, {source}"
    waits = [*one.waits, (one.issue, "")]
    causes = [(begin, end, why) for (begin, why), (end, _) in pairwise(waits)]
    for lane, parts in enumerate((found, causes)):
        for begin, end, name in parts:
            yield max(begin, first), START, number, f"S\t{number}\t{lane}\t{name}"
            yield end, END, number, f"E\t{number}\t{lane}\t{name}"
    for other in one.needs:
        if id(other) in numbers:
            yield one.issue, NEEDS, number, f"W\t{number}\t{numbers[id(other)]}\t0"
    yield found[-1][1], RETIRE, number, ""
