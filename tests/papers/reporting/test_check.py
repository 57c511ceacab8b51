"""Noise or real: false alarms and power of a check, and what it says."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from trimbench.reproduction.reporting import exchange
from trimbench.reproduction.reporting.archive import unpack_tables
from trimbench.reproduction.reporting.check import (
    LEVEL,
    Measured,
    NumbersOfRun,
    badge,
    check,
    counts,
    in_words,
    probability,
    write_check,
)
from trimbench.reproduction.reporting.runs import StoredExperiment, StoredRun
from trimbench.reproduction.settings import ConfigurationError

N_EXPERIMENTS, N_NUMBERS, N_RERUNS = 10, 12, 200


def run(values: NDArray[np.float64], name: str = "a", verdict: str = "within", *, keeps: bool = False) -> NumbersOfRun:
    """Return a run with replications of shape (n_replications, n_experiments, n_numbers), which it may keep."""
    means, deviations = values.mean(axis=0), values.std(axis=0, ddof=1)
    numbers = {
        (f"family/{i}", f"row {j}/error"): Measured(
            *(means[i, j], verdict, "", "number", len(values), deviations[i, j]),
            tuple(values[:, i, j].tolist()) if keeps else (),
        )
        for i, j in np.ndindex(*means.shape)
    }
    return NumbersOfRun(name, numbers, {})


def alarmed(before: NumbersOfRun, now: NumbersOfRun) -> bool:
    return any(one.why for one in check(before, now))


def draws(rng: np.random.Generator, n: int, shared: float = 0.0, kind: str = "normal") -> NDArray[np.float64]:
    """Draw replications whose numbers share a part of their noise, with opposite signs for every second number."""
    kinds: dict[str, Callable[[tuple[int, ...]], NDArray[np.float64]]] = {
        "normal": rng.standard_normal,
        "skewed": rng.standard_exponential,
        "shares": lambda shape: rng.binomial(100, 0.05, shape) / 5,
    }
    common = kinds[kind]((n, 1, 1)) * (-1.0) ** np.arange(N_NUMBERS)
    return shared * common + math.sqrt(1 - shared**2) * kinds[kind]((n, N_EXPERIMENTS, N_NUMBERS))


@pytest.mark.parametrize("shared", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("kind", ["normal", "skewed", "shares"])
@pytest.mark.parametrize("sizes", [(5, 20), (20, 20), (3, 100)], ids=str)
def test_at_most_one_rerun_in_twenty_with_nothing_but_other_seeds_is_reported(
    shared: float, kind: str, sizes: tuple[int, int]
) -> None:
    rng = np.random.default_rng(7)
    alarms = sum(alarmed(*(run(draws(rng, n, shared, kind)) for n in sizes)) for _ in range(N_RERUNS))
    # Numbers that are all the same one are reported in exactly 5 %, up to what a simulation tells.
    assert alarms <= (LEVEL * N_RERUNS if shared < 1 else stats.binom.ppf(0.999, N_RERUNS, LEVEL))


@pytest.mark.parametrize("shared", [0.0, 0.7])
def test_a_shift_of_one_deviation_in_one_experiment_is_reported(shared: float) -> None:
    rng, reported = np.random.default_rng(8), 0
    for _ in range(100):
        now = draws(rng, 25, shared)
        now[:, 3] += 1  # the standard deviation of every number
        reported += alarmed(run(draws(rng, 25, shared)), run(now))
    assert reported >= 90


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw fewer exchanges, which is as right, and costs power."""
    monkeypatch.setattr(exchange, "N_EXCHANGES", 199)


@pytest.mark.usefixtures("quickly")
@pytest.mark.parametrize("shared", [0.0, 0.7])
@pytest.mark.parametrize("kind", ["normal", "skewed"])
@pytest.mark.parametrize("sizes", [(8, 8), (6, 20)], ids=str)
def test_where_replications_are_kept_no_more_reruns_are_reported(
    shared: float, kind: str, sizes: tuple[int, int]
) -> None:
    rng = np.random.default_rng(17)
    alarms = sum(alarmed(*(run(draws(rng, n, shared, kind), keeps=True) for n in sizes)) for _ in range(100))
    # It is just the level, up to what a simulation tells.
    assert alarms <= stats.binom.ppf(0.999, 100, LEVEL)


@pytest.mark.usefixtures("quickly")
def test_many_small_shifts_of_an_experiment_are_seen_together() -> None:
    rng, reported, alone = np.random.default_rng(18), 0, 0
    for _ in range(100):
        before, now = draws(rng, 8), draws(rng, 8)
        now[:, 3] += rng.choice([-1, 1], N_NUMBERS)
        checked = check(run(before, keeps=True), run(now, keeps=True))
        reported += any(one.experiment == "family/3" for one in checked if one.why)
        alone += alarmed(run(before), run(now))
    assert reported >= 90
    assert alone < 20, "what can be told without the replications"


def test_an_experiment_that_changed_as_a_whole_is_an_entry_of_its_own() -> None:
    rng = np.random.default_rng(3)
    before, now = draws(rng, 8), draws(rng, 8)
    now[:, 3] += 1
    checked = check(run(before, keeps=True), run(now, keeps=True))
    (one,) = [one for one in checked if one.why]
    assert (one.experiment, one.cell, one.standing) == ("family/3", "all numbers", "left its noise")
    assert counts(checked)["reported"] == 0, "it is no number"
    said = in_words(checked, "a")
    assert said.startswith("None of 120 numbers changed against a")
    assert "The numbers of family/3 left their noise together, though none did alone." in said


@pytest.mark.parametrize("shift", [0.0, 0.5, 1.5])
def test_the_probability_of_one_number_is_the_share_of_exchanges(shift: float) -> None:
    rng = np.random.default_rng(5)
    one, two = rng.standard_exponential(6), rng.standard_exponential(7) + shift
    exact = stats.permutation_test(
        (one, two), lambda a, b: abs(stats.ttest_ind(a, b, equal_var=False).statistic), alternative="greater"
    )
    found, together = exchange.probabilities({"a": exchange.Both("x", one.tolist(), two.tolist())})
    assert found["a"] == pytest.approx(exact.pvalue, abs=4 * math.sqrt(exact.pvalue / exchange.N_EXCHANGES))
    assert together == {}, "one number is no whole"


def test_numbers_that_are_the_same_up_to_rounding_are_no_difference() -> None:
    both = {n: exchange.Both("x", [0.1 * n] * 8, [0.1 * n * (1 + 1e-15)] * 8) for n in (1, 2, 3)}
    numbers, together = exchange.probabilities(both)
    assert set(numbers.values()) == {1.0}
    assert together == {}
    both[1] = exchange.Both("x", [0.1] * 8, [0.1001] * 8)
    assert exchange.probabilities(both)[0][1] < 0.01


def test_too_few_replications_to_exchange_are_judged_as_without() -> None:
    rng = np.random.default_rng(6)
    before, now = draws(rng, 3), draws(rng, 3)
    now[:, 2] += 1000
    with_draws, without = (check(run(before, keeps=kept), run(now, keeps=kept)) for kept in (True, False))
    assert [(one.cell, one.probability) for one in with_draws] == [(one.cell, one.probability) for one in without]
    assert sum(bool(one.why) for one in without) == N_NUMBERS


def test_replications_of_which_a_number_is_not_the_mean_are_not_exchanged(tmp_path: Path) -> None:
    _, _, _, numbers = written(tmp_path, of(1.0), of(1.0))
    text = "experiment,cell,reproduced,verdict,replications,deviation,draws\n"
    numbers.write_text(f'{text}f/x,a/q,2.0,exact,2,1.4,"[1, 3]"\nf/x,b/q,2.5,exact,2,1.4,"[1, 3]"\n')
    assert [one.draws for one in NumbersOfRun.of_csv(numbers).numbers.values()] == [(1.0, 3.0), ()]


def test_the_probability_is_that_of_students_test() -> None:
    rng = np.random.default_rng(1)
    one, two = rng.normal(0, 1, 7), rng.normal(0.5, 1.2, 4)
    first, second = (Measured(v.mean(), "exact", n=len(v), deviation=v.std(ddof=1)) for v in (one, two))
    welch = stats.ttest_ind(one, two, equal_var=False)
    assert probability(first, second) == pytest.approx(2 * stats.t.sf(abs(welch.statistic), 3))
    assert probability(second, first) == probability(first, second)
    assert welch.df > 3  # Welch's own
    # A run that does not say how many replications it had counts as one: a draw from Student's prediction interval.
    low, high = stats.t.interval(0.95, 6, one.mean(), one.std(ddof=1) * math.sqrt(1 + 1 / 7))
    for end in (low, high):
        assert probability(first, Measured(end, "exact")) == pytest.approx(0.05)
        assert probability(Measured(end, "exact"), first) == pytest.approx(0.05)
    assert probability(Measured(1.0, "exact"), Measured(2.0, "exact")) is None
    assert probability(Measured(None, "not attempted"), first) is None
    still = Measured(1.0, "exact", n=3, deviation=0.0)
    assert (probability(still, still), probability(still, Measured(1.1, "exact"))) == (1.0, 0.0)


def of(value: float | None, verdict: str = "exact", cause: str = "", subject: str = "number") -> NumbersOfRun:
    return NumbersOfRun("b", {("f/x", "r/q"): Measured(value, verdict, cause, subject)}, {"f/x": {"seed": "1"}})


CASES = [
    (of(1.0), of(1.0 + 1e-12), "equal", ""),
    (of(1.0), of(1.001), "changed", "differs, and has no replications that could explain it"),
    (of(1.0), NumbersOfRun("c", of(1.1).numbers, {"f/x": {"seed": "2"}}), "cannot be told", ""),
    (of(1.0), NumbersOfRun("c", of(1.1).numbers, {}), "changed", "differs, and has no replications"),
    (of(1.0), of(None, "not attempted"), "missing", "is not computed any more"),
    (of(1.0, "within"), of(1.0, "differs", "unexplained"), "equal", "an open difference is new"),
    (of(1.0, "exact"), of(1.0, "within"), "equal", "verdict exact became within"),
    (of(1.0, "differs", "chance"), of(1.0, "differs", "unexplained"), "equal", "became differs, unexplained"),
    (of(1.0, "differs", "unexplained"), of(1.0, "exact"), "equal", ""),
    (of(math.inf), of(math.inf), "equal", ""),
]


@pytest.mark.parametrize(("before", "now", "standing", "why"), CASES)
def test_numbers_without_replications_are_compared_to_rounding(
    before: NumbersOfRun, now: NumbersOfRun, standing: str, why: str
) -> None:
    (found,) = check(before, now)
    assert found.standing == standing
    assert why in found.why
    assert bool(why) == bool(found.why)


def test_runs_with_other_seeds_are_matched_by_experiment_and_no_noise_is_made_up() -> None:
    table = pd.DataFrame({"cell": ["r/q"], "reproduced": ["1.5"], "verdict": ["exact"], "cause": [""], "subject": [""]})

    def seeded(seed: int, value: str, **noise: float) -> NumbersOfRun:
        about = {"configuration": {"seed": seed, "offline": seed == 1}, "jobs": {"k": "ok"}}
        about |= {"page": {"numbers": [{"cell": "r/q", **noise}]}}
        stem = f"f/x__seed-{seed}"
        stored = StoredExperiment(stem, "f/x", {"reported numbers": table.assign(reproduced=value)}, about)
        return NumbersOfRun.of(StoredRun("a", {stem: stored}), ["offline"])

    first = seeded(1, "1.5", replications=4, deviation=0.1)
    assert first.numbers == {("f/x", "r/q"): Measured(1.5, "exact", "", "", 4, 0.1)}
    assert first.settings == {"f/x": {"seed": "1"}}
    assert [one.standing for one in check(first, seeded(2, "1.6", replications=4, deviation=0.1))] == ["within noise"]
    assert [one.standing for one in check(seeded(1, "1.5"), seeded(2, "1.6"))] == ["cannot be told"]
    assert [one.standing for one in check(seeded(1, "1.5"), seeded(1, "1.6"))] == ["changed"]


def test_times_and_numbers_of_one_run_alone_are_not_checked() -> None:
    assert check(of(1.0, subject="time"), of(9.0, subject="time")) == []
    assert check(of(None, "not attempted"), of(1.0)) == check(NumbersOfRun("c", {}, {}), of(1.0)) == []


def test_a_number_that_its_experiment_had_before_is_missing() -> None:
    both = {("f/x", "r/q"): Measured(1.0, "exact"), ("f/x", "r/p"): Measured(2.0, "exact")}
    before = NumbersOfRun("a", {**both, ("f/y", "r/q"): Measured(3.0, "exact")}, {})
    found = {one.cell: (one.standing, one.why) for one in check(before, of(1.0))}
    assert found == {"r/q": ("equal", ""), "r/p": ("missing", "is not computed any more")}
    # Without a value before, there is nothing that it could have changed from.
    assert check(of(None, "differs"), of(1.0)) == []


def test_a_verdict_that_is_worse_by_noise_is_said_and_does_not_count() -> None:
    rng = np.random.default_rng(3)
    checked = check(run(draws(rng, 9)), run(draws(rng, 9), verdict="differs"))
    assert counts(checked)["within noise"] == N_EXPERIMENTS * N_NUMBERS
    said = in_words(checked, "a")
    assert said.startswith(
        "None of 120 numbers changed against a: 0 equal, 120 within the noise of their replications."
    )
    assert "120 verdicts are worse by no more than noise, which does not count." in said


def written(folder: Path, before: NumbersOfRun, now: NumbersOfRun) -> Sequence[Path]:
    return write_check(check(before, now), before, now, folder)


def test_the_files_say_what_changed_and_the_numbers_can_be_checked_against(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    before, moved = draws(rng, 9), draws(rng, 9)
    moved[:, 2] += 5
    first, second = run(before, keeps=True), run(moved, "b", keeps=True)
    markdown, about, svg, numbers = written(tmp_path, first, second)
    content = json.loads(about.read_text(encoding="utf-8"))
    assert (content["counts"]["left its noise"], content["counts"]["reported"], content["run"]) == (12, 12, "b")
    assert {one["experiment"] for one in content["changed"]} == {"family/2"}
    assert "family/2" in markdown.read_text(encoding="utf-8")
    assert "".join(ElementTree.fromstring(svg.read_text(encoding="utf-8")).itertext()).endswith("12 changed")
    read = NumbersOfRun.of_csv(numbers)
    assert read.numbers == second.numbers
    assert [one.standing for one in check(read, second)] == ["equal"] * 120
    assert "within noise" in badge(check(read, second))


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    wrong_draws = 'experiment,cell,reproduced,verdict,replications,deviation,draws\na,b,1,d,2,1,"[x"\n'
    for text in (wrong_draws, "a,b\n1,2\n", "experiment,cell,reproduced,verdict,replications,deviation\na,b,c,d,e,f\n"):
        path.write_text(text)
        with pytest.raises(ConfigurationError, match="that task=check wrote"):
            NumbersOfRun.of_csv(path)
    archive = tmp_path / "x.zip"
    archive.write_bytes(b"PK")
    with pytest.raises(ConfigurationError, match="must be the archive of a run, got File is not a zip file"):
        unpack_tables(archive, tmp_path)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("../away.json", "{}")
    with pytest.raises(ConfigurationError, match="leads elsewhere or is too large"):
        unpack_tables(archive, tmp_path / "in")
    assert not (tmp_path / "away.json").exists()


def test_a_frame_of_numbers_has_no_index(tmp_path: Path) -> None:
    *_, numbers = written(tmp_path, of(1.0), of(1.0))
    frame = pd.read_csv(numbers)
    assert frame.columns.tolist()[:4] == ["experiment", "cell", "subject", "reproduced"]
