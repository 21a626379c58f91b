"""The order of instructions within basic blocks: loads early, uses late, with registers that cost no warp.

A block is ordered from its start: of the instructions whose operands are there, the next is the one from which most
time passes to the block's end; one that would leave more registers with values than the budget waits. An order is taken
if one warp alone would need less time for it. The budget is what the kernel needs in the order of the PTX, or, if that
saves more time, what each thread of a full SM can have. ``ptxas`` fills that, too (``docs/compiler.md``).

The order of accesses that may touch the same bytes stays, and that of volatile ones, atomics, barriers, fences and
whatever else other threads can see with all accesses. Nothing moves over a read of a clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

from lockstep.models.execution.isa import Category, Flag, Group, Memory, Space, Warp
from lockstep.sim.compile.ptx.allocate import Liveness, liveness, words
from lockstep.sim.compile.ptx.cfg import ControlFlowGraph
from lockstep.sim.compile.ptx.machine.copies import CLOCKS, is_pure
from lockstep.sim.compile.ptx.machine.pressure import pressure, registers
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro

_FAR, _NEAR, _SPECIAL, _USUAL = 200, 26, 20, 10
_LATENCIES = {
    **dict.fromkeys((Category.GLOBAL, Category.LOCAL, Category.ATOMIC, Category.TEXTURE), _FAR),
    **dict.fromkeys((Category.SHARED, Category.CONST, Category.PARAM), _NEAR),
    **dict.fromkeys((Category.SPECIAL, Category.SPECIAL_DOUBLE, Category.DOUBLE), _SPECIAL),
    **dict.fromkeys((Category.DIVIDE, Category.DIVIDE_DOUBLE, Category.DIVIDE_INTEGER), 4 * _SPECIAL),
}
"""Assumed cycles until a result is there: of no GPU, but in the order of all. Others take ``_USUAL``."""

_SLACKS = (0, 2, 4, 8)  # registers less, tried one after the other where an order needs more than the budget


def schedule(code: Code, free: int) -> None:
    """Order the instructions of all blocks. ``free``: registers that a thread can have at no cost."""
    most, live = max(registers(code), free), liveness(code)
    needed = max(pressure(code, live), default=0)
    for slack in _SLACKS:
        budgets = [budget - slack for budget in sorted({needed, max(needed, free)})]
        trial = code.copy()
        trial.list = [micro for block in _blocks(trial, live) for micro in block.in_order(budgets)]
        if registers(trial) <= most:
            code.take(trial)
            return


def _blocks(code: Code, live: Liveness) -> Iterator[Block]:
    for places in ControlFlowGraph(code.successors()).blocks:
        behind = {register for register, points in enumerate(live.points) if points >> places[-1] & 1}
        yield Block([code.list[place] for place in places], behind, [words(bits) for bits in code.bits])


@dataclass(slots=True, eq=False)
class Value:
    """What a register has between two writes in a block."""

    words: int
    stays: bool = False  # it is needed behind the block
    users: set[int] = field(default_factory=set)


class Block:
    """Micro-operations by index, what each of them depends on, and the values that they make and use.

    ``behind``: the registers that are needed behind the block; ``sizes``: of every register, in words.
    """

    def __init__(self, micros: list[Micro], behind: set[int], sizes: list[int]) -> None:
        self.micros = micros
        self.latency = [_LATENCIES.get(micro.category, _USUAL) for micro in micros]
        self.made: list[list[Value]] = [[] for _ in micros]
        self.used: list[list[Value]] = [[] for _ in micros]
        self.address: list[Value | None] = [None] * len(micros)
        self.before: list[dict[int, int]] = [{} for _ in micros]  # index of an earlier one -> cycles from it
        self.after: list[dict[int, int]] = [{} for _ in micros]
        values = self._trace(sizes)
        for register in behind & values.keys():
            values[register].stays = True
        made = set(chain(*self.made))
        self.entering = [value for value in dict.fromkeys(chain(*self.used)) if value not in made]
        self.through = sum(sizes[register] for register in behind - values.keys())
        self._keep_order()
        self.height = [0] * len(micros)
        for index in reversed(range(len(micros))):
            own = self.latency[index] if any(value.stays for value in self.made[index]) else 0
            self.height[index] = max([own, *(cycles + self.height[k] for k, cycles in self.after[index].items())])

    def in_order(self, budgets: list[int]) -> list[Micro]:
        """The micro-operations in the order that takes the least time; of equals, the one for the first budget."""
        orders = [list(range(len(self.micros)))]
        needed = self._most_live(orders[0])
        for budget in budgets:
            orders += self._within(max(budget, needed))
        return [self.micros[index] for index in min(orders, key=self._time)]

    def _within(self, budget: int) -> list[list[int]]:
        """An order that needs no more registers than the budget, if one of those tried does."""
        tried = (self._listed(budget - slack) for slack in _SLACKS)
        return list(islice((order for order in tried if self._most_live(order) <= budget), 1))

    def _depend(self, index: int, on: int, cycles: int) -> None:
        cycles = max(cycles, self.before[index].get(on, 0))
        self.before[index][on] = self.after[on][index] = cycles

    def _trace(self, sizes: list[int]) -> dict[int, Value]:
        """Find values and dependences; returns the last value of every register that is named."""
        values: dict[int, Value] = {}
        writer: dict[int, int] = {}
        for index, micro in enumerate(self.micros):
            written = micro.registers_written()
            read = micro.registers_read() + (written if micro.guard != NONE else [])
            for register in dict.fromkeys(read):
                value = values.setdefault(register, Value(sizes[register]))
                value.users.add(index)
                self.used[index].append(value)
                if register in writer:
                    self._depend(index, writer[register], self.latency[writer[register]])
            if _is_access(micro) and micro.sources and micro.sources[0].register != NONE:
                self.address[index] = values[micro.sources[0].register]
            for register in dict.fromkeys(written):
                for user in values[register].users - {index} if register in values else ():
                    self._depend(index, user, 0)
                if register in writer:
                    self._depend(index, writer[register], 1)
                values[register], writer[register] = Value(sizes[register]), index
                self.made[index].append(values[register])
        return values

    def _keep_order(self) -> None:
        """Add the dependences of accesses, of what orders them, of clocks and of the end of the block."""
        last = len(self.micros) - 1
        for index, micro in enumerate(self.micros):
            for earlier in range(index):
                end = index == last and micro.group == Group.CONTROL
                if end or self._conflict(earlier, index):
                    self._depend(index, earlier, 0)

    def _conflict(self, first: int, then: int) -> bool:
        """Whether the order of two micro-operations matters, beside their registers."""
        a, b = self.micros[first], self.micros[then]
        if _is_clock(a) or _is_clock(b):
            return True
        if not (_is_ordered(a) and _is_ordered(b)):
            return False
        if not (_is_access(a) and _is_access(b)) or _is_fixed(a) or _is_fixed(b):
            return True
        if a.op != Memory.STORE and b.op != Memory.STORE:
            return False
        if a.space != b.space and Space.GENERIC not in (a.space, b.space):
            return False
        same = a.space == b.space and a.storage is b.storage and self.address[first] is self.address[then]
        apart = a.offset + a.vec * a.bytes <= b.offset or b.offset + b.vec * b.bytes <= a.offset
        return not (same and apart)

    def _listed(self, budget: int) -> list[int]:
        """The order of a list scheduler that leaves no more registers with values than the budget, if it can."""
        waiting = [len(before) for before in self.before]
        ready = [index for index, count in enumerate(waiting) if not count]
        live = Live(self)
        issued: dict[int, int] = {}
        now = 0
        order = []
        while ready:
            starts = {index: self._start(index, issued) for index in ready}
            change = {index: live.change(index) for index in ready}
            fitting = [index for index in ready if change[index] <= 0 or live.words + change[index] <= budget]
            if fitting:
                begin = max(now, min(starts[index] for index in fitting))
                startable = [index for index in fitting if starts[index] <= begin]
                chosen = max(startable, key=lambda index: (self.height[index], -index))
            else:
                chosen = min(ready, key=lambda index: (change[index], index))
            issued[chosen] = max(now, starts[chosen])
            now = issued[chosen] + 1
            live.pass_over(chosen)
            order.append(chosen)
            ready.remove(chosen)
            for index in self.after[chosen]:
                waiting[index] -= 1
                if not waiting[index]:
                    ready.append(index)
        return order

    def _start(self, index: int, issued: dict[int, int]) -> int:
        return max((issued[on] + cycles for on, cycles in self.before[index].items()), default=0)

    def _most_live(self, order: list[int]) -> int:
        live = Live(self)
        return max([live.words, *(live.pass_over(index) for index in order)])

    def _time(self, order: list[int]) -> int:
        """Cycles until the last micro-operation has issued and all values are there, of a warp alone."""
        issued: dict[int, int] = {}
        now = end = 0
        for index in order:
            issued[index] = max(now, self._start(index, issued))
            now = issued[index] + 1
            if any(value.stays for value in self.made[index]):
                end = max(end, issued[index] + self.latency[index])
        return max(now, end)


class Live:
    """The registers with values while a block is gone through in some order, in words."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._left = {value: len(value.users) for value in chain(block.entering, *block.made)}
        self.words = block.through + sum(value.words for value in block.entering)

    def change(self, index: int) -> int:
        """By how much there are more behind a micro-operation."""
        block, left = self._block, self._left
        made = sum(value.words for value in block.made[index] if value.stays or value.users)
        return made - sum(value.words for value in block.used[index] if left[value] == 1 and not value.stays)

    def pass_over(self, index: int) -> int:
        """Go over a micro-operation; returns the most at it, with results that nobody needs."""
        self.words += self.change(index)
        for value in self._block.used[index]:
            self._left[value] -= 1
        made = self._block.made[index]
        return self.words + sum(value.words for value in made if not value.stays and not value.users)


def _is_access(micro: Micro) -> bool:
    return micro.group in (Group.MEMORY, Group.ATOMIC)


def _is_ordered(micro: Micro) -> bool:
    """Whether it has a place among the accesses to memory, or what other threads do."""
    return not is_pure(micro)


def _is_fixed(micro: Micro) -> bool:
    """Whether no access moves over it."""
    return micro.group != Group.MEMORY or bool(micro.flags & Flag.VOLATILE)


def _is_clock(micro: Micro) -> bool:
    return micro.group == Group.WARP and micro.op == Warp.SPECIAL and micro.sub in CLOCKS
