"""`lockstep cosim`: one kernel with the RTL of blocks in it. 0: model and RTL agree, the result is right; else 1."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from lockstep.cli import options as shared
from lockstep.cli.run import outcome
from lockstep.rtl import registry
from lockstep.sim.cosim.gates import Gates
from lockstep.sim.cosim.liberty import read
from lockstep.sim.cosim.run import cosim
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, check_writable, table, write_json
from lockstep.sim.study.job import complaint


def arguments(to: ArgumentParser) -> None:
    shared.one_kernel_or_trace(to)
    shared.json(to)
    shared.secondary(to)
    shared.threads(to)
    to.add_argument("--rtl", metavar="BLOCK[,BLOCK]|AREA|all", default="all", action=shared.Joined,
                       help="what runs as RTL (default: all)")  # fmt: skip
    to.add_argument("--mode", choices=("shadow", "replace"), default="shadow", help="shadow: the model drives the "
                       "run, and every output is compared; replace: the RTL drives it, and results are "
                       "(default: shadow)")  # fmt: skip
    to.add_argument("--sm", metavar="N[,N]", help="only on these SMs")
    to.add_argument("-o", dest="folder", metavar="DIR", default="cosim", help="folder for the report of a "
                       "difference (default: cosim)")  # fmt: skip
    to.add_argument("--record", metavar="DIR", help="keep replay files of the blocks that run as RTL (shadow only)")
    to.add_argument("--gates", action="store_true", help="run the gates that the RTL is mapped to")
    to.add_argument("--liberty", metavar="FILE", default="", help="map to cells of this library")


def command(options: Namespace) -> int:
    check_writable(options.json)
    job = shared.two_jobs(options)
    with Display(options.json) as watch:
        sms, gates = _sms(options.sm), _gates(options)
        result = cosim(job, options.rtl, options.mode, sms, options.folder, watch, gates, options.record)
    shared.why_one_thread(options, [result])
    result["gates"] = options.liberty or "generic" if gates else ""
    if options.json != "-":
        rows: list[tuple[str, Any, str]] = [
            *((name, result[name], "") for name in ("cycles", "warp_instructions") if name in result),
            ("compared_cycles", result["compared_cycles"], "cycles of blocks whose outputs were all compared"),
            ("mismatches", result["mismatches"], ""),
            ("cycles_per_second", result["cycles_per_second"], "SM cycles with RTL, per second of simulation"),
        ]
        what = f"{'gates of ' if gates else ''}{', '.join(result['blocks'])}"
        kernels = " and ".join(each.kernel for each in (job, job.secondary) if each)
        table(f"{kernels}, {'trace' if job.trace else job.size}, on {job.gpu}: {result['mode']} of {what}",
              ("", "value", ""), rows)  # fmt: skip
        if not result["mismatches"]:
            print(outcome(result))
    if options.json:
        write_json(options.json, result)
    if result["mismatches"]:
        _complain(result)
    elif wrong := complaint(result):
        print(f"lockstep: {job.kernel} on {job.gpu}: {wrong}", file=sys.stderr)
    return 1 if result["mismatches"] or complaint(result) else 0


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


def _gates(options: Namespace) -> dict[str, Gates]:
    """For every block what the options ask for; empty for the RTL itself."""
    if not options.gates and not options.liberty:
        return {}
    if options.liberty:
        read(options.liberty)  # complains before anything else runs
    return {block: Gates(block, options.liberty) for block in registry.blocks()}
