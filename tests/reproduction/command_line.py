"""Run the program, in this process or in a new one."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from trimbench.reproduction.commands import cli


@dataclass(frozen=True)
class Answer:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def files(self) -> list[Path]:
        """The files named in the output, and those beside a page."""
        found = [*map(Path, re.findall(r"^  (\S.*\.(?:csv|gz|md|tex|png|pdf|json|html))$", self.out, re.MULTILINE))]
        for page in [path for path in found if path.suffix == ".html"]:
            start = "" if page.stem.startswith("index") else page.stem
            beside = [path for path in page.parent.iterdir() if path.is_file() and path.name.startswith(start)]
            found += [path for path in beside if path not in found]
        return found


Command = Callable[..., Answer]


def run_here(*words: str, code: int | None = None) -> Answer:
    """Run a command in this process, in the current folder; with `code`, insist that it ends with that exit code."""
    out, err = io.StringIO(), io.StringIO()
    ended = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["trimbench", *words])
        patch.setenv("HYDRA_FULL_ERROR", "1")
        try:
            cli.main()
        except SystemExit as end:
            ended = end.code if isinstance(end.code, int) else int(end.code is not None)
    answer = Answer(ended, out.getvalue(), err.getvalue())
    assert code in (None, ended), f"exit code {ended}: {answer.out}{answer.err}"
    return answer


def start(*words: str, folder: Path) -> subprocess.Popen[str]:
    """Start a command in a process group of its own, so that it can be killed together with its workers."""
    return subprocess.Popen(
        [sys.executable, "-m", "trimbench", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def results(folder: Path) -> dict[str, bytes]:
    """Return the content of all tables and figures below a folder, apart from provenance."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".csv", ".gz", ".md", ".tex", ".png", ".pdf")
    }


_TIME = re.compile(r"seconds|\(s\)")
_TIME_IN_A_CELL = re.compile(r'""(?:\w*seconds|us_per_row)"": [\d.e+-]+')


def tables(folder: Path) -> dict[str, str]:
    """Return every table below a folder, without run times."""
    found = {}
    for path in sorted([*folder.rglob("*.csv"), *folder.rglob("*.csv.gz")]):
        frame = pd.read_csv(path)
        text = frame.drop(columns=[name for name in frame if _TIME.search(name)]).to_csv()
        found[path.name] = _TIME_IN_A_CELL.sub("", text)
    return found


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files below a folder, which need not exist."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def file_of_run(experiment: str, end: str, folder: str = "results/quick") -> Path:
    """Return the file of an experiment with this ending that was written last, whatever settings are in its name."""
    found = [*Path(folder).glob(f"{experiment}*{end}")]
    assert found, f"no {end} among {sorted(map(str, Path(folder).rglob('*')))}"
    return max(found, key=lambda path: path.stat().st_mtime_ns)
