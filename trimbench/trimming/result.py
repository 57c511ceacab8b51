"""Results of trimming: what was kept, how sure its agreement is, and how often it agrees on rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._pictures import draw_bounds, html_of
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import Cut, feature_indices
from trimbench.trimming.problem import Limits, PieceExecutor, Progress

# How often a trimmed classifier agrees with the original on rows, with an interval.

CONFIDENCE = 0.95


@dataclass(frozen=True)
class RowsAgreement:
    """Agreement with the original on rows, estimated on rows that the selection did not see.

    Attributes
    ----------
    value : float
        Cross-fitted: the whole selection (of features, threshold, weight of the rows and size) is repeated without
        each part of the rows in turn and judged on that part. NaN if a limit left no part to judge on.
    interval : tuple of float
        Confidence interval of the agreement on new rows (Wilson's score interval, for fewer rows where the selections
        differ from part to part). It treats the rows as independent draws.
    confidence : float
        Confidence level of the interval.
    n_rows : int
        Rows that were judged: all of them, unless a limit ended the selection early.
    weight : float
        Weight of the rows in the blend with the model: 0 model only, 1 rows only.
    apparent : float
        Share of the rows on which the returned trimming agrees with the original. The trimming was selected on these
        rows, so this estimate is optimistic.

    References
    ----------
    Wilson (1927), "Probable inference, the law of succession, and statistical inference".
    """

    value: float
    interval: tuple[float, float]
    confidence: float
    n_rows: int
    weight: float
    apparent: float


def wilson_interval(successes: float, n_trials: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion; (0, 1) without trials."""
    if n_trials == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
    share = successes / n_trials
    shrunk = (share + z * z / (2 * n_trials)) / (1 + z * z / n_trials)
    half = z / (1 + z * z / n_trials) * math.sqrt(share * (1 - share) / n_trials + z * z / (4 * n_trials**2))
    low = 0.0 if share == 0 else max(0.0, shrunk - half)
    return low, 1.0 if share == 1 else min(1.0, shrunk + half)


def rows_agreement(parts: Sequence[NDArray[np.bool_]], *, weight: float, apparent: float) -> RowsAgreement:
    """Return the agreement and its interval from parts of the rows, judged by selections that did not see them.

    Where the agreement differs more from part to part than independent rows would, because the selections do, the
    interval is that of accordingly fewer rows.
    """
    judged = np.concatenate([np.zeros(0, dtype=np.bool_), *parts])
    n_rows = len(judged)
    share = float(judged.mean()) if n_rows else math.nan
    n_effective = n_rows / _inflation(parts, share)
    return RowsAgreement(
        value=share,
        interval=wilson_interval(share * n_effective, n_effective) if n_rows else (0.0, 1.0),
        confidence=CONFIDENCE,
        n_rows=n_rows,
        weight=weight,
        apparent=apparent,
    )


def _inflation(parts: Sequence[NDArray[np.bool_]], share: float) -> float:
    """Return the factor by which the variance of the parts' shares exceeds that of independent rows, at least 1."""
    if len(parts) < 2 or not 0 < share < 1:
        return 1.0
    spread = sum(len(part) * (float(part.mean()) - share) ** 2 for part in parts) / (len(parts) - 1)
    return max(1.0, spread / (share * (1.0 - share)))


@dataclass(frozen=True, kw_only=True)
class Trimming:
    """A trimmed classifier, and what is known about its agreement with the original.

    Attributes
    ----------
    original : BayesianClassifier
    features : tuple of str
        The features that are kept, in the order of the original.
    threshold : float or None
        That of the original if it lies in `threshold_interval`, else its middle; None for the most probable class.
    threshold_interval : tuple of float or None
        Every T' with ``low < T' <= high`` has the same agreement; ``(0, 0)`` stands for T' = 0 alone. If nothing is
        removed, or the agreement is not known exactly, it contains the threshold alone. None without a threshold.
    agreement : float
        Expected classification agreement with the original: the probability that both decide alike. Where it is not
        exact, the middle of `agreement_interval`, or the share of drawn rows.
    agreement_interval : tuple of float
        Lower and upper bound on the agreement; equal where it is exact. For the most probable class it is exact up to
        2^26 combinations of class and feature values, beyond that a 99 % confidence interval from 20,000 rows drawn
        from the model, independently of any rows that the search has drawn.
    upper_bound : float
        No trimming within the budget has a higher agreement.
    optimal : bool
        Whether it is proven that no trimming within the budget agrees more often (within 1e-12). Where the agreement is
        not exact, the proof is about the features, with each subset at its best threshold, and `upper_bound` is above
        the interval's lower end; if `may_go_on`, more time gives a better threshold or a narrower interval.
    n_evaluations : int
        Number of evaluations of the criterion that the search took.
    confidence : float
        Probability with which `agreement_interval` contains the agreement, and `upper_bound` is valid: 1 where both are
        proven, less where they come from drawn rows.
    rows_agreement : RowsAgreement or None
        Agreement with the original on the rows that were given. `threshold_interval` is then where the blend of rows
        and model is best, and `agreement` is still the model's, at `threshold`.

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> classifier = tb.BayesianClassifier(model, positive="0")
    >>> trimming = tb.trim(classifier, budget=1)
    >>> trimming.features, trimming.agreement, trimming.optimal
    (('x0',), 1.0, True)
    >>> trimming.classifier.features
    ('x0',)
    """

    original: BayesianClassifier
    features: tuple[str, ...]
    # `Any` for None, so that code with a threshold need not check it each time.
    threshold: float | Any
    threshold_interval: tuple[float, float] | Any
    agreement: float
    agreement_interval: tuple[float, float]
    upper_bound: float
    optimal: bool
    n_evaluations: int
    confidence: float = 1.0
    rows_agreement: RowsAgreement | None = None
    _go_on: Callable[[Limits], Trimming] | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        # A search that could go on is not written to another process.
        return {**vars(self), "_go_on": None}

    def __copy__(self) -> Trimming:
        return replace(self)

    def _repr_html_(self) -> str:
        """Return how notebooks show the trimming."""
        import pandas as pd

        low, high = self.agreement_interval
        shown = {
            "features": f"{', '.join(self.features)} ({len(self.features)} of {self.original.n_features})",
            "threshold": "the most probable class" if self.threshold is None else f"{self.threshold:.4g}",
            "agreement": f"{self.agreement:.4g}" + ("" if low == high else f", in [{low:.4g}, {high:.4g}]"),
            "bound on all within the budget": f"{self.upper_bound:.4g}",
            "proven to be the best": "yes" if self.optimal else "no",
        }
        if self.rows_agreement is not None:
            low, high = self.rows_agreement.interval
            shown["agreement on rows"] = f"{self.rows_agreement.value:.4g}, in [{low:.4g}, {high:.4g}]"
        table = pd.DataFrame({"trimming": list(shown), "": list(shown.values())})
        draw = partial(draw_bounds, value=self.agreement, interval=self.agreement_interval, bound=self.upper_bound)
        return html_of(table, draw, height=1.2)

    @property
    def classifier(self) -> BayesianClassifier:
        """The trimmed classifier, ready to predict from `features` alone."""
        return self.original.with_features(self.features, self.threshold)

    @property
    def kept(self) -> tuple[int, ...]:
        """Positions of `features` in the original."""
        return feature_indices(self.original.features, self.features)

    def save(self, path: str | Path) -> None:
        """Write the trimmed classifier as JSON; `BayesianClassifier.load` reads it."""
        self.classifier.save(path)

    def resume(
        self,
        time_limit: float | None = None,
        *,
        evaluation_limit: int | None = None,
        n_jobs: int = 1,
        progress: Callable[[Progress], object] | None = None,
        executor: PieceExecutor | None = None,
    ) -> Trimming:
        """Continue a search that a limit has stopped, from where it was; a search on rows begins anew.

        Parameters
        ----------
        time_limit : float, optional
            Seconds from now.
        evaluation_limit : int, optional
            Evaluations in all, give or take a step, those before the stop included.
        n_jobs, progress, executor
            As in `trim`.

        Returns
        -------
        Trimming
            This one if it is optimal, with its exact agreement, or at the evaluation limit (and no rows were given), or
            if nothing is left to do.
        """
        return self.resumed(Limits(time_limit, evaluation_limit, n_jobs=n_jobs, progress=progress, executor=executor))

    def resumed(self, limits: Limits) -> Trimming:
        """Return what `resume` does, within limits whose time is already running."""
        # A search on rows begins anew.
        reached = self.rows_agreement is None and not limits.allows(self.n_evaluations + 1)
        return self._go_on(limits) if self._go_on is not None and self.may_go_on and not reached else self

    @property
    def may_go_on(self) -> bool:
        """Whether a limit has stopped the search, so that `resume` has something left to do; not after pickling.

        Features may be proven to be the best before their threshold and its agreement are known exactly.
        """
        low, high = self.agreement_interval
        is_over = self.optimal and high <= low + AGREEMENT_TOLERANCE
        # The best trimming under the model need not be the best on rows.
        return self._go_on is not None and not (is_over and self.rows_agreement is None)


def trimming_of(
    classifier: BayesianClassifier,
    kept: Sequence[int],
    interval: tuple[float, float],
    upper_bound: float,
    n_evaluations: int,
    *,
    threshold: float | None = None,
    cut: Cut | None = None,
    agreement: float | None = None,
    confidence: float = 1.0,
    proven: bool = False,
    go_on: Callable[[Limits], Trimming] | None = None,
) -> Trimming:
    """Return the trimming that keeps the features at some positions.

    Parameters
    ----------
    interval : tuple of float
        Bounds on the agreement; their middle is the agreement if none is given.
    threshold : float, optional
        Default: the one that represents `cut`, if there is one.
    cut : Cut, optional
        Where the threshold may lie. Default: at `threshold` alone.
    proven : bool, optional
        Whether no other features are better, though the agreement may not be known exactly.
    """
    low, high = interval
    if threshold is None and cut is not None:
        threshold = cut.representative(classifier.threshold)
    around = None if threshold is None else (math.nextafter(threshold, 0.0), threshold)
    bound = max(upper_bound, high)
    return Trimming(
        original=classifier,
        features=tuple(classifier.features[i] for i in kept),
        threshold=threshold,
        threshold_interval=around if cut is None else (cut.low, cut.high),
        agreement=0.5 * (low + high) if agreement is None else agreement,
        agreement_interval=interval,
        upper_bound=bound,
        optimal=confidence == 1.0 and (proven or bound <= low + AGREEMENT_TOLERANCE),
        n_evaluations=n_evaluations,
        confidence=confidence,
        _go_on=go_on,
    )


def exact_trimming(
    classifier: BayesianClassifier,
    kept: Sequence[int],
    cut: Cut,
    upper_bound: float,
    n_evaluations: int,
    go_on: Callable[[Limits], Trimming] | None = None,
    *,
    proven: bool = False,
) -> Trimming:
    """Return the trimming that keeps the features at some positions, with the exact agreement of a cut."""
    exact = (cut.agreement, cut.agreement)
    return trimming_of(classifier, kept, exact, upper_bound, n_evaluations, cut=cut, proven=proven, go_on=go_on)


def untrimmed(classifier: BayesianClassifier, kept: Sequence[int] | None = None) -> Trimming:
    """Return the trimming that agrees always: it keeps all features, or `kept`, if no others change a decision."""
    places = range(classifier.n_features) if kept is None else kept
    return trimming_of(classifier, places, (1.0, 1.0), 1.0, 0, threshold=classifier.threshold)


# What a search over feature subsets finds.

# Agreements closer than this count as equal. An agreement is a sum of products of probabilities that add up to 1. If no
# product goes through more than n operations of floating-point numbers, rounding changes the sum by at most n * 2^-53
# (Higham 2002, section 4.2). Here n is less than 2^12: one for each feature, at most 2^10 for terms that are added up
# in any order, less than 2^6 for those that are added up in pairs, and 2^9 in each of the three cumulative sums (of two
# classes, to find the best threshold, and of tails). So an agreement is at most 4.6e-13 off, and two that are equal,
# computed in different ways or of copies of features, differ by less than this.
AGREEMENT_TOLERANCE = 1e-12


@dataclass(frozen=True)
class SearchResult:
    """The best subset found, and what is proven about it.

    Attributes
    ----------
    features : tuple of int
        In the order of the classifier.
    agreement : float
        For naive Bayes with a positive class, the maximum potential agreement of the subset.
    upper_bound : float
        No subset within the budget has a higher agreement; 1 if the search was stopped before it had any bound.
    n_evaluations : int
        Number of evaluations of the criterion.
    cut : Cut or None
        The threshold interval of the subset, where the search has found it.
    proven : bool
        Whether no other subset is better, though `agreement` may be a lower bound, below `upper_bound`.
    complete : bool
        Whether the search has nothing left to do, however much time it gets.
    """

    features: tuple[int, ...]
    agreement: float
    upper_bound: float
    n_evaluations: int
    cut: Cut | None = None
    proven: bool = False
    complete: bool = False
