"""Figure 5: agreement against accuracy of every feature subset, on data, and the shares printed beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from trimbench.papers import vocabulary as vocab
from trimbench.papers.execution.job import COUNT, PERCENT, SHARE, job, listed
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
from trimbench.trimming.baselines import cross_validated_accuracy, select_by_information_gain
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.curve import potential_agreements
from trimbench.trimming.engines.choice import make_engine
from trimbench.trimming.thresholds import best_cut

STATED, INFERRED = "stated", "inferred"
_ENCODINGS: Mapping[str, Encoding] = {STATED: "medians", INFERRED: "means"}


@vocab.settings
class Figure5(LearnedOnSplits):
    """Agreement and cross-validated accuracy of every feasible subset (Figure 5), over several splits.

    The data sets are names in `problems`; the figures show the first split. The budget is the number of features
    divided by `budget_divisor`, rounded down. Names in `inferred` are run a second time, with the data set there and
    with the cuts that the authors' networks show.
    """

    datasets: vocab.Axis[str]
    problems: dict[str, Problem]
    threshold: vocab.Share = 0.5
    splits: vocab.Count
    n_folds: int = 10
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
                learning=self.learning(problem.dataset, split, inputs, _ENCODINGS[setup]),
                positive=problem.positive,
                budget_divisor=self.budget_divisor,
                n_folds=self.n_folds,
                with_points=split == 0,
            )
            for name in self.datasets
            for setup, problem in self._setups(name).items()
            for split in range(self.splits)
        ]

    def _setups(self, name: str) -> dict[str, Problem]:
        inferred = {INFERRED: self.inferred[name]} if name in self.inferred else {}
        return {STATED: self.problems[name]} | inferred

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return Figure 5c averaged over the splits, the remarks of the text, and the scatter of the first split."""
        found: list[Averages] = []
        numbers: list[vocab.Number] = []
        figures: list[vocab.LineFigure] = []
        print_tests = Print(vocab.printed_numbers("trimming/figure5"), self.test_fraction)
        for name in self.datasets:
            by_setup = {
                setup: averages_of(name, setup, ours)
                for setup in self._setups(name)
                if len(ours := vocab.successes(rows, name=name, setup=setup))
            }
            found += by_setup.values()
            figures += [
                _scatter(name, setup, first)
                for setup, averages in by_setup.items()
                for first in averages.rows[averages.rows["split"] == 0].to_dict("records")
            ]
            print_tests.hold(name, by_setup)
            if STATED in by_setup:
                tested = print_tests.on(name, by_setup[STATED].numbers, STATED)
                numbers += self._explained(name, tested, by_setup.get(INFERRED))
        tables = (
            vocab.Table.of(_TITLE, [line for one in found for line in one.tests], spread_columns("tests")),
            vocab.Table.of(_REMARKS_TITLE, [one.remarks for one in found], spread_columns("remarks"), name="remarks"),
            vocab.Table.of(_CLAIMS_TITLE, [one.claims for one in found], claim_columns(), name="claims"),
            *print_tests.tables(),
        )
        return vocab.Outcome(tables, figures, numbers)

    def _explained(self, name: str, numbers: Sequence[vocab.Number], inferred: Averages | None) -> list[vocab.Number]:
        """Return numbers of the stated set-up with those of the inferred one as explanations."""
        if inferred is None:
            return list(numbers)
        problem = self.inferred[name]
        setup = (
            f"data set {problem.dataset}, positive class {problem.positive}, "
            "numbers cut at the mean of all rows, missing cells filled by a fair coin"
        )
        others = {(one.row, one.quantity): one for one in inferred.numbers}
        return [
            replace(
                one, explanation=vocab.Explanation(setup, other.value, other.interval), jobs=(*one.jobs, *other.jobs)
            )
            if (other := others.get((one.row, one.quantity))) and other.value is not None
            else one
            for one in numbers
        ]


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
    return vocab.LineFigure(
        f"{vocab.shown_name(name)}: agreement and accuracy of feature subsets{remark}",
        "expected classification agreement",
        "cross-validated accuracy",
        pd.DataFrame(points, columns=["series", "x", "y"]),
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


# The printed numbers of Figure 5 against single splits of ours, and against the test rows that the paper states.

_Place = tuple[str, str]


class Print:
    """What is printed of each data set, held against several set-ups.

    Parameters
    ----------
    printed : mapping from (row, quantity) to Reported
    test_fraction : float
        The stated share of test rows.
    """

    def __init__(self, printed: Mapping[_Place, vocab.Reported], test_fraction: float) -> None:
        self._printed = printed
        self._test_fraction = test_fraction
        self._probabilities: dict[tuple[str, str], dict[_Place, vocab.Probability]] = {}
        self._rows: dict[str, dict[str, int]] = {}
        self._shares: dict[str, list[vocab.Reported]] = {}
        self._overall: list[Mapping[str, object]] = []
        self._tails: list[Mapping[str, object]] = []

    def hold(self, name: str, by_setup: Mapping[str, Averages]) -> None:
        """Hold what is printed of one data set against the splits of each set-up."""
        for setup, averages in by_setup.items():
            places = [place for place in averages.draws if place in self._printed]
            if places:
                self._test(name, setup, places, averages)
        self._shares[name] = [
            one for (row, quantity), one in self._printed.items() if row.startswith(f"{name} ") and quantity in TESTED
        ]
        # By data set, so that one that both set-ups use counts once.
        self._rows[name] = {
            str(averages.rows["dataset"].iloc[0]): int(averages.rows["n_rows"].iloc[0])
            for averages in by_setup.values()
        }

    def _test(self, name: str, setup: str, places: Sequence[_Place], averages: Averages) -> None:
        printed = [self._printed[place] for place in places]
        values = np.array([averages.draws[place] for place in places], dtype=float).T
        draws = vocab.Draws([one.value for one in printed], values, [one.decimals for one in printed])
        alone, together = draws.alone(), draws.together()
        self._probabilities[name, setup] = dict(zip(places, together, strict=True))
        line: dict[str, object] = {"data": name, "set-up": setup, "splits": len(values), **draws.outside().columns}
        self._overall.append(line | {"smallest, any": min(one.value for one in together)})
        self._tails += [
            {
                "data": name,
                "set-up": setup,
                "number": one.label,
                "printed": one.value,
                "mean": float(column.mean()),
                "probability": single.value,
                "probability, any": adjusted.value,
            }
            for one, column, single, adjusted in zip(printed, values.T, alone, together, strict=True)
        ]

    def on(self, name: str, numbers: Sequence[vocab.Number], setup: str) -> list[vocab.Number]:
        """Return numbers with their probabilities in a set-up, and with the proof where they are no possible share."""
        probabilities = self._probabilities.get((name, setup), {})
        found = []
        for number in numbers:
            place = number.row, number.quantity
            proof = ""
            if place in self._printed and self._printed[place] in self._shares[name]:
                proof = contradiction(self._printed[place], self._shares[name], self._rows[name], self._test_fraction)
            found.append(replace(number, probability=probabilities.get(place), contradiction=proof))
        return found

    def tables(self) -> list[vocab.Table]:
        """Return the overall tests, those of single numbers, and the possible sizes of the test part."""
        sizes = [
            self._sizes(name, data, n_rows, shares)
            for name, shares in self._shares.items()
            for data, n_rows in self._rows[name].items()
            if shares
        ]
        return [
            vocab.Table.of(_OVERALL_TITLE, self._overall, _OVERALL, name="overall"),
            vocab.Table.of(_TAILS_TITLE, self._tails, _TAILS, name="tails"),
            vocab.Table.of(_SIZES_TITLE, sizes, _SIZES, name="test_sizes"),
        ]

    def _sizes(self, name: str, data: str, n_rows: int, shares: Sequence[vocab.Reported]) -> dict[str, object]:
        stated = stated_sizes(n_rows, self._test_fraction)
        line: dict[str, object] = {
            "data": name,
            "printed": ", ".join(one.printed for one in shares),
            "data set": data,
            "rows": n_rows,
            "stated test rows": interval_text(stated),
            "shares of these": sum(any(is_share(one, size) for size in stated) for one in shares),
        }
        if possible := possible_sizes(shares, n_rows):
            nearest = min(possible, key=lambda size: abs(size - n_rows * self._test_fraction))
            line |= {"possible": ", ".join(map(str, possible)), "nearest": nearest, "percent": 100 * nearest / n_rows}
        return line


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


# Of how many test rows printed shares can be shares.

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
    """Return the first and the last of consecutive numbers in words."""
    return f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else str(sizes[0])


def contradiction(
    printed: vocab.Reported, shares: Sequence[vocab.Reported], data: Mapping[str, int], test_fraction: float
) -> str:
    """Return the proof that a printed number is no share of the stated test rows; empty if it may be one.

    `shares` are all printed numbers on the same test rows, and `data` the rows of the data sets that may be meant.
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


# What Figure 5 and its section say of one data set, averaged over splits.

PICKS = {
    "optimal_eca": "highest ECA",
    "optimal_accuracy": "highest accuracy",
    "information_gain": "information gain",
}
# What the paper prints or claims; the tables have more.
PRINTED_PICKS = ("optimal_eca", "optimal_accuracy")
TESTED = ("agreement", "accuracy")
REMARKS = ("full_accuracy", "better_than_full_percent")
_LEADS = ("agreement_lead", "accuracy_lead")
_MORE_ACCURATE = "more_accurate_percent"
_OFTEN_MORE_ACCURATE = "heart"


@dataclass(frozen=True, eq=False)
class Averages:
    """The lines of the tables for one data set and set-up, and the counterparts of printed numbers.

    `rows` are those of the jobs, one for each split; `draws` has the values of all splits for each number that one
    split of the paper gave.
    """

    rows: pd.DataFrame
    tests: Sequence[Mapping[str, object]]
    remarks: Mapping[str, object]
    claims: Mapping[str, object]
    numbers: Sequence[vocab.Number]
    draws: Mapping[tuple[str, str], Sequence[float]]


def averages_of(name: str, setup: str, ours: pd.DataFrame) -> Averages:
    """Return the averages of one data set in one set-up; `ours` are the rows of its successful jobs."""
    labels: dict[str, object] = {"data": name, "set-up": setup}
    tests, numbers = [], []
    draws: dict[tuple[str, str], Sequence[float]] = {}
    for pick, title in PICKS.items():
        found = _averages(f"{name} {title}", ours, TESTED, f"{pick}_")
        tests.append(labels | {"subset": title, "splits": len(ours)} | _spread(found, "test "))
        if pick in PRINTED_PICKS:
            numbers += found
            draws |= {(f"{name} {title}", quantity): ours[f"{pick}_{quantity}"].tolist() for quantity in TESTED}
    remarks = _averages(name, ours, REMARKS)
    draws |= {(name, quantity): ours[quantity].tolist() for quantity in REMARKS}
    claim = _claims(ours)
    numbers += _picture(name, ours)
    claimed = (*_LEADS, _MORE_ACCURATE) if name == _OFTEN_MORE_ACCURATE else _LEADS
    numbers += remarks + vocab.numbers_of(name, {quantity: claim[quantity] for quantity in claimed}, ours)
    return Averages(ours, tests, labels | _spread(remarks), labels | {"splits": len(ours)} | claim, numbers, draws)


def _picture(name: str, ours: pd.DataFrame) -> list[vocab.Number]:
    """Return what the text reads off the scatter of one split: accuracy goes with agreement, and there is a frontier.

    A rank correlation over the feasible subsets, and how many of them no other beats in both.
    """
    numbers = []
    for first in ours[ours["split"] == 0].to_dict("records"):
        cloud = pd.DataFrame(first["points"])
        values = {
            "rank_correlation": cloud[0].corr(cloud[1], method="spearman"),
            "frontier": len(_frontier(first["points"])),
        }
        numbers += vocab.numbers_of(name, values, ours[ours["split"] == 0])
    return numbers


def spread_columns(table: Literal["tests", "remarks"]) -> dict[str, str]:
    """Return the columns of a table with their formats."""
    labels = dict.fromkeys(("data", "set-up"), "")
    if table == "tests":
        return labels | dict.fromkeys(("subset", "splits"), "") | _spread_formats(TESTED, "test ")
    return labels | _spread_formats(REMARKS)


def claim_columns() -> dict[str, str]:
    """Return the columns of the table of claims with their formats."""
    labels = dict.fromkeys(("data", "set-up", "splits"), "")
    return labels | {_MORE_ACCURATE: ".0f", "equally_accurate_percent": ".0f", **dict.fromkeys(_LEADS, ".4f")}


def _averages(row: str, ours: pd.DataFrame, quantities: Sequence[str], prefix: str = "") -> list[vocab.Number]:
    """Return means over the splits, with prediction intervals for one more."""
    found = {quantity: vocab.mean_of(ours[f"{prefix}{quantity}"], "prediction") for quantity in quantities}
    return vocab.numbers_of(row, found, ours)


def _spread(numbers: Iterable[vocab.Number], prefix: str = "") -> dict[str, object]:
    """Return columns with the numbers and the ends of their intervals."""
    columns: dict[str, object] = {}
    for number in numbers:
        low, high = (number.interval.low, number.interval.high) if number.interval else (math.nan, math.nan)
        columns |= zip(_ends(f"{prefix}{number.quantity}"), (number.value, low, high), strict=True)
    return columns


def _spread_formats(quantities: Iterable[str], prefix: str = "") -> dict[str, str]:
    return {
        column: ".1f" if quantity.endswith("percent") else ".4f"
        for quantity in quantities
        for column in _ends(f"{prefix}{quantity}")
    }


def _ends(quantity: str) -> tuple[str, str, str]:
    return quantity, f"{quantity} low", f"{quantity} high"


def _claims(ours: pd.DataFrame) -> dict[str, float]:
    """Return what section 6.1 claims of one data set in words."""
    accuracy = ours["optimal_accuracy_accuracy"]
    more = ours["optimal_eca_accuracy"] - accuracy
    leads = {
        "agreement_lead": ours["optimal_eca_agreement"] - ours["information_gain_agreement"],
        "accuracy_lead": accuracy - ours["information_gain_accuracy"],
    }
    return {
        _MORE_ACCURATE: 100 * float((more > 0).mean()),
        "equally_accurate_percent": 100 * float((more == 0).mean()),
        # Equal means differ by rounding; adding 0 takes the sign from a zero.
    } | {title: round(float(lead.mean()), 12) + 0.0 for title, lead in leads.items()}


# Agreement and accuracy of every feature subset of a classifier that is learned on a split.


_COMPARED = {
    **{"n_rows": COUNT, "n_test_rows": COUNT, "n_subsets": COUNT, "full_accuracy": SHARE},
    **{"full_test_accuracy": SHARE, "better_than_full_percent": PERCENT, "*_features": NAMES},
    **dict.fromkeys(("*_eca", "*_cv_accuracy", "*_agreement", "*_accuracy"), SHARE),
}


@job(_COMPARED, _COMPARED | {"points": listed(listed(SHARE))})
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
    by_gain = sorted(classifier.features.index(name) for name in select_by_information_gain(classifier, budget))
    picks = {
        "optimal_eca": int(np.argmax(agreements)),
        "optimal_accuracy": int(np.argmax(accuracies)),
        "information_gain": kept.index(tuple(by_gain)),
    }
    result: dict[str, vocab.Json] = {
        "n_rows": len(loaded.features),
        "n_test_rows": len(split.test),
        "n_subsets": len(kept),
        "full_accuracy": full_accuracy,
        "full_test_accuracy": split.tested(classifier, classifier)["full_test_accuracy"],
        "better_than_full_percent": 100.0 * float((np.array(accuracies) > full_accuracy + 1e-12).mean()),
    }
    for pick, row in picks.items():
        facts = {"eca": float(agreements[row]), "cv_accuracy": accuracies[row]}
        facts |= _on_test_rows(split, classifier, kept[row], moves_threshold=pick == "optimal_eca")
        result[f"{pick}_features"] = [classifier.features[i] for i in kept[row]]
        result |= {f"{pick}_{name}": value for name, value in facts.items()}
    if with_points:
        result["points"] = [[float(x), y] for x, y in zip(agreements, accuracies, strict=True)]
    return result


def _on_test_rows(
    split: Split, classifier: BayesianClassifier, kept: Sequence[int], *, moves_threshold: bool
) -> dict[str, float]:
    """Test a subset. Trimming moves the threshold; selection by accuracy or information gain keeps it."""
    level = classifier.threshold
    if moves_threshold:
        level = best_cut(make_engine(classifier, "dense").instances(kept), level).representative(level)
    tested = split.tested(classifier, classifier.with_features([classifier.features[i] for i in kept], level))
    return {"agreement": tested["test_agreement"], "accuracy": tested["test_accuracy"]}
