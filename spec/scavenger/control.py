"""The parameters of Scavenger's controllers: ranges, defaults, and what the thesis leaves open (table 5.2)."""

from __future__ import annotations

from enum import IntEnum

from lockstep.spec.parameters import MAX_CTAS
from lockstep.spec.scavenger.fixed import GAIN, SHARE

MAX_ISSUED = 7  # instructions of a kernel that an SM issues in a cycle: the whole bits of an IPC
MAX_REQUESTS = 256  # outstanding on an SM, of both kernels (section 5.5.1.2)

# The controllers of warps and requests.
INTERVAL = 100  # core cycles
MAX_INTERVAL = 1023
PROPORTIONAL, INTEGRAL = GAIN.code(1.5), GAIN.code(1.0)
MAX_SCALE = 64

# The balancer of CTAs.
WINDOW = 8192  # core cycles
MAX_WINDOW = 65535
PRIMARY_SLACK, SECONDARY_SLACK = 4, 8  # warps
MAX_PAIRS = MAX_CTAS - 1  # of at least one CTA of each kernel, and no more than fit

# The fallback. The thesis gives none of its three figures; these were chosen before any evaluation.
LONGEST_RUN = 262_144  # core cycles (table 5.1)
LIMIT = 4096  # instructions behind the target: half an instruction per cycle over a window of the balancer
DURATION = 4 * WINDOW  # core cycles: the balancer can give the primary one CTA four times
ALONE = LONGEST_RUN  # core cycles: a pair that never meets its target shares for a small part of the time
PATIENCE = WINDOW  # core cycles: at most one warp more issues in a window of the balancer
MAX_LIMIT = (1 << 21) - 1
MAX_CYCLES = (1 << 20) - 1

# The unit that joins all of them.
QUOTIENT_BITS = SHARE.bits + 1  # of a slack, divided a bit per cycle; the last one rounds
SLACK_LATENCY = QUOTIENT_BITS + 1  # cycles from the last one that is summed to the slack
OUTSTANDING_BITS = 10  # of a kernel's requests: without a limit, or beyond it, there may be more than 256


class State(IntEnum):
    """What an SM does."""

    FREE = 0  # there is no primary: the secondary has all
    CLEARING = 1  # the secondary leaves, and the primary's CTAs come
    PROFILING = 2  # the primary is alone, and counted
    TARGETING = 3  # ... until its target is known
    RUNNING = 4  # both share
    ALONE = 5  # sharing did not work: the primary has all


class End(IntEnum):
    """Why both share no longer. The first four are the detector's reasons."""

    LANES = 0
    REQUESTS = 1
    PCS = 2
    LENGTH = 3
    FALLBACK = 4  # the primary stayed behind its target
    KERNEL = 5  # another kernel
    GONE = 6  # no primary
