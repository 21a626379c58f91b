"""`lockstep energy`: counts times energies, exactly; what has no energy is listed; a process is checked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockstep.cli import main as cli
from lockstep.sim.device import description, statistics
from lockstep.sim.errors import UsageError
from lockstep.sim.study import energy
from lockstep.spec.energy import ARRAY, USES, Use

PROCESS = """\
node_nm = 20
voltage = 0.8
[array]
source = "measured"
1024 = 1_000
4096 = 2_000
65536 = 16_000
[operations.float]
energy = 7
source = "measured"
"""

CONFIGURATION = description.values(description.load("gtx480"))


def run(**counts: float) -> dict[str, Any]:
    """A saved run with these statistics, and no other events."""
    stats = dict.fromkeys(statistics.STATISTICS, 0.0) | {key.replace("__", "."): n for key, n in counts.items()}
    return {"command": "made by hand", "mechanisms": [], "stats": stats, "configuration": CONFIGURATION}


@pytest.fixture
def process(tmp_path: Path) -> energy.Process:
    (tmp_path / "own.toml").write_text(PROCESS, encoding="utf-8")
    return energy.load(str(tmp_path / "own.toml"))


@pytest.mark.parametrize(
    ("bits", "size", "expected"),
    [(64, 1024, 1000), (64, 4096, 2000), (128, 4096, 4000), (64, 2048, 1414), (64, 65536, 16000), (64, 256, 500),
     (64, 16384, 5657), (8, 1024, 125), (64, 262144, 45255)],
)  # fmt: skip
def test_arrays(process: energy.Process, bits: int, size: int, expected: int) -> None:
    """Through the points, by a power of the size between and beyond them."""
    assert process.access(bits, size) == expected


def test_an_account_by_hand(process: energy.Process) -> None:
    """A bank of the gtx480's register file has 8 KB, and a warp register 1024 bits: 16 times 2000 * 2 ** 0.75."""
    found = energy.account(run(registers__reads=3, registers__writes=2), process)
    assert {name: each for name, each in found.energies.items() if each} == {"registers": 5 * 53817}
    found = energy.account(run(lanes__float=245, issue__lanes=9.5), process)
    assert found.total == found.energies["arithmetic"] == 245 * 7


def test_staging_units_in_place_of_the_register_file(process: energy.Process) -> None:
    """512 registers in the 8 banks of two schedulers: 4 KB each. What the compressors take is listed, not guessed."""
    counts = run(registers__reads=9, regless__operands=3, regless__results=2, regless__evictions=1, regless__preloads=4)
    found = energy.account({**counts, "mechanisms": ["regless"]}, process)
    assert found.energies["registers"] == 6 * 16 * 2000
    assert found.not_counted == {"registers": {"regless.evictions": 1, "regless.preloads": 4}}


def test_sums_are_exact(process: energy.Process) -> None:
    many = energy.account(run(registers__reads=10**15 + 1), process)
    assert many.total == (10**15 + 1) * 53817


def test_what_has_no_energy_is_listed(process: energy.Process) -> None:
    found = energy.account(run(lanes__double=4, dram__activates=2), process)
    assert found.not_counted == {"arithmetic": {"lanes.double": 4}, "DRAM": {"dram.activates": 2}}
    assert found.total == 0


def test_a_mechanism_has_its_own(process: energy.Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a component that it replaces; the other components stay the frame's."""
    own = (Use("registers", ("registers.reads",), ARRAY, lambda c: (64, 1024)),)
    warppool = energy.registry.MECHANISMS["warppool"]
    monkeypatch.setitem(energy.registry.MECHANISMS, "warppool", replace(warppool, energy=own))
    counts = run(registers__reads=3, registers__writes=2, lanes__float=1)
    found = energy.account({**counts, "mechanisms": ["warppool"]}, process)
    assert {name: each for name, each in found.energies.items() if each} == {"registers": 3000, "arithmetic": 7}


def test_uses_name_what_there_is() -> None:
    for use in energy.uses(tuple(energy.registry.MECHANISMS)) + list(USES):
        assert set(use.statistics) <= statistics.STATISTICS.keys()
        bits, size = use.size(CONFIGURATION)
        assert (use.operation == ARRAY) == (bits > 0 and size > 0), use


@pytest.mark.parametrize("name", energy.processes())
def test_every_energy_has_a_source(name: str) -> None:
    process = energy.load(name)
    assert process.sources.keys() == {*process.operations, ARRAY}
    assert all(process.sources.values())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("node_nm = 20\n", "", "node_nm is missing"),
        ("voltage = 0.8", "voltage = 0", "voltage = 0: must be a number above 0"),
        ("voltage = 0.8", "voltages = 0.8", "unknown key voltages; did you mean voltage?; known are"),
        ('[array]\nsource = "measured"\n', "[array]\n", "array.source: every energy must have a source, a string"),
        ("1024 = 1_000", "1024 = -1", "array.1024 = -1: must be an integer above 0, in femtojoules"),
        ("1024 = 1_000", "small = 1_000", "array.small: must be a number of bytes, such as 8192"),
        ("4096 = 2_000\n65536 = 16_000\n", "", "array: needs the energies of at least two sizes"),
        ("operations.float]", "operations.floats]", "unknown key operations.floats; did you mean float?"),
        ("energy = 7", "energy = 7.5", "operations.float.energy = 7.5: must be an integer above 0"),
        ('[operations.float]\nenergy = 7\nsource = "measured"', "[operations]\nfloat = 7", "float: must be a table"),
        ("node_nm", "[", "not a TOML file"),
        ("node_nm = 20", f"node_nm = 1{400 * '0'}", "must be a number above 0, at most 10^18"),
        ("1024 = 1_000", f"1024 = 1{30 * '0'}", "must be an integer above 0, in femtojoules, at most 10^18"),
        ("4096 = 2_000", "1025 = 2_000", "array.1025: must be at least twice the size before it"),
        ("4096 = 2_000", "4096 = 2_000_000", "its energy must go with a power of the size of at most 4"),
    ],
)
def test_mistakes_in_a_process(tmp_path: Path, old: str, new: str, expected: str) -> None:
    path = tmp_path / "own.toml"
    assert old in PROCESS
    path.write_text(PROCESS.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError) as error:
        energy.load(str(path))
    assert str(error.value).startswith(f"{path}: ") and expected in str(error.value)


def test_unknown_processes() -> None:
    with pytest.raises(UsageError, match=r"process '54nm': not known; did you mean 45nm.; known are 45nm"):
        energy.load("54nm")
    with pytest.raises(UsageError, match=r"missing.toml: cannot read the process: No such file"):
        energy.load("missing.toml")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a run with a mechanism beside one without."""
    files = [str(tmp_path / name) for name in ("base.json", "pool.json")]
    for file, options in zip(files, ((), ("--with", "warppool")), strict=True):
        assert cli.main(["run", "saxpy", "--size", "tiny", "--json", file, *options]) == 0
    capsys.readouterr()
    assert cli.main(["energy", *files, "--json", str(tmp_path / "energy.json")]) == 0
    shown = capsys.readouterr().out
    found = json.loads((tmp_path / "energy.json").read_text(encoding="utf-8"))
    for file, each in zip(files, found, strict=True):
        stats = json.loads(Path(file).read_text(encoding="utf-8"))["stats"]
        assert each["total_femtojoules"] == sum(each["femtojoules"].values())
        assert each["femtojoules"]["registers"] == 160_000 * (stats["registers.reads"] + stats["registers.writes"])
        assert each["not_counted"]["idle"] == {"sm.active_core_cycles": stats["sm.active_core_cycles"]}
    total = found[0]["total_femtojoules"]
    assert f"{total / 1e6:,.3f}" in shown and f"{found[1]['total_femtojoules'] / total:,.3f}" in shown
    assert "Not counted, since 45nm has no energy for it: " in shown
