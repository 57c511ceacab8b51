"""Compare what wide tables take, of few rows and thousands of columns: time should grow as the number of columns does.

Twice the columns should take at most about twice the time, and the widest tables at most the seconds of `LIMITS`. Most
of the time goes into two whole studies.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.naive_bayes import CategoricalNB

import trimbench as tb
from trimbench.estimators import TrimmedClassifier
from trimbench.networks.discretize import Discretizer
from trimbench.papers import study

from .measure import Call, Row, growth, growth_of, processor_seconds, ratio_of, repeated, version_of, versus

N_ROWS, N_INFORMATIVE = 100, 20
N_COLUMNS = (2_500, 5_000, 10_000, 20_000)
# The whole study of a table, with its default settings.
N_STUDIED_ROWS, N_STUDIED = 40, (2_500, 5_000)
# Seconds that the widest tables may take.
LIMITS = {"learning": 2.0, "fit of TrimmedClassifier": 5.0, "study": 60.0}


def measurements(n_columns: int, n_rows: int = N_ROWS) -> tuple[pd.DataFrame, pd.Series]:
    """Return rows of normal numbers, a few of which tell the class, and the classes."""
    rng = np.random.default_rng(n_columns)
    classes = np.arange(n_rows) % 2
    cells = rng.normal(size=(n_rows, n_columns)) + (np.arange(n_columns) < N_INFORMATIVE) * classes[:, None]
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


def within_limits() -> Iterator[Row]:
    for name, call_of in (("learning", learning), ("fit of TrimmedClassifier", trimming)):
        times = repeated([call_of(N_COLUMNS[-1])], 3)[:, 0]
        yield limited(f"{name}, {N_ROWS} x {N_COLUMNS[-1]:,}", times, LIMITS[name])


def studying() -> Iterator[Row]:
    """Study once without a warm-up, as whoever runs the command does."""
    times = [study_seconds(n_columns) for n_columns in N_STUDIED]
    yield growth_of(f"study, {N_STUDIED_ROWS} rows: growth in columns", N_STUDIED, np.array([times]))
    yield limited(f"study, {N_STUDIED_ROWS} x {N_STUDIED[-1]:,}", np.array(times[-1:]), LIMITS["study"])


def study_seconds(n_columns: int) -> float:
    """Return the processor seconds of a study that finds nothing stored, and writes its page."""
    frame, classes = measurements(n_columns, N_STUDIED_ROWS)
    table = frame.assign(kind=np.where(classes == 0, "a", "b"))
    cache = os.environ.get("TRIMBENCH_CACHE")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.environ["TRIMBENCH_CACHE"] = folder
        try:
            start = processor_seconds()
            study(table, "kind", folder=Path(folder) / "results/study")
            return processor_seconds() - start
        finally:
            del os.environ["TRIMBENCH_CACHE"]
            os.environ.update({} if cache is None else {"TRIMBENCH_CACHE": cache})


def limited(quantity: str, seconds: NDArray[np.float64], limit: float) -> Row:
    """Return the row of a time that must not be above a limit: a ratio of at most 1."""
    return ratio_of(quantity, "limit", np.column_stack([seconds, np.full(len(seconds), limit)]), "s")


COMPARISONS = (within_limits, studying, growth_in_columns, against_scikit_learn)


def main() -> None:
    for comparison in COMPARISONS:
        for row in comparison():
            print(f"{row.quantity}: {row.ours:.3g} {row.unit}, {row.ratio:.2f} of {row.against}", flush=True)


if __name__ == "__main__":
    main()
