"""The figures of a study."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from trimbench.papers.conformant.gap_groups import MECHANISMS, Group
from trimbench.papers.conformant.gap_methods import METHODS
from trimbench.papers.own_table.baseline import CLASSIFIERS
from trimbench.papers.own_table.frontier import INFORMATION, SEQUENTIAL, TRIMMING
from trimbench.papers.own_table.steps import Steps
from trimbench.papers.study.figures import LineFigure

_OF_TEST_ROWS = "95 % confidence interval on test rows"
_COLUMNS = ["series", "x", "y", "low", "high"]


def figures_of(found: Steps) -> list[LineFigure]:
    """Return the frontier, calibration, missing features and confidence as figures; those without points are empty."""
    return [
        _frontier(found, "accuracy", "accuracy on test rows"),
        _frontier(found, "agreement", "agreement with all features"),
        _reliability(found),
        *_gaps(found),
        _confidence(found),
    ]


def _frontier(found: Steps, measure: str, label: str) -> LineFigure:
    points = [
        {"series": method, "x": one["cost"], "y": one[measure]}
        | ({"low": one[f"{measure}_low"], "high": one[f"{measure}_high"]} if method == TRIMMING else {})
        for method in (TRIMMING, INFORMATION, SEQUENTIAL)
        for row in found.frontier
        for one in row["methods"]
        if one["method"] == method and "failure" not in one
    ]
    is_count = set(found.costs.values()) == {1.0}
    return LineFigure(
        f"{label[0].upper()}{label[1:]} against {'number' if is_count else 'cost'} of features",
        "features kept" if is_count else "cost of the features kept",
        label,
        pd.DataFrame(points, columns=_COLUMNS).drop_duplicates(["series", "x"]).sort_values(["series", "x"]),
        name=measure,
        interval=_OF_TEST_ROWS,
    )


def _reliability(found: Steps) -> LineFigure:
    points = [
        {"series": CLASSIFIERS[row["classifier"]][0], "x": one["confidence"], "y": one["right"]}
        | {"low": one["right_low"], "high": one["right_high"]}
        for row in found.baseline
        for one in row["reliability"]
    ]
    if points:
        least = min(float(str(point["x"])) for point in points)
        points += [{"series": "honest", "x": end, "y": end} for end in (least, 1.0)]
    return LineFigure(
        "Is the confidence honest? All features",
        "stated probability of the predicted class",
        "share that is right",
        pd.DataFrame(points, columns=_COLUMNS),
        name="calibration",
        marks={"honest": "guide", **{title: "highlight" for title, _ in CLASSIFIERS.values()}},
        interval=_OF_TEST_ROWS,
    )


def _gaps(found: Steps) -> list[LineFigure]:
    mechanisms = dict.fromkeys(group.mechanism for group in found.gaps)
    return [_of_mechanism(found, [one for one in found.gaps if one.mechanism == name]) for name in mechanisms]


def _of_mechanism(found: Steps, groups: Sequence[Group]) -> LineFigure:
    points = [
        {"series": METHODS[name].title, "x": 100 * group.missing, "y": group.estimate(name, "log_loss").mean}
        for name in found.settings.methods
        for group in groups
        if group.values(name, "log_loss")
    ]
    how = groups[0].mechanism
    return LineFigure(
        f"What missing features cost ({MECHANISMS[how]})",
        "missing features (%)",
        "log loss (nats)",
        pd.DataFrame(points, columns=["series", "x", "y"]),
        name=f"missing_{how}",
        methods={METHODS[name].title: METHODS[name].title for name in found.settings.methods},
    )


def _confidence(found: Steps) -> LineFigure:
    points = [
        {"series": f"{kind}, {what}", "x": len(row["selected"]), "y": row[column]}
        for correct, kind in ((True, "corrected"), (False, "uncorrected"))
        for column, what in (("expected_error", "expected"), ("actual_error", "actual"))
        for row in found.confidence
        if bool(row["correct"]) == correct
    ]
    names = dict.fromkeys(str(point["series"]) for point in points)
    return LineFigure(
        "Expected and actual error rates after selection",
        "columns selected",
        "error rate",
        pd.DataFrame(points, columns=["series", "x", "y"]),
        name="confidence",
        marks={name: "reference" for name in names if name.endswith("actual")},
        methods={name: name.partition(",")[0] for name in names},
    )
