"""The files of a whole sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trimbench.papers.execution.canonical import Json
from trimbench.papers.reporting.figure_settings import FigureSettings
from trimbench.papers.study.findings import Findings


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """One point of a sweep."""

    values: Mapping[str, Json]
    folder: str
    findings: Sequence[Findings]
    failures: Mapping[str, str]


def write_sweep(points: Sequence[SweepPoint], folder: Path, figure: FigureSettings) -> list[Path]:
    """Write the files of a whole sweep."""
    return []
