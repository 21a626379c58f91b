"""The parameters of Scavenger's predictor and detectors of phases: ranges, defaults, what the thesis leaves open.

Kloosterman's thesis, tables 5.1 and 5.3.
"""

from __future__ import annotations

from enum import IntEnum

# A profile: one large interval, and four small ones of an eighth of the minimum.
MINIMUM, MAXIMUM = 20_000, 200_000  # core cycles
MAX_PROFILE = (1 << 18) - 1
SMALLS = 4
EIGHTHS = 8
BEAT = 16  # core cycles between two comparisons of the halves; the thesis compares continuously
COMPARISONS = 8  # in a row: the 128 cycles of section 5.6.4; 16 are its 256
MAX_COMPARISONS = 16
TOLERANCE = 75  # thousandths of the training half's IPC
MAX_TOLERANCE = 999

# Histograms of PCs. A full small one freezes; the large one has room for all that can join it.
BUCKETS = 128
LARGE_BITS, SMALL_BITS = 16, 12
MAX_LARGE_BITS, MAX_SMALL_BITS = 18, 14
MAX_WINDOW = (1 << 14) - 1
NEAREST = 23, 16  # the square root of 2, from above: distributions that are equal differ by less than 12K of 64K

# A sliding window, of 8,192 cycles in 16 entries. Table 5.1's "phase detector window size 128" may mean 128 entries.
ENTRIES, MAX_ENTRIES = 16, 128
ENTRY, MAX_ENTRY = 512, 1024  # core cycles
VALUE_BITS = 8  # the lanes of seven instructions
MAX_VALUE_BITS = 20  # an error

# The detector of phases.
WARP = 32  # lanes of an instruction, and requests of a memory instruction, at most
LANES, REQUESTS, SHARE = 8, 2, 12 << 10  # thresholds at least: lanes, requests, of a distance of 64K
RANGE_BITS = 16  # the 64K
INTERVAL = 100  # core cycles between two comparisons
ABOVE = 5  # comparisons in a row: 500 cycles
AMOUNT_BITS, COUNT_BITS = 8, 3  # lanes or requests of a cycle, and its instructions
DISTANCE_BITS = 19  # of a sum of differences


class Reason(IntEnum):
    """Why a run ends."""

    LANES = 0
    REQUESTS = 1
    PCS = 2
    LENGTH = 3


def intervals(minimum: int, maximum: int) -> list[int]:
    """The cycles of all small intervals of the longest profile, in order; the last four never join the large one."""
    unit, ends = minimum // EIGHTHS, minimum
    lengths = [unit] * SMALLS
    while ends < maximum:
        lengths.append(min(2 * lengths[-SMALLS], maximum - ends))
        ends += lengths[-1]
    return lengths


def sum_bits(bits: int, values: int) -> int:
    """Of the sum of so many values, of so many bits each, signed or not."""
    return bits + (values - 1).bit_length()
