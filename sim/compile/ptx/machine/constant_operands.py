"""Operands from the constant bank: kernel parameters, and constants at addresses that are known when compiling.

Machine code has no load for them. An arithmetic instruction names such a word in the place of a register or a literal,
which share one field of the instruction, so that one of its operands can be either. What cannot take it, such as an
address, a value to be stored or the first operand of a shift, gets a move.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from lockstep.models.execution.isa import Category, Group, Int, Long, Memory, Space
from lockstep.sim.compile.ptx.machine.values import WHOLE, Values, is_copy
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro, Source, move

Constants = dict[int, Source]
"""The constant that a register holds."""

_SPACES = (Space.PARAM, Space.CONST)
_FIRST_IN_REGISTER: dict[Group, set[Int] | set[Long]] = {
    Group.INT: {
        Int.SHL, Int.SHR_S, Int.SHR_U, Int.SHF_L_CLAMP, Int.SHF_L_WRAP, Int.SHF_R_CLAMP, Int.SHF_R_WRAP, Int.BFE_S,
        Int.BFE_U, Int.BFI, Int.PRMT, Int.SZEXT_S, Int.SZEXT_U, Int.BMSK, Int.FNS,
    },
    Group.LONG: {Long.SHL, Long.SHR_S, Long.SHR_U, Long.BFE_S, Long.BFE_U, Long.BFI},
}  # fmt: skip
"""Operations that do not commute, and whose other operands alone can be constants."""

_IN_REGISTERS = {
    Category.SPECIAL, Category.SPECIAL_DOUBLE, Category.DIVIDE, Category.DIVIDE_DOUBLE, Category.DIVIDE_INTEGER,
    Category.VIDEO,
}  # fmt: skip
"""Categories whose instructions take registers: special functions, and what is a sequence of instructions."""

_ARITHMETIC = (Group.INT, Group.LONG, Group.FLOAT, Group.DOUBLE, Group.CONVERT, Group.PREDICATE)


def fold(code: Code, most: int) -> None:
    """Turn loads of constants into operands, at most so many of an instruction, and into moves."""
    _load_as_moves(code)
    constants = _constants(code)
    for micro in code.list:
        if micro.dst in constants:
            micro.sources = (constants[micro.dst],)
        elif micro.group in _ARITHMETIC and micro.category not in _IN_REGISTERS:
            micro.sources = tuple(_folded(micro, constants, most))
    _sink(code)


def _load_as_moves(code: Code) -> None:
    """Replace loads of whole words at known addresses. A load that is misaligned, or out of bounds, stays a fault."""
    expansions = []
    for micro in code.list:
        moves = [micro]
        if micro.group == Group.MEMORY and micro.op == Memory.LOAD and micro.space in _SPACES and not micro.sources:
            targets = [(element, register) for element, register in micro.results.items() if register != NONE]
            words = all(8 * micro.bytes == code.bits[register] and micro.bytes >= 4 for _, register in targets)
            if words and _is_there(micro):
                moves = [_move(micro, element, register, code.bits[register]) for element, register in targets]
        expansions.append(moves)
    code.replace(expansions)


def _is_there(load: Micro) -> bool:
    """Whether a load is aligned, and within its variable."""
    storage, size = load.storage, load.vec * load.bytes
    if storage is None or (storage.offset + load.offset) % size:
        return False
    return 0 <= load.offset <= storage.bytes - size


def _move(load: Micro, element: int, register: int, bits: int) -> Micro:
    place = load.offset + element * load.bytes
    made = move(bits, register, Source(WHOLE[bits], bits=place, storage=load.storage, constant=True))
    made.line, made.guard, made.guard_not = load.line, load.guard, load.guard_not
    return made


def _constants(code: Code) -> Constants:
    """What registers hold that are written once, with a constant."""
    values = Values(code)
    found: Constants = {}
    for micro in code.list:
        if micro.dst != NONE and is_copy(micro, code.bits[micro.dst]) and values.only_definition(micro.dst) is not None:
            source = micro.sources[0]
            if source.constant:
                found[micro.dst] = source
            elif source.register in found and source.fetch == WHOLE[code.bits[micro.dst]]:
                if code.bits[source.register] == code.bits[micro.dst]:
                    found[micro.dst] = found[source.register]
    return found


def _folded(micro: Micro, constants: Constants, most: int) -> Iterator[Source]:
    """The sources, with constants as far as the instruction takes them: the later ones first."""
    literals = sum(one.register == NONE and (one.bits != 0 or one.storage is not None) for one in micro.sources)
    fixed = micro.op in _FIRST_IN_REGISTER.get(micro.group, set())
    fitting = [which for which, one in enumerate(micro.sources) if one.register in constants and which >= fixed]
    chosen = fitting[max(0, len(fitting) - max(0, most - literals)) :]
    for which, one in enumerate(micro.sources):
        yield constants[one.register]._replace(fetch=one.fetch) if which in chosen else one


def _sink(code: Code) -> None:
    """Put a move of a constant before its first use, if one block has all uses."""
    values = Values(code)
    before: dict[int, list[Micro]] = defaultdict(list)
    moved = set()
    for micro in code.list:
        if len(micro.sources) == 1 and micro.sources[0].constant and is_copy(micro, code.bits[micro.dst]):
            uses = values.uses[micro.dst]
            if values.only_definition(micro.dst) is not None and len({values.graph.block_of[use] for use in uses}) == 1:
                before[min(uses)].append(micro)
                moved.add(micro)
    code.replace([[*before[k], *([] if m in moved else [m])] for k, m in enumerate(code.list)])
