"""Which engine computes the agreement of a classifier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Protocol, get_args

from trimbench.trimming import dense, log_odds
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.sdd_engine import SddEngine
from trimbench.trimming.search import SignedMeasure
from trimbench.trimming.thresholds import Cut, Instances

EngineName = Literal["auto", "dense", "log_odds", "sdd"]

# Up to here the table is the faster of the two: one evaluation is some 10 ms, and deeper ones cost less.
_DENSE_IS_FASTER = 2**23


class Engine(Protocol):
    """Computes the agreement measures of one classifier; features are given by their position."""

    @property
    def root(self) -> SignedMeasure:
        """The signed measure over all features."""

    def instances(self, features: Sequence[int]) -> Instances:
        """Return the instances of a feature subset."""

    def agreement(self, features: Sequence[int], threshold: float) -> float:
        """Return the expected classification agreement of a feature subset with a threshold."""

    def best_cut(self, features: Sequence[int]) -> Cut:
        """Return the threshold interval of a feature subset with the highest agreement."""


def check_engine(name: str) -> None:
    """Raise an error that lists the engines unless `name` is one of them.

    Raises
    ------
    ValueError
    """
    if name not in get_args(EngineName):
        raise ValueError(f"engine must be one of {list(get_args(EngineName))}, got {name!r}")


def make_engine(classifier: BayesianClassifier, name: EngineName = "auto") -> Engine:
    """Return the engine called `name`, or for ``"auto"`` the one that fits the size of the model.

    Raises
    ------
    ValueError
        When the name is unknown or the classifier has too many features for the engine.
    """
    check_engine(name)
    if name == "sdd":
        return SddEngine.of(classifier)
    if name == "auto" and not classifier.is_naive_bayes:
        return _for_network(classifier)
    small = math.prod(classifier.cardinalities) <= _DENSE_IS_FASTER
    if name == "dense" or (name == "auto" and small):
        return dense.DenseEngine.build(classifier)
    return log_odds.LogOddsEngine(classifier)


def _for_network(classifier: BayesianClassifier) -> Engine:
    """Return the dense engine where the network can be contracted within its limits, else that of circuits."""
    from trimbench.networks.contraction import ContractionTooLarge

    if math.prod(classifier.cardinalities) > dense.MAX_ENTRIES:
        return SddEngine.of(classifier)
    try:
        return dense.DenseEngine.build(classifier)
    except ContractionTooLarge:
        return SddEngine.of(classifier)
