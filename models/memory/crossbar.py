"""The crossbar: one for requests, from the SMs to the L2 slices, and one for replies.

A packet is a header and its data, in flits. It occupies its sender's port and its receiver's port for one interconnect
cycle per flit, the two overlapping (cut-through), and arrives ``crossbar.latency`` core cycles after its last flit.
``concentration`` SMs share one port in both directions and take turns.

Every packet has a buffer at its receiver (``crossbar.buffers`` of them) from the moment in which it is sent until the
receiver takes it out: credit flow control, so a receiver can take at most ``buffers`` packets per credit round trip.
A sender whose first packet finds no credit waits, and what is behind that packet waits with it. Waiting senders get the
receiver's next buffers in the order in which they began to wait; ports that always wait are thus served round robin.
"""

from lockstep.models.jit import inline, slot
from lockstep.models.memory.clock import cycle_after, cycle_of
from lockstep.models.memory.fabric import (
    GRANTED,
    IDLE,
    READ,
    WAITING,
    enter,
    memory_at,
    packet_of,
    pop,
    port_part,
    push,
    slice_part,
    take,
    wake_sm,
    wake_up,
)
from lockstep.models.time import NEVER


@inline
def claim(direction, index, target, now):
    """Take one of the receiver's buffers; false: there is none, and the sender waits until :func:`release` wakes it."""
    sender = direction.senders[index]
    receiver = direction.receivers[target]
    if sender.state == GRANTED:
        sender.state = IDLE
        return True
    if receiver.credits > 0:
        receiver.credits -= 1
        return True
    sender.state = WAITING
    sender.since = now
    sender.next = 0
    if receiver.first == 0:
        receiver.first = index + 1
    else:
        direction.senders[receiver.last - 1].next = index + 1
    receiver.last = index + 1
    return False


@inline
def release(direction, target, now):
    """Free one of the receiver's buffers. Returns the sender that gets it and has to be woken, or -1."""
    receiver = direction.receivers[target]
    index = receiver.first - 1
    if index < 0:
        receiver.credits += 1
        return -1
    sender = direction.senders[index]
    receiver.first = sender.next
    sender.state = GRANTED
    direction.blocked += now - sender.since
    return index


@inline
def transfer(memory, direction, sender, receiver, payload, now):
    """Send a packet with ``payload`` bytes of data through two ports; returns the core cycle in which it arrives."""
    size = memory.header_bytes + payload
    flits = max((size + memory.flit_bytes - 1) // memory.flit_bytes, 1)
    time = flits * memory.interconnect.core
    start = max(now * memory.interconnect.domain, sender.free)
    end = max(start, receiver.free) + time
    sender.free = start + time
    receiver.free = end
    direction.packets += 1
    direction.flits += flits
    direction.bytes += size
    return cycle_after(memory.interconnect, end) + memory.crossbar_latency


@inline
def _choose(memory, group, now):
    """Whose request a port sends next; SMs take turns. Returns the SM, or -1 and when there may be a request."""
    if memory.concentration == 1:
        head = memory.ports[group].requests.head
        if head == 0:
            return -1, NEVER
        ready = packet_of(memory, head).ready
        return group if ready <= now else -1, ready
    first = group * memory.concentration
    soonest = NEVER
    for k in range(1, memory.concentration + 1):
        sm = first + (memory.ports[first].chosen + k) % memory.concentration
        head = memory.ports[sm].requests.head if sm < memory.sms else 0
        if head != 0:
            ready = packet_of(memory, head).ready
            if ready <= now:
                return sm, ready
            soonest = min(soonest, ready)
    return -1, soonest


@slot
def visit_port(where, group):
    """Send the requests of a port that are due."""
    memory = memory_at(where)
    now = memory.now
    sender = memory.requests.senders[group]
    first = memory.ports[group * memory.concentration]
    end = (now + 1) * memory.interconnect.domain
    wake = NEVER  # of a port that waits for a buffer: release() wakes it
    while sender.state != WAITING:
        if sender.state == GRANTED:
            sm = group * memory.concentration + first.chosen
        else:
            sm, wake = _choose(memory, group, now)
            if sm < 0:
                break
            if sender.free >= end:
                wake = cycle_of(memory.interconnect, sender.free)
                break
            first.chosen = sm - group * memory.concentration
            wake = NEVER
        port = memory.ports[sm]
        packet = packet_of(memory, port.requests.head)
        target = packet.slice
        if not claim(memory.requests, group, target, now):
            break
        index = pop(memory, port.requests)
        payload = packet.bytes if packet.kind != READ else 0  # a read asks, and brings no data
        packet.ready = transfer(memory, memory.requests, sender, memory.requests.receivers[target], payload, now)
        packet.entered = now
        gate = memory.gates[target]
        if gate.input.head == 0:
            wake_up(memory, slice_part(memory, target), packet.ready, now)
        push(memory, gate.input, index)
        enter(gate.waiting, now)
        if port.full:
            port.full = 0
            wake_sm(memory, sm, now + 1)
    if wake < NEVER:
        wake_up(memory, port_part(memory, group), wake, now)
    return 0


@inline
def send_request(port, now, kind, address, low, high, size, lanes, entry):
    """Queue a packet of an SM, which the crossbar sees from the next cycle on; ``entry`` is for the SM's own use.

    It reads or writes the bytes ``low`` and ``high`` of its line (``masks.py``); ``size`` bytes of data go with it, or
    with the reply.

    The slice follows from the address: chunks of ``dram.interleave`` bytes go to the slices in turn, and slice ``s``
    belongs to channel ``s mod channels``, so that consecutive chunks are on different channels.
    """
    memory = memory_at(port.memory)
    chunk = address >> memory.chunk_shift
    local = chunk // memory.slices
    index = take(memory)
    packet = packet_of(memory, index)
    packet.slice = chunk - local * memory.slices
    packet.address = (local << memory.chunk_shift) + address - (chunk << memory.chunk_shift)
    packet.kind = kind
    packet.mask.low = low
    packet.mask.high = high
    packet.bytes = size
    packet.lanes = lanes
    packet.sm = port.sm
    packet.entry = entry
    packet.ready = now + 1
    packet.born = now
    if port.requests.head == 0:
        wake_up(memory, port_part(memory, port.group), now + 1, now)
    push(memory, port.requests, index)
    enter(memory.flight, now)


@inline
def accept_request(memory, target, now):
    """A slice has taken its first request out of its buffer."""
    sender = release(memory.requests, target, now)
    if sender >= 0:
        wake_up(memory, port_part(memory, sender), now, now)


@inline
def send_reply(memory, index, source, now):
    """A slice sends a reply whose buffer it has claimed."""
    packet = packet_of(memory, index)
    port = memory.ports[packet.sm]
    sender, receiver = memory.replies.senders[source], memory.replies.receivers[port.group]
    packet.ready = transfer(memory, memory.replies, sender, receiver, packet.bytes, now)
    if port.replies.head == 0:
        port.reply_ready = packet.ready
        wake_sm(memory, packet.sm, packet.ready)
    push(memory, port.replies, index)


@inline
def accept_reply(memory, port, now):
    """An SM takes its first reply out of its buffer."""
    index = pop(memory, port.replies)
    port.reply_ready = packet_of(memory, port.replies.head).ready if port.replies.head != 0 else NEVER
    source = release(memory.replies, port.sm, now)
    if source >= 0:
        wake_up(memory, slice_part(memory, source), now, now)
    return index
