"""Raw columns as categories: numbers are cut, categories kept, and missing values become a category of their own."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._checks import check_one_of
from trimbench.networks.values import (
    check_finite,
    checked_names,
    code_type,
    column_numbers,
    is_constant,
    is_plain,
    names_text,
    places_among,
    plain_column,
    value_names,
)

if TYPE_CHECKING:
    import pandas as pd


CutRule = Literal["mdl", "mean", "median"]
# A column with more values than this, and more than this share of the rows, does not hold categories.
_FEW_VALUES, _LARGEST_SHARE = 10, 0.5
# Tables with more rows are cut column by column: what a column takes is then more than what is between columns.
_MOST_SORTED_ROWS = 5_000
# Cells of a table that are looked at in one pass.
CELLS_AT_ONCE = 2**20
# Up to this many cuts are compared one by one.
_FEW_CUTS = 8


class IdentifierColumnWarning(UserWarning):
    """A column of text or categories has about as many values as rows, as identifiers have: it is left out."""


class UnknownValuesWarning(UserWarning):
    """A column has none of the values of the training rows, or numbers other than their 0 and 1: check its values."""


@dataclass(frozen=True)
class ColumnRule:
    """How one column becomes a category.

    Attributes
    ----------
    name : str
    categories : tuple of str
        Their names; for numbers one for each interval, from the lowest.
    cuts : tuple of float, optional
        Ascending, for numbers: the i-th category holds those above exactly i cuts. None for a column of categories.
    missing : str, optional
        The category of missing cells, one of `categories`; None if the training rows had no missing cells.
    fallback : str, optional
        The category of all other cells: values that the training rows did not have, and missing cells if `missing` is
        None. None makes them an error.
    """

    name: str
    categories: tuple[str, ...]
    cuts: tuple[float, ...] | None = None
    missing: str | None = None
    fallback: str | None = None

    def codes(self, column: pd.Series[Any] | NDArray[Any]) -> NDArray[np.int64]:
        """Return the position of each cell's category in `categories`; an array must hold numbers.

        Raises ValueError if a cell has no category, is infinite, or is not a number in a column of numbers.
        """
        usual = -1 if self.fallback is None else self.categories.index(self.fallback)
        if isinstance(column, np.ndarray) and self.cuts is None:
            import pandas as pd

            column = pd.Series(column)
        if isinstance(column, np.ndarray):
            absent = np.isnan(column)
            numbers = column if not absent.any() else column[~absent]
            check_finite(numbers, self.name)
            found = _intervals(numbers, self.cuts or ())
        elif self.cuts is None:
            column = plain_column(column)
            absent = column.isna().to_numpy(dtype=bool)
            found = places_among(column[~absent], self.categories)
            if (found < 0).any():
                strange = str(column[~absent].iloc[int(np.argmax(found < 0))])
                if self.fallback is None:
                    raise ValueError(
                        f"column {self.name!r} must hold values among {names_text(self.categories)}, got "
                        f"{strange[:80]!r}"
                    )
                if (found < 0).all() and len(found) > 1 and len(self.categories) > 1:
                    warn_of_unknown(self.name, strange, self.categories)
            found = np.where(found < 0, usual, found)
        else:
            return self.codes(column_numbers(column, self.name))
        missing = usual if self.missing is None else self.categories.index(self.missing)
        codes = np.full(len(column), missing, dtype=np.int64)
        codes[~absent] = found
        if (codes < 0).any():
            raise ValueError(
                f"column {self.name!r} must have no missing values, got {int(absent.sum())} of {len(column)} rows; the "
                "model has no value for them"
            )
        return codes


@dataclass(frozen=True)
class Discretizer:
    """How the columns of a table become categories, learned from training rows.

    Attributes
    ----------
    rules : tuple of ColumnRule
        One for each column.
    """

    rules: tuple[ColumnRule, ...]

    @classmethod
    def fit(cls, frame: pd.DataFrame, classes: ArrayLike, cut: CutRule = "mdl") -> Discretizer:
        """Learn the cuts and the categories.

        A column of numbers is cut; if it has two distinct numbers, it is cut between them. Anything else, such as text,
        truth values or pandas' categories, is kept as text. Missing cells (NaN, None, NA) become a category of their
        own. A value that the training rows do not have counts as missing if they have missing cells, and otherwise as
        their most frequent category; so does a missing cell if they have none.

        Parameters
        ----------
        frame : DataFrame of shape (n_rows, n_columns)
        classes : array of int, shape (n_rows,)
            Class of each row, 0 or more; only the rule ``"mdl"`` uses it.
        cut : {"mdl", "mean", "median"}
            As many cuts between the classes as pay for their description, or one cut at the mean or the median.

        Raises
        ------
        TypeError, ValueError
            When `cut` is unknown, or a column has infinite or complex numbers, or cells that cannot be hashed.

        Warns
        -----
        IdentifierColumnWarning
            When text or categories have more than 2 values, all different, or more than 10 values in fewer than twice
            as many cells, not counting missing ones: the column becomes a single category.
        """
        check_one_of("cut", cut, get_args(CutRule))
        labels = np.asarray(classes, dtype=np.int64)
        # Small integers are sorted and counted faster.
        labels = labels.astype(code_type(int(labels.max(initial=0)) + 1))
        known = _rules_of_numbers(frame, labels, cut)
        return cls(
            tuple(
                known[place] if place in known else _learned(frame.iloc[:, place], str(name), labels, cut)
                for place, name in enumerate(frame.columns)
            )
        )

    def transform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the table as categorical columns, by position, with the names and categories of the rules."""
        import pandas as pd

        codes = self.codes(frame)
        columns = {
            rule.name: pd.Categorical.from_codes(codes[:, place], categories=pd.Index(rule.categories, dtype=str))
            for place, rule in enumerate(self.rules)
        }
        return pd.DataFrame(columns, index=frame.index)

    def codes(self, rows: pd.DataFrame | NDArray[Any]) -> NDArray[np.int64]:
        """Return the position of each cell's category in those of its rule, shape (n_rows, n_rules).

        Rows are a table, or an array of numbers, with a column for each rule, by position.
        """
        codes = np.empty((len(rows), len(self.rules)), dtype=np.int64, order="F")
        done = self._numbers_coded(rows, codes)
        for place, rule in enumerate(self.rules):
            if not done[place]:
                codes[:, place] = rule.codes(rows[:, place] if isinstance(rows, np.ndarray) else rows.iloc[:, place])
        return codes

    def _numbers_coded(self, rows: pd.DataFrame | NDArray[Any], codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Write the codes of columns of numbers, all with the same number of cuts at once; return which are written.

        Columns with an error, and those of many cuts, are left for their rules.
        """
        done = np.zeros(len(self.rules), dtype=np.bool_)
        n_cuts = np.array([-1 if rule.cuts is None else len(rule.cuts) for rule in self.rules], dtype=np.int64)
        n_cuts[n_cuts > _FEW_CUTS] = -1
        n_cuts[~are_numbers(rows)] = -1
        at_once = max(1, CELLS_AT_ONCE // max(1, len(rows)))
        for count in np.unique(n_cuts[n_cuts >= 0]).tolist():
            of_count = np.flatnonzero(n_cuts == count)
            for start in range(0, len(of_count), at_once):
                places = of_count[start : start + at_once]
                numbers = numbers_of(rows, places)
                rules = [self.rules[place] for place in places.tolist()]
                found = np.zeros(numbers.shape, dtype=np.int64)
                for cut in np.array([rule.cuts for rule in rules]).reshape(len(rules), count).T:
                    found += numbers > cut[:, None]
                absent = np.isnan(numbers)
                if has_gaps := absent.any():
                    gaps = [rule.fallback if rule.missing is None else rule.missing for rule in rules]
                    pairs = zip(rules, gaps, strict=True)
                    code = np.array([-1 if gap is None else rule.categories.index(gap) for rule, gap in pairs])
                    found = np.where(absent, code[:, None], found)
                is_wrong = np.isinf(numbers).any(axis=1) | (has_gaps and (found < 0).any(axis=1))
                codes[:, places] = found.T
                done[places] = ~is_wrong
        return done


def are_numbers(rows: pd.DataFrame | NDArray[Any]) -> NDArray[np.bool_]:
    """Return which columns have a type of numbers, or truth values, of NumPy."""
    kinds = [rows.dtype] * rows.shape[1] if isinstance(rows, np.ndarray) else list(rows.dtypes)
    plain = {kind: isinstance(kind, np.dtype) and kind.kind in "biuf" and is_plain(kind) for kind in set(kinds)}
    return np.array([plain[kind] for kind in kinds], dtype=np.bool_)


def numbers_of(rows: pd.DataFrame | NDArray[Any], places: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return some columns of numbers as rows of an array, shape (n_columns, n_rows)."""
    table = rows[:, places] if isinstance(rows, np.ndarray) else rows.iloc[:, places].to_numpy()
    return np.ascontiguousarray(table.T, dtype=np.float64)


def warn_of_unknown(name: str, strange: str, known: Sequence[str]) -> None:
    """Warn that a column has none of the values that training rows had."""
    warnings.warn(
        f"column {name!r} has no value that the training rows had, which are {names_text(known)}: all its cells, such "
        f"as {strange[:40]!r}, count as unknown; check how they are written",
        UnknownValuesWarning,
        stacklevel=6,
    )


def _rules_of_numbers(frame: pd.DataFrame, classes: NDArray[np.integer], cut: CutRule) -> dict[int, ColumnRule]:
    """Return the rules of columns of complete numbers that have no cut, or two numbers, by their places.

    In wide tables these are most columns. All are looked at in one pass, other columns one by one.
    """
    rules = dict[int, ColumnRule]()
    places = np.flatnonzero(are_numbers(frame) & [kind.kind != "b" for kind in frame.dtypes])
    at_once = max(1, CELLS_AT_ONCE // max(1, len(frame)))
    for start in range(0, len(places) if len(frame) <= _MOST_SORTED_ROWS else 0, at_once):
        part = places[start : start + at_once]
        numbers = numbers_of(frame, part)
        low, high = numbers.min(axis=1), numbers.max(axis=1)
        is_usual = np.isfinite(low) & np.isfinite(high)  # no gaps, and no infinity
        with np.errstate(invalid="ignore", over="ignore"):
            constant = is_usual & is_constant(low, high)
            of_two = is_usual & ~constant & ((numbers == low[:, None]) | (numbers == high[:, None])).all(axis=1)
        uncut = constant.copy()
        if cut == "mdl":
            several = np.flatnonzero(is_usual & ~constant & ~of_two)
            uncut[several] = _have_no_cut(numbers[several], classes)
        for place in np.flatnonzero(uncut).tolist():
            name = str(frame.columns[part[place]])
            rules[int(part[place])] = ColumnRule(name, ("any",), (), None, "any")
        for place in np.flatnonzero(of_two).tolist():
            cuts = (between(float(low[place]), float(high[place])),)
            values = interval_names(cuts)
            n_above = int((numbers[place] > cuts[0]).sum())
            usual = values[int(n_above > numbers.shape[1] - n_above)]
            rules[int(part[place])] = ColumnRule(str(frame.columns[part[place]]), values, cuts, None, usual)
    return rules


def _learned(column: pd.Series[Any], name: str, classes: NDArray[np.integer], cut: CutRule) -> ColumnRule:
    column = plain_column(column)
    absent = np.asarray(column.array.isna(), dtype=bool)
    seen, labels = (column[~absent], classes[~absent]) if absent.any() else (column, classes)
    if not len(seen):
        warnings.warn(f"column {name!r} is left out: it has no value in the training rows", stacklevel=5)
        return ColumnRule(name, ("any",), missing="any", fallback="any")
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufc":
        numbers = column_numbers(seen, name)
        cuts: tuple[float, ...] | None = _cuts(numbers, labels, cut)
        values = interval_names(cuts or ())
    else:
        cuts = None
        values = checked_names(sorted(value_names(seen)), f"values of column {name!r}", of_values=True)
        n_values, n_rows = len(values), len(seen)
        if n_values > 2 and (n_values == n_rows or n_values > max(_FEW_VALUES, _LARGEST_SHARE * n_rows)):
            warnings.warn(
                f"column {name!r} is left out: its {n_values} different values in {n_rows} rows are names of rows, not "
                "categories; drop it, or merge its values into fewer categories",
                IdentifierColumnWarning,
                stacklevel=5,
            )
            return ColumnRule(name, ("any",), missing="any", fallback="any")
    missing = None
    if absent.any():
        missing = "missing"
        while missing in values:
            missing += "_"
        values = (*values, missing)
    rule = ColumnRule(name, values, cuts, missing, missing or values[0])
    if missing is not None or len(values) == 1:
        return rule
    # Without missing cells, new values count as the most frequent category.
    codes = rule.codes(column if cuts is None else numbers)
    usual = values[int(np.bincount(codes, minlength=len(values)).argmax())]
    return ColumnRule(name, values, cuts, missing, usual)


def _cuts(values: NDArray[np.float64], classes: NDArray[np.integer], rule: CutRule) -> tuple[float, ...]:
    low, high = float(values.min()), float(values.max())
    if is_constant(low, high):
        return ()
    # Where there is a third number, the first rows mostly show one.
    if all(((some == low) | (some == high)).all() for some in (values[:100], values)):
        return (between(low, high),)
    if rule == "mdl":
        return entropy_cuts(values, classes)
    level = float(np.mean(values) if rule == "mean" else np.median(values))
    # Where more than half of the rows have the largest value, no row is above the median.
    return (level if level < high else between(float(values[values < high].max()), high),)


def _intervals(numbers: NDArray[np.float64], cuts: tuple[float, ...]) -> NDArray[np.int64]:
    """Return how many of the ascending cuts each number is above."""
    if len(cuts) > _FEW_CUTS:
        return np.searchsorted(np.array(cuts), numbers, side="left")
    found = np.zeros(len(numbers), dtype=np.int64)
    for cut in cuts:
        found += numbers > cut
    return found


def interval_names(cuts: Sequence[float]) -> tuple[str, ...]:
    """Return the names of the intervals between cuts, the upper end of each included."""
    if not cuts:
        return ("any",)
    middle = [f"({low!r}, {high!r}]" for low, high in itertools.pairwise(cuts)]
    return (f"<= {cuts[0]!r}", *middle, f"> {cuts[-1]!r}")


# Cuts of a number that separate classes: recursive entropy minimisation with the MDL stopping rule.

# Entropies of mirrored class counts differ by rounding: the lowest of equally good cuts is taken.
_TIE = 1e-12


def entropy_cuts(values: NDArray[np.float64], classes: NDArray[np.integer]) -> tuple[float, ...]:
    """Return the cuts that minimise the entropy of the classes and pay for their description.

    An interval is cut between two neighbouring values where the mean entropy of the classes on both sides is smallest,
    if the gain exceeds the cost of describing the cut (minimum description length); both sides are cut in turn.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Finite numbers.
    classes : ndarray of int, shape (n_rows,)
        Class of each row, 0 or more.

    Returns
    -------
    tuple of float
        Ascending; a row is above a cut if its value is greater.

    References
    ----------
    Fayyad and Irani (1993), Multi-interval discretization of continuous-valued attributes for classification learning,
    IJCAI, sections 2 and 3.
    """
    if values.size == 0:
        return ()
    order = np.argsort(values)
    ordered, labels = values[order], classes[order]
    ends = np.append(_ends(ordered, labels), len(order))
    # Row k, column i: the rows of class k below the i-th end.
    below = np.zeros((int(classes.max()) + 1, len(ends) + 1), dtype=np.int64)
    for label, of_class in enumerate(below[1:], start=1):
        of_class[1:] = np.cumsum(labels == label)[ends - 1]
    below[0, 1:] = ends - below[1:, 1:].sum(axis=0)
    products = _products(len(order))
    cuts = []
    open_parts = [(0, len(ends))]
    while open_parts:
        start, stop = open_parts.pop()
        place = _best_cut(below[:, start : stop + 1] - below[:, start, None], products)
        if place is not None:
            end = ends[start + place - 1]
            cuts.append(between(float(ordered[end - 1]), float(ordered[end])))
            open_parts += [(start, start + place), (start + place, stop)]
    return tuple(sorted(cuts))


def _have_no_cut(numbers: NDArray[np.float64], classes: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return for which columns of complete numbers, shape (n_columns, n_rows), no first cut pays for itself.

    The same sums as in `entropy_cuts`, in the same order, for all columns at once.
    """
    n_columns, n_rows = numbers.shape
    if not n_columns or n_rows < 2:
        return np.ones(n_columns, dtype=np.bool_)
    order = np.argsort(numbers, axis=1)
    labels = classes[order]
    may_end = _may_end(np.take_along_axis(numbers, order, axis=1), labels)
    products, n_left = _products(n_rows), np.arange(1, n_rows)
    whole = np.bincount(classes, minlength=int(classes.max()) + 1)
    below = [np.cumsum(labels[:, :-1] == label, axis=1) for label in range(1, len(whole))]
    below.insert(0, n_left - np.sum(below, axis=0, dtype=np.int64) if below else np.tile(n_left, (n_columns, 1)))
    of_left, of_right = (np.tile(products[counts], (n_columns, 1)) for counts in (n_left, n_rows - n_left))
    for counts, total in zip(below, whole.tolist(), strict=True):
        of_left -= products[counts]
        of_right -= products[total - counts]
    mean = of_left + of_right
    mean /= n_rows
    mean[~may_end] = np.inf
    best = (mean <= mean.min(axis=1, keepdims=True) + _TIE).argmax(axis=1)
    at = np.arange(n_columns), best
    entropy = float(products[n_rows] - products[whole].sum()) / n_rows
    lower = np.array([counts[at] for counts in below])
    n_whole, n_lower = int((whole > 0).sum()), (lower > 0).sum(axis=0)
    n_upper = (whole[:, None] - lower > 0).sum(axis=0)
    change = np.log2(3.0**n_whole - 2.0) - n_whole * entropy
    change = change + (n_lower * of_left[at] / n_left[best] + n_upper * of_right[at] / (n_rows - n_left[best]))
    cost = (np.log2(n_rows - 1.0) + change) / n_rows
    return np.asarray(~may_end.any(axis=1) | ~(entropy - mean[at] > cost))


def _may_end(ordered: NDArray[np.float64], labels: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return where `_ends` has an end, for each row of ordered numbers: entry j stands for j + 1 rows below it."""
    differ, changes = ordered[:, 1:] != ordered[:, :-1], labels[:, 1:] != labels[:, :-1]
    if differ.all():
        return np.asarray(changes)
    runs = np.zeros(ordered.shape, dtype=np.int64)
    np.cumsum(changes, axis=1, out=runs[:, 1:])
    places = np.arange(ordered.shape[1])
    begins = np.zeros(ordered.shape, dtype=np.int64)
    begins[:, 1:] = np.where(differ, places[1:], 0)
    first = np.maximum.accumulate(begins, axis=1)
    ends = np.full(ordered.shape, ordered.shape[1] - 1)
    ends[:, :-1] = np.where(differ, places[:-1], ordered.shape[1] - 1)
    last = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
    first_run, last_run = (np.take_along_axis(runs, where, axis=1) for where in (first, last))
    return np.asarray(differ & (first_run[:, :-1] != last_run[:, 1:]))


def _ends(ordered: NDArray[np.float64], labels: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return how many rows lie below each cut that may be best: not those between two values of one and the same class.

    Fayyad and Irani (1992), On the handling of continuous-valued attributes in decision tree generation, theorem 1.
    """
    changes: NDArray[np.bool_] = labels[1:] != labels[:-1]
    ends = np.flatnonzero(ordered[1:] != ordered[:-1])
    if len(ends) == len(changes):
        return np.flatnonzero(changes) + 1
    runs = np.append(0, np.cumsum(changes))
    # From the first row with the value below a cut to the last with that above it.
    first, last = np.append(0, ends + 1)[:-1], np.append(ends, len(changes))[1:]
    between_classes: NDArray[np.bool_] = runs[first] != runs[last]
    return ends[between_classes] + 1


def between(low: float, high: float) -> float:
    """Return a cut with `low` not above and `high` above it: the middle, unless rounding makes it `high`."""
    middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low


@functools.lru_cache(maxsize=1)
def _products(n: int) -> NDArray[np.float64]:
    """Return i log2 i for i from 0 to n: columns of one table have the same number of rows."""
    numbers = np.arange(n + 1.0)
    products: NDArray[np.float64] = numbers * np.log2(np.maximum(numbers, 1.0))
    return products


def _best_cut(below: NDArray[np.int64], products: NDArray[np.float64]) -> int | None:
    """Return how many ends the lower side of the best cut has; None if no cut pays for itself.

    `below` has the counts of each class below the ends 0, 1, ... of an interval, `products` n log2 n.
    """
    if below.shape[1] < 3:
        return None
    whole = below[:, -1]
    n_rows, n_left = int(whole.sum()), below[:, 1:-1].sum(axis=0)
    # Entropies in bits, times numbers of rows.
    of_left, of_right = products[n_left], products[n_rows - n_left]
    for counts in below:
        left = counts[1:-1]
        of_left -= products[left]
        of_right -= products[counts[-1] - left]
    mean = of_left + of_right
    mean /= n_rows
    place = int((mean <= mean.min() + _TIE).argmax())
    entropy = float(products[n_rows] - products[whole].sum()) / n_rows
    lower = below[:, place + 1]
    n_whole, n_lower, n_upper = (int((counts > 0).sum()) for counts in (whole, lower, whole - lower))
    change = np.log2(3.0**n_whole - 2.0) - n_whole * entropy
    change += n_lower * of_left[place] / n_left[place] + n_upper * of_right[place] / (n_rows - n_left[place])
    cost = (np.log2(n_rows - 1.0) + change) / n_rows
    return place + 1 if entropy - mean[place] > cost else None
