"""What conformant models believe of rows, for asking: exact posteriors of their states, and draws of completed rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._typing import Matrix, Vector
from trimbench.acquisition.beliefs import (
    N_DRAWS,
    Beliefs,
    DrawnAnswers,
    DrawnBeliefs,
    Objective,
    StateBeliefs,
    StateModel,
    chosen_states,
    drawn_codes,
    share_of_decision,
    spread_numbers,
)
from trimbench.acquisition.questions import parts_of
from trimbench.conformant.distribution import ConformantDistribution
from trimbench.conformant.evidence import ObservedRows, nearest_values
from trimbench.conformant.layout import as_table
from trimbench.conformant.normal_gaps import HiddenNormals, same_decision_of_normals, state_posteriors

# Bins of a real-valued feature, equally likely under the model; the information of an answer is that of its bin.
_BINS = 32
_GRID, _REACH = 4096, 8.5
# Numbers that beliefs of the rows of a batch may take.
_MOST_NUMBERS = 2**22


@dataclass(frozen=True, eq=False)
class ConformantAsker:
    """What policies of asking need of a conformant model; see `trimbench.acquisition.questions.Askable`."""

    model: ConformantDistribution

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each feature."""
        return tuple(str(label) for label in self.labels)

    @cached_property
    def labels(self) -> tuple[Any, ...]:
        """The name of each feature, or its position in the layout."""
        return self.model.feature_names or tuple(range(self.model.layout.n_features))

    def table(self, rows: ArrayLike) -> NDArray[np.float64]:
        """Return rows as numbers."""
        table = as_table(rows, self.model.layout.n_columns, columns=self.model.column_names)
        return np.asarray(table, dtype=np.float64)

    def columns(self, feature: int) -> Sequence[int]:
        """Return the positions of the columns of a feature."""
        return self.model.layout.features[feature]

    def named(self, costs: Any, groups: Any) -> tuple[Any, Any]:
        """Return costs and groups, in which positions stand for themselves where features have no names."""
        if self.model.feature_names is None and hasattr(groups, "items"):
            groups = {name: [str(member) for member in members] for name, members in groups.items()}
        return costs, groups

    def rows_at_once(self, objective: Objective) -> int:
        """Return for how many rows beliefs fit into memory."""
        n_features, n_states = self.model.layout.n_features, self.model.n_components * len(self.model.classes)
        is_exact = objective == "information" and self.model.normals is None
        width = n_features + n_states if is_exact else N_DRAWS * n_features
        return max(_MOST_NUMBERS // width, 1)

    def known(self, table: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which features are known, shape (n_rows, n_features)."""
        return np.asarray(~np.isnan(table[:, self.model.layout.first_columns]))

    def beliefs(self, table: NDArray[np.float64], objective: Objective) -> Beliefs:
        """Return what is believed of the rows: exact for information, unless there is a covariance."""
        if objective == "information" and self.model.normals is None:
            return StateBeliefs(self.states, self.posteriors(table))
        categorical = np.ones(self.model.layout.n_features, dtype=bool)
        numbers = [place for place in self._joint if self.model.layout.features[place] not in self._groups]
        categorical[[*self._real, *numbers]] = False
        return DrawnBeliefs.of(self.answers(table), categorical, objective)

    def stability(self, table: NDArray[np.float64]) -> Vector:
        """Return the share of completions that are classified as the row is."""
        if self.model.normals is not None:
            winners = self.model.decision_scores(table).argmax(axis=1)
            return np.asarray(same_decision_of_normals(self.model, table, winners).mean(axis=1))
        result = np.ones(len(table))
        gaps = np.flatnonzero(np.isnan(table).any(axis=1))
        for rows in parts_of(gaps, self.rows_at_once("stability")):
            wanted = self.model.decision_scores(table[rows]).argmax(axis=1)
            result[rows] = share_of_decision(self.answers(table[rows]).decisions, wanted)
        return result

    def predict(self, table: NDArray[np.float64]) -> NDArray[Any]:
        """Return the predicted label of each row."""
        return self.model.predict(table)

    def predict_proba(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each class of each row."""
        return self.model.predict_proba(table)

    @cached_property
    def states(self) -> StateModel:
        """The pairs of a component and a class, with the probabilities of all values, of real-valued ones in bins."""
        parts, layout = self.model.components, self.model.layout
        ones = np.exp(np.hstack([part.log_probabilities for part in parts]))
        zeros = np.exp(np.hstack([part.log_complements for part in parts]))
        groups, real = set(layout.categorical), dict(zip(self._real, range(len(self._real)), strict=True))
        tables = []
        for feature, columns in enumerate(layout.features):
            if columns in groups:
                tables.append(ones[list(columns)])
            elif feature in real:
                means, deviations = self._moments
                tables.append(_bins(means[real[feature]], deviations[real[feature]], self._shares))
            else:
                tables.append(np.stack([zeros[columns[0]], ones[columns[0]]]))
        n_classes = len(self.model.classes)
        return StateModel(tables, np.tile(np.arange(n_classes), len(parts)), n_classes)

    @cached_property
    def _real(self) -> list[int]:
        """Positions of the real-valued features."""
        owner = self.model.layout.feature_of_column
        return [int(owner[column]) for column in self.model.layout.real_columns]

    @cached_property
    def _groups(self) -> set[tuple[int, ...]]:
        """Columns of the categorical features."""
        return set(self.model.layout.categorical)

    @property
    def _joint(self) -> tuple[int, ...]:
        """Position of the feature of each number that is jointly normal."""
        return self.model.evidence.coding.joint

    @cached_property
    def _moments(self) -> tuple[Matrix, Matrix]:
        """Mean and standard deviation of each real-valued feature in each state, shape (n_real, n_states)."""
        moments = [part.real_moments for part in self.model.components]
        means = np.hstack([mean for mean, _ in moments])
        variances = np.hstack(
            [np.repeat(variance[:, None], len(self.model.classes), axis=1) for _, variance in moments]
        )
        return means, np.sqrt(variances)

    @cached_property
    def _shares(self) -> Vector:
        """P(state), shape (n_states,)."""
        weighted = zip(self.model.log_weights, self.model.components, strict=True)
        return np.asarray(np.exp(np.concatenate([log + part.log_prior for log, part in weighted])))

    def posteriors(self, table: NDArray[np.float64]) -> Matrix:
        """Return P(state | what is known) of each row, shape (n_rows, n_states), from the values themselves."""
        model = self.model
        result = np.empty((len(table), model.n_components * len(model.classes)))
        for block in model.evidence.blocks(table, result.shape[1]):
            observed = ObservedRows.of(model.evidence, block, model.weights, model.biases)
            result[block.rows] = state_posteriors(model, observed)
        return result

    def answers(self, table: NDArray[np.float64]) -> DrawnAnswers:
        """Return completions of rows, drawn from the model, and the classifier's answers to them."""
        from scipy.special import ndtri, softmax

        layout, model = self.model.layout, self.model
        numbers = spread_numbers(1 + layout.n_features + len(self._joint))
        states = chosen_states(self.posteriors(table), numbers[:, 0])
        known = self.known(table)
        coded = np.empty((*states.shape, layout.n_features))
        scores = np.tile(model.biases, (*states.shape, 1))
        normals = self._drawn_normals(table, states, numbers[:, 1 + layout.n_features :])
        for feature, columns in enumerate(layout.features):
            of_draws = numbers[:, feature + 1]
            if feature in self._joint and columns in self._groups:
                values = nearest_values(layout, model.evidence.coding, feature, normals).astype(np.float64)
                given = table[:, list(columns)].argmax(axis=1)
            elif feature in self._joint:
                values, given = normals[:, :, self._joint.index(feature)], table[:, columns[0]]  # type: ignore[assignment, unused-ignore]
            elif feature in self._real:
                means, deviations = (moment[self._real.index(feature)] for moment in self._moments)
                values = means[states] + deviations[states] * ndtri(of_draws)
                given = table[:, columns[0]]  # type: ignore[assignment, unused-ignore]
            else:
                values = drawn_codes(self.states.tables[feature], states, of_draws).astype(np.float64)
                given = table[:, columns[0]] if len(columns) == 1 else table[:, list(columns)].argmax(axis=1)  # type: ignore[assignment, unused-ignore]
            values = np.where(known[:, [feature]], given[:, None], values)
            coded[:, :, feature] = values
            if columns in self._groups:
                of_values = model.weights[list(columns)][values.astype(np.intp)]
                if feature in self._joint:  # a missing one counts with its numbers, as in predictions
                    of_values = np.where(known[:, [feature], None], of_values, self._of_numbers(feature, normals))
                scores += of_values
            else:
                scores += values[:, :, None] * model.weights[columns[0]]
        return DrawnAnswers(coded, softmax(scores, axis=2), scores.argmax(axis=2))

    def _of_numbers(self, feature: int, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what the numbers of a categorical feature add to the scores, shape (n_rows, n_draws, n_classes)."""
        coding = self.model.evidence.coding
        own = np.flatnonzero(np.array(coding.joint) == feature)
        assert coding.joint_weights is not None
        scaled = (numbers[:, :, own] - coding.means[own]) / coding.scales[own]
        return np.asarray(coding.offsets[feature] + scaled @ coding.joint_weights[own])

    def _drawn_normals(
        self, table: NDArray[np.float64], states: NDArray[np.intp], numbers: Matrix
    ) -> NDArray[np.float64]:
        """Return draws of the features that are jointly normal, shape (n_rows, n_draws, n_joint)."""
        from scipy.special import ndtri

        result = np.empty((*states.shape, len(self._joint)))
        if self._joint:
            normals = ndtri(numbers)
            for hidden in HiddenNormals.blocks(self.model, table):
                result[hidden.rows] = hidden.draws(states[hidden.rows], normals)
        return result


def _bins(means: Vector, deviations: Vector, shares: Vector) -> Matrix:
    """Return P(bin | state) for bins that are equally likely in all, shape (n_bins, n_states)."""
    from scipy.special import ndtr

    if not deviations.any():
        return np.ones((1, len(means)))
    low, high = (means - _REACH * deviations).min(), (means + _REACH * deviations).max()
    grid = np.linspace(low, high, _GRID)
    spread = np.maximum(deviations, 1e-300)
    below = ndtr((grid[:, None] - means) / spread) @ (shares / shares.sum())
    edges = np.interp(np.arange(1, _BINS) / _BINS, below, grid)
    ends = np.vstack([np.zeros(len(means)), ndtr((edges[:, None] - means) / spread), np.ones(len(means))])
    return np.asarray(np.diff(ends, axis=0))
