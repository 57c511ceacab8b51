"""The forms of densities in a file, and of how raw tables become the rows that they know."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.estimators.densities.coding import TableCoding
from trimbench.estimators.densities.gaussians import GaussianMixture
from trimbench.estimators.densities.margins import Margins
from trimbench.estimators.densities.neighbours import Neighbours
from trimbench.estimators.densities.products import ProductMixture
from trimbench.networks.formats.forms import (
    Either,
    Entries,
    Flag,
    Form,
    Many,
    Names,
    Number,
    Numbers,
    Optional,
    Scalars,
    Sizes,
    check_sums,
)
from trimbench.networks.values import names_text

# The types of numpy that a column of a data frame may have: truth values, numbers and objects.
_NUMPY_KINDS = "biufO"


def _margins(quantiles: Matrix, starts: tuple[NDArray[np.intp], ...], categorical: NDArray[np.bool_]) -> Margins:
    ends = [0, quantiles.shape[1]]
    if not all([*start[:1], *start[-1:]] == ends and (np.diff(start) > 0).all() for start in starts):
        raise ValueError(f"starts must ascend from 0 to {ends[1]}, the number of quantiles, for each feature")
    if (np.diff(quantiles, axis=1) < 0).any():
        raise ValueError("quantiles must ascend")
    return Margins(quantiles, starts, categorical)


def _products(margins: Margins, log_weights: Vector, tables: Matrix) -> ProductMixture:
    _check_mixture(margins, log_weights, tables)
    return ProductMixture.of(margins, log_weights, tables)


def _gaussian(
    margins: Margins, log_weights: Vector, means: Matrix, covariances: NDArray[np.float64], tables: Matrix
) -> GaussianMixture:
    _check_mixture(margins, log_weights, tables)
    if means.shape[1] != (~margins.categorical).sum():
        raise ValueError(f"means must be of the {(~margins.categorical).sum()} numbers, got {means.shape[1]}")
    np.linalg.cholesky(covariances)  # raises LinAlgError
    return GaussianMixture.of(margins, log_weights, means, covariances, tables)


def _check_mixture(margins: Margins, log_weights: Vector, tables: Matrix) -> None:
    if len(tables) != margins.offsets[-1] or not len(log_weights):
        raise ValueError(f"tables must have a row for each of the {margins.offsets[-1]} bins, got {len(tables)}")
    check_sums(np.exp(log_weights).sum(), "log_weights")
    check_sums(np.add.reduceat(tables, margins.offsets[:-1], axis=0), "tables")


_MARGINS = Entries(
    {
        "quantiles": Numbers("features quantiles"),
        "starts": Many(Numbers("*", 0, kind=np.intp), "features"),
        "categorical": Numbers("features", kind=bool),
    },
    _margins,
)
_MIXTURE: dict[str, Form] = {
    "margins": _MARGINS,
    "log_weights": Numbers("components", most=1e-6),
    "tables": Numbers("* components", 0.0, 1.0 + 1e-6),
}
DENSITY = Either(
    {
        "products": (ProductMixture, Entries(_MIXTURE, _products)),
        "gaussian": (
            GaussianMixture,
            Entries(
                {
                    **_MIXTURE,
                    "means": Numbers("components numbers"),
                    "covariances": Numbers("components numbers numbers"),
                },
                _gaussian,
            ),
        ),
        "neighbours": (
            Neighbours,
            Entries(
                {
                    "margins": _MARGINS,
                    "donors": Numbers("donors features"),
                    "bandwidth": Number(0.0, above=True),
                },
                Neighbours.of,
            ),
        ),
    }
)


class _ColumnType:
    """The type of a column of a data frame."""

    def written(self, value: Any) -> Any:
        """Return its name; a mapping for categories, and for pandas' text."""
        import pandas as pd

        if isinstance(value, pd.CategoricalDtype):
            categories = Scalars().written(value.categories.tolist())
            return {
                "categories": categories,
                "of": self.written(value.categories.dtype),
                "ordered": bool(value.ordered),
            }
        if isinstance(value, pd.StringDtype):
            return {"text": value.storage, "missing": "NA" if value.na_value is pd.NA else "nan"}
        if not _is_plain(value):
            raise TypeError(f"a file can hold columns of numbers, truth values, text and categories, not of {value}")
        return str(value)

    def read(self, content: Any, where: str, sizes: Sizes) -> Any:
        """Return the type."""
        import pandas as pd

        try:
            if isinstance(content, dict) and content.keys() == {"categories", "of", "ordered"}:
                categories = Scalars().read(content["categories"], where, sizes)
                of = pd.Index(categories, dtype=self.read(content["of"], where, sizes))
                return pd.CategoricalDtype(of, ordered=Flag().read(content["ordered"], where, sizes))
            if isinstance(content, dict) and content.keys() == {"text", "missing"}:
                return pd.StringDtype(content["text"], na_value=pd.NA if content["missing"] == "NA" else np.nan)
            with warnings.catch_warnings(action="error"):  # of names that are no longer used
                found = pd.api.types.pandas_dtype(content if isinstance(content, str) else "?")
        except (TypeError, ValueError, ImportError, Warning) as error:
            raise ValueError(f"{where} must be the type of a column, got {str(content)[:80]!r}: {error}") from error
        if not _is_plain(found) or str(found) != content:
            raise ValueError(f"{where} must be a type of numbers, truth values or objects, got {found}")
        return found


def _is_plain(kind: Any) -> bool:
    """Tell whether a type is that of numbers, truth values or objects, which its name says entirely."""
    import pandas as pd

    if isinstance(kind, np.dtype):
        return kind.kind in _NUMPY_KINDS
    is_number = pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind)
    return is_number and not isinstance(kind, pd.SparseDtype) and pd.api.types.pandas_dtype(str(kind)) == kind


def _columns_of(template: Any) -> dict[str, Any]:
    return {"labels": template.columns.tolist(), "types": template.dtypes.tolist()}


def _template(labels: list[Any], types: tuple[Any, ...]) -> Any:
    import pandas as pd

    columns = {place: pd.Series([], dtype=kind) for place, kind in enumerate(types)}
    return pd.DataFrame(columns).set_axis(pd.Index(labels), axis=1)


def _coding(names: tuple[str, ...], categories: tuple[list[Any] | None, ...], template: Any) -> TableCoding:
    for name, values in zip(names, categories, strict=True):
        if values is not None and len(set(values)) < len(values):
            raise ValueError(f"categories of column {name!r} must be distinct, got {names_text(values)}")
    arrays = tuple(None if values is None else _objects(values) for values in categories)
    return TableCoding(names, arrays, template)


def _objects(values: list[Any]) -> NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


CODING = Entries(
    {
        "names": Names("features"),
        "categories": Many(Optional(Scalars()), "features"),
        "template": Optional(
            Entries({"labels": Scalars("features"), "types": Many(_ColumnType(), "features")}, _template, _columns_of)
        ),
    },
    _coding,
)
