"""Figure 1: a logistic regression and two naive Bayes models that conform with it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from trimbench._typing import Matrix, Vector
from trimbench.papers import vocabulary as vocab
from trimbench.papers.execution.job import COUNT, NUMBER, SHARE, fields, job, listed

_MODELS = ("P1", "P2")
_TITLE = "Classification and probability of each instance"
Probability = Annotated[float, Field(gt=0, lt=1)]


@vocab.settings
class Figure1:
    """Two naive Bayes models that classify alike and give features different probabilities (Figure 1).

    `positive` and `negative` are P(x_i = 1 | c) and P(x_i = 1 | not c) of the first model, `other` is P(x_i = 1 | c) of
    the second.
    """

    prior: Probability
    positive: list[Probability]
    negative: list[Probability]
    other: list[Probability]

    def __post_init__(self) -> None:
        lengths = [len(self.positive), len(self.negative), len(self.other)]
        if len(set(lengths)) > 1 or not all(lengths):
            raise ValueError(f"positive, negative and other must have the same length, 1 or more, got {lengths}")

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return the one job."""
        return [vocab.Cell.of({"figure": "1"}, conforming_models, **dataclasses.asdict(self))]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return weights, parameters and the table of instances."""
        done = vocab.successes(rows)
        if done.empty:
            return vocab.Outcome((vocab.Table.of(_TITLE, [], ("x", "F")),))
        found = done.iloc[0]
        names = [f"x{i + 1}" for i in range(len(self.positive))]
        instances = [{**dict(zip(names, line.pop("x"), strict=True)), **line} for line in map(dict, found["instances"])]
        weights = dict(zip(["w0", *(f"w{i + 1}" for i in range(len(names)))], found["weights"], strict=True))
        models = [
            {
                "model": name,
                "P(c)": found[name]["prior"],
                **{f"P({x} | c)": value for x, value in zip(names, found[name]["positive"], strict=True)},
                **{f"P({x} | not c)": value for x, value in zip(names, found[name]["negative"], strict=True)},
            }
            for name in _MODELS
        ]
        tables = (
            _table(_TITLE, instances, ""),
            _table("The logistic regression", [weights], "weights"),
            _table("The two naive Bayes models", models, "models"),
        )
        absent = instances[-1]
        return vocab.Outcome(tables, (), vocab.numbers_of("all absent", {m: absent[f"{m}(x)"] for m in _MODELS}, done))


def _table(title: str, lines: Sequence[Mapping[str, object]], name: str) -> vocab.Table:
    formats = {column: ".3f" if isinstance(value, float) else "" for column, value in lines[0].items()}
    return vocab.Table.of(title, lines, formats, name=name)


_MODEL = fields(prior=SHARE, positive=listed(SHARE), negative=listed(SHARE))


@job(
    weights=listed(NUMBER),
    instances=listed(
        fields(x=listed(COUNT), F=SHARE, **dict.fromkeys(("P1(c | x)", "P1(x)", "P2(c | x)", "P2(x)"), SHARE))
    ),
    P1=_MODEL,
    P2=_MODEL,
)
def conforming_models(
    prior: float, positive: list[float], negative: list[float], other: list[float]
) -> dict[str, vocab.Json]:
    """Compute the weights of a naive Bayes model (Lemma 1), and another model of the same weights (Lemma 2).

    The parameters are those of `Figure1`.
    """
    bias, weights = weights_of_naive_bayes(prior, positive, negative)
    second_prior, second_negative = naive_bayes_of_weights(bias, weights, other)
    models = {"P1": (prior, positive, negative), "P2": (second_prior, other, second_negative.tolist())}
    instances = []
    for x in itertools.product([1, 0], repeat=len(positive)):
        line: dict[str, vocab.Json] = {"x": list(x), "F": float(1 / (1 + np.exp(-(bias + weights @ np.array(x)))))}
        for name, model in models.items():
            first, second = _joint(*model, np.array(x))
            line |= {f"{name}(c | x)": first / (first + second), f"{name}(x)": first + second}
        instances.append(line)
    parameters = {
        name: dict(zip(("prior", "positive", "negative"), model, strict=True)) for name, model in models.items()
    }
    return {"weights": [bias, *weights.tolist()], "instances": instances, **parameters}


def _joint(
    prior: float, positive: Sequence[float], negative: Sequence[float], x: NDArray[np.int64]
) -> tuple[float, float]:
    """Return P(x, c) and P(x, not c) of a naive Bayes model."""
    theta, complement = np.array(positive), np.array(negative)
    first = prior * float(np.prod(np.where(x, theta, 1 - theta)))
    return first, (1 - prior) * float(np.prod(np.where(x, complement, 1 - complement)))


# Naive Bayes and logistic regression as two forms of one classifier (Lemmas 1 and 2).


def weights_of_naive_bayes(prior: float, positive: ArrayLike, negative: ArrayLike) -> tuple[float, Vector]:
    """Return the bias and the weights of the one logistic regression that a naive Bayes model conforms with.

    Parameters
    ----------
    prior : float
        P(c), strictly between 0 and 1.
    positive, negative : array of shape (n_features,)
        P(x_i = 1 | c) and P(x_i = 1 | not c), strictly between 0 and 1.

    Returns
    -------
    bias : float
    weights : ndarray of shape (n_features,)

    Raises
    ------
    ValueError
        When a probability is not strictly between 0 and 1, or the lengths differ.

    Examples
    --------
    >>> bias, weights = weights_of_naive_bayes(0.5, [0.8], [0.2])
    >>> round(bias, 4), weights.round(4).tolist()
    (-1.3863, [2.7726])

    References
    ----------
    Khosravi et al. (2019), Lemma 1.
    """
    theta = _probabilities(positive, "positive")
    other = _probabilities(negative, "negative")
    if theta.shape != other.shape:
        raise ValueError(f"positive and negative must have the same length, got {len(theta)} and {len(other)}")
    (chance,) = _probabilities([prior], "prior")
    weights: Vector = _logit(theta) - _logit(other)
    bias = float(_logit(chance) + (np.log1p(-theta) - np.log1p(-other)).sum())
    return bias, weights


def naive_bayes_of_weights(bias: float, weights: ArrayLike, positive: ArrayLike) -> tuple[float, Vector]:
    """Return the one conforming naive Bayes model with given probabilities in the positive class.

    Parameters
    ----------
    bias : float
    weights : array of shape (n_features,)
    positive : array of shape (n_features,)
        P(x_i = 1 | c), strictly between 0 and 1.

    Returns
    -------
    prior : float
        P(c).
    negative : ndarray of shape (n_features,)
        P(x_i = 1 | not c).

    Raises
    ------
    ValueError
        When a probability is not strictly between 0 and 1, or the lengths differ.

    References
    ----------
    Khosravi et al. (2019), Lemma 2.
    """
    from scipy.special import expit, log_expit

    theta, slopes = _probabilities(positive, "positive"), np.asarray(weights, dtype=np.float64)
    if slopes.shape != theta.shape:
        raise ValueError(f"weights and positive must have the same length, got {slopes.shape} and {theta.shape}")
    log_odds = _logit(theta) - slopes
    negative: Vector = np.asarray(expit(log_odds))
    prior = float(expit(bias - (np.log1p(-theta) - log_expit(-log_odds)).sum()))
    return prior, negative


def _probabilities(values: ArrayLike, name: str) -> Vector:
    result = np.asarray(values, dtype=np.float64)
    if result.ndim != 1 or not ((result > 0) & (result < 1)).all():
        raise ValueError(f"{name} must be probabilities strictly between 0 and 1, got {values!r}")
    return result


def _logit(theta: Vector | float) -> Matrix:
    result: Matrix = np.log(theta) - np.log1p(-np.asarray(theta))
    return result
