"""Numbers that were computed elsewhere: the same verdicts as those of an experiment, and an answer to each mistake."""

from __future__ import annotations

import math
import shlex
import statistics
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from trimbench.reproduction.files import write_csv
from trimbench.reproduction.reporting.parts import read_texts
from trimbench.reproduction.reporting.tables import comparison
from trimbench.reproduction.reporting.verdicts import are_reproduced, judge
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.numbers import Interval, Number
from trimbench.reproduction.vocabulary.reported import Literature
from trimbench.reproduction.vocabulary.values import Value, numbers_in, read_values

from .. import pages
from ..command_line import Command, write
from ..pages import ROOT

REPORTED = """\
paper: {title: Coins, citation: "Doe (2020): Coins"}
coins/table1:
  source: Doe (2020), Table 1
  table: Table 1
  rules:
    tosses: {kind: exact}
    heads: {kind: interval}
    limit: {kind: at_most, subject: claim}
    close: {kind: within, tolerance: 0.1}
    seconds: {kind: at_most, subject: time}
  numbers:
    penny: {tosses: "100", heads: "0.50", limit: "0.6", close: "0.5", seconds: "3"}
    euro: {tosses: "100", heads: "0.51"}
coins/table2:
  source: Doe (2020), Table 2
  rules: {heads: {kind: within, tolerance: 0.05}}
  numbers: {dime: {heads: "0.5"}}
"""
HEAD = "table,row,quantity,value,replication,low,high"
HEADS = [0.43, 0.52, 0.48, 0.47]
ONE, TWO = "coins/table1", "coins/table2"


def text(*lines: str) -> str:
    return "\n".join([HEAD, *lines, ""])


def line(row: str, quantity: str, value: object, *more: object, table: str = ONE) -> str:
    return ",".join(map(str, [table, row, quantity, value, *more, *[""] * (3 - len(more))]))


GOOD = text(
    line("penny", "tosses", 100),
    *(line("penny", "heads", value, place) for place, value in enumerate(HEADS)),
    line("penny", "limit", 0.55),
    line("penny", "close", 0.58),
    line("penny", "seconds", 10),
    line("euro", "heads", 0.42, "", 0.39, 0.52),
)


def verdict(command: Command, values: str, reported: str = REPORTED, *words: str, code: int | None = None) -> str:
    write(Path(), {"reported.yaml": reported, "values.csv": values})
    answer = command("task=verdict", "reported=reported.yaml", "values=values.csv", *words, code=code)
    return " ".join(f"{answer.out} {answer.err}".split())


def test_verdicts_files_and_page_are_those_of_an_experiment(command: Command) -> None:
    out = verdict(command, GOOD, code=0)
    assert "Every number that was attempted is reproduced, or its difference accounted for." in out
    # By a second route: each number as an experiment would give it.
    quantile = 3.182446305284263  # of Student's distribution with 3 degrees of freedom
    half = quantile * statistics.stdev(HEADS) * math.sqrt(1 + 1 / 4)
    mean = statistics.fmean(HEADS)
    numbers = {
        ("penny", "tosses"): Number("penny", "tosses", 100.0),
        ("penny", "heads"): Number("penny", "heads", mean, (), Interval(mean - half, mean + half, "prediction")),
        ("penny", "limit"): Number("penny", "limit", 0.55),
        ("penny", "close"): Number("penny", "close", 0.58),
        ("penny", "seconds"): Number("penny", "seconds", 10.0),
        ("euro", "heads"): Number("euro", "heads", 0.42, (), Interval(0.39, 0.52, "prediction")),
    }
    reported = Literature.of_file(Path("reported.yaml")).reported(ONE)
    expected = [judge(one, numbers.get((one.row, one.quantity))) for one in reported]
    verdicts = ["exact", "within", "holds", "within", "slower", "not attempted", "within"]
    assert [one.verdict for one in expected] == verdicts
    folder = Path("results/verdict")
    found = read_texts(folder / "coins/table1.csv")
    twin = read_texts(write_csv(comparison(expected).frame, Path("expected.csv")))
    pd.testing.assert_frame_equal(found.drop(columns="reproduced"), twin.drop(columns="reproduced"))
    reproduced = pd.to_numeric(found["reproduced"])
    np.testing.assert_allclose(reproduced, [math.nan if one.value is None else one.value for one in expected])
    assert read_texts(folder / "coins/table2.csv")["verdict"].tolist() == ["not attempted"]
    page = (folder / "coins/table1.html").read_text(encoding="utf-8")
    for part in ("0.50 → 0.475 <small>close", "Each number with its reason and its values", 'data-jobs="1-4"'):
        assert part in page
    for part in ("task=", "experiment=", "Jobs", "profile"):
        assert part not in page
    assert (folder / "index.html").is_file()
    assert [*Path("results/jobs").glob("[0-9a-f]*")] == []


def test_the_exit_code_says_whether_a_difference_is_open(command: Command) -> None:
    assert "Not accounted for: penny/tosses." in verdict(command, text(line("penny", "tosses", 101)), code=1)
    assert "Not accounted for: penny/limit." in verdict(command, text(line("penny", "limit", 0.7)), code=1)
    assert "that was attempted is reproduced" in verdict(command, GOOD, REPORTED, "run=mine", code=0)
    assert Path("results/mine/coins/table1.html").is_file()
    assert not are_reproduced([judge(one, None) for one in Literature.of_file(Path("reported.yaml")).reported(ONE)])


def test_a_printed_number_may_be_one_of_many_draws(command: Command) -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal([0.458, 0.505], 0.02, (150, 2))

    def lines(of: np.ndarray) -> str:
        found = [line("penny", "heads", value, place) for place, value in enumerate(of[:, 0])]
        return text(*found, *(line("euro", "heads", value, place) for place, value in enumerate(of[:, 1])))

    assert "1 differs (by chance)" in verdict(command, lines(draws), code=0)
    assert "unexplained" in verdict(command, lines(draws[:90]), code=1)


def test_two_runs_of_values_can_be_compared(command: Command) -> None:
    verdict(command, GOOD, code=0)
    verdict(command, GOOD.replace("0.55", "0.57"), REPORTED, "run=later", code=0)
    answer = command("task=compare", "runs=[verdict,later]", code=0)
    assert answer.out.splitlines()[2].startswith("1 number differs")
    assert "sha256" in answer.out


def numbers_of(folder: Path) -> tuple[list[Value], dict[str, list[Number]]]:
    """Return the values in a folder and, by table, what is made of them."""
    literature = Literature.of_file(folder / "reported.yaml")
    values = read_values(folder / "values.csv", literature)
    of_each = {name: [one for one in values if one.table == name] for name in literature.experiments}
    return values, {
        name: numbers_in(ours, literature.reported(name), "reported.yaml") for name, ours in of_each.items()
    }


MISTAKES = {
    "": "values must have the columns table, row, quantity, value, separated by commas, got an empty file",
    "table,row,value\nx,y,3\n": "got 'table, row, value' in values.csv; add quantity",
    "table;row;quantity;value\n": "separated by commas, got 'table;row;quantity;value'",
    f"{HEAD},replicaton\n{ONE},penny,tosses,1,,,,\n": "got 'replicaton'; did you mean 'replication'?",
    text(): "values must have a line for each number, got only the headings in values.csv",
    text(line("penny", "tosses", 1, table="coins/table3")): f"got 'coins/table3'; did you mean '{TWO}'?",
    text(line("peny", "tosses", 1)): "number peny/tosses is computed, but not reported; correct its row and quantity, "
    "or add it to reported.yaml; did you mean 'penny/tosses'?",
    text(line("dime", "tosses", 1, table=TWO)): "number dime/tosses is computed, but not reported",
    text(line("penny", "tosses", "NA")): f"value of {ONE}, penny/tosses must be a number such as 0.25, got 'NA'",
    text(line("penny", "tosses", "inf")): "must be a number such as 0.25, got 'inf'",
    text(line("penny", "tosses", "")): "must be a number such as 0.25, got ''",
    text(line("penny", "tosses", 1), line("penny", "tosses", 1)): "got two of coins/table1, penny/tosses with no "
    "replication in values.csv; number its replications in the column replication",
    text(line("penny", "heads", 1, 1), line("penny", "heads", 1, 1)): "penny/heads with replication '1' in",
    text(line("penny", "heads", 0.4, 1)): "values must have two or more replications of a number that is judged by its "
    "interval, got one, which tells no noise, of 'penny/heads'; add replications, or the ends low and high",
    text(line("penny", "heads", 0.4, "", 0.41, 0.5)): "low and high must enclose the value of a number with one line, "
    "got 0.41, 0.4, 0.5 for coins/table1, penny/heads",
    text(line("penny", "heads", 0.4, "", 0.3)): "got 0.3, 0.4, nan for",
    text(line("penny", "heads", 1, 1, 0, 2), line("penny", "heads", 1, 2)): "got 2 lines for coins/table1, penny/heads",
}


@pytest.mark.parametrize("content", MISTAKES)
def test_a_mistake_in_the_values_is_one_sentence(tmp_path: Path, content: str) -> None:
    write(tmp_path, {"reported.yaml": REPORTED, "values.csv": content})
    with pytest.raises(ConfigurationError) as caught:
        numbers_of(tmp_path)
    said = str(caught.value).replace(f"{tmp_path}/", "")
    assert said.startswith("values")
    assert MISTAKES[content] in said
    assert len(said) < 500


def test_nothing_is_written_for_values_that_cannot_be_used(command: Command) -> None:
    assert verdict(command, text(line("penny", "tosses", "NA")), code=2).startswith("values: value of coins/table1, ")
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("reported", "said"),
    [
        ("{}", "must have the printed numbers of a table, under a key such as fisher/table2, got none"),
        (REPORTED.replace(TWO, "table2"), "each table must have a key of two names of ASCII letters, digits and _ . -"),
        (REPORTED.replace(TWO, "../x"), "such as fisher/table2, got '../x'"),
        (REPORTED.replace(TWO, "jobs/table2"), "must not begin with jobs, sweeps"),
        (REPORTED.replace('"0.51"', "0.51"), "numbers.euro.heads must be a text (in quotes), got 0.51"),
        ("- a list", "must hold keys and values, got list"),
    ],
)
def test_a_mistake_in_the_printed_numbers_is_one_sentence(command: Command, reported: str, said: str) -> None:
    assert said in verdict(command, GOOD, reported, code=2)
    assert not Path("results").exists()


def test_files_and_settings_must_fit_the_task(command: Command) -> None:
    only = "configuration: reported and values must be two files"
    for words in (["task=verdict"], ["task=verdict", "values=a.csv"], ["reported=a.yaml", "values=a.csv"]):
        assert " ".join(command(*words, code=2).err.split()).startswith(only)
    assert "No such file or directory" in command("task=verdict", "reported=a.yaml", "values=a.csv", code=2).err
    assert "experiment must be left out" in verdict(command, GOOD, REPORTED, "experiment=trimming/table4", code=2)
    assert "run must not be 'published'" in verdict(command, GOOD, REPORTED, "run=published", code=2)
    write(Path("own"), {"config.yaml": "reported: theirs.yaml\n"})
    assert "config.yaml must not take the place" in verdict(command, GOOD, REPORTED, "--config-dir", "own", code=2)
    Path("own/config.yaml").unlink()
    verdict(command, GOOD, REPORTED, "--config-dir", "own", code=0)


@settings(max_examples=20)
@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9),
    others=st.permutations(["NA", "", "NaN"]),
    data=st.data(),
)
def test_the_interval_is_that_of_one_more_replication_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, values: list[float], others: list[str], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("values")
    lines = [line("penny", "heads", value, place, *others[:2]) for place, value in enumerate(values)]
    mixed = data.draw(st.permutations([*lines, line("penny", "tosses", 100, others[2])]))
    write(folder, {"reported.yaml": REPORTED, "values.csv": text(*mixed)})
    found, of_each = numbers_of(folder)
    numbers = {one.quantity: one for one in of_each[ONE]}
    heads, scale = numbers["heads"], np.std(values, ddof=1) * math.sqrt(1 + 1 / len(values))
    ends = stats.t.interval(0.95, len(values) - 1, np.mean(values), scale) if scale else [np.mean(values)] * 2
    assert heads.interval is not None
    np.testing.assert_allclose([heads.interval.low, heads.interval.high], ends, rtol=1e-9, atol=1e-6)
    assert numbers["tosses"] == Number("penny", "tosses", 100.0, numbers["tosses"].jobs)
    assert [found[int(job.split()[1]) - 1].value for job in heads.jobs] == [
        float(one.split(",")[3]) for one in mixed if "heads" in one
    ]


def test_the_page_can_be_followed(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = ROOT / "docs/howto/verdicts-without-python.md"
    pages.follow(path)
    page = path.read_text(encoding="utf-8")
    (words,) = pages.commands(page)
    (shown,) = pages.blocks(page, "text")
    assert shown in command(*shlex.split(words), code=0).out
