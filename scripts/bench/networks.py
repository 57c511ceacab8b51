"""Time predictions and trimmings of general networks, without a table of all instances.

Prints the rows per second of a tree-augmented model with 784 features, the width of the interval of one with 60
features, and a trimming of each network of the bnlearn repository in the cache (``TRIMBENCH_CACHE``), and of a drawn
network of 1041 variables with up to 21 states. Seconds are those of the processor. Takes about two minutes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

import trimbench as tb

NETWORKS = ("alarm", "pigs", "link", "munin1")
N_ROWS = 100_000


def tree_augmented(n_features: int, seed: int = 7) -> tb.BayesianClassifier:
    """Return a classifier whose features are binary and form a random tree given the class."""
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(n_features)]
    parents = {"x0": ["c"]} | {
        name: ["c", names[int(rng.integers(max(0, i - 5), i))]] for i, name in enumerate(names) if i
    }
    tables = {"c": np.array([0.4, 0.6])}
    for name in names:
        chance = rng.uniform(0.2, 0.8, size=(2,) * len(parents[name]))
        tables[name] = np.stack([chance, 1.0 - chance], axis=-1)
    network = tb.BayesianNetwork({name: ["0", "1"] for name in ("c", *names)}, parents, tables)
    return tb.BayesianClassifier(network, "c", positive="0")


def large_network(n_nodes: int = 1041, seed: int = 0) -> tb.BayesianNetwork:
    """Return a network with up to three parents for each node and 2 to 21 states, like a model of measurements."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(n_nodes)]
    sizes = dict(
        zip(names, rng.choice([2, 3, 4, 5, 7, 21], p=[0.2, 0.25, 0.25, 0.15, 0.1, 0.05], size=n_nodes), strict=True)
    )
    parents: dict[str, list[str]] = {}
    for i, name in enumerate(names):
        near = names[max(0, i - 30) : i]
        parents[name] = [
            str(parent) for parent in rng.choice(near, min(len(near), int(rng.integers(0, 4))), replace=False)
        ]
    tables = {
        name: rng.dirichlet(np.full(sizes[name], 0.5), size=tuple(int(sizes[parent]) for parent in parents[name]))
        for name in names
    }
    return tb.BayesianNetwork({name: [str(i) for i in range(sizes[name])] for name in names}, parents, tables)


def report(what: str, seconds: float, text: str) -> None:
    """Print one line."""
    print(f"{what:<58} {seconds:7.2f} s   {text}", flush=True)


def predictions() -> None:
    """Time rows of 784 features, as categories and as numbers."""
    classifier = tree_augmented(784)
    rows = classifier.model.sample(N_ROWS, np.random.default_rng(0))
    for kind, frame in (("categories", rows), ("numbers", rows.astype(np.int64))):
        start = time.process_time()
        classifier.predict(frame)
        seconds = time.process_time() - start
        report(f"784 features, {N_ROWS:,} rows of {kind}", seconds, f"{N_ROWS / seconds:,.0f} rows a second")


def trimming(what: str, classifier: tb.BayesianClassifier, budget: int, time_limit: float | None = None) -> None:
    """Time one trimming."""
    start = time.process_time()
    try:
        found = tb.trim(classifier, budget, time_limit=time_limit)
    except ValueError as error:
        report(what, time.process_time() - start, f"refused: {error}")
        return
    low, high = found.agreement_interval
    report(
        what,
        time.process_time() - start,
        f"agreement in [{low:.4f}, {high:.4f}], width {high - low:.4f}, confidence {found.confidence}, "
        f"at most {found.upper_bound:.4f}",
    )


def networks() -> None:
    """Trim each network for its first root and its last leaf, with all other variables as features."""
    folder = Path(os.environ.get("TRIMBENCH_CACHE", ".")) / "files/bnlearn"
    found = {name: folder / f"{name}.bif.gz" for name in NETWORKS}
    models = {name: tb.BayesianNetwork.read(path) for name, path in found.items() if path.exists()}
    models["1041 variables, drawn"] = large_network()
    for name, model in models.items():
        for target in (model.order[0], model.order[-1]):
            classifier = tb.BayesianClassifier(model, target, positive=model.states(target)[0])
            what = f"{name}, {classifier.n_features} features, {model.cardinality(target)} states"
            trimming(what, classifier, 3, time_limit=20)


def main() -> None:
    predictions()
    trimming("60 features in a tree, budget 10", tree_augmented(60), 10)
    trimming("60 features in a tree, budget 20", tree_augmented(60), 20)
    trimming("300 features in a tree, budget 10", tree_augmented(300), 10)
    networks()


if __name__ == "__main__":
    main()
