"""The run of all benchmarks: its rows, failures, peers that are absent, and mistakes in the command."""

from __future__ import annotations

import csv
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from scripts.bench import all as everything
from scripts.bench import measure, overhead, publish, table
from scripts.bench.measure import Row

# A benchmark with a figure, a peer that is absent, a comparison that fails after its first row, and noise around them.
FAKE = """
from scripts.bench.measure import Row, absent

def sums():
    print("a library says something")
    yield Row("sum", "loop", 1.0, 4.0, "s", 0.25, 0.1, 5)
    yield absent("sum", "other", "no_such_package")

def goes_wrong():
    yield Row("first", "loop", 2.0, 1.0, "s", 2.0, 0.1, 5)
    raise ValueError("no data\\nhere")

def last():
    yield Row("last", "loop", 1.0, 1.0, "s", 1.0, None, 1)

COMPARISONS = (sums, goes_wrong, last)
"""


@pytest.fixture
def benchmark_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root}:{tmp_path}")
    return tmp_path / "fake_benchmark.py"


def test_a_comparison_that_fails_is_a_row_and_not_the_end(benchmark_file: Path) -> None:
    benchmark_file.write_text(FAKE)
    rows = list(everything.measured("fake_benchmark"))
    assert [(row.quantity, row.status) for row in rows] == [
        *(("sum", "ok"), ("sum", "absent")),
        *(("first", "ok"), ("goes wrong", "failed")),
        ("last", "ok"),
    ]
    assert rows[0] == Row("sum", "loop", 1.0, 4.0, "s", 0.25, 0.1, 5)
    assert rows[1].note == "no_such_package is not installed"
    assert rows[3].note == "ValueError: no data here"


def with_last(does: str) -> str:
    return f"{FAKE}\ndef last():\n    import os, pathlib, time\n    {does}\nCOMPARISONS = (sums, last)"


@pytest.mark.parametrize(
    ("code", "note"),
    [
        ("raise RuntimeError('no module')", "ended with exit code 1: RuntimeError: no module"),
        (with_last("os._exit(7)"), "exit code 7"),
        (with_last("pathlib.Path('MARK').touch(); time.sleep(600)"), "stopped after 3 s"),
    ],
    ids=["import", "exit", "time limit"],
)
def test_a_benchmark_that_ends_early_keeps_its_rows(
    benchmark_file: Path, monkeypatch: pytest.MonkeyPatch, code: str, note: str
) -> None:
    mark, wait = benchmark_file.with_name("mark"), subprocess.Popen.wait

    def wait_for_the_mark(child: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        """Let the time limit be reached when the last comparison has begun, however slow the machine is."""
        while timeout is not None and child.poll() is None:
            if mark.exists():
                raise subprocess.TimeoutExpired("", timeout)
            time.sleep(0.01)
        return wait(child)

    monkeypatch.setattr(subprocess.Popen, "wait", wait_for_the_mark)
    benchmark_file.write_text(code.replace("MARK", str(mark)))
    *kept, end = everything.measured("fake_benchmark", 3.0)
    assert [row.quantity for row in kept] == (["sum", "sum"] if "sums" in code else [])
    assert end.status == "failed"
    assert note in end.note


def test_the_command_writes_and_prints_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {
        "scripts.bench.rows": [Row("sum", "loop", 1.0, 3.0, "s", 1 / 3, 0.1, 5)],
        "scripts.bench.overhead": [Row("sum", "loop", status="failed", note="no data")],
    }
    monkeypatch.setattr(everything, "measured", lambda module, _: iter(found[module]))
    path = tmp_path / "folder/new.csv"
    assert everything.main(["rows", "overhead", "--csv", str(path)]) == 0
    output = capsys.readouterr().out
    assert [line.split()[0] for line in output.splitlines()] == ["benchmark", "rows", "overhead"]
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert tuple(lines[0]) == table.COLUMNS
    assert [(line["benchmark"], line["ratio"], line["note"]) for line in lines] == [
        ("rows", "0.3333", ""),
        ("overhead", "", "no data"),
    ]
    assert list(table.read(path)) == [("rows", "sum", "loop"), ("overhead", "sum", "loop")]


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        everything.main(["trimmming"])
    assert "NAME must be one of trimming, networks, " in capsys.readouterr().err


def test_a_comparison_of_the_project(tmp_path: Path) -> None:
    rows = [("overhead", row) for row in overhead.jobs_against_files(20)]
    table.write(tmp_path / "new.csv", rows)
    found = list(table.read(tmp_path / "new.csv").values())
    assert [row.status for row in found] == ["ok", "ok"]
    for (_, row), again in zip(rows, found, strict=True):
        assert row.ours is not None
        assert row.theirs is not None
        assert again.ratio == pytest.approx(row.ours / row.theirs, rel=1e-3)


def test_every_benchmark_says_what_it_compares() -> None:
    for name in everything.BENCHMARKS:
        code = (Path(everything.__file__).parent / f"{name}.py").read_text(encoding="utf-8")
        assert "\nCOMPARISONS = (" in code, name


def test_a_ratio_is_that_of_medians_with_the_spread_of_turns() -> None:
    pairs = np.array([[2.0, 1.0], [4.0, 1.0], [3.0, 1.0], [90.0, 30.0], [3.0, 2.0]])
    row = measure.ratio_of("sum", "loop", pairs, "s")
    assert (row.ours, row.theirs, row.ratio, row.repetitions) == (3.0, 1.0, 3.0, 5)
    assert row.spread == pytest.approx((3.0 - 2.0) / 3.0)
    assert measure.ratio_of("sum", "loop", pairs[:1], "s").spread is None


def test_growth_is_the_slope_of_logarithms(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (10, 20, 40)
    times = np.array([[1e-3 * size**1.5 for size in sizes]] * 3)
    monkeypatch.setattr(measure, "repeated", lambda calls, repetitions: times)
    row = measure.growth("fit", sizes, lambda size: lambda: size, 3)
    assert row.ours == pytest.approx(1.5)
    assert row.ratio == pytest.approx(2**1.5)
    assert row.spread == pytest.approx(0.0)
    assert row.against == "10, 20, 40"


def test_processor_time_of_each_call_is_measured() -> None:
    calls = [0, 0]

    def count(which: int, n: int) -> None:
        calls[which] += 1
        sum(range(n))

    found = measure.repeated([lambda: count(0, 1_000), lambda: count(1, 1_000_000)], 3)
    assert found.shape == (3, 2)
    assert (found > 0).all()
    assert np.median(found[:, 1]) > 10 * np.median(found[:, 0])
    assert calls[0] > calls[1], "the shorter call is repeated within a turn"


def test_the_page_has_the_published_table() -> None:
    page = publish.PAGE.read_text(encoding="utf-8")
    rows = table.read(publish.PAGE.with_suffix(".csv"))
    assert page == publish.with_table(page, publish.table_of(rows)), "run scripts/bench/run publish"
    assert all(row.status != "failed" for row in rows.values())
    assert {name for name, _, _ in rows} >= set(everything.BENCHMARKS) - set(everything.SLOW)


def test_a_run_with_failures_is_not_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new.csv"
    table.write(path, [("rows", Row("sum", "loop", status="failed", note="no data"))])
    assert publish.main([str(path)]) == 2
    assert "has failed rows (rows, sum, loop); run them again" in capsys.readouterr().err


def test_publishing_writes_the_csv_and_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "speed.md"
    page.write_text(f"before\n{publish.BEGIN}\nold\n{publish.END}\nafter\n")
    monkeypatch.setattr(publish, "PAGE", page)
    table.write(tmp_path / "new.csv", [("rows", Row("sum", "loop", 1.0, 4.0, "s", 0.25, 0.1, 5))])
    assert publish.main([str(tmp_path / "new.csv")]) == 0
    text = page.read_text()
    assert "| rows | sum | loop | 1 | 4 | s | 0.25 | 0.10 |" in text
    assert "old" not in text
    assert (text.startswith("before"), text.endswith("after\n")) == (True, True)
    assert page.with_suffix(".csv").read_bytes() == (tmp_path / "new.csv").read_bytes()
    fewer = tmp_path / "fewer.csv"
    table.write(fewer, [("rows", Row("a | b", "loop", 1.0, 4.0, "s", 0.25, 0.1, 5))])
    assert publish.main([str(fewer)]) == 2
    assert "lacks 1 of the published rows, the first rows, sum, loop; " in capsys.readouterr().err
    assert page.read_text() == text
    assert publish.main([str(fewer), "--fewer"]) == 0
    assert "| rows | a \\| b | loop |" in page.read_text()
    table.write(tmp_path / "other.csv", [("tables", Row("read", "pandas", 1.0, 4.0, "s", 0.25, 0.1, 5))])
    assert publish.main([str(tmp_path / "other.csv")]) == 0  # what other benchmarks found stays
    assert [name for name, _, _ in table.read(page.with_suffix(".csv"))] == ["rows", "tables"]
    page.write_text("no marks")
    assert publish.main([str(tmp_path / "new.csv")]) == 2
