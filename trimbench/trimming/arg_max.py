"""Classifiers of two or more classes that give the most probable one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.value_codes import encode_columns
from trimbench.trimming.classifier import _understood, feature_indices
from trimbench.trimming.thresholds import TIE_TOLERANCE

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, init=False)
class ArgMaxClassifier:
    """The classifier that gives the class c with the highest Pr(c | f).

    Of several most probable classes it gives the first in the order of the model. Probabilities that are equal up to
    rounding (a relative difference of at most 1e-12) count as equal, and so do those of a row of probability zero.

    Parameters
    ----------
    model : NaiveBayes or BayesianNetwork
        A network in which the class is the only parent of every other node is treated as naive Bayes.
    target : str, optional
        The class variable. Default: that of the naive Bayes model.
    features : sequence of str, optional
        Default: all features of a naive Bayes model, in its order; all nodes of a network but the class.

    Raises
    ------
    ValueError
        When there are fewer than two classes, or a name is unknown or occurs twice.

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.2, 0.3, 0.5], [[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]], class_names=["a", "b", "c"])
    >>> classifier = tb.ArgMaxClassifier(model)
    >>> classifier.class_names, classifier.features
    (('a', 'b', 'c'), ('x0',))
    """

    model: NaiveBayes | BayesianNetwork
    target: str
    features: tuple[str, ...]

    def __init__(
        self,
        model: NaiveBayes | BayesianNetwork,
        target: str | None = None,
        *,
        features: Sequence[str] | None = None,
    ) -> None:
        understood, name = _understood(model, target)
        if isinstance(understood, NaiveBayes):
            classes, known = understood.class_names, understood.feature_names
        else:
            classes, known = understood.states(name), tuple(node for node in understood.nodes if node != name)
        if len(classes) < 2:
            raise ValueError(f"target {name!r} must have at least two classes, got {list(classes)}")
        chosen = known if features is None else tuple(features)
        feature_indices(known, chosen)
        vars(self).update(model=understood, target=name, features=chosen)  # the class is frozen

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.features)

    @property
    def is_naive_bayes(self) -> bool:
        """Whether the features are independent given the class."""
        return isinstance(self.model, NaiveBayes)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the model."""
        model = self.model
        return model.class_names if isinstance(model, NaiveBayes) else model.states(self.target)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @cached_property
    def value_names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the values of each feature."""
        if isinstance(self.model, NaiveBayes):
            places = feature_indices(self.model.feature_names, self.features)
            return tuple(self.model.value_names[place] for place in places)
        return tuple(self.model.states(name) for name in self.features)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        return tuple(len(values) for values in self.value_names)

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """Pr(c), shape (n_classes,)."""
        if isinstance(self.model, NaiveBayes):
            return self.model.prior
        from trimbench.networks.contraction import joint_distribution

        return joint_distribution(self.model, [self.target])

    @cached_property
    def likelihoods(self) -> tuple[NDArray[np.float64], ...]:
        """Pr(value | c) of each feature, shape (n_classes, cardinality); naive Bayes only.

        Raises
        ------
        ValueError
            When the features are not independent given the class.
        """
        if not isinstance(self.model, NaiveBayes):
            raise ValueError(f"the model must be naive Bayes to have likelihoods, got {self.model!r}; use joint")
        places = feature_indices(self.model.feature_names, self.features)
        return tuple(self.model.likelihoods[place] for place in places)

    def joint(self, features: Sequence[int]) -> NDArray[np.float64]:
        """Return Pr(c, f') over all instances of a feature subset.

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
        if not isinstance(self.model, NaiveBayes):
            from trimbench.networks.contraction import joint_distribution

            names = [self.features[place] for place in features]
            return joint_distribution(self.model, [self.target, *names]).reshape(self.n_classes, -1)
        return np.stack([self._joint_with(place, features) for place in range(self.n_classes)])

    def _joint_with(self, place: int, features: Sequence[int]) -> NDArray[np.float64]:
        start = np.array([self.prior[place]])
        rows = (self.likelihoods[feature][place] for feature in features)
        return reduce(lambda left, right: np.multiply.outer(left, right).reshape(-1), rows, start)

    def with_features(self, features: Sequence[str]) -> ArgMaxClassifier:
        """Return the classifier of the same distribution with other features."""
        return ArgMaxClassifier(self.model, self.target, features=features)

    def log_joint(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return log Pr(c, features) of each row.

        Parameters
        ----------
        frame : DataFrame with one column for each feature (others are ignored)

        Returns
        -------
        ndarray of shape (n_rows, n_classes); ``-inf`` where the probability is zero

        Raises
        ------
        ValueError
            When a column is absent or occurs twice, or holds NaN or a value that the model does not know.
        """
        codes = encode_columns(frame, dict(zip(self.features, self.value_names, strict=True)))
        if isinstance(self.model, NaiveBayes):
            return self.model.restricted(self.features).log_joint(codes)
        places = (
            np.ravel_multi_index(tuple(codes.T), self.cardinalities) if self.features else np.zeros(len(frame), int)
        )
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._network_table[:, places]).T)

    @cached_property
    def _network_table(self) -> NDArray[np.float64]:
        return self.joint(range(self.n_features))

    def predict_proba(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return Pr(c | features) of each row, shape (n_rows, n_classes); NaN where a row has probability zero."""
        logs = self.log_joint(frame)
        with np.errstate(invalid="ignore"):
            scaled = np.exp(logs - logs.max(axis=1, keepdims=True))
            return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))

    def predict(self, frame: pd.DataFrame) -> NDArray[np.str_]:
        """Return the name of the most probable class of each row; the first of equally probable ones."""
        return np.array(self.class_names)[most_probable(self.log_joint(frame).T, logarithms=True)]


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
