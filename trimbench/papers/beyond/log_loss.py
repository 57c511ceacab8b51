"""Trimming against selections that aim at accuracy: log loss on test rows, with the same cuts for all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trimbench._typing import Matrix
from trimbench.networks.discretize import CutRule, Discretizer
from trimbench.papers.beyond.budgets import POSITIVE_SIDE, TwoSides, is_exact
from trimbench.papers.measures import log_loss
from trimbench.papers.trimming.classifiers import NAMES, SIZES, LearnedOnSplits, Learning, Split
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.masks import split_rows
from trimbench.reproduction.execution.job import COUNT, POSITIVE, SHARE, TEXT, fields, job, list_of, seed_for, timed
from trimbench.trimming.baselines import folds_of, select_features
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import feature_indices
from trimbench.trimming.problem import Limits, checked_choice
from trimbench.trimming.search.log_loss import HeldOutEvidence, lowest_log_loss
from trimbench.trimming.trim import trim

Codes = NDArray[np.int64]
Predict = Callable[[Codes], Matrix]


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is given: naive Bayes of all features, the rows that it was learned from, and a budget.

    The `codes` of the training rows are places of categories, `labels` are 1 for the positive class.
    """

    classifier: BayesianClassifier
    split: Split
    codes: Codes
    labels: Codes
    budget: int
    n_folds: int
    seed: int
    evaluation_limit: int | None
    smoothing: float

    @functools.cached_property
    def folds(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Training and held-out rows of cross-validation, with the classes in equal shares."""
        from sklearn.model_selection import StratifiedKFold

        cut = StratifiedKFold(self.n_folds, shuffle=True, random_state=self.seed)
        return list(cut.split(self.codes, self.labels))

    def names(self, places: Sequence[int]) -> list[str]:
        """Return the names of features."""
        return [self.classifier.features[place] for place in places]


Selected = tuple[list[str], Predict | None]  # None: the naive Bayes classifier of these features


def _by_trimming(task: Task, *, rows: bool) -> Selected:
    limit = task.evaluation_limit if rows or is_exact(task.classifier) else None
    given = task.split.train if rows else None
    found = trim(task.classifier, task.budget, rows=given, evaluation_limit=limit)
    return list(found.features), None


def _by_cross_validated_loss(task: Task) -> Selected:
    """Add the feature that most lowers the cross-validated log loss of naive Bayes, and keep the best of all sizes."""
    features, target = task.split.train, task.split.target
    rng = np.random.default_rng(task.seed)
    folds = folds_of(features, target, POSITIVE_SIDE, 0.5, task.n_folds, rng, task.smoothing)
    # At a threshold of 1/2 the sum of the weights that is needed is minus the prior log odds.
    scores = [np.full(len(fold.truth), -fold.needed) for fold in folds]
    signs = [np.where(fold.truth, 1.0, -1.0) for fold in folds]

    def loss(found: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        losses = [np.logaddexp(0.0, -sign[:, None] * one) for sign, one in zip(signs, found, strict=True)]
        return np.asarray(np.concatenate(losses).mean(axis=0))

    left, chosen = list(range(len(task.classifier.features))), list[int]()
    best, kept = float(loss([score[:, None] for score in scores])[0]), 0
    while left and len(chosen) < task.budget:
        losses = loss([score[:, None] + fold.weights[:, left] for fold, score in zip(folds, scores, strict=True)])
        chosen.append(left.pop(int(losses.argmin())))
        scores = [score + fold.weights[:, chosen[-1]] for fold, score in zip(folds, scores, strict=True)]
        if losses.min() < best:
            best, kept = float(losses.min()), len(chosen)
    return task.names(sorted(chosen[:kept])), None


def _by_lowest_loss(task: Task) -> Selected:
    """Prove the lowest cross-validated log loss of all sets within the budget, as far as evaluations allow."""
    evidence = HeldOutEvidence.of(task.codes, task.labels, task.classifier.cardinalities, task.smoothing)
    choice = checked_choice(task.classifier.features, task.budget)
    found = lowest_log_loss(evidence, choice, Limits(evaluation_limit=task.evaluation_limit))
    return task.names(found.features), None


def _by_select_k_best(task: Task) -> Selected:
    from sklearn.feature_selection import SelectKBest, mutual_info_classif

    score = functools.partial(mutual_info_classif, discrete_features=True)
    selector = SelectKBest(score, k=min(task.budget, task.codes.shape[1])).fit(task.codes, task.labels)
    return task.names(np.flatnonzero(selector.get_support()).tolist()), None


def _by_entropy(task: Task) -> Selected:
    """Add the feature that most lowers the entropy of the class given all that are kept, under the distribution."""
    found = select_features(task.classifier, task.budget, by="information_gain", joint=True)
    return list(found.features), None


def _by_l1(task: Task) -> Selected:
    """Take the features of the weakest L1 penalty that leaves no more than the budget, and a regression of them."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import l1_min_c

    rows = _one_hot(task.classifier, task.codes)
    owners = np.repeat(np.arange(task.codes.shape[1]), task.classifier.cardinalities)
    chosen: list[int] = []
    for inverse_penalty in l1_min_c(rows, task.labels, loss="log") * np.geomspace(1.0, 1000.0, 40):
        path = LogisticRegression(l1_ratio=1.0, solver="liblinear", C=inverse_penalty, random_state=0)
        found = np.unique(owners[path.fit(rows, task.labels).coef_[0] != 0]).tolist()
        if len(found) > task.budget:
            break
        chosen = found
    return task.names(chosen), _regression_of(task, chosen)


def _regression_of(task: Task, places: Sequence[int]) -> Predict:
    from sklearn.linear_model import LogisticRegression

    used = np.isin(np.repeat(np.arange(task.codes.shape[1]), task.classifier.cardinalities), places)
    if not used.any():
        return lambda codes: np.tile([1 - task.labels.mean(), task.labels.mean()], (len(codes), 1))
    model = LogisticRegression(max_iter=1000).fit(_one_hot(task.classifier, task.codes)[:, used], task.labels)
    return lambda codes: np.asarray(model.predict_proba(_one_hot(task.classifier, codes)[:, used]))


def _trimmed_regression(task: Task) -> Selected:
    names, _ = _by_trimming(task, rows=True)
    return names, _regression_of(task, feature_indices(task.classifier.features, names))


def _by_tree(task: Task) -> Selected:
    """Grow a tree, leaf by leaf, that asks for no more features than the budget; its size by cross-validation."""
    from sklearn.tree import DecisionTreeClassifier

    def grown(rows: Matrix, labels: Codes, n_leaves: int) -> Any:
        return DecisionTreeClassifier(max_leaf_nodes=n_leaves, min_samples_leaf=5, random_state=0).fit(rows, labels)

    def asked(tree: Any) -> NDArray[np.int64]:
        return np.asarray(tree.tree_.feature[tree.tree_.feature >= 0])

    rows = _one_hot(task.classifier, task.codes)
    owners = np.repeat(np.arange(task.codes.shape[1]), task.classifier.cardinalities)
    shares = np.bincount(task.labels, minlength=2) / len(task.labels)
    best, chosen = np.inf, None
    for n_leaves in range(2, 33):
        tree = grown(rows, task.labels, n_leaves)
        if len(np.unique(owners[asked(tree)])) > task.budget:
            break
        losses = [
            log_loss(task.labels[out], _smoothed(grown(rows[some], task.labels[some], n_leaves), rows[out], shares))
            for some, out in task.folds
        ]
        if np.mean(losses) < best:
            best, chosen = float(np.mean(losses)), tree
    places = np.unique(owners[asked(chosen)]).tolist()
    return task.names(places), lambda codes: _smoothed(chosen, _one_hot(task.classifier, codes), shares)


def _smoothed(tree: Any, rows: Matrix, shares: NDArray[np.float64]) -> Matrix:
    """Return the shares of the classes in the leaf of each row, as if it had one more row of the shares of all."""
    sizes = tree.tree_.n_node_samples[tree.apply(rows)][:, None]
    return np.asarray((tree.predict_proba(rows) * sizes + shares) / (sizes + 1))


def _one_hot(classifier: BayesianClassifier, codes: Codes) -> Matrix:
    return np.hstack([np.eye(n)[column] for n, column in zip(classifier.cardinalities, codes.T, strict=True)])


METHODS = {
    "trimming": vocab.Method("trimming", functools.partial(_by_trimming, rows=True)),
    "model": vocab.Method("trimming by the model", functools.partial(_by_trimming, rows=False)),
    "lowest": vocab.Method("trimming by log loss", _by_lowest_loss),
    "greedy": vocab.Method("greedy log loss", _by_cross_validated_loss),
    "k_best": vocab.Method("SelectKBest", _by_select_k_best),
    "entropy": vocab.Method("greedy entropy", _by_entropy),
    "regression": vocab.Method("trimming, then regression", _trimmed_regression),
    "l1": vocab.Method("L1 path, then regression", _by_l1),
    "tree": vocab.Method("decision tree", _by_tree),
}
_BASE = "trimming"
_LINE = fields(budget=COUNT, method=TEXT, features=NAMES, log_loss=POSITIVE, accuracy=SHARE, method_seconds=POSITIVE)


@job(SIZES | {"full_log_loss": POSITIVE, "full_accuracy": SHARE, "methods": list_of(_LINE)})
def compare_log_losses(
    learning: Learning,
    sides: TwoSides,
    budgets: list[int],
    cut: CutRule,
    n_folds: int,
    evaluation_limit: int | None,
) -> dict[str, vocab.Json]:
    """Cut and learn from the training rows of a split, select by each of the `METHODS` for each budget, and test."""
    features, target = sides.rows(learning.dataset)
    train, test = split_rows(len(features), learning.test_fraction, learning.split_seed, stratify=target.to_numpy())
    wanted = (target == POSITIVE_SIDE).to_numpy().astype(np.int64)
    cuts = Discretizer.fit(features.iloc[train], wanted[train], cut)
    known = cuts.transform(features.iloc[train])
    known = known[[name for name in known if len(known[name].cat.categories) > 1]]
    new = cuts.transform(features.iloc[test])[list(known)]
    split = Split(known, target.iloc[train], new, target.iloc[test])
    classifier = split.learned(POSITIVE_SIDE, learning)
    codes, test_codes = (classifier.encode(part).astype(np.int64) for part in (split.train, split.test))
    seed = seed_for(purpose="folds", split=learning.split_seed) % 2**32

    def naive_bayes(names: Sequence[str]) -> Matrix:
        found = classifier.with_features(names)
        return found.predict_proba_of(test_codes[:, feature_indices(classifier.features, names)])[:, ::-1]

    def measures(probabilities: Matrix) -> tuple[float, float]:
        right = (probabilities[:, 1] >= learning.threshold) == (wanted[test] == 1)
        return log_loss(wanted[test], probabilities), float(right.mean())

    lines: list[vocab.Json] = []
    for budget in budgets:
        task = Task(
            classifier, split, codes, wanted[train], budget, n_folds, seed, evaluation_limit, learning.smoothing
        )
        for name, method in METHODS.items():
            (chosen, predict), seconds = timed(functools.partial(method.run, task))
            loss, accuracy = measures(naive_bayes(chosen) if predict is None else predict(test_codes))
            line: dict[str, vocab.Json] = {"budget": budget, "method": name, "features": list(chosen)}
            lines.append({**line, "log_loss": loss, "accuracy": accuracy, "method_seconds": seconds})
    loss, accuracy = measures(naive_bayes(classifier.features))
    return {**split.sizes, "full_log_loss": loss, "full_accuracy": accuracy, "methods": lines}


@vocab.settings
class LogLosses(LearnedOnSplits):
    """Selections of features within several budgets, compared by log loss and accuracy on test rows.

    The data sets are names in `problems`. All numbers are cut by one rule, `cut`, on the training rows of each split.
    An exact search of a trimming stops after `evaluation_limit` evaluations; `n_folds` are those of cross-validation.
    """

    datasets: vocab.Axis[str]
    problems: dict[str, TwoSides]
    budgets: vocab.Axis[vocab.Count]
    threshold: vocab.Share = 0.5
    smoothing: vocab.Positive = 1.0
    cut: CutRule = "mdl"
    splits: vocab.Count = 10
    n_folds: Annotated[int, vocab.at_least(2)] = 5
    evaluation_limit: vocab.Count | None = None

    def __post_init__(self) -> None:
        entries = "dataset: ..., positive: [...], negative: [...]"
        vocab.check_names("datasets", self.datasets, self.problems, "problems", entries)

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set and split."""
        return [
            vocab.Cell.of(
                one,
                compare_log_losses,
                self,
                learning=self.learning(self.problems[one["data"]].dataset, one["split"], inputs),
                sides=self.problems[one["data"]],
            )
            for one in vocab.grid(data=self.datasets, split=range(self.splits))
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return log losses, and by how much trimming is behind each other method on the same splits."""
        methods = vocab.unpacked(rows, "methods")
        if methods.empty:
            methods = methods.reindex(columns=["method"])
        else:
            methods["selected by"] = methods["method"].map({name: method.title for name, method in METHODS.items()})
            base = methods.loc[methods["method"] == _BASE, ["data", "split", "budget", *_QUANTITIES]]
            methods = methods.merge(base, on=["data", "split", "budget"], suffixes=("", _OF_BASE))
        by_method = list(vocab.groups(methods, "data", "budget", **{"selected by": "selected by"}))
        main, accuracy = (
            vocab.Table.of(
                f"{title} on the test rows",
                [own | _compared(ours, column, sign) for own, ours in by_method],
                _COMPARED,
                name=name,
            )
            for column, title, sign, name in (
                ("log_loss", "Log loss", -1.0, ""),
                ("accuracy", "Accuracy", 1.0, "accuracy"),
            )
        )
        others = main.frame[main.frame["selected by"] != METHODS[_BASE].title]
        summary = [own | _summary(ours) for own, ours in vocab.groups(others, "selected by")]
        whole = [own | _of_all(ours) for own, ours in vocab.groups(rows, "data")]
        each = vocab.groups(methods, "data", "split", "budget", "selected by")
        tables = (
            main,
            accuracy,
            vocab.Table.of("Trimming against each other method, by log loss", summary, _SUMMARY, name="summary"),
            vocab.Table.of("Naive Bayes with all features", whole, _OF_ALL, name="all_features"),
            vocab.Table.of(
                "Each split", [own | _single(ours) for own, ours in each], _SINGLE, name="splits", listed=False
            ),
        )
        figures = [self._figure(name, main.frame[main.frame["data"] == name]) for name in self.datasets if len(methods)]
        return vocab.Outcome(tables, [figure for figure in figures if len(figure.points)])

    def _figure(self, name: str, lines: pd.DataFrame) -> vocab.LineFigure:
        points = [
            (line["selected by"], line["budget"], *(line[end] for end in ("mean", "low", "high")))
            for line in lines.to_dict("records")
            if line["selected by"] in _DRAWN
        ]
        return vocab.LineFigure.of(
            f"{vocab.shown_name(name)}: log loss with few features",
            ("budget (number of features kept)", "log loss (nats)"),
            points,
            name=name,
            interval="95 % confidence interval of the mean over splits",
        )


_QUANTITIES = ("log_loss", "accuracy")
_OF_BASE = " of the trimming"
_DRAWN = [METHODS[name].title for name in ("trimming", "lowest", "k_best", "l1", "tree")]


def _compared(ours: pd.DataFrame, column: str, sign: float) -> dict[str, object]:
    """Return the mean of a result over the splits, and by how much trimming is worse on the same splits."""
    mean, low, high = _mean(ours, ours[column]).with_ends
    line: dict[str, object] = {"splits": len(ours), "mean": mean, "low": float(np.maximum(low, 0.0)), "high": high}
    if (ours["method"] == _BASE).all():
        return line
    behind = sign * (ours[column] - ours[f"{column}{_OF_BASE}"])
    lead, error = float(behind.mean()), _standard_error(ours, behind)
    told = "worse" if lead > error else "better" if lead < -error else "equal"
    return {**line, "trimming behind": lead, "standard error": error, "trimming is": told if len(ours) > 1 else None}


def _per_train(ours: pd.DataFrame) -> float:
    return float(ours["n_test"].iloc[0] / ours["n_train"].iloc[0])


def _mean(ours: pd.DataFrame, values: pd.Series[float]) -> vocab.Mean:
    """Return a mean over splits, with an interval that accounts for the rows that they share."""
    return vocab.mean_of(values, test_per_train=_per_train(ours))


def _standard_error(ours: pd.DataFrame, values: pd.Series[float]) -> float:
    """Return the standard error of a mean over splits that share rows (Nadeau and Bengio, 2003)."""
    return vocab.standard_error(values) * float(np.sqrt(1 + len(values) * _per_train(ours)))


def _summary(ours: pd.DataFrame) -> dict[str, object]:
    """Count in how many cells trimming is worse than another method, equal and better."""
    counts = {f"trimming is {told}": int((ours["trimming is"] == told).sum()) for told in _TOLD}
    return {"cells": len(ours), "trimming behind": ours["trimming behind"].mean(), **counts}


def _of_all(ours: pd.DataFrame) -> dict[str, object]:
    return {"log loss": ours["full_log_loss"].mean(), "accuracy": ours["full_accuracy"].mean()}


def _single(ours: pd.DataFrame) -> dict[str, object]:
    one = ours.iloc[0]
    line = {"log loss": one["log_loss"], "accuracy": one["accuracy"], "features": " ".join(one["features"])}
    return {**line, "seconds": one["method_seconds"]}


_TOLD = ("worse", "equal", "better")
_COMPARED = {
    **dict.fromkeys(("data", "budget", "selected by", "splits"), ""),
    **dict.fromkeys(("mean", "low", "high"), ".4f"),
    **dict.fromkeys(("trimming behind", "standard error"), "+.4f"),
    "trimming is": "",
}
_SUMMARY = {
    **dict.fromkeys(("selected by", "cells"), ""),
    "trimming behind": "+.4f",
    **dict.fromkeys((f"trimming is {told}" for told in _TOLD), ""),
}
_OF_ALL = {"data": "", "log loss": ".4f", "accuracy": ".4f"}
_SINGLE = {
    **dict.fromkeys(("data", "split", "budget", "selected by"), ""),
    **dict.fromkeys(("log loss", "accuracy"), ".4f"),
    "features": "",
    "seconds": ".2f",
}
