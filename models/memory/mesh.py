"""The mesh: two networks of routers, one for requests and one for replies, in place of the crossbars.

Nodes stand in rows and columns. Each has a router, with an input and an output for the node itself and for each
neighbour, and at most one port of the SMs or L2 slice. Kayiran et al. (table 1, section 5.3) give the size and the
parameters. They do not say how packets are switched or where the memory controllers stand. The routers here are those
of the textbook (Dally and Towles, Principles and Practices of Interconnection Networks), and the slices stand on the
diagonal (:func:`nodes_of`), so that each row and column has one.

* Wormhole: a packet is a header and its data, in flits. Its first flit finds the way, along the row and then along the
  column, and the others follow. This order leaves no cycle of channels that wait for each other, and requests and
  replies have networks of their own, so every packet arrives as long as SMs and slices take packets out.
* An input has ``mesh.virtual_channels`` queues of ``mesh.buffers`` flits. A packet holds one at the next router from
  its first flit to its last; then another packet may follow behind it. A flit leaves only for a free buffer.
* In each cycle of the interconnect's clock, outputs first give waiting packets a virtual channel of the next router
  that nobody holds and that has a free buffer. Then each line of an input (``mesh.input_speedup`` lines, with virtual
  channel v on line v mod speedup) chooses one flit that can go, and each output chooses one line. All choices are
  round robin; the turns of a line and an output pass on only when a flit goes.
* A flit that is in an input in cycle k can go from k + ``mesh.routing_delay`` on. One that goes in cycle k is in the
  next input in k + ``mesh.channel_latency``, and a flit that goes in that cycle or later can have its buffer.
* A sender hands its router one flit per cycle, packet by packet. SMs and slices have ``crossbar.buffers`` buffers for
  whole packets; a packet has one from when it finds its way out of the last router until the receiver takes it.

An unloaded packet takes :func:`cycles`. Routers work in step, so it also waits for the next edge of the interconnect's
clock where it enters.

A router is visited when it may have something to do. The order of visits in a cycle does not matter: flits and free
buffers arrive in later cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lockstep.models.jit import ctz, i64, inline, jit, pointer_to, record, slot, without_lowest, words_i32, words_i64
from lockstep.models.memory.clock import cycle_after
from lockstep.models.memory.fabric import (
    IDLE,
    QUEUE,
    WAITING,
    memory_at,
    packet_of,
    pop,
    port_part,
    push,
    slice_part,
    wake_up,
)
from lockstep.models.memory.ports import (
    choose,
    deliver_reply,
    deliver_request,
    flits_of,
    measure,
    next_request,
    payload,
)
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_INPUT_SPEEDUP, MAX_VIRTUAL_CHANNELS, Gpu

REQUESTS, REPLIES = range(2)  # the networks
LOCAL, EAST, WEST, SOUTH, NORTH = range(5)  # inputs and outputs of a router
PORTS = 5
QUEUED = 2  # packets at a sender: the one that is being sent, and the next

assert PORTS * MAX_VIRTUAL_CHANNELS < 63  # virtual channels of a router are bits of a word

# One flit, or the free buffer that it has left.
FLIT = record(
    [
        ("ready", "i8"),  # cycle from which it can go
        ("free", "i8"),  # cycle from which the buffer can be filled again; NEVER: a flit is in it
        ("packet", "i4"),
        ("node", "i2"),  # where it goes
        ("last", "i2"),  # of its packet
    ]
)

# A virtual channel of an input. Its first packet goes on through ``output``, to virtual channel ``given`` of ``node``.
VC = record(
    [
        ("first", "i4"),  # buffer of the first flit
        ("end", "i4"),  # buffer of the next flit to come
        ("held", "i4"),  # a packet is coming in
        ("output", "i4"),
        ("node", "i4"),
        ("given", "i4"),
    ]
)

# Masks have a bit for each virtual channel, input by input. ``given`` and so on say who was chosen last.
ROUTER = record(
    [
        ("occupied", "i8"),  # have flits
        ("routed", "i8"),  # whose first packet has found its way
        ("given", "i4", (PORTS,)),  # which virtual channel an output has given ...
        ("served", "i4", (PORTS,)),  # ... to which
        ("chosen", "i4", (PORTS * MAX_INPUT_SPEEDUP,)),  # which virtual channel a line has sent from
        ("passed", "i4", (PORTS,)),  # which line an output has passed on
    ]
)

# What hands the packets of a port of the SMs, or of a slice, to its router.
SENDER = record(
    [
        ("queue", QUEUE),
        ("since", "i8"),  # core cycle from which it waits for a buffer of its router; -1: it does not
        ("node", "i4"),
        ("flits", "i4"),  # of the first packet that have not gone yet; 0: none has
        ("vc", "i4"),  # the one of the first packet, or of the last one
    ]
)

NETWORK = record(
    [
        ("wake", "i8"),  # the next cycle in which anything is due
        ("delivered", "i8"),  # flits
        ("nodes", "i8"),
        ("columns", "i8"),
        ("vcs", "i8"),  # of an input
        ("buffers", "i8"),
        ("routing_delay", "i8"),
        ("channel_latency", "i8"),
        ("senders", "i8"),
        ("receivers", "i8"),  # slices, or SMs
        ("routers", "i8"),  # host addresses: ROUTER, VC, FLIT and SENDER records ...
        ("channels", "i8"),
        ("flits", "i8"),
        ("sender_base", "i8"),
        ("wakes", "i8"),  # ... of each router and sender, the next cycle in which it has something to do ...
        ("sender_of", "i8"),  # ... the sender of each node ...
        ("node_of", "i8"),  # ... and the node of each receiver
        ("input_of", "i4", (PORTS * MAX_VIRTUAL_CHANNELS,)),  # of a virtual channel
        ("line_of", "i4", (PORTS * MAX_VIRTUAL_CHANNELS,)),
        ("wants", "i8", (PORTS,)),  # while a router is visited: who wants an output
        ("able", "i8", (PORTS * MAX_INPUT_SPEEDUP,)),  # whose flits can go through a line ...
        ("picked", "i4", (PORTS * MAX_INPUT_SPEEDUP,)),  # ... and whose flit it has chosen
    ]
)

_network_at, _NETWORK_BYTES = pointer_to(NETWORK), NETWORK.itemsize
_router_at, _ROUTER_BYTES = pointer_to(ROUTER), ROUTER.itemsize
_vc_at, _VC_BYTES = pointer_to(VC), VC.itemsize
_flit_at, _FLIT_BYTES = pointer_to(FLIT), FLIT.itemsize
_sender_at, _SENDER_BYTES = pointer_to(SENDER), SENDER.itemsize


@inline
def _network(memory, which):
    return _network_at(memory.mesh + which * _NETWORK_BYTES)


@inline
def _router_of(network, node):
    return _router_at(network.routers + node * _ROUTER_BYTES)


@inline
def _vc_of(network, node, vc):
    return _vc_at(network.channels + (node * PORTS * network.vcs + vc) * _VC_BYTES)


@inline
def _flit_of(network, node, vc, buffer):
    return _flit_at(network.flits + ((node * PORTS * network.vcs + vc) * network.buffers + buffer) * _FLIT_BYTES)


@inline
def _sender_of(network, index):
    return _sender_at(network.sender_base + index * _SENDER_BYTES)


@inline
def _following(network, buffer):
    return buffer + 1 if buffer + 1 < network.buffers else i64(0)


@inline
def _direction(memory, which):
    return memory.requests if which == REQUESTS else memory.replies


@inline
def pick(mask, last):
    """The member of a mask, not empty, whose turn it is when ``last`` had the last one."""
    behind = mask & -(i64(2) << last)
    return ctz(behind) if behind != 0 else ctz(mask)


@inline
def route(columns, at, to):
    """The output at node ``at`` on the way to node ``to``."""
    here, there = at % columns, to % columns
    if here != there:
        return EAST if here < there else WEST
    if at != to:
        return SOUTH if at < to else NORTH
    return LOCAL


@inline
def beside(columns, node, port):
    """The node behind a port, which is not the local one."""
    if port == EAST:
        return node + 1
    if port == WEST:
        return node - 1
    return node + columns if port == SOUTH else node - columns


@inline
def opposite(port):
    """The port of the neighbour at the other end of a channel."""
    return ((port - 1) ^ 1) + 1


@inline
def _rouse(network, entry, cycle):
    """Visit a router, or the sender of that number behind the routers, in ``cycle`` at the latest."""
    wakes = words_i64(network.wakes, network.nodes + network.senders)
    wakes[entry] = min(wakes[entry], cycle)
    network.wake = min(network.wake, cycle)


@inline
def _wake_network(memory, network, which, now):
    """Visit a network in the core cycle of its next one."""
    part = port_part(memory, memory.groups + which)
    wake_up(memory, part, network.wake * memory.interconnect.core // memory.interconnect.domain, now)


@inline
def _edge(memory, now):
    """The first cycle that does not begin before a core cycle."""
    clock = memory.interconnect
    return (now * clock.domain + clock.core - 1) // clock.core


@inline
def claim(memory, which, index):
    """Whether a sender has room for a packet; if not, it waits until it is woken."""
    if _sender_of(_network(memory, which), index).queue.count < QUEUED:
        return True
    _direction(memory, which).senders[index].state = WAITING
    return False


@inline
def _data(which, packet):
    """The bytes of data in a packet."""
    return payload(packet) if which == REQUESTS else packet.bytes


@jit
def send(memory, which, index, packet, now):
    """Give a packet to a sender that has room for it."""
    network = _network(memory, which)
    data = packet_of(memory, packet)
    measure(memory, _direction(memory, which), _data(which, data), data.grid)
    sender = _sender_of(network, index)
    push(memory, sender.queue, packet)
    if sender.queue.count == 1:
        _rouse(network, network.nodes + index, _edge(memory, now))
        _wake_network(memory, network, which, now)


@jit
def release(memory, which, receiver, now):
    """Free one of a receiver's buffers. Its router may have a packet for it."""
    network = _network(memory, which)
    _direction(memory, which).receivers[receiver].credits += 1
    node = i64(words_i32(network.node_of, network.receivers)[receiver])
    if _router_of(network, node).occupied != 0:
        _rouse(network, node, _edge(memory, now))
        _wake_network(memory, network, which, now)


@inline
def _buffer_free(network, node, vc):
    """The cycle from which the next buffer of a virtual channel can be filled."""
    return _flit_of(network, node, vc, _vc_of(network, node, vc).end).free


@inline
def _put(network, node, vc, packet, to, last, ready):
    """Put a flit into a virtual channel of a router, whose next buffer is free."""
    channel = _vc_of(network, node, vc)
    flit = _flit_of(network, node, vc, channel.end)
    flit.ready = ready
    flit.free = NEVER
    flit.packet = packet
    flit.node = to
    flit.last = last
    channel.end = _following(network, channel.end)
    _router_of(network, node).occupied |= i64(1) << vc
    _rouse(network, node, ready)


@inline
def _free_channel(network, node, port, last, cycle):
    """A virtual channel of an input that a packet can have, or -1 and the cycle in which one may be free."""
    first = port * network.vcs
    wake = NEVER
    vc = last
    for _ in range(network.vcs):
        vc = vc + 1 if first <= vc < first + network.vcs - 1 else first
        if _vc_of(network, node, vc).held == 0:
            free = _buffer_free(network, node, vc)
            if free <= cycle:
                return vc, wake
            wake = min(wake, free)
    return i64(-1), wake


@jit
def _visit_sender(memory, which, index, cycle, now):
    """Send a flit of a sender's first packet to its router."""
    network = _network(memory, which)
    sender = _sender_of(network, index)
    node = i64(sender.node)
    packet = i64(sender.queue.head)
    data = packet_of(memory, packet)
    if sender.flits == 0:
        vc, wake = _free_channel(network, node, LOCAL, i64(sender.vc), cycle)
    else:
        vc = i64(sender.vc)
        wake = _buffer_free(network, node, vc)
        if wake > cycle:
            vc = i64(-1)
    if vc < 0:
        if sender.since < 0:
            sender.since = now
        if wake < NEVER:
            _rouse(network, network.nodes + index, wake)
        return
    direction = _direction(memory, which)
    if sender.since >= 0:
        direction.blocked += now - sender.since
        sender.since = -1
    if sender.flits == 0:
        sender.flits = flits_of(memory, _data(which, data))
        sender.vc = vc
    sender.flits -= 1
    to = words_i32(network.node_of, network.receivers)[data.slice if which == REQUESTS else data.sm]
    _put(network, node, vc, packet, to, sender.flits == 0, cycle + 1 + network.routing_delay)
    if sender.flits == 0:
        pop(memory, sender.queue)
        if direction.senders[index].state == WAITING:
            direction.senders[index].state = IDLE
            part = port_part(memory, index) if which == REQUESTS else slice_part(memory, index)
            wake_up(memory, part, now + 1, now)
    if sender.queue.head != 0:
        _rouse(network, network.nodes + index, cycle + 1)


@inline
def _give_output(memory, network, which, node, router, output, vc, cycle):
    """Give a packet a virtual channel of the next router, or a buffer of its receiver, if there is one.

    Otherwise returns when there may be one.
    """
    channel = _vc_of(network, node, vc)
    if output == LOCAL:
        data = packet_of(memory, _flit_of(network, node, vc, channel.first).packet)
        receiver = _direction(memory, which).receivers[data.slice if which == REQUESTS else data.sm]
        if receiver.credits == 0:
            return NEVER
        receiver.credits -= 1
    else:
        following, port = beside(network.columns, node, output), opposite(output)
        given, wake = _free_channel(network, following, port, i64(router.given[output]), cycle)
        if given < 0:
            return wake
        router.given[output] = given
        channel.node = following
        channel.given = given
        _vc_of(network, following, given).held = 1
    channel.output = output
    router.served[output] = vc
    router.routed |= i64(1) << vc
    return NEVER


@inline
def _find_ways(memory, network, which, node, router, cycle):
    """Give outputs to packets that come first in their virtual channels; returns when there is more to do."""
    wake = NEVER
    outputs = i64(0)
    waiting = i64(router.occupied & ~router.routed)
    while waiting != 0:
        vc = ctz(waiting)
        waiting = without_lowest(waiting)
        flit = _flit_of(network, node, vc, _vc_of(network, node, vc).first)
        if flit.ready > cycle:
            wake = min(wake, flit.ready)
        else:
            output = route(network.columns, node, i64(flit.node))
            network.wants[output] |= i64(1) << vc
            outputs |= i64(1) << output
    while outputs != 0:
        output = ctz(outputs)
        outputs = without_lowest(outputs)
        wants = i64(network.wants[output])
        network.wants[output] = 0
        served = i64(router.served[output])
        while wants != 0:
            vc = pick(wants, served)
            wants &= ~(i64(1) << vc)
            wake = min(wake, _give_output(memory, network, which, node, router, output, vc, cycle))
    return wake


@inline
def _choose_lines(network, node, router, cycle):
    """Let every line choose a flit that can go, and ask its output; returns these outputs, and when more can go."""
    wake = NEVER
    lines = i64(0)
    routed = i64(router.occupied & router.routed)
    while routed != 0:
        vc = ctz(routed)
        routed = without_lowest(routed)
        channel = _vc_of(network, node, vc)
        ready = _flit_of(network, node, vc, channel.first).ready
        if channel.output != LOCAL:
            ready = max(ready, _buffer_free(network, i64(channel.node), i64(channel.given)))
        if ready > cycle:
            wake = min(wake, ready)
        else:
            line = i64(network.line_of[vc])
            network.able[line] |= i64(1) << vc
            lines |= i64(1) << line
    outputs = i64(0)
    while lines != 0:
        line = ctz(lines)
        lines = without_lowest(lines)
        vc = pick(i64(network.able[line]), i64(router.chosen[line]))
        network.able[line] = 0
        network.picked[line] = vc
        output = i64(_vc_of(network, node, vc).output)
        network.wants[output] |= i64(1) << line
        outputs |= i64(1) << output
    return outputs, wake


@inline
def _deliver(memory, network, which, index, cycle, now):
    """Bring a packet whose last flit goes to its receiver."""
    packet = packet_of(memory, index)
    arrival = (cycle + network.channel_latency) * memory.interconnect.core
    packet.ready = cycle_after(memory.interconnect, arrival)
    if which == REQUESTS:
        deliver_request(memory, index, packet, now)
    else:
        deliver_reply(memory, index, packet)


@inline
def _pass(memory, network, which, node, router, vc, cycle, now):
    """Let the first flit of a virtual channel go."""
    channel = _vc_of(network, node, vc)
    flit = _flit_of(network, node, vc, channel.first)
    channel.first = _following(network, channel.first)
    if vc < network.vcs:
        flit.free = cycle + 1
        sender = i64(words_i32(network.sender_of, network.nodes)[node])
        if _sender_of(network, sender).queue.head != 0:
            _rouse(network, network.nodes + sender, flit.free)
    else:
        flit.free = cycle + network.channel_latency
        before = beside(network.columns, node, i64(network.input_of[vc]))
        if _router_of(network, before).occupied != 0:
            _rouse(network, before, flit.free)
    if _flit_of(network, node, vc, channel.first).free < NEVER:
        router.occupied &= ~(i64(1) << vc)
    if channel.output == LOCAL:
        network.delivered += 1
        if flit.last:
            _deliver(memory, network, which, i64(flit.packet), cycle, now)
    else:
        following, given = i64(channel.node), i64(channel.given)
        ready = cycle + network.channel_latency + network.routing_delay
        _put(network, following, given, flit.packet, flit.node, flit.last, ready)
        if flit.last:
            _vc_of(network, following, given).held = 0
    if flit.last:
        router.routed &= ~(i64(1) << vc)


@jit
def _visit_router(memory, which, node, cycle, now):
    """One cycle of a router."""
    network = _network(memory, which)
    router = _router_of(network, node)
    wake = _find_ways(memory, network, which, node, router, cycle)
    outputs, later = _choose_lines(network, node, router, cycle)
    wake = min(wake, later)
    if outputs != 0:
        wake = cycle + 1
    while outputs != 0:
        output = ctz(outputs)
        outputs = without_lowest(outputs)
        line = pick(i64(network.wants[output]), i64(router.passed[output]))
        network.wants[output] = 0
        vc = i64(network.picked[line])
        router.passed[output] = line
        router.chosen[line] = vc
        _pass(memory, network, which, node, router, vc, cycle, now)
    if wake < NEVER:
        _rouse(network, node, wake)


@jit
def _visit_network(memory, which, now):
    """Do what is due in the cycles that begin in this core cycle."""
    network = _network(memory, which)
    clock = memory.interconnect
    entries = network.nodes + network.senders
    wakes = words_i64(network.wakes, entries)
    while network.wake < NEVER and network.wake * clock.core < (now + 1) * clock.domain:
        cycle = i64(network.wake)
        network.wake = NEVER
        for entry in range(entries):
            if wakes[entry] > cycle:
                network.wake = min(network.wake, wakes[entry])
                continue
            wakes[entry] = NEVER
            if entry < network.nodes:
                _visit_router(memory, which, entry, cycle, now)
            else:
                _visit_sender(memory, which, entry - network.nodes, cycle, now)
    if network.wake < NEVER:
        _wake_network(memory, network, which, now)


@inline
def _visit_requests(memory, group, now):
    """Give the requests of a port that are due to its sender, while there is room."""
    first = memory.ports[group * memory.concentration]
    while True:
        sm, wake = choose(memory, group, now)
        if sm < 0:
            if wake < NEVER:
                wake_up(memory, port_part(memory, group), wake, now)
            return
        if not claim(memory, REQUESTS, group):
            return
        first.chosen = sm - group * memory.concentration
        send(memory, REQUESTS, group, next_request(memory, sm, now), now)


@slot
def visit_mesh(where, part):
    """Serve a port of the SMs, or one of the two networks behind them."""
    memory = memory_at(where)
    if part < memory.groups:
        _visit_requests(memory, part, memory.now)
    else:
        _visit_network(memory, part - memory.groups, memory.now)
    return 0


def nodes_of(gpu: Gpu) -> tuple[list[int], list[int]]:
    """The nodes of the ports of the SMs, and of the slices.

    Slices stand on the diagonal, evenly spread: with as many as rows and columns, one in each. The ports take the other
    nodes, row by row.
    """
    mesh, slices, groups = gpu.mesh, gpu.l2.slices, -(-gpu.core.sms // gpu.crossbar.concentration)
    diagonal = [k * mesh.rows // slices * mesh.columns + k * mesh.columns // slices for k in range(slices)]
    others = [node for node in range(mesh.rows * mesh.columns) if node not in diagonal]
    return others[:groups], diagonal


def check(gpu: Gpu) -> list[str]:
    """What is wrong with the mesh of a description: one line per error."""
    mesh, slices, groups = gpu.mesh, gpu.l2.slices, -(-gpu.core.sms // gpu.crossbar.concentration)
    if mesh.columns == 0:
        return []
    errors = []
    if slices > max(mesh.columns, mesh.rows):
        most = max(mesh.columns, mesh.rows)
        errors.append(f"l2.slices = {slices}: the diagonal of the mesh (mesh.columns, mesh.rows) has room for {most}")
    if groups + slices > mesh.columns * mesh.rows:
        parts = f"{groups} ports of SMs (core.sms / crossbar.concentration) and l2.slices = {slices}"
        errors.append(f"mesh.columns * mesh.rows = {mesh.columns * mesh.rows}: too few nodes for {parts}")
    return errors


@dataclass
class Mesh:
    """The arrays of a mesh. They must stay alive as long as ``networks`` is in use."""

    gpu: Gpu
    networks: np.ndarray  # two NETWORK records
    routers: np.ndarray  # a row for each network, as below
    channels: np.ndarray
    flits: np.ndarray
    senders: np.ndarray
    wakes: np.ndarray
    sender_of: np.ndarray
    node_of: np.ndarray


def mesh_create(gpu: Gpu) -> Mesh:
    """Allocate the mesh of a GPU and reset it."""
    nodes = gpu.mesh.columns * gpu.mesh.rows
    channels = nodes * PORTS * gpu.mesh.virtual_channels
    ends = max(gpu.core.sms, gpu.l2.slices)
    mesh = Mesh(
        gpu=gpu,
        networks=np.zeros(2, NETWORK),
        routers=np.zeros((2, nodes), ROUTER),
        channels=np.zeros((2, channels), VC),
        flits=np.zeros((2, channels * gpu.mesh.buffers), FLIT),
        senders=np.zeros((2, ends), SENDER),
        wakes=np.zeros((2, nodes + ends), "i8"),
        sender_of=np.zeros((2, nodes), "i4"),
        node_of=np.zeros((2, ends), "i4"),
    )
    ports, slices = (np.array(places) for places in nodes_of(gpu))
    sms = ports[np.arange(gpu.core.sms) // gpu.crossbar.concentration]
    vcs, speedup = gpu.mesh.virtual_channels, gpu.mesh.input_speedup
    inputs, numbers = np.divmod(np.arange(PORTS * vcs), vcs)
    for which, (sending, receiving) in enumerate(((ports, slices), (slices, sms))):
        network = mesh.networks[which]
        network["nodes"], network["columns"] = nodes, gpu.mesh.columns
        network["vcs"], network["buffers"] = vcs, gpu.mesh.buffers
        for name in ("routing_delay", "channel_latency"):
            network[name] = getattr(gpu.mesh, name)
        network["senders"], network["receivers"] = len(sending), len(receiving)
        network["input_of"][: PORTS * vcs] = inputs
        network["line_of"][: PORTS * vcs] = inputs * speedup + numbers % speedup
        for name in ("routers", "channels", "flits", "wakes", "sender_of", "node_of"):
            network[name] = getattr(mesh, name)[which].ctypes.data
        network["sender_base"] = mesh.senders[which].ctypes.data
        mesh.senders["node"][which, : len(sending)] = sending
        mesh.sender_of[which, sending] = np.arange(len(sending))
        mesh.node_of[which, : len(receiving)] = receiving
    mesh_reset(mesh)
    return mesh


def mesh_reset(mesh: Mesh) -> None:
    """Empty both networks."""
    for array in (mesh.routers, mesh.channels, mesh.flits):
        array.view("u1")[...] = 0
    for name in ("queue", "flits", "vc"):
        mesh.senders[name] = np.zeros((), mesh.senders.dtype[name])
    mesh.senders["since"] = -1
    mesh.wakes[...] = mesh.networks["wake"] = NEVER
    mesh.networks["delivered"] = 0


def packets(gpu: Gpu) -> int:
    """The most packets that a mesh holds."""
    places = gpu.mesh.columns * gpu.mesh.rows * PORTS * gpu.mesh.virtual_channels * gpu.mesh.buffers
    return 2 * (places + QUEUED * max(gpu.core.sms, gpu.l2.slices))


def cycles(gpu: Gpu, flits: int, hops: int) -> int:
    """Interconnect cycles that an unloaded packet takes from its sender over ``hops`` channels between routers.

    Every router on its way takes the routing delay and the latency of a channel, the last of which leads to the
    receiver. The flits follow each other cycle by cycle, but no more of them than a virtual channel has buffers in the
    time that passes until a buffer is filled again.
    """
    mesh = gpu.mesh
    again = mesh.routing_delay + 2 * mesh.channel_latency
    waits = (flits - 1) // mesh.buffers * max(0, again - mesh.buffers)
    return flits + waits + (hops + 1) * (mesh.routing_delay + mesh.channel_latency)


def conservation(mesh: Mesh, record: np.void) -> list[tuple[str, int, int]]:
    """The conservation laws of a finished launch, as those of the memory system (``system.conservation``)."""
    laws = [
        ("flits left in the mesh", int((mesh.flits["free"] == NEVER).sum()), 0),
        ("virtual channels held in the mesh", int(mesh.channels["held"].sum()), 0),
    ]
    for which, name in enumerate(("requests", "replies")):
        laws.append((f"flits of {name}", int(mesh.networks["delivered"][which]), int(record[name]["flits"])))
    return laws
