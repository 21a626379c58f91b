"""The functions that execute micro-operations, by group. Importing this module compiles them, or loads them."""

from __future__ import annotations

from collections.abc import Callable

from lockstep.models.core.access import execute_memory
from lockstep.models.core.atomic import execute_atomic
from lockstep.models.core.convert import execute_convert
from lockstep.models.core.floating import execute_double, execute_float
from lockstep.models.core.integer import execute_int, execute_long
from lockstep.models.core.isa import Group
from lockstep.models.core.packed import execute_packed
from lockstep.models.core.predicate import execute_predicate
from lockstep.models.core.texture import execute_texture
from lockstep.models.core.warp_ops import execute_warp

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
}
