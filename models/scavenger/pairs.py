"""How many CTAs of each of two kernels an SM can have together: the pairs with room for no further CTA of either."""

from __future__ import annotations

from lockstep.models.execution.isa import LANES
from lockstep.models.jit import i64, inline, jit, record
from lockstep.spec.parameters import MAX_CTAS

PAIR = record([("primary", "i8"), ("secondary", "i8")])
PAIRS = record([("count", "i8"), ("pair", PAIR, (MAX_CTAS,))])


@inline
def _beside(total, each, other, number):
    """How many parts of size ``each`` are left of a resource beside a number of another size."""
    return (total - number * other) // each if each != 0 else i64(MAX_CTAS)


@jit
def _secondaries(launch, config, number):
    """CTAs of the secondary's grid that fit beside a number of the primary's; what both need is added up."""
    one, two, core = launch.grids[0], launch.grids[1], config.core
    found = min(i64(two.per_sm), i64(two.total), i64(core.ctas) - number)
    found = min(found, _beside(i64(core.warps), i64(two.warps), i64(one.warps), number))
    found = min(found, _beside(i64(core.threads), LANES * i64(two.warps), LANES * i64(one.warps), number))
    registers, other = i64(two.allocated_registers), i64(one.allocated_registers)
    found = min(found, _beside(i64(core.registers), registers, other, number))
    shared, other = i64(two.allocated_shared), i64(one.allocated_shared)
    return min(found, _beside(i64(config.scratchpad.bytes), shared, other, number))


@jit
def find_pairs(pairs, launch, config):
    """Find the pairs, in the order of the primary's CTAs; returns whether they are others than before."""
    count, others = i64(0), False
    most = min(i64(launch.grids[0].per_sm), i64(launch.grids[0].total))
    for number in range(1, most + 1):
        beside = _secondaries(launch, config, number)
        if beside < 1 or (number < most and _secondaries(launch, config, number + 1) == beside):
            continue
        pair = pairs.pair[count]
        others = others or count >= pairs.count or pair.primary != number or pair.secondary != beside
        pair.primary = number
        pair.secondary = beside
        count += 1
    others = others or count != pairs.count
    pairs.count = count
    return others
