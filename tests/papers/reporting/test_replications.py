"""Seeds of a sweep are replications: means, two intervals, differences between methods, and curves with bands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reproduction.reporting.builders import findings, line_figure
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.replications import replicated
from trimbench.reproduction.reporting.sweeps import SweepPoint, sweep_figures, with_seeds_folded, write_sweep
from trimbench.reproduction.settings import Json
from trimbench.reproduction.vocabulary.tables import Table

pytestmark = pytest.mark.usefixtures("undrawn")
# Student's t at 97.5 %, from a printed table, by degrees of freedom.
T = {1: 12.706, 2: 4.303}
# By seed and alpha: errors of the two methods.
ERRORS = {(1, 5): (0.1, 0.3), (2, 5): (0.2, 0.5), (3, 5): (0.3, 0.4), (1, 9): (0.4, 0.4), (2, 9): (0.6, 0.4)}


def point(
    seed: Json, lines: Sequence[Mapping[str, object]], figures: tuple[Any, ...] = (), **others: Json
) -> SweepPoint:
    table = Table("Errors", pd.DataFrame(lines), {"error": ".3f", "k": "d"})
    return SweepPoint({**others, "seed": seed}, [findings(tables=(table,), figures=figures)], {})


def points() -> list[SweepPoint]:
    return [
        point(
            seed,
            [
                {"method": method, "error": error, "error low": 0.0, "seconds": 2.0 * seed, "rows": 7}
                for method, error in zip(("corrected", "uncorrected"), errors, strict=True)
            ],
            alpha=alpha,
        )
        for (seed, alpha), errors in ERRORS.items()
    ]


def written(points: Sequence[SweepPoint], folder: Path, name: str = "sweep.csv") -> pd.DataFrame:
    write_sweep(points, folder, FigureSettings())
    return pd.read_csv(folder / name)


def halves(values: Sequence[float]) -> tuple[float, float]:
    """Return half the widths of the two intervals, by the formulas of a textbook."""
    n = len(values)
    mean = sum(values) / n
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    return T[n - 1] * deviation / math.sqrt(n), T[n - 1] * deviation * math.sqrt(1 + 1 / n)


def test_the_seeds_of_a_setting_are_one_row_with_the_mean_and_two_intervals(tmp_path: Path) -> None:
    found = written(points(), tmp_path)
    assert found.columns.tolist() == [
        *("alpha", "method", "seeds", "error", "error ±", "error ± one seed", "seconds", "rows")
    ]
    assert found[["alpha", "method", "seeds"]].to_numpy().tolist() == [
        *([5, "corrected", 3], [5, "uncorrected", 3], [9, "corrected", 2], [9, "uncorrected", 2])
    ]
    assert found["error"].tolist() == pytest.approx([0.2, 0.4, 0.5, 0.4])
    expected = [halves(values) for values in ([0.1, 0.2, 0.3], [0.3, 0.5, 0.4], [0.4, 0.6], [0.4, 0.4])]
    assert found[["error ±", "error ± one seed"]].to_numpy() == pytest.approx(np.array(expected), rel=1e-3)
    assert found["seconds"].tolist() == [4.0, 4.0, 3.0, 3.0], "times have no interval"
    each = pd.read_csv(tmp_path / "sweep_seeds.csv")
    assert each[["alpha", "seed"]].to_numpy().tolist() == [[alpha, seed] for seed, alpha in ERRORS for _ in range(2)]
    text = (tmp_path / "sweep.md").read_text(encoding="utf-8")
    assert "2 points with 3 seeds." in text
    assert "Means over 3 seeds (1, 2, 3), which are replications." in text
    assert "The numbers of seeds differ, from 2 to 3; the column seeds has them." in text


def test_methods_are_compared_seed_by_seed(tmp_path: Path) -> None:
    found = written(points(), tmp_path, "sweep_differences.csv")
    about = ["alpha", "difference in", "method", "minus", "seeds"]
    assert found[about].to_numpy().tolist() == [
        [5, "error", "corrected", "uncorrected", 3],
        [9, "error", "corrected", "uncorrected", 2],
    ]
    assert found["difference"].tolist() == pytest.approx([-0.2, 0.1])
    expected = [halves([-0.2, -0.3, -0.1]), halves([0.0, 0.2])]
    assert found[["difference ±", "difference ± one seed"]].to_numpy() == pytest.approx(np.array(expected), rel=1e-3)
    assert "differences between methods, seed by seed, over alpha" in (tmp_path / "sweep.md").read_text("utf-8")
    assert (tmp_path / "index.html").read_text("utf-8").count("<table") == 2


def test_methods_in_columns_are_compared_too(tmp_path: Path) -> None:
    for other in (0.3, None):  # also where no seed changes a method
        swept = [
            point(seed, [{"data": "d", "error, corrected": 0.1 * seed, "error, uncorrected": other or 0.3 * seed}])
            for seed in (1, 2, 4)
        ]
        (line,) = written(swept, tmp_path, "sweep_differences.csv").to_dict("records")
        assert (line["data"], line["difference in"], line["seeds"]) == ("d", "error", 3)
        assert line["difference"] == pytest.approx(0.7 / 3 - (other or 0.7))


def test_the_figure_has_the_mean_and_its_interval() -> None:
    folded, seeds = with_seeds_folded(points())
    (figure, _), notes = sweep_figures(folded)
    assert seeds == [1, 2, 3]
    assert figure.title == "error over alpha"
    half = halves([0.1, 0.2, 0.3])[0]
    first = figure.points.iloc[0].tolist()
    assert first == ["corrected", 5.0, *(pytest.approx(value, rel=1e-3) for value in (0.2, 0.2 - half, 0.2 + half))]
    assert not any("seeds" in note for note in notes)


def curve(seed: int, shift: float = 0.0) -> Any:
    points = pd.DataFrame({"series": ["s", "s"], "x": [1 + shift, 2 + shift], "y": [0.1 * seed, 0.2]})
    return line_figure(points, name="own", levels={"best": 1.0 * seed})


@pytest.mark.parametrize("moves", [False, True])
def test_a_curve_of_the_experiment_has_a_band(moves: bool) -> None:
    swept = [point(seed, [{"error": 0.5}], (curve(seed, 0.1 * seed * moves),)) for seed in (1, 2, 3)]
    (figure,), notes = sweep_figures(with_seeds_folded(swept)[0])
    half = halves([0.1, 0.2, 0.3])[0]
    first, second = figure.points[["x", "y", "low", "high"]].to_numpy().tolist()
    assert first == pytest.approx([1 + 0.2 * moves, 0.2, 0.2 - half, 0.2 + half], rel=1e-3)
    assert second == pytest.approx([2 + 0.2 * moves, 0.2, 0.2, 0.2])
    assert figure.interval == "95 % confidence interval of the mean over 3 seeds"
    assert notes == []


def test_a_curve_that_no_seed_changes_is_as_each_seed_has_it() -> None:
    swept = [point(seed, [{"error": 0.5}], (curve(1),)) for seed in (1, 2)]
    (folded,), _ = with_seeds_folded(swept)
    assert folded.findings[0].outcome.figures[0] is swept[0].findings[0].outcome.figures[0]


def test_one_seed_tells_no_noise_and_what_failed_is_said(tmp_path: Path) -> None:
    swept = [point(1, [{"method": "corrected", "error": 0.5}], alpha=5)]
    for seed, why in ((2, "no such file"), (3, "no memory")):
        failed = SweepPoint({"alpha": 5, "seed": seed})
        failed.note_failure("family/one", ValueError(why))
        swept.append(failed)
    found = written(swept, tmp_path)
    assert found["seeds"].tolist()[:1] == [1]
    assert "error ±" not in found
    assert found["error"].astype(str).tolist()[0] == "0.5"
    text = (tmp_path / "sweep.md").read_text("utf-8")
    assert "1 row has one seed only, which tells no noise: no interval is given; add seeds." in text
    assert "seed = 2: no such file; seed = 3: no memory" in text
    assert "half the 95 %" not in text


def test_a_table_with_other_columns_is_kept_apart() -> None:
    odd = point(2, [{"error": "the job failed"}])
    (folded,), _ = with_seeds_folded([point(1, [{"k": 1, "value": 2.0}]), odd, point(3, [{"k": 1, "value": 4.0}])])
    first, second = (one.outcome.tables[0].frame for one in folded.findings)
    assert first[["k", "seeds", "value"]].to_numpy().tolist() == [[1, 2, 3.0]]
    assert second.to_dict("records") == [{"error": "the job failed", "seeds": 1}]


def test_texts_that_differ_are_counted_and_whole_numbers_that_do_not_stay_whole() -> None:
    lines = [[{"data": "d", "k": 3, "n": seed, "chosen": f"x{seed}"}] for seed in (1, 2)]
    (folded,), _ = with_seeds_folded([point(seed, one) for seed, one in zip((1, 2), lines, strict=True)])
    table = folded.findings[0].outcome.tables[0]
    (row,) = table.frame.to_dict("records")
    assert (row["k"], type(row["k"]), row["n"], row["chosen"]) == (3, int, 1.5, "2 different")
    assert table.formats["k"] == "d"
    assert table.formats["n"] == ".4g"


def test_a_sweep_without_seeds_is_as_it_was() -> None:
    swept = [SweepPoint({"alpha": 1}, [findings()], {})]
    assert with_seeds_folded(swept) == (swept, [])


VALUES = st.floats(-1e3, 1e3, allow_nan=False).map(lambda value: round(value, 3))


@settings(max_examples=25)
@given(st.lists(st.tuples(VALUES, VALUES | st.none()), min_size=2, max_size=6), st.randoms())
def test_the_order_of_seeds_changes_nothing_and_means_are_those_of_a_group(
    values: list[tuple[float, float | None]], rng: Any
) -> None:
    def frames(order: Sequence[tuple[float, float | None]]) -> pd.DataFrame:
        tables = [Table("T", pd.DataFrame({"data": ["a", "b"], "q": [one, other]})) for one, other in order]
        (found,) = replicated([findings(tables=(table,), figures=()) for table in tables])
        return found.outcome.tables[0].frame

    first, second = frames(values), frames(sorted(values, key=lambda _: rng.random()))
    pd.testing.assert_frame_equal(first, second, check_dtype=False, check_exact=False)
    every = pd.DataFrame(
        [("a", one) for one, _ in values] + [("b", other) for _, other in values], columns=["data", "q"]
    )
    means = every.assign(q=every["q"].astype(float)).groupby("data")["q"].mean().tolist()
    assert first["q"].astype(float).tolist() == pytest.approx(means, nan_ok=True)
    assert first["seeds"].tolist() == [len(values)] * 2
