"""A small soak, and that it finds what is planted."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.verif import levels, soak

SMALL = ("launches", "threads", "processes", "run")
CHECKS = dict(soak.plan(SMALL, 7, 60, 1))


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name != "launches")) for name in CHECKS]
)
def test_a_small_soak(name: str) -> None:
    errors, detail = CHECKS[name]()
    assert not errors and detail


@pytest.mark.long
@pytest.mark.parametrize(("leak", "words"), [
    ("open('/dev/null', encoding='utf-8')", "descriptors"),
    ("b'x' * (1 << 20)", "bytes more"),
])  # fmt: skip
def test_leaks_are_seen(leak: str, words: str) -> None:
    """In a process of its own: what other tests have left behind may go meanwhile."""
    program = f"""
from lockstep.verif import soak
kept = []
soak.ways = lambda _: {{"leak": lambda: kept.append({leak})}}
print(*soak.launches(1, 60)[0], sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    [error] = done.stdout.splitlines()
    assert words in error


TRACEBACK = r"""trap '
    kill %1 2> /dev/null; printf "Traceback\n  in {}\nKeyboardInterrupt" >&2; exit 130
' INT; sleep 9 & wait"""


@pytest.mark.long
@pytest.mark.parametrize(("script", "words"), [
    ("sleep 300 & wait", "still run"),
    ("printf '{\"a\": ' > out.json; wait; sleep 2", "half written"),
    ("trap 'echo Traceback >&2; kill %1; exit 130' INT; sleep 9 & wait", "a traceback"),
    (TRACEBACK.format("program"), "a traceback"),
    ("trap 'touch .1234; kill %1; exit 130' INT; sleep 9 & wait", "left behind"),
    ("trap 'kill %1; exit 3' INT; sleep 9 & wait", "exit code 3"),
])  # fmt: skip
def test_what_signals_leave_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str) -> None:
    monkeypatch.setattr(soak, "ENDING", 0.5)
    monkeypatch.setattr(soak, "PROGRAM", ["sh", "-c", script])
    place = soak.Place(tmp_path, ())
    struck, errors = soak.strike(place, "run", "out.json", signal.SIGINT, 0.3)
    assert struck and words in " ".join(errors) and not place.left()


@pytest.mark.exhaustive
def test_python_may_be_interrupted_before_the_command_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "PROGRAM", ["sh", "-c", TRACEBACK.format("<module>")])
    assert soak.strike(soak.Place(tmp_path, ()), "run", "out.json", signal.SIGINT, 0.3) == (True, [])


@pytest.mark.parametrize("part", soak.PARTS)
def test_each_part_is_known_by_its_name(part: str) -> None:
    assert levels.find([part], "soak") == [part]
