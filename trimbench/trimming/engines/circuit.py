"""The SDD engine: exact agreement of trimmings of any Bayesian network, from a compiled circuit.

The network is compiled once; the circuit is then reduced to a decision diagram over the features with Pr(c, f) and
Pr(not c, f) at its ends. Each distinct end is classified once, and features are summed out of the diagram, not of a
table of all instances: with many zeros or equal parameters, it has far fewer nodes than there are instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench._extras import check_installed
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import Cut, Instances, as_network, best_cut, is_positive
from trimbench.trimming.engines.sdd import Diagram, compile_network, encode


@dataclass(frozen=True, eq=False)
class SddMeasure:
    """d(f') over the instances of a feature subset, as a decision diagram with one function."""

    diagram: Diagram

    @property
    def features(self) -> tuple[int, ...]:
        """Positions of the features that are left, in the order of the diagram."""
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

    def potential_agreement_without(self, group: Sequence[int]) -> float:
        """Return the maximum potential agreement after removing some features."""
        return _potential_agreement(self.without(*group[:-1]).diagram.summed(group[-1]))


def _potential_agreement(signed: Diagram) -> float:
    return 0.5 * (1.0 + signed.total(np.abs(signed.values[:, 0])))


@dataclass(frozen=True, eq=False)
class SddEngine:
    """Agreement measures of a Bayesian network classifier from its compiled circuit.

    Attributes
    ----------
    classifier : BayesianClassifier
    root : SddMeasure
        The measure over all features.
    joint : Diagram
        Pr(c, f), Pr(not c, f) and d(f).
    """

    classifier: BayesianClassifier
    root: SddMeasure
    joint: Diagram

    @classmethod
    def of(cls, classifier: BayesianClassifier, *, timeout: float | None = None) -> SddEngine:
        """Compile a classifier, within `timeout` seconds if it is given.

        Raises ValueError if `timeout` is not positive, and CircuitError if the network cannot be compiled.
        """
        check_installed("pysdd", extra="sdd", what="engine='sdd'")
        given = (classifier.target, classifier.positive_states, classifier.features, classifier.evidence)
        joint = compile_network(encode(as_network(classifier.model), *given), timeout=timeout)
        if classifier.evidence:
            total = joint.total(joint.values.sum(axis=1))
            if not total > 0:
                raise ValueError("evidence must have a probability above 0, got probability 0")
            joint = joint.mapped(lambda values: values / total)
        return cls.from_joint(classifier, joint)

    @classmethod
    def from_joint(cls, classifier: BayesianClassifier, joint: Diagram) -> SddEngine:
        """Return the engine of a classifier whose Pr(c, f) and Pr(not c, f) are known."""

        def with_sign(values: NDArray[np.float64]) -> NDArray[np.float64]:
            mass = values.sum(axis=1)
            # Without the second condition, ends of probability 0 would be 0.0 and -0.0, and not be merged.
            positive = is_positive(values[:, 0], values[:, 1], classifier.threshold) | (mass == 0)
            return np.column_stack([values, np.where(positive, mass, -mass)])

        signed = joint.mapped(with_sign)
        return cls(classifier, SddMeasure(signed.mapped(lambda values: values[:, 2:])), signed)

    def with_threshold(self, threshold: float) -> SddEngine:
        """Return the engine of the same classifier with another threshold; the network is not compiled again."""
        joint = self.joint.mapped(lambda values: values[:, :2])
        return SddEngine.from_joint(self.classifier.with_threshold(threshold), joint)

    def agreement(self, features: Sequence[int], threshold: float) -> float:
        """Return the expected classification agreement of a feature subset with a threshold."""
        return self.instances(features).agreement(threshold)

    def best_cut(self, features: Sequence[int]) -> Cut:
        """Return the threshold interval of a feature subset with the highest agreement."""
        return best_cut(self.instances(features), self.classifier.threshold)

    def instances(self, features: Sequence[int]) -> Instances:
        """Return the instances of a feature subset (given by position) that have a probability above 0.

        Instances that lead to the same end of the diagram are equivalent, and form one entry with their total
        probability.
        """
        diagram = self.joint.restricted(features)
        possible = diagram.values[:, :2].sum(axis=1) > 0
        positive, negative, signed = (diagram.values * diagram.counts()[:, None])[possible].T
        return Instances(positive, negative, signed)
