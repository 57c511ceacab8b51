"""What usual estimates expect of a classifier on selected features, what its corrected model does, and what is true."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.selection_bias.noise_data import Split, real_split, simulated_split
from trimbench.selection_bias.metrics import prediction_quality
from trimbench.selection_bias.model import fit_selection_corrected
from trimbench.selection_bias.selection import class_counts, correlation

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


@job_function(code=("trimbench.papers.data", "trimbench.papers.study.inputs", "trimbench.selection_bias"))
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
