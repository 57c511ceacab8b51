"""Explanations of one classified row: sufficient and contrastive ones, and their tables and images."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._checks import check_one_of, check_whole
from trimbench._pictures import draw_evidence, html_of
from trimbench._typing import Matrix, Vector
from trimbench.conformant.decision_problem import DecisionProblem
from trimbench.conformant.distribution import ConformantDistribution, checked_row, compared_classes, lost_log_odds
from trimbench.conformant.layout import as_row

if TYPE_CHECKING:
    import pandas as pd


class Explanation:
    """Base class of explanations: the features that explain the classification of one row.

    Attributes
    ----------
    predicted : label
        The class that is explained.
    features : tuple of int
        The explanation: positions in the layout, which are the columns where all features are binary.
    evidence : ndarray of shape (n_features,)
        What each feature adds to the log-odds of `predicted`; the subclasses say when, and against which class.
    feature_names : tuple of str, optional
        The names of all features; None where the model was learned from an array.

    Examples
    --------
    >>> import trimbench as tb
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 0, 1]
    >>> explanation = tb.conform(LogisticRegression(C=100).fit(X, y), X).explain([1, 1])
    >>> int(explanation.predicted), explanation.features
    (1, (0,))
    """

    predicted: Any
    features: tuple[int, ...]
    evidence: Vector
    feature_names: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of `features`; their positions as text where the model has no names."""
        return tuple(str(i) if self.feature_names is None else self.feature_names[i] for i in self.features)

    def named(self, feature_names: Sequence[str] | None) -> Self:
        """Give the explanation names, one for each feature of the layout or None, and return it."""
        vars(self)["feature_names"] = None if feature_names is None else tuple(feature_names)
        return self

    def table(self, feature_names: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the evidence, largest magnitude first; ``.plot.barh(x="feature", y="evidence")`` draws it.

        Parameters
        ----------
        feature_names : sequence of str, optional
            One for each feature of the layout. Default: those of the model, or positions.

        Returns
        -------
        pandas.DataFrame
            With the columns `feature`, `evidence` (what it adds to the log-odds of the class, in nats) and `chosen`.

        Raises
        ------
        ValueError
            When there is not one name for each feature.
        """
        import pandas as pd

        n_features = len(self.evidence)
        known = self.feature_names if feature_names is None else feature_names
        names = list(range(n_features)) if known is None else list(known)
        if len(names) != n_features:
            raise ValueError(f"feature_names must have one name for each of {n_features} features, got {len(names)}")
        order = np.argsort(-np.abs(self.evidence), kind="stable")
        chosen = np.isin(order, self.features)
        columns = {"feature": [names[i] for i in order], "evidence": self.evidence[order], "chosen": chosen}
        return pd.DataFrame(columns)

    def _repr_html_(self) -> str:
        """Return how notebooks show the explanation: the evidence of the strongest features."""
        table = self.table()
        shown = table.head(20)
        draw = partial(draw_evidence, table=table, predicted=self.predicted, most=20)
        return html_of(shown, draw, height=0.8 + 0.22 * len(shown))

    def image(self, x: ArrayLike, shape: tuple[int, int]) -> Matrix:
        """Return the values of the chosen pixels, and NaN elsewhere, as an image that ``plt.imshow`` draws.

        Parameters
        ----------
        x : array of shape (n_features,)
            The row that was explained, whose features are pixels, row by row.
        shape : tuple of int
            Height and width of the image.

        Raises
        ------
        ValueError
            When `x` does not have one number, or `shape` one pixel, for each feature.
        """
        n_features = len(self.evidence)
        row = as_row(x, n_features)[0]
        if len(shape) != 2 or math.prod(shape) != n_features:
            raise ValueError(f"shape must be (height, width) with {n_features} pixels in all, got {shape!r}")
        kept: NDArray[np.float64] = np.full(n_features, np.nan)
        kept[list(self.features)] = row[list(self.features)]
        return kept.reshape(shape)


# Sufficient explanations: the smallest evidence that keeps a classification against all that opposes it.


@dataclass(frozen=True, eq=False)
class SufficientExplanation(Explanation):
    """Why a classifier prefers one class to another, for one row.

    Attributes
    ----------
    predicted, against : label
        The class that is explained and the class that it is compared with.
    features : tuple of int
        The explanation: the fewest support features that keep the classification while all opposing features are
        observed, strongest first. Positions in the layout, which are the columns where all features are binary.
    support, opposing : tuple of int
        The observed features whose removal does not, or does, move the expected prediction further towards
        `predicted`.
    evidence : ndarray of shape (n_features,)
        What observing each feature adds to the log-odds of `predicted` over `against`; 0 where it is missing.
    log_odds : float
        Log-odds of `predicted` over `against` for the whole row.
    kept_log_odds : float
        The same given only the explanation and the opposing features.
    """

    predicted: Any
    against: Any
    features: tuple[int, ...]
    support: tuple[int, ...]
    opposing: tuple[int, ...]
    evidence: Vector
    log_odds: float
    kept_log_odds: float


def explain(model: ConformantDistribution, x: ArrayLike, against: Any) -> SufficientExplanation:
    """Return the sufficient explanation of the classification of one row, see `ConformantModel.explain`.

    The log-odds of a naive Bayes model are a sum over the observed features, so that taking support features by
    decreasing evidence gives the fewest. Of classes with equal scores the first is predicted, as in
    `ConformantModel.predict` and by the classifier itself (the paper counts an even prediction as the second class).

    References
    ----------
    Khosravi et al. (2019), Definitions 4 and 5.
    """
    row = checked_row(model, x)
    winner, (other,) = compared_classes(model, row, against, only_one=True)
    evidence, observed = _evidence(model, row, winner, other), ~np.isnan(row[model.layout.first_columns])
    base = float(model.log_prior[winner] - model.log_prior[other])
    # Definition 4 counts a feature without evidence as support of class 1 and as opposing class 0.
    is_support = observed & ((evidence >= 0) if winner > other else (evidence > 0))
    support, opposing = np.flatnonzero(is_support), np.flatnonzero(observed & ~is_support)
    ordered = support[np.argsort(-evidence[support], kind="stable")]
    against_it = base + float(evidence[opposing].sum())
    log_odds = against_it + float(evidence[ordered].sum())
    reached = against_it + np.concatenate([[0.0], np.cumsum(evidence[ordered])])
    reached[-1] = log_odds
    # An even prediction is the first of the two classes.
    enough = reached > 0 if winner > other else reached >= 0
    enough[-1] = True  # a row that is even up to rounding
    size = int(np.argmax(enough))
    return SufficientExplanation(
        model.classes[winner],
        model.classes[other],
        tuple(ordered[:size].tolist()),
        tuple(support.tolist()),
        tuple(opposing.tolist()),
        evidence,
        log_odds,
        float(reached[size]),
    )


def _evidence(model: ConformantDistribution, row: Vector, winner: int, other: int) -> Vector:
    """Return what observing each feature adds to the log-odds of one class over another, shape (n_features,).

    The difference of the weights comes first, so that the log-odds of a row that is even are 0 to the last digit.
    """
    difference = model.weights[:, winner] - model.weights[:, other]
    by_column = np.where(np.isnan(row), 0.0, row) * difference
    observed = np.bincount(model.layout.feature_of_column, weights=by_column, minlength=model.layout.n_features)
    missing = model.components[0].missing_scores
    evidence = observed - (missing[:, winner] - missing[:, other])
    return np.where(np.isnan(row[model.layout.first_columns]), 0.0, evidence)


# Contrastive explanations: the fewest features whose change, or whose loss, gives another class.

By = Literal["change", "loss"]
# How far past the boundary, in log-odds, a real-valued feature is moved.
_PAST = 1e-6


@dataclass(frozen=True, eq=False)
class ContrastiveExplanation(Explanation):
    """The fewest features whose change, or whose loss, gives a row another class.

    Attributes
    ----------
    predicted : label
    by : {"change", "loss"}
    features : tuple of int
        The explanation, positions in the layout by decreasing `evidence`; empty if no set gives another class.
    becomes : label or None
        The class that then has a higher score than `predicted`. If equally few features let several classes overtake,
        it is the first of them in the order of the model, but that with the highest score for losses in a mixture.
    row : ndarray of shape (n_columns,)
        The row with `features` changed to the values that are worst for `predicted`, or missing. A real-valued feature,
        which alone can reach any score, is changed just enough.
    sets : tuple of tuple of int
        Smallest sets, `features` first.
    size_lower_bound : int
        Proven: no set of fewer features gives another class. It is the number of `features` (if no set does, one more
        than were observed), except for losses in a mixture or with a covariance, where there may be too many sets to
        try all.
    complete : bool
        Whether `sets` are proven to be all smallest sets.
    evidence : ndarray of shape (n_features,)
        What the change, or loss, of each feature alone costs `predicted` in log-odds against `becomes`.
    """

    predicted: Any
    by: By
    features: tuple[int, ...]
    becomes: Any
    row: Vector
    sets: tuple[tuple[int, ...], ...]
    size_lower_bound: int
    complete: bool
    evidence: Vector


def contrast(
    model: ConformantDistribution, x: ArrayLike, against: Any, *, by: By, max_sets: int
) -> ContrastiveExplanation:
    """Return the contrastive explanation of the classification of one row, see `ConformantModel.contrast`.

    The costs of the features add up, so that the costliest features form a smallest set. Only the costs of losing
    features of a mixture, or with a covariance, do not add up (`smallest_losses`).

    References
    ----------
    Ignatiev, Narodytska, Asher and Marques-Silva (2020), *From Contrastive to Abductive Explanations and Back Again*.
    """
    check_one_of("by", by, get_args(By))
    check_whole("max_sets", max_sets, 1)
    row = checked_row(model, x)
    winner, rivals = compared_classes(model, row, against)
    if model.is_naive or (by == "change" and not np.isnan(row).any()):
        # The classifier alone decides what changes of a complete row do, and every component has it.
        return _additive(model, row, winner, rivals, by, max_sets)
    if by == "change":
        raise ValueError(
            "x must have no missing value for by='change' with several components or a covariance, as what values "
            "change then depends on each other; use by='loss', or a model with n_components=1 and covariance='diagonal'"
        )
    found, becomes = smallest_losses(model, row, winner, rivals, max_sets)
    evidence = lost_log_odds(model, row, winner, becomes[0] if becomes else rivals[0])
    lost = np.isin(model.layout.feature_of_column, found.sets[0] if found.sets else ())
    return _contrastive(model, by, winner, becomes, np.where(lost, np.nan, row), found, evidence)


def _contrastive(
    model: ConformantDistribution,
    by: By,
    winner: int,
    becomes: tuple[int, ...],
    row: Vector,
    found: FoundSets,
    evidence: Vector,
) -> ContrastiveExplanation:
    sets = strongest_first(found.sets, evidence)
    return ContrastiveExplanation(
        predicted=model.classes[winner],
        by=by,
        features=sets[0] if sets else (),
        becomes=model.classes[becomes[0]] if becomes else None,
        row=row,
        sets=sets,
        size_lower_bound=found.size_lower_bound,
        complete=found.complete,
        evidence=evidence,
    )


def strongest_first(sets: Iterable[tuple[int, ...]], evidence: Vector) -> tuple[tuple[int, ...], ...]:
    """Return sets of features, each by decreasing evidence."""
    return tuple(tuple(sorted(chosen, key=lambda i: (-evidence[i], i))) for chosen in sets)


def _additive(
    model: ConformantDistribution, row: Vector, winner: int, rivals: tuple[int, ...], by: By, max_sets: int
) -> ContrastiveExplanation:
    """Return the contrastive explanation where the costs of the features add up."""
    problem = DecisionProblem.of(type(model).of(model.components[0]), row, winner, rivals)
    costs = _costs(model, problem, by)
    found: list[tuple[int, tuple[tuple[int, ...], ...], bool]] = []
    for j in range(len(rivals)):
        margin = _margin(model, problem, j)
        useful = np.flatnonzero(costs[:, j] > 0)
        covers = smallest_covers(costs[useful, j : j + 1], np.array([np.nextafter(margin, np.inf)]), max_sets)
        if covers.sets:
            found.append((j, tuple(tuple(useful[list(chosen)].tolist()) for chosen in covers.sets), covers.complete))
    if not found:
        none = FoundSets((), int(problem.observed.sum()) + 1, True)
        return _contrastive(model, by, winner, (), row.copy(), none, costs[:, 0])
    size = min(len(sets[0]) for _, sets, _ in found)
    smallest = [entry for entry in found if len(entry[1][0]) == size]
    sets = list(dict.fromkeys(tuple(sorted(chosen)) for _, those, _ in smallest for chosen in those))
    j = smallest[0][0]
    complete = all(complete for *_, complete in smallest) and len(sets) <= max_sets
    first = strongest_first(sets[:1], costs[:, j])[0]
    changed = _changed(model, problem, row, first, j, by)
    known = FoundSets(tuple(sets[:max_sets]), size, complete)
    return _contrastive(model, by, winner, (rivals[j],), changed, known, costs[:, j])


def _margin(model: ConformantDistribution, problem: DecisionProblem, j: int) -> float:
    """Return the log-odds against a rival, with missing features averaged out, as `predict_proba` does."""
    missing = model.components[0].missing_scores
    expected = missing[:, problem.winner] - missing[:, problem.rivals[j]]
    return float(problem.base[j] + np.where(problem.observed, problem.shown[:, j], expected).sum())


def _costs(model: ConformantDistribution, problem: DecisionProblem, by: By) -> Matrix:
    """Return what each observed feature can cost against each rival, shape (n_features, n_rivals)."""
    others = list(problem.rivals)
    if by == "loss":
        missing = model.components[0].missing_scores
        least = missing[:, [problem.winner]] - missing[:, others]
    else:
        # The classifier has a score for any value, also for one that the model holds to be impossible.
        lowest = []
        for feature, columns in zip(problem.hidden, model.layout.features, strict=True):
            slope = model.weights[columns[0], problem.winner] - model.weights[columns[0], others]
            is_real = columns[0] in model.layout.real
            lowest.append(np.where(slope != 0, -np.inf, 0.0) if is_real else feature.values.min(axis=0))  # noqa: PD011
        least = np.stack(lowest)
    costs: Matrix = np.where(problem.observed[:, None], problem.shown - least, 0.0)
    return costs


def _changed(
    model: ConformantDistribution, problem: DecisionProblem, row: Vector, features: tuple[int, ...], j: int, by: By
) -> Vector:
    changed = row.copy()
    for place in features:
        columns = list(model.layout.features[place])
        if by == "loss":
            changed[columns] = np.nan
        elif columns[0] in model.layout.real:
            slope = model.weights[columns[0], problem.winner] - model.weights[columns[0], problem.rivals[j]]
            changed[columns] -= (_margin(model, problem, j) + _PAST) / slope
        else:
            worst = int(np.argmin(problem.hidden[place].values[:, j]))  # noqa: PD011
            binary = len(columns) == 1 and columns not in [list(group) for group in model.layout.categorical]
            changed[columns] = worst if binary else np.eye(len(columns))[worst]
    return changed


# The fewest features whose loss gives another class, where the costs of their losses do not add up.

# Maximum number of rows to classify to try all sets of one size.
_MOST_ROWS = 20_000


def smallest_losses(
    model: ConformantDistribution, row: Vector, winner: int, rivals: tuple[int, ...], max_sets: int
) -> tuple[FoundSets, tuple[int, ...]]:
    """Return sets of observed features without which a rival has a higher score, and the rival for each.

    All sets are tried, size by size, as long as they are few, which finds the smallest. After that, features are
    removed one by one, always the one whose loss costs most, and those whose loss is not needed are put back.

    Parameters
    ----------
    row : ndarray of shape (n_columns,)
    winner, rivals : int
        Positions of classes.
    max_sets : int
    """
    search = _Search(model, row, winner, rivals)
    n_observed = len(search.observed)
    for size in range(1, n_observed + 1):
        if math.comb(n_observed, size) > _MOST_ROWS:
            return search.greedy(size)
        found = search.all_of(size)
        if found:
            kept = found[:max_sets]
            sets = tuple(chosen for chosen, _ in kept)
            return FoundSets(sets, size, len(found) <= max_sets), tuple(rival for _, rival in kept)
    return FoundSets((), n_observed + 1, True), ()


class _Search:
    def __init__(self, model: ConformantDistribution, row: Vector, winner: int, rivals: tuple[int, ...]) -> None:
        self.model, self.row, self.winner, self.rivals = model, row, winner, list(rivals)
        self.observed = np.flatnonzero(~np.isnan(row[model.layout.first_columns]))

    def margins(self, sets: NDArray[np.intp]) -> tuple[Vector, NDArray[np.intp]]:
        """Return the least log-odds of the class without the features of each set, and the rival that attains it."""
        lost = np.zeros((len(sets), self.model.layout.n_features), dtype=bool)
        np.put_along_axis(lost, sets, True, axis=1)
        rows = np.where(lost[:, self.model.layout.feature_of_column], np.nan, self.row)
        scores = self.model.decision_scores(rows)
        best = scores[:, self.rivals].argmax(axis=1)
        at = np.arange(len(sets))
        return scores[:, self.winner] - scores[:, self.rivals][at, best], np.array(self.rivals)[best]

    def all_of(self, size: int) -> list[tuple[tuple[int, ...], int]]:
        """Return the sets of a size that give another class, costliest first, with that class."""
        sets = np.array(list(itertools.combinations(self.observed.tolist(), size)), dtype=np.intp)
        margins, rivals = self.margins(sets)
        order = np.argsort(margins, kind="stable")
        changed = order[margins[order] < 0]
        return [(tuple(sets[place].tolist()), int(rivals[place])) for place in changed]

    def greedy(self, lower: int) -> tuple[FoundSets, tuple[int, ...]]:
        """Return one set, which need not be smallest; no set of fewer than `lower` features gives another class."""
        chosen, margin, rival = np.zeros(0, dtype=np.intp), np.inf, -1
        while margin >= 0:
            left = np.setdiff1d(self.observed, chosen)
            if not left.size:
                return FoundSets((), lower, False), ()
            margins, rivals = self.margins(np.column_stack([np.tile(chosen, (len(left), 1)), left]))
            best = int(margins.argmin())
            chosen, margin, rival = np.append(chosen, left[best]), float(margins[best]), int(rivals[best])
        for feature in chosen.tolist():
            fewer = chosen[chosen != feature]
            margins, rivals = self.margins(fewer[None])
            if margins[0] < 0:
                chosen, rival = fewer, int(rivals[0])
        return FoundSets((tuple(chosen.tolist()),), lower, False), (rival,)


# The smallest sets of features whose gains reach what is needed.

# Maximum number of partial sets to try in the search for covers of several requirements.
_MAX_STEPS = 100_000


@dataclass(frozen=True)
class FoundSets:
    """Smallest sets of features, and what is proven about them.

    Attributes
    ----------
    sets : tuple of tuple of int
        Sets of the smallest size that was found; empty if none was.
    size_lower_bound : int
        Proven: no smaller set suffices.
    complete : bool
        Whether these are all sets of their size, and no smaller one suffices.
    """

    sets: tuple[tuple[int, ...], ...]
    size_lower_bound: int
    complete: bool


def smallest_covers(gains: Matrix, needed: Vector, max_sets: int) -> FoundSets:
    """Return the smallest sets of rows of `gains` whose sums reach `needed` in every column.

    With one column the rows with the largest gains form one of them; with several it is a covering problem, searched
    depth first with the sum of the largest remaining gains, column by column, as the bound.

    Parameters
    ----------
    gains : ndarray of shape (n_features, n_requirements)
        0 or more; infinity is allowed.
    needed : ndarray of shape (n_requirements,)
    max_sets : int
        How many sets to list at most, 1 or more.
    """
    ranked = -np.sort(-gains, axis=0)
    reach = np.concatenate([np.zeros((1, len(needed))), np.cumsum(ranked, axis=0)])
    enough = (reach >= needed).all(axis=1)
    if not enough.any():
        return FoundSets((), len(gains) + 1, True)
    first = int(np.argmax(enough))
    order = np.lexsort((np.arange(len(gains)), -gains.sum(axis=1)))
    steps = 0
    for size in range(first, len(gains) + 1):
        search = _Covers(gains[order], needed, max_sets + 1, _MAX_STEPS - steps)
        search.extend((), 0, size, np.zeros(len(needed)))
        steps += search.steps
        if search.found:
            sets = tuple(tuple(order[list(chosen)].tolist()) for chosen in search.found[:max_sets])
            finished = search.steps < search.max_steps and len(search.found) <= max_sets
            return FoundSets(sets, size, finished)
        if steps >= _MAX_STEPS:
            greedy = _greedy(gains, needed)
            return FoundSets((greedy,), size, False)
    raise AssertionError("all features together reach what is needed")


class _Covers:
    def __init__(self, gains: Matrix, needed: Vector, limit: int, max_steps: int) -> None:
        self.gains, self.needed, self.limit, self.max_steps = gains, needed, limit, max_steps
        self.found: list[tuple[int, ...]] = []
        self.steps = 0

    def extend(self, chosen: tuple[int, ...], start: int, left: int, reached: Vector) -> None:
        self.steps += 1
        if not left:
            if (reached >= self.needed).all():
                self.found.append(chosen)
            return
        for place in range(start, len(self.gains) - left + 1):
            if len(self.found) >= self.limit or self.steps >= self.max_steps:
                return
            if not self._may_reach(place, left, reached):
                return
            self.extend((*chosen, place), place + 1, left - 1, reached + self.gains[place])

    def _may_reach(self, start: int, left: int, reached: Vector) -> bool:
        rest = self.gains[start:]
        # With one requirement the rows are sorted by their gains.
        best = rest[:left] if len(self.needed) == 1 else np.partition(rest, len(rest) - left, axis=0)[-left:]
        return bool((reached + best.sum(axis=0) >= self.needed - 1e-9 * np.abs(self.needed)).all())


def _greedy(gains: Matrix, needed: Vector) -> tuple[int, ...]:
    chosen: list[int] = []
    reached = np.zeros(len(needed))
    while not (reached >= needed).all():
        worth = np.minimum(gains, np.maximum(needed - reached, 0)).sum(axis=1)
        worth[chosen] = -1
        chosen.append(int(np.argmax(worth)))
        reached = reached + gains[chosen[-1]]
    return tuple(chosen)
