"""The connections between the blocks of a shard, from one clock edge to the next."""

from __future__ import annotations

from lockstep.models.jit import addressof, assign, call, clear, i64, inline, jit
from lockstep.models.regless.state import CM, COMP, MD, OSU
from lockstep.models.time import NEVER
from lockstep.spec.register_regions import BANKS, Entry
from lockstep.spec.regless.parameters import Request

NO_ENTRY, INVALIDATE = int(Entry.NONE), int(Entry.INVALIDATE)
FETCH, FETCH_LAST, STORE = int(Request.FETCH), int(Request.FETCH_LAST), int(Request.STORE)


@inline
def _clock(block, busy):
    """A clock edge of a block that has something to do; returns whether hardware differs."""
    return call(block.binding.step, block.binding.handle, addressof(block.io)) if busy != 0 else i64(0)


@inline
def _is_busy(block):
    return call(block.binding.idle, block.binding.handle, addressof(block.io)) < NEVER


@inline
def _comb(block):
    return call(block.binding.comb, block.binding.handle, addressof(block.io))


@jit
def reset_inputs(shard):
    """No input is valid."""
    clear(shard.region_metadata.io.i)
    clear(shard.capacity_manager.io.i)
    clear(shard.operand_staging_unit.io.i)
    clear(shard.register_compressor.io.i)


@jit
def edge(shard, busy):
    """The clock edge; returns whether hardware differs."""
    different = _clock(shard.region_metadata, busy & MD)
    different |= _clock(shard.capacity_manager, busy & CM)
    different |= _clock(shard.operand_staging_unit, busy & OSU)
    return different | _clock(shard.register_compressor, busy & COMP)


@inline
def with_neighbours(stepped):
    """The blocks whose outputs may have changed at a clock edge, and those that see them."""
    touched = stepped
    if stepped & CM != 0:
        touched |= MD
    if stepped & MD != 0:
        touched |= CM | OSU
    if stepped & OSU != 0:
        touched |= MD | CM | COMP
    if stepped & COMP != 0:
        touched |= OSU
    return touched


@jit
def connect(shard, counts, touched):
    """From outputs to inputs, with what has been set of these from outside; returns whether hardware differs.

    ``touched``: the blocks that have stepped, or have other inputs than in the last cycle. What leads from one block to
    another has not changed unless both are among them.
    """
    different = i64(0)
    if touched & (MD | CM) == MD | CM:
        _start(shard.region_metadata.io, shard.capacity_manager.io, counts)
    if touched & OSU != 0:
        _preload(shard.region_metadata.io, shard.capacity_manager.io, shard.operand_staging_unit.io, counts)
    if touched & (OSU | COMP) != 0:
        different = _request(shard, counts)
    return different


@inline
def _start(md, cm, counts):
    """Regions are known, and start."""
    md.i.wanted = cm.o.wanted
    assign(md.i.start, cm.o.start)
    counts.regions += cm.o.start.valid
    assign(cm.i.region, md.o.region)
    assign(cm.i.sent, md.o.sent)


@inline
def _preload(md, cm, osu, counts):
    """The entries of regions go to the banks, which answer them."""
    for b in range(BANKS):
        preload, into = md.o.preload[b], osu.i.preload[b]
        into.valid = preload.valid
        md.i.preload[b].ready = osu.o.preload[b].ready
        if preload.valid != 0:
            assign(into.payload, preload.payload)
            if osu.o.preload[b].ready != 0:
                invalidates = preload.payload.action == INVALIDATE
                counts.invalidations += invalidates
                counts.preloads += not invalidates
        cm.i.answered[b].valid = osu.o.answered[b].valid
        cm.i.answered[b].payload.warp = osu.o.answered[b].payload.warp


@inline
def _request(shard, counts):
    """The staging unit and the compressor; returns whether hardware differs."""
    osu, comp = shard.operand_staging_unit.io, shard.register_compressor.io
    comp.i.request.valid = osu.o.request.valid
    if osu.o.request.valid != 0:
        assign(comp.i.request.payload, osu.o.request.payload)
    osu.i.fill.valid = comp.o.fill.valid
    if comp.o.fill.valid != 0:
        assign(osu.i.fill.payload, comp.o.fill.payload)
    comp.i.access.ready = 0
    different = _comb(shard.register_compressor)
    osu.i.request.ready = comp.c.request.ready
    different |= _comb(shard.operand_staging_unit)
    comp.i.fill.ready = osu.c.fill.ready
    if osu.o.request.valid & comp.c.request.ready != 0:
        kind = i64(osu.o.request.payload.kind)
        counts.fetches += kind == FETCH or kind == FETCH_LAST
        counts.stores += kind == STORE
    return different


@jit
def busy(shard, touched):
    """The blocks that have something to do at the next clock edge; ``touched`` as :func:`connect` has it."""
    blocks = MD if touched & MD != 0 and _is_busy(shard.region_metadata) else i64(0)
    blocks |= CM if touched & CM != 0 and _is_busy(shard.capacity_manager) else 0
    blocks |= OSU if touched & OSU != 0 and _is_busy(shard.operand_staging_unit) else 0
    return blocks | (COMP if touched & COMP != 0 and _is_busy(shard.register_compressor) else 0)
