"""The job of the explanations: which features keep the class of a row."""

from __future__ import annotations

import warnings

import numpy as np

from trimbench.estimators.naive_conformant import NaiveConformantClassifier
from trimbench.networks.discretize import IdentifierColumnWarning
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.own_table.stored_table import stored_table

_CODE = (
    "trimbench.conformant",
    "trimbench.estimators",
    "trimbench.papers.data.splits",
    "trimbench.papers.own_table.stored_table",
)


@job_function(code=(*_CODE, __name__))
def explain_rows(table: str, n_rows: int, test_share: float, rows: int, seed: int) -> dict[str, Json]:
    """Explain some test rows of each class that is predicted: the surest, the least sure, and others between them."""
    data = stored_table(table)
    train = data.training_rows(test_share, seed, rows)
    _, test = data.split(test_share, seed)
    known = [name for name in data.names if data.features[name].iloc[train].notna().any()]
    classes = np.array(data.classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifierColumnWarning)
        model = NaiveConformantClassifier().fit(data.features[known].iloc[train], classes[data.labels[train]])
    features = data.features[known].iloc[test]
    found = model.predict_proba(features)
    explained: list[Json] = []
    for place, label in enumerate(model.classes_):
        own = np.flatnonzero(found.argmax(axis=1) == place)
        own = own[np.argsort(-found[own, place], kind="stable")]
        chosen = own[np.unique(np.linspace(0, len(own) - 1, n_rows).round().astype(int))] if len(own) else own
        for row in chosen.tolist():
            rival = model.classes_[np.argsort(found[row])[-2]]
            one = model.explain(features.iloc[row], against=rival)
            explained.append(
                {
                    "row": int(test[row]),
                    "class": str(classes[data.labels[test[row]]]),
                    "predicted": str(label),
                    "against": str(rival),
                    "probability": float(found[row, place]),
                    "features": [f"{known[i]} = {_shown(features.iloc[row, i])}" for i in one.features],
                    "opposing": [f"{known[i]} = {_shown(features.iloc[row, i])}" for i in one.opposing],
                    "n_support": len(one.support),
                }
            )
    return {"explained": explained}


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
