"""Binary Bayesian classifiers: a distribution, a class, features and a threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.trimming.thresholds import is_positive

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, init=False)
class BayesianClassifier:
    """The classifier (C, F, T): positive iff Pr(c | f) >= T.

    Posteriors that are equal to the threshold up to rounding (see `thresholds.TIE_TOLERANCE`) count as equal.

    Parameters
    ----------
    model : NaiveBayes or BayesianNetwork
        A Bayesian network must be naive Bayes in structure: the class is the only parent of every other node.
    target : str, optional
        The class variable. Default: that of the naive Bayes model.
    positive : str
        The class value that the threshold speaks of.
    features : sequence of str, optional
        Default: all features of the model, in its order.
    threshold : float in [0, 1]

    Attributes
    ----------
    prior : ndarray of shape (2,)
        Pr(positive), Pr(negative).
    tables : tuple of ndarrays of shape (2, cardinality)
        Pr(value | positive) and Pr(value | negative), one for each feature.

    Raises
    ------
    ValueError
        When the class is not binary, a name is unknown or stands twice, or the threshold is outside [0, 1].

    References
    ----------
    Choi and Van den Broeck (2018), section 2.
    """

    model: NaiveBayes
    target: str
    positive: str
    features: tuple[str, ...]
    threshold: float
    prior: NDArray[np.float64]
    tables: tuple[NDArray[np.float64], ...]

    def __init__(
        self,
        model: NaiveBayes | BayesianNetwork,
        target: str | None = None,
        *,
        positive: str,
        features: Sequence[str] | None = None,
        threshold: float = 0.5,
    ) -> None:
        naive_bayes = _as_naive_bayes(model, target)
        classes = naive_bayes.class_names
        if len(classes) != 2:
            raise ValueError(
                f"target {naive_bayes.class_variable!r} must be binary, got {len(classes)} classes {list(classes)}; "
                "merge its values into two before learning the model"
            )
        if positive not in classes:
            raise ValueError(f"positive must be one of {list(classes)}, got {positive!r}")
        chosen = naive_bayes.feature_names if features is None else tuple(features)
        indices = feature_indices(naive_bayes.feature_names, chosen)
        rows = [classes.index(positive), 1 - classes.index(positive)]
        for field, value in {
            "model": naive_bayes,
            "target": naive_bayes.class_variable,
            "positive": positive,
            "features": chosen,
            "threshold": checked_threshold(threshold),
            "prior": naive_bayes.prior[rows],
            "tables": tuple(naive_bayes.likelihoods[index][rows] for index in indices),
        }.items():
            object.__setattr__(self, field, value)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.features)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        return tuple(table.shape[1] for table in self.tables)

    def with_features(self, features: Sequence[str], threshold: float) -> BayesianClassifier:
        """Return the classifier of the same distribution with other features and another threshold."""
        return BayesianClassifier(
            self.model, self.target, positive=self.positive, features=features, threshold=threshold
        )

    def posterior(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return Pr(positive | features) of each row; NaN where a row has probability zero.

        Parameters
        ----------
        frame : DataFrame with one column for each feature (others are not looked at)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        joint = self._joint_of_rows(frame)
        with np.errstate(invalid="ignore"):
            return np.asarray(joint[:, 0] / joint.sum(axis=1))

    def predict(self, frame: pd.DataFrame) -> NDArray[np.str_]:
        """Return the class name of each row.

        Parameters
        ----------
        frame : DataFrame with one column for each feature

        Returns
        -------
        ndarray of str, shape (n_rows,)
        """
        joint = self._joint_of_rows(frame)
        names = np.array([self.positive, next(c for c in self.model.class_names if c != self.positive)])
        return names[np.where(is_positive(joint[:, 0], joint[:, 1], self.threshold), 0, 1)]

    def _joint_of_rows(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return Pr(c, f) of each row up to a factor, shape (n_rows, 2), its larger entry scaled to 1."""
        model = self.model
        chosen = feature_indices(model.feature_names, self.features)
        part = NaiveBayes(
            model.prior,
            [model.likelihoods[i] for i in chosen],
            feature_names=self.features,
            class_names=model.class_names,
            value_names=[model.value_names[i] for i in chosen],
            class_variable=model.class_variable,
        )
        logs = part.log_joint(part.encode(frame))
        positive = model.class_names.index(self.positive)
        logs = logs[:, [positive, 1 - positive]]
        top = logs.max(axis=1, keepdims=True)
        return np.exp(logs - np.where(np.isfinite(top), top, 0.0))


def feature_indices(known: Sequence[str], chosen: Sequence[str]) -> tuple[int, ...]:
    """Return the position of each chosen feature name.

    Raises
    ------
    ValueError
        When a name is unknown or stands twice.
    """
    if isinstance(chosen, str):
        raise ValueError(f"features must be a sequence of names, got the string {chosen!r}; write [{chosen!r}]")
    position = {name: index for index, name in enumerate(known)}
    for name in chosen:
        if name not in position:
            raise ValueError(f"features must be among {list(known)}, got {name!r}")
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"features must be distinct, got {list(chosen)}")
    return tuple(position[name] for name in chosen)


def checked_threshold(threshold: float) -> float:
    """Return `threshold` as a float.

    Raises
    ------
    ValueError
        When it is not a number in [0, 1].
    """
    value = float(threshold)
    if math.isnan(value) or not 0.0 <= value <= 1.0:
        raise ValueError(f"threshold must be a probability in [0, 1], got {threshold!r}")
    return value


def _as_naive_bayes(model: NaiveBayes | BayesianNetwork, target: str | None) -> NaiveBayes:
    if isinstance(model, NaiveBayes):
        if target not in (None, model.class_variable):
            raise ValueError(f"target must be the class variable {model.class_variable!r}, got {target!r}")
        return model
    if not isinstance(model, BayesianNetwork):
        raise TypeError(f"model must be a NaiveBayes or a BayesianNetwork, got {type(model).__name__}")
    if target is None:
        raise ValueError(f"target must be given for a Bayesian network: one of {list(model.nodes)}")
    return NaiveBayes.from_network(model, target)
