"""Single methods of the frontier where there is little to choose from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from trimbench.papers.own_table.steps import CANDIDATES, by_sequential_selection, informative


def coded(n_features: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    wanted = rng.integers(2, size=120)
    noise = rng.random((120, n_features)) < np.linspace(0.1, 0.5, n_features)
    columns = {f"f{i}": pd.Categorical(wanted ^ noise[:, i]) for i in range(n_features)}
    return pd.DataFrame({**columns, "constant": pd.Categorical([0] * 120)}), wanted


def test_as_many_features_as_there_are_need_no_selection() -> None:
    table, wanted = coded(4)
    assert by_sequential_selection(table, wanted, 4, 0) == informative(table, wanted)
    assert by_sequential_selection(table, wanted, 5, 0) == informative(table, wanted)
    assert len(by_sequential_selection(table, wanted, 2, 0)) == 2


def test_the_most_informative_features_are_all_that_is_compared() -> None:
    table, wanted = coded(CANDIDATES + 2)
    assert by_sequential_selection(table, wanted, CANDIDATES, 0) == informative(table, wanted)[:CANDIDATES]
    with pytest.raises(ValueError, match=f"compares the {CANDIDATES} most informative .* cannot take {CANDIDATES + 1}"):
        by_sequential_selection(table, wanted, CANDIDATES + 1, 0)
