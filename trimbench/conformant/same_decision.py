"""The probability that a completed row is classified as before, for one set of shown features after the other."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.decision_problem import DecisionProblem
from trimbench.conformant.margin_tails import HIDDEN, SHOWN, UNDECIDED, MarginTails
from trimbench.conformant.reduced_problem import Matrix, Vector

# Points of the two grids: the fine one is used where the bounds of the coarse one do not settle a question.
_POINTS = (2**13, 2**16)
# Exponents of the bounds by exponential moments.
_SLOPES = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5])


class SameDecision:
    """Certified bounds on P(same decision | shown features), and a quick approximation.

    Parameters
    ----------
    problem : DecisionProblem
    order : ndarray of int, shape (n_features,)
        See `MarginTails`.
    """

    def __init__(self, problem: DecisionProblem, order: NDArray[np.intp]) -> None:
        self.problem = problem
        self.evaluations = 0
        self._order = order
        self._grids: dict[int, list[MarginTails]] = {}
        self._hidden_means = np.stack([feature.means for feature in problem.hidden])
        squares = [
            np.stack([feature.chances[:, k] @ feature.values**2 for k in range(problem.n_states)])
            for feature in problem.hidden
        ]
        self._hidden_variances = np.maximum(np.stack(squares) - self._hidden_means**2, 0.0)

    def posterior(self, shown: NDArray[np.intp] | list[int]) -> Vector:
        """Return P(state | shown features)."""
        logs = self.problem.log_prior + self.problem.evidence[shown].sum(axis=0)
        chances = np.exp(logs - logs.max())
        result: Vector = chances / chances.sum()
        return result

    def bounds(self, shown: Iterable[int], delta: float, *, precise: bool = False) -> tuple[float, float]:
        """Return lower and upper bounds on the probability, on the coarse grid if that tells whether delta is reached.

        If `precise`, on the fine grid in any case.

        Against several rivals the lower bound adds up the probabilities of losing against each of them, and the upper
        one takes the largest.
        """
        chosen = list(shown)
        modes = np.full(len(self.problem.hidden), HIDDEN)
        modes[chosen] = SHOWN
        weights = self.posterior(chosen)
        lower, upper = 0.0, 1.0
        for fine in (0, 1):
            self.evaluations += 1
            pairs = [tails.bounds(modes) for tails in self._grid(fine)]
            lower = max(lower, 1 - sum(float(weights @ (1 - low)) for low, _ in pairs))
            upper = min(upper, *(float(weights @ high) for _, high in pairs))
            if not precise and (lower >= delta or upper < delta):
                break
        return lower, upper

    def relaxed(self, shown: NDArray[np.intp], undecided: NDArray[np.intp], fine: int = 0) -> list[Vector]:
        """Return upper bounds on P(kept | state) against each rival, whichever undecided features are shown too."""
        self.evaluations += 1
        modes = np.full(len(self.problem.hidden), HIDDEN)
        modes[shown], modes[undecided] = SHOWN, UNDECIDED
        return [tails.bounds(modes)[1] for tails in self._grid(fine)]

    def exponential_bounds(self, shown: NDArray[np.intp], undecided: NDArray[np.intp], left: int) -> list[Vector]:
        """Return upper bounds on P(kept | state) against each rival if `left` more features at most are shown.

        P(margin >= 0) is at most the expectation of exp(s margin) for any s > 0, a product over the features, for which
        the best undecided features are those that raise it most.
        """
        hidden, raised = self._exponents
        chosen = self.problem.base[:, None] * _SLOPES + np.zeros((self.problem.n_states, 1, 1))
        total = chosen + hidden.sum(axis=0) + raised[shown].sum(axis=0)
        if left and undecided.size:
            gains = np.maximum(raised[undecided], 0.0)
            kept = min(left, len(gains))
            total = total + np.partition(gains, len(gains) - kept, axis=0)[len(gains) - kept :].sum(axis=0)
        best = np.exp(np.minimum(total.min(axis=2), 0.0)) * (1 + 1e-9)
        return list(np.minimum(best, 1.0).T)

    @cached_property
    def _exponents(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The log-expectation of exp(s x) while hidden, and what showing adds, (n_features, n_states, n_rivals, n)."""
        problem = self.problem
        hidden = np.empty((len(problem.hidden), problem.n_states, len(problem.rivals), len(_SLOPES)))
        for place, feature in enumerate(problem.hidden):
            if feature.is_real:
                hidden[place] = feature.means[:, :, None] * _SLOPES + feature.variances[:, :, None] * _SLOPES**2 / 2
                continue
            scaled = feature.values[:, :, None] * _SLOPES
            top = scaled.max(axis=0)
            hidden[place] = np.log(np.einsum("vk,vjs->kjs", feature.chances, np.exp(scaled - top))) + top
        return hidden, problem.shown[:, None, :, None] * _SLOPES - hidden

    def approximate(self, base: Iterable[int], removed: NDArray[np.intp], added: NDArray[np.intp]) -> Matrix:
        """Return about the probability of a set with one feature exchanged, shape (n_removed, n_added).

        Margins are taken as normal in each class. A feature of -1 stands for none.
        """
        from scipy.special import ndtr

        problem, chosen = self.problem, list(base)
        hidden = np.ones(len(problem.hidden), dtype=bool)
        hidden[chosen] = False
        mean = problem.base + problem.shown[chosen].sum(axis=0) + self._hidden_means[hidden].sum(axis=0)
        variance = self._hidden_variances[hidden].sum(axis=0)
        logs = problem.log_prior + problem.evidence[chosen].sum(axis=0)

        def moved(features: NDArray[np.intp]) -> tuple[Matrix, Matrix, Matrix]:
            some = (features >= 0)[:, None]
            means = np.where(some[..., None], problem.shown[features][:, None] - self._hidden_means[features], 0.0)
            variances = np.where(some[..., None], self._hidden_variances[features], 0.0)
            return means, variances, np.where(some, problem.evidence[features], 0.0)

        (m0, v0, e0), (m1, v1, e1) = moved(removed), moved(added)
        result = np.empty((len(removed), len(added)))
        for r in range(len(removed)):
            means = mean + m1 - m0[r]
            variances = np.maximum(variance - v1 + v0[r], 1e-12)
            posterior = logs + e1 - e0[r]
            posterior = np.exp(posterior - posterior.max(axis=-1, keepdims=True))
            posterior /= posterior.sum(axis=-1, keepdims=True)
            result[r] = 1 - np.einsum("akj,ak->a", ndtr(-means / np.sqrt(variances)), posterior)
        return result

    def _grid(self, fine: int) -> list[MarginTails]:
        if fine not in self._grids:
            n_points = _POINTS[fine]
            rivals = range(len(self.problem.rivals))
            self._grids[fine] = [MarginTails(self.problem, j, n_points, self._order) for j in rivals]
        return self._grids[fine]
