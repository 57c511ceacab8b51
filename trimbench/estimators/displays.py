"""Pictures of what the methods find, as scikit-learn's displays: trimming curves, evidence, and stability.

Each display holds the plain numbers that it draws; `from_estimator` computes them and draws them at once, and `plot`
draws them again, into axes of one's own. Only `plot` needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from trimbench._checks import check_whole
from trimbench._extras import check_installed
from trimbench._pictures import draw_evidence, draw_stability, new_axes
from trimbench._typing import Vector
from trimbench.conformant.explanations import Explanation
from trimbench.estimators.columns import column_names, cost_by_name, groups_by_name
from trimbench.estimators.trimmed import TrimmedClassifier
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.result import Trimming, wilson_interval
from trimbench.trimming.trim import trim, trimming_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class _Display:
    """Base class of the displays; `plot` sets `ax_` and `figure_`."""

    ax_: Axes
    figure_: Figure

    def _axes(self, ax: Axes | None) -> Axes:
        """Return the axes to draw into, new ones by default, and remember them."""
        check_installed("matplotlib", extra="plot", what=f"{type(self).__name__}.plot")
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure  # type: ignore[assignment]  # a subfigure draws like a figure
        return self.ax_


class TrimmingCurveDisplay(_Display):
    """How often trimmed classifiers agree with the original, by their budget.

    Parameters
    ----------
    budgets : sequence of float
    trimmings : sequence of Trimming
        The best trimming for each of the budgets, as `trimbench.trimming_curve` returns them.

    Attributes
    ----------
    agreement, lower, upper : ndarray of shape (n_budgets,)
        The agreement of each trimming, the certified lower end of it, and the bound on that of all others.
    ax_, figure_ : matplotlib Axes and Figure
        Of the last `plot`.

    Examples
    --------
    >>> import trimbench as tb
    >>> from trimbench.estimators import TrimmingCurveDisplay
    >>> model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> classifier = tb.BayesianClassifier(model, positive="0")
    >>> TrimmingCurveDisplay([0, 1], tb.trimming_curve(classifier, [0, 1])).agreement.round(2).tolist()
    [0.52, 1.0]
    """

    def __init__(self, budgets: Sequence[float], trimmings: Sequence[Trimming]) -> None:
        if len(budgets) != len(trimmings) or not len(budgets):
            raise ValueError(
                f"trimmings must have one trimming for each of the budgets, got {len(trimmings)} for {len(budgets)}"
            )
        self.budgets: Vector = np.asarray(budgets, dtype=np.float64)
        self.trimmings = tuple(trimmings)
        self.agreement: Vector = np.array([trimming.agreement for trimming in trimmings])
        self.lower: Vector = np.array([trimming.agreement_interval[0] for trimming in trimmings])
        self.upper: Vector = np.array([trimming.upper_bound for trimming in trimmings])

    @classmethod
    def from_estimator(
        cls,
        estimator: TrimmedClassifier | BayesianClassifier,
        budgets: Sequence[float],
        costs: Mapping[str, float] | Sequence[float] | None = None,
        *,
        time_limit: float | None = None,
        ax: Axes | None = None,
        **line: Any,
    ) -> Self:
        """Trim to each of several budgets, and draw the curve.

        Parameters
        ----------
        estimator : fitted TrimmedClassifier, or BayesianClassifier
            The former is trimmed anew, from all of its columns, under the distribution that it has learned.
        budgets : sequence of float
            0 or more.
        costs : mapping or sequence, optional
            As in `trimbench.trimming_curve`. Default: those of the estimator, or 1 for each feature.
        time_limit : float, optional
            Seconds for each of the searches.
        ax : matplotlib Axes, optional
        **line
            Given to `matplotlib.axes.Axes.plot`.

        Returns
        -------
        TrimmingCurveDisplay

        Raises
        ------
        ValueError
            When an argument is out of range, or the estimator was loaded from a file, which has no distribution of the
            columns that were left out.
        """
        if isinstance(estimator, TrimmedClassifier):
            trimmings = _trimmings_of(estimator, budgets, costs, time_limit)
        else:
            trimmings = trimming_curve(estimator, budgets, costs, time_limit=time_limit)
        return cls(budgets, trimmings).plot(ax=ax, **line)

    def plot(self, ax: Axes | None = None, **line: Any) -> Self:
        """Draw the agreement against the budget; what is not certified of it is shaded.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: those of a new figure.
        **line
            Given to `matplotlib.axes.Axes.plot`.
        """
        axes = self._axes(ax)
        order = np.argsort(self.budgets, kind="stable")
        style = {"marker": "o", "drawstyle": "steps-post", **line}
        (drawn,) = axes.plot(self.budgets[order], self.agreement[order], **style)
        if (self.upper > self.lower + 1e-9).any():
            axes.fill_between(
                self.budgets[order],
                self.lower[order],
                self.upper[order],
                step="post",
                alpha=0.2,
                color=drawn.get_color(),
                linewidth=0,
                label="between its lower end and the bound",
            )
            axes.legend(frameon=False)
        axes.set(xlabel="budget", ylabel="agreement with the original")
        return self


def _trimmings_of(
    estimator: TrimmedClassifier, budgets: Sequence[float], costs: Any, time_limit: float | None
) -> list[Trimming]:
    """Return the trimmings to several budgets of the classifier that an estimator has trimmed, as it says."""
    check_is_fitted(estimator, "classifier_")
    if estimator.trimming_ is None:
        raise ValueError(
            "estimator must know the classifier that it was trimmed from, which a saved file leaves out: "
            "fit it again, or give the BayesianClassifier"
        )
    labels = estimator._column_labels
    groups = groups_by_name(estimator.groups, labels)
    settings: dict[str, Any] = {
        "groups": groups,
        "required": column_names(estimator.required or [], labels, "required"),
        "forbidden": column_names(estimator.forbidden or [], labels, "forbidden"),
        "time_limit": time_limit,
    }
    original = estimator.trimming_.original
    by_name = cost_by_name(estimator.costs if costs is None else costs, labels, groups)
    return [trim(original, budget, by_name, **settings) for budget in budgets]


class EvidenceDisplay(_Display):
    """What the features of one row add to the log-odds of its class.

    Parameters
    ----------
    explanation : Explanation
        Of `explain` or `contrast`.
    max_features : int
        At most this many features are drawn, those with the strongest evidence.

    Attributes
    ----------
    table : DataFrame
        As `Explanation.table` gives it: feature, evidence, chosen.
    ax_, figure_ : matplotlib Axes and Figure
        Of the last `plot`.

    Examples
    --------
    >>> import trimbench as tb
    >>> from sklearn.linear_model import LogisticRegression
    >>> from trimbench.estimators import EvidenceDisplay
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 0, 1]
    >>> explanation = tb.conform(LogisticRegression(C=100).fit(X, y), X).explain([1, 1])
    >>> EvidenceDisplay(explanation).table["chosen"].tolist()
    [True, False]
    """

    def __init__(self, explanation: Explanation, max_features: int = 20) -> None:
        check_whole("max_features", max_features, 1)
        self.explanation = explanation
        self.max_features = max_features
        self.table = explanation.table()

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        x: ArrayLike,
        against: Any = None,
        *,
        delta: float | None = None,
        max_features: int = 20,
        ax: Axes | None = None,
        **bars: Any,
    ) -> Self:
        """Explain one row, and draw the evidence.

        Parameters
        ----------
        estimator : fitted NaiveConformantClassifier, or ConformantModel
        x : array of shape (n_columns,), or Series or dict with the names of the columns
        against : label, optional
            The class to compare the prediction with. Required without `delta` if there are more than two.
        delta : float, optional
            Probability with which the class must be kept; as in `explain`.
        max_features : int
        ax : matplotlib Axes, optional
        **bars
            Given to `matplotlib.axes.Axes.barh`.

        Returns
        -------
        EvidenceDisplay

        Raises
        ------
        TypeError
            When the estimator explains nothing.
        ValueError
            As in `explain`.
        """
        if not hasattr(estimator, "explain"):
            raise TypeError(
                "estimator must explain its decisions, as NaiveConformantClassifier and ConformantModel do, got "
                f"{type(estimator).__name__}"
            )
        explanation = estimator.explain(x, against) if delta is None else estimator.explain(x, against, delta=delta)
        return cls(explanation, max_features).plot(ax=ax, **bars)

    def plot(self, ax: Axes | None = None, **bars: Any) -> Self:
        """Draw a bar for each feature, the strongest on top; those that explain the class are filled.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: those of a new figure.
        **bars
            Given to `matplotlib.axes.Axes.barh`.
        """
        axes = self._axes(ax)
        draw_evidence(axes, self.table, self.explanation.predicted, self.max_features, **bars)
        return self


class StabilityDisplay(_Display):
    """How many decisions about rows with gaps would stay, and whether what is stated of it is true.

    Parameters
    ----------
    stability : array of shape (n_rows,)
        For each row, the stated probability that its decision stays once everything is known.
    stays : array of bool of shape (n_rows,), optional
        Whether it did, where the whole rows are known.
    n_bins : int
        With `stays`: number of equal bins of the stated probability.

    Attributes
    ----------
    stated, true, lower, upper, n_rows : ndarray of shape (n_filled_bins,)
        With `stays`, of each bin that has rows: the mean of what was stated, the share of the decisions that stayed
        with its 95 % interval (Wilson), and the number of rows.
    ax_, figure_ : matplotlib Axes and Figure
        Of the last `plot`.

    Examples
    --------
    >>> from trimbench.estimators import StabilityDisplay
    >>> display = StabilityDisplay([0.6, 0.6, 0.95, 1.0], [False, True, True, True], n_bins=2)
    >>> display.n_rows.tolist(), display.true.tolist()
    ([4], [0.75])
    """

    def __init__(self, stability: ArrayLike, stays: ArrayLike | None = None, n_bins: int = 10) -> None:
        check_whole("n_bins", n_bins, 1)
        self.stability: Vector = np.asarray(stability, dtype=np.float64)
        if self.stability.ndim != 1 or not ((self.stability >= 0) & (self.stability <= 1)).all():
            raise ValueError("stability must be one probability for each row, between 0 and 1")
        self.stays: NDArray[np.bool_] | None = None
        if stays is None:
            return
        self.stays = np.asarray(stays).astype(np.bool_)
        if self.stays.shape != self.stability.shape:
            raise ValueError(
                f"stays must say for each of {len(self.stability)} rows whether its decision stayed, got shape "
                f"{self.stays.shape}"
            )
        bins = np.minimum((self.stability * n_bins).astype(int), n_bins - 1)
        filled = np.unique(bins)
        members = [bins == place for place in filled]
        self.n_rows: NDArray[np.int64] = np.array([rows.sum() for rows in members])
        self.stated: Vector = np.array([self.stability[rows].mean() for rows in members])
        self.true: Vector = np.array([self.stays[rows].mean() for rows in members])
        ends = [wilson_interval(float(self.stays[rows].sum()), int(rows.sum())) for rows in members]
        self.lower: Vector = np.array([low for low, _ in ends])
        self.upper: Vector = np.array([high for _, high in ends])

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        X_whole: Any = None,
        *,
        n_bins: int = 10,
        ax: Axes | None = None,
        **line: Any,
    ) -> Self:
        """Ask an estimator how stable its decisions are, and draw the answers.

        Parameters
        ----------
        estimator : fitted ExpectedClassifier or NaiveConformantClassifier, or ConformantModel
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows with gaps.
        X_whole : array, sparse matrix or data frame of shape (n_rows, n_columns), optional
            The same rows without gaps, from which it is seen which decisions stay.
        n_bins : int
        ax : matplotlib Axes, optional
        **line
            Given to `matplotlib.axes.Axes.plot`, or `errorbar` with `X_whole`.

        Returns
        -------
        StabilityDisplay

        Raises
        ------
        TypeError
            When the estimator states no stability.
        ValueError
            When the rows are not those that the estimator takes, or not equally many.
        """
        if hasattr(estimator, "decision_stability"):
            decision, stability, _, _ = estimator.decision_stability(X)
        elif hasattr(estimator, "same_decision_probability"):
            decision, stability = estimator.predict(X), estimator.same_decision_probability(X)
        else:
            raise TypeError(
                "estimator must state how stable its decisions are, as ExpectedClassifier and "
                f"NaiveConformantClassifier do, got {type(estimator).__name__}; wrap it with trimbench.expect"
            )
        stays = None
        if X_whole is not None:
            whole = estimator.predict(X_whole)
            if len(whole) != len(decision):
                raise ValueError(f"X_whole must have the {len(decision)} rows of X, without gaps, got {len(whole)}")
            stays = whole == decision
        return cls(stability, stays, n_bins).plot(ax=ax, **line)

    def plot(self, ax: Axes | None = None, **line: Any) -> Self:
        """Draw the share that stayed against the stated one; or, if that is not known, how many rows state how much.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: those of a new figure.
        **line
            Given to `matplotlib.axes.Axes.errorbar`, or to `plot` without `stays`.
        """
        axes = self._axes(ax)
        if self.stays is None:
            draw_stability(axes, self.stability, **line)
            return self
        ends = np.stack([self.true - self.lower, self.upper - self.true])
        axes.plot([0, 1], [0, 1], color="0.6", linestyle=":", label="stated = true")
        style = {"marker": "o", "capsize": 3, "label": "share that stayed, 95 % intervals", **line}
        axes.errorbar(self.stated, self.true, yerr=np.maximum(ends, 0.0), **style)
        axes.set(xlabel="stated probability that the decision stays", ylabel="share of decisions that stayed")
        axes.legend(frameon=False)
        return self
