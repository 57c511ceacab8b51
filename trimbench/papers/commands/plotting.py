"""The task ``plot``: draw the figures of a run again, from their points."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trimbench.papers.commands.invocation import PUBLISHED, Invocation
from trimbench.papers.execution.temporary import remove_stale
from trimbench.papers.reporting.figures.files import StoredFigure, write_pictures
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.runs import folder_of
from trimbench.papers.validation import ConfigurationError

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
        _say(f"There are no figures of {what}.")
        return 1
    plans = [_plan(figure, root, run, invocation) for figure in found]
    plans = [plan for plan in plans if plan.pictures]
    if not plans:
        _say(f"Nothing to draw: every picture of {what} is there. With other settings, such as figure=column,")
        _say(f"they are drawn into {root / _PLOTS / run}.")
        return 0
    _say(f"Drawing {len(plans)} figure{'' if len(plans) == 1 else 's'} of {what}:")
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
        _say(f"  cannot be drawn without {plan.figure.points}; task=report writes it from stored jobs")
        return False
    except ConfigurationError as error:
        _say(f"  {error}")
        return False
    folder = plan.pictures[0].parent
    folder.mkdir(parents=True, exist_ok=True)
    remove_stale(folder.glob("writing.*.tmp"))
    for path in write_pictures(figure, plan.pictures, plan.settings):
        _say(f"  {path}")
    return True


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
