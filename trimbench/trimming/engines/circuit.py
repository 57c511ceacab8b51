"""The SDD engine: exact agreement of trimmings of any Bayesian network, from a compiled circuit.

The network is compiled once; the circuit is then reduced to a decision diagram over the features with Pr(c, f) and
Pr(not c, f) at its ends. Each distinct end is classified once, and features are summed out of the diagram, not of a
table of all instances: networks with many zeros or equal parameters have far fewer nodes than instances.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trimbench._extras import check_installed
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.values import listed
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.engines.sdd import DEFAULT_MEMORY, Compilation, Diagram, compile_network, encode
from trimbench.trimming.limits import Limits, one_by_one
from trimbench.trimming.model import as_network, checked_evidence, checked_threshold, feature_indices, split_states
from trimbench.trimming.thresholds import Cut, Instances, best_cut, is_positive


@dataclass(frozen=True, eq=False)
class SddMeasure:
    """d(f') over the instances of a feature subset, as a decision diagram with one function."""

    diagram: Diagram

    @property
    def features(self) -> tuple[int, ...]:
        """Which features of the classifier are left, in the order of the diagram."""
        return self.diagram.features

    def without(self, *features: int) -> SddMeasure:
        """Return the measure with some features removed."""
        diagram = self.diagram
        for feature in features:
            diagram = diagram.summed(feature).reduced()
        return SddMeasure(diagram)

    def potential_agreement(self) -> float:
        """Return the maximum potential agreement of the subset, (1 + |d|_1) / 2 (Definition 4)."""
        return _potential_agreement(self.diagram)

    def potential_agreements_without(self, groups: Sequence[tuple[int, ...]], limits: Limits) -> list[float]:
        """Return the maximum potential agreement after removing each group, as long as there is time."""
        return one_by_one(self._potential_agreement_without, groups, limits)

    def _potential_agreement_without(self, group: tuple[int, ...]) -> float:
        return _potential_agreement(self.without(*group[:-1]).diagram.summed(group[-1]))


def _potential_agreement(signed: Diagram) -> float:
    return 0.5 * (1.0 + signed.total(np.abs(signed.values[:, 0])))


@dataclass(frozen=True, eq=False)
class SddEngine:
    """Agreement measures of a Bayesian network classifier from its compiled circuit.

    Attributes
    ----------
    root : SddMeasure
        The measure over all features.
    joint : Diagram
        Pr(c, f), Pr(not c, f) and d(f).
    compilation : Compilation
        Size of the circuit, time and memory.
    classifier : BayesianClassifier or None
        What the engine was made for, if it was made for a classifier.
    """

    threshold: float
    root: SddMeasure
    joint: Diagram
    compilation: Compilation
    classifier: BayesianClassifier | None = None

    @classmethod
    def of(cls, classifier: BayesianClassifier, *, timeout: float | None = None) -> SddEngine:
        """Compile a classifier; None sets no limit on the seconds.

        Raises CircuitError if the network cannot be compiled.
        """
        engine = cls.build(
            as_network(classifier.model),
            classifier.target,
            classifier.positive_states,
            classifier.features,
            classifier.threshold,
            evidence=classifier.evidence,
            timeout=timeout,
        )
        return replace(engine, classifier=classifier)

    def with_threshold(self, threshold: float) -> SddEngine:
        """Return the engine of the same classifier with another threshold; the network is not compiled again."""
        classifier = None if self.classifier is None else self.classifier.with_threshold(threshold)
        return replace(SddEngine.from_compilation(self.compilation, threshold), classifier=classifier)

    def agreement(self, features: Sequence[int], threshold: float) -> float:
        """Return the expected classification agreement of a feature subset with a threshold."""
        return self.instances(features).agreement(threshold)

    def best_cut(self, features: Sequence[int]) -> Cut:
        """Return the threshold interval of a feature subset with the highest agreement."""
        return best_cut(self.instances(features), self.threshold)

    @classmethod
    def build(
        cls,
        network: BayesianNetwork,
        target: str,
        positive: str | Collection[str],
        features: Sequence[str],
        threshold: float,
        *,
        evidence: Mapping[str, str] | None = None,
        timeout: float | None = None,
        memory: int = DEFAULT_MEMORY,
    ) -> SddEngine:
        """Compile the classifier.

        Raises ValueError if an argument is not allowed, and CircuitError if the network cannot be compiled.

        Parameters
        ----------
        positive : str or collection of str
            The states whose probability is compared with the threshold.
        features : sequence of str
            Distinct nodes other than the class; they are later given by their position here.
        evidence : mapping from node to state, optional
            All probabilities are conditional on it.
        timeout : float, optional
            Seconds for the compilation; None sets no limit.
        memory : int
            Bytes that the compiling process may have.
        """
        check_installed("pysdd", extra="sdd", what="engine='sdd'")
        checked_threshold(threshold)
        states, observed = _checked(network, target, positive, features, evidence)
        encoding = encode(network, target, states, tuple(features), observed)
        compilation = compile_network(encoding, timeout=timeout, memory=memory)
        if observed:
            compilation = replace(compilation, joint=_normalized(compilation.joint))
        return cls.from_compilation(compilation, threshold)

    @classmethod
    def from_compilation(cls, compilation: Compilation, threshold: float) -> SddEngine:
        """Return the engine for a threshold: a network that is compiled once serves for all of them.

        Raises ValueError if `threshold` is not in [0, 1].
        """
        level = checked_threshold(threshold)

        def with_sign(values: NDArray[np.float64]) -> NDArray[np.float64]:
            mass = values.sum(axis=1)
            # Without the second condition, ends of probability 0 would be 0.0 and -0.0, and not be merged.
            signed = np.where(is_positive(values[:, 0], values[:, 1], level) | (mass == 0), mass, -mass)
            return np.column_stack([values, signed])

        joint = compilation.joint.mapped(with_sign)
        return cls(level, SddMeasure(joint.mapped(lambda values: values[:, 2:])), joint, compilation)

    def instances(self, features: Sequence[int]) -> Instances:
        """Return the instances of a feature subset (given by position) that have a probability above 0.

        Instances that lead to the same end of the diagram are equivalent here, and form one entry with their total
        probability.
        """
        diagram = self.joint.restricted(features)
        possible = diagram.values[:, :2].sum(axis=1) > 0
        positive, negative, signed = (diagram.values * diagram.counts()[:, None])[possible].T
        return Instances(positive, negative, signed)


def _normalized(joint: Diagram) -> Diagram:
    """Return the diagram of probabilities with the evidence as one of those given the evidence."""
    total = joint.total(joint.values.sum(axis=1))
    if not total > 0:
        raise ValueError("evidence must have a probability above 0, got probability 0")
    return joint.mapped(lambda values: values / total)


def _checked(
    network: BayesianNetwork,
    target: str,
    positive: str | Collection[str],
    features: Sequence[str],
    evidence: Mapping[str, str] | None,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the positive states and the evidence."""
    if not isinstance(network, BayesianNetwork):
        raise TypeError(
            f"network must be a BayesianNetwork, got {type(network).__name__}; a NaiveBayes has .to_network()"
        )
    if target not in network.nodes:
        raise ValueError(f"target must be among {listed(network.nodes)}, got {target!r}")
    states, _ = split_states(network.states(target), target, positive)
    observed = checked_evidence(network, evidence, target)
    feature_indices([node for node in network.nodes if node != target and node not in observed], features)
    return states, observed
