"""Expected against actual error where features are many and signal is little or none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.selection_bias.noise_estimates import METHODS, compare_estimates
from trimbench.papers.selection_bias.settings import check_at_least, check_ks
from trimbench.papers.study.cells import Cell, check_axis
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.tables import Table
from trimbench.papers.validation import settings

if TYPE_CHECKING:
    import pandas as pd

_FORMATS = {
    "data": "",
    "method": "",
    "data sets": "",
    "expected error": ".3f",
    "actual error": ".3f",
    "actual - expected": ".3f",
    "standard error": ".3f",
    "mean distance": ".3f",
    "seconds": ".4f",
}
_AGAINST_FORMATS = {
    "data": "",
    "against": "",
    "distance of the correction": ".3f",
    "distance of the other": ".3f",
    "difference": ".3f",
    "standard error": ".3f",
    "the correction is": "",
}
_TEST_FORMATS = {"data": "", "data sets": "", "share with p < 0.05": ".2f", "seconds": ".3f"}
_NOTES = [
    "Cross-validation is of a naive Bayes classifier that smooths by one case. Actual errors are on cases that no "
    "method has seen. The corrected and uncorrected models expect an error on those same cases without their labels.",
    "Distance: absolute difference of expected and actual error on one data set; the means are compared in pairs, and "
    "the correction is better or worse where they differ by more than 2 standard errors, and equal otherwise. Splits "
    "of one real data set share rows, so that their standard errors are too small.",
    "The permutation test gives no error rate: without signal, it should find one in at most 5 % of the data sets.",
    "Seconds of processor time for one data set; those of the models include predictions of all test cases.",
    "Rho: correlation of the normal variables behind the features of one block, within the classes. The correction "
    "assumes that features are independent there (rho = 0).",
]


@settings
class SimulatedSets:
    """Simulated data: alpha of each strength of signal (null: none), correlations, and sizes."""

    signals: dict[str, float | None]
    correlations: list[float]
    n_train: int = 40
    n_test: int = 1000
    n_features: int = 2000
    block: int = 20

    def __post_init__(self) -> None:
        check_axis("simulated.signals", list(self.signals))
        check_axis("simulated.correlations", self.correlations)
        if wrong := [alpha for alpha in self.signals.values() if alpha is not None and not alpha > 0]:
            raise ValueError(f"simulated.signals must be positive numbers or null, got {wrong[0]}")
        if wrong := [rho for rho in self.correlations if not 0 <= rho < 1]:
            raise ValueError(f"simulated.correlations must be at least 0 and below 1, got {wrong[0]}")
        check_at_least(1, n_test=self.n_test, n_features=self.n_features, block=self.block)
        check_at_least(10, n_train=self.n_train)


@settings
class RealSet:
    """A declared data set with two classes, sizes of its random splits, and what is done to it."""

    dataset: str
    positive: list[str]
    negative: list[str]
    n_train: int = 40
    n_test: int = 1000
    n_noise: int = 0
    permuted: bool = False


@settings
class Noise:
    """Several estimates of the error with k selected features, on data with little signal or none.

    `real` are the names of the `real_sets` to run. Where a method chooses k, it does so among `ks`.
    """

    simulated: SimulatedSets
    real_sets: dict[str, RealSet]
    real: list[str]
    replicates: int = 20
    k: int = 10
    ks: list[int]
    n_folds: int = 10
    n_permutations: int = 99
    seed: int = 0

    def __post_init__(self) -> None:
        check_ks([self.k], self.simulated.n_features)
        check_ks(self.ks, self.simulated.n_features)
        check_at_least(1, replicates=self.replicates, n_permutations=self.n_permutations)
        check_at_least(2, n_folds=self.n_folds)
        if unknown := [name for name in self.real if name not in self.real_sets]:
            raise ValueError(f"real must be names in real_sets, {list(self.real_sets)}, got {unknown[0]}")

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each kind of data and replicate."""
        return [
            Cell.of(
                {"data": name, "replicate": replicate},
                compare_estimates,
                kind=kind,
                data=data,
                k=self.k,
                ks=self.ks,
                n_folds=self.n_folds,
                n_permutations=self.n_permutations,
                seed=seed_for(purpose="noise", data=name, replicate=replicate, seed=self.seed),
            )
            for name, kind, data in [*self._simulated(), *self._real(inputs)]
            for replicate in range(self.replicates)
        ]

    def _simulated(self) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        drawn = self.simulated
        sizes = {name: getattr(drawn, name) for name in ("n_train", "n_test", "n_features", "block")}
        for signal, alpha in drawn.signals.items():
            for rho in drawn.correlations:
                yield _name(signal, rho), "simulated", {"alpha": alpha, "correlation": rho, **sizes}

    def _real(self, inputs: Inputs) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        for name in self.real:
            chosen = self.real_sets[name]
            fields = ("positive", "negative", "n_train", "n_test", "n_noise", "permuted")
            data = {field: getattr(chosen, field) for field in fields}
            yield name, "real", {"dataset": inputs.dataset(chosen.dataset), **data}

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return errors of each method, the correction against the others, the permutation test, and figures."""
        names = list(dict.fromkeys(rows["data"]))
        found = {name: ours for name in names if len(ours := successes(rows, data=name))}
        errors = [_line(name, ours, method) for name, ours in found.items() for method in METHODS]
        against = [
            _against(name, ours, other) for name, ours in found.items() for other in METHODS if other != "corrected"
        ]
        tests = [
            {
                "data": name,
                "data sets": len(ours),
                "share with p < 0.05": float((ours["p_value"] < 0.05).mean()),
                "seconds": float(ours["permutation_seconds"].mean()),
            }
            for name, ours in found.items()
        ]
        tables = (
            Table.of("Expected and actual errors", errors, _FORMATS),
            Table.of("The correction against each other method", against, _AGAINST_FORMATS, name="against"),
            Table.of("Permutation test", tests, _TEST_FORMATS, name="permutation"),
        )
        figures = [self._correlation_figure(signal, found) for signal in self.simulated.signals]
        figures.append(_errors_figure(errors))
        return Outcome(tables, [figure for figure in figures if len(figure.points)], (), [_summary(against), *_NOTES])

    def _correlation_figure(self, signal: str, found: Mapping[str, pd.DataFrame]) -> LineFigure:
        """Return by how much each method is too sure, against the correlation of the features."""
        points = []
        for method, title in METHODS.items():
            for rho in self.simulated.correlations:
                ours = found.get(_name(signal, rho))
                if ours is None:
                    continue
                line = _line("", ours, method)
                gap, half = float(line["actual - expected"]), 2 * float(line["standard error"])
                points.append({"series": title, "x": rho, "y": gap, "low": gap - half, "high": gap + half})
        return LineFigure(
            f"Actual minus expected error, {signal}",
            "correlation of the features of a block (rho)",
            "actual minus expected error",
            _points(points, interval=True),
            name=f"correlation_{signal.replace(' ', '_')}",
            levels={"honest": 0.0},
            interval="2 standard errors to either side",
            methods=_COLOURS,
        )


# In other figures corrected and uncorrected predictions have these names, and so their colours here.
_COLOURS = {METHODS[name]: name for name in ("corrected", "uncorrected")}


def _name(signal: str, rho: float) -> str:
    return f"{signal}, rho = {rho:g}"


def _points(points: Sequence[Mapping[str, object]], *, interval: bool) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(points, columns=["series", "x", "y", *(("low", "high") if interval else ())])


def _standard_error(values: pd.Series[float]) -> float:
    return float(values.std() / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _line(name: str, ours: pd.DataFrame, method: str) -> dict[str, float | str]:
    expected, actual = ours[f"{method}_expected"], ours[f"{method}_actual"]
    return {
        "data": name,
        "method": METHODS[method],
        "data sets": len(ours),
        "expected error": float(expected.mean()),
        "actual error": float(actual.mean()),
        "actual - expected": float((actual - expected).mean()),
        "standard error": _standard_error(actual - expected),
        "mean distance": float((actual - expected).abs().mean()),
        "seconds": float(ours[f"{method}_seconds"].mean()),
    }


def _against(name: str, ours: pd.DataFrame, other: str) -> dict[str, object]:
    """Return whether the correction's expected error is closer to its actual one than another method's, in pairs."""
    distances = [(ours[f"{method}_actual"] - ours[f"{method}_expected"]).abs() for method in ("corrected", other)]
    difference = distances[0] - distances[1]
    mean, spread = float(difference.mean()), _standard_error(difference)
    verdict = "worse" if mean > 2 * spread else "better" if mean < -2 * spread else "equal"
    return {
        "data": name,
        "against": METHODS[other],
        "distance of the correction": float(distances[0].mean()),
        "distance of the other": float(distances[1].mean()),
        "difference": mean,
        "standard error": spread,
        "the correction is": verdict,
    }


def _summary(against: Sequence[Mapping[str, object]]) -> str:
    """Return on how many kinds of data the correction is better, equal and worse than each other method."""
    counts = []
    for other in dict.fromkeys(line["against"] for line in against):
        verdicts = [line["the correction is"] for line in against if line["against"] == other]
        shown = ", ".join(f"{verdict} on {verdicts.count(verdict)}" for verdict in ("better", "equal", "worse"))
        counts.append(f"{other}: {shown}")
    return f"The correction against {'; '.join(counts)} kinds of data."


def _errors_figure(errors: Sequence[Mapping[str, object]]) -> LineFigure:
    points = [{"series": line["method"], "x": line["expected error"], "y": line["actual error"]} for line in errors]
    top = float(np.max([(p["x"], p["y"]) for p in points], initial=0.5))
    points += [{"series": "equal", "x": at, "y": at} for at in (0.0, top)] if points else []
    return LineFigure(
        "Expected and actual error, mean on each kind of data",
        "expected error",
        "actual error",
        _points(points, interval=False),
        marks=dict.fromkeys(METHODS.values(), "points") | {"equal": "guide"},
        methods=_COLOURS,
    )
