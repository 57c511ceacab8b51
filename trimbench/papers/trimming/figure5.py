"""Figure 5: agreement against accuracy of every feature subset, on data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from trimbench.papers.study.cells import Cell, check_axis
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.names import shown_name
from trimbench.papers.study.numbers import Explanation, Number
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.reported import printed_numbers
from trimbench.papers.study.tables import Table
from trimbench.papers.trimming.checks import check_counts, check_shares
from trimbench.papers.trimming.classifiers import Encoding, LearnedOnSplits
from trimbench.papers.trimming.figure5_print import Print
from trimbench.papers.trimming.problems import Problem, check_problems
from trimbench.papers.trimming.split_averages import PICKS, Averages, averages_of, claim_columns, spread_columns
from trimbench.papers.trimming.subset_accuracies import agreement_and_accuracy
from trimbench.papers.validation import settings

if TYPE_CHECKING:
    import pandas as pd

STATED, INFERRED = "stated", "inferred"
_ENCODINGS: Mapping[str, Encoding] = {STATED: "medians", INFERRED: "means"}


@settings
class Figure5(LearnedOnSplits):
    """Agreement and cross-validated accuracy of every feasible subset (Figure 5), over several splits.

    The data sets are names in `problems`; the figures show the first split. The budget is the number of features
    divided by `budget_divisor`, rounded down. Names in `inferred` are run a second time, with the data set there and
    with the cuts that the authors' networks show.
    """

    datasets: list[str]
    problems: dict[str, Problem]
    splits: int
    n_folds: int = 10
    budget_divisor: int = 2
    inferred: dict[str, Problem] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_axis("datasets", self.datasets)
        check_problems("datasets", self.datasets, self.problems)
        for name in self.inferred:
            if name not in self.problems:
                raise ValueError(
                    f"inferred must have names of problems, {list(self.problems)}, got {name!r}; remove inferred.{name}"
                )
        check_counts(splits=self.splits, budget_divisor=self.budget_divisor)
        check_shares(threshold=self.threshold)

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each data set, set-up and split."""
        return [
            Cell.of(
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

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return Figure 5c averaged over the splits, the remarks of the text, and the scatter of the first split."""
        found: list[Averages] = []
        numbers: list[Number] = []
        figures: list[LineFigure] = []
        print_tests = Print(printed_numbers("trimming/figure5"), self.test_fraction)
        for name in self.datasets:
            by_setup = {
                setup: averages_of(name, setup, ours)
                for setup in self._setups(name)
                if len(ours := successes(rows, name=name, setup=setup))
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
            Table.of(_TITLE, [line for one in found for line in one.tests], spread_columns("tests")),
            Table.of(_REMARKS_TITLE, [one.remarks for one in found], spread_columns("remarks"), name="remarks"),
            Table.of(_CLAIMS_TITLE, [one.claims for one in found], claim_columns(), name="claims"),
            *print_tests.tables(),
        )
        return Outcome(tables, figures, numbers, _NOTES)

    def _explained(self, name: str, numbers: Sequence[Number], inferred: Averages | None) -> list[Number]:
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
            replace(one, explanation=Explanation(setup, other.value, other.interval), jobs=(*one.jobs, *other.jobs))
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
_NOTES = (
    "Low and high are the ends of Student's 95 % prediction interval for one more random split; the paper reports one.",
    "Stated: numbers are cut at their median in the training rows; the paper does not say how it cut them, nor which "
    "of the heart data sets it used. Inferred: the data and cuts that give the parameters of the authors' networks "
    "(trimming/authors_networks): numbers cut at the mean of all rows, and Cleveland's heart data, where num = 0 is "
    "the positive class and a fair coin fills missing cells. Verdicts are on the stated set-up.",
    "Highest ECA is tested with its moved threshold, the others at the original one.",
    "The tests against the print hold its numbers on a data set against single splits, rounded alike: 'outside' counts "
    "those in the outer 5 % of the splits (this needs 39), 'usual' how many of one split are. A probability is that of "
    "a number as far out as the printed one, to either side; 'any' is that of any of the data set's numbers.",
    "Stated test rows are right to the whole percent. A split that draws each row for itself may leave another number "
    "of test rows; 'nearest' is the possible one nearest to the stated share.",
)


def _scatter(name: str, setup: str, result: Mapping[Any, Any]) -> LineFigure:
    import pandas as pd

    cloud = result["points"]
    points = [("feasible subset", x, y) for x, y in cloud]
    points += [("Pareto frontier", x, y) for x, y in _frontier(cloud)]
    points += [(title, result[f"{pick}_eca"], result[f"{pick}_cv_accuracy"]) for pick, title in PICKS.items()]
    remark = "" if setup == STATED else f" ({setup} set-up)"
    return LineFigure(
        f"{shown_name(name)}: agreement and accuracy of feature subsets{remark}",
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
