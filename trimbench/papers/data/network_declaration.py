"""Networks as they are declared in YAML, checked and frozen."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from trimbench.papers.data.errors import DataUnavailable
from trimbench.papers.data.files import FileDeclaration
from trimbench.papers.data.mapping_reader import MappingReader

# The roles of the files that make up a network, by format.
NETWORK_FILES: dict[str, tuple[str, ...]] = {
    "ace": ("cnf", "lmap", "search"),
    "erg": ("network",),
    "uai": ("network",),
    "bif": ("network",),
    "xmlbif": ("network",),
}


@dataclass(frozen=True)
class NetworkDeclaration:
    """A named Bayesian network in files, and the class that is stated for it.

    Parameters
    ----------
    name : str
    format : str
        Format of the files.
    files : dict of str to FileDeclaration
        The files by their role; empty where `path` is given.
    path : Path, optional
        A file of the user's own that holds the whole network.
    target : str, optional
        Class node; None where the network comes without a class.
    positive : str, optional
        State of the class node that counts as positive; given together with `target`.
    features : int, optional
        Number of features: of feature nodes in an ACE problem, else of leaves.
    """

    name: str
    format: str
    files: dict[str, FileDeclaration]
    path: Path | None = None
    target: str | None = None
    positive: str | None = None
    features: int | None = None

    @cached_property
    def sha256(self) -> str:
        """SHA-256 over the roles and hashes of the files, whatever their order.

        Raises
        ------
        DataUnavailable
            When the user's own file does not exist.
        """
        hashes = {role: file.sha256 for role, file in self.files.items()}
        if self.path is not None:
            hashes["network"] = hashlib.sha256(existing(self.name, self.path).read_bytes()).hexdigest()
        lines = (f"{role} {sha256}\n" for role, sha256 in sorted(hashes.items()))
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def declare_network(name: str, mapping: Mapping[str, Any], base: Path | None = None) -> NetworkDeclaration:
    """Check and freeze the declaration of a Bayesian network.

    Parameters
    ----------
    name : str
        Name of the network, used in every message.
    mapping : mapping
        Parsed YAML: ``format``; ``files``, or for a file of your own ``path``; ``target`` and ``positive``; ``facts``
        with ``features``. An ACE problem needs all of them, and files; other networks may come without a class and
        without facts.
    base : Path, optional
        Folder from which a relative path starts, usually that of the YAML file; by default the current one.

    Returns
    -------
    NetworkDeclaration

    Raises
    ------
    DeclarationError
        A key is unknown, missing or of the wrong type. The message names the network and the key.
    """
    reader = MappingReader.of(f"network {name!r}", mapping)
    format_ = reader.choice("format", tuple(NETWORK_FILES))
    if format_ == "ace":
        reader.expect(["format", "files", "target", "positive", "facts"])
    else:
        reader.expect(["format"], ["files", "path", "target", "positive", "facts"])
        if ("path" in mapping) == ("files" in mapping):
            raise reader.complain(
                "give exactly one of `path` (a file of your own) and `files` (with path, url and sha256), "
                f"got {[key for key in mapping if key in ('path', 'files')]!r}"
            )
        if ("target" in mapping) != ("positive" in mapping):
            raise reader.complain("give both `target` and `positive`, or none of them")
    return NetworkDeclaration(
        name=name,
        format=format_,
        files=_files(reader.inner("files"), format_) if "files" in mapping else {},
        path=(base or Path()) / Path(reader.text("path")).expanduser() if "path" in mapping else None,
        target=reader.text("target") if "target" in mapping else None,
        positive=reader.text("positive") if "positive" in mapping else None,
        features=_features(reader.inner("facts")) if "facts" in mapping else None,
    )


def existing(name: str, path: Path) -> Path:
    """Return the path of a user's own network file.

    Raises
    ------
    DataUnavailable
        When there is no such file.
    """
    if not path.is_file():
        raise DataUnavailable(
            f"network {name!r}: `path` must be an existing file, got {str(path)!r}; correct it in the network's YAML "
            "(relative paths start at the folder of that YAML)"
        )
    return path


def _files(reader: MappingReader, format_: str) -> dict[str, FileDeclaration]:
    reader.expect(NETWORK_FILES[format_])
    return {role: reader.file(role) for role in NETWORK_FILES[format_]}


def _features(reader: MappingReader) -> int:
    reader.expect(["features"])
    return reader.whole("features", 1)
