"""Table 4: the worked example of the maximum achievable agreement."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pandas as pd

from trimbench.papers import vocabulary as vocab
from trimbench.papers.execution.job import NUMBER, SHARE, job
from trimbench.trimming.thresholds import Cut, Instances, best_cut, is_positive

_EXAMPLE = "F1, F2"
_TITLE = "Table 4: maximum achievable agreement of {F1, F2}, reached for low < T' <= high"
_TITLE_AT = "Table 4: agreement of {{F1, F2}} at T' = {:g}, the same for low < T' <= high"
_QUANTITIES = ("agreement", "threshold_low", "threshold_high")


@vocab.settings
class Table4:
    """The worked example of the maximum achievable agreement (Table 4).

    Attributes
    ----------
    instances : list of [posterior, positive mass, negative mass]
        The masses are those that the original classifier calls positive and negative, so that its threshold is in them.
    threshold : float or None
        Threshold T' of the trimmed classifier, whose agreement is computed; None takes the best.
    """

    instances: Annotated[list[list[float]], vocab.must("a list of at least one entry", bool)]
    threshold: vocab.Threshold | None = None

    def __post_init__(self) -> None:
        for instance in self.instances:
            if len(instance) != 3 or not all(0 <= value <= 1 for value in instance):
                raise ValueError(
                    "instances must each be [posterior, positive mass, negative mass], probabilities in [0, 1], "
                    f"got {instance}"
                )
        total = sum(positive + negative for _, positive, negative in self.instances)
        if abs(total - 1.0) > 0.01:
            raise ValueError(f"instances must have masses that add up to 1 (within 0.01), got {total:g}")

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return the one job."""
        labels = {"example": _EXAMPLE}
        return [vocab.Cell.of(labels, best_threshold, instances=self.instances, threshold=self.threshold)]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the agreement and the interval of best thresholds."""
        title = _TITLE if self.threshold is None else _TITLE_AT.format(self.threshold)
        columns = vocab.first(dict(zip(_QUANTITIES, _QUANTITIES, strict=True)), ".2f")
        table = vocab.Table.of_groups(title, vocab.groups(rows, "example"), columns)
        found = [
            number
            for line in table.frame.to_dict("records")
            for number in vocab.numbers_of(_EXAMPLE, {q: line[q] for q in _QUANTITIES}, rows)
        ]
        return vocab.Outcome((table,), (), found)


@job(agreement=SHARE, threshold_low=NUMBER, threshold_high=NUMBER)
def best_threshold(instances: list[list[float]], threshold: float | None = None) -> dict[str, vocab.Json]:
    """Compute the maximum achievable agreement of a table of instances, and the thresholds that reach it.

    An instance f' has Pr(c | f'), and its probability together with an original classification as positive and as
    negative. Of several best intervals of thresholds, the lowest is returned. With a `threshold`, the result is the
    agreement at this one, and the thresholds that classify all instances alike.
    """
    posterior, positive, negative = np.array(instances, dtype=float).T
    mass = positive + negative
    table = Instances(posterior * mass, (1.0 - posterior) * mass, positive - negative)
    cut = best_cut(table, preferred=0.0) if threshold is None else _cut_at(table, threshold)
    return {"agreement": cut.agreement, "threshold_low": cut.low, "threshold_high": cut.high}


def _cut_at(table: Instances, threshold: float) -> Cut:
    """Return the agreement of a threshold, and the interval of those that classify all instances as it does."""
    mass = table.positive + table.negative
    posterior = table.positive[mass > 0] / mass[mass > 0]
    accepted = is_positive(table.positive, table.negative, threshold)[mass > 0]
    low = np.max(posterior[~accepted], initial=0.0)
    high = np.min(posterior[accepted], initial=1.0)
    return Cut(table.agreement(threshold), float(low), float(high))
