"""Which columns of a table tell its rows apart."""

from __future__ import annotations

import pandas as pd
import pytest

from trimbench.papers.reporting.tables import label_columns


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


def test_labels_tell_rows_apart_in_every_frame() -> None:
    one = pd.DataFrame({"data": ["a", "b"], "budget": [1, 1], "value": [1.0, 2.0]})
    two = pd.DataFrame({"data": ["a", "a"], "budget": [1, 2], "value": [1.0, 2.0]})
    assert label_columns([one]) == ["data"]
    assert label_columns([one, two]) == ["data", "budget"]
