"""The reader for each kind of network file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trimbench.networks.bif import read_bif
from trimbench.networks.file_parsing import MAX_UNPACKED, NetworkParts
from trimbench.networks.uai_and_ergo import read_ergo, read_uai
from trimbench.networks.xmlbif import read_xmlbif

READERS: dict[str, Callable[[Path, int], NetworkParts]] = {
    ".erg": read_ergo,
    ".uai": read_uai,
    ".bif": read_bif,
    ".xmlbif": read_xmlbif,
    ".xml": read_xmlbif,
}


def read_parts(path: Path, max_unpacked: int = MAX_UNPACKED) -> NetworkParts:
    """Read a network with the reader for the ending of `path`; raise ValueError if there is none."""
    name = path.name.lower().removesuffix(".gz")
    reader = READERS.get(Path(name).suffix)
    if reader is None:
        raise ValueError(
            f"path must end in .json, {', '.join(READERS)}, or one of the latter and .gz, got {str(path)!r}; "
            "an ACE network is read by read_ace"
        )
    return reader(path, max_unpacked)
