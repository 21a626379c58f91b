"""A run of a block's golden model as a table, for a testbench that any simulator of Verilog runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lockstep.rtl import integration
from lockstep.verif.blocks import Parameters, complete, declaration
from lockstep.verif.trace import Run, record

CYCLES = 1000


def table(block: str, parameters: Parameters) -> str:
    """Inputs and outputs in each of :data:`CYCLES`, in the bench's first shape of stimulus, for ``$readmemh``."""
    declared = replace(declaration(block), configurations={"exported": complete(block, parameters)})
    ports = declared.ports("exported")
    trace = record(declared, Run("exported", declared.shapes[0], 1), CYCLES)
    columns = {port.name: trace.packed(port) for port in ports}
    rows = (
        integration.row(ports, bool(reset), {name: _integer(rows[cycle]) for name, rows in columns.items()})
        for cycle, reset in enumerate(trace.reset)
    )
    return "\n".join(rows) + "\n"


def _integer(row: np.ndarray) -> int:
    return int.from_bytes(row.tobytes(), "little")
