"""The energy of a block's mapped netlist under recorded activity, from the power tables of its Liberty library.

The netlist is simulated without delays, so glitches are not counted, nor are wires and a clock tree; memories are
flip-flops. An edge of a net takes half of its pins' capacitance times the square of the voltage. An edge of a cell's
output takes what the table of the input that changed has for its load and for edges of :data:`SLEW`; where several
changed, the mean of theirs. An input that changes while no output does has tables of its own. The clock rises and falls
once in a cycle at every flip-flop.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

SLEW = 0.1  # nanoseconds, of all edges
MAX_PINS = 8  # of a cell: what it takes is kept for each pair of their values
KINDS = ("clock", "internal", "switching", "leakage")
_TOKEN = re.compile(r'/\*.*?(?:\*/|\Z)|"(?:[^"\\]|\\.)*"|[{}();:,]|[^\s{}();:,"\\]+', re.DOTALL)
_OPERATOR = re.compile(r"[\w.\[\]]+|[!'&*^+|()]")
_SCALES = {"f": 1e-15, "p": 1e-12, "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0}


class PowerError(ValueError):
    """A library or a netlist of which no energy can be had."""


class Mismatch(RuntimeError):
    """The netlist's outputs are not those that were recorded."""


@dataclass
class Group:
    """A group of a Liberty file: ``kind (arguments) {attributes, groups}``."""

    kind: str
    arguments: tuple[str, ...]
    attributes: dict[str, str] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)

    def all(self, kind: str) -> list[Group]:
        return [group for group in self.groups if group.kind == kind]


def parse(text: str) -> Group:
    """The library of a Liberty file. Raises :class:`PowerError`."""
    tokens = [token.strip('"') for token in _TOKEN.findall(text) if not token.startswith("/*")]
    stack, place = [Group("", ())], 0
    try:
        while place < len(tokens):
            token = tokens[place]
            if token in ";}":
                if token == "}":
                    stack.pop()
                place += 1
            elif tokens[place + 1] == ":":
                stack[-1].attributes[token] = tokens[place + 2]
                place += 3
            else:
                end = tokens.index(")", place)
                arguments = tuple(each for each in tokens[place + 2 : end] if each != ",")
                if tokens[end + 1] == "{":
                    group = Group(token, arguments)
                    stack[-1].groups.append(group)
                    stack.append(group)
                    end += 1
                else:
                    stack[-1].attributes[token] = " ".join(arguments)
                place = end + 1
        return stack[0].all("library")[0]
    except (IndexError, ValueError):
        raise PowerError("it is not a Liberty file that can be read") from None


Function = Callable[[Mapping[str, int]], int]


def function(text: str) -> Function:
    """A Boolean expression of pins."""
    tokens = _OPERATOR.findall(text)
    place = 0

    def peek() -> str:
        return tokens[place] if place < len(tokens) else ")"

    def chain(operators: str, inner: Callable[[], Function], join: Callable[[int, int], int]) -> Function:
        nonlocal place
        found = inner()
        while peek() in operators or (operators == "&*" and peek() not in "+|^)"):
            place += peek() in operators
            found = _joined(found, inner(), join)
        return found

    def one() -> Function:
        nonlocal place
        token = peek()
        place += 1
        if token == "!":
            found = _inverse(one())
        elif token == "(":
            found = either()
            place += 1
        else:
            found = (lambda pins: int(token)) if token in "01" else (lambda pins: pins[token])
        while peek() == "'":
            place += 1
            found = _inverse(found)
        return found

    def differs() -> Function:
        return chain("^", one, int.__xor__)

    def both() -> Function:
        return chain("&*", differs, int.__and__)

    def either() -> Function:
        return chain("+|", both, int.__or__)

    return either()


def _joined(a: Function, b: Function, join: Callable[[int, int], int]) -> Function:
    return lambda pins: join(a(pins), b(pins))


def _inverse(a: Function) -> Function:
    return lambda pins: 1 - a(pins)


def _numbers(text: str) -> list[float]:
    return [float(number) for number in re.split(r"[,\s\\]+", text) if number]


class Cell:
    """A cell of a library: its function, and what its edges take. A flip-flop has its state as its last pin."""

    def __init__(self, group: Group, templates: Mapping[str, Group], energy: float) -> None:
        self.name = group.arguments[0]
        self._templates, self._energy = templates, energy
        pins = {pin.arguments[0]: pin for pin in group.all("pin")}
        self.capacitance = {name: float(pin.attributes.get("capacitance", 0)) for name, pin in pins.items()}
        self.powers = {name: [(_condition(own), own) for own in pin.all("internal_power")]
                       for name, pin in pins.items()}  # fmt: skip
        self.leakage = [(_condition(own), float(own.attributes["value"])) for own in group.all("leakage_power")]
        self.mean_leakage = float(group.attributes.get("cell_leakage_power", 0))
        ff = next(iter(group.all("ff")), None)
        self.clock = ff.attributes["clocked_on"].strip("()") if ff else ""
        self.outputs = {name: function(pin.attributes["function"]) for name, pin in pins.items()
                        if pin.attributes.get("direction") == "output" and "function" in pin.attributes}  # fmt: skip
        inputs = [name for name, pin in pins.items()
                  if pin.attributes.get("direction") == "input" and name != self.clock]  # fmt: skip
        self.states = ff.arguments if ff else ()
        self.pins = (*inputs, *self.states[:1])
        self.inputs = (*inputs,)
        self.next = self._next(ff) if ff else None

    @staticmethod
    def _next(ff: Group) -> Function:
        parts = {name: function(ff.attributes.get(name, "0")) for name in ("next_state", "clear", "preset")}
        return lambda pins: 0 if parts["clear"](pins) else 1 if parts["preset"](pins) else parts["next_state"](pins)

    def check(self) -> None:
        """Look at all functions and tables once."""
        if len(self.pins) > MAX_PINS:
            raise PowerError(f"cell {self.name} has {len(self.pins)} inputs: at most {MAX_PINS}")
        pins = self.values(0)
        self.leaks(0)
        if self.next:
            self.next(pins)
        for pin, rise in itertools.product(self.powers, (True, False)):
            self.edge(pin, rise, pins, 0.0)
            for _, group in self.powers[pin]:
                for table in group.groups:
                    self._look_up(table, 0.0)

    def values(self, index: int, clock: int = 1) -> dict[str, int]:
        """All pins, where ``pins`` have the bits of ``index``."""
        found = {name: index >> place & 1 for place, name in enumerate(self.pins)}
        if self.states:
            found |= {self.states[-1]: 1 - found[self.states[0]], self.clock: clock}
        return found | {name: output(found) for name, output in self.outputs.items()}

    def table(self, output: Function | None) -> list[int]:
        """What a function of the pins is, by their index."""
        return [output(self.values(index)) if output else 0 for index in range(1 << len(self.pins))]

    def leaks(self, index: int) -> float:
        """At an index of the pins, in the library's unit."""
        known = [self.values(index, clock) for clock in (0, 1)]
        found = [value for pins in known for condition, value in self.leakage if condition(pins)]
        return sum(found) / len(found) if found else self.mean_leakage

    def edge(self, pin: str, rise: bool, pins: Mapping[str, int], load: float, related: Iterable[str] = ()) -> float:
        """Of an edge of a pin, in femtojoules; the mean of those groups that hold for ``pins``."""
        groups = self.powers[pin]
        of = set(related)
        own = [each for each in groups if of & set(each[1].attributes.get("related_pin", "").split())]
        groups = own or groups
        conditional = [group for condition, group in groups if "when" in group.attributes and condition(pins)]
        found = conditional or [group for _, group in groups if "when" not in group.attributes]
        kind = "rise_power" if rise else "fall_power"
        energies = [self._look_up(table, load) for group in found for table in (*group.all(kind), *group.all("power"))]
        return self._energy * sum(energies) / len(energies) if energies else 0.0

    def _look_up(self, table: Group, load: float) -> float:
        """A table at :data:`SLEW` and a load, linear between its points and beyond them as at its ends."""
        values = np.array(_numbers(table.attributes["values"]))
        if values.size == 1:
            return float(values[0])
        template = self._templates[table.arguments[0]]
        axes = []
        for number in (1, 2):
            variable, points = (template.attributes.get(f"{name}_{number}") for name in ("variable", "index"))
            points = table.attributes.get(f"index_{number}", points)
            if variable and points:
                axes.append((load if "capacitance" in variable else SLEW, _numbers(points)))
        values = values.reshape([len(places) for _, places in axes])
        for at, places in reversed(axes):
            rows = values.reshape(-1, len(places))
            values = np.array([np.interp(at, places, row) for row in rows]).reshape(values.shape[:-1])
        return float(values)


def _condition(group: Group) -> Function:
    return function(group.attributes.get("when", "1"))


class Powers:
    """The cells of a Liberty file with what they take. Raises :class:`PowerError` where the file has no power."""

    def __init__(self, text: str) -> None:
        library = parse(text)
        self.name = library.arguments[0]
        try:
            self.voltage = float(library.attributes["nom_voltage"])
            number, unit = library.attributes["capacitive_load_unit"].split()
            self.farads = float(number) * _SCALES[unit.lower().removesuffix("f")]
            scale = re.fullmatch(r"([\d.]+)(\w?)W", library.attributes["leakage_power_unit"])
            volts = re.fullmatch(r"([\d.]+)(\w?)V", library.attributes["voltage_unit"])
            self.watts = float(scale[1]) * _SCALES[scale[2]]  # type: ignore[index]
            self.volts = float(volts[1]) * _SCALES[volts[2]]  # type: ignore[index]
        except (KeyError, ValueError, TypeError):
            raise PowerError("it does not say its voltage, or its units of capacitance, voltage and leakage") from None
        self.groups = {group.arguments[0]: group for group in library.all("cell")}
        if not any(pin.all("internal_power") for cell in self.groups.values() for pin in cell.all("pin")):
            raise PowerError("it has no internal_power, which energy comes from")
        self._templates = {group.arguments[0]: group for group in library.all("power_lut_template")}
        self._cells: dict[str, Cell] = {}

    def cell(self, name: str) -> Cell:
        """A cell. Raises :class:`PowerError` for one that cannot be read."""
        if name not in self._cells:
            energy = self.farads * self.volts**2 * 1e15
            try:
                cell = Cell(self.groups[name], self._templates, energy)
                cell.check()
            except PowerError:
                raise
            except (KeyError, ValueError, TypeError, IndexError, RecursionError):
                raise PowerError(f"cell {name} has a function, table or number that cannot be read") from None
            self._cells[name] = cell
        return self._cells[name]


@dataclass(frozen=True)
class Energy:
    """Femtojoules of each kind over ``cycles``."""

    femtojoules: dict[str, int]
    cycles: int
    cells: int
    flip_flops: int

    @property
    def total(self) -> int:
        return sum(self.femtojoules.values())


class Simulator:
    """A netlist of a library's cells, cycle by cycle.

    ``module`` is Yosys' JSON of it, with a clock ``clk``. Values are of all nets, in :attr:`values`.
    """

    def __init__(self, module: dict[str, Any], powers: Powers) -> None:
        self.powers, self.module = powers, module
        self.cells = [(powers.cell(cell["type"]), cell["connections"]) for cell in module["cells"].values()]
        bits = [bit for _, pins in self.cells for own in pins.values() for bit in own]
        bits += [bit for port in module["ports"].values() for bit in port["bits"]]
        numbers = {"0": 0, "x": 0, "1": 1}
        for bit in bits:
            numbers.setdefault(bit, len(numbers) - 1)
        self.nets = numbers
        self.values = np.zeros(len(numbers), np.uint8)
        self.values[1] = 1
        self.state = np.zeros(len(self.cells), np.uint8)
        self.loads = np.zeros(len(numbers))
        for cell, pins in self.cells:
            for pin, own in pins.items():
                if pin not in cell.outputs:
                    self.loads[numbers[own[0]]] += cell.capacitance[pin]
        sizes = [1 << len(cell.pins) for cell, _ in self.cells]
        self._width = np.array([len(cell.pins) for cell, _ in self.cells], np.int64)
        self._starts = np.cumsum([0, *(size * size for size in sizes)])
        self.histogram = np.zeros(self._starts[-1], np.int64)
        self.toggles = np.zeros(len(numbers), np.int64)
        pins = max(self._width, default=1)
        self._inputs = np.zeros((len(self.cells), pins), np.int64)
        for row, (cell, connections) in enumerate(self.cells):
            for place, pin in enumerate(cell.inputs):
                self._inputs[row, place] = numbers[connections[pin][0]]
        self._state_place = np.array([len(cell.inputs) for cell, _ in self.cells])
        self._flops = np.array([row for row, (cell, _) in enumerate(self.cells) if cell.next], np.int64)
        tables = {cell.name: cell.table(cell.next) for cell, _ in self.cells if cell.next}
        self._next_at, self._next = _joined_tables([tables[self.cells[row][0].name] for row in self._flops])
        self._levels = self._levelled()

    def _levelled(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Of each level: cells, the nets of their outputs, and the functions."""
        driver = {bits[0]: row for row, (cell, pins) in enumerate(self.cells) for pin, bits in pins.items()
                  if pin in cell.outputs and not cell.next}  # fmt: skip
        level: dict[int, int] = {row: 0 for row in self._flops.tolist()}
        for start in range(len(self.cells)):
            waiting = [start]
            while waiting:
                row = waiting[-1]
                cell, pins = self.cells[row]
                inputs = [] if cell.next else cell.inputs
                before = [driver[pins[pin][0]] for pin in inputs if pins[pin][0] in driver]
                if missing := [each for each in before if each not in level]:
                    if len(waiting) > len(self.cells):
                        raise PowerError("the netlist has a combinational loop")
                    waiting += missing[:1]
                else:
                    level.setdefault(row, 1 + max((level[each] for each in before), default=0))
                    waiting.pop()
        found: dict[int, list[tuple[int, int, list[int]]]] = defaultdict(list)
        known: dict[tuple[str, str], list[int]] = {}
        for row, (cell, pins) in enumerate(self.cells):
            for pin, output in cell.outputs.items():
                if pins.get(pin):
                    table = known.setdefault((cell.name, pin), cell.table(output))
                    found[level[row]].append((row, self.nets[pins[pin][0]], table))
        return [
            (np.array([row for row, _, _ in own]), np.array([net for _, net, _ in own]),
             *_joined_tables([table for _, _, table in own]))
            for _, own in sorted(found.items())
        ]  # fmt: skip

    def _indices(self, rows: np.ndarray) -> np.ndarray:
        """Of the pins of cells."""
        bits = self.values[self._inputs[rows]].astype(np.int64)
        bits[np.arange(bits.shape[1]) >= self._state_place[rows][:, None]] = 0
        index = (bits << np.arange(bits.shape[1])).sum(1)
        return index | self.state[rows].astype(np.int64) << self._state_place[rows]

    def set(self, port: str, values: np.ndarray) -> None:
        self.values[[self.nets[bit] for bit in self.module["ports"][port]["bits"]]] = values

    def get(self, port: str) -> np.ndarray:
        return self.values[[self.nets[bit] for bit in self.module["ports"][port]["bits"]]]

    def settle(self) -> None:
        """Combinational logic follows inputs and flip-flops."""
        for rows, nets, starts, tables in self._levels:
            self.values[nets] = tables[starts + self._indices(rows)]

    def clock(self) -> None:
        """A rising edge; nothing behind the flip-flops follows yet."""
        if self._flops.size:
            self.state[self._flops] = self._next[self._next_at + self._indices(self._flops)]

    @cached_property
    def _every(self) -> np.ndarray:
        return np.arange(len(self.cells))

    def look(self) -> tuple[np.ndarray, np.ndarray]:
        return self._indices(self._every), self.values.copy()

    def count(self, before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray]) -> None:
        """What changed from one settled cycle to the next."""
        self.histogram[self._starts[:-1] + (before[0] << self._width) + after[0]] += 1
        self.toggles += before[1] != after[1]

    def energy(self, cycles: int, period: float) -> Energy:
        """Of what was counted; ``period`` in nanoseconds."""
        joules = dict.fromkeys(KINDS, 0.0)
        square = self.powers.volts**2 * self.powers.voltage**2 / 2 * self.powers.farads * 1e15
        clock = self.nets.get(next(iter(self.module["ports"].get("clk", {"bits": [None]})["bits"])), 0)
        joules["switching"] = square * float(np.delete(self.toggles * self.loads, clock).sum())
        joules["clock"] = square * 2 * cycles * float(self.loads[clock]) if clock > 1 else 0.0
        for row, (cell, pins) in enumerate(self.cells):
            loads = {pin: float(self.loads[self.nets[pins[pin][0]]]) if pins.get(pin) else 0.0 for pin in cell.outputs}
            counts = self.histogram[self._starts[row] : self._starts[row + 1]]
            for code in np.flatnonzero(counts).tolist():
                old, new = divmod(code, 1 << len(cell.pins))
                times = int(counts[code])
                joules["leakage"] += times * cell.leaks(new) * self.powers.watts * period * 1e-9 * 1e15
                if old != new:
                    joules["internal"] += times * _changed(cell, old, new, loads)
                if cell.next:
                    joules["clock"] += times * cell.edge(cell.clock, True, cell.values(old, 0), 0)
                    joules["clock"] += times * cell.edge(cell.clock, False, cell.values(new, 1), 0)
        flops = int(self._flops.size)
        return Energy({kind: round(joules[kind]) for kind in KINDS}, cycles, len(self.cells), flops)


def _changed(cell: Cell, old: int, new: int, loads: Mapping[str, float]) -> float:
    """Femtojoules inside a cell whose pins change."""
    before, after = cell.values(old), cell.values(new)
    inputs = [pin for pin in cell.inputs if before[pin] != after[pin]]
    outputs = [pin for pin in cell.outputs if before[pin] != after[pin]]
    related = [cell.clock] if cell.next else inputs
    energy = sum(cell.edge(pin, bool(after[pin]), after, loads[pin], related) for pin in outputs)
    if cell.next or not outputs:
        energy += sum(cell.edge(pin, bool(after[pin]), after, 0) for pin in inputs)
    return energy


def _joined_tables(tables: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Where each table starts, and all of them one after the other."""
    starts = np.cumsum([0, *(len(table) for table in tables)], dtype=np.int64)[:-1]
    return starts, np.fromiter(itertools.chain.from_iterable(tables), np.uint8)


@dataclass(frozen=True)
class Cycle:
    """Ports in some cycles: their bits, from the lowest; ``reset``: a reset comes first."""

    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]
    cycles: int = 1
    reset: bool = False


def measure(netlist: str, top: str, powers: Powers, recorded: Iterable[Cycle], most: int, period: float) -> Energy:
    """Play recorded ports to a netlist (Yosys' JSON) for ``most`` cycles, from the first on.

    Raises
    ------
    Mismatch
        in the first cycle in which an output is not as recorded.
    """
    simulator = Simulator(json.loads(netlist)["modules"][top], powers)
    done, before = 0, None
    for record in recorded:
        if done == most:
            break
        if record.reset or before is None:
            _reset(simulator)
            before = simulator.look()
        for name, bits in record.inputs.items():
            simulator.set(name, bits)
        for _ in range(min(record.cycles, most - done)):
            simulator.settle()
            for name, bits in record.outputs.items():
                if not np.array_equal(found := simulator.get(name), bits):
                    values = f"recorded {_hexadecimal(bits)}, netlist {_hexadecimal(found)}"
                    raise Mismatch(f"cycle {done}: {name}: {values}")
            after = simulator.look()
            simulator.count(before, after)
            before, done = after, done + 1
            simulator.clock()
    return simulator.energy(done, period)


def _reset(simulator: Simulator) -> None:
    if "rst" in simulator.module["ports"]:
        simulator.set("rst", np.ones(1, np.uint8))
    simulator.settle()
    simulator.clock()
    if "rst" in simulator.module["ports"]:
        simulator.set("rst", np.zeros(1, np.uint8))
    simulator.settle()


def _hexadecimal(bits: np.ndarray) -> str:
    return hex(sum(int(bit) << place for place, bit in enumerate(bits)))
