"""Trial tenant of the frame slot *operands*: registers live here, and come a cycle later than from a register file.

The warp's own registers are poisoned whenever they hold nothing that was delivered, so what this tenant loses makes a
result wrong.
"""

from __future__ import annotations

from lockstep.models.core.frame import LATER
from lockstep.models.core.state import INSTRUCTION_BYTES, LAUNCH, SM, at_instruction
from lockstep.models.core.warp import register_address
from lockstep.models.execution.isa import LANES
from lockstep.models.jit import ctz, i64, jit, pointer_to, record, slots, words_u32
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_WARPS

REGISTERS = 64  # the most of a thread
POISON = 0xDEAD_BEEF
DELAY = 2  # cycles from issue; the register file takes one

at_launch = pointer_to(LAUNCH)

STATE = record(
    [
        ("due", "i8", (MAX_WARPS * 4,)),  # of the instructions that wait: cycles, in the order of their issue
        ("first", "i8", (MAX_WARPS,)),
        ("count", "i8", (MAX_WARPS,)),
        ("waiting", "i8"),  # slots
        ("values", "u4", (MAX_WARPS * REGISTERS * LANES,)),
    ]
)


@jit
def _next(state):
    wake = i64(NEVER)
    left = i64(state.waiting)
    while left != 0:
        slot = ctz(left)
        left &= left - 1
        wake = min(wake, i64(state.due[slot * 4 + state.first[slot]]))
    return wake


@jit
def read(state, sm):
    slot = i64(sm.frame.operand.slot)
    state.due[slot * 4 + (state.first[slot] + state.count[slot]) % 4] = sm.frame.operand.now + DELAY
    state.count[slot] += 1
    state.waiting |= i64(1) << slot
    sm.frame.operands.wake = min(i64(sm.frame.operands.wake), i64(sm.frame.operand.now) + DELAY)
    return i64(LATER)


@jit
def step(state, sm):
    left = i64(state.waiting)
    while left != 0:
        slot = ctz(left)
        left &= left - 1
        if state.due[slot * 4 + state.first[slot]] <= sm.frame.now:
            warp = sm.warps[slot]
            kept = warp.put_off[warp.put_off_first]
            grid = at_launch(i64(sm.launch)).grids[warp.grid]
            _move(state, warp, slot, at_instruction(i64(grid.code) + i64(kept.pc) * INSTRUCTION_BYTES))
            sm.frame.delivered |= i64(1) << slot
            state.first[slot] = (state.first[slot] + 1) % 4
            state.count[slot] -= 1
            if state.count[slot] == 0:
                state.waiting &= ~(i64(1) << slot)
    return _next(state)


@jit
def _move(state, warp, slot, instruction):
    """Bring an instruction's registers to the warp."""
    for word in range(4):
        bits = i64(instruction.need[word])
        while bits != 0:
            register = 64 * word + ctz(bits)
            bits &= bits - 1
            words = words_u32(register_address(warp, register), LANES)
            for lane in range(LANES):
                words[lane] = state.values[(slot * REGISTERS + register) * LANES + lane]


@jit
def take(state, sm):
    operand = sm.frame.operand
    slot = i64(operand.slot)
    warp = sm.warps[slot]
    instruction = at_instruction(i64(operand.instruction))
    for word in range(4):
        bits = i64(instruction.need[word])
        written = i64(instruction.writes[word])
        while bits != 0:
            bit = ctz(bits)
            register = 64 * word + bit
            bits &= bits - 1
            words = words_u32(register_address(warp, register), LANES)
            for lane in range(LANES):
                if (written >> bit) & 1 != 0 and (i64(operand.lanes) >> lane) & 1 != 0:
                    state.values[(slot * REGISTERS + register) * LANES + lane] = words[lane]
                words[lane] = POISON
    return i64(0)


TENANTS = {"operands": slots(STATE, SM, read=read, step=step, take=take)}
