"""Learning mixtures of naive Bayes models from tables, by expectation maximisation within each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.learning import MissingValues, category_codes, check_rows, check_smoothing
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.naive_bayes_mixture import NaiveBayesMixture

if TYPE_CHECKING:
    import pandas as pd

# A step that gains less than this for each row is the last.
_GAIN = 1e-6

FloatArray = NDArray[np.float64]


def learn_naive_bayes_mixture(
    features: pd.DataFrame,
    target: pd.Series,
    *,
    n_components: int = 3,
    smoothing: float = 1.0,
    missing: MissingValues = "error",
    n_starts: int = 5,
    max_steps: int = 200,
    seed: int = 0,
) -> NaiveBayesMixture:
    """Learn a mixture of naive Bayes models: some components for each class.

    The components of a class maximise the probability of its rows together with a Dirichlet prior of their
    probabilities, by expectation maximisation from several random starts.

    Parameters
    ----------
    features : DataFrame of shape (n_rows, n_features)
        Categories; values as in `learn_naive_bayes`.
    target : Series of length n_rows
        The class of each row.
    n_components : int
        Components of each class; not more than it has rows.
    smoothing : float
        Pseudo-count of every value in every component, and of every component, above 0.
    missing : {"error", "ignore"}
        What NaN in a feature means: an error, or a cell that is summed out.
    n_starts, max_steps : int
        Random starts, and most steps of each.
    seed : int

    Returns
    -------
    NaiveBayesMixture
        With one component for each class, the model that `learn_naive_bayes` learns.

    Raises
    ------
    ValueError
        When the tables do not match, hold NaN (see `missing`), or a number is out of range.

    References
    ----------
    Lowd and Domingos (2005), Naive Bayes models for probability estimation, ICML.
    """
    check_smoothing(smoothing)
    if smoothing == 0:
        raise ValueError("smoothing must be positive for a mixture, got 0; 1 is Laplace's rule")
    for name, number in (("n_components", n_components), ("n_starts", n_starts), ("max_steps", max_steps)):
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise ValueError(f"{name} must be a whole number, 1 or more, got {number!r}")
    check_rows(features, target)
    class_codes, class_names = category_codes(target, "target", missing="error")
    names = [str(label) for label in features.columns]
    coded = [category_codes(features.iloc[:, i], f"feature {name!r}", missing=missing) for i, name in enumerate(names)]
    table = _Table.of([codes for codes, _ in coded], [len(values) for _, values in coded])
    prior = np.bincount(class_codes, minlength=len(class_names)) + smoothing
    shares, parts, homes = [], [], []
    for place, name in enumerate(class_names):
        rows = table.rows(class_codes == place)
        rng = np.random.default_rng([seed, place])
        n_parts = max(1, min(n_components, rows.n_rows))
        found = [_fit(rows, n_parts, smoothing, max_steps, rng) for _ in range(n_starts if n_parts > 1 else 1)]
        best = max(found, key=lambda components: components.score)
        shares.append(prior[place] / prior.sum() * best.shares)
        parts.append(best.chances)
        homes += [name] * n_parts
    chances = np.concatenate(parts)
    taken = {*names, str(target.name) if target.name is not None else "class"}
    hidden = "component"
    while hidden in taken:
        hidden += "_"
    components = NaiveBayes(
        np.concatenate(shares),
        np.split(chances, np.cumsum(table.sizes)[:-1], axis=1) if names else [],
        feature_names=names,
        value_names=[values for _, values in coded],
        class_variable=hidden,
    )
    return NaiveBayesMixture(components, homes, class_variable=str(target.name) if target.name is not None else "class")


@dataclass(frozen=True, eq=False)
class _Table:
    """Rows as indicators of values, shape (n_rows, sum of sizes); a missing cell has none."""

    indicators: FloatArray
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, columns: list[NDArray[np.int64]], sizes: list[int]) -> _Table:
        blocks = [(column[:, None] == np.arange(size)) for column, size in zip(columns, sizes, strict=True)]
        return cls(np.concatenate(blocks, axis=1).astype(np.float64) if blocks else np.zeros((0, 0)), tuple(sizes))

    def rows(self, places: NDArray[np.bool_]) -> _Table:
        return _Table(self.indicators[places] if self.sizes else np.zeros((int(places.sum()), 0)), self.sizes)

    @property
    def n_rows(self) -> int:
        return len(self.indicators)


@dataclass(frozen=True, eq=False)
class _Components:
    """Components of one class.

    Attributes
    ----------
    shares : ndarray of shape (n_components,)
    chances : ndarray of shape (n_components, sum of sizes)
        P(value | component) of all features, side by side.
    score : float
        Log-probability of the rows and of the parameters under their prior, up to a constant.
    """

    shares: FloatArray
    chances: FloatArray
    score: float


def _fit(rows: _Table, n_parts: int, smoothing: float, max_steps: int, rng: np.random.Generator) -> _Components:
    """Alternate between the components' parameters and the rows' memberships, from random memberships."""
    memberships = rng.dirichlet(np.ones(n_parts), size=rows.n_rows)
    found = None
    for _ in range(max_steps):
        shares, chances = _maximised(rows, memberships, smoothing)
        logs = np.log(shares) + rows.indicators @ np.log(chances).T
        of_rows = np.logaddexp.reduce(logs, axis=1)
        score = float(of_rows.sum() + smoothing * (np.log(shares).sum() + np.log(chances).sum()))
        gain = np.inf if found is None else score - found.score
        found = _Components(shares, chances, score)
        if gain < _GAIN * max(rows.n_rows, 1):
            break
        memberships = np.exp(logs - of_rows[:, None])
    if found is None:
        raise RuntimeError("expectation maximisation takes at least one step")
    return found


def _maximised(rows: _Table, memberships: FloatArray, smoothing: float) -> tuple[FloatArray, FloatArray]:
    """Return the shares and probabilities that are best for given memberships."""
    shares = memberships.sum(axis=0) + smoothing
    counts = memberships.T @ rows.indicators + smoothing
    starts = np.cumsum([0, *rows.sizes])[:-1]
    if counts.shape[1]:
        totals = np.add.reduceat(counts, starts, axis=1)
        counts = counts / np.repeat(totals, rows.sizes, axis=1)
    return shares / shares.sum(), counts
