"""Texture fetches against images that are padded as the address mode says, and filtered in exact arithmetic."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lockstep.models.execution.isa import CUBE, GLOBAL_BASE, IN_LAYERS, LANES, LAYERED, TEXTURE, Fault, Texture
from lockstep.models.execution.texture import execute_texture
from lockstep.verif.bench import interpreted, mask, seeded
from lockstep.verif.models.execution.machine import ALL, Machine, chain, source

HANDLE, COORDINATES, RESULTS = 2, 4, 10
PADDING: tuple[Any, ...] = ("edge", "wrap", "symmetric", "constant")  # np.pad's names of clamp, wrap, mirror, border
FORMATS = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.float32, np.float16]


@dataclass
class Image:
    texels: np.ndarray  # [z, y, x, channel]
    offset: int
    pitch: int
    dimensions: int
    mode: int = 0
    linear: bool = False
    normalized: bool = False
    as_float: bool = False

    @property
    def size(self) -> tuple[int, ...]:
        """Width, height, depth."""
        return self.texels.shape[2::-1]

    @property
    def reads_float(self) -> bool:
        return self.as_float or self.texels.dtype.kind == "f"

    def record(self) -> tuple[Any, ...]:
        kind = "uif".index(self.texels.dtype.kind)
        return (
            GLOBAL_BASE + self.offset, *self.size, self.dimensions, self.texels.shape[3], self.texels.itemsize, kind,
            self.pitch, self.linear, self.mode, self.normalized, self.as_float,
        )  # fmt: skip

    def values(self) -> np.ndarray:
        """Texels as a fetch reads them."""
        if self.texels.dtype.kind == "f" or not self.as_float:
            return self.texels.astype(np.float32) if self.reads_float else self.texels.astype(np.int64)
        return np.maximum(self.texels / np.float64(np.iinfo(self.texels.dtype).max), -1).astype(np.float32)


def draw(rng: random.Random, machine: Machine, dimensions: int, kind: Any) -> Image:
    """A random image in the machine's memory."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    shape = [rng.randint(1, 5) if axis < dimensions else 1 for axis in (2, 1, 0)] + [rng.choice([1, 2, 4])]
    if np.dtype(kind).kind == "f":
        texels = numbers.uniform(-2, 2, shape).astype(kind)
    else:
        texels = numbers.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, dtype=kind, endpoint=True)
    row = shape[2] * shape[3] * texels.itemsize
    image = Image(texels, 4 * rng.randrange(100), (row + 3) // 4 * 4 + 4 * rng.randrange(3), dimensions)
    image.mode = rng.randrange(4)
    image.normalized, image.linear = rng.random() < 0.5, rng.random() < 0.5
    image.as_float = np.dtype(kind).kind != "f" and texels.itemsize < 4 and rng.random() < 0.5
    for z, y in itertools.product(range(shape[0]), range(shape[1])):
        start = image.offset + (z * shape[1] + y) * image.pitch
        machine.memory[start : start + row] = texels[z, y].reshape(-1).view(np.uint8)
    return image


def attach(machine: Machine, images: list[Image]) -> np.ndarray:
    """Make images the machine's textures; the result must stay alive."""
    records = np.zeros(len(images), TEXTURE)
    names = [name for name in TEXTURE.names or () if not name.startswith("pad")]
    for record, image in zip(records, images, strict=True):
        for name, value in zip(names, image.record(), strict=True):
            record[name] = value
    machine.context["textures"], machine.context["texture_count"] = records.ctypes.data, len(images)
    return records


def coordinates(rng: random.Random, image: Image, as_float: bool) -> list[np.ndarray]:
    """Up to twice the size beyond the edges; halves and quarters hit texel borders and centres."""
    result = []
    for axis in range(image.dimensions):
        n = image.size[axis]
        if not as_float:
            values = [rng.randint(-2 * n, 3 * n) for _ in range(LANES)]
            result.append(np.array(values, np.int32).view(np.uint32))
            continue
        quarters = [rng.randint(-8 * n, 12 * n) / 4 for _ in range(LANES)]
        places = [rng.choice([quarter, rng.uniform(-2, 3) * n]) for quarter in quarters]
        result.append((np.array(places) / (n if image.normalized else 1)).astype(np.float32).view(np.uint32))
    return result


def reference(image: Image, words: list[int], as_float: bool) -> tuple[list[Fraction | int], bool]:
    """The four channels of one fetch, exactly, and whether they were filtered."""
    filtered = as_float and image.linear and image.reads_float
    mode = image.mode
    if mode in (1, 2) and not (as_float and image.normalized):
        mode = 0
    pads = [(3 * n, 3 * n) for n in image.texels.shape[:3]]
    values = np.pad(image.values(), [*pads, (0, 0)], mode=PADDING[mode])
    axes: list[list[tuple[int, Fraction]]] = []
    for axis in range(3):
        n = image.size[axis]
        if axis >= image.dimensions:
            axes.append([(3 * n, Fraction(1))])
            continue
        word = np.uint32(words[axis])
        if not as_float:
            axes.append([(int(word.view(np.int32)) + 3 * n, Fraction(1))])
            continue
        x = word.view(np.float32) * (np.float32(n) if image.normalized else np.float32(1))
        if not filtered:
            axes.append([(int(np.floor(x)) + 3 * n, Fraction(1))])
            continue
        x = np.float32(x - np.float32(0.5))
        low = int(np.floor(x))
        weight = Fraction(math.floor(Fraction(float(x) - low) * 256 + Fraction(1, 2)), 256)
        axes.append([(low + 3 * n, 1 - weight), (low + 1 + 3 * n, weight)])
    totals: list[Fraction | int] = [0] * 4
    for (i, wx), (j, wy), (k, wz) in itertools.product(*axes):
        for channel in range(image.texels.shape[3]):
            value = values[k, j, i, channel]
            exact = Fraction(float(value)) if image.reads_float else int(value)
            totals[channel] += exact * wx * wy * wz
    return totals, filtered


def fetch(rng: random.Random, machine: Machine, image: Image, lanes: int) -> tuple[bool, list[np.ndarray]]:
    """Run one fetch from texture 1; returns how coordinates were given, and which."""
    as_float = rng.random() < 0.7
    words = coordinates(rng, image, as_float)
    for axis, values in enumerate(words):
        machine.registers[COORDINATES + axis] = values
    machine.set_long(HANDLE, [1] * LANES)
    v = {axis: RESULTS + axis for axis in range(4)} | {4 + axis: COORDINATES + axis for axis in range(image.dimensions)}
    op = Texture(image.dimensions - 1)
    assert machine.run(lanes, op=op, sub=int(as_float), vec=4, v=v, **source(HANDLE)) == 0
    return as_float, words


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_fetch(dimensions: int, kind: Any) -> None:
    rng = seeded()
    for _ in range(12):
        machine = Machine(execute_texture, rng)
        image = draw(rng, machine, dimensions, kind)
        kept = attach(machine, [image])
        lanes = mask(rng, LANES) or 1
        before = machine.copy()
        as_float, words = fetch(rng, machine, image, lanes)
        largest = float(np.abs(image.values()).max())
        for lane in range(LANES):
            got = machine.registers[RESULTS : RESULTS + 4, lane]
            if not lanes >> lane & 1:
                assert np.array_equal(got, before["registers"][RESULTS : RESULTS + 4, lane])
                continue
            totals, filtered = reference(image, [int(w[lane]) for w in words], as_float)
            for channel, total in enumerate(totals):
                if not image.reads_float:
                    assert int(got[channel]) == int(total) & ALL, (image, lane)
                elif filtered:
                    value = float(got[channel : channel + 1].view(np.float32)[0])
                    assert abs(value - float(total)) <= 2.0**-24 * largest, (image, lane)
                else:
                    assert got[channel] == np.float32(float(total)).view(np.uint32), (image, lane)
        assert machine.x.touched == lanes and machine.x.touched_shared == 0
        del kept


# Each face of a cube: in which component a direction is longest, with its sign, and what points right and down there
# (the table of cubemap textures in the CUDA guide).
FACES = [
    ((1, 0, 0), (0, 0, -1), (0, -1, 0)), ((-1, 0, 0), (0, 0, 1), (0, -1, 0)),
    ((0, 1, 0), (1, 0, 0), (0, 0, 1)), ((0, -1, 0), (1, 0, 0), (0, 0, -1)),
    ((0, 0, 1), (1, 0, 0), (0, -1, 0)), ((0, 0, -1), (-1, 0, 0), (0, -1, 0)),
]  # fmt: skip


@pytest.mark.parametrize("layers", [0, 3])
def test_cubes(layers: int) -> None:
    """A direction that points at a place of a face reads what stands there, as from a picture of that face alone."""
    rng = seeded()
    for linear in (False, True):
        machine = Machine(execute_texture, rng)
        n = rng.randint(1, 5)
        numbers = np.random.default_rng(rng.getrandbits(32))
        cube = numbers.uniform(-2, 2, (6 * (layers or 1), n, n, 1)).astype(np.float32)
        machine.memory[: cube.nbytes] = cube.reshape(-1).view(np.uint8)
        # A cube is addressed from 0 to 1 and to the edge, whatever its texture says.
        image = Image(cube, 0, 4 * n, 3, mode=rng.randrange(4), linear=linear, normalized=rng.random() < 0.5)
        kept = attach(machine, [image])
        machine.set_long(HANDLE, [1] * LANES)
        faces, layer = [rng.randrange(6) for _ in range(LANES)], [rng.randint(0, layers + 1) for _ in range(LANES)]
        places = np.array([[rng.randint(-15, 15) / 16, rng.randint(-15, 15) / 16] for _ in range(LANES)])
        length = [2.0 ** rng.randint(-3, 3) for _ in range(LANES)]
        axes = np.array([FACES[face] for face in faces])
        directions = (axes[:, 0] + places[:, :1] * axes[:, 1] + places[:, 1:] * axes[:, 2]) * np.array(length)[:, None]
        words = [np.array(layer, np.uint32)] * (layers > 0) + list(directions.astype(np.float32).T.view(np.uint32))
        for index, values in enumerate(words):
            machine.registers[COORDINATES + index] = values
        v = {0: RESULTS} | {4 + index: COORDINATES + index for index in range(len(words))}
        assert machine.run(ALL, op=Texture.TEX_2D, sub=1, rnd=CUBE + LAYERED * (layers > 0), v=v, **source(HANDLE)) == 0
        for lane in range(LANES):
            plane = 6 * min(layer[lane], layers - 1) * (layers > 0) + faces[lane]
            face = Image(cube[plane : plane + 1], 0, 4 * n, 2, linear=linear, normalized=True)
            at = ((places[lane] + 1) / 2).astype(np.float32).view(np.uint32)
            totals, _ = reference(face, [int(word) for word in at], True)
            value = float(machine.registers[RESULTS, lane : lane + 1].view(np.float32)[0])
            assert abs(value - float(totals[0])) <= 2.0**-23, (lane, faces[lane], places[lane])
        del kept


def test_equal_components_and_none() -> None:
    machine = Machine(execute_texture, seeded())
    cube = np.arange(6, dtype=np.float32).reshape(6, 1, 1, 1)
    machine.memory[: cube.nbytes] = cube.reshape(-1).view(np.uint8)
    kept = attach(machine, [Image(cube, 0, 4, 3)])
    machine.set_long(HANDLE, [1] * LANES)
    directions = [(1, 1, 1), (-1, 1, -1), (0, 1, 1), (0, -1, -1), (0, 0, 1), (0, 0, -1), (0, 0, 0), (0, 0, 7)] * 4
    for index, values in enumerate(np.array(directions, np.float32).T):
        machine.registers[COORDINATES + index] = values.view(np.uint32)
    v = {0: RESULTS, 4: COORDINATES, 5: COORDINATES + 1, 6: COORDINATES + 2}
    machine.run(ALL, op=Texture.TEX_2D, sub=1, rnd=CUBE, v=v, **source(HANDLE))
    assert machine.registers[RESULTS].view(np.float32).tolist() == [0, 1, 2, 3, 4, 5, 0, 4] * 4
    del kept


def test_address_is_the_base_texel() -> None:
    machine = Machine(execute_texture, seeded())
    image = Image(np.zeros((1, 4, 8, 2), np.float32), 256, 96, 2)
    kept = attach(machine, [image])
    machine.set_long(HANDLE, [1] * LANES)
    columns, rows = np.arange(LANES) % 10 - 1, np.arange(LANES) // 8
    machine.registers[COORDINATES] = (columns + np.float32(0.5)).astype(np.float32).view(np.uint32)
    machine.registers[COORDINATES + 1] = (rows + np.float32(0.75)).astype(np.float32).view(np.uint32)
    machine.run(ALL, op=Texture.TEX_2D, sub=1, v={4: COORDINATES, 5: COORDINATES + 1}, **source(HANDLE))
    addresses = GLOBAL_BASE + 256 + rows * 96 + np.clip(columns, 0, 7) * 8
    assert list(machine.x.address) == addresses.tolist()
    del kept


def test_rounded_weight() -> None:
    """Between two texels the weight has 8 fractional bits."""
    machine = Machine(execute_texture, seeded())
    image = Image(np.array([0, 256], np.float32).reshape(1, 1, 2, 1), 0, 8, 1, linear=True)
    machine.memory[:8] = image.texels.reshape(-1).view(np.uint8)
    kept = attach(machine, [image])
    machine.set_long(HANDLE, [1] * LANES)
    machine.registers[COORDINATES] = (np.float32(0.5) + np.arange(LANES, dtype=np.float32) / 1024).view(np.uint32)
    machine.run(ALL, op=Texture.TEX_1D, sub=1, v={0: RESULTS, 4: COORDINATES}, **source(HANDLE))
    assert machine.registers[RESULTS].view(np.float32).tolist() == [(lane + 2) // 4 for lane in range(LANES)]
    del kept


@pytest.mark.parametrize("linear", [False, True])
def test_far_coordinates(linear: bool) -> None:
    machine = Machine(execute_texture, seeded())
    image = Image(np.array([3, 4, 5], np.float32).reshape(1, 1, 3, 1), 0, 12, 1, linear=linear)
    machine.memory[:12] = image.texels.reshape(-1).view(np.uint8)
    kept = attach(machine, [image])
    machine.set_long(HANDLE, [1] * LANES)
    far = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 2.0**31, -(2.0**31), 1e-45] * 4, np.float32)
    machine.registers[COORDINATES] = far.view(np.uint32)
    machine.run(ALL, op=Texture.TEX_1D, sub=1, v={0: RESULTS, 4: COORDINATES}, **source(HANDLE))
    assert machine.registers[RESULTS].view(np.float32).tolist() == [3, 5, 3, 5, 3, 5, 3, 3] * 4
    del kept


def test_handles() -> None:
    """Lanes may use several textures; the first lane with a handle of none is at fault."""
    rng = seeded()
    machine = Machine(execute_texture, rng)
    images = [Image(np.zeros((3, 5, n, 1), np.uint8), 0, 16, 3) for n in (7, 9)]
    kept = attach(machine, images)
    machine.set_long(HANDLE, [1 + lane % 2 for lane in range(LANES)])
    for sub, sizes in enumerate([[7, 9], [5, 5], [3, 3]]):
        assert machine.run(ALL, op=Texture.QUERY, sub=sub, v={0: RESULTS}, **source(HANDLE)) == 0
        assert machine.registers[RESULTS].tolist() == sizes * 16
        assert machine.x.touched == 0
    for bad in (0, 3, 1 << 40, -1):
        machine.set_long(HANDLE, [1] * 9 + [bad] * 23)
        before = machine.copy()
        v = {0: RESULTS, 4: COORDINATES, 5: COORDINATES, 6: COORDINATES}
        assert machine.run(ALL, op=Texture.TEX_3D, v=v, **source(HANDLE)) == Fault.BAD_TEXTURE
        assert (machine.x.fault_lane, machine.x.fault_address) == (9, bad)
        assert machine.differences(before) == []
    del kept


SURFACE = Image(np.zeros((3, 4, 8, 2), np.uint16), 512, 48, 3)  # rows of 32 bytes
TRAP, TO_EDGE, ZERO = range(3)


def surface(rng: random.Random, machine: Machine, op: Texture, size: tuple[int, int], outside: int, wild: bool) -> Any:
    """Run a surface access with random coordinates; returns them with the fault."""
    bytes_, vec = size
    low, high = (-2, 3) if wild else (0, 0)
    columns = [rng.randint(low, 32 // (bytes_ * vec) - 1 + high) * bytes_ * vec for _ in range(LANES)]
    rows, planes = ([rng.randint(low, n - 1 + high) for _ in range(LANES)] for n in (4, 3))
    for axis, values in enumerate((columns, rows, planes)):
        machine.registers[COORDINATES + axis] = np.array(values, np.int32).view(np.uint32)
    machine.set_long(HANDLE, [1] * LANES)
    v = {e: RESULTS + 2 * e for e in range(vec)} | {4 + axis: COORDINATES + axis for axis in range(3)}
    lanes = mask(rng, LANES) or 1
    data = max(bytes_, 2)
    fault = machine.run(lanes, op=op, sub=2, rnd=outside, bytes=bytes_, vec=vec, data=data, v=v, **source(HANDLE))
    return lanes, list(zip(columns, rows, planes, strict=True)), fault


@pytest.mark.parametrize("outside", [TRAP, TO_EDGE, ZERO])
@pytest.mark.parametrize("op", [Texture.SURFACE_LOAD, Texture.SURFACE_STORE])
def test_surfaces(op: Texture, outside: int) -> None:
    rng = seeded()
    for bytes_, vec in itertools.product((1, 2, 4, 8), (1, 2, 4)):
        for wild in (False, True):
            machine = Machine(execute_texture, rng)
            kept = attach(machine, [SURFACE])
            before = machine.copy()
            lanes, places, fault = surface(rng, machine, op, (bytes_, vec), outside, wild)
            for register in range(RESULTS):
                before["registers"][register] = machine.registers[register]
            after = machine.copy()
            machine.restore(before)
            size = bytes_ * vec
            limits = (32 - size, 3, 2)
            inside = [all(0 <= c <= limit for c, limit in zip(p, limits, strict=True)) for p in places]
            used = [lane for lane in range(LANES) if lanes >> lane & 1]
            wrong = [lane for lane in used if not inside[lane]]
            if outside == TRAP and wrong:
                assert (fault, machine.x.fault_lane) == (Fault.OUT_OF_BOUNDS, wrong[0])
                assert machine.differences(after) == []
                continue
            assert fault == 0
            for lane in used:
                x, y, z = (min(max(c, 0), limit) for c, limit in zip(places[lane], limits, strict=True))
                start = 512 + (z * 4 + y) * 48 + x
                zero = outside == ZERO and not inside[lane]
                for element in range(vec):
                    register, at = RESULTS + 2 * element, start + element * bytes_
                    if op == Texture.SURFACE_LOAD:
                        value = 0 if zero else int.from_bytes(machine.memory[at : at + bytes_].tobytes(), "little")
                        machine.registers[register, lane] = value & ALL
                        if bytes_ == 8:
                            machine.registers[register + 1, lane] = value >> 32
                    elif not zero:
                        stored = before["registers"][register : register + 2, lane].tobytes()[:bytes_]
                        machine.memory[at : at + bytes_] = np.frombuffer(stored, np.uint8)
            assert machine.differences(after) == []
            del kept


@pytest.mark.parametrize("dimensions", [1, 2])
def test_layers_of_surfaces(dimensions: int) -> None:
    """The layer comes first, and is the row or the plane; one that is not there is outside."""
    machine = Machine(execute_texture, seeded())
    kept = attach(machine, [Image(SURFACE.texels[: 3 if dimensions == 2 else 1], 0, 48, dimensions + 1)])
    machine.set_long(HANDLE, [1] * LANES)
    layers, columns, rows = np.arange(LANES) % 6 - 1, 4 * (np.arange(LANES) % 8), np.arange(LANES) // 8
    for index, values in enumerate((layers, columns, rows)[: 1 + dimensions]):
        machine.registers[COORDINATES + index] = values.astype(np.int32).view(np.uint32)
    v = {0: RESULTS} | {4 + index: COORDINATES + index for index in range(1 + dimensions)}
    fields = dict(op=Texture.SURFACE_LOAD, sub=dimensions - 1, bytes=4, vec=1, data=4, v=v, **source(HANDLE))
    assert machine.run(ALL, rnd=IN_LAYERS + ZERO, **fields) == 0
    height = 4 if dimensions == 2 else 1
    starts = (layers * height + (rows if dimensions == 2 else 0)) * 48 + columns
    there = (layers >= 0) & (layers < (3 if dimensions == 2 else 4))
    words = machine.memory.view(np.uint32)
    assert machine.registers[RESULTS].tolist() == np.where(there, words[np.where(there, starts // 4, 0)], 0).tolist()
    assert machine.run(ALL, rnd=IN_LAYERS + TRAP, **fields) == Fault.OUT_OF_BOUNDS
    assert machine.x.fault_lane == 0
    del kept


def test_misaligned_surface_access() -> None:
    machine = Machine(execute_texture, seeded())
    kept = attach(machine, [SURFACE])
    machine.set_long(HANDLE, [1] * LANES)
    machine.registers[COORDINATES] = 2
    fields = dict(op=Texture.SURFACE_LOAD, v={0: RESULTS, 4: COORDINATES}, bytes=4, **source(HANDLE))
    assert machine.run(ALL, **fields) == Fault.MISALIGNED
    del kept


def series(seed: int) -> str:
    rng = random.Random(seed)
    machine = Machine(execute_texture, rng)

    def step() -> None:
        if rng.random() < 0.3:
            kept = attach(machine, [SURFACE])
            op = rng.choice([Texture.SURFACE_LOAD, Texture.SURFACE_STORE])
            surface(rng, machine, op, rng.choice([(1, 1), (4, 2), (8, 1)]), rng.randrange(3), True)
        else:
            image = draw(rng, machine, rng.randint(1, 3), rng.choice(FORMATS))
            kept = attach(machine, [image])
            fetch(rng, machine, image, mask(rng, LANES) or 1)
        del kept

    return chain(machine, 50, step)


def test_interpreted_equals_compiled() -> None:
    seed = seeded().getrandbits(32)
    assert interpreted(series, seed) == series(seed)


