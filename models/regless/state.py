"""What RegLess has in each SM: the hardware of its shards, and what the frame keeps around it."""

from __future__ import annotations

from lockstep.models.blocks import instance
from lockstep.models.core.warp import PUT_OFF
from lockstep.models.execution.isa import LANES
from lockstep.models.jit import pointer_to, record
from lockstep.models.regless import (
    capacity_manager,
    operand_staging_unit,
    region_metadata,
    register_compressor,
    shard_arbiter,
)
from lockstep.spec.parameters import CONFIG, MAX_SCHEDULERS, MAX_WARPS, layout
from lockstep.spec.register_regions import BANKS
from lockstep.spec.regless.parameters import (
    ARBITER,
    COMPRESSOR,
    LINES_OF_SM,
    MANAGER,
    MAX_BANK_LINES,
    MAX_REGISTERS,
    METADATA,
    STAGING,
    Regless,
)

ANSWERS = 32  # of the L1 to a shard: the most fetches that are in flight at once

MD, CM, OSU, COMP = (1 << k for k in range(4))
"""The blocks of a shard, in masks."""
ALL = MD | CM | OSU | COMP

SHARD = record(
    [
        ("region_metadata", instance(METADATA, region_metadata.STATE)),
        ("capacity_manager", instance(MANAGER, capacity_manager.STATE)),
        ("operand_staging_unit", instance(STAGING, operand_staging_unit.STATE)),
        ("register_compressor", instance(COMPRESSOR, register_compressor.STATE)),
    ]
)

ACCESS = record(
    [
        ("slot", "i2"),
        ("number", "i2"),  # of the register
        ("result", "i1"),  # as the staging unit has it
        ("flags", "i1"),
        ("written", "i1"),  # the instruction writes the register
        ("place", "i1"),  # of the instruction among those of its warp that wait
    ]
)
RESULT = record(
    [
        ("ready", "i8"),  # cycle
        ("pc", "i4"),
        ("slot", "i2"),
        ("number", "i2"),  # of the register ...
        ("first", "i2"),  # ... and of the first one that the instruction writes
    ]
)
BANK = record(
    [
        ("first", "i4"),  # running numbers: the first that has not come back, ...
        ("next", "i4"),  # ... that the bank has not taken, ...
        ("last", "i4"),  # ... and the first that there is not
        ("results", "i4"),
    ]
)
ACCESSES = record([("ring", ACCESS, (MAX_BANK_LINES,))])  # each of them has a line, or will have one
RESULTS = record([("result", RESULT, (MAX_BANK_LINES,))])
ANSWER = record([("token", "i8"), ("words", "u4", (LANES,))])
QUEUES = record(
    [
        ("busy", "i8"),  # blocks that have something to do at the next clock edge
        ("asked", "i8"),  # banks with accesses that are to be presented, or were in the last cycle, ...
        ("awaited", "i8"),  # ... that have taken accesses and not answered them, ...
        ("reserved", "i8"),  # ... that have just reserved a line, ...
        ("written", "i8"),  # ... that are just written, ...
        ("unwritten", "i8"),  # ... for which there are results
        ("issued", "i8"),  # an instruction has issued in the last cycle: ...
        ("issued_slot", "i8"),
        ("issued_pc", "i8"),
        ("decoded", "i8"),  # the warp slot that had a word decoded last ...
        ("word", "i8"),  # ... and which one of the kernel's
        ("room", "i8"),  # warps that have room for a word ...
        ("roomy", "i8"),  # ... and their slots
        ("begins", "i8"),  # warps of the shard that have been placed, ...
        ("present", "i8"),  # ... that the hardware knows of, ...
        ("ended", "i8"),  # ... that it has let end; they are to be finished
        ("flushes", "i8"),  # ... whose words are to be dropped
        ("closing", "i8"),  # ... of whose region the last instruction has issued, ...
        ("ending", "i8"),  # ... and that end with it, ...
        ("draining", "i8"),  # ... and has all operands; results are to be written
        ("owed", "i2", (MAX_WARPS,)),  # by each warp: results that have a line and are not written
        ("announced", "i8"),  # ... whose region waits for its lines, ...
        ("unreserved", "i8"),  # ... and before, until its CTA may access the scratchpad
        ("started", "i8"),  # ... and has them
        ("active", "i8"),  # what the capacity manager has said last
        ("due", "i8"),  # the cycle in which the first result is there
        ("bank", BANK, (BANKS,)),
        ("accesses", ACCESSES, (BANKS,)),
        ("results", RESULTS, (BANKS,)),
        ("part", "i8"),  # of the register whose access the L1 sees: the lines that it has accepted
        ("fetches", "i8"),  # that the L1 has not answered, or whose answer waits
        ("answer", ANSWER, (ANSWERS,)),  # a ring
        ("first", "i8"),
        ("answers", "i8"),
    ]
)

WAITING = record(
    [
        ("first", "i4"),
        ("count", "i4"),
        ("pc", "i4", (PUT_OFF,)),
        ("left", "i4", (PUT_OFF,)),  # accesses that have not come back
    ]
)
"""The instructions of a warp that wait for their operands, as the warp's own record has them."""

COUNTS = record(
    [
        ("regions", "i8"),  # started
        ("region_cycles", "i8"),  # in which they are active, summed over them, ...
        ("held_cycles", "i8"),  # ... and those up to their last write
        ("words", "i8"),  # of metadata, decoded
        ("preloads", "i8"),  # entries
        ("invalidations", "i8"),
        ("fetches", "i8"),  # preloads that the staging unit did not have
        ("stores", "i8"),  # lines that left the staging unit
        ("l1_hits", "i8"),  # of fetches for a preload
        ("l1_misses", "i8"),
        ("lines_fetched", "i8"),  # of compressed registers, for a preload or not
        ("raw_stores", "i8"),  # of registers that were not compressed
        ("line_stores", "i8"),
        ("drops", "i8"),
        ("requests", "i8"),  # lines of all these that the L1 has accepted
        ("reads", "i8"),  # operands
        ("writes", "i8"),  # results
    ]
)

STATE = record(
    [
        ("regless", layout(Regless)),
        ("counts", COUNTS),
        ("tables", record([(f"regions_{name}", "i8") for name in ("words", "first", "operands", "operand")])),
        ("gate", "i8"),
        ("client", "i8"),
        ("began", "i8"),
        ("closed", "i8"),  # warp slots that are not active
        ("waits", "i8"),  # warp slots with instructions that wait for operands
        ("base", "i8"),  # device address of the SM's registers
        ("waiting", WAITING, (MAX_WARPS,)),
        ("lanes", "u4", (MAX_WARPS * MAX_REGISTERS,)),  # of results on their way: the lanes that write, ...
        ("flags", "u1", (MAX_WARPS * MAX_REGISTERS,)),  # ... the flags of the operand, ...
        ("left", "u1", (MAX_WARPS * MAX_REGISTERS,)),  # ... by the first of an instruction, how many are not written
        ("come", "u1", (MAX_WARPS * MAX_REGISTERS,)),  # of registers that are fetched: lines that have come
        ("queues", QUEUES, (MAX_SCHEDULERS,)),
        ("shard", SHARD, (MAX_SCHEDULERS,)),
        ("hardware", record([("shard_arbiter", instance(ARBITER, shard_arbiter.STATE))])),
        ("kept", operand_staging_unit.VALUE, (LINES_OF_SM,)),  # below the L1: registers, then compressed lines
    ]
)

at_config, at_value = pointer_to(CONFIG), pointer_to(operand_staging_unit.VALUE)
