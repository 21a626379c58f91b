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


def asynchronous(module: Module) -> list[str]:
    """The memories that have an asynchronous read port."""
    memories = {name: cell["parameters"] for name, cell in module["cells"].items() if cell["type"] == "$mem_v2"}
    return sorted(name for name, parameters in memories.items() if "0" in _clocked(parameters))


def _clocked(parameters: dict[str, str]) -> str:
    """Of each read port, the last first: 1 if it is."""
    return parameters["RD_CLK_ENABLE"][-int(parameters["RD_PORTS"], 2) :]


def cut_memories(module: Module) -> list[Arc]:
    """Replace every memory by ports of the module; returns the paths that lead through them within a cycle."""
    arcs = []
    memories = sorted(name for name, cell in module["cells"].items() if cell["type"] == "$mem_v2")
    for number, name in enumerate(memories):
        cell = module["cells"].pop(name)
        connections, parameters = cell["connections"], cell["parameters"]
        words, width, address_bits = (int(parameters[key], 2) for key in ("SIZE", "WIDTH", "ABITS"))
        clocked = int(parameters["RD_CLK_ENABLE"], 2)

        def port(name: str, bits: list[Bit], number: int = number, cell: Module = cell) -> str:
            kind = name.rpartition("_")[0] if name[-1].isdigit() else name
            direction = "input" if cell["port_directions"][kind] == "output" else "output"
            if bits:
                module["ports"][f"memory{number}_{name}"] = {"direction": direction, "bits": bits}
            return f"memory{number}_{name}"

        for kind in ("RD_EN", "RD_ARST", "RD_SRST", "WR_ADDR", "WR_DATA"):
            port(kind, connections[kind])
        port("WR_EN", list(dict.fromkeys(connections["WR_EN"])))  # Yosys has one for each bit of a word
        for index in range(int(parameters["RD_PORTS"], 2)):
            address = connections["RD_ADDR"][index * address_bits : (index + 1) * address_bits]
            data = connections["RD_DATA"][index * width : (index + 1) * width]
            names = port(f"RD_ADDR_{index}", address), port(f"RD_DATA_{index}", data)
            if not clocked >> index & 1:
                arcs.append(Arc(*names, (words - 1).bit_length()))
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
    number, count = fresh(module), 0
    for bit in sorted(bit for bit, users in sinks.items() if len(users) > FANOUT):
        users = sinks[bit]
        while len(users) > FANOUT:
            groups = [users[start : start + FANOUT] for start in range(0, len(users), FANOUT)]
            users = []
            for group in groups:
                for bits, index in group:
                    bits[index] = number
                connections: dict[str, list[Bit]] = {buffer.input: [bit], buffer.output: [number]}
                module["cells"][f"fanout_{count}"] = {
                    "type": buffer.cell, "parameters": {}, "attributes": {},
                    "port_directions": {buffer.input: "input", buffer.output: "output"}, "connections": connections,
                }  # fmt: skip
                users.append((connections[buffer.input], 0))
                number += 1
                count += 1
    return count


def fresh(module: Module) -> int:
    """The number of a net that the module does not have; it has none above it either."""
    return 1 + max(_nets(module), default=1)


def _nets(module: Module) -> Iterator[int]:
    cells = (bits for cell in module["cells"].values() for bits in cell["connections"].values())
    ports = (port["bits"] for port in module["ports"].values())
    return (bit for bits in (*cells, *ports) for bit in bits if isinstance(bit, int))


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
