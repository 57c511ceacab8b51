"""The skeleton of all pages."""

from __future__ import annotations

import math

import pytest

from trimbench.papers.execution import store
from trimbench.papers.reporting import page, runs
from trimbench.papers.vocabulary.tables import Table


@pytest.mark.parametrize(
    ("commit", "dirty", "fact"),
    [
        ("0123456789abcdef", False, "written with commit 0123456789ab"),
        ("0123456789abcdef", True, "written with commit 0123456789ab and uncommitted changes"),
        (None, None, "written with commit unknown"),
    ],
)
def test_the_facts_say_where_a_page_comes_from(
    monkeypatch: pytest.MonkeyPatch, commit: str | None, dirty: bool | None, fact: str
) -> None:
    where = {**store.provenance(), "commit": commit, "dirty": dirty, "time": "2026-01-02T03:04:05+00:00"}
    for module in (page, runs):
        monkeypatch.setattr(module, "provenance", lambda: where)
    facts = page.facts_of("run a", "profile b")
    assert facts[:2] == ["run a", "profile b"]
    assert fact in facts
    assert facts[-1] == "2026-01-02"


def test_cells_keep_the_value_by_which_they_are_sorted() -> None:
    part = page.table_part(Table.of("T", [{"x": 1.5}, {"x": math.inf}, {"x": None}], {"x": ".0f"}))
    assert part["columns"] == [("x", True)]
    assert part["rows"] == [
        [{"text": "2", "is_number": True, "value": "1.5"}],
        [{"text": "inf", "is_number": True, "value": ""}],
        [{"text": "–", "is_number": True, "value": ""}],
    ]
