"""Figures as files: their points, their descriptions, and the pictures that are drawn from both."""

from __future__ import annotations

import dataclasses
import inspect
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from gzip import BadGzipFile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.execution.canonical import Json
from trimbench.papers.reporting.figures.drawing import draw
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.whole_files import as_it_was, beside, csv_ending, temporaries, write_csv
from trimbench.papers.study.figures import BarFigure, Figure, ImageFigure, LineFigure
from trimbench.papers.validation import ConfigurationError, reason, unknown, validated

if TYPE_CHECKING:
    import pandas as pd

# The kinds of figures by the name that a description gives them, with the columns of their points that are text.
_KINDS: Mapping[str, tuple[type[Any], Sequence[str]]] = {
    "lines": (LineFigure, ["series"]),
    "images": (ImageFigure, ["row", "column"]),
    "bars": (BarFigure, ["bar", "series"]),
}
# What a description has besides the fields of its figure.
_KIND, _POINTS, _PICTURES, _DRAWN_WITH = "kind", "points", "pictures", "drawn_with"


@dataclass(frozen=True, eq=False)
class StoredFigure:
    """A figure that can be drawn again: its description, and the folder of its files."""

    description: Mapping[str, Any]
    folder: Path

    @property
    def settings(self) -> FigureSettings:
        """What its pictures were drawn with."""
        return validated(FigureSettings, self.description.get(_DRAWN_WITH), f"{self.points}: {_DRAWN_WITH}")

    @property
    def points(self) -> Path:
        """The file of its points."""
        return self.folder / str(self.description[_POINTS])

    @property
    def pictures(self) -> list[Path]:
        """Its pictures, whether they exist or not."""
        return [self.folder / str(name) for name in self.description[_PICTURES]]

    def figure(self) -> Figure:
        """Return the figure, with its points; ConfigurationError if the description is not that of a figure."""
        kind, texts = _KINDS.get(str(self.description[_KIND]), (None, ()))
        if kind is None:
            raise unknown(f"{self.points}: the kind of a figure", list(_KINDS), str(self.description[_KIND]))
        other = {_KIND, _POINTS, _PICTURES, _DRAWN_WITH}
        fields = {key: value for key, value in self.description.items() if key not in other}
        try:
            inspect.signature(kind).bind(**fields, points=None)
        except TypeError as error:
            raise ConfigurationError(f"{self.points}: the description of the figure does not fit: {error}") from error
        figure: Figure = kind(**fields, points=read_points(self.points, texts))
        return figure


def write_figures(
    figures: Sequence[Figure], stem: Path, settings: FigureSettings, *, drawn: bool = True
) -> tuple[list[Path], list[dict[str, Json]]]:
    """Write pictures and points of an experiment's figures beside `stem`.

    Returns the written files, and for each figure a description from which, together with its points, `StoredFigure`
    draws it again. A figure without points has no file and no description; without `drawn`, pictures are left to that.
    """
    written: list[Path] = []
    descriptions: list[dict[str, Json]] = []
    for figure in figures:
        if figure.points.empty:
            continue
        points = beside(stem, points_name(figure), csv_ending(figure.points))
        pictures = [beside(stem, figure.name, f".{ending}") for ending in settings.formats]
        description = _description(figure) | {
            _POINTS: points.name,
            _PICTURES: [path.name for path in pictures],
            _DRAWN_WITH: settings.as_json(),
        }
        drawn_now = pictures if drawn else []
        with temporaries([*drawn_now, points]) as (*new_pictures, new_points):
            write_csv(figure.points, new_points)
            # Drawn from this file, so that drawing it again from there gives the same bytes.
            if new_pictures:
                draw(StoredFigure(description, new_points.parent).figure(), new_pictures, settings)
        written += [*drawn_now, points]
        descriptions.append(description)
    return written, descriptions


def write_pictures(figure: Figure, pictures: Sequence[Path], settings: FigureSettings) -> Sequence[Path]:
    """Draw a figure into files, all or none, whose endings give the formats, and return them."""
    with temporaries(pictures) as names:
        draw(figure, names, settings)
    return pictures


def points_name(figure: Figure) -> str:
    """Return the name of the part that holds a figure's points."""
    return f"{figure.name}_points" if figure.name else "points"


def read_points(path: Path, texts: Sequence[str]) -> pd.DataFrame:
    """Read the points of a figure as they were written; the columns `texts` stay text, even where they look otherwise.

    In the other columns, what is empty is missing. Raises ConfigurationError if the file does not hold such points.
    """
    import pandas as pd

    try:
        written = pd.read_csv(path, dtype=str, keep_default_na=False).map(as_it_was).rename(columns=as_it_was)
        # Python's own numbers, because readers of tables may round them.
        for column in written.columns.difference(list(texts)):
            written[column] = [float(text or "nan") for text in written[column]]
        absent = [column for column in (*texts, "x", "y") if column not in written]
        if absent:
            raise ValueError(f"there is no column {absent[0]!r}")
    except (ValueError, EOFError, BadGzipFile, zlib.error) as error:
        said = f"{path} cannot be read: {reason(error)}; task=report writes it from stored jobs"
        raise ConfigurationError(said) from error
    return written


def _description(figure: Figure) -> dict[str, Json]:
    """Return everything about a figure but its points."""
    kind = next((name for name, (kind, _) in _KINDS.items() if type(figure) is kind), None)
    if kind is None:
        names = ", ".join(kind.__name__ for kind, _ in _KINDS.values())
        raise TypeError(f"figure must be one of {names}, got {type(figure).__name__}; describe it in figures/files.py")
    fields = {field.name: getattr(figure, field.name) for field in dataclasses.fields(figure)}  # type: ignore[arg-type]
    return {_KIND: kind, **{key: _plain(value) for key, value in fields.items() if key != "points"}}


def _plain(value: Any) -> Json:
    """Return a field as JSON, without the levels and verticals that are not finite: they are not drawn."""
    if not isinstance(value, Mapping):
        return str(value)
    plain = {key: one if isinstance(one, str) else float(one) for key, one in value.items()}
    return {key: one for key, one in plain.items() if isinstance(one, str) or math.isfinite(one)}
