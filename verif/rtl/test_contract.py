"""The contract that is bound to exported Verilog: every duty, broken on purpose, is reported by its name."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Const

from lockstep.rtl import contract, registry
from lockstep.sim.cosim.verilator import Program, build
from lockstep.verif import verilated
from lockstep.verif.blocks import Declaration, blocks, declaration
from lockstep.verif.levels import MUTATED, smoke
from lockstep.verif.simulate import simulate
from lockstep.verif.trace import record

pytestmark = pytest.mark.hardware


def around(declared: Declaration, output: str, value: str, more: str = "") -> str:
    """A block's Verilog in which an output has another value, made of the block's own, ``inner``."""
    ports = declared.ports(MUTATED)
    name = declared.name
    text = declared.verilog(MUTATED).replace(f"module {name}(", f"module {name}_right(")
    listed = [f"{'input' if port.is_input else 'output'} wire [{port.bits - 1}:0] {port.name}" for port in ports]
    joined = ", ".join(
        f".{each}({'inner' if each == output else each})" for each in ("clk", "rst", *(port.name for port in ports))
    )
    [bits] = [port.bits for port in ports if port.name == output]
    lines = [
        f"module {name}(input wire clk, input wire rst, {', '.join(listed)});", f"wire [{bits - 1}:0] inner;", more,
        f"{name}_right right({joined});", f"assign {output} = {value};", "endmodule", "",
    ]  # fmt: skip
    return text + "\n".join(lines)


TOGGLE = "reg toggle = 0; always @(posedge clk) toggle <= !toggle;"
MAIN = """\
#include "program.h"
#include "ports.h"
#include <fstream>
#include <iterator>
#include <vector>
// Plays the inputs of a trace, as player.cpp reads it, and looks at no output. Inputs change after the falling edge.
int main(int, char** arguments) {
    std::ifstream file(arguments[1], std::ios::binary);
    const std::vector<char> trace{std::istreambuf_iterator<char>(file), {}};
    VerilatedContext context;
    Block top(&context, "top");
    auto clock = [&](int clk) { top.clk = clk; context.timeInc(1); top.eval(); };
    top.rst = 1;
    clock(0); clock(1); clock(0); clock(1);
    for (const char* at = trace.data() + 8; at != trace.data() + trace.size();) {
        clock(0);
        auto take = [&](void* to, size_t bytes) { std::memcpy(to, at, bytes); at += bytes; };
        take(&top.rst, 1);
#define P(name) take(&top.name, sizeof(top.name));
        INPUTS
#undef P
#define P(name) at += sizeof(top.name);
        OUTPUTS
#undef P
        top.eval();
        clock(1);
    }
}
"""


def untouched(inputs: Any) -> None:
    """Leaves the inputs of a trace as they are."""


def broken(declared: Declaration, verilog: str = "", change: Callable[[Any], None] = untouched) -> str:
    """The duty that hardware, or an environment whose inputs are changed, breaks first in a short run, if any."""
    ports = declared.ports(MUTATED)
    text = (verilog or declared.verilog(MUTATED)) + declared.contract(MUTATED)
    header = "".join(
        f"#define {side} {' '.join(f'P({port.name})' for port in ports if port.is_input == is_input)}\n"
        for side, is_input in (("INPUTS", True), ("OUTPUTS", False))
    )
    files = {"program.h": (verilated.NATIVE / "program.h").read_text(encoding="utf-8"), "ports.h": header}
    folder = build("contract", Program(text, declared.name, MAIN, "run", files=files))
    with tempfile.TemporaryDirectory() as name:
        trace = Path(name) / "inputs.trace"
        played = record(declared, smoke(declared), 300)
        change(played.io["i"])
        verilated.write_trace(trace, played, ports)
        command = [str(folder / "run"), str(trace)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode == 0:
        return ""
    told = re.search(r"Assertion failed in top\.\w+\.contract\.(\w+)", done.stdout)
    assert told, done.stdout + done.stderr
    return told[1]


def quiet(inputs: Any) -> None:
    """Has share_locks asked nothing for some cycles, and then a CTA leaves."""
    if "granted" in inputs.dtype.names:
        for name in "seat", "registers", "scratchpad", "older":
            inputs[name][100:103] = inputs[name][100]
        inputs["granted"][100:103] = 0
        inputs["leave"][100], inputs["leave"][101] = 0, 1


more = partial(pytest.param, marks=pytest.mark.exhaustive)


@pytest.mark.parametrize(
    "block, output, value, told",
    [
        more("warppool.writeback", "result_mask", "inner", ""),
        more("warppool.writeback", "result_mask", "inner ^ toggle", "result_holds"),
        ("warppool.writeback", "result_valid", "inner & toggle", "result_holds"),
        more("warppool.writeback", "result_mask", "inner ^ result_ready", "result_mask_follows_clock"),
        more("sharing.share_locks", "refuse", "inner ^ granted[0]", ""),
        ("sharing.share_locks", "refuse", "inner ^ leave[0]", "refuse_follows"),
    ],
)
def test_hardware_that_breaks_its_contract(block: str, output: str, value: str, told: str) -> None:
    declared = declaration(block)
    assert broken(declared, around(declared, output, value, TOGGLE), quiet) == told


@pytest.mark.parametrize(
    "block, change, told",
    [
        ("warppool.writeback", lambda i: i["answer"]["valid"].__setitem__(slice(None, None, 2), 0), "answer_holds"),
        ("scheduling.warp_scheduler", lambda i: i["policy"].__setitem__(99, 1 - i["policy"][99]), "policy_constant"),
        ("lsu.line_crossbar", lambda i: i["load"]["payload"]["mapping"].__setitem__(99, 7), "inputs_legal"),
    ],
)
def test_an_environment_that_breaks_its_own(block: str, change: Callable[[Any], None], told: str) -> None:
    """A stream that does not wait, a constant that changes, an input outside the protocol."""
    declared = declaration(block)
    assert broken(declared) == ""
    assert broken(declared, change=change) == told


def test_a_bench_tells_what_is_broken() -> None:
    """And what its comparison would not see: a model that is as wrong as the hardware."""
    declared = declaration("warppool.writeback")
    contract = declared.contract(MUTATED).replace("result_valid && !result_ready |=>", "result_valid |=>")

    class Strict(Declaration):
        def contract(self, configuration: str) -> str:
            return contract

    strict = Strict(**vars(declared))
    [failure] = simulate(strict, MUTATED, [smoke(declared)], 300).failures
    assert re.fullmatch(r"odd: the contract is broken at \d+ ns: result_holds", failure)


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("block", blocks())
def test_every_contract_is_clean(block: str) -> None:
    """At small sizes, ports of one bit among them: only widths are others elsewhere."""
    declared = declaration(block)
    for configuration in {MUTATED, "one"} & declared.configurations.keys():
        text = declared.verilog(configuration) + declared.contract(configuration)
        warnings = verilated.lint(text, declared.name)
        # A contract looks at outputs whenever they change; Verilator may say so at the register behind one.
        assert [line for line in warnings if "SYNCASYNCNET" not in line] == []


def test_every_port_is_spoken_of() -> None:
    """Each output in an assertion, whatever else is said of it."""
    component = registry.largest("warppool.request_selector")
    text = contract.systemverilog(component, "warppool.request_selector", {})
    assert "protocol" not in text
    with_protocol = contract.systemverilog(component, "warppool.request_selector", {}, lambda m, p, ports: Const(1))
    assert "inputs_legal: assume property (legal);" in with_protocol
    assert "\nbind request_selector request_selector_contract contract (.*);\n" in text
    for port in ("access_valid", "access_ready", "policy", "room"):
        assert f"always @({port})" in text or f"{port} &&" in text or f"!{port}" in text
