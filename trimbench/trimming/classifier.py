"""Binary Bayesian classifiers: a distribution, a class, features and a threshold."""

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
        A network in which the class is the only parent of every other node is treated as naive Bayes.
    target : str, optional
        The class variable. Default: that of the naive Bayes model.
    positive : str
        The class value whose probability is compared with the threshold.
    features : sequence of str, optional
        Default: all features of a naive Bayes model, in its order; all leaves of a network.
    threshold : float in [0, 1]

    Raises
    ------
    ValueError
        When the class is not binary, a name is unknown or occurs twice, or the threshold is outside [0, 1].

    References
    ----------
    Choi and Van den Broeck (2018), section 2.
    """

    model: NaiveBayes | BayesianNetwork
    target: str
    positive: str
    features: tuple[str, ...]
    threshold: float

    def __init__(
        self,
        model: NaiveBayes | BayesianNetwork,
        target: str | None = None,
        *,
        positive: str,
        features: Sequence[str] | None = None,
        threshold: float = 0.5,
    ) -> None:
        understood, name = _understood(model, target)
        if isinstance(understood, NaiveBayes):
            classes, known, default = understood.class_names, understood.feature_names, understood.feature_names
        else:
            classes, known = understood.states(name), tuple(node for node in understood.nodes if node != name)
            default = tuple(node for node in known if not understood.children(node))
        if len(classes) != 2:
            raise ValueError(
                f"target {name!r} must be binary, got {len(classes)} classes {list(classes)}; "
                "merge its values into two before learning the model"
            )
        if positive not in classes:
            raise ValueError(f"positive must be one of {list(classes)}, got {positive!r}")
        chosen = default if features is None else tuple(features)
        feature_indices(known, chosen)
        level = checked_threshold(threshold)
        # The class is frozen.
        vars(self).update(model=understood, target=name, positive=positive, features=chosen, threshold=level)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.features)

    @property
    def is_naive_bayes(self) -> bool:
        """Whether the features are independent given the class."""
        return isinstance(self.model, NaiveBayes)

    @property
    def negative(self) -> str:
        """The other class value."""
        first, second = self._classes
        return second if first == self.positive else first

    @property
    def _classes(self) -> tuple[str, ...]:
        model = self.model
        return model.class_names if isinstance(model, NaiveBayes) else model.states(self.target)

    @cached_property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        if isinstance(self.model, NaiveBayes):
            return tuple(table.shape[1] for table in self.tables)
        return tuple(self.model.cardinality(name) for name in self.features)

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """Pr(positive), Pr(negative), shape (2,)."""
        if isinstance(self.model, NaiveBayes):
            return self.model.prior[self._class_rows]
        return np.asarray(self._network_table.reshape(2, -1).sum(axis=1))

    @cached_property
    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """Pr(value | positive) and Pr(value | negative) of each feature, shape (2, cardinality); naive Bayes only.

        Raises
        ------
        ValueError
            When the features are not independent given the class.
        """
        if not isinstance(self.model, NaiveBayes):
            raise ValueError(
                f"the model must be naive Bayes for the log-odds engine, got {self.model!r}; "
                "use engine 'auto', 'dense' or 'sdd'"
            )
        likelihoods = self.model.likelihoods
        indices = feature_indices(self.model.feature_names, self.features)
        return tuple(likelihoods[index][self._class_rows] for index in indices)

    @property
    def _class_rows(self) -> list[int]:
        row = self._classes.index(self.positive)
        return [row, 1 - row]

    def joint(self, features: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return Pr(c, f') and Pr(not c, f') over all instances of a feature subset.

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
        if not isinstance(self.model, NaiveBayes):
            removed = tuple(1 + i for i in range(self.n_features) if i not in set(features))
            table = self._network_table.sum(axis=removed)
            # The remaining axes are in the order of the classifier.
            order = np.argsort(np.argsort(features))
            table = table.transpose(0, *(1 + order))
            return table[0].reshape(-1), table[1].reshape(-1)
        tables = [self.tables[i] for i in features]
        half = len(tables) // 2
        both = []
        for side in (0, 1):
            # Two halves first: one pass over the full table instead of one for each feature.
            left = self.prior[side] * _outer([table[side] for table in tables[:half]])
            right = _outer([table[side] for table in tables[half:]])
            both.append(np.multiply.outer(left, right).reshape(-1))
        return both[0], both[1]

    @cached_property
    def _network_table(self) -> NDArray[np.float64]:
        """Pr(C, f) of a general network, shape (2, *cardinalities), the positive class first."""
        from trimbench.networks.contraction import joint_distribution

        if isinstance(self.model, NaiveBayes):
            raise TypeError("a naive Bayes model is never written out as a network's table")
        return joint_distribution(self.model, [self.target, *self.features])[self._class_rows]

    def with_features(self, features: Sequence[str], threshold: float) -> BayesianClassifier:
        """Return the classifier of the same distribution with other features and another threshold."""
        return BayesianClassifier(
            self.model, self.target, positive=self.positive, features=features, threshold=threshold
        )

    def with_threshold(self, threshold: float) -> BayesianClassifier:
        """Return the classifier of the same distribution and features with another threshold."""
        return self.with_features(self.features, threshold)

    def posterior(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return Pr(positive | features) of each row; NaN where a row has probability zero.

        Parameters
        ----------
        frame : DataFrame with one column for each feature (others are ignored)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        positive, negative = self._joint_of_rows(frame)
        with np.errstate(invalid="ignore"):
            return np.asarray(positive / (positive + negative))

    def predict(self, frame: pd.DataFrame) -> NDArray[np.str_]:
        """Return the class name of each row.

        Parameters
        ----------
        frame : DataFrame with one column for each feature

        Returns
        -------
        ndarray of str, shape (n_rows,)
        """
        positive, negative = self._joint_of_rows(frame)
        names = np.array([self.positive, self.negative])
        return names[np.where(is_positive(positive, negative, self.threshold), 0, 1)]

    def _joint_of_rows(self, frame: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return Pr(c, f) and Pr(not c, f) of each row, up to a factor of the row."""
        if not isinstance(self.model, NaiveBayes):
            codes = encode_columns(frame, {name: self.model.states(name) for name in self.features})
            places = (
                np.ravel_multi_index(tuple(codes.T), self.cardinalities) if self.features else np.zeros(len(frame), int)
            )
            positive, negative = self.joint(range(self.n_features))
            return positive[places], negative[places]
        part = self.model.restricted(self.features)
        logs = part.log_joint(part.encode(frame))[:, self._class_rows]
        top = logs.max(axis=1, keepdims=True)
        scaled = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
        return scaled[:, 0], scaled[:, 1]


def _outer(rows: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    start: NDArray[np.float64] = np.ones(1)
    return reduce(lambda left, right: np.multiply.outer(left, right).reshape(-1), rows, start)


def feature_indices(known: Sequence[str], chosen: Sequence[str], *, what: str = "features") -> tuple[int, ...]:
    """Return the position of each chosen feature name; raise ValueError if a name is unknown or occurs twice.

    `what` is what messages call the chosen names.
    """
    if isinstance(chosen, str):
        raise ValueError(f"{what} must be a sequence of names, got the string {chosen!r}; write [{chosen!r}]")
    position = {name: index for index, name in enumerate(known)}
    for name in chosen:
        if name not in position:
            raise ValueError(f"{what} must be among {list(known)}, got {name!r}")
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"{what} must be distinct, got {list(chosen)}")
    return tuple(position[name] for name in chosen)


def checked_threshold(threshold: float) -> float:
    """Return `threshold` as a float; raise ValueError unless it is a number in [0, 1]."""
    if not isinstance(threshold, int | float | np.number) or not 0.0 <= threshold <= 1.0:
        raise ValueError(f"threshold must be a probability in [0, 1], got {threshold!r}")
    return float(threshold)


def _understood(model: NaiveBayes | BayesianNetwork, target: str | None) -> tuple[NaiveBayes | BayesianNetwork, str]:
    """Return the model, as naive Bayes where it has that structure, and its class variable."""
    if isinstance(model, NaiveBayes):
        if target not in (None, model.class_variable):
            raise ValueError(f"target must be the class variable {model.class_variable!r}, got {target!r}")
        return model, model.class_variable
    if not isinstance(model, BayesianNetwork):
        raise TypeError(f"model must be a NaiveBayes or a BayesianNetwork, got {type(model).__name__}")
    if target not in model.nodes:
        raise ValueError(f"target must be a node of the network, one of {list(model.nodes)}, got {target!r}")
    naive = all(model.parents(node) == ((target,) if node != target else ()) for node in model.nodes)
    return (NaiveBayes.from_network(model, target) if naive else model), target
