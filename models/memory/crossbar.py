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
from lockstep.models.memory.fabric import GRANTED, IDLE, WAITING, memory_at, packet_of, port_part, wake_up
from lockstep.models.memory.ports import choose, deliver_request, measure, next_request, payload
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
def transfer(memory, direction, sender, receiver, data, grid, now):
    """Send a packet with ``data`` bytes of data through two ports; returns the core cycle in which it arrives."""
    time = measure(memory, direction, data, grid) * memory.interconnect.core
    start = max(now * memory.interconnect.domain, sender.free)
    end = max(start, receiver.free) + time
    sender.free = start + time
    receiver.free = end
    return cycle_after(memory.interconnect, end) + memory.crossbar_latency


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
            sm, wake = choose(memory, group, now)
            if sm < 0:
                break
            if sender.free >= end:
                wake = cycle_of(memory.interconnect, sender.free)
                break
            first.chosen = sm - group * memory.concentration
            wake = NEVER
        packet = packet_of(memory, memory.ports[sm].requests.head)
        target = packet.slice
        if not claim(memory.requests, group, target, now):
            break
        index = next_request(memory, sm, now)
        receiver = memory.requests.receivers[target]
        packet.ready = transfer(memory, memory.requests, sender, receiver, payload(packet), packet.grid, now)
        deliver_request(memory, index, packet, now)
    if wake < NEVER:
        wake_up(memory, port_part(memory, group), wake, now)
    return 0
