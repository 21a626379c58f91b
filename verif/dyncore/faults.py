"""Faults of the kind that people make, planted in the hardware of this area: evidence for what finds them."""

from __future__ import annotations

from lockstep.verif.planted import Fault

FAULTS = [
    Fault(
        "dyncore.core_gate", "rtl", "as much as the threshold is below it",
        "self.sum < self._threshold",
        "self.sum <= self._threshold",
    ),
    Fault(
        "dyncore.core_gate", "rtl", "decides before a window has ended",
        "self.later & (self.cycle == self._sms)",
        "self.cycle == self._sms",
    ),
    Fault(
        "dyncore.core_gate", "rtl", "as much as the threshold is above it",
        "self.sum > self._threshold",
        "self.sum >= self._threshold",
    ),
    Fault(
        "dyncore.activity_counter", "rtl", "what is active counts a cycle early",
        "self.so_far + self.was_active",
        "self.so_far + self.active",
    ),
    Fault(
        "dyncore.activity_counter", "rtl", "a window's first cycle has the last one's issue",
        "Mux(last, 0, counted)",
        "Mux(last, self.was_active, counted)",
    ),
    Fault("dyncore.activity_counter", "rtl", "a window is a cycle longer", "self._window - 1", "self._window"),
]  # fmt: skip
