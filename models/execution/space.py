"""Address spaces: from the addresses of an instruction's lanes to places in host memory.

A space has a *window*, the addresses under which a program sees it (its own spaces start at 0, generic ones where
``isa`` says), and a *home*: its bytes in host memory and the device address of the first. Resolving an instruction
checks all its lanes and leaves device addresses in the context (scratchpad offsets for shared memory); nothing is
accessed before every lane has passed.

Memory is read and written in 32-bit words, so every home must be aligned to, and padded to, four bytes. The words of
a thread's local memory lie 32 words apart: u32[word][lane].
"""

from __future__ import annotations

from lockstep.models.execution.isa import (
    GLOBAL_BASE,
    GRANULE,
    LANES,
    LOCAL_PHYSICAL,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    RZ,
    SHARED_WINDOW,
    Fault,
    Fetch,
    Kind,
    Space,
    at_grid,
)
from lockstep.models.execution.operands import ALL, register_address, scratch_address
from lockstep.models.jit import ctz, i64, inline, jit, u64, without_lowest, words_i16, words_i64, words_u32

GENERIC, GLOBAL, SHARED = int(Space.GENERIC), int(Space.GLOBAL), int(Space.SHARED)
LOCAL, CONST, PARAM = int(Space.LOCAL), int(Space.CONST), int(Space.PARAM)
PAIRED = int(max(Space)) + 1
"""The part of a CTA's scratchpad that lies in its pair's segment: in no instruction, but what lanes resolve to."""
FAULTY = -1
CONSECUTIVE, UNIFORM = 8, 16
"""Added to the space that :func:`resolve` returns when all lanes access memory: lane ``l`` at lane 0 plus ``l`` times
the size, or all at one address."""

_PAIR, _REGISTER, _IMMEDIATE = int(Fetch.PAIR), int(Kind.REGISTER), int(Kind.IMMEDIATE)
_NONE, _OUT_OF_BOUNDS = int(Fault.NONE), int(Fault.OUT_OF_BOUNDS)
_MISALIGNED, _READ_ONLY = int(Fault.MISALIGNED), int(Fault.READ_ONLY)
_GRANULE_SHIFT = GRANULE.bit_length() - 1
_SIGN = -(1 << 63)
_LOCAL_ROW = 4 * LANES  # bytes from a word of a thread's local memory to its next

assert 1 << _GRANULE_SHIFT == GRANULE


@inline
def space_of(address):
    """The space of a generic address. Addresses of none count as global, where they are out of bounds."""
    space = SHARED if address >= SHARED_WINDOW else PARAM
    space = LOCAL if address >= LOCAL_WINDOW else space
    return GLOBAL if address >= GLOBAL_BASE or address < PARAM_WINDOW else space


@inline
def window(space, generic):
    """The first address of a space, as generic addresses or its own name it."""
    if space == GLOBAL or space == CONST:
        return GLOBAL_BASE
    if not generic:
        return 0
    if space == SHARED:
        return SHARED_WINDOW
    return LOCAL_WINDOW if space == LOCAL else PARAM_WINDOW


@inline
def extent(x, space):
    """Bytes of a space, as one thread sees it."""
    if space == SHARED or space == PAIRED:
        return at_grid(x.grid).shared_bytes
    if space == LOCAL:
        return at_grid(x.grid).local_bytes
    if space == PARAM:
        return at_grid(x.grid).param_bytes
    return x.memory_bytes


@inline
def host_address(x, space):
    """Where a space lies in host memory."""
    if space == SHARED:
        return x.shared
    if space == LOCAL:
        return x.local
    if space == PARAM:
        return at_grid(x.grid).param
    return x.pair_shared if space == PAIRED else x.memory


@inline
def device_address(x, space):
    """The address in the context of the first byte of a space."""
    if space == SHARED or space == PAIRED:
        return 0
    if space == LOCAL:
        return x.local_physical
    if space == PARAM:
        return PARAM_WINDOW + at_grid(x.grid).param_offset
    return GLOBAL_BASE


@inline
def marks_from(x, space):
    """Bytes from a byte of a space to its mark (``written``); 0: the space has none."""
    if space == SHARED:
        return x.shared_marks
    if space == LOCAL:
        return x.local_marks
    if space == PARAM:
        return i64(0)
    return x.pair_marks if space == PAIRED else x.memory_marks


@inline
def words_of(x, space):
    """32-bit words in the home of a space."""
    return (extent(x, space) + 3) // 4 * (LANES if space == LOCAL else 1)


@inline
def row_bytes(space):
    """Bytes from a word of one thread to its next."""
    return _LOCAL_ROW if space == LOCAL else 4


@inline
def _interleaved(offset, lane):
    """The place of a byte of a thread's local memory in the warp's."""
    return (offset >> 2) * _LOCAL_ROW + lane * 4 + (offset & 3)


@jit
def _granules_hold(x, size, consecutive, uniform):
    """Whether every access of ``size`` bytes (aligned, so inside one granule) lies in bytes that are allocated."""
    mask, address = (i64(1) if uniform else x.mask), x.address
    valid = words_i16(x.valid, x.memory_bytes >> _GRANULE_SHIFT)
    if consecutive:
        start = address[0] - GLOBAL_BASE
        last = start + (LANES - 1) * size
        whole = True
        for granule in range(start >> _GRANULE_SHIFT, last >> _GRANULE_SHIFT):
            whole &= valid[granule] == GRANULE
        return whole and (last & (GRANULE - 1)) + size <= valid[last >> _GRANULE_SHIFT]
    while mask != 0:
        offset = u64(address[ctz(mask)] - GLOBAL_BASE)
        mask = without_lowest(mask)
        if i64(offset & u64(GRANULE - 1)) + size > valid[offset >> u64(_GRANULE_SHIFT)]:
            return False
    return True


@jit
def _lane_fault(x, space, offset, size, writes):
    """What is wrong with one access."""
    if writes and (space == CONST or space == PARAM):
        return _READ_ONLY
    if offset & (size - 1) != 0:
        return _MISALIGNED
    if offset < 0 or offset > extent(x, space) - size:
        return _OUT_OF_BOUNDS
    if space == GLOBAL or space == CONST:
        valid = words_i16(x.valid, x.memory_bytes >> _GRANULE_SHIFT)
        if (offset & (GRANULE - 1)) + size > valid[offset >> _GRANULE_SHIFT]:
            return _OUT_OF_BOUNDS
    return _NONE


@jit
def resolve_lanes(x, space, size, writes):
    """Check and place, lane by lane, the addresses in the context: of mixed spaces, or with a lane at fault.

    Returns GENERIC, or FAULTY as :func:`resolve`.
    """
    generic = space == GENERIC
    in_shared = i64(0)
    placed = words_i64(scratch_address(x, 1), LANES)
    rest = x.mask
    while rest != 0:
        lane = ctz(rest)
        rest = without_lowest(rest)
        address = i64(x.address[lane])
        if generic:
            space = space_of(address)
        offset = address - window(space, generic)
        fault = _lane_fault(x, space, offset, size, writes)
        if fault != _NONE:
            x.fault = fault
            x.fault_lane = lane
            x.fault_address = address
            return FAULTY
        if space == SHARED:
            in_shared |= i64(1) << lane
        if space == LOCAL:
            offset = _interleaved(offset, lane)
        placed[lane] = device_address(x, space) + offset
    for lane in range(x.lanes):
        x.address[lane] = placed[lane] if (x.mask >> lane) & 1 else x.address[lane]
    x.touched = x.mask
    x.touched_shared = in_shared
    return i64(GENERIC)


@inline
def _place(x, space, start):
    """Turn the checked addresses of lanes that are all in one space into device addresses."""
    address = x.address
    origin = device_address(x, space)
    if space == LOCAL:
        for lane in range(x.lanes):
            address[lane] = origin + _interleaved(address[lane] - start, lane)
    elif origin != start:
        for lane in range(x.lanes):
            address[lane] += origin - start
    x.touched = x.mask
    if space == SHARED:
        x.touched_shared = x.mask


@jit
def resolve(x, instruction, size, writes):
    """Check the accesses of all lanes of the mask, ``size`` bytes each, and fill ``address`` and ``touched``.

    Returns the space of all lanes (plus CONSECUTIVE or UNIFORM), GENERIC when they are in several (:func:`lanes_in`),
    or FAULTY with the fault of the first lane at fault in the context. A scratchpad whose upper bytes lie in the pair's
    segment counts as two spaces. Addresses of 32 bits wrap, as in hardware.
    """
    x.touched = 0
    x.touched_shared = 0
    mask, address = x.mask, x.address
    offset = i64(instruction.offset)
    if instruction.kind[0] == _IMMEDIATE:
        offset += i64(instruction.imm[0])
    in_register = instruction.kind[0] == _REGISTER and instruction.src[0] != RZ
    pair = instruction.fetch[0] == _PAIR
    register = i64(instruction.src[0]) if in_register else i64(0)
    low = words_u32(register_address(x, register), LANES)
    high = words_u32(register_address(x, register + (1 if in_register and pair else 0)), LANES)
    keep_low = 0xFFFF_FFFF if in_register else 0
    keep_high = keep_low if pair else 0
    wrap = -1 if pair else 0xFFFF_FFFF

    # All lanes are taken to be in the space of the first: one in another window fails the check of the bounds.
    space = i64(instruction.space)
    generic = space == GENERIC
    leader = ctz(mask)
    if generic:
        space = space_of(i64((((i64(high[leader]) & keep_high) << 32) | (i64(low[leader]) & keep_low)) + offset))
    start = window(space, generic)
    limit = extent(x, space) - size
    first = i64((((i64(high[0]) & keep_high) << 32) | (i64(low[0]) & keep_low)) + offset) & wrap
    wrong = i64(writes and (space == CONST or space == PARAM))
    gaps = i64(mask ^ ALL)
    spread = gaps
    for lane in range(x.lanes):
        where = i64((((i64(high[lane]) & keep_high) << 32) | (i64(low[lane]) & keep_low)) + offset) & wrap
        address[lane] = where
        gaps |= where - first - lane * size
        spread |= where - first
        where -= start
        wrong |= ((where & (size - 1)) | ((where | (limit - where)) & _SIGN)) & -((mask >> lane) & 1)
    consecutive, uniform = gaps == 0, spread == 0
    if wrong == 0 and (start != GLOBAL_BASE or _granules_hold(x, size, consecutive, uniform)):
        _place(x, space, start)
        if space == LOCAL:  # interleaved: neither on the device
            return i64(space)
        if space == SHARED and x.own_shared < at_grid(x.grid).shared_bytes:
            space = _segment(x)
            if space == GENERIC:
                return i64(GENERIC)
        return i64(space + (CONSECUTIVE if consecutive else 0) + (UNIFORM if uniform else 0))
    return resolve_lanes(x, i64(instruction.space), size, writes)


@inline
def program_address(x, space, generic, lane):
    """The address by which the program named a byte whose place is in the context."""
    offset = i64(x.address[lane]) - device_address(x, space)
    if space == LOCAL:
        offset = offset // _LOCAL_ROW * 4 + (offset & 3)
    return window(SHARED if space == PAIRED else space, generic) + offset


@jit
def _paired(x):
    """Of the lanes that access the scratchpad, those that access the pair's segment of it."""
    lanes = i64(0)
    for lane in range(x.lanes):
        lanes |= i64(x.address[lane] >= x.own_shared) << lane
    return lanes & i64(x.touched_shared)


@jit
def _segment(x):
    """The segment of lanes that all access the scratchpad: SHARED, PAIRED, or GENERIC for both."""
    paired = _paired(x)
    if paired == 0:
        return SHARED
    return PAIRED if paired == x.touched_shared else GENERIC


@jit
def lanes_in(x, space):
    """Of lanes resolved in several spaces, those in one."""
    if space == SHARED or space == PAIRED:
        paired = _paired(x)
        return paired if space == PAIRED else i64(x.touched_shared) & ~paired
    lanes = i64(0)
    rest = x.touched & ~x.touched_shared
    while rest != 0:
        lane = ctz(rest)
        rest = without_lowest(rest)
        address = x.address[lane]
        home = LOCAL if address >= LOCAL_PHYSICAL else GLOBAL
        if (PARAM if address < GLOBAL_BASE else home) == space:
            lanes |= i64(1) << lane
    return lanes


@inline
def spaces(found):
    """The first and the last of the spaces in which :func:`resolve` has found lanes."""
    space = found & (CONSECUTIVE - 1)
    return (i64(GLOBAL), i64(PAIRED)) if space == GENERIC else (i64(space), i64(space))


@inline
def lanes_found(x, found, space):
    """The lanes that it has found in one of them."""
    return i64(x.mask) if found & (CONSECUTIVE - 1) != GENERIC else i64(lanes_in(x, space))
