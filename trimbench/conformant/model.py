"""Models that agree with a logistic regression, and predict where features are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._typing import Matrix, Vector
from trimbench.acquisition.policy import Asking
from trimbench.conformant.asking import ConformantAsker
from trimbench.conformant.distribution import Component, ConformantDistribution
from trimbench.conformant.evidence import nearest_values
from trimbench.conformant.explanations import (
    By,
    ContrastiveExplanation,
    Explanation,
    SufficientExplanation,
    contrast,
    explain,
)
from trimbench.conformant.layout import as_table, chunks
from trimbench.conformant.normal_gaps import same_decision_of_normals
from trimbench.conformant.probabilistic import ProbabilisticExplanation, explain_with_probability
from trimbench.conformant.same_decision import same_decision_bounds
from trimbench.networks.naive_bayes import NaiveBayes, free_class_variable


class ConformantModel(ConformantDistribution, Asking):
    """A distribution over classes and features whose classifications are those of a logistic regression.

    It has one component, a naive Bayes model, or several, each of which conforms with the same logistic regression:
    the class of a complete row has the probabilities of the classifier in every component, hence in their mixture, too,
    whatever the weights. Only the density of the features differs between components. The real-valued features of a
    component are independent in each class, or have one covariance in all classes, in which binary features and the
    values of categorical ones take part as numbers.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    weights : ndarray of shape (n_columns, n_classes)
    biases : ndarray of shape (n_classes,)
    layout : FeatureLayout
    log_weights : ndarray of shape (n_components,)
        Logarithms of the shares of the components.
    covariance : {"full", "diagonal"}
        Whether the real-valued features have a covariance.
    components : tuple of Component
        With their `tilts`, `log_probabilities`, `missing_scores`, `real_moments` and `normal`.
    objectives : tuple of float
        The objective at the start and after each step of expectation-maximisation: the log-likelihood of the observed
        values plus that of the prior up to a constant, divided by the number of training rows. It never falls. Empty
        for one component of complete rows, which needs no steps.
    log_prior : ndarray of shape (n_classes,)
        Logarithm of the class distribution: what is predicted when everything is missing.
    residual : float
        Largest violation of the moment equations over the components: the certificate of the optimum.
    column_names : tuple of str, optional
        The columns of the data frame that the classifier or the model was fitted to.

    Examples
    --------
    >>> import numpy as np, trimbench as tb
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 1]
    >>> model = tb.conform(LogisticRegression().fit(X, y), X)
    >>> model.predict_proba([[0, 1], [0, np.nan]]).round(2)
    array([[0.25, 0.75],
           [0.29, 0.71]])
    """

    def conformity_error(self, X: ArrayLike) -> float:
        """Return the largest difference between the model's own conditional probabilities and the classifier's.

        The model's are computed from the class distribution and the probabilities of all features by Bayes' rule, the
        classifier's from its weights. With several components it is the largest over them, which bounds the mixture's.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            Complete rows.

        Raises
        ------
        ValueError
            When a feature is real-valued, or a value is missing or not allowed.
        """
        return max(_conformity_error(part, X, self.column_names) for part in self.components)

    @overload
    def explain(self, x: ArrayLike, against: Any = None, delta: None = None) -> SufficientExplanation: ...

    @overload
    def explain(
        self, x: ArrayLike, against: Any = None, *, delta: float, max_sets: int = 1, max_evaluations: int | None = None
    ) -> ProbabilisticExplanation: ...

    def explain(
        self,
        x: ArrayLike,
        against: Any = None,
        delta: float | None = None,
        max_sets: int = 1,
        max_evaluations: int | None = None,
    ) -> Explanation:
        """Return the smallest set of features that explains the classification of one row.

        Without `delta`, this is the sufficient explanation of the paper: the fewest supporting features that keep the
        *expected prediction* while all opposing features are shown. With it, the fewest features that keep the *class*:
        what is not shown, opposing features included, is drawn from the model given what is, and the completed row has
        the class with probability at least `delta`. With ``delta=1`` every possible completion has it.
        Models of several components or with a covariance need `delta`, as their log-odds do not add up over the
        features; with a covariance it must be below 1, as a number may then take any value.

        Parameters
        ----------
        x : array of shape (n_columns,)
            Values of one row; a missing feature (NaN) is part of no explanation.
        against : label, optional
            The class to compare the predicted one with. If there are more than two, it is required without `delta`;
            with `delta`, the predicted class is kept against all others by default.
        delta : float, optional
            Above 0 and up to 1; below 1 for a model with a covariance.
        max_sets : int
            With `delta`: how many smallest sets to list.
        max_evaluations : int, optional
            With `delta`, and too many features for a table of all sets, or a covariance: for how many sets the search
            may bound the probability. By default 25, or 20,000 divided by the number of features if that is more.

        Returns
        -------
        Explanation
            A `trimbench.conformant.explanations.SufficientExplanation`, or with `delta` a
            `trimbench.conformant.probabilistic.ProbabilisticExplanation`.

        Raises
        ------
        ValueError
            When `x` is not a row of the model, `against` not another class, or a parameter is missing or not allowed.

        References
        ----------
        Khosravi et al. (2019), Definitions 4 and 5; Wang, Khosravi and Van den Broeck (2021).
        """
        if delta is None and not self.is_naive:
            n, further = self.n_components, " and a covariance" if self.normals is not None else ""
            raise ValueError(
                f"delta must be given to explain a model of {n} component{'s' * (n > 1)}{further}, whose evidence does "
                "not add up, got None; try delta=0.95, or learn the model with n_components=1 and "
                "covariance='diagonal'"
            )
        if delta is None:
            return explain(self, x, against).named(self.feature_names)
        found = explain_with_probability(self, x, delta, against, max_sets=max_sets, max_evaluations=max_evaluations)
        return found.named(self.feature_names)

    def contrast(
        self, x: ArrayLike, against: Any = None, *, by: By = "change", max_sets: int = 1
    ) -> ContrastiveExplanation:
        """Return the fewest features whose change, or whose loss, would give one row another class.

        The classifier alone decides what a change does to a complete row. The costs of losing features do not add up in
        models of several components or with a covariance: all sets are tried, size by size, as long as they are few;
        after that, a small set is found that need not be the smallest, see `ContrastiveExplanation.size_lower_bound`.

        Parameters
        ----------
        x : array of shape (n_columns,)
            Values of one row; a missing feature (NaN) stays missing.
        against : label, optional
            The class that is to have the higher score; any other by default.
        by : {"change", "loss"}
            Whether the features take the values that are worst for the predicted class, with all others unchanged (the
            contrastive explanation of the literature), or become missing, so that the expected prediction counts.
        max_sets : int
            How many smallest sets to list.

        Raises
        ------
        ValueError
            When `x` is not a row of the model, or has a missing value with ``by="change"`` and several components, when
            `against` is not another class, or a parameter is not allowed.

        References
        ----------
        Ignatiev, Narodytska, Asher and Marques-Silva (2020).
        """
        return contrast(self, x, against, by=by, max_sets=max_sets).named(self.feature_names)

    def _asker(self) -> ConformantAsker:
        # The tables of all values take longer than the answer for a few rows. A copy with other names has its own.
        kept: ConformantAsker | None = vars(self).get("_kept_asker")
        if kept is None or kept.model is not self:
            kept = vars(self)["_kept_asker"] = ConformantAsker(self)
        return kept

    @overload
    def same_decision_probability(self, X: ArrayLike, interval: Literal[False] = False) -> Vector: ...

    @overload
    def same_decision_probability(self, X: ArrayLike, interval: Literal[True]) -> tuple[Vector, Vector]: ...

    def same_decision_probability(self, X: ArrayLike, interval: bool = False) -> Vector | tuple[Vector, Vector]:
        """Return the probability that each row keeps its class once all of its features are known.

        Features that are missing are drawn from the model given those that are observed. It is exact where the possible
        completions can be added up, and for two classes also where numeric features have a covariance. Else it is the
        middle of certified bounds, which are usually within 0.001; of several classes and a covariance, the middle of
        an interval that misses the probability once in a thousand rows.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            NaN marks a missing feature. A complete row keeps its class with probability 1.
        interval : bool
            Whether to return the bounds instead.

        Returns
        -------
        ndarray of shape (n_rows,), or two of them: lower and upper bounds

        Raises
        ------
        ValueError
            As `predict_proba`.

        References
        ----------
        Choi, Xue and Darwiche (2012), *Same-Decision Probability: A Confidence Measure for Threshold-Based Decisions*.
        """
        table = np.asarray(as_table(X, self.layout.n_columns, columns=self.column_names), dtype=np.float64)
        if self.normals is None:
            lower, upper = same_decision_bounds(self, table).T
        else:
            lower, upper = same_decision_of_normals(self, table, self.decision_scores(table).argmax(axis=1)).T
        return (lower, upper) if interval else (lower + upper) / 2

    def sample(self, n_rows: int, rng: np.random.Generator) -> tuple[Matrix, NDArray[Any]]:
        """Draw complete rows and their classes.

        A feature of few values that takes part in a covariance has the value that its numbers are nearest to, and so
        only about as often as it should.

        Parameters
        ----------
        n_rows : int
        rng : numpy.random.Generator

        Returns
        -------
        rows : ndarray of shape (n_rows, n_columns)
        labels : ndarray of shape (n_rows,)
        """
        if n_rows < 0:
            raise ValueError(f"n_rows must be 0 or more, got {n_rows!r}")
        rows, labels = np.empty((n_rows, self.layout.n_columns)), np.empty(n_rows, dtype=np.intp)
        component = rng.choice(self.n_components, size=n_rows, p=np.exp(self.log_weights))
        for place, part in enumerate(self.components):
            here = np.flatnonzero(component == place)
            labels[here] = rng.choice(len(self.classes), size=len(here), p=np.exp(part.log_prior))
            rows[here] = _draw_features(part, labels[here], rng)
        return rows, self.classes[labels]

    def to_naive_bayes(self) -> NaiveBayes:
        """Return the model as a `NaiveBayes` with binary features and the names of the columns, for example to trim it.

        Its class variable is ``"class"``, with underscores added while a column is called so.

        Raises
        ------
        ValueError
            When a feature is categorical or real-valued, or there are several components.
        """
        if self.n_components > 1:
            raise ValueError(f"to_naive_bayes takes one component, got {self.n_components}; take n_components=1")
        if self.layout.categorical or self.layout.real:
            raise ValueError("to_naive_bayes takes binary features only; conform without categorical and real")
        (part,) = self.components
        return NaiveBayes(
            np.exp(self.log_prior),
            list(np.exp(np.stack([part.log_complements, part.log_probabilities], axis=2))),
            feature_names=self.column_names,
            class_names=[str(label) for label in self.classes.tolist()],
            class_variable=free_class_variable(self.column_names or ()),
        )


def _draw_features(model: Component, labels: NDArray[np.intp], rng: np.random.Generator) -> Matrix:
    rows = np.zeros((len(labels), model.layout.n_columns))
    theta, binary = np.exp(model.log_probabilities), model.layout.binary
    with np.errstate(invalid="ignore"):  # of those that take part in a covariance
        rows[:, binary] = rng.random((len(labels), len(binary))) < theta[binary].T[labels]
    for columns in map(list, model.layout.categorical):
        cumulative = np.cumsum(theta[columns], axis=0).T[labels]
        chosen = (rng.random((len(labels), 1)) * cumulative[:, -1:] >= cumulative).sum(axis=1)
        rows[np.arange(len(labels)), np.array(columns)[chosen]] = 1.0
    means, variances = model.real_moments
    rows[:, model.layout.real_columns] = rng.normal(means.T[labels], np.sqrt(variances))
    if model.normal is not None:
        moved = (model.normal.means[0][:, None] + model.normal.slopes[0]).T[labels]
        noise = rng.standard_normal(moved.shape) @ np.linalg.cholesky(model.normal.covariances[0]).T
        values = model.coding.means + model.coding.scales * (moved + noise)
        rows[:, model.coding.joint_columns] = values
        for place in set(model.coding.joint) - set(model.layout.feature_of_column[model.layout.real_columns].tolist()):
            columns = list(model.layout.features[place])
            codes = nearest_values(model.layout, model.coding, place, values)
            rows[:, columns] = np.eye(len(columns))[codes] if len(columns) > 1 else codes[:, None]
    return rows


# How far a conformant model's own conditional probabilities are from those of its classifier.


def _conformity_error(model: Component, X: ArrayLike, column_names: Sequence[str] | None) -> float:
    """Return the largest difference between P(class | x) by Bayes' rule and by the weights of the classifier.

    Bayes' rule is applied to log-odds against the first class: with thousands of features, log P(class, x) itself is so
    large that only its rounding error would be seen. Rows to which the model gives probability 0 are left out.
    """
    from scipy.special import softmax

    if model.layout.real:
        raise ValueError("conformity_error takes discrete features only, got a model with real-valued ones")
    table = as_table(X, model.layout.n_columns, columns=column_names)
    binary = model.layout.binary
    of_one, never_one = _log_odds(model.log_probabilities)
    of_zero, never_zero = _log_odds(model.log_complements[binary])
    prior = model.log_prior - model.log_prior[0]
    worst = 0.0
    for part in chunks(table, model.layout, missing=False):
        zeros = 1 - part[:, binary]
        possible = ~((part[:, never_one] > 0).any(axis=1) | (zeros[:, never_zero] > 0).any(axis=1))
        own = prior + part[possible] @ of_one + zeros[possible] @ of_zero
        difference = softmax(own, axis=1) - softmax(part[possible] @ model.weights + model.biases, axis=1)
        worst = max(worst, float(np.abs(difference).max(initial=0.0)))
    return worst


def _log_odds(logs: Matrix) -> tuple[Matrix, NDArray[np.bool_]]:
    """Return logarithms of probabilities minus that of the first class, and which rows have probability 0."""
    never: NDArray[np.bool_] = (logs == -np.inf).any(axis=1)
    finite = np.where(never[:, None], 0.0, logs)
    return finite - finite[:, :1], never
