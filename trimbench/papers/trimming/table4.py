"""Table 4: the worked example of the maximum achievable agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trimbench.papers.execution.code_hash import job_function
from trimbench.papers.validation import Json, settings
from trimbench.papers.vocabulary.cells import Cell, Outcome, successes
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.numbers import numbers_of
from trimbench.papers.vocabulary.tables import Table
from trimbench.trimming.model import checked_threshold
from trimbench.trimming.thresholds import Cut, Instances, best_cut, is_positive

if TYPE_CHECKING:
    import pandas as pd

_EXAMPLE = "F1, F2"
_TITLE = "Table 4: maximum achievable agreement of {F1, F2}, reached for low < T' <= high"
_TITLE_AT = "Table 4: agreement of {{F1, F2}} at T' = {:g}, the same for low < T' <= high"
_QUANTITIES = ("agreement", "threshold_low", "threshold_high")


@settings
class Table4:
    """The worked example of the maximum achievable agreement (Table 4).

    Attributes
    ----------
    instances : list of [posterior, positive mass, negative mass]
        The masses are those that the original classifier calls positive and negative, so that its threshold is in them.
    threshold : float or None
        Threshold T' of the trimmed classifier, whose agreement is computed; None takes the best.
    """

    instances: list[list[float]]
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None:
            checked_threshold(self.threshold)
        if not self.instances:
            raise ValueError("instances must have at least one entry, got []")
        for instance in self.instances:
            if len(instance) != 3 or not all(0 <= value <= 1 for value in instance):
                raise ValueError(
                    "instances must each be [posterior, positive mass, negative mass], probabilities in [0, 1], "
                    f"got {instance}"
                )
        total = sum(positive + negative for _, positive, negative in self.instances)
        if abs(total - 1.0) > 0.01:
            raise ValueError(f"instances must have masses that add up to 1 (within 0.01), got {total:g}")

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return the one job."""
        return [Cell.of({"example": _EXAMPLE}, best_threshold, instances=self.instances, threshold=self.threshold)]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the agreement and the interval of best thresholds."""
        done = successes(rows)
        lines = done.reindex(columns=["example", *_QUANTITIES]).to_dict("records")
        title = _TITLE if self.threshold is None else _TITLE_AT.format(self.threshold)
        table = Table.of(title, lines, {"example": "", **dict.fromkeys(_QUANTITIES, ".2f")})
        numbers = [number for line in lines for number in numbers_of(_EXAMPLE, {q: line[q] for q in _QUANTITIES}, done)]
        return Outcome((table,), (), numbers)


@job_function
def best_threshold(instances: list[list[float]], threshold: float | None = None) -> dict[str, Json]:
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
