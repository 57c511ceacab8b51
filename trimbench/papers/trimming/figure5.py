"""Figure 5: agreement against accuracy of every feature subset, on data, and the shares printed beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trimbench.papers.trimming.classifiers import (
    NAMES,
    PROBLEM_ENTRIES,
    Encoding,
    LearnedOnSplits,
    Learning,
    Problem,
    Split,
    two_classes,
)
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.job import COUNT, PERCENT, SHARE, job, list_of
from trimbench.trimming.baselines import folds_of, select_features
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import best_cut
from trimbench.trimming.engines.choice import make_engine
from trimbench.trimming.engines.table import DenseEngine, subset_batches

STATED, INFERRED = "stated", "inferred"
_ENCODINGS: Mapping[str, Encoding] = {STATED: "medians", INFERRED: "means"}


@vocab.settings
class Figure5(LearnedOnSplits):
    """Agreement and cross-validated accuracy of every feasible subset (Figure 5), over several splits.

    The data sets are names in `problems`; the figures show the first split. The budget is the number of features
    divided by `budget_divisor`, rounded down. Names in `inferred` are run a second time, with the data set given there
    and the cuts that the authors' networks reveal.
    """

    datasets: vocab.Axis[str]
    problems: dict[str, Problem]
    threshold: vocab.Share = 0.5
    splits: vocab.Count
    n_folds: Annotated[int, vocab.at_least(2)] = 10
    budget_divisor: vocab.Count = 2
    inferred: dict[str, Problem] = field(default_factory=dict)

    def __post_init__(self) -> None:
        vocab.check_names("datasets", self.datasets, self.problems, "problems", PROBLEM_ENTRIES)
        for name in self.inferred:
            if name not in self.problems:
                raise ValueError(
                    f"inferred must have names of problems, {list(self.problems)}, got {name!r}; remove inferred.{name}"
                )

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set, set-up and split."""
        return [
            vocab.Cell.of(
                {"name": name, "setup": setup, "dataset": problem.dataset, "split": split},
                agreement_and_accuracy,
                self,
                learning=self.learning(problem.dataset, split, inputs, _ENCODINGS[setup]),
                positive=problem.positive,
                with_points=split == 0,
            )
            for name in self.datasets
            for setup, problem in ((STATED, self.problems[name]), (INFERRED, self.inferred.get(name)))
            if problem
            for split in range(self.splits)
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return Figure 5c averaged over the splits, the remarks of the text, and the scatter of the first split."""
        printed = vocab.printed_numbers("trimming/figure5")
        by_setup = {(own["name"], own["setup"]): ours for own, ours in vocab.groups(rows, "name", "setup")}
        held: dict[_Place, _Held] = {}
        for place, ours in by_setup.items():
            draws = {one: ours[column].tolist() for one, column in _columns(place[0]).items()}
            if found := vocab.held_against(printed, draws):
                held[place] = found
        setups = {"data": "name", "set-up": "setup"}
        picks = vocab.groups(vocab.stacked(rows, "subset", PICKS), **setups, subset="subset")
        tests = [{**labels, "splits": len(ours), **_spreads(ours, _TESTED_TITLES)} for labels, ours in picks]
        by_labels = list(vocab.groups(rows, **setups))
        remarks = [labels | _spreads(ours, _REMARKED_TITLES) for labels, ours in by_labels]
        claims = [
            {**labels, "splits": len(ours), **{name: value(ours) for name, value in _CLAIMS.items()}}
            for labels, ours in by_labels
        ]
        overall = [
            {"data": name, "set-up": setup, "splits": one.n_replications, **one.columns}
            | {"smallest, any": min(probability.value for probability in one.together.values())}
            for (name, setup), one in held.items()
        ]
        tails = [
            (name, setup, printed[place].label, printed[place].value, mean, alone.value, one.together[place].value)
            for (name, setup), one in held.items()
            for place, alone in one.alone.items()
            for mean in [float(by_setup[name, setup][_columns(name)[place]].mean())]
        ]
        sizes = [line for name in self.datasets for line in self._sizes(name, by_setup, printed)]
        tables = (
            vocab.Table.of(_TITLE, tests, _TESTS),
            vocab.Table.of(_REMARKS_TITLE, remarks, _REMARKS, name="remarks"),
            vocab.Table.of(_CLAIMS_TITLE, claims, _CLAIM_COLUMNS, name="claims"),
            vocab.Table.of(_OVERALL_TITLE, overall, _OVERALL, name="overall"),
            vocab.Table.of(_TAILS_TITLE, tails, _TAILS, name="tails"),
            vocab.Table.of(_SIZES_TITLE, sizes, _SIZES, name="test_sizes"),
        )
        figures = [
            _scatter(name, setup, first)
            for (name, setup), ours in by_setup.items()
            for first in ours[ours["split"] == 0].to_dict("records")
        ]
        stated = [name for name, setup in by_setup if setup == STATED]
        numbers = [number for name in stated for number in self._numbers(name, by_setup, printed, held)]
        return vocab.Outcome(tables, figures, numbers)

    def _numbers(
        self, name: str, by_setup: _BySetup, printed: _Printed, held: Mapping[_Place, _Held]
    ) -> Iterator[vocab.Number]:
        """Yield the numbers of the stated set-up, with what may account for their difference from the printed ones."""
        shares, n_rows = _shares(name, printed), _rows_of(name, by_setup)
        probabilities = held[name, STATED].together if (name, STATED) in held else {}
        inferred = _averages(name, by_setup[name, INFERRED], printed) if (name, INFERRED) in by_setup else ()
        others = {(one.row, one.quantity): one for one in inferred}
        for number in _averages(name, by_setup[name, STATED], printed):
            place, one = (number.row, number.quantity), printed.get((number.row, number.quantity))
            proof = contradiction(one, shares, n_rows, self.test_fraction) if one in shares else ""
            number = replace(number, probability=probabilities.get(place), contradiction=proof)
            other = others.get(place)
            if other is not None and other.value is not None:
                problem = self.inferred[name]
                setup = (
                    f"data set {problem.dataset}, positive class {problem.positive}, "
                    "numbers cut at the mean of all rows, missing cells filled by a fair coin"
                )
                explanation = vocab.Explanation(setup, other.value, other.interval, other.jobs)
                number = replace(number, explanation=explanation)
            yield number

    def _sizes(self, name: str, by_setup: _BySetup, printed: _Printed) -> Iterator[dict[str, object]]:
        """Yield, for each data set that the paper may mean, the numbers of test rows that fit the printed shares."""
        shares = _shares(name, printed)
        for data, n_rows in _rows_of(name, by_setup).items() if shares else ():
            stated = stated_sizes(n_rows, self.test_fraction)
            of_these = sum(any(is_share(one, size) for size in stated) for one in shares)
            values = (name, ", ".join(one.printed for one in shares), data, n_rows, interval_text(stated), of_these)
            line: dict[str, object] = dict(zip(_SIZES, values, strict=False))
            if possible := possible_sizes(shares, n_rows):
                nearest = min(possible, key=lambda size: abs(size - n_rows * self.test_fraction))
                line |= {"possible": ", ".join(map(str, possible)), "nearest": nearest}
                line["percent"] = 100 * nearest / n_rows
            yield line


_Place = tuple[str, str]
_BySetup = Mapping[_Place, pd.DataFrame]
_Printed = Mapping[_Place, vocab.Reported]
_Held = vocab.Held[_Place]
_TITLE = "Figure 5c: test agreement and accuracy, mean and 95 % prediction interval for one more split"
_REMARKS_TITLE = "Accuracy of the full classifier, and subsets that beat it"
_CLAIMS_TITLE = (
    "Claims of section 6.1: in how many splits highest ECA is more accurate than highest accuracy; by how "
    "much highest ECA agrees more often, and highest accuracy is more accurate, than information gain"
)


def _scatter(name: str, setup: str, result: Mapping[Any, Any]) -> vocab.LineFigure:
    cloud = result["points"]
    points = [("feasible subset", x, y) for x, y in cloud]
    points += [("Pareto frontier", x, y) for x, y in _frontier(cloud)]
    points += [(title, result[f"{pick}_eca"], result[f"{pick}_cv_accuracy"]) for pick, title in PICKS.items()]
    remark = "" if setup == STATED else f" ({setup} set-up)"
    return vocab.LineFigure.of(
        f"{vocab.shown_name(name)}: agreement and accuracy of feature subsets{remark}",
        ("expected classification agreement", "cross-validated accuracy"),
        points,
        name=name if setup == STATED else f"{name}_{setup}",
        levels={"full classifier": result["full_accuracy"]},
        marks={"feasible subset": "cloud"} | dict.fromkeys(PICKS.values(), "highlight"),
    )


def _frontier(points: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    """Return the points that no other beats in both coordinates."""
    frontier: list[tuple[float, float]] = []
    for x, y in sorted(((x, y) for x, y in points), reverse=True):
        if not frontier or y > frontier[-1][1]:
            frontier.append((x, y))
    return frontier


# The printed numbers of Figure 5, compared with single splits here and with the test rows that the paper states.

_OVERALL_TITLE = "Overall test: the numbers printed of a data set among those of single splits"
_OVERALL = {
    **dict.fromkeys(("data", "set-up", "splits", "numbers", "outside"), ""),
    **{"usual": ".1f", "most": "", "probability": ".3f", "smallest, any": ".3f"},
}
_TAILS_TITLE = "Printed numbers among those of single splits"
_TAILS = {
    **dict.fromkeys(("data", "set-up", "number", "printed"), ""),
    **{"mean": ".4f", "probability": ".3f", "probability, any": ".3f"},
}
_SIZES_TITLE = "Numbers of test rows of which all printed agreements and accuracies are shares"
_SIZES = dict.fromkeys(("data", "printed", "data set", "rows", "stated test rows", "shares of these", "possible"), "")
_SIZES |= {"nearest": ".0f", "percent": ".1f"}


# The numbers of test rows that fit printed shares.

# A split is called 80/20 if that is right to the whole percent.
_WHOLE_PERCENT = 0.005


def is_share(printed: vocab.Reported, n_rows: int) -> bool:
    """Tell whether some k / `n_rows` rounds to the printed digits; a half may go to either side."""
    half = 0.5 * 10.0**-printed.decimals
    return abs(nearest_share(printed, n_rows) - printed.value) <= half * (1 + 1e-9)


def nearest_share(printed: vocab.Reported, n_rows: int) -> float:
    """Return the k / `n_rows` that is nearest to a printed number."""
    return round(printed.value * n_rows) / n_rows


def possible_sizes(shares: Sequence[vocab.Reported], n_rows: int) -> list[int]:
    """Return the numbers of test rows, up to `n_rows`, of which all printed numbers are shares."""
    return [size for size in range(1, n_rows + 1) if all(is_share(one, size) for one in shares)]


def stated_sizes(n_rows: int, test_fraction: float) -> range:
    """Return the numbers of test rows that are a fraction of the rows, to the whole percent or the next row."""
    exact, margin = round(n_rows * test_fraction, 9), n_rows * _WHOLE_PERCENT
    low = min(math.floor(exact), math.ceil(exact - margin))
    return range(low, max(math.ceil(exact), math.floor(exact + margin)) + 1)


def interval_text(sizes: range) -> str:
    """Return a range of consecutive numbers in words."""
    return f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else str(sizes[0])


def contradiction(
    printed: vocab.Reported, shares: Sequence[vocab.Reported], data: Mapping[str, int], test_fraction: float
) -> str:
    """Return the proof that a printed number is not a share of the stated test rows; empty if it may be one.

    `shares` are all printed numbers on the same test rows, and `data` the number of rows of each data set that the
    paper may mean.
    """
    stated = {name: stated_sizes(n_rows, test_fraction) for name, n_rows in data.items()}
    if not shares or any(is_share(printed, size) for sizes in stated.values() for size in sizes):
        return ""
    digits = printed.decimals + 2
    parts = []
    for name, sizes in stated.items():
        nearest = min(sizes, key=lambda size: abs(nearest_share(printed, size) - printed.value))
        share = nearest_share(printed, nearest)
        percent = f"{100 * test_fraction:g} % of {name}'s {data[name]} rows, to the whole percent"
        parts.append(
            f"of {interval_text(sizes)} test rows ({percent}) the nearest share is "
            f"{round(share * nearest)}/{nearest} = {share:.{digits}f}"
        )
    largest = max(data.values())
    possible = possible_sizes(shares, largest)
    ending = (
        f" All {len(shares)} printed shares together are possible with {', '.join(map(str, possible))} of up to "
        f"{largest} rows only."
    )
    beginning = f"{printed.printed} is not a share of the stated test rows, if all rows are used"
    return f"{beginning}: {'; '.join(parts)}.{ending if possible else ''}"


# What Figure 5 and its section say about one data set, averaged over splits.

PICKS = {"optimal_eca": "highest ECA", "optimal_accuracy": "highest accuracy", "information_gain": "information gain"}
# The subsets of features for which the paper prints the results of its one split; the tables have more.
_PRINTED_PICKS = ("optimal_eca", "optimal_accuracy")
_TESTED = ("agreement", "accuracy")
_OF_ALL = ("full_accuracy", "better_than_full_percent")


def _columns(name: str) -> dict[_Place, str]:
    """Return the entries of a job's result by the row and the quantity under which they are printed."""
    of_picks = {
        (f"{name} {PICKS[pick]}", quantity): f"{pick}_{quantity}" for pick in _PRINTED_PICKS for quantity in _TESTED
    }
    return of_picks | {(name, quantity): quantity for quantity in _OF_ALL}


def _averages(name: str, ours: pd.DataFrame, printed: _Printed) -> Iterator[vocab.Number]:
    """Yield means over the splits, with prediction intervals for one more, and what section 6.1 claims.

    Shares of splits are yielded only for data sets about which it claims one.
    """
    for (row, quantity), column in _columns(name).items():
        yield vocab.number_of(row, quantity, _mean(ours[column], quantity), ours)
    for quantity, value in _CLAIMS.items():
        if quantity.endswith("lead") or (name, quantity) in printed:
            yield vocab.number_of(name, quantity, value(ours), ours)
    # What the text reads off the scatter of one split, that accuracy goes with agreement and that there is a frontier:
    # a rank correlation over the feasible subsets, and how many of them no other beats in both.
    first = ours[ours["split"] == 0]
    for points in first["points"]:
        cloud = pd.DataFrame(points)
        yield vocab.number_of(name, "rank_correlation", cloud[0].corr(cloud[1], method="spearman"), first)
        yield vocab.number_of(name, "frontier", len(_frontier(points)), first)


def _shares(name: str, printed: _Printed) -> list[vocab.Reported]:
    """Return the printed shares of test rows of a data set."""
    return [one for (row, quantity), one in printed.items() if row.startswith(f"{name} ") and quantity in _TESTED]


def _rows_of(name: str, by_setup: _BySetup) -> dict[str, int]:
    """Return the number of rows of each data set that the paper may mean; one that both set-ups use counts once."""
    found = [ours.iloc[0] for (own, _), ours in by_setup.items() if own == name]
    return {str(first["dataset"]): int(first["n_rows"]) for first in found}


def _spreads(ours: pd.DataFrame, titles: Mapping[str, str]) -> dict[str, float]:
    """Return the mean of each quantity, by title, and the ends of its prediction interval."""
    return {
        column: value
        for quantity, title in titles.items()
        for column, value in zip(_with_ends(title), _mean(ours[quantity], quantity).with_ends, strict=True)
    }


def _with_ends(title: str) -> tuple[str, str, str]:
    return title, f"{title} low", f"{title} high"


def _spread_formats(titles: Mapping[str, str]) -> dict[str, str]:
    return {
        column: ".1f" if quantity.endswith("percent") else ".4f"
        for quantity, title in titles.items()
        for column in _with_ends(title)
    }


def _mean(values: pd.Series[float], quantity: str) -> vocab.Mean:
    """Return a mean with the prediction interval for one more split, cut off at the limits of shares or percentages."""
    return vocab.mean_of(values, "prediction", limits=(0.0, 100.0 if quantity.endswith("percent") else 1.0))


def _lead(ours: pd.DataFrame, pick: str, quantity: str) -> float:
    """Return the mean lead of a pick over information gain."""
    lead = float((ours[f"{pick}_{quantity}"] - ours[f"information_gain_{quantity}"]).mean())
    # Equal means differ by rounding; adding 0 takes the sign from a zero.
    return round(lead, 12) + 0.0


def _percent_of(ours: pd.DataFrame, holds: Callable[[Any], Any]) -> float:
    """Return the percentage of splits in which something `holds` for the lead of highest ECA in accuracy."""
    return 100 * float(holds(ours["optimal_eca_accuracy"] - ours["optimal_accuracy_accuracy"]).mean())


_TESTED_TITLES = {quantity: f"test {quantity}" for quantity in _TESTED}
_TESTS = dict.fromkeys(("data", "set-up", "subset", "splits"), "") | _spread_formats(_TESTED_TITLES)
_REMARKED_TITLES = dict(zip(_OF_ALL, _OF_ALL, strict=True))
_REMARKS = dict.fromkeys(("data", "set-up"), "") | _spread_formats(_REMARKED_TITLES)
# What section 6.1 claims about a data set in words.
_CLAIMS: Mapping[str, Callable[[pd.DataFrame], float]] = {
    "more_accurate_percent": lambda ours: _percent_of(ours, lambda lead: lead > 0),
    "equally_accurate_percent": lambda ours: _percent_of(ours, lambda lead: lead == 0),
    "agreement_lead": lambda ours: _lead(ours, "optimal_eca", "agreement"),
    "accuracy_lead": lambda ours: _lead(ours, "optimal_accuracy", "accuracy"),
}
_CLAIM_COLUMNS = {
    **dict.fromkeys(("data", "set-up", "splits"), ""),
    **{name: ".0f" if name.endswith("percent") else ".4f" for name in _CLAIMS},
}


# Agreement and accuracy of every feature subset of a classifier that is learned on a split.


_COMPARED = {
    **{"n_rows": COUNT, "n_test_rows": COUNT, "n_subsets": COUNT, "full_accuracy": SHARE},
    **{"full_test_accuracy": SHARE, "better_than_full_percent": PERCENT, "*_features": NAMES},
    **dict.fromkeys(("*_eca", "*_cv_accuracy", "*_agreement", "*_accuracy"), SHARE),
}


def potential_agreements(
    classifier: BayesianClassifier, budget: float
) -> tuple[list[tuple[int, ...]], NDArray[np.float64]]:
    """Return all feature subsets within a budget, by position, and the maximum potential agreement of each.

    For naive Bayes it equals the maximum achievable agreement (Proposition 3).
    """
    subsets, agreements = [], []
    for batch in subset_batches(DenseEngine.build(classifier).root, [1.0] * classifier.n_features, budget):
        _, _, signed = batch.instances(classifier)
        subsets += [tuple(sorted(kept)) for kept in batch.kept.tolist()]
        agreements.append(0.5 * (1.0 + np.abs(signed).sum(axis=1)))
    return subsets, np.concatenate(agreements)


def cross_validated_accuracy(
    features: pd.DataFrame,
    target: pd.Series,
    subsets: NDArray[np.bool_],
    *,
    positive: str,
    threshold: float,
    n_folds: int,
    rng: np.random.Generator,
    smoothing: float = 1.0,
) -> NDArray[np.float64]:
    """Return the average accuracy over the folds of a naive Bayes classifier on each feature subset.

    A naive Bayes classifier on a subset equals the one on all features without the weights of the others, so one model
    for each fold serves all subsets.

    Parameters
    ----------
    subsets : ndarray of bool, shape (n_subsets, n_features)
    features, target, positive, threshold, n_folds, rng, smoothing
        As in `folds_of`.

    Returns
    -------
    ndarray of shape (n_subsets,)
    """
    folds = folds_of(features, target, positive, threshold, n_folds, rng, smoothing)
    accuracies = np.zeros(len(subsets))
    for fold in folds:
        predicted = fold.weights @ subsets.T >= fold.needed
        accuracies += (predicted == fold.truth[:, None]).mean(axis=0)
    return accuracies / n_folds


@job(_COMPARED, _COMPARED | {"points": list_of(list_of(SHARE))})
def agreement_and_accuracy(
    learning: Learning, positive: str, budget_divisor: int, n_folds: int, with_points: bool
) -> dict[str, vocab.Json]:
    """Compare all feature subsets of a learned classifier by agreement and by cross-validated accuracy.

    All classes but the positive one are one class. Agreement and accuracy of each subset are part of the result where
    `with_points` is set.
    """
    loaded = vocab.dataset_of(learning.dataset)
    split = Split.of(loaded.features, two_classes(loaded.target, positive), learning)
    classifier = split.learned(positive, learning)
    budget = classifier.n_features // budget_divisor
    kept, agreements = potential_agreements(classifier, budget)
    everything = range(classifier.n_features)
    *accuracies, full_accuracy = cross_validated_accuracy(
        split.train,
        split.target,
        np.array([[feature in subset for feature in everything] for subset in (*kept, everything)]),
        positive=positive,
        threshold=learning.threshold,
        n_folds=n_folds,
        rng=np.random.default_rng(learning.split_seed),
        smoothing=learning.smoothing,
    ).tolist()
    by_gain = select_features(classifier, budget, by="information_gain").features
    picks = {
        "optimal_eca": int(np.argmax(agreements)),
        "optimal_accuracy": int(np.argmax(accuracies)),
        "information_gain": kept.index(tuple(sorted(map(classifier.features.index, by_gain)))),
    }
    result: dict[str, vocab.Json] = {
        "n_rows": len(loaded.features),
        "n_test_rows": len(split.test),
        "n_subsets": len(kept),
        "full_accuracy": full_accuracy,
        "full_test_accuracy": split.tested(classifier, classifier)["full_test_accuracy"],
        "better_than_full_percent": 100.0 * float((np.array(accuracies) > full_accuracy + 1e-12).mean()),
    }
    level = classifier.threshold
    for pick, row in picks.items():
        names, threshold = [classifier.features[i] for i in kept[row]], level
        if pick == "optimal_eca":  # trimming moves the threshold; the others keep it
            threshold = best_cut(make_engine(classifier, "dense").instances(kept[row]), level).representative(level)
        tested = split.tested(classifier, classifier.with_features(names, threshold))
        facts = {"features": names, "eca": float(agreements[row]), "cv_accuracy": accuracies[row]}
        facts |= {quantity: tested[f"test_{quantity}"] for quantity in _TESTED}
        result |= {f"{pick}_{name}": value for name, value in facts.items()}
    if with_points:
        result["points"] = [[float(x), y] for x, y in zip(agreements, accuracies, strict=True)]
    return result
