"""The contract of a block's ports as SystemVerilog: assertions and covers in a module that is bound to every instance.

All of it comes from what the component declares. The block owes, and its environment may rely on:

- what a stream out presents holds until it is taken;
- an output depends within a cycle on no input but those that ``combinational`` names;
- after a reset, ``valid`` and ``ready`` are known, and so is a payload that is presented.

Its environment owes, and the block may rely on:

- what a stream into it presents holds until it is taken;
- inputs that ``constant`` names change during a reset only;
- what the block's bench declares as its ``protocol``.

The duties of the environment are assumptions: a simulator reports one that does not hold, and a prover of the block
alone relies on it. Covers are the transfers and the waits of each stream, and the events.

Yosys knows neither concurrent assertions nor ``bind``. For it, the same are immediate ones, but for what only a
simulator can see, and :func:`alone` is a module with the block and its contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal, ValueLike
from amaranth.lib import wiring

from lockstep.rtl import export, expressions
from lockstep.rtl.flat import FlatPort, flat_ports

Protocol = Callable[[Module, Mapping[str, int], Mapping[str, Signal]], ValueLike]
"""From a block's parameters, and its ports by flat names, to a value that is 1 in cycles whose inputs are legal."""

_MODULE = """\
// The contract of {block}, for simulators and provers: bound to every instance of it.
// Assumptions are duties of what is around the block. Nothing is claimed before the first reset.

module {name}_contract(
{ports}
);
  reg was_reset = 1'b0;
  always @(posedge clk) if (rst) was_reset <= 1'b1;
  reg running = 1'b0;  // the last cycle was no reset, and there was one before
  always @(posedge clk) running <= was_reset && !rst;
{legal}`ifndef YOSYS
  default disable iff (rst || !was_reset);
  default clocking @(posedge clk);
  endclocking
{concurrent}`else
  initial assume (rst);
  always @(posedge clk) if (was_reset && !rst) begin
{immediate}  end
`endif
endmodule

`ifndef YOSYS
bind {name} {name}_contract contract (.*);
`endif
"""


@dataclass(frozen=True)
class Property:
    """``then`` holds in each cycle; with ``when``, where that holds; with ``after``, in the cycle after such a one."""

    label: str
    kind: Literal["assert", "assume", "cover"]
    then: str
    when: str = ""
    after: bool = False

    @property
    def concurrent(self) -> str:
        implied = f"{self.when} {'|=>' if self.after else '|->'} " if self.when else ""
        return f"  {self.label}: {self.kind} property ({implied}{self.then});\n"

    @property
    def immediate(self) -> str:
        """For a process that runs in cycles without reset; empty for what a prover cannot see."""
        if "$isunknown" in self.then:
            return ""
        when = f"running && $past({self.when})" if self.after else self.when.replace("!$past(rst)", "running")
        condition = f"if ({when}) " if when else ""
        return f"    {condition}{self.label}: {self.kind} ({self.then});\n"


def systemverilog(
    component: wiring.Component, block: str, parameters: Mapping[str, int], protocol: Protocol | None = None
) -> str:
    """The text of a component's contract; ``parameters`` are those that it was made with."""
    name, ports = block.rpartition(".")[2], flat_ports(component)
    groups = [*_streams(ports), *_constant(getattr(component, "constant", ()), ports)]
    legal = made = ""
    if protocol:
        joined = ", ".join(export.connections(ports))
        legal = f"  wire legal;\n  {name}_protocol protocol ({joined}, .legal(legal));\n"
        groups.append((" ".join((protocol.__doc__ or "").split()), [Property("inputs_legal", "assume", "legal")]))
        part = _Legal(protocol, parameters, ports)
        text = rtlil.convert(part, name=f"{name}_protocol", ports=part.ports, emit_src=False)
        made = "\n" + expressions.readable(export.modules(text, f"{name}_protocol"), f"{name}_protocol")
    listed = [f"  input wire {port.range}{port.name}" for port in ports]
    concurrent = [f"\n  // {title}\n{''.join(each.concurrent for each in properties)}" for title, properties in groups]
    whole = _MODULE.format(
        block=block, name=name, ports=",\n".join(["  input wire clk", "  input wire rst", *listed]), legal=legal,
        concurrent="".join([*concurrent, *_combinational(component, ports)]),
        immediate="".join(each.immediate for _, properties in groups for each in properties),
    )  # fmt: skip
    return whole + made


def alone(component: wiring.Component, block: str) -> str:
    """A block and its contract in a module whose inputs are free: the top of a proof with Yosys."""
    name, ports = block.rpartition(".")[2], flat_ports(component)
    listed = [f"  {'input' if port.is_input else 'output'} wire {port.range}{port.name}" for port in ports]
    joined = ", ".join(export.connections(ports))
    lines = [
        f"module {name}_alone(", ",\n".join(["  input wire clk", "  input wire rst", *listed]), ");",
        f"  {name} block ({joined});", f"  {name}_contract contract ({joined});", "endmodule", "",
    ]  # fmt: skip
    return "\n".join(lines)


# The last value tells changes from triggers of a simulator that sees the output being what it was.
_STILL = """\
  // verilator lint_off SYNCASYNCNET
  reg {range}{name}_last;
  always @({name}) begin
    if (running && !rst && {name} !== {name}_last) {name}_follows_clock: assert (clk !== 1'b0);
    {name}_last = {name};
  end
  // verilator lint_on SYNCASYNCNET
"""


def _streams(ports: Sequence[FlatPort]) -> Iterator[tuple[str, list[Property]]]:
    """Of every ``valid`` with what goes with it: a stream if there is a ``ready``, otherwise an event."""
    by_path = {port.path[1:]: port for port in ports}
    for path, valid in by_path.items():
        if path[-1] != "valid":
            continue
        place, name = path[:-1], valid.name.removesuffix("_valid")
        beside = (valid.name, f"{name}_ready")
        payload = [port.name for key, port in by_path.items() if key[: len(place)] == place and port.name not in beside]
        ready = by_path.get((*place, "ready"))
        observed = ready and valid.is_input and ready.is_input
        kind = "an observed stream" if observed else "a stream" if ready else "an event"
        properties = [
            Property(f"{port.name}_known", "assert", f"!$isunknown({port.name})")
            for port in (valid, ready)
            if port and not port.is_input
        ]
        if payload and not valid.is_input:
            properties.append(Property(f"{name}_known", "assert", f"!$isunknown({_joined(payload)})", valid.name))
        if ready:
            waits = f"{valid.name} && !{ready.name}"
            if not observed:
                held = f"{valid.name} && $stable({_joined(payload)})" if payload else valid.name
                whose: Literal["assume", "assert"] = "assume" if valid.is_input else "assert"
                properties.append(Property(f"{name}_holds", whose, held, waits, after=True))
            properties.append(Property(f"{name}_taken", "cover", f"{valid.name} && {ready.name}"))
            properties.append(Property(f"{name}_waits", "cover", waits))
        else:
            properties.append(Property(f"{name}_happens", "cover", valid.name))
        yield f"{name}: {kind}, {'in' if valid.is_input else 'out'}.", properties


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"


def _combinational(component: wiring.Component, ports: Sequence[FlatPort]) -> Iterator[str]:
    """What each output may depend on within a cycle."""
    declared: Mapping[str, tuple[str, ...]] = getattr(component, "combinational", {})
    registered = [port for port in ports if port.path[0] == "o"]
    if registered:
        yield (
            "\n  // These follow the clock alone, so they are still while it is low.\n"
            "  // (In a netlist with delays, they may be late.)\n"
        )
        yield from (_STILL.format(name=port.name, range=port.range) for port in registered)
    for output, inputs in declared.items():
        driven = [port for port in ports if port.path[0] == "c" and port.is_below(output)]
        sources = [port for port in ports if port.is_input and any(port.is_below(path) for path in inputs)]
        bits = sum(port.bits for port in sources)
        label = output.replace(".", "_")
        if not driven:
            continue
        yield (
            f"\n  // From one edge of the clock to the next, {output} changes only with {' or '.join(inputs)}.\n"
            f"  reg [{bits - 1}:0] {label}_sources;\n"
            f"  always @(negedge clk) {label}_sources <= {_joined([port.name for port in sources])};\n"
        )
        for port in driven:
            name, same = port.name, f"running && {label}_sources == {_joined([each.name for each in sources])}"
            yield f"  reg {port.range}{name}_low;\n  always @(negedge clk) {name}_low <= {name};\n"
            yield Property(f"{name}_follows", "assert", f"{name} == {name}_low", same).concurrent


def _constant(names: Sequence[str], ports: Sequence[FlatPort]) -> Iterator[tuple[str, list[Property]]]:
    for port in ports:
        if any(port.is_below(name) for name in names):
            stable = Property(f"{port.name}_constant", "assume", f"$stable({port.name})", "!$past(rst)")
            yield f"{port.name} changes during a reset only.", [stable]


class _Legal(Elaboratable):
    """The protocol as a module, whose output ``legal`` says whether the inputs of this cycle are."""

    def __init__(self, protocol: Protocol, parameters: Mapping[str, int], ports: Sequence[FlatPort]) -> None:
        self.protocol, self.parameters = protocol, parameters
        self.domain = ClockDomain("sync")
        self.block = {port.name: Signal(port.bits, name=port.name) for port in ports}
        self.legal = Signal()
        self.ports = [self.domain.clk, self.domain.rst, *self.block.values(), self.legal]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += self.domain
        m.d.comb += self.legal.eq(self.protocol(m, self.parameters, self.block))
        return m
