"""Any classifier with gaps: how good the expectations are, whether the stability is calibrated, and what they cost.

    scripts/bench/run expected               # three data sets of scikit-learn, five splits; half an hour
    scripts/bench/run expected wine 2        # one of them, two splits

The table has the log loss beside that of the classifier's own way with NaN and of nearest-neighbour imputation, and the
stated stability beside how often decisions stayed.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import trimbench as tb
from trimbench.estimators import UnseenGapsWarning

from .measure import Row, growth, version_of, versus

SETS = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}
SHARES = (0.1, 0.3, 0.5, 0.8)
# Probabilities below this count as this in the log loss.
LEAST = 1e-6


def classifiers() -> dict[str, Any]:
    return {
        "gradient boosting": HistGradientBoostingClassifier(random_state=0),
        "random forest": RandomForestClassifier(random_state=0),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    }


def log_losses(probabilities: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    losses: NDArray[np.float64] = -np.log(np.clip(probabilities[np.arange(len(labels)), labels], LEAST, 1.0))
    return losses


def split_results(name: str, split: int) -> Iterator[dict[str, Any]]:
    """Yield the results of each classifier and share of hidden values in one split."""
    X, y = SETS[name](return_X_y=True)
    X, tested, y, labels = train_test_split(X, y, test_size=0.3, random_state=split, stratify=y)
    imputer = KNNImputer().fit(X)
    for kind, classifier in classifiers().items():
        classifier.fit(X, y)
        expected = tb.expect(classifier, X, random_state=split)
        whole = classifier.predict(tested)
        for share in SHARES:
            rng = np.random.default_rng([split, round(100 * share)])
            hidden = np.where(rng.random(tested.shape) < share, np.nan, tested)
            result = {"set": name, "classifier": kind, "share": share, "density": expected.density_scores_[0].name}
            result["expected"] = log_losses(expected.predict_proba(hidden), labels).mean()
            result["neighbours imputed"] = log_losses(
                classifier.predict_proba(imputer.transform(hidden)), labels
            ).mean()
            if kind != "logistic regression":
                result["own NaN"] = log_losses(classifier.predict_proba(hidden), labels).mean()
            stability = expected.decision_stability(hidden)
            kept = stability.decision == whole
            sure = stability.probability >= 0.99
            result |= {"stated": stability.probability.mean(), "true": kept.mean()}
            result |= {"sure": sure.sum(), "sure and kept": (kept & sure).sum()}
            yield result


def main() -> None:
    names = [sys.argv[1]] if len(sys.argv) > 1 else list(SETS)
    n_splits = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    results = pd.DataFrame(
        [result for name in names for split in range(n_splits) for result in split_results(name, split)]
    )
    print(comparison(results).to_string(float_format=lambda value: f"{value:.3f}"))
    sure, kept = results[["sure", "sure and kept"]].sum()
    print(f"rows stated at 0.99 or more: {sure:.0f}, of which kept their decision: {kept / sure:.4f}")


def comparison(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each data set, classifier and share: means, paired standard errors and verdicts."""
    rows = []
    for key, part in results.groupby(["set", "classifier", "share"], sort=False):
        row: dict[str, Any] = dict(zip(("set", "classifier", "share"), key, strict=True))
        row |= {method: part[method].mean() for method in ("expected", "neighbours imputed", "own NaN")}
        for other in ("neighbours imputed", "own NaN"):
            difference = part["expected"] - part[other]
            error = difference.std(ddof=1) / np.sqrt(len(part))
            row[f"no worse than {other}"] = None if difference.isna().all() else bool(difference.mean() <= error)
        row |= {"stated": part["stated"].mean(), "true": part["true"].mean()}
        row["stated - true"] = row["stated"] - row["true"]
        row["sure kept"] = part["sure and kept"].sum() / max(part["sure"].sum(), 1)
        row["densities"] = ", ".join(sorted({name.split(",")[0] for name in part["density"]}))
        rows.append(row)
    return pd.DataFrame(rows)


def hidden(X: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    return np.where(np.random.default_rng(0).random(X.shape) < share, np.nan, X)


def many_rows() -> Iterator[Row]:
    """Compare exact expectations of 10,000 rows with the forest's own answers on whole ones."""
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(random_state=0).fit(X, y)
    expected = tb.expect(forest, X, density="products")
    rows = X[np.random.default_rng(0).integers(0, len(X), 10_000)]
    for share in SHARES:
        with_gaps = hidden(rows, share)
        quantity = f"expectation of 100 trees, breast cancer, {share:.0%} hidden: 10,000 rows"
        ours = functools.partial(expected.predict_proba, with_gaps)
        theirs = functools.partial(forest.predict_proba, rows)
        yield versus(quantity, "the forest on whole rows", ours, theirs, 3, note=str(version_of("sklearn")))


def single_rows() -> Iterator[Row]:
    """Compare one row with gaps with the classifier's own answer on a whole row."""
    for name in ("breast cancer", "digits"):
        X, y = SETS[name](return_X_y=True)
        for kind, classifier in classifiers().items():
            expected = tb.expect(classifier.fit(X, y), X)
            ours = functools.partial(expected.predict_proba, hidden(X[:1], 0.5))
            theirs = functools.partial(classifier.predict_proba, X[:1])
            quantity = f"expectation of {kind}, {name}, half hidden: one row"
            yield versus(quantity, "its own answer on a whole row", ours, theirs, 9, note=str(version_of("sklearn")))


def fits() -> Iterator[Row]:
    """Compare the choice and fit of a density with a fit of gradient boosting with default settings."""
    for name in ("breast cancer", "wine"):
        X, y = SETS[name](return_X_y=True)
        for kind, classifier in classifiers().items():
            ours = functools.partial(tb.expect, classifier.fit(X, y), X)
            theirs = functools.partial(HistGradientBoostingClassifier().fit, X, y)
            quantity = f"density chosen for {kind}, {name}"
            note = str(version_of("sklearn"))
            yield versus(quantity, "a default fit of gradient boosting", ours, theirs, 3, note=note)


def growth_of_fits() -> Iterator[Row]:
    """Fit how long the choice and fit of a density take by the number of rows."""

    def fit(n_rows: int) -> Callable[[], object]:
        X, y = make_classification(n_rows, 50, n_informative=20, random_state=0)
        return functools.partial(tb.expect, LogisticRegression().fit(X, y), X)

    yield growth("density of 50 features: growth of a fit in rows", (12_500, 25_000, 50_000, 100_000), fit, 1)


COMPARISONS = (many_rows, single_rows, fits, growth_of_fits)


if __name__ == "__main__":
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", UnseenGapsWarning)
        main()
