"""Time robust trimming: one trim of hepatitis, both methods over Table 6, both engines against each other.

Needs the networks in the data cache (`trimbench task=fetch`, or TRIMBENCH_CACHE).
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from threadpoolctl import threadpool_limits

import trimbench as tb
from trimbench.configuration import Catalogue, configuration_folder
from trimbench.data.cache import Cache
from trimbench.networks.loading import load_network
from trimbench.trimming.engines import make_engine


def classifier(name: str, threshold: float) -> tb.BayesianClassifier:
    declaration = Catalogue((configuration_folder(),)).network(name)
    network = load_network(declaration, Cache.from_environment())
    return tb.BayesianClassifier(
        network.model, positive=network.positive, features=network.features, threshold=threshold
    )


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
