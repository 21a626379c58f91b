"""``printf``: formats, arguments and strings in every memory, results, faults, the order of the text and its limit."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

import pytest

from lockstep.models.execution import printf
from lockstep.models.execution.isa import GRANULE, LANES, Fault, Fetch, Group, Kind, Space, System, Write
from lockstep.models.execution.printf import Conversion, Printer, parse
from lockstep.models.execution.system import execute_system
from lockstep.verif.bench import interpreted, seeded
from lockstep.verif.models.execution.machine import ALL, WINDOWS, Machine

FORMAT, ARGUMENTS, RESULT = 2, 4, 6  # registers
STRINGS = 2048  # global memory from here on holds strings, formats lie below
LOCAL, GLOBAL, SHARED = WINDOWS[Space.LOCAL], WINDOWS[Space.GLOBAL], WINDOWS[Space.SHARED]

Value = int | float | str | None

# Format, arguments, and what is printed, as the C standard and CUDA's programming guide have it.
CASES: list[tuple[str, list[Value], str]] = [
    ("no arguments\n", [], "no arguments\n"),
    ("100%% %%d", [], "100% %d"),
    ("%d %i %u", [-1, -2, -3], "-1 -2 4294967293"),
    ("[%5d|%-5d|%05d|%+d|% d]", [42, 42, 42, 42, 42], "[   42|42   |00042|+42| 42]"),
    ("%x %X %#x %o %#o", [255, 255, 255, 8, 8], "ff FF 0xff 10 010"),
    ("%.3d %8.3d", [7, 7], "007      007"),
    ("%hhd %hd %hhu", [300, 70000, -1], "44 4464 255"),
    ("%lld %ld %llu", [1 << 40, -(1 << 40), -1], "1099511627776 -1099511627776 18446744073709551615"),
    ("%zu %jd %td", [-1, -5, -6], "18446744073709551615 -5 -6"),
    ("%c%c%5c|%-3c|", [72, 105, 33, 46], "Hi    !|.  |"),
    ("%f %.2f|%10.3f|%-10.1f|", [1.5, 2.345, -3.14159, 9.99], "1.500000 2.35|    -3.142|10.0      |"),
    ("%e %.1E %g %G %g", [12345.678, 0.00012, 0.0001, 1e-10, 1e20], "1.234568e+04 1.2E-04 0.0001 1E-10 1e+20"),
    ("%a %A %.2a", [1.5, 255.0, 3.14159], "0x1.8p+0 0X1.FEP+7 0x1.92p+1"),
    ("%f %F %+f", [float("inf"), float("nan"), float("-inf")], "inf NAN -inf"),
    ("%s|%6s|%-6s|%.2s", ["abc", "abc", "abc", "abc"], "abc|   abc|abc   |ab"),
    ("%*d|%-*d|%.*f|%*.*f", [5, 1, 5, 2, 2, 1.239, 8, 1, 2.56], "    1|2    |1.24|     2.6"),
    ("%*d|", [-5, 3], "3    |"),
    ("%.*f", [-1, 0.5], "0.500000"),
    ("%p %p", [0x1234, 0], "0x1234 (nil)"),
    ("%s", [None], "(null)"),
    ("%d %lld %c %f %d", [1, 2, 65, 0.25, 3], "1 2 A 0.250000 3"),
    ("%lf %hs %lc", [0.5, "text", 90], "0.500000 text Z"),
    ("%y %", [], "%y %"),
    ("50% done", [2], "50 2one"),
    ("%s", ["\N{GREEK SMALL LETTER MU}s"], "\N{GREEK SMALL LETTER MU}s"),
]


class Bench:
    """A machine whose lanes print."""

    def __init__(self, rng: random.Random) -> None:
        self.machine = Machine(execute_system, rng)
        self.machine.valid[:] = GRANULE
        self.printer = Printer(self.machine.context)
        self.begin((1, 1, 1))
        self.machine.context["host"] = self.printer.address
        self.strings = STRINGS

    def begin(self, grid: tuple[int, int, int]) -> None:
        self.machine.grid["size"] = grid
        self.printer.begin(self.machine.grid)

    @property
    def text(self) -> str:
        return self.printer.text(self.machine.grid)

    def store(self, space: Space, offset: int, data: bytes, lane: int = 0) -> int:
        """Put bytes into a memory; returns their generic address."""
        for k, byte in enumerate(data):
            self.machine.write(space, offset + k, 1, lane, byte)
        return WINDOWS[space] + offset

    def arguments(self, text: str, values: Sequence[Value]) -> bytes:
        """The arguments as a compiler lays them out; strings go to global memory."""
        data = b""
        parts = [part for part in parse(text.encode()).parts if isinstance(part, Conversion)]
        kinds = [kind for part in parts for _, kind in part.arguments]
        for value, kind in zip(values, kinds, strict=True):
            if isinstance(value, str):
                string = value.encode() + b"\0"
                value = self.store(Space.GLOBAL, self.strings, string)
                self.strings += len(string)
            packed = struct.pack("<d" if kind == "d" else "<i" if kind in "i*" else "<q", value or 0)
            data = data.ljust(-(-len(data) // len(packed)) * len(packed), b"\xee") + packed
        return data

    def call(self, formats: list[int], arguments: list[int], mask: int = ALL) -> int:
        """Execute a call; returns the fault."""
        self.machine.set_long(FORMAT, formats)
        self.machine.set_long(ARGUMENTS, arguments)
        return self.machine.run(
            mask, group=Group.SYSTEM, op=System.PRINTF, kind=[Kind.REGISTER, Kind.REGISTER, 0, 0],
            fetch=[Fetch.PAIR, Fetch.PAIR, 0, 0], src=[FORMAT, ARGUMENTS, 0, 0], dst=RESULT, write=Write.WORD,
        )  # fmt: skip

    def print(self, text: str, values: Sequence[Value], mask: int = 1) -> int:
        where = self.store(Space.GLOBAL, 0, text.encode() + b"\0")
        data = self.arguments(text, values)
        for lane in range(LANES):
            self.store(Space.LOCAL, 0, data, lane)
        return self.call([where] * LANES, [LOCAL if data else 0] * LANES, mask)

    @property
    def results(self) -> list[int]:
        return self.machine.registers[RESULT].view("i4").tolist()


@pytest.mark.parametrize(("text", "values", "printed"), CASES, ids=[case[0].strip() for case in CASES])
def test_formats(text: str, values: Sequence[Value], printed: str) -> None:
    bench = Bench(seeded())
    # Local memory of a thread has 48 bytes: more arguments than fit there lie in the scratchpad.
    data, where = bench.arguments(text, values), bench.store(Space.GLOBAL, 0, text.encode() + b"\0")
    assert bench.call([where] * LANES, [bench.store(Space.SHARED, 64, data)] * LANES, 1 << 9) == Fault.NONE
    assert bench.text == printed
    assert bench.results[9] == len(values)


def test_each_active_lane_prints_in_its_turn() -> None:
    bench = Bench(seeded())
    before = bench.results
    where = bench.store(Space.GLOBAL, 100, b"%d;\0")
    for lane in range(LANES):
        bench.store(Space.LOCAL, 40, struct.pack("<i", lane * lane), lane)
    assert bench.call([where] * LANES, [LOCAL + 40] * LANES, 0x8000_00F2) == Fault.NONE
    assert bench.text == "1;16;25;36;49;961;"
    mask = 0x8000_00F2
    assert bench.results == [1 if mask >> lane & 1 else before[lane] for lane in range(LANES)]


def test_formats_and_strings_of_each_lanes_own() -> None:
    """In local memory one address is another string in each lane; in the scratchpad it is the same."""
    bench = Bench(seeded())
    shared = bench.store(Space.SHARED, 500, b"tile\0")
    for lane in range(LANES):
        bench.store(Space.LOCAL, 0, f"%s {lane}\n".encode() + b"\0", lane)
        bench.store(Space.LOCAL, 16, struct.pack("<q", shared if lane % 2 else LOCAL + 24), lane)
        bench.store(Space.LOCAL, 24, b"own%d\0" % lane, lane)
    assert bench.call([LOCAL] * LANES, [LOCAL + 16] * LANES, 0b1111) == Fault.NONE
    assert bench.text == "own0 0\ntile 1\nown2 2\ntile 3\n"


def test_strings_are_read_at_the_call() -> None:
    bench = Bench(seeded())
    for word in ("first", "then"):
        bench.strings = STRINGS
        assert bench.print("%s ", [word]) == Fault.NONE
    assert bench.text == "first then "


def test_a_null_format() -> None:
    bench = Bench(seeded())
    where = bench.store(Space.GLOBAL, 0, b"x\0")
    assert bench.call([where, 0, where] + [0] * 29, [0] * LANES, 0b111) == Fault.NONE
    assert bench.text == "xx" and bench.results[:3] == [0, -1, 0]


@pytest.mark.parametrize(
    ("which", "address"), [("format", 64), ("argument", LOCAL + 46), ("string", SHARED + 2046), ("string", 1 << 63)]
)
def test_a_bad_pointer_is_a_fault(which: str, address: int) -> None:
    """It names lane and address, and the lanes before have printed."""
    bench = Bench(seeded())
    formats, arguments = [bench.store(Space.GLOBAL, 0, b"%s;\0")] * LANES, [LOCAL] * LANES
    good = bench.store(Space.GLOBAL, STRINGS, b"good\0")
    bench.store(Space.SHARED, 2040, b"no zero!")
    for lane in range(LANES):
        bench.store(Space.LOCAL, 0, struct.pack("<Q", address if which == "string" and lane == 5 else good), lane)
    if which != "string":
        (formats if which == "format" else arguments)[5] = address
    assert bench.call(formats, arguments) == Fault.OUT_OF_BOUNDS
    named = {LOCAL + 46: LOCAL + 48, SHARED + 2046: SHARED + 2048, 1 << 63: -(1 << 63)}.get(address, address)
    assert (bench.machine.x.fault_lane, bench.machine.x.fault_address) == (5, named)
    assert bench.text == "good;" * 5


def test_unwritten_bytes_are_found() -> None:
    """An argument's, a string's; not those that alignment leaves between arguments."""
    bench = Bench(seeded())
    bench.machine.keep_marks()
    text, string = bench.store(Space.GLOBAL, 0, b"%d %s;\0"), bench.store(Space.SHARED, 0, b"ab\0")
    bench.store(Space.LOCAL, 0, struct.pack("<ixxxxQ", 1, string))
    marks = bench.machine.marks
    marks["memory"][:7], marks["shared"][:3] = 0xFF, 0xFF
    for word in (0, 2, 3):
        assert bench.call([text] * LANES, [LOCAL] * LANES, 1) == Fault.UNWRITTEN
        assert bench.machine.x.fault_address == LOCAL + 4 * word
        marks["local"][4 * LANES * word :][:4] = 0xFF
    assert bench.call([text] * LANES, [LOCAL] * LANES, 1) == Fault.NONE
    marks["shared"][1] = 0
    assert bench.call([text] * LANES, [LOCAL] * LANES, 1) == Fault.UNWRITTEN
    assert bench.machine.x.fault_address == SHARED + 1
    assert bench.text == "1 ab;"


def test_the_first_32_arguments_count() -> None:
    bench = Bench(seeded())
    text = "%d " * 31 + "%*d %d %s"
    where = bench.store(Space.GLOBAL, 0, text.encode() + b"\0")
    values = bench.store(Space.SHARED, 0, struct.pack("<33i", *range(33)))
    assert bench.call([where] * LANES, [values] * LANES, 1) == Fault.NONE
    assert bench.text == "".join(f"{k} " for k in range(31)) + "%*d 31 %s"
    assert bench.results[0] == 32


@pytest.mark.parametrize("text", ["%999999999d", "%.999999999d"])
def test_a_width_ends(text: str) -> None:
    bench = Bench(seeded())
    bench.print(text, [7])
    assert len(bench.text) == printf.WIDEST and bench.text.strip(" 0") == "7"


def test_a_width_from_an_argument_ends() -> None:
    for text, values in (("%*d", [1 << 30, 7]), ("%.*d", [1 << 30, 7]), ("%*d", [-(1 << 30), 7])):
        bench = Bench(seeded())
        bench.print(text, values)
        assert len(bench.text) == printf.WIDEST


def test_order_is_by_cta_and_warp() -> None:
    bench = Bench(seeded())
    bench.begin((3, 2, 2))
    calls = [(x, y, z, warp) for x in range(3) for y in range(2) for z in range(2) for warp in (1, 0)]
    random.Random(1).shuffle(calls)
    for time in range(2):
        for *cta, warp in calls:
            bench.machine.context["ctaid"], bench.machine.context["warp"] = cta, warp
            bench.print("%d%d%d.%d.%d ", [*cta, warp, time])
    expected = [
        f"{x}{y}{z}.{warp}.{time} "
        for z in range(2) for y in range(2) for x in range(3) for warp in range(2) for time in range(2)
    ]  # fmt: skip
    assert bench.text == "".join(expected)
    bench.begin((1, 1, 1))
    assert bench.text == ""


def test_the_text_of_a_launch_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes first is kept; calls still return the number of their arguments."""
    bench = Bench(seeded())
    monkeypatch.setattr(printf, "TEXT_BYTES", 20)
    bench.begin((1, 1, 1))
    for _ in range(3):
        assert bench.print("%d,seven", [5], 0b11) == Fault.NONE
        assert bench.results[:2] == [1, 1]
    assert bench.text == "5,seven5,seven\n[4 more calls of printf: a launch prints up to 20 bytes]\n"
    assert bench.printer.error is None


def test_errors_of_the_host_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt in the middle of a call cannot unwind compiled code: it ends the launch."""
    bench = Bench(seeded())

    def interrupted(_: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(printf, "parse", interrupted)
    assert bench.call([bench.store(Space.GLOBAL, 0, b"x\0")] * LANES, [0] * LANES) != Fault.NONE
    assert isinstance(bench.printer.error, KeyboardInterrupt)


def series(seed: int) -> str:
    rng = random.Random(seed)
    bench = Bench(rng)
    for text, values, _ in CASES:
        if len(values) < 5:
            bench.strings = STRINGS
            bench.print(text, values, rng.getrandbits(LANES))
            bench.call([0, GLOBAL, 5] * 10 + [0, 0], [LOCAL] * LANES, rng.getrandbits(2))
    return bench.text + repr(bench.results) + bench.machine.digest().hex()


def test_interpreted_equals_compiled() -> None:
    seed = seeded().getrandbits(32)
    assert interpreted(series, seed) == series(seed)
