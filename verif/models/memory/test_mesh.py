"""The mesh: latency of every pair of nodes, throughput, order of flits, back-pressure, freedom from deadlock."""

from __future__ import annotations

import random
from itertools import pairwise, product
from math import ceil
from typing import Any

import networkx as nx
import numpy as np
import pytest

from lockstep.models.memory import mesh
from lockstep.models.memory.l1 import LOAD_BYPASS
from lockstep.models.memory.mesh import LOCAL, REPLIES, REQUESTS
from lockstep.models.memory.timing import BACK_END, FRONT_END
from lockstep.models.time import NEVER
from lockstep.spec import parameters
from lockstep.verif.bench import seeded
from lockstep.verif.models.memory.network import Network, offers_of
from lockstep.verif.models.memory.traffic import Traffic, gpu, lines, script, sequence


def small(columns: int = 3, rows: int = 3, slices: int = 3, **changes: Any) -> parameters.Gpu:
    """A small mesh that is full: as many SMs as nodes are left."""
    settings = dict(core__sms=columns * rows - slices, l2__slices=slices, dram__channels=slices)
    settings |= dict(clocks__core=1300, clocks__interconnect=650, crossbar__flit_bytes=16, crossbar__buffers=16)
    return gpu(**(settings | dict(mesh__columns=columns, mesh__rows=rows) | changes))


def distance(description: parameters.Gpu, one: int, other: int) -> int:
    """Channels between the routers of two nodes."""
    columns = description.mesh.columns
    return abs(one % columns - other % columns) + abs(one // columns - other // columns)


def unloaded(description: parameters.Gpu, size: int, hops: int) -> int:
    """Interconnect cycles of a packet of so many bytes, header included, flit by flit."""
    mesh = description.mesh
    again = mesh.routing_delay + 2 * mesh.channel_latency  # until a buffer that was filled can be filled again
    sent: list[int] = []
    for n in range(max(1, ceil(size / description.crossbar.flit_bytes))):
        earliest = sent[-1] + 1 if sent else 0
        sent.append(max(earliest, sent[n - mesh.buffers] + again) if n >= mesh.buffers else earliest)
    return sent[-1] + 1 + (hops + 1) * (mesh.routing_delay + mesh.channel_latency)


CLOCKS = [(1300, 650), (1400, 1400), (1147, 575), (700, 2000)]


# ------------------------------------------------------------------------------------------------------------- latency


@pytest.mark.parametrize("clocks", CLOCKS)
@pytest.mark.parametrize("delays", [(2, 2, 4), (1, 1, 4), (3, 5, 4), (1, 3, 1), (2, 1, 16)])
@pytest.mark.parametrize("which", [REQUESTS, REPLIES])
def test_latency_of_every_pair(which: int, delays: tuple[int, int, int], clocks: tuple[int, int]) -> None:
    """Hops, routing delay, channel latency and serialisation, for short and long packets, from the next edge on."""
    core, interconnect = clocks
    routing, channel, buffers = delays
    description = small(
        4, 3, 3, clocks__core=core, clocks__interconnect=interconnect, mesh__routing_delay=routing,
        mesh__channel_latency=channel, mesh__buffers=buffers,
    )  # fmt: skip
    ends = mesh.nodes_of(description)
    sources, targets = ends if which == REQUESTS else ends[::-1]
    pairs = list(product(range(len(sources)), range(len(targets)), (0, 40, 128)))
    packets = [(source, 997 * n, target, size) for n, (source, target, size) in enumerate(pairs)]
    offers = offers_of(packets)
    network = Network(description, offers, which)
    assert network.run(997 * (len(pairs) + 1)) == 0
    assert network.broken() == []
    for offer in offers:
        hops = distance(description, sources[offer["source"]], targets[offer["target"]])
        edge = ceil(int(offer["at"]) * interconnect / core)
        cycles = edge + unloaded(description, 8 + int(offer["bytes"]), hops)
        assert offer["sent"] == offer["at"] and offer["arrived"] == ceil(cycles * core / interconnect), offer


def test_the_formula_of_the_documentation() -> None:
    """``mesh.cycles`` is what a packet takes flit by flit, for all parameters."""
    rng = seeded()
    for _ in range(500):
        delays = dict(routing_delay=rng.randint(1, 9), channel_latency=rng.randint(1, 9), buffers=rng.randint(1, 9))
        description = small(**{f"mesh__{name}": value for name, value in delays.items()})
        flits, hops = rng.randint(1, 40), rng.randint(0, 20)
        assert mesh.cycles(description, flits, hops) == unloaded(description, 16 * flits, hops), (delays, flits, hops)


@pytest.mark.parametrize("clocks", CLOCKS)
def test_latency_of_a_load(clocks: tuple[int, int]) -> None:
    """From every SM to every slice: ``l2.latency`` for one hop, and each further hop adds what its channels take."""
    core, interconnect = clocks
    description = small(
        4, 3, 3, clocks__core=core, clocks__interconnect=interconnect, l2__latency=400, dram__latency=900,
    )  # fmt: skip
    ports, slices = mesh.nodes_of(description)

    def cycles(size: int, hops: int) -> int:
        return unloaded(description, 8 + size, hops)

    rest = 400 - FRONT_END - 1 - BACK_END  # what a slice takes itself
    rest -= sum(ceil(cycles(size, 1) * core / interconnect) for size in (0, 128))
    for (sm, port), (target, there) in product(enumerate(ports), enumerate(slices)):
        (line,) = lines(description, 1, slice=target)
        traffic = Traffic(description)
        work = sequence([line] * 4, gap=2001, kind=LOAD_BYPASS)
        whole = script([[0] * 4] * len(ports), at=NEVER)
        whole[sm] = work[0]
        found = traffic.run(whole, limit=10_000)[sm]
        hops = distance(description, port, there)
        for access in found[1:]:
            at = int(access["accepted"]) + 1
            for size, delay in ((0, rest), (128, 0)):
                edge = ceil(at * interconnect / core)
                at = ceil((edge + cycles(size, hops)) * core / interconnect) + delay
            assert access["done"] == at, (sm, target, hops)


# ---------------------------------------------------------------------------------------------- traffic, and its limits


def full(monkeypatch: pytest.MonkeyPatch, side: int, offers: np.ndarray, **changes: Any) -> Network:
    """The request network of a square mesh in which every node sends and receives."""
    nodes = list(range(side * side))
    monkeypatch.setattr(mesh, "nodes_of", lambda gpu: (nodes, nodes))
    settings = dict(core__sms=len(nodes), l2__slices=len(nodes), dram__channels=1)
    return Network(small(side, side, **settings, **changes), offers)


def uniform(rng: random.Random, nodes: int, load: float, size: int, cycles: int) -> np.ndarray:
    """Packets from all nodes to all others: ``load`` flits per node and core cycle, on the mean."""
    flits = ceil((8 + size) / 16)
    packets = []
    for source, at in product(range(nodes), range(cycles)):
        if rng.random() < load / flits:
            other = rng.randrange(nodes - 1)
            packets.append((source, at, other + (other >= source), size))
    return offers_of(packets)


def rate(offers: np.ndarray, nodes: int, begin: int, end: int, when: str = "arrived") -> float:
    """Flits of a node that arrive, or are offered (``at``), in a core cycle, on the mean."""
    some = offers[(offers[when] >= begin) & (offers[when] < end)]
    return float(np.ceil((8 + some["bytes"]) / 16).sum()) / nodes / (end - begin)


EQUAL = dict(clocks__core=650)  # core cycles are the interconnect's


@pytest.mark.parametrize("size", [0, 64])
def test_throughput_under_uniform_traffic(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below saturation the mesh takes what is offered, and above it at least 80 % of what its bisection lets through.

    In a k by k mesh of N nodes, half of the nodes send (N / 2) / (N - 1) of their flits to the other half, through k
    channels. So a node can send no more than k / (N / 2) * (N - 1) / (N / 2) = 4 (N - 1) / (k N) flits per cycle.
    """
    side, nodes, cycles = 8, 64, 6000
    bound = 4 * (nodes - 1) / (side * nodes)
    for load in (0.1, 0.3, 1.0):
        offers = uniform(seeded(), nodes, load, size, cycles)
        full(monkeypatch, side, offers, **EQUAL).run(cycles)
        found, offered = (rate(offers, nodes, cycles // 2, cycles, when) for when in ("arrived", "at"))
        if load < 0.8 * bound:
            assert found == pytest.approx(offered, rel=0.03), load
        else:
            assert 0.8 * bound < found < bound


def test_throughput_grows_with_virtual_channels_and_speedup(monkeypatch: pytest.MonkeyPatch) -> None:
    """A packet that waits keeps those behind it in its virtual channel; more of them let others pass."""
    found = []
    for change in (dict(virtual_channels=1), dict(virtual_channels=2), dict(input_speedup=1), {}, dict(buffers=16)):
        offers = uniform(random.Random(1), 64, 1.0, 64, 4000)
        full(monkeypatch, 8, offers, **EQUAL, **{f"mesh__{name}": value for name, value in change.items()}).run(4000)
        found.append(rate(offers, 64, 2000, 4000))
    assert all(more > 1.04 * less for less, more in pairwise(found)), found


@pytest.mark.parametrize("clocks", CLOCKS)
def test_rate_of_a_node(clocks: tuple[int, int]) -> None:
    """One node that sends to one other, and many that send to it: a flit per interconnect cycle."""
    core, interconnect = clocks
    description = small(4, 4, 4, clocks__core=core, clocks__interconnect=interconnect)
    for sources in ([1], range(12)):
        offers = offers_of([(source, 0, 2, 64) for source in sources for _ in range(4000)])
        Network(description, offers).run(6000)
        assert rate(offers, 1, 2000, 6000) == pytest.approx(interconnect / core, rel=0.01)


def test_an_interrupted_receiver_holds_its_senders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Receivers that take a packet every 50 cycles set the rate; the time that senders wait is counted."""
    offers = offers_of([(source, 0, (source + 5) % 16, 64) for source in range(16) for _ in range(200)])
    network = full(monkeypatch, 4, offers, **EQUAL)
    network.run(5000, pause=50)
    assert np.bincount(offers["target"][offers["arrived"] >= 0]) == pytest.approx(5000 / 50, abs=1)
    requests = network.memory.record["requests"][0]
    assert requests["blocked"] > 0.5 * 16 * 5000


@pytest.mark.parametrize("pause", [1, 7, 40])
def test_everything_arrives_once(pause: int) -> None:
    """Overload, receivers that hold it up, every kind of mesh: when nothing more is offered, all drains."""
    rng = seeded()
    for _ in range(12):
        columns, rows = rng.randint(1, 5), rng.randint(1, 5)
        slices = rng.randint(1, max(columns, rows))
        if columns * rows < slices + 1:
            continue
        core, interconnect = rng.choice(CLOCKS)
        description = small(
            columns, rows, slices, clocks__core=core, clocks__interconnect=interconnect,
            crossbar__buffers=rng.choice([1, 2, 16]), mesh__virtual_channels=rng.randint(1, 8),
            mesh__buffers=rng.randint(1, 5), mesh__routing_delay=rng.randint(1, 3),
            mesh__channel_latency=rng.randint(1, 3), mesh__input_speedup=rng.randint(1, 4),
        )  # fmt: skip
        for which in (REQUESTS, REPLIES):
            ends = [len(nodes) for nodes in mesh.nodes_of(description)]
            if which == REPLIES:
                ends.reverse()
            packets = [
                (rng.randrange(ends[0]), rng.randrange(200), rng.randrange(ends[1]), rng.choice([0, 4, 64, 128]))
                for _ in range(400)
            ]
            offers = offers_of(packets)
            network = Network(description, offers, which)
            assert network.run(60_000, pause=pause) == 0, description
            assert network.broken() == []
            assert (offers["arrived"] > offers["sent"]).all() and (offers["sent"] >= offers["at"]).all()
            assert network.memory.record["packets"] == 0
            assert network.memory.record["wake"] == network.mesh.networks["wake"][which] == NEVER, "it still works"


def test_visits_when_due_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every router and sender visited in every cycle changes nothing."""
    rng = seeded()
    for load, pause in ((0.05, 1), (0.3, 1), (1.0, 1), (1.0, 13)):
        changes = dict(virtual_channels=rng.randint(1, 4), buffers=rng.randint(1, 5), input_speedup=rng.randint(1, 2))
        changes |= dict(routing_delay=rng.randint(1, 3), channel_latency=rng.randint(1, 3))
        offers = uniform(rng, 16, load, rng.choice([0, 64]), 1500)
        results = []
        for always in (False, True):
            copy = offers.copy()
            network = full(monkeypatch, 4, copy, **EQUAL, **{f"mesh__{name}": value for name, value in changes.items()})
            network.run(4000, pause=pause, always=always)
            requests, state = network.memory.record["requests"], (network.mesh.channels, network.mesh.flits)
            results.append([array.tobytes() for array in (copy, requests, *state)])
        assert results[0] == results[1], changes


# ------------------------------------------------------------------------------------------- order, and no deadlock


def test_flits_follow_the_first() -> None:
    """In every cycle: a packet's flits are on its way, one virtual channel in each router, the last flit behind all."""
    rng = seeded()
    description = small(4, 4, 4, crossbar__buffers=2, **EQUAL)
    ports, slices = mesh.nodes_of(description)
    packets = [
        (rng.randrange(12), rng.randrange(300), rng.randrange(4), rng.choice([0, 20, 64, 128])) for _ in range(300)
    ]
    offers = offers_of(packets)
    network = Network(description, offers)
    vcs, buffers = description.mesh.virtual_channels, description.mesh.buffers
    flits = network.mesh.flits[REQUESTS].reshape(16, mesh.PORTS * vcs, buffers)
    channels = network.mesh.channels[REQUESTS].reshape(16, mesh.PORTS * vcs)
    looked, apart = 0, 0
    for _ in range(1500):
        network.run(1, pause=3)
        places: dict[int, list[tuple[int, int, int]]] = {}  # of a packet: distance to go, virtual channel, last
        for node, vc in np.argwhere((flits["free"] == NEVER).any(2)).tolist():
            first = channels[node, vc]["first"]
            inside = [flits[node, vc, (first + n) % buffers] for n in range(buffers)]
            inside = [flit for flit in inside if flit["free"] == NEVER]
            runs = [int(flit["packet"]) for flit in inside]
            assert runs == sorted(runs, key=runs.index), "packets are mixed in a virtual channel"
            for flit in inside:
                packet = int(flit["packet"])
                togo = distance(description, node, int(flit["node"]))
                places.setdefault(packet, []).append((togo, vc, int(flit["last"])))
        for packet, found in places.items():
            entry = network.memory.pool[packet]
            source, target = ports[offers[entry["address"]]["source"]], slices[entry["slice"]]
            assert len({togo for togo, _, _ in found}) == len({(togo, vc) for togo, vc, _ in found})
            assert all(togo <= distance(description, source, target) for togo, _, _ in found)
            last = [togo for togo, _, last in found if last]
            assert len(last) <= 1 and all(togo <= last[0] for togo, _, _ in found if last)
            looked += 1
            apart += len({togo for togo, _, _ in found}) > 1
    assert (offers["arrived"] >= 0).all()
    assert looked > 1000 and apart > 100


@pytest.mark.parametrize(("columns", "rows"), [(11, 11), (8, 8), (5, 2), (1, 4)])
def test_no_cycle_of_channels(columns: int, rows: int) -> None:
    """Channels that a packet may hold while it waits for another one: the graph of them has no cycle (Dally, Seitz)."""
    waits = nx.DiGraph()
    before: tuple[Any, int]
    for source, target in product(range(columns * rows), repeat=2):
        before, at, hops = ("sent by", source), source, 0
        while at != target:
            output = mesh.route(columns, at, target)
            waits.add_edge(before, (at, output))
            before, at, hops = (at, output), mesh.beside(columns, at, output), hops + 1
        assert mesh.route(columns, at, target) == LOCAL
        assert hops == abs(source % columns - target % columns) + abs(source // columns - target // columns)
        waits.add_edge(before, (at, LOCAL))
    assert nx.is_directed_acyclic_graph(waits)
    # What waits in one network never holds anything of the other.
    networks = small(columns, rows, 1, core__sms=columns * rows - 1)
    found = mesh.mesh_create(networks)
    for name in ("routers", "channels", "flits", "wakes"):
        first, second = found.networks[name].tolist()
        assert abs(first - second) >= getattr(found, name)[0].nbytes
