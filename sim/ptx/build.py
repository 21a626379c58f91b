"""From a parsed module to its program: every kernel is lowered, brought through the stages and assembled."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.sim.errors import UsageError
from lockstep.sim.ptx import ast
from lockstep.sim.ptx.assemble import assemble
from lockstep.sim.ptx.draft import Refused
from lockstep.sim.ptx.kernel import Kernel, Program
from lockstep.sim.ptx.lower import function_addresses, lower
from lockstep.sim.ptx.passes import run
from lockstep.spec.passes import Pass


def build(module: ast.Module, registers_per_thread: int, passes: Sequence[Pass] = ()) -> Program:
    """The program of a module. Raises :class:`UsageError`."""
    addresses = function_addresses(module)
    kernels = {
        name: _kernel(module, function, addresses, registers_per_thread, passes)
        for name, function in module.functions.items()
        if function.entry and function.defined
    }
    variables = {name: v for name, v in module.variables.items() if v.space not in ("shared", "local")}
    return Program(module.path, kernels, variables, addresses)


def _kernel(
    module: ast.Module, function: ast.Function, addresses: dict[str, int], registers: int, passes: Sequence[Pass]
) -> Kernel:
    try:
        draft = lower(module, function, addresses, registers)
        run(draft, passes)
    except Refused as error:
        raise UsageError(f"{module.path}:{function.line}: kernel `{function.name}` {error}") from None
    return assemble(draft)
