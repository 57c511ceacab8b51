"""What a study of a table found, for Python."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from trimbench.papers.own_table.running import Studied


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """What a study of a table found. Printed, its conclusions.

    Attributes
    ----------
    conclusions : tuple of str
        The answers in sentences, each with its numbers.
    notes : tuple of str
        What was repaired, left out or shortened.
    tables : dict of str to DataFrame
        ``"frontier"``, ``"card"``, ``"baseline"``, ``"missing"``, ``"confidence"``, ``"explanations"``, and
        ``"failures"`` if a step has no result.
    points : dict of str to DataFrame
        What the figures show, by name.
    features : tuple of str
        Those to keep.
    model : TrimmedClassifier or None
        The model to keep, which predicts new rows of the same columns.
    code : str
        The lines of Python that learn it again, from the table as it was read.
    files : tuple of Path
        What was written; the page is the last. Empty without `folder`.
    """

    conclusions: tuple[str, ...]
    notes: tuple[str, ...]
    tables: dict[str, pd.DataFrame]
    points: dict[str, pd.DataFrame]
    features: tuple[str, ...]
    model: Any
    code: str
    files: tuple[Path, ...]
    _studied: Studied

    def __repr__(self) -> str:
        """Name the features to keep and the tables."""
        return f"Study(features={self.features}, tables={tuple(self.tables)})"

    def __str__(self) -> str:
        """Return the conclusions, one to a line."""
        return "\n".join(self.conclusions)

    @property
    def figures(self) -> dict[str, Figure]:
        """The figures, drawn: a notebook shows them."""
        from trimbench.papers.reporting.figures.drawing import drawn, style
        from trimbench.papers.reporting.figures.settings import FigureSettings

        settings = FigureSettings()
        with style(settings):
            return {
                figure.name: drawn(figure, settings)
                for figure in self._studied.findings.outcome.figures
                if not figure.points.empty
            }
