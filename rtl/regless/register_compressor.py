"""Keeps registers that leave the staging unit: compressed in lines of its own, or, through the L1, as they are.

Kloosterman's thesis, section 4.5.3: five patterns of values, three bits of state for each register, fifteen compressed
registers in a line of 128 bytes, and twelve such lines in a shard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import above, index_of, lowest, multiplex, select
from lockstep.rtl.regless._layouts import WORD, access_layout, answer_layout, check, fill_layout, request_layout
from lockstep.rtl.regless._patterns import compress, expand
from lockstep.spec.parameters import LANES, MAX_WARPS
from lockstep.spec.regless.parameters import (
    BY_NUMBER,
    COMPRESSED_BY,
    MAX_LINES,
    MAX_LOOSE,
    MAX_REGISTERS,
    PER_LINE,
    POISON,
    STATE_BITS,
    VALUE_BITS,
    Access,
    Request,
    State,
    groups,
)  # fmt: skip

QUEUE = 4  # accesses on their way to the L1
MOST_ACCESSES = 3  # of one request
ROW_BITS = 4  # of a register's number: its place in a row of states


class Step(IntEnum):
    """What the compressor does in a cycle."""

    IDLE = 0
    LOOK = 1  # the state of the register is there
    READ = 2  # a compressed register is fetched: its line has been read, or one that must leave
    WRITE = 3  # one is stored
    INSTALL = 4  # a line has come from the L1
    EXPAND = 5  # a value has been read


class RegisterCompressor(wiring.Component):
    """Serves one request or answer at a time; it never waits for an answer.

    Below the staging unit a register has one copy or none, and :class:`State` says where. A store with a pattern goes
    into the line of the register's group; one without goes to the register's own line. What changes its form is dropped
    where it was. Groups are ``per_line`` neighbours of the shard's registers: by number, then by warp, as all registers
    lie in memory (section 4.5.2.3), or by warp, then by number. The thesis does not say which (section 4.5.3).

    A line that is not here is fetched when one of its registers is, and when one is stored if the line has ever left
    for the L1; else it begins. It takes the place of another, in turn, which leaves if something was stored in it.
    Until it comes, what is stored in its place stays, and other fetches of its registers go to the L1 one by one. If
    all places wait for lines, a fetch takes none, and a store goes to the register's own line. While
    :data:`MAX_LOOSE` fetches without a place are due, requests wait. Since such a fetch is of a line that has left, and
    a line that has left never begins anew, the line below has the register until the fetch has read it.

    When a warp ends, its registers have no copies any more; lines with their values stay.

    Latency: see ``docs/regless-hardware.md``. A request that fetches or drops a register that is not compressed takes 2
    cycles, one that reads a compressed register 4, one that writes one 3; a line that leaves takes 1 more. Of its own
    lines, at most one is read or written in a cycle. A request begins when the queue to the L1 has room for all that
    one can send.

    ``answer`` goes first: ``request.ready`` depends on ``answer.valid``. Payloads are 0 until they are valid; that of
    ``fill`` stays, that of ``access`` is 0 while it is not.

    The environment answers each fetch once, with what it said. While a register is to be filled, no request names it,
    and ``FINISH`` does not name its warp.

    Parameters
    ----------
    lanes : int
        Threads of a warp.
    warps : int
        Warps of the shard.
    registers : int
        Registers of a warp.
    lines : int
        Compressed lines that are kept here. If there are none, nothing is compressed.
    per_line : int
        Registers in a compressed line.
    compressed_by : int
        Which registers are neighbours, as in ``COMPRESSED_BY``.

    Members
    -------
    request : In, stream
        Of the staging unit: ``kind``, ``warp``, ``number`` and, of a store, ``words``.
    fill : Out, stream
        What was fetched.
    access : Out, stream
        To the L1, to be done in this order: ``kind``, ``warp`` and ``number``, or ``group`` of a line; ``words`` of a
        store, in a line two for each register.
    answer : In, stream
        To a fetch, with ``words``: ``line`` says of what. The others are those of the fetch.

    Raises
    ------
    ValueError
        for a size out of range.
    """

    # Of the fewest registers in a line there are the most groups.
    LARGEST: ClassVar = {
        "lanes": LANES,
        "warps": MAX_WARPS,
        "registers": MAX_REGISTERS,
        "lines": MAX_LINES,
        "per_line": 1,
        "compressed_by": len(COMPRESSED_BY) - 1,
    }
    combinational: ClassVar[Mapping[str, tuple[str, ...]]] = {"request.ready": ("answer.valid",)}

    def __init__(
        self, *, lanes: int = LANES, warps: int = 16, registers: int = 255, lines: int = 12, per_line: int = PER_LINE,
        compressed_by: int = BY_NUMBER,
    ) -> None:  # fmt: skip
        given = dict(lanes=lanes, warps=warps, registers=registers, lines=lines, per_line=per_line)
        check(given | {"lines": lines or 1}, self.LARGEST | {"per_line": PER_LINE})
        check(dict(compressed_by=compressed_by), self.LARGEST, least=0)
        self._by_number = compressed_by == BY_NUMBER
        self._lanes, self._per_line, self._compresses = lanes, per_line, lines != 0
        lines = lines or 1
        self._warps, self._registers, self._groups = warps, registers, groups(warps, registers, per_line)
        size = dict(warps=warps, registers=registers)
        words, group = max(lanes, 2 * per_line), bits_for(self._groups - 1)
        access = access_layout(words=words, group=group, **size)
        super().__init__(
            {
                "request": In(stream.Signature(request_layout(lanes=lanes, **size))),
                "fill": Out(stream.Signature(fill_layout(lanes=lanes, **size))),
                "access": Out(stream.Signature(access)),
                "answer": In(stream.Signature(answer_layout(words=words, **size))),
            }
        )
        number = bits_for(registers - 1)
        self._row_bits = min(ROW_BITS, number)
        self._rows = 1 << number - self._row_bits  # of a warp
        states = data.ArrayLayout(STATE_BITS, 1 << self._row_bits)
        self._states = Memory(shape=states, depth=warps * self._rows, init=[])
        self._kept = Memory(shape=data.ArrayLayout(VALUE_BITS, per_line), depth=lines, init=[])
        self._queue = Memory(shape=access, depth=QUEUE, init=[])
        # The state; proofs speak of it. What is held is seen only in the steps that set it.
        self.step = Signal(Step)
        held = {"kind": 2, "group": group, "slot": bits_for(per_line - 1)}
        # What follows from the state, kept since a cycle has no time to find it. From IDLE: whether the states of the
        # row are known; one-hot, the place that a line would take. From LOOK: that of the line; whether it has left.
        held |= {"known": 1, "victim": lines, "place": lines, "stored": 1}
        held |= {name: shape for name, shape in answer_layout(words=words, **size).members.items() if name != "line"}
        self.held = Signal(data.StructLayout(held), reset_less=True)
        self.value = Signal(VALUE_BITS, reset_less=True)  # to be expanded
        self.filled = Signal(self.fill.p.shape())  # what was fetched: its words, ...
        self.poisoned = Signal()  # ... unless they are poison
        self.known = Signal(warps * self._rows)  # states of this row have been written
        self.stored = Signal(self._groups)  # the line of this group has left for the L1
        self.valid, self.dirty, self.pending = (Signal(lines, name=n) for n in ("valid", "dirty", "pending"))
        self.group = [Signal(group, name=f"group_{line}", reset_less=True) for line in range(lines)]
        self.present = [Signal(per_line, name=f"present_{line}", reset_less=True) for line in range(lines)]
        self.turn = Signal(bits_for(lines - 1))  # the place that a line takes next, unless it waits for its own
        self.loose = Signal(range(MAX_LOOSE + 1))  # fetches without a place that are not answered
        self.head, self.count = Signal(range(QUEUE), name="head"), Signal(range(QUEUE + 1), name="count")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.states, m.submodules.kept, m.submodules.queue = self._states, self._kept, self._queue
        step, fill = self.step, self.fill
        room = Signal()
        self._push, self._pushed = Signal(name="push"), Signal(self.access.p.shape(), name="pushed")
        words = [self.held.words[lane] for lane in range(self._lanes)]
        raw = Const(State.RAW, STATE_BITS), Const(0, VALUE_BITS)
        self._compressed = compress(m, words) if self._compresses else raw
        self._mine = Signal(self._per_line, name="mine")  # one-hot: the place of the register in its line
        m.d.comb += self._mine.eq(1 << self.held.slot)
        self._find_state(m)
        self._find_line(m)
        self._serve_l1(m)
        m.d.sync += fill.valid.eq(fill.valid & ~fill.ready)
        m.d.comb += [
            fill.p.eq(self.filled),
            room.eq(self.count <= QUEUE - MOST_ACCESSES),
            self.answer.ready.eq((step == Step.IDLE) & ~fill.valid),
            self.request.ready.eq((step == Step.IDLE) & room & (self.loose != MAX_LOOSE) & ~self.answer.valid),
        ]
        with m.If(self.poisoned):
            m.d.comb += Value.cast(fill.p.words).eq(Const(POISON, WORD).replicate(self._lanes))
        for each, does in (
            (Step.IDLE, self._begin), (Step.LOOK, self._look), (Step.READ, self._read), (Step.WRITE, self._write),
            (Step.INSTALL, self._install), (Step.EXPAND, self._expand),
        ):  # fmt: skip
            with m.If(step == each):
                does(m)
        return m

    # ----------------------------------------------------------------------------------------------- what is kept where

    def _serve_l1(self, m: Module) -> None:
        """The queue of accesses. The words of one are chosen, and written, before it is known whether it is sent."""
        write, front = self._queue.write_port(), self._queue.read_port(domain="comb")
        serves, own, stores, leaves = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            own.eq((self.step == Step.LOOK) | ~self._vacant),  # of the register, if any
            serves.eq((self.step == Step.LOOK) | (self.step == Step.READ) | (self.step == Step.WRITE)),
            stores.eq((front.data.kind == Access.STORE) | (front.data.kind == Access.STORE_LINE)),
            Value.cast(self._pushed.words).eq(Mux(own, Value.cast(self.held.words), Value.cast(self._line.data))),
            write.en.eq(serves),
            write.addr.eq(self.head + self.count),
            write.data.eq(self._pushed),
            front.addr.eq(self.head),
            self.access.valid.eq(self.count != 0),
            leaves.eq(self.access.valid & self.access.ready),
        ]
        with m.If(self.access.valid):
            m.d.comb += self.access.p.eq(front.data)
            with m.If(~stores):
                m.d.comb += Value.cast(self.access.p.words).eq(0)
        m.d.sync += [self.count.eq(self.count + self._push - leaves), self.head.eq(self.head + leaves)]

    def _place_of(self, m: Module, number: Value, warp: Value) -> tuple[Value, Value]:
        """Where a register is compressed: its group, and its place there.

        Tables have where the first of its row is, and how many groups and places others are behind it. A row has the
        registers with the same number, or those of the same warp.
        """
        row, column = (number, warp) if self._by_number else (warp, number)
        rows, columns = (self._registers, self._warps) if self._by_number else (self._warps, self._registers)
        slots, per_line = len(self.held.slot), self._per_line
        width = slots + len(self.held.group)
        first, behind = Signal(width, name="first"), Signal(width, name="behind")
        distance = Signal(range(per_line + columns - 1), name="distance")  # from the first place of its group

        def places(registers: range, index: Value) -> Value:
            """Of these registers of the shard, of which ``index`` tells one."""
            known = [slot | group << slots for group, slot in (divmod(each, per_line) for each in registers)]
            return multiplex(index, [Const(each, width) for each in known + [0] * ((1 << len(index)) - len(known))])

        m.d.comb += [
            first.eq(places(range(0, rows * columns, columns), row)),
            distance.eq(first[:slots] + column),
            behind.eq(places(range(per_line + columns - 1), distance)),
        ]
        return first[slots:] + behind[slots:], behind[:slots]

    def _find_state(self, m: Module) -> None:
        """The state of the register that is held, in a row that is read as a request is accepted."""
        held, request, bits = self.held, self.request.p, self._row_bits
        read, write = self._states.read_port(), self._states.write_port(granularity=1)
        arriving, row = (Signal(range(self._states.depth), name=name) for name in ("arriving_row", "row"))
        column = Signal(len(write.en), name="column")
        states = [Signal(STATE_BITS, name=f"state_{k}") for k in range(len(column))]
        self._state = Signal(State, name="state")
        self._is_known = Signal(name="row_is_known")  # of the request
        m.d.comb += [
            arriving.eq(Cat(request.number[bits:], request.warp)),
            self._is_known.eq((self.known & (1 << arriving)).any()),
            read.addr.eq(arriving),
            read.en.eq(self.request.valid & self.request.ready),
            row.eq(Cat(held.number[bits:], held.warp)),
            column.eq(1 << held.number[:bits]),
            *(state.eq(Mux(held.known, one, 0)) for state, one in zip(states, read.data, strict=True)),
            self._state.eq(select(column, states)),
        ]
        # The new state of the register; the first of a row brings those of the others.
        self._changes, self._new = Signal(name="changes"), Signal(State, name="new")
        m.d.comb += [
            write.addr.eq(row),
            write.en.eq(Mux(self._changes, Mux(held.known, column, -1), 0)),
            *(data.eq(Mux(one, self._new, State.NONE)) for one, data in zip(column, write.data, strict=True)),
        ]
        with m.If(self._changes):
            m.d.sync += self.known.eq(self.known | (1 << row))

    def _find_line(self, m: Module) -> None:
        """The place of the line that is held, or the one that it would take; the one access to the lines."""
        held, lines = self.held, len(self.group)
        matches, vacant, later, place = (Signal(lines, name=name) for name in ("matches", "vacant", "later", "place"))
        m.d.comb += [
            matches.eq(self.valid & Cat(group == held.group for group in self.group)),
            vacant.eq(~self.pending),
            later.eq(vacant & above(self.turn, lines, itself=True)),
            place.eq(Mux(matches.any(), matches, self.held.victim)),
        ]
        self._matches, self._hit, self._vacant = matches, held.place.any(), held.victim.any()
        self._next = Mux(later.any(), lowest(later), lowest(vacant))
        self._leaves = Signal(name="leaves")  # the line at the place has to be stored first
        m.d.comb += self._leaves.eq(~self._hit & (self.dirty & self.held.victim).any())
        number = index_of(place)
        self._line, self._written = self._kept.read_port(), self._kept.write_port(granularity=1)
        m.d.comb += [self._line.addr.eq(number), self._line.en.eq(0), self._written.addr.eq(number)]

    def _at(self, places: Value, signals: list[Signal], value: Callable[[Signal], ValueLike]) -> list[Any]:
        """Set the signals of these places."""
        return [each.eq(Mux(one, value(each), each)) for one, each in zip(places, signals, strict=True)]

    # ------------------------------------------------------------------------------------------------------------ steps

    def _send(self, m: Module, kind: ValueLike, unless: Value | int = 0, **more: ValueLike) -> None:
        """Put an access into the queue, ``unless`` that is so: with the names that are held, or those in ``more``."""
        pushed, held = self._pushed, self.held
        named = {"warp": held.warp, "number": held.number, "group": held.group, **more}
        m.d.comb += [
            self._push.eq(~unless), pushed.kind.eq(kind), *(getattr(pushed, name).eq(v) for name, v in named.items()),
        ]  # fmt: skip

    def _becomes(self, m: Module, state: ValueLike) -> None:
        m.d.comb += [self._changes.eq(1), self._new.eq(state)]

    def _fill(self, m: Module, of: Any, words: Value | None = None) -> None:
        """What was fetched; poison if there are no words."""
        filled = self.filled
        m.d.sync += [
            self.fill.valid.eq(1), filled.warp.eq(of.warp), filled.number.eq(of.number),
            self.poisoned.eq(words is None),
        ]  # fmt: skip
        if words is not None:
            m.d.sync += Value.cast(filled.words).eq(words)

    def _begin(self, m: Module) -> None:
        held, request, answer = self.held, self.request, self.answer
        there = [self._place_of(m, port.p.number, port.p.warp) for port in (answer, request)]
        group, slot = (Mux(answer.valid, *each) for each in zip(*there, strict=True))

        def names(port: Any) -> list[Any]:
            """Of a register."""
            return [held.warp.eq(port.warp), held.number.eq(port.number), held.group.eq(group), held.slot.eq(slot)]

        with m.If(answer.valid & answer.ready):
            with m.If(answer.p.line):
                m.d.sync += [
                    *names(answer.p), held.pattern.eq(answer.p.pattern), held.expand.eq(answer.p.expand),
                    held.install.eq(answer.p.install), held.words.eq(answer.p.words), self.step.eq(Step.INSTALL),
                ]  # fmt: skip
            with m.Else():
                self._fill(m, answer.p, Value.cast(answer.p.words))
        with m.If(request.valid & request.ready):
            with m.If(request.p.kind == Request.FINISH):
                rows = Signal(len(self.known), name="rows")
                m.d.comb += rows.eq(Cat((request.p.warp == w).replicate(self._rows) for w in range(self._warps)))
                m.d.sync += self.known.eq(self.known & ~rows)
            with m.Else():
                m.d.sync += [
                    *names(request.p), held.kind.eq(request.p.kind), held.known.eq(self._is_known),
                    held.victim.eq(self._next), Value.cast(held.words).eq(Value.cast(request.p.words)),
                    self.step.eq(Step.LOOK),
                ]  # fmt: skip

    def _look(self, m: Module) -> None:
        held, state = self.held, self._state
        pattern, _ = self._compressed
        m.d.sync += [
            held.pattern.eq(state), held.place.eq(self._matches),
            held.stored.eq((self.stored & (1 << held.group)).any()),
        ]  # fmt: skip
        with m.If(held.kind == Request.STORE):
            with m.If(pattern == State.RAW):
                self._send(m, Access.STORE)
                self._becomes(m, State.RAW)
                m.d.sync += self.step.eq(Step.IDLE)
            with m.Else():
                with m.If(state == State.RAW):
                    self._send(m, Access.DROP)
                m.d.comb += self._line.en.eq(~self._matches.any())
                m.d.sync += [held.pattern.eq(pattern), self.step.eq(Step.WRITE)]
        with m.Elif(held.kind == Request.DROP):
            with m.If(state == State.RAW):
                self._send(m, Access.DROP)
            with m.If(state != State.NONE):
                self._becomes(m, State.NONE)
            m.d.sync += self.step.eq(Step.IDLE)
        with m.Elif(state == State.NONE):
            with m.If(~self.fill.valid):
                self._fill(m, held)
                m.d.sync += self.step.eq(Step.IDLE)
        with m.Else():
            with m.If(held.kind == Request.FETCH_LAST):
                self._becomes(m, State.NONE)
            with m.If(state == State.RAW):
                self._send(m, Mux(held.kind == Request.FETCH_LAST, Access.FETCH_LAST, Access.FETCH))
                m.d.sync += self.step.eq(Step.IDLE)
            with m.Else():
                m.d.comb += self._line.en.eq(1)
                m.d.sync += self.step.eq(Step.READ)

    def _read(self, m: Module) -> None:
        held = self.held
        there, alone = Signal(name="value_is_there"), Signal(name="fetches_alone")
        m.d.comb += [
            there.eq((held.place & Cat((present & self._mine).any() for present in self.present)).any()),
            alone.eq(self._hit | ~self._vacant),
        ]
        self._take_value(m, self._line.data)
        with m.If(self._leaves):
            self._leave(m)
        with m.Else():
            self._send(m, Access.FETCH_LINE, unless=there, pattern=held.pattern, expand=1, install=~alone)
            m.d.sync += self.step.eq(Mux(there, Step.EXPAND, Step.IDLE))
            with m.If(alone):
                m.d.sync += self.loose.eq(self.loose + ~there)
            with m.Else():
                self._take_place(m, pending=Const(1), present=0, dirty=False)

    def _write(self, m: Module) -> None:
        held, mine = self.held, self._mine
        _, value = self._compressed
        with m.If(~self._hit & ~self._vacant):
            self._send(m, Access.STORE)
            self._becomes(m, State.RAW)
            m.d.sync += self.step.eq(Step.IDLE)
        with m.Elif(self._leaves):
            self._leave(m)
        with m.Else():
            self._becomes(m, held.pattern)
            m.d.comb += [
                self._written.en.eq(Mux(self._hit, mine, -1)),
                *(data.eq(Mux(one, value, 0)) for one, data in zip(mine, self._written.data, strict=True)),
            ]
            m.d.sync += self.step.eq(Step.IDLE)
            with m.If(self._hit):
                m.d.sync += self._at(held.place, self.present, lambda present: present | mine)
                m.d.sync += self.dirty.eq(self.dirty | held.place)
            with m.Else():
                self._take_place(m, pending=held.stored, present=Mux(held.stored, mine, -1), dirty=True)
                with m.If(held.stored):
                    self._send(m, Access.FETCH_LINE, install=1)

    def _leave(self, m: Module) -> None:
        """The line at the place, which has been read, leaves; then the step goes on."""
        leaving = Signal.like(self.held.group, name="leaving")
        m.d.comb += leaving.eq(select(self.held.victim, list(self.group)))
        self._send(m, Access.STORE_LINE, warp=0, number=0, group=leaving)
        m.d.sync += [
            self.stored.eq(self.stored | (1 << leaving)),
            self.valid.eq(self.valid & ~self.held.victim),
            self.dirty.eq(self.dirty & ~self.held.victim),
        ]

    def _take_place(self, m: Module, *, pending: Value, present: ValueLike, dirty: bool) -> None:
        place, last = self.held.victim, len(self.group) - 1
        number = index_of(place)
        m.d.sync += [
            self.valid.eq(self.valid | place),
            self.pending.eq(self.pending | place & pending.replicate(len(place))),
            self.dirty.eq(self.dirty | place if dirty else self.dirty & ~place),
            *self._at(place, self.group, lambda _: self.held.group),
            *self._at(place, self.present, lambda _: present),
            self.turn.eq(Mux(number == last, 0, number + 1)),
        ]

    def _install(self, m: Module) -> None:
        """What was stored in the line's place while it was away stays."""
        held = self.held
        self._take_value(m, held.words)
        with m.If(held.install):
            m.d.comb += self._written.en.eq(~select(self._matches, list(self.present)))
            m.d.comb += Value.cast(self._written.data).eq(Value.cast(held.words))
            m.d.sync += self.pending.eq(self.pending & ~self._matches)
            m.d.sync += self._at(self._matches, self.present, lambda _: -1)
        with m.Else():
            m.d.sync += self.loose.eq(self.loose - 1)
        m.d.sync += self.step.eq(Mux(held.expand, Step.EXPAND, Step.IDLE))

    def _take_value(self, m: Module, line: Value) -> None:
        """From a line."""
        values = [Value.cast(line)[k * VALUE_BITS :][:VALUE_BITS] for k in range(self._per_line)]
        m.d.sync += self.value.eq(select(self._mine, values))

    def _expand(self, m: Module) -> None:
        held = self.held
        with m.If(~self.fill.valid):
            self._fill(m, held, Cat(expand(held.pattern, self.value, self._lanes)))
            m.d.sync += self.step.eq(Step.IDLE)
