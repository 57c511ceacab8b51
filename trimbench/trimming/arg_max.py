"""Classifiers of two or more classes that give the most probable one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.value_codes import IntegerArray
from trimbench.trimming.model_classifier import ModelClassifier
from trimbench.trimming.model_input import (
    Components,
    Model,
    as_names,
    as_network,
    checked_evidence,
    class_states,
    components_of,
    conditional_table,
    default_features,
    feature_indices,
    understood_model,
)
from trimbench.trimming.thresholds import TIE_TOLERANCE

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, init=False)
class ArgMaxClassifier(ModelClassifier):
    """The classifier that gives the class c with the highest Pr(c | f), or Pr(c | f, e) given evidence e.

    Of several most probable classes it gives the first in the order of the model. Probabilities that are equal up to
    rounding (a relative difference of at most 1e-12) count as equal, and so do those of a row of probability zero.

    Parameters
    ----------
    model : NaiveBayes, NaiveBayesMixture or BayesianNetwork
        A network in which the class is the only parent of every other node is treated as naive Bayes.
    target : str, optional
        The class variable. Default: that of the naive Bayes model.
    features : sequence of str, optional
        Default: all variables other than the target and the evidence.
    evidence : mapping from variable to state, optional
        Observed states: every probability is conditional on them. They are neither target nor features.

    Raises
    ------
    ValueError
        When there are fewer than two classes, a name is unknown or occurs twice, or the evidence is impossible.

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.2, 0.3, 0.5], [[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]], class_names=["a", "b", "c"])
    >>> classifier = tb.ArgMaxClassifier(model)
    >>> classifier.class_names, classifier.features
    (('a', 'b', 'c'), ('x0',))
    """

    _format: ClassVar[str] = "trimbench.ArgMaxClassifier/1"

    model: Model
    target: str
    features: tuple[str, ...]
    evidence: Mapping[str, str]
    _components: Components | None = field(repr=False)

    def __init__(
        self,
        model: Model,
        target: str | None = None,
        *,
        features: Sequence[str] | None = None,
        evidence: Mapping[str, str] | None = None,
    ) -> None:
        understood, name = understood_model(model, target)
        classes = class_states(understood, name)
        if len(classes) < 2:
            raise ValueError(f"target {name!r} must have at least two classes, got {list(classes)}")
        observed = checked_evidence(understood, evidence, name)
        known = tuple(variable for variable in default_features(understood, name) if variable not in observed)
        chosen = known if features is None else as_names(features)
        feature_indices(known, chosen)
        # The class is frozen.
        vars(self).update(
            model=understood,
            target=name,
            features=chosen,
            evidence=observed,
            _components=components_of(understood, observed),
        )

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the model."""
        return class_states(self.model, self.target)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def is_naive_bayes(self) -> bool:
        """Whether the features are independent given the class."""
        return self._components is not None and len(self._components.states) == self.n_classes

    @cached_property
    def _members(self) -> list[list[int]]:
        """The components of each class."""
        states = self.class_names if self._components is None else self._components.states
        return [[i for i, state in enumerate(states) if state == name] for name in self.class_names]

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """Pr(c), given the evidence; shape (n_classes,)."""
        if self._components is None:
            return conditional_table(as_network(self.model), [self.target], self.evidence)
        return np.array([self._components.prior[rows].sum() for rows in self._members])

    @property
    def likelihoods(self) -> tuple[NDArray[np.float64], ...]:
        """Pr(value | c) of each feature, shape (n_classes, cardinality); naive Bayes only.

        Raises
        ------
        ValueError
            When the features are not independent given the class.
        """
        if not self.is_naive_bayes:
            raise ValueError(f"the model must be naive Bayes to have likelihoods, got {self.model!r}; use joint")
        return self._component_tables

    def joint(self, features: Sequence[int]) -> NDArray[np.float64]:
        """Return Pr(c, f') over all instances of a feature subset, given the evidence.

        Parameters
        ----------
        features : sequence of int
            Positions of the features; the first is outermost.

        Returns
        -------
        ndarray of shape (n_classes, n_instances)

        Raises
        ------
        ValueError
            When a general network is too large for exact inference.
        """
        if self._components is None:
            names = [self.features[place] for place in features]
            table = conditional_table(as_network(self.model), [self.target, *names], self.evidence)
            return np.asarray(table).reshape(self.n_classes, -1)
        tables = [self._component_tables[place] for place in features]
        return np.stack([self._components.joint(rows, tables) for rows in self._members])

    def with_features(self, features: Sequence[str]) -> ArgMaxClassifier:
        """Return the classifier of the same distribution with other features."""
        return ArgMaxClassifier(self.model, self.target, features=features, evidence=self.evidence)

    def log_joint(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return log Pr(c, features) of each row, up to a constant of the row.

        Parameters
        ----------
        frame : DataFrame with one column for each feature (others are ignored)

        Returns
        -------
        ndarray of shape (n_rows, n_classes); ``-inf`` where the probability is zero

        Raises
        ------
        ValueError
            When a column is absent, or it holds NaN or an unknown value.
        """
        return self.log_weights(self.encode(frame))

    def log_weights(self, codes: IntegerArray) -> NDArray[np.float64]:
        """Return what `log_joint` does, for rows of value indices, shape (n_rows, n_features)."""
        return self.by_class(self.rows.log_joint(codes))

    def by_class(self, logs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logarithms of each class, shape (n_rows, n_classes), from those that `rows` gives."""
        if self._components is None or self.is_naive_bayes:
            return logs
        return np.stack([np.logaddexp.reduce(logs[:, rows], axis=1) for rows in self._members], axis=1)

    def decide(self, codes: IntegerArray) -> NDArray[np.intp]:
        """Return the position of the class of each row of value indices, shape (n_rows, n_features)."""
        return most_probable(self.log_weights(codes).T, logarithms=True)

    def predict_proba(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return Pr(c | features) of each row, shape (n_rows, n_classes); NaN where a row has probability zero."""
        logs = self.log_joint(frame)
        with np.errstate(invalid="ignore"):
            scaled = np.exp(logs - logs.max(axis=1, keepdims=True))
            return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))

    def predict(self, frame: pd.DataFrame) -> NDArray[np.str_]:
        """Return the name of the most probable class of each row; the first of equally probable ones."""
        return np.array(self.class_names)[self.decide(self.encode(frame))]


def most_probable(joint: NDArray[np.float64], *, logarithms: bool = False) -> NDArray[np.intp]:
    """Return the position of the most probable class of each instance: the first of those equal up to rounding.

    Parameters
    ----------
    joint : ndarray of shape (n_classes, n_instances)
        Pr(c, f), each column up to a factor, or logarithms of it.
    """
    top = joint.max(axis=0)
    tied = joint >= (top - TIE_TOLERANCE if logarithms else top * (1.0 - TIE_TOLERANCE))
    return np.asarray(tied.argmax(axis=0))
