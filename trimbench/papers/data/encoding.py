"""Encodings whose parameters come from the training rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trimbench.papers.data.columns import is_number_column

if TYPE_CHECKING:
    import pandas as pd

MISSING = "missing"


def categorize(train: pd.DataFrame, *others: pd.DataFrame, keep_missing: bool = False) -> tuple[pd.DataFrame, ...]:
    """Turn every column into a category: numbers by whether they are high or low among the training rows.

    A number becomes "1" if it exceeds the median of the training rows, otherwise "0"; where none exceeds it (a 0/1
    column that is mostly 1), "1" if it reaches it. A label stays. Where a column misses a value in any frame, "missing"
    is one more category of it, unless `keep_missing`. All frames get the same categories, including those that a source
    declares for a label column.

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
    columns = [_categorized([frame[name] for frame in frames], keep_missing) for name in train.columns]
    return tuple(
        pd.DataFrame(
            {name: coded[place] for name, coded in zip(train.columns, columns, strict=True)}, index=frame.index
        )
        for place, frame in enumerate(frames)
    )


def _categorized(parts: list[pd.Series[Any]], keep_missing: bool) -> list[pd.Series[Any]]:
    """Return one column in all frames as categories; the first frame is that of the training rows."""
    import pandas as pd

    if is_number_column(parts[0]):
        median = parts[0].median()
        if pd.isna(median):
            raise ValueError(
                f"`train` must have a number in column {parts[0].name!r}, got missing values only; drop it"
            )
        # A cut above the highest value would leave nothing of the column.
        is_high = "gt" if (parts[0] > median).any() else "ge"
        texts = [getattr(part, is_high)(median).map({False: "0", True: "1"}).where(part.notna()) for part in parts]
        categories = ["0", "1"]
    else:
        texts = [part.astype(object).map(str, na_action="ignore") for part in parts]
        declared = (
            [str(value) for value in parts[0].cat.categories] if isinstance(parts[0].dtype, pd.CategoricalDtype) else []
        )
        seen = sorted({value for text in texts for value in text.dropna()} - set(declared))
        categories = [*declared, *seen]
    if not keep_missing and any(text.isna().any() for text in texts):
        texts = [text.fillna(MISSING) for text in texts]
        categories = [*categories, *({MISSING} - set(categories))]
    dtype = pd.CategoricalDtype(categories)
    return [text.astype(dtype) for text in texts]
