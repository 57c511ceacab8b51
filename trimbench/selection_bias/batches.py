"""What the correction for selection learns from rows in batches: counts, and sums of each class, with exact medians."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.batches import Batches
from trimbench.networks.sums import ColumnSums
from trimbench.networks.values import is_constant, plain_column
from trimbench.selection_bias.binary import ClassCounts
from trimbench.selection_bias.categorical import MAX_CATEGORIES, Categories, category_counts
from trimbench.selection_bias.features import Binariser, checked_table, known_cuts
from trimbench.selection_bias.gaussian import GaussianMoments

# Rows of a part, whose classes are counted together.
_PART_ROWS = 2**13
_MOST_CLASSES = 1000
# Bits of a number that are looked at in one pass over the rows.
_DIGIT = 11


@dataclass(frozen=True, eq=False)
class LabelledBatches:
    """Rows in batches, of which a column has the classes 0, 1, ...

    Attributes
    ----------
    batches : Batches
    target : str
    allow_missing : bool
        Whether values may be missing.
    class_sizes : list of int
        After a pass, the cases of each class.
    names : list of str
        After a pass, the names of the features.
    """

    batches: Batches
    target: str
    allow_missing: bool = True
    class_sizes: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        """Yield values and classes; ValueError for what is not allowed."""
        sizes = np.zeros(_MOST_CLASSES, dtype=np.int64)
        for values, labels in self.batches.labelled_numbers(self.target, _PART_ROWS, self.names):
            checked_table("X", values, allow_missing=self.allow_missing)
            classes = np.asarray(plain_column(labels))
            is_number = classes.dtype.kind in "biuf"
            if not is_number or not ((classes >= 0) & (classes == np.floor(classes)) & (classes < _MOST_CLASSES)).all():
                raise ValueError(
                    f"y must hold only 0, 1, 2, ..., got other values in column {self.target!r}; encode the classes"
                )
            codes = classes.astype(np.int64)
            sizes += np.bincount(codes, minlength=_MOST_CLASSES)
            yield values, codes
        self.class_sizes[:] = np.trim_zeros(sizes, "b").tolist()


def class_counts(rows: LabelledBatches, cuts: NDArray[np.float64] | None) -> tuple[Binariser, ClassCounts]:
    """Return how features become zeros and ones, and their counts: in one pass, if they are that already.

    Features with more than two values, without a cut of their own, are cut at their medians, found in six more passes.
    """
    if cuts is None:
        kept, plain = None, None
        for values, classes in rows:
            kept = representatives(values if kept is None else np.vstack([kept, values]))
            one = _counted(values, classes, Binariser(values.shape[1], None))
            plain = one if plain is None else plain + one
        assert kept is not None
        assert plain is not None
        known = known_cuts(kept)
        if known is None:
            return Binariser(kept.shape[1], None), plain
        cuts = known
    binariser = Binariser(len(cuts), medians(rows, cuts))
    counts = None
    for values, classes in rows:
        one = _counted(values, classes, binariser)
        counts = one if counts is None else counts + one
    assert counts is not None
    return binariser, counts


def _counted(values: NDArray[np.float64], classes: NDArray[np.int64], binariser: Binariser) -> ClassCounts:
    return ClassCounts.of(values, classes, int(classes.max()) + 1, binariser, np.arange(len(classes)))


def representatives(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return three rows with the least and the greatest value of each column, and one between them if there is one."""
    with np.errstate(invalid="ignore"):
        low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
        between = (values > low) & (values < high)
        third = np.where(between.any(axis=0), values[between.argmax(axis=0), np.arange(values.shape[1])], np.nan)
    return np.stack([low, high, third])


def medians(rows: LabelledBatches, cuts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cuts, with the exact median of the observed values in place of NaN; 0 for a column without any."""
    found = cuts.copy()
    columns = np.flatnonzero(np.isnan(cuts))
    if not len(columns):
        return found
    numbers = np.zeros(len(columns), dtype=np.int64)
    for values, _ in rows:
        numbers += (~np.isnan(values[:, columns])).sum(axis=0)
    ranks = np.stack([(numbers - 1) // 2, numbers // 2])
    low, high = (_ranked(rows, columns, rank) for rank in ranks)
    found[columns] = np.where(numbers > 0, np.mean([low, high], axis=0), 0.0)
    return found


def _ranked(rows: LabelledBatches, columns: NDArray[np.intp], ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the value of a rank in each column: its leading bits first, then further ones in each pass."""
    prefix, ranks = np.zeros(len(columns), dtype=np.uint64), ranks.copy()
    for end in range(64, 0, -_DIGIT):
        shift = max(0, end - _DIGIT)
        width = 1 << (end - shift)
        counts = np.zeros((len(columns), width), dtype=np.int64)
        for values, _ in rows:
            for place, column in enumerate(columns):
                keys = _keys(values[:, column])
                if end < 64:
                    keys = keys[keys >> np.uint64(end) == prefix[place]]
                digits = (keys >> np.uint64(shift)) & np.uint64(width - 1)
                counts[place] += np.bincount(digits.astype(np.int64), minlength=width)
        below = np.cumsum(counts, axis=1)
        chosen = np.minimum((below <= ranks[:, None]).sum(axis=1), width - 1)
        ranks -= np.where(chosen > 0, below[np.arange(len(columns)), chosen - 1], 0)
        prefix = (prefix << np.uint64(end - shift)) | chosen.astype(np.uint64)
    negative = prefix >> np.uint64(63) == 0
    return np.where(negative, ~prefix, prefix ^ _SIGN).view(np.float64)


_SIGN = np.uint64(1 << 63)


def _keys(numbers: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return whole numbers in the order of the numbers that are not missing."""
    bits = np.ascontiguousarray(numbers[~np.isnan(numbers)]).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def sums_of_categories(rows: LabelledBatches, n_categories: Any) -> tuple[Categories, NDArray[np.int64]]:
    """Return the categories of features and their counts, in one pass; see `category_counts`."""
    total: NDArray[np.int64] | int = 0
    for values, classes in rows:
        numbers = np.full(values.shape[1], MAX_CATEGORIES)
        if classes.max() > 1:
            raise ValueError("y must hold only 0 and 1 for categorical features, got a larger one; merge classes")
        if n_categories is None and values.max() >= MAX_CATEGORIES:
            Categories.of(values, None)  # which says so
        coding = Categories(numbers) if n_categories is None else Categories.of(values, n_categories)
        total = total + category_counts(coding.codes(values), classes, numbers)
    assert not isinstance(total, int)
    if n_categories is None:
        largest = MAX_CATEGORIES - 1 - total.sum(axis=0)[::-1].astype(bool).argmax(axis=0)
        coding = Categories(np.maximum(largest, 1) + 1)
    return coding, total[:, : int(coding.numbers.max())]


def sums_of_classes(rows: LabelledBatches) -> GaussianMoments:
    """Return the moments of each class, in one pass; see `trimbench.networks.sums.ColumnSums`."""
    sums: dict[int, ColumnSums] = {}
    for values, classes in rows:
        for code in np.unique(classes).tolist():
            one = ColumnSums.of(list(np.ascontiguousarray(values[classes == code].T)))
            sums[code] = sums[code] + one if code in sums else one
    nothing = ColumnSums.of([np.empty(0)] * len(one.low))
    return moments_of([sums.get(code, nothing) for code in range(max(sums) + 1)])


def moments_of(sums: list[ColumnSums]) -> GaussianMoments:
    """Return the moments of features, from the sums of each class."""
    low, high = (np.stack([getattr(one, name) for one in sums]) for name in ("low", "high"))
    low, high = low.min(axis=0), high.max(axis=0)
    low, high = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)
    scales = np.where(is_constant(low, high), 0.0, 0.5 * high - 0.5 * low)
    centres = 0.5 * low + 0.5 * high
    sizes = np.stack([one.counts for one in sums]).astype(np.int64)
    divisors = np.where(scales > 0, scales, np.inf)
    means = np.stack([np.where(one.counts > 0, one.means_from(centres), 0.0) / divisors for one in sums])
    within = np.sum([(np.ldexp(np.sqrt(one.squares), one.exponents) / divisors) ** 2 for one in sums], axis=0)
    overall = (sizes * means).sum(axis=0) / np.maximum(sizes.sum(axis=0), 1)
    between = (sizes * (means - overall) ** 2).sum(axis=0)
    return GaussianMoments(sizes, means, within, between, centres, scales)
