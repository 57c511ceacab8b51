"""Nothing in a table is silently wrong: what was changed, or looks wrong, is in the repairs."""

from __future__ import annotations

import datetime as dt
import io
import pickle
import re
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from trimbench.papers.data.table_reading import ReadTable, read_table
from trimbench.papers.data.table_texts import TableSettings
from trimbench.papers.validation import DeclarationError

from .test_table_reading import CLASSES, ROWS, cycled, refused, written

param = pytest.param  # with the number of the report that an input is from
HUGE = 2**53
LINES = [f"{row % 5};{row % 7};{name}" for row, name in enumerate(CLASSES)]


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({**columns, "z": np.arange(ROWS) % 7, "y": columns.get("y", CLASSES)})


def notes(table: ReadTable, name: str) -> str:
    return " / ".join(next(card.notes for card in table.card if card.name == name))


HUGE_VALUES = [None, *cycled(HUGE, HUGE + 1, -HUGE - 1)[1:]]


@pytest.mark.parametrize("kind", ["csv", "pandas", "arrow", "parquet", "feather"])
def test_huge_whole_numbers_stay_different(tmp_path: Path, kind: str) -> None:
    table = pa.table({"x": pa.array(HUGE_VALUES, pa.int64()), "z": np.arange(ROWS) % 7, "y": CLASSES})
    path = tmp_path / "t"
    if kind == "csv":
        path.write_text("x,z,y\n" + "".join(f"{x or ''},{r % 7},{CLASSES[r]}\n" for r, x in enumerate(HUGE_VALUES)))
    elif kind == "parquet":
        parquet.write_table(table, path)
    elif kind == "feather":
        feather.write_feather(table, path)
    exact = frame(x=pd.array(HUGE_VALUES, dtype="Int64"))
    source = {"pandas": exact, "arrow": table}.get(kind, path)
    found = read_table(source, "y")
    assert found.features["x"].dropna().tolist() == [str(value) for value in HUGE_VALUES if value is not None]
    assert "were taken for codes; if they are amounts, write types: number" in notes(found, "x")
    rounded = read_table(source, "y", TableSettings(types={"x": "number"}))
    assert rounded.features["x"].nunique() == 2
    assert f"whole numbers above 2^53 were rounded, such as '{HUGE + 1}'" in notes(rounded, "x")


def test_whole_numbers_with_gaps_are_numbers_as_before(tmp_path: Path) -> None:
    parquet.write_table(
        pa.table({"x": pa.array([None, *cycled(1, 2, -999)[1:]], pa.int64()), "y": CLASSES}), tmp_path / "t"
    )
    found = read_table(tmp_path / "t", "y", TableSettings(missing_values=("-999",)))
    np.testing.assert_array_equal(found.features["x"], [np.nan, *(np.array(cycled(1, 2, np.nan))[1:])])


def test_huge_floats_may_be_rounded_already() -> None:
    assert "whole numbers above 2^53 in rows 1, 3, 5" in notes(read_table(frame(x=cycled(2.0**60, 3.0)), "y"), "x")
    assert notes(read_table(frame(x=cycled(2.0**60, 3.5, 8.0, 9.0)), "y"), "x") == ""


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([*cycled(*range(30))[:-3], "8%", "$2", "8%"], "3 rows have no number and count as missing: '8%' in rows 58"),
        (cycled("80 kg", "75 kg"), "60 rows have a number with a unit: '80 kg' in rows 1, 3, 5, 7, 9 and 25 more"),
        (cycled("8%", "9%", "7"), "40 rows have a number with a unit: '8%' in rows 1, 4"),
        (cycled("10mg/dl", "20mg/dl", "30mg/dl"), "60 rows have a number with a unit"),
        (cycled("€ 5", "€ 7"), "60 rows have a number with a unit"),
        ([f"(R$ {row},5)" for row in range(ROWS)], "60 rows have a number with a unit: '(R$ 0,5)' in row 1"),
        (cycled("2020Q1", "2020Q2"), None),
        (cycled("2020-01-05", "2020-02-06", "never"), "most rows have dates, but 20 rows have none: 'never' in rows 3"),
        (cycled("a", "b", "Err:502", "####"), "taken for a category: 'Err:502' in 15 rows, '####' in 15 rows"),
        (cycled("a", "b", "999"), "taken for a category: '999' in 20 rows"),
        (cycled("a", "b", "(nil)", "#SPILL!", "\u2014"), "taken for a category: '(nil)' in 12 rows, '#SPILL!' in 12"),
        ([f"{row},5 kg" for row in range(ROWS)], "60 rows have a number with a unit: '0,5 kg' in row 1"),
        (cycled("1", "2", "3", "A"), "most rows have numbers, but 15 rows have none: 'A' in rows 4"),
        (cycled("1a", "2b", "3c", "1st", "2nd"), None),
        (cycled("a", "unknown", "b", "-"), "taken for a category: 'unknown' in 15 rows, '-' in 15 rows"),
        (cycled("a", "b", "A", "c"), "'a' and 'A' are different values"),
        (cycled("a b", "c", "a  b", "d"), "'a b' and 'a  b' are different values"),
        (cycled("Mu\u0308ller", "c", "M\u00fcller", "d"), "are different values, but look like spellings of one"),
        (cycled("1", "1.0", "A", "B"), "'1' and '1.0' are different values, but look like spellings of one"),
        (cycled("01", "1", "A", "B"), None),
        (cycled("ja", "nein", "nein", "Ja", "nein"), "other spellings were joined: 'Ja' in 12 rows is 'ja'"),
    ],
)  # fmt: skip
def test_texts_that_may_be_something_else_are_in_the_notes(values: list[Any], note: str | None) -> None:
    found = notes(read_table(frame(x=values), "y"), "x")
    if note is None:
        assert "unit" not in found
        assert "spellings" not in found
    else:
        assert note in found


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize(
    ("usual", "code", "is_named"),
    [
        (range(20, 50), -999, True),
        (range(20, 50), 9999, True),
        (range(20, 50), -888.8, True),
        (range(0, 30), -9, True),
        (range(1, 4), 99, True),
        (range(1, 4), 9, False),
        (range(70, 99), 99, False),
        (range(-20, 10), -9, False),
        (range(0, 30_000, 1000), 9999, False),
        (range(1, 4), 128, False),
        *((range(1, 4), code, True) for code in (127, 255, 32767, 65535, -128, -32767, -32768)),
        *((range(1, 4), code, True) for code in (-99.9, -99.99, -999.9, -999.99, -9999.9)),
    ],
)
def test_codes_for_missing_values_are_pointed_out(usual: range, code: float, is_named: bool, as_text: bool) -> None:
    values: list[Any] = [*cycled(*usual)[:-2], code, code]
    found = notes(read_table(frame(x=list(map(str, values)) if as_text else values), "y"), "x")
    others = [value for value in usual if value != code]
    expected = f"{code} in 2 rows (rows 59, 60) is apart from the others, {others[0]} to {others[-1]}; if it stands for"
    assert (expected in found) == is_named
    once = notes(read_table(frame(x=[*values[:-1], usual[0]]), "y"), "x")
    assert ("apart" in once) == (code in (32767, 65535, -32768))


@pytest.mark.parametrize("convert", [list, pd.to_datetime])
def test_dates_that_stand_for_missing_ones_are_pointed_out(convert: Callable[[list[str]], Any]) -> None:
    days = [*cycled("2020-01-01", "2021-02-02", "2020-03-03")[:-2], "2099-12-31", "2099-12-31"]
    found = notes(read_table(frame(x=convert(days)), "y"), "x")
    assert "2099-12-31 in 2 rows (rows 59, 60) is apart from the others, 2020-01-01 to 2021-02-02" in found


def test_what_looks_wrong_about_the_target_is_said() -> None:
    spelt = read_table(frame(y=cycled("1", "1.0", "2")), "y")
    assert spelt.repairs[-1] == "column 'y': '1' and '1.0' are different values, but look like spellings of one"
    assert "'unknown' in 20 rows" in notes(read_table(frame(y=cycled("a", "b", "unknown")), "y"), "y")
    missing = read_table(frame(y=cycled("a", "", "b", "NA")), "y")
    assert missing.repairs[0].startswith("30 rows without a class in 'y' (rows 2, 4, 6")
    assert notes(missing, "y") == "counted as missing: 'NA' in 15 rows"
    with refused("got 'yes' in every row with a class; counted as missing: 'None' in 30 r"):
        read_table(frame(y=cycled("yes", "None")), "y")


@pytest.mark.parametrize(
    ("header", "repairs"),
    [
        ("a;;y", ["no name in the header line: column 2, called 'Unnamed: 1'"]),
        (";  ;y", ["no name in the header line: column 1, 2, called 'Unnamed: 0', 'Unnamed: 1'"]),
        (" a;b ;y", ["blanks around names in the header line were removed: 'a', 'b'"]),
        ('a; "b";y', ["blanks around names in the header line were removed: 'b'"]),
        ("sep=;\r\na;b;y", ["the first line, 'sep=;', tells the separator and has no names of columns"]),
        ("a;b;y", []),
    ],
)
def test_names_in_the_header_line(tmp_path: Path, header: str, repairs: list[str]) -> None:
    path = written(tmp_path, "\n".join([header, *LINES]))
    found = read_table(path, "y")
    assert [line for line in found.repairs if "line" in line] == repairs
    assert len(found.labels) == ROWS


def test_lines_keep_their_numbers_after_that_for_excel(tmp_path: Path) -> None:
    text = "\n".join(["a;b;y", *LINES]).replace(";", "\t")
    assert list(read_table(written(tmp_path, f"\ufeffsep=\t\n{text}"), "y").features) == ["a", "b"]
    path = written(tmp_path, "\r\n".join(['"sep=;"', "a;b;y", *LINES, "1;2"]))
    with refused("line 63 has 2 values where there are 3 columns"):
        read_table(path, "y")


def test_what_a_frame_has_beside_its_columns_is_said() -> None:
    plain = frame(a=cycled(1, 2))
    named = [f"p{row}" for row in range(ROWS)]
    left_out = "is no column, so it was left out; reset_index() makes it one"
    for source, repair in (
        (plain.rename_axis("patient"), f"the index 'patient' {left_out}"),
        (plain.set_axis(named), f"the index of the rows {left_out}"),
        (plain.rename(columns={"a": 7}), "names of columns that are no text were made text, such as 7"),
    ):
        assert read_table(source, "y").repairs[0] == repair
    for source in (plain, plain.iloc[::-1]):
        assert not any("index" in line or "name" in line for line in read_table(source, "y").repairs)


def zipped(name: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("[Content_Types].xml", "")
        archive.writestr(name, "")
    return packed.getvalue()


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (zipped("xl/workbook.xml"), r"an Excel workbook \(.xlsx\); save the sheet as CSV"),
        (zipped("t.csv"), "an archive; unpack it and name the table"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), r"an Excel workbook \(.xls\)"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "an image; name a table"),
        (b"%PDF-1.7\nabc", "a document of Word or PDF"),
        (pickle.dumps(CLASSES), "a pickle of Python; save the frame with to_parquet"),
        (b"BZh91AY&SY\x01\x02", "a file compressed by bzip2, xz or zstd; unpack it"),
        (b"a" * 257 + b"ustar" + bytes(300), "an archive"),
        (b"\xef\xbb\xbf\n<!DOCTYPE html><html>", "a web page; download the table itself"),
        (b'[\n {"a": 1}]', "JSON; save the table as CSV"),
        (b"<table><tr><td>1</td></tr></table>", "a web page; download the table itself"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "a pointer of Git LFS; git lfs pull fetches"),
        (b"@RELATION iris\n@attribute a numeric", "an ARFF file"),
        (b"% 1. Title: Iris\n%\n\n@relation iris", "an ARFF file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # archives hold the time
)
def test_files_of_other_formats_are_recognised(tmp_path: Path, body: bytes, what: str) -> None:
    with refused(f"it looks like {what}"):
        read_table(written(tmp_path, body, "t.dat"), "y")


def test_a_text_table_may_begin_like_another_format(tmp_path: Path) -> None:
    for name in ("ORCID", "RDX", "BZh", "Rar!"):
        assert name in read_table(written(tmp_path, "\n".join([f"{name};b;y", *LINES])), "y").features


def test_names_are_checked_before_the_lines_are_read(tmp_path: Path) -> None:
    # The second line is wrong, too, but nobody gets as far.
    wide = ",".join(f"c{place}" for place in range(10_000)) + ",y\n1,2\n"
    for target, message in (("y", "at most 5,000 columns can be features, got 10,000"), ("Y", "did you mean 'y'")):
        with refused(message):
            read_table(written(tmp_path, wide), target)


# A type is a statement.

SIZES = [row * 37 % 101 for row in range(ROWS)]
DAYS = [dt.datetime(2019, 1, 1) + dt.timedelta(days=row) for row in range(ROWS - 2)]
ENDLESS = [*DAYS, *[dt.datetime(9999, 12, 31)] * 2]
FAR = "9999-12-31 in 2 rows (rows 59, 60) is apart from the others, 2019-01-01 to 2019-02-27"
TEXTS = [str(size % 5) for size in SIZES]


def arrow(values: Any, kind: pa.DataType | None = None) -> pd.Series:
    found = pa.array(values, kind)
    return pd.Series(found, dtype=pd.ArrowDtype(found.type))


DICTIONARY = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
TYPED = {
    "declared digits": (pd.Categorical(TEXTS), "category", "0", ""),
    "declared numbers": (pd.Categorical(cycled(1, 2, -9)), "category", "1", "-9 in 20 rows"),
    "declared, every row another": (pd.Categorical([f"p{row}" for row in range(ROWS)]), "left out", None, "types: cat"),
    "intervals": (pd.cut(SIZES, 3), "category", "(-0.1, 33.333]", ""),
    "endless": (pd.Series(ENDLESS, dtype="datetime64[us]"), "date", 17897.0, FAR),
    "endless in a zone": (pd.Series(ENDLESS, dtype="datetime64[us, America/Lima]"), "date", 17897 + 5 / 24, FAR),
    "dates": (pd.Series([day.date() for day in ENDLESS], dtype=object), "date", 17897.0, FAR),
    "periods": (pd.period_range("2019-01", periods=ROWS, freq="M").to_series(), "date", 17897.0, "by their start"),
    "fastparquet#543": (pd.Series(pd.period_range("2020-01-02 06:00", periods=ROWS, freq="2h")), "date", 18263.25, ""),
    "durations": (pd.Series([None, *pd.to_timedelta(SIZES[1:], unit="h")]), "number", np.nan, "read as days"),
    "times": (pd.Series([dt.time(size % 24, 30) for size in SIZES]), "number", 0.5 / 24, "read as days"),
    "fastparquet's durations": (
        arrow(pa.array([86_400 * (size % 9) for size in SIZES], pa.int32()).view(pa.time32("s"))),
        *("number", 0.0, "read as days"),
    ),
    "decimals": (pd.Series([Decimal(size % 3) / 4 for size in SIZES]), "number", 0.0, ""),
    "a few objects": (pd.Series([size % 3 for size in SIZES], dtype=object), "number", 0.0, ""),
    "truth": (pd.Series([None, *cycled(True, False)[1:]], dtype=object), "boolean", np.nan, ""),
    "complex": (pd.Series([complex(size, 1) for size in SIZES]), "left out", None, "complex numbers"),
    "sparse": (pd.arrays.SparseArray(cycled(0, 0, 1, 2)), "number", 0.0, ""),
    "bytes": (pd.Series(cycled(b"yes", b"no", b"?")), "boolean", "yes", "'?' in 20 rows"),
    "numbers as bytes": (pd.Series([str(size).encode() for size in SIZES]), "number", 0.0, ""),
    "bytes of cp1252": (pd.Series(cycled(b"m\xfcd", b"no")), "category", r"m\xfcd", "name the encoding"),
    "Arrow's categories": (arrow(TEXTS).astype(DICTIONARY), "category", "0", ""),
    "Arrow's decimals": (arrow([Decimal(size) for size in SIZES], pa.decimal128(10, 2)), "number", 0.0, ""),
    "Arrow's durations": (arrow(pd.to_timedelta(SIZES, unit="h"), pa.duration("us")), "number", 0.0, "read as days"),
    "Arrow's days": (arrow([day.date() for day in ENDLESS]), "date", 17897.0, FAR),
    "the least of 32 bits": ([-(2**31), *SIZES[1:]], "number", -2.0**31, "-2147483648 in 1 row"),
    "the least of 64 bits": ([-(2**63), *SIZES[1:]], "number", -2.0**63, "e+18 in 1 row"),
    "saspy#602": (pd.Series([dt.datetime(9999, 12, 31), *DAYS, None], dtype=object), "date", 2932896.0, "31 in 1 row"),
    "ParquetViewer#55": ([dt.datetime.max, dt.datetime.min, *DAYS], "date", np.nextafter(2932897, 0), "31 in 1 row"),
    "chdb#92": (arrow(cycled(b"SP98", None, b"Longu\xc3\xa9")), "category", "SP98", ""),
    "pandas#11731": (pd.to_timedelta(cycled("-1 days +23:30:00", "06:40:00")), "number", -0.5 / 24, "read as days"),
    "cces_cumulative#64": (cycled(*range(1, 10), -(2**31)), "number", 1.0, "-2147483648 in 6 rows"),
    "tablesaw#82": ([-32768, *SIZES[1:]], "number", -32768.0, "-32768 in 1 row"),
    "spss#25": (cycled(-1.79769e308, 1, 2, 3), "number", np.nan, "counts as missing"),
    "the largest of 32 bits": ([-3.4028234663852886e38] * 2 + SIZES[2:], "number", -3.4028234663852886e38, "it stands"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sparse:FutureWarning")
@pytest.mark.parametrize("case", TYPED)
def test_a_type_says_what_a_column_is_in_frames_and_files(tmp_path: Path, case: str) -> None:
    values, read_as, first, note = TYPED[case]
    source = frame(x=values if isinstance(values, list) else pd.Series(values).reset_index(drop=True))
    sources: list[Any] = [source]
    if not {case} & {"complex", "sparse", "periods", "fastparquet#543", "intervals"}:  # Arrow has none, or other ones
        sources += [pa.Table.from_pandas(source), tmp_path / "t.parquet"]
        source.to_parquet(tmp_path / "t.parquet")
    tables = [read_table(one, "y") for one in sources]
    card = tables[0].card[0]
    assert card.read_as == read_as
    assert note in "".join(tables[0].repairs)
    assert ("x" in tables[0].features) == (read_as != "left out")
    if read_as != "left out":
        np.testing.assert_equal(tables[0].features["x"].iloc[0], first)
    assert len({table.sha256 for table in tables}) == 1
    assert len({table.card for table in tables}) == 1


def test_an_index_is_no_feature_unless_it_is_asked_for(tmp_path: Path) -> None:
    shuffled = frame(a=SIZES).sample(frac=0.9, random_state=1)
    left_out = "is no column, so it was left out; reset_index() makes it one"
    for name, repair in ((None, "the index '__index_level_0__'"), ("patient", "the index 'patient'")):
        shuffled.rename_axis(name).to_parquet(tmp_path / "t")
        table = pa.Table.from_pandas(shuffled.rename_axis(name))
        # As polars#7291 and milvus#33197 have them: without what pandas says about the columns, in any order.
        bare = table.replace_schema_metadata(None)
        sources = [tmp_path / "t", table] + [bare, bare.select(bare.column_names[::-1])] * (name is None)
        for source in sources:
            found = read_table(source, "y")
            assert {*found.features} == {"a", "z"}
            assert found.repairs[0] == f"{repair} {left_out}"
    assert read_table(tmp_path / "t", "y", TableSettings(id="patient")).card[0].read_as == "id"
    assert read_table(table.select(["a", "z", "y"]).replace_schema_metadata(None), "y").features.shape[1] == 2
    for source in (shuffled.set_index("y"), pa.Table.from_pandas(shuffled.set_index("y"))):
        assert read_table(source, "y").classes == ("ill", "well")


# Text is looked at once, with the whole column as evidence.

AMOUNTS = [1_000 + 8_641 * row for row in range(ROWS)]
POINTED = [f"{size:,}".replace(",", ".") for size in AMOUNTS]


@pytest.mark.parametrize(
    ("values", "read_as", "first", "note"),
    [
        ([f"{size:,}".replace(",", ".") for size in [1_234_567, *AMOUNTS[1:]]], "number", 1_234_567, "groups of"),
        ([f"{size:,}" for size in [1_234_567, *AMOUNTS[1:]]], "number", 1_234_567, "groups of digits"),
        (POINTED, "number", 1.0, "if it parts thousands, say decimal=','"),
        ([f"{size:,}.5".replace(",", "\u2019") for size in AMOUNTS], "number", 1000.5, "groups of digits"),
        (cycled("(1.517,5)", *(f"{size},25" for size in range(516, 540))), "number", -1517.5, "'(1.517,5)' is -1517.5"),
        (cycled("(1)", "(2)"), "category", "(1)", ""),
        (cycled("1970-01-02 12:00 UTC", "1970-01-03 GMT"), "category", "1970-01-02 12:00 UTC", ""),
        (cycled("1970-01-02 12:00 UTC", "1970-01-03T00:00:00GMT"), "date", 1.5, ""),
        (cycled("0000-00-00", "1970-01-02"), "date", np.nan, "counted as missing: '0000-00-00' in 30 rows"),
        (cycled("#SPILL!", "nil", "{null}", "\u2026", *map(str, range(20))), "number", np.nan, "count as missing"),
        (cycled("01JAN1970", "31DEC2020"), "date", 0, ""),
        (cycled("1/13/1970 6:00 PM", "1/2/1970 12:00 AM"), "date", 12.75, "the month first"),
        (cycled("01JAN20", "31DEC21"), "left out", None, "the year of '01JAN20' has two digits"),
        param(cycled("december-30-11 1:14 pm", "january-04-10 11:02 am"), "left out", None, "two", id="parsedate#38"),
        (cycled(*(f"202001{day:02}" for day in range(1, 29))), "number", 20200101, "types: date reads them"),
        (cycled("39e1804", "3901805", "3901806"), "category", "39e1804", "digits such as '39e1804' were taken"),
        (cycled("3.9e3", "1e5", "2E+02", *map(str, range(20))), "number", 3900, ""),
        (cycled(".", *map(str, range(20))), "number", np.nan, "count as missing: '.' in rows 1"),
        (cycled("-1.7976931348623157e+308", *map(str, range(20))), "number", np.nan, "e+308 counts as missing in"),
        (cycled("-2147483648", *map(str, range(20))), "number", -(2**31), "if it stands for missing"),
        (cycled("9223372036854775807", *map(str, range(20))), "number", 2.0**63, "if it stands for missing"),
        (cycled("-999.9", "1.5", "2.5", "4"), "number", -999.9, "-999.9 in 15 rows"),
        ([f"Person {row}" for row in range(ROWS)], "left out", None, "types: category to keep it"),
        (cycled("+493012345", "+493012346", "+41446681800"), "category", "+493012345", "'+493012345' were taken for"),
        (cycled("+5", "-3", "+12"), "number", 5, ""),
        (["1.234.567", "x,y", *POINTED[2:]], "number", 1_234_567, "counts as missing: 'x,y' in row 2"),
        ([*(f"{size:,}" for size in AMOUNTS[:-1]), "a,b"], "left out", None, "say which in decimal"),
        (cycled("12.", "7.5", "8.25"), "number", 12, ""),
        (cycled("1 234,5", "7", "9"), "number", 1234.5, "groups of digits"),
        (cycled("0,250", "0,125", "1,500"), "number", 0.25, "decimal commas"),
        param(cycled("-0.70", "0.00", "3,276.28", *map(str, range(20))), "number", -0.7, "groups", id="readr#487"),
        param(cycled("1,20", "22,3", "1.234,56", "0", "-7,5"), "number", 1.2, "decimal commas", id="pandas#59299"),
        param(cycled("5.00-", "2000.00", *map(str, range(20))), "number", -5, "accounting", id="rustledger#1473"),
        param(cycled("0047583E590003", "0047583587"), "category", "0047583E590003", "", id="smarter_csv#345"),
        param(cycled("01JAN2024:12:00:00.0000", "30JUL1756:00:45:00.1234"), "date", 19723.5, "", id="haven#780"),
        param(cycled("08-10-65", "01-17-68", "01-01-69"), "left out", None, "has two digits", id="lubridate#1048"),
        param(cycled("9999-12-31 06:00:00", "2021-06-09 03:02:37"), "date", 2932896.25, "apart", id="datafusion#1360"),
        param(cycled("0 days 06:00:00", "1 days 00:10:00"), "number", 0.25, "read as days", id="cudf#6225"),
        param(cycled("6:00:00", "06:40:00", "", "38:27:15.5"), "number", 0.25, "read as days", id="pandas#9851"),
        param([str(dt.timedelta(hours=7 * row)) for row in range(ROWS)], "number", 0, "read as days", id="guildai#243"),
        (cycled("10:30", "11:45"), "category", "10:30", ""),
        param(cycled("43025712", "43025713", "#nv"), "category", "43025712", "'#nv' in 20 rows", id="xlsx2csv#268"),
        param(cycled("154598", "9218868437227407266"), "category", "154598", "types: number", id="data.table#488"),
    ],
)  # fmt: skip
def test_texts_are_read_with_the_whole_column_as_evidence(
    values: list[str], read_as: str, first: object, note: str
) -> None:
    found = read_table(frame(x=values), "y")
    assert found.card[0].read_as == read_as, found.card[0]
    assert note in notes(found, "x")
    if first is not None:
        np.testing.assert_equal(found.features["x"].iloc[0], first)


@pytest.mark.parametrize("n_rows", [12, 45])
def test_a_column_with_another_text_in_every_row_is_no_feature(n_rows: int) -> None:
    for values in ([f"Person {row}" for row in range(n_rows)], [f"0{row + 10}" for row in range(n_rows)]):
        source = frame(x=(values * ROWS)[:ROWS]).iloc[:n_rows]
        assert "x" not in read_table(source, "y").features
        assert "x" in read_table(source, "y", TableSettings(types={"x": "category"})).features


@pytest.mark.parametrize(
    ("spelling", "named"),
    [
        *((text, "-999") for text in ("-999.0", "-9.99E+02", "\u2212999", "-999,0", "-0999", "-999.", " -999 ")),
        ("-9,999", "-9999"),
        ("-999", "-999.0"),
        ("(999)", "-999"),
        param("-99.0", "-99", id="pandas#59303"),
        param("-99", "-99.0", id="pandas#3615"),
    ],
)
def test_missing_values_are_compared_as_values(spelling: str, named: str) -> None:
    values = cycled(spelling, *(f"{size}.5" for size in range(29)))
    target = cycled("1", "2", spelling if "9,9" not in spelling and "(" not in spelling else "")
    found = read_table(frame(x=values, y=target), "y", TableSettings(missing_values=(named,)))
    assert np.flatnonzero(found.features["x"].isna()).tolist() == [0, 20]
    assert found.classes == ("1", "2")
    assert "missing" in notes(found, "x")


def test_missing_values_are_compared_in_the_type_of_the_column() -> None:
    half = frame(
        x=np.array(cycled(-999.9, 1, 2, 3), dtype=np.float32), day=pd.to_datetime(cycled("1970-01-01", "2020-01-02"))
    )
    found = read_table(half, "y", TableSettings(missing_values=("-999.9", "1970-01-01")))
    assert found.features["x"].isna().sum() == 15
    assert found.features["day"].isna().sum() == 30
    for code in (-999.9, -999.99, 1e20, 9.969209968386869e36):
        single = frame(x=np.array([*range(ROWS - 2), code, code], dtype=np.float32))
        said = re.search(r"(\S+) in 2 rows .* is apart from the others", notes(read_table(single, "y"), "x"))
        assert said
        for spelling in (said[1], repr(code)):
            found = read_table(single, "y", TableSettings(missing_values=(spelling,)))
            assert found.features["x"].isna().sum() == 2
    codes = read_table(frame(x=pd.Categorical(cycled(1, 2, -9))), "y", TableSettings(missing_values=("-9.0",)))
    assert list(codes.features["x"].cat.categories) == ["1", "2"]
    named = read_table(frame(x=cycled("007", "7", "b")), "y", TableSettings(missing_values=("7",)))
    assert list(named.features["x"].cat.categories) == ["007", "b"]


# In the order of blaze#1466, xlsx#74, pandas#29668, orange3#5172 and cudf#6678; then others.
@pytest.mark.parametrize("mark", ["\\N", "#NV", "#DIV/0!", "#VALUE!", "<NA>", "#BEZUG!", "#N/A", "NaT", "[NULL]"])
def test_marks_of_databases_and_spreadsheets_are_missing(mark: str) -> None:
    found = read_table(frame(x=cycled(mark, "a", "b", "c"), y=cycled("p", "q", mark)), "y")
    assert found.card[0].missing == 10
    assert found.classes == ("p", "q")


# The first two are from deepchecks#1970 and postmangovsg#88.
@pytest.mark.parametrize("other", ["b.", "b\u200b", "\ufeffb", "b\u00ad", "B", "b\u00a0", "b;", "'b'"])
def test_labels_that_look_alike_are_pointed_out_in_features_and_target(other: str) -> None:
    found = read_table(frame(x=cycled("a", "b", other, "c"), y=cycled("a", "b", other)), "y")
    for name in "xy":
        said = "look like spellings of one" in notes(found, name)
        assert said == (other.strip() != "b")


# Files as programs leave them.

HEAD, BODY = "a;b;y", LINES
R_TABLE = "\n".join(['"a"\t"b"\t"y"', *(f'"{row}"\t{line}'.replace(";", "\t") for row, line in enumerate(BODY, 1))])


@pytest.mark.parametrize(
    ("text", "columns", "repair"),
    [
        ("\n".join([HEAD, *BODY[:20], HEAD, *BODY[20:40], HEAD, *BODY[40:]]), ["a", "b"], "again, in rows 21, 42"),
        param("\n".join(['"a";"b";"y"', *BODY[:9], HEAD, *BODY[9:]]), ["a", "b"], "again, in ", id="mb2-analysis#89"),
        param("\ufeff" + "\n\ufeff".join([HEAD, *BODY[:9], HEAD, *BODY[9:]]), ["a", "b"], "again, in ", id="g2p#182"),
        ("\n".join([HEAD, *BODY[:20], "A; B ;y", *BODY[20:40], HEAD, *BODY[40:]]), ["a", "b"], "again, in rows 21, 42"),
        ("\n".join([HEAD, *(f'"{i}";{line}' for i, line in enumerate(BODY))]), ["a", "b"], "where it names the rows"),
        ("\n".join([HEAD, *(f"car {i};{line}" for i, line in enumerate(BODY))]), ["a", "b"], "where it names the rows"),
        param(R_TABLE, ["a", "b"], "where it names the rows", id="data.table#763"),
        param("\n".join([HEAD, *(f"{line};" for line in BODY)]), ["a", "b"], "at their ends, where", id="pandas#14124"),
        param("\n".join(f";{line};" for line in [HEAD, *BODY]), ["a", "b"], "line: column 1, 5", id="CSV.jl#1162"),
        ("\n".join([f"{line};" for line in [HEAD, *BODY]]), ["a", "b"], "no name in the header line: column 4"),
        ("\n".join([f";{HEAD}", *(f"{i};{line}" for i, line in enumerate(BODY))]), ["a", "b"], "it numbers the rows"),
        param("\n".join(['"Dose\nTwo";b;y', *BODY]), ["Dose Two", "b"], "line breaks or invisible", id="readr#784"),
        ("\n".join(['"dose,\r\nor, mg";b;y', *BODY]), ["dose, or, mg", "b"], "line breaks or invisible characters"),
        ("\n".join(["a\u200b;b;y", *BODY]), ["a", "b"], "line breaks or invisible characters"),
        param("\n".join([HEAD, f"{'q' * 200_000};1;ill", *BODY[1:]]), ["a", "b"], "most rows have", id="clevercsv#21"),
        ("\n".join(['"a\nb";c;y', *BODY[:9], '"a\nb";c;y', *BODY[9:]]), ["a b", "c"], "again, in row 10"),
        ("\n".join([f";{HEAD}", *(f"{i};{line}" for i, line in enumerate(BODY)), f";{HEAD}"]), ["a", "b"], "in row 61"),
        ("\n".join([line.replace(";", ",5;", 1).replace(";well", ";y") for line in BODY]), ["0,5", "0"], "write one"),
    ],
)  # fmt: skip
def test_files_as_programs_leave_them(tmp_path: Path, text: str, columns: list[str], repair: str) -> None:
    target = "ill" if columns[0] == "0,5" else "y"
    found = read_table(written(tmp_path, text), target)
    assert list(found.features) == columns
    assert len(found.labels) == ROWS - (target == "ill")
    assert len(found.classes) == 2
    assert repair in "\n".join(found.repairs)


@pytest.mark.parametrize("n_lines", [15, ROWS])
def test_a_file_without_names_is_named_as_such(tmp_path: Path, n_lines: int) -> None:
    # The latter two are from pandas#57792 and arrow#26743.
    floats = [f"0;1.99e-06;0;{line}" for line in LINES]
    for lines in (LINES, [f"{line}1;{line}" for line in LINES], floats, [f"{line};" for line in LINES]):
        with refused("the names look like values: if the file has no line with the names"):
            read_table(written(tmp_path, "\n".join(lines[:n_lines])), "y")
    assert "the names look" not in "".join(read_table(frame(**{"2019": SIZES}), "y").repairs)


ADVICE = [
    cycled("39e1804", "3901805"), cycled("00501", "10115"), cycled("1", "2", "3", "A"), cycled("12e5", "3901805"),
    cycled("Null", "1", "2"), [f"{row}.5" if row % 2 else f"{row},5" for row in range(ROWS)],
    cycled("9999-12-31 06:00", "2021-06-09"), POINTED, cycled("1,234", "12"), cycled("20200101", "20200102"),
    [f"Person {row}" for row in range(ROWS)], [f"town {row % 55}" for row in range(ROWS)], cycled("a", "unknown", "b"),
    [*cycled(*range(20))[:-2], "-999", "-999"], cycled(1.0, float("inf")), cycled("inf", *map(str, range(20))),
]  # fmt: skip


@pytest.mark.parametrize("values", ADVICE, ids=str)
def test_advice_works_when_it_is_followed(values: list[Any]) -> None:
    source = frame(x=values)
    try:
        said = notes(read_table(source, "y"), "x")
    except DeclarationError as error:
        said = str(error)
    wanted: dict[str, Any] = {}
    for kind in ("number", "category", "date"):
        if f"types: {kind}" in said:
            wanted["types"] = {"x": kind}
    if "decimal=" in said or "say which in decimal" in said:
        wanted["decimal"] = ","
    if "missing_values" in said:
        wanted["missing_values"] = ("inf", "-inf", "unknown", "-999", "Null", "9999-12-31")
    assert wanted or "39e1804" in values
    found = read_table(source, "y", TableSettings(**wanted))
    assert found.card[0].read_as != "left out"
    assert "types" not in wanted or found.card[0].read_as == wanted["types"]["x"]
    assert "missing_values" not in wanted or found.features["x"].isna().any()


TEXT = "\n".join(["a;b;y", *LINES])
FOLLOWED: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"body": TEXT.replace(";", ":")}, "separator=':'", {"separator": ":"}),
    ({"body": TEXT, "separator": ","}, "separator=';'", {"separator": ";"}),
    ({"body": TEXT.replace(";", "\t"), "separator": ";"}, r"separator='\\t'", {"separator": r"\t"}),
    ({"body": TEXT.replace("a;b;", "a,1;b,2;").replace(";", ",1;")}, "separator=';'", {"separator": ";"}),
    ({"body": "\n".join(f'"{line}"' for line in TEXT.split("\n"))}, "remove the quotation marks", {"body": TEXT}),
    ({"body": f"\n{TEXT.replace('ill', 'übel')}".encode("cp1252")}, "line 3 .*=cp1252", {"encoding": "cp1252"}),
    ({"body": b"\xef\xbb\xbf" + TEXT.encode() + b"\n1;2;\xfc"}, "line 62 is not in .*save all of it", {"body": TEXT}),
    ({"body": f"Report\n\n{TEXT}", "features": ["a", "b"]}, "in line 3; delete the lines before it", {"body": TEXT}),
    ({"body": TEXT.replace("a", '"a', 1)}, "cannot be read: .*; close each quotation mark", {"body": TEXT}),
    ({"body": TEXT.replace("0", r'"5\" pipe"', 1)}, "line 2 cannot be .*double those inside", {"body": TEXT}),
    ({"body": TEXT.replace("ill", "\u30fc").encode("cp932")}, "name its encoding$", {"encoding": "cp932"}),
    ({"body": re.sub(r"(\n\d);", r"\1,5,", TEXT).replace(";", ",")}, "line 2 .* and none for 'ill'", {"body": TEXT}),
    ({"body": TEXT.replace("\n", "\n\0", 1)}, "line 2 has a NUL byte; if it is text, remove them", {"body": TEXT}),
    ({"body": TEXT + "\n1;2;ill;4"}, "line 62 has 4 values where there are 3 columns, and none", {"body": TEXT}),
    ({"body": TEXT.replace("a;b", "a;a", 1)}, "'a' more than once; rename one", {"body": TEXT}),
    ({"body": TEXT, "target": "Y"}, "did you mean 'y'", {"target": "y"}),
    ({"body": TEXT, "positive": "Ill"}, "did you mean 'ill'", {"positive": "ill"}),
    ({"body": TEXT.replace("a", "a 1", 1), "drop": ["c"]}, "of the data, got 'c'; the columns are", {"drop": []}),
    ({"body": TEXT, "drop": ["y", "b"]}, "got 'y' in both; take it out of drop", {"drop": ["b"]}),
    ({"body": TEXT, "types": {"a": "boolean"}}, "make it a category", {"types": {"a": "category"}}),
    ({"body": TEXT, "separator": "::"}, "leave it out to have it recognised", {"separator": None}),
    ({"body": TEXT, "features": ["y"]}, "take it out of features", {"features": ["a"]}),
    ({"body": TEXT, "missing_values": ["ill"]}, r"which missing_values=\[...\] changes", {"missing_values": []}),
    ({"body": "\n".join(TEXT.split("\n")[:6])}, "at least 10 rows with a class are needed.*add rows", {"body": TEXT}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "advice", "change"), FOLLOWED, ids=[advice for _, advice, _ in FOLLOWED])
def test_a_table_is_read_once_the_advice_is_followed(
    tmp_path: Path, given: dict[str, Any], advice: str, change: dict[str, Any]
) -> None:
    def read(*, body: str | bytes, target: str = "y", **keys: Any) -> ReadTable:
        return read_table(written(tmp_path, body), target, TableSettings(**keys))

    with refused(advice):
        read(**given)
    assert read(**(given | change)).features.shape[1] >= 1
