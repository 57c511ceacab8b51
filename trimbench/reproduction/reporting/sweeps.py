"""The points of a sweep together: one table, figures and a page."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from trimbench.reproduction.data.errors import by_host
from trimbench.reproduction.execution.provenance import commit_of, computed_with
from trimbench.reproduction.files import beside, without_homes, write_csv, write_text
from trimbench.reproduction.reporting.columns import Measured, free_name, is_numeric, known_methods, measured_columns
from trimbench.reproduction.reporting.figures.drawing import write_figures
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.figures.text import N_SLOTS
from trimbench.reproduction.reporting.page import count, facts_of, render, table_part
from trimbench.reproduction.reporting.replications import DIFFERENCES, SEEDS, notes_on_seeds, replicated
from trimbench.reproduction.reporting.runs import described, flat, provenance_of, shown_picture
from trimbench.reproduction.reporting.tables import cut, heading, label_columns, latex, markdown_page
from trimbench.reproduction.settings import Json
from trimbench.reproduction.vocabulary.figures import LineFigure
from trimbench.reproduction.vocabulary.planning import Findings
from trimbench.reproduction.vocabulary.tables import Table

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


_NAME, EXPERIMENT, ERROR, SEED = "sweep", "experiment", "error", "seed"
# Longer tables are cut where people read them; the CSV files have every row.
_IN_TEXT, _ON_PAGE, _ALL = 200, 1000, "; sweep.csv has all"


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """What was found at one point of a sweep, with the values of the swept keys in the order of the command line.

    `findings` are those of each experiment, usually one; `failures` has the reasons why others could not run.
    """

    swept: Mapping[str, Json]
    findings: list[Findings] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    def note(self, findings: Findings) -> None:
        """Keep what an experiment found."""
        self.findings.append(findings)

    def note_failure(self, name: str, error: Exception) -> None:
        """Keep the reason why an experiment could not run."""
        self.failures[name] = without_homes(str(error))


def write_sweep(
    points: Sequence[SweepPoint], folder: Path, figure: FigureSettings
) -> tuple[Table, list[str], list[Path]]:
    """Write the files of a whole sweep into a folder; return its main table, what must be noted, and the files.

    Seeds are replications: points that differ in nothing else are one. ``sweep.csv`` has the rows of the main table at
    every point, with the swept values in the first columns, and ``sweep_seeds.csv`` those of each seed;
    ``sweep_<table>.csv`` those of each other table, and ``sweep_rows.csv.gz`` one row for each job. ``sweep.md``,
    ``sweep.tex`` and ``index.html`` show the main table and the figures, and ``sweep.json`` has the provenance and what
    is needed to draw the figures from their points. Files that an earlier sweep listed there and this one does not
    write are removed.
    """
    stem, keys = folder / _NAME, swept_keys(points)
    settings, seeds = with_seeds_folded(points)
    title = f"{', '.join(experiments_of(points))}{_over(settings, ' over ')}"
    table, notes = main_table(settings), notes_on(points)
    n_points = count(len(settings), "point")
    if seeds:
        tables = [one for point in settings for found in point.findings for one in found.outcome.tables[:1]]
        notes += notes_on_seeds(seeds, tables)
        n_points = f"{n_points} with {count(len(seeds), 'seed')}"
    short = cut(table, _IN_TEXT, _ALL)
    figures, remarks = sweep_figures(settings)
    pictures, descriptions = write_figures(figures, stem, figure)
    findings = [found for point in points for found in point.findings]
    others = dict.fromkeys(
        one.name for point in settings for found in point.findings for one in found.outcome.tables[1:]
    )
    pairs = [_joint_differences(settings, name) for name in others if name.startswith(DIFFERENCES)]
    shown = [(one, shown_picture(one["pictures"])) for one in descriptions]
    written = [
        write_csv(table.frame, beside(stem, "", ".csv")),
        *(write_csv(main_table(points).frame, beside(stem, one, ".csv")) for one in [SEEDS] * bool(seeds)),
        *(write_csv(joint_table(settings, partial(_frame_of, name)), beside(stem, name, ".csv")) for name in others),
        write_csv(flat(joint_table(points, lambda found: found.rows)), beside(stem, "rows", ".csv.gz")),
        write_text(
            markdown_page(
                title,
                [f"{n_points}."],
                [(one["title"], name) for one, name in shown],
                [short, *(cut(one, _IN_TEXT, _ALL) for one in pairs)],
                [*notes, *remarks],
            ),
            beside(stem, "", ".md"),
        ),
        write_text(latex(short, f"tab:{_NAME}"), beside(stem, "", ".tex")),
    ]
    page = render(
        "sweep.html",
        facts=facts_of(computed=map(commit_of, computed_with([one for each in findings for one in each.records]))),
        title=title,
        lead=f"{n_points}, {count(len(table.frame), 'row')}.",
        notes=[*notes, *remarks],
        figures=[
            {"title": one["title"], "picture": quote(name), "points": quote(str(one["points"]))}
            for one, name in shown
            if name
        ],
        tables=[table_part(cut(one, _ON_PAGE, _ALL)) for one in (table, *pairs)],
        files=[path.name for path in written],
    )
    written += [*pictures, write_text(page, folder / "index.html")]
    about: dict[str, Json] = {
        **provenance_of(findings),
        "experiment": ", ".join(experiments_of(points)),
        "swept": keys,
        "points": [{"swept": dict(point.swept), "failures": dict(point.failures)} for point in points],
        "figures": descriptions,
    }
    return table, notes, described(written, about, beside(stem, "", ".json"))


def with_seeds_folded(points: Sequence[SweepPoint]) -> tuple[list[SweepPoint], list[Json]]:
    """Return points without their seeds, each with the means of those that differ in nothing else; and the seeds.

    There are no seeds if they are not swept. Each experiment that could not run with a seed is a failure that names it.
    """
    if SEED not in swept_keys(points):
        return list(points), []
    alike: dict[str, list[SweepPoint]] = {}
    for point in points:
        others = {key: value for key, value in point.swept.items() if key != SEED}
        alike.setdefault(json.dumps(others), []).append(point)
    settings = []
    for ours in alike.values():
        found = [one for point in ours for one in point.findings]
        names = dict.fromkeys(one.name for one in found)
        joint = [mean for name in names for mean in replicated([one for one in found if one.name == name])]
        failures: dict[str, str] = {}
        for point in ours:
            for name, why in point.failures.items():
                earlier = f"{failures[name]}; " if name in failures else ""
                failures[name] = f"{earlier}{SEED} = {point.swept[SEED]}: {why}"
        others = {key: value for key, value in ours[0].swept.items() if key != SEED}
        settings.append(SweepPoint(others, joint, failures))
    return settings, list(dict.fromkeys(point.swept[SEED] for point in points))


def _over(points: Sequence[SweepPoint], before: str) -> str:
    keys = swept_keys(points)
    return f"{before}{', '.join(keys)}" if keys else ""


def _joint_differences(points: Sequence[SweepPoint], name: str) -> Table:
    tables = [one for point in points for found in point.findings for one in found.outcome.tables if one.name == name]
    frame = joint_table(points, partial(_frame_of, name))
    return Table(f"{tables[0].title}{_over(points, ', over ')}", frame, tables[0].formats)


def _frame_of(name: str, found: Findings) -> pd.DataFrame | None:
    return next((table.frame for table in found.outcome.tables[1:] if table.name == name), None)


def notes_on(points: Sequence[SweepPoint]) -> list[str]:
    """Return a note on each kind of failure."""
    findings = [found for point in points for found in point.findings]
    n_failed = sum(bool(point.failures) for point in points)
    jobs = sum(found.failures for found in findings)
    missing = {name: reason for found in findings for name, reason in found.missing.items()}
    absent = sum(one.status == "missing" for found in findings for one in found.records)
    notes = {
        f"{n_failed} of {count(len(points), 'point')} could not run; the column error has the reasons.": n_failed,
        f"{count(jobs, 'job')} failed; sweep_rows.csv.gz has the errors.": jobs,
        f"{count(absent, 'job')} not stored; task=run computes what is missing.": absent,
    }
    return [note for note, n in notes.items() if n] + [f"Data not available: {line}" for line in by_host(missing)]


# The tables of all points as one.


def experiments_of(points: Sequence[SweepPoint]) -> list[str]:
    """Return the names of the experiments of a sweep, in order."""
    names = (name for point in points for name in (*(found.name for found in point.findings), *point.failures))
    return list(dict.fromkeys(names))


def swept_keys(points: Sequence[SweepPoint]) -> list[str]:
    """Return the swept keys, in order."""
    return list(dict.fromkeys(key for point in points for key in point.swept))


def main_table(points: Sequence[SweepPoint]) -> Table:
    """Return the main tables of all points as one, with the experiments that could not run."""
    mains = [found.outcome.tables[0] for point in points for found in point.findings]
    names = experiments_of(points)
    # A title that names the data of one point is not that of all.
    titles = {main.title for main in mains}
    title = mains[0].title if len(titles) == len(names) == 1 else ", ".join(names)
    formats = {column: spec for main in mains for column, spec in main.formats.items()}
    frame = joint_table(points, lambda found: found.outcome.tables[0].frame, failures=True)
    return Table(f"{title}{_over(points, ', over ')}", frame, formats)


def joint_table(
    points: Sequence[SweepPoint], frame_of: Callable[[Findings], pd.DataFrame | None], *, failures: bool = False
) -> pd.DataFrame:
    """Return the frames of all points below one another, each row with the swept values of its point before it.

    Where a frame has a column of a swept key's name, the swept one is called ``swept <key>``. A sweep over several
    experiments has a column for them. With `failures`, an experiment that could not run is a row, and its reason is in
    the column ``error``. The cells keep their values; a column that a frame lacks is empty there.
    """
    import pandas as pd

    found: list[tuple[SweepPoint, str, pd.DataFrame, str | None]] = []
    for point in points:
        frames = [(one.name, frame_of(one)) for one in point.findings]
        found += [(point, name, frame, None) for name, frame in frames if frame is not None]
        for name, reason in point.failures.items() if failures else ():
            found.append((point, name, pd.DataFrame(index=[0]), reason or "could not run"))
    values = _stacked([frame for _, _, frame, _ in found])
    sizes = [len(frame) for _, _, frame, _ in found]

    def before(of_each: Sequence[object]) -> list[object]:
        return [value for value, size in zip(of_each, sizes, strict=True) for _ in range(size)]

    heads: dict[str, list[object]] = {}
    for key in swept_keys(points):
        heads[free_name(key, [*values, *heads])] = before([in_words(point.swept.get(key)) for point, *_ in found])
    if len(experiments_of(points)) > 1 and EXPERIMENT not in swept_keys(points):
        heads[free_name(EXPERIMENT, [*values, *heads])] = before([name for _, name, *_ in found])
    ends = (
        {free_name(ERROR, [*values, *heads]): before([reason for *_, reason in found])}
        if any(r for *_, r in found)
        else {}
    )
    joint = pd.DataFrame({**heads, **values, **ends}, dtype=object)
    return joint.where(joint.notna(), None)


def _stacked(frames: Sequence[pd.DataFrame]) -> dict[str, list[Any]]:
    """Return the columns of frames below one another, as Python's own values; None where a frame lacks one."""
    columns = {str(column): column for frame in frames for column in frame}
    return {
        name: [
            value for frame in frames for value in (frame[column].tolist() if column in frame else [None] * len(frame))
        ]
        for name, column in columns.items()
    }


def in_words(value: Json) -> object:
    """Return the value of a setting as a cell: numbers and words as they are, everything else as JSON."""
    if isinstance(value, bool | list | dict) or value is None:
        return json.dumps(value, ensure_ascii=False)
    return value


# Figures over a swept setting: one for each quantity that changes with it, with a line for each method.

# As many lines as there are colours, and as many pictures as anybody looks through.
MOST_LINES, MOST_FIGURES = N_SLOTS, 24
# An axis over more than two decades may be logarithmic.
_TWO_DECADES = 100.0
_VALUES = ["x", "y", "low", "high"]


def sweep_figures(points: Sequence[SweepPoint]) -> tuple[list[LineFigure], list[str]]:
    """Return the figures of a sweep, and notes on what they do not show.

    The axis is a swept key whose values are numbers, or lists of one number. With several there are figures over each,
    first over the one with most values. Before them are the experiments' own curves of all points.
    """
    experiments = experiments_of(points)
    numbers = {key: {setting_number(point.swept.get(key)) for point in points} for key in swept_keys(points)}
    keys = [key for key, own in numbers.items() if None not in own and len(own) > 1]
    keys.sort(key=lambda key: -len(numbers[key]))
    of = {
        name: [(point, one) for point in points for one in point.findings if one.name == name] for name in experiments
    }
    figures = [figure for found in of.values() for figure in _curves_of_all(found)]
    constant: list[str] = []
    for key, (experiment, found) in product(keys, of.items()):
        tables = [table for _, one in found for table in one.outcome.tables if table.listed]
        drawn = [_figures_of(found, name, key) for name in dict.fromkeys(table.name for table in tables)]
        constant += [title for _, rest in drawn for title in rest]
        prefix = experiment if len(experiments) > 1 else ""
        over = "" if key == keys[0] else f"over_{key}"
        figures += [replace(one, name=_joined(prefix, one.name, over)) for own, _ in drawn for one in own]
    figures = list(_with_own_names(figures))
    notes = [] if keys or figures or not numbers else ["No swept setting has numbers as values, so there is no figure."]
    if constant:
        swept = " or ".join(keys)
        notes.append(f"Not drawn, because it does not change with {swept}: {', '.join(dict.fromkeys(constant))}.")
    if len(figures) > MOST_FIGURES:
        notes.append(f"The first {MOST_FIGURES} of {len(figures)} figures are drawn; the CSV files have all numbers.")
    return figures[:MOST_FIGURES], notes


def setting_number(value: Json) -> float | None:
    """Return the value of a setting as a number, also from a list of one; None if it is not a number."""
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        # A list is written as text where the value comes from the command line.
        return float(value.strip("[] ")) if isinstance(value, str) else float(value)
    except ValueError:
        return None


def _figures_of(
    found: Sequence[tuple[SweepPoint, Findings]], name: str, key: str
) -> tuple[list[LineFigure], list[str]]:
    """Return the figures of one table of an experiment, and the quantities that do not change with the key."""
    import numpy as np
    import pandas as pd

    tables = [(*one, table) for one in found for table in one[1].outcome.tables if table.name == name]
    tables = [one for one in tables if not one[-1].frame.empty]
    if not tables:
        return [], []
    frames = [table.frame for *_, table in tables]
    shared = [column for column in frames[0] if all(column in frame for frame in frames)]
    frame = pd.DataFrame(_stacked([frame[shared] for frame in frames]))
    of_row = np.repeat(np.arange(len(tables)), [len(frame) for frame in frames])
    swept = np.array([setting_number(point.swept[key]) for point, *_ in tables], dtype=float)[of_row]
    x_name, x = _true_values(key, frame, [(point, one) for point, one, _ in tables], of_row)
    labels = label_columns([one[shared] for one in frames])
    lines = _lines(frame, [label for label in labels if label != x_name], key, [point for point, *_ in tables], of_row)
    is_known = known_methods([one for _, one in found])
    measured = [
        one
        for one in measured_columns(frame, labels, is_known)
        if one.column != SEEDS and not _repeats(one.column, key, frame, swept)
    ]
    figures: list[LineFigure] = []
    constant: list[str] = []
    for quantity in dict.fromkeys(one.quantity for one in measured):
        own_columns = [one for one in measured if one.quantity == quantity]
        dots = pd.concat([_dots(one, frame, lines, x if x_name else swept) for one in own_columns])
        title = heading(quantity or tables[0][-1].title)
        of_line = [column for column in dots if column not in _VALUES]
        if dots.empty or dots.groupby(of_line, sort=False)["y"].nunique().max() < 2:
            constant.append(title)
            continue
        for part, own in _parts(dots, of_line[1:]):
            figure = _figure(own, part, title, key, is_known)
            axis = title if quantity else _axis_of_methods(found, name, set(own["method"])) or title
            figure = replace(figure, name=_joined(name, quantity, *part), y_label=axis)
            figures.append(replace(figure, x_label=heading(x_name)) if x_name else figure)
    return figures, constant


def _true_values(
    key: str, frame: pd.DataFrame, found: Sequence[tuple[SweepPoint, Findings]], of_row: NDArray[np.intp]
) -> tuple[str, Any]:
    """Return what a swept setting came to, such as the true share of missing features: its name, and the values.

    A column of the table says it, with a unit behind the word of the key: ``missing (%)`` of the setting ``missing``,
    rounded to whole features. Else the jobs of each point say it of one data set. The name is empty if none does.
    """
    import numpy as np

    word = key.rpartition(".")[2]
    for column in map(str, frame):
        if column.partition(" (")[0] == word != column and is_numeric(frame[column]):
            return column, frame[column]
    if any(not {word, f"{word}_percent", "dataset"} <= set(one.rows) for _, one in found):
        return "", None
    rows = [one.rows[one.rows[word] == setting_number(point.swept[key])] for point, one in found]
    if any(len(set(own["dataset"])) != 1 for own in rows):
        return "", None
    return f"{word} (%)", np.array([own[f"{word}_percent"].mean() for own in rows], dtype=float)[of_row]


def _repeats(column: str, key: str, frame: pd.DataFrame, swept: NDArray[np.float64]) -> bool:
    return _is_named(column, key) or bool((frame[column] == swept).all())


def _is_named(column: str, key: str) -> bool:
    """Tell whether a column has the name of a setting, such as ``k`` for ``ks``, and ``missing (%)``."""
    word = key.rpartition(".")[2]
    return column.partition(" (")[0] in (word, word.removesuffix("s"))


def _lines(
    frame: pd.DataFrame, labels: Sequence[str], key: str, points: Sequence[SweepPoint], of_row: NDArray[np.intp]
) -> dict[Hashable, list[str]]:
    """Return the texts that name the line of each row: its labels, and what else was swept; some are empty."""
    found: dict[Hashable, list[str]] = {
        place: [_label(name, value) for value in frame[name]] for place, name in enumerate(labels)
    }
    for other in swept_keys(points):
        if other != key:
            texts = [_bare(point.swept.get(other)) for point in points]
            # What a label of the row says already is not repeated: one of this name or, whatever its name, a word.
            own = {
                text: [one for one in labels if setting_number(text) is None or _is_named(one, other)] for text in texts
            }
            found[len(found)] = [
                "" if text in {str(frame[name][row]) for name in own[text]} else f"{other} = {text}"
                for row, text in enumerate(texts[at] for at in of_row)
            ]
    return found


def _dots(measured: Measured, frame: pd.DataFrame, lines: Mapping[Hashable, Sequence[str]], x: Any) -> pd.DataFrame:
    """Return the values of a measured column; a line is named by its method and by labels, of which some are empty."""
    import pandas as pd

    y = frame[measured.column]
    low, high = (frame[name] if name else math.nan for name in (measured.low, measured.high))
    if measured.half:
        low, high = y - frame[measured.half], y + frame[measured.half]
    dots = pd.DataFrame(
        {"method": measured.method, **lines, "x": x, "y": y, "low": low, "high": high}, index=frame.index
    )
    return dots.astype(dict.fromkeys(_VALUES, float)).dropna(subset=["y"])


def _curves_of_all(found: Sequence[tuple[SweepPoint, Findings]]) -> Iterator[LineFigure]:
    """Yield the figures of an experiment over an axis of its own, such as the budget, with the lines of all points.

    A line that differs between points has the swept values in its name.
    """
    import pandas as pd

    drawn: dict[str, list[tuple[SweepPoint, LineFigure]]] = {}
    for point, one in found:
        for figure in one.outcome.figures:
            if isinstance(figure, LineFigure) and not figure.marks and len(set(figure.points["x"])) > 1:
                drawn.setdefault(figure.name, []).append((point, figure))
    is_known = known_methods([one for _, one in found])
    for name, every in drawn.items():
        (point, first), titles = every[0], {figure.title for _, figure in every}
        # Where the axis says a swept value, such as that of n_features, it names the setting of the other points.
        values = {f"{value:,}": key for key, value in point.swept.items() if isinstance(value, int | float)}
        values = values if len({figure.x_label for _, figure in every}) > 1 else {}
        x_label = " ".join(values.get(word, word) for word in first.x_label.split(" "))
        swept = [", ".join(f"{key} = {_bare(value)}" for key, value in point.swept.items()) for point, _ in every]
        dots = pd.concat(
            [figure.points.assign(method="", swept=text) for (_, figure), text in zip(every, swept, strict=True)]
        )
        dots = dots.rename(columns={"series": 0}).reindex(columns=["method", 0, "swept", *_VALUES])
        once = dots.drop_duplicates([0, "x", "y"])
        differing = once.loc[once.duplicated([0, "x"]), 0]
        if point.swept and len(once) == max(len(figure.points) for _, figure in every):
            continue  # all points have the same curves
        same = once[~once[0].isin(differing)].assign(swept="")
        for part, own in _parts(pd.concat([dots[dots[0].isin(differing)], same]), [0, "swept"]):
            title = first.title if len(titles) == 1 else first.y_label
            joint = _figure(own, part, title, x_label, is_known)
            named = _joined("curves", name, *part)
            scales = {axis: getattr(first, axis) for axis in ("x_scale", "y_scale") if getattr(first, axis) == "log"}
            yield replace(joint, name=named, y_label=first.y_label, interval=first.interval, **scales)


def _axis_of_methods(found: Sequence[tuple[SweepPoint, Findings]], name: str, methods: set[str]) -> str:
    """Return the label of the axis on which the experiment itself draws one of these methods; else empty."""
    figures = (figure for _, one in found for figure in one.outcome.figures if isinstance(figure, LineFigure))
    drawn = (figure for figure in figures if figure.name == name and methods & set(figure.points["series"]))
    return next((figure.y_label for figure in drawn), "")


def _joined(*parts: str) -> str:
    text = "_".join(filter(None, parts)).replace(" = ", "-")
    return re.sub(r"[^\w.-]+", "_", text, flags=re.ASCII)


def _with_own_names(figures: Sequence[LineFigure]) -> Iterator[LineFigure]:
    taken: set[str] = set()
    for number, figure in enumerate(figures, start=1):
        name = figure.name if figure.name not in taken else f"{figure.name}_{number}"
        taken.add(name)
        yield replace(figure, name=name)


def _bare(value: Json) -> str:
    return str(in_words(value)).strip("[]")


def _label(column: str, value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{column} = {value:g}" if isinstance(value, int | float) else str(value)


def _parts(dots: pd.DataFrame, labels: Sequence[Hashable]) -> Iterator[tuple[Sequence[Any], pd.DataFrame]]:
    """Yield the labels that the lines of a picture share, and its dots: as few pictures as their lines allow.

    Of the labels, the dots keep those that tell the lines of their picture apart.
    """
    varying = [label for label in labels if len(set(dots[label])) > 1]
    for n_fixed in range(len(varying) + 1):
        fixed, free = varying[:n_fixed], varying[n_fixed:]
        parts: list[tuple[Any, pd.DataFrame]] = list(dots.groupby(fixed, sort=False)) if fixed else [((), dots)]
        if not free or all(len(part.drop_duplicates(["method", *free])) <= MOST_LINES for _, part in parts):
            yield from ((label, part[["method", *free, *_VALUES]]) for label, part in parts)
            return


def _figure(
    dots: pd.DataFrame, part: Sequence[str], title: str, key: str, is_known: Callable[[str], bool]
) -> LineFigure:
    texts = [[text for text in line if text] for line in dots.drop(columns=_VALUES).itertuples(index=False)]
    dots = dots[_VALUES].assign(series=[", ".join(line) or title for line in texts])
    # The colour of a line is that of its method.
    lines = dict(zip(dots["series"], texts, strict=True))
    methods = {name: next(filter(is_known, line), "") for name, line in lines.items()}
    series = list(methods)
    remark = f" (the first {MOST_LINES} of {len(series)} lines)" if len(series) > MOST_LINES else ""
    points = dots[dots["series"].isin(series[:MOST_LINES])].sort_values("x", kind="stable")
    has_interval = bool(points["low"].notna().any())
    return LineFigure(
        title=f"{', '.join((f'{title} over {key}', *part))}{remark}",
        x_label=heading(key),
        y_label=title,
        points=points[["series", *(_VALUES if has_interval else ("x", "y"))]],
        x_scale=_scale(set(dots["x"])),
        y_scale=_scale(set(dots["y"])),
        interval="the interval in the table" if has_interval else "",
        methods={name: method for name, method in methods.items() if method},
    )


def _scale(values: set[float]) -> Literal["linear", "log"]:
    """Return "log" for positive values over more than two decades if that spreads them more evenly."""
    places = sorted(values)
    if places[0] <= 0 or places[-1] <= _TWO_DECADES * places[0]:
        return "linear"
    return "log" if _unevenness([math.log(place) for place in places]) < _unevenness(places) else "linear"


def _unevenness(places: Sequence[float]) -> float:
    """Return the share of the range that the largest gap takes."""
    return max(high - low for low, high in pairwise(places)) / (places[-1] - places[0])
