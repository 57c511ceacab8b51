"""Time robust trimming: the networks of Table 6, breast cancer with 24 and 30 features, and 784 features.

Needs the networks in the data cache (`trimbench task=fetch`, or TRIMBENCH_CACHE). Takes about two minutes.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

import trimbench as tb
from trimbench.configuration import Catalogue, configuration_folder
from trimbench.data.cache import Cache
from trimbench.data.encoding import categorize
from trimbench.data.sources import load_dataset
from trimbench.networks.loading import load_network
from trimbench.trimming.engines import make_engine


def classifier(name: str, threshold: float) -> tb.BayesianClassifier:
    declaration = Catalogue((configuration_folder(),)).network(name)
    network = load_network(declaration, Cache.from_environment())
    return tb.BayesianClassifier(
        network.model, positive=network.positive, features=network.features, threshold=threshold
    )


def breast_cancer() -> tb.BayesianClassifier:
    """Return a naive Bayes classifier on the bundled data, numbers cut at their medians."""
    data = load_dataset(Catalogue((configuration_folder(),)).dataset("breast_cancer"), Cache.from_environment())
    (rows,) = categorize(data.features)
    return tb.BayesianClassifier(tb.learn_naive_bayes(rows, data.target), positive="malignant")


def many_features(n_features: int) -> tb.BayesianClassifier:
    """Return a naive Bayes classifier with random binary features, most of them weak."""
    rng = np.random.default_rng(0)
    low = rng.uniform(0.05, 0.6, size=n_features)
    high = low + rng.exponential(0.05, size=n_features).clip(0, 0.35)
    tables = [[[1 - a, a], [1 - b, b]] for a, b in zip(low, high, strict=True)]
    return tb.BayesianClassifier(tb.NaiveBayes([0.4, 0.6], tables), positive="1")


def seconds(call: Callable[[], object], repeat: int) -> float:
    """Return the median time of a call after one warm-up."""
    call()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def exhaustive(original: tb.BayesianClassifier, size: int) -> float:
    """Return the best agreement of all subsets of one size, each computed on its own."""
    root = make_engine(original, "dense").root
    best = 0.0
    for kept in itertools.combinations(range(original.n_features), size):
        measure = root
        for feature in set(root.features) - set(kept):
            measure = measure.without(feature)
        best = max(best, measure.potential_agreement())
    return best


def say(what: str, value: str) -> None:
    print(f"{what:<66} {value}", flush=True)


def main() -> None:
    hepatitis = classifier("hepatitis", 0.5)
    one = seconds(lambda: tb.trim(hepatitis, 6, engine="dense"), 9)
    say("hepatitis, 19 features, budget 6, T = 0.5: one trim (dense)", f"{one * 1e3:8.1f} ms")
    say("    against the printed 4390.71 s", f"{4390.71 / one:8.0f} x")
    baseline = seconds(lambda: tb.select_by_same_decision(hepatitis, 6), 3)
    say("    FS-SDD, 43,795 subsets", f"{baseline * 1e3:8.1f} ms")
    say("    FS-SDD against trimming", f"{baseline / one:8.1f} x")
    other = seconds(lambda: tb.trim(hepatitis, 6, engine="log_odds"), 1)
    say("    log-odds engine against dense", f"{other / one:8.1f} x")

    heart = classifier("heart", 0.5)
    found = tb.trim(heart, 4)
    if abs(exhaustive(heart, 4) - found.agreement) > 1e-12:
        sys.exit("trimming and exhaustive search differ on heart")
    quick, slow = seconds(lambda: tb.trim(heart, 4), 9), seconds(lambda: exhaustive(heart, 4), 1)
    say("heart, 13 features, budget 4: exhaustive search against trimming", f"{slow / quick:8.1f} x")

    cancer = breast_cancer()
    part = cancer.with_features(cancer.features[:24], 0.5)
    start = time.perf_counter()
    trimming = tb.trim(part, 8, engine="log_odds")
    taken = time.perf_counter() - start
    say(
        f"breast cancer, 24 features, budget 8: {trimming.n_evaluations} evaluations, optimal: {trimming.optimal}",
        f"{taken:8.1f} s",
    )
    for limit in (20, 60):
        trimming = tb.trim(cancer, 10, time_limit=limit)
        gap = trimming.upper_bound - trimming.agreement
        say(f"breast cancer, 30 features, budget 10, after {limit} s: optimality gap", f"{gap:8.1e}")

    large = many_features(784)
    start = time.perf_counter()
    trimming = tb.trim(large, 50)
    taken = time.perf_counter() - start
    low, high = trimming.agreement_interval
    say("784 random features, budget 50", f"{taken:8.1f} s")
    say("    width of the certified interval", f"{high - low:8.1e}")
    say("    upper bound on any trimming, above its upper end", f"{trimming.upper_bound - high:8.1e}")

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "trimbench", "experiment=trimming/table6", f"results={folder}"]
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        say("Table 6 whole, both methods, from the command line", f"{time.perf_counter() - start:8.1f} s")

    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "trimbench", "--help"], check=True, capture_output=True)
    say("trimbench --help", f"{time.perf_counter() - start:8.2f} s")


if __name__ == "__main__":
    # One thread: the figures are for one core.
    with threadpool_limits(1):
        main()
