"""WarpPool between a load/store unit and an L1: what must hold at its ports from issue to the last lane.

Every check is one of counting and of lists in the order of events: nothing here knows how the unit works inside.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import Module, Value

from lockstep.spec.mapping import Mapping
from lockstep.spec.parameters import FERMI, FOLD, LINEAR
from lockstep.spec.warppool.parameters import MAP_PER
from lockstep.verif.bench import mask
from lockstep.verif.blocks import Waiver
from lockstep.verif.lsu.bench_intra_warp_coalescer import Instruction, decoded, lines
from lockstep.verif.lsu.lines import WAIVER, one_size
from lockstep.verif.warppool import bench_load_store_order as order
from lockstep.verif.warppool import bench_request_selector as selector
from lockstep.verif.warppool.quantum import Quantum

BLOCK = "warppool.warp_pool"
LINE, LOAD = range(len(MAP_PER))
CONFIGURATIONS = {
    "paper": dict(
        lanes=32, warps=48, tickets=16, warps_per_queue=3, depth=8, coalescers=2, queues=32, tags=2, merges=4, maps=8,
        index=FERMI, set_bits=6, metadata=256, quantum=64, store_wait=64, map_per=LINE,
    ),
    "by load": dict(
        lanes=32, warps=8, tickets=4, warps_per_queue=2, depth=2, coalescers=2, queues=4, tags=2, merges=4, maps=2,
        index=FERMI, set_bits=4, metadata=16, quantum=64, store_wait=16, map_per=LOAD,
    ),
    "one": dict(
        lanes=1, warps=1, tickets=1, warps_per_queue=1, depth=1, coalescers=1, queues=1, tags=1, merges=1, maps=1,
        index=LINEAR, set_bits=0, metadata=1, quantum=16, store_wait=1, map_per=LINE,
    ),
    "odd": dict(
        lanes=5, warps=7, tickets=3, warps_per_queue=2, depth=3, coalescers=3, queues=4, tags=3, merges=3, maps=5,
        index=FOLD, set_bits=3, metadata=9, quantum=37, store_wait=5, map_per=LINE,
    ),
    "shipped": dict(
        lanes=32, warps=48, tickets=16, warps_per_queue=3, depth=8, coalescers=2, queues=32, tags=2, merges=4, maps=8,
        index=FERMI, set_bits=6, metadata=256, quantum=100_000, store_wait=64, map_per=LINE,
    ),
}  # fmt: skip
IDLE_CHANGES = (
    *(rf"request_selector\.{name}" for name in selector.IDLE_CHANGES),
    *(rf"load_store_order\.{name}" for name in order.IDLE_CHANGES),
)
CYCLES = 2500
PIPELINE = 3  # requests between their selection and the L1
FILLING = 140  # cycles in which a warp fills all tags, also at the paper's size


@dataclass(frozen=True)
class Shape:
    """Probabilities per cycle, and of what an instruction is."""

    issue: float = 0.5
    enter: float = 0.9
    store: float = 0.1  # of the instructions
    atomic: float = 0.1
    bypass: float = 0.1
    patterns: tuple[str, ...] = ("unit", "range", "broadcast", "random", "divergent")
    hot: float = 0.5  # of the addresses: in one of a few lines
    ready: float = 0.9  # the L1 takes a request
    stall: float = 0.0  # it begins to take none, for 20 cycles on average
    answer: float = 0.8
    hoard: bool = False  # no answer before the L1 is full
    result: float = 0.95  # a result is taken
    hit: float = 0.3
    lines: int = 150  # not yet sent, at which no instruction is issued any more
    line_shift: int = 7
    turns: int = -1  # the warps with this number modulo TURNS issue in turn, while the L1 takes nothing; -1: all do
    busy: tuple[int, int] = (200, 800)  # cycles until everything has to end, at first


TURNS = 6

_SHAPES = {
    "mixed": Shape(),
    "divergent": Shape(patterns=("divergent",), hot=0.8, store=0.02, atomic=0.02, hit=0.0, lines=600, line_shift=6),
    "unit": Shape(patterns=("unit", "range"), issue=1.0, store=0.05, atomic=0.0, ready=1.0, answer=1.0, hit=0.0),
    "broadcast": Shape(patterns=("broadcast",), issue=1.0, hot=1.0, store=0.0, atomic=0.0, bypass=0.3, line_shift=5),
    "random": Shape(patterns=("random",), hot=0.9, store=0.05, atomic=0.05, bypass=0.3, answer=0.3),
    "stores": Shape(store=0.6, atomic=0.1, issue=1.0, hot=0.3, line_shift=5),
    "atomics": Shape(store=0.1, atomic=0.6, issue=1.0, answer=0.3),
    "stalled": Shape(issue=1.0, ready=0.15, stall=0.01, result=0.5, store=0.2),
    "late": Shape(issue=1.0, enter=0.3, ready=1.0, answer=0.05, lines=60),
    "full": Shape(patterns=("divergent", "unit"), hot=0.0, store=0.02, atomic=0.02, hoard=True, ready=1.0, lines=600),
    "clogged": Shape(issue=1.0, result=0.2, answer=1.0, hot=0.9, line_shift=5),
    "merged": Shape(patterns=("unit", "range", "broadcast", "random"), hot=1.0, issue=1.0, ready=0.1, result=0.4),
    "hits": Shape(hit=0.97, issue=0.8, ready=1.0, answer=1.0, result=1.0, line_shift=6),
    # A warp that fills all slots of all tags brings its counter of the load-store order to the most.
    **{
        f"in turn {k}": Shape(
            patterns=("sweep",), turns=k, issue=1.0, enter=1.0, store=0.0, atomic=0.0, bypass=0.0, answer=1.0,
            ready=1.0, result=1.0, lines=1000, line_shift=5 + k % 3, busy=(2300, 2400),
        )
        for k in range(TURNS)
    },
}  # fmt: skip
SHAPES = tuple(_SHAPES)

_FIELDS = ("number", "store", "atomic", "bypass", "last", "mask", "count", "id")
_SLOT = ("warp", "ticket", "mapping", "thread", "word")


@dataclass
class Flight:
    """An instruction from its issue to its end."""

    instruction: Instruction
    line: dict[int, int]  # number to lanes, in the order of their lowest lane
    unsent: dict[int, int] = field(default_factory=dict)
    pending: int = 0  # lanes that wait for a result
    port: int = -1  # of the coalescer that has asked for its addresses

    @property
    def name(self) -> tuple[int, int]:
        return self.instruction.warp, self.instruction.ticket

    @property
    def aside(self) -> bool:
        """A store or an atomic."""
        return bool(self.instruction.store or self.instruction.atomic)


@dataclass
class Request:
    """A line that the L1 has and will answer, for the loads or the atomic in ``served``."""

    number: int
    served: list[Flight]
    cycle: int


class Environment:
    """The load/store unit, which is busy and then waits until all has ended, and an L1 that answers in any order."""

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.warps, self.lanes, self.ports = parameters["warps"], parameters["lanes"], range(parameters["coalescers"])
        queues = -(-self.warps // parameters["warps_per_queue"])
        self.cycle = 0
        self.busy_until = rng.randrange(*self.shape.busy)
        self.deadline = 0  # by which all must have ended; 0 while instructions are issued
        self.hot = [self._base() for _ in range(3)]
        self.slots = parameters["queues"] * parameters["tags"] * parameters["merges"]
        self.turn, self.waits_until = self.shape.turns % self.warps, FILLING
        self.flight: dict[tuple[int, int], Flight] = {}
        self.issued: list[deque[Flight]] = [deque() for _ in range(self.warps)]  # that have not entered
        self.entered: list[deque[Flight]] = [deque() for _ in range(queues)]  # whose addresses nobody wanted yet
        self.presented: list[Flight | None] = [None for _ in self.ports]
        self.unsent: list[list[Flight]] = [[] for _ in range(self.warps)]  # with lines that the L1 has not got
        self.counted = [0] * self.warps  # how many they were, before those that left just now
        self.last_was_load = [False] * self.warps
        self.lines = 0  # not sent
        self.requests: dict[int, Request] = {}
        self.offered: int | None = None
        self.releasing = False
        self.stalled = False
        self.due: deque[tuple[Flight, int]] = deque()  # results of answers given, in order
        self.maps: Counter[tuple[int, ...]] = Counter()  # random lines sent and not written back, by entry
        self.held: dict[str, Any] = {}  # payloads that were presented and not taken
        self.checker = Selection(parameters)
        self.identities: set[int] = set()
        self.events: set[str] = set()

    def preset(self) -> dict[str, int]:
        return self.checker.quantum.preset(self.rng, CYCLES, "request_selector.")

    # ------------------------------------------------------------------------------------------------------ stimulus

    def drive(self, i: Any, o: Any) -> None:
        self.events = o.events = set()  # of this cycle: the functional coverage that one cycle's ports don't show
        self._phase()
        i.line_shift = self.shape.line_shift
        self._generate(i, o)
        self._issue(i, o)
        self.counted = [len(flights) for flights in self.unsent]
        self._enter(i, o)
        self._l1(i, o)
        i.result.ready = bool(self.deadline) or self.rng.random() < self.shape.result

    def _phase(self) -> None:
        self.cycle += 1
        if not self.deadline:
            if self.cycle >= self.busy_until:
                self.deadline = self.cycle + 100 + 8 * (self.lines + len(self.due) + len(self.requests))
                self.deadline += 8 * sum(len(request.served) for request in self.requests.values())
        elif not self.flight:
            self.events.add("all has ended")
            if self.rng.random() < 0.1:
                self.deadline, self.busy_until = 0, self.cycle + self.rng.randrange(100, 800)
        else:
            assert self.cycle < self.deadline, f"instructions do not end: {list(self.flight)[:5]}"

    def _base(self) -> int:
        return self.rng.getrandbits(32) & -128

    def _instruction(self, warp: int, ticket: int, load: bool) -> Instruction:
        rng, shape = self.rng, self.shape
        pattern, size = rng.choice(shape.patterns), rng.choice([2, 2, 2, 0, 1, 3, 4])
        width, word = 1 << size, max(4, 1 << size)
        base = rng.choice(self.hot) if rng.random() < shape.hot else self._base()
        lanes = range(self.lanes)
        if pattern == "unit":
            offsets = [lane * width for lane in lanes]
        elif pattern == "range":
            first = rng.randrange(128 // word) * word
            offsets = [first + lane * word for lane in lanes]
        elif pattern == "sweep":
            tags = self.parameters["queues"] * self.parameters["tags"]
            base = self.hot[0] & -(tags << shape.line_shift)
            first, place = self.lanes * len(self.unsent[warp]), range(0, 32, width)
            offsets = [((first + lane) % tags << shape.line_shift) + rng.choice(place) for lane in lanes]
        elif pattern == "broadcast":
            offsets = [rng.randrange(128 // width) * width] * self.lanes
        elif pattern == "random":
            offsets = [rng.randrange(128 // width) * width for _ in lanes]
        else:
            far = [(rng.choice(self.hot) if rng.random() < shape.hot else self._base()) - base for _ in lanes]
            offsets = [offset + rng.randrange(128 // width) * width for offset in far]
        active = (1 << self.lanes) - 1 if pattern == "sweep" or rng.random() < 0.6 else mask(rng, self.lanes) or 1
        aside = not load
        store = aside and rng.random() * (shape.store + shape.atomic) < shape.store
        return Instruction(
            tuple((base + offset) % (1 << 32) for offset in offsets), active, size, int(store),
            int(aside and not store), int(rng.random() < shape.bypass), warp, ticket,
        )  # fmt: skip

    def _issue(self, i: Any, o: Any) -> None:
        """Warps issue what the masks allow, which say, a cycle late, whether the L1 has all that was issued before."""
        rng, shape = self.rng, self.shape
        drained = sum(1 << warp for warp in range(self.warps) if not self.counted[warp])
        loads = drained | sum(1 << warp for warp in range(self.warps) if self.last_was_load[warp])
        assert (o.drained, o.load_ready) == (drained, loads), "drained or load_ready"
        i.issue = i.issue_load = 0
        if self.deadline or self.lines >= shape.lines or rng.random() >= shape.issue:
            return
        for warp in self._issuing():
            load = rng.random() >= shape.store + shape.atomic
            free = [t for t in range(self.parameters["tickets"]) if (warp, t) not in self.flight]
            if not free or not (loads if load else drained) >> warp & 1:
                continue
            if load and not drained >> warp & 1:
                self.events.add("a load follows a load that is not sent")
            made = self._instruction(warp, rng.choice(free), load)
            line = {n: sum(1 << lane for lane in ls) for n, ls in lines(made, 1 << shape.line_shift)}
            flight = Flight(made, line, dict(line), 0 if made.store else made.mask)
            self.flight[flight.name] = flight
            self.issued[warp].append(flight)
            self.unsent[warp].append(flight)
            self.last_was_load[warp] = load
            self.lines += len(line)
            i.issue |= 1 << warp
            i.issue_load |= load << warp
        if self.shape.turns < 0 and rng.random() < 0.02:
            self.hot[rng.randrange(3)] = self._base()

    def _issuing(self) -> list[int]:
        """The warps that would issue in this cycle."""
        if self.shape.turns < 0:
            return self.rng.sample(range(self.warps), min(self.warps, self.rng.choice([1, 1, 2, 4, self.warps])))
        if self.cycle > self.waits_until and not self.unsent[self.turn]:
            self.turn += TURNS
            if self.turn >= self.warps:
                self.turn = self.shape.turns % self.warps
            self.waits_until, self.hot[0] = self.cycle + FILLING, self._base()
        most = -(-self.slots // self.lanes) + 3  # of which some wait
        return [self.turn] if self.cycle <= self.waits_until and len(self.unsent[self.turn]) < most else []

    def _enter(self, i: Any, o: Any) -> None:
        share, depth = self.parameters["warps_per_queue"], self.parameters["depth"]
        for queue, entered in enumerate(self.entered):
            assert o.free[queue] == depth - len(entered), f"free places of queue {queue}"
        waiting = [warp for warp in range(self.warps) if self.issued[warp]]
        room = [warp for warp in waiting if o.free[warp // share]]
        if len(room) < len(waiting):
            self.events.add("an instruction waits for a full queue")
        i.enter.valid = bool(room) and (bool(self.deadline) or self.rng.random() < self.shape.enter)
        if i.enter.valid:
            warp = self.rng.choice(room)
            flight = self.issued[warp].popleft()
            self.entered[warp // share].append(flight)
            for name in ("mask", "size", "store", "atomic", "bypass", "warp", "ticket"):
                setattr(i.enter.payload, name, getattr(flight.instruction, name))

    def _generate(self, i: Any, o: Any) -> None:
        """Every instruction's addresses are wanted once, in the order of the queue, until the coalescer has them."""
        for k in self.ports:
            wanted, shown = o.generate[k], self.presented[k]
            if not wanted.valid:
                self.presented[k] = None
                if self.rng.random() < 0.02:
                    for lane in range(self.lanes):
                        i.address[k, lane] = self.rng.getrandbits(32)
                continue
            name = wanted.payload.warp, wanted.payload.ticket
            flight = self.flight[name]
            if shown is None:
                entered = self.entered[name[0] // self.parameters["warps_per_queue"]]
                assert entered and entered[0] is flight, "addresses are wanted out of order"
                entered.popleft()
                flight.port = k
                self.presented[k] = flight
            assert flight is self.presented[k], "another instruction takes the place of one that is presented"
            for lane, address in enumerate(flight.instruction.address):
                i.address[k, lane] = address

    def _l1(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.shape
        draining = bool(self.deadline)
        self.stalled = not draining and rng.random() < (0.95 if self.stalled else shape.stall)
        if shape.turns >= 0:
            self.stalled = not draining and self.cycle <= self.waits_until
        i.access.ready = draining or (not self.stalled and rng.random() < shape.ready)
        i.miss = rng.random() >= shape.hit
        most = self.parameters["metadata"]
        if len(self.requests) >= most:
            self.releasing = True
        elif len(self.requests) <= most // 2:
            self.releasing = False
        hoarding = shape.hoard and not self.releasing and self.lines > 0
        chance = 1.0 if draining else 0.0 if hoarding else shape.answer
        if self.offered is None and self.requests and rng.random() < chance:
            known = list(self.requests)
            self.offered = rng.choice([known[0], known[-1], rng.choice(known)])
            request, payload = self.requests[self.offered], i.answer.payload
            payload.id = self.offered
            payload.atomic = request.served[0].instruction.atomic
            payload.mask = request.served[0].line[request.number] if payload.atomic else rng.getrandbits(self.lanes)
        i.answer.valid = self.offered is not None

    # -------------------------------------------------------------------------------------------------------- checks

    def observe(self, i: Any, o: Any, c: Any) -> None:
        self._result(i, o)
        self._answer(i, o)
        self._access(i, o)
        self.checker.observe(i, o)
        self._crossings(i, o)

    def _holds(self, what: str, valid: int, ready: int, payload: tuple) -> None:
        """A payload that was presented is presented until it is taken."""
        held = self.held.pop(what, None)
        assert held is None or (valid and held == payload), f"{what} was presented and not taken, and changed"
        if valid and not ready:
            self.held[what] = payload

    def _flight(self, warp: int, ticket: int) -> Flight:
        assert (warp, ticket) in self.flight, f"no instruction {warp}, {ticket} is in flight"
        return self.flight[warp, ticket]

    def _access(self, i: Any, o: Any) -> None:
        access = o.access.payload
        slots = [tuple(getattr(access.slots[j], name) for name in _SLOT) for j in range(self.parameters["merges"])]
        fields = {name: getattr(access, name) for name in _FIELDS}
        if access.store:
            del fields["id"]
        self._holds("access", o.access.valid, i.access.ready, (*fields.values(), *slots))
        if not (o.access.valid and i.access.ready):
            return
        count, number = access.count, access.number
        assert 1 <= count <= self.parameters["merges"]
        assert not any(any(slot) for slot in slots[count:]), "slots beyond the count are zero"
        flights = [self._flight(warp, ticket) for warp, ticket, *_ in slots[:count]]
        for flight in flights:
            made = flight.instruction
            assert (made.store, made.atomic) == (access.store, access.atomic)
            assert flight.port >= 0, "a line of an instruction without addresses"
            assert number in flight.unsent, f"line {number:#x} of {flight.name} is not one, or was sent"
            before = self.unsent[made.warp]
            before = before[: next(at for at, other in enumerate(before) if other is flight)]
            assert not any(flight.aside or other.aside for other in before), f"{flight.name} overtakes {before[0].name}"
            lanes = flight.line[number]
            if flight.aside:
                assert next(iter(flight.unsent)) == number, "lines of a store or an atomic leave in order"
                assert access.mask == lanes and access.last == (len(flight.unsent) == 1), "mask or last"
                assert (count, access.bypass, any(slots[0][2:])) == (1, 0, False)
            else:
                assert access.bypass == made.bypass, "merged with another cache operator"
                assert not access.mask and not access.last
            del flight.unsent[number]
            self.lines -= 1
            if not flight.unsent:
                self.unsent[made.warp] = [other for other in self.unsent[made.warp] if other is not flight]
                if made.store:
                    del self.flight[flight.name]
        self.checker.store_lines(flights[0], self.cycle)
        if not access.store:
            assert access.id < self.parameters["metadata"] and access.id not in self.requests, "id is in flight"
            if access.id in self.identities:
                self.events.add("an id comes again")
            self.identities.add(access.id)
            if any(request.number == number and not access.atomic for request in self.requests.values()):
                self.events.add("a line is requested again")
            self.requests[access.id] = Request(number, flights, self.cycle)
        self._merges(access, flights, slots)

    def _entry(self, flight: Flight, number: int) -> tuple[int, ...]:
        """What an entry of the thread-map table stands for."""
        return flight.name if self.parameters["map_per"] == LOAD else (*flight.name, number)

    def _merges(self, access: Any, flights: list[Flight], slots: list[tuple]) -> None:
        """Events around a request that is taken."""
        count, number = access.count, access.number
        if len({flight.port for flight in flights}) > 1:
            self.events.add("a merge across coalescers")
        if count > 1 and len({flight.instruction.warp for flight in flights}) < count:
            self.events.add("two loads of one warp merge")
        if count > 1 and access.bypass:
            self.events.add("loads that bypass merge")
        if count > 1 and len({slot[2] for slot in slots[:count]}) > 1:
            self.events.add("loads of different mappings merge")
        for flight, slot in zip(flights, slots[:count], strict=True):
            if slot[2] == Mapping.RANDOM and not flight.aside:
                self.maps[self._entry(flight, number)] += 1
        if sum(slot[2] == Mapping.RANDOM for slot in slots[:count]) > 1:
            self.events.add("random lines merge")
        assert len(self.maps) <= self.parameters["maps"], "more maps than entries of the thread-map table"
        if len(self.maps) == self.parameters["maps"]:
            self.events.add("the thread-map table is full")
        if len(self.maps) < self.maps.total():
            self.events.add("lines share an entry")
        if len(self.requests) == self.parameters["metadata"]:
            self.events.add("the metadata are in use")
        if count == self.parameters["merges"] and not flights[0].aside and any(
            number in other.unsent and other.port >= 0 and other.instruction.bypass == access.bypass
            for other in self.flight.values()
            if not other.aside
        ):  # fmt: skip
            self.events.add("one more than a tag can merge")

    def _answer(self, i: Any, o: Any) -> None:
        if not (i.answer.valid and o.answer.ready):
            return
        assert self.offered is not None
        if self.offered != next(iter(self.requests)):
            self.events.add("an answer out of order")
        request = self.requests.pop(self.offered)
        if self.cycle == request.cycle + 1:
            self.events.add("an answer in the cycle after the access")
        self.due.extend((flight, request.number) for flight in request.served)
        self.offered = None

    def _result(self, i: Any, o: Any) -> None:
        result = o.result.payload
        if not o.result.valid:
            assert "result" not in self.held
            return
        words = tuple(result.words[lane] for lane in range(self.lanes))
        fields = tuple(getattr(result, name) for name in (*_SLOT, "atomic", "mask"))
        self._holds("result", o.result.valid, i.result.ready, (*fields, *words))
        if not i.result.ready:
            return
        assert self.due, "a result that was not answered"
        flight, number = self.due.popleft()
        made = flight.instruction
        assert (result.warp, result.ticket, result.atomic) == (*flight.name, made.atomic), "results follow the answers"
        lanes = flight.line[number]
        assert flight.pending & lanes == lanes, "a lane twice"
        flight.pending &= ~lanes
        if result.atomic:
            assert result.mask == lanes and not any(fields[2:5]) and not any(words)
        else:
            found = self._words(made, result, words)
            assert found == {lane: self._word(made, lane) for lane in range(self.lanes) if lanes >> lane & 1}, "words"
            if result.mapping == Mapping.RANDOM:
                self.maps -= Counter([self._entry(flight, number)])
        if not flight.pending:
            del self.flight[flight.name]

    def _word(self, made: Instruction, lane: int) -> int:
        return made.word(lane, 1 << self.shape.line_shift)

    def _words(self, made: Instruction, result: Any, words: tuple[int, ...]) -> dict[int, int]:
        """Lane to word, as a load/store unit reads a load's result."""
        mapping = Mapping(result.mapping)
        if mapping is Mapping.RANDOM:
            return {lane: words[lane] for lane in range(self.lanes) if result.mask >> lane & 1}
        assert not result.mask and not any(words), "mask and words are zero without a thread map"
        line_words = (1 << self.shape.line_shift) // max(4, 1 << made.size)
        return decoded(mapping, result.thread, result.word, made.lanes, line_words)

    def _crossings(self, i: Any, o: Any) -> None:
        streams = (o.access.valid, i.access.ready), (i.answer.valid, o.answer.ready), (o.result.valid, i.result.ready)
        if all(valid and ready for valid, ready in streams):
            self.events.add("access, answer and result in one cycle")

    def finish(self) -> None:
        """At every moment what is in flight is known; whether all ends is seen after each busy phase."""
        assert self.lines == sum(len(flight.unsent) for flight in self.flight.values())
        assert len(self.requests) <= self.parameters["metadata"]


class Selection:
    """What the order of the requests must be like: the quantum, and stores that do not wait too long."""

    def __init__(self, parameters: dict[str, int]) -> None:
        self.quantum, self.store_wait = Quantum(parameters["quantum"]), parameters["store_wait"]
        self.most = 2 * parameters["coalescers"] + PIPELINE + 1
        self.overdue = 0  # requests that an overdue store or atomic became, and that have not left
        self.since: dict[int, tuple[Flight, int, int]] = {}  # port to its store, the cycle of its last line, passed by

    def observe(self, i: Any, o: Any) -> None:
        assert o.policy == self.quantum.policy, "the policy changes after more than 99 % misses, and only then"
        access = o.access.payload
        taken = o.access.valid and i.access.ready
        self.quantum.observe(i, o)
        if taken and (access.store or access.atomic):
            self.overdue = max(0, self.overdue - 1)
        self.overdue += o.overdue
        assert self.overdue <= PIPELINE, "an overdue store that does not come"

    def store_lines(self, first: Flight, cycle: int) -> None:
        """A request was taken: no store that has begun and is overdue is passed over too often."""
        for port, (flight, begun, passed) in list(self.since.items()):
            if flight is first:
                del self.since[port]
            elif cycle > begun + self.store_wait + 2:
                assert passed < self.most, f"a line of store {flight.name} is passed over"
                self.since[port] = flight, begun, passed + 1
        if first.instruction.store and first.unsent:
            self.since[first.port] = first, cycle, 0


def protocol(m: Module, parameters: dict[str, int], ports: Any) -> Value:
    """The line size is constant, and 32, 64 or 128 bytes."""
    return one_size(m, ports["line_shift"])


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _event(name: str) -> Bin:
    return lambda p, i, o, c: name in o.events


def _sent(i: Any, o: Any) -> Any:
    return o.access.payload if o.access.valid and i.access.ready else None


def _load(i: Any, o: Any) -> Any:
    return o.access.payload if _sent(i, o) and not o.access.payload.store and not o.access.payload.atomic else None


def _merged(count: int) -> Bin:
    return lambda p, i, o, c: bool(_load(i, o)) and o.access.payload.count == count


def _mapped(mapping: Mapping) -> Bin:
    return lambda p, i, o, c: (
        o.result.valid and i.result.ready and not o.result.payload.atomic and o.result.payload.mapping == mapping
    )


def _sized(shift: int) -> Bin:
    return lambda p, i, o, c: o.access.valid and i.line_shift == shift


_MERGING = (
    "a merge across coalescers", "two loads of one warp merge", "loads that bypass merge",
    "loads of different mappings merge", "random lines merge",
)  # fmt: skip
_EVENTS = (
    *_MERGING, "all has ended", "a load follows a load that is not sent", "an instruction waits for a full queue",
    "an id comes again", "a line is requested again", "the thread-map table is full", "the metadata are in use",
    "lines share an entry", "one more than a tag can merge", "an answer out of order",
    "an answer in the cycle after the access", "access, answer and result in one cycle",
)  # fmt: skip


BINS: dict[str, Bin] = {
    **{name: _event(name) for name in _EVENTS},
    **{f"a request for {count}": _merged(count) for count in range(1, 5)},
    **{f"mapping {mapping.name.lower()}": _mapped(mapping) for mapping in Mapping},
    "a load by age": lambda p, i, o, c: bool(_load(i, o)) and not o.policy,
    "a load by warp": lambda p, i, o, c: bool(_load(i, o)) and o.policy,
    "a load that bypasses": lambda p, i, o, c: bool(_load(i, o)) and o.access.payload.bypass,
    "a load hits": lambda p, i, o, c: bool(_load(i, o)) and not i.miss,
    "a store's last line": lambda p, i, o, c: bool(_sent(i, o)) and o.access.payload.store and o.access.payload.last,
    "a store's line before": lambda p, i, o, c: (
        bool(_sent(i, o)) and o.access.payload.store and not o.access.payload.last
    ),
    "an atomic's line before": lambda p, i, o, c: (
        bool(_sent(i, o)) and o.access.payload.atomic and not o.access.payload.last
    ),
    "an overdue store": lambda p, i, o, c: o.overdue,
    "an atomic is answered": lambda p, i, o, c: i.answer.valid and o.answer.ready and i.answer.payload.atomic,
    "an atomic's result": lambda p, i, o, c: o.result.valid and i.result.ready and o.result.payload.atomic,
    "the L1 takes nothing": lambda p, i, o, c: o.access.valid and not i.access.ready,
    "an answer waits": lambda p, i, o, c: i.answer.valid and not o.answer.ready,
    "a result waits": lambda p, i, o, c: o.result.valid and not i.result.ready,
    "a full instruction queue": lambda p, i, o, c: (
        not all(o.free[queue] for queue in range(-(-p["warps"] // p["warps_per_queue"])))
    ),
    "several warps issue": lambda p, i, o, c: bool(i.issue & (i.issue - 1)),
    "all drained": lambda p, i, o, c: o.drained == (1 << p["warps"]) - 1,
    "drained, but for loads": lambda p, i, o, c: o.load_ready != o.drained,
    **{f"lines of {1 << shift} bytes": _sized(shift) for shift in (5, 6, 7)},
}

WAIVERS = (
    WAIVER,
    Waiver(
        r"instruction_queues\.cond_else: assign \{ n\d+\[5:4\], entering \} = .*",
        "a division, by a constant that is not 0",
    ),
)


def _fewer_than(count: int) -> Callable[[dict[str, int]], bool]:
    return lambda p: p["merges"] < count


# One lane has one line with one word; one slot merges nothing; one ticket is free only when its load has ended.
UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    **dict.fromkeys(
        ("a store's line before", "an atomic's line before", "the thread-map table is full",
         *(f"mapping {mapping.name.lower()}" for mapping in Mapping if mapping)),
        lambda p: p["lanes"] == 1,
    ),
    **dict.fromkeys(_MERGING, lambda p: p["merges"] == 1),
    "lines share an entry": lambda p: p["map_per"] == LINE,
    # A lane that is alone has the whole unit for its access, which waits for nothing.
    "an overdue store": lambda p: p["warps"] * p["tickets"] * p["lanes"] == 1,
    **{f"a request for {count}": _fewer_than(count) for count in range(1, 5)},
    **dict.fromkeys(
        ("a load follows a load that is not sent", "an instruction waits for a full queue", "several warps issue",
         "a line is requested again", "one more than a tag can merge", "an answer out of order",
         "access, answer and result in one cycle", "an answer waits"),
        lambda p: p["warps"] * p["tickets"] == 1,
    ),
}  # fmt: skip
