"""Figure 5 on simulated data against direct computation, and the contradiction in the quiz."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

import trimbench as tb
from tests.trimming import brute_force
from trimbench.papers.trimming import examples
from trimbench.papers.trimming.classifiers import two_classes
from trimbench.papers.trimming.examples import Quiz
from trimbench.papers.trimming.figure5 import Figure5, is_share, stated_sizes
from trimbench.reproduction.data.encodings import categorize
from trimbench.reproduction.data.masks import split_rows
from trimbench.reproduction.execution.job import seed_for
from trimbench.reproduction.settings import validated
from trimbench.reproduction.vocabulary.draws import Draws
from trimbench.reproduction.vocabulary.reported import printed_numbers

from ..experiments import TOY, inputs_of, rows_of, values_of

THRESHOLDS = {"pass": 0.07, "q3": 0.15, "q1q3": 0.10, "q2q3": 0.30}
AGREEMENTS = {"pass": 0.32, "q3": 0.75, "q1q3": 0.91, "q2q3": 0.68}
POSTERIORS = {"knowing": 0.1, "hard": 0.4, "posteriors": [[0.175, 0.185], [0.075, 0.085]]}
QUIZ = POSTERIORS | {"thresholds": THRESHOLDS, "agreements": AGREEMENTS}
# Answers to (Q1, Q3) and (Q2, Q3) that two trimmed classifiers pass.
_PATTERNS = (frozenset({(1, 1), (1, 0)}), frozenset({(1, 1)}))


def test_figure_5_is_what_its_definition_says() -> None:
    experiment = Figure5(datasets=["toy"], problems=TOY, splits=2, n_folds=4, budget_divisor=4)
    rows = rows_of(experiment)
    outcome = experiment.outcome(rows)
    first = rows.iloc[0]
    assert first["n_subsets"] == 1 + 10 + 45
    # The same classifier by hand.
    data = inputs_of().loaded("example_simulated")
    seed = seed_for(purpose="split", dataset="example_simulated", split=0, seed=0)
    train, test = split_rows(len(data.features), 0.2, seed)
    train_rows, test_rows = categorize(data.features.iloc[train], data.features.iloc[test])
    model = tb.learn(train_rows, data.target.iloc[train])
    classifier = tb.BayesianClassifier(model, positive="1")
    subsets = [s for n in range(3) for s in itertools.combinations(classifier.features, n)]
    best = max(tb.maximum_achievable_agreement(classifier, list(subset))[0] for subset in subsets)
    assert first["optimal_eca_eca"] == pytest.approx(best, abs=1e-12)
    trimming = tb.trim(classifier, 2)
    assert set(first["optimal_eca_features"]) == set(trimming.features)
    agree = (trimming.classifier.predict(test_rows) == classifier.predict(test_rows)).mean()
    assert first["optimal_eca_agreement"] == pytest.approx(agree)
    informative = tb.select_features(classifier, 2, by="information_gain").features
    assert set(first["information_gain_features"]) == set(informative)
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
    values = values_of(outcome)
    assert set(values) == {
        *(f"toy highest {pick}/{quantity}" for pick in ("ECA", "accuracy") for quantity in ("agreement", "accuracy")),
        *(f"toy/{name}" for name in ("full_accuracy", "better_than_full_percent", "agreement_lead", "accuracy_lead")),
        *("toy/rank_correlation", "toy/frontier"),
    }
    assert values["toy/frontier"] == len(frontier)
    x, y = (rankdata(cloud[:, place]) for place in (0, 1))
    assert values["toy/rank_correlation"] == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert values["toy highest ECA/accuracy"] == pytest.approx(rows["optimal_eca_accuracy"].mean())
    lead = rows["optimal_eca_agreement"].mean() - rows["information_gain_agreement"].mean()
    assert values["toy/agreement_lead"] == pytest.approx(lead)
    more = rows["optimal_eca_accuracy"] > rows["optimal_accuracy_accuracy"]
    assert outcome.tables[2].frame["more_accurate_percent"].tolist() == [50 * more.sum()]


def test_shares_that_no_test_set_has_are_contradictions() -> None:
    problems = dict.fromkeys(("pima", "heart"), TOY["toy"])
    experiment = Figure5(datasets=list(problems), problems=problems, splits=1, n_folds=2, budget_divisor=5)
    rows = rows_of(experiment)
    outcome = experiment.outcome(rows)
    printed = printed_numbers("trimming/figure5")
    # The toy data have other rows than the printed shares, each of which is then no share of the stated test rows.
    shares = [one for one in outcome.numbers if one.quantity in ("agreement", "accuracy")]
    assert len(shares) == 8
    assert [bool(one.contradiction) for one in shares] == [
        not any(is_share(printed[one.row, one.quantity], n) for n in stated_sizes(rows["n_rows"].iloc[0], 0.2))
        for one in shares
    ]


def test_figure_5_holds_printed_numbers_against_single_splits_of_both_set_ups() -> None:
    settings: dict[str, Any] = {"problems": {"pima": TOY["toy"]}, "inferred": {"pima": TOY["toy"]}, "n_folds": 2}
    experiment = Figure5(datasets=["pima"], splits=2, budget_divisor=10, **settings)
    # Twenty copies of both splits, whose shares scatter.
    rows = pd.concat([rows_of(experiment)] * 20, ignore_index=True)
    rows["job"] = [f"job {place}" for place in range(len(rows))]
    rows["split"] = rows.groupby("setup").cumcount()
    shares = [
        name for name in rows if rows[name].dtype == float and name.endswith(("accuracy", "agreement", "percent"))
    ]
    rows[shares] += np.random.default_rng(0).normal(0, 0.01, rows[shares].shape)
    outcome = experiment.outcome(rows)
    stated, inferred = (rows[rows["setup"] == setup] for setup in ("stated", "inferred"))
    assert len(stated) == len(inferred) == 40
    tables = {table.name: table.frame for table in outcome.tables}
    assert tables[""]["set-up"].tolist() == ["stated"] * 3 + ["inferred"] * 3
    columns = {
        ("pima highest ECA", "agreement"): "optimal_eca_agreement",
        ("pima highest ECA", "accuracy"): "optimal_eca_accuracy",
        ("pima highest accuracy", "agreement"): "optimal_accuracy_agreement",
        ("pima highest accuracy", "accuracy"): "optimal_accuracy_accuracy",
        ("pima", "full_accuracy"): "full_accuracy",
        ("pima", "better_than_full_percent"): "better_than_full_percent",
    }
    printed = printed_numbers("trimming/figure5")
    found = {(one.row, one.quantity): one for one in outcome.numbers}
    for place, column in columns.items():
        one = found[place]
        assert one.value == pytest.approx(stated[column].mean()), "verdicts are on the stated set-up"
        assert one.explanation is not None
        assert one.explanation.value == pytest.approx(inferred[column].mean())
        assert one.explanation.interval is not None
        assert one.explanation.setup.startswith("data set example_simulated, ")
        assert (one.jobs, one.explanation.jobs) == (tuple(stated["job"]), tuple(inferred["job"]))
    draws = Draws(
        [printed[place].value for place in columns],
        stated[list(columns.values())].to_numpy(),
        [printed[place].decimals for place in columns],
    )
    assert [found[place].probability for place in columns] == draws.together()
    assert [found["pima", quantity].probability for quantity in ("agreement_lead", "accuracy_lead")] == [None, None]
    overall = tables["overall"].set_index("set-up")
    assert overall["splits"].tolist() == [40, 40]
    assert overall.loc["stated", "outside"] == draws.outside().count
    tails = tables["tails"]
    assert tails["set-up"].value_counts().to_dict() == {"stated": 6, "inferred": 6}
    alone = tails[tails["set-up"] == "stated"].set_index("number")["probability"]
    for (row, quantity), probability in zip(columns, draws.alone(), strict=True):
        assert alone[f"{row}/{quantity}"] == probability.value
    sizes = tables["test_sizes"]
    assert sizes["data set"].tolist() == ["example_simulated"], "one data set of both set-ups counts once"
    assert [figure.name for figure in outcome.figures] == ["pima", "pima_inferred"]


def test_figure_5_of_other_data_says_nothing_of_the_print() -> None:
    experiment = Figure5(datasets=["toy"], problems=TOY, splits=1, n_folds=2, budget_divisor=10)
    outcome = experiment.outcome(rows_of(experiment))
    assert [len(table.frame) for table in outcome.tables] == [3, 1, 1, 0, 0, 0]
    assert not any(one.probability or one.contradiction or one.explanation for one in outcome.numbers)


def test_several_classes_but_the_positive_one_are_one_class() -> None:
    data = pd.Series(["a", "b", "c", "a"], dtype="category")
    assert two_classes(data, "b").tolist() == ["not b", "b", "not b", "not b"]


def test_the_printed_numbers_of_the_quiz_contradict_each_other() -> None:
    found = examples.smallest_deviation(0.1, 0.4, [[0.175, 0.185], [0.075, 0.085]], AGREEMENTS, 2)
    assert found["guess_low"] == pytest.approx(0.1958, abs=1e-4)
    assert found["guess_high"] == pytest.approx(0.2095, abs=1e-4)
    assert found["deviation"] > 0.005, "half a printed digit"


def test_the_numbers_of_a_real_quiz_are_not_called_a_contradiction() -> None:
    quiz = examples._quiz(0.1, 0.4, np.array([0.9, 0.3, 0.9, 0.55, 0.2]), 0.07)
    numbers = examples._numbers(quiz, THRESHOLDS)
    assert numbers["wrong"] == 0
    agreements = {name: numbers[name] for name in AGREEMENTS}
    found = examples.smallest_deviation(0.1, 0.4, [[0.175, 0.185], [0.075, 0.085]], agreements, 2)
    assert found["deviation"] < 0.005
    assert numbers["pass"] == pytest.approx(
        sum(p * a1 * (a2 * 1 + (1 - a2) * a3) for p, a1, a2, a3 in ((0.1, 0.9, 0.9, 0.4), (0.9, 0.3, 0.55, 0.2)))
    )


def test_q3_alone_disagrees_on_the_outcomes_of_footnote_1() -> None:
    quiz = examples._quiz(0.1, 0.4, np.array([0.9, 0.3, 0.9, 0.55, 0.2]), 0.07)
    alone = brute_force.instances(quiz, [2])
    outcomes = brute_force.whole(quiz)
    passed = {answers for answers, joint in outcomes.items() if brute_force.positive(joint, 0.07)}
    by_q3 = {answers for answers in outcomes if brute_force.positive(alone[answers[2:]], 0.15)}
    assert {"".join("-+"[right] for right in one) for one in passed ^ by_q3} == {"++-", "-++", "--+"}


def test_posteriors_that_no_quiz_has_are_refused() -> None:
    with pytest.raises(ValueError, match=r"posteriors must leave a value for Pr\(Q3 = \+ \| C = -\), got"):
        examples.smallest_deviation(0.1, 0.4, [[0.9, 0.91], [0.8, 0.81]], AGREEMENTS, 2)


def test_posteriors_of_the_nearest_quiz_follow_from_its_tables() -> None:
    experiment = validated(Quiz, QUIZ, "experiment")
    right, wrong = experiment._posteriors(0.2)
    assert right == pytest.approx(0.04 / (0.04 + 0.18))
    assert wrong == pytest.approx(0.06 / (0.06 + 0.72))
    # A wrong answer leaves 0.06 against 0.882, which is below the threshold of the quiz.
    tables = dict(zip(examples.PARAMETERS, (0.9, 0.3, 0.9, 0.55, 0.02), strict=True))
    assert experiment._with_q3_alone(tables) == pytest.approx({"pass_q3": 100 * 0.058, "same_outcomes": 6})


@pytest.mark.parametrize(("deviation", "proven"), [(0.04, True), (0.0062, False), (0.004, False)])
def test_the_quiz_is_contradictory_if_the_bound_holds_between_the_values_of_the_grid(
    deviation: float, *, proven: bool
) -> None:
    experiment = validated(Quiz, QUIZ | {"n_grid": 5}, "experiment")
    bound = {"guess_low": 0.1958, "guess_high": 0.2095, "deviation": deviation, "n_programs": 1280}
    nearest = {"deviation": 0.035, "wrong_outcomes": 0, **AGREEMENTS, **dict.fromkeys(examples.PARAMETERS, 0.3)}
    rows = [{"question": "bound", "job": "b", **bound}, {"question": "nearest", "job": "n", **nearest}]
    outcome = experiment.outcome(pd.DataFrame([{"status": "ok", **row} for row in rows]))
    assert len(outcome.numbers) == 8
    for one in outcome.numbers:
        assert one.jobs == ("n", "b")
        assert bool(one.contradiction) == proven
    if proven:
        # 4 points less 0.9 times half the distance of two values.
        assert "off by at least 3.85 points" in outcome.numbers[0].contradiction
        assert "[0.1958, 0.2095]" in outcome.numbers[0].contradiction


def test_the_bound_moves_no_faster_than_the_proof_assumes() -> None:
    low = [examples._relaxed_deviation(0.1, 0.4, g, AGREEMENTS, *_PATTERNS) for g in (0.196, 0.2, 0.209)]
    for (first, second), step in zip(itertools.pairwise(low), (0.004, 0.009), strict=True):
        assert abs(first - second) <= 0.9 * step + 1e-9
