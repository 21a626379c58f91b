"""Kernels with RegLess's blocks as RTL.

In *replace*, what instructions compute with is what the RTL's banks, its compressors and the L1 deliver.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from lockstep.rtl import registry
from lockstep.rtl.netlist import Netlist
from lockstep.sim.cosim.run import cosim
from lockstep.sim.device import description
from lockstep.sim.study.job import Job
from lockstep.spec.regless import MECHANISM
from lockstep.spec.regless.parameters import (
    ARBITER,
    BLOCKS,
    COMPRESSOR,
    MANAGER,
    METADATA,
    PER_LINE,
    STAGING,
    STATE_BITS,
)
from lockstep.verif.planted import InKernel, component

all_of_them = partial(pytest.param, MECHANISM.blocks, marks=pytest.mark.exhaustive)


@pytest.mark.long
@pytest.mark.parametrize(
    ("blocks", "mode"),
    [
        pytest.param([MANAGER, ARBITER], "replace", id="some-replace"),
        all_of_them("shadow", id="shadow"), all_of_them("replace", id="replace"),
    ],
)  # fmt: skip
def test_blocks_in_a_run(blocks: Sequence[str], mode: str, tmp_path: Path) -> None:
    job = Job("hotspot", gpu="gtx980", size="tiny", mechanisms=["regless"], settings={"core.sms": 1})
    result = cosim(job, ",".join(blocks), mode, folder=tmp_path)
    assert (result["checked"], result["mismatches"]) == (True, 0), result["message"]
    assert result["blocks"] == sorted(blocks)


def rows(cells: str) -> dict[str, tuple[float, ...]]:
    """Figures of each block, as the page has them in the rows with such cells."""
    found = re.findall(rf"^\| `(\w+)` \|{cells} \|", PAGE, re.MULTILINE)
    return {f"regless.{block}": tuple(float(each.replace(",", "") or 0) for each in row) for block, *row in found}


PAGE = (Path(__file__).parents[2] / "docs" / "regless-hardware.md").read_text(encoding="utf-8")
BITS = rows(r" ?([\d,]*) ?\| ([\d,]+)")  # of memories, of registers
SYNTHESISED = rows(r" (\d\.\d\d) \| ([\d,]+)")  # nanoseconds, square micrometres


def test_sums_are_those_of_the_tables() -> None:
    assert BITS.keys() == SYNTHESISED.keys() == set(BLOCKS)
    both = {block: 1 if block == ARBITER else 2 for block in BLOCKS}
    assert f"two shards has {sum(n * sum(BITS[block]) for block, n in both.items()):,.0f} bits" in PAGE
    area = sum(n * SYNTHESISED[block][1] for block, n in both.items()) / 1e6
    assert f"the arbiter: {area:.2f} mm² of logic and flip-flops" in PAGE


@pytest.mark.long
@pytest.mark.parametrize(
    "block",
    [
        METADATA, pytest.param(MANAGER, marks=pytest.mark.exhaustive),
        pytest.param(STAGING, marks=pytest.mark.exhaustive),
        pytest.param(COMPRESSOR, marks=pytest.mark.exhaustive), ARBITER,
    ],
)  # fmt: skip
def test_storage_is_that_of_the_documentation(block: str) -> None:
    gpu = description.load("gtx480", selected=["regless"])
    netlist = Netlist(registry.component(block)(**MECHANISM.arguments(gpu)[block]))
    bits = {memory.name: memory.bits for memory in netlist.memories()}
    registers = sum(register.bits for register in netlist.registers())
    assert (sum(bits.values()), registers) == BITS[block]
    if block == COMPRESSOR:
        assert (PER_LINE, STATE_BITS) == (15, 3)
        assert bits["states"] == 24 * 64 * STATE_BITS, "63 registers of each of 24 warps, in rows of 16"
        assert bits["kept"] == 12 * PER_LINE * 64


SETTINGS = {"regless.registers": 128, "launch.no_progress": 20_000}
FAULTS = [
    InKernel(
        METADATA, "rtl", "the number of an entry loses its lowest bit",
        "port.p.number.eq(select(mine, [entry.number for entry in self.entries])),",
        "port.p.number.eq(select(mine, [entry.number for entry in self.entries]) & ~1),",
        "nw", settings=SETTINGS,
    ),
    InKernel(
        MANAGER, "rtl", "results that are written stay due",
        "then.eq(pending + reserved[b][w] - written[b][w])", "then.eq(pending + reserved[b][w])",
        "nw", settings=SETTINGS,
    ),
    InKernel(
        STAGING, "rtl", "a bit of an operand is wrong",
        "operand.payload.words.eq(bank.words)", "Value.cast(operand.payload.words).eq(Value.cast(bank.words) ^ 64)",
        "nw", settings=SETTINGS,
    ),
    InKernel(
        COMPRESSOR, "rtl", "a bit of a compressed value is wrong",
        "self.value.eq(select(self._mine, values))", "self.value.eq(select(self._mine, values) ^ 4)",
        "JPEG", settings=SETTINGS,
    ),
    InKernel(
        ARBITER, "rtl", "the L1 sees the register below",
        "Value.cast(getattr(access, name)).eq(select(chosen, values))",
        "Value.cast(getattr(access, name)).eq(select(chosen, values) & (~1 if name == 'number' else -1))",
        "JPEG", settings=SETTINGS,
    ),
]  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS[::2], ids=str)
def test_a_fault_in_the_hardware_spoils_a_kernel(fault: InKernel) -> None:
    """Its memory is wrong, or it stops; not only its cycles."""
    result = cosim(fault.job, fault.block, "replace", makes={fault.block: component(fault)})
    found = result.get("difference", [])
    assert any("memory" in line or "stopped" in line for line in found), found
