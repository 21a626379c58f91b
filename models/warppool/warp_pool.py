"""Golden model of ``rtl/warppool/warp_pool.py``, which documents the unit: the models of its blocks, connected.

A cycle is: connect, ``comb``, every ``step``. Here it is told from one clock edge to the next: what comes from outside,
the steps, then the connections between the blocks for the next cycle.
"""

from __future__ import annotations

from lockstep.models.blocks import instance, ports
from lockstep.models.jit import addressof, assign, call, i64, inline, jit, record, slots
from lockstep.models.lsu import intra_warp_coalescer
from lockstep.models.time import NEVER
from lockstep.models.warppool import (
    instruction_queues,
    inter_warp_queues,
    load_store_order,
    mshr_metadata,
    request_selector,
    thread_map_table,
    writeback,
)
from lockstep.spec.mapping import Mapping
from lockstep.spec.warppool.parameters import MAX_COALESCERS

RANDOM = int(Mapping.RANDOM)

PORTS = ports("warppool.warp_pool")
STATE = record(
    [
        ("coalescers", "i8"),  # parameter
        ("lanes", "i8"),  # parameter
        ("queues", "i8"),  # instruction queues
        ("instruction_queues", instance("warppool.instruction_queues", instruction_queues.STATE)),
        (
            "intra_warp_coalescer",
            instance("lsu.intra_warp_coalescer", intra_warp_coalescer.STATE),
            (MAX_COALESCERS,),
        ),
        ("thread_map_table", instance("warppool.thread_map_table", thread_map_table.STATE)),
        ("inter_warp_queues", instance("warppool.inter_warp_queues", inter_warp_queues.STATE)),
        ("request_selector", instance("warppool.request_selector", request_selector.STATE)),
        ("mshr_metadata", instance("warppool.mshr_metadata", mshr_metadata.STATE)),
        ("writeback", instance("warppool.writeback", writeback.STATE)),
        ("load_store_order", instance("warppool.load_store_order", load_store_order.STATE)),
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    instruction_queues.reset(state.instruction_queues.state, state.instruction_queues.io)
    for k in range(MAX_COALESCERS):
        intra_warp_coalescer.reset(state.intra_warp_coalescer[k].state, state.intra_warp_coalescer[k].io)
    thread_map_table.reset(state.thread_map_table.state, state.thread_map_table.io)
    inter_warp_queues.reset(state.inter_warp_queues.state, state.inter_warp_queues.io)
    request_selector.reset(state.request_selector.state, state.request_selector.io)
    mshr_metadata.reset(state.mshr_metadata.state, state.mshr_metadata.io)
    writeback.reset(state.writeback.state, state.writeback.io)
    load_store_order.reset(state.load_store_order.state, state.load_store_order.io)
    state.queues = state.instruction_queues.state.queues
    begin(state, io)


@jit
def begin(state, io):
    """Show the blocks' outputs after reset to each other and outside."""
    _inside(state, io)
    _outputs(state, io)


@inline
def _outside(state, io):
    """What the blocks see of the unit's inputs."""
    enter = state.instruction_queues.io.i.enter
    enter.valid = io.i.enter.valid
    if io.i.enter.valid != 0:
        assign(enter.payload, io.i.enter.payload)
    order = state.load_store_order.io.i
    order.enter = io.i.issue
    order.enter_load = io.i.issue_load
    for k in range(state.coalescers):
        coalescer = state.intra_warp_coalescer[k].io.i
        coalescer.line_shift = io.i.line_shift
        if coalescer.request.valid != 0:
            for lane in range(state.lanes):
                coalescer.request.payload.address[lane] = io.i.address[k, lane]
    selector = state.request_selector.io.i
    ready = io.i.access.ready
    selector.access.ready = ready
    selector.miss = io.i.miss
    state.mshr_metadata.io.i.access.ready = ready
    order.access.ready = ready
    assign(state.mshr_metadata.io.i.answer, io.i.answer)
    back = state.writeback.io.i
    assign(back.answer, io.i.answer)
    back.result.ready = io.i.result.ready
    state.thread_map_table.io.i.result.ready = io.i.result.ready


@inline
def _thread_maps(state):
    """Let the thread-map table be read, and admit lines."""
    table, back = state.thread_map_table, state.writeback.io.o
    for k in range(state.coalescers):
        line, shown = state.intra_warp_coalescer[k].io.o.line, table.io.i.line[k]
        shown.valid = line.valid & ~(line.payload.store | line.payload.atomic)
        if line.valid != 0:
            assign(shown.payload, line.payload)
    assign(table.io.i.result, back.result)
    table.io.i.lookup.entry = back.result.payload.word
    table.io.i.lookup.thread = back.result.payload.thread
    return call(table.binding.comb, table.binding.handle, addressof(table.io))


@inline
def _coalescer(state, k):
    """What surrounds one intra-warp coalescer, which says whether it is ready."""
    queues = state.instruction_queues.io
    io, binding = state.intra_warp_coalescer[k].io, state.intra_warp_coalescer[k].binding
    merging, selector = state.inter_warp_queues.io, state.request_selector.io
    table, order = state.thread_map_table.io, state.load_store_order.io.i.line[k]
    instruction = queues.o.instruction[k]
    io.i.request.valid = instruction.valid
    if instruction.valid != 0:
        assign(io.i.request.payload, instruction.payload)
    merging.i.map_entry[k] = table.c.entry[k]
    assign(selector.i.insert[k], merging.o.insert[k])
    line = io.o.line.payload
    valid, aside, admitted = i64(io.o.line.valid), i64(line.store | line.atomic), i64(table.c.admits[k])
    ready = i64(selector.o.store[k].ready) if aside != 0 else merging.o.line[k].ready & admitted
    io.i.line.ready = ready
    merging.i.line[k].valid = valid & ~aside & admitted
    selector.i.store[k].valid = valid & aside
    table.i.line[k].ready = ready
    order.valid, order.ready = table.i.line[k].valid, ready
    if valid != 0:
        assign(order.payload, line)
        if aside != 0:
            assign(selector.i.store[k].payload, line)
        else:
            assign(merging.i.line[k].payload, line)
    different = call(binding.comb, binding.handle, addressof(io))
    queues.i.instruction[k].ready = io.c.request.ready
    return different


@inline
def _inside(state, io):
    """Connect the blocks with each other. Returns what those with combinational outputs do."""
    different = _thread_maps(state)
    for k in range(state.coalescers):
        different |= _coalescer(state, k)
    merging, selector = state.inter_warp_queues.io, state.request_selector.io
    metadata, back = state.mshr_metadata.io, state.writeback.io
    order = state.load_store_order.io.i.access
    merging.i.room = selector.o.room
    assign(merging.i.pop, selector.o.pop)
    selector.i.metadata_free = metadata.o.free
    selector.i.request.valid = merging.o.request.valid
    if merging.o.request.valid != 0:
        assign(selector.i.request.payload, merging.o.request.payload)
    access = selector.o.access
    metadata.i.access.valid = access.valid
    order.valid = access.valid
    if access.valid != 0:
        assign(metadata.i.access.payload, access.payload)
        assign(order.payload, access.payload)
        for j in range(i64(access.payload.count)):
            order.payload.warps[j] = access.payload.slots[j].warp
    metadata.i.answer.ready = back.o.answer.ready
    assign(back.i.slots, metadata.o.slots)
    return different


@inline
def _outputs(state, io):
    """The unit's outputs."""
    queues = state.instruction_queues.io.o
    for q in range(state.queues):
        io.o.free[q] = queues.free[q]
    for k in range(state.coalescers):
        assign(io.o.generate[k], queues.instruction[k])
    io.o.drained = state.load_store_order.io.o.drained
    io.o.load_ready = state.load_store_order.io.o.load_ready
    selector = state.request_selector.io.o
    io.o.policy = selector.policy
    io.o.overdue = selector.overdue
    assign(io.o.access, selector.access)
    if io.o.access.payload.store:
        io.o.access.payload.id = 0
    else:
        io.o.access.payload.id = state.mshr_metadata.io.o.id
    io.o.answer.ready = state.writeback.io.o.answer.ready
    result, back = io.o.result.payload, state.writeback.io.o.result
    found = state.thread_map_table.io.c.map
    before = result.mapping
    assign(io.o.result, back)
    if back.payload.mapping == RANDOM and back.payload.atomic == 0:
        assign(result, found)
    elif before == RANDOM:
        for lane in range(state.lanes):
            result.words[lane] = 0


@jit
def step(state, io):
    """One clock edge. Returns what the blocks return: not 0 when hardware in the place of one differs from it."""
    _outside(state, io)
    stop = i64(0)
    b = state.instruction_queues.binding
    stop |= call(b.step, b.handle, addressof(state.instruction_queues.io))
    for k in range(state.coalescers):
        b = state.intra_warp_coalescer[k].binding
        stop |= call(b.step, b.handle, addressof(state.intra_warp_coalescer[k].io))
    b = state.thread_map_table.binding
    stop |= call(b.step, b.handle, addressof(state.thread_map_table.io))
    b = state.inter_warp_queues.binding
    stop |= call(b.step, b.handle, addressof(state.inter_warp_queues.io))
    b = state.request_selector.binding
    stop |= call(b.step, b.handle, addressof(state.request_selector.io))
    b = state.mshr_metadata.binding
    stop |= call(b.step, b.handle, addressof(state.mshr_metadata.io))
    b = state.writeback.binding
    stop |= call(b.step, b.handle, addressof(state.writeback.io))
    b = state.load_store_order.binding
    stop |= call(b.step, b.handle, addressof(state.load_store_order.io))
    stop |= _inside(state, io)
    _outputs(state, io)
    return stop


@inline
def _idle(part):
    binding = part.binding
    return call(binding.idle, binding.handle, addressof(part.io))


@jit
def idle(state, io):
    """Steps that change nothing but the selector's counters, while these inputs are held."""
    if io.i.enter.valid != 0 or io.i.issue != 0 or io.i.answer.valid != 0:
        return i64(0)
    if io.o.access.valid & io.i.access.ready != 0 or io.o.result.valid & io.i.result.ready != 0:
        return i64(0)
    _outside(state, io)
    for k in range(state.coalescers):
        if _idle(state.intra_warp_coalescer[k]) == 0:
            return i64(0)
    if _idle(state.inter_warp_queues) == 0 or _idle(state.instruction_queues) == 0:
        return i64(0)
    if _idle(state.writeback) == 0 or _idle(state.thread_map_table) == 0 or _idle(state.mshr_metadata) == 0:
        return i64(0)
    if _idle(state.load_store_order) == 0:
        return i64(0)
    return min(_idle(state.request_selector), i64(NEVER))


@jit
def skip(state, steps):
    """Pass over ``steps`` idle cycles, at most :func:`idle`."""
    binding = state.request_selector.binding
    call(binding.skip, binding.handle, steps)
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
