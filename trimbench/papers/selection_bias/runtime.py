"""Seconds for all predictions against the number of selected features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.job import Job
from trimbench.papers.selection_bias import jobs
from trimbench.papers.selection_bias.settings import CORRECTIONS, SimulationPlan, check_at_least, labels_of_sizes
from trimbench.papers.study.plan import Cell, LineFigure, Outcome, Table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Runtime:
    """Time from the training cases to the predictions of all test cases, on one core.

    Attributes
    ----------
    ks : list of int
    printed : dict
        For "corrected" and "uncorrected", the printed seconds by k, to draw and to divide by.
    repeats : int
        Measurements of each time, of which the median counts.
    class_sizes : [n0, n1]
    n_features, alpha, test_sizes, prior, ties, seed
        As for `Simulation`.
    """

    class_sizes: list[int]
    test_sizes: list[int]
    ks: list[int]
    prior: dict[str, Any]
    printed: dict[str, Any]
    n_features: int = 10_000
    alpha: float = 300.0
    repeats: int = 3
    ties: str = "exact"
    seed: int = 0

    def __post_init__(self) -> None:
        self._plan.check([self.class_sizes])
        self._plan.check_ks(self.ks)
        check_at_least(1, repeats=self.repeats)
        if not set(self.printed) <= set(CORRECTIONS):
            raise ValueError(f"printed must have the keys {list(CORRECTIONS)}, got {list(self.printed)}")
        for correction in self.printed:
            _printed_seconds(self.printed, correction)

    @property
    def _plan(self) -> SimulationPlan:
        return SimulationPlan(self.n_features, self.alpha, self.test_sizes, self.prior, self.ties, self.seed)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return the one job."""
        parameters = self._plan.parameters(self.class_sizes, 0) | {"ks": self.ks, "repeats": self.repeats}
        return [Cell(labels_of_sizes(self.class_sizes), Job.create(jobs.prediction_seconds, parameters))]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return seconds, printed seconds and their ratio."""
        import pandas as pd

        lines: list[dict[str, Any]] = [{"k": k} for k in self.ks]
        points: list[dict[str, Any]] = []
        reproduced: dict[str, float | None] = {}
        done = rows[rows["status"] == "ok"].to_dict("records")
        for correction in reversed(CORRECTIONS) if done else ():
            printed_seconds = _printed_seconds(self.printed, correction)
            seconds = dict(zip(self.ks, done[0][f"{correction}_seconds"], strict=True))
            for line in lines:
                k = line["k"]
                printed, ours = printed_seconds.get(k), seconds[k]
                line |= {f"{correction} printed": printed, f"{correction} ours": ours}
                line[f"{correction} ratio"] = printed / ours if printed is not None else None
                reproduced[f"k = {k}/{correction} seconds"] = ours
                points.append({"series": correction, "x": k, "y": ours})
            known = [k for k in self.ks if k in printed_seconds]
            points += [{"series": f"{correction} (printed)", "x": k, "y": printed_seconds[k]} for k in known]
        most = max((k for k in self.ks if k < self.n_features), default=None)
        if done and most is not None and self.n_features in self.ks:
            selected, of_all = done[0]["corrected_seconds"], done[0]["uncorrected_seconds"]
            reproduced["corrected/seconds by those of all features"] = (
                selected[self.ks.index(most)] / of_all[self.ks.index(self.n_features)]
            )
        columns = ["k", *(f"{c} {q}" for c in reversed(CORRECTIONS) for q in ("printed", "ours", "ratio"))]
        formats = {c: ".0f" if c.endswith("ratio") else ".2f" if c.endswith("printed") else ".3f" for c in columns[1:]}
        title = f"Seconds for {sum(self.test_sizes):,} test cases, {sum(self.class_sizes)} training cases"
        figure = LineFigure(
            "",
            title,
            f"features selected out of {self.n_features:,}",
            "seconds",
            pd.DataFrame(points, columns=["series", "x", "y"]),
            marks={f"{correction} (printed)": "reference" for correction in CORRECTIONS},
            x_scale="log",
            y_scale="log",
        )
        table = Table("", title, pd.DataFrame(lines if done else [], columns=columns), formats)
        notes = [
            "Printed seconds are those of the authors' program on their machine, for 2,000 test cases and, as the "
            "slides say, 100 training cases. The slides do not say how fine its grids are.",
            f"Ours are from the selection to the predictions of {sum(self.test_sizes)} test cases with "
            f"{sum(self.class_sizes)} training cases, the median of {self.repeats} on one core, one after another.",
        ]
        return Outcome((table,), (figure,), reproduced, notes)


def _printed_seconds(printed: Mapping[str, Any], correction: str) -> dict[int, float]:
    """Return seconds by k.

    Raises
    ------
    ValueError
        When a key is no whole number or a value no positive number.
    """
    found: dict[int, float] = {}
    values = printed.get(correction, {})
    for key, value in values.items() if isinstance(values, Mapping) else [("", values)]:
        if not str(key).isdecimal() or isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise ValueError(
                f"printed.{correction} must be positive seconds for numbers of features, got {values!r}; write "
                f"printed.{correction}={{1: 12.7}}"
            )
        found[int(key)] = float(value)
    return found
