"""Golden model of ``rtl/regless/regless_shard.py``, which documents the unit: the models of its blocks, connected."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import addressof, assign, call, i64, inline, jit, record, slots
from lockstep.models.regless import capacity_manager, operand_staging_unit, region_metadata, register_compressor
from lockstep.models.regless.state import ALL, COUNTS
from lockstep.models.regless.state import SHARD as BLOCKS
from lockstep.models.regless.wires import busy, connect, edge
from lockstep.models.time import NEVER
from lockstep.spec.regless.parameters import SHARD

PORTS = ports(SHARD)
STATE = record(
    [
        ("shard", BLOCKS),
        ("counts", COUNTS),
        ("banks", "i8"),  # parameter
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    shard = state.shard
    region_metadata.reset(shard.region_metadata.state, shard.region_metadata.io)
    capacity_manager.reset(shard.capacity_manager.state, shard.capacity_manager.io)
    operand_staging_unit.reset(shard.operand_staging_unit.state, shard.operand_staging_unit.io)
    register_compressor.reset(shard.register_compressor.state, shard.register_compressor.io)
    _outputs(state, io)


@jit
def comb(state, io):
    """Whether a region ends with what issues."""
    metadata = state.shard.region_metadata
    issue, mine = io.i.issue, metadata.io.i.issue
    mine.valid = issue.valid
    mine.payload.warp = issue.payload.warp
    mine.payload.slots = issue.payload.slots
    different = call(metadata.binding.comb, metadata.binding.handle, addressof(metadata.io))
    assign(io.c.last, metadata.io.c.last)
    last = state.shard.capacity_manager.io.i.last
    last.valid = io.c.last.valid
    last.payload.warp = io.c.last.payload.warp
    last.payload.end = issue.payload.end if io.c.last.valid != 0 else i64(0)
    return different


@inline
def _inputs(state, io):
    """From the unit's inputs, and from block to block; returns whether hardware differs."""
    shard, i = state.shard, io.i
    metadata, manager, staging = (
        shard.region_metadata.io.i,
        shard.capacity_manager.io.i,
        shard.operand_staging_unit.io.i,
    )
    assign(metadata.word, i.word)
    assign(metadata.flush, i.flush)
    assign(manager.begin, i.begin)
    manager.barred = i.barred
    assign(manager.delivered, i.delivered)
    assign(staging.finish, i.finish)
    for b in range(state.banks):
        assign(manager.reserved[b], i.reserved[b])
        assign(staging.access[b], i.access[b])
        assign(staging.write[b], i.write[b])
        manager.written[b].valid = i.write[b].valid
        manager.written[b].payload.warp = i.write[b].payload.warp
    assign(shard.register_compressor.io.i.answer, i.answer)
    different = connect(shard, state.counts, i64(ALL))
    shard.register_compressor.io.i.access.ready = i.request.ready
    return different


@inline
def _outputs(state, io):
    """The unit's outputs."""
    shard, o = state.shard, io.o
    metadata, manager = shard.region_metadata.io.o, shard.capacity_manager.io.o
    staging, compressor = shard.operand_staging_unit.io.o, shard.register_compressor.io.o
    o.room = metadata.room
    o.active = manager.active
    assign(o.flags, metadata.flags)
    o.ended = manager.ended
    for b in range(state.banks):
        o.access[b].ready = staging.access[b].ready
        assign(o.operand[b], staging.operand[b])
    o.finish.ready = staging.finish.ready
    assign(o.request, compressor.access)
    o.answer.ready = compressor.answer.ready


@jit
def step(state, io):
    """One clock edge. Returns what the blocks return: not 0 when hardware in the place of one differs from it."""
    different = _inputs(state, io) | edge(state.shard, i64(ALL))
    _outputs(state, io)
    return different


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    _inputs(state, io)
    return i64(NEVER) if busy(state.shard, i64(ALL)) == 0 else i64(0)


SLOTS = slots(STATE, PORTS, comb=comb, step=step, idle=idle)
