"""The models of power by hand and beside a naive forest; what a kernel's own watts and a seed decide, and what not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lockstep.sim.errors import UsageError
from lockstep.sim.study.power import analysis, models
from lockstep.sim.study.power.models import LEAF, Trees
from lockstep.sim.study.power.sample import Sample
from lockstep.sim.watch import Watch

RANDOM = np.random.default_rng(5)


def sample(values: np.ndarray, watts: np.ndarray) -> Sample:
    kernels = tuple(f"kernel {k}" for k in range(len(watts)))
    return Sample(kernels, watts, "modelled", tuple(f"c{k}" for k in range(values.shape[1])), values)


def made(size: int = 40, columns: int = 6) -> Sample:
    """Watts that follow the first characteristic, mostly."""
    values = RANDOM.uniform(0, 1000, (size, columns))
    return sample(values, 50 + values[:, 0] / 10 + RANDOM.normal(0, 2, size))


def naive(x: np.ndarray, watts: np.ndarray, at: float) -> float:
    """What a tree of one characteristic says at a place: nodes of more than 5 kernels are split where it is best."""
    below, best = None, float(((watts - watts.mean()) ** 2).sum())
    places = np.unique(x)
    for limit in (places[1:] + places[:-1]) / 2 if len(x) > 5 else ():
        sides = watts[x <= limit], watts[x > limit]
        left = sum(float(((side - side.mean()) ** 2).sum()) for side in sides)
        if left < best - 1e-9:
            below, best = limit, left
    if below is None:
        return float(watts.mean())
    side = (x <= below) == (at <= below)
    return naive(x[side], watts[side], at)


def test_a_forest_beside_a_naive_one() -> None:
    """With one characteristic nothing but the kernels of each tree is drawn, which the seed says."""
    x, watts, trees = RANDOM.permutation(24).astype(float), RANDOM.uniform(50, 250, 24), 7
    grown, _ = models.forest(x[:, None], watts, trees, [3])
    draws = np.random.default_rng([3]).integers(24, size=(trees, 24))
    places = np.linspace(-1, 25, 40)
    expected = [np.mean([naive(x[rows], watts[rows], at) for rows in draws]) for at in places]
    assert grown.predict(places[:, None]) == pytest.approx(expected)


def test_a_forest_of_leaves() -> None:
    """Five kernels are a node that is not split; each tree is their mean as drawn."""
    watts = np.array([10.0, 20.0, 30.0, 40.0, 50.0])
    grown, importance = models.forest(RANDOM.uniform(size=(5, 3)), watts, 9, [1])
    draws = np.random.default_rng([1]).integers(5, size=(9, 5))
    assert grown.roots == list(range(9)) and set(grown.left) == {LEAF}
    assert grown.predict(np.zeros((1, 3))) == pytest.approx(watts[draws].mean())
    assert not importance.any()


def two_groups(low: int, high: int, step: float = 100.0) -> Trees:
    values = np.arange(low + high, dtype=float)[:, None]
    return models.single_tree(values, np.where(values[:, 0] < low, 100.0, 100.0 + step))


def test_a_tree_by_hand() -> None:
    """20 kernels are split between the groups, and 19 are not; a leaf has 7 kernels at least."""
    tree = two_groups(10, 10)
    assert (tree.threshold[0], tree.watts) == (9.5, [150, 100, 200])
    assert two_groups(9, 10).left == [LEAF]
    tree = two_groups(6, 14)
    assert tree.threshold[0] == 6.5 and tree.watts[1:] == pytest.approx([100 + 100 / 7, 200])


@pytest.mark.parametrize(("share", "splits"), [(0.009, False), (0.011, True)])
def test_a_split_must_explain_a_hundredth(share: float, splits: bool) -> None:
    """Of the variance: noise that no split of 10 and 10 lowers, and a step between the groups."""
    noise = np.tile([1.0, -1.0, -1.0, 1.0], 5)
    step = np.sqrt(4 * share / (1 - share))
    values = np.repeat([0.0, 1.0], 10)[:, None]
    watts = 100 + noise - np.repeat([noise[:10].mean(), noise[10:].mean()], 10) + step * values[:, 0]
    share_of_noise = share / (share + (1 - share) * np.var(watts - step * values[:, 0]))
    assert (share_of_noise > 0.01) == splits, "the sample is what it is meant to be"
    assert (len(models.single_tree(values, watts).watts) == 3) == splits


def test_a_line_by_hand() -> None:
    values = RANDOM.uniform(0, 1e9, (12, 2))
    found = models.linear(values, 3 + 2 * values[:, 0] - values[:, 1])
    assert found.coefficients == pytest.approx([2, -1]) and found.intercept == pytest.approx(3, abs=1e-3)


def test_constant_and_collinear_columns() -> None:
    """A constant column has no part in any model; two that are collinear share theirs, scaled by their deviations."""
    x = RANDOM.uniform(0, 100, 30)
    values, watts = np.column_stack([x, 3 * x, np.full(30, 0.1)]), 50 + 6 * x
    found = models.linear(values, watts)
    assert found.coefficients == pytest.approx([3, 1, 0]) and found.predict(values) == pytest.approx(watts)
    grown, importance = models.forest(values, watts, 20, [1])
    assert importance[2] == 0 and importance.sum() == pytest.approx(100)
    assert abs(grown.predict(values) - watts).max() < 100
    assert len(models.single_tree(values, watts).watts) > 1


@pytest.mark.parametrize("size", [3, 500])
def test_sizes(size: int) -> None:
    given = made(size, 22)
    assert given.watts is not None
    fitted = models.fit(given, trees=10)
    for each in fitted.predict(given.values).values():
        assert each.shape == (size,) and np.isfinite(each).all()
    assert fitted.linear.predict(given.values) == pytest.approx(given.watts, rel=1e-6 if size == 3 else 0.2)


def test_equal_seeds_give_equal_bytes(tmp_path: Path) -> None:
    given = made()
    one, same, other = (json.dumps(models.fit(given, 20, seed).as_json()) for seed in (1, 1, 2))
    assert one == same != other
    (tmp_path / "model.json").write_text(one, encoding="utf-8")
    loaded = models.load(str(tmp_path / "model.json"))
    assert json.dumps(loaded.as_json()) == one
    assert (loaded.predict(given.values)["forest"] == models.fit(given, 20, 1).predict(given.values)["forest"]).all()


def test_a_kernel_s_own_watts_do_not_reach_its_prediction() -> None:
    given = made(12)
    assert given.watts is not None
    wrong = given.watts.copy()
    wrong[4] *= 10
    before, after = (
        {"forest": analysis.forests_left_out(each, 10, 1, Watch()), **analysis.left_out(each, Watch())}
        for each in (given, sample(given.values, wrong))
    )
    for name in before:
        assert before[name][4] == after[name][4]
    assert (before["forest"] != after["forest"]).any(), "others learn from it"


def test_permuted_watts_give_no_skill() -> None:
    given = made(30)
    assert given.watts is not None
    skilled = analysis.error(analysis.forests_left_out(given, 30, 1, Watch()), given.watts)
    mixed = sample(given.values, RANDOM.permutation(given.watts))
    assert mixed.watts is not None
    means = (mixed.watts.sum() - mixed.watts) / (len(mixed.watts) - 1)
    without = analysis.error(means, mixed.watts)
    unskilled = analysis.error(analysis.forests_left_out(mixed, 30, 1, Watch()), mixed.watts)
    assert skilled < 0.6 * without and unskilled > 0.9 * without


def test_errors_by_hand() -> None:
    watts, predicted = np.array([100.0, 200.0]), np.array([110.0, 150.0])
    assert (analysis.error(predicted, watts), analysis.squared_error(predicted, watts)) == (17.5, 1300)


BY_HAND = Trees([0, 5], [0, 0, 1, 0, 0, 0], [1.0, 0, 5.0, 0, 0, 0], [1, -1, 3, -1, -1, -1], [2, -1, 4, -1, -1, -1],
                [0.0, 10.0, 0.0, 20.0, 30.0, 40.0])  # fmt: skip
"""A tree, 10 up to 1 in the first column, then 20 up to 5 in the second, else 30; and one that is a leaf, 40."""
PLACES = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 9.0], [3.0, 9.0]])


def test_leaves_and_predictions() -> None:
    assert BY_HAND.leaves(PLACES).tolist() == [[1, 5], [3, 5], [4, 5], [4, 5]]
    assert BY_HAND.predict(PLACES).tolist() == [25, 30, 35, 35]
    assert BY_HAND.predict(np.array([[1.0, 6.0], [2.0, 5.0]])).tolist() == [25, 30]


def test_partial_dependence_by_hand() -> None:
    """Half of the kernels are above 5 in the second column, whose mean is 4.5."""
    whole = analysis.partial_dependence(BY_HAND, PLACES, 0)
    assert whole[[0, -1]].tolist() == [[0, 25], [3, (30 + 30 + 35 + 35) / 4]]
    at_mean = analysis.partial_dependence(BY_HAND, PLACES, 0, at_mean=True)
    assert at_mean[[0, -1]].tolist() == [[0, 25], [3, 30]]


def test_proximity_by_hand() -> None:
    near = analysis.proximity(BY_HAND, PLACES)
    assert near.tolist() == [[1, 0.5, 0.5, 0.5], [0.5, 1, 0.5, 0.5], [0.5, 0.5, 1, 1], [0.5, 0.5, 1, 1]]


def test_scaling_gives_distances_back() -> None:
    places = np.array([[0.0, 0.0], [0.6, 0.0], [0.0, 0.3], [0.5, 0.5]])
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    found = analysis.scaled(1 - apart)
    assert np.linalg.norm(found[:, None] - found, axis=2) == pytest.approx(apart)
    assert (np.take_along_axis(found, np.abs(found).argmax(axis=0)[None], 0) > 0).all()


def test_the_most_important_first() -> None:
    given = made()
    assert given.watts is not None
    _, importance = models.forest(given.values, given.watts, 50, [1])
    assert analysis.most_important(importance)[0] == 0 and importance.sum() == pytest.approx(100)
    assert analysis.most_important(np.array([1.0, 3.0, 3.0])) == [1, 2, 0]


MODEL = models.Model("modelled", 4, 1, ["a", "b"], BY_HAND, BY_HAND, models.Linear(1.0, [2.0, 3.0])).as_json()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"left": [1, -1, 3', '"left": [0, -1, 3', r"left\[0\], right\[0\]: must be nodes behind it"),
        ('"left": [1, -1, 3', '"left": [1, -1, 9', r"left\[2\], right\[2\]: must be nodes behind it"),
        ('"roots": [0, 5]', '"roots": [0, 6]', "roots: must be nodes"),
        ('"roots": [0, 5]', '"roots": []', "roots: must be nodes"),
        ("[1.0, 0, 5.0", "[NaN, 0, 5.0", r"threshold\[0\]"),
        ("[1.0, 0, 5.0", "[1.0, 5.0", "threshold: must have 6 values, as watts"),
        ('"characteristic": [0, 0, 1', '"characteristic": [0, 0, 2', "characteristic: must be below 2"),
        ("[2.0, 3.0]", "[2.0]", "linear.coefficients: must have 2 values"),
        ('"kernels": 4, ', "", "has no 'kernels'"),
        ("{", "[", "not JSON"),
    ],
)
def test_a_model_that_is_wrong(tmp_path: Path, old: str, new: str, expected: str) -> None:
    text = json.dumps(MODEL)
    assert old in text
    (tmp_path / "model.json").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError, match=expected):
        models.load(str(tmp_path / "model.json"))
