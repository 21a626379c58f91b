"""How long the RTL of each block takes per cycle: ``python -m lockstep.sim.cosim.bench [BLOCK…]``.

Inputs are random, which is the worst case (*busy*: all of them change in every cycle), or stay as they are (*idle*).
*shadow* is what shadow mode takes beside the model, when busy: the RTL and the comparison. A second instance of the RTL
plays the model there, so that they agree whatever the inputs. Times are the shortest of many runs, of this process
alone. Sizes are those of the GTX 480, as in the papers; the largest where a block's do not follow the GPU.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np

from lockstep.models import blocks
from lockstep.rtl import configuration, registry
from lockstep.sim.cosim import library
from lockstep.sim.cosim.drive import drive, random_inputs
from lockstep.sim.device import description

STIMULI = 1024
CYCLES = 4096
RUNS = 50


def nanoseconds(step: int, comb: int, handle: int, io: np.ndarray, inputs: np.ndarray, count: int) -> float:
    """Per cycle of a binding."""
    arguments = step, comb, handle, io.ctypes.data, inputs.itemsize, inputs.ctypes.data, count
    times = []
    for _ in range(RUNS):
        start = time.thread_time()
        done = drive(*arguments, CYCLES)
        times.append(time.thread_time() - start)
        if done != CYCLES:
            raise RuntimeError(f"the block stopped in cycle {done}")
    return min(times) / CYCLES * 1e9


def measure(block: str) -> tuple[float, float, float]:
    """Busy, idle, shadow."""
    sizes = configuration.parameters(block, description.load("gtx480"))
    parameters = sizes or registry.component(block).LARGEST
    kind = blocks.ports(block)
    rtl = library.load(block, parameters)
    inputs = random_inputs(rtl, STIMULI)
    instance, model = rtl.instance(), rtl.instance()
    io = np.zeros((), kind)
    has_comb = "c" in (kind.names or ())
    step, comb = (rtl.function(name) for name in ("step", "comb"))
    instance.reset(io)
    own = step, comb * has_comb, instance.handle, io, inputs
    busy, idle = nanoseconds(*own, STIMULI), nanoseconds(*own, 1)
    for each in (instance, model):
        each.close()
    instance, model = rtl.instance(), rtl.instance()
    instance.golden(step, comb, model.handle)
    model.reset(io)
    instance.shadow_reset(io)
    shadow = rtl.function("shadow_step"), rtl.function("shadow_comb") * has_comb, instance.handle, io, inputs
    return busy, idle, nanoseconds(*shadow, STIMULI) - busy


def main(names: Sequence[str]) -> int:
    print(f"{'block':36} {'busy':>8} {'idle':>8} {'shadow':>8}   ns per cycle")
    for block in names or registry.blocks():
        print(f"{block:36} {' '.join(f'{value:8.0f}' for value in measure(block))}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
