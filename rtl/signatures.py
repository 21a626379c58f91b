"""The interfaces between blocks, beside Amaranth's streams."""

from __future__ import annotations

from amaranth.lib import wiring
from amaranth.lib.wiring import Out


def event(payload: object) -> wiring.Signature:
    """``payload`` means something in the cycles in which ``valid`` is 1; nobody can refuse it."""
    return wiring.Signature({"valid": Out(1), "payload": Out(payload)})


def observed(payload: object) -> wiring.Signature:
    """A stream between two other blocks, as a third one sees it: a transfer is ``valid & ready``.

    The payload is the part of the stream's that the observer needs.
    """
    return wiring.Signature({"valid": Out(1), "ready": Out(1), "payload": Out(payload)})
