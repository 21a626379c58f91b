"""Hardware as it is when power comes: without initial values, so that nothing but a reset makes it what it must be."""

from __future__ import annotations

import re

_REGISTER = re.compile(r"^(  (?:output )?reg (?:\[\d+:0\] )?\S+) = \d+'[hd]\w+(?=[;,]?$)", re.MULTILINE)
_WORDS = re.compile(
    r"^  initial begin\n    (\w+)\[\d+\] = \d+'[hd]\w+;\n(?:    \1\[\d+\] = \d+'[hd]\w+;\n)*  end\n", re.MULTILINE
)
_FILLED = re.compile(r"^  initial begin : fill_(\w+)\n(?:    .*\n)+  end\n", re.MULTILINE)


def stripped(verilog: str) -> str:
    """Exported Verilog without initial values of registers, and of memories that are written somewhere."""
    return "endmodule".join(map(_stripped, verilog.split("endmodule")))


def _stripped(module: str) -> str:
    def contents(found: re.Match[str]) -> str:
        written = re.search(rf"^ +{re.escape(found[1])}\[.*\] <= ", module, re.MULTILINE)
        return "" if written else found[0]

    return _FILLED.sub(contents, _WORDS.sub(contents, _REGISTER.sub(r"\1", module)))
