"""Nothing in a table is silently wrong: what was changed, or looks wrong, is in the repairs."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from scripts.bench.study import messier_table
from trimbench.papers.data.table_files import ReadTable, TableSettings
from trimbench.papers.data.table_reading import read_table
from trimbench.papers.validation import DeclarationError

ROWS = 60
CLASSES = ["ill" if row % 3 == 0 else "well" for row in range(ROWS)]
HUGE = 2**53
LINES = [f"{row % 5};{row % 7};{name}" for row, name in enumerate(CLASSES)]


def cycled(*values: Any) -> list[Any]:
    return [values[row % len(values)] for row in range(ROWS)]


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({**columns, "z": np.arange(ROWS) % 7, "y": columns.get("y", CLASSES)})


def notes(table: ReadTable, name: str) -> str:
    return " / ".join(next(card.notes for card in table.card if card.name == name))


def written(folder: Path, body: str | bytes, name: str = "t.csv") -> Path:
    (folder / name).write_bytes(body.encode() if isinstance(body, str) else body)
    return folder / name


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
        (range(0, 30), -9, True),
        (range(1, 4), 99, True),
        (range(1, 4), 9, False),
        (range(70, 99), 99, False),
        (range(-20, 10), -9, False),
        (range(0, 30_000, 1000), 9999, False),
    ],
)
def test_codes_for_missing_values_are_pointed_out(usual: range, code: int, is_named: bool, as_text: bool) -> None:
    values: list[Any] = [*cycled(*usual)[:-2], code, code]
    found = notes(read_table(frame(x=list(map(str, values)) if as_text else values), "y"), "x")
    others = [value for value in usual if value != code]
    expected = f"{code} in 2 rows (rows 59, 60) is apart from the others, {others[0]} to {others[-1]}; if it stands for"
    assert (expected in found) == is_named
    assert "apart" not in notes(read_table(frame(x=[*values[:-1], usual[0]]), "y"), "x")


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
    with pytest.raises(
        DeclarationError, match="got 'yes' in every row with a class; counted as missing: 'None' in 30 r"
    ):
        read_table(frame(y=cycled("yes", "None")), "y")


@pytest.mark.parametrize(
    ("header", "repairs"),
    [
        ("a;;y", ["column 2 of the header line has no name and is called 'Unnamed: 1'"]),
        (";  ;y", ["columns 1, 2 of the header line have no name and are called 'Unnamed: 0', 'Unnamed: 1'"]),
        (" a;b ;y", ["blanks around the names 'a', 'b' in the header line were removed"]),
        ('a; "b";y', ["blanks around the name '\"b\"' in the header line were removed"]),
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
    with pytest.raises(DeclarationError, match="line 63 has 2 values where there are 3 columns"):
        read_table(path, "y")


def test_what_a_frame_has_beside_its_columns_is_said() -> None:
    plain = frame(a=cycled(1, 2))
    named = [f"p{row}" for row in range(ROWS)]
    left_out = "is no column, so it was left out; reset_index() makes it one"
    for source, repair in (
        (plain.rename_axis("patient"), f"the index 'patient' {left_out}"),
        (plain.set_axis(named), f"the index of the rows {left_out}"),
        (plain.rename(columns={"a": 7}), "the name of a column is no text: the column 7 is called '7'"),
    ):
        assert read_table(source, "y").repairs[0] == repair
    for source in (plain, plain.iloc[::-1]):
        assert not any("index" in line or "name" in line for line in read_table(source, "y").repairs)


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (str, {"separator": ","}, "one column, 'a;b;y'; write separator=';'"),
        (lambda text: text.replace(";", "\t"), {"separator": ";"}, r"one column, 'a\\tb\\ty'; write separator='\\t'"),
        (lambda text: text.replace(";", ":"), {}, "which is a part of 'a:b:y': name the separator, separator=':'"),
        (lambda text: text.replace("a;b;", "a,1;b,2;").replace(";", ",1;"), {}, "separator=';'"),
        (lambda text: "\n".join(f'"{line}"' for line in text.split("\n")), {}, "remove the quotation marks"),
    ],
)  # fmt: skip
def test_columns_that_were_not_told_apart(
    tmp_path: Path, change: Callable[[str], str], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(DeclarationError, match=message):
        read_table(written(tmp_path, change("\n".join(["a;b;y", *LINES]))), "y", TableSettings(**settings))


def test_a_tab_may_be_written_as_on_a_command_line(tmp_path: Path) -> None:
    path = written(tmp_path, "\n".join(["a;b;y", *LINES]).replace(";", "\t"))
    assert list(read_table(path, "y", TableSettings(separator=r"\t")).features) == ["a", "b"]


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
        (zipped("t.csv"), "a zip archive; unpack it and name the table"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), r"an Excel workbook \(.xls\)"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "a PNG image; name a table"),
        (b"%PDF-1.7\nabc", "a PDF document"),
        (pickle.dumps(CLASSES), "a pickle of Python; save the frame with to_parquet"),
        (b"BZh91AY&SY\x01\x02", "a file compressed by bzip2; unpack it"),
        (b"a" * 257 + b"ustar" + bytes(300), "a tar archive"),
        (b"\xef\xbb\xbf\n<!DOCTYPE html><html>", "a web page; download the table itself"),
        (b'[\n {"a": 1}]', "JSON; save the table as CSV"),
        (b"@RELATION iris\n@attribute a numeric", "an ARFF file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # archives hold the time
)
def test_files_of_other_formats_are_recognised(tmp_path: Path, body: bytes, what: str) -> None:
    with pytest.raises(DeclarationError, match=f"it looks like {what}") as caught:
        read_table(written(tmp_path, body, "t.dat"), "y")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_text_table_may_begin_like_another_format(tmp_path: Path) -> None:
    for name in ("ORCID", "RDX", "BZh", "Rar!"):
        assert name in read_table(written(tmp_path, "\n".join([f"{name};b;y", *LINES])), "y").features


@pytest.mark.parametrize("source", [pd.Series([1, 2], name="y"), pa.array([1, 2]), pa.chunked_array([[1, 2]])])
def test_a_single_column_is_no_table(source: Any) -> None:
    with pytest.raises(DeclarationError, match=r"data must be a path .*, got .*; give the whole frame, not one"):
        read_table(source, "y")


def test_names_are_checked_before_the_lines_are_read(tmp_path: Path) -> None:
    # The second line is wrong, too, but nobody gets as far.
    wide = ",".join(f"c{place}" for place in range(10_000)) + ",y\n1,2\n"
    for target, message in (("y", "at most 5,000 columns can be features, got 10,000"), ("Y", "did you mean 'y'")):
        with pytest.raises(DeclarationError, match=message):
            read_table(written(tmp_path, wide), target)


def test_every_repair_of_the_benchmark_is_on_the_card(tmp_path: Path) -> None:
    path = written(tmp_path, messier_table(2_000, 1).encode("cp1252"))
    repairs = read_table(path, "diagnosis", TableSettings(encoding="cp1252", id="patient")).repairs
    for part in (
        "column 15 of the header line has no name",
        "blanks around the name 'weight'",
        " rows repeat an earlier one in all features and the class",
        "'patient': it does not name rows uniquely",
        "'crp': decimal commas were read",
        " rows have no number and count as missing: '<5' in rows",
        "'smoker': other spellings were joined: 'Ja' in ",
        "'code': it determines the target",
        "'study': it has the same value in every row",
        " kg' in row ",
        "'pressure': -999 in ",
        "'region': taken for a category: 'unbekannt' in ",
        "'region': 'Nord' and 'nord' are different values",
        "'barcode': digits such as '90071992547",
        "'Unnamed: 14': it numbers the rows",
        "without a class in 'diagnosis'",
    ):
        assert any(part in line for line in repairs), part
