"""The error that usual estimates and the corrected model expect with selected features, against the actual error."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from trimbench.estimators.selection_corrected import SelectionCorrectedNB
from trimbench.papers.measures import prediction_quality
from trimbench.papers.methods.selected_features import (
    PENALTIES,
    THRESHOLDS,
    Fit,
    bias_corrected_error,
    chosen_by_folds,
    penalised_regression,
    shrunken_centroids,
)
from trimbench.papers.selection_bias.simulated_cases import check_ks, class_counts, correlation
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.job import POSITIVE, SHARE, job, seed_for, timed
from trimbench.selection_bias.features import Binariser
from trimbench.selection_bias.fit import Calibrate, fit_selection_corrected

Bits: TypeAlias = NDArray[np.uint8]
Integers: TypeAlias = NDArray[np.int64]
Correlation = Annotated[float, vocab.must("at least 0 and below 1", lambda rho: 0 <= rho < 1)]


@vocab.settings
class Noise:
    """Several estimates of the error with k selected features, on data with little signal or none.

    `real` are the names of the `real_sets` to run. Where a method chooses k, it does so among `ks`.
    """

    simulated: SimulatedSets
    real_sets: dict[str, RealSet]
    real: list[str]
    replicates: vocab.Count = 20
    k: int = 10
    ks: vocab.Axis[int]
    n_folds: Annotated[int, vocab.at_least(2)] = 10
    n_permutations: vocab.Count = 99
    seed: int = 0

    def __post_init__(self) -> None:
        check_ks([self.k, *self.ks], self.simulated.n_features)
        if unknown := [name for name in self.real if name not in self.real_sets]:
            raise ValueError(f"real must be names in real_sets, {list(self.real_sets)}, got {unknown[0]}")

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each kind of data and replicate."""
        kinds: dict[str, Drawn | Sampled] = {**self.simulated.kinds()}
        chosen = {name: self.real_sets[name] for name in self.real}
        kinds |= {name: Sampled(real, inputs.dataset(real.dataset)) for name, real in chosen.items()}
        return [
            vocab.Cell.of(
                {"data": name, "replicate": replicate},
                compare_estimates,
                self,
                data=data,
                seed=seed_for(purpose="noise", data=name, replicate=replicate, seed=self.seed),
            )
            for name, data in kinds.items()
            for replicate in range(self.replicates)
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return errors of each method, the correction against the others, the permutation test, and figures."""
        tried = {name: method.title for name, method in METHODS.items() if f"{name}_expected" in rows}
        methods = vocab.stacked(rows, "method", tried)
        if len(methods):
            methods["gap"] = methods["actual"] - methods["expected"]
            methods["distance"] = methods["gap"].abs()
        columns = _ERRORS | ({"log loss": ".3f"} if "loss" in methods else {})
        means = [labels | _errors(ours) for labels, ours in vocab.groups(methods, "data", "method")]
        errors = vocab.Table.of("Expected and actual errors", means, columns)
        lines = [line for data, ours in vocab.groups(methods, "data") for line in _against(data["data"], ours)]
        against = vocab.Table.of("The correction against each other method", lines, _AGAINST, name="against")
        permuted = [
            labels
            | {"data sets": len(ours), "share with p < 0.05": (ours["p_value"] < 0.05).mean()}
            | {"seconds": ours["permutation_seconds"].mean()}
            for labels, ours in vocab.groups(rows, "data")
        ]
        tables = (
            errors,
            against,
            vocab.Table.of("Permutation test", permuted, _PERMUTATION, name="permutation"),
        )
        # On how many kinds of data the correction is better than, equal to and worse than each other method.
        counts = [
            f"{other}: {', '.join(f'{one} on {(found == one).sum()}' for one in ('better', 'equal', 'worse'))}"
            for other, found in against.frame.groupby("against", sort=False)["the correction is"]
        ]
        note = f"The correction against {'; '.join(counts)} kinds of data."
        figures = [
            self._gaps(signal, methods, shown, name)
            for name, shown in _SHOWN.items()
            for signal in self.simulated.signals
        ]
        figures += [_errors_figure(errors.frame, shown, name) for name, shown in _SHOWN.items()]
        return vocab.Outcome(tables, [figure for figure in figures if len(figure.points)], (), [note])

    def _gaps(self, signal: str, methods: pd.DataFrame, shown: Shown, name: str) -> vocab.LineFigure:
        """Return how overconfident each method that is `shown` is, against the correlation of the features."""
        found = {tuple(group.values()): ours["gap"] for group, ours in vocab.groups(methods, "data", "method")}
        return vocab.LineFigure.of(
            f"Actual minus {shown.error}, {signal}",
            ("correlation of the features of a block (rho)", f"actual minus {shown.error}"),
            (
                (METHODS[method].title, rho, gap.mean(), gap.mean() - half, gap.mean() + half)
                for method in shown.methods
                for rho in self.simulated.correlations
                if (gap := found.get((_name(signal, rho), METHODS[method].title))) is not None
                for half in [2 * vocab.standard_error(gap)]
            ),
            name="_".join(filter(None, [name, "correlation", signal.replace(" ", "_")])),
            levels={"honest": 0.0},
            interval="2 standard errors to either side",
            methods=_COLOURS,
        )


@vocab.settings
class SimulatedSets:
    """Simulated data: alpha of each strength of signal (null: none), correlations, and sizes."""

    signals: Annotated[
        dict[str, vocab.Positive | None], vocab.must("keys and values, at least one", lambda signals: signals)
    ]
    correlations: vocab.Axis[Correlation]
    n_train: Annotated[int, vocab.at_least(10)] = 40
    n_test: vocab.Count = 1000
    n_features: vocab.Count = 2000
    block: vocab.Count = 20

    def kinds(self) -> dict[str, Drawn]:
        """Return the data of each signal and correlation by name."""
        sizes = (self.n_train, self.n_test, self.n_features, self.block)
        return {
            _name(signal, rho): Drawn(alpha, rho, *sizes)
            for signal, alpha in self.signals.items()
            for rho in self.correlations
        }


@vocab.settings
class RealSet:
    """A declared data set with two classes, sizes of its random splits, and what is done to it.

    `n_noise` features are added: copies of the features with their rows in random order. If the labels are `permuted`,
    they are put in random order too, so that nothing depends on them.
    """

    dataset: str
    positive: list[str]
    negative: list[str]
    n_train: vocab.Count = 40
    n_test: vocab.Count = 1000
    n_noise: vocab.Natural = 0
    permuted: bool = False


@dataclass(frozen=True)
class Sampled:
    """Cases of a real set, drawn from its `table`."""

    real: RealSet
    table: vocab.Input

    def split(self, rng: np.random.Generator) -> Split:
        """Draw rows; features are cut at the medians of the training rows."""
        real, loaded = self.real, vocab.dataset_of(self.table)
        target = loaded.target.astype(str).to_numpy()
        rows = rng.permutation(np.flatnonzero(np.isin(target, [*real.positive, *real.negative])))
        y = np.isin(target[rows], list(real.positive)).astype(np.int64)
        table = pd.get_dummies(loaded.features.iloc[rows]).to_numpy(dtype=float)
        if real.permuted:
            y = rng.permutation(y)
        noise = rng.permuted(table[:, rng.integers(table.shape[1], size=real.n_noise)], axis=0)
        table = np.hstack([table, noise])
        # Both parts have the classes in the shares of the data set.
        order = np.concatenate([np.flatnonzero(y == c) for c in (0, 1)])
        place = np.concatenate([(np.arange(n) + 0.5) / n for n in np.bincount(y, minlength=2)])
        order = order[np.argsort(place, kind="stable")]
        train, test = order[: real.n_train], order[real.n_train : real.n_train + real.n_test]
        cut = Binariser.fit(table[train])
        return Split(cut.transform(table[train]), y[train], cut.transform(table[test]), y[test])


@dataclass(frozen=True)
class Drawn:
    """Cases, half of each class, whose features come in blocks that are correlated within the classes.

    `alpha` is that of the naive Bayes model that gives P(x_j = 1 | y); None for features unrelated to the classes. The
    `correlation` is that of the normal variables behind the binary features of one block.
    """

    alpha: float | None
    correlation: float
    n_train: int
    n_test: int
    n_features: int
    block: int

    def split(self, rng: np.random.Generator) -> Split:
        """Draw training and test cases."""
        alpha, p = self.alpha, self.n_features
        theta = np.clip(rng.random(p), 1e-12, 1.0 - 1e-12)
        phi = np.stack([theta, theta]) if alpha is None else rng.beta(alpha * theta, alpha * (1.0 - theta), (2, p))
        y, y_test = np.arange(self.n_train) % 2, np.arange(self.n_test) % 2
        both = np.concatenate([y, y_test])
        common = rng.standard_normal((len(both), -(-p // self.block)), dtype=np.float32)
        own = rng.standard_normal((len(both), p), dtype=np.float32)
        shared = np.sqrt(self.correlation) * common.repeat(self.block, axis=1)[:, :p]
        X = (shared + np.sqrt(1.0 - self.correlation) * own < ndtri(phi)[both]).astype(np.uint8)
        return Split(X[: self.n_train], y, X[self.n_train :], y_test)


class Split(NamedTuple):
    """Training and test cases with binary features."""

    X: Bits
    y: Integers
    X_test: Bits
    y_test: Integers


@job({"*_expected": SHARE, "*_actual": SHARE, "*_loss": POSITIVE, "*_seconds": POSITIVE, "p_value": SHARE})
def compare_estimates(
    data: Drawn | Sampled, k: int, ks: list[int], n_folds: int, n_permutations: int, seed: int
) -> dict[str, vocab.Json]:
    """Return expected and actual error and log loss of each method, its seconds, and the p of a permutation test."""
    rng = np.random.default_rng(seed)
    split = data.split(rng)
    task = Task(split, k, ks, n_folds, folds_of(split.y, n_folds, rng), rng, np.random.default_rng([seed, 1]))
    found: dict[str, vocab.Json] = {}
    for name, method in METHODS.items():
        estimate, seconds = timed(functools.partial(method.run, task), time.process_time)
        found |= {f"{name}_{key}": value for key, value in estimate._asdict().items()} | {f"{name}_seconds": seconds}
    p_value, seconds = timed(lambda: _permutation_test(task, n_permutations), time.process_time)
    return {**found, "p_value": p_value, "permutation_seconds": seconds}


class Estimate(NamedTuple):
    """The error that a method expects of its classifier, and error and log loss of that on the test cases."""

    expected: float
    actual: float
    loss: float


@dataclass(frozen=True)
class Task:
    """What methods are given to estimate the error of a classifier with k selected features, learned from a split.

    `rng` draws for the methods that the published results have had from the start, `bootstrap` for later ones.
    """

    split: Split
    k: int
    ks: Sequence[int]
    n_folds: int
    folds: Integers
    rng: np.random.Generator
    bootstrap: np.random.Generator

    def naive_bayes(self, expected: float, k: int) -> Estimate:
        """Return the estimate of the error of naive Bayes with the k strongest features."""
        (log_odds,) = log_odds_by_k(*self.split[:3], [k]).T
        quality = prediction_quality(self.split.y_test, np.stack([expit(-log_odds), expit(log_odds)], axis=1))
        return Estimate(expected, quality.actual_error, quality.minus_log_probability)

    def stated(self, probabilities: NDArray[np.float64]) -> Estimate:
        """Return the estimate that probabilities of the test cases state."""
        quality = prediction_quality(self.split.y_test, probabilities)
        return Estimate(quality.expected_error, quality.actual_error, quality.minus_log_probability)


def _outside(task: Task) -> Estimate:
    X, y, *_ = task.split
    chosen = _strongest(X, y)[: task.k]
    return task.naive_bayes(float(cross_validated(X[:, chosen], y, [task.k], task.folds)[0]), task.k)


def _inside(task: Task) -> Estimate:
    X, y, *_ = task.split
    return task.naive_bayes(float(cross_validated(X, y, [task.k], task.folds)[0]), task.k)


def _best(task: Task) -> Estimate:
    X, y, *_ = task.split
    errors = cross_validated(X, y, task.ks, task.folds)
    return task.naive_bayes(float(errors.min()), task.ks[int(np.argmin(errors))])


def _nested(task: Task) -> Estimate:
    """Cross-validate a classifier that chooses k by cross-validation of its own."""
    X, y, *_ = task.split
    wrong = 0
    for fold in range(task.n_folds):
        out = task.folds == fold
        inner = cross_validated(X[~out], y[~out], task.ks, folds_of(y[~out], task.n_folds, task.rng))
        wrong += int(wrong_by_k(X[~out], y[~out], X[out], y[out], [task.ks[int(np.argmin(inner))]])[0])
    return _best(task)._replace(expected=wrong / len(y))


def _bias_corrected(task: Task) -> Estimate:
    """Choose k on bootstrap samples of held-out predictions, and take the error on the cases outside each sample."""
    X, y, *_ = task.split
    wrong = np.empty((len(y), len(task.ks)), dtype=bool)
    for fold in range(task.n_folds):
        out = task.folds == fold
        wrong[out] = (log_odds_by_k(X[~out], y[~out], X[out], task.ks) >= 0) != y[out, None]
    return _best(task)._replace(expected=bias_corrected_error(wrong, task.bootstrap))


def _model(task: Task, *, correct: bool, calibrate: Calibrate = False) -> Estimate:
    X, y, X_test, _ = task.split
    return task.stated(
        fit_selection_corrected(X, y, task.k, correct=correct, calibrate=calibrate).predict_proba(X_test)
    )


def _calibrated_by_platt(task: Task) -> Estimate:
    from sklearn.calibration import CalibratedClassifierCV

    X, y, X_test, _ = task.split
    model = SelectionCorrectedNB(k=task.k, correct=False, calibrate=False)
    folds = [(np.flatnonzero(task.folds != fold), np.flatnonzero(task.folds == fold)) for fold in range(task.n_folds)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fewer features are selected where the others say nothing
        return task.stated(CalibratedClassifierCV(model, cv=folds).fit(X, y).predict_proba(X_test))


def _shrinking(task: Task, fit: Fit, settings: Sequence[float]) -> Estimate:
    """Choose a setting by the cross-validated error; the error expected is what its classifier states."""
    X, y, X_test, _ = task.split
    _, model = chosen_by_folds(fit, X.astype(float), y, settings, task.folds)
    return task.stated(model.predict_proba(X_test.astype(float)))


# Each returns an `Estimate`.
METHODS = {
    "outside": vocab.Method("selection outside cross-validation", _outside),
    "inside": vocab.Method("selection inside cross-validation", _inside),
    "best": vocab.Method("lowest cross-validated error of all k", _best),
    "nested": vocab.Method("nested cross-validation", _nested),
    "uncorrected": vocab.Method("uncorrected model", functools.partial(_model, correct=False)),
    "corrected": vocab.Method("corrected model", functools.partial(_model, correct=True)),
    "calibrated": vocab.Method(
        "corrected model, calibrated", functools.partial(_model, correct=True, calibrate="auto")
    ),
    "bias_corrected": vocab.Method("bias-corrected cross-validation (BBC-CV)", _bias_corrected),
    "platt": vocab.Method("CalibratedClassifierCV", _calibrated_by_platt),
    "shrunken": vocab.Method(
        "nearest shrunken centroids", functools.partial(_shrinking, fit=shrunken_centroids, settings=THRESHOLDS)
    ),
    "penalised": vocab.Method(
        "penalised logistic regression", functools.partial(_shrinking, fit=penalised_regression, settings=PENALTIES)
    ),
}


def wrong_by_k(X: Bits, y: Integers, X_test: Bits, y_test: Integers, ks: Sequence[int]) -> Integers:
    """Return, for each k, the test errors of naive Bayes with the k strongest features and a pseudo-count of 1."""
    return np.asarray(((log_odds_by_k(X, y, X_test, ks) >= 0) != y_test[:, None]).sum(axis=0))


def log_odds_by_k(X: Bits, y: Integers, X_test: Bits, ks: Sequence[int]) -> NDArray[np.float64]:
    """Return the log odds of the test cases, shape (n_test, n_ks), see `wrong_by_k`."""
    n1 = int(y.sum())
    n0, order = len(y) - n1, _strongest(X, y)[: max(ks)]
    ones0, ones1 = (ones[order] for ones in class_counts(X, y))
    one = np.log((ones1 + 1) / (n1 + 2)) - np.log((ones0 + 1) / (n0 + 2))
    zero = np.log((n1 - ones1 + 1) / (n1 + 2)) - np.log((n0 - ones0 + 1) / (n0 + 2))
    log_odds = np.log((n1 + 1) / (n0 + 1)) + np.cumsum(np.where(X_test[:, order] == 1, one, zero), axis=1)
    return np.asarray(log_odds[:, np.array(ks) - 1])


def _strongest(X: Bits, y: Integers) -> Integers:
    strength = np.abs(correlation(*class_counts(X, y), int((y == 0).sum()), int(y.sum())))
    return np.argsort(-strength, kind="stable")


def folds_of(y: Integers, n_folds: int, rng: np.random.Generator) -> Integers:
    """Return the fold of each case, each class dealt out evenly in random order."""
    order = rng.permutation(len(y))
    return np.argsort(order[np.argsort(y[order], kind="stable")]) % n_folds


def cross_validated(X: Bits, y: Integers, ks: Sequence[int], folds: Integers) -> NDArray[np.float64]:
    """Return the cross-validated error rate for each k, with selection inside each fold."""
    outs = [folds == fold for fold in range(folds.max() + 1)]
    return np.asarray(sum(wrong_by_k(X[~out], y[~out], X[out], y[out], ks) for out in outs) / len(y))


def _permutation_test(task: Task, n_permutations: int) -> float:
    """Return the p-value of the cross-validated error: how often it is as low with shuffled labels."""
    X, labels, *_ = task.split

    def error(y: Integers) -> float:
        return float(cross_validated(X, y, [task.k], folds_of(y, task.n_folds, task.rng))[0])

    observed = error(labels)
    as_low = sum(error(task.rng.permutation(labels)) <= observed for _ in range(n_permutations))
    return (1 + as_low) / (1 + n_permutations)


def _errors(ours: pd.DataFrame) -> dict[str, object]:
    """Return the means of a method over the data sets of a kind."""
    return {
        "data sets": len(ours),
        "expected error": ours["expected"].mean(),
        "actual error": ours["actual"].mean(),
        "actual - expected": ours["gap"].mean(),
        "standard error": vocab.standard_error(ours["gap"]),
        "mean distance": ours["distance"].mean(),
        "seconds": ours["seconds"].mean(),
        **({"log loss": ours["loss"].mean()} if "loss" in ours else {}),
    }


_ERRORS = {
    **dict.fromkeys(("data", "method", "data sets"), ""),
    **dict.fromkeys(("expected error", "actual error", "actual - expected", "standard error", "mean distance"), ".3f"),
    "seconds": ".4f",
}
_PERMUTATION = {"data": "", "data sets": "", "share with p < 0.05": ".2f", "seconds": ".3f"}
_AGAINST = {
    **dict.fromkeys(("data", "against"), ""),
    **dict.fromkeys(("distance of the correction", "distance of the other", "difference", "standard error"), ".3f"),
    "the correction is": "",
}
# In other figures corrected and uncorrected predictions have these names, and so their colours here.
_COLOURS = {METHODS[name].title: name for name in ("corrected", "uncorrected")}


def _name(signal: str, rho: float) -> str:
    return f"{signal}, rho = {rho:g}"


def _against(data: str, ours: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    """Yield whether the correction's expected error is closer to its actual one than another method's, in pairs."""
    distances = {labels["method"]: own["distance"].to_numpy() for labels, own in vocab.groups(ours, "method")}
    correction = distances.pop(METHODS["corrected"].title)
    for other, distance in distances.items():
        mean, spread = float((correction - distance).mean()), vocab.standard_error(correction - distance)
        verdict = "worse" if mean > 2 * spread else "better" if mean < -2 * spread else "equal"
        yield data, other, correction.mean(), distance.mean(), mean, spread, verdict


class Shown(NamedTuple):
    """Methods that share a figure, and what the error that they expect is called there."""

    error: str
    methods: tuple[str, ...]


# Figures of errors come twice, since eleven methods cannot be told apart in one. Of each, the end of the file's name.
_SHOWN = {
    "": Shown("cross-validated error", ("outside", "inside", "best", "nested", "bias_corrected")),
    "stated": Shown("stated error", ("uncorrected", "corrected", "calibrated", "platt", "shrunken", "penalised")),
}


def _errors_figure(errors: pd.DataFrame, shown: Shown, name: str) -> vocab.LineFigure:
    titles = [METHODS[method].title for method in shown.methods]
    columns = errors.reindex(columns=["method", "expected error", "actual error", "standard error"])
    lines = columns[columns["method"].isin(titles)]
    points = [(method, x, y, y - 2 * error, y + 2 * error) for method, x, y, error in lines.to_numpy()]
    return vocab.LineFigure.against_diagonal(
        f"{shown.error.capitalize()} and actual error, mean on each kind of data",
        (shown.error, "actual error"),
        points,
        (0.0, max((0.5, *(max(x, high) for _, x, _, _, high in points)))),
        name=name,
        interval="2 standard errors of the difference to either side",
        methods=_COLOURS,
    )
