"""`lockstep new-block`: a block in an area that there is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lockstep.cli import scaffold
from lockstep.rtl import registry
from lockstep.sim.errors import UsageError
from lockstep.spec.registry import MECHANISMS


def arguments(to: ArgumentParser) -> None:
    to.add_argument("name", metavar="AREA.BLOCK", help="an area of `lockstep blocks`, or a mechanism; and a new name")


def command(options: Namespace) -> int:
    area, _, block = options.name.partition(".")
    areas = {name.partition(".")[0] for name in registry.blocks()} | {each.area for each in MECHANISMS.values()}
    if area not in areas:
        raise UsageError(f"{options.name!r}: must be AREA.BLOCK; areas are {', '.join(sorted(areas))}")
    there = {path.stem for tree in scaffold.TREES for path in (scaffold.ROOT / tree / area).glob("*.py")}
    scaffold.require_free(scaffold.checked(block), there)
    files = scaffold.renamed((path for path in scaffold.example() if scaffold.BLOCK in path.stem), area, block)
    packages = {path.with_name("__init__.py") for path in files}
    files |= {path: "" for path in sorted(packages) if not path.exists()}
    scaffold.write_all(files)
    scaffold.tell(
        files,
        f"lockstep verify {options.name} --level smoke",
        "docs/add-a-block.md says what to change, and how a mechanism declares and calls a block",
    )
    return 0
