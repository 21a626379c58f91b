"""Every block that has a bench: hardware against its golden model in the simulator, functional coverage, proofs.

``lockstep verify`` does the same with more seeds, and code coverage and mutants besides.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lockstep.rtl import netlist
from lockstep.verif import coverage, formal, levels, verilated
from lockstep.verif.blocks import blocks, declaration, proofs
from lockstep.verif.simulate import simulate
from lockstep.verif.trace import record

CONFIGURATIONS = [(block, name) for block in blocks() for name in declaration(block).configurations]
PROOFS = [(block, name) for block in blocks() for name in proofs(block)]


@pytest.mark.parametrize("block, configuration", CONFIGURATIONS)
def test_hardware_equals_the_model(block: str, configuration: str) -> None:
    """In all shapes of stimulus, one after the other in one simulation."""
    seed = levels.base_seed()
    print(f"LOCKSTEP_SEED={seed}")
    declared = declaration(block)
    assert simulate(declared, configuration, levels.runs(declared, configuration, seed, 1)).failures == []


@pytest.mark.parametrize("block, configuration", CONFIGURATIONS)
def test_exported_verilog(block: str, configuration: str) -> None:
    """Lint is clean, and no output depends on an input of the same cycle but for those declared."""
    declared = declaration(block)
    assert verilated.lint(declared.verilog(configuration), declared.name) == []
    assert netlist.check(declared.component(configuration)) == []


@pytest.mark.parametrize("block", blocks())
def test_every_bin_is_hit(block: str) -> None:
    """With a fixed seed: that some other seed misses a rare bin is no fault."""
    declared = declaration(block)
    bins = {
        name: sum((record(declared, run).bins for run in levels.runs(declared, name, 1, 1)), Counter[str]())
        for name in declared.configurations
    }
    assert coverage.functional(declared, bins) == []


@pytest.mark.parametrize("block, name", PROOFS)
def test_property(block: str, name: str, tmp_path: Path) -> None:
    outcome = formal.prove(name, proofs(block)[name], tmp_path)
    assert outcome.passed, outcome.counterexample
