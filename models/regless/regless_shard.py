"""Golden model of ``rtl/regless/regless_shard.py``, which documents the unit: the models of its blocks, connected."""

from __future__ import annotations

from lockstep.models.blocks import instance, ports
from lockstep.models.jit import addressof, assign, call, i64, inline, jit, record, slots
from lockstep.models.regless import capacity_manager, operand_staging_unit, region_metadata, register_compressor
from lockstep.models.time import NEVER
from lockstep.spec.regless.parameters import COMPRESSOR, MANAGER, METADATA, SHARD, STAGING

PORTS = ports(SHARD)
STATE = record(
    [
        ("region_metadata", instance(METADATA, region_metadata.STATE)),
        ("capacity_manager", instance(MANAGER, capacity_manager.STATE)),
        ("operand_staging_unit", instance(STAGING, operand_staging_unit.STATE)),
        ("register_compressor", instance(COMPRESSOR, register_compressor.STATE)),
        ("banks", "i8"),  # parameter
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    region_metadata.reset(state.region_metadata.state, state.region_metadata.io)
    capacity_manager.reset(state.capacity_manager.state, state.capacity_manager.io)
    operand_staging_unit.reset(state.operand_staging_unit.state, state.operand_staging_unit.io)
    register_compressor.reset(state.register_compressor.state, state.register_compressor.io)
    _outputs(state, io)


@inline
def _comb(block):
    return call(block.binding.comb, block.binding.handle, addressof(block.io))


@inline
def _step(block):
    return call(block.binding.step, block.binding.handle, addressof(block.io))


@inline
def _idle(block):
    return call(block.binding.idle, block.binding.handle, addressof(block.io))


@jit
def comb(state, io):
    """Whether a region ends with what issues."""
    metadata = state.region_metadata
    issue, mine = io.i.issue, metadata.io.i.issue
    mine.valid = issue.valid
    mine.payload.warp = issue.payload.warp
    mine.payload.slots = issue.payload.slots
    different = _comb(metadata)
    assign(io.c.last, metadata.io.c.last)
    last = state.capacity_manager.io.i.last
    last.valid = io.c.last.valid
    last.payload.warp = io.c.last.payload.warp
    last.payload.end = issue.payload.end if io.c.last.valid != 0 else i64(0)
    return different


@inline
def _connect(state, io):
    """From the inputs, and from outputs of blocks, to the blocks' inputs; returns whether hardware differs."""
    metadata, manager = state.region_metadata.io, state.capacity_manager.io
    staging, compressor = state.operand_staging_unit.io, state.register_compressor.io
    i = io.i
    assign(metadata.i.word, i.word)
    assign(metadata.i.flush, i.flush)
    metadata.i.wanted = manager.o.wanted
    assign(metadata.i.start, manager.o.start)
    assign(manager.i.begin, i.begin)
    assign(manager.i.region, metadata.o.region)
    manager.i.barred = i.barred
    assign(manager.i.sent, metadata.o.sent)
    assign(manager.i.delivered, i.delivered)
    assign(staging.i.finish, i.finish)
    for b in range(state.banks):
        preload, into = metadata.o.preload[b], staging.i.preload[b]
        into.valid = preload.valid
        assign(into.payload, preload.payload)
        metadata.i.preload[b].ready = staging.o.preload[b].ready
        assign(manager.i.answered[b], staging.o.answered[b])
        assign(manager.i.reserved[b], i.reserved[b])
        assign(staging.i.access[b], i.access[b])
        assign(staging.i.write[b], i.write[b])
        manager.i.written[b].valid = i.write[b].valid
        manager.i.written[b].payload.warp = i.write[b].payload.warp
    assign(compressor.i.request, staging.o.request)
    assign(staging.i.fill, compressor.o.fill)
    assign(compressor.i.answer, i.answer)
    compressor.i.access.ready = i.request.ready
    different = _comb(state.operand_staging_unit) | _comb(state.register_compressor)
    staging.i.request.ready = compressor.c.request.ready
    compressor.i.fill.ready = staging.c.fill.ready
    return different


@inline
def _outputs(state, io):
    """The unit's outputs."""
    metadata, manager = state.region_metadata.io.o, state.capacity_manager.io.o
    staging, compressor = state.operand_staging_unit.io.o, state.register_compressor.io.o
    o = io.o
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
    different = _connect(state, io)
    different |= _step(state.region_metadata) | _step(state.capacity_manager)
    different |= _step(state.operand_staging_unit) | _step(state.register_compressor)
    _outputs(state, io)
    return different


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    _connect(state, io)
    if _idle(state.region_metadata) == 0 or _idle(state.capacity_manager) == 0:
        return i64(0)
    if _idle(state.operand_staging_unit) == 0 or _idle(state.register_compressor) == 0:
        return i64(0)
    return i64(NEVER)


SLOTS = slots(STATE, PORTS, comb=comb, step=step, idle=idle)
