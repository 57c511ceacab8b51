"""Network files: what is written in one format and read in another is the same network."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np

import trimbench as tb
from tests.networks.random_models import distributions, same_naive_bayes
from tests.networks.test_bayesian_network import same
from tests.networks.test_network_files import ENCODERS, plain
from tests.nightly.cases import Case, comparison

# What every format can hold; a / beside a * would begin a comment in Ergo files.
_SIGNS = list("abcXYZ019_-+.=%&<>'#ßéЖ朴😀")


def _names(case: Case, n: int) -> list[str]:
    names: dict[str, None] = {}
    while len(names) < n:
        names["".join(case.rng.choice(_SIGNS, size=case.rng.integers(1, 7)))] = None
    return list(names)


def _network(case: Case) -> tb.BayesianNetwork:
    order = _names(case, int(case.rng.integers(1, 7)))
    states = {order[i]: _names(case, int(case.rng.integers(1, 4))) for i in case.rng.permutation(len(order))}
    parents = {
        name: [str(one) for one in case.rng.choice(order[:i], size=case.rng.integers(0, min(i, 3) + 1), replace=False)]
        if i
        else []
        for i, name in enumerate(order)
    }
    coarse = case.chance()
    tables = {
        name: distributions(case.rng, tuple(len(states[v]) for v in (*parents[name], name)), coarse=coarse)
        for name in order
    }
    return tb.BayesianNetwork(states, parents, tables)


@comparison("networks")
def formats(case: Case) -> None:
    """From each format into the next, compressed or not, bit for bit."""
    original = network = _network(case)
    with tempfile.TemporaryDirectory() as folder:
        for ending in [*case.rng.permutation(["bif", "xmlbif", "erg"]).tolist(), "uai"]:
            text = ENCODERS[ending](network).encode()
            compressed = case.chance()
            path = Path(folder, f"network.{ending}{'.gz' if compressed else ''}")
            path.write_bytes(gzip.compress(text) if compressed else text)
            network = tb.BayesianNetwork.read(path)
            case.holds(f"read from {ending}", same(network, plain(original) if ending == "uai" else original))
        case.holds("as a dictionary", same(tb.BayesianNetwork.from_dict(network.to_dict()), network))


@comparison("networks")
def naive_bayes(case: Case) -> None:
    """A naive Bayes model as a network, as JSON, and as rows: all have the same probabilities."""
    n = int(case.rng.integers(1, 5))
    tables = [distributions(case.rng, (3, int(case.rng.integers(1, 5))), coarse=case.chance()) for _ in range(n)]
    class_variable, *names = _names(case, n + 1)
    model = tb.NaiveBayes(
        distributions(case.rng, (3,), coarse=case.chance()),
        tables,
        feature_names=names,
        class_names=_names(case, 3),
        value_names=[_names(case, table.shape[1]) for table in tables],
        class_variable=class_variable,
    )
    network = model.to_network()
    case.holds("from a network", same_naive_bayes(tb.NaiveBayes.from_network(network, class_variable), model))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save(path)
        case.holds("from JSON", same_naive_bayes(tb.NaiveBayes.load(path), model))
    rows = model.sample(5, case.rng)
    with np.errstate(divide="ignore"):
        expected = np.log(
            [
                [_probability(network, {class_variable: c} | row) for c in model.class_names]
                for row in rows[names].to_dict("records")
            ]
        )
    case.equal("probabilities of rows", model.log_joint(model.encode(rows)), expected, 1e-10)


def _probability(network: tb.BayesianNetwork, row: dict[str, str]) -> float:
    """Return the probability of a complete row, by the definition of a network."""
    at = {node: network.states(node).index(str(row[node])) for node in network.nodes}
    factors = [network.table(v)[(*(at[u] for u in network.parents(v)), at[v])] for v in network.nodes]
    return float(np.prod(factors))
