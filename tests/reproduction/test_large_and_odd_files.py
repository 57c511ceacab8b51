"""What is too large, too deep or no file in what somebody sends is refused before it takes time or memory."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

import pytest

from trimbench.reproduction import configuration
from trimbench.reproduction.commands.arguments import CommandLine
from trimbench.reproduction.configuration import checked_text, files_below
from trimbench.reproduction.reporting import archive
from trimbench.reproduction.reporting.archive import records_in
from trimbench.reproduction.reporting.reasons import keep_code
from trimbench.reproduction.reporting.runs import files_in
from trimbench.reproduction.settings import ConfigurationError

from .reporting.builders import reported


@pytest.mark.parametrize("printed", ["1e-5000", "1e1000000", "0." + 5000 * "0", "9" * 5000])
def test_a_printed_number_has_no_more_digits_than_a_float(printed: str) -> None:
    with pytest.raises(ConfigurationError, match="must be digits as printed"):
        reported("a", printed)
    assert reported("a", "1e-300").is_printed_form_of(1e-300)
    assert reported("a", "0").is_printed_form_of(0.2)


@pytest.mark.parametrize("opening", ["[", "{a: "])
def test_values_are_nested_at_most_so_deep(tmp_path: Path, opening: str) -> None:
    closing = {"[": "]", "{a: ": "}"}[opening]
    file = tmp_path / "own.yaml"
    for depth, is_refused in ((40, False), (110, True), (300, True), (20_000, True)):
        file.write_text(f"deep: {depth * opening}1{depth * closing}")
        if is_refused:
            with pytest.raises(ConfigurationError, match=re.escape(str(file))):
                checked_text(file)
        else:
            checked_text(file)


@pytest.mark.parametrize("opening", ["[", "{a:"])
def test_values_of_the_command_line_are_nested_at_most_so_deep(opening: str) -> None:
    closing = {"[": "]", "{a:": "}"}[opening]
    CommandLine.of([f"deep={40 * opening}1{40 * closing}"])
    for depth in (61, 110, 300, 20_000):
        with pytest.raises(ConfigurationError, match=f"deep must nest its values at most 60 deep, got {depth} levels"):
            CommandLine.of([f"deep={depth * opening}1{depth * closing}"])


def test_a_folder_with_very_many_files_is_no_folder_of_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in range(8):
        (tmp_path / f"{place}.yaml").touch()
    assert len(files_below(tmp_path)) == 8
    monkeypatch.setattr(configuration, "_MOST_ENTRIES", 5)
    with pytest.raises(ConfigurationError, match="must have at most 5 files and folders"):
        files_below(tmp_path)


def test_a_pipe_in_a_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("{}")
    assert len(files_in(tmp_path, "*.json")) == 1
    os.mkfifo(tmp_path / "two.json")
    with pytest.raises(ConfigurationError, match=r"two\.json must be a regular file, got a pipe or a device"):
        files_in(tmp_path, "*.json")


def test_nothing_is_written_behind_a_link_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/code").symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError, match="is a symbolic link, which is not followed; remove it"):
        keep_code([], tmp_path / "jobs")
    assert not [*(tmp_path / "theirs").iterdir()]


def test_empty_lines_of_an_archive_count_as_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "theirs.zip"
    with zipfile.ZipFile(path, "w") as written:
        written.writestr("provenance/jobs.jsonl", 50 * "\n")
    assert len([*records_in(path)]) == 50
    monkeypatch.setattr(archive, "_MOST_UNPACKED", 1000)
    with pytest.raises(ConfigurationError, match="is too large"):
        list(records_in(path))


def test_an_archive_asks_for_no_more_memory_than_ours(tmp_path: Path) -> None:
    path = tmp_path / "theirs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as written:
        written.writestr("provenance/jobs.jsonl", "{}\n")
    assert [*records_in(path)] == [b"{}\n"]
    content = bytearray(path.read_bytes())
    # Behind the name come the version, the length and the first of the properties; then the size of the dictionary.
    at = content.index(b"jobs.jsonl") + len("jobs.jsonl") + 5
    assert int.from_bytes(content[at : at + 4], "little") == 2**23
    content[at : at + 4] = (2**31).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="asks for a dictionary of more than"):
        list(records_in(path))
    content[at - 1 : at + 4] = bytes([255]) + (2**23).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="must be one of a run"):
        list(records_in(path))
