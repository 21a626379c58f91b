"""Accel-Sim's traces: what is read, what it becomes, and what is refused."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

from lockstep.cli.main import main
from lockstep.models.execution.isa import GLOBAL_BASE, LOCAL_PHYSICAL, Category, Control, Group, Space
from lockstep.sim import Gpu
from lockstep.sim.errors import UsageError
from lockstep.sim.traces.read import Trace, notes
from lockstep.sim.traces.replay import replay
from lockstep.sim.traces.sass.convert import imported
from lockstep.sim.traces.sass.opcodes import ARCHITECTURES, COSTS, MEANINGS, meaning
from lockstep.verif.sim.traces import sass
from lockstep.verif.sim.traces.programs import replayed

EACH = 4  # warps


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    folder = tmp_path_factory.mktemp("sass")
    imported(sass.written(folder, sass.text()), folder / "trace")
    return Trace(folder / "trace")


def test_counts(trace: Trace) -> None:
    device = Gpu("gtx480")
    [run] = replay(trace, device)
    lines = sass.warp(0, 0)
    assert run.warp_instructions == EACH * len(lines)
    assert run.thread_instructions == EACH * sum(int(line.split()[1], 16).bit_count() for line in lines)
    stats = device.stats
    assert (stats["sm.ctas"], stats["sm.warps"]) == (2, EACH)
    assert stats["scratchpad.accesses"] == 2 * EACH
    assert stats["lsu.requests_per_instruction"] > 1
    assert run.raw["sm.barriers"].sum() == EACH


def test_where_warps_go(trace: Trace) -> None:
    """Runs end where the trace jumps, or where lanes change."""
    launch = trace.manifest.launches[0]
    warps = trace.warps(launch)
    block = warps.block(0)
    runs = int(block.table["runs"][0])
    found = list(
        zip(*(block.columns[f"run_{name}"][:runs].tolist() for name in ("pc", "count", "active")), strict=True)
    )
    full, half, rest = 0xFFFF_FFFF, 0xFFFF, 0xFFFF_0000
    assert found == [
        (0, 3, full), (3, 1, half), (8, 2, half), (4, 2, rest), (10, 4, full), (14, 1, 0), (15, 2, full), (17, 1, half),
        (18, 4, full), (22, 1, half), (22, 1, rest),
    ]  # fmt: skip


def test_what_warps_touch(trace: Trace) -> None:
    launch = trace.manifest.launches[0]
    block = trace.warps(launch).block(0)
    columns, count = block.columns, int(block.table["accesses"][0])
    assert count == 8  # without the one that executes in no lane
    listed = columns["listed"][:count].astype(bool)
    assert listed.tolist() == [True, True, *[False] * 6]
    first = columns["address"][:32].astype(np.int64)
    assert (first == GLOBAL_BASE + 64 * (np.arange(32) * 7 % 32)).all()
    second = columns["address"][32:64].astype(np.int64) - GLOBAL_BASE
    assert second.tolist() == [4 * k for k in range(16)] + [60 + 1024 - 4 * k for k in range(16)]
    assert columns["stride"][2:count].tolist() == [4, 4, 4, 4, 0, 4]
    assert columns["shared"][:count].astype(bool).tolist() == [False, False, False, True, True, False, False, False]
    assert columns["base"][3] == columns["base"][4] == 0
    assert columns["base"][5] == LOCAL_PHYSICAL + 0x10 // 4 * 128
    assert columns["lanes"][5] == 0xFFFF
    other = 1 << 21
    assert columns["base"][6] == GLOBAL_BASE + other  # a page of its own


def test_code(trace: Trace) -> None:
    code = trace.code(trace.manifest.launches[0])
    rows, kernel = code.instructions, code.kernel
    assert kernel.text[:4] == ["MOV", "S2R", "IMAD.WIDE", "BRA"] and kernel.text[6] == ""
    assert rows["group"][6] == Group.CONTROL and rows["op"][6] == Control.NOP  # nobody has executed it
    assert rows["need"][2][0] == 0b1111 and rows["writes"][2][0] == 0b1100  # R2 and R3 of R0 and R1
    assert rows["writes"][11][0] == 0b11 << 6  # 64 bits
    assert (rows["bytes"][11], rows["space"][11], rows["category"][19]) == (8, Space.GLOBAL, Category.SPECIAL)
    assert kernel.shared_bytes == 512 and kernel.local_bytes == 20 and kernel.registers == 24
    assert list(kernel.costs) == ["BSYNC", "HMMA"]
    assert notes(trace)[0].startswith("SASS, timing only") and any(
        line.startswith("HMMA: tensor") for line in notes(trace)
    )


@pytest.mark.parametrize("mechanism", ["warppool", "mrpb", "dyncta", "scratchpad-sharing"])
def test_mechanisms(mechanism: str, trace: Trace) -> None:
    [run] = replayed(trace.folder, "gtx980", [mechanism]).runs
    assert run.warp_instructions == EACH * len(sass.warp(0, 0))


def test_passes_need_a_source(trace: Trace) -> None:
    with pytest.raises(UsageError, match="passes need the kernel's source, and this trace has none"):
        replayed(trace.folder, mechanisms=["rfh"])


@pytest.mark.parametrize(
    "tracer, prefix, extra", [(2, "0 0 0 0 ", ""), (3, "", ""), (5, "17 ", "-enable lineinfo = 1")]
)
def test_versions_of_the_tracer(tracer: int, prefix: str, extra: str, tmp_path: Path) -> None:
    imported(sass.written(tmp_path, sass.text(prefix=prefix, tracer=tracer, extra=extra)), tmp_path / "trace")
    assert replayed(tmp_path / "trace").runs[0].warp_instructions == EACH * len(sass.warp(0, 0))


def test_compressed(tmp_path: Path) -> None:
    (tmp_path / "kernel-1.traceg.xz").write_bytes(lzma.compress(sass.text().encode()))
    imported(tmp_path / "kernel-1.traceg.xz", tmp_path / "trace")
    assert len(Trace(tmp_path / "trace").manifest.launches) == 1


def test_unknown_opcodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = sass.written(tmp_path, sass.text().replace("FMUL", "FNEW.X").replace("MUFU.RCP", "BAR.ARV"))
    with pytest.raises(UsageError, match=r"unknown opcodes: FNEW.X \(4\), BAR.ARV \(4\); --unknown integer"):
        imported(kernel, tmp_path / "trace")
    assert not (tmp_path / "trace").exists()
    assert main(["trace", "import", str(kernel), "-o", str(tmp_path / "trace"), "--unknown", "integer"]) == 0
    told = capsys.readouterr().out
    assert "SASS, timing only" in told and "FNEW.X: not known (4 executed)" in told
    assert main(["run", "--trace", str(tmp_path / "trace"), "--gpu", "gtx480"]) == 0
    assert "FNEW.X: not known (4 executed)" in capsys.readouterr().out


def test_opcodes_of_later_architectures(tmp_path: Path) -> None:
    """Volta has no uniform datapath."""
    kernel = sass.text(binary=70).replace("FMUL", "UIADD3")
    with pytest.raises(UsageError, match=r"UIADD3 \(4\)"):
        imported(sass.written(tmp_path, kernel), tmp_path / "trace")
    assert {of: meaning("LDGSTS.E.128", of) is not None for of in ARCHITECTURES} == {
        "Volta": False, "Turing": False, "Ampere and Ada": True, "Hopper": True,
    }  # fmt: skip
    assert COSTS.keys() <= MEANINGS.keys() | {"UIADD3.64"}


WRONG = {
    "an architecture that is not known": ("version = 80", "version = 61", "binary version 61: no architecture"),
    "a CTA beyond the grid": ("thread block = 1,0,0", "thread block = 5,0,0", "a CTA beyond the grid"),
    "a warp beyond its CTA": ("warp = 1", "warp = 9", "a warp beyond its CTA"),
    "too few instructions": ("insts = 22", "insts = 23", "instructions of the warp before are missing"),
    "too many": ("insts = 22", "insts = 21", "one too many"),
    "another opcode at a place": ("0140 ffffffff 1 R13 MUFU.RCP", "0130 ffffffff 1 R13 MUFU.RCP", "is MUFU.RCP here"),
    "a register that is none": ("1 R13 MUFU", "1 R999 MUFU", "none of R0 to R255"),
    "an address mode that is none": ("STS 2 R0 R9 4 1", "STS 2 R0 R9 4 7", "address mode 7"),
    "a line that ends": ("2 R0 R9 4 1 0x7f0000000000 4", "2 R0 R9 4 1", "ends early"),
    "a place beyond the scratchpad": ("shmem = 512", "shmem = 16", "beyond the 16 bytes of scratchpad"),
    "far too many threads": ("(64,1,1)", "(64,64,64)", "block: has more than 2048 threads"),
    "far too much code": ("0010 ffffffff", "ffffff0 ffffffff", "must be a number from 0"),
    "no end": ("0160 ffff0000 0 EXIT 0 0", "0000 ffffffff 1 R1 MOV 0 0", "does not end with EXIT"),
    "no size": ("-block dim = (64,1,1)", "", "before the dimensions"),
    "a long line": ("FMUL", "F" * 9000, "a line of more than 8192"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_wrong_files(what: str, tmp_path: Path) -> None:
    old, new, why = WRONG[what]
    kernel = sass.text()
    assert old in kernel
    with pytest.raises(UsageError, match=why):
        imported(sass.written(tmp_path, kernel.replace(old, new)), tmp_path / "trace")


@pytest.mark.parametrize("line", ["/etc/passwd", "../kernel-1.traceg", "kernel/../x.traceg", "kernel-1.tracez", ""])
def test_lists_that_lead_elsewhere(line: str, tmp_path: Path) -> None:
    (tmp_path / "kernelslist.g").write_text(f"{line}\n", encoding="ascii")
    with pytest.raises(UsageError):
        imported(tmp_path / "kernelslist.g", tmp_path / "trace")


@pytest.mark.parametrize("seed", range(3))
def test_mutants(seed: int, tmp_path: Path) -> None:
    """Text with bytes changed is read, or refused with its line."""
    chance = np.random.default_rng(seed)
    good = sass.text().encode()
    for number in range(120):
        data = bytearray(good)
        for _ in range(chance.integers(1, 4)):
            data[chance.integers(0, len(data))] = chance.choice(np.frombuffer(b" 0123456789abcdefRx-\n=(),#", np.uint8))
        (tmp_path / "kernel.traceg").write_bytes(data)
        folder = tmp_path / f"trace-{number}"
        try:
            imported(tmp_path / "kernel.traceg", folder, "integer")
        except UsageError:
            continue
        try:
            replayed(folder)
        except UsageError as error:
            assert str(error).isprintable(), f"seed {seed}, mutant {number}"
