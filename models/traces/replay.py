"""The replay: warps go where their traces say and touch what these say, and nothing is computed.

The kernel's code is the recorded one, but for its guards: all of them are predicate 0, into which the guide writes in
which lanes the warp's next guarded instruction executes. So everything else happens as in an execution: the branches,
the reconvergence stack, barriers, exits. Of each instruction the guide checks that the trace has it here, in these
lanes. Where the trace is that of a machine of another kind (``steers``), warps have no stack, and the guide sends them
on.

A trace comes in pieces, each a stretch of one warp, which the host loads when a warp comes to them: the compiled code
finds the first one of each warp in ``first``, the others by ``next``, and asks the host for what is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lockstep.models.core.state import address_of, at_instruction
from lockstep.models.core.warp import WARP, register_address
from lockstep.models.execution.execute import SLOTS
from lockstep.models.execution.isa import (
    CONTEXT,
    LANES,
    LOCAL_PHYSICAL,
    PT,
    Control,
    Fault,
    Flag,
    Group,
    Kind,
    Space,
)
from lockstep.models.jit import (
    address,
    call,
    hosted,
    i64,
    inline,
    jit,
    pointer_to,
    popcount,
    record,
    slot,
    u32,
    words_i32,
    words_i64,
    words_u32,
)
from lockstep.models.traces import calling_back
from lockstep.models.traces.record import number_of, steering_sources
from lockstep.spec.parameters import MAX_WARPS

RUN = record([("pc", "u4"), ("count", "u4"), ("active", "u4")])
"""Instructions that follow each other, in the same lanes."""

ACCESS = record(
    [
        ("lanes", "u4"),
        ("shared", "u4"),
        ("base", "u4"),  # of lane 0 ...
        ("stride", "i4"),  # ... from which it is so far to the next lane's; if not ``listed``
        ("listed", "u4"),  # 1: lane by lane, ...
        ("first", "u4"),  # ... from this place of the piece's addresses on
    ]
)

HELD = record([("count", "i8")])
"""How many stretches of a block warps are in."""

PIECE = record(
    [
        ("block", "i8"),  # its number, which the host knows it by
        ("next", "i8"),  # address of the warp's next piece; 0: not there yet; -1: there is none
        ("held", "i8"),  # address of its block's HELD
        ("runs", "i8"),  # host addresses, and how many
        ("run_count", "i8"),
        ("guards", "i8"),  # u32: lanes of guarded instructions
        ("guard_count", "i8"),
        ("values", "i8"),  # u32
        ("value_count", "i8"),
        ("accesses", "i8"),
        ("access_count", "i8"),
        ("addresses", "i8"),  # u32
    ]
)

CURSOR = record(
    [
        ("warp", "i8"),  # plus 1; 0: there is none, or it has ended
        ("path", "i8"),  # the piece of its instructions
        ("run", "i8"),
        ("left", "i8"),  # instructions of the run ...
        ("pc", "i8"),  # ... from here on ...
        ("active", "i8"),  # ... in these lanes
        ("guard", "i8"),
        ("value", "i8"),
        ("memory", "i8"),  # the piece of its accesses, which may execute later
        ("access", "i8"),
        ("issued", "i8"),
    ]
)
"""Where a warp is in its trace."""

REPLAY = record(
    [
        ("first", "i8"),  # i64 by warp of the grid: address of its first piece; 0: not there
        ("pcs", "i8"),  # i32 by instruction: its number in the recorded code; -1: a pass has added it
        ("steers", "i8"),
        ("cursors", "i8"),  # by SM and warp slot
        ("left", "i8"),  # warps that have left an SM before they ended
        ("issued", "i8"),  # instructions of all warps
        ("load", "i8"),  # the host's: a piece of a warp behind one, or its first (0); returns its address, or 0
        ("change", "i8"),  # the host's: a warp (plus 1) takes a cursor; returns whether that is where the warp was
    ]
)
at_context, at_warp, at_replay = pointer_to(CONTEXT), pointer_to(WARP), pointer_to(REPLAY)
at_run, at_access, at_held = pointer_to(RUN), pointer_to(ACCESS), pointer_to(HELD)
at_piece, at_cursor = pointer_to(PIECE), pointer_to(CURSOR)
RUN_BYTES, ACCESS_BYTES, CURSOR_BYTES = RUN.itemsize, ACCESS.itemsize, CURSOR.itemsize
_REGISTER, _CONTROL, _ADDED = int(Kind.REGISTER), int(Group.CONTROL), int(Flag.ADDED)
_BRANCH, _INDEXED, _EXIT = int(Control.BRANCH), int(Control.INDEXED), int(Control.EXIT)
_LOCAL, _GENERIC = int(Space.LOCAL), int(Space.GENERIC)
_NONE, _OFF_TRACE = int(Fault.NONE), int(Fault.OFF_TRACE)


@inline
def _cursor(replay, x):
    return at_cursor(i64(replay.cursors) + (i64(x.sm) * MAX_WARPS + i64(x.slot)) * CURSOR_BYTES)


@inline
def _hold(piece, change):
    """A cursor enters a piece with its instructions or its accesses, or leaves it."""
    at_held(i64(at_piece(piece).held)).count += change


@inline
def _behind(replay, cursor, piece):
    """The address of the piece behind another, or 0 if there is none."""
    found = i64(at_piece(piece).next)
    if found == 0:
        found = i64(call(i64(replay.load), i64(cursor.warp) - 1, piece))
    return max(found, i64(0))


@jit
def _enter(replay, cursor, number, index):
    """A warp comes to this slot: put the cursor at the begin, or where it was when it left an SM."""
    if cursor.warp != 0 or replay.left != 0:
        if call(i64(replay.change), number + 1, index) != 0:
            return True
    piece = i64(words_i64(i64(replay.first) + 8 * number, 1)[0])
    if piece == 0:
        piece = i64(call(i64(replay.load), number, i64(0)))
    if piece <= 0:
        return False
    cursor.warp = number + 1
    cursor.path = piece
    cursor.memory = piece
    cursor.run = -1
    cursor.left = 0
    cursor.guard = 0
    cursor.value = 0
    cursor.access = 0
    cursor.issued = 0
    _hold(piece, 2)
    return True


@jit
def _next_run(replay, cursor):
    """Go on to the warp's next run. Returns whether there is one."""
    cursor.run += 1
    while cursor.run >= at_piece(i64(cursor.path)).run_count:
        new = i64(_behind(replay, cursor, i64(cursor.path)))
        if new == 0:
            return False
        _hold(new, 1)
        _hold(i64(cursor.path), -1)
        cursor.path = new
        cursor.run = 0
        cursor.guard = 0
        cursor.value = 0
    run = at_run(i64(at_piece(i64(cursor.path)).runs) + i64(cursor.run) * RUN_BYTES)
    cursor.pc = run.pc
    cursor.left = run.count
    cursor.active = run.active
    return True


@jit
def _guard(replay, cursor):
    """The lanes in which the warp's next guarded instruction executes."""
    piece, at = i64(cursor.path), i64(cursor.guard)
    while piece != 0 and at >= at_piece(piece).guard_count:
        at = i64(0)
        piece = i64(_behind(replay, cursor, piece))
    return i64(words_u32(i64(at_piece(piece).guards) + 4 * at, 1)[0]) if piece != 0 else i64(0)


@jit
def _take_values(cursor, x, warp, instruction):
    """Put what steers a control instruction into its registers. Returns whether the trace has it."""
    for source in range(2):
        if instruction.kind[source] == _REGISTER and (source == 0 or instruction.op != _INDEXED):
            piece = at_piece(i64(cursor.path))
            words = words_u32(register_address(warp, i64(instruction.src[source])), LANES)
            if cursor.value + popcount(i64(x.mask)) > piece.value_count:
                return False
            for lane in range(LANES):
                if (i64(x.mask) >> lane) & 1:
                    words[lane] = words_u32(i64(piece.values) + 4 * i64(cursor.value), 1)[0]
                    cursor.value += 1
    return True


@jit
def _end(cursor):
    """The last instruction of a warp has issued, if its trace ends here; its accesses have all executed."""
    piece = at_piece(i64(cursor.path))
    if cursor.left == 0 and cursor.run + 1 == piece.run_count and piece.next < 0:
        _hold(i64(cursor.path), -1)
        _hold(i64(cursor.memory), -1)
        cursor.warp = 0


@jit
def _steer(replay, cursor, x, warp, instruction):
    """Let a warp without a stack go on at the next instruction of its trace, behind this one."""
    x.mask = cursor.active
    is_exit = instruction.group == _CONTROL and instruction.op == _EXIT
    if cursor.active != 0:
        warp.mask = warp.alive if is_exit else cursor.active
    following = i64(cursor.pc)
    if cursor.left == 0:
        piece, at = i64(cursor.path), i64(cursor.run) + 1
        while piece != 0 and at >= at_piece(piece).run_count:
            at = i64(0)
            piece = i64(_behind(replay, cursor, piece))
        if piece == 0:
            return
        following = i64(at_run(i64(at_piece(piece).runs) + at * RUN_BYTES).pc)
    if instruction.group == _CONTROL and instruction.op == _BRANCH and cursor.active != 0:
        instruction.target = following
    else:
        warp.pc = following - 1


@slot
def guide(context, where):
    """See that a warp is where its trace says, and prepare the lanes of its next guarded instruction."""
    x, warp = at_context(context), at_warp(where)
    replay = at_replay(i64(x.trace))
    instruction = at_instruction(address_of(warp, warp.pc))
    if i64(instruction.flags) & _ADDED != 0:
        return i64(_NONE)
    index = i64(x.sm) * MAX_WARPS + i64(x.slot)
    cursor = at_cursor(i64(replay.cursors) + index * CURSOR_BYTES)
    number = number_of(x)
    entered = cursor.warp != number + 1
    if entered and not _enter(replay, cursor, number, index):
        return i64(_OFF_TRACE)
    if cursor.left == 0 and not _next_run(replay, cursor):
        return i64(_OFF_TRACE)
    pc = i64(words_i32(i64(replay.pcs) + 4 * i64(warp.pc), 1)[0])
    if pc != cursor.pc:
        return i64(_OFF_TRACE)
    cursor.pc += 1
    cursor.left -= 1
    cursor.issued += 1
    replay.issued += 1
    if replay.steers != 0:
        _steer(replay, cursor, x, warp, instruction)
    else:
        if cursor.active != x.active:
            return i64(_OFF_TRACE)
        if instruction.guard != PT:
            if entered:
                x.mask = x.active & _guard(replay, cursor)
            cursor.guard += 1
        if instruction.group == _CONTROL and x.mask != 0 and steering_sources(instruction) != 0:
            if not _take_values(cursor, x, warp, instruction):
                return i64(_OFF_TRACE)
        if entered or instruction.guard != PT:
            words = words_u32(i64(x.preds), 2)
            words[0] = u32(_guard(replay, cursor))
            words[1] = u32(i64(cursor.issued))
    if instruction.group == _CONTROL and instruction.op == _EXIT:
        _end(cursor)
    return i64(_NONE)


@jit
def _next_access(replay, cursor):
    """Let the accesses of a warp go on in its next piece that has some. Returns whether there is one."""
    while cursor.access >= at_piece(i64(cursor.memory)).access_count:
        new = i64(_behind(replay, cursor, i64(cursor.memory)))
        if new == 0:
            return False
        _hold(new, 1)
        _hold(i64(cursor.memory), -1)
        cursor.memory = new
        cursor.access = 0
    return True


@slot
def access(context, where):
    """Touch what the trace says."""
    x = at_context(context)
    replay = at_replay(i64(x.trace))
    cursor = _cursor(replay, x)
    if cursor.warp == 0 or not _next_access(replay, cursor):
        return i64(_OFF_TRACE)
    piece = at_piece(i64(cursor.memory))
    found = at_access(i64(piece.accesses) + i64(cursor.access) * ACCESS_BYTES)
    lanes, shared = i64(found.lanes), i64(found.shared)
    if lanes & ~i64(x.mask) != 0:
        return i64(_OFF_TRACE)
    x.touched = lanes
    x.touched_shared = shared
    if found.listed != 0:
        at = i64(piece.addresses) + 4 * i64(found.first)
        for lane in range(LANES):
            if (lanes >> lane) & 1:
                x.address[lane] = words_u32(at, 1)[0]
                at += 4
    else:
        base, stride = i64(found.base), i64(found.stride)
        for lane in range(x.lanes):
            x.address[lane] = (base + lane * stride) & 0xFFFF_FFFF
    space = at_instruction(where).space
    if space == _LOCAL or space == _GENERIC:
        distance = i64(x.local_physical) - LOCAL_PHYSICAL
        for lane in range(x.lanes):
            beyond = i64(x.address[lane]) >= LOCAL_PHYSICAL and (shared >> lane) & 1 == 0
            x.address[lane] += distance if beyond else i64(0)
    if x.probe == 0:
        cursor.access += 1
    return i64(_NONE)


@slot
def nothing(_context, _where):
    """Compute nothing."""
    return i64(_NONE)


class Replay:
    """The part of a launch whose trace is replayed.

    ``load`` is called for the piece of a warp behind another one, or its first (0), and returns its address; -1: there
    is none. ``pcs`` are the numbers in the recorded code of the launch's instructions. ``error`` is an exception that
    came in ``load``.
    """

    guide = guide

    def __init__(self, sms: int, warps: int, pcs: np.ndarray, steers: bool, load: Callable[[int, int], int]) -> None:
        memory = (Group.MEMORY, Group.ATOMIC, Group.TEXTURE)
        self.functions: dict[Group, Any] = {group: access if group in memory else nothing for group in SLOTS}
        self._load = load
        self._pcs = np.ascontiguousarray(pcs, np.int32)
        self.first = np.zeros(warps, np.int64)
        self._cursors = np.zeros((sms, MAX_WARPS), CURSOR)
        self._away: dict[int, bytes] = {}
        self._record = np.zeros((), REPLAY)
        self._slots = [hosted(calling_back(each)) for each in (self._loaded, self._changed)]
        for name, value in dict(
            first=self.first.ctypes.data, pcs=self._pcs.ctypes.data, steers=steers, cursors=self._cursors.ctypes.data,
            load=address(self._slots[0]), change=address(self._slots[1]),
        ).items():  # fmt: skip
            self._record[name] = value
        self.error: BaseException | None = None

    @property
    def address(self) -> int:
        """That of its record."""
        return self._record.ctypes.data

    @property
    def issued(self) -> int:
        """Instructions of the trace that have issued."""
        return int(self._record["issued"])

    @property
    def unfinished(self) -> bool:
        """Whether a warp has not come to the end of its trace."""
        return bool(self._away) or bool(self._cursors["warp"].any())

    def _loaded(self, warp: int, piece: int) -> int:
        try:
            return self._load(warp, piece) if self.error is None else -1
        except BaseException as error:  # compiled code has called, and cannot be unwound
            self.error = error
            return -1

    def _changed(self, warp: int, index: int) -> int:
        """A warp (plus 1) takes a cursor: keep that of the one before, and give it its own, if it has one."""
        cursor = self._cursors.reshape(-1)[index : index + 1]
        if cursor["warp"][0]:
            self._away[int(cursor["warp"][0])] = cursor.tobytes()
        cursor["warp"] = 0
        own = self._away.pop(warp, None)
        if own is not None:
            cursor[:] = np.frombuffer(own, CURSOR)
        self._record["left"] = len(self._away)
        return own is not None
