"""Gates in the place of the RTL: what synthesis maps a block to runs in lockstep with its model, without delays."""

from __future__ import annotations

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
        """The option that asks for them."""
        return f"--liberty {self.liberty}" if self.liberty else "--gates"
