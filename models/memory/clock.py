"""Clock domains in exact integers.

The unit of time everywhere is the core cycle. A part with another clock (crossbar, L2, DRAM) counts in *ticks*: with
``core / domain`` the ratio of the two frequencies in lowest terms, a core cycle has ``domain`` ticks and a cycle of the
part has ``core`` ticks, both whole numbers. No float decides anything, and nothing drifts.

A part starts when its work arrives, and stays occupied for its own clock's period times the work; it does not wait for
an edge first. So bandwidths are exact over any length of time, an unloaded latency does not depend on the phase of the
clocks, and real hardware would differ by less than one period of the slower clock per crossing. A mesh is different:
its routers work in step, and a packet that enters waits for an edge.
"""

from math import gcd

from lockstep.models.jit import inline, record

CLOCK = record([("core", "i8"), ("domain", "i8")])  # ticks per cycle of the part, ticks per core cycle


def ratio(core_mhz: int, domain_mhz: int) -> tuple[int, int]:
    """The two fields of a :data:`CLOCK`."""
    common = gcd(core_mhz, domain_mhz)
    return core_mhz // common, domain_mhz // common


def core_cycles(core_mhz: int, domain_mhz: int, cycles: int) -> int:
    """``cycles`` of a part in whole core cycles, rounded up."""
    return -(-cycles * core_mhz // domain_mhz)


@inline
def cycle_of(clock, tick):
    """The core cycle in which a tick lies."""
    if clock.domain == 1:
        return tick
    return tick // clock.domain


@inline
def cycle_after(clock, tick):
    """The first core cycle that does not begin before a tick."""
    if clock.domain == 1:
        return tick
    return (tick + clock.domain - 1) // clock.domain
