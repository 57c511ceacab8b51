"""Bayesian classifiers: a distribution, a class, its positive states, features, evidence and a threshold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.contraction import joint_distribution
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.naive_bayes_mixture import NaiveBayesMixture
from trimbench.networks.value_codes import IntegerArray
from trimbench.trimming.model_classifier import ModelClassifier
from trimbench.trimming.model_input import (
    Components,
    as_names,
    as_network,
    checked_evidence,
    class_states,
    components_of,
    default_features,
    split_states,
    understood_model,
)
from trimbench.trimming.model_input import checked_threshold as checked_threshold
from trimbench.trimming.model_input import feature_indices as feature_indices
from trimbench.trimming.thresholds import is_positive

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, init=False)
class BayesianClassifier(ModelClassifier):
    """The classifier (C, F, T): positive iff Pr(c | f) >= T, or Pr(c | f, e) >= T given evidence e.

    Posteriors that are equal to the threshold up to rounding (see `thresholds.TIE_TOLERANCE`) count as equal.

    Parameters
    ----------
    model : NaiveBayes, NaiveBayesMixture or BayesianNetwork
        A network in which the class is the only parent of every other node is treated as naive Bayes.
    target : str, optional
        The class variable, with two or more states. Default: that of the naive Bayes model.
    positive : str or collection of str
        The state, or the states, whose probability is compared with the threshold; all other states together are the
        negative class. Numbers stand for their text.
    features : sequence of str, optional
        Default: all variables other than the target and the evidence.
    threshold : float in [0, 1]
    evidence : mapping from variable to state, optional
        Observed states: every probability is conditional on them. They are neither target nor features.

    Attributes
    ----------
    positive, negative : str
        Names of the two classes, which `predict` returns: a state, or several as in ``"b or c"``.
    positive_states, negative_states : tuple of str
        The states of each class.

    Raises
    ------
    ValueError
        When a name is unknown or occurs twice, no state or every state is positive, the evidence is impossible, or the
        threshold is outside [0, 1].

    References
    ----------
    Choi and Van den Broeck (2018), section 2.
    """

    _format: ClassVar[str] = "trimbench.BayesianClassifier/1"
    _saved: ClassVar[Mapping[str, str]] = {"positive": "positive_states", "threshold": "threshold"}

    model: NaiveBayes | NaiveBayesMixture | BayesianNetwork
    target: str
    positive_states: tuple[str, ...]
    negative_states: tuple[str, ...]
    features: tuple[str, ...]
    threshold: float
    evidence: Mapping[str, str]
    _components: Components | None = field(repr=False)

    def __init__(
        self,
        model: NaiveBayes | NaiveBayesMixture | BayesianNetwork,
        target: str | None = None,
        *,
        positive: str | Collection[str],
        features: Sequence[str] | None = None,
        threshold: float = 0.5,
        evidence: Mapping[str, str] | None = None,
    ) -> None:
        understood, name = understood_model(model, target)
        positive_states, negative_states = split_states(class_states(understood, name), name, positive)
        observed = checked_evidence(understood, evidence, name)
        known = tuple(variable for variable in default_features(understood, name) if variable not in observed)
        chosen = known if features is None else as_names(features)
        for feature in chosen:
            if isinstance(feature, str) and feature in observed:
                raise ValueError(f"features must not be among the evidence, got {feature!r} in both")
        feature_indices(known, chosen)
        # The class is frozen.
        vars(self).update(
            model=understood,
            target=name,
            positive_states=positive_states,
            negative_states=negative_states,
            features=chosen,
            threshold=checked_threshold(threshold),
            evidence=observed,
            _components=components_of(understood, observed),
        )
        if self.positive == self.negative:
            raise ValueError(f"both classes would be called {self.positive!r}; rename a state of {name!r}")

    @property
    def positive(self) -> str:
        """The name of the positive class."""
        return " or ".join(self.positive_states)

    @property
    def negative(self) -> str:
        """The name of the other class."""
        return " or ".join(self.negative_states)

    @property
    def is_naive_bayes(self) -> bool:
        """Whether the features are independent given the positive and given the negative class."""
        return self._components is not None and len(self._components.states) == 2

    @cached_property
    def _sides(self) -> tuple[list[int], list[int]]:
        """The positive and the negative rows of tables over the states, or the components, of the class."""
        parts = self._components
        states = class_states(self.model, self.target) if parts is None else parts.states
        rows = range(len(states))
        return (
            [i for i in rows if states[i] in self.positive_states],
            [i for i in rows if states[i] not in self.positive_states],
        )

    @property
    def _own_components(self) -> Components:
        if self._components is None:
            raise ValueError(
                f"the model must be naive Bayes for the log-odds engine, got {self.model!r}; "
                "use engine 'auto', 'dense' or 'sdd'"
            )
        return self._components

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """Pr(positive), Pr(negative), given the evidence; shape (2,)."""
        if self._components is None:
            states = joint_distribution(as_network(self.model), [self.target], evidence=self.evidence)
        else:
            states = self._components.prior
        return np.array([states[rows].sum() for rows in self._sides])

    @cached_property
    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """Pr(value | positive) and Pr(value | negative) of each feature, shape (2, cardinality); naive Bayes only.

        Raises
        ------
        ValueError
            When the features are not independent given the class.
        """
        parts = self._own_components
        if not self.is_naive_bayes:
            raise ValueError(
                f"the model must be naive Bayes with one component for each class for the log-odds engine, got "
                f"{len(parts.states)} components; use engine 'auto', 'dense' or 'sdd'"
            )
        rows = [*self._sides[0], *self._sides[1]]
        return tuple(table[rows] for table in self._component_tables)

    def joint(self, features: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return Pr(c, f') and Pr(not c, f') over all instances of a feature subset, given the evidence.

        Parameters
        ----------
        features : sequence of int
            Positions of the features; the first is outermost.

        Returns
        -------
        positive, negative : ndarrays of shape (n_instances,)

        Raises
        ------
        ValueError
            When a general network is too large for exact inference.
        """
        if self._components is None:
            removed = tuple(1 + i for i in range(self.n_features) if i not in set(features))
            table = self._network_table.sum(axis=removed)
            # The remaining axes are in the order of the classifier.
            order = np.argsort(np.argsort(features))
            table = table.transpose(0, *(1 + order))
            return table[0].reshape(-1), table[1].reshape(-1)
        tables = [self._component_tables[i] for i in features]
        positive, negative = (self._components.joint(rows, tables) for rows in self._sides)
        return positive, negative

    @cached_property
    def _network_table(self) -> NDArray[np.float64]:
        """Pr(C, f) of a general network, shape (2, *cardinalities), the positive class first."""
        return self._contracted()

    def _contracted(self, **limits: int) -> NDArray[np.float64]:
        table = joint_distribution(
            as_network(self.model), [self.target, *self.features], evidence=self.evidence, **limits
        )
        return np.stack([table[rows[0]] if len(rows) == 1 else table[rows].sum(axis=0) for rows in self._sides])

    def prepare_table(self, *, max_operations: int, n_threads: int = 1) -> None:
        """Contract a general network for `joint`, with at most so many products of two numbers, in several threads.

        Raises
        ------
        ContractionTooLarge
            When that is not possible; a ValueError.
        """
        if self._components is None and "_network_table" not in vars(self):
            vars(self)["_network_table"] = self._contracted(max_operations=max_operations, n_threads=n_threads)

    def with_features(self, features: Sequence[str], threshold: float) -> BayesianClassifier:
        """Return the classifier of the same distribution with other features and another threshold."""
        return BayesianClassifier(
            self.model,
            self.target,
            positive=self.positive_states,
            features=features,
            threshold=threshold,
            evidence=self.evidence,
        )

    def with_threshold(self, threshold: float) -> BayesianClassifier:
        """Return the classifier of the same distribution and features with another threshold."""
        return self.with_features(self.features, threshold)

    def posterior(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return Pr(positive | features, evidence) of each row; NaN where a row has probability zero.

        A row needs no table of all instances: variables that are neither feature nor evidence are summed out for the
        rows alone.

        Parameters
        ----------
        frame : DataFrame with one column for each feature (others are ignored)

        Returns
        -------
        ndarray of shape (n_rows,)

        Raises
        ------
        ContractionTooLarge
            When the hidden variables of a network depend on each other too much; a ValueError.
        """
        positive, negative = self.weights(self.encode(frame))
        with np.errstate(invalid="ignore"):
            return np.asarray(positive / (positive + negative))

    def predict(self, frame: pd.DataFrame) -> NDArray[np.str_]:
        """Return the name of the class, `positive` or `negative`, of each row.

        Parameters
        ----------
        frame : DataFrame with one column for each feature

        Returns
        -------
        ndarray of str, shape (n_rows,)
        """
        names = np.array([self.positive, self.negative])
        return names[np.where(self.decide(self.encode(frame)), 0, 1)]

    def decide(self, codes: IntegerArray) -> NDArray[np.bool_]:
        """Return whether each row of value indices, shape (n_rows, n_features), is classified as positive."""
        positive, negative = self.weights(codes)
        return is_positive(positive, negative, self.threshold)

    def weights(self, codes: IntegerArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return Pr(c, f) and Pr(not c, f) of each row of value indices, up to a factor of the row."""
        return self.weights_of(self.rows.log_joint(codes))

    def weights_of(self, logs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the probabilities of both classes from the logarithms that `rows` gives, relative to the largest."""
        top = logs.max(axis=1, keepdims=True)
        scaled = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
        positive, negative = (
            scaled[:, rows[0]] if len(rows) == 1 else scaled[:, rows].sum(axis=1) for rows in self._sides
        )
        return positive, negative


def checked_classifier(classifier: object) -> BayesianClassifier:
    """Return `classifier`; raise a TypeError that says how to make one if it is something else."""
    if isinstance(classifier, BayesianClassifier):
        return classifier
    kind = type(classifier).__name__
    how = "BayesianClassifier(model, positive=...)"
    if kind in ("BernoulliNB", "CategoricalNB"):
        how = "BayesianClassifier(NaiveBayes.from_sklearn(estimator, feature_names), positive=...)"
    elif isinstance(classifier, BayesianNetwork):
        how = "BayesianClassifier(network, target, positive=...)"
    elif hasattr(classifier, "fit"):
        how = "BayesianClassifier(learn_naive_bayes(features, target), positive=...)"
    raise TypeError(f"classifier must be a BayesianClassifier, got {kind}; make one with {how}")
