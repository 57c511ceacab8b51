"""The tasks of the command: run, report, plot, list, fetch and new, and all tasks by name."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from trimbench.reproduction.commands.adopt import adopt_records
from trimbench.reproduction.commands.arguments import Invocation, Point
from trimbench.reproduction.commands.audit import audit
from trimbench.reproduction.commands.check import check, compare
from trimbench.reproduction.commands.common_settings import NO_SETTINGS, PUBLISHED
from trimbench.reproduction.commands.publishing import publish
from trimbench.reproduction.commands.surroundings import make, surroundings
from trimbench.reproduction.commands.verdict import verdict
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.data.declarations import (
    DatasetDeclaration,
    Declaration,
    declare,
    groups_of_data,
    is_here,
    obstacle,
)
from trimbench.reproduction.data.errors import by_host, ways_out
from trimbench.reproduction.execution.executors import Executor, Work, duration, n_workers
from trimbench.reproduction.execution.provenance import no_commit
from trimbench.reproduction.execution.store import Glance, JobStore, Record
from trimbench.reproduction.files import beside_runs, settings_name, write_csv, write_text
from trimbench.reproduction.messages import terminal_width
from trimbench.reproduction.project import DISTRIBUTION, project
from trimbench.reproduction.reporting.archive import write_archive
from trimbench.reproduction.reporting.figures.drawing import StoredFigure, write_pictures
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.overview import Overview
from trimbench.reproduction.reporting.page import count
from trimbench.reproduction.reporting.reasons import keep_code, reasons_to_run
from trimbench.reproduction.reporting.runs import (
    check_run,
    described_in,
    folder_of,
    inside_run,
    make_run,
    note_redrawn,
    say,
)
from trimbench.reproduction.reporting.sweeps import SweepPoint, write_sweep
from trimbench.reproduction.reporting.tables import cut, markdown, markdown_rows
from trimbench.reproduction.settings import ConfigurationError, Json
from trimbench.reproduction.vocabulary.cells import Cell, Experiment, Inputs
from trimbench.reproduction.vocabulary.planning import (
    Plan,
    Surroundings,
    expected_seconds,
    held_against_servers,
    measured,
    run_plans,
)
from trimbench.reproduction.vocabulary.planning import fetch as fetch_one
from trimbench.reproduction.vocabulary.reported import Literature, NumbersError
from trimbench.reproduction.vocabulary.tables import Table
from trimbench.reproduction.world import world

# Rows of a sweep's table on the terminal; the files have the others.
_MOST_ROWS = 40


@dataclass(frozen=True)
class _Task:
    """One experiment of one point, and who reports it."""

    name: str
    point: Point
    experiment: Experiment
    stem: str
    reporter: Overview | SweepPoint


def run(invocation: Invocation, cache_mode: str | None = None, executor: Executor | None = None) -> int:
    """Run the experiments and write their tables and figures; return 1 if a job or an experiment failed.

    By default, mode and executor are those of the configuration.
    """
    literature, figure = Literature.of(invocation.catalogue), invocation.figure
    folder = invocation.root / invocation.run
    first, *_ = invocation.points
    suffix = f"__{settings_name(first.named)}" if first.named and not invocation.sweep else ""
    overview = Overview(folder, invocation.catalogue, literature, figure, profile=invocation.profile, suffix=suffix)
    found = [SweepPoint(point.swept) for point in invocation.points]
    # Everything is made before the first job runs, so that a mistake, even in the last point of a sweep, costs no time.
    tasks = [
        _Task(name, point, make(invocation, name, point), f"{name}{suffix}", one if invocation.sweep else overview)
        for point, one in zip(invocation.points, found, strict=True)
        for name in sorted(
            literature.in_order(point.experiments), key=lambda name: name != project().first
        )  # it begins with that
    ]
    where = surroundings(invocation, cache_mode or invocation.settings.cache_mode, executor)
    _check_writable(invocation.settings.results)
    check_run(folder, invocation.profile)
    if "git says" in (unknown := no_commit()):
        sys.stderr.write(f"The commit of this program is not known, so results do not name it; {unknown}\n")
    draws = any(hasattr(task.experiment, "seed") for task in tasks)
    if not draws and invocation.seeded:
        sys.stderr.write("seed changes nothing here: no experiment that runs has a setting of this name\n")
    _run_all(tasks, literature, where, invocation)
    if invocation.sweep:
        return _report_sweep(found, folder / "sweeps" / invocation.sweep, invocation)
    return overview.close(summary=not invocation.chosen)


def report(invocation: Invocation) -> int:
    """Write tables and figures again, from stored results alone, and an archive of the run if one is asked for."""
    code = run(invocation, cache_mode="only")
    if invocation.settings.archive:
        folder, store = invocation.root / invocation.run, JobStore(invocation.root / "jobs")
        path = beside_runs(invocation.root, "archives", f"{invocation.run}.zip")
        n_records = write_archive(folder, store, invocation.catalogue, path, NO_SETTINGS)
        with_records = f"with {n_records:,} records of jobs" if n_records else f"but no job is stored in {store.folder}"
        say(f"\nThe archive of the run {invocation.run}, an RO-Crate, {with_records}:\n  {path}")
    return code


def _run_all(tasks: Sequence[_Task], literature: Literature, where: Surroundings, invocation: Invocation) -> None:
    """Plan all experiments, then run their jobs as one set. If only one was chosen, its error ends the command."""
    strict = invocation.chosen and not invocation.sweep

    @contextmanager
    def noted(task: _Task, *fatal: type[Exception]) -> Iterator[None]:
        try:
            yield
        except fatal:
            raise
        except Exception as error:
            if strict and not isinstance(error, NumbersError):
                raise
            task.reporter.note_failure(task.name, error)

    plans: dict[Plan, _Task] = {}
    for task in tasks:
        with noted(task):
            settings, reported = task.point.experiments[task.name], literature.reported(task.name)
            altered, stem = task.point.altered, task.stem
            plan = Plan.of(task.name, settings, task.experiment, reported, where, altered=altered, stem=stem)
            plans[plan] = task

    def conclude(plan: Plan, records: Mapping[str, Record]) -> None:
        # If the files of one experiment cannot be written, neither can those of the others.
        with noted(plans[plan], OSError):
            plans[plan].reporter.note(plan.findings(records))

    if len(plans) > 1 and where.cache_mode != "only":
        _say_data(list(plans), where.inputs.cache)
    typical = measured(invocation.catalogue, invocation.profile)
    if where.cache_mode == "default" and not invocation.sweep:
        for one in plans:
            say_reasons(one.cells, one.done, one.settings, one.stem, where.store, invocation)
    expected: dict[str, float] = {}
    for one in plans:
        expected.update(expected_seconds(one.jobs, one.done, typical.get(one.name, {})))
    label = tasks[0].name if len(tasks) == 1 else f"{len(tasks)} {'points' if invocation.sweep else 'experiments'}"
    if where.cache_mode != "only":
        make_run(invocation.root / invocation.run, invocation.profile)
    run_plans(list(plans), where, conclude, label=label, expected=expected)
    if where.cache_mode != "only":
        keep_code([job for plan in plans for job in plan.jobs], where.store.folder)


def say_reasons(
    cells: Sequence[Cell],
    stored: Iterable[str],
    settings: Mapping[str, Json],
    stem: str,
    store: JobStore,
    invocation: Invocation,
) -> None:
    """Say why jobs that the run has computed before run again, in a line for each cause."""
    folder = invocation.root / invocation.run
    for line in reasons_to_run(cells, stored, settings, folder, stem, store.folder, NO_SETTINGS):
        say(line)


def _say_data(plans: Sequence[Plan], cache: Cache) -> None:
    inputs = {found.place: found for plan in plans for cell in plan.cells for found in cell.inputs}
    roads: dict[str, list[str]] = {}
    for _, found in sorted(inputs.items()):
        roads.setdefault(found.declaration.road(cache), []).append(found.name)
    if here := [f"  {road}: {', '.join(names)}" for road, names in sorted(roads.items()) if road]:
        say("\n".join(["Data on this machine:", *here]))
    missing = sorted({name for plan in plans for name in plan.missing})
    if missing:
        say(f"Missing: {', '.join(missing)}")
        for what, names in (
            ("Experiments that cannot run", [plan.name for plan in plans if not plan.jobs]),
            ("Experiments that can run only in part", [plan.name for plan in plans if plan.missing and plan.jobs]),
        ):
            say(f"{what}: {', '.join(names) or 'none'}")


def _check_writable(folder: str) -> None:
    """Raise an error if a folder cannot be written to. It is not created yet: other settings may still be wrong."""
    path = Path(folder).absolute()
    existing = next(place for place in (path, *path.parents) if os.path.lexists(place))  # also a link to nowhere
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"results must be a folder that can be written, got {folder!r}; {existing} cannot, choose another folder"
        )


def _report_sweep(points: Sequence[SweepPoint], folder: Path, invocation: Invocation) -> int:
    records = [record for point in points for found in point.findings for record in found.records]
    if records and all(record.status == "missing" for record in records):
        say("No results are stored for this sweep, so nothing was written; task=run computes them.")
        return 1
    make_run(invocation.root / invocation.run, invocation.profile)
    table, notes, _ = write_sweep(points, inside_run(folder, invocation.root / invocation.run), invocation.figure)
    shown = cut(table, _MOST_ROWS)
    say(f"\n## {shown.title}\n\n{markdown(shown, terminal_width())}")
    for note in notes:
        say(f"\n{note}")
    say(f"\n{table.title}: {count(len(points), 'point')}\n  {folder / 'index.html'}")
    return 1 if any(point.failures or any(found.failures for found in point.findings) for point in points) else 0


# The task ``list``: what is stored of each experiment, what data it lacks, and what the rest will cost.

_COUNTS = ("jobs", "done", "failed", "missing")
_COLUMNS = ("experiment", *_COUNTS, "processor time to run the rest", "data")


def list_experiments(invocation: Invocation) -> int:
    """Print each experiment with its jobs, the cost of those that are still to run, and its data; then the sum."""
    where = surroundings(invocation, "only")
    experiments = {name: make(invocation, name, invocation.points[0]) for name in invocation.experiments}
    typical = measured(invocation.catalogue, invocation.profile)
    rows: list[list[str]] = []
    again: list[tuple[Sequence[Cell], Mapping[str, float], Mapping[str, Json], str]] = []
    stored: dict[str, Glance | None] = {}
    expected: dict[str, float] = {}
    for name, experiment in experiments.items():
        try:
            cells = experiment.cells(where.inputs)
        except Exception as error:
            if invocation.chosen:
                raise
            rows.append([name, *("–" for _ in _COUNTS), duration(None), f"cannot be planned: {error}"])
            continue
        jobs = {cell.job.key: cell.job for cell in cells}
        found = {key: where.store.glance(job) for key, job in jobs.items()}
        done = {key: one.seconds for key, one in found.items() if one and one.ok}
        costs = expected_seconds(jobs.values(), done, typical.get(name, {}))
        needs = {one.place: one.declaration for cell in cells for one in cell.inputs}
        rows.append([name, *_counted(found, costs), _data(needs, where.inputs.cache)])
        if len(done) < len(jobs):
            known = invocation.points[0].experiments[name]
            again.append((cells, done, known, name))
        # A job that several experiments share runs once.
        stored, expected = stored | found, costs | expected
    if len(experiments) > 1:
        rows.append(["all, shared jobs once", *_counted(stored, expected), ""])
    # Without pandas, whose import would take half a second.
    say(markdown_rows(_COLUMNS, rows, [column in _COUNTS for column in _COLUMNS], terminal_width()))
    for one in again:
        say_reasons(*one, where.store, invocation)
    workers = n_workers(where.executor)
    if left := Work(_to_run(stored), expected, workers).seconds_left:
        at_once = "one after the other" if workers == 1 else f"{workers} at a time"
        say(f"\nRunning the rest takes about {duration(left)}, {at_once}.")
    return 0


def _to_run(stored: Mapping[str, Glance | None]) -> list[str]:
    return [key for key, found in stored.items() if not (found and found.ok)]


def _counted(stored: Mapping[str, Glance | None], expected: Mapping[str, float]) -> list[str]:
    """Return how many jobs there are, and what those that are not done are expected to cost."""
    rest, missing = _to_run(stored), [*stored.values()].count(None)
    seconds = sum(expected[key] for key in rest) if expected.keys() >= {*rest} else None
    return [*map(str, (len(stored), len(stored) - len(rest), len(rest) - missing, missing)), duration(seconds)]


def _data(needs: Mapping[str, Declaration], cache: Cache) -> str:
    """Say whether the data is here and, if it is not, what stands in the way or is to be fetched."""
    if not needs:
        return "none needed"
    absent = {name: obstacle(need, cache) for name, need in needs.items() if not is_here(need, cache)}
    parts = [f"{name}: {reason}" for name, reason in absent.items() if reason]
    wanted = [name for name, reason in absent.items() if not reason]
    if wanted:
        parts.append(
            f"{len(wanted)} of {len(needs)} to be fetched ({project().command} task=fetch): {', '.join(wanted)}"
        )
    return "; ".join(parts) or "here"


# The task ``fetch``: download and verify data.


def fetch(invocation: Invocation) -> int:
    """Download and verify the data of the experiment, or everything declared; return 1 if some is not available.

    With `verify`, a table compares what each server has with what is declared, whatever the cache holds; a file also
    gives addresses and reasons.
    """
    cache, verify = surroundings(invocation, "only").inputs.cache, invocation.settings.verify
    lines: list[dict[str, str]] = []
    failures: dict[str, str] = {}
    declarations = [*_declarations(invocation, cache)]
    if not declarations:
        say("No data is needed.")
    for declaration in declarations:
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
        say(markdown(dataclasses.replace(table, frame=short.drop(columns="why")), terminal_width()))
        world().make_folders(invocation.root)
        say(f"\nWith addresses and reasons:\n  {write_csv(table.frame, invocation.root / 'verified.csv')}\n")
    for line in by_host(failures):
        say(f"FAILED: {line}")
    if ways := ways_out(failures.values()):
        say(f"To get what is missing, {ways}.")
    return 1 if failures or any(line["what it has"] == "other rows" for line in lines) else 0


def _declarations(invocation: Invocation, cache: Cache) -> Iterator[Declaration]:
    catalogue = invocation.catalogue
    if not invocation.chosen:
        for group in groups_of_data():
            yield from (declare(group, name, catalogue.declared(group, name)) for name in catalogue.names(group))
        return
    experiments = [make(invocation, name, invocation.points[0]) for name in invocation.experiments]
    cells = [cell for one in experiments for cell in one.cells(Inputs(catalogue, cache))]
    yield from {need.place: need.declaration for cell in cells for need in cell.inputs}.values()


# The task ``plot``: draw the figures of a run again, from their points.

# The folder of pictures with other settings, beside those of the runs.
_PLOTS = "plots"


def plot(invocation: Invocation) -> int:
    """Draw the figures of a run, of one experiment or of all; return 1 if there are none, or if points are missing.

    Pictures are written beside the points, with the settings of the run; those of the published run only where they are
    missing. With other settings, they go to a folder named after these.
    """
    root, run = Path(invocation.settings.results), invocation.settings.run or PUBLISHED
    abouts = [
        (path, about)
        for path, about in described_in(folder_of(root, run))
        if not invocation.chosen or about["experiment"] in invocation.experiments
    ]
    found = [StoredFigure(one, path.parent) for path, about in abouts for one in about.get("figures", ())]
    what = f"{', '.join(invocation.experiments)} in the run {run}" if invocation.chosen else f"the run {run}"
    if not found:
        say(f"There are no figures of {what}.")
        return 1
    drawn = [(figure, *_wanted(figure, root, run, invocation)) for figure in found]
    drawn = [one for one in drawn if one[1]]
    if not drawn:
        elsewhere = f"with other settings, such as figure=column, they are drawn into {root / _PLOTS / run}"
        say(f"Nothing to draw: every picture of {what} is there; {elsewhere}.")
        return 0
    say(f"Drawing {count(len(drawn), 'figure')} of {what}:")
    done = [_draw(*one) for one in drawn]
    new = {picture for _, pictures, _ in drawn for picture in pictures}
    for path, about in abouts:
        note_redrawn(path, about, new)
    return 0 if all(done) else 1


def _wanted(figure: StoredFigure, root: Path, run: str, invocation: Invocation) -> tuple[list[Path], FigureSettings]:
    if invocation.figure_name == "default":
        return [path for path in figure.pictures if run != PUBLISHED or not path.exists()], figure.settings
    settings = invocation.figure
    folder = root / _PLOTS / run / invocation.figure_name / figure.folder.relative_to(root / run)
    return [folder / f"{figure.pictures[0].stem}.{ending}" for ending in settings.formats], settings


def _draw(figure: StoredFigure, pictures: Sequence[Path], settings: FigureSettings) -> bool:
    try:
        found = figure.figure()
    except (OSError, ConfigurationError) as error:
        absent = f"cannot be drawn without {figure.points}; task=report writes it from stored jobs"
        say(f"  {absent if isinstance(error, OSError) else error}")
        return False
    for path in write_pictures(found, pictures, settings):
        say(f"  {path}")
    return True


# The task ``new``: a small project that runs, to begin with another paper.


def new(invocation: Invocation) -> int:
    """Write a small project into a folder that is empty or does not exist yet."""
    folder = Path(str(invocation.settings.project)).expanduser()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigurationError(f"project must be a folder that is empty or new, got {str(folder)!r}; name another")
    source = Path(__file__).with_name("new_project")
    for path in sorted(path for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        target = folder / path.relative_to(source).with_suffix("" if path.suffix == ".txt" else path.suffix)
        say(f"  {write_text(path.read_text(encoding='utf-8'), target)}")
    command = f"{DISTRIBUTION} --project {shlex.quote(str(folder))}"
    say(f"\nA project that runs. Change its files, and run it with\n  {command}")
    return 0


# The tasks of the command line by name. Importing this module loads numpy and pandas, which `--help` does without.

PERFORM: Mapping[str, Callable[[Invocation], int]] = {
    "run": run,
    "report": report,
    "publish": publish,
    "list": list_experiments,
    "fetch": fetch,
    "compare": compare,
    "check": check,
    "audit": audit,
    "adopt": adopt_records,
    "plot": plot,
    "new": new,
    "verdict": verdict,
}
