"""RAY: GPGPU-Sim's ray tracer, CTAs of 16 x 8 threads, a pixel per thread, rays of up to five parts, four objects.

full has GPGPU-Sim's 256 x 256 pixels (512 CTAs). The camera and the light are the original's, the objects stand about
where its own do. The kernel is written so that every pixel is exact (see the CUDA C). Highlights are powers by
multiplication rather than by pow, and a shadow is cast by what is nearer than the light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "ray tracing of spheres above a plane"
SUITE = "GPGPU-Sim"
PTX = "ray.ptx"
REGISTERS = {"render": 37}  # the least that leaves the 6 CTAs per core of Kayiran section 5.1

BLOCK = 16, 8
DEPTH = 5
FAR, STEP = np.float32(10_000), np.float32(0.0001)
AMBIENT, DIFFUSE, SPECULAR, REFLECTED = map(np.float32, (0.05, 0.3, 0.8, 0.8))
EYE, LIGHT = (0, 0.5, 2), (10, 10, 10)
ANGLE = 65  # of the field of view, in degrees
# Plane or sphere, point or centre, and radius.
OBJECTS = ((1, (0, -1.5, 0), 0.5), (0, (-1, 0, -1), 0.5), (0, (1, 0, -1), 0.5), (0, (0, 0, -2), 0.75))
OBJECT = np.dtype([("centre", "3f4"), ("radius", "f4"), ("colour", "4f4"), ("plane", "i4"), ("pad", "3i4")])
HEIGHT_WIDTH = {"tiny": (11, 20), "small": (192, 256), "full": (256, 256), "reference": (16, 48)}
SIZES = tuple(HEIGHT_WIDTH)
FLOAT = np.float32
Values = np.ndarray | np.float32


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    objects = np.zeros(len(OBJECTS), OBJECT)
    for item, (plane, centre, radius) in zip(objects, OBJECTS, strict=True):
        item["plane"], item["radius"] = plane, radius
        item["centre"] = centre + random.uniform(-0.1, 0.1, 3)
        item["colour"] = (*random.random(3), 1)
    return {"objects": objects, "shape": HEIGHT_WIDTH[size], "shift": FLOAT(random.uniform(-0.1, 0.1))}


def _camera() -> tuple[np.ndarray, np.float32]:
    """Unit vectors forward, up and to the right, and the eye; and how far from the eye a pixel's unit is seen."""
    forward = -np.array(EYE) / np.linalg.norm(EYE)
    up = np.array([0, 1, 0]) - forward[1] * forward
    up /= np.linalg.norm(up)
    return np.array([forward, up, np.cross(forward, up), EYE], FLOAT), FLOAT(1 / np.tan(np.radians(ANGLE) / 2))


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    height, width = data["shape"]
    camera, focus = _camera()
    module.set_symbol("objects", data["objects"])
    module.set_symbol("camera", camera)
    module.set_symbol("light", np.array(LIGHT, FLOAT))
    image = gpu.empty((height, width), np.uint32)
    grid = -(-width // BLOCK[0]), -(-height // BLOCK[1])
    args = [image, np.int32(width), np.int32(height), data["shift"], focus]
    module.launch("render", grid=grid, block=BLOCK, args=args)
    return {"image": gpu.from_device(image)}


def reference(data: Data) -> Outputs:
    """All pixels at once, in float32 and in the order of the kernel, so that results are equal."""
    height, width = data["shape"]
    objects = data["objects"].copy()
    objects["centre"][:, 0] += data["shift"]
    camera, focus = _camera()
    forward, up, right, eye = camera[..., None]
    pixel = FLOAT(2) / FLOAT(min(height, width))
    rows, columns = np.mgrid[:height, :width].reshape(2, -1).astype(FLOAT)
    x, y = (columns - FLOAT(width / 2)) * pixel, (rows - FLOAT(height / 2)) * pixel
    direction, _ = _normalise(_fma(y, up, _fma(x, right, focus * forward)))
    origin = np.repeat(eye, x.size, axis=1)

    parts = []  # of the rays: whose they are, and their colours
    pixels = np.arange(x.size)
    for _ in range(DEPTH):
        length, seen = _nearest(origin, direction, objects)
        hit = length < FAR
        pixels, seen, length = pixels[hit], seen[hit], length[hit]
        colour, origin, direction = _shade(origin[:, hit], direction[:, hit], length, objects[seen], objects)
        parts.append((pixels, colour))
    colours = np.zeros((4, x.size), FLOAT)
    colours[3] = 1
    deeper = pixels[:0]
    for pixels, colour in reversed(parts):
        reflected = _fma(REFLECTED, colours[:, pixels], colour)
        colours[:, pixels] = np.where(np.isin(pixels, deeper), reflected, colour)
        deeper = pixels
    red, green, blue, alpha = (colours.clip(0, 1) * FLOAT(255)).astype(np.uint32)
    return {"image": (alpha << 24 | blue << 16 | green << 8 | red).reshape(height, width)}


def _shade(
    origin: np.ndarray, direction: np.ndarray, length: np.ndarray, seen: np.ndarray, objects: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The colours at the ends of rays, and the reflected rays."""
    point = _fma(length, direction, origin)
    up = np.array([0, 1, 0], FLOAT)[:, None]
    normal = np.where(seen["plane"], up, _normalise(point - seen["centre"].T)[0])
    away = _dot(normal, direction)
    side = np.where(away > 0, FLOAT(-1), FLOAT(1))

    to_light, reach = _normalise(np.array(LIGHT, FLOAT)[:, None] - point)
    shadow = _fma(STEP, to_light, point)
    lit = side * _dot(normal, to_light)
    dark = (lit <= 0) | (_nearest(shadow, to_light, objects)[0] < reach)
    gloss = (side * _dot(normal, _normalise(to_light - direction)[0])).clip(0, 1)
    gloss2 = gloss * gloss
    gloss16 = (gloss2 * gloss2 * gloss2 * gloss2) ** 2
    specular = np.where(dark, 0, SPECULAR * (gloss16 * gloss16 * gloss16 * gloss2))
    diffuse = np.where(dark, AMBIENT, _fma(DIFFUSE, np.minimum(lit, 1), AMBIENT))
    colour = _fma(diffuse, seen["colour"].T, specular * np.array([1, 1, 1, 0], FLOAT)[:, None])

    direction, _ = _normalise(_fma(FLOAT(-2) * away, normal, direction))
    return colour, _fma(STEP, direction, point), direction


def _nearest(origin: np.ndarray, direction: np.ndarray, objects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far from each origin the first object is seen, FAR if none is, and which."""
    lengths = np.array([_distance(origin, direction, item) for item in objects])
    lengths[lengths <= 0] = FAR
    return lengths.min(axis=0), lengths.argmin(axis=0)


def _distance(origin: np.ndarray, direction: np.ndarray, item: np.ndarray) -> np.ndarray:
    """Along the rays to an object, or 0."""
    to = item["centre"][:, None] - origin
    if item["plane"]:
        steep = np.abs(direction[1]) >= FLOAT(0.0001)
        return np.divide(to[1], direction[1], out=np.zeros_like(to[1]), where=steep)
    nearest, centre2, radius2 = _dot(to, direction), _dot(to, to), item["radius"] * item["radius"]
    beside2 = _fma(-nearest, nearest, centre2)
    outside = centre2 > radius2
    half_chord = np.sqrt(np.maximum(radius2 - beside2, 0))
    missed = (outside & (nearest < 0)) | (beside2 > radius2)
    return np.where(missed, 0, np.where(outside, nearest - half_chord, nearest + half_chord))


def _fma(a: Values, b: Values, c: Values) -> np.ndarray:
    """Of float32 values: the product is exact in float64."""
    return np.asarray((np.float64(a) * b + c).astype(FLOAT))


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _fma(a[2], b[2], _fma(a[1], b[1], a[0] * b[0]))


def _normalise(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vectors one long, and how long they were."""
    length = np.sqrt(_dot(a, a))
    return a * (FLOAT(1) / length), length
