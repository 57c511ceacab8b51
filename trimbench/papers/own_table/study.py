"""A study of one's own table, from Python and from the command line."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.estimators.trimmed import TrimmedClassifier
from trimbench.papers.own_table.confidence import CHOOSING, judge_confidence
from trimbench.papers.own_table.found import Share, Steps, Studied
from trimbench.papers.own_table.report import conclusions, model_lines, notes, render_study
from trimbench.papers.own_table.settings import (
    STUDY,
    StoredTable,
    StudySettings,
    costs_by_feature,
    keep_table,
    table_file,
    with_settings,
)
from trimbench.papers.own_table.steps import (
    CLASSIFIERS,
    FEW,
    OUTER,
    choose_budget,
    explain_rows,
    judge_classifier,
    predict_with_gaps,
    select_within,
)
from trimbench.papers.own_table.table_reading import read_table
from trimbench.papers.own_table.tables import card_of, figures_of, rows_of, tables_of
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.execution.code_hash import JobFunction
from trimbench.reproduction.execution.executors import Executor, SerialExecutor
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.processes import ProcessExecutor
from trimbench.reproduction.execution.store import JobStore
from trimbench.reproduction.files import write_text
from trimbench.reproduction.messages import fitted, terminal_width, visible
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.runs import check_run, make_run, write_findings
from trimbench.reproduction.reporting.tables import cut, markdown
from trimbench.reproduction.settings import ConfigurationError, Json, validated
from trimbench.reproduction.vocabulary.cells import Cell, Inputs, Label
from trimbench.reproduction.vocabulary.numbers import Outcome
from trimbench.reproduction.vocabulary.planning import Findings, Plan, Surroundings, run_plans

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """What a study of a table found. Printing it shows its conclusions.

    Attributes
    ----------
    plan : OwnTable
        The table as it was read, its costs and the settings.
    findings : Findings
        The outcome of its jobs.
    steps : Steps
        What each step found.
    code : str
        Python code that learns the model to keep again, from the same file, or from a data frame `table`.
    seconds : float
        How long it took.
    files : tuple of Path
        The files that were written, the page last; empty without a folder.
    """

    plan: OwnTable
    findings: Findings
    steps: Steps
    code: str
    seconds: float
    files: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        """Name the features to keep and the tables."""
        return f"Study(features={self.features}, tables={tuple(self.tables)})"

    def __str__(self) -> str:
        """Return the conclusions, one to a line."""
        return "\n".join(self.conclusions)

    @property
    def conclusions(self) -> tuple[str, ...]:
        """The answers in sentences, each with its numbers."""
        return tuple(conclusions(self.steps))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was repaired, left out or shortened."""
        return tuple(notes(self.steps))

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """What each step found, by name.

        The names are ``"frontier"``, ``"card"``, ``"classifiers"``, ``"baseline"``, ``"missing"``, ``"confidence"``,
        ``"explanations"``, ``"used"``, and ``"failures"`` if a step has no result.
        """
        return {one.name or _MAIN: one.frame for one in self.findings.outcome.tables}

    @property
    def points(self) -> dict[str, pd.DataFrame]:
        """What the figures show, by name."""
        return {one.name: one.points for one in self.findings.outcome.figures}

    @property
    def figures(self) -> dict[str, Figure]:
        """The figures, drawn for a notebook to show."""
        from trimbench.reproduction.reporting.figures.drawing import drawn, style

        settings = FigureSettings()
        shown = [figure for figure in self.findings.outcome.figures if not figure.points.empty]
        with style(settings):
            return {figure.name: drawn(figure, settings) for figure in shown}

    @property
    def features(self) -> tuple[str, ...]:
        """The features to keep."""
        return tuple(self.steps.chosen["features"]) if self.steps.chosen else ()

    @property
    def accuracy(self) -> Share | None:
        """Share of right decisions with the features to keep.

        It has ``.value``, a 95 % interval from ``.low`` to ``.high``, and ``.n_rows``. The rows are ones that neither
        the model nor the choice of its budget has seen: if rows are few, all of them, by nested cross-validation.
        """
        return self.steps.accuracy

    @cached_property
    def model(self) -> TrimmedClassifier | None:
        """The model to keep, which predicts new rows with the same columns."""
        if self.steps.chosen is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            path.write_text(json.dumps(self.steps.chosen["model"]), encoding="utf-8")
            model: TrimmedClassifier = TrimmedClassifier.load(path)
        return model


# A study as an experiment: its jobs, and what they found.


@dataclass(frozen=True, eq=False)
class OwnTable(Studied):
    """The study of a table that was read."""

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return the jobs of all steps; nothing in them depends on where the table comes from."""
        own = self.settings
        gaps = [
            self._cell(
                "gaps",
                predict_with_gaps,
                {"missing": share, "split": split},
                {"mechanism": mechanism},
                missingness={"mechanism": mechanism},
                methods=own.methods,
                rows=own.gap_rows,
            )
            for split in range(own.splits)  # those of a split share what is learned from its complete rows
            for mechanism in own.mechanisms
            for share in own.shares
        ]
        budgets = own.levels(self.costs)
        frontier = [self._cell("frontier", select_within, {"budget": one}, **self._trimming) for one in budgets]
        baseline = [self._cell("baseline", judge_classifier, {"classifier": one}, rows=own.rows) for one in CLASSIFIERS]
        confidence = [
            *(
                self._cell("confidence", judge_confidence, {"method": method}, {"k": k}, ks=[k], rows=own.rows)
                for k in own.selected
                for method in self.selecting
            ),
            *(
                self._cell("confidence", judge_confidence, {"method": method}, ks=own.selected, rows=own.rows)
                for method in CHOOSING
            ),
        ]
        explained = self._cell("explanations", explain_rows, {}, n_rows=own.explained, rows=own.rows)
        rest = [*baseline, *confidence, *([explained] if own.explained else [])]
        return [*gaps, *frontier, *self._choice(), *rest]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return tables, figures and conclusions."""
        found = Steps.of(rows, self)
        return Outcome(tables_of(found), figures_of(found), (), [*conclusions(found), *notes(found)])

    @property
    def _trimming(self) -> dict[str, Any]:
        own = self.settings
        seconds = own.seconds(len(self.costs))
        return {"positive": self.positive, "costs": dict(self.costs), "rows": own.rows, "time_limit": seconds}

    def _choice(self) -> list[Cell]:
        are_few = self.settings.test_share * len(self.table.labels) < FEW
        folds = (None, *range(OUTER if are_few else 0))
        own, levels = self.settings, self.settings.levels(self.costs)
        most = max(own.budgets or levels) if own.budget is None else own.budget
        budgets = [level for level in levels if level <= most]
        given = {**self._trimming, "budgets": budgets if own.budget is None else budgets[-1:]}
        return [self._cell("choice", choose_budget, {"fold": fold}, **given) for fold in folds]

    def _cell(
        self,
        step: str,
        function: JobFunction,
        place: Mapping[str, Label],
        labels: Mapping[str, Label] | None = None,
        **parameters: object,
    ) -> Cell:
        """Return the cell of a step; its `place` is in the labels and among the parameters."""
        shared = {"table": self.table.sha256, "test_share": self.settings.test_share, "seed": self.settings.seed}
        job = Job.create(function, {**shared, **place, **parameters}, {"table": self.table.sha256})
        return Cell({"step": step, **place, **(labels or {})}, job)


# What `trimbench.papers.study` does once it knows that its packages are installed.

_MAIN = "frontier"


def study_table(
    table: Any,
    target: str,
    costs: Mapping[str, float] | None,
    budget: float | None,
    folder: str | Path | None,
    n_jobs: int,
    settings: Mapping[str, Any],
) -> Study:
    """Study a table and return what was found."""
    values = {name: _plain(value) for name, value in settings.items()}
    # The names of columns are text, as the table has them once it is read.
    target, costs = str(target), None if costs is None else {str(name): cost for name, cost in costs.items()}
    own = validated(StudySettings, {**values, "budget": budget}, "study")
    workers = validated(ProcessExecutor, {"workers": n_jobs}, "study: n_jobs")
    executor: Executor = SerialExecutor() if n_jobs == 1 else workers
    place = None if folder is None else Path(folder).expanduser()
    if place is not None:
        check_run(place, STUDY, "folder")
    plan = prepared(table, target, costs, own)
    cache = Cache.from_environment(offline=True)
    store = JobStore(cache.writable / "studies" if place is None else place.parent / "jobs")
    studied = run_study(
        plan,
        str(Path(table).resolve()) if isinstance(table, str | Path) else None,
        target,
        Surroundings(Inputs(Catalogue(), cache), store, executor, "default"),
        lambda text: sys.stdout.write(visible(text)),
    )
    files = () if place is None else write_study(studied, place, FigureSettings())
    return replace(studied, files=files)


def _plain(value: Any) -> Any:
    """Return a setting without arrays and tuples, such as names taken from the columns of a frame."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}  # the keys are names of columns
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


# Run a study: read the table, show how it was read, run the jobs, and write what they found.

_MOST = 30  # columns, and notes on them, that a terminal shows
Say = Callable[[str], object]


def prepared(
    source: str | Path | pd.DataFrame, target: str, costs: Mapping[str, float] | None, settings: StudySettings
) -> OwnTable:
    """Read a table and its costs; nothing runs yet. Raises ConfigurationError, which says in a line what is wrong."""
    read = read_table(source, target, settings, sample_rows=settings.sample_rows, seed=settings.seed)
    table = with_settings(read, settings.missing_values)
    counts = [int((table.labels == place).sum()) for place in range(len(table.classes))]
    if min(counts) < 2:
        rare = table.classes[counts.index(min(counts))]
        raise ConfigurationError(
            f"target must have each class in at least two rows, got {rare!r} in {min(counts)}; leave such rows out"
        )
    n_rows, share = len(table.labels), settings.test_share
    data = StoredTable(table.features, table.labels, table.classes)
    is_split = 0 < round(n_rows * share) < n_rows
    if not is_split or len(set(table.labels[data.split(share, settings.seed)[0]])) < len(counts):
        raise ConfigurationError(
            f"test_share must leave rows to test on, and of each class rows to learn from, got {share!r} of {n_rows} "
            "rows; write for example test_share=0.25"
        )
    left_out = {one.name for one in table.card if one.read_as in ("left out", "id")}
    return OwnTable(table, costs_by_feature(costs, data.names, left_out), settings)


def run_study(plan: OwnTable, source: str | None, target: str, where: Surroundings, say: Say) -> Study:
    """Run the jobs of a study that are not stored; `source` is the file that the lines that rebuild the model read."""
    start = time.perf_counter()
    card, notes = card_of(plan.table), plan.table.repairs
    # The notes on columns are among the notes below, of which the last is about all columns.
    card = cut(replace(card, frame=card.frame.drop(columns="notes")), _MOST)
    some = notes if len(notes) <= _MOST else [*notes[: _MOST - 1], f"{len(notes) - _MOST} more", notes[-1]]
    shown = f"{card.title}\n\n{markdown(card, terminal_width())}", "\n".join(fitted(f"- {line}", 2) for line in some)
    say("\n\n".join([f"# {plan.table.name}: {rows_of(plan.table)}", *shown]) + "\n")
    keep_table(plan.table, where.inputs.cache)
    configuration: dict[str, Json] = {"target": target, "costs": dict(plan.costs), **asdict(plan.settings)}
    made = Plan.of(STUDY, configuration, plan, [], where)
    made = replace(made, files=table_file(plan.table.sha256, where.inputs.cache))
    found: list[Findings] = []
    run_plans([made], where, lambda one, records: found.append(one.findings(records)), label=plan.table.name)
    steps = Steps.of(found[0].rows, plan)
    return Study(plan, found[0], steps, model_lines(steps, source, target), time.perf_counter() - start)


def write_study(studied: Study, folder: Path, figure: FigureSettings) -> tuple[Path, ...]:
    """Write all files of a study into the folder of its run, and return them; the page is the last."""
    make_run(folder, STUDY)
    written = write_findings(studied.findings, [], folder, figure)
    if studied.steps.chosen:
        model = json.dumps(studied.steps.chosen["model"], indent=1) + "\n"
        written += [write_text(model, folder / "model.json"), write_text(studied.code, folder / "model.py")]
    page = render_study(studied.steps, studied.findings, studied.code, studied.seconds, folder)
    return (*written, write_text(page, folder / "index.html"))
