"""The values that the steps of a fitted pipeline tell apart in each raw column."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from trimbench.estimators.pipeline_steps import StepColumn, StepReader, transformed_by
from trimbench.networks.discretize import ColumnRule, interval_names
from trimbench.networks.values import cell_text

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["unused", "categories", "cut", "binary", "number"]


@dataclass(frozen=True, eq=False)
class RawValues:
    """How raw columns become values, and an example of each value.

    Attributes
    ----------
    kinds : tuple of {"unused", "categories", "cut", "binary", "number"}
        What each raw column is to the steps: nothing, categories that an encoder knows, a number that is cut into
        intervals, or a number that is not; such a number is binary where the rows have only zeros and ones.
    rules : tuple of ColumnRule
        Of a number that is neither cut nor binary, a single value.
    examples : tuple of lists
        A raw cell for each category of each rule.
    sources : ndarray of int
        The raw column of each column that the steps make; -1 if it is the same for all complete rows.
    """

    kinds: tuple[Kind, ...]
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
    """Return the values of raw columns that fitted steps tell apart, and of missing cells where these are imputed.

    Raises ValueError if a step is unknown, or a column of numbers is used as it is although the rows, if given, have
    numbers other than 0 and 1 in it.
    """
    reader = StepReader(tuple(names), "any")
    columns = reader.columns_of(steps)
    known = _by_source(columns, names)
    edges = {at: column.edges for at, column in known.items() if column.categories is None and column.is_piecewise}
    cuts = _cuts(steps, reader, takes_frames, edges)
    parts = [
        _values_of(name, known[place], rows, cuts.get(place))
        if place in known
        else _unused(name, reader.example(place))
        for place, name in enumerate(names)
    ]
    for name, (kind, _, cells) in zip(names, parts, strict=True):
        if kind == "number":
            raise ValueError(
                f"column {name[:60]!r} must be cut into few values for a trimming, got the number {cells[0]!r}; fit "
                "make_pipeline(KBinsDiscretizer(encode='onehot-dense'), LogisticRegression()) with it, say"
            )
    found = _gathered(columns, parts)
    return _with_missing(found, steps, takes_frames, known)


def complete_values(
    steps: Any, rows: pd.DataFrame, takes_frames: bool, known: Mapping[str, Any]
) -> tuple[RawValues, NDArray[np.float64]]:
    """Return the values of raw columns that fitted steps tell apart where none is missing, and what they make of them.

    The cuts in the rules are correct up to rounding. Raises ValueError if a step is unknown.

    Parameters
    ----------
    steps : object or None
    rows : DataFrame
    takes_frames : bool
        Whether the steps were fitted on a data frame.
    known : mapping from name to value
        A value of each raw column that the steps take.
    """
    names = [str(name) for name in rows.columns]
    reader = StepReader(tuple(names), "complete")
    columns = reader.columns_of(steps)
    read = _by_source(columns, names)
    parts = [
        _values_of(name, read[place], rows, None) if place in read else _unused(name, reader.example(place))
        for place, name in enumerate(names)
    ]
    found = _gathered(columns, [(kind, *_without_missing(rule, cells)) for kind, rule, cells in parts])
    try:
        return found, transformed_by(steps, found.table(), takes_frames)
    except ValueError:  # an encoder after a discretiser does not take intervals that had no row in its fit
        found = _without_refused(found, steps, takes_frames, known)
        return found, transformed_by(steps, found.table(), takes_frames)


def _without_refused(found: RawValues, steps: Any, takes_frames: bool, known: Mapping[str, Any]) -> RawValues:
    """Return the values without the intervals of numbers that the steps refuse."""
    import pandas as pd

    rules, examples = list(found.rules), list(found.examples)
    for place in (place for place, kind in enumerate(found.kinds) if kind == "cut"):
        name, kept = rules[place].name, []
        for at, cell in enumerate(examples[place]):
            try:
                row = {**known, name: cell}
                transformed_by(steps, pd.DataFrame({column: [row[column]] for column in row}), takes_frames)
            except ValueError:
                continue
            kept.append(at)
        rules[place] = replace(rules[place], categories=tuple(rules[place].categories[at] for at in kept), cuts=None)
        examples[place] = [examples[place][at] for at in kept]
    return replace(found, rules=tuple(rules), examples=tuple(examples))


_Part = tuple[Kind, ColumnRule, list[Any]]


def _gathered(columns: Sequence[StepColumn], parts: Sequence[_Part]) -> RawValues:
    kinds, rules, examples = zip(*parts, strict=True)
    return RawValues(kinds, rules, examples, np.array([column.source for column in columns], dtype=np.intp))


def _by_source(columns: Sequence[StepColumn], names: Sequence[str]) -> dict[int, StepColumn]:
    """Return what is known about each raw column that the steps use; ValueError if one is both encoded and cut."""
    found: dict[int, StepColumn] = {}
    for column in columns:
        if column.source < 0:
            continue
        other = found.setdefault(column.source, column)
        if (column.categories is None) != (other.categories is None):
            raise ValueError(
                f"column {names[column.source][:60]!r} must be either encoded or cut, got both; give the pipeline a "
                "copy of it under another name"
            )
        edges = tuple(sorted({*column.edges, *other.edges}))
        both = replace(column if not column.is_piecewise else other, edges=edges)
        found[column.source] = replace(both, takes_missing=column.takes_missing or other.takes_missing)
    return found


def _unused(name: str, cell: Any) -> _Part:
    return "unused", ColumnRule(name, ("any",), missing="any", fallback="any"), [cell]


def _values_of(name: str, column: StepColumn, rows: pd.DataFrame | None, cuts: list[float] | None) -> _Part:
    """Return what a raw column is to the steps, how it becomes values, and an example of each."""
    if column.categories is not None:
        return "categories", *_of_categories(name, column.categories)
    if column.is_piecewise:
        if cuts is None:
            return "cut", ColumnRule(name, interval_names(column.edges), column.edges), inside(column.edges)
        # A cut is the largest number of the interval below it.
        beyond = [float(np.nextafter(cuts[-1], np.inf))] if cuts else [0.0]
        return "cut", ColumnRule(name, interval_names(cuts), tuple(cuts)), [*cuts, *beyond]
    cells = None if rows is None else rows[name].dropna()
    if cells is None or (others := cells[~cells.isin([0, 1])]).empty:
        return "binary", ColumnRule(name, ("0", "1"), (0.5,)), [0.0, 1.0]
    return "number", ColumnRule(name, ("any",), ()), others.tolist()[:1]


def _without_missing(rule: ColumnRule, cells: list[Any]) -> tuple[ColumnRule, list[Any]]:
    """Return a rule and its examples without the category of missing cells."""
    if rule.missing is None or len(cells) < 2:
        return rule, cells
    kept = [place for place, category in enumerate(rule.categories) if category != rule.missing]
    categories = tuple(rule.categories[place] for place in kept)
    return replace(rule, categories=categories, missing=None), [cells[place] for place in kept]


def inside(edges: Sequence[float]) -> list[float]:
    """Return a number of each interval between ascending edges, which are correct up to rounding."""
    if not edges:
        return [0.0]
    middles = [0.5 * low + 0.5 * high for low, high in itertools.pairwise(edges)]
    margin = [1.0 + abs(edge) for edge in (edges[0], edges[-1])]
    return [edges[0] - margin[0], *middles, edges[-1] + margin[1]]


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


def _cuts(
    steps: Any, reader: StepReader, takes_frames: bool, edges: Mapping[int, Sequence[float]]
) -> dict[int, list[float]]:
    """Return the cuts of numbers in raw columns, to the last digit, from edges that are correct up to rounding."""
    import pandas as pd

    if not edges:
        return {}
    usual = {name: reader.example(place) for place, name in enumerate(reader.names)}

    def values_at(columns: NDArray[np.intp], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        cells = {name: [cell] * len(columns) for name, cell in usual.items()}
        tried = {reader.names[place]: np.where(columns == at, numbers, 0.0) for at, place in enumerate(edges)}
        return transformed_by(steps, pd.DataFrame({**cells, **tried}), takes_frames)

    return dict(zip(edges, jumps(values_at, [inside(ascending) for ascending in edges.values()]), strict=True))


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


def check_codes(estimator: Any, columns: RawValues, made: NDArray[np.float64]) -> None:
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


# Where numbers make a pipeline jump from one value to the next, to the last digit.

Vector = NDArray[np.float64]
# Larger numbers are not data, and steps that scale them would overflow.
_LARGEST = 1e100
# Steps take hardly longer for hundreds of rows than for one.
_MOST_ROWS, _MOST_PARTS = 20_000, 256


def jumps(
    values_at: Callable[[NDArray[np.intp], Vector], NDArray[np.float64]], inside: Sequence[Sequence[float]]
) -> list[list[float]]:
    """Return the cuts of each of some columns: the largest number before each jump.

    Parameters
    ----------
    values_at : callable
        Takes places of columns and a number for each, both of shape (n_rows,), and returns what the steps make of the
        columns, shape (n_rows, n_values): few different rows, one for each interval.
    inside : sequence of sequences of float
        For each column, ascending numbers of which each interval has at least one.

    Returns
    -------
    list of lists of float, ascending
    """
    n_columns = len(inside)
    limits = [_ranks(np.array([-_LARGEST, *numbers, _LARGEST])) for numbers in inside]
    column = np.repeat(np.arange(n_columns), [len(ranks) - 1 for ranks in limits])
    low, high = (np.concatenate([ranks[part] for ranks in limits]) for part in (slice(None, -1), slice(1, None)))
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
