from __future__ import annotations

import math

import pytest

from trimbench.papers.vocabulary.tables import Table


def test_columns_have_the_order_and_the_formats_that_are_given() -> None:
    table = Table.of("All", [{"b": 1.5, "a": "x"}, {"a": "y"}], {"a": "", "b": ".2f"}, name="part", listed=False)
    assert list(table.frame.columns) == ["a", "b"]
    assert table.frame["a"].tolist() == ["x", "y"]
    assert math.isnan(table.frame.loc[1, "b"])
    assert table.formats == {"b": ".2f"}, "a column of texts needs no format"
    assert (table.title, table.name, table.listed) == ("All", "part", False)


def test_columns_may_be_given_without_formats_or_lines() -> None:
    table = Table.of("All", ({"a": n} for n in range(3)), ["a", "b"])
    assert table.frame.shape == (3, 2)
    assert (table.formats, table.name, table.listed) == ({}, "", True)
    assert list(Table.of("None", [], {"a": "", "b": ".1f"}).frame.columns) == ["a", "b"]


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lines of 'All' must have the columns \['a'\], got \['b', 'c'\] besides"):
        Table.of("All", [{"a": 1}, {"a": 1, "b": 2, "c": 3}], ["a"])
