"""Rows as categories; the cuts of numbers come from the training rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from trimbench.papers.data.columns import is_number_column

if TYPE_CHECKING:
    import pandas as pd

MISSING = "missing"
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
