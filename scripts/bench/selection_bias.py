"""Time the correction for feature selection: seconds, memory, and how both grow.

Every measurement runs in a process of its own, on one core. Needs no data, and 2 GB. Takes about two
minutes.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from .measure import Call, Row, against_printed, growth, ratio_of, versus

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trimbench.selection_bias.model import SelectionCorrectedModel

# Numbers of features in the slides.
KS = (1, 10, 100, 1000, 10_000)


def printed_seconds(k: int) -> float:
    """Return the seconds that the slides print for k features; of all features they print those without correction."""
    from trimbench.reproduction.vocabulary.reported import printed_numbers

    printed = printed_numbers("selection_bias/runtime")
    return (printed.get((f"k = {k}", "corrected seconds")) or printed[f"k = {k}", "uncorrected seconds"]).value


def say(what: str, value: str) -> None:
    print(f"{what:<74} {value}", flush=True)


def median_seconds(call: Callable[[], object], repeat: int = 5) -> float:
    """Return seconds of the processor, which other programs hardly change."""
    call()
    times = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def measure_fit(n: int, p: int, k: int) -> dict[str, float]:
    """Fit and predict 2,000 test cases; n cases, half of each class."""
    import numpy as np

    import trimbench as tb
    from trimbench.papers.selection_bias.simulated_cases import ModelSettings, simulate

    settings = ModelSettings(p, class_sizes=(n // 2, n // 2))
    data = simulate(settings, np.random.default_rng(0))
    before = _peak()
    start = time.perf_counter()
    tb.fit_selection_corrected(data.X, data.y, k, calibrate=False).predict_proba(data.X_test)
    first = time.perf_counter() - start
    fit = median_seconds(lambda: tb.fit_selection_corrected(data.X, data.y, k, calibrate=False))
    model = tb.fit_selection_corrected(data.X, data.y, k, calibrate=False)
    predict = median_seconds(lambda: model.predict_proba(data.X_test))
    return {"first": first, "fit": fit, "predict": predict, "peak": _peak(), "peak_before": before}


def measure_rows(n: int) -> dict[str, float]:
    """Fit n cases to k = 1,000 of 10,000 features, in a process whose compiled loops are loaded."""
    import numpy as np

    import trimbench as tb
    from trimbench.papers.selection_bias.simulated_cases import ModelSettings, simulate

    small = simulate(ModelSettings(20, class_sizes=(1500, 1500), test_sizes=(0, 0)), np.random.default_rng(1))
    tb.fit_selection_corrected(small.X, small.y, 5, calibrate=False)
    data = simulate(ModelSettings(class_sizes=(n // 2, n // 2), test_sizes=(0, 0)), np.random.default_rng(0))
    before = _peak()
    fit = median_seconds(lambda: tb.fit_selection_corrected(data.X, data.y, 1000, calibrate=False), repeat=3)
    return {"fit": fit, "extra": _peak() - before}


def measure_classes(n_classes: int, n_y: int) -> dict[str, float]:
    """Fit several classes of n_y cases to 20 of 2,000 features."""
    import numpy as np

    import trimbench as tb

    rng = np.random.default_rng(0)
    theta = rng.uniform(0.05, 0.95, size=2000)
    phi = rng.beta(100.0 * theta, 100.0 * (1.0 - theta), size=(n_classes, 2000))
    y = np.repeat(np.arange(n_classes), n_y)
    X = (rng.random((len(y), 2000)) < phi[y]).astype(np.uint8)
    seconds = median_seconds(lambda: tb.fit_selection_corrected(X, y, 20, calibrate=False), repeat=3)
    model = tb.fit_selection_corrected(X, y, 20, calibrate=False)
    return {"fit": seconds, "error": float(model.alpha_posterior @ model.log_adjustment_error)}


def measure_missing(percent: int) -> dict[str, float]:
    """Fit 200 cases to 20 of 2,000 features of which a part is missing."""
    import numpy as np

    import trimbench as tb
    from trimbench.papers.selection_bias.simulated_cases import ModelSettings, simulate

    rng = np.random.default_rng(0)
    data = simulate(ModelSettings(2000, test_sizes=(0, 0)), rng)
    X = np.where(rng.random(data.X.shape) < percent / 100, np.nan, data.X)
    return {"fit": median_seconds(lambda: tb.fit_selection_corrected(X, data.y, 20, calibrate=False), repeat=3)}


def measure_gaussian(n: int, n_classes: int) -> dict[str, float]:
    """Fit n cases to 20 of 2,000 Gaussian features, and predict 2,000 test cases."""
    import numpy as np

    import trimbench as tb
    from trimbench.papers.selection_bias.simulated_cases import simulate_gaussian

    sizes, test_sizes = [n // n_classes] * n_classes, [2000 // n_classes] * n_classes
    data = simulate_gaussian(2000, 300.0, sizes, test_sizes, np.random.default_rng(0))
    fit = median_seconds(
        lambda: tb.fit_selection_corrected(data.X, data.y, 20, features="gaussian", calibrate=False), repeat=3
    )
    model = tb.fit_selection_corrected(data.X, data.y, 20, features="gaussian", calibrate=False)
    predict = median_seconds(lambda: model.predict_proba(data.X_test), repeat=3)
    return {"fit": fit, "predict": predict}


def measure_simulation(p: int) -> dict[str, float]:
    """Draw 200 training and 2,000 test cases."""
    import numpy as np

    from trimbench.papers.selection_bias.simulated_cases import ModelSettings, simulate

    start = time.perf_counter()
    simulate(ModelSettings(p), np.random.default_rng(0))
    return {"seconds": time.perf_counter() - start, "peak": _peak()}


def measure_leave_one_out() -> dict[str, float]:
    """Forty leave-one-out runs of the size of the colon experiment: 62 cases, 200 features, 5 selected."""
    import numpy as np

    from trimbench.papers.selection_bias.simulated_cases import ModelSettings, simulate
    from trimbench.selection_bias.fit import cross_validate_selection

    data = simulate(ModelSettings(8000, alpha=20.0, class_sizes=(22, 40), test_sizes=(0, 0)), np.random.default_rng(0))
    start = time.perf_counter()
    for first in range(0, 8000, 200):
        cross_validate_selection(data.X[:, first : first + 200], data.y, 5)
    return {"seconds": time.perf_counter() - start}


def measure_mixture(k: int) -> dict[str, float]:
    """Sample a mixture model of 200 cases with 4 chains of 700 sweeps."""
    import numpy as np

    import trimbench as tb
    from trimbench.papers.selection_bias.simulated_cases import MixtureSettings, simulate_mixture
    from trimbench.selection_bias.mixture import MixtureSampler

    data = simulate_mixture(MixtureSettings(n_train=200), np.random.default_rng(0))
    warnings.simplefilter("ignore")  # chains that need not converge
    fit = partial(tb.fit_selection_corrected, features="mixture")
    fit(data.X[:20], data.y[:20], 1, sampler=MixtureSampler(n_warmup=0, n_draws=4))  # loads the compiled loops
    start, processor = time.perf_counter(), time.process_time()
    fit(data.X, data.y, k, sampler=MixtureSampler(n_warmup=200, n_draws=500, n_jobs=2))
    return {"seconds": time.perf_counter() - start, "processor": time.process_time() - processor, "peak": _peak()}


def _peak() -> float:
    """Return the most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_process(name: str, *arguments: int) -> dict[str, float]:
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-m", "scripts.bench.selection_bias", name, *map(str, arguments)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    result: dict[str, float] = json.loads(ended.stdout)
    return result


def cases(n: int = 200, p: int = 10_000, n_test: int = 2000) -> Any:
    """Return n training cases, half of each class, and test cases."""
    import numpy as np

    from trimbench.papers.selection_bias.simulated_cases import ModelSettings, simulate

    settings = ModelSettings(p, class_sizes=(n // 2, n // 2), test_sizes=(n_test // 2, n_test // 2))
    return simulate(settings, np.random.default_rng(0))


def case_by_case(model: SelectionCorrectedModel, X: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return P(y = 1 | x), each case on its own: the formula of the slides in NumPy."""
    import numpy as np

    alpha, weights = model.alpha_grid[:, None], model.log_adjustment + model.log_likelihood
    features: Any = model.features
    one = features.starts + 1  # of each selected feature
    theta, ones = features.theta[:, one], features.counts[:, one]
    chances = [
        (of_class + alpha * theta) / (size + alpha) for of_class, size in zip(ones, model.class_sizes, strict=True)
    ]
    logs = [(np.log(chance), np.log1p(-chance)) for chance in chances]
    priors = np.log(model.class_sizes + model.prior.pseudo_counts(2))
    found = []
    for row in X:
        values = row[model.selected] == 1
        scores = [
            np.logaddexp.reduce(weights + np.where(values, one, zero).sum(axis=1)) + prior
            for (one, zero), prior in zip(logs, priors, strict=True)
        ]
        found.append(1.0 / (1.0 + np.exp(scores[0] - scores[1])))
    return np.array(found)


def against_the_slides() -> Iterator[Row]:
    """Compare fit and prediction of 2,000 cases with the printed seconds of the R package."""
    import trimbench as tb

    data = cases()
    for k in KS:

        def both(k: int = k) -> None:
            tb.fit_selection_corrected(data.X, data.y, k, calibrate=False).predict_proba(data.X_test)

        what = f"corrected naive Bayes, {k:,} of 10,000 features, n = 200: fit and prediction of 2,000 cases"
        yield against_printed(what, "R package, printed in the slides (n = 100)", both, printed_seconds(k))


def against_a_loop() -> Iterator[Row]:
    """Compare predictions with a loop over the cases, and with the bare product of matrices that they need."""
    import numpy as np

    import trimbench as tb

    data = cases()
    for k in (10, 100, 1000):
        model = tb.fit_selection_corrected(data.X, data.y, k, calibrate=False)
        ours, loop = partial(model.predict_proba, data.X_test), partial(case_by_case, model, data.X_test)
        np.testing.assert_allclose(ours()[:, 1], loop(), atol=1e-9)
        what = f"corrected naive Bayes, k = {k:,}: prediction of 2,000 cases"
        yield versus(what, "NumPy loop over the cases", ours, loop, 3)
    values, table = data.X_test[:, model.selected].astype(np.float64), np.random.default_rng(0).normal(size=(k, 200))
    yield versus(what, "matrix product", ours, lambda: values @ table)


def near_memory_bandwidth() -> Iterator[Row]:
    """Compare a fit of few features, which reads the data to count, with a plain sum of the data."""
    import trimbench as tb

    data = cases(2000, 10_000, 2)
    what, sums = "corrected naive Bayes, 10 of 10,000 features, n = 2,000: fit", partial(data.X.sum, axis=0)
    plain, usual = (partial(tb.fit_selection_corrected, data.X, data.y, 10, calibrate=how) for how in (False, "auto"))
    yield versus(what, "sum of the columns in NumPy", plain, sums)
    # Three fits to other cases say how large the log odds are.
    yield versus(f"{what} with calibration", "the fit alone", usual, plain)


def growth_of_fits() -> Iterator[Row]:
    """Fit how long a fit takes by the numbers of cases, features, selected features and classes."""
    import trimbench as tb

    def fit(n: int = 200, p: int = 10_000, k: int = 100) -> Call:
        data = cases(n, p, 2)
        return partial(tb.fit_selection_corrected, data.X, data.y, k)

    what = "corrected naive Bayes: growth of a fit in"
    yield growth(f"{what} cases (100 of 10,000 features)", (100, 200, 400, 800), lambda n: fit(n=n))
    yield growth(f"{what} p (100 selected, n = 200)", (5000, 10_000, 20_000, 40_000), lambda p: fit(p=p))
    yield growth(f"{what} k (of 10,000 features, n = 200)", (125, 250, 500, 1000), lambda k: fit(k=k))
    yield growth(f"{what} classes (20 of 500 features, 20 cases each)", (3, 4, 5, 6), classes_fit, 3)
    fewer, more = fit(1990), fit(3000)
    yield versus("corrected naive Bayes, 100 of 10,000 features: one fit of n = 1,990", "n = 3,000", fewer, more, 3)


def mixtures_in_seconds() -> Iterator[Row]:
    """Compare a mixture model of 200 cases with what it may take."""
    import numpy as np

    for k in (10, 100):
        what, taken = f"mixture model, k = {k}, n = 200, 4 chains of 700 sweeps: one fit", in_process("mixture", k)
        yield ratio_of(what, "limit of 30 s", np.array([[taken["processor"], 30.0]]), "s")


def classes_fit(n_classes: int) -> Call:
    """Return a fit of several classes of 20 cases."""
    import numpy as np

    import trimbench as tb

    rng = np.random.default_rng(0)
    chances, y = rng.beta(2, 2, size=(n_classes, 500)), np.repeat(np.arange(n_classes), 20)
    X = (rng.random((len(y), 500)) < chances[y]).astype(np.uint8)
    return partial(tb.fit_selection_corrected, X, y, 20)


COMPARISONS = (against_the_slides, against_a_loop, near_memory_bandwidth, growth_of_fits, mixtures_in_seconds)


def main() -> None:
    seconds: dict[Any, float] = {}
    for k in KS:
        found = in_process("fit", 200, 10_000, k)
        seconds[k] = found["fit"] + found["predict"]
        say(f"k = {k} of 10,000, n = 200, 2,000 test cases: fit and predict", f"{seconds[k]:8.3f} s")
        say("    first time in the process", f"{found['first']:8.3f} s")
        say(
            "    against the printed seconds (100 training cases, their program and machine)",
            f"{printed_seconds(k) / seconds[k]:8.0f} x",
        )
        say("    peak memory of the process, data included", f"{found['peak']:8.0f} MiB")
        say("    of it before the fit", f"{found['peak_before']:8.0f} MiB")
    say("growth from k = 1,000 to 10,000", f"{seconds[10_000] / seconds[1000]:8.2f} x")
    times = {n: in_process("fit", n, 10_000, 1000) for n in (100, 200, 500, 1000, 2000)}
    for n, found in times.items():
        say(f"k = 1,000 of 10,000, n = {n}: fit", f"{found['fit']:8.3f} s")
        say("    predict", f"{found['predict']:8.3f} s")
    say("growth of fit from n = 200 to 2,000", f"{times[2000]['fit'] / times[200]['fit']:8.2f} x")
    say("growth of predict from n = 200 to 2,000", f"{times[2000]['predict'] / times[200]['predict']:8.2f} x")
    rows = {n: in_process("rows", n) for n in (10_000, 30_000, 100_000)}
    for n, found in rows.items():
        say(f"k = 1,000 of 10,000, n = {n}: fit", f"{found['fit']:8.3f} s")
        say("    most memory beyond the data", f"{found['extra']:8.0f} MiB")
    say("growth of fit from n = 10,000 to 100,000", f"{rows[100_000]['fit'] / rows[10_000]['fit']:8.2f} x")
    for n_classes, n_y in ((3, 50), (3, 500), (4, 50), (10, 20)):
        found = in_process("classes", n_classes, n_y)
        say(f"k = 20 of 2,000, {n_classes} classes of {n_y} cases: fit", f"{found['fit']:8.3f} s")
        say("    standard error of the log of the factor, mean over the posterior", f"{found['error']:8.4f}")
    for percent in (1, 10):
        seconds_missing = in_process("missing", percent)["fit"]
        say(f"k = 20 of 2,000, n = 200, {percent} % of the values missing: fit", f"{seconds_missing:8.3f} s")
    for n, n_classes in ((200, 2), (20_000, 2), (200, 5)):
        found = in_process("gaussian", n, n_classes)
        say(f"Gaussian, k = 20 of 2,000, n = {n}, {n_classes} classes: fit", f"{found['fit']:8.3f} s")
        say("    predict", f"{found['predict']:8.3f} s")
    found = in_process("simulation", 100_000)
    say("simulation of 100,000 features, 2,200 cases", f"{found['seconds']:8.2f} s")
    say("    peak memory of the process", f"{found['peak']:8.0f} MiB")
    say("40 leave-one-out runs, 62 cases, 5 of 200 features", f"{in_process('leave_one_out')['seconds']:8.2f} s")
    for k in (10, 100):
        found = in_process("mixture", k)
        say(f"mixture model, k = {k}, n = 200, 4 chains of 700 sweeps, 2 threads", f"{found['seconds']:8.2f} s")
        say("    processor time", f"{found['processor']:8.2f} s")
        say("    peak memory of the process", f"{found['peak']:8.0f} MiB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        jobs: dict[str, Callable[..., dict[str, float]]] = {
            "fit": measure_fit,
            "rows": measure_rows,
            "classes": measure_classes,
            "missing": measure_missing,
            "gaussian": measure_gaussian,
            "simulation": measure_simulation,
            "leave_one_out": measure_leave_one_out,
            "mixture": measure_mixture,
        }
        json.dump(jobs[sys.argv[1]](*map(int, sys.argv[2:])), sys.stdout)
    else:
        main()
