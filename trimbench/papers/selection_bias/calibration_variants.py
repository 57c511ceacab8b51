"""Each model of the library on data sets drawn from its own prior: what it predicts, and where the truth lies."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.selection_bias.settings import CORRECTIONS
from trimbench.selection_bias.discrete import fit_discrete_selection_corrected
from trimbench.selection_bias.gaussian import fit_gaussian_selection_corrected
from trimbench.selection_bias.mixture import fit_mixture_selection_corrected, mixture_priors
from trimbench.selection_bias.model import fit_selection_corrected
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.simulation import ModelSettings, simulate, simulate_gaussian

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sizes:
    """Sizes of the data sets of a variant, its number of selected features, and the values of alpha in its grid."""

    n_train: int
    n_test: int
    n_features: int
    k: int
    n_alpha: int


class Model(Protocol):
    """What all fitted models have."""

    def predict_proba(self, X: NDArray[np.number]) -> Floats:
        """Return P(y | x) of each class."""


@dataclass(frozen=True, eq=False)
class Draw:
    """A data set from the prior, what it was drawn with, and the models with and without correction.

    `below` and `equal` tell, for each correction, how probable the posterior finds an alpha below the true one, and the
    true one itself.
    """

    X_test: NDArray[np.number]
    y_test: NDArray[np.int64]
    models: Mapping[str, Model]
    below: Mapping[str, float]
    equal: Mapping[str, float]
    converged: bool = True


def _labels(rng: np.random.Generator, sizes: Sizes) -> tuple[int, int]:
    """Return the number of cases with y = 1 for training, both classes among them, and for testing."""
    while True:
        share = rng.beta(1.0, 1.0)
        n1 = int(rng.binomial(sizes.n_train, share))
        if 0 < n1 < sizes.n_train:
            return n1, int(rng.binomial(sizes.n_test, share))


def _places(posteriors: Mapping[str, Floats], place: int) -> tuple[dict[str, float], dict[str, float]]:
    below = {name: float(posterior[:place].sum()) for name, posterior in posteriors.items()}
    return below, {name: float(posterior[place]) for name, posterior in posteriors.items()}


def draw_binary(sizes: Sizes, rng: np.random.Generator) -> Draw:
    """Draw from the naive Bayes model with binary features."""
    place = int(rng.integers(sizes.n_alpha))
    alpha = float(Prior(n_alpha=sizes.n_alpha).alphas()[place])
    n1, test1 = _labels(rng, sizes)
    groups = ((sizes.n_train - n1, n1), (sizes.n_test - test1, test1))
    data = simulate(ModelSettings(sizes.n_features, alpha, 0.0, *groups), rng)
    model = fit_selection_corrected(data.X, data.y, sizes.k, n_alpha=sizes.n_alpha)
    models = {"corrected": model, "uncorrected": model.uncorrected()}
    return Draw(data.X_test, data.y_test, models, *_places({c: m.alpha_posterior for c, m in models.items()}, place))


def draw_discrete(sizes: Sizes, rng: np.random.Generator) -> Draw:
    """Draw from the naive Bayes model with features of three categories."""
    place = int(rng.integers(sizes.n_alpha))
    alpha = float(Prior(n_alpha=sizes.n_alpha).alphas()[place])
    n1, test1 = _labels(rng, sizes)
    y, y_test = (np.repeat([0, 1], [n - ones, ones]) for n, ones in ((sizes.n_train, n1), (sizes.n_test, test1)))
    theta = rng.dirichlet(np.ones(3), size=sizes.n_features)
    # Shape (2, n_features, 3), from gamma variables, which may be too small for a number where theta is.
    drawn = np.maximum(rng.standard_gamma(alpha * np.stack([theta, theta])), 1e-300)
    bounds = np.cumsum(drawn / drawn.sum(axis=2, keepdims=True), axis=2)[:, :, :2]
    X, X_test = (
        (rng.random((len(of), sizes.n_features, 1)) > bounds[of]).sum(axis=2).astype(np.int64) for of in (y, y_test)
    )
    categories = np.full(sizes.n_features, 3)
    model = fit_discrete_selection_corrected(X, y, sizes.k, n_categories=categories, n_alpha=sizes.n_alpha)
    models = {"corrected": model, "uncorrected": model.uncorrected()}
    return Draw(X_test, y_test, models, *_places({c: m.alpha_posterior for c, m in models.items()}, place))


def draw_mixture(sizes: Sizes, rng: np.random.Generator) -> Draw:
    """Draw from the binary mixture model."""
    priors = mixture_priors(n_alpha=sizes.n_alpha)
    alpha, alpha0 = (float(rng.choice(prior.alphas())) for prior in priors)
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

    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # chains that have not converged are counted
        models = {
            name: fit_mixture_selection_corrected(
                X, y, sizes.k, correct=name == "corrected", n_alpha=sizes.n_alpha, seed=seed, n_warmup=300, n_draws=600
            )
            for name in CORRECTIONS
        }
    relative = {name: model.log_alpha - np.log(alpha) for name, model in models.items()}
    below = {name: float((draws < -1e-9).mean()) for name, draws in relative.items()}
    equal = {name: float((np.abs(draws) <= 1e-9).mean()) for name, draws in relative.items()}
    return Draw(X_test, y_test, models, below, equal, all(model.converged for model in models.values()))


def draw_classes(sizes: Sizes, rng: np.random.Generator) -> Draw:
    """Draw from the naive Bayes model with binary features and three classes."""
    place = int(rng.integers(sizes.n_alpha))
    alpha = float(Prior(n_alpha=sizes.n_alpha).alphas()[place])
    while True:
        shares = rng.dirichlet(np.ones(3))
        y, y_test = (rng.choice(3, size=n, p=shares) for n in (sizes.n_train, sizes.n_test))
        if len(np.unique(y)) == 3:
            break
    theta = np.clip(rng.random(sizes.n_features), 1e-12, 1.0 - 1e-12)
    phi = rng.beta(alpha * theta, alpha * (1.0 - theta), size=(3, sizes.n_features))
    X, X_test = ((rng.random((len(of), sizes.n_features)) < phi[of]).astype(np.uint8) for of in (y, y_test))
    model = fit_selection_corrected(X, y, sizes.k, n_alpha=sizes.n_alpha, factor="enumerate")
    models = {"corrected": model, "uncorrected": model.uncorrected()}
    return Draw(X_test, y_test, models, *_places({c: m.alpha_posterior for c, m in models.items()}, place))


def draw_gaussian(sizes: Sizes, rng: np.random.Generator) -> Draw:
    """Draw from the naive Bayes model with Gaussian features."""
    return _gaussian(sizes, 2, rng)


def draw_gaussian_classes(sizes: Sizes, rng: np.random.Generator) -> Draw:
    """Draw from the naive Bayes model with Gaussian features and three classes."""
    return _gaussian(sizes, 3, rng)


def _gaussian(sizes: Sizes, n_classes: int, rng: np.random.Generator) -> Draw:
    place = int(rng.integers(sizes.n_alpha))
    alpha = float(Prior(n_alpha=sizes.n_alpha).alphas()[place])
    while True:
        shares = rng.dirichlet(np.ones(n_classes))
        train, test = (rng.multinomial(n, shares) for n in (sizes.n_train, sizes.n_test))
        if train.all():
            break
    data = simulate_gaussian(sizes.n_features, alpha, train.tolist(), test.tolist(), rng)
    model = fit_gaussian_selection_corrected(data.X, data.y, sizes.k, n_alpha=sizes.n_alpha)
    models = {"corrected": model, "uncorrected": model.uncorrected()}
    return Draw(data.X_test, data.y_test, models, *_places({c: m.alpha_posterior for c, m in models.items()}, place))


# To add a model to the experiment, add its function here and its sizes to the configuration.
VARIANTS: Mapping[str, Callable[[Sizes, np.random.Generator], Draw]] = {
    "binary": draw_binary,
    "discrete": draw_discrete,
    "three classes": draw_classes,
    "gaussian": draw_gaussian,
    "gaussian three classes": draw_gaussian_classes,
    "mixture": draw_mixture,
}


def _errors(y: NDArray[np.int64], probabilities: Floats) -> tuple[float, float]:
    """Return the expected and the actual error rate, for any number of classes."""
    predicted = probabilities.shape[1] - 1 - probabilities[:, ::-1].argmax(axis=1)  # of equal ones the last
    return float(np.sort(probabilities, axis=1)[:, :-1].sum(axis=1).mean()), float((predicted != y).mean())


@job_function(code=("trimbench.selection_bias",))
def calibrate(variant: str, sizes: Mapping[str, int], seeds: list[int]) -> dict[str, Json]:
    """Draw one data set for each seed, and return lists with errors of the predictions and ranks of the true alpha.

    A rank is uniform on [0, 1] if the posterior is right: the probability of an alpha below the true one, and of the
    true one a random share, as the grid has few values.
    """
    found: dict[str, list[float]] = {}
    converged = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        draw = VARIANTS[variant](Sizes(**sizes), rng)
        converged += draw.converged
        tie = rng.random()
        for name, model in draw.models.items():
            expected, actual = _errors(draw.y_test, model.predict_proba(draw.X_test))
            found.setdefault(f"{name}_expected_error", []).append(expected)
            found.setdefault(f"{name}_actual_error", []).append(actual)
            found.setdefault(f"{name}_rank", []).append(draw.below[name] + tie * draw.equal[name])
    return {**found, "converged": converged}
