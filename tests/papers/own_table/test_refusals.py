"""What a study refuses: one line that names what is wrong, what is allowed, what was got, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimbench.papers.own_table.settings import read_costs
from trimbench.papers.validation import ConfigurationError

from ..command_line import Command

ROWS = [f"{row % 7},{row % 5},{'p' if row % 3 else 'q'}" for row in range(60)]
TABLE = "\n".join(["a,b,y", *ROWS]) + "\n"


@pytest.mark.parametrize(
    ("body", "words", "complaint"),
    [
        (TABLE, ["target=Y"], "target must be a column of the data, got 'Y' (did you mean 'y'?)"),
        ("Dear all,\nthis is a letter; with commas, and so on.\n", [], "the columns are 'Dear all', 'Unnamed: 1'"),
        (TABLE + "1,2,r\n", [], "target must have each class in at least two rows, got 'r' in 1; leave such rows out"),
        (TABLE, ["data=s.csv"], "data must be an existing file, got 's.csv' (did you mean 't.csv'?)"),
        (TABLE, ["data=."], "data must be a file, got the folder '.'; name a table in it"),
        (TABLE, ["costs=target.csv"], "costs: a feature must be one of 'a', 'b', got 'y'; the target has no cost"),
        (TABLE, ["costs=unknown.csv"], "costs: a feature must be one of 'a', 'b', got 'bb' (did you mean 'b'?)"),
        (TABLE, ["costs=partial.csv"], "costs must have a cost for each of the 2 features, got none for b; write 0"),
        (TABLE, ["costs=none.csv"], "costs must be a file with the columns feature and cost, got 'none.csv'; correct"),
        (TABLE, ["budget=-3"], "study: budget must be at least 0.0, got -3"),
        (TABLE, ["test_share=1e-9"], "test_share must leave rows to test on, and of each class rows to learn from"),
        (TABLE, ["test_share=0.99"], "got 0.99 of 60 rows; write for example test_share=0.25"),
        (TABLE, ["seed=-1"], "study: seed must be at least 0, got -1"),
        (TABLE, ["bugdet=3"], "did you mean budget=3?\n"),
        (TABLE, ["data=null"], "task=study needs data; write for example data=patients.csv"),
        (TABLE, ["target=null"], "task=study needs target; write for example target=diagnosis"),
        (TABLE, ["run=published"], "run must not be 'published'"),
        (TABLE, ["types.a=numbe"], "types.a must be one of boolean, category, date, number, got 'numbe'; did you mean"),
        (TABLE, ['types={a: category, b: date}'], "types.b is date, but no value of the column is one, got '0', '1'"),
    ],
    ids=lambda value: "" if isinstance(value, str | bytes) else None,
)  # fmt: skip
def test_a_table_or_its_costs_are_refused_in_a_line(
    command: Command, body: str | bytes, words: list[str], complaint: str
) -> None:
    Path("t.csv").write_bytes(body.encode() if isinstance(body, str) else body)
    Path("target.csv").write_text("feature,cost\na,1\nb,1\ny,2\n")
    Path("partial.csv").write_text("feature,cost\na,1\n")
    Path("unknown.csv").write_text("feature;cost\na;1,5\nbb;2\n")
    given = {word.partition("=")[0] for word in words}
    usual = [word for word in ("data=t.csv", "target=y") if word.partition("=")[0] not in given]
    answer = command("task=study", "executor=serial", *usual, *words)
    assert answer.code == 2
    assert complaint in answer.err
    assert answer.err.count("\n") == 1
    assert len(answer.err) < 500
    assert not answer.out
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("name,a,b,c,d,e\n1,1,1,1,1,1\n", "columns feature and cost, got 'name', .*'d' and 1 more in costs.csv; re"),
        ("feature,cost\na,1\na,2\n", "must have each feature once, got 'a' again"),
        ("feature,cost\na,cheap\n", "must be numbers, got 'cheap' for a"),
    ],
)
def test_files_of_costs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, complaint: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("costs.csv").write_text(body)
    with pytest.raises(ConfigurationError, match=complaint):
        read_costs(Path("costs.csv"))
    Path("costs.csv").write_text("feature;cost\na;1,5\nlong name;0\n")
    assert read_costs(Path("costs.csv")) == {"a": 1.5, "long name": 0.0}
