"""What can be derived of the storage that section 5.6.2 of Kloosterman's thesis counts: its histograms of PCs."""

from __future__ import annotations

from lockstep.spec.scavenger.parameters import HISTOGRAM
from lockstep.spec.scavenger.prediction import BUCKETS, LARGE_BITS, SMALL_BITS, SMALLS
from lockstep.spec.storage import Storage, Structure

STORAGE = Storage("Kloosterman, section 5.6.2", (
    Structure(
        "PC histograms", HISTOGRAM, LARGE_BITS + SMALLS * SMALL_BITS, BUCKETS,
        "Beside the five histograms of a profile, which are its 1 KB, the block has that of the run, whose counts are "
        "of 14 bits, the totals of all of them, and what walks through them to join, to clear and to compare.",
    ),
))  # fmt: skip
