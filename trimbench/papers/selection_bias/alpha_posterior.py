"""Posterior distribution of log(alpha) with and without correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from trimbench._typing import Vector
from trimbench.papers import vocabulary as vocab
from trimbench.papers.execution.job import NUMBER, job, listed
from trimbench.papers.selection_bias import simulated_cases as sim
from trimbench.selection_bias.factors import Ties
from trimbench.selection_bias.fit import fit_selection_corrected
from trimbench.selection_bias.prior import Prior

# Of a drawn density: its points, and how far it goes on where it is low already.
_N_POINTS, _MARGIN = 600, 0.5


@vocab.settings
class AlphaPosterior(sim.Replicated):
    """Whether the posterior of log(alpha) covers the value that the cases were drawn with; one pair of class sizes.

    The figures show the first replicate.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.sizes  # refuses several pairs

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each replicate and number of features."""
        return [
            self.cell(posterior_of_alpha, self.sizes, {"k": k, "replicate": replicate})
            for replicate in range(self.replicates)
            for k in self.ks
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return posterior means and coverage, and a figure for each k."""
        truth = math.log(self.alpha)
        methods = sim.by_correction(rows)
        columns = [
            vocab.Column("replicates", "", len),
            vocab.Column("true log(alpha)", ".3f", lambda ours: truth),
            *vocab.means({"posterior mean": "mean_log_alpha"}, ".3f"),
            vocab.Column("se", ".3f", lambda ours: vocab.standard_error(ours["mean_log_alpha"])),
            vocab.Column(
                "truth in central 95 %",
                ".2f",
                lambda ours: float(np.mean([_covers(*_density(*one), truth) for one in _curves(ours)])),
            ),
        ]
        title = "Posterior of log(alpha): means over replicates, and how often its central 95 % hold the truth"
        table = vocab.Table.of_groups(title, vocab.groups(methods, "k", "correction"), columns)
        shown = methods[methods["replicate"] == 0] if len(methods) else methods
        figures = [_figure(ours, labels["k"], self.n_features, truth) for labels, ours in vocab.groups(shown, "k")]
        numbers = []
        for labels, ours in vocab.groups(rows, "k"):
            # How much closer to the truth the correction brings the mean of the posterior.
            corrected, uncorrected = (abs(float(ours[f"{c}_mean_log_alpha"].mean()) - truth) for c in sim.CORRECTIONS)
            numbers.append(vocab.number_of(f"k = {labels['k']}", "closer mean", uncorrected - corrected, ours))
        notes = []
        if self.prior.n_alpha > Prior().n_alpha:
            notes.append(
                f"The grid has {self.prior.n_alpha} values of alpha, more than the {Prior().n_alpha} of predictions, "
                "to draw narrow posteriors."
            )
        return vocab.Outcome((table,), figures, numbers, notes)


def _density(log_alpha: Sequence[float], log_density: Sequence[float]) -> tuple[Vector, Vector]:
    """Return log(alpha) and its posterior density, which integrates to 1 over the grid."""
    x, y = np.array(log_alpha), np.exp(np.array(log_density))
    # A grid of one value has no width to integrate over.
    return x, y / np.trapezoid(y, x) if len(x) > 1 else y


def _curves(ours: pd.DataFrame) -> list[tuple[Sequence[float], Sequence[float]]]:
    return list(zip(ours["log_alpha"], ours["log_density"], strict=True))


def _covers(x: Vector, y: Vector, truth: float) -> bool:
    if len(x) < 2:
        return False
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (y[1:] + y[:-1]) * np.diff(x))])
    return bool(0.025 <= np.interp(truth, x, cumulative) <= 0.975)


def _between_grid_values(x: Vector, log_alpha: Sequence[float], log_density: Sequence[float]) -> Vector:
    """Return the posterior density at any values of log(alpha) inside the grid: its logarithm is a cubic spline."""
    from scipy.interpolate import CubicSpline

    grid, density = _density(log_alpha, log_density)
    logarithm = np.array(log_density)
    scale = density[logarithm.argmax()] / np.exp(logarithm.max())
    return np.asarray(scale * np.exp(CubicSpline(grid, logarithm)(x)))


def _figure(ours: pd.DataFrame, k: int, n_features: int, truth: float) -> vocab.LineFigure:
    curves = dict(zip(ours["correction"], _curves(ours), strict=True))
    densities = {correction: _density(*curves[correction]) for correction in reversed(sim.CORRECTIONS)}
    grid = next(iter(densities.values()))[0]
    if len(grid) > 1:
        # What is far below the peak everywhere only stretches the axis.
        least = 1e-3 * max(y.max() for _, y in densities.values())
        seen = grid[np.any([y > least for _, y in densities.values()], axis=0)]
        low, high = min(seen[0], truth) - _MARGIN, max(seen[-1], truth) + _MARGIN
        x = np.linspace(max(low, grid[0]), min(high, grid[-1]), _N_POINTS)
        densities = {correction: (x, _between_grid_values(x, *curves[correction])) for correction in densities}
    return vocab.LineFigure.of(
        f"Posterior of log(alpha), {k:,} feature{'s' if k > 1 else ''} selected out of {n_features:,}",
        ("log(alpha)", "density"),
        [(correction, *point) for correction, curve in densities.items() for point in zip(*curve, strict=True)],
        name=f"k{k}",
        marks=dict.fromkeys(sim.CORRECTIONS, "density"),
        verticals={f"truth ({truth:.2f})": truth},
    )


@job({"log_alpha": listed(NUMBER), **sim.both({"log_density": listed(NUMBER), "mean_log_alpha": NUMBER})})
def posterior_of_alpha(
    data: sim.ModelSettings, data_seed: int, prior: Prior, ties: Ties, k: int
) -> dict[str, vocab.Json]:
    """Draw cases from the model, select k features, and compute the posterior of log(alpha).

    The parameters are those of `trimbench.papers.selection_bias.simulation.select_and_predict`.
    """
    cases = sim.simulate(data, np.random.default_rng(data_seed))
    model = fit_selection_corrected(cases.X, cases.y, k, ties=ties, **asdict(prior))
    log_alpha = np.log(model.alpha_grid)
    result: dict[str, vocab.Json] = {"log_alpha": log_alpha.tolist()}
    for name, fitted in sim.both_models(model).items():
        density = fitted.log_alpha_density
        result[f"{name}_log_density"] = (density - density.max()).tolist()
        result[f"{name}_mean_log_alpha"] = float(fitted.alpha_posterior @ log_alpha)
    return result
