"""The ends of the interconnect: what the crossbar and the mesh have in common where packets enter and leave."""

from lockstep.models.jit import inline
from lockstep.models.memory.fabric import (
    READ,
    enter,
    packet_of,
    pop,
    push,
    slice_part,
    wake_sm,
    wake_up,
)
from lockstep.models.time import NEVER


@inline
def choose(memory, group, now):
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


@inline
def next_request(memory, sm, now):
    """Take the first request out of an SM's queue. An L1 that was refused for want of room tries again."""
    port = memory.ports[sm]
    if port.full:
        port.full = 0
        wake_sm(memory, sm, now + 1)
    return pop(memory, port.requests)


@inline
def payload(packet):
    """The bytes of data in a request: a read asks, and brings none."""
    return packet.bytes if packet.kind != READ else 0


@inline
def flits_of(memory, data):
    """The flits of a packet with ``data`` bytes of data."""
    return max((memory.header_bytes + data + memory.flit_bytes - 1) // memory.flit_bytes, 1)


@inline
def measure(memory, direction, data, grid):
    """Count a packet of a grid with ``data`` bytes of data; returns its flits."""
    flits = flits_of(memory, data)
    direction.packets += 1
    direction.flits += flits
    direction.bytes += memory.header_bytes + data
    if grid != 0:
        share = direction.share
        share.packets += 1
        share.flits += flits
        share.bytes += memory.header_bytes + data
    return flits


@inline
def deliver_request(memory, index, packet, now):
    """Put a request that arrives when it is ``ready`` into its slice's input."""
    packet.entered = now
    gate = memory.gates[packet.slice]
    if gate.input.head == 0:
        wake_up(memory, slice_part(memory, packet.slice), packet.ready, now)
    push(memory, gate.input, index)
    enter(gate.waiting, now)


@inline
def deliver_reply(memory, index, packet):
    """Put a reply that arrives when it is ``ready`` into its SM's input."""
    port = memory.ports[packet.sm]
    if port.replies.head == 0:
        port.reply_ready = packet.ready
        wake_sm(memory, packet.sm, packet.ready)
    push(memory, port.replies, index)
