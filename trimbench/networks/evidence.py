"""Observed states of some variables of a network, checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.values import state_name

# An error lists no more names than these, so that it stays short.
LISTED = 8
LISTED_CHARACTERS = 200


def checked_evidence(
    network: BayesianNetwork, evidence: Mapping[str, str], *, without: Collection[str] = ()
) -> dict[str, int]:
    """Return the position of each observed state among the states of its node.

    Parameters
    ----------
    network : BayesianNetwork
    evidence : mapping from node name to state name
    without : collection of str
        Nodes that must not be observed.

    Raises
    ------
    TypeError
        When `evidence` is no mapping.
    ValueError
        When a node or a state is unknown, or a node of `without` is observed.
    """
    if not isinstance(evidence, Mapping):
        raise TypeError(
            f"evidence must be a mapping from node names to state names, got {type(evidence).__name__}; write "
            "{'node': 'state'}, or read a file with network.read_evidence"
        )
    observed = {}
    for node, given in evidence.items():
        if node not in network.nodes:
            raise ValueError(f"evidence must be on nodes among {shown(network.nodes)}, got {_short(node)}")
        state = state_name(given, network.states(node))
        if state not in network.states(node):
            raise ValueError(
                f"evidence on {_short(node)} must be one of its states {shown(network.states(node))}, "
                f"got {_short(state)}"
            )
        if node in without:
            raise ValueError(
                f"evidence must leave the target, the features and all other asked variables free, got {_short(node)}; "
                "take it out of one of them"
            )
        observed[node] = network.states(node).index(state)
    return observed


def shown(values: Iterable[object]) -> str:
    """Return a list of values for a message, cut short if it is long."""
    values = list(values)
    texts: list[str] = []
    for value in values[:LISTED]:
        texts.append(_short(value))
        if sum(map(len, texts)) > LISTED_CHARACTERS:
            break
    more = len(values) - len(texts)
    return f"[{', '.join(texts)}{f', ... and {more} more' if more else ''}]"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
