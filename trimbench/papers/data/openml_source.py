"""Data sets of OpenML: downloaded from its documented addresses, and read by the `openml` package."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal
from xml.etree import ElementTree

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.constraints import Positive, Text
from trimbench.papers.data.dataset import Dataset, build_dataset
from trimbench.papers.data.errors import FactsMismatch, Unreadable
from trimbench.papers.data.files import download, fetching
from trimbench.papers.data.reachability import HostMemory, one_line_reason
from trimbench.papers.data.source import Source
from trimbench.papers.validation import settings

_log = logging.getLogger(__name__)
_DESCRIPTION, _FEATURES, _ARFF = "description.xml", "features.xml", "dataset.arff"


@settings
class OpenMLSource(Source):
    """A data set on OpenML: its number, version and the column to predict."""

    kind: Literal["openml"] = "openml"
    id: Positive
    version: Positive
    target: Text

    def load(self, name: str, cache: Cache) -> Dataset:
        """Load the data set from the cache, or download it, check it, and only then add it to the cache."""
        unreadable: list[Path] = []
        for place in cache.places:
            folder = cache.openml_folder(place, self.id)
            data_file = _data_file(folder)
            if data_file is None:
                continue
            try:
                with _private_copy(folder, data_file) as private:
                    return self._read(name, private, data_file)
            except Unreadable as error:
                _log.warning("skipping %s, which cannot be read: %s", folder, error)
                unreadable.append(folder)
        return self._fetch(name, cache, unreadable)

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return where the two descriptions and the values, as Parquet or ARFF, may be."""
        folders = [cache.openml_folder(place, self.id) for place in cache.places]
        kinds = ((_DESCRIPTION,), (_FEATURES,), (f"dataset_{self.id}.pq", _ARFF))
        return [[folder / file for folder in folders for file in files] for files in kinds]

    def _fetch(self, name: str, cache: Cache, unreadable: list[Path]) -> Dataset:
        server = cache.openml_server
        with fetching(f"data set {name!r} (OpenML {self.id})", f"{server}/data/{self.id}", cache) as work:
            folder = work / "complete"
            folder.mkdir()
            download(f"{server}/data/{self.id}", folder / _DESCRIPTION, cache.hosts)
            download(f"{server}/data/features/{self.id}", folder / _FEATURES, cache.hosts)
            data_file = self._fetch_values(folder, cache.hosts)
            with _private_copy(folder, data_file) as private:
                dataset = self._read(name, private, data_file)
            destination = cache.openml_folder(cache.writable, self.id)
            _store(folder, destination, replace=destination in unreadable)
            return dataset

    def _fetch_values(self, folder: Path, hosts: HostMemory) -> str:
        """Download the values, as Parquet if the storage server delivers it, and return the name of the file."""
        about = _Description.of(folder / _DESCRIPTION)
        if about.parquet_url:
            name = f"dataset_{self.id}.pq"
            try:
                download(about.parquet_url, folder / name, hosts)
            except (OSError, ValueError) as error:
                _log.debug("no Parquet file from %s: %s", about.parquet_url, one_line_reason(error))
                (folder / name).unlink(missing_ok=True)
            else:
                return name
        path = download(about.url, folder / _ARFF, hosts)
        with path.open("rb") as values:
            got = hashlib.file_digest(values, functools.partial(hashlib.md5, usedforsecurity=False)).hexdigest()
        if about.md5 and got != about.md5:
            raise Unreadable(f"the download from {about.url} has MD5 {got}, OpenML says {about.md5}")
        return _ARFF

    def _read(self, name: str, folder: Path, data_file: str) -> Dataset:
        """Read the files of a data set in a folder that the package may write to."""
        about = _Description.of(folder / _DESCRIPTION)
        if about.version != str(self.version):
            raise FactsMismatch(
                f"data set {name!r} is not what was declared (version: declared {self.version}, "
                f"got {about.version}); correct id or version in its YAML"
            )
        try:
            data = _openml().OpenMLDataset(
                about.name,
                None,
                data_format=about.format,
                dataset_id=self.id,
                data_file=str(folder / data_file),
                features_file=str(folder / _FEATURES),
            )
            table = data.get_data()[0]
        except Exception as error:  # the package raises bare Exceptions, so there is nothing narrower to catch
            says_why = error.__cause__ if type(error) is Exception and error.__cause__ else error
            raise Unreadable(one_line_reason(says_why)) from error
        orders = {
            str(feature.name): [str(value) for value in feature.nominal_values or []]
            for feature in data.features.values()
            if feature.data_type == "nominal"
        }
        hidden = about.hidden - {self.target}
        shown = table.loc[:, [column not in hidden for column in table.columns]]
        return build_dataset(name, self.facts, shown, self.target, orders)


@dataclass(frozen=True)
class _Description:
    """What is used of OpenML's description of a data set; `hidden` are columns that are not features."""

    name: str
    version: str
    format: str
    url: str
    parquet_url: str
    md5: str
    hidden: set[str]

    @classmethod
    def of(cls, path: Path) -> _Description:
        try:
            root = ElementTree.parse(path).getroot()
        except ElementTree.ParseError as error:
            raise Unreadable(f"{path.name} is not XML ({error})") from error

        def texts(key: str) -> list[str]:
            return [(element.text or "").strip() for element in root.iterfind(f"{{*}}{key}")]

        def text(key: str) -> str:
            return next(iter(texts(key)), "")

        # Each entry is a name, or several with commas between them.
        entries = [*texts("row_id_attribute"), *texts("ignore_attribute")]
        return cls(
            name=text("name"),
            version=text("version"),
            format=text("format"),
            url=text("url"),
            parquet_url=text("parquet_url"),
            md5=text("md5_checksum"),
            hidden={*entries, *(part.strip() for entry in entries for part in entry.split(","))},
        )


def _data_file(folder: Path) -> str | None:
    """Return the name of the file with the values, or None if the folder is not complete."""
    if not all((folder / name).is_file() for name in (_DESCRIPTION, _FEATURES)):
        return None
    return next((name for name in (f"dataset_{folder.name}.pq", _ARFF) if (folder / name).is_file()), None)


@contextlib.contextmanager
def _private_copy(folder: Path, data_file: str) -> Iterator[Path]:
    """Yield a temporary folder with the same files: the package writes pickles beside the files that it reads."""
    with tempfile.TemporaryDirectory(prefix="trimbench-openml-") as private:
        try:
            for name in (_DESCRIPTION, _FEATURES):
                shutil.copyfile(folder / name, Path(private) / name)
            (Path(private) / data_file).symlink_to((folder / data_file).resolve())
        except OSError as error:
            raise Unreadable(one_line_reason(error)) from error
        yield Path(private)


def _store(staged: Path, destination: Path, replace: bool) -> None:
    """Move a data set's folder to where it belongs, all at once.

    With `replace` it takes the place of a copy that could not be read. Otherwise a complete copy that is already there
    comes from another process that finished first, and stays.
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    if replace or (destination.is_dir() and _data_file(destination) is None):
        with contextlib.suppress(FileNotFoundError):
            destination.rename(staged.parent / "replaced")
    try:
        staged.rename(destination)
    except OSError:
        if _data_file(destination) is None:
            raise


def _openml() -> ModuleType:
    """Import the package, which creates folders in the user's home: where that cannot be written, in temporary ones."""
    try:
        import openml
    except OSError:
        with tempfile.TemporaryDirectory() as folder, _environment(XDG_CONFIG_HOME=folder, OPENML_CACHE_DIR=folder):
            import openml
    module: ModuleType = openml
    return module


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
