"""Posterior distribution of log(alpha) with and without correction."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.execution.code_hash import job_function
from trimbench.papers.selection_bias.simulated_cases import CORRECTIONS, ModelSettings, Replicated, simulate
from trimbench.papers.validation import Json, settings
from trimbench.papers.vocabulary.cells import Cell, Outcome, successes
from trimbench.papers.vocabulary.figures import LineFigure
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.tables import Table
from trimbench.selection_bias.factors import Ties
from trimbench.selection_bias.fit import fit_selection_corrected
from trimbench.selection_bias.prior import Prior

if TYPE_CHECKING:
    import pandas as pd

_FORMATS = {
    "k": "",
    "correction": "",
    "replicates": "",
    "true log(alpha)": ".3f",
    "posterior mean": ".3f",
    "se": ".3f",
    "truth in central 95 %": ".2f",
}
# Of a drawn density: its points, and how far it goes on where it is low already.
_N_POINTS, _MARGIN = 600, 0.5


@settings
class AlphaPosterior(Replicated):
    """Whether the posterior of log(alpha) covers the value that the cases were drawn with; one pair of class sizes.

    The figures show the first replicate.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.sizes  # refuses several pairs

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each replicate and number of features."""
        return [
            self.cell(posterior_of_alpha, self.sizes, {"k": k, "replicate": replicate}, k=k)
            for replicate in range(self.replicates)
            for k in self.ks
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return posterior means and coverage, and a figure for each k."""
        lines, figures = [], []
        truth = math.log(self.alpha)
        for k in self.ks:
            ours = successes(rows, k=k).to_dict("records")
            for correction in CORRECTIONS if ours else ():
                means = [found[f"{correction}_mean_log_alpha"] for found in ours]
                line = {"k": k, "correction": correction, "replicates": len(ours), "true log(alpha)": truth}
                line["posterior mean"] = float(np.mean(means))
                line["se"] = float(np.std(means, ddof=1) / math.sqrt(len(means))) if len(means) > 1 else math.nan
                line["truth in central 95 %"] = float(np.mean([_covers(found, correction, truth) for found in ours]))
                lines.append(line)
            figures += [_figure(found, k, self.n_features, truth) for found in ours if found["replicate"] == 0]
        title = "Posterior of log(alpha): means over replicates, and how often its central 95 % hold the truth"
        notes = ["The figures show the first replicate; the slides show one data set and print no number."]
        if self.prior.n_alpha > Prior().n_alpha:
            notes.append(
                f"The grid has {self.prior.n_alpha} values of alpha, more than the {Prior().n_alpha} of predictions, "
                "to draw narrow posteriors."
            )
        return Outcome((Table.of(title, lines, _FORMATS),), figures, (), notes)


def _density(found: Mapping[Hashable, Any], correction: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log(alpha) and its posterior density, which integrates to 1 over the grid."""
    x, y = np.array(found["log_alpha"]), np.exp(np.array(found[f"{correction}_log_density"]))
    # A grid of one value has no width to integrate over.
    return x, y / np.trapezoid(y, x) if len(x) > 1 else y


def _covers(found: Mapping[Hashable, Any], correction: str, truth: float) -> bool:
    x, y = _density(found, correction)
    if len(x) < 2:
        return False
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (y[1:] + y[:-1]) * np.diff(x))])
    return bool(0.025 <= np.interp(truth, x, cumulative) <= 0.975)


def _between_grid_values(found: Mapping[Hashable, Any], correction: str, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the posterior density at any values of log(alpha) inside the grid: its logarithm is a cubic spline."""
    from scipy.interpolate import CubicSpline

    grid, density = _density(found, correction)
    logarithm = np.array(found[f"{correction}_log_density"])
    scale = density[logarithm.argmax()] / np.exp(logarithm.max())
    smooth: NDArray[np.float64] = scale * np.exp(CubicSpline(grid, logarithm)(x))
    return smooth


def _figure(found: Mapping[Hashable, Any], k: int, n_features: int, truth: float) -> LineFigure:
    import pandas as pd

    densities = {correction: _density(found, correction) for correction in reversed(CORRECTIONS)}
    grid = next(iter(densities.values()))[0]
    if len(grid) > 1:
        # What is far below the peak everywhere only stretches the axis.
        least = 1e-3 * max(y.max() for _, y in densities.values())
        seen = grid[np.any([y > least for _, y in densities.values()], axis=0)]
        low, high = min(seen[0], truth) - _MARGIN, max(seen[-1], truth) + _MARGIN
        x = np.linspace(max(low, grid[0]), min(high, grid[-1]), _N_POINTS)
        densities = {correction: (x, _between_grid_values(found, correction, x)) for correction in densities}
    parts = [pd.DataFrame({"series": correction, "x": x, "y": y}) for correction, (x, y) in densities.items()]
    return LineFigure(
        f"Posterior of log(alpha), {k:,} feature{'s' if k > 1 else ''} selected out of {n_features:,}",
        "log(alpha)",
        "density",
        pd.concat(parts, ignore_index=True),
        name=f"k{k}",
        marks=dict.fromkeys(CORRECTIONS, "density"),
        verticals={f"truth ({truth:.2f})": truth},
    )


@job_function
def posterior_of_alpha(
    data: Mapping[str, Any], data_seed: int, prior: Mapping[str, Any], ties: Ties, k: int
) -> dict[str, Json]:
    """Draw cases from the model, select k features, and compute the posterior of log(alpha).

    The parameters are those of `trimbench.papers.selection_bias.simulation.select_and_predict`.
    """
    cases = simulate(ModelSettings(**data), np.random.default_rng(data_seed))
    model = fit_selection_corrected(cases.X, cases.y, k, ties=ties, **prior)
    log_alpha = np.log(model.alpha_grid)
    result: dict[str, Json] = {"log_alpha": log_alpha.tolist()}
    for name, fitted in (("corrected", model), ("uncorrected", model.uncorrected())):
        density = fitted.log_alpha_density
        result[f"{name}_log_density"] = (density - density.max()).tolist()
        result[f"{name}_mean_log_alpha"] = float(fitted.alpha_posterior @ log_alpha)
    return result
