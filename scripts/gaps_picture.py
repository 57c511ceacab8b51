"""Draw how a classifier fares with gaps: `docs/_static/gaps.svg`, which `scripts/docs` writes.

Gradient boosting of scikit-learn on breast cancer, as more and more of the values of test rows are hidden: as it takes
NaN by itself, after nearest-neighbour imputation, and in expectation. Means of five splits.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import KNNImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import trimbench as tb
from trimbench.estimators import UnseenGapsWarning

PICTURE = Path(__file__).parents[1] / "docs/_static/gaps.svg"
SHARES = np.array([0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9])
METHODS = ("its own way with NaN", "nearest-neighbour imputation", "tb.expect")


def curves(n_splits: int = 5) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log loss of each method, and stated and true stability, at each share: means of the splits."""
    losses, stability = np.zeros((len(SHARES), 3)), np.zeros((len(SHARES), 2))
    X, y = load_breast_cancer(return_X_y=True)
    for split in range(n_splits):
        train, test, labels, true = train_test_split(X, y, test_size=0.3, random_state=split, stratify=y)
        fitted = HistGradientBoostingClassifier(random_state=0).fit(train, labels)
        expected, imputer = tb.expect(fitted, train), KNNImputer().fit(train)
        for place, share in enumerate(SHARES):
            rng = np.random.default_rng(split)
            rows = np.where(rng.random(test.shape) < share, np.nan, test)
            answers = (
                fitted.predict_proba(rows),
                fitted.predict_proba(imputer.transform(rows)),
                expected.predict_proba(rows),
            )
            losses[place] += [log_loss(true, answer) / n_splits for answer in answers]
            stays = expected.decision_stability(rows)
            kept = (stays.decision == fitted.predict(test)).mean()
            stability[place] += np.array([stays.probability.mean(), kept]) / n_splits
    return losses, stability


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenGapsWarning)
        losses, stability = curves()
    mpl.rcParams.update({"svg.hashsalt": "gaps", "svg.fonttype": "none"})
    figure = Figure(figsize=(8, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for method, line in zip(METHODS, losses.T, strict=True):
        left.plot(SHARES, line, marker="o", label=method)
    left.set(xlabel="share of values that are hidden", ylabel="log loss", ylim=(0, None))
    left.legend(frameon=False)
    for what, line in zip(("stated", "true"), stability.T, strict=True):
        right.plot(SHARES, line, marker="o", label=what)
    right.set(xlabel="share of values that are hidden", ylabel="share of decisions that stay")
    right.legend(frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
