"""``lockstep verify --level soak``: many launches with every fault in between, threads, processes, signals.

What a part does comes from its seed alone; when something comes to pass, and where a signal strikes, from the machine
too. Launches are made in processes of their own, which print what is wrong and their figures as JSON.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from lockstep.models import cache
from lockstep.sim import Gpu, KernelFault, UsageError
from lockstep.spec import processes

__all__ = ["LAUNCHES", "MOMENTS", "PARTS", "plan"]

LAUNCHES, MOMENTS = 2000, 50
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
GROWTH = 8 << 20  # bytes that a process may grow in the second half of its launches, which the allocator keeps
ENDING = 60.0  # seconds in which what a killed command has started must have ended
LONG = 1800.0  # seconds that no command takes on a busy machine
PROGRAM = [sys.executable, "-m", "lockstep.cli"]
MARK = "LOCKSTEP_SOAK"  # in the environment of all processes of one command
WARM = ("numba", "compiled", "layouts")  # what only *compile* makes anew

Outcome = tuple[list[str], str]
"""What is wrong, a line each, and the figures for people."""

PTX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry work(.param .u64 data, .param .u32 end)
{
  .reg .u64 %d, %a; .reg .u32 %k, %v, %e; .reg .pred %p;
  ld.param.u64 %d, [data];
  ld.param.u32 %e, [end];
  mov.u32 %k, %tid.x;
  mul.wide.u32 %a, %k, 4;
  add.u64 %a, %d, %a;
  ld.global.u32 %v, [%a];
  add.u32 %v, %v, 1;
  st.global.u32 [%a], %v;
  setp.eq.u32 %p, %e, 1;
  @%p st.global.u32 [4], %v;
  setp.eq.u32 %p, %e, 2;
  @%p st.global.u32 [%a+2], %v;
  setp.eq.u32 %p, %e, 3;
  @%p trap;
  setp.ne.u32 %p, %e, 4;
  @%p ret;
$spin:
  bra $spin;
}
"""
KERNEL = """import numpy as np
TITLE, SUITE, PTX = "adds one", "none", "work.ptx"

def setup(size, seed):
    return {"words": np.random.default_rng(seed).integers(0, 99, 64, np.uint32)}

def run(gpu, module, data):
    words = gpu.to_device(data["words"])
    for _ in range(4):
        module.launch("work", 1, 64, [words, 0])
    return {"words": gpu.from_device(words)}

def reference(data):
    return {"words": data["words"] + 4}
"""
SWEEP = 'kernel = "work.py"\nsize = "tiny"\nseed = [1, 2, 3, 4]\n[set]\ncore.sms = 1\n'
THREADS = 64

# ------------------------------------------------------------------------------------------------------------- launches


class Work:
    """A GPU with the kernel above; each launch adds one to each word."""

    def __init__(self) -> None:
        self.gpu = Gpu("gtx480", core_sms=2, launch_no_progress=20_000)
        self.module = self.gpu.load(PTX)
        self.words = self.gpu.to_device(np.zeros(THREADS, np.uint32))
        self.expected = np.zeros(THREADS, np.uint32)

    def right(self) -> int:
        """The cycles of a launch whose result is right."""
        cycles = self.module.launch("work", 1, THREADS, [self.words, 0]).cycles
        self.expected += 1
        if not np.array_equal(got := self.gpu.from_device(self.words), self.expected):
            raise AssertionError(f"got {got[0]}, expected {self.expected[0]}")
        return cycles

    def wrong(self, end: int) -> None:
        """A launch that the kernel ends with a fault; whatever it has stored by then does not count."""
        try:
            self.module.launch("work", 1, THREADS, [self.words, end])
        except KernelFault:
            self.renew()
        else:
            raise AssertionError(f"end = {end}: no fault")

    def broken_off(self, error: type[BaseException]) -> None:
        """A launch that an exception of a callback ends, as Ctrl-C does."""

        def stop(*_: int) -> NoReturn:
            raise error

        self.gpu.progress = stop
        try:
            self.module.launch("work", 1, THREADS, [self.words, 4])
        except error:
            self.renew()
        else:
            raise AssertionError("no exception")
        finally:
            self.gpu.progress = None

    def refused(self, *arguments: Any) -> None:
        try:
            self.module.launch(*arguments)
        except UsageError:
            return
        raise AssertionError(f"{arguments}: not refused")

    def renewed(self) -> None:
        """Another module, and other memory."""
        other = self.gpu.load(PTX)
        image = self.gpu.texture(np.zeros((8, 8), np.float32))
        other.launch("work", 1, THREADS, [self.words, 0])
        self.renew()
        other.unload()
        self.gpu.free(image)

    def renew(self) -> None:
        self.gpu.free(self.words)
        self.words = self.gpu.to_device(self.expected)


def ways(work: Work) -> dict[str, Callable[[], object]]:
    """What comes between launches, by name."""
    return {
        **{f"fault {end}": partial(work.wrong, end) for end in (1, 2, 3)},
        "no progress": partial(work.wrong, 4),
        "Ctrl-C": partial(work.broken_off, KeyboardInterrupt),
        "exception": partial(work.broken_off, ValueError),
        "renewed": work.renewed,
        "unknown kernel": partial(work.refused, "none", 1, 1),
        "wrong arguments": partial(work.refused, "work", 1, 1, [None, 0]),
        "block too large": partial(work.refused, "work", 1, 4096, [work.words, 0]),
    }


EARLY = ("fault 1", "fault 2", "fault 3", "no progress", "Ctrl-C", "exception")
"""What ends a launch early: the next one begins with cold caches."""


def _size() -> tuple[int, int]:
    """Bytes in memory, and open descriptors."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd"))


def launches(seed: int, count: int) -> Outcome:
    """``count`` launches in one process, with something in between more often than not."""
    random_, work = random.Random(seed), Work()
    done: Counter[str] = Counter()
    sizes = []
    cold = work.right()
    for number in range(count):
        name = random_.choice([*ways(work), "nothing"])
        ways(work).get(name, lambda: None)()
        done[name] += 1
        cycles = work.right()
        if name in EARLY and cycles != cold:
            raise AssertionError(f"launch {number}, after {name}: {cycles} cycles, with cold caches {cold}")
        work.gpu.runs.clear()  # the last thousand are kept on purpose
        if number + 1 in (count // 2, count):
            sizes.append(_size())
    (half, before), (whole, after) = sizes
    errors = [] if whole - half <= GROWTH else [f"{whole - half:,} bytes more than after half of the launches"]
    errors += [] if before == after else [f"{after} descriptors are open, {before} after half of the launches"]
    figures = f"{count} launches; {whole >> 20} MB ({(whole - half) / 1024:+,.0f} KB in the second half)"
    return errors, f"{figures}, {after} descriptors; between: {', '.join(f'{n} {name}' for name, n in done.items())}"


def threads(seed: int, count: int) -> Outcome:
    """Two GPUs in two threads; then one in two, where a launch is right or refused."""
    wrong: list[str] = []
    refused = 0

    def several(work: Work, lock: threading.Lock | None) -> None:
        nonlocal refused
        for _ in range(count):
            try:
                if lock is None:
                    work.right()
                else:
                    work.module.launch("work", 1, THREADS, [work.words, 0])
                    with lock:
                        work.expected += 1
            except UsageError as error:
                refused += 1
                if lock is None or "another" not in str(error):
                    wrong.append(str(error))
            except Exception as error:
                wrong.append(f"{type(error).__name__}: {error}")

    def both(works: Iterable[Work], lock: threading.Lock | None) -> None:
        begun = [threading.Thread(target=several, args=(work, lock)) for work in works]
        for thread in begun:
            thread.start()
        for thread in begun:
            thread.join()

    both([Work(), Work()], None)
    one = Work()
    _ = one.gpu.machine
    both([one, one], threading.Lock())
    if not np.array_equal(one.gpu.from_device(one.words), one.expected):
        wrong.append("one GPU in two threads: a launch was neither right nor refused")
    return wrong, f"{4 * count} launches, {refused} of one GPU in two threads refused"


def forks(seed: int, count: int) -> Outcome:
    """A process that has launched is forked, and another one is spawned; all go on."""
    work, wrong = Work(), []
    work.right()
    kinds: dict[str, Callable[..., BaseProcess]] = {
        "fork": multiprocessing.get_context("fork").Process,
        "spawn": multiprocessing.get_context("spawn").Process,
    }
    for number in range(count):
        for kind, process in kinds.items():
            child = process(target=_child, args=(work if kind == "fork" else None,))
            child.start()
            work.right()
            child.join(LONG)
            if child.exitcode != 0:
                wrong.append(f"{kind} {number}: exit code {child.exitcode}")
    return wrong, f"{count} forks, {count} spawns"


def _child(work: Work | None) -> None:
    (work or Work()).right()
    os._exit(0)


# -------------------------------------------------------------------------------------------------------------- signals


class Place:
    """A folder with a kernel, a sweep and a cache of its own, and commands that run there."""

    def __init__(self, folder: Path, warm: Iterable[str]) -> None:
        self.folder = folder / "here"
        self.folder.mkdir()
        self.error = folder / "error"
        self.mark = os.urandom(8).hex()
        self.cache = folder / "cache"
        self.cache.mkdir()
        self.warm = [cache.folder() / name for name in warm if (cache.folder() / name).exists()]
        for entry in self.warm:
            (self.cache / entry.name).symlink_to(entry)
        for name, text in (("work.ptx", PTX), ("work.py", KERNEL), ("it.toml", SWEEP)):
            (self.folder / name).write_text(text, encoding="utf-8")

    def start(self, command: str) -> subprocess.Popen[bytes]:
        """What it writes goes to files: of pipes, those that outlive it would hold the ends."""
        environment = {**os.environ, "LOCKSTEP_CACHE": str(self.cache), MARK: self.mark}
        environment.pop("NUMBA_CACHE_DIR", None)
        heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        with self.error.open("wb") as error:
            return subprocess.Popen(
                [*PROGRAM, *command.split()], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=error, start_new_session=True, preexec_fn=heed,
            )  # fmt: skip

    def said(self) -> str:
        """What the last command has said on standard error."""
        return self.error.read_text(encoding="utf-8", errors="replace").strip()

    def whole(self, command: str) -> tuple[float, list[str]]:
        """How long a command takes when nothing disturbs it, and what is wrong about it."""
        began = time.monotonic()
        process = self.start(command)
        process.wait(LONG)
        wrong = [] if process.returncode == 0 else [f"exit code {process.returncode}: {self.said()[-300:]}"]
        return time.monotonic() - began, wrong

    def left(self) -> list[int]:
        """The processes of commands that still run."""
        mark, found = f"{MARK}={self.mark}".encode(), []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:  # it has ended meanwhile, or is somebody else's
                continue
        return found

    def cold(self) -> None:
        """Forget what was made for the kernel."""
        for entry in self.cache.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)


def strike(place: Place, command: str, output: str, number: signal.Signals, moment: float) -> tuple[bool, list[str]]:
    """Send a signal to a command after so many seconds. Whether it came before the end, and what is wrong after it."""
    target = place.folder / output
    target.write_text("before", encoding="utf-8")
    process = place.start(command)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    code, error = process.wait(LONG), place.said()
    wrong = []
    expected = {signal.SIGINT: (130, -signal.SIGINT), signal.SIGTERM: (143, -signal.SIGTERM)}
    pythons = error.endswith("KeyboardInterrupt") and "in program\n" not in error  # the command has not begun
    if not pythons and code not in (0, *expected.get(number, (-signal.SIGKILL,))):
        wrong.append(f"exit code {code}: {error[-300:]}")
    if not pythons and "Traceback" in error:
        wrong.append(f"a traceback: {' / '.join(error.splitlines()[-2:])}")
    until = time.monotonic() + ENDING
    while (left := place.left()) and time.monotonic() < until:
        time.sleep(0.1)
    if left:
        wrong.append(f"processes {left} still run after {ENDING:.0f} s")
    while left := place.left():
        for each in left:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
    text = target.read_text(encoding="utf-8")
    if text != "before" and not _is_whole(text):
        wrong.append(f"{output} is half written")
    if code in (130, 143) and (hidden := [file.name for file in place.folder.iterdir() if file.name.startswith(".")]):
        wrong.append(f"{', '.join(hidden)}: left behind")
    return code != 0, wrong


def _is_whole(text: str) -> bool:
    if text.lstrip().startswith("<"):
        return text.rstrip().endswith("</html>")
    try:
        return bool(json.loads(text))
    except ValueError:
        return False


RUN = "run work.py --set core.sms=2 --json out.json"
COMMANDS = {
    "compile": (RUN, "out.json"),
    "run": (RUN, "out.json"),
    "cosim": ("cosim work.py --rtl lsu.intra_warp_coalescer --set core.sms=2 --json out.json", "out.json"),
    "report": ("report run.json -o page.html", "page.html"),
    "sweep": ("sweep it.toml --jobs 2 --json out.json", "out.json"),
}


def signals(name: str, number: signal.Signals, seed: int, moments: int) -> Outcome:
    """A command that is struck again and again: nothing is half written, nothing goes on, and the next one works.

    *compile* begins without a cache and goes on with what the commands before have left there, to the end.
    """
    command, output = COMMANDS[name]
    random_ = random.Random(f"{seed} {name} {number.name}")
    again = f"lockstep verify {name} --level soak --seed {seed} --moments {moments}"
    wrong: list[str] = []
    struck = 0
    with tempfile.TemporaryDirectory(prefix="lockstep-soak-") as folder:
        place = Place(Path(folder), () if name == "compile" else WARM)
        spans = [5.0]
        if name != "compile":
            place.whole(RUN.replace("out.json", "run.json"))
            first, errors = place.whole(command)
            spans = [first, place.whole(command)[0]]
            wrong += errors
        for k in range(moments):
            if k % 5 == 0 and name != "compile":
                place.cold()
            moment = random_.uniform(0, random_.choice(spans))
            hit, errors = strike(place, command, output, number, moment)
            struck += hit
            if name != "compile":
                errors += [f"the next one: {error}" for error in place.whole(command)[1]]
            where = f"{number.name} after {moment:.3f} s of `lockstep {command}`"
            wrong += [f"{where}: {error}; again: {again}" for error in errors]
        if name == "compile":
            wrong += [f"the next one: {error}; again: {again}" for error in place.whole(command)[1]]
    return wrong, f"{struck} of {moments} moments before the end"


def cold_starts(seed: int, count: int) -> Outcome:
    """Two at once, without a cache."""
    with tempfile.TemporaryDirectory(prefix="lockstep-soak-") as folder:
        place = Place(Path(folder), ())
        both = [place.start(RUN.replace("out", str(k))) for k in range(2)]
        wrong = []
        for process in both:
            if process.wait(LONG):
                wrong.append(f"exit code {process.returncode}: {place.said()[-300:]}")
        wrong += [f"{k}.json is not whole" for k in range(2) if not _checked(place.folder / f"{k}.json")]
    return wrong, "two starts"


def _checked(file: Path) -> bool:
    return file.exists() and json.loads(file.read_text(encoding="utf-8"))["checked"]


# ----------------------------------------------------------------------------------------------------------------- plan

INSIDE: dict[str, Callable[[int, int], Outcome]] = {"launches": launches, "threads": threads, "processes": forks}
PARTS = (*INSIDE, "cold-starts", *COMMANDS)
SHARE = 50  # threads and processes do one for so many launches


def plan(parts: Iterable[str], seed: int, launches: int, moments: int) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    """The checks of some of :data:`PARTS`, by name."""
    for part in parts:
        if part in INSIDE:
            count = launches if part == "launches" else max(1, launches // SHARE)
            yield part, partial(_inside, part, seed, count)
        elif part == "cold-starts":
            yield part, partial(cold_starts, seed, 2)
        else:
            for number in SIGNALS:
                yield f"{part}, {number.name}", partial(signals, part, number, seed, moments)


def _inside(part: str, seed: int, count: int) -> Outcome:
    """A part in a process of its own."""
    done = processes.run([sys.executable, "-m", __name__, part, str(seed), str(count)])
    if done.returncode:
        return [f"exit code {done.returncode}: {done.stderr.strip()[-1000:]}"], ""
    errors, detail = json.loads(done.stdout.splitlines()[-1])
    return errors, detail


if __name__ == "__main__":
    print(json.dumps(INSIDE[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))))
