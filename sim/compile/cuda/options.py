"""How a CUDA file is compiled."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lockstep.sim.errors import UsageError, path_text

STANDARDS = ("c++11", "c++14", "c++17", "c++20")
DEFAULT_STANDARD, DEFAULT_ARCHITECTURE = "c++17", "sm_75"


@dataclass(frozen=True)
class Options:
    """``include``: folders of headers; ``define``: macros as NAME or NAME=VALUE; ``std``: one of :data:`STANDARDS`;
    ``arch``: "sm_75" or "compute_75", which decides the PTX alone, not the GPU that is modelled; ``fast_math``: as
    nvcc's ``--use_fast_math``. Raises :class:`UsageError`."""

    include: Sequence[str | os.PathLike[str]] = ()
    define: Sequence[str] = ()
    std: str = DEFAULT_STANDARD
    arch: str = DEFAULT_ARCHITECTURE
    fast_math: bool = False

    def __post_init__(self) -> None:
        for name in ("include", "define"):
            value = getattr(self, name)
            if isinstance(value, str | bytes) or not isinstance(value, Sequence):
                raise UsageError(f"{name} = {value!r}: must be a list")
        for folder in self.include:
            if not Path(path_text("include", folder)).is_dir():
                raise UsageError(f"include: {os.fspath(folder)}: no such folder")
        for definition in self.define:
            if not isinstance(definition, str) or not re.match(r"[A-Za-z_]\w*(=|$)", definition):
                raise UsageError(f"define: {definition!r}: must be NAME or NAME=VALUE")
        if not isinstance(self.std, str) or self.std not in STANDARDS:
            raise UsageError(f"std = {self.std!r}: must be one of {', '.join(STANDARDS)}")
        if not isinstance(self.arch, str) or not re.fullmatch(r"(sm|compute)_\d+[af]?", self.arch):
            raise UsageError(f"arch = {self.arch!r}: must be like sm_75 or compute_75")

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(Path(folder).resolve() for folder in self.include)

    def arguments(self) -> list[str]:
        """NVRTC's arguments."""
        return [
            f"--gpu-architecture=compute_{self.arch.partition('_')[2]}",
            f"--std={self.std}",
            "--generate-line-info",
            *(f"--define-macro={definition}" for definition in self.define),
            *(["--use_fast_math"] if self.fast_math else []),
        ]
