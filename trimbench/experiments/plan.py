"""What an experiment consists of: cells to compute, and what becomes of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from trimbench.configuration import Catalogue
from trimbench.data.cache import Cache
from trimbench.data.declaration import DatasetDeclaration
from trimbench.data.network_declaration import NetworkDeclaration
from trimbench.execution.job import Job

if TYPE_CHECKING:
    import pandas as pd

Declaration = DatasetDeclaration | NetworkDeclaration


@dataclass(frozen=True)
class Cell:
    """One job of an experiment and its place in the table.

    Attributes
    ----------
    labels : mapping
        What tells the cell from the others, for example network, threshold and method.
    job : Job
    needs : tuple of declarations
        The data that the job reads.
    """

    labels: Mapping[str, Any]
    job: Job
    needs: tuple[Declaration, ...] = ()


@dataclass(frozen=True, eq=False)
class Table:
    """A table to be written: a frame of plain values and how to print them.

    Attributes
    ----------
    name : str
        Stem of its file; empty for the experiment's main table.
    title : str
    frame : DataFrame
    formats : mapping from column to format specification, for example ``".4f"``
    listed : bool
        Whether pages show it. A long table is written as CSV only.
    """

    name: str
    title: str
    frame: pd.DataFrame
    formats: Mapping[str, str] = field(default_factory=dict)
    listed: bool = True


@dataclass(frozen=True, eq=False)
class LineFigure:
    """Lines over one axis, drawn from points that are written beside the picture.

    Attributes
    ----------
    name : str
        Stem of its file; empty for the experiment's main figure.
    title, x_label, y_label : str
    points : DataFrame with the columns series, x, y and optionally low and high (an interval around y)
    levels : mapping from label to y
        Horizontal lines to compare with.
    marks : mapping from series to "line", "density", "cloud", "points", "highlight", "guide" or "reference"
        How a series is drawn: a line (the default), a line that is named at its peak instead of its end, tiny grey
        points, small points, large points, a thin grey line to compare with, or a dashed line behind the others in the
        colour of the series before it.
    verticals : mapping from label to x
        Vertical lines to compare with.
    x_scale, y_scale : "linear" or "log"
    interval : str
        What low and high are, in a few words.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    points: pd.DataFrame
    levels: Mapping[str, float] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    verticals: Mapping[str, float] = field(default_factory=dict)
    x_scale: str = "linear"
    y_scale: str = "linear"
    interval: str = ""


@dataclass(frozen=True, eq=False)
class ImageFigure:
    """A grid of small images, drawn from pixels that are written beside the picture.

    Attributes
    ----------
    name : str
        Stem of its file; empty for the experiment's main figure.
    title : str
    points : DataFrame with the columns row, column, y, x and value
        Row and column of the grid are labels, in order of appearance; y counts pixels from the top. A value is 0
        (black) to 1 (white), or missing (grey).
    """

    name: str
    title: str
    points: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment found.

    Attributes
    ----------
    tables : sequence of Table
    figures : sequence of LineFigure or ImageFigure
    reproduced : mapping
        The counterpart of each reported number, under the same key; None where it could not be computed.
    notes : sequence of str
        What a reader of the tables must know.
    intervals : mapping
        For some of the reproduced numbers, an interval (low, high) over repetitions.
    jobs : mapping
        Keys of the jobs behind a reproduced number, or behind all numbers of one row (``row`` of ``row/quantity``);
        numbers that are not here come from all jobs that succeeded.
    """

    tables: Sequence[Table]
    figures: Sequence[LineFigure | ImageFigure] = ()
    reproduced: Mapping[str, float | None] = field(default_factory=dict)
    notes: Sequence[str] = ()
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    jobs: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def jobs_behind(self, number: str) -> Sequence[str] | None:
        """Return the keys of the jobs that a reproduced number was computed from; None where all that succeeded are."""
        return self.jobs.get(number, self.jobs.get(number.partition("/")[0]))


def check_axis(name: str, values: Sequence[object]) -> None:
    """Raise an error unless the values of a list can span a grid: at least one, each once.

    Raises
    ------
    ValueError
    """
    if not values or len(set(values)) < len(values):
        raise ValueError(f"{name} must be a list of at least one value, each once, got {list(values)}")


class Experiment(Protocol):
    """One table or figure: a dataclass whose fields are the keys of its configuration."""

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return the jobs of the experiment."""

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return tables and figures.

        Parameters
        ----------
        rows : DataFrame
            One row for each cell: its labels, ``status``, and the entries of its result (NaN where it failed).
        """
