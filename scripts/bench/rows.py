"""Time trimming with rows: 784 binary features and ten thousand rows, compiled kernels against their twin in NumPy.

Needs no data: the rows are drawn from a mixture, so that features depend on each other as pixels do. Takes a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import trimbench as tb
from trimbench.trimming.problem import Limits, checked_choice
from trimbench.trimming.search.cross_fitting import RowsWeight, trim_on_rows
from trimbench.trimming.search.row_scores import (
    AdditiveScores,
    Cells,
    Columns,
    cells_of,
    compiled_balances,
    highest_balances,
    scores_of,
)
from trimbench.trimming.search.row_search import RowProblem, select

from .measure import Call, Row, growth, versus

N_ROWS, N_FEATURES, BUDGET = 10_000, 784, 10


def images(
    rng: np.random.Generator, n_rows: int = N_ROWS, n_features: int = N_FEATURES
) -> tuple[pd.DataFrame, pd.Series]:
    """Return rows of binary features from ten kinds, five in each class."""
    kinds = rng.integers(0, 10, size=n_rows)
    rates = rng.beta(0.4, 0.6, size=(10, n_features))
    pixels = (rng.random((n_rows, n_features)) < rates[kinds]).astype(np.int8)
    frame = pd.DataFrame(pixels, columns=[f"p{i}" for i in range(n_features)])
    return frame.astype("category"), pd.Series(np.where(kinds < 5, "three", "five"))


def cpu_seconds(call: Callable[[], object], repeat: int = 1) -> float:
    """Return the mean processor time of a call."""
    start = time.process_time()
    for _ in range(repeat):
        call()
    return (time.process_time() - start) / repeat


def kernel_calls(classifier: tb.BayesianClassifier, frame: pd.DataFrame, n_kept: int) -> tuple[Call, Call, str]:
    """Return one step of the greedy search, compiled and in NumPy, and what it is: each feature beside those kept."""
    problem = RowProblem(classifier)
    rows = problem.rows(frame)
    scores = scores_of(classifier)
    if not isinstance(scores, AdditiveScores):
        raise TypeError("a naive Bayes classifier has additive scores")
    signed = np.where(rows.decisions == 1, rows.weights, -rows.weights)
    columns = Columns(rows.codes, scores.cardinalities, scores.weights, signed, scores.prior)
    kept = list(range(n_kept))
    places, codes = cells_of(rows.codes, kept, scores.cardinalities)
    cells = Cells.sorted(places, scores.of_rows(kept, codes))
    candidates = list(range(n_kept, classifier.n_features))
    plain, packed = (
        partial(function, columns, cells, candidates) for function in (highest_balances, compiled_balances)
    )
    if not np.allclose(plain(), packed(), atol=1e-10):
        raise AssertionError("both kernels must give the same balances")
    return packed, plain, f"{len(cells.log_odds)} cells, {len(candidates)} candidates"


def kernels(classifier: tb.BayesianClassifier, frame: pd.DataFrame) -> None:
    """Compare steps of the greedy search: every feature added to up to nine."""
    for n_kept in (1, BUDGET // 2, BUDGET - 1):
        packed, plain, what = kernel_calls(classifier, frame, n_kept)
        slow, fast = cpu_seconds(plain), cpu_seconds(packed, 5)
        print(
            f"one more feature beside {n_kept}, {what}: "
            f"{fast * 1e3:.1f} ms packed, {slow * 1e3:.0f} ms NumPy, {slow / fast:.0f} times"
        )


def selection(n_rows: int = 4000, n_features: int = 200, budget: int = 8) -> Call:
    """Return one selection of features on rows."""
    frame, target = images(np.random.default_rng(0), n_rows, n_features)
    classifier = tb.BayesianClassifier(tb.learn(frame, target), positive="three")
    choice = checked_choice(classifier.features, budget)
    problem = RowProblem(classifier)
    return partial(select, problem.objective(problem.rows(frame)), choice, lambda _: True)


def against_numpy() -> Iterator[Row]:
    """Compare the compiled kernel of a greedy step with its twin in NumPy."""
    frame, target = images(np.random.default_rng(0))
    classifier = tb.BayesianClassifier(tb.learn(frame, target), positive="three")
    packed, plain, what = kernel_calls(classifier, frame, BUDGET // 2)
    quantity = f"greedy step on {N_ROWS:,} rows, {what}: packed"
    yield versus(quantity, "the same in NumPy", packed, plain, 3)


def growth_of_selections() -> Iterator[Row]:
    """Fit how a selection of features on rows grows."""
    what = "selection on rows: growth in"
    yield growth(f"{what} features (4,000 rows, budget 8)", (100, 200, 400, 800), lambda n: selection(n_features=n), 3)
    yield growth(f"{what} budget (4,000 rows, 200 features)", (2, 4, 8, 16), lambda n: selection(budget=n), 3)
    yield growth(f"{what} rows (200 features, budget 8)", (2000, 4000, 8000, 16_000), lambda n: selection(n), 3)


COMPARISONS = (against_numpy, growth_of_selections)


def main() -> None:
    rng = np.random.default_rng(0)
    frame, target = images(rng)
    classifier = tb.BayesianClassifier(tb.learn(frame, target), positive="three")
    kernels(classifier, frame)
    choice = checked_choice(classifier.features, BUDGET)
    problem = RowProblem(classifier)
    print(f"rows as weighted instances: {cpu_seconds(lambda: problem.rows(frame)):.2f} s")
    objective = problem.objective(problem.rows(frame))
    seconds = cpu_seconds(lambda: select(objective, choice, lambda _: True))
    print(f"one selection of {BUDGET} of {N_FEATURES} features on {N_ROWS} rows: {seconds:.2f} s")
    weights: list[RowsWeight] = [1.0, 0.5, "auto"]
    for weight in weights:
        start = time.process_time()
        found = trim_on_rows(classifier, choice, frame, Limits(), rows_weight=weight)
        agreement = found.rows_agreement
        print(
            f"rows_weight={weight!r}: {time.process_time() - start:.1f} s with cross-fitting, "
            f"{found.n_evaluations} agreements, cross-fitted {agreement.value:.4f}, weight {agreement.weight}"
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
