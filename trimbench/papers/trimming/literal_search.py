"""Algorithm 1 of the trimming paper as it is printed, to count its evaluations."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.trimming.classifiers import CODE, network_classifier
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.engines.choice import EngineName, make_engine
from trimbench.trimming.engines.measure import SignedMeasure
from trimbench.trimming.search.result import AGREEMENT_TOLERANCE


@dataclass(frozen=True)
class LiteralTrimming:
    """The optimum, and what it took.

    Attributes
    ----------
    features : tuple of int
    agreement : float
        Maximum achievable agreement of the features.
    n_evaluations : int
        Evaluations of MAA and MPA. Neither is computed again where it is known from the parent node: MAA(I) after an
        exclusion, MPA(F minus E) after an inclusion.
    n_evaluations_repeated : int
        Evaluations if both were computed again.
    """

    features: tuple[int, ...]
    agreement: float
    n_evaluations: int
    n_evaluations_repeated: int


def trim_literally(
    classifier: BayesianClassifier,
    budget: int,
    order: Sequence[int],
    *,
    prune_ties: bool = True,
    engine: EngineName = "dense",
) -> LiteralTrimming:
    """Search by inclusion and exclusion, depth first, at unit costs.

    Parameters
    ----------
    classifier : BayesianClassifier
        A naive Bayes classifier: MAA and MPA are the same then (Proposition 3), as the paper computes them.
    budget : int
    order : sequence of int
        All features, in the order in which the search decides them.
    prune_ties : bool
        Whether a bound equal to the best agreement so far ends a branch, as in line 6 of the algorithm.
    engine : {"auto", "dense", "log_odds", "sdd"}

    Raises
    ------
    ValueError
        When the classifier is not naive Bayes, or `order` does not have each feature once.
    """
    if not classifier.is_naive_bayes:
        raise ValueError("classifier must be naive Bayes, so that MAA and MPA are the same, got a general network")
    if sorted(order) != list(range(classifier.n_features)):
        raise ValueError(f"order must have each of the features 0..{classifier.n_features - 1} once, got {list(order)}")
    search = _Search(tuple(order), prune_ties)
    root = make_engine(classifier, engine).root
    search.visit(root, (), 0, budget, achieved=None, bound=None)
    return LiteralTrimming(search.best, search.agreement, search.n_evaluations, search.n_repeated)


@job_function(code=(*CODE, __name__))
def trim_by_algorithm_1(
    network: Mapping[str, Json], threshold: float, budget_divisor: int, engine: EngineName
) -> dict[str, Json]:
    """Trim the classifier of a network input as the paper prints it, features in reverse order of the file."""
    classifier = network_classifier(network, threshold)
    budget = classifier.n_features // budget_divisor
    order = range(classifier.n_features)[::-1]
    start = time.perf_counter()
    found = trim_literally(classifier, budget, order, engine=engine)
    seconds = time.perf_counter() - start
    all_ties = trim_literally(classifier, budget, order, prune_ties=False, engine=engine)
    return {
        "n_features": classifier.n_features,
        "budget": budget,
        "features": [classifier.features[i] for i in sorted(found.features)],
        "agreement": found.agreement,
        "n_evaluations": found.n_evaluations,
        "n_evaluations_repeated": found.n_evaluations_repeated,
        "n_evaluations_ties_searched": all_ties.n_evaluations,
        "method_seconds": seconds,
    }


@dataclass
class _Search:
    order: tuple[int, ...]
    prune_ties: bool
    best: tuple[int, ...] = ()
    agreement: float = -math.inf
    n_evaluations: int = 0
    n_repeated: int = 0

    def visit(
        self,
        remaining: SignedMeasure,
        included: tuple[int, ...],
        decided: int,
        budget: int,
        *,
        achieved: float | None,
        bound: float | None,
    ) -> None:
        """Go on from a node; `remaining` is the measure of all features but the excluded ones, F minus E.

        `decided` features of the order are included or excluded. MAA of the included ones (`achieved`) and MPA of the
        remaining ones (`bound`) are None where the parent does not have them.
        """
        # Line 1 holds at every node: features are included only within the budget (line 4, unit costs).
        achieved = self._value(achieved, lambda: _restricted(remaining, included))
        if achieved > self.agreement + AGREEMENT_TOLERANCE:
            self.best, self.agreement = included, achieved
        if decided == len(self.order) or budget < 1:
            return
        bound = self._value(bound, lambda: remaining)
        lead = bound - self.agreement
        if lead <= AGREEMENT_TOLERANCE if self.prune_ties else lead < -AGREEMENT_TOLERANCE:
            return
        feature = self.order[decided]
        self.visit(remaining, (*included, feature), decided + 1, budget - 1, achieved=None, bound=bound)
        self.visit(remaining.without(feature), included, decided + 1, budget, achieved=achieved, bound=None)

    def _value(self, known: float | None, measure: Callable[[], SignedMeasure]) -> float:
        self.n_repeated += 1
        if known is not None:
            return known
        self.n_evaluations += 1
        return measure().potential_agreement()


def _restricted(measure: SignedMeasure, features: Sequence[int]) -> SignedMeasure:
    """Return the measure of some of its features."""
    for feature in measure.features:
        if feature not in features:
            measure = measure.without(feature)
    return measure
