"""The pieces that tables are read with, against slow or independent twins."""

from __future__ import annotations

import io
import math
import re
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trimbench.papers.own_table.column_reading import LIMIT, TextColumn
from trimbench.papers.own_table.sources import CsvSource
from trimbench.papers.own_table.table_files import _lines, _split_by_arrow
from trimbench.papers.own_table.table_reading import equal_columns, read_table, suspicion
from trimbench.papers.own_table.table_texts import (
    TableSettings,
    day_first,
    days_of,
    signed,
    stated_number,
    type_setting,
)
from trimbench.reproduction.data.dataset import canonical_order
from trimbench.reproduction.data.errors import DeclarationError
from trimbench.reproduction.settings import validated

QUICK = settings(max_examples=60)
NUMBERS = st.one_of(st.integers(-(10**15), 10**15), st.floats(allow_nan=False, allow_infinity=False))


@QUICK
@given(NUMBERS, st.sampled_from(".,"))
def test_written_numbers_are_read_back(value: float, mark: str) -> None:
    assert stated_number(repr(value).replace(".", mark), mark) == value
    if isinstance(value, int):
        grouped = f"{value:,}".replace(",", "," if mark == "." else ".")
        assert stated_number(grouped, mark) == value


@QUICK
@given(st.text("0123456789.,-+eE<> 'x_\u0661", max_size=8))
def test_what_is_read_as_a_number_is_one(text: str) -> None:
    found = stated_number(text, ".")
    plain = re.sub(r"(?<=\d)[, '](?=\d{3}(?!\d))", "", text.strip())
    assert math.isnan(found) or found == float(plain)
    assert not LIMIT.fullmatch(text) or math.isnan(found)


_WRITTEN = st.one_of(
    st.floats(allow_nan=False).map(repr), st.integers(-(10**18), 10**18).map(str), st.text("012.,-e+", max_size=6)
)


@QUICK
@given(st.lists(_WRITTEN, min_size=1, max_size=5, unique=True), st.sampled_from(".,"))
def test_columns_of_usual_numbers_are_read_as_single_texts_are(texts: list[str], mark: str) -> None:
    column = TextColumn.of("x", pd.Series(texts, dtype="str"), ())
    marks = {".": ",", ",": "."}
    both = {one: [not math.isnan(stated_number(signed(text), one)) for text in column.texts] for one in marks}
    assert column.decimal_marks == {one for one in marks if any(np.array(both[one]) > both[marks[one]])}
    alone = [stated_number(text, mark) for text in column.texts]
    if not np.isnan(alone).all():
        alone = [stated_number(signed(text), mark) for text in column.texts]
    np.testing.assert_array_equal(column.parsed(mark), alone)
    usual = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d+)?(e[+-][01]?\d\d)?", re.ASCII)
    numbers = [float(text) for text in column.texts if usual.fullmatch(text)]
    is_plain = 0 < len(numbers) == len(column.texts) and max(map(abs, numbers)) < 1e15
    plain = np.array([]) if column.plain is None else column.plain[column.codes >= 0]
    assert plain.tolist() == numbers * is_plain


@QUICK
@given(st.decimals(-(10**6), 10**6, places=2), st.sampled_from(".,"))
def test_two_decimals_tell_the_mark(value: object, mark: str) -> None:
    assert TextColumn.of("x", pd.Series([str(value).replace(".", mark)], dtype="str"), ()).decimal_marks == {mark}


@QUICK
@given(st.lists(st.dates(date(1000, 1, 1)), min_size=1, max_size=20))
def test_written_dates_are_read_back(days: list[date]) -> None:
    expected = [(day - date(1970, 1, 1)) / timedelta(days=1) for day in days]
    for pattern, first in (("{0.day}/{0.month}/{0.year:04d}", True), ("{0.month}-{0.day}-{0.year:04d}", False)):
        texts = [pattern.format(day) for day in days]
        order = day_first(texts)
        assert order in (first, None)
        assert [days_of(text, first) for text in texts] == expected
        assert (order is None) == all(day.day <= 12 for day in days)
    assert [days_of(day.isoformat(), True) for day in days] == expected
    forms = ("%Y-%m-%d 00:00:00+00", "%Y%m%dT000000", "%Y-%m-%d 00:00:00,000", "%a, %d %b %Y 00:00:00 +0000")
    recent = [day.replace(year=2000 + day.year % 100, day=1) for day in days]
    for form in (*forms, "%Y-%m"):
        assert [days_of(day.strftime(form), True) for day in recent] == [
            (day - date(1970, 1, 1)).days for day in recent
        ]


@pytest.mark.parametrize(
    "text", ["2020-02-30", "2020-13-01", "0000-01-01", "12", "2020", "1 Foo 2020", "2020-01/02", ""]
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert math.isnan(days_of(text, True))


@QUICK
@given(st.lists(st.sampled_from(["a", " a", "b ", "NA", "", None, "c"]), max_size=30))
def test_columns_of_text_keep_every_row(values: list[str | None]) -> None:
    column = TextColumn.of("x", pd.Series(values, dtype=object), {"NA"})
    expected = [None if not value or value == "NA" else value.strip() for value in values]
    assert [column.texts[code] if code >= 0 else None for code in column.codes] == expected
    assert column.counted_missing == ({"NA": values.count("NA")} if "NA" in values else {})
    codes, names = column.labels()
    assert [names[code] if code >= 0 else None for code in codes] == expected
    assert names == sorted(column.texts)
    for place, text in enumerate(column.texts):
        assert column.rows_of([place]) == [row for row, value in enumerate(expected, 1) if value == text]


@QUICK
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=20, max_size=60))
def test_a_column_that_determines_the_target_is_found(pairs: list[tuple[int, int]]) -> None:
    values, labels = (np.array(part) for part in zip(*pairs, strict=True))
    codes = pd.factorize(values)[0]
    notes = suspicion("x", values.astype(float), codes, labels)
    determined = all(len({label for other, label in pairs if other == value}) == 1 for value, _ in pairs)
    assert ("it determines the target; drop it if it is known only afterwards" in notes) == determined
    assert canonical_order([values.astype(float), labels.astype(float)], len(pairs))[1] == len(pairs) - len(set(pairs))
    arrays = {"a": values, "b": values.max() - values, "n": values.astype(float)}
    assert equal_columns(arrays, dict.fromkeys("ab", codes)) == {"b": "a"}


@settings(max_examples=300)
@given(st.text('ab1 ,"\r\n\ufeff\x1c', max_size=12), st.sampled_from(["", "p,q\n", '"p",q\r\n']))
def test_arrow_splits_lines_as_the_standard_library_does(text: str, usual: str) -> None:
    text = f"{usual}{text}\n{usual}"
    if (fast := _split_by_arrow(text, ["x", "y"], ",")) is not None:
        rows = _lines(io.StringIO(text, newline=""), ",")
        pd.testing.assert_frame_equal(fast, pd.DataFrame([row for _, row in rows], columns=["x", "y"], dtype="str"))


TRUTH = {"TRUE": "True", "FALSE": "False", "true": "True"}
FIELDS = st.sampled_from(
    ["1", "2.5", "-3e-2", "07", "1 ", " 4", "inf", "?", "", "NA", "nan", "None", "True", "FALSE", "true", "a", "a ",
     "b", '"q,r"', '"5"', "1,5", "2020-01-01", "<5"]
)  # fmt: skip


@settings(max_examples=25)
@given(st.data())
def test_declared_data_and_studies_read_a_cell_alike(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    fields = [data.draw(st.lists(FIELDS, min_size=1, max_size=3)) for _ in range(3)]
    columns = [data.draw(st.lists(st.sampled_from(some), min_size=12, max_size=12)) for some in fields]
    rows = zip(*columns, range(12), ["x", "y", "01"] * 4, strict=True)
    path = Path(tmp_path_factory.mktemp("declared")) / "t.csv"
    path.write_text("\n".join(["a;b;c;n;label", *(";".join(map(str, row)) for row in rows)]) + "\n")
    source = CsvSource(path=str(path), target="label")
    try:
        study = read_table(path, "label", TableSettings(types={"n": "number"}))
    except DeclarationError as error:
        with pytest.raises(DeclarationError, match=re.escape(str(error).split(": ")[1])):
            source._table("data set 't'", [path], (0,), ())
        return
    declared = source._table("data set 't'", [path], (0,), ())
    assert list(declared) == ["a", "b", "c", "n", "label"]
    for name in study.features:
        cells = ([TRUTH.get(cell, cell) for cell in table[name]] for table in (declared, study.features))
        pd.testing.assert_series_equal(*(pd.Series(one, dtype=object) for one in cells))
    assert declared["label"].tolist() == [study.classes[label] for label in study.labels]


@QUICK
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8).map(str.strip))
def test_the_type_of_a_column_is_read_as_it_is_advised(column: str) -> None:
    assume(column)
    written = type_setting(column, "category")
    if written.endswith(" in Python"):
        assert not (column.isascii() and column.isalnum())
        return
    (override,) = OverridesParser.create().parse_overrides([written.strip("'") if written[0] == "'" else written])
    key, value = override.key_or_group, override.value()
    for part in reversed(key.split(".")[1:]):
        value = {part: value}
    assert validated(TableSettings, {"types": value}, "x").types == {column: "category"}


def test_points_in_the_name_of_a_column_need_no_care() -> None:
    nested = {"Sepal": {"Length": "category", "Width": "number"}, "Species": "category"}
    flat = {"Sepal.Length": "category", "Sepal.Width": "number", "Species": "category"}
    assert validated(TableSettings, {"types": nested}, "x").types == flat
