"""In a column, texts of figures do not overlap, and none is smaller than 7 points."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from trimbench.papers.reporting.figures.drawing import StoredFigure, draw
from trimbench.papers.vocabulary.figures import BarFigure, Figure, ImageFigure, LineFigure

from ... import pages
from .measured import assert_readable, picture, preset

METHODS = ("NaCL", "mean imputation", "median imputation", "min imputation", "max imputation", "naive Bayes")
SELECTIONS = ("trimming", "information gain, same T", "information gain, best T'", "joint information gain, best T'")
LONG = "Average minus log probability on subsets of the features of colon (mixture model, n = 100)"


def line(name: str, x: Any, y: Any, half: float | None = None) -> pd.DataFrame:
    points = pd.DataFrame({"series": name, "x": x, "y": y})
    return points if half is None else points.assign(low=points["y"] - half, high=points["y"] + half)


def figure(title: str, x_label: str, y_label: str, *parts: pd.DataFrame, **settings: Any) -> LineFigure:
    return LineFigure(title, x_label, y_label, pd.concat(parts, ignore_index=True), **settings)


def with_authors(n_lines: int) -> LineFigure:
    x = np.linspace(0, 100, 11)
    parts, marks = [], {}
    for place, method in enumerate(METHODS[:n_lines]):
        y = 0.9 - x * (0.004 + 0.001 * place)
        parts += [line(method, x, y, 0.01), line(f"{method} (authors)", x[:-1], y[:-1] * 1.02)]
        marks[f"{method} (authors)"] = "reference"
    interval = "95 % confidence interval of the mean over masks"
    return figure("Fashion-MNIST: accuracy", "missing features (%)", "accuracy", *parts, marks=marks, interval=interval)


def scatter() -> LineFigure:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 0.05, 2000), rng.normal(0, 0.1, 2000)
    levels = {
        f"k = {k:,}{end}": sign * c
        for k, c in ((1, 0.4), (10, 0.3), (1000, 0.12))
        for sign, end in ((1, ""), (-1, " "))
    }
    return figure(
        "Correlation of features with the response, and cut-offs for k features (n = 100)",
        "true correlation",
        "sample correlation",
        line("feature", x, y),
        line("sample = true", [-0.2, 0.2], [-0.2, 0.2]),
        marks={"feature": "cloud", "sample = true": "guide"},
        levels=levels,
    )


# One of each kind that the experiments draw.
FIGURES: Mapping[str, Figure] = {
    "lines that end together, with the authors'": with_authors(6),
    "two lines with the authors'": with_authors(2),
    "a scatter with levels and a guide": scatter(),
    "picks in a cloud": figure(
        "Agreement and accuracy of feature subsets (heart)",
        "expected classification agreement",
        "cross-validated accuracy",
        line("feasible subset", np.linspace(0.5, 1, 300), np.linspace(0.6, 0.9, 300)),
        line("Pareto frontier", [0.9, 0.95, 1], [0.9, 0.89, 0.8]),
        *(line(name, [0.95], [0.89]) for name in ("highest ECA", "highest accuracy", "information gain")),
        marks={"feasible subset": "cloud"}
        | dict.fromkeys(("highest ECA", "highest accuracy", "information gain"), "highlight"),
        levels={"full classifier": 0.84},
    ),
    "densities": figure(
        "Posterior of log(alpha), 1,000 features selected out of 10,000",
        "log(alpha)",
        "density",
        line("uncorrected", x := np.linspace(2, 7, 200), np.exp(-((x - 3) ** 2) * 20)),
        line("corrected", x, np.exp(-((x - 5.7) ** 2) * 20)),
        marks=dict.fromkeys(("uncorrected", "corrected"), "density"),
        verticals={"truth (5.70)": 5.7},
    ),
    "calibration": figure(
        "Calibration: 1,000 of 10,000 features, n = 200",
        "mean predicted probability of y = 1",
        "frequency of y = 1",
        line("uncorrected", x := np.linspace(0, 1, 10), x * 0.9, 0.2),
        line("corrected", x, x, 0.2),
        line("predicted = actual", [0, 1], [0, 1]),
        marks={"predicted = actual": "guide"},
        interval="95 % prediction interval for one more data set",
    ),
    "points against a diagonal": figure(
        LONG,
        "average minus log probability, uncorrected",
        "average minus log probability, corrected",
        line("subset of features", np.linspace(0.1, 1, 30), np.linspace(0.05, 0.9, 30)),
        line("equal", [0.05, 1], [0.05, 1]),
        marks={"subset of features": "points", "equal": "guide"},
    ),
    "printed seconds on two logarithmic axes": figure(
        "Seconds for 2,000 test cases, 200 training cases",
        "features selected out of 10,000",
        "seconds",
        *(
            line(f"{name}{end}", [1, 10, 100, 1000, 10_000], np.array([1, 2, 20, 200, 2000]) * factor)
            for name in ("uncorrected", "corrected")
            for end, factor in (("", 0.01), (" (printed)", 10))
        ),
        marks=dict.fromkeys(("uncorrected (printed)", "corrected (printed)"), "reference"),
        x_scale="log",
        y_scale="log",
    ),
    "agreements close to 1": figure(
        "Circuit s386: trimming and information gain, mean over 3 classes",
        "threshold T of the original",
        "agreement (ECA)",
        *(line(name, np.arange(1, 10) / 10, 0.9999 - place * 1e-5) for place, name in enumerate(SELECTIONS)),
    ),
    "a constant": figure(
        "CPCS-54: trimming and information gain, mean over 3 classes",
        "threshold T of the original",
        "agreement (ECA)",
        *(line(name, np.arange(1, 10) / 10, 1.0) for name in SELECTIONS),
    ),
    "a level and intervals over budgets": figure(
        "Wisconsin breast cancer: trimming a naive Bayes classifier",
        "budget (number of features kept)",
        "probability",
        line("expected agreement (ECA)", range(1, 11), np.linspace(0.86, 1, 10), 0.01),
        line("accuracy on test rows", range(1, 11), np.linspace(0.82, 0.89, 10), 0.03),
        levels={"accuracy with all features": 0.91},
        interval="range over the splits",
    ),
    "thresholds of a sweep": figure(
        "Best trimmings of voting",
        "budget (number of features kept)",
        "agreement (ECA)",
        *(line(f"T = {level / 10:g}", range(17), 1 - 0.4 / (1 + np.arange(17)) * level / 10) for level in range(1, 10)),
    ),
    "bars": BarFigure(
        "Adult, row 13: <=50K taken for >50K; in colour, features that keep the class with probability 0.95",
        "evidence for the class (log-odds, nats)",
        pd.DataFrame(
            {
                "bar": [
                    "marital-status",
                    "a feature whose name is too long for one line",
                    *(f"x{i}" for i in range(9)),
                ],
                "series": ["in the explanation", "not in it"] * 5 + ["not in it"],
                "y": range(11),
                "x": np.linspace(1.2, -0.7, 11),
            }
        ),
        "in the explanation",
    ),
    "images": ImageFigure(
        "Explanations of MNIST 5 v 3; grey pixels are not chosen",
        pd.DataFrame(
            [
                {"row": row, "column": column, "y": y, "x": x, "value": (x + y) % 2}
                for row in ("row 1: 5 (k = 70)", "row 194: 5 taken for 3 (k = 111)")
                for column in ("all features", "support features", "largest weights", "sufficient explanation")
                for y in range(3)
                for x in range(3)
            ]
        ),
    ),
}


@pytest.mark.parametrize("title", [False, True])
@pytest.mark.parametrize("shown", FIGURES.values(), ids=FIGURES)
def test_in_a_column(shown: Figure, title: bool) -> None:
    column = preset("column", title=title)
    canvas = picture(shown, column)
    texts = assert_readable(canvas, least_points=7)
    assert len(texts) >= 2
    assert (shown.title in [text.get_text().replace("\n", " ") for text in texts]) == title
    assert canvas.get_figwidth() == (pytest.approx(3.3) if isinstance(shown, ImageFigure) else 3.3)


@pytest.mark.parametrize("shown", FIGURES.values(), ids=FIGURES)
def test_at_the_default_size(shown: Figure) -> None:
    assert_readable(picture(shown, preset("default")), least_points=8)


def committed() -> list[StoredFigure]:
    """Return the figures of the published outcome."""
    paths = sorted((pages.ROOT / "results" / "published").rglob("*.json"))
    contents = [(path, json.loads(path.read_text(encoding="utf-8"))) for path in paths]
    return [StoredFigure(one, path.parent) for path, content in contents for one in content.get("figures", ())]


@pytest.mark.parametrize("stored", committed(), ids=lambda stored: stored.points.stem)
def test_published_figures(stored: StoredFigure, tmp_path: Path) -> None:
    shown = stored.figure()
    assert_readable(picture(shown, preset("column")), least_points=7)
    if f"\nmatplotlib=={matplotlib.__version__} " not in (pages.ROOT / "requirements/run.lock").read_text("utf-8"):
        pytest.skip("the published pictures are drawn by another version of Matplotlib, which sets text otherwise")
    draw(shown, [tmp_path / path.name for path in stored.pictures], stored.settings)
    for path in stored.pictures:
        # Processors round differently, which moves the colours of the palette a little.
        changed = (abs(imread(tmp_path / path.name) - imread(path)) > 0.3).any(axis=2).mean()
        assert changed < 2e-4, f"{path} is not what is drawn now"
