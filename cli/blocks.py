"""`lockstep blocks`: the blocks that exist as hardware, their ports, parameters and checks."""

from __future__ import annotations

import importlib
import inspect
from argparse import ArgumentParser, Namespace
from collections import Counter
from typing import Any

from lockstep.cli import options as shared
from lockstep.rtl import configuration, registry
from lockstep.rtl.export import Documentation
from lockstep.rtl.flat import flat_ports
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.output import check_writable, say, table
from lockstep.spec.parameters import Gpu
from lockstep.spec.words import closest

KINDS = {"prove": "proof", "bmc": "bounded check", "cover": "cover"}
"""What the modes of SymbiYosys are called; only the first has no bound."""


def arguments(to: ArgumentParser) -> None:
    to.add_argument("block", metavar="BLOCK|AREA|all", nargs="?", default="all")
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    rows = [_describe(block) for block in chosen(options.block)]
    if options.json != "-":
        columns = ("block", "purpose", "proofs")
        table("blocks; parameters and ports of one by its name, or all with --json", columns, [
            (row["block"], row["purpose"], _modes(row)["prove"]) for row in rows
        ])  # fmt: skip
        if len(rows) == 1:
            [row] = rows
            if row["latency"]:
                say(row["latency"])
            say(f"Checks: {', '.join(_checks(row))}.")
            table("parameters", ("name", "default", "largest"), [
                (key, value, row["largest"][key]) for key, value in row["parameters"].items()
            ])  # fmt: skip
            for proof, item in row["proofs"].items():
                say(f"{KINDS[item['mode']]} {proof}: {item['shown']}: {item['doc']}", others="  ")
            table("ports, beside clk and rst", ("port", "direction", "elements", "bits of each"), [
                (port["name"], port["direction"], port["count"], port["width"]) for port in row["ports"]
            ])  # fmt: skip
    shared.write(options, rows)
    return 0


def chosen(name: str) -> list[str]:
    """The blocks that a name stands for (:func:`lockstep.rtl.registry.select`)."""
    every = registry.blocks()
    found = registry.select(name, every)
    if not found:
        suggestion = closest(name, registry.selectable(every))
        raise UsageError(f"block {name!r}: not known{suggestion}; see `lockstep blocks`")
    return found


def build(block: str, gpu: Gpu) -> Any:
    try:
        return configuration.build(block, gpu)
    except ValueError as error:
        raise UsageError(f"{block} on {gpu.name}: {error}") from None


def _checks(row: dict[str, Any]) -> list[str]:
    return [*(kind for kind in row["verification"] if kind != "formal"), *_properties(row)]


def _properties(row: dict[str, Any]) -> list[str]:
    """How many properties of each kind are checked."""
    counts = _modes(row)
    return [f"{counts[mode]} {kind}{'s' * (counts[mode] > 1)}" for mode, kind in KINDS.items() if counts[mode]]


def _modes(row: dict[str, Any]) -> Counter[str]:
    return Counter(item["mode"] for item in row["proofs"].values())


def _describe(block: str) -> dict[str, Any]:
    area, _, name = block.partition(".")
    cls = registry.component(block)
    documentation = Documentation.of(cls)
    defaults = {name: argument.default for name, argument in inspect.signature(cls).parameters.items()}
    if defaults.keys() != cls.LARGEST.keys():
        defaults = configuration.parameters(block, description.load(description.DEFAULT))
    ports = [
        {"name": port.name, "direction": _direction(port.path), "count": port.count, "width": port.width}
        for port in flat_ports(registry.largest(block))
    ]
    folder = registry.FOLDER.parent / "verif" / area
    files = {kind: folder / f"{kind}_{name}.py" for kind in ("test", "bench", "formal")}
    return {
        "block": block,
        "area": area,
        "purpose": documentation.purpose,
        "latency": documentation.latency,
        "parameters": defaults,
        "largest": cls.LARGEST,
        "ports": ports,
        "combinational": getattr(cls, "combinational", {}),
        "verification": {kind: str(file) for kind, file in files.items() if file.exists()},
        "proofs": _proofs(area, name) if files["formal"].exists() else {},
    }


def _direction(path: tuple[str | int, ...]) -> str:
    return {"i": "in", "o": "out", "c": "out, combinational"}[str(path[0])]


def _proofs(area: str, name: str) -> dict[str, dict[str, str]]:
    """What is proved, by name: in which mode, how far, and what holds."""
    module = importlib.import_module(f"lockstep.verif.{area}.formal_{name}")
    return {
        proof: {"mode": item.mode, "shown": item.shown, "doc": " ".join(item.doc.split())}
        for proof, item in module.PROOFS.items()
    }
