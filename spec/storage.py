"""A paper's table of the state that its mechanism adds to an SM; ``synth/paper.py`` puts the RTL's beside it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Structure:
    """A row of the paper's table, and the sentence that says why our block differs.

    One of our entries holds ``slots`` of the paper's.
    """

    title: str
    block: str
    entry_bits: int
    entries: int
    reason: str
    slots: int = 1

    @property
    def bits(self) -> int:
        return self.entry_bits * self.entries


@dataclass(frozen=True)
class Storage:
    """A table; ``source`` names it."""

    source: str
    structures: tuple[Structure, ...]
