"""Where output goes: files, links, pipes and devices; full disks, closed outputs, a cache that cannot be used."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import threading
from functools import partial
from pathlib import Path

import pytest

from lockstep.models import cache
from lockstep.sim import output
from lockstep.sim.errors import MOST, UsageError
from lockstep.spec import files
from lockstep.verif.cli.test_cli import COMMAND, lockstep
from lockstep.verif.conftest import partly

SHELL = " ".join(COMMAND)


def shell(command: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a shell's command; ``LOCKSTEP`` stands for ours."""
    text = command.replace("LOCKSTEP", SHELL)
    environment = {**os.environ, "PYTHONUNBUFFERED": "", **environment}
    done = subprocess.run(["bash", "-c", text], capture_output=True, encoding="utf-8", env=environment)
    return done.returncode, done.stdout, done.stderr


def one_line(error: str, *words: str) -> None:
    assert error.startswith("lockstep: ") and error.count("\n") == 1, error
    for word in words:
        assert word in error, error


# ---------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("place", ["other/file.json", "other/nothing.json"])
def test_links_stay_links(tmp_path: Path, place: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file.json").write_text("before", encoding="utf-8")
    link = tmp_path / "link.json"
    link.symlink_to(place)
    files.write(link, "after")
    assert link.is_symlink() and (tmp_path / place).read_text(encoding="utf-8") == "after"
    assert len(list(tmp_path.rglob("*"))) == 3 + (place != "other/file.json")


def test_modes_stay(tmp_path: Path) -> None:
    file = tmp_path / "secret.json"
    file.write_text("before", encoding="utf-8")
    file.chmod(0o600)
    files.write(file, "after")
    assert file.stat().st_mode & 0o777 == 0o600


def test_pipes_are_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    output.check_writable(str(pipe))
    output.write_json(str(pipe), {"a": 1})
    reader.join()
    assert json.loads(found[0]) == {"a": 1} and pipe.is_fifo()


@pytest.mark.parametrize("name", partly(["link", "/dev/stdout", "/proc/self/fd/1"], 3))
def test_descriptors_are_written_into(tmp_path: Path, name: str) -> None:
    """Where they stand, after what is there: a file that standard output goes to is not begun anew."""
    if name == "link":
        (tmp_path / name).symlink_to("/dev/stdout")
        name = str(tmp_path / name)
    before = os.stat("/dev/stdout", follow_symlinks=False).st_ino
    code, out, _ = shell(f"(echo first; LOCKSTEP gpus --json {name}) > {tmp_path / 'all'}; cat {tmp_path / 'all'}")
    assert code == 0 and os.stat("/dev/stdout", follow_symlinks=False).st_ino == before
    start = out.index("\n[\n")
    assert out.startswith("first\n") and "gtx480" in out[:start]
    assert json.JSONDecoder().raw_decode(out[start:].lstrip())[0][0]["name"]
    code, out, _ = shell(f"LOCKSTEP gpus --json {name} | cat")
    assert code == 0 and '"core.sms"' in out


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError):
        files.write(tmp_path / "link" / "file", "text")
    with pytest.raises(UsageError, match="cannot be written"):
        output.check_writable(str(tmp_path / "link" / "file"))


def test_full_devices_are_named() -> None:
    with pytest.raises(OSError) as caught:
        files.write(Path("/dev/full"), "text")
    assert caught.value.filename == "/dev/full"


def test_devices_may_be_written_to() -> None:
    for name in ("/dev/null", "/dev/full", "/dev/stdout"):
        output.check_writable(name)


def test_a_full_disk_leaves_the_file(tmp_path: Path) -> None:
    """No file may be larger than 100 bytes here."""
    target = tmp_path / "out.json"
    target.write_text("before", encoding="utf-8")
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (100, 100))
    done = subprocess.run([*COMMAND, "gpus", "--json", target], capture_output=True, encoding="utf-8", preexec_fn=limit)
    assert done.returncode == 2
    one_line(done.stderr, str(target), "too large")
    assert [file.read_text(encoding="utf-8") for file in tmp_path.iterdir()] == ["before"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("LOCKSTEP gpus --json /dev/full", ("/dev/full: No space left",)),
        ("LOCKSTEP gpus > /dev/full", ("output: No space left",)),
        ("LOCKSTEP gpus --json - > /dev/full", ("output: No space left",)),
        ("LOCKSTEP mechanisms --json - > /dev/full", ("output: No space left",)),  # less than a buffer
        ("LOCKSTEP gpus >&-", ("standard output: closed",)),
        ("LOCKSTEP gpus --json - >&-", ("standard output: closed",)),
        ("LOCKSTEP gpus --json ''", ("'': cannot be written",)),
        ("LOCKSTEP verilog cta.cta_dispatcher -o /dev/null", ("-o /dev/null: is not a folder",)),
        ("LOCKSTEP reproduce validation --quick -o /dev/null", ("/dev/null: File exists",)),
        ("LOCKSTEP kernels", ("cache folder /dev/null: File exists; LOCKSTEP_CACHE",)),
        ("LOCKSTEP kernels", ("cache folder /dev/null/below: Not a directory; LOCKSTEP_CACHE",)),
    ],
)
def test_no_place_for_output_is_one_line(command: str, words: tuple[str, ...]) -> None:
    environment = {}
    if "cache folder" in words[0]:
        environment = {"LOCKSTEP_CACHE": words[0].split()[2].rstrip(":")}
    code, out, error = shell(command, **environment)
    assert code == 2 and "\n[" not in out
    one_line(error, *words)


@pytest.mark.exhaustive
@pytest.mark.long
def test_messages_need_no_place() -> None:
    for nowhere in ("2>/dev/full", "2>&-"):
        assert shell(f"LOCKSTEP gpus gtx481 {nowhere}") == (2, "", "")
        assert shell(f"LOCKSTEP mechanisms --json - {nowhere}")[0] == 0


def test_a_reader_that_has_gone_is_no_error() -> None:
    for command in ("gpus", "mechanisms"):  # more and less than a buffer
        found = shell(f"LOCKSTEP {command} --json - | true; echo ${{PIPESTATUS[0]}}")
        assert found == (0, "141\n", "")


def test_verilog_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = "cta.cta_dispatcher"
    code, _, _ = lockstep(capsys, "verilog", block, "-o", tmp_path / "out", "--json", tmp_path / "v.json")
    found = json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))
    assert code == 0 and found["blocks"] == [block] and all(Path(file).is_file() for file in found["files"])
    code, out, _ = lockstep(capsys, "verilog", block, "-o", tmp_path / "out", "--json", "-")
    assert code == 0 and json.loads(out) == found
    code, _, error = lockstep(capsys, "verilog", block, "-o", tmp_path / "out", "--json", tmp_path)
    assert code == 2 and "cannot be written" in error


# ------------------------------------------------------------------------------------------------------------ the cache


def test_only_an_absolute_cache_home_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCKSTEP_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for given, expected in (("", "home/.cache"), ("here", "home/.cache"), (str(tmp_path / "there"), "there")):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert cache.folder() == tmp_path / expected / "lockstep"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["home", "there"]


def test_a_read_only_cache_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OSError, match="cannot be written to; LOCKSTEP_CACHE can name another"):
        cache.folder()


@pytest.mark.parametrize("content", [b"", b"garbage", b"\0" * 100, "cut", "flipped"])
def test_a_damaged_entry_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | str) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    made = []

    def make() -> bytes:
        made.append(1)
        return b"right" * 100

    for _ in range(2):
        assert cache.kept("kind/entry", make) == b"right" * 100 and made == [1]
    place = tmp_path / "kind" / "entry"
    whole = place.read_bytes()
    damaged = {"cut": whole[:-3], "flipped": whole[:90] + b"?" + whole[91:]}
    place.write_bytes(content if isinstance(content, bytes) else damaged[content])
    for _ in range(2):
        assert cache.kept("kind/entry", make) == b"right" * 100 and made == [1, 1]


def test_a_full_disk_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    (tmp_path / "kind").write_text("no folder", encoding="utf-8")
    assert cache.kept("kind/entry", lambda: b"right") == b"right"


# --------------------------------------------------------------------------------------------------------------- errors


def test_messages_are_short_and_one_line() -> None:
    error = UsageError("begins\n" + "x" * 100_000 + "\tends")
    assert str(error).startswith("begins x") and str(error).endswith("x ends") and len(str(error)) < MOST + 10


@pytest.mark.parametrize("option", ["--gpu", "--set", "--with", "--seed", "--size", "--json"])
def test_long_arguments_have_short_errors(capsys: pytest.CaptureFixture[str], option: str) -> None:
    for value in ("x" * 50_000, "9" * 50_000, "l1.mshrs=" + "9" * 50_000, "l1.mshrs=" + "[" * 50_000):
        code, _, error = lockstep(capsys, "run", "saxpy", option, value)
        assert code == 2 and len(error) < MOST + 30
        one_line(error)
