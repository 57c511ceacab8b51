"""What a file that is no table looks like, by how it begins."""

from __future__ import annotations

import re

_AS_CSV = "save the sheet as CSV"
_EXPORT = "save the table as CSV or Parquet with the program that wrote it"
_UNPACK = "unpack it and name the table"
_BEGINNINGS: tuple[tuple[bytes, str, str], ...] = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook (.xls) or another document of Microsoft Office", _AS_CSV),
    (b"%PDF-", "a PDF document", "copy its table into a CSV file"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image", "name a table"),
    (b"\xff\xd8\xff", "a JPEG image", "name a table"),
    (b"GIF8", "a GIF image", "name a table"),
    (b"SQLite format 3\0", "an SQLite database", "save the table as CSV or Parquet"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "save the table as CSV or Parquet"),
    (b"\x93NUMPY", "an array of NumPy", "save it as CSV, with names of columns"),
    (b"\x80\x02", "a pickle of Python", "save the frame with to_parquet or to_csv"),
    (b"\x80\x03", "a pickle of Python", "save the frame with to_parquet or to_csv"),
    (b"\x80\x04", "a pickle of Python", "save the frame with to_parquet or to_csv"),
    (b"\x80\x05", "a pickle of Python", "save the frame with to_parquet or to_csv"),
    (b"<stata_dta>", "a file of Stata", _EXPORT),
    (b"$FL2", "a file of SPSS", _EXPORT),
    (b"RDX", "a file of R", "save the data frame with write.csv"),
    (b"ORC", "an ORC file", "save the table as Parquet"),
    (b"Obj\x01", "an Avro file", "save the table as Parquet"),
    (b"BZh", "a file compressed by bzip2", "unpack it, or compress it with gzip"),
    (b"\xfd7zXZ\0", "a file compressed by xz", "unpack it, or compress it with gzip"),
    (b"\x28\xb5\x2f\xfd", "a file compressed by zstd", "unpack it, or compress it with gzip"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"Rar!", "a RAR archive", _UNPACK),
    (b"\x7fELF", "a program", "name a table"),
)
_WORDS = (
    (b"<!doctype html", "a web page", "download the table itself"),
    (b"<html", "a web page", "download the table itself"),
    (b"<?xml", "an XML file", "save the table as CSV"),
    (b"@relation", "an ARFF file", "save the table as CSV, whose header line has the names of the columns"),
)
_JSON = (b'{"', b"{'", b"[{", b"[[")
_ZIP, _TAR = b"PK\x03\x04", b"ustar"
_MEMBERS = (
    (b"xl/", "an Excel workbook (.xlsx)", _AS_CSV),
    (b"opendocument.spreadsheet", "an OpenDocument spreadsheet", _AS_CSV),
    (b"word/", "a Word document", "copy its table into a CSV file"),
)
_SEARCHED = 1 << 16
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


def other_format(body: bytes) -> str | None:
    """Return what a file looks like that is no table, and what to do; None if it does not look like another format."""
    if body.startswith(_ZIP):
        for member, what, advice in _MEMBERS:
            if member in body[:_SEARCHED] or member in body[-_SEARCHED:]:
                return _said(what, advice)
        return _said("a zip archive", _UNPACK)
    if body[257:262] == _TAR:
        return _said("a tar archive", _UNPACK)
    for beginning, what, advice in _BEGINNINGS:
        # A header line may begin with ORC, but has no control characters.
        if body.startswith(beginning) and (len(beginning) > 4 or is_binary(body)):
            return _said(what, advice)
    words = body[:_SEARCHED].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for beginning, what, advice in _WORDS:
        if words.startswith(beginning):
            return _said(what, advice)
    if b"".join(words[:40].split()).startswith(_JSON):
        return _said("JSON", "save the table as CSV, for example with pandas.read_json")
    return None


def is_binary(body: bytes) -> bool:
    """Tell whether a file begins with characters that no text in the encodings of tables has."""
    return _CONTROL.search(body, 0, _SEARCHED) is not None


def _said(what: str, advice: str) -> str:
    return f"it looks like {what}; {advice}"
