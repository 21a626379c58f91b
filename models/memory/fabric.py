"""What the parts of the memory system share: packets, queues, wake times, and the record that joins them.

Nothing is stepped cycle by cycle. A part writes down the next core cycle at which it can do something
(``MEMORY.wakes``) and is visited in that cycle only; a visit changes nothing but what is due. So it does not matter
whether :func:`~lockstep.models.memory.system.memory_step` is called in every cycle or only when something is due.

A request is one :data:`PACKET` from the L1 until its reply is back, linked from queue to queue. Packets live in one pool
and are known by their index; 0 is none.
"""

from lockstep.models.jit import i64, inline, pointer_to, record
from lockstep.models.memory.clock import CLOCK
from lockstep.models.parameters import MAX_CHANNELS, MAX_L2_SLICES, MAX_SMS

FOREVER = 1 << 62  # the wake time of a part that waits for another one

READ, WRITE, ATOMIC = range(3)  # what a packet asks for

IDLE, WAITING, GRANTED = range(3)  # a sender: free, waits for a buffer, was given one while it waited

# Where the parts' entries in ``MEMORY.wakes`` begin, in the order in which they are visited.
CHANNELS = 0
SLICES = CHANNELS + MAX_CHANNELS
REQUESTS = SLICES + MAX_L2_SLICES
PARTS = REQUESTS + MAX_SMS

PACKET = record(
    [
        ("address", "i8"),  # byte address inside the slice (see ``l1.py``)
        ("ready", "i8"),  # core cycle from which the next part may take it
        ("born", "i8"),  # core cycle of the L1's request
        ("entered", "i8"),  # core cycle in which it entered the queue that it is in
        ("next", "i4"),  # in its queue
        ("kind", "i4"),
        ("bytes", "i4"),  # data: written, of an atomic, or of the line
        ("lanes", "i4"),  # of an atomic: lanes on one address
        ("sm", "i4"),
        ("slice", "i4"),
        ("entry", "i4"),  # the MSHR that waits for it, in the L1 or (for DRAM) in the slice
        ("bank", "i4"),  # in DRAM
        ("row", "i8"),
    ]
)

QUEUE = record([("head", "i4"), ("tail", "i4"), ("count", "i8")])

# How long a queue held how many: the integral over time, and the sum over those that left. Little's law: they agree.
OCCUPANCY = record(
    [
        ("count", "i8"),  # inside now
        ("changed", "i8"),  # core cycle of the last change
        ("entered", "i8"),  # how many in all
        ("integral", "i8"),  # of ``count`` over time, in core cycles
        ("residence", "i8"),  # sum of the times inside of those that have left, in core cycles
    ]
)

# One direction of the crossbar. Senders are the ports of the SMs or the slices, receivers the slices or the SMs.
DIRECTION = record(
    [
        ("in_free", "i8", (MAX_SMS,)),  # tick from which a sender's port is free
        ("out_free", "i8", (MAX_SMS,)),  # tick from which a receiver's port is free
        ("credits", "i8", (MAX_SMS,)),  # free packet buffers of a receiver
        ("first", "i4", (MAX_SMS,)),  # senders that wait for a receiver's buffer, as 1 + index; 0: none
        ("last", "i4", (MAX_SMS,)),
        ("next", "i4", (MAX_SMS,)),
        ("state", "i4", (MAX_SMS,)),  # of a sender
        ("since", "i8", (MAX_SMS,)),  # core cycle from which it waits
        ("packets", "i8"),
        ("flits", "i8"),
        ("bytes", "i8"),  # headers and data
        ("blocked", "i8"),  # core cycles that senders waited for a buffer, added up
    ]
)

# One per SM: what lies between its L1 and the crossbar.
PORT = record(
    [
        ("memory", "i8"),  # host address of the MEMORY record
        ("sm", "i4"),
        ("group", "i4"),  # its port of the crossbar
        ("requests", QUEUE),
        ("replies", QUEUE),
        ("reply_ready", "i8"),  # core cycle at which the first reply is there; FOREVER: none on the way
        ("full", "i4"),  # the L1 has refused because ``requests`` was full, and wants to be woken
    ]
)

TIMINGS = ("tCL", "tWL", "tRP", "tRC", "tRAS", "tRCD", "tRRD", "tCCD", "tCDLR", "tWR", "burst")

MEMORY = record(
    [
        ("wake", "i8"),  # the next core cycle in which anything is due: the least of ``wakes``
        ("sms", "i8"),
        ("groups", "i8"),  # crossbar ports of the SMs
        ("slices", "i8"),
        ("channels", "i8"),
        ("concentration", "i8"),
        ("pool", "i8"),  # host addresses: PACKET, SLICE and CHANNEL records
        ("slice_base", "i8"),
        ("channel_base", "i8"),
        ("free", "i8"),  # the first free packet
        ("packets", "i8"),  # packets in use; 0: nothing is in flight
        ("header_bytes", "i8"),
        ("flit_bytes", "i8"),
        ("line_bytes", "i8"),
        ("line_shift", "i8"),
        ("chunk_shift", "i8"),  # of ``dram.interleave``
        ("row_shift", "i8"),
        ("banks", "i8"),
        ("crossbar_latency", "i8"),
        ("slice_delay", "i8"),
        ("return_delay", "i8"),
        ("atomic", "i8"),  # L2 cycles per operation
        ("merges", "i8"),  # per L2 MSHR
        ("interconnect", CLOCK),
        ("l2", CLOCK),
        ("dram", CLOCK),
        *((name, "i8") for name in TIMINGS),  # DRAM timings in ticks
        ("requests", DIRECTION),
        ("replies", DIRECTION),
        ("flight", OCCUPANCY),  # requests between the L1s and back, stores until a slice has them
        ("chosen", "i4", (MAX_SMS,)),  # per crossbar port: the SM whose turn it is
        ("ports", PORT, (MAX_SMS,)),
        ("inputs", QUEUE, (MAX_L2_SLICES,)),  # packets on their way to a slice, or there
        ("waiting", OCCUPANCY, (MAX_L2_SLICES,)),  # of ``inputs``
        ("returns", QUEUE, (MAX_L2_SLICES,)),  # lines on their way from DRAM to a slice
        ("wants_dram", "i4", (MAX_L2_SLICES,)),  # a slice that waits for room in its channel's queue
        ("wakes", "i8", (PARTS,)),
        ("sm_wake", "i8", (MAX_SMS,)),  # when an SM next finds something at its port: a reply, or room after a refusal
    ]
)

memory_at = pointer_to(MEMORY)
_packet_at = pointer_to(PACKET)
_PACKET_BYTES = PACKET.itemsize


@inline
def packet_of(memory, index):
    """The packet with an index."""
    return _packet_at(memory.pool + i64(index) * _PACKET_BYTES)


@inline
def take(memory):
    """The index of a packet out of the pool, which is large enough for all queues together."""
    index = memory.free
    memory.free = packet_of(memory, index).next
    memory.packets += 1
    return index


@inline
def give(memory, index):
    """Put a packet back into the pool."""
    packet_of(memory, index).next = memory.free
    memory.free = index
    memory.packets -= 1


@inline
def push(memory, queue, index):
    """Append a packet."""
    packet_of(memory, index).next = 0
    if queue.head == 0:
        queue.head = index
    else:
        packet_of(memory, queue.tail).next = index
    queue.tail = index
    queue.count += 1


@inline
def pop(memory, queue):
    """Remove and return the first packet; there is one."""
    index = queue.head
    queue.head = packet_of(memory, index).next
    queue.count -= 1
    return index


@inline
def enter(occupancy, now):
    """Count one more from now on."""
    occupancy.integral += occupancy.count * (now - occupancy.changed)
    occupancy.changed = now
    occupancy.count += 1
    occupancy.entered += 1


@inline
def leave(occupancy, now, since):
    """Count one less from now on: one that entered at ``since``."""
    occupancy.integral += occupancy.count * (now - occupancy.changed)
    occupancy.changed = now
    occupancy.count -= 1
    occupancy.residence += now - since


@inline
def wake_up(memory, part, cycle):
    """See to it that a part is visited at ``cycle`` at the latest."""
    if cycle < memory.wakes[part]:
        memory.wakes[part] = cycle
    if cycle < memory.wake:
        memory.wake = cycle


@inline
def wake_sm(memory, sm, cycle):
    """Tell an SM that it finds something new at ``cycle``."""
    if cycle < memory.sm_wake[sm]:
        memory.sm_wake[sm] = cycle
