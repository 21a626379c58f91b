"""A load's part of a request, as the blocks of WarpPool hand it on: the instruction, and its mapping."""

from __future__ import annotations

from lockstep.models.jit import jit, record

SLOT = record([(name, "u1") for name in ("warp", "ticket", "mapping", "thread", "word")])


@jit
def clear(target):
    target.warp = 0
    target.ticket = 0
    target.mapping = 0
    target.thread = 0
    target.word = 0


@jit
def copy(source, target):
    target.warp = source.warp
    target.ticket = source.ticket
    target.mapping = source.mapping
    target.thread = source.thread
    target.word = source.word
