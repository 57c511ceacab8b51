"""Trimmings of general networks, and how far selections by information gain agree with the same original."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.contraction import ContractionTooLarge
from trimbench.networks.tree_augmented import learn_tree_augmented
from trimbench.papers.data.encoding import categorize
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.study.inputs import dataset_of, network_of
from trimbench.trimming.baselines.information_gain import select_by_information_gain
from trimbench.trimming.circuits.compiler import CircuitError
from trimbench.trimming.classifier import BayesianClassifier, feature_indices
from trimbench.trimming.engines.choice import Engine, EngineName, TableLimits, make_engine
from trimbench.trimming.trim import trim

_CODE = (
    "trimbench.papers.data",
    "trimbench.networks",
    "trimbench.trimming",
    "trimbench.papers.study.inputs",
    __name__,
)


class Selection(NamedTuple):
    """A selection of features to compare with: its name in tables, and the function that selects within a budget."""

    title: str
    select: Callable[..., Sequence[str]]


# By the prefix of its results; `select` takes the classifier, the budget and the engine.
SELECTIONS = {
    "gain": Selection("information gain", select_by_information_gain),
    "joint_gain": Selection("joint information gain", functools.partial(select_by_information_gain, joint=True)),
}


@job_function(code=_CODE)
def trim_drawn_class(
    network: Mapping[str, Json],
    draw: int,
    seed: int,
    thresholds: list[float],
    budget_divisor: int,
    engine: EngineName,
    limits: TableLimits,
) -> dict[str, Json]:
    """Trim a network input whose features are its leaves and whose class is drawn from its binary roots.

    A network that is declared with its class keeps it. Draws count from 0; the seed shuffles the roots. If the input
    has evidence, every probability is conditional on it, and only leaves and roots that were not observed are taken.
    """
    loaded = network_of(network)
    model = loaded.model if isinstance(loaded.model, BayesianNetwork) else loaded.model.to_network()
    roots = [node for node in binary_roots(model) if node not in loaded.evidence]
    free = [node for node in loaded.features if node not in loaded.evidence]
    if loaded.evidence and loaded.target is None and draw >= len(roots):
        reason = f"only {len(roots)} of the binary roots are not observed"
        return {"target": "", "n_features": len(free), "budget": len(free) // budget_divisor, "refused": reason}
    target = loaded.target or draw_class(roots, str(network["name"]), draw, seed)
    classifier = BayesianClassifier(
        model,
        target,
        positive=loaded.positive or model.states(target)[-1],
        features=[node for node in free if node != target],
        evidence=loaded.evidence,
    )
    return _against_information_gain(classifier, thresholds, budget_divisor, engine, limits)


@job_function(code=_CODE)
def trim_tree_augmented(
    dataset: Mapping[str, Json],
    positive: str,
    smoothing: float,
    thresholds: list[float],
    budget_divisor: int,
    engine: EngineName,
) -> dict[str, Json]:
    """Learn a tree-augmented naive Bayes classifier on all rows of a data set, and trim it.

    Numbers are cut at their median; missing values are left out of the counts.
    """
    loaded = dataset_of(dataset)
    (rows,) = categorize(loaded.features, gaps="keep")
    model = learn_tree_augmented(rows, loaded.target, smoothing=smoothing, missing="ignore")
    features = [str(label) for label in rows.columns]
    classifier = BayesianClassifier(model, str(loaded.target.name), positive=positive, features=features)
    return _against_information_gain(classifier, thresholds, budget_divisor, engine)


def binary_roots(network: BayesianNetwork) -> list[str]:
    """Return the binary roots that have children."""
    return [
        node
        for node in network.nodes
        if not network.parents(node) and network.children(node) and network.cardinality(node) == 2
    ]


def draw_class(roots: Sequence[str], name: str, draw: int, seed: int) -> str:
    """Draw one of the binary roots of a network, without repetition; ValueError if there are too few."""
    import numpy as np

    if draw >= len(roots):
        raise ValueError(f"classes must be at most {len(roots)} for {name!r} (its binary roots), got draw {draw + 1}")
    return roots[int(np.random.default_rng(seed).permutation(len(roots))[draw])]


def _against_information_gain(
    classifier: BayesianClassifier,
    thresholds: Sequence[float],
    budget_divisor: int,
    name: EngineName,
    limits: TableLimits | None = None,
) -> dict[str, Json]:
    """Return the trimming at each threshold, and how far selections by information gain agree there.

    For a network that exact methods cannot handle, the reason takes their place.
    """
    budget = classifier.n_features // budget_divisor
    facts: dict[str, Json] = {"target": classifier.target, "n_features": classifier.n_features, "budget": budget}
    start = time.perf_counter()
    try:
        engine = make_engine(classifier, name, limits=limits)
        # An engine may put off making its table until a value is asked for.
        engine.agreement((), 0.5)
    except (ContractionTooLarge, CircuitError) as error:
        return facts | {"refused": str(error)}
    built = time.perf_counter() - start
    selections = {name: by.select(classifier, budget, engine=engine) for name, by in SELECTIONS.items()}
    points = [
        _point(classifier, budget, float(level), engine.with_threshold(level), selections) for level in thresholds
    ]
    return facts | {
        "engine": type(engine).__name__,
        "engine_seconds": built,
        "method_seconds": sum(cast(float, point["seconds"]) for point in points),
        **{f"{name}_features": list(features) for name, features in selections.items()},
        "points": points,
    }


def _point(
    classifier: BayesianClassifier,
    budget: int,
    threshold: float,
    engine: Engine,
    selections: Mapping[str, Sequence[str]],
) -> dict[str, Json]:
    start = time.perf_counter()
    trimming = trim(classifier.with_threshold(threshold), budget, engine=engine)
    point: dict[str, Json] = {
        "threshold": threshold,
        "features": list(trimming.features),
        "agreement": trimming.agreement,
        "new_threshold": trimming.threshold,
        "optimal": trimming.optimal,
        "n_evaluations": trimming.n_evaluations,
        "no_feature": engine.best_cut(()).agreement,
        "seconds": time.perf_counter() - start,
    }
    for method, features in selections.items():
        places = sorted(feature_indices(classifier.features, features))
        point[f"{method}_same_threshold"] = engine.agreement(places, threshold)
        point[f"{method}_best_threshold"] = engine.best_cut(places).agreement
    return point
