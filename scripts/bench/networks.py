"""Time predictions and trimmings of general networks, without a table of all instances.

Prints the rows per second of a tree-augmented model with 784 features, the width of the interval of one with 60
features, and a trimming of each network of the bnlearn repository in the cache (``TRIMBENCH_CACHE``), and of a drawn
network of 1041 variables with up to 21 states. Seconds are those of the processor. Takes about two minutes.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import trimbench as tb
from trimbench.networks.inference.joint import joint_distribution

from .measure import Call, Row, absent, growth, version_of, versus

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


def in_pyagrum(network: tb.BayesianNetwork) -> Any:
    """Return the network in pyAgrum."""
    import pyagrum

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.bif"
        network.write(path)
        return pyagrum.loadBN(str(path))


def read_in_pyagrum(path: Path) -> Any:
    """Return the network of a file in pyAgrum."""
    import pyagrum

    return pyagrum.loadBN(str(path))


def joint_of(other: Any, names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the joint distribution of some variables of a network of pyAgrum, the first outermost."""
    import pyagrum

    inference = pyagrum.LazyPropagation(other)
    inference.setNumberOfThreads(1)
    inference.addJointTarget(set(names))
    inference.makeInference()
    found = inference.jointPosterior(set(names))
    # Arrays of pyAgrum have the last of its names outermost.
    order = [list(reversed(found.names)).index(name) for name in names]
    values: NDArray[np.float64] = found.toarray().transpose(order)
    return values


def posteriors_of(other: Any, target: str, rows: list[dict[str, str]]) -> NDArray[np.float64]:
    """Return the distribution of the class for each row, one propagation after another in pyAgrum."""
    import pyagrum

    inference = pyagrum.LazyPropagation(other)
    inference.setNumberOfThreads(1)
    inference.addTarget(target)
    found = []
    for row in rows:
        inference.setEvidence(row)
        inference.makeInference()
        found.append(inference.posterior(target).toarray())
    return np.array(found)


def against_pyagrum() -> Iterator[Row]:
    """Compare the inference that trimming needs: the table of class and features, and the class of given rows."""
    classifier, what = tree_augmented(60), "class and tree over 60 features"
    network, names = classifier.model, tuple(f"x{i}" for i in range(0, 60, 5))
    if not isinstance(network, tb.BayesianNetwork):
        raise TypeError("a tree over features is a general network")
    quantities = [
        f"{what}: joint distribution of class and 12",
        f"{what}: class of 500 rows",
        "munin1: reading a BIF file",
        "alarm, 12 features, budget 4: one trim from network to answer, circuit",
        "alarm, 12 features, budget 4: one trim from network to answer, table",
    ]
    note = version_of("pyagrum")
    if note is None:
        yield from (absent(quantity, "pyAgrum", "pyagrum") for quantity in quantities)
        return
    other = in_pyagrum(network)
    joint, their_joint = partial(joint_distribution, network, ["c", *names]), partial(joint_of, other, ("c", *names))
    np.testing.assert_allclose(joint(), their_joint(), atol=1e-6)
    yield versus(quantities[0], "pyAgrum", joint, their_joint, note=note)
    rows = network.sample(500, np.random.default_rng(0))[list(classifier.features)]
    records = [{str(name): str(value) for name, value in row.items()} for row in rows.to_dict("records")]
    ours, theirs = partial(classifier.predict, rows), partial(posteriors_of, other, "c", records)
    most_probable = posteriors_of(other, "c", records)[:, 0] >= classifier.threshold
    np.testing.assert_array_equal(np.asarray(classifier.predict(rows)) == "0", most_probable)
    yield versus(quantities[1], "pyAgrum, row by row", ours, theirs, note=note)
    packed = Path(os.environ.get("TRIMBENCH_CACHE", ".")) / "files/bnlearn/munin1.bif.gz"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "munin1.bif"
        path.write_bytes(gzip.decompress(packed.read_bytes()))
        yield versus(quantities[2], "pyAgrum", partial(tb.BayesianNetwork.read, path), partial(read_in_pyagrum, path))
    yield from against_pyagrum_on_alarm(quantities[3:], note)


def against_pyagrum_on_alarm(quantities: list[str], note: str) -> Iterator[Row]:
    """Compare whole trims with the one joint distribution that a search in pyAgrum would begin with."""
    path = Path(os.environ.get("TRIMBENCH_CACHE", ".")) / "files/bnlearn/alarm.bif.gz"
    network = tb.BayesianNetwork.read(path)
    target = network.order[0]
    leaves = [name for name in network.nodes if name != target][-12:]
    other = in_pyagrum(network)
    for quantity, engine in zip(quantities, ("sdd", "dense"), strict=True):

        def trim(engine: Any = engine) -> None:
            one = tb.BayesianClassifier(network, target, positive=network.states(target)[0], features=leaves)
            tb.trim(one, 4, engine=engine)

        joint = partial(joint_of, other, (target, *leaves))
        yield versus(quantity, "pyAgrum, joint distribution", trim, joint, 3, note=note)


def growth_of_predictions() -> Iterator[Row]:
    """Fit how predictions grow in rows and features."""

    def call(n_rows: int = 20_000, n_features: int = 100) -> Call:
        classifier = tree_augmented(n_features)
        return partial(classifier.predict, classifier.model.sample(n_rows, np.random.default_rng(0)))

    yield growth("class of rows, tree over 100 features: growth in rows", (5000, 10_000, 20_000, 40_000), call, 3)
    sizes = (50, 100, 200, 400)
    yield growth("class of 20,000 rows, tree: growth in features", sizes, lambda n: call(n_features=n), 3)


COMPARISONS = (against_pyagrum, growth_of_predictions)


def main() -> None:
    predictions()
    trimming("60 features in a tree, budget 10", tree_augmented(60), 10)
    trimming("60 features in a tree, budget 20", tree_augmented(60), 20)
    trimming("300 features in a tree, budget 10", tree_augmented(300), 10)
    networks()


if __name__ == "__main__":
    main()
