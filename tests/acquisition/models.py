"""Random models to ask."""

from typing import Any

import numpy as np

import trimbench as tb


def naive_bayes(rng: Any, sizes: Any = (2, 3, 2), n_classes: Any = 2, n_components: Any = None) -> Any:
    """Return a naive Bayes model, or a mixture with components of its classes."""
    n_states = n_components or n_classes
    tables = [rng.dirichlet(np.full(size, 0.7), size=n_states) for size in sizes]
    model = tb.NaiveBayes(
        rng.dirichlet(np.ones(n_states)), tables, class_variable="hidden" if n_components else "class"
    )
    if n_components is None:
        return model
    return tb.NaiveBayesMixture(model, [f"c{state % n_classes}" for state in range(n_states)])


def network(rng: Any) -> Any:
    """Return a network whose features depend on one another and on a hidden node."""

    def table(*shape: Any) -> Any:
        return rng.dirichlet(np.full(shape[-1], 0.6), size=shape[:-1])

    return tb.BayesianNetwork(
        {"h": ("0", "1"), "c": ("a", "b", "z"), "x": ("0", "1"), "y": ("0", "1", "2"), "w": ("0", "1")},
        {"h": (), "c": ("h",), "x": ("c", "h"), "y": ("c", "x"), "w": ("y", "h")},
        {"h": table(2), "c": table(2, 3), "x": table(3, 2, 2), "y": table(3, 2, 3), "w": table(3, 2, 2)},
    )


def classifiers(seed: Any) -> Any:
    """Return Bayesian classifiers of each kind."""
    rng = np.random.default_rng(seed)
    return [
        tb.BayesianClassifier(naive_bayes(rng)),
        tb.BayesianClassifier(naive_bayes(rng, (2, 2, 3, 2), n_classes=3)),
        tb.BayesianClassifier(naive_bayes(rng, (3, 2, 2), n_classes=2, n_components=5)),
        tb.BayesianClassifier(naive_bayes(rng, (2, 2, 2), n_classes=3), positive="1", threshold=0.4),
        tb.BayesianClassifier(network(rng), target="c", features=["x", "y", "w"]),
        tb.BayesianClassifier(network(rng), target="c", positive=["a", "z"], features=["w", "x"], evidence={"h": "1"}),
    ]
