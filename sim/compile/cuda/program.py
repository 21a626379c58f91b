"""A CUDA text that a module was loaded from, with the instances of its kernel templates that were asked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lockstep.sim.compile.cuda import nvrtc
from lockstep.sim.compile.cuda.options import Options
from lockstep.sim.compile.ptx import names
from lockstep.sim.errors import UsageError


class Cuda:
    """Exactly one of ``text`` and ``path`` is given."""

    def __init__(self, text: str | None, path: Path | None, options: Options) -> None:
        self.text, self._path, self._options = text or "", path, options
        self.name = str(path or "<text>")
        self.kernels: frozenset[str] = frozenset()  # as the text calls them, templates included
        self._lowered: dict[str, str] = {}
        self._asked: list[str] = []

    def compile(self, instance: str | None = None) -> Path:
        """The PTX, with one instance of a template more. Raises :class:`UsageError`."""
        asked = self._asked + ([instance] if instance else [])
        try:
            if self._path is None:
                found = nvrtc.compile_text(self.text, options=self._options, names=asked)
            else:
                found = nvrtc.compile_file(self._path, self._options, asked)
        except UsageError as error:
            raise UsageError(f"{instance}: {error}" if instance else str(error)) from None
        self._asked, self.kernels = asked, found.kernels
        self._lowered = {names.normal(name): lowered for name, lowered in found.names.items()}
        return found.path

    def has_template(self, name: str) -> bool:
        """Whether a name is that of an instance of a kernel."""
        return "<" in name and names.base(name) in self.kernels

    def knows(self, name: str) -> bool:
        return names.normal(name) in self._lowered

    def lowered(self, name: str) -> str:
        """The PTX's name of an instance that was compiled."""
        return self._lowered[names.normal(name)]

    def templates(self, compiled: Iterable[str]) -> list[str]:
        """The kernels of which no instance was compiled."""
        return sorted(self.kernels - {names.base(names.readable(name)) for name in compiled})
