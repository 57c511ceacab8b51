"""The jobs of the selection-bias experiments: pure functions of their configuration."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import declare_dataset
from trimbench.papers.data.sources import load_dataset
from trimbench.papers.execution.functions import job_function

_CODE = ("trimbench.papers.data", "trimbench.selection_bias", "trimbench.papers.selection_bias.jobs")


@job_function(code=("trimbench.selection_bias",))
def correlation_table(n0: int, n1: int) -> dict[str, Any]:
    """Compute the correlation of a binary feature with the response for all its counts.

    Parameters
    ----------
    n0, n1 : int
        Cases in each class.
    """
    import numpy as np

    from trimbench.selection_bias.selection import correlation

    ones0, ones1 = np.meshgrid(np.arange(n0 + 1), np.arange(n1 + 1))
    return {"correlation": correlation(ones0, ones1, n0, n1).tolist()}


@job_function(code=_CODE)
def select_and_predict(
    n_features: int,
    alpha: float,
    class_sizes: list[int],
    test_sizes: list[int],
    prior: Mapping[str, Any],
    ties: str,
    seed: int,
    k: int,
) -> dict[str, Any]:
    """Draw cases from the model, select k features, predict test cases with and without correction.

    Parameters
    ----------
    n_features : int
    alpha : float
    class_sizes, test_sizes : list of int
        Training and test cases of both classes.
    prior : mapping
    ties : str
    seed : int
    k : int
    """
    import dataclasses

    from trimbench.selection_bias.metrics import calibration, prediction_quality
    from trimbench.selection_bias.model import fit_selection_corrected

    data = _simulated(n_features, alpha, class_sizes, test_sizes, prior, seed)
    model = fit_selection_corrected(data.X, data.y, k, ties=ties, **prior)  # type: ignore[arg-type]
    result: dict[str, Any] = {"gamma": model.gamma, "n_tied": model.selection.n_tied}
    for name, fitted in (("corrected", model), ("uncorrected", model.uncorrected())):
        probabilities = fitted.predict_proba(data.X_test)
        quality = prediction_quality(data.y_test, probabilities)
        bins = calibration(data.y_test, probabilities)
        result |= {f"{name}_{key}": value for key, value in dataclasses.asdict(quality).items()}
        result |= {f"{name}_{field.name}": getattr(bins, field.name).tolist() for field in dataclasses.fields(bins)}
    return result


@job_function(code=_CODE)
def posterior_of_alpha(
    n_features: int,
    alpha: float,
    class_sizes: list[int],
    test_sizes: list[int],
    prior: Mapping[str, Any],
    ties: str,
    seed: int,
    k: int,
) -> dict[str, Any]:
    """Draw cases from the model, select k features, compute the posterior of log(alpha).

    Parameters
    ----------
    n_features, alpha, class_sizes, test_sizes, prior, ties, seed, k
        As for `select_and_predict`, whose data this is.
    """
    import numpy as np

    from trimbench.selection_bias.model import fit_selection_corrected

    data = _simulated(n_features, alpha, class_sizes, test_sizes, prior, seed)
    model = fit_selection_corrected(data.X, data.y, k, ties=ties, **prior)  # type: ignore[arg-type]
    log_alpha = np.log(model.alpha_grid)
    result: dict[str, Any] = {"log_alpha": log_alpha.tolist()}
    for name, fitted in (("corrected", model), ("uncorrected", model.uncorrected())):
        density = fitted.log_alpha_density
        result[f"{name}_log_density"] = (density - density.max()).tolist()
        result[f"{name}_mean_log_alpha"] = float(fitted.alpha_posterior @ log_alpha)
    return result


@job_function(code=_CODE)
def true_and_sample_correlations(
    n_features: int,
    alpha: float,
    class_sizes: list[int],
    test_sizes: list[int],
    prior: Mapping[str, Any],
    ties: str,
    seed: int,
    ks: list[int],
    with_points: bool,
) -> dict[str, Any]:
    """Draw cases from the model and compare each feature's true correlation with the one in the sample.

    Parameters
    ----------
    n_features, alpha, class_sizes, test_sizes, prior, ties, seed
        As for `select_and_predict`, whose data this is.
    ks : list of int
    with_points : bool
        Whether the result holds the correlations of every feature.
    """
    import numpy as np

    from trimbench.selection_bias.selection import class_counts, correlation, select_features

    data = _simulated(n_features, alpha, class_sizes, test_sizes, prior, seed)
    n0, n1 = class_sizes
    ones0, ones1 = class_counts(data.X, data.y)
    sample, true = correlation(ones0, ones1, n0, n1), data.true_correlation
    result: dict[str, Any] = {"gammas": [], "mean_sample": [], "mean_true": []}
    for k in ks:
        selection = select_features(ones0, ones1, n0, n1, k)
        chosen = selection.features
        result["gammas"].append(selection.gamma)
        result["mean_sample"].append(float(np.abs(sample[chosen]).mean()))
        # The true correlation in the direction that the sample shows.
        result["mean_true"].append(float((true[chosen] * np.sign(sample[chosen])).mean()))
    if with_points:
        result |= {"true": np.round(true, 6).tolist(), "sample": np.round(sample, 6).tolist()}
    return result


@job_function(code=_CODE)
def prediction_seconds(
    n_features: int,
    alpha: float,
    class_sizes: list[int],
    test_sizes: list[int],
    prior: Mapping[str, Any],
    ties: str,
    seed: int,
    ks: list[int],
    repeats: int,
) -> dict[str, Any]:
    """Measure the time from the data to all predictions, on one core.

    All numbers of features are one job, so that none is measured while another runs.

    Parameters
    ----------
    n_features, alpha, class_sizes, test_sizes, prior, ties, seed
        As for `select_and_predict`.
    ks : list of int
    repeats : int
        The median of so many measurements is taken, after one that does not count.
    """
    import statistics

    from threadpoolctl import threadpool_limits

    from trimbench.selection_bias.model import fit_selection_corrected

    data = _simulated(n_features, alpha, class_sizes, test_sizes, prior, seed)
    result: dict[str, Any] = {"corrected_seconds": [], "uncorrected_seconds": []}
    with threadpool_limits(1):
        for k in ks:
            for name, correct in (("corrected", True), ("uncorrected", False)):
                times = []
                for _ in range(repeats + 1):
                    start = time.perf_counter()
                    model = fit_selection_corrected(data.X, data.y, k, correct=correct, ties=ties, **prior)  # type: ignore[arg-type]
                    model.predict_proba(data.X_test)
                    times.append(time.perf_counter() - start)
                result[f"{name}_seconds"].append(statistics.median(times[1:]))
    return result


@job_function(code=_CODE)
def leave_one_out_on_subsets(
    dataset: Mapping[str, Any],
    name: str,
    positive: str,
    n_subsets: int,
    k: int,
    prior: Mapping[str, Any],
    ties: str,
    split_seed: int,
) -> dict[str, Any]:
    """Split the features at random, and on each part predict each case from the others, with k features.

    Parameters
    ----------
    dataset : mapping
        Declaration of the data set; its features are cut at their medians over all cases, as in the slides.
    name : str
    positive : str
        Class that is called 1.
    n_subsets : int
    k : int
        Features selected inside each fold.
    prior : mapping
    ties : str
    split_seed : int
    """
    import dataclasses

    import numpy as np

    from trimbench.selection_bias.cross_validation import cross_validate_selection
    from trimbench.selection_bias.features import Binariser
    from trimbench.selection_bias.metrics import prediction_quality

    # What a job reads was fetched before it started: a worker never downloads.
    loaded = load_dataset(declare_dataset(name, dataset), Cache.from_environment(offline=True))
    values = loaded.features.to_numpy(dtype=float)
    X = Binariser.fit(values).transform(values)
    y = (loaded.target.astype(str) == positive).to_numpy().astype(int)
    order = np.random.default_rng(split_seed).permutation(X.shape[1])
    result: dict[str, Any] = {"n_cases": len(y), "n_positive": int(y.sum())}
    start = time.perf_counter()
    for part in np.array_split(order, n_subsets):
        found = cross_validate_selection(X[:, np.sort(part)], y, k, ties=ties, **prior)
        for correction in ("corrected", "uncorrected"):
            quality = prediction_quality(y, getattr(found, correction))
            for key, value in dataclasses.asdict(quality).items():
                result.setdefault(f"{correction}_{key}", []).append(value)
    result["method_seconds"] = time.perf_counter() - start
    return result


@job_function(code=_CODE)
def sample_mixture(
    data: Mapping[str, Any],
    prior: Mapping[str, Any],
    ties: str,
    k: int,
    n_chains: int,
    n_warmup: int,
    n_draws: int,
    data_seed: int,
    chain_seed: int,
) -> dict[str, Any]:
    """Draw cases from a mixture model, select k features, sample the model with and without correction, predict.

    Parameters
    ----------
    data : mapping
        Keys of `trimbench.selection_bias.simulation.MixtureSettings`.
    prior : mapping
        Further arguments of `fit_mixture_selection_corrected`.
    ties : str
    k : int
    n_chains, n_warmup, n_draws : int
    data_seed, chain_seed : int
    """
    import dataclasses

    import numpy as np

    from trimbench.selection_bias.metrics import prediction_quality
    from trimbench.selection_bias.mixture import fit_mixture_selection_corrected
    from trimbench.selection_bias.simulation import MixtureSettings, simulate_mixture

    settings = MixtureSettings(**{**data, "response": tuple(data["response"])})
    cases = simulate_mixture(settings, np.random.default_rng(data_seed))
    result: dict[str, Any] = {}
    for name, correct in (("corrected", True), ("uncorrected", False)):
        start = time.perf_counter()
        found = fit_mixture_selection_corrected(
            cases.X,
            cases.y,
            k,
            correct=correct,
            ties=ties,  # type: ignore[arg-type]
            n_chains=n_chains,
            n_warmup=n_warmup,
            n_draws=n_draws,
            seed=chain_seed,
            **prior,
        )
        result[f"{name}_seconds"] = time.perf_counter() - start
        quality = prediction_quality(cases.y_test, found.predict_proba(cases.X_test))
        result |= {f"{name}_{key}": value for key, value in dataclasses.asdict(quality).items()}
        result["gamma"] = found.selection.gamma
        result[f"{name}_mean_log_alpha"] = float(found.log_alpha.mean())
        convergence = found.diagnostics().values()
        result[f"{name}_converged"] = all(quantity.converged for quantity in convergence)
        # What is not defined is no number in JSON.
        result[f"{name}_r_hat"] = _worst(max, [quantity.r_hat for quantity in convergence])
        result[f"{name}_effective_sample_size"] = _worst(min, [c.effective_sample_size for c in convergence])
    return result


def _worst(choose: Callable[[list[float]], float], values: list[float]) -> float | None:
    return choose(values) if all(math.isfinite(value) for value in values) else None


def _simulated(
    n_features: int,
    alpha: float,
    class_sizes: list[int],
    test_sizes: list[int],
    prior: Mapping[str, Any],
    seed: int,
) -> Any:
    import numpy as np

    from trimbench.selection_bias.simulation import ModelSettings, simulate

    settings = ModelSettings(
        n_features,
        alpha,
        float(prior.get("theta0", 0.0)),
        (class_sizes[0], class_sizes[1]),
        (test_sizes[0], test_sizes[1]),
    )
    return simulate(settings, np.random.default_rng(seed))
