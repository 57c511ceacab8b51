"""The classifiers of the trimming experiments: of declared networks, and learned on a split of a data set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from trimbench.networks.learning import learn
from trimbench.papers.data.encodings import categorize
from trimbench.papers.data.masks import split_rows
from trimbench.papers.execution.job import seed_for
from trimbench.papers.validation import Json, settings
from trimbench.papers.vocabulary.cells import check_axis
from trimbench.papers.vocabulary.inputs import Inputs, network_of
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.model import checked_threshold

if TYPE_CHECKING:
    import pandas as pd


# "medians": numbers are cut at their median in the training rows, and a missing value is a value of its own. "means":
# numbers are cut at their mean over all rows, and a fair coin fills missing cells.
Encoding = Literal["medians", "means"]


def network_classifier(
    network: Mapping[str, Json], threshold: float, target: str | None = None, positive: str | None = None
) -> BayesianClassifier:
    """Return the classifier of a network input, with its declared class or another one; ValueError if it has none."""
    loaded = network_of(network)
    target, positive = target or loaded.target, positive or loaded.positive
    if target is None or positive is None:
        raise ValueError(
            f"network {network['name']!r}: `target` and `positive` must be declared, or set, to make it a "
            f"classifier; its nodes are {', '.join(loaded.nodes[:20])}{', ...' if len(loaded.nodes) > 20 else ''}"
        )
    features = loaded.features_without(target)
    return BayesianClassifier(
        loaded.model, target, positive=positive, features=features, threshold=threshold, evidence=loaded.evidence
    )


@settings
class LearnedOnSplits:
    """The settings of experiments that learn naive Bayes classifiers on random splits of data sets.

    `threshold` is that of the classifier, `smoothing` the pseudo-count of its tables; `seed` decides the splits.
    """

    threshold: float = 0.5
    smoothing: float = 1.0
    test_fraction: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        checked_threshold(self.threshold)
        check_shares(test_fraction=self.test_fraction)
        if not 0 <= self.smoothing < math.inf:
            raise ValueError(f"smoothing must be a number >= 0, got {self.smoothing}")

    def learning(
        self, dataset: str, split: int, inputs: Inputs, encoding: Encoding = "medians"
    ) -> Mapping[str, object]:
        """Return the `Learning` of a data set for a job, with the data set as an input."""
        return {
            "dataset": inputs.dataset(dataset),
            "threshold": self.threshold,
            "smoothing": self.smoothing,
            "test_fraction": self.test_fraction,
            "split_seed": seed_for(purpose="split", dataset=dataset, split=split, seed=self.seed),
            "encoding": encoding,
        }


def two_classes(target: pd.Series[Any], positive: str) -> pd.Series[Any]:
    """Return the labels with all classes but the positive one as a single class, where there are several."""
    if len(target.cat.categories) <= 2:
        return target
    rest = f"not {positive}"
    return target.cat.add_categories(rest).where(target == positive, rest).cat.remove_unused_categories()


class Learning(TypedDict):
    """How a job learns a naive Bayes classifier on a split of a data set."""

    dataset: Mapping[str, Json]
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
        """Encode the rows as the learning says, and split them at random."""
        labels = target.to_numpy() if stratified else None
        train, test = split_rows(len(features), learning["test_fraction"], learning["split_seed"], stratify=labels)
        if learning["encoding"] == "medians":
            train_rows, test_rows = categorize(features.iloc[train], features.iloc[test])
        else:
            coins = np.random.default_rng(seed_for(purpose="coins", split=learning["split_seed"]))
            (whole,) = categorize(features, cut="mean", gaps="draw", rng=coins)
            train_rows, test_rows = whole.iloc[train], whole.iloc[test]
        return cls(train_rows, target.iloc[train], test_rows, target.iloc[test])

    def learned(self, positive: str, learning: Learning) -> BayesianClassifier:
        """Learn a naive Bayes classifier on the training rows; ValueError unless they have two classes.

        Several classes against one would have predictions that name no class of the data, and no accuracy.
        """
        classes = sorted(self.target.astype(str).unique())
        if len(classes) > 2:
            raise ValueError(
                f"the class must be binary, got {len(classes)} classes {', '.join(classes[:10])}; merge them into two"
            )
        model = learn(self.train, self.target, smoothing=learning["smoothing"])
        return BayesianClassifier(model, positive=positive, threshold=learning["threshold"])

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

_ENTRIES = "dataset: ..., positive: ..."


@settings
class Problem:
    """A declared data set and its positive class."""

    dataset: str
    positive: str


def check_problems(key: str, names: Sequence[str], problems: Mapping[str, object], entries: str = _ENTRIES) -> None:
    """Raise ValueError if a name in the setting `key` is not among the problems; each of them has these entries."""
    for name in names:
        if name not in problems:
            raise ValueError(
                f"{key} must be among the names in problems, {list(problems)}, got {name!r}; define it with "
                f"+problems.{name}={{{entries}}}"
            )


# Checks of settings that several experiments share.


def check_counts(**counts: int | None) -> None:
    """Raise ValueError if a count is below 1; None stands for no limit."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise ValueError(f"{name} must be 1 or more, got {count}")


def check_shares(**shares: float) -> None:
    """Raise ValueError unless all shares are strictly between 0 and 1."""
    for name, share in shares.items():
        if not 0 < share < 1:
            raise ValueError(f"{name} must be strictly between 0 and 1, got {share}")


def check_thresholds(thresholds: Sequence[float]) -> None:
    """Raise ValueError unless there is a threshold, each is a probability, and none appears twice."""
    check_axis("thresholds", thresholds)
    for threshold in thresholds:
        checked_threshold(threshold)
