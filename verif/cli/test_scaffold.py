"""Names that `lockstep new-mechanism` and `new-block` refuse, and that they write all or nothing.

``verif/test_add_a_mechanism.py`` runs what they write.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lockstep.cli import scaffold
from lockstep.cli.main import main

TREE = scaffold.ROOT


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The trees, with nothing but the registry and the folders of a few areas."""
    (tmp_path / "spec").mkdir()
    shutil.copy(TREE / "spec" / "registry.py", tmp_path / "spec")
    for folder in ("models/core", "models/mrpb", "models/warppool", "rtl/warppool", "verif/warppool"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "models" / "mrpb" / "path.py").touch()
    monkeypatch.setattr(scaffold, "ROOT", tmp_path)
    return tmp_path


def contents(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") if path.is_file() else "a folder"
            for path in root.rglob("*")}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "name", "words"),
    [
        ("new-mechanism", "Pair", "'Pair': must be lower-case letters, digits and underscores"),
        ("new-mechanism", "2nd", "must be lower-case letters"),
        ("new-mechanism", "a b", "must be lower-case letters"),
        ("new-mechanism", "../x", "must be lower-case letters"),
        ("new-mechanism", "", "must be lower-case letters"),
        ("new-mechanism", "pair" * 7, "24 at most"),
        ("new-mechanism", "class", "'class' is reserved"),
        ("new-mechanism", "namespace", "'namespace' is reserved"),
        ("new-mechanism", "a--b", "'a__b' is reserved"),
        ("new-mechanism", "warppool", "'warppool': there is a block, a mechanism, a section or a file of this name"),
        ("new-mechanism", "register-sharing", "there is a block, a mechanism"),
        ("new-mechanism", "core", "there is a block, a mechanism"),  # a folder
        ("new-mechanism", "registry", "there is a block, a mechanism"),  # a file
        ("new-mechanism", "l1", "there is a block, a mechanism"),  # a section
        ("new-mechanism", "writeback", "there is a block, a mechanism"),
        ("new-mechanism", "gate", "the files to start from use this name"),
        ("new-block", "door", "'door': must be AREA.BLOCK; areas are banked_l1, cta, "),
        ("new-block", "nowhere.door", "must be AREA.BLOCK"),
        ("new-block", "warppool.", "must be lower-case letters"),
        ("new-block", "warppool.side.door", "must be lower-case letters"),
        ("new-block", "warppool.default", "'default' is reserved"),
        ("new-block", "warppool.mrpb", "there is a block, a mechanism"),
        ("new-block", "lsu.writeback", "there is a block, a mechanism"),
        ("new-block", "mrpb.path", "there is a block, a mechanism"),
        ("new-block", "warppool.phase", "the files to start from use this name"),
    ],
)
def test_refused(command: str, name: str, words: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(root)
    assert main([command, name]) == 2
    error = capsys.readouterr().err
    assert error.startswith("lockstep: ") and words in error and error.count("\n") == 1
    assert contents(root) == before


@pytest.mark.parametrize("area", ["ab", "zz9", "a" * scaffold.LONGEST])
def test_a_mechanism(area: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(root)
    assert main(["new-mechanism", area]) == 0
    after = contents(root)
    written = {line.removeprefix("written: ") for line in capsys.readouterr().out.splitlines() if "written" in line}
    assert written == {name for name, text in after.items() if text != "a folder" and before.get(name) != text}
    assert len(written) == len(scaffold.example()) + 1
    assert not any(
        word in text for text in after.values() for word in ("odd_gate.t", "odd-gate", "OddGate", "urnstile")
    )
    assert all(len(line) <= 120 for text in after.values() for line in text.splitlines())
    registry = after["spec/registry.py"]
    assert f"    {area},\n" in registry
    last = [line for line in before["spec/registry.py"].splitlines() if line.endswith(".MECHANISM,")][-1]
    assert f"{last}\n        {area}.MECHANISM,\n    )" in registry


def test_a_block(root: Path) -> None:
    before = contents(root)
    assert main(["new-block", "mrpb.side_door"]) == 0
    assert {name for name, text in contents(root).items() if name not in before and text != "a folder"} == {
        "models/mrpb/side_door.py", "rtl/mrpb/__init__.py", "rtl/mrpb/side_door.py", "verif/mrpb/__init__.py",
        "verif/mrpb/bench_side_door.py", "verif/mrpb/formal_side_door.py", "verif/mrpb/test_side_door.py",
    }  # fmt: skip


@pytest.mark.parametrize("last", range(12))
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_all_or_nothing(last: int, error: BaseException, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the file at which it ends; what is undone then can be written."""
    before, write, left = contents(root), scaffold.write, iter(range(last, -1, -1))

    def failing(path: Path, content: str | bytes) -> None:
        if next(left, None) == 0:
            raise error
        write(path, content)

    monkeypatch.setattr(scaffold, "write", failing)
    assert main(["new-mechanism", "pair-lane"]) in (2, 130)
    assert contents(root) == before


def test_an_installed_copy_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scaffold, "EXAMPLE", tmp_path / "none")
    assert main(["new-mechanism", "pair-lane"]) == 2
    error = capsys.readouterr().err
    assert error == (
        "lockstep: this is an installed copy of Lockstep; clone the repository, and `pip install -e .` there\n"
    )


def test_a_registry_that_it_does_not_know(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "spec" / "registry.py").write_text("MECHANISMS = {}\n", encoding="utf-8")
    before = contents(root)
    assert main(["new-mechanism", "pair-lane"]) == 2
    assert "spec/registry.py: has no list" in capsys.readouterr().err
    assert contents(root) == before
