"""Cases drawn from the naive Bayes model, with or without dependence, and their settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BeforeValidator

from trimbench.papers.measures import prediction_quality
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.code_hash import JobFunction
from trimbench.reproduction.execution.job import POSITIVE, SHARE, Kind, seed_for
from trimbench.selection_bias.factors import Ties
from trimbench.selection_bias.prior import Prior

_BLOCK_ENTRIES = 2**21


@dataclass(frozen=True)
class ModelSettings:
    """Settings of a simulation from the naive Bayes model, with training and test cases of y = 0 and of y = 1.

    `alpha` says how alike the two classes are: Var(phi_yj) = theta_j (1 - theta_j) / (alpha + 1), where theta_j is
    uniform from `theta0` to 1 - `theta0`.
    """

    n_features: int = 10_000
    alpha: float = 300.0
    theta0: float = 0.0
    class_sizes: tuple[int, int] = (100, 100)
    test_sizes: tuple[int, ...] = (1000, 1000)


@dataclass(frozen=True, eq=False)
class Simulated:
    """A whole simulation in memory: one byte for each binary value.

    Attributes
    ----------
    X, X_test : ndarray of shape (n_cases, n_features)
    y, y_test : ndarray of shape (n_cases,)
    phi : ndarray of shape (n_classes, n_features)
        P(x_j = 1) in each class or latent group; the means mu_cj of Gaussian features.
    """

    X: NDArray[Any]
    y: NDArray[np.int64]
    X_test: NDArray[Any]
    y_test: NDArray[np.int64]
    phi: NDArray[np.float64]

    @property
    def true_correlation(self) -> NDArray[np.float64]:
        """Correlation of each feature with y in the model, at the class sizes of the training cases."""
        share = self.y.mean()
        mean = (1.0 - share) * self.phi[0] + share * self.phi[1]
        spread = np.sqrt(mean * (1.0 - mean))
        difference = np.sqrt(share * (1.0 - share)) * (self.phi[1] - self.phi[0])
        found: NDArray[np.float64] = np.divide(difference, spread, out=np.zeros_like(spread), where=spread > 0)
        return found


def simulate(settings: ModelSettings, rng: np.random.Generator) -> Simulated:
    """Draw training and test cases from the model, block by block of the features; those with y = 0 come first.

    They take n_features bytes for each case: 220 MB for 100,000 features and 2,200 cases. The model is that of Li,
    Zhang and Neal (2008), "Bayesian naive Bayes model for binary data".
    """
    p, n_train = settings.n_features, sum(settings.class_sizes)
    sizes = (*settings.class_sizes, *settings.test_sizes)
    ends = np.cumsum(sizes)
    X, X_test = np.empty((n_train, p), dtype=np.uint8), np.empty((sum(settings.test_sizes), p), dtype=np.uint8)
    phi = np.empty((2, p))
    step = max(1, _BLOCK_ENTRIES // int(ends[-1]))
    for start in range(0, p, step):
        columns = slice(start, min(start + step, p))
        width = columns.stop - columns.start
        theta = rng.uniform(settings.theta0, 1.0 - settings.theta0, size=width)
        # The ends themselves have probability 0 but are floating-point numbers.
        theta = np.clip(theta, 1e-12, 1.0 - 1e-12)
        phi[:, columns] = rng.beta(settings.alpha * theta, settings.alpha * (1.0 - theta), size=(2, width))
        values = np.empty((int(ends[-1]), width), dtype=np.uint8)
        for group, end in enumerate(ends):
            drawn = rng.random((sizes[group], width), dtype=np.float32)
            values[end - sizes[group] : end] = drawn < phi[group % 2, columns]
        X[:, columns], X_test[:, columns] = values[:n_train], values[n_train:]
    y, y_test = (np.repeat([0, 1], counts) for counts in (settings.class_sizes, settings.test_sizes))
    return Simulated(X, y, X_test, y_test, phi)


def simulate_gaussian(
    n_features: int, alpha: float, class_sizes: Sequence[int], test_sizes: Sequence[int], rng: np.random.Generator
) -> Simulated:
    """Draw training and test cases from the model with Gaussian features.

    `alpha` says how alike the classes are: mu_cj ~ N(nu_j, sigma_j^2 / alpha). The prior of nu_j and sigma_j is
    improper. Any values will do, as no result of the model depends on them; these are standard normal and log-normal.
    """
    nu, sigma = rng.normal(size=n_features), np.exp(rng.normal(size=n_features))
    means = nu + sigma / np.sqrt(alpha) * rng.normal(size=(len(class_sizes), n_features))
    y, y_test = (np.repeat(np.arange(len(sizes)), sizes) for sizes in (class_sizes, test_sizes))
    X, X_test = (means[of] + sigma * rng.normal(size=(len(of), n_features)) for of in (y, y_test))
    return Simulated(X, y, X_test, y_test, means)


@dataclass(frozen=True)
class MixtureSettings:
    """Settings of a simulation from the mixture model of two latent groups, which are equally frequent.

    `alpha` says how alike their features are; `response` is P(y = 1 | z).
    """

    n_features: int = 2000
    alpha: float = 300.0
    response: tuple[float, float] = (0.1, 0.9)
    n_train: int = 100
    n_test: int = 1000


def simulate_mixture(settings: MixtureSettings, rng: np.random.Generator) -> Simulated:
    """Draw training and test cases from the binary mixture model; both classes occur among the training cases.

    The model is that of Li, Zhang and Neal (2008), "Extended to binary mixture models".
    """
    n = settings.n_train + settings.n_test
    theta = np.clip(rng.random(settings.n_features), 1e-12, 1.0 - 1e-12)
    phi = rng.beta(settings.alpha * theta, settings.alpha * (1.0 - theta), size=(2, settings.n_features))
    while True:
        labels = rng.integers(0, 2, size=n)
        y = (rng.random(n) < np.take(settings.response, labels)).astype(np.int64)
        if 0 < y[: settings.n_train].sum() < settings.n_train:
            break
    X = (rng.random((n, settings.n_features), dtype=np.float32) < phi[labels]).astype(np.uint8)
    train, test = slice(settings.n_train), slice(settings.n_train, n)
    return Simulated(X[train], y[train], X[test], y[test], phi)


# Settings that the selection-bias experiments share.

CORRECTIONS = ("corrected", "uncorrected")


def by_correction(rows: pd.DataFrame) -> pd.DataFrame:
    """Return two rows for each successful job: one with the correction and one without."""
    return vocab.stacked(rows, "correction", dict(zip(CORRECTIONS, CORRECTIONS, strict=True)))


def both_models(model: Any) -> dict[str, Any]:
    """Return a corrected model and the same model without correction, by name."""
    return {"corrected": model, "uncorrected": model.uncorrected()}


# Training cases of each class, as the slides state them and as their numbers imply.
STATED_SIZES, INFERRED_SIZES = (50, 50), (100, 100)
INFERRED_SETUP = f"{sum(INFERRED_SIZES)} training cases instead of the stated {sum(STATED_SIZES)}"


# What jobs return.
QUALITY = {"expected_error": SHARE, "actual_error": SHARE, "minus_log_probability": POSITIVE, "squared_error": SHARE}


def both(kinds: dict[str, Kind]) -> dict[str, Kind]:
    """Return kinds of values with and without the correction."""
    return {f"{name}_{key}": kind for name in CORRECTIONS for key, kind in kinds.items()}


def quality_of(name: str, y: NDArray[np.int64], probabilities: NDArray[np.float64]) -> dict[str, float]:
    """Return the quality of predictions, with or without the correction, as a job returns it."""
    found = dataclasses.asdict(prediction_quality(y, probabilities))
    return {f"{name}_{key}": value for key, value in found.items()}


@vocab.settings
class PriorSettings(Prior):
    """Prior and grids of the naive Bayes model, as a configuration states them."""


def _as_list(value: object) -> object:
    """Return a value that may be a pair of sizes; raise ValueError for a single size."""
    if isinstance(value, int):
        raise ValueError(f"must be two whole numbers, got {value}; write [{value},{value}]")
    return value


def _as_pairs(value: object) -> object:
    """Read one pair of class sizes, [100, 100], as a list of one pair."""
    is_one_pair = isinstance(value, list) and not any(isinstance(size, list) for size in value)
    return [value] if value and is_one_pair else _as_list(value)


@vocab.settings
class SimulatedCases:
    """Cases drawn from the naive Bayes model with `alpha` and the prior's theta0, and the prior to analyse them with.

    `class_sizes` are pairs of training cases with y = 0 and with y = 1; a single pair may be given without the outer
    list. `test_sizes` is such a pair of test cases.
    """

    class_sizes: Annotated[vocab.Axis[list[int]], BeforeValidator(_as_pairs)]
    test_sizes: Annotated[list[int], vocab.must("two whole numbers, not both 0", any), BeforeValidator(_as_list)]
    n_features: vocab.Count = 10_000
    alpha: vocab.Positive = 300.0
    prior: PriorSettings = PriorSettings()
    ties: Ties = "exact"
    seed: int = 0

    def __post_init__(self) -> None:
        pairs = [("class_sizes", sizes, 1) for sizes in self.class_sizes]
        for name, sizes, least in (*pairs, ("test_sizes", self.test_sizes, 0)):
            if len(sizes) != 2 or min(sizes) < least:
                raise ValueError(f"{name} must be two whole numbers, {least} or more, got {sizes}")

    @property
    def sizes(self) -> list[int]:
        """The class sizes of an experiment that has one pair of them; ValueError if there are several."""
        if len(self.class_sizes) > 1:
            raise ValueError(f"class_sizes must be one pair of whole numbers, got {self.class_sizes}; choose one")
        return self.class_sizes[0]

    def cell(
        self, function: JobFunction, sizes: Sequence[int], labels: Mapping[str, vocab.Label], **parameters: object
    ) -> vocab.Cell:
        """Return a job that draws one data set; all jobs on the same replicate draw the same one.

        The function has the parameters ``data`` and ``data_seed``; others are taken from the labels and the settings.
        The sizes join the labels; the label ``replicate`` numbers the data set.
        """
        n0, n1 = sizes
        axes = {"n": n0 + n1} if n0 == n1 else size_labels(sizes)
        seed = seed_for(purpose="simulated cases", **axes, replicate=labels.get("replicate", 0), seed=self.seed)
        data = ModelSettings(self.n_features, self.alpha, self.prior.theta0, (n0, n1), tuple(self.test_sizes))
        return vocab.Cell.of({**size_labels(sizes), **labels}, function, self, data=data, data_seed=seed, **parameters)

    def notes(self) -> list[str]:
        """Return what a reader must know about these sizes."""
        notes = []
        if all(list(sizes) in self.class_sizes for sizes in (STATED_SIZES, INFERRED_SIZES)):
            notes.append(
                "The slides say 100 training cases, but their cut-offs and calibration fit 200 (100 of each class); "
                "both are run."
            )
        for sizes in self.class_sizes:
            train, test = (pair[1] / sum(pair) for pair in (sizes, self.test_sizes))
            if train != test:
                notes.append(
                    f"With {show_sizes(sizes)}, the share of y = 1 is {train:.3g} among training cases, from which "
                    f"the classifier learns it, and {test:.3g} among test cases: expected and actual errors can "
                    "differ for that reason, too."
                )
        return notes


@vocab.settings
class Replicated(SimulatedCases):
    """Numbers of features to select, `ks`, on several data sets for each pair of class sizes."""

    ks: vocab.Axis[int]
    replicates: vocab.Count = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ks(self.ks, self.n_features)


def show_sizes(sizes: Sequence[int]) -> str:
    """Return two class sizes for tables and titles: their sum where they are equal."""
    n0, n1 = sizes
    return f"n = {n0 + n1}" if n0 == n1 else f"n = {n0} + {n1}"


def file_stem(shown: str) -> str:
    """Return a text of `show_sizes` in a form for file names."""
    return shown.replace(" = ", "").replace(" + ", "_")


def size_labels(sizes: Sequence[int]) -> dict[str, int]:
    """Return the labels by which rows and tables tell class sizes apart."""
    return {"n0": sizes[0], "n1": sizes[1]}


def check_ks(ks: Sequence[int], n_features: int, what: str = "ks must be numbers") -> None:
    """Raise a ValueError, which says `what`, unless each number of features can be selected."""
    if wrong := [k for k in ks if not 1 <= k <= n_features]:
        raise ValueError(f"{what} from 1 to n_features={n_features}, got {wrong[0]}")


# Correlations of binary features with the response of two classes.


def class_counts(X: NDArray[np.uint8], y: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return I_0 and I_1, the number of ones of each feature in each class, of shape (n_features,)."""
    total = X.sum(axis=0, dtype=np.int64)
    ones1 = X[y == 1].sum(axis=0, dtype=np.int64)
    return total - ones1, ones1


def correlation(ones0: NDArray[np.int64], ones1: NDArray[np.int64], n0: int, n1: int) -> NDArray[np.float64]:
    """Return the sample correlation of binary features with the response; 0 for a constant feature.

    With I0 and I1 ones among the n0 and n1 cases of the classes, and s = I0 + I1, it is (n0 I1 - n1 I0) /
    sqrt(n0 n1 s (n - s)): Li, Zhang and Neal (2008), "Computation of the adjustment factor (I)".
    """
    difference = n0 * ones1 - n1 * ones0
    total = ones0 + ones1
    spread = np.sqrt(float(n0) * float(n1) * (total * (n0 + n1 - total)).astype(float))
    found: NDArray[np.float64] = np.divide(difference, spread, out=np.zeros(np.shape(spread)), where=spread > 0)
    return found
