"""Bayesian classifiers of one class or of the most probable class, and their files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import IntegerArray
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.formats.parsing import read_json, write_json
from trimbench.networks.inference.joint import joint_distribution
from trimbench.networks.inference.rows import RowInference, relevant_nodes
from trimbench.networks.mixture import NaiveBayesMixture
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.sampling import RowSampler
from trimbench.networks.values import encode_compactly
from trimbench.trimming.model import (
    Components,
    Model,
    as_names,
    as_network,
    check_possible,
    checked_evidence,
    class_states,
    components_of,
    conditional_table,
    default_features,
    split_states,
    understood_model,
)
from trimbench.trimming.model import checked_threshold as checked_threshold
from trimbench.trimming.model import feature_indices as feature_indices
from trimbench.trimming.thresholds import TIE_TOLERANCE, is_positive

if TYPE_CHECKING:
    import pandas as pd


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Model]] = {
    "NaiveBayes": NaiveBayes.from_dict,
    "NaiveBayesMixture": NaiveBayesMixture.from_dict,
    "BayesianNetwork": BayesianNetwork.from_dict,
}


def model_to_dict(model: Model, target: str, names: Iterable[str]) -> dict[str, Any]:
    """Return what gives the joint distribution of the class and some variables as lists, numbers and strings.

    Parameters
    ----------
    model : NaiveBayes, NaiveBayesMixture or BayesianNetwork
    target : str
        The class.
    names : iterable of str
        Features and evidence. Other features of a naive Bayes model or a mixture are left out, and so are nodes of a
        network that are not ancestors of these variables.
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


def model_from_dict(content: Mapping[str, Any]) -> Model:
    """Return the model that `model_to_dict` described.

    Raises ValueError, KeyError or TypeError if there is no such model.
    """
    kind = content["kind"]
    if kind not in _READERS:
        raise ValueError(f"kind of model must be one of {', '.join(_READERS)}, got {str(kind)[:80]!r}")
    return _READERS[kind](content)


class SavedClassifier:
    """What classifiers have in common that can be written to a file and read again."""

    # Name and version of the file format; the arguments that a class has besides the common ones, and where they are.
    _format: ClassVar[str]
    _saved: ClassVar[Mapping[str, str]] = {}

    model: Model
    target: str
    features: tuple[str, ...]
    evidence: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the classifier as nested lists, numbers and strings, without what it does not need of its model."""
        own = {argument: getattr(self, name) for argument, name in self._saved.items()}
        return {
            "target": self.target,
            "features": list(self.features),
            "evidence": dict(self.evidence),
            **{argument: list(value) if isinstance(value, tuple) else value for argument, value in own.items()},
            "model": model_to_dict(self.model, self.target, [*self.features, *self.evidence]),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return the classifier that `to_dict` described."""
        own = {argument: content[argument] for argument in ("features", "evidence", *cls._saved)}
        return cast("Self", cast("Any", cls)(model_from_dict(content["model"]), content["target"], **own))

    def save(self, path: str | Path) -> None:
        """Write the classifier as JSON, with every digit, and without what it does not need of its model.

        Raises
        ------
        OSError
            When the file cannot be written; an older one is then untouched.
        """
        write_json(path, {"format": self._format, **self.to_dict()})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a classifier that `save` wrote; ValueError, with the name of the file, when it does not hold one."""
        return read_json(path, cls._format, cls.from_dict)


# What a classifier takes from its model, whatever it decides: values of features, and probabilities of rows.


class ImpossibleRowWarning(UserWarning):
    """Rows have probability zero under the model: they have no posterior, and the class of a row without features."""


def _warn_of_impossible(impossible: NDArray[np.bool_]) -> None:
    if impossible.any():
        warnings.warn(
            f"{int(impossible.sum())} of {len(impossible)} rows are impossible under the model, such as row "
            f"{int(np.argmax(impossible))}: they have no probabilities, and the class of a row "
            "without features; learn the model with smoothing, or leave them out",
            ImpossibleRowWarning,
            stacklevel=3,
        )


class ModelClassifier(SavedClassifier):
    """A classifier with a model, a target, features and evidence."""

    # None where the features depend on each other given the class.
    _components: Components | None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.features)

    @cached_property
    def value_names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the values of each feature."""
        if self._components is None:
            network = as_network(self.model)
            return tuple(network.states(name) for name in self.features)
        parts = self._components
        return tuple(parts.value_names[place] for place in feature_indices(parts.feature_names, self.features))

    @cached_property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        return tuple(len(values) for values in self.value_names)

    @cached_property
    def _component_tables(self) -> tuple[NDArray[np.float64], ...]:
        """Pr(value | component) of each feature; none where there are no components."""
        parts = self._components
        if parts is None:
            return ()
        return tuple(parts.likelihoods[place] for place in feature_indices(parts.feature_names, self.features))

    def encode(self, frame: pd.DataFrame) -> IntegerArray:
        """Return the value indices of the features of each row, shape (n_rows, n_features).

        Raises
        ------
        ValueError
            When `frame` is no DataFrame, a column is absent, or it holds NaN or an unknown value.
        """
        return encode_compactly(frame, dict(zip(self.features, self.value_names, strict=True)))

    @cached_property
    def rows(self) -> RowInference:
        """What gives the probabilities of rows."""
        if self._components is None:
            check_possible(self.model, self.target, self.evidence)
            return RowInference.of_network(as_network(self.model), self.target, self.features, self.evidence)
        return RowInference.of_naive_bayes(self._components.prior, self._component_tables)

    @cached_property
    def whole_rows(self) -> RowInference:
        """As `rows`, with the factors that all classes share: it gives log Pr(C, f, e) itself."""
        if self._components is not None:
            return self.rows
        network = as_network(self.model)
        return RowInference.of_network(network, self.target, self.features, self.evidence, whole=True)

    def draw(self, n_rows: int, rng: np.random.Generator) -> IntegerArray:
        """Return value indices of the features of rows drawn given the evidence, shape (n_rows, n_features).

        Raises
        ------
        ContractionTooLarge
            When the evidence makes too many variables of a network depend on each other; a ValueError.
        """
        return self._sampler.draw(n_rows, rng)

    @cached_property
    def _sampler(self) -> RowSampler:
        return self._sampler_given()

    def _sampler_given(self, state: str | None = None) -> RowSampler:
        """Return what draws rows given the evidence and, if it is named, the state of the target."""
        given = {} if state is None else {self.target: state}
        if self._components is None:
            return RowSampler.of(as_network(self.model), self.features, {**self.evidence, **given})
        prior, tables = self._components.prior, self._component_tables
        if state is not None:
            prior = np.where([name == state for name in self._components.states], prior, 0.0)
            prior = prior / prior.sum()
        parts = NaiveBayes(prior, tables, feature_names=self.features, class_variable=self.target)
        return RowSampler.of(parts.to_network(), self.features)


# Bayesian classifiers: a distribution, a class, its positive states, features, evidence and a threshold.


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
        _warn_of_impossible(positive + negative == 0)
        with np.errstate(invalid="ignore"):
            return np.asarray(positive / (positive + negative))

    def predict(self, frame: pd.DataFrame) -> NDArray[np.str_]:
        """Return the name of the class, `positive` or `negative`, of each row.

        A row of probability zero has the class of a row without features, with an `ImpossibleRowWarning`.

        Parameters
        ----------
        frame : DataFrame with one column for each feature

        Returns
        -------
        ndarray of str, shape (n_rows,)
        """
        names = np.array([self.positive, self.negative])
        positive, negative = self.weights(self.encode(frame))
        impossible = positive + negative == 0
        _warn_of_impossible(impossible)
        level = self.threshold * self.prior.sum()
        # Where both are equally likely, the same class whichever is called positive.
        is_tied = np.isclose(self.prior[0], level, rtol=TIE_TOLERANCE, atol=0.0)
        first = class_states(self.model, self.target)[0] in self.positive_states
        fallback = first if is_tied else self.prior[0] > level
        return names[np.where(np.where(impossible, fallback, is_positive(positive, negative, self.threshold)), 0, 1)]

    def decide(self, codes: IntegerArray) -> NDArray[np.bool_]:
        """Return whether each row of value indices, shape (n_rows, n_features), is positive; impossible rows are."""
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


# Classifiers of two or more classes that give the most probable one.


@dataclass(frozen=True, eq=False, init=False)
class ArgMaxClassifier(ModelClassifier):
    """The classifier that gives the class c with the highest Pr(c | f), or Pr(c | f, e) given evidence e.

    Of several most probable classes it gives the first in the order of the model. Probabilities that are equal up to
    rounding (a relative difference of at most 1e-12) count as equal.

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

    def draw_by_class(self, n_rows: int, rng: np.random.Generator) -> IntegerArray:
        """Return what `draw` does, but as many rows of each class as its probability says, up to one."""
        ends = np.cumsum(self.prior)
        ends *= n_rows / ends[-1]
        counts = np.diff(np.floor(ends + rng.random()), prepend=0.0).astype(np.int64)
        drawn = zip(self.class_names, counts.tolist(), strict=True)
        return np.concatenate([self._sampler_given(name).draw(count, rng) for name, count in drawn if count])

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
        _warn_of_impossible(logs.max(axis=1) == -np.inf)
        with np.errstate(invalid="ignore"):
            scaled = np.exp(logs - logs.max(axis=1, keepdims=True))
            return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))

    def predict(self, frame: pd.DataFrame) -> NDArray[np.str_]:
        """Return the name of the most probable class of each row; the first of equally probable ones.

        A row of probability zero has the most probable class without features, with an `ImpossibleRowWarning`.
        """
        logs = self.log_joint(frame)
        impossible = logs.max(axis=1) == -np.inf
        _warn_of_impossible(impossible)
        decided = np.where(impossible, self.prior.argmax(), most_probable(logs.T, logarithms=True))
        return np.array(self.class_names)[decided]


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
