"""Which features are missing in which row, and which rows are for training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Mechanism = Literal["mcar", "rates", "block", "depends_on_features", "depends_on_value"]
Rounding = Literal["down", "nearest", "fifths"]
Unit = Literal["feature", "column"]
DEPENDENT: tuple[Mechanism, ...] = ("depends_on_features", "depends_on_value")
# The odds that a feature with the highest value goes missing next, as a multiple of those with the lowest value.
_HIGHEST_TO_LOWEST = 4.0
_ALWAYS_OBSERVED = 0.1


@dataclass(frozen=True)
class Missingness:
    """How features go missing.

    Attributes
    ----------
    mechanism : {"mcar", "rates", "block", "depends_on_features", "depends_on_value"}
        ``"mcar"``: each row loses exactly as many features as the fraction says, chosen uniformly. ``"rates"``: each
        feature is missing independently, at its own rate. ``"block"``: each row loses neighbouring features: a run in
        the order of the columns, or a rectangle of an image.

        The last two also take exactly as many features from each row, one after the other, but at unequal odds: those
        of a high value are up to four times those of a low one, by ranks within the column. ``"depends_on_value"``: it
        is the feature's own value that counts (missing not at random). ``"depends_on_features"``: a tenth of the
        features, at least one, is drawn that no row loses, and for each other feature one of them counts, with high
        and low exchanged for about half (missing at random, in the statistical sense).
    rounding : {"down", "nearest", "fifths"}
        Number of features from a fraction: 20 % of 13 features are 2 or 3. ``"fifths"`` counts in steps of a fifth of
        the features, itself rounded down: 80 % of 13 features are 4 times 2; it accepts only multiples of a fifth.
    rates : mapping from feature to rate
        For ``"rates"``; the fraction holds for all other features.
    image : sequence of two ints, optional
        Height and width where the features are the pixels of an image.
    unit : {"feature", "column"}
        What goes missing by `draw_columns`: a feature with all its columns, or a single column of an encoded table.
    displaced : mapping from feature to column
        The first of the columns that go missing by `draw_columns` in place of the feature's own, as many as it has.
    """

    mechanism: Mechanism = "mcar"
    rounding: Rounding = "down"
    rates: Mapping[str, float] = field(default_factory=dict)
    image: Sequence[int] | None = None
    unit: Unit = "feature"
    displaced: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for feature, rate in self.rates.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"rates must be between 0 and 1, got {rate!r} for {feature!r}")
        if self.image is not None and (len(self.image) != 2 or min(self.image) < 1):
            raise ValueError(f"image must be height and width, got {list(self.image)!r}")

    def check_fraction(self, fraction: float) -> None:
        """Raise an error unless the rounding can turn the fraction into a number of features."""
        check_fraction(fraction)
        if self.rounding == "fifths" and self.mechanism != "rates" and round(5 * fraction % 1, 9) not in (0, 1):
            raise ValueError(
                f"missing must be multiples of 0.2 with rounding='fifths', got {fraction!r}; use rounding='down' or "
                "rounding='nearest'"
            )

    def n_missing(self, n_features: int, fraction: float) -> int:
        """Return how many features each row loses, except with ``"rates"``; raises as `check_fraction`.

        >>> [Missingness(rounding=rounding).n_missing(13, 0.8) for rounding in ("down", "nearest", "fifths")]
        [10, 10, 8]
        """
        self.check_fraction(fraction)
        # 0.7 * 10 is 7.000000000000001 and 0.29 * 100 is 28.999999999999996: such errors must not change the number.
        exact = round(fraction * n_features, 9)
        if self.rounding == "fifths":
            return round(5 * fraction) * (n_features // 5)
        return math.floor(exact) if self.rounding == "down" else math.floor(exact + 0.5)

    def draw(
        self,
        n_rows: int,
        features: Sequence[str],
        fraction: float,
        rng: np.random.Generator,
        values: NDArray[Any] | None = None,
    ) -> NDArray[np.bool_]:
        """Draw which features are missing: an array of shape (n_rows, n_features), True where one is.

        `values` has the numbers of these rows, shape (n_rows, n_features), and the codes of categories. They are needed
        where what goes missing depends on them. Rows that share a mechanism must be drawn together.
        """
        n_features = len(features)
        n_missing = self.n_missing(n_features, fraction)
        if self.mechanism in DEPENDENT:
            return self._dependent(self._checked(values, n_rows, n_features), n_missing, rng)
        if self.mechanism == "rates":
            return rng.random((n_rows, n_features)) < self._rates(features, fraction)
        if self.mechanism == "block":
            return self._blocks(n_rows, n_features, n_missing, rng)
        return exactly_missing(n_rows, n_features, n_missing, rng)

    @property
    def by_column(self) -> bool:
        """Whether columns may go missing that are not all those of some features."""
        return self.unit == "column" or bool(self.displaced)

    def draw_columns(
        self,
        n_rows: int,
        features: Sequence[str],
        columns: Sequence[Sequence[int]],
        fraction: float,
        rng: np.random.Generator,
    ) -> NDArray[np.bool_]:
        """Draw which columns of an encoded table are missing: an array of shape (n_rows, n_columns), True where one is.

        `columns` has those of each feature. Raises ValueError if `displaced` has another name than the features', or
        columns that the table does not have.
        """
        n_columns = sum(map(len, columns))
        if self.unit == "column":
            return self.draw(n_rows, [str(column) for column in range(n_columns)], fraction, rng)
        hidden = np.zeros((len(features), n_columns), dtype=np.uint8)
        for place, (feature, own) in enumerate(zip(features, columns, strict=True)):
            first = self.displaced.get(feature)
            hidden[place, own if first is None else slice(first, first + len(own))] = 1
        self._check_displaced(features, columns, n_columns)
        return np.asarray(self.draw(n_rows, features, fraction, rng).astype(np.uint8) @ hidden > 0)

    def _check_displaced(self, features: Sequence[str], columns: Sequence[Sequence[int]], n_columns: int) -> None:
        widths = dict(zip(features, map(len, columns), strict=True))
        for feature, first in self.displaced.items():
            if feature not in widths:
                raise ValueError(f"displaced must name features, got {feature!r}; they are {list(features)[:20]}")
            if not 0 <= first <= n_columns - widths[feature]:
                raise ValueError(
                    f"displaced must be columns from 0 to {n_columns - widths[feature]}, got {first} for {feature!r}, "
                    f"which has {widths[feature]} of the {n_columns} columns"
                )

    def _checked(self, values: NDArray[Any] | None, n_rows: int, n_features: int) -> NDArray[Any]:
        if values is None or values.shape != (n_rows, n_features):
            got = "none" if values is None else f"shape {values.shape}"
            raise ValueError(
                f"values must be one number for each of the {n_rows} rows and {n_features} features with "
                f"mechanism={self.mechanism!r}, got {got}; use another mechanism where single columns go missing"
            )
        return values

    def _dependent(self, values: NDArray[Any], n_missing: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw `n_missing` features of each row without replacement, at odds that depend on the values."""
        heights = _ranks(values)
        if self.mechanism == "depends_on_features":
            heights = _by_others(heights, n_missing, rng)
        # The largest sums of logarithms of odds and Gumbel noise are a draw without replacement.
        keys = math.log(_HIGHEST_TO_LOWEST) * heights + rng.gumbel(size=values.shape)
        return _largest(keys, n_missing)

    def _rates(self, features: Sequence[str], fraction: float) -> NDArray[np.float64]:
        unknown = sorted(set(self.rates) - set(features))
        if unknown:
            raise ValueError(f"rates must name features, got {unknown}; the features are {list(features)[:20]}")
        return np.array([self.rates.get(feature, fraction) for feature in features])

    def _blocks(self, n_rows: int, n_features: int, n_missing: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        if self.image is None:
            first = rng.integers(0, n_features - n_missing + 1, size=(n_rows, 1))
            places = np.arange(n_features)
            return np.asarray((places >= first) & (places < first + n_missing))
        height, width = self.image
        if height * width != n_features:
            raise ValueError(f"image must have as many pixels as there are features ({n_features}), got {self.image}")
        # The most nearly square rectangle of about this many pixels, in the shape of the image.
        rows = min(height, max(1, round(math.sqrt(n_missing * height / width)))) if n_missing else 0
        columns = min(width, round(n_missing / rows)) if rows else 0
        top = rng.integers(0, height - rows + 1, size=(n_rows, 1))
        left = rng.integers(0, width - columns + 1, size=(n_rows, 1))
        down, across = np.arange(height), np.arange(width)
        in_rows = (down >= top) & (down < top + rows)
        in_columns = (across >= left) & (across < left + columns)
        return (in_rows[:, :, None] & in_columns[:, None, :]).reshape(n_rows, n_features)


def exactly_missing(n_rows: int, n_features: int, n_missing: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw for each row `n_missing` of the features, uniformly; True where one is missing."""
    if not 0 <= n_missing <= n_features:
        raise ValueError(f"n_missing must be between 0 and {n_features}, got {n_missing}")
    mask = np.zeros((n_rows, n_features), dtype=bool)
    if n_missing in (0, n_features):
        mask[:] = n_missing == n_features
        return mask
    keys = rng.random((n_rows, n_features), dtype=np.float32)
    chosen = np.argpartition(keys, n_missing - 1, axis=1)[:, :n_missing]
    np.put_along_axis(mask, chosen, True, axis=1)
    return mask


def _largest(keys: NDArray[np.float64], n: int) -> NDArray[np.bool_]:
    """Mark the `n` largest entries of each row."""
    mask = np.zeros(keys.shape, dtype=bool)
    np.put_along_axis(mask, np.argsort(-keys, axis=1)[:, :n], True, axis=1)
    return mask


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the ranks of values within their columns, from 0 for the lowest to 1 for the highest; ties share one."""
    from scipy.stats import rankdata

    ranks = rankdata(values, axis=0)
    lowest, highest = ranks.min(axis=0), ranks.max(axis=0)
    return np.asarray((ranks - lowest) / np.where(highest > lowest, highest - lowest, 1.0))


def _by_others(heights: NDArray[np.float64], n_missing: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return what decides for each feature: the height of an observed one, upside down for about half of them."""
    n_features = heights.shape[1]
    observed = rng.permutation(n_features)[: max(1, int(_ALWAYS_OBSERVED * n_features))]
    if n_missing > n_features - len(observed):
        raise ValueError(
            f"missing must leave at least {len(observed)} of {n_features} features with "
            f"mechanism='depends_on_features', got {n_missing} missing ones; use smaller fractions"
        )
    decisive = heights[:, rng.choice(observed, size=n_features)]
    upside_down = rng.random(n_features) < 0.5
    found = np.where(upside_down, 1.0 - decisive, decisive)
    found[:, observed] = -np.inf
    return found


def check_fraction(fraction: float, name: str = "missing") -> None:
    """Raise an error unless a fraction of missing features is between 0 and 1; `name` is that of the setting."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"{name} must be fractions between 0 and 1, got {fraction!r}; 20 % is 0.2")


# Seeded splits into training and test rows.


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
