"""Sufficient explanations: the smallest evidence that keeps a classification against all that opposes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trimbench.conformant.distribution import ConformantDistribution
from trimbench.conformant.explained_row import checked_row, predicted_and_rival
from trimbench.conformant.explanation_views import ExplanationViews
from trimbench.conformant.reduced_problem import Vector


@dataclass(frozen=True, eq=False)
class Explanation(ExplanationViews):
    """Why a classifier prefers one class to another, for one row.

    Attributes
    ----------
    predicted, against : label
        The class that is explained and the class that it is compared with.
    features : tuple of int
        The explanation: the fewest support features that keep the classification while all opposing features are
        observed, strongest first. Positions in the layout, which are the columns where all features are binary.
    support, opposing : tuple of int
        The observed features whose removal does not, or does, move the expected prediction further towards
        `predicted`.
    evidence : ndarray of shape (n_features,)
        What observing each feature adds to the log-odds of `predicted` over `against`; 0 where it is missing.
    log_odds : float
        Of the whole row.
    kept_log_odds : float
        Of the explanation together with the opposing features.
    """

    predicted: Any
    against: Any
    features: tuple[int, ...]
    support: tuple[int, ...]
    opposing: tuple[int, ...]
    evidence: Vector
    log_odds: float
    kept_log_odds: float


def explain(model: ConformantDistribution, x: ArrayLike, against: Any = None) -> Explanation:
    """Return the sufficient explanation of the classification of one row, see `ConformantModel.explain`.

    The log-odds of a naive Bayes model are a sum over the observed features, so that taking support features by
    decreasing evidence gives the fewest. Of classes with equal scores the first is predicted, as in
    `ConformantModel.predict` and by the classifier itself (the paper counts an even prediction as the second).

    References
    ----------
    Khosravi et al. (2019), Definitions 4 and 5.
    """
    row = checked_row(model, x)
    winner, other = predicted_and_rival(model, model.decision_scores(row[None])[0], against)
    evidence = feature_evidence(model, row, winner, other)
    observed = ~np.isnan(row[[columns[0] for columns in model.layout.features]])
    base = float(model.log_prior[winner] - model.log_prior[other])
    # Definition 4 counts a feature without evidence as support of class 1 and as opposing class 0.
    is_support = observed & ((evidence >= 0) if winner > other else (evidence > 0))
    support, opposing = np.flatnonzero(is_support), np.flatnonzero(observed & ~is_support)
    ordered = support[np.argsort(-evidence[support], kind="stable")]
    against_it = base + float(evidence[opposing].sum())
    log_odds = against_it + float(evidence[ordered].sum())
    reached = against_it + np.concatenate([[0.0], np.cumsum(evidence[ordered])])
    reached[-1] = log_odds
    # An even prediction is the first of the two classes.
    enough = reached > 0 if winner > other else reached >= 0
    enough[-1] = True  # a row that is even up to rounding
    size = int(np.argmax(enough))
    return Explanation(
        model.classes[winner],
        model.classes[other],
        tuple(ordered[:size].tolist()),
        tuple(support.tolist()),
        tuple(opposing.tolist()),
        evidence,
        log_odds,
        float(reached[size]),
    )


def explain_by_weight(model: ConformantDistribution, explanation: Explanation, x: ArrayLike) -> tuple[int, ...]:
    """Return the baseline of Figure 6: the same number of support features, by the size of their weights.

    A weight says what flipping a value does to the log-odds, not what its absence does. For a categorical feature, the
    largest difference between the weight of its value and that of another counts.

    Parameters
    ----------
    model : ConformantModel
    explanation : Explanation
        Of the same row.
    x : array of shape (n_columns,)
    """
    row = checked_row(model, x)
    labels = model.classes.tolist()
    winner, other = labels.index(explanation.predicted), labels.index(explanation.against)
    difference = model.weights[:, winner] - model.weights[:, other]
    strength = np.zeros(model.layout.n_features)
    groups = set(model.layout.categorical)
    for place, columns in enumerate(model.layout.features):
        if columns in groups and not np.isnan(row[columns[0]]):
            value = float(np.nansum(row[list(columns)] * difference[list(columns)]))
            strength[place] = float(np.abs(difference[list(columns)] - value).max())
        else:
            strength[place] = abs(float(difference[columns[0]]))
    support = np.array(explanation.support, dtype=np.intp)
    ordered = support[np.argsort(-strength[support], kind="stable")]
    return tuple(ordered[: len(explanation.features)].tolist())


def feature_evidence(model: ConformantDistribution, row: Vector, winner: int, other: int) -> Vector:
    """Return what observing each feature adds to the log-odds of one class over another, shape (n_features,)."""
    difference = model.weights[:, winner] - model.weights[:, other]
    by_column = np.where(np.isnan(row), 0.0, row) * difference
    observed = np.bincount(model.layout.feature_of_column, weights=by_column, minlength=model.layout.n_features)
    absent = np.isnan(row[[columns[0] for columns in model.layout.features]])
    expected = model.missing_scores[:, winner] - model.missing_scores[:, other]
    evidence: Vector = np.where(absent, 0.0, observed - expected)
    return evidence
