"""Figures of explanations: images of chosen pixels, and bars of the evidence of a table's features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from trimbench.conformant.reduced_problem import Vector
from trimbench.papers.study.figures import BarFigure, ImageFigure

if TYPE_CHECKING:
    import pandas as pd

_MOST_BARS = 20
_CHOSEN, _OTHER = "in the explanation", "not in it"


def only(values: ArrayLike, features: Sequence[int]) -> Vector:
    """Return a row with NaN in place of all but some features."""
    row = np.asarray(values, dtype=np.float64)
    kept = np.full(len(row), np.nan)
    kept[list(features)] = row[list(features)]
    return kept


def image_grid(title: str, images: Mapping[str, Mapping[str, ArrayLike]], name: str = "") -> ImageFigure:
    """Return a figure of images: a line of the grid for each key of `images`, whose images have names.

    Parameters
    ----------
    images : mapping from line to mapping from column to array of shape (height, width)
        From 0 (black) to 1 (white), NaN for grey: what ``explanation.image(x, (height, width))`` returns.
    name : str
        Stem of its file in an experiment.
    """
    import pandas as pd

    panels = []
    for row, columns in images.items():
        for column, image in columns.items():
            values = np.asarray(image, dtype=np.float64)
            y, x = np.indices(values.shape)
            labels = {"row": row, "column": column}
            panels.append(pd.DataFrame(labels | {"y": y.ravel(), "x": x.ravel(), "value": values.ravel()}))
    return ImageFigure(title, pd.concat(panels, ignore_index=True), name)


def evidence_bars(title: str, table: pd.DataFrame, most: int = _MOST_BARS, name: str = "") -> BarFigure:
    """Return a figure of the evidence of features, with those of an explanation in colour.

    Parameters
    ----------
    table : DataFrame with the columns feature, evidence and chosen
        As ``explanation.table(feature_names)`` returns it.
    most : int
        How many features to show: all that were chosen, and those with the most evidence.
    name : str
        Stem of its file in an experiment.
    """
    import pandas as pd

    order = np.lexsort((-table["evidence"].abs(), ~table["chosen"].astype(bool)))
    order = order[: max(most, int(table["chosen"].sum()))]
    shown = table.iloc[order].sort_values("evidence", ascending=False, kind="stable")
    points = pd.DataFrame(
        {
            "bar": shown["feature"].astype(str).to_numpy(),
            "series": np.where(shown["chosen"], _CHOSEN, _OTHER),
            "y": np.arange(len(shown)),
            "x": shown["evidence"].to_numpy(),
        }
    )
    return BarFigure(title, "evidence for the class (log-odds, nats)", points, _CHOSEN, name)
