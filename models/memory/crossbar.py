"""The crossbar: one for requests, from the SMs to the L2 slices, and one for replies.

A packet is a header and its data, in flits. It occupies its sender's port and its receiver's port for one interconnect
cycle per flit, the two overlapping (cut-through), and arrives ``crossbar.latency`` core cycles after its last flit.
``concentration`` SMs share one port in both directions and take turns.

Every packet has a buffer at its receiver (``crossbar.buffers`` of them) from the moment in which it is sent until the
receiver takes it out: credit flow control, so a receiver can take at most ``buffers`` packets per credit round trip.
A sender whose first packet finds no credit waits, and what is behind that packet waits with it. Waiting senders get the
receiver's next buffers in the order in which they began to wait; ports that always wait are thus served round robin.
"""

from lockstep.models.jit import inline, jit
from lockstep.models.memory.clock import cycle_after, cycle_of
from lockstep.models.memory.fabric import (
    FOREVER,
    GRANTED,
    IDLE,
    REQUESTS,
    SLICES,
    WAITING,
    enter,
    packet_of,
    pop,
    push,
    wake_sm,
    wake_up,
)


@inline
def claim(direction, sender, receiver, now):
    """Take one of the receiver's buffers; false: there is none, and the sender waits until :func:`release` wakes it."""
    if direction.state[sender] == GRANTED:
        direction.state[sender] = IDLE
        return True
    if direction.credits[receiver] > 0:
        direction.credits[receiver] -= 1
        return True
    direction.state[sender] = WAITING
    direction.since[sender] = now
    direction.next[sender] = 0
    if direction.first[receiver] == 0:
        direction.first[receiver] = sender + 1
    else:
        direction.next[direction.last[receiver] - 1] = sender + 1
    direction.last[receiver] = sender + 1
    return False


@inline
def release(direction, receiver, now):
    """Free one of the receiver's buffers. Returns the sender that gets it and has to be woken, or -1."""
    sender = direction.first[receiver] - 1
    if sender < 0:
        direction.credits[receiver] += 1
        return -1
    direction.first[receiver] = direction.next[sender]
    direction.state[sender] = GRANTED
    direction.blocked += now - direction.since[sender]
    return sender


@inline
def port_free(memory, direction, sender, now):
    """Whether a sender's port can begin a packet in this core cycle."""
    return direction.in_free[sender] < (now + 1) * memory.interconnect.domain


@inline
def transfer(memory, direction, sender, port, payload, now):
    """Send a packet with ``payload`` bytes of data through two ports; returns the core cycle in which it arrives."""
    size = memory.header_bytes + payload
    flits = max((size + memory.flit_bytes - 1) // memory.flit_bytes, 1)
    time = flits * memory.interconnect.core
    start = max(now * memory.interconnect.domain, direction.in_free[sender])
    direction.in_free[sender] = start + time
    end = max(start, direction.out_free[port]) + time
    direction.out_free[port] = end
    direction.packets += 1
    direction.flits += flits
    direction.bytes += size
    return cycle_after(memory.interconnect, end) + memory.crossbar_latency


@inline
def _turn(memory, group, now):
    """The SM of a crossbar port whose request is next, or -1; and then the cycle in which there may be one."""
    size = memory.concentration
    last = memory.chosen[group]
    soonest = FOREVER
    for k in range(size):
        sm = group * size + (last + 1 + k) % size
        head = memory.ports[sm].requests.head
        if head != 0:
            ready = packet_of(memory, head).ready
            if ready <= now:
                return sm, ready
            soonest = min(soonest, ready)
    return -1, soonest


@jit
def request_step(memory, group, now):
    """Visit one of the SMs' ports: send the requests that are due. Sets the port's wake time."""
    direction = memory.requests
    size = memory.concentration
    wake = FOREVER  # of a port that waits for a buffer: release() wakes it
    while direction.state[group] != WAITING:
        if direction.state[group] == GRANTED:
            sm = group * size + memory.chosen[group]
        else:
            sm, wake = _turn(memory, group, now)
            if sm < 0:
                break
            if not port_free(memory, direction, group, now):
                wake = cycle_of(memory.interconnect, direction.in_free[group])
                break
            memory.chosen[group] = sm - group * size
        port = memory.ports[sm]
        packet = packet_of(memory, port.requests.head)
        target = packet.slice
        wake = FOREVER
        if not claim(direction, group, target, now):
            break
        index = pop(memory, port.requests)
        packet.ready = transfer(memory, direction, group, target, packet.bytes if packet.kind else 0, now)
        packet.entered = now
        if memory.inputs[target].head == 0:
            wake_up(memory, SLICES + target, packet.ready)
        push(memory, memory.inputs[target], index)
        enter(memory.waiting[target], now)
        if port.full:
            port.full = 0
            wake_sm(memory, sm, now + 1)
    memory.wakes[REQUESTS + group] = wake


@inline
def accept_request(memory, target, now):
    """A slice takes its first request out of its buffer."""
    index = pop(memory, memory.inputs[target])
    sender = release(memory.requests, target, now)
    if sender >= 0:
        wake_up(memory, REQUESTS + sender, now)
    return index


@inline
def send_reply(memory, source, index, now):
    """A slice sends a reply whose buffer it has claimed."""
    packet = packet_of(memory, index)
    port = memory.ports[packet.sm]
    packet.ready = transfer(memory, memory.replies, source, port.group, packet.bytes, now)
    if port.replies.head == 0:
        port.reply_ready = packet.ready
        wake_sm(memory, packet.sm, packet.ready)
    push(memory, port.replies, index)


@inline
def accept_reply(memory, port, now):
    """An SM takes its first reply out of its buffer."""
    index = pop(memory, port.replies)
    port.reply_ready = packet_of(memory, port.replies.head).ready if port.replies.head != 0 else FOREVER
    memory.sm_wake[port.sm] = port.reply_ready
    source = release(memory.replies, port.sm, now)
    if source >= 0:
        wake_up(memory, SLICES + source, now)
    return index
