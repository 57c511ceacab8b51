"""Figure 1: a logistic regression and two naive Bayes models that conform with it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trimbench._typing import Vector
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.job import COUNT, NUMBER, SHARE, fields, job, list_of

_MODELS = ("P1", "P2")
_TITLE = "Classification and probability of each instance"


@vocab.settings
class Figure1:
    """Two naive Bayes models that classify alike and give features different probabilities (Figure 1).

    `positive` and `negative` are P(x_i = 1 | c) and P(x_i = 1 | not c) of the first model, `other` is P(x_i = 1 | c) of
    the second.
    """

    prior: vocab.Share
    positive: list[vocab.Share]
    negative: list[vocab.Share]
    other: list[vocab.Share]

    def __post_init__(self) -> None:
        lengths = [len(self.positive), len(self.negative), len(self.other)]
        if len(set(lengths)) > 1 or not all(lengths):
            raise ValueError(f"positive, negative and other must have the same length, 1 or more, got {lengths}")

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return the single job."""
        return [vocab.Cell.of({"figure": "1"}, conforming_models, self)]

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


_MODEL = fields(prior=SHARE, positive=list_of(SHARE), negative=list_of(SHARE))


@job(
    weights=list_of(NUMBER),
    instances=list_of(
        fields(x=list_of(COUNT), F=SHARE, **dict.fromkeys(("P1(c | x)", "P1(x)", "P2(c | x)", "P2(x)"), SHARE))
    ),
    P1=_MODEL,
    P2=_MODEL,
)
def conforming_models(
    prior: float, positive: list[float], negative: list[float], other: list[float]
) -> dict[str, vocab.Json]:
    """Compute the weights of a naive Bayes model (Lemma 1), and another model with the same weights (Lemma 2).

    The parameters are those of `Figure1`.
    """
    bias, weights = weights_of_naive_bayes(prior, positive, negative)
    second_prior, second_negative = naive_bayes_of_weights(bias, weights, other)
    models = {"P1": (prior, positive, negative), "P2": (second_prior, other, second_negative.tolist())}
    instances = []
    for x in itertools.product([1, 0], repeat=len(positive)):
        line: dict[str, vocab.Json] = {"x": list(x), "F": float(1 / (1 + np.exp(-(bias + weights @ np.array(x)))))}
        for name, (share, *tables) in models.items():
            of_class, of_other = (float(np.prod(np.where(x, one, 1 - np.array(one)))) for one in tables)
            first, second = share * of_class, (1 - share) * of_other
            line |= {f"{name}(c | x)": first / (first + second), f"{name}(x)": first + second}
        instances.append(line)
    names = ("prior", "positive", "negative")
    parameters = {name: dict(zip(names, model, strict=True)) for name, model in models.items()}
    return {"weights": [bias, *weights.tolist()], "instances": instances, **parameters}


# Naive Bayes and logistic regression as two forms of one classifier.


def weights_of_naive_bayes(prior: float, positive: ArrayLike, negative: ArrayLike) -> tuple[float, Vector]:
    """Return bias and weights of the unique logistic regression that a naive Bayes model conforms with (Lemma 1).

    The model has P(c) and, for each feature, P(x_i = 1 | c) and P(x_i = 1 | not c), strictly between 0 and 1.

    >>> bias, weights = weights_of_naive_bayes(0.5, [0.8], [0.2])
    >>> round(bias, 4), weights.round(4).tolist()
    (-1.3863, [2.7726])
    """
    theta, other = np.asarray(positive, dtype=np.float64), np.asarray(negative, dtype=np.float64)
    bias = float(_logit(np.float64(prior)) + (np.log1p(-theta) - np.log1p(-other)).sum())
    return bias, _logit(theta) - _logit(other)


def naive_bayes_of_weights(bias: float, weights: ArrayLike, positive: ArrayLike) -> tuple[float, Vector]:
    """Return P(c) and P(x_i = 1 | not c) of the unique conforming naive Bayes model with these P(x_i = 1 | c).

    This is Lemma 2 of Khosravi et al. (2019).
    """
    from scipy.special import expit, log_expit

    theta = np.asarray(positive, dtype=np.float64)
    log_odds = _logit(theta) - np.asarray(weights, dtype=np.float64)
    return float(expit(bias - (np.log1p(-theta) - log_expit(-log_odds)).sum())), np.asarray(expit(log_odds))


def _logit(theta: Any) -> Vector:
    return np.asarray(np.log(theta) - np.log1p(-theta))
