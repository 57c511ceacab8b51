"""Networks from the files that are declared for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trimbench.networks.ace import read_ace, read_ace_problem
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.evidence import read_evidence
from trimbench.networks.file_parsing import MAX_UNPACKED
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.value_codes import listed
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.network_declaration import NetworkDeclaration
from trimbench.papers.data.sources import network_paths

# Published networks of 200 kB become 35 MB.
_LONGEST = 2**26


@dataclass(frozen=True, eq=False)
class DeclaredNetwork:
    """A network with the classification problem that is stated for it.

    The target is the class, and `positive` the state of it that counts as positive; both are None where the network is
    declared without a class. The features are those that are declared or of the stated problem, in its order, or the
    leaves except the class. `evidence` is what was observed, as declared or in a file: the state of some nodes.
    """

    model: NaiveBayes | BayesianNetwork
    target: str | None
    positive: str | None
    features: tuple[str, ...]
    evidence: Mapping[str, str] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of all nodes."""
        model = self.model
        return model.nodes if isinstance(model, BayesianNetwork) else (model.class_variable, *model.feature_names)

    def features_without(self, target: str) -> tuple[str, ...]:
        """Return the features when another node is taken as the class."""
        return tuple(name for name in self.features if name != target)


def load_network(declaration: NetworkDeclaration, cache: Cache) -> DeclaredNetwork:
    """Fetch and read a declared network; raises ValueError if the files do not hold what was declared."""
    paths = network_paths(declaration, cache)
    return _load_ace(declaration, paths) if declaration.format == "ace" else _load_whole(declaration, paths)


def _load_ace(declaration: NetworkDeclaration, paths: dict[str, Path]) -> DeclaredNetwork:
    model = read_ace(paths["cnf"], paths["lmap"])
    problem = read_ace_problem(paths["search"])
    for what, declared, found in (
        ("target", declaration.target, problem.target),
        ("target", declaration.target, model.class_variable),
        ("number of features", declaration.features, model.n_features),
        ("features", sorted(model.feature_names), sorted(problem.costs)),
    ):
        _check(declaration, what, declared, found)
    return DeclaredNetwork(model, declaration.target, declaration.positive, tuple(problem.costs))


def _load_whole(declaration: NetworkDeclaration, paths: dict[str, Path]) -> DeclaredNetwork:
    path = paths["network"]
    endings = {f".{declaration.format}", *({".xml"} if declaration.format == "xmlbif" else ())}
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending not in endings:
        raise ValueError(
            f"network {declaration.name!r}: a file of format {declaration.format!r} must end in "
            f"{' or '.join(sorted(endings))} (and .gz), got {path.name!r}"
        )
    trusted = declaration.path is None  # its hash is declared
    model = BayesianNetwork.read(path, max_unpacked=_LONGEST if trusted else MAX_UNPACKED)
    target = [] if declaration.target is None else [declaration.target]
    _check_nodes(declaration, model, "target", target)
    _check_nodes(declaration, model, "features", declaration.feature_names or ())
    _check_nodes(declaration, model, "evidence", declaration.evidence)
    leaves = tuple(node for node in model.nodes if not model.children(node) and node != declaration.target)
    if declaration.features is not None:
        _check(declaration, "number of features (leaves)", declaration.features, len(leaves))
    evidence = read_evidence(paths["evidence"], model) if "evidence" in paths else declaration.evidence
    for node, state in declaration.evidence.items():
        if state not in model.states(node):
            raise ValueError(
                f"network {declaration.name!r}: evidence on {node!r} must be one of its states, "
                f"{listed(model.states(node))}, got {state!r}"
            )
    features = declaration.feature_names or tuple(node for node in leaves if node not in declaration.evidence)
    return DeclaredNetwork(model, declaration.target, declaration.positive, features, evidence)


def _check_nodes(declaration: NetworkDeclaration, model: BayesianNetwork, what: str, names: Iterable[str]) -> None:
    for name in names:
        if name not in model.nodes:
            raise ValueError(
                f"network {declaration.name!r}: {what} must be one of its nodes, {', '.join(model.nodes[:20])}"
                f"{', ...' if len(model.nodes) > 20 else ''}, got {name!r}"
            )


def _check(declaration: NetworkDeclaration, what: str, declared: object, found: object) -> None:
    if declared != found:
        raise ValueError(f"network {declaration.name!r}: {what} must be {declared!r}, got {found!r} in its files")
