"""`lockstep energy`: counts times energies, exactly; what has no energy is listed; a process is checked."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lockstep.cli import main as cli
from lockstep.sim.device import description, statistics
from lockstep.sim.device.gpu import Gpu
from lockstep.sim.errors import UsageError
from lockstep.sim.study import energy
from lockstep.sim.study.job import Job, execute
from lockstep.spec.energy import ARRAY, USES, Use
from lockstep.verif.conftest import Shared

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


def test_a_process_without_arrays(tmp_path: Path) -> None:
    """Accesses are listed as not counted, what has an energy is counted."""
    begin, end = PROCESS.index("[array]"), PROCESS.index("[operations")
    (tmp_path / "own.toml").write_text(PROCESS[:begin] + PROCESS[end:], encoding="utf-8")
    counts = run(registers__reads=3, l1__accesses=5, lanes__float=2)
    found = energy.account(counts, energy.load(str(tmp_path / "own.toml")))
    assert found.energies == {"arithmetic": 14}
    assert found.not_counted == {"registers": {"registers.reads": 3}, "L1": {"l1.accesses": 5}}


def test_40_nm_by_hand() -> None:
    """Two shifts, a double-precision operation of one lane, and a row of a 64-bit channel of GDDR5."""
    counts = run(lanes__shift=2, lanes__double=1, dram__activates=1, lanes__conversion=7)
    found = energy.account(counts, energy.load("40nm"))
    assert found.energies["arithmetic"] == 2 * 417 + 157_517
    assert found.energies["DRAM"] == 12_006_000
    assert found.not_counted == {"arithmetic": {"lanes.conversion": 7}}


def test_a_mechanism_has_its_own(process: energy.Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a component that it replaces; the other components stay the frame's."""
    own = (Use("registers", ("registers.reads",), ARRAY, lambda c: (64, 1024)),)
    warppool = energy.registry.MECHANISMS["warppool"]
    monkeypatch.setitem(energy.registry.MECHANISMS, "warppool", replace(warppool, energy=own))
    counts = run(registers__reads=3, registers__writes=2, lanes__float=1)
    found = energy.account({**counts, "mechanisms": ["warppool"]}, process)
    assert {name: each for name, each in found.energies.items() if each} == {"registers": 3000, "arithmetic": 7}


def test_uses_name_what_there_is() -> None:
    for use in energy.registry.energy(energy.registry.MECHANISMS) + list(USES):
        assert set(use.statistics) <= statistics.STATISTICS.keys()
        bits, size = use.size(CONFIGURATION)
        assert (use.operation == ARRAY) == (bits > 0 and size > 0), use


@pytest.mark.parametrize("name", energy.processes())
def test_every_energy_has_a_source(name: str) -> None:
    process = energy.load(name)
    assert process.sources.keys() == {*process.operations, *([ARRAY] if process.array else [])}
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
    with pytest.raises(UsageError, match=r"process '54nm': not known; did you mean 45nm.; known are 40nm, 45nm"):
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


@pytest.mark.parametrize("mechanism", ["warppool", "regless"])
def test_parts_add_up_to_the_run(mechanism: str, shared: Shared) -> None:
    """In integers, by component, and what has no energy, too; whether cycles are skipped or not."""
    job = Job("lud", size="tiny", mechanisms=[mechanism], settings={"core.sms": 3}, energy=True)

    def step(gpu: Gpu) -> None:
        gpu.machine.skip = False

    run, slow = (shared(f"{job} {attach}", partial(execute, job, attach=attach)) for attach in (None, step))
    process = energy.load("45nm")
    whole = energy.account(run, process)
    assert whole.total > 0 and len(run["events"]) == run["launches"] == 7
    for by in energy.BY:
        found = energy.parts(run, process, by)
        for name, total in whole.energies.items():
            assert sum(part.account.energies[name] for part in found) == total, (by, name)
        for component, events in whole.not_counted.items():
            for name, count in events.items():
                own = (part.account.not_counted.get(component, {}).get(name, 0) for part in found)
                assert sum(own) == count, (by, name)
        assert found == energy.parts(slow, process, by)
    assert [part.name for part in energy.parts(run, process, "sm")] == ["SM 0", "SM 1", "SM 2", "beyond the SMs"]
    launches = energy.parts(run, process, "launch")
    accesses = [count for launch in run["timeline"] for count in launch["scratchpad.accesses"]]
    intervals = zip(energy.parts(run, process, "interval"), accesses, strict=True)
    [each] = {part.account.energies["scratchpad"] / count for part, count in intervals if count}
    assert each == process.access(8 * 4 * 32, 48 * 1024 // 32), "in its own interval"
    assert launches[2].name == "3: lud_internal" and sum(part.cycles for part in launches) == run["cycles"]


def test_what_a_coefficient_changes(process: energy.Process, shared: Shared) -> None:
    """Its component alone, in every part."""
    run = shared("of a run", lambda: execute(Job("saxpy", size="tiny", settings={"core.sms": 2}, energy=True)))
    twice = replace(process, operations={"float": 2 * process.operations["float"]})
    for one, other in zip(energy.parts(run, process, "interval"), energy.parts(run, twice, "interval"), strict=True):
        changed = {name for name, each in one.account.energies.items() if each != other.account.energies[name]}
        assert changed <= {"arithmetic"}
        assert other.account.energies["arithmetic"] == 2 * one.account.energies["arithmetic"]


def test_milliwatts() -> None:
    """2 nJ in 1,000 cycles of 500 MHz, which are 2 microseconds."""
    assert energy.Part("", 1000, energy.Account({"L1": 2_000_000}, {})).milliwatts(500) == 1
    assert energy.Part("", 0, energy.Account({}, {})).milliwatts(500) == 0


def test_by_launch_of_a_run_without_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.json"
    assert cli.main(["run", "saxpy", "--size", "tiny", "--energy"]) == 2
    assert "--energy: is kept in the file of --json, and there is none" in capsys.readouterr().err
    assert cli.main(["run", "saxpy", "--size", "tiny", "--json", str(file)]) == 0
    result = json.loads(file.read_text(encoding="utf-8"))
    assert "events" not in result
    nothing = {"cycles": 0, "warp_instructions": 0, "ipc": 0, "timeline": [], "per_sm": [], "events": []}
    stats = dict.fromkeys(result["stats"], 0)
    file.write_text(json.dumps({**result, **nothing, "stats": stats}), encoding="utf-8")
    for by in ("launch", "interval"):
        assert cli.main(["energy", str(file), "--by", by]) == 0, "nothing was launched"
    file.write_text(json.dumps({**result, "events": None}), encoding="utf-8")
    for by in ("launch", "interval"):
        assert cli.main(["energy", str(file), "--by", by]) == 2
        assert "saxpy --gpu gtx480 --size tiny --seed 1: was run without --energy" in capsys.readouterr().err
    del result["per_sm"]
    file.write_text(json.dumps(result), encoding="utf-8")
    assert cli.main(["energy", str(file), "--by", "sm"]) == 2
    assert "was saved without per_sm" in capsys.readouterr().err


def test_the_command_by_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The parts are in the table and in the JSON; the process of the command is that of the parts."""
    run, out = tmp_path / "run.json", tmp_path / "energy.json"
    assert cli.main(["run", "bfs", "--size", "tiny", "--energy", "--json", str(run)]) == 0
    capsys.readouterr()
    assert cli.main(["energy", str(run), "--by", "launch", "--json", str(out)]) == 0
    shown, [found] = capsys.readouterr().out, json.loads(out.read_text(encoding="utf-8"))
    assert sum(part["total_femtojoules"] for part in found["parts"]) == found["total_femtojoules"] > 0
    for part in found["parts"]:
        assert part["name"] in shown and f"{part['total_femtojoules'] / 1e6:,.3f}" in shown


@pytest.mark.parametrize(
    ("keys", "value", "expected"),
    [
        (("events", 0, "counts", "registers.reads", 0), 10**6, "events: registers.reads = "),
        (("events", 0, "counts", "registers.reads"), [1], "counts.registers.reads: has 1 values: must have "),
        (("events", 0, "core_cycle", 0), 10**9, "core_cycle: must not fall"),
        (("events", 0), {"kernel": "k", "core_cycle": [], "counts": {}}, "core_cycle: is empty"),
        (("events",), [], "events: instruction_cache.hits = 0: must be "),
        (("per_sm", 0, "registers.reads"), 10**9, "per_sm: registers.reads = "),
        (("per_sm", 0), {}, "per_sm[0]: has no 'instruction_cache.hits'"),
        (("per_sm", 1), {}, "per_sm: instruction_cache.hits = "),
        (("events", 0, "counts", "registers.reads", 0), -1, "must be greater than or equal to 0"),
    ],
)
def test_damage(
    keys: tuple[str | int, ...], value: Any, expected: str, tmp_path: Path, shared: Shared,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    run = shared("of a run", lambda: execute(Job("saxpy", size="tiny", settings={"core.sms": 2}, energy=True)))
    place = run = json.loads(json.dumps(run))
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    file = tmp_path / "run.json"
    file.write_text(json.dumps(run), encoding="utf-8")
    assert cli.main(["energy", str(file), "--by", "sm"]) == 2
    told = capsys.readouterr().err
    assert expected in told and len(told.splitlines()) == 1, told
