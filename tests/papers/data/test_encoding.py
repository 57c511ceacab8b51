import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.data.encodings import categorize

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


@given(NUMBERS, NUMBERS)
def test_numbers_are_cut_at_the_median_of_the_training_rows(train: list[float], other: list[float]) -> None:
    given_frame = pd.DataFrame({"x": train}, index=range(7, 7 + len(train)))
    frames = categorize(given_frame, pd.DataFrame({"x": other}))
    assert frames[0].index.equals(given_frame.index)
    assert given_frame["x"].tolist() == train, "the input is left alone"
    median = np.median(train)
    for frame, values in zip(frames, (train, other), strict=True):
        high = [value > median if max(train) > median else value >= median for value in values]
        assert frame["x"].tolist() == [str(int(value)) for value in high]
        assert frame["x"].cat.categories.tolist() == ["0", "1"]


def test_a_column_of_two_values_keeps_both() -> None:
    for values in ([0, 0, 1], [0, 1, 1], [1, 1, 1, 0], [5.0, 7.0]):
        (coded,) = categorize(pd.DataFrame({"x": values}))
        assert coded["x"].tolist() == [str(int(value == max(values))) for value in values]


def test_labels_keep_the_categories_of_the_source_and_learn_new_ones() -> None:
    declared = pd.Series(pd.Categorical(["b", "a"], categories=["c", "b", "a"]))
    train, other = categorize(pd.DataFrame({"x": declared}), pd.DataFrame({"x": ["d", "a"]}))
    assert train["x"].cat.categories.tolist() == other["x"].cat.categories.tolist() == ["c", "b", "a", "d"]
    assert other["x"].tolist() == ["d", "a"]


def test_missing_values_are_a_category_of_every_frame() -> None:
    train, other = categorize(
        pd.DataFrame({"n": [1.0, 5.0], "l": ["a", "b"]}), pd.DataFrame({"n": [np.nan, 7.0], "l": [None, "a"]})
    )
    assert other["n"].tolist() == ["missing", "1"]
    assert other["l"].tolist() == ["missing", "a"]
    assert train["n"].cat.categories.tolist() == ["0", "1", "missing"]
    assert train["l"].tolist() == ["a", "b"]


@given(NUMBERS, NUMBERS)
def test_numbers_are_cut_at_the_mean_of_the_training_rows(train: list[float], other: list[float]) -> None:
    frames = categorize(pd.DataFrame({"x": train}), pd.DataFrame({"x": other}), cut="mean")
    mean = pd.Series(train).mean()
    for frame, values in zip(frames, (train, other), strict=True):
        assert frame["x"].tolist() == [
            str(int(value > mean if max(train) > mean else value >= mean)) for value in values
        ]


def test_missing_values_can_stay_or_be_drawn_by_a_fair_coin() -> None:
    table = pd.DataFrame({"n": [1.0, 5.0, *[np.nan] * 2000], "l": ["a", "b", *[None] * 2000]})
    (kept,) = categorize(table, gaps="keep")
    assert kept.isna().sum().tolist() == [2000, 2000]
    (drawn,) = categorize(table, gaps="draw", rng=np.random.default_rng(0))
    assert drawn.iloc[:2].to_numpy().tolist() == [["0", "a"], ["1", "b"]]
    for name, value in (("n", "1"), ("l", "b")):
        # Four standard deviations of 2,000 tosses.
        assert abs((drawn[name].iloc[2:] == value).mean() - 0.5) < 4 * 0.5 / 2000**0.5
    with pytest.raises(ValueError, match="`rng` must be a numpy Generator where gaps='draw', got None"):
        categorize(table, gaps="draw")


@pytest.mark.parametrize(
    ("train", "other", "message"),
    [
        ({"x": []}, {"x": [1.0]}, "`train` must have at least one row to take medians from, got 0 rows"),
        ({"x": [1.0]}, {"y": [1.0]}, r"frame 1 of `others` must have the columns of `train`, \['x'\], got \['y'\]"),
        ({"x": [np.nan]}, {"x": [1.0]}, r"`train` must have a number in column 'x', got missing values only; drop it"),
    ],
)
def test_frames_are_checked(train: dict[str, list[float]], other: dict[str, list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        categorize(pd.DataFrame(train), pd.DataFrame(other))
