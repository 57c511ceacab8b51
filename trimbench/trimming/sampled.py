"""Trimming of classifiers that are too large for exact agreements, on drawn rows, with confidence intervals.

A subset is searched for on rows drawn from the classifier's distribution; its threshold is the best one on the same
rows. On other rows, drawn independently afterwards, the decisions of the original and of the trimmed classifier are
both exact; how often they agree there gives a confidence interval for the expected classification agreement.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from trimbench._numba import clock as seconds_now
from trimbench._typing import IntegerArray
from trimbench.networks.inference.joint import ContractionTooLarge
from trimbench.networks.inference.row_inference import Lookup
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import Instances, best_cut, is_positive
from trimbench.trimming.problem import Choice, Limits
from trimbench.trimming.result import Trimming, trimming_of, untrimmed
from trimbench.trimming.search.exchange import DrawnRows, PosteriorSearch, RowSearch

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
# About how many multiplications a second allows, where tables are small.
_OPERATIONS_PER_SECOND = 2**28
# For the upper bound.
_LOOKUPS_PER_SECOND = 2 * 10**7
_LONGEST, _LONGEST_BOUND, _MOMENT = 60.0, 10.0, 0.1
# Rows behind an interval for a classifier that has no exact engine.
_N_DRAWN = 20_000
# Shares of the time for the search, and for what comes before the final rows.
_SEARCH_SHARE, _PREPARED_SHARE = 0.6, 0.7
# Of the longest time, for the final rows where time is not limited: in operations, so that the result is reproducible.
_EVALUATION_SHARE = 0.4


def trim_by_sampling(
    classifier: BayesianClassifier,
    choice: Choice,
    limits: Limits,
    *,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    width: float = WIDTH,
) -> tuple[Trimming, bool]:
    """Trim a classifier of any size from rows drawn from its distribution.

    The interval is made about as wide as `width`, if time allows: less time means fewer rows. The second value says
    whether the search was as long, and on as many rows, as without limits. Raises ContractionTooLarge if the
    probabilities of single rows are too expensive, because too many hidden variables depend on each other.
    """
    needed = classifier.rows.relevant | choice.required
    if not needed & set(choice.forbidden) and choice.is_affordable(needed):  # with all that matters it always agrees
        return untrimmed(classifier, choice.features({choice.unit_of[feature] for feature in needed})), True
    clock = _Clock(seconds_now(), limits.seconds_left(), limits.evaluation_limit)
    searching, evaluating, bounding, kicking = (np.random.default_rng([seed, purpose]) for purpose in range(4))
    n_search = _affordable_rows(classifier, clock)
    rows = _drawn(classifier, n_search, searching, clock)
    # Half of the time is for the exact posteriors.
    search = RowSearch(classifier, choice, rows, partial(clock.has, 0.5 * _SEARCH_SHARE))
    found = search.best()
    few = DrawnRows(rows.codes[:_EXACT_ROWS], rows.posterior[:_EXACT_ROWS], rows.decision[:_EXACT_ROWS], rows.seconds)
    exact = PosteriorSearch(classifier, choice, few, partial(clock.has, _SEARCH_SHARE), search.n_evaluations)
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
    n_wanted = rows_for_width(on_search, width, confidence)
    n_rows = min(n_wanted, clock.rows_left(rows, classifier.rows.operations))
    no_limit = _Clock(clock.start, None)
    n_unlimited = min(n_wanted, no_limit.rows_left(rows, classifier.rows.operations))
    agreed = 0
    for start in range(0, n_rows, _BATCH):
        codes = classifier.draw(min(_BATCH, n_rows - start), evaluating)
        agreed += int((classifier.decide(codes) == trimmed.decide(codes[:, list(kept)])).sum())
    low, high = binomial_interval(agreed, n_rows, confidence)
    share, n_searched = agreed / n_rows, exact.n_evaluations
    trimming = trimming_of(
        classifier, kept, (low, high), bound, n_searched, threshold=threshold, agreement=share, confidence=confidence
    )
    on_all_rows = n_search == _affordable_rows(classifier, no_limit) and n_rows == n_unlimited
    return trimming, on_all_rows and not clock.has_stopped


def drawn_agreement(
    classifier: BayesianClassifier, kept: Sequence[int], threshold: float | None
) -> tuple[float, float]:
    """Return a confidence interval of the agreement of a subset, from rows that no selection has seen."""
    trimmed = classifier.with_features([classifier.features[i] for i in kept], threshold)
    if threshold is not None:
        codes = classifier.draw(_N_DRAWN, np.random.default_rng([0, 1]))
    else:
        # Rows stratified by class: the variance is lower than the interval allows for.
        rng = np.random.default_rng([2, *kept])
        try:
            codes = classifier.draw_by_class(_N_DRAWN, rng)
        except ContractionTooLarge:
            codes = classifier.draw(_N_DRAWN, rng)
    agreed = classifier.decide(codes) == trimmed.decide(codes[:, list(kept)])
    return binomial_interval(int(agreed.sum()), _N_DRAWN, CONFIDENCE)


def sampled_bound(classifier: BayesianClassifier, choice: Choice, seconds: float | None) -> float:
    """Return an upper bound on the agreement of all allowed subsets, from drawn rows, in about `seconds`."""
    longest = _LONGEST_BOUND if seconds is None else min(max(seconds, _MOMENT), _LONGEST_BOUND)
    work = int(_LOOKUPS_PER_SECOND * longest)
    ranking, bounding = (classifier.draw(n, np.random.default_rng([1, n])) for n in (_FEWEST_ROWS, _BOUND_ROWS))
    if not classifier.is_naive_bayes:
        return upper_bound(classifier, choice, ranking, bounding, CONFIDENCE, work)
    # Two bounds from the same rows: each may be wrong half as often.
    each = 0.5 + 0.5 * CONFIDENCE
    by_accuracy = agreement_bound(classifier, choice, bounding, each)
    return min(by_accuracy, upper_bound(classifier, choice, ranking, bounding, each, work))


@dataclass
class _Clock:
    """How much of the time has passed, and whether that stopped anything."""

    start: float
    limit: float | None
    evaluation_limit: int | None = None
    has_stopped: bool = False

    def has(self, share: float, n_evaluations: int = 0) -> bool:
        """Return whether less than this share of the time has passed, and another evaluation is allowed."""
        in_time = self.limit is None or seconds_now() - self.start < share * self.limit
        allowed = self.evaluation_limit is None or n_evaluations < self.evaluation_limit
        self.has_stopped = self.has_stopped or not (in_time and allowed)
        return in_time and allowed

    @property
    def seconds(self) -> float:
        """The time limit, but at least a moment."""
        return _LONGEST if self.limit is None else max(self.limit, _MOMENT)

    def rows_left(self, rows: DrawnRows, operations: int) -> int:
        """Return how many rows the rest of the time allows, going by what `rows` took, or by `operations` for each."""
        if self.limit is None:
            return max(_FEWEST_ROWS, int(_EVALUATION_SHARE * _LONGEST * _OPERATIONS_PER_SECOND / max(operations, 1)))
        left = 0.9 * (self.start + self.limit - seconds_now())
        # The trimmed classifier takes about as long as the original.
        return max(_FEWEST_ROWS, int(left * len(rows.codes) / max(2.0 * rows.seconds, 1e-6)))


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


def _drawn(classifier: BayesianClassifier, n_rows: int, rng: np.random.Generator, clock: _Clock) -> DrawnRows:
    """Draw at most `n_rows` rows, fewer if there is no time."""
    start = seconds_now()
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
    seconds = seconds_now() - start
    return DrawnRows(together, np.concatenate(posteriors), np.concatenate(decisions), seconds)


def _with_threshold(
    classifier: BayesianClassifier, choice: Choice, units: Sequence[int], rows: DrawnRows, seconds: float
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


# An upper bound on the agreement of every affordable subset, from what it has to leave out.

# How many left-out features are looked at together.
_MAX_LEFT_OUT = 4
_MOST_VALUES = 64
# Fewer rows than this say too little.
_FEWEST_ROWS_LEFT_OUT = 100
# Multiplications, in tables of hidden variables, that take as long as looking up one entry.
_PRODUCTS = 10


def upper_bound(
    classifier: BayesianClassifier,
    choice: Choice,
    ranking_rows: IntegerArray,
    rows: IntegerArray,
    confidence: float,
    max_lookups: int,
) -> float:
    """Return an upper bound on the agreement of every affordable subset that holds with the given confidence.

    Of a set of features that matter most, every affordable subset leaves out some: the bound is the highest agreement
    without any such combination. 1 where rows are too expensive, or no set of features makes a difference.

    Parameters
    ----------
    ranking_rows : ndarray of int, shape (n_rows, n_features)
        Rows that decide which features are in the set.
    rows : ndarray of int, shape (n_rows, n_features)
        Other rows, to estimate the agreements: the first ones, if all of them are too expensive.
    max_lookups : int
        About how many entries of tables may be looked up.
    """
    with suppress(ContractionTooLarge):
        relevant = sorted(classifier.rows.relevant)
        small = [i for i in relevant if classifier.cardinalities[i] <= _MOST_VALUES]
        once = sum(hidden.operations for hidden in classifier.whole_rows.sums) // _PRODUCTS
        each_row = once + sum(_effort(classifier, (i,)) for i in small)
        # Which features are ranked first does not decide whether the bound holds.
        ranking = _LeftOutRows.of(classifier, ranking_rows[: max(1, int(max_lookups / max(each_row, 1)))])
        means = {i: float(ranking.potential((i,)).mean()) for i in small}
        order = sorted(small, key=means.__getitem__)
        best: tuple[list[int], int, int] | None = None
        for left_out in range(1, _MAX_LEFT_OUT + 1):
            chosen = _cover(choice, order, left_out)
            if chosen is None:
                break
            each_row = once + sum(_effort(classifier, left) for left in itertools.combinations(chosen, left_out))
            n_rows = min(len(rows), max_lookups // each_row)
            if n_rows < (len(rows) if best else _FEWEST_ROWS_LEFT_OUT):
                break
            best = chosen, left_out, n_rows
        if best is None:
            return 1.0
        chosen, left_out, n_rows = best
        left_outs = list(itertools.combinations(chosen, left_out))
        each = 1.0 - (1.0 - confidence) / len(left_outs)
        measured = _LeftOutRows.of(classifier, rows[:n_rows])
        width = 1.0 - 1.0 / classifier.n_classes
        return min(1.0, max(mean_upper_bound(measured.potential(left), width, each) for left in left_outs))
    return 1.0


def _decided(classifier: BayesianClassifier, logs: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the decision on each row and log Pr(row), from log Pr(state, row) of shape (n_rows, n_states)."""
    weights = classifier.weights_of(logs)
    with np.errstate(divide="ignore"):
        total = logs.max(axis=1) + np.log(weights.sum(axis=0))
    return classifier.decided(weights).astype(np.intp), total


def _effort(classifier: BayesianClassifier, features: Sequence[int]) -> int:
    """Return how many table entries a row looks up for all combinations of values of some features."""
    inference = classifier.whole_rows
    touched = sum(not set(features).isdisjoint(lookup.columns) for lookup in inference.lookups)
    values = math.prod(classifier.cardinalities[i] for i in features)
    # A few operations on each state of the target come with every combination of values.
    looked_up = (touched + 3) * (inference.n_states + 1)
    summed = sum(hidden.operations for hidden in inference.sums if not set(features).isdisjoint(hidden.columns))
    return values * (looked_up + summed // _PRODUCTS)


def _cover(choice: Choice, order: Sequence[int], left_out: int) -> list[int] | None:
    """Return the first features of `order` such that every affordable subset leaves out at least `left_out` of them."""
    chosen: list[int] = []
    units: set[int] = set()
    for feature in order:
        unit = choice.unit_of.get(feature)
        if unit in units:
            continue
        if unit is not None:
            units.add(unit)
        chosen.append(feature)
        if len(chosen) - choice.n_affordable(units) >= left_out:
            return chosen
    return None


@dataclass(frozen=True, eq=False)
class _LeftOutRows:
    """Rows with log Pr(c, f), prepared for changes of some values."""

    classifier: BayesianClassifier
    codes: IntegerArray
    logs: _Logs
    # One for each sum over hidden variables, shape (n_rows, n_states).
    sums: tuple[NDArray[np.float64], ...]

    @classmethod
    def of(cls, classifier: BayesianClassifier, codes: IntegerArray) -> _LeftOutRows:
        inference = classifier.whole_rows
        sums = tuple(hidden.logs(codes).T for hidden in inference.sums)
        return cls(classifier, codes, _Logs.of(inference.lookups, codes), sums)

    def potential(self, left_out: Sequence[int]) -> NDArray[np.float64]:
        """Return the probability of the likeliest decision on each row without some features, shape (n_rows,)."""
        classifier, n_rows = self.classifier, len(self.codes)
        inference = classifier.whole_rows
        touched = [f for f in inference.lookups if not set(left_out).isdisjoint(f.columns)]
        sums = [hidden for hidden in inference.sums if not set(left_out).isdisjoint(hidden.columns)]
        same = (logs for hidden, logs in zip(inference.sums, self.sums, strict=True) if hidden not in sums)
        rest = self.logs.without(_Logs.of(touched, self.codes))
        fixed = sum(same, np.zeros(1))
        changed = self.codes.copy(order="F")
        chances = np.full((classifier.n_classes, n_rows), -np.inf)
        for assignment in itertools.product(*(range(classifier.cardinalities[i]) for i in left_out)):
            for place, value in zip(left_out, assignment, strict=True):
                changed[:, place] = value
            logs = rest.together(_Logs.of(touched, changed)) + fixed
            logs = sum((hidden.logs(changed).T for hidden in sums), logs)
            decided, total = _decided(classifier, logs)
            at = (decided, np.arange(n_rows))
            chances[at] = np.logaddexp(chances[at], total)
        return np.asarray(1.0 / np.exp(chances - chances.max(axis=0)).sum(axis=0))


@dataclass(frozen=True, eq=False)
class _Logs:
    """Sums of logarithms; those of 0 are counted apart, to be subtracted again; arrays of shape (n_states, n_rows)."""

    finite: NDArray[np.float64]
    zeros: NDArray[np.float64]

    @classmethod
    def of(cls, lookups: Sequence[Lookup], codes: IntegerArray) -> _Logs:
        n_states = max((len(lookup.logs) for lookup in lookups), default=1)
        finite, zeros = np.zeros((n_states, len(codes))), np.zeros((n_states, len(codes)))
        for lookup in lookups:
            impossible = np.isneginf(lookup.logs)
            if impossible.any():
                Lookup(lookup.columns, lookup.strides, impossible.astype(np.float64)).add_to(zeros, codes)
                lookup = Lookup(lookup.columns, lookup.strides, np.where(impossible, 0.0, lookup.logs))
            lookup.add_to(finite, codes)
        return cls(finite, zeros)

    def without(self, other: _Logs) -> _Logs:
        return _Logs(self.finite - other.finite, self.zeros - other.zeros)

    def together(self, other: _Logs) -> NDArray[np.float64]:
        """Return the sum with another, shape (n_rows, n_states)."""
        return np.where(self.zeros + other.zeros > 0.5, -np.inf, self.finite + other.finite).T


# Confidence intervals from independent samples, valid for every sample size.


def binomial_interval(successes: int, n: int, confidence: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a probability, which covers it with at least the given confidence."""
    from scipy.special import betaincinv

    tail = 0.5 * (1.0 - confidence)
    low = float(betaincinv(successes, n - successes + 1, tail)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, n - successes, 1.0 - tail)) if successes < n else 1.0
    return low, high


def rows_for_width(share: float, width: float, confidence: float) -> int:
    """Return how many rows make the interval of a probability near `share` at most about `width` wide."""
    from scipy.special import ndtri

    spread = float(ndtri(0.5 + 0.5 * confidence))
    # The interval is widest at one half; a share next to 1 is not known exactly.
    variance = max(share * (1.0 - share), 0.002)
    return math.ceil(1.05 * 4.0 * variance * (spread / width) ** 2 + 8.0 * spread / width)


def mean_upper_bound(values: NDArray[np.float64], width: float, confidence: float) -> float:
    """Return an upper bound on a mean, from independent draws in an interval of the given width.

    The empirical Bernstein bound of Maurer and Pontil (2009), Theorem 4.
    """
    n = values.size
    logarithm = math.log(2.0 / (1.0 - confidence))
    spread = math.sqrt(2.0 * float(values.var(ddof=1)) * logarithm / n)
    return float(values.mean()) + spread + 7.0 * width * logarithm / (3.0 * (n - 1))


# How often a naive Bayes classifier of several classes can be right at most, whatever features the budget allows.


def highest_accuracy(classifier: BayesianClassifier, choice: Choice) -> float:
    """Return an upper bound on the probability that a classifier with an allowed subset predicts the true class.

    Raises ValueError if the features are not independent given the class.
    """
    prior, tables = classifier.prior, classifier.tables
    errors = []
    for i, j in itertools.combinations(range(classifier.n_classes), 2):
        mean = 0.5 * float(prior[i] + prior[j])
        if prior[i] * prior[j] > 0:
            with np.errstate(divide="ignore"):
                losses = [-float(np.log(min(1.0, np.sqrt(table[i] * table[j]).sum()))) for table in tables]
            # At least the product of the Bhattacharyya coefficients of an allowed subset.
            overlap = math.exp(-choice.highest_gain(losses))
            inside = 1.0 - float(prior[i] * prior[j]) * (overlap / mean) ** 2
            errors.append((mean * (1.0 - math.sqrt(max(0.0, inside))), i, j))
    error, used = 0.0, set[int]()
    # Disjoint pairs of classes, the largest errors first.
    for least, i, j in sorted(errors, reverse=True):
        if not {i, j} & used:
            error, used = error + least, used | {i, j}
    return 1.0 - error


def agreement_bound(classifier: BayesianClassifier, choice: Choice, rows: IntegerArray, confidence: float) -> float:
    """Return an upper bound on the agreement of every allowed subset that holds with the given confidence.

    A trimming agrees with the original only where it is right itself or the original is wrong.

    Parameters
    ----------
    rows : ndarray of int, shape (n_rows, n_features)
        Drawn from the classifier's distribution.
    """
    chances = classifier.weights(rows)
    wrong = 1.0 - chances.max(axis=0) / chances.sum(axis=0)
    width = 1.0 - 1.0 / classifier.n_classes
    return min(1.0, highest_accuracy(classifier, choice) + mean_upper_bound(wrong, width, confidence))
