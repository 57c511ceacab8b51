"""Trimming of classifiers that are too large for exact agreements, with confidence intervals from drawn rows.

A subset is searched for on rows drawn from the classifier's distribution; its threshold is the best one on the same
rows. On other rows, drawn independently afterwards, the decisions of the original and of the trimmed classifier are
both exact; how often they agree there gives a confidence interval for the expected classification agreement.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.contraction import ContractionTooLarge
from trimbench.networks.value_codes import IntegerArray
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.confidence import binomial_interval, rows_for_width
from trimbench.trimming.costs import Choice
from trimbench.trimming.left_out import upper_bound
from trimbench.trimming.search.posterior_search import PosteriorSearch
from trimbench.trimming.search.row_search import RowSearch, search_rows
from trimbench.trimming.thresholds import Instances, best_cut, is_positive

# A network is sampled if no exact engine is likely to be ready within this time.
EXACT_SECONDS = 30.0
CONFIDENCE = 0.99
WIDTH = 0.01
_SEARCH_ROWS, _BOUND_ROWS, _RANKING_ROWS, _FEWEST_ROWS = 20_000, 8_000, 1_000, 500
# With little time, fewer rows leave time for more subsets.
_FEWEST_SEARCH_ROWS, _SEARCH_ROWS_PER_SECOND = 2_000, 3_000
# For posteriors of trimmed classifiers.
_EXACT_ROWS = 6_000
_BATCH = 2**14
# About how many products of two numbers a second takes, where tables are small.
_OPERATIONS_PER_SECOND = 2**28
# For the upper bound.
_LOOKUPS_PER_SECOND = 2 * 10**7
_LONGEST, _MOMENT = 60.0, 0.1
# Shares of the time for the search, and for what comes before the final rows.
_SEARCH_SHARE, _PREPARED_SHARE = 0.6, 0.7
# Of the longest time, for the final rows where time is not limited: in operations, so that the result is reproducible.
_EVALUATION_SHARE = 0.4


@dataclass(frozen=True)
class SampledTrimming:
    """A trimming and what samples say about it.

    Attributes
    ----------
    features : tuple of int
        Positions of the features that are kept.
    threshold : float
    agreement : float
        Share of the rows on which both decide alike.
    interval : tuple of float
        Holds the expected classification agreement with the given confidence.
    confidence : float
        Of the interval, and of the upper bound; 1 where they are proven.
    upper_bound : float
        With the given confidence, no trimming within the budget has a higher agreement.
    n_evaluations : int
        Number of subsets that were scored.
    n_rows : int
        Rows behind the interval.
    """

    features: tuple[int, ...]
    threshold: float
    agreement: float
    interval: tuple[float, float]
    confidence: float
    upper_bound: float
    n_evaluations: int
    n_rows: int


def trim_by_sampling(
    classifier: BayesianClassifier,
    choice: Choice,
    *,
    time_limit: float | None = None,
    evaluation_limit: int | None = None,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    width: float = WIDTH,
) -> SampledTrimming:
    """Trim a classifier of any size from rows drawn from its distribution.

    Parameters
    ----------
    classifier : BayesianClassifier
    choice : Choice
        The subsets that are allowed.
    time_limit : float, optional
        Seconds. Less time means fewer rows, and a wider interval.
    evaluation_limit : int, optional
        Subsets after which the search stops.
    seed : int
        Decides which rows are drawn.
    confidence : float in (0, 1)
    width : float
        The interval is made about so wide, if time allows.

    Returns
    -------
    SampledTrimming

    Raises
    ------
    ContractionTooLarge
        When the probabilities of single rows are too expensive, because too many hidden variables depend on each
        other; a ValueError.
    """
    lossless = _without_loss(classifier, choice)
    if lossless is not None:
        return lossless
    clock = _Clock(time.monotonic(), time_limit)
    searching, evaluating, bounding, kicking = (np.random.default_rng([seed, purpose]) for purpose in range(4))
    n_search = _affordable_rows(classifier, clock)
    rows = _drawn(classifier, n_search, searching, clock)
    search = RowSearch(rows.codes, rows.posterior, rows.decision, classifier.cardinalities)

    def may_go_on(n_evaluations: int, share: float = _SEARCH_SHARE) -> bool:
        return clock.has(share) and (evaluation_limit is None or n_evaluations < evaluation_limit)

    # Half of the time is for the exact posteriors.
    found = search_rows(search, choice, lambda n_evaluations: may_go_on(n_evaluations, 0.5 * _SEARCH_SHARE))
    few = slice(_EXACT_ROWS)
    exact = PosteriorSearch(
        classifier, choice, rows.codes[few], rows.posterior[few], rows.decision[few], may_go_on, search.n_evaluations
    )
    improved = exact.best_from(found.units, kicking)
    units = improved.units if improved.score > 0 else found.units
    kept, threshold = _with_threshold(classifier, choice, units, rows, 0.3 * clock.seconds)
    trimmed = classifier.with_features([classifier.features[i] for i in kept], threshold)
    on_search = float((trimmed.decide(rows.codes[:, list(kept)]) == rows.decision).mean())
    # A bound from fewer rows is better than none.
    seconds = min(clock.seconds, _LONGEST) if clock.has(_PREPARED_SHARE) else _MOMENT
    work = int(seconds * _LOOKUPS_PER_SECOND)
    bounding_rows = classifier.draw(min(_BOUND_ROWS, n_search), bounding)
    bound = upper_bound(classifier, choice, rows.codes[:_RANKING_ROWS], bounding_rows, confidence, work)
    n_rows = min(rows_for_width(on_search, width, confidence), clock.rows_left(rows, classifier.rows.operations))
    agreed = 0
    for start in range(0, n_rows, _BATCH):
        codes = classifier.draw(min(_BATCH, n_rows - start), evaluating)
        agreed += int((classifier.decide(codes) == trimmed.decide(codes[:, list(kept)])).sum())
    low, high = binomial_interval(agreed, n_rows, confidence)
    return SampledTrimming(
        features=kept,
        threshold=threshold,
        agreement=agreed / n_rows,
        interval=(low, high),
        confidence=confidence,
        upper_bound=max(bound, high),
        n_evaluations=exact.n_evaluations,
        n_rows=n_rows,
    )


@dataclass(frozen=True)
class _Clock:
    """How much of the time has passed."""

    start: float
    limit: float | None

    def has(self, share: float) -> bool:
        """Return whether less than this share of the time has passed."""
        return self.limit is None or time.monotonic() - self.start < share * self.limit

    @property
    def seconds(self) -> float:
        """The time that there is; a moment in any case."""
        return _LONGEST if self.limit is None else max(self.limit, _MOMENT)

    def rows_left(self, rows: _Rows, operations: int) -> int:
        """Return how many rows the rest of the time allows, after others, if one takes so many operations."""
        if self.limit is None:
            return max(_FEWEST_ROWS, int(_EVALUATION_SHARE * _LONGEST * _OPERATIONS_PER_SECOND / max(operations, 1)))
        left = 0.9 * (self.start + self.limit - time.monotonic())
        # The trimmed classifier takes about as long as the original.
        return max(_FEWEST_ROWS, int(left * len(rows.codes) / max(2.0 * rows.seconds, 1e-6)))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows with the posterior and the decision of the original, and how long they took."""

    codes: IntegerArray
    posterior: NDArray[np.float64]
    decision: NDArray[np.bool_]
    seconds: float


def _without_loss(classifier: BayesianClassifier, choice: Choice) -> SampledTrimming | None:
    """Return a trimming with all features that matter, if they are affordable: it agrees always."""
    needed = classifier.rows.relevant | choice.required
    if needed & set(choice.forbidden) or not choice.is_affordable(needed):
        return None
    return SampledTrimming(tuple(sorted(needed)), classifier.threshold, 1.0, (1.0, 1.0), 1.0, 1.0, 0, 0)


def _affordable_rows(classifier: BayesianClassifier, clock: _Clock) -> int:
    """Return how many rows to search on; ContractionTooLarge if there is no time for enough of them."""
    affordable = int(0.3 * clock.seconds * _OPERATIONS_PER_SECOND / max(classifier.rows.operations, 1))
    if affordable < _FEWEST_ROWS:
        raise ContractionTooLarge(
            f"a row takes {classifier.rows.operations:.2g} operations, because hidden variables of the network depend "
            f"on each other: too many for {clock.seconds:g} seconds; give the classifier more features, so that fewer "
            "variables are hidden, or more time"
        )
    return min(_SEARCH_ROWS, affordable, max(_FEWEST_SEARCH_ROWS, int(clock.seconds * _SEARCH_ROWS_PER_SECOND)))


def _drawn(classifier: BayesianClassifier, n_rows: int, rng: np.random.Generator, clock: _Clock) -> _Rows:
    """Draw up to so many rows, fewer if there is no time."""
    start = time.monotonic()
    codes, posteriors, decisions = [], [], []
    step = max(_FEWEST_ROWS, n_rows // 8)
    for first in range(0, n_rows, step):
        batch = classifier.draw(min(step, n_rows - first), rng)
        positive, negative = classifier.weights(batch)
        codes.append(batch)
        posteriors.append(positive / (positive + negative))
        decisions.append(is_positive(positive, negative, classifier.threshold))
        if not clock.has(0.25 * _SEARCH_SHARE):
            break
    together = np.asfortranarray(np.concatenate(codes))
    seconds = time.monotonic() - start
    return _Rows(together, np.concatenate(posteriors), np.concatenate(decisions), seconds)


def _with_threshold(
    classifier: BayesianClassifier, choice: Choice, units: Sequence[int], rows: _Rows, seconds: float
) -> tuple[tuple[int, ...], float]:
    """Return the features of the units with the threshold that is best on the rows.

    Units that were bought last are given back while the posterior of the trimmed classifier takes too long.
    """
    signed = np.where(rows.decision, 1.0, -1.0) / len(rows.decision)
    n_required = len(choice.required_units)
    for n_units in range(len(units), n_required - 1, -1):
        kept = choice.features(units[:n_units])
        trimmed = classifier.with_features([classifier.features[i] for i in kept], classifier.threshold)
        codes = rows.codes[:, list(kept)]
        try:
            operations = trimmed.rows.operations
        except ContractionTooLarge:
            continue
        n_distinct = min(len(codes), math.prod(trimmed.cardinalities))
        if operations * n_distinct <= seconds * _OPERATIONS_PER_SECOND:
            positive, negative = trimmed.weights(codes)
            cut = best_cut(Instances(positive, negative, signed), classifier.threshold)
            return kept, cut.representative(classifier.threshold)
    raise ContractionTooLarge(
        f"the posterior given {n_required or 'no'} features takes too long, because hidden variables of the network "
        "depend on each other; require features closer to the target, or allow more time"
    )
