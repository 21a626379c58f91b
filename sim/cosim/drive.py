"""A compiled loop around one block: what measures its speed and drives it in tests, without a machine around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lockstep.models import blocks
from lockstep.models.jit import call, entry, i64, words_u8, words_u64
from lockstep.rtl.ports import Field, layout
from lockstep.sim.cosim import build


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


def random_inputs(block: str, parameters: Mapping[str, int], count: int, seed: int = 1) -> np.ndarray:
    """Random records of the inputs of an instance, which may be smaller than the largest."""
    inputs = np.zeros(count, blocks.ports(block)["i"])
    rng = np.random.default_rng(seed)
    for where, field in _leaves(inputs, layout(build.instance(block, parameters))["i"]):
        where[...] = _random(rng, where.shape, int(field["width"])).astype(where.dtype)
    return inputs


def _leaves(records: np.ndarray, fields: list[Field]) -> Iterator[tuple[np.ndarray, Field]]:
    for field in fields:
        inner = records[field["name"]][(slice(None), *(slice(n) for n in field["shape"]))]
        if "fields" in field:
            yield from _leaves(inner, field["fields"])
        else:
            yield inner, field


def _random(rng: np.random.Generator, shape: tuple[int, ...], width: int) -> Any:
    """Uniform words, but for a third of the records empty, full or sparse ones: masks are seldom dense."""
    top = np.uint64((1 << width) - 1)
    words = [rng.integers(0, 1 << 64, shape, np.uint64) & top for _ in range(3)]
    kind = rng.integers(0, 12, (shape[0],) + (1,) * (len(shape) - 1))
    sparse = words[0] & words[1] & words[2]
    return np.select([kind == 0, kind == 1, kind <= 3], [np.uint64(0), top, sparse], words[0])
