"""Simulation-based calibration: data sets from the prior of each model, and whether its probabilities hold there."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.selection_bias.calibration_variants import VARIANTS, Sizes, calibrate
from trimbench.papers.selection_bias.settings import CORRECTIONS, check_at_least
from trimbench.papers.study.cells import Cell
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.tables import Table
from trimbench.papers.validation import settings, unknown

if TYPE_CHECKING:
    import pandas as pd

# A figure tells so many models apart, with and without correction.
_MODELS_SHOWN = 3
_ERROR_FORMATS = {
    "model": "",
    "correction": "",
    "data sets": "",
    "expected error": ".4f",
    "actual error": ".4f",
    "overconfidence": ".4f",
    "standard error": ".4f",
    "within 2 standard errors of 0": "",
}
_RANK_FORMATS = {
    "model": "",
    "correction": "",
    "data sets": "",
    "mean rank": ".3f",
    "bins outside their band": "",
    "p-value (uniform ranks)": ".2g",
}
_NOTES = [
    "Each data set is drawn from the model's own prior, with features, labels and test cases; then features are "
    "selected, and the model is fitted with and without correction.",
    "Overconfidence: actual minus expected error rate on the test cases, mean over data sets. Of models that are "
    "right, one in twenty is not within 2 standard errors of 0 by chance.",
    "Rank: posterior probability of an alpha below the true one, and a random share of that of the true one itself. If "
    "the model is right, ranks are uniform. Band: 95 % of what uniform ranks give in one bin. p-value: of Kolmogorov "
    "and Smirnov's test.",
]


@settings
class VariantSizes(Sizes):
    """Sizes of the data sets of one model, as the configuration states them."""

    def __post_init__(self) -> None:
        check_at_least(1, **{field.name: getattr(self, field.name) for field in dataclasses.fields(self)})
        if self.n_train < 4:
            raise ValueError(f"n_train must be 4 or more, got {self.n_train}")
        if self.k > self.n_features:
            raise ValueError(f"k must be at most n_features={self.n_features}, got {self.k}")


@settings
class PriorCalibration:
    """Ranks of alpha and overconfidence of predictions, on data sets drawn from the prior of each model.

    `models` are the sizes of the data sets for each model. A job draws `sets_per_job` of the `data_sets`.
    """

    models: dict[str, VariantSizes]
    data_sets: int = 300
    sets_per_job: int = 20
    n_bins: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("models must name at least one model, got none")
        for name in self.models:
            if name not in VARIANTS:
                raise unknown("models: a model", list(VARIANTS), name)
        check_at_least(2, data_sets=self.data_sets, n_bins=self.n_bins)
        check_at_least(1, sets_per_job=self.sets_per_job)

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each model and block of data sets."""
        return [
            Cell.of({"model": name, "first": first}, calibrate, variant=name, sizes=sizes, seeds=seeds)
            for name, sizes in self.models.items()
            for first in range(0, self.data_sets, self.sets_per_job)
            for numbers in [range(first, min(first + self.sets_per_job, self.data_sets))]
            for seeds in [[seed_for(purpose="prior data", model=name, number=n, seed=self.seed) for n in numbers]]
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return overconfidence and ranks of each model, and their figures."""
        found = {name: ours for name in self.models if len(ours := successes(rows, model=name))}
        errors = [line for name, ours in found.items() for line in _error_lines(name, ours)]
        ranks = [line for name, ours in found.items() for line in _rank_lines(name, ours, self.n_bins)]
        tables = (
            Table.of("Overconfidence on data sets from the prior", errors, _ERROR_FORMATS),
            Table.of("Ranks of the true alpha", ranks, _RANK_FORMATS, name="ranks"),
        )
        names = list(found)
        groups = [names[start : start + _MODELS_SHOWN] for start in range(0, len(names), _MODELS_SHOWN)]
        figures = [_errors_figure(errors, group, f"errors_{i}" if i else "") for i, group in enumerate(groups)]
        figures += [_ranks_figure(name, ours, self.n_bins) for name, ours in found.items()]
        notes = list(_NOTES)
        if "mixture" in found:
            ours = found["mixture"]
            n_sets, n_converged = len(_values(ours, "corrected_rank")), int(ours["converged"].sum())
            notes.append(
                f"The chains of both mixture models converged on {n_converged} of {n_sets} data sets; all count."
            )
        return Outcome(tables, figures, (), notes)


def _values(ours: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Return a quantity on all data sets of a model."""
    return np.concatenate([np.asarray(values, dtype=float) for values in ours[column]])


def _error_lines(name: str, ours: pd.DataFrame) -> Iterator[dict[str, object]]:
    for correction in CORRECTIONS:
        expected, actual = (_values(ours, f"{correction}_{kind}_error") for kind in ("expected", "actual"))
        gap = actual - expected
        mean, spread = float(gap.mean()), float(gap.std(ddof=1) / math.sqrt(len(gap))) if len(gap) > 1 else math.nan
        yield {
            "model": name,
            "correction": correction,
            "data sets": len(gap),
            "expected error": float(expected.mean()),
            "actual error": float(actual.mean()),
            "overconfidence": mean,
            "standard error": spread,
            "within 2 standard errors of 0": "yes" if abs(mean) <= 2 * spread else "no",
        }


def _counts(ranks: NDArray[np.float64], n_bins: int) -> NDArray[np.int64]:
    return np.bincount(np.minimum((ranks * n_bins).astype(np.int64), n_bins - 1), minlength=n_bins)


def _band(n_sets: int, n_bins: int) -> tuple[float, float]:
    """Return the 2.5 % and 97.5 % points of the number of uniform ranks in one bin."""
    from scipy.stats import binom

    return float(binom.ppf(0.025, n_sets, 1 / n_bins)), float(binom.ppf(0.975, n_sets, 1 / n_bins))


def _rank_lines(name: str, ours: pd.DataFrame, n_bins: int) -> Iterator[dict[str, object]]:
    from scipy.stats import kstest

    for correction in CORRECTIONS:
        ranks = _values(ours, f"{correction}_rank")
        counts, (low, high) = _counts(ranks, n_bins), _band(len(ranks), n_bins)
        yield {
            "model": name,
            "correction": correction,
            "data sets": len(ranks),
            "mean rank": float(ranks.mean()),
            "bins outside their band": f"{int(((counts < low) | (counts > high)).sum())} of {n_bins}",
            "p-value (uniform ranks)": float(kstest(ranks, "uniform").pvalue),
        }


def _ranks_figure(name: str, ours: pd.DataFrame, n_bins: int) -> LineFigure:
    import pandas as pd

    centres = (np.arange(n_bins) + 0.5) / n_bins
    lines, n_sets = [], 0
    for correction in reversed(CORRECTIONS):
        ranks = _values(ours, f"{correction}_rank")
        n_sets = len(ranks)
        lines.append(pd.DataFrame({"series": correction, "x": centres, "y": _counts(ranks, n_bins)}))
    low, high = _band(n_sets, n_bins)
    uniform = pd.DataFrame({"series": "uniform", "x": centres, "y": n_sets / n_bins, "low": low, "high": high})
    return LineFigure(
        f"Ranks of the true alpha ({name} model, {n_sets} data sets)",
        "rank of the true alpha in its posterior",
        f"data sets in each of {n_bins} bins",
        pd.concat([*lines, uniform], ignore_index=True),
        name=f"ranks_{name.replace(' ', '_')}",
        marks={"uniform": "guide"},
        interval="95 % of uniform ranks in one bin",
    )


def _errors_figure(errors: list[dict[str, object]], models: Sequence[str], name: str) -> LineFigure:
    import pandas as pd

    frame = pd.DataFrame([line for line in errors if line["model"] in models])
    half = 2 * frame["standard error"]
    points = pd.DataFrame(
        {
            "series": frame["model"] + ", " + frame["correction"],
            "x": frame["expected error"],
            "y": frame["actual error"],
            "low": frame["actual error"] - half,
            "high": frame["actual error"] + half,
        }
    )
    top = float(max(points["x"].max(), points["high"].max()))
    guide = pd.DataFrame({"series": "equal", "x": [0.0, top], "y": [0.0, top]})
    marks: Mapping[str, str] = {"equal": "guide"} | dict.fromkeys(points["series"], "highlight")
    return LineFigure(
        f"Expected and actual error on data sets from the prior: {', '.join(models)}",
        "expected error",
        "actual error",
        pd.concat([points, guide], ignore_index=True),
        name=name,
        marks=marks,
        interval="2 standard errors of the difference to either side",
        methods=dict(zip(points["series"], frame["correction"], strict=True)),
    )
