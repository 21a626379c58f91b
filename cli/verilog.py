"""`lockstep verilog`: blocks as Verilog, the contracts of their ports, and a FuseSoC core file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from lockstep.cli import options as shared
from lockstep.cli.blocks import build, chosen
from lockstep.rtl import configuration, contract, export
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, check_writable
from lockstep.spec.files import write
from lockstep.verif.blocks import protocol


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
    files = {}
    with Display() as watch:
        for block in names:
            watch.phase(f"Verilog of {block}")
            parameters = configuration.parameters(block, gpu)
            try:
                text = export.verilog(build(block, gpu), block, parameters)
            except export.ExportError as error:
                raise UsageError(str(error)) from None
            name = block.partition(".")[2]
            files[f"{name}.v"] = text
            files[f"{name}_contract.sv"] = contract.systemverilog(build(block, gpu), block, parameters, protocol(block))
    title = f"lockstep_{options.block.replace('.', '_')}.core"
    files[title] = export.core(names, options.block.rpartition(".")[2])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write(folder / name, text)
    except OSError as error:
        raise UsageError(f"-o {folder}: {error.strerror}") from None
    if options.json != "-":
        print(f"{len(names)} block{'s' if len(names) > 1 else ''} of {gpu.name} and {title} written to {folder}")
    shared.write(options, {"gpu": gpu.name, "blocks": names, "files": [str(folder / name) for name in files]})
    return 0
