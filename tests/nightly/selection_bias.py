"""Correction for selection: models against each other, and changes of the data that must not change a prediction."""

from __future__ import annotations

from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import trimbench as tb
from tests.nightly.cases import Case, comparison
from tests.selection_bias import brute_force

Array = NDArray[Any]

# What the unit tests ask of the same pairs.
_MODELS, _WALKS, _EXACT = 1e-8, 1e-9, 1e-9


class _Data:
    """Random cases of several classes, and the settings of a fit."""

    def __init__(self, case: Case, n_classes: int = 2, most: int = 14):
        rng = case.rng
        sizes = rng.integers(2, most, size=n_classes)
        p = int(rng.integers(2, 40))
        theta, alpha = rng.uniform(0.05, 0.95, size=p), case.any_of([1.0, 5.0, 50.0])
        phi = rng.beta(alpha * theta, alpha * (1 - theta), size=(n_classes, p))
        self.y: Array = rng.permutation(np.repeat(np.arange(n_classes), sizes))
        self.X: Array = (rng.random((len(self.y), p)) < phi[self.y]).astype(float)
        self.X[0], self.X[1] = 0, 1
        self.k = int(rng.integers(1, p + 1))
        self.new: Array = (rng.random((9, p)) < 0.5).astype(float)
        self.options: dict[str, Any] = {
            "ties": case.any_of(["exact", "less", "less_equal"]),
            "n_alpha": 9,
            "correct": case.chance(0.8),
        }

    def fit(self, **changes: Any) -> tb.SelectionCorrectedModel | None:
        """Return the model; None if a selected feature has no correlation, which is refused."""
        try:
            return tb.fit_selection_corrected(self.X, self.y, self.k, **(self.options | changes))
        except ValueError as error:
            if "y at all" in str(error):
                return None
            raise


def _same(case: Case, what: str, one: Any, other: Any, rows: tuple[Array, Array], tolerance: float) -> None:
    """Compare all that two models say; the second predicts the second rows."""
    case.equal(f"{what}: gamma", other.gamma, one.gamma, tolerance)
    case.equal(f"{what}: adjustment", other.log_adjustment, one.log_adjustment, tolerance)
    if not getattr(getattr(one, "selection", None), "n_tied", 0):  # else features of other counts may be selected
        case.equal(f"{what}: posterior", other.alpha_posterior, one.alpha_posterior, tolerance)
        case.equal(f"{what}: predictions", other.predict_proba(rows[1]), one.predict_proba(rows[0]), tolerance)


@comparison("selection_bias")
def two_categories(case: Case) -> None:
    """The model of several categories against the binary one."""
    data = _Data(case)
    binary = data.fit()
    if binary is None:
        return
    discrete = tb.fit_selection_corrected(data.X, data.y, data.k, features="categorical", **data.options)
    case.holds("selected features", discrete.selected.tolist() == binary.selected.tolist())
    _same(case, "discrete", binary, discrete, (data.new, data.new), _MODELS)


@comparison("selection_bias")
def walks(case: Case) -> None:
    """Walks through counts against tables of them."""
    data = _Data(case, most=60)
    tabled = data.fit()
    room = "trimbench.selection_bias"
    with mock.patch(f"{room}.binary.MOST_TABLED", 0), mock.patch(f"{room}.factors.MOST_TABLED", 0):
        walked = data.fit()
    case.holds("refused alike", (tabled is None) == (walked is None))
    if tabled is not None and walked is not None:
        case.holds("selected features", walked.selected.tolist() == tabled.selected.tolist())
        _same(case, "walks", tabled, walked, (data.new, data.new), _WALKS)


@comparison("selection_bias")
def orders(case: Case) -> None:
    """Neither the order of the cases nor that of the features matters."""
    data = _Data(case, n_classes=int(case.rng.integers(2, 4)), most=9)
    one = data.fit()
    if one is None:
        return
    rows, columns = case.rng.permutation(len(data.y)), case.rng.permutation(data.X.shape[1])
    data.X, data.y = data.X[np.ix_(rows, columns)], data.y[rows]
    _same(case, "permuted", one, data.fit(), (data.new, data.new[:, columns]), _EXACT)


@comparison("selection_bias")
def exchanged_values(case: Case) -> None:
    """A feature may be coded by its opposite."""
    data = _Data(case, n_classes=int(case.rng.integers(2, 4)), most=9)
    one = data.fit()
    if one is None:
        return
    flipped = case.rng.random(data.X.shape[1]) < 0.5
    data.X = np.where(flipped, 1 - data.X, data.X)
    _same(case, "exchanged values", one, data.fit(), (data.new, np.where(flipped, 1 - data.new, data.new)), _EXACT)


@comparison("selection_bias")
def exchanged_classes(case: Case) -> None:
    """The classes may have any numbers."""
    n_classes = int(case.rng.integers(2, 4))
    data = _Data(case, n_classes=n_classes, most=9)
    one = data.fit()
    if one is None:
        return
    name = case.rng.permutation(n_classes)
    data.y = name[data.y]
    other = data.fit()
    assert other is not None
    case.equal("gamma", other.gamma, one.gamma, _EXACT)
    case.equal("adjustment", other.log_adjustment, one.log_adjustment, _EXACT)
    case.equal("predictions", other.predict_proba(data.new)[:, name], one.predict_proba(data.new), _EXACT)


@comparison("selection_bias")
def blocks(case: Case) -> None:
    """Cases are predicted alike together, in blocks and one by one, and with the discarded features missing."""
    data = _Data(case, n_classes=int(case.rng.integers(2, 4)), most=9)
    model = data.fit()
    if model is None:
        return
    whole = model.predict_proba(data.new)
    case.equal("one by one", np.vstack([model.predict_proba(row[None]) for row in data.new]), whole, 1e-12)
    place = int(case.rng.integers(1, len(data.new)))
    parts = [model.predict_proba(part) for part in np.split(data.new, [place])]
    case.equal("two blocks", np.vstack(parts), whole, 1e-12)
    many = np.tile(data.new, (300, 1))
    case.equal("repeated", model.predict_proba(many), np.tile(whole, (300, 1)), 1e-12)
    seen = np.isin(np.arange(data.X.shape[1]), model.selected)
    case.equal("discarded are missing", model.predict_proba(np.where(seen, data.new, np.nan)), whole, 1e-12)


@comparison("selection_bias")
def factor(case: Case) -> None:
    """The factor against enumeration of all counts and adaptive quadrature."""
    data = _Data(case, most=6)
    data.options |= {"n_alpha": 2, "correct": True}
    model = data.fit()
    if model is None or data.k == data.X.shape[1]:
        return
    selection: Any = model.selection
    (n0, n1), tied = model.class_sizes.tolist(), selection.n_tied
    expected = []
    for alpha in model.alpha_grid:
        less, equal = brute_force.weakness(float(alpha), (n0, n1), Fraction(selection.cut))
        known = {"exact": (less, equal), "less": (less, less), "less_equal": (less + equal,) * 2}[data.options["ties"]]
        counts = (selection.n_discarded - tied, tied)
        expected.append(sum(n * np.log(one) for n, one in zip(counts, known, strict=True) if n))
    case.equal("log factor", model.log_adjustment, expected, 1e-7)
