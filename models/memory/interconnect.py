"""The interconnect as the L1s and the L2 slices see it: crossbars (``crossbar.py``) or a mesh (``mesh.py``).

A sender claims room for a packet and then sends it; one that finds no room waits until it is woken. A receiver takes
its packets in the order in which they arrive, and each of them frees a buffer.
"""

from lockstep.models.jit import i64, inline
from lockstep.models.memory import crossbar, mesh
from lockstep.models.memory.fabric import (
    enter,
    memory_at,
    packet_of,
    pop,
    port_part,
    push,
    slice_part,
    take_for,
    wake_up,
)
from lockstep.models.memory.ports import deliver_reply
from lockstep.models.time import NEVER


@inline
def send_request(port, now, kind, address, low, high, size, lanes, entry):
    """Queue a packet of an SM, which the interconnect sees from the next cycle on; ``entry`` is for the SM's own use.

    It reads or writes the bytes ``low`` and ``high`` of its line (``masks.py``); ``size`` bytes of data go with it, or
    with the reply. ``port.grid`` says for which grid.

    The slice follows from the address: chunks of ``dram.interleave`` bytes go to the slices in turn, and slice ``s``
    belongs to channel ``s mod channels``, so that consecutive chunks are on different channels.
    """
    memory = memory_at(port.memory)
    chunk = address >> memory.chunk_shift
    local = chunk // memory.slices
    index = take_for(memory, port)
    packet = packet_of(memory, index)
    packet.slice = chunk - local * memory.slices
    packet.address = (local << memory.chunk_shift) + address - (chunk << memory.chunk_shift)
    packet.kind = kind
    packet.mask.low = low
    packet.mask.high = high
    packet.bytes = size
    packet.lanes = lanes
    packet.sm = port.sm
    packet.grid = port.grid
    packet.entry = entry
    packet.ready = now + 1
    packet.born = now
    if port.requests.head == 0 and port.ahead == 0:
        wake_up(memory, port_part(memory, port.group), now + 1, now)
    push(memory, port.requests, index)
    enter(port.flight, now)


@inline
def accept_request(memory, target, now):
    """A slice has taken its first request out of its buffer."""
    if memory.mesh != 0:
        mesh.release(memory, mesh.REQUESTS, target, now)
        return
    sender = crossbar.release(memory.requests, target, now)
    if sender >= 0:
        wake_up(memory, port_part(memory, sender), now, now)


@inline
def claim_reply(memory, source, sm, now):
    """Whether a slice can send a reply to an SM; if not, it waits until it is woken."""
    if memory.mesh != 0:
        return mesh.claim(memory, mesh.REPLIES, source)
    return crossbar.claim(memory.replies, source, sm, now)


@inline
def send_reply(memory, index, source, now):
    """A slice sends a reply for which it has claimed room."""
    if memory.mesh != 0:
        mesh.send(memory, mesh.REPLIES, source, index, now)
        return
    packet = packet_of(memory, index)
    sender, receiver = memory.replies.senders[source], memory.replies.receivers[memory.ports[packet.sm].group]
    packet.ready = crossbar.transfer(memory, memory.replies, sender, receiver, packet.bytes, packet.grid, now)
    deliver_reply(memory, index, packet)


@inline
def accept_reply(memory, port, now):
    """An SM takes its first reply out of its buffer."""
    index = pop(memory, port.replies)
    port.reply_ready = packet_of(memory, port.replies.head).ready if port.replies.head != 0 else NEVER
    if port.ahead != 0:
        port.taken |= i64(1) << now + 1 - port.ahead
    else:
        free_reply(memory, port, now)
    return index


@inline
def free_reply(memory, port, now):
    """An SM has taken a reply: its buffer is free."""
    if memory.mesh != 0:
        mesh.release(memory, mesh.REPLIES, port.sm, now)
        return
    source = crossbar.release(memory.replies, port.sm, now)
    if source >= 0:
        wake_up(memory, slice_part(memory, source), now, now)
