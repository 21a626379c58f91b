"""The metadata words that tell hardware about the registers of a region: Kloosterman's thesis, section 4.5.4.

A word has the 64 bits of an instruction: 54 of payload, and above them 10 of opcode. Bit 0 is the lowest.

=========  ==========  ==================================================================================
bits       field       meaning
=========  ==========  ==================================================================================
0 .. 53    payload     by kind, below
54 .. 59   slots       ``HEADER``: the slots of the region, 1 to 63; otherwise 0
60 .. 61   kind        :class:`Kind`
62 .. 63   mark        3: a metadata word; no instruction has both bits set
=========  ==========  ==================================================================================

=========  ==========  ==================================================================================
``HEADER``
---------------------------------------------------------------------------------------------------------
0 .. 23    usage       3 bits for each of 8 banks, bank 0 lowest: the most registers it holds at a time
24 .. 53   entries     3 of 10 bits
=========  ==========  ==================================================================================

=========  ==========  ==================================================================================
``ENTRIES``
---------------------------------------------------------------------------------------------------------
0 .. 49    entries     5 of 10 bits
50 .. 53               0
=========  ==========  ==================================================================================

=========  ==========  ==================================================================================
``FLAGS``
---------------------------------------------------------------------------------------------------------
0 .. 53    flags       9 slots of 6 bits
=========  ==========  ==================================================================================

=========  ==========  ==================================================================================
``SINGLE``
---------------------------------------------------------------------------------------------------------
0 .. 23    flags       4 slots of 6 bits
24 .. 31   usage       1 bit for each of 8 banks
32 .. 51   entries     2 of 10 bits
52 .. 53   slots       the slots of the region, less 1
=========  ==========  ==================================================================================

The words of a region come before its first instruction: one ``SINGLE``, or one ``HEADER``, then as many ``ENTRIES`` as
its entries need, then ``FLAGS``, one for every 9 slots begun. A region has a ``SINGLE`` if it fits.

*entry*: bits 0 .. 7 the register, 8 .. 9 what to do with it when the region starts (:class:`Entry`). Unused ones are 0
and come last.

*slot*: the flags of up to three operands of one instruction. Every instruction has one slot at least; one with more
operands has as many as it needs. Of operand k of a slot, bit 2k is ``LAST`` and bit 2k + 1 ``ERASE``. An operand is a
32-bit register of the instruction, or the aligned pair of a 64-bit value if the instruction names its halves in no
other way. Sources come first, in their order, then results that are not sources as well. Predicates are no operands.

Flags act when the instruction has read the register or, if it writes it, has written it; also if no lane executes:

====================  =================================================================================================
0                     the region needs the register again
``LAST``              it does not, but a later one may: the register's place may be taken, its value must be kept
``LAST`` | ``ERASE``  nobody needs the value: the place is free, and there is no copy any more
====================  =================================================================================================

``bar.red`` ends its region, and its result comes when the barrier opens. The compiler puts a no-op behind it, and the
result is the operand of that.

Usage counts the registers whose number, modulo 8, is the bank's, operands of an instruction all at once. A result whose
last use in the region is its own write counts until the region ends, since it may still be on its way, or until a later
instruction names the register, which waits for it. In the warp *w* of an SM with *s* schedulers registers lie in the
bank (number + *w* ÷ *s*) modulo 8, so hardware rotates the usage by *w* ÷ *s*.
"""

from __future__ import annotations

from enum import IntEnum

BANKS = 8  # of the staging unit that a scheduler has
REGISTERS = 512  # of all staging units of an SM: section 4.6.2
REGION_REGISTERS = 32  # at a time, at most

WORD_BITS = 64
PAYLOAD_BITS = 54
SLOTS_SHIFT, SLOTS_BITS = 54, 6
KIND_SHIFT, KIND_BITS = 60, 2
MARK_SHIFT, MARK_BITS, MARK = 62, 2, 0b11

REGISTER_BITS = 8
ACTION_BITS = 2
ENTRY_BITS = REGISTER_BITS + ACTION_BITS

OPERANDS = 3  # of a slot
FLAG_BITS = 2  # of an operand
SLOT_BITS = OPERANDS * FLAG_BITS
LAST, ERASE = 0b01, 0b10

HEADER_USAGE_BITS = 3  # of a bank
HEADER_ENTRIES_SHIFT, HEADER_ENTRIES = BANKS * HEADER_USAGE_BITS, 3
ENTRIES = 5  # of an ``ENTRIES``
FLAGS_SLOTS = 9  # of a ``FLAGS``
SINGLE_SLOTS = 4
SINGLE_USAGE_SHIFT, SINGLE_USAGE_BITS = SINGLE_SLOTS * SLOT_BITS, 1
SINGLE_ENTRIES_SHIFT, SINGLE_ENTRIES = SINGLE_USAGE_SHIFT + BANKS * SINGLE_USAGE_BITS, 2
SINGLE_COUNT_SHIFT, SINGLE_COUNT_BITS = SINGLE_ENTRIES_SHIFT + SINGLE_ENTRIES * ENTRY_BITS, 2

MAX_SLOTS = (1 << SLOTS_BITS) - 1  # of a region
INSTRUCTION_SLOTS = 6  # of an instruction: it reads up to 12 registers, and writes up to 4
MAX_FLAGS = -(-MAX_SLOTS // FLAGS_SLOTS)  # words of a region
MAX_USAGE = (1 << HEADER_USAGE_BITS) - 1  # registers of a bank in a region


class Kind(IntEnum):
    """Of a metadata word."""

    HEADER = 0
    ENTRIES = 1
    FLAGS = 2
    SINGLE = 3


class Entry(IntEnum):
    """What to do with a register when a region starts."""

    NONE = 0
    PRELOAD = 1  # have it in the staging unit; its copy in memory stays
    PRELOAD_LAST = 2  # likewise, and drop the copy in memory: an invalidating read
    INVALIDATE = 3  # drop it wherever it is
