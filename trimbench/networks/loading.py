"""Networks from the files that are declared for them."""

from __future__ import annotations

from dataclasses import dataclass

from trimbench.data.cache import Cache
from trimbench.data.declaration import NetworkDeclaration
from trimbench.data.files import fetch_file
from trimbench.networks.ace import read_ace, read_ace_problem
from trimbench.networks.naive_bayes import NaiveBayes


@dataclass(frozen=True, eq=False)
class DeclaredNetwork:
    """A network with the classification problem that is stated for it.

    Attributes
    ----------
    model : NaiveBayes
    positive : str
        State of the class that counts as positive.
    features : tuple of str
        In the order of the stated problem.
    """

    model: NaiveBayes
    positive: str
    features: tuple[str, ...]


def load_network(declaration: NetworkDeclaration, cache: Cache) -> DeclaredNetwork:
    """Fetch and read a declared network.

    Parameters
    ----------
    declaration : NetworkDeclaration
    cache : Cache

    Raises
    ------
    DataUnavailable
        When a file is neither cached nor to be had.
    ValueError
        When the files do not hold what was declared.
    """
    if declaration.format != "ace":
        raise ValueError(f"network {declaration.name!r}: format must be 'ace', got {declaration.format!r}")
    paths = {role: fetch_file(file, cache) for role, file in declaration.files.items()}
    model = read_ace(paths["cnf"], paths["lmap"])
    problem = read_ace_problem(paths["search"])
    for what, declared, found in (
        ("target", declaration.target, problem.target),
        ("target", declaration.target, model.class_variable),
        ("number of features", declaration.features, model.n_features),
        ("features", sorted(model.feature_names), sorted(problem.costs)),
    ):
        if declared != found:
            raise ValueError(f"network {declaration.name!r}: {what} must be {declared!r}, got {found!r} in its files")
    return DeclaredNetwork(model, declaration.positive, tuple(problem.costs))
