"""Two kernels at once, saved: the parts of each add up, over time too; and what is shown and refused of such runs."""

from __future__ import annotations

import copy
import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.sim import Gpu, kernels
from lockstep.sim.study import report, saved
from lockstep.sim.study.difference import difference
from lockstep.sim.study.execution import execute
from lockstep.sim.study.job import Job
from lockstep.sim.study.page import html
from lockstep.verif.cli.test_cli import PTX
from lockstep.verif.conftest import Shared

ON = ("--size", "tiny", "--set", "core.sms=2")
PAIR = ("run", "hotspot", "--secondary", "spmv", *ON, "--energy", "--every", "3000")
ALONE = ("run", "spmv", *ON)
Saved = dict[str, Any]


def _run(arguments: tuple[str, ...], folder: Path, name: str) -> Saved:
    assert cli.main([*arguments, "--json", str(folder / name)]) == 0
    return json.loads((folder / name).read_text(encoding="utf-8"))


def _made(folder: Path) -> list[Any]:
    first = _run((*PAIR, "--intervals", str(folder / "pair.csv")), folder, "pair.json")
    table = (folder / "pair.csv").read_text(encoding="utf-8")
    return [first, _run((*PAIR, "--set", "l1.sets=8"), folder, "other.json"), _run(ALONE, folder, "alone.json"), table]


@pytest.fixture
def made(shared: Shared, tmp_path: Path) -> list[Any]:
    return copy.deepcopy(shared("pairs", lambda: _made(tmp_path)))


def write(run: Saved, folder: Path, name: str = "run.json") -> str:
    (folder / name).write_text(json.dumps(run), encoding="utf-8")
    return str(folder / name)


# ---------------------------------------------------------------------------------------------------------------- saved


def test_a_pair_is_a_run(made: list[Any], tmp_path: Path) -> None:
    [run] = saved.read(write(made[0], tmp_path))
    assert (run["kernel"], run["checked"], len(run["per_sm"])) == ("hotspot + spmv", True, 2)
    assert [each["kernel"] for each in run["kernels"]] == ["hotspot", "spmv"]
    assert run["launches"] == sum(len(each["spans"]) for each in run["kernels"]) == 3


def test_intervals_of_both_add_up(made: list[Any]) -> None:
    """In each interval; what cannot be told of one kernel is in the whole's alone."""
    [whole], parts = made[0]["timeline"], [each["timeline"][0] for each in made[0]["kernels"]]
    assert whole["core_cycle"] == parts[0]["core_cycle"] == parts[1]["core_cycle"] and len(whole["core_cycle"]) > 10
    assert "issue.stall_core_cycles" in whole.keys() - parts[0].keys()
    for name in ("issue.warp_instructions", "l1.misses", "l2.accesses", "dram.read_bytes", "scratchpad.accesses"):
        assert np.add(*(part[name] for part in parts)).tolist() == whole[name], name
        assert [sum(part[name]) for part in parts] == [each["stats"][name] for each in made[0]["kernels"]]
    for name in ("occupancy", "ipc", "dram.bandwidth_used"):
        assert np.add(*(part[name] for part in parts)) == pytest.approx(whole[name]), name
    end = made[0]["kernels"][0]["spans"][-1][1]
    after = [k for k, cycle in enumerate(whole["core_cycle"]) if cycle - 3000 > end]
    assert after and not any(parts[0]["occupancy"][k] for k in after)


def test_the_table_of_intervals(made: list[Any]) -> None:
    rows = list(csv.DictReader(made[3].splitlines()))
    kernels = [row["kernel"] for row in rows]
    assert list(dict.fromkeys(kernels)) == ["calculate_temp + spmv_jds", "hotspot", "spmv"]
    count = kernels.count("spmv")
    for k in range(count):
        whole, *parts = (rows[k + count * part] for part in range(3))
        assert sum(int(part["l1.accesses"]) for part in parts) == int(whole["l1.accesses"])
        assert {part["lsu.busy_core_cycles"] for part in parts} == {"nan"} and whole["lsu.busy_core_cycles"] != "nan"


def put(path: str, value: Any) -> Callable[[Saved], None]:
    """Put a value at a place of the second kernel, of which ``/`` separates the parts."""

    def change(run: Saved) -> None:
        place: Any = run["kernels"][1]
        *outer, last = path.split("/")
        for part in outer:
            place = place[int(part) if isinstance(place, list) else part]
        place[int(last) if isinstance(place, list) else last] = value

    return change


def drop(key: str) -> Callable[[Saved], None]:
    return lambda run: run["kernels"][1].pop(key)


NOTHING: Saved = {"cycles": 0, "ipc": 0, "launches": 0, "spans": [], "issued": [], "warp_instructions": 0,
                  "repetitions": []}  # fmt: skip


def _more(run: Saved) -> None:
    run["both"]["warp_instructions"][1] = 10**9
    run["both"]["ipc"][1] = 10**9 / run["both"]["cycles"]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda run: run.update(kernels={}), "kernels = {}: must be a valid array"),
        (lambda run: run["kernels"].pop(), "kernels = 1: must be 2, as the grids that a GPU runs at once"),
        (put("kernel", "\x1b[2J"), "kernels[1].kernel = '\\x1b[2J': must be printable"),
        (put("checked", None), "kernels[1].checked = None: must be a valid boolean"),
        (put("ipc", 7), "kernels[1]: ipc = 7.0: must be warp_instructions / cycles"),
        (put("launches", 2), "kernels[1]: spans = 1: must be 2, as the launches"),
        (put("spans", [[0, 5], [3, 8]]), "kernels[1]: spans = 2: must be 1"),
        (put("issued", []), "kernels[1]: issued = 0: must be 1, as the launches"),
        (put("issued/0", 5), "kernels[1]: warp_instructions = "),
        (put("spans/0", [1]), "kernels[1].spans[0]: has no 1"),
        (put("spans/0", [9, 3]), "kernels[1]: spans: must not fall"),
        (put("spans/0/0", 1), "kernels[1]: cycles = "),
        (put("timeline/0/ipc", [1.0]), "kernels[1]: timeline[0].ipc: has 1 values"),
        (put("timeline", []), "kernels[1].timeline: must have the intervals of the run's"),
        (put("stats/l2.accesses", 1), "kernels: l2.accesses = "),
        (put("stats/dram.read_bytes", -1), "kernels[1].stats.dram.read_bytes = -1"),
        (drop("stats"), "kernels[1]: has no 'stats'"),
        (lambda run: run["kernels"][1]["stats"].pop("l1.accesses"), "kernels[1]: stats: has no 'l1.accesses'"),
        (lambda run: run["kernels"][1]["timeline"][0].pop("occupancy"), "kernels[1]: timeline[0]: has no 'occupancy'"),
        (lambda run: run["kernels"][1].update(NOTHING), "kernels: the end of the last span = "),
        (put("repetitions", [3]), "kernels[1]: repetitions = 3: must be 1, as the launches"),
        (lambda run: run["both"].update(cycles=7), "both: ipc = "),
        (lambda run: run["both"].update(cycles=0, ipc=[0, 0]), "both.cycles = 0: must be "),
        (lambda run: run["both"].update(warp_instructions=[1]), "both.warp_instructions: has no 1"),
        (_more, "both.warp_instructions: 1000000000: must be "),
    ],
)
def test_damage_is_one_line(
    made: list[Any], damage: Callable[[Saved], None], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(made[0])
    file, out = write(made[0], tmp_path), tmp_path / "out.html"
    assert cli.main(["report", file, "-o", str(out)]) == 2
    printed = capsys.readouterr()
    assert f"{file}: {says}" in printed.err and printed.err.count("\n") == 1 and not out.exists()


# ---------------------------------------------------------------------------------------------------------------- shown


def test_a_report_shows_both_kernels(made: list[Any], tmp_path: Path) -> None:
    page = report.page([*saved.read(write(made[0], tmp_path)), *saved.read(write(made[2], tmp_path))])
    blocks = {block.key: block for block in page.blocks if hasattr(block, "key") and "-" in block.key}
    [table] = [block for key, block in blocks.items() if key == "beside-A" and hasattr(block, "rows")]
    assert [row[0] for row in table.rows] == ["1: hotspot", "2: spmv"] and "beside-B" not in blocks
    spans = [(each["cycles"], each["spans"][0][0], each["spans"][-1][1]) for each in made[0]["kernels"]]
    assert [row[4:7] for row in table.rows] == spans
    beside = made[0]["both"]["ipc"]
    assert [row[8] for row in table.rows] == beside
    assert [row[9] for row in table.rows] == [None, pytest.approx(beside[1] / made[2]["ipc"])]
    text = html(page)
    for shown in ("Two kernels at once", "both kernels over time", "what each kernel has", "1: hotspot", "DRAM bytes"):
        assert shown in text, shown


HOSTILE = "<script>x</script> $x^2$ {{ 1 }}"


def test_hostile_names_are_text(made: list[Any], tmp_path: Path) -> None:
    for each in made[0]["kernels"]:
        each["kernel"] = each["size"] = HOSTILE
    text = html(report.page(saved.read(write(made[0], tmp_path))))
    assert "<script" not in text and "&lt;script&gt;" in text


def test_a_notebook_shows_streams() -> None:
    gpu = Gpu(core_sms=1)
    data = gpu.empty(64, np.uint32)
    module = gpu.load(PTX)
    launches = [module.launch("fill", 2 + k, 64, [data], stream=gpu.stream()) for k in range(2)]
    run = launches[0].run.together
    assert repr(run) == f"<Run of fill on gtx480, 2 launches: {run.cycles} core cycles, IPC {run.ipc:.3f}>"
    assert [launch.stream for launch in run.launches] == [0, 1] and len(run.timelines) == 2
    assert sum(sum(each["issue.warp_instructions"]) for each in run.timelines) == run.warp_instructions
    text = run._repr_html_() or ""
    assert "1: fill" in text and "2: fill" in text and "both kernels over time" in text
    alone = module.launch("fill", 1, 64, [data])
    assert alone.timelines == [] and "Two kernels" not in (alone._repr_html_() or "")


def test_differences_are_told_kernel_by_kernel(made: list[Any], tmp_path: Path) -> None:
    first, second, alone = (saved.read(write(each, tmp_path))[0] for each in made[:3])
    found = difference(first, second)
    assert [row["kernel"] for row in found["kernels"]] == ["hotspot", "spmv"]
    for number, row in enumerate(found["kernels"]):
        one, other = (run["kernels"][number] for run in (first, second))
        assert row["cycles"] == {"first": one["cycles"], "second": other["cycles"]}
        changed = {name for name in one["stats"] if one["stats"][name] != other["stats"][name]}
        assert {each["statistic"] for each in row["statistics"]} == changed and "l1.hits" in changed
    turned = {**second, "kernels": second["kernels"][::-1]}
    assert difference(first, turned)["kernels"] == found["kernels"]
    [row] = difference(alone, first)["kernels"]
    cycles = {"first": alone["cycles"], "second": first["kernels"][1]["cycles"]}
    assert (row["kernel"], row["cycles"]) == ("spmv", cycles)
    assert difference(alone, alone)["kernels"] == []


def test_other_inputs_are_noted(made: list[Any], tmp_path: Path) -> None:
    made[1]["kernels"][1]["seed"] = 5
    first, second = (saved.read(write(each, tmp_path))[0] for each in made[:2])
    assert "spmv: the inputs are different: tiny, seed 1 and tiny, seed 5" in difference(first, second)["notes"]


def test_diff_shows_it(made: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair, alone = write(made[0], tmp_path, "pair.json"), write(made[2], tmp_path, "alone.json")
    assert cli.main(["diff", alone, pair]) == 0
    printed = capsys.readouterr().out
    cycles = f"{made[2]['cycles']:,} and {made[0]['kernels'][1]['cycles']:,} core cycles of its launches"
    assert f"spmv: {cycles}" in printed and "hotspot:" not in printed
    assert cli.main(["diff", pair, pair]) == 0
    assert "hotspot: " in capsys.readouterr().out


def test_energy_of_a_pair(made: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(made[0], tmp_path)
    for by in ("sm", "launch", "interval"):
        assert cli.main(["energy", file, "--by", by]) == 0
    assert "calculate_temp + spmv_jds" in capsys.readouterr().out


def test_a_wrong_secondary_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    right = kernels.check

    def wrong(kernel: Any, outputs: Any, data: Any) -> Any:
        found = right(kernel, outputs, data)
        return found if kernel.name == "hotspot" else type(found)(False, 1, "y[0]: got 1, expected 2")

    monkeypatch.setattr(kernels, "check", wrong)
    assert cli.main(["run", "hotspot", "--secondary", "spmv", *ON]) == 1
    assert "spmv on gtx480: wrong result: y[0]: got 1" in capsys.readouterr().err


# ----------------------------------------------------------------------------------------------------- again and again


REPEATED = ("run", "hotspot", "--secondary", "saxpy", *ON, "--repeat", "--every", "50")


@pytest.fixture
def repeated(shared: Shared, tmp_path: Path) -> Saved:
    return copy.deepcopy(shared("repeated", lambda: _run(REPEATED, tmp_path, "repeated.json")))


def test_the_second_runs_until_the_first_has_ended(repeated: Saved, tmp_path: Path) -> None:
    [run] = saved.read(write(repeated, tmp_path))
    first, second = run["kernels"]
    assert first["repetitions"] == [2] and len(second["repetitions"]) > 2 and set(second["repetitions"]) == {1}
    end = first["spans"][-1][1]
    assert second["spans"][-1][0] < end <= second["spans"][-1][1] == run["cycles"]
    assert second["message"] == f"5000 elements agree, in each of {len(second['spans'])} repetitions"
    assert "--secondary saxpy --secondary-size tiny --repeat" in run["command"]


def test_what_both_have_done_by_the_end_of_the_first(repeated: Saved, made: list[Any]) -> None:
    """Against intervals: all that end by then, and one more at most."""
    for run in (repeated, made[0]):
        ends = [each["spans"][-1][1] for each in run["kernels"]]
        assert run["both"]["cycles"] == min(ends)
        for number, each in enumerate(run["kernels"]):
            [timeline], issued = each["timeline"], run["both"]["warp_instructions"][number]
            inside = [cycle <= min(ends) for cycle in timeline["core_cycle"]]
            grown = timeline["issue.warp_instructions"]
            least = sum(grown[: sum(inside)])
            assert least <= issued <= least + sum(grown[sum(inside) : sum(inside) + 1])
            if ends[number] == min(ends):
                assert issued == each["warp_instructions"]
        assert 0 < min(run["both"]["ipc"])


def test_repetitions_give_their_memory_back() -> None:
    gpus: list[Gpu] = []
    used = []
    for repeat in (False, True):
        job = Job("hotspot", size="tiny", settings={"core.sms": 2}, secondary=Job("saxpy", size="tiny"), repeat=repeat)
        result = execute(job, attach=gpus.append)
        used.append(len(gpus[-1].memory.allocations))
        assert (len(result["kernels"][1]["repetitions"]) > 1) == repeat
    saxpy = 2  # arrays
    assert used[1] == used[0] - saxpy


def test_every_repetition_is_checked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    right, calls = kernels.find, 0

    def second_is_wrong(kernel: Any, gpu: Any, module: Any, data: Any) -> Any:
        nonlocal calls
        calls += 1
        outputs = dict(kernel.run(gpu, module, data))
        if calls == 2:
            name = next(iter(outputs))
            outputs[name] = outputs[name].copy()
            outputs[name][7] += 1
        return outputs

    def find(name: str, *sizes: str) -> Any:
        kernel = right(name, *sizes)
        if name != "saxpy":
            return kernel
        return replace(kernel, run=lambda *what: second_is_wrong(kernel, *what))

    monkeypatch.setattr(kernels, "find", find)
    assert cli.main(list(REPEATED)) == 1
    assert "saxpy on gtx480: wrong result: " in capsys.readouterr().err and calls > 2


def test_a_second_kernel_without_launches_ends(tmp_path: Path) -> None:
    folder = kernels.find("saxpy").ptx.parent
    (tmp_path / "saxpy.ptx").write_text((folder / "saxpy.ptx").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "idle.py").write_text(
        "import numpy as np\nTITLE = SUITE = 'x'\nPTX = 'saxpy.ptx'\n"
        "def setup(size, seed): return {}\ndef run(gpu, module, data): return {'y': np.ones(3)}\n"
        "def reference(data): return {'y': np.ones(3)}\n", encoding="utf-8",
    )  # fmt: skip
    second = Job(str(tmp_path / "idle.py"), size="tiny")
    result = execute(Job("hotspot", size="tiny", settings={"core.sms": 2}, secondary=second, repeat=True))
    assert result["checked"] and result["both"] is None
    assert [each["repetitions"] for each in result["kernels"]] == [[2], [0]]
    [run] = saved.read(write(result, tmp_path))
    assert "2: idle" in html(report.page([run]))
