"""The functions that execute micro-operations, by group. Importing this module compiles them, or loads them."""

from __future__ import annotations

from collections.abc import Callable

from lockstep.models.execution.access import execute_memory
from lockstep.models.execution.atomic import execute_atomic
from lockstep.models.execution.convert import execute_convert
from lockstep.models.execution.floating import execute_double, execute_float
from lockstep.models.execution.integer import execute_int, execute_long
from lockstep.models.execution.isa import Group
from lockstep.models.execution.packed import execute_packed
from lockstep.models.execution.predicate import execute_predicate
from lockstep.models.execution.system import execute_system
from lockstep.models.execution.texture import execute_texture
from lockstep.models.execution.warp_ops import execute_warp

SLOTS: dict[Group, Callable] = {
    Group.INT: execute_int,
    Group.LONG: execute_long,
    Group.FLOAT: execute_float,
    Group.DOUBLE: execute_double,
    Group.CONVERT: execute_convert,
    Group.PREDICATE: execute_predicate,
    Group.MEMORY: execute_memory,
    Group.ATOMIC: execute_atomic,
    Group.TEXTURE: execute_texture,
    Group.WARP: execute_warp,
    Group.PACKED: execute_packed,
    Group.SYSTEM: execute_system,
}
