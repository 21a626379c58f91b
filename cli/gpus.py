"""`lockstep gpus`: the GPU descriptions, or each value of one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from lockstep.cli import options as shared
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.output import check_writable, say, table
from lockstep.sim.study import comparison


def arguments(to: ArgumentParser) -> None:
    to.add_argument("gpu", metavar="NAME|FILE.toml", nargs="?", help="the one to explain")
    shared.mechanisms(to)
    shared.parameters(to, "a parameter: l1.mshrs=64")
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    if options.gpu:
        return _explain(options)
    if options.mechanisms or options.set:
        raise UsageError("--with and --set need the name of the GPU that they change: lockstep gpus NAME")
    found = [description.load(name) for name in description.names()]
    if options.json != "-":
        columns = ("name", "SMs", "warps", "schedulers", "L1 KB", "L2 KB", "DRAM GB/s", "source")
        table("GPU descriptions; clocks in MHz and all other parameters with --json", columns, [
            (g.name, g.core.sms, g.core.warps, f"{g.core.schedulers} {g.core.scheduler}",
             g.l1.sets * g.l1.ways * g.l1.line_bytes // 1024,
             g.l2.slices * g.l2.sets * g.l2.ways * g.l1.line_bytes // 1024,
             g.dram.channels * g.dram.bus_bytes * 2 * g.clocks.dram // 1000, g.source)
            for g in found
        ])  # fmt: skip
    return shared.finish(options, [description.values(gpu) for gpu in found], [])


def _explain(options: Namespace) -> int:
    explained = description.explain(options.gpu, shared.settings(options), comparison.mechanisms(options.mechanisms))
    if options.json != "-":
        section = ""
        for each in explained:
            name, _, key = each.key.partition(".")
            if name != section:
                section = name
                print(f"[{section}]")
            value = f"{key} = {each.value} {each.unit}".rstrip()
            say(f"{value}: {each.meaning} ({each.allowed})", others="    ")
            say(each.source or "no source", "    ", "    ")
    return shared.finish(options, [asdict(each) for each in explained], [])
