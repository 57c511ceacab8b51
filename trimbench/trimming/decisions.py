"""Checks of what a classifier is made of, and how it decides: by thresholds, with ties and cuts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.costs import feature_indices as feature_indices
from trimbench.networks.costs import is_real_number
from trimbench.networks.costs import short as short
from trimbench.networks.inference.joint import ContractionTooLarge, joint_distribution
from trimbench.networks.mixture import NaiveBayesMixture
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.values import names_text, state_name

Model = NaiveBayes | NaiveBayesMixture | BayesianNetwork

# Evidence may make a class less probable than the smallest float; rounded to 0, it would be ruled out.
TRACE = 1e-300

# Whether evidence is possible is computed where this takes about a second at most, and once.
_CHECK_OPERATIONS = 2**24
_POSSIBLE: WeakKeyDictionary[BayesianNetwork, set[frozenset[tuple[str, str]]]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Components:
    """Classes, or components of classes, given which the features of a model are independent.

    Attributes
    ----------
    prior : ndarray of shape (n_components,)
        Given the evidence; at least `TRACE` where a component is possible.
    log_prior : ndarray of shape (n_components,)
        Its logarithm, also below `TRACE`.
    likelihoods : tuple of ndarrays of shape (n_components, n_values)
    feature_names : tuple of str
        Those that are not observed.
    value_names : tuple of tuples of str
    states : tuple of str
        The class of each component.
    """

    prior: NDArray[np.float64]
    log_prior: NDArray[np.float64]
    likelihoods: tuple[NDArray[np.float64], ...]
    feature_names: tuple[str, ...]
    value_names: tuple[tuple[str, ...], ...]
    states: tuple[str, ...]

    def joint(self, rows: Sequence[int], tables: Sequence[NDArray[np.float64]], out: NDArray[np.float64]) -> None:
        """Write Pr(one of some components, f') over all instances of some features, the first outermost, to `out`."""
        half = len(tables) // 2
        for place, row in enumerate(rows):
            # Two halves first: one pass over the full table instead of one for each feature.
            left = self.prior[row] * _outer([table[row] for table in tables[:half]])
            right = _outer([table[row] for table in tables[half:]])
            if place == 0:
                np.multiply.outer(left, right, out=out.reshape(left.size, right.size))
            else:
                out += np.multiply.outer(left, right).reshape(-1)


def _outer(rows: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    start: NDArray[np.float64] = np.ones(1)
    return reduce(lambda left, right: np.multiply.outer(left, right).reshape(-1), rows, start)


def understood_model(model: object, target: str | None) -> tuple[Model, str]:
    """Return the model, as naive Bayes where it has that structure, and its class variable."""
    if isinstance(model, NaiveBayes | NaiveBayesMixture):
        if target not in (None, model.class_variable):
            raise ValueError(f"target must be the class variable {model.class_variable!r}, got {target!r}")
        return model, model.class_variable
    if not isinstance(model, BayesianNetwork):
        raise TypeError(f"model must be a NaiveBayes or a BayesianNetwork, got {type(model).__name__}{_way(model)}")
    if target not in model.nodes:
        raise ValueError(f"target must be a node of the network, one of {names_text(model.nodes)}, got {target!r}")
    naive = all(model.parents(node) == ((target,) if node != target else ()) for node in model.nodes)
    return (NaiveBayes.from_network(model, target) if naive else model), target


def _way(model: object) -> str:
    if type(model).__name__ in ("BernoulliNB", "CategoricalNB"):
        return "; convert it with NaiveBayes.from_sklearn(model, feature_names)"
    if hasattr(model, "predict"):
        return "; learn one with learn(features, target)"
    return ""


def class_states(model: Model, target: str) -> tuple[str, ...]:
    """Return the states of the class."""
    return model.states(target) if isinstance(model, BayesianNetwork) else model.class_names


def default_features(model: Model, target: str) -> tuple[str, ...]:
    """Return the variables other than the class, without hidden components."""
    if isinstance(model, BayesianNetwork):
        return tuple(node for node in model.nodes if node != target)
    return model.feature_names


def split_states(states: Sequence[str], target: str, positive: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the positive states and the others; ValueError unless both are known states and there are some of each.

    States that are not strings are compared by their text; 1.0 and True also mean the state 1.
    """
    several = isinstance(positive, Collection | np.ndarray) and not isinstance(positive, str)
    if isinstance(positive, np.ndarray):
        positive = np.atleast_1d(positive)
    wanted = [state_name(state, states) for state in (cast("Collection[object]", positive) if several else [positive])]
    for state in wanted:
        if state not in states:
            raise ValueError(f"positive must be one of {names_text(states)}, got {state!r}")
    rest = tuple(state for state in states if state not in wanted)
    if not wanted or not rest:
        raise ValueError(
            f"target {target!r} must have states on both sides, positive and not; got positive={wanted} of its states "
            f"{names_text(states)}"
        )
    return tuple(state for state in states if state in wanted), rest


def checked_evidence(model: Model, evidence: Mapping[str, object] | None, target: str) -> dict[str, str]:
    """Return the observed state of each evidence node, as text; ValueError if a node or state is unknown."""
    if evidence is None:
        return {}
    if getattr(evidence, "ndim", None) == 1 and hasattr(evidence, "to_dict"):  # a Series, such as a row of a table
        evidence = cast("Mapping[str, object]", evidence.to_dict())
    if not isinstance(evidence, Mapping):
        raise ValueError(
            f"evidence must be a mapping from node to its observed state, got {type(evidence).__name__}; "
            "for example evidence={'fever': 'yes'}"
        )
    if isinstance(model, BayesianNetwork):
        known = {node: model.states(node) for node in model.nodes}
    else:
        parts = model.components if isinstance(model, NaiveBayesMixture) else model
        known = dict(zip(parts.feature_names, parts.value_names, strict=True))
    checked: dict[str, str] = {}
    for node, value in evidence.items():
        name = str(node)
        if name == target:
            raise ValueError(f"evidence must not be on the target {target!r}: its state would be known")
        if name not in known:
            raise ValueError(f"evidence must be on variables among {names_text(tuple(known))}, got {name!r}")
        state = state_name(value, known[name])
        if state not in known[name]:
            raise ValueError(f"evidence on {name!r} must be one of its states {names_text(known[name])}, got {state!r}")
        checked[name] = state
    return checked


def components_of(model: Model, evidence: Mapping[str, str]) -> Components | None:
    """Return the components of a naive Bayes model or a mixture, with the evidence in the prior; None for networks.

    Raises ValueError if the evidence has probability zero.
    """
    if isinstance(model, BayesianNetwork):
        return None
    parts = model.components if isinstance(model, NaiveBayesMixture) else model
    prior, log_prior = parts.prior, _logs(parts.prior)
    free = [i for i, name in enumerate(parts.feature_names) if name not in evidence]
    if evidence:
        logs = log_prior
        for name, state in evidence.items():
            place = parts.feature_names.index(name)
            logs = logs + _logs(parts.likelihoods[place][:, parts.value_names[place].index(state)])
        if not np.isfinite(logs).any():
            raise ValueError(
                f"evidence must have a probability above 0, got {_evidence_text(evidence)}, which is impossible"
            )
        weights = np.exp(logs - logs.max())
        prior = weights / weights.sum()
        log_prior = np.where(prior > TRACE, _logs(prior), logs - logs.max() - np.log(weights.sum()))
        prior = np.where(np.isfinite(logs), np.maximum(prior, TRACE), 0.0)
    return Components(
        prior,
        log_prior,
        tuple(parts.likelihoods[i] for i in free),
        tuple(parts.feature_names[i] for i in free),
        tuple(parts.value_names[i] for i in free),
        model.class_of if isinstance(model, NaiveBayesMixture) else model.class_names,
    )


def _logs(values: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))


def check_evidence_possible(model: Model, target: str, evidence: Mapping[str, str]) -> None:
    """Raise a ValueError if the evidence in a network has probability zero.

    A network in which that takes long to compute is not checked. Evidence in other models was checked in their
    components.
    """
    if not evidence or not isinstance(model, BayesianNetwork):
        return
    known = _POSSIBLE.setdefault(model, set())
    if (key := frozenset(evidence.items())) not in known:
        if not all(model.table(node).all() for node in model.nodes):
            with suppress(ContractionTooLarge):
                joint_distribution(model, [target], evidence=evidence, max_operations=_CHECK_OPERATIONS)
        known.add(key)


def as_network(model: Model) -> BayesianNetwork:
    """Return any model as a Bayesian network."""
    return model if isinstance(model, BayesianNetwork) else model.to_network()


def _evidence_text(evidence: Mapping[str, str]) -> str:
    pairs = [f"{name}={state}" for name, state in evidence.items()]
    return ", ".join(pairs[:5]) + (f" and {len(pairs) - 5} more" if len(pairs) > 5 else "")


def check_feature_columns(labels: Iterable[object], features: Collection[str]) -> None:
    """Raise a ValueError unless rows have exactly one column for each feature; labels are compared as text."""
    columns = [str(label) for label in labels]
    counts = {name: columns.count(name) for name in features}
    if wrong := [name for name, count in counts.items() if count != 1]:
        raise ValueError(
            f"rows must have one column for each of the {len(features)} features, got {counts[wrong[0]]} columns for "
            f"{short(wrong[0])} ({len(wrong)} features like that)"
        )


def checked_threshold(threshold: float) -> float:
    """Return `threshold` as a float; raise ValueError unless it is a number in [0, 1]."""
    if not is_real_number(threshold) or not 0.0 <= threshold <= 1.0:
        raise ValueError(f"threshold must be a probability in [0, 1], got {threshold!r}")
    return float(threshold)


def as_names(names: Sequence[str]) -> tuple[str, ...] | str:
    """Return names as a tuple, but a string as it is, for `feature_indices` to reject; ValueError if not iterable."""
    if isinstance(names, str):
        return names
    try:
        return tuple(names)
    except TypeError as error:
        raise ValueError(f"features must be a sequence of names, got {str(names)[:80]}") from error


# Decisions by a threshold or for the most probable class, ties, and the cut with the highest agreement.

# Odds are equal up to this relative difference: products of up to a few hundred probabilities carry a relative rounding
# error of about 1e-14.
TIE_TOLERANCE = 1e-12
# Instances are tied over a wider range than classification tolerates, so that a threshold halfway between two groups is
# clear of both.
_GROUP_TOLERANCE = 1e-11
# On rows: log-odds closer than this are tied; posteriors of larger log-odds are 1 in floating point, so that no
# threshold separates them; smaller masses are what rounding leaves of parts without rows.
TIED_LOG_ODDS = 1e-11
HIGHEST_LOG_ODDS = 36.0
NO_MASS = 1e-14
# Floating-point numbers between 1/2 and 1 are multiples of this; the tolerance is coarser at this distance from 1.
_ULP, _CLOSE_TO_ONE = 2.0**-53, 1e-3


def log_odds(threshold: float) -> float:
    """Return the log-odds that an instance needs for a posterior of at least the threshold."""
    if threshold in (0.0, 1.0):
        return math.inf if threshold else -math.inf
    return math.log(threshold) - math.log1p(-threshold)


def is_positive(positive: NDArray[np.float64], negative: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """Return whether Pr(c | f) >= threshold, by cross-multiplication.

    Parameters
    ----------
    positive, negative : ndarrays of one shape
        Pr(c, f) and Pr(not c, f), or both times a common factor.
    """
    return np.asarray(positive * (1.0 - threshold) >= negative * (threshold * (1.0 - TIE_TOLERANCE)))


def most_probable(joint: NDArray[np.float64], *, logarithms: bool = False) -> NDArray[np.intp]:
    """Return the position of the most probable class of each instance, the first of several equal up to rounding.

    Parameters
    ----------
    joint : ndarray of shape (n_classes, n_instances)
        Pr(c, f), each column up to a factor, or logarithms of it.
    """
    top = joint.max(axis=0)
    tied = joint >= (top - TIE_TOLERANCE if logarithms else top * (1.0 - TIE_TOLERANCE))
    return np.asarray(tied.argmax(axis=0))


@dataclass(frozen=True)
class Instances:
    """The instances f' of a feature subset F', one entry each.

    Attributes
    ----------
    positive, negative : ndarrays of shape (n_instances,)
        Pr(c, f') and Pr(not c, f').
    signed : ndarray of shape (n_instances,)
        d(f'): the probability of f' together with an original classification as positive, minus that with an
        original classification as negative.
    """

    positive: NDArray[np.float64]
    negative: NDArray[np.float64]
    signed: NDArray[np.float64]

    def agreement(self, threshold: float) -> float:
        """Return the expected classification agreement when f' is classified with `threshold` (Eq. 3)."""
        positive = is_positive(self.positive, self.negative, threshold)
        return agreement_of(float(np.where(positive, self.signed, -self.signed).sum()))


# Numbers that `cumulated` adds up one after the other.
_BLOCK = 128


def cumulated(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of the first 1, 2, ... values, shape (n_values,), as `numpy.cumsum` does, but in blocks.

    The sums of whole blocks are cumulated in the same way, so no value goes through more than 128 additions for each of
    the ``log(n_values) / log(128)`` levels, rounded up, and the rounding error of each sum is at most 2^-53 times that
    number times the sum of the absolute values (Higham 2002, section 4.2). One after the other, it would be up to
    `n_values` additions, whose errors do not cancel where the values are equal.
    """
    n_blocks = -(-values.size // _BLOCK)
    if n_blocks <= 1:
        return np.cumsum(values)
    padded = np.zeros((n_blocks, _BLOCK))
    padded.reshape(-1)[: values.size] = values
    np.cumsum(padded, axis=1, out=padded)
    padded[1:] += cumulated(padded[:-1, -1])[:, None]
    return padded.reshape(-1)[: values.size]


def agreement_of(balance: float) -> float:
    """Return the agreement (1 + balance) / 2 of a sum of signed masses, clipped to [0, 1], as sums are rounded."""
    return min(1.0, max(0.0, 0.5 * (1.0 + balance)))


@dataclass(frozen=True)
class Cut:
    """A threshold interval and the agreement that every threshold in it has.

    Attributes
    ----------
    low, high : float
        Every T' with ``low < T' <= high``; ``low == high == 0`` stands for T' = 0 alone.
    """

    agreement: float
    low: float
    high: float

    def representative(self, preferred: float) -> float:
        """Return `preferred` if it lies in the interval, else its middle."""
        if self.low < preferred <= self.high:
            return preferred
        middle = 0.5 * (self.low + self.high)
        return middle if self.low < middle else self.high


def best_cut(instances: Instances, preferred: float) -> Cut:
    """Return the threshold interval with the highest agreement (Algorithm 2).

    Instances are sorted by posterior and moved below the threshold in turn. Those with the same posterior move
    together: no threshold separates them.

    Parameters
    ----------
    preferred : float
        Of several best intervals, the one that contains this threshold is taken, else the lowest; 0 is taken alone.

    Returns
    -------
    Cut
        Its agreement is the maximum achievable agreement of the feature subset (Definition 3).
    """
    seen = (instances.positive > 0) | (instances.negative > 0)
    positive, negative = instances.positive[seen], instances.negative[seen]
    with np.errstate(divide="ignore"):
        log_odds = np.log(positive) - np.log(negative)
    order = np.argsort(log_odds, kind="stable")
    log_odds = log_odds[order]
    reached, missed = _reached_and_missed(positive[order], negative[order])
    # inf - inf is the distance of two posteriors that are both 0 or both 1.
    with np.errstate(invalid="ignore"):
        apart = np.nan_to_num(np.diff(log_odds), nan=0.0, posinf=np.inf) > _GROUP_TOLERANCE
    starts = np.concatenate([[0], 1 + np.flatnonzero(apart & (missed[:-1] < reached[1:]))])
    signed = np.add.reduceat(instances.signed[seen][order], starts)
    # Entry i: the i lowest groups are below the threshold.
    scores = signed.sum() - 2.0 * np.concatenate([[0.0], cumulated(signed)])
    lows = np.concatenate([[0.0], missed[np.concatenate([starts[1:], [missed.size]]) - 1]])
    highs = np.concatenate([reached[starts], [1.0]])
    if np.isposinf(log_odds[-1]):
        scores[-1] = -np.inf  # no threshold is above a posterior of 1
    best = np.flatnonzero(scores >= scores.max() - TIE_TOLERANCE)
    holds = best[(lows[best] < preferred) & (preferred <= highs[best])]
    chosen = int(holds[0]) if holds.size else int(best[0])
    high = 0.0 if chosen == 0 and preferred == 0 else float(highs[chosen])  # T' = 0 decides like the lowest interval
    return Cut(agreement_of(float(scores[chosen])), float(lows[chosen]), high)


def thresholds_between(below: float, above: float) -> tuple[float, float]:
    """Return the ends of the interval of thresholds that one log-odds misses and another, higher one reaches."""
    with np.errstate(over="ignore"):
        positive, negative = (1.0 / (1.0 + np.exp(sign * np.array([below, above]))) for sign in (-1.0, 1.0))
    reached, missed = _reached_and_missed(positive, negative)
    return float(missed[0]), float(reached[1])


def _reached_and_missed(
    positive: NDArray[np.float64], negative: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a threshold that each posterior reaches, and one above which it reaches none.

    A posterior also reaches those that are higher by less than the tolerance. Close to 1 the tolerance is finer than
    floating-point numbers, which are multiples of 2^-53 there: the probability of the other class, which is not rounded
    as much, then says between which of them the posterior is.
    """
    total = positive + negative
    reached, other = positive / total, negative / total
    missed = reached + 2.0 * TIE_TOLERANCE * reached * other
    close = other < _CLOSE_TO_ONE
    for thresholds, tolerance in ((reached, 0.5 * TIE_TOLERANCE), (missed, 2.0 * TIE_TOLERANCE)):
        thresholds[close] = 1.0 - np.ceil(other[close] * (1.0 - tolerance) / _ULP) * _ULP
    return reached, missed
