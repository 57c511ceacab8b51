"""The job of selected features: the stated confidence with and without the correction for their selection."""

from __future__ import annotations

import warnings

import numpy as np

from trimbench.estimators.selection_corrected import SelectionCorrectedNB
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.own_table.encoded import CODE as ENCODED_CODE
from trimbench.papers.own_table.encoded import encoded
from trimbench.papers.own_table.measures import measured
from trimbench.papers.own_table.stored_table import stored_table

_CODE = (
    *ENCODED_CODE,
    "trimbench.estimators.selection_corrected",
    "trimbench.selection_bias",
    "trimbench.conformant.metrics",
    "trimbench.papers.data.splits",
    "trimbench.papers.own_table.measures",
    "trimbench.papers.own_table.stored_table",
)


@job_function(code=(*_CODE, __name__))
def judge_confidence(table: str, k: int, correct: bool, test_share: float, rows: int, seed: int) -> dict[str, Json]:
    """Select k encoded columns by correlation, learn from them, and compare the expected error with the actual one."""
    data = stored_table(table)
    train = data.training_rows(test_share, seed, rows)
    _, test = data.split(test_share, seed)
    own = encoded(data.features.iloc[train], data.features.iloc[test])
    n_selected = min(k, own.train.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fewer columns are selected where the others say nothing
        model = SelectionCorrectedNB(k=n_selected, correct=correct, seed=seed).fit(own.train, data.labels[train])
    found = model.predict_proba(own.test)
    truth = np.searchsorted(model.classes_, data.labels[test])
    return {
        "n_columns": own.train.shape[1],
        "selected": [own.outputs[place] for place in np.asarray(model.selected_).tolist()],
        "expected_error": float(model.expected_error(own.test)),
        "actual_error": float((found.argmax(axis=1) != truth).mean()),
        **measured(truth, found),
    }
