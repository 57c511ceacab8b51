"""The page of a study."""

from __future__ import annotations

from pathlib import Path

from trimbench.papers.own_table.conclusion import conclusions, notes
from trimbench.papers.own_table.steps import Steps
from trimbench.papers.reporting.html import facts_of, render
from trimbench.papers.reporting.parts import Entry, part_of
from trimbench.papers.study.findings import Findings


def render_study(found: Steps, findings: Findings, lines: str, seconds: float, folder: Path) -> str:
    """Return the page of a study, which is to be a file in the folder of its other files."""
    part = part_of(Entry(findings.name, "complete", "", [], findings), folder)
    n_rows, n_features = found.table.features.shape
    cost = sum(float(row) for row in findings.rows["seconds"].dropna()) if "seconds" in findings.rows else 0.0
    return render(
        "study.html",
        facts=facts_of(
            f"{n_rows:,} rows, {n_features} features, {len(found.table.classes)} classes",
            f"{seconds:.0f} s, {cost:.0f} s in {len(findings.rows)} jobs",
        ),
        title=f"{found.table.name}: what to keep, what missing values cost, whether to believe it",
        conclusions=conclusions(found),
        notes=notes(found),
        tables=part["tables"],
        figures=part["figures"],
        jobs=part["jobs"],
        provenance=part["provenance"],
        lines=lines,
    )
