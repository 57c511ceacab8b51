"""Rows that are asked for their features, the models that ask, and other ways to choose features under a budget.

Splits and the drawn data CUBE and CUBE-NM are those of Schütz, Wu, Rezvan, Aronsson and Haghir Chehreghani (2025),
"AFABench: a generic framework for benchmarking active feature acquisition", arXiv 2508.14734.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.tree import DecisionTreeClassifier

from trimbench._typing import Matrix
from trimbench.conformant.logistic_regression import fit_logistic_regression
from trimbench.estimators.densities.density import responsibilities
from trimbench.estimators.densities.margins import Margins
from trimbench.estimators.densities.products import ProductMixture
from trimbench.networks.learning import learn
from trimbench.networks.mixture import NaiveBayesMixture
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.papers.measures import log_loss
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.masks import exactly_missing, split_rows
from trimbench.reproduction.execution.job import COUNT, POSITIVE, SHARE, TEXT, fields, job, list_of, timed
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.trim import trim

OK, NOT_AVAILABLE = "ok", "not available"
_FACTS = {"method": TEXT, "status": TEXT}
_RESULT = {"budget": COUNT, "cost": POSITIVE, "accuracy": SHARE, "seconds": POSITIVE}


Recipe = Literal["cube", "cube_nm"]
Codes = NDArray[np.int64]


@vocab.settings
class AskedData:
    """A declared data set, or a recipe for one with so many `rows`, and how it is asked.

    Numbers are cut into `bins` of about equally many values; `rows` are the most that are used. With `two_steps`,
    policies also look two steps ahead.
    """

    dataset: str = ""
    recipe: Recipe | None = None
    rows: vocab.Count = 5000
    bins: Annotated[int, vocab.at_least(2)] = 8
    budgets: vocab.Axis[int]
    two_steps: bool = False


@job(
    n_train=COUNT,
    n_features=COUNT,
    components=TEXT,
    full_accuracy=SHARE,
    results=list_of(
        fields(**_FACTS, **_RESULT) | fields(**_FACTS, **_RESULT, stop_at=SHARE) | fields(**_FACTS, reason=TEXT)
    ),
)
def compare_policies(
    problem: AskedData,
    dataset: vocab.Input | None,
    methods: Sequence[str],
    stop_at: Sequence[float],
    components: Sequence[int],
    candidates: int,
    test_rows: int,
    seed: int,
) -> dict[str, vocab.Json]:
    """Learn a model from 60 % of the rows, choose its size by 20 %, and ask the other 20 % by each method."""
    rows = Rows.of(problem, dataset, test_rows, seed)
    task = Task(problem, rows, *learned(rows, components, seed), candidates, seed)
    results: list[vocab.Json] = []
    for name in methods:
        method = METHODS[name]
        if not method.applies(problem):
            continue
        try:
            found = [method.ask(task, budget=budget) for budget in problem.budgets]
            results += [{"method": name, "status": OK, **one} for one in found]
            if method.is_soft:
                soft = [(enough, method.ask(task, stop_at=enough)) for enough in stop_at]
                results += [{"method": name, "status": OK, **one, "stop_at": enough} for enough, one in soft]
        except NotAvailableError as error:
            results.append({"method": name, "status": NOT_AVAILABLE, "reason": str(error)})
    return {
        "n_train": len(rows.train),
        "n_features": rows.train.shape[1],
        "components": task.size,
        "full_accuracy": rows.accuracy(task.model.predict(rows.table(rows.test))),
        "results": results,
    }


class NotAvailableError(Exception):
    """A method cannot run here; the text says why."""


# Rows, drawn or of a data set, as categories.

CONTEXTS, BLOCK, CUBE_LABELS = 5, 10, 8
# The three binary digits of a label.
_CODES = (np.arange(CUBE_LABELS)[:, None] >> np.arange(3)) & 1


def cube_states(recipe: Recipe) -> tuple[NDArray[np.intp], Matrix, Matrix]:
    """Return the label of each state of CUBE or CUBE-NM, and means and deviations of its features.

    The features from y to y + 2 of a block of ten are near the three binary digits of the label y; all else is noise.
    CUBE has one block and ten features of noise. CUBE-NM has a block for each of five contexts, of which only that of
    the row's context tells anything; the first five columns are near 1 for the context and near 0 for the others.
    """
    n_contexts, n_shown = (CONTEXTS, CONTEXTS) if recipe == "cube_nm" else (1, 0)
    n_features = n_shown + n_contexts * BLOCK + (0 if n_shown else BLOCK)
    contexts, labels = np.divmod(np.arange(n_contexts * CUBE_LABELS), CUBE_LABELS)
    means, deviations = np.full((2, len(labels), n_features), [[[0.5]], [[0.3]]])
    for state, (context, label) in enumerate(zip(contexts, labels, strict=True)):
        means[state, :n_shown], deviations[state, :n_shown] = np.arange(n_shown) == context, 0.1
        first = n_shown + BLOCK * context + label
        means[state, first : first + 3], deviations[state, first : first + 3] = _CODES[label], 0.1
    return labels, means, deviations


@dataclass(frozen=True, eq=False)
class Rows:
    """Codes of rows for training, validation and test, with the places of their classes.

    Attributes
    ----------
    edges : list of ndarray
        Where each number is cut; empty for categories, whose number is in `sizes`.
    """

    train: Codes
    train_labels: Codes
    valid: Codes
    valid_labels: Codes
    test: Codes
    test_labels: Codes
    edges: list[NDArray[np.float64]]
    sizes: list[int]
    categorical: bool

    @classmethod
    def of(cls, problem: AskedData, dataset: vocab.Input | None, test_rows: int, seed: int) -> Rows:
        """Draw rows by a recipe, or take those of a data set at random, and cut numbers by the training rows."""
        rng = np.random.default_rng(seed)
        if problem.recipe:
            of_state, means, deviations = cube_states(problem.recipe)
            states = rng.integers(0, len(of_state), problem.rows)
            table = means[states] + deviations[states] * rng.normal(size=means[states].shape)
            labels: Codes = of_state[states].astype(np.int64)
            n_categories = [0] * table.shape[1]
        else:
            assert dataset is not None
            loaded = vocab.dataset_of(dataset)
            if loaded.features.isna().any(axis=None):
                raise ValueError(f"problems must be of data sets without missing values, got {dataset.name!r}")
            chosen = np.sort(rng.permutation(len(loaded.target))[: problem.rows])
            labels = np.asarray(loaded.target.cat.codes, dtype=np.int64)[chosen]
            columns = [column for _, column in loaded.features.iloc[chosen].items()]
            n_categories = [len(one.cat.categories) if hasattr(one, "cat") else 0 for one in columns]
            table = np.column_stack([one.cat.codes if hasattr(one, "cat") else one for one in columns])
        others, test = split_rows(len(labels), 0.2, seed, stratify=labels)
        train, valid = (others[part] for part in split_rows(len(others), 0.25, seed, stratify=labels[others]))
        edges: list[NDArray[np.float64]] = []
        shares = np.linspace(0, 1, problem.bins + 1)[1:-1]
        for place, n_values in enumerate(n_categories):
            cuts = np.arange(n_values - 1) if n_values else np.unique(np.quantile(table[train, place], shares))
            edges.append(cuts.astype(np.float64))
        codes = np.column_stack(
            [np.searchsorted(cuts, column, side="left") for cuts, column in zip(edges, table.T, strict=True)]
        )
        test = rng.permutation(test)[:test_rows]
        sizes = [len(cuts) + 1 for cuts in edges]
        tables = (codes[train], labels[train], codes[valid], labels[valid], codes[test], labels[test])
        return cls(*tables, edges, sizes, any(n_categories))

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [f"x{place}" for place in range(len(self.sizes))]

    def table(self, codes: Codes, hidden: NDArray[np.bool_] | None = None) -> pd.DataFrame:
        """Return codes as a table of text, None where hidden."""
        cells = codes.astype(str).astype(object)
        if hidden is not None:
            cells[hidden] = None
        return pd.DataFrame(cells, columns=self.names)

    @property
    def owners(self) -> NDArray[np.intp]:
        """The feature of each column of `design`."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes if self.categorical else 1)

    def design(self, codes: Codes, features: Sequence[int] | NDArray[np.intp] | None = None) -> Matrix:
        """Return the columns of some features for a classifier: bins as numbers, or indicators of categories."""
        chosen = np.arange(len(self.sizes)) if features is None else np.asarray(features)
        if not self.categorical:
            return codes[:, chosen] / (np.array(self.sizes)[chosen] - 0.5)
        return np.hstack([np.eye(self.sizes[place])[codes[:, place]] for place in chosen.tolist()])

    def accuracy(self, predictions: NDArray[Any]) -> float:
        """Return the share of test rows whose label is predicted."""
        return float((predictions == self.test_labels.astype(str)).mean())


# The model: a mixture of naive Bayes components of its own for each class, or one that all classes share.


def learned(rows: Rows, components: Sequence[int], seed: int) -> tuple[BayesianClassifier, str]:
    """Return the mixture with the lowest log loss on validation rows of which half is hidden, and what it is."""
    n_rows, n_features = rows.valid.shape
    hidden = exactly_missing(n_rows, n_features, n_features // 2, np.random.default_rng(seed))
    table = rows.table(rows.valid, hidden)
    best: tuple[float, BayesianClassifier | None, str] = (np.inf, None, "")
    target = pd.Series(pd.Categorical(rows.train_labels.astype(str)), name="label")
    frame = rows.table(rows.train)
    values = [[str(value) for value in range(size)] for size in rows.sizes]
    for name, own in zip(rows.names, values, strict=True):
        frame[name] = pd.Categorical(frame[name], own)
    for n_components in components:
        models = {
            "own": learn(frame, target, structure="mixture", n_components=n_components, random_state=seed % 2**31)
        }
        if n_components > 1:
            models["shared"] = of_all_classes(rows, n_components, values, seed)
        for kind, model in models.items():
            classifier = BayesianClassifier(model)
            places = [classifier.class_names.index(str(label)) for label in range(int(rows.train_labels.max()) + 1)]
            loss = log_loss(rows.valid_labels, classifier.acquire(table, table, budget=0).probabilities[:, places])
            if loss < best[0]:
                best = loss, classifier, f"{n_components} {kind}"
    assert best[1] is not None
    return best[1], best[2]


# Pseudo-rows that a class has, in a component that classes share, of the law of the component.
_SHARED_ROWS = 2.0


def of_all_classes(rows: Rows, n_components: int, values: list[list[str]], seed: int) -> NaiveBayesMixture:
    """Learn components from rows without labels, and then the law of each class in each of them."""
    codes = rows.train.astype(np.float64)
    margins = Margins.of(codes, rows.sizes if rows.categorical else [0] * len(rows.sizes))
    found = responsibilities(ProductMixture(n_components).fit(codes, margins, seed % 2**31), codes)
    classes = np.eye(int(rows.train_labels.max()) + 1)[rows.train_labels]
    weights = (found[:, :, None] * classes[:, None, :]).reshape(len(codes), -1)
    tables = []
    for column, size in zip(rows.train.T, rows.sizes, strict=True):
        seen = np.eye(size)[column]
        counts, of_component = weights.T @ seen, found.T @ seen + 1.0
        law = np.repeat(of_component / of_component.sum(axis=1, keepdims=True), classes.shape[1], axis=0)
        smooth = counts + _SHARED_ROWS * law
        tables.append(smooth / smooth.sum(axis=1, keepdims=True))
    shares = weights.sum(axis=0) + 1.0
    return _mixture(shares / shares.sum(), tables, np.tile(np.arange(classes.shape[1]), n_components), rows, values)


def _mixture(
    weights: NDArray[np.float64],
    tables: list[Matrix],
    class_of: NDArray[np.intp],
    rows: Rows,
    values: list[list[str]],
) -> NaiveBayesMixture:
    names = [f"{state}" for state in range(len(weights))]
    parts = NaiveBayes(
        weights, tables, feature_names=rows.names, class_names=names, value_names=values, class_variable="component"
    )
    return NaiveBayesMixture(parts, [str(label) for label in class_of])


def true_model(recipe: Recipe, rows: Rows) -> BayesianClassifier:
    """Return the classifier that knows the recipe, on the bins of the rows."""
    labels, means, deviations = cube_states(recipe)
    tables = []
    for place, cuts in enumerate(rows.edges):
        below = ndtr((cuts[None, :] - means[:, [place]]) / deviations[:, [place]])
        tables.append(np.diff(np.hstack([np.zeros((len(labels), 1)), below, np.ones((len(labels), 1))]), axis=1))
    values = [[str(value) for value in range(size)] for size in rows.sizes]
    return BayesianClassifier(_mixture(np.full(len(labels), 1 / len(labels)), tables, labels, rows, values))


# Policies of asking, and selections that are the same for all rows.

_ROWS_OF_ORDER = 200
# Evaluations after which the search for a trimming stops, and the deepest optimal trees.
_EVALUATIONS, _DEEPEST = 2000, 4
Result = dict[str, vocab.Json]


@dataclass(frozen=True, eq=False)
class Task:
    """What methods are given: rows, the model with its size, and settings."""

    problem: AskedData
    rows: Rows
    model: BayesianClassifier
    size: str
    candidates: int
    seed: int

    @functools.cached_property
    def groups(self) -> dict[str, list[str]] | None:
        """Features that come together: the columns of the context."""
        return {"context": self.rows.names[:CONTEXTS]} if self.problem.recipe == "cube_nm" else None

    @functools.cached_property
    def questions(self) -> list[list[int]]:
        """The columns of each question, that of the context last."""
        single = [[place] for place in range(CONTEXTS if self.groups else 0, len(self.rows.sizes))]
        return [*single, list(range(CONTEXTS))] if self.groups else single

    def result(self, budget: int, cost: float, predictions: NDArray[Any], seconds: float) -> Result:
        """Return what a method reached on the test rows."""
        accuracy = self.rows.accuracy(predictions)
        return {"budget": budget, "cost": cost, "accuracy": accuracy, "seconds": seconds}

    def ask(self, look_ahead: Literal[1, 2] = 1, *, true: bool = False, **limits: Any) -> Result:
        """Ask the test rows by a policy of the model, or of the true one, within a budget or until `stop_at`."""
        model = true_model(self.problem.recipe, self.rows) if true and self.problem.recipe else self.model
        answers = self.rows.table(self.rows.test)
        nothing = pd.DataFrame(None, index=answers.index, columns=answers.columns, dtype=object)
        options: dict[str, Any] = {"groups": self.groups, "look_ahead": look_ahead, **limits}
        found, seconds = timed(lambda: model.acquire(nothing, answers, **options))
        return self.result(limits.get("budget", 0), float(found.costs.mean()), found.predictions, seconds)

    def shown(self, columns: NDArray[np.bool_], budget: int, seconds: float) -> Result:
        """Predict by the model from some columns, the same of all test rows or those of each."""
        hidden = ~np.broadcast_to(columns, self.rows.test.shape)
        table = self.rows.table(self.rows.test, hidden)
        predictions = self.model.acquire(table, table, budget=0).predictions  # asks nothing
        return self.result(budget, float(min(budget, len(self.questions))), predictions, seconds)

    def columns_of(self, questions: Sequence[int]) -> NDArray[np.bool_]:
        """Return which columns some questions show."""
        return np.isin(np.arange(len(self.rows.sizes)), [column for one in questions for column in self.questions[one]])

    @functools.cached_property
    def order(self) -> tuple[list[int], float]:
        """The questions that tell most on average over training rows, each given those before; and the seconds."""
        return timed(self._ordered)

    def _ordered(self) -> list[int]:
        some = np.random.default_rng(self.seed).permutation(len(self.rows.train))[:_ROWS_OF_ORDER]
        codes, order = self.rows.train[some], list[int]()
        while len(order) < min(max(*self.problem.budgets, self.candidates), len(self.questions)):
            table = self.rows.table(codes, np.broadcast_to(~self.columns_of(order), codes.shape))
            found = self.model.next_feature(table, groups=self.groups)
            names = [self.rows.names[one[0]] if len(one) == 1 else "context" for one in self.questions]
            gains = np.asarray(found.gains)[:, [found.questions.index(name) for name in names]].mean(axis=0)
            gains[order] = -np.inf
            order.append(int(gains.argmax()))
        return order

    @functools.cached_property
    def refitted(self) -> tuple[list[int], float]:
        """The questions that a regression, fitted anew with each, chooses by its loss on validation rows; seconds."""
        return timed(self._refitted)

    def _refitted(self) -> list[int]:
        chosen: list[int] = []
        left = self.order[0][: self.candidates]
        while left and len(chosen) < max(self.problem.budgets):
            losses = [self._regression([*chosen, question])[1] for question in left]
            chosen.append(left.pop(int(np.argmin(losses))))
        return chosen

    def _regression(self, questions: Sequence[int]) -> tuple[Callable[[Codes], NDArray[Any]], float]:
        """Return the predictions of a regression of the answers to some questions, and its validation loss."""
        columns = np.flatnonzero(self.columns_of(questions))
        rows = self.rows
        model = fit_logistic_regression(rows.design(rows.train, columns), rows.train_labels, 1.0)
        loss = log_loss(rows.valid_labels, model.predict_proba(rows.design(rows.valid, columns)))
        return lambda codes: np.asarray(model.predict(rows.design(codes, columns))).astype(str), loss


def _static(task: Task, budget: int) -> Result:
    order, seconds = task.order
    return task.shown(task.columns_of(order[:budget]), budget, seconds)


def _trimmed(task: Task, budget: int) -> Result:
    train = task.rows.table(task.rows.train)
    options: dict[str, Any] = {"groups": task.groups, "rows": train, "rows_weight": 1.0}
    found, seconds = timed(lambda: trim(task.model, budget, evaluation_limit=_EVALUATIONS, **options))
    kept = np.isin(task.rows.names, found.features)
    predictions = found.classifier.predict(task.rows.table(task.rows.test).loc[:, kept])
    return task.result(budget, float(budget), predictions, seconds)


def _at_random(task: Task, budget: int) -> Result:
    rng = np.random.default_rng(task.seed)
    chosen = [rng.permutation(len(task.questions))[:budget].tolist() for _ in task.rows.test]
    return task.shown(np.stack([task.columns_of(questions) for questions in chosen]), budget, 0.0)


def _by_regression(task: Task, budget: int) -> Result:
    chosen, seconds = task.refitted
    predictions = task._regression(chosen[:budget])[0](task.rows.test)
    return task.result(budget, float(min(budget, len(chosen))), predictions, seconds)


def _tree(task: Task, budget: int) -> Result:
    rows, tree = task.rows, DecisionTreeClassifier(max_depth=budget, random_state=0)
    train, test = rows.design(rows.train), rows.design(rows.test)
    _, seconds = timed(lambda: tree.fit(train, rows.train_labels.astype(str)))
    question_of = np.empty(len(rows.sizes), dtype=np.intp)
    for question, columns in enumerate(task.questions):
        question_of[columns] = question
    # A row pays once for each question on its way.
    compared = np.where(tree.tree_.feature < 0, -1, question_of[rows.owners][tree.tree_.feature])
    paths = tree.decision_path(test)
    asked = [len(set(compared[nodes.indices].tolist()) - {-1}) for nodes in paths]
    return task.result(budget, float(np.mean(asked)), tree.predict(test), seconds)


def _optimal_tree(task: Task, budget: int) -> Result:
    try:
        package = importlib.import_module("pystreed")
    except ImportError as error:
        raise NotAvailableError("the package pystreed is not installed") from error
    rows, depth = task.rows, min(budget, _DEEPEST)
    train, test = (
        np.hstack([column[:, None] > np.arange(size - 1) for column, size in zip(part.T, rows.sizes, strict=True)])
        for part in (rows.train, rows.test)
    )
    tree = package.STreeDClassifier("accuracy", max_depth=depth, time_limit=_TREE_SECONDS)
    _, seconds = timed(lambda: tree.fit(train.astype(int), rows.train_labels))
    predictions = np.asarray(tree.predict(test.astype(int))).astype(int).astype(str)
    return task.result(budget, float(depth), predictions, seconds)


_TREE_SECONDS = 60


class Policy(NamedTuple):
    """A method: its title, its function, whether it stops by itself, and the problems that it is for."""

    title: str
    ask: Callable[..., Result]
    is_soft: bool = False
    applies: Callable[[AskedData], bool] = lambda problem: True


METHODS = {
    "greedy": Policy("greedy asking", Task.ask, True),
    "two_steps": Policy(
        "asking two steps ahead", functools.partial(Task.ask, look_ahead=2), True, lambda problem: problem.two_steps
    ),
    "greedy_true": Policy(
        "greedy asking, true model", functools.partial(Task.ask, true=True), False, lambda problem: bool(problem.recipe)
    ),
    "two_steps_true": Policy(
        "asking two steps ahead, true model",
        functools.partial(Task.ask, look_ahead=2, true=True),
        False,
        lambda problem: bool(problem.recipe) and problem.two_steps,
    ),
    "static": Policy("most telling on average", _static),
    "trimming": Policy("trimming", _trimmed),
    "tree": Policy("tree of that depth", _tree),
    "optimal_tree": Policy("optimal tree (STreeD)", _optimal_tree),
    "regression": Policy("greedy by refitted regression", _by_regression),
    "random": Policy("random", _at_random),
}
