"""The probability of the same decision for every set of shown features at once, exact."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.decision_problem import DecisionProblem
from trimbench.conformant.reduced_problem import Matrix, Vector


def table_size(problem: DecisionProblem) -> float:
    """Return how many entries the largest table has; infinity if a real-valued feature needs infinitely many."""
    if any(feature.is_real for feature in problem.hidden):
        return math.inf
    size = 1
    for feature, observed in zip(problem.hidden, problem.observed, strict=True):
        size *= max(len(feature.values), 2) if observed else len(feature.values)
    return size


def changed_probabilities(problem: DecisionProblem) -> Vector:
    """Return P(another decision | shown features) for every set of observed features.

    Every completed row gets a 1 where its class differs. Then each feature in turn replaces its axis of values by an
    axis of two: hidden (the average over the values in a state) and shown (the entry of its value). All sets together
    take as many steps as there are rows, times the features.

    Returns
    -------
    ndarray of shape (2, ..., 2)
        One axis for each observed feature; 0 for hidden, 1 for shown.
    """
    changed = _changed_rows(problem)
    observed = np.flatnonzero(problem.observed)
    logs = _log_posteriors(problem, observed)
    result = np.zeros(logs.shape[1:])
    for k in range(problem.n_states):
        result += np.exp(logs[k]) * _averaged(problem, changed, k)
    return result


def _changed_rows(problem: DecisionProblem) -> Vector:
    margins = problem.base[:, None]
    for feature in problem.hidden:
        margins = (margins[:, :, None] + feature.values.T[:, None, :]).reshape(len(problem.base), -1)
    return np.asarray((margins < 0).any(axis=0), dtype=np.float64)


def _averaged(problem: DecisionProblem, changed: Vector, k: int) -> Matrix:
    """Return P(another decision | shown features, state) for every set."""
    table, done = changed, 1
    for place, feature in enumerate(problem.hidden):
        table = table.reshape(done, len(feature.values), -1)
        hidden = np.einsum("avb,v->ab", table, feature.chances[:, k])
        if problem.observed[place]:
            shown = table[:, _value_at(problem, place)]
            table = np.stack([hidden, shown], axis=1)
            done *= 2
        else:
            table = hidden
    return table.reshape((2,) * int(problem.observed.sum()))


def _value_at(problem: DecisionProblem, place: int) -> int:
    """Return which value of a feature is the observed one, or adds the same to every margin."""
    return int(np.abs(problem.hidden[place].values - problem.shown[place]).sum(axis=1).argmin())


def _log_posteriors(problem: DecisionProblem, observed: NDArray[np.intp]) -> Matrix:
    """Return log P(state | shown features) for every set, with the states along the first axis."""
    logs = problem.log_prior.copy()
    for place in observed:
        logs = np.stack([logs, logs + problem.evidence[place].reshape(-1, *[1] * (logs.ndim - 1))], axis=-1)
    logs -= logs.max(axis=0)
    normalised: Matrix = logs - np.log(np.exp(logs).sum(axis=0))
    return normalised
