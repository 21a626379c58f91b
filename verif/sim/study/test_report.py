"""Reports: what is on the page is what is in the JSON; a browser shows it without a complaint."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.sim import Gpu
from lockstep.sim.device.description import PARAMETERS
from lockstep.sim.errors import UsageError
from lockstep.sim.study import energy, report
from lockstep.sim.study.page import Command, Page, Plot, Table, html
from lockstep.sim.study.report import plots
from lockstep.spec.causes import CAUSES
from lockstep.verif.cli.test_cli import PTX
from lockstep.verif.conftest import Shared

RUN = ("run", "nw", "--size", "tiny", "--set", "core.sms=2")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --window-size=1100,4000 --virtual-time-budget=5000""".split()


def _runs(folder: Path) -> list[dict[str, Any]]:
    """Two runs of one kernel, one with a profile and a mechanism, and one of another."""
    results = []
    for arguments in ((*RUN, "--with", "warppool", "--profile"), RUN, ("run", "saxpy", "--size", "tiny", "--energy")):
        target = folder / "run.json"
        assert cli.main([*arguments, "--json", str(target)]) == 0
        results.append(json.loads(target.read_text(encoding="utf-8")))
    return results


@pytest.fixture
def results(shared: Shared, tmp_path: Path) -> list[dict[str, Any]]:
    return shared("reported", lambda: _runs(tmp_path))


def table(page: Page, key: str) -> list[dict[str, Any]]:
    [found] = [block for block in page.blocks if isinstance(block, Table) and block.key == key]
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def test_runs_that_lie_together_in_the_roofline_share_a_text() -> None:
    points = {"A: a": (0.1, 1.0), "B: b": (0.5, 2.0), "C: c": (0.101, 1.01), "D: d": (0.5, 2.7)}
    drawn = plots.roofline(points, {"gtx480": (177.0, 21.0)})
    assert re.findall(r">([A-D](?:, [A-D])*)<", drawn) == ["A, C", "B", "D"]


def test_runs_are_named_by_what_differs(results: list[dict[str, Any]]) -> None:
    rows = table(report.page(results), "runs")
    assert [row["run"] for row in rows] == [
        "nw, warppool, core.sms=2", "nw, baseline, core.sms=2", "saxpy, baseline"
    ]  # fmt: skip
    assert [row["core cycles"] for row in rows] == [result["cycles"] for result in results]
    assert rows[0]["speed-up"] == rows[2]["speed-up"] == 1
    assert rows[1]["speed-up"] == results[0]["cycles"] / results[1]["cycles"]
    assert report.page(results[2:]).title == "saxpy: 1 run"


def test_cycles_are_all_there(results: list[dict[str, Any]]) -> None:
    page = report.page(results)
    for row, result in zip(table(page, "cycles"), results, strict=True):
        parts = [value for name, value in row.items() if name != "run"]
        assert sum(parts) == result["cycles"] * result["configuration"]["core.sms"]
        assert min(parts) >= 0
    [waits] = table(page, "waits")
    profile = results[0]["profile"]["functions"]
    assert sum(value for name, value in waits.items() if name != "run") == sum(each["warp_cycles"] for each in profile)


def test_every_cause_is_in_one_group() -> None:
    assert sorted(cause for group in report.GROUPS.values() for cause in group) == sorted(CAUSES)


def test_requests_and_conflicts(results: list[dict[str, Any]]) -> None:
    page = report.page(results)
    for row, result in zip(table(page, "requests"), results, strict=True):
        stats = result["stats"]
        assert row["coalescer"] == stats["lsu.requests"] and row["path to the L1"] == stats["l1.accesses"]
        assert row["L2 to DRAM"] == stats["dram.reads"] + stats["dram.writes"]
    written = {**results[0], "stats": {**results[0]["stats"], "dram.reads": 5, "dram.writes": 3}}
    assert table(report.page([written]), "requests")[0]["L2 to DRAM"] == 8
    conflicts = table(page, "scratchpad")
    assert [row["run"][0] for row in conflicts] == ["A", "B"], "saxpy has no scratchpad"
    stats = results[0]["stats"]
    assert conflicts[0]["conflict cycles"] == stats["scratchpad.conflict_core_cycles"] > 0
    each = (stats["scratchpad.accesses"] + stats["scratchpad.conflict_core_cycles"]) / stats["scratchpad.accesses"]
    assert conflicts[0]["cycles per access"] == pytest.approx(each)


def test_nothing_is_above_the_roof(results: list[dict[str, Any]]) -> None:
    rows = table(report.page(results), "roofline")
    assert len(rows) == 3 and all(0 < row["of the roof"] <= 1 for row in rows)
    saxpy = results[2]
    nbytes = saxpy["stats"]["dram.read_bytes"] + saxpy["stats"]["dram.written_bytes"]
    assert rows[2]["instructions per byte"] == saxpy["warp_instructions"] / nbytes
    assert [report._under((2.0, 10.0), intensity) for intensity in (1, 5, 50)] == [2, 10, 10]


def test_the_page_says_how_to_make_it_again(results: list[dict[str, Any]]) -> None:
    page = report.page(results)
    commands = [block.command for block in page.blocks if isinstance(block, Command)]
    assert commands == [result["command"] for result in results]
    different = {row["parameter"]: row for row in table(page, "different")}
    assert different["core.sms"] == {"parameter": "core.sms", "A": 2, "B": 2, "C": 15}
    assert {row["parameter"] for row in table(page, "configuration")} == results[0]["configuration"].keys()


def test_hot_lines_stand_beside_their_causes(results: list[dict[str, Any]]) -> None:
    page = report.page(results)
    hot = [block for block in page.blocks if isinstance(block, Plot) and block.key.startswith("hot")]
    assert len(hot) == len(results[0]["profile"]["functions"])
    hottest = results[0]["profile"]["functions"][0]["lines"][0]
    [first] = [block for block in page.blocks if isinstance(block, Table) and block.key == "hot-A-0"]
    row = dict(zip(first.columns, first.rows[0], strict=True))
    assert row["line"] == str(hottest["line"]) and row["text"] == " ".join(hottest["text"].split())


def test_launches_follow_each_other(results: list[dict[str, Any]]) -> None:
    launch = {"core_cycle": [100, 150], "ipc": [1.0, 2.0], "occupancy.warps": [12, 24], "dram.bandwidth_used": [0, 0]}
    run = report.Subject("A", "nw", {**results[0], "timeline": [launch, launch, launch]})
    assert report._series(run).cycles == [100, 150, 250, 300, 400, 450]
    assert report._series(run).values["ipc"] == [1, 2, 1, 2, 1, 2]
    assert report._series(run).values["occupancy.warps"] == [0.25, 0.5] * 3, "of 48 warps"


def test_energy_over_time(results: list[dict[str, Any]]) -> None:
    """The table is what `lockstep energy` says; power is drawn for the run that was made with --energy."""
    process = energy.load("45nm")
    page = report.page(results)
    for row, result in zip(table(page, "energy"), results, strict=True):
        found = energy.account(result, process)
        assert row["total"] == found.total / 1e6 and row["registers"] == found.energies["registers"] / 1e6
    assert [block.key for block in page.blocks if isinstance(block, Plot)].count("power") == 1
    assert "events" in results[2] and not any(
        isinstance(block, Plot) and block.key == "power" for block in report.page(results[:2]).blocks
    )
    run = report.Subject("A", "saxpy", results[2])
    series, clock = report._milliwatts(run, process), run.value("clocks.core")
    lengths = np.diff([0, *series.cycles])
    assert series.cycles[-1] == results[2]["cycles"]
    joules = float((lengths * series.values["milliwatts"]).sum()) / clock * 1e6
    assert joules == pytest.approx(energy.account(results[2], process).total)


def test_occupancy_is_the_same_in_plot_and_table(results: list[dict[str, Any]]) -> None:
    for row, result in zip(table(report.page(results), "runs"), results, strict=True):
        drawn = report._series(report.Subject("A", "", result)).values["occupancy.warps"]
        weights = [cycles for launch in result["timeline"] for cycles in launch["sm.active_core_cycles"]]
        assert row["occupancy"] == pytest.approx(float(np.average(drawn, weights=weights)))


def test_every_cause_of_a_bar_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "svg", lambda figure: figure)
    parts = report._grouped(1, dict.fromkeys(CAUSES, 1))
    figure: Any = plots.stacked({"A": parts}, {"A": sum(parts.values())})
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(parts)
    looks = {(patch.get_facecolor(), patch.get_hatch()) for patch in figure.axes[0].patches}
    assert len(looks) == len(parts)
    assert max(patch.get_bbox().x1 for patch in figure.axes[0].patches) == pytest.approx(1)


MACHADO = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no L cones": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no M cones": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no S cones": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""What is seen of linear RGB: Machado, Oliveira and Fernandes, A physiologically-based model for simulation of color
vision deficiency, IEEE TVCG 15 (6), 2009, severity 1."""
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])  # sRGB, D65
DISTINCT = 15  # CIE76: 2.3 is just noticeable


def _lab(colour: str, vision: str) -> np.ndarray:
    from matplotlib.colors import to_rgb

    encoded = np.array(to_rgb(colour))
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    seen = XYZ @ np.clip(np.array(MACHADO[vision]) @ linear, 0, 1) / XYZ.sum(axis=1)
    x, y, z = np.where(seen > 216 / 24389, np.cbrt(seen), (24389 / 27 * seen + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", MACHADO)
def test_colours_are_told_apart(vision: str) -> None:
    """By readers with each kind of cones missing, and all from the page's white."""
    seen = {colour: _lab(colour, vision) for colour in (*plots.COLOURS, "white")}
    for one, other in combinations(seen, 2):
        least = DISTINCT if "white" not in (one, other) else DISTINCT - 5
        assert np.linalg.norm(seen[one] - seen[other]) >= least, (one, other)


def test_bars_have_the_lengths_of_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "svg", lambda figure: figure)

    def bars(figure: Any) -> list[tuple[float, float, float, float]]:
        found = (patch.get_bbox().bounds for patch in figure.axes[0].patches)
        return [tuple(round(value, 6) for value in bounds) for bounds in found]

    parts = {"one": {"x": 1, "y": 2, "z": 1}, "two": {"x": 2, "y": 0, "z": 6}}
    stacked = [(left, width) for left, _, width, _ in bars(plots.stacked(parts, {"one": 4, "two": 8}))]
    assert stacked == [(0, 0.25), (0, 0.25), (0.25, 0.5), (0.25, 0), (0.75, 0.25), (0.25, 0.75)]
    levels = bars(plots.levels(parts, "x"))
    assert [height for *_, height in levels] == [1, 2, 1, 1, 0, 3]


# --------------------------------------------------------------------------------------------------------- in a browser


# A page has no scripts, and allows none. This one, for the tests alone, writes down what the browser has made of it.
PROBE = """<script nonce="probe">window.onload = () => {
    for (const svg of document.querySelectorAll("svg")) {
        const box = svg.getBoundingClientRect(), drawn = svg.querySelectorAll("path, use").length;
        svg.dataset.drawn = Math.round(box.width) + "x" + Math.round(box.height) + ":" + drawn;
        for (const each of svg.querySelectorAll("[clip-path], use")) {
            const name = each.getAttribute("clip-path")?.slice(5, -1) ?? each.getAttribute("xlink:href").slice(1);
            if (!document.getElementById(name)) console.error("PLOT: no " + name);
        }
    }
    const body = document.body.dataset, main = document.querySelector("main");
    body.overflow = document.documentElement.scrollWidth - window.innerWidth;
    body.text = main.clientWidth - 2 * parseFloat(getComputedStyle(main).paddingLeft);
    body.alien = document.querySelectorAll("main script, img, iframe, [onload], [onerror]").length;
} </script>"""
POLICY = "default-src 'none';"


def browse(page: str, folder: Path) -> tuple[str, list[str]]:
    """What a browser makes of a page, with the probe in it, and what it complains of."""
    if BROWSER is None:
        pytest.skip("needs the program Chromium, which is not in PyPI; page and plots are checked without it, too")
    file = folder / "report.html"
    page = page.replace(POLICY, f"{POLICY} script-src 'nonce-probe';").replace("</body>", f"{PROBE}</body>")
    file.write_text(page, encoding="utf-8")
    command = [BROWSER, *QUIET, f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr", "--dump-dom"]
    done = subprocess.run([*command, file.as_uri()], capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line or "PLOT" in line]


def noted(shown: str, name: str) -> int:
    [found] = re.findall(rf'data-{name}="(-?[0-9]+)', shown)
    return int(found)


def test_a_browser_shows_it(results: list[dict[str, Any]], tmp_path: Path) -> None:
    text = html(report.page(results))
    shown, complaints = browse(text, tmp_path)
    assert complaints == []
    drawn = re.findall(r'data-drawn="(\d+)x(\d+):(\d+)"', shown)
    assert len(drawn) == text.count("<svg") >= 8
    assert all(int(height) > 80 and int(marks) > 8 for _, height, marks in drawn), drawn
    assert {int(width) for width, *_ in drawn} == {noted(shown, "text")}, "plots are as wide as the text"
    assert noted(shown, "overflow") <= 0


HOSTILE = (
    '"><img src=q onerror=document.body.dataset.p=1></style></title></svg></code>-->'
    '<svg onload="document.body.dataset.p=1"><script>document.body.dataset.p=1</script>'
    "<iframe src=javascript:parent.document.body.dataset.p=1>$x^2$ *b* `c` {{ 7 * 6 }}"
)


def hostile(value: Any) -> Any:
    """With hostile text in place of every text, and of the keys that are no statistics."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, list):
        return [hostile(each) for each in value]
    if isinstance(value, dict):
        return {key: hostile(each) for key, each in value.items()}
    return value


def test_hostile_text_is_text(results: list[dict[str, Any]], tmp_path: Path) -> None:
    """In every field of a saved run, also without the policy; and the policy alone stops what is no text."""
    configuration, stats = results[0]["configuration"], results[0]["stats"]
    chosen = {key: value for key, value in configuration.items() if isinstance(value, str) and key in PARAMETERS}
    for name, place in (("one", results[0]), ("two", results[2])):
        run = hostile(place) | {"stats": stats if name == "one" else place["stats"], "mechanisms": [HOSTILE]}
        run["configuration"] |= chosen | {HOSTILE: HOSTILE}
        run |= {"settings": {HOSTILE: HOSTILE}}
        (tmp_path / f"{name}.json").write_text(json.dumps(run), encoding="utf-8")
    out = tmp_path / "out.html"
    assert cli.main(["report", *(str(tmp_path / f"{name}.json") for name in ("one", "two")), "-o", str(out)]) == 0
    page = out.read_text(encoding="utf-8")
    assert page.count(POLICY) == 1
    shown, complaints = browse(page.replace("Content-Security-Policy", "Ignored"), tmp_path)
    assert complaints == [] and noted(shown, "alien") == 0 and "data-p=" not in shown
    assert "{{ 7 * 6 }}" in shown and "$x^2$ *b* `c`" in shown
    planted = '<img src="q" onerror="document.body.dataset.p=1"><script>document.body.dataset.p=1</script></main>'
    shown, complaints = browse(page.replace("</main>", planted), tmp_path)
    assert noted(shown, "alien") == 2 and "data-p=" not in shown and len(complaints) >= 2


def test_nothing_comes_from_elsewhere(results: list[dict[str, Any]]) -> None:
    text = html(report.page(results))
    assert "<script" not in text and "<link" not in text and "@import" not in text
    names = re.findall(r'\bid="([^"]*)"', text)
    assert len(names) == len(set(names)), "names of one plot are in another"
    assert text.count('role="img" aria-label="') == text.count("<svg")
    assert len(re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)) > 1000
    named = r"https?://(www\.w3|purl|creativecommons|matplotlib)\.org\S*"  # in the plots' metadata
    assert "http" not in re.sub(named, "", text).replace("http-equiv", "")


# ------------------------------------------------------------------------------------------------- command and notebook


@pytest.mark.long
def test_the_command(results: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, out = tmp_path / "one.json", tmp_path / "two.json", tmp_path / "out.html"
    one.write_text(json.dumps(results[0]), encoding="utf-8")
    two.write_text(json.dumps(results[1:]), encoding="utf-8")  # as compare writes them
    assert cli.main(["report", str(one), str(two), "-o", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == html(report.page(results)) and str(out) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "run.json: cannot be read: No such file or directory"),
        ("{", "run.json: not JSON"),
        ("9" * 5000, "run.json: not JSON"),
        ("[" * 100_000, "run.json: not JSON"),
        ('{"kernel": "x", "cycles": 1}', "run.json: has no 'size'"),
        ("[3]", "run.json: 3: must be an object"),
        ("[]", "run.json: has no runs"),
    ],
)
def test_wrong_files(text: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "run.json", tmp_path / "out.html"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    assert cli.main(["report", str(file), "-o", str(out)]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1 and not out.exists()


@pytest.mark.exhaustive
def test_too_many_runs(results: Sequence[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps([results[0]] * 27), encoding="utf-8")
    with pytest.raises(UsageError, match="27 runs: a report shows at most 26"):
        report.read([str(file)])


def test_a_notebook_shows_a_run() -> None:
    gpu = Gpu(core_sms=1)
    out = gpu.empty(64, np.uint32)
    module = gpu.load(PTX)
    run = module.launch("fill", 1, 64, [out], profile=True)
    what = f"{run.cycles} core cycles, IPC {run.ipc:.3f}"
    assert repr(run) == f"<Run of fill on gtx480, grid (1, 1, 1), block (64, 1, 1): {what}>"
    text = run._repr_html_() or ""
    assert "<html" not in text and "<svg" in text and "fill" in text and "st.global.u32" in text
