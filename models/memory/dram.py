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

from lockstep.models.jit import ctz, inline, jit, pointer_to, record
from lockstep.models.memory.clock import cycle_after, cycle_of
from lockstep.models.memory.fabric import (
    CHANNELS,
    FOREVER,
    OCCUPANCY,
    QUEUE,
    SLICES,
    WRITE,
    enter,
    give,
    leave,
    packet_of,
    push,
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
CHANNEL = record(
    [
        ("limit", "i8"),  # requests that the queue takes
        ("spread", "i8"),  # slices per channel
        ("busy_banks", "i8"),  # bit mask of banks with requests
        ("pick", "i8"),  # bank of the next command; -1: to be decided
        ("pick_time", "i8"),
        ("command_free", "i8"),
        ("read_free", "i8"),  # earliest next read command ...
        ("write_free", "i8"),
        ("activate_free", "i8"),
        ("queue", OCCUPANCY),
        ("stats", CHANNEL_STATISTICS),
        ("row", "i8", (MAX_DRAM_BANKS,)),  # the open row, -1: none
        ("wanted", "i8", (MAX_DRAM_BANKS,)),  # row of the request that the bank serves next
        ("column_at", "i8", (MAX_DRAM_BANKS,)),  # earliest next column command
        ("activate_at", "i8", (MAX_DRAM_BANKS,)),
        ("precharge_at", "i8", (MAX_DRAM_BANKS,)),
        ("age", "i8", (MAX_DRAM_BANKS,)),  # core cycle in which that request came
        ("oldest", "i8", (MAX_DRAM_BANKS,)),  # core cycle in which the bank's oldest came
        ("writes", "i4", (MAX_DRAM_BANKS,)),  # that request is a write
        ("current", "i4", (MAX_DRAM_BANKS,)),  # that request
        ("before", "i4", (MAX_DRAM_BANKS,)),  # the one in front of it in the bank's queue, 0: none
        ("found", "i4", (MAX_DRAM_BANKS,)),  # what the next column command will have found
        ("waiting", QUEUE, (MAX_DRAM_BANKS,)),
    ]
)

_channel_at = pointer_to(CHANNEL)
_CHANNEL_BYTES = CHANNEL.itemsize


@inline
def channel_of(memory, index):
    return _channel_at(memory.channel_base + index * _CHANNEL_BYTES)


@inline
def dram_room(channel):
    """How many requests the channel's queue still takes."""
    return channel.limit - channel.queue.count


@inline
def _serve(channel, bank, index, packet, before):
    """Make a request the one that its bank serves next."""
    channel.current[bank] = index
    channel.before[bank] = before
    channel.wanted[bank] = packet.row
    channel.writes[bank] = packet.kind == WRITE
    channel.age[bank] = packet.entered


@inline
def dram_push(memory, index, request, now):
    """Queue the request of a slice, which has checked :func:`dram_room`; the channel sees it from the next cycle on."""
    channel = channel_of(memory, index)
    packet = packet_of(memory, request)
    chunk = packet.address >> memory.chunk_shift
    offset = packet.address - (chunk << memory.chunk_shift)
    place = ((chunk * channel.spread + packet.slice // memory.channels) << memory.chunk_shift) + offset
    rows = place >> memory.row_shift
    packet.row = rows // memory.banks
    bank = (rows + packet.row) % memory.banks
    packet.bank = bank
    packet.entered = now
    enter(channel.queue, now)
    before = channel.waiting[bank].tail
    alone = channel.waiting[bank].head == 0
    push(memory, channel.waiting[bank], request)
    if alone:
        channel.busy_banks |= 1 << bank
        channel.oldest[bank] = now
        _serve(channel, bank, request, packet, 0)
    elif channel.row[bank] == packet.row and channel.wanted[bank] != packet.row:
        _serve(channel, bank, request, packet, before)
    else:
        return
    channel.pick = -1
    wake_up(memory, CHANNELS + index, now + 1)


@inline
def _choose(memory, channel, bank):
    """Choose the request that a bank serves next: the oldest row hit, or the oldest."""
    before = 0
    index = channel.waiting[bank].head
    while index != 0:
        packet = packet_of(memory, index)
        if packet.row == channel.row[bank]:
            _serve(channel, bank, index, packet, before)
            return
        before = index
        index = packet.next
    index = channel.waiting[bank].head
    _serve(channel, bank, index, packet_of(memory, index), 0)


@inline
def _command(channel, bank):
    """A bank's next command."""
    if channel.row[bank] == channel.wanted[bank]:
        return COLUMN
    return ACTIVATE if channel.row[bank] < 0 else PRECHARGE


@inline
def _earliest(channel, bank, command):
    """The first tick at which a bank's next command may go."""
    if command == COLUMN:
        return max(channel.column_at[bank], channel.write_free if channel.writes[bank] else channel.read_free)
    if command == ACTIVATE:
        return max(channel.activate_at[bank], channel.activate_free)
    return channel.precharge_at[bank]


@inline
def _plan(memory, channel, now):
    """Decide the channel's next command."""
    soonest = max(channel.command_free, now * memory.dram.domain)
    pick, time, rank = -1, FOREVER, 0
    overdue, since = -1, now - PATIENCE
    banks = channel.busy_banks
    while banks != 0:
        bank = ctz(banks)
        banks &= banks - 1
        command = _command(channel, bank)
        at = max(_earliest(channel, bank, command), soonest)
        if at < time or at == time and (
            command < rank or command == rank and channel.age[bank] < channel.age[pick]
        ):
            pick, time, rank = bank, at, command
        if channel.oldest[bank] < since:
            overdue, since = bank, channel.oldest[bank]
    if overdue >= 0:
        index = channel.waiting[overdue].head
        if channel.current[overdue] != index:
            _serve(channel, overdue, index, packet_of(memory, index), 0)
        pick = overdue
        time = max(_earliest(channel, pick, _command(channel, pick)), soonest)
    channel.pick = pick
    channel.pick_time = time


@inline
def _column(memory, index, channel, bank, time, now):
    """Read or write: the request leaves the queue."""
    request = channel.current[bank]
    packet = packet_of(memory, request)
    before = channel.before[bank]
    queue = channel.waiting[bank]
    if before == 0:
        queue.head = packet.next
    else:
        packet_of(memory, before).next = packet.next
    if queue.tail == request:
        queue.tail = before
    queue.count -= 1
    leave(channel.queue, now, packet.entered)
    stats = channel.stats
    stats.rows[channel.found[bank]] += 1
    channel.found[bank] = ROW_HIT
    stats.busy += memory.burst
    gap = max(memory.tCCD, memory.burst)
    if packet.kind == WRITE:
        end = time + memory.tWL + memory.burst
        channel.read_free = max(end + memory.tCDLR, time + gap)
        channel.write_free = time + gap
        channel.precharge_at[bank] = max(channel.precharge_at[bank], end + memory.tWR)
        stats.writes += 1
        stats.bytes_written += memory.line_bytes
        give(memory, request)
    else:
        end = time + memory.tCL + memory.burst
        channel.read_free = time + gap
        channel.write_free = max(end - memory.tWL, time + gap)
        channel.precharge_at[bank] = max(channel.precharge_at[bank], time + memory.burst)
        stats.reads += 1
        stats.bytes_read += memory.line_bytes
        packet.ready = cycle_after(memory.dram, end) + memory.return_delay
        if memory.returns[packet.slice].head == 0:
            wake_up(memory, SLICES + packet.slice, packet.ready)
        push(memory, memory.returns[packet.slice], request)
    if queue.head == 0:
        channel.busy_banks &= ~(1 << bank)
    else:
        channel.oldest[bank] = packet_of(memory, queue.head).entered
        _choose(memory, channel, bank)
    for target in range(index, memory.slices, memory.channels):
        if memory.wants_dram[target]:
            wake_up(memory, SLICES + target, now)


@inline
def _issue(memory, index, channel, now):
    """Issue the planned command."""
    bank = channel.pick
    time = channel.pick_time
    command = _command(channel, bank)
    channel.pick = -1
    channel.command_free = time + memory.dram.core
    if command == COLUMN:
        _column(memory, index, channel, bank, time, now)
    elif command == ACTIVATE:
        channel.row[bank] = channel.wanted[bank]
        channel.column_at[bank] = time + memory.tRCD
        channel.precharge_at[bank] = time + memory.tRAS
        channel.activate_at[bank] = time + memory.tRC
        channel.activate_free = time + memory.tRRD
        channel.found[bank] = max(channel.found[bank], ROW_CLOSED)
        channel.stats.activates += 1
    else:
        channel.row[bank] = -1
        channel.activate_at[bank] = max(channel.activate_at[bank], time + memory.tRP)
        channel.found[bank] = ROW_CONFLICT
        channel.stats.precharges += 1


@jit
def channel_step(memory, index, now):
    """Visit a channel: issue the commands that are due in this core cycle. Sets its wake time."""
    channel = channel_of(memory, index)
    end = (now + 1) * memory.dram.domain
    wake = FOREVER
    while channel.busy_banks != 0:
        if channel.pick < 0:
            _plan(memory, channel, now)
        if channel.pick_time >= end:
            wake = cycle_of(memory.dram, channel.pick_time)
            break
        _issue(memory, index, channel, now)
    memory.wakes[CHANNELS + index] = wake
