"""From the declaration of a data set to its table, and of a network to its files."""

from pathlib import Path

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.dataset import Dataset
from trimbench.papers.data.declaration import DatasetDeclaration
from trimbench.papers.data.files import fetch_file
from trimbench.papers.data.network_declaration import NetworkDeclaration

Declaration = DatasetDeclaration | NetworkDeclaration


def load_dataset(declaration: DatasetDeclaration, cache: Cache) -> Dataset:
    """Load a declared data set, downloading it first if necessary, and check its facts.

    Raises DataUnavailable if the data is nowhere on this machine and cannot be downloaded, DeclarationError if it is no
    table or has no complete column of the declared name, and FactsMismatch if it differs from the facts.
    """
    return declaration.source.load(declaration.name, cache)


def network_paths(declaration: NetworkDeclaration, cache: Cache) -> dict[str, Path]:
    """Return the files of a declared network by their role, fetched where necessary."""
    if declaration.path is not None:
        return {"network": declaration.own_file()}
    return {role: fetch_file(file, cache) for role, file in declaration.files.items()}
