"""Data sets and files: declared in YAML, fetched, verified, and handed on as plain pandas."""

from trimbench.data.cache import Cache
from trimbench.data.dataset import Dataset
from trimbench.data.declaration import (
    DatasetDeclaration,
    Facts,
    declare_dataset,
)
from trimbench.data.encoding import categorize
from trimbench.data.errors import DataUnavailable, DeclarationError, FactsMismatch
from trimbench.data.files import FileDeclaration, fetch_file
from trimbench.data.fingerprint import fingerprint
from trimbench.data.network_declaration import NetworkDeclaration, declare_network
from trimbench.data.sources import is_available, load_dataset
from trimbench.data.splits import split_rows

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
