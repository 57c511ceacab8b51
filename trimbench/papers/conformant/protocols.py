"""What the NaCL experiments share: a data set as it is split and encoded, and its classifier; and Table 2."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from trimbench._typing import Matrix, Vector
from trimbench.conformant.conform import linear_scores
from trimbench.conformant.logistic_regression import fit_logistic_regression
from trimbench.papers.measures import accuracy, weighted_f1
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.data.declarations import DatasetDeclaration, is_here
from trimbench.reproduction.data.encodings import BinaryEncoding, CutRule, encode_binary
from trimbench.reproduction.data.masks import split_rows
from trimbench.reproduction.execution.code_hash import code_version
from trimbench.reproduction.execution.job import COUNT, NUMBER, POSITIVE, SHARE, TEXT, job, list_of, seed_for
from trimbench.reproduction.execution.store import Arrays, remember
from trimbench.reproduction.project import project

if TYPE_CHECKING:
    from trimbench.reproduction.data.dataset import Dataset


Encoding = Literal["paper", "authors"]
Solver = Literal["optimum", "lbfgs_2019"]


@vocab.settings
class CutRules:
    """How each encoding turns numbers into zeros and ones."""

    paper: CutRule = "mean"
    authors: CutRule = "mean"


@vocab.settings
class Protocol:
    """How a data set is split, encoded and fitted; a file of the configuration group ``protocol``.

    Attributes
    ----------
    dataset : str
        A declared data set.
    title : str
        Its name in tables; default: that of the protocol.
    drop : list of str
        Columns that are not features.
    labels : list of str
        If given, rows with any other label in a feature are dropped.
    classes : list of str
        If given, rows of other classes are dropped; also the order of the classes.
    grouped : list of str
        If given, these classes are one class, and all others another.
    merged : dict from feature to prefix
        Indicator columns that together are one feature.
    cut : CutRules
    bins, cuts, distinct
        As in `trimbench.reproduction.data.encodings.BinaryEncoding`.
    image : list of int
        Height and width where the features are pixels.
    test_rows : list of int
        If given, the rows of the test part, by their places in the canonical order of the data set's rows.
    test_rows_file : str
        If given, a CSV in the folder ``conf/protocol`` of trimbench whose column ``row`` has the rows of the test part,
        where they are too many for a list.
    test_rows_sha256 : str
        SHA-256 of that file.
    test_fraction : float
        Share of randomly chosen test rows where none are given.
    inverse_penalty : float
        C of the logistic regression.
    solver : {"optimum", "lbfgs_2019"}
        ``"optimum"``: the logistic regression is fitted to convergence. ``"lbfgs_2019"``: it is fitted as scikit-learn
        did when the paper was written, with at most `max_iterations` steps; see `fit_lbfgs`.
    max_iterations : int
        For ``"lbfgs_2019"``.
    smoothing : float
        Pseudo-count of conformant learning and of naive Bayes.
    """

    dataset: str
    title: str = ""
    drop: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    grouped: list[str] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    cut: CutRules = field(default_factory=CutRules)
    bins: Annotated[int, Field(ge=2)] = 5
    cuts: dict[str, list[float]] = field(default_factory=dict)
    distinct: list[str] = field(default_factory=list)
    image: list[int] = field(default_factory=list)
    test_rows: list[NonNegativeInt] = field(default_factory=list)
    test_rows_file: str = ""
    test_rows_sha256: str = ""
    test_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.2
    inverse_penalty: PositiveFloat = 1.0
    solver: Solver = "optimum"
    max_iterations: PositiveInt = 1000
    smoothing: NonNegativeFloat = 1.0

    def encoding(self, name: Encoding) -> BinaryEncoding:
        """Return one of the two encodings."""
        if name == "paper":
            return BinaryEncoding(self.cut.paper, bins=self.bins, merged=self.merged)
        return BinaryEncoding(
            self.cut.authors, bins=self.bins, cuts=self.cuts, distinct=tuple(self.distinct), merged=self.merged
        )


@dataclass(frozen=True)
class Task:
    """A data set with its protocol (called `name`) and encoding: the parameter ``task`` of the jobs."""

    name: str
    protocol: Protocol
    data: vocab.Input
    encoding: Encoding
    split_seed: int

    def __hash__(self) -> int:
        return hash((self.name, self.encoding, self.split_seed))

    @property
    def title(self) -> str:
        """Name in tables."""
        return self.protocol.title or self.name


def make_task(inputs: vocab.Inputs, name: str, encoding: Encoding, seed: int, **changes: object) -> Task:
    """Return the task of a protocol, or of a data set without one (80:20, C = 1).

    The seed is that of the random split, where the protocol does not fix it. The `changes` replace entries of the
    protocol, as in ``inverse_penalty=1.0``.

    Raises
    ------
    ConfigurationError
        When there is no protocol and no data set of that name, a protocol has a wrong key, or the user's own data has
        a single class.
    """
    known = name in inputs.catalogue.names("protocol")
    values = inputs.catalogue.mapping("protocol", name) if known else {"dataset": name}
    protocol = vocab.validated(Protocol, {**values, **changes}, f"protocol {name}")
    data = inputs.dataset(protocol.dataset)
    if isinstance(data.declaration, DatasetDeclaration) and not data.declaration.facts.sha256:
        labels = [str(label) for label in inputs.loaded(data.name).target.cat.categories]
        if len(labels) < 2:
            raise vocab.ConfigurationError(f"data set {data.name} must have two classes or more, got {labels}")
    split_seed = seed_for(purpose="split", dataset=protocol.dataset, seed=seed)
    return Task(name, protocol, data, encoding, split_seed)


# The rows of a task as zeros and ones, encoded once and remembered.

_SIZES = ("rows", "features", "dropped")


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Training and test rows as zeros and ones, or as numbers.

    Attributes
    ----------
    train, test : ndarray of shape (n_rows, n_columns)
    train_labels, test_labels : ndarray of int
        Positions in `classes`.
    classes : tuple of str
    features : tuple of str
    columns : tuple of tuple of int
        Columns of each feature, one feature after the other.
    sizes : dict of str to int
        Rows and features of the data as it was loaded, and rows that were dropped.
    """

    train: NDArray[Any]
    test: NDArray[Any]
    train_labels: NDArray[Any]
    test_labels: NDArray[Any]
    classes: tuple[str, ...]
    features: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    sizes: dict[str, int]

    @property
    def owners(self) -> NDArray[np.intp]:
        """The feature of each column."""
        return np.repeat(np.arange(len(self.columns)), [len(columns) for columns in self.columns])

    @property
    def by_column(self) -> EncodedRows:
        """The same rows, with every column as a feature of its own."""
        n_columns = self.train.shape[1]
        names = tuple(str(column) for column in range(n_columns))
        return dataclasses.replace(self, features=names, columns=tuple((column,) for column in range(n_columns)))

    def hide(self, rows: NDArray[np.uint8], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return rows as numbers, with NaN in the columns of missing features."""
        values = rows.astype(np.float64)
        values[missing[:, self.owners]] = np.nan
        return values


def feature_codes(rows: NDArray[Any], columns: Sequence[Sequence[int]]) -> NDArray[np.intp]:
    """Return rows of zeros and ones as one number for each feature: the place of its first 1, from 1; 0 without any."""
    found = np.empty((len(rows), len(columns)), dtype=np.intp)
    for place, own in enumerate(columns):
        part = rows[:, list(own)]
        found[:, place] = np.where(part.any(axis=1), part.argmax(axis=1) + 1, 0)
    return found


@lru_cache(maxsize=3)
def encoded_rows(task: Task) -> EncodedRows:
    """Return the rows of a task: from memory, from the user's cache folder, or from the data."""
    if task.protocol.test_rows or task.protocol.test_rows_file:  # whatever the seed of the split is
        task = dataclasses.replace(task, split_seed=0)
    key: dict[str, vocab.Json] = {"task": dataclasses.asdict(task), "code": code_version(f"{__name__}:count_rows")}
    arrays = remember("rows", key, lambda: _pack(_encode(task)))
    width = int(arrays["width"])
    train, test = (np.unpackbits(arrays[part], axis=1, count=width) for part in ("train", "test"))
    return EncodedRows(
        train,
        test,
        arrays["train_labels"],
        arrays["test_labels"],
        tuple(arrays["classes"].tolist()),
        tuple(arrays["features"].tolist()),
        tuple(tuple(range(a, b)) for a, b in itertools.pairwise(arrays["edges"].tolist())),
        {name: int(value) for name, value in zip(_SIZES, arrays["sizes"], strict=True)},
    )


def rows_at_hand(task: Task) -> EncodedRows | None:
    """Return the rows of a task if its data is on this machine, for checks before any job runs."""
    here = is_here(task.data.declaration, Cache.from_environment(offline=True))
    return encoded_rows(task) if here else None


@job(
    {
        **dict.fromkeys(("n_train", "n_test", "n_columns", "n_features", "n_classes", *_SIZES), COUNT),
        "class_counts": list_of(COUNT),
        "most_values": COUNT,
        "most_valued": TEXT,
    }
)
def count_rows(task: Task) -> dict[str, vocab.Json]:
    """Encode the rows of a task and count rows, columns, features and classes."""
    rows = encoded_rows(task)
    counts = np.bincount(np.concatenate([rows.train_labels, rows.test_labels]), minlength=len(rows.classes))
    most, widest = max((len(columns), feature) for columns, feature in zip(rows.columns, rows.features, strict=True))
    return {
        **rows.sizes,
        "most_values": most,
        "most_valued": widest,
        "n_train": len(rows.train),
        "n_test": len(rows.test),
        "n_columns": rows.train.shape[1],
        "n_features": len(rows.features),
        "n_classes": len(rows.classes),
        "class_counts": counts.tolist(),
    }


def _encode(task: Task) -> EncodedRows:
    protocol = task.protocol
    loaded = vocab.dataset_of(task.data)
    keep = _kept(loaded, protocol)
    train, test = _split(len(loaded.features), keep, protocol, task.split_seed)
    frame = loaded.features.drop(columns=protocol.drop)
    table = encode_binary(frame.iloc[train], frame.iloc[test], protocol.encoding(task.encoding))
    classes = tuple(protocol.classes or [str(label) for label in loaded.target.cat.categories])
    position = {label: place for place, label in enumerate(classes)}
    if protocol.grouped:
        position = {label: int(label in protocol.grouped) for label in classes}
        classes = ("the others", ", ".join(protocol.grouped))
    labels = np.array([position.get(str(label), -1) for label in loaded.target.cat.categories])
    codes = labels[loaded.target.cat.codes.to_numpy()].astype(np.int64)
    sizes = {"rows": len(loaded.features), "features": loaded.features.shape[1], "dropped": int((~keep).sum())}
    return EncodedRows(
        table.train, table.test, codes[train], codes[test], classes, table.features, table.columns, sizes
    )


def _kept(loaded: Dataset, protocol: Protocol) -> NDArray[np.bool_]:
    keep = np.ones(len(loaded.features), dtype=bool)
    if protocol.labels:
        keep &= loaded.features.isin(protocol.labels).all(axis=1).to_numpy()
    if protocol.classes:
        missing = sorted(set(protocol.classes) - set(map(str, loaded.target.cat.categories)))
        if missing:
            raise ValueError(f"classes must be labels of {protocol.dataset}, got {missing}")
        keep &= loaded.target.isin(protocol.classes).to_numpy()
    return keep


def _split(
    n_rows: int, keep: NDArray[np.bool_], protocol: Protocol, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    fixed = _listed_rows(protocol) if protocol.test_rows_file else protocol.test_rows
    if fixed:
        is_test = np.zeros(n_rows, dtype=bool)
        is_test[fixed] = True
        return np.flatnonzero(keep & ~is_test), np.flatnonzero(keep & is_test)
    rows = np.flatnonzero(keep)
    train, test = split_rows(len(rows), protocol.test_fraction, seed)
    return rows[train], rows[test]


def _listed_rows(protocol: Protocol) -> list[int]:
    """Return the test rows of the protocol's file, which must be the declared one: jobs depend on what it says."""
    content = (project().configuration / "protocol" / protocol.test_rows_file).read_bytes()
    got = hashlib.sha256(content).hexdigest()
    if got != protocol.test_rows_sha256:
        raise vocab.ConfigurationError(
            f"test_rows_sha256 must be that of {protocol.test_rows_file} ({got}), got {protocol.test_rows_sha256!r}"
        )
    return [int(line) for line in content.decode().split()[1:]]


def _pack(rows: EncodedRows) -> Arrays:
    return {
        "train": np.packbits(rows.train, axis=1),
        "test": np.packbits(rows.test, axis=1),
        "width": np.array(rows.train.shape[1]),
        "train_labels": rows.train_labels,
        "test_labels": rows.test_labels,
        "classes": np.array(rows.classes),
        "features": np.array(rows.features),
        "edges": np.concatenate([[0], np.cumsum([len(columns) for columns in rows.columns])]),
        "sizes": np.array([rows.sizes[name] for name in _SIZES]),
    }


# The logistic regressions of the NaCL experiments: fitted once for each task, then remembered.

# On the gradient of the mean loss. The loss hardly depends on the weights of rare values, which a fit finds last, but
# predictions with much missing depend on them: with 1e-6, weights for CovType were off by up to 0.2.
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted logistic regression, and the iterations and seconds of its fit on the machine that did it.

    The weights have the shape (n_columns, n_classes).
    """

    weights: Matrix
    biases: Vector
    iterations: int
    seconds: float

    def scores(self, rows: NDArray[np.uint8] | Matrix) -> Matrix:
        """Return the linear scores of complete rows."""
        return np.asarray(rows @ self.weights + self.biases)

    def probabilities(self, rows: NDArray[np.uint8] | Matrix) -> Matrix:
        """Return the class probabilities of complete rows."""
        scores = self.scores(rows)
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


@lru_cache(maxsize=8)
def fitted(task: Task) -> Fitted:
    """Return the logistic regression of a task."""
    rows, protocol = encoded_rows(task), task.protocol
    # The key is all that the optimum depends on, whatever the names of the data and the task.
    digest = hashlib.sha256(np.packbits(rows.train, axis=1).tobytes())
    digest.update(rows.train_labels.astype("<i8").tobytes())
    key: dict[str, vocab.Json] = {
        "rows": digest.hexdigest(),
        "shape": list(rows.train.shape),
        "C": protocol.inverse_penalty,
        "solver": protocol.solver,
        **({} if protocol.solver == "optimum" else {"iterations": protocol.max_iterations}),
        "code": code_version(f"{__name__}:fit_task"),
    }
    arrays = remember("logistic", key, lambda: _fit(rows, protocol))
    iterations, seconds = arrays["run"].tolist()
    return Fitted(arrays["weights"], arrays["biases"], int(iterations), seconds)


def _fit(rows: EncodedRows, protocol: Protocol) -> Arrays:
    start = time.perf_counter()
    places, counts = distinct_rows(rows.train, rows.train_labels)
    distinct, labels, penalty = rows.train[places], rows.train_labels[places], protocol.inverse_penalty
    if protocol.solver == "lbfgs_2019":
        n_classes = len(rows.classes)
        weights, biases, steps = fit_lbfgs(distinct, labels, counts, n_classes, penalty, protocol.max_iterations)
    else:
        classifier = fit_logistic_regression(distinct, labels, penalty, sample_weight=counts, tol=_TOLERANCE)
        (weights, biases, _), steps = linear_scores(classifier), int(classifier.n_iter_[0])
    return {"weights": weights, "biases": biases, "run": np.array([steps, time.perf_counter() - start])}


def distinct_rows(rows: NDArray[np.uint8], labels: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where each binary row with its label occurs first, in order, and how often it occurs.

    With these counts as weights, the distinct rows have the likelihood of all: CovType has thirty times fewer.
    """
    keys = np.hstack([np.packbits(rows, axis=1), labels.astype("<i8")[:, None].view(np.uint8)])
    whole = np.ascontiguousarray(keys).view(f"V{keys.shape[1]}").ravel()
    _, places, counts = np.unique(whole, return_index=True, return_counts=True)
    order = np.argsort(places)
    return places[order], counts[order]


@job(iterations=COUNT, fit_seconds=POSITIVE, test_accuracy=SHARE, test_f1_weighted=SHARE, test_entropy=NUMBER)
def fit_task(task: Task) -> dict[str, vocab.Json]:
    """Fit the logistic regression of a task and test it with all features."""
    rows, classifier = encoded_rows(task), fitted(task)
    probabilities = classifier.probabilities(rows.test)
    predicted = classifier.scores(rows.test).argmax(axis=1)
    return {
        "iterations": classifier.iterations,
        "fit_seconds": classifier.seconds,
        "test_accuracy": accuracy(rows.test_labels, predicted),
        "test_f1_weighted": weighted_f1(rows.test_labels, predicted, len(rows.classes)),
        "test_entropy": float(-(probabilities * np.log(probabilities + 1e-14)).sum(axis=1).mean()),
    }


# Table 2: the data sets, and the logistic regressions that are fitted to them.

_PARTS = {"rows": count_rows, "classifier": fit_task}
# Table 2 calls these balanced: each class has an equal share. The largest class of the others has more than that.
_BALANCED = ("mnist", "fashion")
_TRAINING_ROWS_PRINTED = ("mnist", "fashion")


@vocab.settings
class Table2:
    """Size, classes and features of the data sets (Table 2), with both encodings and the classifiers.

    The files of the `named_rows` have one more column, which names each row: counting it is an inferred set-up.
    """

    datasets: vocab.Axis[str]
    encodings: vocab.Axis[Encoding]
    named_rows: list[str] = field(default_factory=list)
    seed: int = 0

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return two jobs for each data set and encoding: its rows and its classifier."""
        # Fits of large data sets take a minute or two each, and another fit of the same rows waits for the first: the
        # data sets take turns, and the encoding with more columns comes first.
        tasks = [make_task(inputs, name, one, self.seed) for one in reversed(self.encodings) for name in self.datasets]
        return [
            vocab.Cell.of({"dataset": task.name, "encoding": task.encoding, "part": part}, function, task=task)
            for part, function in reversed(_PARTS.items())
            for task in tasks
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the data sets as the paper lists them, their encodings, and the classifiers."""
        printed_rows, encoded = [], []
        numbers: list[vocab.Number] = []
        for name in self.datasets:
            for encoding in self.encodings:
                sizes, fits = (vocab.successes(rows, dataset=name, encoding=encoding, part=part) for part in _PARTS)
                if sizes.empty:
                    continue
                size = sizes.iloc[0]
                if encoding == self.encodings[0]:
                    counts, n_rows = size["class_counts"], "n_train" if name in _TRAINING_ROWS_PRINTED else "rows"
                    share = 100 * max(counts) / sum(counts)
                    values = (float(size[n_rows]) / 1000, int(size["n_classes"]), share, int(size["features"]))
                    printed = dict(zip(_PRINTED, values, strict=True))
                    printed_rows.append({"data": name} | printed)
                    share = "balanced_percent" if name in _BALANCED else "unbalanced_percent"
                    quantities = ("size_thousands", "classes", share, "features")
                    found = vocab.numbers_of(name, dict(zip(quantities, printed.values(), strict=True)), sizes)
                    if name in self.named_rows:
                        named = vocab.Explanation("the name of the sequence is counted, too", printed["features"] + 1)
                        found[-1] = dataclasses.replace(found[-1], explanation=named)
                    numbers += found
                line = {"data": name, "encoding": encoding, **{title: size[key] for key, title in _COUNTED.items()}}
                encoded.append(line | ({t: fits.iloc[0][key] for key, t in _FIT.items()} if len(fits) else {}))
        tables = (
            vocab.Table.of("Table 2: the data sets", printed_rows, {"data": "", **_PRINTED}),
            vocab.Table.of(_ENCODED_TITLE, encoded, _ENCODED, name="encoded"),
        )
        return vocab.Outcome(tables, (), [*numbers, *self._most_values(rows)])

    def _most_values(self, rows: pd.DataFrame) -> list[vocab.Number]:
        """Return the largest number of values of a categorical feature, with what contradicts the printed one."""
        done = vocab.successes(rows, part="rows")
        if not {"adult", "covtype"} <= set(done["dataset"]) or "most_values" not in done:
            return []
        widest = done.sort_values("most_values").to_dict("records")[-1]
        most, proof = int(widest["most_values"]), ""
        if most != vocab.printed_numbers("conformant/table2")["all data sets", "values"].value:
            feature = f"{widest['most_valued']} of {widest['dataset']}"
            proof = f"{feature}, a data set of Table 2, has {most} values, a missing one included."
        return [vocab.number_of("all data sets", "values", most, done, contradiction=proof)]


_PRINTED = {"size (1000)": "", "classes": "", "largest class (%)": ".1f", "features": ""}
_COUNTED = {"n_train": "train rows", "n_test": "test rows", "n_columns": "columns", "n_features": "features"}
_FIT = {
    "test_accuracy": "accuracy",
    "test_f1_weighted": "weighted F1",
    "test_entropy": "entropy",
    "iterations": "iterations",
    "fit_seconds": "seconds",
}
_ENCODED_TITLE = "As they are encoded, and the logistic regression on the test rows with all features"
_ENCODED = {
    "data": "",
    "encoding": "",
    **dict.fromkeys(_COUNTED.values(), ".0f"),
    **dict.fromkeys(["accuracy", "weighted F1", "entropy"], ".4f"),
    "iterations": ".0f",
    "seconds": ".1f",
}


# Logistic regression as the solver "lbfgs" of scikit-learn 0.20 and 0.21 fitted it, when the paper was written.

# SciPy's bounds, which scikit-learn left alone: the fit ends where an iteration gains less than 2.2e-9 of the loss.
_LEAST_GAIN = 1e7 * float(np.finfo(np.float64).eps)
_GRADIENT_TOLERANCE = 1e-4


def fit_lbfgs(
    rows: NDArray[np.uint8],
    labels: NDArray[np.int64],
    counts: NDArray[np.intp],
    n_classes: int,
    inverse_penalty: float,
    max_iterations: int,
) -> tuple[Matrix, Vector, int]:
    """Return weights, biases and the number of iterations.

    It minimises the sum of the losses, not their mean as later versions do, and stops before full convergence: where
    the columns of each feature add up to one, the biases and the level of the weights are then far from the optimum.
    That affects imputation by a constant, such as the maximum, and hardly anything else.

    Two classes have one vector of weights, that of the second class; more classes have one each. Rows count as often
    as `counts` says.
    """
    from scipy.optimize import minimize
    from scipy.sparse import csr_matrix

    features = csr_matrix(rows, dtype=np.float64)
    transposed = features.T.tocsr()
    weight, truth = counts.astype(np.float64)[:, None], np.eye(n_classes)[labels]
    own = slice(1 if n_classes == 2 else 0, None)
    shape = (rows.shape[1] + 1, n_classes - 1 if n_classes == 2 else n_classes)

    def unpacked(parameters: Vector) -> Matrix:
        whole = np.zeros((shape[0], n_classes))
        whole[:, own] = parameters.reshape(shape)
        return whole

    def loss(parameters: Vector) -> tuple[float, Vector]:
        whole = unpacked(parameters)
        scores = np.asarray(features @ whole[:-1] + whole[-1])
        scores -= scores.max(axis=1, keepdims=True)
        exponentials = np.exp(scores)
        totals = exponentials.sum(axis=1, keepdims=True)
        value = -float((weight * truth * (scores - np.log(totals))).sum()) + float(
            (whole[:-1] ** 2).sum() / (2 * inverse_penalty)
        )
        residuals = ((exponentials / totals - truth) * weight)[:, own]
        slopes = transposed @ residuals + whole[:-1, own] / inverse_penalty
        return value, np.vstack([slopes, residuals.sum(axis=0)]).ravel()

    found = minimize(
        loss,
        np.zeros(shape[0] * shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iterations, "ftol": _LEAST_GAIN, "gtol": _GRADIENT_TOLERANCE},
    )
    whole = unpacked(found.x)
    return whole[:-1], whole[-1], int(found.nit)
