"""The tests of `lockstep litmus`, their outcomes, and which of these PTX's memory model forbids.

A thread's accesses are *plain* (``ld``, ``st``), *volatile*, or *atomic* (``atom``). In *mixed* message passing the
data are plain and the flag is volatile, and of two loads of one word, the second is plain; with *acquire* the flag is
stored with ``st.release`` and loaded with ``ld.acquire``. Between them there is no fence, ``membar.cta`` or
``membar.gl``. The threads are in one CTA, in CTAs of one SM, or in CTAs of two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Values = tuple[int, ...]
"""What an instance ends with: a and b of each thread, then x and y."""

PLACES = {"cta": "one CTA", "sm": "one SM", "sms": "several SMs"}
ACCESSES = ("plain", "volatile", "atomic", "mixed", "acquire")  # as ``litmus.cu`` numbers them
FENCES = ("none", "cta", "gpu")


@dataclass(frozen=True)
class Variant:
    """One way to run a test."""

    access: str
    fence: str
    place: str

    @property
    def strong(self) -> bool:
        """Whether the accesses that races are about are *strong* in PTX's sense: volatile, atomic or ordered ones."""
        return self.access != "plain"

    @property
    def ordered(self) -> bool:
        """Whether each thread's accesses are ordered for the others: by fences whose scope has them all."""
        scope = self.fence == "gpu" or (self.fence == "cta" and self.place == "cta")
        return self.strong and (scope or self.access == "acquire")


def always(_: Variant) -> bool:
    """Forbidden by the order of one thread's accesses to one word, or by the atomicity of atomics."""
    return True


def strong(variant: Variant) -> bool:
    """Forbidden if all accesses are strong: they agree on the order of a word's values, and see a new one in time."""
    return variant.strong and variant.access != "mixed"


def ordered(variant: Variant) -> bool:
    """Forbidden if they are strong, and ordered by fences."""
    return variant.ordered


@dataclass(frozen=True)
class Outcome:
    """An outcome that a test is about: as text, as a predicate of the values, and where it is forbidden."""

    text: str
    holds: Callable[[Values], bool]
    forbidden: Callable[[Variant], bool]


@dataclass(frozen=True)
class Shape:
    """A test. ``threads``: what each thread does, F stands for the fence."""

    name: str
    title: str
    threads: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    accesses: tuple[str, ...] = ("plain", "volatile", "atomic")
    fences: tuple[str, ...] = FENCES

    @property
    def variants(self) -> list[Variant]:
        """All ways to run it; what is ordered by itself needs no fence."""
        return [
            Variant(access, fence, place)
            for access in self.accesses
            for fence in (self.fences if access != "acquire" else FENCES[:1])
            for place in PLACES
        ]

    @property
    def kernel(self) -> str:
        """The name of its kernel in ``litmus.cu``."""
        return f"{self.name}_test"


def _message_passing(v: Values) -> bool:
    return v[2:4] == (1, 0)


COHERENCE = FENCES[:1]  # that of one word needs no fence

SHAPES: dict[str, Shape] = {
    shape.name: shape
    for shape in (
        Shape(
            "mp", "message passing", ("x = 1; F; y = 1", "a = y; F; b = x"),
            (Outcome("a = 1, b = 0", _message_passing, ordered),), ("plain", "volatile", "atomic", "mixed", "acquire"),
        ),
        Shape(
            "sb", "store buffering", ("x = 1; F; a = y", "y = 1; F; a = x"),
            (Outcome("a = 0, a = 0", lambda v: (v[0], v[2]) == (0, 0), ordered),),
        ),
        Shape(
            "lb", "load buffering", ("a = x; F; y = 1", "a = y; F; x = 1"),
            (Outcome("a = 1, a = 1", lambda v: (v[0], v[2]) == (1, 1), ordered),),
        ),
        Shape(
            "w2", "two words, written by both", ("x = 1; F; y = 2", "y = 1; F; x = 2"),
            (Outcome("x = 1, y = 1", lambda v: v[4:] == (1, 1), ordered),),
        ),
        Shape(
            "iriw", "independent reads of independent writes",
            ("x = 1", "y = 1", "a = x; F; b = y", "a = y; F; b = x"),
            (Outcome("a = 1, b = 0 twice", lambda v: v[4:8] == (1, 0, 1, 0), ordered),),
        ),
        Shape(
            "corr", "one word, two loads", ("x = 1", "a = x; b = x"),
            (Outcome("a = 1, b = 0", _message_passing, strong),), ("plain", "volatile", "atomic", "mixed"), COHERENCE,
        ),
        Shape(
            "coww", "one word, two stores", ("x = 1; x = 2", ""),
            (Outcome("x = 1", lambda v: v[4] == 1, always),), fences=COHERENCE,
        ),
        Shape(
            "corw", "one word, a load and a store", ("a = x; x = 1", "x = 2"),
            (
                Outcome("a = 1", lambda v: v[0] == 1, always),
                Outcome("a = 2, x = 2", lambda v: (v[0], v[4]) == (2, 2), strong),
            ),
            fences=COHERENCE,
        ),
        Shape(
            "cowr", "one word, a store and a load", ("x = 1; a = x", "x = 2"),
            (
                Outcome("a = 0", lambda v: v[0] == 0, always),
                Outcome("a = 2, x = 1", lambda v: (v[0], v[4]) == (2, 1), strong),
            ),
            fences=COHERENCE,
        ),
        Shape(
            "see", "a value that somebody waits for", ("x = 1", "a = x, 200 times at most, until it is 1"),
            (Outcome("a = 0", lambda v: v[2] == 0, strong),), fences=COHERENCE,
        ),
        Shape(
            "inc", "one word, increments", ("a = x++", "a = x++"),
            (Outcome("one is lost", lambda v: {v[0], v[2]} != {0, 1} or v[4] != 2, always),),
            ("atomic",), COHERENCE,
        ),
    )
}  # fmt: skip
"""By name."""
