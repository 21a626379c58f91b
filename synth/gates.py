"""Work on Yosys' JSON netlists: memories cut out, buffers put in, the longest path counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from lockstep.synth.liberty import Buffer

Module = dict[str, Any]
Bit = int | str

FANOUT = 16  # sinks that one cell drives; more get a tree of buffers


@dataclass(frozen=True)
class Arc:
    """An asynchronous read port of a memory that was cut out: from ports that carry the address to those with data."""

    address: str
    data: str
    levels: int


def cut_memories(module: Module) -> list[Arc]:
    """Replace every memory by ports of the module; returns the paths that lead through them within a cycle."""
    arcs = []
    memories = [name for name, cell in module["cells"].items() if cell["type"] == "$mem_v2"]
    for number, name in enumerate(sorted(memories)):
        cell = module["cells"].pop(name)
        for port, bits in cell["connections"].items():
            if bits and not port.endswith("_CLK"):
                direction = "input" if port == "RD_DATA" else "output"
                module["ports"][f"memory{number}_{port}"] = {"direction": direction, "bits": bits}
        parameters = {key: int(cell["parameters"][key], 2) for key in ("RD_PORTS", "WIDTH", "ABITS", "SIZE")}
        clocked = int(cell["parameters"]["RD_CLK_ENABLE"], 2)
        width, bits = parameters["WIDTH"], parameters["ABITS"]
        for port in range(parameters["RD_PORTS"]):
            if not clocked >> port & 1:
                for kind, size in (("RD_ADDR", bits), ("RD_DATA", width)):
                    whole = cell["connections"][kind]
                    module["ports"][f"memory{number}_{kind}_{port}"] = {
                        "direction": "input" if kind == "RD_DATA" else "output",
                        "bits": whole[port * size : (port + 1) * size],
                    }
                levels = (parameters["SIZE"] - 1).bit_length()
                arcs.append(Arc(f"memory{number}_RD_ADDR_{port}", f"memory{number}_RD_DATA_{port}", levels))
        for kind in ("RD_ADDR", "RD_DATA"):
            if any(f"memory{number}_{kind}_{port}" in module["ports"] for port in range(parameters["RD_PORTS"])):
                whole = set(module["ports"].pop(f"memory{number}_{kind}")["bits"])
                for port in range(parameters["RD_PORTS"]):
                    whole -= set(module["ports"].get(f"memory{number}_{kind}_{port}", {"bits": []})["bits"])
                if rest := sorted(bit for bit in whole if isinstance(bit, int)):
                    direction = "input" if kind == "RD_DATA" else "output"
                    module["ports"][f"memory{number}_{kind}"] = {"direction": direction, "bits": rest}
    return arcs


def insert_buffers(module: Module, buffer: Buffer, ideal: Collection[str]) -> int:
    """Give every net with more than :data:`FANOUT` sinks a tree of buffers; ``ideal`` ports' nets stay as they are.

    Returns the number of buffers. Without them, a flip-flop that drives a thousand gates is what the critical path
    measures.
    """
    skipped = {bit for port in ideal if port in module["ports"] for bit in module["ports"][port]["bits"]}
    sinks: dict[Bit, list[tuple[list[Bit], int]]] = defaultdict(list)
    for cell in module["cells"].values():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                for index, bit in enumerate(bits):
                    if isinstance(bit, int) and bit not in skipped:
                        sinks[bit].append((bits, index))
    names = (port["bits"] for port in module["ports"].values())
    fresh = 1 + max((bit for bits in [*names, *_connections(module)] for bit in bits if isinstance(bit, int)), default=1)
    count = 0
    for bit in sorted(bit for bit, users in sinks.items() if len(users) > FANOUT):
        users = sinks[bit]
        while len(users) > FANOUT:
            groups = [users[start : start + FANOUT] for start in range(0, len(users), FANOUT)]
            users = []
            for group in groups:
                for bits, index in group:
                    bits[index] = fresh
                connections: dict[str, list[Bit]] = {buffer.input: [bit], buffer.output: [fresh]}
                module["cells"][f"fanout_{count}"] = {
                    "type": buffer.cell, "parameters": {}, "attributes": {},
                    "port_directions": {buffer.input: "input", buffer.output: "output"}, "connections": connections,
                }  # fmt: skip
                users.append((connections[buffer.input], 0))
                fresh += 1
                count += 1
    return count


def _connections(module: Module) -> Iterator[list[Bit]]:
    return (bits for cell in module["cells"].values() for bits in cell["connections"].values())


def depth(module: Module, is_sequential: Callable[[str], bool], arcs: list[Arc]) -> int:
    """The most cells between two flip-flops or ports; an asynchronous read counts as its multiplexers, log2(words)."""
    driver: dict[Bit, tuple[list[Bit], int]] = {}
    for cell in module["cells"].values():
        if is_sequential(cell["type"]):
            continue
        directions, connections = cell["port_directions"], cell["connections"]
        sources = [bit for port, bits in connections.items() if directions[port] == "input" for bit in bits]
        for port, bits in connections.items():
            if directions[port] == "output":
                driver.update((bit, (sources, 1)) for bit in bits)
    for arc in arcs:
        if arc.address in module["ports"] and arc.data in module["ports"]:
            address = module["ports"][arc.address]["bits"]
            driver.update((bit, (address, arc.levels)) for bit in module["ports"][arc.data]["bits"])
    levels: dict[Bit, int] = {}
    for start in driver:
        waiting = [start]
        while waiting:
            bit = waiting[-1]
            if bit in levels:
                waiting.pop()
                continue
            sources, own = driver[bit]
            missing = [source for source in sources if source in driver and source not in levels]
            if missing:
                waiting += missing
            else:
                levels[bit] = own + max((levels.get(source, 0) for source in sources), default=0)
                waiting.pop()
    return max(levels.values(), default=0)
