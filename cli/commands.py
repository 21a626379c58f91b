"""The commands behind :mod:`lockstep.cli.main`: each takes the parsed options and returns the exit code."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import textwrap
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep.sim.device import description
from lockstep.sim.device.profile import hot_lines
from lockstep.sim.errors import KernelFault, UsageError
from lockstep.sim.output import Display, check_writable, table, write_json, write_text
from lockstep.sim.study import comparison
from lockstep.sim.study.job import Job, complaint, execute
from lockstep.spec import registry
from lockstep.spec.words import closest

if TYPE_CHECKING:
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.device.occupancy import Residency
    from lockstep.sim.device.run import Run
    from lockstep.sim.device.trace.trace import Trace
    from lockstep.spec.parameters import Gpu as Description

BENCHMARK = ("saxpy", "gemm", "hotspot", "spmv", "bfs", "sgemm", "mri-q")

# What `run` shows of the statistics; `--json` has all of them.
HIGHLIGHTS = (
    "occupancy.ratio", "issue.lanes", "issue.stall_core_cycles", "issue.idle_core_cycles",
    "lsu.requests_per_instruction", "lsu.stalled", "l1.accesses", "l1.miss_rate", "l1.lat_rt_core_cycles",
    "l2.accesses", "l2.miss_rate", "dram.read_bytes", "dram.written_bytes", "dram.row_hit_rate", "dram.bandwidth_used",
)  # fmt: skip


def _settings(options: Namespace) -> dict[str, Any]:
    return dict(description.parse_setting(text) for text in options.set)


def _finish(options: Namespace, value: Any, results: list[dict[str, Any]]) -> int:
    """Write the JSON, complain about wrong results."""
    if options.json:
        write_json(options.json, value)
        if options.json != "-":
            print(f"written to {options.json}")
    wrong = [result for result in results if complaint(result)]
    for result in wrong:
        print(f"lockstep: {result['kernel']} on {result['gpu']}: {complaint(result)}", file=sys.stderr)
    return 1 if wrong else 0


def _job(options: Namespace) -> Job:
    """The job of a command for one kernel."""
    mechanisms, settings = comparison.mechanisms(options.mechanisms), _settings(options)
    return Job(options.kernel, options.gpu, options.size, options.seed, mechanisms, settings, options.strict)


def run(options: Namespace) -> int:
    from lockstep.models.gpu import ModelFault
    from lockstep.sim.device.trace import intervals, target

    check_writable(options.json)
    intervals.check(options.intervals, options.every)
    window = target.check(options.timeline, options.cycles, options.sm, options.around_stop)
    job = replace(_job(options), profile=options.profile)
    runs: list[Run] = []
    traces: list[Trace] = []

    def attach(gpu: Gpu) -> None:
        gpu.every = options.every
        gpu.after_launch.append(runs.append)
        if options.timeline:
            trace = gpu.trace(options.sm or 0, window, around_stop=options.around_stop)
            traces.append(stack.enter_context(trace))

    with Display(options.json) as watch, ExitStack() as stack:
        try:
            result = execute(job, watch, attach)
        except (KernelFault, ModelFault) as stop:
            for trace in traces:
                if trace.launches:
                    trace.write(options.timeline)
                    stop.add_note(f"{options.timeline}: {trace.span}")
            raise
    for trace in traces:
        if options.around_stop is not None and not trace.launches:
            print(f"lockstep: {options.timeline}: not written, since no launch stopped early", file=sys.stderr)
            continue
        trace.write(options.timeline)
        if trace.full is not None:
            print(f"lockstep: {options.timeline}: full; it ends before cycle {trace.full:,}", file=sys.stderr)
    if options.intervals:
        intervals.write(options.intervals, runs)
    if options.json != "-":
        from lockstep.sim.device.statistics import STATISTICS

        rows = [(key, result[key], "") for key in ("cycles", "warp_instructions", "thread_instructions", "ipc")]
        rows += [(key, result["stats"][key], STATISTICS[key].doc) for key in HIGHLIGHTS]
        rows += [("wall_seconds", result["wall_seconds"], ""), ("kwips", result["kwips"], "simulation speed")]
        table(f"{result['kernel']}, {result['size']}, on {result['gpu']}", ("", "value", ""), rows)
        for function in result["profile"]["functions"] if options.profile else ():
            table(*hot_lines(function))
        print(f"checked: {result['message']}" if result["checked"] else "WRONG RESULT")
    return _finish(options, result, [result])


def report(options: Namespace) -> int:
    from lockstep.sim.study import report
    from lockstep.sim.study.page import html

    check_writable(options.file)
    runs = report.read(options.files)
    write_text(options.file, html(report.page(runs)))
    if options.file != "-":
        print(f"written to {options.file}")
    return 0


def cosim(options: Namespace) -> int:
    from lockstep.cli.cosim import command

    check_writable(options.json)
    return command(_job(options), options)


def compare(options: Namespace) -> int:
    from lockstep.cli import sweep as commands

    return commands.compare(options)


def sweep(options: Namespace) -> int:
    from lockstep.cli import sweep as commands

    return commands.sweep(options)


def energy(options: Namespace) -> int:
    from lockstep.sim.study import energy

    return energy.command(options)


def diff(options: Namespace) -> int:
    from lockstep.sim.study import difference

    return difference.diff(options)


def bench(options: Namespace) -> int:
    check_writable(options.json)
    mechanisms, settings = comparison.mechanisms(options.mechanisms), _settings(options)
    results = []
    with Display(options.json) as watch:
        for kernel in options.kernels or BENCHMARK:
            job = Job(kernel, options.gpu, options.size, options.seed, mechanisms, settings, options.strict)
            results.append(execute(job, watch))
    for result in results:
        result["machine"] = machine()
    if options.json != "-":
        columns = ("kernel", "warp instructions", "cycles", "IPC", "seconds", "kwips", "checked")
        what = f"{options.gpu} with {', '.join(mechanisms)}" if mechanisms else options.gpu
        table(f"{what}, {options.size}; kwips: thousand warp instructions per second, one core", columns, [
            (r["kernel"], r["warp_instructions"], r["cycles"], r["ipc"], r["wall_seconds"], r["kwips"], r["checked"])
            for r in results
        ])  # fmt: skip
        print(machine())
    return _finish(options, results, results)


def machine() -> str:
    """CPU, cores, and the versions that matter for speed."""
    import numba
    import numpy

    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), model)
    except OSError:
        pass  # not Linux
    versions = f"Python {platform.python_version()}, Numba {numba.__version__}, NumPy {numpy.__version__}"
    return f"{model}, {os.cpu_count()} cores, {versions}"


def verify(options: Namespace) -> int:
    from lockstep.rtl.registry import selectable
    from lockstep.verif import levels

    for target in (options.json, options.junit):
        check_writable(target)
    if options.seeds < 1 or options.mutants < 1:
        raise UsageError("--seeds and --mutants must be at least 1")
    if options.level != "kernels" and (options.gpu or options.set):
        raise UsageError("--gpu and --set work with --level kernels only: the other levels have the benches' sizes")
    folder = None
    if options.coverage:
        folder = Path(options.coverage)
        folder.mkdir(parents=True, exist_ok=True)
    try:
        blocks = levels.find(options.targets)
    except KeyError as error:
        name, known = error.args[0], levels.targets()
        suggestion = closest(name, {*known, *selectable(known)})
        raise UsageError(f"no block or area {name!r}{suggestion}; there are {', '.join(known)}") from None
    seed = levels.base_seed() if options.seed is None else options.seed
    files = [Path(name) for name in options.replay]
    wanted = levels.Options(
        options.level, seed, options.seeds, options.mutants, folder, files, options.gpu or "gtx480", _settings(options)
    )
    checks = []
    with Display() as watch:
        watch.phase(f"{options.level}: {len(blocks)} targets")
        instead = files and options.level != "mutation"
        for check in map(levels.replay, files) if instead else levels.verify(blocks, wanted, options.jobs):
            checks.append(check)
            watch.phase(f"{options.level}: {check.block}: {check.name}")
    if options.json != "-":
        table(f"{options.level}, LOCKSTEP_SEED={seed}, {options.seeds} seeds", ("block", "check", "passed", "s", ""), [
            (check.block, check.name, check.passed, check.seconds, check.detail) for check in checks
        ])  # fmt: skip
    if options.junit:
        write_text(options.junit, levels.junit(checks, wanted))
    if options.json:
        rows = [{**vars(check), "passed": check.passed} for check in checks]
        write_json(options.json, {"level": options.level, "seed": seed, "seeds": options.seeds, "checks": rows})
    for check in checks:
        for line in check.errors:
            print(f"lockstep: {check.block}: {check.name}: {line}", file=sys.stderr)
    return 0 if all(check.passed for check in checks) else 1


def reproduce(options: Namespace) -> int:
    from lockstep.sim.study import page
    from lockstep.sim.study.reproduce import chapter
    from lockstep.sim.study.reproduce.run import run as run_all

    check_writable(options.json)
    if options.jobs is not None and options.jobs < 1:
        raise UsageError("--jobs must be at least 1")
    chosen = chapter(options.chapter)
    Path(options.folder).mkdir(parents=True, exist_ok=True)
    with Display() as watch:
        results = run_all(chosen.jobs(options.quick), watch, options.jobs)
    written = chosen.page(results)
    if options.json != "-":
        for block in written.blocks:
            if isinstance(block, page.Table):
                table(block.title, block.columns, block.rows)
        print("\n".join(f"written to {path}" for path in page.write(written, Path(options.folder), options.chapter)))
    tables = [{"title": block.title, "columns": block.columns, "rows": block.rows}
              for block in written.blocks if isinstance(block, page.Table)]  # fmt: skip
    return _finish(options, tables, list(results.values()))


def kernels(options: Namespace) -> int:
    from lockstep.sim import kernels as folders

    check_writable(options.json)
    found = [folders.find(name) for name in folders.names()]
    if options.json != "-":
        table("kernels", ("name", "suite", "what it does"), [(k.name, k.suite, k.title) for k in found])
    rows = [{"name": k.name, "title": k.title, "suite": k.suite, "ptx": str(k.ptx)} for k in found]
    return _finish(options, rows, [])


def ptx(options: Namespace) -> int:
    from lockstep.sim.compile import listing

    check_writable(options.json)
    path, registers = _source(options)
    found = listing.listing(path, description.load(options.gpu, _settings(options)), registers)
    if options.json != "-":
        found.show(options.show)
    return _finish(options, found.json(), [])


def _source(options: Namespace) -> tuple[Path, dict[str, int]]:
    """The PTX of a file or of a kernel of ours, and the registers that its folder asks for."""
    from lockstep.sim import kernels
    from lockstep.sim.compile.cuda import nvrtc
    from lockstep.sim.compile.cuda.options import Options
    from lockstep.sim.compile.ptx import program

    path = Path(options.file)
    given = {name: getattr(options, name) for name in ("include", "define", "std", "arch", "fast_math")}
    given = {name: value for name, value in given.items() if value}
    if path.suffix == ".cu":
        compiled = nvrtc.compile_file(path, Options(**given), options.names)
        if not any(".entry" in line for line in program.read(compiled.path).splitlines()):
            templates = ", ".join(sorted(compiled.kernels))
            only = f" but templates, of which --name compiles instances: {templates}" if templates else ""
            raise UsageError(f"{path}: has no kernels{only}")
        return compiled.path, {}
    if given or options.names:
        raise UsageError(f"{options.file}: not a .cu file; -I, -D, --std, --arch, --fast-math, --name are for CUDA C")
    if path.suffix == ".ptx":
        return path, {}
    kernel = kernels.find(options.file)
    return kernel.ptx, kernel.registers


def occupancy(options: Namespace) -> int:
    from lockstep.sim.compile.listing import show_refused
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.device.occupancy import residencies

    check_writable(options.json)
    selected, settings = comparison.mechanisms(options.mechanisms), _settings(options)
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
        return _finish(options, asdict(one), [])
    path, registers = _source(options)
    loaded = Gpu(options.gpu, mechanisms=selected, settings=settings)
    gpu = loaded.description
    module = loaded.load(path, registers=registers)
    if options.registers is not None:
        _check_registers(gpu, options.registers)
        module = loaded.load(path, registers=dict.fromkeys(module.program.kernels, options.registers))
    found = residencies(module, options.threads, options.scratchpad)
    _show_residencies(options, gpu, found)
    if options.json != "-":
        show_refused(module.program.refused)
    return _finish(options, [asdict(r) for r in found], [])


def _check_registers(gpu: Description, count: int) -> None:
    if not 1 <= count <= gpu.core.registers_per_thread:
        raise UsageError(f"--registers {count}: must be 1 to {gpu.core.registers_per_thread} on {gpu.name}")


def _needs(gpu: Description, options: Namespace) -> Residency:
    """The CTAs that need what the options say."""
    from lockstep.models.occupancy import plan
    from lockstep.sim.device.occupancy import residency

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
    columns = ("kernel", "threads", "registers", "scratchpad", "CTAs", "in pairs", "warps", "occupancy", "limited by",
               "registers unused", "scratchpad unused")  # fmt: skip
    rows = [
        (r.kernel, r.threads, r.registers, r.scratchpad_bytes, r.ctas, 2 * r.shared_pairs, r.warps, r.occupancy,
         ", ".join(r.limited_by), r.unused_registers, r.unused_scratchpad_bytes) for r in found
    ]  # fmt: skip
    title = f"One SM of {gpu.name}: {gpu.core.ctas} CTAs, {gpu.core.warps} warps, {gpu.core.registers} registers"
    table(f"{title}, {gpu.scratchpad.bytes} bytes of scratchpad", columns, rows)


def mechanisms(options: Namespace) -> int:
    from lockstep.spec.mechanism import FRAME_SLOTS

    check_writable(options.json)
    found = [(m, "; ".join(FRAME_SLOTS[slot] for slot in m.tenants)) for m in registry.MECHANISMS.values()]
    if options.json != "-":
        table("mechanisms", ("name", "frame slots, or what it needs", "what it does"), [
            (m.name, ", ".join(m.tenants or m.requires), m.doc) for m, _ in found
        ])  # fmt: skip
    rows = [
        {"name": m.name, "slot": slots, "slots": list(m.tenants), "doc": m.doc, "blocks": list(m.blocks)}
        for m, slots in found
    ]
    return _finish(options, rows, [])


def gpus(options: Namespace) -> int:
    check_writable(options.json)
    if options.gpu:
        return _explain(options)
    if options.mechanisms or options.set:
        raise UsageError("--with and --set need the name of the GPU that they change: lockstep gpus NAME")
    found = [description.load(name) for name in description.names()]
    if options.json != "-":
        columns = ("name", "SMs", "warps", "schedulers", "L1 KB", "L2 KB", "DRAM GB/s", "source")
        table("GPU descriptions; clocks in MHz and all other parameters with --json", columns, [
            (g.name, g.core.sms, g.core.warps, f"{g.core.schedulers} {g.core.scheduler}",
             g.l1.sets * g.l1.ways * g.l1.line_bytes // 1024,
             g.l2.slices * g.l2.sets * g.l2.ways * g.l1.line_bytes // 1024,
             g.dram.channels * g.dram.bus_bytes * 2 * g.clocks.dram // 1000, g.source)
            for g in found
        ])  # fmt: skip
    return _finish(options, [description.values(gpu) for gpu in found], [])


def _explain(options: Namespace) -> int:
    explained = description.explain(options.gpu, _settings(options), comparison.mechanisms(options.mechanisms))
    if options.json != "-":
        section, width = "", shutil.get_terminal_size().columns
        for each in explained:
            name, _, key = each.key.partition(".")
            if name != section:
                section = name
                print(f"[{section}]")
            value = f"{key} = {each.value} {each.unit}".rstrip()
            print(textwrap.fill(f"{value}: {each.meaning} ({each.allowed})", width, subsequent_indent="    "))
            print(textwrap.fill(each.source or "no source", width, initial_indent="    ", subsequent_indent="    "))
    return _finish(options, [asdict(each) for each in explained], [])


def completion(options: Namespace) -> int:
    from lockstep.cli.completion import script

    print(script(options.shell))
    return 0


def blocks(options: Namespace) -> int:
    from lockstep.cli import hardware

    return hardware.blocks(options)


def verilog(options: Namespace) -> int:
    from lockstep.cli import hardware

    return hardware.verilog(options)


def synth(options: Namespace) -> int:
    from lockstep.cli import hardware

    return hardware.synth(options)
