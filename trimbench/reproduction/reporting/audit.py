"""An audit of a run: jobs drawn at random and computed again, each value compared, and a bound on what would differ."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from trimbench.reproduction.execution.job import ROW_COLUMNS, Job, generator_for
from trimbench.reproduction.execution.provenance import commit_of, provenance
from trimbench.reproduction.execution.store import Record
from trimbench.reproduction.files import as_it_was, without_homes, write_csv, write_text
from trimbench.reproduction.reporting.certificate import write_certificate
from trimbench.reproduction.reporting.comparison import is_cost, is_rounding
from trimbench.reproduction.reporting.page import count
from trimbench.reproduction.reporting.parts import as_label, in_ranges, number_in
from trimbench.reproduction.reporting.runs import read_rows
from trimbench.reproduction.reporting.tables import markdown_page
from trimbench.reproduction.settings import Json
from trimbench.reproduction.vocabulary.cells import Cell, Input
from trimbench.reproduction.vocabulary.tables import Table

# What has become of a drawn job: nobody can be told anything by one that was not computed.
Outcome = Literal["equal", "equal to rounding", "different", "not computed"]
_CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class AuditedJob:
    """A job of a run: its row there, the job here that has its labels, and why it cannot be audited, if it cannot.

    Attributes
    ----------
    stem : str
        That of the files of its experiment.
    labels : str
        What distinguishes it from the others, in words.
    cells : mapping from names to texts
        What the run says that it found.
    seconds : float
        What the run says that it took.
    inputs : sequence of Input
        The data that the job here reads.
    """

    stem: str
    labels: str
    cells: Mapping[str, str]
    seconds: float
    job: Job | None = None
    uncovered: str = ""
    inputs: Sequence[Input] = ()


def jobs_of_run(
    stem: str, about: Mapping[str, Any], folder: Path, cells: Sequence[Cell], printed: bool
) -> list[AuditedJob]:
    """Return the jobs of an experiment of a run, each with the cell here that has the same labels.

    With `printed`, only those behind printed numbers. Raises ConfigurationError if the rows are not those of a run.
    """
    if about["page"]["jobs"] is None:
        return []
    labels = about["page"]["jobs"]["labels"]
    rows = read_rows(stem, about, folder, {*labels, "status"})
    behind = {row for number in about["page"]["numbers"] for row in in_ranges(number["jobs"])}
    here: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell in cells:
        here[tuple(as_label(cell.labels.get(label)) for label in labels)].append(cell)
    if {label for cell in cells for label in cell.labels} - {*labels}:  # labels that are new leave some in doubt
        here = {own: found for own, found in here.items() if len(found) == 1}
    found = []
    for place, line in enumerate(rows):
        places = here.get(tuple(as_label(as_it_was(line[label])) for label in labels))
        mine = places.pop(0) if places else None
        if printed and place not in behind:
            continue
        words = ", ".join(f"{name} = {line[name]}" for name in labels)
        values = {name: text for name, text in line.items() if name not in {*labels, *ROW_COLUMNS}}
        seconds = number_in(line.get("seconds", ""))
        known = float(seconds) if not isinstance(seconds, str) and math.isfinite(seconds) else 0.0
        job, inputs = (mine.job, mine.inputs) if mine else (None, ())
        why = _uncovered(line["status"], mine, about.get("data", {}))
        found.append(AuditedJob(stem, words, values, known, job, why, inputs))
    return found


def _uncovered(status: str, cell: Cell | None, data: Mapping[str, str]) -> str:
    """Say why a job of a run, which read `data`, cannot be audited by that of a cell; empty if it can."""
    if status != "ok":
        return f"{status[:40]} there"
    if cell is None:
        return "no job here has its labels"
    others = [one.place for one in cell.inputs if data.get(one.place, one.sha256) != one.sha256]
    return f"{others[-1]} here is not the data of the run" if others else ""


def drawn(jobs: Sequence[AuditedJob], seed: int) -> list[AuditedJob]:
    """Return the jobs that can be audited in random order, each once, however many experiments share it."""
    once = {(one.job.key, json.dumps(one.cells)): one for one in jobs if one.job and not one.uncovered}
    order = generator_for(purpose="audit", seed=seed).permutation(len(once))
    different = list(once.values())
    return [different[place] for place in order]


# Compare what a job found with what its row says.


@dataclass(frozen=True)
class Compared:
    """A job that was computed again: how many values are the same, and the first that differs, in words."""

    outcome: Outcome
    n_values: int = 0
    why: str = ""


def compared(one: AuditedJob, record: Record) -> Compared:
    """Compare the values of a job that are no time: exactly, up to rounding (relative 1e-9), or different."""
    if record.result is None:
        is_wrong = record.status == "failed" and not record.lacking
        why = (record.error or record.status).strip().splitlines()[-1]
        return Compared("different" if is_wrong else "not computed", 0, f"{record.status} here: {why}"[:300])
    here = {name: value for name, value in record.result.items() if name in one.cells}
    # A value that only the run has is one that cannot be had here; one that is new here says nothing of the run.
    alone = [name for name, text in one.cells.items() if text and name not in record.result and not is_cost(name)]
    found: list[Outcome] = []
    first = f"{alone[0]} is not computed here" if alone else ""
    for name, mine in here.items():
        for place, there, value in _leaves(name, _like(one.cells[name], mine), mine):
            same = _same(there, value)
            found.append(same)
            if same == "different" and not first:
                first = f"{place}: {there!r:.60} there, {value!r:.60} here"
    if first:
        return Compared("different", len(found), first)
    if not found:
        return Compared("different", 0, "the run has no value to compare")
    return Compared("equal to rounding" if "equal to rounding" in found else "equal", len(found))


def _like(text: str, mine: Json) -> Json:
    """Return a cell as a value of the kind that was computed here; as it is, if it is none."""
    text = as_it_was(text)
    if isinstance(mine, list | dict):
        try:
            found: Json = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return found
    if mine is None:
        return text or None
    if isinstance(mine, bool):
        return {"True": True, "False": False}.get(text, text)
    return text if isinstance(mine, str) else number_in(text)


def _leaves(name: str, there: Json, mine: Json) -> Iterator[tuple[str, Json, Json]]:
    """Yield the values of both sides, without times; lists and mappings of other sizes are one value."""
    if is_cost(name.rpartition(".")[2]):
        return
    if isinstance(mine, dict) and isinstance(there, dict) and there.keys() == mine.keys():
        for key, value in mine.items():
            yield from _leaves(f"{name}.{key}", there[key], value)
    elif isinstance(mine, list) and isinstance(there, list) and len(there) == len(mine):
        for place, value in enumerate(mine):
            yield from _leaves(f"{name}[{place}]", there[place], value)
    else:
        yield name, there, mine


def _same(there: Json, mine: Json) -> Outcome:
    numbers = [type(one) in (int, float) for one in (there, mine)]
    if all(numbers):
        if there == mine:
            return "equal"
        return "equal to rounding" if is_rounding(float(there), float(mine)) else "different"  # type: ignore[arg-type]
    return "equal" if type(there) is type(mine) and there == mine else "different"


# What an audit found: the bound, its words, and its files.


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit of a run found.

    Attributes
    ----------
    run : str
        The name of the run, or of its archive.
    jobs : sequence of AuditedJob
        All jobs of the run.
    order : sequence of AuditedJob
        Those that were drawn, in the order of drawing.
    found : mapping from the places in `order` to what was found
    seed : int
        The seed of the drawing.
    hashes : mapping from names of files to SHA-256
        Of what was audited.
    commits : tuple of str
        Those whose code computed the run.
    """

    run: str
    jobs: Sequence[AuditedJob]
    order: Sequence[AuditedJob]
    found: Mapping[int, Compared]
    seed: int
    hashes: Mapping[str, str]
    commits: Sequence[str]
    n_covered: int
    notes: Sequence[str] = ()

    @property
    def outcomes(self) -> list[tuple[AuditedJob, Compared]]:
        """The drawn jobs of which something was found, in the order of drawing, each with what was found."""
        return [(self.order[at], one) for at, one in sorted(self.found.items())]

    @property
    def counts(self) -> Counter[str]:
        """How many of the drawn jobs have each outcome."""
        return Counter(one.outcome for one in self.found.values())

    @property
    def bound(self) -> float:
        """The share of the covered jobs that at most differ here, with 95 % confidence.

        It is the exact upper end of Clopper and Pearson. With no difference among the first n jobs in the order of
        drawing, it holds for whatever n the audit ended: it would be too small only if none of the first m differed,
        for the m at which it falls below the true share, which has a probability of at most 5 %. So what was computed
        before the first job that was not counts. With a difference, jobs that were not computed count as different.
        """
        from scipy.stats import beta

        n_different = self.counts["different"]
        is_open = [at not in self.found or self.found[at].outcome == "not computed" for at in range(len(self.order))]
        n, k = len(self.order), n_different + sum(is_open)
        if not n_different:
            n, k = [*is_open, True].index(True), 0
        return 1.0 if k >= n else float(beta.ppf(_CONFIDENCE, k + 1, n - k))

    @property
    def sentence(self) -> str:
        """What was found, in one sentence."""
        counts = self.counts
        if not counts:
            return f"No job of {self.n_covered:,} could be drawn."
        said = [f"{counts['equal']:,} equal"]
        if rounded := counts["equal to rounding"]:
            said.append(f"{rounded:,} to rounding")
        said.append(f"{counts['different']:,} different" if counts["different"] else "none different")
        if left := counts["not computed"]:
            said.append(f"{left:,} not computed")
        percent = f"{float(f'{100 * self.bound:.2g}'):g} %"
        return (
            f"{len(self.found):,} of {self.n_covered:,} jobs drawn, {', '.join(said)}: with 95 % confidence at most "
            f"{percent} of these jobs would differ here."
        )

    @property
    def sentences(self) -> list[str]:
        """What was found and what was not looked at, in sentences."""
        here = commit_of(provenance())
        there = " and ".join(self.commits) or "unknown"
        origin = f"Results of commit {there}, code of commit {here}." if there != here else f"Both of commit {here}."
        left = Counter(one.uncovered for one in self.jobs if one.uncovered)
        said = [f"{count(n, 'job')} not covered: {why}." for why, n in left.most_common()]
        return [self.sentence, origin, *said, *self.notes]

    def certificate(self, status: str) -> dict[str, Json]:
        """Return what was audited, by whose code, on which machine, with which draw, and what was found."""
        return {
            "status": status,
            "run": self.run,
            "sentence": self.sentence,
            "sentences": list(self.sentences),
            "clean": self.is_clean,
            "seed": self.seed,
            "confidence": _CONFIDENCE,
            "bound": self.bound,
            "jobs": len(self.jobs),
            "covered": self.n_covered,
            "counts": dict(self.counts),
            "audited": dict(self.hashes),
            "computed by": list(self.commits),
            "audited by": json.loads(without_homes(json.dumps(provenance()))),
        }

    @property
    def is_clean(self) -> bool:
        """Whether jobs were computed, and none of them differs."""
        return bool(self.counts["equal"] + self.counts["equal to rounding"]) and not self.counts["different"]

    def table(self, *, drawn: bool = False) -> Table:
        """Return the table by experiment, or with `drawn`, of those with drawn jobs alone."""
        n_out = Counter(one.stem for one in self.jobs if one.uncovered)
        n_drawn = Counter(job.stem for job, _ in self.outcomes)
        of = Counter((job.stem, str(one.outcome)) for job, one in self.outcomes)
        titles = {"equal": "equal", "equal to rounding": "rounded", "different": "different", "not computed": "open"}
        lines = [
            (stem, n, n_out[stem], n_drawn[stem], *(of[stem, outcome] for outcome in titles))
            for stem, n in Counter(one.stem for one in self.jobs).items()
            if n_drawn[stem] or not drawn
        ]
        return Table.of("Jobs by experiment", lines, ["experiment", "jobs", "left out", "drawn", *titles.values()])

    def different(self) -> Table:
        """Return the table of jobs that differ."""
        lines = [(job.stem, job.labels, one.why) for job, one in self.outcomes if one.outcome == "different"]
        return Table.of("Jobs that differ", lines, ["experiment", "job", "what"])


def write_audit(audit: Audit, folder: Path) -> list[Path]:
    """Write an audit to a folder, and return the files.

    ``audit.md`` has what people read, ``jobs.csv`` each drawn job, and ``certificate.json`` what was audited, by hashes
    of its files, by which commit on which machine, with which draw, and what was found.
    """
    lines = [
        (job.stem, job.labels, job.job.key if job.job else "", one.outcome, one.n_values, one.why)
        for job, one in audit.outcomes
    ]
    jobs = pd.DataFrame(lines, columns=["experiment", "job", "key", "outcome", "values", "why"])
    different = audit.different()
    tables = [different, audit.table()] if len(different.frame) else [audit.table()]
    text = markdown_page(f"Audit of {audit.run}", [" ".join(audit.sentences)], tables=tables)
    return [
        write_text(text, folder / "audit.md"),
        write_csv(jobs, folder / "jobs.csv"),
        write_certificate(audit.certificate("audited"), folder),
    ]
