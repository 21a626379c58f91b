"""Programs end with what has started them, and all that they have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lockstep.spec import processes

# Two compilers, each with a child of its own, as g++ has one.
SCRIPT = """
import sys
from lockstep.spec.processes import run, side_by_side
compiler = "sleep 300 & echo $! > {}; wait"
list(side_by_side(lambda name: run(["sh", "-c", compiler.format(name)]), sys.argv[1:]))
"""


def ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def eventually(condition: object, seconds: float = 60) -> bool:
    assert callable(condition)
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    return bool(condition())


@pytest.mark.parametrize("count", [1, 2])
def test_an_interrupt_ends_compilers_and_their_children(tmp_path: Path, count: int) -> None:
    names = [tmp_path / f"{k}" for k in range(count)]
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, *map(str, names)], stderr=subprocess.DEVNULL)
    assert eventually(lambda: all(name.exists() and name.read_text(encoding="utf-8").strip() for name in names))
    process.send_signal(signal.SIGINT)
    process.wait(60)
    assert eventually(lambda: all(ended(int(name.read_text(encoding="utf-8"))) for name in names), 10)


CHILD = """
import os, subprocess, sys, time
do = "import sys, time; from lockstep.spec import processes as p; p.end_with(int(sys.argv[1])); print(); time.sleep(99)"
child = subprocess.Popen([sys.executable, "-c", do, sys.argv[1].format(os.getpid())], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(300)
"""


@pytest.mark.parametrize("parent", ["{}", "1"], ids=["its own", "one that is no more"])
def test_a_process_ends_with_its_parent(parent: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", CHILD, parent], stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout
    child = int(process.stdout.readline())
    assert parent != "1" or eventually(lambda: ended(child), 10)
    process.kill()
    process.communicate()
    assert eventually(lambda: ended(child), 10)


def test_the_end_of_the_time_ends_all_of_a_program(tmp_path: Path) -> None:
    name = tmp_path / "pid"
    with pytest.raises(subprocess.TimeoutExpired):
        processes.run(["sh", "-c", f"sleep 300 & echo $! > {name}; wait"], timeout=2)
    assert eventually(lambda: ended(int(name.read_text(encoding="utf-8"))), 10)


@pytest.fixture
def a_minute() -> Iterator[None]:
    """What takes longer fails, rather than to wait for ever."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("a_minute")
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_one_that_fails_ends_the_others(workers: int) -> None:
    """Those that have begun, and those that have not."""

    def work(command: str) -> None:
        if processes.run(["sh", "-c", command]).returncode:
            raise ValueError(command)

    with pytest.raises(ValueError, match="false"):
        list(processes.side_by_side(work, ["false", "sleep 300", "sleep 300"], workers))


def test_what_a_program_writes(tmp_path: Path) -> None:
    done = processes.run(["sh", "-c", "pwd; echo $A >&2; exit 3"], tmp_path, {**os.environ, "A": "b"})
    assert (done.returncode, done.stdout, done.stderr) == (3, f"{tmp_path}\n", "b\n")
    assert list(processes.side_by_side(str, range(5))) == ["0", "1", "2", "3", "4"]


@pytest.mark.usefixtures("a_minute")
def test_an_interrupt_while_programs_are_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(ThreadPoolExecutor):
        def submit(self, *args: Any, **options: Any) -> Any:
            super().submit(*args, **options)
            assert eventually(lambda: processes._running)
            raise KeyboardInterrupt

    monkeypatch.setattr(processes, "ThreadPoolExecutor", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(processes.side_by_side(lambda seconds: processes.run(["sleep", seconds]), ["300", "300"]))
