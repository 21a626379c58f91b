"""Faults of the kind that people make, each planted in a copy of one source file: of a block's RTL or of its model.

Benches and co-simulation are there to find them (``verif/warppool/test_planted.py``); no file of the project changes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import lockstep.models.gpu  # noqa: F401  (what refers to the models by their names has done so before one is replaced)
from lockstep.models import cache
from lockstep.rtl import registry
from lockstep.spec.files import write


@dataclass(frozen=True)
class Fault:
    """``old`` becomes ``new`` in the RTL or in the model of a block.

    A run of ``kernel`` with ``settings`` meets the fault and is stopped by a difference of ``port``, a regular
    expression; ``shows`` tells whether the right and the wrong value are what the fault makes of them.
    """

    block: str
    body: Literal["rtl", "models"]
    mistake: str
    old: str
    new: str
    kernel: str
    port: str
    shows: Callable[[int, int], bool]
    settings: Mapping[str, int] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return cache.ROOT / self.body / f"{self.block.replace('.', '/')}.py"

    @property
    def source(self) -> str:
        """The file's text with the fault."""
        text = self.path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.path}: {text.count(self.old)} times, not once: {self.old}")
        return text.replace(self.old, self.new)

    def __str__(self) -> str:
        return f"{self.block.split('.')[1]} {self.body}: {self.mistake}"


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
    right, sys.modules[name] = sys.modules[name], model(fault)
    try:
        yield {}
    finally:
        sys.modules[name] = right


def _more(right: int, wrong: int) -> bool:
    return wrong == right + 1


def _less(right: int, wrong: int) -> bool:
    return wrong == right - 1


def _appears(right: int, wrong: int) -> bool:
    return right == 0 and wrong != 0


def _bits_more(right: int, wrong: int) -> bool:
    return right & ~wrong == 0 and right != wrong


def _bits_less(right: int, wrong: int) -> bool:
    return wrong & ~right == 0 and right != wrong


def _another(right: int, wrong: int) -> bool:
    return right != wrong


FAULTS = [
    Fault(
        "warppool.instruction_queues", "rtl", "a queue's head wraps one place early",
        "head.data == depth - 1", "head.data == depth - 2",
        "spmv", r"o\.instruction\[\d\]\.payload\.\w+", _another, {"warppool.instructions": 4},
    ),
    Fault(
        "warppool.instruction_queues", "models", "two coalescers get an instruction in one cycle",
        "            elif queued:\n", "            elif state.waiting != 0:\n",
        "spmv", r"o\.free\[\d+\]", _more, {"warppool.instructions": 4},
    ),
    Fault(
        "lsu.intra_warp_coalescer", "rtl", "line numbers are compared without their lowest bit",
        "((entry.address[lane] ^ base) & ~in_line) == 0", "((entry.address[lane] ^ base) & ~(in_line << 1)) == 0",
        "spmv", r"o\.line\.payload\.mask", _bits_more,
    ),
    Fault(
        "lsu.intra_warp_coalescer", "models", "the map entry that the line before takes counts as free",
        "i64(io.i.map_free) <= i64(leaving)", "i64(io.i.map_free) == 0",
        "spmv", r"o\.line\.payload\.number", _another, {"warppool.maps": 2},
    ),
    Fault(
        "warppool.thread_map_table", "rtl", "a result without a map releases the entry of its word",
        "self.result.ready & (result.mapping == Mapping.RANDOM) & ~result.atomic",
        "self.result.ready & ~result.atomic",
        "spmv", r"o\.free\[\d\]", _more,
    ),
    Fault(
        "warppool.thread_map_table", "models", "entries that are no longer in use can be read",
        "if state.used >> index & 1:", "if state.used != 0:",
        "spmv", r"c\.map\.mask", _appears,
    ),
    Fault(
        "warppool.inter_warp_queues", "rtl", "what is merged into a tag that leaves is lost",
        "request.count.eq(count + late.any())", "request.count.eq(count)",
        "spmv", r"o\.request\.payload\.count", _less,
    ),
    Fault(
        "warppool.inter_warp_queues", "models", "a full tag has room for another slot",
        "state.count[tag] < state.merges", "state.count[tag] <= state.merges",
        "atax", r"o\.insert\[\d\]\.valid", _appears,
    ),
    Fault(
        "warppool.request_selector", "rtl", "warps are compared without their lowest bit",
        "(line.warp < warp)", "(line.warp[1:] < warp[1:])",
        "atax", r"o\.pop\.payload\.tag", _another, {"warppool.quantum": 16},
    ),
    Fault(
        "warppool.request_selector", "models", "hits are not cleared at the end of a quantum",
        "        state.accesses = 0\n        state.hits = 0\n    io", "        state.accesses = 0\n    io",
        "syrk", r"o\.policy", _another, {"warppool.quantum": 16},
    ),
    Fault(
        "warppool.mshr_metadata", "rtl", "the tail of the queue of free entries wraps one place early",
        "tail == last,", "tail == last - 1,",
        "spmv", r"o\.id", _another, {"l1.mshrs": 8, "l1.merges": 2},
    ),
    Fault(
        "warppool.mshr_metadata", "models", "an entry is not counted when another is released",
        "i64(io.o.free) + i64(answered) - i64(allocated)", "i64(io.o.free) + (i64(1) if answered else i64(-1))",
        "spmv", r"o\.free", _more, {"l1.mshrs": 8, "l1.merges": 2},
    ),
    Fault(
        "warppool.writeback", "rtl", "the last slot of an answer in the buffer is forgotten",
        "buffered.eq(rest.count != 0)", "buffered.eq(rest.count > 1)",
        "spmv", r"o\.result\.payload\.\w+", _another,
    ),
    Fault(
        "warppool.writeback", "models", "a slot that leaves as it arrives is kept in the buffer",
        "state.next = i64(vacant)", "state.next = i64(0)",
        "spmv", r"o\.result\.valid", _appears,
    ),
    Fault(
        "warppool.load_store_order", "rtl", "a request that merges several loads counts for the first of them",
        "slot < payload.count", "int(slot == 0)",
        "spmv", r"o\.drained", _bits_less,
    ),
    Fault(
        "warppool.load_store_order", "models", "a store does not clear that its warp's last instruction was a load",
        "state.loads & ~enter | i64(io.i.enter_load)", "state.loads | i64(io.i.enter_load)",
        "spmv", r"o\.load_ready", _bits_more,
    ),
    Fault(
        "warppool.warp_pool", "rtl", "every coalescer is told the first one's map entry",
        "merging.map_entry[k].eq(table.entry[k])", "merging.map_entry[k].eq(table.entry[0])",
        "spmv", r"o\.access\.payload\.slots\[\d\]\.word", _another,
    ),
    Fault(
        "warppool.warp_pool", "models", "the words of a result remain when the next one has none",
        "            result.words[lane] = 0\n", "            pass\n",
        "spmv", r"o\.result\.payload\.words\[\d+\]", _appears,
    ),
]  # fmt: skip
