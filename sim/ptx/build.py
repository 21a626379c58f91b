"""From a parsed module to its program: every kernel is lowered, brought through the stages and assembled."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.sim.errors import UsageError
from lockstep.sim.ptx import ast
from lockstep.sim.ptx.assemble import assemble
from lockstep.sim.ptx.draft import Draft, Refused
from lockstep.sim.ptx.kernel import Program
from lockstep.sim.ptx.lower import function_addresses, lower
from lockstep.sim.ptx.passes import run
from lockstep.spec.passes import Pass


def build(module: ast.Module, registers_per_thread: int, passes: Sequence[Pass] = ()) -> Program:
    """The program of a module. Raises :class:`UsageError`."""
    kernels = {name: assemble(draft) for name, draft in drafts(module, registers_per_thread, passes).items()}
    variables = {name: v for name, v in module.variables.items() if v.space not in ("shared", "local")}
    return Program(module.path, kernels, variables, function_addresses(module))


def drafts(module: ast.Module, registers_per_thread: int, passes: Sequence[Pass] = ()) -> dict[str, Draft]:
    """The kernels of a module, by name, after all stages. Raises :class:`UsageError`."""
    addresses = function_addresses(module)
    return {
        name: _draft(module, function, addresses, registers_per_thread, passes)
        for name, function in module.functions.items()
        if function.entry and function.defined
    }


def _draft(
    module: ast.Module, function: ast.Function, addresses: dict[str, int], registers: int, passes: Sequence[Pass]
) -> Draft:
    try:
        draft = lower(module, function, addresses, registers)
        run(draft, passes)
    except Refused as error:
        raise UsageError(f"{module.path}:{function.line}: kernel `{function.name}` {error}") from None
    return draft
