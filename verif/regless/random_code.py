"""Random kernels for register regions: any control flow that PTX can have, over a few registers of both widths.

What they compute means nothing, and some never end; the interpreter stops. Half of them are made of blocks that branch
anywhere, the others of nested branches and loops.
"""

from __future__ import annotations

import random

WORDS, LONGS, PREDICATES = 6, 4, 3


class Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.labels = 0

    def ptx(self) -> str:
        """The text of a module with the kernel ``k``."""
        blocks = self.rng.randint(2, 6)
        body = self._tangle(blocks) if self.rng.random() < 0.5 else self._nest(2)
        start = ["ld.param.u64 %d0, [p];"]
        start += [f"mov.u32 %r{n}, %tid.x;" for n in range(WORDS) if self.rng.random() < 0.7]
        start += [f"cvt.u64.u32 %d{n}, %r0;" for n in range(1, LONGS) if self.rng.random() < 0.7]
        code = "\n".join([*start, *body, *self._some(3), "ret;"])
        return f"""
.version 8.7
.target sm_90
.address_size 64
.shared .align 4 .u32 words[32];
.visible .entry k(.param .u64 p)
{{
.reg .b32 %r<{WORDS}>; .reg .b64 %d<{LONGS}>; .reg .pred %p<{PREDICATES}>;
{code}
}}
"""

    def _tangle(self, blocks: int) -> list[str]:
        """Blocks that end with a branch to any other."""
        labels = [self._label() for _ in range(blocks)]
        lines = []
        for label in labels:
            lines += [f"{label}:", *self._some(self.rng.randint(0, 12))]
            chance, target = self.rng.random(), self.rng.choice(labels)
            if chance < 0.6:
                lines += [self._predicate(), f"{self._guard()} bra {target};"]
            elif chance < 0.7:
                lines.append(f"bra {target};")
            elif chance < 0.8:
                lines += self._table(self.rng.choices(labels, k=3))
            elif chance < 0.9:
                lines.append(f"{self._guard()} ret;")
        return lines

    def _nest(self, depth: int) -> list[str]:
        """Statements that hold others."""
        lines = []
        for _ in range(self.rng.randint(1, 3)):
            lines += self._some(self.rng.randint(0, 9))
            chance, label = self.rng.random(), self._label()
            if depth and chance < 0.5:
                lines += [self._predicate(), f"{self._guard()} bra {label};", *self._nest(depth - 1)]
                if self.rng.random() < 0.6:
                    end = self._label()
                    lines += [f"bra {end};", f"{label}:", *self._nest(depth - 1), f"{end}:"]
                else:
                    lines.append(f"{label}:")
            elif depth and chance < 0.8:
                lines += [f"{label}:", *self._nest(depth - 1), self._predicate(), f"{self._guard()} bra {label};"]
            elif depth and chance < 0.9:
                ways, end = [self._label() for _ in range(3)], self._label()
                lines += self._table(ways)
                for way in ways:
                    lines += [f"{way}:", *self._nest(depth - 1), f"bra {end};"]
                lines.append(f"{end}:")
            elif chance < 0.95:
                lines.append(f"{self._guard()} ret;")
        return lines

    def _table(self, labels: list[str]) -> list[str]:
        table = self._label()
        return [f"{table}: .branchtargets {', '.join(labels)};", f"brx.idx {self._word()}, {table};"]

    def _some(self, count: int) -> list[str]:
        return [self._instruction() for _ in range(count)]

    def _instruction(self) -> str:
        a, b, c, d, e = self._word(), self._word(), self._word(), self._long(), self._long()
        choices = [
            f"add.u32 {a}, {b}, {c};", f"mad.lo.u32 {a}, {b}, {c}, {a};", f"mov.u32 {a}, 7;", f"mov.u64 {d}, 9;",
            f"add.u64 {d}, {d}, {e};", f"mul.wide.u32 {d}, {a}, {b};", f"cvt.u32.u64 {a}, {d};",
            f"cvt.u64.u32 {d}, {a};", f"mov.b64 {{{a}, {b}}}, {d};" if a != b else f"mov.u32 {a}, {b};",
            f"mov.b64 {d}, {{{a}, {b}}};", f"ld.global.u32 {a}, [{d}];", f"ld.global.u64 {d}, [{d}];",
            f"ld.global.v2.u32 {{%r0, %r1}}, [{d}];", f"st.global.u32 [{d}], {a};",
            f"atom.global.add.u32 {a}, [{d}], {b};",
            f"ld.shared.u32 {a}, [words];", f"st.shared.u32 [words], {a};", self._predicate(),
            f"selp.b32 {a}, {b}, {c}, %p0;", "bar.sync 0;", f"bar.red.popc.u32 {a}, 0, %p1;",
        ]  # fmt: skip
        chosen = self.rng.choice(choices)
        barrier = chosen.startswith("bar")
        return f"{self._guard()} {chosen}" if self.rng.random() < 0.25 and not barrier else chosen

    def _predicate(self) -> str:
        return f"setp.lt.u32 %p{self.rng.randrange(PREDICATES)}, {self._word()}, {self._word()};"

    def _guard(self) -> str:
        return f"@{self.rng.choice(['', '!'])}%p{self.rng.randrange(PREDICATES)}"

    def _word(self) -> str:
        return f"%r{self.rng.randrange(WORDS)}"

    def _long(self) -> str:
        return f"%d{self.rng.randrange(LONGS)}"

    def _label(self) -> str:
        self.labels += 1
        return f"$L{self.labels}"
