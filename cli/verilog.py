"""`lockstep verilog`: blocks as Verilog, with all that a flow of one's own needs beside it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from lockstep.cli import options as shared
from lockstep.cli.blocks import build, chosen
from lockstep.rtl import configuration, contract, export, integration
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, check_writable
from lockstep.spec.files import write
from lockstep.spec.parameters import Gpu
from lockstep.verif.blocks import protocol
from lockstep.verif.table import CYCLES, table


def arguments(to: ArgumentParser) -> None:
    shared.blocks_of_a_gpu(to)
    to.add_argument("-o", "--output", metavar="DIR", required=True, help="folder for the files, made if needed")
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    names = chosen(options.block)
    gpu = description.load(options.gpu, shared.settings(options))
    folder = Path(options.output)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"-o {folder}: is not a folder")
    files: dict[str, str] = {}
    with Display() as watch:
        for block in names:
            watch.phase(f"Verilog of {block}")
            parameters = configuration.parameters(block, gpu)
            try:
                text = export.verilog(build(block, gpu), block, parameters)
            except export.ExportError as error:
                raise UsageError(str(error)) from None
            files |= {f"{block.partition('.')[2]}{end}": text for end, text in _beside(block, gpu, text).items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write(folder / name, text)
    except OSError as error:
        raise UsageError(f"-o {folder}: {error.strerror}") from None
    if options.json != "-":
        print(
            f"{len(names)} block{'s' if len(names) > 1 else ''} of {gpu.name} written to {folder}: {len(files)} files"
        )
    shared.write(options, {"gpu": gpu.name, "blocks": names, "files": [str(folder / name) for name in files]})
    return 0


def _beside(block: str, gpu: Gpu, verilog: str) -> dict[str, str]:
    """The files of a block, by what follows its name."""
    parameters = configuration.parameters(block, gpu)

    def made() -> Any:
        component = build(block, gpu)
        component._MustUse__used = True  # made for its ports alone
        return component

    return {
        ".v": verilog,
        "_contract.sv": contract.systemverilog(made(), block, parameters, protocol(block)),
        "_alone.sv": contract.alone(made(), block),
        "_bench.sv": integration.bench(made(), block, CYCLES),
        "_bench.hex": table(block, parameters),
        "_instance.v": integration.instance(made(), block),
        ".sdc": integration.constraints(made(), block, 1000 / gpu.clocks.core),
        ".sby.j2": integration.bounded(block),
        ".md": integration.report(made(), block),
        ".core": integration.core(made(), block),
    }
