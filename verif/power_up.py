"""Hardware as it is when power comes: without initial values, so that nothing but a reset makes it what it must be."""

from __future__ import annotations

import re

_REGISTER = re.compile(r"^(  (?:output )?reg (?:\[\d+:0\] )?\S+) = \d+'h\w+;$", re.MULTILINE)
_CONTENTS = re.compile(r"^  initial begin\n((?:    \S+\[\d+\] = \d+'h\w+;\n)+)  end\n", re.MULTILINE)


def stripped(verilog: str) -> str:
    """Exported Verilog without initial values of registers, and of memories that are written somewhere."""
    return "endmodule".join(map(_stripped, verilog.split("endmodule")))


def _stripped(module: str) -> str:
    def contents(found: re.Match[str]) -> str:
        memory = found[1].strip().partition("[")[0]
        written = re.search(rf"^ +{re.escape(memory)}\[.*\] <= ", module, re.MULTILINE)
        return "" if written else found[0]

    return _CONTENTS.sub(contents, _REGISTER.sub(r"\1;", module))
