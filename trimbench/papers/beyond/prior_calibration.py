"""Each model of the library on data sets drawn from its own prior: what it predicts, and where the truth lies."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trimbench.papers.selection_bias import simulated_cases as sim
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.job import COUNT, SHARE, job, list_of, seed_for
from trimbench.selection_bias.factors import Simulation
from trimbench.selection_bias.fit import fit_selection_corrected
from trimbench.selection_bias.mixture import MixtureSampler
from trimbench.selection_bias.prior import Prior

Floats = NDArray[np.float64]


@vocab.settings
class Sizes:
    """Sizes of the data sets of a variant, its number of selected features, and the values of alpha in its grid."""

    n_train: Annotated[int, vocab.at_least(4)]
    n_test: vocab.Count
    n_features: vocab.Count
    k: vocab.Count
    n_alpha: vocab.Count

    def __post_init__(self) -> None:
        if self.k > self.n_features:
            raise ValueError(f"k must be at most n_features={self.n_features}, got {self.k}")


@dataclass(frozen=True, eq=False)
class Draw:
    """A data set from the prior, what it was drawn with, and the models with and without correction.

    `below` and `equal` tell, for each correction, how probable the posterior finds an alpha below the true one, and the
    true one itself.
    """

    X_test: NDArray[np.number]
    y_test: NDArray[np.int64]
    models: Mapping[str, Any]
    below: Mapping[str, float]
    equal: Mapping[str, float]
    converged: bool = True


Variant = Callable[[Sizes, np.random.Generator], Draw]


# Test cases, their classes, and the corrected model of the training cases.
_Drawn = tuple[NDArray[Any], NDArray[np.int64], Any]


def _from_grid(draw: Callable[[Sizes, float, np.random.Generator], _Drawn]) -> Variant:
    """Return the variant that draws alpha from the grid of its prior, to which the model's posterior is confined."""

    def drawn(sizes: Sizes, rng: np.random.Generator) -> Draw:
        place = int(rng.integers(sizes.n_alpha))
        X_test, y_test, model = draw(sizes, float(Prior(n_alpha=sizes.n_alpha).alphas()[place]), rng)
        models = sim.both_models(model)
        posteriors = {name: one.alpha_posterior for name, one in models.items()}
        below = {name: float(posterior[:place].sum()) for name, posterior in posteriors.items()}
        return Draw(X_test, y_test, models, below, {name: float(one[place]) for name, one in posteriors.items()})

    return drawn


def _class_sizes(rng: np.random.Generator, sizes: Sizes) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the number of cases of each of two classes for training, both at least 1, and for testing."""
    while True:
        share = rng.beta(1.0, 1.0)
        n1 = int(rng.binomial(sizes.n_train, share))
        if 0 < n1 < sizes.n_train:
            test1 = int(rng.binomial(sizes.n_test, share))
            return (sizes.n_train - n1, n1), (sizes.n_test - test1, test1)


def _binary(sizes: Sizes, alpha: float, rng: np.random.Generator) -> _Drawn:
    data = sim.simulate(sim.ModelSettings(sizes.n_features, alpha, 0.0, *_class_sizes(rng, sizes)), rng)
    model = fit_selection_corrected(data.X, data.y, sizes.k, prior=Prior(n_alpha=sizes.n_alpha), calibrate=False)
    return data.X_test, data.y_test, model


def _discrete(sizes: Sizes, alpha: float, rng: np.random.Generator) -> _Drawn:
    y, y_test = (np.repeat([0, 1], counts) for counts in _class_sizes(rng, sizes))
    theta = rng.dirichlet(np.ones(3), size=sizes.n_features)
    # Shape (2, n_features, 3), from gamma variables, which may be too small for a number where theta is.
    drawn = np.maximum(rng.standard_gamma(alpha * np.stack([theta, theta])), 1e-300)
    bounds = np.cumsum(drawn / drawn.sum(axis=2, keepdims=True), axis=2)[:, :, :2]
    X, X_test = (
        (rng.random((len(of), sizes.n_features, 1)) > bounds[of]).sum(axis=2).astype(np.int64) for of in (y, y_test)
    )
    how: dict[str, Any] = {"features": "categorical", "n_categories": np.full(sizes.n_features, 3), "calibrate": False}
    return X_test, y_test, fit_selection_corrected(X, y, sizes.k, prior=Prior(n_alpha=sizes.n_alpha), **how)


def _classes(sizes: Sizes, alpha: float, rng: np.random.Generator) -> _Drawn:
    while True:
        shares = rng.dirichlet(np.ones(3))
        y, y_test = (rng.choice(3, size=n, p=shares) for n in (sizes.n_train, sizes.n_test))
        if len(np.unique(y)) == 3:
            break
    theta = np.clip(rng.random(sizes.n_features), 1e-12, 1.0 - 1e-12)
    phi = rng.beta(alpha * theta, alpha * (1.0 - theta), size=(3, sizes.n_features))
    X, X_test = ((rng.random((len(of), sizes.n_features)) < phi[of]).astype(np.uint8) for of in (y, y_test))
    how: dict[str, Any] = {"simulation": Simulation(factor="enumerate"), "calibrate": False}
    return X_test, y_test, fit_selection_corrected(X, y, sizes.k, prior=Prior(n_alpha=sizes.n_alpha), **how)


def _gaussian(n_classes: int, sizes: Sizes, alpha: float, rng: np.random.Generator) -> _Drawn:
    while True:
        shares = rng.dirichlet(np.ones(n_classes))
        train, test = (rng.multinomial(n, shares) for n in (sizes.n_train, sizes.n_test))
        if train.all():
            break
    data = sim.simulate_gaussian(sizes.n_features, alpha, train.tolist(), test.tolist(), rng)
    model = fit_selection_corrected(
        data.X, data.y, sizes.k, features="gaussian", prior=Prior(n_alpha=sizes.n_alpha), calibrate=False
    )
    return data.X_test, data.y_test, model


def draw_mixture(sizes: Sizes, rng: np.random.Generator) -> Draw:
    """Draw from the binary mixture model."""
    prior, sampler = Prior(n_alpha=sizes.n_alpha), MixtureSampler(n_warmup=300, n_draws=600)
    alpha, alpha0 = (float(rng.choice(grid)) for grid in (prior.alphas(), sampler.alphas0(sizes.n_alpha)))
    concentrations = np.full(sizes.n_features + 1, alpha)
    concentrations[0] = alpha0
    while True:
        theta = np.clip(rng.random(sizes.n_features + 1), 1e-12, 1.0 - 1e-12)
        phi = rng.beta(concentrations * theta, concentrations * (1.0 - theta), size=(2, sizes.n_features + 1))
        z = (rng.random(sizes.n_train + sizes.n_test) > rng.beta(1.0, 1.0)).astype(np.int64)
        values = (rng.random((len(z), sizes.n_features + 1)) < phi[z]).astype(np.int64)
        y, y_test = values[: sizes.n_train, 0], values[sizes.n_train :, 0]
        if 0 < y.sum() < len(y):
            break
    X, X_test = values[: sizes.n_train, 1:], values[sizes.n_train :, 1:]
    from sklearn.exceptions import ConvergenceWarning

    sampler = replace(sampler, random_state=int(rng.integers(2**31)))
    settings: dict[str, Any] = {"features": "mixture", "prior": prior, "sampler": sampler, "calibrate": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # chains that have not converged are counted
        models = {
            name: fit_selection_corrected(X, y, sizes.k, correct=name == "corrected", **settings)
            for name in sim.CORRECTIONS
        }
    relative = {name: model.log_alpha - np.log(alpha) for name, model in models.items()}
    below = {name: float((draws < -1e-9).mean()) for name, draws in relative.items()}
    equal = {name: float((np.abs(draws) <= 1e-9).mean()) for name, draws in relative.items()}
    return Draw(X_test, y_test, models, below, equal, all(model.converged for model in models.values()))


# To add a model to the experiment, add its function here and its sizes to the configuration.
VARIANTS: Mapping[str, Variant] = {
    "binary": _from_grid(_binary),
    "discrete": _from_grid(_discrete),
    "three classes": _from_grid(_classes),
    "gaussian": _from_grid(functools.partial(_gaussian, 2)),
    "gaussian three classes": _from_grid(functools.partial(_gaussian, 3)),
    "mixture": draw_mixture,
}


@job({"converged": COUNT, **dict.fromkeys(("*_expected_error", "*_actual_error", "*_rank"), list_of(SHARE))})
def calibrate(variant: str, sizes: Sizes, seeds: list[int]) -> dict[str, vocab.Json]:
    """Draw one data set for each seed, and return lists with errors of the predictions and ranks of the true alpha.

    A rank is the posterior probability of an alpha below the true one, plus a random share of that of the true one, as
    the grid has few values. It is uniform on [0, 1] if the posterior is right.
    """
    found: dict[str, list[float]] = {}
    converged = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        draw = VARIANTS[variant](sizes, rng)
        converged += draw.converged
        tie = rng.random()
        for name, model in draw.models.items():
            p = model.predict_proba(draw.X_test)
            expected = float(np.sort(p, axis=1)[:, :-1].sum(axis=1).mean())
            predicted = p.shape[1] - 1 - p[:, ::-1].argmax(axis=1)  # ties go to the last
            found.setdefault(f"{name}_expected_error", []).append(expected)
            found.setdefault(f"{name}_actual_error", []).append(float((predicted != draw.y_test).mean()))
            found.setdefault(f"{name}_rank", []).append(draw.below[name] + tie * draw.equal[name])
    return {**found, "converged": converged}


# Simulation-based calibration: data sets from the prior of each model, and whether its probabilities hold there.

# The most models that a figure can tell apart, with and without correction.
_MODELS_SHOWN = 3


@vocab.settings
class PriorCalibration:
    """Ranks of alpha and overconfidence of predictions, on data sets drawn from the prior of each model.

    `models` are the sizes of the data sets for each model. A job draws `sets_per_job` of the `data_sets`.
    """

    models: dict[str, Sizes]
    data_sets: Annotated[int, vocab.at_least(2)] = 300
    sets_per_job: vocab.Count = 20
    n_bins: Annotated[int, vocab.at_least(2)] = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("models must name at least one model, got none")
        for name in self.models:
            if name not in VARIANTS:
                raise vocab.unknown("models: a model", list(VARIANTS), name)

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each model and block of data sets."""
        return [
            vocab.Cell.of({"model": name, "first": first}, calibrate, variant=name, sizes=sizes, seeds=seeds)
            for name, sizes in self.models.items()
            for first in range(0, self.data_sets, self.sets_per_job)
            for numbers in [range(first, min(first + self.sets_per_job, self.data_sets))]
            for seeds in [[seed_for(purpose="prior data", model=name, number=n, seed=self.seed) for n in numbers]]
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return overconfidence and ranks of each model, and their figures."""
        columns = ["expected_error", "actual_error", "rank"]
        methods = sim.by_correction(rows)
        sets = methods.explode(columns).astype(dict.fromkeys(columns, float)) if len(methods) else methods
        if len(sets):
            sets["gap"] = sets["actual_error"] - sets["expected_error"]
        groups = list(vocab.groups(sets, "model", "correction"))
        lines = [labels | _errors(ours) for labels, ours in groups]
        errors = vocab.Table.of("Overconfidence on data sets from the prior", lines, _ERRORS)
        lines = [labels | _ranks(ours, self.n_bins) for labels, ours in groups]
        ranks = vocab.Table.of("Ranks of the true alpha", lines, _RANKS, name="ranks")
        names = list(dict.fromkeys(labels["model"] for labels, _ in groups))
        shown = [names[start : start + _MODELS_SHOWN] for start in range(0, len(names), _MODELS_SHOWN)]
        figures = [_errors_figure(errors.frame, models, f"errors_{i}" if i else "") for i, models in enumerate(shown)]
        figures += [_ranks_figure(labels["model"], ours, self.n_bins) for labels, ours in vocab.groups(sets, "model")]
        notes = [
            f"The chains of both mixture models converged on {ours['converged'].sum()} of "
            f"{ours['corrected_rank'].map(len).sum()} data sets; all count."
            for labels, ours in vocab.groups(rows, "model")
            if labels["model"] == "mixture"
        ]
        return vocab.Outcome((errors, ranks), figures, (), notes)


def _within(ours: pd.DataFrame) -> str:
    return "yes" if abs(ours["gap"].mean()) <= 2 * vocab.standard_error(ours["gap"]) else "no"


def _errors(ours: pd.DataFrame) -> dict[str, object]:
    return {
        "data sets": len(ours),
        "expected error": ours["expected_error"].mean(),
        "actual error": ours["actual_error"].mean(),
        "overconfidence": ours["gap"].mean(),
        "standard error": vocab.standard_error(ours["gap"]),
        "within 2 standard errors of 0": _within(ours),
    }


_ERRORS = {
    **dict.fromkeys(("model", "correction", "data sets"), ""),
    **dict.fromkeys(("expected error", "actual error", "overconfidence", "standard error"), ".4f"),
    "within 2 standard errors of 0": "",
}


def _ranks(ours: pd.DataFrame, n_bins: int) -> dict[str, object]:
    from scipy.stats import kstest

    counts, (low, high) = _counts(ours["rank"], n_bins), _band(len(ours), n_bins)
    return {
        "data sets": len(ours),
        "mean rank": ours["rank"].mean(),
        "bins outside their band": f"{int(((counts < low) | (counts > high)).sum())} of {n_bins}",
        "p-value (uniform ranks)": float(kstest(ours["rank"], "uniform").pvalue),
    }


_RANKS = {
    **dict.fromkeys(("model", "correction", "data sets"), ""),
    **{"mean rank": ".3f", "bins outside their band": "", "p-value (uniform ranks)": ".2g"},
}


def _counts(ranks: pd.Series[float], n_bins: int) -> NDArray[np.int64]:
    return np.bincount(np.minimum((ranks.to_numpy() * n_bins).astype(np.int64), n_bins - 1), minlength=n_bins)


def _band(n_sets: int, n_bins: int) -> tuple[float, float]:
    """Return the 2.5 % and 97.5 % points of the number of uniform ranks in one bin."""
    from scipy.stats import binom

    return float(binom.ppf(0.025, n_sets, 1 / n_bins)), float(binom.ppf(0.975, n_sets, 1 / n_bins))


def _ranks_figure(name: str, sets: pd.DataFrame, n_bins: int) -> vocab.LineFigure:
    centres = (np.arange(n_bins) + 0.5) / n_bins
    ranks = {correction: sets["rank"][sets["correction"] == correction] for correction in reversed(sim.CORRECTIONS)}
    n_sets = len(ranks["corrected"])
    points: list[tuple[object, ...]] = [
        (correction, *point)
        for correction, own in ranks.items()
        for point in zip(centres, _counts(own, n_bins), strict=True)
    ]
    points += [("uniform", x, n_sets / n_bins, *_band(n_sets, n_bins)) for x in centres]
    return vocab.LineFigure.of(
        f"Ranks of the true alpha ({vocab.shown_name(name)} model, {n_sets} data sets)",
        ("rank of the true alpha in its posterior", f"data sets in each of {n_bins} bins"),
        points,
        name=f"ranks_{name.replace(' ', '_')}",
        marks={"uniform": "guide"},
        interval="95 % of uniform ranks in one bin",
    )


def _errors_figure(errors: pd.DataFrame, models: Sequence[str], name: str) -> vocab.LineFigure:
    lines = errors[errors["model"].isin(models)].to_dict("records")
    methods = {f"{vocab.shown_name(line['model'])}, {line['correction']}": line["correction"] for line in lines}
    points = [
        (series, line["expected error"], y, y - half, y + half)
        for series, line in zip(methods, lines, strict=True)
        for y, half in [(line["actual error"], 2 * line["standard error"])]
    ]
    return vocab.LineFigure.against_diagonal(
        f"Expected and actual error on data sets from the prior: {'; '.join(map(vocab.shown_name, models))}",
        ("expected error", "actual error"),
        points,
        (0.0, max(max(x, high) for _, x, _, _, high in points)),
        mark="highlight",
        name=name,
        interval="2 standard errors of the difference to either side",
        methods=methods,
    )
