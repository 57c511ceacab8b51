"""`partial_fit` of the three classifiers: sums of the rows of all calls, from which each call learns a model anew."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call
from sklearn.utils.validation import check_consistent_length, column_or_1d

from trimbench.conformant.conform import conform_to_statistics, linear_scores
from trimbench.conformant.rows import FeatureSums, Rows
from trimbench.estimators.columns import checked_training_rows
from trimbench.estimators.fitted_pipeline import FittedPipeline
from trimbench.estimators.pipeline_values import distribution_of
from trimbench.networks.counts import CategoryCounts
from trimbench.networks.discretize import Discretizer
from trimbench.networks.learning import learn_from_counts
from trimbench.networks.naive_bayes import free_class_variable
from trimbench.networks.sums import ColumnSums
from trimbench.networks.values import checked_names
from trimbench.selection_bias.batches import moments_of
from trimbench.selection_bias.binary import ClassCounts
from trimbench.selection_bias.features import Binariser


def begins(estimator: Any, classes: Any) -> bool:
    """Tell whether this is the first call since the estimator was made or fitted, and learn the classes if it is."""
    if hasattr(estimator, "_sums"):
        _check_partial_fit_first_call(estimator, classes)
        return False
    known = vars(estimator).pop("classes_", None)
    classes = known if classes is None else classes
    _check_partial_fit_first_call(estimator, classes)
    if len(estimator.classes_) < 2:
        raise ValueError(f"classes must have at least two labels, got {estimator.classes_.tolist()}")
    return True


def codes_of(estimator: Any, labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return the places of labels among the classes; ValueError for another label."""
    known = estimator.classes_
    codes = np.minimum(np.searchsorted(known, labels), len(known) - 1)
    if (wrong := labels[known[codes] != labels]).size:
        raise ValueError(
            f"y must hold only the classes of the first call, {known.tolist()}, got {wrong.tolist()[0]!r}; name all "
            "of them there, with classes=[...]"
        )
    return codes


class TrimmedInParts:
    """`TrimmedClassifier.partial_fit`."""

    def partial_fit(self: Any, X: Any, y: Any, classes: Any = None) -> Any:
        """Learn the distribution from the rows of all calls, and trim its classifier.

        The rows of the first call decide where numbers are cut and which categories there are: ``n_rows_of_cuts_`` has
        their number, ``n_rows_seen_`` that of all. Columns are chosen by the distribution alone, without rows.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
        classes : array of shape (n_classes,), optional
            All classes, for the first call; after `fit`, which is forgotten, they need not be given again.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`; for a label that is not in `classes`, a mixture, or rows that are to have a weight.
        """
        if self.density == "mixture" or self.rows_weight not in ("auto", 0):
            name = "density" if self.density == "mixture" else "rows_weight"
            raise ValueError(
                f"{name} must be another one for partial_fit, got {getattr(self, name)!r}: it needs all rows"
            )
        first = begins(self, classes)
        frame, labels = checked_training_rows(self, X, y, reset=first)
        codes, names = codes_of(self, labels), [str(name) for name in frame.columns]
        class_names = checked_names([str(label) for label in self.classes_], "labels of y", of_values=True)
        if first:
            self.discretizer_, self.n_rows_of_cuts_ = Discretizer.fit(frame, codes, self.cut), len(frame)
        coded, variable = self.discretizer_.transform(frame), free_class_variable(names)
        target = categories_of(codes, class_names, variable)
        counts = CategoryCounts.of(coded, target, pairs=self.density == "tree_augmented")
        self._sums = counts if first else self._sums + counts
        self.n_rows_seen_ = self._sums.n_rows
        structure: Any = "tree" if self.density == "tree_augmented" else "naive_bayes"
        model = learn_from_counts(self._sums, structure, self.smoothing)
        self._trim(distribution_of(model, variable, self.threshold, names), names, None)
        return self


def categories_of(codes: NDArray[np.intp], names: Any, variable: str) -> Any:
    """Return codes as a categorical series."""
    import pandas as pd

    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(list(names), dtype=str)), name=variable)


def _has_sums(estimator: Any) -> bool:
    """Tell whether sums of the rows are enough for the model, so that the method is there; AttributeError if not."""
    if estimator.n_components not in (1, "auto") or estimator.covariance == "full":
        raise AttributeError("n_components must be 1 and covariance 'diagonal', or 'auto', for partial_fit")
    return True


class ConformantInParts:
    """`NaiveConformantClassifier.partial_fit`."""

    @available_if(_has_sums)  # type: ignore[untyped-decorator]
    def partial_fit(self: Any, X: Any, y: Any, classes: Any = None) -> Any:
        """Learn the distribution of the features from the rows of all calls.

        The rows of the first call decide how columns are encoded, and what the logistic regression is unless an
        `estimator` is given: ``n_rows_of_regression_`` has their number, ``n_rows_seen_`` that of all. The distribution
        has one component without covariance; where values are missing, it fits the means of the others.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
        classes : array of shape (n_classes,), optional
            All classes, for the first call; after `fit`, which is forgotten, they need not be given again.
            The rows of that call must have each.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`; for a label that is not in `classes`.
        AttributeError
            With several components or a covariance: there is no such method.
        """
        first = begins(self, classes)
        if first:
            given = self.get_params(deep=False)
            learned = type(self)(**{**given, "n_components": 1, "covariance": "diagonal"}).fit(X, y)
            if not np.array_equal(learned.classes_, self.classes_):
                raise ValueError(
                    f"y must have rows of each class, {self.classes_.tolist()}, in the first call, got only "
                    f"{learned.classes_.tolist()}; give more rows"
                )
            vars(self).update({name: value for name, value in vars(learned).items() if name not in given})
            self.n_rows_of_regression_ = len(y)
        else:
            codes_of(self, column_or_1d(y, warn=True))
        encoded = self._encoded(X)
        check_consistent_length(encoded, y)
        layout = self._encoding.layout
        sums = FeatureSums.of(Rows.of(encoded, layout.n_columns), layout, missing=True)
        self._sums = sums if first else self._sums + sums
        self.n_rows_seen_ = self._sums.n_rows
        if not first:
            linear = self._encoding.weights if isinstance(self._encoding, FittedPipeline) else self.logistic_regression_
            statistics = self._sums.statistics
            scores = linear_scores(linear)
            self.model_ = conform_to_statistics(*scores, layout, statistics, self.solver, self.smoothing)
        return self


class SelectionCorrectedInParts:
    """`SelectionCorrectedNB.partial_fit`."""

    def partial_fit(self: Any, X: Any, y: Any, classes: Any = None) -> Any:
        """Select features and fit the classifier to the cases of all calls.

        Real values are cut at medians of the cases of the first call, unless `cuts` are given or features are Gaussian:
        ``n_cases_of_cuts_`` has their number, ``n_cases_seen_`` that of all. Probabilities are not calibrated.

        Parameters
        ----------
        X : array or data frame of shape (n_cases, n_features)
        y : array of shape (n_cases,)
        classes : array of shape (n_classes,), optional
            All classes, for the first call; after `fit`, which is forgotten, they need not be given again.
            The cases of that call must have each.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`; for a label that is not in `classes`, or a calibration.
        """
        if self.calibrate is True:
            raise ValueError("calibrate must be False or 'auto' for partial_fit, got True: it needs all cases")
        first = begins(self, classes)
        if first:
            table, labels = self._table(X, y)
        else:
            table, labels = self._table(X), column_or_1d(y, warn=True)
            check_consistent_length(table, labels)
        codes, n_classes = codes_of(self, labels).astype(np.int64), len(self.classes_)
        sizes = np.bincount(codes, minlength=n_classes)
        if first:
            if not sizes.all():
                raise ValueError(f"y must have cases of each class in the first call, got {sizes.tolist()} of them")
            cuts = self._cuts(table)
            self._binariser = Binariser.fit(table, None, cuts) if self.features == "binary" else None
            self.n_cases_of_cuts_ = len(table)
        sums: list[Any]
        if self._binariser is not None:
            sums = [ClassCounts.of(table, codes, n_classes, self._binariser, np.arange(len(table)))]
        else:
            columns = np.asarray(table, dtype=np.float64).T
            sums = [ColumnSums.of(list(columns[:, codes == code])) for code in range(n_classes)]
        if not first:
            sums = [one + another for one, another in zip(self._sums[0], sums, strict=True)]
            sizes = sizes + self._sums[1]
        self._sums, self.n_cases_seen_ = (sums, sizes), int(sizes.sum())
        learned = moments_of(sums) if self._binariser is None else (self._binariser, sums[0])
        self._keep(self._fitted_to(learned, sizes, table.shape[1]))
        return self
