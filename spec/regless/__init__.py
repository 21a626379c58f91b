"""RegLess (Kloosterman's thesis, chapter 4). The encoding of its metadata is in ``spec/register_regions.py``."""

from __future__ import annotations

from lockstep.spec.mechanism import Mechanism
from lockstep.spec.regless import parameters

HARDWARE = Mechanism(
    name="regless",
    doc="operand staging in place of the register file (Kloosterman's thesis, chapter 4): its blocks",
    blocks=(parameters.METADATA, parameters.MANAGER, parameters.STAGING, parameters.COMPRESSOR, parameters.ARBITER),
    arguments=parameters.arguments,
)
