"""Seeded splits into training and test rows."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def split_rows(
    n_rows: int, test_fraction: float, seed: int, stratify: ArrayLike | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split the rows 0, ..., n_rows - 1 into a training and a test part.

    The test part has ``round(n_rows * test_fraction)`` rows; each of the labels `stratify` gets its share of them, to
    within one row. Row numbers are in increasing order.
    """
    if n_rows < 2:
        raise ValueError(f"`n_rows` must be at least 2, got {n_rows!r}")
    if not 0 < test_fraction < 1:
        raise ValueError(f"`test_fraction` must be between 0 and 1 (both excluded), got {test_fraction!r}")
    if seed < 0:
        raise ValueError(f"`seed` must not be negative, got {seed!r}")
    n_test = round(n_rows * test_fraction)
    if not 0 < n_test < n_rows:
        raise ValueError(
            f"`test_fraction` must leave rows on both sides: {test_fraction!r} of {n_rows} rows is {n_test}; "
            f"use a value between {1 / n_rows:.3g} and {1 - 1 / n_rows:.3g}"
        )
    rng = np.random.default_rng(seed)
    is_test = np.zeros(n_rows, dtype=bool)
    if stratify is None:
        is_test[rng.permutation(n_rows)[:n_test]] = True
    else:
        groups = _group_numbers(stratify, n_rows)
        for group, quota in enumerate(_quotas(np.bincount(groups), n_test)):
            is_test[rng.permutation(np.flatnonzero(groups == group))[:quota]] = True
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def _group_numbers(labels: ArrayLike, n_rows: int) -> NDArray[np.int64]:
    values = np.asarray(labels, dtype=object)
    if values.shape != (n_rows,):
        raise ValueError(f"`stratify` must have one label for each of the {n_rows} rows, got shape {values.shape}")
    missing = sum(value is None or value != value for value in values)  # NaN differs from itself
    if missing:
        raise ValueError(f"`stratify` must not have missing labels, got {missing}; remove these rows first")
    return np.unique(values.astype(str), return_inverse=True)[1].astype(np.int64)


def _quotas(sizes: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Share out `total` in proportion to `sizes`; the largest remainders are rounded up."""
    shares = sizes * total
    quotas: NDArray[np.int64] = shares // sizes.sum()
    remainders = shares % sizes.sum()
    left = total - int(quotas.sum())
    quotas[np.argsort(-remainders, kind="stable")[:left]] += 1
    return quotas
