"""Trimming of classifiers of several classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trimbench.trimming.arg_max import ArgMaxClassifier
from trimbench.trimming.costs import Choice
from trimbench.trimming.engines.arg_max import ClassMeasures
from trimbench.trimming.limits import Limits
from trimbench.trimming.search.arg_max import search_arg_max
from trimbench.trimming.search.naive_bayes import AGREEMENT_TOLERANCE

if TYPE_CHECKING:
    from typing import Any


@dataclass(frozen=True)
class ArgMaxTrimming:
    """A trimmed classifier of several classes, and what is known about its agreement with the original.

    Attributes
    ----------
    original : ArgMaxClassifier
    features : tuple of str
        The features that are kept, in the order of the original.
    agreement : float
        Probability that the most probable class given `features` is the one that the original gives.
    agreement_interval : tuple of float
        A lower and an upper value of the agreement; equal where it is exact.
    upper_bound : float
        No trimming within the budget has a higher agreement.
    optimal : bool
        Whether the agreement is proven to reach `upper_bound` (within 1e-12).
    n_evaluations : int
        Number of evaluations of the criterion that the search took.
    rows_agreement
        Share of given rows that both classify alike, with its interval; None without rows.
    """

    original: ArgMaxClassifier
    features: tuple[str, ...]
    agreement: float
    agreement_interval: tuple[float, float]
    upper_bound: float
    optimal: bool
    n_evaluations: int
    rows_agreement: Any = None

    @property
    def classifier(self) -> ArgMaxClassifier:
        """The trimmed classifier, ready to predict from `features` alone."""
        return self.original.with_features(self.features)

    def save(self, path: str | Path) -> None:
        """Write the trimmed classifier as JSON; `ArgMaxClassifier.load` reads it."""
        self.classifier.save(path)


def trim_arg_max(
    classifier: ArgMaxClassifier,
    choice: Choice,
    *,
    time_limit: float | None = None,
    evaluation_limit: int | None = None,
) -> ArgMaxTrimming:
    """Find the allowed subset whose most probable class is most often that of the classifier.

    Parameters
    ----------
    choice : Choice
        Which subsets are allowed.
    time_limit, evaluation_limit
        As in `trim`.

    Raises
    ------
    ValueError
        When the class and the features have too many combinations of values for a table.
    """
    may_go_on = Limits(time_limit, evaluation_limit).may_go_on
    allowed = [place for unit in choice.units for place in unit]
    if len(allowed) == classifier.n_features and choice.is_affordable(allowed):
        return _trimming(classifier, tuple(range(classifier.n_features)), 1.0, 1.0, 0)
    root = ClassMeasures.of(classifier, allowed)
    found = search_arg_max(root, choice, may_go_on)
    return _trimming(classifier, found.features, found.agreement, found.upper_bound, found.n_evaluations)


def _trimming(
    classifier: ArgMaxClassifier, kept: tuple[int, ...], agreement: float, upper_bound: float, n_evaluations: int
) -> ArgMaxTrimming:
    return ArgMaxTrimming(
        original=classifier,
        features=tuple(classifier.features[place] for place in kept),
        agreement=agreement,
        agreement_interval=(agreement, agreement),
        upper_bound=upper_bound,
        optimal=upper_bound <= agreement + AGREEMENT_TOLERANCE,
        n_evaluations=n_evaluations,
    )
