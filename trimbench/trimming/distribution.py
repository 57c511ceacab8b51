"""The joint distribution of a class and some features of a model, given evidence: tables, and rows drawn from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import IntegerArray
from trimbench.networks.inference.joint import joint_distribution
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.sampling import RowSampler
from trimbench.trimming.decisions import Components, Model, as_network, class_states, feature_indices


class ClassDistribution:
    """Pr(C, features | evidence), where C is positive or not, or one of the states of the target.

    Attributes
    ----------
    model : NaiveBayes, NaiveBayesMixture or BayesianNetwork
    target : str
        The class variable.
    positive_states, negative_states : tuple of str
        The states of each class; none if the classes are the states.
    features : tuple of str
    threshold : float or None
        None if the classes are the states.
    evidence : mapping from variable to state
    """

    model: Model
    target: str
    positive_states: tuple[str, ...]
    negative_states: tuple[str, ...]
    features: tuple[str, ...]
    threshold: float | None
    evidence: Mapping[str, str]
    # None where the features depend on each other given the class.
    _components: Components | None

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes."""
        raise NotImplementedError

    @property
    def n_classes(self) -> int:
        """Number of classes: two if there is a positive class."""
        return len(self.class_names)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.features)

    @property
    def is_naive_bayes(self) -> bool:
        """Whether the features are independent given each of the classes."""
        return self._components is not None and len(self._components.states) == self.n_classes

    @cached_property
    def value_names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the values of each feature, in the order of the model."""
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
    def _sides(self) -> list[list[int]]:
        """The rows of each class in tables over the states, or the components, of the target."""
        parts = self._components
        states = class_states(self.model, self.target) if parts is None else parts.states
        if self.threshold is None:
            return [[i for i, state in enumerate(states) if state == name] for name in self.class_names]
        sides = (self.positive_states, self.negative_states)
        return [[i for i, state in enumerate(states) if state in side] for side in sides]

    @cached_property
    def _are_states(self) -> bool:
        """Whether classes are the states, or the components, of the target one by one."""
        return self._sides == [[i] for i in range(self.n_classes)]

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """Probability of each class, given the evidence; shape (n_classes,).

        In naive Bayes and mixtures it is at least 1e-300 where a class is possible; `log_prior` is exact there.
        """
        if self._components is None:
            states = joint_distribution(as_network(self.model), [self.target], evidence=self.evidence)
        else:
            states = self._components.prior
        return np.array([states[rows].sum() for rows in self._sides])

    @cached_property
    def log_prior(self) -> NDArray[np.float64]:
        """Logarithm of the probability of each class, given the evidence; shape (n_classes,)."""
        if self._components is None:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(self.prior))
        return np.array([np.logaddexp.reduce(self._components.log_prior[rows]) for rows in self._sides])

    @cached_property
    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """Pr(value | class) of each feature, shape (n_classes, cardinality); naive Bayes only.

        Raises
        ------
        ValueError
            When the features are not independent given the class.
        """
        what = "the model must be naive Bayes"
        way = "use joint" if self.threshold is None else "use engine 'auto', 'dense' or 'sdd'"
        if self._components is None:
            raise ValueError(f"{what} for the log-odds engine, got {self.model!r}; {way}")
        if not self.is_naive_bayes:
            raise ValueError(
                f"{what} with one component for each class for the log-odds engine, got "
                f"{len(self._components.states)} components; {way}"
            )
        rows = [row for side in self._sides for row in side]
        return tuple(table[rows] for table in self._component_tables)

    @cached_property
    def _component_tables(self) -> tuple[NDArray[np.float64], ...]:
        """Pr(value | component) of each feature; empty without components."""
        parts = self._components
        if parts is None:
            return ()
        return tuple(parts.likelihoods[place] for place in feature_indices(parts.feature_names, self.features))

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
        if self._components is not None:
            tables = [self._component_tables[i] for i in features]
            found = np.empty((self.n_classes, math.prod(table.shape[1] for table in tables)))
            for rows, out in zip(self._sides, found, strict=True):
                self._components.joint(rows, tables, out)
            return found
        if len(features) < self.n_features and "_network_table" not in vars(self):
            return self._contracted(features).reshape(self.n_classes, -1)
        removed = tuple(1 + i for i in range(self.n_features) if i not in set(features))
        # The remaining axes are in the order of the classifier.
        order = np.argsort(np.argsort(features))
        table = self._network_table.sum(axis=removed).transpose(0, *(1 + order))
        return np.asarray(table).reshape(self.n_classes, -1)

    @cached_property
    def _network_table(self) -> NDArray[np.float64]:
        """Pr(c, f) of a general network, shape (n_classes, *cardinalities)."""
        return self._contracted(range(self.n_features))

    def _contracted(self, features: Sequence[int], **limits: int) -> NDArray[np.float64]:
        names = [self.target, *(self.features[i] for i in features)]
        table = joint_distribution(as_network(self.model), names, evidence=self.evidence, **limits)
        if self._are_states:
            return np.asarray(table)
        return np.stack([table[rows[0]] if len(rows) == 1 else table[rows].sum(axis=0) for rows in self._sides])

    def prepare_table(self, *, max_operations: int, n_threads: int = 1) -> None:
        """Contract a general network for `joint`, in several threads.

        Raises
        ------
        ContractionTooLarge
            When that takes more than `max_operations` multiplications; a ValueError.
        """
        if self._components is None and "_network_table" not in vars(self):
            table = self._contracted(range(self.n_features), max_operations=max_operations, n_threads=n_threads)
            vars(self)["_network_table"] = table

    def draw(self, n_rows: int, rng: np.random.Generator, places: Sequence[int] | None = None) -> IntegerArray:
        """Return value indices of the features of rows drawn given the evidence, shape (n_rows, n_features).

        With `places`, those of the features at these positions alone.

        Raises
        ------
        ContractionTooLarge
            When the evidence makes too many variables of a network depend on each other; a ValueError.
        """
        return self._sampler.draw(n_rows, rng, places)

    def skip(self, n_rows: int, rng: np.random.Generator) -> None:
        """Leave a generator as `draw` does, without the rows where these take one number for each variable."""
        if self._components is not None and isinstance(rng.bit_generator, np.random.PCG64):
            rng.bit_generator.advance(n_rows * (1 + self.n_features))
        else:
            self.draw(n_rows, rng)

    def draw_by_class(self, n_rows: int, rng: np.random.Generator) -> IntegerArray:
        """Return what `draw` does, but with the expected number of rows of each class, to within one row."""
        ends = np.cumsum(self.prior)
        ends *= n_rows / ends[-1]
        counts = np.diff(np.floor(ends + rng.random()), prepend=0.0).astype(np.int64)
        drawn = zip(self.class_names, counts.tolist(), strict=True)
        return np.concatenate([self._sampler_given(name).draw(count, rng) for name, count in drawn if count])

    @cached_property
    def _sampler(self) -> RowSampler:
        return self._sampler_given()

    def _sampler_given(self, state: str | None = None) -> RowSampler:
        """Return a sampler of rows given the evidence and, if one is named, the state of the target."""
        given = {} if state is None else {self.target: state}
        if self._components is None:
            return RowSampler.of(as_network(self.model), self.features, {**self.evidence, **given})
        prior, tables = self._components.prior, self._component_tables
        if state is not None:
            prior = np.where([name == state for name in self._components.states], prior, 0.0)
            prior = prior / prior.sum()
        parts = NaiveBayes(prior, tables, feature_names=self.features, class_variable=self.target)
        return RowSampler.of(parts.to_network(), self.features)
