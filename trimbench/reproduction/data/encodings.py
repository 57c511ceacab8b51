"""Tables as numbers: zeros and ones for conformant learning, indices of categories for trimming."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from trimbench.reproduction.data.dataset import is_number_column

if TYPE_CHECKING:
    import pandas as pd


CutRule = Literal["mean", "part_mean", "row_mean", "bins"]
MISSING = "missing"
# The columns of one feature in the training and in the test rows.
_Parts = tuple[NDArray[np.uint8], NDArray[np.uint8]]


@dataclass(frozen=True)
class BinaryEncoding:
    """How a table becomes zeros and ones.

    Attributes
    ----------
    cut : {"mean", "part_mean", "row_mean", "bins"}
        A number is 1 where it exceeds the mean plus `margin` standard deviations: of its column in the training rows,
        of its column in its own part (training or test), or of its row. With ``"bins"`` it is one-hot encoded in bins.
    bins : int
        Number of bins with equally many training rows, for numbers without `cuts`; equal cuts count once.
    cuts : mapping from column to thresholds
        Bins of ``"bins"``: a value belongs to the bin of the first threshold that it does not exceed.
    distinct : sequence of str
        Columns of numbers whose every value is a bin of its own under ``"bins"``.
    merged : mapping from name to prefix
        Indicator columns whose names begin with the prefix are the one-hot encoding of one feature.
    """

    cut: CutRule = "mean"
    margin: float = 0.05
    bins: int = 5
    cuts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    distinct: Sequence[str] = ()
    merged: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.bins < 2:
            raise ValueError(f"bins must be 2 or more, got {self.bins}")


@dataclass(frozen=True, eq=False)
class BinaryTable:
    """Training and test rows as zeros and ones, and the columns of each feature.

    A number that is cut and never missing has one column; other features have one for each value.
    """

    train: NDArray[np.uint8]
    test: NDArray[np.uint8]
    features: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]


def encode_binary(train: pd.DataFrame, test: pd.DataFrame, encoding: BinaryEncoding) -> BinaryTable:
    """Encode training and test rows.

    A missing value is a value of its own: a cut number with missing values has three columns (below, above, missing),
    one in bins has one more.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 9.0], "colour": ["red", None, "blue"]})
    >>> table = encode_binary(frame, frame[:1], BinaryEncoding())
    >>> table.train.tolist(), table.columns
    ([[0, 0, 0, 1], [0, 0, 1, 0], [1, 1, 0, 0]], ((0,), (1, 2, 3)))
    """
    if len(train) == 0 or len(test) == 0:
        raise ValueError(f"train and test must have rows, got {len(train)} and {len(test)}")
    names = [str(name) for name in train.columns]
    for name in (*encoding.cuts, *encoding.distinct):
        if name not in names:
            raise ValueError(f"cuts and distinct must name columns of the table, got {name!r}; there are {names[:20]}")
    merged = _merged(names, encoding.merged)
    numbers = [name for name in names if is_number_column(train[name]) and name not in merged]
    cut = _cut_numbers(train, test, numbers, encoding) if encoding.cut != "bins" else {}
    parts: dict[str, _Parts] = {}
    for name in names:
        feature = merged.get(name, name)
        if feature in parts:
            continue
        if name in merged:
            columns = [column for column, owner in merged.items() if owner == feature]
            parts[feature] = _indicators(train, columns), _indicators(test, columns)
        elif name in cut:
            parts[feature] = cut[name]
        elif name in numbers:
            parts[feature] = _binned(train, test, name, encoding)
        else:
            parts[feature] = _one_hot(train[name], test[name])
    edges = [0, *np.cumsum([left.shape[1] for left, _ in parts.values()]).tolist()]
    return BinaryTable(
        np.ascontiguousarray(np.hstack([left for left, _ in parts.values()])),
        np.ascontiguousarray(np.hstack([right for _, right in parts.values()])),
        tuple(parts),
        tuple(tuple(range(start, end)) for start, end in itertools.pairwise(edges)),
    )


def _merged(names: Sequence[str], prefixes: Mapping[str, str]) -> dict[str, str]:
    """Return the feature of each indicator column."""
    owner: dict[str, str] = {}
    for feature, prefix in prefixes.items():
        found = [name for name in names if name.startswith(prefix)]
        if not found:
            raise ValueError(f"merged: no column begins with {prefix!r}; there are {names[:20]}")
        owner |= dict.fromkeys(found, feature)
    return owner


def _cut_numbers(
    train: pd.DataFrame, test: pd.DataFrame, names: list[str], encoding: BinaryEncoding
) -> dict[str, _Parts]:
    """Cut all numbers at once: an image has hundreds of columns."""
    if not names:
        return {}
    left, right = (frame[names].to_numpy(dtype=np.float64) for frame in (train, test))

    def level(part: NDArray[np.float64]) -> NDArray[np.float64]:
        axis = 1 if encoding.cut == "row_mean" else 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column or row without any number
            mean, deviation = np.nanmean(part, axis=axis, keepdims=True), np.nanstd(part, axis=axis, keepdims=True)
        return np.asarray(mean + encoding.margin * deviation)

    ones = (left > level(left)).astype(np.uint8)
    others = (right > (level(left) if encoding.cut == "mean" else level(right))).astype(np.uint8)
    gaps = np.isnan(left), np.isnan(right)
    incomplete = gaps[0].any(axis=0) | gaps[1].any(axis=0)
    return {
        name: (_three(ones[:, i], gaps[0][:, i]), _three(others[:, i], gaps[1][:, i]))
        if incomplete[i]
        else (ones[:, [i]], others[:, [i]])
        for i, name in enumerate(names)
    }


def _three(ones: NDArray[np.uint8], gaps: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return the columns of the values below, above and missing."""
    return np.eye(3, dtype=np.uint8)[np.where(gaps, 2, ones)]


def _binned(train: pd.DataFrame, test: pd.DataFrame, name: str, encoding: BinaryEncoding) -> _Parts:
    left, right = (frame[name].to_numpy(dtype=np.float64) for frame in (train, test))
    known = left[~np.isnan(left)]
    inner = encoding.cuts.get(name)
    if name in encoding.distinct:
        thresholds = np.unique(np.concatenate([known, right[~np.isnan(right)]]))[:-1]
    elif inner is not None or len(known) == 0:
        thresholds = np.array(inner or [], dtype=np.float64)
    else:
        thresholds = np.unique(np.quantile(known, np.arange(1, encoding.bins) / encoding.bins, method="lower"))
    width = len(thresholds) + 1
    places = [np.where(np.isnan(part), width, np.searchsorted(thresholds, part)) for part in (left, right)]
    bins = np.eye(width + any((part == width).any() for part in places), dtype=np.uint8)
    return bins[places[0]], bins[places[1]]


def _indicators(frame: pd.DataFrame, columns: list[str]) -> NDArray[np.uint8]:
    return np.column_stack([(frame[column].astype(str) == "1").to_numpy(dtype=np.uint8) for column in columns])


def _one_hot(train: pd.Series[Any], test: pd.Series[Any]) -> _Parts:
    import pandas as pd

    texts = [part.astype(object).where(part.notna(), MISSING).astype(str) for part in (train, test)]
    categories = pd.Index(sorted({*texts[0].unique(), *texts[1].unique()}))
    codes = [categories.get_indexer(pd.Index(text)) for text in texts]
    rows = np.eye(len(categories), dtype=np.uint8)
    return rows[codes[0]], rows[codes[1]]


# Rows as categories; the cuts of numbers come from the training rows alone.

Cut = Literal["median", "mean"]
# What becomes of a missing value: a category of its own, nothing, or a category drawn with equal probabilities.
Gaps = Literal["category", "keep", "draw"]


def categorize(
    train: pd.DataFrame,
    *others: pd.DataFrame,
    cut: Cut = "median",
    gaps: Gaps = "category",
    rng: np.random.Generator | None = None,
) -> tuple[pd.DataFrame, ...]:
    """Turn every column into a category: numbers by whether they are high or low among the training rows.

    A number becomes "1" if it exceeds the median (or the mean, `cut`) of the training rows, otherwise "0"; where none
    exceeds it (a 0/1 column that is mostly 1), "1" if it reaches it. A label stays. All frames get the same categories,
    including those that a source declares for a label column.

    Where a column misses a value in any frame, "missing" is one more category of it, with `gaps` = "category". With
    "keep" it stays missing. With "draw" each missing value becomes one of the categories that the column has, by `rng`
    and with equal probabilities: of two categories, by a fair coin.

    >>> import pandas as pd
    >>> (coded,) = categorize(pd.DataFrame({"size": [1.0, 2.0, 9.0], "colour": ["red", None, "blue"]}))
    >>> coded["size"].tolist(), coded["colour"].tolist()
    (['0', '0', '1'], ['red', 'missing', 'blue'])
    """
    import pandas as pd

    if len(train) == 0:
        raise ValueError("`train` must have at least one row to take medians from, got 0 rows")
    for place, frame in enumerate(others, 1):
        if list(frame.columns) != list(train.columns):
            raise ValueError(
                f"frame {place} of `others` must have the columns of `train`, {list(train.columns)}, "
                f"got {list(frame.columns)}"
            )
    frames = (train, *others)
    columns = [_categorized([frame[name] for frame in frames], cut) for name in train.columns]
    columns = [_filled(parts, gaps, rng) for parts in columns]
    return tuple(
        pd.DataFrame(
            {name: coded[place] for name, coded in zip(train.columns, columns, strict=True)}, index=frame.index
        )
        for place, frame in enumerate(frames)
    )


def _categorized(parts: list[pd.Series[Any]], cut: Cut) -> list[pd.Series[Any]]:
    """Return one column in all frames as categories; the first frame is that of the training rows."""
    import pandas as pd

    if is_number_column(parts[0]):
        if parts[0].isna().all():
            raise ValueError(
                f"`train` must have a number in column {parts[0].name!r}, got missing values only; drop it"
            )
        level = parts[0].median() if cut == "median" else parts[0].mean()
        # A cut above the highest value would leave nothing of the column.
        is_high = "gt" if (parts[0] > level).any() else "ge"
        texts = [getattr(part, is_high)(level).map({False: "0", True: "1"}).where(part.notna()) for part in parts]
        categories = ["0", "1"]
    else:
        texts = [part.astype(object).map(str, na_action="ignore") for part in parts]
        declared = (
            [str(value) for value in parts[0].cat.categories] if isinstance(parts[0].dtype, pd.CategoricalDtype) else []
        )
        seen = sorted({value for text in texts for value in text.dropna()} - set(declared))
        categories = [*declared, *seen]
    dtype = pd.CategoricalDtype(categories)
    return [text.astype(dtype) for text in texts]


def _filled(parts: list[pd.Series[Any]], gaps: Gaps, rng: np.random.Generator | None) -> list[pd.Series[Any]]:
    """Return one column of categories in all frames, with its missing values filled."""
    if gaps == "keep" or not any(part.isna().any() for part in parts):
        return parts
    if gaps == "draw":
        if rng is None:
            raise ValueError("`rng` must be a numpy Generator where gaps='draw', got None")
        return [_drawn(part, rng) for part in parts]
    known = MISSING in parts[0].cat.categories
    return [(part if known else part.cat.add_categories(MISSING)).fillna(MISSING) for part in parts]


def _drawn(part: pd.Series[Any], rng: np.random.Generator) -> pd.Series[Any]:
    import pandas as pd

    codes = part.cat.codes.to_numpy(copy=True)
    gaps = codes < 0
    codes[gaps] = rng.integers(len(part.cat.categories), size=int(gaps.sum()))
    return pd.Series(pd.Categorical.from_codes(codes, part.cat.categories), index=part.index, name=part.name)
