"""Figure 7: trimming of general networks against feature selection by information gain."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING

from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.cells import Cell, check_axis
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.numbers import Number, numbers_of
from trimbench.papers.study.outcome import Outcome
from trimbench.papers.study.tables import Table
from trimbench.papers.trimming.against_information_gain import trim_drawn_class, trim_tree_augmented
from trimbench.papers.trimming.checks import check_counts, check_thresholds
from trimbench.papers.trimming.figure7_report import AT_LEAST, STRICTLY, SUBSTITUTE, Variant, compared
from trimbench.papers.trimming.problems import Problem, check_problems
from trimbench.papers.validation import settings
from trimbench.trimming.engines.choice import EngineName

if TYPE_CHECKING:
    import pandas as pd

# The values of the label that tells the variants apart.
_NONE, _EVIDENCE = "none", "of the competition"
_GIVEN = Variant(" given the competition's evidence", "given_evidence")


@settings
class Figure7:
    """Agreement of trimmings of general networks, over thresholds and drawn classes (Figure 7).

    The features of a network are its leaves; `classes` class variables are drawn from its binary roots. In place of the
    network for mammography, which is not public, a tree-augmented naive Bayes classifier is learned with `smoothing` on
    each of the `substitutes`, which are names in `problems`. The budget is the number of features divided by
    `budget_divisor`, rounded down.

    The `evidence_networks` are also computed given the evidence that is declared with them: every probability is
    conditional on it, and features and classes are among the variables that were not observed. None of the reported
    numbers depends on them.

    The table of a network may take `max_operations` products of two numbers; `n_threads` share the work.
    """

    networks: list[str]
    thresholds: list[float]
    classes: int = 3
    substitutes: list[str] = field(default_factory=list)
    problems: dict[str, Problem] = field(default_factory=dict)
    budget_divisor: int = 3
    smoothing: float = 1.0
    engine: EngineName = "auto"
    evidence_networks: list[str] = field(default_factory=list)
    max_operations: float = 1e11
    n_threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("networks and substitutes", [*self.networks, *self.substitutes])
        check_problems("substitutes", self.substitutes, self.problems)
        check_thresholds(self.thresholds)
        check_counts(classes=self.classes, budget_divisor=self.budget_divisor, n_threads=self.n_threads)
        if len(set(self.evidence_networks)) < len(self.evidence_networks):
            raise ValueError(f"evidence_networks must be distinct, got {self.evidence_networks}")
        if not 1 <= self.max_operations < math.inf:
            raise ValueError(f"max_operations must be a number of at least 1, got {self.max_operations}")
        if not 0 < self.smoothing < math.inf:
            raise ValueError(f"smoothing must be a positive number, got {self.smoothing}")

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each network and class, with evidence and without, and for each substitute."""
        shared = {"thresholds": self.thresholds, "budget_divisor": self.budget_divisor, "engine": self.engine}
        limits = {"max_operations": int(self.max_operations), "n_threads": self.n_threads}
        drawn = [
            Cell.of(
                {"network": name, "class": draw + 1, "evidence": _EVIDENCE if given else _NONE},
                trim_drawn_class,
                network=network,
                draw=draw,
                seed=seed_for(purpose="class variable", network=name, seed=self.seed),
                limits=limits,
                **shared,
            )
            for names, given in ((self.networks, False), (self.evidence_networks, True))
            for name, network in ((name, inputs.network(name, evidence=given)) for name in names)
            # A network that is declared with its class keeps it.
            for draw in range(1 if network.declared.get("target") else self.classes)
        ]
        learned = [
            Cell.of(
                {"network": f"{SUBSTITUTE}{name}", "class": 1, "evidence": _NONE},
                trim_tree_augmented,
                dataset=inputs.dataset(self.problems[name].dataset),
                positive=self.problems[name].positive,
                smoothing=self.smoothing,
                **shared,
            )
            for name in self.substitutes
        ]
        return drawn + learned

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the agreement of all methods: averaged over the thresholds, and at each; and what was refused.

        What is computed given evidence has tables and figures of its own.
        """
        is_given = rows["evidence"] == _EVIDENCE
        plain = compared(rows[~is_given], Variant(), self.engine)
        numbers = _numbers(plain.claim, plain.solved)
        if not is_given.any():
            return Outcome(plain.tables, plain.figures, numbers, _NOTES)
        given = compared(rows[is_given], _GIVEN, self.engine)
        return Outcome(
            [*plain.tables, *given.tables], [*plain.figures, *given.figures], numbers, (*_NOTES, *_EVIDENCE_NOTES)
        )


def _numbers(claim: Table, solved: pd.DataFrame) -> list[Number]:
    """Return in how many percent of all settings the claim holds, read in two ways."""
    if claim.frame.empty:
        return []
    every = claim.frame.iloc[0]
    readings = {"at_least_as_often_percent": AT_LEAST, "more_often_percent": STRICTLY}
    percents = {quantity: 100 * float(every[column] / every["number"]) for quantity, column in readings.items()}
    return numbers_of("all settings", percents, solved)


_NOTES = (
    "Agreement at each single threshold is in figure7_thresholds.csv. 'No feature' gives every instance the decision "
    "that the original makes more often: where it reaches 1, the original itself never looks at its features (as in "
    "networks whose leaves say little about their roots). It has a figure of its own.",
    "The lead is that of the trimming over information gain with the best threshold for its features; it is never "
    "negative where the trimming is proven optimal. Figure 7 is a picture without numbers; its claim, that the "
    "trimming consistently agrees more often, is counted in the table of settings.",
    "Engine 'auto' compiles a circuit where most probabilities of a network are 0 or 1, and makes a table otherwise; "
    "a refusal says what the table would need.",
    "The paper does not say which networks or classes it drew; the classes here are drawn by the seed from the binary "
    "roots that have children, and the positive state is the last one.",
    "The mammography network of the paper is not public. In its place stand tree-augmented naive Bayes classifiers "
    "that are learned on public medical and voting data, named as substitutes.",
)
_EVIDENCE_NOTES = (
    "Given evidence is a variant of ours, not of the paper: the networks of the UAI 2008 evaluation come with observed "
    "states of some variables, and without them most of the networks are too wide for exact methods. All "
    "probabilities are conditional on the evidence, features are the leaves that it leaves free, and classes are drawn "
    "from the binary roots that it leaves free. Its tables and figures are named so; none of the numbers that are "
    "compared with the paper comes from them.",
)
