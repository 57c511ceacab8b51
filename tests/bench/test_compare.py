"""Two runs of all benchmarks: verdicts, the exit code, and files that are none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.bench import compare, table
from scripts.bench.measure import Row, Status


def row(ratio: float | None, status: Status = "ok", quantity: str = "sum") -> Row:
    return Row(quantity, "loop", ratio, 1.0, "s", ratio, 0.1, 5, status, "" if status == "ok" else "the reason")


def written(path: Path, *rows: Row) -> Path:
    table.write(path, [("rows", one) for one in rows])
    return path


@pytest.mark.parametrize(
    ("old", "new", "verdict", "code"),
    [
        (row(1.0), row(0.5), "better", 0),
        (row(1.0), row(0.82), "better", 0),
        (row(1.0), row(0.9), "same", 0),
        (row(0.001), row(0.00119), "same", 0),
        (row(1.0), row(1.21), "worse", 1),
        (row(1.0), row(None, "failed"), "failed", 1),
        (row(None, "failed"), row(None, "failed"), "failed", 1),
        (row(1.0), row(None, "absent"), "vanished", 1),
        (row(None, "absent"), row(None, "absent"), "absent", 0),
        (row(None, "absent"), row(1.0), "new", 0),
        (row(None, "failed"), row(1.0), "new", 0),
    ],
)
def test_verdict(
    old: Row, new: Row, verdict: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = written(tmp_path / "old.csv", old), written(tmp_path / "new.csv", new)
    assert compare.main([str(path) for path in files]) == code
    out, err = capsys.readouterr()
    assert out.splitlines()[1].split()[-1] == verdict
    assert bool(err) == bool(code)
    if code:
        assert re.match(rf"{verdict}.*: rows, sum, loop", err)


def test_rows_come_and_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = written(tmp_path / "old.csv", row(1.0), row(1.0, quantity="product"))
    new = written(tmp_path / "new.csv", row(1.0), row(1.0, quantity="power"))
    assert compare.main([str(old), str(new)]) == 1
    out, err = capsys.readouterr()
    assert [line.split()[-1] for line in out.splitlines()] == ["verdict", "same", "new", "vanished"]
    assert err == "vanished: rows, product, loop\n"
    assert compare.main([str(old), str(old)]) == 0


def test_the_worse_row_is_named_with_its_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = written(tmp_path / "old.csv", row(1.0)), written(tmp_path / "new.csv", row(1.5))
    assert compare.main([str(old), str(new)]) == 1
    assert capsys.readouterr().err == "worse by 50.0%, more than 20%: rows, sum, loop\n"


HEAD = ",".join(table.COLUMNS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"", "lacks the columns benchmark, quantity"),
        (b"\xff\xfe", "cannot be read"),
        (HEAD.replace(",ratio", "").encode(), "lacks the columns ratio; "),
        (HEAD.encode(), "has no rows"),
        (
            f"{HEAD}\nrows,sum,loop,1,1,s,fast,0.1,5,ok,\n".encode(),
            "line 2: ratio must be a positive number, got 'fast'",
        ),
        (f"{HEAD}\nrows,sum,loop,1,1,s,0,0.1,5,ok,\n".encode(), "line 2: ratio must be a positive number, got '0'"),
        (f"{HEAD}\nrows,sum,loop,1,1,s,nan,0.1,5,ok,\n".encode(), "line 2: ratio must be a positive number, got 'nan'"),
        (f"{HEAD}\nrows,sum,loop,inf,1,s,1,0.1,5,ok,\n".encode(), "line 2: ours must be a number, got 'inf'"),
        (f"{HEAD}\nrows,sum,loop,1,,s,1,0.1,5,ok,\n".encode(), "line 2: theirs must be a positive number, got ''"),
        (f"{HEAD}\nrows,sum,loop,1,1,s,1,-1,5,ok,\n".encode(), "line 2: spread must be a number from 0, got '-1'"),
        (f"{HEAD}\nrows,sum,loop,1,1,s,1,0.1,x,ok,\n".encode(), "line 2: repetitions must be a number from 0, got 'x'"),
        (f"{HEAD},ratio\n".encode(), "must have each column once"),
        (f"{HEAD}\nrows,sum,loop,1,1,s,1,0.1,5,good,\n".encode(), "line 2: status must be one of ok, absent, failed"),
        (f"{HEAD}\nrows,sum,loop\n".encode(), "line 2: status must be one of"),
        (f"{HEAD}\n{2 * 'rows,sum,loop,1,1,s,1,0.1,5,ok,' + chr(10)}".encode(), "line 2: more than 11 values"),
        (f"{HEAD}\n{2 * ('rows,sum,loop,1,1,s,1,0.1,5,ok,' + chr(10))}".encode(), "line 3: a second row of rows, sum"),
    ],
)
def test_a_file_that_is_no_table_is_one_line(
    content: bytes | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.csv", written(tmp_path / "new.csv", row(1.0))
    if content is not None:
        old.write_bytes(content)
    for files in ((old, new), (new, old)):
        assert compare.main([str(path) for path in files]) == 2
        err = capsys.readouterr().err
        assert err.startswith(f"error: {old}")
        assert message in err
        assert err.count("\n") == 1
        assert "scripts/bench/run all --csv FILE" in err
