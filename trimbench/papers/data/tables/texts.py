"""A column of text as its different values and where they stand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.data.columns import label_text
from trimbench.papers.data.tables.numbers import decimal_marks
from trimbench.papers.data.tables.wording import quoted, rows_in

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of text.

    Attributes
    ----------
    texts : list of str
        The different texts, in the order in which they appear.
    codes : int array of shape (n_rows,)
        The place of each row's text in `texts`, -1 where it is missing.
    counted_missing : dict from str to int
        The texts, other than nothing, that count as missing, and their numbers of rows.
    """

    name: str
    texts: list[str]
    codes: NDArray[np.int64]
    counted_missing: dict[str, int]

    @classmethod
    def of(cls, name: str, column: pd.Series[Any], missing: Collection[str], tidy: Callable[[str], str]) -> TextColumn:
        """Return the texts of a column, each made `tidy`; those that are `missing` then count as missing."""
        codes, found = _factorized(column)
        tidied = [tidy(text) for text in found]
        values: dict[str, int] = {}
        for text in tidied:
            if text and text not in missing:
                values.setdefault(text, len(values))
        # The last entry is for the code -1.
        translation = np.array([*(values.get(text, -1) for text in tidied), -1], dtype=np.int64)
        counts = np.bincount(codes[codes >= 0], minlength=len(found))
        gaps: dict[str, int] = {}
        for text, count in zip(tidied, counts.tolist(), strict=True):
            if text and text in missing:
                gaps[text] = gaps.get(text, 0) + count
        return cls(name, list(values), translation[codes], gaps)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each of `texts`."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))

    @functools.cached_property
    def decimal_marks(self) -> set[str]:
        """The marks that certainly stand before decimals in some texts."""
        return decimal_marks(self.texts)

    @property
    def n_present(self) -> int:
        """Number of rows with a value."""
        return int((self.codes >= 0).sum())

    def missing_notes(self) -> tuple[str, ...]:
        """Return which texts count as missing, if any."""
        listed = ", ".join(f"{quoted(text)} in {rows_in(n)}" for text, n in self.counted_missing.items())
        return (f"counted as missing: {listed}",) if listed else ()

    def numbers(self, of_value: Iterable[float]) -> NDArray[np.float64]:
        """Return the number of each row, given that of each of `texts`; NaN where it is missing."""
        table = np.array([*of_value, np.nan], dtype=np.float64)
        return table[self.codes]

    def labels(self) -> pd.Series[Any]:
        """Return the column as a category of text, whose categories are sorted."""
        import pandas as pd

        order = sorted(range(len(self.texts)), key=self.texts.__getitem__)
        places = np.full(len(order) + 1, -1, dtype=np.int64)
        places[order] = np.arange(len(order))
        categories = pd.Index([self.texts[place] for place in order], dtype="str" if order else object)
        return pd.Series(pd.Categorical.from_codes(places[self.codes], categories), name=self.name)

    def merged(self, spelling: Mapping[str, str]) -> TextColumn:
        """Return the column with each of its values replaced."""
        values = list(dict.fromkeys(spelling[text] for text in self.texts))
        places = np.array([*(values.index(spelling[text]) for text in self.texts), -1], dtype=np.int64)
        return replace(self, texts=values, codes=places[self.codes])

    def rows_of(self, places: Iterable[int]) -> list[int]:
        """Return the rows, from 1, that have one of some values, given by their places in `texts`."""
        wanted = np.zeros(len(self.texts) + 1, dtype=bool)
        wanted[list(places)] = True
        return [int(row) + 1 for row in np.flatnonzero(wanted[self.codes])]


def _factorized(column: pd.Series[Any]) -> tuple[NDArray[np.int64], list[str]]:
    import pandas as pd

    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) not in ("string", "empty"):
        # 1, 1.0 and True are different texts but equal objects, and a list cannot be looked up.
        column = column.map(label_text, na_action="ignore")
    codes, found = pd.factorize(column)
    return np.asarray(codes, dtype=np.int64), [label_text(value) for value in found.tolist()]
