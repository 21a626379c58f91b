"""Textures with a cache of their own: what hits, what a hit takes, and what it shares with the L1."""

from __future__ import annotations

import pytest

from lockstep.sim.device.run import Run
from lockstep.verif.models.micro import Bench, Settings, chain, slope

LINES = ("0", "32")  # first texels of the two lines of the bench's texture
FETCH = "mov.u32 %r3, {texel};\ntex.1d.v4.u32.s32 {{%r7, %r8, %r9, %r10}}, [%rd2, {{%r3}}];\nadd.u32 %r6, %r6, %r7;"
LOAD = "ld.global.u32 %r7, [%rd1+{at}];\nadd.u32 %r6, %r6, %r7;"
START, END = "mov.u32 %r6, 0;", "st.global.u32 [%rd1+1024], %r6;"
OWN = {"texture_cache.mode": "own", "texture_cache.sets": 1}


def run(body: list[str], settings: Settings) -> Run:
    return Bench("\n".join([START, *body, END]), settings)()


def fetches(*texels: str) -> list[str]:
    return [FETCH.format(texel=texel) for texel in texels]


def loads(*places: int) -> list[str]:
    return [LOAD.format(at=place) for place in places]


def textures(found: Run) -> tuple[int, int]:
    """Texture fetches that hit and that missed."""
    return int(found.stats["chen.TMInst.hit"]), int(found.stats["chen.TMInst.miss"])


@pytest.mark.parametrize("latency", [20, 40, 100])
def test_a_hit_takes_as_long_as_in_the_l1(latency: int) -> None:
    settings = {"l1.latency": 40, "pipelines.texture.latency": latency, "texture_cache.mode": "own"}
    fetch = chain("tex.1d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [%rd2, {%r3}];", "mov.u32 %r3, 0;")
    assert slope(fetch, 10, 30, settings) == max(latency, 40)


@pytest.mark.parametrize(("ways", "found"), [(1, (0, 6)), (2, (4, 2))])
def test_it_holds_as_many_lines_as_it_has(ways: int, found: tuple[int, int]) -> None:
    """Two lines by turns: with one way each drives out the other, whatever the L1 could hold."""
    assert textures(run(fetches(*LINES * 3), OWN | {"texture_cache.ways": ways})) == found
    assert textures(run(fetches(*LINES * 3), {"texture_cache.ways": ways})) == (4, 2)


def test_its_sets_are_its_own() -> None:
    """Lines that follow each other lie in sets that follow each other."""
    settings = {"texture_cache.mode": "own", "texture_cache.sets": 2, "texture_cache.ways": 1, "l1.sets": 1}
    assert textures(run(fetches(*LINES * 3), settings)) == (4, 2)


@pytest.mark.parametrize(("mode", "misses"), [("own", (1, 2)), ("l1", (3, 6))])
def test_textures_and_data_leave_each_other_alone(mode: str, misses: tuple[int, int]) -> None:
    """One line each, by turns: they meet only where both are in the L1."""
    settings = OWN | {"texture_cache.mode": mode, "texture_cache.ways": 1, "l1.sets": 1, "l1.ways": 1}
    found = run((fetches("0") + loads(0)) * 3, settings)
    assert (textures(found)[1], int(found.raw["l1.misses"].sum())) == misses


@pytest.mark.parametrize(("mode", "found"), [("own", (2, 1)), ("l1", (1, 2))])
def test_stores_do_not_change_it(mode: str, found: tuple[int, int]) -> None:
    """A surface store to a line that was fetched drives it out of the L1 alone."""
    store = "mov.u32 %r3, 0;\nmov.u32 %r4, 0;\nsust.b.1d.b32.trap [%rd2, {%r3}], {%r4};"
    body = [*fetches("0", "0"), store, *fetches("0")]
    assert textures(run(body, {"texture_cache.mode": mode})) == found


@pytest.mark.parametrize(("mshrs", "refused"), [(1, True), (2, False)])
def test_misses_share_the_mshrs_of_the_l1(mshrs: int, refused: bool) -> None:
    """A load behind a fetch that has missed; the sum keeps all registers of the fetch apart from the load's."""
    fetch = "mov.u32 %r3, 0;\ntex.1d.v4.u32.s32 {%r7, %r8, %r9, %r10}, [%rd2, {%r3}];"
    body = [fetch, "ld.global.u32 %r11, [%rd1];", *(f"add.u32 %r6, %r6, %r{k};" for k in range(7, 12))]
    found = run(body, OWN | {"l1.mshrs": mshrs})
    assert (found.stats["l1.stall_mshrs_core_cycles"] > 0) == refused


@pytest.mark.parametrize("mechanism", ["banked-l1", "warppool", "mrpb"])
def test_paths_of_mechanisms_find_it(mechanism: str) -> None:
    body = "\n".join([START, *fetches(*LINES * 3), END])
    small = OWN | {"texture_cache.ways": 2}
    bench = Bench(body, small, mechanisms=(mechanism,))
    assert textures(bench()) == (4, 2)


def test_lines_with_values_leave_textures_as_they_are() -> None:
    plain, lines = (run(fetches(*LINES * 3) + loads(0), OWN | {"l1.values": values}) for values in ("memory", "lines"))
    assert textures(plain) == textures(lines)


def test_a_miss_asks_the_l2_for_the_line_that_others_ask_for() -> None:
    """A surface load of what was fetched misses in the L1, and hits in the L2."""
    surface = "mov.u32 %r3, 0;\nsuld.b.1d.b32.trap {%r7}, [%rd2, {%r3}];\nadd.u32 %r6, %r6, %r7;"
    fetch, both = run(fetches("0"), OWN), run([*fetches("0"), surface], OWN)
    l1, l2 = (int(both.raw[count].sum() - fetch.raw[count].sum()) for count in ("l1.misses", "l2.misses"))
    assert (l1, l2) == (1, 0)


def test_banks_serve_several_lines_that_hit() -> None:
    """Lanes by turns in two lines: both hit in the same cycle, in the L1 and in a cache of their own."""
    lanes = ["and.b32 %r4, %r1, 1;\nmul.lo.u32 %r5, %r4, 32;", *fetches(*["%r5"] * 4)]
    cycles = [
        Bench("\n".join([START, *lanes, END]), {"texture_cache.mode": mode}, mechanisms=("banked-l1",))().cycles
        for mode in ("own", "l1")
    ]
    assert cycles[0] == cycles[1]
