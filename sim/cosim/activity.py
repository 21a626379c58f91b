"""The energy of a block's gates while they see what the block saw in a kernel: a recording, and a Liberty file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lockstep.models import blocks
from lockstep.rtl import export
from lockstep.sim.cosim import build, library, replay, shim
from lockstep.sim.cosim.liberty import read
from lockstep.sim.errors import UsageError

if TYPE_CHECKING:
    from lockstep.synth.power import Cycle


def energy(file: Path, liberty: str, cycles: int, period: float) -> dict[str, Any]:
    """Of the first ``cycles`` of a recording, at a clock of ``period`` nanoseconds.

    Raises
    ------
    UsageError
        for files that cannot be used.
    Mismatch
        when the netlist's outputs are not the recorded ones (``synth/power.py``).
    """
    from lockstep.rtl import yosys
    from lockstep.synth import mapped, power

    recorded, cells = replay.load(file), read(liberty)
    try:
        powers = power.Powers(cells.text)
    except power.PowerError as error:
        raise UsageError(f"--liberty {liberty}: {error}") from None
    top = recorded.block.partition(".")[2]
    component = build.instance(recorded.block, recorded.parameters)
    places = shim.ports(component, blocks.ports(recorded.block))
    try:
        netlist = mapped.cells(export.rtlil(component, top), top, cells)
        found = power.measure(netlist, top, powers, _cycles(recorded, places), cycles, period)
    except (power.PowerError, yosys.YosysError) as error:
        raise UsageError(f"gates of {recorded.block} with {liberty}: {error}") from None
    except power.Mismatch as error:
        raise power.Mismatch(f"{file}: the gates of {recorded.block} differ from the RTL: {error}") from None
    return {
        "block": recorded.block,
        "parameters": recorded.parameters,
        "sm": recorded.sm,
        "index": recorded.index,
        "library": powers.name,
        "voltage": powers.voltage,
        "period_nanoseconds": period,
        "cycles": found.cycles,
        "cells": found.cells,
        "flip_flops": found.flip_flops,
        "femtojoules": found.femtojoules,
        "total_femtojoules": found.total,
        "milliwatts": found.total / (found.cycles * period) / 1000 if found.cycles else 0.0,
    }


def _cycles(recorded: replay.Replay, places: list[shim.Port]) -> Iterator[Cycle]:
    """What the gates are played; a last cycle that is not whole is left out."""
    from lockstep.synth.power import Cycle

    kind = blocks.ports(recorded.block)
    offsets = {path: where for path, where in library.elements(kind)}
    last = len(recorded.arrays["repeats"]) - 1 if recorded.last else -1
    for number, record in enumerate(recorded.records()):
        if number == last:
            return
        octets = record.io.tobytes()
        bits = {port.flat.name: _bits(octets, port, offsets) for port in places}
        inputs, outputs = (
            {port.flat.name: bits[port.flat.name] for port in places if port.flat.is_input == is_input}
            for is_input in (True, False)
        )
        yield Cycle(inputs, outputs, record.cycles, record.reset)


def _bits(octets: bytes, port: shim.Port, offsets: dict[str, tuple[int, str]]) -> np.ndarray:
    """Of a port, from the lowest."""
    found = np.zeros(port.flat.bits, np.uint8)
    for element in port.elements:
        start = offsets[element.path][0]
        own = np.frombuffer(octets, np.uint8, port.itemsize, start)
        bits = np.unpackbits(own, bitorder="little")
        found[element.bit : element.bit + port.flat.width] = bits[: port.flat.width]
    return found
