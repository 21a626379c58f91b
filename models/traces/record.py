"""The recorder: what each warp executes, in the order of issue, into buffers that the host empties when one is full.

The guide notes instruction and lanes at issue. Accesses to memory are noted when they execute, with the addresses that
the load/store unit gets; those of local memory as if the warp's lay at the begin of all, since where it lies is not the
warp's doing. What else steers a warp stands in *values*: the indices of an indexed branch, lane by lane, and barriers
and numbers of threads that come from registers.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lockstep.models.core.state import INSTRUCTION_BYTES, address_of, at_instruction
from lockstep.models.core.warp import WARP
from lockstep.models.execution.execute import SLOTS
from lockstep.models.execution.isa import CONTEXT, LANES, LOCAL_PHYSICAL, Control, Fault, Group, Kind, Memory, at_grid
from lockstep.models.execution.operands import register_address
from lockstep.models.jit import (
    address,
    call,
    ctz,
    hosted,
    i64,
    inline,
    jit,
    pointer_to,
    record,
    slot,
    without_lowest,
    words_i32,
    words_u32,
)
from lockstep.models.traces import calling_back
from lockstep.models.traces.races import CELL, CELL_BYTES, RACES, look, note

STEP = record([("warp", "i4"), ("pc", "i4"), ("active", "u4"), ("lanes", "u4")])
"""A warp instruction. Warps are numbered through the grid: CTA times warps of a CTA, plus the warp in its CTA."""

LINE = record([("warp", "i4"), ("pc", "i4"), ("lanes", "u4"), ("shared", "u4"), ("address", "u4", (LANES,))])
"""An access: the lanes that touch memory, those of them that touch the scratchpad, and where. Or values, in the lanes
that have one."""

ROOM = 1 << 15  # entries of a buffer
MOST_EDGES = 4096  # instructions of a kernel of which it is kept who has read whose words
_NO_RESERVE = 0x4000  # MAP_NORESERVE of Linux
BUFFERS = {"steps": STEP, "accesses": LINE, "values": LINE}
BUFFER = record([("at", "i8"), ("count", "i8"), ("room", "i8")])
RECORDER = record(
    [
        ("steps", BUFFER),
        ("accesses", BUFFER),
        ("values", BUFFER),
        ("empty", "i8"),  # address of the host's function that empties all buffers
        ("execute", "i8", (len(Group),)),  # addresses of the executing functions
        ("races", RACES),
    ]
)
at_context, at_warp, at_recorder = pointer_to(CONTEXT), pointer_to(WARP), pointer_to(RECORDER)
at_step, at_line = pointer_to(STEP), pointer_to(LINE)
STEP_BYTES, LINE_BYTES = STEP.itemsize, LINE.itemsize
_NOTHING, _REGISTER, _CONTROL = int(Kind.NONE), int(Kind.REGISTER), int(Group.CONTROL)
_INDEXED, _MEMORY, _STORE = int(Control.INDEXED), int(Group.MEMORY), int(Memory.STORE)
_BARRIER, _ARRIVE, _REDUCE = int(Control.BARRIER), int(Control.ARRIVE), int(Control.REDUCE)


@dataclass(frozen=True)
class Warps:
    """What a recorder has to know of a launch: instructions of the kernel, CTAs, their warps, and words of memory."""

    length: int
    ctas: int
    per_cta: int
    global_words: int
    scratchpad_words: int
    inherited: np.ndarray  # u8, by word: an earlier launch has left it depending on its timing


@inline
def number_of(x):
    """The number of the context's warp in its grid."""
    grid = at_grid(x.grid)
    cta = (i64(x.ctaid[2]) * i64(grid.size[1]) + i64(x.ctaid[1])) * i64(grid.size[0]) + i64(x.ctaid[0])
    return cta * i64(grid.warps) + i64(x.warp)


@inline
def steering_sources(instruction):
    """Of a control instruction, how many sources from registers say where the warp goes or waits: 0, or up to 1 + 1."""
    op = instruction.op
    if op == _INDEXED:
        return i64(1)
    if op == _BARRIER or op == _ARRIVE or op == _REDUCE:
        return i64(instruction.kind[0] == _REGISTER) + i64(instruction.kind[1] == _REGISTER)
    return i64(0)


@jit
def _line(recorder, buffer, x, pc):
    """The next entry of a buffer of lines."""
    if buffer.count == buffer.room:
        call(i64(recorder.empty), i64(0), i64(0))
    line = at_line(i64(buffer.at) + i64(buffer.count) * LINE_BYTES)
    buffer.count += 1
    line.warp = number_of(x)
    line.pc = pc
    line.shared = 0
    return line


@jit
def _values(recorder, x, instruction, pc):
    """Note what stands in the registers that steer a control instruction."""
    for source in range(2):
        steers = instruction.kind[source] == _REGISTER and (source == 0 or instruction.op != _INDEXED)
        if steers:
            line = _line(recorder, recorder.values, x, pc)
            words = words_u32(register_address(x, i64(instruction.src[source])), LANES)
            line.lanes = x.mask
            for lane in range(LANES):
                line.address[lane] = words[lane]


@slot
def guide(context, warp):
    """Note an instruction that issues."""
    x, at = at_context(context), at_warp(warp)
    recorder = at_recorder(i64(x.trace))
    steps = recorder.steps
    if steps.count == steps.room:
        call(i64(recorder.empty), i64(0), i64(0))
    step = at_step(i64(steps.at) + i64(steps.count) * STEP_BYTES)
    steps.count += 1
    step.warp = number_of(x)
    step.pc = at.pc
    step.active = x.active
    step.lanes = x.mask
    instruction = at_instruction(address_of(at, at.pc))
    if instruction.group == _CONTROL and (instruction.op == _BARRIER or instruction.op == _REDUCE):
        if instruction.kind[1] == _NOTHING:  # all threads
            words_i32(i64(recorder.races.passed) + 4 * i64(step.warp), 1)[0] += 1
    if instruction.group == _CONTROL and x.mask != 0 and steering_sources(instruction) != 0:
        _values(recorder, x, instruction, i64(at.pc))
    return i64(Fault.NONE)


@slot
def access(context, where):
    """Execute an access, and note where it touches memory."""
    x = at_context(context)
    recorder = at_recorder(i64(x.trace))
    instruction = at_instruction(where)
    if x.probe == 0 and instruction.group == _MEMORY and instruction.op == _STORE:
        x.probe = 1
        if call(i64(recorder.execute[instruction.group]), context, where) == Fault.NONE:
            look(recorder.races, x, instruction)
        x.probe = 0
    fault = call(i64(recorder.execute[instruction.group]), context, where)
    if fault != Fault.NONE or x.probe != 0:
        return fault
    line = _line(recorder, recorder.accesses, x, (where - i64(at_grid(x.grid).code)) // INSTRUCTION_BYTES)
    note(recorder.races, x, instruction, i64(line.pc), i64(line.warp))
    line.lanes = x.touched
    line.shared = x.touched_shared
    for lane in range(x.lanes):
        line.address[lane] = x.address[lane]
    local = i64(x.touched) & ~i64(x.touched_shared)
    while local != 0:
        lane = ctz(local)
        local = without_lowest(local)
        if i64(x.address[lane]) >= LOCAL_PHYSICAL:
            line.address[lane] = i64(x.address[lane]) - i64(x.local_physical) + LOCAL_PHYSICAL
    return i64(Fault.NONE)


class Recorder:
    """The part of a launch that is recorded. ``take`` is called with steps, accesses and values, to be copied.

    ``error`` is an exception that came in it: compiled code cannot be unwound, so it waits until the launch has ended.
    """

    guide = guide

    def __init__(
        self, take: Callable[[np.ndarray, np.ndarray, np.ndarray], None], warps: Warps, room: int = ROOM
    ) -> None:
        self.functions: dict[Group, Any] = dict.fromkeys((Group.MEMORY, Group.ATOMIC, Group.TEXTURE), access)
        self._take = take
        self._record = np.zeros((), RECORDER)
        self._buffers = {name: np.zeros(room, kind) for name, kind in BUFFERS.items()}
        for name, array in self._buffers.items():
            self._record[name]["at"], self._record[name]["room"] = array.ctypes.data, len(array)
        self._empty = hosted(calling_back(self._called))
        self._record["empty"] = address(self._empty)
        for group, function in SLOTS.items():
            self._record["execute"][group] = address(function)
        self.racing, self.clashing, self.inheriting = (np.zeros(warps.length, np.uint8) for _ in range(3))
        few = warps.length <= MOST_EDGES
        self.edges = np.zeros((warps.length, warps.length) if few else (0, 0), np.uint8)
        self._passed = np.zeros(warps.ctas * warps.per_cta, np.int32)
        self._cells = [zeros(words * CELL_BYTES) for words in (warps.global_words, warps.scratchpad_words)]
        for name, value in dict(
            global_cells=self._cells[0].ctypes.data, global_words=warps.global_words,
            scratchpad_cells=self._cells[1].ctypes.data, passed=self._passed.ctypes.data,
            racing=self.racing.ctypes.data, clashing=self.clashing.ctypes.data,
            inheriting=self.inheriting.ctypes.data,
            inherited=warps.inherited.ctypes.data if warps.inherited.any() else 0,
            edges=self.edges.ctypes.data if few else 0, length=warps.length, warps=warps.per_cta,
        ).items():  # fmt: skip
            self._record["races"][name] = value
        self.error: BaseException | None = None

    @property
    def address(self) -> int:
        """That of its record."""
        return self._record.ctypes.data

    def written(self, instructions: Sequence[int]) -> np.ndarray:
        """The words of global memory that were last written by one of some instructions, and those by any."""
        cells = self._cells[0][: len(self._cells[0]) // CELL_BYTES * CELL_BYTES].view(CELL)["writer"]
        by_any = cells["warp"] != 0
        chosen = np.zeros(len(self.racing), bool)
        chosen[list(instructions)] = True
        return np.stack([by_any & chosen[cells["pc"]], by_any])

    def flush(self) -> None:
        """Empty the buffers. Raises what has gone wrong in doing so before."""
        self._called(0, 0)
        if self.error is not None:
            raise self.error

    def _called(self, _a: int, _b: int) -> int:
        try:
            if self.error is None:
                self._take(*(array[: int(self._record[name]["count"])] for name, array in self._buffers.items()))
        except BaseException as error:
            self.error = error
        for name in self._buffers:
            self._record[name]["count"] = 0
        return 0


def zeros(nbytes: int) -> np.ndarray:
    """Bytes that take no memory until they are touched."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    return np.frombuffer(mmap.mmap(-1, max(nbytes, 1), flags=flags), np.uint8)
