"""``python -m lockstep.sim.study.reproduce.chapters.compiler``: record what ptxas makes of the kernels."""

from __future__ import annotations

import argparse
import sys

from lockstep.sim import kernels
from lockstep.sim.errors import UsageError
from lockstep.sim.study.reproduce.chapters.compiler import recording


def main() -> int:
    parser = argparse.ArgumentParser(prog=recording.COMMAND, description=__doc__)
    parser.add_argument("kernel", nargs="*", help="default: all")
    try:
        chosen = [kernels.find(name).name for name in parser.parse_args().kernel] or kernels.names()
        recording.write([row for name in chosen for row in recording.record(name)])
    except UsageError as problem:
        print(problem, file=sys.stderr)
        return 2
    print(f"{recording.DATA}: ptxas {', '.join(recording.versions())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
