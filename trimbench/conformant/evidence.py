"""What rows say about the free parameters of conformant models that share a coding: sufficient statistics."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.layout import Block, FeatureLayout
from trimbench.conformant.reduced_problem import Coding, Matrix, Vector


@dataclass(frozen=True, eq=False)
class Evidence:
    """The sufficient statistics of rows for one coding of the columns.

    ``log P(observed features) = logsumexp of the scores of the classes + t . statistics - A(t) + base`` for every model
    with parameters t.
    """

    layout: FeatureLayout
    coding: Coding
    _real: list[int] = field(init=False)
    _always: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        known = {*self.coding.free.tolist(), *self.coding.unseen.tolist()}
        always = [column for column in self.layout.binary.tolist() if column not in known]
        object.__setattr__(self, "_real", [self.layout.features[place][0] for place in self.coding.real])
        object.__setattr__(self, "_always", np.array(always, dtype=np.intp))

    @property
    def features(self) -> NDArray[np.intp]:
        """Position in the layout of each feature with parameters, in their order."""
        return np.array([*self.coding.discrete, *self.coding.real], dtype=np.intp)

    def statistics(self, block: Block) -> Matrix:
        """Return the statistic of each parameter, shape (n_rows, n_parameters); 0 where the feature is missing."""
        coding = self.coding
        n_free = len(coding.free)
        whole = n_free == self.layout.n_columns  # all columns, in order
        discrete = block.values if whole else block.values[:, coding.free]
        if not self._real:
            return discrete
        values = (block.values[:, self._real] - coding.means) / coding.scales
        values[block.absent[:, list(coding.real)]] = 0.0
        pairs = np.stack([values, values**2], axis=2).reshape(len(values), -1)
        return np.concatenate([discrete, pairs], axis=1)

    def base(self, block: Block) -> Vector:
        """Return the part of the log-density without parameters: -inf for a value that has probability 0."""
        coding = self.coding
        total = np.zeros(len(block.values))
        if self._real:
            total -= (~block.absent[:, list(coding.real)]) @ np.log(coding.scales)
        never = (block.values[:, coding.unseen] > 0).any(axis=1)
        if len(self._always):
            owners = self.layout.feature_of_column[self._always]
            never |= ((block.values[:, self._always] == 0) & ~block.absent[:, owners]).any(axis=1)
        total[never] = -np.inf
        return total
