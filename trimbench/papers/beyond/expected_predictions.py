"""What to expect of classifiers with gaps, beside what libraries do with them: leads, losses and stability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pandas as pd

from trimbench.papers.methods.expectations import CLASSIFIERS, METHODS, compare_expectations
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.masks import Mechanism, check_fraction
from trimbench.reproduction.execution.job import seed_for


@vocab.settings
class ExpectedPredictions:
    """Classifiers on rows with gaps: in expectation, by themselves, after imputation, and trained with gaps.

    Rows beyond `train_rows` and `test_rows` are left out at random. Models that are trained with gaps see `copies` of
    each training row, of which the same mechanism hides the same share.
    """

    datasets: vocab.Axis[str]
    classifiers: vocab.Axis[Annotated[str, vocab.one_of(CLASSIFIERS)]]
    mechanism: vocab.Axis[Mechanism]
    missing: vocab.Axis[float]
    methods: vocab.Axis[Annotated[str, vocab.one_of(METHODS)]]
    splits: vocab.Count = 10
    train_rows: vocab.Count = 1000
    test_rows: vocab.Count = 300
    copies: vocab.Count = 2
    seed: int = 0

    def __post_init__(self) -> None:
        for share in self.missing:
            check_fraction(share)
        if "expected" not in self.methods:
            raise ValueError(f"methods must have expected, with which the others are compared, got {self.methods}")

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set, split and classifier."""
        cells = []
        for place in vocab.grid(dataset=self.datasets, split=range(self.splits), classifier=self.classifiers):
            name = place["dataset"]
            seed = seed_for(purpose="expectation", dataset=name, split=place["split"], seed=self.seed)
            cells.append(vocab.Cell.of(place, compare_expectations, self, data=inputs.dataset(name), seed=seed))
        return cells

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return what was asked, leads over each other method, all losses, the stability, and figures."""
        found = vocab.unpacked(rows, "results")
        leads = [*_leads(found)] if len(found) else []
        lost = [lead.line for lead in leads if lead.verdict == _WORSE]
        tables = [
            vocab.Table.of("What was asked of the expectation", _claims(found, leads), _CLAIMED, name="claims"),
            vocab.Table.of("The expectation against each other method", _summary(leads), _SUMMARY),
            vocab.Table.of("Stated and true stability", _stability(found), _STABILITY, name="stability"),
            vocab.Table.of("Where the expectation is worse by more than a standard error", lost, _LEADS, name="losses"),
            vocab.Table.of("Every lead", [lead.line for lead in leads], _LEADS, name="leads", listed=False),
        ]
        figures = [*_curves(found), *_calibration(found)] if len(found) else []
        return vocab.Outcome(tables, figures)


# Leads over other methods on the same splits and gaps.

# Title, and whether high values are good.
_MEASURES = {"log_loss": ("log loss", False), "accuracy": ("accuracy", True), "calibration": ("calibration", False)}
_MECHANISMS = {
    "mcar": "at random (MCAR)",
    "rates": "at rates",
    "block": "in blocks",
    "depends_on_features": "by other features (MAR)",
    "depends_on_value": "by the value (MNAR)",
}
_BETTER, _EVEN, _WORSE = "better", "even", "worse"
_CELL = ["dataset", "classifier", "mechanism", "missing"]
_FORMATS = {"share": ".1f"}
_LEADS = {
    **dict.fromkeys(("data", "classifier", "missing"), ""),
    **_FORMATS,
    **dict.fromkeys(("against", "measure", "splits"), ""),
    **dict.fromkeys(("expectation", "other"), ".4f"),
    "lead": "+.4f",
    "standard error": ".4f",
    "expectation is": "",
}


@dataclass(frozen=True, eq=False)
class Lead:
    """By how much the expectation is better than another method in a cell: one difference for each split."""

    cell: tuple[Any, ...]
    against: str
    measure: str
    ours: pd.Series[float]
    theirs: pd.Series[float]

    @property
    def differences(self) -> pd.Series[float]:
        """Positive where the expectation is better."""
        return (self.ours - self.theirs) * (1.0 if _MEASURES[self.measure][1] else -1.0)

    @property
    def verdict(self) -> str:
        """What the mean is by more than a standard error, which is 0 for a single split."""
        mean, error = self.differences.mean(), np.nan_to_num(vocab.standard_error(self.differences))
        return _EVEN if abs(mean) <= error else (_BETTER if mean > 0 else _WORSE)

    @property
    def line(self) -> list[object]:
        """Its line in tables."""
        lead, error = self.differences.mean(), vocab.standard_error(self.differences)
        names = (METHODS[self.against].title, _MEASURES[self.measure][0], len(self.ours))
        return [*_shown(self.cell), *names, self.ours.mean(), self.theirs.mean(), lead, error, self.verdict]


def _shown(cell: Sequence[Any]) -> list[object]:
    dataset, classifier, mechanism, share = cell
    return [vocab.shown_name(dataset), CLASSIFIERS[classifier].title, _MECHANISMS[mechanism], share]


def _leads(found: pd.DataFrame) -> Iterator[Lead]:
    for labels, ours in vocab.groups(found, *_CELL):
        cell = tuple(labels.values())
        for measure in _MEASURES:
            by_method = ours.set_index(["split", "method"])[measure].unstack("method")  # noqa: PD010
            for other in METHODS:
                if other != "expected" and other in by_method:
                    pairs = by_method[["expected", other]].dropna()
                    yield Lead(cell, other, measure, pairs["expected"], pairs[other])


_COUNTED = ("cells", _BETTER, _EVEN, _WORSE)
_SUMMARY = {
    **dict.fromkeys(("missing", "classifier", "measure", "against", *_COUNTED), ""),
    "mean lead": "+.4f",
}


def _summary(leads: Sequence[Lead]) -> Iterator[list[object]]:
    groups: dict[tuple[str, ...], list[Lead]] = {}
    for lead in leads:
        _, classifier, mechanism, _ = lead.cell
        groups.setdefault((mechanism, classifier, lead.measure, lead.against), []).append(lead)
    for (mechanism, classifier, measure, against), ours in groups.items():
        names = (_MECHANISMS[mechanism], CLASSIFIERS[classifier].title, _MEASURES[measure][0], METHODS[against].title)
        verdicts = [lead.verdict for lead in ours]
        counts = (len(ours), *map(verdicts.count, (_BETTER, _EVEN, _WORSE)))
        yield [*names, *counts, float(np.mean([lead.differences.mean() for lead in ours]))]


# What is stated of decisions, and what happened to them.

_STABILITY = {
    **dict.fromkeys(("data", "classifier", "missing"), ""),
    **_FORMATS,
    "splits": "",
    **dict.fromkeys(("stated", "true"), ".3f"),
    "stated - true": "+.3f",
    "standard error": ".3f",
    "stated at 0.99": "",
    "of these kept": ".4f",
}


def _stability(found: pd.DataFrame) -> Iterator[list[object]]:
    for labels, ours in vocab.groups(_ours(found), *_CELL):
        gaps, n_sure = ours["stated"] - ours["kept"], int(ours["sure"].sum())
        means = (ours["stated"].mean(), ours["kept"].mean(), gaps.mean(), vocab.standard_error(gaps))
        kept = float(ours["sure_kept"].sum() / n_sure) if n_sure else None
        yield [*_shown([*labels.values()]), len(ours), *means, n_sure, kept]


def _ours(found: pd.DataFrame) -> pd.DataFrame:
    return found[found["method"] == "expected"] if len(found) else found


# What was asked for, and whether the run bears it out.

_CLAIMED = ("missing", "claim", "needed", "found", "of", "verdict")
_WITHIN, _KEPT, _KNN_CELLS = 0.03, 0.985, 0.8


def _claims(found: pd.DataFrame, leads: Sequence[Lead]) -> Iterator[dict[str, object]]:
    for mechanism, title in _MECHANISMS.items():
        ours = _ours(found[found["mechanism"] == mechanism]) if len(found) else found
        if not len(ours):
            continue
        for other, share in (("native", 1.0), ("knn", _KNN_CELLS)):
            cells = [
                lead for lead in leads if (lead.against, lead.measure, lead.cell[2]) == (other, "log_loss", mechanism)
            ]
            claim = f"cells with a log loss at most a standard error above that of {METHODS[other].title}"
            yield _claimed(title, claim, share, sum(lead.verdict != _WORSE for lead in cells), len(cells))
        gaps = [abs(one["stated"].mean() - one["kept"].mean()) for _, one in vocab.groups(ours, *_CELL)]
        claim = f"cells whose mean stated stability is at most {_WITHIN} from the true one"
        yield _claimed(title, claim, 1.0, sum(gap <= _WITHIN for gap in gaps), len(gaps))
        claim = "decisions stated to stay with 0.99 or more that stay"
        yield _claimed(title, claim, _KEPT, int(ours["sure_kept"].sum()), int(ours["sure"].sum()))


def _claimed(missing: str, claim: str, needed: float, held: int, total: int) -> dict[str, object]:
    verdict = "open" if not total else ("holds" if held >= needed * total else "does not hold")
    return dict(zip(_CLAIMED, (missing, claim, f"{needed:.1%}", held, total, verdict), strict=True))


def _curves(found: pd.DataFrame) -> Iterator[vocab.LineFigure]:
    """Yield for each classifier the log loss against the share that is missing at random, a mean over data sets."""
    at_random = found[found["mechanism"] == "mcar"]
    for labels, ours in vocab.groups(at_random, "classifier"):
        classifier = labels["classifier"]
        n_sets = ours["dataset"].nunique()
        yield vocab.LineFigure.of(
            f"{CLASSIFIERS[classifier].title}: log loss, mean over {n_sets} data sets (paired: see the tables)",
            ("missing features (%)", "log loss (nats)"),
            (
                (METHODS[place["method"]].title, 100 * place["missing"], values["log_loss"].mean())
                for place, values in vocab.groups(ours, "method", "missing")
            ),
            name=classifier,
        )


def _calibration(found: pd.DataFrame) -> Iterator[vocab.LineFigure]:
    """Yield the true against the stated stability, a point for each cell."""
    points = [
        (_MECHANISMS[labels["mechanism"]], one["stated"].mean(), one["kept"].mean())
        for labels, one in vocab.groups(_ours(found), *_CELL)
    ]
    yield vocab.LineFigure.against_diagonal(
        "Share of decisions that stay once everything is known (one data set, classifier and share each)",
        ("stated", "true"),
        points,
        (min(min(x, y) for _, x, y in points), 1.0),
        name="stability",
    )
