"""Files that are written as a whole or not at all, and text that is UTF-8."""

from __future__ import annotations

import ast
import os
import re
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lockstep.models.cache import ROOT
from lockstep.spec.files import replacing, write

FOLDERS = ("spec", "models", "rtl", "synth", "sim", "verif", "cli")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "target"
    path.write_text("before", encoding="utf-8")
    return path


def untouched(target: Path) -> bool:
    return target.read_text(encoding="utf-8") == "before" and list(target.parent.iterdir()) == [target]


def test_text_and_bytes(tmp_path: Path) -> None:
    for content in ("first\n", "zwölf\n", b"\x00\xff"):
        write(tmp_path / "new", content)
        assert (tmp_path / "new").read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("reason", [KeyboardInterrupt, OSError, ValueError])
def test_a_broken_off_block_leaves_the_old_file(target: Path, reason: type[BaseException]) -> None:
    with pytest.raises(reason), replacing(target) as file:
        file.write(b"half")
        file.flush()
        raise reason
    assert untouched(target)


def test_an_interrupt_at_the_last_moment(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", interrupted)
        write(target, "after")
    assert untouched(target)


def test_a_full_disk_leaves_the_old_file(target: Path) -> None:
    program = """
import sys
from pathlib import Path
from lockstep.spec.files import write
write(Path(sys.argv[1]), b"x" * 9999)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(target)], capture_output=True, encoding="utf-8",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )  # fmt: skip
    assert "OSError: [Errno 27] File too large" in done.stderr
    assert untouched(target)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        write(tmp_path / "nowhere" / "target", "")
    with pytest.raises(OSError):
        write(tmp_path, "")


def test_permissions_are_those_of_a_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "new", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe, "through")
    assert os.read(reader, 100) == b"through" and pipe.is_fifo()
    os.close(reader)


def test_of_several_writers_one_wins_whole(tmp_path: Path) -> None:
    contents = [bytes([number]) * 100_000 for number in range(8)]
    threads = [threading.Thread(target=write, args=(tmp_path / "new", content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "new").read_bytes() in contents and len(list(tmp_path.iterdir())) == 1


def test_there_is_no_other_writer_of_this_kind() -> None:
    sources = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if path != Path(__file__)]
    signs = ("os.replace(", "mkstemp", "NamedTemporaryFile")
    assert [path for path in sources if any(sign in path.read_text(encoding="utf-8") for sign in signs)] == [
        ROOT / "spec/files.py"
    ]


def test_text_is_utf_8_whatever_the_locale() -> None:
    """Also where ruff, which knows only some types, does not see that a path is one."""

    def wrong(node: ast.Call) -> bool:
        named = {word.arg: word.value for word in node.keywords}
        method = isinstance(node.func, ast.Attribute) and node.func.attr in ("read_text", "write_text")
        program = isinstance(value := named.get("text"), ast.Constant) and value.value is True
        return "encoding" not in named and (method or program)

    found = []
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            nodes = ast.walk(ast.parse(text)) if re.search(r"(read|write)_text\b|\btext\b *=", text) else ()
            found += [f"{path}:{node.lineno}" for node in nodes if isinstance(node, ast.Call) and wrong(node)]
    assert not found
