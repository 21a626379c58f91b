"""A block as Verilog: one file, ports named and ordered as in :mod:`lockstep.rtl.flat`, clock and reset first.

Amaranth hands its netlist to Yosys as RTLIL. On the way every identifier becomes one that Verilog can write without
escapes: ``warp_pool.request_selector`` is ``warp_pool_request_selector``, a second ``p__addr`` is ``p__addr_17``. What
Yosys writes has a wire for each operator (:func:`operators`); :mod:`lockstep.rtl.expressions` makes expressions of
them. The same block always gives the same text.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from amaranth.back import rtlil as backend
from amaranth.lib import wiring

from lockstep.rtl import expressions, registry, widths, yosys
from lockstep.rtl.flat import Flat, FlatPort, flat_ports

CLOCK = ("clk", "rst")

_KEYWORDS = frozenset(
    """
    accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind
    bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config
    const constraint context continue cover covergroup coverpoint cross deassign default defparam design disable dist
    do edge else end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup endinterface
    endmodule endpackage endprimitive endprogram endproperty endsequence endspecify endtable endtask enum event
    eventually expect export extends extern final first_match for force foreach forever fork forkjoin function
    generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies import incdir
    include initial inout input inside instance int integer interconnect interface intersect join join_any join_none
    large let liblist library local localparam logic longint macromodule matches medium modport module nand negedge
    nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or output package packed parameter pmos
    posedge primitive priority program property protected pull0 pull1 pulldown pullup pulsestyle_ondetect
    pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg reject_on release repeat
    restrict return rnmos rpmos rtran rtranif0 rtranif1 s_always s_eventually s_nexttime s_until s_until_with scalared
    sequence shortint shortreal showcancelled signed small soft solve specify specparam static string strong strong0
    strong1 struct super supply0 supply1 sync_accept_on sync_reject_on table tagged task this throughout time
    timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef union unique unique0
    unsigned until until_with untyped use uwire var vectored virtual void wait wait_order wand weak weak0 weak1 while
    wildcard wire with within wor xnor xor
    """.split()
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\\\S+')
# Memories of words without bits, such as the pointer of a queue of one entry: Yosys would divide by their width.
_EMPTY_MEMORY = re.compile(
    r"^  memory width 0 .*\n|^  cell \$mem\w+ \S+\n(?:    .*\n)*?    parameter \\WIDTH 0\n(?:    .*\n)*?  end\n",
    re.MULTILINE,
)
_CONNECTED = re.compile(r"^connect (\\\S+) (\\\S+__(?:addr|data)(?:\$\d+)?) \[\d+:0\]$", re.MULTILINE)
_MODULE = re.compile(r"^module (\w+)\(", re.MULTILINE)
_LATCH = re.compile(r"\b(_\d+_) <= (\w+)\[")
_WORD = re.compile(r"\w+")
_PORT = re.compile(r"^  wire width (\d+) (input|output) \d+ +(\S+)$")


class ExportError(ValueError):
    """A block that Verilog cannot carry as it is; the message names the port."""


@dataclass(frozen=True)
class Documentation:
    """What a component's docstring tells: its first sentence, and the one that speaks of latency, if any."""

    purpose: str
    latency: str

    @classmethod
    def of(cls, component: type[wiring.Component]) -> Documentation:
        paragraphs = [" ".join(part.split()) for part in (inspect.getdoc(component) or "").split("\n\n")]
        first = _sentences(paragraphs[0])[0] if paragraphs[0] else ""
        spoken = (sentence for paragraph in paragraphs for sentence in _sentences(paragraph))
        return cls(first, next((sentence for sentence in spoken if "Latency" in sentence), ""))


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?]) (?=[A-Z])", text)


def version() -> str:
    """Of Lockstep."""
    return importlib.metadata.version("lockstep-sm")


def rtlil(component: wiring.Component, name: str) -> str:
    """A component, which must not have been elaborated, as RTLIL with flat ports; the top module is called ``name``."""
    flat = Flat(component)
    text = backend.convert(flat, name=name, ports=list(flat.signals.values()), emit_src=False)
    component._MustUse__used = True  # Flat elaborates it itself
    return _ordered(_registers_named(_EMPTY_MEMORY.sub("", text)), name, flat.ports)


def _registers_named(text: str) -> str:
    """Of a register that also is a memory's address or data, Amaranth may take the name of either: the register's."""
    return "\nmodule ".join(_register_named(module) for module in text.split("\nmodule "))


def _register_named(module: str) -> str:
    for register, port in _CONNECTED.findall(module):
        if f"    connect \\Q {port}\n" in module:
            module = _TOKEN.sub(partial(_replaced, {register: port, port: register}), module)
    return module


def _ordered(text: str, name: str, ports: Sequence[FlatPort]) -> str:
    """Number the top module's ports in the order of ``flat_ports``, after clock and reset; Yosys counts from 1."""
    order = {f"\\{port}": number for number, port in enumerate((*CLOCK, *(port.name for port in ports)), 1)}
    lines, inside = [], False
    for line in text.split("\n"):
        if line.startswith("module "):
            inside = line == f"module \\{name}"
        if inside and (found := _PORT.match(line)):
            line = f"  wire width {found[1]} {found[2]} {order[found[3]]} {found[3]}"
        lines.append(line)
    return "\n".join(lines)


def _replaced(names: Mapping[str, str], found: re.Match[str]) -> str:
    return names.get(found[0], found[0])


def connections(ports: Iterable[FlatPort]) -> list[str]:
    """Each port of an instance, clock and reset among them, on a wire of its name."""
    return [f".{name}({name})" for name in (*CLOCK, *(port.name for port in ports))]


def verilog(component: wiring.Component, block: str, parameters: Mapping[str, int]) -> str:
    """The Verilog text of a block; ``parameters`` are those that the component was made with, for the header.

    Raises
    ------
    ExportError
        when a port has the name of a Verilog keyword.
    """
    kind = type(component)
    name = block.rpartition(".")[2]
    body = expressions.readable(operators(component, block), _identifier(name))
    contracts = {part: _contract(registry.component(part)) for part in registry.blocks()}
    introduced = _MODULE.sub(partial(_introduced, name, contracts), body)
    return _header(block, kind, parameters) + introduced


def operators(component: wiring.Component, block: str) -> str:
    """The modules of a block with a wire for each operator; those without a name are ``n1``, ``n2`` and so on.

    Raises
    ------
    ExportError
        when a port has the name of a Verilog keyword.
    """
    name = block.rpartition(".")[2]
    for port in flat_ports(component):
        if port.name in _KEYWORDS:
            raise ExportError(f"{block}: the port name {port.name!r} is a Verilog keyword")
    return modules(rtlil(component, name), name)


def modules(text: str, name: str) -> str:
    """RTLIL as Verilog with a wire for each operator; ``name`` is the top module."""
    script = [
        "read_rtlil block.il", f"hierarchy -top {_identifier(name)}", "proc -noopt -norom", "memory_collect",
        "opt_clean", "rename -enumerate -pattern n%", "write_verilog -noattr block.v",
    ]  # fmt: skip
    readable = _readable(widths.explicit(text), name)
    verilog = _latches_named(yosys.run(script, {"block.il": readable}, ["block.v"])["block.v"])
    return verilog.split("\n", 1)[1].lstrip("\n")


def _introduced(top: str, contracts: Mapping[str, str], module: re.Match[str]) -> str:
    """The beginning of a module, below the contract of the block that it is inside another one."""
    name = re.sub(r"_\d+$", "", module[1].removeprefix(f"{top}_"))
    found = next((block for block in contracts if block.endswith(f".{name}")), "")
    return f"// {found}\n{contracts[found]}{module[0]}" if found and module[1] != top else module[0]


def _contract(component: type[wiring.Component]) -> str:
    """A component's docstring as comments."""
    lines = (inspect.getdoc(component) or "").split("\n")
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


def _latches_named(text: str) -> str:
    """Verilog whose output latches of memories have names: ``table_read`` is what a read port of ``table`` gives."""
    return "endmodule".join(_latch_named(module) for module in text.split("endmodule"))


def _latch_named(module: str) -> str:
    taken = set(_WORD.findall(module))
    for latch, memory in dict.fromkeys(_LATCH.findall(module)):
        name = f"{memory.strip('_')}_read"
        while name in taken:
            name += "_"
        taken.add(name)
        module = re.sub(rf"\b{latch}\b", name, module)
    return module


def _header(block: str, component: type[wiring.Component], parameters: Mapping[str, int]) -> str:
    sizes = ", ".join(f"{key} = {value}" for key, value in parameters.items())
    made = f"Lockstep {version()}, Amaranth {importlib.metadata.version('amaranth')}, Yosys {yosys.version()}"
    lines = [f"// {line}\n" for line in (f"{block}({sizes})", made)]
    return "".join(lines) + "//\n" + _contract(component) + "\n"


def _readable(text: str, top: str) -> str:
    """RTLIL with identifiers that Verilog takes as they are; copies of the top module's ports lose their names."""
    renamed = _identifiers(sorted({token[1:] for token in _tokens(text)}))
    aliases = _aliases(text, top)

    def replace(match: re.Match[str], private: bool) -> str:
        token = match[0]
        if token.startswith('"'):
            return f'"\\\\{renamed[token[3:-1]]}"' if token[3:-1] in renamed and token[1:3] == "\\\\" else token
        name = token[1:]
        return f"$inner${renamed[name]}" if private and name in aliases else f"\\{renamed[name]}"

    lines, inside = [], False
    for line in text.split("\n"):
        if line.startswith("module "):
            inside = line == f"module \\{top}"
        port, rest = re.match(r"( +connect \\\S+)?(.*)", line).groups(default="")  # type: ignore[union-attr]
        lines.append(
            _TOKEN.sub(lambda match: replace(match, False), port)
            + _TOKEN.sub(lambda match, private=inside: replace(match, private), rest)
        )
    return "\n".join(lines)


def _tokens(text: str) -> Iterable[str]:
    """Public identifiers, with their backslash; those in strings (the names of memories) are declared elsewhere too."""
    return (token for token in _TOKEN.findall(text) if token.startswith("\\"))


def _aliases(text: str, top: str) -> set[str]:
    """The names of nets that only repeat the top module's ports inside the component."""
    body = text.split(f"module \\{top}\n", 1)[1].split("\nmodule ", 1)[0]
    ports = {found[3][1:] for line in body.split("\n") if (found := _PORT.match(line))}
    wires = set(re.findall(r"^  wire width \d+ \\(\S+)$", body, re.MULTILINE))
    return {wire for wire in wires if re.sub(r"\$\d+$", "", wire.replace("__", "_")) in ports}


def _identifiers(names: Iterable[str]) -> dict[str, str]:
    """Plain identifiers, all different. Those that are plain already stay as they are."""
    result = {name: name for name in names if _PLAIN.fullmatch(name) and name not in _KEYWORDS}
    taken = set(result.values())
    for name in names:
        if name not in result:
            result[name] = _identifier(name)
            while result[name] in taken:
                result[name] += "_"
            taken.add(result[name])
    return result


def _identifier(name: str) -> str:
    plain = re.sub(r"\W+", "_", name).strip("_")
    return f"{plain}_" if plain in _KEYWORDS or not plain or plain[0].isdigit() else plain
