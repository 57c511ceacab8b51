"""Fitted classifiers, or pipelines that end in one, taken apart: their steps, and what these say of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.values import column_numbers

if TYPE_CHECKING:
    import pandas as pd


_KINDS = "a fitted LogisticRegression, BernoulliNB or CategoricalNB, or a fitted pipeline that ends in one"


def transformed_by(steps: Any, frame: pd.DataFrame, takes_frames: bool) -> NDArray[np.float64]:
    """Return what fitted steps, or None, make of rows; ValueError if the result is not numeric."""
    if steps is None:
        return np.column_stack([column_numbers(frame[name], str(name)) for name in frame.columns])
    result = steps.transform(frame if takes_frames else frame.to_numpy())
    if hasattr(result, "toarray"):
        result = result.toarray()
    try:
        return np.array(result, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"estimator must make numbers of the columns, got {error}") from error


def split_pipeline(estimator: Any) -> tuple[Any, Any]:
    """Return the steps before the classifier, or None, and the classifier.

    For a naive Bayes estimator, the classifier has linear scores of zeros and ones, which the steps make.
    """
    from sklearn.exceptions import NotFittedError
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    estimator = unwrapped(estimator)
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError) as error:
        raise ValueError(
            f"estimator must be {_KINDS}, got {type(estimator).__name__} that is not; call its fit first, and wrap it "
            "in sklearn.frozen.FrozenEstimator where it is cloned, as in cross-validation"
        ) from error
    classifier, steps = estimator, None
    if isinstance(estimator, Pipeline):
        classifier, steps = unwrapped(estimator.steps[-1][1]), estimator[:-1] if len(estimator.steps) > 1 else None
    if is_naive_bayes(classifier):
        return NaiveBayesIndicators(steps, classifier), NaiveBayesScores.of(classifier)
    if not (hasattr(classifier, "coef_") and hasattr(classifier, "predict_proba")):
        raise ValueError(f"estimator must be {_KINDS}, got {type(classifier).__name__}")
    return steps, classifier


def unwrapped(estimator: Any) -> Any:
    """Return the fitted estimator inside a FrozenEstimator or a search; a pipeline without steps that do nothing."""
    from sklearn.pipeline import Pipeline

    if type(estimator).__name__ == "FrozenEstimator":
        estimator = estimator.estimator
    estimator = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(estimator, Pipeline):
        return estimator
    steps = [(name, inner) for name, step in estimator.steps if (inner := unwrapped(step)) not in (None, "passthrough")]
    return Pipeline(steps) if len(steps) > 1 else steps[0][1] if steps else "passthrough"


def accepts_gaps(estimator: Any) -> bool:
    """Return whether a classifier takes rows with gaps; a pipeline if each step does, up to an imputer."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils import get_tags

    if not isinstance(estimator, Pipeline):
        return bool(get_tags(estimator).input_tags.allow_nan)
    for _, step in estimator.steps:
        if step not in (None, "passthrough") and not accepts_gaps(step):
            return False
        if type(step).__module__.startswith("sklearn.impute"):
            return True
    return True


# Which raw column each column of a pipeline comes from, and which values it can have, as the steps state it.

_ADVICE = (
    "use scalers, Binarizer, KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, TargetEncoder, SimpleImputer, selectors "
    "of columns, FunctionTransformer(np.log1p) and the like, and a ColumnTransformer of them, or learn from the raw "
    "table"
)


@dataclass(frozen=True)
class StepColumn:
    """A column between the steps of a pipeline.

    Attributes
    ----------
    source : int
        Place of the raw column that it is made from; -1 if it is the same for all complete rows.
    categories : tuple, optional
        The values of the raw column that an encoder knows; None for a number.
    is_raw : bool
        Whether its values are still those of the raw column, apart from missing ones.
    is_piecewise : bool
        Whether it has few values, between which it jumps as the raw number grows.
    scaling : tuple of two floats, optional
        What the raw number is multiplied by, and what is added then; None if it is bent in other ways.
    edges : tuple of float
        Raw numbers at which it jumps, up to rounding.
    takes_missing : bool
        Whether a missing value of the raw column is imputed.
    """

    source: int
    categories: tuple[Any, ...] | None = None
    is_raw: bool = True
    is_piecewise: bool = False
    scaling: tuple[float, float] | None = (1.0, 0.0)
    edges: tuple[float, ...] = ()
    takes_missing: bool = False


@dataclass(frozen=True)
class StepReader:
    """Reads from fitted steps of scikit-learn what they make of columns.

    Attributes
    ----------
    names : tuple of str
        Of the raw columns.
    rows : {"any", "complete"}
        Whether what the steps make of missing values matters.
    categories : dict from int to tuple
        Those of each raw column that was encoded, even if a later step leaves it out.
    """

    names: tuple[str, ...]
    rows: Literal["any", "complete"]
    categories: dict[int, tuple[Any, ...]] = field(default_factory=dict)

    def columns_of(self, steps: Any) -> list[StepColumn]:
        """Return what fitted steps make of the raw columns; ValueError if a step is unknown or mixes columns."""
        return self._through(steps, [StepColumn(place) for place in range(len(self.names))])

    def example(self, place: int) -> Any:
        """Return a cell that the steps take in a raw column, after they have been read."""
        return [*self.categories.get(place, ()), 0.0][0]

    def _through(self, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
        from sklearn.compose import ColumnTransformer
        from sklearn.feature_selection import SelectorMixin
        from sklearn.pipeline import FeatureUnion, Pipeline
        from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, PolynomialFeatures

        if step is None or (isinstance(step, str) and step == "passthrough"):
            return columns
        if isinstance(step, str) and step == "drop":
            return []
        if isinstance(step, NaiveBayesIndicators):
            return self._indicators(step, self._through(step.steps, columns))
        if isinstance(step, Pipeline):
            for _, part in step.steps:
                columns = self._through(part, columns)
            return columns
        if isinstance(step, FeatureUnion):
            return [column for _, part in step.transformer_list for column in self._through(part, columns)]
        if isinstance(step, ColumnTransformer):
            return self._side_by_side(step, columns)
        if isinstance(step, SelectorMixin):
            return [column for column, kept in zip(columns, step.get_support(), strict=True) if kept]
        if isinstance(step, OneHotEncoder | OrdinalEncoder) or type(step).__name__ == "TargetEncoder":
            return self._encoded(step, columns)
        if isinstance(step, KBinsDiscretizer):
            edges = [edges[1:-1].tolist() for edges in step.bin_edges_]
            pairs = zip(self._cut(step, columns, edges), step.n_bins_.tolist(), strict=True)
            return [column for column, count in pairs for _ in range(1 if step.encode == "ordinal" else count)]
        if isinstance(step, PolynomialFeatures):
            return self._powers(step, columns)
        if (imputed := self._imputed(step, columns)) is not None:
            return imputed
        return self._one_to_one(step, columns)

    def _one_to_one(self, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
        from sklearn.preprocessing import (
            Binarizer,
            FunctionTransformer,
            MaxAbsScaler,
            MinMaxScaler,
            PowerTransformer,
            QuantileTransformer,
            RobustScaler,
            StandardScaler,
        )

        if isinstance(step, FunctionTransformer):
            if step.func is None:  # a ColumnTransformer's passthrough
                return columns
            by_itself = isinstance(step.func, np.ufunc) and step.func.nin == step.func.nout == 1
            # Whoever says that the names stay says that each column is made of one.
            if by_itself or step.feature_names_out == "one-to-one":
                return [replace(column, is_raw=False, scaling=None) for column in columns]
            raise ValueError(
                "the function of a FunctionTransformer must make each column of one column, and say so, got "
                f"{getattr(step.func, '__name__', step.func)!r:.60}; use a function of NumPy such as np.log1p, or "
                "feature_names_out='one-to-one' where that is true"
            )
        if isinstance(step, Binarizer):
            return self._cut(step, columns, [[step.threshold]] * len(columns))
        if isinstance(step, StandardScaler | MinMaxScaler | MaxAbsScaler | RobustScaler):
            return [replace(column, is_raw=False, scaling=scaling) for column, scaling in _scaled(step, columns)]
        if isinstance(step, PowerTransformer | QuantileTransformer):
            return [replace(column, is_raw=False, scaling=None) for column in columns]
        raise ValueError(
            f"the steps of a pipeline must make each column from one column of X, in ways that they state, got "
            f"{type(step).__name__}; {_ADVICE}"
        )

    def _cut(self, step: Any, columns: list[StepColumn], thresholds: Sequence[Sequence[float]]) -> list[StepColumn]:
        """Return columns after a step that compares numbers with thresholds."""
        made = []
        for column, limits in zip(columns, thresholds, strict=True):
            column = replace(column, is_raw=False)
            if column.categories is None and not column.is_piecewise:
                if column.scaling is None:
                    raise ValueError(
                        f"{type(step).__name__} must cut raw or scaled numbers, got column {self._name(column)!r} "
                        "after a step that does something else; cut the column as it is"
                    )
                factor, offset = column.scaling
                edges = sorted((limit - offset) / factor for limit in limits)
                column = replace(column, is_piecewise=True, edges=tuple(edges))
            made.append(column)
        return made

    def _powers(self, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
        made = []
        for powers in step.powers_:
            (used,) = np.nonzero(powers)
            if len(sources := {columns[place].source for place in used.tolist()} - {-1}) > 1:
                first, second = sorted(sources)[:2]
                raise ValueError(
                    "estimator must make each column of its classifier from one column of X, got one that depends on "
                    f"{self.names[first][:60]!r} and {self.names[second][:60]!r}; leave products of columns out, or "
                    "fit NaiveConformantClassifier to what the steps give"
                )
            column = columns[used[0]] if len(used) else StepColumn(-1)
            made.append(replace(column, is_raw=False, scaling=None))
        return made

    def _imputed(self, step: Any, columns: list[StepColumn]) -> list[StepColumn] | None:
        """Return the columns of an imputer, or None if a step is something else."""
        import pandas as pd
        from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer

        is_simple = isinstance(step, SimpleImputer)
        if is_simple:
            marks = pd.isna(step.missing_values)
            if not step.add_indicator and marks and not pd.isna(step.statistics_).any():
                return [replace(column, takes_missing=True) for column in columns]
        is_imputer = is_simple or isinstance(step, KNNImputer) or type(step).__name__ == "IterativeImputer"
        if self.rows == "any" or not (is_imputer or isinstance(step, MissingIndicator)):
            return None
        # Complete rows pass imputers as they are; a column without values in the fit may be left out.
        indicator = step if isinstance(step, MissingIndicator) else getattr(step, "indicator_", None)
        n_constant = 0 if indicator is None else len(indicator.features_)
        if not is_imputer:
            return [StepColumn(-1)] * n_constant
        before = list(getattr(step, "feature_names_in_", [f"x{place}" for place in range(len(columns))]))
        names = step.get_feature_names_out().tolist()
        kept = [columns[before.index(name)] for name in names[: len(names) - n_constant]]
        if not pd.isna(step.missing_values):  # a number that stands for a missing one, whose place another takes
            kept = [replace(column, scaling=None) for column in kept]
        return kept + [StepColumn(-1)] * n_constant

    def _encoded(self, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
        """Return the columns of an encoder of categories."""
        made = []
        for place, column in enumerate(columns):
            if column.is_raw:
                column = replace(column, categories=tuple(step.categories_[place].tolist()), is_raw=False)
                self.categories[column.source] = column.categories or ()
            elif column.categories is None and not column.is_piecewise:
                raise ValueError(
                    f"{type(step).__name__} must encode raw values, got column {self._name(column)!r} after "
                    "another step; encode the column as it is"
                )
            made += [column] * _n_outputs(step, place)
        return made

    def _side_by_side(self, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
        """Return the columns of a ColumnTransformer."""
        import pandas as pd

        places = pd.Series(range(len(columns)), index=getattr(step, "feature_names_in_", None))
        made: list[StepColumn] = []
        for _, part, chosen in step.transformers_:
            by_name = any(isinstance(label, str) for label in np.atleast_1d(np.asarray(chosen, dtype=object)))
            picked = places.loc[chosen] if by_name else places.iloc[chosen]
            made += self._through(part, [columns[place] for place in np.atleast_1d(picked).tolist()])
        return made

    def _indicators(self, step: NaiveBayesIndicators, columns: list[StepColumn]) -> list[StepColumn]:
        """Return the zeros and ones that a naive Bayes estimator looks at."""
        counts = getattr(step.estimator, "n_categories_", None)
        if counts is None:
            cut = step.estimator.binarize
            return columns if cut is None else self._cut(step.estimator, columns, [[cut]] * len(columns))
        made = []
        for column, count in zip(columns, counts.tolist(), strict=True):
            if column.is_raw:
                column = replace(column, categories=tuple(range(count)))
            made += [replace(column, is_raw=False)] * count
        return made

    def _name(self, column: StepColumn) -> str:
        return self.names[column.source][:60]


def _scaled(scaler: Any, columns: list[StepColumn]) -> Iterator[tuple[StepColumn, tuple[float, float] | None]]:
    """Yield each column, and how the raw number is scaled after a scaler."""
    if hasattr(scaler, "data_range_"):  # MinMaxScaler
        factors, offsets = scaler.scale_, scaler.min_
    else:
        scale, centre = scaler.scale_, getattr(scaler, "mean_", getattr(scaler, "center_", None))
        if not getattr(scaler, "with_mean", True):  # the mean is known, but not subtracted
            centre = None
        factors = np.ones(len(columns)) if scale is None else 1 / scale
        offsets = np.zeros(len(columns)) if centre is None else -centre * factors
    for column, factor, offset in zip(columns, factors.tolist(), offsets.tolist(), strict=True):
        before = column.scaling
        yield column, None if before is None else (before[0] * factor, before[1] * factor + offset)


def _n_outputs(encoder: Any, place: int) -> int:
    """Return how many columns an encoder makes of the one at a place."""
    if not hasattr(encoder, "drop_idx_"):
        is_multiclass = getattr(encoder, "target_type_", None) == "multiclass"
        return len(encoder.classes_) if is_multiclass else 1
    rare = encoder.infrequent_categories_[place] if hasattr(encoder, "infrequent_categories_") else None
    merged = 0 if rare is None else len(rare) - 1
    is_dropped = encoder.drop_idx_ is not None and encoder.drop_idx_[place] is not None
    return len(encoder.categories_[place]) - merged - is_dropped


# Fitted naive Bayes estimators of scikit-learn as classifiers with linear scores of zeros and ones.

Matrix = NDArray[np.float64]


def is_naive_bayes(estimator: Any) -> bool:
    """Return whether an estimator is one that this module turns into linear scores."""
    from sklearn.naive_bayes import BernoulliNB, CategoricalNB

    return isinstance(estimator, BernoulliNB | CategoricalNB)


@dataclass(frozen=True, eq=False)
class NaiveBayesScores:
    """A fitted BernoulliNB or CategoricalNB as a classifier of the zeros and ones of `NaiveBayesIndicators`.

    Attributes
    ----------
    log_ones, log_zeros : ndarray of shape (n_columns, n_classes)
        What a 1 or a 0 adds to the logarithm of the joint probability.
    log_prior : ndarray of shape (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    """

    log_ones: Matrix
    log_zeros: Matrix
    log_prior: NDArray[np.float64]
    classes_: NDArray[Any]

    @classmethod
    def of(cls, estimator: Any) -> NaiveBayesScores:
        """Return the scores of an estimator; ValueError if a probability is 0, whose logarithm is no weight."""
        from sklearn.naive_bayes import BernoulliNB

        if isinstance(estimator, BernoulliNB):
            ones = estimator.feature_log_prob_.T
            with np.errstate(divide="ignore"):
                zeros = np.log1p(-np.exp(ones))
        else:
            ones = np.concatenate([table.T for table in estimator.feature_log_prob_])
            zeros = np.zeros_like(ones)
        if not all(np.isfinite(part).all() for part in (ones, zeros, estimator.class_log_prior_)):
            raise ValueError(
                f"estimator must have probabilities above 0 and below 1, got {type(estimator).__name__} with one that "
                "is not; fit it with alpha > 0, and class_prior without zeros"
            )
        return cls(ones, zeros, estimator.class_log_prior_, estimator.classes_)

    @property
    def coef_(self) -> Matrix:
        """Weights, shape (n_classes, n_columns)."""
        return (self.log_ones - self.log_zeros).T

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Scores of the classes for a row of zeros."""
        return np.asarray(self.log_prior + self.log_zeros.sum(axis=0))

    def predict_proba(self, rows: Matrix) -> Matrix:
        """Return the probability of each class, shape (n_rows, n_classes)."""
        from scipy.special import softmax

        return np.asarray(softmax(rows @ self.coef_.T + self.intercept_, axis=1))


class NaiveBayesIndicators:
    """The steps of a pipeline, then how its BernoulliNB or CategoricalNB makes zeros and ones of their result.

    Attributes
    ----------
    steps : object or None
        Fitted transformers.
    estimator : BernoulliNB or CategoricalNB
    """

    def __init__(self, steps: Any, estimator: Any) -> None:
        self.steps = steps
        self.estimator = estimator
        names = getattr(estimator if steps is None else steps, "feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names

    def transform(self, rows: Any) -> Matrix:
        """Return one column for each feature of a BernoulliNB, or for each category of a CategoricalNB."""
        table = rows if self.steps is None else self.steps.transform(rows)
        values = np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=np.float64)
        if not hasattr(self.estimator, "n_categories_"):
            cut = self.estimator.binarize
            return np.asarray(values > cut, dtype=np.float64) if cut is not None else values
        counts = self.estimator.n_categories_.tolist()
        parts = [values[:, [place]] == np.arange(count) for place, count in enumerate(counts)]
        return np.concatenate(parts, axis=1).astype(np.float64)

    def get_feature_names_out(self, names: Any = None) -> NDArray[Any]:
        """Return the names of the columns; a category is its number after the name."""
        before = names if self.steps is None else self.steps.get_feature_names_out(names)
        if not hasattr(self.estimator, "n_categories_"):
            return np.asarray(before, dtype=object)
        counts = self.estimator.n_categories_.tolist()
        pairs = zip(before, counts, strict=True)
        return np.array([f"{name}_{code}" for name, count in pairs for code in range(count)], dtype=object)
