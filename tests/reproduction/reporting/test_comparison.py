"""What differs between two finished runs."""

from __future__ import annotations

import gzip
import math
import shutil
from pathlib import Path

import pandas as pd
import pytest

from trimbench.reproduction.reporting.comparison import (
    Comparison,
    compare_runs,
    in_words,
    is_cost,
    summarised,
    write_comparison,
)
from trimbench.reproduction.reporting.runs import is_run, read_run
from trimbench.reproduction.reporting.tables import label_columns
from trimbench.reproduction.settings import ConfigurationError

from ..command_line import write
from ..stored_runs import REPORTED, TABLE, run


def compared(first: Path, second: Path) -> Comparison:
    return compare_runs(read_run(first.name, first), read_run(second.name, second))


def only(found: Comparison) -> list[tuple[str, str, str]]:
    rows = found.differences[found.differences["kind"] == "only in one run"]
    return [*zip(rows["name"], rows["first"], rows["second"], strict=True)]


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return run(tmp_path / "first")


def test_a_run_and_its_copy_do_not_differ(first: Path, tmp_path: Path) -> None:
    found = compared(first, shutil.copytree(first, tmp_path / "second"))
    assert found.changes.empty
    assert found.differences.empty
    assert in_words(found) == ["No number differs (13 numbers in 1 experiment compared)."]


def test_a_planted_number_is_the_only_row(first: Path, tmp_path: Path) -> None:
    second = run(tmp_path / "second", {"family/one_table.csv": TABLE.replace("b,3,0.25", "b,3,0.5")})
    (change,) = compared(first, second).changes.to_numpy().tolist()
    assert change == ["number", "family/one", "table", "b", "error", 0.25, 0.5, 1.0, "", "", []]


def test_a_number_shown_twice_is_one_row(first: Path, tmp_path: Path) -> None:
    texts = {
        "family/one.csv": REPORTED.replace("0.123,exact", "0.132,differs"),
        "family/one_table.csv": TABLE.replace("0.123", "0.132"),
    }
    found = compared(first, run(tmp_path / "second", texts))
    (change,) = found.changes.itertuples()
    assert (change.table, change.row, change.quantity) == ("reported numbers", "a", "error")
    assert (change.first_verdict, change.second_verdict, change.also) == ("exact", "differs", ["table: a, error"])
    assert found.of_kind("verdict").equals(found.changes)


def test_many_equal_rows_are_compared_in_order(first: Path, tmp_path: Path) -> None:
    for folder, last in ((first, 0.5), (tmp_path / "second", 0.75)):
        rows = "".join(f"cloud,1,{0.5 if k < 19_999 else last}\n" for k in range(20_000))
        run(folder, {"family/one_points.csv": f"series,x,y\n{rows}"})
    (change,) = compared(first, tmp_path / "second").changes.itertuples()
    assert (change.first, change.second) == (0.5, 0.75)


def test_compressed_points_are_compared_with_plain_ones(first: Path, tmp_path: Path) -> None:
    second = run(tmp_path / "second", files=["one.csv", "one_table.csv", "one_rows.csv.gz", "one_points.csv.gz"])
    (second / "family/one_points.csv.gz").write_bytes(gzip.compress(b"x,y\n1,2\n"))
    (change,) = compared(first, second).changes.itertuples()
    assert (change.table, change.row, change.quantity) == ("points", "", "y")
    assert (change.first, change.second) == (1.0, 2.0)


def test_equal_changes_of_other_whole_numbers_are_rows_of_their_own(first: Path, tmp_path: Path) -> None:
    second = run(tmp_path / "second", {"family/one_table.csv": TABLE.replace(",3,", ",4,")})
    changes = compared(first, second).changes
    assert changes[["row", "quantity"]].to_numpy().tolist() == [["a", "splits"], ["b", "splits"]]


def test_a_verdict_may_change_alone(first: Path, tmp_path: Path) -> None:
    second = run(tmp_path / "second", {"family/one.csv": REPORTED.replace("0.123,exact", "0.123,within")})
    found = compared(first, second)
    (change,) = found.changes.itertuples()
    assert (change.kind, change.first_verdict, change.second_verdict) == ("verdict", "exact", "within")
    assert change.relative_change == 0
    assert in_words(found) == ["No number differs (13 numbers in 1 experiment compared).", "1 verdict differs."]


@pytest.mark.parametrize("cost", ["fit (s)", "microseconds a row"])
def test_the_largest_relative_change_comes_first_and_times_come_apart(first: Path, tmp_path: Path, cost: str) -> None:
    run(first, {"family/one_table.csv": TABLE.replace("fit (s)", cost)})
    texts = {
        "family/one.csv": REPORTED.replace("0.5,trend", "500,differs").replace("7.25", "1000"),
        "family/one_table.csv": f"data,splits,error,kept,gap,{cost}\na,3,0.246,x9,2e-15,5000\nb,3,-0.5,x2,0.1,0.75\n",
    }
    found = compared(first, run(tmp_path / "second", texts))
    assert [*zip(found.changes["kind"], found.changes["row"], found.changes["quantity"], strict=True)] == [
        ("number", "b", "gap"),  # from zero
        ("number", "b", "error"),  # by -300 %
        ("number", "a", "error"),
        ("words", "a", "kept"),
        ("time", "a", cost),
        ("time", "a", "seconds"),
        ("time", "b", "speed"),
        ("rounding", "a", "gap"),
    ]
    assert in_words(found)[0] == "3 numbers differ (13 numbers in 1 experiment compared)."
    text = summarised(found)
    assert "| family/one   | table   | b, error | 0.25       | -0.5        | -300 %   |" in text
    assert text.index("Numbers that differ (3)") < text.index("Run times and memory (3)")


def test_tables_in_a_terminal_fit_its_width(monkeypatch: pytest.MonkeyPatch, first: Path, tmp_path: Path) -> None:
    texts = {"family/one_table.csv": TABLE.replace("x2", "a long text " * 20)}
    found = compared(first, run(tmp_path / "second", texts))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "90")
    assert max(map(len, summarised(found).splitlines())) <= 90


def test_values_without_a_relative_change_come_last(first: Path, tmp_path: Path) -> None:
    rows = ["a,3,inf,x1,0.5,0.5", "b,3,,x2,0.5,0.75"]  # gaps from 1e-15 and 0
    found = compared(first, run(tmp_path / "second", {"family/one_table.csv": "\n".join([TABLE.split()[0], *rows])}))
    assert found.changes[["row", "quantity"]].agg(", ".join, axis=1).tolist() == [
        *("a, gap", "b, gap", "a, error", "b, error")
    ]
    assert found.changes["relative_change"].fillna(-1).tolist() == [math.inf, math.inf, -1, -1]
    assert "| b, error | 0.25       | –           | –" in summarised(found)


def test_a_text_that_one_run_lacks_is_a_dash(first: Path, tmp_path: Path) -> None:
    texts = [TABLE.replace("x1", ""), TABLE.replace("x1", "").replace("x2", "")]
    one, two = (run(tmp_path / name, {"family/one_table.csv": text}) for name, text in zip("ab", texts, strict=True))
    (change,) = compared(one, two).changes.itertuples()
    assert (change.first, change.second) == ("x2", None)
    assert "| b, kept | x2     | –      | –" in summarised(compared(one, two))


def test_empty_tables_do_not_differ(first: Path, tmp_path: Path) -> None:
    run(first, {"family/one_table.csv": "\n"})
    second = run(tmp_path / "second", {"family/one_table.csv": "\n"})
    assert compared(first, second).changes.empty
    second = run(tmp_path / "third", {"family/one_table.csv": "data,error\n"})
    assert only(compared(first, second)) == [("family/one, table: 2 columns (data; error)", "", "present")]


def test_rows_are_found_wherever_they_stand(first: Path, tmp_path: Path) -> None:
    rows = TABLE.splitlines()
    second = run(tmp_path / "second", {"family/one_table.csv": "\n".join([rows[0], "c,3,1,x,0,1", rows[2], rows[1]])})
    found = compared(first, second)
    assert found.changes.empty
    assert only(found) == [("family/one, table: 1 row (c)", "", "present")]


def test_numbers_that_look_alike_are_shown_with_all_digits(first: Path, tmp_path: Path) -> None:
    second = run(tmp_path / "second", {"family/one_table.csv": TABLE.replace("0.25,", "0.2500001,")})
    assert "| 0.25       | 0.2500001   | +4e-05 %" in summarised(compared(first, second))


def test_settings_data_and_environment_are_compared(first: Path, tmp_path: Path) -> None:
    second = run(
        tmp_path / "second",
        configuration={"seed": 2, "prior": {"rate": 2.5}, "results": "elsewhere", "task": "report", "new": [1]},
        data={"dataset/a": "1" * 64},
        missing={"b": "no network"},
        computed_with=[
            {"python": "3.12", "packages": {"numpy": "2.1"}, "commit": "c0", "time": "2027"},
            {"python": "3.11", "packages": {"numpy": "2.1"}, "commit": "c0", "time": "2028"},
        ],
        written_with={"python": "3.11", "commit": "c0", "dirty": True, "time": "2029"},
    )
    found = compared(first, second)
    assert found.changes.empty
    assert [(one.kind, one.name, one.first, one.second) for one in found.differences.itertuples()] == [
        ("setting", "seed", "1", "2"),
        ("setting", "prior.rate", "2.0", "2.5"),
        ("setting", "new", "–", "[1]"),
        ("data", "dataset/a", "0" * 64, "1" * 64),
        ("data", "b", "–", "not available"),
        ("environment", "computed with python", "3.11", "3.11, 3.12"),
        ("environment", "computed with numpy", "2.0", "2.1"),
        ("environment", "written with dirty", "false", "true"),
    ]


def test_what_differs_in_most_experiments_comes_first(tmp_path: Path) -> None:
    for value, name in enumerate(("first", "second")):
        for stem, key in {"family/one": "seed", "family/two": "k", "family/three": "k"}.items():
            run(tmp_path / name, stem=stem, experiment=stem, configuration={key: value})
    assert compared(tmp_path / "first", tmp_path / "second").differences["name"].tolist() == ["k", "seed"]


def test_what_only_one_run_has_is_listed(first: Path, tmp_path: Path) -> None:
    run(first, stem="family/two", experiment="family/two")
    second = run(tmp_path / "second", files=["one.csv", "one_claims.csv"])
    write(second, {"family/one_claims.csv": "x\n1\n"})
    assert only(compared(first, second)) == [
        ("experiment family/two", "present", ""),
        ("family/one: table", "present", ""),
        ("family/one: points", "present", ""),
        ("family/one: claims", "", "present"),
    ]


def test_an_experiment_is_compared_with_itself_under_other_settings(first: Path, tmp_path: Path) -> None:
    second = run(tmp_path / "second", stem="family/one__seed-2", configuration={"seed": 2})
    found = compared(first, second)
    assert (found.experiments, only(found)) == (("family/one",), [])
    run(second, stem="family/one,seed=3")  # of an earlier version; now it is not clear which
    assert len(only(compared(first, second))) == 3


def test_files_of_a_comparison(first: Path, tmp_path: Path) -> None:
    texts = {"family/one_table.csv": TABLE.replace("b,3,0.25", "b,3,<b>0.5</b>").replace("a,3,0.123", "a,3,0.5")}
    second = run(tmp_path / "seed_2 of_mine", texts, configuration={"seed": 2, "prior": {"rate": 2.0}})
    written = write_comparison(compared(first, second), tmp_path / "out")
    changes, differences, text, page = written
    assert [path.name for path in written] == ["changes.csv", "differences.csv", "changes.md", "index.html"]
    table = pd.read_csv(changes)
    assert table[["kind", "row", "quantity", "first", "second"]].to_numpy().tolist() == [
        ["number", "a", "error", 0.123, "0.5"],
        ["words", "b", "error", 0.25, "<b>0.5</b>"],
    ]
    assert differences.read_text(encoding="utf-8").splitlines()[1] == "setting,seed,1,2,family/one"
    assert text.read_text(encoding="utf-8").startswith("# first and seed_2 of_mine\n\n1 number differs (12 numbers in ")
    assert "| in seed_2 of_mine" in text.read_text(encoding="utf-8")
    html = page.read_text(encoding="utf-8")
    assert all(part in html for part in ("&lt;b&gt;0.5&lt;/b&gt;", ">in seed_2 of_mine<", 'href="changes.csv"'))


def test_long_tables_are_cut_where_they_are_read(first: Path, tmp_path: Path) -> None:
    for folder, value in ((first, 1), (tmp_path / "second", 2)):
        run(folder, {"family/one_table.csv": "k,value\n" + "".join(f"{k},{value / (k + 3)}\n" for k in range(30))})
    text = summarised(compared(first, tmp_path / "second"))
    assert "## Numbers that differ (the first 10 of 30; changes.csv has all)" in text
    assert text.count("| family/one") == 10


def test_long_settings_are_cut_where_they_are_read(first: Path, tmp_path: Path) -> None:
    found = compared(first, run(tmp_path / "second", configuration={"a": "x" * 60, "b": "y" * 61}))
    assert all(f" {text} " in summarised(found) for text in ("x" * 60, "y" * 60 + "…"))


def test_what_is_a_run(first: Path, tmp_path: Path) -> None:
    assert is_run(first)
    assert not is_run(tmp_path)  # its experiments belong to the folder below
    assert not is_run(tmp_path / "absent")
    shutil.move(first / "family", first / "jobs")
    assert not is_run(first)


def test_a_table_that_is_gone_is_an_error(first: Path) -> None:
    (first / "family/one_table.csv").unlink()
    with pytest.raises(ConfigurationError, match=r"one_table.csv cannot be read .*task=report"):
        read_run("first", first)


@pytest.mark.parametrize("linked", ["family/one_table.csv", "family/one.csv", "family/one.json", "family"])
def test_a_link_to_a_file_of_the_reader_is_not_followed(first: Path, tmp_path: Path, linked: str) -> None:
    (first / linked).rename(tmp_path / "elsewhere")
    (first / linked).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match=rf"{linked} is a symbolic link, which is not followed; put there"):
        read_run("first", first)
    (tmp_path / "own").symlink_to(first)  # a link to a whole run is that of who names it
    (first / linked).unlink()
    (tmp_path / "elsewhere").rename(first / linked)
    assert read_run("own", tmp_path / "own").experiments


@pytest.mark.parametrize(
    ("frame", "labels"),
    [
        pytest.param({"network": ["a", "b"], "seconds": [1.0, 2.0]}, ["network"], id="the first column is enough"),
        pytest.param({"T": [0.1, 0.1], "budget": [1, 2], "ECA": [0.5, 0.6]}, ["T", "budget"][1:], id="constant T"),
        pytest.param(
            {"n": [1, 1, 2, 2], "splits": [3, 3, 3, 3], "method": ["a", "b", "a", "b"], "error": [0.1, 0.2, 0.3, 0.4]},
            ["n", "method"],
            id="repetitions do not help",
        ),
        pytest.param({"x": [1.5], "y": [2.0]}, [], id="one row of numbers"),
        pytest.param({"example": ["F1"], "y": [2.0]}, ["example"], id="one row with a name"),
        pytest.param({"a": ["s", "s"], "b": [1, 1]}, ["a"], id="equal rows"),
        pytest.param({"x": []}, [], id="no row"),
    ],
)
def test_labels_are_the_fewest_leading_columns(frame: dict[str, list[object]], labels: list[str]) -> None:
    assert label_columns([pd.DataFrame(frame)]) == labels
    other = pd.DataFrame({"network": ["a", "a"], "seconds": [1.0, 2.0]})
    assert label_columns([pd.DataFrame({"network": ["a", "b"], "seconds": 1.0}), other]) == ["network", "seconds"]


@pytest.mark.parametrize("name", ["us_per_row", "ms_per_row", "fit_seconds", "microseconds a row", "memory (MB)"])
def test_times_and_memory_are_told_by_their_units(name: str) -> None:
    assert is_cost(name)


@pytest.mark.parametrize("name", ["log_loss", "status", "bus", "museums", "sms"])
def test_other_quantities_are_no_costs(name: str) -> None:
    assert not is_cost(name)
