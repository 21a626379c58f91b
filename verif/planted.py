"""Faults of the kind that people make, each planted in a copy of one source file: of a block's RTL or of its model.

Benches and co-simulation are there to find them (``verif/<area>/test_planted.py``); no file of the project changes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import lockstep.models.gpu  # noqa: F401  (refers to models by their names too)
from lockstep.models import cache
from lockstep.rtl import registry
from lockstep.sim.study.job import Job
from lockstep.spec.files import write
from lockstep.spec.registry import MECHANISMS


@dataclass(frozen=True)
class Fault:
    """``old`` becomes ``new`` in the RTL or in the model of a block."""

    block: str
    body: Literal["rtl", "models"]
    mistake: str
    old: str
    new: str

    @property
    def path(self) -> Path:
        return cache.ROOT / self.body / f"{self.block.replace('.', '/')}.py"

    @property
    def source(self) -> str:
        """The file's text with the fault."""
        text = self.path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.path}: {text.count(self.old)} times, not once: {self.old}")
        return text.replace(self.old, self.new)

    def __str__(self) -> str:
        return f"{self.block.split('.')[1]} {self.body}: {self.mistake}"


@dataclass(frozen=True)
class InKernel(Fault):
    """A fault that a run of ``kernel`` with ``settings`` meets."""

    kernel: str
    settings: Mapping[str, int] = field(default_factory=dict, kw_only=True)

    @property
    def job(self) -> Job:
        """Its run, on one SM, with the mechanism of the block's area, else with the first that brings the block."""
        area = self.block.partition(".")[0]
        brings = (name for name, each in MECHANISMS.items() if self.block in each.all_blocks)
        mechanism = area if area in MECHANISMS else next(brings)
        return Job(self.kernel, size="tiny", mechanisms=[mechanism], settings={"core.sms": 1, **self.settings})


@dataclass(frozen=True)
class Differing(InKernel):
    """A fault that *shadow* stops at.

    A difference of ``port``, a regular expression, ends the run; ``shows`` tells whether the right and the wrong value
    are what the fault makes of them.
    """

    port: str
    shows: Callable[[int, int], bool]


@dataclass(frozen=True)
class Misleading(InKernel):
    """A fault in RTL that *replace* stops at, since the hardware says something wrong of a lane: ``message``."""

    message: str


def component(fault: Fault) -> Any:
    """The class of the block with a fault in its RTL."""
    module = ModuleType(f"lockstep.rtl.{fault.block}")
    exec(compile(fault.source, str(fault.path), "exec"), vars(module))
    return getattr(module, registry.component(fault.block).__name__)


def model(fault: Fault) -> ModuleType:
    """The block's model with a fault. Its source is in the cache: Numba keeps compiled code of what is in a file."""
    key = hashlib.sha256(f"{cache.stamp(fault.path)} {fault.source}".encode()).hexdigest()[:32]
    area, block = fault.block.split(".")
    path = cache.folder() / "planted" / key / f"{block}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, fault.source)
    name = f"lockstep.models.{area}.planted_{block}_{key}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@contextmanager
def planted(fault: Fault) -> Iterator[dict[str, Any]]:
    """While it lasts, runs and benches have the fault in their model; or they get it as the RTL that is returned."""
    if fault.body == "rtl":
        yield {fault.block: component(fault)}
        return
    name = f"lockstep.models.{fault.block}"
    area = importlib.import_module(name.rpartition(".")[0])
    for each in pkgutil.iter_modules(area.__path__, f"{area.__name__}."):
        importlib.import_module(each.name)  # what refers to the model by its name does so before it is replaced
    right, sys.modules[name] = sys.modules[name], model(fault)
    try:
        yield {}
    finally:
        sys.modules[name] = right


def more(right: int, wrong: int) -> bool:
    return wrong == right + 1


def less(right: int, wrong: int) -> bool:
    return wrong == right - 1


def appears(right: int, wrong: int) -> bool:
    return right == 0 and wrong != 0


def bits_more(right: int, wrong: int) -> bool:
    return right & ~wrong == 0 and right != wrong


def bits_less(right: int, wrong: int) -> bool:
    return wrong & ~right == 0 and right != wrong


def another(right: int, wrong: int) -> bool:
    return right != wrong
