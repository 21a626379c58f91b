"""Faults of the kind that people make, planted in the hardware of this area: evidence for what finds them."""

from __future__ import annotations

from lockstep.verif.planted import Fault

FAULTS = [
    Fault("lsu.line_crossbar", "rtl", "a run has a word too many", "(in_run < words)", "(in_run <= words)"),
    Fault(
        "lsu.line_crossbar", "rtl", "words are narrow",
        "found.narrow.eq(load.size < 2)",
        "found.narrow.eq(load.size <= 2)",
    ),
    Fault(
        "lsu.line_crossbar", "rtl", "a byte has the sign of its half",
        "Mux(found.byte, byte[7], half[15])",
        "half[15]",
    ),
    Fault(
        "lsu.line_crossbar", "rtl", "the upper double has the lower one's word",
        "Mux(index[1], read[3], read[1])",
        "read[1]",
    ),
    Fault(
        "lsu.line_crossbar", "rtl", "a double fills three registers",
        "(1, written.double, written.quadruple, written.quadruple)",
        "(1, written.double, written.double, written.quadruple)",
    ),
    Fault(
        "lsu.line_crossbar", "rtl", "consecutive lanes all get the first word",
        "ranges | (load.mapping == Mapping.CONSECUTIVE)",
        "ranges",
    ),
    Fault("lsu.store_crossbar", "rtl", "a byte begins at an even address", "store.size <= bit", "store.size < bit"),
    Fault("lsu.store_crossbar", "rtl", "a line has twice its rows", "self.line_shift > bit", "self.line_shift >= bit"),
    Fault(
        "lsu.store_crossbar", "rtl", "a lane's number has bits of a lower lane",
        "bit.eq(below & ~upper |",
        "bit.eq(below |",
    ),
    Fault(
        "lsu.store_crossbar", "rtl", "a quadruple stores its second register in pairs",
        "pair.eq(Mux(width.double",
        "pair.eq(Mux(width.quadruple",
    ),
    Fault(
        "lsu.store_crossbar", "rtl", "a half stores its byte twice",
        "register[0][:16].replicate(2)",
        "register[0][:8].replicate(4)",
    ),
]  # fmt: skip
