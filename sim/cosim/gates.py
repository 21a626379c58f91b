"""Gates in the place of the RTL: what synthesis maps a block to runs in lockstep with its model, without delays."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from typing import Any

from lockstep.sim.cosim.liberty import read
from lockstep.sim.errors import UsageError


@dataclass(frozen=True)
class Gates:
    """Makes a block of the cells in the file ``liberty``, or of Yosys' own gates where that is empty."""

    block: str
    liberty: str = ""

    def __call__(self, **parameters: int) -> Any:
        from lockstep.rtl import registry, yosys
        from lockstep.synth.mapped import Mapped

        library = read(self.liberty) if self.liberty else None
        try:
            return Mapped(registry.component(self.block)(**parameters), self.block.partition(".")[2], library)
        except yosys.YosysError as error:
            raise UsageError(f"gates of {self.block}{f' with {self.liberty}' if library else ''}: {error}") from None

    @property
    def options(self) -> str:
        """What asks for them."""
        return f"--liberty {self.liberty}" if self.liberty else "--gates"


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--gates", action="store_true", help="run the gates that the RTL is mapped to")
    parser.add_argument("--liberty", metavar="FILE", default="", help="map to cells of this library")


def makes(options: Namespace) -> dict[str, Gates]:
    """For every block what the options ask for; empty for the RTL itself."""
    from lockstep.rtl import registry

    if not options.gates and not options.liberty:
        return {}
    if options.liberty:
        read(options.liberty)  # complains before anything else runs
    return {block: Gates(block, options.liberty) for block in registry.blocks()}
