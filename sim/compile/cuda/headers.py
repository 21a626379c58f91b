"""Where headers lie: beside the including file, in the folders of ``-I``, or in CUDA's packages from PyPI."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

RUNTIME, CCCL, CURAND = "nvidia-cuda-runtime", "nvidia-cuda-cccl", "nvidia-curand"
PACKAGES = (RUNTIME, "nvidia-cuda-crt", CCCL, CURAND)
EXTRA = "'lockstep-sm[cuda]'"

# Headers with code for the device, the package that has them, and the word without which a kernel does not use them.
# All others of CUDA are built into NVRTC or are for the host.
DEVICE_HEADERS = (
    ("cuda_fp*.h", RUNTIME, ""),
    ("cuda_bf16.h", RUNTIME, ""),
    ("cuda_tf32.h", RUNTIME, ""),
    ("cuComplex.h", RUNTIME, ""),
    ("math_constants.h", RUNTIME, ""),
    ("mma.h", RUNTIME, ""),
    ("cuda_pipeline*.h", RUNTIME, ""),
    ("cuda_awbarrier*.h", RUNTIME, ""),
    ("cooperative_groups.h", RUNTIME, "cooperative_groups"),
    ("cooperative_groups/*", RUNTIME, "cooperative_groups"),
    ("cuda/*", CCCL, "cuda"),
    ("cub/*", CCCL, "cub"),
    ("thrust/*", CCCL, "thrust"),
    ("nv/target", CCCL, ""),
    ("curand_*.h", CURAND, ""),
)

# Headers without which a program is whole: the C library's, POSIX's, and CUDA's interface to the host.
HOST_HEADERS = (
    "assert.h", "complex.h", "ctype.h", "errno.h", "fenv.h", "float.h", "getopt.h", "inttypes.h", "libgen.h",
    "limits.h", "locale.h", "malloc.h", "math.h", "memory.h", "mpi.h", "omp.h", "pthread.h", "sched.h", "setjmp.h",
    "signal.h", "std*.h", "string.h", "strings.h", "sys/*", "time.h", "unistd.h", "values.h", "wchar.h", "windows.h",
    "builtin_types.h", "channel_descriptor.h", "cu*.h", "device_*.h", "driver_*.h", "host_*.h", "library_types.h",
    "math_functions.h", "nvToolsExt.h", "nvrtc.h", "nvtx3/*", "sm_*.h", "surface_*.h", "texture_*.h", "vector_*.h",
)  # fmt: skip


def device_header(name: str) -> tuple[str, str] | None:
    """The package of a header with code for the device, and the word that shows its use."""
    return next(((package, word) for pattern, package, word in DEVICE_HEADERS if fnmatch(name, pattern)), None)


@cache
def installed() -> tuple[tuple[str, str, tuple[Path, ...]], ...]:
    """Name, version and include folders of CUDA's installed packages."""
    found = []
    for package in PACKAGES:
        try:
            distribution = importlib.metadata.distribution(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        names = [str(file) for file in distribution.files or ()]
        folders = {name.rpartition("include/")[0] + "include" for name in names if "include/" in name}
        roots = sorted({Path(str(distribution.locate_file(folder))) for folder in folders})
        found.append((package, distribution.version, (*roots, *(root / "cccl" for root in roots if package == CCCL))))
    return tuple(found)


def folders() -> list[Path]:
    """The include folders of the installed packages."""
    return list(dict.fromkeys(folder for _, _, include in installed() for folder in include))


def umbrellas() -> dict[str, str]:
    """Headers that stand for many, without what is for the host: ``cub/cub.cuh`` has the parts for blocks and warps."""
    parts = [
        path for folder in folders() for part in ("block", "warp") for path in (folder / "cub" / part).glob("*.cuh")
    ]
    return {"cub/cub.cuh": "".join(f"#include <cub/{path.parent.name}/{path.name}>\n" for path in sorted(parts))}


def to_install(name: str) -> str | None:
    """The remedy for a header of a package that is not installed."""
    found = device_header(name)
    if found is None or any(found[0] == package for package, _, _ in installed()):
        return None
    package = CURAND if found[0] == CURAND else EXTRA
    return f"<{name}> comes with a package that is not installed: pip install {package}"


def for_host(name: str) -> bool:
    """Whether a header that is not there is one of the host's: all of the C++ library are, which have no suffix."""
    return "." not in name or any(fnmatch(name, pattern) for pattern in HOST_HEADERS)


def find(name: str, beside: Path | None, include: Iterable[Path]) -> Path | None:
    """A header of the user."""
    for folder in (*([beside] if beside else []), *include):
        path = folder / name
        if _is_file(path):
            return path.resolve()
    return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False


def standard(name: str) -> str | None:
    """The header with the device's form of one of the C++ library."""
    own = f"cuda/std/{name}"
    return own if any(_is_file(folder / own) for folder in folders()) else None
