"""Trial tenant of the frame slot *l1_clients*: writes lines through the L1, and reads them back.

A line carries 128 bytes: they enter the backing store when the L1 accepts the write, and leave it when it answers the
read. Each SM has :data:`LINES` lines, at device addresses that no kernel uses, and goes over them again and again.
"""

from __future__ import annotations

from lockstep.models.jit import i64, jit, record, slots
from lockstep.models.lsu.unit import LSU
from lockstep.models.memory.l1 import LOCAL_LOAD, LOCAL_STORE
from lockstep.models.time import NEVER

LINES = 40  # more than MSHRs, and more than one set
ROUNDS = 3
WORDS = 32  # of a line
BASE = 0xF000_0000

STATE = record(
    [
        ("client", "i8"),
        ("presented", "i8"),  # requests
        ("written", "i8"),  # lines
        ("read", "i8"),
        ("wrong", "i8"),  # words that came back with another value
        ("reads", "i8", (LINES,)),  # of each line
        ("waited", "i8"),  # cycles in which its request was not accepted
        ("store", "u4", (LINES * WORDS,)),
    ]
)


@jit
def _value(round, line, word):
    return i64((round * 7919 + line * 104729 + word * 31 + 1) & 0xFFFF_FFFF)


@jit
def ask(state, lsu):
    entry = lsu.clients.client[state.client]
    if entry.valid != 0:
        state.waited += 1
        return lsu.now + 1
    number = i64(state.presented)
    if number == 2 * LINES * ROUNDS:
        return i64(NEVER)
    within = number % (2 * LINES)
    line = within % LINES
    reading = within >= LINES
    round = number // (2 * LINES)
    if (reading and state.written < (round + 1) * LINES) or (not reading and state.read < round * LINES):
        return lsu.now + 1  # the half before must be done
    entry.valid = 1
    entry.kind = LOCAL_LOAD if reading else LOCAL_STORE
    entry.address = BASE + line * 4 * WORDS
    entry.size = 4 * WORDS
    entry.token = line
    state.presented += 1
    return lsu.now + 1


@jit
def accepted(state, lsu):
    entry = lsu.clients.client[state.client]
    if entry.kind == LOCAL_STORE:
        round = (i64(state.presented) - 1) // (2 * LINES)
        for word in range(WORDS):
            state.store[entry.token * WORDS + word] = _value(round, i64(entry.token), word)
        state.written += 1
    return i64(0)


@jit
def answered(state, lsu):
    line = i64(lsu.clients.client[state.client].answer)
    round = i64(state.read) // LINES
    for word in range(WORDS):
        state.wrong += i64(state.store[line * WORDS + word]) != _value(round, line, word)
    state.reads[line] += 1
    state.read += 1
    return i64(0)


TENANTS = {"l1_clients": slots(STATE, LSU, ask=ask, accepted=accepted, answered=answered)}
