"""Trial of a kernel's tables and metadata words: counts the register regions that warps start, and takes their words.

A warp that starts a region has taken all of its words, each once and in their order, or ``wrong`` says how often not.
"""

from __future__ import annotations

from lockstep.models.core.fetch import take_word
from lockstep.models.core.frame import ISSUE
from lockstep.models.core.state import SM
from lockstep.models.jit import ctz, i64, jit, pointer_to, record, slots, without_lowest, words_i32
from lockstep.spec.parameters import CONFIG, MAX_WARPS

STATE = record(
    [
        ("gate", "i8"),
        ("started", "i8"),
        ("words", "i8"),
        ("wrong", "i8"),
        ("next", "i8", (MAX_WARPS,)),  # word of each warp
        ("tables", record([("regions_first", "i8"), ("stream_words", "i8")])),
    ]
)

at_config = pointer_to(CONFIG)


@jit
def _entry(table, pc):
    return i64(words_i32(table + 4 * pc, 1)[0])


@jit
def hear(state, sm):
    """A region starts: the warp has its words, and maybe further ones, which it drops if it has jumped here."""
    events = sm.frame.events
    if events.kind == ISSUE and _entry(i64(state.tables.regions_first), i64(events.pc)) >= 0:
        state.started += 1
        state.wrong += i64(state.next[events.slot] < _entry(i64(state.tables.stream_words), i64(events.pc)))
    return i64(0)


@jit
def update(state, sm):
    """Take a word of each warp."""
    left = i64(sm.worded)
    while left != 0:
        slot = ctz(left)
        left = without_lowest(left)
        word = i64(take_word(sm, at_config(i64(sm.config)), slot))
        state.wrong += i64(word != state.next[slot] and word != 0 and (i64(sm.flushed) >> slot) & 1 == 0)
        sm.flushed = i64(sm.flushed) & ~(i64(1) << slot)
        state.next[slot] = word + 1
        state.words += 1
    return i64(sm.frame.now) + 1


TENANTS = {"events": slots(STATE, SM, hear=hear), "gates": slots(STATE, SM, update=update)}
