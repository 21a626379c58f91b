"""Traces that are damaged, and traces that lie: each is replayed, or refused in one line; nothing else may happen.

::

    $ python -m lockstep.verif.trace_mutants [--count 5000] [--seed 1]

A mutant is a good trace with one to three changes: bytes of files flipped, cut or added; numbers and names of the JSON
replaced; blocks with other numbers in them. Checksums and digests are made right again in most of them, so that what
lies behind these is tried, too. Each runs in a process of its own, which must not crash. Exit code 1: one did not end
as it must.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lockstep.sim import Gpu
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.traces.blocks import HEAD, MAGIC, TABLE
from lockstep.sim.traces.read import Trace
from lockstep.sim.traces.replay import replay
from lockstep.spec import registry
from lockstep.verif.replays import MECHANISMS

MOST_SECONDS = 60
MOST_MEMORY = 3 << 30  # bytes beyond what the process has
NUMBERS = (-1, 0, 1, 2, 31, 32, 63, 64, 255, 256, 1023, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64, 10**30)
NAMES = ("", ".", "..", "../trace.json", "/etc/passwd", "warps-0.bin", "kernel-0.json", "a\0b", "x" * 5000, "\x1b[31m")


def blocks_of(data: bytes) -> list[tuple[int, list[int]]]:
    """The blocks of a file of warps: where each begins, and the numbers of its head."""
    at, found = 0, []
    while at < len(data):
        numbers = list(HEAD.unpack_from(data, at)[1:])
        found.append((at, numbers))
        at += HEAD.size + numbers[1] + numbers[2]
    return found


def flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def added(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.randbytes(chance.choice((1, 4, 100))) + data[at:]


def bomb(data: bytes, chance: random.Random) -> bytes:
    """A block whose columns become gigabytes."""
    at, numbers = blocks_of(data)[0]
    table = data[at + HEAD.size : at + HEAD.size + numbers[1]]
    machine = zlib.compressobj(9)
    body = b"".join(machine.compress(bytes(1 << 20)) for _ in range(chance.choice((8, 256)))) + machine.flush()
    plain = chance.choice((numbers[3], 1 << 27, 2**32 - 1))
    return (
        HEAD.pack(MAGIC, numbers[0], len(table), len(body), plain, zlib.crc32(table), zlib.crc32(body)) + table + body
    )


def renumbered(data: bytes, chance: random.Random) -> bytes:
    """A block with other numbers in its table or its columns, and right checksums."""
    at, numbers = chance.choice(blocks_of(data))
    begin = at + HEAD.size
    table = bytearray(zlib.decompress(data[begin : begin + numbers[1]]))
    columns = bytearray(zlib.decompress(data[begin + numbers[1] : begin + numbers[1] + numbers[2]]))
    rest = data[begin + numbers[1] + numbers[2] :]
    for _ in range(chance.choice((1, 1, 3))):
        part = table if chance.random() < 0.3 or not columns else columns
        part[chance.randrange(len(part))] = chance.choice((0, 1, 255, 128, chance.randrange(256)))
    if chance.random() < 0.1:
        columns += bytes(4)
    packed, body = zlib.compress(bytes(table)), zlib.compress(bytes(columns))
    pieces = (
        numbers[0] if chance.random() < 0.95 else chance.choice((0, 1, len(table) // 4 // len(TABLE) + 1, 2**32 - 1))
    )
    head = HEAD.pack(MAGIC, pieces, len(packed), len(body), len(columns), zlib.crc32(packed), zlib.crc32(body))
    return data[:at] + head + packed + body + rest


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Everything in a JSON value that can be replaced: its container, and its key there."""
    found: list[tuple[Any, Any]] = []
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found.append((value, key))
        found += _places(value[key])
    return found


def edited(text: bytes, chance: random.Random) -> bytes:
    """JSON with something replaced."""
    value = json.loads(text)
    for _ in range(chance.choice((1, 1, 2))):
        container, key = chance.choice(_places(value))
        old = container[key]
        if chance.random() < 0.15:
            if isinstance(container, dict):
                del container[key]
            else:
                container.insert(key, old)
            continue
        near = [old + 1, old - 1, old ^ 1 << chance.randrange(8)] if isinstance(old, int) else []
        container[key] = chance.choice(
            [*near, *near, chance.choice(NUMBERS), chance.choice(NAMES), None, [], {}, 1.5, True]
        )
    return json.dumps(value).encode(errors="surrogateescape")


CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flipped,
    cut,
    added,
    bomb,
    renumbered,
    renumbered,
    renumbered,
)


def mutate(folder: Path, chance: random.Random) -> str:
    """Change a trace in place; returns what was done."""
    done = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        file = chance.choice(sorted(folder.iterdir()))
        if file.suffix == ".bin":
            how: Callable[[bytes, random.Random], bytes] = chance.choice(CHANGES)
        elif file.suffix == ".json":
            how = chance.choice((flipped, cut, edited, edited, edited, edited))
        else:
            how = chance.choice((flipped, cut, added))
        data = file.read_bytes()
        try:
            file.write_bytes(how(data, chance) if data else b"x")
        except Exception as error:
            done.append(f"{how.__name__} {file.name} (again: {type(error).__name__})")
            continue
        done.append(f"{how.__name__} {file.name}")
    if chance.random() < 0.03:
        file = chance.choice(sorted(folder.iterdir()))
        file.unlink()
        if chance.random() < 0.7:
            file.symlink_to("/etc/passwd")
        done.append(f"{file.name} is missing, or a link")
    if chance.random() < 0.8:
        _make_right(folder)
    return ", ".join(done)


def _make_right(folder: Path) -> None:
    """Let sizes and digests be those of the files."""
    try:
        manifest = json.loads((folder / "trace.json").read_bytes())
        for launch in manifest["launches"]:
            data = (folder / launch["warps"]).read_bytes()
            launch["bytes"], launch["digest"] = len(data), hashlib.sha256(data).hexdigest()
        (folder / "trace.json").write_text(json.dumps(manifest), encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError):
        pass


def original(folder: Path) -> None:
    """Record a good trace, of two launches, in many blocks."""
    from lockstep.models.traces import record
    from lockstep.sim.traces import write
    from lockstep.verif.sim.traces.programs import launch

    device = Gpu("gtx480")
    kept = write.MOST_PENDING, record.Recorder.__init__.__defaults__
    write.MOST_PENDING, record.Recorder.__init__.__defaults__ = 300, (100,)
    try:
        with device.recording(folder):
            launch(device, 4, 64)
            launch(device, 2, 40)
    finally:
        write.MOST_PENDING, record.Recorder.__init__.__defaults__ = kept


def _outcome(folder: Path, device: Gpu) -> str:
    """What comes of a trace: "replayed", "refused", or what must not happen."""
    try:
        replay(Trace(folder), device)
    except UsageError as error:
        return "refused" if str(error).isprintable() else f"refused in more than a line: {error!r}"
    except MemoryError:
        return "out of memory"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "replayed"


def tried(folder: Path, device: Gpu) -> str:
    """The same, found in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        size = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + MOST_MEMORY,) * 2)
        signal.alarm(MOST_SECONDS)
        with os.fdopen(writing, "w", encoding="utf-8") as told:
            told.write(_outcome(folder, device))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as told:
        text = told.read()
    _, status = os.waitpid(child, 0)
    return text if os.WIFEXITED(status) and text else f"killed by signal {os.WTERMSIG(status)}"


def recompiling() -> str:
    """A mechanism that changes a kernel's code, and takes part in replays."""
    changing = (name for name in MECHANISMS if registry.MECHANISMS[name].passes(description.load("gtx480", {}, [name])))
    return [*changing][-1]


def run(count: int, seed: int, show: Callable[[str], None] = print) -> Counter[str]:
    """Try mutants; how often each outcome came. What must not happen is shown with its seed."""
    found: Counter[str] = Counter()
    device = Gpu("gtx480", [recompiling()] if seed % 2 == 0 else [])
    with tempfile.TemporaryDirectory() as place:
        good, mutant = Path(place) / "good", Path(place) / "mutant"
        original(good)
        replay(Trace(good), Gpu("gtx480"))
        replay(Trace(good), device)
        for number in range(count):
            shutil.copytree(good, mutant)
            done = mutate(mutant, random.Random(f"{seed}.{number}"))
            outcome = tried(mutant, device)
            found[outcome if outcome in ("replayed", "refused") else "wrong"] += 1
            if outcome not in ("replayed", "refused"):
                show(f"seed {seed}, mutant {number} ({done}): {outcome}")
            shutil.rmtree(mutant)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lockstep.verif.trace_mutants", description="Damaged traces.")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    found = run(options.count, options.seed)
    print(
        f"seed {options.seed}: {options.count} mutants: " + ", ".join(f"{n} {what}" for what, n in found.most_common())
    )
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
