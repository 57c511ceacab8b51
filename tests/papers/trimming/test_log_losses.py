"""Log losses of selections of features: those of separate calls, and what a table says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from trimbench.estimators import TrimmedClassifier
from trimbench.papers.beyond.budgets import TwoSides
from trimbench.papers.beyond.log_loss import METHODS, LogLosses
from trimbench.reproduction.data.masks import split_rows

from ..experiments import inputs_of, rows_of, tables_of

SIDES = {"breast_cancer": TwoSides(dataset="breast_cancer", positive=["malignant"], negative=["benign"])}


@pytest.fixture(scope="module")
def experiment() -> LogLosses:
    return LogLosses(datasets=["breast_cancer"], problems=SIDES, budgets=[1, 2], splits=1, evaluation_limit=3000)


@pytest.fixture(scope="module")
def rows(experiment: LogLosses) -> pd.DataFrame:
    return rows_of(experiment)


def test_losses_are_those_of_separate_calls(experiment: LogLosses, rows: pd.DataFrame) -> None:
    (cell,) = experiment.cells(inputs_of())
    seed, data = cell.job.parameters["learning"]["split_seed"], experiment.problems["breast_cancer"]
    X, sides = data.rows(inputs_of().dataset("breast_cancer"))
    labels = sides.to_numpy(dtype=str)
    train, test = split_rows(len(X), 0.2, seed, stratify=labels)
    found = {(one["budget"], one["method"]): one for one in rows["methods"].iloc[0]}
    assert len(found) == 2 * len(METHODS)
    by_loss = {"objective": "log_loss"}
    for budget, given in (
        (1, {"trimming": {}, "model": {"rows_weight": 0}, "lowest": by_loss}),
        (2, {"lowest": by_loss}),
    ):
        for method, how in given.items():
            model = TrimmedClassifier(budget=budget, time_limit=None, **how).fit(X.iloc[train], labels[train])
            one = found[budget, method]
            loss = log_loss(labels[test], model.predict_proba(X.iloc[test])[:, 1])
            assert one["log_loss"] == pytest.approx(loss, rel=1e-9), (budget, method)
        assert all(len(one["features"]) <= budget for (own, _), one in found.items() if own == budget)
    assert found[1, "lowest"]["features"] == found[1, "greedy"]["features"]


def test_whether_trimming_is_worse_is_told_by_the_standard_error(experiment: LogLosses, rows: pd.DataFrame) -> None:
    def with_losses(losses: Sequence[float], split: int) -> dict[str, Any]:
        names = ("trimming", "greedy")
        line = rows["methods"].iloc[0][0]
        methods = [{**line, "method": name, "log_loss": loss} for name, loss in zip(names, losses, strict=True)]
        return {**rows.iloc[0].to_dict(), "split": split, "methods": methods}

    for leads, told in (([0.3, 0.31], "worse"), ([0.3, -0.2], "equal"), ([-0.3, -0.31], "better")):
        made = pd.DataFrame([with_losses((1.0 + lead, 1.0), split) for split, lead in enumerate(leads)])
        found = tables_of(experiment.outcome(made))
        line = found[""].set_index("selected by").loc["greedy log loss"]
        assert line["trimming is"] == told
        assert line["trimming behind"] == pytest.approx(np.mean(leads))
        share = len(SIDES) * made["n_test"][0] / made["n_train"][0]
        spread = np.std(leads, ddof=1) * np.sqrt(1 / 2 + share)
        assert line["standard error"] == pytest.approx(spread)
        assert found["summary"].set_index("selected by").loc["greedy log loss", f"trimming is {told}"] == 1


def test_nothing_done_is_an_empty_table(experiment: LogLosses, rows: pd.DataFrame) -> None:
    failed = rows.drop(columns=["methods"]).assign(status="failed")
    assert tables_of(experiment.outcome(failed))[""].empty
