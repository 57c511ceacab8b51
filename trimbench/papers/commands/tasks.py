"""The tasks of the command: run, report, plot, list, fetch, compare and study, and what they cost."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from statistics import fmean
from typing import Protocol
from urllib.parse import urlsplit

from trimbench.papers.commands.invocation import PUBLISHED, SHARED_KEYS, Invocation, Point, Task
from trimbench.papers.commands.publishing import publish
from trimbench.papers.configuration import NOT_SETTINGS, Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declarations import (
    DatasetDeclaration,
    Declaration,
    declare_dataset,
    declare_network,
    is_here,
    obstacle,
)
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.run import duration
from trimbench.papers.execution.store import Glance, JobStore, Record, no_commit
from trimbench.papers.execution.workers import n_workers
from trimbench.papers.files import safe_name, settings_name, without_homes, write_csv
from trimbench.papers.reporting.archive import experiments_of, write_archive
from trimbench.papers.reporting.figures.drawing import StoredFigure, write_pictures
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.overview import Overview, say
from trimbench.papers.reporting.runs import (
    check_profile,
    folder_of,
    is_run,
    make_run,
    nothing_stored,
    read_run,
    runs_in,
    write_findings,
)
from trimbench.papers.reporting.sweeps import SweepPoint, main_table, notes_on, write_sweep
from trimbench.papers.reporting.tables import markdown, markdown_rows
from trimbench.papers.reporting.verdicts import compare as verdicts_compare
from trimbench.papers.validation import ConfigurationError, Json, by_host, validated, ways_out
from trimbench.papers.vocabulary.cells import Cell, Experiment
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.planning import Findings, Plan, Surroundings, held_against_servers, run_plans
from trimbench.papers.vocabulary.planning import fetch as fetch_one
from trimbench.papers.vocabulary.reported import Literature, NumbersError
from trimbench.papers.vocabulary.tables import Table

# A whole run begins with the table that is there after seconds.
_FIRST = "trimming/table6"
# What configurations hold beside the settings of an experiment, its seed and its profile.
_NO_SETTINGS = tuple(key for key in (*SHARED_KEYS, *NOT_SETTINGS) if key not in ("seed", "profile"))


class _Reporter(Protocol):
    """Takes what was found, experiment by experiment."""

    def note(self, findings: Findings) -> None: ...

    def note_failure(self, name: str, error: Exception) -> None: ...


@dataclass(frozen=True)
class _Task:
    """One experiment of one point, and who reports it."""

    name: str
    point: Point
    experiment: Experiment
    stem: str
    reporter: _Reporter


def run(invocation: Invocation, cache_mode: str | None = None) -> int:
    """Run the experiments and write their tables and figures; return 1 if a job or an experiment failed."""
    mode = cache_mode or invocation.settings.cache_mode
    executor = invocation.make_executor()
    figure = invocation.figure.settings
    # Everything is made and read before the first job runs, so that a mistake, even in the last point of a sweep, costs
    # no time.
    made = [{name: invocation.make(name, point) for name in point.experiments} for point in invocation.points]
    literature = Literature.of(invocation.catalogue)
    where = Surroundings(Inputs(invocation.catalogue, invocation.cache()), invocation.store(), executor, mode)
    _check_writable(invocation.settings.results)
    folder = invocation.root / invocation.run
    check_profile(folder, invocation.profile)
    if "git says" in (unknown := no_commit()):
        sys.stderr.write(f"The commit of this program is not known, so no result names it; {unknown}\n")
    if invocation.sweep:
        sweep = Sweep(invocation, folder / "sweeps" / invocation.sweep, literature, figure)
        tasks = [
            _Task(name, point, experiment, name, reporter)
            for point, experiments, reporter in zip(invocation.points, made, sweep.reporters, strict=True)
            for name, experiment in experiments.items()
        ]
        _run_all(tasks, literature, where, invocation, strict=False)
        return sweep.close()
    (point,), (experiments,) = invocation.points, made
    suffix = f",{settings_name(point.named)}" if point.named else ""
    overview = Overview(folder, invocation.catalogue, literature, figure, profile=invocation.profile, suffix=suffix)
    names = sorted(literature.in_order(experiments), key=lambda name: name != _FIRST)
    tasks = [_Task(name, point, experiments[name], f"{name}{suffix}", overview) for name in names]
    _run_all(tasks, literature, where, invocation, strict=invocation.chosen)
    return overview.close(summary=not invocation.chosen)


def report(invocation: Invocation) -> int:
    """Write tables and figures again, from stored results alone, and an archive of the run if it is asked for."""
    code = run(invocation, cache_mode="only")
    if invocation.settings.archive:
        _archive(invocation)
    return code


def _archive(invocation: Invocation) -> None:
    folder = invocation.root / invocation.run
    if not experiments_of(folder):
        raise ConfigurationError(
            f"run must have results to archive, got none in {str(folder)!r}; run experiments first"
        )
    path = invocation.root / "archives" / f"{invocation.run}.zip"
    write_archive(folder, invocation.store(), invocation.catalogue, path, _NO_SETTINGS)
    say(f"\nThe archive of the run {invocation.run}, an RO-Crate:\n  {path}")


def _run_all(
    tasks: Sequence[_Task], literature: Literature, where: Surroundings, invocation: Invocation, *, strict: bool
) -> None:
    """Plan all experiments, then run their jobs as one set. If `strict`, an experiment that cannot run ends it all."""

    def attempt(task: _Task, step: Callable[[], None], *fatal: type[Exception]) -> None:
        try:
            step()
        except fatal:
            raise
        except Exception as error:
            if strict and not isinstance(error, NumbersError):
                raise
            task.reporter.note_failure(task.name, error)

    plans: dict[Plan, _Task] = {}

    def plan(task: _Task) -> None:
        settings = task.point.experiments[task.name]
        reported = literature.reported(task.name)
        altered = task.point.altered
        made = Plan.of(task.name, settings, task.experiment, reported, where, altered=altered, stem=task.stem)
        plans[made] = task

    def conclude(plan: Plan, records: Mapping[str, Record]) -> None:
        task = plans[plan]
        # Where the files of one experiment cannot be written, those of the others cannot either.
        attempt(task, lambda: task.reporter.note(plan.findings(records)), OSError)

    for task in tasks:
        attempt(task, functools.partial(plan, task))
    if len(plans) > 1 and where.cache_mode != "only":
        _say_data(list(plans), where.inputs.cache)
    typical = measured(invocation.catalogue, invocation.profile)
    expected: dict[str, float] = {}
    for one in plans:
        expected.update(expected_seconds(one.jobs, one.done, typical.get(one.name, {})))
    label = tasks[0].name if len(tasks) == 1 else f"{len(tasks)} {'points' if invocation.sweep else 'experiments'}"
    if where.cache_mode != "only":
        make_run(invocation.root / invocation.run, invocation.profile)
    run_plans(list(plans), where, conclude, label=label, expected=expected)


def _say_data(plans: Sequence[Plan], cache: Cache) -> None:
    """Say which data is here, by which road, and what the rest leaves out."""
    inputs = {found.place: found for plan in plans for cell in plan.cells for found in cell.inputs}
    roads: dict[str, list[str]] = {}
    for _, found in sorted(inputs.items()):
        roads.setdefault(found.declaration.road(cache), []).append(found.name)
    say("Data that is here:")
    for road, names in sorted(roads.items()):
        if road:
            say(f"  {road}: {', '.join(names)}")
    missing = sorted({name for plan in plans for name in plan.missing})
    if missing:
        say(f"Not here: {', '.join(missing)}")
        for what, names in (
            ("Without a result", [plan.name for plan in plans if not plan.jobs]),
            ("Without a part of it", [plan.name for plan in plans if plan.missing and plan.jobs]),
        ):
            say(f"{what}: {', '.join(names) or 'none'}")


def _check_writable(folder: str) -> None:
    """Raise an error if a folder cannot be written to. It is not created yet: other settings may be wrong."""
    path = Path(folder).absolute()
    existing = next(place for place in (path, *path.parents) if os.path.lexists(place))  # also a link to nowhere
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"results must be a folder that can be written, got {folder!r}; {existing} cannot, choose another folder"
        )


# What is found at the points of a sweep: files for each point, then one table, figures and a page of all.

# More rows are only in the files.
_MOST_ROWS = 40


class PointReporter:
    """Writes what the experiments of one point find into the folder of the point, and keeps it for the whole sweep."""

    def __init__(self, point: Point, folder: Path, literature: Literature, figure: FigureSettings) -> None:
        self.swept: Mapping[str, Json] = point.swept
        self.folder = folder
        self.findings: list[Findings] = []
        self.failures: dict[str, str] = {}
        self._literature, self._figure = literature, figure

    def note(self, findings: Findings) -> None:
        """Write and keep what an experiment found. If none of its jobs is stored, leave the files of before."""
        self.findings.append(findings)
        if nothing_stored(findings):
            return
        judgements = verdicts_compare(self._literature.reported(findings.name), findings.numbers)
        write_findings(findings, judgements, self.folder, self._figure, drawn=False)

    def note_failure(self, name: str, error: Exception) -> None:
        """Keep the reason why an experiment could not run."""
        self.failures[name] = without_homes(str(error))


class Sweep:
    """Reports the points of a sweep, and at the end the whole."""

    def __init__(self, invocation: Invocation, folder: Path, literature: Literature, figure: FigureSettings) -> None:
        self._folder, self._figure, self._invocation = folder, figure, invocation
        self.reporters = [
            PointReporter(point, folder / "points" / point.folder, literature, figure) for point in invocation.points
        ]

    def close(self) -> int:
        """Write the files of the whole sweep, print its table, and return the exit code."""
        points = [
            SweepPoint(one.swept, f"points/{one.folder.name}", one.findings, one.failures) for one in self.reporters
        ]
        records = [record for point in points for found in point.findings for record in found.records]
        if records and all(record.status == "missing" for record in records):
            say("No results are stored for this sweep, so nothing was written; task=run computes them.")
            return 1
        make_run(self._folder.parents[1], self._invocation.profile)
        written = write_sweep(points, self._folder, self._figure)
        table = main_table(points)
        say(f"\n## {table.title}\n")
        say(markdown(dataclasses.replace(table, frame=table.frame.head(_MOST_ROWS))))
        if len(table.frame) > _MOST_ROWS:
            say(f"\nThe first {_MOST_ROWS} of {len(table.frame):,} rows.")
        for note in notes_on(points):
            say(f"\n{note}")
        say("")
        for path in written:
            say(f"  {path}")
        failed = any(point.failures or any(found.failures for found in point.findings) for point in points)
        return 1 if failed else 0


# The task ``list``: what is stored of each experiment, what data it lacks, and what the rest will cost.

_COST = "processor time to run the rest"
_COUNTS = ("jobs", "done", "failed", "missing")
_COLUMNS = ("experiment", *_COUNTS, _COST, "data")


@dataclass(frozen=True)
class _Stock:
    """The jobs of one or several experiments: what is stored of each, and what it is expected to cost, by key."""

    stored: dict[str, Glance | None] = field(default_factory=dict)
    expected: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, cells: Sequence[Cell], store: JobStore, typical: Mapping[str, float]) -> _Stock:
        jobs = {cell.job.key: cell.job for cell in cells}
        stored = {key: store.glance(job) for key, job in jobs.items()}
        done = {key: found.seconds for key, found in stored.items() if found and found.ok}
        return cls(stored, expected_seconds(jobs.values(), done, typical))

    def add(self, other: _Stock) -> None:
        """Add the jobs of an experiment; those that it shares with an earlier one run once."""
        self.stored.update(other.stored)
        self.expected.update({key: cost for key, cost in other.expected.items() if key not in self.expected})

    @property
    def rest(self) -> list[str]:
        return [key for key, found in self.stored.items() if not (found and found.ok)]

    def line(self) -> dict[str, object]:
        found = list(self.stored.values())
        return {
            "jobs": len(found),
            "done": sum(one is not None and one.ok for one in found),
            "failed": sum(one is not None and not one.ok for one in found),
            "missing": found.count(None),
            _COST: duration(total(self.rest, self.expected)),
        }


def list_experiments(invocation: Invocation) -> int:
    """Print each experiment with its jobs, the cost of those that are still to run, and its data; then the sum."""
    cache, store = invocation.cache(), invocation.store()
    inputs = Inputs(invocation.catalogue, cache)
    experiments = {name: invocation.make(name) for name in invocation.experiments}
    typical = measured(invocation.catalogue, invocation.profile)
    lines: list[dict[str, object]] = []
    everything = _Stock()
    for name, experiment in experiments.items():
        try:
            cells = experiment.cells(inputs)
        except Exception as error:
            if invocation.chosen:
                raise
            lines.append({"experiment": name, _COST: duration(None), "data": f"cannot be planned: {error}"})
        else:
            stock = _Stock.of(cells, store, typical.get(name, {}))
            everything.add(stock)
            needs = {found.place: found.declaration for cell in cells for found in cell.inputs}
            lines.append({"experiment": name, **stock.line(), "data": _data(needs, cache)})
    if len(experiments) > 1:
        lines.append({"experiment": "all, shared jobs once", **everything.line(), "data": ""})
    # Without pandas, whose import would take half a second.
    rows = [[str(line.get(column, "–")) for column in _COLUMNS] for line in lines]
    say(markdown_rows(_COLUMNS, rows, [column in _COUNTS for column in _COLUMNS]))
    workers = n_workers(invocation.make_executor())
    wall = wall_seconds(everything.rest, everything.expected, workers)
    if wall:
        at_once = "one after the other" if workers == 1 else f"{workers} at a time"
        say(f"\nRunning the rest takes about {duration(wall)}, {at_once}.")
    return 0


def _data(needs: Mapping[str, Declaration], cache: Cache) -> str:
    """Say whether the data is here, and where it is not, what stands in the way or is to be fetched."""
    if not needs:
        return "none needed"
    absent = {name: obstacle(need, cache) for name, need in needs.items() if not is_here(need, cache)}
    if not absent:
        return "here"
    parts = [f"{name}: {reason}" for name, reason in absent.items() if reason]
    wanted = [name for name, reason in absent.items() if not reason]
    if wanted:
        parts.append(f"{len(wanted)} of {len(needs)} to be fetched (trimbench task=fetch): {', '.join(wanted)}")
    return "; ".join(parts)


# The task ``fetch``: download and verify data.


def fetch(invocation: Invocation) -> int:
    """Download and verify the data of the experiment, or everything declared; return 1 if some is not available.

    With `verify` a table says what each server has against what is declared, whatever the cache holds; a file says why.
    """
    cache, verify = invocation.cache(), invocation.settings.verify
    lines: list[dict[str, str]] = []
    failures: dict[str, str] = {}
    for declaration in _declarations(invocation, cache):
        try:
            how = fetch_one(declaration, cache, verify=verify)
        except Exception as error:  # noqa: BLE001 - a host that is down must not keep the rest from being fetched
            failures[declaration.name] = str(error)
        else:
            say(f"{declaration.name}: here, {how}")
        if verify and isinstance(declaration, DatasetDeclaration):
            lines += held_against_servers(declaration, cache)
    if lines:
        table = Table.of("", lines, [*lines[0]])
        short = table.frame.assign(**{"from": [urlsplit(one).netloc or one for one in table.frame["from"]]})
        say(markdown(dataclasses.replace(table, frame=short.drop(columns="why"))))
        invocation.root.mkdir(parents=True, exist_ok=True)
        say(f"\nWith addresses and reasons:\n  {write_csv(table.frame, invocation.root / 'verified.csv')}\n")
    for line in by_host(failures):
        say(f"FAILED: {line}")
    if ways := ways_out(failures.values()):
        say(f"To have what is missing, {ways}.")
    return 1 if failures or any(line["what it has"] == "other rows" for line in lines) else 0


def _declarations(invocation: Invocation, cache: Cache) -> Iterator[Declaration]:
    catalogue = invocation.catalogue
    if invocation.chosen:
        inputs = Inputs(catalogue, cache)
        needs = [
            need
            for name in invocation.experiments
            for cell in invocation.make(name).cells(inputs)
            for need in cell.inputs
        ]
        yield from {need.place: need.declaration for need in needs}.values()
        return
    yield from (declare_dataset(name, catalogue.dataset_mapping(name)) for name in catalogue.names("dataset"))
    yield from (declare_network(name, catalogue.network_mapping(name)) for name in catalogue.names("network"))


# The task ``plot``: draw the figures of a run again, from their points.

# The folder of pictures with other settings, beside those of the runs.
_PLOTS = "plots"


@dataclass(frozen=True, eq=False)
class _Plan:
    """A figure, the pictures of it to draw, and the settings to draw them with."""

    figure: StoredFigure
    pictures: Sequence[Path]
    settings: FigureSettings


def plot(invocation: Invocation) -> int:
    """Draw the figures of a run, of one experiment or of all; return 1 if there is none, or if points are absent.

    Pictures take their places beside the points, drawn as they were; those of the published run are drawn only where
    they are missing. With other settings they go to a folder of these settings.
    """
    root, run = Path(invocation.settings.results), invocation.settings.run or PUBLISHED
    found = list(_stored(folder_of(root, run), list(invocation.experiments) if invocation.chosen else None))
    what = f"{', '.join(invocation.experiments)} in the run {run}" if invocation.chosen else f"the run {run}"
    if not found:
        say(f"There are no figures of {what}.")
        return 1
    plans = [_plan(figure, root, run, invocation) for figure in found]
    plans = [plan for plan in plans if plan.pictures]
    if not plans:
        say(f"Nothing to draw: every picture of {what} is there. With other settings, such as figure=column,")
        say(f"they are drawn into {root / _PLOTS / run}.")
        return 0
    say(f"Drawing {len(plans)} figure{'' if len(plans) == 1 else 's'} of {what}:")
    drawn = [_draw(plan) for plan in plans]
    return 0 if all(drawn) else 1


def _stored(folder: Path, experiments: Sequence[str] | None) -> Iterator[StoredFigure]:
    """Yield the figures that the JSON files below a folder describe, of the given experiments or of all."""
    for path in sorted(folder.rglob("*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ConfigurationError(f"{path} cannot be read: {error}; task=report writes it again") from error
        if not isinstance(content, dict) or (experiments and content.get("experiment") not in experiments):
            continue
        yield from (StoredFigure(description, path.parent) for description in content.get("figures", ()))


def _plan(figure: StoredFigure, root: Path, run: str, invocation: Invocation) -> _Plan:
    if invocation.figure.is_default:
        missing = [path for path in figure.pictures if run != PUBLISHED or not path.exists()]
        return _Plan(figure, missing, figure.settings)
    settings = invocation.figure.settings
    folder = root / _PLOTS / run / invocation.figure.name / figure.folder.relative_to(root / run)
    stem = figure.pictures[0].stem
    return _Plan(figure, [folder / f"{stem}.{ending}" for ending in settings.formats], settings)


def _draw(plan: _Plan) -> bool:
    """Draw a figure, and say so; return whether its points and its description allow it."""
    try:
        figure = plan.figure.figure()
    except FileNotFoundError:
        say(f"  cannot be drawn without {plan.figure.points}; task=report writes it from stored jobs")
        return False
    except ConfigurationError as error:
        say(f"  {error}")
        return False
    folder = plan.pictures[0].parent
    folder.mkdir(parents=True, exist_ok=True)
    for path in write_pictures(figure, plan.pictures, plan.settings):
        say(f"  {path}")
    return True


# The task ``compare``: what differs between two finished runs.


def compare(invocation: Invocation) -> int:
    """Print and write what differs between two runs; return 0, whether or not something does."""
    # It loads pandas.
    from trimbench.papers.reporting.comparison import compare_runs, summarised, write_comparison

    root, runs = Path(invocation.settings.results), invocation.settings.runs
    if len(runs) != 2:
        raise ConfigurationError(
            f"runs must be the names of two runs, got {_listed(runs)}; write runs=[a,b]; {_choice(root)}"
        )
    first, second = (read_run(name, _folder(name, root)) for name in runs)
    comparison = compare_runs(first, second)
    say(f"# {first.name} and {second.name}\n\n{summarised(comparison)}\n")
    name = safe_name(",".join(runs), stands_for=runs if any("," in run for run in runs) else None)
    for path in write_comparison(comparison, root / "comparisons" / name):
        say(f"  {path}")
    return 0


def _folder(name: str, root: Path) -> Path:
    """Return the folder of a run, given by its name below the results or by its path."""
    for folder in (root / name, Path(name).expanduser()):
        if is_run(folder):
            return folder
    raise ConfigurationError(f"runs must name finished runs or their folders, got {name!r}; {_choice(root)}")


def _choice(root: Path) -> str:
    names = runs_in(root)
    return f"the runs in {root} are: {', '.join(names)}" if names else f"there is no run in {root} yet"


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names)) if names else "none"


# The task ``study``: a study of one's own table.


def study(invocation: Invocation) -> int:
    """Study a table and write its page; return 1 if a job failed."""
    # These load scikit-learn and the library's classifiers.
    from trimbench.papers.own_table.settings import StudySettings, read_costs
    from trimbench.papers.own_table.study import STEM, prepared, run_study, write_study

    values = invocation.study
    data, target = _text(values, "data"), _text(values, "target")
    names = {field.name for field in fields(StudySettings)}
    own = validated(StudySettings, {key: value for key, value in values.items() if key in names}, "study")
    path = Path(data).expanduser()
    folder = invocation.root / (invocation.settings.run or safe_name(f"{STEM}-{path.name.partition('.')[0]}"))
    check_profile(folder, STEM)
    executor = invocation.make_executor()
    costs = values.get("costs")
    plan = prepared(path, target, None if costs is None else read_costs(Path(str(costs)).expanduser()), own)
    studied = run_study(
        plan,
        str(path.absolute()),
        target,
        catalogue=invocation.catalogue,
        cache=invocation.cache(),
        store=invocation.store(),
        executor=executor,
        cache_mode=invocation.settings.cache_mode,
        say=say,
    )
    written = write_study(studied, folder, invocation.figure.settings)
    say("\n".join([*studied.conclusions, "", *(f"  {one}" for one in written)]))
    n_jobs, n_open = len(studied.findings.rows), len(studied.steps.failures)
    say(f"{n_jobs} jobs, {n_open} without a result; {studied.seconds:.0f} s in all.")
    return 1 if n_open else 0


def _text(values: Mapping[str, object], key: str) -> str:
    """Return a value that every study needs."""
    example = {"data": "data=patients.csv", "target": "target=diagnosis"}[key]
    value = values.get(key)
    if value is None or value == "":
        raise ConfigurationError(f"task=study needs {key}; write for example {example}")
    return str(value)


# What jobs are expected to cost: the processor time of each, from stored records or from an earlier run.

GROUP = "cost"


def measured(catalogue: Catalogue, profile: str) -> dict[str, dict[str, float]]:
    """Return the mean seconds of a job by experiment and function, as an earlier run of the profile measured them.

    Empty for a profile that was never measured.
    """
    if profile not in catalogue.names(GROUP):
        return {}
    found = catalogue.mapping(GROUP, profile)
    return {name: {one: float(seconds) for one, seconds in costs.items()} for name, costs in found.items()}


def function_name(job: Job) -> str:
    """Return the name under which `measured` has the function of a job."""
    return job.function.rpartition(":")[2]


def expected_seconds(jobs: Iterable[Job], done: Mapping[str, float], typical: Mapping[str, float]) -> dict[str, float]:
    """Return the processor seconds that jobs are expected to take, by key, as far as there is a basis for it.

    Parameters
    ----------
    jobs : iterable of Job
        All jobs of an experiment, stored or not.
    done : mapping from key to seconds
        What those that are stored took. A job that is not stored takes the mean of those of the same function.
    typical : mapping from name of a function to seconds
        What a job takes if none of its function is stored: `measured`, for this experiment.
    """
    function_of = {job.key: function_name(job) for job in jobs}
    stored: dict[str, list[float]] = defaultdict(list)
    for key, function in function_of.items():
        if key in done:
            stored[function].append(done[key])
    means = {**typical, **{function: fmean(seconds) for function, seconds in stored.items()}}
    return {
        key: done.get(key, means[function]) for key, function in function_of.items() if key in done or function in means
    }


def total(keys: Collection[str], expected: Mapping[str, float]) -> float | None:
    """Add the expected seconds of some jobs; None if those of one are unknown."""
    return sum(expected[key] for key in keys) if all(key in expected for key in keys) else None


def wall_seconds(keys: Collection[str], expected: Mapping[str, float], n_workers: int) -> float | None:
    """Return how long the workers are busy with some jobs; None if the cost of one is unknown.

    Two workers cannot share a job: the longest is a lower limit.
    """
    found = total(keys, expected)
    return None if found is None else max([found / n_workers, *(expected[key] for key in keys)])


# The tasks of the command line by name. Importing this module loads numpy and pandas, which `--help` does without.

PERFORM: Mapping[Task, Callable[[Invocation], int]] = {
    "run": run,
    "report": report,
    "publish": publish,
    "list": list_experiments,
    "fetch": fetch,
    "compare": compare,
    "plot": plot,
    "study": study,
}
