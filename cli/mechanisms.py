"""`lockstep mechanisms`: the mechanisms."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lockstep.cli import options as shared
from lockstep.sim.output import check_writable, table
from lockstep.spec import registry
from lockstep.spec.mechanism import FRAME_SLOTS


def arguments(to: ArgumentParser) -> None:
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    found = [(m, "; ".join(FRAME_SLOTS[slot] for slot in m.tenants)) for m in registry.MECHANISMS.values()]
    if options.json != "-":
        table("mechanisms", ("name", "frame slots, or what it needs", "what it does"), [
            (m.name, ", ".join(m.tenants or m.requires), m.doc) for m, _ in found
        ])  # fmt: skip
    rows = [
        {"name": m.name, "slot": slots, "slots": list(m.tenants), "doc": m.doc, "blocks": list(m.blocks)}
        for m, slots in found
    ]
    return shared.finish(options, rows, [])
