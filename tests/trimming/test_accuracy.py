"""Cross-validated accuracy of many subsets against one classifier for each."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from trimbench.papers.trimming.figure5 import cross_validated_accuracy


def table(n_rows: int = 60) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    target = pd.Series(rng.choice(["yes", "no"], size=n_rows), name="c")
    noise = rng.random((n_rows, 3)) < 0.3
    columns = {f"x{i}": np.where((target == "yes") ^ noise[:, i], "a", "b") for i in range(3)}
    return pd.DataFrame(columns).astype("category"), target


def test_equals_one_classifier_for_each_subset_and_fold() -> None:
    features, target = table()
    subsets = np.array(list(itertools.product([False, True], repeat=3)))
    found = cross_validated_accuracy(
        features, target, subsets, positive="yes", threshold=0.4, n_folds=5, rng=np.random.default_rng(7)
    )
    folds = np.random.default_rng(7).permutation(len(features)) % 5
    for subset, accuracy in zip(subsets, found, strict=True):
        names = [name for name, kept in zip(features.columns, subset, strict=True) if kept]
        right = []
        for fold in range(5):
            model = tb.learn(features[folds != fold], target[folds != fold])
            classifier = tb.BayesianClassifier(model, positive="yes", features=names, threshold=0.4)
            right.append((classifier.predict(features[folds == fold]) == target[folds == fold].to_numpy()).mean())
        assert accuracy == pytest.approx(np.mean(right))


def test_greedy_selection_adds_the_feature_with_the_highest_accuracy() -> None:
    features, target = table(80)
    features = features.assign(x3=features["x0"], x4="a").astype("category")

    def accuracy(names: list[str]) -> float:
        subset = np.array([[name in names for name in features.columns]])
        arguments = {"positive": "yes", "threshold": 0.4, "n_folds": 4, "rng": np.random.default_rng(3)}
        return float(cross_validated_accuracy(features, target, subset, **arguments)[0])

    classifier = tb.BayesianClassifier(tb.learn(features, target), positive="yes", threshold=0.4)
    by_accuracy = partial(tb.select_features, by="accuracy", rows=features, target=target, n_folds=4, random_state=3)
    selected = by_accuracy(classifier, 3).features
    assert len(set(selected)) == 3
    for place, name in enumerate(selected):
        before = list(selected[:place])
        highest = max(accuracy([*before, other]) for other in features.columns if other not in before)
        assert accuracy([*before, name]) == pytest.approx(highest)
    assert sorted(by_accuracy(classifier, 99).features) == sorted(features.columns)
    numbered, is_yes = features.set_axis(range(5), axis=1), target == "yes"
    coded = tb.BayesianClassifier(tb.learn(numbered, is_yes * 1), positive="1", threshold=0.4)
    assert [f"x{name}" for name in by_accuracy(coded, 3, rows=numbered, target=is_yes).features] == [*selected]


def test_bad_arguments_are_named() -> None:
    features, target = table(80)
    classifier = tb.BayesianClassifier(tb.learn(features, target), positive="yes")
    given = {"classifier": classifier, "budget": 1, "by": "accuracy", "rows": features, "target": target}
    for settings, message in (
        ({"budget": -1}, "budget must be a number >= 0, got -1"),
        ({"target": None}, "by='accuracy' needs rows and target, and takes no costs"),
        ({"by": "same_decision"}, "rows must be left out for by='same_decision'; it is for by='accuracy'"),
        ({"joint": True}, "joint must be left out for by='accuracy'; it is for by='information_gain"),
        ({"by": "luck"}, "by must be one of .*, got 'luck'"),
        *(({"n_folds": n}, f"n_folds must be between 2 and the number of rows, 80, got {n}") for n in (1, 81)),
        ({"classifier": classifier.with_threshold(1.0)}, r"threshold must be strictly between 0 and 1, got 1\.0"),
        ({"rows": features.drop(columns="x1")}, "one column for each of the 3 features, got 0 columns for 'x1'"),
        ({"target": target[:30]}, "rows and target must have the same number of rows, at least one, got 80 and 30"),
        ({"target": target[::-1]}, r"rows and target must have their rows in the same order.*loc\[rows\.index\]"),
        ({"target": target.mask(target.index == 3)}, r"target must be one of \['yes', 'no'\] in every row, got nan"),
        ({"rows": features.to_numpy()}, "rows must be a DataFrame with a name for each column, got ndarray"),
        ({"target": list(target)}, "target must be a Series with the class of each row, got list"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            tb.select_features(**given | settings)


def test_a_value_in_one_fold_only() -> None:
    features, target = table(60)
    text = features.astype(str).assign(rare=["once"] + ["often"] * 59)
    classifier = tb.BayesianClassifier(tb.learn(text, target), positive="yes")
    assert set(tb.select_features(classifier, 4, by="accuracy", rows=text, target=target).features) == set(text)
