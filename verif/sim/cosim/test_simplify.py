"""Verilog for whole runs: equal to what it is made from; memories are written in whole entries; no loops of nets."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from lockstep.rtl import configuration, export, registry, yosys
from lockstep.sim.cosim import build, toolchain
from lockstep.sim.cosim.simplify import simplified, whole_writes
from lockstep.sim.device import description

DEPTH, LANES, LANE = 4, 3, 2


class Table(wiring.Component):
    """A memory with some ports that write in lanes."""

    def __init__(self, writes: int) -> None:
        entry = data.ArrayLayout(LANE, LANES)
        write = wiring.Signature({"address": Out(2), "lanes": Out(LANES), "entry": Out(entry)})
        super().__init__({"write": In(write).array(writes), "address": In(2), "entry": Out(entry)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=self.entry.shape(), depth=DEPTH, init=[])
        read = memory.read_port()
        m.d.comb += [read.addr.eq(self.address), self.entry.eq(read.data)]
        for each in self.write:
            port = memory.write_port(granularity=1)
            m.d.comb += [port.addr.eq(each.address), port.en.eq(each.lanes), port.data.eq(each.entry)]
        return m


def netlist(writes: int) -> str:
    component = Table(writes)
    ports = [component.address, component.entry.as_value()]
    ports += [value for each in component.write for value in (each.address, each.lanes, each.entry.as_value())]
    return rtlil.convert(component, name="table", ports=ports)


def plain(text: str) -> str:
    return yosys.run(build.VERILOG, {"block.il": text}, ["block.v"])["block.v"]


@pytest.mark.parametrize("writes", [1, 2])
def test_the_same_in_every_output(writes: int) -> None:
    """Of all states that both can be in: by induction."""
    text = netlist(writes)
    prepare = ("hierarchy -top table", "proc", "flatten", "opt_clean", "memory", "opt_clean")
    script = [
        "read_verilog -sv one.v", *prepare, "rename table one", "design -stash one",
        "read_verilog -sv other.v", *prepare, "rename table other", "design -stash other",
        "design -copy-from one one", "design -copy-from other other", "equiv_make one other both",
        "hierarchy -top both", "equiv_simple -undef", "equiv_induct -undef", "equiv_status -assert",
    ]  # fmt: skip
    yosys.run(script, {"one.v": plain(text), "other.v": simplified(text)})


def test_lanes_are_written_as_an_entry() -> None:
    assert simplified(netlist(1)).count("<= {") == 1


def test_lanes_of_two_writers_stay() -> None:
    """A writer would else bring back the old lanes that the other one writes."""
    text = plain(netlist(2))
    assert text.count("] <= ") == 2 * LANES
    assert whole_writes(text) == text


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("block", ["sharing.share_locks", "regless.capacity_manager", "warppool.warp_pool"])
def test_no_net_follows_from_itself(block: str, tmp_path: Path) -> None:
    name = block.split(".")[1]
    component = registry.component(block)(**configuration.parameters(block, description.load("gtx480")))
    (tmp_path / "block.v").write_text(simplified(export.rtlil(component, name)), encoding="utf-8")
    lint = ["--lint-only", "-Wno-lint", "-Wno-style", "-Werror-UNOPTFLAT", "--top-module", name, "block.v"]
    toolchain.call([str(toolchain.root() / "bin" / "verilator_bin"), *lint], tmp_path)
