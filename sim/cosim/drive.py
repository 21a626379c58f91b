"""A compiled loop around one block: what measures its speed and drives it in tests, without a machine around it."""

from __future__ import annotations

import numpy as np

from lockstep.models.jit import call, entry, i64, words_u8, words_u64
from lockstep.sim.cosim.library import Library


@entry
def drive(binding_step, binding_comb, handle, io, size, stimuli, count, cycles):
    """Run a block for ``cycles`` cycles; the inputs are taken in turn from ``count`` records of ``size`` bytes.

    ``binding_comb`` is 0 for a block without combinational outputs. Returns the cycle in which a call was nonzero.
    """
    whole = size >> 3
    into, into_rest = words_u64(io, whole), words_u8(io, size)
    for cycle in range(cycles):
        source = stimuli + (cycle % count) * size
        words, rest = words_u64(source, whole), words_u8(source, size)
        for k in range(whole):
            into[k] = words[k]
        for k in range(whole << 3, size):
            into_rest[k] = rest[k]
        if binding_comb != 0 and call(binding_comb, handle, io) != 0:
            return i64(cycle)
        if call(binding_step, handle, io) != 0:
            return i64(cycle)
    return i64(cycles)


def random_inputs(rtl: Library, count: int, seed: int = 1) -> np.ndarray:
    """Random records of the inputs that the RTL has. Some integers are empty, full or sparse, as masks are."""
    kind = rtl.kind["i"]
    inputs = np.zeros(count, kind)
    rng = np.random.default_rng(seed)
    for line in rtl.layout.splitlines()[1:]:
        path, offset, code, _, _, width = line.split()
        if path.startswith("i."):
            where: np.ndarray = np.ndarray(count, code, inputs, int(offset), (kind.itemsize,))
            where[:] = _random(rng, count, int(width)).astype(code)
    return inputs


def _random(rng: np.random.Generator, count: int, width: int) -> np.ndarray:
    top = np.uint64((1 << width) - 1)
    words = [rng.integers(0, 1 << 64, count, np.uint64) & top for _ in range(3)]
    kind = rng.integers(0, 12, count)
    return np.select([kind == 0, kind == 1, kind <= 3], [np.uint64(0), top, words[0] & words[1] & words[2]], words[0])
