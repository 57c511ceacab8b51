"""Fitted classifiers whose features are missing: in expectation, and by what libraries do with gaps themselves."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from trimbench._typing import Matrix
from trimbench.estimators.expect import expect
from trimbench.estimators.expected import ExpectedClassifier, UnseenGapsWarning
from trimbench.papers.conformant.imputers import Imputer, ImputerName, fit_imputer
from trimbench.papers.measures import accuracy, calibration_error, log_loss
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.masks import Mechanism, Missingness, split_rows
from trimbench.reproduction.execution.job import COUNT, POSITIVE, SHARE, TEXT, fields, job, list_of, timed

_PLACE = {"mechanism": TEXT, "missing": SHARE, "method": TEXT}
_MEASURED = {"log_loss": POSITIVE, "accuracy": SHARE, "calibration": SHARE, "seconds": POSITIVE}
_STABLE = {"stated": SHARE, "kept": SHARE, "sure": COUNT, "sure_kept": COUNT}
# Probabilities below this count as this in the log loss: those of a forest may be 0.
_LEAST = 1e-6
# Decisions that are said to stay with at least this probability are sure.
_SURE = 0.99


@job(
    n_train=COUNT,
    n_test=COUNT,
    n_features=COUNT,
    density=TEXT,
    fit_seconds=POSITIVE,
    results=list_of(fields(**_PLACE, **_MEASURED) | fields(**_PLACE, **_MEASURED, **_STABLE)),
)
def compare_expectations(
    data: vocab.Input,
    classifier: str,
    mechanism: Sequence[Mechanism],
    missing: Sequence[float],
    methods: Sequence[str],
    train_rows: int,
    test_rows: int,
    copies: int,
    seed: int,
) -> dict[str, vocab.Json]:
    """Fit a classifier to whole rows of a split, hide features of the others, and measure what each method predicts."""
    split = Split.of(data, train_rows, test_rows, seed)
    kind = CLASSIFIERS[classifier]
    encoder = Encoder.of(split.train)
    fitted = Fitted(kind.make(), encoder, split.train, split.train_labels, seed)
    fitted.classifier.fit(fitted.encoded, split.train_labels)
    whole = fitted.classifier.predict(encoder(split.test))
    expectation, seconds = timed(lambda: fitted.expectation)
    results: list[vocab.Json] = []
    for how in mechanism:
        for share in missing:
            gaps = split.gaps(encoder, how, share, copies, np.random.default_rng([seed, round(1000 * share)]))
            for name in methods:
                if name in _NEED_NAN and not kind.takes_gaps:
                    continue
                probabilities, spent = timed(functools.partial(METHODS[name].run, fitted, gaps))
                found: dict[str, vocab.Json] = {"mechanism": how, "missing": share, "method": name, "seconds": spent}
                found |= _measured(split.test_labels, probabilities)
                results.append(found | (_stability(expectation, gaps.table, whole) if name == "expected" else {}))
    scores = expectation.density_scores_
    return {
        "n_train": len(split.train),
        "n_test": len(split.test),
        "n_features": split.train.shape[1],
        "density": scores[0].name if scores else type(expectation.density_).__name__,
        "fit_seconds": seconds,
        "results": results,
    }


def _measured(truth: NDArray[np.int64], probabilities: Matrix) -> dict[str, vocab.Json]:
    return {
        "log_loss": log_loss(truth, np.maximum(probabilities, _LEAST)),
        "accuracy": accuracy(truth, probabilities.argmax(axis=1)),
        "calibration": calibration_error(truth, probabilities),
    }


def _stability(expectation: ExpectedClassifier, table: pd.DataFrame, whole: NDArray[Any]) -> dict[str, vocab.Json]:
    """Return the mean stated stability, the share of decisions that are those on whole rows, and how many are sure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenGapsWarning)  # rows are whole in training, by design
        stated = expectation.decision_stability(table)
    kept, sure = stated.decision == whole, stated.probability >= _SURE
    counts = {"sure": int(sure.sum()), "sure_kept": int((sure & kept).sum())}
    return {"stated": float(stated.probability.mean()), "kept": float(kept.mean()), **counts}


# A split of a data set, and rows of it with gaps.


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows, raw and without gaps, and the places of their classes."""

    train: pd.DataFrame
    test: pd.DataFrame
    train_labels: NDArray[np.int64]
    test_labels: NDArray[np.int64]

    @classmethod
    def of(cls, data: vocab.Input, train_rows: int, test_rows: int, seed: int) -> Split:
        """Split a data set 70 to 30 by class, and leave rows beyond the limits out at random."""
        loaded = vocab.dataset_of(data)
        if loaded.features.isna().any(axis=None):
            raise ValueError(f"datasets must be without missing values, got {data.name!r}: the truth is not known")
        labels: NDArray[np.int64] = np.asarray(loaded.target.cat.codes, dtype=np.int64)
        rng = np.random.default_rng(seed)
        train, test = split_rows(len(labels), 0.3, seed, stratify=labels)
        train, test = np.sort(rng.permutation(train)[:train_rows]), np.sort(rng.permutation(test)[:test_rows])
        return cls(loaded.features.iloc[train], loaded.features.iloc[test], labels[train], labels[test])

    def gaps(self, encoder: Encoder, how: Mechanism, share: float, copies: int, rng: np.random.Generator) -> Gaps:
        """Hide a share of the features of the test rows, and of copies of the training rows."""
        table = pd.concat([*[self.train] * copies, self.test], ignore_index=True)
        values = np.column_stack(
            [column.cat.codes if name in encoder.categories else column for name, column in table.items()]
        )
        hidden = Missingness(how).draw(len(table), list(map(str, table)), share, rng, values)
        table = table.mask(hidden)
        n_copies = copies * len(self.train)
        encoded = encoder(table)
        return Gaps(table.iloc[n_copies:], encoded[n_copies:], encoded[:n_copies])


@dataclass(frozen=True, eq=False)
class Encoder:
    """Numbers standardised by the training rows, and an indicator for each category; NaN where a value is missing."""

    means: Mapping[str, float]
    deviations: Mapping[str, float]
    categories: Mapping[str, pd.Index]

    @classmethod
    def of(cls, table: pd.DataFrame) -> Encoder:
        """Learn means and deviations of numbers, and the categories that are declared."""
        numbers = table.select_dtypes("number")
        others = {str(name): table[name].cat.categories for name in table if name not in numbers}
        deviations = numbers.std(ddof=0)
        means, scales = (
            {str(name): float(value) for name, value in one.items()}
            for one in (numbers.mean(), deviations.where(deviations > 0, 1.0))
        )
        return cls(means, scales, others)

    def __call__(self, table: pd.DataFrame) -> Matrix:
        """Return the columns of all features beside each other, shape (n_rows, n_columns)."""
        return np.hstack([self._columns(str(name), column) for name, column in table.items()])

    def _columns(self, name: str, column: pd.Series[Any]) -> Matrix:
        if name not in self.categories:
            return ((column.to_numpy(dtype=np.float64) - self.means[name]) / self.deviations[name])[:, None]
        codes = pd.Categorical(column, self.categories[name]).codes
        return np.where(codes[:, None] < 0, np.nan, np.eye(len(self.categories[name]))[codes])


class Gaps(NamedTuple):
    """Test rows with gaps, raw and encoded, and encoded copies of the training rows, one after the other, with gaps."""

    table: pd.DataFrame
    encoded: Matrix
    copies: Matrix


# The classifiers, and the methods by which they predict for rows with gaps.


class Classifier(NamedTuple):
    """A classifier of encoded rows: its title, how it is made, and whether it takes NaN by itself."""

    title: str
    make: Callable[[], Any]
    takes_gaps: bool


CLASSIFIERS = {
    "forest": Classifier("random forest", lambda: RandomForestClassifier(random_state=0), True),
    "boosting": Classifier("gradient boosting", lambda: HistGradientBoostingClassifier(random_state=0), True),
    "svm": Classifier("SVM", lambda: CalibratedClassifierCV(SVC(random_state=0), ensemble=False), False),
    "regression": Classifier("logistic regression", lambda: LogisticRegression(max_iter=2000), False),
}


@dataclass(frozen=True, eq=False)
class Fitted:
    """A classifier of the whole training rows, and what methods learn from these once."""

    classifier: Any
    encoder: Encoder
    train: pd.DataFrame
    labels: NDArray[np.int64]
    seed: int

    @functools.cached_property
    def encoded(self) -> Matrix:
        """The training rows as the classifier sees them."""
        return self.encoder(self.train)

    @functools.cached_property
    def expectation(self) -> ExpectedClassifier:
        """What to expect of the pipeline from raw rows to probabilities."""
        pipeline = make_pipeline(FunctionTransformer(self.encoder), self.classifier)
        return expect(pipeline, self.train, random_state=self.seed % 2**31)

    @functools.cached_property
    def imputers(self) -> dict[ImputerName, Imputer]:
        """Imputers that are fitted to the training rows, filled when asked for."""
        return {}

    def filled(self, name: ImputerName, gaps: Matrix) -> Matrix:
        """Return rows whose gaps an imputer has filled."""
        if name not in self.imputers:
            nearest = min(_NEAREST_FEATURES, self.encoded.shape[1] - 1)
            options: dict[str, Any] = {"n_neighbours": 5, "n_nearest_features": nearest, "max_iterations": 5}
            self.imputers[name] = fit_imputer(name, self.encoded, seed=self.seed % 2**31, **options)
        return self.imputers[name](gaps)


_NEAREST_FEATURES = 20


def _by_expectation(fitted: Fitted, gaps: Gaps) -> Matrix:
    return np.asarray(fitted.expectation.predict_proba(gaps.table))


def _natively(fitted: Fitted, gaps: Gaps) -> Matrix:
    return np.asarray(fitted.classifier.predict_proba(gaps.encoded))


def _by_imputing(fitted: Fitted, gaps: Gaps, name: ImputerName) -> Matrix:
    return np.asarray(fitted.classifier.predict_proba(fitted.filled(name, gaps.encoded)))


def _retrained(fitted: Fitted, gaps: Gaps, *, indicators: bool) -> Matrix:
    """Train the classifier anew on rows with gaps: as NaN, or as means beside indicators of what is missing."""
    tables = [gaps.copies, gaps.encoded]
    if indicators:
        tables = [np.hstack([fitted.filled("mean", table), np.isnan(table)]) for table in tables]
    # Of a column without a value there is nothing to learn, and boosted trees refuse it.
    learned = ~np.isnan(tables[0]).all(axis=0)
    tables = [table[:, learned] for table in tables]
    labels = np.tile(fitted.labels, len(gaps.copies) // len(fitted.labels))
    return np.asarray(clone(fitted.classifier).fit(tables[0], labels).predict_proba(tables[1]))


METHODS = {
    "expected": vocab.Method("expectation", _by_expectation),
    "native": vocab.Method("its own way with NaN", _natively),
    "mean": vocab.Method("mean imputation", functools.partial(_by_imputing, name="mean")),
    "knn": vocab.Method("nearest-neighbour imputation", functools.partial(_by_imputing, name="knn")),
    "iterative": vocab.Method("iterative imputation", functools.partial(_by_imputing, name="mice")),
    "masks": vocab.Method("trained with gaps as NaN", functools.partial(_retrained, indicators=False)),
    "indicators": vocab.Method("trained with gaps and indicators", functools.partial(_retrained, indicators=True)),
}
_NEED_NAN = ("native", "masks")
