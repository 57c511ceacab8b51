"""The few values that the steps of a pipeline tell apart in each raw column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.estimators.given_classifier import made_by
from trimbench.estimators.step_columns import StepColumn, columns_through
from trimbench.estimators.step_cuts import jumps
from trimbench.networks.discretize import ColumnRule, cell_texts, interval_names

if TYPE_CHECKING:
    import pandas as pd


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
        """Return rows the i-th of which has the i-th value of each column, or its last one."""
        import pandas as pd

        n_rows = max(map(len, self.examples))
        return pd.DataFrame(
            {
                rule.name: [*cells, *[cells[-1]] * (n_rows - len(cells))]
                for rule, cells in zip(self.rules, self.examples, strict=True)
            }
        )


def raw_values(steps: Any, names: Sequence[str], takes_frames: bool, rows: pd.DataFrame | None) -> RawValues:
    """Find out which values of raw columns fitted steps tell apart.

    Raises ValueError if a step is unknown, or a number is used as it is and the rows, if there are any, have more of it
    than zeros and ones.
    """
    columns = columns_through(steps, len(names), names)
    sources = np.array([column.source for column in columns], dtype=np.intp)
    known = _by_source(columns, names)
    rules, examples = [], []
    cut = [place for place, column in known.items() if column.categories is None and column.has_steps]
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
    """Return what is known of each raw column that the steps use; one that they use in several ways must be cut."""
    found: dict[int, StepColumn] = {}
    for column in columns:
        other = found.setdefault(column.source, column)
        if (column.categories is None) != (other.categories is None):
            raise ValueError(
                f"column {names[column.source][:60]!r} must be either encoded or cut, got both; give the pipeline a "
                "copy of it under another name"
            )
        if not column.has_steps:
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
    texts = cell_texts(cells)
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
    strange = cells[~cells.isin([0, 1])]
    if len(strange):
        raise ValueError(
            f"column {name[:60]!r} must be cut into few values for a trimming, got the number "
            f"{strange.tolist()[0]!r}; fit "
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
        return made_by(steps, pd.DataFrame({**cells, **tried}), takes_frames)

    return jumps(values_at, len(cut)) if cut else []


def _with_missing(found: RawValues, steps: Any, takes_frames: bool, known: dict[int, StepColumn]) -> RawValues:
    """Return the values with the one that a missing cell becomes, where it is imputed."""
    import pandas as pd

    places = [place for place, column in known.items() if column.takes_missing]
    if not places:
        return found
    made = made_by(steps, found.table(), takes_frames)
    gap = found.table().iloc[:1].copy()
    for place in places:
        name = found.rules[place].name
        gap[name] = pd.Series([np.nan], dtype=float if gap[name].dtype.kind in "biuf" else object)
    imputed = made_by(steps, gap, takes_frames)[0]
    rules = list(found.rules)
    for place in places:
        own = found.sources == place
        rule = rules[place]
        same = (made[: len(rule.categories), own] == imputed[own]).all(axis=1)
        if same.any():
            rules[place] = replace(rule, missing=rule.categories[int(np.argmax(same))])
    return replace(found, rules=tuple(rules))
