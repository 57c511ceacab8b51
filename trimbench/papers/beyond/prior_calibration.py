"""Each model of the library on data sets drawn from its own prior: what it predicts, and where the truth lies."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.execution.code_hash import job_function
from trimbench.papers.execution.job import seed_for
from trimbench.papers.selection_bias.simulated_cases import (
    CORRECTIONS,
    ModelSettings,
    check_at_least,
    simulate,
    simulate_gaussian,
)
from trimbench.papers.validation import Json, settings, unknown
from trimbench.papers.vocabulary.cells import Cell, Outcome, successes
from trimbench.papers.vocabulary.figures import LineFigure
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.tables import Table
from trimbench.selection_bias.fit import fit_selection_corrected
from trimbench.selection_bias.mixture import mixture_priors
from trimbench.selection_bias.prior import Prior

if TYPE_CHECKING:
    import pandas as pd


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
    model = fit_selection_corrected(
        X, y, sizes.k, features="categorical", n_categories=categories, n_alpha=sizes.n_alpha
    )
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
            name: fit_selection_corrected(
                X,
                y,
                sizes.k,
                correct=name == "corrected",
                features="mixture",
                n_alpha=sizes.n_alpha,
                random_state=seed,
                n_warmup=300,
                n_draws=600,
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
    model = fit_selection_corrected(data.X, data.y, sizes.k, features="gaussian", n_alpha=sizes.n_alpha)
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


@job_function
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


# Simulation-based calibration: data sets from the prior of each model, and whether its probabilities hold there.

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
