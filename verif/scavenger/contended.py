"""Pairs of kernels on two SMs, with short profiles, windows and runs, so that tiny kernels see all of Scavenger."""

_SHORT = {
    "scavenger.minimum": 520, "scavenger.maximum": 4000, "scavenger.window": 1024, "scavenger.longest": 8192,
    "scavenger.duration": 512, "scavenger.limit": 64, "scavenger.alone": 3000,
}  # fmt: skip
_PAIRS = (
    ("sgemm", "spmv"), ("hotspot", "spmv"), ("spmv", "hotspot"), ("lavaMD", "reduction"), ("b+tree", "sgemm"),
    ("MUM", "hotspot"), ("kmeans", "lud"), ("bfs", "fastWalshTransform"), ("tpacf", "sad"), ("stencil", "tpacf"),
    ("BlackScholes", "sgemm"), ("heartwall", "bfs"), ("lbm", "stencil"), ("histogram-atomics", "reduction"),
    ("fft", "mri-q"), ("nw", "pathfinder"), ("srad_v2", "cfd"), ("streamcluster", "atax"), ("RAY", "LIB"),
    ("syrk", "spmv"),
)  # fmt: skip
CONTENDED = tuple(
    ("scavenger", first, {**_SHORT, "scavenger.target": (90, 50, 95, 20)[number % 4]}, second)
    for number, (first, second) in enumerate(_PAIRS)
)
