"""Feature selection by expected same-decision probability: the threshold stays, every subset is tried.

The baseline FS-SDD of the trimming paper's Table 6 (Choi, Darwiche and Van den Broeck, 2017).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.classifier import BayesianClassifier, checked_classifier
from trimbench.trimming.costs import checked_budget, checked_costs
from trimbench.trimming.engines.dense import DenseEngine
from trimbench.trimming.search.result import AGREEMENT_TOLERANCE
from trimbench.trimming.search.subset_batches import SubsetBatch, subset_batches
from trimbench.trimming.thresholds import is_positive

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class SameDecisionSelection:
    """The subset that FS-SDD selects.

    Attributes
    ----------
    features : tuple of str
        In the order of the classifier. Of several best subsets the smallest, then the first in lexical order of the
        positions of its features.
    agreement : float
        Expected same-decision probability: the expected agreement with the threshold kept (Proposition 4).
    n_evaluations : int
        Number of non-empty subsets within the budget, all of which were evaluated.
    tied : tuple of tuples of str
        All subsets of that agreement, `features` among them.
    """

    features: tuple[str, ...]
    agreement: float
    n_evaluations: int
    tied: tuple[tuple[str, ...], ...]


def select_by_same_decision(
    classifier: BayesianClassifier,
    budget: float,
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None = None,
) -> SameDecisionSelection:
    """Select the features within a budget that keep the most decisions, at the original threshold.

    Parameters
    ----------
    classifier : BayesianClassifier
        Small enough for the dense engine.
    budget : float
        Largest sum of costs, 0 or more.
    costs : mapping from feature name to cost, or sequence of n_features costs, optional
        0 or more. Default: 1 for each feature.

    Returns
    -------
    SameDecisionSelection
        Without features where none is affordable.

    Raises
    ------
    ValueError
        When an argument is out of range or there are too many features for the dense engine.
    """
    price = checked_costs(checked_classifier(classifier).features, costs)
    root = DenseEngine.build(classifier).root
    n_evaluations, highest = 0, 0.0
    leaders: list[tuple[float, tuple[int, ...]]] = []
    for batch in subset_batches(root, price, checked_budget(budget)):
        n_evaluations += len(batch.kept) if batch.shape else 0
        agreements = _same_decision(classifier, batch)
        highest = max(highest, float(np.max(agreements)))
        for row in np.flatnonzero(agreements >= highest - AGREEMENT_TOLERANCE):
            leaders.append((float(agreements[row]), tuple(sorted(batch.kept[row].tolist()))))
    best = sorted((kept for value, kept in leaders if value >= highest - AGREEMENT_TOLERANCE), key=_smallest_first)
    tied = tuple(tuple(classifier.features[i] for i in kept) for kept in best)
    return SameDecisionSelection(tied[0], highest, n_evaluations, tied)


def _smallest_first(kept: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return len(kept), kept


def _same_decision(classifier: BayesianClassifier, batch: SubsetBatch) -> NDArray[np.float64]:
    """Return the expected same-decision probability of each subset of a batch."""
    positive, negative, signed = batch.instances(classifier)
    kept = is_positive(positive, negative, classifier.threshold)
    return np.asarray(0.5 * (1.0 + np.where(kept, signed, -signed).sum(axis=1)))
