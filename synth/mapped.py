"""A block as the gates that synthesis maps it to, for simulation without delays.

Memories are flip-flops here. Nothing has an initial value: what the gates do after a reset is what a chip would do. The
cells of a library are resolved to the functions that the library gives them.
"""

from __future__ import annotations

from amaranth.lib import wiring

from lockstep.rtl import export, yosys
from lockstep.synth.liberty import Library

_GATES = "AND,NAND,OR,NOR,XOR,XNOR,ANDNOT,ORNOT,MUX"


class Mapped(wiring.Component):
    """Has the ports of a block, and ``verilog``, its netlist; it cannot be elaborated.

    Parameters
    ----------
    component : wiring.Component
        The block, which must not have been elaborated.
    name : str
        Of the top module.
    library : Library, optional
        Whose cells are used; without it, Yosys' own gates.

    Raises
    ------
    YosysError
        when the library cannot be used.
    """

    def __init__(self, component: wiring.Component, name: str, library: Library | None = None) -> None:
        super().__init__(component.signature)
        self.combinational = getattr(component, "combinational", {})
        self.constant = getattr(component, "constant", ())
        self._MustUse__used = True  # it is never elaborated
        self.verilog = _netlist(export.rtlil(component, name), name, library)

    def elaborate(self, platform: object) -> None:
        raise TypeError("a netlist of gates is Verilog already")


def _netlist(rtlil: str, top: str, library: Library | None) -> str:
    end = ["opt_clean -purge", "write_verilog -noattr net.v"]
    files = {"block.il": rtlil}
    if library is None:
        legal = "dfflegalize -cell $_DFF_P_ x -cell $_DFFE_PP_ x"
        return yosys.run([*_begin(top), legal, f"abc -g {_GATES}", *end], files, ["net.v"])["net.v"]
    files = {"cells.lib": library.text, "net.il": cells(rtlil, top, library, "write_rtlil net")}
    resolve = [
        "read_liberty -ignore_miss_func cells.lib", "read_rtlil net.il", f"hierarchy -check -top {top}", "flatten",
        "opt_expr", "opt_dff -nodffe -nosdff",  # flip-flops whose own reset is tied off
    ]  # fmt: skip
    return yosys.run([*resolve, *end], files, ["net.v"])["net.v"]


def _begin(top: str) -> list[str]:
    script = ["read_rtlil block.il", "proc -norom", f"synth -top {top} -flatten -nordff -noabc"]
    return [*script, "setattr -unset init w:*"]


def cells(rtlil: str, top: str, library: Library, write: str = "write_json net") -> str:
    """The cells of a library that a block is mapped to, as ``write`` has them: RTLIL or JSON."""
    script = ["dfflibmap -liberty cells.lib", "abc -liberty cells.lib", "setundef -zero", "opt_clean -purge"]
    files = {"block.il": rtlil, "cells.lib": library.text}
    return yosys.run([*_begin(top), *script, write], files, ["net"])["net"]
