"""Trimmed Bayesian classifiers of raw tables as a scikit-learn classifier and selector, and their files."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from trimbench._checks import check_one_of, is_number
from trimbench.acquisition.policy import Asking
from trimbench.estimators.acquisition import TrimmedColumns
from trimbench.estimators.columns import (
    check_no_dates,
    checked_cells,
    checked_rows,
    checked_training_rows,
    column_names,
    cost_by_name,
    groups_by_name,
    selectable,
)
from trimbench.estimators.documented import Documented
from trimbench.estimators.partial import TrimmedInParts
from trimbench.estimators.pipeline_steps import unwrapped
from trimbench.estimators.pipeline_values import Density, columns_of, distribution_of, learned, rows_of
from trimbench.networks.discretize import ColumnRule, CutRule, Discretizer
from trimbench.networks.discretize import IdentifierColumnWarning as IdentifierColumnWarning
from trimbench.networks.formats.forms import Parameters, labels_of, labels_text, unplain
from trimbench.networks.formats.parsing import read_json, write_json
from trimbench.networks.learning import CodedColumns
from trimbench.networks.values import checked_names, names_text
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.problem import Limits, checked_choice
from trimbench.trimming.result import Trimming
from trimbench.trimming.search.log_loss import HeldOutEvidence, lowest_log_loss
from trimbench.trimming.search.row_scores import CodedRows
from trimbench.trimming.trim import trim

if TYPE_CHECKING:
    from trimbench.trimming.search.cross_fitting import Prefer, RowsWeight

Objective = Literal["agreement", "log_loss"]


class TrimmedClassifier(TrimmedInParts, Asking, Documented, ClassifierMixin, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """A Bayesian classifier on the few columns with which it most often decides as it would with all of them.

    It learns a distribution over all columns, which are cut into categories, and keeps the columns within the budget
    whose classifier agrees most often with that of all columns: on the training rows, under the distribution, or on a
    blend of both. As a selector, it returns the columns that are kept. With two classes, the second is predicted if its
    probability reaches the threshold, which the trimmed classifier adapts; with more, the most probable class.

    Parameters
    ----------
    budget : float
        Largest sum of costs.
    costs : mapping, Series or sequence, optional
        Cost of each column, by name or position, or of each group. Default: 1 for each column.
    groups : mapping from name to columns, optional
        Columns that are bought together for one cost.
    required, forbidden : sequence of names or positions, optional
        Columns that are always kept, or always left out.
    density : {"naive_bayes", "tree_augmented", "mixture"}
        The distribution: columns are independent given the class, or each may depend on one other, or they are
        independent given the class and a hidden component of it.
    n_components : int
        Components of each class in a mixture.
    cut : {"mdl", "mean", "median"}
        How numbers are cut: by minimum description length, where the classes differ, or once, at the mean or median.
    smoothing : float
        Pseudo-count of every category.
    rows_weight : float in [0, 1] or "auto"
        Weight of the training rows in the agreement that is maximised: 0 the distribution alone, 1 the rows alone;
        ``"auto"`` compares several by cross-validation.
    objective : {"agreement", "log_loss"}
        What the columns are kept for: the decisions of the classifier with all columns, or the lowest log loss of their
        own naive Bayes classifier in cross-validation on the training rows. By log loss the threshold stays as it is,
        there may be fewer columns than the budget allows, and `rows_weight` and `prefer` must be left as they are.
    prefer : {"best", "cheapest"}
        The best columns within the budget, or the cheapest that are within one standard error of the best on rows.
    threshold : float in [0, 1]
        Of the classifier with all columns, for two classes; must be 0.5 for more, where it has no effect.
    time_limit : float or None
        Seconds for the search; None gives it the time to prove its result. It takes longest with about 60 columns:
        fewer are searched sooner, and with many more the result is bounded, not proven. A search that ends by itself
        finds the same columns whatever the limit; one that is stopped fills the budget, and warns.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If fitted on a data frame.
    features_ : tuple of str
        Names of the columns that are kept; ``x0, x1, ...`` for those of an array.
    trimming_ : Trimming
        With the agreements under the distribution and on the rows, and the bound. None by log loss, and after `load`.
    log_loss_ : LogLossSelection
        By log loss: the cross-validated log loss, and a lower bound on that of all columns within the budget. Numbers
        are cut once, by the classes of all training rows, so the loss on new rows may be higher.
    classifier_ : BayesianClassifier
        The trimmed classifier, of categories.
    discretizer_ : Discretizer
        How columns become categories, and which category stands for values that training rows do not have.

    Notes
    -----
    The columns that are left out may hold anything when predicting (in an array of numbers, anything but infinity).
    `predict` compares the probability with ``classifier_.threshold``, which need not be 1/2.

    Of columns that serve equally well one is kept, which need not be the first; another order may keep others. The root
    of the tree of ``density="tree_augmented"`` is the first column: without smoothing any root would give the same
    distribution; with it the probabilities, and so which of nearly equally good columns is kept, depend on the order.

    References
    ----------
    Choi and Van den Broeck (2018).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> trimmed = TrimmedClassifier(budget=3, rows_weight=0).fit(X.filter(like="mean"), y)
    >>> len(trimmed.features_), trimmed.score(X.filter(like="mean"), y) > 0.9
    (3, True)
    """

    def __init__(
        self,
        budget: float = 5,
        *,
        costs: Any = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        required: Sequence[Any] | None = None,
        forbidden: Sequence[Any] | None = None,
        density: Density = "naive_bayes",
        n_components: int = 3,
        cut: CutRule = "mdl",
        smoothing: float = 1.0,
        rows_weight: RowsWeight = "auto",
        objective: Objective = "agreement",
        prefer: Prefer = "best",
        threshold: float = 0.5,
        time_limit: float | None = 30.0,
    ) -> None:
        self.budget = budget
        self.costs = costs
        self.groups = groups
        self.required = required
        self.forbidden = forbidden
        self.density = density
        self.n_components = n_components
        self.cut = cut
        self.smoothing = smoothing
        self.rows_weight = rows_weight
        self.objective = objective
        self.prefer = prefer
        self.threshold = threshold
        self.time_limit = time_limit

    def fit(self, X: Any, y: ArrayLike) -> TrimmedClassifier:
        """Learn the distribution and trim its classifier.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            Numbers, text, truth values or pandas' categories, in a data frame or an array of objects; cells may be
            missing (NaN, None, NA).
        y : array of shape (n_rows,)

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When a parameter is not allowed, columns hold dates, durations or infinity, or there is only one class.

        Warns
        -----
        IdentifierColumnWarning
            When text or categories have more than 2 values, all different, or more than 10 values in fewer than twice
            as many cells, not counting missing ones; they are left out. A column without values: `UserWarning`.
        sklearn.exceptions.ConvergenceWarning
            When the time limit stopped the search; it says what is certified about the result, and how to go on.
        """
        self._trim(*self._learn(X, y))
        return self

    def fit_budgets(self, X: Any, y: ArrayLike, budgets: Sequence[float]) -> list[TrimmedClassifier]:
        """Return a fitted classifier for each of several budgets, as `fit` returns it for one.

        The distribution is learned once, which takes most of the time where there are thousands of columns.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
        budgets : sequence of float
            They take the place of `budget`.

        Returns
        -------
        list of TrimmedClassifier
            New ones, one for each budget, in the order given; this one stays as it is.

        Raises
        ------
        ValueError
            As `fit` does.
        """
        learned_once = clone(self)
        parts = learned_once._learn(X, y)
        found = []
        for budget in budgets:
            own = copy.copy(learned_once)
            own.budget = budget
            own._trim(*parts)
            found.append(own)
        return found

    def _learn(self, X: Any, y: ArrayLike) -> tuple[BayesianClassifier, list[str], CodedRows | HeldOutEvidence]:
        """Learn the distribution, and return its classifier, the names of the columns and what to judge them by."""
        check_one_of("density", self.density, get_args(Density))
        self._check_objective()
        frame, labels = checked_training_rows(self, X, y)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least two classes, got one class: {self.classes_.tolist()}")
        names = [str(name) for name in frame.columns]
        for place, kind in enumerate(frame.dtypes):
            if kind.kind not in "biufc":
                check_no_dates(frame.iloc[:, place], names[place])
        self.discretizer_ = Discretizer.fit(frame, codes, self.cut)
        coded = self.discretizer_.codes(frame)
        class_names = checked_names([str(label) for label in self.classes_], "labels of y", of_values=True)
        columns = CodedColumns(coded, names, [list(rule.categories) for rule in self.discretizer_.rules])
        model, target = learned(self.density, columns, codes, class_names, self.smoothing, self.n_components)
        classifier = distribution_of(model, target, self.threshold, names)
        if self.objective == "log_loss":
            return classifier, names, HeldOutEvidence.of(coded, codes, classifier.cardinalities, self.smoothing)
        return classifier, names, CodedRows(coded)

    def _check_objective(self) -> None:
        check_one_of("objective", self.objective, get_args(Objective))
        if self.objective == "agreement":
            return
        for name, needed in (("density", "naive_bayes"), ("rows_weight", "auto"), ("prefer", "best")):
            got = getattr(self, name)
            if not isinstance(got, str) or got != needed:
                raise ValueError(f"{name} must be {needed!r} with objective='log_loss', got {got!r}; leave it out")

    @classmethod
    def from_fitted(cls, model: Any, *, target: str | None = None, rows: Any = None, **settings: Any) -> Any:
        """Return the trimmed classifier of a fitted model, whose distribution it uses.

        Parameters
        ----------
        model : fitted estimator, NaiveBayes, NaiveBayesMixture or BayesianNetwork
            As in `trimbench.trim`: `BernoulliNB`, `CategoricalNB`, `LogisticRegression` or a pipeline; or a model.
        target : str, optional
            The class variable of a network. Other models have one already.
        rows : array or DataFrame, optional
            Rows to search with, as the estimator takes them, or of value names. A logistic regression needs them.
        **settings
            Parameters of this class; those for learning have no effect.

        Returns
        -------
        TrimmedClassifier
            Fitted. Values that the model does not know are an error when predicting.

        Raises
        ------
        TypeError, ValueError
            When the model is of another kind or not fitted, or a parameter is not allowed.
        """
        trimmed = cls(**settings)
        if trimmed.objective != "agreement":
            raise ValueError(
                f"objective must be 'agreement' for a fitted model, got {str(trimmed.objective)[:80]!r}; a log loss "
                "needs labels: use fit"
            )
        found = columns_of(model, target, trimmed.threshold, rows_of(model, rows))
        distribution, trimmed.discretizer_, trimmed.classes_ = found
        names = [rule.name for rule in trimmed.discretizer_.rules]
        trimmed.n_features_in_, trimmed._column_labels = len(names), names
        inner = unwrapped(model)
        if hasattr(inner, "feature_names_in_") or not hasattr(inner, "n_features_in_"):
            trimmed.feature_names_in_ = np.array(names, dtype=object)
        coded = None if rows is None else CodedRows(trimmed.discretizer_.codes(checked_rows(trimmed, rows)))
        trimmed._trim(distribution, names, coded)
        return trimmed

    def _trim(self, classifier: BayesianClassifier, names: Sequence[str], rows: Any) -> None:
        if isinstance(rows, HeldOutEvidence):
            self._select(classifier, names, rows)
            return
        allowed = self._allowed(classifier, names)
        began = time.perf_counter()
        found = trim(
            classifier,
            self.budget,
            **allowed,
            rows=rows,
            rows_weight=self.rows_weight,
            prefer=self.prefer,
            time_limit=self.time_limit,
        )
        if found.may_go_on:
            warnings.warn(self._open(found, time.perf_counter() - began), ConvergenceWarning, stacklevel=3)
        self.trimming_: Trimming | None = found
        self.classifier_ = found.classifier
        self.features_ = self.classifier_.features

    def _select(self, classifier: BayesianClassifier, names: Sequence[str], evidence: HeldOutEvidence) -> None:
        """Keep the columns of the lowest log loss; the threshold stays."""
        choice = checked_choice(classifier.features, self.budget, **self._allowed(classifier, names))
        found = lowest_log_loss(evidence, choice, Limits(self.time_limit))
        if not found.optimal:
            warnings.warn(
                f"the search was stopped by time_limit={self.time_limit} seconds: the columns that are kept have a "
                f"cross-validated log loss of {found.log_loss:.4f}, and no others within the budget less than "
                f"{found.lower_bound:.4f}; time_limit=None may find better ones",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.trimming_, self.log_loss_ = None, found
        self.classifier_ = classifier.with_features([classifier.features[place] for place in found.features])
        self.features_ = self.classifier_.features

    def _allowed(self, classifier: BayesianClassifier, names: Sequence[str]) -> dict[str, Any]:
        """Return what columns cost, and which are bought together, always kept or left out, as `trim` takes it."""
        if classifier.threshold is None and self.threshold != 0.5:
            raise ValueError(
                f"threshold must be 0.5 for {len(self.classes_)} classes, of which the most probable is given, got "
                f"{self.threshold!r}"
            )
        labels = self._column_labels
        groups = groups_by_name(self.groups, labels)
        required = [] if self.required is None else column_names(self.required, labels, "required")
        forbidden = [] if self.forbidden is None else column_names(self.forbidden, labels, "forbidden")
        constant = [rule.name for rule in self.discretizer_.rules if len(rule.categories) == 1]
        if len(constant) < len(names):
            # Columns that say nothing must not fill the budget.
            named = {*required, *forbidden}
            forbidden += [name for name in constant if name not in named]
        costs = cost_by_name(self.costs, labels, groups)
        return {"costs": costs, "groups": groups, "required": required, "forbidden": forbidden}

    def _open(self, found: Trimming, seconds: float) -> str:
        low = found.agreement_interval[0]
        sure = "" if found.confidence == 1.0 else f" (with a confidence of {found.confidence:.0%})"
        limit = Limits(self.time_limit).time_limit
        by = f"time_limit={limit:g} seconds" if limit else "the number of its evaluations"
        why = ", as exact values may take longer" if limit and seconds < limit / 2 else ""
        return (
            f"the search was stopped by {by}{why}: under the distribution, the {len(found.features)} columns that are "
            f"kept agree with all columns with a probability of {math.floor(1e4 * low) / 1e4:.4f} at least, and no "
            f"others within the budget more often by more than {found.upper_bound - low:.1e}{sure}; "
            f"{'time_limit=None' if limit else 'trimming_.resume()'} may find better ones"
        )

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, given the columns that are kept.

        Parameters
        ----------
        X : array or DataFrame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)

        Raises
        ------
        ValueError
            When a kept column has a value that its rule does not cover.
        """
        codes = self._coded(X)
        names = self.classifier_.class_names
        return self.classifier_.predict_proba_of(codes)[:, [names.index(str(label)) for label in self.classes_]]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row, from the columns that are kept."""
        codes = self._coded(X)
        found = self.classifier_.predict_of(codes)
        place = {str(name): code for code, name in enumerate(self.classes_)}
        labels: NDArray[Any] = self.classes_[[place[name] for name in found.tolist()]]
        return labels

    def transform(self, X: Any) -> Any:
        """Return the columns that are kept, as an array of shape (n_rows, n_kept) or as `set_output` says."""
        check_is_fitted(self, "classifier_")
        return super().transform(selectable(self, X))

    def save(self, path: str | Path) -> None:
        """Write the fitted classifier as JSON; floats keep every digit. `trimming_` is not written.

        Raises
        ------
        OSError
            When the file cannot be written; an older one is then untouched.
        """
        check_is_fitted(self, "classifier_")
        kept = set(self.features_)
        content = {
            "parameters": Parameters(type(self)).written(self),
            "has_column_names": hasattr(self, "feature_names_in_"),
            "classes": {"type": self.classes_.dtype.str, "labels": labels_text(self.classes_)},
            # Columns that are left out need no rule, only their place.
            "columns": [asdict(rule) if rule.name in kept else {"name": rule.name} for rule in self.discretizer_.rules],
            "classifier": {"kind": type(self.classifier_).__name__, **self.classifier_.to_dict()},
        }
        write_json(path, {"format": FORMAT, **content})

    @classmethod
    def load(cls, path: str | Path) -> Any:
        """Read a classifier that `save` wrote; ValueError when the file does not hold one."""
        return read_json(path, FORMAT, cls._of)

    @classmethod
    def _of(cls, content: Mapping[str, Any]) -> Any:
        estimator: Any = cls(**{name: unplain(value) for name, value in content["parameters"].items()})
        kind = content["classifier"]["kind"]
        check_one_of("kind of classifier", kind, _CLASSIFIERS)
        classifier = estimator.classifier_ = BayesianClassifier.from_dict(content["classifier"])
        estimator.features_ = classifier.features
        names = [*checked_names([column["name"] for column in content["columns"]], "columns")]
        estimator.discretizer_ = Discretizer(tuple(read_rule(column) for column in content["columns"]))
        rules = {rule.name: rule.categories for rule in estimator.discretizer_.rules}
        for name, values in zip(classifier.features, classifier.value_names, strict=True):
            if name not in rules:
                raise ValueError(f"columns must have every feature of the classifier, got none called {name!r}")
            if rules[name] != values:
                found = names_text(rules[name])
                raise ValueError(f"categories of column {name!r} must be its values {names_text(values)}, got {found}")
        estimator.n_features_in_, estimator._column_labels = len(names), names
        if content["has_column_names"]:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator.classes_ = labels_of(content["classes"]["type"], content["classes"]["labels"])
        classes = [str(label) for label in estimator.classes_]
        if sorted(classes) != sorted(classifier.class_names):
            known = names_text(classifier.class_names)
            raise ValueError(f"classes must be those of the classifier, {known}, got {names_text(classes)}")
        estimator.trimming_ = None
        return estimator

    def _asker(self) -> TrimmedColumns:
        check_is_fitted(self, "classifier_")
        places = {rule.name: place for place, rule in enumerate(self.discretizer_.rules)}
        positions = tuple(places[name] for name in self.features_)
        rules = tuple(self.discretizer_.rules[position] for position in positions)
        return TrimmedColumns(self, positions, self.classifier_._asker(), rules)

    def _coded(self, X: Any) -> NDArray[np.int64]:
        """Return the value indices of the kept columns, shape (n_rows, n_kept)."""
        check_is_fitted(self, "classifier_")
        rows = checked_cells(self, X)
        rules = {rule.name: place for place, rule in enumerate(self.discretizer_.rules)}
        places = [rules[name] for name in self.features_]
        kept = Discretizer(tuple(self.discretizer_.rules[place] for place in places))
        # The categories of these rules are the values of the classifier.
        return kept.codes(rows[:, places] if isinstance(rows, np.ndarray) else rows.iloc[:, places])

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "classifier_")
        kept = set(self.features_)
        return np.array([rule.name in kept for rule in self.discretizer_.rules])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags


# Trimmed estimators as JSON files.

FORMAT = "trimbench.TrimmedClassifier/1"
# The second is what a classifier of the most probable class was called in older files.
_CLASSIFIERS = ("BayesianClassifier", "ArgMaxClassifier")


def read_rule(content: Mapping[str, Any]) -> ColumnRule:
    """Return the rule of one column; ValueError if its cuts or categories are not allowed."""
    name = content["name"]
    if "categories" not in content:
        return ColumnRule(name, ("any",), missing="any", fallback="any")
    categories = checked_names(content["categories"], f"categories of column {name!r}", of_values=True)
    cuts, missing, fallback = (content[key] for key in ("cuts", "missing", "fallback"))
    for what, category in (("missing", missing), ("fallback", fallback)):
        if category is not None and category not in categories:
            raise ValueError(f"{what} of column {name!r} must be one of its categories, got {str(category)[:80]!r}")
    if cuts is None:
        return ColumnRule(name, categories, None, missing, fallback)
    n_cuts = len(categories) - 1 - (missing is not None)
    are_ascending = all(map(is_number, cuts)) and all(a < b for a, b in pairwise([-math.inf, *cuts, math.inf]))
    if not are_ascending or len(cuts) != n_cuts:
        raise ValueError(f"cuts of column {name!r} must be {n_cuts} ascending finite numbers, got {str(cuts)[:80]}")
    return ColumnRule(name, categories, tuple(map(float, cuts)), missing, fallback)
