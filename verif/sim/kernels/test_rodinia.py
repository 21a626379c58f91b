"""References of Rodinia's kernels against plain loops over the same inputs, and what is special about their inputs."""

from __future__ import annotations

import math
from bisect import insort
from fractions import Fraction
from itertools import accumulate, product
from statistics import correlation, fmean, variance

import numpy as np

from lockstep.sim import Gpu
from lockstep.sim.kernels import Data, check, find
from lockstep.verif.sim.kernels.test_kernels import SEED, same, tiny


def test_kmeans() -> None:
    data = tiny("kmeans")
    points = [[Fraction(int(value)) for value in row] for row in data["features"]]
    centres, memberships = points[:5], []
    for _ in range(data["rounds"]):
        membership = []
        for point in points:
            distances = [sum((a - b) ** 2 for a, b in zip(point, centre, strict=True)) for centre in centres]
            membership.append(distances.index(min(distances)))
        memberships.append(membership)
        for i in range(5):
            mine = [point for point, at in zip(points, membership, strict=True) if at == i]
            centres[i] = [Fraction(round(8 * sum(values) / len(mine)), 8) for values in zip(*mine, strict=True)]
    assert len({tuple(membership) for membership in memberships}) > 1  # the rounds differ
    outputs = {
        "columns": data["features"].T.copy(),
        "membership": np.array(memberships, np.int32),
        "centres": np.array([[float(value) for value in centre] for centre in centres], np.float32),
    }
    same("kmeans", outputs)


def test_streamcluster() -> None:
    """Every decision by the cost of the whole solution, before and after, rather than by its change."""
    data = tiny("streamcluster")
    points = [[int(value) for value in row] for row in data["coordinates"]]

    def distance(a: int, b: int) -> int:
        return sum((x - y) ** 2 for x, y in zip(points[a], points[b], strict=True))

    def total(centre: list[int]) -> float:
        return sum(distance(i, at) for i, at in enumerate(centre)) + data["opening"] * len(set(centre))

    centre = [0] * len(points)
    gains, switches, closed = [], [], 0
    for candidate in data["candidates"]:
        goes = [distance(i, candidate) < distance(i, at) for i, at in enumerate(centre)]
        after = [candidate if go else at for go, at in zip(goes, centre, strict=True)]
        before = set(centre)
        for old in before:  # closes if the solution is the cheaper for it
            left = [i for i, at in enumerate(after) if at == old]
            if sum(distance(i, candidate) - distance(i, old) for i in left) < data["opening"]:
                after = [candidate if at == old else at for at in after]
        cost = total(after) + data["opening"] * (candidate not in after)
        gains.append(total(centre) - cost)
        switches.append(goes)
        if gains[-1] > 0:
            closed += len(before - set(after))
            centre = after
    assert len(set(centre)) > 1
    assert closed or SEED != 20
    outputs = {
        "gains": np.array(gains),
        "switches": np.array(switches),
        "centre": np.array(centre, np.int64),
        "cost": np.array([distance(i, at) for i, at in enumerate(centre)], np.float32),
    }
    same("streamcluster", outputs)


def test_srad_v2() -> None:
    data = tiny("srad_v2")
    image = data["image"].astype(np.float64)
    rows, columns = image.shape
    coefficient = np.empty_like(image)
    for _ in range(data["steps"]):
        corner = [float(value) for value in image[:128, :128].ravel()]
        mean = sum(corner) / len(corner)
        q0_squared = sum((value - mean) ** 2 for value in corner) / len(corner) / mean**2
        slopes = np.empty((rows, columns, 4))
        for y, x in np.ndindex(image.shape):
            north, south = image[max(y - 1, 0), x], image[min(y + 1, rows - 1), x]
            west, east = image[y, max(x - 1, 0)], image[y, min(x + 1, columns - 1)]
            slopes[y, x] = [value - image[y, x] for value in (north, south, west, east)]
            relative = slopes[y, x] / image[y, x]
            laplacian = sum(relative)
            q_squared = (sum(relative**2) / 2 - laplacian**2 / 16) / (1 + laplacian / 4) ** 2
            c = 1 / (1 + (q_squared - q0_squared) / (q0_squared * (1 + q0_squared)))
            coefficient[y, x] = min(max(c, 0), 1)
        for y, x in np.ndindex(image.shape):
            south, east = coefficient[min(y + 1, rows - 1), x], coefficient[y, min(x + 1, columns - 1)]
            here = coefficient[y, x]
            image[y, x] += 0.125 * sum(slopes[y, x] * [here, south, here, east])
    assert 0.1 < (coefficient == 1).mean() < 0.9  # cut, and not cut
    same("srad_v2", {"image": image.astype(np.float32), "coefficient": coefficient.astype(np.float32)})


def test_particlefilter() -> None:
    data = tiny("particlefilter")
    one, f32 = np.float32(1), np.float32
    video, disk, seed = data["video"], data["disk"].tolist(), [int(value) for value in data["seed"]]
    width, frames, particles = video.shape[0], video.shape[2], len(seed)
    flat = [int(value) for value in video.ravel()]

    def draw(i: int) -> int:
        seed[i] = (seed[i] * 1103515245 + 12345) % 2**32 % (2**31 - 1)
        return seed[i]

    def noise(i: int) -> np.float32:
        return f32(sum(draw(i) // 2**23 for _ in range(4)) - 510) * f32(7) / f32(1024)

    def pixel(value: np.float32) -> int:
        return int(abs(value) + f32(0.5)) * (1 if value >= 0 else -1)

    old = [(f32(width // 2), f32(width // 2))] * particles
    for frame in range(frames):
        cloud, pixels, likelihoods, weights = [], [], [], []
        for i in range(particles):
            x = old[i][0] + one + f32(5) * noise(i)
            y = old[i][1] - f32(2) + f32(2) * noise(i)
            seen = [abs(((pixel(x) + row) * width + pixel(y) + column) * frames + frame) for column, row in disk]
            seen = [at if at < len(flat) else 0 for at in seen]
            likelihood = f32(0)
            for at in seen:
                likelihood += f32((flat[at] - 100) ** 2 - (flat[at] - 228) ** 2) / f32(50)
            likelihood /= f32(len(disk))
            cloud.append((x, y))
            pixels.append(seen)
            likelihoods.append(likelihood)
            weights.append(one / f32(particles) * f32(2.0 ** round(float(likelihood) / 32)))
        total = f32(0)
        for first in range(0, particles, data["block"]):
            sums = weights[first : first + data["block"]]
            sums += [f32(0)] * (data["block"] - len(sums))
            while len(sums) > 1:
                half = len(sums) // 2
                sums = [left + right for left, right in zip(sums[:half], sums[half:], strict=True)]
            total += sums[0]
        weights = [weight / total for weight in weights]
        distribution = weights[:1]
        for weight in weights[1:]:
            distribution.append(weight + distribution[-1])
        start = one / f32(particles) * (f32(draw(0)) / f32(2**31))
        old = []
        for i in range(particles):
            tooth = start + f32(i) / f32(particles)
            index = next((k for k, value in enumerate(distribution) if value >= tooth), particles - 1)
            old.append(cloud[index])
        x_mean, y_mean = np.mean(old, axis=0)
        assert abs(x_mean - (width // 2 + frame)) < 2  # the cloud is where the disk is
        assert abs(y_mean - (width // 2 - 2 * frame)) < 2
    outputs = {
        "pixels": np.array(pixels, np.int32),
        "likelihoods": np.array(likelihoods, f32),
        "weights": np.array(weights, f32),
        "distribution": np.array(distribution, f32),
        "x": np.array([x for x, _ in old], f32),
        "y": np.array([y for _, y in old], f32),
        "seed": np.array(seed, np.uint32),
    }
    same("particlefilter", outputs)


def test_particlefilter_naive() -> None:
    """One particle after the other; the comb and the distribution are of exact fractions."""
    data = tiny("particlefilter-naive")
    frames, _, particles = data["noise"].shape
    cloud = [(64.0, 64.0)] * particles
    x, y = np.empty((frames, particles)), np.empty((frames, particles))
    for frame in range(frames):
        object_x, object_y = 65 + frame, 62 - 2 * frame
        noise_x, noise_y = data["noise"][frame].tolist()
        cloud = [(cloud[i][0] + 1 + 5 * noise_x[i], cloud[i][1] - 2 + 2 * noise_y[i]) for i in range(particles)]
        distances = [math.dist((round(a), round(b)), (object_x, object_y)) for a, b in cloud]
        weights = [Fraction(math.exp(85 * (min(distances) - distance))) for distance in distances]
        reached = list(accumulate(weights))
        teeth = [(i + Fraction(data["start"][frame])) / particles * reached[-1] for i in range(particles)]
        cloud = [cloud[next(i for i in range(particles) if reached[i] >= tooth)] for tooth in teeth]
        x[frame], y[frame] = zip(*cloud, strict=True)
    assert len(set(cloud)) > 1 or SEED != 20
    same("particlefilter-naive", {"x": x, "y": y})


def test_b_plus_tree() -> None:
    data = tiny("b+tree")
    keys = [int(key) for key in data["keys"]]
    record, length = [], []
    for start, end in zip(data["start"], data["end"], strict=True):
        record.append(keys.index(start) if start in keys else 0)
        length.append(keys.index(end) - record[-1] + 1 if end in keys else 0)
    same("b+tree", {"record": np.array(record, np.int32), "length": np.array(length, np.int32)})


def test_queries_of_the_tree() -> None:
    """Of three levels: the lowest and the highest key, a leaf's first and last, ends that are missing, all in one."""
    kernel, gpu = find("b+tree"), Gpu("gtx480")
    keys = np.arange(10, 140_000, 2, dtype=np.int32)
    leaf = 254  # keys of a leaf, and children of a node
    indices = [0, leaf - 1, leaf, leaf * leaf - 1, leaf * leaf, keys.size - 1]
    ends = sorted({int(key) + away for key in keys[indices] for away in (-1, 0, 1)})
    ranges = np.array([(start, end) for start in ends for end in ends if start <= end], np.int32)
    data = {"keys": keys, "start": ranges[:, 0].copy(), "end": ranges[:, 1].copy()}
    outputs = kernel.run(gpu, gpu.load(kernel.ptx), data)
    result = check(kernel, outputs, data)
    assert result.passed, result.message
    both = (ranges % 2 == 0).all(axis=1)
    assert (outputs["length"][both] == (ranges[both, 1] - ranges[both, 0]) // 2 + 1).all()
    assert (outputs["length"][ranges[:, 1] % 2 == 1] == 0).all()


def test_gaussian() -> None:
    data = tiny("gaussian")
    matrix = [[Fraction(float(value)) for value in row] for row in data["matrix"]]
    right = [Fraction(float(value)) for value in data["right"]]
    width = len(right)
    multipliers = [[Fraction(0)] * (width - 1) for _ in range(width)]
    for step in range(data["steps"]):
        for row in range(step + 1, width):
            factor = multipliers[row][step] = matrix[row][step] / matrix[step][step]
            matrix[row] = [mine - factor * theirs for mine, theirs in zip(matrix[row], matrix[step], strict=True)]
            right[row] -= factor * right[step]
    assert all(matrix[row][column] == 0 for row in range(width) for column in range(row))
    outputs = {"multipliers": multipliers, "matrix": matrix, "right": right}
    same("gaussian", {name: np.array(values, np.float64).astype(np.float32) for name, values in outputs.items()})


def test_lavamd_with_neighbours() -> None:
    """A layer of boxes, the last of which is not computed; with all neighbours, and with one."""
    print("LOCKSTEP_SEED", SEED)
    kernel, gpu, random = find("lavaMD"), Gpu("gtx480"), np.random.default_rng(SEED)
    particles, ctas = 100 * 4, 3
    data: Data = {
        "extent": (2, 2, 1),
        "ctas": ctas,
        "neighbours": 26,
        "positions": random.integers(1, 11, (particles, 4)) / 10,
        "charges": random.integers(1, 11, particles) / 10,
    }
    forces = {}
    for neighbours in (26, 1):
        part = data | {"neighbours": neighbours}
        outputs = kernel.run(gpu, gpu.load(kernel.ptx), part)
        result = check(kernel, outputs, part)
        assert result.passed, result.message
        forces[neighbours] = outputs["forces"]
    expected = np.zeros((particles, 4))
    positions, charges = data["positions"].tolist(), data["charges"].tolist()
    for i, (v, *place) in enumerate(positions[: 100 * ctas]):
        force = [0.0] * 4
        for charge, (other_v, *other) in zip(charges, positions, strict=True):  # any two of these boxes are neighbours
            strength = charge * math.exp(-(v + other_v - sum(a * b for a, b in zip(place, other, strict=True))) / 2)
            force[0] += strength
            for axis in range(3):
                force[1 + axis] += 2 * strength * (place[axis] - other[axis])
        expected[i] = force
    np.testing.assert_allclose(forces[26], expected, rtol=1e-12, atol=1e-9)
    assert not np.allclose(forces[26], forces[1])


def test_lud() -> None:
    """The product of the two factors is the matrix that went in, in fractions."""
    data = tiny("lud")
    outputs = find("lud").reference(data)
    same("lud", outputs)
    factors = [[Fraction(float(value)) for value in row] for row in outputs["matrix"]]
    for row, column in np.ndindex(data["matrix"].shape):
        total = factors[row][column] if row <= column else Fraction(0)
        total += sum(factors[row][k] * factors[k][column] for k in range(min(row, column + 1)))
        assert abs(float(total) - float(data["matrix"][row, column])) < 1e-5 * len(factors)


def test_nw() -> None:
    data = tiny("nw")
    similarity = data["similarity"].tolist()
    scores = [[-10 * column for column in range(len(similarity))]]
    for row in range(1, len(similarity)):
        scores.append([-10 * row])
        for column in range(1, len(similarity)):
            match = scores[row - 1][column - 1] + similarity[row][column]
            scores[row].append(max(match, scores[row][column - 1] - 10, scores[row - 1][column] - 10))
    same("nw", {"scores": np.array(scores, np.int32)})


def test_cfd() -> None:
    data = tiny("cfd")
    count = data["variables"].shape[1]
    far = [1.4, 1.4 * 1.2, 0.0, 0.0, 1 / 0.4 + 1.4 * 1.2**2 / 2]

    def pressure(state: list[float]) -> float:
        return 0.4 * (state[4] - sum(momentum**2 for momentum in state[1:4]) / state[0] / 2)

    def through(state: list[float], normal: list[float]) -> list[float]:
        volume = sum(a * momentum for a, momentum in zip(normal, state[1:4], strict=True)) / state[0]
        push = [0.0, *(a * pressure(state) for a in normal), volume * pressure(state)]
        return [volume * carried + extra for carried, extra in zip(state, push, strict=True)]

    def speeds(state: list[float]) -> float:
        return math.hypot(*state[1:4]) / state[0] + math.sqrt(1.4 * pressure(state) / state[0])

    fluxes = np.zeros((5, count))
    for i in range(count):
        own = [float(value) for value in data["variables"][:, i]]
        for face in range(4):
            other, normal = data["neighbours"][face, i], [float(value) for value in data["normals"][:, face, i]]
            if other == -1:
                fluxes[1:4, i] += [a * pressure(own) for a in normal]
                continue
            state = far if other == -2 else [float(value) for value in data["variables"][:, other]]
            mean = [(a + b) / 2 for a, b in zip(through(own, normal), through(state, normal), strict=True)]
            fluxes[:, i] += mean
            if other >= 0:
                viscosity = 0.1 * math.hypot(*normal) * (speeds(own) + speeds(state))
                fluxes[:, i] += [viscosity * (b - a) for a, b in zip(own, state, strict=True)]
    same("cfd", {"fluxes": fluxes.astype(np.float32)})


def test_mesh_of_cfd() -> None:
    """Every element is closed, and every face between two elements is the same for both."""
    data = tiny("cfd")
    neighbours, normals = data["neighbours"], data["normals"].astype(np.float64)
    elements = 6 * 5 * 3 * 2
    assert neighbours.shape[1] == 192 and (neighbours[:, elements:] == neighbours[:, elements - 1 : elements]).all()
    np.testing.assert_allclose(normals.sum(axis=1), 0, atol=1e-6)
    for face, i in np.ndindex(4, elements):
        other = neighbours[face, i]
        if other >= 0:
            [back] = np.flatnonzero(neighbours[:, other] == i)
            np.testing.assert_allclose(normals[:, face, i], -normals[:, back, other], atol=1e-6)
    assert (neighbours[:, :elements] == -1).sum() == 2 * 5 * 3
    assert (neighbours[:, :elements] == -2).sum() == 2 * (5 * 3 + 2 * 5 * 2 + 2 * 3 * 2)


def test_leukocyte() -> None:
    """Scores by lists of what crosses a circle, the dilation by pixels, and fields neighbour by neighbour."""
    data = tiny("leukocyte")
    gradient_x, gradient_y, edges = (data[name].tolist() for name in ("gradient_x", "gradient_y", "edges"))
    columns, rows = data["gradient_x"].shape
    scores = np.full((columns, rows), 0.001)
    for x, y in np.ndindex(columns - 24, rows - 24):
        scores[x + 12, y + 12] = 0
        for radius in (8, 10):
            across = []
            for i in range(150):
                sine, cosine = math.sin(math.pi * i / 75), math.cos(math.pi * i / 75)
                at_x, at_y = x + 12 + int(radius * cosine), y + 12 + int(radius * sine)
                across.append(gradient_x[at_x][at_y] * cosine + gradient_y[at_x][at_y] * sine)
            score = fmean(across) ** 2 / variance(across)
            scores[x + 12, y + 12] = max(scores[x + 12, y + 12], score)
    dilated = np.zeros((rows, columns))
    for x, y in np.ndindex(columns, rows):
        near = [(x, y), (x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)]
        dilated[y, x] = max(scores[a, b] for a, b in near if 0 <= a < columns and 0 <= b < rows)

    fields, iterations = [], []
    for edge in edges:
        field, change = edge, math.inf
        iterations.append(0)
        height, width = len(edge), len(edge[0])
        while change >= 0.01 and iterations[-1] < 2:
            new = [list(row) for row in field]
            for y, x in np.ndindex(height, width):
                for down, right in product((-1, 0, 1), repeat=2):
                    slope = field[min(max(y + down, 0), height - 1)][min(max(x + right, 0), width - 1)] - field[y][x]
                    new[y][x] += 0.1 * slope * (math.atan(slope * (down + right) * 1e10) / math.pi + 0.5)
                new[y][x] -= 0.2 * edge[y][x] * (new[y][x] - edge[y][x])
            change = fmean(abs(new[y][x] - field[y][x]) for y, x in np.ndindex(height, width))
            field = new
            iterations[-1] += 1
        fields.append(field)
    assert iterations == [1, 2]
    outputs = {"scores": scores, "dilated": dilated, "fields": np.array(fields)}
    same("leukocyte", {name: values.astype(np.float32) for name, values in outputs.items()})


def test_pathfinder() -> None:
    """By all ways that end in a column, from the bottom up."""
    wall = tiny("pathfinder")["wall"].tolist()
    rows, columns = len(wall), len(wall[0])
    costs = []
    for end in range(columns):
        ways = []
        for steps in product((-1, 0, 1), repeat=rows - 1):
            places = list(accumulate(steps, initial=end))
            if 0 <= min(places) and max(places) < columns:
                ways.append(sum(row[place] for row, place in zip(reversed(wall), places, strict=True)))
        costs.append(min(ways))
    same("pathfinder", {"costs": np.array(costs, np.int32)})


def test_nearest_neighbour() -> None:
    places = tiny("nearest-neighbour")["records"].tolist()
    distances = [math.dist(place, (30, 90)) for place in places]
    nearest = sorted(range(len(places)), key=lambda i: (distances[i], i))[:10]
    same("nearest-neighbour", {"distances": np.array(distances, np.float32), "nearest": np.array(nearest)})


def test_dwt2d() -> None:
    """Value by value, with an endless line of mirror images."""
    data = tiny("dwt2d")

    def at(line: list[int], i: int) -> int:
        period = 2 * (len(line) - 1)
        return line[min(i % period, -i % period)]

    def lift(line: list[int]) -> list[int]:
        def detail(i: int) -> int:
            return at(line, i) - math.floor(Fraction(at(line, i - 1) + at(line, i + 1), 2))

        count = len(line)
        averages = [at(line, i) + (detail(i - 1) + detail(i + 1) + 2) // 4 for i in range(0, count, 2)]
        return averages + [detail(i) for i in range(1, count, 2)]

    outputs = {}
    for k, name in enumerate(("red", "green", "blue")):
        bands = (data["image"][:, :, k].astype(np.int32) - 128).tolist()
        height, width = len(bands), len(bands[0])
        for _ in range(data["levels"]):
            for y in range(height):
                bands[y][:width] = lift(bands[y][:width])
            for x in range(width):
                for y, value in enumerate(lift([bands[y][x] for y in range(height)])):
                    bands[y][x] = value
            height, width = (height + 1) // 2, (width + 1) // 2
        outputs[name] = np.array(bands, np.int32)
    assert not np.array_equal(outputs["red"], outputs["green"])
    same("dwt2d", outputs)


def test_heartwall() -> None:
    """By Pearson's correlation of the template with each part of the new frame where the point may be."""
    data = tiny("heartwall")
    radius, move = data["radius"], data["move"]
    frames = data["frames"].tolist()

    def around(frame: list[list[float]], row: int, column: int) -> list[float]:
        reach = range(-radius, radius + 1)
        return [frame[row + i][column + j] for i in reach for j in reach]

    places = list(zip(data["row"].tolist(), data["column"].tolist(), strict=True))
    start = places.copy()
    templates = [around(frames[0], *place) for place in places]
    outputs: dict[str, list[list[float]]] = {"rows": [], "columns": [], "scores": []}
    for frame in frames[1:]:
        found = []
        for point, (row, column) in enumerate(places):
            ways = product(range(row - move, row + move + 1), range(column - move, column + move + 1))
            score, place = max((correlation(templates[point], around(frame, *way)), way) for way in ways)
            surroundings = around(frame, *place)
            templates[point] = [0.87 * a + 0.13 * b for a, b in zip(templates[point], surroundings, strict=True)]
            found.append((*place, score))
        places = [(row, column) for row, column, _ in found]
        for name, values in zip(outputs, zip(*found, strict=True), strict=True):
            outputs[name].append(list(values))
    assert places != start
    kinds = {"rows": np.int32, "columns": np.int32, "scores": np.float32}
    same("heartwall", {name: np.array(values, kinds[name]) for name, values in outputs.items()})


def test_hybridsort() -> None:
    """By insertion, one number after the other."""
    placed: list[float] = []
    for value in tiny("hybridsort")["values"].tolist():
        insort(placed, value)
    assert 0 < placed[0] < placed[-1] < 1
    same("hybridsort", {"sorted": np.array(placed, np.float32)})


def test_srad_v1() -> None:
    data = tiny("srad_v1")
    columns, rows = data["image"].shape
    image = {at: math.exp(float(value) / 255) for at, value in np.ndenumerate(data["image"])}
    coefficient, sums = {}, []
    for _ in range(data["steps"]):
        sums.append([sum(image.values()), sum(value**2 for value in image.values())])
        mean = sums[-1][0] / len(image)
        q0_squared = fmean((value - mean) ** 2 for value in image.values()) / mean**2
        slopes = {}
        for (x, y), here in image.items():
            near = [(x, max(y - 1, 0)), (x, min(y + 1, rows - 1)), (max(x - 1, 0), y), (min(x + 1, columns - 1), y)]
            slopes[x, y] = [image[at] - here for at in near]
            laplacian = sum(slopes[x, y]) / here
            q_squared = sum((slope / here) ** 2 for slope in slopes[x, y]) / 2 - laplacian**2 / 16
            q_squared /= (1 + laplacian / 4) ** 2
            c = 1 / (1 + (q_squared - q0_squared) / (q0_squared * (1 + q0_squared)))
            coefficient[x, y] = min(max(c, 0), 1)
        for (x, y), (north, south, west, east) in slopes.items():
            below, beside = coefficient[x, min(y + 1, rows - 1)], coefficient[min(x + 1, columns - 1), y]
            image[x, y] += 0.125 * (coefficient[x, y] * (north + west) + below * south + beside * east)
    assert 0.1 < fmean(c == 1 for c in coefficient.values()) < 0.9  # cut, and not cut
    outputs = {
        "image": np.array([255 * math.log(value) for value in image.values()], np.float32).reshape(columns, rows),
        "coefficient": np.array(list(coefficient.values()), np.float32).reshape(columns, rows),
        "sums": np.array(sums, np.float32),
    }
    same("srad_v1", outputs)


def test_myocyte() -> None:
    """By Runge and Kutta's classic formula with short steps; the equations stand twice, in CUDA C and in NumPy."""
    data = tiny("myocyte")
    reference = find("myocyte").reference.__globals__
    equations, length = reference["equations"], reference["STEP"] / 8
    cells = data["cells"].astype(np.float64).T
    state = data["start"].astype(np.float64).T
    over_time = [state]
    for step in range(data["steps"]):
        for part in range(8):
            time = (8 * step + part) * length
            first = equations(state, time, cells)
            second = equations(state + length / 2 * first, time + length / 2, cells)
            third = equations(state + length / 2 * second, time + length / 2, cells)
            fourth = equations(state + length * third, time + length, cells)
            state = state + length / 6 * (first + 2 * second + 2 * third + fourth)
        over_time.append(state)
    states = np.array(over_time).transpose(2, 0, 1).astype(np.float32)
    same("myocyte", {"volts": states[:, :, 0], "states": states[:, :, 1:]})
    assert (states[:, 0, 0] < -40).any() and (states[:, 0, 0] >= -40).any()
    assert set(cells[1]) == {0, 1}  # with a stimulus, and without
