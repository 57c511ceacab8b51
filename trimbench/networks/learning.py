"""Learning models from tables: naive Bayes, tree-augmented naive Bayes and mixtures."""

from __future__ import annotations

import copy
import functools
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, overload

import numpy as np
from numpy.typing import NDArray

from trimbench._checks import check_whole
from trimbench.networks.batches import Batches, in_batches
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.counts import CategoryCounts
from trimbench.networks.mixture import NaiveBayesMixture
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.values import checked_names, is_missing, is_plain, plain_column, plain_table

if TYPE_CHECKING:
    import pandas as pd


Structure = Literal["naive_bayes", "tree", "mixture"]
MissingValues = Literal["error", "ignore"]
# A frame, or rows in batches: what `Batches.of` takes.
Rows = Any
# A column of at least this many rows does not hold categories if all its values differ ...
_FEWEST_ROWS_OF_AN_IDENTIFIER = 20
# ... nor if it has numbers with more distinct values than this share of the rows: these are measurements.
_LARGEST_SHARE_OF_NUMBERS = 0.5


@overload
def learn(
    features: Rows,
    target: pd.Series | str,
    *,
    structure: Literal["naive_bayes"] = ...,
    smoothing: float = ...,
    missing: MissingValues = ...,
) -> NaiveBayes: ...


@overload
def learn(
    features: Rows,
    target: pd.Series | str,
    *,
    structure: Literal["tree"],
    smoothing: float = ...,
    missing: MissingValues = ...,
) -> BayesianNetwork: ...


@overload
def learn(
    features: Rows,
    target: pd.Series | str,
    *,
    structure: Literal["mixture"],
    n_components: int = ...,
    smoothing: float = ...,
    missing: MissingValues = ...,
    n_starts: int = ...,
    random_state: int = ...,
) -> NaiveBayesMixture: ...


def learn(
    features: Rows,
    target: pd.Series | str,
    *,
    structure: Structure = "naive_bayes",
    n_components: int = 2,
    smoothing: float = 1.0,
    missing: MissingValues = "error",
    n_starts: int = 3,
    random_state: int = 0,
) -> NaiveBayes | BayesianNetwork | NaiveBayesMixture:
    """Learn a model of a class and its features from a table, with Laplace smoothing.

    Naive Bayes is counted: ``P(x_i = v | c) = (count(v, c) + smoothing) / (count(c) + smoothing * n_values_i)``, and
    likewise the prior. In a tree-augmented model each feature may depend on one other besides the class: the tree spans
    the features with the largest sum of conditional mutual information ``I(x_i; x_j | c)`` (Chow and Liu), and the
    first feature is its root. A mixture has several naive Bayes components for each class, found by expectation
    maximisation.

    Parameters
    ----------
    features : DataFrame of shape (n_rows, n_features), or rows in batches
        Every distinct value of a column is a value of the feature. The values of a categorical column are its
        categories, used or not; those of other columns are sorted. Rows that do not fit into memory come in batches:
        a folder of Parquet files, a `pyarrow.dataset.Dataset`, a Ray dataset, or an iterator of frames or Arrow record
        batches (`trimbench.networks.batches.Batches`, which also selects columns). The model is that of the whole
        table, in whatever order and parts the rows come; a mixture, which starts at random numbers for the rows in
        their order, is that of a table with the same order. A mixture passes over the rows once for each step of the
        search, others once, for which an iterator is enough.
    target : Series of length n_rows, or str
        The class of each row; its name, or "class", is that of the class variable. Rows are matched by position, as
        scikit-learn does. With rows in batches, the name of the column with the class.
    structure : {"naive_bayes", "tree", "mixture"}
        A tree needs one column or more. Its smoothing depends on the root a little: another order of the columns gives
        nearly, but not exactly, the same distribution.
    n_components : int
        Components of each class of a mixture, 1 or more. One gives naive Bayes.
    smoothing : float
        Pseudo-count of every value and every component, 0 or more; 0 (maximum likelihood) for naive Bayes only.
    missing : {"error", "ignore"}
        What NaN in a feature means: an error, or a cell that is left out of the counts that need it.
    n_starts : int
        Number of random starts of a mixture; the one with the highest smoothed likelihood is taken.
    random_state : int
        Seed of these starts.

    Returns
    -------
    NaiveBayes, BayesianNetwork or NaiveBayesMixture

    Raises
    ------
    TypeError
        When `features` is not a data frame, or `target` not a series.
    ValueError
        When a table is empty, holds NaN (see `missing`) or two columns with the same name; when `features` and `target`
        have different lengths, or the same row labels in another order; when a column of 20 rows or more that is not
        categorical has a different value in each, or numbers with more different values than half of the rows; when a
        number is out of range, or a feature has no observed value in some class while the smoothing is 0.

    Examples
    --------
    >>> import pandas as pd
    >>> rows, ill = pd.DataFrame({"fever": ["no", "yes", "yes"]}), pd.Series([0, 1, 1], name="ill")
    >>> learn(rows, ill).prior.tolist()
    [0.4, 0.6]
    >>> learn(rows, ill, structure="tree").parents("fever")
    ('ill',)

    References
    ----------
    Friedman, Geiger and Goldszmidt (1997), Bayesian network classifiers, Machine Learning 29, section 4.
    """
    _check_settings(structure, n_components, smoothing, n_starts)
    if in_batches(features):
        if structure == "mixture":
            rng = np.random.default_rng(random_state)
            return _mixture_of_batches(Batches.of(features), target, n_components, smoothing, n_starts, missing, rng)
        return learn_from_counts(counted(features, target, structure), structure, smoothing, missing)
    column: Any = target  # which is checked
    coded = _Coded.of(plain_table(features), column, missing)
    return _model_of(coded, structure, n_components, smoothing, n_starts, random_state)


def counted(batches: Any, target: Any, structure: Structure = "naive_bayes") -> CategoryCounts:
    """Return the counts of rows in batches, which those of other rows can be added to.

    Parameters
    ----------
    batches : source of batches
        What `trimbench.networks.batches.Batches.of` takes.
    target : str
        The column with the class.
    structure : {"naive_bayes", "tree"}
        Trees need the counts of pairs of features.
    """
    parts = Batches.of(batches).labelled(target)
    counts = (CategoryCounts.of(*part, pairs=structure == "tree") for part in parts)
    return functools.reduce(operator.add, counts)


def learn_from_counts(
    counts: CategoryCounts,
    structure: Literal["naive_bayes", "tree"] = "naive_bayes",
    smoothing: float = 1.0,
    missing: MissingValues = "error",
) -> NaiveBayes | BayesianNetwork:
    """Return the model of rows that were counted, by one process or many: see `counted` and `learn`."""
    _check_settings(structure, 1, smoothing, 1)
    _check_counts(counts, missing)
    return _naive_bayes(counts, smoothing) if structure == "naive_bayes" else _tree(counts, smoothing)


def _check_counts(counts: CategoryCounts, missing: MissingValues) -> None:
    names = checked_names(counts.columns, "names of the target and of the columns")
    for place, (name, values) in enumerate(zip(names, counts.found, strict=True)):
        what = f"feature {name!r}" if place else "target"
        n_missing = int(counts.missing[place])
        kept = counts.state_names(place)
        _check_complete(what, n_missing, counts.n_rows, missing if place else "error")
        _check_categories(
            what, len(kept), counts.n_rows - n_missing, values.kind == "number", values.kind == "category"
        )


def learn_from_codes(
    features: CodedColumns,
    target: CodedColumns,
    *,
    structure: Structure = "naive_bayes",
    n_components: int = 2,
    smoothing: float = 1.0,
) -> NaiveBayes | BayesianNetwork | NaiveBayesMixture:
    """Return what `learn` does for a table and a target of categories without missing ones.

    Parameters
    ----------
    features : CodedColumns
    target : CodedColumns
        A single column, the classes.
    structure, n_components, smoothing
        As in `learn`.
    """
    _check_settings(structure, n_components, smoothing, n_starts=3)
    codes = np.ascontiguousarray(features.codes.T)
    (variable,), (class_names,), values = target.names, target.states, features.states
    coded = _Coded(target.codes[:, 0], class_names, variable, features.names, codes, values)
    return _model_of(coded, structure, n_components, smoothing, n_starts=3, random_state=0)


class CodedColumns(NamedTuple):
    """Columns of categories: codes of shape (n_rows, n_columns), names, and the values of each, used or not."""

    codes: NDArray[np.int64]
    names: list[str]
    states: list[list[str]]


def _check_settings(structure: Structure, n_components: int, smoothing: float, n_starts: int) -> None:
    if structure not in get_args(Structure):
        raise ValueError(f"structure must be one of {list(get_args(Structure))}, got {str(structure)[:80]!r}")
    check_smoothing(smoothing)
    if smoothing == 0 and structure != "naive_bayes":
        what = "tree-augmented model" if structure == "tree" else "mixture"
        raise ValueError(f"smoothing must be positive for a {what}, got 0; 1 is Laplace's rule")
    for name, count in (("n_components", n_components), ("n_starts", n_starts)):
        check_whole(name, count, 1)


def _model_of(
    coded: _Coded, structure: Structure, n_components: int, smoothing: float, n_starts: int, random_state: int
) -> NaiveBayes | BayesianNetwork | NaiveBayesMixture:
    if structure == "naive_bayes":
        return _naive_bayes(coded, smoothing)
    if structure == "tree":
        return _tree(coded, smoothing)
    return _mixture(coded, n_components, smoothing, n_starts, np.random.default_rng(random_state))


@dataclass(frozen=True, eq=False)
class _Coded:
    """Value indices of a table, shape (n_features, n_rows), -1 where one is missing, with the names of everything."""

    class_codes: NDArray[np.int64]
    class_names: list[str]
    class_variable: str
    names: list[str]
    codes: NDArray[np.int64]
    values: list[list[str]]

    @classmethod
    def of(cls, features: pd.DataFrame, target: pd.Series, missing: MissingValues) -> _Coded:
        check_rows(features, target)
        class_codes, class_names = category_codes(target, "target", missing="error")
        names = [str(label) for label in features.columns]
        variable = str(target.name) if target.name is not None else "class"
        what = "names of the target ('class' if it has none; set target.name) and of the columns"
        checked_names([variable, *names], what)
        return cls(class_codes, class_names, variable, names, *_table_codes(features, names, missing))

    @cached_property
    def sizes(self) -> list[int]:
        return [len(values) for values in self.values]

    def prior(self, smoothing: float) -> NDArray[np.float64]:
        counts = np.bincount(self.class_codes, minlength=len(self.class_names)) + smoothing
        return np.asarray(counts / counts.sum())

    def counts(self, features: Sequence[int]) -> NDArray[np.float64]:
        """Count the combinations of the class and the values of some features in rows where none is missing."""
        columns = [self.class_codes, *(self.codes[i] for i in features)]
        shape = (len(self.class_names), *(self.sizes[i] for i in features))
        seen = np.all([column >= 0 for column in columns], axis=0)
        places = np.ravel_multi_index([column[seen] for column in columns], shape)
        return np.bincount(places, minlength=math.prod(shape)).reshape(shape).astype(np.float64)

    def counts_by_size(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        """Yield some features with the same number of values and, of each, how often a class has a value.

        The counts have shape (n_chosen, n_classes, n_values); all features are counted in a few passes.
        """
        sizes, n_classes = np.array(self.sizes), len(self.class_names)
        at_once = max(1, _CELLS_AT_ONCE // max(1, self.codes.shape[1]))
        for size in np.unique(sizes).tolist():
            of_size = np.flatnonzero(sizes == size)
            for start in range(0, len(of_size), at_once):
                chosen = of_size[start : start + at_once]
                codes = self.codes[chosen]
                cells = (np.arange(len(chosen))[:, None] * n_classes + self.class_codes) * size + codes
                found = np.bincount(cells[codes >= 0], minlength=len(chosen) * n_classes * size)
                yield chosen, found.reshape(len(chosen), n_classes, size).astype(np.float64)


def _naive_bayes(coded: _Coded | CategoryCounts, smoothing: float) -> NaiveBayes:
    likelihoods: list[NDArray[np.float64]] = [np.empty(0)] * len(coded.names)
    unseen = dict[int, int]()
    for chosen, counts in coded.counts_by_size():
        counts += smoothing
        totals = counts.sum(axis=2, keepdims=True)
        for place, of_classes in zip(chosen.tolist(), totals[:, :, 0], strict=True) if (totals == 0).any() else ():
            if (of_classes == 0).any():
                unseen[place] = int(np.flatnonzero(of_classes == 0)[0])
        with np.errstate(invalid="ignore"):
            counts /= totals
        for place, table in zip(chosen.tolist(), counts, strict=True):
            likelihoods[place] = table
    if unseen:
        place = min(unseen)
        raise ValueError(
            f"feature {coded.names[place]!r} must be observed in every class when smoothing is 0, got no value in "
            f"class {coded.class_names[unseen[place]]!r}; use a positive smoothing"
        )
    return NaiveBayes(
        coded.prior(smoothing),
        likelihoods,
        feature_names=coded.names,
        class_names=coded.class_names,
        value_names=coded.values,
        class_variable=coded.class_variable,
    )


def check_smoothing(smoothing: float) -> None:
    """Raise a ValueError unless the pseudo-count is a finite number of 0 or more."""
    if not isinstance(smoothing, int | float | np.number) or not np.isfinite(smoothing) or smoothing < 0:
        raise ValueError(f"smoothing must be a finite number >= 0, got {smoothing!r}; 1 is Laplace's rule")


def check_rows(features: pd.DataFrame, target: pd.Series, name: str = "features") -> None:
    """Raise an error that calls the features `name` unless both are pandas objects with the same rows, at least one."""
    import pandas as pd

    if not isinstance(features, pd.DataFrame):
        raise TypeError(
            f"{name} must be a DataFrame with a name for each column, got {type(features).__name__}; make it one "
            "with pd.DataFrame(array, columns=names)"
        )
    if not isinstance(target, pd.Series):
        raise TypeError(
            f"target must be a Series with the class of each row, got {type(target).__name__}; make it one with "
            "pd.Series(values, name='class')"
        )
    if len(features) == 0 or len(features) != len(target):
        raise ValueError(
            f"{name} and target must have the same number of rows, at least one, got {len(features)} and {len(target)}"
        )
    if _shuffled(features.index, target.index):
        raise ValueError(
            f"{name} and target must have their rows in the same order, got the same row labels in another order; "
            f"use target.loc[{name}.index], or target.reset_index(drop=True) if the order is meant"
        )


def _shuffled(rows: pd.Index, others: pd.Index) -> bool:
    return not rows.equals(others) and bool(rows.isin(others).all() and others.isin(rows).all())


def category_codes(column: pd.Series, what: str, *, missing: MissingValues) -> tuple[NDArray[np.int64], list[str]]:
    """Return value indices (-1 where missing) and the names of the values.

    Raises ValueError, with the column named as `what`, if values are missing and may not be, or there is none at all.
    """
    if missing not in get_args(MissingValues):
        raise ValueError(f"missing must be 'error' or 'ignore', got {missing!r}")
    column = plain_column(column)
    if column.dtype.kind == "f":
        if np.isinf(column.to_numpy(np.float64, na_value=np.nan)).any():
            raise ValueError(f"{what} must hold finite numbers, got infinity; mark a missing value with NaN")
        column = column.astype("float64")  # pandas has no categories of half precision
    try:
        categorical = column.astype("category")
    except (TypeError, UnicodeEncodeError) as error:
        raise ValueError(f"{what} must hold categories, got cells that cannot be one: {error}") from error
    codes = np.asarray(categorical.cat.codes, dtype=np.int64)
    n_missing = int((codes < 0).sum())
    _check_complete(what, n_missing, codes.size, missing)
    names = [str(value) for value in categorical.cat.categories.tolist()]
    is_number, is_category = column.dtype.kind in "fiu", column.dtype == "category"
    _check_categories(what, len(names), codes.size - n_missing, is_number, is_category)
    return codes, names


def _check_complete(what: str, n_missing: int, n_rows: int, missing: MissingValues) -> None:
    """Raise ValueError if values are missing and may not be."""
    if missing not in get_args(MissingValues):
        raise ValueError(f"missing must be 'error' or 'ignore', got {missing!r}")
    if missing == "error" and n_missing:
        raise ValueError(
            f"{what} must have no missing values, got NaN in {n_missing} of {n_rows} rows; drop those "
            "rows, make 'missing' a value of its own, or pass missing='ignore' (features only)"
        )


def _check_categories(what: str, n_values: int, n_rows: int, is_number: bool, is_category: bool) -> None:
    """Raise ValueError if a column holds identifiers or measurements, or nothing."""
    if not is_category and _are_mostly_distinct(is_number, n_values, n_rows):
        different = "a different value in each of" if n_values == n_rows else f"{n_values} different values in"
        raise ValueError(
            f"{what} must hold categories, got {different} {n_rows} rows; if these are numbers, "
            "cut it into intervals first (pd.cut or pd.qcut), and drop a column that only numbers the rows"
        )
    if not n_values:
        raise ValueError(f"{what} must have at least one value that is not missing, got none; drop the column")


def _are_mostly_distinct(are_numbers: bool, n_values: Any, n_rows: Any) -> Any:
    """Return whether so many different values in so many rows, numbers or arrays, are no categories."""
    most_differ = n_values > _LARGEST_SHARE_OF_NUMBERS * n_rows if are_numbers else n_values == n_rows
    return (n_rows >= _FEWEST_ROWS_OF_AN_IDENTIFIER) & most_differ


# The codes of many columns at once: what pandas takes for one column is most of the time for one of few rows.

# With more rows than this, sorting a column takes longer than pandas's hashing.
_MOST_SORTED_ROWS = 5_000
# Cells of a table that are sorted or counted in one pass.
_CELLS_AT_ONCE = 2**21


def _table_codes(
    frame: pd.DataFrame, names: Sequence[str], missing: MissingValues
) -> tuple[NDArray[np.int64], list[list[str]]]:
    """Return what `category_codes` gives for each column, with codes of shape (n_columns, n_rows)."""
    n_rows, n_columns = frame.shape
    codes, values = np.empty((n_columns, n_rows), dtype=np.int64), dict[int, list[str]]()
    if missing in get_args(MissingValues) and n_rows <= _MOST_SORTED_ROWS:
        of_kind = dict[Any, list[int]]()
        for place, kind in enumerate(frame.dtypes):
            of_kind.setdefault(kind, []).append(place)
        at_once = max(1, _CELLS_AT_ONCE // n_rows)
        for kind, places in of_kind.items():
            for start in range(0, len(places), at_once):
                chosen = places[start : start + at_once]
                if (parts := _cells_to_sort(frame.iloc[:, chosen], kind)) is not None:
                    values.update(_sorted_codes(codes, chosen, parts, missing))
    for place, name in enumerate(names):
        if place not in values:
            codes[place], values[place] = category_codes(frame.iloc[:, place], f"feature {name!r}", missing=missing)
    return codes, [values[place] for place in range(n_columns)]


class _Cells(NamedTuple):
    """Numbers to sort, shape (n_columns, n_rows), which cells are missing, and the texts they stand for, if any."""

    numbers: NDArray[Any]
    absent: NDArray[np.bool_]
    texts: NDArray[Any] | None = None


def _cells_to_sort(columns: pd.DataFrame, kind: Any) -> _Cells | None:
    """Return the cells of columns of one type if they are numbers, truth values or texts; else None."""
    import pandas as pd

    if isinstance(kind, np.dtype) and kind.kind in "biuf" and is_plain(kind):
        numbers = np.ascontiguousarray(columns.to_numpy().T)
        return _Cells(numbers, np.isnan(numbers) if kind.kind == "f" else np.zeros(numbers.shape, dtype=np.bool_))
    may_be_text = kind == np.dtype(object) or (isinstance(kind, pd.StringDtype) and is_plain(kind))
    if not may_be_text:
        return None
    cells = columns.to_numpy(dtype=object).T
    absent = is_missing(cells)
    if not all(kind is str for kind in set(map(type, cells[~absent].tolist()))):
        return None
    places, distinct = pd.factorize(np.where(absent, np.nan, cells).ravel())
    order = sorted(range(len(distinct)), key=distinct.__getitem__)
    ranks = np.full(len(distinct) + 1, -1)
    ranks[order] = np.arange(len(order))
    return _Cells(ranks[places].reshape(cells.shape), absent, np.asarray(distinct, dtype=object)[order])


def _sorted_codes(
    codes: NDArray[np.int64], places: Sequence[int], cells: _Cells, missing: MissingValues
) -> Iterator[tuple[int, list[str]]]:
    """Write the codes of some columns, and yield their places and values; without those that are an error."""
    numbers, absent, texts = cells
    order = np.argsort(numbers, axis=1, kind="stable")  # of equal numbers, the first one gives the name: -0.0 or 0.0
    ordered = np.take_along_axis(numbers, order, axis=1)
    present = ~np.take_along_axis(absent, order, axis=1)
    begins = present.copy()
    begins[:, 1:] &= (ordered[:, 1:] != ordered[:, :-1]) | ~present[:, :-1]
    ranks = np.where(present, np.cumsum(begins, axis=1) - 1, -1)
    own = np.empty_like(ranks)
    np.put_along_axis(own, order, ranks, axis=1)
    codes[places] = own
    n_values, n_present = begins.sum(axis=1), present.sum(axis=1)
    is_wrong = (n_values == 0) | _are_mostly_distinct(texts is None and numbers.dtype.kind != "b", n_values, n_present)
    if missing == "error":
        is_wrong |= absent.any(axis=1)
    if numbers.dtype.kind == "f":
        is_wrong |= np.isinf(numbers).any(axis=1)
    distinct = ordered[begins].tolist() if texts is None else texts[ordered[begins]].tolist()
    ends = np.cumsum(n_values).tolist()
    for place, start, end, wrong in zip(places, [0, *ends], ends, is_wrong.tolist(), strict=False):
        if not wrong:
            yield place, [str(value) for value in distinct[start:end]]


# Tree-augmented naive Bayes: each feature may depend on one other besides the class.


def _tree(coded: _Coded | CategoryCounts, smoothing: float) -> BayesianNetwork:
    if not coded.names:
        raise ValueError("features must have at least one column, got none")
    tree = _parents(_conditional_information(coded))
    tables: dict[str, NDArray[np.float64]] = {coded.class_variable: coded.prior(smoothing)}
    parents: dict[str, list[str]] = {coded.class_variable: []}
    for place, name in enumerate(coded.names):
        parent = tree[place]
        above = [] if parent is None else [parent]
        counts = coded.counts([*above, place]) + smoothing
        tables[name] = counts / counts.sum(axis=-1, keepdims=True)
        parents[name] = [coded.class_variable, *(coded.names[i] for i in above)]
    states = {coded.class_variable: coded.class_names} | dict(zip(coded.names, coded.values, strict=True))
    return BayesianNetwork(states, parents, tables)


def _conditional_information(coded: _Coded | CategoryCounts) -> NDArray[np.float64]:
    """Return I(x_i; x_j | c) in nats from the observed frequencies, shape (n_features, n_features)."""
    n_features = len(coded.names)
    information = np.zeros((n_features, n_features))
    for i in range(n_features):
        for j in range(i):
            counts = coded.counts([i, j])
            chances = counts / max(counts.sum(), 1.0)
            independent = chances.sum(axis=2, keepdims=True) * chances.sum(axis=1, keepdims=True)
            of_class = np.broadcast_to(chances.sum(axis=(1, 2), keepdims=True), chances.shape)
            seen = chances > 0
            ratios = chances[seen] * of_class[seen] / independent[seen]
            information[i, j] = information[j, i] = float((chances[seen] * np.log(ratios)).sum())
    return information


def _parents(information: NDArray[np.float64]) -> list[int | None]:
    """Return the parent of each node in the tree of largest total information; the first node has none."""
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

    # Edges of weight 0 would not count as edges, so all weights are made positive.
    tree = minimum_spanning_tree(1.0 + information.max() - information)
    _, above = breadth_first_order(tree, 0, directed=False)
    return [None if parent < 0 else int(parent) for parent in above]


# Mixtures of naive Bayes models: expectation maximisation in each class.

# EM stops once a step improves the objective by less than this share of it.
_TOLERANCE = 1e-7
_MAX_STEPS = 500


def _mixture(
    coded: _Coded, n_components: int, smoothing: float, n_starts: int, rng: np.random.Generator
) -> NaiveBayesMixture:
    # The features, one-hot: one column for each value, all 0 where the value is missing.
    seen = np.zeros((len(coded.class_codes), sum(coded.sizes)))
    columns = _columns_of(coded)
    for codes, own in zip(coded.codes, columns, strict=True):
        rows = np.flatnonzero(codes >= 0)
        seen[rows, own.start + codes[rows]] = 1.0
    parts = []
    for code in range(len(coded.class_names)):
        of_class = seen[coded.class_codes == code]
        starts = range(n_starts if n_components > 1 else 1)
        fits = [_fitted(of_class, columns, int(n_components), smoothing, rng) for _ in starts]
        parts.append(max(fits, key=lambda fit: fit.objective))
    return _mixture_of(coded, columns, parts, smoothing)


def _columns_of(coded: _Coded | CategoryCounts) -> list[slice]:
    """Return the columns of each feature, one for each value."""
    ends = np.cumsum([0, *map(len, coded.values)])
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]


def _mixture_of(
    coded: _Coded | CategoryCounts, columns: list[slice], parts: Sequence[_Fit], smoothing: float
) -> NaiveBayesMixture:
    """Return the mixture whose classes have these fits."""
    n_components = len(parts[0].shares)
    weights = np.concatenate([fit.shares * share for fit, share in zip(parts, coded.prior(smoothing), strict=True)])
    tables = np.concatenate([fit.tables for fit in parts])
    component = "component"
    while component in {coded.class_variable, *coded.names}:
        component += "_"
    components = NaiveBayes(
        weights,
        [tables[:, own] for own in columns],
        feature_names=coded.names,
        class_names=[f"{name}/{i + 1}" for name in coded.class_names for i in range(n_components)],
        value_names=coded.values,
        class_variable=component,
    )
    homes = [name for name in coded.class_names for _ in range(n_components)]
    return NaiveBayesMixture(components, homes, class_variable=coded.class_variable)


class _Fit(NamedTuple):
    """A mixture of one class: shares of shape (n_components,), tables of shape (n_components, n_all_values)."""

    shares: NDArray[np.float64]
    tables: NDArray[np.float64]
    objective: float


def _fitted(
    seen: NDArray[np.float64], features: list[slice], n_components: int, smoothing: float, rng: np.random.Generator
) -> _Fit:
    """Fit a mixture from a random start; the objective is the log-likelihood plus the log-prior of the smoothing."""
    responsibilities, objective = _random_responsibilities(len(seen), n_components, rng), -np.inf
    for _ in range(_MAX_STEPS):
        fit = _maximised(responsibilities.T @ seen, responsibilities.sum(axis=0), features, smoothing)
        responsibilities, likelihood = _expected(seen, fit)
        reached = likelihood + _log_prior(fit, smoothing)
        fit = fit._replace(objective=reached)
        if reached - objective < _TOLERANCE * abs(reached):
            break
        objective = reached
    return fit


def _random_responsibilities(n_rows: int, n_components: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.dirichlet(np.ones(n_components), size=n_rows).reshape(n_rows, n_components)


def _maximised(
    counts: NDArray[np.float64], weights: NDArray[np.float64], features: list[slice], smoothing: float
) -> _Fit:
    """Return the best mixture for expected counts of values, (n_components, n_all_values), and of components."""
    counts, weights = counts + smoothing, weights + smoothing
    tables = np.empty_like(counts)
    for columns in features:
        tables[:, columns] = counts[:, columns] / counts[:, columns].sum(axis=1, keepdims=True)
    return _Fit(weights / weights.sum(), tables, -np.inf)


def _expected(seen: NDArray[np.float64], fit: _Fit) -> tuple[NDArray[np.float64], float]:
    """Return P(component | row), of shape (n_rows, n_components), and the log-likelihood of the rows."""
    logs = np.log(fit.shares) + seen @ np.log(fit.tables).T
    top = logs.max(axis=1, keepdims=True) if len(seen) else logs
    scaled = np.exp(logs - top)
    totals = scaled.sum(axis=1, keepdims=True)
    return scaled / totals, float((top + np.log(totals)).sum())


def _log_prior(fit: _Fit, smoothing: float) -> float:
    return float(smoothing * (np.log(fit.tables).sum() + np.log(fit.shares).sum()))


# The same of rows in batches: in each pass, the searches of all classes from all starts go one step.

_ROWS_AT_ONCE = 2**14


def _mixture_of_batches(
    batches: Batches,
    target: Any,
    n_components: int,
    smoothing: float,
    n_starts: int,
    missing: MissingValues,
    rng: np.random.Generator,
) -> NaiveBayesMixture:
    counts = counted(batches, target)
    _check_counts(counts, missing)
    columns, width = _columns_of(counts), sum(map(len, counts.values))
    climbs: list[list[_Climb]] = []
    for n_rows in counts.counts([]).astype(int).tolist():
        climbs.append([])
        for _ in range(n_starts if n_components > 1 else 1):
            climbs[-1].append(_Climb(n_components, width, copy.deepcopy(rng)))
            for start in range(0, n_rows, _ROWS_AT_ONCE):  # the next one begins after these
                _random_responsibilities(min(_ROWS_AT_ONCE, n_rows - start), n_components, rng)
    while any(climb.goes_on for climb in itertools.chain(*climbs)):
        for classes, seen in _one_hot(batches, target, counts, columns):
            for code, of_class in enumerate(climbs):
                rows = seen[classes == code]
                for climb in of_class:
                    climb.add(rows)
        for climb in itertools.chain(*climbs):
            climb.step(columns, smoothing)
    fits = [[climb.fit for climb in of_class if climb.fit is not None] for of_class in climbs]
    return _mixture_of(counts, columns, [max(some, key=lambda fit: fit.objective) for some in fits], smoothing)


def _one_hot(
    batches: Batches, target: Any, counts: CategoryCounts, columns: list[slice]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """Yield the class of some rows and their features, one-hot, as `_mixture` has them for all rows."""
    for features, labels in batches.labelled(target):
        classes = counts.codes(labels, 0)
        codes = [counts.codes(features.iloc[:, place], place + 1) for place in range(len(columns))]
        for start in range(0, len(classes), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            seen = np.zeros((len(classes[part]), columns[-1].stop if columns else 0))
            for of_feature, own in zip(codes, columns, strict=True):
                rows = np.flatnonzero(of_feature[part] >= 0)
                seen[rows, own.start + of_feature[part][rows]] = 1.0
            yield classes[part], seen


class _Climb:
    """`_fitted` for rows that come in parts, again in each step: the sums over all rows are all that a step needs."""

    def __init__(self, n_components: int, width: int, rng: np.random.Generator) -> None:
        self.fit: _Fit | None = None
        self._rng, self._n_steps, self._objective = rng, 0, -np.inf
        self._counts, self._weights, self._likelihood = np.zeros((n_components, width)), np.zeros(n_components), 0.0
        self.goes_on = True

    def add(self, seen: NDArray[np.float64]) -> None:
        """Take in some rows."""
        if not self.goes_on:
            return
        if self.fit is None:
            responsibilities, likelihood = _random_responsibilities(len(seen), len(self._weights), self._rng), 0.0
        else:
            responsibilities, likelihood = _expected(seen, self.fit)
        self._counts += responsibilities.T @ seen
        self._weights += responsibilities.sum(axis=0)
        self._likelihood += likelihood

    def step(self, features: list[slice], smoothing: float) -> None:
        """Take a step, after all rows."""
        if self.fit is not None and self.goes_on:
            reached = self._likelihood + _log_prior(self.fit, smoothing)
            self.fit = self.fit._replace(objective=reached)
            self.goes_on = reached - self._objective >= _TOLERANCE * abs(reached) and self._n_steps < _MAX_STEPS
            self._objective = reached
        if self.goes_on:
            self.fit, self._n_steps = _maximised(self._counts, self._weights, features, smoothing), self._n_steps + 1
            self._counts, self._weights, self._likelihood = 0 * self._counts, 0 * self._weights, 0.0
