"""Synthesis: what is counted is what is there, memories stay memories, and the paper's table adds up."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from lockstep.cli import blocks, synth
from lockstep.cli import main as cli
from lockstep.rtl.netlist import Memory, Register
from lockstep.sim.cosim import liberty
from lockstep.sim.cosim.liberty import read
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.spec.registry import MECHANISMS
from lockstep.synth import gates, paper, synthesis
from lockstep.synth.liberty import Buffer, Library
from lockstep.synth.synthesis import NONE, CriticalPath, Margins, Synthesis, Timing, steady, synthesise

pytestmark = pytest.mark.hardware

GTX480 = description.load("gtx480")
WARPPOOL = MECHANISMS["warppool"]


def cell(name: str, area: float, output: str = "", extra: str = "", *inputs: str) -> str:
    """A cell of a library, with a delay of a tenth of a nanosecond."""
    before = "".join(f'{kind}_constraint(scalar) {{ values("0"); }} ' for kind in ("rise", "fall"))
    special = {"CK": "clock : true;", "D": f'timing() {{ related_pin : "CK"; timing_type : setup_rising; {before} }}'}
    pins = "".join(
        f"pin ({pin}) {{ direction : input; capacitance : 0.001; {special.get(pin, '')} }}\n" for pin in inputs
    )
    tables = {"cell_rise": 0.1, "cell_fall": 0.1, "rise_transition": 0.01, "fall_transition": 0.01}
    rows = {kind: f'"{value}, {value + 0.05}, {value + 0.1}"' for kind, value in tables.items()}
    arc = " ".join(f"{kind}(s) {{ values({row}, {row}, {row}); }}" for kind, row in rows.items())
    related = () if extra else inputs
    timing = " ".join(f'timing() {{ related_pin : "{pin}"; timing_sense : non_unate; {arc} }}' for pin in related)
    edge = f'timing() {{ related_pin : "CK"; timing_type : rising_edge; {arc} }}' if extra else ""
    function = "IQ" if extra else output
    name_of_output = "Q" if extra else "Y"
    return (
        f"cell ({name}) {{ area : {area}; {extra}\n{pins}"
        f'pin ({name_of_output}) {{ direction : output; function : "{function}"; {timing}{edge} }}\n}}\n'
    )


FLIP_FLOP = 'ff (IQ,IQN) { clocked_on : "CK"; next_state : "D"; }'
LIBRARY = (
    'library (test) {\n time_unit : "1ns";\n capacitive_load_unit (1,pf);\n delay_model : table_lookup;\n'
    " lu_table_template(s) { variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;\n"
    '  index_1 ("0.001, 0.5, 1"); index_2 ("0.001, 0.5, 1"); }\n'
    + cell("INV", 1, "!A", "", "A")
    + cell("BUFX1", 2, "A", "", "A")
    + cell("BUFX2", 3, "A", "", "A")
    + cell("NAND2", 2, "!(A B)", "", "A", "B")
    + cell("NOR2", 2, "!(A+B)", "", "A", "B")
    + cell("TIE0", 1, "0")
    + cell("TIE1", 1, "1")
    + cell("DFF", 8, "", FLIP_FLOP, "CK", "D")
    + "}\n"
)
FAST = re.sub(r'"0\.1, .*?"', '"0.02, 0.03, 0.04"', cell("DFF2", 9, "", FLIP_FLOP, "CK", "D"))
WITH_FAST = LIBRARY.removesuffix("}\n") + FAST + "}\n"


class Made(wiring.Component):
    """One input, one output, and what a test builds from them."""

    def __init__(self, body: Callable[[Module, Any], None], width: int = 8) -> None:
        super().__init__({"a": In(width), "x": Out(width)})
        self.body = body

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.body(m, self)
        return m


def synthesised(
    body: Callable[[Module, Any], None],
    library: Library | None = None,
    width: int = 8,
    build: bool = False,
    period: float = 0.0,
    margins: Margins = NONE,
) -> Synthesis:
    return synthesise(Made(body, width), Made(body, width), library, period, build, margins)


def delay(m: Module, c: Made) -> None:
    m.d.sync += c.x.eq(c.a)


def parity(m: Module, c: Made) -> None:
    first = Signal(8)
    m.d.sync += [first.eq(c.a), c.x.eq(first.xor())]


def table(m: Module, c: Made) -> None:
    m.submodules.store = store = memory.Memory(shape=8, depth=32, init=[])
    writes, read = [store.write_port() for _ in range(2)], store.read_port(domain="comb")
    held = Signal(5)
    m.d.sync += held.eq(held + c.a)
    m.d.comb += read.addr.eq(held)
    for port in writes:
        m.d.comb += [port.addr.eq(held), port.data.eq(c.a), port.en.eq(c.a[0])]
    m.d.sync += c.x.eq(read.data)


def test_flip_flops_are_counted() -> None:
    found = synthesised(delay)
    assert found.registers == [Register("x", 8, True)] and found.register_bits == found.flip_flops == 8
    assert found.sequential_area == 8 * 4 and found.area > found.sequential_area, "the reset is logic"
    assert found.memory_bits == 0 and found.levels == 1 and found.critical_path is None


def test_a_tree_of_gates_has_its_depth() -> None:
    assert synthesised(parity).levels == 4, "three XORs of two inputs, and the reset"


def test_memories_are_never_flattened() -> None:
    found = synthesised(table)
    assert found.memories == [Memory("store", 8, 32, writes=2, reads=1, asynchronous=1)]
    assert found.memory_bits == 256 and found.flip_flops == found.register_bits == 13
    assert found.levels >= 5 + 1, "the asynchronous read counts log2(32), the reset 1"


def test_with_a_library() -> None:
    library = Library.parse(LIBRARY)
    assert library.sequential == {"DFF"}
    assert library.buffers == (Buffer("BUFX1", "A", "Y", 2.0), Buffer("BUFX2", "A", "Y", 3.0))
    found = synthesised(parity, library)
    assert found.area_unit == "um^2" and found.cells_by_type["DFF"] == found.flip_flops == 9
    areas = {"INV": 1, "BUFX1": 2, "BUFX2": 3, "NAND2": 2, "NOR2": 2, "TIE0": 1, "TIE1": 1, "DFF": 8}
    assert found.area == sum(count * areas[kind] for kind, count in found.cells_by_type.items())
    if shutil.which("sta"):
        assert found.critical_path is not None and found.critical_path.tool == "OpenSTA"
        expected = 0.1 * (found.levels + 1)  # and the flip-flop's own delay
        assert found.critical_path.nanoseconds == pytest.approx(expected, abs=1e-3)
        assert found.critical_path.end.startswith("x")


def test_cells_that_the_timing_tool_replaces_are_counted_as_what_they_became(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library.parse(WITH_FAST)
    before = synthesised(parity, library, width=1)
    monkeypatch.setattr(synthesis, "_timing", lambda *_: Timing(None, [("DFF", "DFF2")] * 2, None, []))
    after = synthesised(parity, library, width=1)
    assert before.cells_by_type["DFF"] == after.cells_by_type["DFF2"] == 2 and "DFF" not in after.cells_by_type
    assert (after.cells, after.flip_flops) == (before.cells, before.flip_flops)
    assert after.area - before.area == after.sequential_area - before.sequential_area == 2


@pytest.mark.skipif(
    not shutil.which("sta"),
    reason="needs the program sta (OpenSTA), which is not in PyPI; what its replacements change is tested everywhere",
)
def test_cells_of_the_longest_path_get_stronger_until_the_clock_is_met() -> None:
    """The first of two flip-flops, of which the library has fast ones too."""
    library = Library.parse(WITH_FAST)
    loose, tight = (synthesised(parity, library, width=1, period=period) for period in (9.0, 0.1))
    assert loose.critical_path is not None and tight.critical_path is not None
    assert "DFF2" not in loose.cells_by_type and loose.flip_flops == tight.flip_flops == 2
    assert tight.critical_path.nanoseconds == pytest.approx(loose.critical_path.nanoseconds - 0.08, abs=0.01)
    assert tight.cells_by_type["DFF2"] == tight.area - loose.area == tight.sequential_area - loose.sequential_area == 1


def between(m: Module, c: Made) -> None:
    m.d.sync += c.x.eq(Cat(c.a.xor(), ~c.x[0]))


def test_no_path_is_timed_from_a_constant_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the timing tool is told, and where it is installed what it then finds."""
    ports = ["rst", "clk", "policy[0]", "policy[11]", "policy", "policy_valid", "patience[0]", "a"]
    assert [port for port in ports if re.search(steady(("policy",)), port)] == ["rst", *ports[2:5]]
    asked: list[tuple[str, ...]] = []
    timing = synthesis._timing

    def noted(verilog: str, library: Library, constant: tuple[str, ...], *rest: Any) -> Timing:
        asked.append(constant)
        return timing(verilog, library, constant, *rest)

    monkeypatch.setattr(synthesis, "_timing", noted)
    library = Library.parse(LIBRARY)
    from_input = synthesised(between, library).critical_path
    monkeypatch.setattr(Made, "constant", ("a",), raising=False)
    from_state = synthesised(between, library).critical_path
    assert asked == [(), ("a",)]
    if shutil.which("sta"):
        assert from_input is not None and from_input.start.startswith("a")
        assert from_state is not None and from_state.start.startswith("x")
        assert from_state.nanoseconds < from_input.nanoseconds


SLOW = re.sub(r'"0\.1, .*?"', '"0.3, 0.35, 0.4"', LIBRARY)


@pytest.mark.skipif(
    not shutil.which("sta"),
    reason="needs the program sta (OpenSTA), which is not in PyPI; what it is told is tested everywhere",
)
@pytest.mark.parametrize(
    ("margins", "paths"),  # of a flip-flop and eight gates of a tenth of a nanosecond each
    [
        (Margins(wires=0.5), [1.35]),
        (Margins(uncertainty=0.25), [1.15]),
        (Margins(slow=2.0), [0.9, 1.8]),
        (Margins(slow=Library.parse(SLOW)), [0.9, 2.7]),
        (Margins(wires=0.5, uncertainty=0.25, slow=2.0), [1.6, 2.95]),
    ],
)
def test_margins(margins: Margins, paths: list[float]) -> None:
    found = synthesised(parity, Library.parse(LIBRARY), margins=margins)
    assert found.levels == 8
    assert [path.nanoseconds for path in (found.critical_path, found.slow_path) if path] == pytest.approx(
        paths, abs=5e-3
    )


@pytest.mark.skipif(
    not shutil.which("sta"),
    reason="needs the program sta (OpenSTA), which is not in PyPI; what it is told is tested everywhere",
)
@pytest.mark.parametrize("width", [1, 8])
def test_the_slow_corner_times_the_same_path(width: int) -> None:
    """Also where cells have names that OpenSTA does not write as it reads them: of registers of one bit."""
    found = synthesised(parity, Library.parse(LIBRARY), width=width, margins=Margins(slow=2.0))
    assert found.critical_path and found.slow_path
    assert found.slow_path.end == found.critical_path.end
    assert found.slow_path.nanoseconds == pytest.approx(2 * found.critical_path.nanoseconds, abs=2e-3)


def test_what_the_timing_tool_is_told_of_margins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of both corners, the second with the netlist that the first has made."""
    told: list[dict[str, str]] = []

    def run(command: list[str], folder: Path) -> Any:
        told.append({path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()})
        (folder / "chosen.v").write_text("made", encoding="utf-8")
        return SimpleNamespace(stdout="Startpoint: a\nEndpoint: x\n -1.5  slack (VIOLATED)\n")

    monkeypatch.setattr(shutil, "which", lambda _: "sta")
    monkeypatch.setattr(synthesis.processes, "run", run)
    timing = synthesis._timing("net", Library.parse(LIBRARY), (), 0.0, Margins(0.5, 0.25, Library.parse(SLOW)))
    assert timing == (CriticalPath(1.5, "a", "x", "OpenSTA"), [], CriticalPath(1.5, "a", "x", "OpenSTA"), [])
    synthesis._timing("net", Library.parse(LIBRARY), (), 0.0, Margins(slow=2.0))
    assert [files["net.v"] for files in told] == ["net", "made"] * 2
    assert [files["cells.lib"] for files in told] == [LIBRARY, SLOW, LIBRARY, LIBRARY]
    value = r"^set_(?:clock_uncertainty -setup|timing_derate -late -cell_\w+) ([\d.]+)"
    asked = [re.findall(value, files["run.tcl"], re.MULTILINE) for files in told]
    assert asked == [["0.25", "1.5", "1.0"]] * 2 + [["0.0", "1.0", "1.0"], ["0.0", "2.0", "2.0"]]


def fans_out(m: Module, c: Made) -> None:
    chosen = Signal()
    m.d.sync += [chosen.eq(c.a[0]), c.x.eq(Mux(chosen, c.a, c.x))]


def masked(m: Module, c: Made) -> None:
    held = Signal(8, reset_less=True)
    m.d.sync += held.eq(c.a)
    m.d.comb += c.x.eq(~(c.a & held))


def test_the_paths_of_ports_are_timed_from_and_to_flip_flops_and_between_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Made, "combinational", {"x": ("a",)}, raising=False)
    library = Library.parse(LIBRARY)
    assert synthesise(Made(masked), Made(masked), library).ports == []
    found = synthesise(Made(masked), Made(masked), library, ports=True).ports
    if shutil.which("sta"):
        times = {(path.start, path.end): path.nanoseconds for path in found}
        assert times == pytest.approx({("a", "state"): 0.0, ("state", "x"): 0.2, ("a", "x"): 0.1}, abs=1e-3)


def test_abc_buffers_and_where_it_cannot_we_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails for tables of two points."""
    inserted = []
    monkeypatch.setattr(gates, "insert_buffers", lambda *arguments: inserted.append(arguments))
    found = synthesised(fans_out, Library.parse(LIBRARY), width=64)
    assert not inserted and found.cells_by_type["BUFX1"] + found.cells_by_type.get("BUFX2", 0) > 8
    coarse = LIBRARY.replace("0.001, 0.5, 1", "0.001, 1")
    coarse = re.sub(r'values\("([\d.]+), [\d.]+, ([\d.]+)".*?\);', r'values("\1, \2", "\1, \2");', coarse)
    synthesised(fans_out, Library.parse(coarse), width=64)
    assert len(inserted) == 1


def test_delay_cells_are_no_buffers() -> None:
    text = LIBRARY.rstrip("}\n") + "}\n}\n" + cell("DLY4", 9, "A", "", "A") + "}\n"
    assert [buffer.cell for buffer in Library.parse(text).buffers] == ["BUFX1", "BUFX2"]


def test_high_fanout_gets_a_tree_of_buffers() -> None:
    """From us, where abc does not do it."""
    sinks = 40
    module: gates.Module = {
        "ports": {"a": {"direction": "input", "bits": [2]}, "clk": {"direction": "input", "bits": [3]}},
        "cells": {
            f"g{i}": {
                "type": "INV", "port_directions": {"A": "input", "C": "input", "Y": "output"},
                "connections": {"A": [2], "C": [3], "Y": [10 + i]},
            }
            for i in range(sinks)
        },
    }  # fmt: skip
    count = gates.insert_buffers(module, Buffer("BUF", "A", "Y", 1.0), ["clk"])
    assert count == 3 and len(module["cells"]) == sinks + 3
    users: dict[int, int] = {}
    for made in module["cells"].values():
        users[made["connections"]["A"][0]] = users.get(made["connections"]["A"][0], 0) + 1
    assert max(users.values()) <= gates.FANOUT and users[2] == 3
    assert all(module["cells"][f"g{i}"]["connections"]["C"] == [3] for i in range(sinks)), "the clock stays"
    assert gates.depth(module, lambda kind: False, []) == 2


@pytest.mark.long
def test_memories_that_are_read_asynchronously_can_be_built() -> None:
    """The table is; a memory whose read is clocked stays one."""
    apart, built = (synthesised(table, build=build) for build in (False, True))
    assert built.memories == apart.memories and built.memory_bits == 256
    assert built.flip_flops == apart.flip_flops + 256 and built.area > apart.area + 256 * 4

    def clocked(m: Module, c: Made) -> None:
        m.submodules.store = store = memory.Memory(shape=8, depth=32, init=[])
        write, read = store.write_port(), store.read_port()
        m.d.comb += [write.addr.eq(c.a), write.data.eq(c.a), write.en.eq(c.a[0]), read.addr.eq(c.a), c.x.eq(read.data)]

    assert synthesised(clocked, build=True).flip_flops == 0


# --------------------------------------------------------------------------------------------------- the paper's table


def test_the_papers_figures() -> None:
    assert WARPPOOL.storage is not None
    sizes = {structure.title: structure.bits / 8 for structure in WARPPOOL.storage.structures}
    assert sizes == {
        "Instruction queues": 592, "Intra-warp coalescers": 512, "Inter-warp queues": 992, "Thread map table": 321,
        "MSHR metadata": 2944,
    }  # fmt: skip
    assert round(sum(sizes.values()) / 1024, 2) == 5.24  # the thesis rounds down: 5.23 KB


def test_differences_add_up_and_name_what_makes_them() -> None:
    registers = [Register("line_0_1", 51, False), Register("valid", 64, False), Register("request__payload", 9, True)]
    memories = [Memory("slots_0", 23, 64, 2, 1, 1), Memory("slots_1", 23, 64, 2, 1, 1), Memory("keys", 90, 64, 1, 1, 1)]
    [row] = paper.table(WARPPOOL, GTX480, {"warppool.inter_warp_queues": (registers, memories)})
    assert row.rtl_bits == 51 + 64 + 9 + 64 * 136 and row.memory_bits == 64 * 136
    assert sum(difference.bits for difference in row.differences) == row.rtl_bits - 124 * 64
    assert row.differences[0] == paper.Difference(
        13 * 64,
        "64 entries of 137 b (memory keys 90 b, memory slots 46 b, register valid 1 b), in the paper of 124 b",
    )
    assert [difference.what for difference in row.differences[1:]] == ["register line", "output register request"]


def test_every_coalescer_counts_and_other_blocks_stand_apart() -> None:
    state: paper.State = ([Register("entry", 10, False)], [])
    states = {"warppool.writeback": state, "lsu.intra_warp_coalescer": state, "cta.x": state}
    rows = paper.table(WARPPOOL, GTX480, states)
    assert [(row.title, row.instances, row.rtl_bits, row.paper_bits) for row in rows] == [
        ("Intra-warp coalescers", 2, 20, 4096), ("Writeback", 1, 10, None),
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ commands


@pytest.mark.long
def test_synth_command(capsys: pytest.CaptureFixture) -> None:
    assert cli.main(["synth", "thread_map_table", "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    [block], [row] = result["blocks"], result["paper"]
    assert block["block"] == "warppool.thread_map_table"
    assert block["parameters"]["entries"] == GTX480.sections["warppool"].maps
    assert row["rtl_bits"] == block["register_bits"] + block["memory_bits"]
    assert sum(difference["bits"] for difference in row["differences"]) == row["rtl_bits"] - row["paper_bits"]
    assert cli.main(["synth", "thread_map_table"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "generic gates" in shown and "321.0" in shown and "in the paper of 321 b" in shown


@pytest.mark.parametrize("text, message", [(None, "cannot be read"), ("library (x) {}", "has no flip-flops")])
def test_a_wrong_library(text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "cells.lib"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    assert cli.main(["synth", "cta", "--liberty", str(file)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_library(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    file = tmp_path / "cells.lib"
    file.write_bytes(compress(LIBRARY.encode()))
    assert read(str(file)) == Library.parse(LIBRARY)
    file.write_bytes(compress(LIBRARY.encode())[:-9])
    with pytest.raises(UsageError, match=r"--liberty .*cells\.lib: cannot be read: [^\n]+$"):
        read(str(file))


def test_a_library_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes can be so many gigabytes."""
    monkeypatch.setattr(liberty, "_MOST", 1 << 16)
    file = tmp_path / "cells.lib"
    file.write_bytes(gzip.compress(b" " * (1 << 24)))
    with pytest.raises(UsageError, match=r"cells\.lib: has more than 65,536 bytes$"):
        read(str(file))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--period 2", "--period 2.0: needs --liberty"),
        ("--slow 2", "--slow 2: needs --liberty"),
        ("--wires 20", "--wires 20.0: needs --liberty"),
        ("--ports", "--ports: needs --liberty"),
        ("--liberty cells.lib --period=-1", "--period: '-1': must be a number, 0 or more"),
        ("--liberty cells.lib --wires much", "--wires: 'much': must be a number, 0 or more"),
        ("--liberty cells.lib --wires inf", "--wires: 'inf': must be a number, 0 or more"),
        ("--liberty cells.lib --uncertainty nan", "--uncertainty: 'nan': must be a number, 0 or more"),
        ("--liberty cells.lib --period 2 --uncertainty 2", "--uncertainty 2.0: leaves nothing of --period 2.0"),
        ("--liberty cells.lib --slow 0.9", "--slow 0.9: must be a file, or a factor of 1 or more"),
        ("--liberty cells.lib --slow none.lib", "--slow none.lib: cannot be read"),
        ("--liberty more.lib --slow cells.lib", "--slow cells.lib: has no cell DFF2, which --liberty has"),
    ],
)
def test_wrong_options(
    options: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cells.lib").write_text(LIBRARY, encoding="utf-8")
    Path("more.lib").write_text(WITH_FAST, encoding="utf-8")
    assert cli.main(["synth", "cta", *options.split()]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_blocks_command(capsys: pytest.CaptureFixture) -> None:
    assert cli.main(["blocks", "--json", "-"]) == 0
    rows = {row["block"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == set(blocks.chosen("all"))
    coalescer = rows["lsu.intra_warp_coalescer"]
    assert coalescer["purpose"].startswith("Turns a warp's memory instruction")
    assert "three cycles" in coalescer["latency"]
    assert coalescer["parameters"] == {"lanes": 32, "warps": 48, "tickets": 16} and coalescer["largest"]["warps"] == 64
    assert {"name": "request_valid", "direction": "in", "count": 1, "width": 1} in coalescer["ports"]
    assert "test" in coalescer["verification"]
    grant = [port for port in rows["scheduling.warp_scheduler"]["ports"] if port["name"] == "grant_valid"]
    assert grant[0]["direction"] == "out, combinational"
    assert all(row["purpose"] and row["parameters"] for row in rows.values())
    assert cli.main(["blocks", "cta"]) == 0 and "dispatch_valid" in capsys.readouterr().out


def test_chosen() -> None:
    assert blocks.chosen("cta") == blocks.chosen("cta_dispatcher") == ["cta.cta_dispatcher"]
    assert blocks.chosen("warppool") == sorted(WARPPOOL.all_blocks)
    assert blocks.chosen("mrpb") == blocks.chosen("warppool.intra_warp_coalescer") == ["lsu.intra_warp_coalescer"]
    with pytest.raises(UsageError, match=r"did you mean warppool\.writeback"):
        blocks.chosen("warppool.writebak")


def result_of(area: float) -> Any:
    return SimpleNamespace(area=area, memory_bits=0, register_bits=8)


def test_shares_count_every_instance_of_what_a_mechanism_brings() -> None:
    areas = {"lsu.intra_warp_coalescer": 30, "warppool.writeback": 40, "warppool.warp_pool": 500, "cta.x": 7}
    shares = synth._shares(GTX480, {block: result_of(area) for block, area in areas.items()})
    assert [(s["mechanism"], s["block"], s["instances"], s["area_percent"]) for s in shares] == [
        ("warppool", "lsu.intra_warp_coalescer", 2, 60), ("warppool", "warppool.writeback", 1, 40),
    ]  # fmt: skip


def test_shares_count_what_the_gpu_has_one_of_once() -> None:
    areas = {"dyncore.activity_counter": 10, "dyncore.core_gate": 50}
    shares = synth._shares(GTX480, {block: result_of(area) for block, area in areas.items()})
    assert [(s["block"], s["instances"], s["area_percent"]) for s in shares] == [
        ("dyncore.activity_counter", 15, 75), ("dyncore.core_gate", 1, 25),
    ]  # fmt: skip
