"""A kernel as the checker and the interpreter of register regions read it: its records, and its metadata words."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.models.execution.isa import PT, RZ, Control, Group
from lockstep.sim.compile.ptx.kernel import Kernel
from lockstep.sim.compile.ptx.passes.register_regions.words import decode
from lockstep.spec.register_regions import ERASE, FLAG_BITS, LAST, OPERANDS, SLOT_BITS, Entry

PAIR = 256


@dataclass(frozen=True)
class Instruction:
    """``reads`` and ``writes`` by the record; ``flags`` by operand, from the metadata: registers, last use, erased.

    ``successors``: where control can go; the length of the code is the end. ``parts``: lanes may go different ways, to
    meet again at ``meeting``. ``guard``: a predicate, whether it counts inverted; or None.
    """

    pc: int
    line: int
    group: int
    op: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    predicates: tuple[int, ...]
    guard: tuple[int, bool] | None
    successors: tuple[int, ...]
    parts: bool
    meeting: int
    flags: tuple[tuple[tuple[int, ...], bool, bool], ...]


@dataclass(frozen=True)
class Staged:
    """A region: ``code`` in order; the registers of each entry of its metadata; ``usage`` by bank."""

    code: tuple[Instruction, ...]
    entries: tuple[tuple[Entry, int], ...]
    usage: tuple[int, ...]

    @property
    def start(self) -> int:
        return self.code[0].pc

    def registers(self, *actions: Entry) -> int:
        """As a set, one bit each."""
        return bits(register for action, register in self.entries if action in actions)


def bits(registers) -> int:
    """A set of registers as an integer."""
    result = 0
    for register in registers:
        result |= 1 << register
    return result


def staged(kernel: Kernel) -> list[Staged]:
    """The regions of a kernel, in the order of its code."""
    tables = kernel.tables
    words = [int(word) for word in tables["regions.words"]]
    first = [int(index) for index in tables["regions.first"]]
    starts = [pc for pc, index in enumerate(first) if index >= 0]
    assert starts[:1] == [0] and sorted(first[pc] for pc in starts) == [first[pc] for pc in starts]
    result = []
    for start, end in zip(starts, [*starts[1:], len(kernel.code)], strict=True):
        stop = first[end] if end < len(kernel.code) else len(words)
        metadata = decode(words[first[start] : stop])
        slots = iter(metadata.slots)
        code = []
        for pc in range(start, end):
            operands = _operands(kernel, pc)
            flags = []
            for number in range(0, max(len(operands), 1), OPERANDS):
                slot = next(slots)
                assert slot < 1 << SLOT_BITS
                for place, operand in enumerate(operands[number : number + OPERANDS]):
                    flag = slot >> FLAG_BITS * place
                    flags.append((operand, bool(flag & LAST), bool(flag & ERASE)))
            code.append(_instruction(kernel, pc, tuple(flags)))
        assert next(slots, None) is None, f"the region at {start} has flags that no instruction takes"
        result.append(Staged(tuple(code), metadata.entries, metadata.usage))
    return result


def _operands(kernel: Kernel, pc: int) -> list[tuple[int, ...]]:
    table = kernel.tables["regions.operands"]
    begin, end = kernel.tables["regions.operand"][pc : pc + 2]
    numbers = [int(number) for number in table[begin:end]]
    return [(n - PAIR, n - PAIR + 1) if n >= PAIR else (n,) for n in numbers]


def _instruction(kernel: Kernel, pc: int, flags) -> Instruction:
    record = kernel.code[pc]
    group, op, guard = int(record["group"]), int(record["op"]), int(record["guard"])
    writer = kernel.code[pc - 1] if pc and _delivers(kernel.code[pc - 1]) else record
    written = () if _delivers(record) else tuple(_set(writer["writes"]))
    guarded = None if writer["guard"] == PT else (int(writer["guard"]), bool(writer["guard_not"]))
    successors: tuple[int, ...] = (pc + 1,)
    if group == Group.CONTROL and op == Control.EXIT:
        successors = (pc + 1,) if guard != PT else ()
    elif group == Group.CONTROL and op == Control.BRANCH:
        successors = (int(record["target"]), *((pc + 1,) if guard != PT else ()))
    elif group == Group.CONTROL and op == Control.INDEXED:
        table = int(record["target"])
        successors = tuple(kernel.branch_table[table : table + int(record["imm"][3])])
        successors += (pc + 1,) if guard != PT else ()
    branch = group == Group.CONTROL and op in (Control.BRANCH, Control.INDEXED)
    reads = {int(register) for register in record["read"][: record["reads"]]}
    for operand, _, _ in flags:  # a value of 64 bits is read whole, even if its lower half is all that is wanted
        if reads & {*operand} or not {*operand} & {*written}:
            reads |= {*operand}
    return Instruction(
        pc, int(record["line"]), group, op, tuple(sorted(reads)), written, tuple(_set([record["pwrites"]])), guarded,
        successors, branch and len(set(successors)) > 1, int(record["reconverge"]), flags,
    )  # fmt: skip


def _delivers(record) -> bool:
    """Whether the result comes with the no-op behind it."""
    return record["group"] == Group.CONTROL and record["op"] == Control.REDUCE and record["dst"] != RZ


def _set(words) -> list[int]:
    whole = sum(int(word) << 64 * place for place, word in enumerate(words))
    return [register for register in range(256) if whole >> register & 1]
