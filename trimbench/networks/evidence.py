"""Observed states of some variables of a network: checked, and read from evidence files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.formats.parsing import Words, read_text, short_errors, without_comments
from trimbench.networks.formats.uai import LARGEST
from trimbench.networks.values import state_name

# An error lists no more names than these, so that it stays short.
LISTED = 8
LISTED_CHARACTERS = 200
ENDINGS = (".evid", ".evid.gz")


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
            "{'node': 'state'}, or read a file with read_evidence"
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


@short_errors()
def read_evidence(path: str | Path, network: BayesianNetwork) -> dict[str, str]:
    """Read which states of a network's variables were observed, from a file beside an Ergo or UAI network.

    The file holds the number of observed variables, then a pair for each of them: its index among the variables of the
    network and the index of its state, both from 0. Comments stand in ``/* */``. A file for several samples (the format
    of the UAI competitions since 2008) begins with their number; the first sample is returned.

    Parameters
    ----------
    path : str or Path
        Ends in ``.evid`` or ``.evid.gz``.
    network : BayesianNetwork
        Its order of nodes and states gives the indices their names.

    Returns
    -------
    dict from node name to state name, in the order of the file

    Raises
    ------
    OSError
        When the file cannot be opened.
    ValueError
        When the ending is another one, or the file is damaged or does not fit the network; the message names the file,
        the line and the word.

    Examples
    --------
    >>> import tempfile
    >>> network = BayesianNetwork({"rain": ["yes", "no"]}, {}, {"rain": [0.2, 0.8]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rain.uai.evid"
    ...     _ = path.write_text("1  0 1")
    ...     read_evidence(path, network)
    {'rain': 'no'}
    """
    path = Path(path)
    if not path.name.lower().endswith(ENDINGS):
        raise ValueError(f"path must end in {' or '.join(ENDINGS)}, got {str(path)!r}")
    text = without_comments(read_text(path))
    words = Words(path, text)
    samples = words.whole("the number of samples", lowest=1, highest=LARGEST) if _begins_with_samples(text) else 1
    first, *_ = [_sample(words, network) for _ in range(samples)]
    words.end()
    return first


def _begins_with_samples(text: str) -> bool:
    """Tell whether a file begins with a number of samples, each a count and pairs, by how many numbers there are.

    Where both is possible, or neither, lines tell: one for each sample.
    """
    words = text.split()
    numbers = [int(word) if word.isascii() and word.isdecimal() and len(word) <= 18 else -1 for word in words]
    alone = bool(numbers) and len(numbers) == 1 + 2 * numbers[0]
    place = 1
    for _ in range(min(numbers[0], len(numbers)) if numbers else 0):
        place += 1 + 2 * max(numbers[place], 0) if place < len(numbers) else len(numbers) + 1
    several = bool(numbers) and numbers[0] > 0 and place == len(numbers)
    if alone != several:
        return several
    lines = [line.split() for line in text.splitlines() if line.strip()]
    return any(len(line) > 1 for line in lines) and len(lines[0]) == 1 and len(lines[1]) % 2 == 1


def _sample(words: Words, network: BayesianNetwork) -> dict[str, str]:
    evidence: dict[str, str] = {}
    last = len(network.nodes) - 1
    for _ in range(words.whole("the number of observed variables", highest=last + 1)):
        node = network.nodes[words.whole("the index of an observed variable", highest=last)]
        if node in evidence:
            words.fail("a variable must be observed once")
        states = network.states(node)
        evidence[node] = states[words.whole(f"the index of the state of {_short(node)}", highest=len(states) - 1)]
    return evidence
