"""Faults of the kind that people make, planted in the hardware of this area: evidence for what finds them."""

from __future__ import annotations

from lockstep.verif.planted import Fault

FAULTS = [
    Fault(
        "sharing.dynamic_warp_execution", "rtl", "as many stalls as the baseline are more",
        "self.stalls > self.baseline",
        "self.stalls >= self.baseline",
    ),
    Fault(
        "sharing.dynamic_warp_execution", "rtl", "the probability goes beyond certainty",
        "(self.stalls < self.baseline) & (self.probability != CERTAIN)",
        "self.stalls < self.baseline",
    ),
    Fault(
        "sharing.dynamic_warp_execution", "rtl", "the threshold itself is refused",
        "self.lfsr <= threshold",
        "self.lfsr < threshold",
    ),
    Fault("sharing.dynamic_warp_execution", "rtl", "another polynomial", "bits[9] ^ bits[6]", "bits[9] ^ bits[5]"),
    Fault(
        "sharing.dynamic_warp_execution", "rtl", "a stall in the last cycle counts twice",
        "self.count.eq(Mux(ends, 0, stalls))",
        "self.count.eq(Mux(ends, self.stall, stalls))",
    ),
    Fault(
        "sharing.share_owner", "rtl", "both sides' locks say that one has them",
        "self.holds[0] ^ self.holds[1]",
        "self.holds[0] | self.holds[1]",
    ),
    Fault(
        "sharing.share_owner", "rtl", "of two that start together, the second is older",
        "self.start[1] & ~self.start[0]",
        "self.start[1]",
    ),
    Fault(
        "sharing.share_owner", "rtl", "the owner is older",
        "self.older.eq(both & self.older",
        "self.older.eq(both & self.owner",
    ),
    Fault(
        "sharing.share_owner", "rtl", "CTAs that end do not share any more",
        "(self.present[0] & self.present[1]).any()",
        "(stays[0] & stays[1]).any()",
    ),
    Fault(
        "sharing.share_access", "rtl", "the first shared register is the warp's own",
        "self.highest >= self.own_registers",
        "self.highest > self.own_registers",
    ),
    Fault("sharing.share_access", "rtl", "the last own byte is shared", "address > limit", "address >= limit"),
    Fault(
        "sharing.share_access", "rtl", "one byte is looked at of each access",
        "self.own_bytes - self.size",
        "self.own_bytes - 1",
    ),
    Fault(
        "sharing.share_access", "rtl", "the limit has no sign",
        "Signal(signed(ADDRESS_BITS + 1))",
        "Signal(ADDRESS_BITS + 1)",
    ),
]  # fmt: skip
