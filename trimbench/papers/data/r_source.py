"""Data files of R, trusted only by the fingerprint of the values that are read from them."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.dataset import Dataset, build_dataset
from trimbench.papers.data.declaration import DatasetDeclaration, RSource
from trimbench.papers.data.errors import DeclarationError, FactsMismatch
from trimbench.papers.data.files import cached_path, download
from trimbench.papers.data.reachability import one_line_reason

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)


class _Unreadable(ValueError):  # noqa: N818 - never leaves this module
    """The file holds no table of the declared layout."""


def load_r(declaration: DatasetDeclaration, source: RSource, cache: Cache) -> Dataset:
    """Read the R file from the cache, or download it, check its values, and only then add it to the cache.

    Parameters
    ----------
    declaration : DatasetDeclaration
        With the fingerprint of the values.
    source : RSource
        The source of `declaration`.
    cache : Cache

    Returns
    -------
    Dataset

    Raises
    ------
    DataUnavailable
        No folder holds a good copy, and the download failed, is not allowed, or is no R file of that layout.
    FactsMismatch
        The download holds other values. It is not kept.
    """
    for place in cache.places:
        path = cached_path(source.path, place)
        if not path.is_file():
            continue
        try:
            return _build(declaration, source, path)
        except (_Unreadable, FactsMismatch) as error:
            _log.warning("skipping %s: %s", path, error)

    def accept(partial: Path) -> Dataset:
        try:
            return _build(declaration, source, partial)
        except FactsMismatch as error:
            raise FactsMismatch(f"{error}; the download from {source.url} was not kept") from error

    return download(f"data set {declaration.name!r}", source.path, source.url, cache, accept)


def _build(declaration: DatasetDeclaration, source: RSource, path: Path) -> Dataset:
    try:
        return build_dataset(declaration, _table(_read(path), source), source.target)
    except DeclarationError as error:  # here the file is at fault, not the declaration
        raise _Unreadable(str(error)) from error


def _read(path: Path) -> dict[str, Any]:
    """Return the objects of a file by name."""
    import rdata

    try:
        with warnings.catch_warnings():
            # It warns of classes that it does not know, whose values it reads, and of what it then cannot read.
            warnings.simplefilter("ignore")
            # Files of older versions of R do not say how their texts are encoded.
            return dict(rdata.read_rda(path, default_encoding="utf-8"))
    except Exception as error:  # the parser fails in many ways on damaged files
        raise _Unreadable(f"the file is no intact data file of R ({one_line_reason(error)})") from error


def _table(objects: dict[str, Any], source: RSource) -> pd.DataFrame:
    """Bring a matrix and labels, or a data frame with a column of labels, to the declared columns."""
    import pandas as pd

    members = _members(objects, source.labels)
    labels = np.asarray(members.pop(source.labels)).ravel()
    matrix = next((value for value in members.values() if np.ndim(value) == 2), None)
    columns = [np.asarray(value) for value in (members.values() if matrix is None else np.asarray(matrix).T)]
    if not columns or any(column.shape != labels.shape for column in columns):
        raise _Unreadable(f"the file has {len(labels)} labels and no features with as many rows")
    try:
        numbers = np.column_stack(columns).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise _Unreadable(f"the features in the file are not all numbers ({one_line_reason(error)})") from error
    names = [f"{source.prefix}{number}" for number in range(1, len(columns) + 1)]
    return pd.DataFrame(numbers, columns=names).assign(**{source.target: labels})


def _members(objects: dict[str, Any], labels: str) -> dict[str, Any]:
    """Return the parts of the list or data frame that has the labels, or all objects if they are one of them."""
    import pandas as pd

    for candidate in (objects, *objects.values()):
        if isinstance(candidate, Mapping | pd.DataFrame) and labels in candidate:
            return {str(name): candidate[name] for name in candidate}
    raise _Unreadable(f"the file has no {labels!r} in a list or data frame; it has {', '.join(objects) or 'nothing'}")
