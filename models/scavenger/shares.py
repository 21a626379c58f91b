"""What each of two kernels uses of an SM: its oldest warps, and the requests that it has outstanding."""

from __future__ import annotations

from lockstep.models.jit import ctz, i64, jit, pointer_to, popcount, without_lowest
from lockstep.models.memory.fabric import PORT
from lockstep.spec.parameters import MAX_CTAS, TICKETS

at_port = pointer_to(PORT)


@jit
def window(sm, slots, most, first):
    """Of the warps in these slots, ``most`` by age, from the ``first`` on; after the youngest comes the oldest."""
    count = popcount(slots)
    if count <= most:
        return slots
    chosen, left, rank = i64(0), slots, i64(0)
    while left != 0:
        oldest = i64(-1)
        for place in range(MAX_CTAS):
            cta = sm.ctas[place]
            if cta.live != 0 and i64(cta.slots) & left != 0:
                if oldest < 0 or cta.assigned < sm.ctas[oldest].assigned:
                    oldest = i64(place)
        warps = i64(sm.ctas[oldest].slots) & left
        left &= ~warps
        while warps != 0:
            if (rank - first) % count < most:
                chosen |= warps & -warps
            warps = without_lowest(warps)
            rank += 1
    return chosen


@jit
def outstanding(sm):
    """The requests of each kernel: loads and atomics from when the L1 has accepted their lines until it answers, stores
    until the L2 has looked them up. An instruction whose lines it has not all accepted counts as one beside them.
    """
    tickets, lsu = sm.lsu.tickets, sm.lsu
    both = second = i64(0)
    if lsu.port != 0:
        port = at_port(i64(lsu.port))
        port.told = 1
        second = i64(port.stores[1])
        both = port.stores[0] + second
    if tickets.in_flight == 0:
        return both - second, second
    warps = i64(sm.taken)
    while warps != 0:
        warp = ctz(warps)
        warps = without_lowest(warps)
        used, requests = i64(tickets.used[warp]), i64(0)
        while used != 0:
            token = lsu.token[warp * TICKETS + ctz(used)]
            used = without_lowest(used)
            requests += i64(token.lines) if lsu.path.reorders == 0 else i64(token.sent) + i64(token.unsent != 0)
        both += requests
        if (i64(sm.second) >> warp) & 1 != 0:
            second += requests
    return both - second, second
