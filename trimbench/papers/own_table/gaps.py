"""The job of missing features: every method on one random split with one set of masks."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trimbench.conformant.layout import FeatureLayout
from trimbench.papers.conformant.gap_comparison import FAILED, NOT_APPLICABLE, OK
from trimbench.papers.conformant.gap_methods import CODE as METHODS_CODE
from trimbench.papers.conformant.gap_methods import METHODS, NotApplicableError, Training
from trimbench.papers.data.missingness import Missingness
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.own_table.encoded import CODE as ENCODED_CODE
from trimbench.papers.own_table.encoded import Encoded, encoded
from trimbench.papers.own_table.measures import measured
from trimbench.papers.own_table.stored_table import some_rows, stored_table
from trimbench.papers.validation import validated

_COPIES = 4  # of training rows, each with a mask of its own, for models that are trained with masks
_CODE = (
    *METHODS_CODE,
    *ENCODED_CODE,
    "trimbench.papers.data.missingness",
    "trimbench.papers.data.splits",
    "trimbench.papers.own_table.measures",
    "trimbench.papers.own_table.stored_table",
)


@dataclass(frozen=True, eq=False)
class MixedTraining(Training):
    """Training rows with columns of several kinds."""

    mixed: FeatureLayout

    @functools.cached_property
    def layout(self) -> FeatureLayout:
        """The features as conformant models see them."""
        return self.mixed


@job_function(code=(*_CODE, __name__))
def predict_with_gaps(
    table: str,
    missingness: Mapping[str, Json],
    missing: float,
    methods: Sequence[str],
    test_share: float,
    rows: int,
    split: int,
    seed: int,
) -> dict[str, Json]:
    """Hide features of the rows of a random split, and measure the predictions that methods make for its test rows."""
    data = stored_table(table)
    train, test = (some_rows(part, data.labels, rows, seed) for part in data.split(test_share, seed, split))
    own = encoded(data.features.iloc[train], data.features.iloc[test])
    how = validated(Missingness, missingness, "missingness")
    mask_seed = [seed, split, round(1e6 * missing)]
    masked, gaps = _hidden(own, data.features.iloc[[*train, *test]], how, missing, np.random.default_rng(mask_seed))
    training = MixedTraining(
        own.train,
        data.labels[train],
        masked,
        np.tile(data.labels[train], _COPIES),
        len(data.classes),
        own.columns,
        True,
        1.0,
        1.0,
        split,
        own.layout,
    )
    first = [columns[0] for columns in own.columns]
    return {
        "n_train": len(train),
        "n_test": len(test),
        "missing_percent": 100.0 * float(np.isnan(gaps[:, first]).mean()),
        "methods": [
            {"training": "complete", "method": name, **_tested(name, training, gaps, data.labels[test])}
            for name in methods
        ],
    }


def _hidden(
    own: Encoded, raw: pd.DataFrame, how: Missingness, fraction: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return copies of the training rows, and the test rows, with NaN for hidden features besides what is missing."""
    n_train = len(own.train)
    order = [*np.tile(np.arange(n_train), _COPIES), *range(n_train, len(raw))]
    rows = np.vstack([np.tile(own.train, (_COPIES, 1)), own.test])
    values = np.stack([_heights(raw[name]) for name in own.names], axis=1)[order]
    mask = how.draw(len(rows), own.names, fraction, rng, values)
    owners = np.repeat(np.arange(len(own.columns)), [len(columns) for columns in own.columns])
    rows[mask[:, owners]] = np.nan
    return rows[: -len(own.test)], rows[-len(own.test) :]


def _heights(column: pd.Series) -> NDArray[np.float64]:
    """Return numbers by which values are high or low: codes of categories; the median where one is missing."""
    is_category = isinstance(column.dtype, pd.CategoricalDtype)
    numbers = column.cat.codes.where(column.notna()) if is_category else column
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isnan(values), np.nanmedian(values), values)


def _tested(name: str, training: Training, gaps: NDArray[np.float64], truth: NDArray[np.int64]) -> dict[str, Json]:
    start = time.perf_counter()
    try:
        predict = METHODS[name].fit(training)
        learned = time.perf_counter()
        probabilities = predict(gaps)
    except NotApplicableError as why:
        return {"status": NOT_APPLICABLE, "reason": str(why)}
    except (ValueError, ArithmeticError, RuntimeError) as error:  # one method must not cost the others
        return {"status": FAILED, "reason": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    seconds = time.perf_counter() - learned
    return {
        "status": OK,
        **measured(truth, probabilities),
        "us_per_row": 1e6 * seconds / len(gaps),
        "fit_seconds": learned - start,
    }
