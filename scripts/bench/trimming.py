"""Time robust trimming: the networks of Table 6, breast cancer with 30 to 48 features, and MNIST 3 against 5.

Needs the networks and MNIST in the data cache (`trimbench task=fetch`, or TRIMBENCH_CACHE). Takes about three minutes.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import trimbench as tb
from trimbench.networks.discretize import Discretizer
from trimbench.papers.beyond.budgets import TwoSides, select_many_features, trim_many_features
from trimbench.papers.networks import network_input, network_of
from trimbench.papers.trimming.classifiers import Learning
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.vocabulary.cells import Inputs
from trimbench.reproduction.vocabulary.reported import printed_numbers
from trimbench.trimming.engines.choice import make_engine

from .measure import Call, Row, against_printed, ratio_of, repeated, version_of, versus

TABLE6 = ("bupa", "pima", "ident", "anatomy", "heart", "voting", "hepatitis")


def classifier(name: str, threshold: float) -> tb.BayesianClassifier:
    inputs = Inputs(Catalogue(), Cache.from_environment())
    network = network_of(network_input(inputs, name))
    if network.positive is None:
        sys.exit(f"network {name} comes without a class")
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


def digits() -> None:
    """Trim the 784 pixels of MNIST, 3 against 5, and compare with the baselines."""
    inputs = Inputs(Catalogue(), Cache.from_environment())
    inputs.loaded("mnist_784")  # fetched, if it is not in the cache
    learning = Learning(inputs.dataset("mnist_784"), 0.5, 1.0, 0.2, split_seed=0, encoding="medians")
    sides = TwoSides(dataset="mnist_784", positive=["3"], negative=["5"])
    found: Any = trim_many_features(learning, sides, budget=50, evaluation_limit=None)
    say("MNIST 3 v 5, 784 pixels, budget 50: one trim", f"{found['method_seconds']:8.1f} s")
    say("    width of the certified interval", f"{found['agreement_high'] - found['agreement_low']:8.1e}")
    say("    optimality gap", f"{found['upper_bound'] - found['agreement_low']:8.1e}")
    for method in ("information_gain", "accuracy"):
        other: Any = select_many_features(learning, sides, budgets=[50], method=method, n_folds=10)
        lead = found["agreement_low"] - other["points"][0]["best_threshold_high"]
        say(f"    lower end above the upper end of {method}, best threshold", f"{lead:8.1e}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    say("    most memory of this process, data included", f"{memory:8.2f} GiB")


@dataclasses.dataclass(frozen=True)
class Proof:
    """What one proof took, in a process of its own: what it loads is included."""

    budget: int
    threshold: float
    seconds: float
    mebibytes: float
    proven: bool


# Trims a saved model; the machine code of earlier processes is there.
_PROVE = """
import json, resource, sys, time
import trimbench as tb

path, positive, budget, threshold = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
original = tb.BayesianClassifier(tb.NaiveBayes.load(path), positive=positive, threshold=threshold)
found = tb.trim(original, budget)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([time.process_time(), memory, bool(found.optimal)]))
"""


@dataclasses.dataclass(frozen=True)
class Problem:
    """Optima to prove for a learned model.

    Attributes
    ----------
    name : str
    model : callable
        Returns the model and its positive class.
    budgets, thresholds : iterables
    seconds : float
        What a proof may take.
    """

    name: str
    model: Callable[[], tuple[tb.NaiveBayes, str]]
    budgets: Iterable[int]
    seconds: float
    thresholds: Iterable[float] = (0.3, 0.5, 0.9)

    def proofs(self) -> list[Proof]:
        """Prove the optima one after another."""
        model, positive = self.model()
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/model.json"
            model.save(path)
            found = []
            for threshold, budget in itertools.product(self.thresholds, self.budgets):
                command = [sys.executable, "-c", _PROVE, path, positive, str(budget), str(threshold)]
                answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                found.append(Proof(budget, threshold, *json.loads(answer)))
            return found


def loaded(name: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return the features and the target of a data set."""
    data = Inputs(Catalogue(), Cache.from_environment()).loaded(name)
    return data.features, data.target


def learned(rows: pd.DataFrame, target: pd.Series[Any], positive: str, n_features: int) -> tuple[tb.NaiveBayes, str]:
    """Return naive Bayes of the features that say most about the class."""
    every = tb.BayesianClassifier(tb.learn(rows, target), positive=positive)
    chosen = set(tb.select_features(every, n_features, by="information_gain").features)
    model = tb.learn(rows[[name for name in rows if name in chosen]], target)
    assert isinstance(model, tb.NaiveBayes)
    return model, positive


def breast_cancer(n_features: int) -> tuple[tb.NaiveBayes, str]:
    """Cut at the medians, and beyond 30 features at the third quartiles too."""
    features, target = loaded("breast_cancer")
    columns = features.to_numpy()
    cuts = [np.median(columns, axis=0), np.quantile(columns, 0.75, axis=0)]
    rows = pd.DataFrame(np.hstack([columns > cut for cut in cuts])[:, :n_features].astype(int).astype(str))
    return learned(rows.rename(columns="f{}".format), target, "malignant", n_features)


def odd_digits(n_features: int) -> tuple[tb.NaiveBayes, str]:
    """The pixels that say most about whether a digit is odd, cut at the medians."""
    features, target = loaded("digits")
    used = features.loc[:, features.nunique() > 2]
    above = used > used.median()
    rows = above.loc[:, above.any()].astype(int).astype(str)
    odd = (target.astype(int) % 2).map({0: "even", 1: "odd"}).rename("class")
    return learned(rows, odd, "even", n_features)


def splice_sites(n_features: int) -> tuple[tb.NaiveBayes, str]:
    """The places of a sequence, of four to six values, that say most about whether it has a site."""
    features, target = loaded("splice")
    return learned(features.astype(str), (target == "N").map({True: "N", False: "site"}), "N", n_features)


def vote_and_hepatitis() -> tuple[tb.NaiveBayes, str]:
    """Two models side by side, with the prior of the first; numbers are cut at their medians."""
    parts = []
    for name in ("vote", "hepatitis"):
        features, target = loaded(name)
        codes = pd.Series(pd.Categorical(target).codes.astype(str))
        rows = Discretizer.fit(features, codes, "median").transform(features).astype(str)
        parts.append(tb.learn(rows.add_prefix(f"{name} "), codes))
    tables = [table for part in parts for table in part.likelihoods]
    names = [name for part in parts for name in part.feature_names]
    return tb.NaiveBayes(parts[0].prior, tables, feature_names=names, class_names=["0", "1"]), "0"


HARD = (
    Problem("breast cancer, 30 features", partial(breast_cancer, 30), (5, 10, 15), 1.0),
    Problem("breast cancer, 36 features", partial(breast_cancer, 36), (2, 6, 9, 12, 18, 24, 32), 4.0),
    Problem("breast cancer, 40 features", partial(breast_cancer, 40), (10, 20, 30), 25.0),
    Problem("breast cancer, 48 features", partial(breast_cancer, 48), (12,), 90.0, (0.5,)),
    Problem("digits, 36 pixels", partial(odd_digits, 36), (9, 18, 27), 4.0),
    Problem("digits, 40 pixels", partial(odd_digits, 40), (10, 20, 30), 25.0),
    Problem("splice, 40 of 60 features", partial(splice_sites, 40), (6, 20), 25.0, (0.5,)),
    Problem("vote and hepatitis, 35 features", vote_and_hepatitis, (6, 12), 25.0, (0.5,)),
)
HARDER = (
    Problem("breast cancer, 36 features", partial(breast_cancer, 36), range(2, 33), 4.0),
    Problem("breast cancer, 40 features", partial(breast_cancer, 40), (10, 20, 30), 25.0),
    Problem("breast cancer, 44 features", partial(breast_cancer, 44), (11, 22), 90.0),
    Problem("breast cancer, 48 features", partial(breast_cancer, 48), (12,), 90.0),
)


def proven() -> None:
    """Prove many optima, and say what the hardest took."""
    for problem in HARDER:
        found = problem.proofs()
        worst = max(found, key=lambda proof: proof.seconds)
        n_proven = sum(proof.proven for proof in found)
        say(
            f"{problem.name}, {n_proven} of {len(found)} proven: seconds, limit {problem.seconds:g}",
            f"{worst.seconds:8.1f} s",
        )
        say("    of the hardest: budget, threshold", f"{worst.budget:5d} {worst.threshold:g}")
        say("    most memory", f"{max(proof.mebibytes for proof in found):8.0f} MiB")


def proofs_in_seconds() -> Iterator[Row]:
    """Compare the hardest of some proofs with what they may take."""
    dataclasses.replace(HARD[0], budgets=(5,)).proofs()  # compiles what all others load
    for problem in HARD:
        found = problem.proofs()
        if not all(proof.proven for proof in found):
            raise AssertionError(f"{problem.name}: an optimum is not proven")
        what = f"{problem.name}, the hardest of {len(found)} proofs"
        limits = [
            ("s", max(proof.seconds for proof in found), problem.seconds),
            ("MiB", max(proof.mebibytes for proof in found), 600.0 if "48" in problem.name else 300.0),
        ]
        for unit, ours, most in limits:
            yield Row(what, f"limit of {most:g} {unit}", ours, most, unit, ours / most, None, 1)


def several_classes() -> Iterator[Row]:
    """Compare a trim of 24 features and three classes with what it may take."""
    ones = np.random.default_rng(0).beta(2, 2, size=(24, 3))
    model = tb.NaiveBayes([0.3, 0.3, 0.4], [np.stack([one, 1 - one], axis=1) for one in ones])
    taken = repeated([partial(tb.trim, tb.BayesianClassifier(model), 5)], 1)
    yield ratio_of("24 features, 3 classes, budget 5: one trim", "limit of 5 s", np.column_stack([taken, [5.0]]), "s")


def stopped() -> None:
    """Say how far searches exceed a time limit, and what they know then."""
    rng = np.random.default_rng(1)
    for n_features in (26, 40, 300):
        chances = rng.beta(2, 2, size=(n_features, 2))
        model = tb.NaiveBayes([0.4, 0.6], [np.stack([both, 1 - both], axis=1) for both in chances])
        original = tb.BayesianClassifier(model, positive="0")
        for budget in (10, int(0.8 * n_features)):
            start = time.process_time()
            found = tb.trim(original, budget, time_limit=0.3)
            taken = time.process_time() - start
            say(f"{n_features} features, budget {budget}, time_limit=0.3: processor time", f"{taken:8.2f} s")
            lost = f"{1 - found.agreement:.2e} {1 - found.upper_bound:.2e}"
            say("    disagreement, and a lower bound on that of all subsets", lost)


def say(what: str, value: str) -> None:
    print(f"{what:<66} {value}", flush=True)


def main() -> None:
    hepatitis = classifier("hepatitis", 0.5)
    one = seconds(lambda: tb.trim(hepatitis, 6), 9)
    say("hepatitis, 19 features, budget 6, T = 0.5: one trim", f"{one * 1e3:8.1f} ms")
    say("    against the printed 4390.71 s", f"{4390.71 / one:8.0f} x")
    baseline = seconds(lambda: tb.select_features(hepatitis, 6), 3)
    say("    FS-SDD, 43,795 subsets", f"{baseline * 1e3:8.1f} ms")
    say("    FS-SDD against trimming", f"{baseline / one:8.1f} x")
    other = seconds(lambda: tb.trim(hepatitis, 6, engine="dense"), 3)
    say("    dense engine against log-odds", f"{other / one:8.1f} x")

    heart = classifier("heart", 0.5)
    found = tb.trim(heart, 4)
    if abs(exhaustive(heart, 4) - found.agreement) > 1e-12:
        sys.exit("trimming and exhaustive search differ on heart")
    quick, slow = seconds(lambda: tb.trim(heart, 4), 9), seconds(lambda: exhaustive(heart, 4), 1)
    say("heart, 13 features, budget 4: exhaustive search against trimming", f"{slow / quick:8.1f} x")

    proven()
    stopped()
    digits()

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "trimbench", "experiment=trimming/table6", f"results={folder}"]
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        say("Table 6 whole, both methods, from the command line", f"{time.perf_counter() - start:8.1f} s")

    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "trimbench", "--help"], check=True, capture_output=True)
    say("trimbench --help", f"{time.perf_counter() - start:8.2f} s")


def numpy_loop(original: tb.BayesianClassifier, size: int) -> float:
    """Return the best agreement of all subsets of one size at their best thresholds, in plain NumPy.

    Each subset sums the table of all instances and sorts its own by their probabilities, as one would without this
    library.
    """
    n = original.n_features
    positive, negative = original.joint(range(n))
    both = positive + negative
    accepted = np.where(positive >= original.threshold * both, both, 0.0).reshape((2,) * n)
    tables: list[NDArray[np.float64]] = [table.reshape((2,) * n) for table in (positive, both)]
    best = 0.0
    for kept in itertools.combinations(range(n), size):
        removed = tuple(set(range(n)) - set(kept))
        mine, mass, agree = (table.sum(axis=removed).ravel() for table in (*tables, accepted))
        order = np.argsort(-mine / mass)
        # The first instances are accepted, the others are not.
        gained = np.cumsum((2.0 * agree - mass)[order])
        best = max(best, float(max(gained.max(), 0.0) + (mass - agree).sum()))
    return best


def against_every_subset() -> Iterator[Row]:
    """Compare one trim with the search of all subsets in NumPy."""
    for name, size, repetitions in (("heart", 4, 5), ("voting", 5, 3)):
        original = classifier(name, 0.5)
        found, loop = tb.trim(original, size).agreement, numpy_loop(original, size)
        if abs(found - loop) > 1e-9:
            raise AssertionError(f"{name}: trim finds {found}, the loop over all subsets {loop}")
        what = f"{name}, {original.n_features} features, budget {size}: one trim"
        ours, theirs = partial(tb.trim, original, size), partial(numpy_loop, original, size)
        yield versus(what, "NumPy loop over all subsets", ours, theirs, repetitions)


def against_table6() -> Iterator[Row]:
    """Compare with the seconds that Table 6 prints, for TrimBN and for FS-SDD."""
    printed = printed_numbers("trimming/table6")
    for name in TABLE6:
        original = classifier(name, 0.5)
        budget = original.n_features // 3
        seconds = printed[name, "eca_trim_seconds"].value
        call: Call = partial(tb.trim, original, budget)
        yield against_printed(f"{name}, budget {budget}: one trim", "TrimBN, printed in Table 6", call, seconds)
    original = classifier("voting", 0.5)
    seconds = printed["voting", "fs_sdd_seconds"].value
    search = partial(tb.select_features, original, 5)
    yield against_printed("voting, budget 5: same-decision search", "FS-SDD, printed in Table 6", search, seconds, 3)


def against_other_engines() -> Iterator[Row]:
    """Compare the engines with each other, and the trimming search with the exhaustive one of the paper."""
    voting = classifier("voting", 0.5)
    dense = partial(tb.trim, voting, 5, engine="dense")
    log_odds = partial(tb.trim, voting, 5, engine="log_odds")
    yield versus("voting, budget 5: one trim on log-odds", "one trim on the table", log_odds, dense)
    yield versus(
        "voting, budget 5: one trim on the table", "same-decision search", dense, partial(tb.select_features, voting, 5)
    )
    heart = classifier("heart", 0.5)
    circuit = partial(tb.trim, heart, 4, engine="sdd")
    note = version_of("pysdd") or ""
    table = partial(tb.trim, heart, 4, engine="dense")
    yield versus("heart, budget 4: one trim on a circuit", "one trim on the table", circuit, table, 3, note=note)


COMPARISONS = (proofs_in_seconds, several_classes, against_every_subset, against_table6, against_other_engines)

if __name__ == "__main__":
    # One thread: the figures are for one core.
    with threadpool_limits(1):
        main()
