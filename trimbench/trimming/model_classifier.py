"""What a classifier takes from its model, whatever it decides: values of features, and probabilities of rows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.row_inference import RowInference
from trimbench.networks.sampling import RowSampler
from trimbench.networks.value_codes import IntegerArray, encode_compactly
from trimbench.trimming.model_input import Components, as_network, check_possible, feature_indices
from trimbench.trimming.saving import SavedClassifier

if TYPE_CHECKING:
    import pandas as pd


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
        if self._components is None:
            return RowSampler.of(as_network(self.model), self.features, self.evidence)
        prior, tables = self._components.prior, self._component_tables
        parts = NaiveBayes(prior, tables, feature_names=self.features, class_variable=self.target)
        return RowSampler.of(parts.to_network(), self.features)
