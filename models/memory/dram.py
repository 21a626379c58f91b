"""DRAM: channels with banks, open rows and first-ready, first-come-first-served scheduling (FR-FCFS).

Each bank serves its queued requests row hits first, then oldest first; a row stays open until a request for another one
closes it. Of the banks' next commands the channel issues the one that can go first (a column command before an activate
before a precharge, then the older request), at most one per DRAM cycle. Since a column command in the bus's present
direction can go earlier than one in the other, reads and writes batch themselves. A request that has waited for
``PATIENCE`` core cycles is served next whatever it costs.

A row's bits follow the column's; its bank is permuted by the row number (Zhang, Zhu and Zhang, MICRO 2000), so that
arrays with equal alignment do not fight for one bank.

Timings beyond the listed ones: the data bus is not shared by bursts; a precharge waits until its read's burst is out.
"""

from lockstep.models.jit import ctz, inline, jit, pointer_to, record, slot
from lockstep.models.memory.clock import cycle_after, cycle_of
from lockstep.models.memory.fabric import (
    FOREVER,
    OCCUPANCY,
    QUEUE,
    WRITE,
    enter,
    give,
    leave,
    memory_at,
    packet_of,
    push,
    slice_part,
    wake_up,
)
from lockstep.models.parameters import MAX_DRAM_BANKS

PATIENCE = 2048  # core cycles; several times what a full queue takes to drain at full bandwidth


ROW_HIT, ROW_CLOSED, ROW_CONFLICT = range(3)  # what a request found; indices of ``stats.rows``
COLUMN, ACTIVATE, PRECHARGE = range(3)

CHANNEL_STATISTICS = record(
    [
        ("reads", "i8"),
        ("writes", "i8"),
        ("bytes_read", "i8"),
        ("bytes_written", "i8"),
        ("rows", "i8", (3,)),
        ("activates", "i8"),
        ("precharges", "i8"),
        ("busy", "i8"),  # ticks in which the data bus moves data
    ]
)

# Times in ticks; see ``clock.py``.
BANK = record(
    [
        ("row", "i4"),  # the open row, -1: none
        ("wanted", "i4"),  # row of the request that the bank serves next ...
        ("current", "i4"),  # ... which request that is ...
        ("before", "i4"),  # ... which one is in front of it in the bank's queue, 0: none ...
        ("writes", "i4"),  # ... whether it is a write
        ("found", "i4"),  # what the next column command will have found
        ("age", "i8"),  # ... and the core cycle in which it came
        ("oldest", "i8"),  # core cycle in which the bank's oldest request came
        ("column_at", "i8"),  # earliest next column command
        ("activate_at", "i8"),
        ("precharge_at", "i8"),
        ("waiting", QUEUE),
    ]
)
CHANNEL = record(
    [
        ("limit", "i8"),  # requests that the queue takes
        ("spread", "i8"),  # slices per channel
        ("busy_banks", "i8"),  # bit mask of banks with requests
        ("first", "i4"),  # slices that wait for room in the queue, as 1 + index; 0: none
        ("last", "i4"),
        ("pick", "i8"),  # bank of the next command; -1: to be decided
        ("pick_time", "i8"),
        ("command_free", "i8"),
        ("read_free", "i8"),  # earliest next read command ...
        ("write_free", "i8"),
        ("activate_free", "i8"),
        ("queue", OCCUPANCY),
        ("stats", CHANNEL_STATISTICS),
        ("banks", BANK, (MAX_DRAM_BANKS,)),
    ]
)

_channel_at = pointer_to(CHANNEL)
_CHANNEL_BYTES = CHANNEL.itemsize


@inline
def channel_of(memory, index):
    return _channel_at(memory.channel_base + index * _CHANNEL_BYTES)


@inline
def dram_room(memory, channel, index, needs):
    """Whether slice ``index`` may push ``needs`` requests now. Otherwise it waits, in turn, and is woken."""
    gate = memory.gates[index]
    room = channel.limit - channel.queue.count
    if channel.first == 0 and room >= needs:
        return True
    if channel.first == index + 1 and room >= needs:
        channel.first = gate.next
        gate.needs = 0
        if channel.first != 0:
            wake_up(memory, slice_part(memory, channel.first - 1), memory.now + 1, memory.now)
        return True
    if gate.needs == 0:
        gate.needs = needs
        gate.next = 0
        if channel.first == 0:
            channel.first = index + 1
        else:
            memory.gates[channel.last - 1].next = index + 1
        channel.last = index + 1
    return False


@inline
def _serve(bank, index, packet, before):
    """Make a request the one that its bank serves next."""
    bank.current = index
    bank.before = before
    bank.wanted = packet.row
    bank.writes = packet.kind == WRITE
    bank.age = packet.entered


@jit
def dram_push(memory, index, request, now):
    """Queue the request of a slice, which has checked :func:`dram_room`; the channel sees it from the next cycle on."""
    channel = channel_of(memory, index)
    packet = packet_of(memory, request)
    chunk = packet.address >> memory.chunk_shift
    offset = packet.address - (chunk << memory.chunk_shift)
    place = ((chunk * channel.spread + packet.slice // memory.channels) << memory.chunk_shift) + offset
    rows = place >> memory.row_shift
    row = rows // memory.banks
    number = (rows + row) % memory.banks
    packet.row = row
    packet.bank = number
    packet.entered = now
    enter(channel.queue, now)
    bank = channel.banks[number]
    before = bank.waiting.tail
    alone = bank.waiting.head == 0
    push(memory, bank.waiting, request)
    if alone:
        channel.busy_banks |= 1 << number
        bank.oldest = now
        _serve(bank, request, packet, 0)
    elif bank.row == row and bank.wanted != row:
        _serve(bank, request, packet, before)
    else:
        return
    channel.pick = -1
    wake_up(memory, index, now + 1, now)


@inline
def _choose(memory, bank):
    """Choose the request that a bank serves next: the oldest row hit, or the oldest."""
    before = 0
    index = bank.waiting.head
    while index != 0:
        packet = packet_of(memory, index)
        if packet.row == bank.row:
            _serve(bank, index, packet, before)
            return
        before = index
        index = packet.next
    index = bank.waiting.head
    _serve(bank, index, packet_of(memory, index), 0)


@inline
def _command(bank):
    """A bank's next command."""
    if bank.row == bank.wanted:
        return COLUMN
    return ACTIVATE if bank.row < 0 else PRECHARGE


@inline
def _earliest(channel, bank, command):
    """The first tick at which a bank's next command may go."""
    if command == COLUMN:
        return max(bank.column_at, channel.write_free if bank.writes else channel.read_free)
    if command == ACTIVATE:
        return max(bank.activate_at, channel.activate_free)
    return bank.precharge_at


@inline
def _plan(memory, channel, now):
    """Decide the channel's next command."""
    soonest = max(channel.command_free, now * memory.dram.domain)
    pick, time, rank, age = -1, FOREVER, 0, 0
    overdue, since = -1, now - PATIENCE
    rest = channel.busy_banks
    while rest != 0:
        number = ctz(rest)
        rest &= rest - 1
        bank = channel.banks[number]
        command = _command(bank)
        at = max(_earliest(channel, bank, command), soonest)
        if at < time or (at == time and (command < rank or (command == rank and bank.age < age))):
            pick, time, rank, age = number, at, command, bank.age
        if bank.oldest < since:
            overdue, since = number, bank.oldest
    if overdue >= 0:
        bank = channel.banks[overdue]
        index = bank.waiting.head
        _serve(bank, index, packet_of(memory, index), 0)
        pick, time = overdue, max(_earliest(channel, bank, _command(bank)), soonest)
    channel.pick = pick
    channel.pick_time = time


@inline
def _column(memory, index, channel, number, time, now):
    """Read or write: the request leaves the queue."""
    bank = channel.banks[number]
    request = bank.current
    packet = packet_of(memory, request)
    before = bank.before
    queue = bank.waiting
    if before == 0:
        queue.head = packet.next
    else:
        packet_of(memory, before).next = packet.next
    if queue.tail == request:
        queue.tail = before
    queue.count -= 1
    leave(channel.queue, now, packet.entered)
    stats = channel.stats
    stats.rows[bank.found] += 1
    bank.found = ROW_HIT
    stats.busy += memory.burst
    gap = time + max(memory.tCCD, memory.burst)
    if packet.kind == WRITE:
        end = time + memory.tWL + memory.burst
        channel.read_free = max(end + memory.tCDLR, gap)
        channel.write_free = gap
        bank.precharge_at = max(bank.precharge_at, end + memory.tWR)
        stats.writes += 1
        stats.bytes_written += memory.line_bytes
        give(memory, request)
    else:
        end = time + memory.tCL + memory.burst
        channel.read_free = gap
        channel.write_free = max(end - memory.tWL, gap)
        bank.precharge_at = max(bank.precharge_at, time + memory.burst)
        stats.reads += 1
        stats.bytes_read += memory.line_bytes
        packet.ready = cycle_after(memory.dram, end) + memory.return_delay
        gate = memory.gates[packet.slice]
        if gate.returns.head == 0:
            wake_up(memory, slice_part(memory, packet.slice), packet.ready, now)
        push(memory, gate.returns, request)
    if queue.head == 0:
        channel.busy_banks &= ~(1 << number)
    else:
        bank.oldest = packet_of(memory, queue.head).entered
        _choose(memory, bank)
    first = channel.first - 1
    if first >= 0 and channel.limit - channel.queue.count >= memory.gates[first].needs:
        wake_up(memory, slice_part(memory, first), now, now)


@inline
def _row(memory, channel, bank, time):
    """Activate or precharge a bank."""
    if bank.row < 0:
        bank.row = bank.wanted
        bank.column_at = time + memory.tRCD
        bank.precharge_at = time + memory.tRAS
        bank.activate_at = time + memory.tRC
        channel.activate_free = time + memory.tRRD
        bank.found = max(bank.found, ROW_CLOSED)
        channel.stats.activates += 1
    else:
        bank.row = -1
        bank.activate_at = max(bank.activate_at, time + memory.tRP)
        bank.found = ROW_CONFLICT
        channel.stats.precharges += 1


@slot
def visit_channel(where, index):
    """Issue the commands of a channel that are due in this core cycle."""
    memory = memory_at(where)
    now = memory.now
    channel = channel_of(memory, index)
    end = (now + 1) * memory.dram.domain
    wake = FOREVER
    while channel.busy_banks != 0:
        if channel.pick < 0:
            _plan(memory, channel, now)
        time = channel.pick_time
        if time >= end:
            wake = cycle_of(memory.dram, time)
            break
        number = channel.pick
        bank = channel.banks[number]
        channel.pick = -1
        channel.command_free = time + memory.dram.core
        if bank.row == bank.wanted:
            _column(memory, index, channel, number, time, now)
        else:
            _row(memory, channel, bank, time)
    if wake < FOREVER:
        wake_up(memory, index, wake, now)
    return 0
