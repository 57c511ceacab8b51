"""Bayesian classifiers, with a threshold or for the most probable class; saved to files and loaded."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench._checks import check_one_of
from trimbench._typing import IntegerArray
from trimbench.acquisition.policy import Asking
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.formats.parsing import read_json, write_json
from trimbench.networks.inference.joint import relevant_nodes
from trimbench.networks.inference.row_inference import RowInference
from trimbench.networks.mixture import NaiveBayesMixture
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.values import encode_compactly, names_text
from trimbench.trimming.asking import BayesianAsker, CodedModel, ComponentModel, NetworkModel
from trimbench.trimming.decisions import (
    TIE_TOLERANCE,
    TRACE,
    Components,
    Model,
    as_names,
    as_network,
    check_evidence_possible,
    checked_evidence,
    class_states,
    components_of,
    default_features,
    is_positive,
    most_probable,
    split_states,
    understood_model,
)
from trimbench.trimming.decisions import checked_threshold as checked_threshold
from trimbench.trimming.decisions import feature_indices as feature_indices
from trimbench.trimming.distribution import ClassDistribution

if TYPE_CHECKING:
    import pandas as pd


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Model]] = {
    "NaiveBayes": NaiveBayes.from_dict,
    "NaiveBayesMixture": NaiveBayesMixture.from_dict,
    "BayesianNetwork": BayesianNetwork.from_dict,
}


def model_to_dict(model: Model, target: str, names: Iterable[str]) -> dict[str, Any]:
    """Return the part of a model that determines the joint distribution of the class and some variables, for JSON.

    Parameters
    ----------
    model : NaiveBayes, NaiveBayesMixture or BayesianNetwork
    target : str
        The class variable.
    names : iterable of str
        Features and evidence. Other features of a naive Bayes model or a mixture are left out, and so are nodes of a
        network that are neither among these variables and the class nor ancestors of one.
    """
    wanted = set(names)
    part: Model
    if isinstance(model, BayesianNetwork):
        nodes = relevant_nodes(model, [target, *wanted])
        part = BayesianNetwork(
            {node: model.states(node) for node in nodes},
            {node: model.parents(node) for node in nodes},
            {node: model.table(node) for node in nodes},
        )
    elif isinstance(model, NaiveBayesMixture):
        kept = model.components.restricted([name for name in model.feature_names if name in wanted])
        part = NaiveBayesMixture(kept, model.class_of, class_variable=model.class_variable)
    else:
        part = model.restricted([name for name in model.feature_names if name in wanted])
    return {"kind": type(part).__name__, **part.to_dict()}


class ImpossibleRowWarning(UserWarning):
    """Rows have probability zero under the model: they have no posterior, and are classified as without features."""


# The formats that `load` reads, the current one first; older classifiers of the most probable class had their own.
_FORMATS = ("trimbench.BayesianClassifier/1", "trimbench.ArgMaxClassifier/1")
_MOST_PROBABLE = {"positive": None, "threshold": None}


@dataclass(frozen=True, eq=False, init=False)
class BayesianClassifier(ClassDistribution, Asking):
    """The classifier (C, F, T), positive iff Pr(c | f) >= T; or the one that predicts the most probable class.

    All probabilities are given the evidence, if there is any. Posteriors that equal the threshold up to rounding (a
    relative difference of the odds of at most 1e-12) reach it. Of several most probable classes, equal up to rounding,
    the first in the order of the model is predicted.

    Parameters
    ----------
    model : NaiveBayes, NaiveBayesMixture or BayesianNetwork
        A network in which the class is the only parent of every other node is treated as naive Bayes.
    target : str, optional
        The class variable, with two or more states. Default: that of a naive Bayes model or mixture.
    positive : str or collection of str, optional
        The state, or the states, whose probability is compared with the threshold; all other states together are the
        negative class. Numbers stand for their text. Default: the classifier predicts the most probable state.
    features : sequence of str, optional
        Default: all variables other than the target and the evidence.
    threshold : float in [0, 1], optional
        Lowest probability at which the positive class is predicted. Default: 0.5. Only for a positive class.
    evidence : mapping from variable to state, optional
        Observed states: every probability is conditional on them. They are neither target nor features.

    Attributes
    ----------
    class_names : tuple of str
        What `predict` returns, in the order of every array of probabilities: the positive and the negative class, or
        the states as the model orders them.
    positive, negative : str or None
        Names of two classes: a state, or several as in ``"b or c"``. None for the most probable class.
    positive_states, negative_states : tuple of str
        The states of each class; none for the most probable class.
    threshold : float or None
        None for the most probable class.

    Raises
    ------
    ValueError
        When a name is unknown or occurs twice, there are fewer than two classes, no state or every state is positive,
        the threshold is not in [0, 1], or the evidence is impossible (in a network, only when the classifier is used).
    TypeError
        When `model` is of another kind.

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.2, 0.3, 0.5], [[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]], class_names=["a", "b", "c"])
    >>> tb.BayesianClassifier(model).class_names
    ('a', 'b', 'c')
    >>> tb.BayesianClassifier(model, positive="a", threshold=0.3).class_names
    ('a', 'b or c')

    References
    ----------
    Choi and Van den Broeck (2018), section 2.
    """

    model: Model
    target: str
    positive_states: tuple[str, ...]
    negative_states: tuple[str, ...]
    features: tuple[str, ...]
    # `Any` for None, so that code with a positive class need not check it each time.
    threshold: float | Any
    evidence: Mapping[str, str]
    # None where the features depend on each other given the class.
    _components: Components | None = field(repr=False)

    def __init__(
        self,
        model: Model,
        target: str | None = None,
        *,
        positive: str | Collection[str] | None = None,
        features: Sequence[str] | None = None,
        threshold: float | None = None,
        evidence: Mapping[str, str] | None = None,
    ) -> None:
        understood, name = understood_model(model, target)
        states = class_states(understood, name)
        sides: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        if positive is not None:
            sides = split_states(states, name, positive)
        elif len(states) < 2:
            raise ValueError(f"target {name!r} must have at least two classes, got {list(states)}")
        elif threshold is not None:
            raise ValueError(
                f"threshold must be left out without a positive class, as the most probable class has none, got "
                f"{threshold!r}; or give positive, one of {names_text(states)}"
            )
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
            positive_states=sides[0],
            negative_states=sides[1],
            features=chosen,
            threshold=None if positive is None else checked_threshold(0.5 if threshold is None else threshold),
            evidence=observed,
            _components=components_of(understood, observed),
        )
        if positive is not None and self.positive == self.negative:
            raise ValueError(f"both classes would be called {self.positive!r}; rename a state of {name!r}")

    @property
    def positive(self) -> str | Any:
        """The name of the positive class, or None."""
        return " or ".join(self.positive_states) if self.positive_states else None

    @property
    def negative(self) -> str | Any:
        """The name of the other class, or None."""
        return " or ".join(self.negative_states) if self.negative_states else None

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in the order of every array of probabilities: the positive one first, if any."""
        return class_states(self.model, self.target) if self.threshold is None else (self.positive, self.negative)

    def with_features(self, features: Sequence[str], threshold: float | None = None) -> BayesianClassifier:
        """Return the classifier of the same distribution with other features, and another threshold if one is given."""
        return BayesianClassifier(
            self.model,
            self.target,
            positive=self.positive_states or None,
            features=features,
            threshold=self.threshold if threshold is None else threshold,
            evidence=self.evidence,
        )

    def with_threshold(self, threshold: float) -> BayesianClassifier:
        """Return the classifier of the same distribution and features with another threshold."""
        return self.with_features(self.features, threshold)

    def encode(self, frame: pd.DataFrame) -> IntegerArray:
        """Return the value indices of the features of each row, shape (n_rows, n_features).

        Raises
        ------
        ValueError
            When `frame` is not a DataFrame, a column is absent, or it holds NaN or an unknown value.
        """
        return encode_compactly(frame, dict(zip(self.features, self.value_names, strict=True)))

    @cached_property
    def rows(self) -> RowInference:
        """Inference on rows: log Pr(state, row) of each, up to a constant of the row."""
        if self._components is None:
            check_evidence_possible(self.model, self.target, self.evidence)
            return RowInference.of_network(as_network(self.model), self.target, self.features, self.evidence)
        return RowInference.of_naive_bayes(self._components.log_prior, self._component_tables)

    @cached_property
    def whole_rows(self) -> RowInference:
        """As `rows`, with the factors that all classes share: log Pr(C, f) up to one constant for all rows."""
        if self._components is not None:
            return self.rows
        network = as_network(self.model)
        return RowInference.of_network(network, self.target, self.features, self.evidence, whole=True)

    def weights(self, codes: IntegerArray) -> NDArray[np.float64]:
        """Return Pr(c, f) of each row of value indices, up to a factor of the row; shape (n_classes, n_rows)."""
        return self.weights_of(self.rows.log_joint(codes))

    def weights_of(self, logs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of the classes from the logarithms that `rows` gives, relative to the largest."""
        top = logs.max(axis=1, keepdims=True)
        scaled = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
        if self.threshold == 1:  # only what rules the other class out reaches it
            scaled = np.where(np.isfinite(logs), np.maximum(scaled, TRACE), 0.0)
        if self._are_states:
            return np.asarray(scaled.T)
        return np.stack([scaled[:, rows[0]] if len(rows) == 1 else scaled[:, rows].sum(axis=1) for rows in self._sides])

    def decided(self, joint: NDArray[np.float64]) -> NDArray[Any]:
        """Return the decision on instances with probabilities Pr(c, f), shape (n_classes, n_instances).

        Whether each is positive; without a positive class, the position of its class.
        """
        if self.threshold is None:
            return most_probable(joint)
        positive, negative = joint
        return is_positive(positive, negative, self.threshold)

    def decide(self, codes: IntegerArray) -> NDArray[Any]:
        """Return what `decided` does, for rows of value indices, shape (n_rows, n_features).

        An impossible row is decided like a row without features: 0 / 0 would make the decision depend on which class is
        called positive.
        """
        return self._decided_rows(self.weights(codes))

    def _decided_rows(self, weights: NDArray[np.float64]) -> NDArray[Any]:
        return np.where(weights.any(axis=0), self.decided(weights), self._without_features)

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
        logs = self.rows.log_joint(self.encode(frame))
        if self._are_states:
            return logs
        return np.stack([np.logaddexp.reduce(logs[:, rows], axis=1) for rows in self._sides], axis=1)

    def predict_proba(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return Pr(c | features) of each row, in the order of `class_names`; NaN where a row has probability zero.

        An impossible row also gives an `ImpossibleRowWarning`. Hidden variables are summed out without a large table.

        Parameters
        ----------
        frame : DataFrame with one column for each feature (others are ignored)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)

        Raises
        ------
        ContractionTooLarge
            When the hidden variables of a network depend on each other too much; a ValueError.
        """
        return self.predict_proba_of(self.encode(frame))

    def predict_proba_of(self, codes: IntegerArray) -> NDArray[np.float64]:
        """Return what `predict_proba` does, for rows of value indices, shape (n_rows, n_features)."""
        weights = self.weights(codes)
        _warn_of_impossible(weights)
        with np.errstate(invalid="ignore"):
            return np.asarray((weights / weights.sum(axis=0)).T)

    def posterior(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return Pr(positive | features) of each row, the first column of `predict_proba`; shape (n_rows,).

        Raises
        ------
        ValueError
            When the classifier has no positive class.
        """
        checked_classifier(self)
        return self.predict_proba(frame)[:, 0]

    def predict(self, frame: pd.DataFrame) -> NDArray[np.str_]:
        """Return the name of the class of each row.

        A row of probability zero gets the class of a row without features (in a tie with the threshold, that of the
        model's first state), with an `ImpossibleRowWarning`.

        Parameters
        ----------
        frame : DataFrame with one column for each feature (others are ignored)

        Returns
        -------
        ndarray of str, shape (n_rows,)
        """
        return self.predict_of(self.encode(frame))

    def predict_of(self, codes: IntegerArray) -> NDArray[np.str_]:
        """Return what `predict` does, for rows of value indices, shape (n_rows, n_features)."""
        weights = self.weights(codes)
        _warn_of_impossible(weights)
        decided: NDArray[Any] = self._decided_rows(weights)
        names: NDArray[np.str_] = np.array(self.class_names)
        return np.asarray(names[decided if self.threshold is None else np.where(decided, 0, 1)])

    def _asker(self) -> BayesianAsker:
        return self._kept_asker

    @cached_property
    def _kept_asker(self) -> BayesianAsker:
        model: CodedModel
        if self._components is None:
            check_evidence_possible(self.model, self.target, self.evidence)
            network = as_network(self.model)
            model = NetworkModel(network, self.target, self.features, self.evidence, self._sides)
        else:
            model = ComponentModel(self._components.log_prior, self._component_tables, self._sides)
        return BayesianAsker(self.features, self.value_names, self.class_names, self._decided_places, model)

    def _decided_places(self, joint: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the positions of the classes that are decided on, for probabilities of shape (n_classes, n_rows)."""
        decided = self.decided(joint)
        return np.asarray(decided if self.threshold is None else np.where(decided, 0, 1), dtype=np.intp)

    @cached_property
    def _without_features(self) -> bool | int:
        """The decision without any feature."""
        if self.threshold is None:
            return int(most_probable(self.prior))
        level = self.threshold * self.prior.sum()
        # In a tie, the same class whichever is called positive.
        if np.isclose(self.prior[0], level, rtol=TIE_TOLERANCE, atol=0.0):
            return class_states(self.model, self.target)[0] in self.positive_states
        return bool(self.prior[0] > level)

    def to_dict(self) -> dict[str, Any]:
        """Return the classifier as nested lists, numbers and strings, with only the part of its model that it needs."""
        return {
            "target": self.target,
            "features": list(self.features),
            "evidence": dict(self.evidence),
            "positive": list(self.positive_states) or None,
            "threshold": self.threshold,
            "model": model_to_dict(self.model, self.target, [*self.features, *self.evidence]),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> BayesianClassifier:
        """Return the classifier that `to_dict` described."""
        if "ArgMaxClassifier" in f"{content.get('format')} {content.get('kind')}":
            content = {**content, **_MOST_PROBABLE}
        own = {argument: content[argument] for argument in ("features", "evidence", "positive", "threshold")}
        kind = content["model"]["kind"]
        check_one_of("kind of model", kind, tuple(_READERS))
        return cls(_READERS[kind](content["model"]), content["target"], **own)

    def save(self, path: str | Path) -> None:
        """Write the classifier as JSON, with every digit, and with only the part of its model that it needs.

        Raises
        ------
        OSError
            When the file cannot be written; an older one is then untouched.
        """
        write_json(path, {"format": _FORMATS[0], **self.to_dict()})

    @classmethod
    def load(cls, path: str | Path) -> BayesianClassifier:
        """Read a classifier that `save` wrote; ValueError, with the name of the file, when it does not hold one."""
        return read_json(path, _FORMATS, cls.from_dict)


def _warn_of_impossible(weights: NDArray[np.float64]) -> None:
    impossible = weights.max(axis=0) == 0
    if impossible.any():
        warnings.warn(
            f"{int(impossible.sum())} of {len(impossible)} rows are impossible under the model, such as row "
            f"{int(np.argmax(impossible))}: they have no probabilities, and the class of a row "
            "without features; learn the model with smoothing, or leave them out",
            ImpossibleRowWarning,
            stacklevel=3,
        )


def checked_classifier(classifier: object, *, any_rule: bool = False) -> BayesianClassifier:
    """Return `classifier`, which must have a positive class unless any rule will do.

    Raises
    ------
    TypeError
        When it is something else; the message says how to make a classifier of it.
    ValueError
        When it has no positive class, but must have one.
    """
    if isinstance(classifier, BayesianClassifier):
        if classifier.threshold is None and not any_rule:
            raise ValueError(
                "classifier must have a positive class, whose probability has a threshold, got one that gives the most "
                f"probable class; make it with positive=..., one of {names_text(classifier.class_names)}"
            )
        return classifier
    kind = type(classifier).__name__
    how = "BayesianClassifier(model, positive=...)"
    if kind in ("BernoulliNB", "CategoricalNB"):
        how = "BayesianClassifier(NaiveBayes.from_sklearn(estimator, feature_names), positive=...)"
    elif isinstance(classifier, BayesianNetwork):
        how = "BayesianClassifier(network, target, positive=...)"
    elif hasattr(classifier, "fit"):
        how = "BayesianClassifier(learn(features, target), positive=...)"
    raise TypeError(f"classifier must be a BayesianClassifier, got {kind}; make one with {how}")
