"""One PTX module with every case, and its run on a GPU: Lockstep's, or a real one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lockstep.sim.errors import UsageError
from lockstep.verif.silicon.cases import Case, cases, signatures
from lockstep.verif.silicon.operands import WIDTHS, operands

BLOCK = 128
IN_A_KERNEL = 40  # cases
HEADER = ".version 8.6\n.target sm_90\n.address_size 64\n"
LETTERS = "abcd"

Part = tuple[str, tuple[str, ...], list[Case]]


def parts() -> Iterator[Part]:
    """The kernels: name, kinds of the operands, cases."""
    for kinds, every in signatures(cases()).items():
        for start in range(0, len(every), IN_A_KERNEL):
            yield f"{'_'.join(kinds)}_{start}", kinds, every[start : start + IN_A_KERNEL]


def module() -> str:
    """The module's text."""
    return HEADER + "\n".join(_kernel(*part) for part in parts())


def _kernel(name: str, kinds: Sequence[str], every: Sequence[Case]) -> str:
    """Each thread has operands of its own; results of 64 bits lie case by case, ``stride`` bytes apart."""
    letters = LETTERS[: len(kinds)]
    parameters = ", ".join(f".param .u64 {each}" for each in (*letters, "out", "stride"))
    lines = [
        f".visible .entry {name}({parameters})\n{{",
        ".reg .pred %p, %q; .reg .b16 %x16, %y16, %r16; .reg .b32 %i, %n, %place, %x32, %y32, %r32;",
        f".reg .b64 %o, %in, %out, %stride, %wide, %x64, %y64, %r64; .shared .align 8 .b64 places[{BLOCK}];",
        "mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %x32, %tid.x; mad.lo.u32 %i, %i, %n, %x32;",
        "mul.wide.u32 %o, %i, 8; mov.u32 %place, places; mad.lo.u32 %place, %x32, 8, %place;",
        "ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out; add.u64 %out, %out, %o;",
        "ld.param.u64 %stride, [stride];",
    ]
    for letter, kind in reversed(list(zip(letters, kinds, strict=True))):  # the first one last: %in is its place
        bits = WIDTHS[kind]
        lines.append(f".reg .b{bits} %{letter}; ld.param.u64 %in, [{letter}]; cvta.to.global.u64 %in, %in;")
        lines.append(f"add.u64 %in, %in, %o; ld.global.b{bits} %{letter}, [%in];")
    return "\n".join(lines + [_body(case) for case in every] + ["ret;\n}\n"])


def _body(case: Case) -> str:
    predicate = case.result == "pred"
    bits = 32 if predicate else WIDTHS[case.result]
    names = {each: f"%{each}" for each in (*LETTERS, "p", "q", "in", "out", "place")}
    text = case.text.format(**names, **{each: f"%{each}{bits}" for each in "rxy"})
    end = "selp.b32 %r32, 1, 0, %p; " if predicate else ""
    end += f"cvt.u64.u{bits} %wide, %r{bits};" if bits < 64 else "mov.b64 %wide, %r64;"
    return f"// {case.name}\n{text}\n{end} st.global.u64 [%out], %wide; add.u64 %out, %out, %stride;"


def every_case() -> Iterator[Case]:
    """All cases, in the order in which they run."""
    for _, _, every in parts():
        yield from every


def results(gpu: Any, count: int, seed: int) -> Iterator[tuple[Case, np.ndarray]]:
    """What a GPU gives for each case. ``gpu`` has the methods of :class:`lockstep.sim.Gpu`."""
    if count < BLOCK or count % BLOCK:
        raise UsageError(f"{count} operand sets: must be a multiple of {BLOCK}")
    loaded = gpu.load(module())
    for name, kinds, every in parts():
        buffers = [gpu.to_device(array) for array in operands(kinds, count, seed)]
        buffers.append(gpu.to_device(np.zeros((len(every), count), np.uint64)))
        loaded.launch(name, grid=count // BLOCK, block=BLOCK, args=[*buffers, np.uint64(8 * count)])
        yield from zip(every, gpu.from_device(buffers[-1]), strict=True)
        for buffer in buffers:
            gpu.free(buffer)
