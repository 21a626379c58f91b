"""Completion in shells, asked for as argcomplete's scripts ask."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ASK = "import os, sys; os.dup2(1, 8); from lockstep.cli.main import main; main()"


def completions(line: str) -> set[str]:
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    result = subprocess.run([sys.executable, "-c", ASK], env=os.environ | asked, capture_output=True, encoding="utf-8")
    assert result.returncode == 0, result.stderr
    return {word.strip() for word in result.stdout.split("\n") if word}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("lockstep comp", {"compare", "completion"}),
        ("lockstep sweep st", {"status"}),
        ("lockstep compare sgemm --show l1.mp", {"l1.mpki"}),
        ("lockstep run sgem", {"sgemm"}),
        ("lockstep run sgemm --gpu gtx5", {"gtx580"}),
        ("lockstep run sgemm --with dyncta,warp", {"dyncta,warppool"}),
        ("lockstep run sgemm --set l1.ms", {"l1.mshrs="}),
        ("lockstep cosim sgemm --rtl warppool.wr", {"warppool.writeback"}),
    ],
)
def test_completes(line: str, words: set[str]) -> None:
    assert completions(line) == words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    from lockstep.cli.main import main

    assert main(["completion", shell]) == 0
    assert "lockstep" in capsys.readouterr().out
