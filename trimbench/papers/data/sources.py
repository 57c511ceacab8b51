"""From the declaration of a data set to its table, and of a network to its files."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import TYPE_CHECKING

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.dataset import Dataset, build_dataset
from trimbench.papers.data.declaration import (
    BundledSource,
    CsvSource,
    DatasetDeclaration,
    OpenMLSource,
    RSource,
    SimulatedSource,
)
from trimbench.papers.data.errors import DataUnavailable, DeclarationError
from trimbench.papers.data.files import FileDeclaration, fetch_file, find_file, is_in_cache
from trimbench.papers.data.network_declaration import NetworkDeclaration, existing
from trimbench.papers.data.openml_source import is_cached, load_openml
from trimbench.papers.data.r_source import load_r
from trimbench.papers.data.reachability import one_line_reason
from trimbench.papers.data.simulators import simulate_naive_bayes

if TYPE_CHECKING:
    import pandas as pd

Declaration = DatasetDeclaration | NetworkDeclaration

_SEPARATORS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')


def load_dataset(declaration: DatasetDeclaration, cache: Cache) -> Dataset:
    """Load a declared data set, downloading it first if need be, and check its facts.

    Parameters
    ----------
    declaration : DatasetDeclaration
    cache : Cache

    Returns
    -------
    Dataset

    Raises
    ------
    DataUnavailable
        The data is nowhere on this machine and could not be downloaded.
    DeclarationError
        The data has no complete column of the declared name, or is no table.
    FactsMismatch
        The data differs from the declared facts.
    """
    source = declaration.source
    if isinstance(source, OpenMLSource):
        return load_openml(declaration, source, cache)
    if isinstance(source, BundledSource):
        return build_dataset(declaration, _bundled_table(source), "target")
    if isinstance(source, SimulatedSource):
        return build_dataset(declaration, _simulated_table(source), "class")
    if isinstance(source, RSource):
        path = find_file(source.table, cache) if source.table is not None else None
        if path is None:
            return load_r(declaration, source, cache)
    else:
        path = _csv_path(declaration.name, source, cache)
    return build_dataset(declaration, _csv_table(declaration.name, source.target, path), source.target)


def network_paths(declaration: NetworkDeclaration, cache: Cache) -> dict[str, Path]:
    """Return the files of a declared network by their role, fetched where needed.

    Raises
    ------
    DataUnavailable
        When a file is neither cached nor to be had.
    """
    if declaration.path is not None:
        return {"network": existing(declaration.name, declaration.path)}
    return {role: fetch_file(file, cache) for role, file in declaration.files.items()}


def is_available(declaration: DatasetDeclaration | NetworkDeclaration | FileDeclaration, cache: Cache) -> bool:
    """Tell whether the data is on this machine, without downloading or verifying anything.

    Parameters
    ----------
    declaration : DatasetDeclaration, NetworkDeclaration or FileDeclaration
    cache : Cache

    Returns
    -------
    bool
    """
    if isinstance(declaration, FileDeclaration):
        return is_in_cache(declaration.path, cache)
    if isinstance(declaration, NetworkDeclaration):
        own = declaration.path is None or declaration.path.is_file()
        return own and all(is_available(file, cache) for file in declaration.files.values())
    source = declaration.source
    if isinstance(source, OpenMLSource):
        return is_cached(source, cache)
    if isinstance(source, RSource):
        paths = [source.path] if source.table is None else [source.path, source.table.path]
        return any(is_in_cache(path, cache) for path in paths)
    if isinstance(source, CsvSource):
        if source.file is not None:
            return is_available(source.file, cache)
        return source.path is not None and source.path.is_file()
    return True


def _bundled_table(source: BundledSource) -> pd.DataFrame:
    import pandas as pd
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{source.dataset}")(as_frame=True)
    table: pd.DataFrame = bunch.data
    names = pd.Index([str(name) for name in bunch.target_names])
    return table.assign(target=pd.Categorical.from_codes(bunch.target.to_numpy(dtype=int), names))


def _simulated_table(source: SimulatedSource) -> pd.DataFrame:
    import pandas as pd

    drawn = simulate_naive_bayes(source.rows, source.features, source.seed, source.prior)
    names = [f"x{number}" for number in range(1, source.features + 1)]
    return pd.DataFrame(drawn.features, columns=names).assign(**{"class": drawn.classes})


def _csv_path(name: str, source: CsvSource, cache: Cache) -> Path:
    if source.file is not None:
        return fetch_file(source.file, cache)
    if source.path is None or not source.path.is_file():
        raise DataUnavailable(
            f"data set {name!r}: `path` must be an existing file, got {str(source.path)!r}; correct it in "
            "the data set's YAML (relative paths start at the folder of that YAML)"
        )
    return source.path


def _csv_table(name: str, target: str, path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        # The class labels stay as they are written; "?" is how many UCI files write a missing value.
        table = pd.read_csv(
            path,
            sep=_separator(path),
            dtype={target: str},
            na_values=["?"],
            skipinitialspace=True,
            encoding="utf-8-sig",
            low_memory=False,
        )
    except (ValueError, OSError, EOFError) as error:  # parser errors and wrong encodings are ValueErrors
        raise DeclarationError(
            f"data set {name!r}: {path} must be a text table in UTF-8 with a header line and one of the "
            f"separators , ; tab |, plain or gzip; reading it failed: {one_line_reason(error)}"
        ) from error
    if not isinstance(table.index, pd.RangeIndex):
        raise DeclarationError(
            f"data set {name!r}: {path} must have as many names in its header line as values in each row, "
            f"got {table.shape[1]} names and more values; add the missing names"
        )
    return table


def _separator(path: Path) -> str:
    """Return the separator that the header line has most of, outside quotes."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig") as stream:
        header = _QUOTED.sub("", stream.readline())
    return max(_SEPARATORS, key=header.count)
