"""The cocotb bench of every block: plays traces of its golden model to the hardware and compares all outputs.

Runs inside a simulator; :mod:`lockstep.verif.simulate` starts it and says in ``LOCKSTEP_TASK`` what to play. Each trace
begins with a reset, so that all but the first find memories and flip-flops as the one before left them. It imports as
little as it can, since each simulator begins with that.
"""

from __future__ import annotations

import json
import os
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import Timer

TASK = json.loads(os.environ["LOCKSTEP_TASK"])


@cocotb.test()
@cocotb.parametrize(number=range(len(TASK["traces"])))
async def follows(dut: Any, number: int) -> None:
    """Drive every input in each cycle and compare every output before the clock edge that ends it."""
    name, columns = TASK["traces"][number], np.load(f"{number}.npz")
    values = {port: [int.from_bytes(row.tobytes(), "little") for row in columns[port]] for port in columns}
    reset = values["rst"]
    inputs = [(getattr(dut, port), values[port]) for port in TASK["inputs"]]
    outputs = [
        (port, getattr(dut, port), [f"{value:0{bits}b}" for value in values[port]])
        for port, bits in TASK["outputs"].items()
    ]  # as text: the simulator gives it, and a number would be made of it bit by bit
    dut.clk.value, dut.rst.value = 0, 1
    for handle, driven in inputs:
        handle.value = driven[0]
    await Timer(1, "ns")
    await clock(dut)
    dut.rst.value = 0
    for cycle in range(len(reset)):
        for handle, driven in inputs:
            if cycle == 0 or driven[cycle] != driven[cycle - 1]:
                handle.value = driven[cycle]
        dut.rst.value = reset[cycle]
        await Timer(1, "ns")
        for port, handle, expected in outputs:
            got = str(handle.value)
            assert got == expected[cycle], (
                f"{name}, cycle {cycle}: {port}: RTL {shown(got)}, model {shown(expected[cycle])}"
            )
        await clock(dut)


def shown(bits: str) -> str:
    """A value in hexadecimal, or bit by bit where some are unknown."""
    return f"{int(bits, 2):#x}" if set(bits) <= {"0", "1"} else bits


async def clock(dut: Any) -> None:
    """A clock edge, and half a period after it."""
    dut.clk.value = 1
    await Timer(1, "ns")
    dut.clk.value = 0
