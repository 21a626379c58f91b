"""The memory system as a whole, under random traffic: conservation, skipping, the two ways to run its source."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest

from lockstep.models.memory.dram import CHANNEL_STATISTICS
from lockstep.models.memory.fabric import SENT
from lockstep.models.memory.l1 import (
    ATOMIC_ACCESS,
    LOAD,
    LOAD_BYPASS,
    LOCAL_DROP,
    LOCAL_LAST,
    LOCAL_LOAD,
    LOCAL_STORE,
    STORE,
)
from lockstep.models.memory.l1 import SHARE as L1_SHARE
from lockstep.models.memory.l2 import SHARE as L2_SHARE
from lockstep.models.memory.timing import slice_delay
from lockstep.spec.parameters import Gpu
from lockstep.verif.bench import interpreted, mask, seeded
from lockstep.verif.models.memory.traffic import BASE, Traffic, gpu, script, words

LOCAL = 0xC000_0000
LOCAL_KINDS = LOCAL_LOAD, LOCAL_STORE, LOCAL_LAST, LOCAL_DROP


def description(rng: random.Random) -> Gpu:
    """A small GPU in which every limit is met, with crossbars or a mesh."""
    channels = rng.choice([1, 2, 3])
    line, sector = rng.choice([(32, 32), (64, 32), (64, 64), (128, 32), (128, 64), (128, 128)])
    settings = dict(
        core__sms=rng.randint(1, 5), clocks__core=rng.choice([700, 1400, 1147]),
        clocks__interconnect=rng.choice([350, 700, 2000]), clocks__l2=rng.choice([350, 700, 1400]),
        clocks__dram=rng.choice([350, 924, 2800]), l1__sets=rng.choice([1, 4]), l1__ways=rng.choice([1, 2, 3]),
        l1__line_bytes=line, l1__mshrs=rng.choice([1, 2, 8, 70]), l1__merges=rng.choice([1, 3]),
        l1__queue=rng.choice([2, 8]), l1__data=rng.choice([0, 1, 1]), crossbar__flit_bytes=rng.choice([8, 32, 256]),
        crossbar__latency=rng.choice([1, 30]), crossbar__buffers=rng.choice([1, 3, 8]),
        crossbar__header_bytes=rng.choice([0, 8]), crossbar__concentration=rng.choice([1, 2, 3]),
        l2__slices=channels * rng.choice([1, 2]), l2__sets=rng.choice([1, 4]), l2__ways=rng.choice([1, 2, 4]),
        l2__sector_bytes=sector, l2__mshrs=rng.choice([1, 2, 16]), l2__merges=rng.choice([1, 2, 8]),
        l2__latency=800, dram__latency=2200, dram__channels=channels, dram__banks=rng.choice([1, 3, 8]),
        dram__queue=rng.choice([2, 5, 32]), dram__bus_bytes=rng.choice([2, 8, 128]),
        dram__interleave=rng.choice([128, 512]), dram__row_bytes=rng.choice([256, 2048]),
        l2__acknowledges=rng.choice([0, 1]),
    )  # fmt: skip
    if rng.random() < 0.4:
        side = rng.randint(max(settings["l2__slices"], 4), 7)
        settings |= dict(
            mesh__columns=side, mesh__rows=rng.choice([3, side]), mesh__virtual_channels=rng.choice([1, 2, 4]),
            mesh__buffers=rng.choice([1, 4]), mesh__routing_delay=rng.choice([1, 2]),
            mesh__channel_latency=rng.choice([1, 2]), mesh__input_speedup=rng.choice([1, 2]),
            crossbar__flit_bytes=rng.choice([16, 32, 256]),
        )  # fmt: skip
    if rng.random() < 0.5:  # the shortest pipeline of the slices
        settings["l2__latency"] -= slice_delay(gpu(**settings)) - 1
    return gpu(**settings)


def accesses(rng: random.Random, target: Gpu, length: int) -> np.ndarray:
    """Bursts and pauses of all kinds of access, to a few lines that everybody wants and to others."""
    result = script(np.zeros((target.core.sms, length), int))
    line = target.l1.line_bytes
    for sm in range(target.core.sms):
        at = 0
        for n in range(length):
            kind = rng.choice([LOAD, LOAD, LOAD, STORE, STORE, ATOMIC_ACCESS, LOAD_BYPASS, *LOCAL_KINDS])
            number = rng.choice([rng.randrange(6), rng.randrange(200), rng.randrange(1 << 20)])
            start = LOCAL + (sm << 12) if kind in LOCAL_KINDS else BASE
            at += rng.choice([0, 0, 0, 0, 0, 1, 2, 40, rng.choice([0, 5000])])
            address = start + line * (number % 32 if start != BASE else number)
            bytes_of_line = mask(rng, line)
            if bytes_of_line:
                size = bytes_of_line.bit_count()
            else:
                size = rng.choice([1, 4, line // 2, line])
                address += rng.randrange(0, line, size)
            lanes, grid = rng.randint(1, 32), n % 3 // 2
            result[sm, n] = (at, address, grid, kind, size, lanes, 0, words(bytes_of_line), 0, 0)
    return result


def state(traffic: Traffic) -> dict[str, bytes]:
    """Everything that can be seen of a run, without host addresses."""
    record = traffic.memory.record[0]
    parts = {name: record[name].tobytes() for name in ("gates", "requests", "replies", "packets")}
    parts |= {f"ports.{name}": record["ports"][name].tobytes() for name in ("flight", "stores")}
    parts |= {f"slices.{name}": traffic.memory.slices[name].tobytes() for name in ("stats", "share", "in_flight")}
    parts |= {name: getattr(traffic.memory, name).tobytes() for name in ("lines", "valid", "channels")}
    parts["l1"] = traffic.l1.tobytes()
    if traffic.memory.mesh:
        parts |= {f"mesh.{name}": getattr(traffic.memory.mesh, name).tobytes() for name in ("channels", "flits")}
    parts["cycles"] = str(traffic.cycles).encode()
    return parts


def one_run(seed: int, length: int, skip: bool = True) -> tuple[Traffic, np.ndarray]:
    rng = random.Random(seed)
    target = description(rng)
    traffic = Traffic(target)
    return traffic, traffic.run(accesses(rng, target, length), skip=skip, limit=10_000_000)


def test_random_traffic() -> None:
    """Everything is answered, and every conservation law holds."""
    rng = seeded()
    for _ in range(60):
        seed = rng.getrandbits(32)
        traffic, result = one_run(seed, 300)
        assert traffic.broken() == [], seed
        answers = np.isin(result["kind"], (LOAD, LOAD_BYPASS, LOCAL_LOAD, LOCAL_LAST, ATOMIC_ACCESS))
        assert (result["accepted"] >= 0).all(), seed
        assert ((result["done"] > result["accepted"]) == answers).all(), seed


def test_every_limit_is_met() -> None:
    """The random traffic reaches every reason to stall."""
    rng = random.Random(1)
    inner, outer = np.zeros(5, int), np.zeros(5, int)
    for _ in range(120):
        traffic, _ = one_run(rng.getrandbits(32), 300)
        inner += traffic.l1["stats"]["stalls"].sum(0)
        outer += traffic.memory.slices["stats"]["stalls"].sum(0)
    assert (inner[:4] > 0).all() and (outer > 0).all()


def test_skipping_changes_nothing() -> None:
    """Stepping in every cycle and stepping only when something is due give the same state, to the last byte."""
    rng = seeded()
    for _ in range(12):
        seed = rng.getrandbits(32)
        (fast, results), (slow, expected) = one_run(seed, 120), one_run(seed, 120, skip=False)
        assert results.tobytes() == expected.tobytes(), seed
        assert state(fast) | {"cycles": b""} == state(slow) | {"cycles": b""}, seed


def digest(seed: int) -> str:
    """A hash of what a run leaves behind."""
    sums = hashlib.sha256()
    for n in range(3):
        traffic, result = one_run(seed + n, 25)
        assert traffic.broken() == []
        for name, part in sorted(state(traffic).items()):
            sums.update(name.encode() + part)
        sums.update(result.tobytes())
    return sums.hexdigest()


def test_interpreted_is_compiled() -> None:
    seed = seeded().getrandbits(31)
    assert interpreted(digest, seed) == digest(seed)


def test_launches_are_independent_of_time() -> None:
    """A launch on a warm L2 takes the same cycles whenever it comes."""
    rng = random.Random(5)
    target = description(rng)
    work = accesses(rng, target, 100)
    traffic = Traffic(target)
    cycles, images = [], []
    for _ in range(4):
        traffic.launch()
        traffic.run(work)
        cycles.append(traffic.cycles)
        images.append(traffic.memory.lines.tobytes() + traffic.memory.valid.tobytes())
    assert len(set(cycles[1:])) == 1 or len(set(images)) > 1


@pytest.mark.parametrize(
    "where,name,law",
    [
        ("l1", "hits", "accesses to the L1s"),
        ("l1", "bytes_out", "bytes out of the SMs"),
        ("slices", "replies", "replies of the slices"),
        ("slices", "fills", "sectors from DRAM"),
        ("slices", "written", "writes of DRAM"),
        ("channels", "bytes_read", "bytes of DRAM"),
        ("channels", "reads", "reads of DRAM"),
        ("channels", "busy", "data bus of DRAM"),
    ],
)
def test_a_broken_law_is_named(where: str, name: str, law: str) -> None:
    """Of all requests, and of those of the second grid."""
    for what, whose in (("stats", ""), ("share", " of the second grid")):
        traffic, _ = one_run(3, 100)
        assert traffic.broken() == []
        records = traffic.l1 if where == "l1" else getattr(traffic.memory, where)
        records[what][name][0] += 1
        assert any(error.startswith(f"{law}{whose}: ") for error in traffic.broken())


def test_an_answer_that_lacks_is_named() -> None:
    traffic, _ = one_run(3, 100)
    traffic.l1["stats"]["tokens_out"][0] += 1
    assert [error.split(":")[0] for error in traffic.broken()] == ["answers of the L1s"]


def test_a_request_without_its_grid_is_named() -> None:
    """What an SM has sent for a grid, and what the interconnect has carried for it, agree."""
    traffic, _ = one_run(3, 100)
    share = traffic.memory.record["requests"]["share"]
    assert 0 < share["packets"][0] < traffic.memory.record["requests"]["packets"][0]
    share["packets"][0] -= 1
    names = ["requests out of the SMs", "requests into the slices"]
    assert [error.split(":")[0] for error in traffic.broken()] == [f"{name} of the second grid" for name in names]


def test_the_other_grid_s_traffic_is_the_rest() -> None:
    """Each grid's part of all counts is what it has when it is called the other one."""
    rng = seeded()
    for _ in range(10):
        seed, found = rng.getrandbits(32), []
        for swap in (0, 1):
            own = random.Random(seed)
            traffic = Traffic(description(own))
            work = accesses(own, traffic.gpu, 200)
            work["grid"] ^= swap
            traffic.run(work, limit=10_000_000)
            found.append({name: parts(traffic, name, swap) for name in SHARES})
        assert found[0] == found[1], seed


SHARES = {"l1": L1_SHARE, "slices": L2_SHARE, "channels": CHANNEL_STATISTICS, "requests": SENT, "replies": SENT}


def parts(traffic: Traffic, where: str, grid: int) -> dict[str, list[int]]:
    """What a grid has of the counts of a part of the memory system."""
    if where in ("requests", "replies"):
        whole = traffic.memory.record[where]
        share = whole["share"]
    else:
        records = traffic.l1 if where == "l1" else getattr(traffic.memory, where)
        whole, share = records["stats"], records["share"]
    return {name: (share[name] if grid else whole[name] - share[name]).tolist() for name in SHARES[where].names or ()}


def test_littles_law_is_checked() -> None:
    traffic, _ = one_run(3, 100)
    traffic.memory.channels["queue"]["residence"][0] += 1
    assert traffic.broken() == ["Little's law for the DRAM queues: 1 against 0"]


def test_calls_with_nothing_due_change_nothing() -> None:
    """Between two runs the memory may be stepped as often as one likes."""
    from lockstep.models.memory.system import memory_step

    traffic, _ = one_run(7, 100)
    before = traffic.memory.record.tobytes() + traffic.memory.channels.tobytes()
    for now in range(traffic.now, traffic.now + 500):
        memory_step(traffic.memory.argument, traffic._config, now)
    assert traffic.memory.record.tobytes() + traffic.memory.channels.tobytes() == before
