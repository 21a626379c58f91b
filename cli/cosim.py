"""The command ``cosim``: 0 when model and RTL agree and the kernel's result is right, else 1."""

from __future__ import annotations

import sys
from argparse import Namespace

from lockstep.sim.cosim.gates import makes
from lockstep.sim.cosim.run import cosim
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, table, write_json
from lockstep.sim.study.job import Job


def command(job: Job, options: Namespace) -> int:
    with Display(options.json) as watch:
        sms, gates = _sms(options.sm), makes(options)
        result = cosim(job, options.rtl, options.mode, sms, options.folder, watch, gates, options.record)
    result["gates"] = options.liberty or "generic" if gates else ""
    if options.json != "-":
        rows = [(name, result[name], "") for name in ("cycles", "warp_instructions") if name in result]
        rows += [
            ("compared_cycles", result["compared_cycles"], "cycles of blocks whose outputs were all compared"),
            ("mismatches", result["mismatches"], ""),
            ("cycles_per_second", result["cycles_per_second"], "SM cycles with RTL, per second of simulation"),
        ]
        what = f"{'gates of ' if gates else ''}{', '.join(result['blocks'])}"
        table(f"{job.kernel}, {job.size}, on {job.gpu}: {result['mode']} of {what}",
              ("", "value", ""), rows)  # fmt: skip
        if not result["mismatches"]:
            print(f"checked: {result['message']}" if result["checked"] else "WRONG RESULT")
    if options.json:
        write_json(options.json, result)
    if result["mismatches"]:
        _complain(result)
    elif not result["checked"]:
        print(f"lockstep: {job.kernel} on {job.gpu}: wrong result: {result['message']}", file=sys.stderr)
    return 0 if result["checked"] else 1


def _complain(result: dict) -> None:
    found = result["difference"]
    print(f"lockstep: model and RTL differ: {result['message']}", file=sys.stderr)
    if result["mode"] == "shadow":
        print(f"report: {found['files']['report']}\nagain:  {found['again']}", file=sys.stderr)
    elif len(found) > 1:
        print(f"and {len(found) - 1} more things that the launches left behind", file=sys.stderr)


def _sms(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--sm {text}: must be numbers, separated by commas") from None
