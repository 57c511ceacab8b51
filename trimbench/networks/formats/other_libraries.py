"""Networks of pgmpy, pyAgrum and scikit-learn, through their documented methods; none of them is imported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.formats.parsing import NetworkParts

# Numbers that pyAgrum reads from files have about as many digits as single precision.
TOLERANCE = 1e-6
_Table = tuple[list[str], list[list[str]], NDArray[np.float64]]


def parts_of(network: Any) -> NetworkParts:
    """Return the parts of a discrete network of pgmpy or pyAgrum.

    Raises TypeError if it is neither, and ValueError if a table is missing or two names are equal as text.
    """
    if hasattr(network, "get_cpds") and hasattr(network, "nodes"):
        tables = _of_pgmpy(network)
    elif hasattr(network, "cpt") and hasattr(network, "variable"):
        tables = _of_pyagrum(network)
    else:
        raise TypeError(
            "network must be a DiscreteBayesianNetwork of pgmpy or a BayesNet of pyAgrum, got "
            f"{type(network).__name__}; read one from a file with BayesianNetwork.read"
        )
    found = list(tables)
    states: dict[str, list[str]] = {}
    for (node, *_), names, _ in found:
        if node in states:
            raise ValueError(f"network must have nodes with different names as text, got {node!r} twice")
        states[node] = names[0]
    parents: dict[str, list[str]] = {}
    values: dict[str, NDArray[np.float64]] = {}
    for (node, *above), names, table in found:
        # The table of a child may have the states of its parents in another order.
        for axis, (parent, own) in enumerate(zip(above, names[1:], strict=True), 1):
            wanted = states.get(parent, own)
            if sorted(own) != sorted(wanted):
                raise ValueError(
                    f"the table of {node!r} must have the states of its parent {parent!r}, {wanted}, got {own}; give "
                    "both tables the same state_names"
                )
            table = table.take([own.index(state) for state in wanted], axis)
        parents[node] = above
        values[node] = np.moveaxis(table, 0, -1)
    return NetworkParts(states, parents, values)


def _of_pgmpy(network: Any) -> Iterator[_Table]:
    """Yield the names, the states and the table of each node and its parents, the node first."""
    for node in network.nodes():
        table = network.get_cpds(node)
        if table is None:
            raise ValueError(f"network must have a table for every node, got none for {str(node)!r}; use add_cpds")
        if not hasattr(table, "state_names"):
            raise TypeError(f"network must have discrete tables, got {type(table).__name__} for {str(node)!r}")
        names = [[str(state) for state in table.state_names[name]] for name in table.variables]
        yield [str(name) for name in table.variables], names, np.asarray(table.values, dtype=np.float64)


def _of_pyagrum(network: Any) -> Iterator[_Table]:
    """Yield the same as `_of_pgmpy`; the axes of pyAgrum's tables are in the reverse order of their names."""
    for place in sorted(network.nodes()):
        table = network.cpt(place)
        names = list(table.names)
        labels = [[str(label) for label in network.variable(name).labels()] for name in names]
        yield names, labels, np.asarray(table.toarray(), dtype=np.float64).transpose()


# The tables of scikit-learn's naive Bayes estimators.


def naive_bayes_parts(estimator: Any, feature_names: Sequence[str] | None) -> dict[str, Any]:
    """Return the arguments of `NaiveBayes` for a fitted BernoulliNB or CategoricalNB.

    Raises TypeError if the estimator is of another class, and ValueError if it is not fitted or the names do not fit.
    """
    from sklearn.naive_bayes import BernoulliNB, CategoricalNB

    if not isinstance(estimator, BernoulliNB | CategoricalNB):
        raise TypeError(f"estimator must be a BernoulliNB or a CategoricalNB, got {type(estimator).__name__}")
    if not hasattr(estimator, "feature_log_prob_"):
        raise ValueError(f"estimator must be fitted, got {type(estimator).__name__} without tables; call fit() first")
    if isinstance(estimator, BernoulliNB):
        ones = np.exp(estimator.feature_log_prob_)
        tables = [np.stack([1.0 - column, column], axis=1) for column in ones.T]
    else:
        tables = [np.exp(table) for table in estimator.feature_log_prob_]
    if feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", None)
    if feature_names is not None:
        feature_names = [str(name) for name in feature_names]
        if len(feature_names) != len(tables):
            raise ValueError(f"feature_names must have {len(tables)} names, got {len(feature_names)}")
    return {
        "prior": np.exp(estimator.class_log_prior_),
        "likelihoods": tables,
        "feature_names": feature_names,
        "class_names": [str(name) for name in estimator.classes_.tolist()],
    }
