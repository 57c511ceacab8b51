"""Questions under a budget: the drawn data, the models that ask, and what each method may show of a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from trimbench.papers.beyond.acquisition import Acquisition
from trimbench.papers.methods.asking import (
    METHODS,
    AskedData,
    Rows,
    Task,
    compare_policies,
    cube_states,
    learned,
    of_all_classes,
    true_model,
)

from ..experiments import inputs_of

CUBE = AskedData(recipe="cube", rows=400, budgets=[2, 20])


def test_three_features_of_cube_show_the_digits_of_the_label() -> None:
    labels, means, deviations = cube_states("cube")
    assert labels.tolist() == list(range(8))
    assert means.shape == (8, 20)
    for label, (mean, deviation) in enumerate(zip(means, deviations, strict=True)):
        shown = slice(label, label + 3)
        assert mean[shown].tolist() == [float(digit) for digit in reversed(f"{label:03b}")]
        assert (deviation[shown] == 0.1).all()
        assert (np.delete(mean, range(label, label + 3)) == 0.5).all()
        assert (np.delete(deviation, range(label, label + 3)) == 0.3).all()


def test_the_context_of_cube_nm_says_which_block_is_that_of_cube() -> None:
    labels, means, _ = cube_states("cube_nm")
    assert means.shape == (40, 55)
    _, cube, _ = cube_states("cube")
    for state, (label, mean) in enumerate(zip(labels, means, strict=True)):
        context = int(mean[:5].argmax())
        assert (context, mean[:5].sum()) == (state // 8, 1)
        blocks = mean[5:].reshape(5, 10)
        np.testing.assert_array_equal(blocks[context], cube[label, :10])
        assert (np.delete(blocks, context, axis=0) == 0.5).all()


def test_rows_are_split_and_cut_by_the_training_rows() -> None:
    rows = Rows.of(CUBE, None, test_rows=50, seed=1)
    assert [len(part) for part in (rows.train, rows.valid, rows.test)] == [240, 80, 50]
    assert (rows.train >= 0).all()
    assert (rows.train < rows.sizes).all()
    np.testing.assert_allclose(np.bincount(rows.train[:, 0]), 30, atol=1)  # bins of about equally many values
    table = rows.table(rows.test[:2], np.eye(2, 20, dtype=bool))
    assert table.isna().sum().tolist() == [1, 1, *[0] * 18]


@pytest.fixture(scope="module")
def task() -> Task:
    rows = Rows.of(CUBE, None, test_rows=60, seed=1)
    return Task(CUBE, rows, *learned(rows, [1, 3], 1), candidates=4, seed=1)


@pytest.mark.parametrize("name", ["greedy", "static", "trimming", "tree", "regression", "random", "greedy_true"])
def test_no_row_costs_more_than_the_budget(task: Task, name: str) -> None:
    found: dict[str, Any] = METHODS[name].ask(task, budget=2)
    assert 0 < found["cost"] <= 2
    assert found["accuracy"] > 0.1


def test_all_questions_give_the_prediction_of_the_whole_row(task: Task) -> None:
    whole = task.rows.accuracy(task.model.predict(task.rows.table(task.rows.test)))
    for name in ("greedy", "static", "random"):
        assert METHODS[name].ask(task, budget=20)["accuracy"] == whole


def test_one_component_that_classes_share_is_naive_bayes(task: Task) -> None:
    rows = task.rows
    values = [[str(value) for value in range(size)] for size in rows.sizes]
    shared = tb.BayesianClassifier(of_all_classes(rows, 1, values, seed=0))
    frame = pd.DataFrame(
        {n: pd.Categorical(c, v) for (n, c), v in zip(rows.table(rows.train).items(), values, strict=True)}
    )
    counted = tb.BayesianClassifier(tb.learn(frame, pd.Series(rows.train_labels.astype(str)), smoothing=0.25))
    table = rows.table(rows.test)
    # Both add two rows to each class: of the law of all rows, or evenly to the eight values.
    assert np.abs(shared.predict_proba(table) - counted.predict_proba(table)).mean() < 0.02
    assert (shared.predict(table) == counted.predict(table)).mean() > 0.9


def test_the_true_model_has_the_shares_of_drawn_rows() -> None:
    rows = Rows.of(AskedData(recipe="cube", rows=20_000, budgets=[1]), None, test_rows=5, seed=0)
    drawn = true_model("cube", rows).model.sample(20_000, np.random.default_rng(0))
    for place in (0, 4, 15):
        counts = np.bincount(drawn[f"x{place}"].astype(int), minlength=8) / len(drawn)
        np.testing.assert_allclose(counts, np.bincount(rows.train[:, place], minlength=8) / len(rows.train), atol=0.02)


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pystreed", None)
    problem = AskedData(dataset="iris", budgets=[1], bins=3)
    data = inputs_of().dataset("iris")
    found = compare_policies(problem, data, ["optimal_tree", "two_steps", "tree"], [0.9], [1], 3, 20, seed=0)
    results: Any = found["results"]
    optimal, tree = results
    assert optimal == {"method": "optimal_tree", "status": "not available", "reason": optimal["reason"]}
    assert "pystreed" in optimal["reason"]
    assert tree["cost"] == 1


def test_problems_have_a_data_set_or_a_recipe() -> None:
    for problem in (AskedData(budgets=[1]), AskedData(budgets=[1], dataset="iris", recipe="cube")):
        with pytest.raises(ValueError, match=r"problems\.x must have either a dataset or a recipe"):
            Acquisition(data=["x"], problems={"x": problem}, methods=["greedy"], stop_at=[0.9], components=[1])


def test_leads_compare_methods_on_the_same_splits() -> None:
    def result(method: str, accuracy: float, **more: Any) -> dict[str, Any]:
        found = {"method": method, "status": "ok", "budget": 2, "cost": 2.0, "accuracy": accuracy, "seconds": 0.1}
        return found | more

    rows = pd.DataFrame(
        [
            {
                **{"data": "cube", "split": split, "status": "ok", "job": f"j{split}", "n_train": 9},
                "results": [
                    result("greedy", 0.8 + split / 10),
                    result("greedy", 0.7, budget=0, stop_at=0.9),
                    result("greedy", 0.6, budget=0, stop_at=0.7),
                    result("random", 0.5 + split / 10),
                    {"method": "optimal_tree", "status": "not available", "reason": "no package"},
                ],
            }
            for split in (0, 1)
        ]
    )
    problems = {"cube": CUBE}
    experiment = Acquisition(data=["cube"], problems=problems, methods=["greedy"], stop_at=[0.9], components=[1])
    hard, soft, leads, missing = (table.frame for table in experiment.outcome(rows).tables)
    assert hard["accuracy"].tolist() == pytest.approx([0.85, 0.55])
    assert soft[["stable enough", "accuracy", "splits"]].to_numpy().tolist() == [[0.9, 0.7, 2], [0.7, 0.6, 2]]
    assert leads.to_numpy().tolist() == [["random", 1, 1, 0, 0, pytest.approx(0.3)]]
    assert missing.to_numpy().tolist() == [["optimal tree (STreeD)", "no package", "CUBE"]]
