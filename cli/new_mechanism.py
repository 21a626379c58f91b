"""`lockstep new-mechanism`: a mechanism with a block, in every tree and in the registry."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lockstep.cli import scaffold
from lockstep.sim.device.description import PARAMETERS


def arguments(to: ArgumentParser) -> None:
    to.add_argument("name", metavar="NAME", help="as --with takes it: pair-gate")


def command(options: Namespace) -> int:
    area = scaffold.checked(options.name.replace("-", "_"))
    there = {path.stem for tree in scaffold.TREES for path in (scaffold.ROOT / tree).iterdir()}
    scaffold.require_free(area, there | {key.partition(".")[0] for key in PARAMETERS})
    block = f"{area}_block"
    scaffold.require_free(block, ())
    registry = scaffold.ROOT / "spec" / "registry.py"
    files = scaffold.renamed(scaffold.example(), area, block)
    files[registry] = scaffold.registered(registry.read_text(encoding="utf-8"), area)
    scaffold.write_all(files)
    scaffold.tell(
        files,
        f"lockstep verify {area} --level smoke",
        f"lockstep cosim saxpy --size tiny --with {area.replace('_', '-')} --rtl {area}",
        "python -m lockstep.sim.device.statistics > docs/statistics.md",
        "docs/add-a-mechanism.md says what to change, and what a mechanism may read",
    )
    return 0
