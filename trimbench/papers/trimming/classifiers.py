"""The classifiers of the trimming experiments, learned on a split of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from trimbench.networks.learning import learn
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.encodings import categorize
from trimbench.reproduction.data.masks import split_rows
from trimbench.reproduction.execution.job import COUNT, FLAG, NUMBER, SHARE, TEXT, list_of, seed_for
from trimbench.trimming.classifier import BayesianClassifier

# What jobs return.
NAMES = list_of(TEXT)
SEARCHED = {"features": NAMES, "agreement": SHARE, "n_evaluations": COUNT}
TRIMMED = {**SEARCHED, "new_threshold": NUMBER, "optimal": FLAG}
TESTED = {"test_agreement": SHARE, "test_accuracy": SHARE, "full_test_accuracy": SHARE}
SIZES = {"n_features": COUNT, "n_train": COUNT, "n_test": COUNT}
# "medians": numbers are cut at their median in the training rows, and a missing value is a value of its own. "means":
# numbers are cut at their mean over all rows, and a fair coin fills missing cells.
Encoding = Literal["medians", "means"]


@vocab.settings
class LearnedOnSplits:
    """The settings of experiments that learn naive Bayes classifiers on random splits of data sets.

    `threshold` is that of the classifier, `smoothing` the pseudo-count of its tables; `seed` decides the splits.
    """

    threshold: vocab.Threshold = 0.5
    smoothing: vocab.NotNegative = 1.0
    test_fraction: vocab.Share = 0.2
    seed: int = 0

    def learning(self, dataset: str, split: int, inputs: vocab.Inputs, encoding: Encoding = "medians") -> Learning:
        """Return how a job learns on a split of a data set."""
        seed = seed_for(purpose="split", dataset=dataset, split=split, seed=self.seed)
        found = inputs.dataset(dataset)
        return Learning(found, self.threshold, self.smoothing, self.test_fraction, seed, encoding)


def two_classes(target: pd.Series[Any], positive: str) -> pd.Series[Any]:
    """Return the labels with all classes but the positive one as a single class, where there are several."""
    if len(target.cat.categories) <= 2:
        return target
    rest = f"not {positive}"
    return target.cat.add_categories(rest).where(target == positive, rest).cat.remove_unused_categories()


@dataclass(frozen=True)
class Learning:
    """How a job learns a naive Bayes classifier on a split of a data set."""

    dataset: vocab.Input
    threshold: float
    smoothing: float
    test_fraction: float
    split_seed: int
    encoding: Encoding


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows as categories, and their classes."""

    train: pd.DataFrame
    target: pd.Series
    test: pd.DataFrame
    truth: pd.Series

    @classmethod
    def of(cls, features: pd.DataFrame, target: pd.Series, learning: Learning, *, stratified: bool = False) -> Split:
        """Encode the rows as `learning` says, and split them at random."""
        labels = target.to_numpy() if stratified else None
        train, test = split_rows(len(features), learning.test_fraction, learning.split_seed, stratify=labels)
        if learning.encoding == "medians":
            train_rows, test_rows = categorize(features.iloc[train], features.iloc[test])
        else:
            coins = np.random.default_rng(seed_for(purpose="coins", split=learning.split_seed))
            (whole,) = categorize(features, cut="mean", gaps="draw", rng=coins)
            train_rows, test_rows = whole.iloc[train], whole.iloc[test]
        return cls(train_rows, target.iloc[train], test_rows, target.iloc[test])

    def learned(self, positive: str, learning: Learning) -> BayesianClassifier:
        """Learn a naive Bayes classifier on the training rows; ValueError unless they have two classes.

        Predictions of one class against several others would name no class of the data, and have no accuracy.
        """
        classes = sorted(self.target.astype(str).unique())
        if len(classes) > 2:
            raise ValueError(
                f"the class must be binary, got {len(classes)} classes {', '.join(classes[:10])}; merge them into two"
            )
        model = learn(self.train, self.target, smoothing=learning.smoothing)
        return BayesianClassifier(model, positive=positive, threshold=learning.threshold)

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of features and of rows."""
        return {"n_features": self.train.shape[1], "n_train": len(self.train), "n_test": len(self.test)}

    def tested(self, original: BayesianClassifier, other: BayesianClassifier) -> dict[str, float]:
        """Return how often another classifier agrees with the original and with the truth on the test rows."""
        full, part = original.predict(self.test), other.predict(self.test)
        truth = self.truth.to_numpy(dtype=str)
        return {
            "test_agreement": float((part == full).mean()),
            "test_accuracy": float((part == truth).mean()),
            "full_test_accuracy": float((full == truth).mean()),
        }


# Classification problems that an experiment names: a data set and which of its classes is meant.

PROBLEM_ENTRIES = "dataset: ..., positive: ..."


@vocab.settings
class Problem:
    """A declared data set and its positive class."""

    dataset: str
    positive: str
