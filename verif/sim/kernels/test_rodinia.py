"""References of Rodinia's clustering and tracking against plain loops over the same inputs, and their exactness."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

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
