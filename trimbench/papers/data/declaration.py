"""Data sets as they are declared in YAML, checked and frozen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trimbench.papers.data.files import CacheOnlyFile, FileDeclaration
from trimbench.papers.data.mapping_reader import MappingReader

BUNDLED = ("breast_cancer", "digits")
SIMULATED = ("naive_bayes",)


@dataclass(frozen=True)
class OpenMLSource:
    """A data set on OpenML: its number, version and the column to predict."""

    id: int
    version: int
    target: str


@dataclass(frozen=True)
class BundledSource:
    """A data set that comes with scikit-learn."""

    dataset: str


@dataclass(frozen=True)
class CsvSource:
    """A table in a text file with one header line; exactly one of `path` and `file` is given."""

    target: str
    path: Path | None = None
    file: FileDeclaration | None = None


@dataclass(frozen=True)
class RSource:
    """A data file of R with a matrix and class labels; no hash is known, so its values' fingerprint vouches for it.

    Parameters
    ----------
    target : str
        Name that the class column gets.
    prefix : str
        The other columns get this name and a number from 1, whatever they are called in the file.
    labels : str
        What the class labels are called in the file.
    path, url : str
        Place of the R file under ``files/`` in a cache folder, and where it is downloaded from.
    table : CacheOnlyFile, optional
        The same table as text, used where a cache folder holds it.
    """

    target: str
    prefix: str
    labels: str
    path: str
    url: str
    table: CacheOnlyFile | None = None


@dataclass(frozen=True)
class SimulatedSource:
    """Binary features drawn from a random naive Bayes model.

    Parameters
    ----------
    model : str
    rows, features : int
    seed : int
    prior : float
        P(class = "1").
    """

    model: str
    rows: int
    features: int
    seed: int
    prior: float


Source = OpenMLSource | BundledSource | CsvSource | RSource | SimulatedSource


@dataclass(frozen=True)
class Facts:
    """What must hold for the loaded data; None (or no classes) means that nothing is known.

    Parameters
    ----------
    rows, features : int, optional
    classes : dict of str to int
        Number of rows of each class.
    sha256 : str, optional
        Fingerprint of the loaded values, see `trimbench.papers.data.fingerprint`.
    """

    rows: int | None = None
    features: int | None = None
    classes: dict[str, int] = field(default_factory=dict)
    sha256: str | None = None


@dataclass(frozen=True)
class DatasetDeclaration:
    """A named data set: where it comes from and what is known about it."""

    name: str
    source: Source
    facts: Facts


def declare_dataset(name: str, mapping: Mapping[str, Any], base: Path | None = None) -> DatasetDeclaration:
    """Check and freeze the declaration of a data set.

    Parameters
    ----------
    name : str
        Name of the data set, used in every message.
    mapping : mapping
        Parsed YAML: ``kind``, the keys of that kind, and optionally ``facts``.
    base : Path, optional
        Folder from which relative paths start, usually that of the YAML file; by default the current one.

    Returns
    -------
    DatasetDeclaration

    Raises
    ------
    DeclarationError
        A key is unknown, missing or of the wrong type. The message names the data set and the key.
    """
    reader = MappingReader.of(f"data set {name!r}", mapping)
    kind = reader.choice("kind", tuple(_KINDS))
    source = _KINDS[kind](reader, base)
    facts = _facts(reader.inner("facts")) if "facts" in mapping else Facts()
    return DatasetDeclaration(name=name, source=source, facts=facts)


def _openml(reader: MappingReader, base: Path | None) -> OpenMLSource:
    reader.expect(["kind", "id", "version", "target"], ["facts"])
    return OpenMLSource(id=reader.whole("id", 1), version=reader.whole("version", 1), target=reader.text("target"))


def _bundled(reader: MappingReader, base: Path | None) -> BundledSource:
    reader.expect(["kind", "dataset"], ["facts"])
    return BundledSource(dataset=reader.choice("dataset", BUNDLED))


def _csv(reader: MappingReader, base: Path | None) -> CsvSource:
    reader.expect(["kind", "target"], ["path", "file", "facts"])
    if ("path" in reader.mapping) == ("file" in reader.mapping):
        raise reader.complain(
            "give exactly one of `path` (a file of your own) and `file` (with path, url and sha256), "
            f"got {[key for key in reader.mapping if key in ('path', 'file')]!r}"
        )
    target = reader.text("target")
    if "file" in reader.mapping:
        return CsvSource(target=target, file=reader.file("file"))
    path = Path(reader.text("path")).expanduser()
    return CsvSource(target=target, path=(base or Path()) / path)


def _r(reader: MappingReader, base: Path | None) -> RSource:
    reader.expect(["kind", "target", "prefix", "labels", "file", "facts"], ["table"])
    if "sha256" not in reader.inner("facts").mapping:
        raise reader.complain(
            "`facts`: key `sha256` is missing: no hash of the R file is declared, so that the fingerprint of its "
            "values alone vouches for it; add it"
        )
    file = reader.inner("file")
    file.expect(["path", "url"])
    return RSource(
        target=reader.text("target"),
        prefix=reader.text("prefix"),
        labels=reader.text("labels"),
        path=file.cache_path("path"),
        url=file.url("url"),
        table=reader.cache_only_file("table") if "table" in reader.mapping else None,
    )


def _simulated(reader: MappingReader, base: Path | None) -> SimulatedSource:
    reader.expect(["kind", "model", "rows", "features", "seed", "prior"], ["facts"])
    return SimulatedSource(
        model=reader.choice("model", SIMULATED),
        rows=reader.whole("rows", 1),
        features=reader.whole("features", 1),
        seed=reader.whole("seed", 0),
        prior=reader.fraction("prior"),
    )


def _facts(reader: MappingReader) -> Facts:
    reader.expect([], ["rows", "features", "classes", "sha256"])
    return Facts(
        rows=reader.optional_whole("rows", 1),
        features=reader.optional_whole("features", 1),
        classes=reader.counts("classes") if "classes" in reader.mapping else {},
        sha256=reader.sha256("sha256") if "sha256" in reader.mapping else None,
    )


_KINDS: dict[str, Callable[[MappingReader, Path | None], Source]] = {
    "openml": _openml,
    "bundled": _bundled,
    "csv": _csv,
    "r": _r,
    "simulated": _simulated,
}
