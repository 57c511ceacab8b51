"""NaCL and its mixture against methods that learn from data how to predict where features are missing."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from pydantic import NonNegativeFloat, PositiveInt

from trimbench.papers.conformant.evaluation import check_missing
from trimbench.papers.conformant.gap_comparison import Rows, compare_with_gaps
from trimbench.papers.conformant.gap_groups import groups_of
from trimbench.papers.conformant.gap_methods import METHODS
from trimbench.papers.conformant.missing_values_tables import NOTES, figures_of, tables_of
from trimbench.papers.conformant.protocol import Task, make_task
from trimbench.papers.conformant.split_tables import Shape
from trimbench.papers.data.missingness import Mechanism, Missingness
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.cells import Cell, Label, check_axis
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.outcome import Outcome
from trimbench.papers.validation import settings, unknown

if TYPE_CHECKING:
    import pandas as pd

# Every split is a random one, also where a protocol has a split of its own.
_ANY_SPLIT = {"last": 0, "test_rows": [], "test_rows_file": ""}


@settings
class MissingValues:
    """Methods on rows of which a share of the features is missing, by one mechanism or another.

    The shares `missing` are those of every mechanism, and `missing_at_random` further ones of ``mcar``. Data sets in
    `numbers` keep their numbers, the others become zeros and ones by their protocol; images in `shrink` have squares of
    so many pixels a side as one pixel. Rows beyond `train_rows` and `test_rows` are left out at random. For the
    mechanisms in `incomplete`, all shares in `missing` are also run with training rows that miss features as the test
    rows do.
    """

    datasets: list[str]
    mechanism: list[Mechanism]
    missing: list[float]
    missing_at_random: list[float] = field(default_factory=list)
    incomplete: list[Mechanism] = field(default_factory=list)
    methods: list[str] = field(default_factory=lambda: list(METHODS))
    splits: PositiveInt = 5
    train_rows: PositiveInt = 1000
    test_rows: PositiveInt = 500
    numbers: list[str] = field(default_factory=list)
    shrink: dict[str, PositiveInt] = field(default_factory=dict)
    smoothing: NonNegativeFloat = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("datasets", "mechanism", "missing", "methods"):
            check_axis(name, getattr(self, name))
        check_missing(self._shares("mcar"), Missingness())
        for method in self.methods:
            if method not in METHODS:
                raise unknown("methods", list(METHODS), method)
        if "mixture" not in self.methods:
            raise ValueError(f"methods must have mixture, with which the others are compared, got {self.methods}")

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each data set, split, mechanism and share."""
        cells = []
        for name in self.datasets:
            for split in range(self.splits):
                seed = seed_for(purpose="split with gaps", split=split, seed=self.seed)
                task = make_task(inputs, name, "paper", seed, **_ANY_SPLIT)
                cells += [
                    self._cell(task, split, mechanism, share)
                    for mechanism in self.mechanism
                    for share in self._shares(mechanism)
                ]
        return cells

    def _shares(self, mechanism: Mechanism) -> list[float]:
        further = self.missing_at_random if mechanism == "mcar" else []
        return sorted({*self.missing, *further})

    def _cell(self, task: Task, split: int, mechanism: Mechanism, share: float) -> Cell:
        shrink = self.shrink.get(task.name, 1)
        training: list[Rows] = ["complete"]
        if mechanism in self.incomplete and share in self.missing:
            training.append("incomplete")
        labels: dict[str, Label] = {
            "dataset": task.name,
            "title": task.title,
            "mechanism": mechanism,
            "missing": share,
            "split": split,
        }
        image = [side // shrink for side in task.protocol.image] if mechanism == "block" else []
        return Cell.of(
            labels,
            compare_with_gaps,
            task=task,
            shape=Shape(
                numbers=task.name in self.numbers,
                shrink=shrink,
                train_rows=self.train_rows,
                test_rows=self.test_rows,
            ),
            missingness=Missingness(mechanism, image=image or None),
            missing=share,
            mask_seed=seed_for(
                purpose="gaps", dataset=task.name, mechanism=mechanism, missing=share, split=split, seed=self.seed
            ),
            methods=self.methods,
            training=training,
            smoothing=self.smoothing,
        )

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return what the mixture wins and loses, all means, what was claimed, and the curves over the share."""
        groups = groups_of(rows)
        return Outcome(tables_of(groups), figures_of(groups), (), NOTES)
