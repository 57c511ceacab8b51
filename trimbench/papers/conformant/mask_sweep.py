"""Predictions against the share of missing features, on any data set."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.conform import conform, conform_to_statistics
from trimbench.conformant.layout import CHUNK_ROWS, FeatureLayout
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.problem import Solution
from trimbench.conformant.rows import FeatureStatistics
from trimbench.papers.conformant.protocols import (
    EncodedRows,
    Encoding,
    Task,
    encoded_rows,
    feature_codes,
    fitted,
    make_task,
    rows_at_hand,
)
from trimbench.papers.measures import accuracy, cross_entropy, weighted_f1
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.masks import DEPENDENT, Mechanism, Missingness, Rounding
from trimbench.reproduction.execution.code_hash import code_version
from trimbench.reproduction.execution.job import COUNT, PERCENT, POSITIVE, SHARE, generator_for, job, seed_for, timed
from trimbench.reproduction.execution.store import Arrays, remember


@vocab.settings
class Sweep:
    """Settings of all experiments that hide features: the shares `missing`, each for `repetitions` random masks."""

    datasets: vocab.Axis[str]
    missing: vocab.Axis[float]
    repetitions: vocab.Count = 3
    seed: int = 0

    def __post_init__(self) -> None:
        check_missing(self.missing, Missingness())


@vocab.settings
class MissingFeatures(Sweep):
    """Every method against the share of missing features, on data sets of the user's choice.

    Data sets need no protocol. `mechanism`, `rounding` and `rates` are those of a
    `trimbench.reproduction.data.masks.Missingness`; `repetitions` counts the random masks for each fraction.
    """

    encoding: Encoding = "paper"
    mechanism: Mechanism = "mcar"
    rounding: Rounding = "down"
    rates: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_missing(self.missing, Missingness(self.mechanism, self.rounding, self.rates))

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set, fraction and repetition."""
        cells = []
        for name in self.datasets:
            task = make_task(inputs, name, self.encoding, self.seed)
            cells += evaluation_cells(task, self.missing, self.repetitions, self._missingness(task), self.seed)
        return cells

    def _missingness(self, task: Task) -> Missingness:
        """Return how features of a data set go missing, without the settings that the mechanism ignores."""
        rates = self.rates if self.mechanism == "rates" else {}
        if rates and (rows := rows_at_hand(task)):
            for feature in rates:
                if feature not in rows.features:
                    raise vocab.unknown(f"rates: a feature of {task.name}", rows.features, feature)
        image = task.protocol.image if self.mechanism == "block" and task.protocol.image else None
        return Missingness(self.mechanism, self.rounding, rates, image)

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the means over the repetitions, and their curves."""
        tables, figures = [], []
        for name in self.datasets:
            done, shown = vocab.successes(rows, dataset=name), title_of(rows, name)
            for measure, title in MEASURES.items():
                stem = f"{name}_{measure}" if len(self.datasets) > 1 else measure
                main = "" if (name, measure) == (self.datasets[0], "accuracy") else stem
                summary = summarise(done, measure)
                tables.append(means_table(f"{shown}: {title}", summary, main))
                if len(summary) and measure != "f1_weighted":
                    figures.append(curves(main, f"{shown}: {title.split(' to ')[0]}", measure, title, summary))
        tables.sort(key=lambda table: table.name != "")
        return vocab.Outcome(tables, sorted(figures, key=lambda figure: figure.name != ""))


# Jobs that hide features of the test rows and measure the predictions of every method.

MIXTURE = "nacl_mixture"
METHODS = {
    "nacl": "NaCL",
    "nacl_groups": "NaCL, categorical",
    MIXTURE: "NaCL, mixture (beyond the paper)",
    "mean": "mean",
    "median": "median",
    "min": "min",
    "max": "max",
    "naive_bayes": "naive Bayes",
}
MEASURES = {
    "cross_entropy": "cross entropy to the complete prediction (nats)",
    "accuracy": "accuracy",
    "f1_weighted": "weighted F1",
}


def check_missing(missing: Sequence[float], missingness: Missingness) -> None:
    """Raise an error unless all of these are fractions of missing features that the rounding allows."""
    for fraction in missing:
        missingness.check_fraction(fraction)


def evaluation_cells(
    task: Task,
    missing: Iterable[float],
    repetitions: int,
    missingness: Missingness,
    seed: int,
    labels: Mapping[str, vocab.Label] | None = None,
    mixture: MixtureSettings | None = None,
) -> list[vocab.Cell]:
    """Return one job for each share of missing features and repetition; a mixture is one more method in each."""
    own: dict[str, vocab.Label] = {"dataset": task.name, "title": task.title}
    return [
        vocab.Cell.of(
            {**own, "missing": float(fraction), "repetition": repetition, **(labels or {})},
            evaluate,
            task=task,
            missing=float(fraction),
            missingness=missingness,
            mask_seed=mask_seed(task, fraction, repetition, seed),
            **({"mixture": mixture} if mixture else {}),
        )
        for fraction in missing
        for repetition in range(repetitions)
    ]


def mask_seed(task: Task, fraction: float, repetition: int, seed: int) -> int:
    """Return the seed of a random mask, which all methods and experiments share."""
    return seed_for(purpose="mask", dataset=task.name, missing=float(fraction), repetition=repetition, seed=seed)


QUALITY = {"cross_entropy": POSITIVE, "accuracy": SHARE, "f1_weighted": SHARE}


@job({"missing_percent": PERCENT, **{f"*/{name}": kind for name, kind in QUALITY.items()}})
def evaluate(
    task: Task, missing: float, missingness: Missingness, mask_seed: int, mixture: MixtureSettings | None = None
) -> dict[str, vocab.Json]:
    """Hide a fraction of the features of the test rows and measure the predictions of each method."""
    rows, predictors, reference = _ready(task, missingness.by_column)
    n_rows, rng = len(rows.test), np.random.default_rng(mask_seed)
    if missingness.by_column:
        whole = encoded_rows(task)
        mask = missingness.draw_columns(n_rows, whole.features, whole.columns, missing, rng)
    else:
        values = feature_codes(rows.test, rows.columns) if missingness.mechanism in DEPENDENT else None
        mask = missingness.draw(n_rows, rows.features, missing, rng, values)
    result: dict[str, vocab.Json] = {"missing_percent": 100.0 * float(mask.mean())}
    logs = dict(zip(predictors, predict_all(list(predictors.values()), rows.test, mask, rows.owners), strict=True))
    if mixture:
        logs[MIXTURE] = conformant_mixture(task, mixture)[0].predict_log_proba(rows.hide(rows.test, mask))
    for name, log_proba in logs.items():
        result |= {f"{name}/{key}": value for key, value in measures(rows, reference, log_proba).items()}
    return result


@lru_cache(maxsize=3)
def _ready(task: Task, by_column: bool) -> tuple[EncodedRows, dict[str, AdditivePredictor], Matrix]:
    """Return the rows, the methods, and the classifier's own probabilities of the test rows."""
    rows = encoded_rows(task).by_column if by_column else encoded_rows(task)
    return rows, _predictors(task, rows), fitted(task).probabilities(rows.test)


def _predictors(task: Task, rows: EncodedRows) -> dict[str, AdditivePredictor]:
    """Return all methods by name; ``@test`` marks what was taken from the complete test rows."""
    weights, biases = fitted(task).weights, fitted(task).biases
    missing = sums_by_feature(conformant_model(task).components[0].missing_scores, rows.columns)
    found = {"nacl": AdditivePredictor(weights, biases, missing)}
    if categorical_columns(rows):
        grouped = conformant_model(task, groups=True).components[0].missing_scores
        found["nacl_groups"] = AdditivePredictor(weights, biases, grouped)
    for fill in FILLS:
        for part, source in (("", rows.train), ("@test", rows.test)):
            found[fill + part] = filling_predictor(weights, biases, rows.columns, fill_values(source, fill))
    found["naive_bayes"] = naive_bayes_predictor(
        rows.train, rows.train_labels, len(rows.classes), rows.columns, task.protocol.smoothing
    )
    return found


def conformant_model(task: Task, *, groups: bool = False) -> ConformantModel:
    """Return the conformant model of a task.

    With `groups` the columns of a categorical feature are one variable, not independent ones as in the paper.
    """
    rows, classifier = encoded_rows(task), fitted(task)
    layout = FeatureLayout.of(rows.train.shape[1], categorical_columns(rows) if groups else None)
    return conform_to_statistics(
        classifier.weights,
        classifier.biases,
        np.arange(len(rows.classes)),
        layout,
        FeatureStatistics.of(rows.train, layout),
        smoothing=task.protocol.smoothing,
    )


def categorical_columns(rows: EncodedRows) -> list[tuple[int, ...]]:
    """Return the columns of each categorical feature."""
    return [columns for columns in rows.columns if len(columns) > 1]


def measures(rows: EncodedRows, reference: Matrix, log_proba: Matrix) -> dict[str, float]:
    """Return cross entropy (nats), accuracy and weighted F1 of predictions for the first test rows."""
    predicted = log_proba.argmax(axis=1)
    truth = rows.test_labels[: len(predicted)]
    return {
        "cross_entropy": cross_entropy(reference[: len(predicted)], log_proba),
        "accuracy": accuracy(truth, predicted),
        "f1_weighted": weighted_f1(truth, predicted, len(rows.classes)),
    }


# Means over random masks, as tables and as curves.


def title_of(rows: pd.DataFrame, dataset: str) -> str:
    """Return the name of a data set in titles."""
    return vocab.shown_name(dataset, str(rows.loc[rows["dataset"] == dataset, "title"].iloc[0]))


def summarise(done: pd.DataFrame, measure: str, methods: Iterable[str] = METHODS) -> pd.DataFrame:
    """Return mean and 95 % confidence interval over the masks, for each share of missing features and method.

    Fractions that hide the same number of features are one share. The columns are missing, percent, method, mean, low,
    high (NaN for a single mask) and n; `methods` are keys of the results of one data set, `done`.
    """
    columns = ["missing", "percent", "method", "mean", "low", "high", "n"]
    lines = []
    wanted = [name for name in methods if f"{name}/{measure}" in done.columns]
    if not wanted:  # no job has succeeded
        return pd.DataFrame(columns=columns)
    shares = done["missing"].map(done.groupby("missing")["missing_percent"].mean().round(9))
    for _, group in done.groupby(shares):
        percent = float(group["missing_percent"].mean())
        for method in wanted:
            values = group[f"{method}/{measure}"].dropna()
            if len(values):
                spread = vocab.mean_of(values).with_ends
                lines.append((group["missing"].min(), percent, method, *spread, len(values)))
    return pd.DataFrame(lines, columns=columns)


def means_table(title: str, summary: pd.DataFrame, name: str) -> vocab.Table:
    """Return a summary as a table with a line for each share and a column for each method."""
    lines = []
    for percent, group in summary.groupby("percent"):
        means = dict(zip(group["method"].map(METHODS), group["mean"], strict=True))
        lines.append({"missing (%)": percent, "masks": int(group["n"].max()), **means})
    titles = [METHODS[method] for method in summary["method"].unique()]
    return vocab.Table.of(title, lines, {"missing (%)": ".1f", "masks": "", **dict.fromkeys(titles, ".4f")}, name=name)


def curves(
    name: str, title: str, measure: str, y_label: str, summary: pd.DataFrame, references: pd.DataFrame | None = None
) -> vocab.LineFigure:
    """Return a figure of a summary, each method followed by its reference (percent, method, mean) if there is one."""
    points: list[tuple[object, ...]] = []
    marks: dict[str, str] = {}
    methods: dict[str, str] = {}
    columns = ["method", "percent", "mean", "low", "high"]
    theirs = pd.DataFrame(columns=columns[:3]) if references is None else references[columns[:3]]
    for method in summary["method"].unique():
        label = f"{METHODS[method]} imputation" if method in FILLS else METHODS[method]
        for series, table in ((label, summary[columns]), (f"{label} (authors)", theirs)):
            found = [(series, *point) for _, *point in table[table["method"] == method].itertuples(index=False)]
            points += found
            methods |= {series: METHODS[method]} if found else {}
            marks |= {series: "reference"} if found and series != label else {}
    # By cross entropy, max imputation is orders of magnitude worse than the others.
    logarithmic = measure == "cross_entropy" and bool((summary["mean"] > 0).all())
    return vocab.LineFigure.of(
        title,
        ("missing features (%)", y_label),
        points,
        name=name,
        marks=marks,
        y_scale="log" if logarithmic else "linear",
        interval="95 % confidence interval of the mean over masks",
        methods=methods,
    )


def with_mixture(title: str, summary: pd.DataFrame) -> str:
    """Return the title of a figure, which says so if one of its lines is a mixture."""
    return f"{title}, with a mixture (beyond the paper)" if MIXTURE in summary["method"].to_numpy() else title


# Mixtures of conformant models, which go beyond the paper: learned once for each task, then remembered.


@vocab.settings
class MixtureSettings:
    """How a mixture of conformant models is learned.

    ``"auto"`` adds components as long as held-out rows become more likely. `rows` is the number of training rows,
    chosen at random, that it is learned from; all by default.
    """

    n_components: vocab.Count | Literal["auto"] = "auto"
    rows: vocab.Count | None = None


@lru_cache(maxsize=2)
def conformant_mixture(task: Task, how: MixtureSettings) -> tuple[ConformantModel, float]:
    """Return the mixture of a task, and the seconds of processor time on the machine that learned it.

    Its components all conform with the logistic regression of the task; there may be a single one. The columns of a
    categorical feature are one variable.
    """
    rows = _chosen_rows(task, how)
    key: dict[str, vocab.Json] = {
        "task": dataclasses.asdict(task),
        "how": dataclasses.asdict(how),
        "code": code_version(f"{__name__}:fit_mixture"),
    }
    arrays = remember("mixture", key, lambda: _learn(task, rows, how.n_components))
    (one,) = _conform(task, rows, 1).components
    parts = [
        replace(one, solution=Solution(parameters, residual=residual, value=math.nan, iterations=0))
        for parameters, residual in zip(arrays["parameters"], arrays["residuals"].tolist(), strict=True)
    ]
    return ConformantModel(arrays["log_weights"], tuple(parts)), float(arrays["seconds"])


def _chosen_rows(task: Task, how: MixtureSettings) -> NDArray[np.uint8]:
    rows = encoded_rows(task).train
    if how.rows is None or how.rows >= len(rows):
        return rows
    rng = generator_for(purpose="mixture", dataset=task.name, seed=task.split_seed)
    return rows[np.sort(rng.choice(len(rows), how.rows, replace=False))]


def _learn(task: Task, rows: NDArray[np.uint8], n_components: int | Literal["auto"]) -> Arrays:
    model, seconds = timed(lambda: _conform(task, rows, n_components), time.process_time)
    return {
        "log_weights": model.log_weights,
        "parameters": np.stack([part.solution.parameters for part in model.components]),
        "residuals": np.array([part.residual for part in model.components]),
        "seconds": np.array(seconds),
    }


def _conform(task: Task, rows: NDArray[np.uint8], n_components: int | Literal["auto"]) -> ConformantModel:
    whole, classifier = encoded_rows(task), fitted(task)
    classes = np.arange(len(whole.classes))
    weights = SimpleNamespace(coef_=classifier.weights.T, intercept_=classifier.biases, classes_=classes)
    how: dict[str, Any] = {"smoothing": task.protocol.smoothing, "categorical": categorical_columns(whole)}
    return conform(weights, rows, n_components=n_components, covariance="diagonal", **how)


@job(components=COUNT, learned_from=COUNT, fit_seconds=POSITIVE, residual=POSITIVE, difference=POSITIVE)
def fit_mixture(task: Task, mixture: MixtureSettings) -> dict[str, vocab.Json]:
    """Learn the mixture of a task, and check that it conforms with the classifier."""
    model, seconds = conformant_mixture(task, mixture)
    rows, classifier = encoded_rows(task), fitted(task)
    differences = model.predict_proba(rows.test) - classifier.probabilities(rows.test)
    return {
        "components": model.n_components,
        "learned_from": len(_chosen_rows(task, mixture)),
        "fit_seconds": seconds,
        "residual": model.residual,
        "difference": float(np.abs(differences).max()),
    }


def mixture_cells(
    tasks: Sequence[Task], how: MixtureSettings | None, labels: Mapping[str, vocab.Label] | None = None
) -> list[vocab.Cell]:
    """Return one job for the mixture of each task, none without a mixture."""
    own = labels or {}
    return [
        vocab.Cell.of(
            {"dataset": task.name, "title": task.title, **own, "part": "mixture"}, fit_mixture, task=task, mixture=how
        )
        for task in (tasks if how else ())
    ]


# Predictors whose scores add up over the features: a weight where observed, a constant where missing.

Fill = Literal["min", "max", "mean", "median"]
FILLS: tuple[Fill, ...] = get_args(Fill)


@dataclass(frozen=True, eq=False)
class AdditivePredictor:
    """Linear scores of binary columns, with a score for each missing feature.

    The weights have the shape (n_columns, n_classes). `missing`, of shape (n_features, n_classes), is what a feature
    adds to each score while it is missing.
    """

    weights: Matrix
    biases: Vector
    missing: Matrix


def filling_predictor(
    weights: Matrix, biases: Vector, columns: tuple[tuple[int, ...], ...], fill: Vector
) -> AdditivePredictor:
    """Return a logistic regression that fills each missing column with a constant, as `fill_values` gives it.

    Its weights are of shape (n_columns, n_classes), and `columns` are those of each feature.
    """
    return AdditivePredictor(weights, biases, sums_by_feature(fill[:, None] * weights, columns))


def fill_values(rows: NDArray[Any], fill: Fill) -> Vector:
    """Return the minimum, maximum, mean or median of each column of complete rows of numbers."""
    if fill == "median" and rows.dtype.kind in "bu" and rows.max(initial=0) <= 1:
        # The median of zeros and ones, without sorting: 1/2 if both are equally frequent.
        return np.asarray(0.5 + 0.5 * np.sign(rows.mean(axis=0) - 0.5))
    return np.asarray(getattr(np, fill)(rows, axis=0), dtype=np.float64)


def naive_bayes_predictor(
    rows: NDArray[np.uint8],
    labels: NDArray[np.int64],
    n_classes: int,
    columns: tuple[tuple[int, ...], ...],
    smoothing: float = 1.0,
) -> AdditivePredictor:
    """Learn a naive Bayes classifier by maximum likelihood, with every column of zeros and ones a binary feature.

    `columns` are those of each feature, which are missing together; `smoothing` is the pseudo-count of each value in
    each class, and of each class.
    """
    counts = np.bincount(labels, minlength=n_classes).astype(np.float64)
    ones = np.stack([rows[labels == k].sum(axis=0, dtype=np.float64) for k in range(n_classes)], axis=1)
    # Without smoothing, a tiny count keeps the logarithms finite for values that a class never has.
    pseudo = smoothing or 1e-10
    log_one = np.log(ones + pseudo) - np.log(counts + 2 * pseudo)
    log_zero = np.log(counts - ones + pseudo) - np.log(counts + 2 * pseudo)
    prior = np.log(counts + pseudo) - np.log(len(rows) + n_classes * pseudo)
    return AdditivePredictor(log_one - log_zero, prior + log_zero.sum(axis=0), -sums_by_feature(log_zero, columns))


def predict_all(
    predictors: list[AdditivePredictor], rows: NDArray[np.uint8], missing: NDArray[np.bool_], spread: NDArray[np.intp]
) -> list[Matrix]:
    """Return the log-probabilities of several predictors for the same rows, with one matrix product.

    The predictors have the same columns and features. The rows are complete, `missing` tells which features to hide,
    shape (n_rows, n_features), and `spread` is the feature of each column. Each result has shape (n_rows, n_classes).
    """
    own = {id(predictor.weights): predictor.weights for predictor in predictors}
    distinct, places = list(own.values()), list(own)
    n_classes = predictors[0].weights.shape[1]
    weights, gone = np.hstack(distinct), np.hstack([predictor.missing for predictor in predictors])
    results = [np.empty((len(rows), n_classes)) for _ in predictors]
    for start in range(0, len(rows), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        absent = missing[part]
        observed = np.where(absent[:, spread], 0.0, rows[part]) @ weights
        expected = absent.astype(np.float64) @ gone
        for i, predictor in enumerate(predictors):
            place = places.index(id(predictor.weights))
            scores = observed[:, place * n_classes : (place + 1) * n_classes] + predictor.biases
            scores = scores + expected[:, i * n_classes : (i + 1) * n_classes]
            scores -= scores.max(axis=1, keepdims=True)
            results[i][part] = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return results


def sums_by_feature(by_column: Matrix, columns: tuple[tuple[int, ...], ...]) -> Matrix:
    """Return the sums over the columns of each feature, shape (n_features, n_classes)."""
    return np.stack([by_column[list(places)].sum(axis=0) for places in columns])
