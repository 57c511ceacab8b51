"""Small studies, and how their data is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_iris

from trimbench.papers.own_table.settings import StudySettings
from trimbench.papers.own_table.study import Study, prepared, run_study
from trimbench.reproduction.execution.executors import SerialExecutor
from trimbench.reproduction.execution.store import JobStore
from trimbench.reproduction.vocabulary.planning import Surroundings

from ..experiments import inputs_of

# One budget besides all features, one mask, two methods.
SMALL: dict[str, Any] = {
    "budgets": [2],
    "mechanisms": ["mcar"],
    "shares": [0.4],
    "splits": 1,
    "methods": ["nacl", "mean"],
    "selected": [5],
    "explained": 1,
    "gap_rows": 200,
}


def breast_cancer() -> pd.DataFrame:
    """Return a table with five numbers and a text, of which 5 % are missing, and names of the classes."""
    data = load_breast_cancer(as_frame=True)
    texture = pd.qcut(data.data.iloc[:, 21], 3, labels=["smooth", "medium", "coarse"]).astype(object)
    table = data.data.iloc[:, [24, 25, 26, 27, 28]].assign(texture=texture)
    table = table.mask(np.random.default_rng(0).random(table.shape) < 0.05)
    return table.assign(diagnosis=data.target.map({0: "malignant", 1: "benign"}))


def iris() -> pd.DataFrame:
    """Return a table of three classes."""
    data = load_iris(as_frame=True)
    return data.data.assign(species=data.target.map(dict(enumerate(data.target_names))))


def studied(table: pd.DataFrame | Path, target: str, store: Path, **changes: Any) -> Study:
    """Run a small study, one job after the other."""
    costs = changes.pop("costs", None)
    plan = prepared(table, target, costs, StudySettings(**{**SMALL, **changes}))
    where = Surroundings(inputs_of(), JobStore(store), SerialExecutor(), "default")
    return run_study(plan, "table.csv", target, where, lambda text: None)
