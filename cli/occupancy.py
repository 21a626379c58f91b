"""`lockstep occupancy`: how many CTAs an SM holds, and what limits them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict

from lockstep.cli import options as shared
from lockstep.models.occupancy import plan
from lockstep.sim.compile.listing import show_refused
from lockstep.sim.device import description
from lockstep.sim.device.gpu import Gpu
from lockstep.sim.device.occupancy import Residency, residencies, residency
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, check_writable, table
from lockstep.sim.study import comparison
from lockstep.spec import registry
from lockstep.spec.parameters import Gpu as Description


def arguments(to: ArgumentParser) -> None:
    to.add_argument("file", metavar="FILE|KERNEL", nargs="?", help="a .ptx or .cu file, or one of `lockstep "
                    "kernels`; without it, say what a CTA needs")  # fmt: skip
    to.add_argument("--threads", type=int, metavar="N", help="threads of a CTA (default for a kernel: the usual "
                    "sizes)")  # fmt: skip
    to.add_argument("--registers", type=int, metavar="N", help="registers per thread (of a kernel, if it needs "
                    "fewer)")  # fmt: skip
    to.add_argument("--scratchpad", type=int, metavar="BYTES", default=0, help="scratchpad of a CTA (of a "
                    "kernel, the dynamic part; default: 0)")  # fmt: skip
    shared.gpu(to, "GPU of the SM (default: gtx480)")
    shared.mechanisms(to)
    to.add_argument("--sharing", dest="percent", metavar="PERCENT", help="pairs of CTAs share this part "
                    "of their registers: as --with register-sharing --set sharing.percent=PERCENT")  # fmt: skip
    shared.parameters(to, "a parameter: core.registers=65536")
    shared.cuda(to)
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    selected, settings = comparison.mechanisms(options.mechanisms), shared.settings(options)
    if options.percent is not None:
        name, key = registry.option("--sharing")
        selected = (*selected, name)
        settings |= [description.parse_setting(f"{key}={options.percent}")]
    if options.threads is not None and options.threads < 1:
        raise UsageError(f"--threads {options.threads}: must be 1 or more")
    if options.file is None:
        gpu = description.load(options.gpu, settings, selected)
        one = _needs(gpu, options)
        _show_residencies(options, gpu, [one])
        return shared.finish(options, asdict(one), [])
    loaded = Gpu(options.gpu, mechanisms=selected, settings=settings)
    gpu = loaded.description
    with Display(options.json) as watch:
        watch.phase(f"loading {options.file}")
        path, registers = shared.source(options)
        module = loaded.load(path, registers=registers)
        if options.registers is not None:
            _check_registers(gpu, options.registers)
            module = loaded.load(path, registers=dict.fromkeys(module.program.kernels, options.registers))
    found = residencies(module, options.threads, options.scratchpad)
    _show_residencies(options, gpu, found)
    if options.json != "-":
        show_refused(module.program.refused)
    return shared.finish(options, [asdict(r) for r in found], [])


def _check_registers(gpu: Description, count: int) -> None:
    if not 1 <= count <= gpu.core.registers_per_thread:
        raise UsageError(f"--registers {count}: must be 1 to {gpu.core.registers_per_thread} on {gpu.name}")


def _needs(gpu: Description, options: Namespace) -> Residency:
    """The CTAs that need what the options say."""
    if options.threads is None or options.registers is None:
        raise UsageError("give a FILE or a KERNEL, or what a CTA needs: --threads and --registers")
    _check_registers(gpu, options.registers)
    for name, value, most in (
        ("threads", options.threads, gpu.core.threads_per_cta),
        ("scratchpad", options.scratchpad, gpu.scratchpad.bytes_per_cta),
    ):
        if not 0 <= value <= most:
            raise UsageError(f"--{name} {value}: must be 0 to {most} on {gpu.name}")
    needs = options.threads, options.registers, options.scratchpad
    return residency(gpu, plan(gpu, *needs), *needs)


def _show_residencies(options: Namespace, gpu: Description, found: Sequence[Residency]) -> None:
    if options.json == "-":
        return
    columns = ("kernel", "threads", "CTAs", "in pairs", "warps", "occupancy", "limited by", "registers", "scratchpad",
               "registers unused", "scratchpad unused")  # fmt: skip
    rows = [
        (r.kernel, r.threads, r.ctas, 2 * r.shared_pairs, r.warps, r.occupancy, ", ".join(r.limited_by), r.registers,
         r.scratchpad_bytes, r.unused_registers, r.unused_scratchpad_bytes) for r in found
    ]  # fmt: skip
    title = f"One SM of {gpu.name}: {gpu.core.ctas} CTAs, {gpu.core.warps} warps, {gpu.core.registers} registers"
    table(f"{title}, {gpu.scratchpad.bytes} bytes of scratchpad", columns, rows, keys=2)
