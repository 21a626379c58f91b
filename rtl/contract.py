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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal, ValueLike
from amaranth.lib import wiring

from lockstep.rtl import export, expressions
from lockstep.rtl.flat import FlatPort, flat_ports

Protocol = Callable[[Module, Mapping[str, int], Mapping[str, Signal]], ValueLike]
"""From a block's parameters, and its ports by flat names, to a value that is 1 in cycles whose inputs are legal."""

_HEADER = """\
// The contract of {block}, for simulators and provers: bound to every instance by the last line.
// Labels of assumptions are duties of what is around the block.

module {name}_contract(
{ports}
);
  // Nothing is claimed before the first reset.
  reg was_reset = 1'b0;
  always @(posedge clk) if (rst) was_reset <= 1'b1;
  default disable iff (rst || !was_reset);
  default clocking @(posedge clk);
  endclocking
"""


def systemverilog(
    component: wiring.Component, block: str, parameters: Mapping[str, int], protocol: Protocol | None = None
) -> str:
    """The text of a component's contract; ``parameters`` are those that it was made with."""
    name, ports = block.rpartition(".")[2], flat_ports(component)
    listed = [f"  input wire {_range(port.bits)}{port.name}" for port in ports]
    parts = [
        _HEADER.format(block=block, name=name, ports=",\n".join(["  input wire clk", "  input wire rst", *listed]))
    ]
    parts += _streams(ports)
    parts += _combinational(component, ports)
    parts += _constant(getattr(component, "constant", ()), ports)
    end = f"endmodule\n\nbind {name} {name}_contract contract (.*);\n"
    if not protocol:
        return "".join([*parts, end])
    joined = ", ".join(f".{port}({port})" for port in [*export.CLOCK, *(port.name for port in ports)])
    parts.append(
        f"\n  // {' '.join((protocol.__doc__ or '').split())}\n  wire legal;\n"
        f"  {name}_protocol protocol ({joined}, .legal(legal));\n"
    )
    parts.append(_property("inputs_legal", "assume", "legal"))
    legal = _Legal(protocol, parameters, ports)
    text = rtlil.convert(legal, name=f"{name}_protocol", ports=legal.ports, emit_src=False)
    made = expressions.readable(export.modules(text, f"{name}_protocol"), f"{name}_protocol")
    return "".join([*parts, end, "\n", made])


def _range(bits: int) -> str:
    return f"[{bits - 1}:0] " if bits > 1 else ""


def _property(label: str, kind: str, text: str) -> str:
    return f"  {label}: {kind} property ({text});\n"


def _streams(ports: Sequence[FlatPort]) -> Iterator[str]:
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
        yield f"\n  // {name}: {kind}, {'in' if valid.is_input else 'out'}.\n"
        for output in (valid, ready):
            if output and not output.is_input:
                yield _property(f"{output.name}_known", "assert", f"!$isunknown({output.name})")
        if payload and not valid.is_input:
            yield _property(f"{name}_known", "assert", f"{valid.name} |-> !$isunknown({_joined(payload)})")
        if not ready:
            yield _property(f"{name}_happens", "cover", valid.name)
            continue
        if not observed:
            held = f"{valid.name} && $stable({_joined(payload)})" if payload else valid.name
            whose = "assume" if valid.is_input else "assert"
            yield _property(f"{name}_holds", whose, f"{valid.name} && !{ready.name} |=> {held}")
        yield _property(f"{name}_taken", "cover", f"{valid.name} && {ready.name}")
        yield _property(f"{name}_waits", "cover", f"{valid.name} && !{ready.name}")


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"


def _combinational(component: wiring.Component, ports: Sequence[FlatPort]) -> Iterator[str]:
    """What each output may depend on within a cycle."""
    declared: Mapping[str, tuple[str, ...]] = getattr(component, "combinational", {})
    registered = [port.name for port in ports if port.path[0] == "o"]
    if registered:
        yield (
            "\n  // These follow the clock alone, so they are still while it is low.\n"
            "  // (In a netlist with delays, they may be late.)\n"
        )
        for name in registered:
            yield f"  always @({name}) if (was_reset) {name}_follows_clock: assert (clk !== 1'b0);\n"
    for output, inputs in declared.items():
        driven = [port.name for port in ports if port.path[0] == "c" and port.is_below(output)]
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
        for name in driven:
            width = next(port.bits for port in ports if port.name == name)
            same = f"{label}_sources == {_joined([port.name for port in sources])}"
            yield f"  reg {_range(width)}{name}_low;\n  always @(negedge clk) {name}_low <= {name};\n"
            yield _property(f"{name}_follows", "assert", f"{same} |-> {name} == {name}_low")


def _constant(names: Sequence[str], ports: Sequence[FlatPort]) -> Iterator[str]:
    for port in ports:
        if any(port.is_below(name) for name in names):
            yield f"\n  // {port.name} changes during a reset only.\n"
            yield _property(f"{port.name}_constant", "assume", f"!$past(rst) |-> $stable({port.name})")


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
