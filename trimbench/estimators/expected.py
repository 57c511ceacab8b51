"""Any classifier with gaps: expected probabilities, and whether a decision would stay if the rest were known."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Bunch, check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from trimbench._checks import check_one_of, is_whole
from trimbench._pictures import draw_stability, html_of
from trimbench._typing import Matrix, Vector
from trimbench.acquisition.policy import Asking
from trimbench.estimators.acquisition import ExpectedColumns, most_votes
from trimbench.estimators.columns import checked_table
from trimbench.estimators.densities.choice import (
    MOST_ROWS,
    DensityScore,
    chosen_density,
    fitted_density,
    possible_densities,
)
from trimbench.estimators.densities.coding import UNKNOWN, TableCoding
from trimbench.estimators.densities.density import Density
from trimbench.estimators.densities.draws import RandomNumbers
from trimbench.estimators.densities.gaussians import MOST_NUMBERS
from trimbench.estimators.densities.margins import Margins
from trimbench.estimators.densities.products import ProductMixture
from trimbench.estimators.documented import Documented
from trimbench.estimators.expectation import MOST_DRAWS, Answers, answers_of_draws, share_interval
from trimbench.estimators.pipeline_steps import accepts_gaps, unwrapped
from trimbench.estimators.trees import Forest
from trimbench.networks.batches import Batches, in_batches
from trimbench.networks.discretize import UnknownValuesWarning, warn_of_unknown
from trimbench.networks.values import check_no_missing_label, names_text, plain_table, unmasked

_DENSITIES = ("auto", "products", "gaussian", "neighbours")
# Completions of each training row with gaps, for a classifier that takes none.
_COMPLETIONS = 5
# Training rows on which the classifier is tried.
_TRIED_ROWS = 500
_SUM_TOLERANCE = 1e-6
# The range of fewer training rows says little.
_FEW_ROWS = 20


class UnseenGapsWarning(UserWarning):
    """Values are missing where none were in the training rows: whether they hide by chance cannot be told."""


class DecisionStability(NamedTuple):
    """The decision of each row, and how likely it is to stay once everything is known.

    Attributes
    ----------
    decision : ndarray of shape (n_rows,)
        Labels, as `ExpectedClassifier.predict` gives them.
    probability : ndarray of shape (n_rows,)
        P(the classifier decides alike on the whole row | what is known); 1 for a row without gaps.
    lower, upper : ndarray of shape (n_rows,)
        Ends of the 95 % interval of the probability from the draws.
    """

    decision: NDArray[Any]
    probability: Vector
    lower: Vector
    upper: Vector

    def _repr_html_(self) -> str:
        """Return how notebooks show it: how stable the decisions are, and the rows that are least sure."""
        import pandas as pd

        table = pd.DataFrame(self._asdict()).rename_axis("row").reset_index()
        return html_of(table.nsmallest(10, "probability"), partial(draw_stability, stability=self.probability))


class ExpectedClassifier(Asking, Documented, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Any classifier for rows with gaps: its expectation over what is missing given what is known.

    A row without gaps gets the classifier's own answer, bit for bit. What a row hides is averaged out under a density
    of the features that the training rows teach. Values must be missing at random: where they are missing because of
    what they are, neither the probabilities nor the stability can be relied on.

    Parameters
    ----------
    estimator : classifier
        It is fitted to the training rows, five completions of each row with gaps if it takes none. Wrap one that is
        fitted in `sklearn.frozen.FrozenEstimator`, or use `trimbench.expect`. A classifier without `predict_proba` has
        shares of decisions in place of probabilities.
    density : {"auto", "products", "gaussian", "neighbours"} or density
        A mixture of products over bins, a mixture of normal laws with covariances of normal scores, or draws from
        training rows near by. ``"auto"`` takes the one under which the expectation is closest to the classifier's own
        answers on training rows of which values are hidden; labels play no part. An object with the methods of
        `trimbench.estimators.densities.density.Density` is fitted and used.
    n_draws : int or "auto"
        Completions of each row. ``"auto"`` draws until the standard error of all probabilities is at most 0.005, or 400
        times.
    random_state : int, RandomState or None
        Rows have their random numbers in common, which `fit` draws: predictions of a row are the same in every call.
    n_jobs : int, optional
        Threads that classify completions, as in joblib.

    Attributes
    ----------
    estimator_ : classifier
    classes_ : ndarray of shape (n_classes,)
    density_ : Density
    density_scores_ : tuple of DensityScore
        What ``density="auto"`` compared, the chosen one first; empty if nothing was.
    n_rows_of_density_ : int
        Rows that taught the density, at most 20,000 of which fit a mixture; those of batches are a random sample.
    is_exact_ : bool
        Whether probabilities are exact, not from draws: for decision trees, forests, extra trees and bagged trees of
        scikit-learn under a mixture of products.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If fitted on a data frame.

    See Also
    --------
    trimbench.expect : The short form for a fitted classifier.
    trimbench.conform : Exact expectations of logistic regression.

    References
    ----------
    Khosravi, Liang, Choi and Van den Broeck (2019); Khosravi, Choi, Liang, Vergari and Van den Broeck (2019), "On
    tractable computation of expected predictions"; Choi, Xue and Darwiche (2012), "Same-decision probability".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    >>> classifier = ExpectedClassifier(RandomForestClassifier(random_state=0), random_state=0).fit(X, y)
    >>> rows = [[5.0, 3.4, np.nan, np.nan], [np.nan, 3.0, np.nan, 1.5]]
    >>> classifier.predict(rows).tolist()
    [0, 1]
    >>> (classifier.decision_stability(rows).probability > 0.8).tolist()
    [True, False]
    """

    def __init__(
        self,
        estimator: Any,
        density: Any = "auto",
        n_draws: int | Literal["auto"] = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.density = density
        self.n_draws = n_draws
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike | None = None, **fit_params: Any) -> ExpectedClassifier:
        """Fit the classifier, unless it is frozen, and the density of the features.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns), or rows in batches
            As the classifier takes them; NaN, None or NA where a value is missing. For a frozen classifier also what
            `trimbench.networks.batches.Batches.of` takes, such as a folder of Parquet files with its columns: the
            density is then that of rows that are drawn at random in one pass.
        y : array of shape (n_rows,), optional
            Not needed for a frozen classifier.
        **fit_params
            Given to the classifier's `fit`, by scikit-learn's metadata routing where that is enabled.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When the classifier is none, its probabilities do not sum to 1, a column has no value, or the density cannot
            be fitted to so few rows.

        Warns
        -----
        UserWarning
            When the classifier has no `predict_proba`: probabilities are then shares of decisions.
        """
        self._check_parameters()
        frozen = isinstance(self.estimator, FrozenEstimator)
        if in_batches(X):
            if not frozen:
                raise ValueError(
                    "X must be a table where the classifier is fitted, too, got rows in batches; fit the classifier "
                    "first and wrap it in sklearn.frozen.FrozenEstimator"
                )
            names = getattr(self.estimator, "feature_names_in_", None)
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            frame = Batches.of(X, names).sample(MOST_ROWS, seed)
            X = frame.to_numpy() if names is None else frame
        if not frozen and y is not None:
            check_no_missing_label(y)
        table, labels = self._table(X, reset=True, y="no_validation" if frozen else y)
        self._coding = TableCoding.of(table, [str(label) for label in labels])
        rows = self._coding.encode(table)
        self._check_rows(rows)
        self.n_rows_of_density_ = len(rows)
        self._gaps_seen = np.isnan(rows).any(axis=0)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        margins = Margins.of(rows, self._coding.n_categories)
        # A classifier that takes no gaps needs completions, for which the choice of a density cannot ask it.
        self.density_scores_: tuple[DensityScore, ...] = ()
        takes_gaps = frozen or not np.isnan(rows).any() or accepts_gaps(self.estimator)
        if not takes_gaps:
            self.density_ = self._fitted_density(rows, margins)
        self._fit_estimator(table, rows, y, fit_params, takes_gaps=takes_gaps)
        self._try(table, rows)
        if self.density == "auto":
            self.density_, self.density_scores_ = chosen_density(
                lambda completed: self._classify(completed, table)[0], rows, margins, self._seed
            )
        elif takes_gaps:
            self.density_ = self._fitted_density(rows, margins)
        self._forest = Forest.of(unwrapped(self.estimator_)) if isinstance(self.density_, ProductMixture) else None
        self.is_exact_ = self._forest is not None
        return self

    def _check_parameters(self) -> None:
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            raise ValueError(f"estimator must be a classifier, got {str(self.estimator)[:80]!r}")
        if isinstance(self.density, str) or not all(hasattr(self.density, name) for name in ("fit", "draw")):
            check_one_of("density", self.density, _DENSITIES)
        if self.n_jobs is not None and (not is_whole(self.n_jobs, -(2**31)) or self.n_jobs == 0):
            raise ValueError(f"n_jobs must be None or a whole number other than 0, got {str(self.n_jobs)[:80]!r}")
        if self.n_draws != "auto" and not is_whole(self.n_draws, 2):
            raise ValueError(f"n_draws must be 'auto' or a whole number, 2 or more, got {str(self.n_draws)[:80]!r}")

    def _table(self, X: Any, *, reset: bool = False, y: Any = "no_validation") -> tuple[Any, Any]:
        """Return the checked table with the labels that the classifier knows, and the labels of its columns."""
        plain = plain_table(unmasked(X))
        cells, labels = checked_table(self, plain, reset=reset, y=y)
        if hasattr(plain, "iloc"):
            return plain, labels
        if not reset and hasattr(self, "feature_names_in_"):
            import pandas as pd

            return pd.DataFrame(cells, columns=self.feature_names_in_), labels
        return cells, labels

    def _check_rows(self, rows: Matrix) -> None:
        names = self._coding.names
        empty = np.isnan(rows).all(axis=0)
        if empty.any():
            raise ValueError(
                f"X must have a value in each column, got none in column {names[int(empty.argmax())]!r}; leave it out"
            )
        if self.density == "gaussian":
            n_numbers = sum(values is None for values in self._coding.categories)
            if n_numbers > MOST_NUMBERS:
                raise ValueError(
                    f"density='gaussian' takes at most {MOST_NUMBERS} columns of numbers, got {n_numbers}; use "
                    "density='products' or 'neighbours'"
                )
            if len(rows) <= n_numbers:
                raise ValueError(
                    f"density='gaussian' needs more rows than columns of numbers, got {len(rows)} rows and "
                    f"{n_numbers} columns; give more rows (a frozen classifier needs no labels), or use "
                    "density='products'"
                )

    def _fitted_density(self, rows: Matrix, margins: Margins) -> Density:
        if not isinstance(self.density, str):
            fitted: Density = clone(self.density, safe=False).fit(rows, margins, self._seed)
            return fitted
        # To complete the rows of a classifier that is not fitted yet, and so cannot be asked.
        name: Any = possible_densities(rows, margins)[-1] if self.density == "auto" else self.density
        return fitted_density(name, rows, margins, self._seed)

    def _fit_estimator(self, table: Any, rows: Matrix, y: Any, fit_params: dict[str, Any], *, takes_gaps: bool) -> None:
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **fit_params)
        else:
            routed = Bunch(estimator=Bunch(fit=fit_params))
        params = dict(routed.estimator.fit)
        self.estimator_ = clone(self.estimator)
        if takes_gaps:
            self.estimator_.fit(table, y, **params)
        else:
            numbers = RandomNumbers(_COMPLETIONS, rows.shape[1], self._seed, n_sets=len(rows))
            completed = self.density_.draw(rows, numbers).reshape(-1, rows.shape[1])
            of_rows = np.repeat(np.arange(len(rows)), _COMPLETIONS)
            params = {name: _repeated(value, len(rows), of_rows) for name, value in params.items()}
            if has_fit_parameter(self.estimator_, "sample_weight"):
                given = params.get("sample_weight")
                params["sample_weight"] = (np.ones(len(of_rows)) if given is None else given) / _COMPLETIONS
            self.estimator_.fit(self._coding.decode(completed, table, of_rows), np.asarray(y)[of_rows], **params)
        if not hasattr(self.estimator_, "classes_") or not hasattr(self.estimator_, "predict"):
            raise ValueError(f"estimator must be a classifier, got a {type(unwrapped(self.estimator_)).__name__}")
        if isinstance(self.estimator_.classes_, list):
            raise ValueError(
                f"estimator must have one output, got {len(self.estimator_.classes_)}; fit one classifier for each"
            )
        n_columns = getattr(self.estimator_, "n_features_in_", rows.shape[1])
        if n_columns != rows.shape[1]:
            raise ValueError(
                f"X must have the {n_columns} columns that estimator was fitted to, got {rows.shape[1]}; give the "
                "columns of its training rows"
            )

    def _try(self, table: Any, rows: Matrix) -> None:
        """Try the classifier on some training rows: whether it has probabilities, and decides by the largest."""
        self._has_probabilities = hasattr(self.estimator_, "predict_proba")
        if not self._has_probabilities:
            warnings.warn(
                f"{type(unwrapped(self.estimator_)).__name__} has no predict_proba: the probabilities are shares of "
                "its decisions; wrap it in sklearn.calibration.CalibratedClassifierCV for probabilities",
                stacklevel=3,
            )
        self._decides_by_largest = True
        whole = np.flatnonzero(~np.isnan(rows).any(axis=1))[:_TRIED_ROWS]
        if len(whole):
            _, decisions = self._classify(rows[whole], table, whole)
            chosen = self._places(self.estimator_.predict(_rows_of(table, whole)))
            self._decides_by_largest = bool((chosen == decisions).all())

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, shape (n_classes,)."""
        self._check_fitted("estimator_")
        classes: NDArray[Any] = self.estimator_.classes_
        return classes

    def _check_fitted(self, attribute: str) -> None:
        # `check_is_fitted` collects all tags first, which takes as long as a row of a small classifier.
        if attribute not in vars(self):
            check_is_fitted(self, attribute)

    def _places(self, labels: Any) -> NDArray[np.intp]:
        """Return the places of decisions among the classes."""
        classes = np.asarray(self.classes_)
        order = np.argsort(classes)
        return np.asarray(order[np.searchsorted(classes, labels, sorter=order)], dtype=np.intp)

    def _classify(
        self, completed: Matrix, table: Any, of_rows: NDArray[np.intp] | None = None
    ) -> tuple[Matrix, NDArray[np.intp]]:
        """Return the probabilities and the places of the decisions for complete coded rows."""
        of_rows = np.zeros(len(completed), dtype=np.intp) if of_rows is None else of_rows
        rows = self._coding.decode(completed, table, of_rows)
        if not self._has_probabilities:
            decisions = self._places(self.estimator_.predict(rows))
            return np.eye(len(self.classes_))[decisions], decisions
        probabilities = self._probabilities(rows)
        if self._decides_by_largest:
            return probabilities, probabilities.argmax(axis=1)
        return probabilities, self._places(self.estimator_.predict(rows))

    def _probabilities(self, rows: Any) -> Any:
        """Return the classifier's own answer; ValueError if these are no probabilities."""
        answer = self.estimator_.predict_proba(rows)
        found = np.asarray(answer)
        shape = (len(rows), len(self.classes_))
        off = np.abs(found.sum(axis=1) - 1.0) if found.shape == shape else np.array([np.nan])
        if not (off <= _SUM_TOLERANCE).all():
            got = f"a sum of {float(found[int(off.argmax())].sum())!r}" if found.shape == shape else f"{found.shape}"
            raise ValueError(
                f"predict_proba of {type(unwrapped(self.estimator_)).__name__} must give each row probabilities that "
                f"sum to 1, shape {shape}, got {got}; wrap it in sklearn.calibration.CalibratedClassifierCV"
            )
        return answer

    @overload
    def predict_proba(self, X: Any, return_std: Literal[False] = False) -> NDArray[np.float64]: ...

    @overload
    def predict_proba(self, X: Any, return_std: Literal[True]) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

    def predict_proba(self, X: Any, return_std: bool = False) -> Any:
        """Return the expected probability of each class given what is known.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            NaN, None or NA where a value is missing; a row of nothing else gets the expectation over all rows. A
            category that no training row has is left to the classifier, and says nothing of what is missing.
        return_std : bool
            Whether to return standard errors, too.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
        standard_errors : ndarray of shape (n_rows, n_classes)
            Of the draws; 0 where a probability is exact, as in rows without gaps. Only with `return_std`.

        Raises
        ------
        ValueError
            When X has other columns than the training rows, or a value that its column cannot have, or the classifier
            gives no probabilities.

        Warns
        -----
        UnknownValuesWarning
            When a column of several rows has no known category, or numbers far outside of the range of the training
            rows.
        """
        table, rows, gaps = self._rows_with_gaps(X)
        if not len(gaps):
            probabilities = self._of_whole_rows(table)
            return (probabilities, np.zeros(np.shape(probabilities))) if return_std else probabilities
        result = np.empty((len(rows), len(self.classes_)))
        errors = np.zeros_like(result)
        whole = np.delete(np.arange(len(rows)), gaps)
        if len(whole):
            result[whole] = self._of_whole_rows(_rows_of(table, whole))
        if self._forest is not None and isinstance(self.density_, ProductMixture):
            result[gaps] = self._forest.expected(self.density_, rows[gaps])
        else:
            answers = self._answers(table, rows, gaps, self.n_draws)
            result[gaps], errors[gaps] = answers.means, answers.standard_errors
        return (result, errors) if return_std else result

    def _of_whole_rows(self, table: Any) -> Any:
        if self._has_probabilities:
            return self._probabilities(table)
        return np.eye(len(self.classes_))[self._places(self.estimator_.predict(table))]

    def _answers(self, table: Any, rows: Matrix, gaps: NDArray[np.intp], n_draws: int | Literal["auto"]) -> Answers:
        """Return the answers over draws for the rows with gaps, in as many threads as there may be."""

        def answers(part: NDArray[np.intp]) -> Answers:
            def classify(completed: Matrix, places: NDArray[np.intp]) -> tuple[Matrix, NDArray[np.intp]]:
                return self._classify(completed, table, part[places])

            return answers_of_draws(classify, self.density_, rows[part], n_draws, self._seed)

        n_parts = min(_n_threads(self.n_jobs), len(gaps))
        if n_parts < 2:
            return answers(gaps)
        with ThreadPoolExecutor(n_parts) as threads:
            return Answers.joined(list(threads.map(answers, np.array_split(gaps, n_parts))))

    def _rows_with_gaps(self, X: Any) -> tuple[Any, Matrix, NDArray[np.intp]]:
        """Return the checked table, coded rows, and the places of those with gaps."""
        self._check_fitted("density_")
        table, _ = self._table(X)
        rows = self._coding.encode(table)
        gaps = np.flatnonzero(np.isnan(rows).any(axis=1))
        if len(gaps):
            self._warn_of_strange(table, rows)
        return table, rows, gaps

    def _warn_of_strange(self, table: Any, rows: Matrix) -> None:
        """Warn of columns without a known category, or with numbers far from those of the training rows."""
        quantiles = self.density_.margins.quantiles
        low, high = quantiles[:, 0], quantiles[:, -1]
        reach = high - low
        with np.errstate(invalid="ignore"):
            far = ((rows < low - reach) | (rows > high + reach)) & (reach > 0) & (quantiles.shape[1] >= _FEW_ROWS)
        for place in np.flatnonzero((far | (rows == UNKNOWN)).any(axis=0)).tolist():
            name, values = self._coding.names[place], self._coding.categories[place]
            known = rows[~np.isnan(rows[:, place]), place]
            if values is not None and len(known) > 1 and (known == UNKNOWN).all():
                cells = np.asarray(table.iloc[:, place] if hasattr(table, "iloc") else table[:, place], dtype=object)
                strange = cells[int((rows[:, place] == UNKNOWN).argmax())]
                warn_of_unknown(name, str(strange), [str(value) for value in values])
            elif values is None and far[:, place].any():
                warnings.warn(
                    f"column {name!r} has numbers far outside of {float(low[place]):.6g} to {float(high[place]):.6g}, "
                    f"the range of the training rows, such as {float(rows[far[:, place], place][0]):.6g}: they count "
                    "as its ends for what is missing; check the units",
                    UnknownValuesWarning,
                    stacklevel=4,
                )

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the largest expected probability; for a row without gaps what the classifier predicts.

        For a classifier that decides otherwise than by its largest probability, as one with a tuned threshold does, a
        row with gaps gets the decision of most completions.
        """
        table, rows, gaps = self._rows_with_gaps(X)
        if not len(gaps):
            predicted: NDArray[Any] = self.estimator_.predict(table)
            return predicted
        return np.asarray(self.classes_)[self._decisions(table, rows, gaps)[0]]

    def _decisions(
        self, table: Any, rows: Matrix, gaps: NDArray[np.intp], n_draws: int | Literal["auto"] | None = None
    ) -> tuple[NDArray[np.intp], Answers | None]:
        """Return the place of each row's decision, and the answers over draws if there are any."""
        decisions = np.empty(len(rows), dtype=np.intp)
        whole = np.delete(np.arange(len(rows)), gaps)
        if len(whole):
            decisions[whole] = self._places(self.estimator_.predict(_rows_of(table, whole)))
        exact = self._forest is not None and self._decides_by_largest
        answers = None
        if n_draws is not None or not exact:
            answers = self._answers(table, rows, gaps, n_draws or self.n_draws)
        if exact and self._forest is not None and isinstance(self.density_, ProductMixture):
            decisions[gaps] = self._forest.expected(self.density_, rows[gaps]).argmax(axis=1)
        elif answers is not None:
            decisions[gaps] = (answers.means if self._decides_by_largest else answers.votes).argmax(axis=1)
        return decisions, answers

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def decision_stability(self, X: Any) -> DecisionStability:
        """Return the decision of each row, and the probability that it stays once everything is known.

        This is the same-decision probability: the share of completions, 400 of them with ``n_draws="auto"``, that the
        classifier decides as `predict` decides the row. It holds for values that are missing at random.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            As in `predict_proba`.

        Returns
        -------
        DecisionStability

        Warns
        -----
        UnseenGapsWarning
            When a column has gaps that had none in the training rows.

        References
        ----------
        Choi, Xue and Darwiche (2012).
        """
        table, rows, gaps = self._rows_with_gaps(X)
        probability, lower, upper = np.ones((3, len(rows)))
        if not len(gaps):
            return DecisionStability(self.estimator_.predict(table), probability, lower, upper)
        self._warn_of_unseen_gaps(rows)
        most = MOST_DRAWS if self.n_draws == "auto" else self.n_draws
        decisions, answers = self._decisions(table, rows, gaps, most)
        if answers is not None:
            votes = answers.votes[np.arange(len(gaps)), decisions[gaps]]
            probability[gaps] = votes / answers.n_draws
            lower[gaps], upper[gaps] = share_interval(votes, answers.n_draws)
        return DecisionStability(np.asarray(self.classes_)[decisions], probability, lower, upper)

    def _asker(self) -> ExpectedColumns:
        self._check_fitted("density_")
        return ExpectedColumns(
            self,
            tuple(range(len(self._coding.names))),
            lambda rows: self._table(rows)[0],
            self._coding.encode,
            self._classify,
            self._stability_of_unasked,
            self.density_,
            MOST_DRAWS if self.n_draws == "auto" else int(self.n_draws),
            self._seed,
            None if self._decides_by_largest else most_votes,
        )

    def _stability_of_unasked(self, X: Any) -> Vector:
        """Return the stability of rows of which some values were not asked for, so that their gaps say nothing."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenGapsWarning)
            return self.decision_stability(X).probability

    def _warn_of_unseen_gaps(self, rows: Matrix) -> None:
        unseen = np.isnan(rows).any(axis=0) & ~self._gaps_seen
        if not unseen.any():
            return
        names = names_text([self._coding.names[place] for place in np.flatnonzero(unseen).tolist()])
        seen = "no gaps" if not self._gaps_seen.any() else f"none in {names}"
        warnings.warn(
            f"values are missing in {names}, but the training rows had {seen}: the stability can be relied on only if "
            "values are missing at random, not because of what they are",
            UnseenGapsWarning,
            stacklevel=3,
        )

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how metadata is routed: that of `fit` to the classifier."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The tags of a frozen classifier are copies of those inside.
        given = self.estimator.estimator if isinstance(self.estimator, FrozenEstimator) else self.estimator
        inner = get_tags(given).classifier_tags
        if inner is not None:
            tags.classifier_tags.multi_class = inner.multi_class
            tags.classifier_tags.poor_score = inner.poor_score
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags


def _n_threads(n_jobs: int | None) -> int:
    """Return the number of threads, by the rule of joblib: -1 for all processors, -2 for all but one."""
    if n_jobs is None:
        return 1
    return n_jobs if n_jobs > 0 else max((os.cpu_count() or 1) + 1 + n_jobs, 1)


def _rows_of(table: Any, places: NDArray[np.intp]) -> Any:
    return table.iloc[places] if hasattr(table, "iloc") else table[places]


def _repeated(value: Any, n_rows: int, places: NDArray[np.intp]) -> Any:
    """Return metadata of rows for each completion; anything else as it is."""
    return np.asarray(value)[places] if np.ndim(value) > 0 and len(value) == n_rows else value
