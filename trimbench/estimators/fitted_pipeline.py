"""Fitted classifiers, or pipelines that end in one, as classifiers of columns that a conformant model can have."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from trimbench.conformant.layout import FeatureLayout
from trimbench.estimators.columns import one_hot
from trimbench.estimators.pipeline_steps import split_pipeline, transformed_by
from trimbench.estimators.raw_values import Kind, RawValues, check_codes, complete_values
from trimbench.networks.values import column_numbers, places_among

if TYPE_CHECKING:
    import pandas as pd

# Steps may work in single precision.
_SAME = 1e-5


# Parameters without a meaning if the estimator has columns of its own, and the values that they may have then.
_LEFT_OUT = {"categorical_features": (None, "from_dtype"), "numeric": ("gaussian",), "class_weight": (None,)}


def check_left_out(owner: Any) -> None:
    """Raise ValueError if parameters are given that a fitted estimator rules out."""
    for name, allowed in _LEFT_OUT.items():
        value = getattr(owner, name)
        if not (value is None or isinstance(value, str)) or value not in allowed:
            raise ValueError(
                f"{name} must be left out with estimator, which is fitted and has columns of its own, got "
                f"{str(value)[:80]}"
            )


@dataclass(frozen=True, eq=False)
class FittedPipeline:
    """A fitted classifier, and how raw columns become columns of a conformant model.

    What each raw column can become is read from the steps: a column of categories, or a number that is cut, becomes one
    column for each value that the steps tell apart (one binary column for two values in one column of the classifier),
    any other number one column.

    Attributes
    ----------
    classifier : object
        The last step.
    steps : object or None
        The fitted steps before it.
    takes_frames : bool
        Whether they were fitted on a data frame.
    known : dict from name to value
        A value of each raw column, which the steps get in place of a missing one.
    values : RawValues
        Of the raw columns.
    columns : tuple of EncodedColumn
        One for each raw column that tells rows apart.
    constants : ndarray of shape (n_columns,)
        The columns of the classifier that are the same for all complete rows; 0 elsewhere.
    """

    classifier: Any
    steps: Any
    takes_frames: bool
    known: dict[str, Any]
    values: RawValues
    columns: tuple[EncodedColumn, ...]
    constants: NDArray[np.float64]

    @classmethod
    def of(cls, estimator: Any, frame: pd.DataFrame) -> FittedPipeline:
        """Read from the steps how they make their columns.

        Raises ValueError if the estimator is not fitted to columns like these, or a step makes columns of a kind that
        a conformant model cannot have, or does not say which.
        """
        steps, classifier = split_pipeline(estimator)
        takes_frames = hasattr(classifier if steps is None else steps, "feature_names_in_")
        known = {str(name): frame[name].dropna().iloc[0] for name in frame.columns}
        values, made = complete_values(steps, frame, takes_frames, known)
        n_expected, n_stated = classifier.coef_.shape[-1], len(values.sources)
        if not n_expected == n_stated == made.shape[1]:
            n_other = n_stated if n_stated != n_expected else made.shape[1]
            raise ValueError(f"X must have the columns that estimator was fitted to, {n_expected}, got {n_other}")
        if steps is not None:
            check_codes(getattr(steps, "estimator", None), values, made)
        columns, constants = [], np.where(values.sources < 0, made[0], 0.0)
        for source, kind in enumerate(values.kinds):
            (places,) = np.nonzero(values.sources == source)
            of_values = made[: len(values.examples[source]), places]
            if kind == "number" and len(places) > 1:
                raise ValueError(
                    f"estimator must make one column of column {values.rules[source].name[:60]!r}, which has numbers "
                    f"that are not cut, got {len(places)}; leave all but one out, or cut it with KBinsDiscretizer"
                )
            column = EncodedColumn.of(source, kind, places, of_values)
            if kind == "number" or len(column.of_values) > 1:
                columns.append(column)
            else:
                constants[places] = of_values[0]
        if not columns:
            raise ValueError("estimator must tell rows apart, got one for which no column of X has two values")
        found = cls(classifier, steps, takes_frames, known, values, tuple(columns), constants)
        found.encode(frame)
        return found

    @cached_property
    def layout(self) -> FeatureLayout:
        """Of the encoded columns."""
        starts = self._starts
        groups = [
            tuple(range(start, start + column.width))
            for start, column in zip(starts, self.columns, strict=True)
            if column.width > 1 or column.is_one_hot
        ]
        real = [start for start, column in zip(starts, self.columns, strict=True) if column.kind == "number"]
        return FeatureLayout(sum(column.width for column in self.columns), tuple(groups), tuple(real))

    @cached_property
    def sources(self) -> NDArray[np.intp]:
        """The raw column of each encoded one."""
        return np.array([column.source for column in self.columns for _ in range(column.width)], dtype=np.intp)

    @property
    def zeros_and_ones(self) -> NDArray[np.intp]:
        """The encoded columns of raw zeros and ones."""
        return np.flatnonzero([column.kind == "binary" for column in self.columns for _ in range(column.width)])

    @property
    def _starts(self) -> list[int]:
        return list(itertools.accumulate((column.width for column in self.columns[:-1]), initial=0))

    @property
    def weights(self) -> EncodedWeights:
        """The classifier in terms of the encoded columns."""
        shift = self.constants.copy()
        rows, places, entries = [], [], []
        for start, column in zip(self._starts, self.columns, strict=True):
            base, slopes = column.line
            shift[column.places] += base
            at, place = np.nonzero(slopes)
            rows.append(start + at)
            places.append(column.places[place])
            entries.append(slopes[at, place])
        shape = (self.layout.n_columns, len(shift))
        pairs = (np.concatenate(rows), np.concatenate(places))
        return EncodedWeights(self.classifier, sparse.csr_array((np.concatenate(entries), pairs), shape), shift)

    def classes_with(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the classes of the classifier; ValueError if there are others among the labels."""
        classes = np.asarray(self.classifier.classes_)
        unknown = [label for label in labels.tolist() if label not in classes.tolist()]
        if unknown:
            raise ValueError(f"y must have the classes of estimator, {classes.tolist()}, got {unknown[0]!r}")
        return classes

    def output_names(self, names: list[str]) -> NDArray[Any]:
        """Return the names of the encoded columns, for raw columns of these names.

        They are those that the steps give, where a column is one of the classifier's.
        """
        theirs: Any = names
        if self.steps is not None:
            try:
                theirs = self.steps.get_feature_names_out(names)
            except AttributeError:  # a step does not know them
                theirs = None
        encoded: list[str] = []
        for column in self.columns:
            name, categories = names[column.source], self.values.rules[column.source].categories
            if column.keeps_columns and theirs is not None:
                encoded += [str(theirs[place]) for place in column.places]
            elif column.width == 1:
                encoded.append(name)
            else:
                encoded += [f"{name}_{categories[place]}" for place in column.examples]
        return np.array(encoded, dtype=object)

    def encode(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return the encoded columns, NaN where the raw column is missing, or has a category that its encoder ignores.

        Raises ValueError if a column has a value of which the steps make something else than they say.
        """
        missing = frame.isna().to_numpy()
        made = self.transformed(frame)
        encoded = np.empty((len(frame), self.layout.n_columns))
        for start, column in zip(self._starts, self.columns, strict=True):
            absent = missing[:, column.source]
            cells = frame.iloc[:, column.source]
            if column.kind == "number":
                numbers = made[:, column.places[0]]
                self._check(np.isnan(numbers) & ~absent, column, cells)
                encoded[:, start] = np.where(absent, np.nan, numbers)
                continue
            if column.kind == "binary":
                places = self._zeros_and_ones(cells, absent, str(frame.columns[column.source]))
            else:
                places = column.places_of(made[:, column.places])
                places[absent] = -1
                self._check((places < 0) & ~absent, column, cells)
            if column.is_one_hot:
                encoded[:, start : start + column.width] = one_hot(places, column.width)
            else:
                encoded[:, start] = np.where(places < 0, np.nan, places)
        return encoded

    def _zeros_and_ones(self, cells: pd.Series[Any], absent: NDArray[np.bool_], name: str) -> NDArray[np.intp]:
        numbers = column_numbers(cells, name)
        others = numbers[~absent & (numbers != 0) & (numbers != 1)]
        if len(others):
            raise ValueError(
                f"column {name[:60]!r} must have 0 or 1, like the rows that the model was learned from, got "
                f"{float(others[0])!r}; learn it from rows that have other numbers in this column, too"
            )
        return np.where(absent, -1, np.nan_to_num(numbers)).astype(np.intp)

    def _check(self, unknown: NDArray[np.bool_], column: EncodedColumn, cells: pd.Series[Any]) -> None:
        """Raise ValueError if a step does not do what it says; what an encoder does not know is another matter."""
        if not unknown.any():
            return
        strange = cells[unknown]
        rule = self.values.rules[column.source]
        if column.kind == "categories":
            if rule.cuts is not None:
                strange = strange[strange.isin([0, 1])]
            else:
                strange = strange[places_among(strange, rule.categories) >= 0]
        if len(strange):
            raise ValueError(
                f"estimator must make of column {rule.name[:60]!r} what its steps say, got something else (or NaN) for "
                f"the value {str(strange.iloc[0])[:60]!r}; check steps of your own"
            )

    def transformed(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return what the steps make of the rows, with a known value in place of each missing one."""
        full = frame.copy()
        for name in frame.columns[frame.isna().any(axis=0)]:
            kept = full[name].astype(object)
            full[name] = kept.where(kept.notna(), self.known[name]).infer_objects()
        return transformed_by(self.steps, full, self.takes_frames)


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """What steps make of one raw column, and the columns of a conformant model for it.

    Attributes
    ----------
    source : int
        Place of the raw column.
    kind : {"categories", "cut", "binary", "number"}
    places : ndarray of int, shape (n_places,)
        The classifier's columns.
    of_values : ndarray of shape (n_values, n_places)
        What they are for each value that the steps tell apart; of a number that is not cut, for some number.
    examples : ndarray of int, shape (n_values,)
        The first of the raw column's values that each of these is made of.
    """

    source: int
    kind: Kind
    places: NDArray[np.intp]
    of_values: NDArray[np.float64]
    examples: NDArray[np.intp]

    @classmethod
    def of(cls, source: int, kind: Kind, places: NDArray[np.intp], of_values: NDArray[np.float64]) -> EncodedColumn:
        """Merge values of which the steps make the same; one-hot ones get the order of the classifier's columns."""
        kept = list({row.tobytes(): place for place, row in reversed(list(enumerate(of_values + 0.0)))}.values())
        examples = np.sort(np.array(kept, dtype=np.intp))
        merged = of_values[examples]
        if _is_one_hot(merged):
            order = np.argsort(merged.argmax(axis=1))
            examples, merged = examples[order], merged[order]
        return cls(source, kind, places, merged, examples)

    @property
    def keeps_columns(self) -> bool:
        """Whether the columns of the model are those of the classifier, perhaps scaled."""
        return len(self.places) == 1 == self.width or _is_one_hot(self.of_values)

    @property
    def is_one_hot(self) -> bool:
        """Whether the model has a column for each value."""
        return self.kind != "number" and (len(self.of_values) > 2 or _is_one_hot(self.of_values))

    @property
    def width(self) -> int:
        """Number of columns of the model."""
        return len(self.of_values) if self.is_one_hot else 1

    @property
    def line(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The classifier's columns for zeros in those of the model, and what a 1 in each of these adds, as rows."""
        nothing = np.zeros(len(self.places))
        if self.kind == "number":
            return nothing, np.ones((1, 1))
        if self.is_one_hot:
            return nothing, self.of_values
        return self.of_values[0], self.of_values[1:] - self.of_values[:1]

    @cached_property
    def _levels(self) -> list[NDArray[np.float64]]:
        return [np.unique(column) for column in self.of_values.T]

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {row.tobytes(): place for place, row in enumerate(self._ranks(self.of_values))}

    def _ranks(self, made: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the rank of each number among those that its column can have, -1 for another one."""
        ranks = np.empty(made.shape, dtype=np.int32)
        for place, levels in enumerate(self._levels):
            numbers = made[:, place]
            nearest = np.searchsorted(0.5 * (levels[1:] + levels[:-1]), numbers)
            level = levels[nearest]
            ranks[:, place] = np.where(np.abs(numbers - level) <= _SAME * (1 + np.abs(level)), nearest, -1)
        return ranks

    def places_of(self, made: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return which value the classifier's columns say each row has, -1 for none."""
        known, ranks = self._places, np.ascontiguousarray(self._ranks(made))
        return np.array([known.get(row.tobytes(), -1) for row in ranks], dtype=np.intp)


def _is_one_hot(of_values: NDArray[np.float64]) -> bool:
    """Return whether there is a column for each value, 1 for it and 0 for all others."""
    is_square = of_values.shape[0] == of_values.shape[1] > 1
    return is_square and bool((np.sort(of_values, axis=1) == np.eye(len(of_values))[-1]).all())


class EncodedWeights:
    """A fitted classifier in terms of encoded columns, of which its own are sums.

    Parameters
    ----------
    classifier : object
    slopes : sparse array of shape (n_encoded, n_columns)
        What each encoded column adds to those of the classifier.
    shift : ndarray of shape (n_columns,)
        Those of the classifier where all encoded ones are zero.
    """

    def __init__(self, classifier: Any, slopes: sparse.csr_array, shift: NDArray[np.float64]) -> None:
        weights = classifier.coef_.toarray() if hasattr(classifier.coef_, "toarray") else classifier.coef_
        self.coef_ = (slopes @ weights.T).T
        self.intercept_ = classifier.intercept_ + weights @ shift
        self.classes_ = classifier.classes_
        self.predict_proba = lambda rows: classifier.predict_proba(rows @ slopes + shift)
