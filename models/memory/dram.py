"""DRAM: channels with banks, open rows and first-ready, first-come-first-served scheduling (FR-FCFS).

Each bank serves its queued requests row hits first, then oldest first; a row stays open until a request for another one
closes it. Of the banks' next commands the channel issues the one that can go first (a column command before an activate
before a precharge, then the older request), at most one per DRAM cycle. Since a column command in the bus's present
direction can go earlier than one in the other, reads and writes batch themselves. A request that has waited for
``PATIENCE`` core cycles is served next whatever it costs.

A row's bits follow the column's; its bank is permuted by the row number (Zhang, Zhu and Zhang, MICRO 2000), so that
arrays with equal alignment do not fight for one bank.

A request is for sectors of a line, whose bursts follow each other. A burst takes ``dram.tCCD`` at least; what the bus
moves beyond the sector is thrown away.

Timings beyond the listed ones: the data bus is not shared by bursts; a precharge waits until its read's burst is out.
"""

from lockstep.models.jit import addressof, ctz, inline, jit, pointer_to, record, slot, without_lowest
from lockstep.models.memory.clock import cycle_after, cycle_of
from lockstep.models.memory.fabric import (
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
from lockstep.models.share import exclude, include, words_of
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_DRAM_BANKS

PATIENCE = 2048  # core cycles; several times what a full queue takes to drain at full bandwidth


ROW_HIT, ROW_CLOSED, ROW_CONFLICT = range(3)  # what a request found; indices of ``stats.rows``
READ_COLUMN, WRITE_COLUMN, ACTIVATE, PRECHARGE = range(4)  # commands; those for columns go first

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
STATISTICS_WORDS = words_of(CHANNEL_STATISTICS)

# Times in ticks; see ``clock.py``.
BANK = record(
    [
        ("row", "i4"),  # the open row, -1: none
        ("wanted", "i4"),  # row of the request that the bank serves next ...
        ("current", "i4"),  # ... which request that is ...
        ("before", "i4"),  # ... which one is in front of it in the bank's queue, 0: none ...
        ("command", "i4"),  # ... which command it takes next ...
        ("found", "i4"),  # (what the next column command will have found)
        ("ready", "i8"),  # ... when the bank is ready for that ...
        ("age", "i8"),  # ... and the core cycle in which the request came
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
        ("free_command", "i8"),
        ("free", "i8", (4,)),  # earliest next command of each kind
        ("queue", OCCUPANCY),
        ("stats", CHANNEL_STATISTICS),
        ("banks", BANK, (MAX_DRAM_BANKS,)),
        ("share", CHANNEL_STATISTICS),
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
    first = channel.first
    if (first == 0 or first == index + 1) and channel.limit - channel.queue.count >= needs:
        return True
    if gate.needs == 0:
        gate.next = 0
        if first == 0:
            channel.first = index + 1
        else:
            memory.gates[channel.last - 1].next = index + 1
        channel.last = index + 1
    gate.needs = needs
    return False


@inline
def dram_waited(memory, channel, gate):
    """The slice that waited first goes on; it is the next one's turn."""
    gate.needs = 0
    channel.first = gate.next
    if channel.first != 0:
        wake_up(memory, slice_part(memory, channel.first - 1), memory.now + 1, memory.now)


@inline
def _prepare(memory, bank):
    """Work out a bank's next command, after its request or its row has changed."""
    if bank.row == bank.wanted:
        bank.command = WRITE_COLUMN if packet_of(memory, bank.current).kind == WRITE else READ_COLUMN
        bank.ready = bank.column_at
    elif bank.row < 0:
        bank.command = ACTIVATE
        bank.ready = bank.activate_at
    else:
        bank.command = PRECHARGE
        bank.ready = bank.precharge_at


@inline
def _serve(memory, bank, index, before):
    """Make a request the one that its bank serves next."""
    packet = packet_of(memory, index)
    bank.current = index
    bank.before = before
    bank.wanted = packet.row
    bank.age = packet.entered
    _prepare(memory, bank)


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
    packet.entered = now
    enter(channel.queue, now)
    bank = channel.banks[number]
    before = bank.waiting.tail
    alone = bank.waiting.head == 0
    push(memory, bank.waiting, request)
    if alone:
        channel.busy_banks |= 1 << number
        bank.oldest = now
        _serve(memory, bank, request, 0)
    elif bank.row == row and bank.wanted != row:
        _serve(memory, bank, request, before)
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
            break
        before = index
        index = packet.next
    if index != 0:
        _serve(memory, bank, index, before)
    else:
        _serve(memory, bank, bank.waiting.head, 0)


@inline
def _plan(memory, channel, now):
    """Decide the channel's next command."""
    soonest = max(channel.free_command, now * memory.dram.domain)
    pick, best, age = -1, NEVER, 0
    overdue, since = -1, now - PATIENCE
    rest = channel.busy_banks
    while rest != 0:
        number = ctz(rest)
        rest = without_lowest(rest)
        bank = channel.banks[number]
        # The time, and below it a bit for the commands that yield to those for columns.
        key = max(max(bank.ready, channel.free[bank.command]), soonest) * 2 + (bank.command >> 1)
        if key <= best and (key < best or bank.age < age):
            pick, best, age = number, key, bank.age
        if bank.oldest < since:
            overdue, since = number, bank.oldest
    if overdue >= 0:
        bank = channel.banks[overdue]
        _serve(memory, bank, bank.waiting.head, 0)
        pick, best = overdue, max(max(bank.ready, channel.free[bank.command]), soonest) * 2
    channel.pick = pick
    channel.pick_time = best // 2


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
    count = packet.bytes >> memory.sector_shift
    stats.rows[bank.found] += 1
    stats.rows[ROW_HIT] += count - 1
    bank.found = ROW_HIT
    data = count * memory.burst
    stats.busy += data
    gap = time + data
    if packet.kind == WRITE:
        end = time + memory.tWL + data
        channel.free[READ_COLUMN] = max(end + memory.tCDLR, gap)
        channel.free[WRITE_COLUMN] = gap
        bank.precharge_at = max(bank.precharge_at, end + memory.tWR)
        stats.writes += count
        stats.bytes_written += packet.bytes
        give(memory, request)
    else:
        end = time + memory.tCL + data
        channel.free[READ_COLUMN] = gap
        channel.free[WRITE_COLUMN] = max(end - memory.tWL, gap)
        bank.precharge_at = max(bank.precharge_at, time + data)
        stats.reads += count
        stats.bytes_read += packet.bytes
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
        channel.free[ACTIVATE] = time + memory.tRRD
        bank.found = max(bank.found, ROW_CLOSED)
        channel.stats.activates += 1
    else:
        bank.row = -1
        bank.activate_at = max(bank.activate_at, time + memory.tRP)
        bank.found = ROW_CONFLICT
        channel.stats.precharges += 1
    _prepare(memory, bank)


@slot
def visit_channel(where, index):
    """Issue the commands of a channel that are due in this core cycle."""
    memory = memory_at(where)
    now = memory.now
    channel = channel_of(memory, index)
    end = (now + 1) * memory.dram.domain
    wake = NEVER
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
        channel.free_command = time + memory.dram.core
        grid = packet_of(memory, bank.current).grid
        if grid != 0:
            exclude(addressof(channel.share), addressof(channel.stats), STATISTICS_WORDS)
        if bank.command < ACTIVATE:
            _column(memory, index, channel, number, time, now)
        else:
            _row(memory, channel, bank, time)
        if grid != 0:
            include(addressof(channel.share), addressof(channel.stats), STATISTICS_WORDS)
    if wake < NEVER:
        wake_up(memory, index, wake, now)
    return 0
