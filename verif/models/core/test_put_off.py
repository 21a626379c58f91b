"""What an instruction takes when it is put off is what it gives back when its sources are there."""

from __future__ import annotations

import numpy as np
import pytest

from lockstep.models.core import put_off
from lockstep.models.core.state import SM
from lockstep.models.execution.isa import INSTRUCTION, Category, Control, Group, Memory, Space
from lockstep.models.jit import argument, i64
from lockstep.sim import description
from lockstep.spec.parameters import config

SLOT = 5
NEED, WRITES = 0b1011, 0b1000  # results are needed too: they must not be on their way

KINDS = {
    "arithmetic": (Group.INT, 0, 0, Category.INTEGER),
    "branch": (Group.CONTROL, Control.BRANCH, 0, Category.CONTROL),
    "barrier": (Group.CONTROL, Control.BARRIER, 0, Category.SYNCHRONIZATION),
    "load": (Group.MEMORY, Memory.LOAD, Space.GLOBAL, Category.GLOBAL),
    "store": (Group.MEMORY, Memory.STORE, Space.GLOBAL, Category.GLOBAL),
    "shared load": (Group.MEMORY, Memory.LOAD, Space.SHARED, Category.SHARED),
    "constant": (Group.MEMORY, Memory.LOAD, Space.CONST, Category.CONST),
    "atomic": (Group.ATOMIC, 0, Space.GLOBAL, Category.GLOBAL),
}


def an_sm() -> np.ndarray:
    """One with other instructions on their way, which hold the same things."""
    sm = np.zeros((), SM)
    sm["blocked"], sm["ordered"] = 1 << 9, 1 << 7
    sm["lsu"]["queue"]["collecting"] = 2
    gates = sm["lsu"]["gates"]
    gates["admit"], gates["cohort_warps"], gates["room"], gates["staged"] = -1, 8, 1, 1
    warp = sm["warps"][SLOT]
    warp["buffered"], warp["outstanding"], warp["pending"] = 2, 1, 0b1_0000
    return sm


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_taken_is_given_back(kind: str) -> None:
    settings = config(description.load("gtx480"))[0:1].reshape(())
    instruction = np.zeros((), INSTRUCTION)
    for field, value in zip(("group", "op", "space", "category"), KINDS[kind], strict=True):
        instruction[field] = value
    instruction["need"], instruction["writes"] = NEED, WRITES
    sm = an_sm()
    put_off._take(argument(sm), argument(settings), argument(instruction), i64(SLOT))
    assert sm.tobytes() != an_sm().tobytes()
    put_off._give_back(argument(sm), argument(settings), argument(instruction), i64(SLOT))
    expected = an_sm()
    if instruction["group"] != Group.CONTROL:
        expected["warps"][SLOT]["pending"] |= WRITES  # execution marks them as pending, too
    assert sm.tobytes() == expected.tobytes()
