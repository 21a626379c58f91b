"""``python -m lockstep.verif.silicon``: record what a GPU gives, and compare the model with it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lockstep.sim.errors import UsageError
from lockstep.verif.silicon import kernels, recording
from lockstep.verif.silicon.gpu import Silicon

GPU = "gtx980"  # of the model; results do not depend on it


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lockstep.verif.silicon", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record", help="run instructions and kernels on this machine's GPU")
    recorder.add_argument("file", type=Path)
    recorder.add_argument("--count", type=int, default=8192, help="operand sets for each instruction")
    recorder.add_argument("--seed", type=int, default=1, help="of the operands")
    recorder.add_argument("--every", type=int, default=128, help="keep the results of every so many operand sets")
    recorder.add_argument("--size", default="tiny", help="of the kernels")
    comparer = commands.add_parser("compare", help="run them on the model, and list what differs")
    comparer.add_argument("file", type=Path)
    options = parser.parse_args()
    try:
        if options.command == "record":
            found = recording.record(Silicon(), options.count, options.seed, options.every, options.size)
            found.save(options.file)
            print(f"{found.gpu}: {len(found.kept)} instructions, {len(kernels.names(options.size))} kernels")
            return 0
        return _compare(recording.Recording.load(options.file))
    except UsageError as problem:
        print(problem, file=sys.stderr)
        return 2


def _compare(recorded: recording.Recording) -> int:
    from lockstep.sim import Gpu  # late, since it compiles the model

    total = 0
    for line in recording.differences(recorded, Gpu(GPU)):
        print(line)
        total += 1
    for name in kernels.names(recorded.size):
        if line := recording.kernel_difference(recorded, Gpu(GPU), name):
            print(line)
            total += 1
    print(f"{recorded.gpu}: {total} differences")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
