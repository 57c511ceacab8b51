"""Rows in batches, in any order and partition, give what the whole table gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from trimbench.networks.batches import Batches, in_batches
from trimbench.networks.learning import counted, learn_from_counts

ROWS = st.integers(0, 10_000)


def parts(frame: pd.DataFrame, seed: int) -> list[pd.DataFrame]:
    """Return the rows of a frame in random order and parts, some of them empty."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, len(frame) + 1, rng.integers(0, 6)))
    shuffled = frame.iloc[rng.permutation(len(frame))]
    return [shuffled.iloc[a:b] for a, b in zip([0, *ends], [*ends, len(frame)], strict=True)]


def categories(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 60))
    frame = pd.DataFrame(
        {
            "bytes": rng.integers(-1, 3, n).astype(np.int8),
            "years": rng.choice([1990, 2020, 2021], n),
            "floats": rng.choice([0.0, 2.0, np.nan], n),
            "halves": rng.choice([0.5, 0.75, 1e9], n),
            "truth": rng.random(n) < 0.5,
            "text": rng.choice(["b", "Z", "a"], n),
            "objects": rng.choice(np.array(["b", "a", None], dtype=object), n),
            "categories": pd.Categorical(rng.choice(["x", "y"], n), categories=["z", "y", "x"]),
            "class": rng.integers(0, 3, n),
        }
    )
    return frame.assign(
        floats=frame["floats"].where(np.arange(n) > 1, 1.0), objects=frame["objects"].where(frame.index > 0, "a")
    )


@given(seed=ROWS, structure=st.sampled_from(["naive_bayes", "tree"]))
@settings(max_examples=60, deadline=None)
def test_a_learned_model_is_that_of_the_whole_table(seed: int, structure: Any) -> None:
    frame = categories(seed)
    whole: Any = tb.learn(frame.drop(columns="class"), frame["class"], structure=structure, missing="ignore")
    batches = parts(frame, seed)
    found: Any = tb.learn(iter(batches), "class", structure=structure, missing="ignore")
    halves = [counted(some, "class", structure) for some in (batches[::2], batches[1::2]) if sum(map(len, some))]
    added: Any = learn_from_counts(sum(halves[1:], halves[0]), structure, missing="ignore")
    assert found.to_dict() == added.to_dict() == whole.to_dict()


def test_whole_numbers_with_gaps_are_the_same_numbers_in_every_batch() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"x": [1, 2, None, 1], "y": ["a", "b", "a", "b"]})
    frame = table.to_pandas()
    whole = tb.learn(frame[["x"]], frame["y"], missing="ignore")
    batches = [table.slice(0, 2).to_batches()[0], table.slice(2)]
    assert tb.learn(batches, "y", missing="ignore").to_dict() == whole.to_dict()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("pyarrow")
    for place, part in enumerate(parts(categories(3), 1)):
        part.to_parquet(tmp_path / f"{place}.parquet")
    return tmp_path


def test_sources_of_batches_hold_the_same_rows(folder: Path) -> None:
    from pyarrow import dataset, parquet

    class Ray:
        def iter_batches(self, *, batch_size: int, batch_format: str) -> Iterator[Any]:
            return iter([parquet.read_table(folder).slice(0, 20), parquet.read_table(folder).slice(20)])

        def select_columns(self, columns: list[str]) -> Ray:
            return self

    columns = ["bytes", "text"]
    frame = categories(3)
    expected = tb.learn(frame[columns], frame["class"]).to_dict()
    sources = [folder, str(folder), dataset.dataset(folder), Ray(), lambda: iter([frame]), [frame]]
    for source in sources:
        assert in_batches(source)
        assert tb.learn(Batches.of(source, columns), "class").to_dict() == expected
    single = parquet.ParquetFile(max(folder.iterdir(), key=lambda path: path.stat().st_size))
    assert sum(map(len, Batches.of(single, columns))) == single.metadata.num_rows


@pytest.mark.parametrize("table", [np.eye(2), pd.DataFrame({"x": [1]}), [[0, 1]], {"x": [1]}, pd.Series([1])])
def test_a_table_is_not_taken_for_batches(table: Any) -> None:
    assert not in_batches(table)


FRAME = pd.DataFrame({"x": ["a", "b"], "y": [0, 1]})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tb.learn([FRAME], FRAME["y"]), "must be the name of a column, got Series"),
        (lambda: tb.learn([FRAME], "z"), "must be a column of the batches, got 'z'"),
        (lambda: tb.learn([FRAME, FRAME[["x"]]], "y"), r"columns \['x', 'y'\], got \['x'\] after 2 rows"),
        (lambda: tb.learn([FRAME[:0]], "y"), "at least one row"),
        (lambda: tb.learn([FRAME], "y", structure="mixture"), "'naive_bayes' or 'tree' for rows in batches"),
        (lambda: tb.learn([FRAME.assign(x=["a", None])], "y"), "feature 'x' must have no missing values"),
        (lambda: tb.learn([FRAME.assign(x=[1.0, np.inf])], "y"), "feature 'x' must hold finite numbers"),
        (
            lambda: tb.learn([FRAME.assign(x=np.arange(2) + k) for k in range(0, 40, 2)], "y"),
            "got 40 different|got a different",
        ),
        (lambda: tb.learn([FRAME, np.eye(2)], "y"), "data frame or an Arrow record batch, got ndarray"),
        (lambda: Batches.of(3), "rows in batches must be"),
        (lambda: [list(once) for once in [Batches.of(iter([FRAME]))] * 2], "used up after one pass"),
    ],
)
def test_what_is_wrong_with_batches_is_said(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_identifiers_do_not_fill_memory() -> None:
    frames = (pd.DataFrame({"x": np.arange(40_000) * 1.5 + k, "y": 0}) for k in (0, 1e6))
    with pytest.raises(ValueError, match="'x' must hold categories, got 80000 different values"):
        tb.learn(frames, "y")
