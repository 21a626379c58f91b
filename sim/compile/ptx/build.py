"""From a parsed module to its program: every kernel is lowered, brought through the stages and assembled."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.sim.compile.ptx import ast
from lockstep.sim.compile.ptx.assemble import assemble
from lockstep.sim.compile.ptx.draft import Draft, Refused
from lockstep.sim.compile.ptx.kernel import Program
from lockstep.sim.compile.ptx.lower import function_addresses, lower
from lockstep.sim.compile.ptx.passes import run
from lockstep.sim.errors import UsageError
from lockstep.spec.passes import Pass


def build(module: ast.Module, registers_per_thread: int, passes: Sequence[Pass] = ()) -> Program:
    """The program of a module. Raises :class:`UsageError` if none of its kernels can be compiled."""
    made, refused = drafts(module, registers_per_thread, passes)
    kernels = {name: assemble(draft) for name, draft in made.items()}
    variables = {name: v for name, v in module.variables.items() if v.space not in ("shared", "local")}
    return Program(module.path, kernels, variables, function_addresses(module), refused)


def drafts(
    module: ast.Module, registers_per_thread: int, passes: Sequence[Pass] = ()
) -> tuple[dict[str, Draft], dict[str, str]]:
    """The kernels of a module, by name, after all stages, and why the others cannot be compiled.

    Raises :class:`UsageError` if this is so of all.
    """
    addresses = function_addresses(module)
    made: dict[str, Draft] = {}
    refused: dict[str, str] = {}
    for name, function in module.functions.items():
        if function.entry and function.defined:
            try:
                made[name] = _draft(module, function, addresses, registers_per_thread, passes)
            except UsageError as error:
                refused[name] = str(error)
    if refused and not made:
        raise UsageError(next(iter(refused.values())))
    return made, refused


def _draft(
    module: ast.Module, function: ast.Function, addresses: dict[str, int], registers: int, passes: Sequence[Pass]
) -> Draft:
    try:
        draft = lower(module, function, addresses, registers)
        run(draft, passes)
    except Refused as error:
        raise UsageError(f"{module.path}:{function.line}: kernel `{function.name}` {error}") from None
    return draft
