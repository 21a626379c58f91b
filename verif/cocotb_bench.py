"""The cocotb bench of every block: plays traces of its golden model to the hardware and compares all outputs.

Runs inside a simulator; :mod:`lockstep.verif.simulate` starts it and says in ``LOCKSTEP_TASK`` what to play. Each trace
begins with a reset, so that all but the first find memories and flip-flops as the one before left them. Where state is
given in the task, cycles that the model calls idle must leave it as it was. The module imports as little as it can,
since each simulator begins with that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import Timer

TASK = json.loads(os.environ["LOCKSTEP_TASK"])
DEPOSIT = 0  # a value that stays until the design or the bench writes another
ASKED = 50  # idle cycles of a trace in which the hardware's state is read before and after, at most: it takes long


@cocotb.test()
@cocotb.parametrize(number=range(len(TASK["traces"])))
async def follows(dut: Any, number: int) -> None:
    """Drive every input in each cycle and compare every output before the clock edge that ends it."""
    (name, presets), columns = TASK["traces"][number], np.load(f"{number}.npz")
    reset, asked = columns["_rst"][:, 0], begins_of_rest(columns["_idle"][:, 0])
    clock, rst, half = writer(dut.clk), writer(dut.rst), Timer(1, "ns")
    inputs = [(writer(getattr(dut, port)), texts(columns[port], bits)) for port, bits in TASK["inputs"].items()]
    outputs = [reader(getattr(dut, port)) for port in TASK["outputs"]]
    model = zip(*(texts(columns[port], bits) for port, bits in TASK["outputs"].items()), strict=True)
    clock("0")
    rst("1")
    for write, driven in inputs:
        write(driven[0])
    await half
    clock("1")
    await half
    clock("0")
    inputs.append((rst, texts(columns["_rst"], 1)))
    state = list(elements(dut)) if asked else []
    for cycle, expected in enumerate(model):
        for path, value in presets.get(str(cycle), {}).items():
            preset(dut, path, value, f"{name}, cycle {cycle}")
        for write, driven in inputs:
            if cycle == 0 or driven[cycle] != driven[cycle - 1]:
                write(driven[cycle])
        await half
        got = tuple(read() for read in outputs)
        if got != expected:
            triples = zip(TASK["outputs"], got, expected, strict=True)
            port, own, wanted = next(triple for triple in triples if triple[1] != triple[2])
            raise AssertionError(f"{name}, cycle {cycle}: {port}: RTL {shown(own)}, model {shown(wanted)}")
        rests = cycle in asked and not reset[cycle]
        before = [read() for _, read in state] if rests else []
        clock("1")
        await half
        clock("0")
        if rests:
            await half
            for (path, read), value in zip(state, before, strict=True):
                assert read() == value, (
                    f"{name}, cycle {cycle}: the model is idle, and {path} of the RTL goes from {shown(value)} to "
                    f"{shown(read())}"
                )


def texts(rows: np.ndarray, bits: int) -> list[str]:
    """A port's values, rows of bytes with the lowest first, as the simulator reads and writes them: bit by bit."""
    digits = np.unpackbits(rows, axis=1, count=bits, bitorder="little")[:, ::-1] + ord("0")
    return np.ascontiguousarray(digits).view(f"S{bits}")[:, 0].astype(str).tolist()


def begins_of_rest(idle: np.ndarray) -> set[int]:
    """Idle cycles after one that was not, where something may still be under way; some from everywhere in a trace."""
    begins = [cycle for cycle in range(1, len(idle)) if idle[cycle] and not idle[cycle - 1]]
    return set(begins[:: -(-len(begins) // ASKED) or 1])


def preset(dut: Any, path: str, value: int, where: str) -> None:
    """Give a register the value that the model's has; one that cannot take it is a fault of the hardware."""
    try:
        register = found(dut, path)
    except AttributeError:
        raise AssertionError(f"{where}: the RTL has no register {path}") from None
    bits = len(register)
    assert -1 << bits - 1 <= value < 1 << bits, (
        f"{where}: {path} of the RTL has {bits} bits, and that of the model is {value:,}"
    )
    register.value = value


def found(dut: Any, path: str) -> Any:
    """What a path of names leads to, or a word of a memory, as in ``table[3]``."""
    for part in path.split("."):
        name, _, word = part.partition("[")
        dut = getattr(dut, name)[int(word.rstrip("]"))] if word else getattr(dut, name)
    return dut


def reader(handle: Any) -> Callable[[], str]:
    """Reads a signal bit by bit, as the simulator tells it: ``value`` would make an object of it, and takes most of a
    bench's time."""
    return handle._handle.get_signal_val_binstr


def writer(handle: Any) -> Callable[[str], None]:
    """Writes a signal at once. ``value`` looks each time whether it may, and when; here nobody else writes the signal,
    and what a block does at a clock edge is over before."""
    return partial(handle._handle.set_signal_val_binstr, DEPOSIT)


def elements(dut: Any) -> Iterator[tuple[str, Callable[[], str]]]:
    """Every register, and every word of a memory, with what reads it."""
    for path, words in TASK["state"].items():
        handle = found(dut, path)
        yield from ((f"{path}[{k}]", reader(handle[k])) for k in range(words))
        if not words:
            yield path, reader(handle)


def shown(bits: str) -> str:
    """A value in hexadecimal, or bit by bit where some are unknown."""
    return f"{int(bits, 2):#x}" if set(bits) <= {"0", "1"} else bits
