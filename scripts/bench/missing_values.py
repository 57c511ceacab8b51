"""Compare conformant models with imputers and boosted trees of scikit-learn, where half of the values are missing.

The rows are drawn: 100 binary features that depend on each other, ten classes. Each method learns from 2,000 complete
rows, and predicts 2,000 others. Takes a minute, and memory is read as Linux tells it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import trimbench as tb

from .measure import Row, ratio_of, version_of

N_ROWS, N_FEATURES, N_CLASSES, MISSING = 2000, 100, 10, 0.5
N_COMPONENTS = 20
MEMORY_STATUS = Path("/proc/self/status")


class Drawn(NamedTuple):
    """Training rows, their classes, and other rows with gaps."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    gaps: NDArray[np.float64]
    truth: NDArray[np.int64]


class Classifier(NamedTuple):
    """A way to classify rows with gaps: how it learns from complete rows."""

    name: str
    fit: Callable[[Drawn], Any]


@cache
def drawn(
    n_rows: int = N_ROWS, n_features: int = N_FEATURES, n_classes: int = N_CLASSES, missing: float = MISSING
) -> Drawn:
    """Return rows of binary features from three kinds in each class."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 3 * n_classes, size=2 * n_rows)
    rates = rng.beta(0.6, 0.6, size=(3 * n_classes, n_features))
    rows = (rng.random((2 * n_rows, n_features)) < rates[kinds]).astype(np.float64)
    gaps = np.where(rng.random((n_rows, n_features)) < missing, np.nan, rows[n_rows:])
    return Drawn(rows[:n_rows], kinds[:n_rows] // 3, gaps, kinds[n_rows:] // 3)


def ours(n_components: int, data: Drawn) -> Any:
    classifier = tb.fit_logistic_regression(data.X, data.y)
    return tb.conform(classifier, data.X, n_components=n_components, covariance="diagonal")


def imputed(make: Callable[[], Any], data: Drawn) -> Any:
    return make_pipeline(make(), LogisticRegression(max_iter=1000)).fit(data.X, data.y)


def boosted(data: Drawn) -> Any:
    return HistGradientBoostingClassifier(random_state=0).fit(data.X, data.y)


OURS = (Classifier("NaCL", partial(ours, 1)), Classifier(f"mixture of {N_COMPONENTS}", partial(ours, N_COMPONENTS)))
THEIRS = (
    Classifier("mean, logistic regression", partial(imputed, SimpleImputer)),
    Classifier("KNNImputer, logistic regression", partial(imputed, KNNImputer)),
    Classifier("IterativeImputer, logistic regression", partial(imputed, partial(IterativeImputer, max_iter=3))),
    Classifier("HistGradientBoosting", boosted),
)
UNITS = {"fit": "s", "prediction": "s", "error": "share", "memory": "MiB"}
_REPETITIONS = 3


def measure(name: str) -> dict[str, list[float]]:
    """Measure one way in this process: seconds to fit and to predict, share of errors, memory beyond the data."""
    (chosen,) = [one for one in (*OURS, *THEIRS) if one.name == name]
    # What is compiled or imported at first is neither time nor memory of the method.
    small = drawn(300, 20, 3)
    chosen.fit(small).predict_proba(small.gaps)
    data = drawn()
    before = memory()
    found: dict[str, list[float]] = {"fit": [], "prediction": []}
    for _ in range(_REPETITIONS):
        start = time.process_time()
        model = chosen.fit(data)
        fitted = time.process_time()
        probabilities = model.predict_proba(data.gaps)
        found["fit"].append(fitted - start)
        found["prediction"].append(time.process_time() - fitted)
        if "memory" not in found:  # later rounds would find memory that the first one left
            found["memory"] = [memory() - before]
    found["error"] = [float((probabilities.argmax(axis=1) != data.truth).mean())]
    return found


def memory() -> float:
    """Return the most memory that this process has had, in MiB. Unlike ru_maxrss it is not that of the parent."""
    (line,) = [line for line in MEMORY_STATUS.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def in_process(name: str) -> dict[str, list[float]]:
    command = [sys.executable, "-m", "scripts.bench.missing_values", name]
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found: dict[str, list[float]] = json.loads(ended.stdout)
    return found


def against_scikit_learn() -> Iterator[Row]:
    """Compare NaCL and a mixture with what fills gaps in, and with trees that take them."""
    found = {one.name: in_process(one.name) for one in (*OURS, *THEIRS)}
    note = version_of("sklearn") or ""
    for one in OURS:
        for other in THEIRS:
            for quantity, unit in UNITS.items():
                pairs = np.column_stack([found[one.name][quantity], found[other.name][quantity]])
                yield ratio_of(f"{one.name}, {MISSING:.0%} missing: {quantity}", other.name, pairs, unit, note)


COMPARISONS = (against_scikit_learn,)


def main() -> None:
    if len(sys.argv) > 1:
        with threadpool_limits(1):
            json.dump(measure(sys.argv[1]), sys.stdout)
        return
    for one in (*OURS, *THEIRS):
        found = in_process(one.name)
        texts = [f"{quantity} {np.median(values):.3g} {UNITS[quantity]}" for quantity, values in found.items()]
        print(f"{one.name:<40} {', '.join(texts)}", flush=True)


if __name__ == "__main__":
    main()
