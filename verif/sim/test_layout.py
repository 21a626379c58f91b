"""Tables keep to the terminal's width, and to 80 columns or ``COLUMNS`` in pipes; no number is cut or wrapped."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lockstep.cli import main as cli
from lockstep.sim import layout, output
from lockstep.verif.conftest import partly

WORDS = "lines of a warp, core cycles; warps_per_queue l1.stall_no_mshr_core_cycles a/long/path.cu:17 16 % b".split()
KERNEL = ["--size", "tiny", "--set", "core.sms=2"]
COMMANDS: dict[str, list[str]] = {
    "kernels": [],
    "gpus": [],
    "gpus of one": ["gtx480"],
    "mechanisms": [],
    "blocks": [],
    "blocks of one": ["warppool.warp_pool"],
    "occupancy": ["spmv", "--with", "sharing"],
    "occupancy of needs": ["--threads", "256", "--registers", "40"],
    "ptx": ["spmv", "--show", "registers"],
    "run": ["spmv", *KERNEL, "--profile"],
    "bench": ["saxpy", *KERNEL],
    "compare": ["transpose-columns", *KERNEL, "--with", "baseline", "--with", "warppool", "--jobs", "1",
                "--show", "l1.stall_mshrs_core_cycles,issue.stall_core_cycles,dram.row_hit_rate,l1.mpki,l2.mpki"],
    "sweep": ["sweep.toml", "--jobs", "1"],
    "cosim": ["saxpy", *KERNEL, "--with", "warppool", "--rtl", "warppool.writeback"],
    "energy": ["first.json", "second.json", "first.json"],
    "diff": ["first.json", "second.json"],
    "power": ["report", "power.csv", "--trees", "5", "--seeds", "1"],
    "verify": ["warppool.writeback", "--jobs", "1"],
    "synth": ["warppool.writeback"],
    "reproduce": ["validation", "--quick"],
    "trace": ["record", "saxpy", "--size", "tiny", "-o", "recorded"],
    "litmus": ["mp", "--seeds", "1"],
}  # fmt: skip
Shown = list[tuple[Sequence[layout.Column], int]]

LONG = {"compare", "sweep", "cosim", "verify", "synth", "reproduce", "litmus"}
WITHOUT_TABLES = {"report", "verilog", "completion", "new-mechanism", "new-block"}


def check(text: str, width: int, shown: Shown) -> None:
    for line in text.splitlines():
        assert len(line) <= width, line
    words = set(text.split())
    for column in (column for columns, _ in shown for column in columns):
        if column.number:
            assert set(column.cells) - {""} <= words, column.name
        for piece in column.cells:
            assert all(len(word) > layout.LONGEST or word in words for word in piece.split()), piece


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """The columns and keys of all tables that are printed."""
    tables: Shown = []
    show = output.show

    def spy(columns: Sequence[layout.Column], keys: int) -> None:
        tables.append((columns, keys))
        show(columns, keys)

    monkeypatch.setattr(output, "show", spy)
    return tables


def test_every_command_is_here() -> None:
    assert {name.split()[0] for name in COMMANDS} | WITHOUT_TABLES == set(cli.COMMANDS)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    for name, mshrs in (("first", 32), ("second", 16)):
        target = str(folder / f"{name}.json")
        assert cli.main(["run", "saxpy", *KERNEL, "--profile", "--set", f"l1.mshrs={mshrs}", "--json", target]) == 0
    (folder / "sweep.toml").write_text(
        'kernel = ["saxpy"]\nsize = "tiny"\nset.core.sms = 2\nset.l1.mshrs = [16, 32]\n', encoding="utf-8"
    )
    rows = "".join(f"kernel {n},{90 + n % 7},modelled by hand,{n * n},{10**n}\n" for n in range(24))
    (folder / "power.csv").write_text(f"kernel,watts,origin,first,second\n{rows}", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=pytest.mark.exhaustive) if name in LONG else name for name in COMMANDS]
)
def test_every_command_keeps_to_the_width(
    command: str, saved: Path, shown: Shown, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(saved)
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main([command.split()[0], *COMMANDS[command]]) == 0
    check(capsys.readouterr().out, 80, shown)
    assert shown or command == "gpus of one"
    monkeypatch.setenv("COLUMNS", "120")
    for columns, keys in list(shown):
        output.show(columns, keys)
    check(capsys.readouterr().out, 120, shown)


@pytest.mark.parametrize("seed", partly(range(40)))
def test_any_table_keeps_to_the_width(
    seed: int, shown: Shown, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(seed)
    width = rng.choice((60, 80, 100, 120, 200))

    def text(most: int) -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(0, most)))

    kinds: list[Callable[[], object]] = [
        lambda: rng.choice((rng.randrange(10**12), rng.random() * 10**6, None)),
        lambda: text(3),
        lambda: text(30),
    ]
    columns = [rng.choice(kinds) for _ in range(rng.randint(1, 20))]
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [[make() for make in columns] for _ in range(rng.randint(0, 20))]
    output.table(text(30), [text(3) for _ in columns], rows, keys=rng.randint(1, 2))
    check(capsys.readouterr().out, width, shown)


def test_a_pipe_has_80_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.__stdout__", None)
    output.table("", ("name", "meaning"), [("it", "word " * 50)])
    assert max(map(len, capsys.readouterr().out.splitlines())) == 80


def test_columns_without_room_follow_beside_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    output.table("T", ("kernel", "gpu", "one.of_many", "b", "c"), [("k", "g", 10**9, 10**6, 10**3)], keys=2)
    lines = capsys.readouterr().out.splitlines()
    heads = [line.replace("┃", " ").split() for line in lines if line.startswith("┃")]
    assert heads == [["kernel", "gpu", "one.of_many"], ["kernel", "gpu", "b", "c"]] and lines[0] == "T"
