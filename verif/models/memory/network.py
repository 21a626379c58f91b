"""A network of a mesh alone: packets that a test offers, and receivers that it plays."""

from __future__ import annotations

import numpy as np

from lockstep.models.jit import address, argument, i64, jit, record, slot
from lockstep.models.memory import mesh, system
from lockstep.models.memory.fabric import WRITE, give, leave, packet_of, pop, take
from lockstep.models.memory.mesh import REQUESTS
from lockstep.spec import parameters

OFFER = record(
    [
        ("at", "i8"),  # core cycle
        ("source", "i8"),
        ("target", "i8"),
        ("bytes", "i8"),
        ("sent", "i8"),  # core cycles
        ("arrived", "i8"),
    ]
)


@slot
def nobody(where, part):
    """Plays the slices: the test takes their packets."""
    return 0


@jit
def drive(memory, config, which, offers, next_offer, ends, pause, always, now, until):
    """Offer packets to one network and take them out; returns how many are on their way when the time is over.

    ``next_offer`` is the next of each source, and ``ends`` where its offers end. A receiver takes a packet in every
    ``pause`` cycles. ``always``: every router and sender is visited in every cycle.
    """
    network = mesh._network(memory, which)
    while now < until:
        for r in range(network.receivers):
            queue = memory.gates[r].input if which == REQUESTS else memory.ports[r].replies
            if queue.head != 0 and packet_of(memory, queue.head).ready <= now and (now + r) % pause == 0:
                index = pop(memory, queue)
                packet = packet_of(memory, index)
                if which == REQUESTS:
                    leave(memory.gates[r].waiting, now, packet.entered)
                offers[packet.address].arrived = packet.ready
                give(memory, index)
                mesh.release(memory, which, r, now)
        for s in range(network.senders):
            while next_offer[s] < ends[s] and offers[next_offer[s]].at <= now and mesh.claim(memory, which, s):
                offer = offers[next_offer[s]]
                index = take(memory)
                packet = packet_of(memory, index)
                packet.kind = WRITE
                packet.address = next_offer[s]
                packet.slice = offer.target
                packet.sm = offer.target
                packet.bytes = offer.bytes
                offer.sent = now
                mesh.send(memory, which, s, index, now)
                next_offer[s] += 1
        if always:
            for entry in range(network.nodes + network.senders):
                if entry < network.nodes or mesh._sender_of(network, entry - network.nodes).queue.head != 0:
                    mesh._rouse(network, entry, mesh._edge(memory, now))
            mesh._wake_network(memory, network, which, now)
        system.memory_step(memory, config, now)
        now += 1
    return i64(memory.packets)


class Network:
    """One network, with every sender and receiver in the hands of the test, and the packets that it offers: OFFER
    records, sorted by source and time."""

    def __init__(self, description: parameters.Gpu, offers: np.ndarray, which: int = REQUESTS) -> None:
        self.offers, self.which, self.now = offers, which, 0
        self.memory = system.memory_create(description)
        self.memory.record["visit_slice"] = address(nobody)
        assert self.memory.mesh
        self.mesh = self.memory.mesh
        self._config = parameters.config(description)
        sources = np.arange(int(self.mesh.networks["senders"][which]))
        self._next, self._ends = (np.searchsorted(offers["source"], sources, side) for side in ("left", "right"))
        offers["arrived"] = offers["sent"] = -1

    def run(self, cycles: int = 100_000, *, pause: int = 1, always: bool = False) -> int:
        """Run for so many core cycles; returns how many packets are on their way then. See :func:`drive`."""
        begin, self.now = self.now, self.now + cycles
        config = argument(self._config[0:1].reshape(()))
        return int(drive(
            self.memory.argument, config, self.which, argument(self.offers), self._next, self._ends, pause, always,
            begin, self.now,
        ))  # fmt: skip

    def broken(self) -> list[tuple[str, int, int]]:
        """The conservation laws that do not hold."""
        return [law for law in mesh.conservation(self.mesh, self.memory.record[0]) if law[1] != law[2]]


def offers_of(packets: list[tuple[int, int, int, int]]) -> np.ndarray:
    """OFFER records of (source, time, target, bytes), in the order in which :meth:`Network.run` wants them."""
    result = np.zeros(len(packets), OFFER)
    for n, (source, at, target, size) in enumerate(sorted(packets)):
        result[n] = (at, source, target, size, 0, 0)
    return result
