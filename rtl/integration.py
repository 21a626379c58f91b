"""What an engineer needs beside a block's Verilog: constraints, an instance to copy, a report, a FuseSoC core.

All of it comes from what the component declares, and from its netlist.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from amaranth.lib import wiring

from lockstep.rtl import export
from lockstep.rtl.flat import FlatPort, flat_ports
from lockstep.rtl.netlist import Memory, Netlist

OUTSIDE = 0.5  # the share of a clock period that constraints leave to the surroundings


def constraints(component: wiring.Component, block: str, period: float) -> str:
    """SDC: the clock, and when inputs come and outputs must be there. ``period`` is in nanoseconds.

    A path from an input through a combinational output crosses the surroundings twice, so it leaves them half as long
    each time.
    """
    ports = flat_ports(component)
    constant = [port for port in ports if any(port.is_below(name) for name in getattr(component, "constant", ()))]
    declared: Mapping[str, tuple[str, ...]] = getattr(component, "combinational", {})
    through = [port for port in ports if port.is_input and port not in constant and _is_source(port, declared)]
    outputs = [port for port in ports if port.path[0] == "c"]
    others = [port for port in ports if port not in [*constant, *through, *outputs]]
    lines = [
        f"# Constraints of {block}. To change them, set before: period (ns), outside (the surroundings' share of it).",
        f"if {{![info exists period]}} {{set period {period:.3f}}}",
        f"if {{![info exists outside]}} {{set outside {OUTSIDE}}}",
        "create_clock -name clk -period $period [get_ports clk]",
        "",
        "# Inputs that go to registers, and outputs that come from them.",
        *_delays(["rst", *_patterns(others, True)], "input", "$outside * $period"),
        *_delays(_patterns(others, False), "output", "$outside * $period"),
    ]
    if outputs:
        lines += [
            "", "# Outputs that depend on inputs of the same cycle, and these.",
            *_delays(_patterns(through, True), "input", "0.5 * $outside * $period"),
            *_delays(_patterns(outputs, False), "output", "0.5 * $outside * $period"),
        ]  # fmt: skip
    if constant:
        lines += ["", "# These change during a reset only."]
        lines += [f"set_false_path -from [get_ports {{{pattern}}}]" for pattern in _patterns(constant, True)]
    return "\n".join(lines) + "\n"


def _is_source(port: FlatPort, declared: Mapping[str, tuple[str, ...]]) -> bool:
    return any(port.is_below(path) for sources in declared.values() for path in sources)


def _patterns(ports: Sequence[FlatPort], inputs: bool) -> list[str]:
    """Names that find all bits of ports, in every tool."""
    return [port.name if port.bits == 1 else f"{port.name}[*]" for port in ports if port.is_input == inputs]


def _delays(patterns: Sequence[str], way: str, delay: str) -> list[str]:
    return [f"set_{way}_delay -clock clk [expr {{{delay}}}] [get_ports {{{pattern}}}]" for pattern in patterns]


def instance(component: wiring.Component, block: str) -> str:
    """An instance with a wire for each port, to copy."""
    name, ports = block.rpartition(".")[2], flat_ports(component)
    wires = [f"wire {port.range}{port.name};" for port in ports]
    joined = ",\n".join(f"  {each}" for each in export.connections(ports))
    return "\n".join([f"// An instance of {block}, to copy.", *wires, f"{name} {name}_0 (", joined, ");", ""])


def report(component: wiring.Component, block: str) -> str:
    """What a block holds, and what it has not and a chip may need; ``component`` must not have been elaborated.

    Raises
    ------
    ValueError
        for a block with more than one clock, latches, or asynchronous resets.
    """
    declared: Mapping[str, tuple[str, ...]] = getattr(component, "combinational", {})
    netlist = Netlist(component)
    if kinds := netlist.unusual():
        raise ValueError(f"{block}: has {', '.join(kinds)}; a block has plain flip-flops on the rising edge of clk")
    registers, reset = netlist.registers(), netlist.resettable()
    bits, memories = sum(register.bits for register in registers), netlist.memories()
    kept = [register.name for register in registers if reset.get(register.name, 0) < register.bits]
    names = ", ".join(f"`{name}`" for name in kept)
    lines = [
        f"# {block}: for integration", "",
        "What there is:", "",
        f"- {bits:,} flip-flops, all on the rising edge of `clk`. `rst` is synchronous, and one cycle of it is enough.",
        *([f"- Flip-flops to which `rst` gives no value; benches power up with random ones: {names}."] if kept else []),
        *(f"- Memory `{memory.name}`: {_described(memory)}" for memory in memories),
        *(f"- Output `{output}` depends on {', '.join(f'`{source}`' for source in sources)} of the same cycle."
          for output, sources in declared.items()),
        "- All other outputs depend on flip-flops and memories alone." if declared else
        "- All outputs depend on flip-flops and memories alone.",
        "", "What there is not:", "",
        "- Scan chains and test points. All flip-flops are plain, so a tool may replace them by scannable ones.",
        "- Clock gating. Every flip-flop is clocked in every cycle; one that keeps its value does so by a multiplexer.",
        "- Parity and error correction, of ports, flip-flops and memories.",
        *(["- Self-test, repair and sleep of memories, which are `reg` arrays."] if memories else []),
        "- Latches, asynchronous resets, tri-states, clock domain crossings, power domains.",
        "- Buses of a standard: the ports are streams (`valid`, `ready`) and events (`valid`), see the contract.",
        "- Placement, and figures with wires: `lockstep synth` maps to cells without them.", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _described(memory: Memory) -> str:
    clocked = memory.reads - memory.asynchronous
    ports = [(memory.writes, "written"), (clocked, "read with the clock"), (memory.asynchronous, "read in the cycle")]
    told = ", ".join(f"{what} by {count} port{'s' if count > 1 else ''}" for count, what in ports if count)
    return f"{memory.depth} words of {memory.width} bits, {told}. A reset does not clear it."


def core(component: wiring.Component, block: str) -> str:
    """The FuseSoC description (CAPI 2) of a block: its files, and targets to lint, simulate, check and map it."""
    area, _, name = block.partition(".")
    purpose = export.Documentation.of(type(component)).purpose
    return _CORE.format(area=area, name=name, version=export.version(), purpose=json.dumps(purpose))


_CORE = """\
CAPI=2:
name: lockstep:{area}:{name}:{version}
description: {purpose}
filesets:
  rtl:
    files: [{name}.v]
    file_type: verilogSource
  contract:
    files: [{name}_contract.sv]
    file_type: systemVerilogSource
  bench:
    files:
      - {name}_bench.sv: {{file_type: systemVerilogSource}}
      - {name}_bench.hex: {{file_type: user, copyto: {name}_bench.hex}}
  alone:
    files:
      - {name}_alone.sv: {{file_type: systemVerilogSource}}
      - {name}.sby.j2: {{file_type: sbyConfigTemplate}}
  constraints:
    files: [{name}.sdc]
    file_type: SDC
targets:
  default:
    filesets: [rtl, constraints]
    toplevel: {name}
  lint:
    filesets: [rtl, contract]
    toplevel: {name}
    flow: lint
    flow_options: {{tool: verilator}}
  sim:
    filesets: [rtl, contract, bench]
    toplevel: {name}_bench
    flow: sim
    flow_options: {{tool: verilator, mode: binary, verilator_options: [--timing, --assert, -CFLAGS -std=c++20]}}
  formal:
    filesets: [rtl, contract, alone]
    toplevel: {name}_alone
    default_tool: symbiyosys
  synth:
    filesets: [rtl, constraints]
    toplevel: {name}
    flow: generic
    flow_options: {{tool: yosys, arch: ecp5, output_format: json}}
"""


def bounded(block: str) -> str:
    """A template of SymbiYosys's configuration, which looks for a broken contract within 8 cycles from a reset."""
    return _BOUNDED.format(name=block.rpartition(".")[2])


_BOUNDED = """\
[options]
mode bmc
depth 8

[engines]
smtbmc z3

[script]
{{{{"-formal"|gen_reads}}}}
prep -top {name}_alone

[files]
{{{{files}}}}
"""


def bench(component: wiring.Component, block: str, cycles: int) -> str:
    """A testbench that plays a table of inputs and expected outputs, :func:`row` for each cycle, and ends with PASS."""
    name, ports = block.rpartition(".")[2], flat_ports(component)
    inputs, outputs = ([port for port in ports if port.is_input == side] for side in (True, False))
    bits = [sum(port.bits for port in side) for side in (inputs, outputs)]
    declared = [f"  {'reg' if port.is_input else 'wire'} [{port.bits - 1}:0] {port.name};" for port in ports]
    return _BENCH.format(
        name=name, cycles=cycles, width=1 + sum(bits), outputs=bits[1],
        declared="\n".join(declared),
        joined=", ".join(export.connections(ports)),
        driven=", ".join(["rst", *(port.name for port in inputs), "expected"]),
        found=", ".join(port.name for port in outputs),
        told="\n".join(_checked(outputs)),
    )  # fmt: skip


def _checked(outputs: Sequence[FlatPort]) -> Iterator[str]:
    """Statements that tell of each output that is not what it should be."""
    low = sum(port.bits for port in outputs)
    for port in outputs:
        low -= port.bits
        wanted = f"expected[{low + port.bits - 1}:{low}]"
        told = f'$display("cycle %0d: {port.name} is %h, not %h", k, {port.name}, {wanted})'
        yield f"        if ({port.name} !== {wanted}) {told};"


_BENCH = """\
// Plays {name}_bench.hex: in each row of a cycle the reset, the inputs, and the outputs that the golden model has.

module {name}_bench;
  reg clk, rst;
{declared}
  reg [{outputs}-1:0] expected;
  reg [{width}-1:0] table_ [0:{cycles}-1];
  integer k, wrong;
  {name} block ({joined});

  initial begin
    $readmemh("{name}_bench.hex", table_);
    wrong = 0;
    clk = 1'b0;
    {{{driven}}} = table_[0];
    rst = 1'b1;
    for (k = 0; k < 2; k = k + 1) begin
      #1 clk = 1'b1;
      #1 clk = 1'b0;
    end
    for (k = 0; k < {cycles}; k = k + 1) begin
      {{{driven}}} = table_[k];
      #1;
      if ({{{found}}} !== expected) begin
        wrong = wrong + 1;
{told}
      end
      clk = 1'b1;
      #1 clk = 1'b0;
    end
    if (wrong != 0) $fatal(1, "FAIL: %0d of {cycles} cycles differ", wrong);
    $display("PASS: {cycles} cycles");
    $finish;
  end
endmodule
"""


def row(ports: Sequence[FlatPort], reset: bool, values: Mapping[str, int]) -> str:
    """A cycle of a bench's table, in hexadecimal."""
    bits = f"{reset:b}" + "".join(f"{values[port.name]:0{port.bits}b}" for port in _in_order(ports))
    return f"{int(bits, 2):0{-(-len(bits) // 4)}x}"


def _in_order(ports: Sequence[FlatPort]) -> list[FlatPort]:
    return sorted(ports, key=lambda port: not port.is_input)
