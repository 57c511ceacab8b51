"""The engines that compute the agreement of a classifier, and the choice between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Protocol, Self, TypedDict, get_args

import numpy as np

from trimbench._extras import check_installed, is_installed
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.inference.joint import ContractionTooLarge
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import Cut, Instances
from trimbench.trimming.engines import log_odds
from trimbench.trimming.engines import table as engines_table
from trimbench.trimming.engines.circuit import SddEngine
from trimbench.trimming.engines.sdd import CircuitError

EngineName = Literal["auto", "dense", "log_odds", "sdd"]

# Up to this size a search on the table of a naive Bayes classifier is faster than one on lattices (measured).
_DENSE_IS_FASTER = 2**17
# A network with this many nodes, and this share of probabilities that are 0 or 1, has a small circuit and large tables.
_MANY_NODES, _MOSTLY_DETERMINISTIC = 100, 0.75
# With more features than this the diagram is too large even so.
_MOST_CIRCUIT_FEATURES = 64
_CIRCUIT_SECONDS = 120.0
_MOMENT = 0.1
# Speed of a table: entries made and searched, and multiplications to contract it.
_ENTRIES_PER_SECOND, _OPERATIONS_PER_SECOND = 2**20, 2**29


class Engine(Protocol):
    """Computes the agreement measures of one classifier; features are given by their position."""

    @property
    def classifier(self) -> BayesianClassifier:
        """The classifier that the engine was made for."""

    @property
    def root(self) -> SignedMeasure:
        """The signed measure over all features."""

    def with_threshold(self, threshold: float) -> Self:
        """Return the engine of the same classifier with another threshold."""

    def instances(self, features: Sequence[int]) -> Instances:
        """Return the instances of a feature subset."""

    def agreement(self, features: Sequence[int], threshold: float) -> float:
        """Return the expected classification agreement of a feature subset with a threshold."""

    def best_cut(self, features: Sequence[int]) -> Cut:
        """Return the threshold interval of a feature subset with the highest agreement."""


def check_engine(name: object) -> None:
    """Raise an error unless `name` is an engine that is installed.

    Raises
    ------
    ValueError
        When there is no such engine.
    MissingExtraError
        When it needs a package that is not installed.
    """
    if name not in get_args(EngineName):
        raise ValueError(f"engine must be one of {list(get_args(EngineName))}, got {name!r}")
    if name == "sdd":
        check_installed("pysdd", extra="sdd", what="engine='sdd'")


class TableLimits(TypedDict):
    """How much work the table of a network may take: multiplications, and the threads that share them."""

    max_operations: int
    n_threads: int


def make_engine(
    classifier: BayesianClassifier, name: EngineName = "auto", *, limits: TableLimits | None = None
) -> Engine:
    """Return the engine called `name`, or for ``"auto"`` the one that fits the size of the model.

    The `limits` are on the table of a network, if one is needed; by default those of `joint_distribution`.

    Raises
    ------
    ValueError
        When the name is unknown or the classifier is too large for the engine; for ``"auto"`` and a network, when
        nothing exact is possible.
    MissingExtraError
        When PySDD is not installed, but a circuit is asked for or nothing else is possible.
    """
    check_engine(name)
    if name == "sdd":
        return SddEngine.of(classifier)
    if name == "auto" and not classifier.is_naive_bayes:
        return _for_network(classifier, limits)
    small = math.prod(classifier.cardinalities) <= _DENSE_IS_FASTER
    if name == "dense" or (name == "auto" and small):
        if limits is not None:
            classifier.prepare_table(**limits)
        return engines_table.DenseEngine.build(classifier)
    return log_odds.LogOddsEngine(classifier)


def exact_engine(classifier: BayesianClassifier, seconds: float) -> Engine | None:
    """Return the engine of a network that is likely to be ready within about `seconds`, or None.

    The SDD engine is chosen where zeros make circuits small; it is skipped if PySDD is not installed.
    """
    # A moment may always be spent.
    seconds = max(seconds, _MOMENT)
    if is_installed("pysdd") and has_small_circuit(classifier):
        try:
            return SddEngine.of(classifier, timeout=0.5 * seconds)
        except CircuitError:
            pass  # the table may still be possible
    if math.prod(classifier.cardinalities) > min(engines_table.MAX_ENTRIES, seconds * _ENTRIES_PER_SECOND):
        return None
    try:
        classifier.prepare_table(max_operations=int(seconds * _OPERATIONS_PER_SECOND))
    except ContractionTooLarge:
        return None
    return engines_table.DenseEngine.build(classifier)


def _for_network(classifier: BayesianClassifier, limits: TableLimits | None) -> Engine:
    """Return the SDD engine where zeros make circuits small, else the dense engine."""
    is_promising = has_small_circuit(classifier)
    if is_promising and is_installed("pysdd"):
        try:
            return SddEngine.of(classifier, timeout=_CIRCUIT_SECONDS)
        except CircuitError:
            pass  # the table may still be possible
    try:
        if limits is not None:
            classifier.prepare_table(**limits)
        return engines_table.DenseEngine.build(classifier)
    except ValueError as error:
        if is_promising:
            what = f"engine='auto' for this network with {classifier.n_features} features, too many for a table,"
            check_installed("pysdd", extra="sdd", what=what)
        if math.prod(classifier.cardinalities) <= engines_table.MAX_ENTRIES:
            raise
        raise ContractionTooLarge(
            f"no engine is exact for this network with {classifier.n_features} features, too many for a table, whose "
            "probabilities are not mostly 0 or 1: give the classifier fewer features, or use trim(), which samples"
        ) from error


def has_small_circuit(classifier: BayesianClassifier) -> bool:
    """Return whether a circuit is promising: many zeros, in a large network or one that no table could hold."""
    network = classifier.model
    if not isinstance(network, BayesianNetwork) or classifier.n_features > _MOST_CIRCUIT_FEATURES:
        return False
    if len(network.nodes) < _MANY_NODES and math.prod(classifier.cardinalities) <= engines_table.MAX_ENTRIES:
        return False
    tables = [network.table(node) for node in network.nodes]
    certain = sum(int(np.isin(table, (0.0, 1.0)).sum()) for table in tables)
    return certain >= _MOSTLY_DETERMINISTIC * sum(table.size for table in tables)


# The signed measure d(f') of a feature subset, as searches see it.


class SignedMeasure(Protocol):
    """What a search needs from a feature subset."""

    @property
    def features(self) -> tuple[int, ...]:
        """Positions of the features that are left."""

    def without(self, *features: int) -> Self:
        """Return the measure with some features removed."""

    def potential_agreement(self) -> float:
        """Return the maximum potential agreement."""

    def potential_agreement_without(self, group: Sequence[int]) -> float:
        """Return the maximum potential agreement after removing some features."""
