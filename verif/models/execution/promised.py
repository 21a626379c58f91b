"""What PTX ISA 9.0 promises of approximate instructions."""

from __future__ import annotations

from typing import NamedTuple


class Promise(NamedTuple):
    """The largest errors: absolute, relative, in units in the last place."""

    absolute: float
    relative: float
    units: float


PROMISED = {
    "div.approx.f32": Promise(0, 0, 2),
    "div.full.f32": Promise(0, 0, 2),
    "rcp.approx.f32": Promise(0, 0, 1),
    "sqrt.approx.f32": Promise(0, 2**-23, 0),
    "rsqrt.approx.f32": Promise(0, 2**-22.9, 0),
    "sin.approx.f32": Promise(2**-20.5, 0, 0),
    "cos.approx.f32": Promise(2**-20.5, 0, 0),
    "lg2.approx.f32": Promise(2**-22, 2**-22, 0),
    "ex2.approx.f32": Promise(0, 0, 2),
    "tanh.approx.f32": Promise(0, 2**-11, 0),
    "tanh.approx.f16": Promise(2**-10.987, 0, 0),
    "ex2.approx.f16": Promise(0, 2**-9.9, 0),
    "tanh.approx.bf16": Promise(2**-8, 0, 0),
    "ex2.approx.bf16": Promise(0, 2**-7, 0),
    "rcp.approx.f64": Promise(0, 2**-20, 0),
    "rsqrt.approx.f64": Promise(0, 2**-20, 0),
}
