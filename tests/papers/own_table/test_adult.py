"""A study of a large table with text and missing values: its numbers are those of separate calls of the library."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from trimbench.conformant.logistic_regression import fit_logistic_regression
from trimbench.estimators import NaiveConformantClassifier, SelectionCorrectedNB, TrimmedClassifier
from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.masks import Missingness, split_rows
from trimbench.papers.execution.job import seed_for
from trimbench.papers.vocabulary.inputs import Inputs

from .studies import studied

ROWS, GAP_ROWS = 1500, 150
FEATURES = ["age", "workclass", "education-num", "marital-status", "occupation", "hours-per-week"]


@pytest.fixture
def adult(given_folder: Path, tmp_path: Path) -> Path:
    """The data set as a CSV file."""
    inputs = Inputs(Catalogue((configuration_folder(),)), Cache.from_environment(offline=True))
    data = inputs.loaded("adult")
    path = tmp_path / "adult.csv"
    data.features[FEATURES].assign(income=data.target).to_csv(path, index=False)
    return path


def chosen(rows: np.ndarray, labels: np.ndarray, most: int) -> np.ndarray:
    """Some rows by the rule of a study."""
    seed = seed_for(purpose="fewer rows", seed=0)
    return rows[split_rows(len(rows), most / len(rows), seed, labels[rows])[1]]


def as_numbers(X: pd.DataFrame, train: np.ndarray) -> pd.DataFrame:
    """Standardised numbers, and a column of zeros and ones for each known category; NaN elsewhere."""
    columns = []
    for name in X:
        column = X[name]
        if column.dtype == "category":
            known = sorted(column.iloc[train].dropna().unique())
            columns += [(column == one).where(column.isin(known)).astype(float) for one in known]
        else:
            columns.append((column - column.iloc[train].mean()) / column.iloc[train].std(ddof=0))
    return pd.concat(columns, axis="columns", ignore_index=True)


def test_the_numbers_of_adult(adult: Path, tmp_path: Path) -> None:
    found = studied(adult, "income", tmp_path / "jobs", rows=ROWS, gap_rows=GAP_ROWS, budgets=[3]).steps
    table = pd.read_csv(adult)
    y = table.pop("income")
    X = table.astype({name: "category" for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])})
    labels = (y == sorted(y.unique())[1]).astype(int).to_numpy()
    all_train, test = split_rows(len(y), 0.25, seed_for(purpose="own table", split=0, seed=0), labels)
    train = chosen(all_train, labels, ROWS)
    truth = y.iloc[test].to_numpy()
    assert len(table) == 48_842
    assert found.frontier[0]["n_test"] == len(test) == 12_210

    trimming = found.trimmings[0]
    trimmed = TrimmedClassifier(budget=3).fit(X.iloc[train], y.iloc[train])
    assert tuple(trimming["features"]) == trimmed.features_
    assert trimming["accuracy"] == (trimmed.predict(X.iloc[test]) == truth).mean()
    assert trimming["model_agreement"] == trimmed.trimming_.agreement

    numbers = as_numbers(X, train)
    filled = numbers.fillna(numbers.iloc[train].mean()).to_numpy()
    regression = fit_logistic_regression(filled[train], labels[train])
    trees = HistGradientBoostingClassifier(random_state=0).fit(numbers.iloc[train].to_numpy(), labels[train])
    tested = {"logistic_regression": filled[test], "boosted_trees": numbers.iloc[test].to_numpy()}
    for row in found.baseline[1:]:
        model = {"logistic_regression": regression, "boosted_trees": trees}[row["classifier"]]
        probabilities = model.predict_proba(tested[row["classifier"]])
        assert row["accuracy"] == (probabilities.argmax(axis=1) == labels[test]).mean()
        assert row["log_loss"] == pytest.approx(log_loss(labels[test], probabilities), rel=1e-6)

    for row in found.confidence:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            corrected = SelectionCorrectedNB(k=5, correct=bool(row["correct"])).fit(
                numbers.iloc[train].to_numpy(), labels[train]
            )
        assert row["expected_error"] == pytest.approx(
            corrected.expected_error(numbers.iloc[test].to_numpy()), rel=1e-12
        )
        assert row["actual_error"] == (corrected.predict(numbers.iloc[test].to_numpy()) != labels[test]).mean()

    conformant = NaiveConformantClassifier().fit(X.iloc[train], y.iloc[train])
    for one in found.explanations:
        expected = conformant.explain(X.iloc[one["row"]], against=one["against"])
        assert [text.partition(" = ")[0] for text in one["features"]] == [X.columns[i] for i in expected.features]

    few, fewer = (chosen(part, labels, GAP_ROWS) for part in (all_train, test))
    n_rows = 4 * len(few) + len(fewer)
    mask = Missingness().draw(n_rows, list(X.columns), 0.4, np.random.default_rng([0, 0, 400000]))
    X_few, hidden = X.iloc[few], X.iloc[fewer].mask(mask[4 * len(few) :])
    predicted = NaiveConformantClassifier().fit(X_few, y.iloc[few]).predict(hidden)
    (group,) = found.gaps
    assert group.values("nacl", "accuracy")[0] == (predicted == y.iloc[fewer]).mean()
