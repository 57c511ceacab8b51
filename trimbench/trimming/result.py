"""What a trimming is, and how sure its agreement is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from trimbench.trimming.classifier import BayesianClassifier, feature_indices
from trimbench.trimming.limits import Limits, Progress
from trimbench.trimming.saving import SavedClassifier
from trimbench.trimming.search.result import AGREEMENT_TOLERANCE
from trimbench.trimming.thresholds import Cut

if TYPE_CHECKING:
    from trimbench.trimming.rows.agreement import RowsAgreement


Original = TypeVar("Original", bound=SavedClassifier)


@dataclass(frozen=True, kw_only=True)
class AnyTrimming(Generic[Original]):
    """What is known of trimmed classifiers of every kind; `Trimming` and `ArgMaxTrimming` describe the attributes."""

    original: Original
    features: tuple[str, ...]
    agreement: float
    agreement_interval: tuple[float, float]
    upper_bound: float
    optimal: bool
    n_evaluations: int
    confidence: float = 1.0
    rows_agreement: RowsAgreement | None = None
    _go_on: Callable[[Limits], Self] | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        # A search that could go on is not written to another process.
        return {**vars(self), "_go_on": None}

    @property
    def classifier(self) -> Original:
        """The trimmed classifier, ready to predict from `features` alone."""
        raise NotImplementedError

    @property
    def kept(self) -> tuple[int, ...]:
        """Positions of `features` in the original."""
        return feature_indices(self.original.features, self.features)

    def save(self, path: str | Path) -> None:
        """Write the trimmed classifier as JSON; the method `load` of its class reads it."""
        self.classifier.save(path)

    def resume(
        self,
        time_limit: float | None = None,
        *,
        evaluation_limit: int | None = None,
        n_jobs: int = 1,
        progress: Callable[[Progress], object] | None = None,
    ) -> Self:
        """Continue the search that a limit has stopped, from where it was; a search on rows begins anew.

        Parameters
        ----------
        time_limit : float, optional
            Seconds from now.
        evaluation_limit : int, optional
            Evaluations in all, those before the stop included.
        n_jobs, progress
            As in `trim`.

        Returns
        -------
        Trimming or ArgMaxTrimming
            This one if nothing is left to search: where it is optimal, or the search ended by itself.
        """
        return self.resumed(Limits(time_limit, evaluation_limit, n_jobs=n_jobs, progress=progress))

    def resumed(self, limits: Limits) -> Self:
        """Return what `resume` does, within limits that have begun."""
        return self if self._go_on is None or self.optimal else self._go_on(limits)

    @property
    def may_go_on(self) -> bool:
        """Whether `resume` has anything left to search."""
        return self._go_on is not None and not self.optimal


@dataclass(frozen=True, kw_only=True)
class Trimming(AnyTrimming[BayesianClassifier]):
    """A trimmed classifier, and what is known about its agreement with the original.

    Attributes
    ----------
    original : BayesianClassifier
    features : tuple of str
        The features that are kept, in the order of the original.
    threshold : float
        That of the original if it is among the best, else the middle of `threshold_interval`.
    threshold_interval : tuple of float
        Every T' with ``low < T' <= high`` has the same agreement; ``(0, 0)`` stands for T' = 0 alone. If nothing is
        removed, or only bounds on the agreement are known, it holds the threshold alone.
    agreement : float
        Expected classification agreement with the original; where it is not exact, the middle of `agreement_interval`,
        or the share of drawn rows.
    agreement_interval : tuple of float
        A lower and an upper value of the agreement; equal where it is exact.
    upper_bound : float
        No trimming within the budget has a higher agreement.
    optimal : bool
        Whether the agreement is proven to reach `upper_bound` (within 1e-12).
    n_evaluations : int
        Number of evaluations of the criterion that the search took.
    confidence : float
        Probability with which `agreement_interval` holds the agreement, and `upper_bound` is one: 1 where both are
        proven, less where they come from samples.
    rows_agreement : RowsAgreement or None
        Agreement with the original on the rows that were given. `threshold_interval` is then where the blend of rows
        and model is best, and `agreement` still is the model's, at `threshold`.
    """

    threshold: float
    threshold_interval: tuple[float, float]

    @property
    def classifier(self) -> BayesianClassifier:
        """The trimmed classifier, ready to predict from `features` alone."""
        return self.original.with_features(self.features, self.threshold)


def exact_trimming(
    classifier: BayesianClassifier,
    kept: Sequence[int],
    cut: Cut,
    upper_bound: float,
    n_evaluations: int,
    go_on: Callable[[Limits], Trimming] | None = None,
) -> Trimming:
    """Return the trimming that keeps the features at some positions, with an exact agreement."""
    return Trimming(
        original=classifier,
        features=tuple(classifier.features[i] for i in kept),
        threshold=cut.representative(classifier.threshold),
        threshold_interval=(cut.low, cut.high),
        agreement=cut.agreement,
        agreement_interval=(cut.agreement, cut.agreement),
        upper_bound=max(upper_bound, cut.agreement),
        optimal=upper_bound <= cut.agreement + AGREEMENT_TOLERANCE,
        n_evaluations=n_evaluations,
        _go_on=go_on,
    )


def nothing_removed(classifier: BayesianClassifier) -> Trimming:
    """Return the trimming that keeps all features."""
    threshold = classifier.threshold
    return Trimming(
        original=classifier,
        features=classifier.features,
        threshold=threshold,
        threshold_interval=(math.nextafter(threshold, 0.0), threshold),
        agreement=1.0,
        agreement_interval=(1.0, 1.0),
        upper_bound=1.0,
        optimal=True,
        n_evaluations=0,
    )


def nothing_needed(classifier: BayesianClassifier, kept: Sequence[int]) -> Trimming:
    """Return a trimming of a classifier that gives all instances the same class: it needs no feature."""
    return replace(nothing_removed(classifier), features=tuple(classifier.features[i] for i in kept))
