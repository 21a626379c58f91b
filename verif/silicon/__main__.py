"""``python -m lockstep.verif.silicon``: record what a GPU gives, and compare the model with it."""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

from lockstep.sim.errors import UsageError
from lockstep.spec import files
from lockstep.verif.silicon import kernels, power, recording
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
    meter = commands.add_parser("power", help="record the watts of kernels on this machine's GPU, as CSV")
    meter.add_argument("file", type=Path)
    meter.add_argument("--size", default="full", help="of the kernels")
    meter.add_argument("--kernel", action="append", default=[], help="one of them (default: all)")
    meter.add_argument("--seconds", type=float, default=2.0, help="for which each is measured")
    meter.add_argument("--minutes", type=float, default=math.inf, help="after which no other kernel begins")
    options = parser.parse_args()
    try:
        if options.command == "record":
            found = recording.record(Silicon(), options.count, options.seed, options.every, options.size)
            found.save(options.file)
            print(f"{found.gpu}: {len(found.kept)} instructions, {len(kernels.names(options.size))} kernels")
            return 0
        if options.command == "power":
            return _power(options)
        return _compare(recording.Recording.load(options.file))
    except UsageError as problem:
        print(problem, file=sys.stderr)
        return 2


def _power(options: argparse.Namespace) -> int:
    names = options.kernel or kernels.names(options.size)
    until = time.monotonic() + 60 * options.minutes
    rows: list[power.Row] = []
    for found in power.record(power.Meter(Silicon().driver), names, options.size, options.seconds):
        if isinstance(found, str):
            print(found, file=sys.stderr, flush=True)
        else:
            rows.append(found)
            files.write(options.file, power.text(rows))  # what is there so far
            small = "; too small for this GPU" if found.too_small else ""
            print(f"{found.kernel} {found.size}: {found.watts:.1f} W{small}", flush=True)
        if time.monotonic() > until:
            print("no time for the other kernels", file=sys.stderr)
            break
    print(f"{len(rows)} kernels")
    return 0


def _compare(recorded: recording.Recording) -> int:
    from lockstep.sim import Gpu  # late, since it compiles the model

    total = 0
    for line in recording.differences(recorded, Gpu(GPU)):
        print(line)
        total += 1
    for name in recorded.kernels:
        if line := recording.kernel_difference(recorded, Gpu(GPU), name):
            print(line)
            total += 1
    print(f"{recorded.gpu}: {total} differences")
    if missing := [name for name in kernels.names(recorded.size) if name not in recorded.kernels]:
        print(f"not recorded: {', '.join(missing)}")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
