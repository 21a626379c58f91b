"""Saved runs from strangers: whatever is wrong in one is a line that names file, field and what is allowed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockstep.cli import main as cli
from lockstep.sim.study import saved, store
from lockstep.sim.study.job import Job
from lockstep.verif.conftest import Shared

RUN = ("run", "saxpy", "--size", "tiny", "--profile")
COMMANDS = ("report", "diff", "energy")
Run = dict[str, Any]


def _run(folder: Path) -> Run:
    assert cli.main([*RUN, "--json", str(folder / "run.json")]) == 0
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


@pytest.fixture
def run(shared: Shared, tmp_path: Path) -> Run:
    return copy.deepcopy(shared("saved", lambda: _run(tmp_path)))


def put(path: str, value: Any) -> Callable[[Run], None]:
    """Put a value at a place, of which ``/`` separates the parts."""

    def change(run: Run) -> None:
        place: Any = run
        *outer, last = path.split("/")
        for part in outer:
            place = place[int(part) if isinstance(place, list) else part]
        place[int(last) if isinstance(place, list) else last] = value

    return change


def drop(key: str) -> Callable[[Run], None]:
    return lambda run: run.pop(key)


def _longer(run: Run) -> None:
    run["timeline"][0]["ipc"].append(1.0)


def _faster(run: Run) -> None:
    run["stats"]["sm.active_core_cycles"] = 10**9


NUMBERS: list[Any] = [[1], {}, None, "1", True, float("nan"), float("inf"), -1, 1e300, 1e-300]
TEXTS: list[Any] = [[1], {}, None, 1, "\x1b[2J", "x" * 5000]
LISTS: list[Any] = [{}, None, "x", 1]
TABLES: list[Any] = [[], None, "x", 1]

DAMAGES: list[tuple[Callable[[Run], None], str]] = [
    *((put("stats/l1.miss_rate", value), "stats.l1.miss_rate = ") for value in NUMBERS),
    *((put("cycles", value), "cycles = ") for value in [*NUMBERS, 1.5, 2**64]),
    *((put("ipc", value), "ipc = ") for value in [*NUMBERS, 5]),
    *((put("timeline/0/ipc/0", value), "timeline[0].ipc[0] = ") for value in NUMBERS),
    *((put(key, value), f"{key} = ") for key in ("kernel", "gpu", "size", "command", "code_version", "message")
      for value in TEXTS),
    *((put(key, value), f"{key} = ") for key in ("mechanisms", "timeline") for value in LISTS),
    *((put(key, value), f"{key} = ") for key in ("stats", "configuration", "settings", "profile") for value in TABLES),
    *((drop(key), f"has no {key!r}") for key in ("kernel", "stats", "timeline", "thread_instructions")),
    (put("seed", "1"), "seed = '1': must be a valid integer"),
    (put("checked", None), "checked = None: must be a valid boolean"),
    (put("mechanisms", [1]), "mechanisms[0] = 1: must be a valid string"),
    (put("timeline/0", []), "timeline[0] = []: must be an object"),
    (put("timeline/0/ipc", 3), "timeline[0].ipc = 3: must be a valid array"),
    (put("timeline/0", {"core_cycle": []}), "timeline[0]: has no 'ipc'"),
    (_longer, "timeline[0].ipc: has 3 values: must have 2, as core_cycle"),
    (put("timeline/0/core_cycle", [5, 3]), "timeline[0].core_cycle: must not fall"),
    (put("stats/gpu.core_cycles", 7), "stats.gpu.core_cycles = 7.0: must be "),
    (_faster, "stats: cycles of SMs must add up: 'no CTA' would have -"),
    (put("configuration/core.sms", 0), "configuration: core.sms = 0: must be 1 to"),
    (put("configuration/clocks.core", "fast"), "configuration: clocks.core = 'fast': must be an integer"),
    (put("settings/unknown", [1]), "settings.unknown: must be a text or a number"),
    (put("functions", [{"name": "f"}]), "functions[0]: has no 'launches'"),
    (put("profile/functions", {}), "profile.functions = {}: must be a valid array"),
    (put("profile/functions/0/stalls", [1]), "profile.functions[0].stalls = [1]: must be an object"),
    (put("profile/functions/0/issues", 10**9), "profile.functions[0]: warp_cycles = "),
    (put("profile/functions/0/lines/0/line", "x"), "profile.functions[0].lines[0].line = 'x': must be a valid integer"),
    (put("profile/functions/0/lines/0/warp_cycles", 1), "profile.functions[0].lines[0]: warp_cycles = 1: must be"),
    (put("profile/functions/0/lines", []), "profile.functions[0]: warp_cycles = "),
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each[1])
def test_damage_is_one_line(
    run: Run, damage: tuple[Callable[[Run], None], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, says = damage
    file, out = tmp_path / "run.json", tmp_path / "out"
    change(run)
    file.write_text(json.dumps(run), encoding="utf-8")
    for command in COMMANDS:
        arguments = {"report": ["-o", str(out)], "diff": [str(file)], "energy": ["--json", str(out)]}[command]
        assert cli.main([command, str(file), *arguments]) == 2
        printed = capsys.readouterr()
        assert f"{file}: {says}" in printed.err and printed.err.count("\n") == 1
        assert not printed.out and not out.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_what_another_version_did_not_measure_is_named(
    run: Run, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it is needed: `diff` compares what both have."""
    file, out = tmp_path / "run.json", tmp_path / "out"
    del run["stats"]["dram.read_bytes"]
    file.write_text(json.dumps(run), encoding="utf-8")
    arguments = {"report": ["-o", str(out)], "diff": [str(file)], "energy": []}[command]
    assert cli.main([command, str(file), *arguments]) == (0 if command == "diff" else 2)
    assert command == "diff" or f"{file}: stats: has no 'dram.read_bytes'" in capsys.readouterr().err
    assert not out.exists()


def test_several_runs_are_numbered(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps([run, {**run, "cycles": "x"}]), encoding="utf-8")
    assert cli.main(["energy", str(file)]) == 2
    assert f"{file}: run 2: cycles = 'x': must be a valid integer" in capsys.readouterr().err


def test_what_commands_write_is_read(run: Run, tmp_path: Path) -> None:
    """Also with keys that others add, and a run without a launch."""
    from lockstep.sim.device.statistics import STATISTICS

    file = tmp_path / "run.json"
    file.write_text(json.dumps([{**run, "mismatches": 0}, run]), encoding="utf-8")
    first, second = saved.read(str(file))
    assert second == run and first["mismatches"] == 0 and first["stats"].keys() == STATISTICS.keys()
    idle = {"cycles": 0, "warp_instructions": 0, "ipc": 0.0, "timeline": [], "per_sm": [], "profile": {"functions": []}}
    file.write_text(json.dumps(run | idle | {"stats": dict.fromkeys(run["stats"], 0)}), encoding="utf-8")
    for arguments in (["report", "-o", str(tmp_path / "out.html")], ["energy"], ["diff", str(file)]):
        assert cli.main([arguments[0], str(file), *arguments[1:]]) == 0


def test_kept_results_are_checked(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One with the right seal, too: it does not count, and is measured again."""
    monkeypatch.setattr(store, "folder", lambda: tmp_path)
    job = Job("saxpy", size="tiny")
    for damage, kept in ((run, True), ({**run, "stats": [1]}, False), ([1], False), ({"kernel": "x"}, False)):
        store.keep("a" * 64, damage)  # type: ignore[arg-type]
        assert (store.find(job, "a" * 64) is not None) == kept
