"""The affordable features with the lowest cross-validated log loss: branch and bound with a convex relaxation."""

from __future__ import annotations

import heapq
import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.problem import Choice, Limits, highest_cost

# Sets whose log losses differ by less are equally good.
TOLERANCE = 1e-9
_FOLDS = 5
# Turns of the exchange that improves the greedy set.
_TURNS = 20
# Steps of the relaxation, whose bound holds wherever they end.
_STEPS = 60


@dataclass(frozen=True, eq=False)
class LogLossSelection:
    """Features that were selected by log loss.

    Attributes
    ----------
    features : tuple of int
        Positions, in the order of the classifier.
    log_loss : float
        Mean cross-validated log loss on the training rows, in nats.
    lower_bound : float
        No features within the budget have a lower one.
    n_evaluations : int
        Sets and relaxations that were evaluated.
    """

    features: tuple[int, ...]
    log_loss: float
    lower_bound: float
    n_evaluations: int

    @property
    def optimal(self) -> bool:
        """Whether the bound proves that no features have a lower log loss, apart from rounding."""
        return self.lower_bound >= self.log_loss - TOLERANCE


@dataclass(frozen=True, eq=False)
class HeldOutEvidence:
    """What each feature says about each row, by classifiers that have not seen the row.

    Attributes
    ----------
    offsets : ndarray of shape (n_rows, n_classes)
        log P(class) without features.
    weights : ndarray of shape (n_rows, n_classes, n_features)
        log P(value | class), so that scores add up over features.
    classes : ndarray of int, shape (n_rows,)

    References
    ----------
    Kohavi and John (1997), Wrappers for feature subset selection: features are judged by cross-validation.
    """

    offsets: NDArray[np.float64]
    weights: NDArray[np.float64]
    classes: NDArray[np.int64]

    @classmethod
    def of(
        cls, codes: NDArray[np.integer], classes: NDArray[np.int64], sizes: Sequence[int], smoothing: float
    ) -> HeldOutEvidence:
        """Learn naive Bayes without each fold in turn, and keep what it says about the rows of the fold.

        Parameters
        ----------
        codes : ndarray of int, shape (n_rows, n_features)
            Places of values, below `sizes`.
        classes : ndarray of int, shape (n_rows,)
        sizes : sequence of int
            Numbers of values.
        smoothing : float
            Pseudo-count of each value and class; at least 1e-10, as a fold may lack a value.
        """
        from sklearn.model_selection import StratifiedKFold

        n_classes, pseudo = int(classes.max()) + 1, max(smoothing, 1e-10)
        offsets = np.empty((len(classes), n_classes))
        weights = np.empty((len(classes), n_classes, len(sizes)))
        n_folds = min(_FOLDS, len(classes))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than folds
            folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(codes, classes))
        for train, out in folds:
            counts = np.bincount(classes[train], minlength=n_classes) + pseudo
            offsets[out] = np.log(counts / counts.sum())
            for place, size in enumerate(sizes):
                table = np.full((n_classes, size), pseudo)
                np.add.at(table, (classes[train], codes[train, place]), 1.0)
                weights[out, :, place] = np.log(table / table.sum(axis=1, keepdims=True))[:, codes[out, place]].T
        return cls(offsets, weights, classes)

    @cached_property
    def _against(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores of all classes relative to that of the true one."""
        rows = np.arange(len(self.classes))
        offsets = self.offsets - self.offsets[rows, self.classes][:, None]
        weights = self.weights - self.weights[rows, self.classes][:, None]
        return offsets, weights

    def loss(self, amounts: NDArray[np.float64]) -> float:
        """Return the log loss if each feature counts so many times: 1 keeps it, 0 leaves it out."""
        offsets, weights = self._against
        scores = offsets + weights @ amounts
        top = scores.max(axis=1)
        return float((top + np.log(np.exp(scores - top[:, None]).sum(axis=1))).mean())

    def with_slope(self, amounts: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the log loss and its gradient; it is convex in the amounts."""
        offsets, weights = self._against
        scores = offsets + weights @ amounts
        top = scores.max(axis=1)
        shares = np.exp(scores - top[:, None])
        sums = shares.sum(axis=1)
        shares /= sums[:, None] * len(sums)
        return float((top + np.log(sums)).mean()), np.einsum("nc,ncf->f", shares, weights)


def lowest_log_loss(evidence: HeldOutEvidence, choice: Choice, limits: Limits) -> LogLossSelection:
    """Return the affordable features with the lowest log loss, as far as the limits allow the proof.

    Each feature counts as 0 or 1. Where it may count as anything between, the log loss is convex: its minimum over such
    amounts that cost no more than the budget is a lower bound on that of all sets, and so is, at any amounts, what the
    tangent there can still reach. The search branches on the unit with the largest fraction.
    """
    return _Search(evidence, choice, limits).run()


class _Search:
    def __init__(self, evidence: HeldOutEvidence, choice: Choice, limits: Limits) -> None:
        self.evidence, self.choice, self.limits = evidence, choice, limits
        n_features = evidence.weights.shape[2]
        # Features by unit: what is bought together counts together.
        self.members = np.zeros((n_features, len(choice.units)))
        for place, unit in enumerate(choice.units):
            self.members[list(unit), place] = 1.0
        own = HeldOutEvidence(evidence.offsets, evidence.weights @ self.members, evidence.classes)
        self.units, self.costs = own, np.array(choice.costs)
        self.most = highest_cost(choice.budget)
        self.required = frozenset(choice.required_units)
        self.n_evaluations = 0
        self.best: tuple[float, frozenset[int]] = (math.inf, self.required)

    def run(self) -> LogLossSelection:
        self._greedily()
        count = itertools.count()
        bound, amounts = self._bound(self.required, frozenset())
        heap = [(bound, next(count), self.required, frozenset[int](), amounts)]
        lowest = bound
        while heap:
            lowest = heap[0][0]
            if lowest >= self.best[0] - TOLERANCE or not self.limits.may_go_on(self.n_evaluations):
                break
            _, _, kept, removed, amounts = heapq.heappop(heap)
            free = [unit for unit in range(len(self.costs)) if unit not in kept and unit not in removed]
            if not free:
                continue
            unit = max(free, key=lambda one: amounts[one])
            for more, fewer in ((kept | {unit}, removed), (kept, removed | {unit})):
                if self.costs[list(more)].sum() > self.most:
                    continue
                bound, own = self._bound(more, fewer)
                if bound < self.best[0] - TOLERANCE:
                    heapq.heappush(heap, (max(bound, lowest), next(count), more, fewer, own))
        else:
            lowest = self.best[0]
        loss, chosen = self.best
        return LogLossSelection(self.choice.features(chosen), loss, min(lowest, loss), self.n_evaluations)

    def _try(self, units: frozenset[int]) -> float:
        amounts = np.zeros(len(self.costs))
        amounts[list(units)] = 1.0
        self.n_evaluations += 1
        loss = self.units.loss(amounts)
        if loss < self.best[0]:
            self.best = (loss, units)
        return loss

    def _greedily(self) -> None:
        """Add the best unit as long as the loss falls, then exchange, leave out or add single ones."""
        self._try(self.required)
        for _ in range(len(self.costs) + _TURNS):
            before, chosen = self.best
            others = [unit for unit in range(len(self.costs)) if unit not in chosen]
            for gone in [None, *sorted(chosen - self.required)]:
                rest = chosen if gone is None else chosen - {gone}
                for new in [None, *others]:
                    units = rest if new is None else rest | {new}
                    if units != chosen and self.costs[list(units)].sum() <= self.most:
                        if not self.limits.may_go_on(self.n_evaluations):
                            return
                        self._try(units)
            if self.best[0] >= before:
                return

    def _bound(self, kept: frozenset[int], removed: frozenset[int]) -> tuple[float, NDArray[np.float64]]:
        """Return a lower bound on the loss of all sets between, and the amounts that it comes from."""
        from scipy.optimize import minimize

        self.n_evaluations += 1
        n_units = len(self.costs)
        free = np.array([u for u in range(n_units) if u not in kept and u not in removed], dtype=np.int64)
        amounts = np.zeros(n_units)
        amounts[list(kept)] = 1.0
        left = self.most - self.costs[list(kept)].sum()
        if not len(free):
            return self._try(kept), amounts

        def at(part: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            amounts[free] = part
            loss, slope = self.units.with_slope(amounts)
            return loss, slope[free]

        price = self.costs[free]
        inside: Any = {"type": "ineq", "fun": lambda part: left - price @ part, "jac": lambda part: -price}
        start = np.full(len(free), min(1.0, left / max(price.sum(), 1e-300)))
        limits = [(0.0, 1.0)] * len(free)
        how: Any = {"maxiter": _STEPS, "ftol": 1e-7}
        found = minimize(at, start, jac=True, method="SLSQP", bounds=limits, constraints=[inside], options=how).x
        found = np.clip(found, 0.0, 1.0)
        if price @ found > left:
            found *= left / (price @ found)
        loss, slope = at(found)
        # The tangent lies below the loss: what it can reach within the budget bounds all sets.
        bound = float(loss - slope @ found - _most(-slope, price, left))
        order = free[np.argsort(-found, kind="stable")]
        units, spent = set(kept), self.costs[list(kept)].sum()
        for unit in order.tolist():
            if amounts[unit] > 1e-6 and spent + self.costs[unit] <= self.most:
                units.add(unit)
                spent += self.costs[unit]
        self._try(frozenset(units))
        return bound, amounts.copy()


def _most(gains: NDArray[np.float64], costs: NDArray[np.float64], left: float) -> float:
    """Return the highest sum of gains of amounts between 0 and 1 that cost no more than what is left."""
    total = float(gains[(costs == 0) & (gains > 0)].sum())
    useful = np.flatnonzero((costs > 0) & (gains > 0))
    for place in useful[np.argsort(-gains[useful] / costs[useful])]:
        share = min(1.0, left / costs[place])
        if share <= 0:
            break
        total += share * gains[place]
        left -= share * costs[place]
    return total
