"""`lockstep kernels`: the kernels."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lockstep.cli import options as shared
from lockstep.sim import kernels
from lockstep.sim.output import check_writable, table


def arguments(to: ArgumentParser) -> None:
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    found = [kernels.find(name) for name in kernels.names()]
    if options.json != "-":
        table("kernels", ("name", "suite", "what it does"), [(k.name, k.suite, k.title) for k in found])
    rows = [{"name": k.name, "title": k.title, "suite": k.suite, "ptx": str(k.ptx)} for k in found]
    return shared.finish(options, rows, [])
