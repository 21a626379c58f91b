"""The three models of chapter 3, set as R's ``randomForest``, ``rpart`` and ``lm``, with which Chen fitted them.

Forest: 500 trees, each grown from as many kernels as there are, drawn with replacement; a split looks at a third of the
characteristics, and nodes of up to 5 are not split. Tree: nodes below 20 are not split, leaves have at least 7, and a
split must explain 0.01 of the variance. Linear: least squares with an intercept, of minimum norm where columns are
constant or collinear, each column scaled by its deviation.

scikit-learn grows the trees. It compares characteristics as floats of 32 bits: counts that differ by less than one part
in 16 million are equal. Where R looks at constant columns among the third, it looks at others in their place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le, Predicate

from lockstep.sim.errors import UsageError
from lockstep.sim.schema import Count, Name, parse
from lockstep.sim.study.power.sample import Sample

__all__ = ["TREES", "Linear", "Model", "Trees", "fit", "forest", "linear", "load", "single_tree"]

TREES = 500
UNSPLIT = 5  # kernels of a forest's node that is not split
TREE = {"min_samples_split": 20, "min_samples_leaf": 7}
COMPLEXITY = 0.01  # of the variance, that a split of the tree must explain
LEAF = -1  # in the place of a child
ROWS = 1024  # predicted at the same time

Finite = Annotated[float, Predicate(math.isfinite)]
Child = Annotated[int, Ge(LEAF), Le(2**31)]


@dataclass
class Trees:
    """Binary trees, their nodes one after the other, children behind their parents: where a characteristic is at most
    the threshold, it goes on to the left. ``watts`` is the mean of a node's kernels."""

    roots: list[Count]
    characteristic: list[Child]
    threshold: list[Finite]
    left: list[Child]
    right: list[Child]
    watts: list[Finite]

    def __post_init__(self) -> None:
        size = len(self.watts)
        if not self.roots or any(root >= size for root in self.roots):
            raise ValueError("roots: must be nodes")
        for name in ("characteristic", "threshold", "left", "right"):
            if len(getattr(self, name)) != size:
                raise ValueError(f"{name}: must have {size} values, as watts")
        for node, (left, right) in enumerate(zip(self.left, self.right, strict=True)):
            children = {left, right}
            if children != {LEAF} and not node < min(children) <= max(children) < size:
                raise ValueError(f"left[{node}], right[{node}]: must be nodes behind it, or {LEAF}")
        self._arrays = [np.array(each) for each in (self.characteristic, self.threshold, self.left, self.right)]

    def leaves(self, values: np.ndarray) -> np.ndarray:
        """The node in which each kernel, a row, ends in each tree, a column."""
        return np.concatenate([self._leaves(values[k : k + ROWS]) for k in range(0, len(values), ROWS)])

    def _leaves(self, values: np.ndarray) -> np.ndarray:
        characteristic, threshold, left, right = self._arrays
        narrow = values.astype(np.float32)
        kernel = np.arange(len(values))[:, None]
        node = np.tile(np.array(self.roots), (len(values), 1))
        while (inner := left[node] != LEAF).any():
            goes_left = narrow[kernel, characteristic[node]] <= threshold[node]
            node = np.where(inner, np.where(goes_left, left[node], right[node]), node)
        return node

    def predict(self, values: np.ndarray) -> np.ndarray:
        """The mean over the trees, for each row."""
        return np.array(self.watts)[self.leaves(values)].mean(axis=1)


@dataclass
class Linear:
    intercept: Finite
    coefficients: list[Finite]

    def predict(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(self.intercept + values @ np.array(self.coefficients))


@dataclass
class Model:
    """What `lockstep power fit` writes, and the schema of that file."""

    origin: Name
    kernels: Count
    seed: Count
    characteristics: list[Name]
    forest: Trees
    tree: Trees
    linear: Linear

    def __post_init__(self) -> None:
        count = len(self.characteristics)
        if len(self.linear.coefficients) != count:
            raise ValueError(f"linear.coefficients: must have {count} values, as characteristics")
        for name in ("forest", "tree"):
            trees: Trees = getattr(self, name)
            if not all(0 <= each < count for each in trees.characteristic):
                raise ValueError(f"{name}.characteristic: must be below {count}")

    def predict(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Watts by model, for kernels with these characteristics."""
        return {name: getattr(self, name).predict(values) for name in ("forest", "tree", "linear")}

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def load(file: str) -> Model:
    """A model that `lockstep power fit` wrote. Raises :class:`UsageError`."""
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    found: Model = parse(Model, content, file, "it must be what `lockstep power fit` writes")
    return found


def fit(sample: Sample, trees: int = TREES, seed: int = 1) -> Model:
    """All three models of a sample."""
    assert sample.watts is not None
    values, watts = sample.values, sample.watts
    grown, _ = forest(values, watts, trees, [seed])
    return Model(
        sample.origin, len(sample.kernels), seed, list(sample.characteristics), grown, single_tree(values, watts),
        linear(values, watts),
    )  # fmt: skip


def forest(values: np.ndarray, watts: np.ndarray, trees: int, seed: Sequence[int]) -> tuple[Trees, np.ndarray]:
    """A forest, and how much each characteristic lowers the squared error in it, scaled so that the sum is 100."""
    regressor = _regressor()
    random = np.random.default_rng(seed)
    draws = random.integers(len(watts), size=(trees, len(watts)))
    narrow, options = values.astype(np.float32), {"max_features": max(values.shape[1] // 3, 1)}
    grown = []
    for rows, state in zip(draws, random.integers(2**31, size=trees).tolist(), strict=True):
        tree = regressor(min_samples_split=UNSPLIT + 1, random_state=state, **options)
        grown.append(tree.fit(narrow[rows], watts[rows], check_input=False).tree_)
    decrease = sum(tree.compute_feature_importances(normalize=False) for tree in grown)
    total = decrease.sum()
    return _joined(grown), 100 * decrease / total if total else decrease


def single_tree(values: np.ndarray, watts: np.ndarray) -> Trees:
    """The regression tree."""
    tree = _regressor()(**TREE, ccp_alpha=COMPLEXITY * float(np.var(watts)), random_state=0)
    return _joined([tree.fit(values.astype(np.float32), watts, check_input=False).tree_])


def linear(values: np.ndarray, watts: np.ndarray) -> Linear:
    """The linear model."""
    means, scale = values.mean(axis=0), values.std(axis=0)
    varies = scale > np.abs(means) * 1e-12  # a constant column deviates by rounding
    scale = np.where(varies, scale, 1)
    found = np.linalg.lstsq(np.where(varies, values - means, 0) / scale, watts - watts.mean(), rcond=None)[0]
    coefficients = np.where(varies, found / scale, 0)  # of a constant, what is left of rounding
    return Linear(float(watts.mean() - means @ coefficients), coefficients.tolist())


def _regressor() -> Any:
    try:
        from sklearn.tree import DecisionTreeRegressor
    except ImportError:
        raise UsageError("the power models need scikit-learn: pip install 'lockstep-sm[power]'") from None
    return DecisionTreeRegressor


def _joined(grown: Sequence[Any]) -> Trees:
    """Trees of scikit-learn."""
    roots = np.cumsum([0, *(tree.node_count for tree in grown)])[:-1]

    def all_nodes(values: Sequence[np.ndarray]) -> list[Any]:
        found: list[Any] = np.concatenate(values).tolist()
        return found

    def children(name: str) -> list[Any]:
        sides = [getattr(tree, name) for tree in grown]
        return all_nodes([np.where(side < 0, LEAF, side + root) for side, root in zip(sides, roots, strict=True)])

    inner = [tree.children_left >= 0 for tree in grown]
    return Trees(
        roots.tolist(),
        all_nodes([np.where(each, tree.feature, 0) for each, tree in zip(inner, grown, strict=True)]),
        all_nodes([np.where(each, tree.threshold, 0.0) for each, tree in zip(inner, grown, strict=True)]),
        children("children_left"),
        children("children_right"),
        all_nodes([tree.value[:, 0, 0] for tree in grown]),
    )
