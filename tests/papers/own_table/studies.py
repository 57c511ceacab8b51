"""Small studies, and how their data is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.datasets import load_breast_cancer, load_iris

from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.store import JobStore
from trimbench.papers.execution.workers import SerialExecutor
from trimbench.papers.own_table.settings import StudySettings
from trimbench.papers.own_table.study import Study, prepared, run_study
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.planning import Surroundings

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
    """Return the table with six of its features and names of the classes."""
    data = load_breast_cancer(as_frame=True)
    classes = data.target.map({0: "malignant", 1: "benign"})
    return data.data.iloc[:, [21, 24, 25, 26, 27, 28]].assign(diagnosis=classes)


def iris() -> pd.DataFrame:
    """Return a table of three classes."""
    data = load_iris(as_frame=True)
    return data.data.assign(species=data.target.map(dict(enumerate(data.target_names))))


def studied(table: pd.DataFrame | Path, target: str, store: Path, **changes: Any) -> Study:
    """Run a small study, one job after the other."""
    costs = changes.pop("costs", None)
    plan = prepared(table, target, costs, StudySettings(**{**SMALL, **changes}))
    inputs = Inputs(Catalogue((configuration_folder(),)), Cache.from_environment(offline=True))
    where = Surroundings(inputs, JobStore(store), SerialExecutor(), "default")
    return run_study(plan, "table.csv", target, where, lambda text: None)
