"""What usual estimates expect of a classifier on selected features, what its corrected model does, and what is true."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from trimbench.papers.execution.code_hash import job_function
from trimbench.papers.execution.job import seed_for
from trimbench.papers.measures import prediction_quality
from trimbench.papers.selection_bias.simulated_cases import check_at_least, check_ks, class_counts, correlation
from trimbench.papers.validation import Json, settings
from trimbench.papers.vocabulary.cells import Cell, Outcome, check_axis, successes
from trimbench.papers.vocabulary.figures import LineFigure
from trimbench.papers.vocabulary.inputs import Inputs, dataset_of
from trimbench.papers.vocabulary.tables import Table
from trimbench.selection_bias.features import Binariser
from trimbench.selection_bias.fit import fit_selection_corrected

if TYPE_CHECKING:
    import pandas as pd


Bits = NDArray[np.uint8]
Integers = NDArray[np.int64]

METHODS: Mapping[str, str] = {
    "outside": "selection outside cross-validation",
    "inside": "selection inside cross-validation",
    "best": "lowest cross-validated error of all k",
    "nested": "nested cross-validation",
    "uncorrected": "uncorrected model",
    "corrected": "corrected model",
}


def wrong_by_k(X: Bits, y: Integers, X_test: Bits, y_test: Integers, ks: Sequence[int]) -> Integers:
    """Return how many test cases naive Bayes gets wrong with the k features of largest absolute correlation.

    Probabilities are smoothed by one case of each value.
    """
    n1 = int(y.sum())
    n0 = len(y) - n1
    ones0, ones1 = class_counts(X, y)
    order = np.argsort(-np.abs(correlation(ones0, ones1, n0, n1)), kind="stable")[: max(ks)]
    one = np.log((ones1[order] + 1) / (n1 + 2)) - np.log((ones0[order] + 1) / (n0 + 2))
    zero = np.log((n1 - ones1[order] + 1) / (n1 + 2)) - np.log((n0 - ones0[order] + 1) / (n0 + 2))
    log_odds = np.log((n1 + 1) / (n0 + 1)) + np.cumsum(np.where(X_test[:, order] == 1, one, zero), axis=1)
    wrong: Integers = ((log_odds[:, np.array(ks) - 1] >= 0) != y_test[:, None]).sum(axis=0)
    return wrong


def folds_of(y: Integers, n_folds: int, rng: np.random.Generator) -> Integers:
    """Return the fold of each case, each class dealt out evenly in random order."""
    order = rng.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    folds = np.empty(len(y), dtype=np.int64)
    folds[order] = np.arange(len(y)) % n_folds
    return folds


def cross_validated(X: Bits, y: Integers, ks: Sequence[int], folds: Integers) -> NDArray[np.float64]:
    """Return the cross-validated error rate for each k, with selection inside each fold."""
    wrong = np.zeros(len(ks), dtype=np.int64)
    for fold in range(folds.max() + 1):
        out = folds == fold
        wrong += wrong_by_k(X[~out], y[~out], X[out], y[out], ks)
    return wrong / len(y)


def nested(X: Bits, y: Integers, ks: Sequence[int], folds: Integers, rng: np.random.Generator) -> float:
    """Return the cross-validated error rate of a classifier that chooses k by cross-validation of its own."""
    wrong = 0
    for fold in range(folds.max() + 1):
        out = folds == fold
        inner = cross_validated(X[~out], y[~out], ks, folds_of(y[~out], folds.max() + 1, rng))
        wrong += int(wrong_by_k(X[~out], y[~out], X[out], y[out], [ks[int(np.argmin(inner))]])[0])
    return wrong / len(y)


def _estimates(split: Split, k: int, ks: Sequence[int], n_folds: int, rng: np.random.Generator) -> dict[str, Json]:
    X, y = split.X, split.y
    folds = folds_of(y, n_folds, rng)
    found: dict[str, Json] = {}

    def timed(name: str, call: Callable[[], tuple[float, float]]) -> None:
        start = time.process_time()
        expected, actual = call()
        seconds = time.process_time() - start
        found.update({f"{name}_expected": expected, f"{name}_actual": actual, f"{name}_seconds": seconds})

    def actual(k: int) -> float:
        return float(wrong_by_k(X, y, split.X_test, split.y_test, [k])[0]) / len(split.y_test)

    def outside() -> tuple[float, float]:
        ones0, ones1 = class_counts(X, y)
        strength = np.abs(correlation(ones0, ones1, int((y == 0).sum()), int(y.sum())))
        chosen = np.argsort(-strength, kind="stable")[:k]
        return float(cross_validated(X[:, chosen], y, [k], folds)[0]), actual(k)

    def best() -> tuple[float, float]:
        errors = cross_validated(X, y, ks, folds)
        return float(errors.min()), actual(ks[int(np.argmin(errors))])

    def model(correct: bool) -> tuple[float, float]:
        fitted = fit_selection_corrected(X, y, k, correct=correct)
        quality = prediction_quality(split.y_test, fitted.predict_proba(split.X_test))
        return quality.expected_error, quality.actual_error

    timed("outside", outside)
    timed("inside", lambda: (float(cross_validated(X, y, [k], folds)[0]), actual(k)))
    timed("best", best)
    timed("nested", lambda: (nested(X, y, ks, folds, rng), best()[1]))
    timed("uncorrected", lambda: model(False))
    timed("corrected", lambda: model(True))
    return found


def _permutation_test(split: Split, k: int, n_folds: int, n_permutations: int, rng: np.random.Generator) -> float:
    """Return the p-value of the cross-validated error: how often that of shuffled labels is as low."""
    observed = cross_validated(split.X, split.y, [k], folds_of(split.y, n_folds, rng))[0]
    as_low = 1
    for _ in range(n_permutations):
        y = rng.permutation(split.y)
        as_low += cross_validated(split.X, y, [k], folds_of(y, n_folds, rng))[0] <= observed
    return float(as_low / (n_permutations + 1))


@job_function
def compare_estimates(
    kind: str, data: Mapping[str, Any], k: int, ks: list[int], n_folds: int, n_permutations: int, seed: int
) -> dict[str, Json]:
    """Return the expected and the actual error of each method and its seconds, and the p-value of a permutation test.

    `data` are the arguments of `simulated_split` or, if `kind` is "real", of `real_split`.
    """
    rng = np.random.default_rng(seed)
    split = real_split(**data, rng=rng) if kind == "real" else simulated_split(**data, rng=rng)
    found = _estimates(split, k, ks, n_folds, rng)
    start = time.process_time()
    p_value = _permutation_test(split, k, n_folds, n_permutations, rng)
    return {**found, "p_value": p_value, "permutation_seconds": time.process_time() - start}


# Expected against actual error where features are many and signal is little or none.

_FORMATS = {
    "data": "",
    "method": "",
    "data sets": "",
    "expected error": ".3f",
    "actual error": ".3f",
    "actual - expected": ".3f",
    "standard error": ".3f",
    "mean distance": ".3f",
    "seconds": ".4f",
}
_AGAINST_FORMATS = {
    "data": "",
    "against": "",
    "distance of the correction": ".3f",
    "distance of the other": ".3f",
    "difference": ".3f",
    "standard error": ".3f",
    "the correction is": "",
}
_TEST_FORMATS = {"data": "", "data sets": "", "share with p < 0.05": ".2f", "seconds": ".3f"}
_NOTES = [
    "Cross-validation is of a naive Bayes classifier that smooths by one case. Actual errors are on cases that no "
    "method has seen. The corrected and uncorrected models expect an error on those same cases without their labels.",
    "Distance: absolute difference of expected and actual error on one data set; the means are compared in pairs, and "
    "the correction is better or worse where they differ by more than 2 standard errors, and equal otherwise. Splits "
    "of one real data set share rows, so that their standard errors are too small.",
    "The permutation test gives no error rate: without signal, it should find one in at most 5 % of the data sets.",
    "Seconds of processor time for one data set; those of the models include predictions of all test cases.",
    "Rho: correlation of the normal variables behind the features of one block, within the classes. The correction "
    "assumes that features are independent there (rho = 0).",
]


@settings
class SimulatedSets:
    """Simulated data: alpha of each strength of signal (null: none), correlations, and sizes."""

    signals: dict[str, float | None]
    correlations: list[float]
    n_train: int = 40
    n_test: int = 1000
    n_features: int = 2000
    block: int = 20

    def __post_init__(self) -> None:
        check_axis("simulated.signals", list(self.signals))
        check_axis("simulated.correlations", self.correlations)
        if wrong := [alpha for alpha in self.signals.values() if alpha is not None and not alpha > 0]:
            raise ValueError(f"simulated.signals must be positive numbers or null, got {wrong[0]}")
        if wrong := [rho for rho in self.correlations if not 0 <= rho < 1]:
            raise ValueError(f"simulated.correlations must be at least 0 and below 1, got {wrong[0]}")
        check_at_least(1, n_test=self.n_test, n_features=self.n_features, block=self.block)
        check_at_least(10, n_train=self.n_train)


@settings
class RealSet:
    """A declared data set with two classes, sizes of its random splits, and what is done to it."""

    dataset: str
    positive: list[str]
    negative: list[str]
    n_train: int = 40
    n_test: int = 1000
    n_noise: int = 0
    permuted: bool = False


@settings
class Noise:
    """Several estimates of the error with k selected features, on data with little signal or none.

    `real` are the names of the `real_sets` to run. Where a method chooses k, it does so among `ks`.
    """

    simulated: SimulatedSets
    real_sets: dict[str, RealSet]
    real: list[str]
    replicates: int = 20
    k: int = 10
    ks: list[int]
    n_folds: int = 10
    n_permutations: int = 99
    seed: int = 0

    def __post_init__(self) -> None:
        check_ks([self.k], self.simulated.n_features)
        check_ks(self.ks, self.simulated.n_features)
        check_at_least(1, replicates=self.replicates, n_permutations=self.n_permutations)
        check_at_least(2, n_folds=self.n_folds)
        if unknown := [name for name in self.real if name not in self.real_sets]:
            raise ValueError(f"real must be names in real_sets, {list(self.real_sets)}, got {unknown[0]}")

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each kind of data and replicate."""
        return [
            Cell.of(
                {"data": name, "replicate": replicate},
                compare_estimates,
                kind=kind,
                data=data,
                k=self.k,
                ks=self.ks,
                n_folds=self.n_folds,
                n_permutations=self.n_permutations,
                seed=seed_for(purpose="noise", data=name, replicate=replicate, seed=self.seed),
            )
            for name, kind, data in [*self._simulated(), *self._real(inputs)]
            for replicate in range(self.replicates)
        ]

    def _simulated(self) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        drawn = self.simulated
        sizes = {name: getattr(drawn, name) for name in ("n_train", "n_test", "n_features", "block")}
        for signal, alpha in drawn.signals.items():
            for rho in drawn.correlations:
                yield _name(signal, rho), "simulated", {"alpha": alpha, "correlation": rho, **sizes}

    def _real(self, inputs: Inputs) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        for name in self.real:
            chosen = self.real_sets[name]
            fields = ("positive", "negative", "n_train", "n_test", "n_noise", "permuted")
            data = {field: getattr(chosen, field) for field in fields}
            yield name, "real", {"dataset": inputs.dataset(chosen.dataset), **data}

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return errors of each method, the correction against the others, the permutation test, and figures."""
        names = list(dict.fromkeys(rows["data"]))
        found = {name: ours for name in names if len(ours := successes(rows, data=name))}
        errors = [_line(name, ours, method) for name, ours in found.items() for method in METHODS]
        against = [
            _against(name, ours, other) for name, ours in found.items() for other in METHODS if other != "corrected"
        ]
        tests = [
            {
                "data": name,
                "data sets": len(ours),
                "share with p < 0.05": float((ours["p_value"] < 0.05).mean()),
                "seconds": float(ours["permutation_seconds"].mean()),
            }
            for name, ours in found.items()
        ]
        tables = (
            Table.of("Expected and actual errors", errors, _FORMATS),
            Table.of("The correction against each other method", against, _AGAINST_FORMATS, name="against"),
            Table.of("Permutation test", tests, _TEST_FORMATS, name="permutation"),
        )
        figures = [self._correlation_figure(signal, found) for signal in self.simulated.signals]
        figures.append(_errors_figure(errors))
        return Outcome(tables, [figure for figure in figures if len(figure.points)], (), [_summary(against), *_NOTES])

    def _correlation_figure(self, signal: str, found: Mapping[str, pd.DataFrame]) -> LineFigure:
        """Return by how much each method is too sure, against the correlation of the features."""
        points = []
        for method, title in METHODS.items():
            for rho in self.simulated.correlations:
                ours = found.get(_name(signal, rho))
                if ours is None:
                    continue
                line = _line("", ours, method)
                gap, half = float(line["actual - expected"]), 2 * float(line["standard error"])
                points.append({"series": title, "x": rho, "y": gap, "low": gap - half, "high": gap + half})
        return LineFigure(
            f"Actual minus expected error, {signal}",
            "correlation of the features of a block (rho)",
            "actual minus expected error",
            _points(points, interval=True),
            name=f"correlation_{signal.replace(' ', '_')}",
            levels={"honest": 0.0},
            interval="2 standard errors to either side",
            methods=_COLOURS,
        )


# In other figures corrected and uncorrected predictions have these names, and so their colours here.
_COLOURS = {METHODS[name]: name for name in ("corrected", "uncorrected")}


def _name(signal: str, rho: float) -> str:
    return f"{signal}, rho = {rho:g}"


def _points(points: Sequence[Mapping[str, object]], *, interval: bool) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(points, columns=["series", "x", "y", *(("low", "high") if interval else ())])


def _standard_error(values: pd.Series[float]) -> float:
    return float(values.std() / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _line(name: str, ours: pd.DataFrame, method: str) -> dict[str, float | str]:
    expected, actual = ours[f"{method}_expected"], ours[f"{method}_actual"]
    return {
        "data": name,
        "method": METHODS[method],
        "data sets": len(ours),
        "expected error": float(expected.mean()),
        "actual error": float(actual.mean()),
        "actual - expected": float((actual - expected).mean()),
        "standard error": _standard_error(actual - expected),
        "mean distance": float((actual - expected).abs().mean()),
        "seconds": float(ours[f"{method}_seconds"].mean()),
    }


def _against(name: str, ours: pd.DataFrame, other: str) -> dict[str, object]:
    """Return whether the correction's expected error is closer to its actual one than another method's, in pairs."""
    distances = [(ours[f"{method}_actual"] - ours[f"{method}_expected"]).abs() for method in ("corrected", other)]
    difference = distances[0] - distances[1]
    mean, spread = float(difference.mean()), _standard_error(difference)
    verdict = "worse" if mean > 2 * spread else "better" if mean < -2 * spread else "equal"
    return {
        "data": name,
        "against": METHODS[other],
        "distance of the correction": float(distances[0].mean()),
        "distance of the other": float(distances[1].mean()),
        "difference": mean,
        "standard error": spread,
        "the correction is": verdict,
    }


def _summary(against: Sequence[Mapping[str, object]]) -> str:
    """Return on how many kinds of data the correction is better, equal and worse than each other method."""
    counts = []
    for other in dict.fromkeys(line["against"] for line in against):
        verdicts = [line["the correction is"] for line in against if line["against"] == other]
        shown = ", ".join(f"{verdict} on {verdicts.count(verdict)}" for verdict in ("better", "equal", "worse"))
        counts.append(f"{other}: {shown}")
    return f"The correction against {'; '.join(counts)} kinds of data."


def _errors_figure(errors: Sequence[Mapping[str, object]]) -> LineFigure:
    points = [{"series": line["method"], "x": line["expected error"], "y": line["actual error"]} for line in errors]
    top = float(np.max([(p["x"], p["y"]) for p in points], initial=0.5))
    points += [{"series": "equal", "x": at, "y": at} for at in (0.0, top)] if points else []
    return LineFigure(
        "Expected and actual error, mean on each kind of data",
        "expected error",
        "actual error",
        _points(points, interval=False),
        marks=dict.fromkeys(METHODS.values(), "points") | {"equal": "guide"},
        methods=_COLOURS,
    )


# Data on which a selection of features may find nothing: without signal or with little, or real with noise.


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test cases with binary features."""

    X: NDArray[np.uint8]
    y: NDArray[np.int64]
    X_test: NDArray[np.uint8]
    y_test: NDArray[np.int64]


def simulated_split(
    alpha: float | None,
    correlation: float,
    n_train: int,
    n_test: int,
    n_features: int,
    block: int,
    rng: np.random.Generator,
) -> Split:
    """Draw cases, as many of each class, whose features come in blocks that are correlated within the classes.

    Parameters
    ----------
    alpha : float, optional
        Of the naive Bayes model that gives P(x_j = 1 | y); None for features that have nothing to do with the classes.
    correlation : float
        Between the normal variables behind the binary features of one block.
    """
    theta = np.clip(rng.random(n_features), 1e-12, 1.0 - 1e-12)
    phi = np.stack([theta, theta]) if alpha is None else rng.beta(alpha * theta, alpha * (1.0 - theta), (2, n_features))
    y, y_test = np.arange(n_train) % 2, np.arange(n_test) % 2
    both = np.concatenate([y, y_test])
    common = rng.standard_normal((len(both), -(-n_features // block)), dtype=np.float32)
    own = rng.standard_normal((len(both), n_features), dtype=np.float32)
    latent = np.sqrt(correlation) * common.repeat(block, axis=1)[:, :n_features] + np.sqrt(1.0 - correlation) * own
    X = (latent < ndtri(phi)[both]).astype(np.uint8)
    return Split(X[:n_train], y, X[n_train:], y_test)


def real_split(
    dataset: Mapping[str, Any],
    positive: Sequence[str],
    negative: Sequence[str],
    n_train: int,
    n_test: int,
    n_noise: int,
    permuted: bool,
    rng: np.random.Generator,
) -> Split:
    """Draw rows of a data set, whose features are cut at the medians of the training rows.

    Parameters
    ----------
    positive, negative : sequence of str
        Classes that are called 1 and 0; other rows are left out.
    n_noise : int
        Features to add: copies of the features with their rows in random order.
    permuted : bool
        Whether labels, too, are put in random order, so that nothing depends on them.
    """
    import pandas as pd

    loaded = dataset_of(dataset)
    target = loaded.target.astype(str).to_numpy()
    rows = rng.permutation(np.flatnonzero(np.isin(target, [*positive, *negative])))
    y = np.isin(target[rows], list(positive)).astype(np.int64)
    table = pd.get_dummies(loaded.features.iloc[rows]).to_numpy(dtype=float)
    if permuted:
        y = rng.permutation(y)
    noise = rng.permuted(table[:, rng.integers(table.shape[1], size=n_noise)], axis=0)
    table = np.hstack([table, noise])
    # Both parts have the classes in the shares of the data set.
    order = np.concatenate([np.flatnonzero(y == c) for c in (0, 1)])
    place = np.concatenate([(np.arange(n) + 0.5) / n for n in np.bincount(y, minlength=2)])
    order = order[np.argsort(place, kind="stable")]
    train, test = order[:n_train], order[n_train : n_train + n_test]
    binariser = Binariser.fit(table[train])
    return Split(binariser.transform(table[train]), y[train], binariser.transform(table[test]), y[test])
