"""Values in lines and requests, where the description says ``l1.values = "lines"``.

Device memory then holds what the L2 and DRAM have. It is read and written when a slice looks a request up, in the order
of the look-ups: a read takes its line then, a write enters its bytes, an atomic operates. All else is copies: the lines
of the L1s, what reads in flight have taken (by the MSHR that waits for it), and what a request brings, its *cargo* (by
packet). On a mesh, whose virtual channels let packets pass each other, what an SM has sent for one line takes effect in
the order in which it was sent: when the slice looks one of them up, after those before it.

Local memory, contexts, registers, instructions and constants have no values here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lockstep.models.execution.isa import GLOBAL_BASE, LOCAL_PHYSICAL
from lockstep.models.jit import (
    addressof,
    call,
    entry,
    i64,
    inline,
    jit,
    pointer_to,
    record,
    u32,
    words_i64,
    words_u32,
    words_u64,
)
from lockstep.models.memory.fabric import READ, WRITE, packet_of, wake_sm
from lockstep.spec.mapping import LINE_WORDS
from lockstep.spec.parameters import MAX_WARPS, TICKETS, Gpu

LINE_BYTES = 4 * LINE_WORDS  # of the longest line; what a line of any length takes here
IDENTITIES = 2048  # more than a path that delivers has for its accesses
CARRIED_WORDS = 8  # of a lane, in a memory instruction on its way: the widest access has as many

CARGO = record(
    [
        ("words", "u4", (LINE_WORDS,)),  # of a write, its line; the bytes are those of the packet's mask
        ("waits", "i8"),  # the packet has not taken effect yet; 0: it has, or it has no values
        ("address", "i8"),  # of its line
        ("counter", "i8"),  # host address of the count of what has not taken effect (``lsu.performed``); 0: none
        ("instruction", "i8"),  # of an atomic, host addresses: the instruction, ...
        ("addresses", "i8"),  # ... the addresses of all lanes, ...
        ("operands", "i8"),  # ... their operands, in whose place the results come (``lsu.carried``); ...
        ("lanes", "i8"),  # ... and those of this packet
        ("before", "i4"),  # on a mesh, in the list of what the SM has sent and has not taken effect; 0: none
        ("after", "i4"),
    ]
)
_cargo_at = pointer_to(CARGO)
_CARGO_BYTES = CARGO.itemsize


@inline
def is_global(address):
    """Whether an address is one of global memory, whose values lines and requests have."""
    return GLOBAL_BASE <= address < LOCAL_PHYSICAL


@inline
def cargo_of(memory, index):
    """What a packet brings."""
    return _cargo_at(memory.cargo + i64(index) * _CARGO_BYTES)


@inline
def copy_line(to, at, nbytes):
    """Copy a line between host addresses."""
    target, source = words_u64(to, LINE_BYTES // 8), words_u64(at, LINE_BYTES // 8)
    for k in range(nbytes >> 3):
        target[k] = source[k]


@inline
def in_memory(memory, address):
    """Where a byte of global memory lies in host memory."""
    return memory.arena + address - GLOBAL_BASE


@jit
def sent(memory, port, address):
    """The last request of a port is one of a line of global memory: it is to take effect."""
    index = i64(port.requests.tail)
    cargo = cargo_of(memory, index)
    cargo.waits = 1
    cargo.address = address
    cargo.counter = 0
    if memory.mesh != 0:
        cargo.before = port.last_sent
        cargo.after = 0
        if port.last_sent != 0:
            cargo_of(memory, port.last_sent).after = index
        else:
            port.first_sent = index
        port.last_sent = index


@jit
def _leave_list(memory, port, cargo):
    """Take a packet out of the list of its port."""
    before, after = i64(cargo.before), i64(cargo.after)
    if before != 0:
        cargo_of(memory, before).after = after
    else:
        port.first_sent = after
    if after != 0:
        cargo_of(memory, after).before = before
    else:
        port.last_sent = before


@jit
def _write(memory, where, cargo, packet):
    """Enter the bytes of a write."""
    target = words_u32(where, LINE_WORDS)
    low, high = i64(packet.mask.low), i64(packet.mask.high)
    if low & high == -1:
        copy_line(where, addressof(cargo), memory.line_bytes)
        return
    for k in range(memory.line_bytes >> 2):
        enabled = ((low if k < 16 else high) >> 4 * (k & 15)) & 15
        if enabled == 15:
            target[k] = cargo.words[k]
        elif enabled != 0:
            keep = (enabled & 1) * 0xFF | (enabled >> 1 & 1) * 0xFF00
            keep |= (enabled >> 2 & 1) * 0xFF_0000 | (enabled >> 3) * 0xFF00_0000
            target[k] = u32(i64(target[k]) & ~keep | i64(cargo.words[k]) & keep)


@jit
def _perform(memory, index, cargo):
    """Let a packet take effect."""
    packet = packet_of(memory, index)
    cargo.waits = 0
    memory.effects += i64(packet.kind != READ)
    where = in_memory(memory, i64(cargo.address))
    if packet.kind == READ:
        place = i64(packet.sm) * memory.mshrs + i64(packet.entry)
        copy_line(memory.brought + place * LINE_BYTES, where, memory.line_bytes)
    elif packet.kind == WRITE:
        _write(memory, where, cargo, packet)
    else:
        call(memory.operate, addressof(cargo), memory.arena)
    if memory.mesh != 0:
        _leave_list(memory, memory.ports[packet.sm], cargo)
    if cargo.counter != 0:
        count = words_i64(cargo.counter, 1)
        count[0] -= 1
        if count[0] == 0:
            wake_sm(memory, packet.sm, memory.now + 1)


@jit
def recall(memory, port, index):
    """A request that has been sent has no values: memory has them already."""
    cargo = cargo_of(memory, index)
    cargo.waits = 0
    if memory.mesh != 0:
        _leave_list(memory, port, cargo)


@jit
def take_effect(memory, index):
    """A slice has looked a packet up."""
    cargo = cargo_of(memory, index)
    if cargo.waits == 0:
        return
    if memory.mesh != 0:
        older = i64(memory.ports[packet_of(memory, index).sm].first_sent)
        while older != index:
            first = cargo_of(memory, older)
            following = i64(first.after)
            if first.address == cargo.address:
                _perform(memory, older, first)
            older = following
    _perform(memory, index, cargo)


@entry
def finish_stores(memory, packets, grid):
    """Let the stores that a grid has on their way take effect: it has ended, and the host may read what it has left."""
    while True:
        oldest = i64(0)
        for index in range(1, packets):
            packet = packet_of(memory, index)
            mine = packet.kind == WRITE and packet.grid == grid and cargo_of(memory, index).waits != 0
            if mine and (oldest == 0 or packet.born < packet_of(memory, oldest).born):
                oldest = i64(index)
        if oldest == 0:
            return
        _perform(memory, oldest, cargo_of(memory, oldest))


@dataclass
class Values:
    """The arrays of all copies. They must stay alive as long as the records that name them are in use."""

    lines: np.ndarray  # of the L1s, by SM, set and way
    brought: np.ndarray  # by SM and MSHR
    cargo: np.ndarray  # by packet
    carried: np.ndarray  # of memory instructions on their way, by SM and token (``lsu.carried``)
    answers: np.ndarray  # by SM and identity, lines that answer a path that moves them itself


def values_create(gpu: Gpu, packets: int) -> Values | None:
    """The arrays for a GPU with so many packets, if lines have values."""
    if gpu.l1.values == "memory":
        return None
    sms = gpu.core.sms
    return Values(
        lines=np.zeros((sms, gpu.l1.sets * gpu.l1.ways, LINE_WORDS), np.uint32),
        brought=np.zeros((sms, gpu.l1.mshrs, LINE_WORDS), np.uint32),
        cargo=np.zeros(packets, CARGO),
        carried=np.zeros((sms, MAX_WARPS * TICKETS, CARRIED_WORDS * LINE_WORDS), np.uint32),
        answers=np.zeros((sms, IDENTITIES, LINE_WORDS), np.uint32),
    )
