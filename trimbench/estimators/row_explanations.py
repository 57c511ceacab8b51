"""Explanations of the classification of one row of a table, in terms of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from trimbench.conformant.contrastive import By, ContrastiveExplanation
from trimbench.conformant.explanations import Explanation
from trimbench.conformant.mixture import ConformantMixture
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.probabilistic_explanations import ProbabilisticExplanation
from trimbench.estimators.column_encoding import ColumnEncoder
from trimbench.estimators.given_classifier import GivenClassifier
from trimbench.estimators.raw_columns import unmasked

if TYPE_CHECKING:
    import pandas as pd


class RowExplanations:
    """Explanations for an estimator with a conformant model of encoded columns.

    Features are columns of the rows; of a given `estimator`, the columns that it uses.
    """

    model_: ConformantModel | ConformantMixture
    n_features_in_: int
    _encoding: ColumnEncoder | GivenClassifier
    _names: list[str]

    @overload
    def explain(self, x: ArrayLike, against: Any = None, delta: None = None) -> Explanation: ...

    @overload
    def explain(
        self, x: ArrayLike, against: Any = None, *, delta: float, max_sets: int = 1
    ) -> ProbabilisticExplanation: ...

    def explain(
        self, x: ArrayLike, against: Any = None, delta: float | None = None, max_sets: int = 1
    ) -> Explanation | ProbabilisticExplanation:
        """Return the smallest set of features that explains the classification of one row.

        Features are columns of `X`; of a given `estimator`, the columns that it uses. `ConformantModel.explain` says
        what is kept without and with `delta`.

        Parameters
        ----------
        x : array of shape (n_columns,), or Series or dict with the names of the columns
        against : label, optional
            The one of `classes_` to compare the prediction with. If there are more than two, it is required without
            `delta`.
        delta : float, optional
            Probability with which the class is kept, above 0 and up to 1. Required with several components.
        max_sets : int
            With `delta`: how many smallest sets to list.

        Returns
        -------
        Explanation or ProbabilisticExplanation
            Its classes are labels of `classes_`.

        Raises
        ------
        ValueError
            When `x` is not a row, has a value that its column cannot have, `against` is not another class, or a
            parameter is not allowed, or missing.
        """
        row = self._encoded_row(x)
        if delta is None:
            return self.model_.explain(row, against).named(self._feature_names())
        return self.model_.explain(row, against, delta=delta, max_sets=max_sets).named(self._feature_names())

    def contrast(
        self, x: ArrayLike, against: Any = None, *, by: By = "change", max_sets: int = 1
    ) -> ContrastiveExplanation:
        """Return the fewest features whose change, or whose loss, would give one row another class.

        Features are columns of `X`; of a given `estimator`, the columns that it uses.

        Parameters
        ----------
        x : array of shape (n_columns,), or Series or dict with the names of the columns
        against : label, optional
            The one of `classes_` that is to have the higher score; any other by default.
        by : {"change", "loss"}
            As in `ConformantModel.contrast`.
        max_sets : int
            How many smallest sets to list.

        Returns
        -------
        ContrastiveExplanation
            Its classes are labels of `classes_`; its `row` has the columns of `get_feature_names_out`.

        Raises
        ------
        ValueError
            When `x` is not a row, has a value that its column cannot have, `against` is not another class, or a
            parameter is not allowed.
        """
        found = self.model_.contrast(self._encoded_row(x), against, by=by, max_sets=max_sets)
        return found.named(self._feature_names())

    def _feature_names(self) -> list[str]:
        """Return the raw column of each feature of the model."""
        if not isinstance(self._encoding, GivenClassifier):
            return self._names
        sources = [int(self._encoding.sources[columns[0]]) for columns in self.model_.layout.features]
        return [self._names[source] if source >= 0 else "constant" for source in sources]

    def _encoded_row(self, x: Any) -> Any:
        import pandas as pd

        check_is_fitted(self)
        if isinstance(x, Mapping):
            x = _in_order(pd.Series(dict(x), dtype=object), self._names)
        elif isinstance(x, pd.Series) and hasattr(self, "feature_names_in_"):
            x = _in_order(x, self._names)
        values = np.asarray(unmasked(x), dtype=object)
        if values.shape != (self.n_features_in_,):
            advice = "; use x.iloc[0] of a data frame, x[0] of an array" if values.ndim == 2 else ""
            raise ValueError(f"x must be one row of {self.n_features_in_} values, got shape {values.shape}{advice}")
        row: pd.DataFrame = pd.DataFrame([list(values)], columns=self._names)
        return self._encoding.encode(row)[0]


def _in_order(row: pd.Series[Any], names: list[str]) -> pd.Series[Any]:
    """Return a row with the values in the order of the columns, if it has names; ValueError if these are others."""
    import pandas as pd

    if isinstance(row.index, pd.RangeIndex):
        return row
    labels = [str(label) for label in row.index]
    if sorted(labels) != sorted(names):
        strange = sorted(set(names) ^ set(labels)) or labels
        raise ValueError(f"x must have the columns of the fit, got other ones, or not all: {strange[:8]}")
    return row.set_axis(labels).reindex(names)
