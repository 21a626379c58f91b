"""NVIDIA's assembler, ``ptxas``, and its disassembler, ``nvdisasm``: what they make of the kernels of a PTX text.

Both come from PyPI, and need neither a GPU nor a CUDA installation: ``pip install lockstep-sm[ptxas]``.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from lockstep.sim.errors import UsageError

TARGET = "sm_75"  # the oldest that these versions know
THREADS = {"sm_75": 1024, "sm_86": 1536, "sm_80": 2048}
"""Threads that an SM holds, by target; all have 65,536 registers (CUDA C++ Programming Guide, compute capabilities)."""
PACKAGES = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}
MISSING = "ptxas and nvdisasm are not installed: pip install 'lockstep-sm[ptxas]'"

Figures = dict[str, int]
"""Of one kernel; :func:`figures` says which."""


# --------------------------------------------------------------------------------------------------------- the PTX text


def _whole(text: str) -> str:
    return text


def _rolled(text: str) -> str:
    """No loop is unrolled: the directive stands at module scope, so that it holds for all loops."""
    changed, count = re.subn(r"^\.address_size\s+\d+", r'\g<0>\n.pragma "nounroll";', text, flags=re.MULTILINE)
    if count != 1:
        raise UsageError("PTX without .address_size: no place for .pragma")
    return changed


SINGLE = {
    r"div(\.\w+)+\.(f32|f64)": r"mul.rn.\2",
    r"div\.([su]\d+)": r"min.\1",
    r"rem\.([su]\d+)": r"max.\1",
    r"r?sqrt(\.\w+)+\.f32": "rsqrt.approx.ftz.f32",
    r"rcp(\.\w+)+\.f32": "rcp.approx.ftz.f32",
    r"(r?sqrt|rcp)(\.\w+)+\.f64": "rcp.approx.ftz.f64",
    r"(sin|cos|lg2|ex2)\.approx\.f32": r"\1.approx.ftz.f32",
    r"bar\.warp\.sync\s+[^;]+": "bar.sync 1",
}
"""What ptxas makes many instructions of, and what one or two; results do not matter here."""


def _plain(text: str) -> str:
    """No loop is unrolled, and no division, root, special function or barrier of a warp is inlined."""
    text = _rolled(text)
    for many, single in SINGLE.items():
        text = re.sub(rf"{many}(?=[\s;])", single, text)
    return text


@dataclass(frozen=True)
class Variant:
    """A change of the PTX, and options and target of ptxas."""

    edit: Callable[[str], str]
    options: tuple[str, ...] = ()
    target: str = TARGET


VARIANTS = {
    "whole": Variant(_whole),
    "rolled": Variant(_rolled),
    "plain": Variant(_plain),
    "calm": Variant(_plain, ("-O1",)),
    **{target: Variant(_whole, target=target) for target in THREADS if target != TARGET},
}


# ------------------------------------------------------------------------------------------------------------ the tools


def version() -> str:
    """Of ptxas. Raises :class:`UsageError` if it is not installed."""
    return _distribution("ptxas").version


def assemble(text: str, variant: Variant) -> dict[str, Figures]:
    """The kernels of a PTX text by name. Raises :class:`UsageError` if ptxas refuses it, or is not installed."""
    with TemporaryDirectory() as folder:
        source, image = Path(folder) / "it.ptx", Path(folder) / "it.cubin"
        source.write_text(variant.edit(text), encoding="utf-8")
        said = _run("ptxas", "-arch", variant.target, "-v", *variant.options, str(source), "-o", str(image)).stderr
        listing = _run("nvdisasm", "--print-code", "--life-range-mode", "count", str(image)).stdout
    found = resources(said)
    return {name: found[name] | figures(code) for name, code in instructions(listing) if name in found}


def _distribution(tool: str) -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution(PACKAGES[tool])
    except importlib.metadata.PackageNotFoundError:
        raise UsageError(MISSING) from None


def _run(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    distribution = _distribution(tool)
    file = next((file for file in distribution.files or () if file.name == tool), None)
    if file is None:
        raise UsageError(MISSING)
    ran = subprocess.run([str(distribution.locate_file(file)), *arguments], capture_output=True, encoding="utf-8")
    if ran.returncode:
        raise UsageError(f"{tool}: {(ran.stderr.splitlines() or ['failed'])[0]}")
    return ran


# -------------------------------------------------------------------------------------------------------- what they say


def resources(said: str) -> dict[str, Figures]:
    """``registers`` and ``spill_bytes`` (written) of every kernel, from what ptxas says with ``-v``."""
    found = {}
    for part in said.split("Compiling entry function '")[1:]:
        numbers = [re.search(text, part) for text in (r"Used (\d+) registers", r"(\d+) bytes spill stores")]
        registers, spilled = (int(number[1]) if number else 0 for number in numbers)
        found[part.partition("'")[0]] = {"registers": registers, "spill_bytes": spilled}
    return found


@dataclass(frozen=True)
class Instruction:
    """``live``: registers with values, ``uniform``: those that a warp has one of, likewise; ``label``: the one in front
    of it; ``subroutine``: that it is part of."""

    opcode: str
    operands: str
    live: int
    uniform: int
    label: str
    subroutine: str


_SECTION = re.compile(r"^//-+ \.text\.(\S+) +-+$", re.MULTILINE)
_LABEL = re.compile(r"([.$][\w$.]+):")
_INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(?P<opcode>[A-Z][\w.]*)\s*(?P<operands>.*?)\s*;")


def instructions(listing: str) -> Iterator[tuple[str, list[Instruction]]]:
    """The sections of nvdisasm's listing with their code, without the branch to itself and the padding at its end."""
    _, *parts = _SECTION.split(listing)
    for section, part in zip(parts[::2], parts[1::2], strict=True):
        code: list[Instruction] = []
        label = subroutine = ""
        files: list[str] = []  # of registers, in the columns to the right
        for line in part.splitlines():
            text, *right = re.split(r"// [|+]", line)
            cells = [cell.strip() for cell in "".join(right).split("|")]
            if "GPR" in cells:
                files = cells
            elif found := _LABEL.match(text):
                label = found[1]
                subroutine = label if label.startswith("$") else subroutine
            elif found := _INSTRUCTION.match(text):
                live = dict(zip(files, cells, strict=False))
                own, uniform = (int(live.get(name) or 0) for name in ("GPR", "UGPR"))
                code.append(Instruction(found["opcode"], found["operands"], own, uniform, label, subroutine))
                label = ""
        while code and (code[-1].opcode == "NOP" or code[-1].operands == f"`({code[-1].label})"):
            code.pop()
        yield section, code


KINDS = {
    "moves": ("MOV", "UMOV", "IMAD.MOV", "CS2R", "R2UR"),
    "constants": ("LDC", "ULDC"),
    "memory": ("LD", "LDG", "LDS", "LDL", "ST", "STG", "STS", "STL", "ATOM", "ATOMG", "ATOMS", "RED", "TEX", "TLD",
               "TLD4", "SULD", "SUST"),
    "special": ("MUFU",),
    "control": ("BAR", "BMOV", "BRA", "BREAK", "BRX", "BSSY", "BSYNC", "CALL", "DEPBAR", "EXIT", "MEMBAR", "NOP", "RET",
                "WARPSYNC", "YIELD"),
}  # fmt: skip
"""Opcodes without their modifiers; the others are arithmetic."""

LOADS = ("LD", "LDG", "LDS", "LDL", "LDC", "TEX", "TLD")


def figures(code: Sequence[Instruction]) -> Figures:
    """``live``, ``in_flight``, ``instructions`` and their kinds as of ours; ``live_with_uniform`` counts registers of
    which a warp has one, too; instructions ``in_subroutines`` and their ``calls``; ``constant_operands`` of all that is
    no load of constants."""
    kinds = Counter(_kind(each.opcode) for each in code)
    return {
        "live": max(each.live for each in code),
        "live_with_uniform": max(each.live + each.uniform for each in code),
        "in_flight": _in_flight(code),
        "instructions": len(code),
        "in_subroutines": sum(bool(each.subroutine) for each in code),
        "calls": sum(each.opcode.startswith("CALL") for each in code),
        "constant_operands": sum("c[" in each.operands for each in code if _kind(each.opcode) != "constants"),
        **{kind: kinds[kind] for kind in (*KINDS, "arithmetic")},
    }


def _kind(opcode: str) -> str:
    names = {opcode.partition(".")[0], ".".join(opcode.split(".")[:2])}
    return next((kind for kind, opcodes in KINDS.items() if not names.isdisjoint(opcodes)), "arithmetic")


def _in_flight(code: Iterable[Instruction]) -> int:
    waiting: dict[int, int] = {}  # first register -> registers
    most = 0
    for each in code:
        named = [int(number) for number in re.findall(r"\bR(\d+)", each.operands)]
        for register in named:
            waiting.pop(register, None)
        name, *modifiers = each.opcode.split(".")
        if name in LOADS and named:
            waiting[named[0]] = 4 if "128" in modifiers else 2 if "64" in modifiers else 1
        most = max(most, sum(waiting.values()))
    return most
