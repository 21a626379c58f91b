"""`lockstep ptx`: what the compiler finds in kernels."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lockstep.cli import options as shared
from lockstep.sim.compile import listing
from lockstep.sim.device import description
from lockstep.sim.output import Display, check_writable


def arguments(to: ArgumentParser) -> None:
    to.add_argument("file", metavar="FILE|KERNEL", help="a .ptx or .cu file, or one of `lockstep kernels`")
    to.add_argument("--show", choices=("regions", "memory-regions", "hints", "registers"), default="regions",
                    help="regions for operand staging, with live registers and the metadata of operands; or memory "
                    "regions, by lines of the PTX; or the PTX itself, with the hints of region-p scheduling; or the "
                    "first use of each register, as allocated and renumbered by it (default: regions)")  # fmt: skip
    shared.gpu(to, "GPU to compile for (default: gtx480)")
    shared.parameters(to, "a parameter: core.region_warps=20")
    shared.cuda(to)
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    gpu = description.load(options.gpu, shared.settings(options))
    with Display(options.json) as watch:
        watch.phase(f"loading {options.file}")
        path, registers = shared.source(options)
        found = listing.listing(path, gpu, registers)
    if options.json != "-":
        found.show(options.show)
    return shared.finish(options, found.json(), [])
