"""What the parts of the memory system share: packets, queues, wake times, and the record that joins them.

Nothing is stepped cycle by cycle. A part enters the next core cycle in which it can do something into a timing wheel
and is visited then; a visit changes nothing but what is due. So it does not matter whether
:func:`~lockstep.models.memory.system.memory_step` is called in every cycle or only when something is due.

A request is one :data:`PACKET` from the L1 until its reply is back, linked from queue to queue. Packets live in a pool
and are known by their index; 0 is none.

Speed is a matter of the host's caches. Records hold what is used together side by side, and arrays that are sized for
the largest configuration stand behind what every configuration uses.
"""

from lockstep.models.jit import i64, inline, pointer_to, record
from lockstep.models.memory.clock import CLOCK
from lockstep.models.memory.masks import BYTES
from lockstep.spec.parameters import MAX_CHANNELS, MAX_GRIDS, MAX_L2_SLICES, MAX_SMS

READ, WRITE, ATOMIC = range(3)  # what a packet asks for

IDLE, WAITING, GRANTED = range(3)  # a sender: free, waits for a buffer, was given one while it waited

WHEEL = 128  # core cycles that the timing wheel looks ahead; who has to wait longer looks again then
MAX_RENEWED = 16  # of a cycle: as many accesses as an L1 takes
WORD = 32  # bits used of a word of a bit mask
NETWORKS = 2  # of a mesh
MAX_WORDS = (MAX_CHANNELS + MAX_L2_SLICES + MAX_SMS + NETWORKS + WORD - 1) // WORD

PACKET = record(
    [
        ("address", "i8"),  # byte address inside the slice (see ``l1.py``)
        ("ready", "i8"),  # core cycle from which the next part may take it
        ("born", "i8"),  # core cycle of the L1's request
        ("entered", "i8"),  # core cycle in which it entered the queue that it is in
        ("mask", BYTES),  # of its line, those that it reads or writes
        ("next", "i4"),  # in its queue
        ("row", "i4"),  # in DRAM
        ("entry", "i2"),  # the MSHR that waits for it, in the L1 or (for DRAM) in the slice
        ("bytes", "u1"),  # data: read, written, or of an atomic
        ("sm", "u1"),
        ("slice", "u1"),
        ("lanes", "u1"),  # of an atomic: lanes on one address; 1: a store that its port counts, or a read past the L1
        ("kind", "u1"),
        ("grid", "u1"),  # on whose behalf
    ]
)
assert PACKET.itemsize == 64  # one cache line of the host

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

# One direction of the interconnect. Senders are the ports of the SMs or the slices; receivers the slices or the SMs.
# Times and lists are the crossbar's; the mesh has its own (``mesh.py``).
SENDER = record(
    [
        ("free", "i8"),  # tick from which the port is free
        ("since", "i8"),  # core cycle from which it waits
        ("state", "i4"),
        ("next", "i4"),  # who waits behind it for the same receiver, as 1 + index; 0: none
    ]
)
RECEIVER = record(
    [
        ("free", "i8"),  # tick from which the port is free; of replies, one per port of the SMs
        ("credits", "i8"),  # free packet buffers
        ("first", "i4"),  # senders that wait for a buffer, as 1 + index; 0: none
        ("last", "i4"),
    ]
)
SENT = record([("packets", "i8"), ("flits", "i8"), ("bytes", "i8")])
DIRECTION = record(
    [
        ("packets", "i8"),
        ("flits", "i8"),
        ("bytes", "i8"),  # headers and data
        ("share", SENT),  # of grid 1 in these
        ("blocked", "i8"),  # core cycles that senders waited for a buffer, added up
        ("senders", SENDER, (MAX_SMS,)),
        ("receivers", RECEIVER, (MAX_SMS,)),
    ]
)

# What lies between the crossbar and a slice, and between DRAM and a slice.
GATE = record(
    [
        ("input", QUEUE),  # packets on their way to the slice, or there
        ("returns", QUEUE),  # sectors on their way from DRAM
        ("waiting", OCCUPANCY),  # of ``input``
        ("needs", "i4"),  # room in its channel's queue that the slice waits for; 0: it does not wait
        ("next", "i4"),  # the slice that waits behind it, as 1 + index; 0: none
    ]
)

# One per SM: what lies between its L1 and the crossbar.
PORT = record(
    [
        ("memory", "i8"),  # host address of the MEMORY record
        ("sm", "i4"),
        ("group", "i4"),  # its port of the crossbar
        ("chosen", "i8"),  # in the first SM of a port: which of the port's SMs sends
        ("grid", "i8"),  # on whose behalf the SM makes requests now
        ("requests", QUEUE),
        ("replies", QUEUE),
        ("reply_ready", "i8"),  # core cycle at which the first reply is there; NEVER: none on the way
        ("full", "i4"),  # the L1 has refused because ``requests`` was full, and wants to be woken
        ("stores", "i8", (MAX_GRIDS,)),  # of each grid's kernels, that no slice has looked up yet
        ("told", "i8"),  # who reads these sets this: its SM is stepped in the cycle after one has become less
        ("flight", OCCUPANCY),  # requests between the L1 and back, stores until a slice has them
        ("spare", QUEUE),  # packets that the SM has out of the pool, for requests to come
        ("ahead", "i8"),  # 1 + first cycle of the window in which the SM is ahead (``models/windows.py``); 0: it is not
        ("taken", "i8"),  # bit k: it has taken a reply in the cycle k of the window
        ("renewed", "i4"),  # loads past the L1 that have joined a read since, ...
        ("renew", "i4", (MAX_RENEWED,)),  # ... and the MSHRs of those reads
        ("early", "i8"),  # it has found no room in its queue, where there may have been some, or no packet: a fault
        ("first_sent", "i4"),  # on a mesh: packets that have not taken effect, in the order of sending (``values``)
        ("last_sent", "i4"),
    ]
)

TIMINGS = ("tCL", "tWL", "tRP", "tRC", "tRAS", "tRCD", "tRRD", "tCDLR", "tWR", "burst")

MEMORY = record(
    [
        ("wake", "i8"),  # the next core cycle in which anything is due
        ("now", "i8"),  # the core cycle of the visits
        ("sms", "i8"),
        ("groups", "i8"),  # crossbar ports of the SMs
        ("slices", "i8"),
        ("channels", "i8"),
        ("words", "i8"),  # of a bit mask of all parts: channels, slices, ports, networks of a mesh
        ("concentration", "i8"),
        ("mesh", "i8"),  # host address of its NETWORK records; 0: crossbars
        ("cargo", "i8"),  # host addresses of values (``values.py``), of packets; 0: there are none ...
        ("brought", "i8"),  # ... of lines that reads have taken, by SM and MSHR ...
        ("mshrs", "i8"),  # ... of which an SM has as many
        ("arena", "i8"),  # host address of global memory
        ("effects", "i8"),  # stores and atomics that have been performed
        ("operate", "i8"),  # address of the slot that performs an atomic: f(address of its cargo, arena)
        ("pool", "i8"),  # host addresses: PACKET, SLICE and CHANNEL records
        ("slice_base", "i8"),
        ("channel_base", "i8"),
        ("free", "i8"),  # the first free packet
        ("packets", "i8"),  # packets out of the pool; in use are those that no SM has to spare
        ("header_bytes", "i8"),
        ("flit_bytes", "i8"),
        ("uncached", "i8"),  # address inside a slice from which on no line stays in the L2
        ("data", "i8"),  # 0: nor does one that L1s do not keep
        ("line", BYTES),  # the bytes of a whole one
        ("line_bytes", "i8"),
        ("line_shift", "i8"),
        ("sector_shift", "i8"),
        ("chunk_shift", "i8"),  # of ``dram.interleave``
        ("row_shift", "i8"),
        ("banks", "i8"),
        ("crossbar_latency", "i8"),
        ("slice_delay", "i8"),
        ("read_only_delay", "i8"),
        ("return_delay", "i8"),
        ("acknowledges", "i8"),
        ("atomic", "i8"),  # L2 cycles per operation
        ("merges", "i8"),  # per L2 MSHR
        ("interconnect", CLOCK),
        ("l2", CLOCK),
        ("dram", CLOCK),
        *((name, "i8") for name in TIMINGS),  # DRAM timings in ticks
        ("visit_channel", "i8"),  # addresses of slots: f(address of this record, index)
        ("visit_slice", "i8"),
        ("visit_port", "i8"),
        ("occupied", "i8", (WHEEL // WORD,)),  # bit mask of cycles, modulo WHEEL, in which a part is due
        ("wheel", "i8", (WHEEL * MAX_WORDS,)),  # for each of them, ``words`` words of the parts that are due
        ("sm_wake", "i8", (MAX_SMS,)),  # of the SMs, for their loop; lowered when an SM finds something at its port
        ("gates", GATE, (MAX_L2_SLICES,)),
        ("ports", PORT, (MAX_SMS,)),
        ("requests", DIRECTION),
        ("replies", DIRECTION),
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
def take_for(memory, port):
    """The index of a packet for an SM's request: one that it has to spare, or out of the pool."""
    index = port.spare.head
    if index == 0:
        port.early |= i64(port.ahead != 0)
        return take(memory)
    return pop(memory, port.spare)


@inline
def keep(memory, port, index):
    """An SM has no use for a packet until its next request."""
    packet_of(memory, index).next = port.spare.head
    port.spare.head = index
    port.spare.count += 1


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
def insert(memory, queue, index):
    """Put a packet behind all that are ready when it is, or sooner; the queue is in this order."""
    ready = packet_of(memory, index).ready
    if queue.head == 0 or packet_of(memory, queue.tail).ready <= ready:
        push(memory, queue, index)
        return
    before, after = 0, queue.head
    while packet_of(memory, after).ready <= ready:
        before, after = after, packet_of(memory, after).next
    packet_of(memory, index).next = after
    if before == 0:
        queue.head = index
    else:
        packet_of(memory, before).next = index
    queue.count += 1


@inline
def pop(memory, queue):
    """Remove and return the first packet; there is one."""
    index = queue.head
    queue.head = packet_of(memory, index).next
    queue.count -= 1
    return index


@inline
def put_back(queue, index):
    """Undo a :func:`pop`."""
    queue.head = index
    queue.count += 1


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
def wake_up(memory, part, cycle, now):
    """Visit a part at ``cycle``, which is not before ``now``; in the present step only if it comes later in it."""
    cycle = min(cycle, now + (WHEEL - 1))
    slot = cycle % WHEEL
    memory.wheel[slot * memory.words + part // WORD] |= 1 << part % WORD
    memory.occupied[slot // WORD] |= 1 << slot % WORD
    if cycle < memory.wake:
        memory.wake = cycle


@inline
def slice_part(memory, index):
    """The index of a slice among the parts; channels come first."""
    return memory.channels + index


@inline
def port_part(memory, group):
    """The index of a port of the SMs among the parts."""
    return memory.channels + memory.slices + group


@inline
def wake_sm(memory, sm, cycle):
    """See to it that an SM is stepped at ``cycle`` at the latest."""
    if cycle < memory.sm_wake[sm]:
        memory.sm_wake[sm] = cycle
