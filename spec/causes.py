"""Why a warp does not issue: the causes that profiles charge its cycles to, by name."""

from __future__ import annotations

CAUSES = {
    "memory": "its next instruction needs the result of a load or an atomic; or it ends, but still has stores to send",
    "constant_cache": "its next instruction needs constants or parameters that the constant cache has requested",
    "constants": "its next instruction needs constants or parameters that the constant cache holds",
    "scratchpad": "its next instruction needs the result of a scratchpad access",
    "arithmetic": "its next instruction needs the result of a computation",
    "operands": "a mechanism has not delivered the operands of its instructions yet",
    "branch": "its branch is under way",
    "barrier": "it waits at a barrier for other warps",
    "instruction_cache": "the line of its next instruction is on its way to the instruction cache",
    "fetch": "its next instruction has not been fetched",
    "capacity": "it could issue, but its region needs more lines of the staging unit than are free (RegLess)",
    "preloads": "it could issue, but registers of its region are on their way to the staging unit (RegLess)",
    "metadata": "it could issue, but metadata words of its region have not been decoded (RegLess)",
    "draining": "it could issue, but its last region has not written all its results (RegLess)",
    "share": "it could issue, but its kernel has its share of active warps or requests already (Scavenger)",
    "mechanism": "it could issue, but a mechanism holds it back, or has refused the grant",
    "lsu": "it could issue, but the load/store unit accepts no further access",
    "pipeline": "it could issue, but its pipeline accepts no further instruction",
    "not_selected": "it could issue, but its scheduler chose another warp, or none in this cycle",
}
"""Of several results that an instruction needs, the cause is the first of this list.

A cycle at a barrier or behind a branch belongs to that instruction, every other one to the warp's next instruction.
"""
