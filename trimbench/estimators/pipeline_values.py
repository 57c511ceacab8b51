"""Fitted models as distributions with a classifier, and how raw columns become their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from trimbench.conformant.conform import check_probabilities, conform, linear_scores
from trimbench.estimators.columns import checked_rows
from trimbench.estimators.fitted_pipeline import (
    NaiveBayesIndicators,
    NaiveBayesScores,
    is_naive_bayes,
    split_pipeline,
    transformed_by,
    unwrapped,
)
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.discretize import ColumnRule, Discretizer, interval_names
from trimbench.networks.learning import learn
from trimbench.networks.mixture import NaiveBayesMixture
from trimbench.networks.naive_bayes import NaiveBayes, free_class_variable
from trimbench.networks.values import cell_text
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.model import short

if TYPE_CHECKING:
    import pandas as pd


def distribution_of(
    model: Model,
    target: str | None,
    threshold: float,
    features: Sequence[str] | None = None,
    positive: str | None = None,
) -> BayesianClassifier:
    """Return the classifier of a model; with two classes, `positive` (default: the second) has the threshold."""
    names = _classes(model, target)
    if len(names) == 2:
        return BayesianClassifier(model, target, positive=positive or names[1], features=features, threshold=threshold)
    return BayesianClassifier(model, target, features=features)


def columns_of(
    model: Any, target: str | None, threshold: float, rows: pd.DataFrame | None = None
) -> tuple[BayesianClassifier, Discretizer, NDArray[Any]]:
    """Return the classifier of a fitted model, how columns become its values, and the class labels.

    A logistic regression needs rows, as a table of raw columns.
    """
    if isinstance(model, NaiveBayes | NaiveBayesMixture | BayesianNetwork):
        # scikit-learn's scores assume sorted classes.
        labels: NDArray[Any] = np.array(sorted(_classes(model, target)))
        classifier = distribution_of(model, target, threshold, positive=str(labels[1]))
        pairs = zip(classifier.features, classifier.value_names, strict=True)
        return classifier, Discretizer(tuple(ColumnRule(name, values) for name, values in pairs)), labels
    check_convertible(model)
    if target is not None:
        raise ValueError(
            f"target must be left out for a fitted {type(model).__name__}, whose class is the one that it was "
            f"fitted to predict, got {short(target)}; only a BayesianNetwork needs it"
        )
    model = unwrapped(model)
    if not is_naive_bayes(model):
        parts = ColumnScores.of(model, rows)
        return distribution_of(parts.model(rows), None, threshold), Discretizer(parts.rules), parts.classes
    converted = NaiveBayes.from_sklearn(model)
    NaiveBayesScores.of(model)  # refuses zeros, with which some rows would have no probabilities of classes
    classifier = distribution_of(converted, None, threshold)
    from sklearn.naive_bayes import BernoulliNB

    binary = isinstance(model, BernoulliNB)
    cuts = ((0.5 if model.binarize is None else float(model.binarize)),) if binary else None
    pairs = zip(classifier.features, classifier.value_names, strict=True)
    return classifier, Discretizer(tuple(ColumnRule(name, values, cuts) for name, values in pairs)), model.classes_


def rows_of(model: Any, rows: Any) -> pd.DataFrame | None:
    """Return rows as a table of the columns that a fitted estimator takes; None without rows, or for other models."""
    if rows is None or not is_estimator(model):
        return None
    split_pipeline(model)  # an estimator that is not fitted says so
    return checked_rows(unwrapped(model), rows)


def is_estimator(model: Any) -> bool:
    """Return whether something is an object with the methods of a classifier of scikit-learn."""
    return hasattr(model, "fit") and hasattr(model, "predict") and not isinstance(model, type)


def check_convertible(model: Any) -> None:
    """Raise a TypeError that says what to write, unless something may be a fitted estimator."""
    if is_estimator(model):
        return
    if isinstance(model, BayesianClassifier):
        raise TypeError(
            "model must be a fitted estimator or a model, got BayesianClassifier, which is a classifier of categories; "
            "trim it with tb.trim(classifier, budget), or give its model (classifier.model) and target"
        )
    raise TypeError(
        "model must be a fitted BernoulliNB, CategoricalNB or LogisticRegression, a pipeline that ends in one, a "
        f"NaiveBayes or a BayesianNetwork, got {type(model).__name__}; to learn a model from a table, use fit"
    )


def _classes(model: Model, target: str | None) -> Sequence[str]:
    if not isinstance(model, BayesianNetwork):
        return model.class_names
    if target is None or target not in model.nodes:
        raise ValueError(f"target must be a node of the network, one of {list(model.nodes[:8])}, got {target!r}")
    return model.states(target)


# Distributions that estimators can learn from categories.

Density = Literal["naive_bayes", "tree_augmented", "mixture"]
Model = NaiveBayes | NaiveBayesMixture | BayesianNetwork


def learned(
    density: Density,
    rows: pd.DataFrame,
    classes: NDArray[np.intp],
    class_names: Sequence[str],
    smoothing: float,
    n_components: int,
) -> tuple[Model, str]:
    """Learn a distribution over categories and the class; return it and the name of the class variable."""
    import pandas as pd

    variable = free_class_variable(rows.columns)
    labels = pd.Categorical.from_codes(classes, categories=pd.Index(class_names, dtype=str))
    target = pd.Series(labels, index=rows.index, name=variable)
    structure: Any = "tree" if density == "tree_augmented" else density
    return learn(rows, target, structure=structure, smoothing=smoothing, n_components=n_components), variable


# Fitted pipelines as sums over raw columns of few values: what each value adds to the score of each class.

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ColumnScores:
    """A fitted classifier whose scores are sums over raw columns.

    Attributes
    ----------
    columns : RawValues
        The values that each raw column is cut into.
    scores : tuple of ndarrays of shape (n_values, n_classes)
        What each value of each raw column adds to the score of each class.
    biases : ndarray of shape (n_classes,)
    classes : ndarray of shape (n_classes,)
    is_naive_bayes : bool
        Whether the scores are logarithms of joint probabilities.
    """

    columns: RawValues
    scores: tuple[Matrix, ...]
    biases: NDArray[np.float64]
    classes: NDArray[Any]
    is_naive_bayes: bool

    @classmethod
    def of(cls, estimator: Any, rows: pd.DataFrame | None) -> ColumnScores:
        """Take a fitted estimator apart.

        Raises ValueError if it is of another kind, a step is unknown, or a column has more than a few values.
        """
        steps, classifier = split_pipeline(estimator)
        first = unwrapped(estimator)
        takes_frames = hasattr(first, "feature_names_in_")
        names = [str(name) for name in getattr(first, "feature_names_in_", ())]
        names = names or [f"x{place}" for place in range(first.n_features_in_)]
        columns = raw_values(steps, names, takes_frames, rows)
        made = transformed_by(steps, columns.table(), takes_frames)
        if isinstance(classifier, NaiveBayesScores):
            biases, classes = classifier.log_prior, classifier.classes_
            _check_known(steps.estimator, columns, made)
            added = np.where(made[:, :, None] == 1, classifier.log_ones, classifier.log_zeros)
        else:
            weights, biases, classes = linear_scores(classifier)
            check_probabilities(classifier, made, weights, biases)
            added = made[:, :, None] * weights
        scores = tuple(
            added[: len(rule.categories), columns.sources == place].sum(axis=1)
            for place, rule in enumerate(columns.rules)
        )
        return cls(columns, scores, biases, classes, isinstance(classifier, NaiveBayesScores))

    @property
    def rules(self) -> tuple[ColumnRule, ...]:
        """How raw columns become values."""
        return self.columns.rules

    def model(self, rows: pd.DataFrame | None) -> NaiveBayes:
        """Return a distribution with the classifier's predictions.

        For a naive Bayes estimator, it is its own, given that one-hot columns have one 1. For a logistic regression, it
        is the conformant one that fits the rows best, which must then be given.
        """
        prior, tables = self._own() if self.is_naive_bayes or rows is None else self._fitted_to(rows)
        names = [rule.name for rule in self.rules]
        return NaiveBayes(
            prior,
            tables,
            feature_names=names,
            class_variable=free_class_variable(names),
            class_names=[str(label) for label in self.classes.tolist()],
            value_names=[rule.categories for rule in self.rules],
        )

    def _own(self) -> tuple[Matrix, list[Matrix]]:
        if not self.is_naive_bayes:
            raise ValueError(
                "rows must be given for a logistic regression, which says nothing about how its features are "
                "distributed, got none; write rows=X, the rows that it was fitted to"
            )
        totals = [np.logaddexp.reduce(added, axis=0) for added in self.scores]
        logs = self.biases + np.sum(totals, axis=0)
        prior = np.exp(logs - np.logaddexp.reduce(logs))
        return prior / prior.sum(), [softmax(added.T, axis=1) for added in self.scores]

    def _fitted_to(self, rows: pd.DataFrame) -> tuple[Matrix, list[Matrix]]:
        """Return the tables of the conformant model; a column of two values is binary, others are one-hot."""
        coded = Discretizer(self.rules).transform(rows)
        parts, weights, groups, places = [], [], [], []
        biases, width = self.biases.copy(), 0
        for added, name in zip(self.scores, coded.columns, strict=True):
            codes, count = coded[name].cat.codes.to_numpy(), len(added)
            biases = biases + added[0]
            # The first value of a binary column, and of a constant one, is the absence of the others.
            first = 0 if count > 2 else 1
            parts.append(codes[:, None] == np.arange(first, count))
            weights.append(added[first:] - added[0])
            places.append(list(range(width, width + count - first)))
            groups += [places[-1]] if count > 2 else []
            width += count - first
        fitted = conform(
            SimpleNamespace(coef_=np.concatenate(weights).T, intercept_=biases, classes_=self.classes),
            np.concatenate(parts, axis=1).astype(np.float64),
            categorical=groups,
            n_components=1,
            covariance="diagonal",
        )
        (part,) = fitted.components
        logs, complements = part.log_probabilities, part.log_complements
        columns = [logs[at] if len(at) > 1 else np.concatenate([complements[at], logs[at]]) for at in places]
        tables = [softmax(column.T, axis=1) if len(column) else np.ones((len(biases), 1)) for column in columns]
        prior = np.exp(fitted.log_prior)
        return prior / prior.sum(), tables


def _check_known(estimator: Any, columns: RawValues, made: Matrix) -> None:
    """Raise ValueError if the encoder before a CategoricalNB has a category that this one lacks."""
    if not hasattr(estimator, "n_categories_"):
        return
    for place, rule in enumerate(columns.rules):
        own = made[: len(rule.categories), columns.sources == place]
        if own.shape[1] and not own.any(axis=1).all():
            unknown = rule.categories[int(np.argmin(own.any(axis=1)))]
            raise ValueError(
                f"CategoricalNB must know each category of column {rule.name[:60]!r}, got none for {unknown[:60]!r}; "
                "fit it with min_categories"
            )


# Which raw column each column of a pipeline comes from, by what is known about the steps of scikit-learn.

_ADVICE = (
    "use scalers, Binarizer, KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, SimpleImputer, selectors of columns and "
    "a ColumnTransformer of them, or learn from the raw table with TrimmedClassifier().fit(X, y)"
)


@dataclass(frozen=True)
class StepColumn:
    """A column between the steps of a pipeline.

    Attributes
    ----------
    source : int
        Place of the raw column that it is made from.
    categories : tuple, optional
        The values of the raw column that an encoder knows; None for a number.
    is_raw : bool
        Whether its values are still those of the raw column, apart from missing ones.
    is_piecewise : bool
        Whether it has few values, between which it jumps as the raw number grows.
    takes_missing : bool
        Whether a missing value of the raw column is imputed.
    """

    source: int
    categories: tuple[Any, ...] | None = None
    is_raw: bool = True
    is_piecewise: bool = False
    takes_missing: bool = False


def _through(step: Any, columns: list[StepColumn], names: list[str]) -> list[StepColumn]:
    """Return what a fitted step makes of columns; ValueError if it is unknown or mixes columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_selection import SelectorMixin
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder

    if step is None or step == "passthrough":
        return columns
    if isinstance(step, NaiveBayesIndicators):
        return _indicators(step, _through(step.steps, columns, names))
    if isinstance(step, Pipeline):
        for _, part in step.steps:
            columns = _through(part, columns, names)
        return columns
    if isinstance(step, ColumnTransformer):
        return _side_by_side(step, columns, names)
    if isinstance(step, SelectorMixin):
        return [column for column, kept in zip(columns, step.get_support(), strict=True) if kept]
    if isinstance(step, OneHotEncoder | OrdinalEncoder):
        return _encoded(step, columns, names)
    if isinstance(step, KBinsDiscretizer):
        counts = step.n_bins_.tolist() if step.encode != "ordinal" else [1] * len(columns)
        stepped = [replace(column, is_raw=False, is_piecewise=True) for column in columns]
        return [column for column, count in zip(stepped, counts, strict=True) for _ in range(count)]
    return _one_to_one(step, columns)


def _one_to_one(step: Any, columns: list[StepColumn]) -> list[StepColumn]:
    import pandas as pd
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import (
        Binarizer,
        FunctionTransformer,
        MaxAbsScaler,
        MinMaxScaler,
        RobustScaler,
        StandardScaler,
    )

    if isinstance(step, FunctionTransformer) and step.func is None:  # a ColumnTransformer's passthrough
        return columns
    if isinstance(step, Binarizer):
        return [replace(column, is_raw=False, is_piecewise=True) for column in columns]
    if isinstance(step, StandardScaler | MinMaxScaler | MaxAbsScaler | RobustScaler):
        return [replace(column, is_raw=False) for column in columns]
    if isinstance(step, SimpleImputer) and not step.add_indicator and not pd.isna(step.statistics_).any():
        return [replace(column, takes_missing=True) for column in columns]
    raise ValueError(
        f"the steps of a pipeline must make each column of one raw column, and known ways, got "
        f"{type(step).__name__}; {_ADVICE}"
    )


def _encoded(step: Any, columns: list[StepColumn], names: list[str]) -> list[StepColumn]:
    """Return the columns of an encoder of categories."""
    found = []
    for place, column in enumerate(columns):
        if column.is_raw:
            column = replace(column, categories=tuple(step.categories_[place].tolist()), is_raw=False)
        elif column.categories is None and not column.is_piecewise:
            raise ValueError(
                f"{type(step).__name__} must encode raw values, got column {names[column.source][:60]!r} after another "
                "step; encode the column as it is"
            )
        found.append(column)
    if not hasattr(step, "drop_idx_"):
        return found
    # The number of columns that each gives, after categories were dropped or merged.
    return [column for column, count in zip(found, step._n_features_outs, strict=True) for _ in range(count)]


def _side_by_side(step: Any, columns: list[StepColumn], names: list[str]) -> list[StepColumn]:
    """Return the columns of a ColumnTransformer."""
    import pandas as pd

    places = pd.Series(range(len(columns)), index=getattr(step, "feature_names_in_", None))
    found: list[StepColumn] = []
    for _, part, chosen in step.transformers_:
        if part == "drop":
            continue
        by_name = any(isinstance(label, str) for label in np.atleast_1d(np.asarray(chosen, dtype=object)))
        picked = places.loc[chosen] if by_name else places.iloc[chosen]
        found += _through(part, [columns[place] for place in np.atleast_1d(picked).tolist()], names)
    return found


def _indicators(step: NaiveBayesIndicators, columns: list[StepColumn]) -> list[StepColumn]:
    """Return the zeros and ones that a naive Bayes estimator looks at."""
    counts = getattr(step.estimator, "n_categories_", None)
    if counts is None:
        cut = step.estimator.binarize is not None
        return [replace(column, is_raw=False, is_piecewise=column.is_piecewise or cut) for column in columns]
    found = []
    for column, count in zip(columns, counts.tolist(), strict=True):
        if column.is_raw:
            column = replace(column, categories=tuple(range(count)))
        found += [replace(column, is_raw=False)] * count
    return found


# Where numbers make a pipeline jump from one value to the next, to the last digit.

Vector = NDArray[np.float64]
# Larger numbers are not data, and steps that scale them would overflow.
_LARGEST = 1e100
# Steps take hardly longer for hundreds of rows than for one.
_MOST_ROWS, _MOST_PARTS = 20_000, 256


def jumps(values_at: Callable[[NDArray[np.intp], Vector], NDArray[np.float64]], n_columns: int) -> list[list[float]]:
    """Return the cuts of each of some columns: the largest number before each jump.

    Parameters
    ----------
    values_at : callable
        Takes places of columns and a number for each, both of shape (n_rows,), and returns what the steps make of the
        columns, shape (n_rows, n_values): few different rows, which follow each other as the number grows.
    n_columns : int

    Returns
    -------
    list of n_columns lists of float, ascending
    """
    column = np.arange(n_columns)
    low, high = (np.full(n_columns, rank) for rank in _ranks(np.array([-_LARGEST, _LARGEST])))
    while len(column) and (high - low).max() > 1:
        parts = int(np.clip(_MOST_ROWS // len(column), 2, _MOST_PARTS))
        share, rest = np.divmod((high - low)[:, None], np.uint64(parts))
        steps = np.arange(parts + 1, dtype=np.uint64)
        points = low[:, None] + share * steps + rest * steps // np.uint64(parts)
        made = values_at(np.repeat(column, parts + 1), _numbers(points.ravel())).reshape(*points.shape, -1)
        at, place = np.nonzero((made[:, 1:] != made[:, :-1]).any(axis=2))
        column, low, high = column[at], points[at, place], points[at, place + 1]
    return [_numbers(np.sort(low[column == place])).tolist() for place in range(n_columns)]


_MIDDLE = np.uint64(2**63)


def _ranks(numbers: Vector) -> NDArray[np.uint64]:
    """Return whole numbers in the order of floating-point numbers, neighbours for neighbours."""
    bits = np.abs(numbers).view(np.uint64)
    return np.where(np.signbit(numbers), _MIDDLE - bits, _MIDDLE + bits)


def _numbers(ranks: NDArray[np.uint64]) -> Vector:
    """Return the floating-point numbers of these ranks."""
    bits = np.where(ranks < _MIDDLE, _MIDDLE - ranks, ranks - _MIDDLE)
    return np.where(ranks < _MIDDLE, -bits.view(np.float64), bits.view(np.float64))


# The few values that the steps of a pipeline tell apart in each raw column.


@dataclass(frozen=True, eq=False)
class RawValues:
    """How raw columns become values, and an example of each value.

    Attributes
    ----------
    rules : tuple of ColumnRule
    examples : tuple of lists
        A raw cell for each category of each rule.
    sources : ndarray of int
        The raw column of each column that the steps make.
    """

    rules: tuple[ColumnRule, ...]
    examples: tuple[list[Any], ...]
    sources: NDArray[np.intp]

    def table(self) -> pd.DataFrame:
        """Return a table whose i-th row has the i-th value of each column, or its last one."""
        import pandas as pd

        n_rows = max(map(len, self.examples))
        return pd.DataFrame(
            {
                rule.name: [*cells, *[cells[-1]] * (n_rows - len(cells))]
                for rule, cells in zip(self.rules, self.examples, strict=True)
            }
        )


def raw_values(steps: Any, names: Sequence[str], takes_frames: bool, rows: pd.DataFrame | None) -> RawValues:
    """Return the values of raw columns that fitted steps tell apart.

    Raises ValueError if a step is unknown, or a column of numbers is used as it is although the rows, if given, have
    numbers other than 0 and 1 in it.
    """
    columns = _through(steps, [StepColumn(place) for place in range(len(names))], list(names))
    sources = np.array([column.source for column in columns], dtype=np.intp)
    known = _by_source(columns, names)
    rules, examples = [], []
    cut = [place for place, column in known.items() if column.categories is None and column.is_piecewise]
    cuts = dict(zip(cut, _cuts(steps, names, takes_frames, known, cut), strict=True))
    for place, name in enumerate(names):
        if place not in known:
            rule, cells = ColumnRule(name, ("any",), missing="any", fallback="any"), [0.0]
        elif place in cuts:
            rule, cells = _of_cuts(name, cuts[place])
        elif (categories := known[place].categories) is not None:
            rule, cells = _of_categories(name, categories)
        else:
            _check_binary(name, rows)
            rule, cells = ColumnRule(name, ("0", "1"), (0.5,)), [0.0, 1.0]
        rules.append(rule)
        examples.append(cells)
    found = RawValues(tuple(rules), tuple(examples), sources)
    return _with_missing(found, steps, takes_frames, known)


def _by_source(columns: Sequence[StepColumn], names: Sequence[str]) -> dict[int, StepColumn]:
    """Return what is known about each raw column that the steps use; ValueError if one is both encoded and cut."""
    found: dict[int, StepColumn] = {}
    for column in columns:
        other = found.setdefault(column.source, column)
        if (column.categories is None) != (other.categories is None):
            raise ValueError(
                f"column {names[column.source][:60]!r} must be either encoded or cut, got both; give the pipeline a "
                "copy of it under another name"
            )
        if not column.is_piecewise:
            found[column.source] = column
    return found


def _of_cuts(name: str, cuts: list[float]) -> tuple[ColumnRule, list[Any]]:
    beyond = [float(np.nextafter(cuts[-1], np.inf))] if cuts else [0.0]
    return ColumnRule(name, interval_names(cuts), tuple(cuts)), [*cuts, *beyond]


def _of_categories(name: str, categories: Sequence[Any]) -> tuple[ColumnRule, list[Any]]:
    import pandas as pd

    if categories == (0, 1):  # truth values, too
        return ColumnRule(name, ("0", "1"), (0.5,)), [0.0, 1.0]
    cells = list(categories)
    texts = [cell_text(cell) for cell in cells]
    absent = next((place for place, cell in enumerate(cells) if pd.isna(cell)), None)
    if absent is not None:
        texts[absent] = "missing"
        while texts.count(texts[absent]) > 1:
            texts[absent] += "_"
    return ColumnRule(name, tuple(texts), missing=None if absent is None else texts[absent]), cells


def _check_binary(name: str, rows: pd.DataFrame | None) -> None:
    if rows is None:
        return
    cells = rows[name].dropna()
    unknown = cells[~cells.isin([0, 1])]
    if len(unknown):
        raise ValueError(
            f"column {name[:60]!r} must be cut into few values for a trimming, got the number "
            f"{unknown.tolist()[0]!r}; fit "
            "make_pipeline(KBinsDiscretizer(encode='onehot-dense'), LogisticRegression()) with it, say"
        )


def _cuts(
    steps: Any, names: Sequence[str], takes_frames: bool, known: dict[int, StepColumn], cut: list[int]
) -> list[list[float]]:
    """Return the cuts of the columns of numbers at some places."""
    import pandas as pd

    usual = [
        0.0 if place not in known or known[place].categories is None else next(iter(known[place].categories or ()))
        for place in range(len(names))
    ]

    def values_at(columns: NDArray[np.intp], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        cells = {name: [cell] * len(columns) for name, cell in zip(names, usual, strict=True)}
        tried = {names[place]: np.where(columns == at, numbers, 0.0) for at, place in enumerate(cut)}
        return transformed_by(steps, pd.DataFrame({**cells, **tried}), takes_frames)

    return jumps(values_at, len(cut)) if cut else []


def _with_missing(found: RawValues, steps: Any, takes_frames: bool, known: dict[int, StepColumn]) -> RawValues:
    """Return the values, with the one that a missing cell becomes where it is imputed."""
    import pandas as pd

    places = [place for place, column in known.items() if column.takes_missing]
    if not places:
        return found
    made = transformed_by(steps, found.table(), takes_frames)
    gap = found.table().iloc[:1].copy()
    for place in places:
        name = found.rules[place].name
        gap[name] = pd.Series([np.nan], dtype=float if gap[name].dtype.kind in "biuf" else object)
    imputed = transformed_by(steps, gap, takes_frames)[0]
    rules = list(found.rules)
    for place in places:
        own = found.sources == place
        rule = rules[place]
        same = (made[: len(rule.categories), own] == imputed[own]).all(axis=1)
        if same.any():
            rules[place] = replace(rule, missing=rule.categories[int(np.argmax(same))])
    return replace(found, rules=tuple(rules))
