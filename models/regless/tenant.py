"""RegLess in the SM's frame: registers live in the staging units of the shards, one for each scheduler.

A cycle of the hardware begins when the SM's mechanisms are stepped (:func:`step`): the clock edge of the cycle before,
then what follows from its outputs, and the inputs. It ends with the L1's next cycle. In between, instructions issue and
execute. The file of the frame holds what the staging units have delivered to an instruction that waits or executes, and
results on their way; all else in it is poison.
"""

from __future__ import annotations

from typing import Any

from lockstep.models.core.fetch import take_word
from lockstep.models.core.frame import KINDS, LATER, UNEXPLAINED, WARP_END, WARP_START, reserve_scratchpad
from lockstep.models.core.scoreboard import release
from lockstep.models.core.state import SM, at_instruction, instruction_of, may_touch_scratchpad
from lockstep.models.core.warp import PUT_OFF, register_address
from lockstep.models.execution.isa import LANES, Control, Fault, Group
from lockstep.models.jit import (
    addressof,
    assign,
    call,
    clear,
    ctz,
    i64,
    inline,
    jit,
    pointer_to,
    popcount,
    slots,
    u32,
    without_lowest,
    words_i16,
    words_i32,
    words_u32,
    words_u64,
)
from lockstep.models.lsu.unit import LSU
from lockstep.models.masks import next_after
from lockstep.models.observe import causes
from lockstep.models.regless import lines
from lockstep.models.regless.operand_staging_unit import VALUE
from lockstep.models.regless.state import ALL, CM, COMP, MD, OSU, STATE, at_config
from lockstep.models.regless.wires import busy, connect, edge, reset_inputs, with_neighbours
from lockstep.models.time import NEVER
from lockstep.spec.register_regions import (
    BANKS,
    FLAG_BITS,
    KIND_BITS,
    KIND_SHIFT,
    OPERANDS,
    PAYLOAD_BITS,
    SLOTS_BITS,
    SLOTS_SHIFT,
)
from lockstep.spec.regless.parameters import MAX_BANK_LINES, MAX_REGISTERS, POISON

PAIR = 256  # in the table of operands: the lower register of a pair

at_value = pointer_to(VALUE)


# ------------------------------------------------------------------------------------------------------- instructions


@inline
def _operand(state, index):
    """An operand of the kernel: its register, or the lower one of its pair, and how many they are."""
    number = i64(words_i16(i64(state.tables.regions_operands) + 2 * index, 1)[0])
    return (number - PAIR, i64(2)) if number >= PAIR else (number, i64(1))


@inline
def _first_operand(state, pc):
    """The index of an instruction's first operand."""
    return i64(words_i32(i64(state.tables.regions_operand) + 4 * pc, 1)[0])


@inline
def _has(mask, number):
    return (i64(mask[number >> 6]) >> (number & 63)) & 1 != 0


@inline
def _delivers(instruction):
    """Whether an instruction with an operand is the no-op that has the result of the barrier before it."""
    return instruction.group == Group.CONTROL and instruction.op == Control.NOP


@inline
def _ends(warp, instruction, lanes):
    """Whether the warp ends with an instruction."""
    exits = instruction.group == Group.CONTROL and instruction.op == Control.EXIT
    return exits and i64(warp.alive) & ~lanes == 0


@jit
def read(state, sm):
    """An instruction issues: its operands come later, if it has any."""
    operand = sm.frame.operand
    slot, pc = i64(operand.slot), i64(operand.pc)
    schedulers = i64(at_config(i64(sm.config)).core.schedulers)
    k, w = slot % schedulers, slot // schedulers
    queues, md, cm = state.queues[k], state.shard[k].region_metadata, state.shard[k].capacity_manager
    first, end = _first_operand(state, pc), _first_operand(state, pc + 1)
    md.io.i.issue.valid = 1
    md.io.i.issue.payload.warp = w
    md.io.i.issue.payload.slots = max((end - first + OPERANDS - 1) // OPERANDS, 1)
    if call(md.binding.comb, md.binding.handle, addressof(md.io)) != 0:
        sm.fault = Fault.DIFFERENCE
    instruction = at_instruction(i64(operand.instruction))
    if md.io.c.last.valid != 0:
        cm.io.i.last.valid = 1
        cm.io.i.last.payload.warp = w
        cm.io.i.last.payload.end = i64(_ends(sm.warps[slot], instruction, i64(operand.lanes)))
        queues.closing |= i64(1) << w
        state.counts.region_cycles += i64(operand.now) + 1
    queues.busy |= MD | CM
    queues.issued = 1
    queues.issued_slot = slot
    queues.issued_pc = pc
    sm.frame.operands.wake = i64(operand.now) + 1
    if first == end:
        return i64(operand.now) + 1
    waiting = state.waiting[slot]
    place = (waiting.first + waiting.count) % PUT_OFF
    waiting.count += 1
    waiting.pc[place] = pc
    waiting.left[place] = i64(_delivers(instruction))
    for index in range(first, end):
        _, registers = _operand(state, index)
        waiting.left[place] += registers
    state.waits |= i64(1) << slot
    return i64(LATER)


@jit
def _access(state, sm, queues, md, k, schedulers):
    """What has issued in the last cycle: its accesses go to their banks, with the flags of its operands."""
    slot, pc = i64(queues.issued_slot), i64(queues.issued_pc)
    queues.issued = 0
    first, end = _first_operand(state, pc), _first_operand(state, pc + 1)
    if first == end:
        return
    instruction = instruction_of(sm.warps[slot], pc)
    waiting = state.waiting[slot]
    place = (waiting.first + waiting.count - 1) % PUT_OFF
    delivers = _delivers(instruction)
    flags = md.io.o.flags.payload.slots
    for index in range(first, end):
        at = index - first
        flag = (i64(flags[at // OPERANDS]) >> FLAG_BITS * (at % OPERANDS)) & ((1 << FLAG_BITS) - 1)
        number, registers = _operand(state, index)
        source = not delivers and not _written(instruction, number, registers)
        for register in range(number, number + registers):
            source |= _reads(instruction, register)
        for register in range(number, number + registers):
            written = delivers or _has(instruction.writes, register)
            if written:
                state.flags[slot * MAX_REGISTERS + register] = flag
            b = (slot // schedulers + register) % BANKS
            bank = queues.bank[b]
            access = queues.accesses[b].ring[bank.last % MAX_BANK_LINES]
            bank.last += 1
            queues.asked |= i64(1) << b
            access.slot = slot
            access.number = register
            access.result = i64(not source)
            access.flags = 0 if written else flag
            access.written = i64(written)
            access.place = place


@inline
def _written(instruction, number, registers):
    found = False
    for register in range(number, number + registers):
        found |= _has(instruction.writes, register)
    return found


@inline
def _reads(instruction, register):
    found = False
    for k in range(instruction.reads):
        found |= instruction.read[k] == register
    return found


# ------------------------------------------------------------------------------------------------- operands and results


@jit
def _operands(state, sm, queues, shard):
    """What the banks deliver goes to the warps' registers; what they can take next is presented to them."""
    osu, cm = shard.operand_staging_unit.io, shard.capacity_manager.io
    left = i64(queues.reserved)
    queues.reserved = 0
    while left != 0:
        cm.i.reserved[ctz(left)].valid = 0
        left = without_lowest(left)
    left = i64(queues.awaited)
    while left != 0:
        b = ctz(left)
        left = without_lowest(left)
        bank, operand = queues.bank[b], osu.o.operand[b]
        if operand.valid != 0:
            access = queues.accesses[b].ring[bank.first % MAX_BANK_LINES]
            bank.first += 1
            if bank.first == bank.next:
                queues.awaited &= ~(i64(1) << b)
            if bank.first == bank.last:  # the ring is empty, and begins again where memory is in the cache
                bank.first = bank.next = bank.last = 0
            slot, number = i64(access.slot), i64(access.number)
            if operand.payload.number != number:
                sm.fault = Fault.DIFFERENCE
            if access.result == 0:
                state.counts.reads += 1
                assign(at_value(register_address(sm.warps[slot], number)), operand.payload)
            waiting = state.waiting[slot]
            waiting.left[access.place] -= 1
            if access.written != 0:
                queues.reserved |= i64(1) << b
                cm.i.reserved[b].valid = 1
                cm.i.reserved[b].payload.warp = operand.payload.warp
            pc = i64(waiting.pc[access.place])
            if waiting.left[access.place] == 1 and _delivers(instruction_of(sm.warps[slot], pc)):
                _result(state, queues, b, slot, number, number, pc, i64(sm.frame.now))
    left = i64(queues.asked)
    while left != 0:
        b = ctz(left)
        left = without_lowest(left)
        bank, into = queues.bank[b], osu.i.access[b]
        into.valid = i64(bank.next != bank.last)
        if into.valid == 0:
            queues.asked &= ~(i64(1) << b)
        else:
            access = queues.accesses[b].ring[bank.next % MAX_BANK_LINES]
            into.payload.warp = i64(access.slot) // i64(at_config(i64(sm.config)).core.schedulers)
            into.payload.number = access.number
            into.payload.result = access.result
            into.payload.flags = access.flags
            if osu.o.access[b].ready != 0:
                bank.next += 1
                queues.awaited |= i64(1) << b


@jit
def take(state, sm):
    """An instruction has executed: its results stay where they are, for later; its sources are gone."""
    operand = sm.frame.operand
    slot, warp = i64(operand.slot), sm.warps[operand.slot]
    instruction = at_instruction(i64(operand.instruction))
    for word in range(4):
        bits, written = i64(instruction.need[word]), i64(instruction.writes[word])
        while bits != 0:
            bit = ctz(bits)
            bits = without_lowest(bits)
            if (written >> bit) & 1 != 0:
                state.lanes[slot * MAX_REGISTERS + 64 * word + bit] = u32(i64(operand.lanes))
            else:
                _poison(warp, 64 * word + bit)
    return i64(0)


@inline
def _poison(warp, register):
    words = words_u32(register_address(warp, register), LANES)
    for lane in range(LANES):
        words[lane] = POISON


@jit
def write(state, sm):
    """The results of an instruction will be there: they are to be written then, each by its bank."""
    operand = sm.frame.operand
    slot, ready = i64(operand.slot), i64(operand.ready)
    instruction = at_instruction(i64(operand.instruction))
    schedulers = i64(at_config(i64(sm.config)).core.schedulers)
    queues = state.queues[slot % schedulers]
    first = i64(-1)
    for word in range(4):
        bits = i64(instruction.writes[word])
        while bits != 0:
            number = 64 * word + ctz(bits)
            bits = without_lowest(bits)
            first = number if first < 0 else first
            state.left[slot * MAX_REGISTERS + first] += 1
            bank = (slot // schedulers + number) % BANKS
            _result(state, queues, bank, slot, number, first, i64(operand.pc), ready)
    if first < 0:
        return i64(0)
    sm.frame.operands.wake = min(i64(sm.frame.operands.wake), ready)
    return i64(LATER)


@inline
def _result(state, queues, b, slot, number, first, pc, ready):
    bank = queues.bank[b]
    result = queues.results[b].result[bank.results]
    bank.results += 1
    queues.unwritten |= i64(1) << b
    result.ready = ready
    result.pc = pc
    result.slot = slot
    result.number = number
    result.first = first
    queues.due = min(i64(queues.due), ready)


@inline
def _results(state, sm, config, queues, shard, schedulers, now):
    """Write the results that are there, one for each bank, the longest there first."""
    osu, cm = shard.operand_staging_unit.io, shard.capacity_manager.io
    left = i64(queues.written)
    queues.written = 0
    while left != 0:
        b = ctz(left)
        left = without_lowest(left)
        osu.i.write[b].valid = 0
        cm.i.written[b].valid = 0
    if queues.due > now:
        return
    queues.due = NEVER
    left = i64(queues.unwritten)
    while left != 0:
        b = ctz(left)
        left = without_lowest(left)
        _write(state, sm, config, queues, osu, cm, b, schedulers, now)
        bank = queues.bank[b]
        if bank.results == 0:
            queues.unwritten &= ~(i64(1) << b)
        for k in range(bank.results):
            queues.due = min(i64(queues.due), max(i64(queues.results[b].result[k].ready), now + 1))


@jit
def _write(state, sm, config, queues, osu, cm, b, schedulers, now):
    """Write a bank's next result, if one is there."""
    bank, results = queues.bank[b], queues.results[b]
    chosen = i64(0)
    for k in range(1, bank.results):
        if results.result[k].ready < results.result[chosen].ready:
            chosen = i64(k)
    result = results.result[chosen]
    if result.ready > now:
        return
    slot, number, first, pc = i64(result.slot), i64(result.number), i64(result.first), i64(result.pc)
    bank.results -= 1
    for k in range(chosen, bank.results):
        assign(results.result[k], results.result[k + 1])
    event, place = osu.i.write[b], slot * MAX_REGISTERS + number
    queues.written |= i64(1) << b
    event.valid = 1
    event.payload.warp = slot // schedulers
    event.payload.number = number
    event.payload.flags = state.flags[place]
    event.payload.mask = state.lanes[place]
    assign(event.payload, at_value(register_address(sm.warps[slot], number)))
    _poison(sm.warps[slot], number)
    cm.i.written[b].valid = 1
    cm.i.written[b].payload.warp = slot // schedulers
    state.counts.writes += 1
    if _delivers(instruction_of(sm.warps[slot], pc)):
        waiting = state.waiting[slot]
        waiting.left[(waiting.first + waiting.count - 1) % PUT_OFF] = 0
        return
    state.left[slot * MAX_REGISTERS + first] -= 1
    if state.left[slot * MAX_REGISTERS + first] == 0:
        release(sm, config, slot, pc, now)


# --------------------------------------------------------------------------------------------------------------- cycles


@jit
def step(state, sm):
    """The clock edge of the last cycle in which we were stepped; nothing changes in those since. Then this cycle."""
    now = i64(sm.frame.now)
    config = at_config(i64(sm.config))
    schedulers = i64(config.core.schedulers)
    arbiter = state.hardware.shard_arbiter
    different, wake, first = i64(0), i64(NEVER), i64(0)
    if state.began == 0:
        first = ALL
        _begin(state, sm, schedulers)
    elif arbiter.io.c.access.valid != 0:
        different = call(arbiter.binding.step, arbiter.binding.handle, addressof(arbiter.io))
    for k in range(schedulers):
        queues, shard = state.queues[k], state.shard[k]
        different |= edge(shard, i64(queues.busy))
        touched = first | with_neighbours(i64(queues.busy))
        touched |= _cycle(state, sm, config, queues, shard, k, schedulers, now)
        if touched != 0:
            different |= connect(shard, state.counts, touched)
        queues.busy = busy(shard, touched)
        if _has_work(queues):
            wake = now + 1
        wake = min(wake, i64(queues.due))
    different |= lines.arbitrate(state, sm)
    if arbiter.io.c.access.valid != 0:
        wake = now + 1
    if _deliver(state, sm):
        wake = now + 1
    if different != 0:
        sm.fault = Fault.DIFFERENCE
    return max(wake, now + 1)


@inline
def _has_work(queues):
    """Whether something of a shard will change in the next cycle by itself."""
    waiting = queues.busy | queues.flushes | queues.begins | queues.ended | queues.closing | queues.answers
    return waiting | queues.asked != 0


@jit
def _begin(state, sm, schedulers):
    """A launch begins: no input is valid."""
    state.began = 1
    state.closed = -1
    state.base = lines.base(sm)
    clear(state.hardware.shard_arbiter.io.i)
    for k in range(schedulers):
        reset_inputs(state.shard[k])
        state.queues[k].due = NEVER


@jit
def _cycle(state, sm, config, queues, shard, k, schedulers, now):
    """A cycle of a shard, up to issue; returns the blocks that have other inputs from outside than before."""
    md, cm, osu = shard.region_metadata, shard.capacity_manager.io, shard.operand_staging_unit.io
    if queues.issued != 0:
        _access(state, sm, queues, md, k, schedulers)
    md.io.i.issue.valid = 0
    if md.io.c.last.valid != 0 and call(md.binding.comb, md.binding.handle, addressof(md.io)) != 0:
        sm.fault = Fault.DIFFERENCE
    cm.i.last.valid = 0
    _operands(state, sm, queues, shard)
    _results(state, sm, config, queues, shard, schedulers, now)
    _flush(sm, queues, md.io, k, schedulers)
    _close(state, queues, cm, k, schedulers)
    _decode(state, sm, config, queues, md.io, k, schedulers)
    _place(queues, cm, osu)
    if md.io.o.region.valid != 0:
        _announce(state, sm, queues, i64(md.io.o.region.payload.warp), k, schedulers)
    if cm.o.start.valid != 0:
        started = i64(1) << i64(cm.o.start.payload.warp)
        queues.announced &= ~started
        queues.started |= started
    queues.started &= ~i64(cm.o.active)
    barred = i64(_warps(i64(sm.at_barrier) & i64(sm.partition[k]), schedulers))
    _reserve(sm, queues, i64(queues.unreserved) & ~barred, k, schedulers)
    barred |= i64(queues.unreserved)
    touched = MD if md.io.i.word.valid | md.io.i.flush.valid != 0 else i64(0)
    events = queues.reserved | queues.written | cm.i.begin.valid | cm.i.delivered.valid | (barred ^ i64(cm.i.barred))
    touched |= CM if events != 0 else 0
    touched |= OSU if queues.asked | queues.written | osu.i.finish.valid != 0 else 0
    cm.i.barred = barred
    touched |= COMP if lines.show_answer(queues, shard.register_compressor, schedulers) else 0
    return touched


@inline
def _warps(slots, schedulers):
    """Warp slots of a shard, as its warps."""
    warps = i64(0)
    while slots != 0:
        warps |= i64(1) << ctz(slots) // schedulers
        slots = without_lowest(slots)
    return warps


@inline
def _slots(warps, k, schedulers):
    """The warp slots of warps of a shard."""
    slots = i64(0)
    while warps != 0:
        slots |= i64(1) << ctz(warps) * schedulers + k
        warps = without_lowest(warps)
    return slots


@inline
def _announce(state, sm, queues, w, k, schedulers):
    """A warp's next region is known. If it accesses the scratchpad, what that needs must be reserved before it starts.

    Else a warp that waits for its CTA's partner would keep lines that the partner may need to get on.
    """
    bit = i64(1) << w
    queues.announced |= bit
    if sm.frame.claims != 0 and _touches_scratchpad(state, sm.warps[w * schedulers + k]):
        queues.unreserved |= bit


@inline
def _touches_scratchpad(state, warp):
    """Whether the region that begins with a warp's next instruction may access the scratchpad."""
    pc, found = i64(warp.pc), False
    while not found and pc < warp.length:
        found = may_touch_scratchpad(instruction_of(warp, pc))
        pc += 1
        if pc < warp.length and words_i32(i64(state.tables.regions_first) + 4 * pc, 1)[0] >= 0:
            return found
    return found


@inline
def _reserve(sm, queues, left, k, schedulers):
    """Reserve what the regions of some warps need for their accesses to the scratchpad, where that is possible."""
    while left != 0:
        w = ctz(left)
        left = without_lowest(left)
        if reserve_scratchpad(sm.frame, addressof(sm), w * schedulers + k):
            queues.unreserved &= ~(i64(1) << w)


@inline
def _flush(sm, queues, md, k, schedulers):
    """Warps have jumped: what has been decoded for them is dropped, of one warp in a cycle."""
    jumped = i64(sm.flushed) & i64(sm.partition[k])
    if jumped != 0:
        sm.flushed = i64(sm.flushed) & ~jumped
        queues.flushes |= _warps(jumped, schedulers)
    md.i.flush.valid = i64(queues.flushes != 0)
    if queues.flushes != 0:
        md.i.flush.payload.warp = ctz(i64(queues.flushes))


@inline
def _close(state, queues, cm, k, schedulers):
    """A region has issued everything, and has all operands: its warp's jump, if there is one, is known."""
    cm.i.delivered.valid = 0
    left = i64(queues.closing) & ~without_lowest(i64(queues.flushes))
    while left != 0:
        w = ctz(left)
        left = without_lowest(left)
        if state.waiting[w * schedulers + k].count == 0:
            cm.i.delivered.valid = 1
            cm.i.delivered.payload.warp = w
            queues.closing &= ~(i64(1) << w)
            return


@inline
def _decode(state, sm, config, queues, md, k, schedulers):
    """Take a metadata word out of a warp's buffer, of one warp in a cycle, in turn."""
    md.i.word.valid = 0
    if md.o.room != queues.room:
        queues.roomy ^= _slots(i64(md.o.room ^ queues.room), k, schedulers)
        queues.room = md.o.room
    there = i64(sm.worded) & i64(sm.partition[k]) & i64(queues.roomy) & ~_slots(i64(queues.flushes), k, schedulers)
    if there != 0:
        chosen = i64(next_after(there, i64(queues.decoded)))
        word = i64(take_word(sm, config, chosen))
        value = i64(words_u64(i64(state.tables.regions_words) + 8 * word, 1)[0])
        queues.decoded = chosen
        queues.word = word
        state.counts.words += 1
        md.i.word.valid = 1
        payload = md.i.word.payload
        payload.warp = chosen // schedulers
        payload.word.payload = value & ((1 << PAYLOAD_BITS) - 1)
        payload.word.slots = (value >> SLOTS_SHIFT) & ((1 << SLOTS_BITS) - 1)
        payload.word.kind = (value >> KIND_SHIFT) & ((1 << KIND_BITS) - 1)
    queues.flushes = without_lowest(i64(queues.flushes)) if queues.flushes != 0 else i64(0)


@inline
def _place(queues, cm, osu):
    """Warps begin and end; one begins when the one before it in its slot is finished."""
    queues.ended |= cm.o.ended
    osu.i.finish.valid = i64(queues.ended != 0)
    if queues.ended != 0:
        osu.i.finish.payload.warp = ctz(i64(queues.ended))
        if osu.o.finish.ready != 0:
            gone = i64(1) << i64(osu.i.finish.payload.warp)
            queues.ended &= ~gone
            queues.present &= ~gone
    begins = i64(queues.begins) & ~i64(queues.present)
    cm.i.begin.valid = i64(begins != 0)
    if begins != 0:
        bit = i64(1) << ctz(begins)
        cm.i.begin.payload.warp = ctz(begins)
        queues.begins &= ~bit
        queues.present |= bit


@inline
def _deliver(state, sm):
    """The oldest instructions of warps that have all their operands execute. Returns whether there are any."""
    left = i64(state.waits)
    while left != 0:
        slot = ctz(left)
        left = without_lowest(left)
        waiting = state.waiting[slot]
        if waiting.left[waiting.first] == 0:
            sm.frame.delivered |= i64(1) << slot
            waiting.first = (waiting.first + 1) % PUT_OFF
            waiting.count -= 1
            if waiting.count == 0:
                state.waits &= ~(i64(1) << slot)
    return sm.frame.delivered != 0


# ---------------------------------------------------------------------------------------------------------------- gates


@jit
def update(state, sm):
    """Warps issue that are active, and whose words of the present region are all decoded."""
    schedulers = i64(at_config(i64(sm.config)).core.schedulers)
    for k in range(schedulers):
        active, queues = i64(state.shard[k].capacity_manager.io.o.active), state.queues[k]
        if active != queues.active:
            state.counts.region_cycles -= i64(sm.frame.now) * popcount(active & ~i64(queues.active))
            state.closed ^= _slots(active ^ i64(queues.active), k, schedulers)
            queues.active = active
    closed = i64(state.closed) | _undecoded(state, sm, schedulers)
    gate = sm.frame.gate[state.gate]
    for kind in range(KINDS):
        gate.closed[kind] = closed
    return i64(NEVER)


@inline
def _undecoded(state, sm, schedulers):
    """Active warps with words in their buffer that belong to the next instruction's region."""
    found = i64(0)
    left = i64(sm.worded) & ~i64(state.closed)
    while left != 0:
        slot = ctz(left)
        left = without_lowest(left)
        warp = sm.warps[slot]
        if warp.first_word < words_i32(i64(warp.words_to) + 4 * i64(warp.pc), 1)[0]:
            found |= i64(1) << slot
    for k in range(schedulers):
        queues = state.queues[k]
        if state.shard[k].region_metadata.io.i.word.valid != 0:
            warp = sm.warps[queues.decoded]
            if queues.word < words_i32(i64(warp.words_to) + 4 * i64(warp.pc), 1)[0]:
                found |= i64(1) << i64(queues.decoded)
    return found


@jit
def hear(state, sm):
    """A warp starts, or ends."""
    events = sm.frame.events
    if events.kind != WARP_START and events.kind != WARP_END:
        return i64(0)
    schedulers = i64(at_config(i64(sm.config)).core.schedulers)
    queues, bit = state.queues[events.slot % schedulers], i64(1) << i64(events.slot) // schedulers
    if events.kind == WARP_START:
        queues.begins |= bit
    else:
        queues.flushes |= bit
    sm.frame.operands.wake = min(i64(sm.frame.operands.wake), i64(events.now) + 1)
    return i64(0)


# ----------------------------------------------------------------------------------------------------------- diagnosis


@jit
def _cause(state, sm, slot):
    """Why a warp's gate is closed; UNEXPLAINED if it is open, or waits for another mechanism."""
    schedulers = i64(at_config(i64(sm.config)).core.schedulers)
    queues, cm = state.queues[slot % schedulers], state.shard[slot % schedulers].capacity_manager.io
    bit = i64(1) << slot // schedulers
    if (i64(state.closed) >> slot) & 1 == 0:
        return i64(causes.METADATA) if _undecoded(state, sm, schedulers) & (i64(1) << slot) != 0 else i64(UNEXPLAINED)
    if i64(queues.announced) & bit != 0:
        return i64(UNEXPLAINED) if i64(queues.unreserved) & bit != 0 else i64(causes.CAPACITY)
    if i64(queues.started) & bit != 0:
        return i64(causes.PRELOADS)
    if i64(queues.closing) & bit != 0:
        return i64(causes.OPERANDS)
    return i64(causes.METADATA) if i64(cm.o.wanted | queues.begins) & bit != 0 else i64(causes.DRAINING)


@jit
def explain(state, sm):
    """Why the gate of the warp slot in ``asked`` is closed."""
    return i64(_cause(state, sm, i64(sm.frame.asked)))


WAITS = {
    causes.CAPACITY: "capacity: its region needs more lines than the staging unit of its scheduler has free",
    causes.PRELOADS: "the registers of its region, which are on their way to the staging unit",
    causes.OPERANDS: "the operands of the last instruction of its region",
    causes.METADATA: "the metadata words of its region",
    causes.DRAINING: "results of its last region",
}


def waits(state: Any, sm: Any, slot: int) -> str:
    """What of a region a warp waits for that may not issue."""
    return WAITS.get(int(_cause(state, sm, slot)), "")


TENANTS: dict[str, dict[str, Any]] = {
    "operands": slots(STATE, SM, read=read, step=step, take=take, write=write),
    "gates": slots(STATE, SM, update=update, explain=explain),
    "events": slots(STATE, SM, hear=hear),
    "l1_clients": slots(STATE, LSU, ask=lines.ask, accepted=lines.accepted, answered=lines.answered),
}
