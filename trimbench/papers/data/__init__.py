"""Data sets and files: declared in YAML, fetched, verified, and handed on as plain pandas."""

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.dataset import Dataset
from trimbench.papers.data.declaration import (
    DatasetDeclaration,
    Facts,
    declare_dataset,
)
from trimbench.papers.data.encoding import categorize
from trimbench.papers.data.errors import DataUnavailable, DeclarationError, FactsMismatch
from trimbench.papers.data.files import FileDeclaration, fetch_file
from trimbench.papers.data.fingerprint import fingerprint
from trimbench.papers.data.network_declaration import NetworkDeclaration, declare_network
from trimbench.papers.data.sources import is_available, load_dataset
from trimbench.papers.data.splits import split_rows

__all__ = [
    "Cache",
    "DataUnavailable",
    "Dataset",
    "DatasetDeclaration",
    "DeclarationError",
    "Facts",
    "FactsMismatch",
    "FileDeclaration",
    "NetworkDeclaration",
    "categorize",
    "declare_dataset",
    "declare_network",
    "fetch_file",
    "fingerprint",
    "is_available",
    "load_dataset",
    "split_rows",
]
