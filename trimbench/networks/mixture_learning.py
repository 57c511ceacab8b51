"""Learning mixtures of naive Bayes models: expectation maximisation in each class."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.learning import MissingValues, category_codes, check_rows, check_smoothing
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.naive_bayes_mixture import NaiveBayesMixture

if TYPE_CHECKING:
    import pandas as pd

# EM stops once a step improves the objective by less than this share of it.
_TOLERANCE = 1e-7
_MAX_STEPS = 500


def learn_mixture(
    features: pd.DataFrame,
    target: pd.Series,
    n_components: int = 2,
    *,
    smoothing: float = 1.0,
    missing: MissingValues = "error",
    n_starts: int = 3,
    seed: int = 0,
) -> NaiveBayesMixture:
    """Learn a mixture of naive Bayes models for each class by expectation maximisation, with Laplace smoothing.

    With one component it is naive Bayes.

    Parameters
    ----------
    features : DataFrame of shape (n_rows, n_features)
        Categories; values as in `learn_naive_bayes`.
    target : Series of length n_rows
        The class of each row.
    n_components : int
        Components of each class, 1 or more.
    smoothing : float
        Pseudo-count of every value and of every component, above 0.
    missing : {"error", "ignore"}
        What NaN in a feature means: an error, or a cell that is left out of the counts that need it.
    n_starts : int
        The best of so many random starts is taken: the one of the highest smoothed likelihood.
    seed : int
        Decides the starts.

    Returns
    -------
    NaiveBayesMixture

    Raises
    ------
    ValueError
        When the tables do not match or hold NaN (see `missing`), or a number is out of range.
    """
    check_smoothing(smoothing)
    if smoothing == 0:
        raise ValueError("smoothing must be positive for a mixture, got 0; 1 is Laplace's rule")
    for name, count in (("n_components", n_components), ("n_starts", n_starts)):
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"{name} must be a whole number, 1 or more, got {count!r}")
    check_rows(features, target)
    class_codes, class_names = category_codes(target, "target", missing="error")
    names = [str(label) for label in features.columns]
    coded = [category_codes(features.iloc[:, i], f"feature {name!r}", missing=missing) for i, name in enumerate(names)]
    seen = _Indicators.of([codes for codes, _ in coded], [len(values) for _, values in coded])
    prior = np.bincount(class_codes, minlength=len(class_names)) + smoothing
    rng = np.random.default_rng(seed)
    parts = []
    for code in range(len(class_names)):
        own = seen.of_rows(class_codes == code)
        starts = [_fitted(own, int(n_components), smoothing, rng) for _ in range(n_starts if n_components > 1 else 1)]
        parts.append(max(starts, key=lambda fit: fit.objective))
    weights = np.concatenate([fit.shares * share for fit, share in zip(parts, prior / prior.sum(), strict=True)])
    tables = np.concatenate([fit.tables for fit in parts])
    class_name = str(target.name) if target.name is not None else "class"
    component = "component"
    while component in {class_name, *names}:
        component += "_"
    components = NaiveBayes(
        weights,
        [tables[:, columns] for columns in seen.columns],
        feature_names=names,
        class_names=[f"{name}/{i + 1}" for name in class_names for i in range(n_components)],
        value_names=[values for _, values in coded],
        class_variable=component,
    )
    homes = [name for name in class_names for _ in range(n_components)]
    return NaiveBayesMixture(components, homes, class_variable=class_name)


@dataclass(frozen=True, eq=False)
class _Indicators:
    """Which value each row has of each feature: one column for each value, all 0 where the value is missing."""

    table: NDArray[np.float64]
    columns: tuple[slice, ...]

    @classmethod
    def of(cls, codes: list[NDArray[np.int64]], sizes: list[int]) -> _Indicators:
        table = np.zeros((len(codes[0]) if codes else 0, sum(sizes)))
        ends = np.cumsum([0, *sizes])
        for column, start in zip(codes, ends[:-1], strict=True):
            rows = np.flatnonzero(column >= 0)
            table[rows, start + column[rows]] = 1.0
        return cls(table, tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(ends)))

    def of_rows(self, rows: NDArray[np.bool_]) -> _Indicators:
        return _Indicators(self.table[rows], self.columns)


@dataclass(frozen=True, eq=False)
class _Fit:
    """A mixture of one class: shares of shape (n_components,), tables of shape (n_components, n_all_values)."""

    shares: NDArray[np.float64]
    tables: NDArray[np.float64]
    objective: float


def _fitted(seen: _Indicators, n_components: int, smoothing: float, rng: np.random.Generator) -> _Fit:
    """Fit a mixture from a random start; the objective is the log-likelihood and the smoothing's log-prior."""
    n_rows = len(seen.table)
    responsibilities = rng.dirichlet(np.ones(n_components), size=n_rows).reshape(n_rows, n_components)
    objective = -np.inf
    for _ in range(_MAX_STEPS):
        counts = responsibilities.T @ seen.table + smoothing
        tables = np.empty_like(counts)
        for columns in seen.columns:
            tables[:, columns] = counts[:, columns] / counts[:, columns].sum(axis=1, keepdims=True)
        weights = responsibilities.sum(axis=0) + smoothing
        shares = weights / weights.sum()
        logs = np.log(shares) + seen.table @ np.log(tables).T
        top = logs.max(axis=1, keepdims=True) if n_rows else logs
        scaled = np.exp(logs - top)
        totals = scaled.sum(axis=1, keepdims=True)
        reached = float((top + np.log(totals)).sum() + smoothing * (np.log(tables).sum() + np.log(shares).sum()))
        responsibilities = scaled / totals
        if reached - objective < _TOLERANCE * abs(reached):
            break
        objective = reached
    return _Fit(shares, tables, reached)
