"""What kernels ask of the blocks in them: functional coverage, counted in co-simulations.

A bench knows more than a block's ports carry, and some of its bins ask for that; here count the bins that ports decide.
A bench says with ``IN_KERNELS`` which of them kernels must hit: what is contended for, refused, full and empty. At size
tiny, two SMs have room for all CTAs of most kernels, and most queues never fill; so an area may have a file
``contended.py``, whose ``CONTENDED`` has kernels with settings that leave less: mechanism, kernel, settings, and maybe
a second kernel, which runs beside it until the first has ended.
"""

from __future__ import annotations

import importlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from lockstep.models.blocks import ports
from lockstep.models.jit import view
from lockstep.sim.cosim.replay import Replay, load
from lockstep.verif.blocks import FOLDER, Declaration, declaration

Bins = dict[str, dict[str, int]]
"""By block, in how many cycles each bin was hit."""


def hits(declared: Declaration, replay: Replay) -> Counter[str]:
    """In how many cycles of a recording each bin was hit, of those that ports decide."""
    cycles = Counter[bytes]()
    for record in replay.records():
        cycles[record.io.tobytes()] += record.cycles
    io = np.zeros((), ports(replay.block))
    shown = view(io)
    sides = shown.i, getattr(shown, "o", None), getattr(shown, "c", None)
    found = Counter(dict.fromkeys(declared.bins, 0))
    for now, count in cycles.items():
        io[()] = np.frombuffer(now, io.dtype)[0]
        for name in [*found]:
            try:
                found[name] += count * bool(declared.bins[name](replay.parameters, *sides))
            except AttributeError:  # it asks for what only the bench knows
                del found[name]
    return found


def recorded(folder: Path) -> Bins:
    """The bins of all recordings in a folder."""
    replays = map(load, sorted(folder.iterdir()))
    return together([{replay.block: hits(declaration(replay.block), replay)} for replay in replays])


def together(runs: Sequence[Mapping[str, Mapping[str, int]]]) -> Bins:
    """The bins of several runs: those that were hit in one, or could be decided on in all."""
    by_block = defaultdict[str, list[Mapping[str, int]]](list)
    for run in runs:
        for block, bins in run.items():
            by_block[block].append(bins)
    return {block: _sum(each) for block, each in by_block.items()}


def _sum(each: Sequence[Mapping[str, int]]) -> dict[str, int]:
    totals: Counter[str] = sum(map(Counter, each), Counter())  # without zeros
    everywhere = set(each[0]).intersection(*each)
    return {name: totals[name] for name in dict.fromkeys(chain(*each)) if totals[name] or name in everywhere}


def contended(mechanism: str, blocks: Sequence[str]) -> list[tuple[str, Mapping[str, int | str], str]]:
    """The kernels with a mechanism, their settings, and second kernels, that the areas of its blocks have."""
    areas = sorted({block.partition(".")[0] for block in blocks})
    files = [name for name in areas if (FOLDER / name / "contended.py").is_file()]
    modules = [importlib.import_module(f"lockstep.verif.{name}.contended") for name in files]
    rows = [row for module in modules for row in module.CONTENDED if row[0] == mechanism]
    return [(kernel, settings, "".join(second)) for _, kernel, settings, *second in rows]


def missed(declared: Declaration, bins: Mapping[str, int]) -> list[str]:
    """The bins that kernels must hit, and have not."""
    return [name for name in declared.in_kernels if not bins.get(name)]
