"""The cocotb bench of every block: plays traces of its golden model to the hardware and compares all outputs.

Runs inside a simulator; :mod:`lockstep.verif.simulate` starts it and says in ``LOCKSTEP_RUNS`` what to run. Each run
begins with a reset, so that all but the first find memories and flip-flops as the previous run left them.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import Timer

from lockstep.sim.cosim.replay import load
from lockstep.verif.blocks import Declaration, declaration
from lockstep.verif.trace import Run, Trace, kept, record, replayed

TASK = json.loads(os.environ["LOCKSTEP_RUNS"])
DECLARED = replace(declaration(TASK["block"]), configurations={TASK["configuration"]: TASK["parameters"]})


@cocotb.test()
@cocotb.parametrize(run=[Run(TASK["configuration"], *run) for run in TASK["runs"]])
async def random_run(dut: Any, run: Run) -> None:
    """Random stimulus of one shape."""
    trace = record(DECLARED, run, TASK["cycles"])
    await play(dut, DECLARED, run.configuration, trace)
    with open(TASK["bins"], "a") as file:
        print(json.dumps([run.shape, trace.bins]), file=file)


@cocotb.test()
@cocotb.parametrize(file=TASK["replays"])
async def replay(dut: Any, file: str) -> None:
    """The inputs that a co-simulation kept."""
    trace = replayed(DECLARED, file, TASK["parameters"], kept(load(Path(file))))
    await play(dut, DECLARED, TASK["configuration"], trace)


async def play(dut: Any, declared: Declaration, configuration: str, trace: Trace) -> None:
    """Drive every input in each cycle and compare every output before the clock edge that ends it."""
    ports = declared.ports(configuration)
    inputs = [(getattr(dut, port.name), trace.values(port)) for port in ports if port.is_input]
    outputs = [
        (port.name, getattr(dut, port.name), [f"{value:0{port.bits}b}" for value in trace.values(port)])
        for port in ports
        if not port.is_input
    ]  # as text: the simulator gives it, and a number would be made of it bit by bit
    dut.rst.value = 1
    for handle, values in inputs:
        handle.value = values[0]
    await clock(dut)
    dut.rst.value = 0
    for cycle in range(len(trace)):
        for handle, values in inputs:
            if cycle == 0 or values[cycle] != values[cycle - 1]:
                handle.value = values[cycle]
        dut.rst.value = int(trace.reset[cycle])
        await Timer(1, "ns")
        for name, handle, values in outputs:
            got = str(handle.value)
            assert got == values[cycle], (
                f"{trace.name}, cycle {cycle}: {name}: RTL {shown(got)}, model {shown(values[cycle])}"
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
