"""Which loads of a recorded launch get values that depend on its timing, found while it runs.

Every word of global memory and of scratchpads has a cell: the warp that wrote it last, the two that read it last, the
instructions, and how many barriers of its CTA each warp had passed. Two warps that access a word, one of them to write,
race if nothing orders them: they are of two CTAs, or of one that no barrier has passed between. What the one reads then
depends on which comes first.

``racing``: loads and atomics that did. ``clashing``: stores, exchanges and sums of floating-point numbers to words that
another warp had written, unordered, so that what stays there depends on the order. A store of what is there already
changes nothing: it neither clashes nor races. ``edges``: by store and load, that the one's word was read by the other.
``inheriting``: loads of words that an earlier launch has left depending on its timing. What a value steers is in the
code, and not judged here.
"""

from __future__ import annotations

from lockstep.models.execution.isa import GLOBAL_BASE, LANES, LOCAL_PHYSICAL, Atomic, Group, Memory, at_grid
from lockstep.models.jit import (
    ctz,
    i64,
    inline,
    jit,
    pointer_to,
    record,
    without_lowest,
    words_i32,
    words_u8,
    words_u32,
)

MOST_WORDS = 8  # of a lane's access
ACCESSOR = record([("warp", "i4"), ("pc", "i4"), ("passed", "i4"), ("bytes", "i4")])  # plus 1; ...; barriers; a mask
CELL = record([("writer", ACCESSOR), ("reader", ACCESSOR), ("other", ACCESSOR)])
RACES = record(
    [
        ("global_cells", "i8"),  # host addresses: by word from GLOBAL_BASE on ...
        ("global_words", "i8"),
        ("scratchpad_cells", "i8"),  # ... and from the first scratchpad on
        ("passed", "i8"),  # i32: barriers, by warp of the grid
        ("racing", "i8"),  # u8, by instruction
        ("clashing", "i8"),
        ("edges", "i8"),  # u8, by store and load; 0: there are too many instructions
        ("inherited", "i8"),  # u8, by word from GLOBAL_BASE on; 0: there is none
        ("inheriting", "i8"),  # u8, by instruction
        ("length", "i8"),
        ("warps", "i8"),  # of a CTA
        ("before", "u4", (LANES, MOST_WORDS)),  # what was where the lanes of a store write
    ]
)
CELL_BYTES = CELL.itemsize
at_cell = pointer_to(CELL)
_ATOMIC, _MEMORY = int(Group.ATOMIC), int(Group.MEMORY)
_LOAD, _STORE = int(Memory.LOAD), int(Memory.STORE)
_EXCH, _CAS, _FLOAT = int(Atomic.EXCH), int(Atomic.CAS), int(Atomic.ADD_F32)


@inline
def _mark(where, index):
    words_u8(where + index, 1)[0] = 1


@inline
def _unordered(races, accessor, number, passed, bytes_):
    """Whether nothing orders an earlier access and one of this warp to the same bytes."""
    other = i64(accessor.warp) - 1
    if other < 0 or other == number or i64(accessor.bytes) & bytes_ == 0:
        return False
    return other // races.warps != number // races.warps or accessor.passed == passed


@inline
def _by(accessor, number, pc, passed, bytes_):
    accessor.bytes = bytes_ if accessor.warp != number + 1 else i64(accessor.bytes) | bytes_
    accessor.warp = number + 1
    accessor.pc = pc
    accessor.passed = passed


@inline
def _forget_other_ctas(races, cell, number):
    """What a CTA before this one did in a place of the scratchpad is none of its business."""
    cta = number // races.warps
    if cell.writer.warp != 0 and (i64(cell.writer.warp) - 1) // races.warps != cta:
        cell.writer.warp = 0
    if cell.reader.warp != 0 and (i64(cell.reader.warp) - 1) // races.warps != cta:
        cell.reader.warp = 0
    if cell.other.warp != 0 and (i64(cell.other.warp) - 1) // races.warps != cta:
        cell.other.warp = 0


@jit
def _read(races, cell, number, pc, passed, bytes_):
    if _unordered(races, cell.writer, number, passed, bytes_):
        _mark(i64(races.racing), pc)
    if cell.writer.warp != 0 and races.edges != 0:
        _mark(i64(races.edges), i64(cell.writer.pc) * i64(races.length) + pc)
    reader = cell.reader
    if reader.warp != 0 and reader.warp != number + 1:
        cell.other.warp = 0
        _by(cell.other, i64(reader.warp) - 1, reader.pc, reader.passed, i64(reader.bytes))
    _by(reader, number, pc, passed, bytes_)


@jit
def _write(races, cell, number, pc, passed, bytes_, ordered):
    if _unordered(races, cell.reader, number, passed, bytes_):
        _mark(i64(races.racing), i64(cell.reader.pc))
    if _unordered(races, cell.other, number, passed, bytes_):
        _mark(i64(races.racing), i64(cell.other.pc))
    if ordered and _unordered(races, cell.writer, number, passed, bytes_):
        _mark(i64(races.clashing), pc)
    _by(cell.writer, number, pc, passed, bytes_)


@inline
def _bits_of(bytes_):
    """The bits of some bytes of a word."""
    return (bytes_ & 1) * 0xFF | (bytes_ & 2) * 0x7F80 | (bytes_ & 4) * 0x3F_C000 | (bytes_ & 8) * 0x1FE0_0000


@inline
def words_of(instruction):
    """The words that a lane's access touches."""
    return min(max(i64(instruction.bytes) * i64(instruction.vec) >> 2, i64(1)), i64(MOST_WORDS))


@inline
def _word(x, lane, word):
    """What is in a word that a lane touches, in global memory or in its CTA's scratchpad."""
    address = i64(x.address[lane])
    inside = (i64(x.touched_shared) >> lane) & 1 != 0
    where = i64(x.shared) + address if inside else i64(x.memory) + address - GLOBAL_BASE
    return words_u32((where & -4) + 4 * word, 1)[0]


@inline
def _is_followed(x, lane):
    """Whether a lane touches global memory or the scratchpad."""
    address = i64(x.address[lane])
    return (i64(x.touched_shared) >> lane) & 1 != 0 or (address >= GLOBAL_BASE and address < LOCAL_PHYSICAL)


@jit
def look(races, x, instruction):
    """Note what is where a store will write, whose places are in the context."""
    lanes = i64(x.touched)
    while lanes != 0:
        lane = ctz(lanes)
        lanes = without_lowest(lanes)
        if _is_followed(x, lane):
            for word in range(words_of(instruction)):
                races.before[lane, word] = _word(x, lane, word)


@jit
def note(races, x, instruction, pc, number):
    """Note an access that has executed."""
    group, op = i64(instruction.group), i64(instruction.op)
    atomic = group == _ATOMIC
    if not atomic and (group != _MEMORY or (op != _LOAD and op != _STORE)):
        return
    reads, writes = atomic or op == _LOAD, atomic or op == _STORE
    ordered = not atomic or op == _EXCH or op == _CAS or op >= _FLOAT
    passed = i64(words_i32(i64(races.passed) + 4 * number, 1)[0])
    words = words_of(instruction)
    lanes, shared = i64(x.touched), i64(x.touched_shared)
    scratchpad = i64(x.shared) - i64(at_grid(x.grid).scratchpad)
    while lanes != 0:
        lane = ctz(lanes)
        lanes = without_lowest(lanes)
        address, inside = i64(x.address[lane]), (shared >> lane) & 1 != 0
        bytes_ = ((1 << min(i64(instruction.bytes) * i64(instruction.vec), i64(4))) - 1) << (address & 3)
        first = (scratchpad + address if inside else address - GLOBAL_BASE) >> 2
        if not _is_followed(x, lane) or (not inside and first + words > races.global_words):
            continue
        for word in range(words):
            at = first + word
            cell = at_cell((i64(races.scratchpad_cells) if inside else i64(races.global_cells)) + at * CELL_BYTES)
            if inside:
                _forget_other_ctas(races, cell, number)
            if reads:
                if not inside and races.inherited != 0 and cell.writer.warp == 0:
                    if words_u8(i64(races.inherited) + at, 1)[0] != 0:
                        _mark(i64(races.inheriting), pc)
                _read(races, cell, number, pc, passed, bytes_)
            changed = _bits_of(bytes_) & (i64(races.before[lane, word]) ^ i64(_word(x, lane, word)))
            if writes and (atomic or changed != 0):
                _write(races, cell, number, pc, passed, bytes_, ordered)
            elif writes and cell.writer.bytes == 0:  # no byte changes; but where the value comes from may matter
                _by(cell.writer, number, pc, passed, i64(0))
