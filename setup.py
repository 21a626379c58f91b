"""The packages: every folder of the trees that has an ``__init__.py``. All else is in ``pyproject.toml``."""

from setuptools import find_packages, setup

TREES = ("cli", "models", "rtl", "sim", "spec", "synth", "verif")

setup(
    packages=[f"lockstep.{name}" for tree in TREES for name in (tree, *(f"{tree}.{p}" for p in find_packages(tree)))],
    package_dir={f"lockstep.{tree}": tree for tree in TREES},
)
