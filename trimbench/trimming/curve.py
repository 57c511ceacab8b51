"""The best trimmings for several budgets, or several thresholds, at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trimbench.trimming.classifier import BayesianClassifier, checked_classifier
from trimbench.trimming.engines.choice import Engine, EngineName, make_engine
from trimbench.trimming.limits import checked_budget, checked_costs
from trimbench.trimming.model import check_possible, checked_threshold, short
from trimbench.trimming.result import AGREEMENT_TOLERANCE, Trimming
from trimbench.trimming.trim import trim

if TYPE_CHECKING:
    import pandas as pd


def trimming_curve(
    classifier: BayesianClassifier,
    budgets: Sequence[float],
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None = None,
    *,
    thresholds: Sequence[float] | None = None,
    engine: EngineName | Engine = "auto",
    time_limit: float | None = None,
    evaluation_limit: int | None = None,
) -> list[Trimming]:
    """Return the best trimming for each of several budgets, and each of several original thresholds.

    Each has a search of its own, for which a network is contracted or compiled once. Where a larger budget gains
    nothing, its trimming is that of the smaller one.

    Parameters
    ----------
    classifier : BayesianClassifier
    budgets : sequence of float
        0 or more.
    costs : mapping from feature name to cost, or sequence of n_features costs, optional
        0 or more. Default: 1 for each feature.
    thresholds : sequence of float in [0, 1], optional
        Default: that of the classifier, which does not matter otherwise.
    engine, evaluation_limit
        As in `trim`.
    time_limit : float, optional
        Seconds for each of the searches.

    Returns
    -------
    list of Trimming
        One for each budget, in their order; with several thresholds, those of the first come first.

    Raises
    ------
    ValueError
        When an argument is out of range or there are too many features for the engine.

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> classifier = tb.BayesianClassifier(model, positive="0")
    >>> [(trimming.features, trimming.agreement) for trimming in tb.trimming_curve(classifier, [0, 1])]
    [((), 0.52), (('x0',), 1.0)]
    """
    price = checked_costs(checked_classifier(classifier).features, costs)
    check_possible(classifier.model, classifier.target, classifier.evidence)
    within = [checked_budget(budget) for budget in _numbers(budgets, "budgets")]
    levels = [classifier.threshold]
    if thresholds is not None:
        levels = [checked_threshold(threshold) for threshold in _numbers(thresholds, "thresholds")]
    # The engine of a naive Bayes classifier depends on the threshold, and is quick to build.
    if isinstance(engine, str) and not classifier.is_naive_bayes:
        engine = make_engine(classifier, engine)
    trimmings: list[Trimming] = []
    for level in levels:
        original = classifier.with_threshold(level)
        own = engine if isinstance(engine, str) else engine.with_threshold(level)
        best: dict[float, Trimming] = {}
        for budget in sorted(set(within)):
            found = trim(original, budget, price, engine=own, time_limit=time_limit, evaluation_limit=evaluation_limit)
            before = next(reversed(best.values()), None)
            least = before.agreement_interval[0] + AGREEMENT_TOLERANCE if before else 0.0
            if before and found.optimal and found.agreement_interval[1] <= least:
                found = replace(before, n_evaluations=found.n_evaluations, upper_bound=found.upper_bound)
            best[budget] = found
        trimmings += [best[budget] for budget in within]
    return trimmings


def _numbers(values: Sequence[float], what: str) -> list[float]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        advice = "" if values is None else f"; write [{values}] for one alone"
        raise ValueError(f"{what} must be a sequence of numbers, got {short(values)}{advice}")
    found = list(values)
    if not found:
        raise ValueError(f"{what} must be a sequence of at least one number, got none")
    return found
