"""Figure 5 on simulated data against direct computation, and the contradiction in the quiz."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.encoding import categorize
from trimbench.papers.data.sources import load_dataset
from trimbench.papers.data.splits import split_rows
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.trimming import quiz_jobs
from trimbench.papers.trimming.figure5 import Figure5
from trimbench.papers.trimming.quiz import Quiz

CATALOGUE = Catalogue((configuration_folder(),))
TOY = {"toy": {"dataset": "example_simulated", "positive": "1"}}


def rows_of(experiment: Figure5 | Quiz) -> pd.DataFrame:
    from trimbench.papers.execution.job import run_job_function

    cells = experiment.cells(CATALOGUE, Cache.from_environment(offline=True))
    return pd.DataFrame(
        [{**cell.labels, "status": "ok", "job": cell.job.key, **run_job_function(cell.job)} for cell in cells]
    )


def test_figure_5_is_what_its_definition_says() -> None:
    experiment = Figure5(["toy"], TOY, splits=2, n_folds=4, budget_divisor=4)
    rows = rows_of(experiment)
    outcome = experiment.outcome(rows)
    first = rows.iloc[0]
    assert first["n_subsets"] == 1 + 10 + 45
    # The same classifier by hand.
    data = load_dataset(CATALOGUE.dataset("example_simulated"), Cache.from_environment(offline=True))
    seed = seed_for(purpose="split", dataset="example_simulated", split=0, seed=0)
    train, test = split_rows(len(data.features), 0.2, seed)
    train_rows, test_rows = categorize(data.features.iloc[train], data.features.iloc[test])
    model = tb.learn_naive_bayes(train_rows, data.target.iloc[train])
    classifier = tb.BayesianClassifier(model, positive="1")
    subsets = [s for n in range(3) for s in itertools.combinations(classifier.features, n)]
    best = max(tb.maximum_achievable_agreement(classifier, list(subset))[0] for subset in subsets)
    assert first["optimal_eca_eca"] == pytest.approx(best, abs=1e-12)
    trimming = tb.trim(classifier, 2)
    assert set(first["optimal_eca_features"]) == set(trimming.features)
    agree = (trimming.classifier.predict(test_rows) == classifier.predict(test_rows)).mean()
    assert first["optimal_eca_agreement"] == pytest.approx(agree)
    assert set(first["information_gain_features"]) == set(tb.select_by_information_gain(classifier, 2))
    # Every subset is a point, and no point beats the frontier.
    points = outcome.figures[0].points
    cloud = points[points["series"] == "feasible subset"][["x", "y"]].to_numpy()
    frontier = points[points["series"] == "Pareto frontier"][["x", "y"]].to_numpy()
    assert len(cloud) == 56
    for x, y in cloud:
        assert ((frontier[:, 0] >= x) & (frontier[:, 1] >= y)).any()
    assert not (points["series"] == "feasible subset").all()
    table = outcome.tables[0].frame
    assert table["splits"].tolist() == [2, 2, 2]
    assert (table["test accuracy low"] <= table["test accuracy"]).all()
    mean = rows["optimal_eca_accuracy"].mean()
    assert outcome.reproduced["toy highest ECA/accuracy"] == pytest.approx(mean)
    more = rows["optimal_eca_accuracy"] > rows["optimal_accuracy_accuracy"]
    assert outcome.reproduced["toy/more_accurate_percent"] == 50 * more.sum()
    lead = rows["optimal_eca_agreement"].mean() - rows["information_gain_agreement"].mean()
    assert outcome.reproduced["toy/agreement_lead"] == pytest.approx(lead)


def test_every_reported_number_of_figure_5_has_a_counterpart() -> None:
    experiment = Figure5(
        ["pima", "heart"], dict.fromkeys(("pima", "heart"), TOY["toy"]), splits=1, n_folds=2, budget_divisor=5
    )
    outcome = experiment.outcome(rows_of(experiment))
    numbers = CATALOGUE.mapping("reported", "trimming")["trimming/figure5"]["numbers"]
    keys = {f"{row}/{name}" for row, entry in numbers.items() for name in entry}
    assert keys <= set(outcome.reproduced)
    claims = ("more_accurate_percent", "equally_accurate_percent", "lead")
    assert set(outcome.intervals) == {key for key in outcome.reproduced if not key.endswith(claims)}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"splits": 0}, r"splits and budget_divisor must be 1 or more, got 0 and 2"),
        ({"splits": 1, "threshold": 1.0}, r"must be strictly between 0 and 1, got 1\.0 and 0\.2"),
    ],
)
def test_settings_of_figure_5_are_checked(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Figure5(["toy"], TOY, **settings)


AGREEMENTS = {"pass": 0.32, "q3": 0.75, "q1q3": 0.91, "q2q3": 0.68}
THRESHOLDS = {"pass": 0.07, "q3": 0.15, "q1q3": 0.10, "q2q3": 0.30}


def test_the_printed_numbers_of_the_quiz_contradict_each_other() -> None:
    found = quiz_jobs.smallest_deviation(0.1, 0.4, [[0.175, 0.185], [0.075, 0.085]], AGREEMENTS, 2)
    assert found["guess_low"] == pytest.approx(0.1958, abs=1e-4)
    assert found["guess_high"] == pytest.approx(0.2095, abs=1e-4)
    assert found["deviation"] > 0.005, "half a printed digit"


def test_the_numbers_of_a_real_quiz_are_not_called_a_contradiction() -> None:
    quiz = quiz_jobs._quiz(0.1, 0.4, np.array([0.9, 0.3, 0.9, 0.55, 0.2]), 0.07)
    numbers = quiz_jobs._numbers(quiz, THRESHOLDS)
    assert numbers["wrong"] == 0
    agreements = {name: numbers[name] for name in AGREEMENTS}
    found = quiz_jobs.smallest_deviation(0.1, 0.4, [[0.175, 0.185], [0.075, 0.085]], agreements, 5)
    assert found["deviation"] < 0.005
    assert numbers["pass"] == pytest.approx(
        sum(p * a1 * (a2 * 1 + (1 - a2) * a3) for p, a1, a2, a3 in ((0.1, 0.9, 0.9, 0.4), (0.9, 0.3, 0.55, 0.2)))
    )


def test_posteriors_that_no_quiz_has_are_refused() -> None:
    with pytest.raises(ValueError, match=r"posteriors must leave a value for Pr\(Q3 = \+ \| C = -\), got"):
        quiz_jobs.smallest_deviation(0.1, 0.4, [[0.9, 0.91], [0.8, 0.81]], AGREEMENTS, 2)


def test_posteriors_of_the_nearest_quiz_follow_from_its_tables() -> None:
    quiz = Quiz(0.1, 0.4, [[0.175, 0.185], [0.075, 0.085]], THRESHOLDS, AGREEMENTS)
    right, wrong = quiz._posteriors(0.2)
    assert right == pytest.approx(0.04 / (0.04 + 0.18))
    assert wrong == pytest.approx(0.06 / (0.06 + 0.72))


def test_the_quiz_without_results_says_nothing() -> None:
    quiz = Quiz(0.1, 0.4, [[0.175, 0.185], [0.075, 0.085]], THRESHOLDS, AGREEMENTS)
    outcome = quiz.outcome(pd.DataFrame([{"question": "bound", "status": "failed"}]))
    assert (len(outcome.tables[0].frame), outcome.notes, outcome.reproduced) == (0, [], {})
    with pytest.raises(ValueError, match=r"agreements must have the keys .* got \['pass'\]"):
        Quiz(0.1, 0.4, [], THRESHOLDS, {"pass": 0.3})
