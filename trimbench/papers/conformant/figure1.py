"""Figure 1: a logistic regression and two naive Bayes models that conform with it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.functions import job_function
from trimbench.papers.execution.job import Job
from trimbench.papers.study.plan import Cell, Outcome, Table

if TYPE_CHECKING:
    import pandas as pd


@job_function(code=("trimbench.conformant.lemmas",))
def conforming_models(prior: float, positive: list[float], negative: list[float], other: list[float]) -> dict[str, Any]:
    """Take the weights of a naive Bayes model (Lemma 1), and another model of the same weights (Lemma 2).

    Parameters
    ----------
    prior : float
        P(c) of the first model.
    positive, negative : list of float
        P(x_i = 1 | c) and P(x_i = 1 | not c) of the first model.
    other : list of float
        P(x_i = 1 | c) of the second model.
    """
    import numpy as np

    from trimbench.conformant.lemmas import naive_bayes_of_weights, weights_of_naive_bayes

    bias, weights = weights_of_naive_bayes(prior, positive, negative)
    second_prior, second_negative = naive_bayes_of_weights(bias, weights, other)
    models = {
        "P1": (prior, np.array(positive), np.array(negative)),
        "P2": (second_prior, np.array(other), second_negative),
    }
    result: dict[str, Any] = {"weights": [bias, *weights.tolist()], "instances": []}
    for name, (chance, theta, complement) in models.items():
        result[name] = {"prior": chance, "positive": theta.tolist(), "negative": complement.tolist()}
    for x in itertools.product([1, 0], repeat=len(positive)):
        values = np.array(x)
        line: dict[str, Any] = {"x": list(x), "F": float(1 / (1 + np.exp(-(bias + weights @ values))))}
        for name, (chance, theta, complement) in models.items():
            first = chance * float(np.prod(np.where(values, theta, 1 - theta)))
            second = (1 - chance) * float(np.prod(np.where(values, complement, 1 - complement)))
            line |= {f"{name}(c | x)": first / (first + second), f"{name}(x)": first + second}
        result["instances"].append(line)
    return result


@dataclass(frozen=True)
class Figure1:
    """Two naive Bayes models that classify alike and give features different probabilities (Figure 1).

    Attributes
    ----------
    prior : float
    positive, negative : list of float
        The first model.
    other : list of float
        P(x_i = 1 | c) of the second.
    """

    prior: float
    positive: list[float]
    negative: list[float]
    other: list[float]

    def __post_init__(self) -> None:
        if not len(self.positive) == len(self.negative) == len(self.other) > 0:
            raise ValueError(
                "positive, negative and other must be of one length, got "
                f"{len(self.positive)}, {len(self.negative)} and {len(self.other)}"
            )
        for value in (self.prior, *self.positive, *self.negative, *self.other):
            if not 0 < value < 1:
                raise ValueError(f"probabilities must be strictly between 0 and 1, got {value}")

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return the one job."""
        parameters = {name: getattr(self, name) for name in ("prior", "positive", "negative", "other")}
        return [Cell({"figure": "1"}, Job.create(conforming_models, parameters))]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return weights, parameters and the table of instances."""
        import pandas as pd

        done = rows[rows["status"] == "ok"]
        if done.empty:
            return Outcome((Table("", "Figure 1", pd.DataFrame(columns=["x", "F"])),))
        found: dict[str, Any] = {str(key): value for key, value in done.iloc[0].items()}
        names = [f"x{i + 1}" for i in range(len(self.positive))]
        instances = [
            dict(zip(names, line["x"], strict=True)) | {key: value for key, value in line.items() if key != "x"}
            for line in found["instances"]
        ]
        weights = dict(zip(["w0", *(f"w{i + 1}" for i in range(len(names)))], found["weights"], strict=True))
        models = [
            {
                "model": name,
                "P(c)": found[name]["prior"],
                **{f"P({x} | c)": v for x, v in zip(names, found[name]["positive"], strict=True)},
                **{f"P({x} | not c)": v for x, v in zip(names, found[name]["negative"], strict=True)},
            }
            for name in ("P1", "P2")
        ]
        tables = [_table("", "Classification and probability of each instance", instances)]
        tables.append(_table("weights", "The logistic regression", [weights]))
        tables.append(_table("models", "The two naive Bayes models", models))
        absent = instances[-1]
        reproduced: dict[str, float | None] = {"all absent/P1": absent["P1(x)"], "all absent/P2": absent["P2(x)"]}
        notes = [
            "Both models classify every instance as the logistic regression does, F(x), and give the instances "
            "different probabilities. The text prints the probability of the instance without features only; the "
            "parameters of Figure 1 are not in it, and those here are chosen to give that probability.",
        ]
        return Outcome(tables, (), reproduced, notes)


def _table(name: str, title: str, lines: list[dict[str, Any]]) -> Table:
    import pandas as pd

    frame = pd.DataFrame(lines)
    return Table(name, title, frame, {str(column): ".3f" for column in frame if frame[column].dtype.kind == "f"})
