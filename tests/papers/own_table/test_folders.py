"""Folders of Parquet files: a sample of their rows, the counts of all of them, and folders whose files differ."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.stats import chisquare

from trimbench.papers.own_table import folders
from trimbench.papers.own_table.cards import ColumnCard
from trimbench.papers.own_table.table_reading import TableSettings, read_table
from trimbench.papers.own_table.table_texts import MISSING_VALUES
from trimbench.papers.own_table.tables import rows_of
from trimbench.reproduction.data.errors import DeclarationError

from .studies import iris, studied


def write(folder: Path, *frames: pd.DataFrame, **how: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for place, frame in enumerate(frames):
        frame.to_parquet(folder / f"{place}.parquet", **how)
    return folder


def sampled(folder: Path, most: int = 100_000, seed: int = 0) -> tuple[pa.Table, folders.AllRows | None]:
    return folders.sampled(folder, lambda _: None, "ill", MISSING_VALUES, most, seed)


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame({"age": np.arange(300), "ill": np.arange(300) % 2})


def test_a_small_folder_is_read_whole(tmp_path: Path, table: pd.DataFrame) -> None:
    found, every = sampled(write(tmp_path / "all", table[:100], table[100:]))
    pd.testing.assert_frame_equal(found.to_pandas(), table)
    assert every is None


def test_a_large_one_is_sampled_and_says_so(tmp_path: Path, table: pd.DataFrame) -> None:
    found, every = sampled(write(tmp_path / "all", table[:100], table[100:]), 120)
    ages = found["age"].to_pylist()
    assert len(set(ages)) == 120
    assert ages == sorted(ages)
    assert every is not None
    assert every.note.startswith("120 rows were drawn at random from 300 in 2 files, of which 300 have a class;")


def test_the_sample_depends_on_the_seed_and_not_on_batches_and_files(
    tmp_path: Path, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = write(tmp_path / "one", table)
    many = write(tmp_path / "many", table[:7], table[7:8], table[8:], row_group_size=11)
    expected = sampled(one, 40)[0].to_pandas()
    monkeypatch.setattr(folders, "_BATCH_ROWS", 3)
    pd.testing.assert_frame_equal(sampled(many, 40)[0].to_pandas(), expected)
    assert not sampled(one, 40, seed=1)[0].to_pandas().equals(expected)


def test_each_row_is_as_likely_as_the_others(tmp_path: Path) -> None:
    folder = write(tmp_path / "all", pd.DataFrame({"row": np.arange(20), "ill": np.arange(20) % 2}))
    draws = np.concatenate([np.asarray(sampled(folder, 5, seed)[0]["row"]) for seed in range(400)])
    assert chisquare(np.bincount(draws, minlength=20)).pvalue > 1e-3


def test_files_of_other_columns_are_refused(tmp_path: Path, table: pd.DataFrame) -> None:
    folder = write(tmp_path / "all", table[:100], table[100:].rename(columns={"age": "years"}))
    with pytest.raises(
        DeclarationError, match=r"of the same columns; 1\.parquet differs from 0\.parquet in age, years"
    ):
        sampled(folder)


# The card counts all rows: it says what it would if the table were read whole.

_WORDS: dict[str, list[Any]] = {
    "few": [*range(-3, 4), None],
    "half": [0.5, 1.5, -999.0, 1e38, None],
    "word": ["a", " a", "b", "NA", "", "c", None],
    "answer": ["Yes", "yes", "No", None],
    "truth": [True, False, None],
    "fixed": [Decimal("1.50"), Decimal("-2.25"), None],
}


def _columns(rng: np.random.Generator, n_rows: int) -> dict[str, pa.Array]:
    """Return columns of all types, a tenth of whose values are missing."""
    gaps = rng.random(n_rows) < 0.1
    days = rng.integers(-700_000, 2_900_000, n_rows)  # of any year
    columns = {name: [words[place] for place in rng.integers(0, len(words), n_rows)] for name, words in _WORDS.items()}
    return {
        **{name: pa.array(column, _TYPES.get(name)) for name, column in columns.items()},
        "many": pa.array(rng.integers(-(10**6), 10**6, n_rows), pa.int32(), mask=gaps),
        "real": pa.array(rng.choice([-999.0, 1e151, np.nan, 0.5, *rng.normal(size=50)], n_rows), mask=gaps),
        "day": pa.array(days.astype(np.int32), pa.date32(), mask=gaps),
        "moment": pa.array(days * 86_400_000_000 + 1, pa.timestamp("us"), mask=gaps),
        "label": pa.array(rng.choice(["x", "y", "z"], n_rows), mask=gaps).dictionary_encode(),
    }


_TYPES = {"few": pa.int8(), "half": pa.float32()}


def _same(one: ColumnCard, other: ColumnCard) -> None:
    """Compare the card of all rows by a sample with that of the table read whole."""
    assert (one.name, one.read_as, one.rows, one.missing) == (other.name, other.read_as, other.rows, other.missing)
    said, expected = (vars(card)["values"].casefold() for card in (one, other))
    if one.distinct is not None:
        assert (one.distinct, said) == (other.distinct, expected)
    else:
        assert said.partition(",")[0] == expected.partition(",")[0]
        assert said.endswith("rows drawn")


@pytest.mark.parametrize("missing", [MISSING_VALUES, ("NA", "-999")])
@pytest.mark.parametrize("counted", [3, 1_000])
@pytest.mark.parametrize("seed", range(4))
def test_the_card_of_a_folder_is_that_of_the_whole_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, counted: int, missing: tuple[str, ...]
) -> None:
    rng, n_rows = np.random.default_rng(seed), 200
    classes = rng.choice(["no", "yes", "maybe", "NA", None] if seed else ["no", "yes"], n_rows)  # type: ignore[list-item]
    whole = pa.table({**_columns(rng, n_rows), "ill": pa.array(classes.tolist())})
    parquet.write_table(whole[:25], tmp_path / "0.parquet", row_group_size=10)
    parquet.write_table(whole[25:], tmp_path / "1.parquet")
    how = TableSettings(missing_values=missing)
    monkeypatch.setattr(folders, "MOST_COUNTED", counted)
    monkeypatch.setattr(folders, "_BATCH_ROWS", 7)
    found, expected = (read_table(source, "ill", how, sample_rows=150) for source in (tmp_path, whole))
    assert len(found.labels) < 150 if seed else len(found.labels) == 150
    assert found.n_rows == len(expected.labels)
    of = {one.name: one for one in expected.card}
    counted_in_all = [one for one in found.card if one.rows not in (150, len(found.labels))]
    for one in counted_in_all:
        _same(one, of[one.name])
    some = {"few", "half", "many", "real", "truth", "fixed"} | (
        {"day", "moment"} if missing is MISSING_VALUES else set()
    )
    every = some | {"word", "answer", "label", "ill", "day", "moment"}
    assert {one.name for one in counted_in_all} >= (some - {"half"} if counted == 3 else every)


def test_what_cannot_be_counted_in_one_pass_is_counted_in_the_sample(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "name": [f"n{row}" for row in range(5_000)],
            "digits": rng.choice(["1,5", "2,5", "<1"], 5_000, p=[0.5, 0.45, 0.05]),
            "word": rng.choice(["a", "b", "NA"], 5_000),
            "ill": rng.choice(["no", "yes"], 5_000),
        }
    )
    table = read_table(write(tmp_path / "all", frame), "ill", sample_rows=1_000)
    rows = {one.name: one.rows for one in table.card}
    assert rows == {"name": 1_000, "digits": 1_000, "word": 5_000, "ill": 5_000}
    cards = {one.name: one for one in table.card}
    assert cards["word"].missing == (frame["word"] == "NA").sum()
    counts = frame["ill"].value_counts()
    assert cards["ill"].values == f"'no' {counts['no']:,}, 'yes' {counts['yes']:,}"  # noqa: PD011


@pytest.mark.parametrize("counted", [3, 1_000])
def test_infinite_numbers_outside_of_the_sample_are_refused(
    tmp_path: Path, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, counted: int
) -> None:
    monkeypatch.setattr(folders, "MOST_COUNTED", counted)
    drawn = sampled(write(tmp_path / "all", table), 200)[0]["age"].to_pylist()
    numbers = table["age"].to_numpy() % 50 + 0.5
    numbers[min({*range(300)} - {*drawn})] = np.inf
    folder = write(tmp_path / "all", table.assign(age=numbers, mark=table["age"] % 7))
    what = (
        r"folder 'all': column 'age' must have finite numbers, got inf in rows that were not drawn; correct them, or "
    )
    with pytest.raises(DeclarationError, match=what):
        read_table(folder, "ill", sample_rows=200)
    for how in (TableSettings(missing_values=(*MISSING_VALUES, "inf")), TableSettings(drop=("age",))):
        assert read_table(folder, "ill", how, sample_rows=200).n_rows == 300


def test_a_study_of_a_folder_learns_from_a_sample(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(size=120), "smokes": rng.integers(0, 2, 120)})
    frame = X.assign(ill=rng.choice(["no", "yes"], 120))
    folder = write(tmp_path / "rows", *(frame[40 * place : 40 * place + 40] for place in range(3)))
    assert len(read_table(folder, "ill").labels) == 120
    table = read_table(folder, "ill", sample_rows=50)
    assert (len(table.labels), table.n_rows) == (50, 120)
    assert table.repairs[0].startswith("50 rows were drawn at random from 120 in 3 files")
    assert table.sha256 == read_table(folder, "ill", sample_rows=50).sha256
    assert table.sha256 != read_table(folder, "ill", sample_rows=50, seed=1).sha256


def test_a_study_says_how_many_rows_each_step_used(tmp_path: Path) -> None:
    folder = write(tmp_path / "rows", iris()[:70], iris()[70:])
    study = studied(folder, "species", tmp_path / "jobs", sample_rows=120, rows=60)
    used = study.tables["used"].set_index("step")
    assert (set(used["drawn"]), set(used["of rows"])) == ({120}, {150})
    for step, expected in {
        "frontier": [(60, 30, 2)],
        "choice of a budget": [(60, 30, 1), (60, 24, 5)],
        "all features": [(60, 30, 4)],
        "missing features": [(90, 30, 1)],
        "explanations": [(60, 30, 1)],
    }.items():
        found = used.loc[[step], ["learned from", "tested on", "times"]]
        assert [*found.itertuples(index=False, name=None)] == expected
    assert set(study.tables["card"]["counted in rows"]) == {150}
    assert rows_of(study.plan.table) == "120 of 150 rows"
    assert any("rows=120 takes all that were drawn, and sample_rows=... draws more." in note for note in study.notes)
    assert "'species', sample_rows=120, seed=0)" in study.code
    more = studied(folder, "species", tmp_path / "jobs", sample_rows=120, rows=100)
    assert any("sample_rows=134 draws as many" in note for note in more.notes)
    assert "counted in rows" not in studied(folder, "species", tmp_path / "jobs").tables["card"]
