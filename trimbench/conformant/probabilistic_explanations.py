"""Probabilistic explanations: the fewest features that keep a class with a given probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trimbench.conformant.decision_problem import DecisionProblem
from trimbench.conformant.explained_row import Explained, checked_row, lost_log_odds, predicted_and_rivals
from trimbench.conformant.explanation_views import ExplanationViews
from trimbench.conformant.reduced_problem import Vector
from trimbench.conformant.same_decision import SameDecision
from trimbench.conformant.set_search import SetSearch
from trimbench.conformant.smallest_covers import FoundSets, smallest_covers
from trimbench.conformant.subset_table import changed_probabilities, table_size

# Up to this size the table of all sets is made.
_TABLE_ENTRIES = 2**17
# Probabilities this close are equal up to rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class ProbabilisticExplanation(ExplanationViews):
    """The fewest features that keep the class of a row with at least the probability `delta`.

    Attributes
    ----------
    predicted : label
        The class that is explained.
    against : label or None
        The class that it must not lose against; None for all others.
    delta : float
    features : tuple of int
        The explanation, by decreasing evidence: positions in the layout, which are the columns where all features are
        binary. If no set reaches `delta`, one that comes near.
    probability : tuple of float
        Certified lower and upper bounds on P(the completed row is classified as `predicted` | `features`).
    size_lower_bound : int
        No set of fewer features reaches `delta`: proven.
    sets : tuple of tuple of int
        Smallest sets that were found, `features` first; none if no set reaches `delta`.
    complete : bool
        Whether `sets` are proven to be all smallest sets (all there are, that is none, if it is empty).
    evidence : ndarray of shape (n_features,)
        What observing each feature adds to the log-odds of `predicted` over `against`, or over the class that comes
        second; 0 where it is missing. For a mixture, where this depends on the others: when all others are observed.
    """

    predicted: Any
    against: Any
    delta: float
    features: tuple[int, ...]
    probability: tuple[float, float]
    size_lower_bound: int
    sets: tuple[tuple[int, ...], ...]
    complete: bool
    evidence: Vector

    @property
    def sufficient(self) -> bool:
        """Whether `features` reach `delta`; only for a row with missing features there may be no such set."""
        return bool(self.sets)

    @property
    def optimal(self) -> bool:
        """Whether it is proven that no smaller set reaches `delta`."""
        return self.sufficient and len(self.features) <= self.size_lower_bound


def explain_with_probability(
    model: Explained,
    x: ArrayLike,
    delta: float,
    against: Any = None,
    *,
    max_sets: int = 1,
    max_evaluations: int | None = None,
) -> ProbabilisticExplanation:
    """Return the smallest set of features that keeps the class, see `ConformantModel.explain`.

    For delta = 1 it is a covering problem, where the worst values of the hidden features count. For few features the
    probabilities of all sets are computed (`subset_table`); for more, a set is found by a greedy search and exchanges,
    and branch and bound on certified bounds proves that it is smallest, or how much smaller it might be
    (`set_search`).

    References
    ----------
    Wang, Khosravi and Van den Broeck (2021), *Probabilistic Sufficient Explanations*; Izza, Huang, Ignatiev,
    Narodytska, Cooper and Marques-Silva (2023), *On Computing Probabilistic Abductive Explanations*; Choi, Xue and
    Darwiche (2012), *Same-Decision Probability*.
    """
    _check(delta, max_sets, max_evaluations)
    row = checked_row(model, x)
    winner, rivals = predicted_and_rivals(model, row, against)
    problem = DecisionProblem.of(model, row, winner, rivals)
    budget = max(25, 20_000 // model.layout.n_features) if max_evaluations is None else max_evaluations
    found, features, probability = _found(problem, float(delta), max_sets, budget)
    scores = model.decision_scores(row[None])[0]
    compared = max(rivals, key=lambda k: float(scores[k]))
    evidence = problem.evidence[:, winner] - problem.evidence[:, compared]
    if len(model.components) > 1:
        evidence = lost_log_odds(model, row, winner, compared)
    sets = tuple(tuple(sorted(chosen, key=lambda i: (-evidence[i], i))) for chosen in found.sets)
    return ProbabilisticExplanation(
        predicted=model.classes[winner],
        against=model.classes[rivals[0]] if len(rivals) == 1 else None,
        delta=float(delta),
        features=tuple(sorted(features, key=lambda i: (-evidence[i], i))),
        probability=probability,
        size_lower_bound=found.size_lower_bound,
        sets=sets,
        complete=found.complete,
        evidence=evidence,
    )


def _check(delta: float, max_sets: int, max_evaluations: int | None) -> None:
    if isinstance(delta, bool) or not isinstance(delta, int | float | np.number) or not 0 < delta <= 1:
        raise ValueError(
            f"delta must be a probability above 0 and up to 1, got {delta!r}; leave it out for the smallest set that "
            "keeps the class against all that opposes it"
        )
    counts: dict[str, int | None] = {"max_sets": max_sets, "max_evaluations": max_evaluations}
    for name, count in counts.items():
        if count is None and name == "max_evaluations":
            continue
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"{name} must be a whole number, 1 or more, got {count!r}")


def _found(
    problem: DecisionProblem, delta: float, max_sets: int, budget: int
) -> tuple[FoundSets, tuple[int, ...], tuple[float, float]]:
    """Return what was found, the features to show for it, and bounds on their probability."""
    if delta == 1:
        found = _certain(problem, max_sets)
        if found.sets:
            return found, found.sets[0], (1.0, 1.0)
        features = tuple(np.flatnonzero(problem.observed).tolist())
        return found, features, _probability(problem, features, delta)
    if table_size(problem) <= _TABLE_ENTRIES:
        return _tabulated(problem, delta, max_sets)
    search = SetSearch(problem, delta, budget)
    found, features = search.run(max_sets)
    return found, features, search.decision.bounds(features, delta, precise=True)


def _certain(problem: DecisionProblem, max_sets: int) -> FoundSets:
    """Return the smallest sets that keep the class whatever the values of the other features are."""
    lowest = np.stack([feature.lowest for feature in problem.hidden])
    observed = np.flatnonzero(problem.observed)
    gains = np.where(problem.observed[:, None], problem.shown - lowest, 0.0)[observed]
    if np.isneginf(lowest[~problem.observed]).any():
        return FoundSets((), len(observed) + 1, True)
    # A feature that may cost any amount must be shown: it alone meets its own requirement.
    unlimited = np.isposinf(gains).any(axis=1)
    limited = np.where(np.isneginf(lowest), 0.0, lowest).sum(axis=0) + problem.base
    limited += problem.shown[observed[unlimited]].sum(axis=0) - np.where(
        np.isneginf(lowest[observed[unlimited]]), 0.0, lowest[observed[unlimited]]
    ).sum(axis=0)
    left = observed[~unlimited]
    found = smallest_covers(gains[~unlimited], -limited, max_sets)
    forced = tuple(observed[unlimited].tolist())
    sets = tuple((*forced, *left[list(chosen)].tolist()) for chosen in found.sets)
    return FoundSets(sets, found.size_lower_bound + len(forced), found.complete)


def _tabulated(
    problem: DecisionProblem, delta: float, max_sets: int
) -> tuple[FoundSets, tuple[int, ...], tuple[float, float]]:
    changed = changed_probabilities(problem)
    observed = np.flatnonzero(problem.observed)
    bits = np.arange(len(observed))[::-1]
    shown = ((np.arange(changed.size)[:, None] >> bits) & 1).astype(bool)
    changed, sizes = changed.reshape(-1), shown.sum(axis=1)
    reaches = changed <= 1 - delta + _ROUNDING
    if not reaches.any():
        best = int(np.argmin(changed))
        features = tuple(observed[shown[best]].tolist())
        return FoundSets((), len(observed) + 1, True), features, _around(1 - float(changed[best]))
    size = int(sizes[reaches].min())
    places = np.flatnonzero(reaches & (sizes == size))
    ranked = places[np.argsort(changed[places], kind="stable")]
    sets = tuple(tuple(observed[shown[place]].tolist()) for place in ranked[:max_sets])
    return FoundSets(sets, size, len(places) <= max_sets), sets[0], _around(1 - float(changed[ranked[0]]))


def _probability(problem: DecisionProblem, features: tuple[int, ...], delta: float) -> tuple[float, float]:
    if table_size(problem) <= _TABLE_ENTRIES:
        shown = np.isin(np.flatnonzero(problem.observed), features).astype(int)
        return _around(1 - float(changed_probabilities(problem)[tuple(shown)]))
    return SameDecision(problem, np.arange(len(problem.hidden))).bounds(features, delta, precise=True)


def _around(probability: float) -> tuple[float, float]:
    """Return bounds on a probability that is known up to rounding."""
    return max(probability - _ROUNDING, 0.0), min(probability + _ROUNDING, 1.0)
