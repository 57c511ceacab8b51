"""Compare what wide tables take, of few rows and thousands of columns: time should grow as the number of columns does.

Twice the columns should take at most about twice the time. Takes about a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
from sklearn.naive_bayes import CategoricalNB

import trimbench as tb
from trimbench.estimators import TrimmedClassifier
from trimbench.networks.discretize import Discretizer

from .measure import Call, Row, growth, version_of, versus

N_ROWS, N_INFORMATIVE = 100, 20
N_COLUMNS = (2_500, 5_000, 10_000, 20_000)


def measurements(n_columns: int) -> tuple[pd.DataFrame, pd.Series]:
    """Return rows of normal numbers, a few of which tell the class, and the classes."""
    rng = np.random.default_rng(n_columns)
    classes = np.arange(N_ROWS) % 2
    cells = rng.normal(size=(N_ROWS, n_columns)) + (np.arange(n_columns) < N_INFORMATIVE) * classes[:, None]
    return pd.DataFrame(cells, columns=[f"g{i}" for i in range(n_columns)]), pd.Series(classes, name="class")


def categories(n_columns: int) -> tuple[pd.DataFrame, pd.Series]:
    """Return rows of whole numbers from 0 to 2, and the classes."""
    cells = np.random.default_rng(n_columns).integers(0, 3, size=(N_ROWS, n_columns))
    columns = [f"g{i}" for i in range(n_columns)]
    return pd.DataFrame(cells, columns=columns), pd.Series(np.arange(N_ROWS) % 2, name="class")


def learning(n_columns: int) -> Call:
    """Return a call that learns naive Bayes."""
    return partial(tb.learn, *categories(n_columns))


def cutting(n_columns: int) -> Call:
    """Return a call that cuts all columns."""
    return partial(Discretizer.fit, *measurements(n_columns))


def trimming(n_columns: int) -> Call:
    """Return a call that fits a trimmed classifier."""
    return partial(TrimmedClassifier().fit, *measurements(n_columns))


def growth_in_columns() -> Iterator[Row]:
    for name, call_of in (("learning", learning), ("cutting", cutting), ("fit of TrimmedClassifier", trimming)):
        yield growth(f"{name}, {N_ROWS} rows: growth in columns", N_COLUMNS, call_of, 3)


def against_scikit_learn() -> Iterator[Row]:
    frame, classes = categories(N_COLUMNS[-1])
    theirs = partial(CategoricalNB().fit, frame, classes)
    what = f"learning, {N_ROWS} x {N_COLUMNS[-1]:,}"
    yield versus(what, "CategoricalNB", learning(N_COLUMNS[-1]), theirs, 3, note=version_of("sklearn") or "")


COMPARISONS = (growth_in_columns, against_scikit_learn)
