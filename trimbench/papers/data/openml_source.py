"""OpenML data sets, from a cache folder or from the server, through the `openml` package."""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trimbench.papers.data.cache import OPENML_SERVER, Cache
from trimbench.papers.data.dataset import Dataset, build_dataset
from trimbench.papers.data.declaration import DatasetDeclaration, OpenMLSource
from trimbench.papers.data.errors import DataUnavailable, FactsMismatch, data_unavailable
from trimbench.papers.data.openml_package import openml_package
from trimbench.papers.data.reachability import HostMemory, one_line_reason

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)
_DESCRIPTIONS = ("description.xml", "features.xml")
_ARFF = "dataset.arff"


class _ReadFailure(Exception):  # noqa: N818 - never leaves this module
    """The package could not deliver a data set."""


@dataclass(frozen=True, eq=False)
class _RawTable:
    """What the package read: the columns that are features or the target, and the order of labels."""

    table: pd.DataFrame
    orders: dict[str, list[str]]


def is_cached(source: OpenMLSource, cache: Cache) -> bool:
    """Tell whether some folder of the cache holds all files of the data set, without reading them."""
    return any(_data_file(cache.openml_folder(place, source.id)) for place in cache.places)


def load_openml(declaration: DatasetDeclaration, source: OpenMLSource, cache: Cache) -> Dataset:
    """Load a data set from the cache, or download it, check it, and only then add it to the cache.

    Parameters
    ----------
    declaration : DatasetDeclaration
    source : OpenMLSource
        The source of `declaration`.
    cache : Cache

    Returns
    -------
    Dataset

    Raises
    ------
    DataUnavailable
        No folder holds a readable copy and the download failed or is not allowed.
    DeclarationError, FactsMismatch
        The data is not what was declared. A download of that kind is not kept.
    """
    unreadable: list[Path] = []
    for place in cache.places:
        folder = cache.openml_folder(place, source.id)
        if _data_file(folder) is None:
            continue
        try:
            raw = _read_cached(folder, declaration.name, source)
        except _ReadFailure as error:
            _log.warning("skipping %s, which cannot be read: %s", folder, error)
            unreadable.append(folder)
        else:
            return build_dataset(declaration, raw.table, source.target, raw.orders)
    return _download(declaration, source, cache, unreadable)


def _data_file(folder: Path) -> str | None:
    """Return the name of the file with the values, or None if the folder is not complete."""
    if not all((folder / name).is_file() for name in _DESCRIPTIONS):
        return None
    for name in (f"dataset_{folder.name}.pq", _ARFF):
        if (folder / name).is_file():
            return name
    return None


def _read_cached(folder: Path, name: str, source: OpenMLSource) -> _RawTable:
    """Read through a private folder, because the package writes beside the files that it reads."""
    data_file = _data_file(folder)
    if data_file is None:  # it was complete a moment ago: another process is replacing it
        raise _ReadFailure("it is not complete")
    with tempfile.TemporaryDirectory(prefix="trimbench-openml-") as root:
        private = Path(root) / "org" / "openml" / "www" / "datasets" / str(source.id)
        private.mkdir(parents=True)
        try:
            for description in _DESCRIPTIONS:
                # Copies: where the package cannot parse a description it writes a new one over it.
                shutil.copyfile(folder / description, private / description)
            (private / data_file).symlink_to((folder / data_file).resolve())
        except OSError as error:
            raise _ReadFailure(one_line_reason(error)) from error
        return _read(Path(root), OPENML_SERVER, None, name, source)[0]


def _download(declaration: DatasetDeclaration, source: OpenMLSource, cache: Cache, unreadable: list[Path]) -> Dataset:
    url = f"{cache.openml_server}/data/{source.id}"

    def unavailable(reason: str) -> DataUnavailable:
        return data_unavailable(f"data set {declaration.name!r} (OpenML {source.id})", url, reason)

    if cache.offline:
        raise unavailable("it is in no cache folder and downloads are switched off")
    known = cache.hosts.reason_for(url)
    if known is not None:
        raise unavailable(known)
    try:
        with cache.workspace() as work:
            raw, folder = _read(work, cache.openml_server, cache.hosts, declaration.name, source)
            dataset = build_dataset(declaration, raw.table, source.target, raw.orders)
            destination = cache.openml_folder(cache.writable, source.id)
            _store(folder, work / "complete", destination, replace=destination in unreadable)
            return dataset
    except (_ReadFailure, OSError) as error:
        raise unavailable(one_line_reason(error)) from error


def _read(root: Path, server: str, hosts: HostMemory | None, name: str, source: OpenMLSource) -> tuple[_RawTable, Path]:
    """Let the package read (and with `hosts` download) a data set; also return its folder under `root`."""
    try:
        with openml_package(root, server, hosts) as openml:
            data = openml.datasets.get_dataset(
                source.id, download_data=True, download_features_meta_data=True, download_qualities=False
            )
            table = data.get_data(include_row_id=True, include_ignore_attribute=True)[0]
            folder = Path(openml.config.get_cache_directory()) / "datasets" / str(source.id)
            orders = {
                str(feature.name): [str(value) for value in feature.nominal_values or []]
                for feature in data.features.values()
                if feature.data_type == "nominal"
            }
    except Exception as error:  # the package raises bare Exceptions, so there is nothing narrower to catch
        says_why = error.__cause__ if type(error) is Exception and error.__cause__ else error
        raise _ReadFailure(one_line_reason(says_why)) from error
    if data.version != source.version:
        raise FactsMismatch(
            f"data set {name!r} is not what was declared (version: declared {source.version}, "
            f"got {data.version}); correct `id` or `version` in its YAML"
        )
    hidden = {*_names(data.row_id_attribute), *_names(data.ignore_attribute)} - {source.target}
    return _RawTable(table.loc[:, [column not in hidden for column in table.columns]], orders), folder


def _names(attribute: str | list[str] | None) -> list[str]:
    """Split the server's list of identifiers or ignored columns: nothing, a list or a text with commas."""
    entries = [attribute] if isinstance(attribute, str) else attribute or []
    return [*entries, *(part.strip() for entry in entries for part in entry.split(","))]


def _store(downloaded: Path, staged: Path, destination: Path, replace: bool) -> None:
    """Move a data set's files (not the package's pickles) to where they belong, all at once.

    With `replace` they take the place of a copy that could not be read. Otherwise a complete copy that is
    there already comes from another process that finished first, and stays.
    """
    data_file = _data_file(downloaded)
    if data_file is None:
        raise _ReadFailure("the server did not deliver all files")
    staged.mkdir()
    for name in (*_DESCRIPTIONS, data_file):
        (downloaded / name).replace(staged / name)
    destination.parent.mkdir(parents=True, exist_ok=True)
    if replace or (destination.is_dir() and _data_file(destination) is None):
        with contextlib.suppress(FileNotFoundError):
            destination.rename(staged.parent / "replaced")
    try:
        staged.rename(destination)
    except OSError:
        if _data_file(destination) is None:
            raise
