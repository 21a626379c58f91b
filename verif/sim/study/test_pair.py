"""Two kernels at once, saved: the parts of each add up, over time too; and what is shown and refused of such runs."""

from __future__ import annotations

import copy
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.sim import Gpu
from lockstep.sim.study import report, saved
from lockstep.sim.study.difference import difference
from lockstep.sim.study.page import html
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
        (lambda run: run["kernels"][1].update(cycles=0, ipc=0, launches=0, spans=[]), "kernels: the end of the last"),
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
    assert [row[8] for row in table.rows] == made[0]["both"]["ipc"]
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
    module = gpu.load(
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry fill(.param .u64 out)\n{\n"
        ".reg .u64 %o; .reg .u32 %t; .reg .u64 %d;\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\n"
        "mul.wide.u32 %d, %t, 4;\nadd.u64 %o, %o, %d;\nst.global.u32 [%o], %t;\nret;\n}\n"
    )
    launches = [module.launch("fill", 2 + k, 64, [data], stream=gpu.stream()) for k in range(2)]
    run = launches[0].run.together  # type: ignore[union-attr]
    assert repr(run) == f"<Run of fill on gtx480, 2 launches: {run.cycles} core cycles, IPC {run.ipc:.3f}>"
    assert [launch.stream for launch in run.launches] == [0, 1] and len(run.timelines) == 2
    assert sum(sum(each["issue.warp_instructions"]) for each in run.timelines) == run.warp_instructions
    text = run._repr_html_() or ""
    assert "1: fill" in text and "2: fill" in text and "both kernels over time" in text
    alone = module.launch("fill", 1, 64, [data])
    assert alone.timelines == [] and "Two kernels" not in (alone._repr_html_() or "")  # type: ignore[union-attr]


def test_differences_are_told_kernel_by_kernel(made: list[Any], tmp_path: Path) -> None:
    first, second, alone = (saved.read(write(each, tmp_path))[0] for each in made[:3])
    found = difference(first, second)
    assert [row["kernel"] for row in found["kernels"]] == ["hotspot", "spmv"]
    for number, row in enumerate(found["kernels"]):
        one, other = (run["kernels"][number] for run in (first, second))
        assert row["cycles"] == {"first": one["cycles"], "second": other["cycles"]}
        changed = {name for name in one["stats"] if one["stats"][name] != other["stats"][name]}
        assert {each["statistic"] for each in row["statistics"]} == changed and "l1.hits" in changed
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
    from lockstep.sim import kernels

    right = kernels.check

    def wrong(kernel: Any, outputs: Any, data: Any) -> Any:
        found = right(kernel, outputs, data)
        return found if kernel.name == "hotspot" else type(found)(False, 1, "y[0]: got 1, expected 2")

    monkeypatch.setattr(kernels, "check", wrong)
    assert cli.main(["run", "hotspot", "--secondary", "spmv", *ON]) == 1
    assert "spmv on gtx480: wrong result: y[0]: got 1" in capsys.readouterr().err
